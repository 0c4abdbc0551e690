//! Instructions a call takes, counted by callgrind: figures that do not depend on the machine's
//! load.
//!
//! What is counted: each of the ten query classes, prepared, on one snapshot of 1,000 nodes and on
//! one of 10,000, from the call to a `Vec<&str>` of the ids; counting every block; and compiling a
//! selector of 50 characters that is new, or known by its text. The program runs
//! itself under `valgrind --tool=callgrind` twice with different numbers of calls, and divides the
//! difference, so loading and start-up do not count.
//!
//! The data model is that of `support/generate.rs`. Caveat: callgrind counts instructions, not
//! cache misses; an answer of many ids is bound by memory, and its time can move the other way.
//!
//! `cargo bench --bench instructions` takes a minute or two and prints `SKIPPED` where valgrind is
//! not installed.

mod support;

use std::hint::black_box;
use std::process::Command;

use support::engine::{Pact, compile_time, engine};
use support::queries::{self, Query, literals, shapes};
use support::{callgrind, generate, walk};

/// Sizes of the sessions, in nodes, with two numbers of calls to compare.
const SIZES: [(usize, [usize; 2]); 2] = [(1_000, [200, 1_200]), (10_000, [20, 120])];
/// Numbers of selectors to compile, to compare.
const COMPILED: [usize; 2] = [100, 400];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, child, case, nodes, calls] = &arguments[..]
        && child == "--child"
        && let (Ok(nodes), Ok(calls)) = (nodes.parse(), calls.parse())
    {
        return run(case, nodes, calls);
    }
    if !arguments.iter().any(|argument| argument == "--bench") {
        // As a test: every case runs.
        for case in cases() {
            run(case, 1_000, 1);
        }
        return;
    }
    let valgrind = Command::new("valgrind").arg("--version").output();
    if !valgrind.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: valgrind is not installed");
        return;
    }
    println!(
        "{:<24}{:>14}{:>14}",
        "instructions a call", "1,000 nodes", "10,000 nodes"
    );
    for case in cases().filter(|case| !case.starts_with("compile")) {
        let [small, large] = SIZES.map(|(nodes, calls)| per_call(case, nodes, calls));
        println!("{case:<24}{small:>14}{large:>14}");
    }
    println!("\n{:<24}{:>14}", "instructions a selector", "");
    for case in cases().filter(|case| case.starts_with("compile")) {
        println!("{case:<24}{:>14}", per_call(case, 0, COMPILED));
    }
}

/// The names of everything that is counted.
fn cases() -> impl Iterator<Item = &'static str> {
    let queries = Query::ALL.iter().map(|query| query.name());
    queries.chain(["count-every-block", "compile-new", "compile-seen"])
}

/// Instructions a call, or `-` where callgrind gave no number.
fn per_call(case: &str, nodes: usize, [few, many]: [usize; 2]) -> String {
    match (collected(case, nodes, few), collected(case, nodes, many)) {
        (Some(a), Some(b)) => ((b - a) / (many - few) as u64).to_string(),
        _ => "-".to_owned(),
    }
}

/// Runs this program under callgrind; all instructions of the run.
fn collected(case: &str, nodes: usize, calls: usize) -> Option<u64> {
    let (nodes, calls) = (nodes.to_string(), calls.to_string());
    callgrind::collected(&[], &["--child", case, &nodes, &calls])
}

/// Makes `calls` calls of a case.
fn run(case: &str, nodes: usize, calls: usize) {
    match case {
        "compile-new" => compile(&shapes(calls), &[]),
        "compile-seen" => {
            // One text only, so that the first compilation does not count for each.
            let engine = engine();
            let text = &literals(1)[0];
            for _ in 0..calls {
                black_box(engine.prepare(black_box(text)).is_ok());
            }
        }
        _ => select(case, nodes, calls),
    }
}

fn compile(texts: &[String], before: &[String]) {
    black_box(compile_time(texts, before));
}

fn select(case: &str, nodes: usize, calls: usize) {
    let bytes = generate::document(nodes);
    let id = queries::asked_id(&walk::load(&bytes));
    let pact = Pact::new(&bytes);
    let query = Query::ALL.into_iter().find(|query| query.name() == case);
    let mut task = match query {
        Some(query) => pact.task(query, &id),
        None => pact.count(Query::Blocks, &id),
    };
    for _ in 0..calls {
        black_box(task());
    }
}
