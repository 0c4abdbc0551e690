//! The performance targets, in one table.
//!
//! Measured: every query class on one snapshot of 100,000 nodes, and the four local and the four
//! large ones also at 1,000 nodes; one thread, warm caches, prepared selectors. A time ends when
//! the caller has the ids as a `Vec<&str>`. Also counting, compiling, loading, two threads, and the
//! memory after loading. All contenders run in this process in turns of a few milliseconds, so
//! ratios are comparable between machines; times are not.
//!
//! The data model is that of `support/generate.rs`; the contenders are the loop over plain
//! structs (`walk`), SQLite, and bare bitsets (a lower bound: no planning, no session, written for
//! these ten queries). Before timing, all contenders are checked to give the same ids in the same
//! order. A target is reached if the ratio to the better of `walk` and SQLite is at least the
//! required one; for memory, if the bytes are at most those required.
//!
//! Caveats: generated contents are shorter than real ones, roles and kinds are evenly distributed
//! over the session, and nothing else uses the CPU caches between two runs of one query.
//!
//! `cargo bench --bench figures` takes about a minute, `-- --quick` about ten seconds. As a test it
//! only compares the answers.

mod support;

use support::contenders::{Contenders, payload};
use support::memory::{self, Counting};
use support::queries::{Figure, Query, Task, literals, shapes};
use support::table::{Line, Table};
use support::timing::{Effort, interleaved, once, per_run, settled};
use support::{bitset, engine, sqlite, walk};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let flag = |name: &str| std::env::args().any(|argument| argument == name);
    if !flag("--bench") {
        let contenders = Contenders::new(1_000);
        for query in Query::ALL {
            contenders.check(query);
        }
        return;
    }
    let effort = if flag("--quick") {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    let mut table = Table::default();
    let contenders = Contenders::new(100_000);
    queries(&contenders, effort, &mut table);
    counting(&contenders, effort, &mut table);
    small(&Contenders::new(1_000), effort, &mut table);
    compiling(&contenders, effort, &mut table);
    loading(&contenders, effort, &mut table);
    print!("{table}");
    threads(&contenders, effort);
    memory_held(&contenders);
}

/// The ten query classes on the large session.
fn queries(contenders: &Contenders, effort: Effort, table: &mut Table) {
    table.section("100,000 nodes");
    for query in Query::ALL {
        let line = measure(contenders, query, effort, query.figure().ratio());
        if query == Query::ById {
            let figure = Figure {
                reach: 200.0,
                ..query.figure()
            };
            let mut by_text = [contenders.pact.by_text(query, &contenders.id)];
            let pactql = interleaved(effort, &mut by_text)[0];
            let name = "by-id, by text through the cache".into();
            let required = figure.ratio();
            table.add(Line {
                name,
                pactql,
                required,
                ..line
            });
        }
        table.add(line);
    }
}

/// On the small session: local queries take no longer than on the large one, and queries that read
/// everything are never slower than the loop.
fn small(contenders: &Contenders, effort: Effort, table: &mut Table) {
    table.section("1,000 nodes");
    for query in Query::LOCAL {
        let mut line = measure(contenders, query, effort, query.figure().ratio());
        if query == Query::ById {
            // Among a thousand nodes the loop is trivial, so the target compares with SQLite.
            line.walk = f64::NAN;
        }
        table.add(line);
    }
    for query in Query::BIG {
        let mut line = measure(contenders, query, effort, 1.0);
        line.sqlite = f64::NAN;
        table.add(line);
    }
}

/// Times one query class.
fn measure(contenders: &Contenders, query: Query, effort: Effort, required: f64) -> Line {
    let ids = contenders.check(query);
    let (names, mut tasks): (Vec<_>, Vec<_>) = contenders.tasks(query).into_iter().unzip();
    let times = interleaved(effort, &mut tasks);
    let time = |name: &str| {
        names
            .iter()
            .position(|&other| other == name)
            .map_or(f64::NAN, |index| times[index])
    };
    Line {
        name: format!("{} ({ids} ids)", query.name()),
        sqlite: time("sqlite"),
        walk: time("walk"),
        floor: time("floor"),
        pactql: time("pactql"),
        required,
    }
}

