//! Answers to selectors: the blocks that fit a budget, nodes as JSON, labels of snapshots, and remarks.

use super::failure::{Failure, Result};
use crate::advice::EmptyReason;
use crate::budget::Query;
use crate::engine::EmptyAnswer;
use crate::engine::{Answer, Fit, Node, Prepared};
use crate::history::{RangeOptions, Session, SnapshotDiff};
use crate::index::Snapshot;
use crate::inspect::{Divergence, ParameterChange, parameters};
use crate::json::JsonValue;
pub(crate) use crate::json::quoted;
use crate::logs::write_members;
use crate::support::cancel::check;
use crate::support::diag::{ColorChoice, Warning};
use crate::support::text::{counted, printable};
use crate::tree::timestamp::is_position;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};

/// A result as one line of JSON, without a line feed.
pub(crate) fn json(result: &impl Serialize) -> Result<String> {
    let mut text = PolledText::default();
    serde_json::to_writer(&mut text, result).map_err(|error| match check() {
        Err(cancelled) => cancelled.into(),
        Ok(()) => Failure::internal(error.to_string()),
    })?;
    String::from_utf8(text.bytes).map_err(|error| Failure::internal(error.to_string()))
}

/// A text in memory, whose writing ends if the work is cancelled.
#[derive(Default)]
struct PolledText {
    bytes: Vec<u8>,
    /// How long it was at the last poll.
    asked: usize,
}

impl Write for PolledText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// How many bytes are written between two polls.
        const BYTES: usize = 1 << 16;
        if self.bytes.len() - self.asked >= BYTES {
            self.asked = self.bytes.len();
            check().map_err(io::Error::other)?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What changed between two snapshots, with the parameters of their requests.
#[derive(Serialize)]
pub(crate) struct SnapshotChanges {
    #[serde(flatten)]
    pub(crate) diff: SnapshotDiff,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) parameters: Vec<ParameterChange>,
}

impl From<SnapshotDiff> for SnapshotChanges {
    fn from(diff: SnapshotDiff) -> Self {
        let parameters = parameters(&diff.older.0, &diff.newer.0);
        Self { diff, parameters }
    }
}

/// The names of two sessions, and where they part.
#[derive(Serialize)]
pub(crate) struct RunPair<'a> {
    pub(crate) sessions: [&'a str; 2],
    #[serde(flatten)]
    pub(crate) divergence: Divergence,
}

/// A number of tokens, and the query that decides which blocks come first.
#[derive(Debug)]
pub(crate) struct TokenBudget {
    pub(crate) query: Query,
    pub(crate) tokens: u64,
}

/// Blocks that were found and do not fit into a budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unfitting {
    pub(crate) blocks: usize,
    pub(crate) tokens: u64,
}

impl Unfitting {
    /// Says so; `of` is how many sessions they are in, if it can be more than one. `None` if there is no such block.
    pub(crate) fn message(self, of: Option<usize>) -> Option<String> {
        let blocks = counted(self.blocks as u64, "block");
        let tokens = counted(self.tokens, "token");
        let place = of.map_or_else(String::new, |sessions| {
            format!(" in {}", counted(sessions as u64, "session"))
        });
        let message = format!("none of {blocks} found{place} fits into {tokens}");
        (self.blocks > 0).then_some(message)
    }
}

/// The answer to a selector, and the blocks of it that fit if there is a budget.
#[derive(Debug)]
pub(crate) struct FittedAnswer<'a> {
    pub(crate) answer: &'a Answer,
    pub(crate) fit: Option<Fit<'a>>,
    /// Whether rows were selected with options that say what is shown of changes.
    is_optioned: bool,
}

impl<'a> FittedAnswer<'a> {
    /// Chooses the blocks that fit.
    pub(crate) fn new(answer: &'a Answer, budget: Option<&TokenBudget>) -> Result<Self> {
        let fit = match (budget, answer) {
            (None, _) => None,
            (Some(TokenBudget { query, tokens }), Answer::Rows(rows)) => {
                Some(rows.fit(query, *tokens))
            }
            (Some(_), Answer::Range(_)) => {
                let failure = Failure::value("a range has differences, not blocks to choose from");
                return Err(failure
                    .with_help("a budget takes one snapshot, @*, @mode=union or @mode=latest"));
            }
        };
        Ok(Self {
            answer,
            fit,
            is_optioned: false,
        })
    }

