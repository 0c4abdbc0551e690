//! Dictionary-coded text columns: a code for each row, a posting list for each value.

use std::ops::Range;

use hashbrown::HashTable;
use smallvec::{SmallVec, smallvec};

use super::column::Codes;
use super::hash::hash_text;
use super::posting::{Posting, is_dense};
use crate::tree::NONE;

/// From this many values on, lookups use a hash table.
const HASHED_FROM: usize = 16;

/// A text column: each row has a value of the dictionary, or none.
#[derive(Clone, Debug)]
pub struct DictColumn {
    codes: Codes,
    values: Box<[Box<str>]>,
    postings: Box<[Posting]>,
    table: HashTable<u32>,
}

impl DictColumn {
    /// The column of a code for each row, an index into `values` or [`NONE`].
    pub fn new(codes: &[u32], values: Vec<Box<str>>) -> Self {
        let rows = codes.len() as u32;
        let postings = match rows {
            ..=64 => short_postings(codes, values.len()),
            _ => long_postings(codes, values.len()),
        };
        let mut table = HashTable::new();
        // A few short texts are compared faster than one is hashed; most dictionaries are that small.
        if values.len() >= HASHED_FROM {
            let hash = |code: &u32| hash_text(&values[*code as usize]);
            table.reserve(values.len(), hash);
            for code in 0..values.len() as u32 {
                table.insert_unique(hash(&code), code, hash);
            }
        }
        // No value is code 0, so a column without values is `Codes::Zero` and has no memory.
        let packed = codes
            .iter()
            .map(|&code| if code == NONE { 0 } else { u64::from(code) + 1 });
        let codes = Codes::pack(packed, values.len() as u64);
        Self {
            codes,
            values: values.into(),
            postings,
            table,
        }
    }

    /// Calls `visit` with the codes of some rows, in order; [`NONE`] for rows without a value.
    pub(super) fn for_each_in(&self, rows: Range<u32>, mut visit: impl FnMut(u32)) {
        self.codes
            .for_each_in(rows, |code| visit((code as u32).wrapping_sub(1)));
    }

    /// The code of a row; `None` if it has no value.
    #[inline]
    pub fn code(&self, row: u32) -> Option<u32> {
        (self.codes.get(row) as u32).checked_sub(1)
    }

    /// The value of a row.
    pub fn get(&self, row: u32) -> Option<&str> {
        self.code(row).map(|code| &*self.values[code as usize])
    }

    /// The code of a value, if it is in the dictionary. Constant time.
    pub fn find(&self, value: &str) -> Option<u32> {
        if self.values.len() < HASHED_FROM {
            return self
                .values
                .iter()
                .position(|known| **known == *value)
                .map(|at| at as u32);
        }
        let hash = hash_text(value);
        self.table
            .find(hash, |&code| &*self.values[code as usize] == value)
            .copied()
    }

    /// The rows of a value, if it is in the dictionary. Constant time.
    #[inline]
    pub fn rows_of(&self, value: &str) -> Option<&Posting> {
        self.find(value).map(|code| self.posting(code))
    }

    /// The values, by code.
    pub fn values(&self) -> &[Box<str>] {
        &self.values
    }

    /// The rows of a code.
    pub fn posting(&self, code: u32) -> &Posting {
        &self.postings[code as usize]
    }

    /// Heap size in bytes.
    pub fn heap_bytes(&self) -> usize {
        let values: usize = self.values.iter().map(|value| value.len() + 16).sum();
        let postings: usize = self
            .postings
            .iter()
            .map(|posting| posting.heap_bytes() + size_of::<Posting>())
            .sum();
        self.codes.heap_bytes() + values + postings + self.table.capacity() * 5
    }
}

/// The posting lists of `values` values in at most 64 rows, which need no allocation.
fn short_postings(codes: &[u32], values: usize) -> Box<[Posting]> {
    let mut words: SmallVec<[u64; 16]> = smallvec![0; values];
    for (row, &code) in codes.iter().enumerate() {
        if let Some(word) = words.get_mut(code as usize) {
            *word |= 1 << row;
        }
    }
    words.into_iter().map(Posting::from_word).collect()
}

/// The posting lists of `values` values in any number of rows.
fn long_postings(codes: &[u32], values: usize) -> Box<[Posting]> {
    let rows = codes.len() as u32;
    let mut counts = vec![0_usize; values];
    for &code in codes {
        if let Some(count) = counts.get_mut(code as usize) {
            *count += 1;
        }
    }
    // Counting first says which list gets which form, so each row is written once, to its final place.
    let dense: Vec<bool> = counts.iter().map(|&count| is_dense(count, rows)).collect();
    let words = rows.div_ceil(64) as usize;
    let mut bits: Vec<Vec<u64>> = dense
        .iter()
        .map(|&dense| vec![0; if dense { words } else { 0 }])
        .collect();
    let mut lists: Vec<Vec<u32>> = dense
        .iter()
        .zip(&counts)
        .map(|(&dense, &count)| Vec::with_capacity(if dense { 0 } else { count }))
        .collect();
    for (row, &code) in codes.iter().enumerate() {
        if code == NONE {
            continue;
        }
        let code = code as usize;
        if dense[code] {
            bits[code][row / 64] |= 1 << (row % 64);
        } else {
            lists[code].push(row as u32);
        }
    }
    (0..values)
        .map(|code| {
            if dense[code] {
                let words = std::mem::take(&mut bits[code]);
                Posting::dense(words, counts[code] as u32)
            } else {
                Posting::from_rows(&lists[code], rows)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{DictColumn, NONE};

    #[test]
    fn values_codes_and_postings_agree() {
        for distinct in [1_u32, 3, 40, 400] {
            let values: Vec<Box<str>> = (0..distinct).map(|v| format!("v{v}").into()).collect();
            let codes: Vec<u32> = (0..1_000)
                .map(|row| if row % 7 == 0 { NONE } else { row % distinct })
                .collect();
            let column = DictColumn::new(&codes, values.clone());
            for (row, &code) in codes.iter().enumerate() {
                assert_eq!(column.code(row as u32), (code != NONE).then_some(code));
            }
            for (code, value) in values.iter().enumerate() {
                assert_eq!(column.find(value), Some(code as u32));
                let mut rows = Vec::new();
                column
                    .posting(code as u32)
                    .for_each_in(0..1_000, |row| rows.push(row));
                let expected: Vec<u32> = (0..1_000)
                    .filter(|&row| codes[row as usize] == code as u32)
                    .collect();
                assert_eq!(rows, expected);
            }
            assert_eq!(column.find("absent"), None);
        }
    }
}
