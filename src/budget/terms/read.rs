//! Reading an index of terms. Nothing in the file is believed: lengths are held to the length of
//! the file and to the number of documents before anything is allocated for them, and every part
//! is held to its checksum before it is used.

use super::{
    BLOCK, FORMAT, HEADER, HEADER_SUM, LONGEST, MAGIC, SUM, VARINT, fingerprint, key, sum,
    take_run, take_varint,
};
use crate::budget::error::Unusable;
use crate::budget::score::{Measure, Query};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The most bytes the directory spends on a block.
const LINE: u64 = VARINT + LONGEST as u64 + VARINT + SUM as u64;

fn fault(message: impl Into<String>) -> Unusable {
    Unusable::Fault(message.into())
}

/// An index of terms that is open: its directory is in memory, its blocks are not.
#[derive(Debug)]
pub(in crate::budget) struct Terms {
    /// One reader at a time moves the file's cursor.
    file: Mutex<File>,
    /// Words and bytes of each document, in the order of the manifest.
    documents: Vec<(u64, u64)>,
    directory: Vec<u8>,
    blocks: Vec<Block>,
}

/// A block, by what the directory says of it.
#[derive(Debug)]
struct Block {
    /// Where in the directory its first key stands.
    first: Range<usize>,
    /// Where in the file it stands.
    at: u64,
    length: usize,
    sum: [u8; SUM],
}

impl Terms {
    /// Opens the index in a file, for a cache of this version and of so many documents. Reads the
    /// directory: a few bytes a document and a block.
    ///
    /// # Errors
    /// The file is no index, one of another format or of another cache, or damaged.
    pub(in crate::budget) fn open(
        mut file: File,
        cache_version: &str,
        documents: usize,
    ) -> Result<Self, Unusable> {
        let size = file.metadata()?.len();
        let mut header = [0; HEADER];
        file.read_exact(&mut header)?;
        if header[..8] != MAGIC[..] {
            return Err(fault("is no index of terms"));
        }
        let format = number::<4>(&header, 8);
        if format != u64::from(FORMAT) {
            return Err(fault(format!(
                "has the format {format}, only {FORMAT} is known"
            )));
        }
        if header[HEADER_SUM..] != sum(&header[..HEADER_SUM]) {
            return Err(fault("its header is damaged"));
        }
        let [count, blocks, length, rest] = [44, 52, 60, 68].map(|at| number::<8>(&header, at));
        if header[12..44] != fingerprint(cache_version) || count != documents as u64 {
            return Err(fault("was made for another cache_version"));
        }
        let known = (HEADER as u64).checked_add(length);
        if known.and_then(|known| known.checked_add(rest)) != Some(size) {
            return Err(fault("is cut short, or has something behind it"));
        }
        let damaged = || fault("its directory is damaged");
        // Every block but the last is full, and a directory has a line for each.
        let most = (documents as u64)
            .saturating_mul(2 * VARINT)
            .saturating_add(blocks.saturating_mul(LINE));
        if blocks > rest / BLOCK as u64 + 1 || length > most {
            return Err(damaged());
        }
        let mut directory = Vec::new();
        let length = usize::try_from(length).map_err(|_| damaged())?;
        directory
            .try_reserve_exact(length)
            .map_err(|_| fault("is too large to be read"))?;
        directory.resize(length, 0);
        file.read_exact(&mut directory)?;
        if header[76..HEADER_SUM] != sum(&directory) {
            return Err(damaged());
        }
        let mut terms = Self {
            file: Mutex::new(file),
            documents: Vec::with_capacity(documents),
            directory: Vec::new(),
            blocks: Vec::new(),
        };
        let end = terms.parse(&directory, documents, (HEADER + length) as u64);
        if end != Some(size) || terms.blocks.len() as u64 != blocks {
            return Err(damaged());
        }
        terms.directory = directory;
        Ok(terms)
    }

