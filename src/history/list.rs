//! A list that grows at its end and shares what it had.
//!
//! A live session publishes a new history at each commit, so its lists must not be copied for it. Only the last chunk is, and
//! the list of chunks when that is full: amortized, an append copies `CHUNK / 2 + len / CHUNK²` elements.

use std::sync::Arc;

pub(super) const CHUNK: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct SharedList<T> {
    full: Arc<[Arc<[T]>]>,
    /// Fewer than [`CHUNK`].
    rest: Arc<[T]>,
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        let (full, rest) = (Arc::default(), Arc::default());
        Self { full, rest }
    }
}

impl<T> SharedList<T> {
    pub(super) fn len(&self) -> usize {
        self.full.len() * CHUNK + self.rest.len()
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        let chunk = self.full.get(index / CHUNK);
        match chunk {
            None if index / CHUNK > self.full.len() => None,
            chunk => chunk.unwrap_or(&self.rest).get(index % CHUNK),
        }
    }
}

impl<T: Clone> SharedList<T> {
    /// The first `kept` elements and then `end`. Linear in `end`.
    pub(super) fn with_end(&self, kept: usize, end: impl IntoIterator<Item = T>) -> Self {
        let whole = (kept / CHUNK).min(self.full.len());
        let begun = (whole * CHUNK..kept).filter_map(|at| self.get(at).cloned());
        let end = end.into_iter();
        let mut rest = Vec::with_capacity(kept - whole * CHUNK + end.size_hint().0);
        rest.extend(begun.chain(end));
        let (chunks, rest) = rest.as_chunks::<CHUNK>();
        let full = if chunks.is_empty() && whole == self.full.len() {
            Arc::clone(&self.full)
        } else {
            let kept = self.full.iter().take(whole).cloned();
            let chunks = chunks.iter().map(|chunk| Arc::from(&chunk[..]));
            kept.chain(chunks).collect()
        };
        let rest = rest.into();
        Self { full, rest }
    }
}
