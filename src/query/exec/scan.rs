//! Testing rows a word at a time where possible.

use super::access::TestAccess;
use super::cost::{compares_words, fills_words};
use super::stats::RunInput;
use super::trace::Counters;
use crate::index::{Bits, IntColumn, Ones, Posting, SnapshotPiece};

impl TestAccess<'_> {
    /// The rows `index * 64 + bit` of the bits of `word` that satisfy the test; none is an implicit core.
    pub(super) fn word(
        &self,
        piece: &SnapshotPiece,
        index: u32,
        word: u64,
        input: RunInput<'_>,
        counters: &mut Counters,
    ) -> u64 {
        let segment = piece.segment();
        let among = |column, ranges: &[_]| among(column, index * 64, segment.len(), ranges);
        // A word of a list costs about as much as testing a row.
        let of_lists = |lists: usize| word.count_ones() as usize > lists;
        match self {
            Self::Posting(posting) => word & posting.word(index),
            Self::Inner(rows) => word & rows.word(index + piece.shift() / 64),
            // Comparing 64 numbers costs as much as reading a few.
            Self::Column { column, set, given } if fills_words(word.count_ones() as usize, 1) => {
                let found = among(column, set.ranges.ranges());
                let has = given.map_or(u64::MAX, |bit| segment.present_word(index * 64, bit));
                word & (found & has | if set.null { !has } else { 0 })
            }
            Self::Ttl {
                set,
                counting: Some(counting),
                ..
            } if fills_words(word.count_ones() as usize, 1) => {
                let given = segment.with_ttl().word(index);
                let stored = segment.with_stored_ttl().word(index);
                let mut found = among(segment.ttls(), counting) & !stored;
                if stored != 0 {
                    found |= among(segment.ttls(), set.ranges.ranges()) & stored;
                }
                word & (found & given | if set.null { !given } else { 0 })
            }
            Self::Ttl { set, cycle, .. } => Ones(word)
                .filter(|bit| set.contains(segment.ttl(index * 64 + bit, *cycle)))
                .fold(0, |kept, bit| kept | 1 << bit),
            Self::Union(postings) if of_lists(postings.len()) => word & any_of(postings, index),
            Self::Except(postings) if of_lists(postings.len()) => word & !any_of(postings, index),
            Self::Kind { kinds, types } if of_lists(kinds.len() + types.len()) => {
                // The part of the nodeType counts only for rows without a stored kind.
                let (mut stored, mut found) = (0, 0);
                for (code, holds) in kinds.iter().enumerate() {
                    let rows = segment.kinds().posting(code as u32).word(index);
                    stored |= rows;
                    found |= if *holds { rows } else { 0 };
                }
                let chosen = types.iter().enumerate().filter(|(_, holds)| **holds);
                let derived = chosen.fold(0, |derived, (code, _)| {
                    derived | segment.types().posting(code as u32).word(index)
                });
                word & (found | derived & !stored)
            }
            _ => Ones(word)
                .filter(|bit| self.holds(piece, index * 64 + bit, input, counters))
                .fold(0, |kept, bit| kept | 1 << bit),
        }
    }

    /// The rows of a piece, and maybe others, that satisfy a test of several posting lists; a set over the window
    /// of `like`.
    pub(super) fn lists(&self, piece: &SnapshotPiece, like: &Bits) -> Option<Bits> {
        let mut out = like.cleared();
        match self {
            Self::Union(postings) | Self::Except(postings) => {
                for posting in postings {
                    posting.or_into(&mut out, piece.rows(), piece.shift());
                }
                if let Self::Except(_) = self {
                    out.words_mut().iter_mut().for_each(|word| *word = !*word);
                }
            }
            Self::Kind { kinds, types } => fill_kind(piece, kinds, types, &mut out),
            _ => return None,
        }
        Some(out)
    }
}

/// The rows `index * 64 + bit` of any of the lists.
fn any_of(postings: &[&Posting], index: u32) -> u64 {
    let words = postings.iter().map(|posting| posting.word(index));
    words.fold(0, |any, word| any | word)
}

pub(super) fn remove_cores(piece: &SnapshotPiece, out: &mut Bits) {
    let cores = piece.segment().cores();
    if !cores.is_empty() {
        cores.for_each_in(piece.rows(), |row| out.remove(row + piece.shift()));
    }
}

/// Adds the rows whose kind, or else part of the nodeType, has a dictionary code that is set in
/// `kinds` or `types`.
fn fill_kind(piece: &SnapshotPiece, kinds: &[bool], types: &[bool], out: &mut Bits) {
    let (segment, rows, shift) = (piece.segment(), piece.rows(), piece.shift());
    // The part of the nodeType counts only for rows without a stored kind, so rows with any stored
    // kind are collected to be taken out.
    let mut stored = out.cleared();
    let mut derived = out.cleared();
    for (code, holds) in kinds.iter().enumerate() {
        let posting = segment.kinds().posting(code as u32);
        posting.or_into(&mut stored, rows.clone(), shift);
        if *holds {
            posting.or_into(out, rows.clone(), shift);
        }
    }
    let chosen = types.iter().enumerate().filter(|(_, holds)| **holds);
    for (code, _) in chosen {
        let posting = segment.types().posting(code as u32);
        posting.or_into(&mut derived, rows.clone(), shift);
    }
    derived.and_not(&stored);
    out.or(&derived);
}

/// Which of the 64 rows from `start` have a number in `ranges`. Bits of rows from `rows` on are
/// arbitrary.
fn among(column: &IntColumn, start: u32, rows: u32, ranges: &[(i64, i64)]) -> u64 {
    // Comparing 64 numbers with one interval has no branch, so the compiler vectorises it. With
    // many intervals a binary search for each number is cheaper.
    if compares_words(ranges.len()) {
        return ranges.iter().fold(0, |found, &(low, high)| {
            found | column.word_in(start, low, high)
        });
    }
    (0..rows.saturating_sub(start).min(64)).fold(0, |found, at| {
        let number = column.get(start + at);
        let range = ranges.partition_point(|&(_, high)| high < number);
        let inside = ranges.get(range).is_some_and(|&(low, _)| low <= number);
        found | u64::from(inside) << at
    })
}
