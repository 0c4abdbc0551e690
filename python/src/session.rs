//! `Session`: the history of one conversation's context.

use crate::engine::{Explain, SHARED, explain};
use crate::errors::{OrRaise, of_system, plain};
use crate::forks::{self, Origin};
use crate::json;
use crate::range::RangeDiff;
use crate::selection::Selection;
use crate::values::{Source, by_name, prepared, range_options};
use pactql::RangeOptions;
use pactql::inspect::{
    By, Part, PrefixReport, Report, ReportOptions, StepReport, TokenReport, Tokenizer,
};
use pactql::logs::write_session;
use pyo3::exceptions::PyFileExistsError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The snapshots of one conversation's context. Any number of threads may read it.
///
/// >>> session = pactql.Session.open("fixtures/support-agent.jsonl")
/// >>> len(session), session.cycles
/// (6, [1, 2, 3, 4, 5, 6])
/// >>> session.select("@t0 .cb[role=$role]", role="user").ids()
/// ['cb:u2', 'cb:i1', 'cb:u3']
#[pyclass(frozen, module = "pactql", weakref)]
pub(crate) struct Session {
    pub(crate) session: Arc<pactql::Session>,
    pub(crate) engine: Arc<pactql::Engine>,
    /// Its name, if it is in a store or was given one.
    name: Option<Arc<str>>,
    /// Where the store was opened that it is read from.
    origin: Option<Origin>,
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.origin.is_some_and(|origin| !origin.is_here()) {
            // The connection is the parent's.
            std::mem::forget(Arc::clone(&self.session));
        }
    }
}

impl Session {
    pub(crate) fn new(
        session: Arc<pactql::Session>,
        engine: Arc<pactql::Engine>,
        name: Option<&str>,
    ) -> Self {
        let name = name.or(session.name()).map(Arc::from);
        let origin = session.name().map(|_| Origin::here());
        Self {
            session,
            engine,
            name,
            origin,
        }
    }

    /// Refuses a session that is read from a store of the parent of this process.
    ///
    /// # Errors
    /// The process was forked since.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.origin.map_or(Ok(()), |origin| origin.check(py))
    }

    /// The session of the library, for what reads all of it.
    ///
    /// # Errors
    /// The process was forked since.
    pub(crate) fn shared(&self, py: Python<'_>) -> PyResult<Arc<pactql::Session>> {
        self.check(py)?;
        Ok(Arc::clone(&self.session))
    }

    /// The rows of a selector.
    pub(crate) fn rows(
        &self,
        py: Python<'_>,
        engine: &Arc<pactql::Engine>,
        prepared: &pactql::Prepared,
    ) -> PyResult<Selection> {
        self.check(py)?;
        let rows = py.detach(|| prepared.rows_in(&self.session.history()));
        let (engine, name) = (Arc::clone(engine), self.name.clone());
        Ok(Selection::new(rows.or_raise(py)?, engine, name))
    }

    /// The diffs of a selector of a range.
    pub(crate) fn changes(
        &self,
        py: Python<'_>,
        prepared: &pactql::Prepared,
        options: &RangeOptions,
    ) -> PyResult<RangeDiff> {
        self.check(py)?;
        let diff = forks::shared(py, || prepared.range_with(&self.session, options));
        Ok(RangeDiff::new(diff.or_raise(py)?, self.name.clone()))
    }

    /// A report of the library on some of its snapshots.
    fn report<'py, R: Report + Send>(
        &self,
        py: Python<'py>,
        options: ReportOptions,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check(py)?;
        let report = forks::shared(py, || R::new(&self.engine, &self.session, &options));
        json::report(py, &report.or_raise(py)?)
    }

    /// Has all snapshots in memory.
    fn fetch(&self, py: Python<'_>) -> PyResult<Arc<pactql::History>> {
        self.check(py)?;
        let history = self.session.history();
        let fetched = py.detach(|| history.fetch_all());
        fetched.map_err(|failure| {
            plain(py, pactql::Code::Store.as_str(), &failure.to_string(), None)
        })?;
        Ok(history)
    }
}

/// What a report is about, in which form requests are, and how tokens are counted.
fn options(
    part: Part,
    only: Option<&str>,
    provider: Option<&str>,
    tokenizer: Option<&str>,
) -> PyResult<ReportOptions> {
    let part = only.into_iter().fold(part, Part::only);
    let provider = provider.map(crate::values::provider).transpose()?;
    let named = |name| by_name("tokenizer", name, Tokenizer::ALL, Tokenizer::name);
    let tokenizer = tokenizer.map(named).transpose()?;
    let options = ReportOptions::new(part).provider(provider);
    Ok(options.tokenizer(tokenizer))
}

