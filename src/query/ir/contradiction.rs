//! Finds chains and tests that no node of any tree can match (LANGUAGE §10): tests that exclude
//! each other, and steps that cannot be below each other.
//!
//! `Some` is certain and gives the reason; `None` means "perhaps".

use std::cmp::Ordering;

use super::depth::DepthSet;
use super::number::ExactNumber;
use super::query::{
    Attr, AttrKind, AttrTest, Axis, Chain, Class, CompareOp, InnerKind, InnerTest, Literal,
    NodeStep, Operand, QueryStep, Test, TypeTest, names_container, tests_of,
};

/// The kinds of nodes that a step may match, as a bit set.
type NodeKinds = u8;
const ROOT: NodeKinds = 1;
const SYS: NodeKinds = 2;
const AH: NodeKinds = 4;
const SEQ: NodeKinds = 8;
/// A turn directly under `^seq`.
const TURN: NodeKinds = 16;
/// Everything else: containers, blocks, other turns.
const OTHER: NodeKinds = 32;
const ALL: NodeKinds = 63;

pub(super) fn of_chain(chain: &Chain) -> Option<String> {
    let mut here: Option<NodeKinds> = None;
    let mut zone = false;
    for (axis, step) in &chain.steps {
        let reach = match (here, axis) {
            (None, _) => ALL,
            // A step after a zone matches its members or what is inside them.
            (Some(kinds), _) if zone => kinds,
            (Some(kinds), Axis::Child) => children(kinds),
            (Some(kinds), Axis::Descendant) => below(kinds),
        };
        match step {
            QueryStep::Node(node) => {
                if let Some(why) = of_step(node) {
                    return Some(why);
                }
                let kinds = reach & kinds_of(node);
                if kinds == 0 {
                    return Some(match here {
                        Some(_) => format!("`{node}` is never there"),
                        None => format!("`{node}` excludes itself"),
                    });
                }
                here = Some(kinds);
                zone = false;
            }
            QueryStep::Zone(_) => {
                if reach == 0 {
                    return Some("nothing is inside".to_owned());
                }
                // The members, at any level, and the nodes inside them.
                here = Some(reach | below(reach));
                zone = true;
            }
        }
    }
    None
}

fn children(kinds: NodeKinds) -> NodeKinds {
    let mut found = 0;
    if kinds & ROOT != 0 {
        found |= SYS | AH | SEQ | OTHER;
    }
    if kinds & SEQ != 0 {
        found |= TURN | OTHER;
    }
    if kinds & !(ROOT | SEQ) != 0 {
        found |= OTHER;
    }
    found
}

fn below(kinds: NodeKinds) -> NodeKinds {
    let once = children(kinds);
    // Every kind occurs within three levels: root, seq, turn, everything else.
    let twice = once | children(once);
    twice | children(twice)
}

fn kinds_of(step: &NodeStep) -> NodeKinds {
    let tests = step.all_tests();
    tests.fold(ALL, |kinds, test| kinds & kinds_of_test(test))
}

fn kinds_of_test(test: &Test) -> NodeKinds {
    match test {
        Test::Type(TypeTest::Root) => ROOT,
        Test::Type(TypeTest::Seq) => SEQ,
        Test::Type(TypeTest::Anchor) => SYS | AH | TURN,
        Test::Type(TypeTest::TurnOrAnchor) => SYS | AH | TURN | OTHER,
        Test::Type(TypeTest::Class(Class::Turn)) => TURN | OTHER,
        Test::Type(TypeTest::Class(Class::Container | Class::Block)) => OTHER,
        Test::Depth(set) => kinds_of_depth(set),
        Test::Attr(_) | Test::Inner(_) => ALL,
    }
}

fn kinds_of_depth(set: &DepthSet) -> NodeKinds {
    if set.is_empty() {
        return 0;
    }
    let mut kinds = OTHER;
    if set.contains(-1) {
        kinds |= SYS;
    }
    if set.contains(0) {
        kinds |= AH;
    }
    if set.ranges().last().is_some_and(|range| range.1 >= 1) {
        kinds |= TURN;
    }
    kinds
}

