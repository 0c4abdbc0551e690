//! Text that is safe to print on a terminal: whole or on one line, cut to a width. What controls a terminal is an escape.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use unicode_width::UnicodeWidthChar;

/// Text that is not ours, as a terminal gets it: what controls it or turns the direction of writing is an escape of JSON,
/// `\u001b`; line feeds and tabs stay. JSON stays the same JSON, because only its strings have such characters. `colored`
/// leaves the colours of [`Paint`](super::table::Paint).
pub(crate) fn escaped(text: &str, colored: bool) -> Cow<'_, str> {
    let stays = |letter: char| matches!(letter, '\n' | '\t') || !controls(letter);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let color = if colored { color(rest) } else { 0 };
        let (this, after) = rest.split_at(color.max(letter.len_utf8()));
        if color > 0 || stays(letter) {
            out.push_str(this);
        } else {
            push_safe(letter, &mut out);
        }
        rest = after;
    }
    Cow::Owned(out)
}

/// The length of the sequence for a colour with which a text begins.
fn color(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[") else {
        return 0;
    };
    let end = codes.find(|letter: char| !letter.is_ascii_digit() && letter != ';');
    end.filter(|end| codes[*end..].starts_with('m'))
        .map_or(0, |end| end + 3)
}

/// Whether a character controls a terminal, or changes the direction of the text after it.
pub(crate) fn controls(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Appends a character, as an escape of JSON if it [controls] something.
pub(crate) fn push_safe(letter: char, out: &mut String) {
    match letter {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        letter if controls(letter) => {
            // No such character is beyond U+FFFF.
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        }
        letter => out.push(letter),
    }
}

/// At most `limit` characters of `text`: runs of white space become one space, and characters that
/// control a terminal become escapes.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    let mut space = false;
    for letter in text.chars() {
        if letter.is_whitespace() {
            space = !out.is_empty();
            continue;
        }
        count += 1 + usize::from(space);
        if count > limit {
            out.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
        }
        push_safe(letter, &mut out);
    }
    out
}

/// All of `text`, as [`clean`] makes it safe to print.
pub(crate) fn printable(text: &str) -> String {
    clean(text, usize::MAX)
}

/// A number of things: `1 node`, `2 nodes`, `3 hashes`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ if thing.ends_with('h') => format!("{} {thing}es", amount(count)),
        _ => format!("{} {thing}s", amount(count)),
    }
}

/// A time in a unit that fits its size.
pub(crate) fn short_time(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

/// A number with commas between thousands.
pub(crate) fn amount(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The part of a text that fits this number of columns: the start, or of a path the end, which tells it from others, also
/// if an id follows it.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width_of(text) <= columns {
        return text.to_owned();
    }
    let mut words = text.split(' ');
    let is_place = words.next().is_some_and(|first| first.contains(['/', '#']));
    if !is_place || words.count() > 1 {
        return part(text, None, columns).0;
    }
    let (mut room, mut start) = (columns.saturating_sub(1), text.len());
    for (at, letter) in text.char_indices().rev() {
        let Some(left) = room.checked_sub(self::columns(letter)) else {
            break;
        };
        (room, start) = (left, at);
    }
    format!("…{}", &text[start..])
}

/// The columns of a terminal that a text takes.
pub(crate) fn width_of(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The lines of a text, none wider than `width`: a longer one goes on in lines below it, which begin two columns further in,
/// after a blank where there is one. Colours go on, too.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let blanks = line.len() - line.trim_start_matches(' ').len() + 2;
        let inside = if blanks * 2 > width { 0 } else { blanks };
        // Where the last blank of the line is, and what has been written since.
        let (mut used, mut blank, mut since) = (0, None, 0);
        let (mut rest, mut tint) = (line, "");
        while let Some(letter) = rest.chars().next() {
            let code = color(rest);
            let (this, after) = rest.split_at(code.max(letter.len_utf8()));
            rest = after;
            if code > 0 {
                tint = if this == "\u{1b}[0m" { "" } else { this };
                out.push_str(this);
                continue;
            }
            // A tab is at most so wide.
            let more = if letter == '\t' { 8 } else { columns(letter) };
            if used + more > width {
                let end = if tint.is_empty() { "" } else { "\u{1b}[0m" };
                let next = format!("{end}\n{:inside$}{tint}", "");
                // A colour that began since stays where it began.
                match blank.filter(|at| !out[*at..].contains('\u{1b}')) {
                    Some(at) => out.insert_str(at, &next),
                    None => {
                        out.push_str(&next);
                        since = 0;
                    }
                }
                (used, blank) = (inside + since, None);
            }
            out.push_str(this);
            used += more;
            since += more;
            if letter == ' ' && used > blanks {
                (blank, since) = (Some(out.len()), 0);
            }
        }
        out.push('\n');
    }
    out
}

