//! Conditions that a session has to meet, for continuous integration (INSPECT §4).

use super::condition::Condition;
use super::part::Part;
use super::prefix::{PrefixReport, PrefixStep};
use super::report::{Report, ReportOptions};
use super::tokenizer::Tokenizer;
use super::waste::UnusedReport;
use crate::engine::Engine;
use crate::history::Session;
use crate::support::diag::Error;
use crate::support::table::{Paint, Tint};
use crate::support::text::{counted, printable};
use serde::Serialize;
use std::fmt::Write as _;

const LISTED: usize = 5;

/// Whether a condition holds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Checked {
    /// The line of the condition.
    pub line: usize,
    /// The condition.
    pub condition: Condition,
    /// Whether it holds.
    pub holds: bool,
    /// How often it does not.
    pub failures: usize,
    /// The first failures.
    pub first: Vec<Failed>,
}

/// Where a condition does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failed {
    /// The cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<i64>,
    /// The block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// What is there instead.
    pub what: String,
}

/// Whether a session meets conditions. A session without snapshots meets none.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AssertReport {
    /// Whether all hold.
    pub holds: bool,
    /// The conditions, in order.
    pub conditions: Vec<Checked>,
}

impl Report for AssertReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let empty = session.history().latest_position().is_err();
        let mut requests: Option<PrefixReport> = None;
        let mut checked = Vec::with_capacity(options.conditions.len());
        for (line, condition) in &options.conditions {
            let failures = if empty {
                vec![Failed::new("the session has no snapshots")]
            } else {
                failures(engine, session, condition, &mut requests, options.tokenizer)?
            };
            checked.push(Checked {
                line: *line,
                condition: condition.clone(),
                holds: failures.is_empty(),
                failures: failures.len(),
                first: failures.into_iter().take(LISTED).collect(),
            });
        }
        Ok(Self {
            holds: checked.iter().all(|checked| checked.holds),
            conditions: checked,
        })
    }

    /// A line for each condition, and one for each of the first failures.
    fn text(&self, _: &ReportOptions, paint: Paint) -> String {
        let mut out = String::new();
        for checked in &self.conditions {
            let word = if checked.holds {
                paint.tint(Tint::Added, "ok    ")
            } else {
                paint.tint(Tint::Removed, "FAILED")
            };
            let condition = printable(&checked.condition.to_string());
            let _ = writeln!(out, "{word} line {}: {condition}", checked.line);
            for failed in &checked.first {
                let cycle = failed.cycle.map(|cycle| format!("@c{cycle}"));
                let block = failed.block.as_deref().map(printable);
                let block = block.map(|block| format!("block {block}"));
                let place: Vec<String> = cycle.into_iter().chain(block).collect();
                let colon = if place.is_empty() { "" } else { ": " };
                let (place, what) = (place.join(", "), printable(&failed.what));
                let _ = writeln!(out, "         {place}{colon}{what}");
            }
            if let more @ 1.. = checked.failures - checked.first.len() {
                let _ = writeln!(out, "         {}", counted(more as u64, "more failure"));
            }
        }
        out
    }
}

impl Failed {
    fn new(what: impl Into<String>) -> Self {
        Self {
            cycle: None,
            block: None,
            what: what.into(),
        }
    }
}

fn failures(
    engine: &Engine,
    session: &Session,
    condition: &Condition,
    requests: &mut Option<PrefixReport>,
    tokenizer: Option<Tokenizer>,
) -> Result<Vec<Failed>, Error> {
    Ok(match condition {
        Condition::None(selector) => {
            let rows = engine.rows(session, selector)?;
            let nodes = rows.nodes().map(|node| Failed {
                cycle: Some(node.row().snapshot_cycle()),
                block: Some(node.id().to_owned()),
                ..Failed::new("found")
            });
            nodes.collect()
        }
        Condition::Some(selector) => match engine.rows(session, selector)?.count() {
            0 => vec![Failed::new("nothing found")],
            _ => Vec::new(),
        },
        Condition::Prefix(_) | Condition::Tokens(_) | Condition::Growth(_) => {
            let found = match requests.take() {
                Some(found) => found,
                None => {
                    let options = ReportOptions::default().tokenizer(tokenizer);
                    PrefixReport::new(engine, session, &options)?
                }
            };
            let steps = requests.insert(found).steps.iter();
            steps.filter_map(|step| of_step(condition, step)).collect()
        }
        Condition::Unused(most) => {
            let all = Part::default().at("@history");
            let options = ReportOptions::new(all).tokenizer(tokenizer);
            let mut tools = UnusedReport::new(engine, session, &options)?.tools;
            if tools.len() as u64 <= *most {
                tools.clear();
            }
            let names = tools.iter().map(|tool| &tool.name);
            let failed = names.map(|name| Failed::new(format!("tool `{name}` is never called")));
            failed.collect()
        }
    })
}

/// Why a request does not meet a condition; `None` if it does.
fn of_step(condition: &Condition, step: &PrefixStep) -> Option<Failed> {
    let later = step.before.is_some();
    let mut block = None;
    let what = match condition {
        Condition::Prefix(percent) if later && step.reused_percent() < *percent => {
            let found = step.difference.as_ref();
            block = found.and_then(|found| found.block.clone());
            let cause = found.map(|found| found.cause.text()).unwrap_or_default();
            format!("{} % kept: {cause}", step.reused_percent())
        }
        Condition::Tokens(most) if step.tokens > *most => format!("{} tokens", step.tokens),
        Condition::Growth(most)
            if later && step.tokens > step.tokens_before.saturating_add(*most) =>
        {
            format!("{} tokens more", step.tokens - step.tokens_before)
        }
        _ => return None,
    };
    Some(Failed {
        cycle: Some(step.cycle),
        block,
        what,
    })
}
