//! How a test is answered in one segment.
//!
//! A bound test meets the segment's dictionaries and columns once per piece and becomes an
//! [`Access`]: a posting, a union of postings, intervals of a packed column, or, where nothing
//! is indexed, a question to the node itself. The cheapest access seeds a step's matches; the
//! others narrow them, by words where answers are dense and row by row where few are left.

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;

use super::SessionStats;
use super::eval::{node_holds, node_type_holds, scalar, sub_type};
use super::trace::Counters;
use crate::index::{
    Bits, DictColumn, IntColumn, Ones, Piece, Posting, Segment, Snapshot, each_word, hash_id,
};
use crate::ir::{Attr, Class, Facet, TypeTest, normal_type};
use crate::plan::{
    Ambient, Bound, BoundStep, BoundTest, Compare, Condition, FilterPlan, NumberSet, StepOperator,
    TextTest,
};
use crate::tree::alias::CADENCE;
use crate::tree::{NodeClass, Present};

/// How a test is answered in one segment.
pub(super) enum Access<'a> {
    /// By no row.
    Never,
    /// By every real row.
    Always,
    /// By one row.
    Row(u32),
    /// By the rows of a posting.
    Posting(&'a Posting),
    /// By the rows of one of several postings.
    Union(SmallVec<[&'a Posting; 8]>),
    /// By every real row but those of several postings.
    Except(SmallVec<[&'a Posting; 8]>),
    /// By a packed column.
    Column {
        column: &'a IntColumn,
        set: Cow<'a, NumberSet>,
        /// The bit that tells whether a row has a value; none where every row has one.
        given: Option<u8>,
    },
    /// By the ttl, which counts down.
    Ttl { set: &'a NumberSet, cycle: i64 },
    /// By the kind, else by the part of the nodeType behind the colon.
    Kind {
        kinds: SmallVec<[bool; 16]>,
        types: SmallVec<[bool; 16]>,
    },
    /// By asking the node.
    Node(&'a Condition),
}

/// The class of nodes that a selector's class means.
#[inline]
pub(super) fn node_class(class: Class) -> NodeClass {
    match class {
        Class::Turn => NodeClass::Turn,
        Class::Container => NodeClass::Container,
        Class::Block => NodeClass::Block,
    }
}

/// The rows of a test for one role, stored kind or key, without the detour of an [`Access`]:
/// `Some(None)` where no row has the value, `None` for every other test.
#[inline]
pub(super) fn of_one_value<'a>(
    condition: &Condition,
    segment: &'a Segment,
) -> Option<Option<&'a Posting>> {
    let column = match condition.attr {
        Attr::Role => &segment.roles,
        Attr::StoredKind => &segment.kinds,
        Attr::Key => &segment.keys,
        _ => return None,
    };
    match &condition.compare {
        Compare::Text(test) => Some(column.rows_of(test.only()?)),
        _ => None,
    }
}

/// What asking needs to know.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) stats: &'a dyn SessionStats,
}

impl<'a> Access<'a> {
    /// The access of `test` in a segment. Depth tests are answered by windows, not here.
    pub(super) fn new(test: &'a BoundTest, segment: &'a Segment, cycle: i64) -> Self {
        match test {
            BoundTest::Depth(_) => Self::Always,
            BoundTest::Type(test) => Self::of_type(*test, segment),
            BoundTest::Attr(condition) => Self::of_condition(condition, segment, cycle),
        }
    }

    fn of_type(test: TypeTest, segment: &'a Segment) -> Self {
        let class = |class: NodeClass| segment.of_class(class);
        match test {
            TypeTest::Root => Self::Posting(class(NodeClass::Root)),
            TypeTest::Seq => Self::Posting(class(NodeClass::Seq)),
            TypeTest::Class(of) => Self::Posting(class(node_class(of))),
            // Nested turns are taken out by the caller, which knows what is under `^seq`.
            TypeTest::Anchor | TypeTest::TurnOrAnchor => {
                let regions = [class(NodeClass::Sys), class(NodeClass::Head)];
                let turns = class(NodeClass::Turn);
                if regions.iter().all(|region| region.is_empty()) {
                    Self::Posting(turns)
                } else {
                    Self::Union(regions.into_iter().chain([turns]).collect())
                }
            }
        }
    }

    fn of_condition(condition: &'a Condition, segment: &'a Segment, cycle: i64) -> Self {
        match (&condition.attr, &condition.compare) {
            (Attr::Role, Compare::Text(test)) => Self::of_dictionary(test, &segment.roles),
            (Attr::StoredKind, Compare::Text(test)) => Self::of_dictionary(test, &segment.kinds),
            (Attr::Key, Compare::Text(test)) => Self::of_dictionary(test, &segment.keys),
            (Attr::StoredType, Compare::Text(test)) => {
                Self::of_values(&segment.types, false, |text| {
                    test.holds(Some(&normal_type(text)))
                })
            }
            (Attr::NodeType, Compare::Text(test)) => {
                Self::of_values(&segment.types, false, |text| node_type_holds(test, text))
            }
            (Attr::Kind, Compare::Text(test)) => Self::of_kind(test, segment),
            (Attr::Id, Compare::Text(test)) => match test.only() {
                Some(id) => {
                    let hash = hash_id(id);
                    match segment.find(hash, id, |_| true) {
                        None => Self::Never,
                        // Which of several rows is live depends on the snapshot.
                        Some(row) if segment.find(hash, id, |other| other != row).is_some() => {
                            Self::Node(condition)
                        }
                        Some(row) => Self::Row(row),
                    }
                }
                None => Self::Node(condition),
            },
            (Attr::Offset, Compare::Number(set)) => match sign_of(set) {
                Some(sign) => Self::Posting(&segment.signs[sign]),
                None => Self::of_column(&segment.offset, set, None),
            },
            (Attr::Priority, Compare::Number(set)) => Self::of_column(&segment.priority, set, None),
            (Attr::CreatedAtNs, Compare::Number(set)) => {
                Self::of_column(&segment.created_at_ns, set, None)
            }
            (Attr::CreationIndex, Compare::Number(set)) => {
                Self::of_column(&segment.creation_index, set, None)
            }
            (Attr::Cycle, Compare::Number(set)) => {
                Self::of_column(&segment.cycle, set, Some(Present::CYCLE))
            }
            (Attr::Facet(Facet::Sdepth), Compare::Number(set)) => {
                Self::of_column(&segment.level, set, None)
            }
            (Attr::Ttl, Compare::Number(set)) => match (set.null, set.ranges.is_empty()) {
                (false, true) => Self::Never,
                (true, true) => Self::Except(std::iter::once(&segment.has_ttl).collect()),
                _ => Self::Ttl { set, cycle },
            },
            (Attr::Tags, Compare::Value(test)) => match test.texts() {
                Some(texts) if texts.len() == 1 => {
                    match segment
                        .tags
                        .binary_search_by(|(tag, _)| (**tag).cmp(texts[0]))
                    {
                        Ok(at) => Self::Posting(&segment.tags[at].1),
                        Err(_) => Self::Never,
                    }
                }
                _ => Self::Node(condition),
            },
            (Attr::Custom(name), Compare::Value(test)) => {
                Self::of_field(name, segment, condition, |json| test.holds(&scalar(json)))
            }
            (Attr::Cadence, Compare::Number(set)) => {
                Self::of_field(CADENCE.name, segment, condition, |json| {
                    set.contains(json.parse().ok())
                })
            }
            _ => Self::Node(condition),
        }
    }

    /// A test of a custom attribute: by the postings of its values while there are few.
    fn of_field(
        name: &str,
        segment: &'a Segment,
        condition: &'a Condition,
        holds: impl Fn(&str) -> bool,
    ) -> Self {
        let null = holds("null");
        let Some(field) = segment.custom(name) else {
            return if null { Self::Always } else { Self::Never };
        };
        if field.values.is_empty() {
            return Self::Node(condition);
        }
        let chosen = field.values.iter().zip(&field.postings);
        let postings = |wanted: bool| {
            chosen
                .clone()
                .filter(move |(json, _)| holds(json) == wanted)
                .map(|(_, rows)| rows)
        };
        if null {
            Self::Except(postings(false).collect())
        } else {
            Self::union(postings(true).collect())
        }
    }

    fn of_dictionary(test: &TextTest, column: &'a DictColumn) -> Self {
        if let Some(text) = test.only() {
            return column.rows_of(text).map_or(Self::Never, Self::Posting);
        }
        Self::of_values(column, test.holds(None), |text| test.holds(Some(text)))
    }

    /// The kind as the later editions read it. Where no nodeType has a part that could count as
    /// one, that is the stored kind.
    fn of_kind(test: &'a TextTest, segment: &'a Segment) -> Self {
        let types = segment.types.values();
        let null = test.holds(None);
        if types.iter().all(|text| test.holds(sub_type(text)) == null) {
            return Self::of_dictionary(test, &segment.kinds);
        }
        Self::Kind {
            kinds: segment
                .kinds
                .values()
                .iter()
                .map(|kind| test.holds(Some(kind)))
                .collect(),
            types: types
                .iter()
                .map(|text| test.holds(sub_type(text)))
                .collect(),
        }
    }

    fn of_values(column: &'a DictColumn, null: bool, holds: impl Fn(&str) -> bool) -> Self {
        let codes = |wanted: bool| {
            column
                .values()
                .iter()
                .enumerate()
                .filter(|(_, value)| holds(value) == wanted)
                .map(|(code, _)| column.posting(code as u32))
                .collect::<SmallVec<[&'a Posting; 8]>>()
        };
        if null {
            Self::Except(codes(false))
        } else {
            Self::union(codes(true))
        }
    }

    fn union(postings: SmallVec<[&'a Posting; 8]>) -> Self {
        match postings.as_slice() {
            [] => Self::Never,
            [posting] => Self::Posting(posting),
            _ => Self::Union(postings),
        }
    }

    fn of_column(column: &'a IntColumn, set: &'a NumberSet, given: Option<u8>) -> Self {
        if set.is_empty() || (set.ranges.is_empty() && given.is_none()) {
            return Self::Never;
        }
        if set.ranges.as_slice() == [(i64::MIN, i64::MAX)] && (set.null || given.is_none()) {
            return Self::Always;
        }
        Self::Column {
            column,
            set: Cow::Borrowed(set),
            given,
        }
    }

    /// At most how many rows of the whole segment it answers for; `None` where that takes
    /// looking at rows.
    pub(super) fn estimate(&self) -> Option<u32> {
        match self {
            Self::Never => Some(0),
            Self::Row(_) => Some(1),
            Self::Posting(posting) => Some(posting.len()),
            Self::Union(postings) => Some(postings.iter().map(|posting| posting.len()).sum()),
            _ => None,
        }
    }

    /// Whether matches are found faster by filling words than by asking rows.
    pub(super) fn by_words(&self) -> bool {
        !matches!(self, Self::Node(_))
    }

    /// Puts the rows of `piece` it answers for into `out`.
    pub(super) fn fill(
        &self,
        piece: &Piece,
        out: &mut Bits,
        scope: Scope<'_>,
        counters: &mut Counters,
    ) {
        let (rows, shift) = (piece.rows.clone(), piece.shift());
        let segment = &*piece.segment;
        match self {
            Self::Never => {}
            Self::Always => {
                let virtuals = segment.cores();
                out.insert_range(piece.base..piece.end());
                if !virtuals.is_empty() {
                    virtuals.for_each_in(rows, |row| out.remove(row + shift));
                }
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
                let mut not = out.cleared();
                for posting in postings {
                    posting.or_into(&mut not, rows.clone(), shift);
                }
                let mut all = out.cleared();
                Self::Always.fill(piece, &mut all, scope, counters);
                all.and_not(&not);
                out.or(&all);
            }
            Self::Column { column, set, given } => {
                let virtuals = segment.cores();
                each_word(out, rows.clone(), shift, |index, mask, word| {
                    let start = index * 64;
                    let mut found = among(column, start, segment.len(), &set.ranges);
                    if let Some(bit) = *given {
                        let present = segment.present.get(start as usize..).unwrap_or(&[]);
                        let mut has = 0_u64;
                        for (at, present) in present.iter().take(64).enumerate() {
                            has |= u64::from(present & bit != 0) << at;
                        }
                        found = if set.null {
                            found & has | !has
                        } else {
                            found & has
                        };
                    }
                    *word |= found & mask;
                });
                if !virtuals.is_empty() {
                    virtuals.for_each_in(rows, |row| out.remove(row + shift));
                }
            }
            Self::Ttl { set, cycle } => {
                if set.null {
                    Access::Except(std::iter::once(&segment.has_ttl).collect())
                        .fill(piece, out, scope, counters);
                }
                counters.postings += 1;
                fill_ttl(set, *cycle, segment, rows, shift, out);
            }
            Self::Kind { kinds, types } => {
                let mut own = out.cleared();
                let mut derived = out.cleared();
                for (code, holds) in kinds.iter().enumerate() {
                    let posting = segment.kinds.posting(code as u32);
                    counters.postings += 1;
                    posting.or_into(&mut own, rows.clone(), shift);
                    if *holds {
                        posting.or_into(out, rows.clone(), shift);
                    }
                }
                for (code, holds) in types.iter().enumerate() {
                    if *holds {
                        counters.postings += 1;
                        segment.types.posting(code as u32).or_into(
                            &mut derived,
                            rows.clone(),
                            shift,
                        );
                    }
                }
                derived.and_not(&own);
                out.or(&derived);
                let virtuals = segment.cores();
                if !virtuals.is_empty() {
                    virtuals.for_each_in(rows, |row| out.remove(row + shift));
                }
            }
            Self::Node(_) => {
                let start = out.start().max(piece.base) - shift;
                let end = out.end().min(piece.end()).saturating_sub(shift);
                for row in start..end {
                    if self.holds(piece, row, scope, counters) {
                        out.insert(row + shift);
                    }
                }
            }
        }
    }

    /// Keeps the rows of a segment, all of them real, that it answers for. As [`Access::holds`]
    /// of each, but with one decision for all on how to ask.
    pub(super) fn retain(
        &self,
        rows: &mut SmallVec<[u32; 16]>,
        piece: &Piece,
        scope: Scope<'_>,
        counters: &mut Counters,
    ) {
        match self {
            Self::Always => {}
            Self::Never => rows.clear(),
            Self::Posting(Posting::Dense { words, .. }) => rows.retain(|row| {
                let word = words.get((*row / 64) as usize);
                word.is_some_and(|word| word >> (*row % 64) & 1 == 1)
            }),
            Self::Column {
                column,
                set,
                given: None,
            } => match set.ranges.as_slice() {
                &[(low, high)] => column.retain(rows, low, high),
                _ => rows.retain(|row| set.contains(Some(column.get(*row)))),
            },
            access => rows.retain(|row| access.holds(piece, *row, scope, counters)),
        }
    }

    /// Whether it answers for one real row of the segment.
    #[inline]
    pub(super) fn holds(
        &self,
        piece: &Piece,
        row: u32,
        scope: Scope<'_>,
        counters: &mut Counters,
    ) -> bool {
        let segment = &*piece.segment;
        match self {
            Self::Never => false,
            Self::Always => !segment.is_virtual(row),
            Self::Row(one) => *one == row,
            Self::Posting(posting) => posting.contains(row),
            Self::Union(postings) => postings.iter().any(|posting| posting.contains(row)),
            Self::Except(postings) => {
                !segment.is_virtual(row) && !postings.iter().any(|posting| posting.contains(row))
            }
            Self::Column { column, set, given } => {
                let given = given.is_none_or(|bit| segment.present[row as usize] & bit != 0);
                !segment.is_virtual(row) && set.contains(given.then(|| column.get(row)))
            }
            Self::Ttl { set, cycle } => {
                !segment.is_virtual(row) && set.contains(segment.ttl(row, *cycle))
            }
            Self::Kind { kinds, types } => {
                !segment.is_virtual(row)
                    && match (segment.kinds.code(row), segment.types.code(row)) {
                        (Some(kind), _) => kinds[kind as usize],
                        (None, Some(code)) => types[code as usize],
                        (None, None) => false,
                    }
            }
            Self::Node(condition) => {
                counters.probes += 1;
                !segment.is_virtual(row)
                    && node_holds(
                        condition,
                        scope.snapshot.node(row + piece.shift()),
                        scope.stats,
                    )
            }
        }
    }
}

/// Intervals up to which it is cheaper to compare a word of rows with each than to look up row by
/// row.
const FEW_INTERVALS: usize = 12;

/// Which of the 64 rows from `start` hold a number of one of `ranges`, sorted intervals. Bits of
/// rows past the end, `rows`, mean nothing.
fn among(column: &IntColumn, start: u32, rows: u32, ranges: &[(i64, i64)]) -> u64 {
    if ranges.len() <= FEW_INTERVALS {
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

/// Of this many rows at least one must be meant, or they are cheaper to ask one by one than to
/// compare a word at a time.
const WORTH_A_WORD: u32 = 8;

/// Puts the rows with a ttl in `set` into `out`.
fn fill_ttl(
    set: &NumberSet,
    cycle: i64,
    segment: &Segment,
    rows: Range<u32>,
    shift: u32,
    out: &mut Bits,
) {
    let Posting::Dense { words: given, .. } = &segment.has_ttl else {
        let start = out.start().saturating_sub(shift).max(rows.start);
        let end = out.end().saturating_sub(shift).min(rows.end);
        segment.has_ttl.for_each_in(start..end, |row| {
            if set.contains(segment.ttl(row, cycle)) {
                out.insert(row + shift);
            }
        });
        return;
    };
    let counting = counting_down(set, cycle);
    let none_stored = segment.ttl_stored.is_empty();
    let few = segment.has_ttl.len() * WORTH_A_WORD < segment.len();
    each_word(out, rows, shift, |index, mask, word| {
        let given = given.get(index as usize).copied().unwrap_or(0) & mask;
        if given == 0 {
            return;
        }
        let among = |ranges: &[(i64, i64)]| match ranges {
            &[(low, high)] if few => Ones(given).fold(0, |found, bit| {
                let number = segment.ttl.get(index * 64 + bit);
                found | u64::from(low <= number && number <= high) << bit
            }),
            _ => among(&segment.ttl, index * 64, segment.len(), ranges),
        };
        let stored = if none_stored {
            0
        } else {
            segment.ttl_stored.word(index) & given
        };
        let mut found = 0;
        if stored != given {
            found |= among(&counting) & !stored;
        }
        if stored != 0 {
            found |= among(&set.ranges) & stored;
        }
        *word |= found & given;
    });
}

/// The cycles to run out in of ttls that read as a number of `set` in `cycle`: the number is
/// what is left until then, and never below 0.
fn counting_down(set: &NumberSet, cycle: i64) -> SmallVec<[(i64, i64); 2]> {
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
        .iter()
        .filter_map(|&(low, high)| Some((from(low)?, to(high)?)))
        .collect()
}

/// Whether every one of `tests`, but for depth tests, holds for a real row.
pub(super) fn row_holds(
    tests: &[BoundTest],
    row: u32,
    scope: Scope<'_>,
    counters: &mut Counters,
) -> bool {
    let snapshot = scope.snapshot;
    let piece = &snapshot.pieces()[snapshot.piece_of(row)];
    let local = row - piece.shift();
    tests.iter().all(|test| match test {
        BoundTest::Depth(depths) => snapshot
            .depth(row)
            .is_some_and(|depth| depths.contains(depth)),
        BoundTest::Type(TypeTest::Anchor) => is_anchor(snapshot, row),
        test => {
            Access::new(test, &piece.segment, snapshot.cycle()).holds(piece, local, scope, counters)
        }
    })
}

/// Whether a row is `^sys`, `^ah` or a turn directly under `^seq`.
pub(super) fn is_anchor(snapshot: &Snapshot, row: u32) -> bool {
    use crate::tree::NodeClass;
    let node = snapshot.node(row);
    match node.class() {
        NodeClass::Sys | NodeClass::Head => true,
        NodeClass::Turn => snapshot.depth(row).is_some() && node.level() == 2,
        _ => false,
    }
}

/// Which of pre, core and post a set of offsets is exactly.
fn sign_of(set: &NumberSet) -> Option<usize> {
    match set.ranges.as_slice() {
        [(i64::MIN, -1)] => Some(0),
        [(0, 0)] => Some(1),
        [(1, i64::MAX)] => Some(2),
        _ => None,
    }
}

/// The number of matches of a plan that is one posting of whole pieces: no row is looked at.
pub(super) fn count(bound: &Bound, snapshot: &Snapshot) -> Option<u64> {
    let ([chain], [plan]) = (&*bound.chains, &*bound.plan.chains) else {
        return None;
    };
    let ([BoundStep::Filter { tests, tail, .. }], [step]) = (&*chain.steps, &*plan.steps) else {
        return None;
    };
    let StepOperator::Filter(FilterPlan { ambient, .. }) = &step.operator else {
        return None;
    };
    let simple = tail.is_empty()
        && bound.filters.is_empty()
        && bound.window.is_none()
        && !bound.plan.unique
        && plan.scope.is_none()
        && *ambient == Ambient::Never;
    let [test @ BoundTest::Type(TypeTest::Class(_))] = &**tests else {
        return None;
    };
    if !simple {
        return None;
    }
    let mut total = 0;
    for piece in snapshot.pieces() {
        if piece.dead.is_some() || piece.rows != (0..piece.segment.len()) {
            return None;
        }
        total += u64::from(Access::new(test, &piece.segment, snapshot.cycle()).estimate()?);
    }
    Some(total)
}
