//! Ranges over a long session.
//!
//! Measured on a session of 1,000 snapshots and 10,000 live nodes, where each cycle adds a turn of
//! ten nodes:
//! - `history`: the diffs of the whole history for one selector, found by comparing only changed
//!   units.
//! - `depth`: the same for a selector whose answer changes with every commit, so that it runs on
//!   each snapshot.
//! - `separate`: the work of a client without ranges, 1,000 selects and a set comparison of the
//!   ids of neighbours.
//! - `growth`: `history` at 250, 500 and 1,000 snapshots. The cost follows the number of changes.
//!
//! Caveats: `separate` compares ids only, not headers, so it does less.

mod support;

use std::collections::HashSet;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pactql::Session;
use support::engine;

const SELECTOR: &str = "@history .cb[role='assistant']";

fn open(turns: usize) -> Session {
    engine::load(&support::generate::committed(turns))
}

/// Selects at every snapshot and compares the ids of neighbours: added and removed.
fn separate(session: &Session) -> usize {
    let engine = engine::engine();
    let count = session.history().committed().len();
    let mut changes = 0;
    let mut newer: Option<Vec<String>> = None;
    for back in 0..count {
        let text = format!("@t-{back} .cb[role='assistant']");
        let rows = engine.rows(session, &text).expect("an answer");
        let ids: Vec<String> = rows.to_ids().into_iter().map(str::to_owned).collect();
        if let Some(newer) = newer {
            let (old, new): (HashSet<&String>, HashSet<&String>) =
                (ids.iter().collect(), newer.iter().collect());
            changes += newer.iter().filter(|id| !old.contains(id)).count();
            changes += ids.iter().filter(|id| !new.contains(id)).count();
        }
        newer = Some(ids);
    }
    changes
}

fn ranges(criterion: &mut Criterion) {
    let session = open(1_000);
    let engine = pactql::Engine::new();
    let count = |text: &str| engine.select(&session, text).map_or(0, |diff| diff.count());
    assert_eq!(count(SELECTOR), separate(&session), "both find the same");
    let mut group = criterion.benchmark_group("ranges/1000");
    group.bench_function("history", |bencher| {
        bencher.iter(|| black_box(count(SELECTOR)))
    });
    group.bench_function("depth", |bencher| {
        bencher.iter(|| black_box(count("@history .mt:depth(1) .cb[role='assistant']")));
    });
    group.bench_function("separate", |bencher| bencher.iter(|| separate(&session)));
    group.finish();

    let mut group = criterion.benchmark_group("ranges/growth");
    for turns in [250, 500, 1_000] {
        let session = open(turns);
        group.bench_function(BenchmarkId::from_parameter(turns), |bencher| {
            bencher.iter(|| {
                engine
                    .select(&session, SELECTOR)
                    .map_or(0, |diff| diff.count())
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(10, 1_000);
    targets = ranges
}
criterion_main!(benches);
