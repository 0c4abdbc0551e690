//! Constructs of the later editions beside what says the same without them.
//!
//! What is measured: the time until the caller holds the ids (for a range: the number of changes)
//! of a prepared selector, over a generated session of 10,000 nodes in one snapshot. `with` is
//! the construct, `without` its equivalent of edition `v0.1` or, where that has none, the long
//! form; the pairs are those of `support/pairs.rs`.
//!
//! Caveats: both sides have one plan, so a difference is noise. `tests/engine/pairs.rs` asserts it by
//! counters, which is the proof; this shows that nothing outside of plans adds to it.

mod support;

use std::hint::black_box;
use std::time::Duration;

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
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400));
    targets = editions
}
criterion_main!(benches);
