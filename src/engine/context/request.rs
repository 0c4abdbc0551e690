//! Requests: what a provider is sent, and the attempts that are made with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Context;
use crate::history::{Attempt, AttemptStatus, Attempts, History};
use crate::index::Snapshot;
use crate::json::{canonical, get, members, string};
use crate::render::{self, Contents, Provider, RenderError, Thread};
use crate::support::diag::{Code, Diagnostic, Error};
use crate::tree::timestamp::rfc3339_of_nanos;
use serde_json::{Value, json};

/// A request to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The body, as one line of JSON with a line feed.
    pub body: String,
    /// The id of the attempt that was begun.
    pub attempt: String,
}

impl Context {
    /// The working state as the request to send, and the beginning of an attempt: until
    /// [`Context::reply`], [`Context::complete_attempt`], [`Context::cancel_attempt`] or
    /// [`Context::fail_attempt`] ends it, it is running; an attempt that is still running is canceled. What was sent is kept, as a difference to
    /// the attempt before.
    ///
    /// # Errors
    /// A block or parameters that the provider's API has no form for.
    pub fn render(&mut self, provider: Provider) -> Result<Request, Error> {
        let (thread, body) = self.request(provider)?;
        let cycle = self.cycle();
        // One call is made at a time: a new one says that the one before was given up.
        let _ = self.end_attempt(AttemptStatus::Canceled, |_| {});
        let attempts = self.attempts();
        let number = attempts.of_cycle(cycle).count() + 1;
        let parameters = thread.parameters().unwrap_or("{}");
        let model = get(&members(parameters), "model")
            .and_then(string)
            .map(String::from);
        let attempt = Attempt {
            attempt_id: format!("a{cycle}-{number}"),
            cycle_id: cycle,
            status: AttemptStatus::Running,
            started_at: self.now(),
            ended_at: None,
            provider: provider.name().into(),
            model,
            params: crate::tree::hash::hex(&crate::tree::hash::text_hash(&canonical(parameters))),
            token_in: None,
            token_out: None,
            error: None,
        };
        let id = attempt.attempt_id.clone();
        self.set_attempts(attempts.begun(attempt, thread.records().collect()));
        Ok(Request { body, attempt: id })
    }

    /// The working state as the request that [`Context::render`] would return, without beginning an
    /// attempt.
    ///
    /// # Errors
    /// As [`Context::render`].
    ///
    /// ```
    /// use pactql::{Context, Message, Provider};
    /// let mut context = Context::new();
    /// context.append(Message::user("Where is my refund?"))?;
    /// let body = context.preview(Provider::Anthropic)?;
    /// assert_eq!(context.attempts().len(), 0);
    /// assert_eq!(context.render(Provider::Anthropic)?.body, body);
    /// # Ok::<(), pactql::Error>(())
    /// ```
    pub fn preview(&self, provider: Provider) -> Result<String, Error> {
        Ok(self.request(provider)?.1)
    }

    fn request(&self, provider: Provider) -> Result<(Thread, String), Error> {
        let working = self.working();
        // Where nothing was changed since a commit, it is that snapshot, and its reply is of a cycle that is over.
        let contents = if working.is_working() {
            Contents::Request
        } else {
            Contents::All
        };
        let thread = Thread::from_snapshot(&working, contents);
        let body = render::request(&thread, provider);
        Ok((thread, body.map_err(|error| refused(&error))?))
    }

    /// The provider calls of the session, newest first.
    pub fn attempts(&self) -> Attempts {
        self.session.history().attempts().clone()
    }

