//! The ten query classes and their targets.

use super::walk;

/// One query class over a session of [`super::generate::document`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    ById,
    Assistant,
    LastTurn,
    LastThree,
    Summary,
    Ttl,
    HeadPre,
    Calls,
    Blocks,
    FirstBlocks,
}

/// The target time, and the times of the baselines on the machine where it was set. Only the ratio
/// counts: the better of the two baselines divided by the target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// Nanoseconds SQLite took.
    pub(crate) sqlite: f64,
    /// Nanoseconds the hand-written loop took.
    pub(crate) walk: f64,
    /// Nanoseconds bare bitsets took.
    pub(crate) floor: f64,
    /// The target, in nanoseconds.
    pub(crate) reach: f64,
}

impl Figure {
    /// How many times faster than the better of SQLite and the loop (below 1: how much slower).
    pub(crate) fn ratio(self) -> f64 {
        self.sqlite.min(self.walk) / self.reach
    }
}

impl Query {
    /// All ten, in the order the figures are listed.
    pub(crate) const ALL: [Self; 10] = [
        Self::ById,
        Self::Assistant,
        Self::LastTurn,
        Self::LastThree,
        Self::Summary,
        Self::Ttl,
        Self::HeadPre,
        Self::Calls,
        Self::Blocks,
        Self::FirstBlocks,
    ];

    /// The four whose answers grow with the session.
    pub(crate) const BIG: [Self; 4] = [
        Self::Assistant,
        Self::Calls,
        Self::Blocks,
        Self::FirstBlocks,
    ];

    /// The four local ones, which read one node, the newest turns or the head.
    pub(crate) const LOCAL: [Self; 4] =
        [Self::ById, Self::LastTurn, Self::LastThree, Self::HeadPre];

    /// A short name without white space.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ById => "by-id",
            Self::Assistant => "type-and-role",
            Self::LastTurn => "last-turn-core",
            Self::LastThree => "last-three-turns",
            Self::Summary => "rare-kind-priority",
            Self::Ttl => "numeric-ttl",
            Self::HeadPre => "head-pre",
            Self::Calls => "descendant-chain",
            Self::Blocks => "every-block",
            Self::FirstBlocks => "first-of-each-turn",
        }
    }

    /// The selector. It has the same meaning in every edition, except for `#`.
    pub(crate) fn selector(self, id: &str) -> String {
        match self {
            Self::ById => format!("@t0 #{id}"),
            Self::Assistant => "@t0 .cb[role='assistant']".into(),
            Self::LastTurn => "@t0 ^seq .mt:depth(1) > .mc > .cb[role='assistant']".into(),
            Self::LastThree => "@t0 ^seq .mt:depth(1-3) .cb[role='user']".into(),
            Self::Summary => "@t0 .cb[kind='summary'][priority>=8]".into(),
            Self::Ttl => "@t0 [ttl<=1]".into(),
            Self::HeadPre => "@t0 ^ah > .cb[offset<0]".into(),
            Self::Calls => "@t0 ^seq .mt .mc .cb[kind='call']".into(),
            Self::Blocks => "@t0 .cb".into(),
            Self::FirstBlocks => "@t0 ^seq > .mt > .mc > .cb:first".into(),
        }
    }

    /// The target at 100,000 nodes.
    pub(crate) fn figure(self) -> Figure {
        let (sqlite, walk, floor, reach) = match self {
            Self::ById => (470.0, 970e3, 33.0, 100.0),
            Self::Assistant => (4.3e6, 3.4e6, 100e3, 300e3),
            Self::LastTurn => (1.6e3, 28.0, 28.0, 150.0),
            Self::LastThree => (3.7e3, 160.0, 53.0, 300.0),
            Self::Summary => (52e3, 2.6e6, 6e3, 15e3),
            Self::Ttl => (1.25e6, 1.6e6, 16e3, 60e3),
            Self::HeadPre => (3.4e3, 92.0, 60.0, 250.0),
            Self::Calls => (11e6, 3.6e6, 96e3, 300e3),
            Self::Blocks => (10e6, 2.7e6, 207e3, 400e3),
            Self::FirstBlocks => (9.3e6, 690e3, 60e3, 200e3),
        };
        Figure {
            sqlite,
            walk,
            floor,
            reach,
        }
    }
}

/// A timed query: builds the list of ids, keeps the optimizer from removing it, and returns its
/// length.
pub(crate) type Task<'a> = Box<dyn FnMut() -> usize + 'a>;

/// The id for the query by id: a block halfway through the tree.
pub(crate) fn asked_id(tree: &walk::Tree) -> String {
    let blocks = walk::blocks(tree);
    blocks[blocks.len() / 2].to_owned()
}

/// `count` selectors of 50 characters that differ in their tests.
pub(crate) fn shapes(count: usize) -> Vec<String> {
    const ROOTS: [&str; 3] = ["^seq", "^root", "depth(1-9)"];
    const AXES: [&str; 2] = [" ", " > "];
    const TYPES: [&str; 3] = [".cb", ".mc", "*"];
    const TEXTS: [&str; 3] = ["role", "kind", "key"];
    const EQUALITIES: [&str; 2] = ["=", "!="];
    const NUMBERS: [&str; 4] = ["ttl", "priority", "offset", "cycle"];
    const COMPARISONS: [&str; 6] = ["<=", ">=", "<", ">", "=", "!="];
    let pick = |from: &[&'static str], state: &mut usize| {
        let index = *state % from.len();
        *state /= from.len();
        from[index]
    };
    (0..count)
        .map(|index| {
            let mut state = index;
            let comparison = pick(&COMPARISONS, &mut state);
            let number = pick(&NUMBERS, &mut state);
            let equality = pick(&EQUALITIES, &mut state);
            let text = pick(&TEXTS, &mut state);
            let kind = pick(&TYPES, &mut state);
            let axis = pick(&AXES, &mut state);
            let root = pick(&ROOTS, &mut state);
            let head = format!("@t0 {root}{axis}{kind}[{text}{equality}'");
            let tail = format!("'][{number}{comparison}1]");
            let pad = 50_usize.saturating_sub(head.len() + tail.len()).max(1);
            format!(
                "{head}{}{tail}",
                &"abcdefghijklmnopqrstuvwxyz"[..pad.min(26)]
            )
        })
        .collect()
}

/// `count` selectors of 50 characters that differ only in a literal.
pub(crate) fn literals(count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("@t0 ^seq .mt > .mc > .cb[role='{index:09}'][ttl<=1]"))
        .collect()
}
