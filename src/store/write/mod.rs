//! Commits, imports and leases: everything that adds rows.

pub(crate) mod change;
pub(crate) mod core;
pub(crate) mod garbage;
pub(crate) mod import;
pub(crate) mod keeper;
pub(crate) mod lease;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod mark;
pub(crate) mod process;
pub(crate) mod queue;
pub(crate) mod records;
pub(crate) mod writer;
