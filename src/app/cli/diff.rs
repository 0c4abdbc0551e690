//! `pactql diff`: the differences of two snapshots.

use super::command::{Invocation, Run, print_as};
use super::operands;
use super::options::{CONTENT_MODES, EditionArgs, Paint, Tint};
use super::output::{self, printable};
use super::preview::Previews;
use super::sessions::SessionArgs;
use super::typed::address;
use super::word_diff;
use super::words::{is_file, quoted};
use crate::app::present::stores::intact;
use crate::app::present::{Exit, Failure, sessions};
use crate::engine::Node;
use crate::history::{
    ChangedNode, ContentDiff, ContentMode, ContentOptions, DiffOptions, SnapshotDiff,
};
use crate::index::Snapshot;
use crate::inspect::{Across, Pair, PairedBy, ParameterChange, across, parameters};
use clap::Args;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::Arc;

/// What changed between two snapshots of a session, or between two sessions?
///
/// The result lists what the newer of the two added, removed and changed, in whatever order they
/// are named: {"added":[…],"removed":[…],"changed":[{"id","fields"}]}. On a terminal it is text,
/// with the changed words of contents.
///
/// Sessions have no ids in common. So their blocks are paired by key, then by what they say, then by
/// their place between neighbours; the result says which.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql diff session.jsonl @c3 @c7 \".cb[kind='result']\"
  pactql diff yesterday.jsonl@t0 today.jsonl@t0")]
pub(super) struct Diff {
    #[command(flatten)]
    session: SessionArgs,
    /// A snapshot, such as @t0, @t-3 or @c17; `working` is the working state. Or another session, which is
    /// compared with the first: SESSION or SESSION@ADDRESS.
    a: String,
    /// The snapshot to compare it with.
    b: Option<String>,
    /// Which nodes to compare: a selector without a time [default: all nodes].
    selector: Option<String>,
    /// Also list moves: nodes with another parent, nodes that were removed and added again with
    /// another id, and the children that each parent gained and lost.
    #[arg(long)]
    moves: bool,
    /// Also show the difference of each changed content, as `unified` unless a mode is given. With
    /// `jsonpatch`, contents that are not JSON are shown as `unified`.
    #[arg(
        long,
        value_name = "MODE",
        num_args = 0..=1,
        default_missing_value = "unified",
        value_parser = CONTENT_MODES
    )]
    content: Option<String>,
    /// Lines around each change of a unified content diff.
    #[arg(long, value_name = "N", default_value_t = 3)]
    context_lines: usize,
    #[command(flatten)]
    edition: EditionArgs,
}

impl Run for Diff {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let is_snapshot =
            |word: &str| word == "working" || word.starts_with('@') || address(word).is_some();
        if !is_snapshot(&self.a)
            && is_session(&self.a)
            && self.b.as_deref().is_none_or(|b| !is_snapshot(b))
        {
            return self.across(with);
        }
        let Some(b) = &self.b else {
            let ends = self.a.split_once("..").unwrap_or(("@t-1", "@t0"));
            let line = format!("{} {} {}", quoted(self.session.name()), ends.0, ends.1);
            return Err(
                Failure::usage("`diff` takes two snapshots, or two sessions")
                    .with_help(format!("pactql diff {line}")),
            );
        };
        operands::check_snapshots(self.session.name(), &self.a, b)?;
        let (a, b) = (sessions::place(&self.a)?, sessions::place(b)?);
        let engine = self.edition.engine();
        if let Some(selector) = &self.selector {
            // An invalid selector is reported before anything is read.
            engine.prepare(selector)?;
        }
        let json = with.is_json_in_pipe();
        // Text always shows changed contents.
        let mode = self.mode().or((!json).then_some(ContentMode::Unified));
        let options = DiffOptions {
            moves: self.moves,
            content: mode.map(|mode| ContentOptions {
                mode,
                context_lines: self.context_lines,
                ..ContentOptions::default()
            }),
        };
        let session = self.session.open()?;
        let diff = engine.diff(&session, a, b, self.selector.as_deref(), &options)?;
        intact(&session)?;
        let parameters = parameters(&diff.older.0, &diff.newer.0);
        let found = Found { diff, parameters };
        print_as(json, &found, || text(&found, with.paint()))
    }
}

