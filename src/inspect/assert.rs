//! Conditions that a session has to meet, for continuous integration (INSPECT §4).
//!
//! This file knows conditions and reports.

use super::condition::Condition;
use super::part::Part;
use super::prefix::{PrefixReport, PrefixStep};
use super::report::{Report, ReportOptions};
use super::tokenizer::Tokenizer;
use super::unused::UnusedReport;
use crate::engine::Engine;
use crate::history::Session;
use crate::support::diag::Error;
use crate::support::table::{Paint, Tint};
use crate::support::text::{counted, printable};
use serde::Serialize;
use std::fmt::Write as _;

/// How many failures of a condition are listed.
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
    type Line = Self;

    fn of(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let empty = session.history().latest_position().is_err();
        let mut requests: Option<PrefixReport> = None;
        let mut checked = Vec::with_capacity(options.conditions.len());
        for (line, condition) in &options.conditions {
            let failures = if empty {
                vec![Failed {
                    cycle: None,
                    block: None,
                    what: "the session has no snapshots".to_owned(),
                }]
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

    fn lines(&self) -> &[Self] {
        std::slice::from_ref(self)
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
                let mut place: Vec<String> = Vec::new();
                place.extend(failed.cycle.map(|cycle| format!("@c{cycle}")));
                place.extend(
                    failed
                        .block
                        .as_deref()
                        .map(|block| format!("block {}", printable(block))),
                );
                let place = if place.is_empty() {
                    String::new()
                } else {
                    format!("{}: ", place.join(", "))
                };
                let _ = writeln!(out, "         {place}{}", printable(&failed.what));
            }
            if let more @ 1.. = checked.failures - checked.first.len() {
                let _ = writeln!(out, "         {}", counted(more as u64, "more failure"));
            }
        }
        out
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
                what: "found".to_owned(),
            });
            nodes.collect()
        }
        Condition::Some(selector) => match engine.rows(session, selector)?.count() {
            0 => vec![Failed {
                cycle: None,
                block: None,
                what: "nothing found".to_owned(),
            }],
            _ => Vec::new(),
        },
        Condition::Prefix(_) | Condition::Tokens(_) | Condition::Growth(_) => {
            if requests.is_none() {
                let options = ReportOptions::default().tokenizer(tokenizer);
                *requests = Some(PrefixReport::of(engine, session, &options)?);
            }
            let steps = requests.iter().flat_map(|found| &found.steps);
            steps.filter_map(|step| of_step(condition, step)).collect()
        }
        Condition::Unused(most) => {
            let all = Part::default().at("@history");
            let options = ReportOptions::new(all).tokenizer(tokenizer);
            let found = UnusedReport::of(engine, session, &options)?;
            let count = found.tools.len() as u64;
            let names = found.tools.into_iter().filter(|_| count > *most);
            names
                .map(|tool| Failed {
                    cycle: None,
                    block: None,
                    what: format!("tool `{}` is never called", tool.name),
                })
                .collect()
        }
    })
}

/// Why a request does not meet a condition; `None` if it does.
fn of_step(condition: &Condition, step: &PrefixStep) -> Option<Failed> {
    let failed = |what: String| Failed {
        cycle: Some(step.cycle),
        block: None,
        what,
    };
    let later = step.before.is_some();
    match condition {
        Condition::Prefix(percent) if later && step.reused_percent() < *percent => {
            let difference = step.difference.as_ref();
            let cause = difference
                .map(|found| found.cause.text())
                .unwrap_or_default();
            Some(Failed {
                block: difference.and_then(|found| found.block.clone()),
                ..failed(format!("{} % kept: {cause}", step.reused_percent()))
            })
        }
        Condition::Tokens(most) if step.tokens > *most => {
            Some(failed(format!("{} tokens", step.tokens)))
        }
        Condition::Growth(most) if later => {
            let grown = step.tokens.saturating_sub(step.tokens_before);
            (grown > *most).then(|| failed(format!("{grown} tokens more")))
        }
        _ => None,
    }
}
