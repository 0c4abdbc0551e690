//! Payload records of segments, in chunks that segments share.
//!
//! A merge takes large chunks as they are and copies small ones together, so what a merge copies is not there twice, however
//! large the segments are. A unit that changes takes the records that stay as they are from its version before. This file must
//! not know what a record says.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::interned::interned;
use crate::tree::{NodeRecord, RecordPlace};

/// A merge shares chunks of this many bytes and more.
pub(super) const SHARED: usize = 1 << 18;

/// A shared content of this many bytes and more is kept once for all sessions that have it.
const INTERNED: usize = 1 << 9;

/// Chunks keep all of the memory that they are parts of. More than this many bytes that no record has are too many, if they are
/// also more than the records.
const UNUSED: usize = 1 << 16;

/// The payload records of a segment. The parts of a record have places: byte ranges in all chunks, one after the other.
#[derive(Debug, Default)]
pub(super) struct NodeRecords {
    /// None is empty. Most segments have one.
    chunks: SmallVec<[Chunk; 1]>,
}

#[derive(Clone, Debug)]
struct Chunk {
    /// Bytes in the chunks before it.
    start: u32,
    from: u32,
    len: u32,
    memory: Arc<String>,
    /// Whether the memory is a content that other sessions may have, too.
    interned: bool,
}

impl Chunk {
    fn end(&self) -> u32 {
        self.start + self.len
    }

    fn bytes(&self) -> &str {
        self.get((self.start, self.end()))
    }

    /// Whether a merge takes it as it is.
    fn is_shared(&self) -> bool {
        self.len as usize >= SHARED || self.interned
    }

    /// The bytes of a place inside it.
    #[inline]
    fn get(&self, place: (u32, u32)) -> &str {
        self.memory.get(self.range(place)).unwrap_or_default()
    }

    /// As [`Chunk::get`], as bytes: whether the place begins and ends between characters is not checked.
    #[inline]
    fn get_bytes(&self, place: (u32, u32)) -> &[u8] {
        let memory = self.memory.as_bytes();
        memory.get(self.range(place)).unwrap_or_default()
    }

    #[inline]
    fn range(&self, (start, end): (u32, u32)) -> Range<usize> {
        let at = |place: u32| (place - self.start + self.from) as usize;
        at(start)..at(end)
    }
}

impl NodeRecords {
    #[inline]
    pub(super) fn record(&self, place: RecordPlace) -> NodeRecord<'_> {
        NodeRecord {
            content: self.get(place.content),
            fields: self.get(place.fields),
        }
    }

    /// The text at a place. Logarithmic in chunks; constant time for what was not merged.
    #[inline]
    pub(super) fn get(&self, place: (u32, u32)) -> &str {
        match &*self.chunks {
            [only] => only.get(place),
            chunks => find(chunks, place).map_or("", |chunk| chunk.get(place)),
        }
    }

    /// The bytes of the text at a place.
    #[inline]
    pub(super) fn bytes(&self, place: (u32, u32)) -> &[u8] {
        match &*self.chunks {
            [only] => only.get_bytes(place),
            chunks => find(chunks, place).map_or(&[], |chunk| chunk.get_bytes(place)),
        }
    }

    /// The bytes of the texts at several places: faster than one by one where neighbours are in one chunk.
    #[inline]
    pub(super) fn all_bytes(
        &self,
        places: impl Iterator<Item = (u32, u32)>,
    ) -> impl Iterator<Item = &[u8]> {
        let mut chunk = self.chunks.first();
        places.map(move |place| {
            if !chunk.is_some_and(|chunk| chunk.start <= place.0 && place.1 <= chunk.end()) {
                chunk = find(&self.chunks, place);
            }
            chunk.map_or(&[][..], |chunk| chunk.get_bytes(place))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| last.end() as usize)
    }

    /// Bytes that a merge copies.
    pub(super) fn copied_len(&self) -> usize {
        let copied = self.chunks.iter().filter(|chunk| !chunk.is_shared());
        copied.map(|chunk| chunk.len as usize).sum()
    }
}

/// The chunk that has a place; `None` if no byte is there.
#[inline(never)]
fn find(chunks: &[Chunk], place: (u32, u32)) -> Option<&Chunk> {
    if place.0 == place.1 {
        return None;
    }
    let after = chunks.partition_point(|chunk| chunk.start <= place.0);
    after.checked_sub(1).and_then(|at| chunks.get(at))
}

/// Collects the records of a segment that is built.
#[derive(Default)]
pub(super) struct Collected {
    chunks: SmallVec<[Chunk; 1]>,
    /// The bytes after all chunks.
    rest: String,
    /// Whether `chunks` has all records of the tree that is read.
    whole: bool,
}

impl Collected {
    /// All records of a tree, at the places they have there.
    pub(super) fn shared(bytes: &Arc<String>) -> Self {
        let mut all = Self {
            whole: true,
            ..Self::default()
        };
        if !bytes.is_empty() {
            all.share(bytes, 0..bytes.len() as u32, false);
        }
        all
    }

