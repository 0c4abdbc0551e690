//! The sessions that agents have: 30, 300 and 3,000 nodes, grown by commits.
//!
//! Measured: 24 selectors, prepared, from `rows` to a `Vec<&str>` of the ids, on one thread, beside a loop over
//! `Vec<Message>` that knows where turns begin, a walk over an arena of nodes in document order, and an SQLite
//! table in memory with indexes and prepared statements. All four are checked to give the same ids in the same
//! order. Times are nanoseconds, by `support/timing.rs`; printed are the ratios to the loop, their geometric mean,
//! and the allocations of a call by a counting allocator. Then binding a parameter, counting, and the memory of
//! sessions that wait.
//!
//! Sessions are made of conversations of tau-bench (30 and 300 nodes) and of a coding agent (3,000), a commit for
//! each reply. They are read from `PACTQL_DATA`, or from `../shared/data`; without them a synthetic conversation of
//! the same shape is used. Every fifth turn has a note with the key `plan`, a priority and a ttl.
//!
//! `cargo bench --bench sessions`; `-- --quick` for a first impression, `-- --instructions` for instructions a call
//! under callgrind, which do not depend on the machine's load, `-- --class NAME NODES CALLS` to run one class only.

#[path = "../support/mod.rs"]
mod support;

mod classes;
mod contenders;
mod grow;

use std::hint::black_box;
use std::time::Duration;

use contenders::{Arena, Hand, Table};
use pactql::{Engine, Prepared, Session};
use support::callgrind;
use support::memory::{self, counted_blocks};
use support::queries::Task;
use support::timing::{Effort, interleaved};

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

const SIZES: [usize; 3] = [30, 300, 3_000];
/// Calls of a class under callgrind.
const CALLS: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, class, nodes, calls, ..] = &arguments[..]
        && mode == "--class"
        && let (Ok(nodes), Ok(calls)) = (nodes.parse(), calls.parse())
    {
        return run_one(class, nodes, calls);
    }
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    if has("--instructions") {
        return instructions();
    }
    let bench = has("--bench");
    let (rounds, turn) = match (bench, has("--quick")) {
        (false, _) => (1, Duration::ZERO),
        (true, true) => (5, Duration::from_micros(200)),
        (true, false) => (31, Duration::from_micros(500)),
    };
    let effort = Effort { rounds, turn };
    let sizes = if bench { &SIZES[..] } else { &SIZES[..2] };
    for &nodes in sizes {
        table(nodes, effort);
    }
    idle(if bench { 1_000 } else { 10 });
}

