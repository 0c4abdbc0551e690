//! Random selectors over random sessions: the engine gives the answer of the reference interpreter
//! on every snapshot, through every part of its interface.

use std::cell::Cell;

use pactql::explain::ExplainOptions;
use pactql::internals::index::Writer;
use pactql::internals::tree::read_lines;
use pactql::{Session, Value as Param};

use crate::support::documents::Sample;
use crate::support::engine::Engine;
use crate::support::eval::Eval;
use crate::support::random::{self, Case, same};
use crate::support::selector::{Controls, Edition, Sel, Time, Value};
use crate::support::tree::{Session as Reference, Tree};
use crate::support::{eval, selectors, text};

const EDITIONS: [Edition; 3] = [Edition::V01, Edition::Depth, Edition::Canonical];

/// Every address of the session at which the selector can run.
fn times(session: &Reference, sel: &Sel) -> Vec<Time> {
    let mut times: Vec<Time> = session
        .committed
        .iter()
        .map(|tree| Time::Cycle(tree.cycle))
        .collect();
    times.push(Time::All);
    times.push(Time::Back(0));
    if !selectors::has_facet(sel) {
        times.push(Time::Omitted);
    }
    times
}

/// A session whose segments were never merged.
fn unmerged(case: &Case) -> Session {
    let documents = read_lines(case.lines.join("\n").as_bytes()).unwrap();
    Session::build(documents, Writer::new().without_merging()).unwrap()
}

/// One edition's random selectors over random sessions, each at every address: as many cases as
/// `random::cases` says, of which at least half have an answer.
fn the_engine_gives_what_walking_gives(edition: Edition) {
    let (cases, found) = (Cell::new(0_u32), Cell::new(0_u32));
    let engine = Engine::new(edition);
    random::selectors(random::share(300), edition, 15, |case| {
        let (session, sample) = case.open()?;
        let mut rng = case.rng();
        for sel in &case.selectors {
            for time in times(&sample.session, sel) {
                let sel = Sel {
                    time,
                    ..sel.clone()
                };
                let text = text::variant(&sel, edition, &mut rng);
                let expected = eval::ids(&sample.session, edition, &sel).unwrap();
                cases.set(cases.get() + 1);
                found.set(found.get() + u32::from(!expected.is_empty()));
                same!(engine.ids(&session, &text), Ok(expected), "{text}");
            }
        }
        Ok(())
    });
    let (cases, found) = (cases.get(), found.get());
    println!("{edition:?}: {cases} cases, {found} with an answer");
    if !random::is_single() {
        assert!(cases >= random::cases(), "only {cases} cases");
        assert!(found * 3 >= cases, "only {found} of {cases} find anything");
    }
}

#[test]
fn the_engine_gives_what_walking_gives_in_v01() {
    the_engine_gives_what_walking_gives(Edition::V01);
}

#[test]
fn the_engine_gives_what_walking_gives_in_depth() {
    the_engine_gives_what_walking_gives(Edition::Depth);
}

#[test]
fn the_engine_gives_what_walking_gives_in_canonical() {
    the_engine_gives_what_walking_gives(Edition::Canonical);
}

