//! Why a store could not do what was requested.

use std::path::PathBuf;

use crate::history::LoadFailure;
use crate::support::diag::{Code, Error};

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
    /// A log has what was erased from this session.
    #[error("a text was erased from `{0}`, and the log still has it")]
    Erased(String),
    #[error("the store is damaged: {0}")]
    Damaged(String),
    #[error("the copy is damaged: {0}")]
    Copy(String),
    #[error("`{0}` has changed meanwhile; import the log again")]
    Meanwhile(String),
    /// Another writer of the store was in the way. The same transaction may succeed if it is tried again.
    #[error("the database of the store: {0}")]
    Conflict(String),
    #[error("{0}")]
    Refused(String),
    /// A refusal with a code of its own.
    #[error("{1}")]
    Coded(Code, String),
    #[error(transparent)]
    Unread(#[from] LoadFailure),
    /// No space is left on the disk of the store.
    #[error("the database of the store: {0}")]
    Full(String),
    /// The database reported an error; a lost connection is among them.
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
            help: (!help.is_empty()).then(|| help.to_owned()),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        LoadFailure::from(error).into()
    }
}

impl StoreError {
    fn code_and_help(&self) -> (Code, &'static str) {
        match self {
            Self::Unread(failure) => (failure.code, ""),
            Self::Missing(_) => {
                let help = "check the path, or let opening the store make it";
                (Code::Missing, help)
            }
            Self::NoSession(_) => {
                let help = "`pactql sessions` lists the sessions of a store";
                (Code::SessionNotFound, help)
            }
            Self::Exists(_) => (Code::SessionExists, "choose another name"),
            Self::Erased(_) => {
                let help = "to go on with the log, first `pactql store delete STORE#NAME`, \
                    then import it with `--redact PATTERN`, which takes the text out";
                (Code::SessionExists, help)
            }
            Self::OtherLayout { .. } => (Code::StoreVersion, "use the program that wrote it"),
            Self::Damaged(_) => {
                let help = "`pactql verify` names what is damaged; go on with a backup";
                (Code::Store, help)
            }
            Self::Coded(code, _) => {
                let help = match code {
                    Code::SessionBusy => "try again later; readers do not wait for it",
                    Code::Placement => {
                        "`pactql select STORE#SESSION \"@* *\" --format ids` lists the ids"
                    }
                    Code::SnapshotNotFound => "open the session again",
                    Code::Missing => "make it, or check the path",
                    Code::Sql => "leave `--via sql` out: then such sessions are loaded",
                    Code::LeaseLost => {
                        "open the session again; what was not committed is only in this process"
                    }
                    _ => "",
                };
                (*code, help)
            }
            _ => (Code::Store, ""),
        }
    }
}
