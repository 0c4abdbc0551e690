//! Positions: hops from the root's children down, as child steps (LANGUAGE §7).

use smallvec::smallvec;

use crate::diag::{Code, nearest};
use crate::syntax::ast::{DepthItem, Form, Hop, HopHead, HopPart, Position};
use crate::syntax::{Span, Spanned};

use super::super::{
    Attr, Axis, Chain, Class, DepthSet, Edition, Kind, Literal, NodeStep, Op, Step, Test, Tests,
    TypeTest,
};
use super::attrs::attr_test;
use super::{Lowerer, MAX_STEPS};

/// The words a hop may start with, for suggestions.
const HOPS: [&str; 7] = ["seg", "cont", "block", "mt", "mc", "cb", "end"];

impl Lowerer {
    pub(super) fn position(&mut self, position: &Position<'_>) -> Option<Chain> {
        let mut sound = self.needs(Edition::Depth, position.span, "a position `(…)`", None);
        if position.hops.is_empty() {
            self.invalid(position.span, "a position without hops", "nothing is named")
                .help("write `(d1)` for the newest turn, `(d0)` for the active head");
            return None;
        }
        if position.hops.len() > MAX_STEPS {
            let span = position
                .hops
                .get(MAX_STEPS)
                .map_or(position.span, |hop| hop.span);
            let message = format!(
                "a position has at most {MAX_STEPS} hops, this one has {}",
                position.hops.len()
            );
            self.error(Code::Limit, span, message, "one hop too many");
            return None;
        }
        if let Some(comma) = position.trailing_comma {
            self.insertion(comma, "a trailing comma", None);
            sound = false;
        }

        let mut scope: Option<DepthSet> = None;
        let mut steps: Vec<(Axis, Step)> = Vec::with_capacity(position.hops.len() + 1);
        let mut anchor = Tests::new();
        let mut confirmed = false;
        let last = position.hops.len() - 1;
        for (index, hop) in position.hops.iter().enumerate() {
            let at_end = index == last && position.trailing_comma.is_none();
            match self.depth_hop(hop) {
                Some(Ok(set)) if steps.is_empty() && !confirmed => {
                    scope = Some(match scope {
                        Some(scope) => scope.union(&set),
                        None => set,
                    });
                    continue;
                }
                Some(Ok(_)) => {
                    self.invalid(hop.span, "depth hops come first", "behind another hop")
                        .help("move it to the front: `(d1, cont, block)`");
                    sound = false;
                    continue;
                }
                Some(Err(())) => {
                    sound = false;
                    continue;
                }
                None => {}
            }
            // `seg` right behind the depths confirms that a container of the depth axis is
            // meant, and tests it.
            if scope.is_some() && steps.is_empty() && !confirmed && is_turn(hop) {
                confirmed = true;
                sound &= self.confirm(hop, &mut anchor).is_some();
                continue;
            }
            match self.hop(hop, at_end) {
                Some(tests) => steps.push((
                    Axis::Child,
                    Step::Node(NodeStep {
                        tests,
                        tail: Box::default(),
                    }),
                )),
                None => sound = false,
            }
        }
        if !sound {
            return None;
        }
        let first = match scope {
            Some(scope) => {
                anchor.push(Test::Type(TypeTest::Anchor));
                anchor.push(Test::Depth(scope));
                anchor
            }
            None => smallvec![Test::Type(TypeTest::Root)],
        };
        steps.insert(
            0,
            (
                Axis::Descendant,
                Step::Node(NodeStep {
                    tests: first,
                    tail: Box::default(),
                }),
            ),
        );
        Some(Chain {
            steps: steps.into(),
        })
    }

