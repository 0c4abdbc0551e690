//! Why a store could not do what was requested.

use crate::history::LoadFailure;
use std::path::PathBuf;

/// Why a store could not do what was requested. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such file.
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    /// The file or the schema is not a store.
    #[error("{0} is not a store of sessions")]
    NotAStore(String),
    /// The store has another layout.
    #[error(
        "the store has layout {version}, written by {written_by}; this program reads layout {known}"
    )]
    OtherLayout {
        /// The layout of the store.
        version: i64,
        /// The program that wrote it.
        written_by: String,
        /// The layout that is known here.
        known: i64,
    },
    /// No session has this name.
    #[error("the store has no session `{0}`")]
    NoSession(String),
    /// A session has this name already.
    #[error("the store has a session `{0}` already")]
    Exists(String),
    /// Another writer holds the lease of the session.
    #[error("the session `{session}` is being written by {holder} until {until}")]
    Busy {
        /// The session.
        session: String,
        /// Who holds the lease.
        holder: String,
        /// Until when, as RFC 3339.
        until: String,
    },
    /// The lease of this writer was taken by another one.
    #[error("the lease on the session `{session}` ran out and {holder} has taken it")]
    LeaseLost {
        /// The session.
        session: String,
        /// Who holds the lease now.
        holder: String,
    },
    /// What is stored contradicts itself.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Files of a copy contradict themselves.
    #[error("the copy is damaged: {0}")]
    Copy(String),
    /// Another writer of the store was in the way. The same transaction may succeed if it is tried again.
    #[error("the database of the store: {0}")]
    Conflict(String),
    /// A name that no session may have.
    #[error("{0}")]
    Name(String),
    /// No snapshot has a node that was named.
    #[error("no snapshot of `{session}` has a node `{id}`")]
    NoNode {
        /// The session.
        session: String,
        /// The id.
        id: String,
    },
    /// A snapshot that was there when the session was opened was removed since.
    #[error("{0}")]
    Gone(String),
    /// Something that cannot be done.
    #[error("{0}")]
    Refused(String),
    /// What was to be written could not be read.
    #[error(transparent)]
    Unread(#[from] LoadFailure),
    /// The database reported an error; a full disk and a lost connection are among them.
    #[error("the database of the store: {0}")]
    Database(String),
    /// The operating system reported an error.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, std::io::Error),
}
