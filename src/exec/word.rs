//! Chains over at most 64 rows: the newest turns, the head, `^sys`.
//!
//! What a running conversation is asked most is about a handful of rows, where setting up sets
//! and passes costs more than the rows do. Here a set of rows is one word, bit 0 being the first
//! row of the window, and a step is a few operations on it. The answers are those of
//! [`super::chain`], which takes every chain this file hands back.

use std::ops::Range;

use super::access::{Access, Scope, node_class, of_one_value, row_holds};
use super::{SessionStats, Trace};
use crate::index::{LEVEL_POSTINGS, Ones, Piece, Posting, Snapshot};
use crate::ir::{Axis, TypeTest};
use crate::plan::{Ambient, Bound, BoundChain, BoundStep, BoundTest, ChainPlan, StepOperator};
use crate::tree::NodeClass;

/// A window made from an interval of depths.
pub(super) struct WordRun<'a> {
    /// The rows of the snapshot, at most 64.
    window: Range<u32>,
    /// The depths they have, both included.
    depths: (i64, i64),
    piece: &'a Piece,
    /// The first row of the window in the segment.
    start: u32,
    scope: Scope<'a>,
}

/// The left context of a step: rows of the window, and what stands before it.
#[derive(Clone, Copy)]
struct Left {
    rows: u64,
    root: bool,
    seq: bool,
    /// The level of the rows, where the plan tells.
    level: Option<u32>,
}

/// Runs a plan that is tests along one chain over one interval of depths ([`Bound::interval`]):
/// the rows as one word, and the row of its first bit. `None` where that is more than one word's
/// work.
///
/// Inlined by force, like [`WordRun::new`]: a window that goes through memory on its way to the run
/// costs a tenth of the whole select.
#[inline(always)]
pub(super) fn run(
    bound: &Bound,
    (low, high): (i64, i64),
    snapshot: &Snapshot,
    stats: &dyn SessionStats,
    trace: &mut Trace,
) -> Option<(u32, u64)> {
    let ([plan], [chain]) = (&*bound.plan.chains, &*bound.chains) else {
        return None;
    };
    let window = match low {
        1.. => snapshot.turn_rows(low, high),
        0 => snapshot.head_rows(),
        _ => snapshot.sys_rows(),
    };
    let pieces = snapshot.pieces().len() as u64;
    trace.begin_chain(0);
    if window.start >= window.end {
        trace.counters.pieces_pruned += pieces;
        return Some((window.start, 0));
    }
    let start = window.start;
    let small = WordRun::new(&window, (low, high), Scope { snapshot, stats })?;
    let word = small.run(plan, chain, trace)?;
    trace.counters.rows_seen += u64::from(window.end - start);
    trace.counters.pieces_read += 1;
    trace.counters.pieces_pruned += pieces - 1;
    Some((start, word))
}

impl Left {
    /// `^seq` alone.
    const SEQ: Self = Self {
        rows: 0,
        root: false,
        seq: true,
        level: None,
    };

    /// How many nodes.
    fn count(self) -> u64 {
        u64::from(self.rows.count_ones()) + u64::from(self.root) + u64::from(self.seq)
    }
}

impl<'a> WordRun<'a> {
    /// The window, if it is one that can be run here: short, of one piece, no node removed from
    /// it, no implicit core in it, and without the root and `^seq`.
    #[inline(always)]
    pub(super) fn new(window: &Range<u32>, depths: (i64, i64), scope: Scope<'a>) -> Option<Self> {
        if window.end - window.start > 64 || window.start == 0 {
            return None;
        }
        let piece = &scope.snapshot.pieces()[scope.snapshot.piece_of(window.start)];
        let plain = window.end <= piece.end()
            && piece.dead.is_none()
            && !piece.segment.has_loose
            && piece.segment.cores().is_empty();
        plain.then(|| Self {
            window: window.clone(),
            depths,
            piece,
            start: window.start - piece.shift(),
            scope,
        })
    }