/// The snapshots at a time.
fn at_time(at: Option<&str>) -> Part {
    at.into_iter().fold(Part::default(), Part::at)
}

#[pymethods]
impl Session {
    /// Opens a file of snapshot documents, or a directory of them.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, engine = None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        engine: Option<&crate::engine::Engine>,
    ) -> PyResult<Self> {
        let session = forks::shared(py, || pactql::Session::open(path)).or_raise(py)?;
        Ok(Self::new(Arc::new(session), engine_or(engine), None))
    }

    /// Reads a JSON document, or JSON Lines, from a text or bytes.
    ///
    /// >>> document = '{"cycle": 1, "root": {"id": "r", "children": [{"id": "^ah"}]}}'
    /// >>> pactql.Session.parse(document).cycles
    /// [1]
    #[staticmethod]
    #[pyo3(signature = (text, /, *, engine = None, name = None))]
    fn parse(
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        engine: Option<&crate::engine::Engine>,
        name: Option<&str>,
    ) -> PyResult<Self> {
        let bytes = Source::bytes(text)?;
        let session = forks::shared(py, || pactql::Session::from_slice(&bytes)).or_raise(py)?;
        Ok(Self::new(Arc::new(session), engine_or(engine), name))
    }

    /// Its name, if it is in a store or was given one.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The cycles of the committed snapshots, oldest first.
    #[getter]
    fn cycles(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        self.check(py)?;
        Ok(py.detach(|| self.session.history().cycles().collect()))
    }

    /// Whether there is a working state besides the committed snapshots.
    #[getter]
    fn has_working(&self, py: Python<'_>) -> bool {
        py.detach(|| self.session.history().working().is_some())
    }

    /// The number of committed snapshots.
    fn __len__(&self) -> usize {
        self.session.history().committed().len()
    }

    /// A session without commits is one, too.
    #[expect(clippy::unused_self, reason = "a method of Python")]
    fn __bool__(&self) -> bool {
        true
    }

    /// What a selector finds, with a value for each of its parameters as a keyword or in `params`.
    #[pyo3(signature = (selector, /, params = None, **named))]
    fn select(
        &self,
        py: Python<'_>,
        selector: &str,
        params: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Selection> {
        let prepared = prepared(py, &self.engine, selector, params, named)?;
        self.rows(py, &self.engine, &prepared)
    }

    /// What changed between the snapshots of a selector's range.
    ///
    /// >>> diff = session.range("@t-2..@t0 .cb[kind='call']")
    /// >>> [(pair.newer.label, pair.added) for pair in diff]
    /// [('@t0', ['cb:c5']), ('@t-1', [])]
    #[pyo3(signature = (selector, /, params = None, **named), text_signature = "($self, selector, /, params=None, *, content=None, context_lines=3, materialize=(), max_snapshots=None, max_changes=None, stats=False, **named)")]
    fn range(
        &self,
        py: Python<'_>,
        selector: &str,
        params: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<RangeDiff> {
        let options = range_options(named)?;
        let prepared = prepared(py, &self.engine, selector, params, named)?;
        self.changes(py, &prepared, &options)
    }

    /// How a selector is read and planned; with `analyze`, also what running it here did.
    #[pyo3(signature = (selector, /, *, analyze = false, verbose = false))]
    fn explain(
        &self,
        py: Python<'_>,
        selector: &str,
        analyze: bool,
        verbose: bool,
    ) -> PyResult<Explain> {
        let session = Some(self.shared(py)?);
        explain(py, &self.engine, session, selector, analyze, verbose)
    }

    /// How many tokens the requests have, in groups: what `pactql tokens --format json` prints.
    ///
    /// Of the snapshot or the range `at`, or of `all` snapshots; without both, of the working state, or else the
    /// newest. `by` is region, role, kind, turn, tool or key.
    #[pyo3(signature = (at = None, *, by = "region", only = None, tokenizer = None, all = false))]
    fn tokens<'py>(
        &self,
        py: Python<'py>,
        at: Option<&str>,
        by: &str,
        only: Option<&str>,
        tokenizer: Option<&str>,
        all: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let by = by_name("group", by, &By::ALL, By::as_str)?;
        let part = if all { Part::all() } else { at_time(at) };
        self.report::<TokenReport>(py, options(part, only, None, tokenizer)?.by(by))
    }

    /// What a prompt cache can reuse from one request to the next, and what broke it: what
    /// `pactql prefix --format json` prints. Of the range `at`, or of all committed snapshots.
    #[pyo3(signature = (at = None, *, only = None, provider = None, tokenizer = None))]
    fn prefix<'py>(
        &self,
        py: Python<'py>,
        at: Option<&str>,
        only: Option<&str>,
        provider: Option<&str>,
        tokenizer: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.report::<PrefixReport>(py, options(at_time(at), only, provider, tokenizer)?)
    }

    /// What happened in each cycle: what `pactql steps --format json` prints.
    #[pyo3(signature = (at = None, *, only = None, provider = None, tokenizer = None))]
    fn steps<'py>(
        &self,
        py: Python<'py>,
        at: Option<&str>,
        only: Option<&str>,
        provider: Option<&str>,
        tokenizer: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.report::<StepReport>(py, options(at_time(at), only, provider, tokenizer)?)
    }

    /// A snapshot as the request that a provider is sent: the JSON text. `openai`, `openai-responses`, `anthropic`,
    /// `gemini`, `bedrock`, or `thread`. Without `provider`, the form of the requests that the session came in as, or
    /// else `thread`; without `at`, the working state, or else the newest snapshot.
    #[pyo3(signature = (provider = None, at = None, /))]
    fn render(&self, py: Python<'_>, provider: Option<&str>, at: Option<&str>) -> PyResult<String> {
        let provider = provider.map(crate::values::provider).transpose()?;
        self.check(py)?;
        let history = self.session.history();
        let found = py.detach(|| self.engine.snapshots(&history, at.unwrap_or_default()));
        let found = found.or_raise(py)?;
        let [(_, snapshot)] = &found[..] else {
            let message = "`render` takes the address of one snapshot, such as `@t0`";
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        };
        let form = provider.or_else(|| pactql::inspect::came_in_as(snapshot));
        let form = form.unwrap_or_default();
        py.detach(|| pactql::render::request(&pactql::context::sent(&history, snapshot), form))
            .or_raise(py)
    }

    /// The session as JSON Lines, one snapshot a line, each as a difference to the one before unless `full`.
    #[pyo3(signature = (*, full = false))]
    fn dumps(&self, py: Python<'_>, full: bool) -> PyResult<String> {
        let history = self.fetch(py)?;
        let written = py.detach(|| {
            let mut bytes = Vec::new();
            write(&history, full, &mut bytes).map(|()| bytes)
        });
        let bytes = written.map_err(|error| of_system(py, &error.to_string(), &error))?;
        Ok(String::from_utf8(bytes)?)
    }

    /// Writes the session to a file, as `dumps` gives it. The file is there as a whole, or as it was before.
    #[pyo3(signature = (path, /, *, full = false, overwrite = false))]
    fn save(&self, py: Python<'_>, path: PathBuf, full: bool, overwrite: bool) -> PyResult<()> {
        if !overwrite && path.exists() {
            let message = format!(
                "{} exists already: `overwrite=True` replaces it",
                path.display()
            );
            return Err(PyFileExistsError::new_err(message));
        }
        let history = self.fetch(py)?;
        let written = py.detach(|| save(&history, full, &path));
        written.map_err(|error| of_system(py, &format!("{}: {error}", path.display()), &error))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let html = slf.py().import("pactql._html")?;
        html.call_method1("session", (slf,))
    }

    fn __repr__(&self) -> String {
        let snapshots = match self.__len__() {
            1 => "1 snapshot".to_owned(),
            more => format!("{more} snapshots"),
        };
        match self.name() {
            Some(name) => format!("<Session {name:?} of {snapshots}>"),
            None => format!("<Session of {snapshots}>"),
        }
    }
}

/// The engine of an argument, or the one of all sessions that were given none.
pub(crate) fn engine_or(engine: Option<&crate::engine::Engine>) -> Arc<pactql::Engine> {
    Arc::clone(engine.map_or(&*SHARED, |engine| &engine.engine))
}

/// Writes a session as JSON Lines.
///
/// # Errors
/// Those of the writer.
fn write(history: &pactql::History, full: bool, out: &mut dyn Write) -> io::Result<()> {
    let working = history.working().map(|working| &**working);
    write_session(history.committed(), working, full, out)
}

/// Writes a session to a file beside the one that is meant, and gives it the name when it is whole.
///
/// # Errors
/// Those of the file system.
fn save(history: &pactql::History, full: bool, path: &Path) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write(history, full, &mut out)?;
        out.into_inner()?.sync_all()?;
        fs::rename(&part, path)
    });
    if written.is_err() {
        // What is left of it says nothing.
        let _ = fs::remove_file(&part);
    }
    written
}
