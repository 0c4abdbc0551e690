//! A list of snapshots that grows at its end and shares what it had.
//!
//! A live session publishes a new history at each commit, so the list must not be copied for it. It
//! is a tree of chunks: adding a snapshot, or replacing the newest ones, makes the chunks on the
//! path to the end again and shares all others. This file knows no times and no addresses.

use std::ops::{Index, Range};
use std::sync::Arc;

use super::archive::{Archive, LoadFailure};
use crate::index::Snapshot;

/// Snapshots or chunks in a chunk, as a power of two. Small, as a chunk is copied at each commit.
const BITS: u32 = 4;
const CHUNK: usize = 1 << BITS;

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
#[derive(Clone, Debug, Default)]
pub struct Snapshots {
    /// The last one, which most selects read. `None` if it is archived.
    newest: Option<Arc<Snapshot>>,
    /// All others that are not archived. Each chunk but the last of a level is full.
    older: Option<Chunk>,
    /// Levels of chunks above the lowest.
    height: u32,
    /// Number of all.
    len: usize,
    /// The oldest ones, which come in when they are asked for.
    archived: Option<Arc<Archived>>,
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

/// Neighbouring snapshots.
#[derive(Clone, Debug)]
enum Chunk {
    /// Of the lowest level.
    Low(Arc<[Arc<Snapshot>]>),
    /// Of a level above it.
    High(Arc<[Chunk]>),
}

impl Snapshots {
    /// The list of these snapshots. Linear.
    #[doc(hidden)]
    pub fn new(mut all: Vec<Arc<Snapshot>>) -> Self {
        let newest = all.pop();
        Self::default().with_end(0, all, newest)
    }

    /// The list of an archive's snapshots. Loads none of them.
    pub(super) fn archived(archive: &Arc<Archive>) -> Self {
        let len = archive.len();
        let archived = || Archived {
            archive: Arc::clone(archive),
            len,
            seen: None,
        };
        Self {
            len,
            archived: (len > 0).then(|| Arc::new(archived())),
            ..Self::default()
        }
    }

    /// Number of snapshots.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The newest one. Constant time. As [`Snapshots::get`], if it has to be loaded.
    #[inline]
    pub fn last(&self) -> Option<&Arc<Snapshot>> {
        match &self.newest {
            None => self.get_older(self.len.wrapping_sub(1)),
            newest => newest.as_ref(),
        }
    }

    /// The oldest one. As [`Snapshots::get`].
    pub fn first(&self) -> Option<&Arc<Snapshot>> {
        self.get(0)
    }

    /// The snapshot at an index. Constant time for the newest one, logarithmic for others.
    ///
    /// In a session of a store a snapshot that is not in memory is loaded now, after a neighbour with
    /// others; if that fails there is `None`, and [`History::failure`](crate::History::failure) says why.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Arc<Snapshot>> {
        if index.checked_add(1)? == self.len {
            return self.last();
        }
        self.get_older(index)
    }

    /// The snapshot at an index, if it is not the newest of those that are not archived.
    #[inline(never)]
    fn get_older(&self, mut index: usize) -> Option<&Arc<Snapshot>> {
        if index >= self.len {
            return None;
        }
        if let Some(archived) = &self.archived {
            if index < archived.len {
                return archived.get(index);
            }
            index -= archived.len;
        }
        let mut chunk = self.older.as_ref()?;
        let mut shift = self.height * BITS;
        loop {
            let at = (index >> shift) % CHUNK;
            match chunk {
                Chunk::Low(snapshots) => return snapshots.get(at),
                Chunk::High(chunks) => chunk = chunks.get(at)?,
            }
            shift = shift.saturating_sub(BITS);
        }
    }

