//! Answers.
//!
//! A [`Selection`] over snapshots is a recipe: where to look, what to look for, and what to do
//! with the rows in turn. It is followed when rows are first asked for, and only as far as a
//! limit lets it; what looks at a handful of rows is run at once, as that costs no more than
//! putting it off.

use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::Prepared;
use super::pipeline::{Op, Pipeline};
use crate::diag::{Code, Diagnostic, Error, Warning};
use crate::exec::{
    Counters, RowIter, Rows, Trace, answers_by_unit, at_once, count, run, run_in, run_unwindowed,
    run_while,
};
use crate::history::{Moment, Place, RangeDiff, same_spine};
use crate::index::{Changes, NodeRef, Snapshot};
use crate::plan::Bound;

/// The answer to a selector: nodes of immutable snapshots in result order, or the diffs of a
/// range. Nothing is copied until asked; rows are found when first asked for, so that
/// [`Selection::count`] can do without them and [`Selection::limit`] can stop early.
#[derive(Debug)]
pub struct Selection {
    kind: Kind,
    warnings: Option<Arc<[Warning]>>,
}

/// The selector asked for rows, not for the diffs of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotARange;

impl std::fmt::Display for NotARange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the selector asked for rows, not for a range")
    }
}

impl std::error::Error for NotARange {}

#[derive(Debug)]
enum Kind {
    /// Rows found at once.
    Known(Known),
    /// Rows to be found.
    Recipe(Box<Recipe>),
    /// A range.
    Range(Box<RangeDiff>),
}

/// Rows of one snapshot.
#[derive(Debug)]
struct Known {
    history: Moment,
    place: Place,
    rows: Rows,
}

/// The part of a history that is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// One snapshot.
    One(Place),
    /// Neighbouring committed snapshots as one list, newest first: each id once.
    Several {
        newest: usize,
        oldest: usize,
        /// Whether an id's newest version among them decides, or any.
        latest: bool,
    },
}

impl Part {
    /// Every committed snapshot; positions past the newest are none.
    pub(super) fn all() -> Self {
        Self::Several {
            newest: usize::MAX,
            oldest: 0,
            latest: false,
        }
    }
}

/// What to do for rows, and the rows once it is done.
#[derive(Debug)]
struct Recipe {
    history: Moment,
    part: Part,
    /// What to look for.
    bound: Arc<Bound>,
    /// What to do with the rows, in turn.
    ops: Vec<Op>,
    found: OnceLock<Found>,
}

/// Rows.
#[derive(Debug)]
enum Found {
    /// Of the one snapshot.
    One(Rows),
    /// Of committed snapshots, by position in the history.
    Many(Vec<(u32, u32)>),
}

impl Recipe {
    /// The one snapshot. A place is one of this history.
    #[inline]
    fn snapshot(&self) -> Option<&Snapshot> {
        match self.part {
            Part::One(place) => self.history.get(place).map(|snapshot| &**snapshot),
            Part::Several { .. } => None,
        }
    }

    fn found(&self) -> &Found {
        self.found.get_or_init(|| self.find(&mut Trace::off()))
    }

    fn find(&self, trace: &mut Trace) -> Found {
        let bound = &*self.bound;
        match self.snapshot() {
            Some(snapshot) if self.ops.is_empty() => {
                Found::One(run(bound, snapshot, &*self.history, trace))
            }
            Some(snapshot) => {
                let mut rows = SmallVec::new();
                let mut pipeline = Pipeline::new(&self.ops, &self.history);
                if !pipeline.is_done() {
                    run_while(bound, snapshot, &*self.history, trace, &mut |row| {
                        if pipeline.admits(snapshot.node(row)) {
                            rows.push(row);
                        }
                        !pipeline.is_done()
                    });
                }
                Found::One(Rows::List(rows))
            }
            None => Found::Many(self.find_everywhere(trace)),
        }
    }

