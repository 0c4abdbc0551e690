//! The one traversal of a query. Slot numbers, shapes and plans all follow its order.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::query::ir::{Axis, Chain, Controls, Operand, Pick, PickOrTest, Query, QueryStep, Test};

/// One event of a walk.
pub(super) enum QueryPart<'q> {
    /// A group begins; its steps follow.
    Chain(&'q Chain),
    /// A step begins. The tests of a node step follow, then its picks with the tests among them.
    Step(Axis, &'q QueryStep),
    /// A test; its operand follows, if it has one.
    Test(&'q Test),
    /// A pick; its operand follows, if it has one.
    Pick(&'q Pick),
    /// The step ends.
    StepEnd,
    /// The group ends.
    ChainEnd,
    /// The groups end; the tests of the final set follow.
    Filters(&'q [Test]),
    /// The row controls; their operands follow.
    Controls(&'q Controls),
    /// What fills the next slot.
    Operand(&'q Operand),
}

/// Calls `visit` with the parts of a query, in slot order.
#[inline]
pub(super) fn walk<'q>(query: &'q Query, visit: &mut impl FnMut(QueryPart<'q>)) {
    for chain in &query.chains {
        visit(QueryPart::Chain(chain));
        for (axis, step) in &chain.steps {
            visit(QueryPart::Step(*axis, step));
            if let QueryStep::Node(node) = step {
                node.tests.iter().for_each(|test| walk_test(test, visit));
                node.tail.iter().for_each(|tail| walk_tail(tail, visit));
            }
            visit(QueryPart::StepEnd);
        }
        visit(QueryPart::ChainEnd);
    }
    visit(QueryPart::Filters(&query.filters));
    query.filters.iter().for_each(|test| walk_test(test, visit));
    let Controls { limit, page, .. } = &query.controls;
    visit(QueryPart::Controls(&query.controls));
    for operand in [limit, page].into_iter().flatten() {
        visit(QueryPart::Operand(operand));
    }
}

#[inline]
fn walk_test<'q>(test: &'q Test, visit: &mut impl FnMut(QueryPart<'q>)) {
    visit(QueryPart::Test(test));
    if let Test::Attr(test) = test {
        visit(QueryPart::Operand(&test.operand));
    }
}

#[inline]
fn walk_tail<'q>(tail: &'q PickOrTest, visit: &mut impl FnMut(QueryPart<'q>)) {
    match tail {
        PickOrTest::Test(test) => walk_test(test, visit),
        PickOrTest::Pick(pick) => {
            visit(QueryPart::Pick(pick));
            if let Pick::Nth(operand) = pick {
                visit(QueryPart::Operand(operand));
            }
        }
    }
}

/// The operands that fill a plan's slots, in slot order.
pub type Sources<'q> = SmallVec<[&'q Operand; 8]>;

/// The operands of `query` in slot order. Linear in the query.
pub fn sources(query: &Query) -> Sources<'_> {
    let mut sources = Sources::new();
    walk(query, &mut |part| {
        if let QueryPart::Operand(operand) = part {
            sources.push(operand);
        }
    });
    sources
}

/// Everything of a query but its literals and its time, as bytes. Queries of equal shape have
/// the same plan.
///
/// The bytes are what the parts feed to a hasher. Derived hashes feed every field, and the length
/// of a list before its items, so different shapes have different bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanShape(SmallVec<[u8; 128]>);

impl PlanShape {
    /// The shape of a query. Linear in the query; small queries take no allocation.
    pub fn of(query: &Query) -> Self {
        // Every list is preceded by its length and every variant by a number, so no two queries of
        // different structure have the same bytes. Operands are left out: they are what queries of
        // one shape differ in.
        let mut shape = Self::default();
        walk(query, &mut |part| match part {
            QueryPart::Chain(chain) => chain.steps.len().hash(&mut shape),
            QueryPart::Step(axis, step) => {
                axis.hash(&mut shape);
                match step {
                    QueryStep::Zone(zone) => (0_u8, zone).hash(&mut shape),
                    QueryStep::Node(node) => {
                        (1_u8, node.tests.len(), node.tail.len()).hash(&mut shape);
                    }
                }
            }
            QueryPart::Test(test) => match test {
                Test::Type(test) => (0_u8, test).hash(&mut shape),
                Test::Depth(depths) => (1_u8, depths).hash(&mut shape),
                Test::Attr(test) => (2_u8, &test.attr, test.op).hash(&mut shape),
            },
            QueryPart::Pick(pick) => (3_u8, std::mem::discriminant(pick)).hash(&mut shape),
            // No chain has 0 steps: this ends their list.
            QueryPart::Filters(tests) => (0_usize, tests.len()).hash(&mut shape),
            QueryPart::Controls(controls) => {
                (controls.order, controls.mode, controls.unique).hash(&mut shape);
                (controls.limit.is_some(), controls.page.is_some()).hash(&mut shape);
            }
            QueryPart::StepEnd | QueryPart::ChainEnd | QueryPart::Operand(_) => {}
        });
        shape
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

// A hasher that keeps what it is fed, because the bytes themselves are the key: two shapes with the
// same hash would share a plan. Most of what is fed are small numbers, which take a byte each.
impl Hasher for PlanShape {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.0.push(byte);
    }

    #[inline]
    fn write_usize(&mut self, length: usize) {
        // Nearly all lengths take one byte; the highest byte announces eight more.
        match u8::try_from(length) {
            Ok(length) if length < u8::MAX => self.0.push(length),
            _ => {
                self.0.push(u8::MAX);
                self.write(&length.to_le_bytes());
            }
        }
    }

    #[inline]
    fn write_isize(&mut self, discriminant: isize) {
        // A discriminant; an enum of a query has at most 256 variants.
        self.0.push(discriminant as u8);
    }

    fn finish(&self) -> u64 {
        // Not called: the bytes are compared.
        0
    }
}
