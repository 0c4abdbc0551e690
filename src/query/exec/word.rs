//! Strategy "word": a chain over at most 64 rows.
//!
//! A running conversation mostly asks for the newest turns, the head or `^sys`: a handful of rows,
//! for which setting up bit sets costs more than the rows do. Here a set of rows is one word, bit
//! 0 is the first row of the window, and a step is a few operations on words. Results are those
//! of [`super::chain`].

use std::ops::Range;

use smallvec::SmallVec;

use super::access::{TestAccess, node_class, of_one_value, row_holds};
use super::cost::WORD_ROWS;
use super::rows::MatchedRows;
use super::stats::RunInput;
use super::trace::Trace;
use super::window::{at_depths, intervals};
use crate::index::{LEVEL_POSTINGS, Ones, Posting, SnapshotPiece};
use crate::query::ir::{Axis, TypeTest};
use crate::query::plan::{Bound, BoundChain, BoundStep, BoundTest, RootOrSeq};
use crate::tree::NodeClass;

/// The rows of a depth interval, where they fit one word.
pub(super) struct WordWindow<'a> {
    /// The rows of the snapshot, at most 64.
    window: Range<u32>,
    /// Their depths, both included.
    depths: (i64, i64),
    piece: &'a SnapshotPiece,
    /// The first row of the window in the segment.
    start: u32,
    input: RunInput<'a>,
}

/// The left context of a step: rows of the window, and nodes before it.
#[derive(Clone, Copy)]
struct WordContext {
    rows: u64,
    root: bool,
    seq: bool,
    /// The level of all rows, if the chain decides it.
    level: Option<u32>,
}

impl WordContext {
    const SEQ: Self = Self {
        rows: 0,
        root: false,
        seq: true,
        level: None,
    };

    fn count(self) -> u64 {
        u64::from(self.rows.count_ones()) + u64::from(self.root) + u64::from(self.seq)
    }
}

/// Runs a plan of one group over one window, if the snapshot has it.
#[inline(always)]
pub(super) fn run_one(
    bound: &Bound,
    window: Option<WordWindow<'_>>,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    let pieces = input.snapshot.pieces().len() as u64;
    let Some(window) = window else {
        trace.counters.pieces_pruned += pieces;
        return MatchedRows::none();
    };
    trace.begin_chain(0);
    let word = window.run(&bound.chains[0], trace);
    trace.counters.pieces_pruned += pieces - 1;
    MatchedRows::Word {
        start: window.window.start,
        word,
    }
}

pub(super) type GroupWindow<'a> = (usize, WordWindow<'a>);

/// The windows of a [plan at some depths](Bound::at_depths), by group.
#[inline(never)]
pub(super) fn windows_of<'a>(
    bound: &Bound,
    input: RunInput<'a>,
) -> Result<Vec<GroupWindow<'a>>, &'static str> {
    let mut windows = Vec::new();
    for (group, chain) in bound.chains.iter().enumerate() {
        for depths in chain.scope.iter().flat_map(intervals) {
            let window = WordWindow::at(depths, input)?;
            windows.extend(window.map(|window| (group, window)));
        }
    }
    Ok(windows)
}

