//! The committed snapshots of a history: those of an archive, then those in memory. This file knows no times and no addresses.

use std::fmt;
use std::ops::{Index, Range};
use std::sync::Arc;

use super::archive::{Archive, CommitCall, LoadFailure};
use super::list::SharedList;
use crate::index::Snapshot;

/// The committed snapshots of a [`History`](crate::History), oldest first. Cheap to clone.
///
/// ```
/// let history = pactql::Session::open("fixtures/greenhouse.jsonl")?.history();
/// let committed = history.committed();
/// assert_eq!(committed.len(), 4);
/// assert_eq!(committed[0].cycle(), 11);
/// assert_eq!(committed.iter().next_back().map(|snapshot| snapshot.cycle()), Some(14));
/// # Ok::<(), pactql::error::LoadError>(())
/// ```
#[derive(Clone, Default)]
pub struct Snapshots {
    /// The oldest ones, which come in when they are asked for.
    archived: Option<Arc<Archived>>,
    live: SharedList<Arc<Snapshot>>,
}

/// How many there are, and the cycle of the newest one if it is in memory.
impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let newest = self.live().end.checked_sub(1);
        let newest = newest.and_then(|newest| self.range(newest..newest + 1).next());
        let mut out = f.debug_struct("Snapshots");
        out.field("len", &self.len());
        if let Some(newest) = newest {
            out.field("newest", &format_args!("@c{}", newest.cycle()));
        }
        out.finish()
    }
}

/// The snapshots of an archive that belong to the list.
#[derive(Clone, Debug)]
struct Archived {
    archive: Arc<Archive>,
    /// How many of the archive's; at least one.
    len: usize,
    /// What is seen of one of them instead of the whole.
    seen: Option<(usize, Arc<Snapshot>)>,
}

impl Archived {
    fn get(&self, index: usize) -> Option<&Arc<Snapshot>> {
        match &self.seen {
            Some((at, snapshot)) if *at == index => Some(snapshot),
            _ => self.archive.get(index),
        }
    }
}

impl Snapshots {
    /// The list of these snapshots. Linear.
    #[doc(hidden)]
    pub fn new(all: Vec<Arc<Snapshot>>) -> Self {
        Self::default().with_newest(0, all)
    }

    pub(super) fn archived(archive: &Arc<Archive>) -> Self {
        let len = archive.len();
        let archived = || Archived {
            archive: Arc::clone(archive),
            len,
            seen: None,
        };
        Self {
            archived: (len > 0).then(|| Arc::new(archived())),
            ..Self::default()
        }
    }

    /// Number of snapshots.
    #[inline]
    pub fn len(&self) -> usize {
        self.archived_len() + self.live.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest one. As [`Snapshots::get`].
    #[inline]
    pub fn last(&self) -> Option<&Arc<Snapshot>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The oldest one. As [`Snapshots::get`].
    pub fn first(&self) -> Option<&Arc<Snapshot>> {
        self.get(0)
    }

    /// The snapshot at an index. Constant time.
    ///
    /// In a session of a store a snapshot that is not in memory is loaded now, after a neighbour with
    /// others; if that fails there is `None`. [`History::fetch_range`](crate::History::fetch_range) says why.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Arc<Snapshot>> {
        match &self.archived {
            Some(archived) if index < archived.len => archived.get(index),
            _ => self.live.get(index - self.archived_len()),
        }
    }

    /// All snapshots, oldest first.
    pub fn iter(&self) -> SnapshotsIter<'_> {
        self.range(0..self.len())
    }

    /// The snapshots at these indexes, oldest first. Indexes past the end are left out.
    pub fn range(&self, indexes: Range<usize>) -> SnapshotsIter<'_> {
        let end = indexes.end.min(self.len());
        SnapshotsIter {
            snapshots: self,
            indexes: indexes.start.min(end)..end,
        }
    }

    /// The cycle of the snapshot at an index, which is not loaded for it. `None` if there is none, or
    /// as [`Snapshots::get`].
    pub(crate) fn cycle_at(&self, index: usize) -> Option<i64> {
        match &self.archived {
            Some(archived) if index < archived.len => archived.archive.cycle(index),
            _ => Some(self.get(index)?.cycle()),
        }
    }

    /// The number of snapshots before the first for which `before` is false of the cycle. Loads none.
    pub(super) fn cycles_before(&self, before: impl Fn(i64) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.cycle_at(middle).is_some_and(&before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The index of the snapshot of a cycle. Constant time for the newest one, logarithmic for others.
    pub fn index_of(&self, cycle: i64) -> Option<usize> {
        let last = self.len().checked_sub(1)?;
        if self.cycle_at(last) == Some(cycle) {
            return Some(last);
        }
        let at = self.cycles_before(|before| before < cycle);
        (self.cycle_at(at)? == cycle).then_some(at)
    }

    fn archived_len(&self) -> usize {
        self.archived.as_ref().map_or(0, |archived| archived.len)
    }

    pub(super) fn live(&self) -> Range<usize> {
        self.archived_len()..self.len()
    }

    pub(super) fn fetch(&self, wanted: Range<usize>) -> Result<(), LoadFailure> {
        match &self.archived {
            Some(archived) => {
                let end = wanted.end.min(archived.len);
                archived.archive.fetch(wanted.start..end)
            }
            None => Ok(()),
        }
    }

    /// As [`Archive::calls`], where all are archived.
    pub(super) fn calls(&self) -> Result<Option<Vec<CommitCall>>, LoadFailure> {
        match &self.archived {
            Some(archived)
                if archived.len == self.len() && archived.len == archived.archive.len() =>
            {
                archived.archive.calls()
            }
            _ => Ok(None),
        }
    }

    /// The list in which a part of the archived snapshot at an index is seen for the whole.
    pub(super) fn seeing(&self, index: usize, part: Arc<Snapshot>) -> Self {
        let archived = self.archived.as_ref().map(|archived| {
            Arc::new(Archived {
                seen: Some((index, part)),
                ..Archived::clone(archived)
            })
        });
        Self {
            archived,
            ..self.clone()
        }
    }

    /// The list of the first `count` snapshots, which are shared with this one. Logarithmic; loads none.
    #[must_use]
    pub(super) fn first_n(&self, count: usize) -> Self {
        let archived = match &self.archived {
            Some(archived) if count < archived.len => (count > 0).then(|| {
                Arc::new(Archived {
                    len: count,
                    ..Archived::clone(archived)
                })
            }),
            archived => archived.clone(),
        };
        let live = count.saturating_sub(self.archived_len());
        Self {
            archived,
            live: self.live.with_end(live.min(self.live.len()), []),
        }
    }

    /// The list with others in the place of its newest snapshots from an index on, which are not archived. Linear in those.
    #[must_use]
    pub(super) fn with_newest(
        &self,
        from: usize,
        others: impl IntoIterator<Item = Arc<Snapshot>>,
    ) -> Self {
        Self {
            archived: self.archived.clone(),
            live: self.live.with_end(from - self.archived_len(), others),
        }
    }
}

impl Index<usize> for Snapshots {
    type Output = Arc<Snapshot>;

    /// The snapshot at an index.
    ///
    /// # Panics
    /// There is none, or it was not fetched and could not be loaded.
    #[inline]
    #[expect(
        clippy::panic,
        reason = "as of a slice: the caller has checked the index"
    )]
    fn index(&self, index: usize) -> &Arc<Snapshot> {
        match self.get(index) {
            Some(snapshot) => snapshot,
            None => panic!("snapshot {index} of {}", self.len()),
        }
    }
}

