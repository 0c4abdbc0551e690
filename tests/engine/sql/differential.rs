//! Random selectors over random histories give the same rows from the engine and from SQLite.

use std::cell::Cell;
use std::sync::Arc;

use pactql::sql::{Dialect, Options};
use pactql::{Answer, Code, Session, Store};

use super::sqlite::{self, Answers};
use crate::store::place::Folder;
use crate::support::documents::Sample;
use crate::support::random::{self, Case, Rng, same};
use crate::support::selector::{Edition, Mode, Sel, Time};
use crate::support::tree::Session as Reference;
use crate::support::{selectors, text};

/// An address for a selector: any snapshot, the working state, all of them, or a range in any mode.
pub(super) fn at(rng: &mut Rng, session: &Reference, edition: Edition, sel: &Sel) -> Sel {
    let mut sel = sel.clone();
    let cycles: Vec<i64> = session.committed.iter().map(|tree| tree.cycle).collect();
    let count = cycles.len() as u64;
    let back = |rng: &mut Rng| rng.below(count as usize + 1) as u64;
    sel.time = match rng.below(9) {
        0 | 1 if !selectors::has_facet(&sel) => Time::Omitted,
        0..=2 => Time::Back(0),
        3 => Time::Back(back(rng)),
        4 => Time::Cycle(*rng.pick(&cycles)),
        5 => Time::All,
        6 => Time::CycleRange(*rng.pick(&cycles), *rng.pick(&cycles)),
        _ => {
            let end = |rng: &mut Rng| rng.chance(80).then(|| back(rng));
            Time::BackRange(Some(back(rng)), end(rng))
        }
    };
    if matches!(sel.time, Time::BackRange(..) | Time::CycleRange(..))
        && edition == Edition::Canonical
    {
        sel.controls.mode = *rng.pick(&[
            None,
            Some(Mode::Union),
            Some(Mode::Latest),
            Some(Mode::Reduce),
        ]);
    }
    sel
}

/// The rows of the engine, as [`Answers`] has them; nothing for a session without the snapshot.
pub(super) fn rows(
    engine: &pactql::Engine,
    session: &Session,
    text: &str,
) -> Result<Vec<String>, String> {
    let answer = match engine.select(session, text) {
        Err(error) if error.code() == Code::SnapshotNotFound => return Ok(Vec::new()),
        answer => answer.map_err(|error| format!("{error}"))?,
    };
    let diff = match answer {
        Answer::Rows(rows) => return Ok(rows.ids().map(str::to_owned).collect()),
        Answer::Range(diff) => diff,
    };
    let history = session.history();
    let committed = history.committed();
    let seq_of = |cycle: i64| {
        let at = committed
            .iter()
            .position(|snapshot| snapshot.cycle() == cycle);
        // A store counts from 1.
        at.unwrap() + 1
    };
    let mut rows = Vec::new();
    for pair in &diff.diffs {
        let ends = format!("{} {}", seq_of(pair.from.cycle), seq_of(pair.to.cycle));
        let mut add = |change: &str, id: &str| rows.push(format!("{ends} {change} {id}"));
        pair.added_ids.iter().for_each(|id| add("added", id));
        pair.removed_ids.iter().for_each(|id| add("removed", id));
        pair.changed.iter().for_each(|row| add("changed", &row.id));
    }
    Ok(rows)
}

pub(super) fn builder(edition: Edition) -> pactql::Engine {
    let edition = match edition {
        Edition::V01 => pactql::Edition::V01,
        Edition::Depth => pactql::Edition::Depth,
        Edition::Canonical => pactql::Edition::Canonical,
    };
    pactql::Engine::builder().edition(edition).build()
}

