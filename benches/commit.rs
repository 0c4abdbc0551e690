//! What a commit costs, and what a small live session takes.
//!
//! Measured, over sessions of 1,000, 10,000 and 100,000 nodes:
//! - one commit of a turn of ten nodes, from its difference to the published history: the
//!   instructions (under callgrind) and the bytes kept, as means over 1,024 commits; the median
//!   time;
//! - once on a session that was loaded as one snapshot, and once on one that grew by such commits.
//!
//! And 10,000 live sessions of a hundred nodes in one process, each made by ten commits: the bytes
//! of a session, the bytes of its index a node, commits and selects a second.
//!
//! The data model is that of `live` in `support/generate.rs`. Caveats: times on a busy machine say
//! little; `cargo bench --bench commit -- --counts` prints only what does not depend on it.

mod support;

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use pactql::internals::history::History;
use pactql::internals::index::{Meta, Segment, Writer};
use pactql::internals::tree::{Body, Delta, Document, read_lines};
use pactql::{Engine, Prepared, Session};
use support::memory::{Counting, measure};
use support::timing::nice;
use support::{engine, generate};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Nodes of the sessions.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// Commits over which a mean or a median is taken.
const COMMITS: usize = 1_024;
/// Nodes of a commit.
const TURN: usize = 10;
/// Small live sessions, and commits of each.
const SESSIONS: usize = 10_000;
const SMALL: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, child, shape, nodes, commits] = &arguments[..]
        && child == "--child"
        && let (Ok(nodes), Ok(commits)) = (nodes.parse(), commits.parse())
    {
        let (mut live, deltas) = Live::new(nodes, shape == "loaded");
        deltas[..commits]
            .iter()
            .for_each(|delta| live.commit(delta));
        black_box(&live);
        return;
    }
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    if !has("--bench") {
        // As a test: everything runs once.
        commit_table(&SIZES[..1], false, false);
        return small_sessions(100, true);
    }
    if !has("--small") {
        commit_table(&SIZES, true, !has("--counts"));
    }
    small_sessions(SESSIONS, !has("--counts"));
}

/// A session that is committed to.
struct Live {
    session: Session,
    writer: Writer,
}

impl Live {
    /// A session of `nodes` nodes, and [`COMMITS`] more differences.
    fn new(nodes: usize, loaded: bool) -> (Self, Vec<Delta>) {
        let bytes = generate::live(nodes / TURN, COMMITS, loaded);
        let mut documents = read_lines(&bytes).expect("the generated lines are valid");
        let deltas = differences(documents.split_off(documents.len() - COMMITS));
        (Self::of(documents), deltas)
    }

    fn of(documents: Vec<Document>) -> Self {
        Self {
            session: Session::from_documents(documents).expect("the documents are a session"),
            writer: Writer::new(),
        }
    }

    fn commit(&mut self, delta: &Delta) {
        let history = self.session.history();
        let previous = history.committed().last().expect("a snapshot");
        let meta = Meta {
            cycle: previous.cycle() + 1,
            ..previous.meta().clone()
        };
        let made = self.writer.commit(previous, delta, &meta);
        let (snapshot, merges) = made.expect("the difference applies");
        let next = history.appended(Arc::new(snapshot), &merges);
        self.session.publish(next);
    }
}

fn differences(documents: Vec<Document>) -> Vec<Delta> {
    let bodies = documents.into_iter().map(|document| document.body);
    let delta = |body| match body {
        Body::Delta(delta) => delta,
        Body::Full(_) | Body::Runtime(_) => {
            unreachable!("the lines after the first are differences")
        }
    };
    bodies.map(delta).collect()
}

/// Prints a line for each shape and size.
fn commit_table(sizes: &[usize], instructions: bool, times: bool) {
    println!(
        "{:<28}{:>14}{:>14}{:>12}{:>12}",
        "a commit of ten nodes", "instructions", "bytes kept", "median", "slowest"
    );
    for shape in ["loaded", "grown"] {
        for &nodes in sizes {
            let counted = instructions.then(|| per_commit(shape, nodes)).flatten();
            let counted = counted.map_or("-".to_owned(), |count| count.to_string());
            let (mut live, deltas) = Live::new(nodes, shape == "loaded");
            let ((), kept, _) = measure(|| deltas.iter().for_each(|delta| live.commit(delta)));
            let (mut median, mut slowest) = ("-".to_owned(), "-".to_owned());
            if times {
                let (mut live, deltas) = Live::new(nodes, shape == "loaded");
                let timed = |delta| {
                    let start = Instant::now();
                    live.commit(delta);
                    start.elapsed().as_nanos() as f64
                };
                let mut times: Vec<f64> = deltas.iter().map(timed).collect();
                times.sort_unstable_by(f64::total_cmp);
                median = nice(times[times.len() / 2]);
                slowest = nice(times[times.len() - 1]);
            }
            println!(
                "{:<28}{counted:>14}{:>14}{median:>12}{slowest:>12}",
                format!("{shape}, {nodes} nodes"),
                kept / COMMITS,
            );
        }
    }
}

