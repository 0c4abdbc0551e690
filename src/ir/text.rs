//! Canonical text: the one way to write a query down (LANGUAGE §9).
//!
//! It parses back, in the canonical edition, to the same query. A single step that tests
//! attributes alone is a search and prints with braces; everything else prints as chains, with
//! filters in braces behind them and controls at the end.

use std::fmt::{self, Display, Formatter};

use crate::syntax::{is_name, quote};

use super::{
    Address, Attr, AttrTest, Axis, Chain, Class, Controls, DepthSet, Literal, Mode, NodeStep, Op,
    Operand, Order, Pick, Query, RangeEnd, Step, Tail, Test, Time, TypeTest, Zone,
};

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.time != Time::Working {
            write!(f, "{} ", self.time)?;
        }
        if self.chains.is_empty() {
            f.write_str("none")?;
            return self.controls.fmt(f);
        }
        if let Some(tests) = self.search() {
            write_props(f, '{', tests.iter().filter_map(attr_of), '}')?;
            if !self.filters.is_empty() {
                f.write_str(" ")?;
                write_props(f, '[', self.filters.iter().filter_map(attr_of), ']')?;
            }
        } else {
            for (index, chain) in self.chains.iter().enumerate() {
                if index > 0 {
                    f.write_str(", ")?;
                }
                chain.fmt(f)?;
            }
            if !self.filters.is_empty() {
                f.write_str(" ")?;
                write_props(f, '{', self.filters.iter().filter_map(attr_of), '}')?;
            }
        }
        self.controls.fmt(f)
    }
}

impl Query {
    /// The tests, where the query is a search: one step of attribute tests alone.
    fn search(&self) -> Option<&[Test]> {
        let [chain] = &*self.chains else {
            return None;
        };
        match &*chain.steps {
            [(_, Step::Node(step))]
                if step.tail.is_empty()
                    && !step.tests.is_empty()
                    && step.tests.iter().all(|test| matches!(test, Test::Attr(_))) =>
            {
                Some(&step.tests)
            }
            _ => None,
        }
    }
}

fn attr_of(test: &Test) -> Option<&AttrTest> {
    match test {
        Test::Attr(test) => Some(test),
        Test::Type(_) | Test::Depth(_) => None,
    }
}

fn write_props<'a>(
    f: &mut Formatter<'_>,
    open: char,
    tests: impl Iterator<Item = &'a AttrTest>,
    close: char,
) -> fmt::Result {
    write!(f, "{open}")?;
    for (index, test) in tests.enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        test.fmt(f)?;
    }
    write!(f, "{close}")
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Working => Ok(()),
            Self::At(address) => address.fmt(f),
            Self::All => f.write_str("@*"),
            Self::Range(from, to) => write!(f, "{from}..{to}"),
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Back(0) => f.write_str("@t0"),
            Self::Back(commits) => write!(f, "@t-{commits}"),
            Self::Cycle(cycle) => write!(f, "@c{cycle}"),
        }
    }
}

impl Display for RangeEnd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Back(commits) => Address::Back(*commits).fmt(f),
            Self::Oldest => f.write_str("@t-*"),
            Self::Cycle(cycle) => Address::Cycle(*cycle).fmt(f),
        }
    }
}

impl Display for Chain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sole = self.steps.len() == 1;
        for (index, (axis, step)) in self.steps.iter().enumerate() {
            match axis {
                _ if index == 0 => {}
                Axis::Descendant => f.write_str(" ")?,
                Axis::Child => f.write_str(" > ")?,
            }
            match step {
                Step::Zone(zone) => zone.fmt(f)?,
                Step::Node(node) => node.write(f, sole)?,
            }
        }
        Ok(())
    }
}

impl Display for Zone {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pre => ":pre",
            Self::Core => ":core",
            Self::Post => ":post",
        })
    }
}

