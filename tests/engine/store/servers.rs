//! Stores in PostgreSQL with two writers, and with a server that goes away (STORE §3).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pactql::{
    Cancel, Cancelled, Code, Context, Message, NewNode, Store,
    store::{Durability, Retention},
};

use super::child::Writer;
use super::place::{Folder, documents, sound};
use super::server::Server;
use crate::runtime::properties::document;
use crate::support::random::{self, Rng};

fn server() -> Option<Server> {
    match Server::start() {
        Ok(server) => Some(server),
        Err(why) => {
            println!("SKIPPED: {why}");
            None
        }
    }
}

fn open(url: &str, owner: &str, lease: Duration) -> Store {
    let builder = Store::builder().owner(owner).lease(lease);
    builder.connect(url).unwrap()
}

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);

fn add(context: &mut Context, text: &str) {
    context.add("^ah", NewNode::text(text)).unwrap();
}

#[test]
fn a_holder_that_slept_is_refused_by_the_fence() {
    let Some(server) = server() else { return };
    let url = server.url("fence");
    let (one, two) = (open(&url, "one", SHORT), open(&url, "two", LONG));
    let mut first = one.write("a").unwrap();
    add(&mut first, "before");
    first.commit().unwrap();
    let held = two.write("b").unwrap();
    let busy = one.write("b").unwrap_err();
    assert_eq!(busy.code(), Code::SessionBusy);
    assert!(busy.to_string().contains("two/"), "{busy}");
    drop(held);
    one.write("b").map(drop).unwrap();
    std::thread::sleep(SHORT * 3);
    // It ran out and nobody took it.
    add(&mut first, "after");
    first.commit().unwrap();
    std::thread::sleep(SHORT * 3);
    let mut second = two.write("a").unwrap();
    add(&mut first, "unsaved");
    for error in [first.commit().unwrap_err(), first.save().unwrap_err()] {
        assert_eq!(error.code(), Code::LeaseLost);
        assert!(error.to_string().contains("two/"), "{error}");
    }
    add(&mut second, "of two");
    second.commit().unwrap();
    drop(first);
    add(&mut second, "more of two");
    second.commit().unwrap();
    let (committed, _) = documents(&one.session("a").unwrap()).unwrap();
    assert_eq!(committed.len(), 4);
    assert!(!committed.concat().contains("unsaved"));
    assert_eq!(sound(&one), Ok(()));
}

/// A context in a loop, whose server is ended and started again at random moments: as a crash does it, and
/// after a word to those connected.
#[test]
fn a_server_that_restarts_loses_no_commit() {
    let Some(mut server) = server() else { return };
    let url = server.url("restarts");
    let rounds = random::share(24).max(2);
    let mut rng = Rng::new(4);
    let over = AtomicBool::new(false);
    let commits = AtomicU64::new(0);
    let (acknowledged, said) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&url, &over, &commits));
        for round in 0..rounds {
            wait_for_more(&commits);
            std::thread::sleep(Duration::from_millis(rng.range(0, 60) as u64));
            match round % 2 {
                0 => server.kill(),
                _ => server.stop(),
            }
            if rng.chance(50) {
                std::thread::sleep(Duration::from_millis(rng.range(0, 100) as u64));
            }
            server.resume();
        }
        wait_for_more(&commits);
        over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    println!(
        "{rounds} restarts, {} commits, errors: {said:#?}",
        acknowledged.len()
    );
    assert!(!said.is_empty());
    let store = Store::connect(&url).unwrap();
    assert_eq!(sound(&store), Ok(()));
    let (committed, _) = documents(&store.session("a").unwrap()).unwrap();
    // The cycles are those that were acknowledged, and those that were said to be not known.
    let history = store.session("a").unwrap().history();
    let there: Vec<i64> = history.cycles().collect();
    assert_eq!(there, (1..=there.len() as i64).collect::<Vec<_>>());
    for (cycle, wanted) in &acknowledged {
        assert_eq!(committed[*cycle as usize - 1], *wanted, "cycle {cycle}");
    }
    assert!(acknowledged.len() > rounds as usize);
}

