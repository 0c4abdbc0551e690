//! Loading: from the bytes of a document to a session that can be queried.
//!
//! Measured: 1,000, 10,000 and 100,000 nodes (31 MB) of JSON in memory, read with all checks and
//! indexed; reading alone; and the baselines on the same bytes: serde_json into plain structs
//! (`walk`, which checks only types), and SQLite with its table and covering indexes.
//!
//! The data model is that of `support/generate.rs`.
//!
//! Caveats: dropping the session is part of the time. SQLite is filled from the plain structs, and
//! reading those is part of its time.

mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::{engine, generate, sqlite, walk};

fn load(criterion: &mut Criterion) {
    for nodes in [1_000, 10_000, 100_000] {
        let bytes = generate::document(nodes);
        let mut group = criterion.benchmark_group(format!("load/{nodes}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let mut bench = |name: &str, load: &mut dyn FnMut(&[u8])| {
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter(|| load(&bytes));
            });
        };
        bench("read", &mut |bytes| {
            drop(
                pactql::internals::tree::read_document(bytes)
                    .expect("the generated document is valid"),
            );
        });
        bench("pactql", &mut |bytes| drop(engine::load(bytes)));
        bench("walk", &mut |bytes| drop(walk::load(bytes)));
        bench("sqlite", &mut |bytes| drop(sqlite::load(bytes)));
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(10, 2_000);
    targets = load
}
criterion_main!(benches);
