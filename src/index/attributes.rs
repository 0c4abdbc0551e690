//! The posting lists of tags and custom attributes, built from payload records.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::records::NodeRecords;
use super::{FieldPostings, Posting, Segment};
use crate::json::JsonValue;
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::{Fields, NodeRecord, RecordPlace, is_header, text_list};

/// A custom attribute has a posting list for each value while it has at most this many.
const FIELD_VALUES: usize = 64;

/// And while no value is longer than this, in bytes, as values are copied into the index.
const FIELD_VALUE_BYTES: usize = 256;

pub(super) struct AttributePostings {
    /// By tag, sorted.
    pub(super) tags: Box<[(Box<str>, Posting)]>,
    /// Rows with tags, also where the list is empty.
    pub(super) has_tags: Posting,
    pub(super) fields: Box<[FieldPostings]>,
}

/// Rows, ascending. Segments of one commit have few.
type RowList = SmallVec<[u32; 4]>;

/// The rows of an attribute, and of its values unless they are many or long.
#[derive(Default)]
struct AttributeRows<'a> {
    all: RowList,
    values: BTreeMap<JsonValue<'a>, RowList>,
    many: bool,
}

impl<'a> AttributeRows<'a> {
    fn add(&mut self, value: JsonValue<'a>, row: u32) {
        // Texts that hardly repeat, such as call ids, would give a posting list a row. Past the limits only the
        // rows of the attribute are kept, and a test of its value reads the records of those.
        self.all.push(row);
        if !self.many {
            self.values.entry(value).or_default().push(row);
            if self.values.len() > FIELD_VALUES || value.stored_len() > FIELD_VALUE_BYTES {
                self.clear();
            }
        }
    }

    fn clear(&mut self) {
        self.many = true;
        self.values.clear();
    }
}

#[derive(Default)]
pub(super) struct Collector<'a> {
    found: HashMap<&'a str, AttributeRows<'a>>,
    tags: BTreeMap<Cow<'a, str>, RowList>,
    tagged: RowList,
}

impl<'a> Collector<'a> {
    /// Reads the records of some rows, given by their places in `payload`; `first` is the row
    /// of the first one. Linear, plus sorting of names, tags and values.
    pub(super) fn read(&mut self, payload: &'a NodeRecords, places: &[RecordPlace], first: u32) {
        for (row, &place) in (first..).zip(places) {
            // Without the content, which is not an attribute.
            let record = || {
                Fields::new(NodeRecord {
                    content: "",
                    fields: payload.get(place.fields),
                })
            };
            let (mut has_tags, mut has_cadence) = (false, false);
            for (name, value) in record() {
                // The headers that nearly every node has.
                if matches!(name, "created_at_iso" | "parent_id" | "ttl") {
                    continue;
                }
                has_tags |= TAGS.is(name);
                has_cadence |= CADENCE.is(name);
                // An alias of a header, quoted, is the custom attribute of that name.
                if !is_header(name) || name == TAGS.alias || name == CADENCE.alias {
                    self.found.entry(name).or_default().add(value, row);
                }
            }
            // These two are indexed under one name, whichever spelling a node has.
            if has_cadence && let Some(value) = CADENCE.find(record()) {
                let found = self.found.entry(CADENCE.name).or_default();
                found.add(value, row);
            }
            if has_tags && let Some(value) = TAGS.find(record()) {
                self.tagged.push(row);
                for tag in text_list(value) {
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
        // Segments are copied in the order of their rows, so every list stays ascending by appending.
        for field in &segment.fields {
            let found = self.found.entry(&field.name).or_default();
            extend(&mut found.all, &field.rows);
            // An attribute without values had too many in that segment, and has too many here.
            if field.values.is_empty() {
                found.clear();
            }
            if !found.many {
                for (value, rows) in field.values.iter().zip(&field.postings) {
                    extend(found.values.entry(value.get()).or_default(), rows);
                }
                if found.values.len() > FIELD_VALUES {
                    found.clear();
                }
            }
        }
        extend(&mut self.tagged, &segment.has_tags);
        for (tag, rows) in &segment.tags {
            extend(self.tags.entry((&**tag).into()).or_default(), rows);
        }
    }

    pub(super) fn finish(self, rows: u32) -> AttributePostings {
        let posting = |list: &RowList| Posting::from_rows(list, rows);
        let found = self.found.into_iter();
        let mut fields: Vec<FieldPostings> = found
            .map(|(name, found)| FieldPostings {
                name: name.into(),
                rows: posting(&found.all),
                values: found.values.keys().map(|value| (*value).into()).collect(),
                postings: found.values.values().map(posting).collect(),
            })
            .collect();
        fields.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let tags = self.tags.iter();
        let tags = tags.map(|(tag, list)| (tag.as_ref().into(), posting(list)));
        AttributePostings {
            tags: tags.collect(),
            has_tags: posting(&self.tagged),
            fields: fields.into(),
        }
    }
}
