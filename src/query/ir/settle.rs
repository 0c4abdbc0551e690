//! The normal form of one step but for its conditions: what the passes `types` and `order` do.

use super::contradiction;
use super::depth::DepthSet;
use super::query::{
    Attr, AttrTest, Class, CompareOp, Literal, NodeStep, Operand, PickOrTest, Test, Tests, TypeTest,
};

/// The pass `types` of one step.
pub(super) fn settle_step(node: &mut NodeStep) {
    settle_tests(&mut node.tests);
    if node.tail.len() > 1 {
        settle_tail(&mut node.tail);
    }
}

fn settle_tests(tests: &mut Tests) {
    for test in tests.iter_mut() {
        // A list of one value becomes that value, which the next check may match.
        if let Test::Attr(test) = test {
            sort_list(test);
        }
        // Canonical text spells a sole `^seq` node like this.
        if let Test::Attr(AttrTest {
            attr: Attr::StoredType,
            op: CompareOp::Eq,
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
    // Both spellings of `^seq` may be in one step.
    let seq = Test::Type(TypeTest::Seq);
    let mut seen = false;
    tests.retain(|test| *test != seq || !std::mem::replace(&mut seen, true));
    merge_depths(tests);
    settle_types(tests);
}

fn merge_depths(tests: &mut Tests) {
    let mut sets = tests.iter().filter_map(Test::depth);
    let (Some(first), Some(second)) = (sets.next(), sets.next()) else {
        return;
    };
    let merged = first.intersection(second);
    let merged = sets.fold(merged, |merged, set| merged.intersection(set));
    tests.retain(|test| test.depth().is_none());
    tests.push(Test::Depth(merged));
}

/// Gives each overlap of turns and anchors, the turns directly under `^seq`, one form.
fn settle_types(tests: &mut Tests) {
    let has = |tests: &[Test], wanted: TypeTest| tests.contains(&Test::Type(wanted));
    let turn = TypeTest::Class(Class::Turn);
    let turns = DepthSet::range(1, i64::MAX);
    if has(tests, TypeTest::Anchor) {
        // An anchor is a turn exactly if its depth is at least 1.
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
        let mut sets = tests.iter().filter_map(Test::depth);
        let only_turns = sets.any(|set| set.ranges().first().is_some_and(|range| range.0 >= 1));
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

/// Sorts the tests between two picks, which hold in any order, and drops repeated ones, as well as `:first` and
/// `:last` directly after a pick, which leaves one node a group.
fn settle_tail(tail: &mut Box<[PickOrTest]>) {
    tail.chunk_by_mut(|a, b| a.test().is_some() && b.test().is_some())
        .for_each(<[PickOrTest]>::sort);
    let mut kept: Vec<PickOrTest> = Vec::with_capacity(tail.len());
    for item in std::mem::take(tail).into_vec() {
        let idle = matches!(
            (&item, kept.last()),
            (PickOrTest::First | PickOrTest::Last, Some(last)) if last.test().is_none()
        ) || matches!(item, PickOrTest::Test(_)) && kept.last() == Some(&item);
        if !idle {
            kept.push(item);
        }
    }
    *tail = kept.into();
}

/// The pass `order` of one step.
pub(super) fn sort_step(node: &mut NodeStep) {
    sort(&mut node.tests);
    // After the sort, so that the one that stays does not depend on how the tests were written.
    drop_always_true(&mut node.tests, &node.tail);
}

/// Sorts tests, and the values of lists in them.
pub(super) fn sort(tests: &mut Tests) {
    for test in tests.iter_mut() {
        if let Test::Attr(test) = test {
            sort_list(test);
        }
    }
    split_tags(tests);
    if !tests.is_sorted_by(|a, b| a < b) {
        tests.sort();
        tests.dedup();
    }
}

/// Sorts the values and drops repetitions; a list of one value becomes that value (LANGUAGE §5).
fn sort_list(test: &mut AttrTest) {
    let Operand::List(list) = &mut test.operand else {
        return;
    };
    let mut values = std::mem::take(list).into_vec();
    values.sort();
    values.dedup();
    test.operand = match <[Operand; 1]>::try_from(values) {
        Ok([only]) => only,
        Err(values) => Operand::List(values.into()),
    };
}

/// Splits `tags=[a,b]`, which needs both tags, into two tests as `+a+b` has.
fn split_tags(tests: &mut Tests) {
    let list = |test: &mut Test| match test {
        Test::Attr(AttrTest {
            attr: Attr::Tags,
            op: CompareOp::Eq,
            operand: Operand::List(values),
        }) => Some(std::mem::take(values)),
        _ => None,
    };
    let mut at = 0;
    while at < tests.len() {
        let Some(values) = list(&mut tests[at]) else {
            at += 1;
            continue;
        };
        // They are sorted afterwards.
        tests.swap_remove(at);
        tests.extend(values.into_iter().map(|operand| {
            let (attr, op) = (Attr::Tags, CompareOp::Eq);
            Test::Attr(AttrTest { attr, op, operand })
        }));
    }
}

/// Drops tests that every node passes. One stays if a depth would be left alone, because that
/// means `depth(…)`.
pub(super) fn drop_always_true(tests: &mut Tests, tail: &[PickOrTest]) {
    // On an implicit core such a header is null, so the test stays where one may match.
    if !tests.iter().any(always_true) || contradiction::matches_cores(tests) {
        return;
    }
    let is_depth = |test: &Test| test.depth().is_some();
    let mut after = tail.iter().filter_map(PickOrTest::test);
    let depth = tests.iter().any(is_depth) || after.any(is_depth);
    let other = tests
        .iter()
        .any(|test| !is_depth(test) && !always_true(test));
    let mut spare = depth && !other;
    tests.retain(|test| !always_true(test) || std::mem::take(&mut spare));
}

/// Whether a test is `[offset]` or another header that reads as 0 where absent.
fn always_true(test: &Test) -> bool {
    test.attr().is_some_and(|test| {
        test.op == CompareOp::Ne
            && test.attr.is_never_null()
            && test.operand == Operand::Literal(Literal::Null)
    })
}
