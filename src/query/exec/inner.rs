//! Conditions with selectors inside (LANGUAGE §13): the rows of a snapshot on which each is true.
//!
//! They are found once before a run, from the inside out, each in one pass over the rows that the selectors inside
//! match. A run then looks a row up like in a posting list, so every strategy that tests rows can take them.
//!
//! Bits of rows that are not alive are arbitrary. Implicit cores have bits, too: a step that may keep them looks them
//! up.

use std::collections::VecDeque;
use std::ops::Range;

use hashbrown::HashMap;

use super::axis::{NodeSet, each_core_member, end_of};
use super::chain::{Cores, LeftContext, StepRun, matches_of_chain};
use super::fill::{CoreRows, fill_cores};
use super::inner_rows::InnerRows;
use super::rows::MatchedRows;
use super::stats::RunInput;
use super::trace::Trace;
use super::window::extent;
use super::zone::signs;
use crate::index::{Bits, SnapshotPiece, UnitKind};
use crate::query::ir::{Axis, InnerKind};
use crate::query::plan::{
    Bound, BoundChain, BoundFilter, BoundInner, BoundStep, BoundTest, BoundTests,
};
use crate::support::cancel::ensure;

/// The rows of the conditions of a plan, by number; in `chunk`, which is whole units, if one is given. Linear in what
/// the selectors inside read and match.
#[cold]
#[inline(never)]
pub(super) fn inner_rows(
    bound: &Bound,
    chunk: Option<&Range<u32>>,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> Vec<InnerRows> {
    let window = match chunk {
        Some(chunk) => chunk.clone(),
        None if bound.inner_in_units => {
            let extents = bound.chains.iter();
            let extents = extents.map(|chain| {
                if chain.separable {
                    extent(chain, input.snapshot)
                } else {
                    0..input.snapshot.end_row()
                }
            });
            let hull = extents.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
            hull.unwrap_or(0..0)
        }
        None => 0..input.snapshot.end_row(),
    };
    let mut found: Vec<InnerRows> = Vec::with_capacity(bound.inner);
    // Those inside come first, so what a condition looks up is there.
    for (inner, tests) in bound.inner_tests() {
        ensure();
        let mut run = InnerRun {
            window: window.clone(),
            input: RunInput {
                inner: &found,
                ..input
            },
            trace: Trace::off(),
        };
        let rows = run.condition(inner, tests);
        trace.counters += run.trace.counters;
        found.push(rows);
    }
    found
}

struct InnerRun<'a> {
    window: Range<u32>,
    input: RunInput<'a>,
    /// Counts the work only: its steps are not those of the plan.
    trace: Trace,
}

