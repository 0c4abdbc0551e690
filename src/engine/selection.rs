//! Rows of an answer.
//!
//! A [`Selection`] has the snapshots, the bound plan, and the operations on its rows. It runs when
//! rows are first asked for, and only as far as a limit needs. A plan that reads few rows runs at
//! once, because deferring it would cost as much.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::node::Node;
use super::nodes::{Ids, Nodes};
use super::nothing::NothingFound;
use super::pipeline::{Op, Pipeline};
use super::statement::BoundSelector;
use crate::advice::EmptyReason;
use crate::history::{LoadFailure, Moment, Position, Union, run_union};
use crate::index::{Snapshot, mask};
use crate::query::exec::{
    Counters, MatchedRows, RunInput, SmallCounters, Trace, count, is_local, run, run_while,
};
use crate::support::diag::{Error, Warning};

/// Nodes of immutable snapshots, in result order. Nothing is copied; rows are found when first
/// asked for, so that [`Selection::count`] needs no list and [`Selection::limit`] stops early.
///
/// ```
/// let session = pactql::Session::open("fixtures/greenhouse.jsonl")?;
/// let notes = pactql::Engine::new().rows(&session, "@t0 .cb[kind='note']")?;
/// assert_eq!(notes.count(), 4);
/// assert_eq!(notes.nodes().next().map(|node| node.id()), Some("units"));
/// assert_eq!(notes.skip(1).limit(2).to_ids(), ["hint0", "hint2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A clone has the rows that were found so far; it costs a copy of their numbers.
#[derive(Clone)]
pub struct Selection {
    kind: SelectionRows,
    warnings: Option<Arc<[Warning]>>,
}

// What is larger is moved by a call, which is a tenth of a small select.
const _: () = assert!(size_of::<Selection>() <= 128);

/// What was read, how many nodes there are, and the ids of the first ones. Finds the rows if nothing has yet.
impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Selection");
        match self.address() {
            SelectionAddress::Snapshots { cycles } => {
                out.field("address", &format_args!("{} snapshots", cycles.len()))
            }
            one => out.field("address", &one),
        };
        let nodes = self.nodes().take(PRINTED);
        let ids: Vec<&str> = nodes.map(|node| node.id()).collect();
        out.field("count", &self.count()).field("ids", &ids);
        out.finish_non_exhaustive()
    }
}

/// How many ids the debug form has.
const PRINTED: usize = 10;

#[derive(Clone, Debug)]
enum SelectionRows {
    KnownRows(KnownRows),
    Recipe(Recipe),
}

#[derive(Clone, Debug)]
struct KnownRows {
    history: Moment,
    position: Position,
    rows: MatchedRows,
    counters: SmallCounters,
    /// What found no row, if none was found: for saying why.
    nothing: Option<Arc<BoundSelector>>,
}

#[derive(Clone, Debug)]
pub(super) enum RowSource {
    One(Position),
    Union(Union),
}

/// Which snapshots a [`Selection`] reads.
///
/// ```
/// use pactql::{Engine, Session, selection::SelectionAddress};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let rows = Engine::new().rows(&session, "@t-1 .cb")?;
/// assert!(matches!(rows.address(), SelectionAddress::Snapshot { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectionAddress {
    /// The working state that the session brings.
    Working,
    /// One committed snapshot. A selector without a time reads the newest one if the session
    /// brings no working state (LANGUAGE §3).
    Snapshot {
        /// Its cycle.
        cycle: i64,
    },
    /// Several committed snapshots, as one list.
    Snapshots {
        /// Their cycles, newest first.
        cycles: Vec<i64>,
    },
}

#[derive(Clone, Debug)]
struct Recipe {
    history: Moment,
    target: RowSource,
    bound: Arc<BoundSelector>,
    ops: Vec<Op>,
    /// The rows, and the work of the run that found them.
    found: OnceLock<Box<(FoundRows, Counters)>>,
}

#[derive(Clone, Debug)]
enum FoundRows {
    One(MatchedRows),
    /// Of committed snapshots: position in the history, and row.
    Many(Vec<(u32, u32)>),
}

impl FoundRows {
    fn len(&self) -> usize {
        match self {
            Self::One(rows) => rows.len(),
            Self::Many(rows) => rows.len(),
        }
    }
}

impl Recipe {
    fn new(bound: &Arc<BoundSelector>, history: Moment, target: RowSource) -> Self {
        Self {
            history,
            target,
            bound: Arc::clone(bound),
            ops: Vec::new(),
            found: OnceLock::new(),
        }
    }

