//! Printing rows of a snapshot: ids, nodes, tables, trees.

use crate::history::Delta;
use crate::index::NodeRef;
use crate::present::Failure;
use crate::present::answer;
pub(super) use crate::present::node::{label, node_json, quoted, snapshot_label};
pub(super) use crate::present::{clean, counted};
use comfy_table::{ContentArrangement, Table, presets};
use std::fmt::Write;

/// How many characters of content a preview holds where the terminal's width does not decide.
pub(super) const PREVIEW: usize = 60;

/// A table of nodes with content previews, as wide as the terminal.
pub(super) fn table<'a>(nodes: impl Iterator<Item = NodeRef<'a>>) -> String {
    let rows = nodes.map(|node| {
        [
            clean(node.id(), usize::MAX),
            label(node),
            node.depth()
                .map(|depth| depth.to_string())
                .unwrap_or_default(),
            clean(node.type_or_class(), PREVIEW),
            clean(node.role().unwrap_or_default(), PREVIEW),
            clean(node.kind().unwrap_or_default(), PREVIEW),
            node.ttl().map(|ttl| ttl.to_string()).unwrap_or_default(),
            preview(node),
        ]
    });
    let header = [
        "id", "snapshot", "depth", "type", "role", "kind", "ttl", "content",
    ];
    columns(header, rows).unwrap_or_else(|| "no nodes\n".to_owned())
}

/// A table as wide as the terminal, a line a row; nothing where there are no rows.
pub(super) fn columns<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Option<String> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_truncation_indicator("…")
        .set_header(header);
    for row in rows {
        let mut row = comfy_table::Row::from(row);
        row.max_height(1);
        table.add_row(row);
    }
    if table.is_empty() {
        return None;
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    Some(text)
}

/// The nodes found, each under those that hold it, in their order; a new outline wherever the
/// snapshot changes.
pub(super) fn tree<'a>(nodes: impl Iterator<Item = NodeRef<'a>>) -> String {
    let mut text = String::new();
    let mut group: Vec<NodeRef<'a>> = Vec::new();
    for node in nodes {
        if group
            .first()
            .is_some_and(|first| label(*first) != label(node))
        {
            outline(&mut group, &mut text);
        }
        group.push(node);
    }
    outline(&mut group, &mut text);
    text
}

fn outline(found: &mut Vec<NodeRef<'_>>, text: &mut String) {
    let Some(first) = found.first() else {
        return;
    };
    let _ = writeln!(text, "{}", label(*first));
    found.sort_unstable_by_key(|node| node.row());
    // The path of the line written last: what the next one shares with it is not repeated.
    let mut path: Vec<u32> = Vec::new();
    for node in found.iter() {
        let mut holders: Vec<NodeRef<'_>> =
            std::iter::successors(Some(*node), |node| node.parent()).collect();
        holders.reverse();
        for (level, holder) in holders.iter().enumerate() {
            if path.get(level) == Some(&holder.row()) {
                continue;
            }
            path.truncate(level);
            path.push(holder.row());
            let _ = write!(text, "{:1$}", "", level * 2 + 2);
            if holder.row() == node.row() {
                let _ = writeln!(text, "● {}", line(*node));
            } else {
                let _ = writeln!(text, "○ {}", clean(holder.id(), usize::MAX));
            }
        }
    }
    found.clear();
}

/// The start of a node's content on one line.
pub(super) fn preview(node: NodeRef<'_>) -> String {
    let Some(raw) = node.field("content") else {
        return String::new();
    };
    // A string a little longer than the preview is enough of it.
    match serde_json::from_str::<serde_json::Value>(raw) {
        Ok(serde_json::Value::String(text)) => clean(&text, PREVIEW),
        Ok(serde_json::Value::Null) => String::new(),
        _ => clean(raw, PREVIEW),
    }
}

/// A node on one line: id, role, kind, the start of its content.
pub(super) fn line(node: NodeRef<'_>) -> String {
    let mut line = clean(node.id(), usize::MAX);
    for word in [node.role(), node.kind()].into_iter().flatten() {
        let _ = write!(line, " {}", clean(word, PREVIEW));
    }
    let content = preview(node);
    if !content.is_empty() {
        let _ = write!(line, ": {content}");
    }
    line
}

/// Values that changed, one a line: the older, then the newer. Hashes say nothing to a person.
pub(super) fn values(delta: &Delta, out: &mut String) {
    for (name, newer, older) in delta.iter() {
        if name != "content_hash" {
            let _ = writeln!(
                out,
                "    {}: {} → {}",
                clean(name, PREVIEW),
                clean(older, PREVIEW),
                clean(newer, PREVIEW)
            );
        }
    }
}

/// A result as one line of JSON, with its line feed.
///
/// # Errors
/// None that input can cause.
pub(super) fn json_line(result: &impl serde::Serialize) -> Result<String, Failure> {
    Ok(answer::json(result)? + "\n")
}

/// A line of text as it stands, but for what a terminal would obey.
pub(super) fn verbatim(line: &str) -> String {
    let safe = |letter: char| match letter {
        '\t' => '\t',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    line.chars().map(safe).collect()
}
