//! What a loaded session holds, counted in bytes asked of the allocator: the same number on
//! every machine, so that limits can be asserted where times could not.
//!
//! One test function, so that nothing else allocates while it counts.

#[path = "../benches/support/mod.rs"]
mod support;

use pactql::engine::Engine;
use pactql::time::Session;
use support::contenders::payload;
use support::memory::{Counting, asked_by, measure};
use support::{generate, walk};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a node may hold beyond its id, content and custom fields: 14 MB for 100,000 nodes.
const BYTES_PER_NODE: usize = 140;

/// Loads `bytes`; returns the session and the bytes it holds.
fn load(bytes: &[u8]) -> (Session, usize) {
    let load = || Session::from_slice(bytes).expect("the generated session is valid");
    let (session, held, _) = measure(load);
    (session, held)
}

#[test]
fn memory_follows_nodes_and_changes() {
    // The first load makes what the process makes once.
    drop(load(&generate::document(1_000)));

    an_index_is_small();
    a_long_session_shares_its_rows();
    a_difference_costs_what_it_changes();
    whole_snapshots_find_the_sharing_again();
    counting_lists_nothing();
    a_range_holds_its_answer();
}

fn an_index_is_small() {
    for nodes in [1_000, 10_000] {
        let bytes = generate::document(nodes);
        let kept = payload(&walk::load(&bytes));
        let (_session, held) = load(&bytes);
        let beyond = held.saturating_sub(kept);
        println!(
            "{nodes} nodes: {held} bytes, {} a node beyond payload",
            beyond / nodes
        );
        assert!(
            beyond <= BYTES_PER_NODE * nodes,
            "{nodes} nodes hold {beyond} bytes beyond their payload"
        );
    }
}

/// Each commit adds a turn, so twice as many commits may hold little more than twice the bytes;
/// with rows for each snapshot it would be four times.
fn a_long_session_shares_its_rows() {
    let (_short, short) = load(&generate::committed(300));
    let (session, long) = load(&generate::committed(600));
    println!("300 commits: {short} bytes; 600 commits: {long} bytes");
    assert!(long < short * 5 / 2, "{short} bytes became {long}");

    let history = session.history();
    assert_eq!(history.committed().len(), 601);
    for snapshot in history.committed() {
        let pieces = snapshot.pieces().len() as u32;
        let turns = snapshot.turns().max(1);
        assert!(
            pieces <= 2 * turns.ilog2() + 8 + 2,
            "{pieces} pieces for {turns} turns"
        );
    }
}

/// Eight times as many commits, each of which adds a turn, may ask for little more than eight
/// times the bytes while they are loaded (rows are copied once more each time their number
/// doubles); with a tree for each snapshot it would be sixty-four times.
fn a_difference_costs_what_it_changes() {
    let work = |turns: usize| {
        let bytes = generate::committed(turns);
        asked_by(|| Session::from_slice(&bytes).expect("the generated session is valid"))
    };
    let (short, long) = (work(250), work(2_000));
    println!("250 commits ask for {short} bytes, 2,000 for {long}");
    assert!(long < short * 13, "{short} bytes became {long}");
}

/// The same snapshots written whole hold about what they hold written as differences.
fn whole_snapshots_find_the_sharing_again() {
    let bytes = generate::committed_whole(120);
    let (session, held) = load(&bytes);
    let newest = session.history();
    let nodes = newest.latest().map_or(0, |snapshot| snapshot.len());
    println!(
        "121 whole snapshots, {} bytes of JSON: {held} bytes, {} for each node of the newest",
        bytes.len(),
        held / nodes.max(1)
    );
    assert!(
        held < bytes.len() / 8,
        "{} bytes of repeated JSON are held as {held}",
        bytes.len()
    );
}

/// Comparing 1,000 snapshots of up to 10,000 nodes takes little more than the answer.
fn a_range_holds_its_answer() {
    const MOST: usize = 64 << 20;
    let (session, _) = load(&generate::committed(1_000));
    let engine = Engine::new();
    for selector in [
        "@history .cb[role='assistant']",
        "@history .mt:depth(1) .cb",
        "@history .cb @limit=9000",
    ] {
        let diff = || engine.select(&session, selector).expect("an answer");
        let (_diff, held, peak) = measure(diff);
        let beyond = peak - held;
        println!("{selector}: {held} bytes, {beyond} beyond them on the way");
        assert!(
            beyond < MOST,
            "{selector} took {beyond} bytes beyond its answer"
        );
    }
}

fn counting_lists_nothing() {
    let (session, _) = load(&generate::document(10_000));
    let query = Engine::new()
        .prepare("@t0 .cb")
        .expect("the selector is valid");
    let count = || {
        query
            .select(&session)
            .map_or(0, |selection| selection.count())
    };
    let (count, _, peak) = measure(count);
    assert!(count > 7_000);
    assert!(peak < 1_024, "counting {count} blocks took {peak} bytes");
}
