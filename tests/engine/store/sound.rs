//! Answers of a store that is damaged, who may read its files, and what is left of what was removed (STORE §3 and §4).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use pactql::{Context, Engine, Message, NewNode, Session, Store, store::Retention};

use super::damage::{answered, sample};
use super::place::{Folder, documents, sound};
use crate::support::random::{self, Rng};

/// Selectors of one session, of rows, a pair, a pattern, everything.
const SELECTORS: [&str; 6] = [
    "@t0 ^seq .mt:depth(1)",
    "@t0 .cb[role='user']",
    "@t-1..@t0 .cb",
    "@* .cb[content~'question 3']",
    "#rules",
    "@t0 .cb[data_n>=2]",
];

/// The answer to each question, or that there was none.
fn asked(path: &str, names: &[String]) -> Vec<Option<String>> {
    let Ok(store) = Store::builder().must_exist().open(path) else {
        return Vec::new();
    };
    let mut answers = Vec::new();
    for name in names {
        for selector in SELECTORS {
            let asked = || {
                let session = store.session(name)?;
                let found = store.engine().select(&session, selector)?;
                Ok::<_, pactql::Error>(answered(&found))
            };
            let answer = catch_unwind(AssertUnwindSafe(asked));
            answers.push(answer.ok().and_then(Result::ok));
        }
        let export = || {
            let session = store.session(name).map_err(|error| error.to_string())?;
            documents(&session)
        };
        let export = catch_unwind(AssertUnwindSafe(export));
        answers.push(
            export
                .ok()
                .and_then(Result::ok)
                .map(|all| format!("{all:?}")),
        );
    }
    answers
}

/// A bit of the file, anywhere: an answer is what it was, or there is none.
#[test]
fn no_flipped_bit_gives_another_answer() {
    let folder = Folder::quick();
    let path = sample(&folder);
    let original = std::fs::read(&path).unwrap();
    let sessions = Store::open(&path).unwrap().sessions("").unwrap();
    let names: Vec<String> = sessions.into_iter().map(|info| info.name).collect();
    let before = asked(&path, &names);
    assert!(before.iter().all(Option::is_some));
    let mut rng = Rng::new(11);
    let changed = folder.file("changed.db");
    let (mut refused, mut silent) = (0, Vec::new());
    let count = random::share(5_000).max(30);
    for _ in 0..count {
        let (at, bit) = (rng.below(original.len()), 1 << rng.below(8));
        let mut bytes = original.clone();
        bytes[at] ^= bit;
        std::fs::write(&changed, &bytes).unwrap();
        let now = asked(&changed, &names);
        refused += u32::from(now.is_empty() || now.contains(&None));
        for (which, (now, before)) in now.iter().zip(&before).enumerate() {
            if now.is_some() && now != before {
                silent.push(format!("byte {at} ^ {bit}: {:?}", SELECTORS.get(which % 7)));
            }
        }
    }
    println!("{count} bits: {refused} refused");
    assert!(
        silent.is_empty(),
        "{} of {count}: {silent:#?}",
        silent.len()
    );
    assert!(refused > 0);
}

