//! Sessions by name, and snapshots out of their rows.

pub(crate) mod catalog;
pub(crate) mod load;
pub(crate) mod names;
pub(crate) mod open;
pub(crate) mod stored;
