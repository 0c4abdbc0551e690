//! Why a store could not do what was requested.

use std::path::PathBuf;

use crate::history::LoadFailure;
use crate::support::diag::{Code, Error};

/// What a part of the store has come to.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store could not do what was requested. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    #[error("{0} is not a store of sessions")]
    NotAStore(String),
    #[error(
        "the store has layout {version}, written by {written_by}; this program reads layout {known}"
    )]
    OtherLayout {
        version: i64,
        written_by: String,
        known: i64,
    },
    #[error("the store has no session `{0}`")]
    NoSession(String),
    #[error("the store has a session `{0}` already")]
    Exists(String),
    /// Another writer holds the lease of the session.
    #[error("{0}")]
    Busy(String),
    /// The lease of this writer was taken by another one.
    #[error("{0}")]
    LeaseLost(String),
    #[error("the store is damaged: {0}")]
    Damaged(String),
    #[error("the copy is damaged: {0}")]
    Copy(String),
    /// Another writer of the store was in the way. The same transaction may succeed if it is tried again.
    #[error("the database of the store: {0}")]
    Conflict(String),
    #[error("{0}")]
    Name(String),
    #[error("{0}")]
    NoNode(String),
    /// A snapshot that was there when the session was opened was removed since.
    #[error("{0}")]
    Gone(String),
    /// Something that cannot be done.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Unread(#[from] LoadFailure),
    /// The database reported an error; a full disk and a lost connection are among them.
    #[error("the database of the store: {0}")]
    Database(String),
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, std::io::Error),
}

impl From<StoreError> for LoadFailure {
    fn from(error: StoreError) -> Self {
        let (code, help) = error.code_and_help();
        Self {
            code,
            message: error.to_string(),
            help: help.map(ToOwned::to_owned),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        LoadFailure::from(error).into()
    }
}

impl StoreError {
    fn code_and_help(&self) -> (Code, Option<&'static str>) {
        match self {
            Self::Unread(failure) => (failure.code, None),
            Self::Missing(_) => (
                Code::Missing,
                Some("check the path, or let opening the store make it"),
            ),
            Self::NoSession(_) => (
                Code::SessionNotFound,
                Some("`pactql sessions` lists the sessions of a store"),
            ),
            Self::Exists(_) => (Code::SessionExists, Some("choose another name")),
            Self::Busy(_) => (
                Code::SessionBusy,
                Some("try again later; readers do not wait for it"),
            ),
            Self::Name(_) => (Code::Input, None),
            Self::NoNode(_) => (
                Code::Placement,
                Some("`pactql select STORE#SESSION \"@* *\" --format ids` lists the ids"),
            ),
            Self::Gone(_) => (Code::SnapshotNotFound, Some("open the session again")),
            Self::LeaseLost(_) => (
                Code::LeaseLost,
                Some("open the session again; what was not committed is only in this process"),
            ),
            Self::OtherLayout { .. } => (Code::StoreVersion, Some("use the program that wrote it")),
            Self::Damaged(_) => (
                Code::Store,
                Some("`pactql verify` names what is damaged; go on with a backup"),
            ),
            _ => (Code::Store, None),
        }
    }
}