fn of_step(step: &NodeStep) -> Option<String> {
    if let Some(why) = of_tests(&step.tests) {
        return Some(why);
    }
    if step.tail.is_empty() {
        return None;
    }
    // Tests after a pick are about the same node.
    let mut all: Vec<Test> = step.all_tests().cloned().collect();
    all.sort();
    of_tests(&all)
}

/// Why no node can pass all of `tests`, which must be sorted.
pub(super) fn of_tests(tests: &[Test]) -> Option<String> {
    // Fast path: most steps are like this.
    if let [] | [Test::Type(_)] = tests {
        return None;
    }
    let depths = tests.iter().filter_map(Test::depth).cloned();
    let depths = depths.reduce(|all, set| all.intersection(&set));
    if depths.is_some_and(|depths| depths.is_empty()) {
        return Some("no depth is left".to_owned());
    }
    let mut types = tests.iter().filter_map(Test::of_type);
    if let (Some(a), Some(b)) = (types.next(), types.next())
        && !both_types(a, b)
    {
        let (a, b) = (type_name(a), type_name(b));
        return Some(format!("a node is not both `{a}` and `{b}`"));
    }

    if let Some(why) = tests.iter().filter_map(Test::inner).find_map(of_inner) {
        return Some(why);
    }
    // In sorted tests those of attributes come last, and those of one attribute are neighbours.
    let attrs = &tests[tests.partition_point(|test| test.attr().is_none())..];
    let mut each = attrs.iter().filter_map(Test::attr);
    if let Some(why) = each.find_map(|test| of_one(test, tests)) {
        return Some(why);
    }
    let (a, b) = attrs
        .chunk_by(|a, b| a.attr().map(|a| &a.attr) == b.attr().map(|b| &b.attr))
        .filter(|tests| tests.len() > 1)
        .find_map(|tests| of_attribute(&tests.iter().filter_map(Test::attr).collect::<Vec<_>>()))?;
    Some(format!("`[{a}]` and `[{b}]` exclude each other"))
}

/// The most tests of one attribute that are compared with each other.
const COMPARED: usize = 64;

/// Two of some tests of one attribute that exclude each other.
fn of_attribute<'a>(tests: &[&'a AttrTest]) -> Option<(&'a AttrTest, &'a AttrTest)> {
    let compared = tests.iter().take(COMPARED).enumerate();
    let mut pairs = compared.flat_map(|(at, b)| tests[..at].iter().map(|a| (*a, *b)));
    pairs.find(|(a, b)| exclude(a, b))
}

fn both_types(a: TypeTest, b: TypeTest) -> bool {
    let turnish = |test: TypeTest| {
        matches!(
            test,
            TypeTest::Anchor | TypeTest::TurnOrAnchor | TypeTest::Class(Class::Turn)
        )
    };
    a == b || turnish(a) && turnish(b)
}

fn type_name(test: TypeTest) -> &'static str {
    match test {
        TypeTest::Root => "^root",
        TypeTest::Seq => "^seq",
        TypeTest::Anchor => "depth(…)",
        TypeTest::TurnOrAnchor | TypeTest::Class(Class::Turn) => ".mt",
        TypeTest::Class(Class::Container) => ".mc",
        TypeTest::Class(Class::Block) => ".cb",
    }
}

/// Whether a step can match an implicit core, which needs a container test (LANGUAGE §1).
pub(super) fn matches_cores(tests: &[Test]) -> bool {
    names_container(tests)
}

/// Why a condition is true of no node.
fn of_inner(test: &InnerTest<Chain>) -> Option<String> {
    match test.kind {
        InnerKind::Not => {
            let all = |chain: &Chain| tests_of(chain).is_empty();
            let all = test.any.iter().any(all);
            all.then(|| format!("`{test}` is true of no node"))
        }
        InnerKind::Has | InnerKind::After | InnerKind::Before => {
            let reasons: Option<Vec<String>> = test.any.iter().map(of_chain).collect();
            let why = reasons?.into_iter().next()?;
            Some(format!("`{test}` is true of no node: {why}"))
        }
        InnerKind::Is | InnerKind::HasResult | InnerKind::HasCall => None,
    }
}