impl Diff {
    /// How contents are compared, if the command line says so.
    fn mode(&self) -> Option<ContentMode> {
        ContentMode::named(self.content.as_deref()?)
    }

    /// Compares snapshots of two sessions.
    fn across(&self, with: &Invocation) -> Result<Exit, Failure> {
        if let Some(word) = self.b.as_ref().or(self.selector.as_ref()) {
            let message = format!(
                "two sessions are compared whole, and `{}` is one more argument",
                printable(word)
            );
            return Err(
                Failure::usage(message).with_help("pactql diff SESSION@ADDRESS SESSION@ADDRESS")
            );
        }
        if self.moves {
            return Err(Failure::usage("`--moves` is for snapshots of one session")
                .with_help("between sessions, blocks that moved are always listed"));
        }
        let (first, second) = (split(self.session.name()), split(&self.a));
        let (a, older) = self.session.open_other(first.0, first.1)?;
        let (b, newer) = self.session.open_other(second.0, second.1)?;
        let options = ContentOptions::default()
            .mode(self.mode().unwrap_or_default())
            .context_lines(self.context_lines);
        let found = across(&older, &newer, &options);
        intact(&a)?;
        intact(&b)?;
        let places = [(first.0, older), (second.0, newer)];
        print_as(with.is_json_in_pipe(), &found, || {
            text_across(&found, &places, with.paint())
        })
    }
}

/// Whether a word names a session, maybe with an address after it.
fn is_session(word: &str) -> bool {
    is_file(split(word).0)
}

/// A session and the address after it.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.rfind('@') {
        Some(at) if at > 0 && (address(&word[at..]).is_some() || &word[at..] == "@working") => {
            (&word[..at], Some(&word[at..]))
        }
        _ => (word, None),
    }
}

/// The differences of two sessions as text.
fn text_across(found: &Across, places: &[(&str, Arc<Snapshot>); 2], paint: Paint) -> String {
    let previews = Previews::default();
    let [(first, a), (second, b)] = places;
    let label = |name: &str, snapshot: &Snapshot| {
        format!("{} {}", printable(name), output::snapshot_label(snapshot))
    };
    let title = format!("{} after {}", label(second, b), label(first, a));
    let counts = [
        (found.same, "the same"),
        (found.moved.len(), "moved"),
        (found.changed.len(), "changed"),
        (found.only_a.len(), "removed"),
        (found.only_b.len(), "added"),
    ];
    let counts = counts.map(|(count, word)| format!("{count} {word}"));
    let mut out = format!(
        "{}: {}\n",
        paint.tint(Tint::Place, &title),
        counts.join(", ")
    );
    parameter_lines(&found.parameters, paint, &mut out);
    for (lone, snapshot, sign, tint) in [
        (&found.only_b, b, '+', Tint::Added),
        (&found.only_a, a, '-', Tint::Removed),
    ] {
        for lone in lone {
            let node = snapshot
                .find(&lone.id)
                .map(|node| previews.line(Node::new(node)));
            let line = format!("{sign} {}", node.unwrap_or_default());
            let _ = writeln!(out, "{}", paint.tint(tint, &line));
        }
    }
    let by = |pair: &Pair| match pair.by {
        PairedBy::Key => "by key",
        PairedBy::Content => "by content",
        PairedBy::Position => "by position",
    };
    for pair in &found.moved {
        let _ = writeln!(
            out,
            "> {} was {} ({})",
            printable(&pair.b),
            printable(&pair.a),
            by(pair)
        );
    }
    for changed in &found.changed {
        let pair = &changed.pair;
        let title = format!(
            "~ {} was {} ({}; {})",
            printable(&pair.b),
            printable(&pair.a),
            changed.fields.join(", "),
            by(pair)
        );
        let _ = writeln!(out, "{}", paint.tint(Tint::Changed, &title));
        if let Some(content) = &changed.content_diff {
            contents(content, paint, &mut out);
        }
    }
    out
}

