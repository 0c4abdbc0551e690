//! Collects the posting lists of tags and custom attributes from payload records, or from other segments.

use std::borrow::Cow;
use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::fields::{AttributePostings, FieldPostings, ValuePosting};
use super::records::NodeRecords;
use super::{Posting, Segment};
use crate::json::JsonValue;
use crate::tree::alias::{Aliased, CADENCE, TAGS};
use crate::tree::{RecordPlace, is_header, stored_fields, text_list};

/// A custom attribute has a posting list for each value while it has at most this many.
const FIELD_VALUES: usize = 64;

/// It has no lists if a value is longer than this many bytes: a query compares each value with its own.
const FIELD_VALUE_BYTES: usize = 256;

/// Rows, ascending. Segments of one commit have few.
type RowList = SmallVec<[u32; 4]>;

/// A text in the fields of the record of a row.
#[derive(Clone, Copy)]
struct TextPlace {
    row: u32,
    /// Counted from the start of the fields.
    at: u32,
    len: u32,
}

impl TextPlace {
    /// The place of `text`, which is a part of `fields`.
    fn new(row: u32, fields: &str, text: &str) -> Self {
        let at = text.as_ptr() as usize - fields.as_ptr() as usize;
        Self {
            row,
            at: at as u32,
            len: text.len() as u32,
        }
    }

    /// The place of a text of a segment whose rows move by `first`.
    fn moved(place: (u32, u32), rows: &Posting, segment: &Segment, first: u32) -> Self {
        let row = rows.first().unwrap_or(0);
        let fields = segment.payload_at[row as usize].fields;
        Self {
            row: row + first,
            at: place.0 - fields.0,
            len: place.1 - place.0,
        }
    }

    fn in_records(self, places: &[RecordPlace]) -> (u32, u32) {
        let start = places[self.row as usize].fields.0 + self.at;
        (start, start + self.len)
    }
}

/// The rows of an attribute, and of its values unless they are many or long.
struct AttributeRows<'a> {
    /// The first place of its name; `None` for `cadence`.
    name: Option<TextPlace>,
    all: RowList,
    /// Sorted.
    values: SmallVec<[ValueRows<'a>; 2]>,
    many: bool,
}

struct ValueRows<'a> {
    value: JsonValue<'a>,
    /// The first place of the value.
    place: TextPlace,
    rows: RowList,
}

impl<'a> AttributeRows<'a> {
    fn new(name: Option<TextPlace>) -> Self {
        Self {
            name,
            all: RowList::new(),
            values: SmallVec::new(),
            many: false,
        }
    }

    /// Adds a row with a value, which is stored at `place`.
    fn add(&mut self, stored: &'a str, place: TextPlace) {
        // Texts that hardly repeat, such as call ids, would give a posting list a row. Past the limits only the
        // rows of the attribute are kept, and a test of its value reads the records of those.
        self.all.push(place.row);
        if !self.many {
            self.rows_of(JsonValue::stored(stored), place)
                .push(place.row);
            if self.values.len() > FIELD_VALUES || stored.len() > FIELD_VALUE_BYTES {
                self.clear();
            }
        }
    }

    fn rows_of(&mut self, value: JsonValue<'a>, place: TextPlace) -> &mut RowList {
        let at = match self
            .values
            .binary_search_by(|known| known.value.cmp(&value))
        {
            Ok(at) => at,
            Err(at) => {
                let rows = RowList::new();
                self.values.insert(at, ValueRows { value, place, rows });
                at
            }
        };
        &mut self.values[at].rows
    }

    fn clear(&mut self) {
        self.many = true;
        self.values.clear();
    }
}

/// Whether there are values, all of them texts.
fn are_texts(values: &[ValueRows<'_>]) -> bool {
    // Sorted, values of one type are next to each other.
    let ends = [values.first(), values.last()];
    let mut ends = ends.into_iter();
    ends.all(|end| end.is_some_and(|value| value.value.is_text()))
}

#[derive(Default)]
pub(super) struct Collector<'a> {
    found: BTreeMap<&'a str, AttributeRows<'a>>,
    tags: BTreeMap<Cow<'a, str>, RowList>,
    tagged: RowList,
}

