//! Properties of a normalized query: fingerprint, parameters, pinned key.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::query::{
    Attr, AttrTest, Chain, CompareOp, Controls, Literal, NodeStep, Operand, PickOrTest,
    SelectorQuery, Test,
};

impl SelectorQuery {
    /// The canonical text. Parses back to this query in the canonical edition.
    pub fn canonical_text(&self) -> String {
        let mut text = String::with_capacity(96);
        // Writing to a string cannot fail.
        let _ = write!(text, "{self}");
        text
    }

    /// The SHA-256 of the canonical text (LANGUAGE §9), in lower-case hex digits. Each call prints and hashes it.
    pub fn fingerprint(&self) -> String {
        let hash = Sha256::digest(self.canonical_text());
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn is_none(&self) -> bool {
        self.chains.is_empty()
    }

    /// What tests, picks and controls compare or count with, in the order of the query. It decides the
    /// numbers of a plan's slots.
    pub fn operands(&self) -> Vec<&Operand> {
        let mut found = Vec::new();
        self.each_operand(&mut |operand| found.push(operand));
        found
    }

    /// Calls `visit` with each of [`operands`](Self::operands).
    pub(in crate::query) fn each_operand<'q>(&'q self, visit: &mut impl FnMut(&'q Operand)) {
        self.chains.iter().for_each(|chain| of_chain(chain, visit));
        self.filters.iter().for_each(|test| of_test(test, visit));
        let Controls { limit, page, .. } = &self.controls;
        limit.iter().chain(page).for_each(visit);
    }

    pub fn has_params(&self) -> bool {
        !self.params().is_empty()
    }

    /// The names of the parameters without the dollar sign, sorted, each once.
    pub fn params(&self) -> Vec<&str> {
        let each = self
            .operands()
            .into_iter()
            .flat_map(|operand| match operand {
                Operand::List(values) => values,
                operand => std::slice::from_ref(operand),
            });
        let mut names: Vec<&str> = each.filter_map(param).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The key that every row has because every group's last step, or a filter of the final set,
    /// pins it by `=` (LANGUAGE §6). The default order is then key order.
    ///
    /// A parameter pins a key too, but not if it is bound to null; binding checks that.
    pub fn pinned_key(&self) -> Option<&Operand> {
        if let Some(key) = pinned(&self.filters) {
            return Some(key);
        }
        let mut keys = self.chains.iter().map(|chain| {
            let (_, step) = chain.steps.last()?;
            step.node()?.pinned_key()
        });
        let first = keys.next()??;
        keys.all(|key| key == Some(first)).then_some(first)
    }
}

impl NodeStep {
    /// The key that a test of this step pins by `=` (LANGUAGE §6).
    pub fn pinned_key(&self) -> Option<&Operand> {
        pinned(&self.tests)
    }
}

fn of_chain<'q>(chain: &'q Chain, visit: &mut impl FnMut(&'q Operand)) {
    for node in chain.steps.iter().filter_map(|(_, step)| step.node()) {
        node.tests.iter().for_each(|test| of_test(test, visit));
        for item in &node.tail {
            match item {
                PickOrTest::Test(test) => of_test(test, visit),
                PickOrTest::Nth(operand) => visit(operand),
                PickOrTest::First | PickOrTest::Last => {}
            }
        }
    }
}

// Recursion is as deep as conditions are inside each other, which is bounded.
fn of_test<'q>(test: &'q Test, visit: &mut impl FnMut(&'q Operand)) {
    match test {
        Test::Attr(test) => visit(&test.operand),
        Test::Inner(test) => test.any.iter().for_each(|chain| of_chain(chain, visit)),
        Test::Type(_) | Test::Depth(_) => {}
    }
}

fn pinned(tests: &[Test]) -> Option<&Operand> {
    let mut keys = tests.iter().filter_map(|test| match test {
        Test::Attr(AttrTest {
            attr: Attr::Key,
            op: CompareOp::Eq,
            operand:
                operand @ (Operand::Param(_)
                | Operand::Literal(Literal::Text(_) | Literal::Int(_) | Literal::Decimal(..))),
        }) => Some(operand),
        _ => None,
    });
    let key = keys.next()?;
    // Two parameters may be bound to different keys.
    keys.next().is_none().then_some(key)
}

fn param(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Param(name) => Some(name),
        Operand::Literal(_) | Operand::List(_) => None,
    }
}
