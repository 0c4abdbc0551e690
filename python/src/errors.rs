//! Errors of the library as exceptions. The classes are in `pactql._errors`; here they get their values.

use pactql::budget::CacheError;
use pactql::logs::LogError;
use pactql::opened::NotOpened;
use pactql::{
    ColorChoice,
    error::{Diagnostic, InputError, LoadError, SourceError},
    render::RenderError,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use std::ffi::CString;
use std::path::PathBuf;

/// An error that can be raised.
pub(crate) trait Raise {
    /// The exception.
    fn raise(self, py: Python<'_>) -> PyErr;
}

/// A result that Python can have.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    ///
    /// # Errors
    /// Those of the library.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Raise> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| error.raise(py))
    }
}

/// The exception for a code and its attributes.
fn exception(py: Python<'_>, code: &str, attributes: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let make = py.import("pactql._errors")?.getattr("make")?;
    Ok(PyErr::from_value(make.call1((code, attributes))?))
}

/// The exception of a code, a message and advice.
pub(crate) fn plain(py: Python<'_>, code: &str, message: &str, help: Option<&str>) -> PyErr {
    let attributes = PyDict::new(py);
    let filled = attributes
        .set_item("message", message)
        .and_then(|()| attributes.set_item("help", help))
        .and_then(|()| exception(py, code, &attributes));
    filled.unwrap_or_else(|failed| failed)
}

/// The class of a warning.
#[derive(Clone, Copy)]
pub(crate) enum Warned {
    Selector,
    Unsaved,
}

impl Warned {
    /// The class. Kept once it was found: at the end of the interpreter nothing is imported.
    ///
    /// # Errors
    /// None that a whole package has.
    pub(crate) fn class(self, py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
        static SELECTOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static UNSAVED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (kept, name) = match self {
            Self::Selector => (&SELECTOR, "SelectorWarning"),
            Self::Unsaved => (&UNSAVED, "UnsavedWarning"),
        };
        kept.import(py, "pactql._errors", name)
    }
}

/// Warns where Python called.
///
/// # Errors
/// The warning is an error there.
pub(crate) fn warn(py: Python<'_>, class: Warned, message: &str) -> PyResult<()> {
    let message = CString::new(message.replace('\0', "\u{fffd}"))?;
    PyErr::warn(py, class.class(py)?, &message, 1)
}

impl Raise for pactql::Error {
    fn raise(self, py: Python<'_>) -> PyErr {
        with_diagnostics(py, &self).unwrap_or_else(|failed| failed)
    }
}

/// The beginning of advice that names a method, and with its name in Python.
const ROWS: [&str; 2] = ["`rows` returns the nodes", "`select` returns the nodes"];

fn with_diagnostics(py: Python<'_>, error: &pactql::Error) -> PyResult<PyErr> {
    let text = error.text();
    let attributes = diagnostic(py, text, error.first())?;
    attributes.set_item("text", text)?;
    let picture = error.to_text(ColorChoice::Never);
    let [ours, pythons] = ROWS.map(|help| format!("= help: {help}"));
    attributes.set_item("picture", picture.replace(&ours, &pythons))?;
    let more = PyList::empty(py);
    for next in error.diagnostics().skip(1) {
        let next_attributes = diagnostic(py, text, next)?;
        next_attributes.set_item("text", text)?;
        let code = next.code.unwrap_or_else(|| error.code()).as_str();
        more.append(exception(py, code, &next_attributes)?.into_value(py))?;
    }
    attributes.set_item("more", more)?;
    exception(py, error.code().as_str(), &attributes)
}

/// What the classes take of a diagnostic. Places are counted in characters, as Python does.
fn diagnostic<'py>(
    py: Python<'py>,
    text: &str,
    found: &Diagnostic,
) -> PyResult<Bound<'py, PyDict>> {
    let attributes = PyDict::new(py);
    let spans = PyList::empty(py);
    for label in &found.labels {
        let (start, end) = (
            character(text, label.span.start),
            character(text, label.span.end),
        );
        spans.append((start, end, &label.message))?;
    }
    attributes.set_item("message", &found.message)?;
    attributes.set_item("spans", spans)?;
    let help = found.help.as_deref();
    attributes.set_item("help", help.map(|help| help.replace(ROWS[0], ROWS[1])))?;
    attributes.set_item("correction", found.correction())?;
    Ok(attributes)
}

