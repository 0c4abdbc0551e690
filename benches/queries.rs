//! One bench for each query class, contender and size.
//!
//! Measured: the time until the caller has the ids of the answer as a `Vec<&str>`, on one thread
//! and one snapshot, with a prepared selector or statement and warm caches. Sizes are 1,000, 10,000
//! and 100,000 nodes. Labels give the number of ids in the answer, which decides most of the time.
//!
//! The data model is that of `support/generate.rs`, the contenders are described in
//! `support/{walk,sqlite,bitset,engine}.rs`. All answers are compared before anything is timed.
//!
//! Caveats: contenders run one after the other, so on a busy machine only large differences are
//! significant. `figures` interleaves them and is what the documentation quotes.

mod support;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
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
    config = support::timing::criterion(20, 800);
    targets = queries
}
criterion_main!(benches);
