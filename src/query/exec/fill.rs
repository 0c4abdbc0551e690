//! The rows of a window that satisfy a step's tests.
//!
//! In a piece, the rows of a posting list of few are tested one by one; without one, lists are intersected a pass at a
//! time, and other tests narrow what is left. Depth tests are left to windows.

use std::ops::Range;

use smallvec::SmallVec;

use super::access::{TestAccess, node_class, of_one_value};
use super::eval::core_holds;
use super::scan::{remove_cores, test_word};
use super::stats::RunInput;
use super::trace::Counters;
use crate::index::{Bits, FewRows, Posting, SnapshotPiece, each_word, mask, zip_words};
use crate::query::ir::{Attr, Facet, TypeTest};
use crate::query::plan::{AttrCondition, BoundTest, Compare, NumberSet};

/// Which implicit cores are among the rows of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoreRows {
    None,
    /// Those on which a test of the class of containers holds: what a step keeps.
    Named,
    /// All on which the tests hold.
    All,
}

/// The rows of `window` that satisfy every test but depth tests. Also the implicit cores of `cores` whose fixed
/// attributes satisfy the tests.
pub(super) fn fill_tests(
    tests: &[BoundTest],
    cores: CoreRows,
    window: Range<u32>,
    input: RunInput<'_>,
    counters: &mut Counters,
) -> Bits {
    let mut out = Bits::new(window.clone());
    for piece in input.snapshot.pieces_in(window.clone()) {
        let (first, last) = (piece.rows().start / 64, (piece.rows().end - 1) / 64);
        if first == last {
            let word = piece_word(tests, piece, piece.rows(), input, counters);
            if word != 0 {
                out.insert_word(first * 64 + piece.shift(), word);
            }
        } else if let Some(own) = PieceTests::new(tests, piece, input, counters) {
            own.fill(&mut out, input, counters);
        }
    }
    if cores != CoreRows::None {
        fill_cores(tests, cores, &mut out, window.clone(), input);
    }
    out.retain_range(window);
    out
}

/// Those of some rows of a piece, all in the same word of the segment, that satisfy every test: a bit each.
#[inline]
pub(super) fn piece_word(
    tests: &[BoundTest],
    piece: &SnapshotPiece,
    rows: Range<u32>,
    input: RunInput<'_>,
    counters: &mut Counters,
) -> u64 {
    let index = rows.start / 64;
    let start = index * 64;
    let mut word = mask(index, rows.start, rows.end)
        & !piece.segment().cores().word(index)
        & !piece.dead_word(start);
    for test in tests {
        if word == 0 {
            return 0;
        }
        word = test_word(test, piece, start, word, input, counters);
    }
    word
}

/// Adds the implicit cores of a window that satisfy every test but depth tests.
pub(super) fn fill_cores(
    tests: &[BoundTest],
    cores: CoreRows,
    out: &mut Bits,
    window: Range<u32>,
    input: RunInput<'_>,
) {
    if !tests.iter().all(core_holds) {
        return;
    }
    for piece in input.snapshot.pieces_in(window.clone()) {
        add_cores(tests, cores, piece, out, input);
        let within = |row: u32| row.clamp(piece.start(), piece.end()) - piece.shift();
        piece.remove_dead(within(window.start)..within(window.end), out);
    }
}

