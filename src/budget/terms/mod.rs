//! The index of terms of a cache: which word stands how often in which document.
//!
//! It is an extra file beside the documents that makes answers over large caches cheap: the
//! measures of all documents come out of a few reads, and only documents that are chosen are
//! opened. Nothing needs it. A cache without it is scored by reading its documents, and one whose
//! index is of no use is treated as if it had none; the answers are the same.
//!
//! # The layout, format 1
//! Integers are little-endian. A *varint* is an unsigned LEB128 of at most ten bytes. A *checksum*
//! is the first eight bytes of a SHA-256.
//! ```text
//! header      92 bytes
//!    0   8    "pactterm"
//!    8   4    the format, 1
//!   12  32    SHA-256 of the text of cache_version in the manifest
//!   44   8    how many documents
//!   52   8    how many blocks
//!   60   8    bytes of the directory
//!   68   8    bytes of all blocks
//!   76   8    checksum of the directory
//!   84   8    checksum of the 84 bytes before
//! directory
//!   a document, in the order of the manifest:
//!             varint  its words
//!             varint  its bytes of UTF-8
//!   a block:  varint  bytes of its first key, and the key
//!             varint  its bytes
//!             8       its checksum
//! blocks, one after another; in each, for each key in the order of bytes:
//!             varint  bytes of the key, and the key
//!             varint  bytes of what follows for this key
//!             for each document that has it:
//!                     varint  how many documents lie between it and the one before
//!                     varint  how often it has it
//! ```
//! A key is a word in lower case; one of more than 64 bytes is the byte 0xFF, which no text
//! begins with, and its SHA-256. A block ends with the key that makes it 4096 bytes or more, so a
//! word costs one read. The same documents make the same bytes.
//!
//! This room must not know files by name, scores or budgets: [`read`] is given a file, [`mod@write`]
//! anything that can be written to.

pub(super) mod read;
pub(super) mod write;

use sha2::{Digest, Sha256};
use std::borrow::Cow;

pub(super) use read::Terms;
pub(super) use write::Collector;

/// What a file of terms begins with.
const MAGIC: &[u8; 8] = b"pactterm";

/// The format this module reads and writes.
const FORMAT: u32 = 1;

/// The bytes of a header.
const HEADER: usize = 92;

/// Where a header's own checksum stands.
const HEADER_SUM: usize = HEADER - SUM;

/// The bytes of a checksum.
const SUM: usize = 8;

/// The longest key that is a word as it stands.
const LONGEST: usize = 64;

/// How many bytes end a block.
const BLOCK: usize = 4096;

/// The most bytes a varint takes.
const VARINT: u64 = 10;

/// What a word is filed under.
fn key(word: &str) -> Cow<'_, [u8]> {
    if word.len() <= LONGEST {
        return Cow::Borrowed(word.as_bytes());
    }
    let mut key = vec![0xFF];
    key.extend_from_slice(&Sha256::digest(word));
    Cow::Owned(key)
}

/// The checksum of some bytes.
fn sum(bytes: &[u8]) -> [u8; SUM] {
    let mut sum = [0; SUM];
    sum.copy_from_slice(&Sha256::digest(bytes)[..SUM]);
    sum
}

/// What stands for the documents in a header: a hash of their cache's version.
fn fingerprint(cache_version: &str) -> [u8; 32] {
    Sha256::digest(cache_version).into()
}

/// Appends a varint.
fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a varint off the front; nothing where there is none, or it does not fit 64 bits.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7F);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes a run of bytes with its length before it off the front.
fn take_run<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(bytes)?).ok()?;
    let (run, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_read_as_written() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            push_varint(value, &mut bytes);
            assert!(bytes.len() as u64 <= VARINT);
            assert_eq!(take_varint(&mut &*bytes), Some(value));
            assert_eq!(take_varint(&mut &bytes[..bytes.len() - 1]), None);
        }
        let long: [&[u8]; 2] = [
            &[0xFF; 11],
            &[255, 255, 255, 255, 255, 255, 255, 255, 255, 2],
        ];
        for mut bytes in long {
            assert_eq!(take_varint(&mut bytes), None);
        }
    }

    #[test]
    fn long_words_have_keys_of_their_own() {
        let (long, longer) = ("x".repeat(65), "x".repeat(66));
        assert_eq!(&*key(&long[1..]), &long.as_bytes()[1..]);
        assert_eq!(key(&long).len(), 33);
        assert_ne!(key(&long), key(&longer));
        assert!(std::str::from_utf8(&key(&long)).is_err());
    }
}
