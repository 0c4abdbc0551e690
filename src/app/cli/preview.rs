//! Contents on one line: the tool's name, then the start of the content, or the part that the
//! selector looked for.

use super::options::{Paint, Tint};
use crate::app::present::node::label;
use crate::engine::{Node, Selection};
use crate::history::LoadFailure;
use crate::json::JsonValue;
use crate::query::ir::{
    Attr, AttrTest, CompareOp, Literal, Operand, Pattern, Patterns, PickOrTest, Query, QueryStep,
    Test,
};
use crate::support::text::{clean, part, printable};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

/// The width of a preview outside tables, in columns of a terminal.
pub(super) const PREVIEW: usize = 60;

/// How contents are shown.
#[derive(Default)]
pub(super) struct Previews {
    /// What the selector looks for in the content of the nodes it finds.
    patterns: Vec<Pattern>,
    pub(super) paint: Paint,
    /// The tools' names by the ids of calls, for each snapshot by its label.
    tools: RefCell<HashMap<String, HashMap<String, String>>>,
}

impl Previews {
    /// Previews of what a selector finds.
    pub(super) fn of(query: &Query, paint: Paint) -> Self {
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

/// A field that is a text.
fn text_of(field: Option<JsonValue<'_>>) -> Option<String> {
    field?.text().map(str::to_owned)
}

/// The content as text; what is no string is as it is spelt in the session.
fn content(node: Node<'_>) -> Cow<'_, str> {
    match node.row().field("content") {
        None | Some(JsonValue::Null) => Cow::Borrowed(""),
        Some(JsonValue::Text(text)) => Cow::Borrowed(text),
        Some(content) => content.json(),
    }
}

/// The patterns that the nodes found are tested with.
fn contents(query: &Query) -> Vec<&str> {
    let last = query.chains.iter().filter_map(|chain| chain.steps.last());
    let tests = last.flat_map(|(_, step)| match step {
        QueryStep::Node(step) => {
            let tail = step.tail.iter().filter_map(|tail| match tail {
                PickOrTest::Test(test) => Some(test),
                PickOrTest::Pick(_) => None,
            });
            step.tests.iter().chain(tail).collect()
        }
        QueryStep::Zone(_) => Vec::new(),
    });
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
