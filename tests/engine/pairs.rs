//! A construct costs the same as its equivalent without it: one plan and equal counters, which are
//! the same on every machine.

#[path = "../../benches/support/pairs.rs"]
mod equivalents;
#[allow(
    dead_code,
    reason = "it makes sessions of other shapes for the benches"
)]
#[path = "../../benches/support/generate.rs"]
mod generate;

use equivalents::{PAIRS, Pair, engine, session};
use pactql::{
    Edition, Engine, Session,
    explain::{Counters, ExplainOptions},
};
use serde_json::Value;

/// The result of running a selector.
#[derive(Debug, PartialEq)]
struct Asked {
    ids: Vec<String>,
    /// The operators, with the rows each of them kept.
    plan: Value,
    /// What `explain --analyze` counts.
    analyzed: Value,
    /// What the selection itself counts.
    measured: Counters,
}

fn ask(session: &Session, (edition, text): (Edition, &str)) -> Asked {
    let engine: Engine = engine(edition);
    let options = ExplainOptions::default().analyze(true);
    let explained = engine
        .explain(Some(session), text, options)
        .expect("the selector is valid");
    let mut explained = explained.to_json();
    // Times are never the same twice.
    explained["analysis"]["work"]["time_ns"].take();
    for line in explained["plan"].as_array_mut().expect("a plan") {
        if let Some(work) = line.get_mut("work") {
            work["time_ns"].take();
        }
    }
    let answer = engine.select(session, text).expect("an answer");
    Asked {
        measured: answer.measure(),
        ids: answer
            .rows()
            .map(|rows| rows.ids().map(str::to_owned).collect())
            .unwrap_or_default(),
        plan: explained["plan"].take(),
        analyzed: explained["analysis"].take(),
    }
}

#[test]
fn constructs_have_the_plans_and_counters_of_their_equivalents() {
    let mut wrong = Vec::new();
    for nodes in [400, 5_000] {
        let session = session(nodes);
        let mut found = 0;
        for pair in PAIRS {
            let construct = ask(&session, pair.construct);
            let plain = ask(&session, pair.plain);
            if construct != plain {
                wrong.push(format!("{pair:?}\n  {construct:?}\n  {plain:?}"));
            }
            assert!(!construct.analyzed.is_null(), "{pair:?} was run");
            found += usize::from(!construct.ids.is_empty());
        }
        // All but the range, whose answer is a diff, and selectors that may find nothing here.
        assert!(found >= PAIRS.len() - 4, "only {found} find anything");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Later editions read the kind out of namespaced types, so the same text has another plan there.
/// Over sessions without such types it costs the same.
#[test]
fn kinds_cost_the_same_in_every_edition() {
    let session = session(5_000);
    for text in [
        "@t0 .cb[kind='summary']",
        "@t0 .cb[kind='summary'][priority>=8]",
        "@t0 ^seq .mt .mc .cb[kind='call']",
        "@t0 .cb[kind!='text']",
    ] {
        let first = ask(&session, (Edition::V01, text));
        for edition in [Edition::Depth, Edition::Canonical] {
            let later = ask(&session, (edition, text));
            assert_eq!(later.ids, first.ids, "{text}");
            assert_eq!(later.analyzed, first.analyzed, "{text}");
            assert_eq!(later.measured, first.measured, "{text}");
        }
    }
}

/// A turn type with a depth also matches nested turns, so its plan differs from that of the region.
/// Without nested turns it costs the same.
#[test]
fn depths_of_turn_types_cost_what_regions_do() {
    let session = session(5_000);
    for (text, plain) in [
        ("@t0 .mt:depth(0) > .cb", "@t0 ^ah > .cb"),
        ("@t0 .mt:depth(<0) .cb", "@t0 ^sys .cb"),
    ] {
        let depth = ask(&session, (Edition::Depth, text));
        let region = ask(&session, (Edition::V01, plain));
        assert_eq!(depth.ids, region.ids, "{text}");
        assert_eq!(depth.analyzed, region.analyzed, "{text}");
        assert_eq!(depth.measured, region.measured, "{text}");
    }
}

/// Spellings with one meaning are one selector.
#[test]
fn constructs_are_the_selectors_of_their_equivalents() {
    // `@order=pre` is kept in the normal form, because it switches key order off.
    let within =
        |pair: &&Pair| pair.construct.0 == pair.plain.0 && !pair.construct.1.contains("@order");
    for pair in PAIRS.iter().filter(within) {
        let engine = engine(pair.construct.0);
        let [plain, construct] = [pair.plain, pair.construct].map(|(_, text)| {
            let checked = engine.check(text).expect("the selector is valid");
            checked.canonical
        });
        assert_eq!(construct, plain, "{pair:?}");
    }
}
