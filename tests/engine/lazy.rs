//! Sessions whose snapshots come in when they are asked for: every selector gives the answer of the
//! loaded session, loads no more than it needs, and reports what cannot be loaded.

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;

use pactql::internals::history::Archive;
use pactql::internals::index::NodeRef;
use pactql::{
    Address, Answer, Code, Context, DiffOptions, Engine as Inner, NewNode, Selection, Session,
    explain::ExplainOptions, history::At,
};

use crate::ranges::with_range;
use crate::support::archive::Fake;
use crate::support::engine::Engine;
use crate::support::random::{self, same};
use crate::support::selector::{Edition, Sel, Time};
use crate::support::{selectors, text};

/// What a caller can see of rows, their neighbours that are loaded with them included.
fn shown(rows: &Selection) -> String {
    let mut out = format!(
        "{} {:?} {:?}\n",
        rows.count(),
        rows.address(),
        rows.warnings()
    );
    for node in rows {
        let _ = writeln!(
            out,
            "{} {:?} {:?} {:?} {} {:?}",
            node.id(),
            node.depth(),
            node.ttl(),
            node.parent().map(|parent| (parent.id(), parent.depth())),
            node.text(),
            node.attributes().collect::<Vec<_>>(),
        );
    }
    assert_eq!(rows.to_ids(), rows.ids().collect::<Vec<_>>());
    out
}

/// The answer to a selector with everything that can be asked of it.
fn answer(engine: &Inner, session: &Session, text: &str) -> String {
    match engine.select(session, text) {
        Err(error) => error.to_string() + &format!("{:?}", error.first()),
        Ok(Answer::Range(diff)) => {
            let why = engine.prepare(text).unwrap().why_empty(session);
            format!("{} {why:?}", serde_json::to_string(&diff).unwrap())
        }
        Ok(Answer::Rows(rows)) => {
            let why = rows.why_empty();
            format!("{}{why:?}", shown(&rows))
        }
    }
}

/// A time for a selector: an address, all snapshots, a range, or none.
fn at_some_time(rng: &mut random::Rng, sel: &Sel, session: &crate::support::tree::Session) -> Sel {
    let mut sel = sel.clone();
    let count = session.committed.len();
    sel.time = match rng.below(6) {
        0 => Time::All,
        1 => Time::Back(rng.below(count + 1) as u64),
        2 => Time::Cycle(session.committed[rng.below(count)].cycle),
        3 if !selectors::has_facet(&sel) => Time::Omitted,
        _ => Time::Back(0),
    };
    sel
}

/// Random selectors over random sessions of one edition, each over a session of which nothing is in
/// memory, and over one that is asked all of them.
fn a_lazy_session_answers_as_a_loaded_one(edition: Edition) {
    let (cases, in_part) = (Cell::new(0_u32), Cell::new(0_u32));
    let engine = Engine::new(edition);
    random::selectors(random::share(300), edition, 15, |case| {
        let (session, sample) = case.open()?;
        let mut rng = case.rng();
        let fake = Fake::of(&session.history(), rng.chance(90));
        let warm = Fake::of(&session.history(), true).session();
        for sel in &case.selectors {
            let mut sel = at_some_time(&mut rng, sel, &sample.session);
            if rng.chance(25) && !selectors::has_facet(&sel) {
                with_range(&mut rng, &mut sel, &sample.session, edition);
            }
            let text = text::variant(&sel, edition, &mut rng);
            let expected = answer(&engine.0, &session, &text);
            let cold = fake.session();
            same!(answer(&engine.0, &cold, &text), expected, "{text} cold");
            in_part.set(in_part.get() + u32::from(fake.gave_a_part()));
            same!(answer(&engine.0, &warm, &text), expected, "{text} warm");
            cases.set(cases.get() + 1);
        }
        Ok(())
    });
    let (cases, in_part) = (cases.get(), in_part.get());
    println!("{edition:?}: {cases} cases, {in_part} of a part");
    assert!(
        random::is_single() || in_part * 20 >= cases,
        "{in_part} of {cases}"
    );
}

#[test]
fn a_lazy_session_answers_as_a_loaded_one_in_v01() {
    a_lazy_session_answers_as_a_loaded_one(Edition::V01);
}

#[test]
fn a_lazy_session_answers_as_a_loaded_one_in_depth() {
    a_lazy_session_answers_as_a_loaded_one(Edition::Depth);
}

#[test]
fn a_lazy_session_answers_as_a_loaded_one_in_canonical() {
    a_lazy_session_answers_as_a_loaded_one(Edition::Canonical);
}

