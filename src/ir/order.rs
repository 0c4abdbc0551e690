//! A structural order over the parts of a query. Normalization sorts by it, so that the same parts
//! in a different order become equal values.

use std::cmp::Ordering;

use super::query::{AttrTest, Axis, Chain, Literal, NodeStep, Operand, Pick, Step, Tail, Test};

/// The exact order of two numbers; `None` if either is not a number.
#[must_use]
pub fn compare_numbers(a: &Literal, b: &Literal) -> Option<Ordering> {
    match (a, b) {
        (Literal::Int(a), Literal::Int(b)) => Some(a.cmp(b)),
        (Literal::Int(a), Literal::Decimal(b, _)) => Some(compare_exactly(*a, *b)),
        (Literal::Decimal(a, _), Literal::Int(b)) => Some(compare_exactly(*b, *a).reverse()),
        (Literal::Decimal(a, _), Literal::Decimal(b, _)) => a.partial_cmp(b),
        _ => None,
    }
}

/// An integer against a double, without rounding either.
fn compare_exactly(int: i64, double: f64) -> Ordering {
    // 2^63, the first double above every i64; its negative is i64::MIN exactly.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    if double >= ABOVE {
        return Ordering::Less;
    }
    if double < -ABOVE {
        return Ordering::Greater;
    }
    // In this range the whole part of a double is an i64 exactly.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range was checked above"
    )]
    let whole = double.trunc() as i64;
    int.cmp(&whole).then_with(|| {
        let fraction = double.fract();
        if fraction > 0.0 {
            Ordering::Less
        } else if fraction < 0.0 {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    })
}

pub(super) fn literals(a: &Literal, b: &Literal) -> Ordering {
    fn rank(literal: &Literal) -> u8 {
        match literal {
            Literal::Null => 0,
            Literal::Int(_) => 1,
            Literal::Decimal(..) => 2,
            Literal::Text(_) => 3,
        }
    }
    match (a, b) {
        (Literal::Int(a), Literal::Int(b)) => a.cmp(b),
        (Literal::Decimal(a, x), Literal::Decimal(b, y)) => a.total_cmp(b).then_with(|| x.cmp(y)),
        (Literal::Text(a), Literal::Text(b)) => a.cmp(b),
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

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::compare_exactly;

    #[test]
    fn integers_and_doubles_compare_without_rounding() {
        let big = 9_007_199_254_740_993; // 2^53 + 1, no double
        assert_eq!(
            compare_exactly(big, 9_007_199_254_740_992.0),
            Ordering::Greater
        );
        assert_eq!(
            compare_exactly(i64::MAX, 9_223_372_036_854_775_808.0),
            Ordering::Less
        );
        assert_eq!(
            compare_exactly(i64::MIN, -9_223_372_036_854_775_808.0),
            Ordering::Equal
        );
        assert_eq!(compare_exactly(-1, -0.5), Ordering::Less);
        assert_eq!(compare_exactly(0, -0.5), Ordering::Greater);
        assert_eq!(compare_exactly(3, 3.0), Ordering::Equal);
    }
}
