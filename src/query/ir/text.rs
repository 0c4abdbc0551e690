//! Canonical text, the one spelling of a query (LANGUAGE §9).
//!
//! It parses back to the same query in the canonical edition. A single step with only attribute
//! tests is a search and prints with braces. Everything else prints as chains, followed by filters
//! in braces and by controls.

use std::fmt::{self, Display, Formatter};

use super::depth::DepthSet;
use super::name::{MODES, ORDERS};
use super::query::{
    Address, Attr, AttrTest, Axis, Chain, Class, CompareOp, Controls, InnerKind, InnerTest,
    Literal, NodeStep, Operand, PickOrTest, QueryStep, QueryTime, RangeEnd, SelectorQuery, Test,
    TypeTest,
};
use crate::query::syntax::words::tag_text;
use crate::query::syntax::{is_name, joined, quote};

impl Display for SelectorQuery {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.time != QueryTime::Working {
            write!(f, "{} ", self.time)?;
        }
        if self.chains.is_empty() {
            f.write_str("none")?;
            return self.controls.fmt(f);
        }
        if let Some(tests) = self.search() {
            write_props(f, '{', tests, '}')?;
            if !self.filters.is_empty() {
                f.write_str(" ")?;
                write_props(f, '[', &self.filters, ']')?;
            }
        } else {
            joined(f, &self.chains, ", ")?;
            if !self.filters.is_empty() {
                f.write_str(" ")?;
                write_props(f, '{', &self.filters, '}')?;
            }
        }
        self.controls.fmt(f)
    }
}

impl SelectorQuery {
    /// The tests of a search, if the selector is one.
    pub(super) fn search(&self) -> Option<&[Test]> {
        let [chain] = &*self.chains else {
            return None;
        };
        let [(_, QueryStep::Node(NodeStep { tests, tail }))] = &*chain.steps else {
            return None;
        };
        let only_attrs = !tests.is_empty() && tests.iter().all(|test| test.attr().is_some());
        (tail.is_empty() && only_attrs).then_some(tests)
    }
}

fn write_props(f: &mut Formatter<'_>, open: char, tests: &[Test], close: char) -> fmt::Result {
    write!(f, "{open}")?;
    joined(f, tests.iter().filter_map(Test::attr), ", ")?;
    write!(f, "{close}")
}

impl Display for QueryTime {
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
        let place = match self.steps.len() {
            1 => StepPlace::Sole,
            _ => StepPlace::Chain,
        };
        for (index, (axis, step)) in self.steps.iter().enumerate() {
            match axis {
                _ if index == 0 => {}
                Axis::Descendant => f.write_str(" ")?,
                Axis::Child => f.write_str(" > ")?,
            }
            match step {
                QueryStep::Zone(zone) => write!(f, ":{}", zone.as_str())?,
                QueryStep::Node(node) => node.write(f, place)?,
            }
        }
        Ok(())
    }
}

impl Display for NodeStep {
    /// The step as one of several in its group.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, StepPlace::Chain)
    }
}

/// What a step is written as, which decides what some words mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepPlace {
    /// One of several of a group.
    Chain,
    /// The whole group, where `^seq` would mean the turns.
    Sole,
    /// In `:not(…)` and its like, where each word is a test.
    Test,
}

impl NodeStep {
    fn write(&self, f: &mut Formatter<'_>, place: StepPlace) -> fmt::Result {
        let mut started = false;
        let depths = self.tests.iter().find_map(Test::depth);
        let mut depth_written = depths.is_none();
        for test in &self.tests {
            if let Test::Type(test) = test {
                started = true;
                match (test, depths) {
                    (TypeTest::Root, _) => f.write_str("^root")?,
                    (TypeTest::Seq, _) if place == StepPlace::Sole => {
                        f.write_str("[stored_type='^seq']")?;
                    }
                    (TypeTest::Seq, _) => f.write_str("^seq")?,
                    (TypeTest::Anchor, Some(set)) => {
                        write!(f, "depth({set})")?;
                        depth_written = true;
                    }
                    // Unreachable: an anchor always has a depth.
                    (TypeTest::Anchor, None) => f.write_str("depth(>=-1)")?,
                    (TypeTest::TurnOrAnchor, _) => f.write_str(".mt")?,
                    (TypeTest::Class(class), _) => write!(f, ".{}", class.word())?,
                }
            }
        }
        let attrs = || self.tests.iter().filter_map(Test::attr);
        for test in attrs().filter(|test| test.tag().is_none()) {
            write!(f, "[{test}]")?;
            started = true;
        }
        for tag in attrs().filter_map(AttrTest::tag) {
            // Only at the start of a group can a tag start a step.
            if !started {
                f.write_str("*")?;
                started = true;
            }
            f.write_str(&tag_text(tag))?;
        }
        if !started && !(place == StepPlace::Test && (!depth_written || self.has_inner())) {
            f.write_str("*")?;
        }
        if let (false, Some(set)) = (depth_written, depths) {
            if self.takes_depth(set, place) {
                write!(f, ":depth({set})")?;
            } else {
                write!(f, ":is(:depth({set}))")?;
            }
        }
        let mut inner = self.tests.iter().filter_map(Test::inner);
        inner.try_for_each(|test| test.fmt(f))?;
        self.tail.iter().try_for_each(|item| item.fmt(f))
    }

