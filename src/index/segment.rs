//! A segment: an immutable columnar index over a run of neighbouring units.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::ids::{IdView, Ids};
use super::{DictColumn, IntColumn, Posting};
use crate::tree::{NodeClass, Present};

/// The hasher of every id directory, so that an id is hashed once for all segments. Seeded once
/// a process; nothing that leaves the engine depends on its order.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// The shared hasher.
pub(crate) fn hasher() -> &'static DefaultHashBuilder {
    &HASHER
}

/// Class code of implicit cores, behind those of [`NodeClass`].
pub(crate) const VIRTUAL: u8 = 7;
/// Levels below this one have a posting each.
pub(crate) const LEVEL_POSTINGS: u32 = 16;

/// What a unit is: the parts a snapshot is put together from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitKind {
    /// The root, `^sys` with all below it, and the `^seq` node: one unit, always the first.
    Preamble,
    /// A turn directly under `^seq`.
    Turn,
    /// Anything else directly under `^seq`; it has no depth.
    Loose,
    /// `^ah`.
    Head,
    /// Another child of the root, behind the regions; it has no depth.
    Rest,
}

impl UnitKind {
    /// Where units of this kind stand in a snapshot, and so in a segment.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Preamble => 0,
            Self::Turn | Self::Loose => 1,
            Self::Head => 2,
            Self::Rest => 3,
        }
    }
}

/// A run of rows that came and goes together.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Equal versions mean equal rows, in whatever segment they stand.
    pub version: u64,
    /// What it is.
    pub kind: UnitKind,
    /// Its first row.
    pub start: u32,
    /// How many of the segment's units before it are turns.
    pub turns_before: u32,
}

/// A custom attribute of a segment.
#[derive(Clone, Debug)]
pub struct Field {
    /// The attribute's name.
    pub name: Box<str>,
    /// The rows that have it, be it null.
    pub rows: Posting,
    /// Its distinct values as JSON text, while they are few and short; else empty.
    pub values: Box<[Box<str>]>,
    /// The rows of each of `values`.
    pub postings: Box<[Posting]>,
}

/// An immutable columnar index over neighbouring units, rows dense in document order.
///
/// An implicit core (LANGUAGE §1) is a row of its own, of a class of its own, behind its turn's
/// children of negative offset; its interval spans the turn's children of offset 0. It has no
/// id, no payload and no values, and is in no posting but its class's.
#[derive(Debug)]
pub struct Segment {
    pub(crate) units: Box<[Unit]>,
    pub(crate) parent: Box<[u32]>,
    pub(crate) end: Box<[u32]>,
    pub(crate) class: Box<[u8]>,
    pub(crate) present: Box<[u8]>,
    pub(crate) level: IntColumn,
    pub(crate) types: DictColumn,
    /// For each value of `types`: whether the nodes came without a nodeType and read as this one.
    pub(crate) type_implied: Box<[bool]>,
    pub(crate) roles: DictColumn,
    pub(crate) kinds: DictColumn,
    pub(crate) keys: DictColumn,
    pub(crate) offset: IntColumn,
    pub(crate) ttl: IntColumn,
    pub(crate) priority: IntColumn,
    pub(crate) cycle: IntColumn,
    pub(crate) created_at_ns: IntColumn,
    pub(crate) creation_index: IntColumn,
    /// By class code.
    pub(crate) classes: [Posting; 8],
    /// Offsets below, at and above 0.
    pub(crate) signs: [Posting; 3],
    /// By level, implicit cores included.
    pub(crate) levels: Box<[Posting]>,
    /// Rows with children.
    pub(crate) inner: Posting,
    /// Rows with a ttl.
    pub(crate) has_ttl: Posting,
    /// Rows whose ttl reads as stored; the others' column holds the cycle it runs out in.
    pub(crate) ttl_stored: Posting,
    /// The last cycle a ttl that counts down runs out in; from then on all of them read 0.
    pub(crate) counts_until: i64,
    /// Rows with tags, be the list empty.
    pub(crate) has_tags: Posting,
    /// By tag, sorted by tag.
    pub(crate) tags: Box<[(Box<str>, Posting)]>,
    /// Custom attributes, sorted by name.
    pub(crate) fields: Box<[Field]>,
    pub(crate) ids: Ids,
    pub(crate) directory: HashTable<u32>,
    pub(crate) payload: Arc<Vec<u8>>,
    pub(crate) payload_at: Box<[(u32, u32)]>,
    /// Whether a node that is no block stands at offset 0 in a turn with an implicit core.
    pub(crate) irregular_cores: bool,
    /// Whether a unit is loose.
    pub(crate) has_loose: bool,
}

impl Segment {
    /// How many rows, implicit cores included.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.parent.len() as u32
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// The units, in document order.
    #[must_use]
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The rows of a unit.
    #[must_use]
    pub fn unit_rows(&self, unit: u32) -> Range<u32> {
        let start = self.units[unit as usize].start;
        let end = self
            .units
            .get(unit as usize + 1)
            .map_or(self.len(), |next| next.start);
        start..end
    }

