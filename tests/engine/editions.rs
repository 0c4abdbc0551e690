//! Editions over sessions: the canonical text of a selector of any edition gives the same rows in the
//! same order, and selectors with one meaning share one plan.

use std::cell::Cell;

use pactql::{Edition as Name, Engine as Inner};

use crate::support::engine::{self, Engine};
use crate::support::random::{self, same};
use crate::support::selector::{Edition, Sel, Time};
use crate::support::{selectors, text};

const EDITIONS: [(Edition, Name); 3] = [
    (Edition::V01, Name::V01),
    (Edition::Depth, Name::Depth),
    (Edition::Canonical, Name::Canonical),
];

#[test]
fn canonical_text_gives_the_same_rows() {
    let cases = Cell::new(0_u32);
    let canonical = Engine::new(Edition::Canonical);
    for (edition, name) in EDITIONS {
        let engine = Engine::new(edition);
        random::selectors(random::share(80), edition, 12, |case| {
            let (session, sample) = case.open()?;
            let mut rng = case.rng();
            let cycle = sample.session.committed.last().map_or(1, |tree| tree.cycle);
            let times = [
                Time::Omitted,
                Time::Back(0),
                Time::All,
                Time::Cycle(cycle),
                Time::BackRange(Some(0), None),
            ];
            for (sel, time) in case
                .selectors
                .iter()
                .flat_map(|sel| times.map(|time| (sel, time)))
            {
                if time == Time::Omitted && selectors::has_facet(sel) {
                    continue;
                }
                let sel = Sel {
                    time,
                    ..sel.clone()
                };
                let text = text::variant(&sel, edition, &mut rng);
                let expected = engine.ids(&session, &text);
                let written = engine.0.format(&text).expect(&text);
                cases.set(cases.get() + 1);
                same!(
                    without_query(canonical.ids(&session, &written), &written),
                    without_query(expected, &text),
                    "{name}\n  {text}\n  {written}"
                );
            }
            Ok(())
        });
    }
    let cases = cases.get();
    println!("{cases} cases");
    if !random::is_single() {
        assert!(cases >= random::share(3_000), "only {cases} cases");
    }
}

/// Cases that random selectors seldom reach: lists compared with lists, and types that one edition
/// splits into type and kind.
#[test]
fn the_corners_of_types() {
    let session = engine::open(
        r#"{"cycle":1,"root":{"id":"r","children":[
        {"id":"seq","nodeType":"^seq","children":[
            {"id":"t","nodeType":"mt","children":[
                {"id":"a","nodeType":"cb:call","data_x":["p","q"]},
                {"id":"b","nodeType":"cb:call","kind":"other","data_x":"p"},
                {"id":"c","nodeType":"cb","kind":"call","data_x":["p"]},
                {"id":"d","nodeType":"cb!x","kind":"call"},
                {"id":"e","nodeType":"cb:x","kind":"call","tags":["p","q"]},
                {"id":"f","nodeType":"cb:call:x"},
                {"id":"g","nodeType":"foo:call"},
                {"id":"h","kind":null}]}]},
        {"id":"ah","nodeType":"^ah","children":[
            {"id":"n","nodeType":"mt","children":[{"id":"k","role":"user"}]}]}]}}"#
            .replace('\n', "")
            .as_str(),
    );
    let ids = |edition: Name, text: &str| -> String {
        let engine = Inner::builder().edition(edition).build();
        engine.rows(&session, text).unwrap().to_ids().join(" ")
    };
    for (edition, text, rows) in [
        (Name::Canonical, "@t0 .cb:call", "a c e"),
        (Name::Canonical, "@t0 .foo", "g"),
        (
            Name::Canonical,
            "@t0 [nodeType='cb'][kind!='call']",
            "b f h k",
        ),
        (Name::Canonical, "@t0 [nodeType!='cb']", "r seq t d g ah n"),
        (
            Name::Canonical,
            "@t0 [nodeType='cb:call'][kind='call']",
            "a",
        ),
        (
            Name::Canonical,
            "@t0 [nodeType='cb:call'][kind!='call']",
            "b",
        ),
        (Name::Canonical, "@t0 [stored_type='cb'][kind=null]", "h k"),
        (Name::Canonical, "@t0 .mt:depth(0)", "ah n"),
        (Name::Canonical, "@t0 .mt:depth(>=0)", "t ah n"),
        (Name::Canonical, "@t0 depth(>=0)[id!=ah]", "t"),
        (Name::Canonical, "@t0 ^root [role]:depth(<=0)", "k"),
        (
            Name::Canonical,
            "@t0 .cb[tags!=[p, z]]",
            "a b c d e f g h k",
        ),
        (Name::Canonical, "@t0 .cb[role=[user, tool]] {id!=x}", "k"),
        (
            Name::Canonical,
            "@t0 .cb[role!=[user, tool]]",
            "a b c d e f g h",
        ),
        (Name::V01, ".cb:call", "a b"),
        (Name::V01, "[nodeType='cb']", "c h k"),
        (Name::V01, ".cb:call[kind='other']", "b"),
        (Name::V01, ".cb[nodeType!='cb']", "a b d e f g"),
        (Name::V01, "^seq", "seq"),
    ] {
        let engine = Inner::builder().edition(edition).build();
        let written = engine.format(text).unwrap();
        assert_eq!(ids(edition, text), rows, "{text}");
        assert_eq!(ids(Name::Canonical, &written), rows, "{text} as {written}");
    }
    // A list of several values matches a stored list that contains all of them, or one equal value.
    assert_eq!(ids(Name::Canonical, "@t0 [data_x=[p,q]]"), "a b");
}

