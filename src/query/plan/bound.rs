//! Bound plans: everything execution reads, values in place.

use smallvec::SmallVec;

use super::predicate::Compare;
use super::steps::{GroupStep, PlannedGroup, RootOrSeq};
use crate::query::ir::{
    Attr, Axis, Class, Facet, InnerKind, InnerTest, NodeCondition, PickStep, RangeAnswer, RowOrder,
    TypeTest,
};

/// A plan with its values in place, still without a snapshot. Immutable and shared.
#[derive(Clone, Debug)]
pub struct Bound {
    pub chains: SmallVec<[BoundChain; 1]>,
    pub filters: Box<[BoundTest]>,
    /// The result order: [`RowOrder::Pre`] is document order, in which rows are found, and
    /// [`RowOrder::Default`] is key order.
    pub order: RowOrder,
    pub unique: bool,
    /// The rows of the final set to leave out first and to return at most; `None` for all.
    pub page: Option<(u64, u64)>,
    pub mode: RangeAnswer,
    /// The first and the last depth of the rows it reads, if it is one chain that words can run unit by unit, over
    /// turns, over `^ah` or over `^sys`.
    pub interval: Option<(i64, i64)>,
    /// Whether the matches in document order are the result: without an order, `@unique` or
    /// page.
    pub is_bare: bool,
    /// Whether one word of all rows can run every group (`BoundChain::in_word`).
    pub in_word: bool,
    /// Whether a step that keeps implicit cores picks.
    pub picks_cores: bool,
    /// Whether what is below an implicit core makes a difference: a step keeps cores, or goes to children.
    pub sees_cores: bool,
    /// Whether words can run every group unit by unit (`BoundChain::in_words`), and it is worth it.
    pub in_words: bool,
    /// The number of depths it reads beyond the first of each interval; 0 if it is one chain that
    /// requires an id, `u64::MAX` if nothing confines it.
    pub breadth: u64,
    /// Whether every group requires an id, so that all matches are in the units of those ids.
    pub requires_ids: bool,
    /// The rows next to one end that are its result, or its matches, if that is so.
    pub nearest: Option<NearestRows>,
    /// The number of conditions with selectors inside.
    pub inner: usize,
    /// Whether each of those depends on the unit of its node alone.
    pub inner_in_units: bool,
    /// The memory of its patterns in bytes; at most [`crate::query::ir::MAX_PATTERN_BYTES`].
    pub pattern_bytes: usize,
}

/// A few rows of those that a first step keeps, from one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearestRows {
    /// The end.
    pub from: NearestEnd,
    /// Rows to leave out first.
    pub skip: u64,
    /// Rows to return at most.
    pub take: u64,
    /// Whether they are what a pick keeps, before further steps, order and tail; else the result.
    pub is_pick: bool,
}

/// An end of the matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearestEnd {
    /// The first in document order.
    First,
    /// The last in document order, backwards.
    Last,
    /// The first in key order: newest first.
    Newest,
}

pub type BoundChain = PlannedGroup<BoundFilter>;

pub type BoundStep = GroupStep<BoundFilter>;

pub type BoundTest = NodeCondition<AttrCondition, BoundInner>;

pub type BoundPick = PickStep<AttrCondition, BoundInner, u64>;

/// A condition with selectors inside.
#[derive(Clone, Debug)]
pub struct BoundInner {
    /// Its number among those of the plan, from 0: those inside of it have smaller ones.
    pub number: usize,
    pub test: InnerTest<BoundChain>,
}

#[derive(Clone, Debug)]
pub struct BoundFilter {
    pub axis: Axis,
    pub tests: BoundTests,
    pub picks: Box<[BoundPick]>,
    pub key_order: bool,
    pub ambient: RootOrSeq,
    pub cores: bool,
    /// The level of every kept node, if the chain decides it.
    pub level: Option<u32>,
    /// The id that the tests require: at most one node can match.
    pub id: Option<Box<str>>,
}

/// The tests of a step. Most steps have one or two: a class and a value.
pub type BoundTests = SmallVec<[BoundTest; 2]>;

