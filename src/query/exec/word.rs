//! Strategy "word": chains over windows of at most 64 rows.
//!
//! A running conversation mostly asks for the newest turns, the head or `^sys`, or has few rows altogether, for
//! which setting up bit sets costs more than the rows do. Here a set of rows is one word, bit 0 is the first row
//! of the window, and a step is a few operations on words. A window is a whole snapshot of one segment, or whole
//! units of one piece, in which a separable chain finds what it finds there in a whole run. Results are those of
//! [`super::chain`].

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::access::{node_class, row_holds};
use super::cost::{WORD_ROWS, WORDS_ROWS, WORDS_SPAN};
use super::rows::MatchedRows;
use super::scan::test_word;
use super::stats::RunInput;
use super::trace::Trace;
use super::window::{at_depths, intervals, unit_of};
use crate::index::{Bits, LEVEL_POSTINGS, Ones, Posting, SnapshotPiece, UnitKind, mask};
use crate::query::ir::{Axis, DepthSet, TypeTest};
use crate::query::plan::{Bound, BoundChain, BoundPick, BoundStep, BoundTest, RootOrSeq};
use crate::tree::NodeClass;

/// At most 64 rows of a segment.
pub(super) struct WordWindow<'a> {
    /// The first row in the snapshot.
    first: u32,
    /// The number of rows, at least 1.
    len: u32,
    /// The rows below `^seq`.
    turns: u64,
    /// `^sys` and `^ah`.
    regions: u64,
    /// The root and `^seq`, if the window is the whole snapshot; else both are before it.
    root: u64,
    seq: u64,
    /// Whether it has rows at other depths than those of the chain.
    has_others: bool,
    /// The other nodes that were not removed.
    all: u64,
    piece: &'a SnapshotPiece,
    /// The first row in the segment.
    start: u32,
    input: RunInput<'a>,
}

/// The left context of a step: rows of the window, and apart from them the root and `^seq`.
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

/// Runs a plan over one window, if the snapshot has it: the first row, and one bit for each from there.
#[inline(always)]
pub(super) fn run_one(
    bound: &Bound,
    window: Option<&WordWindow<'_>>,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> (u32, u64) {
    let pieces = input.snapshot.pieces().len() as u64;
    let Some(window) = window else {
        trace.counters.pieces_pruned += pieces;
        return (0, 0);
    };
    if window.root == 0 {
        trace.counters.pieces_pruned += pieces - 1;
    }
    let mut matched = 0;
    for (group, chain) in bound.chains.iter().enumerate() {
        trace.begin_chain(group);
        matched |= window.run(chain, true, trace);
    }
    if !bound.filters.is_empty() {
        matched = window.filter(&bound.filters, matched, trace);
    }
    (window.first, matched)
}

/// The rows that the groups of a plan can match, a few of them for each interval of depths.
pub(super) struct WordSpans {
    /// From the first to the last.
    span: Range<u32>,
    /// By group, in document order; whether they are turns.
    rows: SmallVec<[(usize, bool, Range<u32>); 3]>,
}

