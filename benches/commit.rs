//! What a commit costs, and what a small live session takes.
//!
//! Measured, over sessions of 1,000, 10,000 and 100,000 nodes: adding eight blocks to `^ah` and
//! committing them, which seals a turn of ten nodes. Means over 1,024 commits of the instructions of
//! the commit alone and with the adding (under callgrind) and of the bytes kept; the median and the
//! slowest time of a commit. Once on a session that was loaded as one snapshot, and once on one that
//! grew by such commits.
//!
//! Then a step of an agent, which appends a result, adds the reply and commits, on a session of 5,000 such steps:
//! its allocations, instructions and median time.
//!
//! With a hundred standing selectors on a session of 10,000 steps: what each costs at a commit that changes nothing for
//! it, in instructions and in time at the median, and what it costs to look again.
//!
//! And 10,000 live sessions of a hundred nodes in one process, each made by ten commits: the bytes
//! of a session, the bytes of its index a node, commits and selects a second; and the spread of the
//! times of each selector where sessions are asked as Zipf's law says, beside a loop over messages, the clock taken off.
//!
//! The data model is that of `live` and `new_blocks` in `support/generate.rs`. Caveats: times on a
//! busy machine say little; `cargo bench --bench commit -- --counts` prints only what does not depend
//! on it. `-- --small` prints the small sessions only,
//! `-- --standing` the standing selectors.

mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use pactql::context::{StepClock, Watch};
use pactql::internals::index::Segment;
use pactql::{Context, Engine, Message, Prepared, Session};
use support::callgrind::collected;
use support::memory::{self, Counting, measure};
use support::timing::nice;
use support::{engine, generate};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Nodes of the sessions.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// Commits over which a mean or a median is taken.
const COMMITS: usize = 1_024;
/// Nodes of a commit, and how many of them are added; the turn and its core are made by sealing.
const TURN: usize = 10;
const BLOCKS: usize = 8;
/// Small live sessions, and commits of each.
const SESSIONS: usize = 10_000;
const SMALL: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, child, shape, nodes, commits] = &arguments[..]
        && child == "--child"
        && let (Ok(nodes), Ok(commits)) = (nodes.parse(), commits.parse::<usize>())
    {
        let mut live = Live::new(nodes, shape == "loaded");
        let blocks = generate::new_blocks(commits * BLOCKS);
        for turn in blocks.chunks(BLOCKS) {
            live.add_and_commit(turn);
        }
        black_box(&live);
        return;
    }
    if let [_, child, steps] = &arguments[..]
        && child == "--steps"
        && let Ok(steps) = steps.parse::<usize>()
    {
        let mut context = grown(steps);
        (0..COUNTED).for_each(|turn| counted_step(&mut context, turn));
        return;
    }
    if let [_, child, steps, watches] = &arguments[..]
        && child == "--watch"
        && let (Ok(steps), Ok(watches)) = (steps.parse(), watches.parse())
    {
        let mut context = grown(steps);
        let mut watches = standing(&context, watches);
        (0..COUNTED).for_each(|turn| {
            step(&mut context, turn);
            counted_look(&mut watches);
        });
        return;
    }
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    if !has("--bench") {
        // As a test: everything runs once.
        commit_table(&SIZES[..1], false, false);
        step_line(10, false);
        standing_line(10, 5, false);
        return small_sessions(100, true);
    }
    if has("--standing") {
        return standing_line(10_000, 100, true);
    }
    if !has("--small") {
        if !has("--steps") {
            commit_table(&SIZES, true, !has("--counts"));
        }
        step_line(5_000, true);
        if has("--steps") {
            return;
        }
        standing_line(10_000, 100, true);
    }
    small_sessions(SESSIONS, !has("--counts"));
}

/// A session that is committed to.
struct Live(Context);

impl Live {
    /// A session of `nodes` nodes.
    fn new(nodes: usize, loaded: bool) -> Self {
        let session = if loaded {
            generate::live(nodes / TURN, 0, true)
        } else {
            generate::live(0, nodes / TURN, true)
        };
        let builder = Context::builder().clock(StepClock::new(1 << 61, 1_000));
        let context = builder.resume(&engine::load(&session));
        Self(context.expect("a session can be resumed"))
    }

