//! Cancelled work ends soon: the looks at the token are counted, before and after it is set.

use std::fmt::Write;
use std::time::Duration;

use crate::support::random::share;
use pactql::budget::{BuildOptions, Cache, Query, build};
use pactql::inspect::{
    GrepReport, Part, PrefixReport, Report, ReportOptions, Search, ShowReport, StepReport,
    TokenReport, Tokenizer,
};
use pactql::{
    Address, Cancel, Cancelled, DiffOptions, Engine, RangeOptions, Session,
    history::{At, ContentOptions},
};

/// A session of some snapshots, each of which has one more turn and other contents in a few blocks.
fn lines(cycles: usize, turns: usize) -> String {
    let mut text = String::new();
    for cycle in 1..=cycles {
        let _ = write!(
            text,
            "{{\"cycle\":{cycle},\"usage\":{{\"input_tokens\":1}},\"root\":{{\"id\":\"r\",\"children\":[{{\"id\":\"q\",\"nodeType\":\"^seq\",\"children\":["
        );
        for turn in 0..turns {
            let comma = if turn == 0 { "" } else { "," };
            let changed = if turn % 7 == cycle % 7 { cycle } else { 0 };
            let _ = write!(
                text,
                "{comma}{{\"id\":\"t{turn}\",\"nodeType\":\"mt\",\"created_at_ns\":{turn},\"children\":[{{\"id\":\"b{turn}\",\
                 \"nodeType\":\"cb\",\"content\":\"text {turn} {changed} and more of it\"}}]}}"
            );
        }
        text.push_str("]}]}}\n");
    }
    text
}

/// Runs some work as often as it looks at the token, or a few times (24 in CI), and sets the token at another
/// look each time. After that it looks at most `late` times more. Work that is not cancelled looks at
/// least `looks` times.
fn stops(name: &str, looks: u64, late: u64, mut work: impl FnMut()) {
    let free = Cancel::at_check(0);
    assert_eq!(free.run(&mut work), Ok(()), "{name}");
    let (all, _) = free.checks();
    assert!(all >= looks, "{name} looks {all} times only");
    let moments = share(96).clamp(3, 24) as usize;
    for at in (1..=all).step_by((all as usize).div_ceil(moments)) {
        let cancel = Cancel::at_check(at);
        let outcome = cancel.run(&mut work);
        // The order in which threads look is not always the same, and neither is their number of looks.
        let (seen, after) = cancel.checks();
        assert!(
            outcome == Err(Cancelled) || seen < at,
            "{name} at {at} of {all}"
        );
        assert!(
            after <= late,
            "{name}: {after} looks after look {at} of {all}"
        );
    }
}

#[test]
fn selecting_stops() {
    let session = Session::from_slice(lines(30, 500).as_bytes()).unwrap();
    let engine = Engine::new();
    // Each node whose content is read is a look.
    for (selector, looks, late) in [
        ("@t0 .cb[content~'more .* it$']", 500, 64 + 8),
        ("@t0 .cb[content~'more'][role!='user']", 500, 64 + 8),
        ("@* .cb[content~'more']", 500, 64 + 8),
        ("@t0 .cb[content~'more'] @limit=400", 400, 64 + 16),
        ("@t0..@t-20 .cb[content~'more'] @mode=union", 500, 64 + 8),
    ] {
        stops(selector, looks, late, || {
            let rows = engine.rows(&session, selector).unwrap();
            let _ = rows.to_ids().len();
        });
    }
}

/// Reports, and the reasons of an empty answer, stop too.
#[test]
fn inspecting_stops() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let session = Session::from_slice(lines(40, 300).as_bytes()).unwrap();
    let engine = Engine::new();
    let search = Search::new("more .* it$", false).unwrap();
    let options = ReportOptions::new(Part::all()).tokenizer(Tokenizer::Bytes4);
    let options = options.search(search);
    stops("show", 300, 64, || {
        let _ = ShowReport::new(&engine, &session, &options);
    });
    stops("grep", 300, 64, || {
        let _ = GrepReport::new(&engine, &session, &options);
    });
    stops("tokens", 300, 64, || {
        let _ = TokenReport::new(&engine, &session, &options);
    });
    stops("steps", 300, 3_000, || {
        let _ = StepReport::new(&engine, &session, &options);
    });
    stops("prefix", 300, 64, || {
        let _ = PrefixReport::new(&engine, &session, &options);
    });
    stops("why empty", 300, 300, || {
        let rows = engine.rows(&session, "@* .cb[content~'nothing']").unwrap();
        let _ = rows.why_empty();
    });
}

