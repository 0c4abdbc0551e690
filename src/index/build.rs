//! Builds segments from units of a tree, and from units of older segments.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::attributes::Collector;
use super::directory::Directory;
use super::expiring::Expiring;
use super::fields::AttributePostings;
use super::fresh::{Earlier, Ttl};
use super::ids::IdColumn;
use super::posting::exactly;
use super::records::{Collected, NodeRecords, SHARED};
use super::segment::{CORE, LEVEL_POSTINGS};
use super::snapshot::UnitRun;
use super::{DictColumn, IntColumn, Posting, Segment, Unit, UnitKind};
use crate::tree::hash_text;
use crate::tree::{Dictionary, NONE, NodeClass, Present, RecordPlace, Tree, TreeRow, header};

thread_local! {
    /// The memory of a builder that is done, for the next one: a commit makes a small segment.
    static SPARE: Cell<Option<Box<SegmentBuilder>>> = const { Cell::new(None) };
}

/// A segment has lists for at most this many priorities.
const PRIORITIES: usize = 8;

/// No memory is kept that has room for more than this many rows.
const SPARE_ROWS: usize = 4_096;

/// Collects units, in document order, for a [`Segment`].
#[derive(Default)]
pub(super) struct SegmentBuilder {
    units: Vec<Unit>,
    turns: u32,
    parent: Vec<u32>,
    end: Vec<u32>,
    class: Vec<u8>,
    present: Vec<u8>,
    level: Vec<i64>,
    /// By [`header::TEXTS`]; a nodeType may have [`IMPLIED`] or [`GIVEN`] before it.
    texts: [TextColumn; header::TEXTS.len()],
    /// By [`header::NUMBERS`].
    numbers: [Vec<i64>; header::NUMBERS.len()],
    ttl_stored: Vec<u32>,
    ids: IdColumn,
    payload: Collected,
    payload_at: Vec<RecordPlace>,
    irregular_cores: bool,
}

#[derive(Default)]
struct TextColumn {
    codes: Vec<u32>,
    dictionary: Dictionary,
    /// By code of the source that is read: the code here, [`NONE`] until it is needed.
    known: Vec<u32>,
}

impl TextColumn {
    fn begin(&mut self, codes: usize) {
        self.known.clear();
        self.known.resize(codes, NONE);
    }

    /// Adds a row with a code of the source, whose text is `text`.
    #[inline]
    fn push<'t>(&mut self, code: u32, text: impl FnOnce() -> Cow<'t, str>) {
        // A text is looked up once for each code of the source, not once for each row.
        let own = match self.known.get_mut(code as usize) {
            None => NONE,
            Some(own) => {
                if *own == NONE {
                    *own = self.dictionary.intern(&text());
                }
                *own
            }
        };
        self.codes.push(own);
    }

    fn push_text(&mut self, text: &str) {
        let own = self.dictionary.intern(text);
        self.codes.push(own);
    }
}

/// First character of an implied nodeType in the dictionary under construction, which keeps it
/// apart from the same nodeType given by a node.
const IMPLIED: &str = "\0";
/// First character of a given nodeType that would begin with one of the two.
const GIVEN: &str = "\u{1}";
const MARKS: [char; 2] = ['\0', '\u{1}'];

/// A nodeType with its mark, if it needs one.
fn marked(given: &str, is_implied: bool) -> Cow<'_, str> {
    if is_implied {
        [IMPLIED, given].concat().into()
    } else if given.starts_with(MARKS) {
        [GIVEN, given].concat().into()
    } else {
        given.into()
    }
}

/// The elements as a list of their own. Memory that is worth keeping stays.
fn boxed<T: Clone>(list: &mut Vec<T>) -> Box<[T]> {
    if list.capacity() > SPARE_ROWS {
        return std::mem::take(list).into();
    }
    let boxed = list.as_slice().into();
    list.clear();
    boxed
}

struct OpenRow {
    row: u32,
    end: u32,
    core: CoreState,
}

/// From the unit down to the last row.
type OpenRows = SmallVec<[OpenRow; 8]>;

