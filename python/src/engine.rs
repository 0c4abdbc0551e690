//! `Engine`, and what it makes: prepared selectors, checks, explanations.

use crate::errors::OrRaise;
use crate::forks;
use crate::json;
use crate::range::RangeDiff;
use crate::selection::Selection;
use crate::session::Session;
use crate::values::{bound_to, by_name, prepared, range_options};
use pactql::explain::ExplainOptions;
use pactql::sql::{Dialect, Options};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, LazyLock};

/// The engine of sessions that were given none.
pub(crate) static SHARED: LazyLock<Arc<pactql::Engine>> = LazyLock::new(Arc::default);

/// Compiles and runs selectors, and keeps their plans. Any number of threads may share one.
///
/// >>> engine = pactql.Engine()
/// >>> engine.format("@t0 ^seq .seg:depth(1) .block(role=user)")
/// "@t0 ^seq .mt:depth(1) .cb[role='user']"
#[pyclass(frozen, module = "pactql")]
pub(crate) struct Engine {
    pub(crate) engine: Arc<pactql::Engine>,
}

#[pymethods]
impl Engine {
    /// An engine for selectors of an edition (`canonical`, `depth` or `v0.1`), which keeps the plans of at most this many
    /// selectors.
    #[new]
    #[pyo3(signature = (*, edition = "canonical", cached_texts = 4096), text_signature = "(*, edition='canonical', cached_texts=4096)")]
    fn new(edition: &str, cached_texts: usize) -> PyResult<Self> {
        let edition = crate::values::edition(edition)?;
        let engine = pactql::Engine::builder()
            .edition(edition)
            .cached_texts(cached_texts);
        Ok(Self {
            engine: Arc::new(engine.build()),
        })
    }

    /// The edition of its selectors.
    #[getter]
    fn edition(&self) -> &'static str {
        self.engine.edition().as_str()
    }

    /// Compiles a selector, which may have parameters such as `$role`.
    #[pyo3(signature = (selector, /))]
    fn prepare(&self, py: Python<'_>, selector: &str) -> PyResult<Prepared> {
        let prepared = prepared(py, &self.engine, selector, None, None)?;
        Ok(Prepared { prepared })
    }

    /// What a selector finds in a session, as `Session.select` does.
    #[pyo3(signature = (session, selector, /, params = None, **named))]
    fn select(
        &self,
        py: Python<'_>,
        session: &Session,
        selector: &str,
        params: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Selection> {
        let prepared = prepared(py, &self.engine, selector, params, named)?;
        session.rows(py, &self.engine, &prepared)
    }

    /// Checks a selector: its canonical text, its fingerprint, and warnings.
    ///
    /// >>> pactql.Engine().check("@t0 .cb[role='user'][role='tool']").canonical
    /// '@t0 none'
    #[pyo3(signature = (selector, /))]
    fn check(&self, py: Python<'_>, selector: &str) -> PyResult<Check> {
        let report = py.detach(|| self.engine.check(selector)).or_raise(py)?;
        let warnings = report.warnings.iter().map(ToString::to_string);
        Ok(Check {
            canonical: report.canonical,
            fingerprint: report.fingerprint,
            warnings: warnings.collect(),
        })
    }

    /// The canonical text of a selector.
    #[pyo3(signature = (selector, /))]
    fn format(&self, py: Python<'_>, selector: &str) -> PyResult<String> {
        py.detach(|| self.engine.format(selector)).or_raise(py)
    }

    /// How a selector is read and planned; with a session and `analyze`, also what running it did.
    #[pyo3(signature = (selector, /, session = None, *, analyze = false, verbose = false))]
    fn explain(
        &self,
        py: Python<'_>,
        selector: &str,
        session: Option<&Session>,
        analyze: bool,
        verbose: bool,
    ) -> PyResult<Explain> {
        let session = session.map(|session| session.shared(py)).transpose()?;
        explain(py, &self.engine, session, selector, analyze, verbose)
    }

    /// The selector as one statement of SQL over the tables of a store: `sqlite`, `duckdb`, `postgres` or `spark`.
    #[pyo3(signature = (selector, /, dialect = "sqlite", *, sessions = "", schema = ""))]
    fn sql(
        &self,
        py: Python<'_>,
        selector: &str,
        dialect: &str,
        sessions: &str,
        schema: &str,
    ) -> PyResult<String> {
        let dialect = by_name("dialect", dialect, &Dialect::ALL, Dialect::name)?;
        let options = Options {
            schema: schema.to_owned(),
            sessions: sessions.to_owned(),
        };
        let statement = py.detach(|| self.engine.sql(selector, dialect, &options));
        Ok(statement.or_raise(py)?.text().to_owned())
    }

    /// Counters of the plan cache.
    fn cache_stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::report(py, &self.engine.cache_stats())
    }

    fn __repr__(&self) -> String {
        format!("Engine(edition='{}')", self.engine.edition())
    }
}

