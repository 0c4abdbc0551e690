//! Answers.

use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;

use super::Prepared;
use crate::diag::{Code, Diagnostic, Error, Warning};
use crate::exec::{NoFacts, RowIter, Rows, Trace, count, named, run, run_unwindowed};
use crate::index::{NodeRef, Snapshot};
use crate::plan::Bound;
use crate::time::{History, RangeDiff};

/// The answer to a selector: nodes of immutable snapshots in result order, or the diffs of a
/// range. Nothing is copied until asked; rows of a single snapshot are found when first asked
/// for, so that [`Selection::count`] can do without them.
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
    /// Over one snapshot.
    One(One),
    /// Rows of several snapshots, by position in `snapshots`.
    Many {
        snapshots: Vec<Arc<Snapshot>>,
        rows: Vec<(u32, u32)>,
    },
    /// A range.
    Range(Box<RangeDiff>),
}

#[derive(Debug)]
struct One {
    bound: Arc<Bound>,
    snapshot: Arc<Snapshot>,
    history: Option<Arc<History>>,
    rows: OnceLock<Rows>,
}

impl One {
    fn rows(&self) -> &Rows {
        self.rows.get_or_init(|| self.run())
    }

    #[inline]
    fn run(&self) -> Rows {
        let mut trace = Trace::off();
        match &self.history {
            Some(history) => run(&self.bound, &self.snapshot, &**history, &mut trace),
            None => run(&self.bound, &self.snapshot, &NoFacts, &mut trace),
        }
    }

    #[inline]
    fn ids_of(&self, rows: &Rows) -> Vec<&str> {
        let mut ids = Vec::with_capacity(rows.len());
        if let [piece] = self.snapshot.pieces() {
            let (segment, shift) = (&*piece.segment, piece.shift());
            rows.for_each(|row| ids.push(segment.id(row - shift)));
        } else {
            let mut cursor = self.snapshot.cursor();
            rows.for_each(|row| ids.push(cursor.id(row)));
        }
        ids
    }
}

impl Selection {
    pub(super) fn one(
        bound: Arc<Bound>,
        snapshot: Arc<Snapshot>,
        history: Option<Arc<History>>,
        warnings: Option<Arc<[Warning]>>,
    ) -> Self {
        let one = One {
            bound,
            snapshot,
            history,
            rows: OnceLock::new(),
        };
        Self {
            kind: Kind::One(one),
            warnings,
        }
    }

    /// `@*`: each id once, where the newest snapshot that matches it puts it (LANGUAGE §6).
    pub(super) fn all(
        bound: &Bound,
        history: &History,
        snapshots: Vec<Arc<Snapshot>>,
        warnings: Option<Arc<[Warning]>>,
    ) -> Self {
        let mut rows = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for (at, snapshot) in snapshots.iter().enumerate() {
            let answer = run_unwindowed(bound, snapshot, history, &mut Trace::off());
            for row in answer.iter() {
                if seen.insert(snapshot.node(row).id()) {
                    rows.push((at as u32, row));
                }
            }
        }
        drop(seen);
        if bound.plan.unique {
            let mut seen: HashSet<(bool, &str)> = HashSet::new();
            rows.retain(|&(at, row)| {
                let node = snapshots[at as usize].node(row);
                seen.insert(node.key().map_or((false, node.id()), |key| (true, key)))
            });
        }
        if let Some((skip, limit)) = bound.window {
            let clamp = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            rows.drain(..clamp(skip).min(rows.len()));
            rows.truncate(clamp(limit));
        }
        Self {
            kind: Kind::Many { snapshots, rows },
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
            Kind::One(_) | Kind::Many { .. } => None,
        }
    }

    /// The diffs of a range.
    ///
    /// # Errors
    /// The selector asked for no range.
    pub fn into_range_diff(self) -> Result<RangeDiff, NotARange> {
        match self.kind {
            Kind::Range(diff) => Ok(*diff),
            Kind::One(_) | Kind::Many { .. } => Err(NotARange),
        }
    }

