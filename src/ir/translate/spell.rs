//! Prints queries in the words of `v0.1` and `depth`.
//!
//! Whatever has no words was taken away or refused before; what is left is spelling.

use std::fmt::{self, Display, Formatter, Write};

use crate::syntax::{is_name, quote};

use super::super::lower::near_pseudo;
use super::super::{
    Attr, AttrTest, Axis, DepthSet, Edition, Literal, NodeStep, Op, Operand, Pick, Query, Step,
    Tail, Test, Time, TypeTest,
};

/// `query` in the words of `edition`.
pub(super) fn query(query: &Query, edition: Edition) -> String {
    let mut text = String::with_capacity(96);
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", Spelled { query, edition });
    text
}

struct Spelled<'a> {
    query: &'a Query,
    edition: Edition,
}

impl Display for Spelled<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { query, edition } = *self;
        if query.time != Time::Working {
            write!(f, "{} ", query.time)?;
        }
        if query.is_none() {
            f.write_str("none")?;
        }
        for (index, chain) in query.chains.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            for (at, (axis, step)) in chain.steps.iter().enumerate() {
                match axis {
                    _ if at == 0 => {}
                    Axis::Descendant => f.write_str(" ")?,
                    Axis::Child => f.write_str(" > ")?,
                }
                match step {
                    Step::Zone(zone) => zone.fmt(f)?,
                    Step::Node(step) => write_step(f, step, edition)?,
                }
            }
        }
        query.controls.fmt(f)?;
        for test in query.filters.iter().filter_map(attr_of) {
            f.write_str(" ")?;
            write_test(f, test)?;
        }
        Ok(())
    }
}

fn attr_of(test: &Test) -> Option<&AttrTest> {
    match test {
        Test::Attr(test) => Some(test),
        Test::Type(_) | Test::Depth(_) => None,
    }
}

fn write_step(f: &mut Formatter<'_>, step: &NodeStep, edition: Edition) -> fmt::Result {
    let mut depths = step.tests.iter().find_map(|test| match test {
        Test::Depth(set) => Some(set),
        Test::Type(_) | Test::Attr(_) => None,
    });
    let mut started = false;
    let mut typed = false;
    for test in &step.tests {
        let Test::Type(test) = test else { continue };
        let region = depths.and_then(|set| match set.ranges() {
            [(0, 0)] => Some("^ah"),
            [(-1, -1)] => Some("^sys"),
            _ => None,
        });
        started = true;
        typed = true;
        match (test, region, depths) {
            (TypeTest::Root, ..) => f.write_str("^root")?,
            (TypeTest::Seq, ..) => f.write_str("^seq")?,
            (TypeTest::Anchor, Some(region), _) => {
                f.write_str(region)?;
                depths = None;
            }
            (TypeTest::Anchor, None, Some(set)) if edition != Edition::V01 => {
                write!(f, "depth({set})")?;
                depths = None;
            }
            // The depth follows.
            (TypeTest::Anchor, ..) => f.write_str("*")?,
            (TypeTest::TurnOrAnchor, ..) => f.write_str(".mt")?,
            (TypeTest::Class(class), ..) => write!(f, ".{}", class.word())?,
        }
    }
    let word = if typed {
        None
    } else {
        Word::of(&step.tests, edition)
    };
    if let Some(word) = &word {
        write!(f, ".{}", word.text)?;
        started = true;
    }
    let left: Vec<&AttrTest> = step
        .tests
        .iter()
        .filter_map(attr_of)
        .filter(|test| {
            word.as_ref()
                .is_none_or(|word| !word.says.iter().any(|said| std::ptr::eq(*said, *test)))
        })
        .collect();
    for id in left.iter().filter_map(|test| plain_id(test)) {
        write_id(f, id)?;
        started = true;
    }
    for test in left.iter().filter(|test| plain_id(test).is_none()) {
        write_test(f, test)?;
        started = true;
    }
    if !started {
        f.write_str("*")?;
    }
    if let Some(set) = depths {
        write_depths(f, set, edition)?;
    }
    for item in &step.tail {
        match item {
            Tail::Pick(Pick::First) => f.write_str(":first")?,
            Tail::Pick(Pick::Last) => f.write_str(":last")?,
            Tail::Pick(Pick::Nth(number)) => write!(f, ":nth({number})")?,
            Tail::Test(Test::Type(_)) => {}
            Tail::Test(Test::Depth(set)) => write_depths(f, set, edition)?,
            Tail::Test(Test::Attr(test)) => f.write_str(match test.op {
                Op::Lt => ":pre",
                Op::Gt => ":post",
                _ => ":core",
            })?,
        }
    }
    Ok(())
}