/// Adds the implicit cores of a piece; of the tests, only those of the depth facet and conditions with selectors
/// inside decide.
fn add_cores(
    tests: &[BoundTest],
    which: CoreRows,
    piece: &SnapshotPiece,
    out: &mut Bits,
    input: RunInput<'_>,
) {
    let (cores, shift) = (piece.segment().cores(), piece.shift());
    let inner = || {
        let inner = tests.iter().filter_map(BoundTest::inner);
        inner.filter_map(|inner| input.inner.get(inner.number))
    };
    let is_fixed = |test: &BoundTest| depth_facet(test).is_none() && test.inner().is_none();
    if tests.iter().all(is_fixed) {
        return cores.or_into(out, piece.rows(), shift);
    }
    let container = BoundTest::is_container;
    let named = which == CoreRows::All || tests.iter().any(container);
    cores.for_each_in(piece.rows(), |row| {
        let row = row + shift;
        let depth = input.snapshot.depth(row);
        let mut sets = tests.iter().filter_map(depth_facet);
        let holds = sets.all(|set| set.contains(depth)) && inner().all(|rows| rows.contains(row));
        if holds && (named || inner().any(|rows| rows.names_core(row))) {
            out.insert(row);
        }
    });
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

/// The tests of a step in one piece.
pub(super) struct PieceTests<'a> {
    piece: &'a SnapshotPiece,
    /// A list of few rows, if there is one.
    few: Option<&'a Posting>,
    /// The only row that can satisfy all, if a list has one.
    only: Option<u32>,
    /// The other lists.
    postings: SmallVec<[&'a Posting; 4]>,
    /// Lists of rows that do not satisfy all.
    without: SmallVec<[&'a Posting; 4]>,
    /// Tests of single nodes are last.
    others: SmallVec<[TestAccess<'a>; 1]>,
}

impl<'a> PieceTests<'a> {
    /// `None` if no row of the segment satisfies all.
    #[inline]
    pub(super) fn new(
        tests: &'a [BoundTest],
        piece: &'a SnapshotPiece,
        input: RunInput<'a>,
        counters: &mut Counters,
    ) -> Option<Self> {
        let segment = &**piece.segment();
        let (mut few, mut only, mut postings) = (None, None, SmallVec::new());
        let mut without = SmallVec::<[&Posting; 4]>::new();
        let mut others = SmallVec::<[TestAccess<'a>; 1]>::new();
        for test in tests {
            let posting = match test {
                BoundTest::Type(TypeTest::Class(class)) => segment.of_class(node_class(*class)),
                BoundTest::Attr(condition)
                    if let Some(posting) = of_one_value(condition, segment) =>
                {
                    posting?
                }
                test => match TestAccess::new(test, segment, input) {
                    TestAccess::Never => return None,
                    TestAccess::Always => continue,
                    TestAccess::Posting(posting) => posting,
                    TestAccess::Except(postings) => {
                        without.extend(postings);
                        continue;
                    }
                    access => {
                        let within = access.within(segment);
                        others.push(access);
                        match within {
                            Some(within) => within,
                            None => continue,
                        }
                    }
                },
            };
            counters.postings += 1;
            match posting.as_rows() {
                FewRows::None => return None,
                FewRows::One(row) if only.is_none_or(|only| only == row) => only = Some(row),
                FewRows::One(_) => return None,
                FewRows::Few(_) if few.is_none() => few = Some(posting),
                FewRows::Few(_) | FewRows::Many => postings.push(posting),
            }
        }
        if others.len() > 1 {
            others.sort_by_key(|access| !access.by_words());
        }
        Some(Self {
            piece,
            few,
            only,
            postings,
            without,
            others,
        })
    }

    /// Adds the rows of the piece that satisfy every test to `out`, which has none of it.
    fn fill(&self, out: &mut Bits, input: RunInput<'_>, counters: &mut Counters) {
        let (piece, rows, shift) = (self.piece, self.piece.rows(), self.piece.shift());
        let start = out.start().saturating_sub(shift).max(rows.start);
        let end = out.end().saturating_sub(shift).min(rows.end);
        // Row by row: of few rows, most are alone in their word.
        if let Some(row) = self.only {
            let is_few = self.few.is_none_or(|few| few.contains(row));
            let lives = (start..end).contains(&row) && !piece.is_dead(row);
            if is_few && lives && self.holds(row, input, counters) {
                out.insert(row + shift);
            }
            return;
        }
        if let Some(few) = self.few {
            few.for_each_in(start..end, |row| {
                if self.holds(row, input, counters) {
                    out.insert(row + shift);
                }
            });
        } else {
            self.fill_words(out, input, counters);
        }
        // Removed rows are still in the lists of their segment.
        piece.remove_dead(start..end, out);
    }

    /// Adds the rows that satisfy every test where no list has few, removed ones too.
    fn fill_words(&self, out: &mut Bits, input: RunInput<'_>, counters: &mut Counters) {
        let (piece, rows, shift) = (self.piece, self.piece.rows(), self.piece.shift());
        // A pass over all words for each list: the compiler does several words at a time.
        match self.postings.split_first() {
            None => {
                out.insert_range(piece.start()..piece.end());
                remove_cores(piece, out);
            }
            Some((first, rest)) => {
                first.or_into(out, rows.clone(), shift);
                for words in rest.iter().filter_map(|posting| posting.dense_words()) {
                    zip_words(out, words, rows.clone(), shift, |word, posting, mask| {
                        *word &= posting | !mask
                    });
                }
            }
        }
        for posting in &self.without {
            posting.remove_from(out, rows.clone(), shift);
        }
        for access in &self.others {
            let lists = access.lists(piece, out);
            let skipped = (shift / 64).wrapping_sub(out.first_word());
            each_word(out, rows.clone(), shift, |index, mask, word| {
                let own = *word & mask;
                let left = match &lists {
                    _ if own == 0 => return,
                    Some(lists) => own & lists.words()[index.wrapping_add(skipped) as usize],
                    None => access.word(piece, index * 64, own, input, counters),
                };
                *word = *word & !mask | left;
            });
        }
    }

    /// Whether a row of the list of few rows, dead or not, satisfies the other tests.
    #[inline]
    fn holds(&self, row: u32, input: RunInput<'_>, counters: &mut Counters) -> bool {
        let mut others = self.others.iter();
        self.postings.iter().all(|posting| posting.contains(row))
            && !self.without.iter().any(|posting| posting.contains(row))
            && others.all(|access| access.holds(self.piece, row, input, counters))
    }

    /// Calls `visit` with the words that have rows of `rows` which satisfy every test, forward or backward, until it
    /// returns false. Returns the index of the word where it stopped.
    pub(super) fn scan(
        &self,
        mut rows: Range<u32>,
        backward: bool,
        input: RunInput<'_>,
        counters: &mut Counters,
        visit: &mut impl FnMut(u32, u64) -> bool,
    ) -> Option<u32> {
        if let Some(only) = self.only {
            if !rows.contains(&only) {
                return None;
            }
            rows = only..only + 1;
        }
        let shift = self.piece.shift();
        let mut word_at = |index: u32, word: u64| {
            let word = word & !self.piece.dead_word(index * 64);
            let word = self.narrow(index, word, input, counters);
            word == 0 || visit(index * 64 + shift, word)
        };
        // A list of few rows says in which words they are; all words would be far more.
        if let Some(FewRows::Few(few)) = self.few.map(Posting::as_rows) {
            let mut few = few.range(rows.clone());
            let mut next = || {
                if backward {
                    few.next_back()
                } else {
                    few.next()
                }
            };
            let mut row = next();
            while let Some(at) = row {
                let (index, mut word) = (at / 64, 0);
                while let Some(at) = row.filter(|at| at / 64 == index) {
                    word |= 1 << (at % 64);
                    row = next();
                }
                if !word_at(index, word) {
                    return Some(index);
                }
            }
            return None;
        }
        let (first, last) = (rows.start / 64, (rows.end - 1) / 64);
        for at in 0..=last - first {
            let index = if backward { last - at } else { first + at };
            if !word_at(index, mask(index, rows.start, rows.end)) {
                return Some(index);
            }
        }
        None
    }

    /// The rows of `word` that satisfy every test.
    #[inline]
    fn narrow(
        &self,
        index: u32,
        mut word: u64,
        input: RunInput<'_>,
        counters: &mut Counters,
    ) -> u64 {
        for posting in &self.postings {
            word &= posting.word(index);
        }
        for posting in &self.without {
            word &= !posting.word(index);
        }
        // No list has an implicit core.
        if word != 0 && self.postings.is_empty() && self.few.is_none() && self.only.is_none() {
            word &= !self.piece.segment().cores().word(index);
        }
        for access in &self.others {
            if word == 0 {
                break;
            }
            word = access.word(self.piece, index * 64, word, input, counters);
        }
        word
    }
}