/// The part of `text` to show in at most `width` columns, on one line and safe to print: the
/// start or, if `found` lies beyond it, the surroundings of `found`. Also where `found` is in it.
pub(crate) fn part(
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
        push_safe(letter, &mut out);
    }
    let whole = !cut || end.is_some_and(|end| end <= out.len());
    let end = end.unwrap_or(out.len()).min(out.len());
    if cut {
        out.push(CUT);
    }
    (out, start.min(end)..end, whole)
}

/// The columns of a terminal that a letter takes; six for the escape of a control.
pub(crate) fn columns(letter: char) -> usize {
    if controls(letter) {
        6
    } else {
        letter.width().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{amount, cut, escaped, part};

    #[test]
    fn the_end_of_a_path_tells_it_from_others() {
        for (text, expected) in [
            ("a/b.jsonl", "a/b.jsonl"),
            ("logs/2026/run.jsonl", "…run.jsonl"),
            ("logs/run.jsonl cb:1-1", "…nl cb:1-1"),
            ("runs.db#support cb:1-1", "…rt cb:1-1"),
            ("one or/and another", "one or/an…"),
            ("a longer title", "a longer …"),
        ] {
            assert_eq!(cut(text, 10), expected);
        }
    }

    #[test]
    #[cfg(feature = "cli")]
    fn long_lines_are_wrapped() {
        for (line, expected) in [
            ("short", "short\n"),
            ("", ""),
            ("  + one two three", "  + one\n    two\n    three\n"),
            ("abcdefghijklmnop", "abcdefghij\n  klmnop\n"),
            (
                "a b\u{1b}[31mcdefghijk\u{1b}[0ml",
                "a b\u{1b}[31mcdefghi\u{1b}[0m\n  \u{1b}[31mjk\u{1b}[0ml\n",
            ),
            ("語語語語語語", "語語語語語\n  語\n"),
        ] {
            assert_eq!(
                super::wrapped(line, 10).replace(" \n", "\n"),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn what_controls_a_terminal_is_an_escape() {
        let hostile = "a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}b\r\n\tc\u{7f}\u{1b}[31m";
        let safe = r"a\u001b]0;x\u0007\u009b2J\u202eb\r".to_owned() + "\n\tc" + r"\u007f";
        assert_eq!(escaped(hostile, false), format!("{safe}\\u001b[31m"));
        // The colours of the program, and nothing like them.
        assert_eq!(escaped(hostile, true), format!("{safe}\u{1b}[31m"));
        assert_eq!(escaped("\u{1b}[31K\u{1b}[", true), r"\u001b[31K\u001b[");
        let json = serde_json::json!({"a\u{85}": "\u{202e}\u{7f}"});
        let read: serde_json::Value =
            serde_json::from_str(&escaped(&json.to_string(), false)).expect("JSON");
        assert_eq!(read, json);
    }

    fn shown(text: &str, found: &str, width: usize) -> (String, String) {
        let at = text.find(found).expect("the match");
        let (shown, mark) = part(text, Some(at..at + found.len()), width);
        let marked = shown[mark].to_owned();
        (shown, marked)
    }

    #[test]
    fn thousands_have_commas() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(amount(number), text);
        }
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
        assert_eq!(part("a\u{1b}b", None, 8).0, "a\\u001bb");
        assert_eq!(part("a\u{1b}b\u{202e}", None, 10).0, "a\\u001bb…");
    }
}