    /// The options that the answer was made with.
    pub(crate) fn with_options(mut self, options: &RangeOptions) -> Self {
        self.is_optioned = matches!(self.answer, Answer::Rows(_)) && options.are_of_changes();
        self
    }

    /// One JSON value: the blocks that fit (in the form of `context resolve`), a list of ids, or
    /// the differences of a range; with `count`, only how many there are.
    pub(crate) fn json(&self, count: bool) -> Result<String> {
        match (&self.fit, self.answer) {
            _ if count => Ok(self.count().to_string()),
            (Some(fit), _) => json(&fit.resolution),
            (None, Answer::Rows(rows)) => json(&rows.to_ids()),
            (None, Answer::Range(diff)) => json(diff),
        }
    }

    pub(crate) fn count(&self) -> usize {
        match &self.fit {
            Some(fit) => fit.nodes.len(),
            None => self.answer.count(),
        }
    }

    /// The blocks that were found, if there is a budget and none fits; `None` without a budget.
    pub(crate) fn unfitting(&self) -> Option<Unfitting> {
        let summary = &self.fit.as_ref()?.resolution.selection;
        let none = summary.documents_selected == 0;
        Some(Unfitting {
            blocks: if none {
                summary.documents_considered
            } else {
                0
            },
            tokens: summary.budget,
        })
    }

    /// The nodes in the order of the result; `None` for a range.
    pub(crate) fn nodes(&self) -> Option<Box<dyn Iterator<Item = Node<'_>> + '_>> {
        match (&self.fit, self.answer) {
            (Some(fit), _) => Some(Box::new(fit.nodes.iter().copied())),
            (None, Answer::Rows(rows)) => Some(Box::new(rows.nodes())),
            (None, Answer::Range(_)) => None,
        }
    }

    /// Notes and warnings, one a line, or together as a line of JSON if `as_json` is set: nodes that a budget did not
    /// consider, the warnings of the selector and of its range, what a range left out and, if nothing was found, why. Why
    /// a range is empty takes the session. `of` names the session, where there are others.
    pub(crate) fn remarks(
        &self,
        prepared: &Prepared,
        session: Option<&Session>,
        of: Option<&str>,
        as_json: bool,
        color: ColorChoice,
    ) -> String {
        let (mut lines, mut notes) = (String::new(), Vec::new());
        if let Some(fit) = self.fit.as_ref().filter(|fit| fit.others > 0) {
            let others = counted(fit.others as u64, "node");
            let message = format!("a budget takes blocks only; {others} found are none");
            let _ = writeln!(lines, "note: {message}");
            notes.push(json!({"message": message}));
        }
        if self.is_optioned {
            let message = "options that say what is shown of changes do nothing here: \
                           the answer has nodes";
            let _ = writeln!(lines, "note: {message}");
            notes.push(json!({"message": message}));
        }
        // Of several sessions it is said once, of all of them.
        if of.is_none()
            && let Some(message) = self.unfitting().and_then(|found| found.message(None))
        {
            let _ = writeln!(lines, "note: {message}");
            notes.push(json!({"message": message}));
        }
        for warning in self.answer.warnings() {
            lines.push_str(&warning.to_text(prepared.text(), color));
            notes.push(warning_json(warning));
        }
        let why = match self.answer {
            Answer::Range(diff) => {
                let left_out = diff.errors.iter().map(|error| &error.message);
                for message in diff.warnings.iter().chain(left_out) {
                    let _ = writeln!(lines, "warning: {message}");
                    notes.push(json!({"message": message}));
                }
                match diff.rows() {
                    // The answer was made, so no error is left.
                    0 => session
                        .and_then(|session| prepared.why_empty(session).ok())
                        .unwrap_or_default(),
                    _ => Vec::new(),
                }
            }
            Answer::Rows(rows) => rows.why_empty(),
        };
        if as_json {
            notes.extend(why.iter().map(|why| reason_json(why, of)));
            return notes_json(&notes);
        }
        lines + &empty_notes(&why, of)
    }
}

/// Notes as one line of JSON; nothing if there are none.
pub(crate) fn notes_json(notes: &[Value]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    format!("{}\n", json!({ "notes": notes }))
}

