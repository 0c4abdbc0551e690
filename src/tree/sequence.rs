//! Puts the documents of a session in order: assigns cycles and applies deltas (RUNTIME §1).
//!
//! A [`Sequence`] yields whole trees one at a time, oldest first, and keeps a tree only while a
//! later delta needs it. [`Steps`] passes deltas on to callers that can apply them without a whole
//! tree. This module knows files and cycles, but no snapshots.
//!
//! A document at fault is skipped, so that the faults of later ones are found too. The faults of
//! all documents come last, as one error.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::delta::Delta;
use super::document::{Body, Document, Origin};
use super::fault::{Fault, InputError, MAX_FAULTS};
use super::model::Tree;
use super::patch;

/// The members of a document except its nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The cycle: given, or that of the previous document plus 1; 0 for the working state.
    pub cycle: i64,
    /// Whether the document has a `cycle`.
    pub cycle_given: bool,
    /// Whether it is the working state.
    pub working: bool,
    /// `spec_version` as JSON text; a delta inherits it from its base.
    pub spec_version: Option<Box<str>>,
    /// Other members, sorted by name, values as JSON text.
    pub extra: Vec<(Box<str>, Box<str>)>,
}

/// The documents of a session in the order of their cycles, the working state last.
#[derive(Debug)]
pub struct Sequence {
    entries: Vec<Entry>,
    /// Indexes into `entries`, in the order of the sequence.
    order: std::vec::IntoIter<usize>,
    report: Report,
    runtime: Option<Runtime>,
}

/// What a writer keeps beside its documents.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The JSON text of an object.
    pub json: Box<str>,
    origin: Origin,
}

impl Runtime {
    /// The error of one that cannot be read.
    pub fn refused(&self, message: String) -> InputError {
        let mark = self.origin.marks.document;
        InputError {
            faults: vec![self.origin.fault("$.runtime", mark, message)],
            more: 0,
        }
    }
}

#[derive(Debug)]
struct Entry {
    header: Header,
    origin: Origin,
    body: Option<Body>,
    /// The entry a delta is applied to.
    base: Option<usize>,
    /// Number of deltas still to be applied to this one.
    uses: usize,
    /// Whether its tree is needed before its turn: a delta of an earlier cycle is based on it, also
    /// by way of others.
    early: bool,
    /// Whether it was yielded.
    given: bool,
    /// Whether it has no tree, because it or its base is at fault.
    wrong: bool,
    tree: Option<Arc<Tree>>,
}

impl Entry {
    /// Drops the tree once it is not needed any more.
    fn release(&mut self) {
        if self.given && self.uses == 0 {
            self.tree = None;
        }
    }
}

/// The faults so far, each with its entry, and the number of those not listed.
#[derive(Debug, Default)]
struct Report {
    faults: Vec<(usize, Fault)>,
    more: usize,
}

impl Report {
    fn add(&mut self, entry: usize, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push((entry, fault));
        } else {
            self.more += 1;
        }
    }

    fn extend(&mut self, entry: usize, error: InputError) {
        self.more += error.more;
        for fault in error.faults {
            self.add(entry, fault);
        }
    }

    /// Takes all faults, in the order of the files; `None` if there are none.
    fn take(&mut self) -> Option<InputError> {
        let Self { mut faults, more } = std::mem::take(self);
        faults.sort_by_key(|(entry, fault)| (*entry, fault.offset));
        let faults: Vec<Fault> = faults.into_iter().map(|(_, fault)| fault).collect();
        (!faults.is_empty()).then_some(InputError { faults, more })
    }
}

/// Orders documents given in file order. Linear, plus sorting of cycles.
///
/// Two documents of one cycle, two working states, two that a writer keeps beside them, a base that is not the cycle of an earlier
/// document and a cycle beyond 64 bits are faults, which the sequence reports at its end.
pub fn arrange(documents: Vec<Document>) -> Sequence {
    let mut found = Arranged::default();
    for document in documents {
        found.add(document);
    }
    let order: Vec<usize> = found.cycles.into_values().chain(found.working).collect();
    Sequence {
        entries: found.entries,
        order: order.into_iter(),
        report: found.report,
        runtime: found.runtime,
    }
}

/// The documents arranged so far.
#[derive(Default)]
struct Arranged {
    entries: Vec<Entry>,
    /// The entry of each cycle.
    cycles: BTreeMap<i64, usize>,
    working: Option<usize>,
    /// The cycle of the last committed document.
    previous: i64,
    report: Report,
    runtime: Option<Runtime>,
}

