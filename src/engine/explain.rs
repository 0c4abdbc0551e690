//! `explain`: what a selector means, how it is planned, and what running it did.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::cache::PlanCache;
use super::prepared::Prepared;
use crate::history::{History, Lookup, Moment, Position, RangeOptions, Session, SnapshotsIter};
use crate::index::Snapshot;
use crate::query::exec::{self, Counters, Reason, RunGoal, RunInput, Strategy, Trace};
use crate::query::ir::{Edition, QueryTime};
use crate::query::plan::{Bound, Operator, operand_label, sources};
use crate::support::diag::{Error, Warning};

/// What an explanation shows beyond the plan. See the example of [`Explain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainOptions {
    /// Run the selector and show rows and counters.
    pub analyze: bool,
    /// Show the normalized form after each pass.
    pub verbose: bool,
}

impl ExplainOptions {
    /// Sets [`ExplainOptions::analyze`].
    #[must_use]
    pub fn analyze(mut self, analyze: bool) -> Self {
        self.analyze = analyze;
        self
    }

    /// Sets [`ExplainOptions::verbose`].
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }
}

/// An explanation, from [`Engine::explain`](crate::Engine::explain); prints as text, and as JSON
/// through `serde`.
///
/// ```
/// use pactql::{Engine, Session, explain::ExplainOptions};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let options = ExplainOptions::default().analyze(true);
/// let explain = Engine::new().explain(Some(&session), "@t0 .cb[ttl<=1]", options)?;
/// assert!(explain.analysis.is_some());
/// println!("{explain}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Explain {
    /// The selector as written.
    pub selector: String,
    /// The edition it was written in.
    pub edition: String,
    /// The abbreviations in the selector, in the order written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sugar: Vec<Desugared>,
    /// The canonical text.
    pub normalized: String,
    /// SHA-256 of the canonical text.
    pub fingerprint: String,
    /// Whether the plan cache knew it: `text hit`, `shape hit` or `miss`.
    pub cache: &'static str,
    /// The normalized form after each pass, when asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<Pass>,
    /// Which snapshot answers, if the selector names no time and a session was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What fills the plan's slots, in order.
    pub values: Vec<String>,
    /// The operators, the last to run first.
    pub plan: Vec<PlanLine>,
    /// How it runs over the session, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<StrategyLine>,
    /// What running it did, when asked for and possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// Warnings about the selector.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A construct next to its normal form (LANGUAGE §9). See the example of [`Explain`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Desugared {
    /// As written; empty where nothing was, for an omitted time.
    pub written: String,
    /// Its normal form, as a part of canonical text.
    pub normal: String,
    /// The first byte of it in the selector.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

/// The normalized form after one pass. See the example of [`Explain`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Pass {
    /// The pass.
    pub name: String,
    /// The canonical text after it.
    pub query: String,
}

/// One operator. See the example of [`Explain`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PlanLine {
    /// The group, from 0; none for what acts on the union.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    /// The step of the group, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// What it does.
    pub operator: String,
    /// Rows an index promises at most, where it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_rows: Option<u64>,
    /// Rows it kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual_rows: Option<u64>,
}

/// How the selector runs: its strategy. See the example of [`Explain`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StrategyLine {
    /// The strategy: `by id`, `word`, `chunks` or `windows`.
    pub name: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// Why cheaper strategies do not fit, the cheapest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cheaper: Vec<NotChosen>,
    /// The strategies that ran, if the selector was run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<Runs>,
}

/// A cheaper strategy that does not fit. See the example of [`Explain`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NotChosen {
    /// The strategy.
    pub name: &'static str,
    /// Why it does not fit.
    pub reason: &'static str,
}

/// How often a strategy ran: over several snapshots or parts of them. Example: [`Explain`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Runs {
    /// The strategy.
    pub name: &'static str,
    /// The number of runs.
    pub runs: u64,
}

/// What a run did. See the example of [`Explain`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Analysis {
    /// The snapshots it ran over, newest first.
    pub snapshots: Vec<String>,
    /// Rows in the answer, all snapshots together.
    pub rows: u64,
    /// Counters, all snapshots together.
    pub counters: Counters,
}

