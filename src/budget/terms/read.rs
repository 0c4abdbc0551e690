//! Reading an index of terms. Nothing in the file is trusted: lengths are checked against the file
//! and the number of documents before anything is allocated, and every part is checked against its
//! checksum before use.

use super::format::{
    FORMAT, HEADER, HEADER_SUM, LONGEST, MAGIC, PAGE, SUM, VARINT, fingerprint, key, sum, take_run,
    take_varint,
};
use crate::budget::error::Unusable;
use crate::budget::score::{Measure, Query};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The longest entry of the directory for a page.
const LINE: u64 = VARINT + LONGEST as u64 + VARINT + SUM as u64;

fn fault(message: impl Into<String>) -> Unusable {
    Unusable::Fault(message.into())
}

/// An open index of terms. Its directory is in memory, its pages are not.
#[derive(Debug)]
pub(in crate::budget) struct Terms {
    /// Locked, because readers share the file's cursor.
    file: Mutex<File>,
    /// Words and bytes of each document, in the order of the manifest.
    documents: Vec<(u64, u64)>,
    directory: Vec<u8>,
    pages: Vec<Page>,
}

/// A page, as the directory describes it.
#[derive(Debug)]
struct Page {
    /// Its first key, as a range of `directory`.
    first: Range<usize>,
    /// Its offset in the file.
    at: u64,
    length: usize,
    sum: [u8; SUM],
}

impl Terms {
    /// Opens the index in a file, for a cache of this version with `documents` documents. Reads
    /// the directory: a few bytes per document and page.
    ///
    /// # Errors
    /// The file is not an index, has another format, belongs to another cache, or is damaged.
    pub(in crate::budget) fn open(
        mut file: File,
        cache_version: &str,
        documents: usize,
    ) -> Result<Self, Unusable> {
        let size = file.metadata()?.len();
        let mut header = [0; HEADER];
        file.read_exact(&mut header)?;
        if header[..8] != MAGIC[..] {
            return Err(fault("is not an index of terms"));
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
        let [count, pages, length, rest] = [44, 52, 60, 68].map(|at| number::<8>(&header, at));
        if header[12..44] != fingerprint(cache_version) || count != documents as u64 {
            return Err(fault("was made for another cache_version"));
        }
        let known = (HEADER as u64).checked_add(length);
        if known.and_then(|known| known.checked_add(rest)) != Some(size) {
            return Err(fault("ends too early, or something follows it"));
        }
        let damaged = || fault("its directory is damaged");
        // Every page but the last has at least PAGE bytes, and the directory an entry for each.
        let most = (documents as u64)
            .saturating_mul(2 * VARINT)
            .saturating_add(pages.saturating_mul(LINE));
        if pages > rest / PAGE as u64 + 1 || length > most {
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
            pages: Vec::new(),
        };
        let end = terms.parse(&directory, documents, (HEADER + length) as u64);
        if end != Some(size) || terms.pages.len() as u64 != pages {
            return Err(damaged());
        }
        terms.directory = directory;
        Ok(terms)
    }

    /// Parses the directory of pages that start at offset `at`. Returns the end of the last page.
    fn parse(&mut self, directory: &[u8], documents: usize, mut at: u64) -> Option<u64> {
        let mut bytes = directory;
        for _ in 0..documents {
            let words = take_varint(&mut bytes)?;
            self.documents.push((words, take_varint(&mut bytes)?));
        }
        // A page has fewer than PAGE bytes before its last key, which has one posting per document
        // at most.
        let longest = PAGE as u64 + LONGEST as u64 + 2 * VARINT + documents as u64 * 2 * VARINT;
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
            self.pages.push(Page {
                first: end - first.len()..end,
                at,
                length: usize::try_from(length).ok()?,
                sum: *sum,
            });
            at = at.checked_add(length)?;
        }
        Some(at)
    }

    /// The measures of all documents, in the order of the manifest, equal to those of
    /// [`Measure::of`]. At most one read per word of the query, and memory for one page.
    ///
    /// # Errors
    /// A page is damaged; failures of the file system.
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
            let after = self
                .pages
                .partition_point(|page| self.first(page) <= &**key);
            let Some(at) = after.checked_sub(1) else {
                continue;
            };
            let bytes = match open.take() {
                Some((known, bytes)) if known == at => bytes,
                _ => self.page(&self.pages[at])?,
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

    /// Reads every page and checks its checksum and the order of its keys.
    ///
    /// # Errors
    /// The first damaged page; failures of the file system.
    pub(in crate::budget) fn check(&self) -> Result<(), Unusable> {
        for (at, page) in self.pages.iter().enumerate() {
            let bytes = self.page(page)?;
            // No key is larger than this one, so the search reads all of them.
            if find(&bytes, &[0xFF; 1 + LONGEST]).is_none() {
                return Err(damaged(at));
            }
        }
        Ok(())
    }

    /// The first key of a page.
    fn first(&self, page: &Page) -> &[u8] {
        self.directory.get(page.first.clone()).unwrap_or_default()
    }

    /// Reads a page and checks its checksum.
    fn page(&self, page: &Page) -> Result<Vec<u8>, Unusable> {
        let mut bytes = vec![0; page.length];
        // Every read sets the cursor first, so the lock of a reader that panicked is usable.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(page.at))?;
        file.read_exact(&mut bytes)?;
        drop(file);
        if sum(&bytes) == page.sum {
            Ok(bytes)
        } else {
            Err(fault(format!("the block at byte {} is damaged", page.at)))
        }
    }
}

fn damaged(page: usize) -> Unusable {
    fault(format!("block {page} is malformed"))
}

/// The little-endian number of `N` bytes, at most eight, at offset `at`.
fn number<const N: usize>(header: &[u8; HEADER], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(&header[at..at + N]);
    u64::from_le_bytes(bytes)
}

/// The postings of a key in a page, empty if the page lacks the key. `None` if the page is
/// malformed before that point.
fn find<'a>(mut page: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    while !page.is_empty() {
        let key = take_run(&mut page)?;
        let postings = take_run(&mut page)?;
        if key == wanted {
            return Some(postings);
        }
        if key > wanted {
            break;
        }
    }
    Some(&[])
}

/// Adds the counts of postings to the measures of their documents. `None` if they are malformed.
fn add(mut postings: &[u8], measures: &mut [Measure]) -> Option<()> {
    let mut rest = measures;
    while !postings.is_empty() {
        let gap = usize::try_from(take_varint(&mut postings)?).ok()?;
        let count = take_varint(&mut postings)?;
        let (measure, after) = rest.get_mut(gap..)?.split_first_mut()?;
        measure.term_matches = measure.term_matches.checked_add(count)?;
        rest = after;
    }
    Some(())
}