fn table(nodes: usize, effort: Effort) {
    let session = grow::session(&grow::conversation(nodes), nodes);
    let facts = classes::Facts::of(&session);
    let (hand, arena) = (Hand::of(&session), Arena::of(&session));
    let table = Table::of(&arena);
    let engine = Engine::new();
    println!(
        "\n{:<22}{:>7}{:>10}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}",
        format!("{} nodes", arena.nodes.len()),
        "ids",
        "loop",
        "arena",
        "SQLite",
        "pactql",
        "to loop",
        "allocs",
        "count"
    );
    let (mut sum, mut over) = (0.0, 0);
    let classes = classes::all();
    for class in &classes {
        let prepared = engine.prepare(&class.selector(&facts)).expect("a selector");
        let ids = prepared.rows(&session).expect("rows");
        let ids: Vec<String> = ids.ids().map(str::to_owned).collect();
        let mut statement = table.prepare(&class.sql(&facts));
        assert_eq!(ids, (class.hand)(&hand, &facts), "loop, {}", class.name);
        assert_eq!(ids, (class.arena)(&arena, &facts), "arena, {}", class.name);
        assert_eq!(
            ids,
            contenders::ids(&mut statement),
            "SQLite, {}",
            class.name
        );
        let mut tasks: [Task<'_>; 4] = [
            Box::new(|| black_box((class.hand)(black_box(&hand), &facts)).len()),
            Box::new(|| black_box((class.arena)(black_box(&arena), &facts)).len()),
            Box::new(|| black_box(contenders::ids(&mut statement)).len()),
            Box::new(|| select(&prepared, &session)),
        ];
        let times = interleaved(effort, &mut tasks);
        let [by_loop, by_arena, sqlite, pactql]: [f64; 4] = times.try_into().expect("four times");
        // Afterwards, as the first call on a thread makes the memory that later ones use again.
        let (_, allocations) = counted_blocks(|| select(&prepared, &session));
        let (_, counting) = counted_blocks(|| count(&prepared, &session));
        let ratio = pactql / by_loop;
        sum += ratio.ln();
        over += usize::from(pactql > sqlite);
        println!(
            "{:<22}{:>7}{by_loop:>10.0}{by_arena:>10.0}{sqlite:>10.0}{pactql:>10.0}{ratio:>10.2}{allocations:>8}{counting:>8}",
            class.name,
            ids.len()
        );
    }
    let mean = (sum / classes.len() as f64).exp();
    println!("geometric mean {mean:.2}; slower than SQLite in {over} classes");
    let role = engine.prepare("@t0 .cb[role=$role]").expect("a selector");
    let bind = |role: &Prepared| role.bind([("role", "user".into())]).expect("a value");
    let bound = bind(&role);
    let mut tasks: [Task<'_>; 3] = [
        Box::new(|| select(&bound, &session)),
        Box::new(|| select(&bind(black_box(&role)), &session)),
        Box::new(|| count(&bound, &session)),
    ];
    let times = interleaved(effort, &mut tasks);
    let [selected, both, counted]: [f64; 3] = times.try_into().expect("three times");
    println!(
        "select {selected:.0} ns, bind + select {both:.0} ns, {:.2} times; count {counted:.0} ns",
        both / selected
    );
}

#[inline(never)]
fn select(prepared: &Prepared, session: &Session) -> usize {
    let selection = prepared.rows(black_box(session)).expect("rows");
    black_box(selection.to_ids()).len()
}

fn count(prepared: &Prepared, session: &Session) -> usize {
    prepared.rows(black_box(session)).expect("rows").count()
}

/// Bytes that each of some sessions of 30 nodes keeps.
fn idle(sessions: usize) {
    let conversation = grow::conversation(30);
    let grown = (0..sessions).map(|_| grow::session(&conversation, 30));
    let (kept, bytes, _) = memory::measure(|| grown.collect::<Vec<_>>());
    assert_eq!(kept.len(), sessions);
    println!("\n{} bytes a waiting session of 30 nodes", bytes / sessions);
}

/// Calls one class, for callgrind and other profilers.
fn run_one(class: &str, nodes: usize, calls: usize) {
    let session = grow::session(&grow::conversation(nodes), nodes);
    let facts = classes::Facts::of(&session);
    let class = classes::all().into_iter().find(|known| known.name == class);
    let engine = Engine::new();
    let selector = class.expect("a class").selector(&facts);
    let prepared = engine.prepare(&selector).expect("a selector");
    for _ in 0..calls {
        select(&prepared, &session);
    }
}

/// Prints the instructions of a call of each class, `-` where callgrind gave no number.
fn instructions() {
    println!(
        "{:<22}{:>12}{:>12}{:>12}",
        "instructions a call", "30", "300", "3,000"
    );
    for class in classes::all() {
        let [small, middle, large] = SIZES.map(|nodes| match collected(class.name, nodes) {
            Some(instructions) => (instructions / CALLS as u64).to_string(),
            None => "-".to_owned(),
        });
        println!("{:<22}{small:>12}{middle:>12}{large:>12}", class.name);
    }
}

/// The instructions of [`CALLS`] calls; what is before them does not count.
fn collected(class: &str, nodes: usize) -> Option<u64> {
    let inside = ["--collect-atstart=no", "--toggle-collect=*sessions*select*"];
    let (nodes, calls) = (nodes.to_string(), CALLS.to_string());
    callgrind::collected(&inside, &["--class", class, &nodes, &calls])
}
