//! Where a mutation acts: the nodes that a selector names, and the parent that a place names, in one
//! snapshot.
//!
//! Texts are compiled and cached as all others are. The module says what a text means in a snapshot;
//! whether a mutation is allowed there it must not know.

use super::facade::Engine;
use super::prepared::Prepared;
use crate::history::History;
use crate::index::{NodeRef, Snapshot};
use crate::query::exec::{RunInput, Trace, run, run_with_cores};
use crate::query::ir::{InsertionPoint, Purpose};
use crate::support::diag::{Error, Warning};

/// The nodes that a mutation changes, from [`Engine::targets`].
#[derive(Debug)]
pub struct Targets<'a> {
    /// The nodes, in result order.
    pub nodes: Vec<NodeRef<'a>>,
    text: Prepared,
}

/// Where a mutation puts a node, from [`Engine::spot`].
#[derive(Debug)]
pub struct Spot<'a> {
    /// The nodes that the place matches, in result order. A mutation has a place for one.
    pub parents: Vec<Parent<'a>>,
    /// Where among the children of the parent.
    pub insertion: InsertionPoint,
    text: Prepared,
}

/// A node that a place matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parent<'a> {
    /// The node; for an implicit core the turn or `^ah` that it is the core of.
    pub node: NodeRef<'a>,
    /// Whether it is the implicit core of `node`: its children are the nodes of offset 0 directly in
    /// `node` (LANGUAGE §1).
    pub core: bool,
}

impl Targets<'_> {
    /// Warnings about the selector.
    pub fn warnings(&self) -> &[Warning] {
        self.text.warnings()
    }
}

impl Spot<'_> {
    /// Warnings about the place.
    pub fn warnings(&self) -> &[Warning] {
        self.text.warnings()
    }
}

#[doc(hidden)]
impl Engine {
    /// The nodes of `snapshot`, a working state, that `selector` matches. The selector has no time; in
    /// every edition it means the working state.
    ///
    /// # Errors
    /// Every mistake of the selector; a time, a facet, a parameter, an insertion point.
    pub fn targets<'a>(
        &self,
        snapshot: &'a Snapshot,
        selector: &str,
    ) -> Result<Targets<'a>, Error> {
        let text = self.prepare_for(selector, Purpose::Target)?;
        // A mutation takes no facet, so it asks for nothing that only a session knows.
        let none = History::default();
        let input = RunInput::new(snapshot, &none);
        let rows = run(text.ready()?, input, &mut Trace::off());
        text.not_cancelled()?;
        let nodes = rows.iter().map(|row| snapshot.node(row)).collect();
        Ok(Targets { nodes, text })
    }

    /// What `place` means in `snapshot`, a working state: any selector without a time, or a position
    /// with an insertion point. There may be several parents, or none.
    ///
    /// # Errors
    /// As [`Engine::targets`]; a place may have an insertion point.
    pub fn spot<'a>(&self, snapshot: &'a Snapshot, place: &str) -> Result<Spot<'a>, Error> {
        let text = self.prepare_for(place, Purpose::Place)?;
        // A mutation takes no facet, so it asks for nothing that only a session knows.
        let none = History::default();
        let input = RunInput::new(snapshot, &none);
        let rows = run_with_cores(text.ready()?, input, &mut Trace::off());
        text.not_cancelled()?;
        let parent = |(row, core): (u32, bool)| {
            // An implicit core has a turn or `^ah` above it, and no id of its own.
            let node = if core {
                snapshot.parent(row).unwrap_or(row)
            } else {
                row
            };
            let node = snapshot.node(node);
            Parent { node, core }
        };
        Ok(Spot {
            parents: rows.into_iter().map(parent).collect(),
            insertion: text.statement().insertion,
            text,
        })
    }
}