    fn has_inner(&self) -> bool {
        self.tests.iter().any(|test| test.inner().is_some())
    }

    /// Whether `:depth(…)` on the step means a test of the depth and nothing else: alone it means `depth(…)`, and
    /// beside a plain turn type it adds `^sys` and `^ah` (LANGUAGE §4).
    fn takes_depth(&self, set: &DepthSet, place: StepPlace) -> bool {
        let turn = Test::Type(TypeTest::Class(Class::Turn));
        let with_regions = set.ranges().first().is_some_and(|range| range.0 < 1);
        let is_basis = |test: &Test| test.depth().is_none();
        let alone = place != StepPlace::Test
            && !self.tests.iter().any(is_basis)
            && !self
                .tail
                .iter()
                .filter_map(PickOrTest::test)
                .any(|test| matches!(test, Test::Attr(_) | Test::Inner(_)));
        !(alone || with_regions && self.tests.contains(&turn))
    }
}

impl Display for InnerTest<Chain> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ":{}", self.kind.name())?;
        if self.any.is_empty() {
            return Ok(());
        }
        for (index, chain) in self.any.iter().enumerate() {
            f.write_str(if index == 0 { "(" } else { ", " })?;
            match &*chain.steps {
                [(_, QueryStep::Node(test))] if self.kind.takes_tests() => {
                    test.write(f, StepPlace::Test)?;
                }
                [(Axis::Child, _), ..] if self.kind == InnerKind::Has => write!(f, "> {chain}")?,
                _ => chain.fmt(f)?,
            }
        }
        if let Some(within) = self.within {
            write!(f, ", within={within}")?;
        }
        f.write_str(")")
    }
}

impl Display for PickOrTest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str(":first"),
            Self::Last => f.write_str(":last"),
            Self::Nth(number) => write!(f, ":nth({number})"),
            // An anchor after a pick is implied: its step has no test but the depth.
            Self::Test(Test::Type(_)) => Ok(()),
            Self::Test(Test::Depth(set)) => write!(f, ":depth({set})"),
            Self::Test(Test::Inner(test)) => test.fmt(f),
            // The only attribute tests after a pick are these three.
            Self::Test(Test::Attr(test)) => f.write_str(match test.op {
                CompareOp::Lt => ":pre",
                CompareOp::Gt => ":post",
                _ => ":core",
            }),
        }
    }
}

impl Display for DepthSet {
    /// The text between the parentheses of `depth(…)`.
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

impl Display for AttrTest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.attr.fmt(f)?;
        self.op.fmt(f)?;
        self.operand.fmt(f)
    }
}

impl Display for Attr {
    /// The name, in quotes if a bare one would be invalid or mean something else.
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

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::Param(name) => write!(f, "${name}"),
            Self::List(values) => {
                f.write_str("[")?;
                joined(f, values, ", ")?;
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
            Self::Decimal(_, written) | Self::Spelled(written) => f.write_str(written),
            Self::Text(text) => f.write_str(&quote(text)),
        }
    }
}

impl Display for Controls {
    /// Each control, after a space.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((mode, _)) = MODES.iter().find(|(_, mode)| *mode == self.mode) {
            write!(f, " @mode={mode}")?;
        }
        if let Some((order, _)) = ORDERS.iter().find(|(_, order)| *order == self.order) {
            write!(f, " @order={order}")?;
        }
        if self.unique {
            f.write_str(" @unique")?;
        }
        for (name, count) in [("limit", &self.limit), ("p", &self.page)] {
            if let Some(count) = count {
                write!(f, " @{name}={count}")?;
            }
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