    /// All snapshots, oldest first.
    pub fn iter(&self) -> SnapshotsIter<'_> {
        self.range(0..self.len)
    }

    /// The snapshots at these indexes, oldest first. Indexes past the end are left out.
    pub fn range(&self, indexes: Range<usize>) -> SnapshotsIter<'_> {
        let end = indexes.end.min(self.len);
        SnapshotsIter {
            snapshots: self,
            indexes: indexes.start.min(end)..end,
        }
    }

    /// The number of snapshots before the first for which `before` is false; it is true for all
    /// before and false for all after that one. Logarithmic.
    pub fn partition_point(&self, before: impl Fn(&Snapshot) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|snapshot| before(snapshot)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
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
        let (mut low, mut high) = (0, self.len);
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

    /// The index of the snapshot of a cycle. Constant time for the newest one, logarithmic for
    /// others.
    pub fn index_of(&self, cycle: i64) -> Option<usize> {
        if self
            .newest
            .as_ref()
            .is_some_and(|newest| newest.cycle() == cycle)
        {
            return Some(self.len - 1);
        }
        let at = self.cycles_before(|before| before < cycle);
        (self.cycle_at(at)? == cycle).then_some(at)
    }

    /// Number of archived snapshots.
    fn archived_len(&self) -> usize {
        self.archived.as_ref().map_or(0, |archived| archived.len)
    }

    /// The indexes of the snapshots that are not archived.
    pub(super) fn live(&self) -> Range<usize> {
        self.archived_len()..self.len
    }

    /// Has these snapshots in memory.
    ///
    /// # Errors
    /// Those of the source of the archived ones.
    pub(super) fn fetch(&self, wanted: Range<usize>) -> Result<(), LoadFailure> {
        match &self.archived {
            Some(archived) => {
                let end = wanted.end.min(archived.len);
                archived.archive.fetch(wanted.start..end)
            }
            None => Ok(()),
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

    /// The list of the first `count` snapshots, which are shared with this one. Logarithmic; loads
    /// none.
    #[must_use]
    pub(super) fn first_n(&self, count: usize) -> Self {
        if count >= self.len {
            return self.clone();
        }
        let archived = match &self.archived {
            Some(archived) if count < archived.len => (count > 0).then(|| {
                Arc::new(Archived {
                    len: count,
                    ..Archived::clone(archived)
                })
            }),
            archived => archived.clone(),
        };
        let list = Self {
            archived,
            ..self.clone()
        };
        match count.checked_sub(self.archived_len() + 1) {
            Some(older) => list.with_end(older, [], self.get(count - 1).cloned()),
            None => Self {
                newest: None,
                older: None,
                height: 0,
                len: count,
                ..list
            },
        }
    }

    /// The list with `snapshot` at its end. Logarithmic, whatever is shared with this one.
    #[must_use]
    pub(super) fn pushed(&self, snapshot: Arc<Snapshot>) -> Self {
        let kept = self.live().len().saturating_sub(1);
        self.with_end(kept, self.newest.clone(), Some(snapshot))
    }

    /// The list with others in the place of its newest snapshots, which are not archived. Linear in
    /// those, and logarithmic in the rest.
    #[must_use]
    pub(super) fn with_newest(&self, mut others: Vec<Arc<Snapshot>>) -> Self {
        let kept = self.live().len().saturating_sub(others.len());
        match others.pop() {
            Some(newest) => self.with_end(kept, others, Some(newest)),
            None => self.clone(),
        }
    }

    /// The archived snapshots, the first `kept` of the older ones, then `end`, then `newest`; without
    /// `newest`, `kept` is 0 and `end` is empty.
    fn with_end(
        &self,
        kept: usize,
        end: impl IntoIterator<Item = Arc<Snapshot>, IntoIter: ExactSizeIterator>,
        newest: Option<Arc<Snapshot>>,
    ) -> Self {
        let mut end = end.into_iter();
        let older = kept + end.len();
        let (mut root, mut height) = (self.older.clone(), self.height);
        while older > CHUNK << (height * BITS) {
            root = root.map(|root| Chunk::High([root].into()));
            height += 1;
        }
        Self {
            older: (older > 0).then(|| fill(root.as_ref(), height, kept, &mut end)),
            height,
            len: self.archived_len() + older + usize::from(newest.is_some()),
            newest,
            archived: self.archived.clone(),
        }
    }
}

/// The chunk of the first `kept` snapshots of `old` and as many of `more` as it has room for.
fn fill(
    old: Option<&Chunk>,
    height: u32,
    kept: usize,
    more: &mut impl ExactSizeIterator<Item = Arc<Snapshot>>,
) -> Chunk {
    if height == 0 {
        let old: &[_] = match old {
            Some(Chunk::Low(snapshots)) => snapshots,
            _ => &[],
        };
        let old = &old[..kept.min(old.len())];
        let more = more.take(CHUNK - old.len());
        return Chunk::Low(old.iter().cloned().chain(more).collect());
    }
    let old: &[_] = match old {
        Some(Chunk::High(chunks)) => chunks,
        _ => &[],
    };
    let below = 1 << (height * BITS);
    let (full, mut rest) = (kept / below, kept % below);
    let mut chunks = Vec::with_capacity(CHUNK);
    chunks.extend(old.iter().take(full).cloned());
    while rest > 0 || (chunks.len() < CHUNK && more.len() > 0) {
        let old = old.get(chunks.len()).filter(|_| rest > 0);
        chunks.push(fill(old, height - 1, rest, more));
        rest = 0;
    }
    Chunk::High(chunks.into())
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
            None => panic!("snapshot {index} of {}", self.len),
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

    use super::{CHUNK, Snapshots};
    use crate::history::Session;
    use crate::index::Snapshot;

    /// Snapshots of the cycles 1 to `count`.
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
            list = list.pushed(Arc::clone(&all[count - 1]));
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
            let replaced = list.with_newest(new[start..].to_vec());
            assert_lists(&replaced, &mixed);
            assert_lists(&list, &old);
        }
    }
}
