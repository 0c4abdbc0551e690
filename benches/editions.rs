//! Constructs of the later editions, compared with their equivalents.
//!
//! Measured: the time until the caller has the ids (for a range, the number of changes) of a
//! prepared selector, over a generated session of 10,000 nodes in one snapshot. `with` is the
//! construct, `without` its equivalent in edition `v0.1` or, if there is none, the long form in the
//! same edition. The pairs are in `support/pairs.rs`.
//!
//! Caveats: both sides have the same plan, so differences are noise. `tests/engine/pairs.rs` asserts
//! this with counters; the bench shows that nothing outside of plans adds a cost.

mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pactql::Answer;
use support::pairs::{PAIRS, engine, session};

fn editions(criterion: &mut Criterion) {
    let session = session(10_000);
    let mut group = criterion.benchmark_group("editions");
    for pair in PAIRS {
        for (side, (edition, text)) in [("with", pair.construct), ("without", pair.plain)] {
            let prepared = engine(edition)
                .prepare(text)
                .expect("the selector is valid");
            let id = BenchmarkId::new(pair.construct.1, side);
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    let selection = prepared
                        .select(black_box(&session))
                        .expect("the selector runs");
                    match selection {
                        Answer::Range(diff) => diff.rows(),
                        Answer::Rows(rows) => black_box(rows.to_ids()).len(),
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(20, 400);
    targets = editions
}
criterion_main!(benches);
