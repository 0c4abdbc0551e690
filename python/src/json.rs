//! JSON between Python and the library.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A dictionary of these members.
macro_rules! dict {
    ($py:expr, $($name:literal: $value:expr),+ $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item($name, $value)?;)+
        dict
    }};
}

pub(crate) use dict;

/// What Python makes of a JSON text: members keep their order, and integers all their digits.
///
/// # Errors
/// The text is none, or nests deeper than Python reads.
pub(crate) fn loads<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "json", "loads")?.call1((text,))
}

/// The JSON text of a Python value. A text is taken as JSON that was written already.
///
/// # Errors
/// The value has no form in JSON, or a number that is none there.
pub(crate) fn dumps(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    dumps_value(value)
}

/// The JSON text of a Python value, in which a text is a text.
///
/// # Errors
/// As [`dumps`].
pub(crate) fn dumps_value(value: &Bound<'_, PyAny>) -> PyResult<String> {
    static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    options.set_item("allow_nan", false)?;
    options.set_item("separators", (",", ":"))?;
    let dumps = DUMPS.import(py, "json", "dumps")?;
    dumps.call((value,), Some(&options))?.extract()
}

/// A report of the library as dictionaries and lists, in the order of its members.
///
/// # Errors
/// None that a report can cause.
pub(crate) fn report<'py>(
    py: Python<'py>,
    report: &(impl Serialize + Sync),
) -> PyResult<Bound<'py, PyAny>> {
    loads(py, &text(py, report)?)
}

/// The JSON text of a value of the library.
///
/// # Errors
/// None that such a value can cause.
pub(crate) fn text(py: Python<'_>, value: &(impl Serialize + Sync)) -> PyResult<String> {
    let text = py.detach(|| serde_json::to_string(value));
    text.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The value of the library that a JSON text is of.
///
/// # Errors
/// The text is not that of such a value.
pub(crate) fn parse<T: DeserializeOwned + Send>(py: Python<'_>, text: &str) -> PyResult<T> {
    let value = py.detach(|| serde_json::from_str(text));
    value.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// What Python makes of the JSON text of one value, as `json.loads` does: an integer has all its digits, another
/// number is a float.
///
/// # Errors
/// Those of [`loads`].
pub(crate) fn value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    match text {
        "null" => return Ok(py.None().into_bound(py)),
        "true" => return true.into_bound_py_any(py),
        "false" => return false.into_bound_py_any(py),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return number.into_bound_py_any(py);
    }
    // A text without escapes is the text between its quotes.
    let plain = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match plain.filter(|plain| !plain.contains('\\')) {
        Some(plain) => plain.into_bound_py_any(py),
        None => loads(py, text),
    }
}
