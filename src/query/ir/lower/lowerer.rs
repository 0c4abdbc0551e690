//! The state of one lowering, and how mistakes are recorded.

use crate::query::ir::edition::Edition;
use crate::query::ir::pattern::Patterns;
use crate::query::ir::purpose::{InsertionPoint, Purpose};
pub(super) use crate::query::syntax::MAX_MISTAKES;
use crate::query::syntax::Span;
use crate::support::diag::{Diagnostic, Warning};

/// The most groups of a union (LANGUAGE §10).
pub const MAX_GROUPS: usize = 256;
/// The most steps of a group, or hops of a position (LANGUAGE §10).
pub const MAX_STEPS: usize = 64;
/// The most values of a list or depth set, as written (LANGUAGE §10).
pub const MAX_VALUES: usize = 1_024;

/// The state of one lowering. Each file of this module adds methods to it. A method that finds a
/// mistake records it and returns `None`, and its caller continues to find more.
#[derive(Default)]
pub(super) struct Lowerer {
    pub(super) edition: Edition,
    pub(super) purpose: Purpose,
    pub(super) insertion: InsertionPoint,
    /// Whether the selector names its time, which facets need.
    pub(super) timed: bool,
    /// Whether this is a piece of a selector that does not parse.
    pub(super) fragment: bool,
    /// Whether to accept constructs of later editions, to find out what was meant.
    pub(super) lenient: bool,
    /// The normal form of each construct, if requested.
    pub(super) notes: Option<Vec<(Span, String)>>,
    /// The first `:not(:has-result)`, also with tests inside.
    pub(super) unanswered: Option<Span>,
    /// The total size of the selector's patterns.
    pub(super) patterns: Patterns,
    /// At most [`MAX_MISTAKES`]; further ones are dropped.
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Warning>,
    /// Of what is meant as it stands, and may surprise: canonical text has them, too.
    pub(super) remarks: Vec<Warning>,
}

impl Lowerer {
    pub(super) fn new(edition: Edition, timed: bool) -> Self {
        Self {
            edition,
            timed,
            ..Self::default()
        }
    }

    pub(super) fn warn(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: &str,
        help: impl Into<String>,
    ) {
        let warning = Warning::new(message).at(span, label);
        self.warnings.push(warning.with_help(help));
    }
}
