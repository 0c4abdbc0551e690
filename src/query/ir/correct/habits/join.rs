//! `and`, `or` and their signs: between properties and between selectors.

use super::super::scan::{Kind, Scan};
use super::super::slip::Slip;
use super::common::{any_op, is_op, joint, one_of, picks, union_of};
use super::compare::is_null;
use crate::query::ir::query::Attr;

fn is_and(word: &str) -> bool {
    matches!(word, "&&" | "&" | "∧") || word.eq_ignore_ascii_case("and")
}

fn is_or(word: &str) -> bool {
    matches!(word, "||" | "|" | "∨") || word.eq_ignore_ascii_case("or")
}

/// Whether the lexeme at `index` joins what is before and after it.
fn joins(scan: &Scan<'_>, index: usize) -> bool {
    let word = scan.word(index);
    if !is_and(word) && !is_or(word) {
        return false;
    }
    let (Some(prev), Some(next)) = (scan.prev(index), scan.next(index)) else {
        return false;
    };
    // `[role=and]`, `[and=1]`
    let value = is_op(scan.word(prev)) || any_op(scan, next) && scan.kind(next) == Some(Kind::Sign);
    scan.kind(index) == Some(Kind::Sign)
        || !(value || scan.attached(index) && scan.kind(prev) == Some(Kind::Word))
}

/// `and` between properties.
pub(super) fn props_and(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let mark = matches!(scan.word(index), ";" | ";;");
    let and = mark || is_and(scan.word(index)) && joins(scan, index);
    if scan.outside(index) || !and {
        return None;
    }
    let (prev, next) = (scan.prev(index)?, scan.next(index)?);
    if scan.kind(prev) == Some(Kind::Open) || scan.kind(next) == Some(Kind::Close) {
        return None;
    }
    let span = scan.span(prev).end..scan.span(next).start;
    let join = joint(scan, index);
    let what = match join {
        "][" => "properties are joined by brackets or commas",
        _ => "properties are joined by commas",
    };
    let found = format!("{what}, not by `{}`", scan.word(index));
    Some(Slip::new(scan.span(index), found, "not expected here").write(span, join))
}

/// `or` between properties or values: a list of values, or a union.
pub(super) fn props_or(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) || !is_or(scan.word(index)) || !joins(scan, index) {
        return None;
    }
    let open = scan.parent(index)?;
    let close = scan.partner(open)?;
    let slip = Slip::new(
        scan.span(index),
        format!(
            "expected a list of values or a union, found `{}`",
            scan.word(index)
        ),
        "not expected here",
    );
    let parts = alternatives(scan, open, close)?;
    let named = one_name(scan, open, &parts);
    if let Some((name, values)) = &named
        && one_of(name)
    {
        let (first, last) = (parts.first()?.0, parts.last()?.1);
        let list = format!("{name}=[{}]", values.join(", "));
        return Some(slip.write(scan.through(first, last), list));
    }
    if named.is_none() && ambiguous(scan, &parts) {
        return Some(
            slip.instead(",")
                .no_equal("name the attribute for each value: `[status='a'], [status='b']`"),
        );
    }
    let texts = written(scan, named.as_ref(), &parts);
    let (first, last) = scan.member(index);
    let braces = scan.word(open) == "{";
    if !scan.outside(open) || braces && open != first {
        return Some(
            slip.instead(",")
                .no_equal("write a union: `.cb[role='user'], .cb[kind='call']`"),
        );
    }
    if picks(scan, open, last) {
        return Some(slip.instead(",").no_equal(
            "a union picks a node in each of its groups; nothing picks one of both together",
        ));
    }
    let (mut before, mut after) = (
        scan.span(first).start..scan.span(open).end,
        scan.span(close).start..scan.span(last).end,
    );
    if after.start > after.end || before.start > before.end {
        return None;
    }
    let (mut lead, mut tail) = ("", "");
    if braces {
        before.end = before.start;
        after.start = scan.span(close).end.min(after.end);
        (lead, tail) = ("[", "]");
    }
    let before = scan.text.get(before)?;
    let after = scan.text.get(after)?;
    let members: Vec<String> = texts
        .iter()
        .map(|text| format!("{before}{lead}{text}{tail}{after}"))
        .collect();
    Some(slip.write(scan.through(first, last), members.join(", ")))
}

