//! Tests of attributes as an earlier edition can express them.
//!
//! A list of tests becomes a union of lists. The rules:
//!
//! - `role=[a,b]` is `role=a` or `role=b`; `role!=[a,b]` is `role!=a` and `role!=b`. Tags need all
//!   of a list, so for tags it is the reverse.
//! - Orderings of nodeType compare whole texts in every edition, so an equality of one reading is a
//!   pair of bounds in another. Types that start with `t:` are those from `t:` up to `t;`, because
//!   `;` follows `:` in Unicode.
//! - The kind that later editions read is the stored one, else the text after the colon of the
//!   nodeType. If the type is pinned, the stored fields alone decide that.

use super::construct::Construct;
use crate::query::ir::edition::Edition;
use crate::query::ir::lower::MAX_GROUPS;
use crate::query::ir::query::{Attr, AttrTest, Kind, Literal, Op, Operand, Test};

/// Lists of tests, of which a node must pass one.
type Lists = Vec<Vec<Test>>;

/// Lists of tests that `edition` can express and whose union is `tests`.
pub(super) fn alternatives(tests: &[Test], edition: Edition) -> Result<Lists, Construct> {
    let mut ways: Lists = vec![Vec::with_capacity(tests.len())];
    let pinned = Pinned::of(tests);
    for test in tests {
        let lists = match test {
            Test::Attr(test) => attribute(test, &pinned, edition)?,
            Test::Type(_) | Test::Depth(_) => vec![vec![test.clone()]],
        };
        ways = joined(&ways, &lists)?;
    }
    if ways.len() > 1 {
        ways.iter_mut().for_each(drop_idle_bounds);
    }
    Ok(ways)
}

/// Each of `heads` followed by each of `tails`.
pub(super) fn joined<T: Clone>(
    heads: &[Vec<T>],
    tails: &[Vec<T>],
) -> Result<Vec<Vec<T>>, Construct> {
    if heads.len().saturating_mul(tails.len()) > MAX_GROUPS {
        return Err(Construct::Size);
    }
    let join = |head: &Vec<T>, tail: &Vec<T>| [head.as_slice(), tail.as_slice()].concat();
    let joined = heads
        .iter()
        .flat_map(|head| tails.iter().map(move |tail| join(head, tail)));
    Ok(joined.collect())
}

/// Drops the bounds of a nodeType that an equality satisfies anyway.
fn drop_idle_bounds(way: &mut Vec<Test>) {
    let on_type = |test: &Test, wanted: fn(Op) -> bool| match test {
        Test::Attr(AttrTest {
            attr: Attr::StoredType,
            op,
            operand: Operand::Literal(Literal::Text(text)),
        }) if wanted(*op) => Some((*op, text.clone())),
        _ => None,
    };
    let pinned = way.iter().find_map(|test| on_type(test, |op| op == Op::Eq));
    let Some((_, pinned)) = pinned else { return };
    way.retain(
        |test| match on_type(test, |op| matches!(op, Op::Ge | Op::Lt)) {
            Some((Op::Ge, bound)) => pinned < bound,
            Some((_, bound)) => pinned >= bound,
            None => true,
        },
    );
}

fn attribute(test: &AttrTest, pinned: &Pinned<'_>, edition: Edition) -> Result<Lists, Construct> {
    match &test.attr {
        Attr::Facet(facet) if edition == Edition::V01 => return Err(Construct::Facet(*facet)),
        _ if test.op == Op::Matches => return Err(Construct::Pattern(test.clone())),
        _ => {}
    }
    if let Operand::List(values) = &test.operand {
        return list(test, values, pinned, edition);
    }
    match (&test.attr, edition) {
        (Attr::NodeType, Edition::V01) => split_type(test),
        (Attr::Kind, Edition::V01) => split_kind(test, pinned),
        (Attr::StoredType, Edition::Depth) => stored_type(test),
        (Attr::StoredKind, Edition::Depth) => stored_kind(test, pinned),
        _ => Ok(vec![vec![Test::Attr(test.clone())]]),
    }
}

/// A test of a list of values, split into its values.
fn list(
    test: &AttrTest,
    values: &[Operand],
    pinned: &Pinned<'_>,
    edition: Edition,
) -> Result<Lists, Construct> {
    // Whether passing one of the single tests is enough.
    let any = match (test.attr.kind(), &test.attr, test.op) {
        // Whether a value is a list depends on the node.
        (Kind::Dynamic, ..) | (_, Attr::Content, _) => return Err(Construct::List(test.clone())),
        (Kind::Tags, _, op) => op == Op::Ne,
        (_, _, op) => op == Op::Eq,
    };
    let mut ways: Lists = if any { Vec::new() } else { vec![Vec::new()] };
    for value in values {
        let (attr, operand) = (test.attr.clone(), value.clone());
        let one = AttrTest {
            attr,
            op: test.op,
            operand,
        };
        let lists = attribute(&one, pinned, edition)?;
        if any {
            ways.extend(lists);
        } else {
            ways = joined(&ways, &lists)?;
        }
        if ways.len() > MAX_GROUPS {
            return Err(Construct::Size);
        }
    }
    Ok(ways)
}

/// A test of `attr` against a text.
fn text(attr: Attr, op: Op, text: impl Into<Box<str>>) -> Test {
    Test::of(attr, op, Literal::Text(text.into()))
}

/// The same comparison with another attribute.
fn same(attr: Attr, test: &AttrTest) -> Test {
    let (op, operand) = (test.op, test.operand.clone());
    Test::Attr(AttrTest { attr, op, operand })
}