/// Lines with the notes and warnings among them as JSON, those that follow each other in one line.
pub(crate) fn with_notes_as_json(text: &str) -> String {
    let (mut lines, mut notes) = (String::new(), Vec::new());
    for line in text.lines() {
        let message = line.strip_prefix("note: ");
        match message.or_else(|| line.strip_prefix("warning: ")) {
            Some(message) => notes.push(json!({"message": message})),
            None => {
                let before = notes_json(&std::mem::take(&mut notes));
                lines.extend([&*before, line, "\n"]);
            }
        }
    }
    lines + &notes_json(&notes)
}

/// A warning about a selector as a note.
pub(crate) fn warning_json(warning: &Warning) -> Value {
    let mut note = json!({"message": warning.message});
    if let Some(help) = &warning.help {
        note["help"] = json!(help);
    }
    note
}

/// Why an answer is empty, as a note: the fields of the reason, and its text. `of` names the session, where there are
/// others.
fn reason_json(reason: &EmptyReason, of: Option<&str>) -> Value {
    let mut note = json!(reason);
    if let Some(name) = of {
        note["session"] = name.into();
    }
    note["message"] = reason.to_string().into();
    note
}

fn empty_notes(why: &[EmptyReason], of: Option<&str>) -> String {
    let place = of.map_or_else(String::new, |name| format!("in {}, ", printable(name)));
    let note = |reason: &EmptyReason| format!("note: {place}{}\n", printable(&reason.to_string()));
    why.iter().map(note).collect()
}

/// Why an answer is empty, a line each, or one line of JSON: the reasons, and the warnings of the selector, as one that
/// matches nothing by its form has no reason.
pub(crate) fn note_empty(
    why: &[EmptyReason],
    warnings: &[Warning],
    of: Option<&str>,
    as_json: bool,
) -> String {
    if as_json {
        return notes_json(&empty_json(why, warnings, of));
    }
    let warnings = warnings.iter();
    let warnings = warnings.map(|warning| format!("warning: {}\n", printable(&warning.message)));
    empty_notes(why, of) + &warnings.collect::<String>()
}

fn empty_json(why: &[EmptyReason], warnings: &[Warning], of: Option<&str>) -> Vec<Value> {
    let why = why.iter().map(|why| reason_json(why, of));
    why.chain(warnings.iter().map(warning_json)).collect()
}

/// That what is shown was worked out from a transcript (INSPECT §1).
pub(crate) const RECONSTRUCTED: &str =
    "reconstructed: the log is a transcript and does not say exactly what was sent";

/// What is said beside a report, as one line of JSON: whether it is reconstructed, and why its selector finds nothing.
pub(crate) fn report_notes(is_reconstructed: bool, nothing: Option<&EmptyAnswer>) -> String {
    let mut notes = Vec::new();
    if is_reconstructed {
        notes.push(json!({ "message": RECONSTRUCTED }));
    }
    if let Some(nothing) = nothing {
        notes.extend(empty_json(&nothing.reasons(), nothing.warnings(), None));
    }
    notes_json(&notes)
}

/// The label of a node's snapshot: `@c12`, or `working`.
pub(crate) fn label(node: Node<'_>) -> String {
    snapshot_label(node.row().snapshot())
}

pub(crate) fn snapshot_label(snapshot: &Snapshot) -> String {
    if snapshot.is_working() {
        "working".to_owned()
    } else {
        format!("@c{}", snapshot.cycle())
    }
}

/// Appends a line with the node as one JSON object: its own members without `children`, and
/// `id` (a root may have come without one), `depth`, `parent_id`, `snapshot` and the `labels`, which
/// are names and texts. A log without times gives them without `created_at_iso`.
pub(crate) fn node_json(node: Node<'_>, labels: &[(&str, &str)], out: &mut String) {
    let null = || "null".to_owned();
    let depth = node.depth().map(|depth| depth.to_string());
    let parent = node.parent().map(|parent| quoted(parent.id()));
    let mut more = vec![
        ("depth", depth.unwrap_or_else(null)),
        ("id", quoted(node.id())),
        ("parent_id", parent.unwrap_or_else(null)),
        ("snapshot", quoted(&label(node))),
    ];
    let time = node.row().field("created_at_iso").and_then(JsonValue::text);
    if time.is_some_and(is_position) {
        more.push(("created_at_iso", String::new()));
    }
    more.extend(labels.iter().map(|(name, text)| (*name, quoted(text))));
    // As the members of the node are.
    more.sort_unstable();
    let more: Vec<(&str, &str)> = more.iter().map(|(name, json)| (*name, &**json)).collect();
    out.push('{');
    write_members(node.row(), &more, out);
    out.push_str("}\n");
}
