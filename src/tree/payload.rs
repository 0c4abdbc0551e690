//! Payload records: the fields of a node that the columns of [`super::Row`] cannot represent.
//!
//! These are `content`, `content_hash`, `created_at_iso`, `tags`, `tag`, `cadence`, `cad`,
//! `removable`, `provenance`, `parent_id`, custom fields, and any header given as an explicit null.
//! A record is a run of fields sorted by name in byte order, each written as: name length, name, value
//! length, value as [`JsonValue::store`] writes it. A length has six bits a byte, the lowest first, and a
//! seventh if another byte follows, so records are text, and a field of one is a slice of it.

use crate::json::JsonValue;

/// Appends a field to a record.
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

/// The fields of a payload record: names and values, sorted by name.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    record: &'a str,
}

impl<'a> Fields<'a> {
    /// Reads a record.
    pub fn new(record: &'a str) -> Self {
        Self { record }
    }

    #[inline]
    fn text(&mut self) -> Option<&'a str> {
        let (mut length, mut shift, mut at) = (0_usize, 0, 0);
        let bytes = self.record.as_bytes();
        loop {
            let byte = *bytes.get(at)?;
            at += 1;
            length |= usize::from(byte & 0x3F) << shift;
            if byte < MORE {
                break;
            }
            shift += 6;
        }
        let text = self.record.get(at..at + length)?;
        self.record = self.record.get(at + length..)?;
        Some(text)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, JsonValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let name = self.text()?;
        Some((name, JsonValue::stored(self.text()?)))
    }
}
