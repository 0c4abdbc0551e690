//! `Selection`: the nodes that a selector found.

use crate::arrow;
use crate::errors::OrRaise;
use crate::forks;
use crate::json;
use crate::node::{Handle, List, Node};
use crate::sequence::{Position, positions};
use crate::values::prepared;
use pactql::budget::Query;
use pactql::selection::{EmptyReason, SelectionAddress};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The nodes that a selector found, in order: a sequence that finds and makes them when they are asked for.
///
/// >>> calls = session.select("@t0 .cb[kind='call']")
/// >>> len(calls), calls.ids()
/// (4, ['cb:c2', 'cb:c3', 'cb:c4', 'cb:c5'])
/// >>> calls[-2].text
/// '{"return_id": "RT-3391", "date": "2026-03-03"}'
#[pyclass(frozen, module = "pactql", weakref)]
pub(crate) struct Selection {
    inner: Arc<Inner>,
}

/// Rows, and what was found of them so far.
pub(crate) struct Inner {
    pub(crate) rows: Arc<pactql::Selection>,
    /// Runs the selectors of `where`.
    engine: Arc<pactql::Engine>,
    /// The session's name in a store.
    name: Option<Arc<str>>,
    /// All rows, once one was asked for by its position.
    list: OnceLock<Arc<List>>,
    /// The positions in the list that belong to it, if that is not all of them in order.
    picked: Option<Vec<usize>>,
}

impl Inner {
    fn new(rows: pactql::Selection, engine: Arc<pactql::Engine>, name: Option<Arc<str>>) -> Self {
        Self {
            rows: Arc::new(rows),
            engine,
            name,
            list: OnceLock::new(),
            picked: None,
        }
    }

    /// The rows, which are found now if they were not yet. Called without the interpreter lock.
    pub(crate) fn list(&self) -> &Arc<List> {
        self.list
            .get_or_init(|| Arc::new(List::of(Arc::clone(&self.rows))))
    }

    /// Finds the rows, once; after that no work is left that is worth giving the lock back for.
    fn found(&self, py: Python<'_>) {
        if self.list.get().is_none() {
            py.detach(|| self.list());
        }
    }

    /// How many nodes. Called without the interpreter lock.
    pub(crate) fn count(&self) -> usize {
        match (&self.picked, self.list.get()) {
            (Some(picked), _) => picked.len(),
            (None, Some(list)) => list.nodes().len(),
            (None, None) => self.rows.count(),
        }
    }

    /// The position in the list of a position in the selection.
    fn position(&self, at: usize) -> usize {
        match &self.picked {
            Some(picked) => picked.get(at).copied().unwrap_or(usize::MAX),
            None => at,
        }
    }

    /// The node at a position. Called without the interpreter lock.
    fn handle(&self, at: usize) -> Option<Handle> {
        Handle::new(self.list(), self.position(at))
    }

    /// The nodes, in order, from a position on. Called without the interpreter lock.
    pub(crate) fn nodes_from(&self, at: usize) -> impl Iterator<Item = pactql::Node<'_>> {
        let nodes = self.list().nodes();
        let positions = at..self.count();
        positions.filter_map(|at| nodes.get(self.position(at)).copied())
    }

    /// The session's name in a store.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn with_rows(&self, rows: pactql::Selection) -> Self {
        Self::new(rows, Arc::clone(&self.engine), self.name.clone())
    }

    /// These of its nodes, by their positions in it.
    fn pick(&self, positions: impl Iterator<Item = usize>) -> Self {
        let list = Arc::clone(self.list());
        let picked = positions.map(|at| self.position(at)).collect();
        Self {
            rows: Arc::clone(&self.rows),
            engine: Arc::clone(&self.engine),
            name: self.name.clone(),
            list: OnceLock::from(list),
            picked: Some(picked),
        }
    }

    /// Those that a filter keeps.
    ///
    /// # Errors
    /// Those of [`pactql::Selection::filter`].
    fn filter(&self, filter: &pactql::Prepared) -> Result<Self, pactql::Error> {
        let kept = pactql::Selection::clone(&self.rows).filter(filter)?;
        // Nothing is left to be picked from, and the rows know why.
        if self.picked.is_none() || kept.count() == 0 {
            return Ok(self.with_rows(kept));
        }
        // What is kept of all rows comes in their order.
        let mut left = kept.nodes().peekable();
        let all = self.list().nodes();
        let is_kept: Vec<bool> = all
            .iter()
            .map(|node| left.next_if_eq(node).is_some())
            .collect();
        let positions = (0..self.count()).filter(|at| {
            let at = self.position(*at);
            is_kept.get(at).copied().unwrap_or(false)
        });
        Ok(self.pick(positions))
    }
}

