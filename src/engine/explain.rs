//! `explain`: what a selector means, how it is planned, and what running it did.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::cache::PlanCache;
use super::prepared::Prepared;
use crate::history::{History, Lookup, Moment, Position, RangeOptions, Session, SnapshotsIter};
use crate::index::Snapshot;
pub use crate::query::exec::NotChosen;
use crate::query::exec::{self, Counters, RunGoal, RunInput, Strategy, Trace};
pub use crate::query::ir::Desugared;
use crate::query::ir::{Edition, Purpose, QueryTime, compile_observed, desugar};
use crate::query::plan::{Bound, operand_label, sources};
pub use crate::query::plan::{PlanLine, StepWork};
use crate::support::clock;
use crate::support::diag::Error;
use crate::support::macros::setters;
use crate::support::text::short_time;

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
    setters! {
        analyze: bool;
        verbose: bool;
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
    /// Whether the plan cache knew it: `text hit` or `miss`; `prepared` if it was not asked.
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

/// The normalized form after one pass. See the example of [`Explain`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Pass {
    /// The pass.
    pub name: String,
    /// The canonical text after it.
    pub query: String,
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
    /// What finding them took, by the clock: the pieces are those in windows.
    pub work: StepWork,
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
    let (prepared, outcome) = cache.look_up(text, edition, Purpose::Select)?;
    Ok(Explain {
        cache: outcome.as_str(),
        ..explain_prepared(&prepared, session, text, options)?
    })
}

/// Explains a prepared selector, with `text` as it was written.
pub(super) fn explain_prepared(
    prepared: &Prepared,
    session: Option<&Session>,
    text: &str,
    options: ExplainOptions,
) -> Result<Explain, Error> {
    let statement = prepared.statement();
    let edition = statement.edition;
    let mut plan = statement.plan.operators();
    // One moment of the session, so that all parts are about the same snapshots.
    let history = session.map(Session::history);
    let (strategy, analysis) = match &history {
        Some(history) => analyze(prepared, history, options.analyze, &mut plan)?,
        None => (None, None),
    };
    let time = history.filter(|_| statement.query.time == QueryTime::Working);
    let time = time.and_then(|history| answering(&history));
    let mut passes = Vec::new();
    if options.verbose {
        compile_observed(text, edition, &mut |name, query| {
            passes.push(Pass {
                name: name.to_owned(),
                query: query.to_string(),
            });
        })?;
    }
    let values = sources(&statement.query).into_iter().map(operand_label);
    let warnings = prepared.warnings().iter();
    Ok(Explain {
        selector: text.to_owned(),
        edition: edition.to_string(),
        sugar: desugar(text, edition)?,
        normalized: prepared.canonical(),
        fingerprint: prepared.fingerprint(),
        cache: "prepared",
        passes,
        time,
        values: values.collect(),
        plan,
        strategy,
        analysis,
        warnings: warnings.map(|warning| warning.message.clone()).collect(),
    })
}

fn answering(history: &History) -> Option<String> {
    Some(match history.latest_position().ok()? {
        Position::Working => "working state".to_owned(),
        Position::Committed(at) => {
            let cycle = history.committed().cycle_at(at)?;
            format!("working state (newest snapshot, cycle {cycle})")
        }
    })
}

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
    let (snapshots, want) = match lookup {
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
            let snapshots = committed.range(span.oldest..span.newest + 1);
            (newest_first(snapshots), want)
        }
    };
    let planned = |bound: &Bound| {
        let input = RunInput::new(snapshots.first()?, &**history);
        Some(exec::strategy(bound, input, want))
    };
    if !analyze {
        // A selector with open parameters has no strategy yet.
        let planned = prepared.bound().and_then(|bound| planned(bound));
        return Ok((planned.map(|planned| StrategyLine::new(planned, &[])), None));
    }
    let observed = prepared.observed()?;
    let bound = observed.ready()?;
    let mut trace = Trace::on();
    let options = RangeOptions::default();
    clock::cost();
    let start = Instant::now();
    let (rows, counters, time_ns) = if compares {
        let diff = observed.diffs_at(history, &options, &mut trace)?;
        (diff.rows(), diff.counters, clock::nanos_since(start))
    } else {
        let moment = Moment::from(Arc::clone(history));
        let selection = observed.rows_at(moment, &options, &mut trace)?;
        let counters = selection.trace(&mut trace);
        let time_ns = clock::nanos_since(start);
        (selection.count(), counters, time_ns)
    };
    let work = StepWork {
        time_ns,
        pieces: counters.pieces_read,
        ..StepWork::default()
    };
    let work = tell_work(plan, rows as u64, work, bound, &trace);
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
        work,
        counters,
    };
    let strategy = planned(bound).map(|planned| StrategyLine::new(planned, trace.strategies()));
    Ok((strategy, Some(analysis)))
}

fn newest_first(snapshots: SnapshotsIter<'_>) -> Vec<&Snapshot> {
    snapshots.rev().map(|snapshot| &**snapshot).collect()
}

