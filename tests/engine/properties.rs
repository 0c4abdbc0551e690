//! Random selectors over random sessions: the engine answers as the reference interpreter does,
//! on every snapshot, however the answer is asked for.

use pactql::history::Session;
use std::collections::BTreeMap;

use pactql::index::Writer;
use pactql::plan::Value as Param;
use pactql::tree::read_lines;

use crate::support::documents::Sample;
use crate::support::engine::{self, Engine};
use crate::support::eval::Eval;
use crate::support::rng::Rng;
use crate::support::selector::{Controls, Edition, Sel, Time, Value};
use crate::support::shrink::shrink;
use crate::support::tree::{Session as Reference, Tree};
use crate::support::{eval, selectors, text};

const EDITIONS: [Edition; 3] = [Edition::V01, Edition::Depth, Edition::Canonical];

/// How many random sessions a property looks at; `PACTQL_SEEDS` sets another number.
pub(super) fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    number("PACTQL_FROM").unwrap_or(0)..number("PACTQL_SEEDS").unwrap_or(usual)
}

/// Every address of a session a selector can be asked at.
fn times(session: &Reference, edition: Edition) -> Vec<Time> {
    let mut times: Vec<Time> = session
        .committed
        .iter()
        .map(|tree| Time::Cycle(tree.cycle))
        .collect();
    times.push(Time::All);
    times.push(Time::Back(0));
    if edition == Edition::V01 || session.working.is_some() {
        times.push(Time::Omitted);
    }
    times
}

/// The mismatches of a property: counted, and the first of each kind made small.
#[derive(Default)]
pub(super) struct Mismatches {
    count: usize,
    shown: BTreeMap<String, String>,
}

impl Mismatches {
    /// Notes one. The same small selector is shown once.
    pub(super) fn add(&mut self, report: impl FnOnce() -> (String, String)) {
        self.count += 1;
        if self.count <= 25 && self.shown.len() < 6 {
            let (small, text) = report();
            self.shown.entry(small).or_insert(text);
        }
    }

    /// Stops the test where there was one.
    pub(super) fn none(&self) {
        let shown: Vec<&str> = self.shown.values().map(String::as_str).collect();
        assert!(
            self.count == 0,
            "{} mismatches\n{}",
            self.count,
            shown.join("\n\n")
        );
    }
}

/// A mismatch made small: its selector, and everything needed to see it again.
pub(super) fn report(
    seed: u64,
    sample: &Sample,
    edition: Edition,
    sel: &Sel,
    ask: impl Fn(&[String], &Sel) -> (String, String),
) -> (String, String) {
    let differs = |lines: &[String], sel: &Sel| {
        let (expected, got) = ask(lines, sel);
        expected != got
    };
    let (lines, small) = shrink(&sample.lines, sel, differs);
    let (expected, got) = ask(&lines, &small);
    let text = text::plain(&small, edition);
    let whole = format!(
        "seed {seed}, {edition:?}\n  {}\nmade small:\n  {}\n  {text}\n  expected {expected}\n  got      {got}",
        text::plain(sel, edition),
        lines.join("\n  "),
    );
    let body = Sel {
        time: Time::All,
        ..small
    };
    (text::plain(&body, edition), whole)
}

