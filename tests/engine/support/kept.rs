//! What a store does with a session, in memory: it keeps each version of a unit once, and which units
//! each snapshot has, and makes snapshots of them again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use pactql::internals::history::SnapshotPart;
use pactql::internals::index::{
    Layout, Merge, Meta, Segment, Snapshot, UnitKind, UnitPart, Writer,
};
use pactql::internals::tree::{NONE, NodeClass, Tree, TreeRow, header};

/// A session in units.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    units: Vec<Unit>,
    snapshots: Vec<(Meta, Vec<usize>)>,
}

#[derive(Debug)]
struct Unit {
    kind: UnitKind,
    /// The tree it came from; where a ttl counts down, it is the cycle in which it expires.
    tree: Arc<Tree>,
    rows: Range<u32>,
    /// The rows of the tree whose ttls count down.
    expires: Vec<u32>,
}

impl Kept {
    /// The units of these snapshots.
    pub(crate) fn of<'a>(snapshots: impl IntoIterator<Item = &'a Arc<Snapshot>>) -> Self {
        let mut kept = Self::default();
        let mut older: Option<&Arc<Snapshot>> = None;
        for snapshot in snapshots {
            kept.push(older.map(|older| &**older), snapshot);
            older = Some(snapshot);
        }
        kept
    }

    /// Adds a snapshot, of which only what came is read.
    fn push(&mut self, older: Option<&Snapshot>, snapshot: &Snapshot) {
        let place = |unit: pactql::internals::index::UnitRef<'_>| {
            (Arc::as_ptr(unit.segment()), unit.index())
        };
        let (gone, came): (Vec<_>, Option<Vec<_>>) = match older {
            Some(older) => {
                let changes = snapshot.unit_changes(older);
                let places = |units: Vec<_>| units.into_iter().map(place).collect();
                (places(changes.gone), Some(places(changes.came)))
            }
            None => (Vec::new(), None),
        };
        let before = self.snapshots.last().map_or(&[][..], |(_, units)| units);
        let stayed: Vec<usize> = older
            .into_iter()
            .flat_map(Snapshot::units)
            .zip(before)
            .filter(|(unit, _)| !gone.contains(&place(*unit)))
            .map(|(_, &unit)| unit)
            .collect();
        let mut stayed = stayed.into_iter();
        let mut tree = snapshot.to_tree();
        let mut expires = Vec::new();
        for (row, node) in snapshot.nodes().enumerate() {
            if let Some(cycle) = node.expires() {
                tree.rows[row].numbers[header::TTL] = cycle;
                expires.push(row as u32);
            }
        }
        let tree = Arc::new(tree);
        let mut units = Vec::new();
        let mut next = 0;
        for unit in snapshot.units() {
            let start = next;
            next += unit.nodes().count() as u32;
            assert_eq!(unit.top().id(), tree.id(start));
            if came
                .as_ref()
                .is_some_and(|came| !came.contains(&place(unit)))
            {
                units.push(stayed.next().expect("a unit that stayed was there before"));
                continue;
            }
            let inside = expires.iter().filter(|row| (start..next).contains(row));
            units.push(self.units.len());
            self.units.push(Unit {
                kind: unit.kind(),
                tree: Arc::clone(&tree),
                rows: start..next,
                expires: inside.copied().collect(),
            });
        }
        assert_eq!(stayed.next(), None);
        assert_eq!(next as usize, tree.rows.len());
        self.snapshots.push((snapshot.meta().clone(), units));
    }

    /// A part of the snapshot at an index, which shares nothing; without `^sys` if that is not asked
    /// for. Turns that are left out are counted.
    pub(crate) fn part(&self, at: usize, part: &SnapshotPart) -> Snapshot {
        let (meta, units) = &self.snapshots[at];
        let mut depth = (units.iter())
            .filter(|unit| self.units[**unit].kind == UnitKind::Turn)
            .count() as u64;
        let (mut tree, mut expires) = (Copy::default(), Vec::new());
        let mut parts = Vec::new();
        for unit in units.iter().map(|unit| &self.units[*unit]) {
            let named = part.ids.as_ref().is_none_or(|ids| {
                let mut rows = unit.rows.clone();
                rows.any(|row| ids.iter().any(|id| **id == *unit.tree.id(row)))
            });
            let wanted = named
                && match unit.kind {
                    UnitKind::Preamble => part.sys,
                    UnitKind::Head => part.head,
                    UnitKind::Rest => part.rest,
                    UnitKind::Turn => depth <= part.turns,
                    UnitKind::Loose => depth < part.turns,
                };
            depth -= u64::from(unit.kind == UnitKind::Turn);
            let spine = |row: &TreeRow| matches!(row.class, NodeClass::Root | NodeClass::Seq);
            if wanted {
                let rows = tree.add(unit, &mut expires, |_| true);
                parts.push(UnitPart::Fresh(unit.kind, rows));
            } else if unit.kind == UnitKind::Preamble {
                let rows = tree.add(unit, &mut expires, spine);
                parts.push(UnitPart::Fresh(unit.kind, rows));
            } else if unit.kind == UnitKind::Turn {
                parts.push(UnitPart::Gap(1));
            }
        }
        let writer = Writer::new().without_merging();
        let made = writer.restore(
            &tree.finish(),
            &expires,
            parts,
            Layout::ByLifetime,
            meta.clone(),
        );
        made.snapshot
    }

    /// Number of versions of units.
    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }
}