    /// How many of its rows are nodes: all but implicit cores, which nothing counts
    /// (LANGUAGE §1).
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.len() - self.classes[usize::from(VIRTUAL)].len()
    }

    /// The rows of a class.
    #[inline]
    #[must_use]
    pub fn of_class(&self, class: NodeClass) -> &Posting {
        &self.classes[class as usize]
    }

    /// The rows of implicit cores.
    #[inline]
    #[must_use]
    pub fn cores(&self) -> &Posting {
        &self.classes[usize::from(VIRTUAL)]
    }

    /// The unit a row belongs to. Logarithmic in the number of units.
    #[must_use]
    pub fn unit_of(&self, row: u32) -> u32 {
        self.units.partition_point(|unit| unit.start <= row) as u32 - 1
    }

    /// The id of a row; empty for an implicit core.
    #[inline]
    #[must_use]
    pub fn id(&self, row: u32) -> &str {
        self.ids.get(row)
    }

    /// The ids of all rows.
    #[inline]
    pub(crate) fn ids(&self) -> IdView<'_> {
        self.ids.view()
    }

    /// The row of an id that is `wanted`, given its hash by the shared hasher. A segment may hold
    /// an id more than once: when a node moves, the row it left stays for older snapshots, and a
    /// merge brings both together. At most one of them is live in a snapshot.
    #[inline]
    pub(crate) fn find(&self, hash: u64, id: &str, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        self.directory
            .find(hash, |&row| self.id(row) == id && wanted(row))
            .copied()
    }

    /// The class of a row; `None` for an implicit core.
    #[must_use]
    pub fn class(&self, row: u32) -> Option<NodeClass> {
        Some(match self.class[row as usize] {
            0 => NodeClass::Root,
            1 => NodeClass::Sys,
            2 => NodeClass::Seq,
            3 => NodeClass::Head,
            4 => NodeClass::Turn,
            5 => NodeClass::Container,
            6 => NodeClass::Block,
            _ => return None,
        })
    }

    /// Whether a row is an implicit core.
    #[inline]
    #[must_use]
    pub fn is_virtual(&self, row: u32) -> bool {
        self.class[row as usize] == VIRTUAL
    }

    /// Which fields the node of a row came with.
    #[must_use]
    pub fn present(&self, row: u32) -> Present {
        Present(self.present[row as usize])
    }

    /// The ttl of a row as it reads in `cycle`.
    #[inline]
    #[must_use]
    pub fn ttl(&self, row: u32, cycle: i64) -> Option<i64> {
        if !self.present(row).has(Present::TTL) {
            return None;
        }
        let value = self.ttl.get(row);
        Some(if self.ttl_stored.contains(row) {
            value
        } else {
            value.saturating_sub(cycle).max(0)
        })
    }

    /// The payload record of a row (see [`crate::tree::Tree`]).
    #[must_use]
    pub fn payload(&self, row: u32) -> &[u8] {
        let (start, end) = self.payload_at[row as usize];
        &self.payload[start as usize..end as usize]
    }

    /// The custom attribute of a name, or the `cadence`, which has few values and counts as one
    /// here under either spelling.
    #[must_use]
    pub fn custom(&self, name: &str) -> Option<&Field> {
        self.fields
            .binary_search_by(|field| (*field.name).cmp(name))
            .ok()
            .map(|at| &self.fields[at])
    }

    /// The bytes held on the heap, without the payload and the id text.
    #[must_use]
    pub fn index_bytes(&self) -> usize {
        let rows = self.parent.len();
        let columns = rows * (4 + 4 + 1 + 1 + 4 + 8)
            + [&self.types, &self.roles, &self.kinds, &self.keys]
                .map(DictColumn::heap_bytes)
                .iter()
                .sum::<usize>()
            + [
                &self.level,
                &self.offset,
                &self.ttl,
                &self.priority,
                &self.cycle,
                &self.created_at_ns,
                &self.creation_index,
            ]
            .map(IntColumn::heap_bytes)
            .iter()
            .sum::<usize>();
        let single = [&self.inner, &self.has_ttl, &self.ttl_stored, &self.has_tags];
        let postings: usize = self
            .classes
            .iter()
            .chain(&self.signs)
            .chain(&self.levels)
            .chain(single)
            .chain(self.tags.iter().map(|(_, rows)| rows))
            .chain(
                self.fields
                    .iter()
                    .flat_map(|field| field.postings.iter().chain([&field.rows])),
            )
            .map(|posting| posting.heap_bytes() + size_of::<Posting>())
            .sum();
        let texts = |texts: &[Box<str>]| -> usize {
            let bytes = texts.iter().map(|text| text.len());
            bytes.sum::<usize>() + size_of_val(texts)
        };
        // The postings of a field are counted above but for the ends of their list.
        let fields = self.fields.iter().map(|field| {
            size_of::<Field>() - size_of::<Posting>() + field.name.len() + texts(&field.values)
        });
        let tags = self
            .tags
            .iter()
            .map(|(tag, _)| size_of::<Box<str>>() + tag.len());
        let names = fields.sum::<usize>() + tags.sum::<usize>() + self.type_implied.len();
        columns
            + postings
            + names
            + self.directory.capacity() * 5
            + self.units.len() * size_of::<Unit>()
    }

    /// The bytes of ids and payload records.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.ids.text_bytes() + self.payload.len()
    }
}

/// The hash of an id, for [`Segment::find`].
#[inline]
pub(crate) fn hash_id(id: &str) -> u64 {
    hasher().hash_one(id)
}