/// A store with the session of a case, a fork of it, and another session.
pub(super) fn store_of(
    case: &Case,
    folder: &Folder,
) -> (String, Vec<(&'static str, Arc<Session>)>) {
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let open = |text: &str| Session::from_slice(text.as_bytes()).unwrap();
    let own = open(&(case.lines.join("\n") + "\n"));
    let other = open(&Sample::new(case.seed ^ 0xFFFF).text());
    store.import("own", &own, None).unwrap();
    store.import("other/one", &other, None).unwrap();
    let mut sessions = vec![("other/one", Arc::new(other)), ("own", Arc::new(own))];
    if store.fork("own", "@t0", "fork").is_ok() {
        let fork = store.session("fork").unwrap();
        fork.history().fetch_all().unwrap();
        sessions.push(("fork", fork));
    }
    (path, sessions)
}

/// How many histories are asked, each with 12 selectors: 5,040 selectors for each edition in CI.
fn sessions() -> u32 {
    random::share(1_680)
}

fn statements_answer_as_the_engine_does(edition: Edition, make: impl Fn(u64) -> Case) {
    let engine = builder(edition);
    let (cases, found, refused) = (Cell::new(0_u32), Cell::new(0_u32), Cell::new(0_u32));
    random::check(sessions(), make, |case| {
        let (_, sample) = case.open()?;
        let folder = Folder::quick();
        let (path, sessions) = store_of(case, &folder);
        let connection = sqlite::open(&path);
        let mut rng = case.rng();
        for sel in &case.selectors {
            let sel = at(&mut rng, &sample.session, edition, sel);
            let text = text::variant(&sel, edition, &mut rng);
            let statement = match engine.sql(&text, Dialect::Sqlite, &Options::default()) {
                Err(error) if error.code() == Code::Sql => {
                    refused.set(refused.get() + 1);
                    continue;
                }
                statement => statement.unwrap(),
            };
            let mut expected = Answers::new();
            for (name, session) in &sessions {
                let rows = rows(&engine, session, &text).unwrap();
                if !rows.is_empty() {
                    expected.insert((*name).to_owned(), rows);
                }
            }
            cases.set(cases.get() + 1);
            found.set(found.get() + u32::from(!expected.is_empty()));
            let got = sqlite::run(&connection, &statement);
            same!(got, Ok(expected), "{text}\n{}", statement.text());
        }
        Ok(())
    });
    let (cases, found, refused) = (cases.get(), found.get(), refused.get());
    println!("{edition:?}: {cases} cases, {found} with an answer, {refused} refused");
    if !random::is_single() {
        let made = cases + refused;
        assert!(made >= 12 * sessions() - 30, "only {made} cases");
        assert!(found * 3 >= cases, "only {found} of {cases} find anything");
        assert!(refused * 50 < cases, "{refused} refused");
    }
}

fn cases(edition: Edition) -> impl Fn(u64) -> Case {
    move |seed| Case::new(seed, &Sample::new(seed), edition, 12)
}

/// LANGUAGE §13.
#[test]
fn statements_with_conditions_answer_as_the_engine_does() {
    let make = |seed| crate::conditions::case(seed, &Sample::new(seed), 12);
    statements_answer_as_the_engine_does(Edition::Canonical, make);
}

#[test]
fn statements_answer_as_the_engine_does_in_v01() {
    statements_answer_as_the_engine_does(Edition::V01, cases(Edition::V01));
}

#[test]
fn statements_answer_as_the_engine_does_in_depth() {
    statements_answer_as_the_engine_does(Edition::Depth, cases(Edition::Depth));
}

#[test]
fn statements_answer_as_the_engine_does_in_canonical() {
    statements_answer_as_the_engine_does(Edition::Canonical, cases(Edition::Canonical));
}

/// The tables may be in a schema: here that of a file beside an empty one.
#[test]
fn statements_find_the_tables_of_a_schema() {
    let edition = Edition::Canonical;
    let engine = builder(edition);
    let schema = Options {
        schema: "the \"fleet\"".to_owned(),
        ..Options::default()
    };
    let (asked, found) = (Cell::new(0_u32), Cell::new(0_u32));
    random::selectors(random::share(800), edition, 12, |case| {
        let (_, sample) = case.open()?;
        let folder = Folder::quick();
        let (path, _) = store_of(case, &folder);
        let plain = sqlite::open(&path);
        let beside = sqlite::open(":memory:");
        let attached = beside.execute("attach ? as \"the \"\"fleet\"\"\"", [&path]);
        attached.unwrap();
        let mut rng = case.rng();
        for sel in &case.selectors {
            let sel = at(&mut rng, &sample.session, edition, sel);
            let text = text::variant(&sel, edition, &mut rng);
            let statement = |options: &Options| engine.sql(&text, Dialect::Sqlite, options);
            let Ok(expected) = statement(&Options::default()) else {
                continue;
            };
            let expected = sqlite::run(&plain, &expected).unwrap();
            let statement = statement(&schema).unwrap();
            asked.set(asked.get() + 1);
            found.set(found.get() + u32::from(!expected.is_empty()));
            let got = sqlite::run(&beside, &statement);
            same!(got, Ok(expected), "{text}\n{}", statement.text());
        }
        Ok(())
    });
    if !random::is_single() {
        let (asked, found) = (asked.get(), found.get());
        // A third of them.
        assert!(
            found * 3 >= asked && asked > random::share(1_600),
            "{found} of {asked}"
        );
    }
}