/// A type word, and the tests it stands for.
struct Word<'a> {
    text: String,
    says: Vec<&'a AttrTest>,
}

impl<'a> Word<'a> {
    /// `.cb:summary` or `.foo`, where the tests are such.
    fn of(tests: &'a [Test], edition: Edition) -> Option<Self> {
        let equals = |wanted: &Attr| {
            let mut found = tests.iter().filter_map(attr_of).filter_map(|test| {
                match (&test.attr, test.op, &test.operand) {
                    (attr, Op::Eq, Operand::Literal(Literal::Text(text))) if attr == wanted => {
                        Some((test, &**text))
                    }
                    _ => None,
                }
            });
            found.next().filter(|_| found.next().is_none())
        };
        let word = if edition == Edition::V01 {
            let (test, whole) = equals(&Attr::StoredType)?;
            Self {
                text: whole.to_owned(),
                says: vec![test],
            }
        } else {
            let (test, head) = equals(&Attr::NodeType)?;
            match equals(&Attr::Kind) {
                _ if head.contains(':') => return None,
                Some((kind, sub)) => Self {
                    text: format!("{head}:{sub}"),
                    says: vec![test, kind],
                },
                None => Self {
                    text: head.to_owned(),
                    says: vec![test],
                },
            }
        };
        // Alone, the words of the classes test the class; a part that is nearly a pseudo-class is
        // quoted, so that nobody has to wonder.
        let classes = ["mt", "mc", "cb", "seg", "cont", "block"];
        let mut parts = word.text.split(':');
        let plain = word
            .text
            .starts_with(|first: char| first.is_ascii_alphabetic())
            && is_name(&word.text)
            && !classes.contains(&&*word.text)
            && parts.all(|part| !part.is_empty() && near_pseudo(part).is_none());
        plain.then_some(word)
    }
}

/// The id that a test pins.
fn plain_id(test: &AttrTest) -> Option<&str> {
    match (&test.attr, test.op, &test.operand) {
        (Attr::Id, Op::Eq, Operand::Literal(Literal::Text(id))) if !id.is_empty() => Some(id),
        _ => None,
    }
}

fn write_id(f: &mut Formatter<'_>, id: &str) -> fmt::Result {
    let plain = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-:".contains(&byte))
        && id
            .split(':')
            .all(|part| !part.is_empty() && near_pseudo(part).is_none());
    if plain {
        write!(f, "#{id}")
    } else {
        write!(f, "#{}", quote(id))
    }
}

/// A test in brackets; the edition gives `nodeType` and `kind` their meaning.
fn write_test(f: &mut Formatter<'_>, test: &AttrTest) -> fmt::Result {
    let AttrTest { attr, op, operand } = test;
    match attr {
        Attr::StoredType => write!(f, "[nodeType{op}{operand}]"),
        Attr::StoredKind => write!(f, "[kind{op}{operand}]"),
        _ => write!(f, "[{test}]"),
    }
}

/// `:depth(…)`. The first edition has no `>=`; no session has more turns than the largest number.
fn write_depths(f: &mut Formatter<'_>, set: &DepthSet, edition: Edition) -> fmt::Result {
    if edition != Edition::V01 {
        return write!(f, ":depth({set})");
    }
    f.write_str(":depth(")?;
    for (index, (low, high)) in set.ranges().iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        if low == high {
            write!(f, "{low}")?;
        } else {
            write!(f, "{low}..{high}")?;
        }
    }
    f.write_str(")")
}
