//! Pseudo-classes of CSS and jQuery, outside brackets.

use super::super::scan::{Kind, Scan, escaped, text_of};
use super::super::slip::Slip;
use super::common::{any_op, union_of};
use super::depths::of_turns;
use crate::query::ir::edition::Edition;

/// `:first-child`, `:nth-child(2)`, `:not(…)`, `:contains(…)` and their like.
pub(super) fn css_pseudos(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || !matches!(scan.word(index), ":" | "::") {
        return None;
    }
    let word = index + 1;
    if scan.kind(word) != Some(Kind::Word) {
        return None;
    }
    let name = scan.word(word).to_ascii_lowercase();
    if name == "nth"
        && let Some(slip) = spaced_nth(scan, index)
    {
        return Some(slip);
    }
    let open = (scan.word(word + 1) == "(").then_some(word + 1);
    let close = open.and_then(|open| scan.partner(open));
    let last = match open {
        Some(_) => close?,
        None => word,
    };
    let argument = match (open, close) {
        (Some(open), Some(close)) => scan.text.get(scan.span(open).end..scan.span(close).start)?,
        _ => "",
    };
    let argument = argument.trim();
    let whole = scan.through(index, last);
    let expect = |what: &str, text: &str| {
        Slip::new(
            whole.clone(),
            format!("expected {what}, found `:{name}`"),
            "not a pseudo-class",
        )
        .instead(text)
    };
    let slip = match &*name {
        "first-child" | "first-of-type" => expect("`:first`", ":first"),
        "last-child" | "last-of-type" => expect("`:last`", ":last"),
        "nth-child" | "nth-of-type" | "nth-last-child" | "nth-last-of-type" | "eq" | "nth" => {
            return count(scan, &name, argument, whole, open.is_some());
        }
        "first" | "last" if open.is_some() => return several(scan, index, &name, argument, whole),
        "root" if scan.prev(index).is_none_or(|prev| !scan.attached(index) || prev < scan.body()) => {
            expect("`^root`", "^root")
        }
        "contains" | "text" | "icontains" if open.is_some() => {
            let text = unquoted(argument);
            let flags = if name == "icontains" { "(?i)" } else { "" };
            let pattern = text_of(&format!("{flags}{}", escaped(&text)));
            expect("a search of the content", &format!("[content~{pattern}]"))
        }
        "not" => return not(scan, index, open, whole),
        "is" | "where" | "matches" | "any" | "filter" if compares(scan, open, close) => {
            expect("properties in brackets", &format!("[{argument}]"))
        }
        "is" | "where" | "matches" | "any" if open.is_some() => return alternatives(scan, index, open?, last),
        "has" | "parent" | "has-text" | "contains" | "is" | "where" => {
            let help = match &*name {
                "has" | "parent" => "a selector goes down, from a node to what is inside of it; nothing selects by what is inside",
                _ => "compare an attribute: `[role='user']`, `[content~'text']`",
            };
            expect("a test of the node itself", "").no_equal(help)
        }
        "only-child" | "only-of-type" | "empty" | "odd" | "even" | "before" | "after" | "gt" | "lt" => {
            expect("a pseudo-class of this language", "").no_equal(
                "the pseudo-classes are `:first`, `:last`, `:nth(2)`, `:pre`, `:core`, `:post` and `:depth(1)`",
            )
        }
        _ => return None,
    };
    Some(slip)
}

/// `:nth 1`.
fn spaced_nth(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let number = scan.next(index + 1)?;
    let digits = scan.word(number).bytes().all(|byte| byte.is_ascii_digit());
    (number == index + 3 && digits).then(|| {
        Slip::new(
            scan.through(index, number),
            "the number of `:nth` is written in parentheses",
            "parentheses are missing",
        )
        .instead(format!(":nth({})", scan.word(number)))
    })
}

/// Whether a comparison is directly in the parentheses.
fn compares(scan: &Scan<'_>, open: Option<usize>, close: Option<usize>) -> bool {
    let (Some(open), Some(close)) = (open, close) else {
        return false;
    };
    (open + 1..close).any(|at| scan.parent(at) == Some(open) && any_op(scan, at))
        && scan.kind(open + 1) == Some(Kind::Word)
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    for mark in ['\'', '"'] {
        if let Some(inner) = text
            .strip_prefix(mark)
            .and_then(|text| text.strip_suffix(mark))
        {
            return inner.replace(&format!("\\{mark}"), &mark.to_string());
        }
    }
    text.to_owned()
}

/// `:nth-child(2)`, `:nth(0)`, `:nth(-1)`.
fn count(
    scan: &Scan<'_>,
    name: &str,
    argument: &str,
    whole: std::ops::Range<usize>,
    called: bool,
) -> Option<Slip> {
    let _ = scan;
    let number = argument.parse::<i64>().ok();
    let from_end = name.contains("last");
    let text = match (number, name) {
        (None, _) if argument == "last" || argument == "last()" => Some(":last".to_owned()),
        (None, _) => None,
        (Some(1), _) if from_end => Some(":last".to_owned()),
        (Some(_), _) if from_end => None,
        (Some(at), "eq") if at >= 0 => Some(format!(":nth({})", at.checked_add(1)?)),
        (Some(-1), _) => Some(":last".to_owned()),
        (Some(0), "nth") => Some(":first".to_owned()),
        (Some(at), "nth") if at >= 1 => return None,
        (Some(at), _) if at >= 1 => Some(format!(":nth({at})")),
        _ => None,
    };
    if name == "nth" && called && argument.is_empty() {
        let slip = Slip::new(whole, "expected a number for `:nth`", "nothing is in it");
        return Some(
            slip.instead("")
                .no_equal("`:nth(1)` picks the first of each place"),
        );
    }
    if name == "nth" && (text.is_none() || !called) {
        return None;
    }
    let slip = match name {
        "nth" => Slip::new(
            whole,
            "`:nth` counts from 1, from the front",
            "no such place",
        ),
        _ => Slip::new(
            whole,
            format!("expected `:nth(…)`, found `:{name}`"),
            "not a pseudo-class",
        ),
    };
    Some(match text {
        Some(text) => slip.instead(text),
        None => slip.instead("").no_equal(
            "`:nth(2)` picks the second; several are written one by one: `.cb:nth(1), .cb:nth(3)`",
        ),
    })
}

