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
    // What most steps are.
    if let [] | [Test::Type(_)] = tests {
        return None;
    }
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

    // Sorted, the tests of attributes come last, those of one attribute side by side.
    let attrs = &tests[tests.partition_point(|test| !matches!(test, Test::Attr(_)))..];
    fn attr(test: &Test) -> Option<&AttrTest> {
        match test {
            Test::Attr(test) => Some(test),
            Test::Type(_) | Test::Depth(_) => None,
        }
    }
    if let Some(why) = attrs
        .iter()
        .filter_map(attr)
        .find_map(|test| of_one(test, tests))
    {
        return Some(why);
    }
    let (a, b) = attrs
        .chunk_by(|a, b| attr(a).map(|a| &a.attr) == attr(b).map(|b| &b.attr))
        .filter(|tests| tests.len() > 1)
        .find_map(|tests| of_attribute(&tests.iter().filter_map(attr).collect::<Vec<_>>()))?;
    Some(format!(
        "`[{}]` and `[{}]` exclude each other",
        test_text(a),
        test_text(b)
    ))
}

/// Two of `tests`, all of one attribute and sorted, that exclude each other.
///
/// One pass with a logarithmic look-up: of the tests gone by only those are kept that exclude
/// whatever any of them does.
fn of_attribute<'a>(tests: &[&'a AttrTest]) -> Option<(&'a AttrTest, &'a AttrTest)> {
    // `=` comes first, in the order of the right sides.
    let equal = &tests[..tests.partition_point(|test| test.op == Op::Eq)];
    let mut kept = Witnesses::default();
    for test in tests {
        if let Some(other) = kept.all().find(|other| exclude(other, test)) {
            return Some((other, test));
        }
        if test.op == Op::Ne
            && let Ok(at) = equal
                .binary_search_by(|other| super::order::operands(&other.operand, &test.operand))
            && exclude(equal[at], test)
        {
            return Some((equal[at], test));
        }
        kept.add(test);
    }
    None
}

/// Tests of one attribute that stand for all that went by.
#[derive(Default)]
struct Witnesses<'a> {
    /// `= null`
    null: Option<&'a AttrTest>,
    /// Equalities with other literals. Of three texts two exclude each other, even where one is
    /// the head of the others, so no more are needed.
    equal: [Option<&'a AttrTest>; 3],
    /// An ordering or a pattern, which null never passes.
    ordered: Option<&'a AttrTest>,
    /// The highest lower bound and the lowest upper bound, of numbers.
    bounds: [Option<&'a AttrTest>; 2],
}

impl<'a> Witnesses<'a> {
    fn all(&self) -> impl Iterator<Item = &'a AttrTest> {
        let bounds = self.bounds;
        let one = [self.null, self.ordered].into_iter();
        one.chain(self.equal).chain(bounds).flatten()
    }

    fn add(&mut self, test: &'a AttrTest) {
        let Operand::Literal(literal) = &test.operand else {
            return;
        };
        match (test.op, literal) {
            (Op::Eq, Literal::Null) => {
                self.null.get_or_insert(test);
            }
            (Op::Eq, _) => {
                if let Some(free) = self.equal.iter_mut().find(|kept| kept.is_none()) {
                    *free = Some(test);
                }
            }
            (Op::Ne, _) => {}
            _ => {
                self.ordered.get_or_insert(test);
            }
        }
        let [low, high] = match test.op {
            _ if !is_number(test) => return,
            Op::Eq => [true, true],
            Op::Gt | Op::Ge => [true, false],
            Op::Lt | Op::Le => [false, true],
            Op::Ne | Op::Matches => return,
        };
        for (bound, sets, tighter) in [(0, low, Ordering::Greater), (1, high, Ordering::Less)] {
            let kept = &mut self.bounds[bound];
            let tightens = kept.is_none_or(|kept| match &kept.operand {
                Operand::Literal(known) => match compare_numbers(literal, known) {
                    // At the same number the one that leaves it out is tighter.
                    Some(Ordering::Equal) => matches!(test.op, Op::Lt | Op::Gt),
                    order => order == Some(tighter),
                },
                Operand::Param(_) | Operand::List(_) => true,
            });
            if sets && tightens {
                *kept = Some(test);
            }
        }
    }
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
            let types = tests.iter().map_while(|test| match test {
                Test::Type(test) => Some(*test),
                Test::Depth(_) | Test::Attr(_) => None,
            });
            let mut others = types.filter_map(|test| match test {
                TypeTest::Class(other) if other != class => Some(other),
                _ => None,
            });
            let other = others.next()?;
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

#[cfg(test)]
mod tests {
    use super::{exclude, of_attribute};
    use crate::ir::{Attr, AttrTest, Literal, Op, Operand, order};

    #[test]
    fn one_pass_finds_what_comparing_all_pairs_finds() {
        let literals = [
            Literal::Null,
            Literal::Int(1),
            Literal::Int(2),
            Literal::Decimal(1.5, "1.5".into()),
            Literal::Decimal(2.0, "2.0".into()),
            Literal::Text("cb".into()),
            Literal::Text("cb:a".into()),
            Literal::Text("cb:b".into()),
            Literal::Text("mt".into()),
        ];
        let list = Operand::List(
            [
                Operand::Literal(Literal::Int(1)),
                Operand::Param("p".into()),
            ]
            .into(),
        );
        let mut operands: Vec<Operand> = literals.into_iter().map(Operand::Literal).collect();
        operands.extend([Operand::Param("p".into()), list]);
        let ops = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Matches];
        let attrs = [
            Attr::Ttl,
            Attr::Role,
            Attr::NodeType,
            Attr::Tags,
            Attr::Content,
            Attr::Custom("x".into()),
        ];
        // A fixed sequence that looks random (Knuth's MMIX generator).
        let mut state = 7_u64;
        let mut below = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let (mut found, mut none) = (0, 0);
        for round in 0..60_000 {
            let attr = &attrs[round % attrs.len()];
            let mut tests: Vec<AttrTest> = (0..2 + below(4))
                .map(|_| AttrTest {
                    attr: attr.clone(),
                    op: ops[below(ops.len())],
                    operand: operands[below(operands.len())].clone(),
                })
                .collect();
            tests.sort_by(|a, b| {
                a.op.cmp(&b.op)
                    .then_with(|| order::operands(&a.operand, &b.operand))
            });
            tests.dedup();
            let all: Vec<&AttrTest> = tests.iter().collect();
            let pairs = all.iter().enumerate().any(|(index, a)| {
                let behind = &all[index + 1..];
                behind.iter().any(|b| exclude(a, b))
            });
            let pair = of_attribute(&all);
            assert_eq!(pair.is_some(), pairs, "{tests:?}");
            assert!(pair.is_none_or(|(a, b)| exclude(a, b)));
            found += usize::from(pairs);
            none += usize::from(!pairs);
        }
        assert!(found > 5_000 && none > 5_000, "{found} {none}");
    }
}