/// What is there is verified and copied, and the rest is named.
#[test]
fn a_file_that_was_cut_off_is_verified_and_salvaged() {
    let folder = Folder::quick();
    let path = folder.file("whole.db");
    let store = Store::open(&path).unwrap();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for name in names {
        let mut context = store.write(name).unwrap();
        for number in 0..20 {
            let text = format!("{name} {number} ").repeat(200);
            context.append(Message::user(&text)).unwrap();
            context.commit().unwrap();
        }
    }
    let wanted = names.map(|name| documents(&store.session(name).unwrap()).unwrap());
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let cut = folder.file("cut.db");
    std::fs::write(&cut, &whole[..whole.len() * 3 / 4]).unwrap();
    let store = Store::builder().damaged().open(&cut).unwrap();
    assert!(!store.verify().unwrap().is_empty());
    assert!(store.backup(folder.file("refused.db")).is_err());
    let salvaged = store.salvage(folder.file("salvaged.db")).unwrap();
    assert_eq!(
        salvaged.copied.len() + salvaged.left.len(),
        names.len(),
        "{salvaged:?}"
    );
    assert!(
        !salvaged.copied.is_empty() && !salvaged.left.is_empty(),
        "{salvaged:?}"
    );
    let copy = Store::open(folder.file("salvaged.db")).unwrap();
    assert_eq!(sound(&copy), Ok(()));
    for (name, wanted) in names.iter().zip(&wanted) {
        if salvaged.copied.iter().any(|copied| copied == name) {
            assert_eq!(documents(&copy.session(name).unwrap()).unwrap(), *wanted);
        }
    }
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let mut context = store.write("a").unwrap();
    context.append(Message::user("x")).unwrap();
    context.commit().unwrap();
    let backup = folder.file("backup.db");
    store.backup(&backup).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for file in [&path, &format!("{path}-wal"), &backup] {
        assert_eq!(mode(Path::new(file)), 0o600, "{file}");
    }
    #[cfg(feature = "parquet")]
    {
        let root = folder.0.join("fleet");
        store
            .export_parquet(&root, &pactql::store::ParquetExport::default())
            .unwrap();
        let mut open = vec![root];
        while let Some(path) = open.pop() {
            let is_folder = path.is_dir();
            assert_eq!(
                mode(&path),
                if is_folder { 0o700 } else { 0o600 },
                "{path:?}"
            );
            if is_folder {
                open.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            }
        }
    }
}

pub(super) fn has(path: &str, text: &str) -> bool {
    ["", "-wal"].iter().any(|end| {
        let bytes = std::fs::read(format!("{path}{end}")).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    })
}

/// A store that another connection reads still has what was removed; it says so, and the next write finishes the work.
#[test]
fn what_a_reader_holds_goes_with_the_next_write() {
    const SECRET: &str = "Xq9-a-text-that-has-to-go";
    type Removal = fn(&Store, &str);
    let removals: [Removal; 3] = [
        |store, _| store.delete("a").unwrap(),
        |store, _| {
            store.prune(&Retention::default().keep(1)).unwrap();
        },
        |store, id| {
            store.erase("a", [id]).unwrap();
        },
    ];
    for (number, remove) in removals.into_iter().enumerate() {
        let folder = Folder::quick();
        let path = folder.file("x.db");
        let store = Store::open(&path).unwrap();
        let mut context = store.write("a").unwrap();
        let id = context.add("^ah", NewNode::text(SECRET).ttl(1)).unwrap();
        for text in ["one", "two", "three"] {
            context.append(Message::user(&text.repeat(9_000))).unwrap();
            context.commit().unwrap();
        }
        drop(context);
        let reader = rusqlite::Connection::open(&path).unwrap();
        reader.execute_batch("begin").unwrap();
        let count = |sql: &str| {
            reader
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .unwrap()
        };
        assert_eq!(count("select count(*) from session"), 1);
        remove(&store, &id);
        assert!(store.has_removed_text() && has(&path, SECRET), "{number}");
        reader.execute_batch("commit").unwrap();
        let size = || {
            let parts = ["", "-wal"].map(|end| std::fs::metadata(format!("{path}{end}")));
            let sizes = parts.map(|part| part.map_or(0, |part| part.len()));
            sizes.iter().sum::<u64>()
        };
        let before = size();
        let mut context = store.write("b").unwrap();
        context.append(Message::user("later")).unwrap();
        context.commit().unwrap();
        assert!(!store.has_removed_text() && !has(&path, SECRET), "{number}");
        if number == 0 {
            let now = size();
            assert!(now <= before, "{now} bytes after {before}");
        }
        drop(context);
        store.vacuum().unwrap();
        assert_eq!(sound(&store), Ok(()));
    }
}