/// The rows in which windows find all groups; why words do not fit otherwise. Linear in the pieces.
pub(super) fn span_of(bound: &Bound, input: RunInput<'_>) -> Result<WordSpans, &'static str> {
    let snapshot = input.snapshot;
    let mut spans = WordSpans {
        span: 0..0,
        rows: SmallVec::new(),
    };
    for (group, chain) in bound.chains.iter().enumerate() {
        // What has no depth but the root and `^seq` is in no window.
        let are_all = snapshot.all_have_depths() && snapshot.turns() > 0;
        if chain.scope.is_none() && !are_all {
            return Err("there are nodes without a depth, or no turns");
        }
        if chain.scope.is_none() && snapshot.end_row() > WORDS_ROWS {
            return Err("too many rows for words");
        }
        each_rows(chain, input, &mut |sealed, rows| {
            let pieces = snapshot.pieces_in(rows.clone());
            if rows.end - rows.start > WORDS_ROWS {
                Err("too many rows for words")
            } else if !pieces.iter().all(|piece| fits(bound, piece)) {
                Err("there are implicit cores, or nodes between turns")
            } else if pieces
                .iter()
                .any(|piece| piece.segment().longest_unit() > WORD_ROWS)
            {
                Err("a turn has more than 64 rows")
            } else {
                let span = &mut spans.span;
                *span = if span.start == span.end {
                    rows.clone()
                } else {
                    span.start.min(rows.start)..span.end.max(rows.end)
                };
                spans.rows.push((group, sealed, rows));
                Ok(())
            }
        })?;
    }
    // One bitmap has the rows of all windows.
    if spans.span.len() > WORDS_SPAN {
        return Err("the depths are far apart");
    }
    Ok(spans)
}

/// Visits the rows at the depths of a chain, in document order, and whether they are turns, until it fails.
fn each_rows(
    chain: &BoundChain,
    input: RunInput<'_>,
    visit: &mut impl FnMut(bool, Range<u32>) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let mut visit = |depths: (i64, i64)| {
        let rows = at_depths(input.snapshot, depths);
        if rows.is_empty() {
            return Ok(());
        }
        visit(depths.0 > 0, rows)
    };
    match &chain.scope {
        Some(depths) => intervals(depths).try_for_each(visit),
        None => [(-1, -1), (1, i64::MAX), (0, 0)]
            .into_iter()
            .try_for_each(&mut visit),
    }
}

/// Visits the windows of some rows that [`span_of`] found, in document order.
fn each_window<'a>(
    sealed: bool,
    rows: &Range<u32>,
    input: RunInput<'a>,
    visit: &mut impl FnMut(WordWindow<'a>),
) {
    for piece in input.snapshot.pieces_in(rows.clone()) {
        let (segment, shift) = (piece.segment(), piece.shift());
        let (start, end) = (rows.start.max(piece.start()), rows.end.min(piece.end()));
        let mut first = start;
        while first < end {
            let mut next = end;
            if next - first > WORD_ROWS {
                // The last unit that begins before the word ends is cut off.
                let unit = segment.unit_of(first + WORD_ROWS - shift);
                next = segment.units()[unit as usize].start + shift;
            }
            visit(WordWindow::living(piece, first..next, sealed, input));
            first = next;
        }
    }
}

#[inline(never)]
pub(super) fn run_all(
    bound: &Bound,
    spans: &WordSpans,
    input: RunInput<'_>,
    trace: &mut Trace,
) -> MatchedRows {
    let pieces = input.snapshot.pieces().len() as u64;
    let mut rows = Bits::new(spans.span.clone());
    for (group, chain) in bound.chains.iter().enumerate() {
        trace.begin_chain(group);
        let mut windows = 0;
        let own = spans.rows.iter().filter(|(of, ..)| *of == group);
        for (_, sealed, own) in own {
            each_window(*sealed, own, input, &mut |window| {
                rows.insert_word(window.first, window.run(chain, windows == 0, trace));
                windows += 1;
            });
        }
        trace.counters.pieces_pruned += pieces.saturating_sub(windows);
    }
    if !bound.filters.is_empty() {
        let counters = &mut trace.counters;
        for row in rows.clone().iter() {
            if !row_holds(&bound.filters, row, input, counters) {
                rows.remove(row);
            }
        }
    }
    MatchedRows::Bits(smallvec![rows])
}

/// Whether words can run a plan over any rows of a piece: there is nothing between turns, and no step sees an
/// implicit core. One that has no nodes below it, as in an empty head, is seen by picks only.
#[inline]
fn fits(bound: &Bound, piece: &SnapshotPiece) -> bool {
    let segment = piece.segment();
    let sees_cores = if segment.has_core_members() {
        bound.sees_cores
    } else {
        bound.picks_cores && !segment.cores().is_empty()
    };
    !segment.has_loose_units() && !sees_cores
}

impl<'a> WordWindow<'a> {
    /// A window of these rows of the snapshot, which are in a piece.
    #[inline(always)]
    pub(super) fn new(
        piece: &'a SnapshotPiece,
        rows: Range<u32>,
        sealed: bool,
        input: RunInput<'a>,
    ) -> Self {
        let len = rows.end - rows.start;
        let mut window = Self {
            first: rows.start,
            len,
            turns: if sealed { u64::MAX } else { 0 },
            // The window of a region starts with the region.
            regions: u64::from(!sealed),
            root: 0,
            seq: 0,
            has_others: false,
            all: u64::MAX >> (64 - len),
            piece,
            start: rows.start - piece.shift(),
            input,
        };
        let cores = piece.segment().cores();
        if !cores.is_empty() {
            window.all &= !window.of_posting(cores);
        }
        window
    }

    /// All rows, if they are one word of one segment in which words can run every chain.
    #[inline(always)]
    pub(super) fn whole(bound: &Bound, input: RunInput<'a>) -> Option<Self> {
        let (piece, word) = input.snapshot.as_word().filter(|_| bound.in_word)?;
        if !fits(bound, piece) {
            return None;
        }
        Some(Self {
            first: 0,
            len: input.snapshot.end_row(),
            turns: word.turns,
            regions: word.regions,
            root: 1,
            seq: word.seq,
            has_others: true,
            all: word.nodes,
            piece,
            start: 0,
            input,
        })
    }

    /// What the steps after the first find below a row, in the unit that has it; `None` if words do not fit.
    pub(super) fn after_first(
        bound: &Bound,
        row: u32,
        input: RunInput<'a>,
        trace: &mut Trace,
    ) -> Option<MatchedRows> {
        let piece = &input.snapshot.pieces()[input.snapshot.piece_of(row)];
        let (kind, unit) = unit_of(piece, row);
        let is_short = unit.end - unit.start <= WORD_ROWS;
        if !is_short
            || !matches!(kind, UnitKind::Turn | UnitKind::Head)
            || !bound.in_word
            || !fits(bound, piece)
        {
            return None;
        }
        let first = unit.start;
        let window = Self {
            // The row was found anywhere, so depths of later steps are tested.
            has_others: true,
            ..Self::living(piece, unit, kind == UnitKind::Turn, input)
        };
        let left = WordContext {
            rows: 1 << (row - first),
            root: false,
            seq: false,
            level: None,
        };
        Some(MatchedRows::Word {
            start: first,
            word: window.steps(&bound.chains[0], 1, Some(left), true, trace),
        })
    }

    /// As [`WordWindow::new`], without the nodes that were removed.
    #[inline(always)]
    fn living(
        piece: &'a SnapshotPiece,
        rows: Range<u32>,
        sealed: bool,
        input: RunInput<'a>,
    ) -> Self {
        let mut window = Self::new(piece, rows, sealed, input);
        window.all &= !piece.dead_word(window.start);
        window
    }

    /// The rows at the depths of an [interval](intervals); `Ok(None)` if the snapshot has
    /// none. Otherwise why one word does not fit.
    ///
    /// Inlined by force: passing the window through memory costs a tenth of a whole select.
    #[inline(always)]
    pub(super) fn at(
        bound: &Bound,
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
        if window.end > piece.end() || !fits(bound, piece) {
            return Err("the rows span segments, or have implicit cores");
        }
        let scope = bound.chains[0].scope.as_ref();
        Ok(Some(Self {
            has_others: scope.is_some_and(|scope| scope.ranges().len() > 1),
            ..Self::living(piece, window, depths.0 > 0, input)
        }))
    }

    /// Runs a chain that [one word](BoundChain::in_word) can run.
    #[inline]
    fn run(&self, chain: &BoundChain, is_first: bool, trace: &mut Trace) -> u64 {
        trace.counters.rows_seen += u64::from(self.len);
        trace.counters.pieces_read += 1;
        self.steps(chain, 0, None, is_first, trace)
    }

    /// Runs the steps from `from` on, after a left context.
    #[inline(never)]
    fn steps(
        &self,
        chain: &BoundChain,
        from: usize,
        mut left: Option<WordContext>,
        is_first: bool,
        trace: &mut Trace,
    ) -> u64 {
        let all = self.all;
        for (index, step) in chain.steps.iter().enumerate().skip(from) {
            let BoundStep::Filter(filter) = step else {
                continue;
            };
            let tests = &*filter.tests;
            if index == 0 && matches!(tests, [BoundTest::Type(TypeTest::Seq)]) {
                let seq = self.input.snapshot.seq_row().is_some();
                trace.step(index, || (u64::from(seq && is_first), 0), None);
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
            // The root and `^seq` are apart from the rows. `^seq` is below the root only.
            let may = |only| matches!(filter.ambient, RootOrSeq::Maybe) || filter.ambient == only;
            let (mut root, mut seq) = match filter.ambient {
                RootOrSeq::Never => (false, false),
                _ => (
                    left.is_none() && may(RootOrSeq::Root),
                    left.is_none_or(|left| left.root) && may(RootOrSeq::Seq),
                ),
            };
            let mut rows = if self.root == 0 {
                root = root && self.ambient(tests, RootOrSeq::Root, trace);
                seq = seq && self.ambient(tests, RootOrSeq::Seq, trace);
                self.filter(tests, reach, trace)
            } else {
                // In a whole snapshot they are tested with the others.
                let own = if root { self.root } else { 0 } | if seq { self.seq } else { 0 };
                let rows = self.filter(tests, reach | own, trace);
                (root, seq) = (rows & self.root != 0, rows & self.seq != 0);
                rows & all
            };
            for pick in &filter.picks {
                rows = self.pick(pick, left, rows);
            }
            let kept = WordContext {
                rows,
                root,
                seq,
                level: level.or(filter.level),
            };
            // A copy: a context that is lent has to be in memory, which costs as much as the step.
            trace.step(index, move || (kept.count(), 1), None);
            if kept.rows == 0 && !root && !seq {
                return 0;
            }
            left = Some(kept);
        }
        left.map_or(0, |left| {
            let root = if left.root { self.root } else { 0 };
            let seq = if left.seq { self.seq } else { 0 };
            left.rows | root | seq
        })
    }

    /// Keeps one of `rows` for each node of the left context, none of which is inside another; one of all without.
    fn pick(&self, pick: &BoundPick, left: Option<WordContext>, rows: u64) -> u64 {
        let Some(left) = left.filter(|left| !left.root) else {
            return picked(pick, rows);
        };
        let ends = self.piece.segment().ends();
        let mut kept = if left.seq {
            picked(pick, rows & self.turns)
        } else {
            0
        };
        for bit in Ones(left.rows) {
            let end = ends[(self.start + bit) as usize] - self.start;
            // The rows after `bit`; shifting by 64 is undefined.
            kept |= picked(pick, rows & u64::MAX << bit << 1 & u64::MAX >> (64 - end));
        }
        kept
    }

    /// Whether the root or `^seq`, as `only` says, satisfies the tests of a step. Both are before the window.
    fn ambient(&self, tests: &[BoundTest], only: RootOrSeq, trace: &mut Trace) -> bool {
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

    #[inline(always)]
    fn filter(&self, tests: &[BoundTest], mut rows: u64, trace: &mut Trace) -> u64 {
        let counters = &mut trace.counters;
        for test in tests {
            if rows == 0 {
                break;
            }
            rows = match test {
                BoundTest::Type(test) => rows & self.of_type(*test),
                // Otherwise the window is inside the intersection of all depths, as no test is after a pick.
                BoundTest::Depth(depths) if self.has_others => rows & self.of_depths(depths),
                test => test_word(test, self.piece, self.start, rows, self.input, counters),
            };
        }
        rows
    }

    fn of_type(&self, test: TypeTest) -> u64 {
        match test {
            TypeTest::Root => self.root,
            TypeTest::Seq => self.seq,
            TypeTest::Class(class) => self.of_class(node_class(class)),
            TypeTest::TurnOrAnchor => self.regions | self.of_class(NodeClass::Turn),
            TypeTest::Anchor if self.turns == 0 => self.regions,
            TypeTest::Anchor => {
                let turns = self.of_class(NodeClass::Turn) & self.of_level(2) & self.turns;
                self.regions | turns
            }
        }
    }

    /// The rows at some depths.
    fn of_depths(&self, depths: &DepthSet) -> u64 {
        let bit = |row: u32| row.saturating_sub(self.first);
        intervals(depths).fold(0, |rows, interval| {
            let at = at_depths(self.input.snapshot, interval);
            rows | mask(0, bit(at.start), bit(at.end))
        })
    }

    #[inline]
    fn of_class(&self, class: NodeClass) -> u64 {
        self.of_posting(self.piece.segment().of_class(class))
    }

    #[inline]
    fn of_level(&self, level: u32) -> u64 {
        let posting = self.piece.segment().at_level(level);
        posting.map_or(0, |posting| self.of_posting(posting))
    }

    /// The rows in a posting list, and others after the window.
    #[inline]
    fn of_posting(&self, posting: &Posting) -> u64 {
        posting.word_from(self.start)
    }

    /// The level of all rows of a left context, if it is known and has no other nodes.
    #[inline]
    fn level(&self, left: WordContext) -> Option<u32> {
        match left {
            WordContext { root: true, .. } | WordContext { seq: true, .. } => None,
            // Another window than a whole snapshot starts with a turn or a region.
            WordContext { rows: 1, .. } => Some(if self.turns == 0 { 1 } else { 2 }),
            WordContext { level, .. } => level,
        }
    }

    /// The rows on `axis` of the left context. Children are those on `level`, if it is known.
    fn reach(&self, left: WordContext, axis: Axis, level: Option<u32>) -> u64 {
        let mut reach = match axis {
            Axis::Descendant if left.root => return u64::MAX,
            Axis::Descendant if left.seq => self.turns,
            Axis::Child if left.seq => self.of_level(2) & self.turns,
            Axis::Descendant | Axis::Child => 0,
        };
        if axis == Axis::Child && left.root {
            reach |= self.of_level(1);
        }
        // The children of rows on one level are the descendants one level down.
        // A subtree is a run of bits, so descendants are masks.
        let level = level.filter(|&level| level < LEVEL_POSTINGS);
        let by_rows = axis == Axis::Child && level.is_none();
        let several = left.rows & left.rows.wrapping_sub(1);
        if axis == Axis::Descendant && several & several.wrapping_sub(1) != 0 {
            // Mostly they are all turns, and what is below them is the rest.
            let tops = self.of_level(2) & self.turns & self.all;
            if left.rows == tops {
                return reach | self.turns & !tops;
            }
        }
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
        reach | level.map_or(below, |level| self.of_level(level) & below)
    }
}

/// The row of a group that a pick keeps.
fn picked(pick: &BoundPick, mut group: u64) -> u64 {
    let n = match pick {
        BoundPick::First => 1,
        BoundPick::Nth(n) => *n,
        BoundPick::Last | BoundPick::Test(_) => {
            return group & (1 << 63_u32.saturating_sub(group.leading_zeros()));
        }
    };
    for _ in 1..n.min(65) {
        group &= group.wrapping_sub(1);
    }
    group & group.wrapping_neg()
}