/// What the `or`s directly in a bracket separate.
fn alternatives(scan: &Scan<'_>, open: usize, close: usize) -> Option<Vec<(usize, usize)>> {
    let marks: Vec<usize> = (open + 1..close)
        .filter(|at| scan.parent(*at) == Some(open) && is_or(scan.word(*at)) && joins(scan, *at))
        .collect();
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let mut from = open + 1;
    for end in marks.iter().copied().chain([close]) {
        let first = scan.next(from - 1)?;
        let last = scan.prev(end)?;
        if first > last || first >= end {
            return None;
        }
        parts.push((first, last));
        from = end + 1;
    }
    Some(parts)
}

/// Each of the tests that `or` joins, with its name.
fn written(
    scan: &Scan<'_>,
    named: Option<&(&str, Vec<&str>)>,
    parts: &[(usize, usize)],
) -> Vec<String> {
    match named {
        Some((name, values)) => values
            .iter()
            .map(|value| format!("{name}={value}"))
            .collect(),
        None => parts
            .iter()
            .map(|(from, to)| scan.slice(*from, *to).to_owned())
            .collect(),
    }
}

/// The name and the values of `name=a or name=b`, `name=a or b`.
fn one_name<'t>(
    scan: &Scan<'t>,
    open: usize,
    parts: &[(usize, usize)],
) -> Option<(&'t str, Vec<&'t str>)> {
    let mut name = None;
    let mut values = Vec::new();
    for &(first, last) in parts {
        let direct = (first..=last).all(|at| scan.parent(at) == Some(open));
        if !direct {
            return None;
        }
        let sign = (first..=last).find(|at| any_op(scan, *at));
        let value = match sign {
            // `[not status or n]`, `[role='user' or kind]`: a bare word may be a test.
            None if !bare_value(scan, first, name?, &values) => return None,
            None => first,
            Some(sign) => {
                if !matches!(scan.word(sign), "=" | "==" | "===") {
                    return None;
                }
                let named = scan
                    .slice(first, scan.prev(sign)?)
                    .trim_start_matches(['@', '.']);
                if name.is_some_and(|name| name != named) {
                    return None;
                }
                name = Some(named);
                scan.next(sign)?
            }
        };
        // `[role='user' or kind]` is not a list of values.
        if name.is_none() || scan.value_end(value)? != last {
            return None;
        }
        values.push(scan.slice(value, last));
    }
    Some((name?, values))
}

/// Whether what is compared with nothing is a further value of the attribute before.
fn bare_value(scan: &Scan<'_>, index: usize, name: &str, values: &[&str]) -> bool {
    let word = scan.word(index);
    let known = !matches!(Attr::from_name(word), Attr::Custom(_));
    scan.kind(index) == Some(Kind::Quoted)
        || one_of(name) && !known && !values.iter().any(|value| is_null(value))
}

/// Whether `[status=open or closed]` may mean a value or a test.
fn ambiguous(scan: &Scan<'_>, parts: &[(usize, usize)]) -> bool {
    let after_value = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| parts.get(before));
        before.is_some_and(|(first, last)| {
            (*first..=*last).any(|at| any_op(scan, at)) && !is_null(scan.word(*last))
        })
    };
    parts.iter().enumerate().any(|(at, (first, last))| {
        let known = !matches!(Attr::from_name(scan.word(*first)), Attr::Custom(_));
        first == last && scan.kind(*first) == Some(Kind::Word) && !known && after_value(at)
    })
}

/// `(…)` around properties inside brackets.
pub(super) fn parens(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) || scan.word(index) != "(" || !matches!(scan.bracket(index), "[" | "{") {
        return None;
    }
    let prev = scan.prev(index)?;
    let starts = scan.starts_prop(index) || is_and(scan.word(prev)) || is_or(scan.word(prev));
    let close = scan.partner(index)?;
    if !starts || scan.attached(index) && scan.kind(prev) == Some(Kind::Word) {
        return None;
    }
    let parent = scan.parent(index)?;
    let end = scan.partner(parent)?;
    let has = |level: usize, test: fn(&str) -> bool| {
        let range = (parent..end).filter(|at| scan.parent(*at) == Some(level));
        range
            .into_iter()
            .any(|at| test(scan.word(at)) && joins(scan, at))
    };
    let slip = Slip::new(
        scan.span(index),
        "properties take no parentheses",
        "not expected here",
    )
    .write(scan.span(index), "")
    .write(scan.span(close), "");
    let mixed = has(index, is_or) && has(parent, |word| is_and(word) || word == ",");
    if !mixed {
        return Some(slip);
    }
    let plain = !has(index, is_and) && !has(parent, is_or);
    let slip = Slip {
        edits: Vec::new(),
        ..slip
    };
    let whole = scan.through(index, close);
    let parts = or_parts(scan, index, close);
    let union = plain.then(|| union_of(scan, index, &whole, &parts));
    Some(match union.flatten() {
        Some((span, union)) => slip.write(span, union),
        None => slip
            .write(scan.span(index), "")
            .write(scan.span(close), "")
            .no_equal("write a union with one group for each alternative, and all tests in each"),
    })
}