/// Counting all blocks, compared with listing them.
fn counting(contenders: &Contenders, effort: Effort, table: &mut Table) {
    let figure = Figure {
        reach: 300.0,
        ..Query::Blocks.figure()
    };
    let id = &contenders.id;
    let mut tasks: Vec<Task<'_>> = vec![
        contenders.database.task(Query::Blocks, id),
        walk::task(&contenders.tree, Query::Blocks, id),
        contenders.pact.count(Query::Blocks, id),
    ];
    let times = interleaved(effort, &mut tasks);
    table.add(Line {
        name: "every-block, counted only".into(),
        sqlite: times[0],
        walk: times[1],
        floor: f64::NAN,
        pactql: times[2],
        required: figure.ratio(),
    });
}

/// Compiling: from text to a prepared selector.
fn compiling(contenders: &Contenders, effort: Effort, table: &mut Table) {
    table.section("compiling 50 characters");
    let (new, known) = (shapes(128), literals(128));
    let cases: [(&str, f64, &[String], &[String]); 2] = [
        ("new", 6e3, &new, &[]),
        ("text already seen", 200.0, &known, &known),
    ];
    let mut compile = contenders.database.compile();
    let mut sqlite = Vec::new();
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..effort.rounds * 4 {
        sqlite.push(per_run(&mut compile, 32));
        for ((_, _, texts, before), times) in cases.iter().zip(&mut times) {
            times.push(engine::compile_time(texts, before));
        }
    }
    let sqlite = settled(&mut sqlite);
    for ((name, reach, ..), times) in cases.iter().zip(&mut times) {
        table.add(Line {
            name: (*name).into(),
            sqlite,
            walk: f64::NAN,
            floor: f64::NAN,
            pactql: settled(times),
            required: 30e3 / reach,
        });
    }
}

/// Loading: from bytes in memory to a session.
fn loading(contenders: &Contenders, effort: Effort, table: &mut Table) {
    table.section("loading 31 MB, every check on");
    let bytes = &contenders.bytes;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("threads start");
    let (mut walk, mut pactql) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds.div_ceil(3) {
        walk.push(once(|| walk::load(bytes)));
        pactql.push(pool.install(|| once(|| engine::load(bytes))));
    }
    table.add(Line {
        name: "one thread".into(),
        sqlite: once(|| sqlite::load(bytes)),
        walk: settled(&mut walk),
        floor: once(|| bitset::load(&contenders.tree)),
        pactql: settled(&mut pactql),
        required: 120.0 / 220.0,
    });
}

/// The ten query classes in turn, on one thread and on two.
fn threads(contenders: &Contenders, effort: Effort) {
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..effort.rounds * 2 {
        for (threads, times) in [1, 2].into_iter().zip(&mut times) {
            let time = contenders.pact.in_turn(&contenders.id, threads, 8);
            times.push(time.as_nanos() as f64 / threads as f64);
        }
    }
    let [one, two] = times.map(|mut times| settled(&mut times));
    println!(
        "\nten queries in turn, two threads: {:.2}x of one (required 1.80)  {}",
        one / two,
        support::table::verdict(one / two >= 1.8)
    );
}

/// The memory of a loaded session without ids, contents and custom fields.
fn memory_held(contenders: &Contenders) {
    const LIMIT: usize = 14_000_000;
    let payload = payload(&contenders.tree);
    let (session, held, peak) = memory::measure(|| engine::load(&contenders.bytes));
    let beyond = held.saturating_sub(payload);
    println!(
        "\nbytes held: {held}; ids, contents and custom fields {payload}; beyond them {beyond} (at most {LIMIT})  {}",
        support::table::verdict(beyond <= LIMIT)
    );
    println!(
        "  of the rest, index {} bytes; SQLite {} bytes beyond the payload; peak while loading {peak} bytes",
        engine::index_bytes(&session),
        contenders.database.bytes().saturating_sub(payload),
    );
}
