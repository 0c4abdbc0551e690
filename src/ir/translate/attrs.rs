//! Tests of attributes in the words of an earlier edition.
//!
//! A list of tests becomes a union of such lists. The rules, each over every node:
//!
//! - `role=[a,b]` is `role=a` or `role=b`; `role!=[a,b]` is `role!=a` and `role!=b`. Tags need all
//!   of a list, so there it is the other way round.
//! - Orderings of nodeType compare whole texts in every edition, so `nodeType=t` of one reading is
//!   a pair of bounds in another: types that start with `t:` lie from `t:` up to `t;`, the next
//!   text that starts with no `t:`.
//! - The kind that later editions read is the stored one, else what follows the colon of the
//!   nodeType; where the type is pinned, that can be told by the stored fields alone.

use super::super::lower::MAX_GROUPS;
use super::super::{Attr, AttrTest, Edition, Kind, Literal, Op, Operand, Test};
use super::Construct;

/// Lists of tests, one of which holds.
type Lists = Vec<Vec<Test>>;

/// The lists of tests that `edition` has words for and whose union is `tests`.
pub(super) fn alternatives(tests: &[Test], edition: Edition) -> Result<Lists, Construct> {
    let mut ways: Lists = vec![Vec::with_capacity(tests.len())];
    let pinned = Pinned::of(tests);
    for test in tests {
        let lists = match test {
            Test::Attr(test) => attribute(test, &pinned, edition)?,
            Test::Type(_) | Test::Depth(_) => vec![vec![test.clone()]],
        };
        if ways.len().saturating_mul(lists.len()) > MAX_GROUPS {
            return Err(Construct::Size);
        }
        let mut longer = Vec::with_capacity(ways.len() * lists.len());
        for way in &ways {
            for list in &lists {
                longer.push([way.as_slice(), list.as_slice()].concat());
            }
        }
        ways = longer;
    }
    if ways.len() > 1 {
        ways.iter_mut().for_each(drop_idle_bounds);
    }
    Ok(ways)
}

/// Takes out bounds of the nodeType where a way pins it within them.
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

/// A list of values, one by one.
fn list(
    test: &AttrTest,
    values: &[Operand],
    pinned: &Pinned<'_>,
    edition: Edition,
) -> Result<Lists, Construct> {
    // Whether it is enough for one of the single tests to hold.
    let any = match (test.attr.kind(), &test.attr, test.op) {
        // The value of a node may be a list or not.
        (Kind::Dynamic, ..) | (_, Attr::Content, _) => return Err(Construct::List(test.clone())),
        (Kind::Tags, _, op) => op == Op::Ne,
        (_, _, op) => op == Op::Eq,
    };
    let mut ways: Lists = if any { Vec::new() } else { vec![Vec::new()] };
    for value in values {
        let one = AttrTest {
            attr: test.attr.clone(),
            op: test.op,
            operand: value.clone(),
        };
        let lists = attribute(&one, pinned, edition)?;
        if any {
            ways.extend(lists);
        } else {
            let joined = ways.iter().flat_map(|way| {
                let join = |list: &Vec<Test>| [way.as_slice(), list.as_slice()].concat();
                lists.iter().map(join)
            });
            ways = joined.collect();
        }
        if ways.len() > MAX_GROUPS {
            return Err(Construct::Size);
        }
    }
    Ok(ways)
}

/// A test of `attr` against a text.
fn text(attr: Attr, op: Op, text: impl Into<Box<str>>) -> Test {
    Test::Attr(AttrTest {
        attr,
        op,
        operand: Operand::Literal(Literal::Text(text.into())),
    })
}

/// The same comparison of another attribute.
fn of(attr: Attr, test: &AttrTest) -> Lists {
    vec![vec![Test::Attr(AttrTest {
        attr,
        op: test.op,
        operand: test.operand.clone(),
    })]]
}

/// The bounds of the whole types that start with `head:`.
fn with_kind(head: &str) -> [Test; 2] {
    [
        text(Attr::StoredType, Op::Ge, format!("{head}:")),
        text(Attr::StoredType, Op::Lt, format!("{head};")),
    ]
}

/// A test of the nodeType as later editions read it, over the stored one.
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

/// A test of the kind as later editions read it, over the stored fields.
fn split_kind(test: &AttrTest, pinned: &Pinned<'_>) -> Result<Lists, Construct> {
    let refused = || Err(Construct::Kind(test.clone()));
    let stored = Attr::StoredKind;
    let own = |present: bool| {
        Test::Attr(AttrTest {
            attr: Attr::StoredKind,
            op: if present { Op::Ne } else { Op::Eq },
            operand: Operand::Literal(Literal::Null),
        })
    };
    // Without a part behind a colon there is nothing but the stored kind.
    if pinned.plain {
        return Ok(of(stored, test));
    }
    let Operand::Literal(Literal::Text(kind)) = &test.operand else {
        return refused();
    };
    let same = || {
        Test::Attr(AttrTest {
            attr: Attr::StoredKind,
            op: test.op,
            operand: test.operand.clone(),
        })
    };
    match (test.op, pinned.sub, pinned.head) {
        (Op::Eq, Some(sub), _) if sub == &**kind => Ok(vec![vec![same()], vec![own(false)]]),
        (Op::Eq, Some(_), _) => Ok(vec![vec![same()]]),
        (Op::Ne, Some(sub), _) if sub == &**kind => Ok(vec![vec![own(true), same()]]),
        (Op::Ne, Some(_), _) => Ok(vec![vec![same()]]),
        // The nodeType is `head` or starts with `head:`, which is said beside this.
        (Op::Eq, None, Some(head)) => Ok(vec![
            vec![same()],
            vec![
                own(false),
                text(Attr::StoredType, Op::Eq, format!("{head}:{kind}")),
            ],
        ]),
        (Op::Ne, None, Some(head)) => Ok(vec![
            vec![own(true), same()],
            vec![
                own(false),
                text(Attr::StoredType, Op::Ne, format!("{head}:{kind}")),
            ],
        ]),
        _ => refused(),
    }
}

/// A test of the stored nodeType in the reading of `depth`.
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

/// A test of the stored kind in the reading of `depth`, where the type tells what is read for
/// an absent one.
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

/// What the tests of a step say about the nodeType.
#[derive(Default)]
struct Pinned<'a> {
    /// The whole type is known and has no colon.
    plain: bool,
    /// The whole type is known, and this follows its first colon.
    sub: Option<&'a str>,
    /// The type is this or starts with it and a colon.
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