    /// Runs a chain: one bit for each row of the window. `None`, with nothing counted, where a
    /// step takes more than words.
    ///
    /// Tests of the depth are not asked: the window's depths lie in the chain's scope, which is
    /// what all of them allow while there is no pick.
    #[inline(never)]
    pub(super) fn run(
        &self,
        plan: &ChainPlan,
        chain: &BoundChain,
        trace: &mut Trace,
    ) -> Option<u64> {
        if !plan.plain {
            return None;
        }
        let all = u64::MAX >> (64 - (self.window.end - self.window.start));
        let mut left: Option<Left> = None;
        for (index, (plan, step)) in plan.steps.iter().zip(&chain.steps).enumerate() {
            let (StepOperator::Filter(filter), BoundStep::Filter { axis, tests, .. }) =
                (&plan.operator, step)
            else {
                return None;
            };
            if index == 0 && matches!(**tests, [BoundTest::Type(TypeTest::Seq)]) {
                let seq = self.scope.snapshot.seq_row().is_some();
                trace.step(index, || u64::from(seq), None);
                if !seq {
                    return Some(0);
                }
                left = Some(Left::SEQ);
                continue;
            }
            let (reach, level) = match left {
                None => (all, None),
                Some(left) => {
                    let level = match axis {
                        Axis::Child => self.level(left).map(|level| level + 1),
                        Axis::Descendant => None,
                    };
                    (all & self.reach(left, *axis, level), level)
                }
            };
            let (root, seq) = match filter.ambient {
                Ambient::Never => (false, false),
                ambient => (
                    left.is_none() && self.ambient(ambient, tests, Ambient::Root, trace),
                    left.is_none_or(|left| left.root)
                        && self.ambient(ambient, tests, Ambient::Seq, trace),
                ),
            };
            let kept = Left {
                rows: self.filter(tests, reach, trace),
                root,
                seq,
                level: level.or(filter.level),
            };
            trace.step(index, || kept.count(), None);
            if kept.rows == 0 && !root && !seq {
                return Some(0);
            }
            left = Some(kept);
        }
        Some(left.map_or(0, |left| left.rows))
    }

    /// Whether the root or `^seq`, which stand before the window, satisfies a step.
    fn ambient(
        &self,
        kept: Ambient,
        tests: &[BoundTest],
        only: Ambient,
        trace: &mut Trace,
    ) -> bool {
        if kept != only && kept != Ambient::Maybe {
            return false;
        }
        let row = match only {
            Ambient::Seq => self.scope.snapshot.seq_row(),
            _ => Some(0),
        };
        match (row, tests) {
            (None, _) => false,
            (Some(_), [BoundTest::Type(TypeTest::Seq)]) => only == Ambient::Seq,
            (Some(_), [BoundTest::Type(TypeTest::Root)]) => only == Ambient::Root,
            (Some(row), tests) => row_holds(tests, row, self.scope, &mut trace.counters),
        }
    }

