//! How many sessions are queried, and why so.

use std::fmt;

/// How sessions are read, and why. See [`StoreIds::route`](crate::store::StoreIds::route).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreRoute {
    /// By a statement for each group of sessions that are queried for the first time. One query is cheaper than
    /// loading, so a session is loaded on its second use.
    Statement,
    /// Sessions are loaded.
    Sessions(StoreReason),
}

/// Why sessions are loaded to be queried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreReason {
    /// Nodes or differences are wanted.
    Nodes,
    /// There are few sessions.
    Few,
    /// Options for a range were given, which no statement has.
    Options,
    /// The database cannot say the selector.
    Unsupported,
}

impl fmt::Display for StoreRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Statement => "a statement for each group of sessions",
            Self::Sessions(StoreReason::Nodes) => "loaded sessions: nodes are wanted",
            Self::Sessions(StoreReason::Few) => "loaded sessions: there are few",
            Self::Sessions(StoreReason::Options) => "loaded sessions: a range has options",
            Self::Sessions(StoreReason::Unsupported) => {
                "loaded sessions: the database cannot say the selector"
            }
        })
    }
}
