//! A session that is written: the write side of the library.
//!
//! A [`Context`] takes selectors and positions, finds the nodes they name in the working state, and has
//! [`crate::runtime`] change them. Readers have its [`Session`]; they never wait for it, and see every
//! mutation and every commit as a whole.
//!
//! | part | files |
//! |---|---|
//! | making one | `build` |
//! | mutations, commits, references | `write`, `node` |
//! | messages, the system prompt, tools, parameters | `message`, `setup` |
//! | requests and attempts | `request` |
//! | texts that grow | `stream` |
//! | going on in another run | `keep` |
//! | commits that are kept elsewhere | `keeper` |
//! | asynchronous programs | `shared` |

mod build;
mod keep;
#[cfg(feature = "store")]
mod keeper;
mod message;
mod node;
mod request;
mod setup;
#[cfg(feature = "tokio")]
mod shared;
mod stream;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use build::ContextBuilder;
pub use keep::ContextState;
#[cfg(feature = "store")]
pub(crate) use keeper::{Beside, CommitKeeper};
pub use message::Message;
pub use node::IntoNode;
#[cfg(feature = "cli")]
pub(crate) use node::short_form;
pub(crate) use request::refused;
pub use request::{Request, attempted, sent};
#[cfg(feature = "tokio")]
pub use shared::AsyncContext;
pub use stream::Stream;
#[cfg(feature = "store")]
pub(crate) use write::index_at;

use super::facade::Engine;
use super::selection::Selection;
use crate::history::{History, Session};
use crate::runtime::{Clock, Reference, Workspace};
use crate::support::diag::Error;

/// One session being written (RUNTIME §3): its working state, and the commits it makes.
///
/// ```
/// use pactql::{Context, Message, Provider};
/// let mut context = Context::new();
/// context.set_system(["You are brief."])?;
/// for question in ["Where is my refund?", "Since when?"] {
///     context.append(Message::user(question))?;
///     let request = context.render(Provider::OpenAi)?; // send `request.body`
///     assert!(request.body.contains(question));
///     context.reply(Message::assistant("On its way."))?;
///     context.commit()?; // expire, prune, seal, publish
/// }
/// assert_eq!(context.select("@t0 ^seq .mt:depth(1) .cb[role='user']")?.count(), 1);
/// # Ok::<(), pactql::Error>(())
/// ```
pub struct Context {
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
    workspace: Workspace,
    session: Arc<Session>,
    named: BTreeMap<String, Reference>,
    /// When a stream last fed the running attempt.
    fed_at: Option<i64>,
    /// Whether the session shows the working state as it is. It is made when it is read, which takes
    /// `&self`; what changes it takes `&mut self`, so no change comes between.
    published: AtomicBool,
    #[cfg(feature = "store")]
    keeper: Option<Box<dyn CommitKeeper>>,
}

/// Its session, the cycle in progress, and the names of its references.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Context");
        out.field("session", &self.session)
            .field("cycle", &self.cycle());
        let named: Vec<&String> = self.named.keys().take(PRINTED).collect();
        out.field("references", &named).finish_non_exhaustive()
    }
}

/// How many references the debug form names.
const PRINTED: usize = 10;

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl Context {
    /// A session with nothing in it but the regions. Its first commit is cycle 1.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts a context with other settings.
    #[must_use]
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// Goes on with a session: its snapshots are shared, and its working state, if it has one of its
    /// own, is the cycle in progress. If its file had what an earlier context kept ([`ContextState`]), its
    /// references, attempts and compactions are back, too. Linear in the session's rows.
    ///
    /// # Errors
    /// A working state that no mutation could have made: a sealed core that differs from the newest snapshot's,
    /// a turn that was not sealed; a node with the largest time there is.
    pub fn resume(session: &Session) -> Result<Self, Error> {
        Self::builder().resume(session)
    }

    /// The session, for readers in any thread: its history has the committed snapshots, and the
    /// working state as of the last mutation.
    pub fn session(&self) -> Arc<Session> {
        self.publish();
        Arc::clone(&self.session)
    }

    /// The engine that runs its selectors.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The cycle in progress: that of the next commit.
    pub fn cycle(&self) -> i64 {
        self.workspace.cycle()
    }

    /// Whether anything was changed since the last commit.
    pub fn is_changed(&self) -> bool {
        self.workspace.is_changed()
    }

    /// Runs a selector of rows: without a time over the working state, with one over a snapshot.
    /// Errors as [`Engine::rows`].
    pub fn select(&self, selector: &str) -> Result<Selection, Error> {
        self.publish();
        self.engine.rows(&self.session, selector)
    }

    /// The history as of the last mutation.
    pub fn history(&self) -> Arc<History> {
        self.publish();
        self.session.history()
    }

    fn publish(&self) {
        if self.published.load(Ordering::Acquire) {
            return;
        }
        let history = self.session.history();
        let working = self.workspace.is_changed() || history.committed().is_empty();
        self.session.publish(if working {
            history.with_working(self.workspace.working())
        } else {
            history.without_working()
        });
        // Two readers at once may both have made it: they made the same.
        self.published.store(true, Ordering::Release);
    }

    /// Notes that the working state has changed. Readers that hold the session see it at once; without
    /// any, it is shown when it is first read.
    fn changed(&mut self) {
        *self.published.get_mut() = false;
        if Arc::strong_count(&self.session) > 1 {
            self.publish();
        }
    }
}