    /// Ends the running attempt as completed, with the provider's token counts, which are the `usage` of the
    /// snapshot that the next commit makes; those of earlier completed calls of the cycle are in its `earlier`.
    /// [`Context::reply`] completes an attempt without counts; they may come after it.
    ///
    /// # Errors
    /// `E_PLACEMENT`: no attempt of this cycle is running.
    ///
    /// ```
    /// use pactql::{Context, Message, Provider, inspect::Call};
    /// let mut context = Context::new();
    /// context.append(Message::user("Hello"))?;
    /// context.render(Provider::OpenAi)?;
    /// context.reply(Message::assistant("Hi!"))?;
    /// context.complete_attempt(9, 4)?;
    /// context.commit()?;
    /// let newest = context.session().history().committed().last().map(|it| Call::from_snapshot(it));
    /// assert_eq!(newest.and_then(|call| call.input_tokens), Some(9));
    /// # Ok::<(), pactql::Error>(())
    /// ```
    pub fn complete_attempt(
        &mut self,
        token_in: impl Into<Option<u64>>,
        token_out: impl Into<Option<u64>>,
    ) -> Result<(), Error> {
        let (token_in, token_out) = (token_in.into(), token_out.into());
        let (cycle, attempts) = (self.cycle(), self.attempts());
        let newest = attempts.iter().next().filter(|it| it.cycle_id == cycle);
        let is_uncounted = newest.is_some_and(Attempt::is_uncounted);
        let count = |attempt: &mut Attempt| {
            attempt.token_in = token_in;
            attempt.token_out = token_out;
        };
        if is_uncounted {
            self.set_attempts(attempts.changed(count));
            return Ok(());
        }
        self.end_attempt(AttemptStatus::Completed, count)
    }

    /// What the provider counted in the newest completed call of this cycle, as the `usage` of a snapshot; in `earlier`
    /// what it counted in those before, which were paid for, too.
    pub(super) fn counted(&self) -> Option<String> {
        let (cycle, attempts) = (self.cycle(), self.attempts());
        let here = attempts.iter().take_while(|it| it.cycle_id == cycle);
        let completed = here.filter(|it| it.status == AttemptStatus::Completed);
        let completed: Vec<&Attempt> = completed.collect();
        let (newest, before) = completed.split_first()?;
        if completed.iter().all(|attempt| attempt.is_uncounted()) {
            return None;
        }
        let mut usage = counts_of(newest);
        if !before.is_empty() {
            let oldest_first = before.iter().rev().map(|attempt| {
                let mut counts = counts_of(attempt);
                if let Some(model) = attempt
                    .model
                    .as_ref()
                    .filter(|_| attempt.model != newest.model)
                {
                    counts.insert("model", model.as_str().into());
                }
                counts
            });
            usage.insert("earlier", json!(oldest_first.collect::<Vec<_>>()));
        }
        serde_json::to_string(&usage).ok()
    }

    /// Ends the running attempt as canceled. The turn in progress stays as it is, and can be changed
    /// and rendered again. Errors as [`Context::complete_attempt`].
    pub fn cancel_attempt(&mut self) -> Result<(), Error> {
        self.end_attempt(AttemptStatus::Canceled, |_| {})
    }

    /// Ends the running attempt as failed. Errors as [`Context::complete_attempt`].
    pub fn fail_attempt(&mut self, error: &str) -> Result<(), Error> {
        self.end_attempt(AttemptStatus::Error, |attempt| {
            attempt.error = Some(error.into())
        })
    }

    fn end_attempt(
        &mut self,
        status: AttemptStatus,
        change: impl FnOnce(&mut Attempt),
    ) -> Result<(), Error> {
        if self.end_running(status, change) {
            return Ok(());
        }
        let message = "no attempt of this cycle is running";
        let diagnostic = Diagnostic::error(Code::Placement, message);
        Err(Error::new("", diagnostic.with_help("`render` begins one")))
    }

