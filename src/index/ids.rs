//! The ids of a segment's rows: one string and the positions at which it is cut.

use std::ops::Range;

/// Ids by row. Rows are only appended.
///
/// Listing ids is most of the work of a selector with many matches. Slicing with checks for character boundaries takes
/// 1.6 times as long for 76,000 ids, so slices are unchecked. This is sound as only this type makes the cuts.
#[derive(Debug)]
pub(crate) struct IdColumn {
    /// The start of each row's id; the next entry is its end.
    ///
    /// Invariant: ascending, each the length of `text` at some time. As `text` only grows by whole
    /// `str`s, each is at most its length and on a character boundary.
    cuts: Vec<u32>,
    text: String,
}

impl Default for IdColumn {
    fn default() -> Self {
        Self {
            cuts: vec![0],
            text: String::new(),
        }
    }
}

impl IdColumn {
    pub(crate) fn reserve(&mut self, rows: usize, bytes: usize) {
        self.cuts.reserve(rows);
        self.text.reserve(bytes);
    }

    /// Bytes of the ids of these rows.
    pub(crate) fn text_len(&self, rows: Range<u32>) -> usize {
        (self.cuts[rows.end as usize] - self.cuts[rows.start as usize]) as usize
    }

    /// Adds a row. After 4 GiB of text, which no reader accepts, ids are empty.
    pub(crate) fn push(&mut self, id: &str) {
        let end = u32::try_from(self.text.len() + id.len()).ok();
        if end.is_some() {
            self.text.push_str(id);
        }
        let start = self.cuts.last().copied().unwrap_or(0);
        self.cuts.push(end.unwrap_or(start));
    }

    pub(crate) fn append(&mut self, other: &Self, rows: Range<u32>) {
        let cuts = &other.cuts[rows.start as usize..=rows.end as usize];
        let from = other.cuts[rows.start as usize];
        let text = &other.text[from as usize..other.cuts[rows.end as usize] as usize];
        if u32::try_from(self.text.len() + text.len()).is_err() {
            return rows.for_each(|row| self.push(other.get(row)));
        }
        let start = self.text.len() as u32;
        self.text.push_str(text);
        self.cuts
            .extend(cuts[1..].iter().map(|cut| cut - from + start));
    }

    /// The ids in no more memory than they need; nothing is left here but, if there is room for at most `most` rows,
    /// memory.
    pub(crate) fn taken(&mut self, most: usize) -> Self {
        if self.cuts.capacity() > most || self.text.capacity() > 32 * most {
            let mut all = std::mem::take(self);
            all.cuts.shrink_to_fit();
            all.text.shrink_to_fit();
            return all;
        }
        let all = Self {
            cuts: self.cuts.clone(),
            text: self.text.clone(),
        };
        self.cuts.truncate(1);
        self.text.clear();
        all
    }

    #[inline]
    pub(crate) fn get(&self, row: u32) -> &str {
        self.view().get(row)
    }

    #[inline]
    pub(crate) fn view(&self) -> IdView<'_> {
        IdView {
            cuts: &self.cuts,
            text: &self.text,
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }
}

/// A borrowed [`IdColumn`]: a copy of the slices, which stays in registers.
#[derive(Clone, Copy)]
pub(crate) struct IdView<'a> {
    /// As in [`IdColumn`].
    cuts: &'a [u32],
    text: &'a str,
}

impl<'a> IdView<'a> {
    #[inline]
    pub(crate) fn get(self, row: u32) -> &'a str {
        let row = row as usize;
        // The second one first, as its bounds check covers both.
        let end = self.cuts[row + 1];
        self.between(self.cuts[row], end)
    }

    /// The ids of the rows `first + bit` for the bits of `word`, ascending.
    #[inline]
    pub(crate) fn list(self, first: u32, mut word: u64) -> impl Iterator<Item = &'a str> {
        let cuts = self.cuts.get(first as usize..).unwrap_or_default();
        // One bounds check for all 64 rows, unless the column ends before.
        let whole = cuts.first_chunk::<65>();
        // Over a range, as a list takes what is known to have this many items without asking for each whether there is room.
        (0..word.count_ones()).map(move |_| {
            let bit = word.trailing_zeros() % 64;
            word &= word.wrapping_sub(1);
            match whole {
                Some(cuts) => self.between(cuts[bit as usize], cuts[bit as usize + 1]),
                None => self.get(first + bit),
            }
        })
    }

    #[inline]
    #[allow(unsafe_code)]
    fn between(self, start: u32, end: u32) -> &'a str {
        let range = start as usize..end as usize;
        debug_assert!(self.text.get(range.clone()).is_some());
        // SAFETY: only the two methods above call this, with neighbouring cuts of the `IdColumn` whose
        // borrow this type keeps. By the invariant of its cuts, `start <= end <= text.len()`, and
        // both fall between characters.
        unsafe { self.text.get_unchecked(range) }
    }
}

#[cfg(test)]
mod tests {
    use super::IdColumn;

    #[test]
    fn rows_keep_their_ids() {
        let wanted = ["a", "", "zwölf", "", "日本", "🦀🦀", "z"];
        let mut ids = IdColumn::default();
        for most in [100, 0] {
            wanted.iter().for_each(|id| ids.push(id));
            let taken = ids.taken(most);
            for (row, id) in wanted.iter().enumerate() {
                assert_eq!(taken.get(row as u32), *id);
            }
            assert_eq!(ids.text_bytes(), 0);
        }
    }

    #[test]
    fn a_word_lists_its_rows() {
        let wanted: Vec<String> = (0..150).map(|row| format!("é{}", row * row)).collect();
        let mut ids = IdColumn::default();
        wanted.iter().for_each(|id| ids.push(id));
        let end = wanted.len() as u32;
        for first in [0, 1, 64, 85, 86, 87, 128, 149] {
            for word in [0, 1, 1 << 63, u64::MAX, 0xF0F0_1234_8000_0001] {
                let word = word & u64::MAX >> 64_u32.saturating_sub(end - first);
                let listed: Vec<&str> = ids.view().list(first, word).collect();
                let rows = (0..64).filter(|bit| word >> bit & 1 == 1);
                let expected: Vec<&str> = rows.map(|bit| &*wanted[first as usize + bit]).collect();
                assert_eq!(listed, expected, "{first} {word:x}");
            }
        }
    }
}
