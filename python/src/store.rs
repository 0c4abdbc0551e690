//! `Store`: many sessions in one SQLite file or PostgreSQL schema.

use crate::answers::StoreAnswers;
use crate::context::Context;
use crate::engine::Engine;
use crate::errors::{OrRaise, Raise, Warned, plain};
use crate::forks::{self, Origin};
use crate::json::dict;
use crate::logs;
use crate::session::{Session, engine_or};
use crate::values::{Texts, name_of, prepared, range_options, seconds};
use pactql::{
    Code,
    store::{Durability, Retention},
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

/// Sessions in a SQLite file, or in a schema of PostgreSQL. Threads and processes share it: one writes a session at
/// a time, any number read it.
///
/// >>> store = pactql.Store.open("agents.db")
/// >>> with store.write("support-42") as context:
/// ...     ids = context.append("user", "Where is my refund?")
/// ...     commit = context.commit()
/// >>> store.session("support-42").select("@t0 .cb").texts()
/// ['Where is my refund?']
/// >>> store.close()
#[pyclass(frozen, module = "pactql", weakref)]
pub(crate) struct Store {
    /// `None` when it is closed. Held for no longer than it takes to copy the pointer.
    store: RwLock<Option<Arc<pactql::Store>>>,
    url: String,
    read_only: bool,
    origin: Origin,
}

impl Drop for Store {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // The connection is the parent's.
            let store = self.store.get_mut();
            std::mem::forget(store.map_or(None, Option::take));
        }
    }
}

impl Store {
    /// The open store.
    ///
    /// # Errors
    /// It was closed, or this process was forked since.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<pactql::Store>> {
        self.origin.check(py)?;
        let store = self.store.read();
        let store = store.unwrap_or_else(std::sync::PoisonError::into_inner);
        store
            .clone()
            .ok_or_else(|| plain(py, Code::Store.as_str(), "the store is closed", None))
    }

    /// Where it is. A password may be in the address of a server: before the host, or in the parameters.
    fn place(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else {
            return self.url.clone();
        };
        let place = rest.split('?').next().unwrap_or_default();
        let place = place.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{place}")
    }

    /// Brings the session of a file of snapshots, which is no log, into the store.
    ///
    /// # Errors
    /// The file is invalid, or the one that it was refused with as a log; the store has a session of its name.
    fn import_session<'py>(
        &self,
        py: Python<'py>,
        input: &logs::Input,
        refused: PyErr,
    ) -> PyResult<Bound<'py, PyDict>> {
        let session = match py.detach(|| pactql::Session::from_slice(&input.bytes)) {
            Ok(session) => session,
            Err(error) if pactql::opened::is_session(&input.bytes) => return Err(error.raise(py)),
            Err(_) => return Err(refused),
        };
        let source = input.source.as_deref();
        self.with(py, |store| store.import(&input.stem, &session, source))?;
        Ok(dict!(py,
            "new": 1,
            "grown": 0,
            "same": 0,
            "snapshots": session.history().committed().len(),
            "renamed": PyList::empty(py),
            "kept_names": PyList::empty(py),
        ))
    }

    /// The answer of a call of the library.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&pactql::Store) -> Result<T, pactql::Error> + Send,
    ) -> PyResult<T> {
        let store = self.get(py)?;
        forks::shared(py, || call(&store)).or_raise(py)
    }
}

