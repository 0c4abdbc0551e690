//! Conditions that a session has to meet, for continuous integration (INSPECT §4).

use super::call::cycle_of;
use super::condition::{Comparison, Condition, Measure, PlacedSelector, Sign};
use super::part::Part;
use super::prefix::{PrefixReport, PrefixStep};
use super::prices::Money;
use super::report::{Report, ReportOptions};
use super::sent::Sent;
use super::usage::Used;
use super::waste::UnusedReport;
use crate::engine::{Engine, Node, Selection, SelectionAddress};
use crate::history::{History, Position, Session};
use crate::support::diag::Error;
use crate::support::table::{Paint, Tint};
use crate::support::text::{counted, printable};
use serde::Serialize;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

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
    /// Names and values of its selectors that no node has, each with what may have been meant; and matches in a working state
    /// that a selector of all snapshots leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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
        let with = ReportOptions::new(Part::default().at("@history"))
            .tokenizer(options.tokenizer)
            .prices(options.prices.clone());
        let mut checked = Vec::with_capacity(options.conditions.len());
        for (line, condition) in &options.conditions {
            let mut notes = Vec::new();
            let failures = if empty {
                vec![Failed::new("the session has no snapshots")]
            } else {
                failures(engine, session, condition, &mut requests, &with, &mut notes)?
            };
            checked.push(Checked {
                line: *line,
                condition: condition.clone(),
                holds: failures.is_empty(),
                failures: failures.len(),
                first: failures.into_iter().take(LISTED).collect(),
                notes,
            });
        }
        Ok(Self {
            holds: checked.iter().all(|checked| checked.holds),
            conditions: checked,
        })
    }

    /// A line for each condition, and one for each of the first failures and each note.
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
            for note in &checked.notes {
                let _ = writeln!(out, "         note: {}", printable(note));
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

    fn in_cycle(cycle: i64, what: impl Into<String>) -> Self {
        Self {
            cycle: Some(cycle),
            ..Self::new(what)
        }
    }

    fn at(node: Node<'_>, what: impl Into<String>) -> Self {
        Self {
            block: Some(node.id().to_owned()),
            ..Self::in_cycle(node.row().snapshot_cycle(), what)
        }
    }

    /// Of the snapshot that was searched, if it is one.
    fn in_searched(history: &History, rows: &Selection, what: impl Into<String>) -> Self {
        let cycle = match rows.address() {
            SelectionAddress::Snapshot { cycle } => Some(cycle),
            SelectionAddress::Working => history.latest().map(|newest| newest.cycle()),
            SelectionAddress::Snapshots { .. } => None,
        };
        Self {
            cycle,
            ..Self::new(what)
        }
    }
}

/// `options` are about all committed snapshots. Adds to `notes` what may have been meant by a selector that finds nothing,
/// as that alone looks like a `none` that holds.
fn failures(
    engine: &Engine,
    session: &Session,
    condition: &Condition,
    requests: &mut Option<PrefixReport>,
    options: &ReportOptions,
    notes: &mut Vec<String>,
) -> Result<Vec<Failed>, Error> {
    let history = session.history();
    let mut rows_of = |selector: &PlacedSelector| -> Result<Selection, Error> {
        let rows = engine.rows(session, &selector.text)?;
        notes.extend(rows.meant());
        notes.extend(left_out(engine, &history, &selector.text, &rows)?);
        Ok(rows)
    };
    Ok(match condition {
        Condition::None(selector) => {
            let rows = rows_of(selector)?;
            let since = |node: Node<'_>| {
                let made = node.row().cycle();
                made.filter(|cycle| *cycle < node.row().snapshot_cycle())
            };
            let found = rows.nodes().map(|node| {
                let since =
                    since(node).map_or(String::new(), |cycle| format!(", made in @c{cycle}"));
                Failed::at(node, format!("found{since}"))
            });
            found.collect()
        }
        Condition::Some(selector) => {
            let rows = rows_of(selector)?;
            let none = || Failed::in_searched(&history, &rows, "nothing found");
            (rows.count() == 0).then(none).into_iter().collect()
        }
        Condition::Count(selector, comparison) => {
            counted_rows(&history, &rows_of(selector)?, *comparison)
        }
        Condition::Order(first, second) => {
            let rows = [rows_of(first)?, rows_of(second)?];
            order(engine, &history, [first, second], &rows)?
        }
        Condition::Measure(
            measure @ (Measure::Prefix | Measure::Tokens | Measure::Growth),
            comparison,
        ) => {
            let found = match requests.take() {
                Some(found) => found,
                None => {
                    let options = ReportOptions::default().tokenizer(options.tokenizer);
                    PrefixReport::new(engine, session, &options)?
                }
            };
            let steps = requests.insert(found).steps.iter();
            let failed = steps.filter_map(|step| of_step(*measure, *comparison, step));
            failed.collect()
        }
        Condition::Measure(Measure::Cost, most) => cost(session, *most, options)?,
        Condition::Measure(Measure::Unused, comparison) => {
            let tools = UnusedReport::new(engine, session, options)?.tools;
            if comparison.holds(tools.len() as u64) {
                Vec::new()
            } else if tools.is_empty() {
                vec![Failed::new("every tool is called")]
            } else {
                let said = |name| Failed::new(format!("tool `{name}` is never called"));
                tools.iter().map(|tool| said(&tool.name)).collect()
            }
        }
    })
}

