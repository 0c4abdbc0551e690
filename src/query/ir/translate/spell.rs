//! Prints queries as `v0.1` and `depth` spell them. The query must be expressible.

use std::fmt::{self, Display, Formatter, Write};

use crate::query::ir::depth::DepthSet;
use crate::query::ir::edition::Edition;
use crate::query::ir::lower::{is_pseudo_part, meant_type};
use crate::query::ir::query::{
    Attr, AttrTest, Literal, NodeStep, Op, Operand, Query, Tail, Test, Time, TypeTest,
};
use crate::query::syntax::words::CLASSES;
use crate::query::syntax::{is_name, quote};

/// `query` as a text of `edition`.
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
            chain.write(f, |f, step| write_step(f, step, edition))?;
        }
        query.controls.fmt(f)?;
        for test in query.filters.iter().filter_map(Test::attr) {
            f.write_str(" ")?;
            write_test(f, test)?;
        }
        Ok(())
    }
}

fn write_step(f: &mut Formatter<'_>, step: &NodeStep, edition: Edition) -> fmt::Result {
    let mut depths = step.tests.iter().find_map(Test::depth);
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
            // The depth is printed below.
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
        .filter_map(Test::attr)
        .filter(|test| {
            word.as_ref().is_none_or(|word| {
                !word
                    .replaces
                    .iter()
                    .any(|replaced| std::ptr::eq(*replaced, *test))
            })
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
            Tail::Test(Test::Depth(set)) => write_depths(f, set, edition)?,
            item => item.fmt(f)?,
        }
    }
    Ok(())
}

/// A type, and the tests that it replaces.
struct Word<'a> {
    text: String,
    replaces: Vec<&'a AttrTest>,
}

impl<'a> Word<'a> {
    /// `.cb:summary` or `.foo`, if the tests pin a type.
    fn of(tests: &'a [Test], edition: Edition) -> Option<Self> {
        let equals = |wanted: &Attr| {
            let mut found = tests.iter().filter_map(Test::attr).filter_map(|test| {
                match (&test.attr, test.op, &test.operand) {
                    (attr, Op::Eq, Operand::Literal(Literal::Text(text))) if attr == wanted => {
                        Some((test, &**text))
                    }
                    _ => None,
                }
            });
            found.next().filter(|_| found.next().is_none())
        };
        let v01 = edition == Edition::V01;
        let attr = if v01 {
            Attr::StoredType
        } else {
            Attr::NodeType
        };
        let (test, head) = equals(&attr)?;
        let (text, replaces) = match equals(&Attr::Kind) {
            _ if v01 => (head.to_owned(), vec![test]),
            _ if head.contains(':') => return None,
            Some((kind, sub)) => (format!("{head}:{sub}"), vec![test, kind]),
            None => (head.to_owned(), vec![test]),
        };
        // `.cb` would test the class. A part that is nearly a pseudo-class, or a type that is
        // nearly a class, would be a warning.
        let mut parts = text.split(':');
        let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
            && is_name(&text)
            && !CLASSES.contains(&&*text)
            && meant_type(text.split(':').next().unwrap_or_default()).is_none()
            && parts.all(|part| !part.is_empty() && !is_pseudo_part(part));
        plain.then_some(Self { text, replaces })
    }
}

/// The id that a test pins, if `#` can express it.
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
            .all(|part| !part.is_empty() && !is_pseudo_part(part));
    if plain {
        write!(f, "#{id}")
    } else {
        write!(f, "#{}", quote(id))
    }
}

/// A test in brackets. The stored fields are called `nodeType` and `kind` in every edition.
fn write_test(f: &mut Formatter<'_>, test: &AttrTest) -> fmt::Result {
    let AttrTest { attr, op, operand } = test;
    match attr {
        Attr::StoredType => write!(f, "[nodeType{op}{operand}]"),
        Attr::StoredKind => write!(f, "[kind{op}{operand}]"),
        _ => write!(f, "[{test}]"),
    }
}

/// `:depth(…)`. `v0.1` has no `>=`, so an open end is the largest i64 there.
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
