//! Times as other tools write them: `@-1`, `@1`, `@latest`, `t0`, `@t0-3`, `@c5-8`, `HEAD~1`.

use std::ops::Range;

use super::super::slip::{Accept, Slip};
use crate::support::diag::nearest;

/// An end of a range as it was probably meant.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Back(u64),
    Oldest,
    Cycle(u64),
    All,
    /// The working state, which is written by leaving the time out.
    Working,
}

impl End {
    fn text(self) -> String {
        match self {
            Self::Back(0) => "@t0".to_owned(),
            Self::Back(commits) => format!("@t-{commits}"),
            Self::Oldest => "@t-*".to_owned(),
            Self::Cycle(cycle) => format!("@c{cycle}"),
            Self::All => "@*".to_owned(),
            Self::Working => String::new(),
        }
    }
}

/// The time at the start of `text`, if it is written in another way than the language has.
/// `accept` tells whether a text is a selector.
pub(super) fn time(text: &str, accept: Accept<'_>) -> Option<Slip> {
    let start = text.len() - text.trim_start().len();
    let rest = text.get(start..)?;
    let apart = history(rest).or_else(|| separated(rest, accept));
    if let Some((range, instead, message, label)) = apart {
        let span = start + range.start..start + range.end;
        return Some(Slip::new(span, message, label).instead(instead));
    }
    let signed = rest.starts_with('@');
    let (from, mut read) = end(rest, signed, None)?;
    let mut to = None;
    if let Some(mark) = mark(rest.get(read..)?) {
        let kind = match from {
            End::Cycle(_) => 'c',
            _ => 't',
        };
        if let Some((end, length)) = end(rest.get(read + mark..)?, true, Some(kind)) {
            to = Some(end);
            read += mark + length;
        }
    }
    // The word ends here.
    let next = rest.get(read..)?.chars().next();
    if next.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '=' | '(' | '~')) {
        return None;
    }
    if !signed && next.is_some_and(|c| !c.is_whitespace()) {
        return None;
    }
    let written = rest.get(..read)?.trim_end();
    let meant = match to {
        Some(to) => format!("{}..{}", from.text(), to.text()),
        None => from.text(),
    };
    if written == meant || accept(&format!("{written} *")).is_some() {
        return None;
    }
    let span = start..start + written.len();
    let message = match &*meant {
        "" => "the working state is selected by leaving the time out".to_owned(),
        meant if to.is_some() => format!("expected a range of times such as `{meant}`"),
        meant => format!("expected a time such as `{meant}`"),
    };
    let mut instead = meant;
    if next.is_none() {
        instead.push_str(" *");
    }
    let after = rest.get(written.len()..read)?;
    instead.push_str(after);
    Some(Slip::new(span, message, "not a time").write(start..start + read, instead))
}

type Found = (Range<usize>, String, &'static str, &'static str);

/// `@hist`, `@history..@t0`.
fn history(rest: &str) -> Option<Found> {
    let after = rest.strip_prefix('@')?;
    let letters = after
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(after.len());
    let word = after.get(..letters)?.to_ascii_lowercase();
    let mut end = 1 + letters;
    let tail = rest.get(end..)?;
    if word == "history" && tail.starts_with("..") {
        end += tail.find(char::is_whitespace).unwrap_or(tail.len());
        let message = "`@history` is the range of all snapshots";
        return Some((0..end, "@history".to_owned(), message, "not a time"));
    }
    let spelt = word.len() >= 4 && "history".starts_with(&word)
        || nearest(&word, ["history"]).is_some()
        || word == "log";
    let ends = tail.is_empty() || tail.starts_with(char::is_whitespace);
    (spelt && word != "history" && ends).then(|| {
        let instead = match tail.trim() {
            "" => "@history *",
            _ => "@history",
        };
        (
            0..end,
            instead.to_owned(),
            "expected a time such as `@history`",
            "not a time",
        )
    })
}

/// `@t0> .cb`, `@t0 .. .cb`, `@t0: .cb`: a sign between the time and the selector.
fn separated(rest: &str, accept: Accept<'_>) -> Option<Found> {
    let signs = |c: char| c.is_whitespace() || matches!(c, ':' | '>' | ',' | ';' | '|');
    let end = rest.strip_prefix('@')?.find(signs)? + 1;
    let (time, after) = rest.split_at_checked(end)?;
    let gap = after.len() - after.trim_start().len();
    let sign = ["..", ":", ">", ",", ";", "|"]
        .into_iter()
        .find(|sign| after.trim_start().starts_with(sign))?;
    let selector = after.get(gap + sign.len()..)?;
    let spaces = selector.len() - selector.trim_start().len();
    let begins = selector
        .trim_start()
        .starts_with(['.', '#', '^', '[', '*', '{', '(', '+']);
    if !begins || accept(&format!("{time} *")).is_none() {
        return None;
    }
    let message = "white space separates the time from the selector";
    let range = end..end + gap + sign.len() + spaces;
    Some((range, " ".to_owned(), message, "not expected here"))
}

