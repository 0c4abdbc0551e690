//! The normal form of conditions with selectors inside (LANGUAGE §13).
//!
//! From the inside out, each group inside is normalized like a group of the selector; then the condition itself
//! is written in its simplest form:
//!
//! - `:not(A, B)` becomes `:not(A):not(B)`, and `:not([a=1])` the complement `[a!=1]`;
//! - `:is(T)` becomes the tests of T, `:is(:is(A, B), C)` one list;
//! - `:has(A B)` becomes `:has(A:has(B))` where nothing picks, as deep as conditions may be written;
//! - what matches nothing by its form is left out, and a condition without anything else is `:not(*)`;
//! - `:has-result(*)` becomes `:has-result`; lists are sorted and have each group once.

use super::contradiction;
use super::query::{
    Attr, AttrTest, Axis, Chain, CompareOp, InnerKind, InnerTest, Literal, NodeStep, Operand,
    PickOrTest, QueryStep, Test, Tests, names_container, tests_of,
};
use super::settle::{settle_step, sort, sort_step};
use crate::query::syntax::words::MAX_LEVELS;

/// Normalizes the conditions of a step.
pub(super) fn conditions(node: &mut NodeStep) {
    of_step(node, 1);
}

/// `level`: that of the conditions of the step, from 1.
fn of_step(node: &mut NodeStep, level: usize) {
    let has_inner = |test: &Test| test.inner().is_some();
    if node.tests.iter().any(has_inner) {
        let mut tests = Tests::with_capacity(node.tests.len());
        for test in std::mem::take(&mut node.tests) {
            match test {
                Test::Inner(test) => tests.extend(simplest(*test, level)),
                test => tests.push(test),
            }
        }
        node.tests = tests;
    }
    if node.tail.iter().filter_map(PickOrTest::test).any(has_inner) {
        let mut tail = Vec::with_capacity(node.tail.len());
        for item in std::mem::take(&mut node.tail).into_vec() {
            match item {
                PickOrTest::Test(Test::Inner(test)) => after_a_pick(*test, level, &mut tail),
                item => tail.push(item),
            }
        }
        node.tail = tail.into();
    }
}

/// A test after a pick: only what is written as a pseudo-class stays as it is.
fn after_a_pick(test: InnerTest<Chain>, level: usize, tail: &mut Vec<PickOrTest>) {
    let found = simplest(test, level);
    let as_pseudo = |test: &Test| match test {
        Test::Inner(_) => true,
        Test::Attr(test) => {
            test.attr == Attr::Offset
                && matches!(test.op, CompareOp::Lt | CompareOp::Eq | CompareOp::Gt)
                && test.operand == Operand::Literal(Literal::Int(0))
        }
        Test::Type(_) | Test::Depth(_) => false,
    };
    if found.iter().all(as_pseudo) {
        tail.extend(found.into_iter().map(PickOrTest::Test));
    } else {
        let is = Test::of_inner(InnerKind::Is, vec![one_step(found)]);
        tail.push(PickOrTest::Test(is));
    }
}

/// The tests that a condition is.
fn simplest(mut test: InnerTest<Chain>, level: usize) -> Vec<Test> {
    for chain in &mut test.any {
        normalize_chain(chain, test.kind.takes_tests(), level + 1);
        if test.kind == InnerKind::Has {
            nest(chain, level);
        }
    }
    let InnerTest { kind, within, any } = test;
    let mut any = any.into_vec();
    let given = any.len();
    // What matches nothing by its form has no text that is read back.
    any.retain(|chain| {
        if kind.takes_tests() {
            !is_never(tests_of(chain))
        } else {
            contradiction::of_chain(chain).is_none()
        }
    });
    if any.is_empty() && given > 0 {
        return match kind {
            InnerKind::Not => Vec::new(),
            _ => vec![never()],
        };
    }
    match kind {
        InnerKind::Not => return any.into_iter().flat_map(complement).collect(),
        InnerKind::Is => {
            any = any.into_iter().flat_map(alternatives).collect();
            let is_all = |chain: &Chain| tests_of(chain).is_empty();
            let is_core = |chain: &Chain| names_container(tests_of(chain));
            if any.iter().any(is_all) && !any.iter().any(is_core) {
                return Vec::new();
            }
        }
        InnerKind::HasResult | InnerKind::HasCall => {
            if any.iter().any(|chain| tests_of(chain).is_empty()) {
                any.clear();
            }
        }
        InnerKind::Has | InnerKind::After | InnerKind::Before => {}
    }
    any.sort();
    any.dedup();
    if let (InnerKind::Is, [chain]) = (kind, &*any) {
        return tests_of(chain).to_vec();
    }
    let any = any.into();
    vec![Test::Inner(Box::new(InnerTest { kind, within, any }))]
}

