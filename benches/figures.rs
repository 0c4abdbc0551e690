//! The figures to reach, in one table.
//!
//! What is measured: every query class on one snapshot of 100,000 nodes (1,000 with the four big
//! ones), one thread, caches warm, selector prepared; a time ends when the caller holds the ids
//! as a `Vec<&str>`. Beside them compiling, loading, and the bytes held after loading. All
//! contenders run in this process and take turns of a few milliseconds, so ratios hold on any
//! machine while times hold on none.
//!
//! The data model is that of `support/generate.rs`; the contenders are the loop over plain
//! structs (`walk`), SQLite, and bare bitsets (the floor: no planning, no session, made for these
//! ten questions). Before anything is timed, all are checked to give the same ids in the same
//! order. A figure is reached when the ratio to the better of walk and SQLite is at least the
//! ratio of the same times in the list of figures.
//!
//! Caveats: contents of generated blocks are shorter than real ones, roles and kinds are evenly
//! mixed over the session, and nothing else competes for the caches between two runs of one
//! query.
//!
//! `cargo bench --bench figures` takes about a minute, `-- --quick` a few seconds.

mod support;

use support::memory::{self, Counting};
use support::queries::{Query, Task};
use support::timing::{Effort, interleaved, nice};
use support::{bitset, generate, queries, sqlite, walk};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    for nodes in [100_000, 1_000] {
        let bytes = generate::document(nodes);
        let (tree, walk_bytes, _) = memory::measure(|| walk::load(&bytes));
        let database = sqlite::load(&bytes);
        let (floor, floor_bytes, _) = memory::measure(|| bitset::load(&tree));
        println!(
            "{nodes} nodes, {} bytes of JSON; structs {walk_bytes} bytes, SQLite {} bytes, bitsets {floor_bytes} bytes",
            bytes.len(),
            database.bytes(),
        );
        let id = queries::asked_id(&tree);
        for query in Query::ALL {
            let expected = walk::answer(&tree, query, &id);
            assert_eq!(database.answer(query, &id), expected, "{query:?}");
            assert_eq!(floor.answer(query, &id), expected, "{query:?}");
            let mut tasks: Vec<Task<'_>> = vec![
                database.task(query, &id),
                walk::task(&tree, query, &id),
                floor.task(query, &id),
            ];
            let times = interleaved(effort, &mut tasks);
            let figure = query.figure();
            println!(
                "{:20} {:6} ids  sqlite {:>9} ({:>9})  walk {:>9} ({:>9})  floor {:>9} ({:>9})",
                query.name(),
                expected.len(),
                nice(times[0]),
                nice(figure.sqlite),
                nice(times[1]),
                nice(figure.walk),
                nice(times[2]),
                nice(figure.floor),
            );
        }
    }
}
