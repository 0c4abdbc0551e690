//! A compiled selector, before and after its parameters have values.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::query::ir::{Edition, InsertionPoint, Lowered, QueryTime, RangeAnswer, SelectorQuery};
use crate::query::plan::{BindError, Bound, Plan, Value, bind, compile, sources};
use crate::support::diag::{Diagnostic, Error, Warning};

/// A compiled selector. The values of the plan's slots are in the query.
#[derive(Debug)]
pub(crate) struct CompiledSelector {
    pub(super) text: Arc<str>,
    pub(super) query: SelectorQuery,
    /// The names of its parameters, sorted.
    pub(super) params: Box<[Box<str>]>,
    pub(super) warnings: Option<Arc<[Warning]>>,
    pub(super) plan: Plan,
    pub(super) edition: Edition,
    /// The byte range of the time in the text, if it has one.
    pub(super) time: Option<Range<usize>>,
    /// Where among the children of its nodes, if it is the place of a mutation.
    pub(super) insertion: InsertionPoint,
}

/// A compiled selector and its plan for some values. In one, as an answer that runs later holds both.
#[derive(Debug)]
pub(crate) struct BoundSelector {
    pub(super) statement: Arc<CompiledSelector>,
    pub(super) bound: Bound,
}

impl Deref for BoundSelector {
    type Target = Bound;

    #[inline]
    fn deref(&self) -> &Bound {
        &self.bound
    }
}

impl CompiledSelector {
    pub(super) fn new(text: &str, edition: Edition, lowered: Lowered) -> Self {
        let mut warnings = lowered.warnings;
        warnings.extend(lowered.remarks);
        let warnings = (!warnings.is_empty()).then(|| warnings.into());
        Self {
            text: text.into(),
            params: lowered.query.params().into_iter().map(Into::into).collect(),
            plan: compile(&lowered.query),
            query: lowered.query,
            warnings,
            edition,
            time: lowered.time,
            insertion: lowered.insertion,
        }
    }

    /// Whether it compares the snapshots of a range; else it asks for rows.
    pub(super) fn compares(&self) -> bool {
        let pairs = matches!(
            self.query.controls.mode,
            RangeAnswer::Pairwise | RangeAnswer::Reduce
        );
        pairs && matches!(self.query.time, QueryTime::Range(..))
    }

    pub(super) fn bind(&self, values: &[(&str, Value)]) -> Result<Bound, Error> {
        let bound = bind(&self.plan, &sources(&self.query), values);
        bound.map_err(|error| self.error(error))
    }

    pub(super) fn error(&self, error: BindError) -> Error {
        let diagnostic = Diagnostic::error(error.reason.code, error.to_string());
        let diagnostic = match &error.param {
            None => diagnostic.at(0..self.text.len(), ""),
            Some(name) => {
                let written = format!("${name}");
                match self.text.find(&written) {
                    Some(at) => diagnostic.at(at..at + written.len(), "this parameter"),
                    None => diagnostic,
                }
            }
        };
        Error::new(&self.text, diagnostic.with_any_help(error.reason.help))
    }
}
