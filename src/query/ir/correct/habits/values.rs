//! Values and comparisons inside brackets that are almost right.

use super::super::scan::{Kind, Scan, escaped, text_of};
use super::super::slip::Slip;
use super::common::{is_op, joint};
use super::compare::is_null;
use crate::query::ir::query::Attr;

/// `[content~\d+]`, `[name~book|send]`: a pattern without quotes.
pub(super) fn bare_patterns(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) || !matches!(scan.word(index), "~" | "=~" | "~=") {
        return None;
    }
    let first = scan.next(index)?;
    let open = scan.parent(index)?;
    let mut last = first;
    for at in first..scan.lexemes.len() {
        let inner = scan.partner(at).is_some_and(|partner| partner >= first);
        let ends = match scan.kind(at)? {
            Kind::Space => true,
            Kind::Close => !inner,
            _ => scan.word(at) == "," && scan.parent(at) == Some(open),
        };
        if ends {
            break;
        }
        let foreign = matches!(scan.kind(at), Some(Kind::Quoted | Kind::Pattern))
            || matches!(
                scan.word(at),
                "&&" | "||" | "=" | "==" | "!=" | "~" | "<" | ">" | "$"
            );
        if foreign && !(scan.word(at) == "$" && at > first) {
            return None;
        }
        last = at;
    }
    let one = scan.value_end(first) == Some(last);
    if one || matches!(scan.word(first), "]" | "}" | ")") {
        return None;
    }
    let span = scan.through(first, last);
    let pattern = scan.text.get(span.clone())?;
    Some(
        Slip::new(span, "a pattern takes quotes", "the quotes are missing")
            .instead(text_of(pattern)),
    )
}

/// `[kind=(a,b)]`, `[kind={a,b}]`, `[kind=]`, `[role=*]`.
pub(super) fn values(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) || !matches!(scan.word(index), "=" | "!=" | "==") {
        return None;
    }
    let (name, value) = (scan.prev(index)?, scan.next(index)?);
    if !scan.is_value(name) {
        return None;
    }
    let named = scan.word(name);
    match scan.word(value) {
        "(" | "{" => {
            let close = scan.partner(value)?;
            Some(
                Slip::new(
                    scan.span(value),
                    "a list of values is written in brackets",
                    "not a list",
                )
                .and_at(scan.span(close), "and here")
                .write(scan.span(value), "[")
                .write(scan.span(close), "]"),
            )
        }
        "*" if matches!(scan.next_word(value), "]" | "}" | "," | ")") => {
            let test = match scan.word(index) {
                "!=" => format!("{named}=null"),
                _ => named.to_owned(),
            };
            Some(
                Slip::new(
                    scan.span(value),
                    "a name alone tests that it is there",
                    "not a value",
                )
                .write(scan.through(name, value), test),
            )
        }
        "]" | "}" | "," | ")" => {
            let op = scan.word(index);
            Some(
                Slip::new(
                    scan.span(value),
                    format!("expected a value for `{named}`"),
                    "not expected here",
                )
                .write(scan.span(index), "")
                .no_equal(format!(
                    "write `[{named}{op}'…']`, or `[{named}]` for nodes that have one; inside double quotes a shell replaces `$name`"
                )),
            )
        }
        word if scan.kind(value) == Some(Kind::Word)
            && is_null(word)
            && !matches!(word, "null" | "None")
            && is_number(named) =>
        {
            Some(
                Slip::new(
                    scan.span(value),
                    format!("expected a number or `null` for `{named}`"),
                    "not a number",
                )
                .instead("null"),
            )
        }
        _ => None,
    }
}

fn is_number(name: &str) -> bool {
    matches!(
        name,
        "offset"
            | "ttl"
            | "priority"
            | "cycle"
            | "created_at_ns"
            | "creation_index"
            | "cadence"
            | "cad"
    )
}

/// `[1<ttl<5]`.
pub(super) fn turned(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let digits = scan.word(index).bytes().all(|byte| byte.is_ascii_digit());
    if !scan.starts_prop(index) || scan.kind(index) != Some(Kind::Word) || !digits {
        return None;
    }
    let op = scan.next(index)?;
    let name = scan.next(op)?;
    let known = !matches!(Attr::from_name(scan.word(name)), Attr::Custom(_));
    if scan.kind(name) != Some(Kind::Word) || !known {
        return None;
    }
    let flipped = match scan.word(op) {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        "=" => "=",
        "!=" => "!=",
        _ => return None,
    };
    let named = scan.word(name);
    let second = scan.next(name).filter(|second| is_op(scan.word(*second)))?;
    let value = scan.next(second)?;
    let last = scan.value_end(value)?;
    let text = format!(
        "{named}{flipped}{}{}{named}{}{}",
        scan.word(index),
        joint(scan, index),
        scan.word(second),
        scan.slice(value, last)
    );
    Some(
        Slip::new(
            scan.through(index, last),
            "the name of an attribute is on the left of a comparison",
            "in the other order",
        )
        .instead(text),
    )
}

/// `[?role='user']`, `[?(@.role=='user')]`.
pub(super) fn filters(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let first = index > 0 && scan.prev(index).is_some_and(|prev| scan.word(prev) == "[");
    (first && scan.word(index) == "?").then(|| {
        Slip::new(
            scan.span(index),
            "properties take no sign in front",
            "not expected here",
        )
        .instead("")
    })
}

/// `[content~'*refund*']`: signs of file names in a pattern.
pub(super) fn globs(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let search = scan.prev(index).is_some_and(|prev| scan.word(prev) == "~");
    if scan.outside(index) || scan.kind(index) != Some(Kind::Quoted) || !search {
        return None;
    }
    let text = scan.content(index);
    let inner = text.strip_prefix('*')?;
    let pattern = match inner.strip_suffix('*') {
        Some(inner) => escaped(inner),
        None => format!("{}$", escaped(inner)),
    };
    let plain = !inner.trim_matches('*').is_empty()
        && !inner.trim_end_matches('*').contains(['*', '\\', '[', '(']);
    plain.then(|| {
        let message = "a pattern finds its text anywhere, without `*` around it";
        Slip::new(scan.span(index), message, "not a pattern").instead(text_of(&pattern))
    })
}

/// `(d1, .cb)`: a hop is a bare word.
pub(super) fn hops(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let open = scan.parent(index)?;
    let position = scan.word(open) == "("
        && scan.outside(open)
        && (open == scan.body() || scan.prev_word(open) == "within");
    if !position || scan.word(index) != "." || !matches!(scan.prev_word(index), "(" | ",") {
        return None;
    }
    let hop = match scan.word(index + 1) {
        "cb" | "block" => "block",
        "mc" | "cont" => "cont",
        "mt" | "seg" => "seg",
        _ => return None,
    };
    let span = scan.through(index, index + 1);
    Some(
        Slip::new(
            span,
            format!("expected the hop `{hop}`"),
            "a position has hops, not steps",
        )
        .instead(hop),
    )
}
