//! The types of the normalized form.
//!
//! A [`SelectorQuery`] is a union of [`Chain`]s of [`QueryStep`]s, with filters and controls over the final
//! set. Different spellings have one form: `^sys` and `depth(-1)` are an anchor with a depth set;
//! `:core`, `[offset=0]` and `cont(offset=0)` one attribute test; `.seg` and `.mt` one class; the
//! hops of a position child steps.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::depth::DepthSet;
use crate::query::syntax::ast;
use crate::query::syntax::words::{HAS_CALL, HAS_RESULT};
use crate::support::macros::names;

/// The tests of a step, or of the final set. Most steps have one, which is stored inline.
pub type Tests = SmallVec<[Test; 1]>;

#[derive(Clone, Debug, PartialEq)]
pub struct SelectorQuery {
    pub time: QueryTime,
    /// The groups of the union; empty means that the selector matches nothing (`none`).
    pub chains: SmallVec<[Chain; 1]>,
    /// Tests of the final set, from braces, trailing tags and brackets after a control.
    pub filters: Tests,
    /// Order, uniqueness, window and mode over the final set.
    pub controls: Controls,
}

/// The snapshot or snapshots that a selector is evaluated in (LANGUAGE §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryTime {
    Working,
    At(Address),
    /// Every committed snapshot, newest first (`@*`).
    All,
    /// A range of snapshots, both ends included, the newer end first.
    Range(RangeEnd, RangeEnd),
}

/// A single committed snapshot. See the example of [`SnapshotDiff`](crate::history::SnapshotDiff).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `@t0` is 0, `@t-3` is 3: commits back from the newest.
    Back(u64),
    /// `@cN`: the snapshot of cycle N.
    Cycle(i64),
}

/// Text that is not an [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the address of a snapshot, such as @t0, @t-2 or @c12")]
pub struct NoAddress;

impl std::str::FromStr for Address {
    type Err = NoAddress;

    /// Parses `@t0`, `@t-2`, `@c12`; the `@` is optional.
    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let text = text.strip_prefix('@').unwrap_or(text);
        if text == "t0" {
            return Ok(Self::Back(0));
        }
        if let Some(back) = text.strip_prefix("t-") {
            let digits = !back.is_empty() && back.bytes().all(|byte| byte.is_ascii_digit());
            let back = digits.then(|| back.parse().ok()).flatten();
            return back.map(Self::Back).ok_or(NoAddress);
        }
        let cycle = text.strip_prefix('c').and_then(|cycle| cycle.parse().ok());
        cycle.map(Self::Cycle).ok_or(NoAddress)
    }
}

/// One end of a range. Both ends are cycles, or neither is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RangeEnd {
    /// `@t-3` is 3.
    Back(u64),
    /// `@t-*`.
    Oldest,
    /// `@c17`.
    Cycle(i64),
}

/// One group of a union: steps from left to right, never empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chain {
    /// The steps. The axis of the first is [`Axis::Descendant`] and means "anywhere, root
    /// included".
    pub steps: Box<[(Axis, QueryStep)]>,
}

/// How the nodes of a step relate to those of the step before it: as written.
pub type Axis = ast::Axis;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueryStep {
    Node(NodeStep),
    /// A zone: one virtual container for each node of the left context (LANGUAGE §4).
    Zone(Zone),
}

names! {
    /// The sign of the offsets of a zone's members.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Zone: as_str {
        /// `:pre`, offset below 0.
        Pre = "pre",
        /// `:core`, offset 0.
        Core = "core",
        /// `:post`, offset above 0.
        Post = "post",
    }
}

/// A step that matches nodes: all of `tests`, then `tail` from left to right.
///
/// Only a step that tests for [`Class::Container`] can match the implicit core of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeStep {
    /// Tests that a node must pass, in canonical order without duplicates; empty for `*`.
    pub tests: Tests,
    /// The first pick and everything after it. Pseudo-classes before it are among `tests`.
    pub tail: Box<[PickOrTest]>,
}

/// A pick, or a test after a pick.
pub type PickOrTest = PickStep<AttrTest, InnerTest<Chain>, Operand>;

/// A pick keeps one node of each group: of the nodes below one left-context node. A test after a pick narrows
/// what was picked. `C` is a condition on an attribute, `I` one with selectors inside, `N` a number from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PickStep<C, I, N> {
    /// `:first`
    First,
    /// `:last`
    Last,
    /// `:nth(n)`
    Nth(N),
    Test(NodeCondition<C, I>),
}

/// One condition on a node.
pub type Test = NodeCondition<AttrTest, InnerTest<Chain>>;