/// One edition's random selectors over random sessions, each at every address: at least 20,000
/// cases, of which enough have an answer.
fn the_engine_gives_what_walking_gives(edition: Edition) {
    let (mut cases, mut found) = (0_u32, 0_u32);
    let mut wrong = Mismatches::default();
    let cached = Engine::new(edition);
    for seed in seeds(260) {
        let sample = Sample::new(seed);
        let session = engine::open(&sample.text());
        let mut rng = Rng::new(seed ^ 0xabcd);
        for _ in 0..15 {
            let sel = selectors::selector(&mut rng, &sample.session, edition);
            for time in times(&sample.session, edition) {
                if time == Time::Omitted && selectors::has_facet(&sel) {
                    continue;
                }
                let sel = Sel {
                    time,
                    ..sel.clone()
                };
                let text = text::variant(&sel, edition, &mut rng);
                let expected = eval::ids(&sample.session, edition, &sel).unwrap();
                let got = cached.ids(&session, &text);
                cases += 1;
                found += u32::from(!expected.is_empty());
                if got.as_ref() == Ok(&expected) {
                    continue;
                }
                let ask = |lines: &[String], sel: &Sel| {
                    let expected = eval::ids(&Reference::from_lines(lines), edition, sel);
                    let session = engine::open(&lines.join("\n"));
                    let text = text::plain(sel, edition);
                    let got = Engine::without_cache(edition).ids(&session, &text);
                    (format!("{expected:?}"), format!("{got:?}"))
                };
                wrong.add(|| {
                    let (small, whole) = report(seed, &sample, edition, &sel, ask);
                    (small, format!("{text}\n  {got:?}\n{whole}"))
                });
            }
        }
    }
    wrong.none();
    println!("{edition:?}: {cases} cases, {found} with an answer");
    let counted = std::env::var_os("PACTQL_SEEDS").is_none();
    assert!(!counted || cases >= 20_000, "only {cases} cases");
    assert!(
        !counted || found * 2 >= cases,
        "only {found} of {cases} find anything"
    );
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

/// Long sessions, whose snapshots hold many segments and whose answers are long: other ways of
/// execution than small ones take.
#[test]
fn long_sessions_answer_as_walking_does() {
    let mut wrong = Mismatches::default();
    for (number, edition) in EDITIONS.into_iter().enumerate() {
        let engine = Engine::new(edition);
        for seed in seeds(4) {
            let sample = Sample::long(seed * 3 + number as u64, 30 + 50 * (seed as usize % 4));
            let session = engine::open(&sample.text());
            let documents = read_lines(sample.text().as_bytes()).unwrap();
            let unmerged = Session::build(documents, Writer::without_merging()).unwrap();
            let mut rng = Rng::new(seed ^ 0x10_0000);
            let count = sample.session.committed.len() as u64;
            for at in 0..90 {
                let mut sel = selectors::selector(&mut rng, &sample.session, edition);
                sel.time = match at % 9 {
                    0 => Time::All,
                    n if n % 2 == 0 => Time::Back(0),
                    _ => Time::Back(rng.range(0, count as i64 - 1) as u64),
                };
                let text = text::variant(&sel, edition, &mut rng);
                let expected = eval::ids(&sample.session, edition, &sel).unwrap();
                let answers = [engine.ids(&session, &text), engine.ids(&unmerged, &text)];
                let count = engine.0.rows(&session, &text).map(|rows| rows.count());
                let right = |answer: &Result<Vec<String>, String>| answer.as_ref() == Ok(&expected);
                if answers.iter().all(right) && count.as_ref().ok() == Some(&expected.len()) {
                    continue;
                }
                wrong.add(|| {
                    let plain = text::plain(&sel, edition);
                    let answers = answers.map(|answer| answer.map(|ids| ids.join(" ")));
                    let shown = format!(
                        "seed {seed}, {edition:?}\n  {plain}\n  {text}\n  expected {}\n  got {answers:?}\n  counted {count:?}",
                        expected.join(" ")
                    );
                    (plain, shown)
                });
            }
        }
    }
    wrong.none();
}

#[test]
fn however_it_is_asked_the_bytes_are_the_same() {
    for edition in EDITIONS {
        let cached = Engine::new(edition);
        let fresh = Engine::without_cache(edition);
        for seed in seeds(120) {
            let sample = Sample::new(seed + 5_000);
            let session = engine::open(&sample.text());
            let documents = read_lines(sample.text().as_bytes()).unwrap();
            let unmerged = Session::build(documents, Writer::without_merging()).unwrap();
            let mut rng = Rng::new(seed ^ 0x1234);
            for _ in 0..8 {
                let mut sel = selectors::selector(&mut rng, &sample.session, edition);
                let mut times = times(&sample.session, edition);
                times.retain(|time| *time != Time::Omitted || !selectors::has_facet(&sel));
                sel.time = *rng.pick(&times);
                let text = text::variant(&sel, edition, &mut rng);
                let wanted = fresh.ids(&session, &text).unwrap();
                for _ in 0..2 {
                    assert_eq!(
                        cached.ids(&session, &text).unwrap(),
                        wanted,
                        "cached: {text}"
                    );
                }
                assert_eq!(
                    cached.ids(&unmerged, &text).unwrap(),
                    wanted,
                    "unmerged: {text}"
                );

                let selection = cached.0.rows(&session, &text).unwrap();
                assert_eq!(selection.count(), wanted.len(), "counted: {text}");
                assert_eq!(selection.to_ids(), wanted, "in one go: {text}");
                let nodes: Vec<&str> = selection.nodes().map(|node| node.id()).collect();
                assert_eq!(nodes, wanted, "by node: {text}");

                let prepared = cached.0.prepare(&text).unwrap();
                let ids = prepared.rows(&session).unwrap();
                assert_eq!(ids.to_ids(), wanted, "prepared: {text}");

                let (text, values) = text::with_params(&sel, edition);
                let values: Vec<(&str, Param)> = values
                    .iter()
                    .map(|(name, value)| (name.as_str(), param(value)))
                    .collect();
                let prepared = cached.0.prepare(&text).unwrap();
                let prepared = prepared.bind(values.clone()).unwrap();
                let ids = prepared.rows(&session).unwrap();
                assert_eq!(ids.to_ids(), wanted, "with parameters: {text} {values:?}");
            }
        }
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
        for seed in seeds(80) {
            let sample = Sample::new(seed + 60_000);
            let session = engine::open(&sample.text());
            let mut rng = Rng::new(seed ^ 0x55);
            for _ in 0..6 {
                let mut sel = selectors::selector(&mut rng, &sample.session, edition);
                let mut filter = selectors::selector(&mut rng, &sample.session, edition);
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
                assert_eq!(
                    filtered.to_ids(),
                    ids(&kept, 0, usize::MAX),
                    "seed {seed} {edition:?}: {text} where {filter}"
                );
                let windowed = filtered.skip(skip).limit(limit);
                assert_eq!(
                    windowed.to_ids(),
                    ids(&kept, skip, limit),
                    "{text} where {filter}"
                );
                let other = select().skip(skip).limit(limit);
                assert_eq!(other.to_ids(), ids(&rows, skip, limit), "{text}");
                assert_eq!(other.count(), ids(&rows, skip, limit).len(), "{text}");
            }
        }
    }
}

#[test]
fn the_canonical_text_means_the_same() {
    let canonical = Engine::new(Edition::Canonical);
    for edition in EDITIONS {
        let engine = Engine::new(edition);
        for seed in seeds(150) {
            let sample = Sample::new(seed + 9_000);
            let session = engine::open(&sample.text());
            let mut rng = Rng::new(seed ^ 0x77);
            for _ in 0..8 {
                let mut sel = selectors::selector(&mut rng, &sample.session, edition);
                sel.time = Time::All;
                let text = text::variant(&sel, edition, &mut rng);
                let formatted = engine.0.format(&text).unwrap();
                assert_eq!(
                    canonical.ids(&session, &formatted),
                    engine.ids(&session, &text),
                    "seed {seed} {edition:?}: {text} as {formatted}"
                );
                assert_eq!(
                    canonical.0.format(&formatted).as_ref().unwrap(),
                    &formatted,
                    "seed {seed} {edition:?}: {text}"
                );
                let other = text::variant(&sel, edition, &mut rng);
                assert_eq!(
                    engine.0.check(&other).unwrap().fingerprint,
                    engine.0.check(&text).unwrap().fingerprint,
                    "seed {seed} {edition:?}: {text} and {other}"
                );
            }
        }
    }
}
