//! Prepared selectors.

use std::ops::Range;
use std::sync::Arc;

use super::selection::Part;
use super::{Selection, whole};
use crate::diag::{Code, Diagnostic, Error, Warning};
use crate::exec::Trace;
use crate::history::{
    History, Lookup, Moment, RangeOptions, Session, Span, Unresolved, capped, run_range,
};
use crate::ir::{Lowered, Mode, Operand, Query};
use crate::plan::{BindError, Bound, Plan, Value, bind, sources};

/// A selector compiled, with its text and its time. What fills its plan's slots stands in the query.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: Arc<str>,
    pub(super) query: Query,
    pub(super) warnings: Option<Arc<[Warning]>>,
    pub(super) plan: Arc<Plan>,
    /// Where in the text the time stands, if there is one.
    time: Option<Range<usize>>,
}

impl Statement {
    pub(super) fn new(text: &str, lowered: Lowered, plan: Arc<Plan>) -> Self {
        let warnings = (!lowered.warnings.is_empty()).then(|| lowered.warnings.into());
        Self {
            text: text.into(),
            query: lowered.query,
            warnings,
            plan,
            time: lowered.time,
        }
    }

    fn error(&self, error: BindError) -> Error {
        let code = if error.limit {
            Code::Limit
        } else {
            Code::SelectorInvalid
        };
        let mut diagnostic = match &error.param {
            None => whole(&self.text, code, error.message),
            Some(name) => {
                let diagnostic = Diagnostic::error(code, error.message);
                let written = format!("${name}");
                match self.text.find(&written) {
                    Some(at) => diagnostic.at(at..at + written.len(), "this parameter"),
                    None => diagnostic,
                }
            }
        };
        if let Some(help) = error.help {
            diagnostic.set_help(help);
        }
        Error::new(&self.text, diagnostic)
    }
}

/// A compiled selector, with its values unless parameters are open. Snapshot-free, immutable,
/// cheap to clone and to share; asking it takes no lock.
#[derive(Clone, Debug)]
pub struct Prepared {
    statement: Arc<Statement>,
    bound: Option<Arc<Bound>>,
}

impl Prepared {
    pub(super) fn new(statement: Statement) -> Result<Self, Error> {
        let statement = Arc::new(statement);
        let sources = sources(&statement.query);
        let bound = if sources.iter().copied().any(has_param) {
            None
        } else {
            let bound = bind(&statement.plan, &sources, &[]);
            Some(Arc::new(bound.map_err(|error| statement.error(error))?))
        };
        drop(sources);
        Ok(Self { statement, bound })
    }

    pub(super) fn statement(&self) -> &Statement {
        &self.statement
    }

    pub(super) fn bound(&self) -> Option<&Arc<Bound>> {
        self.bound.as_ref()
    }

