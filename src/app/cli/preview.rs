//! Contents on one line: the tool's name, then the start of the content, or the part that the
//! selector looked for.

use super::options::{Paint, Tint};
use crate::app::present::node::label;
use crate::app::present::{clean, is_direction, printable};
use crate::engine::{Node, Selection};
use crate::history::LoadFailure;
use crate::json::JsonValue;
use crate::query::ir::{
    Attr, AttrTest, CompareOp, Literal, Operand, Pattern, Patterns, PickOrTest, Query, QueryStep,
    Test,
};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use unicode_width::UnicodeWidthChar;

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

/// The part of `text` to show in at most `width` columns, on one line and safe to print: the
/// start or, if `found` lies beyond it, the surroundings of `found`. Also where `found` is in it.
pub(super) fn part(
    text: &str,
    found: Option<Range<usize>>,
    width: usize,
) -> (String, Range<usize>) {
    let Some(found) = found.filter(|found| !found.is_empty()) else {
        return (line(text, 0, &(0..0), width).0, 0..0);
    };
    let (start, mark, whole) = line(text, 0, &found, width);
    if whole {
        return (start, mark);
    }
    // As much as the match leaves, at most a third; more where little follows it.
    let length = text[found.clone()].chars().count();
    let after = text[found.end..].chars().take(width).count();
    let room = width.saturating_sub(length + 2);
    let before = (width / 3).min(room / 2).max(room.saturating_sub(after));
    let before = text[..found.start].char_indices().rev().nth(before);
    let from = before.map_or(0, |(at, _)| at);
    let (shown, mark, _) = line(text, from, &found, width.saturating_sub(1));
    let cut = CUT.len_utf8();
    (format!("{CUT}{shown}"), mark.start + cut..mark.end + cut)
}

/// The sign of what is left out.
const CUT: char = '…';

/// `text` from `from` on, on one line of at most `width` columns; where `found` is in it, and
/// whether it is there to its end.
fn line(
    text: &str,
    from: usize,
    found: &Range<usize>,
    width: usize,
) -> (String, Range<usize>, bool) {
    let mut out = String::new();
    let (mut used, mut space) = (0, false);
    let (mut start, mut end, mut cut) = (0, None, false);
    for (at, letter) in text[from..].char_indices() {
        let at = from + at;
        if at >= found.end && end.is_none() {
            end = Some(out.len());
        }
        if letter.is_whitespace() {
            space = !out.is_empty();
            continue;
        }
        let more = columns(letter) + usize::from(space);
        if used + more > width {
            // Room for the sign.
            while used >= width
                && let Some(last) = out.pop()
            {
                used -= columns(last);
            }
            cut = true;
            break;
        }
        used += more;
        if std::mem::take(&mut space) {
            out.push(' ');
        }
        if at <= found.start {
            start = out.len();
        }
        out.push(if letter.is_control() || is_direction(letter) {
            '\u{fffd}'
        } else {
            letter
        });
    }
    let whole = !cut || end.is_some_and(|end| end <= out.len());
    let end = end.unwrap_or(out.len()).min(out.len());
    if cut {
        out.push(CUT);
    }
    (out, start.min(end)..end, whole)
}

/// The columns of a terminal that a letter takes; one for the sign that replaces a control.
pub(super) fn columns(letter: char) -> usize {
    letter.width().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::part;

    fn shown(text: &str, found: &str, width: usize) -> (String, String) {
        let at = text.find(found).expect("the match");
        let (shown, mark) = part(text, Some(at..at + found.len()), width);
        let marked = shown[mark].to_owned();
        (shown, marked)
    }

    #[test]
    fn a_match_near_the_start_leaves_the_start() {
        let (text, marked) = shown("one  two\nthree", "two", 60);
        assert_eq!((&*text, &*marked), ("one two three", "two"));
        let (text, marked) = shown("one two three", "three", 13);
        assert_eq!((&*text, &*marked), ("one two three", "three"));
    }

    #[test]
    fn a_match_far_from_the_start_is_shown_with_its_surroundings() {
        let long = format!("{} needle {}", "a ".repeat(50), "b ".repeat(50));
        let (text, marked) = shown(&long, "needle", 30);
        assert_eq!(marked, "needle");
        assert!(text.starts_with('…') && text.ends_with('…'), "{text}");
        assert!(text.chars().count() <= 30, "{text}");
        let (text, marked) = shown(&"x".repeat(100), "xxxx", 10);
        assert_eq!((&*text, &*marked), ("xxxxxxxxx…", "xxxx"));
    }

    #[test]
    fn wide_letters_take_two_columns() {
        let (text, _) = part("漢字漢字漢字", None, 6);
        assert_eq!(text, "漢字…");
        assert_eq!(part("", None, 6).0, "");
        assert_eq!(part("a\u{1b}b\u{202e}", None, 6).0, "a\u{fffd}b\u{fffd}");
    }
}
