//! Bitmaps over a window of rows, the sets that execution works on.
//!
//! Roaring bitmaps store posting lists; for results, which are dense or in small windows, plain words are faster to
//! fill, intersect and walk. A bitmap covers whole 64-row words, so words of posting lists are copied without shifting.

use std::cell::RefCell;
use std::ops::Range;

use smallvec::SmallVec;

/// Windows of up to this many words need no allocation. Bitmaps are moved from step to step, and
/// moving more words costs more than allocating.
const INLINE_WORDS: usize = 2;

thread_local! {
    /// The memory of bitmaps that are gone, for the next ones: a run needs a few of about the same size.
    static SPARE: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

/// A thread keeps the memory of this many bitmaps,
const SPARES: usize = 4;

/// none with room for more than this many words.
const SPARE_WORDS: usize = 2_048;

fn zeroed(count: usize) -> Vec<u64> {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
    match spare {
        Ok(Some(mut words)) => {
            words.clear();
            words.resize(count, 0);
            words
        }
        _ => vec![0; count],
    }
}

/// A set of rows of a window. The window starts and ends at multiples of 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    first_word: u32,
    words: SmallVec<[u64; INLINE_WORDS]>,
}

impl Bits {
    /// The empty set over the words that cover `rows`.
    pub fn new(rows: Range<u32>) -> Self {
        let first_word = rows.start / 64;
        let last = rows.end.div_ceil(64).max(first_word);
        let count = (last - first_word) as usize;
        // Growing word by word would cost several times as much.
        let words = match count {
            0..=INLINE_WORDS => SmallVec::from_buf_and_len([0; INLINE_WORDS], count),
            _ => SmallVec::from_vec(zeroed(count)),
        };
        Self { first_word, words }
    }

    /// The empty set over the same window.
    pub fn cleared(&self) -> Self {
        Self::new(self.start()..self.end())
    }

    /// The first row of the window, a multiple of 64.
    pub fn start(&self) -> u32 {
        self.first_word * 64
    }

    /// One past the last row of the window.
    pub fn end(&self) -> u32 {
        self.start() + self.words.len() as u32 * 64
    }

