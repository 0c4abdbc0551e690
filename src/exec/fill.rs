//! The rows of a window that satisfy a step's tests.
//!
//! The cheapest access seeds a step's matches; the others narrow them, by words where answers are
//! dense and row by row where few are left. Depths are windows, not tests, and are seen to
//! elsewhere.

use std::ops::Range;

use smallvec::SmallVec;

use super::access::{Access, Scope, node_class, of_one_value};
use super::eval::core_holds;
use super::trace::Counters;
use crate::index::{Bits, Ones, Piece, Posting, zip_words};
use crate::ir::{Attr, Facet, TypeTest};
use crate::plan::{BoundTest, Compare, Condition, NumberSet};

/// The rows of `window` that satisfy every test, but for depth tests; implicit cores, if the
/// step takes them, where their fixed attributes satisfy the tests.
pub(super) fn fill_tests(
    tests: &[BoundTest],
    cores: bool,
    window: Range<u32>,
    scope: Scope<'_>,
    counters: &mut Counters,
) -> Bits {
    if let Some(only) = of_one_posting(tests, cores, &window, scope, counters) {
        return only;
    }
    let mut out = Bits::new(window.clone());
    let cycle = scope.snapshot.cycle();
    let cores = cores && tests.iter().all(core_holds);
    for piece in scope.snapshot.pieces_in(window.clone()) {
        let mut accesses: SmallVec<[Access<'_>; 6]> = SmallVec::new();
        for test in tests {
            match Access::new(test, &piece.segment, cycle) {
                Access::Always => {}
                access => accesses.push(access),
            }
        }
        let single = scope.snapshot.pieces().len() == 1
            || (out.start() >= piece.base && out.end() <= piece.end());
        if single || accesses.len() <= 1 {
            fill_piece(&mut accesses, piece, &mut out, scope, counters);
        } else {
            // Other pieces share the words of the window: narrow this one's rows apart.
            let rows = piece.base.max(window.start)..piece.end().min(window.end);
            let mut own = Bits::new(rows);
            fill_piece(&mut accesses, piece, &mut own, scope, counters);
            let offset = (own.first_word() - out.first_word()) as usize;
            for (word, own) in out.words_mut()[offset..].iter_mut().zip(own.words()) {
                *word |= own;
            }
        }
        if let Some(dead) = &piece.dead {
            for row in dead.range(piece.rows.clone()) {
                out.remove(row + piece.shift());
            }
        }
        if cores {
            let virtuals = piece.segment.cores();
            let shift = piece.shift();
            if tests.iter().all(|test| depth_facet(test).is_none()) {
                virtuals.or_into(&mut out, piece.rows.clone(), shift);
            } else {
                virtuals.for_each_in(piece.rows.clone(), |row| {
                    let depth = scope.snapshot.depth(row + shift);
                    let mut sets = tests.iter().filter_map(depth_facet);
                    if sets.all(|set| set.contains(depth)) {
                        out.insert(row + shift);
                    }
                });
            }
            if let Some(dead) = &piece.dead {
                for row in dead.range(piece.rows.clone()) {
                    out.remove(row + piece.shift());
                }
            }
        }
    }
    out.retain_range(window);
    out
}

/// As [`fill_tests`], where one dense posting of an only piece is all there is to it: its words,
/// copied.
fn of_one_posting(
    tests: &[BoundTest],
    cores: bool,
    window: &Range<u32>,
    scope: Scope<'_>,
    counters: &mut Counters,
) -> Option<Bits> {
    let ([test], [piece]) = (tests, scope.snapshot.pieces()) else {
        return None;
    };
    let segment = &*piece.segment;
    let takes_cores = cores && !segment.cores().is_empty();
    if takes_cores || piece.dead.is_some() || window.start < piece.shift() {
        return None;
    }
    let posting = match test {
        BoundTest::Type(TypeTest::Class(class)) => segment.of_class(node_class(*class)),
        BoundTest::Attr(condition) => of_one_value(condition, segment)??,
        BoundTest::Type(_) | BoundTest::Depth(_) => return None,
    };
    let Posting::Dense { words, .. } = posting else {
        return None;
    };
    counters.postings += 1;
    let rows = window.start.max(piece.base)..window.end.min(piece.end());
    Some(Bits::of_words(window.clone(), rows, words, piece.shift()))
}

/// The depths a test of the facet `depth` asks for: the one facet an implicit core has.
fn depth_facet(test: &BoundTest) -> Option<&NumberSet> {
    match test {
        BoundTest::Attr(Condition {
            attr: Attr::Facet(Facet::Depth),
            compare: Compare::Number(set),
        }) => Some(set),
        _ => None,
    }
}

/// Fills `out`, empty so far, with the rows of a piece that every access answers for.
fn fill_piece(
    accesses: &mut SmallVec<[Access<'_>; 6]>,
    piece: &Piece,
    out: &mut Bits,
    scope: Scope<'_>,
    counters: &mut Counters,
) {
    // The smallest known answer goes first; what can only be asked row by row goes last.
    if accesses.len() > 1 {
        accesses.sort_by_key(|access| match access.estimate() {
            Some(estimate) => u64::from(estimate),
            None if access.by_words() => u64::MAX - 1,
            None => u64::MAX,
        });
    }
    let Some((seed, rest)) = accesses.split_first() else {
        Access::Always.fill(piece, out, scope, counters);
        return;
    };
    if rest.is_empty() {
        seed.fill(piece, out, scope, counters);
        return;
    }
    if matches!(seed, Access::Never) {
        return;
    }
    let shift = piece.shift();
    if let Access::Posting(posting @ (Posting::One(_) | Posting::Sparse(_))) = seed {
        // Few rows: the others are asked row by row on the way, and no pass over words is made.
        counters.postings += 1;
        let start = out.start().saturating_sub(shift).max(piece.rows.start);
        let end = out.end().saturating_sub(shift).min(piece.rows.end);
        let mut rows: SmallVec<[u32; 16]> = SmallVec::new();
        posting.for_each_in(start..end, |row| rows.push(row));
        for access in rest {
            access.retain(&mut rows, piece, scope, counters);
        }
        rows.iter().for_each(|row| out.insert(row + shift));
        return;
    }
    seed.fill(piece, out, scope, counters);
    let mut scratch: Option<Bits> = None;
    for access in rest {
        if let Access::Posting(Posting::Dense { words, .. }) = access {
            counters.postings += 1;
            zip_words(
                out,
                words,
                piece.rows.clone(),
                shift,
                |word, posting, mask| *word &= posting | !mask,
            );
            continue;
        }
        let left = out.count();
        if left == 0 {
            return;
        }
        // Filling words costs a fixed pass over the window; asking costs by the row.
        if access.by_words() && left > out.words().len() * 8 {
            let other = scratch.get_or_insert_with(|| out.cleared());
            other.words_mut().fill(0);
            access.fill(piece, other, scope, counters);
            out.and(other);
            continue;
        }
        let base = out.start();
        for (index, word) in out.words_mut().iter_mut().enumerate() {
            for bit in Ones(*word) {
                let row = base + index as u32 * 64 + bit - shift;
                if !access.holds(piece, row, scope, counters) {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}
