//! A structural order over the parts of a query. Normalization sorts by it, so that the same parts
//! in a different order become equal values.

use std::cmp::Ordering;

use super::query::{AttrTest, Axis, Chain, Literal, NodeStep, Operand, Pick, Step, Tail, Test};

pub(super) fn literals(a: &Literal, b: &Literal) -> Ordering {
    fn rank(literal: &Literal) -> u8 {
        match literal {
            Literal::Null => 0,
            Literal::Int(_) => 1,
            Literal::Spelled(_) => 2,
            Literal::Decimal(..) => 3,
            Literal::Text(_) => 4,
        }
    }
    match (a, b) {
        (Literal::Int(a), Literal::Int(b)) => a.cmp(b),
        (Literal::Decimal(a, x), Literal::Decimal(b, y)) => a.total_cmp(b).then_with(|| x.cmp(y)),
        (Literal::Spelled(a), Literal::Spelled(b)) | (Literal::Text(a), Literal::Text(b)) => {
            a.cmp(b)
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

pub(super) fn operands(a: &Operand, b: &Operand) -> Ordering {
    fn rank(operand: &Operand) -> u8 {
        match operand {
            Operand::Literal(_) => 0,
            Operand::Param(_) => 1,
            Operand::List(_) => 2,
        }
    }
    match (a, b) {
        (Operand::Literal(a), Operand::Literal(b)) => literals(a, b),
        (Operand::Param(a), Operand::Param(b)) => a.cmp(b),
        // Lists are not nested, so this recurses once at most.
        (Operand::List(a), Operand::List(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| operands(a, b))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn attr_tests(a: &AttrTest, b: &AttrTest) -> Ordering {
    (&a.attr, a.op)
        .cmp(&(&b.attr, b.op))
        .then_with(|| operands(&a.operand, &b.operand))
}

pub(super) fn tests(a: &Test, b: &Test) -> Ordering {
    fn rank(test: &Test) -> u8 {
        match test {
            Test::Type(_) => 0,
            Test::Depth(_) => 1,
            Test::Attr(_) => 2,
        }
    }
    match (a, b) {
        (Test::Type(a), Test::Type(b)) => a.cmp(b),
        (Test::Depth(a), Test::Depth(b)) => a.cmp(b),
        (Test::Attr(a), Test::Attr(b)) => attr_tests(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn slices<T>(a: &[T], b: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    a.iter()
        .zip(b)
        .map(|(a, b)| compare(a, b))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn tails(a: &Tail, b: &Tail) -> Ordering {
    fn rank(tail: &Tail) -> u8 {
        match tail {
            Tail::Pick(Pick::First) => 0,
            Tail::Pick(Pick::Last) => 1,
            Tail::Pick(Pick::Nth(_)) => 2,
            Tail::Test(_) => 3,
        }
    }
    match (a, b) {
        (Tail::Pick(Pick::Nth(a)), Tail::Pick(Pick::Nth(b))) => operands(a, b),
        (Tail::Test(a), Tail::Test(b)) => tests(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn node_steps(a: &NodeStep, b: &NodeStep) -> Ordering {
    slices(&a.tests, &b.tests, tests).then_with(|| slices(&a.tail, &b.tail, tails))
}

fn steps(a: &(Axis, Step), b: &(Axis, Step)) -> Ordering {
    let axis = |axis: Axis| u8::from(axis == Axis::Child);
    axis(a.0).cmp(&axis(b.0)).then_with(|| match (&a.1, &b.1) {
        (Step::Node(a), Step::Node(b)) => node_steps(a, b),
        (Step::Zone(a), Step::Zone(b)) => a.cmp(b),
        (Step::Node(_), Step::Zone(_)) => Ordering::Less,
        (Step::Zone(_), Step::Node(_)) => Ordering::Greater,
    })
}

pub(super) fn chains(a: &Chain, b: &Chain) -> Ordering {
    slices(&a.steps, &b.steps, steps)
}
