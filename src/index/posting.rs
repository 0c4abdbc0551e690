//! Posting lists: the rows of a segment that have one value.
//!
//! Short lists are roaring bitmaps. Long ones are plain words, which are then as small and much
//! faster to walk.

use std::ops::Range;

use roaring::RoaringBitmap;
use smallvec::SmallVec;

use super::bits::{Bits, Ones, mask};

/// A list of at least one row in this many is stored as words.
const DENSE_FROM: u64 = 24;

/// The rows of a segment that have one value.
#[derive(Clone, Debug)]
pub struct Posting(Repr);

#[derive(Clone, Debug)]
enum Repr {
    /// A single row, without allocation: many values occur once.
    One(u32),
    /// Few rows.
    Sparse(RoaringBitmap),
    /// Many rows: one bit for each row of the segment, and the number of bits set.
    Dense { words: Box<[u64]>, count: u32 },
}

impl Default for Posting {
    fn default() -> Self {
        Self(Repr::Sparse(RoaringBitmap::new()))
    }
}

/// Whether a list of `count` rows out of `rows` is stored as words.
pub(crate) fn is_dense(count: usize, rows: u32) -> bool {
    count > 1 && count as u64 * DENSE_FROM >= u64::from(rows)
}

impl Posting {
    /// The list of some ascending rows of a segment of `rows` rows.
    pub fn from_rows(sorted: &[u32], rows: u32) -> Self {
        if let [row] = sorted {
            return Self(Repr::One(*row));
        }
        if is_dense(sorted.len(), rows) {
            let mut words = vec![0; rows.div_ceil(64) as usize];
            for &row in sorted {
                words[(row / 64) as usize] |= 1 << (row % 64);
            }
            return Self::dense(words, sorted.len() as u32);
        }
        let mut set = RoaringBitmap::new();
        set.extend(sorted.iter().copied());
        Self(Repr::Sparse(set))
    }

    /// The list of the `count` rows whose bits are set, for which [`is_dense`] is true.
    pub(super) fn dense(words: Vec<u64>, count: u32) -> Self {
        let words = words.into();
        Self(Repr::Dense { words, count })
    }

    /// The list of the rows whose bits are set.
    pub fn from_words(words: Vec<u64>, rows: u32) -> Self {
        let count: u32 = words.iter().map(|word| word.count_ones()).sum();
        if is_dense(count as usize, rows) {
            return Self::dense(words, count);
        }
        let sorted: Vec<u32> = words
            .iter()
            .enumerate()
            .flat_map(|(index, &word)| Ones(word).map(move |bit| index as u32 * 64 + bit))
            .collect();
        Self::from_rows(&sorted, rows)
    }

    /// Number of rows. Constant time, or linear in the containers of a roaring bitmap.
    pub fn len(&self) -> u32 {
        match &self.0 {
            Repr::One(_) => 1,
            Repr::Sparse(set) => set.len() as u32,
            Repr::Dense { count, .. } => *count,
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Repr::Sparse(set) => set.is_empty(),
            Repr::One(_) | Repr::Dense { .. } => false,
        }
    }

    /// Whether `row` is in the list.
    #[inline]
    pub fn contains(&self, row: u32) -> bool {
        match &self.0 {
            Repr::One(one) => *one == row,
            Repr::Sparse(set) => set.contains(row),
            Repr::Dense { words, .. } => words
                .get((row / 64) as usize)
                .is_some_and(|word| word >> (row % 64) & 1 == 1),
        }
    }

    /// The bitmap of a dense list, one bit for each row of the segment; `None` for other lists.
    #[inline]
    pub fn dense_words(&self) -> Option<&[u64]> {
        match &self.0 {
            Repr::Dense { words, .. } => Some(words),
            Repr::One(_) | Repr::Sparse(_) => None,
        }
    }

    /// Retains the rows that are in the list.
    pub(crate) fn retain(&self, rows: &mut SmallVec<[u32; 16]>) {
        match &self.0 {
            Repr::Dense { words, .. } => rows.retain(|row| {
                let word = words.get((*row / 64) as usize);
                word.is_some_and(|word| word >> (*row % 64) & 1 == 1)
            }),
            Repr::One(_) | Repr::Sparse(_) => rows.retain(|row| self.contains(*row)),
        }
    }

    /// One bit for each row of the list in `index * 64..index * 64 + 64`.
    #[inline]
    pub fn word(&self, index: u32) -> u64 {
        let base = index * 64;
        match &self.0 {
            Repr::One(row) if row / 64 == index => 1 << (row % 64),
            Repr::One(_) => 0,
            Repr::Sparse(set) if set.is_empty() => 0,
            Repr::Sparse(set) => set
                .range(base..=base + 63)
                .fold(0, |word, row| word | 1 << (row - base)),
            Repr::Dense { words, .. } => words.get(index as usize).copied().unwrap_or(0),
        }
    }

