//! Sessions: reading documents into a history that any number of threads can read.

use std::path::Path;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::History;
use super::attempt::Attempts;
use crate::index::{Merge, Meta, Snapshot, Writer};
use crate::support::cancel::{ensure, stopped};
use crate::tree::stream::{Next, Stream};
use crate::tree::{
    Body, Delta, Document, Header, InOrder, InputError, Limits, Runtime, SourceError, Step, Tree,
    arrange, patch, read_slice, read_source,
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
#[derive(Debug)]
pub struct Session {
    history: ArcSwap<History>,
    /// What a writer kept beside the documents, as JSON text.
    kept: Option<Box<str>>,
    /// Its name in a store.
    name: Option<Box<str>>,
    /// What the store knows of it.
    #[cfg(feature = "store")]
    origin: std::sync::Mutex<Option<Origin>>,
}

/// What a store knows of a session of its own.
#[cfg(feature = "store")]
pub(crate) type Origin = Arc<dyn std::any::Any + Send + Sync>;

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
    /// A session with this history.
    #[doc(hidden)]
    pub fn new(history: History) -> Self {
        Self {
            history: ArcSwap::from_pointee(history),
            kept: None,
            name: None,
            #[cfg(feature = "store")]
            origin: std::sync::Mutex::default(),
        }
    }

    /// A session of a store.
    #[cfg(feature = "store")]
    pub(crate) fn stored(name: &str, history: History, origin: Origin) -> Self {
        Self {
            name: Some(name.into()),
            origin: std::sync::Mutex::new(Some(origin)),
            ..Self::new(history)
        }
    }

    /// What the store knows of it.
    #[cfg(feature = "store")]
    pub(crate) fn origin(&self) -> std::sync::MutexGuard<'_, Option<Origin>> {
        let origin = self.origin.lock();
        origin.unwrap_or_else(std::sync::PoisonError::into_inner)
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

    /// A session of documents in file order.
    ///
    /// # Errors
    /// Documents that contradict each other, and differences that cannot be applied.
    #[doc(hidden)]
    pub fn from_documents(documents: Vec<Document>) -> Result<Self, InputError> {
        Self::build(documents, Writer::new())
    }

    /// As [`Session::from_documents`], with a custom writer.
    ///
    /// # Errors
    /// As [`Session::from_documents`].
    #[doc(hidden)]
    pub fn build(documents: Vec<Document>, writer: Writer) -> Result<Self, InputError> {
        let mut building = Building::new(writer);
        let sequence = arrange(documents);
        let runtime = sequence.runtime().cloned();
        let attempts = runtime.as_ref().map_or(Ok(Attempts::default()), attempts)?;
        let mut steps = sequence.steps();
        while let Some(item) = steps.next() {
            if stopped() {
                return Err(InputError::cancelled());
            }
            let (header, step) = item?;
            match step {
                Step::Tree(tree) => building.tree(&tree, header),
                Step::Difference(difference) => {
                    if let Err(error) = building.difference(difference.delta(), header) {
                        steps.refuse(&difference, difference.place(error));
                    }
                }
            }
        }
        Ok(building.session(runtime, attempts))
    }

    /// Reads a large file some documents at a time. `None` if it is to be read as a whole: it is not large, or something in it
    /// is wrong or unusual.
    pub(crate) fn streamed(path: &Path, limits: Limits) -> Option<Self> {
        let mut stream = Stream::open(path, limits).ok()??;
        let mut building = Building::new(Writer::new());
        let mut order = InOrder::default();
        loop {
            let documents = match stream.next().ok()? {
                Next::Documents(documents) => documents,
                Next::End => break,
                Next::Whole => return None,
            };
            for document in documents {
                ensure();
                let Some((mut header, body)) = order.take(document).ok()? else {
                    continue;
                };
                match body {
                    Body::Full(tree) => building.tree(&tree, header),
                    Body::Delta(delta) => {
                        let base = base(&building.committed, &delta)?;
                        let inherited = || base.meta().spec_version.clone();
                        header.spec_version = header.spec_version.or_else(inherited);
                        building.difference(&delta, header).ok()?;
                    }
                    Body::Runtime(_) => return None,
                }
            }
        }
        let runtime = order.runtime().cloned();
        let attempts = runtime.as_ref().map_or(Ok(Attempts::default()), attempts);
        let empty = building.committed.is_empty() && building.working.is_none();
        if empty {
            return None;
        }
        Some(building.session(runtime, attempts.ok()?))
    }

    /// Replaces the history for readers that ask from now on. Constant time; only one thread may
    /// publish.
    #[doc(hidden)]
    pub fn publish(&self, history: History) {
        self.history.store(Arc::new(history));
    }

    /// The history as it is now; it never changes afterwards. Lock-free.
    pub fn history(&self) -> Arc<History> {
        self.history.load_full()
    }

    /// As [`Session::history`], cheaper for short use. Lock-free.
    #[doc(hidden)]
    #[inline]
    pub fn moment(&self) -> Moment {
        Moment(self.history.load())
    }
}

