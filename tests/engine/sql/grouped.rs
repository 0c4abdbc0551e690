//! Ids of many sessions: what the database answers in groups is what the sessions answer.

use std::sync::Arc;

use pactql::store::{StoreReason, StoreRoute};
use pactql::{Answer, Error, Session, Store};

use super::differential::at;
use crate::store::place::Folder;
use crate::support::documents::Sample;
use crate::support::random::{Rng, share};
use crate::support::selector::Edition;
use crate::support::{selectors, text};

/// As many as are asked in more than one group, of which the last is not full.
const SESSIONS: u64 = 75;
/// Selectors of each edition: 40 in CI.
fn selectors() -> usize {
    share(160).max(6) as usize
}

type Ids = Vec<(String, Vec<String>)>;

fn ids(store: &Store, selector: &str) -> Result<Ids, Error> {
    let found = store.select(selector)?.ids()?.map(|found| {
        let found = found?;
        let ids = found.ids().map(str::to_owned).collect();
        Ok((found.session().to_owned(), ids))
    });
    found.collect()
}

fn rows(store: &Store, selector: &str) -> Result<Ids, Error> {
    let found = store.select(selector)?.answers()?.map(|found| {
        let found = found?;
        let Answer::Rows(rows) = &found.answer else {
            panic!("{selector} gives no rows");
        };
        let ids = rows.ids().map(str::to_owned).collect();
        Ok((found.session, ids))
    });
    found.collect()
}

#[test]
fn groups_answer_as_sessions_do() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let samples: Vec<Sample> = (0..SESSIONS)
        .map(|seed| Sample::new(seed * 6007 + 11))
        .collect();
    for (number, sample) in samples.iter().enumerate() {
        let session = Session::from_slice(sample.text().as_bytes()).unwrap();
        let name = format!("s/{number:02}");
        store.import(&name, &session, None).unwrap();
    }
    drop(store);
    let (mut asked, mut by_statement, mut found) = (0, 0, 0);
    for edition in [Edition::V01, Edition::Depth, Edition::Canonical] {
        let mut rng = Rng::new(41);
        let engine = Arc::new(crate::sql::differential::builder(edition));
        while asked < selectors() * (1 + edition as usize) {
            let sample = rng.pick(&samples);
            let sel = selectors::selector(&mut rng, &sample.session, edition);
            let sel = at(&mut rng, &sample.session, edition, &sel);
            let text = text::variant(&sel, edition, &mut rng);
            let open = |memory: usize| {
                let builder = Store::builder().engine(Arc::clone(&engine)).memory(memory);
                builder.open(&path).unwrap()
            };
            let store = open(256 << 20);
            let Ok(first) = ids(&store, &text) else {
                // It compares snapshots.
                continue;
            };
            asked += 1;
            by_statement += usize::from(store.open_sessions() == 0);
            found += usize::from(!first.is_empty());
            let again = ids(&store, &text).unwrap();
            assert_eq!(first, again, "{text}");
            assert_eq!(first, rows(&store, &text).unwrap(), "{text}");
            // Where nothing can stay in memory.
            let none = open(0);
            for _ in 0..3 {
                assert_eq!(first, ids(&none, &text).unwrap(), "{text}");
            }
        }
    }
    println!("{asked} selectors, {by_statement} by statement, {found} with an answer");
    assert!(by_statement * 10 > asked * 8 && found * 2 > asked);
}

/// A session that is asked a second time is opened, if it can stay.
#[test]
fn sessions_are_opened_when_they_are_asked_again() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let session = Session::from_slice(Sample::new(3).text().as_bytes()).unwrap();
    for number in 0..70 {
        let name = format!("s{number:02}");
        store.import(&name, &session, None).unwrap();
    }
    let selector = "@t0 .cb";
    let open = |memory| Store::builder().memory(memory).open(&path).unwrap();
    let store = open(256 << 20);
    let first = ids(&store, selector).unwrap();
    assert_eq!((first.len(), store.open_sessions()), (70, 0));
    assert_eq!(ids(&store, selector).unwrap(), first);
    assert_eq!(store.open_sessions(), 70);
    // One that was written meanwhile is read, and one that has another name.
    let other = Store::open(&path).unwrap();
    let mut context = other.write("s00x").unwrap();
    context.append(pactql::Message::user("news")).unwrap();
    context.commit().unwrap();
    drop(context);
    other.rename("s05", "s99").unwrap();
    other.delete("s06").unwrap();
    let later = ids(&store, selector).unwrap();
    assert_eq!(later, rows(&open(0), selector).unwrap());
    assert_eq!(later.len(), 70);
    assert!(later.iter().any(|(name, _)| name == "s99"));
    // Options of a range are kept, which no statement has.
    let mut options = pactql::RangeOptions::default();
    options.max_snapshots = Some(5);
    let fresh = open(256 << 20);
    let found = fresh.select(selector).unwrap().options(options);
    let found = found.ids().unwrap();
    assert_eq!(*found.route(), StoreRoute::Sessions(StoreReason::Options));
    assert_eq!((found.count(), fresh.open_sessions() > 0), (70, true));
    // Few are opened at once.
    let few = open(256 << 20);
    let found = few.select(selector).unwrap().sessions("s1*").ids().unwrap();
    assert_eq!(*found.route(), StoreRoute::Sessions(StoreReason::Few));
    assert_eq!(found.count(), 10);
    assert_eq!(few.open_sessions(), 10);
}