#[derive(Clone, Copy, PartialEq)]
enum CoreState {
    /// There is none, or it is closed.
    Done,
    /// It comes before the first child whose offset is not negative.
    Due,
    /// It is open, at this row.
    At(u32),
}

impl SegmentBuilder {
    /// An empty builder, with memory that an earlier one had.
    pub(super) fn begin() -> Box<Self> {
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        spare.unwrap_or_default()
    }

    pub(super) fn len(&self) -> u32 {
        self.parent.len() as u32
    }

    /// Begins to read from `tree`, before its units are added.
    pub(super) fn begin_tree(&mut self, tree: &Tree) {
        for (column, texts) in self.texts.iter_mut().zip(&tree.texts) {
            column.begin(texts.values().len());
        }
    }

    /// As [`SegmentBuilder::begin_tree`], for a builder that reads all of one tree and nothing
    /// else: its payload records are shared, not copied, if they are many or those of a turn.
    pub(super) fn begin_whole(&mut self, tree: &Tree) {
        self.begin_tree(tree);
        self.reserve(tree.rows.len(), 0);
        // In a preamble there may be contents that other sessions have, too.
        let is_turn = tree
            .rows
            .first()
            .is_some_and(|row| row.class == NodeClass::Turn);
        if is_turn || tree.payload.len() >= SHARED {
            self.payload = Collected::shared(&tree.payload);
        }
    }

    /// Reserves memory for more rows, with this many bytes of ids.
    pub(super) fn reserve(&mut self, rows: usize, ids: usize) {
        self.parent.reserve(rows);
        self.end.reserve(rows);
        self.class.reserve(rows);
        self.present.reserve(rows);
        self.level.reserve(rows);
        let texts = &mut self.texts;
        texts.iter_mut().for_each(|c| c.codes.reserve(rows));
        self.numbers.iter_mut().for_each(|c| c.reserve(rows));
        self.ids.reserve(rows, ids);
        self.payload_at.reserve(rows);
    }

    /// Reserves memory for a unit of `tree`, and for its records if they are `copied`; its implicit core may need a
    /// little more.
    pub(super) fn reserve_for(&mut self, tree: &Tree, rows: Range<u32>, copied: bool) {
        let unit = &tree.rows[rows.start as usize..rows.end as usize];
        let length = |(start, end): (u32, u32)| (end - start) as usize;
        if copied {
            let records = unit.iter().map(|row| row.payload.len()).sum();
            self.payload.reserve(records);
        }
        let ids = unit.iter().map(|row| length(row.id)).sum();
        self.reserve(unit.len(), ids);
    }