/// Waits until another commit was acknowledged.
fn wait_for_more(commits: &AtomicU64) {
    let (before, started) = (commits.load(Ordering::Relaxed), Instant::now());
    while commits.load(Ordering::Relaxed) == before {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "it does not go on"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Commits until it is told to end, and does what errors say: tries again, or opens the session again.
/// Returns the documents of acknowledged commits by cycle, and how often each error was met.
fn write_until(
    url: &str,
    over: &AtomicBool,
    commits: &AtomicU64,
) -> (BTreeMap<i64, String>, BTreeMap<String, u32>) {
    let builder = || {
        Store::builder()
            .lease(SHORT)
            .durability(Durability::Batched)
    };
    let mut acknowledged = BTreeMap::new();
    let mut said: BTreeMap<String, u32> = BTreeMap::new();
    let mut note = |error: &pactql::Error| {
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default().to_owned();
        *said.entry(format!("{}: {text}", error.code())).or_default() += 1;
    };
    let mut store: Option<Store> = None;
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        let opened = match &store {
            Some(opened) => opened,
            None => match builder().connect(url) {
                Ok(opened) => store.insert(opened),
                Err(error) => {
                    note(&error);
                    continue;
                }
            },
        };
        let mut context = match opened.write("a") {
            Ok(context) => context,
            Err(error) => {
                note(&error);
                std::thread::sleep(SHORT / 5);
                continue;
            }
        };
        while !over.load(Ordering::Relaxed) {
            number += 1;
            context
                .append(Message::user(&format!("question {number}")))
                .unwrap();
            if number % 3 == 0
                && let Err(error) = context.save()
            {
                note(&error);
            }
            // A commit that failed is still in the context, and committed again.
            let mut kept = context.commit();
            while let Err(error) = &kept {
                note(error);
                if over.load(Ordering::Relaxed)
                    || error.to_string().contains("open the session again")
                {
                    break;
                }
                std::thread::sleep(SHORT / 5);
                kept = context.commit();
            }
            if kept.is_err() {
                break;
            }
            let history = context.history();
            let last = history.committed().last().unwrap();
            acknowledged.insert(last.cycle(), document(last));
            commits.fetch_add(1, Ordering::Relaxed);
        }
    }
    (acknowledged, said)
}

/// Two connections that write the same contents, remove them, and give sessions other names, at once.
#[test]
fn writers_of_the_same_contents_leave_a_sound_store() {
    let Some(server) = server() else { return };
    let url = server.url("races");
    drop(Store::connect(&url).unwrap());
    let steps = random::share(600).max(20);
    let tallies = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let url = &url;
                scope.spawn(move || act(url, number, steps))
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.collect::<Vec<_>>()
    });
    println!("{tallies:#?}");
    let store = Store::connect(&url).unwrap();
    assert_eq!(sound(&store), Ok(()));
    for info in store.sessions("").unwrap() {
        documents(&store.session(&info.name).unwrap()).unwrap();
    }
}