    #[inline(never)]
    fn add_and_commit(&mut self, blocks: &[String]) {
        for block in blocks {
            self.0.add("^ah", block).expect("a block can be added");
        }
        self.commit_only();
    }

    #[inline(never)]
    fn commit_only(&mut self) {
        black_box(self.0.commit().expect("a commit"));
    }
}

/// Prints a line for each shape and size.
fn commit_table(sizes: &[usize], instructions: bool, times: bool) {
    println!(
        "{:<24}{:>14}{:>14}{:>12}{:>12}{:>12}{:>12}",
        "a turn of ten nodes",
        "commit alone",
        "adding, too",
        "bytes kept",
        "median",
        "slowest",
        "adding"
    );
    let blocks = generate::new_blocks(COMMITS * BLOCKS);
    for shape in ["loaded", "grown"] {
        for &nodes in sizes {
            let counted = ["commit_only", "add_and_commit"].map(|function| {
                let count = instructions.then(|| per_commit(function, shape, nodes));
                let count = count.flatten();
                count.map_or("-".to_owned(), |count| count.to_string())
            });
            let mut live = Live::new(nodes, shape == "loaded");
            let turns = blocks.chunks(BLOCKS);
            let ((), kept, _) = measure(|| turns.for_each(|turn| live.add_and_commit(turn)));
            let mut shown = ["-".to_owned(), "-".to_owned(), "-".to_owned()];
            if times {
                let mut live = Live::new(nodes, shape == "loaded");
                let (mut adding, mut committing) = (Vec::new(), Vec::new());
                for turn in blocks.chunks(BLOCKS) {
                    let start = Instant::now();
                    for block in turn {
                        live.0.add("^ah", block).expect("a block can be added");
                    }
                    adding.push(start.elapsed().as_nanos() as f64);
                    let start = Instant::now();
                    live.commit_only();
                    committing.push(start.elapsed().as_nanos() as f64);
                }
                adding.sort_unstable_by(f64::total_cmp);
                committing.sort_unstable_by(f64::total_cmp);
                let [median, last] = [COMMITS / 2, COMMITS - 1];
                shown = [committing[median], committing[last], adding[median]].map(nice);
            }
            let [alone, both] = counted;
            let [median, slowest, adding] = shown;
            println!(
                "{:<24}{alone:>14}{both:>14}{:>12}{median:>12}{slowest:>12}{adding:>12}",
                format!("{shape}, {nodes} nodes"),
                kept / COMMITS,
            );
        }
    }
}

/// Instructions inside one function of [`Live`], as the mean over [`COMMITS`] calls; `None` without
/// valgrind.
fn per_commit(function: &str, shape: &str, nodes: usize) -> Option<u64> {
    let inside = format!("--toggle-collect=*Live*{function}*");
    let (nodes, commits) = (nodes.to_string(), COMMITS.to_string());
    let collected = collected(&[&inside], &["--child", shape, &nodes, &commits])?;
    Some(collected / COMMITS as u64)
}

/// Steps over which the mean of a step is taken; commits of them merge as others do.
const COUNTED: usize = 64;

fn grown(steps: usize) -> Context {
    let builder = Context::builder().clock(StepClock::new(1 << 61, 1_000));
    let mut context = builder.build();
    context
        .append(Message::system(&"You book flights. ".repeat(300)))
        .expect("a message");
    (0..steps).for_each(|turn| step(&mut context, turn));
    context
}

/// What callgrind collects.
#[inline(never)]
fn counted_step(context: &mut Context, turn: usize) {
    step(context, turn);
}

fn step(context: &mut Context, turn: usize) {
    let result = Message::tool(&format!("call{turn}"), "there are seats");
    context.append(result).expect("a result");
    let reply = Message::assistant("").call(&format!("call{}", turn + 1), "search", "{}");
    context.reply(reply).expect("a reply");
    black_box(context.commit().expect("a commit"));
}

