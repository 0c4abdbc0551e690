//! One line for each cycle of a session: what was sent, what came back, what changed (INSPECT §4).

use super::call::{Call, between, exact_time_of, last_time, time_of, time_of_summary};
use super::happened::{InProgress, StepEvent, events};
use super::part::{Part, saying};
use super::prefix::{Difference, PrefixStep, by_cycle};
use super::report::{Report, ReportOptions, place};
use super::tokenizer::Tokenizer;
use crate::engine::Engine;
use crate::history::{At, History, Session};
use crate::index::Snapshot;
use crate::support::cancel::ensure;
use crate::support::diag::{Code, Error};
use crate::support::table::{Paint, TableCell, TextTable, Tint};
use crate::support::text::{amount, printable};
use crate::tree::NodeClass;
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// One step for each cycle: of the snapshots of a part; without a time, of all committed ones. The selector says
/// which nodes are counted; without one, blocks.
///
/// Costs as much as [`Engine::log`] and [`PrefixReport`](super::PrefixReport) of the whole session. If a request
/// has no form for the provider, there are no prefixes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StepReport {
    /// How tokens are counted.
    pub tokenizer: Tokenizer,
    /// Whether requests are worked out from a transcript, which does not say exactly what was sent.
    pub reconstructed: bool,
    /// Why there are no prefixes, if requests have no form for the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_prefixes: Option<String>,
    /// One for each committed snapshot, oldest first. Without a time, the last is the cycle in progress, with the label
    /// `working`, if blocks came after the newest commit, or calls that were not answered.
    pub steps: Vec<Step>,
}

/// One cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// `@t0`, `@t-1`, …, or `working`.
    pub label: String,
    /// The cycle; that of a working state is the one in progress.
    pub cycle: i64,
    /// When the reply came, or else when the newest block was made, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// From the newest input of the request to the reply, in milliseconds: by the log's own account, else by the times of
    /// both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// From the reply before to the newest input of the request, in milliseconds: tools ran, or a person thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_ms: Option<u64>,
    /// What the snapshot says of the call.
    #[serde(flatten)]
    pub call: Call,
    /// Tokens of the request, counted here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Matches of the selector in the snapshot, by default blocks.
    pub matches: usize,
    /// Of these, the snapshot before does not have them.
    pub added: usize,
    /// Matches of the snapshot before that this one does not have.
    pub removed: usize,
    /// Matches of both that differ; of blocks, those that say something else, as in [`News::Changed`](super::News::Changed).
    pub changed: usize,
    /// What happened.
    pub events: Vec<StepEvent>,
    /// How much of the request before can be reused, in percent. `None` for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_percent: Option<u64>,
    /// What broke the prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<Difference>,
}

