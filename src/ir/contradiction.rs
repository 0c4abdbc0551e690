//! Finds what can match nothing by its form alone (LANGUAGE §10): tests that exclude each other,
//! and steps that cannot stand below each other.
//!
//! Only what is certain over every tree is found. `None` means "perhaps".

use std::cmp::Ordering;

use super::order::compare_numbers;
use super::text::test_text;
use super::{
    Attr, AttrTest, Axis, Chain, Class, DepthSet, Kind, Literal, NodeStep, Op, Operand, Step, Tail,
    Test, TypeTest,
};

/// The kinds of nodes a step may match, as bits.
type Kinds = u8;
const ROOT: Kinds = 1;
const SYS: Kinds = 2;
const AH: Kinds = 4;
const SEQ: Kinds = 8;
/// A turn directly under `^seq`.
const TURN: Kinds = 16;
/// Everything else: containers, blocks, other turns.
const OTHER: Kinds = 32;
const ALL: Kinds = 63;

/// Why no node can match `chain`, if that is certain.
pub(super) fn of_chain(chain: &Chain) -> Option<String> {
    let mut here: Option<Kinds> = None;
    let mut zone = false;
    for (axis, step) in &chain.steps {
        let reach = match (here, axis) {
            (None, _) => ALL,
            // The nodes of a zone are children or deeper; below it, they count too.
            (Some(kinds), _) if zone => kinds,
            (Some(kinds), Axis::Child) => children(kinds),
            (Some(kinds), Axis::Descendant) => below(kinds),
        };
        match step {
            Step::Node(node) => {
                if let Some(why) = of_step(node) {
                    return Some(why);
                }
                let kinds = reach & kinds_of(node);
                if kinds == 0 {
                    return Some(match here {
                        Some(_) => format!("`{}` never stands there", step_name(node)),
                        None => format!("`{}` excludes itself", step_name(node)),
                    });
                }
                here = Some(kinds);
                zone = false;
            }
            Step::Zone(_) => {
                if reach == 0 {
                    return Some("nothing lies below".to_owned());
                }
                // Members at any level, and what lies inside of them.
                here = Some(reach | below(reach));
                zone = true;
            }
        }
    }
    None
}

