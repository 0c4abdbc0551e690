//! Error codes (LANGUAGE §10, RUNTIME §3, STORE §3 and §5).

use crate::support::macros::names;

names! {
    /// The kind of an error. Codes never change their meaning, so callers may match on them.
    ///
    /// ```
    /// let error = pactql::Engine::new().check("@t0..@c3 .cb").unwrap_err();
    /// assert_eq!(error.code(), pactql::Code::SnapshotRangeKindMismatch);
    /// assert_eq!(error.code().as_str(), "E_SNAPSHOT_RANGE_KIND_MISMATCH");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Code: as_str {
        /// `E_SELECTOR_INVALID`: a mistake of grammar or meaning.
        SelectorInvalid = "E_SELECTOR_INVALID",
        /// `E_EDITION`: a construct that the chosen edition does not have.
        Edition = "E_EDITION",
        /// `E_SNAPSHOT_RANGE_KIND_MISMATCH`: a range from `@t` to `@c`, or the reverse.
        SnapshotRangeKindMismatch = "E_SNAPSHOT_RANGE_KIND_MISMATCH",
        /// `E_SNAPSHOT_RANGE_WILDCARD`: `*` as an end of a range, other than `@t-*`.
        SnapshotRangeWildcard = "E_SNAPSHOT_RANGE_WILDCARD",
        /// `E_SNAPSHOT_RANGE_LIMIT`: a range was cut to fewer snapshots than it names.
        SnapshotRangeLimit = "E_SNAPSHOT_RANGE_LIMIT",
        /// `E_SNAPSHOT_NOT_FOUND`: the snapshot does not exist.
        SnapshotNotFound = "E_SNAPSHOT_NOT_FOUND",
        /// `E_FACET_NEEDS_SNAPSHOT`: a derived facet in a selector without a time.
        FacetNeedsSnapshot = "E_FACET_NEEDS_SNAPSHOT",
        /// `E_LIMIT`: the selector exceeds a limit on its size.
        Limit = "E_LIMIT",
        /// `E_INPUT`: a document, a log or the text of a node is invalid.
        Input = "E_INPUT",
        /// `E_PLACEMENT`: a mutation names no place, several places, or one that the order of siblings
        /// does not allow.
        Placement = "E_PLACEMENT",
        /// `E_SEALED`: a mutation would change a sealed core, or a committed node in a way that only new
        /// nodes may change.
        Sealed = "E_SEALED",
        /// `E_REGION`: a mutation would move, remove or fill the root or a region, or make a turn by hand.
        Region = "E_REGION",
        /// `E_HEADER`: a node is given a header that is unknown, of the wrong type, or not the caller's to
        /// give.
        Header = "E_HEADER",
        /// `E_PINNED`: a mutation would take away a node that a reference pins.
        Pinned = "E_PINNED",
        /// `E_DUPLICATE_ID`: a node is given an id that is or was in use.
        DuplicateId = "E_DUPLICATE_ID",
        /// `E_SESSION_NOT_FOUND`: the store has no session of this name.
        SessionNotFound = "E_SESSION_NOT_FOUND",
        /// `E_SESSION_EXISTS`: the store has a session of this name already.
        SessionExists = "E_SESSION_EXISTS",
        /// `E_SESSION_BUSY`: another writer holds the lease of the session.
        SessionBusy = "E_SESSION_BUSY",
        /// `E_LEASE_LOST`: the lease of this writer ran out and another one took it.
        LeaseLost = "E_LEASE_LOST",
        /// `E_STORE_VERSION`: the store has the layout of another version.
        StoreVersion = "E_STORE_VERSION",
        /// `E_CANCELLED`: the work was cancelled before it was done; see [`Cancel`](crate::Cancel).
        Cancelled = "E_CANCELLED",
        /// `E_SQL`: a construct of the selector that a dialect of SQL cannot say.
        Sql = "E_SQL",
        /// `E_MISSING`: there is no such store.
        Missing = "E_MISSING",
        /// `E_STORE`: the store cannot be read or written, or is damaged.
        Store = "E_STORE",
    }
}

impl<'de> serde::Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown code `{name}`")))
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
