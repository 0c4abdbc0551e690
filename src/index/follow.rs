//! Makes snapshots of documents that come in the order of their cycles, and keeps all of them or only the newest. The next
//! snapshot costs what changed.

use super::merge::Merge;
use super::{Meta, Snapshot, Writer};
use crate::tree::{Document, DocumentBody, InputError, TreeDelta, patch};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct SnapshotBuilder {
    writer: Writer,
    /// In the order of their cycles; only the newest one, unless all are kept.
    pub(crate) committed: Vec<Arc<Snapshot>>,
    keeps_all: bool,
}

impl SnapshotBuilder {
    pub(crate) fn of_all(mut writer: Writer) -> Self {
        writer.stop_early();
        Self {
            writer,
            committed: Vec::new(),
            keeps_all: true,
        }
    }

    /// Goes on after a snapshot, and keeps only the newest one.
    #[cfg(feature = "store")]
    pub(crate) fn after(newest: Option<Arc<Snapshot>>) -> Self {
        Self {
            committed: Vec::from_iter(newest),
            ..Self::default()
        }
    }

    /// Adds the snapshot of a document, and returns it. `None` if it is a difference to none of the snapshots that are kept.
    /// Errors: why a difference cannot be applied, by positions in its document.
    pub(crate) fn add(
        &mut self,
        meta: Meta,
        body: &DocumentBody,
    ) -> Result<Option<Arc<Snapshot>>, InputError> {
        let newest = self.committed.last().map(|newest| &**newest);
        // Cycles ascend, so the base is found by bisection. Where only the newest snapshot is kept, the same search says
        // whether the difference is to that one.
        let base = match body {
            DocumentBody::Delta(delta) => {
                let cycle = |snapshot: &Arc<Snapshot>| snapshot.cycle();
                let found = self.committed.binary_search_by_key(&delta.base, cycle);
                found.ok().map(|at| &*self.committed[at])
            }
            DocumentBody::Full(_) | DocumentBody::Runtime(_) => None,
        };
        let Some((snapshot, merges)) = make(&mut self.writer, newest, base, meta, body)? else {
            return Ok(None);
        };
        let snapshot = Arc::new(snapshot);
        // Older snapshots move to the merged segments, so that no row is stored twice. Only the newest ones can refer to what
        // was merged. One that is kept alone goes now.
        if self.keeps_all {
            for older in self.committed.iter_mut().rev() {
                match older.moved(&merges) {
                    Some(moved) => *older = Arc::new(moved),
                    None => break,
                }
            }
        }
        if !snapshot.is_working() {
            if !self.keeps_all {
                self.committed.clear();
            }
            self.committed.push(Arc::clone(&snapshot));
        }
        Ok(Some(snapshot))
    }

    /// The snapshot of the next document, which is whole or a difference to the newest snapshot.
    ///
    /// # Errors
    /// Why it is not.
    pub fn next(&mut self, document: Document) -> Result<Arc<Snapshot>, String> {
        let newest = self.committed.last().map(|newest| &**newest);
        let (meta, body) = properties(document, newest);
        let made = self.add(meta, &body).map_err(|error| error.to_string())?;
        made.ok_or_else(|| NO_SNAPSHOT.to_owned())
    }
}

const NO_SNAPSHOT: &str =
    "a document of it is not a snapshot, or no difference to the one before it";

/// The snapshot of a document after `previous`, which may be of another writer: it shares what the document leaves of
/// `previous`, and merges nothing. Errors as [`SnapshotBuilder::next`].
pub fn after(previous: Option<&Snapshot>, document: Document) -> Result<Snapshot, String> {
    let mut writer = Writer::new().without_merging();
    let (meta, body) = properties(document, previous);
    let base = match &body {
        DocumentBody::Delta(delta) => previous.filter(|previous| previous.cycle() == delta.base),
        DocumentBody::Full(_) | DocumentBody::Runtime(_) => None,
    };
    let made = make(&mut writer, previous, base, meta, &body);
    let made = made.map_err(|error| error.to_string())?;
    Ok(made.ok_or(NO_SNAPSHOT)?.0)
}

/// The properties of a document after `previous`, and its nodes.
fn properties(document: Document, previous: Option<&Snapshot>) -> (Meta, DocumentBody) {
    let next = previous.map_or(0, Snapshot::cycle).saturating_add(1);
    let meta = Meta {
        cycle: document.cycle.unwrap_or(next),
        working: document.working,
        cycle_given: !document.working && document.cycle.is_some(),
        spec_version: document.spec_version,
        extra: document.extra.into(),
    };
    (meta, document.body)
}

/// The snapshot of a document after `newest`: a difference is to `base`. As much of `newest` is shared as of any snapshot before
/// it. `None` if it has no base.
fn make(
    writer: &mut Writer,
    newest: Option<&Snapshot>,
    base: Option<&Snapshot>,
    mut meta: Meta,
    body: &DocumentBody,
) -> Result<Option<(Snapshot, Vec<Merge>)>, InputError> {
    if meta.working {
        meta.cycle = newest.map_or(0, Snapshot::cycle);
    }
    match (body, base) {
        (DocumentBody::Full(tree), _) => Ok(Some(writer.append(newest, tree, meta))),
        (DocumentBody::Delta(delta), Some(base)) => {
            let inherited = || base.meta().spec_version.clone();
            meta.spec_version = meta.spec_version.or_else(inherited);
            writer.apply(newest, base, delta, meta).map(Some)
        }
        (DocumentBody::Delta(_) | DocumentBody::Runtime(_), _) => Ok(None),
    }
}

impl Writer {
    /// The snapshot that a difference makes of `base`, after `newest`, which may be another one.
    pub(crate) fn apply(
        &mut self,
        newest: Option<&Snapshot>,
        base: &Snapshot,
        delta: &TreeDelta,
        meta: Meta,
    ) -> Result<(Snapshot, Vec<Merge>), InputError> {
        // What segments of an older snapshot are merged into would be referred to by this one only.
        let merging = self.merging;
        self.merging &= newest.is_some_and(|newest| std::ptr::eq(newest, base));
        let made = self.commit(base, delta, &meta);
        self.merging = merging;
        match made {
            Some(made) => Ok(made),
            // The writer needs the whole tree: the difference has a fault, which is found there with its place, or it
            // replaces `^seq`.
            None => {
                let tree = patch::apply(&base.to_tree(), delta)?;
                Ok(self.append(newest, &tree, meta))
            }
        }
    }
}