impl InnerRun<'_> {
    /// The rows of a condition, at least those on which `tests` hold.
    fn condition(&mut self, inner: &BoundInner, tests: &[BoundTest]) -> InnerRows {
        let test = &inner.test;
        let mut naming = None;
        let rows = match test.kind {
            InnerKind::Is => {
                naming = self.naming(inner);
                self.one_of(&test.any)
            }
            InnerKind::Not => {
                let mut rows = self.everything();
                rows.and_not(&self.one_of(&test.any));
                rows
            }
            InnerKind::Has => {
                let candidates = self.candidates(tests);
                let mut rows = self.nothing();
                for chain in &test.any {
                    rows.or(&self.has(chain, candidates.as_ref()));
                }
                rows
            }
            InnerKind::After => self.after(&test.any, test.within),
            InnerKind::Before => self.before(&test.any, test.within),
            InnerKind::HasResult | InnerKind::HasCall => self.answered(test.kind, &test.any),
        };
        InnerRows::new(rows, naming)
    }

    fn nothing(&self) -> Bits {
        Bits::new(self.window.clone())
    }

    fn everything(&self) -> Bits {
        let mut rows = self.nothing();
        rows.insert_range(self.window.clone());
        rows
    }

    fn step_run(&self) -> StepRun<'_> {
        StepRun {
            window: self.window.clone(),
            input: self.input,
        }
    }

    // ---- tests of the node itself ------------------------------------------------------------

    /// The rows on which one of the tests holds; implicit cores as well, whether or not one names their class.
    fn one_of(&mut self, tests: &[BoundChain]) -> Bits {
        let mut rows = self.nothing();
        for step in tests.iter().flat_map(BoundChain::filters) {
            rows.or(&self.holding(&step.tests, CoreRows::All));
        }
        rows
    }

    /// The rows on which tests hold, wherever they are.
    fn holding(&mut self, tests: &[BoundTest], cores: CoreRows) -> Bits {
        let run = StepRun {
            window: self.window.clone(),
            input: self.input,
        };
        run.holding(tests, cores, &mut self.trace)
    }

    /// The implicit cores on which one of the tests holds that names the class of containers.
    fn naming(&self, inner: &BoundInner) -> Option<Bits> {
        let steps = || inner.test.any.iter().flat_map(BoundChain::filters);
        if !steps().any(|step| step.cores) {
            return None;
        }
        let mut naming = self.nothing();
        for step in steps().filter(|step| step.cores) {
            naming.or(&self.step_run().named_cores(&step.tests));
        }
        Some(naming)
    }

    // ---- what is below -----------------------------------------------------------------------

    /// The rows of the class that tests ask for; `None` if they ask for none.
    fn candidates(&mut self, tests: &[BoundTest]) -> Option<Bits> {
        let is_type = |test: &&BoundTest| matches!(test, BoundTest::Type(_));
        let types: BoundTests = tests.iter().filter(is_type).cloned().collect();
        (!types.is_empty()).then(|| self.holding(&types, CoreRows::All))
    }

    /// The rows below which a group has a match, its first step hanging from the row. Rows outside of
    /// `candidates` may be missing.
    fn has(&mut self, chain: &BoundChain, candidates: Option<&Bits>) -> Bits {
        if chain.filters().any(|step| !step.picks.is_empty()) {
            let candidates = match candidates {
                Some(candidates) => candidates.clone(),
                None => self.holding(&[], CoreRows::All),
            };
            self.has_picked(chain, candidates)
        } else {
            self.has_without_picks(&chain.steps, candidates)
        }
    }

    /// From the last step to the first: the rows from which the steps behind are reached.
    fn has_without_picks(&mut self, steps: &[BoundStep], candidates: Option<&Bits>) -> Bits {
        // The matches of the step behind, from which the last step is reached, and its axis.
        let mut behind: Option<(Bits, Axis)> = None;
        for step in steps.iter().rev() {
            behind = Some(match step {
                BoundStep::Filter(filter) => {
                    let mut rows = self.holding_step(filter);
                    if let Some((behind, axis)) = &behind {
                        rows.and(&self.above(behind, *axis, None));
                    }
                    (rows, filter.axis)
                }
                &BoundStep::Zone { axis, zone } => {
                    // No list of offsets has implicit cores, which are in no zone.
                    let mut members = signs(zone, &self.window, self.input);
                    match behind {
                        None => {}
                        Some((behind, Axis::Child)) => members.and(&behind),
                        Some((mut behind, Axis::Descendant)) => {
                            let above = self.above(&behind, Axis::Descendant, None);
                            behind.or(&above);
                            members.and(&behind);
                        }
                    }
                    (members, axis)
                }
            });
        }
        match behind {
            Some((rows, axis)) => self.above(&rows, axis, candidates),
            None => self.nothing(),
        }
    }

    /// The rows that a step can keep, wherever they are, before its picks.
    fn holding_step(&mut self, step: &BoundFilter) -> Bits {
        let cores = if step.cores {
            CoreRows::Named
        } else {
            CoreRows::None
        };
        self.holding(&step.tests, cores)
    }

    /// The rows that have one of `rows` below them or, with [`Axis::Child`], among their children. Implicit cores are
    /// among both. Of `candidates` only, if they are given.
    fn above(&self, rows: &Bits, axis: Axis, candidates: Option<&Bits>) -> Bits {
        let snapshot = self.input.snapshot;
        let mut out = rows.cleared();
        // Looking below a candidate costs about as much as looking above a row.
        let below = candidates
            .filter(|candidates| axis == Axis::Descendant && candidates.count() < rows.count());
        for piece in snapshot.pieces_in(self.window.clone()) {
            if let Some(candidates) = below {
                self.having_below(piece, rows, candidates, &mut out);
            } else {
                self.walk_above(piece, rows, axis, &mut out);
            }
            self.cores_above(piece, rows, axis, &mut out);
        }
        if let Some(candidates) = candidates {
            out.and(candidates);
        }
        out
    }

    /// The candidates that are not implicit cores and have one of `rows` below them.
    fn having_below(&self, piece: &SnapshotPiece, rows: &Bits, candidates: &Bits, out: &mut Bits) {
        let has_cores = !piece.segment().cores().is_empty();
        // The first of the rows after the candidate.
        let mut next = Some(0);
        candidates.for_each_in(piece.start()..piece.end(), |row| {
            if next.is_some_and(|next| next <= row) {
                next = rows.next(row + 1);
            }
            if next.is_some_and(|next| next < end_of(piece, row, self.input))
                && !(has_cores && piece.segment().is_core(row - piece.shift()))
            {
                out.insert(row);
            }
        });
    }

    fn walk_above(&self, piece: &SnapshotPiece, rows: &Bits, axis: Axis, out: &mut Bits) {
        let (segment, shift, snapshot) = (piece.segment(), piece.shift(), self.input.snapshot);
        let parent_of = |row: u32| match segment.parent_of(row - shift) {
            Some(parent) => Some(parent + shift),
            None => snapshot.outer_parent(row),
        };
        let mut last = None;
        rows.for_each_in(piece.start()..piece.end(), |row| {
            let mut at = parent_of(row);
            // Siblings mostly follow each other.
            if at == last {
                return;
            }
            last = at;
            while let Some(parent) = at
                && !out.contains(parent)
            {
                out.insert(parent);
                if axis == Axis::Child || !self.window.contains(&parent) {
                    break;
                }
                // The root and `^seq` may be in another piece.
                at = if parent < piece.start() {
                    snapshot.parent(parent)
                } else {
                    parent_of(parent)
                };
            }
        });
    }

    fn cores_above(&self, piece: &SnapshotPiece, rows: &Bits, axis: Axis, out: &mut Bits) {
        let (segment, shift) = (piece.segment(), piece.shift());
        if segment.cores().is_empty() {
            return;
        }
        segment.cores().for_each_in(piece.rows(), |core| {
            each_core_member(piece, core, |member, end| {
                let found = match axis {
                    Axis::Child => rows.contains(member + shift),
                    Axis::Descendant => {
                        let next = rows.next(member + shift);
                        next.is_some_and(|next| next < end + shift)
                    }
                };
                if found {
                    out.insert(core + shift);
                }
            });
        });
    }

    /// [`has`](Self::has) for steps of which one picks: a run of the steps below those candidates that are in no other
    /// one, then below those that are left. As many runs as candidates are inside each other; cores have their own.
    fn has_picked(&mut self, chain: &BoundChain, mut candidates: Bits) -> Bits {
        let mut cores = self.nothing();
        let window = self.window.clone();
        fill_cores(&[], CoreRows::All, &mut cores, window, self.input);
        cores.and(&candidates);
        candidates.and_not(&cores);
        let mut out = self.nothing();
        for mut rest in [candidates, cores] {
            loop {
                ensure();
                let left = self.take_outermost(&mut rest);
                if left.is_empty() {
                    break;
                }
                let context = LeftContext::Nodes(NodeSet {
                    bits: left.clone(),
                    root: false,
                    seq: false,
                });
                let run = StepRun {
                    window: self.window.clone(),
                    input: self.input,
                };
                let found = run.steps(chain, 0, context, Cores::Kept, &mut self.trace);
                out.or(&self.above(&found, Axis::Descendant, Some(&left)));
            }
        }
        out
    }

    /// Takes the rows that have something below them and are not inside another one; those that have nothing are gone.
    fn take_outermost(&self, rows: &mut Bits) -> Bits {
        let (mut outermost, mut inside) = (rows.cleared(), rows.cleared());
        let mut next = 0;
        for piece in self.input.snapshot.pieces_in(self.window.clone()) {
            rows.for_each_in(piece.start()..piece.end(), |row| {
                let end = end_of(piece, row, self.input);
                if end == row + 1 {
                    return;
                }
                if row < next {
                    return inside.insert(row);
                }
                next = end;
                outermost.insert(row);
            });
        }
        *rows = inside;
        outermost
    }

    // ---- what is before and after ------------------------------------------------------------

    /// The matches of the groups, each as if it were a whole selector.
    fn matched(&mut self, any: &[BoundChain]) -> Bits {
        let mut rows = Bits::new(0..self.input.snapshot.end_row());
        for chain in any {
            match matches_of_chain(chain, self.input, &mut self.trace) {
                MatchedRows::Bits(found) => {
                    let words = found.iter().flat_map(Bits::filled_words);
                    words.for_each(|(first, word)| rows.insert_word(first, word));
                }
                found => found.for_each(|row| rows.insert(row)),
            }
        }
        rows
    }

    /// The rows that begin after the end of a match.
    fn after(&mut self, any: &[BoundChain], within: Option<i64>) -> Bits {
        let (matched, snapshot) = (self.matched(any), self.input.snapshot);
        let mut out = self.nothing();
        let first_end = |piece: Option<&SnapshotPiece>, rows: Range<u32>| {
            let mut at = matched.next(rows.start)?;
            let mut least = None;
            // Later matches end later than they begin.
            while at < least.unwrap_or(rows.end) {
                let end = match piece {
                    Some(piece) => piece.segment().end_of(at - piece.shift()) + piece.shift(),
                    None => snapshot.end(at),
                };
                least = Some(least.map_or(end, |least: u32| least.min(end)));
                if end == at + 1 {
                    break;
                }
                at = matched.next(at + 1).unwrap_or(u32::MAX);
            }
            least
        };
        match within {
            None => {
                if let Some(end) = first_end(None, 0..snapshot.end_row()) {
                    out.insert_range(end..snapshot.end_row());
                }
            }
            Some(within) => self.each_near(within, first_end, u32::min, |rows, end| {
                out.insert_range(end.max(rows.start)..rows.end.max(end));
            }),
        }
        out
    }

    /// The rows that end before a match begins.
    fn before(&mut self, any: &[BoundChain], within: Option<i64>) -> Bits {
        let (matched, snapshot) = (self.matched(any), self.input.snapshot);
        let mut out = self.nothing();
        let last = |_: Option<&SnapshotPiece>, rows: Range<u32>| {
            let last = matched.previous(rows.end);
            last.filter(|&row| row >= rows.start)
        };
        match within {
            None => {
                if let Some(row) = last(None, 0..snapshot.end_row()) {
                    self.insert_before(0, row, &mut out);
                }
            }
            Some(within) => self.each_near(within, last, u32::max, |rows, row| {
                if row < rows.end {
                    self.insert_before(rows.start, row, &mut out);
                } else {
                    out.insert_range(rows);
                }
            }),
        }
        out
    }

    /// Adds the rows from `start` on that end before `row` begins.
    fn insert_before(&self, start: u32, row: u32, out: &mut Bits) {
        let snapshot = self.input.snapshot;
        if start >= row {
            return;
        }
        out.insert_range(start..row);
        let mut at = snapshot.parent(row);
        while let Some(parent) = at {
            out.remove(parent);
            at = snapshot.parent(parent);
        }
        // Implicit cores end with their last block.
        for piece in snapshot.pieces_in(start..row) {
            let shift = piece.shift();
            piece.segment().cores().for_each_in(piece.rows(), |core| {
                let end = piece.segment().end_of(core) + shift;
                if core + shift < row && end > row {
                    out.remove(core + shift);
                }
            });
        }
    }

    /// The rows of each depth with the depth, which ascends: `^sys`, `^ah`, and the turns from the newest, with the
    /// piece that each of these is in.
    fn units(&self) -> impl Iterator<Item = ((Option<&SnapshotPiece>, Range<u32>), i64)> {
        let snapshot = self.input.snapshot;
        let regions = [
            ((None, snapshot.sys_rows()), -1),
            ((None, snapshot.head_rows()), 0),
        ];
        let turns = snapshot.pieces().iter().rev().flat_map(|piece| {
            let segment = piece.segment();
            let is_turn = |unit: &u32| segment.units()[*unit as usize].kind == UnitKind::Turn;
            let turns = piece.units().rev().filter(is_turn);
            turns.map(move |unit| {
                let rows = segment.unit_rows(unit);
                let rows = rows.start + piece.shift()..rows.end + piece.shift();
                (Some(piece), rows)
            })
        });
        let regions = regions
            .into_iter()
            .filter(|((_, rows), _)| !rows.is_empty());
        regions.chain(turns.zip(1..))
    }

    /// Visits the units that have a value, or are near one that has: with the best of the values of those whose depths
    /// differ by at most `within`.
    fn each_near(
        &self,
        within: i64,
        value: impl Fn(Option<&SnapshotPiece>, Range<u32>) -> Option<u32>,
        better: impl Fn(u32, u32) -> u32,
        mut visit: impl FnMut(Range<u32>, u32),
    ) {
        if within == 0 {
            return self.units().for_each(|((piece, rows), _)| {
                if let Some(value) = value(piece, rows.clone()) {
                    visit(rows, value);
                }
            });
        }
        // A window over the units slides along. Of its values, those that may still be the best, each better than those
        // behind it.
        let mut candidates: VecDeque<(i64, u32)> = VecDeque::new();
        let mut coming = self.units().peekable();
        for ((_, rows), depth) in self.units() {
            let is_near = |other: i64| other <= depth.saturating_add(within);
            while let Some(((piece, rows), other)) = coming.next_if(|(_, other)| is_near(*other)) {
                let Some(value) = value(piece, rows) else {
                    continue;
                };
                while candidates
                    .back()
                    .is_some_and(|&(_, last)| better(last, value) == value)
                {
                    candidates.pop_back();
                }
                candidates.push_back((other, value));
            }
            while candidates
                .front()
                .is_some_and(|&(other, _)| other < depth.saturating_sub(within))
            {
                candidates.pop_front();
            }
            if let Some(&(_, best)) = candidates.front() {
                visit(rows, best);
            }
        }
    }

    // ---- calls and results -------------------------------------------------------------------

    /// The calls with a result, or the results with a call, on which one of the tests holds if there are any.
    fn answered(&mut self, kind: InnerKind, tests: &[BoundChain]) -> Bits {
        let mut out = self.nothing();
        let accepted = (!tests.is_empty()).then(|| self.one_of(tests));
        let accepts = |row: u32| accepted.as_ref().is_none_or(|rows| rows.contains(row));
        // The last call of each id so far: providers reuse ids, so the nearest one counts.
        let mut before: HashMap<&str, u32> = HashMap::new();
        let pieces = self.input.snapshot.pieces();
        for (at, piece) in pieces.iter().enumerate() {
            let (links, shift) = (piece.segment().calls(), piece.shift());
            let mut open: Vec<Option<u32>> = vec![None; links.ids()];
            if !before.is_empty() {
                let known = (0..).map(|id| before.get(links.text(id)).copied());
                open.iter_mut()
                    .zip(known)
                    .for_each(|(open, known)| *open = known);
            }
            for link in links.within(piece.rows()) {
                if piece.is_dead(link.row) {
                    continue;
                }
                let (row, open) = (link.row + shift, &mut open[link.id as usize]);
                if link.is_call {
                    *open = Some(row);
                } else if let Some(call) = *open {
                    match kind {
                        InnerKind::HasResult if accepts(row) => out.insert(call),
                        InnerKind::HasCall if accepts(call) => out.insert(row),
                        _ => {}
                    }
                }
            }
            if at + 1 < pieces.len() {
                let known = open.into_iter().enumerate();
                before.extend(known.filter_map(|(id, row)| Some((links.text(id), row?))));
            }
        }
        out
    }
}
