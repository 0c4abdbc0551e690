//! Content diffs: unified text, JSON Patch, or words (source 000 §4, LANGUAGE §8).
//!
//! A content diff turns the older content into the newer one. Equal inputs give equal bytes: there
//! is no time limit. Which nodes are compared is decided elsewhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::json::{shown, text_of};
use crate::index::NodeRef;
use crate::json::{JsonValue, canonical};
use crate::support::edits::{edits, unified, words};
use crate::support::macros::{names, setters};

names! {
    /// The form of a content diff. See the example of [`ContentOptions`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[non_exhaustive]
    pub enum ContentMode: name {
        /// By lines, as `diff -u` writes it. Content that is not a string is compared as canonical JSON (RUNTIME §2).
        #[default]
        Unified = "unified",
        /// A JSON Patch (RFC 6902), if both contents are objects or arrays, or both are strings that
        /// contain one. [`ContentMode::Unified`] for other contents, and for JSON with numbers or
        /// depths that a JSON Patch library would not preserve.
        JsonPatch = "jsonpatch",
        /// By words, as [`TokenHunk`]s.
        Tokens = "tokens",
    }
}

/// How contents are compared.
///
/// ```
/// use pactql::{Address, DiffOptions, Engine, Session, history::{At, ContentMode, ContentOptions}};
/// let log = std::fs::read_to_string("fixtures/greenhouse.jsonl")?;
/// let (before, after) = log.rsplit_once("Tomatoes").ok_or("no tomatoes")?;
/// let session = Session::from_slice(format!("{before}Peppers{after}").as_bytes())?;
/// let options = ContentOptions::default().mode(ContentMode::Tokens);
/// let (at, options) = (At::Committed(Address::Back(0)), DiffOptions::default().content(options));
/// let diff = Engine::new().diff(&session, at, At::Working, Some("#hint"), &options)?;
/// let hunks = diff.changed[0].content_diff.as_ref().and_then(|content| content.hunks.as_ref());
/// assert!(hunks.is_some_and(|hunks| hunks[0].newer.text == "Peppers"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentOptions {
    /// The form of the diff.
    pub mode: ContentMode,
    /// Lines around each hunk of a unified diff.
    pub context_lines: usize,
    /// If either content has more bytes than this, they are not compared: the diff says
    /// `truncated` and has no `diff`, `patch` or `hunks`.
    pub max_bytes: usize,
}

impl Default for ContentOptions {
    fn default() -> Self {
        Self {
            mode: ContentMode::default(),
            context_lines: 3,
            max_bytes: 4 << 20,
        }
    }
}

impl ContentOptions {
    setters! {
        mode: ContentMode;
        context_lines: usize;
        max_bytes: usize;
    }
}

/// The names of the two snapshots in the header of a unified diff: `@t0`, `@c12`.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The newer snapshot.
    pub newer: &'a str,
    /// The older snapshot.
    pub older: &'a str,
}

/// The difference of two contents: `content_diff` (source 000 §4). See [`ContentOptions`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContentDiff {
    /// The form: the requested one, or `unified` where that does not apply.
    pub mode: ContentMode,
    /// The newer node's MIME type, if it has one (see [`Material::Mime`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Sizes, and whether the contents are equal.
    pub summary: ContentSummary,
    /// In mode `unified`: text for `patch`, with the headers `--- @t-1/id` and `+++ @t0/id`; empty for equal contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// In mode `jsonpatch`: the list of operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// In mode `tokens`: the hunks, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Vec<TokenHunk>>,
}

/// Sizes of two contents, in bytes of UTF-8: of a string, or of the canonical JSON of any other
/// value; 0 if there is no content. See the example of [`ContentOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContentSummary {
    /// Length of the newer content.
    pub bytes_newer: usize,
    /// Length of the older content.
    pub bytes_older: usize,
    /// Whether they are equal; the hashes then differ for another reason, such as the role.
    pub identical: bool,
    /// Whether they were too long to compare.
    pub truncated: bool,
}

/// A run of words of the older content and the run that replaces it. Applying all of them, last
/// to first, turns the older content into the newer. See the example of [`ContentOptions`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenHunk {
    /// The words removed.
    pub older: TokenRun,
    /// The words added.
    pub newer: TokenRun,
}

/// A run of words. See the example of [`ContentOptions`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenRun {
    /// Its byte offset in the content.
    pub start: usize,
    /// The words; empty if words were only added or only removed.
    pub text: String,
}

