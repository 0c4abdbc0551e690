//! The answers of the sessions of a store, one by one.

use crate::arrow;
use crate::errors::OrRaise;
use crate::forks::{self, Origin};
use crate::range::RangeDiff;
use crate::selection::{Inner, Selection};
use pactql::{Answer, RangeOptions, store::SessionAnswer};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use self_cell::self_cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Answers<'a> = pactql::store::StoreAnswers<'a>;

self_cell!(
    /// The answers, and the store that they are read from.
    struct Asked {
        owner: Arc<pactql::Store>,
        #[not_covariant]
        dependent: Answers,
    }
);

/// The answers that are left, for several threads.
pub(crate) struct Left {
    /// Waited for without the interpreter lock only.
    asked: Mutex<Asked>,
    engine: Arc<pactql::Engine>,
}

impl Left {
    /// The next answer. Called without the interpreter lock.
    ///
    /// # Errors
    /// A session that cannot be read.
    pub(crate) fn next(&self) -> Option<Result<SessionAnswer, pactql::Error>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = &mut *asked;
        forks::with_threads(|| asked.with_dependent_mut(|_, answers| answers.next()))
    }

    /// A selection of a session, for its table.
    pub(crate) fn selection(&self, rows: pactql::Selection, name: &str) -> Selection {
        Selection::new(rows, Arc::clone(&self.engine), Some(name.into()))
    }

    /// As [`Left::selection`], without a class.
    pub(crate) fn inner(&self, rows: pactql::Selection, name: &str) -> Arc<Inner> {
        Arc::clone(self.selection(rows, name).inner())
    }
}

/// The answers of the sessions of a store: an iterator over names and selections, or names and diffs.
///
/// Each `for` and each data frame that reads it asks the store from the first session on; `next` goes on with this one.
#[pyclass(frozen, module = "pactql")]
pub(crate) struct StoreAnswers {
    left: Arc<Left>,
    question: Question,
    /// Whether anybody has read of it.
    is_read: AtomicBool,
    /// Whether it is what one `for` reads, and not what the store was asked.
    is_iterator: bool,
    candidates: usize,
    origin: Origin,
}

/// What the sessions of a store are asked.
#[derive(Clone)]
struct Question {
    store: Arc<pactql::Store>,
    glob: String,
    prepared: pactql::Prepared,
    /// Of a question for diffs.
    options: Option<RangeOptions>,
}

impl Drop for StoreAnswers {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // The connection is the parent's.
            std::mem::forget(Arc::clone(&self.left));
            std::mem::forget(Arc::clone(&self.question.store));
        }
    }
}

impl StoreAnswers {
    /// Asks the sessions whose name matches a pattern: for what changed, if there are options for that.
    ///
    /// # Errors
    /// Those of the selector, a selector of the other kind, and those of the database.
    pub(crate) fn new(
        py: Python<'_>,
        store: Arc<pactql::Store>,
        glob: &str,
        prepared: pactql::Prepared,
        options: Option<RangeOptions>,
    ) -> PyResult<Self> {
        Self::of(
            py,
            Question {
                store,
                glob: glob.to_owned(),
                prepared,
                options,
            },
        )
    }

    /// All answers: those of this object if nobody has read of them, or of asking once more.
    fn unread(&self, py: Python<'_>) -> PyResult<Arc<Left>> {
        if self.is_iterator || !self.is_read.swap(true, Ordering::Relaxed) {
            return Ok(Arc::clone(&self.left));
        }
        Ok(Arc::clone(&Self::of(py, self.question.clone())?.left))
    }

    fn of(py: Python<'_>, question: Question) -> PyResult<Self> {
        let Question {
            store,
            glob,
            prepared,
            options,
        } = question.clone();
        let changes = options.is_some();
        let options = options.unwrap_or_default();
        let engine = Arc::clone(store.engine());
        let asked = forks::shared(py, || {
            // Over a session without snapshots both kinds say whether the selector is theirs.
            let nothing = pactql::History::default();
            let refused = if changes {
                prepared.range_in(&nothing, &options).err()
            } else {
                prepared.rows_in(&Arc::new(nothing)).err()
            };
            if let Some(error) =
                refused.filter(|error| error.code() == pactql::Code::SelectorInvalid)
            {
                return Err(error);
            }
            Asked::try_new(store, |store| {
                let asked = store.select_prepared(&prepared).sessions(&glob);
                asked.options(options).answers()
            })
        });
        let asked = asked.or_raise(py)?;
        let candidates = asked.with_dependent(|_, answers| answers.candidates());
        Ok(Self {
            left: Arc::new(Left {
                asked: Mutex::new(asked),
                engine,
            }),
            question,
            is_read: AtomicBool::new(false),
            is_iterator: false,
            candidates,
            origin: Origin::here(),
        })
    }
}

#[pymethods]
impl StoreAnswers {
    /// How many sessions can match at all, as the store said before any was opened.
    #[getter]
    fn candidates(&self) -> usize {
        self.candidates
    }

    /// Warnings about the selector.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let warnings = self.question.prepared.warnings().iter();
        warnings.map(ToString::to_string).collect()
    }

    /// Why no session has anything, in words; empty if one has.
    fn why_empty(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.origin.check(py)?;
        let question = &self.question;
        let left = Arc::clone(&Self::of(py, question.clone())?.left);
        let why = forks::shared(py, || match left.next() {
            Some(found) => found.map(|_| Vec::new()),
            None => {
                let asked = question.store.select_prepared(&question.prepared);
                asked.sessions(&question.glob).why_empty()
            }
        });
        why.or_raise(py)
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let (py, this) = (slf.py(), slf.get());
        if this.is_iterator {
            return Ok(slf.clone().unbind());
        }
        this.origin.check(py)?;
        let answers = Self {
            left: this.unread(py)?,
            question: this.question.clone(),
            is_read: AtomicBool::new(true),
            is_iterator: true,
            candidates: this.candidates,
            origin: this.origin,
        };
        Py::new(py, answers)
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(String, Bound<'py, PyAny>)>> {
        self.origin.check(py)?;
        self.is_read.store(true, Ordering::Relaxed);
        let Some(answer) = py.detach(|| self.left.next()) else {
            return Ok(None);
        };
        let SessionAnswer {
            session, answer, ..
        } = answer.or_raise(py)?;
        let answer = match answer {
            Answer::Rows(rows) => self.left.selection(rows, &session).into_bound_py_any(py)?,
            Answer::Range(diff) => {
                RangeDiff::new(diff, Some(session.as_str().into())).into_bound_py_any(py)?
            }
        };
        Ok(Some((session, answer)))
    }

    /// The Arrow C stream of all answers, a batch for each session.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        self.origin.check(py)?;
        let batches = arrow::Batches::of_store(self.unread(py)?, self.question.options.is_some());
        arrow::stream(py, batches)
    }

    fn __repr__(&self) -> String {
        format!("<StoreAnswers of at most {} sessions>", self.candidates)
    }
}
