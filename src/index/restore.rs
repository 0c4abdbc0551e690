//! Makes snapshots of units that were kept elsewhere, sharing those that are indexed already.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::commit::{Key, UnitAt, insertion_point, splice};
use super::dead::moment;
use super::fresh::Ttl;
use super::merge::Merge;
use super::snapshot::UnitRun;
use super::writer::{Layout, UnitRows, UnitSource};
use super::{Meta, Segment, Snapshot, UnitKind, Writer};
use crate::tree::Tree;

/// A unit of a snapshot that is restored.
#[derive(Clone, Debug)]
pub enum UnitPart {
    /// The unit at this index of a segment, without these rows of the segment, which ascend and are inside the unit.
    Kept(Arc<Segment>, u32, Vec<u32>),
    /// Rows of the tree, the unit's top node first.
    Fresh(UnitKind, Range<u32>),
    /// A number of turns that are left out; depths of older turns count them.
    Gap(u32),
}

/// A snapshot that was restored.
#[derive(Debug)]
pub struct Restored {
    /// The snapshot; [`Snapshot::units`] has as many units as there were parts, gaps aside, in the same order.
    pub snapshot: Snapshot,
    /// The merges made, for [`Snapshot::moved`].
    pub merges: Vec<Merge>,
    /// The versions of the fresh units, in order.
    pub versions: Vec<u64>,
}

impl Writer {
    /// The snapshot of these units, which are in document order, the preamble first. The fresh ones get
    /// segments as `layout` says.
    ///
    /// `tree` has the rows of the fresh units, at their levels (the root 0, the regions 1, turns
    /// 2), with ends inside their unit; the parents of its rows are not read. The ttl of a row in
    /// `expires`, which ascends, is the cycle in which it expires; others stay as they are.
    ///
    /// Linear in the parts and the fresh rows, logarithmic in `expires`, except for merges.
    pub fn restore(
        &self,
        tree: &Tree,
        expires: &[u32],
        parts: Vec<UnitPart>,
        layout: Layout,
        meta: Meta,
    ) -> Restored {
        let sources = parts.into_iter().map(|part| part.source(expires));
        self.restored(tree, sources.collect(), layout, meta)
    }

    fn restored(
        &self,
        tree: &Tree,
        sources: Vec<UnitSource<'_>>,
        layout: Layout,
        meta: Meta,
    ) -> Restored {
        // A version is given when a source is made, before the segment of the unit is known; a merge keeps it.
        let versions = sources.iter().filter_map(|source| match source {
            UnitSource::Fresh { version, .. } => Some(*version),
            UnitSource::Shared(_) | UnitSource::Gap(_) => None,
        });
        let versions = versions.collect();
        let (snapshot, merges) = self.assemble(tree, sources, layout, meta);
        Restored {
            snapshot,
            merges,
            versions,
        }
    }

    /// The snapshot that follows `previous`: without the units of these top nodes, and with those of `came`, each after
    /// its rank and the columns that siblings are sorted by. `tree` and `expires` are as in [`Writer::restore`].
    ///
    /// Linear in what went and came, logarithmic in the other units, except for merges.
    pub fn restore_next(
        &self,
        previous: &Snapshot,
        gone: &[&str],
        tree: &Tree,
        expires: &[u32],
        mut came: Vec<(Key<'_>, UnitPart)>,
        meta: Meta,
    ) -> Restored {
        // A unit is named by the id of its top node, the one part of it that stays the same in every store.
        let place = |id: &&str| {
            let node = previous.find(id)?;
            Some((node.piece() as usize, node.unit()))
        };
        let gone: BTreeSet<UnitAt> = gone.iter().filter_map(place).collect();
        // In order of the keys, insertion points ascend, as `splice` needs them.
        came.sort_by_key(|(key, _)| *key);
        let came = came.into_iter().map(|(key, part)| {
            let place = insertion_point(previous, &key);
            (place, part.source(expires))
        });
        let sources = splice(previous, &gone, came, moment(&meta));
        self.restored(tree, sources, Layout::ByLifetime, meta)
    }
}

impl UnitPart {
    fn source(self, expires: &[u32]) -> UnitSource<'_> {
        match self {
            Self::Kept(segment, unit, died) => UnitSource::Shared(UnitRun {
                died,
                ..UnitRun::new(segment, unit..unit + 1)
            }),
            Self::Gap(turns) => UnitSource::Gap(turns),
            Self::Fresh(kind, rows) => {
                UnitSource::fresh(UnitRows { kind, rows }, Ttl::ExpireAt(expires), None)
            }
        }
    }
}
