//! One bench for each query class, contender and size.
//!
//! What is measured: the time until the caller holds the ids of the answer as a `Vec<&str>`; one
//! thread, one snapshot, selector or statement prepared, caches warm. Sizes are 1,000, 10,000
//! and 100,000 nodes; labels give the number of ids in the answer, which is what most of the
//! time goes by.
//!
//! The data model is that of `support/generate.rs`, the contenders are described in
//! `support/{walk,sqlite,bitset,engine}.rs`. All answers are compared before anything is timed.
//!
//! Caveats: contenders run one after the other, so on a busy machine only large differences mean
//! something; `figures` lets them take turns and is what the documentation quotes.

mod support;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::time::Duration;
use support::contenders::Contenders;
use support::queries::Query;

fn queries(criterion: &mut Criterion) {
    for nodes in [1_000, 10_000, 100_000] {
        let contenders = Contenders::new(nodes);
        let mut group = criterion.benchmark_group(format!("queries/{nodes}"));
        for query in Query::ALL {
            let ids = contenders.check(query);
            for (contender, mut task) in contenders.tasks(query) {
                let id = BenchmarkId::new(query.name(), format!("{contender}, {ids} ids"));
                group.bench_function(id, |bencher| bencher.iter(&mut task));
            }
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = queries
}
criterion_main!(benches);