impl Report for StepReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        history.fetch_all()?;
        let selector = options.part.selector.as_deref().unwrap_or(".cb");
        let last = match InProgress::of(&history).filter(|_| !options.part.has_time()) {
            Some(found) => Some(step_in_progress(engine, &history, selector, found)?),
            None => None,
        };
        if let Some(last) = last.as_ref().filter(|_| history.committed().is_empty()) {
            return Ok(Self {
                tokenizer: options.counts(history.working().into_iter()).tokenizer(),
                reconstructed: last.call.reconstructed,
                no_prefixes: None,
                steps: vec![last.clone()],
            });
        }
        let wanted = Self::part(options).snapshots(engine, &history)?;
        let (log, changed) = engine.log_and_changed(session, selector)?;
        let mut counts = options.counts(wanted.iter().map(|(_, snapshot)| snapshot));
        let (prefixes, no_prefixes) = by_cycle(&history, options.provider, None, &mut counts);
        if let [(At::Working, _)] = wanted[..] {
            let message = "the working state is not a step: nothing was committed of it";
            let error = Error::whole(Code::SnapshotNotFound, "working", message);
            return Err(error.with_help("`@t0` is the newest step"));
        }
        let wanted: BTreeSet<i64> = wanted
            .iter()
            .map(|(_, snapshot)| snapshot.cycle())
            .collect();
        let mut steps = Vec::with_capacity(wanted.len());
        let mut before: Option<&Snapshot> = None;
        let changed = [vec![]].into_iter().chain(changed.into_iter().rev());
        let entries = log.snapshots.iter().rev().zip(changed);
        for ((entry, changed), snapshot) in entries.zip(history.committed().iter()) {
            ensure();
            let before = before.replace(snapshot);
            if !wanted.contains(&entry.cycle) {
                continue;
            }
            let call = Call::in_history(&history, snapshot);
            let measured = duration_ms(snapshot);
            // A log with one time for a call does not say when the call began.
            let gap = before.filter(|_| measured != Some(0));
            let prefix = prefixes.get(&entry.cycle);
            steps.push(Step {
                label: entry.label.clone(),
                cycle: entry.cycle,
                time: time_of(snapshot),
                duration_ms: call.latency_ms.or(measured.filter(|time| *time > 0)),
                gap_ms: gap.and_then(|before| gap_ms(before, snapshot)),
                tokens: prefix.map(|prefix| prefix.tokens),
                matches: entry.matches,
                added: entry.added,
                removed: entry.removed,
                changed: changed
                    .iter()
                    .filter(|id| !says_the_same(before, snapshot, id))
                    .count(),
                events: events(&history, snapshot, &call),
                prefix_percent: prefix
                    .filter(|prefix| prefix.before.is_some())
                    .map(PrefixStep::reused_percent),
                broken: prefix.and_then(|prefix| prefix.difference.clone()),
                call,
            });
        }
        steps.extend(last);
        Ok(Self {
            tokenizer: counts.tokenizer(),
            reconstructed: steps.iter().any(|step| step.call.reconstructed),
            no_prefixes,
            steps,
        })
    }

    fn part(options: &ReportOptions) -> Part {
        options.part.or_history()
    }

    fn is_reconstructed(&self) -> bool {
        self.reconstructed
    }

    /// A table, without the columns that have nothing in them.
    fn text(&self, _: &ReportOptions, paint: Paint) -> String {
        let models = self.steps.iter();
        let mut models = models.filter_map(|step| step.call.model.as_deref());
        let first = models.next();
        let one_model = models.all(|model| Some(model) == first);
        let mut out = match first.filter(|_| one_model) {
            Some(model) => format!("model {}, tokens by {}\n", printable(model), self.tokenizer),
            None => format!("tokens by {}\n", self.tokenizer),
        };
        if let Some(why) = &self.no_prefixes {
            let _ = writeln!(out, "no tokens and prefixes: {}", printable(why));
        }
        let days = self
            .steps
            .iter()
            .filter_map(|step| step.time.as_deref()?.split_once('T'));
        let mut days = days.map(|(day, _)| printable(day));
        let day = days.next();
        let has_times = day.is_some();
        let day = day.filter(|day| days.all(|other| other == *day));
        let mut times = self.steps.iter().filter_map(|step| step.time.as_deref());
        let head = match (&day, times.all(is_utc)) {
            (Some(day), true) => format!("{day} UTC, "),
            (Some(day), false) => format!("{day}, "),
            (None, true) if has_times => "times in UTC, ".to_owned(),
            (None, _) => String::new(),
        };
        out.insert_str(0, &head);
        let mut table = TextTable::new(COLUMNS.split(','))
            .words([0, 8, 10])
            .optional(&[3, 2, 4, 7, 5])
            .hide_empty();
        let mut before = None;
        for step in &self.steps {
            let model = step.call.model.as_deref();
            let is_new = !one_model && model != before;
            before = model.or(before);
            table.add(row(step, day.as_deref(), model.filter(|_| is_new)));
        }
        out + &table.text(paint)
    }
}

