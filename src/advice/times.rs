//! Times as other tools write them: `@-1`, `@6`, `@step6`, `@to`, `@latest`, `t0`, `@t0-3`, `@c5-8`, `@t0...@t-3`.

use super::slip::{Accept, Slip};

/// The slip of the time at the start of `text`, if it is written as the language does not. `accept`
/// tells whether a text is a selector.
pub(super) fn time(text: &str, accept: Accept<'_>) -> Option<Slip> {
    let start = text.len() - text.trim_start().len();
    let rest = text.get(start..)?;
    let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (written, after) = rest.split_at_checked(length)?;
    let kind = match written.trim_start_matches('@').as_bytes() {
        // A number is that of a step, of which 0 is none.
        [b'1'..=b'9', ..] => 'c',
        _ => 't',
    };
    let (from, more) = end(written, written.starts_with('@'), kind)?;
    let marks = ["...", "..", "-", ":"];
    let second = marks.iter().find_map(|mark| more.strip_prefix(mark));
    let mut label = "not a time";
    let meant = match second {
        // As in Python, where -1 is the last; in a range of the language -1 is one commit back.
        None if more.is_empty() && written.starts_with("@-") => {
            label = "the newest is `@t0`, the one before it `@t-1`";
            let back = from.strip_prefix("@t-").and_then(|back| back.parse().ok());
            match back {
                Some(back @ 2_u64..) => format!("@t-{}", back - 1),
                _ => "@t0".to_owned(),
            }
        }
        None if more.is_empty() => from,
        None => return None,
        Some(second) => {
            let kind = if from.starts_with("@c") { 'c' } else { 't' };
            let (to, more) = end(second, true, kind)?;
            if !more.is_empty() {
                return None;
            }
            format!("{from}..{to}")
        }
    };
    if written == meant || accept(&format!("{written} *")).is_some() {
        return None;
    }
    let what = if second.is_some() {
        "a range of times"
    } else {
        "a time"
    };
    let message = format!("expected {what} such as `{meant}`");
    // A time alone selects nothing.
    let all = if after.trim().is_empty() { " *" } else { "" };
    let span = start..start + length;
    Some(Slip::new(span.clone(), message, label).write(span, meant + all))
}

/// One end of a range at the start of `text`, as it was meant, and what follows it. Without a sign in
/// front only `t0`, `t-1` and `c7` are times; a number alone is of `kind`.
fn end(text: &str, signed: bool, kind: char) -> Option<(String, &str)> {
    let text = text.trim_start_matches('@');
    let letters = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (word, after) = text.split_at_checked(letters)?;
    let kind = match &*word.to_ascii_lowercase() {
        "t" => 't',
        "c" => 'c',
        "cycle" | "step" if signed => 'c',
        "" if signed => kind,
        "to" | "latest" | "newest" | "last" | "now" | "current" | "head" if signed => {
            return Some(("@t0".to_owned(), after));
        }
        "previous" | "prev" if signed => return Some(("@t-1".to_owned(), after)),
        "all" if signed => return Some(("@*".to_owned(), after)),
        _ => return None,
    };
    let back = after.strip_prefix('-').filter(|_| kind == 't');
    let digits = back.unwrap_or(after);
    let length = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(length)?;
    let count: u64 = digits.parse().ok()?;
    Some(match kind {
        'c' => (format!("@c{count}"), rest),
        _ if count == 0 => ("@t0".to_owned(), rest),
        _ => (format!("@t-{count}"), rest),
    })
}
