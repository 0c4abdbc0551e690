//! What can be read off a normalized query: its fingerprint, its parameters, the key it pins.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};

use super::{
    Attr, AttrTest, Controls, Literal, NodeStep, Op, Operand, Pick, Query, Step, Tail, Test,
};

/// The SHA-256 of a query's canonical text (LANGUAGE §9). Prints as lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash of a canonical text that is at hand already.
    #[must_use]
    pub fn of_text(canonical: &str) -> Self {
        Self(Sha256::digest(canonical.as_bytes()).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Query {
    /// The canonical text. Parses back, in the canonical edition, to this query.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        let mut text = String::with_capacity(96);
        // Writing to a string cannot fail.
        let _ = write!(text, "{self}");
        text
    }

    /// The fingerprint, made from the canonical text at each call.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_text(&self.canonical_text())
    }

    /// Whether the selector matches nothing by its form (`none`).
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.chains.is_empty()
    }

    /// The names of the parameters, sorted, each once, without the dollar sign.
    #[must_use]
    pub fn params(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for chain in &self.chains {
            for (_, step) in &chain.steps {
                if let Step::Node(step) = step {
                    step.tests
                        .iter()
                        .for_each(|test| test_params(test, &mut names));
                    for item in &step.tail {
                        match item {
                            Tail::Pick(Pick::Nth(number)) => operand_params(number, &mut names),
                            Tail::Pick(Pick::First | Pick::Last) => {}
                            Tail::Test(test) => test_params(test, &mut names),
                        }
                    }
                }
            }
        }
        self.filters
            .iter()
            .for_each(|test| test_params(test, &mut names));
        let Controls { limit, page, .. } = &self.controls;
        for operand in limit.iter().chain(page) {
            operand_params(operand, &mut names);
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The one key that every row has, where the form of the selector says so: every group's
    /// last step, or a filter on the final set, pins it by `=` (LANGUAGE §6). Rows then come in
    /// key order unless a control asks for another.
    ///
    /// A parameter is a key like any other, told by its name; bound to null it pins nothing,
    /// which binding has to see to.
    #[must_use]
    pub fn pinned_key(&self) -> Option<&Operand> {
        if let Some(key) = pinned(&self.filters) {
            return Some(key);
        }
        let mut keys = self.chains.iter().map(|chain| match chain.steps.last() {
            Some((_, Step::Node(step))) => step.pinned_key(),
            _ => None,
        });
        let first = keys.next()??;
        keys.all(|key| key == Some(first)).then_some(first)
    }
}

impl NodeStep {
    /// The key every node of this step has, where a test pins it by `=` (LANGUAGE §6).
    #[must_use]
    pub fn pinned_key(&self) -> Option<&Operand> {
        pinned(&self.tests)
    }
}

fn pinned(tests: &[Test]) -> Option<&Operand> {
    let mut keys = tests.iter().filter_map(|test| match test {
        Test::Attr(AttrTest {
            attr: Attr::Key,
            op: Op::Eq,
            operand:
                operand @ (Operand::Param(_)
                | Operand::Literal(Literal::Text(_) | Literal::Int(_) | Literal::Decimal(..))),
        }) => Some(operand),
        _ => None,
    });
    let key = keys.next()?;
    // Two parameters may turn out to be two keys.
    keys.next().is_none().then_some(key)
}

fn test_params<'a>(test: &'a Test, names: &mut Vec<&'a str>) {
    if let Test::Attr(test) = test {
        operand_params(&test.operand, names);
    }
}

fn operand_params<'a>(operand: &'a Operand, names: &mut Vec<&'a str>) {
    match operand {
        Operand::Param(name) => names.push(name),
        Operand::Literal(_) => {}
        Operand::List(values) => {
            for value in values {
                if let Operand::Param(name) = value {
                    names.push(name);
                }
            }
        }
    }
}
