//! The cycle in which each id of a session occurs first, for selectors that ask for the age of a node
//! without a `cycle`. It knows no addresses.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::snapshots::Snapshots;
use crate::index::{Segment, SnapshotPiece};
use crate::support::cancel::ensure;

#[derive(Debug, Default)]
pub(super) struct FirstSeen {
    pub(super) cycles: HashMap<Box<str>, i64>,
    /// How many rows were read to build the table.
    rows: usize,
}

impl FirstSeen {
    /// Reads each unit version once, in the oldest snapshot that has it, where none of its rows has
    /// been removed yet; a part of it if the work is cancelled. Runs of units that neighbouring snapshots share are skipped as a whole.
    pub(super) fn new(committed: &Snapshots) -> Self {
        let mut found = Self::default();
        let mut versions: HashSet<u64> = HashSet::new();
        // Visited unit range per segment; the key is valid because snapshots keep the Arc alive.
        let mut known: HashMap<*const Segment, Range<u32>> = HashMap::new();
        for snapshot in committed {
            for piece in snapshot.pieces() {
                ensure();
                let (units, segment) = (piece.units(), piece.segment());
                let known = known.entry(Arc::as_ptr(segment)).or_insert(0..0);
                let before = units.start..units.end.min(known.start);
                let after = units.start.max(known.end)..units.end;
                for unit in before.chain(after) {
                    if versions.insert(segment.units()[unit as usize].version) {
                        found.add(piece, segment.unit_rows(unit), snapshot.cycle());
                    }
                }
                if known.start == known.end {
                    *known = units.clone();
                } else if known.start <= units.end && units.start <= known.end {
                    *known = known.start.min(units.start)..known.end.max(units.end);
                }
            }
        }
        found
    }

    fn add(&mut self, piece: &SnapshotPiece, rows: Range<u32>, cycle: i64) {
        self.rows += rows.len();
        for row in rows {
            if piece.segment().is_core(row) || piece.is_dead(row) {
                continue;
            }
            let id = piece.segment().id(row);
            if !self.cycles.contains_key(id) {
                self.cycles.insert(id.into(), cycle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FirstSeen;
    use crate::history::Session;

    #[test]
    fn what_snapshots_share_is_looked_at_once() {
        let turns = 200;
        let turn = |turn: usize| {
            format!(
                r#"{{"id":"t{turn}","nodeType":"mt","created_at_ns":{turn},"children":[{{"id":"b{turn}","nodeType":"cb"}}]}}"#
            )
        };
        let mut lines = String::new();
        for cycle in 1..=turns {
            let turns: Vec<String> = (1..=cycle).map(turn).collect();
            let seq = format!(
                r#"{{"id":"s","nodeType":"^seq","children":[{}]}}"#,
                turns.join(",")
            );
            lines.push_str(&format!(
                "{{\"cycle\":{cycle},\"root\":{{\"children\":[{seq}]}}}}\n"
            ));
        }
        let session = Session::from_slice(lines.as_bytes()).expect("the lines are documents");
        let history = session.history();
        let found = FirstSeen::new(history.committed());
        for turn in 1..=turns {
            let cycle = Some(turn as i64);
            assert_eq!(found.cycles.get(&*format!("b{turn}")).copied(), cycle);
        }
        // A turn is itself, its implicit core and its block; the preamble is two more.
        assert!(found.rows <= 3 * turns + 4, "{} rows", found.rows);
        assert_eq!(found.cycles.len(), 2 * turns + 2);
    }
}
