//! A segment: an immutable columnar index over a run of neighbouring units.
//!
//! Rows are dense `u32` numbers in document order, and the subtree of `row` is `row..end_of(row)`. Readers outside
//! [`crate::index`] use these methods and no fields; all are constant time unless they say otherwise:
//!
//! | question | methods |
//! |---|---|
//! | shape | [`Segment::len`], [`Segment::end_of`], [`Segment::ends`], [`Segment::unit_of`], [`Segment::unit_rows`], [`Segment::units`] |
//! | posting lists | [`Segment::of_class`], [`Segment::cores`], [`Segment::at_level`], [`Segment::levels_indexed`], [`Segment::by_priority`], [`Segment::of_sign`], [`Segment::with_children`], [`Segment::with_ttl`], [`Segment::with_stored_ttl`], [`Segment::of_tag`], [`Segment::custom_attribute`] |
//! | text columns | [`Segment::types`], [`Segment::roles`], [`Segment::kinds`], [`Segment::keys`] |
//! | integer columns | [`Segment::offsets`], [`Segment::ttls`], [`Segment::priorities`], [`Segment::cycles`], [`Segment::creation_times`], [`Segment::creation_indexes`], [`Segment::levels`], [`Segment::content_sizes`] |
//! | calls and results | [`Segment::calls`] |
//! | one row | [`Segment::id`], [`Segment::class`], [`Segment::is_core`], [`Segment::ttl`], [`Segment::present`], [`Segment::record`], [`Segment::content`] |
//! | 64 rows | [`Segment::present_word`], [`Segment::contents`] |
//! | lookup | [`Segment::find`] |
//! | exceptions | [`Segment::has_loose_units`], [`Segment::has_core_members`], [`Segment::has_irregular_cores`] |

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use super::calls::{Calls, CallsBuilder};
use super::directory::Directory;
use super::expiring::Expiring;
use super::fields::AttributePostings;
use super::ids::{IdColumn, IdView};
use super::records::NodeRecords;
use super::{Attribute, DictColumn, IntColumn, Posting};
use crate::json::JsonValue;
use crate::support::cancel::ensure;
use crate::support::macros::names;
use crate::tree::{Fields, NodeClass, NodeRecord, Present, RecordPlace, header};

/// The class code of implicit cores; [`NodeClass`] has the codes below it.
pub(super) const CORE: u8 = 7;
/// The attribute that a call and its results have in common (LANGUAGE §13).
const CALL_ID: &str = "data_call_id";
/// Levels below this one have a posting list each.
pub(crate) const LEVEL_POSTINGS: u32 = 16;

names! {
    /// What a unit is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum UnitKind: as_str {
        /// The root, the subtree of `^sys`, and the `^seq` node. Always the first unit.
        Preamble = "preamble",
        /// A turn directly under `^seq`.
        Turn = "turn",
        /// A child of `^seq` that is not a turn; it has no depth.
        Loose = "loose",
        /// `^ah`.
        Head = "head",
        /// A child of the root that is not a region; it has no depth.
        Rest = "other",
    }
}

impl UnitKind {
    /// Sort rank of units of this kind, in snapshots and segments.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Preamble => 0,
            Self::Turn | Self::Loose => 1,
            Self::Head => 2,
            Self::Rest => 3,
        }
    }
}

/// A run of rows that is added and removed as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Equal versions mean equal rows, also in different segments.
    pub version: u64,
    pub kind: UnitKind,
    pub start: u32,
    /// Number of turns among the segment's units before it.
    pub turns_before: u32,
}

