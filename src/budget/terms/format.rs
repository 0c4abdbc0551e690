//! The numbers, runs and checksums that the index of terms consists of.

use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// The first bytes of an index.
pub(super) const MAGIC: &[u8; 8] = b"pactterm";

/// The version of the format.
pub(super) const FORMAT: u32 = 1;

/// The length of a header.
pub(super) const HEADER: usize = 92;

/// The offset of a header's own checksum.
pub(super) const HEADER_SUM: usize = HEADER - SUM;

/// The length of a checksum.
pub(super) const SUM: usize = 8;

/// The longest key that is a word; longer words are hashed.
pub(super) const LONGEST: usize = 64;

/// The length at which a page ends.
pub(super) const PAGE: usize = 4096;

/// The longest varint.
pub(super) const VARINT: u64 = 10;

/// The key of a word.
pub(super) fn key(word: &str) -> Cow<'_, [u8]> {
    if word.len() <= LONGEST {
        return Cow::Borrowed(word.as_bytes());
    }
    let mut key = vec![0xFF];
    key.extend_from_slice(&Sha256::digest(word));
    Cow::Owned(key)
}

/// The checksum of `bytes`.
pub(super) fn sum(bytes: &[u8]) -> [u8; SUM] {
    let mut sum = [0; SUM];
    sum.copy_from_slice(&Sha256::digest(bytes)[..SUM]);
    sum
}

/// The identity of the documents in a header: a hash of their cache's version.
pub(super) fn fingerprint(cache_version: &str) -> [u8; 32] {
    Sha256::digest(cache_version).into()
}

/// Appends a varint.
pub(super) fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a varint off the front. `None` if it is cut short or exceeds 64 bits.
pub(super) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
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

/// Takes a run of bytes off the front: its length, then the bytes.
pub(super) fn take_run<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(bytes)?).ok()?;
    let (run, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(run)
}

/// Appends a run of bytes: its length, then the bytes.
pub(super) fn push_run(run: &[u8], out: &mut Vec<u8>) {
    push_varint(run.len() as u64, out);
    out.extend_from_slice(run);
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
    fn long_words_have_distinct_keys() {
        let (long, longer) = ("x".repeat(65), "x".repeat(66));
        assert_eq!(&*key(&long[1..]), &long.as_bytes()[1..]);
        assert_eq!(key(&long).len(), 33);
        assert_ne!(key(&long), key(&longer));
        assert!(std::str::from_utf8(&key(&long)).is_err());
    }
}