#[derive(Clone, Debug)]
pub struct AttrCondition {
    pub attr: Attr,
    pub compare: Compare,
}

impl BoundChain {
    /// The steps that keep nodes: all, if the chain is plain.
    #[inline]
    pub fn filters(&self) -> impl Iterator<Item = &BoundFilter> {
        self.steps.iter().filter_map(|step| match step {
            BoundStep::Filter(filter) => Some(filter),
            BoundStep::Zone { .. } => None,
        })
    }

    /// The first step, if its tests are answered row by row: an anchor is more than its class, and an id is found by
    /// its directory.
    pub(super) fn step_of_rows(&self) -> Option<&BoundFilter> {
        let [BoundStep::Filter(step), ..] = &*self.steps else {
            return None;
        };
        let by_rows = |test: &BoundTest| match test {
            BoundTest::Type(test) => matches!(test, TypeTest::Class(_)),
            BoundTest::Depth(_) | BoundTest::Attr(_) => true,
            BoundTest::Inner(_) => false,
        };
        (step.id.is_none() && step.tests.iter().all(by_rows)).then_some(step)
    }

    /// Whether one word of all rows can run it: without zones, conditions with selectors inside and tests after picks;
    /// every pick has groups below nodes on one level, none of which is inside another, or is of the whole tree.
    pub(super) fn in_word(&self) -> bool {
        let (mut level, mut after_ambient) = (Some(0), true);
        self.steps.iter().all(|step| {
            let BoundStep::Filter(filter) = step else {
                return false;
            };
            let is_test = |pick: &BoundPick| matches!(pick, BoundPick::Test(_));
            let is_ambient = filter.ambient != RootOrSeq::Never;
            let elsewhere = filter.key_order || filter.picks.iter().any(is_test);
            let picks = level.is_some() && !elsewhere && (!is_ambient || !after_ambient);
            (level, after_ambient) = (filter.level, is_ambient);
            (filter.picks.is_empty() || picks)
                && !filter.all_tests().any(|test| test.inner().is_some())
        })
    }

    /// Whether a step that keeps implicit cores picks.
    pub(super) fn picks_cores(&self) -> bool {
        self.filters()
            .any(|step| step.cores && !step.picks.is_empty())
    }

    /// Whether a step keeps implicit cores or, after another one, goes to children.
    pub(super) fn sees_cores(&self) -> bool {
        let mut steps = self.filters().enumerate();
        steps.any(|(at, step)| step.cores || at > 0 && step.axis == Axis::Child)
    }

    /// Whether words can run it unit by unit: no id finds it at once, and where no depth confines it, only a first
    /// `^seq` is outside units.
    pub(super) fn in_words(&self) -> bool {
        let is_seq = |step: &BoundFilter| matches!(&*step.tests, [BoundTest::Type(TypeTest::Seq)]);
        let mut steps = self.filters().enumerate();
        let inside = steps.all(|(at, step)| {
            step.ambient == RootOrSeq::Never || at == 0 && self.steps.len() > 1 && is_seq(step)
        });
        self.separable && (inside || self.scope.is_some()) && !self.names_id() && self.in_word()
    }

    pub fn names_id(&self) -> bool {
        self.filters().any(|filter| filter.id.is_some())
    }
}

impl BoundTest {
    /// Whether it is the test of the class of containers.
    pub fn is_container(&self) -> bool {
        matches!(self, Self::Type(TypeTest::Class(Class::Container)))
    }

    /// Whether it reads nodes one by one, which costs more than what posting lists and columns answer.
    pub(super) fn reads_nodes(&self) -> bool {
        match self {
            Self::Type(_) | Self::Depth(_) | Self::Inner(_) => false,
            Self::Attr(test) => matches!(
                test.attr,
                Attr::Content
                    | Attr::ContentHash
                    | Attr::Parent
                    | Attr::CreatedAtIso
                    | Attr::Facet(_)
            ),
        }
    }

    /// Whether the result for a node can change though its unit does not: depths and ages move
    /// with the snapshot.
    fn moves(&self) -> bool {
        match self {
            Self::Type(_) => false,
            Self::Depth(_) => true,
            Self::Inner(inner) => inner.tests().any(Self::moves),
            Self::Attr(test) => matches!(test.attr, Attr::Facet(Facet::Depth | Facet::Age)),
        }
    }