#[pymethods]
impl Store {
    /// Opens the store at a path, `sqlite:PATH` or `postgres://…`; one that is missing is made unless `create` is
    /// false.
    ///
    /// `memory` bounds the indexes of open sessions, in bytes; a lease lasts `lease` seconds without use, and a
    /// transaction waits `busy` seconds for one of another process. With `batched`, commits of several threads share
    /// a write to the disk.
    #[staticmethod]
    #[pyo3(signature = (url, /, *, create = true, read_only = false, memory = None, lease = None, busy = None, batched = false, owner = None, engine = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn open(
        py: Python<'_>,
        url: PathBuf,
        create: bool,
        read_only: bool,
        memory: Option<usize>,
        lease: Option<f64>,
        busy: Option<f64>,
        batched: bool,
        owner: Option<String>,
        engine: Option<&Engine>,
    ) -> PyResult<Self> {
        let mut builder = pactql::Store::builder().engine(engine_or(engine));
        if !create {
            builder = builder.must_exist();
        }
        if read_only {
            builder = builder.read_only();
        }
        if let Some(bytes) = memory {
            builder = builder.memory(bytes);
        }
        if let Some(lasts) = lease {
            builder = builder.lease(seconds("lease", lasts)?);
        }
        if let Some(longest) = busy {
            builder = builder.busy(seconds("busy", longest)?);
        }
        if batched {
            builder = builder.durability(Durability::Batched);
        }
        if let Some(owner) = owner {
            builder = builder.owner(owner);
        }
        let url = url
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| PyValueError::new_err("the path of a store is UTF-8"))?;
        let store = py.detach(|| builder.connect(&url)).or_raise(py)?;
        Ok(Self {
            store: RwLock::new(Some(Arc::new(store))),
            url,
            read_only,
            origin: Origin::here(),
        })
    }

    /// Closes the store. Sessions and contexts of it that are still in use keep it open until they go.
    fn close(&self, py: Python<'_>) {
        let store = self.store.write();
        let closed = store
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        if self.origin.is_here() {
            py.detach(|| drop(closed))
        } else {
            std::mem::forget(closed)
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    /// The path or the address that it was opened with.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// The same, for what opens the store once more to write.
    fn _to_write(&self, py: Python<'_>) -> PyResult<&str> {
        if self.read_only {
            let message = format!(
                "the store {} was opened to be read only; open it to be written",
                self.place()
            );
            return Err(plain(py, Code::Store.as_str(), &message, None));
        }
        Ok(&self.url)
    }

    /// A session for reading: its newest commit at the time of the call, and what came before.
    #[pyo3(signature = (name, /))]
    fn session(&self, py: Python<'_>, name: &str) -> PyResult<Session> {
        let store = self.get(py)?;
        let session = py.detach(|| store.session(name)).or_raise(py)?;
        Ok(Session::new(
            session,
            Arc::clone(store.engine()),
            Some(name),
        ))
    }

    /// As `session`.
    fn __getitem__(&self, name: &Bound<'_, PyAny>) -> PyResult<Session> {
        let named = name_of("a store is indexed by the names of its sessions", name)?;
        self.session(name.py(), &named)
    }

    /// The session of a name, or `default` if there is none.
    #[pyo3(name = "get", signature = (name, default = None, /))]
    fn session_or<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.with(py, |store| match store.session(name) {
            Ok(session) => Ok(Some(session)),
            Err(error) if error.code() == Code::SessionNotFound => Ok(None),
            Err(error) => Err(error),
        })? {
            Some(_) => Bound::new(py, self.session(py, name)?).map(Bound::into_any),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// Deletes a session, as `delete`.
    fn __delitem__(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.delete(py, name)
    }

    /// The names of its sessions, in order.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let found = self.with(py, |store| store.sessions(""))?;
        Ok(found.into_iter().map(|info| info.name).collect())
    }

    /// Its sessions, in the order of their names.
    fn values(&self, py: Python<'_>) -> PyResult<Vec<Session>> {
        let names = self.keys(py)?;
        names.iter().map(|name| self.session(py, name)).collect()
    }

    /// The names and their sessions, in order.
    fn items(&self, py: Python<'_>) -> PyResult<Vec<(String, Session)>> {
        let names = self.keys(py)?;
        let opened = names.into_iter().map(|name| {
            let session = self.session(py, &name)?;
            Ok((name, session))
        });
        opened.collect()
    }

    /// The names of its sessions, in order.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.keys(py)?)?.try_iter()
    }

    /// The number of its sessions.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.with(py, |store| store.sessions(""))?.len())
    }

    /// A store without sessions is one, too.
    #[expect(clippy::unused_self, reason = "a method of Python")]
    fn __bool__(&self) -> bool {
        true
    }

    /// Whether it has a session of this name.
    fn __contains__(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let store = self.get(py)?;
        let Ok(name) = name.extract::<String>() else {
            return Ok(false);
        };
        match py.detach(|| store.session(&name)) {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Code::SessionNotFound => Ok(false),
            Err(error) => Err(error).or_raise(py),
        }
    }

    /// The sessions whose name matches a pattern, in which `*` is any text, also with `/`; all without one. In order
    /// of names.
    #[pyo3(signature = (glob = "", /))]
    fn sessions(&self, py: Python<'_>, glob: &str) -> PyResult<Vec<SessionInfo>> {
        let found = self.with(py, |store| store.sessions(glob))?;
        Ok(found.into_iter().map(SessionInfo::of).collect())
    }

    /// Opens a session for writing, and makes it if it does not exist. Its lease is given back when the context is
    /// closed.
    #[pyo3(signature = (name, /, *, edition = None, max_nodes = None, max_tokens = None, protect = None))]
    fn write(
        &self,
        py: Python<'_>,
        name: &str,
        edition: Option<&str>,
        max_nodes: Option<u64>,
        max_tokens: Option<u64>,
        protect: Option<u32>,
    ) -> PyResult<Context> {
        let store = self.get(py)?;
        let (builder, engine) =
            crate::context::builder(store.engine(), edition, max_nodes, max_tokens, protect)?;
        // The last context may go when nothing can be imported.
        Warned::Unsaved.class(py)?;
        let context = py.detach(|| store.write_with(name, builder)).or_raise(py)?;
        Ok(Context::of(context, engine, Some(name)))
    }

    /// Asks every session, or those whose name matches `sessions`: an iterator over the name and the selection of
    /// each in which something is found, in order of names, while later ones are still being asked.
    ///
    /// It is a table for `polars.DataFrame` and `pyarrow.table`, too, in which a column has the names.
    #[pyo3(signature = (selector, /, params = None, *, sessions = "", **named))]
    fn select(
        &self,
        py: Python<'_>,
        selector: &str,
        params: Option<&Bound<'_, PyAny>>,
        sessions: &str,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<StoreAnswers> {
        let store = self.get(py)?;
        let prepared = prepared(py, store.engine(), selector, params, named)?;
        StoreAnswers::new(py, store, sessions, prepared, None)
    }

    /// As `select`, of a selector of a range: an iterator over names and diffs.
    #[pyo3(signature = (selector, /, params = None, *, sessions = "", **named), text_signature = "($self, selector, /, params=None, *, sessions='', content=None, context_lines=3, materialize=(), max_snapshots=None, max_changes=None, stats=False, **named)")]
    fn range(
        &self,
        py: Python<'_>,
        selector: &str,
        params: Option<&Bound<'_, PyAny>>,
        sessions: &str,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<StoreAnswers> {
        let options = range_options(named)?;
        let store = self.get(py)?;
        let prepared = prepared(py, store.engine(), selector, params, named)?;
        StoreAnswers::new(py, store, sessions, prepared, Some(options))
    }

    /// The selector as the statement of SQL that answers it in this store.
    #[pyo3(signature = (selector, /, *, sessions = ""))]
    fn sql(&self, py: Python<'_>, selector: &str, sessions: &str) -> PyResult<String> {
        self.with(py, |store| {
            let prepared = store.engine().prepare(selector)?;
            let asked = store.select_prepared(&prepared).sessions(sessions);
            Ok(asked.statement()?.text().to_owned())
        })
    }

    /// Runs the statement of `sql` in the database. Returns its rows as dictionaries.
    #[pyo3(signature = (selector, /, *, sessions = ""))]
    fn run_sql<'py>(
        &self,
        py: Python<'py>,
        selector: &str,
        sessions: &str,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut rows = Vec::new();
        self.with(py, |store| {
            let asked = store.select(selector)?.sessions(sessions);
            asked.rows(|row| rows.push(row))
        })?;
        rows.into_iter().map(|row| row_of(py, row)).collect()
    }

    /// Brings a session into the store under a name. `source` says where it is from.
    #[pyo3(signature = (name, session, /, *, source = None))]
    fn add(
        &self,
        py: Python<'_>,
        name: &str,
        session: &Session,
        source: Option<&str>,
    ) -> PyResult<()> {
        let session = session.shared(py)?;
        self.with(py, |store| store.import(name, &session, source))
    }

    /// Brings the sessions of a log into the store, or the session of a file of snapshots. Those of a log that are there
    /// from when it was shorter get what is new. Returns how many sessions are `new`, `grown` and the `same`, how many
    /// `snapshots` were added, which sessions have another name now (`renamed`), and which were given another name in the
    /// store before and keep it (`kept_names`).
    ///
    /// `name` is the name of the session, which later imports leave as it is; by default that of the file.
    #[pyo3(signature = (log, /, *, name = None, format = None, lenient = false))]
    fn import_log<'py>(
        &self,
        py: Python<'py>,
        log: &Bound<'py, PyAny>,
        name: Option<&str>,
        format: Option<&str>,
        lenient: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let input = logs::input(py, log, name)?;
        let source = input.source.as_deref();
        let sessions = match logs::read(py, &input, format, lenient) {
            Ok(read) => read.sessions,
            Err(refused) if format.is_none() => return self.import_session(py, &input, refused),
            Err(refused) => return Err(refused),
        };
        let done = self.with(py, |store| match (&sessions[..], name) {
            ([(name, session)], Some(_)) => store.import_log_as(name, session, source),
            _ => store.import_log(&sessions, source),
        })?;
        Ok(dict!(py,
            "new": done.new,
            "grown": done.grown,
            "same": done.same,
            "snapshots": done.snapshots,
            "renamed": done.renamed,
            "kept_names": done.kept_names,
        ))
    }

    /// Shows later commits of other writers in a session of this store. Returns whether there were any.
    #[pyo3(signature = (session, /))]
    fn refresh(&self, py: Python<'_>, session: &Session) -> PyResult<bool> {
        self.with(py, |store| store.refresh(&session.session))
    }

    /// Begins a session with the history of another one up to an address.
    #[pyo3(signature = (name, address, to, /))]
    fn fork(&self, py: Python<'_>, name: &str, address: &str, to: &str) -> PyResult<()> {
        self.with(py, |store| store.fork(name, address, to))
    }

    /// Gives a session another name.
    #[pyo3(signature = (name, to, /))]
    fn rename(&self, py: Python<'_>, name: &str, to: &str) -> PyResult<()> {
        self.with(py, |store| store.rename(name, to))
    }

    /// Deletes a session.
    #[pyo3(signature = (name, /))]
    fn delete(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |store| store.delete(name))
    }

    /// Takes the contents and attributes of nodes out of all history of a session. Returns the names of the forks
    /// that still have them.
    #[pyo3(signature = (name, ids, /))]
    fn erase(&self, py: Python<'_>, name: &str, ids: Texts) -> PyResult<Vec<String>> {
        self.with(py, |store| {
            store.erase(name, ids.0.iter().map(String::as_str))
        })
    }

    /// Removes old snapshots: those older than `older_than` seconds, but the newest `keep` of each session, at least 1; one
    /// of both is given. Returns what went.
    #[pyo3(signature = (*, keep = None, older_than = None, sessions = "", dry_run = false))]
    fn prune<'py>(
        &self,
        py: Python<'py>,
        keep: Option<u64>,
        older_than: Option<f64>,
        sessions: &str,
        dry_run: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let wrong = match (keep, older_than) {
            (Some(0), _) => "`keep` is 1 or more, and not 0: `delete` removes a session",
            (None, None) => {
                "`prune` takes what stays: `keep=10`, `older_than=30 * 86_400`, or both"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(PyValueError::new_err(wrong));
        }
        let mut retention = Retention::default().sessions(sessions);
        if let Some(newest) = keep {
            retention = retention.keep(newest);
        }
        if let Some(seconds) = older_than {
            retention = retention.older_than(self::seconds("older_than", seconds)?);
        }
        if dry_run {
            retention = retention.dry_run();
        }
        let pruned = self.with(py, |store| store.prune(&retention))?;
        Ok(dict!(py,
            "sessions": pruned.sessions,
            "snapshots": pruned.snapshots,
            "units": pruned.units,
            "bodies": pruned.bodies,
        ))
    }

    /// Copies the store to a file while others write.
    #[pyo3(signature = (to, /))]
    fn backup(&self, py: Python<'_>, to: PathBuf) -> PyResult<()> {
        self.with(py, |store| store.backup(to))
    }

    /// Everything in the store that contradicts itself, in words; empty if all is well.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let found = self.with(py, pactql::Store::verify)?;
        let words = found.into_iter().map(|damage| match damage.session {
            Some(session) => format!("{session}: {}", damage.what),
            None => damage.what,
        });
        Ok(words.collect())
    }

    /// Makes or completes the index of texts, which searches use. Returns how many texts were added.
    fn index_text(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, pactql::Store::index_text)
    }

    fn __repr__(&self) -> String {
        format!("<Store {}>", self.place())
    }
}