#[test]
fn space_is_given_back() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let size = || std::fs::metadata(&path).unwrap().len();
    let mut context = store.write("a").unwrap();
    for number in 0..50 {
        let text = format!("{number} ").repeat(10_000);
        context.append(Message::user(&text)).unwrap();
        context.commit().unwrap();
    }
    drop(context);
    store.vacuum().unwrap();
    let full = size();
    store.delete("a").unwrap();
    assert!(size() * 4 < full, "{} of {full} bytes", size());
}

#[test]
fn a_tip_that_was_kept_notices_lost_commits() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    assert!(store.tip("a").is_err());
    let mut tips = Vec::new();
    let mut context = store.write("a").unwrap();
    for text in ["one", "two"] {
        context.append(Message::user(text)).unwrap();
        context.commit().unwrap();
        tips.extend(store.tip("a").unwrap());
        if text == "one" {
            // As a copy of the file without its log would have it.
            store.backup(folder.file("old.db")).unwrap();
        }
    }
    assert_eq!((tips.len(), tips[0].len()), (2, 64));
    let old = Store::open(folder.file("old.db")).unwrap();
    assert_eq!(
        sound(&old),
        Ok(()),
        "nothing of what is there says that a commit is lost"
    );
    for (store, has) in [(&store, [true, true]), (&old, [true, false])] {
        assert_eq!([0, 1].map(|at| store.has_tip("a", &tips[at]).unwrap()), has);
    }
}

/// What a log says of a call is in the row of its snapshot; a boolean has a number.
#[test]
fn what_sql_asks_for_is_in_columns() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let line = r#"{"cycle":1,"usage":{"input_tokens":7,"latency_ms":12,"model":"m"},"root":{"id":"^root","nodeType":"^root","children":[
        {"id":"^sys","nodeType":"^sys"},{"id":"^seq","nodeType":"^seq","children":[{"id":"t","nodeType":"mt","children":[
        {"id":"c","nodeType":"cb:call","created_at_ns":1700000000000000000,"data_call_id":"x","data_call_name":"find"},
        {"id":"r","nodeType":"cb:result","created_at_ns":1700000000000000001,"data_call_id":"x","data_is_error":true,"content":"no"}]}]},
        {"id":"^ah","nodeType":"^ah"}]}}"#;
    let session = Session::from_slice(line.replace('\n', "").as_bytes()).unwrap();
    store.import("a", &session, None).unwrap();
    let mut context = Context::new();
    context.append(Message::user("now")).unwrap();
    context.commit().unwrap();
    store.import("b", &context.session(), None).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let row = |sql: &str| -> String {
        let joined = format!("select {sql}");
        connection.query_row(&joined, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(
        row("cast(committed_at_ns as text) from snapshot where cycle = 1 and session_id = 1"),
        "1700000000000000001"
    );
    assert_eq!(
        row(
            "time || ' ' || model || ' ' || input || ' ' || latency_ns from step where session = 'a'"
        ),
        "2023-11-14T22:13:20Z m 7 12000000"
    );
    assert_eq!(
        row(
            "call_node || ' ' || name || ' ' || result_node || ' ' || result || ' ' || is_error || ' ' || seq from tool_call"
        ),
        "c find r no 1 1"
    );
    assert_eq!(
        row(
            "group_concat(id || ':' || depth || ':' || coalesce(tool, ''), ' ') from newest_node where session = 'a' and class = 'cb'"
        ),
        "c:1:find r:1:"
    );
    // A selector compares a boolean as it did.
    for (selector, count) in [
        ("[data_is_error=true]", 1),
        ("[data_is_error=1]", 0),
        ("[data_is_error>0]", 1),
    ] {
        let selector = format!("@t0 .cb{selector}");
        let by_engine = Engine::new().rows(&session, &selector).unwrap().count();
        let by_statement = store
            .select(&selector)
            .unwrap()
            .sessions("a")
            .counts()
            .unwrap();
        let by_statement: usize = by_statement.map(|found| found.unwrap().1).sum();
        assert_eq!((by_engine, by_statement), (count, count), "{selector}");
    }
}
