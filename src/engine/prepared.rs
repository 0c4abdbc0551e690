//! Prepared selectors: a plan with its values, and the calls that run it.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::answer::Answer;
use super::nothing::NothingFound;
use super::pipeline::Op;
use super::selection::{RowSource, Selection};
use super::statement::{BoundSelector, CompiledSelector};
use crate::advice::EmptyReason;
use crate::history::{
    History, Lookup, Moment, RangeDiff, RangeOptions, Session, SnapshotRange, Union, Unresolved,
    capped, run_range,
};
use crate::query::exec::Trace;
use crate::query::ir::{QueryTime, RangeAnswer, SelectorQuery};
use crate::query::plan::{BindError, Bound, Value, bind, compile, sources};
use crate::query::sql;
use crate::support::cancel;
use crate::support::diag::{Code, Diagnostic, Error, Warning, nearest};

const ROWS_HELP: &str =
    "`rows` returns the nodes of a snapshot, of `@*`, or of `@mode=union` and `@mode=latest`";
const RANGE_HELP: &str =
    "`range` returns the diffs of a range; `@mode=union` or `@mode=latest` returns rows";

/// A compiled selector, and the values of its `$name` parameters once they are bound. Independent of
/// any session, immutable, cheap to clone; running it takes no lock.
///
/// ```
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let by_role = Engine::new().prepare("@t0 .cb[role=$role]")?;
/// for role in ["user", "assistant"] {
///     let rows = by_role.bind([("role", role.into())])?.rows(&session)?;
///     println!("{role}: {}", rows.count());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Prepared {
    values: ParameterValues,
    /// Whether it compares the snapshots of a range; else it asks for rows.
    compares: bool,
}

/// A compiled selector, with values for its parameters or without.
#[derive(Clone, Debug)]
enum ParameterValues {
    Missing(Arc<CompiledSelector>),
    Bound(Arc<BoundSelector>),
}

/// The selector as it was written.
impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Prepared");
        out.field("text", &self.text()).finish_non_exhaustive()
    }
}

/// Why nothing was found, and what was read for that.
type WhyNothing = (Vec<EmptyReason>, Option<NothingFound>);

impl Prepared {
    pub(super) fn new(statement: CompiledSelector) -> Result<Self, Error> {
        let statement = Arc::new(statement);
        if !statement.params.is_empty() {
            return Ok(Self {
                compares: statement.compares(),
                values: ParameterValues::Missing(statement),
            });
        }
        let bound = statement.bind(&[])?;
        Ok(Self::with(&statement, bound))
    }

    fn with(statement: &Arc<CompiledSelector>, bound: Bound) -> Self {
        let statement = Arc::clone(statement);
        Self {
            compares: statement.compares(),
            values: ParameterValues::Bound(Arc::new(BoundSelector { statement, bound })),
        }
    }

    #[inline]
    pub(super) fn statement(&self) -> &Arc<CompiledSelector> {
        match &self.values {
            ParameterValues::Missing(statement) => statement,
            ParameterValues::Bound(bound) => &bound.statement,
        }
    }

    #[inline]
    pub(crate) fn bound(&self) -> Option<&Arc<BoundSelector>> {
        match &self.values {
            ParameterValues::Missing(_) => None,
            ParameterValues::Bound(bound) => Some(bound),
        }
    }

    /// The selector as written.
    pub fn text(&self) -> &str {
        &self.statement().text
    }

    /// A copy whose tests count what they read.
    pub(super) fn observed(&self) -> Result<Self, Error> {
        Ok(Self::with(self.statement(), self.ready()?.observed()))
    }

    /// The normalized form.
    #[doc(hidden)]
    pub fn query(&self) -> &SelectorQuery {
        &self.statement().query
    }

    /// The canonical text (LANGUAGE §9).
    pub fn canonical(&self) -> String {
        self.statement().query.to_string()
    }

    /// SHA-256 of the canonical text, in lower-case hex digits.
    pub fn fingerprint(&self) -> String {
        self.statement().query.fingerprint()
    }

    /// Warnings about the selector.
    pub fn warnings(&self) -> &[Warning] {
        self.statement().warnings.as_deref().unwrap_or(&[])
    }

    /// The selector as one statement of SQL (STORE §5).
    ///
    /// # Errors
    /// `E_SQL` for what the dialect cannot say, and for a parameter: a statement is made for values.
    pub fn sql(
        &self,
        dialect: sql::Dialect,
        options: &sql::Options,
    ) -> Result<sql::Statement, Error> {
        sql::compile_with(self.query(), dialect, options)
    }

