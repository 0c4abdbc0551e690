//! The documents of a session put in order: cycles given or counted, differences applied
//! (RUNTIME §1).
//!
//! A [`Sequence`] hands out whole trees one at a time, oldest first, and keeps a tree only while
//! a later difference starts from it. [`Steps`] leaves it to the reader to apply a difference,
//! who may know how to do that without a whole tree. This knows files and cycles; it does not
//! know what a snapshot is made into.

use std::sync::Arc;

use super::document::{Body, Delta, Document, Origin};
use super::fault::{Fault, InputError};
use super::model::Tree;
use super::patch;

/// What a document says of itself besides its nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The cycle: given, or the previous one's plus 1. For the working state, 0.
    pub cycle: i64,
    /// Whether the document gave its cycle.
    pub cycle_given: bool,
    /// Whether it is the working state.
    pub working: bool,
    /// `spec_version` as JSON text; a difference takes it over from its base.
    pub spec_version: Option<Box<str>>,
    /// Other members, sorted by name, values as JSON text.
    pub extra: Vec<(Box<str>, Box<str>)>,
}

/// The documents of a session in the order of their cycles, the working state last.
#[derive(Debug)]
pub struct Sequence {
    entries: Vec<Entry>,
    /// The entries in the order they are handed out.
    order: std::vec::IntoIter<usize>,
}

#[derive(Debug)]
struct Entry {
    header: Header,
    origin: Origin,
    body: Option<Body>,
    /// The entry a difference starts from.
    base: Option<usize>,
    /// How many differences still start from this one.
    uses: usize,
    /// Whether its tree is wanted before it is handed out: a difference of an earlier cycle
    /// starts from it, or from one that starts from it.
    early: bool,
    /// Whether it has been handed out.
    given: bool,
    tree: Option<Arc<Tree>>,
}

impl Entry {
    /// Lets the tree go once nobody will ask for it.
    fn release(&mut self) {
        if self.given && self.uses == 0 {
            self.tree = None;
        }
    }
}

/// Orders documents that stand in file order. Linear but for the sorting of cycles.
///
/// # Errors
/// Two documents of one cycle, two working states, a base no earlier document has, a cycle
/// beyond 64 bits; all of them in one report.
pub fn arrange(documents: Vec<Document>) -> Result<Sequence, InputError> {
    let mut faults: Vec<Fault> = Vec::new();
    let mut entries: Vec<Entry> = Vec::with_capacity(documents.len());
    // (cycle, entry) in file order, and sorted so far for the look-up of bases.
    let mut cycles: std::collections::BTreeMap<i64, usize> = std::collections::BTreeMap::new();
    let mut working: Option<usize> = None;
    let mut previous = 0i64;
    for document in documents {
        let index = entries.len();
        let origin = document.origin;
        let mut header = Header {
            cycle: 0,
            cycle_given: document.cycle.is_some() && !document.working,
            working: document.working,
            spec_version: document.spec_version,
            extra: document.extra,
        };
        let mut base = None;
        if let Body::Delta(delta) = &document.body {
            base = cycles.get(&delta.base).copied();
            match base.and_then(|base| entries.get_mut(base)) {
                Some(entry) => {
                    entry.uses += 1;
                    if header.spec_version.is_none() {
                        header.spec_version.clone_from(&entry.header.spec_version);
                    }
                }
                None => faults.push(origin.fault(
                    "$.base",
                    format!("no earlier document has cycle {}", delta.base),
                )),
            }
        }
        if header.working {
            match working {
                Some(other) => faults.push(origin.fault(
                    "$.working",
                    format!(
                        "a second working state, the first is {}",
                        entries[other].origin
                    ),
                )),
                None => working = Some(index),
            }
        } else {
            match document.cycle.or_else(|| previous.checked_add(1)) {
                Some(cycle) => {
                    header.cycle = cycle;
                    previous = cycle;
                    match cycles.entry(cycle) {
                        std::collections::btree_map::Entry::Vacant(slot) => {
                            slot.insert(index);
                        }
                        std::collections::btree_map::Entry::Occupied(slot) => {
                            let first = &entries[*slot.get()].origin;
                            faults.push(origin.fault(
                                "$.cycle",
                                format!("a second document of cycle {cycle}, the first is {first}"),
                            ));
                        }
                    }
                }
                None => faults.push(origin.fault(
                    "$.cycle",
                    "no cycle follows the previous document's".to_owned(),
                )),
            }
        }
        entries.push(Entry {
            header,
            origin,
            body: Some(document.body),
            base,
            uses: 0,
            early: false,
            given: false,
            tree: None,
        });
    }
    if !faults.is_empty() {
        let more = faults.len().saturating_sub(super::fault::MAX_FAULTS);
        faults.truncate(super::fault::MAX_FAULTS);
        return Err(InputError { faults, more });
    }
    let order: Vec<usize> = cycles.into_values().chain(working).collect();
    Ok(Sequence {
        entries,
        order: order.into_iter(),
    })
}

