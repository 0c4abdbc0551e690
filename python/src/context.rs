//! `Context`: one session being written.

use crate::engine::SHARED;
use crate::errors::{OrRaise, Raise, Warned, plain, warn};
use crate::forks::{self, Origin};
use crate::json::{self, dict};
use crate::selection::Selection;
use crate::session::Session;
use crate::values::{Role, Texts, prepared};
use pactql::{Code, ContextBuilder, Message, NewNode, Policy};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// One session being written: its working state, and the commits it makes.
///
/// >>> context = pactql.Context()
/// >>> ids = context.append("user", "Where is my refund?")
/// >>> request = context.render("openai")        # send `request.body`
/// >>> ids = context.reply("On its way.")
/// >>> context.commit()["cycle"]
/// 1
/// >>> context.select("@t0 ^seq .cb").texts()
/// ['Where is my refund?', 'On its way.']
#[pyclass(frozen, module = "pactql", weakref)]
pub(crate) struct Context {
    /// `None` when it is closed. Waited for without the interpreter lock only.
    context: Mutex<Option<pactql::Context>>,
    /// Runs its selectors.
    engine: Arc<pactql::Engine>,
    name: Option<Arc<str>>,
    /// Where the store was opened that it writes to.
    origin: Option<Origin>,
    /// What was saved last.
    saved: Mutex<Option<Arc<pactql::History>>>,
}

impl Drop for Context {
    fn drop(&mut self) {
        let context = self.context.get_mut();
        let context = context.unwrap_or_else(PoisonError::into_inner).take();
        if self.origin.is_some_and(|origin| !origin.is_here()) {
            // The connection is the parent's.
            std::mem::forget(context);
            return;
        }
        let saved = self.saved.get_mut();
        let saved = saved.unwrap_or_else(PoisonError::into_inner).take();
        let lost = context.and_then(|mut context| {
            let name = self.name.as_deref()?;
            forks::with_threads(|| lost(name, &mut context, saved.as_ref()))
        });
        // It is over at the end of the interpreter, and an exception on its way is what matters.
        let Some(lost) = lost else { return };
        Python::try_attach(|py| {
            if !PyErr::occurred(py)
                && let Err(error) = warn(py, Warned::Unsaved, &lost)
            {
                error.write_unraisable(py, None);
            }
        });
    }
}

/// How many ids such a warning lists.
const SHOWN: usize = 5;

/// What is lost with a context that writes a session of a store, in words; `saved` is what was saved last.
fn lost(
    name: &str,
    context: &mut pactql::Context,
    saved: Option<&Arc<pactql::History>>,
) -> Option<String> {
    let is_saved = saved.is_some_and(|saved| Arc::ptr_eq(saved, &context.history()));
    if !context.is_changed() || is_saved {
        return None;
    }
    // There may be no snapshot yet.
    let kept = context.select("@t0 .cb");
    let kept = kept
        .as_ref()
        .map_or_else(|_| Vec::new(), |kept| kept.to_ids());
    let kept: HashSet<&str> = kept.into_iter().collect();
    let written = context.select(".cb");
    let written = written
        .as_ref()
        .map_or_else(|_| Vec::new(), |found| found.to_ids());
    let new: Vec<&str> = written
        .into_iter()
        .filter(|id| !kept.contains(id))
        .collect();
    let what = match new.len() {
        0 => "its changes".to_owned(),
        count => {
            let shown = new[..count.min(SHOWN)].join(", ");
            let more = if count > SHOWN { ", …" } else { "" };
            let blocks = if count == 1 { "block" } else { "blocks" };
            format!("{count} {blocks} ({shown}{more})")
        }
    };
    Some(format!(
        "the session '{name}' was left without `commit()`, which loses {what} of cycle {}; `save()` keeps a state to go on \
         with, and `discard()` drops one without this warning",
        context.cycle()
    ))
}

/// Why a call of a context failed.
enum Failure {
    Closed,
    Refused(pactql::Error),
}

impl From<pactql::Error> for Failure {
    fn from(error: pactql::Error) -> Self {
        Self::Refused(error)
    }
}

impl Raise for Failure {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Closed => plain(py, Code::Store.as_str(), "the context is closed", None),
            Self::Refused(error) => error.raise(py),
        }
    }
}

