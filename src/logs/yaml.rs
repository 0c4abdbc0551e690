//! YAML as JSON text: the cassettes of VCR.
//!
//! The library gives events, so nothing is built but the text. An alias is a copy of what its anchor has; the whole
//! may be a few times as large as the YAML, and no more. Bytes (`!!binary`) that are text become that text, others
//! `{"base64_string": "…"}`, as VCR itself writes them in JSON.

use super::json::{object, quoted, value};
use crate::json::{get, members};
use crate::support::cancel::stopped;
use crate::tree::fault::InputError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use std::collections::HashMap;
use std::ops::Range;

/// What programs write after the exchanges: without it the text is cut, which YAML alone does not show.
const ENDS: [&str; 2] = ["version", "recorded_with"];

/// How many lines at the beginning may come before the exchanges.
const LOOKED_AT: usize = 32;

/// How many times as large as the YAML the JSON may be, beside some bytes that are always free.
const GROWTH: usize = 8;
const FREE: usize = 1 << 20;

/// Whether a text is a cassette in YAML.
pub(super) fn is_cassette(text: &str) -> bool {
    let keys = ["interactions:", "http_interactions:"];
    !text.trim_start().starts_with(['{', '['])
        && text
            .lines()
            .take(LOOKED_AT)
            .any(|line| keys.iter().any(|key| line.starts_with(key)))
}

/// The first document of a text of YAML. Linear in both.
///
/// # Errors
/// Text that is not YAML, a key that is not a scalar, aliases that make it many times larger; a cassette that is cut.
pub(super) fn to_json(text: &str) -> Result<String, InputError> {
    let mut writer = JsonWriter::default();
    let limit = text.len().saturating_mul(GROWTH).saturating_add(FREE);
    for event in Parser::new_from_str(text) {
        if stopped() {
            return Err(InputError::cancelled());
        }
        let (event, span) = event.map_err(|error| wrong(format!("malformed YAML: {error}")))?;
        let line = span.start.line();
        let at_line = |what: &str| wrong(format!("malformed YAML: {what}, at line {line}"));
        match event {
            Event::DocumentEnd => break,
            Event::Alias(anchor) => {
                let place = writer.anchors.get(&anchor).cloned();
                let place = place.ok_or_else(|| at_line("an alias within its own anchor"))?;
                let copy = writer.out.get(place).unwrap_or_default().to_owned();
                writer.value(&copy, 0).map_err(at_line)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let json = if writer.is_key() {
                    quoted(&text)
                } else {
                    scalar(&text, style, tag.as_deref())
                };
                writer.value(&json, anchor).map_err(at_line)?;
            }
            Event::SequenceStart(anchor, _) => writer.open("[", anchor).map_err(at_line)?,
            Event::MappingStart(anchor, _) => writer.open("{", anchor).map_err(at_line)?,
            Event::SequenceEnd => writer.close(']'),
            Event::MappingEnd => writer.close('}'),
            _ => {}
        }
        if writer.out.len() > limit {
            return Err(at_line("aliases make it many times larger"));
        }
    }
    let found = members(&writer.out);
    if ENDS.iter().all(|name| get(&found, name).is_none()) {
        return Err(wrong(
            "the cassette ends before its `version` (or `recorded_with`): it is cut, or its recorder still writes it"
                .to_owned(),
        ));
    }
    Ok(writer.out)
}

fn wrong(message: String) -> InputError {
    InputError::at_document(message)
}

/// A scalar as JSON. A plain one is what YAML's core schema and JSON both read in it, or else text.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> String {
    let kind = tag.filter(|tag| tag.is_yaml_core_schema());
    match (kind.map(|tag| &*tag.suffix), text) {
        (Some("binary"), _) => binary(text),
        (Some(_), _) => quoted(text),
        _ if style != ScalarStyle::Plain => quoted(text),
        (None, "" | "~" | "null" | "Null" | "NULL") => "null".to_owned(),
        (None, "true" | "True" | "TRUE") => "true".to_owned(),
        (None, "false" | "False" | "FALSE") => "false".to_owned(),
        (None, _) => match value(text).filter(|_| text.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => number.to_owned(),
            None => quoted(text),
        },
    }
}

fn binary(text: &str) -> String {
    let packed: String = text.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(&packed).map(String::from_utf8);
    match bytes {
        Ok(Ok(text)) => quoted(&text),
        _ => object([("base64_string", quoted(&packed))]),
    }
}

/// JSON that is written value by value.
#[derive(Default)]
struct JsonWriter {
    out: String,
    open: Vec<OpenValue>,
    /// Where what an anchor names is in `out`, once it is whole.
    anchors: HashMap<usize, Range<usize>>,
}

/// A list or an object that is not whole yet.
struct OpenValue {
    is_object: bool,
    /// How many keys and values it has so far.
    parts: usize,
    anchor: usize,
    start: usize,
}

impl JsonWriter {
    fn is_key(&self) -> bool {
        let last = self.open.last();
        last.is_some_and(|open| open.is_object && open.parts.is_multiple_of(2))
    }

    /// Writes the next key or value, or its opening bracket, after a comma or colon where one is due. Returns where
    /// it is.
    fn begin(&mut self, json: &str) -> Result<usize, &'static str> {
        if self.is_key() && !json.starts_with('"') {
            return Err("a key that is not a text");
        }
        match self.open.last() {
            Some(open) if open.is_object && !open.parts.is_multiple_of(2) => self.out.push(':'),
            Some(open) if open.parts > 0 => self.out.push(','),
            _ => {}
        }
        self.out.push_str(json);
        Ok(self.out.len() - json.len())
    }

    fn value(&mut self, json: &str, anchor: usize) -> Result<(), &'static str> {
        let start = self.begin(json)?;
        self.end(anchor, start);
        Ok(())
    }

    fn open(&mut self, bracket: &str, anchor: usize) -> Result<(), &'static str> {
        let start = self.begin(bracket)?;
        self.open.push(OpenValue {
            is_object: bracket == "{",
            parts: 0,
            anchor,
            start,
        });
        Ok(())
    }

    fn close(&mut self, bracket: char) {
        self.out.push(bracket);
        if let Some(open) = self.open.pop() {
            self.end(open.anchor, open.start);
        }
    }

    /// Notes that a key or a value is whole, and which anchor names it; 0 is none.
    fn end(&mut self, anchor: usize, start: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, start..self.out.len());
        }
        if let Some(open) = self.open.last_mut() {
            open.parts += 1;
        }
    }
}