impl Arranged {
    fn add(&mut self, document: Document) {
        let index = self.entries.len();
        if let Body::Runtime(json) = document.body {
            return self.add_runtime(index, json, document.origin);
        }
        let mut base = None;
        let mut lost = false;
        if let Body::Delta(delta) = &document.body {
            base = self.cycles.get(&delta.base).copied();
            lost = base.is_none();
            if lost {
                let message = format!("no earlier document has cycle {}", delta.base);
                let origin = &document.origin;
                let fault = origin.fault("$.base", origin.marks.base, message);
                self.report.add(index, fault);
            }
        }
        let cycle = self.cycle_of(index, &document);
        let wrong = lost || cycle.is_none();
        let mut spec_version = document.spec_version;
        if let Some(base) = base.and_then(|base| self.entries.get_mut(base)) {
            if spec_version.is_none() {
                spec_version.clone_from(&base.header.spec_version);
            }
            base.uses += usize::from(cycle.is_some());
        }
        self.entries.push(Entry {
            header: Header {
                cycle: cycle.unwrap_or(0),
                cycle_given: document.cycle.is_some() && !document.working,
                working: document.working,
                spec_version,
                extra: document.extra,
            },
            origin: document.origin,
            body: (!wrong).then_some(document.body),
            base: base.filter(|_| cycle.is_some()),
            uses: 0,
            early: false,
            given: false,
            wrong,
            tree: None,
        });
    }

    fn add_runtime(&mut self, index: usize, json: Box<str>, origin: Origin) {
        if let Some(first) = &self.runtime {
            let first = first.origin.seen_from(&origin);
            let message = format!("a second `runtime`, the first is {first}");
            let fault = origin.fault("$.runtime", origin.marks.document, message);
            self.report.add(index, fault);
            return;
        }
        self.runtime = Some(Runtime { json, origin });
    }

    /// The cycle of a document, 0 for the working state. `None` if another document has taken it
    /// or there is none left, which is reported.
    fn cycle_of(&mut self, index: usize, document: &Document) -> Option<i64> {
        let origin = &document.origin;
        let (path, at, message) = if document.working {
            let Some(other) = self.working else {
                self.working = Some(index);
                return Some(0);
            };
            let first = self.entries[other].origin.seen_from(origin);
            let message = format!("a second working state, the first is {first}");
            ("$.working", origin.marks.working, message)
        } else if let Some(cycle) = document.cycle.or_else(|| self.previous.checked_add(1)) {
            self.previous = cycle;
            let other = *self.cycles.entry(cycle).or_insert(index);
            if other == index {
                return Some(cycle);
            }
            let first = self.entries[other].origin.seen_from(origin);
            let message = format!("a second document of cycle {cycle}, the first is {first}");
            ("$.cycle", origin.marks.cycle, message)
        } else {
            let message = "no cycle follows the previous document's".to_owned();
            ("$.cycle", origin.marks.cycle, message)
        };
        self.report.add(index, origin.fault(path, at, message));
        None
    }
}

/// Puts documents in order that are in order, one at a time: the common case of what [`arrange`] does with all.
#[derive(Debug, Default)]
pub(crate) struct InOrder {
    newest: Option<i64>,
    working: bool,
    runtime: Option<Runtime>,
}

impl InOrder {
    /// Takes the next document: its header, its body, and where it was read; nothing of what a writer keeps. A difference has
    /// still to inherit the `spec_version` of its base.
    ///
    /// # Errors
    /// It may be out of order, or contradict one before it; only [`arrange`] can tell.
    pub(crate) fn take(&mut self, document: Document) -> Result<Option<(Header, Body)>, Disorder> {
        if let Body::Runtime(json) = document.body {
            let origin = document.origin;
            let first = self.runtime.replace(Runtime { json, origin });
            return first.map_or(Ok(None), |_| Err(Disorder));
        }
        let next = self.newest.unwrap_or(0).checked_add(1);
        let cycle = document.cycle.or(next).ok_or(Disorder)?;
        if self.working || (!document.working && self.newest.is_some_and(|newest| cycle <= newest))
        {
            return Err(Disorder);
        }
        self.working = document.working;
        if !document.working {
            self.newest = Some(cycle);
        }
        let header = Header {
            cycle: if document.working { 0 } else { cycle },
            cycle_given: document.cycle.is_some() && !document.working,
            working: document.working,
            spec_version: document.spec_version,
            extra: document.extra,
        };
        Ok(Some((header, document.body)))
    }

    /// What a writer keeps beside the documents, if there is any.
    pub(crate) fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref()
    }
}

/// Documents that are not in order, or contradict each other.
#[derive(Debug)]
pub(crate) struct Disorder;