    /// The names of its `$name` parameters, sorted, without the dollar sign.
    pub fn params(&self) -> Vec<&str> {
        self.statement().params.iter().map(|name| &**name).collect()
    }

    /// The same selector with a value for each of its parameters.
    ///
    /// # Errors
    /// A parameter without a value, an unknown name, or a value that is not valid where the
    /// parameter is used (LANGUAGE §5).
    pub fn bind<'n>(
        &self,
        values: impl IntoIterator<Item = (&'n str, Value)>,
    ) -> Result<Self, Error> {
        let statement = self.statement();
        let values: SmallVec<[(&str, Value); 2]> = values.into_iter().collect();
        let known = statement.params.iter().map(|name| &**name);
        // Normalization may drop a group; its parameters are still in the text.
        let unknown = |name: &str| {
            !known.clone().any(|known| known == name) && !mentions(&statement.text, name)
        };
        if let Some((name, _)) = values.iter().find(|(name, _)| unknown(name)) {
            let message = format!("the selector has no parameter `${name}`");
            let error = Error::whole(Code::SelectorInvalid, &statement.text, message);
            return Err(match nearest(name, known) {
                Some(near) => error.with_help(format!("there is `${near}`")),
                None => error,
            });
        }
        let mut bound = statement.bind(&values)?;
        if statement.query.order_depends_on_values() {
            let query = statement.query.with_values(|name| {
                let (_, value) = values.iter().find(|(known, _)| *known == name)?;
                Some(value.into())
            });
            // A group that cannot match with these values does not decide the order.
            if (1..statement.query.chains.len()).contains(&query.chains.len()) {
                bound = bind(&compile(&query), &sources(&query), &values)
                    .map_err(|error| statement.error(error))?;
            }
        }
        Ok(Self::with(statement, bound))
    }

    /// Runs the selector over a session. [`Prepared::rows`] and [`Prepared::range`] save the match
    /// where the kind of the answer is known.
    ///
    /// # Errors
    /// Parameters without values; a time that no snapshot has.
    pub fn select(&self, session: &Session) -> Result<Answer, Error> {
        self.select_with(session, &RangeOptions::default())
    }

    /// Runs the selector over a session, with options for a range. `max_snapshots` also caps
    /// `@mode=union` and `@mode=latest`. Errors as [`Prepared::select`].
    pub fn select_with(&self, session: &Session, options: &RangeOptions) -> Result<Answer, Error> {
        Ok(if self.compares() {
            Answer::Range(self.diffs_at(&session.moment(), options, &mut Trace::off())?)
        } else {
            Answer::Rows(self.rows_at(session.moment(), options, &mut Trace::off())?)
        })
    }

    /// Runs a selector of rows over a session: of one snapshot, `@*`, or a range with `@mode=union`
    /// or `@mode=latest`.
    ///
    /// # Errors
    /// As [`Prepared::select`]; a selector that compares the snapshots of a range.
    #[inline]
    pub fn rows(&self, session: &Session) -> Result<Selection, Error> {
        self.rows_of(session.moment())
    }

    /// As [`Prepared::rows`], over a history that the caller holds.
    pub fn rows_in(&self, history: &Arc<History>) -> Result<Selection, Error> {
        self.rows_of(Moment::from(Arc::clone(history)))
    }

    /// Runs a selector of a range over a session and compares its snapshots.
    ///
    /// # Errors
    /// As [`Prepared::select`]; a selector of rows.
    pub fn range(&self, session: &Session) -> Result<RangeDiff, Error> {
        self.range_with(session, &RangeOptions::default())
    }

    /// As [`Prepared::range`], with options.
    pub fn range_with(
        &self,
        session: &Session,
        options: &RangeOptions,
    ) -> Result<RangeDiff, Error> {
        self.range_in(&session.moment(), options)
    }

    /// As [`Prepared::range_with`], over a history that the caller holds.
    pub fn range_in(&self, history: &History, options: &RangeOptions) -> Result<RangeDiff, Error> {
        if self.compares() {
            self.diffs_at(history, options, &mut Trace::off())
        } else {
            Err(self.other_kind("the selector asks for rows", ROWS_HELP))
        }
    }

