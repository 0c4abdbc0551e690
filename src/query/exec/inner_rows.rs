//! Where a condition with selectors inside is true, as a run looks it up. The module must not know how it is found.

use crate::index::Bits;

/// The rows on which a condition is true.
#[derive(Debug)]
pub(super) struct InnerRows {
    rows: Bits,
    /// The implicit cores on which a test of the class of containers is among those that hold: only with one can a
    /// step keep a core (LANGUAGE §1).
    naming: Option<Bits>,
}

impl InnerRows {
    pub(super) fn new(rows: Bits, naming: Option<Bits>) -> Self {
        Self { rows, naming }
    }

    #[inline]
    pub(super) fn contains(&self, row: u32) -> bool {
        self.rows.contains(row)
    }

    /// One bit for each row in `start..start + 64`.
    #[inline]
    pub(super) fn word_from(&self, start: u32) -> u64 {
        let first = (start / 64).wrapping_sub(self.rows.first_word());
        let word = |index: u32| self.rows.words().get(index as usize).copied().unwrap_or(0);
        match start % 64 {
            0 => word(first),
            shift => word(first) >> shift | word(first.wrapping_add(1)) << (64 - shift),
        }
    }

    pub(super) fn names_core(&self, row: u32) -> bool {
        self.naming
            .as_ref()
            .is_some_and(|naming| naming.contains(row))
    }
}
