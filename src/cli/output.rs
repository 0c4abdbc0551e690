//! Nodes of a snapshot as tables, outlines and lines.

use super::command::print;
use crate::engine::Node;
use crate::history::Delta;
pub(super) use crate::present::node::{label, node_json, quoted, snapshot_label};
use crate::present::{Exit, Failure, answer};
pub(super) use crate::present::{clean, counted, printable};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;
use std::fmt::Write;

/// The length of a content preview in characters, unless the terminal is narrower.
pub(super) const PREVIEW: usize = 60;

/// A table of nodes with content previews, as wide as the terminal.
pub(super) fn table<'a>(nodes: impl Iterator<Item = Node<'a>>) -> String {
    let rows = nodes.map(|node| {
        [
            printable(node.id()),
            label(node),
            node.depth()
                .map(|depth| depth.to_string())
                .unwrap_or_default(),
            clean(node.node_type(), PREVIEW),
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

/// A table as wide as the terminal, one line for each row; `None` if there are no rows.
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

/// The nodes as an outline below their ancestors, in document order; a new outline starts where
/// the snapshot changes.
pub(super) fn tree<'a>(nodes: impl Iterator<Item = Node<'a>>) -> String {
    let mut text = String::new();
    let mut group: Vec<Node<'a>> = Vec::new();
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

fn outline(found: &mut Vec<Node<'_>>, text: &mut String) {
    let Some(first) = found.first() else {
        return;
    };
    let _ = writeln!(text, "{}", label(*first));
    found.sort_unstable_by_key(|node| node.row().row());
    // The path of the last line; the part that the next path shares is not repeated.
    let mut path: Vec<Node<'_>> = Vec::new();
    for node in found.iter() {
        let mut descent: Vec<Node<'_>> =
            std::iter::successors(Some(*node), |node| node.parent()).collect();
        descent.reverse();
        for (level, ancestor) in descent.iter().enumerate() {
            if path.get(level) == Some(ancestor) {
                continue;
            }
            path.truncate(level);
            path.push(*ancestor);
            let _ = write!(text, "{:1$}", "", level * 2 + 2);
            if ancestor == node {
                let _ = writeln!(text, "● {}", line(*node));
            } else {
                let _ = writeln!(text, "○ {}", printable(ancestor.id()));
            }
        }
    }
    found.clear();
}

/// The start of a node's content on one line.
pub(super) fn preview(node: Node<'_>) -> String {
    match node.content() {
        Some(Value::String(text)) => clean(&text, PREVIEW),
        Some(Value::Null) => String::new(),
        // As it is spelt in the session.
        _ => clean(node.row().field("content").unwrap_or_default(), PREVIEW),
    }
}

/// A node on one line: id, role, kind, the start of its content.
pub(super) fn line(node: Node<'_>) -> String {
    let mut line = printable(node.id());
    for word in [node.role(), node.kind()].into_iter().flatten() {
        let _ = write!(line, " {}", clean(word, PREVIEW));
    }
    let content = preview(node);
    if !content.is_empty() {
        let _ = write!(line, ": {content}");
    }
    line
}

/// Changed values, one a line: the older, then the newer. Content hashes are left out, because a
/// reader learns nothing from them.
pub(super) fn values(delta: &Delta, out: &mut String) {
    for (name, newer, older) in delta.texts() {
        if name != "content_hash" {
            let [name, older, newer] = [name, older, newer].map(|text| clean(text, PREVIEW));
            let _ = writeln!(out, "    {name}: {older} → {newer}");
        }
    }
}

/// Prints a result as one line of JSON, or as text.
///
/// # Errors
/// Failures of standard output.
pub(super) fn print_as(
    json: bool,
    result: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<Exit, Failure> {
    print(&if json {
        answer::json(result)? + "\n"
    } else {
        text()
    })
}

/// A line of text in which control characters, which a terminal would obey, are replaced.
pub(super) fn verbatim(line: &str) -> String {
    let safe = |letter: char| match letter {
        '\t' => '\t',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    line.chars().map(safe).collect()
}
