//! Stores that something else has changed: every column of every table, and bytes anywhere in the file.
//! What can be read is as it was, or `verify` says so (STORE §2, hashes).

use std::collections::BTreeSet;
use std::path::Path;

use pactql::{Answer, Context, Message, NewNode, Provider, Session, Store, store::Retention};
use rusqlite::Connection;

use super::place::{Folder, documents, sound};
use crate::support::random::{self, Rng};

/// A store with every kind of row, in one file without a log. Returns its path.
pub(super) fn sample(folder: &Folder) -> String {
    let path = folder.file("sample.db");
    let store = Store::open(&path).unwrap();
    let builder = || Context::builder().clock(pactql::context::StepClock::new(0, 1_000_000_007));
    let mut context = store.write_with("a", builder()).unwrap();
    context.set_system(["You are brief."]).unwrap();
    context.set_request(r#"{"model":"m","n":1.50}"#).unwrap();
    for number in 0..6 {
        let text = format!("question {number}");
        context.append(Message::user(&text)).unwrap();
        let node = format!(
            r#"{{"offset":-1,"ttl":{number},"content":{{"n":{number}.50}},"tags":["x","t{number}"],
               "data_l":[1,null,"a"],"data_n":{number},"data_b":9223372036854775808,"cadence":3,
               "provenance":null,"key":"k{number}","created_at_iso":"1970-01-01T00:00:0{number}Z"}}"#
        );
        // Some of these times are before what is there, and refused.
        let _ = context.add("^ah", NewNode::json(&node).unwrap());
        let node = node.split("\"created_at_iso\"").next().unwrap().trim_end();
        let node = format!("{}}}", node.trim_end_matches(','));
        context.add("^ah", NewNode::json(&node).unwrap()).unwrap();
        context.render(Provider::OpenAi).unwrap();
        let answer = format!("answer {number}");
        context.reply(Message::assistant(&answer)).unwrap();
        if number == 1 {
            context.pin_as("rules", "^sys .cb").unwrap();
        }
        if number == 3 {
            context.add("^root", NewNode::text("elsewhere")).ok();
        }
        context.commit().unwrap();
    }
    drop(context);
    store.fork("a", "@t-2", "fork").unwrap();
    store.fork("a", "@t-1", "pruned").unwrap();
    store
        .prune(&Retention::default().keep(2).sessions("pruned"))
        .unwrap();
    store.fork("a", "@t-1", "erased").unwrap();
    let session = store.session("erased").unwrap();
    let rows = store
        .engine()
        .rows(&session, "@t0 .cb[role='user']")
        .unwrap();
    let id = rows.ids().next().unwrap().to_owned();
    store.erase("erased", [&*id]).unwrap();
    store.import("copy", &session, Some("a file")).unwrap();
    let mut context = store.write_with("a", builder()).unwrap();
    context.append(Message::user("unfinished")).unwrap();
    context
        .remove("@t0 ^seq .mt:depth(1) .cb[role='user']")
        .ok();
    context.render(Provider::Anthropic).unwrap();
    context.save().unwrap();
    drop(context);
    assert_eq!(sound(&store), Ok(()));
    drop((store, session, rows));
    let connection = Connection::open(&path).unwrap();
    connection
        .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
        .unwrap();
    connection
        .query_row("pragma journal_mode = delete", [], |_| Ok(()))
        .unwrap();
    path
}

/// What can be read of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Readable {
    /// Snapshots, and answers of selectors.
    snapshots: String,
    /// The list of sessions, and what a context keeps besides: no hash of the chain is over these.
    records: String,
}

