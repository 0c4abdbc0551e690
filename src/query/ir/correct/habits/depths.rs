//! `:depth(…)` in other spellings, and the last turns as other languages count them.

use super::super::scan::{Kind, Scan};
use super::super::slip::Slip;
use crate::support::diag::nearest;

/// Whether `word` is `depth`, misspelt or not.
fn is_depth(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower == "depth" || lower == "depths" || nearest(&lower, ["depth"]).is_some()
}

/// A set of depths as it was probably meant: `1-3` for `1:3`, `1 to 3`, `last 3`.
fn meant_set(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(count) = text.strip_prefix("last ") {
        return last_turns(count.trim());
    }
    for mark in [":", "to", "through", "–"] {
        if let Some((from, to)) = text.split_once(mark) {
            let (from, to) = (from.trim(), to.trim());
            let digits =
                |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            if digits(from) && digits(to) {
                return Some(format!("{from}-{to}"));
            }
        }
    }
    let known = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"<>=-.,{} ".contains(&byte));
    (known && text.bytes().any(|byte| byte.is_ascii_digit())).then_some(text)
}

/// The depths of the last `count` turns.
pub(super) fn last_turns(count: &str) -> Option<String> {
    let count: u32 = count.parse().ok()?;
    match count {
        0 => None,
        1 => Some("1".to_owned()),
        _ => Some(format!("1-{count}")),
    }
}

/// `:dpeth(1-3)`, `:depth[1]`, `:depth 1`, `:depth=1`, `:depth1-3)`, `:depth(1 to 3)`.
pub(super) fn depths(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.word(index) != ":" || scan.kind(index + 1) != Some(Kind::Word) {
        return None;
    }
    let name = index + 1;
    let word = scan.word(name);
    let sign = scan.next(name)?;
    let (set, end) = if scan.kind(sign) == Some(Kind::Open) && scan.attached(sign) {
        let close = scan.partner(sign)?;
        let inner = scan.span(sign).end..scan.span(close).start;
        (scan.text.get(inner)?.to_owned(), scan.span(close).end)
    } else if scan.word(sign) == ")" && word.get(..5).is_some_and(is_depth) {
        (word.get(5..)?.to_owned(), scan.span(sign).end)
    } else {
        let value = match scan.word(sign) {
            "=" | "==" | ":" => scan.next(sign)?,
            "<" | "<=" | ">=" if scan.attached(sign) => sign,
            _ if scan.kind(sign) == Some(Kind::Word) => sign,
            _ => return None,
        };
        let last = match scan.kind(value) {
            Some(Kind::Word) => value,
            _ => scan.next(value).filter(|_| value == sign)?,
        };
        (scan.slice(value, last).to_owned(), scan.span(last).end)
    };
    let spelt = word
        .get(..5)
        .filter(|_| scan.word(sign) == ")")
        .unwrap_or(word);
    if !is_depth(spelt) {
        return None;
    }
    let meant = meant_set(&set)?;
    let span = scan.span(index).start..end;
    let instead = format!(":depth({meant})");
    if scan.text.get(span.clone()) == Some(&*instead)
        || spelt == "depth" && meant == set && scan.word(sign) == "("
    {
        return None;
    }
    let message = match spelt {
        "depth" if scan.word(sign) == "(" => format!("expected depths such as `{meant}`"),
        "depth" => "depths are written in parentheses".to_owned(),
        other => format!("expected `:depth(…)`, found `:{other}`"),
    };
    let label = match spelt {
        "depth" if scan.word(sign) == "(" => "not a set of depths",
        "depth" => "parentheses are missing",
        _ => "not a pseudo-class",
    };
    Some(Slip::new(span, message, label).instead(instead))
}

/// `last 3 turns`, `last turn`.
pub(super) fn last_words(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let word = |at: usize| scan.word(at).to_ascii_lowercase();
    if index != scan.body() || !matches!(&*word(index), "last" | "latest" | "newest") {
        return None;
    }
    let next = scan.next(index)?;
    let (count, noun) = match scan.word(next).parse::<u32>() {
        Ok(_) => (scan.word(next), scan.next(next)?),
        Err(_) => ("1", next),
    };
    if !matches!(&*word(noun), "turn" | "turns" | "mt" | "mts") {
        return None;
    }
    let set = last_turns(count)?;
    let message = "expected the depths of the turns, which count from the newest";
    let span = scan.through(index, noun);
    Some(Slip::new(span, message, "words are no step").instead(format!("^seq .mt:depth({set})")))
}

/// `.mt[-3:]`, `.mt:last(3)`: the depths of the last turns. `at` is where the type ends.
pub(super) fn of_turns(scan: &Scan<'_>, at: usize, count: &str) -> Option<String> {
    let name = at.checked_sub(1)?;
    let turns = matches!(scan.word(name), "mt" | "seg") && scan.word(name.checked_sub(1)?) == ".";
    last_turns(count)
        .filter(|_| turns)
        .map(|set| format!(":depth({set})"))
}
