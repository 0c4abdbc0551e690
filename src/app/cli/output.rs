//! Nodes of a snapshot as tables, outlines and lines.

use super::options::{Paint, Tint};
use super::preview::{PREVIEW, Previews};
pub(super) use crate::app::present::node::{label, node_json, quoted, snapshot_label};
use crate::engine::Node;
use crate::history::Delta;
pub(super) use crate::support::text::{clean, counted, part, printable, verbatim, width_of};
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
        Column::new("id", 0).tint(Tint::Name),
        Column::new("snapshot", 5).tint(Tint::Place),
        Column::new("depth", 3),
        Column::new("type", 1),
        Column::new("role", 0).tint(Tint::Kind),
        Column::new("kind", 4).tint(Tint::Kind),
        Column::new("ttl", 2),
    ];
    columns(header, rows, previews).unwrap_or_else(|| "no nodes\n".to_owned())
}

/// A column of a table.
#[derive(Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    /// In which order columns are left out where a terminal is too narrow; 0 is never.
    rank: u8,
    tint: Option<Tint>,
}

impl Column {
    /// A column without colour.
    pub(super) fn new(name: &'static str, rank: u8) -> Self {
        let tint = None;
        Self { name, rank, tint }
    }

    /// The column in a colour.
    pub(super) fn tint(self, tint: Tint) -> Self {
        let tint = Some(tint);
        Self { tint, ..self }
    }
}

/// A table with a preview of a node in the last column, as wide as the terminal, one line for each
/// row; `None` if there are no rows.
pub(super) fn columns<'a, const N: usize>(
    header: [Column; N],
    rows: impl Iterator<Item = ([String; N], Node<'a>)>,
    previews: &Previews,
) -> Option<String> {
    let rows: Vec<([String; N], Node<'a>)> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let mut widths = header.map(|column| Some(column.name.len()));
    for (cells, _) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(Some(width_of(cell)));
        }
    }
    // On a terminal its width is known.
    let whole = comfy_table::Table::new().width().map_or(WIDTH, usize::from);
    let room = fit(&header, &mut widths, whole);
    let shown = || (0..N).filter_map(|at| Some((at, widths[at]?)));
    let mut text = String::new();
    let paint = previews.paint;
    for (at, width) in shown() {
        push_cell(&mut text, header[at].name, width, Some(Tint::Name), paint);
    }
    text.extend([" ", &paint.tint(Tint::Name, "content"), "\n"]);
    for (cells, node) in rows {
        for (at, width) in shown() {
            push_cell(&mut text, &cells[at], width, header[at].tint, paint);
        }
        let preview = previews.show(node, room);
        if preview.is_empty() {
            text.truncate(text.trim_end_matches(' ').len())
        } else {
            text.extend([" ", &preview])
        }
        text.push('\n');
    }
    Some(text)
}

/// Leaves out columns of a table, then cuts the widest ones, until the last one has [`LEAST`]
/// columns. Returns the width of the last one.
fn fit(header: &[Column], widths: &mut [Option<usize>], whole: usize) -> usize {
    loop {
        // A column has a space on either side, the last one has one on its left.
        let used: usize = widths.iter().flatten().map(|width| width + 2).sum();
        let room = whole.saturating_sub(used + 1);
        if room >= LEAST {
            return room;
        }
        let ranks = header.iter().enumerate();
        let ranks = ranks.filter(|(at, column)| column.rank > 0 && widths[*at].is_some());
        if let Some((at, _)) = ranks.min_by_key(|(_, column)| column.rank) {
            widths[at] = None;
            continue;
        }
        match widths.iter_mut().flatten().max() {
            Some(widest) if *widest > NARROW => {
                *widest = NARROW.max(widest.saturating_sub(LEAST - room));
            }
            _ => return room.max(NARROW),
        }
    }
}

/// Appends a cell of a table, cut or padded to its width.
fn push_cell(text: &mut String, cell: &str, width: usize, tint: Option<Tint>, paint: Paint) {
    let cell = if width_of(cell) > width {
        part(cell, None, width).0
    } else {
        cell.to_owned()
    };
    let padding = width.saturating_sub(width_of(&cell)) + 1;
    text.push(' ');
    match tint {
        Some(tint) => text.push_str(&paint.tint(tint, &cell)),
        None => text.push_str(&cell),
    }
    text.extend(std::iter::repeat_n(' ', padding));
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
