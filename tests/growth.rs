//! What takes time in proportion to its input, and once did not: each case is measured at one
//! size and at eight times that size.

use std::time::{Duration, Instant};

use pactql::engine::Engine;
use pactql::time::Session;

/// Sizes differ by this much.
const FACTOR: usize = 8;

/// How much longer the larger size may take: linear time is 8 times as long, quadratic 64 times.
const MOST: u32 = 28;

/// What is measured: a name, the smaller size, the document of a size, and a selector.
type Case = (&'static str, usize, fn(usize) -> String, &'static str);

const CASES: &[Case] = &[
    ("distinct attribute names", 6_000, names, "@t0 [k7=7]"),
    ("`tag` beside `tags`", 4_000, tags, "@t0 +t7"),
    ("a pick behind a zone", 700, turns, "@t0 * :core .cb:first"),
    (
        "a pick behind two zones",
        700,
        turns,
        "@t0 * :core > :core .cb:last",
    ),
    (
        "a pick of children of a zone",
        700,
        turns,
        "@t0 * :core > .cb:nth(2)",
    ),
];

/// A root with `size` attributes.
fn names(size: usize) -> String {
    let fields: Vec<String> = (0..size).map(|k| format!("\"k{k}\":{k}")).collect();
    format!("{{\"root\":{{{}}}}}", fields.join(","))
}

/// A root with `size` children that have a tag in either spelling.
fn tags(size: usize) -> String {
    let node = |n| format!(r#"{{"id":"n{n}","tag":"x","tags":["t{n}"]}}"#);
    let nodes: Vec<String> = (0..size).map(node).collect();
    format!(r#"{{"root":{{"children":[{}]}}}}"#, nodes.join(","))
}

/// `size` turns of eight blocks.
fn turns(size: usize) -> String {
    let block = |turn, n| format!(r#"{{"id":"b{turn}.{n}","nodeType":"cb"}}"#);
    let turn = |turn| {
        let blocks: Vec<String> = (0..8).map(|n| block(turn, n)).collect();
        format!(
            r#"{{"id":"t{turn}","nodeType":"mt","creation_index":{turn},"children":[{}]}}"#,
            blocks.join(",")
        )
    };
    let turns: Vec<String> = (0..size).map(turn).collect();
    format!(
        r#"{{"root":{{"id":"r","children":[{{"id":"q","nodeType":"^seq","children":[{}]}}]}}}}"#,
        turns.join(",")
    )
}

/// The shortest of a few runs: what else the machine does only adds.
fn time(document: &str, selector: &str) -> Duration {
    let runs = (0..4).map(|_| {
        let start = Instant::now();
        let session = Session::from_slice(document.as_bytes()).expect("a session");
        let found = Engine::new()
            .select(&session, selector)
            .expect("valid")
            .count();
        assert!(found > 0, "{selector}");
        start.elapsed()
    });
    runs.min().unwrap_or_default()
}

#[test]
fn time_grows_with_the_input_and_not_with_its_square() {
    let mut slow = Vec::new();
    for (name, size, document, selector) in CASES {
        let (small, large) = (document(*size), document(size * FACTOR));
        let (small, large) = (time(&small, selector), time(&large, selector));
        if large > small * MOST {
            slow.push(format!(
                "{name}: {small:?}, {FACTOR} times as much {large:?}"
            ));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}
