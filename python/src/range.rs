//! `RangeDiff`: what changed between snapshots.

use crate::arrow;
use crate::json::{self, dict};
use crate::sequence::{Position, positions};
use crate::session::Session;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList, PySlice};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What changed between the snapshots of a range: a sequence of pairs, newest first.
///
/// >>> diff = session.range("@t-1..@t0 .cb[kind='call']")
/// >>> diff[0].added, diff[0].removed, diff[0].changed
/// (['cb:c5'], [], [])
#[pyclass(frozen, module = "pactql", weakref)]
pub(crate) struct RangeDiff {
    diff: Arc<pactql::RangeDiff>,
    /// The session's name in a store.
    name: Option<Arc<str>>,
    /// The session, if it was asked alone: its nodes are shown with their texts.
    of: Option<(Arc<pactql::Session>, Arc<pactql::Engine>)>,
}

impl RangeDiff {
    pub(crate) fn new(diff: pactql::RangeDiff, name: Option<Arc<str>>) -> Self {
        Self {
            diff: Arc::new(diff),
            name,
            of: None,
        }
    }

    /// As one of this session.
    pub(crate) fn with_session(
        self,
        session: &Arc<pactql::Session>,
        engine: &Arc<pactql::Engine>,
    ) -> Self {
        let of = Some((Arc::clone(session), Arc::clone(engine)));
        Self { of, ..self }
    }

    /// The pair at a position that it has.
    fn pair(&self, at: usize) -> PairDiff {
        let diff = Arc::clone(&self.diff);
        PairDiff { diff, at }
    }

    fn pairs<'py>(
        &self,
        py: Python<'py>,
        positions: impl IntoIterator<Item = usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let pairs = positions
            .into_iter()
            .map(|at| Bound::new(py, self.pair(at)));
        PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl RangeDiff {
    /// The selector as written.
    #[getter]
    fn query(&self) -> &str {
        &self.diff.query
    }

    /// `pairwise`: each snapshot with the next older one; `reduce`: the newest with the oldest.
    #[getter]
    fn mode(&self) -> &'static str {
        match self.diff.mode {
            pactql::history::RangeMode::Reduce => "reduce",
            _ => "pairwise",
        }
    }

    /// The session it is of, if that is one of a store.
    #[getter]
    fn session(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The snapshots, newest first.
    #[getter]
    fn snapshots(&self) -> Vec<SnapshotRef> {
        self.diff.snapshots.iter().map(SnapshotRef::of).collect()
    }

    /// The session that it was asked of, for what a notebook shows.
    fn _session(&self) -> Option<Session> {
        let (session, engine) = self.of.as_ref()?;
        let (session, engine) = (Arc::clone(session), Arc::clone(engine));
        Some(Session::new(session, engine, self.name.as_deref()))
    }

    /// Warnings about the extent of the range.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.diff.warnings.clone()
    }

    /// What a limit left out, in words.
    #[getter]
    fn errors(&self) -> Vec<String> {
        self.diff.errors.iter().map(ToString::to_string).collect()
    }

    /// Whether a limit left something out.
    #[getter]
    fn truncated(&self) -> bool {
        self.diff.limits.is_some_and(|limits| limits.truncated)
    }

    /// How many nodes were added, removed or changed, over all pairs.
    #[getter]
    fn rows(&self) -> usize {
        self.diff.rows()
    }

    fn __len__(&self) -> usize {
        self.diff.diffs.len()
    }

    /// Whether anything differs.
    fn __bool__(&self) -> bool {
        self.diff.rows() > 0
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.pairs(py, 0..self.__len__())?.try_iter()
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.pairs(py, (0..self.__len__()).rev())?.try_iter()
    }

    /// The pair at a position, or the list of those of a slice.
    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, length) = (index.py(), self.__len__());
        if let Ok(slice) = index.cast::<PySlice>() {
            return Ok(self.pairs(py, positions(slice, length)?)?.into_any());
        }
        let at = Position::of("a diff", index)?.within(length);
        let at = at.ok_or_else(|| PyIndexError::new_err("diff index out of range"))?;
        Ok(Bound::new(py, self.pair(at))?.into_any())
    }

    /// All of it as dictionaries and lists, with the names of the JSON that `pactql select` prints.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::report(py, &*self.diff)
    }

    /// The JSON text that `pactql select` prints.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let text = py.detach(|| serde_json::to_string(&*self.diff));
        text.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
    }

    /// The Arrow C stream of its changes, one a row.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = arrow::Batches::of_changes(Arc::clone(&self.diff), self.name.clone());
        arrow::stream(py, batches)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let html = slf.py().import("pactql._html")?;
        html.call_method1("range_diff", (slf,))
    }

    fn __repr__(&self) -> String {
        let (pairs, rows) = (self.diff.diffs.len(), self.diff.rows());
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        format!(
            "<RangeDiff of {pairs} pair{}, {rows} change{}>",
            plural(pairs),
            plural(rows)
        )
    }
}

