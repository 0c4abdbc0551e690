//! How costs grow with the length of a session.
//!
//! Measured:
//! - `local`: the four queries of one node, the newest turns or the head, on sessions of 100, 1,000
//!   and 3,000 turns with a snapshot for each turn. The times should not grow.
//! - `commits`: reading such a session from delta lines. Throughput is in commits a second and
//!   nearly the same for every length.
//! - `whole`: the same from whole snapshots of 30 and 100 turns. The bytes read are quadratic, the
//!   memory is not.
//! - `threads`: the ten query classes in turn over 100,000 nodes, on one thread and on two that
//!   share engine and session.
//!
//! The data model is that of `support/generate.rs`.
//!
//! Caveats: on a busy machine, two threads gain little.

mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::contenders::Contenders;
use support::engine::{self, Pact};
use support::generate;
use support::queries::Query;

fn local(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scale/local");
    for turns in [100, 1_000, 3_000] {
        let pact = Pact::new(&generate::committed(turns));
        let blocks = pact.answer(Query::Blocks, "");
        let id = &blocks[blocks.len() / 2];
        for query in Query::LOCAL {
            let mut task = pact.task(query, id);
            group.bench_function(BenchmarkId::new(query.name(), turns), |bencher| {
                bencher.iter(&mut task);
            });
        }
    }
    group.finish();
}

fn commits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scale/commits");
    for turns in [100, 1_000, 4_000] {
        let bytes = generate::committed(turns);
        group.throughput(Throughput::Elements(turns as u64));
        group.bench_function(BenchmarkId::from_parameter(turns), |bencher| {
            bencher.iter(|| engine::load(&bytes));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("scale/whole");
    for turns in [30, 100] {
        let bytes = generate::committed_whole(turns);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(turns), |bencher| {
            bencher.iter(|| engine::load(&bytes));
        });
    }
    group.finish();
}

fn threads(criterion: &mut Criterion) {
    let contenders = Contenders::new(100_000);
    let mut group = criterion.benchmark_group("scale/threads");
    for threads in [1, 2] {
        group.throughput(Throughput::Elements((threads * Query::ALL.len()) as u64));
        group.bench_function(BenchmarkId::from_parameter(threads), |bencher| {
            bencher.iter_custom(|rounds| contenders.pact.in_turn(&contenders.id, threads, rounds));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(10, 1_000);
    targets = local, commits, threads
}
criterion_main!(benches);