#[inline(never)]
pub(super) fn run_all(
    bound: &Bound,
    mut windows: &[GroupWindow<'_>],
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    let pieces = input.snapshot.pieces().len();
    let mut words: SmallVec<[(u32, u64); 4]> = SmallVec::new();
    for (group, chain) in bound.chains.iter().enumerate() {
        // Windows are sorted by group.
        let own = windows.partition_point(|(of, _)| *of == group);
        trace.begin_chain(group);
        trace.counters.pieces_pruned += pieces.saturating_sub(own) as u64;
        for (_, window) in &windows[..own] {
            words.push((window.window.start, window.run(chain, trace)));
        }
        windows = &windows[own..];
    }
    let count = words.iter().map(|(_, word)| word.count_ones() as usize);
    let mut rows = SmallVec::with_capacity(count.sum());
    for (start, word) in words {
        Ones(word).for_each(|bit| rows.push(start + bit));
    }
    // The windows of one group are disjoint and ascend; those of several may not.
    if bound.chains.len() > 1 {
        rows.sort_unstable();
        rows.dedup();
    }
    if !bound.filters.is_empty() {
        let counters = &mut trace.counters;
        rows.retain(|row| row_holds(&bound.filters, *row, input, counters));
    }
    MatchedRows::List(rows)
}

impl<'a> WordWindow<'a> {
    /// The rows at the depths of an [interval](intervals); `Ok(None)` if the snapshot has
    /// none. Otherwise why words do not fit.
    ///
    /// Inlined by force: passing the window through memory costs a tenth of a whole select.
    #[inline(always)]
    pub(super) fn at(
        depths: (i64, i64),
        input: RunInput<'a>,
    ) -> Result<Option<Self>, &'static str> {
        let snapshot = input.snapshot;
        let window = at_depths(snapshot, depths);
        if window.start >= window.end {
            return Ok(None);
        }
        if window.end - window.start > WORD_ROWS || window.start == 0 {
            return Err("more than 64 rows at these depths");
        }
        let piece = &snapshot.pieces()[snapshot.piece_of(window.start)];
        let segment = piece.segment();
        let simple = window.end <= piece.end()
            && !piece.has_dead()
            && !segment.has_loose_units()
            && segment.cores().is_empty();
        if !simple {
            return Err("the rows span segments, or have removed nodes or implicit cores");
        }
        Ok(Some(Self {
            depths,
            piece,
            start: window.start - piece.shift(),
            window,
            input,
        }))
    }

    /// Runs the chain, which is plain: it has tests only. Depth tests need no evaluation: without
    /// picks, the window is inside the intersection of their depths. One bit for each row of the
    /// window.
    #[inline]
    fn run(&self, chain: &BoundChain, trace: &mut Trace) -> u64 {
        let word = self.steps(chain, trace);
        trace.counters.rows_seen += u64::from(self.window.end - self.window.start);
        trace.counters.pieces_read += 1;
        word
    }

    #[inline(never)]
    fn steps(&self, chain: &BoundChain, trace: &mut Trace) -> u64 {
        let all = u64::MAX >> (64 - (self.window.end - self.window.start));
        let mut left: Option<WordContext> = None;
        for (index, step) in chain.steps.iter().enumerate() {
            let BoundStep::Filter(filter) = step else {
                continue;
            };
            let tests = &*filter.tests;
            if index == 0 && matches!(tests, [BoundTest::Type(TypeTest::Seq)]) {
                let seq = self.input.snapshot.seq_row().is_some();
                trace.step(index, || u64::from(seq), None);
                if !seq {
                    return 0;
                }
                left = Some(WordContext::SEQ);
                continue;
            }
            // The rows on the axis of the left context; the first step may match anywhere.
            let (reach, level) = match left {
                None => (all, None),
                Some(left) => {
                    let level = match filter.axis {
                        Axis::Child => self.level(left).map(|level| level + 1),
                        Axis::Descendant => None,
                    };
                    (all & self.reach(left, filter.axis, level), level)
                }
            };
            // The root and `^seq` are before the window, in no bit of it. `^seq` is below the root
            // only.
            let (root, seq) = match filter.ambient {
                RootOrSeq::Never => (false, false),
                ambient => (
                    left.is_none() && self.ambient(ambient, tests, RootOrSeq::Root, trace),
                    left.is_none_or(|left| left.root)
                        && self.ambient(ambient, tests, RootOrSeq::Seq, trace),
                ),
            };
            let kept = WordContext {
                rows: self.filter(tests, reach, trace),
                root,
                seq,
                level: level.or(filter.level),
            };
            trace.step(index, || kept.count(), None);
            if kept.rows == 0 && !root && !seq {
                return 0;
            }
            left = Some(kept);
        }
        left.map_or(0, |left| left.rows)
    }

    /// Whether the root or `^seq`, as `only` says, satisfies a step. Both are before the window.
    fn ambient(
        &self,
        kept: RootOrSeq,
        tests: &[BoundTest],
        only: RootOrSeq,
        trace: &mut Trace,
    ) -> bool {
        if kept != only && kept != RootOrSeq::Maybe {
            return false;
        }
        let row = match only {
            RootOrSeq::Seq => self.input.snapshot.seq_row(),
            _ => Some(0),
        };
        match (row, tests) {
            (None, _) => false,
            (Some(_), [BoundTest::Type(TypeTest::Seq)]) => only == RootOrSeq::Seq,
            (Some(_), [BoundTest::Type(TypeTest::Root)]) => only == RootOrSeq::Root,
            (Some(row), tests) => row_holds(tests, row, self.input, &mut trace.counters),
        }
    }

    fn filter(&self, tests: &[BoundTest], mut rows: u64, trace: &mut Trace) -> u64 {
        let segment = &**self.piece.segment();
        for test in tests {
            if rows == 0 {
                break;
            }
            let condition = match test {
                BoundTest::Depth(_) => continue,
                BoundTest::Type(test) => {
                    rows &= self.of_type(*test, rows);
                    continue;
                }
                BoundTest::Attr(condition) => condition,
            };
            // One value of a header is one posting list, without an access.
            if let Some(value) = of_one_value(condition, segment) {
                rows = value.map_or(0, |posting| {
                    trace.counters.postings += 1;
                    rows & self.of_posting(posting, rows)
                });
                continue;
            }
            rows = match &TestAccess::new(test, segment, self.input.snapshot.cycle()) {
                TestAccess::Never => 0,
                TestAccess::Always => rows,
                TestAccess::Posting(posting) => {
                    trace.counters.postings += 1;
                    rows & self.of_posting(posting, rows)
                }
                access => Ones(rows)
                    .filter(|bit| {
                        let row = self.start + bit;
                        access.holds(self.piece, row, self.input, &mut trace.counters)
                    })
                    .fold(0, |kept, bit| kept | 1 << bit),
            };
        }
        rows
    }

    fn of_type(&self, test: TypeTest, rows: u64) -> u64 {
        // The window of a region starts with the region.
        let region = u64::from(self.depths.1 <= 0);
        match test {
            TypeTest::Root | TypeTest::Seq => 0,
            TypeTest::Class(class) => self.of_class(node_class(class)),
            TypeTest::TurnOrAnchor => region | self.of_class(NodeClass::Turn),
            TypeTest::Anchor if region == 1 => 1,
            TypeTest::Anchor => self.of_class(NodeClass::Turn) & self.of_level(2, rows),
        }
    }

    fn of_class(&self, class: NodeClass) -> u64 {
        let segment = self.piece.segment();
        if let Some(words) = segment.of_class(class).dense_words() {
            return self.of_words(words);
        }
        // For a rare class the column is faster than a set.
        let rows = self.start..self.start + (self.window.end - self.window.start);
        let classes = segment.class_codes(rows).iter().enumerate();
        classes.fold(0, |word, (bit, &of_row)| {
            word | u64::from(of_row == class as u8) << bit
        })
    }

    #[inline]
    fn of_level(&self, level: u32, rows: u64) -> u64 {
        let posting = self.piece.segment().at_level(level);
        posting.map_or(0, |posting| self.of_posting(posting, rows))
    }

    #[inline]
    fn of_posting(&self, posting: &Posting, rows: u64) -> u64 {
        match posting.dense_words() {
            Some(words) => self.of_words(words),
            None => self.one_by_one(posting, rows),
        }
    }

    fn one_by_one(&self, posting: &Posting, rows: u64) -> u64 {
        Ones(rows)
            .filter(|bit| posting.contains(self.start + bit))
            .fold(0, |kept, bit| kept | 1 << bit)
    }

    /// Reads 64 bits of a dense bitmap, one bit a row of the segment, at bit `self.start`.
    #[inline]
    fn of_words(&self, words: &[u64]) -> u64 {
        let (index, shift) = ((self.start / 64) as usize, self.start % 64);
        match words.get(index..).unwrap_or_default() {
            [] => 0,
            [word] => word >> shift,
            // In two steps, because a shift by 64 is not defined.
            [word, next, ..] => word >> shift | next << 1 << (63 - shift),
        }
    }

    /// The level of all rows of a left context, if it is known.
    #[inline]
    fn level(&self, left: WordContext) -> Option<u32> {
        // A window starts with a turn or a region.
        let first = if self.depths.0 > 0 { 2 } else { 1 };
        match left {
            WordContext { root: true, .. } | WordContext { seq: true, .. } => None,
            WordContext { rows: 1, .. } => Some(first),
            WordContext { level, .. } => level,
        }
    }

    /// The rows on `axis` of the left context. Children are those on `level`, if it is known.
    fn reach(&self, left: WordContext, axis: Axis, level: Option<u32>) -> u64 {
        // A window is below `^seq` or inside a region.
        let sealed = self.depths.0 > 0;
        let mut reach = match axis {
            Axis::Descendant if left.root || left.seq && sealed => return u64::MAX,
            Axis::Child if left.seq && sealed => self.of_level(2, u64::MAX),
            Axis::Child if left.root && !sealed => 1,
            Axis::Descendant | Axis::Child => 0,
        };
        // The children of rows on one level are the descendants one level down.
        // A subtree is a run of bits, so descendants are masks.
        let level = level.filter(|&level| level < LEVEL_POSTINGS);
        let by_rows = axis == Axis::Child && level.is_none();
        let ends = self.piece.segment().ends();
        let (mut below, mut next) = (0, 0);
        for bit in Ones(left.rows) {
            let row = self.start + bit;
            let end = ends[row as usize];
            if by_rows {
                let mut child = row + 1;
                while child < end {
                    reach |= 1 << (child - self.start);
                    child = ends[child as usize];
                }
            } else if row >= next && end > row + 1 {
                // `row + 1 < end`, and `end` is inside the window.
                let to = u64::MAX >> (64 - (end - self.start));
                below |= to & u64::MAX << (bit + 1);
                next = end;
            }
        }
        reach | level.map_or(below, |level| self.of_level(level, below) & below)
    }
}
