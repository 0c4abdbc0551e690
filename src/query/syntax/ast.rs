//! The syntax tree: the selector as written, with spans.
//!
//! One tree serves all three editions. It can represent more than the language allows (unknown
//! roots and pseudo-classes, empty lists, reversed depth ranges), so that lowering can report
//! mistakes of meaning. Trees compare by content, not by span.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::span::{Span, Spanned};

#[derive(Clone, Debug, PartialEq)]
pub struct Selector<'s> {
    /// The time; `None` means the default of the edition.
    pub time: Option<Spanned<TimeSyntax>>,
    /// What it matches.
    pub body: SelectorBody<'s>,
    /// The filters and controls over the final set, in the order written.
    pub filters: Vec<Filter<'s>>,
}

/// `@t0`, `@t-3..@t0`, `@history`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeSyntax {
    Point(TimePoint),
    /// Two ends, as written.
    Range(Box<(Spanned<TimePoint>, Spanned<TimePoint>)>),
    /// `@history`
    History,
}

/// One address or one end of a range, as written. Lowering checks which are valid where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePoint {
    /// `@t0` is 0, `@t-3` is 3.
    Back(u64),
    /// `@t3`, which is never valid: no snapshot is newer than `@t0`.
    Ahead(u64),
    /// `@t-*`
    Oldest,
    /// `@c17`
    Cycle(i64),
    /// `@*`
    All,
    /// `@t*` or `@c*`
    Wild(char),
}

/// What a selector matches, before filters. The rarer variants are boxed, because every value
/// on the parser's stack is as large as the largest.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectorBody<'s> {
    Empty,
    /// `none`
    Nothing(Span),
    /// `group , group …`
    Union(UnionSyntax<'s>),
    /// `(hop, hop, …)`
    Position(Box<PositionSyntax<'s>>),
    /// `{…}`, `?? {…}`, `(…) ?? {…}`, `within(…) ?? {…}`, `(…) ? {…}`
    Search(Box<SearchSyntax<'s>>),
}

/// The groups of a union, at least one; most selectors have one.
pub type UnionSyntax<'s> = SmallVec<[GroupSyntax<'s>; 1]>;

/// One member of a union: steps joined by combinators, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSyntax<'s> {
    /// The steps, each with the axis before it; that of the first is [`Axis::Descendant`].
    pub steps: Vec<(Axis, StepSyntax<'s>)>,
}

/// How the nodes of a step relate to those of the step before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// Descendants (white space).
    Descendant,
    /// Children (`>`).
    Child,
}