/// Everything that a reader can see of a store, and a writer gets that goes on.
fn readable(store: &Store) -> Result<Readable, String> {
    let said = |error: pactql::Error| error.to_string();
    let mut read = Readable::default();
    let out = &mut read.snapshots;
    for info in store.sessions("").map_err(said)? {
        read.records.push_str(&format!("{info:?}\n"));
        let session = store.session(&info.name).map_err(said)?;
        out.push_str(&format!("{:?}\n", documents(&session)?));
        let kept = store.kept(&info.name).map_err(said)?;
        let kept = serde_json::to_string(&kept).unwrap();
        read.records.push_str(&kept);
        // From what SQL looks up, in a session of which nothing is loaded.
        let cold = store.session(&info.name).map_err(said)?;
        for selector in [
            "@t0 ^seq .mt:depth(1)",
            "@t-1..@t0 .cb",
            "#rules",
            "@t0 ^sys .cb",
            "@* .cb:depth(0)",
        ] {
            let found = store.engine().select(&cold, selector).map_err(said)?;
            out.push_str(&format!("{}\n", answered(&found)));
        }
    }
    for selector in [
        "@t0 [key='k3']",
        "@t0 [data_l='a']",
        "@t0 +t4",
        "@* .cb[role='user']",
    ] {
        for found in store.select(selector).map_err(said)? {
            let found = found.map_err(said)?;
            let answer = answered(&found.answer);
            out.push_str(&format!("{selector} {} {answer}\n", found.session));
        }
    }
    Ok(read)
}

pub(super) fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Rows(rows) => format!("{:?}", rows.to_ids()),
        Answer::Range(diff) => serde_json::to_string(diff).unwrap(),
    }
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Nobody can see it.
    Unseen,
    /// It is reported, of a session or of none.
    Reported(bool),
    /// `verify` itself ends with an error, and says nothing of the rest.
    Stopped(String),
    /// Something reads otherwise, and nobody says why.
    Silent,
}

fn fate(path: &Path, before: &Readable) -> Fate {
    let Ok(store) = Store::builder().must_exist().open(path.to_str().unwrap()) else {
        return Fate::Reported(false);
    };
    match store.verify() {
        Err(error) => Fate::Stopped(error.to_string()),
        Ok(damage) if !damage.is_empty() => {
            Fate::Reported(damage.iter().any(|damage| damage.session.is_some()))
        }
        Ok(_) => match readable(&store) {
            Ok(now) if now == *before => Fate::Unseen,
            _ => Fate::Silent,
        },
    }
}

