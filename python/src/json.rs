//! JSON between Python and the library.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString};
use serde::Serialize;
use serde_json::Value;

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
pub(crate) fn report<'py>(py: Python<'py>, report: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(report);
    let text = text.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    loads(py, &text)
}

/// A JSON value of the library, of at most 127 levels.
///
/// # Errors
/// Those of Python.
pub(crate) fn value<'py>(py: Python<'py>, json: &Value) -> PyResult<Bound<'py, PyAny>> {
    match json {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (_, Some(number)) => number.into_bound_py_any(py),
            _ => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(value(py, item)?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (name, member) in members {
                dict.set_item(name, value(py, member)?)?;
            }
            Ok(dict.into_any())
        }
    }
}