/// Two snapshots of a range, and what changed from the older to the newer.
#[pyclass(frozen, module = "pactql")]
pub(crate) struct PairDiff {
    diff: Arc<pactql::RangeDiff>,
    at: usize,
}

impl PairDiff {
    fn pair(&self) -> &pactql::history::PairDiff {
        // It was checked when this was made, and a diff never changes.
        &self.diff.diffs[self.at]
    }
}

#[pymethods]
impl PairDiff {
    /// The newer snapshot.
    #[getter]
    fn newer(&self) -> SnapshotRef {
        SnapshotRef::of(&self.pair().from)
    }

    /// The older snapshot.
    #[getter]
    fn older(&self) -> SnapshotRef {
        SnapshotRef::of(&self.pair().to)
    }

    /// The ids found in the newer only, in its order.
    #[getter]
    fn added(&self) -> Vec<String> {
        self.pair().added_ids.clone()
    }

    /// The ids found in the older only, in its order.
    #[getter]
    fn removed(&self) -> Vec<String> {
        self.pair().removed_ids.clone()
    }

    /// The nodes found in both that differ, in the newer's order.
    #[getter]
    fn changed<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, Change>>> {
        let changes = self.pair().changed.iter();
        changes
            .map(|change| Bound::new(py, Change::of(py, change)?))
            .collect()
    }

    /// How many were added, removed and changed before any limit, if `stats` was asked for.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(stats) = self.pair().stats else {
            return Ok(None);
        };
        Ok(Some(dict!(py,
            "added": stats.added,
            "removed": stats.removed,
            "changed": stats.changed,
        )))
    }

    /// Whether anything differs.
    fn __bool__(&self) -> bool {
        !self.pair().is_empty()
    }

    /// Whether it is the same pair of the same diff.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<Self>();
        other.is_ok_and(|other| {
            let other = other.get();
            Arc::ptr_eq(&self.diff, &other.diff) && self.at == other.at
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (Arc::as_ptr(&self.diff), self.at).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let pair = self.pair();
        format!(
            "<PairDiff {}..{}: +{} -{} ~{}>",
            pair.to.label,
            pair.from.label,
            pair.added_ids.len(),
            pair.removed_ids.len(),
            pair.changed.len()
        )
    }
}

/// A node that both snapshots have and that differs.
#[pyclass(frozen, get_all, module = "pactql")]
pub(crate) struct Change {
    /// The id.
    id: String,
    /// The headers and attributes that differ, sorted.
    fields: Vec<String>,
    /// Of the scalar ones, the newer and the older value, by name.
    delta: Py<PyDict>,
    /// The content diff, if it was asked for and the contents differ.
    content_diff: Option<Py<PyAny>>,
    /// The fields of both versions that were asked for.
    materialized: Option<Py<PyAny>>,
}

impl Change {
    fn of(py: Python<'_>, change: &pactql::history::Change) -> PyResult<Self> {
        let delta = PyDict::new(py);
        for (name, newer, older) in change.delta.texts() {
            delta.set_item(name, (json::value(py, newer)?, json::value(py, older)?))?;
        }
        let content_diff = change.content_diff.as_ref();
        let content_diff = content_diff.map(|diff| json::report(py, diff));
        let materialized = change.materialized.as_ref();
        let materialized = materialized.map(|fields| json::report(py, fields));
        Ok(Self {
            id: change.id.clone(),
            fields: change.fields.clone(),
            delta: delta.unbind(),
            content_diff: content_diff.transpose()?.map(Bound::unbind),
            materialized: materialized.transpose()?.map(Bound::unbind),
        })
    }
}

#[pymethods]
impl Change {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = PyList::new(py, &self.fields)?.repr()?;
        Ok(format!("<Change {} of {fields}>", self.id))
    }
}

/// A snapshot of a range.
#[pyclass(frozen, get_all, eq, hash, module = "pactql")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotRef {
    /// `t`: counted from the newest; `c`: by its cycle.
    kind: String,
    /// The number after the letter.
    value: i64,
    /// As a selector writes it, such as `@t-1`.
    label: String,
    /// The cycle.
    cycle: i64,
}

impl SnapshotRef {
    fn of(snapshot: &pactql::history::SnapshotRef) -> Self {
        Self {
            kind: snapshot.kind.to_owned(),
            value: snapshot.value,
            label: snapshot.label.clone(),
            cycle: snapshot.cycle,
        }
    }
}

#[pymethods]
impl SnapshotRef {
    fn __repr__(&self) -> String {
        format!("<SnapshotRef {} of cycle {}>", self.label, self.cycle)
    }
}
