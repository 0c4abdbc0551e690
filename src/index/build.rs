//! Building segments: from units of a freshly read tree, and from units of older segments.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::{HashMap, HashTable};

use super::hash::hash_text;
use super::ids::Ids;
use super::segment::{CORE, LEVEL_POSTINGS};
use super::view::Fields;
use super::{DictColumn, Field, IntColumn, Posting, Segment, Unit, UnitKind};
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::{Dictionary, NONE, NodeClass, Present, Tree, is_header};

/// A custom attribute keeps a posting for each value while it has at most this many.
const FIELD_VALUES: usize = 64;

/// And while none of them is longer than this, in bytes: they are copied into the index.
const FIELD_VALUE_BYTES: usize = 256;

/// From this many rows on, two threads finish a segment together where there are two.
const ROWS_FOR_TWO: u32 = 1 << 14;

/// Gathers units, in document order, into a [`Segment`].
#[derive(Default)]
pub struct SegmentBuilder {
    units: Vec<Unit>,
    turns: u32,
    parent: Vec<u32>,
    end: Vec<u32>,
    class: Vec<u8>,
    present: Vec<u8>,
    level: Vec<i64>,
    types: Vec<u32>,
    roles: Vec<u32>,
    kinds: Vec<u32>,
    keys: Vec<u32>,
    type_names: Names,
    role_names: Names,
    kind_names: Names,
    key_names: Names,
    offset: Vec<i64>,
    ttl: Vec<i64>,
    priority: Vec<i64>,
    cycle: Vec<i64>,
    created_at_ns: Vec<i64>,
    creation_index: Vec<i64>,
    ttl_stored: Vec<u32>,
    ids: Ids,
    payload: Records,
    payload_at: Vec<(u32, u32)>,
    irregular_cores: bool,
}

/// A dictionary under construction, with the codes of the tree or segment being read.
#[derive(Default)]
struct Names {
    dictionary: Dictionary,
    remap: Vec<u32>,
}

impl Names {
    /// Begins to read from a source of `codes` codes.
    fn begin(&mut self, codes: usize) {
        self.remap.clear();
        self.remap.resize(codes, NONE);
    }

    /// The own code of a source's code.
    fn map(&mut self, code: u32, text: impl FnOnce() -> Box<str>) -> u32 {
        match self.remap.get_mut(code as usize) {
            None => NONE,
            Some(own) => {
                if *own == NONE {
                    *own = self.dictionary.intern(&text());
                }
                *own
            }
        }
    }
}

/// Payload records.
enum Records {
    /// Copied here from several trees or segments.
    Own(Vec<u8>),
    /// Those of the one tree that is read.
    Shared(Arc<Vec<u8>>),
}

