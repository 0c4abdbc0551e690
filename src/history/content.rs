//! How the content of a node changed: unified text, JSON Patch, or words (source 000 §4,
//! LANGUAGE §8).
//!
//! A content diff goes from older to newer, so that it turns the older content into the newer.
//! This file knows nodes and their fields; which nodes are compared, and why, is decided
//! elsewhere. The same two nodes always give the same bytes: nothing here looks at a clock.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::diff::shown;
use super::edits::{edits, unified, words};
use crate::index::NodeRef;
use crate::tree::canonical::canonical;
use crate::tree::json::unescape;

/// How the difference of two contents is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentMode {
    /// The unified form of `diff -u`, by lines. A content that is no text is compared as its
    /// canonical JSON text (RUNTIME §2).
    #[default]
    Unified,
    /// A JSON Patch (RFC 6902). It takes two contents that are JSON: both objects or arrays, or
    /// both texts that hold an object or array and nothing else. What is said of others, and of
    /// JSON with numbers or depths that a JSON Patch library would not keep, is
    /// [`ContentMode::Unified`].
    JsonPatch,
    /// The words that differ, as [`TokenHunk`]s.
    Tokens,
}

impl ContentMode {
    /// The mode of a name: `unified`, `jsonpatch` or `tokens`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "unified" => Some(Self::Unified),
            "jsonpatch" => Some(Self::JsonPatch),
            "tokens" => Some(Self::Tokens),
            _ => None,
        }
    }
}

/// How contents are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentOptions {
    /// How the difference is told.
    pub mode: ContentMode,
    /// Lines around each hunk of a unified diff.
    pub context_lines: usize,
    /// Contents of more bytes than this, either of the two, are not compared: the diff says
    /// `truncated` and has no `diff`, `patch` or `hunks`.
    pub max_bytes: usize,
}

impl Default for ContentOptions {
    /// Unified, 3 lines, 4 MiB.
    fn default() -> Self {
        Self {
            mode: ContentMode::default(),
            context_lines: 3,
            max_bytes: 4 << 20,
        }
    }
}

/// What the two snapshots are called in the header of a unified diff: `@t0`, `@c12`.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The newer snapshot.
    pub newer: &'a str,
    /// The older snapshot.
    pub older: &'a str,
}

/// The difference of two contents, as `content_diff` has it (source 000 §4).
#[derive(Clone, Debug, Serialize)]
pub struct ContentDiff {
    /// How it is told: the mode asked for, or `unified` where that one does not apply.
    pub mode: ContentMode,
    /// What kind of content it is, where the newer node says so (see [`Material::Mime`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Sizes, and whether there is anything to tell.
    pub summary: ContentSummary,
    /// In mode `unified`: text for `patch`, with the headers `--- @t-1/id` and `+++ @t0/id`;
    /// empty for equal contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// In mode `jsonpatch`: the list of operations, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<RawValue>>,
    /// In mode `tokens`: what differs, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Vec<TokenHunk>>,
}

/// Sizes of two contents. Lengths are bytes of UTF-8: of the text, or of the canonical JSON text
/// of what is no text; 0 where there is no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentSummary {
    /// Length of the newer content.
    pub bytes_newer: usize,
    /// Length of the older content.
    pub bytes_older: usize,
    /// Whether they are equal: the hashes then differ for another reason, such as the role.
    pub identical: bool,
    /// Whether they were too long to compare.
    pub truncated: bool,
}

/// A run of words of the older content and what stands in its place in the newer one. Replacing
/// all of them, last to first, turns the older content into the newer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenHunk {
    /// The words that went.
    pub older: TokenRun,
    /// The words that came.
    pub newer: TokenRun,
}

/// Words in a row, and where they stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenRun {
    /// How many bytes of the content stand before them.
    pub start: usize,
    /// The words; empty where words only came or only went.
    pub text: String,
}