impl Selection {
    /// What the library found. The engine runs the selectors of `where`.
    pub(crate) fn new(
        rows: pactql::Selection,
        engine: Arc<pactql::Engine>,
        name: Option<Arc<str>>,
    ) -> Self {
        Self::of(Inner::new(rows, engine, name))
    }

    fn of(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

#[pymethods]
impl Selection {
    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.inner.count())
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        self.__len__(py) > 0
    }

    fn __iter__(&self) -> NodeIterator {
        NodeIterator {
            inner: Arc::clone(&self.inner),
            next: AtomicUsize::new(0),
            backwards: false,
        }
    }

    fn __reversed__(&self) -> NodeIterator {
        NodeIterator {
            backwards: true,
            ..self.__iter__()
        }
    }

    /// The node at a position, or the selection of a slice.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            return Ok(Bound::new(py, self.slice(py, slice)?)?.into_any());
        }
        let at = Position::of("a selection", index)?;
        let handle = py.detach(|| {
            // First, so that counting does not run the selector once more.
            self.inner.list();
            let at = at.within(self.inner.count())?;
            self.inner.handle(at)
        });
        let handle = handle.ok_or_else(|| PyIndexError::new_err("selection index out of range"))?;
        Ok(Bound::new(py, Node::new(handle))?.into_any())
    }

    /// Whether a node is in it.
    fn __contains__(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> bool {
        let Ok(node) = node.cast::<Node>() else {
            return false;
        };
        let node = node.get();
        py.detach(|| self.inner.nodes_from(0).any(|known| known == node.node()))
    }

    /// The position of a node.
    #[pyo3(signature = (node, start = Position(0), stop = Position(isize::MAX), /), text_signature = "($self, node, start=0, stop=9223372036854775807, /)")]
    fn index(
        &self,
        py: Python<'_>,
        node: &Bound<'_, PyAny>,
        start: Position,
        stop: Position,
    ) -> PyResult<usize> {
        let missing = || PyValueError::new_err("the node is not in the selection");
        let node = node.cast::<Node>().map_err(|_| missing())?.get();
        let found = py.detach(|| {
            self.inner.list();
            let length = self.inner.count();
            let (start, stop) = (start.front(length), stop.front(length));
            let mut nodes = self
                .inner
                .nodes_from(start)
                .take(stop.saturating_sub(start));
            let found = nodes.position(|known| known == node.node());
            found.map(|at| start + at)
        });
        found.ok_or_else(missing)
    }

    /// How often a node is in it: 0 or 1.
    #[pyo3(signature = (node, /))]
    fn count(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> usize {
        usize::from(self.__contains__(py, node))
    }

    /// The ids.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let ids = py.detach(|| match (&self.inner.picked, self.inner.list.get()) {
            (None, None) => self.inner.rows.to_ids(),
            _ => self.inner.nodes_from(0).map(pactql::Node::id).collect(),
        });
        PyList::new(py, ids)
    }

    /// The contents as texts, as `Node.text` gives them.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let texts = py.detach(|| {
            let nodes = self.inner.nodes_from(0);
            nodes.map(pactql::Node::text).collect::<Vec<_>>()
        });
        PyList::new(py, texts)
    }

    /// The first node; `None` if there is none. No further one is looked for.
    fn first(&self, py: Python<'_>) -> Option<Node> {
        let handle = py.detach(|| match (&self.inner.picked, self.inner.list.get()) {
            (None, None) => {
                let first = pactql::Selection::clone(&self.inner.rows).limit(1);
                Handle::new(&Arc::new(List::of(Arc::new(first))), 0)
            }
            _ => self.inner.handle(0),
        });
        handle.map(Node::new)
    }

    /// Those that are, or are inside, a node that a selector without a time finds in their snapshot.
    ///
    /// >>> session.select("@t0 .cb[kind='call']").where("^seq .mt:depth(1)").ids()
    /// ['cb:c5']
    #[pyo3(signature = (selector, /, params = None, **named))]
    fn r#where(
        &self,
        py: Python<'_>,
        selector: &str,
        params: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let filter = prepared(py, &self.inner.engine, selector, params, named)?;
        let kept = py.detach(|| self.inner.filter(&filter)).or_raise(py)?;
        Ok(Self::of(kept))
    }

    /// The blocks that fit a number of tokens, best first: scored by their texts against a query.
    #[pyo3(signature = (budget, /, query = ""))]
    fn fit(&self, py: Python<'_>, budget: u64, query: &str) -> PyResult<Fit> {
        let query = Query::new(query);
        let (fit, list, positions) = forks::shared(py, || {
            let list = self.inner.list();
            let fit = pactql::selection::Fit::choose(self.inner.nodes_from(0), &query, budget);
            // An id is in a selection once.
            let all = list.nodes().iter().enumerate();
            let all: HashMap<&str, usize> = all.map(|(at, node)| (node.id(), at)).collect();
            let position = |node: &pactql::Node<'_>| all.get(node.id()).copied();
            let positions: Vec<usize> = fit.nodes.iter().filter_map(position).collect();
            (fit.resolution.clone(), list, positions)
        });
        let handles = positions.into_iter().filter_map(|at| Handle::new(list, at));
        let nodes = handles.map(|handle| Py::new(py, Node::new(handle)));
        Ok(Fit {
            nodes: nodes.collect::<PyResult<_>>()?,
            resolution: json::report(py, &fit)?.unbind(),
        })
    }

    /// The session it is from, if that is one of a store.
    #[getter]
    fn session(&self) -> Option<&str> {
        self.inner.name()
    }

    /// The cycles of the snapshots that were read, newest first; empty for a working state.
    #[getter]
    fn cycles(&self) -> Vec<i64> {
        match self.inner.rows.address() {
            SelectionAddress::Snapshot { cycle } => vec![cycle],
            SelectionAddress::Snapshots { cycles } => cycles,
            _ => Vec::new(),
        }
    }

    /// Warnings about the selector.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let warnings = self.inner.rows.warnings().iter();
        warnings.map(ToString::to_string).collect()
    }

    /// Why nothing was found, in words; empty if something was.
    fn why_empty(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| {
            // What was picked is of rows that may well be there.
            if self.inner.picked.as_ref().is_some_and(Vec::is_empty) && self.inner.rows.count() > 0
            {
                return vec![NARROWED.to_owned()];
            }
            let reasons = self.inner.rows.why_empty().into_iter();
            let words = reasons.map(|reason| match reason {
                EmptyReason::Narrowed => NARROWED.to_owned(),
                other => other.to_string(),
            });
            words.collect()
        })
    }

    /// Whether another selection has the same nodes of the same snapshots in the same order.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else {
            return false;
        };
        let other = other.get();
        py.detach(|| self.inner.nodes_from(0).eq(other.inner.nodes_from(0)))
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        py.detach(|| {
            for node in self.inner.nodes_from(0) {
                node.id().hash(&mut hasher);
            }
        });
        hasher.finish()
    }

    /// The snapshots that were read as a session file has them, and whether they are a working state: what a copy in
    /// another process is made of, with `_pick`.
    fn _parts(&self, py: Python<'_>) -> PyResult<(String, bool)> {
        py.detach(|| Arc::clone(self.inner.list())).parts(py, None)
    }

    /// The nodes at these positions, under the name of a session.
    #[pyo3(signature = (positions, name, /))]
    fn _pick(&self, py: Python<'_>, positions: Vec<usize>, name: Option<&str>) -> Self {
        let mut picked = py.detach(|| self.inner.pick(positions.into_iter()));
        picked.name = name.map(Arc::from);
        Self::of(picked)
    }

    /// Its nodes as dictionaries.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.inner.found(py);
        let handles = (0..self.inner.count()).filter_map(|at| self.inner.handle(at));
        handles
            .map(|handle| Node::new(handle).to_dict(py))
            .collect()
    }

    /// The Arrow C stream of its rows: `pyarrow.table(selection)`, `polars.DataFrame(selection)`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer has to take any schema; this one asks for what it will cast to.
        drop(requested_schema);
        let batches = arrow::Batches::of_nodes(Arc::clone(&self.inner));
        arrow::stream(py, batches)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let html = slf.py().import("pactql._html")?;
        html.call_method1("selection", (slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (length, first) = py.detach(|| {
            let first = self.inner.nodes_from(0).take(SHOWN);
            (
                self.inner.count(),
                first.map(|node| node.id().to_owned()).collect::<Vec<_>>(),
            )
        });
        let more = if length > SHOWN { ", …" } else { "" };
        let nodes = if length == 1 { "node" } else { "nodes" };
        match length {
            0 => "<Selection: no nodes>".to_owned(),
            _ => format!(
                "<Selection of {length} {nodes}: {}{more}>",
                first.join(", ")
            ),
        }
    }
}