fn strings(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Statements that change every column of some rows of every table, one at a time: the column, the statement.
fn changes(connection: &Connection) -> Vec<(String, String)> {
    let tables = strings(
        connection,
        "select name from sqlite_master where type = 'table' and name not like 'sqlite%' order by 1",
    );
    let mut changes: Vec<(String, String)> = Vec::new();
    for table in &tables {
        let list = format!("select name from pragma_table_info('{table}')");
        let columns = strings(connection, &list);
        let key = strings(connection, &format!("{list} where pk > 0"));
        let rows = if key.is_empty() {
            vec!["true".to_owned()]
        } else {
            let parts: Vec<String> = key
                .iter()
                .map(|name| format!("'{name} = ' || quote({name})"))
                .collect();
            let parts = parts.join(" || ' and ' || ");
            strings(
                connection,
                &format!("select {parts} from {table} order by {}", key.join(", ")),
            )
        };
        for column in &columns {
            // A few rows, with and without a value.
            let mut chosen = BTreeSet::new();
            for condition in ["is null", "is not null"] {
                let found: Vec<usize> = (0..rows.len())
                    .filter(|&at| {
                        let sql = format!(
                            "select quote(1) from {table} where {} and {column} {condition}",
                            rows[at]
                        );
                        !strings(connection, &sql).is_empty()
                    })
                    .collect();
                let some = [
                    0,
                    found.len() / 3,
                    found.len() / 2,
                    found.len().saturating_sub(1),
                ];
                chosen.extend(some.iter().filter_map(|&at| found.get(at)).copied());
            }
            for at in chosen {
                let new = format!(
                    "case typeof({column}) when 'integer' then {column} + 1 when 'real' then {column} + 0.5 \
                     when 'text' then {column} || 'x' when 'blob' then \
                     cast(x'00' || substr({column}, 2) as blob) else null end"
                );
                let others = ["null", "'x'", "3", "0", "1", "9223372036854775807"];
                let newest = "(select max(seq) from snapshot)";
                for new in others.iter().chain([&newest, &&*new]) {
                    let row = &rows[at];
                    let sql = format!(
                        "update {table} set {column} = {new} where {row} and {column} is not {new}"
                    );
                    changes.push((format!("{table}.{column}"), sql));
                }
            }
        }
    }
    changes
}

/// Every column of some rows of every table, changed one at a time.
#[test]
fn a_changed_column_is_reported() {
    let folder = Folder::quick();
    let path = sample(&folder);
    let original = std::fs::read(&path).unwrap();
    let before = readable(&Store::open(&path).unwrap()).unwrap();
    let changes = changes(&Connection::open(&path).unwrap());
    let mut nameless: BTreeSet<&str> = BTreeSet::new();
    let mut examples: Vec<String> = Vec::new();
    let (mut unseen, mut named, mut reported) = (0, 0, 0);
    let changed = folder.file("changed.db");
    // One of eight with `CI` set; all with `PACTQL_CASES=40000`.
    let step = (40_000 / random::cases() as usize).clamp(1, 100);
    for (column, sql) in changes.iter().step_by(step) {
        std::fs::write(&changed, &original).unwrap();
        {
            let connection = Connection::open(&changed).unwrap();
            connection
                .pragma_update(None, "synchronous", "off")
                .unwrap();
            let before: i64 = connection.total_changes() as i64;
            // Some of these the constraints refuse.
            if connection.execute(sql, []).is_err() || connection.total_changes() as i64 == before {
                continue;
            }
        }
        match fate(Path::new(&changed), &before) {
            Fate::Unseen => unseen += 1,
            Fate::Reported(session) => {
                reported += 1;
                named += u32::from(session);
                if !session {
                    nameless.insert(column);
                }
            }
            Fate::Stopped(_) | Fate::Silent => examples.push(sql.clone()),
        }
    }
    println!(
        "every {step}. of {} changes: {reported} reported, of them {named} of a session; {unseen} that nobody can see; \
         without a session in {nameless:?}",
        changes.len()
    );
    assert_eq!(examples, [""; 0]);
}

/// What nobody has verified is read without a panic, whatever it says.
#[test]
fn a_changed_column_is_no_panic() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let path = sample(&folder);
    let original = std::fs::read(&path).unwrap();
    let changes = changes(&Connection::open(&path).unwrap());
    let changed = folder.file("changed.db");
    let mut refused = 0;
    // What is read into the index, and some of the rest.
    let of_index = [
        "node.level",
        "node.class",
        "node.pre",
        "unit.kind",
        "placement.",
    ];
    let of_index = |column: &str| of_index.iter().any(|name| column.starts_with(name));
    let step = (40_000 / random::cases() as usize).clamp(1, 40);
    let chosen = changes.iter().enumerate().filter(|(number, (column, _))| {
        number % step == 0 || (of_index(column) && number % 4 == 0)
    });
    for (_, (_, sql)) in chosen {
        std::fs::write(&changed, &original).unwrap();
        {
            let connection = Connection::open(&changed).unwrap();
            connection
                .pragma_update(None, "synchronous", "off")
                .unwrap();
            if connection.execute(sql, []).is_err() {
                continue;
            }
        }
        let read = std::panic::catch_unwind(|| {
            let store = Store::builder().must_exist().open(&changed);
            store.map(|store| readable(&store).is_err()).unwrap_or(true)
        });
        match read {
            Ok(is_refused) => refused += u32::from(is_refused),
            Err(_) => panic!("a panic after {sql}"),
        }
    }
    assert!(refused > 10, "{refused}");
}

