//! Payload records: the fields of a node that the columns of [`super::TreeRow`] cannot represent.
//!
//! These are `content`, `content_hash`, `created_at_iso`, `tags`, `tag`, `cadence`, `cad`,
//! `removable`, `provenance`, `parent_id`, custom fields, and any header given as an explicit null.
//! The content has a place of its own, so that a search reads nothing else, and long ones can be shared. The
//! others are a run of fields sorted by name in byte order, each written as: name length, name, value
//! length, value. Values are as `JsonValue::store` writes them. A length has six bits a byte, the lowest
//! first, and a seventh if another byte follows, so records are text, and a field of one is a slice of it.

use crate::json::JsonValue;

/// Where a record is: byte ranges in one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordPlace {
    /// The content; empty if there is none.
    pub content: (u32, u32),
    /// The other fields.
    pub fields: (u32, u32),
}

impl RecordPlace {
    /// The place of a record whose other fields follow its content.
    pub(crate) fn new(start: u32, middle: u32, end: u32) -> Self {
        Self {
            content: (start, middle),
            fields: (middle, end),
        }
    }

    pub fn get(self, text: &str) -> NodeRecord<'_> {
        let part = |(start, end): (u32, u32)| text.get(start as usize..end as usize);
        NodeRecord {
            content: part(self.content).unwrap_or_default(),
            fields: part(self.fields).unwrap_or_default(),
        }
    }

    pub(crate) fn len(self) -> usize {
        let length = |(start, end): (u32, u32)| (end - start) as usize;
        length(self.content) + length(self.fields)
    }
}

/// A record. Equal records have the same fields with the same values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeRecord<'a> {
    /// The content as [`JsonValue::store`] writes it; empty if there is none.
    pub(crate) content: &'a str,
    pub(crate) fields: &'a str,
}

/// Appends a record, whose fields come sorted by name, to a text of less than 4 GiB.
pub(crate) fn write_record<'f>(
    text: &mut String,
    fields: impl Iterator<Item = (&'f str, JsonValue<'f>)> + Clone,
) -> RecordPlace {
    let start = text.len() as u32;
    for (name, value) in fields.clone() {
        if name == CONTENT {
            value.store(text);
        }
    }
    let middle = text.len() as u32;
    for (name, value) in fields {
        if name != CONTENT {
            write_field(text, name, value);
        }
    }
    RecordPlace::new(start, middle, text.len() as u32)
}

pub(crate) fn copy_record(text: &mut String, record: NodeRecord<'_>) -> RecordPlace {
    let start = text.len() as u32;
    text.push_str(record.content);
    let middle = text.len() as u32;
    text.push_str(record.fields);
    RecordPlace::new(start, middle, text.len() as u32)
}

/// The field that has a place of its own.
pub(crate) const CONTENT: &str = "content";

#[inline]
pub(crate) fn write_field(payload: &mut String, name: &str, value: JsonValue<'_>) {
    write_length(payload, name.len());
    payload.push_str(name);
    write_length(payload, value.stored_len());
    value.store(payload);
}

/// The bit of a byte of a length that another one follows.
const MORE: u8 = 0x40;

#[inline]
fn write_length(payload: &mut String, mut length: usize) {
    while length >= usize::from(MORE) {
        payload.push(char::from((length & 0x3F) as u8 | MORE));
        length >>= 6;
    }
    payload.push(char::from(length as u8));
}

/// The fields of a record but its content: names and values as they are stored, sorted by name.
pub(crate) fn stored_fields(mut fields: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let (name, rest) = Fields::text(fields)?;
        let (value, rest) = Fields::text(rest)?;
        fields = rest;
        Some((name, value))
    })
}

/// The fields of a payload record: names and values, sorted by name.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    content: Option<JsonValue<'a>>,
    record: &'a str,
}

impl<'a> Fields<'a> {
    pub fn new(record: NodeRecord<'a>) -> Self {
        let content = Some(record.content).filter(|content| !content.is_empty());
        Self {
            content: content.map(JsonValue::stored),
            record: record.fields,
        }
    }

    /// The text that a record begins with, after its length, and the rest of the record.
    #[inline]
    fn text(record: &'a str) -> Option<(&'a str, &'a str)> {
        let (mut length, mut shift, mut at) = (0_usize, 0, 0);
        let bytes = record.as_bytes();
        loop {
            let byte = *bytes.get(at)?;
            at += 1;
            length |= usize::from(byte & 0x3F) << shift;
            if byte < MORE {
                break;
            }
            shift += 6;
        }
        record.get(at..)?.split_at_checked(length)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, JsonValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let name = Self::text(self.record);
        if self.content.is_some() && name.is_none_or(|(name, _)| name > CONTENT) {
            return self.content.take().map(|content| (CONTENT, content));
        }
        let (name, rest) = name?;
        let (value, rest) = Self::text(rest)?;
        self.record = rest;
        Some((name, JsonValue::stored(value)))
    }
}
