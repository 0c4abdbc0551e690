//! Puts the documents of a session in order and assigns their cycles (RUNTIME §1). It knows files and cycles, but no
//! snapshots.
//!
//! A document at fault is left out, so that the faults of others are found too, and so is a difference to one that was left
//! out. The faults of all documents come as one error, from [`DocumentOrder::finish`].

use std::collections::HashMap;

use super::document::{Document, DocumentBody, DocumentOrigin};
use super::fault::{InputError, InputFault, MAX_FAULTS};
use super::model::Tree;
use super::patch;
use crate::json::{get, members};

/// The properties of a document, and of its snapshot, besides the nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// The cycle: given, or that of the previous document plus 1. A working state has none: 0 in a document; in a snapshot the
    /// newest committed cycle, from which its ttls count.
    pub cycle: i64,
    /// Whether it is the working state.
    pub working: bool,
    /// Whether the document has a `cycle`.
    pub cycle_given: bool,
    /// `spec_version` as JSON text; a difference that has none inherits it from its base.
    pub spec_version: Option<Box<str>>,
    /// Other members of the document, sorted by name, values as JSON text.
    pub extra: Box<[(Box<str>, Box<str>)]>,
}

impl Meta {
    /// The parameters of the request, `meta.request` of the document, as JSON text; `None` if absent or
    /// null (RUNTIME §5). Linear in `meta`.
    pub(crate) fn request(&self) -> Option<&str> {
        get(&members(self.value("meta")?), "request").filter(|request| *request != "null")
    }

    /// A member of the document that is none of PACT's, as JSON text.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.extra.iter().find(|(known, _)| &**known == name);
        found.map(|(_, value)| &**value)
    }
}

/// A document that has its place among the others.
#[derive(Debug)]
pub struct PlacedDocument {
    pub meta: Meta,
    pub body: DocumentBody,
    origin: DocumentOrigin,
    number: usize,
}

/// What a writer keeps beside its documents.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The JSON text of an object.
    pub json: Box<str>,
    origin: DocumentOrigin,
}

impl Runtime {
    /// The error of one that cannot be read.
    pub fn refused(&self, message: String) -> InputError {
        let mark = self.origin.marks.document;
        self.origin.fault("$.runtime", mark, message).into()
    }
}

/// The order of the documents so far, and what is wrong with them.
#[derive(Debug, Default)]
pub struct DocumentOrder {
    count: usize,
    cycles: HashMap<i64, DocumentOrigin>,
    /// Whether the documents are taken to have different cycles and bases that exist, so that nothing of them is kept.
    trusted: bool,
    working: Option<DocumentOrigin>,
    previous: i64,
    runtime: Option<Runtime>,
    /// The faults, each with the number of its document, and how many are not listed.
    faults: Vec<(usize, InputFault)>,
    more: usize,
}

impl DocumentOrder {
    /// For documents of which the caller finds out whether they come in the order of their cycles, each with a base that exists.
    pub(crate) fn trusting() -> Self {
        Self {
            trusted: true,
            ..Self::default()
        }
    }

    /// Gives the next document of the input its place. `None` if it has none: it is at fault, or what a writer keeps.
    ///
    /// Two documents of one cycle, two working states, two that a writer keeps beside them, a base that is not the cycle of
    /// an earlier document and a cycle beyond 64 bits are faults.
    pub fn place(&mut self, document: Document) -> Option<PlacedDocument> {
        let number = self.count;
        self.count += 1;
        if let DocumentBody::Runtime(json) = document.body {
            self.add_runtime(number, json, document.origin);
            return None;
        }
        let mut lost = false;
        if let DocumentBody::Delta(delta) = &document.body
            && !self.trusted
            && !self.cycles.contains_key(&delta.base)
        {
            lost = true;
            let origin = &document.origin;
            let message = format!("no earlier document has cycle {}", delta.base);
            self.add(number, origin.fault("$.base", origin.marks.base, message));
        }
        let cycle = self.cycle_of(number, &document)?;
        (!lost).then(|| PlacedDocument {
            meta: Meta {
                cycle,
                working: document.working,
                cycle_given: document.cycle.is_some() && !document.working,
                spec_version: document.spec_version,
                extra: document.extra.into(),
            },
            body: document.body,
            origin: document.origin,
            number,
        })
    }

    fn add_runtime(&mut self, number: usize, json: Box<str>, origin: DocumentOrigin) {
        if let Some(first) = &self.runtime {
            let first = first.origin.seen_from(&origin);
            let message = format!("a second `runtime`, the first is {first}");
            self.add(
                number,
                origin.fault("$.runtime", origin.marks.document, message),
            );
            return;
        }
        self.runtime = Some(Runtime { json, origin });
    }

