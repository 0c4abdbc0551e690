//! Line and word diffs of two texts, and unified diffs.
//!
//! Texts only. The result depends on the texts alone, never on the speed of the machine.

use super::text::push_safe;
use std::fmt::Write;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Sequences longer than this, after their common prefix and suffix are removed, become one edit.
const MOST_TOKENS: usize = 1 << 16;

/// A run of tokens of the older text and the run that replaces it. Never both empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenEdit {
    pub(crate) older: Range<usize>,
    pub(crate) newer: Range<usize>,
}

/// The edits that turn `older` into `newer`, in order, with equal tokens between any two.
///
/// About linear for similar texts; otherwise bounded by the search limits of `similar` and by
/// [`MOST_TOKENS`].
pub(crate) fn edits(older: &[&str], newer: &[&str]) -> Vec<TokenEdit> {
    let alike = |(a, b): &(&&str, &&str)| a == b;
    let start = older.iter().zip(newer).take_while(alike).count();
    let (old_rest, new_rest) = (&older[start..], &newer[start..]);
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(alike)
        .count();
    let old_rest = &old_rest[..old_rest.len() - tail];
    let new_rest = &new_rest[..new_rest.len() - tail];
    let mut found: Vec<TokenEdit> = Vec::new();
    let mut add = |older: Range<usize>, newer: Range<usize>| match found.last_mut() {
        Some(last) if last.older.end == older.start && last.newer.end == newer.start => {
            last.older.end = older.end;
            last.newer.end = newer.end;
        }
        _ => found.push(TokenEdit { older, newer }),
    };
    if old_rest.len().max(new_rest.len()) > MOST_TOKENS {
        add(start..start + old_rest.len(), start..start + new_rest.len());
        return found;
    }
    for op in capture_diff_slices(Algorithm::Myers, old_rest, new_rest) {
        if !matches!(op, DiffOp::Equal { .. }) {
            let shift = |range: Range<usize>| range.start + start..range.end + start;
            add(shift(op.old_range()), shift(op.new_range()));
        }
    }
    found
}

/// The lines of a text, each with its line feed. A carriage return is part of its line, as it is
/// for `patch`.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The words of a text: runs of letters, digits and `_`; runs of white space, with each line feed
/// a word by itself; any other character by itself. Concatenated they are the text.
pub(crate) fn words(text: &str) -> Vec<&str> {
    #[derive(PartialEq)]
    enum WordKind {
        Word,
        Space,
        Alone,
    }
    let kind = |letter: char| match letter {
        '\n' => WordKind::Alone,
        _ if letter.is_alphanumeric() || letter == '_' => WordKind::Word,
        _ if letter.is_whitespace() => WordKind::Space,
        _ => WordKind::Alone,
    };
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match kind(first) {
            WordKind::Alone => first.len_utf8(),
            run => rest
                .char_indices()
                .find(|(_, letter)| kind(*letter) != run)
                .map_or(rest.len(), |(at, _)| at),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after;
    }
    words
}

/// A unified diff as `diff -u` writes it, with `context` lines around hunks; empty for equal texts.
/// Each side is a name and a text.
pub(crate) fn unified(older: (&str, &str), newer: (&str, &str), context: usize) -> String {
    let (older_name, older) = older;
    let (newer_name, newer) = newer;
    let (old_lines, new_lines) = (lines(older), lines(newer));
    let edits = edits(&old_lines, &new_lines);
    let mut out = String::new();
    if edits.is_empty() {
        return out;
    }
    for (mark, name) in [("---", older_name), ("+++", newer_name)] {
        out.push_str(mark);
        out.push(' ');
        // A header ends at the line feed, and a name in it at a tab.
        name.chars().for_each(|letter| push_safe(letter, &mut out));
        out.push('\n');
    }
    // Avoids overflow below; a longer context has no effect.
    let context = context.min(old_lines.len());
    for group in edits.chunk_by(|a, b| b.older.start - a.older.end <= 2 * context) {
        hunk(group, &old_lines, &new_lines, context, &mut out);
    }
    out
}

/// Writes one hunk: neighbouring edits and the lines around them.
fn hunk(group: &[TokenEdit], older: &[&str], newer: &[&str], context: usize, out: &mut String) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let lead = context.min(first.older.start);
    let trail = context.min(older.len() - last.older.end);
    let place = |range: Range<usize>| match range.len() {
        1 => (range.start + 1).to_string(),
        // An empty range names the line before it.
        0 => format!("{},0", range.start),
        length => format!("{},{length}", range.start + 1),
    };
    let _ = writeln!(
        out,
        "@@ -{} +{} @@",
        place(first.older.start - lead..last.older.end + trail),
        place(first.newer.start - lead..last.newer.end + trail)
    );
    let mut write = |mark: char, lines: &[&str]| {
        for line in lines {
            out.push(mark);
            out.push_str(line);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    let mut at = first.older.start - lead;
    for edit in group {
        write(' ', &older[at..edit.older.start]);
        write('-', &older[edit.older.clone()]);
        write('+', &newer[edit.newer.clone()]);
        at = edit.older.end;
    }
    write(' ', &older[at..at + trail]);
}