fn step_line(steps: usize, bench: bool) {
    let mut context = grown(steps);
    let mut counts: Vec<usize> = (0..COUNTED)
        .map(|turn| memory::counted_blocks(|| step(&mut context, turn)).1)
        .collect();
    let mut times: Vec<f64> = (0..COMMITS)
        .map(|turn| {
            let start = Instant::now();
            step(&mut context, turn);
            start.elapsed().as_nanos() as f64
        })
        .collect();
    counts.sort_unstable();
    times.sort_unstable_by(f64::total_cmp);
    let inside = [
        "--collect-atstart=no",
        "--toggle-collect=*commit*counted_step*",
    ];
    let counted = bench.then(|| collected(&inside, &["--steps", &steps.to_string()]));
    let instructions = counted.flatten().map(|all| all / COUNTED as u64);
    println!(
        "\nappend + reply + commit after {steps} steps: {} allocations ({} on average), {} instructions, {} at the median",
        counts[COUNTED / 2],
        counts.iter().sum::<usize>() / COUNTED,
        instructions.map_or("-".to_owned(), |count| count.to_string()),
        nice(times[COMMITS / 2])
    );
}

/// Standing selectors for which the steps of `grown` change nothing, after their first look.
fn standing(context: &Context, count: usize) -> Vec<Watch> {
    let selector = |number: usize| match number % 4 {
        0 => format!(".cb[kind='call'][data_call_name='tool {number}']"),
        1 => format!(".mt .cb[content~'word {number}']"),
        2 => format!("^sys .cb#key{number}"),
        _ => format!(".cb+tag{number}, .mc > .cb[role='nobody']"),
    };
    let watch = |number| context.watch(&selector(number)).expect("a valid selector");
    let mut watches: Vec<Watch> = (0..count).map(watch).collect();
    // The first look is a run over the session, which is not counted.
    for watch in &mut watches {
        assert!(watch.changes().expect("a look").is_none());
    }
    watches
}

#[inline(never)]
fn counted_look(watches: &mut [Watch]) {
    for watch in watches {
        let diff = watch.changes().expect("a look");
        assert!(diff.is_none(), "{}", watch.text());
    }
}

fn standing_line(steps: usize, count: usize, bench: bool) {
    let mut context = grown(steps);
    let mut watches = standing(&context, count);
    let mut time = |step: &mut dyn FnMut(usize)| {
        let times = (0..COMMITS).map(|turn| {
            step(turn);
            let start = Instant::now();
            counted_look(&mut watches);
            start.elapsed().as_nanos() as f64 / count as f64
        });
        let mut times: Vec<f64> = times.collect();
        times.sort_unstable_by(f64::total_cmp);
        times[COMMITS / 2]
    };
    let after = time(&mut |turn| step(&mut context, turn));
    let again = time(&mut |_| {});
    let inside = [
        "--collect-atstart=no",
        "--toggle-collect=*commit*counted_look*",
    ];
    let counted = |count: usize| {
        let arguments = ["--watch", &steps.to_string(), &count.to_string()];
        bench.then(|| collected(&inside, &arguments)).flatten()
    };
    // The first of them finds what has changed for all.
    let counted = counted(2 * count).zip(counted(count));
    let instructions = counted.map(|(many, few)| (many - few) / (count * COUNTED) as u64);
    println!(
        "\n{count} standing selectors after {steps} steps, each at a commit that changes nothing for it: {} instructions, \
         {} at the median; at another look {}",
        instructions.map_or("-".to_owned(), |count| count.to_string()),
        nice(after),
        nice(again)
    );
}