impl Selection {
    /// The selection of a slice. One from the front to the back is not run for it.
    fn slice(&self, py: Python<'_>, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        let bound = |name: &str| -> PyResult<Option<isize>> {
            let bound = slice.getattr(name)?;
            if bound.is_none() {
                Ok(None)
            } else {
                bound.extract::<Position>().map(|at| Some(at.0))
            }
        };
        let (start, stop, step) = (bound("start")?, bound("stop")?, bound("step")?);
        let forward = step.is_none_or(|step| step == 1) && self.inner.picked.is_none();
        let start = usize::try_from(start.unwrap_or(0));
        let stop = stop.map(usize::try_from).transpose();
        if let (true, Ok(start), Ok(stop)) = (forward, start, stop) {
            return Ok(py.detach(|| {
                let mut rows = pactql::Selection::clone(&self.inner.rows).skip(start);
                if let Some(stop) = stop {
                    rows = rows.limit(stop.saturating_sub(start));
                }
                Self::of(self.inner.with_rows(rows))
            }));
        }
        let length = py.detach(|| {
            self.inner.list();
            self.inner.count()
        });
        let positions = positions(slice, length)?;
        Ok(Self::of(py.detach(|| self.inner.pick(positions))))
    }
}

/// Why a selection is empty of which the selector found something: the library's words are for its own methods.
const NARROWED: &str = "a slice or `where` left no node";

