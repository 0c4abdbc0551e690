//! Snapshots of documents that come one after the other, each whole or a difference to the one before it.
//!
//! Only the newest snapshot is kept, so going forwards costs what changed. This file knows no order of documents but the one
//! in which they come.

use super::snapshot::{Meta, Snapshot};
use super::writer::Writer;
use crate::tree::{Body, Document, patch};
use std::sync::Arc;

/// Makes snapshots of documents.
#[derive(Debug, Default)]
pub struct Follower {
    writer: Writer,
    newest: Option<Arc<Snapshot>>,
}

impl Follower {
    /// Goes on after a snapshot.
    pub fn after(newest: Arc<Snapshot>) -> Self {
        Self {
            newest: Some(newest),
            ..Self::default()
        }
    }

    /// The snapshot of the next document; a committed one has this cycle.
    ///
    /// # Errors
    /// Why it is not a snapshot, or no difference to the newest one.
    pub fn next(&mut self, document: Document, cycle: i64) -> Result<Arc<Snapshot>, String> {
        let previous = self.newest.as_deref();
        let snapshot = follow(&mut self.writer, previous, document, cycle)?;
        let snapshot = Arc::new(snapshot);
        if !snapshot.is_working() {
            self.newest = Some(Arc::clone(&snapshot));
        }
        Ok(snapshot)
    }
}

/// The snapshot of a document that is whole, or a difference to `previous`. As much of `previous` is shared as of any
/// snapshot before it.
///
/// # Errors
/// As [`Follower::next`].
fn follow(
    writer: &mut Writer,
    previous: Option<&Snapshot>,
    document: Document,
    cycle: i64,
) -> Result<Snapshot, String> {
    // A working state is of the cycle of the newest commit; a commit has the cycle that the caller counted.
    let newest = previous.map_or(0, Snapshot::cycle);
    // Only a difference inherits it.
    let base = previous.filter(|_| matches!(document.body, Body::Delta(_)));
    let inherited = base.and_then(|base| base.meta().spec_version.clone());
    let meta = Meta {
        cycle: if document.working { newest } else { cycle },
        working: document.working,
        cycle_given: !document.working && document.cycle.is_some(),
        spec_version: document.spec_version.or(inherited),
        extra: document.extra.into(),
    };
    // Merges leave what is in memory as it is: it goes soon.
    let (snapshot, _) = match (document.body, previous) {
        (Body::Full(tree), _) => writer.append(previous, &tree, meta),
        (Body::Delta(delta), Some(previous)) if delta.base == newest => {
            match writer.commit(previous, &delta, &meta) {
                Some(made) => made,
                // The writer needs the whole tree: the line has a fault, which is found there with its place, or it
                // replaces `^seq`.
                None => {
                    let tree = patch::apply(&previous.to_tree(), &delta);
                    let tree = tree.map_err(|error| error.to_string())?;
                    writer.append(Some(previous), &tree, meta)
                }
            }
        }
        (Body::Delta(_) | Body::Runtime(_), _) => {
            return Err(
                "a document of it is not a snapshot, or no difference to the one before it"
                    .to_owned(),
            );
        }
    };
    Ok(snapshot)
}

/// The snapshot of a document after `previous`, which may be of another writer: it shares what the document leaves of
/// `previous`, and merges nothing. A committed one has this cycle unless it says another.
///
/// # Errors
/// As [`Follower::next`].
pub fn after(
    previous: Option<&Snapshot>,
    document: Document,
    cycle: i64,
) -> Result<Snapshot, String> {
    let mut writer = Writer::new();
    writer.merging = false;
    let cycle = document.cycle.unwrap_or(cycle);
    follow(&mut writer, previous, document, cycle)
}
