//! Collecting the words of documents one after another, and writing them down.

use super::{BLOCK, FORMAT, HEADER, MAGIC, fingerprint, key, push_varint, sum};
use crate::budget::score::each_word;
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::io::{self, Write};

/// The words of the documents seen so far.
///
/// Memory is that of the index: some fifty bytes and the key for each word, and one to three bytes
/// for each word of each document; beside it, while a document is read, eight bytes for each of
/// its words. No document is held.
#[derive(Default)]
pub(in crate::budget) struct Collector {
    hasher: DefaultHashBuilder,
    /// Words by their key, as places in `words`.
    table: HashTable<usize>,
    words: Vec<Word>,
    /// The keys of all words, one after another.
    keys: Vec<u8>,
    /// What the directory says of documents.
    measures: Vec<u8>,
    documents: u64,
    /// The words of the document being read.
    touched: Vec<usize>,
}

/// A word and the documents that have it.
struct Word {
    /// Where its key ends; it starts where that of the word before ends.
    end: usize,
    /// How often the document being read has it.
    count: u64,
    /// The document behind the last one that has it.
    next: u64,
    /// The documents that have it, as they are written.
    postings: SmallVec<[u8; 16]>,
}

impl Collector {
    /// Adds the next document, in the order of the manifest. Linear in its bytes.
    pub(in crate::budget) fn add(&mut self, content: &str) {
        let mut touched = std::mem::take(&mut self.touched);
        let total = each_word(content, |word| {
            let at = self.place(&key(word));
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

    /// The place of a word, which it gets now if it has none.
    fn place(&mut self, key: &[u8]) -> usize {
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
        // The directory tells of the blocks behind it, so they are made once to be measured and
        // once to be written.
        let (mut blocks, mut length) = (0_u64, 0_u64);
        each_block(&words, &keys, &order, |first, block| {
            push_run(first, &mut directory);
            push_varint(block.len() as u64, &mut directory);
            directory.extend_from_slice(&sum(block));
            blocks += 1;
            length += block.len() as u64;
            Ok(())
        })?;
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&FORMAT.to_le_bytes());
        header.extend_from_slice(&fingerprint(cache_version));
        for number in [documents, blocks, directory.len() as u64, length] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&sum(&directory));
        let own = sum(&header);
        header.extend_from_slice(&own);
        out.write_all(&header)?;
        out.write_all(&directory)?;
        each_block(&words, &keys, &order, |_, block| out.write_all(block))
    }
}

/// The key of the word at a place.
fn key_of<'a>(words: &[Word], keys: &'a [u8], at: usize) -> &'a [u8] {
    let start = at.checked_sub(1).map_or(0, |before| words[before].end);
    &keys[start..words[at].end]
}

/// Calls `visit` with the first key and the bytes of each block.
fn each_block(
    words: &[Word],
    keys: &[u8],
    order: &[usize],
    mut visit: impl FnMut(&[u8], &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = Vec::with_capacity(2 * BLOCK);
    let mut first: &[u8] = &[];
    for (nth, &at) in order.iter().enumerate() {
        let key = key_of(words, keys, at);
        if block.is_empty() {
            first = key;
        }
        push_run(key, &mut block);
        push_run(&words[at].postings, &mut block);
        if block.len() >= BLOCK || nth + 1 == order.len() {
            visit(first, &block)?;
            block.clear();
        }
    }
    Ok(())
}

/// Appends a run of bytes with its length before it.
fn push_run(run: &[u8], out: &mut Vec<u8>) {
    push_varint(run.len() as u64, out);
    out.extend_from_slice(run);
}