/// Long sessions, whose snapshots have many segments and whose answers are long: other strategies
/// than small ones take.
#[test]
fn long_sessions_answer_as_walking_does() {
    for edition in EDITIONS {
        let engine = Engine::new(edition);
        let selectors = random::share(360).clamp(9, 90) as usize;
        let sizes = if random::few() { 1 } else { 4 };
        let make = |seed| {
            let sample = Sample::long(seed, 30 + 50 * (seed as usize % sizes));
            Case::new(seed, &sample, edition, selectors)
        };
        random::check(random::share(16), make, |case| {
            let (session, sample) = case.open()?;
            let unmerged = unmerged(case);
            let mut rng = case.rng();
            let count = sample.session.committed.len() as i64;
            for (at, sel) in case.selectors.iter().enumerate() {
                let time = match at % 9 {
                    0 => Time::All,
                    n if n % 2 == 0 => Time::Back(0),
                    _ => Time::Back(rng.range(0, count - 1) as u64),
                };
                let sel = Sel {
                    time,
                    ..sel.clone()
                };
                let text = text::variant(&sel, edition, &mut rng);
                let expected = eval::ids(&sample.session, edition, &sel).unwrap();
                let count = engine.0.rows(&session, &text).map(|rows| rows.count());
                same!(count.unwrap(), expected.len(), "{text}");
                for session in [&session, &unmerged] {
                    let ids = engine.ids(session, &text).unwrap();
                    same!(&ids, &expected, "{text}");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn every_way_to_select_gives_the_same_ids() {
    for edition in EDITIONS {
        let cached = Engine::new(edition);
        let fresh = Engine::without_cache(edition);
        random::selectors(random::share(120), edition, 8, |case| {
            let (session, sample) = case.open()?;
            let unmerged = unmerged(case);
            let mut rng = case.rng();
            for sel in &case.selectors {
                let sel = Sel {
                    time: *rng.pick(&times(&sample.session, sel)),
                    ..sel.clone()
                };
                let text = text::variant(&sel, edition, &mut rng);
                let wanted = fresh.ids(&session, &text).unwrap();
                for _ in 0..2 {
                    same!(
                        cached.ids(&session, &text).unwrap(),
                        wanted,
                        "cached: {text}"
                    );
                }
                same!(
                    cached.ids(&unmerged, &text).unwrap(),
                    wanted,
                    "unmerged: {text}"
                );

                let selection = cached.0.rows(&session, &text).unwrap();
                same!(selection.count(), wanted.len(), "counted: {text}");
                same!(selection.to_ids(), wanted, "in one go: {text}");
                let nodes: Vec<&str> = selection.nodes().map(|node| node.id()).collect();
                same!(nodes, wanted, "by node: {text}");

                let analyze = ExplainOptions::default().analyze(true);
                let explained = cached.0.explain(Some(&session), &text, analyze).unwrap();
                let rows = wanted.len() as u64;
                same!(explained.analysis.map(|run| run.rows), Some(rows), "{text}");
                same!(explained.plan[0].actual_rows, Some(rows), "{text}");
                let groups = explained.plan.iter().filter_map(|line| line.group);
                if groups.max() == Some(0) {
                    let last = explained.plan[1].actual_rows.unwrap_or(0);
                    same!(last >= rows, true, "the last step keeps {last}: {text}");
                }

                let prepared = cached.0.prepare(&text).unwrap();
                let ids = prepared.rows(&session).unwrap();
                same!(ids.to_ids(), wanted, "prepared: {text}");

                let (text, values) = text::with_params(&sel, edition);
                let values: Vec<(&str, Param)> = values
                    .iter()
                    .map(|(name, value)| (name.as_str(), param(value)))
                    .collect();
                let prepared = cached.0.prepare(&text).unwrap();
                let prepared = prepared.bind(values.clone()).unwrap();
                let ids = prepared.rows(&session).unwrap();
                same!(ids.to_ids(), wanted, "with parameters: {text} {values:?}");
                let explained = prepared.explain(Some(&session), analyze).unwrap();
                same!(explained.analysis.map(|run| run.rows), Some(rows), "{text}");
            }
            Ok(())
        });
    }
}

fn param(value: &Value) -> Param {
    match value {
        Value::Null => Param::Null,
        Value::Num(number) => match number.parse::<i64>() {
            Ok(int) => Param::from(int),
            Err(_) => Param::from(number.parse::<f64>().unwrap()),
        },
        Value::Text(text) => Param::from(text.as_str()),
        Value::List(_) => unreachable!("lists are written out"),
    }
}

/// `.filter` keeps a row that is, or lies inside, a node the filter matches in that row's
/// snapshot; `.skip` and `.limit` count rows (LANGUAGE §6).
#[test]
fn filters_and_windows_of_the_library() {
    for edition in EDITIONS {
        let engine = Engine::new(edition);
        random::selectors(random::share(80), edition, 12, |case| {
            let (session, sample) = case.open()?;
            let mut rng = case.rng();
            for pair in case.selectors.chunks(2) {
                let (mut sel, mut filter) = (pair[0].clone(), pair[pair.len() - 1].clone());
                filter.controls = Controls::default();
                if selectors::has_facet(&filter) {
                    continue;
                }
                sel.time = if rng.chance(40) {
                    Time::All
                } else {
                    Time::Back(0)
                };
                let (skip, limit) = (rng.below(3), rng.below(4));
                let rows = eval::rows(&sample.session, edition, &sel).unwrap();
                let mut kept = rows.clone();
                kept.retain(|(tree, node)| {
                    let eval = Eval {
                        session: &sample.session,
                        tree,
                        edition,
                    };
                    let matched = eval.ordered(&filter);
                    let mut at = Some(*node);
                    std::iter::from_fn(|| {
                        let node = at?;
                        at = tree.nodes[node].parent;
                        Some(node)
                    })
                    .any(|node| matched.contains(&node))
                });
                let ids = |rows: &[(&Tree, usize)], skip: usize, limit: usize| -> Vec<String> {
                    let rows = rows.iter().skip(skip).take(limit);
                    rows.map(|(tree, node)| tree.id(*node).to_owned()).collect()
                };
                let text = text::plain(&sel, edition);
                let filter = text::plain(&filter, edition);
                let select = || engine.0.rows(&session, &text).unwrap();
                let prepared = engine.0.prepare(&filter).unwrap();
                let filtered = select().filter(&prepared).unwrap();
                same!(
                    filtered.to_ids(),
                    ids(&kept, 0, usize::MAX),
                    "{text} where {filter}"
                );
                let windowed = filtered.skip(skip).limit(limit);
                same!(
                    windowed.to_ids(),
                    ids(&kept, skip, limit),
                    "{text} where {filter}"
                );
                let other = select().skip(skip).limit(limit);
                same!(other.to_ids(), ids(&rows, skip, limit), "{text}");
                same!(other.count(), ids(&rows, skip, limit).len(), "{text}");
            }
            Ok(())
        });
    }
}

#[test]
fn the_canonical_text_means_the_same() {
    let canonical = Engine::new(Edition::Canonical);
    for edition in EDITIONS {
        let engine = Engine::new(edition);
        random::selectors(random::share(150), edition, 8, |case| {
            let (session, _) = case.open()?;
            let mut rng = case.rng();
            for sel in &case.selectors {
                let mut sel = sel.clone();
                sel.time = Time::All;
                let text = text::variant(&sel, edition, &mut rng);
                let formatted = engine.0.format(&text).unwrap();
                same!(
                    canonical.ids(&session, &formatted),
                    engine.ids(&session, &text),
                    "{text} as {formatted}"
                );
                same!(
                    canonical.0.format(&formatted).as_ref().unwrap(),
                    &formatted,
                    "{text}"
                );
                let other = text::variant(&sel, edition, &mut rng);
                same!(
                    engine.0.check(&other).unwrap().fingerprint,
                    engine.0.check(&text).unwrap().fingerprint,
                    "{text} and {other}"
                );
            }
            Ok(())
        });
    }
}

/// A turn under `^sys` has the depth of it, but is no place of its own: found by its id it was one.
#[test]
fn a_turn_in_a_region_is_not_at_its_depth() {
    let line = r#"{"root":{"id":"r","children":[{"id":"s","nodeType":"^sys","children":[
        {"id":"t","nodeType":"mt","children":[{"id":"b","nodeType":"cb"}]}]},
        {"id":"q","nodeType":"^seq","children":[{"id":"u","nodeType":"mt"}]}]}}"#;
    let sample = Sample::of(vec![line.replace('\n', "")]);
    let session = Session::from_slice(sample.text().as_bytes()).unwrap();
    let engine = Engine::new(Edition::Canonical);
    let expected: &[(&str, &[&str])] = &[
        ("depth(-1)[id='t']", &[]),
        ("depth(-1)[id='s']", &["s"]),
        ("depth(1)[id='u']", &["u"]),
        ("depth(-1) .mt[id='t']", &["t"]),
    ];
    for (text, ids) in expected {
        let text = format!("@t0 {text}");
        let sel = crate::support::parse::parse(&text, Edition::Canonical);
        let walked = eval::ids(&sample.session, Edition::Canonical, &sel).unwrap();
        assert_eq!(&walked, ids, "{text}");
        assert_eq!(engine.ids(&session, &text), Ok(walked), "{text}");
    }
}
