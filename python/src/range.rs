//! `RangeDiff`: what changed between snapshots.

use crate::arrow;
use crate::errors::OrRaise;
use crate::forks;
use crate::json;
use crate::sequence::{Position, positions};
use crate::session::Session;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList, PySlice};
use serde::{Deserialize, Serialize};
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
    /// What was asked, if that was one session.
    of: Option<Asked>,
}

/// The session that was asked for what changed, and how.
struct Asked {
    session: Arc<pactql::Session>,
    engine: Arc<pactql::Engine>,
    prepared: pactql::Prepared,
}

impl RangeDiff {
    pub(crate) fn new(diff: pactql::RangeDiff, name: Option<Arc<str>>) -> Self {
        Self {
            diff: Arc::new(diff),
            name,
            of: None,
        }
    }

    /// As the answer of this session.
    pub(crate) fn with_session(
        self,
        session: &Arc<pactql::Session>,
        engine: &Arc<pactql::Engine>,
        prepared: &pactql::Prepared,
    ) -> Self {
        let of = Some(Asked {
            session: Arc::clone(session),
            engine: Arc::clone(engine),
            prepared: prepared.clone(),
        });
        Self { of, ..self }
    }

    /// The pairs at these positions.
    fn pairs<'py>(
        &self,
        py: Python<'py>,
        positions: impl IntoIterator<Item = usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let pairs = positions
            .into_iter()
            .filter_map(|at| self.diff.diffs.get(at))
            .map(|pair| Bound::new(py, PairDiff { pair: pair.clone() }));
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
        let asked = self.of.as_ref()?;
        let (session, engine) = (Arc::clone(&asked.session), Arc::clone(&asked.engine));
        Some(Session::new(session, engine, self.name.as_deref()))
    }

    /// Why nothing differs, in words; empty if something does, and of a copy from another process.
    ///
    /// >>> session.range("@history .cb[knd='call']").why_empty()
    /// ['no node has `knd`; did you mean `kind`?']
    fn why_empty(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let Some(asked) = self.of.as_ref().filter(|_| self.diff.rows() == 0) else {
            return Ok(Vec::new());
        };
        let why = forks::shared(py, || asked.prepared.why_empty(&asked.session));
        let why = why.or_raise(py)?;
        Ok(why.iter().map(ToString::to_string).collect())
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
        let pair = at.and_then(|at| self.diff.diffs.get(at)).cloned();
        let pair = pair.ok_or_else(|| PyIndexError::new_err("diff index out of range"))?;
        Ok(Bound::new(py, PairDiff { pair })?.into_any())
    }

    /// All of it as dictionaries and lists, with the names of the JSON that `pactql select` prints.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::report(py, &*self.diff)
    }

    /// The JSON text that `pactql select` prints.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        json::text(py, &*self.diff)
    }

    /// What a JSON text is of, under the name of a session.
    #[staticmethod]
    fn _parse(py: Python<'_>, text: &str, name: Option<&str>) -> PyResult<Self> {
        Ok(Self::new(json::parse(py, text)?, name.map(Arc::from)))
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
    pair: pactql::history::PairDiff,
}

#[pymethods]
impl PairDiff {
    /// The newer snapshot.
    #[getter]
    fn newer(&self) -> SnapshotRef {
        SnapshotRef::of(&self.pair.from)
    }

    /// The older snapshot.
    #[getter]
    fn older(&self) -> SnapshotRef {
        SnapshotRef::of(&self.pair.to)
    }

    /// The ids found in the newer only, in its order.
    #[getter]
    fn added<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.pair.added_ids)
    }

    /// The ids found in the older only, in its order.
    #[getter]
    fn removed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.pair.removed_ids)
    }

    /// The nodes found in both that differ, in the newer's order.
    #[getter]
    fn changed(&self) -> Vec<Change> {
        let changes = self.pair.changed.iter().cloned();
        changes.map(|change| Change { change }).collect()
    }

    /// How many were added, removed and changed before any limit, if `stats` was asked for.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::report(py, &self.pair.stats)
    }

    /// Whether anything differs.
    fn __bool__(&self) -> bool {
        !self.pair.is_empty()
    }

    /// The JSON text of it, as the diff has it.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        json::text(py, &self.pair)
    }

    /// What a JSON text is of.
    #[staticmethod]
    fn _parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let pair = json::parse(py, text)?;
        Ok(Self { pair })
    }

    fn __repr__(&self) -> String {
        let pair = &self.pair;
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
#[pyclass(frozen, module = "pactql")]
pub(crate) struct Change {
    change: pactql::history::Change,
}

#[pymethods]
impl Change {
    /// The id.
    #[getter]
    fn id(&self) -> &str {
        &self.change.id
    }

    /// The headers and attributes that differ, sorted.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.change.fields)
    }

    /// Of the scalar ones, the newer and the older value, by name.
    #[getter]
    fn delta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let delta = PyDict::new(py);
        for (name, newer, older) in self.change.delta.texts() {
            delta.set_item(name, (json::value(py, newer)?, json::value(py, older)?))?;
        }
        Ok(delta)
    }

    /// The content diff, if it was asked for and the contents differ.
    #[getter]
    fn content_diff<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::report(py, &self.change.content_diff)
    }

    /// The fields of both versions that were asked for.
    #[getter]
    fn materialized<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::report(py, &self.change.materialized)
    }

    /// The JSON text of it, as the diff has it.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        json::text(py, &self.change)
    }

    /// What a JSON text is of.
    #[staticmethod]
    fn _parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let change = json::parse(py, text)?;
        Ok(Self { change })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = self.fields(py)?.repr()?;
        Ok(format!("<Change {} of {fields}>", self.change.id))
    }
}

/// A snapshot of a range.
#[pyclass(frozen, get_all, module = "pactql")]
#[derive(Serialize, Deserialize)]
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
            kind: snapshot.kind.clone(),
            value: snapshot.value,
            label: snapshot.label.clone(),
            cycle: snapshot.cycle,
        }
    }
}

#[pymethods]
impl SnapshotRef {
    /// The JSON text of it, as the diff has it.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        json::text(py, self)
    }

    /// What a JSON text is of.
    #[staticmethod]
    fn _parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        json::parse(py, text)
    }

    fn __repr__(&self) -> String {
        format!("<SnapshotRef {} of cycle {}>", self.label, self.cycle)
    }
}
