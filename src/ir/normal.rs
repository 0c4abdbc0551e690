//! Normalization: a short list of named passes that give equal meanings one form (LANGUAGE §9).
//!
//! The passes run in order, each over the whole draft:
//!
//! 1. `types` merges depth sets and settles what kinds of nodes a step can be.
//! 2. `order` puts tests and list values into one order and drops repetitions. Needs the types,
//!    which may have added or removed tests.
//! 3. `contradictions` drops groups that no node can match. Looks at neighbours in the order.
//! 4. `groups` sorts the groups of a union and merges equal ones, and empties what is left of a
//!    selector that matches nothing.
//!
//! Running them again changes nothing; unit tests check that, and the round trip of canonical text
//! holds it for random selectors.

use crate::diag::Warning;
use crate::syntax::Span;

use smallvec::SmallVec;

use super::lower::Observer;
use super::{
    Attr, AttrTest, Chain, Class, Controls, DepthSet, Literal, Op, Operand, Query, Step, Tail,
    Test, Tests, Time, TypeTest, contradiction, order,
};

/// A query on its way through the passes, with the place of each group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draft {
    pub(super) time: Time,
    pub(super) chains: SmallVec<[DraftChain; 1]>,
    pub(super) filters: Tests,
    pub(super) controls: Controls,
}

/// A group and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DraftChain {
    pub(super) chain: Chain,
    pub(super) span: Span,
}

impl Draft {
    fn query(self) -> Query {
        Query {
            time: self.time,
            chains: self.chains.into_iter().map(|draft| draft.chain).collect(),
            filters: self.filters.into_boxed_slice(),
            controls: self.controls,
        }
    }
}

type Pass = fn(&mut Draft, &mut Vec<Warning>);

/// The passes by name, in their order; see the module for why it is that order.
const PASSES: [(&str, Pass); 4] = [
    ("types", types),
    ("order", sort_tests),
    ("contradictions", contradictions),
    ("groups", groups),
];

/// Runs all passes. `observer` sees the query before and after each of them.
pub(super) fn normalize(
    mut draft: Draft,
    warnings: &mut Vec<Warning>,
    mut observer: Option<Observer<'_>>,
) -> Query {
    if let Some(observer) = &mut observer {
        observer("lower", &draft.clone().query());
    }
    for (name, pass) in PASSES {
        pass(&mut draft, warnings);
        if let Some(observer) = &mut observer {
            observer(name, &draft.clone().query());
        }
    }
    #[cfg(test)]
    {
        let mut again = draft.clone();
        for (name, pass) in PASSES {
            pass(&mut again, &mut Vec::new());
            assert_eq!(again, draft, "pass `{name}` is not idempotent");
        }
    }
    draft.query()
}

/// Where a list of tests stands.
enum Site<'a> {
    /// In a step, before this tail.
    Step(&'a [Tail]),
    /// Over the final set.
    Filters,
}