    /// Reads the directory of blocks that start at `at`; answers where the last one ends.
    fn parse(&mut self, directory: &[u8], documents: usize, mut at: u64) -> Option<u64> {
        let mut bytes = directory;
        for _ in 0..documents {
            let words = take_varint(&mut bytes)?;
            self.documents.push((words, take_varint(&mut bytes)?));
        }
        // A block is full before its last key, which is in each document at most.
        let longest = BLOCK as u64 + LONGEST as u64 + 2 * VARINT + documents as u64 * 2 * VARINT;
        let mut before: Option<&[u8]> = None;
        while !bytes.is_empty() {
            let first = take_run(&mut bytes)?;
            let end = directory.len() - bytes.len();
            let length = take_varint(&mut bytes)?;
            let (sum, rest) = bytes.split_first_chunk::<SUM>()?;
            bytes = rest;
            if first.len() > LONGEST || length > longest || before.is_some_and(|key| key >= first) {
                return None;
            }
            before = Some(first);
            self.blocks.push(Block {
                first: end - first.len()..end,
                at,
                length: usize::try_from(length).ok()?,
                sum: *sum,
            });
            at = at.checked_add(length)?;
        }
        Some(at)
    }

    /// The measures of all documents, in the order of the manifest: those that reading them would
    /// give. One read for each word of the query, none for a word that is in no document's range
    /// of keys, and memory for one block.
    ///
    /// # Errors
    /// A block is damaged; failures of the file system.
    pub(in crate::budget) fn measures(&self, query: &Query) -> Result<Vec<Measure>, Unusable> {
        let mut measures: Vec<Measure> = self
            .documents
            .iter()
            .map(|&(total_words, bytes)| Measure {
                term_matches: 0,
                total_words,
                bytes,
            })
            .collect();
        let mut keys: Vec<_> = query.distinct().iter().map(|term| key(term)).collect();
        keys.sort_unstable();
        let mut open: Option<(usize, Vec<u8>)> = None;
        for key in &keys {
            let behind = self
                .blocks
                .partition_point(|block| self.first(block) <= &**key);
            let Some(at) = behind.checked_sub(1) else {
                continue;
            };
            let bytes = match open.take() {
                Some((known, bytes)) if known == at => bytes,
                _ => self.block(&self.blocks[at])?,
            };
            let found = find(&bytes, key).and_then(|postings| add(postings, &mut measures));
            if found.is_none() {
                return Err(damaged(at));
            }
            open = Some((at, bytes));
        }
        let possible = |measure: &Measure| measure.term_matches <= measure.total_words;
        if measures.iter().all(possible) {
            Ok(measures)
        } else {
            Err(fault("counts more words than there are"))
        }
    }

    /// Reads every block and holds it to its checksum and the order of keys.
    ///
    /// # Errors
    /// The first block that is damaged; failures of the file system.
    pub(in crate::budget) fn check(&self) -> Result<(), Unusable> {
        for (at, block) in self.blocks.iter().enumerate() {
            let bytes = self.block(block)?;
            // A key behind every other: all of them are passed.
            if find(&bytes, &[0xFF; 1 + LONGEST]).is_none() {
                return Err(damaged(at));
            }
        }
        Ok(())
    }

    /// The first key of a block.
    fn first(&self, block: &Block) -> &[u8] {
        self.directory.get(block.first.clone()).unwrap_or_default()
    }

    /// Reads a block.
    fn block(&self, block: &Block) -> Result<Vec<u8>, Unusable> {
        let mut bytes = vec![0; block.length];
        // The cursor is set before every read, so a reader that panicked left nothing behind.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(block.at))?;
        file.read_exact(&mut bytes)?;
        drop(file);
        if sum(&bytes) == block.sum {
            Ok(bytes)
        } else {
            Err(fault(format!("the block at byte {} is damaged", block.at)))
        }
    }
}

fn damaged(block: usize) -> Unusable {
    fault(format!("block {block} is malformed"))
}

/// A little-endian number of `N` bytes, eight at most.
fn number<const N: usize>(header: &[u8; HEADER], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(&header[at..at + N]);
    u64::from_le_bytes(bytes)
}

/// The postings of a key in a block, none where it does not have the key; nothing where the block
/// is malformed up to there.
fn find<'a>(mut block: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    while !block.is_empty() {
        let key = take_run(&mut block)?;
        let postings = take_run(&mut block)?;
        if key == wanted {
            return Some(postings);
        }
        if key > wanted {
            break;
        }
    }
    Some(&[])
}

/// Adds the counts of postings to the measures of their documents.
fn add(mut postings: &[u8], measures: &mut [Measure]) -> Option<()> {
    let mut rest = measures;
    while !postings.is_empty() {
        let gap = usize::try_from(take_varint(&mut postings)?).ok()?;
        let count = take_varint(&mut postings)?;
        let (measure, behind) = rest.get_mut(gap..)?.split_first_mut()?;
        measure.term_matches = measure.term_matches.checked_add(count)?;
        rest = behind;
    }
    Some(())
}