/// `:first(3)`.
fn several(
    scan: &Scan<'_>,
    index: usize,
    name: &str,
    argument: &str,
    whole: std::ops::Range<usize>,
) -> Option<Slip> {
    let (first, last) = scan.member(index);
    let number = argument.parse::<u64>().ok();
    let ends = scan.span(last).end == whole.end && last + 1 >= scan.lexemes.len();
    let alone = first <= scan.body()
        && !(first..=last).any(|at| {
            scan.outside(at) && (scan.kind(at) == Some(Kind::Space) || scan.word(at) == ">")
        });
    let message = format!("`:{name}` picks one node and takes no number");
    let slip = Slip::new(whole, message, "no parentheses here");
    if name == "last"
        && let Some(depths) = of_turns(scan, index, argument)
    {
        return Some(slip.instead(depths));
    }
    Some(match number {
        None if argument.is_empty() => slip.instead(format!(":{name}")),
        Some(count) if name == "first" && ends && alone => slip.instead(format!(" @limit={count}")),
        _ if name == "last" => slip.instead(":last").no_equal(
            "`:last` picks the last of each place; the last three turns are `.mt:depth(1-3)`",
        ),
        _ => slip.instead(format!(":{name}")).no_equal(
            "`:nth(2)` picks the second of each place; `@limit=2` at the end cuts the whole list",
        ),
    })
}

/// `:not([a=b])`, `:not(.cb)`, `:not(#x)`.
fn not(
    scan: &Scan<'_>,
    index: usize,
    open: Option<usize>,
    whole: std::ops::Range<usize>,
) -> Option<Slip> {
    let _ = index;
    let slip = Slip::new(
        whole,
        "expected a comparison with `!=`, found `:not`",
        "not a pseudo-class",
    );
    let help =
        "`!=` is the opposite of `=`: `[role!='user']`; `[role=null]` is the opposite of `[role]`";
    let (Some(open), Some(close)) = (open, open.and_then(|open| scan.partner(open))) else {
        return Some(slip.instead("").no_equal(help));
    };
    let inner: Vec<usize> = (open + 1..close)
        .filter(|at| scan.kind(*at) != Some(Kind::Space))
        .collect();
    let word = |at: usize| inner.get(at).map_or("", |at| scan.word(*at));
    let test = match inner.as_slice() {
        [_, ..] if word(0) == "." => {
            return Some(slip.instead("").no_equal(
                "no comparison is the opposite of a type; write a union of the other types: `.mt, .mc`",
            ));
        }
        [_, name] if word(0) == "#" => {
            let by = match scan.edition {
                Edition::Canonical => "key",
                _ => "id",
            };
            Some(format!("[{by}!={}]", text_of(&scan.content(*name))))
        }
        [_, name] if word(0) == "+" => Some(format!("[tags!={}]", text_of(&scan.content(*name)))),
        [_, name, _] if word(0) == "[" => Some(format!("[{}=null]", scan.word(*name))),
        [first, .., last] => {
            let (from, to) = match word(0) {
                "[" if scan.partner(*first) == Some(*last) => {
                    (scan.next(*first)?, scan.prev(*last)?)
                }
                _ => (*first, *last),
            };
            let op = scan.next(from)?;
            let flipped = match scan.word(op) {
                "=" | "==" => Some("!="),
                "!=" | "<>" => Some("="),
                _ => None,
            };
            let value = scan.next(op)?;
            flipped
                .filter(|_| scan.is_value(from) && scan.value_end(value) == Some(to))
                .map(|op| format!("[{}{op}{}]", scan.word(from), scan.slice(value, to)))
        }
        _ => None,
    };
    Some(match test {
        Some(test) => slip.instead(test),
        None => slip.instead("").no_equal(help),
    })
}

/// `:is(.cb, .mt)`: a union with one group for each.
fn alternatives(scan: &Scan<'_>, index: usize, open: usize, close: usize) -> Option<Slip> {
    let name = scan.slice(index, open - 1);
    let slip = Slip::new(
        scan.through(index, close),
        format!("expected a union, found `{name}`"),
        "not a pseudo-class",
    );
    let inner = scan.span(open).end..scan.span(close).start;
    let mut parts = Vec::new();
    let mut from = inner.start;
    for at in open + 1..close {
        if scan.word(at) == "," && scan.parent(at) == Some(open) {
            parts.push(scan.text.get(from..scan.span(at).start)?.trim());
            from = scan.span(at).end;
        }
    }
    parts.push(scan.text.get(from..inner.end)?.trim());
    if parts.iter().any(|part| part.is_empty()) {
        return None;
    }
    let parts: Vec<String> = parts.into_iter().map(str::to_owned).collect();
    Some(
        match union_of(scan, index, &scan.through(index, close), &parts) {
            Some((whole, union)) => slip.write(whole, union),
            None => slip.instead("").no_equal(
                "a union picks a node in each of its groups; nothing picks one of both together",
            ),
        },
    )
}
