//! Ids and counts of many sessions: what the database answers by one statement is what the sessions answer.

use std::sync::Arc;

use pactql::store::{StoreReason, StoreRoute};
use pactql::{Answer, Error, Session, Store};

use super::differential::at;
use crate::store::place::Folder;
use crate::support::documents::Sample;
use crate::support::random::{Rng, share};
use crate::support::selector::Edition;
use crate::support::{selectors, text};

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

/// How many ids each session has, from them and as the database counts them.
fn counts(store: &Store, selector: &str, ids: &Ids) -> [Vec<(String, usize)>; 2] {
    let counted = store.select(selector).unwrap().counts().unwrap();
    let lengths = ids.iter().map(|(name, ids)| (name.clone(), ids.len()));
    [lengths.collect(), counted.map(Result::unwrap).collect()]
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
fn one_statement_answers_as_sessions_do() {
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
            let [lengths, counted] = counts(&store, &text, &first);
            assert_eq!(lengths, counted, "{text}");
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

/// A statement opens no session, however often it runs, and sees what others write.
#[test]
fn a_statement_opens_no_session() {
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
    assert_eq!(ids(&store, selector).unwrap(), first);
    assert_eq!((first.len(), store.open_sessions()), (70, 0));
    // One that was written meanwhile is read, and one that has another name.
    let other = Store::open(&path).unwrap();
    let mut context = other.write("s00x").unwrap();
    context
        .append(pactql::Message::user("a rare word: zanzibar"))
        .unwrap();
    context.commit().unwrap();
    drop(context);
    other.rename("s05", "s99").unwrap();
    other.delete("s06").unwrap();
    let later = ids(&store, selector).unwrap();
    assert_eq!(later, rows(&open(0), selector).unwrap());
    assert_eq!(later.len(), 70);
    assert!(later.iter().any(|(name, _)| name == "s99"));
    // Some of the sessions; those that have a text, an id that nothing has; an answer that is not read to its end.
    let some = store
        .select(selector)
        .unwrap()
        .sessions("s1*")
        .ids()
        .unwrap();
    assert_eq!(some.route(), StoreRoute::Statement);
    assert_eq!(some.count(), 10);
    for (selector, found) in [
        ("@t0 .cb[content~'zanzibar']", 1),
        ("@t0 .cb[content~'zanzibar'], .cb[content='nothing']", 1),
        ("@t0 .cb[content~'zanzibar?r']", 1),
        ("@t0 .cb[content~'Zanzibar']", 0),
        ("@t0 [id='none']", 0),
    ] {
        let rows = rows(&open(0), selector).unwrap();
        assert_eq!(ids(&store, selector).unwrap(), rows, "{selector}");
        assert_eq!(rows.len(), found, "{selector}");
    }
    assert!(
        store
            .select(selector)
            .unwrap()
            .ids()
            .unwrap()
            .next()
            .is_some()
    );
    assert_eq!(store.open_sessions(), 0);
    // Options of a range are kept, which no statement has.
    let mut options = pactql::RangeOptions::default();
    options.max_snapshots = Some(5);
    let found = store.select(selector).unwrap().options(options);
    let found = found.ids().unwrap();
    assert_eq!(found.route(), StoreRoute::Sessions(StoreReason::Options));
    assert_eq!((found.count(), store.open_sessions() > 0), (70, true));
}