/// Instructions of a commit, as the mean over [`COMMITS`]; `None` without valgrind.
fn per_commit(shape: &str, nodes: usize) -> Option<u64> {
    let collected = |commits: usize| -> Option<u64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().ok()?)
            .args(["--child", shape, &nodes.to_string(), &commits.to_string()])
            .env("RAYON_NUM_THREADS", "1")
            .output()
            .ok()?;
        let printed = String::from_utf8_lossy(&output.stderr);
        let line = printed.lines().find(|line| line.contains("Collected :"))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    Some((collected(COMMITS)? - collected(0)?) / COMMITS as u64)
}

/// Many sessions, each made by a few commits.
fn small_sessions(count: usize, times: bool) {
    let bytes = generate::live(0, SMALL, true);
    let read = || read_lines(&bytes).expect("the generated lines are valid");
    let deltas = differences(read().split_off(1));
    let begin = || {
        let mut documents = read();
        documents.truncate(1);
        Live::of(documents)
    };
    let (mut sessions, empty, _) = measure(|| (0..count).map(|_| begin()).collect::<Vec<_>>());
    let start = Instant::now();
    let ((), grown, _) = measure(|| {
        for delta in &deltas {
            sessions.iter_mut().for_each(|live| live.commit(delta));
        }
    });
    let committing = start.elapsed().as_secs_f64();
    let (index, nodes, payload) = sizes(&sessions[0].session);
    println!("\n{count} sessions of {nodes} nodes, made by {SMALL} commits of {TURN} nodes");
    println!("bytes a session          {}", (empty + grown) / count);
    println!("  of them ids, contents  {payload}");
    println!(
        "index bytes a node       {:.1}",
        index as f64 / nodes as f64
    );
    if times {
        let commits = (count * SMALL) as f64;
        println!("commits a second         {:.0}", commits / committing);
        let engine = Engine::new();
        let prepare = |text| engine.prepare(text).expect("the selector is valid");
        let prepared: Vec<Prepared> = SELECTORS.into_iter().map(prepare).collect();
        for threads in [1, 2] {
            let rate = selects(&sessions, &prepared, threads);
            println!("selects a second         {rate:.0} ({threads} threads)");
        }
    }
}

/// What the small sessions are asked.
const SELECTORS: [&str; 4] = [
    "@t0 .cb[role='assistant']",
    "@t0 ^seq .mt:depth(1-3) .cb[role='user']",
    "@t0 ^seq > .mt > .mc > .cb:first",
    "@t-5 .cb",
];

/// Selects a second: `threads` threads go through all sessions, each from its own start.
fn selects(sessions: &[Live], prepared: &[Prepared], threads: usize) -> f64 {
    let ask = |thread: usize| {
        let (left, right) = sessions.split_at(sessions.len() * thread / threads);
        for live in right.iter().chain(left) {
            for prepared in prepared {
                let rows = prepared.rows(&live.session).expect("the selector runs");
                black_box(rows.to_ids());
            }
        }
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        (0..threads).for_each(|thread| drop(scope.spawn(move || ask(thread))));
    });
    (threads * sessions.len() * prepared.len()) as f64 / start.elapsed().as_secs_f64()
}

/// Bytes of the index, nodes, and bytes of ids and contents of a session, by its own count.
fn sizes(session: &Session) -> (usize, usize, usize) {
    let history: Arc<History> = session.history();
    let snapshots = history.committed().iter().chain(history.working());
    let mut segments: Vec<&Arc<Segment>> = snapshots
        .flat_map(|snapshot| snapshot.pieces())
        .map(|piece| piece.segment())
        .collect();
    segments.sort_unstable_by_key(|segment| Arc::as_ptr(segment));
    segments.dedup_by_key(|segment| Arc::as_ptr(segment));
    (
        engine::index_bytes(session),
        segments
            .iter()
            .map(|segment| segment.nodes() as usize)
            .sum(),
        segments.iter().map(|segment| segment.payload_bytes()).sum(),
    )
}
