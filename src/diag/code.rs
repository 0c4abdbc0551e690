//! The stable names of what can go wrong (LANGUAGE §10).

use std::fmt;

/// What kind of mistake an error is. Callers may match on it: codes never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// `E_SELECTOR_INVALID`: the selector breaks the grammar, or has no meaning.
    SelectorInvalid,
    /// `E_EDITION`: a construct of a later edition than the chosen one.
    Edition,
    /// `E_SNAPSHOT_RANGE_KIND_MISMATCH`: a range from `@t` to `@c`, or the reverse.
    SnapshotRangeKindMismatch,
    /// `E_SNAPSHOT_RANGE_WILDCARD`: `*` as an end of a range, other than `@t-*`.
    SnapshotRangeWildcard,
    /// `E_SNAPSHOT_RANGE_LIMIT`: a range took fewer snapshots than it names.
    SnapshotRangeLimit,
    /// `E_SNAPSHOT_NOT_FOUND`: no such snapshot.
    SnapshotNotFound,
    /// `E_NO_WORKING_STATE`: the selector names no time and the session has no working state.
    NoWorkingState,
    /// `E_FACET_NEEDS_SNAPSHOT`: a derived facet in a selector without a time.
    FacetNeedsSnapshot,
    /// `E_LIMIT`: the selector is larger than any selector may be.
    Limit,
    /// `E_INPUT`: a document or a log is wrong.
    Input,
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
            Self::NoWorkingState => "E_NO_WORKING_STATE",
            Self::FacetNeedsSnapshot => "E_FACET_NEEDS_SNAPSHOT",
            Self::Limit => "E_LIMIT",
            Self::Input => "E_INPUT",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
