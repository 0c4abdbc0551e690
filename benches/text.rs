//! Text: searching contents, the memory of sessions that wait, and loading.
//!
//! Measured: `[content~word]` with a prepared selector over sessions of 300 and 3,000 nodes, its time and its
//! allocations, beside a loop of `memmem` over the same contents; the bytes that each of 1,000 sessions of 30
//! nodes keeps, whose system prompt is the same 6 KB; loading a document of 31 MB; and each selector of
//! `selectors.txt` on 10,000 nodes.
//!
//! `cargo bench --bench text`; with `select` and a number of calls it only runs the selectors, for callgrind.

#[allow(dead_code, reason = "shared by several benches")]
#[path = "support/generate.rs"]
mod generate;
#[allow(dead_code, reason = "shared by several benches")]
#[path = "support/memory.rs"]
mod memory;

use std::hint::black_box;
use std::time::Instant;

use pactql::{Engine, Session};

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, selector, calls] = &arguments[..]
        && mode == "select"
        && let Ok(calls) = calls.parse()
    {
        return select(selector, calls);
    }
    if !arguments.iter().any(|argument| argument == "--bench") {
        search(300, 2);
        return idle(10);
    }
    search(300, 2_000);
    search(3_000, 400);
    idle(1_000);
    load();
    for selector in include_str!("selectors.txt").lines() {
        let session = session(10_000);
        let engine = Engine::new();
        let ns = fastest(60, || {
            black_box(engine.rows(&session, selector).map(|rows| rows.count())).is_ok()
        });
        println!("{ns:>12.0} ns  {selector}");
    }
}

fn session(nodes: usize) -> Session {
    Session::from_slice(&generate::document(nodes)).expect("a session")
}

/// The fastest of some runs, in nanoseconds.
fn fastest<T>(runs: usize, mut work: impl FnMut() -> T) -> f64 {
    let times = (0..runs).map(|_| {
        let begun = Instant::now();
        black_box(work());
        begun.elapsed().as_secs_f64() * 1e9
    });
    times.fold(f64::INFINITY, f64::min)
}

fn search(nodes: usize, runs: usize) {
    let session = session(nodes);
    let engine = Engine::new();
    let blocks = engine.rows(&session, "@t0 .cb").expect("blocks");
    let contents: Vec<String> = blocks
        .nodes()
        .map(|node| node.text().into_owned())
        .collect();
    for pattern in ["tomato", "refund", "order"] {
        let selector = format!("@t0 .cb[content~'{pattern}']");
        let prepared = engine.prepare(&selector).expect("a selector");
        let count = || prepared.rows(&session).map_or(0, |rows| rows.count());
        let found = count();
        let ns = fastest(runs, count);
        let (_, blocks) = memory::counted_blocks(count);
        let finder = memchr::memmem::Finder::new(pattern);
        let search = || {
            let contents = contents.iter();
            contents
                .filter(|text| finder.find(text.as_bytes()).is_some())
                .count()
        };
        assert_eq!(found, search());
        let plain = fastest(runs, search);
        println!(
            "{nodes} nodes, {} contents, `{pattern}`: {found} found, {ns:.0} ns, {blocks} allocations; a loop {plain:.0} ns",
            contents.len()
        );
    }
}

/// A session of 30 nodes, most of whose text is a system prompt.
fn small(number: usize) -> String {
    let prompt = "You are a careful assistant. Answer in \\\"plain\\\" words.\\n".repeat(105);
    let block = |at: usize| {
        format!(
            r#"{{"id":"b{at}","nodeType":"cb","role":"user","kind":"text","created_at_ns":{at},"created_at_iso":"2026-01-31T08:{at:02}:00Z","content":"Question {at} of session {number}: what is the state of order {number}-{at}?\nPlease answer with one line, and say where it is now."}}"#
        )
    };
    let turns: Vec<String> = (0..6)
        .map(|turn| {
            let blocks: Vec<String> = (turn * 2..turn * 2 + 2).map(block).collect();
            format!(
                r#"{{"id":"t{turn}","nodeType":"mt","created_at_ns":{turn},"children":[{{"id":"c{turn}","nodeType":"mc","children":[{}]}}]}}"#,
                blocks.join(",")
            )
        })
        .collect();
    format!(
        r#"{{"cycle":1,"root":{{"id":"r","children":[{{"id":"^sys","nodeType":"^sys","children":[{{"id":"p","nodeType":"cb","role":"system","content":"{prompt}"}}]}},{{"id":"q","nodeType":"^seq","children":[{}]}},{{"id":"h","nodeType":"^ah"}}]}}}}"#,
        turns.join(",")
    )
}

fn idle(sessions: usize) {
    let texts: Vec<String> = (0..sessions).map(small).collect();
    let (kept, bytes, _) = memory::measure(|| {
        let sessions = texts
            .iter()
            .map(|text| Session::from_slice(text.as_bytes()));
        sessions.collect::<Vec<_>>()
    });
    assert!(kept.iter().all(Result::is_ok));
    println!("{} bytes a session of 30 nodes", bytes / sessions);
}

fn load() {
    let bytes = generate::document(100_000);
    let ns = fastest(7, || Session::from_slice(&bytes).is_ok());
    println!("{:.1} ms to load {} bytes", ns / 1e6, bytes.len());
}

fn select(selector: &str, calls: usize) {
    let session = session(10_000);
    let engine = Engine::new();
    for _ in 0..calls {
        black_box(engine.rows(&session, selector).map(|rows| rows.count())).ok();
    }
}
