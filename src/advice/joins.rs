//! `and`, `or` and parentheses between properties: where a list of values or a union means the same.

use super::matching::{Matched, spaced};
use super::scan::{Kind, Scan};
use super::slip::Slip;
use super::words::{known_op, one_of};
use crate::query::ir::Attr;
use crate::query::syntax::words::CONDITIONS;

fn is_and(word: &str) -> bool {
    matches!(word, "&&" | "&" | ",") || word.eq_ignore_ascii_case("and")
}

fn is_or(word: &str) -> bool {
    matches!(word, "||" | "|") || word.eq_ignore_ascii_case("or")
}

/// Whether the lexeme `at` joins what is before and after it; `[role=and]` and `[or=1]` do not.
fn joins(scan: &Scan<'_>, at: usize) -> bool {
    let (Some(prev), Some(next)) = (scan.prev(at), scan.next(at)) else {
        return false;
    };
    let ends = matches!(scan.kind(next), Some(Kind::Close) | None);
    let starts = scan.starts_prop(at);
    known_op(scan.word(prev)).is_none() && known_op(scan.word(next)).is_none() && !ends && !starts
}

pub(super) fn and(scan: &Scan<'_>, found: &Matched, slip: Slip) -> Option<Slip> {
    if !joins(scan, found.first) {
        return None;
    }
    // Brackets are opened again, so that the text is valid in every edition.
    let joint = if scan.bracket(found.first) == "[" {
        "]["
    } else {
        ", "
    };
    let mut span = spaced(scan, found.span.clone(), joint);
    span.end = scan.span(scan.next(found.first)?).start;
    Some(slip.write(span, joint))
}

/// A selector inside of a pseudo-class that takes none.
pub(super) fn condition(scan: &Scan<'_>, found: &Matched, mut slip: Slip) -> Option<Slip> {
    let name = scan.word(scan.next(found.first)?);
    if CONDITIONS.contains(&name) {
        return None;
    }
    let known: Vec<String> = CONDITIONS
        .iter()
        .map(|name| format!("`:{name}(…)`"))
        .collect();
    let known = known.join(", ");
    slip.no_equal = Some(format!("the pseudo-classes with a selector inside are {known}").into());
    Some(slip)
}

pub(super) fn or(scan: &Scan<'_>, found: &Matched, mut slip: Slip) -> Option<Slip> {
    if !joins(scan, found.first) {
        return None;
    }
    let Some(open) = scan.parent(found.first) else {
        return Some(slip.write(spaced(scan, found.span.clone(), ", "), ", "));
    };
    let close = scan.partner(open)?;
    let parts = alternatives(scan, open, close)?;
    let (from, to) = (parts.first()?.0, parts.last()?.1);
    let values = one_name(scan, &parts);
    if let Some((name, values)) = &values
        && one_of(name)
    {
        let list = format!("{name}=[{}]", values.join(", "));
        return Some(slip.write(scan.span_between(from, to), list));
    }
    let bare = |(first, last): &(usize, usize)| {
        first == last && matches!(Attr::from_name(scan.word(*first)), Attr::Custom(_))
    };
    slip.no_equal = if values.is_none() && parts.iter().any(bare) {
        Some("name the attribute for each value: `[status='a'], [status='b']`".into())
    } else if scan.word(open) != "[" || !scan.outside(open) {
        Some("write a union: `.cb[role='user'], .cb[kind='call']`".into())
    } else if picks(scan, open) {
        Some(
            "a union picks a node in each of its groups; nothing picks one of both together".into(),
        )
    } else {
        None
    };
    if slip.no_equal.is_some() {
        return Some(slip);
    }
    let texts: Vec<String> = match values {
        Some((name, values)) => values
            .iter()
            .map(|value| format!("{name}={value}"))
            .collect(),
        None => parts
            .iter()
            .map(|(first, last)| scan.slice(*first, *last).to_owned())
            .collect(),
    };
    let (first, last) = scan.member(open);
    let before = scan.text.get(scan.span(first).start..scan.span(open).end)?;
    let after = scan.text.get(scan.span(close).start..scan.span(last).end)?;
    let members: Vec<String> = texts
        .iter()
        .map(|text| format!("{before}{text}{after}"))
        .collect();
    Some(slip.write(scan.span_between(first, last), members.join(", ")))
}

/// What the command `top` groups blocks by.
const GROUPS: [&str; 8] = [
    "session", "region", "role", "kind", "turn", "tool", "key", "block",
];

