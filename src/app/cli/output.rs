//! Nodes of a snapshot as tables, outlines and lines, each with its content on one line: the tool's name, then the
//! start of the content, or the part that the selector looked for.

use super::options::{Paint, Tint, width};
pub(super) use crate::app::present::answer::{label, node_json, quoted, snapshot_label};
use crate::engine::{Node, Selection};
use crate::history::{ContentDiff, Delta, LoadFailure};
use crate::json::JsonValue;
use crate::query::ir::{
    Attr, AttrTest, CompareOp, Literal, NodeStep, Operand, Pattern, Patterns, SelectorQuery, Test,
};
use crate::support::table::{TableCell, TextTable};
pub(super) use crate::support::text::{clean, counted, cut, escaped, part, printable};
use crate::tree::hash::is_hashed;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;

/// The width of a table with previews where there is no terminal.
const WIDTH: usize = 120;

/// The least width of a preview in a table.
const LEAST: usize = 36;

pub(super) fn table<'a>(nodes: impl Iterator<Item = Node<'a>>, previews: &Previews) -> String {
    let nodes: Vec<Node<'a>> = nodes.collect();
    if nodes.is_empty() {
        return "no nodes\n".to_owned();
    }
    let titles = "id snapshot depth type role kind ttl".split(' ');
    let table = TextTable::new(titles).words([1, 3, 4, 5]);
    let mut table = table.optional(&[3, 6, 2, 5, 1]).hide_empty();
    for node in &nodes {
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        table.add([
            TableCell::new(printable(node.id()), Some(Tint::Name)),
            TableCell::new(label(*node), Some(Tint::Place)),
            number(node.depth()).unwrap_or_default().into(),
            clean(node.node_type(), PREVIEW).into(),
            word(node.role()),
            word(node.kind()),
            number(node.ttl()).unwrap_or_default().into(),
        ]);
    }
    previewed(&table, &nodes, previews)
}

/// The cell of a role or a kind.
pub(super) fn word(word: Option<&str>) -> TableCell {
    TableCell::new(clean(word.unwrap_or_default(), PREVIEW), Some(Tint::Kind))
}

/// A table of nodes, as wide as the terminal, with the preview of each in the last column.
pub(super) fn previewed(table: &TextTable, nodes: &[Node<'_>], previews: &Previews) -> String {
    let paint = previews.paint.columns(Some(width().unwrap_or(WIDTH)));
    table.ended(paint, LEAST, |row, room| match row {
        Some(row) => previews.show(nodes[row], room.unwrap_or(PREVIEW)),
        None => paint.tint(Tint::Name, "content"),
    })
}

/// The nodes as an outline below their ancestors, in document order; a new outline starts where
/// the snapshot changes.
pub(super) fn tree<'a>(nodes: impl Iterator<Item = Node<'a>>, previews: &Previews) -> String {
    let mut text = String::new();
    let mut group: Vec<Node<'a>> = Vec::new();
    for node in nodes {
        let is_other = |first: &Node<'_>| label(*first) != label(node);
        if group.first().is_some_and(is_other) {
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

/// The names of fields that changed. The content hash also covers the role, the kind and `data_*`: it stands for the content
/// where that differs, or where no other field that it covers does.
pub(super) fn fields(names: &[String], content: Option<&ContentDiff>) -> String {
    let differs = content.map(|content| !content.summary.identical);
    let covers = |name: &str| matches!(name, "role" | "kind") || is_hashed(name);
    let is_hash = |name: &&String| *name == "content_hash";
    let others = names.iter().filter(|name| !is_hash(name));
    let differs = differs.or((!others.clone().any(|name| covers(name))).then_some(true));
    let shown = names.iter().filter_map(|name| match differs {
        Some(true) if is_hash(&name) => Some("content".to_owned()),
        Some(false) if is_hash(&name) && names.len() > 1 => None,
        _ => Some(printable(name)),
    });
    shown.collect::<Vec<_>>().join(", ")
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
        let mut patterns = self.patterns.iter();
        let found = patterns.find_map(|pattern| pattern.find(&content));
        let room = room.saturating_sub(usize::from(!tool.is_empty()));
        let (text, found) = part(&content, found, room);
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