/// The cycle in progress as a step. Linear in the matches of the selector in the working state and in the newest snapshot.
fn step_in_progress(
    engine: &Engine,
    history: &History,
    selector: &str,
    found: InProgress<'_>,
) -> Result<Step, Error> {
    // The rows are those of the snapshot that is read, and ages need some time.
    let prepared = engine.prepare(&format!("@t0 {selector}"))?;
    let ids = |snapshot: &Arc<Snapshot>| -> Result<HashSet<String>, Error> {
        let rows = prepared.rows_of_snapshot(history, snapshot)?.into_iter();
        Ok(rows.map(|row| snapshot.node(row).id().to_owned()).collect())
    };
    let before = history.committed().last();
    let newer = ids(found.snapshot)?;
    let older = before.map_or_else(|| Ok(HashSet::new()), ids)?;
    let differs = |id: &&String| {
        let version = |snapshot: &Snapshot| Some(snapshot.find(id)?.version());
        let same = before.and_then(|before| version(before)) == version(found.snapshot);
        let before = before.map(|before| &**before);
        !same && !says_the_same(before, found.snapshot, id)
    };
    Ok(Step {
        label: At::Working.to_string(),
        cycle: found.cycle,
        time: found.time,
        duration_ms: found.call.latency_ms,
        gap_ms: None,
        tokens: None,
        matches: newer.len(),
        added: newer.difference(&older).count(),
        removed: older.difference(&newer).count(),
        changed: newer.intersection(&older).filter(differs).count(),
        events: found.events,
        prefix_percent: None,
        broken: None,
        call: found.call,
    })
}

/// Whether a node is a block that says what it said before: what differs is for the log, such as a link.
fn says_the_same(before: Option<&Snapshot>, snapshot: &Snapshot, id: &str) -> bool {
    let pair = before
        .and_then(|before| before.find(id))
        .zip(snapshot.find(id));
    pair.is_some_and(|(older, newer)| {
        newer.class() == NodeClass::Block && saying(older) == saying(newer)
    })
}

/// From the newest input of a request to its reply, in milliseconds, if the log has times.
fn duration_ms(snapshot: &Snapshot) -> Option<u64> {
    between(&asked(snapshot)?, &last_time(snapshot, true)?)
}

/// From the time of a snapshot to the newest input of the request of the next one, in milliseconds.
pub(super) fn gap_ms(before: &Snapshot, snapshot: &Snapshot) -> Option<u64> {
    between(&exact_time_of(before)?, &asked(snapshot)?)
}

fn asked(snapshot: &Snapshot) -> Option<String> {
    time_of_summary(snapshot).or_else(|| last_time(snapshot, false))
}

pub(super) fn is_utc(time: &str) -> bool {
    time.ends_with('Z')
}

pub(super) fn seconds(time: &str) -> String {
    let time = printable(time);
    match time.split_once('.') {
        Some((seconds, _)) => seconds.replacen('T', " ", 1),
        None => time.trim_end_matches('Z').replacen('T', " ", 1),
    }
}

/// A span of time in seconds, to a tenth where that is seen, rounded.
fn span(milliseconds: Option<u64>) -> String {
    milliseconds.map_or_else(String::new, |milliseconds| match milliseconds {
        0..100_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => format!("{} s", amount(milliseconds.saturating_add(500) / 1_000)),
    })
}

const COLUMNS: &str =
    "cycle,time,duration,gap,tokens,counted,cached,reply,blocks,prefix,what happened";

fn row(step: &Step, day: Option<&str>, model: Option<&str>) -> [TableCell; 11] {
    let number = |count: Option<u64>| TableCell::from(count.map_or_else(String::new, amount));
    let mut happened: Vec<String> = step.events.iter().map(StepEvent::text).collect();
    if let Some(broken) = &step.broken {
        let place = broken.block.as_deref().map(printable);
        let place = place.unwrap_or_else(|| broken.place.to_string());
        let cause = printable(&broken.cause.text());
        happened.push(format!("prefix broken at {place}: {cause}"));
    }
    happened.extend(model.map(printable));
    let time = step.time.as_deref().map_or_else(String::new, seconds);
    let time = match day.and_then(|day| time.strip_prefix(day)) {
        Some(clock) => clock.trim_start().to_owned(),
        None => time,
    };
    let mut changes = format!("+{} -{} ~{}", step.added, step.removed, step.changed);
    if step.added + step.removed + step.changed == 0 {
        changes = "none".to_owned();
    }
    let kept = step.prefix_percent.map(|percent| format!("{percent} %"));
    [
        TableCell::new(place(&step.label, step.cycle), Some(Tint::Place)),
        time.into(),
        span(step.duration_ms).into(),
        span(step.gap_ms).into(),
        number(step.tokens),
        number(step.call.input_tokens),
        number(step.call.cached_tokens),
        number(step.call.output_tokens),
        changes.into(),
        TableCell::new(
            kept.unwrap_or_default(),
            step.broken.as_ref().map(|_| Tint::Removed),
        ),
        happened.join("; ").into(),
    ]
}