/// A row of a statement as a dictionary.
fn row_of(py: Python<'_>, row: pactql::store::SqlRow) -> PyResult<Bound<'_, PyDict>> {
    Ok(match row {
        pactql::store::SqlRow::Node {
            session,
            seq,
            snapshot,
            id,
            ord,
        } => dict!(py, "session": session, "seq": seq, "snapshot": snapshot, "id": id, "ord": ord),
        pactql::store::SqlRow::Change {
            session,
            newer,
            older,
            change,
            id,
            ord,
        } => dict!(py,
            "session": session,
            "newer": newer,
            "older": older,
            "change": change,
            "id": id,
            "ord": ord,
        ),
        _ => PyDict::new(py),
    })
}

/// A session of a store, as it is listed.
#[pyclass(frozen, get_all, module = "pactql")]
pub(crate) struct SessionInfo {
    /// Its name.
    name: String,
    /// Number of commits.
    snapshots: usize,
    /// The cycle of the newest commit.
    cycle: Option<i64>,
    /// Whether a working state was saved.
    working: bool,
    /// When it was made, in nanoseconds since 1970.
    created_at_ns: i64,
    /// When the newest commit was made.
    committed_at_ns: Option<i64>,
    /// What it was imported from.
    source: Option<String>,
    /// The session it was forked from.
    parent: Option<String>,
}

impl SessionInfo {
    fn of(info: pactql::store::SessionInfo) -> Self {
        Self {
            name: info.name,
            snapshots: info.snapshots,
            cycle: info.cycle,
            working: info.working,
            created_at_ns: info.created_at_ns,
            committed_at_ns: info.committed_at_ns,
            source: info.source,
            parent: info.parent,
        }
    }
}

#[pymethods]
impl SessionInfo {
    fn __repr__(&self) -> String {
        format!(
            "<SessionInfo {:?} of {} snapshots>",
            self.name, self.snapshots
        )
    }
}
