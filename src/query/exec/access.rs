//! How a test is evaluated in one segment.
//!
//! A bound test meets a segment's dictionaries and columns once and becomes an [`TestAccess`]: a
//! posting list, a union of posting lists, intervals of a packed column or, where nothing is
//! indexed, a test of each node. This file chooses accesses and tests single rows; `scan` fills
//! whole windows.

use smallvec::SmallVec;

use super::cost::fills_words;
use super::eval::{content_holds, node_holds, node_type_holds, scalar, sub_type};
use super::inner_rows::InnerRows;
use super::stats::RunInput;
use super::trace::Counters;
use crate::index::{DictColumn, IntColumn, Posting, Segment, Snapshot, SnapshotPiece, hash_text};
use crate::json::JsonValue;
use crate::query::ir::{Attr, Class, Facet, TypeTest, normal_type};
use crate::query::plan::{
    AttrCondition, BoundTest, Compare, NumberSet, ObservedNumbers, TextTest, ValueTest,
};
use crate::support::cancel::ensure;
use crate::tree::alias::CADENCE;
use crate::tree::{NodeClass, Present};

pub(super) enum TestAccess<'a> {
    /// No row satisfies it.
    Never,
    /// Every row but implicit cores satisfies it.
    Always,
    Row(u32),
    Posting(&'a Posting),
    Union(SmallVec<[&'a Posting; 8]>),
    /// Every row but implicit cores and those of several posting lists.
    Except(SmallVec<[&'a Posting; 8]>),
    /// The rows whose number in a packed column is in a set.
    Column {
        column: &'a IntColumn,
        set: &'a NumberSet,
        /// The bit of [`Present`] for rows with a value; `None` if every row has one.
        given: Option<u8>,
    },
    /// The ttl in `cycle`.
    Ttl {
        set: &'a NumberSet,
        cycle: i64,
        /// The cycles of expiry that are in the set; `None` if no word has enough ttls to be compared as one.
        counting: Option<SmallVec<[(i64, i64); 2]>>,
    },
    /// The kind, else the part of the nodeType after the colon; by dictionary code, whether
    /// the value satisfies the test.
    Kind {
        kinds: SmallVec<[bool; 16]>,
        types: SmallVec<[bool; 16]>,
    },
    /// Where a condition with selectors inside is true.
    Inner(&'a InnerRows),
    Content(&'a ValueTest),
    Node(&'a AttrCondition),
    /// The same, where only these rows can satisfy it.
    NodeOf(&'a AttrCondition, &'a Posting),
    /// The ttl, and who counts the rows that are compared.
    Observed(Box<TestAccess<'a>>, &'a ObservedNumbers),
}

#[inline]
pub(super) fn node_class(class: Class) -> NodeClass {
    match class {
        Class::Turn => NodeClass::Turn,
        Class::Container => NodeClass::Container,
        Class::Block => NodeClass::Block,
    }
}

/// The posting list of a test for one role, stored kind or key, without building an [`TestAccess`]:
/// `Some(None)` if no row has the value, `None` for any other test.
#[inline]
pub(super) fn of_one_value<'a>(
    condition: &AttrCondition,
    segment: &'a Segment,
) -> Option<Option<&'a Posting>> {
    let column = match condition.attr {
        Attr::Role => segment.roles(),
        Attr::StoredKind => segment.kinds(),
        Attr::Kind if !segment.has_sub_types() => segment.kinds(),
        Attr::Key => segment.keys(),
        _ => return None,
    };
    match &condition.compare {
        Compare::Text(test) => Some(column.rows_of(test.only()?)),
        _ => None,
    }
}

impl<'a> TestAccess<'a> {
    /// The access for `test` in a segment. Depth tests are left to windows.
    pub(super) fn new(test: &'a BoundTest, segment: &'a Segment, input: RunInput<'a>) -> Self {
        match test {
            // Rows are cut to depths by row ranges, which no list of a segment knows.
            BoundTest::Depth(_) => Self::Always,
            BoundTest::Type(test) => Self::of_type(*test, segment),
            BoundTest::Attr(condition) => {
                Self::of_condition(condition, segment, input.snapshot.cycle())
            }
            BoundTest::Inner(inner) => input
                .inner
                .get(inner.number)
                .map_or(Self::Never, Self::Inner),
        }
    }

    fn of_type(test: TypeTest, segment: &'a Segment) -> Self {
        let class = |class: NodeClass| segment.of_class(class);
        match test {
            TypeTest::Root => Self::Posting(class(NodeClass::Root)),
            TypeTest::Seq => Self::Posting(class(NodeClass::Seq)),
            TypeTest::Class(of) => Self::Posting(class(node_class(of))),
            // Callers remove nested turns: they know the rows of `^seq`.
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

    fn of_condition(condition: &'a AttrCondition, segment: &'a Segment, cycle: i64) -> Self {
        match (&condition.attr, &condition.compare) {
            (Attr::Role, Compare::Text(test)) => Self::of_dictionary(test, segment.roles()),
            (Attr::StoredKind, Compare::Text(test)) => Self::of_dictionary(test, segment.kinds()),
            (Attr::Key, Compare::Text(test)) => Self::of_dictionary(test, segment.keys()),
            (Attr::StoredType, Compare::Text(test)) => {
                Self::of_values(segment.types(), false, |text| {
                    test.holds(Some(&normal_type(text)))
                })
            }
            (Attr::NodeType, Compare::Text(test)) => {
                Self::of_values(segment.types(), false, |text| node_type_holds(test, text))
            }
            (Attr::Kind, Compare::Text(test)) => Self::of_kind(test, segment),
            (Attr::Id, Compare::Text(test)) => match test.only() {
                Some(id) => {
                    // One probe of the id directory answers for the whole segment.
                    let hash = hash_text(id);
                    match segment.find(hash, id, |_| true) {
                        None => Self::Never,
                        // The snapshot decides which of several rows is live.
                        Some(row) if segment.find(hash, id, |other| other != row).is_some() => {
                            Self::Node(condition)
                        }
                        Some(row) => Self::Row(row),
                    }
                }
                None => Self::Node(condition),
            },
            // Negative, zero and positive offsets have posting lists; other sets read the column.
            (Attr::Offset, Compare::Number(set)) => match sign_of(set) {
                Some(sign) => Self::Posting(segment.of_sign(sign)),
                None => Self::of_column(segment.offsets(), set, None),
            },
            (Attr::Priority, Compare::Number(set)) => Self::of_priorities(set, segment),
            (Attr::CreatedAtNs, Compare::Number(set)) => {
                Self::of_column(segment.creation_times(), set, None)
            }
            (Attr::CreationIndex, Compare::Number(set)) => {
                Self::of_column(segment.creation_indexes(), set, None)
            }
            (Attr::Cycle, Compare::Number(set)) => {
                Self::of_column(segment.cycles(), set, Some(Present::CYCLE))
            }
            (Attr::Bytes | Attr::Tokens, Compare::Number(set)) => {
                Self::of_column(segment.content_sizes(), set, None)
            }
            (Attr::Facet(Facet::Sdepth), Compare::Number(set)) => {
                Self::of_column(segment.levels(), set, None)
            }
            (Attr::Ttl, Compare::Number(set)) => Self::of_ttl(set, segment, cycle),
            (Attr::Ttl, Compare::Observed(numbers)) => {
                match Self::of_ttl(&numbers.set, segment, cycle) {
                    access @ Self::Ttl { .. } => Self::Observed(Box::new(access), numbers),
                    access => access,
                }
            }
            (Attr::Tags, Compare::Value(test)) => match test.only() {
                Some(tag) => segment.of_tag(tag).map_or(Self::Never, Self::Posting),
                None => Self::Node(condition),
            },
            (Attr::Content, Compare::Value(test)) => Self::Content(test),
            (Attr::Custom(name), Compare::Value(test)) => {
                Self::of_custom(name, segment, condition, test)
            }
            (Attr::Cadence, Compare::Number(set)) => {
                Self::of_field(CADENCE.name, segment, condition, |value| {
                    set.contains(value.integer())
                })
            }
            _ => Self::Node(condition),
        }
    }

    fn of_ttl(set: &'a NumberSet, segment: &'a Segment, cycle: i64) -> Self {
        // Without numbers in the set only rows without a ttl can match, and those are what is
        // left of one list.
        match (set.null, set.ranges.is_empty()) {
            (false, true) => Self::Never,
            (true, true) => Self::Except(std::iter::once(segment.with_ttl()).collect()),
            (false, false) if segment.with_ttl().is_empty() => Self::Never,
            (null, false) => Self::Ttl {
                set,
                cycle,
                counting: (null || fills_words(segment.with_ttl().len() as usize, 1))
                    .then(|| counting_down(set, cycle)),
            },
        }
    }

    /// Most rows have priority 0, and the others few different ones: these have lists.
    fn of_priorities(set: &'a NumberSet, segment: &'a Segment) -> Self {
        let lists = segment.by_priority();
        if lists.is_empty() {
            return Self::of_column(segment.priorities(), set, None);
        }
        let zero = set.ranges.contains(0);
        let chosen = lists.iter();
        let chosen = chosen.filter(|(priority, _)| set.ranges.contains(*priority) != zero);
        let chosen = chosen.map(|(_, rows)| rows).collect();
        if zero {
            Self::Except(chosen)
        } else {
            Self::union(chosen)
        }
    }

    /// The list that has every row which can satisfy the test, if one has, beside rows that do not.
    pub(super) fn within(&self, segment: &'a Segment) -> Option<&'a Posting> {
        match self {
            Self::Ttl { set, .. } if !set.null => Some(segment.with_ttl()),
            Self::NodeOf(_, rows) => Some(rows),
            Self::Observed(access, _) => access.within(segment),
            _ => None,
        }
    }

    fn of_custom(
        name: &str,
        segment: &'a Segment,
        condition: &'a AttrCondition,
        test: &ValueTest,
    ) -> Self {
        // One text among texts is the frequent case.
        if let Some(text) = test.only()
            && let Some(field) = segment.custom_attribute(name)
            && field.has_only_texts()
        {
            return field.rows_of(text).map_or(Self::Never, Self::Posting);
        }
        Self::of_field(name, segment, condition, |value| test.holds(&scalar(value)))
    }

    /// A custom attribute: by the posting lists of its values if it has few.
    fn of_field(
        name: &str,
        segment: &'a Segment,
        condition: &'a AttrCondition,
        holds: impl Fn(JsonValue<'_>) -> bool,
    ) -> Self {
        let null = holds(JsonValue::Null);
        let Some(field) = segment.custom_attribute(name) else {
            return if null { Self::Always } else { Self::Never };
        };
        // More values than are worth lists: each node is read that can match.
        if !field.has_values() {
            return if null {
                Self::Node(condition)
            } else {
                Self::NodeOf(condition, field.rows())
            };
        }
        let postings = |wanted: bool| {
            let chosen = field.values();
            let chosen = chosen.filter(move |(value, _)| holds(*value) == wanted);
            chosen.map(|(_, rows)| rows)
        };
        // A row without the field has null. Where null passes, the lists of values that do not pass
        // are excluded, so rows in no list stay.
        if null {
            Self::Except(postings(false).collect())
        } else {
            Self::union(postings(true).collect())
        }
    }

    fn of_dictionary(test: &TextTest, column: &'a DictColumn) -> Self {
        // Only these texts pass, or all but these: no other value has to be looked at.
        if let TextTest::In {
            texts,
            null: false,
            negated,
        } = test
        {
            let lists = texts.iter().filter_map(|text| column.rows_of(text));
            return if *negated {
                Self::Except(lists.collect())
            } else {
                Self::union(lists.collect())
            };
        }
        Self::of_values(column, test.holds(None), |text| test.holds(Some(text)))
    }

    /// The kind as later editions read it: the stored kind, if no nodeType of the segment has a
    /// part that decides the test otherwise.
    fn of_kind(test: &'a TextTest, segment: &'a Segment) -> Self {
        // A node has the stored kind, else the part of its nodeType after the colon. If no type of
        // the segment has a part that decides otherwise than null does, the stored kinds decide
        // alone, by their lists.
        let types = || segment.types().values();
        let null = test.holds(None);
        if !segment.has_sub_types() || types().all(|text| test.holds(sub_type(text)) == null) {
            return Self::of_dictionary(test, segment.kinds());
        }
        Self::Kind {
            kinds: segment
                .kinds()
                .values()
                .map(|kind| test.holds(Some(kind)))
                .collect(),
            types: types().map(|text| test.holds(sub_type(text))).collect(),
        }
    }

    fn of_values(column: &'a DictColumn, null: bool, holds: impl Fn(&str) -> bool) -> Self {
        // A dictionary has few values, so each is tested once instead of each row. Rows without a
        // value are in no list; where null passes they are what is left of the other lists.
        let codes = |wanted: bool| {
            column
                .values()
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
        // Every row has a number if `given` is `None`, so null alone matches none.
        if set.is_empty() || (set.ranges.is_empty() && given.is_none()) {
            return Self::Never;
        }
        if set.ranges.ranges() == [(i64::MIN, i64::MAX)] && (set.null || given.is_none()) {
            return Self::Always;
        }
        // In a small segment a column often has one value.
        if let (Some(only), None) = (column.only(), given) {
            let all = set.ranges.contains(only);
            return if all { Self::Always } else { Self::Never };
        }
        Self::Column { column, set, given }
    }

    /// Whether it can fill words, rather than test nodes one by one.
    pub(super) fn by_words(&self) -> bool {
        !matches!(self, Self::Content(_) | Self::Node(_) | Self::NodeOf(..))
    }

    /// Whether a row of the segment satisfies the test; false for implicit cores.
    #[inline]
    pub(super) fn holds(
        &self,
        piece: &SnapshotPiece,
        row: u32,
        input: RunInput<'_>,
        counters: &mut Counters,
    ) -> bool {
        let segment = &**piece.segment();
        match self {
            Self::Never => false,
            Self::Always => !segment.is_core(row),
            Self::Row(one) => *one == row,
            Self::Posting(posting) => posting.contains(row),
            Self::Union(postings) => postings.iter().any(|posting| posting.contains(row)),
            Self::Except(postings) => {
                !segment.is_core(row) && !postings.iter().any(|posting| posting.contains(row))
            }
            Self::Column { column, set, given } => {
                let given = given.is_none_or(|bit| segment.present(row).has(bit));
                !segment.is_core(row) && set.contains(given.then(|| column.get(row)))
            }
            Self::Ttl { set, cycle, .. } => {
                set.contains(segment.ttl(row, *cycle)) && !segment.is_core(row)
            }
            Self::Kind { kinds, types } => {
                !segment.is_core(row)
                    && match (segment.kinds().code(row), segment.types().code(row)) {
                        (Some(kind), _) => kinds[kind as usize],
                        (None, Some(code)) => types[code as usize],
                        (None, None) => false,
                    }
            }
            Self::Inner(rows) => !segment.is_core(row) && rows.contains(row + piece.shift()),
            Self::Observed(access, numbers) => {
                numbers.add(1);
                access.holds(piece, row, input, counters)
            }
            // These two read contents: the one thing here that takes long.
            Self::Content(test) => {
                ensure();
                counters.probes += 1;
                match segment.content(row) {
                    // An implicit core has no content.
                    None => !segment.is_core(row) && content_holds(test, None),
                    content => content_holds(test, content),
                }
            }
            Self::Node(condition) | Self::NodeOf(condition, _) => {
                ensure();
                counters.probes += 1;
                !segment.is_core(row)
                    && node_holds(
                        condition,
                        input.snapshot.node(row + piece.shift()),
                        input.stats,
                    )
            }
        }
    }
}

pub(super) fn row_holds(
    tests: &[BoundTest],
    row: u32,
    input: RunInput<'_>,
    counters: &mut Counters,
) -> bool {
    let snapshot = input.snapshot;
    let piece = &snapshot.pieces()[snapshot.piece_of(row)];
    let local = row - piece.shift();
    tests.iter().all(|test| match test {
        BoundTest::Depth(depths) => snapshot
            .depth(row)
            .is_some_and(|depth| depths.contains(depth)),
        BoundTest::Type(TypeTest::Anchor) => is_anchor(snapshot, row),
        test => TestAccess::new(test, piece.segment(), input).holds(piece, local, input, counters),
    })
}

/// Whether a row is `^sys`, `^ah` or a turn directly under `^seq`.
fn is_anchor(snapshot: &Snapshot, row: u32) -> bool {
    let node = snapshot.node(row);
    match node.class() {
        NodeClass::Sys | NodeClass::Head => true,
        // Turns under `^sys` and `^ah` have the depths of these.
        NodeClass::Turn => snapshot.depth(row) >= Some(1) && node.level() == 2,
        _ => false,
    }
}

/// The sign of offsets (see [`Segment::of_sign`]) that a set is exactly.
fn sign_of(set: &NumberSet) -> Option<usize> {
    match set.ranges.ranges() {
        [(i64::MIN, -1)] => Some(0),
        [(0, 0)] => Some(1),
        [(1, i64::MAX)] => Some(2),
        _ => None,
    }
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