    /// Reserves memory for more bytes, unless nothing is copied.
    pub(super) fn reserve(&mut self, bytes: usize) {
        if !self.whole {
            self.rest.reserve(bytes);
        }
    }

    /// Adds the record of a tree that has it at this place of a text, and returns its place here.
    #[inline]
    pub(super) fn add_from(&mut self, tree: &str, place: RecordPlace, common: bool) -> RecordPlace {
        if self.whole {
            place
        } else {
            self.add(place.get(tree), common)
        }
    }

    /// Adds a record and returns its place. `common` says whether other sessions are likely to have its content.
    #[inline]
    fn add(&mut self, record: NodeRecord<'_>, common: bool) -> RecordPlace {
        let content = if common && record.content.len() >= INTERNED {
            let start = self.len();
            self.flush();
            let memory = interned(record.content);
            self.share(&memory, 0..memory.len() as u32, true);
            (start, self.len())
        } else {
            self.add_text(record.content)
        };
        RecordPlace {
            content,
            fields: self.add_text(record.fields),
        }
    }

    #[inline]
    fn add_text(&mut self, text: &str) -> (u32, u32) {
        let start = self.len();
        self.rest.push_str(text);
        (start, self.len())
    }

    /// Adds a copy of the record that is at a place of another segment, except for a content that sessions share.
    pub(super) fn add_copy(&mut self, records: &NodeRecords, place: RecordPlace) -> RecordPlace {
        let chunk = find(&records.chunks, place.content);
        let content = if chunk.is_some_and(|chunk| chunk.interned) {
            self.add_shared_text(records, place.content)
        } else {
            self.add_text(records.get(place.content))
        };
        RecordPlace {
            content,
            fields: self.add_text(records.get(place.fields)),
        }
    }

    /// Adds the record that is at a place of another segment, without copying it, and returns its place.
    pub(super) fn add_shared(&mut self, records: &NodeRecords, place: RecordPlace) -> RecordPlace {
        RecordPlace {
            content: self.add_shared_text(records, place.content),
            fields: self.add_shared_text(records, place.fields),
        }
    }

    fn add_shared_text(&mut self, records: &NodeRecords, place: (u32, u32)) -> (u32, u32) {
        let start = self.len();
        let Some(chunk) = find(&records.chunks, place) else {
            return (start, start);
        };
        let from = place.0 - chunk.start + chunk.from;
        let len = place.1 - place.0;
        match self.chunks.last_mut() {
            Some(last)
                if self.rest.is_empty()
                    && Arc::ptr_eq(&last.memory, &chunk.memory)
                    && last.from + last.len == from =>
            {
                last.len += len;
            }
            _ => {
                self.flush();
                self.share(&chunk.memory, from..from + len, chunk.interned);
            }
        }
        (start, start + len)
    }

    /// Adds all records of a segment. The places that they have there move by what is returned.
    pub(super) fn append(&mut self, records: &NodeRecords) -> u32 {
        let moved = self.len();
        for chunk in &records.chunks {
            if chunk.is_shared() {
                self.flush();
                let part = chunk.from..chunk.from + chunk.len;
                self.share(&chunk.memory, part, chunk.interned);
                continue;
            }
            // What is enough for a chunk is allocated once, as doubling would copy it again.
            if self.rest.capacity() == 0 {
                self.rest.reserve_exact(chunk.len as usize);
            }
            self.rest.push_str(chunk.bytes());
            if self.rest.len() >= SHARED {
                self.flush();
            }
        }
        moved
    }

    fn len(&self) -> u32 {
        self.chunks.last().map_or(0, Chunk::end) + self.rest.len() as u32
    }

    fn share(&mut self, memory: &Arc<String>, part: Range<u32>, interned: bool) {
        self.chunks.push(Chunk {
            start: self.len(),
            from: part.start,
            len: part.end - part.start,
            memory: Arc::clone(memory),
            interned,
        });
    }

    /// Makes a chunk of the bytes after all chunks, without reserved memory.
    fn flush(&mut self) {
        if self.rest.is_empty() {
            return;
        }
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.shrink_to_fit();
        let part = 0..bytes.len() as u32;
        self.share(&Arc::new(bytes), part, false);
    }

    /// Bytes that the chunks keep in memory. Linear in chunks, except for sorting them.
    fn kept(&self) -> usize {
        let memory = self.chunks.iter().map(|chunk| &chunk.memory);
        let mut memory: Vec<_> = memory.collect();
        memory.sort_unstable_by_key(|memory| Arc::as_ptr(memory));
        memory.dedup_by_key(|memory| Arc::as_ptr(memory));
        memory.iter().map(|memory| memory.len()).sum()
    }