    /// How many nodes were selected, without listing them; for a range, how many rows its diffs
    /// have. Constant time for a single class over whole snapshots.
    #[must_use]
    pub fn count(&self) -> usize {
        match &self.kind {
            Kind::One(one) => match (one.rows.get(), &one.history) {
                (Some(rows), _) => rows.len(),
                (None, Some(history)) => count(&one.bound, &one.snapshot, &**history) as usize,
                (None, None) => count(&one.bound, &one.snapshot, &NoFacts) as usize,
            },
            Kind::Many { rows, .. } => rows.len(),
            Kind::Range(diff) => diff
                .diffs
                .iter()
                .map(|block| block.added_ids.len() + block.removed_ids.len() + block.changed.len())
                .sum(),
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
        let Kind::One(one) = &self.kind else {
            return self.ids().collect();
        };
        match one.rows.get() {
            Some(rows) => one.ids_of(rows),
            // Not kept: whoever wants all ids at once rarely asks again, and keeping costs.
            None => match named(&one.bound, &one.snapshot) {
                Some(found) => found.into_iter().map(NodeRef::id).collect(),
                None => one.ids_of(&one.run()),
            },
        }
    }

    /// The nodes, in result order; none for a range.
    #[must_use]
    pub fn nodes(&self) -> Nodes<'_> {
        match &self.kind {
            Kind::One(one) => {
                let rows = one.rows();
                let left = rows.len();
                Nodes {
                    one: Some((&one.snapshot, rows.iter())),
                    many: None,
                    left,
                }
            }
            Kind::Many { snapshots, rows } => Nodes {
                one: None,
                many: Some((snapshots, rows.iter())),
                left: rows.len(),
            },
            Kind::Range(_) => Nodes {
                one: None,
                many: None,
                left: 0,
            },
        }
    }

    /// The selection without its first `count` rows. Nothing happens to a range.
    #[must_use]
    pub fn skip(self, count: usize) -> Self {
        self.keep(|at, _| at >= count)
    }

    /// The first `count` rows of the selection. Nothing happens to a range.
    #[must_use]
    pub fn limit(self, count: usize) -> Self {
        self.keep(|at, _| at < count)
    }

    /// The rows that are, or lie inside, a node that `filter`, a selector without time, matches
    /// in the row's snapshot (LANGUAGE §6).
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
        let mut answers: Vec<(*const Snapshot, HashSet<u32>)> = Vec::new();
        Ok(self.keep(|_, node| {
            let snapshot = node.snapshot();
            let at = answers
                .iter()
                .position(|(known, _)| std::ptr::eq(*known, snapshot));
            let at = at.unwrap_or_else(|| {
                let rows = run(bound, snapshot, &NoFacts, &mut Trace::off());
                answers.push((snapshot, rows.iter().collect()));
                answers.len() - 1
            });
            let rows = &answers[at].1;
            let mut above = Some(node);
            while let Some(node) = above {
                if rows.contains(&node.row()) {
                    return true;
                }
                above = node.parent();
            }
            false
        }))
    }

    /// Keeps rows by their position and node.
    fn keep(self, mut keep: impl FnMut(usize, NodeRef<'_>) -> bool) -> Self {
        let kind = match self.kind {
            Kind::One(one) => {
                let rows: Vec<(u32, u32)> = one
                    .rows()
                    .iter()
                    .enumerate()
                    .filter(|&(at, row)| keep(at, one.snapshot.node(row)))
                    .map(|(_, row)| (0, row))
                    .collect();
                Kind::Many {
                    snapshots: vec![one.snapshot],
                    rows,
                }
            }
            Kind::Many {
                snapshots,
                mut rows,
            } => {
                let mut at = 0;
                rows.retain(|&(snapshot, row)| {
                    at += 1;
                    keep(at - 1, snapshots[snapshot as usize].node(row))
                });
                Kind::Many { snapshots, rows }
            }
            kind @ Kind::Range(_) => kind,
        };
        Self { kind, ..self }
    }
}

/// Snapshots, and rows by position among them.
type ManyRows<'a> = (&'a [Arc<Snapshot>], std::slice::Iter<'a, (u32, u32)>);

/// The nodes of a [`Selection`], in result order.
#[derive(Clone, Debug)]
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