/// The end of a range at the start of `text`, and its length. `kind` is that of the other end.
fn end(text: &str, signed: bool, kind: Option<char>) -> Option<(End, usize)> {
    let bare = text.trim_start_matches('@');
    let signs = text.len() - bare.len();
    let trimmed = bare.trim_start();
    let mut read = signs;
    if signs > 0 {
        read += bare.len() - trimmed.len();
    } else if trimmed.len() < bare.len() {
        return None;
    }
    let letters = trimmed
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(trimmed.len());
    let word = trimmed.get(..letters)?.to_ascii_lowercase();
    let after = trimmed.get(letters..)?;
    read += letters;
    match &*word {
        "t" | "turn" | "time" | "snapshot" | "commit" | "c" | "cycle" => {
            let (end, length) = counted(&word, after, signed)?;
            Some((end, read + length))
        }
        "" if signed => {
            let (end, length) = digits(after, kind)?;
            Some((end, read + length))
        }
        "head" => {
            let (commits, length) = match after.as_bytes().first() {
                Some(b'~' | b'-') => number(after.get(1..)?).map(|(n, l)| (n, l + 1))?,
                Some(b'^') => (1, 1),
                _ if signed => (0, 0),
                _ => return None,
            };
            Some((End::Back(commits), read + length))
        }
        word if signed => Some((named(word, kind.is_some())?, read)),
        _ => None,
    }
}

/// `@latest`, `@prev`, `@all`; as an end of a range, only some.
fn named(word: &str, in_range: bool) -> Option<End> {
    Some(match word {
        "latest" | "newest" | "current" | "now" | "tip" | "today" | "last" | "final" => {
            End::Back(0)
        }
        "prev" | "previous" => End::Back(1),
        "oldest" | "earliest" | "beginning" if in_range => End::Oldest,
        "all" | "any" | "every" if !in_range => End::All,
        "working" | "wip" | "draft" | "live" if !in_range => End::Working,
        _ => return None,
    })
}

/// What follows `@` alone: `-1`, `3`, `*`, `-*`.
fn digits(after: &str, kind: Option<char>) -> Option<(End, usize)> {
    if after.starts_with('*') {
        let end = if kind.is_some() {
            End::Oldest
        } else {
            End::All
        };
        return Some((end, 1));
    }
    let sign = usize::from(after.starts_with(['-', '+']));
    if after.get(sign..)?.starts_with('*') {
        return Some((End::Oldest, sign + 1));
    }
    let (count, digits) = number(after.get(sign..)?)?;
    Some(match kind {
        Some('c') if sign == 0 => (End::Cycle(count), sign + digits),
        _ => (End::Back(count), sign + digits),
    })
}

/// What follows `t`, `turn`, `c`, `cycle`: `-1`, `=3`, `(3)`, ` 3`.
fn counted(word: &str, after: &str, signed: bool) -> Option<(End, usize)> {
    let cycle = word.starts_with('c') && word != "commit";
    let long = word.len() > 1;
    let mut gap = 0;
    if signed {
        gap = after.len() - after.trim_start_matches(['=', ':', '(', '[']).len();
        let spaced = after.get(gap..)?.strip_prefix(' ');
        let counts = |rest: &str| {
            rest.trim_start_matches('-')
                .starts_with(|c: char| c.is_ascii_digit())
        };
        if spaced.is_some_and(|rest| long || counts(rest)) {
            gap += 1;
        }
    }
    let rest = after.get(gap..)?;
    let sign = usize::from(rest.starts_with(['-', '+']));
    let Some((count, digits)) = number(rest.get(sign..)?) else {
        // `@t .cb`
        let alone = signed && word == "t" && gap == 0 && !after.starts_with(['-', '*', '+']);
        return alone.then_some((End::Back(0), 0));
    };
    let closing = usize::from(gap > 0 && rest.get(sign + digits..)?.starts_with([')', ']']));
    let length = gap + sign + digits + closing;
    match cycle && sign == 0 {
        true => Some((End::Cycle(count), length)),
        false if long && !signed => None,
        false => Some((End::Back(count), length)),
    }
}

fn number(text: &str) -> Option<(u64, usize)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text.get(..length)?.parse().ok()?, length))
}

/// The length of a range mark at the start of `text`, with the white space around it.
fn mark(text: &str) -> Option<usize> {
    let spaces = text.len() - text.trim_start().len();
    let rest = text.trim_start();
    for sign in ["...", "..", "to ", "until ", "through ", "-", ":", "~", ","] {
        let Some(after) = rest.strip_prefix(sign) else {
            continue;
        };
        let word = sign.ends_with(' ');
        let tight = matches!(sign, "-" | ":" | "~" | ",");
        let time = after.trim_start().starts_with('@')
            || after.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            || after
                .strip_prefix(['c', 't'])
                .is_some_and(|count| count.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
        // `@t0 - .cb` and `@t0 *` are no ranges.
        if tight && !time || word && spaces == 0 {
            continue;
        }
        let more = after.len() - after.trim_start().len();
        return Some(spaces + sign.len() + more);
    }
    None
}
