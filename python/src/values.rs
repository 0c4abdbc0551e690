//! Arguments: the values of parameters, names of choices, and options of ranges.

use pactql::{
    Edition, Prepared, Provider, RangeOptions, Value,
    history::{ContentMode, ContentOptions, Material},
};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString,
    PyTuple,
};
use std::path::PathBuf;
use std::time::Duration;

use crate::errors::OrRaise;

/// The value of a parameter.
///
/// # Errors
/// A value that no literal of a selector has.
fn parameter(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    // Before numbers: a truth value is one of Python's.
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().into());
    }
    if let Ok(number) = value.cast::<PyInt>() {
        let number = number.extract::<i64>();
        return number
            .map(Value::Int)
            .map_err(|_| PyOverflowError::new_err("an integer of a selector has at most 64 bits"));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = number.value();
        return if number.is_finite() {
            Ok(Value::Decimal(number))
        } else {
            Err(PyValueError::new_err(format!(
                "{number} is not a number of a selector"
            )))
        };
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::Text(text.to_str()?.into()));
    }
    if is_list(value) {
        let items = value.try_iter()?.map(|item| {
            let item = item?;
            // A list inside a list is no value, however deep; one may hold itself.
            if is_list(&item) {
                Err(PyTypeError::new_err(
                    "a list of a parameter has no lists in it",
                ))
            } else {
                parameter(&item)
            }
        });
        return Ok(Value::List(items.collect::<PyResult<_>>()?));
    }
    let times = value.py().import("pactql._times")?;
    let nanoseconds = times.call_method1("nanoseconds", (value,))?;
    if !nanoseconds.is_none() {
        return parameter(&nanoseconds);
    }
    let class = value.get_type();
    Err(PyTypeError::new_err(format!(
        "a parameter is None, a bool, an int, a float, a str, a datetime, a timedelta, or a list or set of those, \
         and not {}",
        class.name()?
    )))
}

fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
}

/// Named values, of a mapping and of keywords.
///
/// # Errors
/// A name that is no text, or that both have; values as in [`parameter`].
fn named(
    mapping: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<(String, Value)>> {
    let mut found: Vec<(String, Value)> = Vec::new();
    if let Some(mapping) = mapping {
        let Ok(items) = mapping.getattr("items") else {
            let class = mapping.get_type();
            let message = format!("`params` is a mapping, and not {}", class.name()?);
            return Err(PyTypeError::new_err(message));
        };
        for item in items.call0()?.try_iter()? {
            let (name, value): (String, Bound<'_, PyAny>) = item?.extract()?;
            found.push((name, parameter(&value)?));
        }
    }
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        if found.iter().any(|(known, _)| *known == name) {
            return Err(PyTypeError::new_err(format!(
                "`{name}` is given twice, in `params` and as a keyword"
            )));
        }
        found.push((name, parameter(&value)?));
    }
    Ok(found)
}

/// The selector with its values; one without parameters is taken as it is.
///
/// # Errors
/// Those of [`Prepared::bind`].
fn bound(prepared: Prepared, values: Vec<(String, Value)>) -> Result<Prepared, pactql::Error> {
    if values.is_empty() {
        // Parameters without values are refused when it runs, with their places.
        return Ok(prepared);
    }
    let values = values.iter();
    prepared.bind(values.map(|(name, value)| (name.as_str(), value.clone())))
}

/// An edition by name.
///
/// # Errors
/// Another word.
pub(crate) fn edition(word: &str) -> PyResult<Edition> {
    by_name("edition", word, &Edition::ALL, Edition::as_str)
}

/// A provider's form by name.
///
/// # Errors
/// Another word.
pub(crate) fn provider(word: &str) -> PyResult<Provider> {
    by_name("provider", word, &Provider::ALL, Provider::name)
}

/// The value of a type that has this name.
///
/// # Errors
/// Another word; the message has the names of all values.
pub(crate) fn by_name<T: Copy>(
    what: &str,
    word: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> PyResult<T> {
    let found = all.iter().copied().find(|known| name(*known) == word);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|known| name(*known)).collect();
        let names = names.join("`, `");
        PyValueError::new_err(format!(
            "unknown {what} `{word}`: expected one of `{names}`"
        ))
    })
}

