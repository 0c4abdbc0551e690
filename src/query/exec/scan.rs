//! Filling windows with the rows that satisfy a test, a word at a time where possible.

use smallvec::SmallVec;

use super::access::TestAccess;
use super::cost::{compares_rows, compares_words};
use super::stats::RunInput;
use super::trace::Counters;
use crate::index::{Bits, IntColumn, Ones, SnapshotPiece, each_word};
use crate::query::plan::NumberSet;
use crate::support::cancel::ensure;

impl TestAccess<'_> {
    pub(super) fn fill(
        &self,
        piece: &SnapshotPiece,
        out: &mut Bits,
        input: RunInput<'_>,
        counters: &mut Counters,
    ) {
        let (rows, shift) = (piece.rows(), piece.shift());
        let segment = &**piece.segment();
        match self {
            Self::Never => {}
            Self::Always => {
                out.insert_range(piece.start()..piece.end());
                remove_cores(piece, out);
            }
            Self::Row(row) => {
                if rows.contains(row) {
                    out.insert(row + shift);
                }
            }
            Self::Posting(posting) => {
                counters.postings += 1;
                posting.or_into(out, rows, shift);
            }
            Self::Union(postings) => {
                counters.postings += postings.len() as u64;
                for posting in postings {
                    posting.or_into(out, rows.clone(), shift);
                }
            }
            Self::Except(postings) => {
                counters.postings += postings.len() as u64;
                // The complement is taken in this piece alone: `out` may have rows of others.
                let mut not = out.cleared();
                for posting in postings {
                    posting.or_into(&mut not, rows.clone(), shift);
                }
                let mut all = out.cleared();
                Self::Always.fill(piece, &mut all, input, counters);
                all.and_not(&not);
                out.or(&all);
            }
            Self::Column { column, set, given } => {
                fill_column(piece, column, set, *given, out);
                remove_cores(piece, out);
            }
            Self::Ttl { set, cycle } => {
                // Rows without a ttl pass with null; the others are compared below.
                if set.null {
                    TestAccess::Except(std::iter::once(segment.with_ttl()).collect())
                        .fill(piece, out, input, counters);
                }
                counters.postings += 1;
                fill_ttl(piece, set, *cycle, out);
            }
            Self::Kind { kinds, types } => {
                fill_kind(piece, kinds, types, out, counters);
                remove_cores(piece, out);
            }
            Self::Content(_) | Self::Node(_) => {
                let start = out.start().max(piece.start()) - shift;
                let end = out.end().min(piece.end()).saturating_sub(shift);
                for row in start..end {
                    ensure();
                    if self.holds(piece, row, input, counters) {
                        out.insert(row + shift);
                    }
                }
            }
        }
    }
}

pub(super) fn remove_cores(piece: &SnapshotPiece, out: &mut Bits) {
    let cores = piece.segment().cores();
    if !cores.is_empty() {
        cores.for_each_in(piece.rows(), |row| out.remove(row + piece.shift()));
    }
}

/// Adds the rows whose number in `column` is in `set`; `given` is the bit of rows with a number.
fn fill_column(
    piece: &SnapshotPiece,
    column: &IntColumn,
    set: &NumberSet,
    given: Option<u8>,
    out: &mut Bits,
) {
    let segment = piece.segment();
    each_word(out, piece.rows(), piece.shift(), |index, mask, word| {
        let start = index * 64;
        let mut found = among(column, start, segment.len(), set.ranges.ranges());
        if let Some(bit) = given {
            let has = segment.present_word(start, bit);
            found &= has;
            if set.null {
                found |= !has;
            }
        }
        *word |= found & mask;
    });
}

/// Adds the rows whose kind, or else part of the nodeType, has a dictionary code that is set in
/// `kinds` or `types`.
fn fill_kind(
    piece: &SnapshotPiece,
    kinds: &[bool],
    types: &[bool],
    out: &mut Bits,
    counters: &mut Counters,
) {
    let (segment, rows, shift) = (piece.segment(), piece.rows(), piece.shift());
    // The part of the nodeType counts only for rows without a stored kind, so rows with any stored
    // kind are collected to be taken out.
    let mut stored = out.cleared();
    let mut derived = out.cleared();
    for (code, holds) in kinds.iter().enumerate() {
        let posting = segment.kinds().posting(code as u32);
        counters.postings += 1;
        posting.or_into(&mut stored, rows.clone(), shift);
        if *holds {
            posting.or_into(out, rows.clone(), shift);
        }
    }
    let chosen = types.iter().enumerate().filter(|(_, holds)| **holds);
    for (code, _) in chosen {
        counters.postings += 1;
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

fn fill_ttl(piece: &SnapshotPiece, set: &NumberSet, cycle: i64, out: &mut Bits) {
    let (segment, rows, shift) = (piece.segment(), piece.rows(), piece.shift());
    // Few rows have a ttl: each is read.
    let Some(given) = segment.with_ttl().dense_words() else {
        let start = out.start().saturating_sub(shift).max(rows.start);
        let end = out.end().saturating_sub(shift).min(rows.end);
        segment.with_ttl().for_each_in(start..end, |row| {
            if set.contains(segment.ttl(row, cycle)) {
                out.insert(row + shift);
            }
        });
        return;
    };
    let ttls = segment.ttls();
    let stored_ttl = segment.with_stored_ttl();
    // A ttl that counts down is kept as the cycle in which it expires. Instead of subtracting the
    // cycle from every number of the column, it is added to the bounds of the set.
    let counting = counting_down(set, cycle);
    let none_stored = stored_ttl.is_empty();
    let by_rows = compares_rows(segment.with_ttl().len(), segment.len());
    each_word(out, rows, shift, |index, mask, word| {
        let given = given.get(index as usize).copied().unwrap_or(0) & mask;
        if given == 0 {
            return;
        }
        let among = |ranges: &[(i64, i64)]| match ranges {
            &[(low, high)] if by_rows => Ones(given).fold(0, |found, bit| {
                let number = ttls.get(index * 64 + bit);
                found | u64::from(low <= number && number <= high) << bit
            }),
            _ => among(ttls, index * 64, segment.len(), ranges),
        };
        let stored = if none_stored {
            0
        } else {
            stored_ttl.word(index) & given
        };
        let mut found = 0;
        if stored != given {
            found |= among(&counting) & !stored;
        }
        if stored != 0 {
            found |= among(set.ranges.ranges()) & stored;
        }
        *word |= found & given;
    });
}

/// The cycles of expiry for which a ttl is in `set` in `cycle`. A ttl is the number of cycles
/// left, and never below 0.
fn counting_down(set: &NumberSet, cycle: i64) -> SmallVec<[(i64, i64); 2]> {
    // A ttl is never below 0, however long ago it expired, so a bound of 0 or less has no lower
    // end, and no ttl is at or below a negative bound. Sums beyond an i64 are beyond every number
    // of the column.
    let from = |low: i64| match low.checked_add(cycle) {
        _ if low <= 0 => Some(i64::MIN),
        None if cycle > 0 => None,
        sum => Some(sum.unwrap_or(i64::MIN)),
    };
    let to = |high: i64| match high.checked_add(cycle) {
        _ if high == i64::MAX => Some(i64::MAX),
        _ if high < 0 => None,
        None if cycle < 0 => None,
        sum => Some(sum.unwrap_or(i64::MAX)),
    };
    set.ranges
        .ranges()
        .iter()
        .filter_map(|&(low, high)| Some((from(low)?, to(high)?)))
        .collect()
}