    /// Each id once, where the newest snapshot that matches it puts it (LANGUAGE §6, §7). What a
    /// snapshot shares with the one before it, newer by one, is not run again where it answers
    /// for itself.
    fn find_everywhere(&self, trace: &mut Trace) -> Vec<(u32, u32)> {
        let Part::Several {
            newest,
            oldest,
            latest,
        } = self.part
        else {
            return Vec::new();
        };
        let bound = &*self.bound;
        let committed = self.history.committed();
        // The window and uniqueness act on the whole, below.
        let local = answers_by_unit(bound);
        let mut rows = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        let mut keys: HashSet<(bool, &str)> = HashSet::new();
        // Ids that are gone in older snapshots than the ones they are in.
        let mut newer_ids: HashSet<&str> = HashSet::new();
        let (mut skip, mut left) = bound.window.unwrap_or((0, u64::MAX));
        let mut pipeline = Pipeline::new(&self.ops, &self.history);
        let mut newer: Option<&Snapshot> = None;
        for at in (oldest..committed.len().min(newest.saturating_add(1))).rev() {
            if left == 0 || pipeline.is_done() {
                break;
            }
            let snapshot = &*committed[at];
            let changes = newer
                .filter(|_| local || latest)
                .map(|newer| (newer, Changes::between(newer, snapshot)));
            let answer = match &changes {
                Some((newer, changes))
                    if local && (!changes.has_preamble() || same_spine(newer, snapshot)) =>
                {
                    trace.counters.pieces_read += snapshot.pieces().len() as u64;
                    run_in(bound, snapshot, &*self.history, &changes.older, trace)
                }
                _ => run_unwindowed(bound, snapshot, &*self.history, trace),
            };
            if latest && let Some((newer, changes)) = &changes {
                let ids = changes
                    .newer
                    .iter()
                    .flat_map(|rows| newer.nodes_in(rows.clone()));
                newer_ids.extend(ids.map(NodeRef::id));
            }
            for row in answer.iter() {
                let node = snapshot.node(row);
                let id = node.id();
                let decided = latest
                    && newer
                        .is_some_and(|newer| newer_ids.contains(id) || newer.find(id).is_some());
                if decided || !seen.insert(id) || bound.plan.unique && !keys.insert(node.identity())
                {
                    continue;
                }
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                if left == 0 || pipeline.is_done() {
                    break;
                }
                left -= 1;
                if pipeline.admits(node) {
                    rows.push((at as u32, row));
                }
            }
            newer = Some(snapshot);
        }
        rows
    }

    /// Adds something to do with the rows.
    fn then(mut self, op: Op) -> Self {
        self.ops.push(op);
        self.found = OnceLock::new();
        self
    }
}

impl Known {
    /// The snapshot. A place is one of its history.
    #[inline]
    fn snapshot(&self) -> Option<&Snapshot> {
        self.history.get(self.place).map(|snapshot| &**snapshot)
    }

    /// Does something with the rows.
    fn then(self, op: Op) -> Self {
        let ops = [op];
        let mut pipeline = Pipeline::new(&ops, &self.history);
        let mut rows = SmallVec::new();
        if let Some(snapshot) = self.snapshot() {
            for row in self.rows.iter() {
                if pipeline.is_done() {
                    break;
                }
                if pipeline.admits(snapshot.node(row)) {
                    rows.push(row);
                }
            }
        }
        drop(pipeline);
        Self {
            rows: Rows::List(rows),
            ..self
        }
    }
}

/// The ids of rows, in their order.
#[inline]
fn ids_of<'a>(snapshot: &'a Snapshot, rows: &Rows) -> Vec<&'a str> {
    // Filling slots costs half of what adding one by one does.
    let mut ids = vec![""; rows.len()];
    if let ([piece], Rows::Bits(windows)) = (snapshot.pieces(), rows) {
        let (of_segment, shift) = (piece.segment.ids(), piece.shift());
        let mut slots = &mut *ids;
        for window in windows {
            let mut first = window.start();
            for &word in window.words() {
                if word != 0 {
                    let (own, rest) = slots.split_at_mut(word.count_ones() as usize);
                    of_segment.list(first - shift, word, own);
                    slots = rest;
                }
                first += 64;
            }
        }
        return ids;
    }
    let mut slots = ids.iter_mut();
    let mut put = |id| {
        if let Some(slot) = slots.next() {
            *slot = id;
        }
    };
    if let [piece] = snapshot.pieces() {
        let (of_segment, shift) = (piece.segment.ids(), piece.shift());
        rows.for_each(|row| put(of_segment.get(row - shift)));
    } else {
        let mut cursor = snapshot.cursor();
        rows.for_each(|row| put(cursor.id(row)));
    }
    ids
}