/// How many ids `repr` shows.
const SHOWN: usize = 5;

/// The nodes of a selection, one by one.
#[pyclass(frozen, module = "pactql")]
pub(crate) struct NodeIterator {
    inner: Arc<Inner>,
    /// How many were given.
    next: AtomicUsize,
    backwards: bool,
}

#[pymethods]
impl NodeIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Node> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.inner.found(py);
        let at = if self.backwards {
            self.inner.count().checked_sub(next.checked_add(1)?)?
        } else {
            next
        };
        self.inner.handle(at).map(Node::new)
    }

    fn __length_hint__(&self, py: Python<'_>) -> usize {
        let length = py.detach(|| self.inner.count());
        length.saturating_sub(self.next.load(Ordering::Relaxed))
    }
}

/// The blocks of a selection that fit a number of tokens.
#[pyclass(frozen, get_all, module = "pactql")]
pub(crate) struct Fit {
    /// The blocks, best first.
    nodes: Vec<Py<Node>>,
    /// The same with texts, scores and tokens, as `pactql context resolve` prints it.
    resolution: Py<PyAny>,
}

#[pymethods]
impl Fit {
    fn __len__(&self) -> usize {
        self.nodes.len()
    }

    fn __repr__(&self) -> String {
        format!("<Fit of {} nodes>", self.nodes.len())
    }
}