/// An immutable columnar index over neighbouring units.
///
/// An implicit core (LANGUAGE §1) is a row with its own class code, placed after its turn's
/// children of negative offset; its subtree holds the turn's children of offset 0. It has no
/// id, payload or values, and is in no posting list of a value.
pub struct Segment {
    pub(super) units: Box<[Unit]>,
    pub(super) parent: Box<[u32]>,
    pub(super) end: Box<[u32]>,
    pub(super) class: Box<[u8]>,
    pub(super) present: Box<[u8]>,
    pub(super) level: IntColumn,
    /// By [`header::TEXTS`]; among the nodeTypes are those that the class implies.
    pub(super) texts: [DictColumn; header::TEXTS.len()],
    /// The codes of nodeTypes that are implied: the nodes have none of their own. At most one for each class.
    pub(super) types_implied: Box<[u32]>,
    /// By [`header::NUMBERS`].
    pub(super) numbers: [IntColumn; header::NUMBERS.len()],
    /// By class code.
    pub(super) classes: [Posting; 8],
    /// Offsets below, at and above 0.
    pub(super) signs: [Posting; 3],
    pub(super) levels: Box<[Posting]>,
    /// By priority, ascending, without 0; none if all rows have one priority, or some of them many.
    pub(super) of_priority: Box<[(i64, Posting)]>,
    pub(super) inner: Posting,
    pub(super) has_ttl: Posting,
    pub(super) ttl_stored: Posting,
    /// The rows whose ttl counts down; from the cycle on in which it expires it reads 0. Most segments have none, and
    /// a session has many segments.
    pub(super) expiring: Option<Box<Expiring>>,
    pub(super) attributes: AttributePostings,
    pub(super) ids: IdColumn,
    pub(super) directory: Directory,
    pub(super) payload: NodeRecords,
    pub(super) payload_at: Box<[RecordPlace]>,
    pub(super) irregular_cores: bool,
    pub(super) core_members: bool,
    pub(super) has_loose: bool,
    pub(super) longest_unit: u32,
    pub(super) has_sub_types: bool,
    /// See [`Segment::content_sizes`]. Boxed because few segments have it.
    pub(super) content_sizes: OnceLock<Box<IntColumn>>,
    /// See [`Segment::calls`]. As few have it.
    pub(super) calls: OnceLock<Box<Calls>>,
}

/// Getters of fields: `name: field -> type`.
macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $field:ident $([$column:expr])? -> $type:ty,)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&self) -> &$type {
            &self.$field $([$column])?
        }
    )*};
}

/// Its size: it has too many columns to read.
impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Segment");
        out.field("rows", &self.len())
            .field("units", &self.units.len());
        out.finish_non_exhaustive()
    }
}

impl Segment {
    pub fn len(&self) -> u32 {
        self.parent.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// Number of nodes: all rows but implicit cores (LANGUAGE §1).
    pub fn nodes(&self) -> u32 {
        self.len() - self.cores().len()
    }

    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    pub fn unit_rows(&self, unit: u32) -> Range<u32> {
        let start = self.units[unit as usize].start;
        let end = self
            .units
            .get(unit as usize + 1)
            .map_or(self.len(), |next| next.start);
        start..end
    }

    pub(super) fn rows_of(&self, units: &Range<u32>) -> Range<u32> {
        self.unit_rows(units.start).start..self.unit_rows(units.end - 1).end
    }

    /// The unit a row belongs to. Logarithmic in the number of units.
    pub fn unit_of(&self, row: u32) -> u32 {
        self.units.partition_point(|unit| unit.start <= row) as u32 - 1
    }

    #[inline]
    pub fn has_loose_units(&self) -> bool {
        self.has_loose
    }

    /// Whether a nodeType has a part after a colon.
    #[inline]
    pub(crate) fn has_sub_types(&self) -> bool {
        self.has_sub_types
    }

    /// The number of rows of the longest unit.
    #[inline]
    pub(crate) fn longest_unit(&self) -> u32 {
        self.longest_unit
    }

    /// Whether a turn with an implicit core has a child at offset 0 that is not a block.
    #[inline]
    pub fn has_irregular_cores(&self) -> bool {
        self.irregular_cores
    }

    /// Whether an implicit core has nodes below it. That of an empty head has none.
    #[inline]
    pub(crate) fn has_core_members(&self) -> bool {
        self.core_members
    }

    /// The row of the parent; `None` where that is in another unit, or there is none.
    pub(crate) fn parent_of(&self, row: u32) -> Option<u32> {
        Some(self.parent[row as usize]).filter(|parent| *parent != crate::tree::NONE)
    }

    /// Levels below the root.
    #[cfg(feature = "store")]
    pub(crate) fn level(&self, row: u32) -> i64 {
        self.level.get(row)
    }

    /// One past the last row of the subtree of `row`.
    #[inline]
    pub fn end_of(&self, row: u32) -> u32 {
        self.end[row as usize]
    }

    /// [`Segment::end_of`] of every row.
    #[inline]
    pub fn ends(&self) -> &[u32] {
        &self.end
    }

    #[inline]
    pub fn of_class(&self, class: NodeClass) -> &Posting {
        &self.classes[class as usize]
    }

    #[inline]
    pub fn cores(&self) -> &Posting {
        &self.classes[usize::from(CORE)]
    }

    /// The rows of a level, implicit cores included; `None` from level [`Segment::levels_indexed`] on.
    #[inline]
    pub fn at_level(&self, level: u32) -> Option<&Posting> {
        self.levels.get(level as usize)
    }

    /// Number of levels with a posting list: those that have rows, at most `LEVEL_POSTINGS`.
    #[inline]
    pub fn levels_indexed(&self) -> u32 {
        self.levels.len() as u32
    }

    /// The rows of each priority other than 0, ascending by priority; empty where there are no such lists.
    #[inline]
    pub fn by_priority(&self) -> &[(i64, Posting)] {
        &self.of_priority
    }

    /// The rows whose offset is below (0), at (1) or above (2) zero.
    #[inline]
    pub fn of_sign(&self, sign: usize) -> &Posting {
        &self.signs[sign]
    }

    /// The rows with a tag; `None` if there are none. Logarithmic in the number of tags.
    pub fn of_tag(&self, tag: &str) -> Option<&Posting> {
        let tags = &self.attributes.tags;
        let at = tags.binary_search_by(|(known, _)| (**known).cmp(tag));
        at.ok().map(|at| &tags[at].1)
    }

    /// A custom attribute, or `cadence` under its own name, whichever spelling a node has.
    /// Logarithmic in the number of attributes.
    pub fn custom_attribute(&self, name: &str) -> Option<Attribute<'_>> {
        self.attributes.find(name, &self.payload)
    }