/// Keeps the history of one moment alive without blocking writers. Costs at most an `Arc`.
pub struct Moment(Guard<Arc<History>>);

impl Moment {
    /// The history, for long use.
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

impl std::fmt::Debug for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Moment").field(&**self).finish()
    }
}

/// What a writer kept of its attempts.
fn attempts(runtime: &Runtime) -> Result<Attempts, InputError> {
    Attempts::read(&runtime.json).map_err(|error| runtime.refused(error.to_string()))
}

/// The snapshots of a session that is being read, in the order of their cycles.
struct Building {
    writer: Writer,
    committed: Vec<Arc<Snapshot>>,
    working: Option<Arc<Snapshot>>,
}

impl Building {
    fn new(mut writer: Writer) -> Self {
        writer.stop_early();
        Self {
            writer,
            committed: Vec::new(),
            working: None,
        }
    }

    /// Adds the snapshot of a tree.
    fn tree(&mut self, tree: &Tree, header: Header) {
        let working = header.working;
        let meta = self.meta(header);
        let previous = self.committed.last().map(|snapshot| &**snapshot);
        let made = self.writer.append(previous, tree, meta);
        self.add(made, working);
    }

    /// Adds the snapshot of a difference.
    ///
    /// # Errors
    /// Why it cannot be applied, with positions in its document.
    fn difference(&mut self, delta: &Delta, header: Header) -> Result<(), InputError> {
        let working = header.working;
        let meta = self.meta(header);
        let previous = self.committed.last().map(|snapshot| &**snapshot);
        let base = base(&self.committed, delta);
        let quick = base.and_then(|base| {
            if previous.is_some_and(|previous| std::ptr::eq(previous, base)) {
                self.writer.commit(base, delta, &meta)
            } else {
                self.writer.commit_apart(base, delta, &meta)
            }
        });
        let made = match quick {
            Some(made) => made,
            None => {
                let tree = base.map(Snapshot::to_tree).unwrap_or_default();
                let tree = patch::apply(&tree, delta)?;
                self.writer.append(previous, &tree, meta)
            }
        };
        self.add(made, working);
        Ok(())
    }

    fn meta(&self, header: Header) -> Meta {
        let newest = self.committed.last().map_or(0, |snapshot| snapshot.cycle());
        Meta {
            cycle: if header.working { newest } else { header.cycle },
            working: header.working,
            cycle_given: header.cycle_given,
            spec_version: header.spec_version,
            extra: header.extra.into(),
        }
    }

    fn add(&mut self, (snapshot, merges): (Snapshot, Vec<Merge>), working: bool) {
        if !merges.is_empty() {
            // Older snapshots move to the merged segments, so that no row is stored twice.
            // Only the newest ones can refer to what was merged.
            for older in self.committed.iter_mut().rev() {
                match older.moved(&merges) {
                    Some(moved) => *older = Arc::new(moved),
                    None => break,
                }
            }
        }
        if working {
            self.working = Some(Arc::new(snapshot));
        } else {
            self.committed.push(Arc::new(snapshot));
        }
    }

    fn session(self, runtime: Option<Runtime>, attempts: Attempts) -> Session {
        let history = History::new(self.committed, self.working).with_attempts(attempts);
        Session {
            kept: runtime.map(|runtime| runtime.json),
            ..Session::new(history)
        }
    }
}

/// The snapshot that a difference applies to.
fn base<'a>(committed: &'a [Arc<Snapshot>], delta: &Delta) -> Option<&'a Snapshot> {
    let found = committed.binary_search_by_key(&delta.base, |snapshot| snapshot.cycle());
    Some(&**committed.get(found.ok()?)?)
}
