//! The targets and places of mutations: that they are cached apart from selectors, and that random ones
//! name what walking the tree finds. Single texts are cases in `tests/cases/places`.

use std::cell::Cell;
use std::collections::BTreeSet;

use pactql::Engine as Inner;
use pactql::internals::ir::InsertionPoint;

use crate::support::engine::{self, Engine};
use crate::support::eval::Eval;
use crate::support::random::{self, same};
use crate::support::selector::{
    Axis, Body, Controls, Edition, Hop, NodeStep, Part, Sel, Step, Time,
};
use crate::support::tree::Item;
use crate::support::{selectors, text};

const SESSION: &str = r#"{"cycle":1,"root":{"id":"root","children":[
    {"id":"ah","nodeType":"^ah","children":[{"id":"b","nodeType":"cb"}]}]}}
{"working":true,"root":{"id":"root","children":[
    {"id":"ah","nodeType":"^ah","children":[{"id":"b","nodeType":"cb"},{"id":"c","nodeType":"cb"}]}]}}"#;

/// The session's lines, each a document.
fn lines() -> String {
    SESSION.replace("\n    ", "")
}

/// A text is compiled once for each purpose, and never taken for another.
#[test]
fn texts_are_cached_for_each_purpose() {
    let session = engine::open(&lines());
    let history = session.history();
    let working = history.working().unwrap();
    let engine = Inner::builder().edition(pactql::Edition::V01).build();
    for hits in [0, 3] {
        assert_eq!(engine.rows(&session, ".cb").unwrap().to_ids(), ["b"]);
        assert_eq!(engine.targets(working, ".cb").unwrap().nodes.len(), 2);
        assert_eq!(engine.spot(working, ".cb").unwrap().parents.len(), 2);
        assert_eq!(engine.cache_stats().text_hits, hits);
    }
    assert_eq!(engine.cache_stats().texts, 3);
    assert_eq!(engine.cache_stats().evictions, 0);

    let engine = Inner::new();
    for _ in 0..2 {
        let spot = engine.spot(working, "(d0, end)").unwrap();
        assert_eq!(spot.insertion, InsertionPoint::End);
        assert!(engine.rows(&session, "(d0, end)").is_err());
        assert!(engine.targets(working, "(d0, end)").is_err());
    }
    let uncached = Inner::builder().cached_texts(0).build();
    assert_eq!(uncached.spot(working, "(d0)").unwrap().parents.len(), 1);
    assert_eq!(uncached.cache_stats().texts, 0);
}

/// The parents that a place matches, implicit cores included, are those that walking finds, whatever
/// insertion point follows; and a target is what the selector selects.
#[test]
fn places_name_what_walking_finds() {
    let (cores, found) = (Cell::new(0_u32), Cell::new(0_u32));
    for edition in [Edition::V01, Edition::Depth, Edition::Canonical] {
        let engine = Engine::new(edition);
        random::selectors(random::share(800), edition, 10, |case| {
            let (session, sample) = case.open()?;
            let (history, mut rng) = (session.history(), case.rng());
            let (Some(working), Some(tree)) = (history.working(), &sample.session.working) else {
                return Ok(());
            };
            let eval = Eval {
                session: &sample.session,
                tree,
                edition,
            };
            for sel in case
                .selectors
                .iter()
                .filter(|sel| !selectors::has_facet(sel))
            {
                let mut sel = Sel {
                    time: Time::Omitted,
                    controls: Controls::default(),
                    ..sel.clone()
                };
                if rng.chance(50) {
                    containers_below(&mut sel.body);
                }
                let text = text::variant(&sel, edition, &mut rng);
                let expected: BTreeSet<(&str, bool)> = eval
                    .items(&sel)
                    .into_iter()
                    .map(|item| match item {
                        Item::Node(node) => (tree.id(node), false),
                        Item::Core(node) => (tree.id(node), true),
                    })
                    .collect();
                let spot = engine.0.spot(working, &text).map_err(fail(&text))?;
                let got: BTreeSet<(&str, bool)> = spot
                    .parents
                    .iter()
                    .map(|parent| (parent.node.id(), parent.core))
                    .collect();
                same!(got.len(), spot.parents.len(), "{text}");
                same!(got, expected, "{text}");
                same!(spot.insertion, InsertionPoint::Into, "{text}");

                let targets = engine.0.targets(working, &text).map_err(fail(&text))?;
                let targets: BTreeSet<&str> = targets.nodes.iter().map(|node| node.id()).collect();
                let nodes = expected.iter().filter(|(_, core)| !core).map(|(id, _)| *id);
                same!(targets, nodes.collect::<BTreeSet<&str>>(), "{text}");

                found.set(found.get() + u32::from(!expected.is_empty()));
                cores.set(cores.get() + u32::from(expected.iter().any(|(_, core)| *core)));
            }
            Ok(())
        });
    }
    println!(
        "{} found something, {} an implicit core",
        found.get(),
        cores.get()
    );
    assert!(
        random::is_single()
            || found.get() > random::share(1_000) && cores.get() > random::share(100)
    );
}

/// Adds a step to the containers below.
fn containers_below(body: &mut Body) {
    let part = Part::Type("mc".to_owned(), None);
    let step = Step::Node(NodeStep {
        parts: vec![part],
        pseudos: Vec::new(),
    });
    match body {
        Body::Union(chains) => chains
            .iter_mut()
            .for_each(|chain| chain.steps.push((Axis::Child, step.clone()))),
        Body::Position(hops, None) => {
            hops.push(Hop::Class("cont".to_owned(), None, Vec::new()));
        }
        Body::Position(_, Some(_)) | Body::Search(_) => {}
    }
}

fn fail(text: &str) -> impl Fn(pactql::Error) -> proptest::prelude::TestCaseError {
    move |error| proptest::prelude::TestCaseError::fail(format!("{text}: {error}"))
}
