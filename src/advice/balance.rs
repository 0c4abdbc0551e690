//! Quotes and brackets that lack their other half, and those that have one too many.
//!
//! A missing sign could be almost anywhere. Each place where it could be is tried; the selector
//! that is accepted and has the plainest texts in quotes is the one that was meant.

use super::scan::{Kind, QUOTES, Scan};
use super::slip::{Accept, Slip, apply};
/// The most places that are tried for one sign.
const MOST: usize = 80;

/// The slip of a missing or superfluous quote or bracket, if undoing it gives a selector.
/// `accept` tells whether a text is one.
pub(super) fn repair(text: &str, accept: Accept<'_>) -> Option<Slip> {
    let by_quotes = quotes(text, accept);
    by_quotes.or_else(|| brackets(text, accept)).or_else(|| {
        // Both a quote and a bracket.
        let both = |text: &str| accept(text).or_else(|| brackets(text, accept).map(|_| MOST));
        quotes(text, &both)
    })
}

/// The other half of a bracket.
fn partner(bracket: &str) -> char {
    match bracket {
        "[" => ']',
        "]" => '[',
        "(" => ')',
        ")" => '(',
        "{" => '}',
        _ => '{',
    }
}

/// Where a text in quotes or a bracket opens that never closes, with the sign that is missing.
pub(super) fn unclosed(text: &str) -> Option<(std::ops::Range<usize>, char)> {
    let scan = Scan::new(text);
    if scan.unquoted {
        let last = scan.lexemes.last()?;
        let mark = text.get(last.span.clone())?.chars().next()?;
        return Some((last.span.start..last.span.start + 1, mark));
    }
    let open = (0..scan.lexemes.len())
        .rev()
        .find(|at| scan.kind(*at) == Some(Kind::Open) && scan.partner(*at).is_none())?;
    Some((scan.span(open), partner(scan.word(open))))
}

fn quotes(text: &str, accept: Accept<'_>) -> Option<Slip> {
    let odd: Vec<char> = ['\'', '"']
        .into_iter()
        .filter(|mark| count(text, *mark) % 2 == 1)
        .collect();
    let mark = *odd.first()?;
    let mut tries: Vec<Slip> = Vec::new();
    if odd.len() == 2 {
        // `'user"`
        for (from, to) in [('"', '\''), ('\'', '"')] {
            for (at, _) in text.match_indices(from) {
                let message = "a text begins and ends with the same quote";
                let slip = Slip::new(at..at + 1, message, format!("expected `{to}`"));
                tries.push(slip.write(at..at + 1, to));
            }
        }
    }
    // `'user’`: one quote of two is typographic.
    for (at, quote) in text.char_indices().filter(|(_, c)| QUOTES.contains(*c)) {
        let place = at..at + quote.len_utf8();
        let message = "a text takes `'` or `\"`";
        let slip = Slip::new(place.clone(), message, "a typographic quote");
        tries.push(slip.write(place, mark));
    }
    for (at, _) in text.match_indices(mark) {
        // `'it's'`
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + 1..).and_then(|after| after.chars().next());
        if before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric) {
            let message = format!("a `{mark}` inside a text takes a backslash");
            let slip = Slip::new(at..at + 1, message, "the backslash is missing");
            tries.push(slip.write(at..at, "\\"));
        }
    }
    let extra = |at: usize| {
        let message = "a text has one quote on each side";
        let slip = Slip::new(at..at + 1, message, "one quote too many");
        slip.write(at..at + 1, "")
    };
    let marks = text.match_indices(mark).map(|(at, _)| at);
    let doubled = |at: &usize| {
        text.get(at + 1..)
            .is_some_and(|rest| rest.starts_with(mark))
    };
    tries.extend(marks.clone().filter(doubled).map(extra));
    tries.extend(places(text).into_iter().map(|at| missing(text, mark, at)));
    tries.extend(marks.map(extra));
    best(text, tries, accept, oddness)
}

/// A quote that may be missing at `at`.
fn missing(text: &str, mark: char, at: usize) -> Slip {
    let before = text.get(..at).unwrap_or_default();
    let (side, other, label) = if count(before, mark).is_multiple_of(2) {
        let end = text.get(at..).and_then(|rest| rest.find(mark));
        ("opening", end.map(|end| at + end), "the text ends here")
    } else {
        ("closing", before.rfind(mark), "the text begins here")
    };
    let message = format!("the {side} `{mark}` is missing");
    let slip = Slip::new(at..at, message, "it belongs here").write(at..at, mark);
    match other {
        Some(other) => slip.and_at(other..other + 1, label),
        None => slip,
    }
}

/// The number of quotes of one kind that no backslash precedes.
fn count(text: &str, mark: char) -> usize {
    let places = text.match_indices(mark);
    places
        .filter(|(at, _)| !text.get(..*at).is_some_and(|before| before.ends_with('\\')))
        .count()
}

/// Where a word or sign begins or ends.
fn places(text: &str) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    let mut last = None;
    for (at, c) in text.char_indices() {
        let word = c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
        if last != Some(word) || !word {
            places.push(at);
        }
        last = Some(word);
    }
    places.push(text.len());
    places.dedup();
    places
}

