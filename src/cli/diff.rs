//! `pactql diff`: the differences of two snapshots.

use super::command::Run;
use super::operands;
use super::options::{Color, ContentModeName, EditionName, Paint, TextOrJson, Tint};
use super::output::{self, printable};
use super::preview::Previews;
use super::sessions::SessionArgs;
use crate::engine::Node;
use crate::history::{
    ChangedNode, ContentDiff, ContentMode, ContentOptions, DiffOptions, SnapshotDiff,
};
use crate::present::stores::intact;
use crate::present::{Exit, Failure, sessions};
use clap::Args;
use std::fmt::Write as _;

/// Compare two snapshots.
///
/// The result lists what the newer of the two added, removed and changed, in whatever order they
/// are named: {"added":[…],"removed":[…],"changed":[{"id","fields"}]}. On a terminal it is text,
/// with the changed lines of contents.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql diff session.jsonl @t-1 @t0
  pactql diff session.jsonl @c3 @c7 \".cb[kind='result']\"
  pactql diff session.jsonl @t0 working --moves
  pactql diff session.jsonl @t-3 @t0 --content --format json
  pactql diff session.jsonl @t-1 @t0 --content tokens --format text")]
pub(super) struct Diff {
    #[command(flatten)]
    session: SessionArgs,
    /// A snapshot, such as @t0, @t-3 or @c17; `working` is the working state.
    a: String,
    /// The snapshot to compare it with.
    b: String,
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
        value_enum,
        value_name = "MODE",
        num_args = 0..=1,
        default_missing_value = "unified"
    )]
    content: Option<ContentModeName>,
    /// Lines around each change of a unified content diff.
    #[arg(long, value_name = "N", default_value_t = 3)]
    context_lines: usize,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
    #[command(flatten)]
    edition: EditionName,
}

impl Run for Diff {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        operands::check_snapshots(
            self.session.name(),
            &self.a,
            &self.b,
            self.selector.as_ref(),
        )?;
        let (a, b) = (sessions::place(&self.a)?, sessions::place(&self.b)?);
        let engine = self.edition.engine();
        if let Some(selector) = &self.selector {
            // An invalid selector is reported before anything is read.
            engine.prepare(selector)?;
        }
        let json = self.format.is_json();
        // Text always shows changed contents.
        let mode = self.content.map(ContentMode::from);
        let mode = mode.or((!json).then_some(ContentMode::Unified));
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
        output::print_as(json, &diff, || text(&diff, color.for_results()))
    }
}

/// The differences as text.
fn text(diff: &SnapshotDiff, paint: Paint) -> String {
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
    // The first two lines are the names of both sides, which are printed already.
    let lines = content.diff.iter().flat_map(|text| text.lines().skip(2));
    for line in lines {
        let line = output::verbatim(line);
        let line = match line.as_bytes().first() {
            Some(b'+') => paint.tint(Tint::Added, &line),
            Some(b'-') => paint.tint(Tint::Removed, &line),
            Some(b'@') => paint.tint(Tint::Place, &line),
            _ => line,
        };
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