/// One condition on a node; `C` is one on an attribute, `I` one with selectors inside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeCondition<C, I> {
    Type(TypeTest),
    Depth(DepthSet),
    /// With selectors inside. Boxed because it is large and rare.
    Inner(Box<I>),
    Attr(C),
}

/// A condition with selectors inside (LANGUAGE §13); any one of them is enough.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InnerTest<G> {
    pub kind: InnerKind,
    /// How far the depths of the two nodes may differ; of `:after` and `:before` only.
    pub within: Option<i64>,
    /// The groups inside. Those of `:is`, `:not`, `:has-result` and `:has-call` are one step without picks, a
    /// test of the node itself or of its answer. The axis of the first step counts for `:has` only. Empty for
    /// `:has-result` and `:has-call` without a test.
    pub any: Box<[G]>,
}

names! {
    /// What a condition with selectors inside says of them. Its name is written after a colon.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum InnerKind: name {
        /// A match is below the node.
        Has = "has",
        /// The node is none of them.
        Not = "not",
        /// The node is one of them.
        Is = "is",
        /// A match ends before the node begins.
        After = "after",
        /// A match begins after the node ends.
        Before = "before",
        /// The node is a call, and one of its results is one of them.
        HasResult = HAS_RESULT,
        /// The node is a result, and its call is one of them.
        HasCall = HAS_CALL,
    }
}

impl InnerKind {
    /// Whether what stands inside are tests of one node rather than chains.
    pub fn takes_tests(self) -> bool {
        matches!(self, Self::Not | Self::Is | Self::HasResult | Self::HasCall)
    }

    /// Whether it reads nodes outside of the unit of its node.
    pub fn reads_outside(self) -> bool {
        matches!(
            self,
            Self::After | Self::Before | Self::HasResult | Self::HasCall
        )
    }
}

/// A test of a node's class or region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TypeTest {
    /// `^root`
    Root,
    /// The `^seq` node itself.
    Seq,
    /// `depth(…)`: `^sys`, `^ah` and the turns directly under `^seq`. Its step always has a
    /// [`Test::Depth`] too.
    Anchor,
    /// `.mt` in a step that tests depth: any turn, nested or not, `^sys` or `^ah`.
    TurnOrAnchor,
    /// `.mt`, `.mc`, `.cb`.
    Class(Class),
}

/// The classes that a selector can name (LANGUAGE §1). Regions have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// `mt`, `seg`
    Turn,
    /// `mc`, `cont`
    Container,
    /// `cb`, `block`, and every other nodeType
    Block,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttrTest {
    pub attr: Attr,
    pub op: CompareOp,
    /// The right side. Lists occur with [`CompareOp::Eq`] and [`CompareOp::Ne`] only.
    pub operand: Operand,
}

impl AttrTest {
    /// The tag that the test wants, if it wants one.
    pub(crate) fn tag(&self) -> Option<&str> {
        match (&self.attr, self.op, &self.operand) {
            (Attr::Tags, CompareOp::Eq, Operand::Literal(Literal::Text(tag))) => Some(tag),
            _ => None,
        }
    }
}

/// A comparison (LANGUAGE §5): as written, because every sign has one meaning.
pub type CompareOp = ast::CompareOp;

/// Declares the attributes that have a name, each with its name in canonical text, its other names, and
/// how it compares.
macro_rules! attributes {
    ($($(#[$doc:meta])* $Attr:ident = $name:literal $(| $alias:literal)*: $Kind:ident,)*) => {
        /// The attribute that a test reads.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Attr {
            $($(#[$doc])* $Attr,)*
            Facet(Facet),
            Custom(Box<str>),
        }

        /// The names of headers, in every spelling.
        pub(super) const NAMES: &[&str] = &[$($name, $($alias,)*)*];

        impl Attr {
            /// The header, facet or custom attribute that a bare name means (LANGUAGE §5), with
            /// `nodeType` and `kind` as the later editions read them.
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($name $(| $alias)* => Self::$Attr,)*
                    _ => Facet::parse(name).map_or_else(|| Self::Custom(name.into()), Self::Facet),
                }
            }

            /// The name in canonical text. A custom attribute may need quotes.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Attr => $name,)*
                    Self::Facet(facet) => facet.as_str(),
                    Self::Custom(name) => name,
                }
            }

            /// How this attribute compares (LANGUAGE §5).
            pub fn kind(&self) -> AttrKind {
                match self {
                    $(Self::$Attr => AttrKind::$Kind,)*
                    Self::Facet(_) => AttrKind::Number,
                    Self::Custom(_) => AttrKind::Dynamic,
                }
            }
        }
    };
}

