//! What a session must have for any of its nodes to match a selector, and the sessions that have it: only these are
//! opened.

use crate::query::ir::Attr;
use crate::query::plan::{Bound, BoundChain, BoundTest, Compare, TextTest};
use crate::store::database::sql::{Database, SqlValue};
use crate::store::error::Result;
use crate::store::layout::schema::{ATTR_BY_TEXT, equals};
use crate::store::read::catalog::{self, Glob, ListedSession};

/// The statement that finds the units that a selector requires of a session, and its values.
pub(crate) type SessionCandidate = (String, Vec<String>);

/// One for each chain, any of which must hold; `None` if a chain requires nothing that is indexed.
pub(crate) fn candidate(bound: &Bound) -> Option<Vec<SessionCandidate>> {
    bound.chains.iter().map(of_chain).collect()
}

/// The most selective requirement of a chain: a node of an id, a text of a custom attribute, a key.
fn of_chain(chain: &BoundChain) -> Option<SessionCandidate> {
    let node = |column: &str, text: &str| {
        let units = format!("select unit_id from node where {}", equals(column, text));
        (units, vec![text.to_owned()])
    };
    let ids = chain.filters().filter_map(|filter| filter.id.as_deref());
    if let Some(id) = ids.last() {
        return Some(node("id", id));
    }
    let tests = || {
        let tests = chain.filters().flat_map(|filter| &filter.tests);
        tests.filter_map(|test| match test {
            BoundTest::Attr(condition) => Some((&condition.attr, &condition.compare)),
            _ => None,
        })
    };
    let value = tests().find_map(|test| match test {
        (Attr::Custom(name), Compare::Value(test)) => {
            let text = test
                .only()
                .filter(|text| is_indexed(text) && name.len() <= 200)?;
            let units = format!(
                "select unit_id from attr where name = ?1 and text = ?2 and {ATTR_BY_TEXT}"
            );
            Some((units, vec![name.to_string(), text.to_owned()]))
        }
        _ => None,
    });
    let key = || {
        tests().find_map(|test| match test {
            (
                Attr::Key,
                Compare::Text(TextTest::In {
                    texts,
                    null: false,
                    negated: false,
                }),
            ) => {
                let [key] = &texts[..] else { return None };
                Some(node("key", key))
            }
            _ => None,
        })
    };
    value.or_else(key)
}

/// Whether an index has this text, and only texts of nodes equal it: not a number, not a truth value, not long.
fn is_indexed(text: &str) -> bool {
    let number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    !number && !matches!(text, "true" | "false" | "null") && text.len() <= 200
}

/// The sessions that have what is required, in byte order of names. Linear in the nodes that have it, in all sessions.
pub(crate) fn candidates(
    database: &mut dyn Database,
    wanted: &[SessionCandidate],
    glob: &Glob,
) -> Result<Vec<ListedSession>> {
    let mut units = Vec::with_capacity(wanted.len());
    for (sql, values) in wanted {
        let values: Vec<SqlValue<'_>> = values.iter().map(|text| SqlValue::Text(text)).collect();
        units.push((format!("in ({sql})"), values));
    }
    catalog::placing(database, &units, glob)
}
