//! What all reports have in common: options in, text and JSON out.
//!
//! The command line, the tools of the Model Context Protocol and Python make and print every report through
//! [`Report`].

use super::condition::Condition;
use super::groups::{By, Counts};
use super::part::{ChosenSnapshot, Part};
use super::prices::Prices;
use super::search::Search;
use super::tokenizer::Tokenizer;
use crate::engine::Engine;
use crate::history::{History, Session};
use crate::index::Snapshot;
use crate::render::Provider;
use crate::support::diag::Error;
use crate::support::macros::setters;
use crate::support::table::Paint;
use crate::support::text::printable;
use serde::Serialize;
use std::sync::Arc;

/// A report on one session.
///
/// ```
/// use pactql::inspect::{Part, Report, ReportOptions, StepReport};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let options = ReportOptions::new(Part::default().over("@t-1..@t0"));
/// let report = StepReport::new(&Engine::new(), &session, &options)?;
/// assert_eq!(report.steps.len(), 2);
/// assert!(report.to_text(&options).contains("what happened"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// Its JSON is one object, except that of [`ShowReport`](super::ShowReport), which is printed as one for each snapshot.
pub trait Report: Serialize + Sized {
    /// Makes the report.
    ///
    /// # Errors
    /// The time is none, or no snapshot has it; every error of the selector; a request that the provider has
    /// no form for, in reports that need it; a snapshot of a store cannot be loaded.
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error>;

    /// What it is about: the part of the options, or without a time more of the session.
    fn part(options: &ReportOptions) -> Part {
        options.part.clone()
    }

    /// Whether a request that it shows is worked out from a transcript, which does not say exactly what was sent. Text
    /// leaves it to the caller to say so.
    fn is_reconstructed(&self) -> bool {
        false
    }

    /// The report as text. Every line ends in a line feed.
    fn text(&self, options: &ReportOptions, paint: Paint) -> String;

    /// The report as text without colours.
    fn to_text(&self, options: &ReportOptions) -> String {
        self.text(options, Paint::default())
    }
}

/// What reports are made with. Each says which of these it reads.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReportOptions {
    /// Which snapshots, and which blocks of them: all reports but [`AssertReport`](super::AssertReport).
    pub part: Part,
    /// How tokens are counted; by default as the model of the newest of the snapshots counts them.
    pub tokenizer: Option<Tokenizer>,
    /// What tokens cost: [`TokenReport`](super::TokenReport), [`PrefixReport`](super::PrefixReport),
    /// [`UnusedReport`](super::UnusedReport), [`AssertReport`](super::AssertReport). By default the prices in the library.
    pub prices: Prices,
    /// The form of requests: [`PrefixReport`](super::PrefixReport), [`StepReport`](super::StepReport). By
    /// default that in which the newest snapshot was imported or sent.
    pub provider: Option<Provider>,
    /// What blocks are grouped by: [`TokenReport`](super::TokenReport).
    pub by: By,
    /// Leaves out the reply of the cycle, so that what was sent remains: [`ShowReport`](super::ShowReport).
    pub before_reply: bool,
    /// Text has everything: whole texts of blocks ([`ShowReport`](super::ShowReport)), requests that break
    /// nothing ([`PrefixReport`](super::PrefixReport)).
    pub full: bool,
    /// What is searched for: [`GrepReport`](super::GrepReport), which finds nothing without it.
    pub search: Option<Search>,
    /// The conditions, each with the number of its line: [`AssertReport`](super::AssertReport).
    pub conditions: Vec<(usize, Condition)>,
}

impl ReportOptions {
    /// Options for a part of a session.
    #[must_use]
    pub fn new(part: Part) -> Self {
        Self {
            part,
            ..Self::default()
        }
    }

    setters! {
        /// Sets how tokens are counted.
        tokenizer: impl Into<Option<Tokenizer>>;
        /// Sets what tokens cost.
        prices: Prices;
        /// Sets the form of requests.
        provider: impl Into<Option<Provider>>;
        /// Sets what blocks are grouped by.
        by: By;
        /// Sets whether the reply of the cycle is left out.
        before_reply: bool;
        /// Sets whether text has everything.
        full: bool;
        /// Sets what is searched for.
        search: Search;
        /// Sets the conditions, each with the number of its line.
        conditions: Vec<(usize, Condition)>;
    }

    /// The snapshot that text describes, instead of listing several.
    pub(super) fn only<'a, T>(&self, snapshots: &'a [T]) -> Option<&'a T> {
        let [only] = snapshots else { return None };
        (!self.part.is_range).then_some(only)
    }

    /// Nothing counted yet, by the tokenizer that was asked for or that fits these snapshots.
    pub(super) fn counts<'a>(
        &self,
        snapshots: impl DoubleEndedIterator<Item = &'a Arc<Snapshot>>,
    ) -> Counts {
        let fitting = || Tokenizer::fitting(snapshots, self.prices.model_otherwise());
        Counts::new(self.tokenizer.unwrap_or_else(fitting))
    }

    /// What `of` makes of each snapshot that a report is about, and what counted the tokens.
    pub(super) fn each<T>(
        &self,
        engine: &Engine,
        history: &Arc<History>,
        mut of: impl FnMut(&ChosenSnapshot, &mut Counts) -> Result<T, Error>,
    ) -> Result<(Vec<T>, Counts), Error> {
        let snapshots = self.part.snapshots(engine, history)?;
        let mut counts = self.counts(snapshots.iter().map(|(_, snapshot)| snapshot));
        let chosen = self.part.with_rows(engine, history, snapshots);
        let made = chosen.map(|chosen| of(&chosen?, &mut counts));
        Ok((made.collect::<Result<_, _>>()?, counts))
    }
}

/// Why there is no price: of which models, and in which table. Empty without models.
pub(super) fn no_price<'a>(
    models: impl IntoIterator<Item = Option<&'a str>>,
    date: &str,
) -> String {
    let mut text = String::new();
    let mut named = Vec::new();
    for model in models {
        match model {
            Some(model) => named.push(format!("`{}`", printable(model))),
            None => text.push_str("no cost: the session names no model\n"),
        }
    }
    if !named.is_empty() {
        let models = if named.len() > 1 { "models" } else { "model" };
        let named = named.join(", ");
        text += &format!("no cost: the prices of {date} have no {models} {named}; see --prices\n");
    }
    text
}

/// What names a snapshot in a table: its cycle, as in the lines of `steps`; `label` if it is the working state.
pub(super) fn place(label: &str, cycle: i64) -> String {
    match label {
        "working" => label.to_owned(),
        _ => format!("@c{cycle}"),
    }
}