/// Says that a selector of committed snapshots, the newest one among them, leaves out the working state, if that has matches
/// which none of them has: the run may have ended there. Linear in the matches.
fn left_out(
    engine: &Engine,
    history: &Arc<History>,
    selector: &str,
    rows: &Selection,
) -> Result<Option<String>, Error> {
    let SelectionAddress::Snapshots { cycles } = rows.address() else {
        return Ok(None);
    };
    let newest = history.cycles().next_back();
    let Some(working) = history.load(Position::Working)? else {
        return Ok(None);
    };
    if cycles.first().copied() != newest {
        return Ok(None);
    }
    let known: HashSet<&str> = rows.nodes().map(|node| node.id()).collect();
    // The rows are those of the snapshot that is read, whatever the time is.
    let found = engine.prepare(selector)?;
    let found = found.rows_of_snapshot(history, working)?.into_iter();
    let more = found.filter(|row| !known.contains(working.node(*row).id()));
    let matches = match more.count() {
        0 => return Ok(None),
        1 => "1 match".to_owned(),
        more => format!("{more} matches"),
    };
    let same = selector.strip_prefix("@*").map(str::trim_start);
    let same = same.map_or_else(
        || "a selector without a time reads it".to_owned(),
        |same| format!("for these add a condition on `{same}`"),
    );
    Ok(Some(format!(
        "the working state, which is not a snapshot, has {matches} more; {same}"
    )))
}

/// The nodes that are too many, or how many there are.
fn counted_rows(history: &History, rows: &Selection, comparison: Comparison) -> Vec<Failed> {
    let count = rows.count();
    if comparison.holds(count as u64) {
        return Vec::new();
    }
    let than = usize::try_from(comparison.than).unwrap_or(usize::MAX);
    let allowed = match comparison.sign {
        Sign::AtMost | Sign::Equal => than,
        Sign::Less => than.saturating_sub(1),
        Sign::AtLeast | Sign::More | Sign::Unequal => usize::MAX,
    };
    if count <= allowed {
        return vec![Failed::in_searched(history, rows, format!("{count} found"))];
    }
    let nodes = (1..).zip(rows.nodes()).skip(allowed);
    nodes
        .map(|(number, node)| Failed::at(node, format!("number {number} of {count}")))
        .collect()
}

/// Why what the first selector finds does not come before what the second finds.
fn order(
    engine: &Engine,
    history: &Arc<History>,
    selectors: [&PlacedSelector; 2],
    rows: &[Selection; 2],
) -> Result<Vec<Failed>, Error> {
    let mut firsts = Vec::with_capacity(rows.len());
    for (rows, selector) in rows.iter().zip(selectors) {
        match first(engine, history, rows)? {
            Some(first) => firsts.push(first),
            None => {
                let what = format!("nothing found of {selector}");
                return Ok(vec![Failed::in_searched(history, rows, what)]);
            }
        }
    }
    Ok(match &firsts[..] {
        [(first, earlier), (second, later)] if first >= second => {
            let what = if first == second {
                "both find this first".to_owned()
            } else {
                let cycle = earlier.row().snapshot_cycle();
                format!("comes before block {} of @c{cycle}", earlier.id())
            };
            vec![Failed::at(*later, what)]
        }
        _ => Vec::new(),
    })
}

