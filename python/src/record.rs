//! The writing half of `pactql.recording`: calls in, sessions of a store out.
//!
//! Only the writer's thread calls it, so nothing here is fast at the cost of being clear.

use crate::errors::OrRaise;
use crate::forks::shared;
use pactql::logs::Redaction;
use pactql::logs::record::{ProviderCall, StreamedReply};
use pactql::{Provider, Store};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// A call as Python gives it: API, session, request, response, error, whether it was stopped, when it began and
/// ended, how long it took in milliseconds, the provider's id of it, patterns of the caller, whether all calls
/// of the session's name are one session, and whether the provider was called.
type Row = (
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    bool,
    (i64, i64),
    Option<u64>,
    Option<String>,
    Option<Vec<String>>,
    bool,
    bool,
);

/// The most characters of what an API says of an error that an attempt keeps.
const ERROR_CHARS: usize = 4_000;

/// Writes calls into a store.
#[pyclass(frozen, module = "pactql._pactql", name = "_Recorder")]
pub(crate) struct Recorder {
    inner: Mutex<Inner>,
}

struct Inner {
    recorder: pactql::logs::record::Recorder,
    /// Patterns that were read.
    patterns: HashMap<Option<Vec<String>>, Vec<Redaction>>,
}

#[pymethods]
impl Recorder {
    #[new]
    fn new(py: Python<'_>, url: &str) -> PyResult<Self> {
        let store = shared(py, || Store::connect(url)).or_raise(py)?;
        let inner = Inner {
            recorder: pactql::logs::record::Recorder::new(store),
            patterns: HashMap::new(),
        };
        Ok(Self {
            inner: Mutex::new(inner),
        })
    }

    /// Writes calls in one transaction. Returns for each why it was not written, or `None`.
    fn record(&self, py: Python<'_>, rows: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Option<String>>> {
        // One that cannot be read leaves the others as they are.
        let rows: Vec<Result<Row, String>> = rows
            .into_iter()
            .map(|row| row.extract().map_err(|error: PyErr| error.to_string()))
            .collect();
        let done = shared(py, || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.record(rows)
        });
        done?.or_raise(py)
    }
}

impl Inner {
    fn record(
        &mut self,
        rows: Vec<Result<Row, String>>,
    ) -> PyResult<Result<Vec<Option<String>>, pactql::Error>> {
        let mut calls = Vec::with_capacity(rows.len());
        let mut unread = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                Ok(row) => {
                    calls.push(self.call(row)?);
                    unread.push(None);
                }
                Err(why) => unread.push(Some(why)),
            }
        }
        let mut done = match self.recorder.record(&calls) {
            Ok(done) => done.into_iter(),
            Err(error) => return Ok(Err(error)),
        };
        let why = unread.into_iter().map(|unread| match unread {
            Some(why) => Some(why),
            None => done.next()?.err().map(|error| error.to_string()),
        });
        Ok(Ok(why.collect()))
    }

    fn call(&mut self, row: Row) -> PyResult<ProviderCall> {
        let (
            api,
            session,
            request,
            response,
            error,
            canceled,
            (started, ended),
            latency,
            id,
            patterns,
            together,
            made,
        ) = row;
        let mut call = ProviderCall::new(provider(&api)?, session, request);
        call.response = response;
        call.error = error;
        call.canceled = canceled;
        call.started_at_ns = started;
        call.ended_at_ns = ended;
        call.latency_ms = latency;
        call.request_id = id;
        call.together = together;
        call.made = made;
        let patterns = match self.patterns.get(&patterns) {
            Some(known) => known,
            None => {
                let read = redactions(patterns.as_deref())?;
                self.patterns.entry(patterns).or_insert(read)
            }
        };
        let mut call = call.redacted(patterns);
        // Not before: half of a key is none that a pattern knows.
        if let Some(error) = &mut call.error
            && let Some((end, _)) = error.char_indices().nth(ERROR_CHARS)
        {
            error.truncate(end);
            error.push('…');
        }
        Ok(call)
    }
}

/// The API of a name.
fn provider(api: &str) -> PyResult<Provider> {
    match api {
        "openai" => Ok(Provider::OpenAi),
        "openai-responses" => Ok(Provider::OpenAiResponses),
        "anthropic" => Ok(Provider::Anthropic),
        "gemini" => Ok(Provider::Gemini),
        "bedrock" => Ok(Provider::Bedrock),
        _ => Err(PyValueError::new_err(format!("`{api}` is not an API"))),
    }
}

/// The patterns of a recorder: the built-in ones if it has none, none if its list is empty, else both.
fn redactions(patterns: Option<&[String]>) -> PyResult<Vec<Redaction>> {
    if patterns.is_some_and(<[String]>::is_empty) {
        return Ok(Vec::new());
    }
    let mut all = Redaction::keys();
    for pattern in patterns.unwrap_or_default() {
        let read = Redaction::parse(pattern);
        all.push(read.map_err(|error| PyValueError::new_err(error.to_string()))?);
    }
    Ok(all)
}

/// Refuses a pattern that is not valid.
#[pyfunction(name = "_check_patterns")]
pub(crate) fn check_patterns(patterns: Vec<String>) -> PyResult<()> {
    redactions(Some(&patterns)).map(|_| ())
}

/// Puts server-sent events together: the response, whether it is whole, and what the API said that went wrong.
#[pyfunction(name = "_assemble")]
pub(crate) fn assemble(
    py: Python<'_>,
    api: &str,
    events: &str,
) -> PyResult<(Option<String>, bool, Option<String>)> {
    let provider = provider(api)?;
    let reply = py.detach(|| StreamedReply::from_events(provider, events));
    Ok((reply.response, reply.whole, reply.error))
}

/// Keeps a value for good: a copy of the process must not close what it has open.
#[pyfunction(name = "_leak")]
pub(crate) fn leak(value: Py<PyAny>) {
    std::mem::forget(value);
}