/// Every test list of the draft: those of the steps, then the filters.
fn each_tests(draft: &mut Draft, mut change: impl FnMut(&mut Tests, Site<'_>)) {
    for DraftChain { chain, .. } in &mut draft.chains {
        for (_, step) in &mut chain.steps {
            if let Step::Node(node) = step {
                change(&mut node.tests, Site::Step(&node.tail));
            }
        }
    }
    change(&mut draft.filters, Site::Filters);
}

// ---- types ---------------------------------------------------------------------------------

fn types(draft: &mut Draft, _: &mut Vec<Warning>) {
    each_tests(draft, |tests, site| {
        if matches!(site, Site::Filters) {
            return;
        }
        for test in tests.iter_mut() {
            // A list of one is its value, which may be the next line's.
            if let Test::Attr(test) = test {
                sort_list(test);
            }
            // The node is the same, and this is how canonical text spells it.
            if let Test::Attr(AttrTest {
                attr: Attr::StoredType,
                op: Op::Eq,
                operand: Operand::Literal(Literal::Text(text)),
            }) = test
                && &**text == "^seq"
            {
                *test = Test::Type(TypeTest::Seq);
            }
        }
        let settled = |test: &&Test| matches!(test, Test::Type(_) | Test::Depth(_));
        if tests.iter().filter(settled).count() < 2 {
            return;
        }
        // Two spellings of one type are one test.
        let seq = Test::Type(TypeTest::Seq);
        let mut seen = false;
        tests.retain(|test| *test != seq || !std::mem::replace(&mut seen, true));
        merge_depths(tests);
        settle_types(tests);
    });
    for DraftChain { chain, .. } in &mut draft.chains {
        for (_, step) in &mut chain.steps {
            if let Step::Node(node) = step
                && node.tail.len() > 1
            {
                dedup_tail(&mut node.tail);
            }
        }
    }
}

/// One depth set at most, the intersection of all.
fn merge_depths(tests: &mut Tests) {
    let mut merged: Option<DepthSet> = None;
    let mut count = 0;
    for test in tests.iter() {
        if let Test::Depth(set) = test {
            count += 1;
            merged = Some(match merged {
                Some(merged) => merged.intersection(set),
                None if count > 1 => return,
                None => set.clone(),
            });
        }
    }
    if count > 1
        && let Some(merged) = merged
    {
        tests.retain(|test| !matches!(test, Test::Depth(_)));
        tests.push(Test::Depth(merged));
    }
}

/// Turns and anchors overlap in the turns directly under `^seq`; write each overlap one way.
fn settle_types(tests: &mut Tests) {
    let has = |tests: &[Test], wanted: TypeTest| tests.contains(&Test::Type(wanted));
    let turn = TypeTest::Class(Class::Turn);
    let turns = DepthSet::range(1, i64::MAX);
    if has(tests, TypeTest::Anchor) {
        // An anchor that is a turn has a depth of at least 1, and the reverse.
        if has(tests, turn) {
            for test in tests.iter_mut() {
                if let Test::Depth(set) = test {
                    *set = set.intersection(&turns);
                }
            }
        }
        tests.retain(|test| {
            *test != Test::Type(turn) && *test != Test::Type(TypeTest::TurnOrAnchor)
        });
    } else if has(tests, TypeTest::TurnOrAnchor) {
        let only_turns = tests.iter().any(|test| match test {
            Test::Depth(set) => set.ranges().first().is_some_and(|range| range.0 >= 1),
            Test::Type(_) | Test::Attr(_) => false,
        });
        if only_turns {
            for test in tests.iter_mut() {
                if *test == Test::Type(TypeTest::TurnOrAnchor) {
                    *test = Test::Type(turn);
                }
            }
        } else if has(tests, turn) {
            tests.retain(|test| *test != Test::Type(TypeTest::TurnOrAnchor));
        }
    }
}

/// `:first:first` is `:first`, and so on: each pick leaves one node of a group, and picking
/// from one node by `:first` or `:last` changes nothing.
fn dedup_tail(tail: &mut Box<[Tail]>) {
    use super::Pick::{First, Last};
    let mut kept: Vec<Tail> = Vec::with_capacity(tail.len());
    for item in std::mem::take(tail).into_vec() {
        let idle = matches!(
            (&item, kept.last()),
            (Tail::Pick(First | Last), Some(Tail::Pick(_)))
        ) || matches!(item, Tail::Test(_)) && kept.last() == Some(&item);
        if !idle {
            kept.push(item);
        }
    }
    *tail = kept.into();
}

// ---- order ---------------------------------------------------------------------------------

fn sort_tests(draft: &mut Draft, _: &mut Vec<Warning>) {
    each_tests(draft, |tests, site| {
        for test in tests.iter_mut() {
            if let Test::Attr(test) = test {
                sort_list(test);
            }
        }
        split_tags(tests);
        drop_always_true(tests, &site);
        if !tests.is_sorted_by(|a, b| order::tests(a, b).is_lt()) {
            tests.sort_by(order::tests);
            tests.dedup();
        }
    });
}

/// Values in order, each once; a list of one value is that value (LANGUAGE §5).
fn sort_list(test: &mut AttrTest) {
    let Operand::List(list) = &mut test.operand else {
        return;
    };
    let mut values = std::mem::take(list).into_vec();
    values.sort_by(order::operands);
    values.dedup();
    test.operand = match <[Operand; 1]>::try_from(values) {
        Ok([only]) => only,
        Err(values) => Operand::List(values.into()),
    };
}

/// `tags=[a,b]` needs both, as `+a+b` does.
fn split_tags(tests: &mut Tests) {
    let is_list = |test: &Test| {
        matches!(
            test,
            Test::Attr(AttrTest {
                attr: Attr::Tags,
                op: Op::Eq,
                operand: Operand::List(_),
            })
        )
    };
    if !tests.iter().any(is_list) {
        return;
    }
    let mut split = Tests::with_capacity(tests.len() + 1);
    for test in tests.drain(..) {
        match test {
            Test::Attr(AttrTest {
                attr: Attr::Tags,
                op: Op::Eq,
                operand: Operand::List(values),
            }) => split.extend(values.into_iter().map(|operand| {
                Test::Attr(AttrTest {
                    attr: Attr::Tags,
                    op: Op::Eq,
                    operand,
                })
            })),
            test => split.push(test),
        }
    }
    *tests = split;
}

/// Drops tests that every node passes. A depth needs something beside it, or it would read as
/// `depth(…)`, so there the last one stays.
fn drop_always_true(tests: &mut Tests, site: &Site<'_>) {
    // An implicit core has no offset of its own nor any other header that reads as 0, so where one
    // may match, the test stays.
    if !tests.iter().any(always_true) || contradiction::matches_cores(tests) {
        return;
    }
    let is_depth = |test: &Test| matches!(test, Test::Depth(_));
    let depth = tests.iter().any(is_depth)
        || match site {
            Site::Filters => false,
            Site::Step(tail) => tail
                .iter()
                .any(|item| matches!(item, Tail::Test(test) if is_depth(test))),
        };
    let other = tests
        .iter()
        .any(|test| !is_depth(test) && !always_true(test));
    let mut spare = depth && !other;
    tests.retain(|test| !always_true(test) || std::mem::take(&mut spare));
}

/// `[offset]`, where an absent value is 0.
fn always_true(test: &Test) -> bool {
    match test {
        Test::Attr(test) => {
            test.op == Op::Ne
                && test.attr.is_never_null()
                && test.operand == Operand::Literal(Literal::Null)
        }
        Test::Type(_) | Test::Depth(_) => false,
    }
}

// ---- contradictions ------------------------------------------------------------------------

fn contradictions(draft: &mut Draft, warnings: &mut Vec<Warning>) {
    let several = draft.chains.len() > 1;
    draft.chains.retain(|draft| {
        let Some(why) = contradiction::of_chain(&draft.chain) else {
            return true;
        };
        let what = if several {
            "this group"
        } else {
            "the selector"
        };
        warnings.push(
            Warning::new(format!("{what} matches nothing: {why}")).at(draft.span, "never matches"),
        );
        false
    });
    if !draft.chains.is_empty()
        && let Some(why) = contradiction::of_tests(&draft.filters)
    {
        warnings.push(Warning::new(format!("the selector matches nothing: {why}")));
        draft.chains.clear();
    }
}

// ---- groups --------------------------------------------------------------------------------

fn groups(draft: &mut Draft, _: &mut Vec<Warning>) {
    if draft.chains.len() > 1 {
        draft
            .chains
            .sort_by(|a, b| order::chains(&a.chain, &b.chain));
        draft.chains.dedup_by(|a, b| a.chain == b.chain);
    }
    if draft.chains.is_empty() {
        draft.filters.clear();
        // How a range answers shows even where nothing matches; the order of nothing does not.
        draft.controls = Controls {
            mode: draft.controls.mode,
            ..Controls::default()
        };
    }
}