impl<'a> IntoIterator for &'a Snapshots {
    type Item = &'a Arc<Snapshot>;
    type IntoIter = SnapshotsIter<'a>;

    fn into_iter(self) -> SnapshotsIter<'a> {
        self.iter()
    }
}

/// Some neighbouring snapshots, oldest first. See the example of [`Snapshots`].
#[derive(Clone, Debug)]
pub struct SnapshotsIter<'a> {
    snapshots: &'a Snapshots,
    indexes: Range<usize>,
}

impl<'a> Iterator for SnapshotsIter<'a> {
    type Item = &'a Arc<Snapshot>;

    fn next(&mut self) -> Option<Self::Item> {
        self.snapshots.get(self.indexes.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.indexes.size_hint()
    }

    fn nth(&mut self, count: usize) -> Option<Self::Item> {
        self.snapshots.get(self.indexes.nth(count)?)
    }
}

impl DoubleEndedIterator for SnapshotsIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.snapshots.get(self.indexes.next_back()?)
    }
}

impl ExactSizeIterator for SnapshotsIter<'_> {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Snapshots;
    use crate::history::Session;
    use crate::history::list::CHUNK;
    use crate::index::Snapshot;

    fn made(count: usize) -> Vec<Arc<Snapshot>> {
        let line = |cycle| format!("{{\"cycle\":{cycle},\"root\":{{}}}}\n");
        let text: String = (1..=count).map(line).collect();
        let session = Session::from_slice(text.as_bytes()).expect("the lines are documents");
        session.history().committed().iter().cloned().collect()
    }

    fn assert_lists(list: &Snapshots, wanted: &[Arc<Snapshot>]) {
        assert_eq!(list.len(), wanted.len());
        assert_eq!(list.is_empty(), wanted.is_empty());
        assert!(list.iter().zip(wanted).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert!(
            list.iter()
                .rev()
                .zip(wanted.iter().rev())
                .all(|(a, b)| Arc::ptr_eq(a, b))
        );
        assert_eq!(list.iter().count(), wanted.len());
        assert!(list.get(wanted.len()).is_none() && list.get(usize::MAX).is_none());
        for (at, snapshot) in wanted.iter().enumerate() {
            assert_eq!(list.index_of(snapshot.cycle()), Some(at));
        }
        assert_eq!((list.index_of(0), list.index_of(i64::MAX)), (None, None));
    }

    #[test]
    fn a_list_grows_as_a_vector_does() {
        let all = made(CHUNK * CHUNK + 2 * CHUNK + 3);
        let mut list = Snapshots::default();
        assert_lists(&list, &[]);
        for count in 1..=all.len() {
            let before = list.clone();
            list = list.with_newest(count - 1, [Arc::clone(&all[count - 1])]);
            if count % 7 == 1 || count % CHUNK < 3 {
                assert_lists(&list, &all[..count]);
                assert_lists(&before, &all[..count - 1]);
                assert_lists(&Snapshots::new(all[..count].to_vec()), &all[..count]);
            }
        }
        assert_lists(&list, &all);
    }

    #[test]
    fn the_end_is_replaced_and_the_rest_is_shared() {
        let (old, new) = (made(CHUNK * CHUNK + 5), made(CHUNK * CHUNK + 5));
        let list = Snapshots::new(old.clone());
        for start in [0, 1, 15, 16, 17, 255, 256, 257, 259, 260, 261] {
            let mixed = [&old[..start], &new[start..]].concat();
            let replaced = list.with_newest(start, new[start..].to_vec());
            assert_lists(&replaced, &mixed);
            assert_lists(&list, &old);
        }
    }
}