impl Sequence {
    /// How many documents are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same documents, with differences as they are.
    #[must_use]
    pub fn steps(mut self) -> Steps {
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            let cycle = entry.header.cycle;
            let mut wanted = entry
                .base
                .filter(|&base| !entry.header.working && self.entries[base].header.cycle > cycle);
            if wanted.is_some() {
                self.entries[index].early = true;
            }
            while let Some(at) = wanted.filter(|&at| !self.entries[at].early) {
                self.entries[at].early = true;
                wanted = self.entries[at].base;
            }
        }
        Steps(self)
    }

    /// The tree of an entry, made from its base where it is a difference.
    fn tree(&mut self, index: usize) -> Result<Arc<Tree>, InputError> {
        // Bases stand earlier in the file, so this chain ends.
        let mut chain = Vec::new();
        let mut at = index;
        loop {
            let entry = &mut self.entries[at];
            if entry.tree.is_some() {
                break;
            }
            if let Some(Body::Full(_)) = &entry.body
                && let Some(Body::Full(tree)) = entry.body.take()
            {
                entry.tree = Some(Arc::new(tree));
                break;
            }
            chain.push(at);
            match entry.base {
                Some(base) => at = base,
                None => break,
            }
        }
        for at in chain.into_iter().rev() {
            let Some(base) = self.entries[at].base else {
                continue;
            };
            let from = self.entries[base].tree.clone();
            let entry = &mut self.entries[at];
            if let (Some(from), Some(Body::Delta(delta))) = (from, entry.body.take()) {
                let outcome = patch::apply(&from, &delta);
                let tree = outcome.map_err(|error| entry.origin.place(error))?;
                entry.tree = Some(Arc::new(tree));
            }
            let base = &mut self.entries[base];
            base.uses = base.uses.saturating_sub(1);
            base.release();
        }
        Ok(self.entries[index].tree.clone().unwrap_or_default())
    }
}

/// Hands out the documents, oldest first and the working state last. After an error the rest is
/// not to be used: a session is read whole or not at all.
impl Iterator for Sequence {
    type Item = Result<(Header, Arc<Tree>), InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.order.next()?;
        let outcome = self.tree(index);
        let entry = &mut self.entries[index];
        entry.given = true;
        entry.release();
        let header = std::mem::take(&mut entry.header);
        Some(outcome.map(|tree| (header, tree)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.order.size_hint()
    }
}

/// What a document says, whole or as it differs.
#[derive(Debug)]
pub enum Step {
    /// The tree.
    Tree(Arc<Tree>),
    /// The difference to a snapshot that was handed out before.
    Difference(Box<Difference>),
}

/// A difference that is still to be applied.
#[derive(Debug)]
pub struct Difference {
    delta: Delta,
    origin: Origin,
}

impl Difference {
    /// The difference itself.
    #[must_use]
    pub fn delta(&self) -> &Delta {
        &self.delta
    }

    /// The tree it makes of the tree of its base; see [`patch::apply`].
    ///
    /// # Errors
    /// Those of [`patch::apply`], at their places in the file.
    pub fn apply(&self, base: &Tree) -> Result<Tree, InputError> {
        patch::apply(base, &self.delta).map_err(|error| self.origin.place(error))
    }
}

/// The documents of a session in the order of their cycles, the working state last. Differences
/// come as they are, but for those that start from a later cycle.
#[derive(Debug)]
pub struct Steps(Sequence);

impl Iterator for Steps {
    type Item = Result<(Header, Step), InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        let sequence = &mut self.0;
        let index = *sequence.order.as_slice().first()?;
        let entry = &mut sequence.entries[index];
        if !entry.early
            && let Some(Body::Delta(_)) = &entry.body
            && let Some(Body::Delta(delta)) = entry.body.take()
        {
            sequence.order.next();
            entry.given = true;
            let header = std::mem::take(&mut entry.header);
            let origin = std::mem::take(&mut entry.origin);
            if let Some(base) = entry.base {
                let base = &mut sequence.entries[base];
                base.uses = base.uses.saturating_sub(1);
                base.release();
            }
            let difference = Box::new(Difference { delta, origin });
            return Some(Ok((header, Step::Difference(difference))));
        }
        let item = sequence.next()?;
        Some(item.map(|(header, tree)| (header, Step::Tree(tree))))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