    /// The records; nothing is left.
    pub(super) fn finish(&mut self) -> NodeRecords {
        self.flush();
        let used = self.len() as usize;
        if self.chunks.len() > 1 && self.kept() > 2 * used + UNUSED {
            // Every record keeps its place.
            let chunks = std::mem::take(&mut self.chunks);
            let bytes = chunks.iter().map(Chunk::bytes).collect::<Vec<_>>();
            self.rest = bytes.concat();
            self.flush();
        }
        NodeRecords {
            chunks: std::mem::take(&mut self.chunks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(lengths: &[usize]) -> (NodeRecords, Vec<(u32, u32)>) {
        let mut all = Collected::default();
        let letters = (b'a'..=b'z').cycle();
        let places = lengths
            .iter()
            .zip(letters)
            .map(|(&length, letter)| all.add_text(&String::from(char::from(letter)).repeat(length)))
            .collect();
        (all.finish(), places)
    }

    #[test]
    fn merged_records_keep_their_bytes() {
        let large = SHARED;
        let segments = [
            segment(&[]),
            segment(&[3, 0, 5]),
            segment(&[large - 8, 0]),
            segment(&[0]),
            segment(&[large / 2, large, 7, 0]),
            segment(&[1, large / 2, 2]),
            segment(&[large / 2]),
        ];
        let (mut merged, mut places, mut wanted) = (Collected::default(), Vec::new(), Vec::new());
        for (records, old) in &segments {
            let moved = merged.append(records);
            for place in old {
                wanted.push(records.get(*place));
                places.push((place.0 + moved, place.1 + moved));
            }
        }
        places.push(merged.add_text("more"));
        wanted.push("more");
        let merged = merged.finish();
        let found: Vec<&str> = places.iter().map(|place| merged.get(*place)).collect();
        assert!(found == wanted);
        let bytes: usize = wanted.iter().map(|record| record.len()).sum();
        assert_eq!(merged.len(), bytes);
        assert_eq!(merged.chunks.len(), 4);

        // The large ones are the same memory again, and all are after one more merge.
        let mut again = Collected::default();
        assert_eq!(again.append(&merged), 0);
        let again = again.finish();
        let shared = merged.chunks.iter().filter(|chunk| {
            let same = |other: &Chunk| Arc::ptr_eq(&chunk.memory, &other.memory);
            again.chunks.iter().any(same)
        });
        assert_eq!(shared.count(), 3);
    }

    #[test]
    fn records_that_stay_are_shared() {
        let (old, places) = segment(&[300, 0, 4_000, 20, 500]);
        let mut new = Collected::default();
        let mut made = Vec::new();
        // The third record is another one, and the last two change places.
        for at in [0, 1] {
            made.push(new.add_shared_text(&old, places[at]));
        }
        made.push(new.add_text("another"));
        for at in [4, 3, 2] {
            made.push(new.add_shared_text(&old, places[at]));
        }
        let new = new.finish();
        let wanted = [
            old.get(places[0]),
            "",
            "another",
            old.get(places[4]),
            old.get(places[3]),
            old.get(places[2]),
        ];
        let found: Vec<&str> = made.iter().map(|place| new.get(*place)).collect();
        assert!(found == wanted);
        let same = |chunk: &&Chunk| Arc::ptr_eq(&chunk.memory, &old.chunks[0].memory);
        assert_eq!(new.chunks.iter().filter(same).count(), 4);

        // What follows each other there does here.
        let mut again = Collected::default();
        let all: Vec<_> = places
            .iter()
            .map(|place| again.add_shared_text(&old, *place))
            .collect();
        assert_eq!(all, places);
        let again = again.finish();
        assert_eq!(again.chunks.len(), 1);

        // Parts of a merge are parts of the same memory.
        let mut merged = Collected::default();
        assert_eq!(merged.append(&new), 0);
        let merged = merged.finish();
        assert!(
            made.iter()
                .zip(wanted)
                .all(|(place, record)| merged.get(*place) == record)
        );
    }

    #[test]
    fn a_small_part_of_memory_does_not_keep_it() {
        let (old, places) = segment(&[UNUSED * 2, 10, 10]);
        for (with_large, chunks) in [(false, 1), (true, 3)] {
            let mut new = Collected::default();
            let mut made = vec![new.add_text("new"), new.add_shared_text(&old, places[2])];
            if with_large {
                made.push(new.add_shared_text(&old, places[0]));
            }
            let new = new.finish();
            assert_eq!(new.get(made[0]), "new");
            assert_eq!(new.get(made[1]), old.get(places[2]));
            assert_eq!(new.chunks.len(), chunks);
            let keeps = |chunk: &Chunk| Arc::ptr_eq(&chunk.memory, &old.chunks[0].memory);
            assert_eq!(new.chunks.iter().any(keeps), with_large);
        }
    }

    #[test]
    fn no_records_have_no_bytes() {
        let (records, places) = segment(&[0, 0]);
        assert_eq!(records.len(), 0);
        assert!(places.iter().all(|place| records.get(*place).is_empty()));
        assert!(
            Collected::shared(&Arc::default())
                .finish()
                .chunks
                .is_empty()
        );
    }
}
