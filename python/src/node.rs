//! `Node`, and lists of nodes that keep alive what they are from.

use crate::errors::plain;
use crate::json;
use crate::values::name_of;
use pactql::logs::write_session;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{IntoPyObjectExt, intern};
use self_cell::self_cell;
use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What the nodes of a list borrow from.
pub(crate) enum Owner {
    /// They are its rows.
    Selection(Arc<pactql::Selection>),
    /// They are beside it: its parent, or its children.
    Node(Handle),
}

type Nodes<'a> = Vec<pactql::Node<'a>>;

self_cell!(
    /// Nodes, and what they borrow from.
    pub(crate) struct List {
        owner: Owner,
        #[covariant]
        dependent: Nodes,
    }
);

impl List {
    /// All rows of a selection, which are found now if they were not yet.
    pub(crate) fn of(selection: Arc<pactql::Selection>) -> Self {
        Self::new(Owner::Selection(selection), |owner| match owner {
            Owner::Selection(selection) => selection.nodes().collect(),
            Owner::Node(_) => Vec::new(),
        })
    }

    /// Nodes beside a node.
    fn beside<F>(handle: Handle, which: F) -> Self
    where
        F: for<'a> FnOnce(pactql::Node<'a>) -> Vec<pactql::Node<'a>>,
    {
        Self::new(Owner::Node(handle), |owner| match owner {
            Owner::Node(handle) => which(handle.node()),
            Owner::Selection(_) => Vec::new(),
        })
    }

    pub(crate) fn nodes(&self) -> &[pactql::Node<'_>] {
        self.borrow_dependent()
    }

    /// The snapshots that the nodes are from, all or that of a cycle, as a session file has them, and whether they are
    /// a working state.
    ///
    /// # Errors
    /// A snapshot of a store that cannot be read.
    pub(crate) fn parts(&self, py: Python<'_>, cycle: Option<i64>) -> PyResult<(String, bool)> {
        let selection = match self.borrow_owner() {
            Owner::Selection(selection) => selection,
            Owner::Node(handle) => return handle.list.parts(py, cycle),
        };
        let made = py.detach(|| {
            let mut snapshots = selection
                .snapshots()
                .map_err(|failure| failure.to_string())?;
            let is_working = snapshots.iter().any(|snapshot| snapshot.is_working());
            if let Some(cycle) = cycle.filter(|_| !is_working) {
                snapshots.retain(|snapshot| snapshot.cycle() == cycle);
            }
            let working = snapshots.pop_if(|_| is_working);
            let mut bytes = Vec::new();
            write_session(&snapshots, working.as_deref(), true, &mut bytes)
                .map_err(|error| error.to_string())?;
            let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
            Ok::<_, String>((text, is_working))
        });
        made.map_err(|message| plain(py, pactql::Code::Store.as_str(), &message, None))
    }
}

/// A node of a list. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handle {
    list: Arc<List>,
    at: usize,
}

impl Handle {
    /// The node at a position that the list has.
    pub(crate) fn new(list: &Arc<List>, at: usize) -> Option<Self> {
        (at < list.nodes().len()).then(|| Self {
            list: Arc::clone(list),
            at,
        })
    }

    /// The node.
    pub(crate) fn node(&self) -> pactql::Node<'_> {
        // It was checked when the handle was made, and a list never changes.
        self.list.nodes()[self.at]
    }
}

/// A node of an immutable snapshot.
///
/// >>> node = session.select("@t0 .cb[role='user']").first()
/// >>> node.id, node.kind, node.role
/// ('cb:u2', 'text', 'user')
#[pyclass(frozen, module = "pactql")]
pub(crate) struct Node {
    handle: Handle,
}

