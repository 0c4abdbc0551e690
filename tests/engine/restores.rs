//! Snapshots made again of their units: the same bytes, whatever was indexed before, and nothing is
//! indexed twice.

use std::cell::Cell;
use std::sync::Arc;

use pactql::internals::index::{Layout, NodeRef, Snapshot, UnitPart, Writer};
use pactql::internals::tree::Tree;
use pactql::logs::write_document;

use crate::support::kept::{Kept, Restorer};
use crate::support::random::{self, Case, same};

/// Everything a reader can see of a snapshot.
fn contents(snapshot: &Snapshot) -> Vec<String> {
    let show = |node: NodeRef<'_>| {
        assert_eq!(snapshot.find(node.id()), Some(node));
        let children: Vec<&str> = node.children().map(NodeRef::id).collect();
        let texts = [node.role(), node.kind(), node.key(), node.node_type()];
        format!(
            "{} {:?} {:?} {:?} {:?} {children:?} {texts:?} {:?} {:?} {:?} {:?}",
            node.id(),
            node.class(),
            node.depth(),
            node.unit_kind(),
            node.parent().map(NodeRef::id),
            node.ttl(),
            node.expires(),
            node.present(),
            node.fields().collect::<Vec<_>>(),
        )
    };
    assert_eq!(snapshot.len(), snapshot.nodes().count());
    snapshot.nodes().map(show).collect()
}

fn bytes(snapshot: &Snapshot) -> Vec<u8> {
    let mut out = Vec::new();
    write_document(snapshot, &mut out).expect("memory");
    out
}

/// The committed snapshots and the working state.
fn snapshots(case: &Case) -> Result<Vec<Arc<Snapshot>>, proptest::test_runner::TestCaseError> {
    let history = case.open()?.0.history();
    let committed = history.committed().iter();
    Ok(committed.chain(history.working()).cloned().collect())
}

#[test]
fn units_give_back_every_snapshot_in_any_order() {
    let (count, expiring) = (Cell::new(0), Cell::new(0));
    random::sessions(random::share(2_000), |case| {
        let snapshots = snapshots(case)?;
        let kept = Kept::of(&snapshots);
        let mut order: Vec<usize> = (0..snapshots.len()).collect();
        let mut rng = case.rng();
        for _ in 0..2 {
            let mut restorer = Restorer::default();
            let mut made: Vec<Option<Snapshot>> = snapshots.iter().map(|_| None).collect();
            for &at in &order {
                let snapshot = restorer.snapshot(&kept, at);
                same!(bytes(&snapshot), bytes(&snapshots[at]), "snapshot {at}");
                same!(
                    contents(&snapshot),
                    contents(&snapshots[at]),
                    "snapshot {at}"
                );
                let counts = snapshot.nodes().filter(|node| node.expires().is_some());
                expiring.set(expiring.get() + counts.count());
                made[at] = Some(snapshot);
                count.set(count.get() + 1);
            }
            // The units that differ are those that are kept apart.
            let made: Vec<Arc<Snapshot>> = made.into_iter().flatten().map(Arc::new).collect();
            same!(Kept::of(&made).units(), kept.units(), "units");
            rng.shuffle(&mut order);
        }
        Ok(())
    });
    println!(
        "{} snapshots, {} ttls that count",
        count.get(),
        expiring.get()
    );
    let least = random::share(5_000) as usize;
    assert!(random::is_single() || count.get() > least && expiring.get() > least);
}

#[test]
fn units_that_are_indexed_are_taken_as_they_are_with_their_dead_rows() {
    let dead = Cell::new(0);
    random::sessions(random::share(2_000), |case| {
        for snapshot in snapshots(case)? {
            let parts = snapshot.units().map(|unit| {
                let rows: Vec<u32> = unit.dead_rows().collect();
                dead.set(dead.get() + usize::from(!rows.is_empty()));
                UnitPart::Kept(Arc::clone(unit.segment()), unit.index(), rows)
            });
            let meta = snapshot.meta().clone();
            let again = Writer::new().without_merging().restore(
                &Tree::default(),
                &[],
                parts.collect(),
                Layout::ByLifetime,
                meta,
            );
            same!(bytes(&again.snapshot), bytes(&snapshot), "bytes");
            same!(contents(&again.snapshot), contents(&snapshot), "contents");
            let changes = again.snapshot.unit_changes(&snapshot);
            same!((changes.gone.len(), changes.came.len()), (0, 0), "changes");
        }
        Ok(())
    });
    assert!(
        random::is_single() || dead.get() > random::share(200) as usize,
        "{}",
        dead.get()
    );
}
