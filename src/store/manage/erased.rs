//! The texts of erased nodes, and what repeats them in the other members of documents (STORE §3).
//!
//! A log may be kept with its documents, in members beside the nodes: the prompt that a session began with, what a model
//! replied in a step. A string there is erased with the nodes if it repeats them.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use crate::index::NodeRef;
use crate::json::{JsonValue, any_text, elements, members, quoted, string};
use crate::store::layout::decode::ERASED;
use crate::tree::is_header;

/// Shorter texts are not looked for: words such as `yes` are in texts of every kind. In bytes, as the others.
const SHORTEST: usize = 8;
/// Two texts that share this much are never missed.
const SHARED: usize = 2 * BLOCK - 1;
/// Of each text, the blocks of this length from its start on are known: every run of [`SHARED`] bytes has one.
const BLOCK: usize = 32;

#[derive(Clone, Debug, Default)]
pub(crate) struct ErasedTexts {
    texts: BTreeSet<String>,
    blocks: HashSet<[u8; BLOCK]>,
    /// The answers to strings that were looked at; the snapshots of a session repeat most of them.
    known: HashMap<String, bool>,
}

impl ErasedTexts {
    /// Adds what an erasure takes out of a node: the texts of its content and of its custom attributes.
    pub(crate) fn add(&mut self, node: NodeRef<'_>) {
        for (name, value) in node.fields() {
            match value {
                _ if name != "content" && is_header(name) => {}
                JsonValue::Text(text) => self.add_text(text),
                JsonValue::List(json) | JsonValue::Object(json) => {
                    any_text(json, |text| {
                        self.add_text(text);
                        false
                    });
                }
                _ => {}
            }
        }
    }

    fn add_text(&mut self, text: &str) {
        if text.len() < SHORTEST || text == ERASED || self.texts.contains(text) {
            return;
        }
        self.blocks.extend(text.as_bytes().as_chunks().0);
        self.texts.insert(text.to_owned());
        self.known.clear();
    }

    /// A JSON object with `[erased]` for the strings in one of its members that repeat a text; `None` if none does. The
    /// names of members stay.
    pub(crate) fn without(&mut self, json: &str, member: &str) -> Option<String> {
        if self.texts.is_empty() {
            return None;
        }
        let mut changed = false;
        let all = members(json).into_iter().map(|(name, value)| {
            let erased = (name == member).then(|| self.erased(value)).flatten();
            changed |= erased.is_some();
            format!("{}:{}", quoted(&name), erased.as_deref().unwrap_or(value))
        });
        let all = all.collect::<Vec<_>>().join(",");
        changed.then(|| format!("{{{all}}}"))
    }

    /// A JSON value with `[erased]` for strings; `None` if it has none to erase.
    fn erased(&mut self, json: &str) -> Option<String> {
        if let Some(text) = string(json) {
            return self.is_repeated(&text).then(|| quoted(ERASED));
        }
        let mut changed = false;
        let mut inside = |value: &str| {
            let erased = self.erased(value);
            changed |= erased.is_some();
            erased.unwrap_or_else(|| value.to_owned())
        };
        let (open, all, close) = match json.as_bytes().first() {
            Some(b'[') => {
                let all = elements(json).into_iter().map(inside);
                ("[", all.collect::<Vec<_>>(), "]")
            }
            Some(b'{') => {
                let all = members(json).into_iter();
                let all = all.map(|(name, value)| format!("{}:{}", quoted(&name), inside(value)));
                ("{", all.collect(), "}")
            }
            _ => return None,
        };
        changed.then(|| format!("{open}{}{close}", all.join(",")))
    }

    /// Whether a string has one of the texts in it, is a part of one, or has [`SHARED`] bytes in common with one.
    fn is_repeated(&mut self, string: &str) -> bool {
        if string.len() < SHORTEST || string == ERASED {
            return false;
        }
        if let Some(known) = self.known.get(string) {
            return *known;
        }
        let is_block = |run: &[u8; BLOCK]| self.blocks.contains(run);
        let is_repeated = string.as_bytes().array_windows().any(is_block)
            // Longer texts are found by their blocks.
            || self.texts.iter().any(|text| {
                text.len() < SHARED && string.contains(&**text)
                    || string.len() < SHARED && text.contains(string)
            });
        self.known.insert(string.to_owned(), is_repeated);
        is_repeated
    }
}

/// Whether two canonical JSON values are equal, except for strings that were erased in the first.
pub(crate) fn is_equal_but_erased(own: &str, new: &str) -> bool {
    let first = |json: &str| json.as_bytes().first().copied();
    if own == new {
        return true;
    }
    match (first(own), first(new)) {
        (Some(b'"'), Some(b'"')) => string(own).is_some_and(|own| own == ERASED),
        (Some(b'['), Some(b'[')) => {
            let (own, new) = (elements(own), elements(new));
            let mut pairs = own.iter().zip(&new);
            own.len() == new.len() && pairs.all(|(own, new)| is_equal_but_erased(own, new))
        }
        (Some(b'{'), Some(b'{')) => {
            let (own, new) = (members(own), members(new));
            let mut pairs = own.iter().zip(&new);
            own.len() == new.len()
                && pairs.all(|((own, a), (new, b))| own == new && is_equal_but_erased(a, b))
        }
        _ => false,
    }
}