/// A condition that is true of no node, `:not(*)`.
fn never() -> Test {
    Test::of_inner(InnerKind::Not, vec![one_step(Vec::new())])
}

/// Whether tests hold on no node and no implicit core.
fn is_never(tests: &[Test]) -> bool {
    tests.iter().any(|test| match test {
        Test::Depth(set) => set.is_empty(),
        Test::Inner(inner) => {
            inner.kind == InnerKind::Not && inner.any.iter().any(|chain| tests_of(chain).is_empty())
        }
        Test::Type(_) | Test::Attr(_) => false,
    })
}

/// `:not` of one test: the complement of a comparison, else itself.
fn complement(chain: Chain) -> Vec<Test> {
    if let [Test::Attr(AttrTest { attr, op, operand })] = tests_of(&chain) {
        let op = match op {
            CompareOp::Eq => Some(CompareOp::Ne),
            CompareOp::Ne => Some(CompareOp::Eq),
            _ => None,
        };
        if let Some(op) = op {
            let (attr, operand) = (attr.clone(), operand.clone());
            return vec![Test::Attr(AttrTest { attr, op, operand })];
        }
    }
    // `:not(:is(A, B))` is `:not(A, B)`.
    if let [Test::Inner(inner)] = tests_of(&chain)
        && inner.kind == InnerKind::Is
    {
        return inner.any.iter().cloned().flat_map(complement).collect();
    }
    vec![Test::of_inner(InnerKind::Not, vec![chain])]
}

/// The members of a list: those of a list in it, where that is all.
fn alternatives(chain: Chain) -> Vec<Chain> {
    match tests_of(&chain) {
        [Test::Inner(inner)] if inner.kind == InnerKind::Is => inner.any.to_vec(),
        _ => vec![chain],
    }
}

fn normalize_chain(chain: &mut Chain, tests: bool, level: usize) {
    for (_, step) in &mut chain.steps {
        if let QueryStep::Node(node) = step {
            of_step(node, level);
            settle_step(node);
            if tests {
                // The step of the condition may be about implicit cores, so no test is true of every node.
                sort(&mut node.tests);
            } else {
                sort_step(node);
            }
        }
    }
}

/// Writes `A B` as `A:has(B)`; `level` is that of the condition.
fn nest(chain: &mut Chain, level: usize) {
    let mut steps = std::mem::take(&mut chain.steps).into_vec();
    // What is right of the step that is looked at, from left to right.
    let mut right: Vec<(Axis, QueryStep)> = Vec::new();
    while let Some((axis, step)) = steps.pop() {
        let node = match step {
            QueryStep::Node(mut node) => {
                let picks = node.picks() || right.iter().any(|(_, step)| step.picks());
                if !right.is_empty() && !picks && level + levels_of(&right) < MAX_LEVELS {
                    let steps = std::mem::take(&mut right).into();
                    let inner = vec![Chain { steps }];
                    node.tests.push(Test::of_inner(InnerKind::Has, inner));
                    settle_step(&mut node);
                    sort_step(&mut node);
                }
                QueryStep::Node(node)
            }
            zone => zone,
        };
        right.insert(0, (axis, node));
    }
    chain.steps = right.into();
}

/// How deep conditions are inside the steps.
fn levels_of(steps: &[(Axis, QueryStep)]) -> usize {
    let nodes = steps.iter().filter_map(|(_, step)| step.node());
    let inner = nodes.flat_map(NodeStep::all_tests).filter_map(Test::inner);
    let each = inner.flat_map(|test| {
        let chains = test.any.iter().map(|chain| 1 + levels_of(&chain.steps));
        chains.chain([1])
    });
    each.max().unwrap_or(0)
}

fn one_step(tests: Vec<Test>) -> Chain {
    let step = QueryStep::from_tests(tests);
    Chain {
        steps: Box::new([(Axis::Descendant, step)]),
    }
}
