//! The tags and custom attributes of a segment, with their posting lists.
//!
//! Names and values of attributes are not copied: each list says where in the records of the segment its text is. This
//! file must not know how they were found.

use super::Posting;
use super::records::NodeRecords;
use crate::json::JsonValue;
use crate::tree::alias::CADENCE;

#[derive(Debug)]
pub(super) struct AttributePostings {
    /// By tag, sorted by tag.
    pub(super) tags: Box<[(Box<str>, Posting)]>,
    /// Rows with tags, also where the list is empty.
    pub(super) has_tags: Posting,
    /// Sorted by name.
    pub(super) fields: Box<[FieldPostings]>,
    /// Those of all fields, one field after the other.
    pub(super) values: Box<[ValuePosting]>,
}

/// A custom attribute.
#[derive(Debug)]
pub(super) struct FieldPostings {
    /// Where its name is in the records; `None` for `cadence`, which a node may have under its other name.
    pub(super) name: Option<(u32, u32)>,
    /// The rows that have it, also where it is null.
    pub(super) rows: Posting,
    /// The end of its values among those of all fields. It has none if they are many or long.
    pub(super) end: u32,
    /// Whether it has values, all of them texts.
    pub(super) only_texts: bool,
}

/// A value of a custom attribute.
#[derive(Debug)]
pub(super) struct ValuePosting {
    /// Where it is in the records.
    pub(super) place: (u32, u32),
    pub(super) rows: Posting,
}

/// A custom attribute of a segment. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    rows: &'a Posting,
    values: &'a [ValuePosting],
    only_texts: bool,
    records: &'a NodeRecords,
}

impl<'a> Attribute<'a> {
    /// The rows that have it, also where it is null.
    pub fn rows(self) -> &'a Posting {
        self.rows
    }

    /// Whether there are posting lists by value; there are none if the values are many or long.
    pub fn has_values(self) -> bool {
        !self.values.is_empty()
    }

    /// Whether there are lists by value, all of texts.
    pub fn has_only_texts(self) -> bool {
        self.only_texts
    }

    /// The rows of a text, if it has a list; all values are texts. Logarithmic in the values.
    pub fn rows_of(self, text: &str) -> Option<&'a Posting> {
        debug_assert!(self.only_texts);
        // A text is stored after a quote.
        let stored = |value: &ValuePosting| self.records.bytes(value.place).get(1..);
        let wanted = Some(text.as_bytes());
        let found = self
            .values
            .binary_search_by(|value| stored(value).cmp(&wanted));
        found.ok().map(|at| &self.values[at].rows)
    }

    fn stored(self, value: &'a ValuePosting) -> JsonValue<'a> {
        JsonValue::stored(self.records.get(value.place))
    }

    /// The distinct values, sorted, and the rows of each, if there are lists by value.
    pub fn values(self) -> impl Iterator<Item = (JsonValue<'a>, &'a Posting)> + Clone {
        let values = self.values.iter();
        values.map(move |value| (self.stored(value), &value.rows))
    }
}

impl AttributePostings {
    /// A custom attribute; `records` are those of the segment. Logarithmic in the attributes.
    pub(super) fn find<'a>(
        &'a self,
        name: &str,
        records: &'a NodeRecords,
    ) -> Option<Attribute<'a>> {
        let found = self
            .fields
            .binary_search_by(|field| field.name_bytes(records).cmp(name.as_bytes()));
        let at = found.ok()?;
        Some(Attribute {
            rows: &self.fields[at].rows,
            values: self.values_of(at),
            only_texts: self.fields[at].only_texts,
            records,
        })
    }

    /// The values of the field at an index.
    pub(super) fn values_of(&self, at: usize) -> &[ValuePosting] {
        let before = at.checked_sub(1).map(|before| self.fields[before].end);
        &self.values[before.unwrap_or(0) as usize..self.fields[at].end as usize]
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let tags = self.tags.iter();
        let tags = tags.map(|(tag, rows)| tag.len() + rows.heap_bytes());
        let fields = self.fields.iter().map(|field| field.rows.heap_bytes());
        let values = self.values.iter().map(|value| value.rows.heap_bytes());
        tags.chain(fields).chain(values).sum::<usize>()
            + self.has_tags.heap_bytes()
            + size_of_val(&*self.tags)
            + size_of_val(&*self.fields)
            + size_of_val(&*self.values)
    }
}

impl FieldPostings {
    pub(super) fn name<'a>(&self, records: &'a NodeRecords) -> &'a str {
        self.name.map_or(CADENCE.name, |place| records.get(place))
    }

    #[inline]
    fn name_bytes<'a>(&self, records: &'a NodeRecords) -> &'a [u8] {
        let known = CADENCE.name.as_bytes();
        self.name.map_or(known, |place| records.bytes(place))
    }
}
