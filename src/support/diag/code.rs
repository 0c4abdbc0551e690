//! Error codes (LANGUAGE §10, RUNTIME §3, STORE §3 and §5).

use std::fmt;

/// The kind of an error. Codes never change their meaning, so callers may match on them.
///
/// ```
/// let error = pactql::Engine::new().check("@t0..@c3 .cb").unwrap_err();
/// assert_eq!(error.code(), pactql::Code::SnapshotRangeKindMismatch);
/// assert_eq!(error.code().as_str(), "E_SNAPSHOT_RANGE_KIND_MISMATCH");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// `E_SELECTOR_INVALID`: a mistake of grammar or meaning.
    SelectorInvalid,
    /// `E_EDITION`: a construct that the chosen edition does not have.
    Edition,
    /// `E_SNAPSHOT_RANGE_KIND_MISMATCH`: a range from `@t` to `@c`, or the reverse.
    SnapshotRangeKindMismatch,
    /// `E_SNAPSHOT_RANGE_WILDCARD`: `*` as an end of a range, other than `@t-*`.
    SnapshotRangeWildcard,
    /// `E_SNAPSHOT_RANGE_LIMIT`: a range was cut to fewer snapshots than it names.
    SnapshotRangeLimit,
    /// `E_SNAPSHOT_NOT_FOUND`: the snapshot does not exist.
    SnapshotNotFound,
    /// `E_FACET_NEEDS_SNAPSHOT`: a derived facet in a selector without a time.
    FacetNeedsSnapshot,
    /// `E_LIMIT`: the selector exceeds a limit on its size.
    Limit,
    /// `E_INPUT`: a document, a log or the text of a node is invalid.
    Input,
    /// `E_PLACEMENT`: a mutation names no place, several places, or one that the order of siblings
    /// does not allow.
    Placement,
    /// `E_SEALED`: a mutation would change a sealed core, or a committed node in a way that only new
    /// nodes may change.
    Sealed,
    /// `E_REGION`: a mutation would move, remove or fill the root or a region, or make a turn by hand.
    Region,
    /// `E_HEADER`: a node is given a header that is unknown, of the wrong type, or not the caller's to
    /// give.
    Header,
    /// `E_PINNED`: a mutation would take away a node that a reference pins.
    Pinned,
    /// `E_DUPLICATE_ID`: a node is given an id that is or was in use.
    DuplicateId,
    /// `E_SESSION_NOT_FOUND`: the store has no session of this name.
    SessionNotFound,
    /// `E_SESSION_EXISTS`: the store has a session of this name already.
    SessionExists,
    /// `E_SESSION_BUSY`: another writer holds the lease of the session.
    SessionBusy,
    /// `E_LEASE_LOST`: the lease of this writer ran out and another one took it.
    LeaseLost,
    /// `E_STORE_VERSION`: the store has the layout of another version.
    StoreVersion,
    /// `E_CANCELLED`: the work was cancelled before it was done; see [`Cancel`](crate::Cancel).
    Cancelled,
    /// `E_SQL`: a construct of the selector that a dialect of SQL cannot say.
    Sql,
    /// `E_MISSING`: there is no such store.
    Missing,
    /// `E_STORE`: the store cannot be read or written, or is damaged.
    Store,
}

impl Code {
    /// The code as it is printed, `E_…`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SelectorInvalid => "E_SELECTOR_INVALID",
            Self::Edition => "E_EDITION",
            Self::SnapshotRangeKindMismatch => "E_SNAPSHOT_RANGE_KIND_MISMATCH",
            Self::SnapshotRangeWildcard => "E_SNAPSHOT_RANGE_WILDCARD",
            Self::SnapshotRangeLimit => "E_SNAPSHOT_RANGE_LIMIT",
            Self::SnapshotNotFound => "E_SNAPSHOT_NOT_FOUND",
            Self::FacetNeedsSnapshot => "E_FACET_NEEDS_SNAPSHOT",
            Self::Limit => "E_LIMIT",
            Self::Input => "E_INPUT",
            Self::Placement => "E_PLACEMENT",
            Self::Sealed => "E_SEALED",
            Self::Region => "E_REGION",
            Self::Header => "E_HEADER",
            Self::Pinned => "E_PINNED",
            Self::DuplicateId => "E_DUPLICATE_ID",
            Self::SessionNotFound => "E_SESSION_NOT_FOUND",
            Self::SessionExists => "E_SESSION_EXISTS",
            Self::SessionBusy => "E_SESSION_BUSY",
            Self::LeaseLost => "E_LEASE_LOST",
            Self::StoreVersion => "E_STORE_VERSION",
            Self::Cancelled => "E_CANCELLED",
            Self::Sql => "E_SQL",
            Self::Missing => "E_MISSING",
            Self::Store => "E_STORE",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
