//! Payload records of segments, in chunks that segments share.
//!
//! A merge takes large chunks as they are and copies small ones together, so what a merge copies is not there twice, however
//! large the segments are. This file must not know what a record says.

use std::sync::Arc;

/// A merge shares chunks of so many bytes and more.
const SHARED: usize = 1 << 18;

/// The payload records of a segment. A record has a place: its byte range in all chunks, one after the other.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// None is empty.
    chunks: Box<[Chunk]>,
}

#[derive(Clone, Debug)]
struct Chunk {
    /// Bytes in the chunks before it.
    start: u32,
    bytes: Arc<Vec<u8>>,
}

impl Chunk {
    fn end(&self) -> u32 {
        self.start + self.bytes.len() as u32
    }

    /// The bytes of a place inside it.
    #[inline]
    fn get(&self, (start, end): (u32, u32)) -> &[u8] {
        &self.bytes[(start - self.start) as usize..(end - self.start) as usize]
    }
}

impl Records {
    /// The record at a place. Logarithmic in chunks; constant time for what was not merged.
    #[inline]
    pub(super) fn get(&self, place: (u32, u32)) -> &[u8] {
        match &*self.chunks {
            [only] => only.get(place),
            chunks => find(chunks, place),
        }
    }

    /// Bytes of all records.
    pub(super) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| last.end() as usize)
    }
}

/// The record at a place, in one of several chunks.
#[inline(never)]
fn find(chunks: &[Chunk], place: (u32, u32)) -> &[u8] {
    if place.0 == place.1 {
        return &[];
    }
    let after = chunks.partition_point(|chunk| chunk.start <= place.0);
    let chunk = after.checked_sub(1).and_then(|at| chunks.get(at));
    chunk.map_or(&[], |chunk| chunk.get(place))
}

/// Collects the records of a segment that is built.
#[derive(Default)]
pub(super) struct Collected {
    chunks: Vec<Chunk>,
    /// The bytes after all chunks.
    rest: Vec<u8>,
    /// Whether `chunks` has all records of the tree that is read.
    whole: bool,
}

impl Collected {
    /// All records of a tree, at the places they have there.
    pub(super) fn of(bytes: &Arc<Vec<u8>>) -> Self {
        let mut all = Self {
            whole: true,
            ..Self::default()
        };
        if !bytes.is_empty() {
            all.share(bytes);
        }
        all
    }

    /// Reserves memory for more bytes, unless nothing is copied.
    pub(super) fn reserve(&mut self, bytes: usize) {
        if !self.whole {
            self.rest.reserve(bytes);
        }
    }

    /// Adds the record of a tree that has these bytes there, and returns its place.
    #[inline]
    pub(super) fn add_from(&mut self, tree: &[u8], (start, end): (u32, u32)) -> (u32, u32) {
        match self.whole {
            true => (start, end),
            false => self.add(&tree[start as usize..end as usize]),
        }
    }

    /// Adds a record and returns its place.
    #[inline]
    pub(super) fn add(&mut self, record: &[u8]) -> (u32, u32) {
        let start = self.len();
        self.rest.extend_from_slice(record);
        (start, self.len())
    }

    /// Adds all records of a segment. The places that they have there move by what is returned.
    pub(super) fn append(&mut self, records: &Records) -> u32 {
        let moved = self.len();
        for chunk in &records.chunks {
            if chunk.bytes.len() >= SHARED {
                self.flush();
                self.share(&chunk.bytes);
                continue;
            }
            // What is enough for a chunk is allocated once, as doubling would copy it again.
            if self.rest.capacity() == 0 {
                self.rest.reserve_exact(chunk.bytes.len());
            }
            self.rest.extend_from_slice(&chunk.bytes);
            if self.rest.len() >= SHARED {
                self.flush();
            }
        }
        moved
    }

    /// Bytes so far.
    fn len(&self) -> u32 {
        self.chunks.last().map_or(0, Chunk::end) + self.rest.len() as u32
    }

    fn share(&mut self, bytes: &Arc<Vec<u8>>) {
        self.chunks.push(Chunk {
            start: self.len(),
            bytes: Arc::clone(bytes),
        });
    }

    /// Makes a chunk of the bytes after all chunks, without reserved memory.
    fn flush(&mut self) {
        if self.rest.is_empty() {
            return;
        }
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.shrink_to_fit();
        self.share(&Arc::new(bytes));
    }

    /// The records; nothing is left.
    pub(super) fn finish(&mut self) -> Records {
        self.flush();
        Records {
            chunks: std::mem::take(&mut self.chunks).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of these lengths, each of one letter.
    fn segment(lengths: &[usize]) -> (Records, Vec<(u32, u32)>) {
        let mut all = Collected::default();
        let letters = (b'a'..=b'z').cycle();
        let places = lengths
            .iter()
            .zip(letters)
            .map(|(&length, letter)| all.add(&vec![letter; length]))
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
        places.push(merged.add(b"more"));
        wanted.push(b"more");
        let merged = merged.finish();
        let found: Vec<&[u8]> = places.iter().map(|place| merged.get(*place)).collect();
        assert!(found == wanted);
        let bytes: usize = wanted.iter().map(|record| record.len()).sum();
        assert_eq!(merged.len(), bytes);
        assert_eq!(merged.chunks.len(), 4);

        // The large ones are the same memory again, and all are after one more merge.
        let mut again = Collected::default();
        assert_eq!(again.append(&merged), 0);
        let again = again.finish();
        let shared = merged.chunks.iter().filter(|chunk| {
            let same = |other: &Chunk| Arc::ptr_eq(&chunk.bytes, &other.bytes);
            again.chunks.iter().any(same)
        });
        assert_eq!(shared.count(), 3);
    }

    #[test]
    fn no_records_have_no_bytes() {
        let (records, places) = segment(&[0, 0]);
        assert_eq!(records.len(), 0);
        assert!(places.iter().all(|place| records.get(*place).is_empty()));
        assert!(Collected::of(&Arc::default()).finish().chunks.is_empty());
    }
}
