//! Notes on answers: on empty ones (LANGUAGE §10), and on a cache whose index could not be used.

use super::text::printable;
use crate::budget::Cache;
use crate::engine::Engine;
use crate::history::{Lookup, Session};
use crate::index::{NodeRef, Snapshot};
use crate::ir::{Attr, AttrTest, Literal, Op, Operand, Query, Step, Tail, Test};
use std::fmt::Write;
use std::sync::Arc;

/// A line on the cache's index of terms if it could not be used; else empty.
pub(crate) fn of_cache(cache: &Cache) -> String {
    cache.index_fault().map_or_else(String::new, |fault| {
        let fault = printable(&fault.to_string());
        format!("note: every document was read, as the index is of no use: {fault}\n")
    })
}

/// Adds a line for each key in the selector that is the id of a node but not a key, and for each
/// id that is a key but not an id. O(nodes of the snapshots) for each of them.
pub(crate) fn of_empty(engine: &Engine, session: &Session, selector: &str, out: &mut String) {
    let Ok(prepared) = engine.prepare(selector) else {
        return;
    };
    let query = prepared.query();
    let history = session.history();
    let snapshots: Vec<&Arc<Snapshot>> = match history.resolve(query.time) {
        Ok(Lookup::One(place)) => history.get(place).into_iter().collect(),
        Ok(Lookup::All) => history.committed().iter().collect(),
        Ok(Lookup::Range(_)) | Err(_) => return,
    };
    let mut done: Vec<(bool, &str)> = Vec::new();
    for (is_key, word) in words(query) {
        if done.contains(&(is_key, word)) {
            continue;
        }
        done.push((is_key, word));
        let any =
            |has: fn(&Snapshot, &str) -> bool| snapshots.iter().any(|snapshot| has(snapshot, word));
        let quoted = crate::syntax::quote(word);
        let _ = match (is_key, any(has_key), any(has_id)) {
            (true, false, true) => writeln!(
                out,
                "note: no node has the key {quoted}, but one has that id: [id={quoted}] finds it"
            ),
            (false, true, false) => writeln!(
                out,
                "note: no node has the id {quoted}, but one has that key: [key={quoted}] finds it"
            ),
            _ => continue,
        };
    }
}

fn has_id(snapshot: &Snapshot, id: &str) -> bool {
    snapshot.find(id).is_some()
}

fn has_key(snapshot: &Snapshot, key: &str) -> bool {
    let has = |node: NodeRef<'_>| node.key() == Some(key);
    snapshot.nodes().any(has)
}

/// The texts that a query compares keys (true) or ids (false) with.
fn words(query: &Query) -> impl Iterator<Item = (bool, &str)> {
    let in_steps = query
        .chains
        .iter()
        .flat_map(|chain| &chain.steps)
        .flat_map(|(_, step)| {
            let Step::Node(step) = step else {
                return Vec::new();
            };
            let tail = step.tail.iter().filter_map(|tail| match tail {
                Tail::Test(test) => Some(test),
                Tail::Pick(_) => None,
            });
            step.tests.iter().chain(tail).collect()
        });
    in_steps
        .chain(&query.filters)
        .filter_map(|test| match test {
            Test::Attr(AttrTest {
                attr: attr @ (Attr::Key | Attr::Id),
                op: Op::Eq,
                operand: Operand::Literal(Literal::Text(text)),
            }) => Some((*attr == Attr::Key, &**text)),
            _ => None,
        })
}