attributes! {
    /// `id`
    Id = "id": Text,
    /// `nodeType` as later editions read it: `head:sub` counts as `head`.
    NodeType = "nodeType" | "type": Text,
    /// `nodeType` as stored, in the `mt mc cb` vocabulary.
    StoredType = "stored_type": Text,
    /// `kind` as later editions read it: the stored kind, else the `sub` of the nodeType.
    Kind = "kind": Text,
    /// `kind` as stored.
    StoredKind = "stored_kind": Text,
    /// `role`
    Role = "role": Text,
    /// `key`
    Key = "key": Text,
    /// `created_at_iso`
    CreatedAtIso = "created_at_iso": Text,
    /// `content_hash`: the stored one, else the computed one.
    ContentHash = "content_hash": Text,
    /// `parent`, `parent_id`: the parent's id.
    Parent = "parent" | "parent_id": Text,
    /// `content`
    Content = "content": Text,
    /// `tags`, `tag`
    Tags = "tags" | "tag": Tags,
    /// `offset` (0 where absent)
    Offset = "offset": Number,
    /// `ttl`, as it reads in the snapshot
    Ttl = "ttl": Number,
    /// `priority` (0 where absent)
    Priority = "priority": Number,
    /// `cycle`
    Cycle = "cycle": Number,
    /// `created_at_ns` (0 where absent)
    CreatedAtNs = "created_at_ns": Number,
    /// `creation_index` (0 where absent)
    CreationIndex = "creation_index": Number,
    /// `cadence`, `cad`
    Cadence = "cadence" | "cad": Number,
    /// `bytes`: of the text of the content in UTF-8 (0 where absent). Computed.
    Bytes = "bytes": Number,
    /// `tokens`: a fourth of the bytes, rounded up. Computed.
    Tokens = "tokens": Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttrKind {
    /// Against numbers and null only.
    Number,
    /// As text; a number literal is compared as it was written.
    Text,
    Tags,
    /// By the type of each node's value.
    Dynamic,
}

impl QueryStep {
    pub(super) fn from_tests(tests: impl Into<Tests>) -> Self {
        Self::Node(NodeStep {
            tests: tests.into(),
            tail: Box::default(),
        })
    }

    pub fn picks(&self) -> bool {
        self.node().is_some_and(NodeStep::picks)
    }

    /// The step, if it is not a zone.
    pub fn node(&self) -> Option<&NodeStep> {
        match self {
            Self::Node(step) => Some(step),
            Self::Zone(_) => None,
        }
    }
}

impl Zone {
    /// How the offsets of its members compare with 0.
    pub fn offsets(self) -> CompareOp {
        match self {
            Self::Pre => CompareOp::Lt,
            Self::Core => CompareOp::Eq,
            Self::Post => CompareOp::Gt,
        }
    }
}

impl NodeStep {
    pub fn picks(&self) -> bool {
        self.tail.iter().any(|item| item.test().is_none())
    }

    pub fn type_test(&self) -> Option<TypeTest> {
        self.tests.iter().find_map(Test::of_type)
    }

    /// The tests of the step, before and after its picks.
    pub fn all_tests(&self) -> impl Iterator<Item = &Test> {
        self.tests
            .iter()
            .chain(self.tail.iter().filter_map(PickStep::test))
    }
}

impl Test {
    pub(super) fn new(attr: Attr, op: CompareOp, literal: Literal) -> Self {
        Self::Attr(AttrTest {
            attr,
            op,
            operand: Operand::Literal(literal),
        })
    }

    pub(super) fn of_tag(tag: &str) -> Self {
        Self::new(Attr::Tags, CompareOp::Eq, Literal::Text(tag.into()))
    }

    pub(super) fn of_inner(kind: InnerKind, any: Vec<Chain>) -> Self {
        let (within, any) = (None, any.into());
        Self::Inner(Box::new(InnerTest { kind, within, any }))
    }
}

impl<C, I> NodeCondition<C, I> {
    /// The test, if it is of the type.
    pub(super) fn of_type(&self) -> Option<TypeTest> {
        match self {
            Self::Type(test) => Some(*test),
            Self::Depth(_) | Self::Inner(_) | Self::Attr(_) => None,
        }
    }

    /// The test, if it is of an attribute.
    pub fn attr(&self) -> Option<&C> {
        match self {
            Self::Attr(test) => Some(test),
            Self::Type(_) | Self::Depth(_) | Self::Inner(_) => None,
        }
    }

    /// The set, if it is a test of the depth.
    pub fn depth(&self) -> Option<&DepthSet> {
        match self {
            Self::Depth(set) => Some(set),
            Self::Type(_) | Self::Inner(_) | Self::Attr(_) => None,
        }
    }

    /// The condition, if it has selectors inside.
    pub fn inner(&self) -> Option<&I> {
        match self {
            Self::Inner(test) => Some(test),
            Self::Type(_) | Self::Depth(_) | Self::Attr(_) => None,
        }
    }
}

impl<C, I, N> PickStep<C, I, N> {
    /// The test, if it is not a pick.
    pub fn test(&self) -> Option<&NodeCondition<C, I>> {
        match self {
            Self::Test(test) => Some(test),
            Self::First | Self::Last | Self::Nth(_) => None,
        }
    }
}

/// The tests of a group that is one step.
pub(in crate::query) fn tests_of(chain: &Chain) -> &[Test] {
    match chain.steps.first() {
        Some((_, QueryStep::Node(node))) => &node.tests,
        _ => &[],
    }
}

/// Whether the class of containers is among the tests, or among those of a list of which one must hold.
pub(in crate::query) fn names_container(tests: &[Test]) -> bool {
    tests.iter().any(|test| match test {
        Test::Type(test) => *test == TypeTest::Class(Class::Container),
        Test::Inner(inner) if inner.kind == InnerKind::Is => inner
            .any
            .iter()
            .any(|chain| names_container(tests_of(chain))),
        _ => false,
    })
}

names! {
    /// Attributes derived from the snapshot; they need an explicit time (LANGUAGE §5).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Facet: as_str {
        /// The depth, null for nodes without one.
        Depth = "depth",
        /// Levels below the root.
        Sdepth = "sdepth",
        /// The cycle in which the node first appeared.
        BornTurn = "born_turn",
        /// Snapshot cycle minus `born_turn`.
        Age = "age",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operand {
    Literal(Literal),
    /// `$name`, without the dollar sign; bound later.
    Param(Box<str>),
    /// `[a, b]`: any of them, or for tags and lists all of them. Never empty or nested.
    List(Box<[Operand]>),
}

/// A literal. An integer never equals a decimal.
#[derive(Clone, Debug)]
pub enum Literal {
    /// `null`
    Null,
    /// An exact integer.
    Int(i64),
    /// A decimal, with its spelling, which text attributes compare with.
    Decimal(f64, Box<str>),
    /// An integer that is not spelled plainly: `007`, `+5`, `-0`. Only where a node's value may be
    /// a text, which orders with the literal as written (LANGUAGE §2).
    Spelled(Box<str>),
    /// A text, unescaped; includes `true` and `false`.
    Text(Box<str>),
}

impl Literal {
    /// The text of the literal, as it was written; null has none.
    pub(crate) fn written(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Int(value) => Some(value.to_string()),
            Self::Decimal(_, text) | Self::Spelled(text) | Self::Text(text) => {
                Some(text.to_string())
            }
        }
    }
}

// By the spelling of decimals, so that equality is total: the same text is the same number.
impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Literal {}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order in which normalization sorts literals; it has no meaning besides.
impl Ord for Literal {
    fn cmp(&self, other: &Self) -> Ordering {
        fn rank(literal: &Literal) -> u8 {
            match literal {
                Literal::Null => 0,
                Literal::Int(_) => 1,
                Literal::Spelled(_) => 2,
                Literal::Decimal(..) => 3,
                Literal::Text(_) => 4,
            }
        }
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Decimal(a, x), Self::Decimal(b, y)) => a.total_cmp(b).then_with(|| x.cmp(y)),
            (Self::Spelled(a), Self::Spelled(b)) | (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Controls {
    pub order: RowOrder,
    /// Whether to keep only the first row of each key.
    pub unique: bool,
    /// The rows of a page, from `@limit` or `@first`.
    pub limit: Option<Operand>,
    /// The page, counted from 1 (`@p`); needs `limit`.
    pub page: Option<Operand>,
    pub mode: RangeAnswer,
}

/// Result order (LANGUAGE §6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowOrder {
    /// Document order, or key order if every group's last step pins the same key.
    #[default]
    Default,
    /// `@order=pre`: document order even if a key is pinned.
    Pre,
    /// `@order=post`
    Post,
    /// `@order=bfs`
    Bfs,
    /// `@order=path`
    Path,
    /// `@order=turn:desc,pre`
    TurnDesc,
    /// `@order=turn:asc,pre`
    TurnAsc,
}

/// What a range returns (LANGUAGE §7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RangeAnswer {
    /// Pairwise diffs.
    #[default]
    Pairwise,
    /// Ids that match in any snapshot of the range.
    Union,
    /// Ids whose newest version in the range matches.
    Latest,
    /// One net diff.
    Reduce,
}
