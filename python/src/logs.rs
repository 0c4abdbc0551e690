//! Chat logs: the messages of other programs as sessions.

use crate::errors::{OrRaise, Raise, of_system, plain};
use crate::forks;
use crate::json;
use crate::session::{Session, engine_or};
use crate::values::{Source, by_name};
use pactql::logs::{Format, ImportOptions, Imported as Log, ImportedSession, session_names, stem};
use pactql::opened;
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

/// A file or bytes, unpacked, and what its sessions are named after.
pub(crate) struct Input {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stem: String,
    /// The path.
    pub(crate) source: Option<String>,
}

/// Reads a path, or takes bytes. A name is in the place of that of the file.
///
/// # Errors
/// The file cannot be read, or is packed and damaged.
pub(crate) fn input(py: Python<'_>, log: &Bound<'_, PyAny>, name: Option<&str>) -> PyResult<Input> {
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
    let place = path.as_deref().unwrap_or(Path::new("the log"));
    let bytes = py.detach(|| opened::unpacked(&bytes, place)).or_raise(py)?;
    Ok(Input {
        bytes,
        stem: name.unwrap_or(of_file).to_owned(),
        source: path.as_deref().map(|path| path.display().to_string()),
    })
}

/// Reads a log.
///
/// # Errors
/// Those of [`pactql::logs::import()`].
pub(crate) fn read(
    py: Python<'_>,
    input: &Input,
    format: Option<&str>,
    lenient: bool,
) -> PyResult<Read> {
    let named = |word| by_name("format of logs", word, &Format::ALL, Format::name);
    let options = ImportOptions {
        format: format.map(named).transpose()?,
        lenient,
        ..ImportOptions::default()
    };
    let read = forks::shared(py, || {
        let Log {
            sessions,
            report,
            format,
        } = pactql::logs::import(&input.bytes, &options)?;
        let names = session_names(&input.stem, &sessions);
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
    read.or_raise(py)
}

/// The logs that agents keep on this machine, the one written last first.
#[pyfunction(name = "_logs_by_time")]
pub(crate) fn logs_by_time(py: Python<'_>) -> PyResult<Vec<String>> {
    py.detach(opened::logs_by_time).or_raise(py)
}

/// Sessions, each with whether it is a branch or a subagent of another one; notes on what was left out; and the names
/// of damaged sessions, each with its exception.
type Opened = (
    Vec<(Py<Session>, bool)>,
    Vec<String>,
    Vec<(String, Py<PyAny>)>,
);

/// The sessions of a file or a folder that is no store.
#[pyfunction(name = "_open_path")]
#[pyo3(signature = (path, /))]
pub(crate) fn open_path(py: Python<'_>, path: PathBuf) -> PyResult<Opened> {
    let found = forks::shared(py, || opened::open_path(&path));
    let (sessions, notes) = found.or_raise(py)?;
    let engine = engine_or(None);
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    for opened in sessions {
        match opened.session {
            Ok(session) => {
                let session = Session::new(session, Arc::clone(&engine), opened.name.as_deref());
                found.push((Py::new(py, session)?, opened.belongs));
            }
            Err(why) => {
                let error = why.raise(py).into_value(py).into_any();
                damaged.push((opened.name.unwrap_or_default(), error));
            }
        }
    }
    Ok((found, notes, damaged))
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

/// Reads a chat log: a path, or bytes, also packed by gzip or Zstandard. The format is found by content unless it is given.
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
    let read = read(py, &input(py, log, name)?, format, lenient)?;
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
