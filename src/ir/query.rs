//! The types of the normalized form.
//!
//! A [`Query`] is a union of [`Chain`]s of [`Step`]s with filters and controls over the final
//! set. Everything an edition spells in its own way is one thing here: `^sys` and `depth(-1)`
//! are an anchor with a depth set, `:core`, `[offset=0]` and `cont(offset=0)` one attribute
//! test, `.seg` and `.mt` one class, hops of a position child steps.

use smallvec::SmallVec;

use super::DepthSet;

/// The tests of a step. Most steps have one, which then stands in the step itself.
pub type Tests = SmallVec<[Test; 1]>;

/// A whole normalized selector.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// When it is asked.
    pub time: Time,
    /// The union's groups; none means the selector matches nothing (`none`).
    pub chains: SmallVec<[Chain; 1]>,
    /// Tests of the final set (braces, trailing tags, brackets behind a control).
    pub filters: Box<[Test]>,
    /// Order, uniqueness, window and mode over the final set.
    pub controls: Controls,
}

/// The point or span of time a selector is asked at (LANGUAGE §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Time {
    /// The working state.
    Working,
    /// One committed snapshot.
    At(Address),
    /// Every committed snapshot, newest first (`@*`).
    All,
    /// A span of snapshots, both ends included, in either direction.
    Range(RangeEnd, RangeEnd),
}

/// A single committed snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `@t0` is 0, `@t-3` is 3: commits back from the newest.
    Back(u64),
    /// `@cN`: the snapshot of cycle N.
    Cycle(i64),
}

/// One end of a range. Both ends of a range are of one kind; [`RangeEnd::Oldest`] goes with
/// [`RangeEnd::Back`].
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
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The steps. The first one's axis is [`Axis::Descendant`] and means "anywhere, the root
    /// included".
    pub steps: Box<[(Axis, Step)]>,
}

/// How a step hangs from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Below it, at any level (white space).
    Descendant,
    /// Directly below it (`>`).
    Child,
}

/// One step of a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Matches nodes.
    Node(NodeStep),
    /// A zone: one virtual container for each node of the left context (LANGUAGE §4).
    Zone(Zone),
}

/// The sign of the offsets a zone gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Zone {
    /// `:pre`, offset below 0.
    Pre,
    /// `:core`, offset 0.
    Core,
    /// `:post`, offset above 0.
    Post,
}

/// A step that matches nodes: all of `tests`, then `tail` from left to right.
///
/// `tests` is in canonical order without duplicates; the empty list is `*`. The implicit core
/// of a turn can be matched only by a step with a [`TypeTest::Class`]`(`[`Class::Container`]`)`
/// test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeStep {
    /// What a node must satisfy, in any order.
    pub tests: Tests,
    /// Picks, and what was written behind the first pick. Starts with a [`Tail::Pick`] when it
    /// is not empty: whatever stands before the first pick is one of `tests`.
    pub tail: Box<[Tail]>,
}

/// What comes after a step's tests, applied left to right.
#[derive(Clone, Debug, PartialEq)]
pub enum Tail {
    /// Keeps one node of each group.
    Pick(Pick),
    /// A pseudo-class behind a pick, which narrows what was picked.
    Test(Test),
}

/// Picks one node of each group: the nodes of a step that hang from one left-context node.
#[derive(Clone, Debug, PartialEq)]
pub enum Pick {
    /// `:first`
    First,
    /// `:last`
    Last,
    /// `:nth(n)`, 1-based; the operand is an integer of at least 1 or a parameter.
    Nth(Operand),
}

/// One condition on a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// On what the node is.
    Type(TypeTest),
    /// Its depth is in the set.
    Depth(DepthSet),
    /// On one attribute.
    Attr(AttrTest),
}

/// What a node is, by its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TypeTest {
    /// `^root`
    Root,
    /// The `^seq` node itself.
    Seq,
    /// `depth(…)`: `^sys`, `^ah` and the turns directly under `^seq`. Always stands beside a
    /// [`Test::Depth`].
    Anchor,
    /// `.mt` in a step that tests depth: a turn of any nesting, or `^sys` or `^ah`.
    TurnOrAnchor,
    /// `.mt`, `.mc`, `.cb`.
    Class(Class),
}

/// The three canonical classes a selector can name (LANGUAGE §1). Regions have none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// `mt`, `seg`
    Turn,
    /// `mc`, `cont`
    Container,
    /// `cb`, `block`, and every other nodeType
    Block,
}