    /// Why a range found no difference (LANGUAGE §10); empty if it found some, or if the selector asks for rows, which
    /// say so themselves: [`Selection::why_empty`].
    /// Errors as [`Prepared::range`].
    pub fn why_empty(&self, session: &Session) -> Result<Vec<EmptyReason>, Error> {
        if !self.compares() {
            self.ready()?;
            return Ok(Vec::new());
        }
        let why = self.nothing(session)?;
        Ok(why.map_or_else(Vec::new, |(reasons, _)| reasons))
    }

    /// Why it finds nothing in a session, and what it read, if no node matches; `None` if it finds something.
    pub(crate) fn nothing(&self, session: &Session) -> Result<Option<WhyNothing>, Error> {
        let (history, bound) = (session.moment(), self.ready()?);
        let options = RangeOptions::default();
        let matched = match self.resolve(&history)? {
            Lookup::Range(span) if self.compares() => {
                if history.is_lazy() {
                    self.fetch(&history, &Lookup::Range(span))?;
                }
                let snapshots = span.count();
                let matched = self.union(bound, history.clone(), span, &options);
                let rows = matched.count() as u64;
                if rows > 0 {
                    let diffs = self.diffs_at(&history, &options, &mut Trace::off())?;
                    let unchanged = vec![EmptyReason::Unchanged { rows, snapshots }];
                    return Ok((diffs.rows() == 0).then_some((unchanged, None)));
                }
                matched
            }
            _ => self.rows_at(history, &options, &mut Trace::off())?,
        };
        let nothing = matched.nothing();
        Ok(nothing.map(|nothing| (nothing.reasons(), Some(nothing))))
    }