    fn reads_ages(&self) -> bool {
        match self {
            Self::Type(_) | Self::Depth(_) => false,
            Self::Inner(inner) => inner.tests().any(Self::reads_ages),
            Self::Attr(test) => {
                matches!(test.attr, Attr::Facet(Facet::Age | Facet::BornTurn))
            }
        }
    }
}

impl BoundInner {
    /// The tests of all steps inside.
    pub(super) fn tests(&self) -> impl Iterator<Item = &BoundTest> {
        let filters = self.test.any.iter().flat_map(BoundChain::filters);
        filters.flat_map(BoundFilter::all_tests)
    }
}

impl BoundFilter {
    /// The tests of the step, before and after its picks.
    pub fn all_tests(&self) -> impl Iterator<Item = &BoundTest> {
        self.tests
            .iter()
            .chain(self.picks.iter().filter_map(PickStep::test))
    }
}

impl Bound {
    /// The conditions with selectors inside, each after those inside of it: in the order of their numbers. With tests
    /// that hold of every node that they test.
    pub fn inner_tests(&self) -> Vec<(&BoundInner, &[BoundTest])> {
        let mut found = Vec::with_capacity(self.inner);
        let chains = self.chains.iter();
        chains.for_each(|chain| add_inner(chain, &[], &mut found));
        found
    }

    #[inline]
    pub fn has_tail(&self) -> bool {
        self.unique || self.page.is_some()
    }

    /// Whether rows come in document order, each unit can be run by itself, and no test requires
    /// an id: the result can be found unit by unit, as far as it is wanted.
    pub fn runs_in_chunks(&self) -> bool {
        let by_unit = |chain: &BoundChain| chain.separable && !chain.names_id();
        self.order == RowOrder::Pre && self.chains.iter().all(by_unit)
    }

    /// Whether the result in a unit, before `@unique` and the page, depends only on that unit,
    /// the root and `^seq`: without a depth, an age or a pick across units.
    pub fn is_unit_local(&self) -> bool {
        // A depth test moves with every commit although the unit stays. A scope is a depth test as
        // well.
        let moves = |filter: &BoundFilter| filter.all_tests().any(BoundTest::moves);
        !self.filters.iter().any(BoundTest::moves)
            && self.chains.iter().all(|chain| {
                chain.separable && chain.scope.is_none() && !chain.filters().any(moves)
            })
    }

    /// Whether it may ask in which snapshot an id occurs first.
    pub fn reads_ages(&self) -> bool {
        let filters = self.chains.iter().flat_map(BoundChain::filters);
        let mut tests = filters.flat_map(BoundFilter::all_tests);
        self.filters.iter().any(BoundTest::reads_ages) || tests.any(BoundTest::reads_ages)
    }

    /// Whether the whole result in a unit depends only on that unit, the root and `^seq`: two
    /// snapshots are then compared by the units in which they differ.
    pub fn compares_by_unit(&self) -> bool {
        !self.has_tail() && self.is_unit_local()
    }
}

// Recursion is as deep as conditions are inside each other, which is bounded.
fn add_inner<'a>(
    chain: &'a BoundChain,
    outer: &'a [BoundTest],
    found: &mut Vec<(&'a BoundInner, &'a [BoundTest])>,
) {
    let is_type = |test: &BoundTest| matches!(test, BoundTest::Type(_));
    for step in chain.filters() {
        // The tests of the same node outside of `:is` and `:not` do where the step has no class.
        let own = step.tests.iter().any(is_type);
        let tests = if own { &*step.tests } else { outer };
        for inner in step.all_tests().filter_map(BoundTest::inner) {
            let same = matches!(inner.test.kind, InnerKind::Is | InnerKind::Not);
            let outer = if same { tests } else { &[] };
            let inside = inner.test.any.iter();
            inside.for_each(|chain| add_inner(chain, outer, found));
            found.push((inner, tests));
        }
    }
}
