//! What several habits ask about the surroundings of a lexeme.

use std::ops::Range;

use super::super::scan::{Kind, Scan};
use crate::query::ir::query::Attr;

/// The comparison that a sign or word of another language is.
pub(super) fn known_op(word: &str) -> Option<&'static str> {
    Some(match word {
        "==" | "===" | ":=" | "eq" | "equals" | "equal" => "=",
        "!==" | "<>" | "ne" | "neq" => "!=",
        "=<" | "le" | "lte" => "<=",
        "=>" | "ge" | "gte" => ">=",
        "lt" => "<",
        "gt" => ">",
        "=~" | "~=" | "~~" | "matches" | "regexp" | "rlike" | "regex" | "match" => "~",
        _ => return None,
    })
}

/// A comparison sign of the language.
pub(super) fn is_op(word: &str) -> bool {
    matches!(word, "=" | "!=" | "<" | "<=" | ">" | ">=" | "~")
}

/// Any comparison, of whatever language.
pub(super) fn any_op(scan: &Scan<'_>, index: usize) -> bool {
    let word = scan.word(index);
    let lower = word.to_ascii_lowercase();
    match scan.kind(index) {
        Some(Kind::Sign) => {
            is_op(word)
                || known_op(word).is_some()
                || matches!(word, "^=" | "$=" | "*=" | "|=" | "!~")
        }
        Some(Kind::Word) => {
            known_op(&lower).is_some()
                || matches!(
                    &*lower,
                    "like"
                        | "ilike"
                        | "contains"
                        | "includes"
                        | "startswith"
                        | "starts_with"
                        | "endswith"
                        | "ends_with"
                        | "in"
                        | "is"
                        | "between"
                        | "exists"
                        | "has"
                )
                || lower == "not"
                    && matches!(
                        &*scan.next_word(index).to_ascii_lowercase(),
                        "in" | "like" | "ilike" | "contains" | "between" | "matches"
                    )
        }
        _ => false,
    }
}

/// Whether a name precedes the operator at `index`.
pub(super) fn after_name(scan: &Scan<'_>, index: usize) -> bool {
    scan.prev(index).is_some_and(|prev| {
        scan.is_value(prev) && {
            let before = scan.prev_word(prev).to_ascii_lowercase();
            let joins = matches!(
                &*before,
                "and" | "or" | "not" | "&&" | "||" | "|" | "&" | "where" | "!"
            );
            joins
                || scan.starts_prop(prev)
                || matches!(&*before, "@" | "." | ";")
                || scan.bracket(prev) == "("
        }
    })
}

/// The text of a value.
pub(super) fn literal(scan: &Scan<'_>, first: usize, last: usize) -> String {
    match scan.kind(first) {
        Some(Kind::Quoted) => scan.content(first),
        _ => scan.slice(first, last).to_owned(),
    }
}

/// The step that a word of another vocabulary means.
pub(super) fn class_step(word: &str) -> Option<String> {
    let step = match &*word.to_ascii_lowercase() {
        "mt" | "mts" | "turn" | "turns" | "segment" | "segments" => ".mt",
        "seg" | "segs" => ".seg",
        "mc" | "container" | "containers" => ".mc",
        "cont" | "conts" => ".cont",
        "cb" | "cbs" | "message" | "messages" | "msg" | "msgs" => ".cb",
        "block" | "blocks" => ".block",
        "node" | "nodes" | "item" | "items" | "everything" | "anything" | "*" => "*",
        "root" => "^root",
        "seq" => "^seq",
        "sys" => "^sys",
        "ah" => "^ah",
        "user" | "assistant" | "tool" | "system" | "developer" => {
            return Some(format!("[role='{}']", word.to_ascii_lowercase()));
        }
        _ => return None,
    };
    Some(step.to_owned())
}

/// What joins two properties at `index`: brackets are opened again, so that the text is valid in
/// every edition.
pub(super) fn joint(scan: &Scan<'_>, index: usize) -> &'static str {
    match scan.bracket(index) {
        "[" => "][",
        _ => ", ",
    }
}

/// The last lexeme of the comparisons that start at `start`, outside of brackets.
pub(super) fn condition_end(scan: &Scan<'_>, start: usize) -> Option<usize> {
    let mut last = start;
    let mut at = start;
    while let Some(next) = scan.next(at) {
        let word = scan.word(next);
        let lower = word.to_ascii_lowercase();
        let spaced = !scan.attached(next);
        let prev = scan.prev_word(next).to_ascii_lowercase();
        let value = any_op(scan, scan.prev(next)?)
            || matches!(
                &*prev,
                "(" | "in" | "and" | "or" | "not" | "&&" | "||" | "!"
            );
        let ends = match word {
            "|" | ";" => true,
            "," => !spaced && scan.outside(next),
            "." | "#" | "^" | "*" | "@" | "+" | "{" | ":" => spaced && !value,
            "[" | "(" => spaced && !value,
            _ => {
                matches!(&*lower, "limit" | "order" | "group" | "offset" | "then")
                    && spaced
                    && !value
            }
        };
        if ends {
            break;
        }
        at = match scan.kind(next) {
            Some(Kind::Open) => scan.partner(next)?,
            _ => next,
        };
        last = at;
    }
    Some(last)
}

/// Whether a list of values after `=` means one of them: where no node has a list. The tags and
/// every custom attribute may be lists, which then need all of the values (LANGUAGE §5).
pub(super) fn one_of(name: &str) -> bool {
    !matches!(Attr::from_name(name), Attr::Custom(_) | Attr::Tags)
}

/// The group of a union around `index` once for each text of `parts`, which is written in place of
/// `inner`; nothing if that is in parentheses or braces, or if a pick of one node would be made in
/// each of them.
pub(super) fn union_of(
    scan: &Scan<'_>,
    index: usize,
    inner: &Range<usize>,
    parts: &[String],
) -> Option<(Range<usize>, String)> {
    let (first, last) = scan.member(index);
    let open = scan.parent(index);
    let plain = open.is_none_or(|open| scan.word(open) == "[" && scan.outside(open));
    if !plain || picks(scan, open.unwrap_or(index), last) {
        return None;
    }
    let whole = scan.through(first, last);
    let before = scan.text.get(whole.start..inner.start)?;
    let after = scan.text.get(inner.end..whole.end)?;
    let members: Vec<String> = parts
        .iter()
        .map(|part| format!("{before}{part}{after}"))
        .collect();
    Some((whole, members.join(", ")))
}

/// Whether the step at `index` or one after it, up to `last`, picks a node by its place.
pub(super) fn picks(scan: &Scan<'_>, index: usize, last: usize) -> bool {
    let starts = |at: &usize| {
        scan.outside(*at) && (scan.kind(*at) == Some(Kind::Space) || scan.word(*at) == ">")
    };
    let from = (0..index).rev().find(starts).unwrap_or(0);
    (from..last).any(|at| {
        scan.outside(at)
            && scan.word(at) == ":"
            && matches!(
                &*scan.word(at + 1).to_ascii_lowercase(),
                "first" | "last" | "nth"
            )
    })
}

/// Whether the property at `index` is in parentheses or after a negation.
pub(super) fn within_other(scan: &Scan<'_>, index: usize) -> bool {
    scan.bracket(index) != "["
        || matches!(
            &*scan.prev_word(index).to_ascii_lowercase(),
            "not" | "!" | "!!"
        )
}