/// A selector with the values of its parameters, which `select` and the like take in `params` and as keywords.
///
/// # Errors
/// Those of the selector and of the values.
pub(crate) fn prepared(
    py: Python<'_>,
    engine: &pactql::Engine,
    selector: &str,
    params: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Prepared> {
    let values = named(params, keywords)?;
    let prepared = py.detach(|| bound(engine.prepare(selector)?, values));
    prepared.or_raise(py)
}

/// As [`prepared`], of a selector that is compiled already.
///
/// # Errors
/// Those of the values.
pub(crate) fn bound_to(
    py: Python<'_>,
    prepared: &Prepared,
    params: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Prepared> {
    let values = named(params, keywords)?;
    let prepared = prepared.clone();
    py.detach(|| bound(prepared, values)).or_raise(py)
}

/// Takes the options of `range` from its keywords. What is left are values of parameters.
///
/// # Errors
/// An option of another type, or a word that names nothing.
pub(crate) fn range_options(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<RangeOptions> {
    let mut options = RangeOptions::default();
    if let Some(stats) = taken::<bool>(keywords, "stats")? {
        options = options.stats(stats);
    }
    let lines = taken::<usize>(keywords, "context_lines")?.unwrap_or(CONTEXT_LINES);
    if let Some(word) = taken::<Option<String>>(keywords, "content")?.flatten() {
        let all = &ContentMode::ALL;
        let mode = by_name("form of a content diff", &word, all, ContentMode::name)?;
        options = options.content(ContentOptions::default().mode(mode).context_lines(lines));
    }
    let mut fields = Vec::new();
    for word in taken::<Vec<String>>(keywords, "materialize")?.unwrap_or_default() {
        let all = &Material::ALL;
        fields.push(by_name("field to materialize", &word, all, Material::name)?);
    }
    options = options.materialize(fields);
    if let Some(most) = taken::<Option<usize>>(keywords, "max_snapshots")?.flatten() {
        options = options.max_snapshots(most);
    }
    if let Some(most) = taken::<Option<usize>>(keywords, "max_changes")?.flatten() {
        options = options.max_changes(most);
    }
    Ok(options)
}

/// How many unchanged lines are beside the changed ones of a text, unless another number is given.
const CONTEXT_LINES: usize = 3;

/// Takes a keyword.
///
/// # Errors
/// A value of another type.
fn taken<'py, T>(keywords: Option<&Bound<'py, PyDict>>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    let Some(keywords) = keywords else {
        return Ok(None);
    };
    let Some(value) = keywords.get_item(name)? else {
        return Ok(None);
    };
    keywords.del_item(name)?;
    let value = value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        if error.is_instance_of::<PyTypeError>(keywords.py()) {
            PyTypeError::new_err(format!("argument '{name}': {}", error.value(keywords.py())))
        } else {
            error
        }
    });
    value.map(Some)
}

/// A name that something is indexed by.
///
/// # Errors
/// Another value; `what` says what is expected.
pub(crate) fn name_of(what: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(name) => Ok(name.to_str()?.to_owned()),
        Err(_) => {
            let class = value.get_type();
            let message = format!("{what}, and not by {}", class.name()?);
            Err(PyTypeError::new_err(message))
        }
    }
}

/// A text.
///
/// # Errors
/// Another value; `what` says what is expected.
fn text(what: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = value.get_type();
    let class = class.name()?;
    let found = value.extract::<String>();
    found.map_err(|_| PyTypeError::new_err(format!("{what}, and not {class}")))
}

/// The address of a snapshot.
pub(crate) struct Address(pub(crate) String);

impl<'py> FromPyObject<'_, 'py> for Address {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        text("an address is a text such as '@c3'", &value).map(Self)
    }
}

/// The role of a message.
pub(crate) struct Role(pub(crate) String);

impl<'py> FromPyObject<'_, 'py> for Role {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        text(
            "a message is its role and its text, `append('user', 'Hello')`",
            &value,
        )
        .map(Self)
    }
}

/// A list of texts. A text is none, although it has characters.
pub(crate) struct Texts(pub(crate) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Texts {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(Self).map_err(|error: PyErr| {
            let found = value
                .repr()
                .map_or_else(|_| "a value".to_owned(), |it| it.to_string());
            match value.cast::<PyString>() {
                Ok(_) => PyTypeError::new_err(format!(
                    "expected a list of texts, and found one: write [{found}]"
                )),
                Err(_) => error,
            }
        })
    }
}

/// A duration in seconds.
///
/// # Errors
/// A number that no duration has.
pub(crate) fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        PyValueError::new_err(format!(
            "`{name}` is a number of seconds, 0 or more and finite, and not {value}"
        ))
    })
}

/// What is read: a path, or bytes.
pub(crate) enum Source {
    Path(PathBuf),
    Bytes(Vec<u8>),
}

impl Source {
    /// The bytes of a text or of anything that is like bytes; else a path.
    ///
    /// # Errors
    /// None of those.
    pub(crate) fn path_or_bytes(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        match value.extract::<PathBuf>() {
            Ok(path) => Ok(Self::Path(path)),
            Err(_) => Self::bytes(value).map(Self::Bytes),
        }
    }

    /// The bytes of a text, or of anything that is like bytes.
    ///
    /// # Errors
    /// Neither.
    pub(crate) fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(text.to_str()?.as_bytes().to_vec());
        }
        let py = value.py();
        let class = py.get_type::<PyBytes>();
        let view = py.import("builtins")?.getattr("memoryview")?;
        let is_like = value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>();
        if !is_like && !value.is_instance(&view)? {
            let name = value.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!(
                "expected str or bytes, not {name}"
            )));
        }
        let bytes = class.call1((value,))?;
        Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
    }
}