/// The same comparison with another attribute, as the only test of the only list.
fn of(attr: Attr, test: &AttrTest) -> Lists {
    vec![vec![same(attr, test)]]
}

/// Bounds of the types that start with `head:`.
fn with_kind(head: &str) -> [Test; 2] {
    [
        text(Attr::StoredType, Op::Ge, format!("{head}:")),
        text(Attr::StoredType, Op::Lt, format!("{head};")),
    ]
}

/// A test of the nodeType as later editions read it, in terms of the stored one.
fn split_type(test: &AttrTest) -> Result<Lists, Construct> {
    let stored = Attr::StoredType;
    match (test.op, &test.operand) {
        (Op::Eq, Operand::Literal(Literal::Text(head))) if !head.contains(':') => Ok(vec![
            vec![text(stored, Op::Eq, &**head)],
            with_kind(head).into(),
        ]),
        (Op::Ne, Operand::Literal(Literal::Text(head))) if !head.contains(':') => Ok(vec![
            vec![text(stored.clone(), Op::Lt, &**head)],
            vec![
                text(stored.clone(), Op::Gt, &**head),
                text(stored.clone(), Op::Lt, format!("{head}:")),
            ],
            vec![text(stored, Op::Ge, format!("{head};"))],
        ]),
        (Op::Eq | Op::Ne, Operand::Param(_)) => Err(Construct::NodeType(test.clone())),
        _ => Ok(of(stored, test)),
    }
}

/// A test of the kind as later editions read it, in terms of the stored fields.
fn split_kind(test: &AttrTest, pinned: &Pinned<'_>) -> Result<Lists, Construct> {
    // A type without a colon has no kind but the stored one.
    if pinned.plain {
        return Ok(of(Attr::StoredKind, test));
    }
    let refused = || Err(Construct::Kind(test.clone()));
    let Operand::Literal(Literal::Text(kind)) = &test.operand else {
        return refused();
    };
    let same = same(Attr::StoredKind, test);
    let present = Test::of(Attr::StoredKind, Op::Ne, Literal::Null);
    let absent = Test::of(Attr::StoredKind, Op::Eq, Literal::Null);
    let typed = |op, head| text(Attr::StoredType, op, format!("{head}:{kind}"));
    Ok(match (test.op, pinned.sub, pinned.head) {
        (Op::Eq, Some(sub), _) if sub == &**kind => vec![vec![same], vec![absent]],
        (Op::Ne, Some(sub), _) if sub == &**kind => vec![vec![present, same]],
        (Op::Eq | Op::Ne, Some(_), _) => vec![vec![same]],
        // Another test ensures that the nodeType is `head` or starts with `head:`.
        (Op::Eq, None, Some(head)) => vec![vec![same], vec![absent, typed(Op::Eq, head)]],
        (Op::Ne, None, Some(head)) => {
            vec![vec![present, same], vec![absent, typed(Op::Ne, head)]]
        }
        _ => return refused(),
    })
}

/// A test of the stored nodeType, as `depth` reads it.
fn stored_type(test: &AttrTest) -> Result<Lists, Construct> {
    let split = Attr::NodeType;
    match (test.op, &test.operand) {
        (Op::Eq, Operand::Literal(Literal::Text(whole))) if !whole.contains(':') => Ok(vec![vec![
            text(split.clone(), Op::Le, &**whole),
            text(split, Op::Ge, &**whole),
        ]]),
        (Op::Ne, Operand::Literal(Literal::Text(whole))) if !whole.contains(':') => Ok(vec![
            vec![text(split.clone(), Op::Lt, &**whole)],
            vec![text(split, Op::Gt, &**whole)],
        ]),
        (Op::Eq | Op::Ne, Operand::Param(_)) => Err(Construct::NodeType(test.clone())),
        _ => Ok(of(split, test)),
    }
}

/// A test of the stored kind, as `depth` reads it, if the type decides what an absent one reads
/// as.
fn stored_kind(test: &AttrTest, pinned: &Pinned<'_>) -> Result<Lists, Construct> {
    if pinned.plain {
        return Ok(of(Attr::Kind, test));
    }
    match (pinned.sub, test.op, &test.operand) {
        (Some(sub), Op::Eq | Op::Ne, Operand::Literal(Literal::Text(kind))) if sub != &**kind => {
            Ok(of(Attr::Kind, test))
        }
        _ => Err(Construct::Kind(test.clone())),
    }
}

/// What the tests of a step determine about the nodeType.
#[derive(Default)]
struct Pinned<'a> {
    /// Whether the whole type is known and has no colon.
    plain: bool,
    /// The text after the first colon of a type that is known whole.
    sub: Option<&'a str>,
    /// The type is `head` or starts with `head:`.
    head: Option<&'a str>,
}

impl<'a> Pinned<'a> {
    fn of(tests: &'a [Test]) -> Self {
        let mut pinned = Self::default();
        for test in tests {
            let Test::Attr(AttrTest {
                attr: attr @ (Attr::NodeType | Attr::StoredType),
                op: Op::Eq,
                operand: Operand::Literal(Literal::Text(text)),
            }) = test
            else {
                continue;
            };
            match (attr, text.split_once(':')) {
                (_, Some((_, sub))) => pinned.sub = Some(sub),
                (Attr::StoredType, None) => pinned.plain = true,
                _ => pinned.head = Some(text),
            }
        }
        pinned
    }
}