/// Steps of one of several writers. Returns what came of each kind.
fn act(url: &str, number: u64, steps: u32) -> BTreeMap<String, u32> {
    let store = open(url, &format!("writer {number}"), LONG);
    let mut rng = Rng::new(number + 11);
    let mut tally = BTreeMap::new();
    let expected = [
        Code::SessionBusy,
        Code::SessionNotFound,
        Code::SessionExists,
        Code::SnapshotNotFound,
    ];
    for _ in 0..steps {
        let name = |rng: &mut Rng| format!("s{}", rng.below(4));
        let (one, two) = (name(&mut rng), name(&mut rng));
        let what = *rng.pick(&[
            "save", "save", "commit", "commit", "fork", "delete", "rename", "prune",
        ]);
        let done = match what {
            "fork" => store.fork(&one, "@t0", &two),
            "delete" => store.delete(&one),
            "rename" => store.rename(&one, &two),
            "prune" => store.prune(&Retention::default().keep(1)).map(|_| ()),
            _ => store.write(&one).and_then(|mut context| {
                // Few texts, so that units come and go while others are about to place them.
                for _ in 0..rng.below(3) {
                    let text = format!("text {}", rng.below(3));
                    let id = format!(r#"{{"id":"{text}","content":"{text}","offset":-1}}"#);
                    let _ = context.add("^sys", NewNode::json(&id)?);
                }
                if what == "save" {
                    context.save()?;
                    if rng.chance(50) {
                        return Ok(());
                    }
                    context.discard();
                    return context.save();
                }
                context.commit().map(|_| ())
            }),
        };
        let result = match &done {
            Ok(()) => "ok".to_owned(),
            Err(error) if expected.contains(&error.code()) => error.code().to_string(),
            Err(error) => panic!("{what} {one} {two}: {error}"),
        };
        *tally.entry(format!("{what}: {result}")).or_default() += 1;
    }
    tally
}

/// Long ids, keys, names of attributes and of references, which an index of PostgreSQL could not take: both
/// databases keep them, find them, and give the same.
#[test]
fn long_texts_are_kept_and_found() {
    let Some(server) = server() else { return };
    let folder = Folder::quick();
    let mut found = Vec::new();
    for url in [folder.file("x.db"), server.url("long")] {
        found.push(long_texts(&url));
    }
    assert!(found[0] == found[1], "the databases differ");
}

/// A text that no compression makes short.
fn noise(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let letter = |rng: &mut Rng| char::from(b'a' + rng.below(26) as u8);
    (0..10_000).map(|_| letter(&mut rng)).collect()
}

fn long_texts(url: &str) -> Vec<String> {
    let store = Store::connect(url).unwrap();
    let builder = Context::builder().clock(pactql::context::StepClock::new(0, 1_000_000_007));
    let mut context = store.write_with("a", builder).unwrap();
    let (id, key, name, value, reference) = (noise(1), noise(2), noise(3), noise(4), noise(5));
    let node = format!(
        r#"{{"id":"{id}","key":"{key}","data_{name}":"{value}","tags":["{value}"],"content":"x"}}"#
    );
    context.add("^ah", NewNode::json(&node).unwrap()).unwrap();
    context.pin_as(&reference, "^ah .cb").unwrap();
    context.render(pactql::Provider::OpenAi).unwrap();
    context.save().unwrap();
    context.commit().unwrap();
    // The id is in use no more.
    context.commit().unwrap();
    drop(context);
    store.fork("a", "@t0", "b").unwrap();
    store
        .prune(&Retention::default().keep(1).sessions("b"))
        .unwrap();
    let refused = store.write(&noise(6)).unwrap_err();
    assert!(refused.to_string().contains("1,000 bytes"), "{refused}");
    assert_eq!(sound(&store), Ok(()));
    let mut found = Vec::new();
    for selector in [
        format!("@t-1 [id='{id}']"),
        format!("@t-1 [key='{key}']"),
        format!("@t-1 [data_{name}='{value}']"),
        format!("@t-1 +{value}"),
        "@* .cb".to_owned(),
    ] {
        let session = store.session("a").unwrap();
        let rows = store.engine().rows(&session, &selector).unwrap();
        let ids = rows.to_ids().concat();
        let answers = store.select(&selector).unwrap();
        let names: Vec<String> = answers
            .into_iter()
            .map(|found| found.unwrap().session)
            .collect();
        // A message of 10,000 letters helps nobody.
        assert!(ids == id, "{}", &selector[..selector.len().min(20)]);
        assert_eq!(names.first().map(String::as_str), Some("a"));
        found.push(format!("{ids} {names:?}"));
    }
    let (committed, working) = documents(&store.session("a").unwrap()).unwrap();
    found.extend(committed.into_iter().chain(working));
    found
}

/// A statement that runs on the server, as it waits for a lock, ends with its client: where the client's work is cancelled,
/// and where the client is killed.
#[test]
fn statements_end_with_their_clients() {
    let Some(server) = server() else { return };
    let url = server.url("ends");
    let store = Store::connect(&url).unwrap();
    let mut context = store.write("a").unwrap();
    add(&mut context, "text");
    context.commit().unwrap();
    drop(context);
    let plain = url.split("&schema").next().unwrap();
    let mut other = postgres::Client::connect(plain, postgres::NoTls).unwrap();
    other
        .batch_execute("begin; lock table ends.node, ends.session in access exclusive mode")
        .unwrap();
    let mut watcher = postgres::Client::connect(plain, postgres::NoTls).unwrap();
    let mut waits_until = |wanted: bool| {
        let started = Instant::now();
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
        loop {
            let count: i64 = watcher.query_one(waiting, &[]).unwrap().get(0);
            if (count > 0) == wanted {
                return;
            }
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "waiting: {count}, wanted: {wanted}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            cancel.run(|| {
                store
                    .select("@t0 .cb")
                    .map(|found| found.into_iter().count())
                    .is_ok()
            })
        });
        waits_until(true);
        cancel.cancel();
        waits_until(false);
        assert_eq!(asking.join().unwrap(), Err(Cancelled));
    });
    let mut writer = Writer::start("ask", &url, &[]);
    // The sessions are locked as well: it waits when it has connected.
    waits_until(true);
    writer.kill();
    waits_until(false);
    other.batch_execute("commit").unwrap();
    assert_eq!(sound(&store), Ok(()));
}
