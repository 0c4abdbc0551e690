//! The tables of STORE §2, and units of snapshots as their rows and back.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod present;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod sums;
pub(crate) mod views;
pub(crate) mod wide;
