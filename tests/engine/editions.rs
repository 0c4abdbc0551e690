//! Translation between editions over sessions: a translated selector gives the same rows in the
//! same order, and selectors with one meaning share one plan.

use std::cell::{Cell, RefCell};

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
fn a_translated_selector_gives_the_same_rows() {
    let said = RefCell::new([[0_u32; 3]; 3]);
    let cases = Cell::new(0_u32);
    let engines = EDITIONS.map(|(edition, _)| Engine::new(edition));
    for (from, (edition, name)) in EDITIONS.into_iter().enumerate() {
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
                let expected = engines[from].ids(&session, &text);
                for (to, (_, other)) in EDITIONS.into_iter().enumerate() {
                    match engines[from].0.translate(&text, other) {
                        Ok(translated) => {
                            said.borrow_mut()[from][to] += 1;
                            cases.set(cases.get() + 1);
                            let got = engines[to].ids(&session, &translated);
                            same!(
                                without_query(got, &translated),
                                without_query(expected.clone(), &text),
                                "{name} to {other}\n  {text}\n  {translated}"
                            );
                        }
                        Err(error) => {
                            same!(error.code().as_str(), "E_EDITION", "{text}");
                            assert_ne!(from, to, "{name} cannot say {text}");
                        }
                    }
                }
            }
            Ok(())
        });
    }
    let (cases, said) = (cases.get(), said.into_inner());
    println!("{cases} cases, said {said:?}");
    if !random::is_single() {
        assert!(cases >= random::cases(), "only {cases} cases");
        for (from, row) in said.iter().enumerate() {
            for (to, count) in row.iter().enumerate() {
                assert!(
                    *count >= random::share(1_000),
                    "{from} to {to}: only {count}"
                );
            }
        }
    }
}

/// Cases that random selectors seldom reach: lists compared with lists, and types that one edition
/// splits into type and kind.
#[test]
fn the_corners_of_a_translation() {
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
    for (from, text, to, rows) in [
        (Name::Canonical, "@t0 .cb:call", Name::V01, "a c e"),
        (Name::Canonical, "@t0 .foo", Name::V01, "g"),
        (
            Name::Canonical,
            "@t0 [nodeType='cb'][kind!='call']",
            Name::V01,
            "b f h k",
        ),
        (
            Name::Canonical,
            "@t0 [nodeType!='cb']",
            Name::V01,
            "r seq t d g ah n",
        ),
        (
            Name::Canonical,
            "@t0 [nodeType='cb:call'][kind='call']",
            Name::V01,
            "a",
        ),
        (
            Name::Canonical,
            "@t0 [nodeType='cb:call'][kind!='call']",
            Name::V01,
            "b",
        ),
        (
            Name::Canonical,
            "@t0 [stored_type='cb'][kind=null]",
            Name::V01,
            "h k",
        ),
        (Name::Canonical, "@t0 .mt:depth(0)", Name::V01, "ah n"),
        (Name::Canonical, "@t0 .mt:depth(>=0)", Name::V01, "t ah n"),
        (Name::Canonical, "@t0 depth(>=0)[id!=ah]", Name::V01, "t"),
        (
            Name::Canonical,
            "@t0 ^root [role]:depth(<=0)",
            Name::V01,
            "k",
        ),
        (
            Name::Canonical,
            "@t0 .cb[tags!=[p, z]]",
            Name::V01,
            "a b c d e f g h k",
        ),
        (
            Name::Canonical,
            "@t0 .cb[role=[user, tool]] {id!=x}",
            Name::V01,
            "k",
        ),
        (
            Name::Canonical,
            "@t0 .cb[role!=[user, tool]]",
            Name::Depth,
            "a b c d e f g h",
        ),
        (Name::V01, ".cb:call", Name::Depth, "a b"),
        (Name::V01, "[nodeType='cb']", Name::Depth, "c h k"),
        (Name::V01, ".cb:call[kind='other']", Name::Depth, "b"),
        (Name::V01, ".cb[nodeType!='cb']", Name::Depth, "a b d e f g"),
        (Name::V01, "^seq", Name::Depth, "seq"),
        (Name::V01, "^seq", Name::Canonical, "seq"),
    ] {
        let engine = Inner::builder().edition(from).build();
        let translated = engine.translate(text, to).unwrap();
        assert_eq!(ids(from, text), rows, "{text}");
        assert_eq!(ids(to, &translated), rows, "{text} as {translated}");
    }
    // A list of several values matches a stored list that contains all of them, or one equal value.
    assert_eq!(ids(Name::Canonical, "@t0 [data_x=[p,q]]"), "a b");
    let engine = Inner::new();
    assert!(engine.translate("@t0 [data_x=[p,q]]", Name::Depth).is_err());
    assert!(
        engine
            .translate("@t0 [content=[p,q]]", Name::Depth)
            .is_err()
    );
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
        assert_eq!(engine.cache_stats().misses, 1);
        for (at, text) in texts.iter().enumerate().skip(1) {
            let other = engine.check(text).unwrap();
            assert_eq!(other.fingerprint, first.fingerprint, "{text}");
            let stats = engine.cache_stats();
            assert_eq!((stats.shape_hits, stats.misses), (at as u64, 1), "{text}");
            assert_eq!(stats.plans, 1);
        }
        // An engine of the canonical edition reads the canonical text as the same selector.
        let canonical = Inner::new();
        assert_eq!(
            canonical.check(&first.canonical).unwrap().fingerprint,
            first.fingerprint
        );
    }
}
