//! What the command line asks of a server.

use crate::tree::Limits;
use std::time::Duration;

/// What a server is to be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// What holds for every session that is read.
    pub(crate) limits: Limits,
    /// Whether the listed names of tools have a dot. Both forms are answered.
    pub(crate) dotted_names: bool,
    /// How long a call may run.
    pub(crate) timeout: Option<Duration>,
}