fn brackets(text: &str, accept: Accept<'_>) -> Option<Slip> {
    let scan = Scan::new(text);
    let mut tries: Vec<Slip> = Vec::new();
    let brackets = (0..scan.lexemes.len())
        .filter(|at| matches!(scan.kind(*at), Some(Kind::Open | Kind::Close)));
    // One sign cannot balance more.
    if brackets.filter(|at| scan.partner(*at).is_none()).count() > 2 {
        return None;
    }
    for at in 0..scan.lexemes.len() {
        let (kind, word) = (scan.kind(at), scan.word(at));
        match (kind, scan.partner(at)) {
            (Some(Kind::Open), None) => unclosed_tries(&scan, at, &mut tries),
            (Some(Kind::Close), None) => unopened_tries(&scan, at, &mut tries),
            (Some(Kind::Open), Some(close)) if scan.word(close) != partner(word).to_string() => {
                mixed_tries(&scan, at, close, &mut tries);
            }
            _ => continue,
        }
        // The word of `:depth(` would become another one.
        let called = word == "(" && at > 1 && scan.word(at - 2) == ":";
        if kind == Some(Kind::Open) && scan.next(at).is_some() && !called {
            tries.push(superfluous(&scan, at, partner(word)));
        }
    }
    best(text, tries, accept, |_| 0)
}

/// A bracket too many: it lacks `other`.
fn superfluous(scan: &Scan<'_>, at: usize, other: char) -> Slip {
    let message = format!("`{}` without `{other}`", scan.word(at));
    let slip = Slip::new(scan.span(at), message, "one bracket too many");
    slip.write(scan.span(at), "")
}

fn unclosed_tries(scan: &Scan<'_>, open: usize, tries: &mut Vec<Slip>) {
    let sign = partner(scan.word(open));
    let end = scan.lexemes.len();
    // `[kind=[call,result]`: where an inner bracket closes last, it is the outer one that does not.
    let nested = end
        .checked_sub(1)
        .is_some_and(|last| scan.kind(last) == Some(Kind::Close));
    let first = nested.then_some(end);
    for at in first.into_iter().chain(open + 1..=end) {
        if scan.kind(at) == Some(Kind::Space) {
            continue;
        }
        // After the lexeme before, which white space may follow.
        let place = match at.checked_sub(1) {
            Some(before) if scan.kind(before) == Some(Kind::Space) => scan.span(before).start,
            _ => scan.span(at).start,
        };
        let message = format!("the closing `{sign}` is missing");
        let slip = Slip::new(place..place, message, "it belongs here").write(place..place, sign);
        tries.push(slip.and_at(scan.span(open), "opened here"));
    }
}

fn unopened_tries(scan: &Scan<'_>, close: usize, tries: &mut Vec<Slip>) {
    let word = scan.word(close);
    let sign = partner(word);
    let extra = superfluous(scan, close, sign);
    let doubled = close > 0 && scan.word(close - 1) == word;
    let span = scan.span(close);
    let text = scan.text.get(..span.start).unwrap_or_default();
    let from = scan.span(scan.body()).start;
    let missing = |at: usize| {
        // After a type and white space, the brackets belong to the type.
        let before = scan.text.get(..at).unwrap_or_default();
        let spaces = before.len() - before.trim_end().len();
        let typed = before
            .rsplit(|c: char| c.is_whitespace())
            .find(|word| !word.is_empty())
            .is_some_and(|word| word.starts_with('.'));
        let from = if typed { at - spaces } else { at };
        let message = format!("the opening `{sign}` is missing");
        let slip = Slip::new(at..at, message, "it belongs here").write(from..at, sign);
        slip.and_at(span.clone(), "closed here")
    };
    let mut places: Vec<usize> = places(text).into_iter().filter(|at| *at >= from).collect();
    places.reverse();
    let missing = places.into_iter().map(missing);
    if doubled {
        tries.push(extra);
        tries.extend(missing);
    } else {
        tries.extend(missing);
        tries.push(extra);
    }
}

fn mixed_tries(scan: &Scan<'_>, open: usize, close: usize, tries: &mut Vec<Slip>) {
    let mut replaced = |wrong: usize, right: usize, meant: char, by: &str, label: &str| {
        let message = format!("`{}` is {by} by `{meant}`", scan.word(right));
        let slip = Slip::new(scan.span(wrong), message, format!("expected `{meant}`"));
        let slip = slip.write(scan.span(wrong), meant);
        tries.push(slip.and_at(scan.span(right), label));
    };
    replaced(
        close,
        open,
        partner(scan.word(open)),
        "closed",
        "opened here",
    );
    replaced(
        open,
        close,
        partner(scan.word(close)),
        "opened",
        "closed here",
    );
}

/// Of the slips whose undoing is accepted, the one with the fewest warnings and the least odd text.
fn best(text: &str, tries: Vec<Slip>, accept: Accept<'_>, odd: fn(&str) -> usize) -> Option<Slip> {
    let mut best: Option<(usize, Slip)> = None;
    for mut slip in tries.into_iter().take(MOST) {
        let undone = apply(text, &mut slip.edits);
        let odd = odd(&undone);
        let least = best.as_ref().map(|(least, _)| *least);
        if least.is_none_or(|least| odd < least)
            && let Some(warnings) = accept(&undone)
            && least.is_none_or(|least| odd + warnings < least)
        {
            best = Some((odd + warnings, slip));
        }
    }
    best.map(|(_, slip)| slip)
}

/// How many signs of the language are inside of quotes.
fn oddness(text: &str) -> usize {
    let scan = Scan::new(text);
    let quoted = (0..scan.lexemes.len()).filter(|at| scan.kind(*at) == Some(Kind::Quoted));
    quoted
        .map(|at| {
            let inner = scan.content(at);
            let signs = inner
                .chars()
                .filter(|c| "[]{}()=<>~,@#*".contains(*c))
                .count();
            signs + usize::from(inner.is_empty()) + usize::from(inner.trim() != inner)
        })
        .sum()
}