/// Makes snapshots of what is kept, sharing what it has made.
#[derive(Debug, Default)]
pub(crate) struct Restorer {
    writer: Writer,
    /// By unit: its segment, and its index there.
    known: HashMap<usize, (Arc<Segment>, u32)>,
}

impl Restorer {
    /// The snapshot at an index, whole.
    pub(crate) fn snapshot(&mut self, kept: &Kept, at: usize) -> Snapshot {
        let (meta, units) = &kept.snapshots[at];
        let (mut tree, mut expires) = (Copy::default(), Vec::new());
        let parts = units.iter().map(|unit| match self.known.get(unit) {
            Some((segment, at)) => UnitPart::Kept(Arc::clone(segment), *at, Vec::new()),
            None => {
                let unit = &kept.units[*unit];
                UnitPart::Fresh(unit.kind, tree.add(unit, &mut expires, |_| true))
            }
        });
        let parts: Vec<UnitPart> = parts.collect();
        let fresh: Vec<bool> = (parts.iter())
            .map(|part| matches!(part, UnitPart::Fresh(..)))
            .collect();
        let layout = if self.known.is_empty() {
            Layout::Whole
        } else {
            Layout::ByLifetime
        };
        let restored = self
            .writer
            .restore(&tree.finish(), &expires, parts, layout, meta.clone());
        let snapshot = restored.snapshot;
        self.follow(&restored.merges);
        let mut versions = restored.versions.into_iter();
        assert_eq!(snapshot.units().count(), units.len());
        for ((found, &unit), fresh) in snapshot.units().zip(units).zip(fresh) {
            if fresh {
                assert_eq!(Some(found.version()), versions.next());
                let place = (Arc::clone(found.segment()), found.index());
                self.known.insert(unit, place);
            }
            let (segment, at) = &self.known[&unit];
            assert!(Arc::ptr_eq(segment, found.segment()) && *at == found.index());
        }
        assert_eq!(versions.next(), None);
        snapshot
    }

    /// The units that are known are where the merges moved them.
    fn follow(&mut self, merges: &[Merge]) {
        for merge in merges {
            for (segment, at) in self.known.values_mut() {
                if let Some(moved) = moved_unit(merge, segment, *at) {
                    (*segment, *at) = (Arc::clone(&merge.output), moved);
                }
            }
        }
    }
}

/// Where a unit of an old segment is in the output of a merge; `None` if it was not merged.
fn moved_unit(merge: &Merge, segment: &Arc<Segment>, unit: u32) -> Option<u32> {
    let mut first = 0;
    for (input, units) in &merge.inputs {
        if Arc::ptr_eq(input, segment) && units.contains(&unit) {
            return Some(unit - units.start + first);
        }
        first += units.len() as u32;
    }
    None
}

/// A tree of the rows of units.
#[derive(Default)]
struct Copy {
    tree: Tree,
    payload: String,
}

impl Copy {
    /// Adds the rows of a unit that are wanted: with each row those above it.
    fn add(
        &mut self,
        unit: &Unit,
        expires: &mut Vec<u32>,
        wanted: impl Fn(&TreeRow) -> bool,
    ) -> Range<u32> {
        let from = &*unit.tree;
        let rows = unit.rows.clone();
        let rows: Vec<u32> = rows
            .filter(|&row| wanted(&from.rows[row as usize]))
            .collect();
        let tree = &mut self.tree;
        let start = tree.rows.len() as u32;
        let moved = |row: u32| rows.partition_point(|&other| other < row) as u32 + start;
        for &at in &rows {
            if unit.expires.contains(&at) {
                expires.push(moved(at));
            }
            let mut row = from.rows[at as usize].clone();
            row.parent = NONE;
            row.end = moved(row.end.min(unit.rows.end));
            let id = tree.ids.len() as u32;
            tree.ids.push_str(from.id(at));
            row.id = (id, tree.ids.len() as u32);
            for part in [&mut row.payload.content, &mut row.payload.fields] {
                let start = self.payload.len() as u32;
                let text = part.0 as usize..part.1 as usize;
                self.payload.push_str(&from.payload[text]);
                *part = (start, self.payload.len() as u32);
            }
            for ((to, from), code) in tree.texts.iter_mut().zip(&from.texts).zip(&mut row.texts) {
                *code = from.get(*code).map_or(NONE, |text| to.intern(text));
            }
            tree.rows.push(row);
        }
        start..tree.rows.len() as u32
    }

    fn finish(mut self) -> Tree {
        self.tree.payload = Arc::new(self.payload);
        self.tree
    }
}
