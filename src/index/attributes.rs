//! The posting lists of tags and custom attributes, built from payload records.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::{Field, Posting};
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::{Fields, is_header, text_list};

/// A custom attribute has a posting list for each value while it has at most this many.
const FIELD_VALUES: usize = 64;

/// And while no value is longer than this, in bytes, as values are copied into the index.
const FIELD_VALUE_BYTES: usize = 256;

/// The index of the payload records of a segment.
pub(super) struct Attributes {
    /// By tag, sorted.
    pub(super) tags: Box<[(Box<str>, Posting)]>,
    /// Rows with tags, also where the list is empty.
    pub(super) has_tags: Posting,
    /// Custom attributes, sorted by name.
    pub(super) fields: Box<[Field]>,
}

/// The rows of an attribute, and of its values unless they are many or long.
#[derive(Default)]
struct Found<'a> {
    all: Vec<u32>,
    values: BTreeMap<&'a str, Vec<u32>>,
    many: bool,
}

impl<'a> Found<'a> {
    fn add(&mut self, value: &'a str, row: u32) {
        self.all.push(row);
        if !self.many {
            self.values.entry(value).or_default().push(row);
            if self.values.len() > FIELD_VALUES || value.len() > FIELD_VALUE_BYTES {
                self.many = true;
                self.values.clear();
            }
        }
    }
}

impl Attributes {
    /// Reads the records of all rows, given by their byte ranges in `payload`. Linear, plus
    /// sorting of names, tags and values.
    pub(super) fn read(payload: &[u8], records: &[(u32, u32)]) -> Self {
        let mut found: HashMap<&str, Found<'_>> = HashMap::new();
        let mut tags: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut tagged: Vec<u32> = Vec::new();
        for (row, &(start, end)) in (0..).zip(records) {
            let record = || Fields::new(&payload[start as usize..end as usize]);
            let (mut has_tags, mut has_cadence) = (false, false);
            for (name, value) in record() {
                has_tags |= TAGS.is(name);
                has_cadence |= CADENCE.is(name);
                // An alias of a header, quoted, is the custom attribute of that name.
                if !is_header(name) || name == TAGS.alias || name == CADENCE.alias {
                    found.entry(name).or_default().add(value, row);
                }
            }
            // These two are indexed under one name, whichever spelling a node has.
            if has_cadence && let Some(value) = CADENCE.of(record()) {
                found.entry(CADENCE.name).or_default().add(value, row);
            }
            if has_tags && let Some(value) = TAGS.of(record()) {
                tagged.push(row);
                for tag in text_list(value) {
                    let list = tags.entry(tag).or_default();
                    if list.last() != Some(&row) {
                        list.push(row);
                    }
                }
            }
        }
        let posting = |list: &Vec<u32>| Posting::from_rows(list, records.len() as u32);
        let mut fields: Vec<Field> = found
            .into_iter()
            .map(|(name, found)| Field {
                name: name.into(),
                rows: posting(&found.all),
                values: found.values.keys().map(|value| (*value).into()).collect(),
                postings: found.values.values().map(posting).collect(),
            })
            .collect();
        fields.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let tags = tags
            .iter()
            .map(|(tag, list)| (tag.as_str().into(), posting(list)))
            .collect();
        Self {
            tags,
            has_tags: posting(&tagged),
            fields: fields.into(),
        }
    }
}
