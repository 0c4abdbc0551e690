//! A snapshot to read, as text for a terminal and as Markdown.

use crate::inspect::call::Call;
use crate::inspect::part::Region;
use crate::inspect::report::RECONSTRUCTED;
use crate::inspect::steps::seconds;
use crate::inspect::tokenizer::Tokenizer;
use crate::support::table::{Paint, Tint};
use crate::support::text::{counted, printable, verbatim};
use serde::Serialize;
use std::fmt::Write as _;

/// A snapshot to read.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Shown {
    /// `@t0`, `@t-1`, …, or `working`.
    pub label: String,
    /// The cycle; that of a working state is the one in progress.
    pub cycle: i64,
    /// When its reply came, or else when its newest block was made, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What the snapshot says of the call.
    pub call: Call,
    /// The request parameters as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// How tokens are counted.
    pub tokenizer: Tokenizer,
    /// The tokens of all blocks.
    pub tokens: u64,
    /// Blocks of the snapshot before that this one does not have.
    pub removed: usize,
    /// The blocks in the order in which they are sent.
    pub blocks: Vec<ShownBlock>,
}

/// How a block compares with the snapshot before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum News {
    /// It was there, and is the same.
    Same,
    /// It was not there.
    Added,
    /// It was there, and says something else.
    Changed,
}

/// A block to read.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ShownBlock {
    /// Its id.
    pub id: String,
    /// Where it is.
    pub region: Region,
    /// The id of the turn it is in, under `^seq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The depth of the turn: 1 is the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<i64>,
    /// Its role, or the default of the region.
    pub role: String,
    /// Its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The tool that it defines, calls, or is a result of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Whether it is the model's reply of this cycle.
    pub reply: bool,
    /// Whether it is a result that says it is an error.
    pub error: bool,
    /// How it compares with the snapshot before.
    pub news: News,
    /// Bytes of the text.
    pub bytes: u64,
    /// Tokens of the block.
    pub tokens: u64,
    /// The text: the content if it is a string, else its JSON.
    pub text: String,
}

/// The first lines of a text that are shown, and the characters of them.
const LINES: usize = 10;
const LETTERS: usize = 800;

/// The header line of a snapshot, without what is not known.
fn title(shown: &Shown) -> String {
    let mut words = vec![format!("cycle {}", shown.cycle)];
    words.extend(shown.time.as_deref().map(seconds));
    words.extend(shown.call.model.as_deref().map(printable));
    words.push(format!(
        "{} ({})",
        counted(shown.tokens, "token"),
        shown.tokenizer
    ));
    let usage = [
        ("provider counted", shown.call.input_tokens),
        ("cached", shown.call.cached_tokens),
        ("replied", shown.call.output_tokens),
    ];
    let usage = usage
        .iter()
        .filter_map(|(name, count)| Some(format!("{name} {}", (*count)?)));
    words.extend(usage);
    words.join(", ")
}

/// What is odd about a snapshot, a line each.
fn remarks(shown: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    if shown.call.reconstructed {
        lines.push(RECONSTRUCTED.trim_end().to_owned());
    }
    if shown.call.compaction {
        lines.push("compaction: a summary replaces what was before".to_owned());
    }
    if shown.call.failed > 0 {
        let calls = counted(shown.call.failed as u64, "call");
        let error = shown
            .call
            .error
            .as_deref()
            .map(|error| format!(": {}", printable(error)));
        lines.push(format!("{calls} failed{}", error.unwrap_or_default()));
    }
    if shown.removed > 0 {
        let blocks = counted(shown.removed as u64, "block");
        lines.push(format!("{blocks} of the snapshot before gone"));
    }
    lines
}

/// Where blocks are, as a heading.
fn place(block: &ShownBlock) -> String {
    match (block.region, &block.turn, block.depth) {
        (Region::Sys, ..) => "^sys".to_owned(),
        (Region::Ah, ..) => "^ah".to_owned(),
        (_, Some(turn), Some(depth)) => format!("{} (depth {depth})", printable(turn)),
        (_, Some(turn), None) => printable(turn),
        _ => "^seq".to_owned(),
    }
}

/// Who says what: `assistant  call find`.
fn speaker(block: &ShownBlock, paint: Paint) -> String {
    let mut words = paint.tint(Tint::Kind, &printable(&block.role));
    let kind = block.kind.as_deref().unwrap_or("block");
    if kind != "text" {
        let _ = write!(words, " {}", printable(kind));
    }
    if let Some(tool) = &block.tool {
        let _ = write!(words, " {}", paint.tint(Tint::Tool, &printable(tool)));
    }
    if block.error {
        let _ = write!(words, " {}", paint.tint(Tint::Removed, "error"));
    }
    words
}

/// The sign of a block that is new: `+`, or `~` if it changed.
fn sign(news: News, paint: Paint) -> String {
    match news {
        News::Added => paint.tint(Tint::Added, "+"),
        News::Changed => paint.tint(Tint::Changed, "~"),
        _ => " ".to_owned(),
    }
}

