//! The figures to reach, in one table.
//!
//! What is measured: every query class on one snapshot of 100,000 nodes, the four that look at
//! one place only at 1,000 nodes too, and the four big ones there; one thread, caches warm,
//! selector prepared; a time ends when the caller holds the ids as a `Vec<&str>`. Beside them
//! counting, compiling, loading, two threads, and the bytes held after loading. All contenders
//! run in this process and take turns of a few milliseconds, so ratios hold on any machine while
//! times hold on none.
//!
//! The data model is that of `support/generate.rs`; the contenders are the loop over plain
//! structs (`walk`), SQLite, and bare bitsets (the floor: no planning, no session, made for these
//! ten questions). Before anything is timed, all are checked to give the same ids in the same
//! order. A figure is reached when the ratio to the better of walk and SQLite is at least the
//! required one; for memory, when the bytes are at most those required.
//!
//! Caveats: contents of generated blocks are shorter than real ones, roles and kinds are evenly
//! mixed over the session, and nothing else competes for the caches between two runs of one
//! query.
//!
//! `cargo bench --bench figures` takes about a minute, with `-- --quick` some ten seconds. Run as
//! a test it only compares the answers.

mod support;

use support::contenders::Contenders;
use support::memory::Counting;
use support::queries::{Figure, Query, Task};
use support::table::{Line, Table};
use support::timing::{Effort, interleaved, once};
use support::{bitset, sqlite, walk};

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
}

/// The ten query classes on the large session.
fn queries(contenders: &Contenders, effort: Effort, table: &mut Table) {
    table.section("100,000 nodes");
    for query in Query::ALL {
        table.add(measure(contenders, query, effort, query.figure().ratio()));
    }
}

/// On the small session: what looks at one place takes no longer than on the large one, and what
/// looks at everything is never slower than the loop.
fn small(contenders: &Contenders, effort: Effort, table: &mut Table) {
    table.section("1,000 nodes");
    for query in Query::LOCAL {
        let mut line = measure(contenders, query, effort, query.figure().ratio());
        if query == Query::ById {
            // The loop finds one of a thousand nodes in no time; the figure is SQLite's.
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

/// Counting every block, held against listing them.
fn counting(contenders: &Contenders, effort: Effort, table: &mut Table) {
    let figure = Figure {
        reach: 300.0,
        ..Query::Blocks.figure()
    };
    let id = &contenders.id;
    let mut tasks: Vec<Task<'_>> = vec![
        contenders.database.task(Query::Blocks, id),
        walk::task(&contenders.tree, Query::Blocks, id),
    ];
    let times = interleaved(effort, &mut tasks);
    table.add(Line {
        name: "every-block, counted only".into(),
        sqlite: times[0],
        walk: times[1],
        floor: f64::NAN,
        pactql: f64::NAN,
        required: figure.ratio(),
    });
}

/// From text to something that runs.
fn compiling(contenders: &Contenders, effort: Effort, table: &mut Table) {
    table.section("compiling a selector of 50 characters");
    let sqlite = interleaved(effort, &mut [contenders.database.compile()])[0];
    for (name, reach) in [
        ("new", 6e3),
        ("of a known shape", 4e3),
        ("text already seen", 200.0),
    ] {
        table.add(Line {
            name: name.into(),
            sqlite,
            walk: f64::NAN,
            floor: f64::NAN,
            pactql: f64::NAN,
            required: 30e3 / reach,
        });
    }
}

/// From bytes in memory to something that answers.
fn loading(contenders: &Contenders, effort: Effort, table: &mut Table) {
    table.section("loading, every check on");
    let bytes = &contenders.bytes;
    let sqlite = once(effort, || sqlite::load(bytes));
    let walk = once(effort, || walk::load(bytes));
    let floor = once(effort, || bitset::load(&contenders.tree));
    for (name, reach) in [("one thread", 220e6), ("two threads", 150e6)] {
        table.add(Line {
            name: name.into(),
            sqlite,
            walk,
            floor,
            pactql: f64::NAN,
            required: 120e6 / reach,
        });
    }
}