/// Removes the selector text that a range's answer repeats.
fn without_query(answer: Result<Vec<String>, String>, query: &str) -> Result<Vec<String>, String> {
    let query = serde_json::to_string(query).unwrap();
    answer.map(|lines| {
        let strip = |line: String| match line.strip_prefix(r#"{"query":"#) {
            Some(rest) => rest.strip_prefix(&query).unwrap_or(rest).to_owned(),
            None => line,
        };
        lines.into_iter().map(strip).collect()
    })
}

/// LANGUAGE §9: equal meanings have one fingerprint and one plan, in one edition and across.
#[test]
fn equal_meanings_share_a_plan() {
    let rows: [(Name, &[&str]); 6] = [
        (
            Name::Canonical,
            &[
                "@t0 ^ah > .mc[offset=0]",
                "@t0 depth(0) > .cont(offset=0)",
                "@t0 depth(0) > .mc:core",
                "@t0 (d0, cont[offset=0])",
            ],
        ),
        (
            Name::Canonical,
            &[".cb[ephemeral]", ".block[ttl=1]", ".block(ttl=1)"],
        ),
        (
            Name::Canonical,
            &["#hero", "{key='hero'}", "?? {key=hero}", "[key=hero]"],
        ),
        (
            Name::Canonical,
            &["@history +a @first", "@t0..@t-* {tag=a} @limit=1"],
        ),
        (
            Name::Depth,
            &["@t0 ^seq", "@t0 depth(>=1)", "@t0 :depth(>0)"],
        ),
        (
            Name::V01,
            &[".cb:x", "@t0 .block:x", "@t0 [nodeType='block:x']"],
        ),
    ];
    for (edition, texts) in rows {
        let engine = Inner::builder().edition(edition).build();
        let first = engine.check(texts[0]).unwrap();
        for text in &texts[1..] {
            let other = engine.check(text).unwrap();
            assert_eq!(other.fingerprint, first.fingerprint, "{text}");
        }
        // An engine of the canonical edition reads the canonical text as the same selector.
        let canonical = Inner::new();
        assert_eq!(
            canonical.check(&first.canonical).unwrap().fingerprint,
            first.fingerprint
        );
    }
}