fn children(kinds: Kinds) -> Kinds {
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

fn below(kinds: Kinds) -> Kinds {
    let once = children(kinds);
    // Three levels hold every kind there is: root, seq, turn, and everything else.
    let twice = once | children(once);
    twice | children(twice)
}

/// The kinds a step's type and depth leave.
fn kinds_of(step: &NodeStep) -> Kinds {
    let tail = step.tail.iter().filter_map(|item| match item {
        Tail::Test(test) => Some(test),
        Tail::Pick(_) => None,
    });
    step.tests
        .iter()
        .chain(tail)
        .fold(ALL, |kinds, test| kinds & kinds_of_test(test))
}

fn kinds_of_test(test: &Test) -> Kinds {
    match test {
        Test::Type(TypeTest::Root) => ROOT,
        Test::Type(TypeTest::Seq) => SEQ,
        Test::Type(TypeTest::Anchor) => SYS | AH | TURN,
        Test::Type(TypeTest::TurnOrAnchor) => SYS | AH | TURN | OTHER,
        Test::Type(TypeTest::Class(Class::Turn)) => TURN | OTHER,
        Test::Type(TypeTest::Class(Class::Container | Class::Block)) => OTHER,
        Test::Depth(set) => kinds_of_depth(set),
        Test::Attr(_) => ALL,
    }
}

fn kinds_of_depth(set: &DepthSet) -> Kinds {
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

fn step_name(step: &NodeStep) -> String {
    step.to_string()
}

/// Why no node can match a step by itself.
fn of_step(step: &NodeStep) -> Option<String> {
    if let Some(why) = of_tests(&step.tests) {
        return Some(why);
    }
    if step.tail.is_empty() {
        return None;
    }
    // Behind a pick the tests still have to hold of one node.
    let mut all: Vec<Test> = step.tests.to_vec();
    for item in &step.tail {
        if let Tail::Test(test) = item {
            all.push(test.clone());
        }
    }
    all.sort_by(super::order::tests);
    of_tests(&all)
}

/// Why no node can pass all of `tests`, which are sorted.
pub(super) fn of_tests(tests: &[Test]) -> Option<String> {
    let mut depths: Option<DepthSet> = None;
    for test in tests {
        if let Test::Depth(set) = test {
            let both = match &depths {
                Some(so_far) => so_far.intersection(set),
                None => set.clone(),
            };
            if both.is_empty() {
                return Some("no depth is left".to_owned());
            }
            depths = Some(both);
        }
    }
    let mut types = tests.iter().filter_map(|test| match test {
        Test::Type(test) => Some(*test),
        Test::Depth(_) | Test::Attr(_) => None,
    });
    if let (Some(a), Some(b)) = (types.next(), types.next())
        && !both_types(a, b)
    {
        return Some(format!(
            "a node is not both `{}` and `{}`",
            type_name(a),
            type_name(b)
        ));
    }

    let attrs = || {
        tests.iter().filter_map(|test| match test {
            Test::Attr(test) => Some(test),
            Test::Type(_) | Test::Depth(_) => None,
        })
    };
    for test in attrs() {
        if let Some(why) = of_one(test, tests) {
            return Some(why);
        }
    }
    // Tests of one attribute are neighbours; lists of tests are short.
    for (index, a) in attrs().enumerate() {
        for b in attrs().skip(index + 1).take_while(|b| b.attr == a.attr) {
            if exclude(a, b) {
                return Some(format!(
                    "`[{}]` and `[{}]` exclude each other",
                    test_text(a),
                    test_text(b)
                ));
            }
        }
    }
    None
}

/// Whether a node can be of both types.
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

/// Whether an implicit core may pass: only a step with a container test takes one (LANGUAGE §1).
pub(super) fn matches_cores(tests: &[Test]) -> bool {
    tests.contains(&Test::Type(TypeTest::Class(Class::Container)))
}

/// Tests that nothing passes.
fn of_one(test: &AttrTest, tests: &[Test]) -> Option<String> {
    let Operand::Literal(literal) = &test.operand else {
        return None;
    };
    let shown = || test_text(test);
    match (test.op, literal) {
        (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Matches, Literal::Null) => Some(format!(
            "`[{}]` is never true: `null` has no order and no text",
            shown()
        )),
        // An implicit core has no such header, so a step that can match one may go on.
        (Op::Eq, Literal::Null) if test.attr.is_never_null() && !matches_cores(tests) => {
            Some(format!(
                "`[{}]` is never true: an absent `{}` is 0",
                shown(),
                test.attr.name()
            ))
        }
        // `.mt[nodeType='cb']`
        (Op::Eq, Literal::Text(text)) if matches!(test.attr, Attr::NodeType | Attr::StoredType) => {
            let head = text.split(':').next().unwrap_or_default();
            let class = match head {
                _ if head.starts_with('^') => return None,
                _ => Class::from_word(head).unwrap_or(Class::Block),
            };
            let other = tests.iter().find_map(|test| match test {
                Test::Type(TypeTest::Class(other)) if *other != class => Some(*other),
                _ => None,
            })?;
            Some(format!(
                "`.{}` and `[{}]` exclude each other",
                other.word(),
                shown()
            ))
        }
        _ => None,
    }
}

/// Whether two tests of one attribute can never both hold.
fn exclude(a: &AttrTest, b: &AttrTest) -> bool {
    // `=` and `!=` are exact complements, whatever the operand is, as long as it is the same.
    if a.operand == b.operand && matches!((a.op, b.op), (Op::Eq, Op::Ne) | (Op::Ne, Op::Eq)) {
        return true;
    }
    let (Operand::Literal(x), Operand::Literal(y)) = (&a.operand, &b.operand) else {
        return false;
    };
    if is_number(a) && is_number(b) {
        return numbers_exclude((a.op, x), (b.op, y));
    }
    match (a.op, b.op) {
        (Op::Eq, Op::Eq) => match (&a.attr, x, y) {
            // A list may hold both, and content may be anything.
            (Attr::Tags, Literal::Null, other) | (Attr::Tags, other, Literal::Null) => {
                *other != Literal::Null
            }
            (Attr::Tags | Attr::Custom(_) | Attr::Content, ..) => false,
            // `cb:x` counts as `cb` too.
            (Attr::NodeType, Literal::Text(x), Literal::Text(y)) => {
                x != y && !is_head(x, y) && !is_head(y, x)
            }
            _ => x != y,
        },
        // Null has no order and no text.
        (Op::Eq, Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Matches) => *x == Literal::Null,
        (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Matches, Op::Eq) => *y == Literal::Null,
        _ => false,
    }
}

fn is_head(head: &str, whole: &str) -> bool {
    whole.split(':').next() == Some(head)
}

/// Whether a test compares numbers.
fn is_number(test: &AttrTest) -> bool {
    test.attr.kind() == Kind::Number
        && matches!(
            test.operand,
            Operand::Literal(Literal::Int(_) | Literal::Decimal(..))
        )
}

/// Whether no number passes both comparisons.
fn numbers_exclude(a: (Op, &Literal), b: (Op, &Literal)) -> bool {
    let Some(order) = compare_numbers(a.1, b.1) else {
        return false;
    };
    // The lower and upper bound each comparison sets, and whether the bound itself passes.
    let low = |op| match op {
        Op::Gt => Some(false),
        Op::Ge | Op::Eq => Some(true),
        _ => None,
    };
    let high = |op| match op {
        Op::Lt => Some(false),
        Op::Le | Op::Eq => Some(true),
        _ => None,
    };
    // The lower bound of one lies above the upper bound of the other.
    let crossed = |low: Option<bool>, high: Option<bool>, order: Ordering| match (low, high) {
        (Some(low), Some(high)) => {
            order == Ordering::Greater || order == Ordering::Equal && !(low && high)
        }
        _ => false,
    };
    crossed(low(a.0), high(b.0), order) || crossed(low(b.0), high(a.0), order.reverse())
}
