//! Chains over at most 64 rows: the newest turns, the head, `^sys`.
//!
//! What a running conversation is asked most is about a handful of rows, where setting up sets
//! and passes costs more than the rows do. Here a set of rows is one word, bit 0 being the first
//! row of the window, and a step is a few operations on it. The answers are those of
//! [`super::chain`], which takes every chain this file hands back.

use std::ops::Range;

use super::Trace;
use super::access::{Access, Scope, row_holds};
use crate::index::{Ones, Piece, Posting};
use crate::ir::{Axis, Class, TypeTest};
use crate::plan::{Ambient, BoundChain, BoundStep, BoundTest, ChainPlan, FilterPlan, StepOperator};

/// Class codes.
const TURN: usize = 4;
const VIRTUAL: usize = 7;

/// A window made from an interval of depths.
pub(super) struct Small<'a> {
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
}

impl<'a> Small<'a> {
    /// The window, if it is one that can be run here: short, of one piece, no node removed from
    /// it, no implicit core in it, and without the root and `^seq`.
    pub(super) fn new(window: &Range<u32>, depths: (i64, i64), scope: Scope<'a>) -> Option<Self> {
        if window.end - window.start > 64 || window.start == 0 {
            return None;
        }
        let piece = &scope.snapshot.pieces()[scope.snapshot.piece_of(window.start)];
        let plain = window.end <= piece.end()
            && piece.dead.is_none()
            && !piece.segment.has_loose
            && piece.segment.classes[VIRTUAL].is_empty();
        plain.then(|| Self {
            window: window.clone(),
            depths,
            piece,
            start: window.start - piece.shift(),
            scope,
        })
    }

    /// Runs a chain: one bit for each row of the window. `None` where a step takes more than
    /// words.
    pub(super) fn run(
        &self,
        plan: &ChainPlan,
        chain: &BoundChain,
        trace: &mut Trace,
    ) -> Option<u64> {
        let plain = chain.steps.iter().all(|step| match step {
            BoundStep::Filter { tests, tail, .. } => {
                tail.is_empty() && tests.iter().all(|test| self.is_plain(test))
            }
            BoundStep::Zone { .. } => false,
        });
        if !plain {
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
            let reach = all & left.map_or(all, |left| self.reach(left, *axis));
            let kept = Left {
                rows: self.filter(tests, reach, trace),
                root: left.is_none() && self.ambient(filter, tests, Ambient::Root, trace),
                seq: left.is_none_or(|left| left.root)
                    && self.ambient(filter, tests, Ambient::Seq, trace),
            };
            let ambient = u64::from(kept.root) + u64::from(kept.seq);
            trace.step(index, || u64::from(kept.rows.count_ones()) + ambient, None);
            if kept.rows == 0 && !kept.root && !kept.seq {
                return Some(0);
            }
            left = Some(kept);
        }
        Some(left.map_or(0, |left| left.rows))
    }

    /// Whether a test says the same of every row's depth as the window does.
    fn is_plain(&self, test: &BoundTest) -> bool {
        let (low, high) = self.depths;
        match test {
            BoundTest::Depth(depths) => depths
                .ranges()
                .iter()
                .any(|range| range.0 <= low && high <= range.1),
            BoundTest::Type(_) | BoundTest::Attr(_) => true,
        }
    }

    /// Whether the root or `^seq`, which stand before the window, satisfies a step.
    fn ambient(
        &self,
        filter: &FilterPlan,
        tests: &[BoundTest],
        only: Ambient,
        trace: &mut Trace,
    ) -> bool {
        if filter.ambient != only && filter.ambient != Ambient::Maybe {
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
            let test = match test {
                BoundTest::Depth(_) => continue,
                BoundTest::Type(test) => {
                    rows &= self.of_type(*test, rows);
                    continue;
                }
                BoundTest::Attr(_) => Access::new(test, segment, self.scope.snapshot.cycle()),
            };
            rows = match &test {
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
        let segment = &*self.piece.segment;
        let class = |class: usize| self.of_posting(&segment.classes[class], rows);
        // A region's window begins with the region.
        let region = u64::from(self.depths.1 <= 0);
        match test {
            TypeTest::Root | TypeTest::Seq => 0,
            TypeTest::Class(Class::Turn) => class(TURN),
            TypeTest::Class(Class::Container) => class(5),
            TypeTest::Class(Class::Block) => class(6),
            TypeTest::TurnOrAnchor => region | class(TURN),
            TypeTest::Anchor if region == 1 => 1,
            TypeTest::Anchor => class(TURN) & self.of_level(2, rows),
        }
    }

    /// Those of `rows` on a level.
    fn of_level(&self, level: usize, rows: u64) -> u64 {
        let posting = self.piece.segment.levels.get(level);
        posting.map_or(0, |posting| self.of_posting(posting, rows))
    }

    /// Those of `rows` in a posting.
    fn of_posting(&self, posting: &Posting, rows: u64) -> u64 {
        match posting {
            Posting::Dense { words, .. } => {
                let (index, shift) = ((self.start / 64) as usize, self.start % 64);
                let word = |index: usize| words.get(index).copied().unwrap_or(0);
                if shift == 0 {
                    word(index)
                } else {
                    word(index) >> shift | word(index + 1) << (64 - shift)
                }
            }
            Posting::One(_) | Posting::Sparse(_) => Ones(rows)
                .filter(|bit| posting.contains(self.start + bit))
                .fold(0, |kept, bit| kept | 1 << bit),
        }
    }

    /// The rows that hang from the left context.
    fn reach(&self, left: Left, axis: Axis) -> u64 {
        // A window of one interval of depths lies below `^seq` or in a region.
        let sealed = self.depths.0 > 0;
        let mut reach = match axis {
            Axis::Descendant if left.root || left.seq && sealed => return u64::MAX,
            Axis::Child if left.seq && sealed => self.of_level(2, u64::MAX),
            Axis::Child if left.root && !sealed => 1,
            Axis::Descendant | Axis::Child => 0,
        };
        let ends = &self.piece.segment.end;
        let mut next = 0;
        for bit in Ones(left.rows) {
            let row = self.start + bit;
            let end = ends[row as usize];
            if axis == Axis::Child {
                let mut child = row + 1;
                while child < end {
                    reach |= 1 << (child - self.start);
                    child = ends[child as usize];
                }
            } else if row >= next && end > row + 1 {
                // `end` is at most the window's, and `row + 1` lies before it.
                let to = u64::MAX >> (64 - (end - self.start));
                reach |= to & u64::MAX << (bit + 1);
                next = end;
            }
        }
        reach
    }
}