/// A selection that was read under a set token has not kept a part of its rows.
#[test]
fn rows_of_a_cancelled_read_are_not_kept() {
    let session = Session::from_slice(lines(3, 200).as_bytes()).unwrap();
    let engine = Engine::new();
    for at in [2, 50, 150] {
        let rows = engine.rows(&session, "@* .cb[content~'more']").unwrap();
        let cancel = Cancel::at_check(at);
        assert_eq!(cancel.run(|| rows.count()), Err(Cancelled));
        assert_eq!(rows.count(), 200);
        // Nor of the first cycles of ids, which the session keeps.
        let session = Session::from_slice(lines(3, 200).as_bytes()).unwrap();
        let ages = || {
            engine
                .rows(&session, "@t0 .cb[age>=2]")
                .map(|rows| rows.count())
        };
        assert!(cancel.run(ages).is_err());
        assert_eq!(ages().unwrap(), 200);
    }
}

#[test]
fn ranges_and_diffs_stop() {
    let session = Session::from_slice(lines(60, 300).as_bytes()).unwrap();
    let engine = Engine::new();
    let options = RangeOptions::default().content(ContentOptions::default());
    stops("range", 60, 3_000, || {
        let _ = engine.range_with(&session, "@t0..@t-59 .cb", &options);
    });
    stops("range of all rows", 300, 3_000, || {
        let _ = engine.range_with(&session, "@t0..@t-59 .cb[content~'more']", &options);
    });
    let [a, b] = [1, 0].map(|back| At::Committed(Address::Back(back)));
    let options = DiffOptions::default()
        .moves(true)
        .content(ContentOptions::default());
    stops("diff", 50, 310, || {
        let _ = engine.diff(&session, a, b, None, &options);
    });
}

#[test]
fn reading_stops() {
    let many = lines(400, 20);
    stops("many documents", 400, 2_000, || {
        let _ = Session::from_slice(many.as_bytes());
    });
    let one = lines(1, 20_000);
    assert!(one.len() > 2_000_000);
    stops("one document", one.len() as u64 / (1 << 17), 20, || {
        let _ = Session::from_slice(one.as_bytes());
    });
}

#[test]
fn importing_stops() {
    use pactql::logs::{ImportOptions, import};
    let mut log = String::new();
    for n in 0..2_000 {
        let role = ["user", "assistant"][n % 2];
        let _ = writeln!(log, "{{\"role\":\"{role}\",\"content\":\"message {n}\"}}");
    }
    stops("import", 2_000, 20, || {
        let _ = import(log.as_bytes(), &ImportOptions::default());
    });
}

/// Where lines are a tree they are read once more, and written: each of these passes looks at the token, too. After it was set
/// the lines that are left are not read.
#[test]
fn importing_a_tree_of_lines_stops() {
    use pactql::logs::{ImportOptions, import};
    let mut log = String::new();
    for n in 0..500_usize {
        let role = ["user", "assistant"][n % 2];
        let parent = match n.checked_sub(1) {
            Some(parent) => format!("\"u{parent}\""),
            None => "null".to_owned(),
        };
        let _ = writeln!(
            log,
            "{{\"type\":\"{role}\",\"uuid\":\"u{n}\",\"parentUuid\":{parent},\"sessionId\":\"s\",\
             \"isSidechain\":false,\"timestamp\":\"2026-03-02T09:00:00Z\",\"message\":{{\"role\":\"{role}\",\
             \"id\":\"m{n}\",\"model\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"{n}\"}}]}}}}"
        );
    }
    stops("import", 1_700, 550, || {
        let Ok(imported) = import(log.as_bytes(), &ImportOptions::default()) else {
            return;
        };
        for session in &imported.sessions {
            let _ = session.recording.write_jsonl(&mut Vec::new(), false);
        }
    });
    // A text without a line is looked at for secrets in pieces.
    let log = format!("[\"{}\"]", "a".repeat(4 << 20));
    stops("secrets", 60, 3, || {
        let _ = pactql::logs::Redaction::apply(&[], &log);
    });
}

