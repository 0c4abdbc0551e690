//! The result of a run: rows of one snapshot.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::index::{Bits, Ones};

/// Rows in an order of their own. As many without an allocation as the other forms of [`MatchedRows`] leave room for.
pub(super) type RowList = SmallVec<[u32; 8]>;

/// Matches of one snapshot, in result order.
#[derive(Clone, Debug)]
pub enum MatchedRows {
    /// In document order: the rows `start + bit` of the bits set in `word`, all in one piece.
    Word {
        /// The row of bit 0.
        start: u32,
        /// One bit a row.
        word: u64,
    },
    /// In document order: bit sets over ascending row ranges.
    Bits(SmallVec<[Bits; 1]>),
    /// In the order of the list.
    List(RowList),
}

impl MatchedRows {
    pub fn none() -> Self {
        Self::List(SmallVec::new())
    }

    #[inline]
    pub fn from_row(row: Option<u32>) -> Self {
        Self::Word {
            start: row.unwrap_or(0),
            word: u64::from(row.is_some()),
        }
    }

    /// Number of rows. Linear in the words of a bit set.
    pub fn len(&self) -> usize {
        match self {
            Self::Word { word, .. } => word.count_ones() as usize,
            Self::Bits(windows) => windows.iter().map(Bits::count).sum(),
            Self::List(rows) => rows.len(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Word { word, .. } => *word == 0,
            Self::Bits(windows) => windows.iter().all(Bits::is_empty),
            Self::List(rows) => rows.is_empty(),
        }
    }

    pub fn iter(&self) -> RowIter<'_> {
        let none = RowIter {
            windows: &[],
            words: &[],
            ones: Ones(0),
            base: 0,
            list: [].iter(),
        };
        match self {
            Self::Word { start, word } => RowIter {
                ones: Ones(*word),
                base: *start,
                ..none
            },
            Self::Bits(windows) => RowIter { windows, ..none },
            Self::List(rows) => RowIter {
                list: rows.iter(),
                ..none
            },
        }
    }

    #[inline]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u32)) {
        match self {
            Self::Word { start, word } => Ones(*word).for_each(|bit| visit(start + bit)),
            Self::Bits(windows) => {
                for window in windows {
                    let mut base = window.start();
                    for &word in window.words() {
                        let mut word = word;
                        while word != 0 {
                            visit(base + word.trailing_zeros());
                            word &= word - 1;
                        }
                        base += 64;
                    }
                }
            }
            Self::List(rows) => rows.iter().copied().for_each(visit),
        }
    }

    /// The union, in document order; both are inside `within`.
    pub(super) fn union(self, other: Self, within: &Range<u32>) -> Self {
        if other.is_empty() {
            return self;
        }
        // Windows of different groups may overlap. One bit set sorts and merges them.
        let mut bits = Bits::new(within.clone());
        for rows in [&self, &other] {
            rows.for_each(|row| bits.insert(row));
        }
        Self::Bits(smallvec![bits])
    }
}

/// Iterator over [`MatchedRows`], in result order.
#[derive(Clone, Debug)]
pub struct RowIter<'a> {
    windows: &'a [Bits],
    words: &'a [u64],
    ones: Ones,
    base: u32,
    list: std::slice::Iter<'a, u32>,
}

impl Iterator for RowIter<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            // The bits of this word, then the words of this window, then the next window; the list
            // is empty unless it is all there is.
            if let Some(bit) = self.ones.next() {
                return Some(self.base + bit);
            }
            if let Some((word, rest)) = self.words.split_first() {
                self.words = rest;
                self.base = self.base.wrapping_add(64);
                self.ones = Ones(*word);
                continue;
            }
            let Some((window, rest)) = self.windows.split_first() else {
                return self.list.next().copied();
            };
            self.windows = rest;
            self.words = window.words();
            self.base = window.start().wrapping_sub(64);
        }
    }
}