/// The difference of the contents of two versions of a node.
///
/// About linear for similar contents; bounded by [`ContentOptions::max_bytes`].
pub fn content_diff(
    newer: NodeRef<'_>,
    older: NodeRef<'_>,
    options: &ContentOptions,
    labels: Labels<'_>,
) -> ContentDiff {
    let [new_value, old_value] = [newer, older].map(|node| node.field("content"));
    let (new_text, old_text) = (text_of(new_value), text_of(old_value));
    let is_text = |value: Option<JsonValue<'_>>| value.is_none_or(JsonValue::is_text);
    let truncated = new_text.len().max(old_text.len()) > options.max_bytes;
    let mut outcome = ContentDiff {
        mode: options.mode,
        mime: text_field(newer, MIME),
        summary: ContentSummary {
            bytes_newer: new_text.len(),
            bytes_older: old_text.len(),
            identical: new_text == old_text && is_text(new_value) == is_text(old_value),
            truncated,
        },
        diff: None,
        patch: None,
        hunks: None,
    };
    if truncated {
        return outcome;
    }
    if options.mode == ContentMode::JsonPatch {
        outcome.patch = match (new_value, old_value) {
            (Some(new), Some(old)) if new.is_text() == old.is_text() => {
                json_patch(&old_text, &new_text)
            }
            _ => None,
        };
        if outcome.patch.is_some() {
            return outcome;
        }
        outcome.mode = ContentMode::Unified;
    }
    if outcome.mode == ContentMode::Tokens {
        outcome.hunks = Some(token_hunks(&old_text, &new_text));
    } else {
        let name = |label: &str, node: NodeRef<'_>| format!("{label}/{}", node.id());
        outcome.diff = Some(unified(
            (&name(labels.older, older), &old_text),
            (&name(labels.newer, newer), &new_text),
            options.context_lines,
        ));
    }
    outcome
}

fn token_hunks(older: &str, newer: &str) -> Vec<TokenHunk> {
    let (old_words, new_words) = (words(older), words(newer));
    let starts = |words: &[&str]| -> Vec<usize> {
        let mut at = 0;
        let ends = words.iter().map(|word| {
            at += word.len();
            at
        });
        std::iter::once(0).chain(ends).collect()
    };
    let (old_starts, new_starts) = (starts(&old_words), starts(&new_words));
    let run = |text: &str, starts: &[usize], range: &std::ops::Range<usize>| {
        let (start, end) = (starts[range.start], starts[range.end]);
        TokenRun {
            start,
            text: text[start..end].to_owned(),
        }
    };
    edits(&old_words, &new_words)
        .iter()
        .map(|edit| TokenHunk {
            older: run(older, &old_starts, &edit.older),
            newer: run(newer, &new_starts, &edit.newer),
        })
        .collect()
}

/// The JSON Patch between two JSON texts; `None` if either is not an object or array, or is not
/// preserved by reading and writing it.
fn json_patch(older: &str, newer: &str) -> Option<Value> {
    let patch = json_patch::diff(&faithful(older)?, &faithful(newer)?);
    serde_json::to_value(&patch).ok()
}

/// A JSON object or array as a value; `None` if it has numbers that would be rounded, duplicate
/// keys, or nesting that `serde_json` refuses.
fn faithful(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&value).ok()?;
    (canonical(text.trim()) == canonical(&written)).then_some(value)
}

names! {
    /// A field whose values a change can show (`materialize`, source 000 §4). See [`Materialized`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Material: name {
        /// The content as stored.
        Content = "content",
        /// `mime`, else `content_mime`, else `content_type`.
        Mime = "mime",
        /// `encoding`, else `content_encoding`.
        Encoding = "encoding",
        /// The content hash: the stored one, else the computed one.
        ContentHash = "content_hash",
    }
}

const MIME: &[&str] = &["mime", "content_mime", "content_type"];
const ENCODING: &[&str] = &["encoding", "content_encoding"];

impl Material {
    fn read(self, node: NodeRef<'_>) -> Option<String> {
        let first = |names: &[&str]| names.iter().find_map(|name| node.field(name)).map(shown);
        match self {
            Self::Content => first(&["content"]),
            Self::Mime => first(MIME),
            Self::Encoding => first(ENCODING),
            Self::ContentHash => Some(match node.field("content_hash") {
                Some(stored) if !stored.is_null() => shown(stored),
                _ => format!("\"{}\"", node.content_hash()),
            }),
        }
    }
}

fn text_field(node: NodeRef<'_>, names: &[&str]) -> Option<String> {
    let value = names.iter().find_map(|name| node.field(name))?;
    value.text().map(str::to_owned)
}

/// Both values of the requested fields of a changed node, null where a node has none, in the order
/// of [`Material::ALL`] (LANGUAGE §8). See the example of [`RangeOptions`](crate::RangeOptions).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Materialized {
    /// The newer node's.
    pub from: MaterialFields,
    /// The older node's.
    pub to: MaterialFields,
}

/// Values of fields, by name. See the example of [`RangeOptions`](crate::RangeOptions).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MaterialFields(BTreeMap<Material, Box<RawValue>>);

impl MaterialFields {
    /// The fields in their order. Numbers beyond 64 bits are rounded.
    pub fn iter(&self) -> impl Iterator<Item = (Material, Value)> {
        let value = |json: &str| serde_json::from_str(json).unwrap_or_default();
        self.0
            .iter()
            .map(move |(field, json)| (*field, value(json.get())))
    }
}

/// The requested fields of two versions of a node; duplicates in `fields` count once.
pub fn materialize(newer: NodeRef<'_>, older: NodeRef<'_>, fields: &[Material]) -> Materialized {
    let of = |node: NodeRef<'_>| {
        let values = fields.iter().map(|field| {
            let value = field.read(node);
            let value = value.and_then(|json| RawValue::from_string(json).ok());
            (*field, value.unwrap_or_else(|| RawValue::NULL.to_owned()))
        });
        MaterialFields(values.collect())
    };
    Materialized {
        from: of(newer),
        to: of(older),
    }
}
