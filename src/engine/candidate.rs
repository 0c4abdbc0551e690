//! What a bound selector requires of a session before any node of it can match: for the query that asks a
//! store which sessions are worth opening.

use crate::ir::Attr;
use crate::plan::{Bound, BoundChain, BoundTest, Compare, TextTest};
use crate::store::Candidate;

/// One requirement for each chain, any of which must hold; `None` if a chain requires nothing that a store
/// has an index for.
pub(super) fn candidate(bound: &Bound) -> Option<Vec<Candidate>> {
    bound.chains.iter().map(of_chain).collect()
}

/// The most selective requirement of a chain: an id, a value of a custom attribute, a key.
fn of_chain(chain: &BoundChain) -> Option<Candidate> {
    let ids = chain.filters().filter_map(|filter| filter.id.as_deref());
    if let Some(id) = ids.last() {
        return Some(Candidate::Id(id.into()));
    }
    let tests = || chain.filters().flat_map(|filter| &filter.tests);
    let value = tests().find_map(|test| match test {
        BoundTest::Attr(condition) => match (&condition.attr, &condition.compare) {
            (Attr::Custom(name), Compare::Value(test)) => {
                let text = test
                    .only()
                    .filter(|text| is_indexed(text) && name.len() <= 200)?;
                Some(Candidate::Attr(name.to_string(), text.to_owned()))
            }
            _ => None,
        },
        _ => None,
    });
    value.or_else(|| {
        tests().find_map(|test| match test {
            BoundTest::Attr(condition) => match (&condition.attr, &condition.compare) {
                (
                    Attr::Key,
                    Compare::Text(TextTest::In {
                        texts,
                        null: false,
                        negated: false,
                    }),
                ) => match &texts[..] {
                    [key] => Some(Candidate::Key(key.to_string())),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
    })
}

/// Whether only texts of nodes equal this one, and a store has an index of them: not a number, not a truth
/// value, and not long.
fn is_indexed(text: &str) -> bool {
    let number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    !number && !matches!(text, "true" | "false" | "null") && text.len() <= 200
}