    columns! {
        /// The nodeTypes, also those implied by the class.
        types: texts[header::NODE_TYPE] -> DictColumn,
        roles: texts[header::ROLE] -> DictColumn,
        kinds: texts[header::KIND] -> DictColumn,
        keys: texts[header::KEY] -> DictColumn,
        levels: level -> IntColumn,
        /// The offsets, 0 if absent.
        offsets: numbers[header::OFFSET] -> IntColumn,
        /// The ttls in the form of [`Segment::with_stored_ttl`]; undefined for rows without one.
        ttls: numbers[header::TTL] -> IntColumn,
        /// The priorities, 0 if absent.
        priorities: numbers[header::PRIORITY] -> IntColumn,
        /// The introducing cycles; undefined for rows without [`Present::CYCLE`].
        cycles: numbers[header::CYCLE] -> IntColumn,
        /// The creation times in nanoseconds, 0 if absent.
        creation_times: numbers[header::CREATED_AT_NS] -> IntColumn,
        /// The tie-breakers inside a cycle, 0 if absent.
        creation_indexes: numbers[header::CREATION_INDEX] -> IntColumn,
        /// The rows with children, and the root and `^seq`, whose children may be in other segments.
        with_children: inner -> Posting,
        with_ttl: has_ttl -> Posting,
        /// The rows whose ttl is the number in [`Segment::ttls`]. For other rows with a ttl the
        /// column has the cycle in which it expires.
        with_stored_ttl: ttl_stored -> Posting,
    }

    #[inline]
    pub fn id(&self, row: u32) -> &str {
        self.ids.get(row)
    }