/// The differences of two snapshots of one session.
#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    diff: SnapshotDiff,
    /// Request parameters that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterChange>,
}

/// The changes of request parameters as text.
fn parameter_lines(changes: &[ParameterChange], paint: Paint, out: &mut String) {
    let value = |value: &Option<String>| match value {
        Some(json) => output::verbatim(json),
        None => "nothing".to_owned(),
    };
    for change in changes {
        let (a, b) = (value(&change.a), value(&change.b));
        let line = format!("~ parameter {}: {a} → {b}", printable(&change.name));
        let _ = writeln!(out, "{}", paint.tint(Tint::Changed, &line));
    }
}

/// The differences as text.
fn text(found: &Found, paint: Paint) -> String {
    let diff = &found.diff;
    let mut out = String::new();
    // The whole line has a colour.
    let previews = Previews::default();
    let counts = [
        (diff.added.len(), "added"),
        (diff.removed.len(), "removed"),
        (diff.changed.len(), "changed"),
    ];
    let counts = counts.map(|(count, word)| format!("{count} {word}"));
    let (newer, older) = (&diff.newer, &diff.older);
    let title = paint.tint(Tint::Place, &format!("{} after {}", newer.1, older.1));
    let _ = writeln!(out, "{title}: {}", counts.join(", "));
    parameter_lines(&found.parameters, paint, &mut out);
    for (ids, snapshot, sign, tint) in [
        (&diff.added, &newer.0, '+', Tint::Added),
        (&diff.removed, &older.0, '-', Tint::Removed),
    ] {
        for id in ids {
            let node = snapshot.find(id).map(|node| previews.line(Node::new(node)));
            let line = format!("{sign} {}", node.unwrap_or_default());
            let _ = writeln!(out, "{}", paint.tint(tint, &line));
        }
    }
    for node in &diff.changed {
        change(node, paint, &mut out);
    }
    for found in diff.moves.iter().flatten() {
        let parent = |id: &Option<String>| id.as_deref().map_or("nothing".to_owned(), printable);
        let [from, to] = [&found.previous_parent_id, &found.new_parent_id].map(parent);
        let _ = write!(out, "> {}", printable(&found.id));
        if let Some(previous) = &found.previous_id {
            let _ = write!(out, ", which was {},", printable(previous));
        }
        let _ = writeln!(out, " moved from {from} to {to}");
    }
    out
}

/// A changed node: its fields, the values that fit on a line, its content.
fn change(node: &ChangedNode, paint: Paint, out: &mut String) {
    let fields: Vec<String> = node.fields.iter().map(|field| printable(field)).collect();
    let title = format!("~ {} ({})", printable(&node.id), fields.join(", "));
    let _ = writeln!(out, "{}", paint.tint(Tint::Changed, &title));
    output::values(&node.delta, out);
    if let Some(content) = &node.content_diff {
        contents(content, paint, out);
    }
}

/// How a content changed.
fn contents(content: &ContentDiff, paint: Paint, out: &mut String) {
    if content.summary.truncated {
        let _ = writeln!(
            out,
            "    too long to compare: {} bytes after {}",
            content.summary.bytes_newer, content.summary.bytes_older
        );
    }
    // The names of both sides are printed already.
    for line in content
        .diff
        .iter()
        .flat_map(|diff| word_diff::lines(diff, paint))
    {
        let _ = writeln!(out, "    {line}");
    }
    if let Some(patch) = &content.patch {
        let _ = writeln!(out, "    {}", output::verbatim(&patch.to_string()));
    }
    for hunk in content.hunks.iter().flatten() {
        let _ = write!(out, "    {}:", hunk.newer.start);
        for (run, sign, tint) in [
            (&hunk.older, '-', Tint::Removed),
            (&hunk.newer, '+', Tint::Added),
        ] {
            if !run.text.is_empty() {
                let text = format!("{sign}{}", output::quoted(&run.text));
                let _ = write!(out, " {}", paint.tint(tint, &output::verbatim(&text)));
            }
        }
        out.push('\n');
    }
}