/// How many characters there are before a byte.
fn character(text: &str, byte: usize) -> usize {
    let before = text.char_indices().take_while(|(at, _)| *at < byte);
    before.count()
}

/// A fault of an input: its file, if it is one of several, and the fault.
type Located<'a> = (Option<String>, &'a pactql::error::InputFault);

fn input<'a>(
    py: Python<'_>,
    message: &str,
    help: Option<&str>,
    faults: impl Iterator<Item = Located<'a>>,
) -> PyResult<PyErr> {
    let found = PyList::empty(py);
    for (file, fault) in faults {
        let file = file.or_else(|| Some(fault.file.as_ref()?.display().to_string()));
        let each = PyDict::new(py);
        each.set_item("file", file)?;
        each.set_item("path", &fault.path)?;
        each.set_item("message", &fault.message)?;
        each.set_item("offset", fault.offset)?;
        each.set_item("line", fault.line)?;
        each.set_item("column", fault.column)?;
        found.append(each)?;
    }
    let attributes = PyDict::new(py);
    attributes.set_item("message", message)?;
    attributes.set_item("help", help)?;
    attributes.set_item("faults", found)?;
    exception(py, InputError::CODE, &attributes)
}

impl Raise for InputError {
    fn raise(self, py: Python<'_>) -> PyErr {
        let faults = self.faults.iter().map(|fault| (None, fault));
        input(py, &self.to_string(), None, faults).unwrap_or_else(|failed| failed)
    }
}

impl Raise for SourceError {
    fn raise(self, py: Python<'_>) -> PyErr {
        let message = self.to_string();
        match self {
            Self::Invalid(files) => {
                input(py, &message, None, faults_of(&files)).unwrap_or_else(|failed| failed)
            }
            Self::Missing(_) => plain(py, "E_MISSING", &message, None),
            Self::Io(_, error) => of_system(py, &message, &error),
            _ => plain(py, InputError::CODE, &message, None),
        }
    }
}

impl Raise for NotOpened {
    fn raise(self, py: Python<'_>) -> PyErr {
        let help = self.help.as_deref();
        if self.files.is_empty() {
            return plain(py, self.code, &self.message, help);
        }
        input(py, &self.message, help, faults_of(&self.files)).unwrap_or_else(|failed| failed)
    }
}

/// The faults of each file.
fn faults_of(files: &[(PathBuf, InputError)]) -> impl Iterator<Item = Located<'_>> {
    files.iter().flat_map(|(path, error)| {
        let file = path.display().to_string();
        let faults = error.faults.iter();
        faults.map(move |fault| (Some(file.clone()), fault))
    })
}

impl Raise for LoadError {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Source(error) => error.raise(py),
            Self::Input(error) => error.raise(py),
            other => plain(py, InputError::CODE, &other.to_string(), None),
        }
    }
}

impl Raise for LogError {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Input(error) => error.raise(py),
            Self::Io(error) | Self::Spool(error) => of_system(py, &error.to_string(), &error),
            other => plain(py, InputError::CODE, &other.to_string(), None),
        }
    }
}

impl Raise for RenderError {
    fn raise(self, py: Python<'_>) -> PyErr {
        plain(py, Self::CODE, &self.to_string(), self.help())
    }
}

impl Raise for CacheError {
    fn raise(self, py: Python<'_>) -> PyErr {
        let mut message = self.to_string();
        for fault in self.faults() {
            message.push_str(&format!("\n{fault}"));
        }
        match self {
            Self::Missing(_) => plain(py, "E_MISSING", &message, None),
            Self::Cancelled(_) => plain(py, pactql::Code::Cancelled.as_str(), &message, None),
            Self::Io(_, error) => of_system(py, &message, &error),
            _ => plain(py, "E_CACHE", &message, None),
        }
    }
}

/// An error of the operating system: `OSError`, of the class that its number has.
pub(crate) fn of_system(py: Python<'_>, message: &str, error: &std::io::Error) -> PyErr {
    let class = py.get_type::<pyo3::exceptions::PyOSError>();
    let made = match error.raw_os_error() {
        Some(number) => class.call1((number, message)),
        None => class.call1((message,)),
    };
    made.and_then(|made| made.into_bound_py_any(py))
        .map_or_else(|failed| failed, PyErr::from_value)
}
