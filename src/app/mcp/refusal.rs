//! Why a call is refused, in the form that clients of the tool know.
//!
//! The tools over caches follow another program's interface (RUNTIME §6), whose errors have six codes, fixed messages
//! and nothing else. All other tools answer with the errors of the command line.

use crate::app::present::{Exit, Failure};
use serde_json::{Value, json};

/// A failure, and how it is sent.
#[derive(Debug)]
pub(super) struct Refusal {
    failure: Failure,
    code: Option<Frozen>,
}

/// The codes of the interface of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frozen {
    CacheMissing,
    CacheInvalid,
    InvalidQuery,
    InvalidBudget,
    IoError,
    InternalError,
}

impl Frozen {
    /// The code, and its message.
    fn parts(self) -> (&'static str, &'static str) {
        match self {
            Self::CacheMissing => ("cache_missing", "Cache does not exist"),
            Self::CacheInvalid => ("cache_invalid", "Cache exists but is invalid"),
            Self::InvalidQuery => ("invalid_query", "Query is invalid"),
            Self::InvalidBudget => ("invalid_budget", "Budget is invalid"),
            Self::IoError => ("io_error", "I/O error occurred"),
            Self::InternalError => ("internal_error", "Internal error"),
        }
    }

    /// The code of a failure of a call whose arguments are right. A path that is not allowed is none that exists.
    fn of(failure: &Failure) -> Self {
        match failure.exit() {
            Exit::Missing | Exit::Value => Self::CacheMissing,
            Exit::Input => Self::CacheInvalid,
            Exit::Io => Self::IoError,
            _ => Self::InternalError,
        }
    }
}

impl Refusal {
    /// A failure in the form of the command line.
    pub(super) fn plain(failure: Failure) -> Self {
        Self {
            failure,
            code: None,
        }
    }

    /// A failure of a tool over caches.
    pub(super) fn frozen(failure: Failure) -> Self {
        let code = Some(Frozen::of(&failure));
        Self { failure, code }
    }

    /// A wrong value of the argument `name` of a tool over caches.
    pub(super) fn of_argument(failure: Failure, name: &str) -> Self {
        let code = match name {
            "budget" => Some(Frozen::InvalidBudget),
            "query" => Some(Frozen::InvalidQuery),
            "cache" | "root" => Some(Frozen::CacheMissing),
            _ => None,
        };
        Self { failure, code }
    }

    /// What went wrong, for the log.
    pub(super) fn failure(&self) -> &Failure {
        &self.failure
    }

    /// What the client gets.
    pub(super) fn json(&self) -> Value {
        match self.code {
            None => self.failure.json(),
            Some(code) => {
                let (code, message) = code.parts();
                json!({"error": {"code": code, "message": message}})
            }
        }
    }
}