    #[inline]
    fn snapshot(&self) -> Option<&Snapshot> {
        match self.target {
            RowSource::One(position) => self.history.get(position).map(|snapshot| &**snapshot),
            RowSource::Union(_) => None,
        }
    }

    /// The rows and the work of finding them, which `trace` records unless they are known.
    fn found(&self, trace: &mut Trace) -> &(FoundRows, Counters) {
        if let Some(found) = self.found.get() {
            return found;
        }
        let found = self.find(trace);
        self.found.get_or_init(|| Box::new((found, trace.counters)))
    }

    fn rows(&self) -> &FoundRows {
        &self.found(&mut Trace::off()).0
    }

    fn find(&self, trace: &mut Trace) -> FoundRows {
        let (bound, history) = (&**self.bound, &*self.history);
        let snapshot = self.snapshot();
        if let (Some(snapshot), []) = (snapshot, &*self.ops) {
            return FoundRows::One(run(bound, RunInput::new(snapshot, history), trace));
        }
        let mut pipeline = Pipeline::new(&self.ops, &self.history);
        let (mut one, mut many) = (SmallVec::new(), Vec::new());
        match (&self.target, snapshot) {
            _ if pipeline.is_done() => {}
            (RowSource::Union(union), _) => {
                run_union(bound, history, union, trace, &mut |at, node| {
                    if pipeline.admits(node) {
                        many.push((at as u32, node.row()));
                    }
                    !pipeline.is_done()
                });
            }
            (RowSource::One(_), Some(snapshot)) => {
                let input = RunInput::new(snapshot, history);
                run_while(bound, input, trace, &mut |row| {
                    if pipeline.admits(snapshot.node(row)) {
                        one.push(row);
                    }
                    !pipeline.is_done()
                });
            }
            (RowSource::One(_), None) => {}
        }
        trace.counters += pipeline.counters();
        match self.target {
            RowSource::One(_) => FoundRows::One(MatchedRows::List(one)),
            RowSource::Union(_) => FoundRows::Many(many),
        }
    }

    /// What was read, for saying why it has no rows.
    fn nothing(&self) -> NothingFound {
        let history = self.history.clone().into_history();
        let (only, many) = match &self.target {
            RowSource::One(position) => (Some(*position), None),
            RowSource::Union(union) => (None, Some(union.snapshots(&history).rev())),
        };
        let one = only.and_then(|position| history.get(position));
        let read = one.into_iter().chain(many.into_iter().flatten());
        let read = read.cloned().collect();
        NothingFound::new(&self.bound, history, read, only)
    }

    /// Its filters, each as a selector of the same snapshots.
    fn filters(&self) -> impl Iterator<Item = Self> {
        self.ops.iter().filter_map(|op| match op {
            Op::Filter(bound) => Some(Self::new(bound, self.history.clone(), self.target.clone())),
            Op::Skip(_) | Op::Limit(_) => None,
        })
    }

    /// Whether there are rows before the operations.
    fn finds_any(&self) -> bool {
        let (ops, found) = (vec![Op::Limit(1)], OnceLock::new());
        let first = Self {
            ops,
            found,
            ..self.clone()
        };
        first.rows().len() > 0
    }

    /// Adds an operation. Rows found before are dropped.
    fn then(mut self, op: Op) -> Self {
        self.ops.push(op);
        self.found = OnceLock::new();
        self
    }
}

impl KnownRows {
    #[inline]
    fn snapshot(&self) -> Option<&Snapshot> {
        self.history.get(self.position).map(|snapshot| &**snapshot)
    }

    fn then(self, op: Op) -> SelectionRows {
        let filter = match &op {
            Op::Filter(bound) if self.nothing.is_none() => Some(Arc::clone(bound)),
            _ => None,
        };
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
        let mut counters = Counters::from(self.counters);
        counters += pipeline.counters();
        drop(pipeline);
        let rows = MatchedRows::List(rows);
        if let Some(bound) = filter.filter(|_| rows.is_empty()) {
            let source = RowSource::One(self.position);
            // What the filter finds alone, and none of that: it says why nothing is left.
            return SelectionRows::Recipe(Recipe {
                ops: vec![Op::Limit(0)],
                found: OnceLock::from(Box::new((FoundRows::One(rows), counters))),
                ..Recipe::new(&bound, self.history, source)
            });
        }
        SelectionRows::KnownRows(Self {
            rows,
            counters: counters.into(),
            ..self
        })
    }
}

