//! The cost of a range follows the changes, not the size of the session. Asserted with counters,
//! which are the same on every machine.

use std::fmt::Write;

use pactql::{Engine, Session, explain::Counters};

/// Blocks of a turn, which also has the turn itself and its container.
const BLOCKS: usize = 8;

/// A session of `cycles` snapshots; each seals one more turn of ten nodes.
fn session(cycles: usize) -> Session {
    let mut lines = String::from(
        r#"{"cycle":1,"root":{"id":"r","children":[{"id":"s","nodeType":"^sys","children":[{"id":"p","nodeType":"cb","offset":0}]},{"id":"q","nodeType":"^seq"},{"id":"a","nodeType":"^ah"}]}}"#,
    );
    for cycle in 2..=cycles {
        let _ = write!(
            lines,
            "\n{{\"cycle\":{cycle},\"base\":{},\"replace\":[\
             {{\"id\":\"t{cycle}\",\"parent_id\":\"q\",\"nodeType\":\"mt\",\"created_at_ns\":{cycle}}},\
             {{\"id\":\"c{cycle}\",\"parent_id\":\"t{cycle}\",\"nodeType\":\"mc\"}}",
            cycle - 1
        );
        for block in 0..BLOCKS {
            let role = ["user", "assistant", "tool", "assistant"][block % 4];
            let _ = write!(
                lines,
                ",{{\"id\":\"b{cycle}.{block}\",\"parent_id\":\"c{cycle}\",\"nodeType\":\"cb\",\
                 \"role\":\"{role}\",\"offset\":{block},\"content\":\"text {block} of {cycle}\"}}"
            );
        }
        lines.push_str("]}");
    }
    Session::from_slice(lines.as_bytes()).expect("the session is valid")
}

fn cost(session: &Session, selector: &str) -> (usize, Counters) {
    let selection = Engine::new().select(session, selector).expect("an answer");
    (selection.count(), selection.measure())
}

#[test]
fn a_history_of_diffs_touches_what_changed() {
    let cycles = 1_000;
    let session = session(cycles);
    let history = session.history();
    let pieces: u64 = history
        .committed()
        .iter()
        .map(|s| s.pieces().len() as u64)
        .sum();
    let changed = ((cycles - 1) * (BLOCKS + 2)) as u64;
    for (selector, rows) in [
        ("@history .cb[role='assistant']", (cycles - 1) * BLOCKS / 2),
        ("@history ^seq > .mt > .mc > .cb:first", cycles - 1),
        (
            "@history .mt .mc .cb[content~'text 3'], .cb[role=tool]",
            (cycles - 1) * 3,
        ),
    ] {
        let (count, counters) = cost(&session, selector);
        assert_eq!(count, rows, "{selector}");
        let most = 4 * (changed + pieces);
        let touched = counters.rows_seen + counters.probes;
        assert!(
            touched <= most,
            "{selector} touched {touched} rows; {changed} changed, in {pieces} pieces"
        );
    }
}

#[test]
fn one_list_of_many_snapshots_runs_each_unit_once() {
    let session = session(400);
    let live = session.history().committed()[399].len() as u64;
    for selector in [
        "@* .cb[role='assistant']",
        "@history .cb[role='assistant'] @mode=union",
        "@history .cb[role='assistant'] @mode=latest",
    ] {
        let (count, counters) = cost(&session, selector);
        assert_eq!(count, 399 * BLOCKS / 2, "{selector}");
        let touched = counters.rows_seen;
        assert!(
            touched <= 2 * live,
            "{selector} touched {touched} of {live} rows"
        );
    }
}

#[test]
fn a_limit_ends_a_list_of_many_snapshots() {
    let session = session(1_000);
    for selector in ["@* .cb[role='assistant']", "@history .cb @mode=union"] {
        let (_, whole) = cost(&session, selector);
        let (count, few) = cost(&session, &format!("{selector} @limit=5"));
        assert_eq!(count, 5, "{selector}");
        assert!(few.rows_seen * 10 < whole.rows_seen, "{few:?}");
    }
}

#[test]
fn a_reduced_range_compares_its_ends_only() {
    let session = session(300);
    let (count, counters) = cost(&session, "@t0..@t-9 .cb @mode=reduce");
    assert_eq!(count, 9 * BLOCKS);
    assert!(counters.rows_seen <= 9 * (BLOCKS as u64 + 2) + 64);
}

/// Depths move with every commit, so unchanged turns are read again; turns out of scope are not.
#[test]
fn depths_are_read_where_they_are() {
    let session = session(300);
    let (count, counters) = cost(&session, "@history .mt:depth(1) .cb");
    assert_eq!(count, 299 * BLOCKS + 298 * BLOCKS);
    assert!(counters.rows_seen <= 300 * 16);
}

#[test]
fn a_limit_leaves_the_rest_alone() {
    let session = session(1_000);
    let engine = Engine::new();
    let all = engine
        .rows(&session, "@t0 .cb[role=user]")
        .expect("an answer");
    let ids: Vec<String> = all.ids().take(5).map(str::to_owned).collect();
    let whole = engine
        .rows(&session, "@t0 .cb[role=user]")
        .expect("an answer")
        .measure();
    let few = [
        engine.rows(&session, "@t0 .cb[role=user] @limit=5"),
        engine
            .rows(&session, "@t0 .cb[role=user]")
            .map(|rows| rows.limit(5)),
    ];
    for few in few {
        let few = few.expect("an answer");
        let counters = few.measure();
        assert_eq!(few.to_ids(), ids);
        assert!(counters.rows_seen * 10 < whole.rows_seen, "{counters:?}");
        assert_eq!(counters.rows_seen + counters.rows_left, whole.rows_seen);
    }
    // A filter reads no more than the rows it is applied to.
    let filter = engine.prepare(".mt").expect("a selector");
    let few = engine
        .rows(&session, "@t0 .cb[role=user]")
        .expect("an answer");
    let few = few.filter(&filter).expect("a filter").skip(1).limit(4);
    assert!(few.measure().rows_left > 0);
    assert_eq!(few.to_ids(), ids[1..]);
    // If the last row comes first in the order, everything is read.
    let post = engine
        .rows(&session, "@t0 .cb[role=user] @order=post @limit=5")
        .expect("an answer");
    assert_eq!(post.measure().rows_left, 0);
}