impl Node {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    pub(crate) fn node(&self) -> pactql::Node<'_> {
        self.handle.node()
    }

    /// A header that is set, the content, or a custom attribute.
    fn member<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.node().attribute_json(name) {
            Some(value) => json::value(py, &value).map(Some),
            None if MEMBERS.contains(&name) => self.to_dict(py)?.get_item(name),
            None => Ok(None),
        }
    }

    fn beside<F>(&self, which: F) -> Vec<Self>
    where
        F: for<'a> FnOnce(pactql::Node<'a>) -> Vec<pactql::Node<'a>>,
    {
        let list = Arc::new(List::beside(self.handle.clone(), which));
        let handles = (0..list.nodes().len()).filter_map(|at| Handle::new(&list, at));
        handles.map(Self::new).collect()
    }
}

#[pymethods]
impl Node {
    /// The id, unique in its snapshot.
    #[getter]
    fn id(&self) -> &str {
        self.node().id()
    }

    /// The nodeType as stored; a node without one reads as `mt`, `mc`, `cb` or `^root`.
    #[getter]
    fn r#type(&self) -> &str {
        self.node().node_type()
    }

    /// The role, such as `user`.
    #[getter]
    fn role(&self) -> Option<&str> {
        self.node().role()
    }

    /// The kind, such as `text` or `call`.
    #[getter]
    fn kind(&self) -> Option<&str> {
        self.node().kind()
    }

    /// The key.
    #[getter]
    fn key(&self) -> Option<&str> {
        self.node().key()
    }

    /// The tags, in the order stored.
    #[getter]
    fn tags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.node().tags().collect::<Vec<_>>())
    }

    /// The content as a text: a string as it is, anything else as JSON, empty if there is none.
    #[getter]
    fn text(&self) -> Cow<'_, str> {
        self.node().text()
    }

    /// The content as a value; `None` if there is none.
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.node().text() {
            Cow::Borrowed(text) if !text.is_empty() => text.into_bound_py_any(py),
            // No text, or an empty one.
            _ => json::value(py, self.node().content_json().as_deref().unwrap_or("null")),
        }
    }

    /// SHA-256 of the content.
    #[getter]
    fn content_hash(&self) -> String {
        self.node().content_hash()
    }

    /// The custom attributes, sorted by name.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let attributes = PyDict::new(py);
        for (name, value) in self.node().attributes_json() {
            attributes.set_item(name, json::value(py, &value)?)?;
        }
        Ok(attributes)
    }

    /// A member by its name, as `to_dict` has them: a header, such as `node["role"]`, the content, or a custom
    /// attribute, such as `node["data_call_id"]`.
    fn __getitem__<'py>(&self, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let named = name_of("a node is indexed by the names of its members", name)?;
        match self.member(name.py(), &named)? {
            Some(value) => Ok(value),
            None => Err(PyKeyError::new_err(named)),
        }
    }

    /// A node is not a collection: `attrs` has its attributes, `children` its children.
    #[classattr]
    const __iter__: Option<bool> = None;

    /// A member, or `default` if the node has none of this name.
    #[pyo3(signature = (name, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.member(py, name)? {
            Some(value) => Ok(value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// Whether there is a member of this name.
    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(named) = name.extract::<String>() else {
            return Ok(false);
        };
        Ok(self.member(name.py(), &named)?.is_some())
    }

    /// The node's snapshot as a session file has it, and whether it is the working state: what a copy of the node in
    /// another process is made of.
    fn _parts(&self, py: Python<'_>) -> PyResult<(String, bool)> {
        self.handle
            .list
            .parts(py, Some(self.node().snapshot_cycle()))
    }

    /// The offset among its siblings.
    #[getter]
    fn offset(&self) -> i64 {
        self.node().offset()
    }

    /// Cycles left to live, as seen from its snapshot.
    #[getter]
    fn ttl(&self) -> Option<i64> {
        self.node().ttl()
    }

    /// The priority.
    #[getter]
    fn priority(&self) -> i64 {
        self.node().priority()
    }

    /// The cadence.
    #[getter]
    fn cadence(&self) -> Option<i64> {
        self.node().cadence()
    }

    /// The cycle that introduced the node.
    #[getter]
    fn cycle(&self) -> Option<i64> {
        self.node().cycle()
    }

    /// When it was made, in nanoseconds since 1970; 0 if that is not known, and a position in a log without times, of which
    /// `to_dict` has no `created_at_iso`.
    #[getter]
    fn created_at_ns(&self) -> i64 {
        self.node().created_at_ns()
    }

    /// What decides between equal times.
    #[getter]
    fn creation_index(&self) -> i64 {
        self.node().creation_index()
    }

    /// The depth: -1 in `^sys`, 0 in `^ah`, 1, 2, … in turns from the newest, `None` elsewhere.
    #[getter]
    fn depth(&self) -> Option<i64> {
        self.node().depth()
    }

    /// The cycle of the snapshot that it is from; of the working state, the newest commit's.
    #[getter]
    fn snapshot(&self) -> i64 {
        self.node().snapshot_cycle()
    }

    /// The parent; `None` for the root.
    #[getter]
    fn parent(&self) -> Option<Self> {
        self.beside(|node| node.parent().into_iter().collect())
            .pop()
    }

    /// The id of the parent; `None` for the root.
    #[getter]
    fn parent_id(&self) -> Option<&str> {
        self.node().parent().map(pactql::Node::id)
    }

    /// The children, in canonical order.
    #[getter]
    fn children(&self) -> Vec<Self> {
        self.beside(|node| node.children().collect())
    }

    /// The ids of the children.
    #[getter]
    fn child_ids(&self) -> Vec<&str> {
        self.node().children().map(pactql::Node::id).collect()
    }

    /// Headers that are set, attributes and content, as a dictionary.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let node = self.node();
        let headers = node.headers();
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "id"), headers.id)?;
        dict.set_item(intern!(py, "type"), headers.node_type)?;
        for (name, text) in [
            (intern!(py, "role"), headers.role),
            (intern!(py, "kind"), headers.kind),
            (intern!(py, "key"), headers.key),
        ] {
            if let Some(text) = text {
                dict.set_item(name, text)?;
            }
        }
        if !headers.tags.is_empty() {
            dict.set_item(intern!(py, "tags"), headers.tags)?;
        }
        for (name, number) in [
            (intern!(py, "offset"), Some(headers.offset)),
            (intern!(py, "ttl"), headers.ttl),
            (intern!(py, "priority"), Some(headers.priority)),
            (intern!(py, "cadence"), headers.cadence),
            (intern!(py, "cycle"), headers.cycle),
            (intern!(py, "created_at_ns"), Some(headers.created_at_ns)),
            (intern!(py, "creation_index"), Some(headers.creation_index)),
            (intern!(py, "depth"), node.depth()),
        ] {
            if let Some(number) = number {
                dict.set_item(name, number)?;
            }
        }
        if let Some(time) = node.created_at_iso() {
            dict.set_item(intern!(py, "created_at_iso"), time)?;
        }
        if let Some(parent) = node.parent() {
            dict.set_item(intern!(py, "parent_id"), parent.id())?;
        }
        for (name, value) in node.attributes_json() {
            dict.set_item(name, json::value(py, &value)?)?;
        }
        dict.set_item(intern!(py, "content"), self.content(py)?)?;
        Ok(dict)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<Self>();
        other.is_ok_and(|other| self.node() == other.get().node())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.node().id().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let node = self.node();
        let mut shown = format!("<Node {}", node.id());
        for word in [node.role(), node.kind()].into_iter().flatten() {
            shown.push(' ');
            shown.push_str(word);
        }
        let text = node.text();
        if !text.is_empty() {
            let start: String = text.chars().take(SHOWN).collect();
            let more = if start.len() < text.len() { "…" } else { "" };
            shown.push_str(&format!(" {:?}{more}", start));
        }
        shown.push('>');
        shown
    }
}

/// What a node has besides custom attributes, as `to_dict` names it.
const MEMBERS: [&str; 17] = [
    "id",
    "type",
    "role",
    "kind",
    "key",
    "tags",
    "offset",
    "ttl",
    "priority",
    "cadence",
    "cycle",
    "created_at_ns",
    "created_at_iso",
    "creation_index",
    "depth",
    "parent_id",
    "content",
];

/// How many characters of a text `repr` shows.
const SHOWN: usize = 40;