    /// Those of `rows` that satisfy every test.
    fn filter(&self, tests: &[BoundTest], mut rows: u64, trace: &mut Trace) -> u64 {
        let segment = &*self.piece.segment;
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
            if let Some(value) = of_one_value(condition, segment) {
                rows = value.map_or(0, |posting| {
                    trace.counters.postings += 1;
                    rows & self.of_posting(posting, rows)
                });
                continue;
            }
            rows = match &Access::new(test, segment, self.scope.snapshot.cycle()) {
                Access::Never => 0,
                Access::Always => rows,
                Access::Posting(posting) => {
                    trace.counters.postings += 1;
                    rows & self.of_posting(posting, rows)
                }
                access => Ones(rows)
                    .filter(|bit| {
                        let row = self.start + bit;
                        access.holds(self.piece, row, self.scope, &mut trace.counters)
                    })
                    .fold(0, |kept, bit| kept | 1 << bit),
            };
        }
        rows
    }

    fn of_type(&self, test: TypeTest, rows: u64) -> u64 {
        // A region's window begins with the region.
        let region = u64::from(self.depths.1 <= 0);
        match test {
            TypeTest::Root | TypeTest::Seq => 0,
            TypeTest::Class(class) => self.of_class(node_class(class)),
            TypeTest::TurnOrAnchor => region | self.of_class(NodeClass::Turn),
            TypeTest::Anchor if region == 1 => 1,
            TypeTest::Anchor => self.of_class(NodeClass::Turn) & self.of_level(2, rows),
        }
    }

    /// The rows of a class.
    fn of_class(&self, class: NodeClass) -> u64 {
        let segment = &*self.piece.segment;
        if let Posting::Dense { words, .. } = segment.of_class(class) {
            return self.of_words(words);
        }
        // Where a class is rare, the column tells sooner than a set.
        let rows = self.start as usize..(self.start + self.window.end - self.window.start) as usize;
        let classes = segment.class[rows].iter().enumerate();
        classes.fold(0, |word, (bit, &of_row)| {
            word | u64::from(of_row == class as u8) << bit
        })
    }

    /// Those of `rows` on a level.
    #[inline]
    fn of_level(&self, level: u32, rows: u64) -> u64 {
        let posting = self.piece.segment.levels.get(level as usize);
        posting.map_or(0, |posting| self.of_posting(posting, rows))
    }

    /// Those of `rows` in a posting.
    #[inline]
    fn of_posting(&self, posting: &Posting, rows: u64) -> u64 {
        match posting {
            Posting::Dense { words, .. } => self.of_words(words),
            Posting::One(_) | Posting::Sparse(_) => self.one_by_one(posting, rows),
        }
    }

    fn one_by_one(&self, posting: &Posting, rows: u64) -> u64 {
        Ones(rows)
            .filter(|bit| posting.contains(self.start + bit))
            .fold(0, |kept, bit| kept | 1 << bit)
    }

    /// What words of one bit a row of the segment say of the rows from the first on.
    #[inline]
    fn of_words(&self, words: &[u64]) -> u64 {
        let (index, shift) = ((self.start / 64) as usize, self.start % 64);
        match words.get(index..).unwrap_or_default() {
            [] => 0,
            [word] => word >> shift,
            // The second in two steps, as no shift moves all 64 bits out.
            [word, next, ..] => word >> shift | next << 1 << (63 - shift),
        }
    }

    /// The level of a left context's rows, if they share one and it is at hand.
    #[inline]
    fn level(&self, left: Left) -> Option<u32> {
        // The first row of a window is a turn or a region.
        let first = if self.depths.0 > 0 { 2 } else { 1 };
        match left {
            Left { root: true, .. } | Left { seq: true, .. } => None,
            Left { rows: 1, .. } => Some(first),
            Left { level, .. } => level,
        }
    }

    /// The rows that hang from the left context; by `>`, those on `level`, if it is known.
    fn reach(&self, left: Left, axis: Axis, level: Option<u32>) -> u64 {
        // A window of one interval of depths lies below `^seq` or in a region.
        let sealed = self.depths.0 > 0;
        let mut reach = match axis {
            Axis::Descendant if left.root || left.seq && sealed => return u64::MAX,
            Axis::Child if left.seq && sealed => self.of_level(2, u64::MAX),
            Axis::Child if left.root && !sealed => 1,
            Axis::Descendant | Axis::Child => 0,
        };
        // Of rows on one level, the children are what lies below them one level on.
        let level = level.filter(|&level| level < LEVEL_POSTINGS);
        let by_rows = axis == Axis::Child && level.is_none();
        let ends = &self.piece.segment.end;
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
                // `end` is at most the window's, and `row + 1` lies before it.
                let to = u64::MAX >> (64 - (end - self.start));
                below |= to & u64::MAX << (bit + 1);
                next = end;
            }
        }
        reach | level.map_or(below, |level| self.of_level(level, below) & below)
    }
}
