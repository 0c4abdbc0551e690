//! Testing rows a word at a time where possible.

use super::access::{TestAccess, node_class, of_one_value};
use super::cost::{compares_words, fills_words};
use super::eval::content_holds;
use super::stats::RunInput;
use super::trace::Counters;
use crate::index::{Bits, IntColumn, Ones, Posting, Segment, SnapshotPiece};
use crate::query::ir::{Pattern, TypeTest};
use crate::query::plan::{BoundTest, ValueTest};
use crate::support::cancel::ensure;

impl TestAccess<'_> {
    /// The rows `start + bit` of the bits of `word`, none an implicit core, that satisfy the test.
    pub(super) fn word(
        &self,
        piece: &SnapshotPiece,
        start: u32,
        word: u64,
        input: RunInput<'_>,
        counters: &mut Counters,
    ) -> u64 {
        let segment = piece.segment();
        let among = |column, ranges: &[_]| among(column, start, segment.len(), ranges);
        // A word of a list costs about as much as testing a row.
        let of_lists = |lists: usize| word.count_ones() as usize > lists;
        match self {
            Self::Never => 0,
            Self::Always => word,
            Self::NodeOf(_, rows) => Ones(word & rows.word_from(start))
                .filter(|bit| self.holds(piece, start + bit, input, counters))
                .fold(0, |kept, bit| kept | 1 << bit),
            Self::Posting(posting) => {
                counters.postings += 1;
                word & posting.word_from(start)
            }
            Self::Inner(rows) => word & rows.word_from(start + piece.shift()),
            // Comparing 64 numbers costs as much as reading a few.
            Self::Column { column, set, given } if fills_words(word.count_ones() as usize, 1) => {
                let found = among(column, set.ranges.ranges());
                let has = given.map_or(u64::MAX, |bit| segment.present_word(start, bit));
                word & (found & has | if set.null { !has } else { 0 })
            }
            Self::Ttl {
                set,
                counting: Some(counting),
                ..
            } if fills_words(word.count_ones() as usize, 1) => {
                let given = segment.with_ttl().word_from(start);
                let stored = segment.with_stored_ttl().word_from(start);
                let mut found = among(segment.ttls(), counting) & !stored;
                if stored != 0 {
                    found |= among(segment.ttls(), set.ranges.ranges()) & stored;
                }
                word & (found & given | if set.null { !given } else { 0 })
            }
            Self::Ttl { set, cycle, .. } => {
                let given = segment.with_ttl().word_from(start);
                Ones(if set.null { word } else { word & given })
                    .filter(|bit| set.contains(segment.ttl(start + bit, *cycle)))
                    .fold(0, |kept, bit| kept | 1 << bit)
            }
            Self::Union(postings) if of_lists(postings.len()) => word & any_of(postings, start),
            Self::Except(postings) if of_lists(postings.len()) => word & !any_of(postings, start),
            Self::Kind { kinds, types } if of_lists(kinds.len() + types.len()) => {
                // The part of the nodeType counts only for rows without a stored kind.
                let (mut stored, mut found) = (0, 0);
                for (code, holds) in kinds.iter().enumerate() {
                    let rows = segment.kinds().posting(code as u32).word_from(start);
                    stored |= rows;
                    found |= if *holds { rows } else { 0 };
                }
                let chosen = types.iter().enumerate().filter(|(_, holds)| **holds);
                let derived = chosen.fold(0, |derived, (code, _)| {
                    derived | segment.types().posting(code as u32).word_from(start)
                });
                word & (found | derived & !stored)
            }
            Self::Observed(access, numbers) => {
                numbers.add(u64::from(word.count_ones()));
                access.word(piece, start, word, input, counters)
            }
            Self::Content(test) if let Some(pattern) = test.pattern() => {
                counters.probes += u64::from(word.count_ones());
                search(test, pattern, segment, start, word)
            }
            _ => Ones(word)
                .filter(|bit| self.holds(piece, start + bit, input, counters))
                .fold(0, |kept, bit| kept | 1 << bit),
        }
    }

    /// The rows of a piece, and maybe others, that satisfy a test of any of several posting lists; a set over the
    /// window of `like`.
    pub(super) fn lists(&self, piece: &SnapshotPiece, like: &Bits) -> Option<Bits> {
        let mut out = like.cleared();
        match self {
            Self::Union(postings) => {
                for posting in postings {
                    posting.or_into(&mut out, piece.rows(), piece.shift());
                }
            }
            Self::Kind { kinds, types } => fill_kind(piece, kinds, types, &mut out),
            _ => return None,
        }
        Some(out)
    }
}

/// Those of the rows `start + bit` for the bits of `word` whose content a pattern, that of a test, is found in.
fn search(test: &ValueTest, pattern: &Pattern, segment: &Segment, start: u32, word: u64) -> u64 {
    let contents = segment.contents(Ones(word).map(|bit| start + bit));
    Ones(word).zip(contents).fold(0, |kept, (bit, content)| {
        ensure();
        let holds = match content {
            // A text is stored after a quote.
            [b'"', text @ ..] => pattern.is_in(text),
            _ => content_holds(test, segment.content(start + bit)),
        };
        kept | u64::from(holds) << bit
    })
}

/// The rows `start + bit` of the bits of `word`, none an implicit core, that satisfy a test in a piece. Depth tests are left
/// to windows.
#[inline]
pub(super) fn test_word<'a>(
    test: &'a BoundTest,
    piece: &'a SnapshotPiece,
    start: u32,
    word: u64,
    input: RunInput<'a>,
    counters: &mut Counters,
) -> u64 {
    let segment = &**piece.segment();
    // One value of a header is one posting list, without an access.
    let listed = match test {
        BoundTest::Depth(_) => return word,
        BoundTest::Type(TypeTest::Class(class)) => Some(Some(segment.of_class(node_class(*class)))),
        BoundTest::Type(_) | BoundTest::Inner(_) => None,
        BoundTest::Attr(condition) => of_one_value(condition, segment),
    };
    match listed {
        Some(None) => 0,
        Some(Some(posting)) => {
            counters.postings += 1;
            word & posting.word_from(start)
        }
        None => {
            let access = TestAccess::new(test, segment, input);
            access.word(piece, start, word, input, counters)
        }
    }
}

/// The rows `start + bit` of any of the lists.
fn any_of(postings: &[&Posting], start: u32) -> u64 {
    let words = postings.iter().map(|posting| posting.word_from(start));
    words.fold(0, |any, word| any | word)
}

pub(super) fn remove_cores(piece: &SnapshotPiece, out: &mut Bits) {
    let cores = piece.segment().cores();
    cores.remove_from(out, piece.rows(), piece.shift());
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