    /// Calls `visit` with every row of the list in `rows`, ascending.
    pub fn for_each_in(&self, rows: Range<u32>, mut visit: impl FnMut(u32)) {
        if rows.start >= rows.end {
            return;
        }
        match &self.0 {
            Repr::One(one) => {
                if rows.contains(one) {
                    visit(*one);
                }
            }
            Repr::Sparse(set) => {
                if rows.start == 0 && set.max().is_some_and(|max| max < rows.end) {
                    set.iter().for_each(visit);
                } else {
                    set.range(rows).for_each(visit);
                }
            }
            Repr::Dense { words, .. } => {
                for index in rows.start / 64..=(rows.end - 1) / 64 {
                    let word = words.get(index as usize).copied().unwrap_or(0);
                    for bit in Ones(word & mask(index, rows.start, rows.end)) {
                        visit(index * 64 + bit);
                    }
                }
            }
        }
    }

    /// Adds the rows of the list in `rows` to `out`, each increased by `shift`, a multiple of 64.
    pub(crate) fn or_into(&self, out: &mut Bits, rows: Range<u32>, shift: u32) {
        match &self.0 {
            Repr::Dense { words, .. } => {
                zip_words(out, words, rows, shift, |word, posting, mask| {
                    *word |= posting & mask;
                });
            }
            Repr::One(_) | Repr::Sparse(_) => {
                let window = out.start().saturating_sub(shift)..out.end().saturating_sub(shift);
                let rows = rows.start.max(window.start)..rows.end.min(window.end);
                self.for_each_in(rows, |row| out.insert(row + shift));
            }
        }
    }

    /// Heap size in bytes.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::One(_) => 0,
            Repr::Sparse(set) => {
                let stats = set.statistics();
                let data = stats.n_bytes_array_containers
                    + stats.n_bytes_bitset_containers
                    + stats.n_bytes_run_containers;
                data as usize + 40 * stats.n_containers as usize
            }
            Repr::Dense { words, .. } => words.len() * 8,
        }
    }
}

/// Visits the words of `out` for the segment rows `rows`, which `shift` takes to rows of `out`: the
/// word, the word of `posting` for the same rows, and the mask of `rows`. Words after the end of
/// `posting` are skipped.
///
/// Only the first and the last mask are not all ones. They are visited apart, so that the rest is a
/// plain loop over two slices.
#[inline]
pub(crate) fn zip_words(
    out: &mut Bits,
    posting: &[u64],
    rows: Range<u32>,
    shift: u32,
    mut visit: impl FnMut(&mut u64, u64, u64),
) {
    let start = rows.start.max(out.start().saturating_sub(shift));
    let end = rows.end.min(out.end().saturating_sub(shift));
    if start >= end {
        return;
    }
    let (first, last) = (start / 64, (end - 1) / 64);
    let at = first.wrapping_add((shift / 64).wrapping_sub(out.first_word())) as usize;
    let (Some(words), Some(posting)) =
        (out.words_mut().get_mut(at..), posting.get(first as usize..))
    else {
        return;
    };
    let count = ((last - first) as usize + 1)
        .min(words.len())
        .min(posting.len());
    let (words, posting) = (&mut words[..count], &posting[..count]);
    let mut pairs = words.iter_mut().zip(posting);
    if let Some((word, &posting)) = pairs.next() {
        visit(word, posting, mask(first, start, end));
    }
    let last = (count > 1).then(|| pairs.next_back()).flatten();
    for (word, &posting) in pairs {
        visit(word, posting, u64::MAX);
    }
    if let Some((word, &posting)) = last {
        visit(word, posting, mask(first + count as u32 - 1, start, end));
    }
}

/// As [`zip_words`], without a posting list: the word's index in the segment, the mask of `rows`, and
/// the word.
#[inline]
pub(crate) fn each_word(
    out: &mut Bits,
    rows: Range<u32>,
    shift: u32,
    mut visit: impl FnMut(u32, u64, &mut u64),
) {
    let start = rows.start.max(out.start().saturating_sub(shift));
    let end = rows.end.min(out.end().saturating_sub(shift));
    if start >= end {
        return;
    }
    let offset = (shift / 64).wrapping_sub(out.first_word());
    let (first, last) = (start / 64, (end - 1) / 64);
    let words = out.words_mut();
    for index in first..=last {
        let mask = if index == first || index == last {
            mask(index, start, end)
        } else {
            u64::MAX
        };
        if let Some(word) = words.get_mut(index.wrapping_add(offset) as usize) {
            visit(index, mask, word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bits, Posting, Repr};

    #[test]
    fn every_form_answers_alike() {
        for step in [1_usize, 3, 40, 5_000] {
            let rows: Vec<u32> = (0..10_000).step_by(step).collect();
            let posting = Posting::from_rows(&rows, 10_000);
            assert_eq!(posting.len() as usize, rows.len());
            for range in [0..10_000, 64..128, 63..65, 100..100, 9_999..10_000] {
                let expected: Vec<u32> = rows
                    .iter()
                    .copied()
                    .filter(|row| range.contains(row))
                    .collect();
                let mut seen = Vec::new();
                posting.for_each_in(range.clone(), |row| seen.push(row));
                assert_eq!(seen, expected);
                let mut bits = Bits::new(128 + range.start..128 + range.end);
                posting.or_into(&mut bits, range.clone(), 128);
                let expected: Vec<u32> = expected.iter().map(|row| row + 128).collect();
                assert_eq!(bits.iter().collect::<Vec<_>>(), expected);
            }
            assert!(posting.contains(0) && !posting.contains(10_001));
        }
        assert!(matches!(Posting::from_rows(&[3], 100).0, Repr::One(3)));
        assert!(Posting::from_rows(&[], 10).is_empty());
    }
}