#[inline]
pub(super) fn ids_of<'a>(snapshot: &'a Snapshot, rows: &MatchedRows) -> Vec<&'a str> {
    let pieces = snapshot.pieces();
    match rows {
        MatchedRows::Word { word: 0, .. } => Vec::new(),
        MatchedRows::Word { start, word } => {
            let piece = &pieces[snapshot.piece_of(*start)];
            let of_segment = piece.segment().ids();
            of_segment.list(start - piece.shift(), *word).collect()
        }
        MatchedRows::Bits(windows) => {
            let (mut ids, mut at) = (Vec::with_capacity(rows.len()), 0);
            for window in windows {
                for (first, mut word) in window.filled_words() {
                    while word != 0 {
                        let row = first + word.trailing_zeros();
                        while pieces[at].end() <= row {
                            at += 1;
                        }
                        // Mostly one piece has all rows of a word.
                        let (piece, mut own) = (&pieces[at], word);
                        if piece.end() - first < 64 {
                            own &= mask(first / 64, first, piece.end());
                        }
                        let of_segment = piece.segment().ids();
                        ids.extend(of_segment.list(first - piece.shift(), own));
                        word &= !own;
                    }
                }
            }
            ids
        }
        MatchedRows::List(rows) => {
            let mut cursor = snapshot.cursor();
            rows.iter().map(|row| cursor.id(*row)).collect()
        }
    }
}

impl Selection {
    /// The rows of one snapshot: found at once, recorded in `trace`, if the plan is local.
    #[inline]
    pub(super) fn one(
        bound: &Arc<BoundSelector>,
        history: Moment,
        position: Position,
        trace: &mut Trace,
    ) -> Self {
        let Some(snapshot) = history
            .get(position)
            .filter(|snapshot| is_local(bound, snapshot))
        else {
            return Self::lazy(bound, history, RowSource::One(position));
        };
        // Apart from the others: two numbers are stored where they stay, while a larger value that was just put together of
        // them costs more to move than they cost to find.
        match run(bound, RunInput::new(snapshot, &*history), trace) {
            MatchedRows::Word { start, word } => {
                let rows = MatchedRows::Word { start, word };
                Self::known(bound, history, position, rows, trace)
            }
            rows => Self::known(bound, history, position, rows, trace),
        }
    }

    #[inline(always)]
    fn known(
        bound: &Arc<BoundSelector>,
        history: Moment,
        position: Position,
        rows: MatchedRows,
        trace: &Trace,
    ) -> Self {
        Self {
            kind: SelectionRows::KnownRows(KnownRows {
                nothing: rows.is_empty().then(|| Arc::clone(bound)),
                rows,
                counters: trace.counters.into(),
                history,
                position,
            }),
            warnings: bound.statement.warnings.clone(),
        }
    }

    pub(super) fn lazy(bound: &Arc<BoundSelector>, history: Moment, target: RowSource) -> Self {
        Self {
            kind: SelectionRows::Recipe(Recipe::new(bound, history, target)),
            warnings: bound.statement.warnings.clone(),
        }
    }