#[test]
fn logs_differences_lives_and_explanations_are_those_of_the_loaded_session() {
    let engine = Inner::new();
    let loaded = Session::open("fixtures/support-agent.jsonl").unwrap();
    let fake = Fake::of(&loaded.history(), true);
    let alike = |value: &dyn Fn(&Session) -> String| {
        assert_eq!(value(&fake.session()), value(&loaded));
    };
    let time = regex::Regex::new(r#""time_ns":\d+"#).unwrap();
    for selector in [
        ".cb",
        "^ah .cb",
        ".mt:depth(1..2) .cb[kind='call']",
        "#nobody",
    ] {
        alike(&|session| serde_json::to_string(&engine.log(session, selector).unwrap()).unwrap());
        for (a, b) in [("working", "@t-1"), ("@t-3", "@t0"), ("@t0", "@t-9")] {
            let at = |text: &str| match text.parse::<Address>() {
                Ok(address) => At::Committed(address),
                Err(_) => At::Working,
            };
            alike(&|session| {
                let options = DiffOptions::default().moves(true);
                let diff = engine.diff(session, at(a), at(b), Some(selector), &options);
                diff.map_or_else(
                    |error| error.to_string(),
                    |diff| serde_json::to_string(&diff).unwrap(),
                )
            });
        }
        alike(&|session| {
            let options = ExplainOptions::default().analyze(true);
            let text = format!("@t0 {selector}");
            let explain = engine.explain(Some(session), &text, options).unwrap();
            let explain = explain.to_json();
            let text = format!("{} {}", explain["plan"], explain["strategy"]);
            time.replace_all(&text, "").into_owned()
        });
    }
    let rows = engine.rows(&loaded, "@* .cb").unwrap();
    for id in rows.to_ids().into_iter().take(20) {
        alike(&|session| {
            serde_json::to_string(&pactql::history::blame(&session.history(), id)).unwrap()
        });
    }
}

#[test]
fn filters_pages_and_limits_of_a_part_are_those_of_the_whole() {
    let engine = Engine::new(Edition::Canonical);
    random::selectors(random::share(200), Edition::Canonical, 8, |case| {
        let (session, sample) = case.open()?;
        let mut rng = case.rng();
        let fake = Fake::of(&session.history(), true);
        for pair in case.selectors.chunks(2) {
            let [sel, filter] = pair else { continue };
            let sel = at_some_time(&mut rng, sel, &sample.session);
            let filter = Sel {
                time: Time::Omitted,
                ..filter.clone()
            };
            let text = text::variant(&sel, Edition::Canonical, &mut rng);
            let filter = text::variant(&filter, Edition::Canonical, &mut rng);
            let Ok(filter) = engine.0.prepare(&filter) else {
                continue;
            };
            let (skip, limit) = (rng.below(3), rng.below(4));
            let answer = |session: &Session| {
                let rows = engine.0.rows(session, &text);
                let rows = rows.and_then(|rows| rows.skip(skip).filter(&filter));
                rows.map(|rows| {
                    let rows = rows.limit(limit);
                    format!("{}{:?}", shown(&rows), rows.why_empty())
                })
            };
            let loaded = answer(&session).map_err(|error| error.to_string());
            let lazy = answer(&fake.session()).map_err(|error| error.to_string());
            same!(lazy, loaded, "{text} by {}", filter.text());
        }
        Ok(())
    });
}

/// A session of twenty turns of a few nodes.
fn long() -> Session {
    let mut context = Context::new();
    context
        .add("^sys", r#"block:text { key=policy } "Be kind.""#)
        .unwrap();
    for turn in 0..20 {
        let text = format!("block:text {{ key='k{turn}', role=user }} \"question {turn}\"");
        context.add("^ah", &*text).unwrap();
        context.commit().unwrap();
    }
    let history = context.history();
    let committed = history.committed().iter().cloned().collect();
    Session::new(pactql::History::new(committed, None))
}

#[test]
fn a_selector_loads_what_it_reads() {
    let engine = Inner::new();
    let loaded = long();
    let fake = Fake::of(&loaded.history(), true);
    let third = engine.rows(&loaded, "@t0 .mt:depth(3) .cb").unwrap();
    let third = third.to_ids()[0].to_owned();
    let by_id = format!("@t0 [id='{third}']");
    let part_by_id = format!("part sys, head, rest, all turns #{third}");
    for (selector, asked) in [
        ("@t0 ^ah .cb", &["part head, 0 turns"][..]),
        ("^ah .cb", &["part head, 0 turns"]),
        ("@t0 ^sys .cb", &["part sys, 0 turns"]),
        ("@t0 ^seq .mt:depth(1-3) .cb", &["part 3 turns"]),
        ("@t-4 .mt:depth(2) .cb", &["part 2 turns"]),
        (&*by_id, &[&*part_by_id]),
        ("@t0 .cb", &["19..20"]),
        ("@t0 ^seq .mt:last .cb", &["19..20"]),
        ("@t-3 ^seq", &["16..17"]),
        ("@t-3..@t-1 .cb", &["16..19"]),
        ("@c3 .cb", &["cycles", "2..3"]),
        ("@c3..@c5 .cb", &["cycles", "2..5"]),
        ("@t0..@t-* .cb @mode=reduce", &["19..20", "0..1", "cycles"]),
        ("@t-9..@t0 .cb @mode=latest @limit=1", &["10..20"]),
        ("@* #k3", &["0..20"]),
    ] {
        let session = fake.session();
        let answered = engine.select(&session, selector).unwrap();
        assert!(
            answered.count() > 0 || selector.contains("^ah"),
            "{selector}"
        );
        assert_eq!(fake.taken(), asked, "{selector}");
        // Asked again, it is in memory.
        engine.select(&session, selector).unwrap();
        assert_eq!(fake.taken(), [""; 0], "{selector}");
        let all = answer(&engine, &session, selector);
        assert_eq!(all, answer(&engine, &loaded, selector), "{selector}");
    }
}

#[test]
fn a_part_serves_smaller_ones_and_the_whole_serves_all() {
    let engine = Inner::new();
    let fake = Fake::of(&long().history(), true);
    let session = fake.session();
    for selector in [
        "@t0 .mt:depth(1..5)",
        "@t0 .mt:depth(2)",
        "@t0 .mt:depth(4..5) .cb",
    ] {
        assert!(engine.rows(&session, selector).unwrap().count() > 0);
    }
    assert_eq!(fake.taken(), ["part 5 turns"]);
    // Outside the part.
    assert!(engine.rows(&session, "@t0 .mt:depth(6)").unwrap().count() > 0);
    assert_eq!(fake.taken(), ["part 6 turns"]);
    let rows = engine.rows(&session, "@t0 .mt:depth(5)").unwrap();
    let filter = engine.prepare(".mt:last").unwrap();
    assert_eq!(rows.filter(&filter).unwrap().count(), 0);
    assert_eq!(fake.taken(), ["19..20"]);
    assert!(engine.rows(&session, "@t0 .mt:depth(9)").unwrap().count() > 0);
    assert_eq!(fake.taken(), [""; 0]);
}

#[test]
fn what_cannot_be_loaded_is_the_error_of_the_selector() {
    let engine = Inner::new();
    let loaded = long();
    let fake = Fake::of(&loaded.history(), true);
    for selector in [
        "@t0 ^ah .cb",
        "@t0 .cb",
        "@t-3 .cb",
        "@c3 .cb",
        "@* .cb",
        "@t-3..@t0 .cb",
        "@t-3..@t0 .cb @mode=reduce",
        "@t-3..@t0 .cb @mode=union",
        "@c1..@c4 .cb",
    ] {
        let session = fake.session();
        fake.fail_after(0);
        let error = engine.select(&session, selector).unwrap_err();
        assert_eq!(error.code(), Code::Store, "{selector}");
        assert_eq!(error.message(), "the disk is gone");
        assert_eq!(error.first().help.as_deref(), Some("find it"));
        // A failure that is over is forgotten.
        fake.fail_after(usize::MAX);
        let answered = answer(&engine, &session, selector);
        assert_eq!(answered, answer(&engine, &loaded, selector));
    }
    // A filter and an explanation read more than the part that was loaded.
    let session = fake.session();
    let rows = engine.rows(&session, "@t0 .mt:depth(2) .cb").unwrap();
    fake.fail_after(0);
    let error = rows.filter(&engine.prepare(".cb").unwrap()).unwrap_err();
    assert_eq!(error.code(), Code::Store);
    let error = engine.log(&session, ".cb").unwrap_err();
    assert_eq!(error.code(), Code::Store);
    // What cannot report a failure gives nothing; what is fetched before does.
    assert!(session.history().committed().first().is_none());
    let failure = session.history().fetch_all().unwrap_err();
    assert_eq!(failure.message, "the disk is gone");
}

#[test]
fn ages_ask_the_whole_history_only_of_nodes_without_a_cycle() {
    let engine = Inner::new();
    let loaded = long();
    let fake = Fake::of(&loaded.history(), true);
    let session = fake.session();
    let selector = "@t0 .mt:depth(1..4) .cb[age>=2]";
    let answered = answer(&engine, &session, selector);
    assert_eq!(answered, answer(&engine, &loaded, selector));
    assert_eq!(fake.taken(), ["part 4 turns"]);

    let lines: String = (1..=9)
        .map(|cycle| {
            let block = r#"{"id":"b","nodeType":"cb"}"#;
            let head = format!(r#"{{"id":"^ah","nodeType":"^ah","children":[{block}]}}"#);
            format!("{{\"cycle\":{cycle},\"root\":{{\"children\":[{head}]}}}}\n")
        })
        .collect();
    let loaded = Session::from_slice(lines.as_bytes()).unwrap();
    let fake = Fake::of(&loaded.history(), true);
    let session = fake.session();
    let selector = "@t0 ^ah .cb[age=8]";
    assert_eq!(engine.rows(&session, selector).unwrap().count(), 1);
    assert_eq!(fake.taken(), ["part head, 0 turns", "0..9"]);
    let session = fake.session();
    fake.fail_after(1);
    let error = engine.rows(&session, selector).unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (Code::Store, "the disk is gone")
    );
}

#[test]
fn contexts_commit_after_an_archive_and_fork_before_its_end() {
    let engine = Inner::new();
    let loaded = long();
    let fake = Fake::of(&loaded.history(), true);
    let session = fake.session();
    let history = session.history();
    // Commits are pushed without loading anything.
    let mut other = Context::resume(&loaded).unwrap();
    other.add("^ah", NewNode::text("more")).unwrap();
    other.commit().unwrap();
    let newest = Arc::clone(other.history().committed().last().unwrap());
    let longer = history.appended(newest, &[]);
    assert_eq!(longer.committed().len(), 21);
    assert_eq!(
        longer.committed().last().map(|newest| newest.cycle()),
        Some(21)
    );
    let shorter = longer.first_n(20).first_n(7);
    assert_eq!(shorter.committed().len(), 7);
    assert_eq!(fake.taken(), [""; 0]);
    assert_eq!(shorter.cycles().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(longer.cycles().next_back(), Some(21));
    assert_eq!(fake.taken(), ["cycles"]);
    let longer = Session::new(longer);
    for selector in ["@t0 .cb", "@t-1 .cb", "@c21..@c1 .cb", "@* .mt"] {
        let expected = answer(&engine, &Session::new(longer_loaded(&mut other)), selector);
        assert_eq!(answer(&engine, &longer, selector), expected, "{selector}");
    }
    // A context goes on with a session of which nothing is in memory.
    let mut resumed = Context::resume(&fake.session()).unwrap();
    resumed.add("^ah", NewNode::text("again")).unwrap();
    resumed.commit().unwrap();
    let mut fork = resumed.fork("@c4").unwrap();
    assert_eq!(fork.history().cycles().collect::<Vec<_>>(), [1, 2, 3, 4]);
    fork.add("^ah", NewNode::text("elsewhere")).unwrap();
    fork.commit().unwrap();
    assert_eq!(fork.select("@* .cb[role='user']").unwrap().count(), 4);
    assert_eq!(resumed.select("@* .cb[role='user']").unwrap().count(), 20);
}

fn longer_loaded(context: &mut Context) -> pactql::History {
    let history = context.history();
    pactql::History::new(history.committed().iter().cloned().collect(), None)
}

#[test]
fn places_are_made_when_they_are_used_and_neighbours_come_together() {
    let loaded = long();
    let fake = Fake::of(&loaded.history(), true);
    let session = fake.session();
    let history = session.history();
    history.fetch_range(4..6).unwrap();
    history.fetch_range(2..9).unwrap();
    assert_eq!(fake.taken(), ["4..6", "2..4", "6..9"]);
    // Not fetched: alone, and from the second one on with those around it.
    assert_eq!(history.committed()[12].cycle(), 13);
    assert_eq!(fake.taken(), ["12..13"]);
    let pairs = history.committed().iter().zip(
        loaded
            .history()
            .committed()
            .iter()
            .cloned()
            .collect::<Vec<_>>(),
    );
    for (lazy, loaded) in pairs {
        let ids = |snapshot: &pactql::Snapshot| -> Vec<String> {
            snapshot
                .nodes()
                .map(NodeRef::id)
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(ids(lazy), ids(&loaded));
    }
    assert_eq!(fake.taken(), ["0..1", "1..2", "9..12", "13..20"]);
    let source = Arc::clone(&fake) as Arc<dyn pactql::internals::history::SnapshotSource>;
    let archive = Archive::new(source, 0, false);
    assert!(archive.is_empty());
}

#[test]
fn snapshots_that_are_fetched_by_many_threads_are_one() {
    let loaded = long();
    let fake = Fake::of(&loaded.history(), true);
    let session = fake.session();
    let history = session.history();
    let fetched: Vec<_> = std::thread::scope(|scope| {
        let fetch = |_| {
            scope.spawn(|| {
                history.fetch_all().unwrap();
                Arc::clone(&history.committed()[7])
            })
        };
        let threads: Vec<_> = (0..8).map(fetch).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(
        fetched
            .iter()
            .all(|snapshot| Arc::ptr_eq(snapshot, &fetched[0]))
    );
    assert_eq!(fake.taken(), ["0..20"]);
}