/// Writes what was done into the lines of a plan, given the time and pieces of the whole. Returns the work of the
/// whole.
fn tell_work(
    plan: &mut [PlanLine],
    rows: u64,
    mut whole: StepWork,
    bound: &Bound,
    trace: &Trace,
) -> StepWork {
    let mut last = StepWork {
        time_ns: whole.time_ns,
        text_bytes: bound.filter_readings().text_bytes,
        ttl_rows: bound.filter_readings().ttl_rows + trace.ttl_rows(),
        ..whole
    };
    (whole.text_bytes, whole.ttl_rows) = (last.text_bytes, last.ttl_rows);
    for line in plan.iter_mut() {
        let (Some(group), Some(step)) = (line.group, line.step) else {
            continue;
        };
        let done = trace.steps().get(group).and_then(|steps| steps.get(step));
        let done = done.copied().unwrap_or_default();
        line.actual_rows = Some(done.rows);
        line.estimated_rows = done.estimate;
        let read = bound.step_readings(group, step);
        let work = StepWork {
            time_ns: done.nanos,
            pieces: done.pieces,
            text_bytes: read.text_bytes,
            ttl_rows: read.ttl_rows,
        };
        // Steps of several threads may take longer together than the whole did by the clock.
        last.time_ns = last.time_ns.saturating_sub(work.time_ns);
        whole.text_bytes += work.text_bytes;
        whole.ttl_rows += work.ttl_rows;
        line.work = Some(work);
    }
    for line in plan.iter_mut().filter(|line| line.group.is_none()) {
        line.actual_rows = Some(rows);
        line.work = Some(last);
    }
    whole
}

/// The counts of a step as text, each after a comma. A count of 0 is left out.
fn work_text(work: &StepWork) -> String {
    let mut text = format!(", {}", short_time(work.time_ns));
    for (count, one, several) in [
        (work.pieces, "piece", "pieces"),
        (work.text_bytes, "byte searched", "bytes searched"),
        (work.ttl_rows, "ttl compared", "ttls compared"),
    ] {
        let _ = match count {
            0 => Ok(()),
            1 => write!(text, ", 1 {one}"),
            _ => write!(text, ", {count} {several}"),
        };
    }
    text
}

impl StrategyLine {
    /// A planned strategy, or those that ran instead, with their number of runs.
    fn new((planned, cheaper): (Strategy, Vec<NotChosen>), ran: &[(Strategy, u64)]) -> Self {
        // Older snapshots of a range may run otherwise than the newest, for which it was planned.
        let strategy = match ran.first() {
            Some((first, _)) if ran.iter().all(|(strategy, _)| *strategy != planned) => *first,
            _ => planned,
        };
        let runs = |(strategy, runs): &(Strategy, u64)| Runs {
            name: strategy.name(),
            runs: *runs,
        };
        // The reasons are those of the planned strategy.
        let cheaper = if strategy == planned {
            cheaper
        } else {
            Vec::new()
        };
        Self {
            name: strategy.name(),
            summary: strategy.summary(),
            cheaper,
            ran: ran.iter().map(runs).collect(),
        }
    }
}

impl Prepared {
    /// Explains the selector with the values of its parameters: its plan and, with a session and
    /// [`ExplainOptions::analyze`], what running it took, step by step.
    ///
    /// ```
    /// use pactql::{Engine, Session, explain::ExplainOptions};
    /// let session = Session::open("fixtures/support-agent.jsonl")?;
    /// let by_text = Engine::new().prepare("@t0 .cb[content~$text]")?;
    /// let explained = by_text
    ///     .bind([("text", "order".into())])?
    ///     .explain(Some(&session), ExplainOptions::default().analyze(true))?;
    /// let analysis = explained.analysis.expect("it was run");
    /// assert!(analysis.work.text_bytes > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// With a session as [`Prepared::select`]: without `analyze`, parameters need no values.
    pub fn explain(
        &self,
        session: Option<&Session>,
        options: ExplainOptions,
    ) -> Result<Explain, Error> {
        let text = self.text();
        explain_prepared(self, session, text, options)
    }
}

fn titled(f: &mut fmt::Formatter<'_>, at: usize, name: &str, text: &str) -> fmt::Result {
    writeln!(f, "{:<13}{text}", if at == 0 { name } else { "" })
}

impl Explain {
    /// The explanation as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

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
            let line = format!("{:<width$}  → {}", shown(one), one.normal);
            titled(f, at, "sugar", &line)?;
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
            let line = format!("{}: {}", pass.name, pass.query);
            titled(f, at, "passes", &line)?;
        }
        if let Some(time) = &self.time {
            writeln!(f, "time         {time}")?;
        }
        for (at, value) in self.values.iter().enumerate() {
            titled(f, at, "values", &format!("?{} = {value}", at + 1))?;
        }
        writeln!(f, "plan")?;
        let mut indent = 0;
        for line in &self.plan {
            // Each group's operators form a chain below the final one, its scope last.
            let branch = if indent == 0 { "" } else { "└─ " };
            write!(f, "  {}{branch}{}", "   ".repeat(indent), line.operator)?;
            match (line.estimated_rows, line.actual_rows) {
                (Some(estimate), Some(actual)) => {
                    write!(f, "  [rows {actual}, at most {estimate}")?;
                }
                (None, Some(actual)) => write!(f, "  [rows {actual}")?,
                (_, None) => {}
            }
            if let Some(work) = &line.work {
                write!(f, "{}]", work_text(work))?;
            }
            writeln!(f)?;
            for inside in &line.inside {
                writeln!(f, "  {}{inside}", "   ".repeat(indent + 2))?;
            }
            let ends = line.group.is_some() && line.step.is_none();
            indent = if ends { 1 } else { indent + 1 };
        }
        if let Some(strategy) = &self.strategy {
            strategy.fmt(f)?;
        }
        if let Some(analysis) = &self.analysis {
            let Analysis {
                snapshots,
                rows,
                work,
                counters,
            } = analysis;
            writeln!(f, "snapshots    {}", snapshots.join(" "))?;
            writeln!(f, "rows         {rows}")?;
            writeln!(f, "time         {}", short_time(work.time_ns))?;
            writeln!(
                f,
                "read         {} of {} pieces, {} rows in windows, {} postings, {} rows tested one by one",
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