#[test]
fn caches_stop() {
    let place = std::env::temp_dir().join(format!("pactql-cancel-{}", std::process::id()));
    let sources = place.join("sources");
    std::fs::create_dir_all(&sources).unwrap();
    for n in 0..300 {
        std::fs::write(sources.join(format!("{n}.md")), format!("refund {n}")).unwrap();
    }
    let options = |force| BuildOptions {
        force,
        created_at: std::time::UNIX_EPOCH,
    };
    let cache = place.join("cache");
    build(&sources, &cache, options(false)).unwrap();
    let before = std::fs::read(cache.join("manifest.json")).unwrap();
    stops("resolve", 300, 310, || {
        let opened = Cache::open(&cache).unwrap();
        let _ = opened.resolve(&Query::new("refund"), 1_000);
    });
    for at in [1, 2, 150, 301] {
        let cancel = Cancel::at_check(at);
        let outcome = cancel.run(|| build(&sources, &cache, options(true)));
        assert!(outcome.is_err(), "{at}");
        assert!(cancel.checks().1 < 5);
        // The old cache is as it was, and nothing is beside it.
        assert_eq!(std::fs::read(cache.join("manifest.json")).unwrap(), before);
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 2);
    }
    std::fs::remove_dir_all(place).unwrap();
}

#[cfg(feature = "store")]
#[test]
fn stores_stop() {
    use pactql::Store;
    let place = std::env::temp_dir().join(format!("pactql-cancel-{}.db", std::process::id()));
    let session = Session::from_slice(lines(40, 60).as_bytes()).unwrap();
    let store = Store::open(place.to_str().unwrap()).unwrap();
    store.import("talk", &session, None).unwrap();
    stops("verify", 1_000, 2_000, || {
        let _ = store.verify();
    });
    stops("import", 100, 2_000, || {
        let _ = store.import("other", &session, None);
        let _ = store.delete("other");
    });
    assert!(store.verify().unwrap().is_empty());
    drop(store);
    std::fs::remove_file(place).unwrap();
}

/// A backup looks at the token every megabyte, and one that is cancelled leaves nothing.
#[cfg(feature = "store")]
#[test]
fn a_backup_stops() {
    use pactql::Store;
    let place = std::env::temp_dir().join(format!("pactql-backup-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let path = |name: &str| place.join(name).display().to_string();
    let store = Store::open(path("store.db")).unwrap();
    let text = "some words ".repeat(1_000_000);
    let line = format!(
        r#"{{"cycle":1,"root":{{"id":"r","children":[{{"id":"s","nodeType":"^sys","children":[{{"id":"b","nodeType":"cb","content":"{text}"}}]}}]}}}}"#
    );
    let session = Session::from_slice(line.as_bytes()).unwrap();
    store.import("talk", &session, None).unwrap();
    let files = || {
        let entries = std::fs::read_dir(&place).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with("store.db")).count()
    };
    stops("backup", text.len() as u64 >> 20, 3, || {
        let _ = std::fs::remove_file(path("copy.db"));
        let outcome = store.backup(path("copy.db"));
        assert_eq!(files(), usize::from(outcome.is_ok()), "{outcome:?}");
    });
    let _ = std::fs::remove_file(path("copy.db"));
    store.backup(path("copy.db")).unwrap();
    let copy = Store::open(path("copy.db")).unwrap();
    assert!(copy.verify().unwrap().is_empty());
    drop((store, copy));
    std::fs::remove_dir_all(place).unwrap();
}

/// A place that was found under a set token may be one of several: nothing is written there.
#[test]
fn a_write_is_not_done_by_halves() {
    use pactql::Context;
    let mut context = Context::new();
    for n in 0..100 {
        let block = serde_json::json!({"content": format!("question {n}")});
        context.add("^sys", block.to_string()).unwrap();
    }
    context.commit().unwrap();
    let blocks = |context: &mut Context| context.select(".cb").unwrap().to_ids().len();
    let before = blocks(&mut context);
    assert_eq!(before, 100);
    let selector = "^sys .cb[content~'question']";
    let free = Cancel::at_check(0);
    assert_eq!(free.run(|| context.remove(selector).is_ok()), Ok(true));
    assert_eq!(blocks(&mut context), 0);
    context.discard();
    for at in 1..=free.checks().0 {
        let cancel = Cancel::at_check(at);
        let _ = cancel.run(|| context.remove(selector).is_ok());
        // What is not committed, too, is all there, or all gone.
        let left = blocks(&mut context);
        assert!(left == before || left == 0, "{left} left at {at}");
        context.discard();
    }
}

#[test]
fn a_deadline_cancels() {
    let session = Session::from_slice(lines(30, 500).as_bytes()).unwrap();
    let engine = Engine::new();
    let cancel = Cancel::after(Duration::ZERO);
    let rows = || engine.rows(&session, "@t0 .cb").map(|rows| rows.count());
    assert!(cancel.run(rows).is_err());
    assert!(Cancel::after(Duration::from_secs(3_600)).run(rows).is_ok());
}