    /// The depths of `d1`, `d1..d3`, `depth(…)`; `None` for any other hop, `Some(Err)` for a
    /// depth hop with a mistake in it.
    fn depth_hop(&mut self, hop: &Hop<'_>) -> Option<Result<DepthSet, ()>> {
        let set = match &hop.head {
            HopHead::Depth(items) => self.depths(items, hop.span).ok_or(()),
            HopHead::Word(word) => Ok(DepthSet::one(depth_word(word)?)),
            HopHead::Range(low, high) => match (depth_word(low), depth_word(high)) {
                (Some(low), Some(high)) => {
                    let item = Spanned::new(DepthItem::Range(low, high), hop.span);
                    self.depths(&[item], hop.span).ok_or(())
                }
                _ => {
                    self.invalid(
                        hop.span,
                        "only depths have ranges",
                        "not a depth on both sides",
                    )
                    .help("write `d1..d3`");
                    Err(())
                }
            },
            HopHead::Star | HopHead::Int(_) | HopHead::Search => return None,
        };
        if let Some(part) = hop.parts.first() {
            self.invalid(
                part.span,
                "a depth hop takes nothing behind it",
                "not expected here",
            )
            .help("test the container with `seg`: `(d1, seg[role='user'])`");
            return Some(Err(()));
        }
        Some(set)
    }

    /// `seg`, `seg.sub`, `seg[…]` right behind the depths.
    fn confirm(&mut self, hop: &Hop<'_>, tests: &mut Tests) -> Option<()> {
        let HopHead::Word(word) = &hop.head else {
            return None;
        };
        let (_, sub) = split(word);
        let sub = self.hop_parts(hop, sub, tests)?;
        if sub.is_some() {
            self.class_or_type("mt", sub, tests);
        }
        Some(())
    }

    /// The tests of any other hop.
    fn hop(&mut self, hop: &Hop<'_>, at_end: bool) -> Option<Tests> {
        let mut tests = Tests::new();
        let (class, sub) = match &hop.head {
            HopHead::Star => (None, None),
            HopHead::Search => {
                self.needs(Edition::Canonical, hop.span, "`? {…}`", None)
                    .then_some(())?;
                (None, None)
            }
            HopHead::Int(written) => {
                let bare = hop.parts.is_empty();
                let plus = written.starts_with('+');
                if at_end && bare && (plus || written.starts_with('-')) {
                    let instead = written
                        .starts_with('-')
                        .then(|| format!("*[offset={written}]"));
                    self.insertion(hop.span, &format!("`{written}`"), instead);
                    return None;
                }
                if plus {
                    self.invalid(
                        hop.span,
                        format!("`{written}` is an insertion point"),
                        "not at the end",
                    )
                    .help("write the offset without a sign");
                    return None;
                }
                let offset = self.integer(written, hop.span, Kind::Number)?;
                tests.push(attr_test(Attr::Offset, Op::Eq, Literal::Int(offset)));
                (None, None)
            }
            HopHead::Word("end") if hop.parts.is_empty() => {
                if at_end {
                    self.insertion(hop.span, "`end`", None);
                } else {
                    self.invalid(hop.span, "`end` is an insertion point", "not at the end")
                        .help("write it as the last thing of the position");
                }
                return None;
            }
            HopHead::Word(word) => {
                let (head, sub) = split(word);
                match (Class::from_word(head), head.parse::<i64>()) {
                    (Some(_), _) => (Some(head), sub),
                    // `1:block`: the sub names the class.
                    (None, Ok(offset)) if sub.is_some() => {
                        tests.push(attr_test(Attr::Offset, Op::Eq, Literal::Int(offset)));
                        let (class, rest) = split(sub.unwrap_or_default());
                        (Some(self.hop_class(class, hop.span)?), rest)
                    }
                    _ => {
                        self.unknown_hop(head, hop.span);
                        return None;
                    }
                }
            }
            // Taken for a depth hop above.
            HopHead::Range(..) | HopHead::Depth(_) => return None,
        };
        let mut class = class;
        let mut sub = sub;
        // `*:block.call`: the class is the first word behind the star.
        let mut parts = hop.parts.as_slice();
        if class.is_none()
            && let [
                Spanned {
                    node: HopPart::Class(word),
                    span,
                },
                rest @ ..,
            ] = parts
        {
            let (head, kind) = split(word.strip_prefix(':').unwrap_or(word));
            class = Some(self.hop_class(head, *span)?);
            sub = kind;
            parts = rest;
        }
        if class.is_none()
            && let Some(part) = parts
                .iter()
                .find(|part| matches!(part.node, HopPart::Sub(_)))
        {
            self.invalid(part.span, "a kind needs a class", "no class before it")
                .help("write `*:block.call`, or `*[kind='call']`");
            return None;
        }
        let rest = Hop {
            head: hop.head.clone(),
            parts: parts.to_vec(),
            span: hop.span,
        };
        let sub = self.hop_parts(&rest, sub, &mut tests)?;
        if let Some(class) = class {
            self.class_or_type(class, sub, &mut tests);
        }
        Some(tests)
    }

