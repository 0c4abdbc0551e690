//! A snapshot as text for a terminal, and as Markdown.

use super::options::{Paint, Tint};
use super::output::{counted, printable, verbatim};
use crate::inspect::{News, Region, Shown, ShownBlock};
use std::fmt::Write as _;

/// What is shown of long texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Whole texts.
    pub(super) full: bool,
    pub(super) paint: Paint,
}

/// The first lines of a text that are shown, and the characters of them.
const LINES: usize = 10;
const LETTERS: usize = 800;

/// The header line of a snapshot, without what is not known.
fn title(shown: &Shown) -> String {
    let mut words = vec![format!("cycle {}", shown.cycle)];
    words.extend(shown.time.as_deref().map(time));
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

/// A time to the second.
pub(super) fn time(text: &str) -> String {
    let text = printable(text);
    match text.split_once('.') {
        Some((seconds, _)) => seconds.replacen('T', " ", 1),
        None => text.trim_end_matches('Z').replacen('T', " ", 1),
    }
}

/// What is odd about a snapshot, a line each.
fn remarks(shown: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    if shown.call.reconstructed {
        lines.push(
            "reconstructed: the log is a transcript and does not say exactly what was sent"
                .to_owned(),
        );
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

/// A snapshot as text: the blocks in the order in which they are sent, with `+` before those that are
/// new since the snapshot before, and `~` before those that changed.
pub(super) fn text(shown: &Shown, look: Look) -> String {
    let paint = look.paint;
    let mut out = format!(
        "{}: {}\n",
        paint.tint(Tint::Place, &shown.label),
        title(shown)
    );
    for line in remarks(shown) {
        let _ = writeln!(out, "{}", paint.tint(Tint::Changed, &line));
    }
    if let Some(parameters) = &shown.parameters {
        let _ = writeln!(out, "parameters {}", verbatim(parameters));
    }
    let mut last = None;
    let mut blocks = shown.blocks.iter().peekable();
    while let Some(block) = blocks.next() {
        let here = place(block);
        if last.as_ref() != Some(&here) {
            let _ = writeln!(out, "\n{}", paint.tint(Tint::Name, &here));
            last = Some(here);
        }
        if is_tool(block) && !look.full {
            // Their definitions are long, and the question is mostly which there are.
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
        let (lines, more) = cut(&block.text, look.full);
        for line in lines {
            let _ = writeln!(out, "{}", format!("    {}", verbatim(line)).trim_end());
        }
        if let Some(more) = more {
            let _ = writeln!(out, "    {more}");
        }
    }
    out
}

fn is_tool(block: &ShownBlock) -> bool {
    block.region == Region::Sys && block.kind.as_deref() == Some("tool")
}

/// A snapshot as Markdown.
pub(super) fn markdown(shown: &Shown, look: Look) -> String {
    let mut out = format!("# {}\n\n{}\n", shown.label, title(shown));
    for line in remarks(shown) {
        let _ = write!(out, "\n> {line}\n");
    }
    if let Some(parameters) = &shown.parameters {
        fence(parameters, "json", &mut out);
    }
    let mut last = None;
    for block in &shown.blocks {
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
        let (lines, more) = cut(&block.text, look.full);
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

/// Appends a block of code, whose fence is longer than any run of backticks in it.
fn fence(text: &str, language: &str, out: &mut String) {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let _ = write!(out, "\n{fence}{language}\n{text}\n{fence}\n");
}