    /// The selector's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.statement.text
    }

    /// The normalized form.
    #[must_use]
    pub fn query(&self) -> &Query {
        &self.statement.query
    }

    /// The canonical text (LANGUAGE §9).
    #[must_use]
    pub fn canonical(&self) -> String {
        self.statement.query.to_string()
    }

    /// SHA-256 of the canonical text, in lower-case hex digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.statement.query.fingerprint().to_string()
    }

    /// What a reader should know of the selector.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.statement.warnings.as_deref().unwrap_or(&[])
    }

    /// The names of its `$name` parameters, sorted, without the dollar sign.
    #[must_use]
    pub fn params(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for source in sources(&self.statement.query) {
            collect_params(source, &mut names);
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The same selector with values for its parameters; every one needs a value.
    ///
    /// # Errors
    /// A parameter without a value, a name it does not have, or a value that a literal in its
    /// place could not have (LANGUAGE §5).
    pub fn bind<'n>(
        &self,
        values: impl IntoIterator<Item = (&'n str, Value)>,
    ) -> Result<Self, Error> {
        let statement = &self.statement;
        let values: Vec<(Box<str>, Value)> = values
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        let known = self.params();
        // A group dropped by its form keeps its parameters in the text.
        let unknown = |name: &str| !known.contains(&name) && !mentions(&statement.text, name);
        if let Some((name, _)) = values.iter().find(|(name, _)| unknown(name)) {
            let message = format!("the selector has no parameter `${name}`");
            let mut diagnostic = whole(&statement.text, Code::SelectorInvalid, message);
            if let Some(near) = crate::diag::nearest(name, known.iter().copied()) {
                diagnostic = diagnostic.with_help(format!("there is `${near}`"));
            }
            return Err(Error::new(&statement.text, diagnostic));
        }
        let bound = bind(&statement.plan, &sources(&statement.query), &values)
            .map_err(|error| statement.error(error))?;
        Ok(Self {
            statement: Arc::clone(statement),
            bound: Some(Arc::new(bound)),
        })
    }

    /// Runs it over a session.
    ///
    /// # Errors
    /// Parameters without values; a time that leads nowhere.
    pub fn select(&self, session: &Session) -> Result<Selection, Error> {
        self.answer(session.moment(), &RangeOptions::default())
    }

    /// Runs it over a session; a range as `options` say.
    ///
    /// # Errors
    /// As [`Prepared::select`].
    pub fn select_with(
        &self,
        session: &Session,
        options: &RangeOptions,
    ) -> Result<Selection, Error> {
        self.answer(session.moment(), options)
    }

    /// Runs it over the history of a moment.
    ///
    /// # Errors
    /// As [`Prepared::select`].
    pub fn select_in(&self, history: &Arc<History>) -> Result<Selection, Error> {
        self.answer(Moment::from(Arc::clone(history)), &RangeOptions::default())
    }

    #[inline]
    fn answer(&self, history: Moment, options: &RangeOptions) -> Result<Selection, Error> {
        let bound = self.ready()?;
        let lookup = history
            .resolve(self.statement.query.time)
            .map_err(|error| self.unresolved(error))?;
        let warnings = self.warnings_shared();
        match lookup {
            Lookup::One(place) => Ok(Selection::one(bound, history, place, warnings)),
            Lookup::All => Ok(Selection::lazy(bound, history, Part::all(), warnings)),
            Lookup::Range(span) => Ok(self.range(bound, history, span, options)),
        }
    }

    fn range(
        &self,
        bound: &Arc<Bound>,
        history: Moment,
        span: Span,
        options: &RangeOptions,
    ) -> Selection {
        let latest = match self.statement.query.controls.mode {
            Mode::Pairwise | Mode::Reduce => {
                let text = &self.statement.text;
                let trace = &mut Trace::off();
                let diff = run_range(text, bound, &history, span, options, trace);
                return Selection::range(diff, self.warnings_shared());
            }
            Mode::Union => false,
            Mode::Latest => true,
        };
        let (span, errors) = capped(span, options);
        // A list has no room for what a diff says of its extent.
        let mut warnings = self.warnings().to_vec();
        let extent = span.warning().into_iter();
        let extent = extent.chain(errors.into_iter().map(|error| error.message));
        warnings.extend(extent.map(Warning::new));
        let warnings = (!warnings.is_empty()).then(|| warnings.into());
        let part = Part::Several {
            newest: span.newest,
            oldest: span.oldest,
            latest,
        };
        Selection::lazy(bound, history, part, warnings)
    }

    /// The plan with its values, or which parameter has none.
    pub(super) fn ready(&self) -> Result<&Arc<Bound>, Error> {
        self.bound.as_ref().ok_or_else(|| {
            let statement = &self.statement;
            let error = bind(&statement.plan, &sources(&statement.query), &[]).err();
            statement
                .error(error.unwrap_or_else(|| BindError::new(None, "a parameter has no value")))
        })
    }

    fn warnings_shared(&self) -> Option<Arc<[Warning]>> {
        self.statement.warnings.clone()
    }

    pub(super) fn unresolved(&self, error: Unresolved) -> Error {
        let text = &self.statement.text;
        let trimmed = text.trim_ascii();
        let start = text.len() - text.trim_ascii_start().len();
        let all = start..start + trimmed.len();
        let diagnostic = match error {
            Unresolved::NotFound { why, which } => {
                let (span, label) = match &self.statement.time {
                    Some(time) => (time.clone(), why),
                    None => (all, "no time means `@t0`"),
                };
                Diagnostic::error(Code::SnapshotNotFound, "no such snapshot")
                    .at(span, label)
                    .with_help(which)
            }
            Unresolved::NoWorkingState => {
                Diagnostic::error(Code::NoWorkingState, "the session has no working state")
                    .at(all, "no time means the working state")
                    .with_help(format!("`@t0 {trimmed}` asks the newest snapshot"))
            }
        };
        Error::new(text, diagnostic)
    }
}

/// Whether `$name` stands in a text as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    text.match_indices('$').any(|(at, _)| {
        text[at + 1..].strip_prefix(name).is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || "_-".contains(next))
        })
    })
}

fn has_param(source: &Operand) -> bool {
    match source {
        Operand::Literal(_) => false,
        Operand::Param(_) => true,
        Operand::List(items) => items.iter().any(has_param),
    }
}

fn collect_params<'a>(source: &'a Operand, names: &mut Vec<&'a str>) {
    match source {
        Operand::Literal(_) => {}
        Operand::Param(name) => names.push(name),
        Operand::List(items) => items.iter().for_each(|item| collect_params(item, names)),
    }
}
