//! The rows of a window that satisfy a step's tests.
//!
//! The access with the smallest estimate seeds the rows. The others narrow them, by words where
//! many rows are left and row by row where few are. Depth tests are left to windows.

use std::ops::Range;

use smallvec::SmallVec;

use super::access::{TestAccess, node_class, of_one_value};
use super::cost::fills_words;
use super::eval::core_holds;
use super::stats::RunInput;
use super::trace::Counters;
use crate::index::{Bits, Ones, SnapshotPiece, zip_words};
use crate::query::ir::{Attr, Facet, TypeTest};
use crate::query::plan::{AttrCondition, BoundTest, Compare, NumberSet};
use crate::support::cancel::ensure;

/// The rows of `window` that satisfy every test but depth tests. Also implicit cores, if `cores`
/// is set and their fixed attributes satisfy the tests.
pub(super) fn fill_tests(
    tests: &[BoundTest],
    cores: bool,
    window: Range<u32>,
    input: RunInput<'_>,
    counters: &mut Counters,
) -> Bits {
    // The most frequent step is one test of a class, role, kind or key in a session of one segment.
    if let Some(only) = of_one_posting(tests, cores, &window, input, counters) {
        return only;
    }
    let mut out = Bits::new(window.clone());
    let cycle = input.snapshot.cycle();
    let cores = cores && tests.iter().all(core_holds);
    for piece in input.snapshot.pieces_in(window.clone()) {
        let mut accesses: SmallVec<[TestAccess<'_>; 6]> = SmallVec::new();
        for test in tests {
            match TestAccess::new(test, piece.segment(), cycle) {
                // What every row passes narrows nothing.
                TestAccess::Always => {}
                access => accesses.push(access),
            }
        }
        let single = input.snapshot.pieces().len() == 1
            || (out.start() >= piece.start() && out.end() <= piece.end());
        if single || accesses.len() <= 1 {
            fill_piece(&mut accesses, piece, &mut out, input, counters);
        } else {
            // Other pieces share the words of the window: narrow this one's rows apart.
            let rows = piece.start().max(window.start)..piece.end().min(window.end);
            let mut own = Bits::new(rows);
            fill_piece(&mut accesses, piece, &mut own, input, counters);
            let offset = (own.first_word() - out.first_word()) as usize;
            for (word, own) in out.words_mut()[offset..].iter_mut().zip(own.words()) {
                *word |= own;
            }
        }
        if cores {
            add_cores(tests, piece, &mut out, input);
        }
        // Removed rows are still in the lists of their segment.
        for row in piece.dead_rows(piece.rows()) {
            out.remove(row + piece.shift());
        }
    }
    out.retain_range(window);
    out
}

/// Adds the implicit cores of a piece; of the tests, only those of the depth facet decide.
fn add_cores(tests: &[BoundTest], piece: &SnapshotPiece, out: &mut Bits, input: RunInput<'_>) {
    let (cores, shift) = (piece.segment().cores(), piece.shift());
    if tests.iter().all(|test| depth_facet(test).is_none()) {
        return cores.or_into(out, piece.rows(), shift);
    }
    cores.for_each_in(piece.rows(), |row| {
        let depth = input.snapshot.depth(row + shift);
        let mut sets = tests.iter().filter_map(depth_facet);
        if sets.all(|set| set.contains(depth)) {
            out.insert(row + shift);
        }
    });
}

/// [`fill_tests`] where it copies the words of one dense posting list of the only piece.
fn of_one_posting(
    tests: &[BoundTest],
    cores: bool,
    window: &Range<u32>,
    input: RunInput<'_>,
    counters: &mut Counters,
) -> Option<Bits> {
    let ([test], [piece]) = (tests, input.snapshot.pieces()) else {
        return None;
    };
    let segment = piece.segment();
    let takes_cores = cores && !segment.cores().is_empty();
    // Cores would have to be added and removed rows taken out; words before the piece do not exist.
    if takes_cores || piece.has_dead() || window.start < piece.shift() {
        return None;
    }
    let posting = match test {
        BoundTest::Type(TypeTest::Class(class)) => segment.of_class(node_class(*class)),
        BoundTest::Attr(condition) => of_one_value(condition, segment)??,
        BoundTest::Type(_) | BoundTest::Depth(_) => return None,
    };
    let words = posting.dense_words()?;
    counters.postings += 1;
    let rows = window.start.max(piece.start())..window.end.min(piece.end());
    Some(Bits::of_words(window.clone(), rows, words, piece.shift()))
}

/// The numbers of a test of the facet `depth`, the one facet an implicit core has.
fn depth_facet(test: &BoundTest) -> Option<&NumberSet> {
    match test {
        BoundTest::Attr(AttrCondition {
            attr: Attr::Facet(Facet::Depth),
            compare: Compare::Number(set),
        }) => Some(set),
        _ => None,
    }
}

fn fill_piece(
    accesses: &mut SmallVec<[TestAccess<'_>; 6]>,
    piece: &SnapshotPiece,
    out: &mut Bits,
    input: RunInput<'_>,
    counters: &mut Counters,
) {
    // The smallest estimate goes first, tests of single nodes last.
    if accesses.len() > 1 {
        accesses.sort_by_key(|access| match access.estimate() {
            Some(estimate) => u64::from(estimate),
            None if access.by_words() => u64::MAX - 1,
            None => u64::MAX,
        });
    }
    let Some((seed, rest)) = accesses.split_first() else {
        TestAccess::Always.fill(piece, out, input, counters);
        return;
    };
    if rest.is_empty() {
        seed.fill(piece, out, input, counters);
        return;
    }
    if matches!(seed, TestAccess::Never) {
        return;
    }
    let shift = piece.shift();
    if let TestAccess::Posting(posting) = seed
        && posting.dense_words().is_none()
    {
        // Few rows: the others test them row by row, without a pass over words.
        counters.postings += 1;
        let start = out.start().saturating_sub(shift).max(piece.rows().start);
        let end = out.end().saturating_sub(shift).min(piece.rows().end);
        let mut rows: SmallVec<[u32; 16]> = SmallVec::new();
        posting.for_each_in(start..end, |row| rows.push(row));
        for access in rest {
            access.retain(&mut rows, piece, input, counters);
        }
        rows.iter().for_each(|row| out.insert(row + shift));
        return;
    }
    seed.fill(piece, out, input, counters);
    narrow(rest, piece, out, input, counters);
}

/// Keeps the rows of `out`, all in one piece, that satisfy every access.
fn narrow(
    accesses: &[TestAccess<'_>],
    piece: &SnapshotPiece,
    out: &mut Bits,
    input: RunInput<'_>,
    counters: &mut Counters,
) {
    let shift = piece.shift();
    let mut scratch: Option<Bits> = None;
    for access in accesses {
        if let TestAccess::Posting(posting) = access
            && let Some(words) = posting.dense_words()
        {
            counters.postings += 1;
            zip_words(out, words, piece.rows(), shift, |word, posting, mask| {
                *word &= posting | !mask
            });
            continue;
        }
        // Counting is a pass over the words, which a dense list just did not need.
        let left = out.count();
        if left == 0 {
            return;
        }
        // Many rows are left: the rows of the access are filled as words and intersected. Few are
        // left: each is tested.
        if access.by_words() && fills_words(left, out.words().len()) {
            let other = scratch.get_or_insert_with(|| out.cleared());
            other.words_mut().fill(0);
            access.fill(piece, other, input, counters);
            out.and(other);
            continue;
        }
        let base = out.start();
        for (index, word) in out.words_mut().iter_mut().enumerate() {
            if *word != 0 {
                ensure();
            }
            for bit in Ones(*word) {
                let row = base + index as u32 * 64 + bit - shift;
                if !access.holds(piece, row, input, counters) {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}