/// A comparison of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AttrTest {
    /// The left side.
    pub attr: Attr,
    /// The comparison.
    pub op: Op,
    /// The right side. A list goes with [`Op::Eq`] and [`Op::Ne`] only and is never empty.
    pub operand: Operand,
}

/// The comparisons (LANGUAGE §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// `=`
    Eq,
    /// `!=`, the exact complement of `=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `~`, a regular expression found in the text; its operand is a text or a parameter.
    Matches,
}

/// What an attribute test reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attr {
    /// `id`
    Id,
    /// `nodeType` as the later editions read it: `head:sub` counts as `head`.
    NodeType,
    /// `nodeType` as stored, in the `mt mc cb` vocabulary.
    StoredType,
    /// `kind` as the later editions read it: a stored kind, else the `sub` of the nodeType.
    Kind,
    /// `kind` as stored.
    StoredKind,
    /// `role`
    Role,
    /// `key`
    Key,
    /// `created_at_iso`
    CreatedAtIso,
    /// `content_hash`: the stored one, else the computed one.
    ContentHash,
    /// `parent`, `parent_id`: the parent's id.
    Parent,
    /// `content`
    Content,
    /// `tags`, `tag`
    Tags,
    /// `offset` (0 where absent)
    Offset,
    /// `ttl`, as it reads in the snapshot
    Ttl,
    /// `priority` (0 where absent)
    Priority,
    /// `cycle`
    Cycle,
    /// `created_at_ns` (0 where absent)
    CreatedAtNs,
    /// `creation_index` (0 where absent)
    CreationIndex,
    /// `cadence`, `cad`
    Cadence,
    /// A derived facet.
    Facet(Facet),
    /// Any other name.
    Custom(Box<str>),
}

/// How an attribute compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Against numbers and null only.
    Number,
    /// As text; a number literal is compared as it was written.
    Text,
    /// A list of texts.
    Tags,
    /// By the value each node holds.
    Dynamic,
}

impl Attr {
    /// How this attribute compares (LANGUAGE §5).
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Id
            | Self::NodeType
            | Self::StoredType
            | Self::Kind
            | Self::StoredKind
            | Self::Role
            | Self::Key
            | Self::CreatedAtIso
            | Self::ContentHash
            | Self::Parent
            | Self::Content => Kind::Text,
            Self::Tags => Kind::Tags,
            Self::Offset
            | Self::Ttl
            | Self::Priority
            | Self::Cycle
            | Self::CreatedAtNs
            | Self::CreationIndex
            | Self::Cadence
            | Self::Facet(_) => Kind::Number,
            Self::Custom(_) => Kind::Dynamic,
        }
    }
}

/// Attributes worked out from the snapshot; they need an explicit time (LANGUAGE §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Facet {
    /// The depth, null where there is none.
    Depth,
    /// Levels below the root.
    Sdepth,
    /// The cycle the node was born in.
    BornTurn,
    /// Snapshot cycle minus `born_turn`.
    Age,
}

/// The right side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A literal.
    Literal(Literal),
    /// `$name`, bound later. Without the dollar sign.
    Param(Box<str>),
    /// `[a, b]`: one of them, or for tags and lists all of them. Never empty, not nested.
    List(Box<[Operand]>),
}

/// A literal value. Equal when kind and value are equal; integers and decimals differ.
#[derive(Clone, Debug)]
pub enum Literal {
    /// `null`
    Null,
    /// An exact integer.
    Int(i64),
    /// A decimal, with the text it was written as (a text attribute compares with that).
    Decimal(f64, Box<str>),
    /// A text, unescaped. `true` and `false` are texts.
    Text(Box<str>),
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Decimal(_, a), Self::Decimal(_, b)) | (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

/// What happens to the final set, in this order: `order`, `unique`, window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Controls {
    /// The row order.
    pub order: Order,
    /// Keep the first row of each key.
    pub unique: bool,
    /// Rows a page, from `@limit` or `@first`.
    pub limit: Option<Operand>,
    /// The page, from 1 (`@p`); only beside `limit`.
    pub page: Option<Operand>,
    /// How a range answers.
    pub mode: Mode,
}

/// Result order (LANGUAGE §6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Document order, or key order where every group's last step pins the same key.
    #[default]
    Default,
    /// `@order=pre`: document order even where key order would hold.
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
pub enum Mode {
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
