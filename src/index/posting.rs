//! Posting lists: the rows of a segment that have one value.
//!
//! Long lists are plain words, which are then as small as roaring bitmaps and much faster to walk; so are those of
//! segments of a few thousand rows, which nearly all sessions consist of. In a segment of at most 64 rows a list is
//! one word, without allocation: sessions that commit often have many such segments.

use std::ops::Range;

use roaring::RoaringBitmap;
use smallvec::{SmallVec, smallvec};

use super::bits::{Bits, Ones, mask};

/// A list of at least one row in this many is stored as words,
const DENSE_FROM: u32 = 24;

/// in a segment of at most [`MIDDLE_ROWS`] one row in this many, and in one of at most [`SMALL_ROWS`] any list. Words
/// take at most 128 bytes there and 512 here, a roaring bitmap a hundred; a pass over them takes as long as a few rows
/// of a roaring bitmap.
const DENSE_FROM_IN_MIDDLE: u32 = 512;
const SMALL_ROWS: u32 = 1_024;
const MIDDLE_ROWS: u32 = 4_096;

/// Whether a list of `count` of `rows` rows is stored as words.
pub(super) fn is_dense(count: u32, rows: u32) -> bool {
    let one_in = if rows <= MIDDLE_ROWS {
        DENSE_FROM_IN_MIDDLE
    } else {
        DENSE_FROM
    };
    rows <= SMALL_ROWS || count.saturating_mul(one_in) >= rows
}

/// The rows of a segment that have one value.
#[derive(Clone, Debug, Default)]
pub struct Posting(Repr);

#[derive(Clone, Debug, Default)]
enum Repr {
    #[default]
    Empty,
    /// A single row: many values occur once.
    One(u32),
    /// Several rows of a segment of at most 64 rows.
    Word(u64),
    /// Few rows. Boxed, so that an empty list is small.
    Sparse(Box<RoaringBitmap>),
    /// Many rows. Boxed as well.
    Dense(Box<DenseRows>),
}

/// One bit for each row of the segment, and the number of bits set.
#[derive(Clone, Debug)]
struct DenseRows {
    words: Box<[u64]>,
    count: u32,
}

impl Repr {
    fn dense(words: impl Into<Box<[u64]>>, count: u32) -> Self {
        let words = words.into();
        Self::Dense(Box::new(DenseRows { words, count }))
    }
}

/// These lists in one allocation of their size.
pub(super) fn exactly(lists: SmallVec<[Posting; 8]>) -> Box<[Posting]> {
    let mut exact = Vec::with_capacity(lists.len());
    exact.extend(lists);
    exact.into()
}

/// What a list without a bitmap has.
pub(crate) enum FewRows<'a> {
    None,
    One(u32),
    Few(&'a RoaringBitmap),
    /// A bitmap of all rows of the segment.
    Many,
}

impl Posting {
    /// The list of some ascending rows of a segment of `rows` rows.
    pub fn from_rows(sorted: &[u32], rows: u32) -> Self {
        match sorted {
            [] => return Self::default(),
            [row] => return Self(Repr::One(*row)),
            _ if rows <= 64 => {
                let word = sorted.iter().fold(0, |word, row| word | 1 << (row % 64));
                return Self(Repr::Word(word));
            }
            _ => {}
        }
        let count = sorted.len() as u32;
        if is_dense(count, rows) {
            let mut words = vec![0; rows.div_ceil(64) as usize];
            for &row in sorted {
                words[(row / 64) as usize] |= 1 << (row % 64);
            }
            return Self(Repr::dense(words, count));
        }
        let mut set = RoaringBitmap::new();
        set.extend(sorted.iter().copied());
        Self(Repr::Sparse(Box::new(set)))
    }

    /// The list of the rows whose bits are set, of a segment of `rows` rows.
    fn from_words(words: &[u64], rows: u32) -> Self {
        if let [word] = *words {
            return Self(match word.count_ones() {
                0 => Repr::Empty,
                1 => Repr::One(word.trailing_zeros()),
                _ => Repr::Word(word),
            });
        }
        let count = words.iter().map(|word| word.count_ones()).sum();
        if count > 1 && is_dense(count, rows) {
            return Self(Repr::dense(words, count));
        }
        let ones = |(word, start): (&u64, u32)| Ones(*word).map(move |bit| start + bit);
        let sorted: Vec<u32> = words.iter().zip((0..).step_by(64)).flat_map(ones).collect();
        Self::from_rows(&sorted, rows)
    }