impl<'a> Collector<'a> {
    /// Reads the records of some rows, given by their places in `payload`; `first` is the row
    /// of the first one. Linear, plus sorting of names, tags and values.
    pub(super) fn read(&mut self, payload: &'a NodeRecords, places: &[RecordPlace], first: u32) {
        for (row, &place) in (first..).zip(places) {
            // The content is not among them, which is not an attribute.
            let fields = payload.get(place.fields);
            let (mut has_tags, mut has_cadence) = (false, false);
            for (name, stored) in stored_fields(fields) {
                // The headers that nearly every node has.
                if matches!(name, "created_at_iso" | "parent_id" | "ttl") {
                    continue;
                }
                has_tags |= TAGS.is(name);
                has_cadence |= CADENCE.is(name);
                // An alias of a header, quoted, is the custom attribute of that name.
                if !is_header(name) || name == TAGS.alias || name == CADENCE.alias {
                    let found = self.found.entry(name).or_insert_with(|| {
                        AttributeRows::new(Some(TextPlace::new(row, fields, name)))
                    });
                    found.add(stored, TextPlace::new(row, fields, stored));
                }
            }
            // These two are indexed under one name, whichever spelling a node has.
            let stored = |header: Aliased| header.find_as(stored_fields(fields), JsonValue::stored);
            if has_cadence && let Some(stored) = stored(CADENCE) {
                let found = self.found.entry(CADENCE.name);
                let found = found.or_insert_with(|| AttributeRows::new(None));
                found.add(stored, TextPlace::new(row, fields, stored));
            }
            if has_tags && let Some(stored) = stored(TAGS) {
                self.tagged.push(row);
                for tag in text_list(JsonValue::stored(stored)) {
                    let list = self.tags.entry(tag).or_default();
                    if list.last() != Some(&row) {
                        list.push(row);
                    }
                }
            }
        }
    }

    /// Takes the attributes of all rows of `segment`, the first of which becomes `first`. The same
    /// as reading its records, at the cost of its index.
    pub(super) fn copy(&mut self, segment: &'a Segment, first: u32) {
        let all = 0..segment.len();
        let extend = |list: &mut RowList, rows: &Posting| {
            rows.for_each_in(all.clone(), |row| list.push(row + first));
        };
        let moved = |place, rows: &Posting| TextPlace::moved(place, rows, segment, first);
        // Segments are copied in the order of their rows, so every list stays ascending by appending.
        let attributes = &segment.attributes;
        for (at, field) in attributes.fields.iter().enumerate() {
            let name = field.name(&segment.payload);
            let found = self.found.entry(name).or_insert_with(|| {
                AttributeRows::new(field.name.map(|place| moved(place, &field.rows)))
            });
            extend(&mut found.all, &field.rows);
            let values = attributes.values_of(at);
            // An attribute without values had too many in that segment, and has too many here.
            if values.is_empty() {
                found.clear();
            }
            if !found.many {
                for value in values {
                    let json = JsonValue::stored(segment.payload.get(value.place));
                    let rows = found.rows_of(json, moved(value.place, &value.rows));
                    extend(rows, &value.rows);
                }
                if found.values.len() > FIELD_VALUES {
                    found.clear();
                }
            }
        }
        extend(&mut self.tagged, &attributes.has_tags);
        for (tag, rows) in &attributes.tags {
            extend(self.tags.entry((&**tag).into()).or_default(), rows);
        }
    }

    /// The posting lists of a segment whose rows have their records at `places`.
    pub(super) fn finish(self, places: &[RecordPlace]) -> AttributePostings {
        let posting = |list: &RowList| Posting::from_rows(list, places.len() as u32);
        let count = self.found.values().map(|found| found.values.len()).sum();
        let mut values = Vec::with_capacity(count);
        let fields = self.found.into_values().map(|found| {
            values.extend(found.values.iter().map(|value| ValuePosting {
                place: value.place.in_records(places),
                rows: posting(&value.rows),
            }));
            FieldPostings {
                name: found.name.map(|name| name.in_records(places)),
                rows: posting(&found.all),
                end: values.len() as u32,
                only_texts: are_texts(&found.values),
            }
        });
        let fields = fields.collect();
        let tags = self.tags.iter();
        let tags = tags.map(|(tag, list)| (tag.as_ref().into(), posting(list)));
        AttributePostings {
            tags: tags.collect(),
            has_tags: posting(&self.tagged),
            fields,
            values: values.into(),
        }
    }
}
