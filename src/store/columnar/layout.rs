//! The tables of STORE §2 as files: where each is.
//!
//! This file must not know how a file is written, nor a database.

/// Where the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// One file with the rows of all sessions.
    Whole,
    /// Files of a bucket, a number of sessions.
    Bucket,
}

/// The tables of a copy. `lease` is of the moment alone, and the rows of `body` are in `node`.
pub(super) const TABLES: &[(&str, Place)] = &[
    ("format", Place::Whole),
    ("session", Place::Whole),
    ("snapshot", Place::Whole),
    ("unit", Place::Bucket),
    ("placement", Place::Bucket),
    ("node", Place::Bucket),
    ("attr", Place::Bucket),
    ("attempt", Place::Bucket),
    ("pin", Place::Bucket),
    ("retired", Place::Bucket),
];
