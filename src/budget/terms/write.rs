//! Building an index: collects the words of one document after another, then writes them.

use super::format::{FORMAT, HEADER, MAGIC, PAGE, fingerprint, key, push_run, push_varint, sum};
use crate::budget::score::each_word;
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::io::{self, Write};

/// The words of the documents seen so far.
///
/// Memory: some fifty bytes and the key per distinct word, one to three bytes per distinct word of
/// each document, and eight bytes per distinct word of the document being read.
#[derive(Default)]
pub(in crate::budget) struct Collector {
    hasher: DefaultHashBuilder,
    /// Indexes into `words`, by key.
    table: HashTable<usize>,
    words: Vec<Word>,
    /// The keys of all words, one after another.
    keys: Vec<u8>,
    /// The lines of the directory for the documents.
    measures: Vec<u8>,
    documents: u64,
    /// The distinct words of the document being read, as indexes into `words`.
    touched: Vec<usize>,
}

/// A word and the documents that contain it.
struct Word {
    /// The end of its key in `keys`. The key starts at the end of the previous one.
    end: usize,
    /// Its occurrences in the document being read.
    count: u64,
    /// The number of the last document that contains it, plus 1.
    next: u64,
    /// Its postings in the written form.
    postings: SmallVec<[u8; 16]>,
}

impl Collector {
    /// Adds the next document, in the order of the manifest. Linear in its bytes.
    pub(in crate::budget) fn add(&mut self, content: &str) {
        let mut touched = std::mem::take(&mut self.touched);
        let total = each_word(content, |word| {
            let at = self.find_or_insert(&key(word));
            let word = &mut self.words[at];
            if word.count == 0 {
                touched.push(at);
            }
            word.count += 1;
        });
        push_varint(total, &mut self.measures);
        push_varint(content.len() as u64, &mut self.measures);
        let mut bytes = Vec::with_capacity(20);
        for at in touched.drain(..) {
            let word = &mut self.words[at];
            bytes.clear();
            push_varint(self.documents - word.next, &mut bytes);
            push_varint(word.count, &mut bytes);
            word.postings.extend_from_slice(&bytes);
            word.next = self.documents + 1;
            word.count = 0;
        }
        self.touched = touched;
        self.documents += 1;
    }

    /// The index of a word, which is added if it is new.
    fn find_or_insert(&mut self, key: &[u8]) -> usize {
        let Self {
            hasher,
            table,
            words,
            keys,
            ..
        } = self;
        let hash = hasher.hash_one(key);
        if let Some(&at) = table.find(hash, |&at| key_of(words, keys, at) == key) {
            return at;
        }
        let at = words.len();
        keys.extend_from_slice(key);
        words.push(Word {
            end: keys.len(),
            count: 0,
            next: 0,
            postings: SmallVec::new(),
        });
        table.insert_unique(hash, at, |&at| hasher.hash_one(key_of(words, keys, at)));
        at
    }

    /// Writes the index of the documents added, for the cache of this version.
    ///
    /// # Errors
    /// Those of the writer.
    pub(in crate::budget) fn write(
        self,
        cache_version: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Self {
            words,
            keys,
            measures: mut directory,
            documents,
            ..
        } = self;
        let mut order: Vec<usize> = (0..words.len()).collect();
        order.sort_unstable_by_key(|&at| key_of(&words, &keys, at));
        // The directory describes the pages and precedes them, so the pages are made twice: to be
        // measured, then to be written.
        let (mut pages, mut length) = (0_u64, 0_u64);
        each_page(&words, &keys, &order, |first, page| {
            push_run(first, &mut directory);
            push_varint(page.len() as u64, &mut directory);
            directory.extend_from_slice(&sum(page));
            pages += 1;
            length += page.len() as u64;
            Ok(())
        })?;
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&FORMAT.to_le_bytes());
        header.extend_from_slice(&fingerprint(cache_version));
        for number in [documents, pages, directory.len() as u64, length] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&sum(&directory));
        let own = sum(&header);
        header.extend_from_slice(&own);
        out.write_all(&header)?;
        out.write_all(&directory)?;
        each_page(&words, &keys, &order, |_, page| out.write_all(page))
    }
}

/// The key of `words[at]`.
fn key_of<'a>(words: &[Word], keys: &'a [u8], at: usize) -> &'a [u8] {
    let start = at.checked_sub(1).map_or(0, |before| words[before].end);
    &keys[start..words[at].end]
}

/// Calls `visit` with the first key and the bytes of each page.
fn each_page(
    words: &[Word],
    keys: &[u8],
    order: &[usize],
    mut visit: impl FnMut(&[u8], &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut page = Vec::with_capacity(2 * PAGE);
    let mut first: &[u8] = &[];
    for (nth, &at) in order.iter().enumerate() {
        let key = key_of(words, keys, at);
        if page.is_empty() {
            first = key;
        }
        push_run(key, &mut page);
        push_run(&words[at].postings, &mut page);
        if page.len() >= PAGE || nth + 1 == order.len() {
            visit(first, &page)?;
            page.clear();
        }
    }
    Ok(())
}
