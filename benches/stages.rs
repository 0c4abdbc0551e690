//! The cost of each stage from selector text to rows.
//!
//! Measured, for selectors of about 50 characters: text to syntax tree (`parse`), text to
//! normalized form (`lower`, which includes parsing), normalized form to plan (`plan`), plan and
//! values to a bound plan (`bind`), and all of it in an engine whose cache is empty
//! (`compile/new`) or has the text (`compile/seen`). Then
//! running: by text with a cold and with a warm plan cache, and prepared, for a query of the newest
//! turn and for one that reads all of 10,000 nodes.
//!
//! The data model is that of `support/generate.rs`. Throughput is selectors a second.
//!
//! Caveats: the cold cache is created for each run, outside of the measured time.

mod support;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use pactql::Edition;
use pactql::internals::{ir, plan, syntax};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use support::engine::{Pact, engine};
use support::generate;
use support::queries::{Query, literals, shapes};

fn stages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stages");
    let mut texts = vec![("new", shapes(1).remove(0))];
    for query in [Query::LastTurn, Query::Summary] {
        texts.push((query.name(), query.selector("")));
    }
    for (name, text) in &texts {
        let id = |stage: &str| BenchmarkId::new(stage, name);
        group.bench_function(id("parse"), |bencher| {
            bencher.iter(|| syntax::parse(black_box(text)).is_ok());
        });
        group.bench_function(id("lower"), |bencher| {
            bencher.iter(|| ir::compile(black_box(text), Edition::V01));
        });
        let lowered = ir::compile(text, Edition::V01).expect("the selector is valid");
        group.bench_function(id("plan"), |bencher| {
            bencher.iter(|| plan::compile(black_box(&lowered.query)));
        });
        let plan = Arc::new(plan::compile(&lowered.query));
        let sources = plan::sources(&lowered.query);
        group.bench_function(id("bind"), |bencher| {
            bencher.iter(|| plan::bind(black_box(&plan), &sources, &[]).is_ok());
        });
    }
    group.finish();
}

fn compile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    let (new, known) = (shapes(432), literals(432));
    let cases: [(&str, &[String], &[String]); 2] = [("new", &new, &[]), ("seen", &known, &known)];
    for (name, texts, before) in cases {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let mut time = Duration::ZERO;
                let mut left = rounds as usize;
                while left > 0 {
                    let engine = engine();
                    before.iter().for_each(|text| drop(engine.prepare(text)));
                    let texts = &texts[..left.min(texts.len())];
                    left -= texts.len();
                    let start = std::time::Instant::now();
                    for text in texts {
                        black_box(engine.prepare(black_box(text)).is_ok());
                    }
                    time += start.elapsed();
                }
                time
            });
        });
    }
    group.finish();
}

fn run(criterion: &mut Criterion) {
    let pact = Pact::new(&generate::document(10_000));
    let mut group = criterion.benchmark_group("run");
    for query in [Query::LastTurn, Query::Assistant] {
        let text = query.selector("");
        group.bench_function(BenchmarkId::new("cold cache", query.name()), |bencher| {
            bencher.iter_batched_ref(
                engine,
                |engine| {
                    let selection = engine
                        .rows(&pact.session, black_box(&text))
                        .expect("the selector runs");
                    selection.to_ids().len()
                },
                BatchSize::SmallInput,
            );
        });
        let mut warm = pact.by_text(query, "");
        group.bench_function(BenchmarkId::new("warm cache", query.name()), |bencher| {
            bencher.iter(&mut warm);
        });
        let mut prepared = pact.task(query, "");
        group.bench_function(BenchmarkId::new("prepared", query.name()), |bencher| {
            bencher.iter(&mut prepared);
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(20, 800);
    targets = stages, compile, run
}
criterion_main!(benches);