/// A byte of the file, anywhere.
#[test]
fn a_changed_byte_is_reported() {
    let folder = Folder::quick();
    let path = sample(&folder);
    let original = std::fs::read(&path).unwrap();
    let before = readable(&Store::open(&path).unwrap()).unwrap();
    let mut rng = Rng::new(7);
    let changed = folder.file("changed.db");
    let (mut unseen, mut reported) = (0, 0);
    let count = random::share(800).max(20);
    for _ in 0..count {
        let at = rng.below(original.len());
        let bit = 1 << rng.below(8);
        let mut bytes = original.clone();
        bytes[at] ^= bit;
        std::fs::write(&changed, &bytes).unwrap();
        match fate(Path::new(&changed), &before) {
            Fate::Unseen => unseen += 1,
            Fate::Reported(_) => reported += 1,
            fate @ (Fate::Stopped(_) | Fate::Silent) => {
                panic!("{fate:?}: byte {at} of {} ^ {bit}", original.len())
            }
        }
    }
    println!(
        "{count} of {} bytes: {reported} reported, {unseen} that nobody can see",
        original.len()
    );
}

/// The session and the snapshot of a damage are named, and one damage does not hide the others.
#[test]
fn a_damage_has_its_session_and_snapshot() {
    let folder = Folder::quick();
    let path = sample(&folder);
    let original = std::fs::read(&path).unwrap();
    let changed = folder.file("changed.db");
    let of = |name: &str| format!("(select session_id from session where name = '{name}')");
    let (a, erased) = (of("a"), of("erased"));
    let third = format!("select unit_id from placement where session_id = {a} and first_seq = 3");
    for (sql, session, cycle) in [
        // Hashes of another length.
        (
            format!("update snapshot set hash = x'00' where session_id = {a} and seq = 3"),
            Some("a"),
            Some(3),
        ),
        (
            format!(
                "update snapshot set base = x'00' where session_id = {}",
                of("pruned")
            ),
            Some("pruned"),
            Some(4),
        ),
        (
            format!("update unit set hash = x'0011' where unit_id in ({third})"),
            Some("a"),
            Some(3),
        ),
        (
            format!(
                "update body set hash = x'' where body_id = \
                 (select max(body_id) from node where unit_id in ({third}))"
            ),
            Some("a"),
            Some(3),
        ),
        // Texts that are none.
        (
            format!(
                "update snapshot set meta = cast(x'ff' as text) where session_id = {a} and seq = 3"
            ),
            Some("a"),
            Some(3),
        ),
        (
            format!("update node set role = cast(x'ff' as text) where unit_id in ({third})"),
            Some("a"),
            Some(3),
        ),
        (
            format!("update session set name = cast(x'ff' as text) where session_id = {erased}"),
            None,
            None,
        ),
        // Records of another session.
        (
            format!("update attempt set session_id = {erased} where session_id = {a}"),
            Some("erased"),
            None,
        ),
        (
            format!("update pin set session_id = {erased} where session_id = {a}"),
            Some("erased"),
            None,
        ),
        (
            format!("update or replace retired set session_id = {erased} where session_id = {a}"),
            Some("erased"),
            None,
        ),
        // Rows of nobody.
        (
            "insert into lease values (99, 'nobody', 1, 0, null)".to_owned(),
            None,
            None,
        ),
        (
            format!("update pin set session_id = 99 where session_id = {a}"),
            None,
            None,
        ),
        (
            "update format set written_by = 'pactql 0.0'".to_owned(),
            None,
            None,
        ),
        (
            "insert into format select * from format".to_owned(),
            None,
            None,
        ),
    ] {
        std::fs::write(&changed, &original).unwrap();
        let connection = Connection::open(&changed).unwrap();
        assert!(connection.execute(&sql, []).unwrap() > 0, "{sql}");
        // Another damage, of another session.
        let other = format!(
            "update snapshot set committed_at_ns = 7 where session_id = {} and seq = 2",
            of("fork")
        );
        connection.execute(&other, []).unwrap();
        drop(connection);
        let store = Store::builder().must_exist().open(&changed).unwrap();
        let damage = store
            .verify()
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let found = |session: Option<&str>, cycle: Option<i64>| {
            let mut all = damage.iter();
            all.any(|damage| damage.session.as_deref() == session && damage.cycle == cycle)
        };
        assert!(found(session, cycle), "{sql}: {damage:#?}");
        assert!(found(Some("fork"), None), "{sql}: {damage:#?}");
    }
}

