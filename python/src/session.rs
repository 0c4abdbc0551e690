//! `Session`: the history of one conversation's context.

use crate::engine::{Explain, SHARED, explain};
use crate::errors::{OrRaise, Warned, of_system, plain, warn};
use crate::forks::{self, Origin};
use crate::json;
use crate::logs::format_of;
use crate::range::RangeDiff;
use crate::selection::Selection;
use crate::values::{Address, Source, Texts, by_name, prepared, range_options};
use pactql::inspect::share::{Redactor, page};
use pactql::inspect::{
    AssertReport, By, Condition, Counts, DuplicateReport, Fields, GrepReport, Part, PrefixReport,
    Prices, Report, ReportOptions, Run, Search, ShowReport, StepReport, TokenReport, Tokenizer,
    Top, UnusedReport, Usage, UsageBy, WithoutReport,
};
use pactql::logs::write_session;
use pactql::opened::{check_written, uncompressed};
use pactql::selection::EmptyReason;
use pactql::{Provider, RangeOptions};
use pyo3::exceptions::{PyFileExistsError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};
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
    fn ensure_here(&self, py: Python<'_>) -> PyResult<()> {
        self.origin.map_or(Ok(()), |origin| origin.check(py))
    }

    /// The session of the library, for what reads all of it.
    ///
    /// # Errors
    /// The process was forked since.
    pub(crate) fn shared(&self, py: Python<'_>) -> PyResult<Arc<pactql::Session>> {
        self.ensure_here(py)?;
        Ok(Arc::clone(&self.session))
    }

    /// The rows of a selector.
    pub(crate) fn rows(
        &self,
        py: Python<'_>,
        engine: &Arc<pactql::Engine>,
        prepared: &pactql::Prepared,
    ) -> PyResult<Selection> {
        self.ensure_here(py)?;
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
        self.ensure_here(py)?;
        let diff = forks::shared(py, || prepared.range_with(&self.session, options));
        let diff = RangeDiff::new(diff.or_raise(py)?, self.name.clone());
        Ok(diff.with_session(&self.session, &self.engine, prepared))
    }

    /// A report of the library on some of its snapshots, of this class in Python.
    fn table<'py, R: Report + Send + Sync>(
        &self,
        py: Python<'py>,
        class: &str,
        options: ReportOptions,
    ) -> PyResult<Bound<'py, PyAny>> {
        let report = self.report::<R>(py, options)?;
        py.import("pactql._reports")?.call_method1(class, (report,))
    }

    /// A report of the library on some of its snapshots. Its `notes` say why its selector finds nothing.
    fn report<'py, R: Report + Send + Sync>(
        &self,
        py: Python<'py>,
        options: ReportOptions,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ensure_here(py)?;
        let made = forks::shared(py, || {
            let report = R::new(&self.engine, &self.session, &options)?;
            Ok((report, R::part(&options)))
        });
        let (report, part) = Result::<_, pactql::Error>::or_raise(made, py)?;
        self.with_notes(py, json::report(py, &report)?, &part)
    }

    /// A report with its `notes`: why the selector of its part finds nothing.
    fn with_notes<'py>(
        &self,
        py: Python<'py>,
        report: Bound<'py, PyAny>,
        part: &Part,
    ) -> PyResult<Bound<'py, PyAny>> {
        let notes = forks::shared(py, || part.why_empty(&self.engine, &self.session));
        let notes = notes.or_raise(py)?;
        if !notes.is_empty() {
            report.set_item("notes", notes)?;
        }
        Ok(report)
    }

    fn render_attempt(&self, py: Python<'_>, form: Option<Provider>, id: &str) -> PyResult<String> {
        let history = self.fetch(py)?;
        let made = history.attempts().iter().find(|made| made.attempt_id == id);
        let Some((made, thread)) = made.zip(pactql::context::attempted(&history, id)) else {
            let message = format!("the session has no attempt `{id}`; `attempts` lists them");
            return Err(pyo3::exceptions::PyKeyError::new_err(message));
        };
        let form = form.or(Provider::parse(&made.provider)).unwrap_or_default();
        py.detach(|| pactql::render::request(&thread, form))
            .or_raise(py)
    }

    /// Has all snapshots in memory.
    fn fetch(&self, py: Python<'_>) -> PyResult<Arc<pactql::History>> {
        self.ensure_here(py)?;
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

/// Refuses arguments that contradict each other, by their names.
fn check_alone(one: (&str, bool), others: &[(&str, bool)]) -> PyResult<()> {
    let (name, is_given) = one;
    let mut others = others.iter().filter(|(_, other)| is_given && *other);
    match others.next() {
        Some((other, _)) => Err(PyValueError::new_err(format!(
            "`{name}` and `{other}` exclude each other: give one of them"
        ))),
        None => Ok(()),
    }
}

/// The snapshots at a time.
fn at_time(at: Option<Address>) -> Part {
    at_or(at, Part::default())
}

/// As [`at_time`], or another part where no time is given.
fn at_or(at: Option<Address>, part: Part) -> Part {
    at.map_or(part, |Address(at)| Part::default().at(at))
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
        let session = forks::shared(py, || {
            let opened = pactql::Session::open(&path);
            let is_invalid = opened.is_err() && path.is_file();
            opened.map_err(|error| (error, is_invalid.then(|| format_of(&path)).flatten()))
        });
        match session {
            Ok(session) => Ok(Self::new(Arc::new(session), engine_or(engine), None)),
            // What is wrong with each of its lines says nothing.
            Err((_, Some(format))) => {
                let message = format!(
                    "{} is a log ({format}), and not a file of snapshots",
                    path.display()
                );
                let help = Some("`pactql.open(path)` reads both");
                Err(plain(py, pactql::error::InputError::CODE, &message, help))
            }
            Err((error, None)) => Err(error).or_raise(py),
        }
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
        self.ensure_here(py)?;
        Ok(py.detach(|| self.session.history().cycles().collect()))
    }

    /// The member `usage` of the snapshot of a cycle, as JSON.
    fn _usage(&self, py: Python<'_>, cycle: i64) -> PyResult<Option<String>> {
        self.ensure_here(py)?;
        Ok(py.detach(|| {
            let history = self.session.history();
            let at = history.committed().index_of(cycle)?;
            let snapshot = history.committed().get(at)?;
            let mut members = snapshot.meta().extra.iter();
            let usage = members.find(|(name, _)| &**name == "usage");
            usage.map(|(_, json)| json.to_string())
        }))
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

    /// The snapshot at an index, the newest being `-1`, or a list of those of a slice.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let cycles = PyList::new(py, slf.get().cycles(py)?)?;
        let class = py.import("pactql._snapshot")?.getattr("Snapshot")?;
        let found = cycles.as_any().get_item(index)?;
        let Ok(some) = found.cast::<PyList>() else {
            return class.call1((slf, found));
        };
        let made = some.iter().map(|cycle| class.call1((slf, cycle)));
        let made = made.collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, made)?.into_any())
    }

    /// Its committed snapshots, oldest first.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        let all = pyo3::types::PySlice::full(slf.py());
        Self::__getitem__(slf, all.as_any())?.try_iter()
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
    /// newest. `by` is region (also if it is left out), role, kind, turn, tool, key or block.
    ///
    /// With `without`, a selector: what all calls would have used and cost without what it matches. That has no groups,
    /// so it takes neither `by` nor `only`.
    #[pyo3(signature = (at = None, *, by = None, only = None, tokenizer = None, all = false, without = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn tokens<'py>(
        &self,
        py: Python<'py>,
        at: Option<Address>,
        by: Option<&str>,
        only: Option<&str>,
        tokenizer: Option<&str>,
        all: bool,
        without: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check_alone(("all", all), &[("at", at.is_some())])?;
        let others = [("by", by.is_some()), ("only", only.is_some())];
        check_alone(("without", without.is_some()), &others)?;
        let by = by_name("group", by.unwrap_or("region"), &By::ALL, By::as_str)?;
        let part = if all { Part::all() } else { at_time(at) };
        if without.is_some() {
            return self.table::<WithoutReport>(
                py,
                "WithoutReport",
                options(part, without, None, tokenizer)?,
            );
        }
        self.table::<TokenReport>(
            py,
            "TokenReport",
            options(part, only, None, tokenizer)?.by(by),
        )
    }

    /// What a prompt cache can reuse from one request to the next, and what broke it: what
    /// `pactql prefix --format json` prints. Of the range `at`, or of all committed snapshots.
    #[pyo3(signature = (at = None, *, only = None, provider = None, tokenizer = None))]
    fn prefix<'py>(
        &self,
        py: Python<'py>,
        at: Option<Address>,
        only: Option<&str>,
        provider: Option<&str>,
        tokenizer: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.table::<PrefixReport>(
            py,
            "PrefixReport",
            options(at_time(at), only, provider, tokenizer)?,
        )
    }

    /// What happened in each cycle: what `pactql steps --format json` prints.
    #[pyo3(signature = (at = None, *, only = None, provider = None, tokenizer = None))]
    fn steps<'py>(
        &self,
        py: Python<'py>,
        at: Option<Address>,
        only: Option<&str>,
        provider: Option<&str>,
        tokenizer: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.table::<StepReport>(
            py,
            "StepReport",
            options(at_time(at), only, provider, tokenizer)?,
        )
    }

    /// What the model saw: the blocks of a snapshot or a range with their texts, what is new among them, and the call that
    /// was made. What `pactql show --json` prints. `before_reply` leaves out the reply.
    #[pyo3(signature = (at = None, *, only = None, before_reply = false, tokenizer = None))]
    fn show<'py>(
        &self,
        py: Python<'py>,
        at: Option<Address>,
        only: Option<&str>,
        before_reply: bool,
        tokenizer: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = options(at_time(at), only, None, tokenizer)?;
        self.report::<ShowReport>(py, options.before_reply(before_reply))
    }

    /// Where a regular expression matches, line by line, in all snapshots or those of `at`: what `pactql grep --json` prints.
    ///
    /// >>> found = session.grep("refund", ignore_case=True)
    /// >>> [(block["id"], block["first"]) for block in found["blocks"]][:1]
    /// [('cb:persona', '@c1')]
    #[pyo3(signature = (pattern, at = None, *, only = None, ignore_case = false, context = 0))]
    fn grep<'py>(
        &self,
        py: Python<'py>,
        pattern: &str,
        at: Option<Address>,
        only: Option<&str>,
        ignore_case: bool,
        context: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let search = Search::new(pattern, ignore_case)
            .or_raise(py)?
            .context(context);
        let part = at_or(at, Part::all());
        self.report::<GrepReport>(py, options(part, only, None, None)?.search(search))
    }

    /// How much text there is in groups, the largest first: what `pactql top --json` prints. Of the snapshot or the range
    /// `at`; without it, of the working state, or else the newest snapshot. `by` is session, region, role, kind, turn, tool,
    /// key or block.
    #[pyo3(signature = (at = None, *, by = "role", only = None, tokenizer = None))]
    fn top<'py>(
        &self,
        py: Python<'py>,
        at: Option<Address>,
        by: &str,
        only: Option<&str>,
        tokenizer: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let group = || by_name("group", by, &By::ALL, By::as_str);
        let by = (by != "session").then(group).transpose()?;
        let options = options(at_time(at), only, None, tokenizer)?;
        let session = self.shared(py)?;
        let made = py.detach(|| {
            let fitting = || Top::fitting(&self.engine, &session, &options.part);
            let mut top = Top::new(by, options.tokenizer.unwrap_or_else(fitting));
            // Without other sessions, a group by turn or block needs no name before it.
            let name = self.name().filter(|_| by.is_none()).unwrap_or_default();
            top.add(&self.engine, name, &session, &options.part)
                .map(|()| top)
        });
        let top = json::report(py, &made.or_raise(py)?)?;
        self.with_notes(py, top, &options.part)
    }

    /// Which tools the model is given and never calls, and what sending them costs: what `pactql tokens --unused --json`
    /// prints.
    #[pyo3(signature = (at = None, *, tokenizer = None))]
    fn unused<'py>(
        &self,
        py: Python<'py>,
        at: Option<Address>,
        tokenizer: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let part = at_or(at, Part::all());
        self.report::<UnusedReport>(py, options(part, None, None, tokenizer)?)
    }

    /// Which texts one request sends more than once: what `pactql tokens --duplicates --json` prints.
    #[pyo3(signature = (at = None, *, only = None, tokenizer = None))]
    fn duplicates<'py>(
        &self,
        py: Python<'py>,
        at: Option<Address>,
        only: Option<&str>,
        tokenizer: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.report::<DuplicateReport>(py, options(at_time(at), only, None, tokenizer)?)
    }

    /// Whether conditions hold, one a line of the text: what `pactql assert --json` prints. It is false if one does not,
    /// so that `assert session.check(…)` is a test. A condition that holds, and may not say what was meant, as it has a
    /// name or a value that no node has, warns (`pactql.SelectorWarning`).
    ///
    /// >>> report = session.check("some @t0 ^sys .cb\ntokens <= 100000")
    /// >>> report["holds"], [each["holds"] for each in report["conditions"]]
    /// (True, [True, True])
    #[pyo3(signature = (conditions, /))]
    fn check<'py>(&self, py: Python<'py>, conditions: &str) -> PyResult<Bound<'py, PyAny>> {
        let conditions = Condition::parse_file(conditions).or_raise(py)?;
        let options = ReportOptions::default().conditions(conditions);
        let session = self.shared(py)?;
        let made = forks::shared(py, || AssertReport::new(&self.engine, &session, &options));
        let made = made.or_raise(py)?;
        for checked in made.conditions.iter().filter(|checked| checked.holds) {
            for note in &checked.notes {
                let message = format!("`{}` holds, and {note}", checked.condition);
                warn(py, Warned::Selector, &message)?;
            }
        }
        let report = json::report(py, &made)?;
        let class = py.import("pactql._reports")?.getattr("Checked")?;
        class.call1((report,))
    }

    /// Names of a selector, and values, that no node of the session has, each with what may have been meant.
    #[pyo3(signature = (selector, params, /))]
    fn _misspelled(
        &self,
        py: Python<'_>,
        selector: &str,
        params: &Bound<'_, PyAny>,
    ) -> PyResult<(Vec<String>, Vec<String>)> {
        let prepared = prepared(py, &self.engine, selector, Some(params), None)?;
        let session = self.shared(py)?;
        let found = forks::shared(py, || prepared.misspelled(&session)).or_raise(py)?;
        let is_name = |reason: &EmptyReason| matches!(reason, EmptyReason::UnknownAttribute { .. });
        let (names, values): (Vec<_>, Vec<_>) = found.into_iter().partition(is_name);
        let words = |found: Vec<EmptyReason>| found.iter().map(ToString::to_string).collect();
        Ok((words(names), words(values)))
    }

    /// What the calls used and cost, by `day`, `month`, `model`, `project`, `session` or `agent`: what
    /// `pactql usage --json` prints.
    #[pyo3(signature = (by = "day"))]
    fn usage<'py>(&self, py: Python<'py>, by: &str) -> PyResult<Bound<'py, PyAny>> {
        let by = by_name("group", by, &UsageBy::ALL, UsageBy::as_str)?;
        let session = self.shared(py)?;
        let used = py.detach(|| {
            let mut usage = Usage::new(by, Prices::default());
            let name = self.name().unwrap_or_default();
            usage.add(name, &session).map(|()| usage)
        });
        let used = json::report(py, &used.or_raise(py)?)?;
        py.import("pactql._reports")?
            .call_method1("UsageReport", (used,))
    }

    /// What a selector can ask for here: headers, attributes with their values, tools. What `pactql fields --json` prints.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let session = self.shared(py)?;
        let found = py.detach(|| {
            let mut fields = Fields::default();
            fields.add(&session).map(|()| fields.report())
        });
        json::report(py, &found.or_raise(py)?)
    }

    /// Where this run and another one part: how many steps are equal, and what differs first. What `pactql diff RUN RUN
    /// --json` prints.
    #[pyo3(signature = (other, /))]
    fn diff<'py>(&self, py: Python<'py>, other: &Self) -> PyResult<Bound<'py, PyAny>> {
        let (a, b) = (self.shared(py)?, other.shared(py)?);
        let content = pactql::history::ContentOptions::default();
        let parted = py
            .detach(|| Ok::<_, pactql::Error>(Run::new(&a)?.divergence(&Run::new(&b)?, &content)));
        json::report(py, &parted.or_raise(py)?)
    }

    /// What became of a node: when it appeared, changed, moved and went, and by what. What `pactql blame --json` prints.
    ///
    /// # Errors
    /// `KeyError`: no snapshot has the id.
    #[pyo3(signature = (id, /))]
    fn blame<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Bound<'py, PyAny>> {
        let history = self.fetch(py)?;
        let found = py.detach(|| pactql::history::blame(&history, id));
        let found = found.ok_or_else(|| {
            pyo3::exceptions::PyKeyError::new_err(format!("no snapshot has a node `{id}`"))
        })?;
        json::report(py, &found)
    }

    /// The calls of the provider that a `Context` began, newest first, also those that failed: `attempt_id`, `cycle_id`,
    /// `status`, `error`, `model`, times and counts of tokens. `render(attempt=…)` gives what one was sent.
    ///
    /// Empty of a log that was imported and of a session that a recorder wrote, which no `Context` made: the `events` of
    /// `steps()` say which of their calls failed.
    #[getter]
    fn attempts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let history = self.fetch(py)?;
        json::report(py, &history.attempts().iter().collect::<Vec<_>>())
    }

    /// The session as a page of HTML that needs no server, with what the patterns of `redact` match taken out.
    #[pyo3(signature = (*, redact = Texts(Vec::new())))]
    fn to_html(&self, py: Python<'_>, redact: Texts) -> PyResult<String> {
        let history = self.fetch(py)?;
        let redactor = Redactor::new(&redact.0);
        let mut redactor = redactor.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let made = py.detach(|| {
            let mut bytes = Vec::new();
            let title = self.name().unwrap_or("session");
            page(
                &history,
                title,
                &mut redactor,
                &mut Counts::default(),
                &Prices::default(),
            )
            .write_html(&mut bytes)
            .map(|()| bytes)
        });
        let bytes = made.map_err(|error| of_system(py, &error.to_string(), &error))?;
        Ok(String::from_utf8(bytes)?)
    }

    /// A snapshot as the request that a provider is sent: the JSON text. `openai`, `openai-responses`, `anthropic`,
    /// `gemini`, `bedrock`, or `thread`. Without `provider`, the form of the requests that the session came in as, or
    /// else `thread`; without `at`, the working state, or else the newest snapshot. With `attempt`, in the place of `at`,
    /// what that attempt was sent, in its own form.
    #[pyo3(signature = (provider = None, at = None, /, *, attempt = None))]
    fn render(
        &self,
        py: Python<'_>,
        provider: Option<&str>,
        at: Option<Address>,
        attempt: Option<&str>,
    ) -> PyResult<String> {
        let provider = provider.map(crate::values::provider).transpose()?;
        check_alone(("attempt", attempt.is_some()), &[("at", at.is_some())])?;
        if let Some(id) = attempt {
            return self.render_attempt(py, provider, id);
        }
        self.ensure_here(py)?;
        let history = self.session.history();
        let at = at.map(|Address(at)| at).unwrap_or_default();
        let found = py.detach(|| self.engine.snapshots(&history, &at));
        let found = found.or_raise(py)?;
        let [(_, snapshot)] = &found[..] else {
            let message = "`render` takes the address of one snapshot, such as `@t0`";
            return Err(PyValueError::new_err(message));
        };
        let form = provider.or_else(|| pactql::inspect::came_in_as(snapshot));
        let form = form.unwrap_or_default();
        py.detach(|| pactql::render::request(&pactql::context::sent(&history, snapshot), form))
            .or_raise(py)
    }

    /// The session as JSON Lines, one snapshot a line, each as a difference to the one before unless `full`.
    ///
    /// # Errors
    /// `SnapshotNotFound`: the session has no snapshots.
    #[pyo3(signature = (*, full = false))]
    fn dumps(&self, py: Python<'_>, full: bool) -> PyResult<String> {
        let history = self.fetch(py)?;
        check_written(&history).or_raise(py)?;
        let written = py.detach(|| {
            let mut bytes = Vec::new();
            write(&history, full, &mut bytes).map(|()| bytes)
        });
        let bytes = written.map_err(|error| of_system(py, &error.to_string(), &error))?;
        Ok(String::from_utf8(bytes)?)
    }

    /// Writes the session to a file, as `dumps` gives it. The file is there as a whole, or as it was before.
    ///
    /// # Errors
    /// `FileExistsError`; `ValueError`: the name is that of a compressed file, and none is written; `SnapshotNotFound`: the
    /// session has no snapshots.
    #[pyo3(signature = (path, /, *, full = false, overwrite = false))]
    fn save(&self, py: Python<'_>, path: PathBuf, full: bool, overwrite: bool) -> PyResult<()> {
        if let Some(plain) = uncompressed(&path.to_string_lossy()) {
            let message = format!(
                "{}: a file is not written compressed; write it to {plain}",
                path.display()
            );
            return Err(PyValueError::new_err(message));
        }
        if !overwrite && path.exists() {
            let message = format!(
                "{} exists already: `overwrite=True` replaces it",
                path.display()
            );
            return Err(PyFileExistsError::new_err(message));
        }
        let history = self.fetch(py)?;
        check_written(&history).or_raise(py)?;
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