    /// The lists of `values` values: `codes` has that of each of the `rows` rows, or a larger number where there is none.
    pub(super) fn of_codes(
        codes: impl Iterator<Item = u32> + Clone,
        rows: u32,
        values: usize,
    ) -> SmallVec<[Self; 8]> {
        // Most columns have few values, and commits make many segments of at most 64 rows, where a bitmap is one word. Then
        // one pass fills a bitmap for each value.
        if values <= 16 || rows <= 64 {
            let stride = rows.div_ceil(64).max(1) as usize;
            let mut words: SmallVec<[u64; 16]> = smallvec![0; values * stride];
            for (row, code) in codes.enumerate() {
                if (code as usize) < values {
                    words[code as usize * stride + row / 64] |= 1 << (row % 64);
                }
            }
            let lists = words.chunks_exact(stride);
            return lists.map(|words| Self::from_words(words, rows)).collect();
        }
        // A list for each value, and no bitmap: a column of keys may have a value for every row. Counted first, so that no
        // list grows. Rows come ascending, so appending keeps each list sorted, and only when a list is whole can its
        // form be chosen by its length.
        let mut counts = vec![0; values];
        for code in codes.clone() {
            if let Some(count) = counts.get_mut(code as usize) {
                *count += 1;
            }
        }
        let mut lists: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
        for (row, code) in (0..).zip(codes) {
            if let Some(list) = lists.get_mut(code as usize) {
                list.push(row);
            }
        }
        let lists = lists.iter();
        lists.map(|list| Self::from_rows(list, rows)).collect()
    }

    /// Number of rows. Constant time, or linear in the containers of a roaring bitmap.
    pub fn len(&self) -> u32 {
        match &self.0 {
            Repr::Empty => 0,
            Repr::One(_) => 1,
            Repr::Word(word) => word.count_ones(),
            Repr::Sparse(set) => set.len() as u32,
            Repr::Dense(dense) => dense.count,
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self.0, Repr::Empty)
    }

    /// The first row.
    pub(super) fn first(&self) -> Option<u32> {
        match &self.0 {
            Repr::Empty => None,
            Repr::One(row) => Some(*row),
            Repr::Word(word) => Some(word.trailing_zeros()),
            Repr::Sparse(set) => set.min(),
            Repr::Dense(dense) => {
                let at = dense.words.iter().position(|word| *word != 0)?;
                Some(at as u32 * 64 + dense.words[at].trailing_zeros())
            }
        }
    }

    #[inline]
    pub fn contains(&self, row: u32) -> bool {
        match &self.0 {
            Repr::Empty => false,
            Repr::One(one) => *one == row,
            Repr::Word(word) => row < 64 && word >> row & 1 == 1,
            Repr::Sparse(set) => set.contains(row),
            Repr::Dense(dense) => has_bit(&dense.words, row),
        }
    }

    /// The bitmap of a dense list, one bit for each row of the segment; `None` for other lists.
    #[inline]
    pub fn dense_words(&self) -> Option<&[u64]> {
        match &self.0 {
            Repr::Dense(dense) => Some(&dense.words),
            Repr::Word(word) => Some(std::slice::from_ref(word)),
            Repr::Empty | Repr::One(_) | Repr::Sparse(_) => None,
        }
    }

    /// The rows, if they are few.
    #[inline]
    pub(crate) fn as_rows(&self) -> FewRows<'_> {
        match &self.0 {
            Repr::Empty => FewRows::None,
            Repr::One(row) => FewRows::One(*row),
            Repr::Sparse(set) => FewRows::Few(set),
            Repr::Word(_) | Repr::Dense(_) => FewRows::Many,
        }
    }

    /// One bit for each row of the list in `index * 64..index * 64 + 64`.
    #[inline]
    pub fn word(&self, index: u32) -> u64 {
        self.word_from(index * 64)
    }

    /// One bit for each row of the list in `start..start + 64`.
    #[inline(always)]
    pub(crate) fn word_from(&self, start: u32) -> u64 {
        match &self.0 {
            Repr::Empty => 0,
            Repr::One(row) => 1_u64.checked_shl(row.wrapping_sub(start)).unwrap_or(0),
            Repr::Word(word) => word.checked_shr(start).unwrap_or(0),
            Repr::Sparse(_) | Repr::Dense(_) => self.large_word_from(start),
        }
    }

    /// [`Posting::word_from`] of a list that is not a word.
    fn large_word_from(&self, start: u32) -> u64 {
        match &self.0 {
            Repr::Empty | Repr::One(_) | Repr::Word(_) => 0,
            Repr::Sparse(set) => set
                .range(start..=start.saturating_add(63))
                .fold(0, |word, row| word | 1 << (row - start)),
            Repr::Dense(dense) => {
                let words = &dense.words;
                let (index, shift) = ((start / 64) as usize, start % 64);
                match words.get(index..).unwrap_or_default() {
                    [] => 0,
                    [word] => word >> shift,
                    // In two steps, because a shift by 64 is not defined.
                    [word, next, ..] => word >> shift | next << 1 << (63 - shift),
                }
            }
        }
    }

    /// Calls `visit` with every row of the list in `rows`, ascending.
    pub fn for_each_in(&self, rows: Range<u32>, mut visit: impl FnMut(u32)) {
        if rows.start >= rows.end {
            return;
        }
        match &self.0 {
            Repr::Empty => {}
            Repr::Word(word) => {
                if rows.start < 64 {
                    Ones(word & mask(0, rows.start, rows.end)).for_each(visit);
                }
            }
            Repr::One(one) => {
                if rows.contains(one) {
                    visit(*one);
                }
            }
            // The iterator over the whole list is faster than that over a range, and mostly all is wanted.
            Repr::Sparse(set) => {
                if rows.start == 0 && set.max().is_some_and(|max| max < rows.end) {
                    set.iter().for_each(visit);
                } else {
                    set.range(rows).for_each(visit);
                }
            }
            Repr::Dense(dense) => {
                for index in rows.start / 64..=(rows.end - 1) / 64 {
                    let word = dense.words.get(index as usize).copied().unwrap_or(0);
                    for bit in Ones(word & mask(index, rows.start, rows.end)) {
                        visit(index * 64 + bit);
                    }
                }
            }
        }
    }

    /// Adds the rows of the list in `rows` to `out`, each increased by `shift`, a multiple of 64.
    pub(crate) fn or_into(&self, out: &mut Bits, rows: Range<u32>, shift: u32) {
        match self.dense_words() {
            Some(words) => zip_words(out, words, rows, shift, |word, posting, mask| {
                *word |= posting & mask;
            }),
            None => self.each_into(out, rows, shift, Bits::insert),
        }
    }

    /// Removes the rows of the list in `rows` from `out`, each increased by `shift`, a multiple of 64.
    pub(crate) fn remove_from(&self, out: &mut Bits, rows: Range<u32>, shift: u32) {
        match self.dense_words() {
            Some(words) => zip_words(out, words, rows, shift, |word, posting, mask| {
                *word &= !(posting & mask);
            }),
            None => self.each_into(out, rows, shift, Bits::remove),
        }
    }

    #[inline]
    fn each_into(
        &self,
        out: &mut Bits,
        rows: Range<u32>,
        shift: u32,
        change: impl Fn(&mut Bits, u32),
    ) {
        if !self.is_empty()
            && let Some((start, end)) = within(out, rows, shift)
        {
            self.for_each_in(start..end, |row| change(out, row + shift));
        }
    }

    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Empty | Repr::One(_) | Repr::Word(_) => 0,
            Repr::Sparse(set) => {
                let stats = set.statistics();
                let data = stats.n_bytes_array_containers
                    + stats.n_bytes_bitset_containers
                    + stats.n_bytes_run_containers;
                size_of::<RoaringBitmap>() + data as usize + 40 * stats.n_containers as usize
            }
            Repr::Dense(dense) => size_of::<DenseRows>() + dense.words.len() * 8,
        }
    }
}