    /// The cycle of a document, 0 for the working state. `None` if another document has taken it
    /// or there is none left, which is reported.
    fn cycle_of(&mut self, number: usize, document: &Document) -> Option<i64> {
        let origin = &document.origin;
        let (path, at, message) = if document.working {
            let Some(first) = &self.working else {
                self.working = Some(origin.clone());
                return Some(0);
            };
            let first = first.seen_from(origin);
            let message = format!("a second working state, the first is {first}");
            ("$.working", origin.marks.working, message)
        } else if let Some(cycle) = document.cycle.or_else(|| self.previous.checked_add(1)) {
            self.previous = cycle;
            if self.trusted {
                return Some(cycle);
            }
            let Some(first) = self.cycles.get(&cycle) else {
                self.cycles.insert(cycle, origin.clone());
                return Some(cycle);
            };
            let first = first.seen_from(origin);
            let message = format!("a second document of cycle {cycle}, the first is {first}");
            ("$.cycle", origin.marks.cycle, message)
        } else {
            let message = "no cycle follows the previous document's".to_owned();
            ("$.cycle", origin.marks.cycle, message)
        };
        self.add(number, origin.fault(path, at, message));
        None
    }

    fn add(&mut self, number: usize, fault: InputFault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push((number, fault));
        } else {
            self.more += 1;
        }
    }

    /// Reports what is wrong with a difference, by positions in its document.
    pub fn refuse(&mut self, document: &PlacedDocument, error: InputError) {
        let error = document.origin.place(error);
        self.more += error.more;
        for fault in error.faults {
            self.add(document.number, fault);
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// What a writer keeps beside the documents, if there is any.
    pub(crate) fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref()
    }

    /// What a writer keeps beside the documents.
    ///
    /// # Errors
    /// All faults, in the order of the input.
    pub fn finish(mut self) -> Result<Option<Runtime>, InputError> {
        if self.is_valid() {
            return Ok(self.runtime);
        }
        self.faults
            .sort_by_key(|(number, fault)| (*number, fault.offset));
        let faults = self.faults.into_iter().map(|(_, fault)| fault);
        Err(InputError {
            faults: faults.collect(),
            more: self.more,
        })
    }

    /// Applies the differences to documents of later cycles and, with `all`, all others, so that every base that is left
    /// comes before what is based on it. The documents are in the order of the input. Nearly always there is none.
    fn apply(&mut self, documents: &mut Vec<PlacedDocument>, all: bool) {
        let committed = documents.iter().enumerate();
        let committed = committed.filter(|(_, document)| !document.meta.working);
        let places: HashMap<i64, usize> = committed.map(|(at, d)| (d.meta.cycle, at)).collect();
        let base = |document: &PlacedDocument| match &document.body {
            DocumentBody::Delta(delta) => Some(places.get(&delta.base).copied()),
            DocumentBody::Full(_) | DocumentBody::Runtime(_) => None,
        };
        let mut wanted = vec![all; documents.len()];
        // Backwards, as a base comes earlier in the input: what is wanted of a difference is wanted of its base.
        for (at, document) in documents.iter().enumerate().rev() {
            if let Some(Some(base)) = base(document) {
                let meta = &document.meta;
                wanted[at] |= !meta.working && documents[base].meta.cycle > meta.cycle;
                wanted[base] |= wanted[at];
            }
        }
        let mut wrong = vec![false; documents.len()];
        for at in (0..documents.len()).filter(|at| wanted[*at]) {
            let (before, rest) = documents.split_at_mut(at);
            let document = &mut rest[0];
            let Some(base) = base(document) else { continue };
            let base = base.filter(|base| !wrong[*base]).map(|base| &before[base]);
            let (Some(base), DocumentBody::Delta(delta)) = (base, &document.body) else {
                wrong[at] = true;
                continue;
            };
            let DocumentBody::Full(tree) = &base.body else {
                continue;
            };
            match patch::apply(tree, delta) {
                Ok(tree) => {
                    let inherited = || base.meta.spec_version.clone();
                    let own = document.meta.spec_version.take();
                    document.meta.spec_version = own.or_else(inherited);
                    document.body = DocumentBody::Full(tree);
                }
                Err(error) => {
                    wrong[at] = true;
                    self.refuse(document, error);
                }
            }
        }
        let mut wrong = wrong.into_iter();
        documents.retain(|_| wrong.next() != Some(true));
    }
}

/// The documents of an input in the order of their cycles, the working state last. A difference is to one of those before it.
/// Linear, plus sorting of cycles.
pub fn arrange(documents: Vec<Document>) -> (Vec<PlacedDocument>, DocumentOrder) {
    arrange_as(documents, false)
}

fn arrange_as(documents: Vec<Document>, whole: bool) -> (Vec<PlacedDocument>, DocumentOrder) {
    let mut order = DocumentOrder::default();
    let placed = documents
        .into_iter()
        .filter_map(|document| order.place(document));
    let mut placed: Vec<PlacedDocument> = placed.collect();
    order.apply(&mut placed, whole);
    placed.sort_by_key(|document| (document.meta.working, document.meta.cycle));
    (placed, order)
}

/// As [`arrange`], with all differences applied; then the faults, if there are any. For tests that compare both ways.
pub fn whole_trees(
    documents: Vec<Document>,
) -> impl Iterator<Item = Result<(Meta, Tree), InputError>> {
    let (placed, order) = arrange_as(documents, true);
    let trees = placed
        .into_iter()
        .filter_map(|document| match document.body {
            DocumentBody::Full(tree) => Some(Ok((document.meta, tree))),
            DocumentBody::Delta(_) | DocumentBody::Runtime(_) => None,
        });
    trees.chain(order.finish().err().map(Err))
}
