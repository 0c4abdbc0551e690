//! Dictionary-coded text columns: a code for each row, a posting list for each value.

use std::ops::Range;

use super::column::Codes;
use super::posting::{Posting, exactly};
use crate::tree::Dictionary;

/// A text column: each row has a value of the dictionary, or none.
#[derive(Clone, Debug)]
pub struct DictColumn {
    codes: Codes,
    dictionary: Dictionary,
    postings: Box<[Posting]>,
}

impl DictColumn {
    /// The column of a code for each row, of the dictionary or [`NONE`](crate::tree::NONE).
    pub fn new(codes: &[u32], dictionary: Dictionary) -> Self {
        let values = dictionary.values().len();
        let postings = Posting::of_codes(codes.iter().copied(), codes.len() as u32, values);
        // No value is code 0, so a column without values is `Codes::Zero` and has no memory.
        let packed = codes.iter().map(|code| u64::from(code.wrapping_add(1)));
        Self {
            codes: Codes::pack(packed, values as u64),
            dictionary,
            postings: exactly(postings),
        }
    }

    /// Calls `visit` with the codes of some rows, in order; [`NONE`](crate::tree::NONE) for rows without a value.
    pub(super) fn for_each_in(&self, rows: Range<u32>, mut visit: impl FnMut(u32)) {
        self.codes
            .for_each_in(rows, |code| visit((code as u32).wrapping_sub(1)));
    }

    /// The code of a row; `None` if it has no value.
    #[inline]
    pub fn code(&self, row: u32) -> Option<u32> {
        (self.codes.get(row) as u32).checked_sub(1)
    }

    pub fn get(&self, row: u32) -> Option<&str> {
        self.dictionary.get(self.code(row)?)
    }

    /// The rows of a value, if it is in the dictionary. Constant time.
    #[inline]
    pub fn rows_of(&self, value: &str) -> Option<&Posting> {
        self.dictionary.find(value).map(|code| self.posting(code))
    }

    /// The values, by code.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.dictionary.values()
    }

    /// The value of a code.
    pub fn value(&self, code: u32) -> Option<&str> {
        self.dictionary.get(code)
    }

    pub fn posting(&self, code: u32) -> &Posting {
        &self.postings[code as usize]
    }

    pub fn heap_bytes(&self) -> usize {
        let postings = self.postings.iter();
        let postings = postings.map(|posting| posting.heap_bytes() + size_of::<Posting>());
        self.codes.heap_bytes() + self.dictionary.heap_bytes() + postings.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::{DictColumn, Dictionary};
    use crate::tree::NONE;

    #[test]
    fn values_codes_and_postings_agree() {
        for distinct in [1_u32, 3, 40, 400] {
            let values: Vec<Box<str>> = (0..distinct).map(|v| format!("v{v}").into()).collect();
            let codes: Vec<u32> = (0..1_000)
                .map(|row| if row % 7 == 0 { NONE } else { row % distinct })
                .collect();
            let column = DictColumn::new(&codes, Dictionary::from_values(&values));
            for (row, &code) in codes.iter().enumerate() {
                assert_eq!(column.code(row as u32), (code != NONE).then_some(code));
            }
            for (code, value) in values.iter().enumerate() {
                let mut rows = Vec::new();
                let posting = column.rows_of(value).expect("a value");
                posting.for_each_in(0..1_000, |row| rows.push(row));
                let expected: Vec<u32> = (0..1_000)
                    .filter(|&row| codes[row as usize] == code as u32)
                    .collect();
                assert_eq!(rows, expected);
            }
            assert!(column.rows_of("absent").is_none());
        }
    }
}