    #[inline]
    pub(crate) fn ids(&self) -> IdView<'_> {
        self.ids.view()
    }

    /// A row with this id for which `wanted` is true; `hash` is `hash_text` of the id.
    /// A segment may have an id more than once: when a node moves, older snapshots keep the row
    /// it left, and a merge brings both together. At most one is live in a snapshot.
    #[inline]
    pub(crate) fn find(&self, hash: u64, id: &str, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let is_it =
            |row| row < self.len() && self.id(row) == id && !self.is_core(row) && wanted(row);
        self.directory.find(hash, is_it)
    }

    /// The class of a row; `None` for an implicit core.
    pub fn class(&self, row: u32) -> Option<NodeClass> {
        let code = self.class[row as usize];
        NodeClass::ALL.get(usize::from(code)).copied()
    }

    pub(super) fn node_type(&self, row: u32) -> Option<&str> {
        let code = self.types().code(row)?;
        let implied = self.types_implied.contains(&code);
        self.types().value(code).filter(|_| !implied)
    }

    #[inline]
    pub fn is_core(&self, row: u32) -> bool {
        self.class[row as usize] == CORE
    }

    #[inline]
    pub fn present(&self, row: u32) -> Present {
        Present(self.present[row as usize])
    }

    /// One bit for each of the rows `start..start + 64` that was given the field `bit`, a constant of [`Present`].
    #[inline]
    pub fn present_word(&self, start: u32, bit: u8) -> u64 {
        let present = self.present.get(start as usize..).unwrap_or(&[]);
        let bits = present.iter().take(64).enumerate();
        bits.fold(0, |word, (at, present)| {
            word | u64::from(present & bit != 0) << at
        })
    }

    #[inline]
    pub fn ttl(&self, row: u32, cycle: i64) -> Option<i64> {
        if !self.present(row).has(Present::TTL) {
            return None;
        }
        let value = self.ttls().get(row);
        // A deadline is the same number in every cycle, so a commit changes no ttl column; only this
        // subtraction differs between snapshots.
        Some(if self.ttl_stored.contains(row) {
            value
        } else {
            value.saturating_sub(cycle).max(0)
        })
    }

    /// The payload record of a row (see [`crate::tree::payload`]).
    pub fn record(&self, row: u32) -> NodeRecord<'_> {
        self.payload.record(self.payload_at[row as usize])
    }

    #[inline]
    pub fn content(&self, row: u32) -> Option<JsonValue<'_>> {
        let content = self.payload.get(self.payload_at[row as usize].content);
        (!content.is_empty()).then(|| JsonValue::stored(content))
    }

    /// The contents of some rows, as [`JsonValue::stored`] reads them; empty where there is none.
    #[inline]
    pub(crate) fn contents(&self, rows: impl Iterator<Item = u32>) -> impl Iterator<Item = &[u8]> {
        let places = rows.map(|row| self.payload_at[row as usize].content);
        self.payload.all_bytes(places)
    }

    /// The bytes of the text of each content (LANGUAGE §5), 0 for what has none. The first call reads all contents.
    pub(crate) fn content_sizes(&self) -> &IntColumn {
        self.content_sizes.get_or_init(|| {
            let sizes = (0..self.len()).map(|row| {
                ensure();
                let size = self.content(row).map_or(0, JsonValue::text_len);
                i64::try_from(size).unwrap_or(i64::MAX)
            });
            let sizes: Vec<i64> = sizes.collect();
            Box::new(IntColumn::new(&sizes))
        })
    }

    /// The calls and results. The first call reads the records of those that have an id.
    pub(crate) fn calls(&self) -> &Calls {
        self.calls.get_or_init(|| {
            let mut calls = CallsBuilder::default();
            let with_id = self.custom_attribute(CALL_ID).map(Attribute::rows);
            let mut add = |row: u32| {
                ensure();
                let is_call = match self.block_kind(row)? {
                    "call" => true,
                    "result" => false,
                    _ => return None,
                };
                let mut fields = Fields::new(self.record(row));
                let (_, id) = fields.find(|(name, _)| *name == CALL_ID)?;
                calls.add(row, is_call, id.text()?);
                Some(())
            };
            if let Some(rows) = with_id {
                rows.for_each_in(0..self.len(), |row| {
                    add(row);
                });
            }
            Box::new(calls.finish())
        })
    }

    /// The kind of a block as later editions read it.
    fn block_kind(&self, row: u32) -> Option<&str> {
        if self.class(row) != Some(NodeClass::Block) {
            return None;
        }
        let of_type = || self.types().get(row)?.split_once(':').map(|(_, kind)| kind);
        self.kinds().get(row).or_else(of_type)
    }

    /// Heap size in bytes, without payload records and id text.
    pub fn index_bytes(&self) -> usize {
        let rows = self.parent.len();
        let texts = self.texts.iter().map(DictColumn::heap_bytes);
        let numbers = self.numbers.iter().chain([&self.level]);
        let numbers = numbers.chain(self.content_sizes.get().map(|sizes| &**sizes));
        let numbers = numbers.map(IntColumn::heap_bytes);
        let columns = rows * (4 + 4 + 1 + 1 + 4 + 8) + texts.chain(numbers).sum::<usize>();
        let single = [&self.inner, &self.has_ttl, &self.ttl_stored];
        let postings: usize = self
            .classes
            .iter()
            .chain(&self.signs)
            .chain(&self.levels)
            .chain(self.of_priority.iter().map(|(_, rows)| rows))
            .chain(single)
            .map(|posting| posting.heap_bytes() + size_of::<Posting>())
            .sum();
        let others = self.attributes.heap_bytes()
            + size_of_val(&*self.types_implied)
            + self.directory.heap_bytes()
            + self.calls.get().map_or(0, |calls| calls.heap_bytes())
            + self.expiring.as_ref().map_or(0, |all| all.bytes());
        columns + postings + others + self.units.len() * size_of::<Unit>()
    }

    pub fn payload_bytes(&self) -> usize {
        self.ids.text_bytes() + self.payload.len()
    }

    /// All that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.index_bytes() + self.payload_bytes()
    }
}