    /// Ends the running attempt of this cycle; false if there is none.
    fn end_running(&mut self, status: AttemptStatus, change: impl FnOnce(&mut Attempt)) -> bool {
        let cycle = self.cycle();
        let attempts = self.attempts();
        let newest = attempts.iter().next();
        let running = newest.is_some_and(|attempt| {
            attempt.cycle_id == cycle && attempt.status == AttemptStatus::Running
        });
        if !running {
            return false;
        }
        let ended = match self.fed_at.take() {
            Some(fed_at) => rfc3339_of_nanos(fed_at),
            None => self.now(),
        };
        self.set_attempts(attempts.changed(|attempt| {
            attempt.status = status;
            attempt.ended_at = Some(ended);
            change(attempt);
        }));
        true
    }

    pub(super) fn complete_running(&mut self) {
        // Without a running attempt there is nothing to note.
        self.end_running(AttemptStatus::Completed, |_| {});
    }

    /// Completes the attempt that a stream has fed, as its reply is about to be sealed.
    pub(super) fn complete_fed(&mut self) {
        if self.fed_at.is_some() {
            self.complete_running();
        }
    }

    /// Notes that a text came for a block of the reply. An attempt that the beginning of the reply completed, without
    /// counts, is running again.
    pub(super) fn feed_attempt(&mut self, slot: u32) {
        if !self.workspace.is_reply(slot) {
            return;
        }
        let begun = self.fed_at.replace(self.clock.now_ns()).is_some();
        if begun {
            return;
        }
        let (cycle, attempts) = (self.cycle(), self.attempts());
        let newest = attempts.iter().next().filter(|it| it.cycle_id == cycle);
        match newest.map(|it| (it.status, it.token_in.or(it.token_out))) {
            Some((AttemptStatus::Running, _)) => {}
            Some((AttemptStatus::Completed, None)) => self.set_attempts(attempts.changed(|it| {
                it.status = AttemptStatus::Running;
                it.ended_at = None;
            })),
            _ => self.fed_at = None,
        }
    }

    fn now(&self) -> String {
        rfc3339_of_nanos(self.clock.now_ns())
    }

    fn set_attempts(&mut self, attempts: Attempts) {
        let history = self.session.history();
        self.session.publish(history.with_attempts(attempts));
    }
}

/// What the provider counted in a call, by the names that `usage` has.
fn counts_of(attempt: &Attempt) -> BTreeMap<&'static str, Value> {
    let counts = [
        ("input_tokens", attempt.token_in),
        ("output_tokens", attempt.token_out),
    ];
    let counts = counts.into_iter();
    counts
        .filter_map(|(name, count)| Some((name, count?.into())))
        .collect()
}

pub(crate) fn refused(error: &RenderError) -> Error {
    let diagnostic = Diagnostic::error(Code::Input, error.to_string());
    Error::new("", diagnostic.with_any_help(error.help()))
}

/// What was sent in the cycle of a snapshot of `history`, or in the cycle in progress for its working
/// state: as its attempts say, or else as far as the tree still shows it.
#[must_use]
pub fn sent(history: &History, snapshot: &Snapshot) -> Thread {
    let cycle = snapshot
        .cycle()
        .saturating_add(i64::from(snapshot.is_working()));
    let records: Option<Vec<Arc<str>>> = history.attempts().sent_in(cycle);
    let thread = records.and_then(|records| Thread::from_records(records).ok());
    thread.unwrap_or_else(|| Thread::request(snapshot))
}

/// What one attempt of a session was sent, also one that failed: by its id, such as `a3-1`. `None` if the session has no
/// such attempt.
///
/// ```
/// use pactql::{Context, Message, Provider, context::attempted};
/// let mut context = Context::new();
/// context.append(Message::user("Hello"))?;
/// let request = context.render(Provider::OpenAi)?;
/// context.fail_attempt("429: slow down")?;
/// let thread = attempted(&context.session().history(), &request.attempt).expect("it was made");
/// assert_eq!(pactql::render::request(&thread, Provider::OpenAi)?, request.body);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn attempted(history: &History, attempt: &str) -> Option<Thread> {
    let records = history.attempts().sent_to(attempt)?;
    Thread::from_records(records).ok()
}
