//! Inputs that once took quadratic time.
//!
//! Measured: loading a document and running one selector, at one size and at eight times that
//! size, for documents that are large in one way: many attribute names, tags in both spellings,
//! many zones to pick from. If time is linear, the bytes a second stay about the same.

use std::hint::black_box;

mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pactql::{Engine, Session};

/// The factor between the two sizes.
const FACTOR: usize = 8;

/// What is measured: a name, the smaller size, the document of a size, and a selector.
type Case = (&'static str, usize, fn(usize) -> String, &'static str);

const CASES: &[Case] = &[
    ("distinct attribute names", 6_000, names, "@t0 [k7=7]"),
    ("`tag` beside `tags`", 4_000, tags, "@t0 +t7"),
    ("a pick behind a zone", 700, turns, "@t0 * :core .cb:first"),
    (
        "a pick behind two zones",
        700,
        turns,
        "@t0 * :core > :core .cb:last",
    ),
    (
        "a pick of children of a zone",
        700,
        turns,
        "@t0 * :core > .cb:nth(2)",
    ),
];

/// A root with `size` attributes.
fn names(size: usize) -> String {
    let fields: Vec<String> = (0..size).map(|k| format!("\"k{k}\":{k}")).collect();
    format!("{{\"root\":{{{}}}}}", fields.join(","))
}

/// A root with `size` children that have a tag in either spelling.
fn tags(size: usize) -> String {
    let node = |n| format!(r#"{{"id":"n{n}","tag":"x","tags":["t{n}"]}}"#);
    let nodes: Vec<String> = (0..size).map(node).collect();
    format!(r#"{{"root":{{"children":[{}]}}}}"#, nodes.join(","))
}

/// `size` turns of eight blocks.
fn turns(size: usize) -> String {
    let block = |turn, n| format!(r#"{{"id":"b{turn}.{n}","nodeType":"cb"}}"#);
    let turn = |turn| {
        let blocks: Vec<String> = (0..8).map(|n| block(turn, n)).collect();
        format!(
            r#"{{"id":"t{turn}","nodeType":"mt","creation_index":{turn},"children":[{}]}}"#,
            blocks.join(",")
        )
    };
    let turns: Vec<String> = (0..size).map(turn).collect();
    format!(
        r#"{{"root":{{"id":"r","children":[{{"id":"q","nodeType":"^seq","children":[{}]}}]}}}}"#,
        turns.join(",")
    )
}

fn growth(criterion: &mut Criterion) {
    for (name, size, document, selector) in CASES {
        let mut group = criterion.benchmark_group(format!("growth/{name}"));
        for size in [*size, size * FACTOR] {
            let document = document(size);
            group.throughput(Throughput::Bytes(document.len() as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter(|| {
                    let session = Session::from_slice(document.as_bytes()).expect("a session");
                    let found = Engine::new().rows(&session, selector).expect("an answer");
                    black_box(found.count())
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(10, 1_000);
    targets = growth
}
criterion_main!(benches);
