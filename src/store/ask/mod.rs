//! Selectors over many sessions.

pub(crate) mod asking;
pub(crate) mod by_sql;
pub(crate) mod candidate;
pub(crate) mod candidates;
pub(crate) mod grouped;
pub(crate) mod ids;
pub(crate) mod many;
pub(crate) mod sweep;