/// Many sessions, each made by a few commits.
fn small_sessions(count: usize, times: bool) {
    let blocks = generate::new_blocks(SMALL * BLOCKS);
    let begin = |_| Live(Context::builder().clock(StepClock::new(0, 1_000)).build());
    let (mut sessions, empty, _) = measure(|| (0..count).map(begin).collect::<Vec<_>>());
    let start = Instant::now();
    let ((), grown, _) = measure(|| {
        for turn in blocks.chunks(BLOCKS) {
            sessions
                .iter_mut()
                .for_each(|live| live.add_and_commit(turn));
        }
    });
    let committing = start.elapsed().as_secs_f64();
    let read: Vec<Arc<Session>> = sessions.iter_mut().map(|live| live.0.session()).collect();
    let (index, nodes, payload) = sizes(&read[0]);
    println!("\n{count} sessions of {nodes} nodes, made by {SMALL} commits of {TURN} nodes");
    println!("bytes a session          {}", (empty + grown) / count);
    println!("  of them ids, contents  {payload}");
    println!(
        "index bytes a node       {:.1}",
        index as f64 / nodes as f64
    );
    if times {
        let commits = (count * SMALL) as f64;
        println!(
            "commits a second         {:.0}, adding included",
            commits / committing
        );
        let engine = Engine::new();
        let prepare = |text| engine.prepare(text).expect("the selector is valid");
        let prepared: Vec<Prepared> = SELECTORS.into_iter().map(prepare).collect();
        for threads in [1, 2] {
            let rate = selects(&read, &prepared, threads);
            println!("selects a second         {rate:.0}, threads: {threads}");
        }
        for (text, prepared) in SELECTORS.iter().zip(&prepared) {
            let times = spread(&read, |session| {
                black_box(prepared.rows(session).expect("the selector runs").to_ids());
            });
            print_spread(text, times);
        }
        let by_hand: Vec<Vec<HandMessage>> = read.iter().map(|session| messages(session)).collect();
        let times = spread(&by_hand, |messages| {
            let own = messages.iter().filter(|(_, role)| role == "assistant");
            black_box(own.map(|(id, _)| &**id).collect::<Vec<&str>>());
        });
        print_spread("the first one, as a loop over messages", times);
    }
}

/// Selects whose times are spread.
const SPREAD: usize = 200_000;

/// The id and the role of a message.
type HandMessage = (String, String);

fn messages(session: &Session) -> Vec<HandMessage> {
    let blocks = Engine::new().rows(session, "@t0 .cb").expect("blocks");
    let message = |node: pactql::Node<'_>| {
        let role = node.role().unwrap_or_default();
        (node.id().to_owned(), role.to_owned())
    };
    blocks.nodes().map(message).collect()
}

fn print_spread(text: &str, [middle, slow, slowest]: [f64; 3]) {
    println!(
        "{text:<42}p50 {}, p99 {}, {:.2} times; p99.9 {}",
        nice(middle),
        nice(slow),
        slow / middle.max(1.0),
        nice(slowest)
    );
}

/// The times at the 50th, 99th and 99.9th percentile. The session of rank `r` is asked with a weight of `1 / r`.
fn spread<T>(sessions: &[T], ask: impl Fn(&T)) -> [f64; 3] {
    let weights = (1..=sessions.len()).map(|rank| 1.0 / rank as f64);
    let sums: Vec<f64> = weights
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let total = sums.last().copied().unwrap_or(0.0);
    let mut state = 1_u64;
    let mut draw = || {
        // The numbers of Knuth's MMIX, of which the highest bits are random enough.
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        let rank =
            sums.partition_point(|sum| *sum < (state >> 11) as f64 / (1_u64 << 53) as f64 * total);
        // Neighbours in rank are not neighbours in memory.
        &sessions[rank * 7_919 % sessions.len()]
    };
    let mut time = |work: &dyn Fn(&T)| {
        let times = (0..SPREAD).map(|_| {
            let session = draw();
            let start = Instant::now();
            work(session);
            start.elapsed().as_nanos() as f64
        });
        let mut times: Vec<f64> = times.collect();
        times.sort_unstable_by(f64::total_cmp);
        [SPREAD / 2, SPREAD / 100 * 99, SPREAD / 1_000 * 999].map(|at| times[at])
    };
    let [clock, ..] = time(&|session| {
        black_box(session);
    });
    time(&ask).map(|time| (time - clock).max(0.0))
}

/// What the small sessions are asked.
const SELECTORS: [&str; 4] = [
    "@t0 .cb[role='assistant']",
    "@t0 ^seq .mt:depth(1-3) .cb[role='user']",
    "@t0 ^seq > .mt > .mc > .cb:first",
    "@t-5 .cb",
];

/// Selects a second: `threads` threads go through all sessions, each from its own start.
fn selects(sessions: &[Arc<Session>], prepared: &[Prepared], threads: usize) -> f64 {
    let ask = |thread: usize| {
        let (left, right) = sessions.split_at(sessions.len() * thread / threads);
        for session in right.iter().chain(left) {
            for prepared in prepared {
                let rows = prepared.rows(session).expect("the selector runs");
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
    let history = session.history();
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