/// A session that lacks its newest snapshots, with all that was only in them, contradicts nothing but the sum that
/// closes it.
#[test]
fn a_session_without_its_end_is_noticed() {
    let folder = Folder::quick();
    let path = sample(&folder);
    let store = Store::builder().must_exist().open(&path).unwrap();
    assert_eq!(store.verify().unwrap(), []);
    drop(store);
    let connection = Connection::open(&path).unwrap();
    let session = "(select session_id from session where name = 'a')";
    let last = format!("(select max(seq) from snapshot where session_id = {session})");
    let last: i64 = connection
        .query_row(&format!("select {last}"), [], |row| row.get(0))
        .unwrap();
    for sql in [
        format!("delete from placement where session_id = {session} and first_seq >= {last}"),
        format!("delete from snapshot where session_id = {session} and seq >= {last}"),
        format!(
            "update placement set last_seq = {} where session_id = {session} and last_seq >= {last} - 1",
            i64::MAX
        ),
        "delete from unit where unit_id not in (select unit_id from placement)".to_owned(),
        "delete from node where unit_id not in (select unit_id from unit)".to_owned(),
        "delete from attr where unit_id not in (select unit_id from unit)".to_owned(),
        "delete from body where body_id not in (select body_id from node where body_id is not null)"
            .to_owned(),
    ] {
        connection.execute(&sql, []).unwrap();
    }
    drop(connection);
    let store = Store::builder().must_exist().open(&path).unwrap();
    let damage = store.verify().unwrap();
    let ends: Vec<_> = damage
        .iter()
        .filter(|damage| damage.what.contains("the newest snapshots are missing"))
        .map(|damage| damage.session.as_deref())
        .collect();
    assert_eq!(ends, [Some("a")], "{damage:#?}");
}

/// However a list of tags or a zero is spelled, a store has it as it is, and finds nothing wrong with that.
#[test]
fn spellings_are_no_damage() {
    let folder = Folder::quick();
    for (number, member) in [
        r#""tags":["a","b"]"#,
        r#""tags":["a", "b"]"#,
        r#""tags":["a" ]"#,
        r#""tags":[ ]"#,
        r#""tags":["\u00e9","é"]"#,
        r#""tags":["\/","b"]"#,
        r#""tags":["a\u0000"]"#,
        r#""data_x":-0.0"#,
        r#""data_x":[-0, -0e5]"#,
        r#""data_x":"-0.0""#,
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.file(&format!("{number}.db"));
        let store = Store::open(&path).unwrap();
        let line = format!(
            r#"{{"cycle":1,"root":{{"id":"r","nodeType":"root","children":[{{"id":"s","nodeType":"seq","children":[{{"id":"t","nodeType":"mt","children":[{{"id":"n","nodeType":"cb",{member}}}]}}]}}]}}}}"#
        );
        let session = Session::from_slice(line.as_bytes()).unwrap();
        store.import("a", &session, None).unwrap();
        assert_eq!(sound(&store), Ok(()), "{member}");
        let there = store.session("a").unwrap();
        assert_eq!(documents(&there), documents(&session), "{member}");
        store
            .backup(folder.file(&format!("{number}-copy.db")))
            .unwrap();
        // Importing it again finds the same units.
        let again = store
            .import_log(&[("a".to_owned(), session)], None)
            .unwrap();
        assert_eq!((again.same, again.snapshots), (1, 0), "{member}");
    }
    // Stores of earlier versions have every list in rows, with the number of its own spelling.
    let path = folder.file("0.db");
    let connection = Connection::open(&path).unwrap();
    let other = "update unit set spelling = 7 where unit_id in (select unit_id from attr)";
    assert_eq!(connection.execute(other, []).unwrap(), 1);
    drop(connection);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.verify().unwrap(), []);
}