impl Selection {
    #[inline]
    pub(super) fn one(
        bound: &Arc<Bound>,
        history: Moment,
        place: Place,
        warnings: Option<Arc<[Warning]>>,
    ) -> Self {
        let Some(snapshot) = history.get(place).filter(|_| bound.is_local()) else {
            return Self::lazy(bound, history, Part::One(place), warnings);
        };
        let rows = match at_once(bound, snapshot, &*history) {
            Some(rows) => rows,
            None => run(bound, snapshot, &*history, &mut Trace::off()),
        };
        Self {
            kind: Kind::Known(Known {
                history,
                place,
                rows,
            }),
            warnings,
        }
    }

    /// The answer over a part of a history, not begun.
    pub(super) fn lazy(
        bound: &Arc<Bound>,
        history: Moment,
        part: Part,
        warnings: Option<Arc<[Warning]>>,
    ) -> Self {
        Self {
            kind: Kind::Recipe(Box::new(Recipe {
                history,
                part,
                bound: Arc::clone(bound),
                ops: Vec::new(),
                found: OnceLock::new(),
            })),
            warnings,
        }
    }

    pub(super) fn range(diff: RangeDiff, warnings: Option<Arc<[Warning]>>) -> Self {
        Self {
            kind: Kind::Range(Box::new(diff)),
            warnings,
        }
    }