fn of_one(test: &AttrTest, tests: &[Test]) -> Option<String> {
    let Operand::Literal(literal) = &test.operand else {
        return None;
    };
    match (test.op, literal) {
        (op, Literal::Null) if !op.is_equality() => Some(format!(
            "`[{test}]` is never true: `null` has no order and no text"
        )),
        // On an implicit core such a header is null.
        (CompareOp::Eq, Literal::Null) if test.attr.is_never_null() && !matches_cores(tests) => {
            let name = test.attr.name();
            Some(format!("`[{test}]` is never true: an absent `{name}` is 0"))
        }
        // `.mt[nodeType='cb']`
        (CompareOp::Eq, Literal::Text(text))
            if matches!(test.attr, Attr::NodeType | Attr::StoredType) =>
        {
            let head = text.split(':').next().unwrap_or_default();
            let class = match head {
                _ if head.starts_with('^') => return None,
                _ => Class::from_word(head).unwrap_or(Class::Block),
            };
            let mut others = tests
                .iter()
                .filter_map(Test::of_type)
                .filter_map(|test| match test {
                    TypeTest::Class(other) if other != class => Some(other),
                    _ => None,
                });
            let other = others.next()?.word();
            Some(format!("`.{other}` and `[{test}]` exclude each other"))
        }
        _ => None,
    }
}

fn exclude(a: &AttrTest, b: &AttrTest) -> bool {
    // `=` and `!=` with the same operand, whatever it is, are exact complements.
    if a.operand == b.operand
        && matches!(
            (a.op, b.op),
            (CompareOp::Eq, CompareOp::Ne) | (CompareOp::Ne, CompareOp::Eq)
        )
    {
        return true;
    }
    let (Operand::Literal(x), Operand::Literal(y)) = (&a.operand, &b.operand) else {
        return false;
    };
    if is_number(a) && is_number(b) {
        return numbers_exclude((a.op, x), (b.op, y));
    }
    match (a.op, b.op) {
        (CompareOp::Eq, CompareOp::Eq) => match (&a.attr, x, y) {
            // A list may contain both, and content can have any type.
            (Attr::Tags, Literal::Null, other) | (Attr::Tags, other, Literal::Null) => {
                *other != Literal::Null
            }
            (Attr::Tags | Attr::Custom(_) | Attr::Content, ..) => false,
            // `cb:x` also counts as `cb`.
            (Attr::NodeType, Literal::Text(x), Literal::Text(y)) => {
                x != y && !is_head(x, y) && !is_head(y, x)
            }
            _ => x != y,
        },
        // Null passes no ordering and no pattern.
        (CompareOp::Eq, op) if !op.is_equality() => *x == Literal::Null,
        (op, CompareOp::Eq) if !op.is_equality() => *y == Literal::Null,
        _ => false,
    }
}

fn is_head(head: &str, whole: &str) -> bool {
    whole.split(':').next() == Some(head)
}

fn is_number(test: &AttrTest) -> bool {
    test.attr.kind() == AttrKind::Number
        && matches!(
            test.operand,
            Operand::Literal(Literal::Int(_) | Literal::Decimal(..))
        )
}

fn numbers_exclude(a: (CompareOp, &Literal), b: (CompareOp, &Literal)) -> bool {
    let (Some(x), Some(y)) = (
        ExactNumber::from_literal(a.1),
        ExactNumber::from_literal(b.1),
    ) else {
        return false;
    };
    let order = x.compare(&y);
    // Whether a comparison sets a lower or upper bound, and whether the bound itself passes.
    let low = |op| match op {
        CompareOp::Gt => Some(false),
        CompareOp::Ge | CompareOp::Eq => Some(true),
        _ => None,
    };
    let high = |op| match op {
        CompareOp::Lt => Some(false),
        CompareOp::Le | CompareOp::Eq => Some(true),
        _ => None,
    };
    // Whether the lower bound of one is above the upper bound of the other.
    let crossed = |low: Option<bool>, high: Option<bool>, order: Ordering| match (low, high) {
        (Some(low), Some(high)) => {
            order == Ordering::Greater || order == Ordering::Equal && !(low && high)
        }
        _ => false,
    };
    crossed(low(a.0), high(b.0), order) || crossed(low(b.0), high(a.0), order.reverse())
}