pub(super) fn explain(
    cache: &PlanCache,
    edition: Edition,
    session: Option<&Session>,
    text: &str,
    options: ExplainOptions,
) -> Result<Explain, Error> {
    let (prepared, outcome) = cache.look_up(text, edition)?;
    let statement = prepared.statement();
    let mut plan: Vec<PlanLine> = statement
        .plan
        .operators()
        .into_iter()
        .map(|Operator { chain, step, label }| PlanLine {
            group: chain,
            step,
            operator: label,
            estimated_rows: None,
            actual_rows: None,
        })
        .collect();
    // One moment of the session, so that all parts are about the same snapshots.
    let history = session.map(Session::history);
    let (strategy, analysis) = match &history {
        Some(history) => analyze(&prepared, history, options.analyze, &mut plan)?,
        None => (None, None),
    };
    let time = history.filter(|_| statement.query.time == QueryTime::Working);
    let time = time.and_then(|history| answering(&history));
    let passes = if options.verbose {
        let mut passes = Vec::new();
        crate::query::ir::compile_observed(text, edition, &mut |name, query| {
            passes.push(Pass {
                name: name.to_owned(),
                query: query.to_string(),
            });
        })?;
        passes
    } else {
        Vec::new()
    };
    let sugar = crate::query::ir::desugar(text, edition)?
        .into_iter()
        .map(|sugar| Desugared {
            written: sugar.written,
            normal: sugar.normal,
            start: sugar.span.start,
            end: sugar.span.end,
        })
        .collect();
    Ok(Explain {
        selector: text.to_owned(),
        edition: edition.to_string(),
        sugar,
        normalized: prepared.canonical(),
        fingerprint: prepared.fingerprint(),
        cache: outcome.as_str(),
        passes,
        time,
        values: sources(&statement.query)
            .into_iter()
            .map(operand_label)
            .collect(),
        plan,
        strategy,
        analysis,
        warnings: prepared
            .warnings()
            .iter()
            .map(|Warning { message, .. }| message.clone())
            .collect(),
    })
}

/// Which snapshot a selector without a time reads (LANGUAGE §3).
fn answering(history: &History) -> Option<String> {
    Some(match history.latest_position().ok()? {
        Position::Working => "working state".to_owned(),
        Position::Committed(at) => {
            let cycle = history.committed().cycle_at(at)?;
            format!("working state (newest snapshot, cycle {cycle})")
        }
    })
}

/// Runs the selector, if asked for, as a selection or a range does; chooses its strategy.
fn analyze(
    prepared: &Prepared,
    history: &Arc<History>,
    analyze: bool,
    plan: &mut [PlanLine],
) -> Result<(Option<StrategyLine>, Option<Analysis>), Error> {
    let lookup = prepared.resolve(history)?;
    if history.is_lazy() {
        prepared.fetch(history, &lookup)?;
    }
    let committed = history.committed();
    let compares = prepared.compares();
    let (snapshots, want): (Vec<&Snapshot>, RunGoal) = match lookup {
        Lookup::One(position) => {
            let snapshot = history.get(position).map(|snapshot| &**snapshot);
            (snapshot.into_iter().collect(), RunGoal::Rows)
        }
        Lookup::All => (newest_first(committed.iter()), RunGoal::Matches),
        Lookup::Range(span) => {
            let want = if compares {
                RunGoal::Changes
            } else {
                RunGoal::Matches
            };
            (
                newest_first(committed.range(span.oldest..span.newest + 1)),
                want,
            )
        }
    };
    let planned = |bound: &Bound| {
        let newest = snapshots.first()?;
        Some(exec::strategy(
            bound,
            RunInput::new(newest, &**history),
            want,
        ))
    };
    if !analyze {
        // A selector with open parameters has no strategy yet.
        let planned = prepared.bound().and_then(|bound| planned(bound));
        return Ok((planned.map(|planned| StrategyLine::new(planned, &[])), None));
    }
    let bound = prepared.ready()?;
    let mut trace = Trace::on();
    let options = RangeOptions::default();
    let (rows, counters) = if compares {
        let diff = prepared.diffs_at(history, &options, &mut trace)?;
        (diff.rows(), diff.counters)
    } else {
        let moment = Moment::from(Arc::clone(history));
        let selection = prepared.rows_at(moment, &options, &mut trace)?;
        let counters = selection.trace(&mut trace);
        (selection.count(), counters)
    };
    count_rows(plan, rows as u64, &trace);
    let name = |snapshot: &&Snapshot| {
        if snapshot.is_working() {
            "working state".to_owned()
        } else {
            format!("@c{}", snapshot.cycle())
        }
    };
    let analysis = Analysis {
        snapshots: snapshots.iter().map(name).collect(),
        rows: rows as u64,
        counters,
    };
    let strategy = planned(bound).map(|planned| StrategyLine::new(planned, trace.strategies()));
    Ok((strategy, Some(analysis)))
}

fn newest_first(snapshots: SnapshotsIter<'_>) -> Vec<&Snapshot> {
    snapshots.rev().map(|snapshot| &**snapshot).collect()
}

/// Writes the rows of a run to its operators.
fn count_rows(plan: &mut [PlanLine], rows: u64, trace: &Trace) {
    for line in plan {
        match (line.group, line.step) {
            (None, _) => line.actual_rows = Some(rows),
            (Some(group), Some(step)) => {
                let done = trace.steps().get(group).and_then(|steps| steps.get(step));
                line.actual_rows = Some(done.map_or(0, |done| done.rows));
                line.estimated_rows = done.and_then(|done| done.estimate);
            }
            (Some(_), None) => {}
        }
    }
}

