//! `explain`: what a selector means, how it is planned, and what running it did.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::cache::PlanCache;
use super::prepared::Prepared;
use super::selection::{Selection, Target};
use crate::diag::{Error, Warning};
use crate::exec::{Counters, Trace};
use crate::history::{Lookup, RangeOptions, Session, Union, run_range};
use crate::index::Snapshot;
use crate::ir::{Edition, Mode};
use crate::plan::{Operator, Source, sources};

/// What an explanation shows beyond the plan.
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
/// use pactql::{Engine, ExplainOptions, Session};
///
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
    /// What in the selector stands for something else, in the order written.
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
    /// What fills the plan's slots, in order.
    pub values: Vec<String>,
    /// The operators, the last to run first.
    pub plan: Vec<PlanLine>,
    /// What running it did, when asked for and possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// What a reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A construct next to its normal form (LANGUAGE §9).
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Desugared {
    /// As written; empty where nothing was, for an omitted time.
    pub written: String,
    /// What it stands for, as a part of canonical text.
    pub normal: String,
    /// The first byte of it in the selector.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

/// The normalized form after one pass.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Pass {
    /// The pass.
    pub name: String,
    /// The canonical text after it.
    pub query: String,
}

/// One operator.
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
    /// Rows an index promises at most, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_rows: Option<u64>,
    /// Rows it kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual_rows: Option<u64>,
}

/// What a run did.
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
    let analysis = match session {
        Some(session) => analyze(&prepared, session, options.analyze, &mut plan)?,
        None => None,
    };
    let passes = if options.verbose {
        let mut passes = Vec::new();
        crate::ir::compile_observed(text, edition, &mut |name, query| {
            passes.push(Pass {
                name: name.to_owned(),
                query: query.to_string(),
            });
        })?;
        passes
    } else {
        Vec::new()
    };
    let sugar = crate::ir::desugar(text, edition)?
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
        values: sources(&statement.query)
            .into_iter()
            .map(|source| Source::from(source).to_string())
            .collect(),
        plan,
        analysis,
        warnings: prepared
            .warnings()
            .iter()
            .map(|Warning { message, .. }| message.clone())
            .collect(),
    })
}

/// Runs the selector over each snapshot its time leads to.
fn analyze(
    prepared: &Prepared,
    session: &Session,
    analyze: bool,
    plan: &mut [PlanLine],
) -> Result<Option<Analysis>, Error> {
    let history = session.history();
    let lookup = history
        .resolve(prepared.statement().query.time)
        .map_err(|error| prepared.unresolved(error))?;
    if !analyze {
        return Ok(None);
    }
    let bound = prepared.ready()?;
    let name = |snapshot: &Snapshot| match snapshot.is_working() {
        true => "working state".to_owned(),
        false => format!("@c{}", snapshot.cycle()),
    };
    let mut trace = Trace::on();
    // What a selection does, with a record of it.
    let mut follow = |target: Target| {
        let selection = Selection::lazy(bound, Arc::clone(&history).into(), target, None);
        selection.trace(&mut trace);
        selection.count() as u64
    };
    let (names, rows) = match lookup {
        Lookup::One(place) => {
            let snapshot = history.get(place).map(|snapshot| name(snapshot));
            (snapshot.into_iter().collect(), follow(Target::One(place)))
        }
        Lookup::All => {
            let committed = history.committed().iter().rev();
            (
                committed.map(|snapshot| name(snapshot)).collect(),
                follow(Target::Union(Union::all(&history))),
            )
        }
        Lookup::Range(span) => {
            let snapshots = history.committed()[span.oldest..=span.newest].iter().rev();
            let names = snapshots.map(|snapshot| name(snapshot)).collect();
            let mode = prepared.query().controls.mode;
            let rows = match mode {
                Mode::Union | Mode::Latest => {
                    follow(Target::Union(Union::of(span, mode == Mode::Latest)))
                }
                Mode::Pairwise | Mode::Reduce => {
                    let options = RangeOptions::default();
                    run_range(prepared.text(), bound, &history, span, &options, &mut trace).rows()
                        as u64
                }
            };
            (names, rows)
        }
    };
    for line in plan.iter_mut() {
        match (line.group, line.step) {
            (None, _) => line.actual_rows = Some(rows),
            (Some(group), Some(step)) => {
                let done = trace.steps.get(group).and_then(|steps| steps.get(step));
                line.actual_rows = Some(done.map_or(0, |done| done.rows));
                line.estimated_rows = done.and_then(|done| done.estimate);
            }
            (Some(_), None) => {}
        }
    }
    let analysis = Analysis {
        snapshots: names,
        rows,
        counters: trace.counters,
    };
    Ok(Some(analysis))
}

impl Explain {
    /// The explanation as JSON.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// One line a construct, what it stands for in one column.
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
