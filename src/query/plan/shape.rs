//! What decides the plan of a query: its shape, which is all but its literals.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::query::ir::{Chain, Operand, PickOrTest, QueryStep, SelectorQuery, Test};

/// The operands that fill a plan's slots, in slot order.
pub type Sources<'q> = SmallVec<[&'q Operand; 8]>;

/// The operands of `query` in slot order. Linear in the query.
pub fn sources(query: &SelectorQuery) -> Sources<'_> {
    let mut found = Sources::new();
    query.each_operand(&mut |operand| found.push(operand));
    found
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
    pub fn from_query(query: &SelectorQuery) -> Self {
        // Every list is preceded by its length and every variant by a number, so no two queries of
        // different structure have the same bytes. Operands are left out: they are what queries of
        // one shape differ in.
        let mut shape = Self::default();
        query.chains.iter().for_each(|chain| shape.chain(chain));
        // No chain has 0 steps: this ends their list.
        (0_usize, query.filters.len()).hash(&mut shape);
        query.filters.iter().for_each(|test| shape.test(test));
        let controls = &query.controls;
        (controls.order, controls.mode, controls.unique).hash(&mut shape);
        (controls.limit.is_some(), controls.page.is_some()).hash(&mut shape);
        shape
    }

    fn chain(&mut self, chain: &Chain) {
        chain.steps.len().hash(self);
        for (axis, step) in &chain.steps {
            axis.hash(self);
            match step {
                QueryStep::Zone(zone) => (0_u8, zone).hash(self),
                QueryStep::Node(node) => {
                    (1_u8, node.tests.len(), node.tail.len()).hash(self);
                    node.tests.iter().for_each(|test| self.test(test));
                    node.tail.iter().for_each(|item| match item {
                        PickOrTest::Test(test) => self.test(test),
                        pick => (3_u8, std::mem::discriminant(pick)).hash(self),
                    });
                }
            }
        }
    }

    fn test(&mut self, test: &Test) {
        match test {
            Test::Type(test) => (0_u8, test).hash(self),
            Test::Depth(depths) => (1_u8, depths).hash(self),
            Test::Attr(test) => (2_u8, &test.attr, test.op).hash(self),
            // 3 are picks. Recursion is as deep as conditions are inside each other, which is bounded.
            Test::Inner(test) => {
                (4_u8, test.kind, test.within, test.any.len()).hash(self);
                test.any.iter().for_each(|chain| self.chain(chain));
            }
        }
    }

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