/// A run of parts without white space, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSyntax<'s> {
    /// The parts, in the order written. Most steps have one or two.
    pub parts: SmallVec<[Spanned<StepPart<'s>>; 2]>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StepPart<'s> {
    /// `^seq`, without the caret.
    Root(&'s str),
    /// `*`
    Star,
    /// `.cb:summary`, without the dot.
    Type(&'s str),
    /// `#word`
    Key(WordOrParam<'s>),
    /// `[…]`, or `(…)` directly after a type.
    Attrs(Attrs<'s>),
    /// `+tag`
    Tag(Cow<'s, str>),
    /// `depth(…)`
    Anchor(Vec<Spanned<DepthItem>>),
    /// `:first`, `:core` or any other word, without the colon.
    Pseudo(&'s str),
    /// `:depth(…)`
    Depth(Vec<Spanned<DepthItem>>),
    /// `:nth(…)`
    Nth(Spanned<Nth<'s>>),
    /// `:has(…)`
    Condition(ConditionSyntax<'s>),
}

/// A pseudo-class with selectors inside.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionSyntax<'s> {
    /// The name, without the colon.
    pub name: &'s str,
    /// The selectors in the parentheses. Lowering refuses an empty list.
    pub list: Vec<InnerSyntax<'s>>,
}

/// One member of the list in a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum InnerSyntax<'s> {
    /// A selector; the axis is [`Axis::Child`] where it starts with `>`.
    Group(Axis, GroupSyntax<'s>),
    /// `within=N`; the text of `N`.
    Within(Spanned<&'s str>),
}

/// The number of `:nth(…)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth<'s> {
    /// As written. Lowering checks that it is at least 1.
    Number(i64),
    /// `$name`, without the dollar sign.
    Param(&'s str),
}

/// A word that may be a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordOrParam<'s> {
    /// The word, unescaped.
    Text(Cow<'s, str>),
    /// `$name`, without the dollar sign.
    Param(&'s str),
}

/// A list of properties in one kind of bracket.
#[derive(Clone, Debug, PartialEq)]
pub struct Attrs<'s> {
    pub form: Brackets,
    /// The properties. Lowering refuses an empty list.
    pub props: Vec<Prop<'s>>,
}

/// The brackets around properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brackets {
    /// `[…]`
    Bracket,
    /// `(…)`
    Group,
    /// `{…}`
    Brace,
}

/// One property: a comparison, or a name alone, which means that the attribute is present.
#[derive(Clone, Debug, PartialEq)]
pub struct Prop<'s> {
    pub name: Spanned<AttrName<'s>>,
    pub test: Option<(Spanned<CompareOp>, Spanned<LiteralSyntax<'s>>)>,
}

impl Prop<'_> {
    pub fn span(&self) -> Span {
        match &self.test {
            Some((_, value)) => self.name.span.to(value.span),
            None => self.name.span,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttrName<'s> {
    /// The name, unescaped.
    pub text: Cow<'s, str>,
    /// Whether it was quoted. A quoted name is never an alias or sugar.
    pub quoted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompareOp {
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
    /// `~`, a search for a regular expression; its operand is a text or a parameter
    Matches,
}

impl CompareOp {
    /// Whether it is `=` or `!=`, which alone compare with null and with lists.
    pub fn is_equality(self) -> bool {
        matches!(self, Self::Eq | Self::Ne)
    }
}

/// A literal as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralSyntax<'s> {
    /// `[+-]?digits`; may exceed i64.
    Int(&'s str),
    /// `[+-]?digits.digits`
    Decimal(&'s str),
    /// A bare word, including `null` and `None`.
    Word(&'s str),
    /// A quoted text, unescaped.
    Text(Cow<'s, str>),
    /// `$name`, without the dollar sign.
    Param(&'s str),
    /// `[a, b]`, never nested.
    List(Vec<Spanned<LiteralSyntax<'s>>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DepthItem {
    /// `2`
    One(i64),
    /// `1-3`, `1..3`; may be reversed.
    Range(i64, i64),
    /// `<0`, `>=2`; never [`CompareOp::Matches`].
    Compare(CompareOp, i64),
    /// `{1,2}`; may be empty.
    Set(Vec<i64>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Filter<'s> {
    /// `{…}` or `[…]`
    Attrs(Spanned<Attrs<'s>>),
    /// `+tag`
    Tag(Spanned<Cow<'s, str>>),
    /// `@limit=5`
    Control(Control<'s>),
}

/// `@name` or `@name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control<'s> {
    /// The name, without the at sign.
    pub name: Spanned<&'s str>,
    /// The text after the equals sign, as written.
    pub value: Option<Spanned<&'s str>>,
}

impl Control<'_> {
    pub fn span(&self) -> Span {
        match &self.value {
            Some(value) => self.name.span.to(value.span),
            None => self.name.span,
        }
    }
}

/// A position: hops from the root's children down.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionSyntax<'s> {
    /// The hops, in order. Lowering refuses an empty list.
    pub hops: Vec<Hop<'s>>,
    /// The trailing comma, which makes the position an insertion point.
    pub trailing_comma: Option<Span>,
    /// The whole position, with its parentheses.
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hop<'s> {
    /// The child that the hop names.
    pub head: HopHead<'s>,
    /// The properties and kinds attached to it.
    pub parts: Vec<Spanned<HopPart<'s>>>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HopHead<'s> {
    /// `d1`, `seg`, `block:call`, `1:block`, `end`. Lowering tells them apart.
    Word(&'s str),
    /// `*`
    Star,
    /// `0`, `-1`, `+1`
    Int(&'s str),
    /// `d1..d3`
    Range(&'s str, &'s str),
    /// `depth(…)`
    Depth(Vec<Spanned<DepthItem>>),
    /// `?`; its braces are one of the parts
    Search,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HopPart<'s> {
    /// `.call`, without the dot.
    Sub(&'s str),
    /// `:block`, without the colon.
    Class(&'s str),
    /// `[…]`, `{…}`, `(…)`
    Attrs(Attrs<'s>),
}

/// The short form of a node that a mutation makes (RUNTIME §3): `block:text {key='hero'} +new 'Hi'`.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortNode<'s> {
    /// The nodeType, with the kind after its first colon.
    pub head: Spanned<&'s str>,
    /// Properties and tags, in the order written; never a control.
    pub parts: Vec<Filter<'s>>,
    /// The content, unescaped.
    pub content: Option<Spanned<Cow<'s, str>>>,
}

/// A search for properties.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSyntax<'s> {
    /// The nodes to search below; `None` searches the whole tree, root included.
    pub scope: Option<PositionSyntax<'s>>,
    pub kind: SearchKind,
    /// The span of the sign or of `within`; empty for leading braces.
    pub sign: Span,
    pub attrs: Spanned<Attrs<'s>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchKind {
    /// `{…}` at the start.
    Leading,
    /// `??`, at any level.
    Deep,
    /// `within(…) ??`, at any level.
    Within,
    /// `?`, direct children only.
    Shallow,
}
