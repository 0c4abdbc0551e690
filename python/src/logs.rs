//! Chat logs: the messages of other programs as sessions.

use crate::errors::{OrRaise, of_system, plain};
use crate::forks;
use crate::json;
use crate::session::{Session, engine_or};
use crate::values::{Source, by_name};
use pactql::interop::{Format, ImportOptions, Imported as Log, ImportedSession};
use pyo3::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// What was read of a log.
pub(crate) struct Read {
    /// Each session with its name.
    pub(crate) sessions: Vec<(String, pactql::Session)>,
    format: Option<&'static str>,
    report: pactql::interop::Report,
}

/// Reads a log from a path, or from bytes. Also returns the path.
///
/// # Errors
/// The file cannot be read; those of [`pactql::interop::import()`].
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
    let stem = name
        .map(str::to_owned)
        .or_else(|| path.as_deref().map(stem));
    let stem = stem.unwrap_or_else(|| "session".to_owned());
    let source = path.map(|path| path.display().to_string());
    let read = forks::shared(py, || {
        let Log {
            sessions,
            report,
            format,
        } = pactql::interop::import(&bytes, &options)?;
        let names = names(&sessions, &stem);
        let mut read = Vec::with_capacity(sessions.len());
        for (session, name) in sessions.iter().zip(names) {
            let mut lines = Vec::new();
            session
                .recording
                .write_jsonl(&mut lines, false)
                .map_err(pactql::interop::LogError::Io)?;
            read.push((name, pactql::Session::from_slice(&lines)?));
        }
        Ok::<_, pactql::interop::LogError>(Read {
            sessions: read,
            format: format.map(Format::name),
            report,
        })
    });
    Ok((read.or_raise(py)?, source))
}

/// The name of a file without its endings.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let endings = [".jsonl", ".ndjson", ".json", ".traj", ".db"];
    let short = endings.iter().find_map(|ending| name.strip_suffix(ending));
    match short.unwrap_or(name) {
        "" => "session".to_owned(),
        short => short.to_owned(),
    }
}

/// A name for each session: that of the log, with a number where there are several. A branch or a subagent is named
/// after the session it belongs to, which comes before it.
fn names(sessions: &[ImportedSession], stem: &str) -> Vec<String> {
    let part = |session: &ImportedSession| {
        let name = session.name.clone();
        name.filter(|name| name.starts_with(['~', '/']))
    };
    let whole = sessions
        .iter()
        .filter(|session| part(session).is_none())
        .count();
    let digits = sessions.len().to_string().len();
    let mut owner = stem.to_owned();
    let mut names: Vec<String> = Vec::with_capacity(sessions.len());
    for (at, session) in sessions.iter().enumerate() {
        let name = match part(session) {
            Some(part) => format!("{owner}{part}"),
            None if whole <= 1 => stem.to_owned(),
            None => format!("{stem}-{:0digits$}", at + 1),
        };
        if part(session).is_none() {
            owner.clone_from(&name);
        }
        let taken = |name: &str| names.iter().any(|known| known == name);
        let again = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone())
            .chain(again)
            .find(|name| !taken(name));
        names.push(free.unwrap_or(name));
    }
    names
}

/// A log that was read.
#[pyclass(frozen, module = "pactql")]
pub(crate) struct Imported {
    sessions: Vec<Py<Session>>,
    format: Option<&'static str>,
    report: pactql::interop::Report,
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
        json::value(py, &self.report.to_json())
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