impl Default for Records {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl Records {
    /// Adds a record of `source`, and answers where it stands.
    #[inline]
    fn add(&mut self, source: &[u8], (from, to): (u32, u32)) -> (u32, u32) {
        match self {
            Self::Shared(_) => (from, to),
            Self::Own(bytes) => {
                let start = bytes.len() as u32;
                bytes.extend_from_slice(&source[from as usize..to as usize]);
                (start, bytes.len() as u32)
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    /// All of them, in no more memory than they need.
    fn finish(self) -> Arc<Vec<u8>> {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Own(mut bytes) => {
                bytes.shrink_to_fit();
                Arc::new(bytes)
            }
        }
    }
}

/// Marks a nodeType that was not given in the dictionary of nodeTypes under construction. It
/// cannot collide: a given one is never looked up under a name that starts with it.
const IMPLIED: char = '\u{0}';
/// Marks a given nodeType.
const GIVEN: char = '\u{1}';

/// What is found in payload records.
struct Attributes {
    /// By tag, sorted.
    tags: Box<[(Box<str>, Posting)]>,
    /// Rows with tags, be the list empty.
    has_tags: Posting,
    /// Custom attributes, sorted by name.
    fields: Box<[Field]>,
}

/// An open row while a unit is read: implicit cores are put in on the way.
struct Open {
    /// Its row in the segment.
    row: u32,
    /// Where its subtree ends in the tree.
    end: u32,
    /// What is to be done about an implicit core.
    core: Core,
}

/// The state of a row's implicit core.
#[derive(Clone, Copy, PartialEq)]
enum Core {
    /// It has none, or has it behind it.
    Done,
    /// One is to be put in before the first child whose offset is not negative.
    Due,
    /// It stands at this row and is still open.
    At(u32),
}

impl SegmentBuilder {
    /// A builder without rows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many rows there are so far.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.parent.len() as u32
    }

    /// Whether there are no rows yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// Begins to read from `tree`. Call it before [`SegmentBuilder::add_tree_unit`], again for
    /// each other tree.
    pub fn begin_tree(&mut self, tree: &Tree) {
        self.type_names.begin(tree.types.values().len());
        self.role_names.begin(tree.roles.values().len());
        self.kind_names.begin(tree.kinds.values().len());
        self.key_names.begin(tree.keys.values().len());
    }

    /// Makes ready for all of `tree`, and of nothing else: its payload records are shared, not
    /// copied. Call it before anything else; [`SegmentBuilder::begin_tree`] is then done too.
    pub fn begin_whole(&mut self, tree: &Tree) {
        self.begin_tree(tree);
        self.reserve(tree.rows.len());
        self.payload = Records::Shared(Arc::clone(&tree.payload));
    }

    /// Makes room for `rows` more rows.
    fn reserve(&mut self, rows: usize) {
        self.parent.reserve(rows);
        self.end.reserve(rows);
        self.class.reserve(rows);
        self.present.reserve(rows);
        for column in [
            &mut self.types,
            &mut self.roles,
            &mut self.kinds,
            &mut self.keys,
        ] {
            column.reserve(rows);
        }
        for column in [
            &mut self.level,
            &mut self.offset,
            &mut self.ttl,
            &mut self.priority,
            &mut self.cycle,
            &mut self.created_at_ns,
            &mut self.creation_index,
        ] {
            column.reserve(rows);
        }
        self.ids.reserve(rows);
        self.payload_at.reserve(rows);
    }

    fn add_unit(&mut self, kind: UnitKind, version: u64) {
        self.units.push(Unit {
            version,
            kind,
            start: self.len(),
            turns_before: self.turns,
        });
        self.turns += u32::from(kind == UnitKind::Turn);
    }

    /// Adds the rows of a unit of `tree`: a subtree, or the preamble. `ttl_cycle` is the cycle
    /// the ttls count from; `None` keeps them as stored.
    pub fn add_tree_unit(
        &mut self,
        tree: &Tree,
        rows: Range<u32>,
        kind: UnitKind,
        version: u64,
        ttl_cycle: Option<i64>,
    ) {
        self.add_unit(kind, version);
        let mut open: Vec<Open> = Vec::new();
        for at in rows.clone() {
            let row = &tree.rows[at as usize];
            while let Some(top) = open.last()
                && top.end <= at
            {
                self.close(&mut open);
            }
            if let Some(top) = open.last_mut() {
                match top.core {
                    Core::Due if row.offset >= 0 => {
                        let owner = top.row;
                        let core = self.add_core(owner);
                        top.core = if row.offset > 0 {
                            self.end[core as usize] = core + 1;
                            Core::Done
                        } else {
                            Core::At(core)
                        };
                    }
                    Core::At(core) if row.offset > 0 => {
                        self.end[core as usize] = self.len();
                        top.core = Core::Done;
                    }
                    Core::Due | Core::At(_) | Core::Done => {}
                }
                if matches!(top.core, Core::At(_)) && row.class != NodeClass::Block {
                    self.irregular_cores = true;
                }
            }
            let own = self.len();
            self.parent.push(open.last().map_or(NONE, |top| top.row));
            self.end.push(own + 1);
            self.class.push(row.class as u8);
            self.present.push(row.present.0);
            self.level.push(i64::from(row.level));
            let node_type = self.type_of(tree, row.node_type, row.class);
            self.types.push(node_type);
            let text = |dictionary: &Dictionary, code| dictionary.get(code).unwrap_or("").into();
            self.roles.push(
                self.role_names
                    .map(row.role, || text(&tree.roles, row.role)),
            );
            self.kinds.push(
                self.kind_names
                    .map(row.kind, || text(&tree.kinds, row.kind)),
            );
            self.keys
                .push(self.key_names.map(row.key, || text(&tree.keys, row.key)));
            self.offset.push(row.offset);
            self.priority.push(row.priority);
            self.cycle.push(row.cycle);
            self.created_at_ns.push(row.created_at_ns);
            self.creation_index.push(row.creation_index);
            match ttl_cycle {
                _ if !row.present.has(Present::TTL) => self.ttl.push(0),
                Some(cycle) if row.ttl.checked_add(cycle).is_some() => {
                    self.ttl.push(row.ttl + cycle);
                }
                _ => {
                    self.ttl.push(row.ttl);
                    self.ttl_stored.push(own);
                }
            }
            self.ids.push(tree.id(at));
            let record = self.payload.add(&tree.payload, row.payload);
            self.payload_at.push(record);

            let cored = matches!(row.class, NodeClass::Turn | NodeClass::Head)
                && !has_core(tree, at, row.end);
            let core = if cored { Core::Due } else { Core::Done };
            // The root and `^seq` of a preamble reach beyond it: their ends are the snapshot's
            // to say.
            open.push(Open {
                row: own,
                end: row.end.min(rows.end),
                core,
            });
        }
        while !open.is_empty() {
            self.close(&mut open);
        }
    }

    /// Closes the innermost open row.
    fn close(&mut self, open: &mut Vec<Open>) {
        let Some(top) = open.pop() else { return };
        let core = match top.core {
            Core::Due => Some(self.add_core(top.row)),
            Core::At(core) => Some(core),
            Core::Done => None,
        };
        if let Some(core) = core {
            self.end[core as usize] = self.len();
        }
        self.end[top.row as usize] = self.len();
    }

    /// Adds the implicit core of `owner`.
    fn add_core(&mut self, owner: u32) -> u32 {
        let own = self.len();
        self.parent.push(owner);
        self.end.push(own + 1);
        self.class.push(CORE);
        self.present.push(0);
        self.level.push(self.level[owner as usize] + 1);
        for column in [
            &mut self.types,
            &mut self.roles,
            &mut self.kinds,
            &mut self.keys,
        ] {
            column.push(NONE);
        }
        for column in [
            &mut self.offset,
            &mut self.ttl,
            &mut self.priority,
            &mut self.cycle,
            &mut self.created_at_ns,
            &mut self.creation_index,
        ] {
            column.push(0);
        }
        self.ids.push("");
        self.payload_at.push((0, 0));
        own
    }

    /// The code of a nodeType, or of what a node without one reads as (LANGUAGE §1).
    fn type_of(&mut self, tree: &Tree, code: u32, class: NodeClass) -> u32 {
        if code != NONE {
            let text = || {
                let text = tree.types.get(code).unwrap_or("");
                format!("{GIVEN}{text}").into()
            };
            return self.type_names.map(code, text);
        }
        let implied = match class {
            NodeClass::Root => "^root",
            NodeClass::Sys => "^sys",
            NodeClass::Seq => "^seq",
            NodeClass::Head => "^ah",
            NodeClass::Turn => "mt",
            NodeClass::Container => "mc",
            NodeClass::Block => "cb",
        };
        let mut name = [0; 8];
        let length = IMPLIED.len_utf8() + implied.len();
        name[IMPLIED.len_utf8()..length].copy_from_slice(implied.as_bytes());
        std::str::from_utf8(&name[..length])
            .map_or(NONE, |name| self.type_names.dictionary.intern(name))
    }

    /// Begins to read from `segment`. Call it before [`SegmentBuilder::add_segment_unit`], again
    /// for each other segment.
    pub fn begin_segment(&mut self, segment: &Segment) {
        self.type_names.begin(segment.types.values().len());
        self.role_names.begin(segment.roles.values().len());
        self.kind_names.begin(segment.kinds.values().len());
        self.key_names.begin(segment.keys.values().len());
    }

    /// Adds a unit of another segment, row by row as it stands there.
    pub fn add_segment_unit(&mut self, segment: &Segment, unit: u32) {
        let rows = segment.unit_rows(unit);
        let source = segment.units[unit as usize];
        self.add_unit(source.kind, source.version);
        let start = self.len();
        self.irregular_cores |= segment.irregular_cores;
        for row in rows.clone() {
            let shifted = |other: u32| other - rows.start + start;
            let own = self.len();
            let parent = segment.parent[row as usize];
            self.parent.push(if parent == NONE {
                NONE
            } else {
                shifted(parent)
            });
            self.end.push(shifted(segment.end[row as usize]));
            self.class.push(segment.class[row as usize]);
            self.present.push(segment.present[row as usize]);
            self.level.push(segment.level.get(row));
            let code = segment.types.code(row).unwrap_or(NONE);
            self.types.push(self.type_names.map(code, || {
                let mark = if segment.type_implied[code as usize] {
                    IMPLIED
                } else {
                    GIVEN
                };
                format!("{mark}{}", segment.types.values()[code as usize]).into()
            }));
            for (column, names, own) in [
                (&segment.roles, &mut self.role_names, &mut self.roles),
                (&segment.kinds, &mut self.kind_names, &mut self.kinds),
                (&segment.keys, &mut self.key_names, &mut self.keys),
            ] {
                let code = column.code(row).unwrap_or(NONE);
                own.push(names.map(code, || column.values()[code as usize].clone()));
            }
            self.offset.push(segment.offset.get(row));
            self.ttl.push(segment.ttl.get(row));
            self.priority.push(segment.priority.get(row));
            self.cycle.push(segment.cycle.get(row));
            self.created_at_ns.push(segment.created_at_ns.get(row));
            self.creation_index.push(segment.creation_index.get(row));
            if segment.ttl_stored.contains(row) {
                self.ttl_stored.push(own);
            }
            self.ids.push(segment.id(row));
            let record = segment.payload_at[row as usize];
            let record = self.payload.add(&segment.payload, record);
            self.payload_at.push(record);
        }
    }

    /// Gives rows without a ttl one that others have, so that the column is no wider than the
    /// ttls need.
    fn level_ttls(&mut self) {
        let given = |present: &u8| present & Present::TTL != 0;
        let ttls = self.ttl.iter().zip(&self.present);
        let filler = ttls
            .filter(|(_, present)| given(present))
            .map(|(&ttl, _)| ttl)
            .min();
        for (ttl, present) in self.ttl.iter_mut().zip(&self.present) {
            if !given(present) {
                *ttl = filler.unwrap_or(0);
            }
        }
    }

    /// The segment of all that was added.
    #[must_use]
    pub fn finish(mut self) -> Segment {
        let rows = self.len();
        self.level_ttls();
        // They grew as they came; what is held for the session's life is what they need.
        self.ids.shrink();
        let words = || vec![0_u64; rows.div_ceil(64) as usize];
        let posting = |keep: &dyn Fn(usize) -> bool| {
            let mut bits = words();
            for row in (0..rows as usize).filter(|&row| keep(row)) {
                bits[row / 64] |= 1 << (row % 64);
            }
            Posting::from_words(bits, rows)
        };

        let mut classes: [Vec<u64>; 8] = std::array::from_fn(|_| words());
        let mut signs: [Vec<u64>; 3] = std::array::from_fn(|_| words());
        let mut levels: Vec<Vec<u64>> = Vec::new();
        for row in 0..rows as usize {
            let (word, bit) = (row / 64, 1_u64 << (row % 64));
            classes[usize::from(self.class[row])][word] |= bit;
            if self.class[row] != CORE {
                signs[(self.offset[row].signum() + 1) as usize][word] |= bit;
            }
            let level = self.level[row] as usize;
            if level < LEVEL_POSTINGS as usize {
                if levels.len() <= level {
                    levels.resize_with(level + 1, words);
                }
                levels[level][word] |= bit;
            }
        }
        let (attributes, directory) = if rows < ROWS_FOR_TWO {
            (self.attributes(), self.directory())
        } else {
            rayon::join(|| self.attributes(), || self.directory())
        };
        let Attributes {
            tags,
            has_tags,
            fields,
        } = attributes;

        let ttl_stored = Posting::from_rows(&self.ttl_stored, rows);
        let counts_until = (0..rows)
            .zip(self.ttl.iter().zip(&self.present))
            .filter(|(row, (_, present))| {
                **present & Present::TTL != 0 && !ttl_stored.contains(*row)
            })
            .map(|(_, (&ttl, _))| ttl)
            .max()
            .unwrap_or(i64::MIN);

        let (type_values, type_implied): (Vec<Box<str>>, Vec<bool>) = self
            .type_names
            .dictionary
            .values()
            .iter()
            .map(|name| (name[1..].into(), name.starts_with(IMPLIED)))
            .unzip();
        let values = |names: &Names| names.dictionary.values().to_vec();
        Segment {
            // The root and `^seq` may have children in other segments.
            inner: posting(&|row| {
                self.end[row] > row as u32 + 1
                    || self.class[row] == NodeClass::Root as u8
                    || self.class[row] == NodeClass::Seq as u8
            }),
            has_ttl: posting(&|row| self.present[row] & Present::TTL != 0),
            ttl_stored,
            counts_until,
            classes: classes.map(|bits| Posting::from_words(bits, rows)),
            signs: signs.map(|bits| Posting::from_words(bits, rows)),
            levels: levels
                .into_iter()
                .map(|bits| Posting::from_words(bits, rows))
                .collect(),
            level: IntColumn::new(&self.level),
            types: DictColumn::new(&self.types, type_values),
            type_implied: type_implied.into(),
            roles: DictColumn::new(&self.roles, values(&self.role_names)),
            kinds: DictColumn::new(&self.kinds, values(&self.kind_names)),
            keys: DictColumn::new(&self.keys, values(&self.key_names)),
            offset: IntColumn::new(&self.offset),
            ttl: IntColumn::new(&self.ttl),
            priority: IntColumn::new(&self.priority),
            cycle: IntColumn::new(&self.cycle),
            created_at_ns: IntColumn::new(&self.created_at_ns),
            creation_index: IntColumn::new(&self.creation_index),
            has_tags,
            tags,
            fields,
            directory,
            parent: self.parent.into(),
            end: self.end.into(),
            class: self.class.into(),
            present: self.present.into(),
            ids: self.ids,
            payload: self.payload.finish(),
            payload_at: self.payload_at.into(),
            irregular_cores: self.irregular_cores,
            has_loose: self.units.iter().any(|unit| unit.kind == UnitKind::Loose),
            units: self.units.into(),
        }
    }

    /// The rows by the hashes of their ids; implicit cores have none.
    fn directory(&self) -> HashTable<u32> {
        let mut directory = HashTable::with_capacity(self.class.len());
        let hash = |&row: &u32| hash_text(self.ids.get(row));
        for (row, _) in (0..).zip(&self.class).filter(|(_, class)| **class != CORE) {
            directory.insert_unique(hash(&row), row, hash);
        }
        directory
    }

    /// The postings of tags and custom attributes, from the payload records. Linear in the
    /// records, but for the sorting of names, tags and values.
    fn attributes<'a>(&'a self) -> Attributes {
        /// Rows of an attribute, and of its values while they are few.
        #[derive(Default)]
        struct Rows<'b> {
            all: Vec<u32>,
            values: BTreeMap<&'b str, Vec<u32>>,
            many: bool,
        }
        let rows = self.len();
        let payload = self.payload.bytes();
        // Sorted by name before anything is made of it.
        let mut found: HashMap<&str, Rows<'_>> = HashMap::new();
        let mut tags: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut tagged: Vec<u32> = Vec::new();
        let mut enter = |name: &'a str, value: &'a str, row: u32| {
            let field = found.entry(name).or_default();
            field.all.push(row);
            if !field.many {
                field.values.entry(value).or_default().push(row);
                if field.values.len() > FIELD_VALUES || value.len() > FIELD_VALUE_BYTES {
                    field.many = true;
                    field.values.clear();
                }
            }
        };
        for row in 0..rows {
            let (start, end) = self.payload_at[row as usize];
            let record = || Fields::new(&payload[start as usize..end as usize]);
            let (mut has_tags, mut has_cadence) = (false, false);
            for (name, value) in record() {
                has_tags |= TAGS.is(name);
                has_cadence |= CADENCE.is(name);
                if !is_header(name) {
                    enter(name, value, row);
                }
            }
            // These two are found under one name, however a node spells them.
            if has_cadence && let Some(value) = CADENCE.of(record()) {
                enter(CADENCE.name, value, row);
            }
            if has_tags && let Some(value) = TAGS.of(record()) {
                tagged.push(row);
                for tag in crate::tree::text_list(value) {
                    let list = tags.entry(tag).or_default();
                    if list.last() != Some(&row) {
                        list.push(row);
                    }
                }
            }
        }
        let posting = |list: &Vec<u32>| Posting::from_rows(list, rows);
        let mut fields: Vec<Field> = found
            .into_iter()
            .map(|(name, found)| Field {
                name: name.into(),
                rows: posting(&found.all),
                values: found.values.keys().map(|value| (*value).into()).collect(),
                postings: found.values.values().map(posting).collect(),
            })
            .collect();
        fields.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let tags = tags
            .iter()
            .map(|(tag, list)| (tag.as_str().into(), posting(list)))
            .collect();
        Attributes {
            tags,
            has_tags: posting(&tagged),
            fields: fields.into(),
        }
    }
}

/// Whether a turn or head holds a container at offset 0 of its own.
fn has_core(tree: &Tree, row: u32, end: u32) -> bool {
    let mut child = row + 1;
    while child < end {
        let node = &tree.rows[child as usize];
        if node.offset > 0 {
            return false;
        }
        if node.offset == 0 && node.class == NodeClass::Container {
            return true;
        }
        child = node.end;
    }
    false
}
