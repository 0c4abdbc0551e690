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

type Frozen = &'static (&'static str, &'static str);

const CACHE_MISSING: Frozen = &("cache_missing", "Cache does not exist");
const CACHE_INVALID: Frozen = &("cache_invalid", "Cache exists but is invalid");
const INVALID_QUERY: Frozen = &("invalid_query", "Query is invalid");
const INVALID_BUDGET: Frozen = &("invalid_budget", "Budget is invalid");
const IO_ERROR: Frozen = &("io_error", "I/O error occurred");
const INTERNAL_ERROR: Frozen = &("internal_error", "Internal error");

impl Refusal {
    pub(super) fn plain(failure: Failure) -> Self {
        Self {
            failure,
            code: None,
        }
    }

    /// A failure of a tool over caches, whose arguments are right. A path that is not allowed is none that exists.
    pub(super) fn frozen(failure: Failure) -> Self {
        let code = Some(match failure.exit() {
            Exit::Missing | Exit::Value => CACHE_MISSING,
            Exit::Input => CACHE_INVALID,
            Exit::Io => IO_ERROR,
            _ => INTERNAL_ERROR,
        });
        Self { failure, code }
    }

    /// A wrong value of the argument `name` of a tool over caches.
    pub(super) fn of_argument(failure: Failure, name: String) -> Self {
        let code = match &*name {
            "budget" => Some(INVALID_BUDGET),
            "query" => Some(INVALID_QUERY),
            "cache" | "root" => Some(CACHE_MISSING),
            _ => None,
        };
        Self { failure, code }
    }

    pub(super) fn failure(&self) -> &Failure {
        &self.failure
    }

    pub(super) fn json(&self) -> Value {
        match self.code {
            None => self.failure.json(),
            Some((code, message)) => json!({"error": {"code": code, "message": message}}),
        }
    }
}