/// The lines of a text that are shown, and what says how much is left out.
fn cut(text: &str, full: bool) -> (Vec<&str>, Option<String>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = Vec::new();
    let mut letters = 0;
    for line in &lines {
        if !full && shown.len() == LINES {
            break;
        }
        let left = LETTERS.saturating_sub(letters);
        letters += line.chars().count();
        if !full && letters > LETTERS {
            let end = line
                .char_indices()
                .nth(left)
                .map_or(line.len(), |(at, _)| at);
            shown.push(&line[..end]);
            break;
        }
        shown.push(line);
    }
    let kept: usize = shown.iter().map(|line| line.len() + 1).sum();
    let rest = text.len().saturating_sub(kept);
    let more = (rest > 0).then(|| format!("… {} more", counted(rest as u64, "byte")));
    (shown, more)
}

impl Shown {
    /// A snapshot as text: the blocks in the order in which they are sent, with `+` before those that are
    /// new since the snapshot before, and `~` before those that changed.
    pub(super) fn text(&self, full: bool, paint: Paint) -> String {
        let mut out = format!(
            "{}: {}\n",
            paint.tint(Tint::Place, &self.label),
            title(self)
        );
        for line in remarks(self) {
            let _ = writeln!(out, "{}", paint.tint(Tint::Changed, &line));
        }
        if let Some(parameters) = &self.parameters {
            let _ = writeln!(out, "parameters {}", verbatim(parameters));
        }
        let mut last = None;
        let mut blocks = self.blocks.iter().peekable();
        while let Some(block) = blocks.next() {
            let here = place(block);
            if last.as_ref() != Some(&here) {
                let _ = writeln!(out, "\n{}", paint.tint(Tint::Name, &here));
                last = Some(here);
            }
            if is_tool(block) && !full {
                // Their definitions are long, and mostly their names are enough.
                let mut names = vec![printable(block.tool.as_deref().unwrap_or(&block.id))];
                let (mut tokens, mut news) = (block.tokens, block.news);
                while let Some(tool) = blocks.next_if(|next| is_tool(next) && next.news == news) {
                    names.push(printable(tool.tool.as_deref().unwrap_or(&tool.id)));
                    tokens += tool.tokens;
                    news = tool.news;
                }
                let _ = writeln!(
                    out,
                    "{} {} {}: {}",
                    sign(news, paint),
                    paint.tint(Tint::Kind, &counted(names.len() as u64, "tool")),
                    counted(tokens, "token"),
                    names.join(", ")
                );
                continue;
            }
            let _ = writeln!(
                out,
                "{} {}  {}  {}",
                sign(block.news, paint),
                speaker(block, paint),
                printable(&block.id),
                counted(block.tokens, "token")
            );
            let (lines, more) = cut(&block.text, full);
            for line in lines {
                let _ = writeln!(out, "{}", format!("    {}", verbatim(line)).trim_end());
            }
            if let Some(more) = more {
                let _ = writeln!(out, "    {more}");
            }
        }
        out
    }

    /// A snapshot as Markdown.
    pub(super) fn markdown(&self, full: bool) -> String {
        let mut out = format!("# {}\n\n{}\n", self.label, title(self));
        for line in remarks(self) {
            let _ = write!(out, "\n> {line}\n");
        }
        if let Some(parameters) = &self.parameters {
            fence(parameters, "json", &mut out);
        }
        let mut last = None;
        for block in &self.blocks {
            let here = place(block);
            if last.as_ref() != Some(&here) {
                let _ = write!(out, "\n## {here}\n");
                last = Some(here);
            }
            let news = match block.news {
                News::Added => ", new",
                News::Changed => ", changed",
                _ => "",
            };
            let _ = write!(
                out,
                "\n### {}\n\n`{}`, {}{news}\n",
                speaker(block, Paint::default()),
                block.id.replace('`', "'"),
                counted(block.tokens, "token")
            );
            let (lines, more) = cut(&block.text, full);
            let lines: Vec<String> = lines.into_iter().map(verbatim).collect();
            match block.kind.as_deref() {
                None | Some("text" | "summary") => {
                    let _ = write!(out, "\n{}\n", lines.join("\n"));
                }
                Some("call" | "tool") => fence(&lines.join("\n"), "json", &mut out),
                Some(_) => fence(&lines.join("\n"), "", &mut out),
            }
            if let Some(more) = more {
                let _ = write!(out, "\n{more}\n");
            }
        }
        out
    }
}

fn is_tool(block: &ShownBlock) -> bool {
    block.region == Region::Sys && block.kind.as_deref() == Some("tool")
}

/// Appends a block of code, whose fence is longer than any run of backticks in it.
fn fence(text: &str, language: &str, out: &mut String) {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let _ = write!(out, "\n{fence}{language}\n{text}\n{fence}\n");
}