impl Sequence {
    /// What a writer keeps beside the documents, if there is any.
    pub fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref()
    }

    /// The same documents, with deltas that are not applied.
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

    /// The tree of an entry; deltas are applied. `None` if it is at fault.
    fn tree(&mut self, index: usize) -> Option<Arc<Tree>> {
        // Bases come earlier in the file, so this chain ends.
        let mut chain = Vec::new();
        let mut at = index;
        loop {
            let entry = &mut self.entries[at];
            if entry.tree.is_some() || entry.wrong {
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
            let doubtful = self.entries[base].wrong;
            let entry = &mut self.entries[at];
            let body = entry.body.take();
            if doubtful {
                entry.wrong = true;
            } else if let (Some(from), Some(Body::Delta(delta))) = (from, body) {
                match patch::apply(&from, &delta) {
                    Ok(tree) => entry.tree = Some(Arc::new(tree)),
                    Err(error) => {
                        entry.wrong = true;
                        let error = entry.origin.place(error);
                        self.report.extend(at, error);
                    }
                }
            }
            self.done_with(base);
        }
        let entry = &self.entries[index];
        (!entry.wrong).then(|| entry.tree.clone().unwrap_or_default())
    }

    /// Yields an entry as a whole tree, if it has one.
    fn hand_out(&mut self, index: usize) -> Option<(Header, Arc<Tree>)> {
        let tree = self.tree(index);
        let entry = &mut self.entries[index];
        entry.given = true;
        entry.release();
        tree.map(|tree| (std::mem::take(&mut entry.header), tree))
    }

    /// Yields an entry as a delta, if its base is not at fault.
    fn difference(&mut self, index: usize) -> Option<(Header, Difference)> {
        let entry = &mut self.entries[index];
        entry.given = true;
        let Some(Body::Delta(delta)) = entry.body.take() else {
            return None;
        };
        let header = std::mem::take(&mut entry.header);
        let origin = std::mem::take(&mut entry.origin);
        let base = entry.base?;
        let doubtful = self.entries[base].wrong;
        self.entries[index].wrong = doubtful;
        self.done_with(base);
        let difference = Difference {
            delta,
            origin,
            entry: index,
        };
        (!doubtful).then_some((header, difference))
    }

    /// Decrements the count of deltas an entry is needed for, and drops its tree at zero.
    fn done_with(&mut self, base: usize) {
        let base = &mut self.entries[base];
        base.uses = base.uses.saturating_sub(1);
        base.release();
    }
}

/// Yields the documents, oldest first and the working state last, then the faults of all of them
/// as one error, if there are any. After an error what came before it must not be used.
impl Iterator for Sequence {
    type Item = Result<(Header, Arc<Tree>), InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(index) = self.order.next() {
            if let Some(item) = self.hand_out(index) {
                return Some(Ok(item));
            }
        }
        self.report.take().map(Err)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.order.len() + 1))
    }
}

/// A document as a tree or as a delta.
#[derive(Debug)]
pub enum Step {
    /// The tree.
    Tree(Arc<Tree>),
    /// The delta to a snapshot yielded before.
    Difference(Box<Difference>),
}

/// A delta that is still to be applied.
#[derive(Debug)]
pub struct Difference {
    delta: Delta,
    origin: Origin,
    entry: usize,
}

impl Difference {
    /// The delta itself.
    pub fn delta(&self) -> &Delta {
        &self.delta
    }

    /// The error of applying it, with positions in the file.
    pub fn place(&self, error: InputError) -> InputError {
        self.origin.place(error)
    }
}

/// As [`Sequence`], but deltas are passed on, except those based on a later cycle.
#[derive(Debug)]
pub struct Steps(Sequence);

impl Steps {
    /// Reports that a delta could not be applied: the deltas based on it are skipped, and the
    /// faults are part of the report at the end.
    pub fn refuse(&mut self, difference: &Difference, error: InputError) {
        let sequence = &mut self.0;
        sequence.report.extend(difference.entry, error);
        if let Some(entry) = sequence.entries.get_mut(difference.entry) {
            entry.wrong = true;
        }
    }
}

impl Iterator for Steps {
    type Item = Result<(Header, Step), InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        let sequence = &mut self.0;
        while let Some(index) = sequence.order.next() {
            let entry = &sequence.entries[index];
            let item = if !entry.early && matches!(entry.body, Some(Body::Delta(_))) {
                let found = sequence.difference(index);
                found.map(|(header, made)| (header, Step::Difference(Box::new(made))))
            } else {
                let found = sequence.hand_out(index);
                found.map(|(header, tree)| (header, Step::Tree(tree)))
            };
            if let Some(item) = item {
                return Some(Ok(item));
            }
        }
        sequence.report.take().map(Err)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