    /// Names and values of the selector that no node of the whole session has, each with what may have been meant: mistakes in
    /// writing, also where the selector finds something. For tests, which would pass by finding nothing.
    ///
    /// Linear in the nodes of all snapshots.
    ///
    /// # Errors
    /// A parameter without a value; a snapshot of a store cannot be loaded.
    ///
    /// ```
    /// let session = pactql::Session::open("fixtures/support-agent.jsonl")?;
    /// let prepared = pactql::Engine::new().prepare("@t0 .cb[rol='user']")?;
    /// let found = prepared.misspelled(&session)?;
    /// assert_eq!(found[0].to_string(), "no node has `rol`; did you mean `role`?");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn misspelled(&self, session: &Session) -> Result<Vec<EmptyReason>, Error> {
        let (history, bound) = (session.history(), self.ready()?);
        let fetched = history.fetch_all();
        fetched.map_err(|failure| self.failed(failure))?;
        let working = history.working().into_iter();
        let read = working.chain(history.committed().iter().rev());
        let read = read.cloned().collect();
        let found = NothingFound::new(bound, Arc::clone(&history), read, None);
        let mut unknown = NothingFound::unknown_in_all([&found]);
        unknown.retain(EmptyReason::is_corrected);
        Ok(unknown)
    }

    /// Whether the selector compares the snapshots of a range; else it asks for rows.
    #[inline]
    pub(crate) fn compares(&self) -> bool {
        self.compares
    }

    #[inline]
    fn rows_of(&self, history: Moment) -> Result<Selection, Error> {
        self.check_rows()?;
        self.rows_at(history, &RangeOptions::default(), &mut Trace::off())
    }

    #[inline]
    pub(crate) fn check_rows(&self) -> Result<(), Error> {
        if self.compares() {
            Err(self.other_kind("the selector asks for the diffs of a range", RANGE_HELP))
        } else {
            Ok(())
        }
    }

    /// The rows of a selector that does not [compare](Self::compares). What runs at once is recorded
    /// in `trace`.
    #[inline]
    pub(crate) fn rows_at(
        &self,
        history: Moment,
        options: &RangeOptions,
        trace: &mut Trace,
    ) -> Result<Selection, Error> {
        let bound = self.ready()?;
        if history.is_lazy() {
            return self.rows_of_archive(bound, history, options, trace);
        }
        let lookup = history
            .resolve(bound.statement.query.time)
            .map_err(|error| self.unresolved(error))?;
        match lookup {
            Lookup::One(position) => Ok(Selection::one(bound, history, position, trace)),
            Lookup::All => {
                let all = RowSource::Union(Union::all(&history));
                Ok(Selection::lazy(bound, history, all))
            }
            Lookup::Range(span) => Ok(self.union(bound, history, span, options)),
        }
    }

    pub(crate) fn union(
        &self,
        bound: &Arc<BoundSelector>,
        history: Moment,
        span: SnapshotRange,
        options: &RangeOptions,
    ) -> Selection {
        let (span, errors) = capped(span, options);
        // Rows have no field for the extent of their range, as a diff has: it becomes warnings.
        let mut warnings = self.warnings().to_vec();
        let extent = span.warning().into_iter();
        let extent = extent.chain(errors.into_iter().map(|error| error.message));
        warnings.extend(extent.map(Warning::new));
        let latest = self.statement().query.controls.mode == RangeAnswer::Latest;
        let union = RowSource::Union(Union::new(span, latest));
        Selection::lazy(bound, history, union).with_warnings(warnings)
    }

    pub(crate) fn diffs_at(
        &self,
        history: &History,
        options: &RangeOptions,
        trace: &mut Trace,
    ) -> Result<RangeDiff, Error> {
        let bound = self.ready()?;
        let Lookup::Range(span) = self.resolve(history)? else {
            return Err(self.other_kind("the selector asks for rows", ROWS_HELP));
        };
        if history.is_lazy() {
            self.fetch_diffs(history, span, options)?;
        }
        let text = &self.statement().text;
        let mut diff = run_range(text, bound, history, span, options, trace);
        diff.selector_warnings = self.statement().warnings.clone();
        Ok(diff)
    }

    #[cold]
    fn other_kind(&self, message: &str, help: &str) -> Error {
        let CompiledSelector { text, time, .. } = &**self.statement();
        let span = time.clone().unwrap_or(0..text.len());
        let diagnostic = Diagnostic::error(Code::SelectorInvalid, message).at(span, "");
        Error::new(text, diagnostic.with_help(help))
    }

    #[inline]
    pub(crate) fn ready(&self) -> Result<&Arc<BoundSelector>, Error> {
        self.bound().ok_or_else(|| self.unbound())
    }

    #[cold]
    fn unbound(&self) -> Error {
        let missing = || BindError::new(None, "a parameter has no value");
        let error = self.statement().bind(&[]).err();
        error.unwrap_or_else(|| self.statement().error(missing()))
    }

    /// Refuses what was found if the work was cancelled: what writes must not use it.
    pub(crate) fn not_cancelled(&self) -> Result<(), Error> {
        cancel::check()
            .map_err(|cancelled| Error::whole(Code::Cancelled, self.text(), cancelled.to_string()))
    }

    pub(crate) fn unresolved(&self, error: Unresolved) -> Error {
        let text = &self.statement().text;
        let trimmed = text.trim_ascii();
        let start = text.len() - text.trim_ascii_start().len();
        let all = start..start + trimmed.len();
        let (span, label) = match (&self.statement().time, self.statement().query.time) {
            (Some(time), _) => (time.clone(), error.why),
            (None, QueryTime::Working) => (all, error.why),
            (None, _) => (all, "no time means `@t0`"),
        };
        let diagnostic = Diagnostic::error(Code::SnapshotNotFound, "no such snapshot")
            .at(span, label)
            .with_help(error.which);
        Error::new(text, diagnostic)
    }
}

impl Selection {
    /// The rows that are, or are inside, a node that `filter`, a selector without a time, matches
    /// in the row's snapshot (LANGUAGE §6). Does not run the selector.
    ///
    /// # Errors
    /// The filter names a time, or has parameters without values. In a session of a store: the
    /// snapshot cannot be loaded whole.
    pub fn filter(self, filter: &Prepared) -> Result<Self, Error> {
        let text = filter.text();
        let invalid = |message: &str| Error::whole(Code::SelectorInvalid, text, message);
        if text.trim_start().starts_with('@') {
            return Err(invalid(
                "a filter takes no time: each row is tested in its own snapshot",
            ));
        }
        let Some(bound) = filter.bound() else {
            return Err(invalid("the filter's parameters have no values"));
        };
        let failed = |failure| filter.failed(failure);
        let selection = self.whole().map_err(failed)?;
        if bound.reads_ages() {
            selection.fetch_all().map_err(failed)?;
        }
        Ok(selection.then(Op::Filter(Arc::clone(bound))))
    }
}

fn mentions(text: &str, name: &str) -> bool {
    text.match_indices('$').any(|(at, _)| {
        text[at + 1..].strip_prefix(name).is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || "_-".contains(next))
        })
    })
}
