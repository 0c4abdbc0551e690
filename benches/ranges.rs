//! Ranges over a long session.
//!
//! Measured on a session of 1,000 snapshots and 10,000 live nodes, where each cycle adds a turn of
//! ten nodes:
//! - `history`: the diffs of the whole history for one selector, found by comparing only changed
//!   units.
//! - `depth`: the same for a selector whose answer changes with every commit, so that it runs on
//!   each snapshot.
//! - `separate`: the work of a client without ranges, 1,000 selects and a set comparison of the
//!   ids of neighbours.
//! - `growth`: `history` at 250, 500 and 1,000 snapshots. The cost follows the number of changes.
//!
//! And first, under callgrind, the instructions for each snapshot of four ways through a whole history, on sessions
//! of 500, 2,000 and 8,000 commits, with a note of ttl 3 every fifth turn and without; with the allocations of a
//! call. `-- --instructions` prints only these.
//!
//! Caveats: `separate` compares ids only, not headers, so it does less.

mod support;

use std::collections::HashSet;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group};
use pactql::context::StepClock;
use pactql::{Context, Engine, Message, Session};
use support::memory::{self, counted_blocks};
use support::{callgrind, engine};

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

const SELECTOR: &str = "@history .cb[role='assistant']";

fn open(turns: usize) -> Session {
    engine::load(&support::generate::committed(turns))
}

/// Selects at every snapshot and compares the ids of neighbours: added and removed.
fn separate(session: &Session) -> usize {
    let engine = engine::engine();
    let count = session.history().committed().len();
    let mut changes = 0;
    let mut newer: Option<Vec<String>> = None;
    for back in 0..count {
        let text = format!("@t-{back} .cb[role='assistant']");
        let rows = engine.rows(session, &text).expect("an answer");
        let ids: Vec<String> = rows.to_ids().into_iter().map(str::to_owned).collect();
        if let Some(newer) = newer {
            let (old, new): (HashSet<&String>, HashSet<&String>) =
                (ids.iter().collect(), newer.iter().collect());
            changes += newer.iter().filter(|id| !old.contains(id)).count();
            changes += ids.iter().filter(|id| !new.contains(id)).count();
        }
        newer = Some(ids);
    }
    changes
}

fn ranges(criterion: &mut Criterion) {
    let session = open(1_000);
    let engine = pactql::Engine::new();
    let count = |text: &str| engine.select(&session, text).map_or(0, |diff| diff.count());
    assert_eq!(count(SELECTOR), separate(&session), "both find the same");
    let mut group = criterion.benchmark_group("ranges/1000");
    group.bench_function("history", |bencher| {
        bencher.iter(|| black_box(count(SELECTOR)))
    });
    group.bench_function("depth", |bencher| {
        bencher.iter(|| black_box(count("@history .mt:depth(1) .cb[role='assistant']")));
    });
    group.bench_function("separate", |bencher| bencher.iter(|| separate(&session)));
    group.finish();

    let mut group = criterion.benchmark_group("ranges/growth");
    for turns in [250, 500, 1_000] {
        let session = open(turns);
        group.bench_function(BenchmarkId::from_parameter(turns), |bencher| {
            bencher.iter(|| {
                engine
                    .select(&session, SELECTOR)
                    .map_or(0, |diff| diff.count())
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(10, 1_000);
    targets = ranges
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, way, commits, notes, ..] = &arguments[..]
        && mode == "--way"
        && let (Ok(commits), Ok(notes)) = (commits.parse(), notes.parse())
    {
        let session = grown(commits, notes);
        // On the one thread of a pool, so that the toggle sees all of the work.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let engine = Engine::new();
        pool.expect("a thread")
            .install(|| asked(&engine, &session, way));
        return;
    }
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    growth_table(has("--bench"));
    if !has("--instructions") {
        benches();
        Criterion::default().configure_from_args().final_summary();
    }
}

const WAYS: [&str; 4] = [
    "@* .cb[kind='call']",
    "@history .cb[kind='call']",
    "@history .cb[kind='call'] @mode=union",
    "blame",
];

/// A session of a commit for each turn, which has a question and a call; every fifth turn a note that lives for three.
fn grown(commits: usize, notes: bool) -> Session {
    let clock = StepClock::new(1 << 60, 1_000);
    let mut context = Context::builder().clock(clock).build();
    for turn in 0..commits {
        if notes && turn % 5 == 0 {
            let note = r#"{"nodeType":"cb","kind":"note","ttl":3,"content":"a note"}"#;
            context.add("^ah", note).expect("a note");
        }
        let question = Message::user(&format!("question {turn}"));
        context.append(question).expect("a message");
        let reply = Message::assistant("").call(&format!("call{turn}"), "search", "{}");
        context.reply(reply).expect("a reply");
        context.commit().expect("a commit");
    }
    let history = context.session().history();
    Session::new(history.first_n(commits))
}

/// Goes through the whole history in one of the [`WAYS`].
#[inline(never)]
fn asked(engine: &Engine, session: &Session, way: &str) -> usize {
    if way == "blame" {
        let history = session.history();
        let first = history.committed()[0].nodes().last().expect("a node");
        let blame = pactql::history::blame(&history, first.id());
        return black_box(blame.expect("a node")).events.len();
    }
    let selection = engine.select(session, way).expect("an answer");
    black_box(selection.count())
}

/// Instructions a snapshot, and allocations a call.
fn growth_table(bench: bool) {
    let sizes: &[usize] = if bench { &[500, 2_000, 8_000] } else { &[20] };
    print!("{:<40}", "instructions a snapshot");
    sizes.iter().for_each(|commits| print!("{commits:>10}"));
    println!("{:>24}", "allocations at 1,000");
    for notes in [false, true] {
        let session = grown(if bench { 1_000 } else { 20 }, notes);
        for way in WAYS {
            let with = if notes { ", with ttl" } else { "" };
            print!("{:<40}", format!("{way}{with}"));
            for commits in sizes {
                let (count, notes) = (commits.to_string(), notes.to_string());
                let inside = ["--collect-atstart=no", "--toggle-collect=*ranges*asked*"];
                let counted = callgrind::collected(&inside, &["--way", way, &count, &notes]);
                let counted = counted.filter(|_| bench);
                let shown = counted.map(|counted| (counted / *commits as u64).to_string());
                print!("{:>10}", shown.as_deref().unwrap_or("-"));
            }
            let engine = Engine::new();
            asked(&engine, &session, way);
            let (_, allocations) = counted_blocks(|| asked(&engine, &session, way));
            println!("{allocations:>24}");
        }
    }
}