impl StrategyLine {
    /// A planned strategy, or those that ran instead, with their number of runs.
    fn new((planned, reasons): (Strategy, Vec<Reason>), ran: &[(Strategy, u64)]) -> Self {
        // Older snapshots of a range may run otherwise than the newest, for which it was planned.
        let strategy = match ran.first() {
            Some((first, _)) if ran.iter().all(|(strategy, _)| *strategy != planned) => *first,
            _ => planned,
        };
        let not = |Reason { strategy, reason }: Reason| NotChosen {
            name: strategy.name(),
            reason,
        };
        let runs = |(strategy, runs): &(Strategy, u64)| Runs {
            name: strategy.name(),
            runs: *runs,
        };
        Self {
            name: strategy.name(),
            summary: strategy.summary(),
            // They are those of the planned strategy.
            cheaper: reasons
                .into_iter()
                .filter(|_| strategy == planned)
                .map(not)
                .collect(),
            ran: ran.iter().map(runs).collect(),
        }
    }
}

impl Explain {
    /// The explanation as JSON.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// One line per abbreviation, with the normal forms in one column.
    fn write_sugar(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDEST: usize = 40;
        let shown = |sugar: &'_ Desugared| match sugar.written.as_str() {
            "" => "(no time)".to_owned(),
            // One line, whatever white space was written.
            written => written.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        let widths = self.sugar.iter().map(|one| shown(one).chars().count());
        let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
        for (at, one) in self.sugar.iter().enumerate() {
            writeln!(
                f,
                "{:<13}{:<width$}  → {}",
                if at == 0 { "sugar" } else { "" },
                shown(one),
                one.normal
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for StrategyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "strategy     {}: {}", self.name, self.summary)?;
        for NotChosen { name, reason } in &self.cheaper {
            writeln!(f, "{:<13}not {name}: {reason}", "")?;
        }
        if !matches!(&*self.ran, [] | [Runs { runs: 1, .. }]) {
            let ran = |Runs { name, runs }: &Runs| match runs {
                1 => format!("{name} once"),
                runs => format!("{name} {runs} times"),
            };
            let ran: Vec<String> = self.ran.iter().map(ran).collect();
            writeln!(f, "{:<13}ran {}", "", ran.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "selector     {}", self.selector)?;
        writeln!(f, "edition      {}", self.edition)?;
        self.write_sugar(f)?;
        writeln!(f, "normalized   {}", self.normalized)?;
        writeln!(f, "fingerprint  {}", self.fingerprint)?;
        writeln!(f, "cache        {}", self.cache)?;
        for (at, pass) in self.passes.iter().enumerate() {
            writeln!(
                f,
                "{:<13}{}: {}",
                if at == 0 { "passes" } else { "" },
                pass.name,
                pass.query
            )?;
        }
        if let Some(time) = &self.time {
            writeln!(f, "time         {time}")?;
        }
        for (at, value) in self.values.iter().enumerate() {
            writeln!(
                f,
                "{:<13}?{} = {value}",
                if at == 0 { "values" } else { "" },
                at + 1
            )?;
        }
        writeln!(f, "plan")?;
        let mut indent = 0;
        for line in &self.plan {
            // Each group's operators form a chain below the final one.
            if line.group.is_none() {
                indent = 0;
            } else if line.group.is_some() && line.step.is_some_and(|_| indent == 0) {
                indent = 1;
            }
            let mut text = format!(
                "  {}{}",
                "   ".repeat(indent),
                if indent == 0 { "" } else { "└─ " }
            );
            text.push_str(&line.operator);
            match (line.estimated_rows, line.actual_rows) {
                (Some(estimate), Some(actual)) => {
                    text.push_str(&format!("  [rows {actual}, at most {estimate}]"));
                }
                (None, Some(actual)) => text.push_str(&format!("  [rows {actual}]")),
                (Some(_), None) | (None, None) => {}
            }
            writeln!(f, "{text}")?;
            indent = if line.group.is_some() && line.step.is_none() {
                0
            } else {
                indent + 1
            };
        }
        if let Some(strategy) = &self.strategy {
            strategy.fmt(f)?;
        }
        if let Some(analysis) = &self.analysis {
            let Analysis {
                snapshots,
                rows,
                counters,
            } = analysis;
            writeln!(f, "snapshots    {}", snapshots.join(" "))?;
            writeln!(f, "rows         {rows}")?;
            writeln!(
                f,
                "read         {} of {} pieces, {} rows in windows, {} postings, {} rows asked one by one",
                counters.pieces_read,
                counters.pieces_read + counters.pieces_pruned,
                counters.rows_seen,
                counters.postings,
                counters.probes
            )?;
            if counters.rows_left > 0 {
                let left = counters.rows_left;
                writeln!(
                    f,
                    "stopped      enough rows, {left} more in windows not looked at"
                )?;
            }
        }
        for warning in &self.warnings {
            writeln!(f, "warning      {warning}")?;
        }
        Ok(())
    }
}