    /// What a reader should know of the selector. Warnings of a range's extent are in its
    /// result.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.as_deref().unwrap_or(&[])
    }

    /// Whether it is the answer to a range.
    #[must_use]
    pub fn is_range(&self) -> bool {
        matches!(self.kind, Kind::Range(_))
    }

    /// The diffs of a range.
    #[must_use]
    pub fn range_diff(&self) -> Option<&RangeDiff> {
        match &self.kind {
            Kind::Range(diff) => Some(diff),
            Kind::Known(_) | Kind::Recipe(_) => None,
        }
    }

    /// The diffs of a range.
    ///
    /// # Errors
    /// The selector asked for no range.
    pub fn into_range_diff(self) -> Result<RangeDiff, NotARange> {
        match self.kind {
            Kind::Range(diff) => Ok(*diff),
            Kind::Known(_) | Kind::Recipe(_) => Err(NotARange),
        }
    }

    /// How many nodes were selected, without listing them; for a range, how many rows its diffs
    /// have. Constant time for a single class over whole snapshots.
    #[must_use]
    pub fn count(&self) -> usize {
        let recipe = match &self.kind {
            Kind::Known(known) => return known.rows.len(),
            Kind::Recipe(recipe) => recipe,
            Kind::Range(diff) => return diff.rows(),
        };
        if let (None, Some(snapshot), []) = (recipe.found.get(), recipe.snapshot(), &*recipe.ops) {
            return count(&recipe.bound, snapshot, &*recipe.history) as usize;
        }
        match recipe.found() {
            Found::One(rows) => rows.len(),
            Found::Many(rows) => rows.len(),
        }
    }

    /// The ids, in result order; none for a range.
    #[must_use]
    pub fn ids(&self) -> Ids<'_> {
        Ids {
            nodes: self.nodes(),
        }
    }

    /// The ids, in result order, in one go: the fastest way to hold them all.
    #[must_use]
    pub fn to_ids(&self) -> Vec<&str> {
        let recipe = match &self.kind {
            Kind::Known(known) => {
                let snapshot = known.snapshot();
                return snapshot.map_or_else(Vec::new, |snapshot| ids_of(snapshot, &known.rows));
            }
            Kind::Recipe(recipe) => recipe,
            Kind::Range(_) => return Vec::new(),
        };
        match (recipe.snapshot(), recipe.found.get()) {
            (Some(snapshot), Some(Found::One(rows))) => ids_of(snapshot, rows),
            // Not kept: whoever wants all ids at once rarely asks again, and keeping costs.
            (Some(snapshot), None) => match recipe.find(&mut Trace::off()) {
                Found::One(rows) => ids_of(snapshot, &rows),
                Found::Many(_) => self.ids().collect(),
            },
            _ => self.ids().collect(),
        }
    }

    /// The nodes, in result order; none for a range.
    #[must_use]
    pub fn nodes(&self) -> Nodes<'_> {
        let (snapshot, rows) = match &self.kind {
            Kind::Known(known) => (known.snapshot(), &known.rows),
            Kind::Recipe(recipe) => match recipe.found() {
                Found::One(rows) => (recipe.snapshot(), rows),
                Found::Many(rows) => {
                    return Nodes {
                        one: None,
                        many: Some((recipe.history.committed(), rows.iter())),
                        left: rows.len(),
                    };
                }
            },
            Kind::Range(_) => return Nodes::default(),
        };
        snapshot.map_or_else(Nodes::default, |snapshot| Nodes {
            one: Some((snapshot, rows.iter())),
            many: None,
            left: rows.len(),
        })
    }

    /// Finds the rows, if that is not done yet, and says what it took; nothing where they were
    /// known already. For a range, what its diffs took.
    pub fn measure(&self) -> Counters {
        if let Kind::Range(diff) = &self.kind {
            return diff.counters;
        }
        let mut trace = Trace::off();
        self.trace(&mut trace);
        trace.counters
    }

    /// Finds the rows, recorded in `trace`, and keeps them.
    pub(super) fn trace(&self, trace: &mut Trace) {
        if let Kind::Recipe(recipe) = &self.kind {
            recipe.found.get_or_init(|| recipe.find(trace));
        }
    }

    /// The selection without its first `count` rows. Nothing is run yet. Nothing happens to a
    /// range.
    #[must_use]
    pub fn skip(self, count: usize) -> Self {
        self.then(Op::Skip(count))
    }

    /// The first `count` rows of the selection. Nothing is run yet; where rows come in document
    /// order and no pick spans the tree, what lies behind the last of them is never looked at.
    /// Nothing happens to a range.
    #[must_use]
    pub fn limit(self, count: usize) -> Self {
        self.then(Op::Limit(count))
    }

    /// The rows that are, or lie inside, a node that `filter`, a selector without time, matches
    /// in the row's snapshot (LANGUAGE §6). Nothing is run yet. Nothing happens to a range.
    ///
    /// # Errors
    /// The filter names a time, or has parameters without values.
    pub fn filter(self, filter: &Prepared) -> Result<Self, Error> {
        let text = filter.text();
        let invalid = |message: &str| {
            Error::new(
                text,
                Diagnostic::error(Code::SelectorInvalid, message).at(0..text.len(), ""),
            )
        };
        if text.trim_start().starts_with('@') {
            return Err(invalid(
                "a filter takes no time: each row is asked in its own snapshot",
            ));
        }
        let Some(bound) = filter.bound() else {
            return Err(invalid("the filter's parameters have no values"));
        };
        Ok(self.then(Op::Filter(Arc::clone(bound))))
    }

    fn then(self, op: Op) -> Self {
        let kind = match self.kind {
            Kind::Known(known) => Kind::Known(known.then(op)),
            Kind::Recipe(recipe) => Kind::Recipe(Box::new(recipe.then(op))),
            kind @ Kind::Range(_) => kind,
        };
        Self { kind, ..self }
    }
}

/// Snapshots, and rows by position among them.
type ManyRows<'a> = (&'a [Arc<Snapshot>], std::slice::Iter<'a, (u32, u32)>);

/// The nodes of a [`Selection`], in result order.
#[derive(Clone, Debug, Default)]
pub struct Nodes<'a> {
    one: Option<(&'a Snapshot, RowIter<'a>)>,
    many: Option<ManyRows<'a>>,
    left: usize,
}

impl<'a> Iterator for Nodes<'a> {
    type Item = NodeRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<NodeRef<'a>> {
        if let Some((snapshot, rows)) = &mut self.one {
            let row = rows.next()?;
            self.left = self.left.saturating_sub(1);
            return Some(snapshot.node(row));
        }
        let (snapshots, rows) = self.many.as_mut()?;
        let &(snapshot, row) = rows.next()?;
        self.left = self.left.saturating_sub(1);
        Some(snapshots[snapshot as usize].node(row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Nodes<'_> {}

/// The ids of a [`Selection`], in result order.
#[derive(Clone, Debug)]
pub struct Ids<'a> {
    nodes: Nodes<'a>,
}

impl<'a> Iterator for Ids<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        self.nodes.next().map(NodeRef::id)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.nodes.size_hint()
    }
}

impl ExactSizeIterator for Ids<'_> {}
