//! Words and signs of other vocabularies, and which attributes hold one value.

use crate::query::ir::Attr;

/// The comparison that a word or sign of any language is here.
pub(super) fn known_op(word: &str) -> Option<&'static str> {
    Some(match &*word.to_ascii_lowercase() {
        "=" | "==" | "===" | "eq" | "equals" => "=",
        "!=" | "!==" | "<>" | "ne" => "!=",
        "<" | "lt" => "<",
        "<=" | "=<" | "le" | "lte" => "<=",
        ">" | "gt" => ">",
        ">=" | "=>" | "ge" | "gte" => ">=",
        "~" | "=~" | "~=" | "~~" | "matches" | "regexp" | "rlike" => "~",
        _ => return None,
    })
}

/// The step that a plain word means.
pub(super) fn step(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    Some(match &*word {
        "mt" | "turn" | "turns" => ".mt".to_owned(),
        "mc" | "container" | "containers" => ".mc".to_owned(),
        "cb" | "message" | "messages" => ".cb".to_owned(),
        "seg" | "cont" | "block" => format!(".{word}"),
        "blocks" => ".block".to_owned(),
        "node" | "nodes" | "everything" => "*".to_owned(),
        "root" | "seq" | "sys" | "ah" => format!("^{word}"),
        "user" | "assistant" | "tool" | "system" => format!("[role='{word}']"),
        _ => return None,
    })
}

/// Whether a list of values after `=` means one of them: the tags and every custom attribute may be
/// lists, which then need all of the values (LANGUAGE §5).
pub(super) fn one_of(name: &str) -> bool {
    !matches!(Attr::from_name(name), Attr::Custom(_) | Attr::Tags)
}
