//! Payload records: the fields of a node that the columns of [`super::Row`] cannot represent.
//!
//! These are `content`, `content_hash`, `created_at_iso`, `tags`, `tag`, `cadence`, `cad`,
//! `removable`, `provenance`, `parent_id`, custom fields, and any header given as an explicit null.
//! A record is a run of fields sorted by name in byte order, each written as: name length
//! (LEB128), name, value length (LEB128), value as JSON text as written.

/// Appends a field to a record.
#[inline]
pub(crate) fn write_field(payload: &mut Vec<u8>, name: &str, value: &str) {
    write_length(payload, name.len());
    payload.extend_from_slice(name.as_bytes());
    write_length(payload, value.len());
    payload.extend_from_slice(value.as_bytes());
}

#[inline]
fn write_length(payload: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        payload.push((length & 0x7F) as u8 | 0x80);
        length >>= 7;
    }
    payload.push(length as u8);
}

/// The fields of a payload record: names and JSON values, sorted by name.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    record: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Reads a record.
    pub fn new(record: &'a [u8]) -> Self {
        Self { record }
    }

    /// The same fields as bytes. Much faster where most of them are not wanted: a text is not
    /// checked to be UTF-8.
    pub(crate) fn raw(mut self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        std::iter::from_fn(move || Some((self.bytes()?, self.bytes()?)))
    }

    #[inline]
    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    #[inline]
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let mut length = 0_usize;
        let mut shift = 0;
        loop {
            let (&byte, rest) = self.record.split_first()?;
            self.record = rest;
            length |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        let (text, rest) = self.record.split_at_checked(length)?;
        self.record = rest;
        Some(text)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.text()?, self.text()?))
    }
}
