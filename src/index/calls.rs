//! The calls and results of a segment by the id that they have in common (LANGUAGE §13).
//!
//! Ids are numbered, so which call a result belongs to is found without reading a record again; between segments, by
//! the text of the id. This file must not know how a segment has its rows.

use std::ops::Range;

use hashbrown::HashMap;

/// A call or a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRow {
    pub(crate) row: u32,
    /// The number of its id in the segment.
    pub(crate) id: u32,
    pub(crate) is_call: bool,
}

/// The calls and results of a segment that have an id.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    rows: Vec<CallRow>,
    /// The texts of all ids, and where each ends.
    texts: String,
    ends: Vec<u32>,
}

/// Collects the calls and results of a segment.
#[derive(Default)]
pub(super) struct CallsBuilder<'a> {
    calls: Calls,
    numbers: HashMap<&'a str, u32>,
}

impl<'a> CallsBuilder<'a> {
    /// Adds a row after the others.
    pub(super) fn add(&mut self, row: u32, is_call: bool, text: &'a str) {
        let Calls { rows, texts, ends } = &mut self.calls;
        let id = *self.numbers.entry(text).or_insert_with(|| {
            texts.push_str(text);
            ends.push(texts.len() as u32);
            ends.len() as u32 - 1
        });
        rows.push(CallRow { row, id, is_call });
    }

    pub(super) fn finish(mut self) -> Calls {
        self.calls.rows.shrink_to_fit();
        self.calls.texts.shrink_to_fit();
        self.calls.ends.shrink_to_fit();
        self.calls
    }
}

impl Calls {
    /// Those among some rows, ascending.
    pub(crate) fn within(&self, rows: Range<u32>) -> &[CallRow] {
        let before = |row: u32| self.rows.partition_point(|call| call.row < row);
        &self.rows[before(rows.start)..before(rows.end)]
    }

    /// The number of ids.
    pub(crate) fn ids(&self) -> usize {
        self.ends.len()
    }

    /// The text of an id.
    pub(crate) fn text(&self, id: usize) -> &str {
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.texts[start as usize..self.ends[id] as usize]
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.rows) + self.texts.len() + size_of_val(&*self.ends)
    }
}