/// `order by` and `group by` behind a selector: the command that sorts by size, and that counts groups.
pub(super) fn order(scan: &Scan<'_>, found: &Matched, mut slip: Slip) -> Option<Slip> {
    let (from, to) = (scan.span(scan.body()).start, found.span.start);
    let selector = match scan.text.get(from..to).unwrap_or_default().trim() {
        "" => ".cb",
        other => other,
    };
    // The help would have to escape it for a shell.
    let selector = if selector.contains(['"', '$', '`', '\\', '!']) {
        "SELECTOR".to_owned()
    } else {
        format!("\"{selector}\"")
    };
    let top = |by: &str| format!("`pactql top SESSION {selector} --by {by}`");
    let help = if scan.word(found.first).eq_ignore_ascii_case("group") {
        let by = scan.next(found.first).and_then(|by| scan.next(by));
        let by = by.map_or("", |by| scan.word(by)).to_ascii_lowercase();
        let by = GROUPS.iter().find(|group| **group == by);
        let top = top(by.unwrap_or(&"role"));
        format!("counts and sizes in groups: {top}; `@unique` keeps the first node of each key")
    } else {
        let top = top("block");
        format!("the largest first: {top}; `@order=turn:desc,pre` puts the newest turns first")
    };
    slip.no_equal = Some(help.into());
    Some(slip)
}

/// Parentheses around properties. They go, unless they group an `or` under an `and`.
pub(super) fn parentheses(scan: &Scan<'_>, found: &Matched, mut slip: Slip) -> Option<Slip> {
    let open = found.first;
    let (close, outer) = (scan.partner(open)?, scan.parent(open)?);
    let has = |bracket: usize, joint: fn(&str) -> bool| {
        (outer..scan.lexemes.len())
            .any(|at| scan.parent(at) == Some(bracket) && joint(scan.word(at)) && joins(scan, at))
    };
    if has(open, is_or) && has(outer, is_and) {
        let help = "write a union with one group for each alternative, and all tests in each";
        slip.no_equal = Some(help.into());
        return Some(slip);
    }
    Some(slip.write(scan.span(open), "").write(scan.span(close), ""))
}

/// What the `or`s directly in a bracket separate, as first and last lexemes.
fn alternatives(scan: &Scan<'_>, open: usize, close: usize) -> Option<Vec<(usize, usize)>> {
    let is_joint =
        |at: &usize| scan.parent(*at) == Some(open) && is_or(scan.word(*at)) && joins(scan, *at);
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let mut from = open;
    for end in (open + 1..close).filter(is_joint).chain([close]) {
        let (first, last) = (scan.next(from)?, scan.prev(end)?);
        if first > last {
            return None;
        }
        parts.push((first, last));
        from = end;
    }
    Some(parts)
}

/// The name and the values of `name=a or name=b`, `name=a or b`.
fn one_name<'t>(scan: &Scan<'t>, parts: &[(usize, usize)]) -> Option<(&'t str, Vec<&'t str>)> {
    let mut name: Option<&str> = None;
    let mut values = Vec::new();
    for &(first, last) in parts {
        let op = scan
            .next(first)
            .filter(|op| *op < last && known_op(scan.word(*op)).is_some());
        let value = match op {
            Some(op) if known_op(scan.word(op)) == Some("=") => {
                let named = scan.word(first);
                if name.is_some_and(|name| name != named) {
                    return None;
                }
                name = Some(named);
                scan.next(op)?
            }
            Some(_) => return None,
            // `[role='user' or ttl]`: a bare word may be a test.
            None => {
                let quoted = scan.kind(first) == Some(Kind::Quoted);
                let custom = matches!(Attr::from_name(scan.word(first)), Attr::Custom(_));
                if !(quoted || one_of(name?) && custom) {
                    return None;
                }
                first
            }
        };
        if scan.value_end(value)? != last {
            return None;
        }
        values.push(scan.slice(value, last));
    }
    Some((name?, values))
}

/// Whether a step from the one with the bracket `open` on picks a node by its place.
fn picks(scan: &Scan<'_>, open: usize) -> bool {
    let (_, last) = scan.member(open);
    (open..=last).any(|at| {
        let pick = matches!(
            &*scan.word(at + 1).to_ascii_lowercase(),
            "first" | "last" | "nth"
        );
        scan.outside(at) && scan.word(at) == ":" && pick
    })
}