/// Explains a selector.
///
/// # Errors
/// Those of the selector, and of running it.
pub(crate) fn explain(
    py: Python<'_>,
    engine: &pactql::Engine,
    session: Option<Arc<pactql::Session>>,
    selector: &str,
    analyze: bool,
    verbose: bool,
) -> PyResult<Explain> {
    let options = ExplainOptions::default().analyze(analyze).verbose(verbose);
    let explained = forks::shared(py, || engine.explain(session.as_deref(), selector, options));
    Ok(Explain {
        explain: explained.or_raise(py)?,
    })
}

/// A compiled selector. It is of no session, and any number of threads may run it.
///
/// >>> by_role = pactql.Engine().prepare("@t0 .cb[role=$role]")
/// >>> by_role.params
/// ['role']
#[pyclass(frozen, module = "pactql")]
pub(crate) struct Prepared {
    prepared: pactql::Prepared,
}

#[pymethods]
impl Prepared {
    /// The selector as written.
    #[getter]
    fn text(&self) -> &str {
        self.prepared.text()
    }

    /// The canonical text.
    #[getter]
    fn canonical(&self) -> String {
        self.prepared.canonical()
    }

    /// SHA-256 of the canonical text.
    #[getter]
    fn fingerprint(&self) -> String {
        self.prepared.fingerprint()
    }

    /// The names of its parameters, sorted.
    #[getter]
    fn params(&self) -> Vec<&str> {
        self.prepared.params()
    }

    /// Warnings about the selector.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let warnings = self.prepared.warnings().iter();
        warnings.map(ToString::to_string).collect()
    }

    /// What it finds in a session.
    #[pyo3(signature = (session, /, params = None, **named))]
    fn select(
        &self,
        py: Python<'_>,
        session: &Session,
        params: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Selection> {
        let prepared = bound_to(py, &self.prepared, params, named)?;
        session.rows(py, &session.engine, &prepared)
    }

    /// What changed in a session, of a selector of a range.
    #[pyo3(signature = (session, /, params = None, **named), text_signature = "($self, session, /, params=None, *, content=None, context_lines=3, materialize=(), max_snapshots=None, max_changes=None, stats=False, **named)")]
    fn range(
        &self,
        py: Python<'_>,
        session: &Session,
        params: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<RangeDiff> {
        let options = range_options(named)?;
        let prepared = bound_to(py, &self.prepared, params, named)?;
        session.changes(py, &prepared, &options)
    }

    fn __repr__(&self) -> String {
        format!("Prepared({:?})", self.prepared.text())
    }
}

/// What is known of a selector that is right.
#[pyclass(frozen, get_all, module = "pactql")]
pub(crate) struct Check {
    /// The canonical text.
    canonical: String,
    /// SHA-256 of the canonical text.
    fingerprint: String,
    /// Warnings.
    warnings: Vec<String>,
}

#[pymethods]
impl Check {
    fn __repr__(&self) -> String {
        format!("Check({:?})", self.canonical)
    }
}

/// How a selector is read and planned. As a text it is what `pactql explain` prints.
#[pyclass(frozen, module = "pactql")]
pub(crate) struct Explain {
    explain: pactql::explain::Explain,
}

#[pymethods]
impl Explain {
    /// The canonical text.
    #[getter]
    fn normalized(&self) -> &str {
        &self.explain.normalized
    }

    /// SHA-256 of the canonical text.
    #[getter]
    fn fingerprint(&self) -> &str {
        &self.explain.fingerprint
    }

    /// Warnings about the selector.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.explain.warnings.clone()
    }

    /// All of it as dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::report(py, &self.explain)
    }

    fn __str__(&self) -> String {
        self.explain.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Explain({:?})", self.explain.selector)
    }
}