/// How the content of `newer` came from that of `older`, two versions of one node.
///
/// About linear in the contents where they are much alike; bounded by
/// [`ContentOptions::max_bytes`].
#[must_use]
pub fn content_diff(
    newer: NodeRef<'_>,
    older: NodeRef<'_>,
    options: &ContentOptions,
    labels: Labels<'_>,
) -> ContentDiff {
    let (new_raw, old_raw) = (newer.field("content"), older.field("content"));
    let (new_text, old_text) = (content_text(new_raw), content_text(old_raw));
    let is_text = |raw: Option<&str>| raw.is_none_or(|raw| raw.starts_with('"'));
    let truncated = new_text.len().max(old_text.len()) > options.max_bytes;
    let mut outcome = ContentDiff {
        mode: options.mode,
        mime: text_field(newer, MIME),
        summary: ContentSummary {
            bytes_newer: new_text.len(),
            bytes_older: old_text.len(),
            identical: new_text == old_text && is_text(new_raw) == is_text(old_raw),
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
        outcome.patch = match (new_raw, old_raw) {
            (Some(new_raw), Some(old_raw)) if is_text(Some(new_raw)) == is_text(Some(old_raw)) => {
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

/// A content as text: what a text says, the canonical JSON text of anything else.
fn content_text(raw: Option<&str>) -> Cow<'_, str> {
    let Some(raw) = raw else {
        return Cow::Borrowed("");
    };
    match raw
        .strip_prefix('"')
        .and_then(|body| body.strip_suffix('"'))
    {
        Some(body) if memchr::memchr(b'\\', body.as_bytes()).is_none() => Cow::Borrowed(body),
        Some(body) => Cow::Owned(unescape(body)),
        None => Cow::Owned(canonical(raw)),
    }
}

/// The words that differ.
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

/// The JSON Patch between two JSON texts; none where one is no object or array, or would not
/// survive being read and written.
fn json_patch(older: &str, newer: &str) -> Option<Box<RawValue>> {
    let patch = json_patch::diff(&faithful(older)?, &faithful(newer)?);
    serde_json::value::to_raw_value(&patch).ok()
}

/// A JSON object or array as a value that holds all of it: numbers that would be rounded, equal
/// keys and depths that are refused make it none.
fn faithful(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&value).ok()?;
    (canonical(text.trim()) == canonical(&written)).then_some(value)
}

/// A field that a changed row can show both values of (`materialize`, source 000 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Material {
    /// The content as it is stored.
    Content,
    /// `mime`, else `content_mime`, else `content_type`.
    Mime,
    /// `encoding`, else `content_encoding`.
    Encoding,
    /// The content hash: the stored one, else the computed one.
    ContentHash,
}

const MIME: &[&str] = &["mime", "content_mime", "content_type"];
const ENCODING: &[&str] = &["encoding", "content_encoding"];

impl Material {
    /// All of them, in the order they are shown in.
    pub const ALL: [Self; 4] = [Self::Content, Self::Mime, Self::Encoding, Self::ContentHash];

    /// Its name: `content`, `mime`, `encoding` or `content_hash`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Mime => "mime",
            Self::Encoding => "encoding",
            Self::ContentHash => "content_hash",
        }
    }

    /// The field of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Its value in a node as JSON text; none where there is no value.
    fn of(self, node: NodeRef<'_>) -> Option<Cow<'_, str>> {
        let first = |names: &[&str]| names.iter().find_map(|name| node.field(name));
        match self {
            Self::Content => first(&["content"]).map(Cow::Borrowed),
            Self::Mime => first(MIME).map(Cow::Borrowed),
            Self::Encoding => first(ENCODING).map(Cow::Borrowed),
            Self::ContentHash => Some(match first(&["content_hash"]) {
                Some(stored) if stored != "null" => Cow::Borrowed(stored),
                _ => Cow::Owned(format!("\"{}\"", node.content_hash())),
            }),
        }
    }
}

/// The first of some fields, where it is a text.
fn text_field(node: NodeRef<'_>, names: &[&str]) -> Option<String> {
    let raw = names.iter().find_map(|name| node.field(name))?;
    serde_json::from_str(raw).ok()
}

/// Both values of some fields of a changed row: `{"from":{…},"to":{…}}`, `from` being the newer
/// as everywhere in a diff (LANGUAGE §8). Each field that was asked for is there, null where the
/// node has none, in the order of [`Material::ALL`].
#[derive(Clone, Debug, Serialize)]
pub struct Materialized {
    /// The newer node's.
    pub from: MaterialFields,
    /// The older node's.
    pub to: MaterialFields,
}

/// Values of fields as JSON text, by name.
#[derive(Clone, Debug)]
pub struct MaterialFields(Vec<(Material, Box<RawValue>)>);

impl MaterialFields {
    /// The fields in their order, values as JSON text.
    pub fn iter(&self) -> impl Iterator<Item = (Material, &str)> {
        self.0.iter().map(|(field, value)| (*field, value.get()))
    }
}

impl Serialize for MaterialFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (field, value) in &self.0 {
            map.serialize_entry(field.name(), value)?;
        }
        map.end()
    }
}

/// The named fields of two versions of a node. Naming a field twice changes nothing.
#[must_use]
pub fn materialize(newer: NodeRef<'_>, older: NodeRef<'_>, fields: &[Material]) -> Materialized {
    let of = |node: NodeRef<'_>| {
        let values = Material::ALL
            .into_iter()
            .filter(|field| fields.contains(field))
            .map(|field| {
                let value = field.of(node).map(|raw| shown(&raw).into_owned());
                let value = value.and_then(|json| RawValue::from_string(json).ok());
                (field, value.unwrap_or_else(|| RawValue::NULL.to_owned()))
            });
        MaterialFields(values.collect())
    };
    Materialized {
        from: of(newer),
        to: of(older),
    }
}