/// The parts that `or` joins in a bracket; one list if they are values of one attribute.
fn or_parts(scan: &Scan<'_>, open: usize, close: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut from = scan.span(open).end;
    for at in open + 1..=close {
        let or = is_or(scan.word(at)) && scan.parent(at) == Some(open) && joins(scan, at);
        if or || at == close {
            let part = scan.text.get(from..scan.span(at).start);
            parts.push(part.unwrap_or_default().trim().to_owned());
            from = scan.span(at).end;
        }
    }
    parts
}

/// `(.cb)`, `(.mt > .cb)`: a group of a union in parentheses.
pub(super) fn enclosed(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.word(index) != "(" || !scan.outside(index) || scan.member(index).0 != index {
        return None;
    }
    let close = scan.partner(index)?;
    let inner = scan.next(index)?;
    let step = matches!(scan.word(inner), "." | "^")
        || scan.word(inner) == "*" && scan.word(inner + 1) != "."
        || scan.word(inner) == "#"
        || scan.word(inner) == "[" && scan.partner(inner) != scan.prev(close);
    let several = (index..close).any(|at| {
        let joint = scan.word(at) == "," || is_or(scan.word(at));
        joint && scan.parent(at) == Some(index)
    });
    let compared = (index..close).any(|at| {
        let sign = is_op(scan.word(at)) && scan.word(at) != ">";
        sign && scan.parent(at) == Some(index)
    });
    let after = scan.next(close);
    let ends = match after {
        None => true,
        Some(next) => scan.word(next) == "," || scan.word(next) == "@" && !scan.attached(next),
    };
    if !step || compared || !ends || several && after.is_some() {
        return None;
    }
    Some(
        Slip::new(
            scan.span(index),
            "a selector takes no parentheses around it",
            "not expected here",
        )
        .and_at(scan.span(close), "and here")
        .write(scan.span(index).start..scan.span(inner).start, "")
        .write(scan.span(scan.prev(close)?).end..scan.span(close).end, ""),
    )
}

/// `||`, `or`, `;` between selectors: a union.
pub(super) fn union(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let word = scan.word(index);
    let joint = is_or(word) || word == ";" || word.eq_ignore_ascii_case("union");
    if !scan.outside(index) || !joint {
        return None;
    }
    let (prev, next) = (scan.prev(index)?, scan.next(index)?);
    if matches!(scan.word(prev), "." | "#" | "^" | "+" | ":" | "@") && scan.attached(index) {
        return None;
    }
    if scan.word(prev) == "=" {
        return None;
    }
    // A pipe into a command is another habit.
    let command = word == "|" && scan.kind(next) == Some(Kind::Word);
    if command || prev < scan.body() {
        return None;
    }
    let span = scan.span(prev).end..scan.span(next).start;
    Some(
        Slip::new(
            scan.span(index),
            format!("the selectors of a union are joined by commas, not by `{word}`"),
            "not expected here",
        )
        .write(span, ", "),
    )
}

/// `&&`, `and` between a step and its tests.
pub(super) fn steps_and(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || !is_and(scan.word(index)) {
        return None;
    }
    let (prev, next) = (scan.prev(index)?, scan.next(index)?);
    if scan.attached(index) && matches!(scan.word(prev), "." | "#" | "^" | "+" | ":" | "@") {
        return None;
    }
    let word = scan.word(index);
    let slip = Slip::new(
        scan.span(index),
        format!("the tests of a step are written together, without `{word}`"),
        "not expected here",
    );
    let span = scan.span(prev).end..scan.span(next).start;
    let comparison = scan.next(next).is_some_and(|op| any_op(scan, op));
    Some(match scan.word(next) {
        "[" | ":" | "+" | "(" => slip.write(span, ""),
        _ if scan.kind(next) == Some(Kind::Word) && comparison => slip.write(span, " "),
        "." | "#" | "^" | "*" => slip.write(span, ", ").no_equal(
            "write `.cb, .mt` for both kinds of nodes, `.mt .cb` for blocks inside turns",
        ),
        _ => return None,
    })
}