#[inline]
fn has_bit(words: &[u64], row: u32) -> bool {
    let word = words.get((row / 64) as usize);
    word.is_some_and(|word| word >> (row % 64) & 1 == 1)
}

/// The first and the last of the segment rows `rows`, the latter excluded, that `shift` takes into the window of `out`.
#[inline]
fn within(out: &Bits, rows: Range<u32>, shift: u32) -> Option<(u32, u32)> {
    let start = rows.start.max(out.start().saturating_sub(shift));
    let end = rows.end.min(out.end().saturating_sub(shift));
    (start < end).then_some((start, end))
}

/// Visits the words of `out` for the segment rows `rows`, which `shift` takes to rows of `out`: the word, the word of
/// `posting` for the same rows, and the mask of `rows`. Words after the end of `posting` are skipped.
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
    let Some((start, end)) = within(out, rows, shift) else {
        return;
    };
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

/// As [`zip_words`], without a posting list: the word's index in the segment, the mask of `rows`, and the word.
#[inline]
pub(crate) fn each_word(
    out: &mut Bits,
    rows: Range<u32>,
    shift: u32,
    mut visit: impl FnMut(u32, u64, &mut u64),
) {
    let Some((start, end)) = within(out, rows, shift) else {
        return;
    };
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
            assert_eq!(posting.first(), rows.first().copied());
            let later = Posting::from_rows(&rows[rows.len() / 2..], 10_000);
            assert_eq!(later.first(), rows.get(rows.len() / 2).copied());
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
        assert_eq!(size_of::<Posting>(), 16);
    }

    #[test]
    fn one_word_answers_as_many_do() {
        let rows = [0, 1, 5, 31, 32, 62, 63];
        let (small, large) = (Posting::from_rows(&rows, 64), Posting::from_rows(&rows, 65));
        assert!(matches!(small.0, Repr::Word(_)) && matches!(large.0, Repr::Dense(_)));
        let listed = |posting: &Posting, range: std::ops::Range<u32>| {
            let mut rows = Vec::new();
            posting.for_each_in(range, |row| rows.push(row));
            rows
        };
        for (start, end) in [
            (0, 64),
            (1, 63),
            (5, 6),
            (6, 31),
            (63, 64),
            (63, 200),
            (64, 65),
        ] {
            assert_eq!(listed(&small, start..end), listed(&large, start..end));
            let filled = |posting: &Posting| {
                let mut bits = Bits::new(64..192);
                posting.or_into(&mut bits, start..end, 64);
                bits.iter().collect::<Vec<_>>()
            };
            assert_eq!(filled(&small), filled(&large));
        }
        for row in 0..130 {
            assert_eq!(small.contains(row), large.contains(row));
        }
        assert_eq!((small.len(), small.word(0)), (large.len(), large.word(0)));
        assert_eq!(small.word(1), 0);
    }
}