/// A node after its place: the cycle and the row.
type PlacedNode<'a> = ((i64, u32), Node<'a>);

/// The earliest node.
fn first<'a>(
    engine: &Engine,
    history: &Arc<History>,
    rows: &'a Selection,
) -> Result<Option<PlacedNode<'a>>, Error> {
    let cycle = |node: &Node<'_>| cycle_of(node.row().snapshot());
    let Some(earliest) = rows.nodes().min_by_key(cycle) else {
        return Ok(None);
    };
    let least = cycle(&earliest);
    let time = if earliest.row().snapshot().is_working() {
        String::new()
    } else {
        format!("@c{least}")
    };
    // A selection over a store may have a part of the snapshot only, whose rows have other numbers.
    let whole = engine.snapshots(history, &time)?;
    let row = |id: &str| Some(whole.first()?.1.find(id)?.row());
    let nodes = rows.nodes().filter(|node| cycle(node) == least);
    let placed = nodes.filter_map(|node| Some(((least, row(node.id())?), node)));
    Ok(placed.min_by_key(|(place, _)| *place))
}

/// The calls whose price is not known, or the one from which on the sum does not meet the condition.
fn cost(
    session: &Session,
    comparison: Comparison,
    options: &ReportOptions,
) -> Result<Vec<Failed>, Error> {
    let history = session.history();
    history.fetch_all()?;
    let mut counts = options.counts(history.committed().iter());
    let mut used = Used::default();
    let mut unknown = Vec::new();
    let mut since: Option<(i64, Money)> = None;
    for snapshot in history.committed() {
        let (call, cycle) = (options.prices.call(&history, snapshot), snapshot.cycle());
        let unpriced = used.unpriced;
        used.add(&call, &options.prices, || {
            let sent = Sent::from_snapshot(snapshot, &mut counts);
            Some((sent.request, sent.reply))
        });
        if used.unpriced > unpriced {
            let what = match &call.model {
                Some(model) => format!("the price of model `{model}` is not known"),
                None => "the model is not known, and so is the price".to_owned(),
            };
            unknown.push(Failed::in_cycle(cycle, what));
        }
        let sum = used.nano_dollars;
        since = match since {
            _ if comparison.holds(sum.0) => None,
            None => Some((cycle, sum)),
            since => since,
        };
    }
    let total = used.nano_dollars;
    let failed =
        since.map(|(cycle, sum)| Failed::in_cycle(cycle, format!("{sum} so far, {total} in all")));
    Ok(if unknown.is_empty() {
        failed.into_iter().collect()
    } else {
        unknown
    })
}

/// Why a request does not meet a condition; `None` if it does.
fn of_step(measure: Measure, comparison: Comparison, step: &PrefixStep) -> Option<Failed> {
    let later = step.before.is_some();
    let mut block = None;
    let grown = i128::from(step.tokens) - i128::from(step.tokens_before);
    let what = match measure {
        Measure::Prefix if later && !comparison.holds(step.reused_percent()) => {
            let found = step.difference.as_ref();
            block = found.and_then(|found| found.block.clone());
            let cause = found.map(|found| format!(": {}", found.cause.text()));
            let cause = cause.unwrap_or_default();
            format!("{} % kept{cause}", step.reused_percent())
        }
        Measure::Tokens if !comparison.holds(step.tokens) => format!("{} tokens", step.tokens),
        Measure::Growth if later && !comparison.holds(grown) => match grown {
            0.. => format!("{grown} tokens more"),
            _ => format!("{} tokens less", -grown),
        },
        _ => return None,
    };
    Some(Failed {
        block,
        ..Failed::in_cycle(step.cycle, what)
    })
}