impl Context {
    pub(crate) fn of(
        context: pactql::Context,
        engine: Arc<pactql::Engine>,
        name: Option<&str>,
    ) -> Self {
        Self {
            // What it goes on with is kept already.
            saved: Mutex::new(name.map(|_| context.history())),
            context: Mutex::new(Some(context)),
            engine,
            name: name.map(Arc::from),
            origin: name.map(|_| Origin::here()),
        }
    }

    /// The ids of what a change found. Where it found nothing, a warning says which names and values of its selector no
    /// node has, as the command line does.
    fn change(
        &self,
        py: Python<'_>,
        selector: &str,
        change: impl FnOnce(&mut pactql::Context) -> Result<Vec<String>, pactql::Error> + Send,
    ) -> PyResult<Vec<String>> {
        let (ids, meant) = self.with(py, |context| {
            let ids = change(context)?;
            let meant = if ids.is_empty() {
                context.select(selector).map(|found| found.meant())
            } else {
                Ok(Vec::new())
            };
            Ok((ids, meant.unwrap_or_default()))
        })?;
        for each in meant {
            warn(py, Warned::Selector, &format!("nothing is changed: {each}"))?;
        }
        Ok(ids)
    }

    /// Gives the lease back, and drops what was not kept. Returns what is lost, in words.
    fn shut(&self, py: Python<'_>) -> Option<String> {
        if self.origin.is_some_and(|origin| !origin.is_here()) {
            return None;
        }
        py.detach(|| {
            let context = self.context.lock();
            let context = context.unwrap_or_else(PoisonError::into_inner).take();
            let saved = self.saved.lock();
            let saved = saved.unwrap_or_else(PoisonError::into_inner).take();
            let mut context = context?;
            let name = self.name.as_deref()?;
            forks::with_threads(|| lost(name, &mut context, saved.as_ref()))
        })
    }

    /// The answer of a call of the library.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut pactql::Context) -> Result<T, pactql::Error> + Send,
    ) -> PyResult<T> {
        self.origin.map_or(Ok(()), |origin| origin.check(py))?;
        let answer = py.detach(|| {
            // Not among the threads of a pool, one of which would wait for itself.
            let mut context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
            match context.as_mut() {
                Some(context) => forks::with_threads(|| call(context)).map_err(Failure::from),
                None => Err(Failure::Closed),
            }
        });
        answer.or_raise(py)
    }
}

/// The settings of a context, and its engine: this one unless its edition is another.
///
/// # Errors
/// An edition that there is none of.
pub(crate) fn builder(
    engine: &Arc<pactql::Engine>,
    edition: Option<&str>,
    max_nodes: Option<u64>,
    max_tokens: Option<u64>,
    protect: Option<u32>,
) -> PyResult<(ContextBuilder, Arc<pactql::Engine>)> {
    let edition = edition.map(crate::values::edition).transpose()?;
    let engine = match edition.filter(|edition| *edition != engine.edition()) {
        Some(edition) => Arc::new(pactql::Engine::builder().edition(edition).build()),
        None => Arc::clone(engine),
    };
    let policy = Policy::new();
    let policy = max_nodes.into_iter().fold(policy, Policy::nodes);
    let policy = max_tokens.into_iter().fold(policy, Policy::tokens);
    let policy = protect.into_iter().fold(policy, Policy::protect);
    let builder = pactql::Context::builder().engine(Arc::clone(&engine));
    Ok((builder.policy(policy), engine))
}

