//! The reference interpreter's model of a selector: its parts as written, without meaning.
//!
//! It prints to selector text (`text.rs`) and is evaluated by walking (`eval.rs`). It knows
//! nothing of the engine's syntax tree or normalized form.

/// The editions of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edition {
    V01,
    Depth,
    Canonical,
}

/// A whole selector.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sel {
    pub(crate) time: Time,
    pub(crate) body: Body,
    /// Tests of the final set: braces, trailing tags, brackets after them. `canonical` only.
    pub(crate) filters: Vec<Filter>,
    pub(crate) controls: Controls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Omitted,
    /// `@t0` is 0, `@t-3` is 3.
    Back(u64),
    Cycle(i64),
    All,
    /// `@t-a..@t-b`; `None` is `@t-*`.
    BackRange(Option<u64>, Option<u64>),
    CycleRange(i64, i64),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// `group, group …`
    Union(Vec<Chain>),
    /// `(hop, hop, …)`, optionally followed by a search.
    Position(Vec<Hop>, Option<Search>),
    /// A leading search of everything: `?? {…}`, `{…}`, `#key`, `+tag …`.
    Search(Vec<Prop>),
}

/// A search after a position: among the descendants of its nodes, or among their children.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    pub(crate) axis: Axis,
    pub(crate) props: Vec<Prop>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chain {
    pub(crate) steps: Vec<(Axis, Step)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Descendant,
    Child,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Node(NodeStep),
    /// A step that is only `:pre`, `:core` or `:post`.
    Zone(Sign),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Pre,
    Core,
    Post,
}

impl Sign {
    pub(crate) fn holds(self, offset: i64) -> bool {
        match self {
            Self::Pre => offset < 0,
            Self::Core => offset == 0,
            Self::Post => offset > 0,
        }
    }
}

/// A run of parts and pseudo-classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeStep {
    pub(crate) parts: Vec<Part>,
    pub(crate) pseudos: Vec<Pseudo>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Star,
    Root(Region),
    /// `depth(…)`
    Anchor(Depths),
    /// `.head` or `.head:sub`
    Type(String, Option<String>),
    /// `#word`
    Hash(String),
    Attr(Prop),
    Tag(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    Root,
    Sys,
    Seq,
    Head,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pseudo {
    Offset(Sign),
    Depth(Depths),
    First,
    Last,
    Nth(usize),
    Condition(Condition),
}

/// A condition with selectors inside (LANGUAGE §13).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) kind: Kind,
    pub(crate) within: Option<i64>,
    /// What stands inside, each with the axis before its first step.
    pub(crate) list: Vec<(Axis, Chain)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Has,
    Not,
    Is,
    After,
    Before,
    HasResult,
    HasCall,
}

impl Pseudo {
    pub(crate) fn is_pick(&self) -> bool {
        matches!(self, Self::First | Self::Last | Self::Nth(_))
    }
}

/// A set of depths: inclusive ranges, `None` for an open end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Depths(pub(crate) Vec<(Option<i64>, Option<i64>)>);

impl Depths {
    pub(crate) fn one(depth: i64) -> Self {
        Self(vec![(Some(depth), Some(depth))])
    }

    pub(crate) fn contains(&self, depth: i64) -> bool {
        self.0.iter().any(|(low, high)| {
            low.is_none_or(|low| low <= depth) && high.is_none_or(|high| depth <= high)
        })
    }
}

/// `[name op value]`; without a comparison `[name]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prop {
    pub(crate) name: String,
    /// Whether the name is quoted: the header of exactly that name, else the custom attribute.
    pub(crate) exact: bool,
    pub(crate) test: Option<(Op, Value)>,
}

impl Prop {
    pub(crate) fn new(name: &str, op: Op, value: Value) -> Self {
        Self {
            name: name.to_owned(),
            exact: false,
            test: Some((op, value)),
        }
    }

    /// `[name]`
    pub(crate) fn present(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            exact: false,
            test: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Matches,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    /// A number as written: `-3`, `2.50`.
    Num(String),
    Text(String),
    List(Vec<Value>),
}

impl Value {
    pub(crate) fn text(value: &str) -> Self {
        Self::Text(value.to_owned())
    }

    pub(crate) fn int(value: i64) -> Self {
        Self::Num(value.to_string())
    }
}

/// One hop of a position (LANGUAGE §7).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Hop {
    /// `dN`, `depth(…)`, `dA..dB`
    Depth(Depths),
    /// `seg`, `cont`, `block` with a kind and properties.
    Class(String, Option<String>, Vec<Prop>),
    /// `*` or `N`, optionally with the class the child must have.
    Offset(Option<i64>, Option<String>, Vec<Prop>),
    /// `?{…}`
    Props(Vec<Prop>),
}

/// A test of the final set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    Braces(Vec<Prop>),
    Brackets(Vec<Prop>),
    Tag(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Controls {
    pub(crate) order: Option<Order>,
    pub(crate) unique: bool,
    pub(crate) limit: Option<u64>,
    pub(crate) page: Option<u64>,
    /// What a range answers with; pairwise diffs where there is none.
    pub(crate) mode: Option<Mode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Union,
    Latest,
    Reduce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Pre,
    Post,
    Bfs,
    Path,
    TurnDesc,
    TurnAsc,
}
