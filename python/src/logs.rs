//! Chat logs: the messages of other programs as sessions.

use crate::errors::{OrRaise, of_system, plain};
use crate::forks;
use crate::json;
use crate::session::{Session, engine_or};
use crate::values::{Source, by_name};
use pactql::logs::{Format, ImportOptions, Imported as Log, ImportedSession, session_names, stem};
use pyo3::prelude::*;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was read of a log.
pub(crate) struct Read {
    /// Each session with its name.
    pub(crate) sessions: Vec<(String, pactql::Session)>,
    format: Option<&'static str>,
    report: pactql::logs::ImportReport,
}

/// Reads a log from a path, or from bytes. Also returns the path.
///
/// # Errors
/// The file cannot be read; those of [`pactql::logs::import()`].
pub(crate) fn read(
    py: Python<'_>,
    log: &Bound<'_, PyAny>,
    name: Option<&str>,
    format: Option<&str>,
    lenient: bool,
) -> PyResult<(Read, Option<String>)> {
    let named = |word| by_name("format of logs", word, &Format::ALL, Format::name);
    let options = ImportOptions {
        format: format.map(named).transpose()?,
        lenient,
        ..ImportOptions::default()
    };
    let (bytes, path) = match Source::path_or_bytes(log)? {
        Source::Bytes(bytes) => (bytes, None),
        Source::Path(path) => {
            let bytes = py.detach(|| std::fs::read(&path)).map_err(|error| {
                let message = format!("{}: {error}", path.display());
                match error.kind() {
                    std::io::ErrorKind::NotFound => plain(py, "E_MISSING", &message, None),
                    _ => of_system(py, &message, &error),
                }
            })?;
            (bytes, Some(path))
        }
    };
    let file = path.as_deref().and_then(|path| path.file_name());
    let file = file.map(|file| file.to_string_lossy());
    let of_file = file.as_deref().map_or("session", stem);
    let stem = name.unwrap_or(of_file);
    let source = path.as_deref().map(|path| path.display().to_string());
    let read = forks::shared(py, || {
        let Log {
            sessions,
            report,
            format,
        } = pactql::logs::import(&bytes, &options)?;
        let names = session_names(stem, &sessions);
        let made: Vec<_> = sessions.par_iter().map(ImportedSession::session).collect();
        let named = names.into_iter().zip(made);
        let named = named.map(|(name, made)| made.map(|made| (name, made)));
        Ok::<_, pactql::logs::LogError>(Read {
            // The first error is that of the first session.
            sessions: named.collect::<Result<_, _>>()?,
            format: format.map(Format::name),
            report,
        })
    });
    Ok((read.or_raise(py)?, source))
}

/// The folders and files in which agents keep their logs on this machine.
#[pyfunction(name = "_agent_logs")]
pub(crate) fn agent_logs() -> Vec<PathBuf> {
    let places = pactql::logs::agent_logs(|name| std::env::var_os(name));
    places.into_iter().map(|place| place.path).collect()
}

/// The name of the format of a file that is a log.
pub(crate) fn format_of(path: &Path) -> Option<&'static str> {
    let bytes = std::fs::read(path).ok()?;
    let log = pactql::logs::import(&bytes, &ImportOptions::default()).ok()?;
    log.format.map(Format::name)
}

/// A log that was read.
#[pyclass(frozen, module = "pactql")]
pub(crate) struct Imported {
    sessions: Vec<Py<Session>>,
    format: Option<&'static str>,
    report: pactql::logs::ImportReport,
}

#[pymethods]
impl Imported {
    /// Its sessions, each with a name.
    #[getter]
    fn sessions(&self, py: Python<'_>) -> Vec<Py<Session>> {
        self.sessions
            .iter()
            .map(|session| session.clone_ref(py))
            .collect()
    }

    /// The format that was read; `None` for an empty log.
    #[getter]
    fn format(&self) -> Option<&'static str> {
        self.format
    }

    /// How much of it was understood, kept verbatim and skipped.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::report(py, &self.report.to_json())
    }

    /// The report in words.
    fn __str__(&self) -> String {
        self.report.to_string()
    }

    fn __repr__(&self) -> String {
        let format = self.format.unwrap_or("empty");
        format!(
            "<Imported {format} log of {} sessions>",
            self.sessions.len()
        )
    }
}

/// Reads a chat log: a path, or bytes. The format is found by content unless it is given.
///
/// >>> log = pactql.import_log("fixtures/chat.openai.json")
/// >>> log.format, log.sessions
/// ('openai', [<Session "chat.openai" of 5 snapshots>])
#[pyfunction]
#[pyo3(signature = (log, /, *, name = None, format = None, lenient = false, engine = None))]
pub(crate) fn import_log(
    py: Python<'_>,
    log: &Bound<'_, PyAny>,
    name: Option<&str>,
    format: Option<&str>,
    lenient: bool,
    engine: Option<&crate::engine::Engine>,
) -> PyResult<Imported> {
    let (read, _) = read(py, log, name, format, lenient)?;
    let engine = engine_or(engine);
    let sessions = read.sessions.into_iter().map(|(name, session)| {
        let session = Session::new(Arc::new(session), Arc::clone(&engine), Some(&name));
        Py::new(py, session)
    });
    Ok(Imported {
        sessions: sessions.collect::<PyResult<_>>()?,
        format: read.format,
        report: read.report,
    })
}