    /// [`Bits::start`] in words.
    pub fn first_word(&self) -> u32 {
        self.first_word
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Number of rows in the set. Linear in the window.
    pub fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Whether `row` is in the set; false outside the window.
    #[inline]
    pub fn contains(&self, row: u32) -> bool {
        let word = (row / 64).wrapping_sub(self.first_word) as usize;
        let word = self.words.get(word);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Changes the word of a row in the window; its bit is given.
    #[inline]
    fn change(&mut self, row: u32, change: impl FnOnce(&mut u64, u64)) {
        // A row below the window wraps to a large index, so one bounds check covers both ends.
        let word = (row / 64).wrapping_sub(self.first_word) as usize;
        if let Some(word) = self.words.get_mut(word) {
            change(word, 1 << (row % 64));
        }
    }

    /// The window's part of `rows`; `None` if it is empty.
    #[inline]
    fn within(&self, rows: &Range<u32>) -> Option<(u32, u32)> {
        let (start, end) = (rows.start.max(self.start()), rows.end.min(self.end()));
        (start < end).then_some((start, end))
    }

    /// Adds `row`; ignored outside the window.
    #[inline]
    pub fn insert(&mut self, row: u32) {
        self.change(row, |word, bit| *word |= bit);
    }

    /// The words that have rows: the first row of each, a multiple of 64, and one bit a row.
    #[inline]
    pub(crate) fn filled_words(&self) -> impl Iterator<Item = (u32, u64)> {
        let words = (self.first_word..).zip(&*self.words);
        let filled = words.filter(|(_, word)| **word != 0);
        filled.map(|(index, word)| (index * 64, *word))
    }

    /// Adds the rows `start + bit` for the bits of `rows`; all are in the window.
    #[inline]
    pub(crate) fn insert_word(&mut self, start: u32, rows: u64) {
        let (word, shift) = (
            (start / 64).wrapping_sub(self.first_word) as usize,
            start % 64,
        );
        if let Some(word) = self.words.get_mut(word) {
            *word |= rows << shift;
        }
        if shift > 0
            && let Some(word) = self.words.get_mut(word + 1)
        {
            *word |= rows >> (64 - shift);
        }
    }

    #[inline]
    pub fn remove(&mut self, row: u32) {
        self.change(row, |word, bit| *word &= !bit);
    }

    /// Adds `row` or, if it is in the set, removes it; ignored outside the window.
    #[inline]
    pub fn flip(&mut self, row: u32) {
        self.change(row, |word, bit| *word ^= bit);
    }

    /// Calls `visit` with every row of `rows` in the set, ascending.
    #[inline]
    pub fn for_each_in(&self, rows: Range<u32>, mut visit: impl FnMut(u32)) {
        let Some((start, end)) = self.within(&rows) else {
            return;
        };
        for index in start / 64..=(end - 1) / 64 {
            let word = self.words[(index - self.first_word) as usize];
            for bit in Ones(word & mask(index, start, end)) {
                visit(index * 64 + bit);
            }
        }
    }

    /// Adds the rows of `rows` that are in the window.
    #[inline]
    pub fn insert_range(&mut self, rows: Range<u32>) {
        let Some((start, end)) = self.within(&rows) else {
            return;
        };
        let first = (start / 64 - self.first_word) as usize;
        let last = ((end - 1) / 64 - self.first_word) as usize;
        // A word at each end is masked, those between are filled.
        let head = u64::MAX << (start % 64);
        let tail = u64::MAX >> (63 - (end - 1) % 64);
        if first == last {
            self.words[first] |= head & tail;
        } else {
            self.words[first] |= head;
            self.words[first + 1..last].fill(u64::MAX);
            self.words[last] |= tail;
        }
    }

    /// Removes all rows outside `rows`.
    pub fn retain_range(&mut self, rows: Range<u32>) {
        let Some((start, end)) = self.within(&rows) else {
            return self.words.fill(0);
        };
        let first = (start / 64 - self.first_word) as usize;
        let last = ((end - 1) / 64 - self.first_word) as usize;
        let words = self.words_mut();
        words[first] &= u64::MAX << (start % 64);
        words[last] &= u64::MAX >> (63 - (end - 1) % 64);
        // Mostly these are empty, and calling `fill` would be most of the work.
        for outside in [0..first, last + 1..words.len()] {
            if !outside.is_empty() {
                words[outside].fill(0);
            }
        }
    }

    /// Changes each word by that of a set over a window that covers this one's.
    #[inline]
    fn combine(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        // Windows begin at multiples of 64, so words of different windows line up.
        let skipped = self.first_word.wrapping_sub(other.first_word) as usize;
        let others = other.words.get(skipped..).unwrap_or_default();
        debug_assert!(self.words.len() <= others.len());
        for (word, other) in self.words.iter_mut().zip(others) {
            change(word, *other);
        }
    }

    /// Intersects with a set over a window that covers this one's.
    pub fn and(&mut self, other: &Self) {
        self.combine(other, |word, other| *word &= other);
    }

    /// Unites with a set over a window that covers this one's.
    pub fn or(&mut self, other: &Self) {
        self.combine(other, |word, other| *word |= other);
    }

    /// Removes the rows of a set over a window that covers this one's.
    pub fn and_not(&mut self, other: &Self) {
        self.combine(other, |word, other| *word &= !other);
    }

    /// The first row of the set at or after `row`.
    #[inline]
    pub fn next(&self, row: u32) -> Option<u32> {
        let row = row.max(self.start());
        let mut index = (row / 64 - self.first_word) as usize;
        let mut word = *self.words.get(index)? & (u64::MAX << (row % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some((self.first_word + index as u32) * 64 + word.trailing_zeros())
    }

    /// The last row of the set before `row`.
    pub fn previous(&self, row: u32) -> Option<u32> {
        // The mirror of `next`: the word of the last row below, without its bits from `row` on, then words
        // downwards.
        let last = row
            .min(self.end())
            .checked_sub(1)
            .filter(|&last| last >= self.start())?;
        let mut index = (last / 64 - self.first_word) as usize;
        let mut word = *self.words.get(index)? & (u64::MAX >> (63 - last % 64));
        while word == 0 {
            index = index.checked_sub(1)?;
            word = self.words[index];
        }
        Some((self.first_word + index as u32) * 64 + 63 - word.leading_zeros())
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(move |(index, &word)| {
                let base = (self.first_word + index as u32) * 64;
                Ones(word).map(move |bit| base + bit)
            })
    }
}

/// The bits of word `index` that lie in `start..end`.
#[inline]
pub(crate) fn mask(index: u32, start: u32, end: u32) -> u64 {
    let base = index * 64;
    let low = start.saturating_sub(base);
    let high = end.saturating_sub(base);
    // A shift by 64 is undefined, so words that lie outside are answered before.
    if low >= 64 || high == 0 {
        return 0;
    }
    (u64::MAX << low) & (u64::MAX >> (64 - high.min(64)))
}

/// The set bits of one word, ascending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ones(pub(crate) u64);

impl Iterator for Ones {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        // Clears the lowest bit that is set: one step for each row, none for the zeros between.
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

impl Drop for Bits {
    #[inline]
    fn drop(&mut self) {
        if self.words.spilled() && self.words.capacity() <= SPARE_WORDS {
            let words = std::mem::take(&mut self.words).into_vec();
            // A thread that ends has no spare memory any more.
            let _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARES {
                    spare.push(words);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Range;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::Bits;

    const ROWS: u32 = 320;

    fn range() -> impl Strategy<Value = Range<u32>> {
        (0..ROWS, 0..ROWS).prop_map(|(a, b)| a.min(b)..a.max(b))
    }

    fn bits(window: &Range<u32>, rows: &BTreeSet<u32>) -> Bits {
        let mut bits = Bits::new(window.clone());
        rows.iter().for_each(|&row| bits.insert(row));
        bits
    }

    proptest! {
        #[test]
        fn bitmaps_are_sets(
            window in range(),
            some in vec(0..ROWS, 0..40),
            others in vec(0..ROWS, 0..40),
            rows in range(),
            row in 0..ROWS,
        ) {
            let covered = Bits::new(window.clone());
            let (start, end) = (covered.start(), covered.end());
            prop_assert!(start % 64 == 0 && end % 64 == 0 && start <= window.start && window.end <= end);
            let inside = |rows: Vec<u32>| rows.into_iter().filter(|row| (start..end).contains(row));
            let model: BTreeSet<u32> = inside(some).collect();
            let other: BTreeSet<u32> = inside(others).collect();
            let (set, operand) = (bits(&window, &model), bits(&window, &other));
            let list = |bits: &Bits| bits.iter().collect::<Vec<_>>();

            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert_eq!((set.count(), set.is_empty()), (model.len(), model.is_empty()));
            prop_assert_eq!(set.contains(row), model.contains(&row));
            prop_assert_eq!(set.next(row), model.range(row..).next().copied());
            prop_assert_eq!(set.previous(row), model.range(..row).next_back().copied());
            let mut seen = Vec::new();
            set.for_each_in(rows.clone(), |row| seen.push(row));
            prop_assert!(seen.into_iter().eq(model.range(rows.clone()).copied()));

            let changed = |change: &dyn Fn(&mut Bits)| {
                let mut changed = set.clone();
                change(&mut changed);
                list(&changed)
            };
            let expect = |keep: &dyn Fn(u32) -> bool| (start..end).filter(|&row| keep(row)).collect::<Vec<_>>();
            let (has, also) = (|row| model.contains(&row), |row| other.contains(&row));
            prop_assert_eq!(changed(&|bits| bits.and(&operand)), expect(&|row| has(row) && also(row)));
            prop_assert_eq!(changed(&|bits| bits.or(&operand)), expect(&|row| has(row) || also(row)));
            prop_assert_eq!(changed(&|bits| bits.and_not(&operand)), expect(&|row| has(row) && !also(row)));
            prop_assert_eq!(changed(&|bits| bits.insert_range(rows.clone())), expect(&|row| has(row) || rows.contains(&row)));
            prop_assert_eq!(changed(&|bits| bits.retain_range(rows.clone())), expect(&|row| has(row) && rows.contains(&row)));
            prop_assert_eq!(changed(&|bits| bits.flip(row)), expect(&|at| has(at) != (at == row)));
            prop_assert_eq!(changed(&|bits| bits.remove(row)), expect(&|at| has(at) && at != row));

            let all = bits(&(0..ROWS), &other);
            prop_assert_eq!(changed(&|bits| bits.and(&all)), expect(&|row| has(row) && also(row)));
        }
    }
}
