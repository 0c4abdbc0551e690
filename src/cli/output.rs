//! Nodes of a snapshot as tables, outlines and lines.

use super::command::print;
use super::options::{Paint, Tint};
use super::preview::{self, PREVIEW, Previews, part};
use crate::engine::Node;
use crate::history::Delta;
pub(super) use crate::present::node::{label, node_json, quoted, snapshot_label};
use crate::present::{Exit, Failure, answer};
pub(super) use crate::present::{clean, counted, printable};
use std::fmt::Write;

/// The width of a table that is not printed on a terminal, in columns.
const WIDTH: usize = 120;

/// The least width of the last column of a table.
const LEAST: usize = 24;

/// The width to which the other columns of a table that is too wide are cut.
const NARROW: usize = 12;

/// A table of nodes with content previews, as wide as the terminal.
pub(super) fn table<'a>(nodes: impl Iterator<Item = Node<'a>>, previews: &Previews) -> String {
    let rows = nodes.map(|node| {
        let cells = [
            printable(node.id()),
            label(node),
            node.depth()
                .map(|depth| depth.to_string())
                .unwrap_or_default(),
            clean(node.node_type(), PREVIEW),
            clean(node.role().unwrap_or_default(), PREVIEW),
            clean(node.kind().unwrap_or_default(), PREVIEW),
            node.ttl().map(|ttl| ttl.to_string()).unwrap_or_default(),
        ];
        (cells, node)
    });
    let header = [
        ("id", Some(Tint::Name)),
        ("snapshot", Some(Tint::Place)),
        ("depth", None),
        ("type", None),
        ("role", Some(Tint::Kind)),
        ("kind", Some(Tint::Kind)),
        ("ttl", None),
    ];
    columns(header, rows, previews).unwrap_or_else(|| "no nodes\n".to_owned())
}

/// A table with a preview of a node in the last column, as wide as the terminal, one line for each
/// row; `None` if there are no rows.
pub(super) fn columns<'a, const N: usize>(
    header: [(&str, Option<Tint>); N],
    rows: impl Iterator<Item = ([String; N], Node<'a>)>,
    previews: &Previews,
) -> Option<String> {
    let rows: Vec<([String; N], Node<'a>)> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let mut widths = header.map(|(name, _)| name.len());
    for (cells, _) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(width_of(cell));
        }
    }
    // On a terminal its width is known.
    let whole = comfy_table::Table::new().width().map_or(WIDTH, usize::from);
    let room = fit(&mut widths, whole);
    let mut text = String::new();
    let paint = previews.paint;
    for (at, (name, _)) in header.iter().enumerate() {
        push_cell(&mut text, name, widths[at], Some(Tint::Name), paint);
    }
    text.extend([" ", &paint.tint(Tint::Name, "content"), "\n"]);
    for (cells, node) in rows {
        for (at, cell) in cells.iter().enumerate() {
            push_cell(&mut text, cell, widths[at], header[at].1, paint);
        }
        let preview = previews.show(node, room);
        match preview.is_empty() {
            true => text.truncate(text.trim_end_matches(' ').len()),
            false => text.extend([" ", &preview]),
        }
        text.push('\n');
    }
    Some(text)
}

/// Cuts the widest columns of a table that leave less than [`LEAST`] columns to the last one.
/// Returns the width of the last one.
fn fit(widths: &mut [usize], whole: usize) -> usize {
    loop {
        // A column has a space on either side, the last one has one on its left.
        let used: usize = widths.iter().map(|width| width + 2).sum::<usize>() + 1;
        let room = whole.saturating_sub(used);
        match widths.iter_mut().max() {
            Some(widest) if room < LEAST && *widest > NARROW => {
                *widest = NARROW.max(widest.saturating_sub(LEAST - room));
            }
            _ => return room.max(LEAST),
        }
    }
}

/// Appends a cell of a table, cut or padded to its width.
fn push_cell(text: &mut String, cell: &str, width: usize, tint: Option<Tint>, paint: Paint) {
    let cell = match width_of(cell) > width {
        true => part(cell, None, width).0,
        false => cell.to_owned(),
    };
    let padding = width.saturating_sub(width_of(&cell)) + 1;
    text.push(' ');
    match tint {
        Some(tint) => text.push_str(&paint.tint(tint, &cell)),
        None => text.push_str(&cell),
    }
    text.extend(std::iter::repeat_n(' ', padding));
}

/// The columns of a terminal that a text takes.
fn width_of(text: &str) -> usize {
    text.chars().map(preview::columns).sum()
}

/// The nodes as an outline below their ancestors, in document order; a new outline starts where
/// the snapshot changes.
pub(super) fn tree<'a>(nodes: impl Iterator<Item = Node<'a>>, previews: &Previews) -> String {
    let mut text = String::new();
    let mut group: Vec<Node<'a>> = Vec::new();
    for node in nodes {
        if group
            .first()
            .is_some_and(|first| label(*first) != label(node))
        {
            outline(&mut group, previews, &mut text);
        }
        group.push(node);
    }
    outline(&mut group, previews, &mut text);
    text
}

fn outline(found: &mut Vec<Node<'_>>, previews: &Previews, text: &mut String) {
    let Some(first) = found.first() else {
        return;
    };
    let place = previews.paint.tint(Tint::Place, &label(*first));
    let _ = writeln!(text, "{place}");
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
                let _ = writeln!(text, "● {}", previews.line(*node));
            } else {
                let _ = writeln!(text, "○ {}", printable(ancestor.id()));
            }
        }
    }
    found.clear();
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