    /// How rows are found; `None` if some were found at once.
    fn recipe(&self) -> Option<Cow<'_, Recipe>> {
        let known = match &self.kind {
            SelectionRows::Recipe(recipe) => return Some(Cow::Borrowed(recipe)),
            SelectionRows::KnownRows(known) => known,
        };
        let bound = known.nothing.as_ref()?;
        let source = RowSource::One(known.position);
        let recipe = Recipe::new(bound, known.history.clone(), source);
        Some(Cow::Owned(recipe))
    }

    pub(super) fn with_warnings(self, warnings: Vec<Warning>) -> Self {
        let warnings = (!warnings.is_empty()).then(|| warnings.into());
        Self { warnings, ..self }
    }

    /// Warnings about the selector and the extent of its range.
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.as_deref().unwrap_or(&[])
    }

    /// The number of nodes, without listing them. For a single class: one addition per segment.
    pub fn count(&self) -> usize {
        let recipe = match &self.kind {
            SelectionRows::KnownRows(known) => return known.rows.len(),
            SelectionRows::Recipe(recipe) => recipe,
        };
        if let (None, Some(snapshot), []) = (recipe.found.get(), recipe.snapshot(), &*recipe.ops) {
            let trace = &mut Trace::off();
            let input = RunInput::new(snapshot, &*recipe.history);
            return count(&recipe.bound, input, trace) as usize;
        }
        recipe.rows().len()
    }

    /// Which snapshots the rows come from: says what an omitted time meant (LANGUAGE §3).
    pub fn address(&self) -> SelectionAddress {
        let (history, target) = match &self.kind {
            SelectionRows::KnownRows(known) => (&known.history, &RowSource::One(known.position)),
            SelectionRows::Recipe(recipe) => (&recipe.history, &recipe.target),
        };
        let cycle = |snapshot: &Arc<Snapshot>| snapshot.cycle();
        match target {
            RowSource::One(Position::Working) => SelectionAddress::Working,
            RowSource::One(position) => SelectionAddress::Snapshot {
                cycle: history.get(*position).map_or(0, cycle),
            },
            RowSource::Union(union) => SelectionAddress::Snapshots {
                cycles: union.snapshots(history).rev().map(cycle).collect(),
            },
        }
    }

    /// The snapshots that the rows come from, oldest first: whole, also where a store has loaded a part of one.
    ///
    /// # Errors
    /// A snapshot of a store that cannot be loaded.
    pub fn snapshots(&self) -> Result<Vec<Arc<Snapshot>>, Error> {
        let (history, target) = match &self.kind {
            SelectionRows::KnownRows(known) => (&known.history, &RowSource::One(known.position)),
            SelectionRows::Recipe(recipe) => (&recipe.history, &recipe.target),
        };
        let history = history.whole().map_or(&**history, |whole| &**whole);
        match target {
            RowSource::One(position) => {
                history.fetch(*position)?;
                Ok(history.get(*position).cloned().into_iter().collect())
            }
            RowSource::Union(union) => {
                history.fetch_all()?;
                Ok(union.snapshots(history).cloned().collect())
            }
        }
    }

    /// Why there are no rows (LANGUAGE §10): names and values that no node has, the step after
    /// which nothing was left, matches in other snapshots. Empty if there are rows, or if the
    /// selector matches nothing by its form, which [`Selection::warnings`] reports.
    ///
    /// Linear in the nodes read, and may run the selector over every snapshot. In a session of a store
    /// it may load every snapshot; it has nothing to say if one cannot be loaded.
    pub fn why_empty(&self) -> Vec<EmptyReason> {
        if self.count() > 0 {
            return Vec::new();
        }
        if let Some(whole) = self.in_whole() {
            return whole.map_or_else(|_| Vec::new(), |whole| whole.why_empty());
        }
        let Some(recipe) = self.recipe() else {
            return vec![EmptyReason::Narrowed];
        };
        // Only operations take the last row of a selection that had some: a filter that finds nothing alone, or another.
        let own = (recipe.ops.is_empty() || !recipe.finds_any()).then(|| recipe.nothing());
        let filters = || recipe.filters().find(|filter| !filter.finds_any());
        let nothing = own.or_else(|| Some(filters()?.nothing()));
        let reasons = nothing.map_or_else(Vec::new, |nothing| nothing.reasons());
        // One that matches nothing by its form has a warning, which a filter leaves with its own selector.
        if reasons.is_empty() && !recipe.ops.is_empty() && self.warnings().is_empty() {
            return vec![EmptyReason::Narrowed];
        }
        reasons
    }

    /// Names and values that no node has, each with what may have been meant, in words, if it found nothing: mostly a
    /// mistake in writing. [`Selection::why_empty`] has all reasons.
    ///
    /// Linear in the nodes read.
    ///
    /// ```
    /// let session = pactql::Session::open("fixtures/support-agent.jsonl")?;
    /// let meant = |selector| Ok::<_, pactql::Error>(pactql::Engine::new().rows(&session, selector)?.meant());
    /// assert_eq!(meant("@t0 .cb[rol='user']")?, ["no node has `rol`; did you mean `role`?"]);
    /// assert!(meant("@t0 .cb[kind='thinking']")?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn meant(&self) -> Vec<String> {
        let nothing = self.nothing();
        let unknown = nothing.map_or_else(Vec::new, |it| NothingFound::unknown_in_all([&it]));
        let corrected = unknown.iter().filter(|reason| reason.is_corrected());
        corrected.map(EmptyReason::to_string).collect()
    }

    /// The selector and what it read, if it found nothing.
    pub(crate) fn nothing(&self) -> Option<NothingFound> {
        if self.count() > 0 {
            return None;
        }
        let whole = self.in_whole().unwrap_or_else(|| Ok(self.clone())).ok()?;
        Some(whole.recipe()?.nothing())
    }

    /// Whether its history shows a part of the snapshot.
    #[cfg(feature = "cli")]
    pub(crate) fn is_part(&self) -> bool {
        let recipe = self.recipe();
        recipe.is_some_and(|recipe| recipe.history.whole().is_some())
    }

    /// The same selection of the whole snapshot, if its history shows a part of one.
    pub(crate) fn in_whole(&self) -> Option<Result<Self, LoadFailure>> {
        let recipe = self.recipe()?;
        let (whole, RowSource::One(position)) = (recipe.history.whole()?, &recipe.target) else {
            return None;
        };
        Some(whole.fetch(*position).map(|()| Self {
            kind: SelectionRows::Recipe(Recipe {
                history: Moment::from(Arc::clone(whole)),
                found: OnceLock::new(),
                ..Recipe::clone(&recipe)
            }),
            warnings: self.warnings.clone(),
        }))
    }

    pub(super) fn whole(self) -> Result<Self, LoadFailure> {
        self.in_whole().unwrap_or(Ok(self))
    }

    pub(super) fn fetch_all(&self) -> Result<(), LoadFailure> {
        match &self.kind {
            SelectionRows::KnownRows(known) => known.history.fetch_all(),
            SelectionRows::Recipe(recipe) => recipe.history.fetch_all(),
        }
    }

    /// The ids, in result order.
    pub fn ids(&self) -> Ids<'_> {
        Ids {
            nodes: self.nodes(),
        }
    }

    /// The ids, in result order, as a list. Faster than collecting [`Selection::ids`].
    pub fn to_ids(&self) -> Vec<&str> {
        let recipe = match &self.kind {
            SelectionRows::KnownRows(known) if known.rows.is_empty() => return Vec::new(),
            SelectionRows::KnownRows(known) => {
                let snapshot = known.snapshot();
                return snapshot.map_or_else(Vec::new, |snapshot| ids_of(snapshot, &known.rows));
            }
            SelectionRows::Recipe(recipe) => recipe,
        };
        match (recipe.snapshot(), recipe.found.get().map(|found| &found.0)) {
            (Some(snapshot), Some(FoundRows::One(rows))) => ids_of(snapshot, rows),
            // Not kept: callers that list all ids rarely ask again, and keeping rows costs.
            (Some(snapshot), None) => match recipe.find(&mut Trace::off()) {
                FoundRows::One(rows) => ids_of(snapshot, &rows),
                FoundRows::Many(_) => self.ids().collect(),
            },
            _ => self.ids().collect(),
        }
    }

    /// The nodes, in result order.
    pub fn nodes(&self) -> Nodes<'_> {
        let (snapshot, rows) = match &self.kind {
            SelectionRows::KnownRows(known) => (known.snapshot(), &known.rows),
            SelectionRows::Recipe(recipe) => match recipe.rows() {
                FoundRows::One(rows) => (recipe.snapshot(), rows),
                FoundRows::Many(rows) => {
                    return Nodes {
                        one: None,
                        many: Some((recipe.history.committed(), rows.iter())),
                        left: rows.len(),
                    };
                }
            },
        };
        snapshot.map_or_else(Nodes::default, |snapshot| Nodes {
            one: Some((snapshot, rows.iter())),
            many: None,
            left: rows.len(),
        })
    }

    /// The work of the run that found the rows. Finds them first, if that is not done yet.
    pub fn measure(&self) -> Counters {
        self.trace(&mut Trace::off())
    }

    /// Finds the rows, if that is not done yet, recorded in `trace`; returns the work of the run
    /// that found them.
    pub(super) fn trace(&self, trace: &mut Trace) -> Counters {
        match &self.kind {
            SelectionRows::KnownRows(known) => known.counters.into(),
            SelectionRows::Recipe(recipe) => recipe.found(trace).1,
        }
    }

    /// The selection without its first `count` rows. Does not run the selector.
    #[must_use]
    pub fn skip(self, count: usize) -> Self {
        self.then(Op::Skip(count))
    }

    /// The first `count` rows of the selection. Does not run the selector. If rows come in document
    /// order and no pick spans the tree, a later run stops at the last of them.
    #[must_use]
    pub fn limit(self, count: usize) -> Self {
        self.then(Op::Limit(count))
    }

    pub(super) fn then(self, op: Op) -> Self {
        let kind = match self.kind {
            SelectionRows::KnownRows(known) => known.then(op),
            SelectionRows::Recipe(recipe) => SelectionRows::Recipe(recipe.then(op)),
        };
        Self { kind, ..self }
    }
}

impl<'a> IntoIterator for &'a Selection {
    type Item = Node<'a>;
    type IntoIter = Nodes<'a>;

    fn into_iter(self) -> Nodes<'a> {
        self.nodes()
    }
}
