//! Nodes of a snapshot as tables, outlines and lines, each with its content on one line: the tool's name, then the
//! start of the content, or the part that the selector looked for.

use super::options::{Paint, Tint, width};
pub(super) use crate::app::present::answer::{label, node_json, quoted, snapshot_label};
use crate::engine::{Node, Selection};
use crate::history::{Delta, LoadFailure};
use crate::json::JsonValue;
use crate::query::ir::{
    Attr, AttrTest, CompareOp, Literal, NodeStep, Operand, Pattern, Patterns, SelectorQuery, Test,
};
pub(super) use crate::support::text::{clean, counted, cut, escaped, part, printable, width_of};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;

const WIDTH: usize = 120;

/// The least width of the last column of a table.
const LEAST: usize = 24;

/// The width to which the other columns of a table that is too wide are cut.
const NARROW: usize = 12;

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
        ("id", 0, Some(Tint::Name)),
        ("snapshot", 5, Some(Tint::Place)),
        ("depth", 3, None),
        ("type", 1, None),
        ("role", 0, Some(Tint::Kind)),
        ("kind", 4, Some(Tint::Kind)),
        ("ttl", 2, None),
    ];
    columns(header, rows, previews).unwrap_or_else(|| "no nodes\n".to_owned())
}

/// A column of a table: its title; in which order columns are left out where a terminal is too narrow, 0 is
/// never; its colour.
pub(super) type PrintedColumn = (&'static str, u8, Option<Tint>);

/// A table with a preview of a node in the last column, as wide as the terminal, one line for each
/// row; `None` if there are no rows.
pub(super) fn columns<'a, const N: usize>(
    header: [PrintedColumn; N],
    rows: impl Iterator<Item = ([String; N], Node<'a>)>,
    previews: &Previews,
) -> Option<String> {
    let rows: Vec<([String; N], Node<'a>)> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let mut widths = header.map(|(title, ..)| Some(title.len()));
    for (cells, _) in &rows {
        for (widest, cell) in widths.iter_mut().zip(cells) {
            *widest = (*widest).max(Some(width_of(cell)));
        }
    }
    // On a terminal its width is known.
    let whole = width().unwrap_or(WIDTH);
    let room = fit(&header, &mut widths, whole);
    let shown = || (0..N).filter_map(|at| Some((at, widths[at]?)));
    let mut text = String::new();
    let paint = previews.paint;
    for (at, width) in shown() {
        push_cell(&mut text, header[at].0, width, Some(Tint::Name), paint);
    }
    text.extend([" ", &paint.tint(Tint::Name, "content"), "\n"]);
    for (cells, node) in rows {
        for (at, width) in shown() {
            push_cell(&mut text, &cells[at], width, header[at].2, paint);
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
fn fit(header: &[PrintedColumn], widths: &mut [Option<usize>], whole: usize) -> usize {
    loop {
        // A column has a space on either side, the last one has one on its left.
        let used: usize = widths.iter().flatten().map(|width| width + 2).sum();
        let room = whole.saturating_sub(used + 1);
        if room >= LEAST {
            return room;
        }
        let shown = (0..header.len()).filter(|at| header[*at].1 > 0 && widths[*at].is_some());
        if let Some(at) = shown.min_by_key(|at| header[*at].1) {
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
    let cell = cut(cell, width);
    let padding = width.saturating_sub(width_of(&cell)) + 1;
    text.push(' ');
    text.push_str(&tint.map_or_else(|| cell.clone(), |tint| paint.tint(tint, &cell)));
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

/// The width of a preview outside tables, in columns of a terminal.
pub(super) const PREVIEW: usize = 60;

#[derive(Default)]
pub(super) struct Previews {
    /// What the selector looks for in the content of the nodes it finds.
    patterns: Vec<Pattern>,
    pub(super) paint: Paint,
    /// The tools' names by the ids of calls, for each snapshot by its label.
    tools: RefCell<HashMap<String, HashMap<String, String>>>,
}

impl Previews {
    pub(super) fn new(query: &SelectorQuery, paint: Paint) -> Self {
        let mut patterns = Patterns::new();
        let texts = contents(query).into_iter();
        Self {
            patterns: texts
                .filter_map(|text| patterns.compile(text).ok())
                .collect(),
            paint,
            ..Self::default()
        }
    }

    /// The preview of a node in at most `width` columns; empty without a content and a tool.
    pub(super) fn show(&self, node: Node<'_>, width: usize) -> String {
        let tool = self.tool(node).unwrap_or_default();
        let tool = clean(&tool, width / 2);
        let content = content(node);
        let room = width - tool.chars().count();
        let found = self
            .patterns
            .iter()
            .find_map(|pattern| pattern.find(&content));
        let (text, found) = part(
            &content,
            found,
            room.saturating_sub(usize::from(!tool.is_empty())),
        );
        let mut shown = self.paint.tint(Tint::Tool, &tool);
        if !tool.is_empty() && !text.is_empty() {
            shown.push(' ');
        }
        shown.push_str(&text[..found.start]);
        shown.push_str(&self.paint.tint(Tint::Match, &text[found.clone()]));
        shown.push_str(&text[found.end..]);
        shown
    }

    /// A node on one line: id, role, kind, the preview.
    pub(super) fn line(&self, node: Node<'_>) -> String {
        let mut line = self.paint.tint(Tint::Name, &printable(node.id()));
        for word in [node.role(), node.kind()].into_iter().flatten() {
            line.push(' ');
            line.push_str(&self.paint.tint(Tint::Kind, &clean(word, PREVIEW)));
        }
        let preview = self.show(node, PREVIEW);
        if !preview.is_empty() {
            line.push_str(": ");
            line.push_str(&preview);
        }
        line
    }

    /// The name of the tool that a call calls, or that a result is from.
    fn tool(&self, node: Node<'_>) -> Option<String> {
        let row = node.row();
        if let Some(name) = text_of(row.field("data_call_name")) {
            return Some(name);
        }
        // A result names its call, not the tool.
        let call = text_of(row.field("data_call_id"))?;
        let mut tools = self.tools.borrow_mut();
        let names = tools.entry(label(node)).or_insert_with(|| {
            let calls = row.snapshot().nodes().filter_map(|node| {
                let name = text_of(node.field("data_call_name"))?;
                Some((text_of(node.field("data_call_id"))?, name))
            });
            calls.collect()
        });
        names.get(&call).cloned()
    }
}

/// The same rows in the whole snapshot, if a preview of one needs more than was loaded for the answer:
/// the call that a result names may be anywhere.
pub(super) fn with_calls(rows: &Selection) -> Result<Option<Selection>, LoadFailure> {
    let names_call = |node: Node<'_>| {
        let has = |name: &str| node.row().field(name).is_some();
        has("data_call_id") && !has("data_call_name")
    };
    if rows.is_part() && rows.nodes().any(names_call) {
        rows.in_whole().transpose()
    } else {
        Ok(None)
    }
}

fn text_of(field: Option<JsonValue<'_>>) -> Option<String> {
    field?.text().map(str::to_owned)
}

/// The content as text; a value that is not a string is as it is spelt in the session.
fn content(node: Node<'_>) -> Cow<'_, str> {
    match node.row().field("content") {
        None | Some(JsonValue::Null) => Cow::Borrowed(""),
        Some(JsonValue::Text(text)) => Cow::Borrowed(text),
        Some(content) => content.json(),
    }
}

fn contents(query: &SelectorQuery) -> Vec<&str> {
    let last = query.chains.iter().filter_map(|chain| chain.steps.last());
    let nodes = last.filter_map(|(_, step)| step.node());
    let tests = nodes.flat_map(NodeStep::all_tests);
    let texts = tests.chain(&query.filters).filter_map(|test| match test {
        Test::Attr(AttrTest {
            attr: Attr::Content,
            op: CompareOp::Matches,
            operand: Operand::Literal(Literal::Text(text)),
        }) => Some(&**text),
        _ => None,
    });
    texts.collect()
}