    /// Adds the properties attached to a hop, and returns its kind.
    fn hop_parts<'s>(
        &mut self,
        hop: &Hop<'s>,
        sub: Option<&'s str>,
        tests: &mut Tests,
    ) -> Option<Option<&'s str>> {
        let mut kind = sub;
        let mut sound = true;
        for part in &hop.parts {
            match &part.node {
                HopPart::Attrs(attrs) => {
                    if attrs.form == Form::Group && hop.head == HopHead::Star {
                        self.invalid(
                            part.span,
                            "a group of properties follows a type and nothing else",
                            "use brackets here",
                        )
                        .help("write `*[role='user']`");
                        sound = false;
                        continue;
                    }
                    sound &= self.attrs(attrs, part.span, tests);
                }
                HopPart::Sub(word) | HopPart::Class(word) => {
                    let is_sub = matches!(part.node, HopPart::Sub(_)) || word.starts_with(':');
                    if kind.is_some() || !is_sub {
                        self.invalid(
                            part.span,
                            format!("unexpected `{word}`"),
                            "not expected here",
                        )
                        .help("hops are separated by commas");
                        sound = false;
                        continue;
                    }
                    kind = Some(word.strip_prefix(':').unwrap_or(word));
                }
            }
        }
        if let Some(word) = kind {
            let pseudo = word.split(':').find(|part| {
                matches!(
                    *part,
                    "first" | "last" | "pre" | "core" | "post" | "nth" | "depth"
                )
            });
            if let Some(pseudo) = pseudo {
                self.invalid(
                    hop.span,
                    format!("`:{pseudo}` is no kind, and hops take no pseudo-classes"),
                    "a kind belongs here",
                )
                .help("write a chain: `depth(1) > .cb:first`");
                sound = false;
            }
        }
        sound.then_some(kind)
    }

    fn hop_class<'s>(&mut self, word: &'s str, span: Span) -> Option<&'s str> {
        if Class::from_word(word).is_some() {
            return Some(word);
        }
        let advice = self.invalid(
            span,
            format!("`{word}` is no class"),
            "a class belongs here",
        );
        match nearest(word, ["seg", "cont", "block", "mt", "mc", "cb"]) {
            Some(class) => advice.help(format!("did you mean `{class}`?")),
            None => advice.help("the classes are `seg`, `cont` and `block`"),
        }
        None
    }

    fn unknown_hop(&mut self, word: &str, span: Span) {
        let digits = word
            .strip_prefix('d')
            .map(|word| word.trim_start_matches('-'));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if digits.is_some_and(|digits| !digits.is_empty() && is_number(digits)) {
            self.invalid(span, "the number is too large", "no turn is as deep");
            return;
        }
        let advice = self.invalid(span, format!("unknown hop `{word}`"), "no such hop");
        match nearest(word, HOPS) {
            Some(hop) => advice.help(format!("did you mean `{hop}`?")),
            None => {
                advice.help("hops are depths such as `d1`, `seg`, `cont`, `block`, `*` and offsets")
            }
        }
    }

    fn insertion(&mut self, span: Span, what: &str, instead: Option<String>) {
        let advice = self.invalid(
            span,
            format!("{what} makes the position an insertion point"),
            "nothing to select here",
        );
        match instead {
            Some(instead) => {
                advice.help(format!("write `{instead}` for the children at that offset"))
            }
            None => advice.help("only mutations take insertion points"),
        }
    }
}

/// `d1`, `d-1`.
fn depth_word(word: &str) -> Option<i64> {
    word.strip_prefix('d')?.parse().ok()
}

/// A word and what follows its first colon.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once(':') {
        Some((head, sub)) => (head, Some(sub)),
        None => (word, None),
    }
}

fn is_turn(hop: &Hop<'_>) -> bool {
    matches!(&hop.head, HopHead::Word(word) if Class::from_word(split(word).0) == Some(Class::Turn))
}
