//! Conditions on other nodes (LANGUAGE §13): the engine gives the answer of the reference interpreter for random
//! selectors with conditions inside each other, through every part of its interface.

use std::cell::Cell;

use pactql::internals::index::Writer;
use pactql::internals::tree::read_lines;
use pactql::{Session, Value};
use regex::Regex;

use crate::ranges::{answered, expected, with_range};
use crate::support::documents::Sample;
use crate::support::engine::Engine;
use crate::support::random::{self, Case, Rng, same};
use crate::support::selector::{Controls, Edition, Sel, Time};
use crate::support::{eval, selectors, text};

const EDITION: Edition = Edition::Canonical;

/// A case whose calls and results have ids, two of them that are used again and again.
pub(crate) fn case(seed: u64, sample: &Sample, count: usize) -> Case {
    let lines = sample.lines.iter().map(|line| {
        let mut parts = String::with_capacity(line.len() * 2);
        let mut rest = line.as_str();
        let mut number = 0_usize;
        while let Some(at) = rest.find("\"kind\":") {
            let (before, behind) = rest.split_at(at);
            parts.push_str(before);
            let is_answer = ["\"kind\":\"call\"", "\"kind\":\"result\""];
            if is_answer.iter().any(|kind| behind.starts_with(kind)) {
                let id = ["a", "b", "a"][number % 3];
                number += 1;
                parts.push_str(&format!("\"data_call_id\":\"{id}\","));
            }
            parts.push_str("\"kind\":");
            rest = &behind["\"kind\":".len()..];
        }
        parts.push_str(rest);
        parts
    });
    let lines: Vec<String> = lines.collect();
    let text = lines.join("\n") + "\n";
    let lines = match Session::from_slice(text.as_bytes()) {
        Ok(_) => lines,
        Err(_) => sample.lines.clone(),
    };
    let sample = Sample::of(lines.clone());
    let mut rng = Rng::new(!seed);
    let selector = |_| selectors::with_conditions(&mut rng, &sample.session);
    Case {
        seed,
        edition: EDITION,
        lines,
        selectors: (0..count).map(selector).collect(),
    }
}

#[test]
fn conditions_answer_as_walking_does() {
    let engine = Engine::new(EDITION);
    let (cases, found) = (Cell::new(0_u32), Cell::new(0_u32));
    let make = |seed| case(seed, &Sample::new(seed), 15);
    random::check(random::share(500), make, |case| {
        let (session, sample) = case.open()?;
        let mut rng = case.rng();
        for sel in &case.selectors {
            let mut times = vec![Time::All, Time::Back(0)];
            if !selectors::has_facet(sel) {
                times.push(Time::Omitted);
            }
            for time in times {
                let sel = Sel {
                    time,
                    ..sel.clone()
                };
                let text = text::variant(&sel, EDITION, &mut rng);
                let expected = eval::ids(&sample.session, EDITION, &sel).unwrap();
                cases.set(cases.get() + 1);
                found.set(found.get() + u32::from(!expected.is_empty()));
                same!(engine.ids(&session, &text), Ok(expected.clone()), "{text}");
                let count = engine.0.rows(&session, &text).map(|rows| rows.count());
                same!(count.unwrap(), expected.len(), "counted: {text}");
            }
        }
        Ok(())
    });
    let (cases, found) = (cases.get(), found.get());
    println!("{cases} cases, {found} with an answer");
    if !random::is_single() {
        assert!(found * 4 >= cases, "only {found} of {cases} find anything");
    }
}

#[test]
fn conditions_in_long_sessions_answer_as_walking_does() {
    let engine = Engine::new(EDITION);
    let sizes = if random::few() { 1 } else { 3 };
    let make = |seed| {
        case(
            seed,
            &Sample::long(seed, 15 + 8 * (seed as usize % sizes)),
            15,
        )
    };
    random::check(random::share(12), make, |case| {
        let (session, sample) = case.open()?;
        let documents = read_lines(case.lines.join("\n").as_bytes()).unwrap();
        let unmerged = Session::build(documents, Writer::new().without_merging()).unwrap();
        let mut rng = case.rng();
        let count = sample.session.committed.len() as i64;
        for sel in &case.selectors {
            let sel = Sel {
                time: Time::Back(rng.range(0, count - 1) as u64),
                ..sel.clone()
            };
            let text = text::variant(&sel, EDITION, &mut rng);
            let expected = eval::ids(&sample.session, EDITION, &sel).unwrap();
            for session in [&session, &unmerged] {
                same!(
                    engine.ids(session, &text).unwrap(),
                    expected.clone(),
                    "{text}"
                );
            }
        }
        Ok(())
    });
}

#[test]
fn conditions_in_ranges_answer_as_walking_does() {
    let engine = Engine::new(EDITION);
    let make = |seed| match seed % 4 {
        0 => case(seed, &Sample::long(seed, 12), 4),
        _ => case(seed, &Sample::new(seed), 6),
    };
    random::check(random::share(200), make, |case| {
        let (session, sample) = case.open()?;
        let mut rng = case.rng();
        for sel in &case.selectors {
            let mut sel = sel.clone();
            with_range(&mut rng, &mut sel, &sample.session, EDITION);
            let text = text::plain(&sel, EDITION);
            let expected = expected(&sample.session, EDITION, &sel, &text);
            same!(answered(&engine, &session, &sel, &text), expected, "{text}");
        }
        Ok(())
    });
}

