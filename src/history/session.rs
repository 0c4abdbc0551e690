//! Sessions: reading documents into a history that any number of threads can read.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::History;
use super::attempt::Attempts;
use crate::index::{Snapshot, SnapshotBuilder, Writer};
use crate::support::cancel::{ensure, stopped};
use crate::tree::stream::{DocumentStream, NextDocuments};
use crate::tree::{
    Document, DocumentOrder, InputError, Limits, PlacedDocument, Runtime, SourceError, arrange,
    read_slice, read_source,
};

/// The history of one conversation's context. `Send + Sync`; readers take no lock.
///
/// ```
/// use pactql::{Session, error::{LoadError, SourceError}};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// assert_eq!(session.history().cycles().len(), 6);
/// let missing = Session::open("missing.jsonl").unwrap_err();
/// assert!(matches!(missing, LoadError::Source(SourceError::Missing(_))));
/// # Ok::<(), pactql::error::LoadError>(())
/// ```
pub struct Session {
    history: ArcSwap<History>,
    kept: Option<Box<str>>,
    name: Option<Box<str>>,
    #[cfg(feature = "store")]
    origin: std::sync::Mutex<Option<StoreOrigin>>,
}

/// Its name and how much there is.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Session");
        if let Some(name) = &self.name {
            out.field("name", name);
        }
        out.field("history", &*self.moment())
            .finish_non_exhaustive()
    }
}

/// What a store knows of a session of its own.
#[cfg(feature = "store")]
pub(crate) type StoreOrigin = Arc<dyn std::any::Any + Send + Sync>;

/// Why a session could not be loaded. See the example of [`Session`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The source could not be read, or one of its documents is invalid.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The documents do not form a session.
    #[error(transparent)]
    Input(#[from] InputError),
}

impl Session {
    #[cfg(feature = "store")]
    pub(crate) fn stored(name: &str, history: History, origin: StoreOrigin) -> Self {
        Self {
            name: Some(name.into()),
            origin: std::sync::Mutex::new(Some(origin)),
            ..Self::new(history)
        }
    }

    #[cfg(feature = "store")]
    pub(crate) fn origin(&self) -> std::sync::MutexGuard<'_, Option<StoreOrigin>> {
        crate::support::lock(&self.origin)
    }

    /// Its name in a store; `None` if it is from elsewhere.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What a writer kept beside the documents that were read: a JSON object, as it was written.
    pub(crate) fn kept(&self) -> Option<&str> {
        self.kept.as_deref()
    }

    /// Opens a file or directory of snapshot documents (RUNTIME §1).
    ///
    /// # Errors
    /// A missing or unreadable file, or an invalid document. Loads all or nothing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let limits = Limits::default();
        if let Some(session) = Self::streamed(path.as_ref(), limits) {
            return Ok(session);
        }
        let documents = read_source(path.as_ref(), limits)?;
        Ok(Self::from_documents(documents)?)
    }

    /// Reads one JSON document, or JSON Lines, from memory.
    ///
    /// # Errors
    /// Every fault of the input, with its position.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, InputError> {
        Self::from_documents(read_slice(bytes)?)
    }

    /// Reads a large file some documents at a time. `None` if it is to be read as a whole: it is not large, or something in it
    /// is wrong or unusual.
    pub(crate) fn streamed(path: &Path, limits: Limits) -> Option<Self> {
        let mut stream = DocumentStream::open(path, limits).ok()??;
        let mut builder = SnapshotBuilder::of_all(Writer::new());
        let mut order = DocumentOrder::trusting();
        let mut working = None;
        loop {
            let documents = match stream.next().ok()? {
                NextDocuments::Documents(documents) => documents,
                NextDocuments::End => break,
                NextDocuments::Whole => return None,
            };
            for document in documents {
                ensure();
                let Some(PlacedDocument { meta, body, .. }) = order.place(document) else {
                    continue;
                };
                let newest = builder.committed.last();
                let is_next = newest.is_none_or(|newest| newest.cycle() < meta.cycle);
                if working.is_some() || !(meta.working || is_next) {
                    return None;
                }
                let made = builder.add(meta, &body).ok()??;
                working = Some(made).filter(|made| made.is_working());
            }
        }
        let attempts = attempts(&order).ok()?;
        let runtime = order.finish().ok()?;
        if builder.committed.is_empty() && working.is_none() {
            return None;
        }
        Some(Self::built(builder, working, runtime, attempts))
    }

    fn built(
        builder: SnapshotBuilder,
        working: Option<Arc<Snapshot>>,
        runtime: Option<Runtime>,
        attempts: Attempts,
    ) -> Self {
        let history = History::new(builder.committed, working).with_attempts(attempts);
        Self {
            kept: runtime.map(|runtime| runtime.json),
            ..Self::new(history)
        }
    }

    /// The history as it is now; it never changes afterwards. Lock-free.
    pub fn history(&self) -> Arc<History> {
        self.history.load_full()
    }
}

#[doc(hidden)]
impl Session {
    /// A session with this history.
    pub fn new(history: History) -> Self {
        Self {
            history: ArcSwap::from_pointee(history),
            kept: None,
            name: None,
            #[cfg(feature = "store")]
            origin: std::sync::Mutex::default(),
        }
    }

    /// A session of documents in file order.
    ///
    /// # Errors
    /// Documents that contradict each other, and differences that cannot be applied.
    pub fn from_documents(documents: Vec<Document>) -> Result<Self, InputError> {
        Self::build(documents, Writer::new())
    }

    /// As [`Session::from_documents`], with a custom writer.
    pub fn build(documents: Vec<Document>, writer: Writer) -> Result<Self, InputError> {
        let (placed, mut order) = arrange(documents);
        let attempts = attempts(&order)?;
        let mut builder = SnapshotBuilder::of_all(writer);
        let mut working = None;
        for mut document in placed {
            if stopped() {
                return Err(InputError::cancelled());
            }
            let meta = std::mem::take(&mut document.meta);
            match builder.add(meta, &document.body) {
                Ok(made) => working = made.filter(|made| made.is_working()),
                Err(error) => order.refuse(&document, error),
            }
        }
        Ok(Self::built(builder, working, order.finish()?, attempts))
    }

    /// Replaces the history for readers that ask from now on. Constant time; only one thread may publish.
    pub fn publish(&self, history: impl Into<Arc<History>>) {
        self.history.store(history.into());
    }

    /// As [`Session::history`], cheaper for short use. Lock-free.
    #[inline]
    pub fn moment(&self) -> Moment {
        Moment(self.history.load())
    }
}

/// Keeps the history of one moment alive without blocking writers. Costs at most an `Arc`.
#[derive(Debug)]
pub struct Moment(Guard<Arc<History>>);

impl Moment {
    pub(crate) fn into_history(self) -> Arc<History> {
        Guard::into_inner(self.0)
    }
}

impl std::ops::Deref for Moment {
    type Target = History;

    #[inline]
    fn deref(&self) -> &History {
        &self.0
    }
}

impl Clone for Moment {
    fn clone(&self) -> Self {
        Self::from(Arc::clone(&self.0))
    }
}

impl From<Arc<History>> for Moment {
    fn from(history: Arc<History>) -> Self {
        Self(Guard::from_inner(history))
    }
}

fn attempts(order: &DocumentOrder) -> Result<Attempts, InputError> {
    let Some(runtime) = order.runtime() else {
        return Ok(Attempts::default());
    };
    Attempts::read(&runtime.json).map_err(|error| runtime.refused(error.to_string()))
}