/// The parts of a message.
fn message(
    role: &str,
    text: &str,
    call_id: Option<&str>,
    calls: Vec<(String, String, Bound<'_, PyAny>)>,
    images: Vec<String>,
    parts: Vec<Bound<'_, PyAny>>,
) -> PyResult<Message> {
    let mut message = match call_id {
        Some(id) => {
            let mut part = NewNode::new()
                .kind("result")
                .set("data_call_id", id)
                .content(text);
            if role != "tool" {
                part = part.role(role);
            }
            Message::new(role).part(part)
        }
        None => Message::new(role).text(text),
    };
    for (id, tool, arguments) in calls {
        message = message.call(&id, &tool, &json::dumps(&arguments)?);
    }
    for url in images {
        message = message.image(&url);
    }
    for part in parts {
        let py = part.py();
        let text = json::dumps(&part)?;
        message = message.part(NewNode::json(&text).or_raise(py)?);
    }
    Ok(message)
}

#[pymethods]
impl Context {
    /// A session with nothing in it but the regions. Commits prune to this many nodes or tokens, and protect this many of
    /// the newest turns.
    #[new]
    #[pyo3(signature = (*, edition = None, max_nodes = None, max_tokens = None, protect = None))]
    fn new(
        edition: Option<&str>,
        max_nodes: Option<u64>,
        max_tokens: Option<u64>,
        protect: Option<u32>,
    ) -> PyResult<Self> {
        let (builder, engine) = builder(&SHARED, edition, max_nodes, max_tokens, protect)?;
        Ok(Self::of(builder.build(), engine, None))
    }

    /// Goes on with a session in memory.
    #[staticmethod]
    #[pyo3(signature = (session, /, *, edition = None, max_nodes = None, max_tokens = None, protect = None))]
    fn resume(
        py: Python<'_>,
        session: &Session,
        edition: Option<&str>,
        max_nodes: Option<u64>,
        max_tokens: Option<u64>,
        protect: Option<u32>,
    ) -> PyResult<Self> {
        let (builder, engine) = builder(&session.engine, edition, max_nodes, max_tokens, protect)?;
        let session = session.shared(py)?;
        let context = py.detach(|| builder.resume(&session));
        Ok(Self::of(context.or_raise(py)?, engine, None))
    }

    /// The name of the session, if it is in a store.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The cycle in progress: that of the next commit.
    #[getter]
    fn cycle(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |context| Ok(context.cycle()))
    }

    /// Whether anything was changed since the last commit.
    #[getter]
    fn is_changed(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |context| Ok(context.is_changed()))
    }

    /// The session, for readers in any thread: what was committed, and the working state.
    #[getter]
    fn session(&self, py: Python<'_>) -> PyResult<Session> {
        let session = self.with(py, |context| Ok(context.session()))?;
        Ok(Session::new(session, Arc::clone(&self.engine), self.name()))
    }

    /// What a selector finds: without a time in the working state, with one in a snapshot.
    #[pyo3(signature = (selector, /, params = None, **named))]
    fn select(
        &self,
        py: Python<'_>,
        selector: &str,
        params: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Selection> {
        let prepared = prepared(py, &self.engine, selector, params, named)?;
        let rows = self.with(py, |context| prepared.rows_in(&context.history()))?;
        Ok(Selection::new(
            rows,
            Arc::clone(&self.engine),
            self.name.clone(),
        ))
    }

    /// Adds a node where a position says: a selector of its parent, or a position such as `(d0, end)`. The node is a
    /// dictionary, or a text such as `block:text { key='hero' } "content"`. Returns its id.
    #[pyo3(signature = (position, node, /))]
    fn add(&self, py: Python<'_>, position: &str, node: &Bound<'_, PyAny>) -> PyResult<String> {
        let node = json::dumps(node)?;
        self.with(py, |context| context.add(position, node))
    }

    /// Gives the nodes that a selector finds other members; `None` takes one away. Returns their ids: none where it finds
    /// nothing, and then a `pactql.SelectorWarning` says which names and values may be misspelled.
    #[pyo3(signature = (selector, fields, /))]
    fn update(
        &self,
        py: Python<'_>,
        selector: &str,
        fields: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<String>> {
        let fields = json::dumps(fields)?;
        self.change(py, selector, |context| context.update(selector, fields))
    }

    /// Removes the nodes that a selector finds, with all below them. Returns the ids of the topmost ones; warns as `update`.
    #[pyo3(signature = (selector, /))]
    fn remove(&self, py: Python<'_>, selector: &str) -> PyResult<Vec<String>> {
        self.change(py, selector, |context| context.remove(selector))
    }

    /// Moves the nodes that a selector finds. Returns their ids, which may be new; warns as `update`.
    #[pyo3(signature = (selector, position, /))]
    fn r#move(&self, py: Python<'_>, selector: &str, position: &str) -> PyResult<Vec<String>> {
        self.change(py, selector, |context| context.move_to(selector, position))
    }

    /// Puts a node in the place of the one that a selector finds. Returns its id.
    #[pyo3(signature = (selector, node, /))]
    fn replace(&self, py: Python<'_>, selector: &str, node: &Bound<'_, PyAny>) -> PyResult<String> {
        let node = json::dumps(node)?;
        self.with(py, |context| context.replace(selector, node))
    }

    /// Has the next commit put a summary in the place of the nodes that a selector finds. Returns its id.
    #[pyo3(signature = (selector, summary, /))]
    fn compact(
        &self,
        py: Python<'_>,
        selector: &str,
        summary: &Bound<'_, PyAny>,
    ) -> PyResult<String> {
        let summary = json::dumps(summary)?;
        self.with(py, |context| context.compact(selector, summary))
    }

    /// Adds a message to the turn in progress. Returns the ids of its blocks: none of a message without anything in it,
    /// which is not added. The role is any word; `system` goes to `^sys`.
    ///
    /// With `call_id` the text is the result of that tool call. `calls` are tool calls, each an id, the name of the
    /// tool and its arguments; `images` are URLs; `parts` are blocks as dictionaries.
    #[pyo3(signature = (role, text = "", /, *, call_id = None, calls = Vec::new(), images = Texts(Vec::new()), parts = Vec::new()),
        text_signature = "($self, role, text='', /, *, call_id=None, calls=(), images=(), parts=())")]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn append(
        &self,
        py: Python<'_>,
        role: Role,
        text: &str,
        call_id: Option<&str>,
        calls: Vec<(String, String, Bound<'_, PyAny>)>,
        images: Texts,
        parts: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let message = message(&role.0, text, call_id, calls, images.0, parts)?;
        self.with(py, |context| context.append(message))
    }

    /// Adds the model's reply, and ends the attempt that is running, without counts of tokens: `complete_attempt` gives
    /// them, before or after. Returns the ids of its blocks. A reply may be without anything.
    #[pyo3(signature = (text = "", /, *, calls = Vec::new(), parts = Vec::new()),
        text_signature = "($self, text='', /, *, calls=(), parts=())")]
    fn reply(
        &self,
        py: Python<'_>,
        text: &str,
        calls: Vec<(String, String, Bound<'_, PyAny>)>,
        parts: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let message = message("assistant", text, None, calls, Vec::new(), parts)?;
        self.with(py, |context| context.reply(message))
    }

    /// Makes these texts the system prompt. Returns the ids of its blocks.
    #[pyo3(signature = (*texts))]
    fn set_system(&self, py: Python<'_>, texts: Vec<String>) -> PyResult<Vec<String>> {
        self.with(py, |context| {
            context.set_system(texts.iter().map(String::as_str))
        })
    }

    /// Makes these definitions, each a dictionary or JSON text, the tools. Returns the ids of their blocks.
    #[pyo3(signature = (definitions, /))]
    fn set_tools(
        &self,
        py: Python<'_>,
        definitions: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let texts = definitions
            .iter()
            .map(json::dumps)
            .collect::<PyResult<Vec<_>>>()?;
        self.with(py, |context| {
            context.set_tools(texts.iter().map(String::as_str))
        })
    }

    /// Sets the parameters of the requests to come: model, temperature, …
    #[pyo3(signature = (parameters, /))]
    fn set_request(&self, py: Python<'_>, parameters: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = json::dumps(parameters)?;
        self.with(py, |context| context.set_request(&text))
    }

    /// The working state as the request to send, and the beginning of an attempt.
    #[pyo3(signature = (provider, /))]
    fn render(&self, py: Python<'_>, provider: &str) -> PyResult<Request> {
        let provider = crate::values::provider(provider)?;
        let request = self.with(py, |context| context.render(provider))?;
        Ok(Request {
            body: request.body,
            attempt: request.attempt,
        })
    }

    /// Ends the running attempt as completed, with the provider's counts of tokens, which are the `usage` of the snapshot
    /// that the next commit makes. They may come after `reply`, too.
    #[pyo3(signature = (token_in = None, token_out = None))]
    fn complete_attempt(
        &self,
        py: Python<'_>,
        token_in: Option<u64>,
        token_out: Option<u64>,
    ) -> PyResult<()> {
        self.with(py, |context| context.complete_attempt(token_in, token_out))
    }

    /// Ends the running attempt as failed.
    #[pyo3(signature = (error, /))]
    fn fail_attempt(&self, py: Python<'_>, error: &str) -> PyResult<()> {
        self.with(py, |context| context.fail_attempt(error))
    }

    /// Ends the running attempt as canceled.
    fn cancel_attempt(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, pactql::Context::cancel_attempt)
    }

    /// The provider calls of the session, newest first, as dictionaries.
    #[getter]
    fn attempts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let attempts = self.with(py, |context| Ok(context.attempts()))?;
        json::report(py, &attempts.iter().collect::<Vec<_>>())
    }

    /// Ends the cycle: expires, compacts, prunes, seals, and publishes the snapshot. In a store it is durable when
    /// this returns. Returns what it did: `cycle`, `turn`, and the ids that are `expired`, `compacted`, `pruned` and
    /// `emptied`; `kept` from a compaction by a reference; of summaries that are `voided` by it.
    fn commit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let commit = self.with(py, pactql::Context::commit)?;
        Ok(dict!(py,
            "cycle": commit.cycle,
            "turn": commit.turn,
            "expired": commit.expired,
            "compacted": commit.compacted,
            "kept": commit.kept,
            "voided": commit.voided,
            "pruned": commit.pruned,
            "emptied": commit.emptied,
            "over": commit.over,
        ))
    }

    /// Keeps the working state in the store.
    fn save(&self, py: Python<'_>) -> PyResult<()> {
        let saved = self.with(py, |context| {
            context.save()?;
            Ok(context.history())
        })?;
        *self.saved.lock().unwrap_or_else(PoisonError::into_inner) = Some(saved);
        Ok(())
    }

    /// Drops every change since the last commit.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |context| {
            context.discard();
            Ok(())
        })
    }

    /// Begins a context with the history up to an address.
    #[pyo3(signature = (address, /))]
    fn fork(&self, py: Python<'_>, address: &str) -> PyResult<Self> {
        let fork = self.with(py, |context| context.fork(address))?;
        Ok(Self::of(fork, Arc::clone(&self.engine), None))
    }

    /// Pins the node that a selector finds under a name, until `unpin`. Returns its id.
    #[pyo3(signature = (name, selector, /))]
    fn pin(&self, py: Python<'_>, name: &str, selector: &str) -> PyResult<String> {
        self.with(py, |context| context.pin_as(name, selector))
    }

    /// Drops the reference of a name. Returns the id of its node.
    #[pyo3(signature = (name, /))]
    fn unpin(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        self.with(py, |context| Ok(context.unpin(name)))
    }

    /// The references: name and id.
    #[getter]
    fn references<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.with(py, |context| {
            let each = context.references();
            let owned = each.map(|(name, id)| (name.to_owned(), id.to_owned()));
            Ok(owned.collect::<Vec<_>>())
        })?;
        let dict = PyDict::new(py);
        for (name, id) in found {
            dict.set_item(name, id)?;
        }
        Ok(dict)
    }

    /// Adds to the content of a block of this cycle: what a model says while it is still saying it.
    #[pyo3(signature = (id, text, /))]
    fn push(&self, py: Python<'_>, id: &str, text: &str) -> PyResult<()> {
        self.with(py, |context| {
            let mut stream = context.stream(id)?;
            stream.push(text);
            stream.flush();
            Ok(())
        })
    }

    /// Closes the context. What was neither committed nor saved is lost, of which a warning says so in a store; the lease
    /// is given back. So it is where the context is deleted.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.shut(py)
            .map_or(Ok(()), |lost| warn(py, Warned::Unsaved, &lost))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes the context. Without an exception, it warns of what is lost in a store.
    #[pyo3(signature = (kind = None, _error = None, _traceback = None, /), text_signature = "($self, kind=None, error=None, traceback=None, /)")]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        _error: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        match (self.shut(py), kind) {
            (Some(lost), None) => warn(py, Warned::Unsaved, &lost),
            _ => Ok(()),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let cycle = self.cycle(py);
        let state = cycle.map_or_else(|_| "closed".to_owned(), |cycle| format!("in cycle {cycle}"));
        match self.name() {
            Some(name) => format!("<Context {name:?} {state}>"),
            None => format!("<Context {state}>"),
        }
    }
}

/// A request to a provider.
#[pyclass(frozen, module = "pactql")]
pub(crate) struct Request {
    body: String,
    attempt: String,
}

#[pymethods]
impl Request {
    /// The body, as one line of JSON with a line feed.
    #[getter]
    fn body(&self) -> &str {
        &self.body
    }

    /// The id of the attempt that was begun.
    #[getter]
    fn attempt(&self) -> &str {
        &self.attempt
    }

    /// The body as dictionaries and lists. With parameters it is a request; without any, the list of messages.
    fn json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::loads(py, &self.body)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let attempt = PyString::new(py, &self.attempt).repr()?;
        Ok(format!("<Request of attempt {attempt}>"))
    }
}