impl Display for NodeStep {
    /// The step as it stands among others.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl NodeStep {
    /// `sole`: the step is its whole group, where `^seq` would mean the turns.
    fn write(&self, f: &mut Formatter<'_>, sole: bool) -> fmt::Result {
        let mut started = false;
        let depths = self.tests.iter().find_map(|test| match test {
            Test::Depth(set) => Some(set),
            Test::Type(_) | Test::Attr(_) => None,
        });
        let mut depth_written = depths.is_none();
        for test in &self.tests {
            if let Test::Type(test) = test {
                started = true;
                match (test, depths) {
                    (TypeTest::Root, _) => f.write_str("^root")?,
                    (TypeTest::Seq, _) if sole => f.write_str("[stored_type='^seq']")?,
                    (TypeTest::Seq, _) => f.write_str("^seq")?,
                    (TypeTest::Anchor, Some(set)) => {
                        write!(f, "depth({set})")?;
                        depth_written = true;
                    }
                    // Stands beside a depth by construction.
                    (TypeTest::Anchor, None) => f.write_str("depth(>=-1)")?,
                    (TypeTest::TurnOrAnchor, _) => f.write_str(".mt")?,
                    (TypeTest::Class(class), _) => write!(f, ".{}", class.word())?,
                }
            }
        }
        let tagged = |test: &AttrTest| -> Option<Box<str>> {
            match (&test.attr, test.op, &test.operand) {
                (Attr::Tags, Op::Eq, Operand::Literal(Literal::Text(tag))) => Some(tag.clone()),
                _ => None,
            }
        };
        for test in self.tests.iter().filter_map(attr_of) {
            if tagged(test).is_none() {
                write!(f, "[{test}]")?;
                started = true;
            }
        }
        for tag in self.tests.iter().filter_map(attr_of).filter_map(tagged) {
            // A tag cannot start a step, except at the start of a group.
            if !started {
                f.write_str("*")?;
                started = true;
            }
            write_tag(f, &tag)?;
        }
        if !started {
            f.write_str("*")?;
        }
        if let (false, Some(set)) = (depth_written, depths) {
            write!(f, ":depth({set})")?;
        }
        for item in &self.tail {
            match item {
                Tail::Pick(Pick::First) => f.write_str(":first")?,
                Tail::Pick(Pick::Last) => f.write_str(":last")?,
                Tail::Pick(Pick::Nth(number)) => write!(f, ":nth({number})")?,
                // The anchor of a depth behind a pick needs no word: the step has no other test.
                Tail::Test(Test::Type(_)) => {}
                Tail::Test(Test::Depth(set)) => write!(f, ":depth({set})")?,
                Tail::Test(Test::Attr(test)) => write_offset_pseudo(f, test)?,
            }
        }
        Ok(())
    }
}

/// The only attribute tests behind a pick are the pseudo-classes of the offset.
fn write_offset_pseudo(f: &mut Formatter<'_>, test: &AttrTest) -> fmt::Result {
    f.write_str(match test.op {
        Op::Lt => ":pre",
        Op::Gt => ":post",
        _ => ":core",
    })
}

fn write_tag(f: &mut Formatter<'_>, tag: &str) -> fmt::Result {
    let plain = !tag.is_empty()
        && tag
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if plain {
        write!(f, "+{tag}")
    } else {
        write!(f, "+{}", quote(tag))
    }
}

impl Display for DepthSet {
    /// As it stands between the parentheses of `depth(…)`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, (low, high)) in self.ranges().iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match *high {
                i64::MAX => write!(f, ">={low}")?,
                high if high == *low => write!(f, "{low}")?,
                high => write!(f, "{low}..{high}")?,
            }
        }
        Ok(())
    }
}

/// A test as it stands in brackets.
pub(super) fn test_text(test: &AttrTest) -> String {
    test.to_string()
}

impl Display for AttrTest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.attr.fmt(f)?;
        self.op.fmt(f)?;
        self.operand.fmt(f)
    }
}

impl Display for Attr {
    /// The name, in quotes where a bare one would mean something else or nothing.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Custom(name)
                if !is_name(name) || !matches!(Self::from_name(name), Self::Custom(_)) =>
            {
                f.write_str(&quote(name))
            }
            attr => f.write_str(attr.name()),
        }
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "=",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Matches => "~",
        })
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::Param(name) => write!(f, "${name}"),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Int(number) => number.fmt(f),
            Self::Decimal(_, written) => f.write_str(written),
            Self::Text(text) => f.write_str(&quote(text)),
        }
    }
}

impl Display for Controls {
    /// Each control behind a space; nothing where there are none.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            Order::Default => None,
            Order::Pre => Some("pre"),
            Order::Post => Some("post"),
            Order::Bfs => Some("bfs"),
            Order::Path => Some("path"),
            Order::TurnDesc => Some("turn:desc,pre"),
            Order::TurnAsc => Some("turn:asc,pre"),
        };
        let mode = match self.mode {
            Mode::Pairwise => None,
            Mode::Union => Some("union"),
            Mode::Latest => Some("latest"),
            Mode::Reduce => Some("reduce"),
        };
        if let Some(mode) = mode {
            write!(f, " @mode={mode}")?;
        }
        if let Some(order) = order {
            write!(f, " @order={order}")?;
        }
        if self.unique {
            f.write_str(" @unique")?;
        }
        if let Some(limit) = &self.limit {
            write!(f, " @limit={limit}")?;
        }
        if let Some(page) = &self.page {
            write!(f, " @p={page}")?;
        }
        Ok(())
    }
}

/// The word of a class, for messages.
impl Display for Class {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
