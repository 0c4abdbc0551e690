//! Requests for changes that were made, by the names that clients give them. It must not know what they change.

use serde::{Deserialize, Serialize};

/// A request that was done, so that a client which repeats it gets the same answer, and nothing is done twice. It is kept
/// with the change that it made, in one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DoneRequest {
    /// What the client calls it.
    pub(crate) key: String,
    /// Of all that was asked for.
    pub(crate) hash: String,
    pub(crate) answer: DoneAnswer,
}

/// What a client is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum DoneAnswer {
    /// A JSON text.
    Said(String),
    /// What the commit says that is about to be made: it is put here by the commit itself.
    OfCommit,
}
