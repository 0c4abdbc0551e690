//! Provider calls as sessions of a store, as they are made: the [`Recorder`].
//!
//! A call is a request body, and the response or why there is none. It becomes the next snapshot of the session that
//! it goes on with: what was sent, to the byte of each text, and the reply. A call that failed is an attempt of the
//! cycle to come. The documents are those of an import ([`mod@crate::logs`]); the transaction is the store's.
//!
//! | part | files |
//! |---|---|
//! | what is recorded | `call` |
//! | which session a call goes on with | `choice` |
//! | writing | `write` |
//!
//! This module must not know HTTP, clients of providers, selectors or the command line.

mod call;
mod choice;
mod write;

pub use super::events::StreamedReply;
pub use call::{ProviderCall, Recorded};

use crate::logs::Redaction;
use crate::store::Store;
use crate::support::diag::Error;
use write::KnownSessions;

/// Records provider calls into a store.
///
/// A call goes on with the session of its name that it shares its longest beginning with: `name`, or `name/2`, … if
/// several were begun under one name. One that shares none begins the next. Several recorders, in this process and
/// others, may record into one store, also under one name.
///
/// ```
/// use pactql::logs::record::{ProviderCall, Recorder};
/// use pactql::{Provider, Store};
/// # let path = std::env::temp_dir().join(format!("pactql-record-{}.db", std::process::id()));
/// let store = Store::open(&path)?;
/// let mut recorder = Recorder::new(store);
/// let request = r#"{"model":"m","messages":[{"role":"user","content":"Where is my refund?"}]}"#;
/// let mut call = ProviderCall::new(Provider::OpenAi, "support-42", request);
/// call.response = Some(
///     r#"{"choices":[{"message":{"role":"assistant","content":"On its way."}}]}"#.to_owned(),
/// );
/// let done = recorder.record(&[call])?;
/// let Ok(done) = &done[0] else { panic!("not recorded") };
/// assert_eq!((done.session.as_str(), done.cycle), ("support-42", 1));
///
/// let session = recorder.store().session("support-42")?;
/// let newest = session.history().latest().expect("a snapshot").clone();
/// let sent = pactql::render::Thread::request(&newest);
/// assert_eq!(pactql::render::request(&sent, Provider::OpenAi)?.trim_end(), request);
/// # drop((recorder, session));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recorder {
    store: Store,
    redact: Vec<Redaction>,
    sessions: KnownSessions,
}

impl Recorder {
    /// A recorder into a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            store,
            redact: Vec::new(),
            sessions: KnownSessions::default(),
        }
    }

    /// Takes what matches these patterns out of every text before it is written. Members that authorize a request are
    /// taken out always.
    #[must_use]
    pub fn redact(mut self, patterns: Vec<Redaction>) -> Self {
        self.redact = patterns;
        self
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes calls, in their order, in one transaction: when this returns they are as durable as a commit of the
    /// store. Each has its own result; one that cannot be recorded leaves nothing, and the others stay. Linear in
    /// the requests.
    ///
    /// # Errors
    /// Those of the database; nothing was recorded then. Of one call: the request is not a JSON object, or the name
    /// cannot be one of a session.
    pub fn record(
        &mut self,
        calls: &[ProviderCall],
    ) -> Result<Vec<Result<Recorded, Error>>, Error> {
        let Self {
            store,
            redact,
            sessions,
        } = self;
        let done = store.ledger(|ledger| {
            let mut results = Vec::with_capacity(calls.len());
            for call in calls {
                results.push(ledger.apart(|ledger| sessions.write(ledger, call, redact))?);
                sessions.settle(results.last().is_some_and(Result::is_ok));
            }
            Ok(results)
        });
        sessions.end(done.is_ok());
        done
    }
}
