//! The state of one lowering, and how mistakes are recorded.

use crate::query::ir::edition::Edition;
use crate::query::ir::pattern::Patterns;
use crate::query::ir::purpose::{InsertionPoint, Purpose};
use crate::query::syntax::{MAX_MISTAKES, Span};
use crate::support::diag::{Code, Diagnostic, Edit, Warning};

/// The most groups of a union (LANGUAGE §10).
pub const MAX_GROUPS: usize = 256;
/// The most steps of a group, or hops of a position (LANGUAGE §10).
pub const MAX_STEPS: usize = 64;
/// The most values of a list or depth set, as written (LANGUAGE §10).
pub const MAX_VALUES: usize = 1_024;

/// The state of one lowering. Each file of this module adds methods to it. A method that finds a
/// mistake records it and returns `None`, and its caller continues to find more.
pub(super) struct Lowerer {
    pub(super) edition: Edition,
    pub(super) purpose: Purpose,
    /// The insertion point of a place.
    pub(super) insertion: InsertionPoint,
    /// Whether the selector names its time, which facets need.
    pub(super) timed: bool,
    /// Whether this is a piece of a selector that does not parse.
    pub(super) fragment: bool,
    /// Whether to accept constructs of later editions, to find out what was meant.
    pub(super) lenient: bool,
    /// The normal form of each construct, if requested.
    pub(super) notes: Option<Vec<(Span, String)>>,
    /// The total size of the selector's patterns.
    pub(super) patterns: Patterns,
    /// At most [`MAX_MISTAKES`]; further ones are dropped.
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Warning>,
}

impl Lowerer {
    pub(super) fn new(edition: Edition, timed: bool) -> Self {
        Self {
            edition,
            purpose: Purpose::default(),
            insertion: InsertionPoint::default(),
            timed,
            fragment: false,
            lenient: false,
            notes: None,
            patterns: Patterns::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Records a mistake of meaning and returns it for its help text.
    pub(super) fn invalid(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: &str,
    ) -> ErrorHelp<'_> {
        self.error(Code::SelectorInvalid, span, message, label)
    }

    pub(super) fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        label: &str,
    ) -> ErrorHelp<'_> {
        if self.errors.len() >= MAX_MISTAKES {
            return ErrorHelp(None);
        }
        let error = Diagnostic::error(code, message).at(span, label);
        self.errors.push(error);
        ErrorHelp(self.errors.last_mut())
    }

    /// Refuses `what` unless the edition is at least `since`. `instead` is how the edition spells
    /// it, if it can.
    pub(super) fn needs(
        &mut self,
        since: Edition,
        span: Span,
        what: &str,
        instead: Option<String>,
    ) -> bool {
        if self.edition >= since || self.lenient {
            return true;
        }
        let advice = self.lacks(since, span, what);
        match instead {
            Some(instead) => advice.help(format!("write `{instead}`, or choose edition `{since}`")),
            None => advice.help(format!("edition `{since}` has it")),
        }
        false
    }

    /// Refuses `what`, which the edition lacks and `since` has.
    pub(super) fn lacks(&mut self, since: Edition, span: Span, what: &str) -> ErrorHelp<'_> {
        let edition = self.edition;
        self.error(
            Code::Edition,
            span,
            format!("{what} is not part of edition `{edition}`"),
            &format!("needs edition `{since}`"),
        )
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

/// The error recorded last, for its help text. `None` if it was dropped.
pub(super) struct ErrorHelp<'a>(Option<&'a mut Diagnostic>);

impl ErrorHelp<'_> {
    /// Adds a replacement that undoes the mistake.
    pub(super) fn write(mut self, span: Span, text: impl Into<String>) -> Self {
        if let Some(diagnostic) = &mut self.0 {
            diagnostic.add_edit(Edit::new(span, text));
        }
        self
    }

    pub(super) fn help(self, help: impl Into<String>) {
        if let Some(diagnostic) = self.0 {
            diagnostic.set_help(help);
        }
    }
}
