//! Conditions with selectors inside, beside the plain selectors that they are made of.
//!
//! Measured: a prepared selector, up to a `Vec<&str>` of ids, on one snapshot of 3,000 nodes and on one of 100,000.
//! Each has a condition, and the sum is that of the selectors inside and outside of it, each run as a whole selector.
//! At most three times that sum is wanted. One selector has conditions inside each other, eight levels deep.
//!
//! The data model is that of `support/generate.rs`, with ids of calls: each result answers the call before it.
//!
//! `cargo bench --bench conditions` takes a minute; `-- --class NAME NODES CALLS` makes calls of one, for callgrind.

mod support;

use std::fmt::Write;
use std::hint::black_box;

use pactql::{Engine, Prepared, Session};
use support::generate;
use support::queries::Task;
use support::timing::{Effort, interleaved, nice};

/// A name, the selector, and the plain selectors outside and inside.
type Case = (&'static str, &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    (
        "has",
        "@t0 .mt:has(.cb[role='assistant'])",
        &["@t0 .mt", "@t0 .cb[role='assistant']"],
    ),
    (
        "has-rare",
        "@t0 .mt:has(.cb[kind='summary'])",
        &["@t0 .mt", "@t0 .cb[kind='summary']"],
    ),
    (
        "has-child",
        "@t0 .mc:has(> .cb[kind='call'])",
        &["@t0 .mc", "@t0 .cb[kind='call']"],
    ),
    (
        "not-has",
        "@t0 .mt:not(:has(.cb[role='user']))",
        &["@t0 .mt", "@t0 .cb[role='user']"],
    ),
    (
        "has-pick",
        "@t0 .mt:has(.cb:first:is([role='user']))",
        &["@t0 .mt", "@t0 .cb", "@t0 .cb[role='user']"],
    ),
    (
        "has-pick-behind",
        "@t0 ^seq:has(.mt > .mc > .cb:last:is([role='user']))",
        &["@t0 .mt", "@t0 .mc", "@t0 .cb", "@t0 .cb[role='user']"],
    ),
    (
        "after",
        "@t0 .cb[role='user']:after(.cb[kind='summary'])",
        &["@t0 .cb[role='user']", "@t0 .cb[kind='summary']"],
    ),
    (
        "after-within",
        "@t0 .cb[role='user']:after(.cb[kind='call'], within=0)",
        &["@t0 .cb[role='user']", "@t0 .cb[kind='call']"],
    ),
    (
        "has-result",
        "@t0 .cb[kind='call']:has-result",
        &["@t0 .cb[kind='call']", "@t0 .cb[kind='result']"],
    ),
    (
        "has-call",
        "@t0 .cb[kind='result']:has-call([role='assistant'])",
        &[
            "@t0 .cb[kind='result']",
            "@t0 .cb[kind='call']",
            "@t0 .cb[role='assistant']",
        ],
    ),
    (
        "eight-deep",
        concat!(
            "@t0 .mt:has(.mc:has(> .cb:not(:is([role='user']:has-result, [kind='call']:not(:has-result(",
            "[role='tool']:not(:is([kind='image'], [priority>8]))))))))"
        ),
        &[
            "@t0 .mt",
            "@t0 .mc",
            "@t0 .cb",
            "@t0 .cb[role='user']",
            "@t0 .cb[kind='call']",
            "@t0 .cb[kind='result']",
            "@t0 .cb[role='tool']",
            "@t0 .cb[kind='image']",
            "@t0 .cb[priority>8]",
        ],
    ),
];

/// A document with an id for each call and its results.
fn document(nodes: usize) -> String {
    let text = generate::document(nodes);
    let text = String::from_utf8(text).expect("generated text");
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let (mut rest, mut call) = (&*text, 0);
    const KIND: &str = r#""kind":""#;
    while let Some(at) = rest.find(KIND) {
        let (before, after) = rest.split_at(at);
        let is_call = after.starts_with(r#""kind":"call""#);
        call += u32::from(is_call);
        out.push_str(before);
        if is_call || after.starts_with(r#""kind":"result""#) {
            let _ = write!(out, r#""data_call_id":"call_{call:08}","#);
        }
        out.push_str(KIND);
        rest = &after[KIND.len()..];
    }
    out + rest
}

fn prepare(selector: &str) -> Prepared {
    Engine::new().prepare(selector).expect("a selector")
}

fn task<'a>(session: &'a Session, selector: &str) -> Task<'a> {
    let prepared = prepare(selector);
    Box::new(move || {
        let selection = prepared.rows(black_box(session)).expect("an answer");
        black_box(selection.to_ids()).len()
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let class = arguments.iter().position(|argument| argument == "--class");
    if let Some([_, name, nodes, calls, ..]) = class.and_then(|at| arguments.get(at..))
        && let (Ok(nodes), Ok(calls)) = (nodes.parse(), calls.parse::<u32>())
        && let Some((_, selector, _)) = CASES.iter().find(|(known, ..)| known == name)
    {
        let session = Session::from_slice(document(nodes).as_bytes()).expect("a session");
        let mut task = task(&session, selector);
        println!("{}", (0..calls).map(|_| task()).max().unwrap_or(0));
        return;
    }
    let (sizes, effort): (&[usize], _) = if arguments.iter().any(|argument| argument == "--bench") {
        (&[3_000, 100_000], Effort::QUICK)
    } else {
        (&[3_000], Effort::QUICK)
    };
    for &nodes in sizes {
        let session = Session::from_slice(document(nodes).as_bytes()).expect("a session");
        println!(
            "{:<18}{:>8}{:>12}{:>12}{:>8}",
            format!("{nodes} nodes"),
            "ids",
            "condition",
            "sum",
            "ratio"
        );
        for (name, selector, plain) in CASES {
            let all = [selector].into_iter().chain(*plain);
            let mut tasks: Vec<Task<'_>> = all.map(|selector| task(&session, selector)).collect();
            let ids = tasks[0]();
            let times = interleaved(effort, &mut tasks);
            let sum: f64 = times[1..].iter().sum();
            println!(
                "{name:<18}{ids:>8}{:>12}{:>12}{:>8.2}",
                nice(times[0]),
                nice(sum),
                times[0] / sum
            );
        }
    }
}
