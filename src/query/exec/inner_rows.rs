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

    /// The word of 64 rows, by its number in the snapshot.
    #[inline]
    pub(super) fn word(&self, index: u32) -> u64 {
        let at = index.wrapping_sub(self.rows.first_word()) as usize;
        self.rows.words().get(at).copied().unwrap_or(0)
    }

    pub(super) fn names_core(&self, row: u32) -> bool {
        self.naming
            .as_ref()
            .is_some_and(|naming| naming.contains(row))
    }
}
