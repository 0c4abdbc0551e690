//! What several habits ask about the surroundings of a lexeme.

use super::super::scan::{Kind, Scan};

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
        "mt" | "mts" | "turn" | "turns" | "message" | "messages" | "msg" | "msgs" | "segment"
        | "segments" => ".mt",
        "seg" | "segs" => ".seg",
        "mc" | "container" | "containers" => ".mc",
        "cont" | "conts" => ".cont",
        "cb" | "cbs" => ".cb",
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
