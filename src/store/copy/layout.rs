//! The tables of STORE §2 as files: where each is.
//!
//! This file must not know how a file is written, nor a database.

/// Where the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One file with the rows of all sessions.
    Whole,
    /// Files of a bucket, to which later exports add files: rows that never change.
    Added,
    /// One file of each bucket, which later exports replace.
    Replaced,
}

/// A table of a copy.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
}

/// The tables of a copy. `lease` is of the moment alone, and the rows of `body` are in `node`.
pub(crate) const TABLES: &[Table] = &[
    Table::new("format", Place::Whole),
    Table::new("session", Place::Whole),
    Table::new("snapshot", Place::Whole),
    Table::new("unit", Place::Added),
    Table::new("placement", Place::Replaced),
    Table::new("node", Place::Added),
    Table::new("attr", Place::Added),
    Table::new("attempt", Place::Replaced),
    Table::new("pin", Place::Replaced),
    Table::new("retired", Place::Replaced),
];

impl Table {
    const fn new(name: &'static str, place: Place) -> Self {
        Self { name, place }
    }
}