/// A text in a condition may be a parameter, at any level.
#[test]
fn parameters_of_conditions_are_the_texts_they_are_bound_to() {
    let engine = Engine::new(EDITION);
    let text = Regex::new("(?:=|!=|<|<=|>|>=)'([a-z0-9]+)'").unwrap();
    let (bound, found) = (Cell::new(0_u32), Cell::new(0_u32));
    let make = |seed| case(seed, &Sample::new(seed), 10);
    random::check(random::share(200), make, |case| {
        let (session, _) = case.open()?;
        for sel in &case.selectors {
            let mut sel = sel.clone();
            sel.time = Time::Back(0);
            let written = engine.0.format(&text::plain(&sel, EDITION)).unwrap();
            let mut with = String::new();
            let mut values = Vec::new();
            let mut rest = 0;
            for value in text
                .captures_iter(&written)
                .filter_map(|found| found.get(1))
            {
                with.push_str(&written[rest..value.start() - 1]);
                with.push_str(&format!("$p{}", values.len()));
                values.push((format!("p{}", values.len()), value.as_str()));
                rest = value.end() + 1;
            }
            with.push_str(&written[rest..]);
            if values.is_empty() {
                continue;
            }
            let prepared = engine.0.prepare(&with).unwrap();
            let values = values
                .iter()
                .map(|(name, value)| (name.as_str(), Value::from(*value)));
            let prepared = prepared.bind(values).unwrap();
            let expected = engine.ids(&session, &written).unwrap();
            bound.set(bound.get() + u32::from(with.contains(":has") || with.contains(":after")));
            found.set(found.get() + u32::from(!expected.is_empty()));
            let rows = prepared.rows(&session).unwrap();
            same!(rows.to_ids(), expected, "{with}");
        }
        Ok(())
    });
    if !random::is_single() {
        assert!(bound.get() > 0 && found.get() > 0, "{bound:?} {found:?}");
    }
}

#[test]
fn canonical_texts_filters_and_parameters_of_conditions() {
    let engine = Engine::new(EDITION);
    let make = |seed| case(seed, &Sample::new(seed), 10);
    random::check(random::share(200), make, |case| {
        let (session, sample) = case.open()?;
        let mut rng = case.rng();
        for sel in &case.selectors {
            let mut sel = sel.clone();
            sel.time = Time::Back(0);
            let text = text::variant(&sel, EDITION, &mut rng);
            // An error where nothing was committed.
            let expected = eval::ids(&sample.session, EDITION, &sel).map_err(str::to_owned);
            let formatted = engine.0.format(&text).unwrap();
            same!(
                engine.ids(&session, &formatted),
                expected,
                "{text} as {formatted}"
            );
            same!(
                engine.0.format(&formatted).unwrap(),
                formatted.clone(),
                "{text}"
            );
            let other = text::variant(&sel, EDITION, &mut rng);
            same!(
                engine.0.check(&other).unwrap().fingerprint,
                engine.0.check(&text).unwrap().fingerprint,
                "{text} and {other}"
            );
        }
        for pair in case.selectors.chunks(2) {
            let (mut sel, mut filter) = (pair[0].clone(), pair[pair.len() - 1].clone());
            filter.controls = Controls::default();
            if selectors::has_facet(&filter) {
                continue;
            }
            sel.time = Time::All;
            let mut kept = eval::rows(&sample.session, EDITION, &sel).unwrap();
            kept.retain(|(tree, node)| {
                let eval = eval::Eval {
                    session: &sample.session,
                    tree,
                    edition: EDITION,
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
            let ids: Vec<&str> = kept.iter().map(|(tree, node)| tree.id(*node)).collect();
            let text = text::plain(&sel, EDITION);
            let filter = text::plain(&filter, EDITION);
            let prepared = engine.0.prepare(&filter).unwrap();
            let filtered = engine.0.rows(&session, &text).unwrap();
            let filtered = filtered.filter(&prepared).unwrap();
            same!(filtered.to_ids(), ids, "{text} where {filter}");
        }
        Ok(())
    });
}

/// The steps after a first row, which was found in any unit, were run as if their depths held there.
#[test]
fn depths_of_steps_after_a_first_row_are_tested() {
    let case = case(14, &Sample::new(110_871), 0);
    let (session, sample) = case.open().unwrap();
    let engine = Engine::new(EDITION);
    let first = "@t0 .mt[data_call_id='a']:first > .cb";
    for (depths, finds) in [("", true), (":depth(0)", true), (":depth(-1,7)", false)] {
        let text = format!("{first}{depths}");
        let sel = crate::support::parse::parse(&text, EDITION);
        let expected = eval::ids(&sample.session, EDITION, &sel).unwrap();
        assert_eq!(!expected.is_empty(), finds, "{text}");
        assert_eq!(engine.ids(&session, &text), Ok(expected), "{text}");
    }
}
