//! The ids of a segment's rows: one text, cut by row.

/// Ids by row. Rows are added at the end and never change.
///
/// Handing out ids is most of the work of a selector with many matches, and checking that each
/// cut falls between characters is half of that: with the check, listing 76,000 ids takes 1.6
/// times as long. The cuts are therefore taken on trust, which this type earns by making them
/// itself.
#[derive(Debug)]
pub(crate) struct Ids {
    /// Where each row's id starts and, one further, ends.
    ///
    /// Invariant: ascending, each the length `text` had at some moment. As `text` only grows, and
    /// by whole `str`s, every one is at most its length and falls between characters.
    cuts: Vec<u32>,
    text: String,
}

impl Default for Ids {
    fn default() -> Self {
        Self {
            cuts: vec![0],
            text: String::new(),
        }
    }
}

impl Ids {
    /// Makes room for so many rows more.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.cuts.reserve(rows);
    }

    /// Adds a row. Beyond 4 GiB of text, which no reader lets through, a row gets no id.
    pub(crate) fn push(&mut self, id: &str) {
        let end = u32::try_from(self.text.len() + id.len()).ok();
        if end.is_some() {
            self.text.push_str(id);
        }
        let start = self.cuts.last().copied().unwrap_or(0);
        self.cuts.push(end.unwrap_or(start));
    }

    /// Gives back what was reserved in vain.
    pub(crate) fn shrink(&mut self) {
        self.cuts.shrink_to_fit();
        self.text.shrink_to_fit();
    }

    /// The id of a row.
    #[inline]
    pub(crate) fn get(&self, row: u32) -> &str {
        self.view().get(row)
    }

    /// What many ids are read through.
    #[inline]
    pub(crate) fn view(&self) -> IdView<'_> {
        IdView {
            cuts: &self.cuts,
            text: &self.text,
        }
    }

    /// The bytes of the text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }
}

/// A look at [`Ids`]: a copy of where they lie, which need not be read anew for each.
#[derive(Clone, Copy)]
pub(crate) struct IdView<'a> {
    /// As in [`Ids`].
    cuts: &'a [u32],
    text: &'a str,
}

impl<'a> IdView<'a> {
    /// The id of a row.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn get(self, row: u32) -> &'a str {
        let row = row as usize;
        // The later one first, which checks the bounds of both.
        let end = self.cuts[row + 1] as usize;
        let start = self.cuts[row] as usize;
        debug_assert!(self.text.get(start..end).is_some());
        // SAFETY: both fields are those of one `Ids`, whose borrow this type keeps. By the
        // invariant of its cuts, `start <= end <= text.len()`, and both fall between characters.
        unsafe { self.text.get_unchecked(start..end) }
    }
}

#[cfg(test)]
mod tests {
    use super::Ids;

    #[test]
    fn rows_keep_their_ids() {
        let wanted = ["a", "", "zwölf", "", "日本", "🦀🦀", "z"];
        let mut ids = Ids::default();
        wanted.iter().for_each(|id| ids.push(id));
        ids.shrink();
        for (row, id) in wanted.iter().enumerate() {
            assert_eq!(ids.get(row as u32), *id);
        }
    }
}