    /// Reserves memory for runs of other segments.
    pub(super) fn reserve_for_runs(&mut self, runs: &[UnitRun]) {
        let (mut rows, mut ids, mut records) = (0, 0, 0);
        for run in runs {
            rows += run.rows().len();
            ids += run.segment.ids.text_len(run.rows());
            records += run.segment.payload.copied_len();
        }
        // A chunk is made of at least one and less than two of this size.
        self.payload.reserve(records.min(2 * SHARED));
        self.reserve(rows, ids);
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

    /// Adds the rows of a unit of `tree`, whose ttls are of the form `ttls`. What is as it was `earlier` is not copied.
    pub(super) fn add_tree_unit(
        &mut self,
        tree: &Tree,
        rows: Range<u32>,
        kind: UnitKind,
        version: u64,
        ttls: Ttl<'_>,
        mut earlier: Option<Earlier<'_>>,
    ) {
        self.add_unit(kind, version);
        // A system prompt, and the definitions of tools.
        let common = kind == UnitKind::Preamble;
        let mut open = OpenRows::new();
        for at in rows.clone() {
            let row = &tree.rows[at as usize];
            while let Some(top) = open.last()
                && top.end <= at
            {
                self.close(&mut open);
            }
            if let Some(top) = open.last_mut() {
                self.place_core(top, row);
            }
            let own = self.len();
            self.add_tree_row(tree, at, open.last().map_or(NONE, |top| top.row), ttls);
            // The record is the large part of a row. Where the unit was indexed before and this node's record is
            // the same, the new segment refers to the old bytes.
            let known = earlier
                .as_mut()
                .and_then(|earlier| earlier.record(tree, at));
            self.payload_at.push(match known {
                Some((records, place)) => self.payload.add_shared(records, place),
                None => self.payload.add_from(&tree.payload, row.payload, common),
            });
            let cored =
                matches!(row.class, NodeClass::Turn | NodeClass::Head) && !has_core(tree, at);
            open.push(OpenRow {
                row: own,
                // The root and `^seq` of a preamble end after it; the snapshot knows where.
                end: row.end.min(rows.end),
                core: if cored {
                    CoreState::Due
                } else {
                    CoreState::Done
                },
            });
        }
        while !open.is_empty() {
            self.close(&mut open);
        }
    }

    /// Opens or closes the implicit core of `top` before its child `row`.
    #[inline]
    fn place_core(&mut self, top: &mut OpenRow, row: &TreeRow) {
        // Children are sorted by offset, so a core that is not written begins before the first child whose
        // offset is not negative, and ends before the first one that is positive.
        match top.core {
            CoreState::Due if row.numbers[header::OFFSET] >= 0 => {
                let core = self.add_core(top.row);
                top.core = if row.numbers[header::OFFSET] > 0 {
                    CoreState::Done
                } else {
                    CoreState::At(core)
                };
            }
            CoreState::At(core) if row.numbers[header::OFFSET] > 0 => {
                self.end[core as usize] = self.len();
                top.core = CoreState::Done;
            }
            CoreState::Due | CoreState::At(_) | CoreState::Done => {}
        }
        if matches!(top.core, CoreState::At(_)) && row.class != NodeClass::Block {
            self.irregular_cores = true;
        }
    }

    #[inline]
    fn add_tree_row(&mut self, tree: &Tree, at: u32, parent: u32, ttls: Ttl<'_>) {
        let row = &tree.rows[at as usize];
        let own = self.len();
        self.parent.push(parent);
        self.end.push(own + 1);
        self.class.push(row.class as u8);
        self.present.push(row.present.0);
        self.level.push(i64::from(row.level));
        let [types, others @ ..] = &mut self.texts;
        let codes = row.texts.iter().zip(&tree.texts).skip(1);
        for (column, (&code, texts)) in others.iter_mut().zip(codes) {
            column.push(code, || texts.get(code).unwrap_or_default().into());
        }
        match row.texts[header::NODE_TYPE] {
            // A node without a nodeType has the one that its class implies (LANGUAGE §1).
            NONE => types.push_text(&marked(row.class.as_str(), true)),
            code => types.push(code, || {
                marked(tree.text(row, header::NODE_TYPE).unwrap_or_default(), false)
            }),
        }
        let mut numbers = row.numbers;
        match ttls.expires(at, numbers[header::TTL]) {
            Some(expires) => numbers[header::TTL] = expires,
            None if row.present.has(Present::TTL) => self.ttl_stored.push(own),
            None => {}
        }
        self.add_numbers(numbers);
        self.ids.push(tree.id(at));
    }

    #[inline]
    fn add_numbers(&mut self, row: [i64; header::NUMBERS.len()]) {
        for (column, number) in self.numbers.iter_mut().zip(row) {
            column.push(number);
        }
    }

    fn close(&mut self, open: &mut OpenRows) {
        let Some(top) = open.pop() else { return };
        let core = match top.core {
            CoreState::Due => Some(self.add_core(top.row)),
            CoreState::At(core) => Some(core),
            CoreState::Done => None,
        };
        if let Some(core) = core {
            self.end[core as usize] = self.len();
        }
        self.end[top.row as usize] = self.len();
    }

    fn add_core(&mut self, owner: u32) -> u32 {
        let own = self.len();
        self.parent.push(owner);
        self.end.push(own + 1);
        self.class.push(CORE);
        self.present.push(0);
        self.texts.iter_mut().for_each(|c| c.codes.push(NONE));
        self.level.push(self.level[owner as usize] + 1);
        self.add_numbers(Default::default());
        self.ids.push("");
        self.payload_at.push(RecordPlace::default());
        own
    }

    /// Adds neighbouring units of another segment, column by column.
    pub(super) fn add_run(&mut self, segment: &Segment, units: Range<u32>) {
        let rows = segment.rows_of(&units);
        let at = rows.start as usize..rows.end as usize;
        let start = self.len();
        // Columns are copied range by range. Only parents and ends are row numbers and move by a constant;
        // text codes are translated once for each value.
        let shifted = |row: u32| row.wrapping_sub(rows.start).wrapping_add(start);
        for unit in &segment.units[units.start as usize..units.end as usize] {
            self.units.push(Unit {
                start: shifted(unit.start),
                turns_before: self.turns,
                ..*unit
            });
            self.turns += u32::from(unit.kind == UnitKind::Turn);
        }
        self.irregular_cores |= segment.irregular_cores;
        let parents = segment.parent[at.clone()].iter();
        self.parent.extend(parents.map(|&parent| match parent {
            NONE => NONE,
            parent => shifted(parent),
        }));
        let ends = segment.end[at.clone()].iter();
        self.end.extend(ends.map(|&end| shifted(end)));
        self.class.extend_from_slice(&segment.class[at.clone()]);
        self.present.extend_from_slice(&segment.present[at.clone()]);
        for (at, (column, source)) in self.texts.iter_mut().zip(&segment.texts).enumerate() {
            column.begin(source.values().len());
            source.for_each_in(rows.clone(), |code| {
                column.push(code, || {
                    let value = source.value(code).unwrap_or_default();
                    if at == header::NODE_TYPE {
                        marked(value, segment.types_implied.contains(&code))
                    } else {
                        value.into()
                    }
                });
            });
        }
        segment.level.append_to(&mut self.level, rows.clone());
        for (out, column) in self.numbers.iter_mut().zip(&segment.numbers) {
            column.append_to(out, rows.clone());
        }
        let stored = &mut self.ttl_stored;
        segment
            .ttl_stored
            .for_each_in(rows.clone(), |row| stored.push(shifted(row)));
        self.ids.append(&segment.ids, rows.clone());
        // Records of a whole segment move as one block; of a part, each is copied.
        if rows == (0..segment.len()) {
            let moved = self.payload.append(&segment.payload);
            let shift = |(start, end): (u32, u32)| (start + moved, end + moved);
            let places = segment.payload_at.iter().map(|place| RecordPlace {
                content: shift(place.content),
                fields: shift(place.fields),
            });
            return self.payload_at.extend(places);
        }
        let records = segment.payload_at[at].iter();
        let places = records.map(|&place| self.payload.add_copy(&segment.payload, place));
        self.payload_at.extend(places);
    }

    /// The segment. What a small one does not keep stays for the next builder of the thread.
    pub(super) fn finish(mut self: Box<Self>) -> Segment {
        let records = self.payload.finish();
        let mut attributes = Collector::default();
        attributes.read(&records, &self.payload_at, 0);
        let attributes = attributes.finish(&self.payload_at);
        self.finish_with(records, attributes)
    }

    /// As [`SegmentBuilder::finish`], with the attributes of the segments that were merged.
    pub(super) fn finish_merged(mut self: Box<Self>, attributes: Collector<'_>) -> Segment {
        let records = self.payload.finish();
        let attributes = attributes.finish(&self.payload_at);
        self.finish_with(records, attributes)
    }

    fn finish_with(
        mut self: Box<Self>,
        payload: NodeRecords,
        attributes: AttributePostings,
    ) -> Segment {
        let segment = self.segment(payload, attributes);
        self.clear();
        // Nothing is kept where a thread ends.
        let _ = SPARE.try_with(|spare| spare.set(Some(self)));
        segment
    }

    fn segment(&mut self, payload: NodeRecords, attributes: AttributePostings) -> Segment {
        let rows = self.len();
        // Everything derived is made here, once, over whole columns: posting lists, the id directory, packed
        // numbers. While rows were added they were only appended.
        let directory = self.directory();
        self.fill_ttls();
        let ttl_stored = Posting::from_rows(&self.ttl_stored, rows);
        let expiring = self.expiring(&ttl_stored);
        let classes = self.class.iter().map(|class| u32::from(*class));
        let mut classes = Posting::of_codes(classes, rows, 8).into_iter();
        let signs = self.class.iter().zip(&self.numbers[header::OFFSET]);
        let signs = signs.map(|(&class, offset)| match class {
            CORE => NONE,
            _ => (offset.signum() + 1) as u32,
        });
        let mut signs = Posting::of_codes(signs, rows, 3).into_iter();
        let levels = self.level.iter().max().map_or(0, |&max| max + 1);
        let levels = levels.min(i64::from(LEVEL_POSTINGS)) as usize;
        let level = self.level.iter().map(|level| *level as u32);
        let levels = Posting::of_codes(level, rows, levels);
        let inner = self.posting(|row| {
            // The root and `^seq` may have children in other segments.
            self.end[row] > row as u32 + 1
                || self.class[row] == NodeClass::Root as u8
                || self.class[row] == NodeClass::Seq as u8
        });
        let has_ttl = self.posting(|row| self.present[row] & Present::TTL != 0);
        // The same nodeType can be there twice, given and implied. The marks kept the two apart while rows were added; now
        // their codes do, and readers compare the text without its mark.
        let types = &mut self.texts[header::NODE_TYPE].dictionary;
        let values = (0..).zip(types.values());
        let implied = values.filter(|(_, name)| name.starts_with(IMPLIED));
        let types_implied = implied.map(|(code, _)| code).collect();
        if types.values().any(|name| name.starts_with(MARKS)) {
            let values = types.values();
            let plain = values.map(|name| name.strip_prefix(MARKS).unwrap_or(name));
            *types = Dictionary::from_values(plain);
        }
        let texts = self
            .texts
            .each_mut()
            .map(|text| DictColumn::new(&text.codes, text.dictionary.taken()));
        Segment {
            content_sizes: OnceLock::new(),
            calls: OnceLock::new(),
            // Before the columns are taken.
            core_members: self.has_core_members(),
            has_sub_types: has_sub_types(&texts[header::NODE_TYPE]),
            longest_unit: self.longest_unit(),
            directory,
            inner,
            has_ttl,
            ttl_stored,
            expiring,
            classes: std::array::from_fn(|_| classes.next().unwrap_or_default()),
            signs: std::array::from_fn(|_| signs.next().unwrap_or_default()),
            levels: exactly(levels),
            of_priority: self.by_priority(),
            level: IntColumn::new(&self.level),
            texts,
            types_implied,
            numbers: self.numbers.each_ref().map(|column| IntColumn::new(column)),
            attributes,
            parent: boxed(&mut self.parent),
            end: boxed(&mut self.end),
            class: boxed(&mut self.class),
            present: boxed(&mut self.present),
            ids: self.ids.taken(SPARE_ROWS),
            payload,
            payload_at: boxed(&mut self.payload_at),
            irregular_cores: self.irregular_cores,
            has_loose: self.units.iter().any(|unit| unit.kind == UnitKind::Loose),
            units: boxed(&mut self.units),
        }
    }

    fn longest_unit(&self) -> u32 {
        let ends = self.units.iter().skip(1).map(|unit| unit.start);
        let units = self.units.iter().zip(ends.chain([self.len()]));
        let lengths = units.map(|(unit, end)| end - unit.start);
        lengths.max().unwrap_or(0)
    }

    /// See [`Segment::by_priority`].
    fn by_priority(&self) -> Box<[(i64, Posting)]> {
        let priorities = &self.numbers[header::PRIORITY];
        let mut known: SmallVec<[i64; PRIORITIES]> = SmallVec::new();
        for priority in priorities.iter().filter(|priority| **priority != 0) {
            if let Err(at) = known.binary_search(priority) {
                if known.len() == PRIORITIES {
                    return Box::default();
                }
                known.insert(at, *priority);
            }
        }
        // Where all rows have one priority, the column says so.
        if known.is_empty() || priorities.iter().all(|priority| *priority == known[0]) {
            return Box::default();
        }
        let codes = self.class.iter().zip(priorities);
        let codes = codes.map(|(class, priority)| match known.binary_search(priority) {
            Ok(code) if *class != CORE => code as u32,
            _ => NONE,
        });
        let lists = Posting::of_codes(codes, self.len(), known.len());
        known.iter().copied().zip(lists).collect()
    }

    fn has_core_members(&self) -> bool {
        let mut rows = (0..).zip(self.class.iter().zip(&self.end));
        rows.any(|(row, (class, end))| *class == CORE && *end > row + 1)
    }

    /// Empties the builder, of which a segment was made; memory for few rows stays.
    fn clear(&mut self) {
        fn keep<T>(list: &mut Vec<T>) {
            list.clear();
            list.shrink_to(SPARE_ROWS);
        }
        keep(&mut self.units);
        keep(&mut self.parent);
        keep(&mut self.end);
        keep(&mut self.class);
        keep(&mut self.present);
        keep(&mut self.level);
        for text in &mut self.texts {
            keep(&mut text.codes);
            keep(&mut text.known);
        }
        self.numbers.iter_mut().for_each(keep);
        keep(&mut self.ttl_stored);
        keep(&mut self.payload_at);
        self.turns = 0;
        self.payload = Collected::default();
        self.irregular_cores = false;
    }

    /// Gives rows without a ttl one that others have, so that they do not widen the column.
    fn fill_ttls(&mut self) {
        let given = |present: &u8| present & Present::TTL != 0;
        let ttls = self.numbers[header::TTL].iter().zip(&self.present);
        let given_ttls = ttls.filter(|(_, present)| given(present));
        let filler = given_ttls.map(|(&ttl, _)| ttl).min().unwrap_or(0);
        for (ttl, present) in self.numbers[header::TTL].iter_mut().zip(&self.present) {
            if !given(present) {
                *ttl = filler;
            }
        }
    }

    /// The rows whose ttl counts down.
    fn expiring(&self, ttl_stored: &Posting) -> Option<Box<Expiring>> {
        let ttls = (0..).zip(self.numbers[header::TTL].iter().zip(&self.present));
        let counting = ttls.filter(|(row, (_, present))| {
            **present & Present::TTL != 0 && !ttl_stored.contains(*row)
        });
        let counting: SmallVec<[(u32, i64); 8]> =
            counting.map(|(row, (&ttl, _))| (row, ttl)).collect();
        (!counting.is_empty()).then(|| Box::new(Expiring::new(&counting)))
    }

    /// The rows for which `keep` is true.
    fn posting(&self, keep: impl Fn(usize) -> bool) -> Posting {
        let codes = (0..self.class.len()).map(|row| if keep(row) { 0 } else { NONE });
        let mut only = Posting::of_codes(codes, self.len(), 1);
        only.pop().unwrap_or_default()
    }

    /// The rows of nodes by the hashes of their ids.
    fn directory(&self) -> Directory {
        // Implicit cores have no id, so they are not found. A merged segment may have an id twice (a node that
        // moved between turns); both rows are in the directory, and the reader takes the one that is live.
        let nodes = (0..).zip(&self.class).filter(|(_, class)| **class != CORE);
        let rows = nodes.map(|(row, _)| row);
        Directory::new(self.class.len(), rows, |row| hash_text(self.ids.get(row)))
    }
}

/// Whether a nodeType has a part after a colon.
fn has_sub_types(types: &DictColumn) -> bool {
    types.values().any(|text| text.contains(':'))
}

fn has_core(tree: &Tree, row: u32) -> bool {
    tree.children(row)
        .map(|child| &tree.rows[child as usize])
        .take_while(|node| node.numbers[header::OFFSET] <= 0)
        .any(|node| node.numbers[header::OFFSET] == 0 && node.class == NodeClass::Container)
}
