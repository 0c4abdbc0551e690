//! Why an answer is empty (LANGUAGE §10): every reason by an example, and for random selectors
//! that a reason is given, is stable, and that what it says about other snapshots is true.

use std::cell::Cell;

use pactql::{
    Edition, Engine, Selection, Session,
    selection::{EmptyReason, SelectionAddress},
};

use crate::support::random::{self, same};
use crate::support::selector::Edition as Reference;
use crate::support::text;

fn session(name: &str) -> Session {
    Session::open(format!("fixtures/{name}.jsonl")).unwrap()
}

/// The reasons of `selector` over a fixture, one a line.
fn why(name: &str, selector: &str) -> String {
    let rows = Engine::new().rows(&session(name), selector).unwrap();
    assert_eq!(rows.count(), 0, "{selector}");
    let reasons = rows.why_empty();
    assert_eq!(reasons, rows.why_empty(), "{selector}");
    let lines: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn each_reason_has_its_text() {
    let roles = "roles here: assistant 7, system 6, tool 3, user 3";
    let kinds = "kinds here: call 4, doc 1, image 1, note 1, result 3, summary 1, text 8";
    let cases: &[(&str, String)] = &[
        ("@t0 .cb[rol='user']", "no node has `rol`; did you mean `role`?".into()),
        ("@t0 .cb[rol]", "no node has `rol`; did you mean `role`?".into()),
        (
            "@t0 [zzzz>1]",
            "no node has `zzzz`; attributes here: data_author, data_call_id, data_call_name, data_covers, data_part, data_score, data_source, status".into(),
        ),
        (
            "@t0 .cb[role='usr']",
            format!("no node has the role `usr`; did you mean `[role='user']`? {roles}"),
        ),
        ("@t0 [role='foo']", format!("no node has the role `foo`; {roles}")),
        ("@t0 [role=[foo,bar]]", format!("no node has the role `bar`; {roles}")),
        ("@t0 .cb:resul", format!("no node has the kind `resul`; did you mean `[kind='result']`? {kinds}")),
        (
            "@t0 .user",
            "no node has the type `user`; did you mean `[role='user']`? types here: ^ah 1, ^root 1, ^seq 1, ^sys 1, cb 16, cb:doc 1, cb:note 1, cb:summary 1, mc 4, mt 4".into(),
        ),
        (
            "@t0 .cb+polici",
            "no node has the tag `polici`; did you mean `+policy`? tags here: compaction 1, policy 1, retrieval 1, returns 1, review 1, style 1".into(),
        ),
        ("@t0 [status='okay']", "no node has the status `okay`; values here: failed 1, ok 2".into()),
        ("@t0 [content='refund']", "no node has the content `refund`; did you mean `[content~'refund']`?".into()),
        ("@t0 #nothing", "no node has the key `nothing`".into()),
        (
            "@t0 .mt:depth(9) .cb",
            "no node has such a depth: there are 4 turns, depth 1 (newest) to 4".into(),
        ),
        (
            "@t0 ^sys .cb[role='user']",
            "`^sys` matches 1 node; `.cb[role='user']` after it matches nothing".into(),
        ),
        (
            "@t0 .cb[kind='call'] > .cb, ^ah .mt",
            "`^ah` matches 1 node; `.mt` after it matches nothing\n\
             `.cb[kind='call']` matches 4 nodes; `> .cb` after it matches nothing".into(),
        ),
        ("@t0 .cb[priority>=100]", "no node matches `[priority>=100]`".into()),
        (
            "@t0 .cb[kind='call'][role='user']",
            "`.cb` matches 19 nodes, `[kind='call']` matches 4 nodes, `[role='user']` matches 3 nodes; none matches all of them".into(),
        ),
        ("@t0 .mt:first:depth(2)", "`.mt` matches 6 nodes; what follows it in the step leaves none".into()),
        ("@t0 .cb {kind='call', role='user'}", "before the filters at the end there are 19 nodes, after them none".into()),
        ("@t0 .cb @limit=0", "there are 19 nodes, and the limit or page leaves none of them".into()),
        ("@t0 .cb @first @p=20", "there are 19 nodes, and the limit or page leaves none of them".into()),
        ("@t0 [text~refund]", "no node has `text`; did you mean `content`?".into()),
        ("@t0 [created_at>'2026']", "no node has `created_at`; did you mean `created_at_iso`?".into()),
        ("@t0 [role=human]", format!("no node has the role `human`; did you mean `[role='user']`? {roles}")),
        ("@t0 .cb:tool_call", format!("no node has the kind `tool_call`; did you mean `[kind='call']`? {kinds}")),
        // By its form, which is a warning.
        ("@t0 [ttl<1][ttl>3]", String::new()),
    ];
    for (selector, expected) in cases {
        assert_eq!(why("support-agent", selector), *expected, "{selector}");
    }
}

#[test]
fn words_for_keys_and_ids() {
    let rows = Engine::new()
        .rows(&session("greenhouse"), "@t0 #hint0")
        .unwrap();
    assert_eq!(rows.count(), 0);
    let key = EmptyReason::KeyIsAnId {
        key: "hint0".into(),
        time: None,
    };
    assert_eq!(rows.why_empty()[0], key);
    assert_eq!(
        key.to_string(),
        "no node has the key `hint0`, but one has that id: `[id='hint0']` finds it"
    );
    let engine = Engine::builder().edition(Edition::Depth).build();
    let session = Session::from_slice(
        br#"{"root":{"id":"r","children":[{"id":"s","nodeType":"^seq","children":[{"id":"a","key":"hero"}]}]}}"#,
    )
    .unwrap();
    let rows = engine.rows(&session, "@t0 #hero").unwrap();
    assert_eq!(
        rows.why_empty(),
        [EmptyReason::IdIsAKey { id: "hero".into() }]
    );
    let rows = engine.rows(&session, "@t0 .cb").unwrap();
    assert_eq!(
        rows.why_empty()[0],
        EmptyReason::UnknownClass { class: "block" }
    );
}

#[test]
fn a_range_without_matches_has_reasons() {
    let session = session("support-agent");
    let why = |selector: &str| -> Vec<String> {
        let prepared = Engine::new().prepare(selector).unwrap();
        let reasons = prepared.why_empty(&session).unwrap();
        reasons.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        why("@history .cb[rol=user]"),
        ["no node has `rol`; did you mean `role`?"]
    );
    assert_eq!(why("@t0..@t-1 .cb[role=user]"), <[&str; 0]>::default());
    assert_eq!(
        why("@t0..@t-1 ^sys .cb"),
        ["3 nodes match, and none of 2 snapshots changes any; `@mode=union` lists them"]
    );
    assert_eq!(
        why("@t0..@t0 ^sys .cb"),
        ["3 nodes match, and a range of one snapshot compares none; `@mode=union` lists them"]
    );
    assert_eq!(why("@t0 .cb[rol=user]"), <[&str; 0]>::default());
    // A range has at least one snapshot, whatever the most is.
    let options = pactql::RangeOptions::default().max_snapshots(0);
    let prepared = Engine::new().prepare("@history ^sys .cb").unwrap();
    let found = prepared.range_with(&session, &options).unwrap();
    assert_eq!(found.snapshots.len(), 1);
    assert!(
        found
            .warnings
            .iter()
            .chain(found.errors.iter().map(|error| &error.message))
            .all(|said| !said.contains("newest 0"))
    );
}

/// Two commits and a working state, each with a block of its own.
fn moving() -> Session {
    let document = |cycle: &str, id: &str| {
        format!(
            r#"{{{cycle}"root":{{"id":"r","children":[{{"id":"h","nodeType":"^ah","children":[{{"id":"{id}","nodeType":"cb","key":"{id}"}}]}}]}}}}"#
        )
    };
    let lines = [
        document(r#""cycle":4,"#, "old"),
        document(r#""cycle":5,"#, "new"),
        document(r#""working":true,"#, "now"),
    ];
    Session::from_slice(lines.join("\n").as_bytes()).unwrap()
}

#[test]
fn matches_in_other_snapshots() {
    let session = moving();
    let last = |edition: Edition, selector: &str| {
        let engine = Engine::builder().edition(edition).build();
        let rows = engine.rows(&session, selector).unwrap();
        rows.why_empty().last().map(ToString::to_string)
    };
    let cases = [
        (
            "@t0 #now",
            "1 node matches in the working state: leave out the time to read it",
        ),
        (
            "@* #now",
            "1 node matches in the working state: leave out the time to read it",
        ),
        ("#new", "1 node matches in @t0 (@c5)"),
        ("@t0 #old", "1 node matches in @t-1 (@c4)"),
        ("@c4 #new", "1 node matches in @t0 (@c5)"),
    ];
    for (selector, expected) in cases {
        let found = last(Edition::Canonical, selector);
        assert_eq!(found.as_deref(), Some(expected), "{selector}");
    }
    let found = last(Edition::V01, "#now");
    assert_eq!(
        found.as_deref(),
        Some("1 node matches in the working state")
    );
}

#[test]
fn the_address_of_a_selection() {
    let engine = Engine::new();
    let address =
        |session: &Session, selector: &str| engine.rows(session, selector).unwrap().address();
    let with = moving();
    let without = session("support-agent");
    let snapshot = |cycle| SelectionAddress::Snapshot { cycle };
    for selector in ["#now", "#missing", ".cb:first"] {
        assert_eq!(
            address(&with, selector),
            SelectionAddress::Working,
            "{selector}"
        );
    }
    assert_eq!(address(&with, "@t0 *"), snapshot(5));
    assert_eq!(address(&with, "@c4 *"), snapshot(4));
    assert_eq!(address(&without, "@t-1 .cb"), snapshot(5));
    let cycles = vec![5, 4];
    assert_eq!(
        address(&with, "@* *"),
        SelectionAddress::Snapshots { cycles }
    );
    let cycles = vec![5, 4];
    assert_eq!(
        address(&with, "@t0..@t-1 * @mode=latest"),
        SelectionAddress::Snapshots { cycles }
    );
}

/// What a reason proposes is in the selector's edition, and finds something.
#[test]
fn proposals_find_something_in_their_edition() {
    let document = br#"{"root":{"id":"r","children":[
        {"id":"s","nodeType":"^seq","children":[{"id":"t","nodeType":"mt","children":[
            {"id":"b1","nodeType":"cb:summary","role":"user","content":"hello you","n":5,"ok":true,"tags":["x"]},
            {"id":"b2","nodeType":"cb","kind":"call","status":"open"}]}]}]}}"#;
    let session = Session::from_slice(document).unwrap();
    let cases = [
        (Edition::V01, "[role=usr]", "[role='user']"),
        (Edition::V01, "[kind=cal]", "[kind='call']"),
        (Edition::V01, "[kind=x]", "[tags='x']"),
        (Edition::V01, ".cb:sumary", "[nodeType='cb:summary']"),
        (Edition::V01, ".cb[content='hello']", ""),
        (Edition::Depth, "[kind=x]", "[tags='x']"),
        (Edition::Depth, ".cb:sumary", "[kind='summary']"),
        (Edition::Canonical, "[kind=x]", "+x"),
        (
            Edition::Canonical,
            ".cb[content='hello']",
            "[content~'hello']",
        ),
        (Edition::Canonical, "[n='5']", "[n=5]"),
        (Edition::Canonical, "[status=opne]", "[status='open']"),
        (Edition::Canonical, "[ok=false]", ""),
    ];
    for (edition, selector, expected) in cases {
        let engine = Engine::builder().edition(edition).build();
        let reasons = engine.rows(&session, selector).unwrap().why_empty();
        let proposed = reasons.iter().find_map(|reason| match reason {
            EmptyReason::UnknownValue { instead, .. } => instead.clone(),
            _ => None,
        });
        assert_eq!(
            proposed.as_deref().unwrap_or_default(),
            expected,
            "{selector}"
        );
        if let Some(proposed) = proposed {
            let found = engine.rows(&session, &proposed).unwrap().count();
            assert!(found > 0, "{edition:?} {proposed}");
        }
    }
}

#[test]
fn regions_containers_and_many_values() {
    let blocks: Vec<String> = (0..3_000)
        .map(|n| format!(r#"{{"id":"b{n}","key":"k{n:04}"}}"#))
        .collect();
    let document = format!(
        r#"{{"root":{{"id":"r","children":[{{"id":"s","nodeType":"^seq","children":[{{"id":"t","children":[{}]}}]}}]}}}}"#,
        blocks.join(",")
    );
    let session = Session::from_slice(document.as_bytes()).unwrap();
    let why = |selector: &str| -> Vec<String> {
        let rows = Engine::new().rows(&session, selector).unwrap();
        rows.why_empty().iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        why("@t0 #k2999 .mt"),
        ["`[key='k2999']` matches 1 node; `.mt` after it matches nothing"]
    );
    assert_eq!(why("@t0 ^ah .cb"), ["there is no ^ah here"]);
    assert_eq!(why("@t0 ^sys"), ["there is no ^sys here"]);
    let implicit = why("@t0 .mt > .mc");
    assert!(
        implicit[0].starts_with("the containers here are implicit"),
        "{implicit:?}"
    );
    assert_eq!(
        Engine::new()
            .rows(&session, "@t0 .mt .mc > .cb")
            .unwrap()
            .count(),
        3_000
    );
}

/// LANGUAGE §13: the condition inside that fails, at any level.
#[test]
fn conditions_that_fail_inside() {
    let session = session("greenhouse");
    let why = |selector: &str| -> Vec<String> {
        let rows = Engine::new().rows(&session, selector).unwrap();
        rows.why_empty().iter().map(ToString::to_string).collect()
    };
    let alone = "`.cb` matches 19 nodes, `[kind='call']` matches 3 nodes, \
                 `[role='user']` matches 2 nodes; none matches all of them";
    assert_eq!(
        why("@t0 .mt:has(.cb[kind='call'][role='user'])"),
        [
            "no node matches `*:has(.cb[kind='call'][role='user'])`".to_owned(),
            format!("inside `:has(.cb[kind='call'][role='user'])`: {alone}"),
        ]
    );
    let condition = ":after(.mt:has(.cb[kind='call'][role='user']))";
    let deep = why(&format!("@t0 .mt .cb{condition}"));
    assert_eq!(
        deep[0],
        format!("`.mt` matches 5 nodes; `.cb{condition}` after it matches nothing")
    );
    assert!(deep[2].ends_with(alone), "{deep:?}");
    // What is inside is there.
    assert_eq!(
        why("@t0 .cb:before(#rules)"),
        ["no node matches `*:before([key='rules'])`"]
    );
}

/// Without turns there are no implicit containers to speak of.
#[test]
fn containers_are_implicit_only_in_turns() {
    let session = Session::from_slice(br#"{"root":{"id":"r"}}"#).unwrap();
    let why = Engine::new().rows(&session, "@t0 .mc").unwrap().why_empty();
    assert!(!why.contains(&EmptyReason::ImplicitContainers), "{why:?}");
    assert!(!why.is_empty());
}

/// Numbers of nodes over several snapshots count each id once.
#[test]
fn several_snapshots_count_an_id_once() {
    let session = session("support-agent");
    let rows = Engine::new().rows(&session, "@* .cb").unwrap().count();
    let why = Engine::new()
        .rows(&session, "@* .cb @limit=0")
        .unwrap()
        .why_empty();
    assert_eq!(why, [EmptyReason::Window { rows: rows as u64 }]);
}

#[test]
fn operations_that_leave_nothing() {
    let session = session("support-agent");
    let rows = || Engine::new().rows(&session, "@t0 .cb").unwrap();
    assert_eq!(rows().why_empty(), []);
    assert_eq!(rows().skip(100).why_empty(), [EmptyReason::Narrowed]);
    assert_eq!(rows().limit(0).why_empty(), [EmptyReason::Narrowed]);
    let head = Engine::new().rows(&session, "@t0 ^ah").unwrap();
    assert_eq!(head.skip(1).why_empty(), [EmptyReason::Narrowed]);
}

/// A filter that finds nothing alone says why, of rows that were found at once and of those that were not.
#[test]
fn a_filter_that_finds_nothing_has_reasons() {
    let (session, engine) = (session("support-agent"), Engine::new());
    let why = |selector: &str, filter: &str| -> Vec<String> {
        let rows = engine.rows(&session, selector).unwrap();
        let left = rows.filter(&engine.prepare(filter).unwrap()).unwrap();
        assert_eq!((left.count(), left.nodes().count()), (0, 0), "{selector}");
        let words = |left: &Selection| left.why_empty().iter().map(ToString::to_string).collect();
        let reasons: Vec<String> = words(&left);
        assert_eq!(words(&left.clone().skip(1)), reasons, "{selector}");
        assert_eq!(left.limit(3).to_ids(), <[&str; 0]>::default(), "{selector}");
        reasons
    };
    let unknown = ["no node has `knd`; did you mean `kind`?"];
    for selector in [
        "@t0 .cb",
        "@* .cb",
        "@t0 .cb[role='user']",
        "@t0 [kind='call']",
        "@t0 #policy",
    ] {
        assert_eq!(why(selector, ".cb[knd='call']"), unknown, "{selector}");
    }
    let narrowed = ["`skip`, `limit` or `filter` left no row"];
    assert_eq!(why("@t0 .cb[kind='call']", ".cb[role='user']"), narrowed);
    assert_eq!(why("@* .cb[kind='call']", ".cb[role='user']"), narrowed);
    assert_eq!(why("@t0 .cb", "none"), narrowed);
    assert_eq!(why("@* .cb", "none"), narrowed);
    // Of two that leave nothing, the selector comes first.
    assert_eq!(
        why("@t0 .cb[rol='user']", ".cb[knd='call']"),
        ["no node has `rol`; did you mean `role`?"]
    );
}

#[test]
fn a_name_or_a_value_is_misspelled_if_the_whole_session_lacks_it() {
    let document = |cycle: u32, name: &str| {
        format!(
            r#"{{"cycle":{cycle},"root":{{"id":"r","children":[{{"id":"^ah","children":[{{"id":"b","role":"user","{name}":1}}]}}]}}}}"#
        )
    };
    let text = document(1, "data_score") + "\n" + &document(2, "data_scope");
    let (session, engine) = (Session::from_slice(text.as_bytes()).unwrap(), Engine::new());
    let misspelled = |selector: &str| -> Vec<String> {
        let reasons = engine
            .prepare(selector)
            .unwrap()
            .misspelled(&session)
            .unwrap();
        reasons.iter().map(ToString::to_string).collect()
    };
    assert_eq!(misspelled("@t0 .cb[data_score=1]"), <[&str; 0]>::default());
    assert_eq!(
        misspelled("@t0 .cb[data_skore=1]"),
        ["no node has `data_skore`; did you mean `data_score`?"]
    );
    // A name that is like none, or not much like `role`, one that sessions without errors lack, and no name at all.
    for other in [
        "@t0 .cb[zzzz=1]",
        "@t0 .cb[data_old=1]",
        "@t0 .cb[data_is_error=true]",
        "@t0 .cb",
    ] {
        assert_eq!(misspelled(other), <[&str; 0]>::default(), "{other}");
    }
    assert_eq!(
        misspelled("@t0 .cb[role='usr']"),
        ["no node has the role `usr`; did you mean `[role='user']`? roles here: user 1"]
    );
    // Also where it finds something, and in a range.
    let rol = ["no node has `rol`; did you mean `role`?"];
    assert_eq!(misspelled("@t0 .cb[rol='user'], .cb[role='user']"), rol);
    assert_eq!(misspelled("@t-1..@t0 .cb[rol='user']"), rol);
}

/// Random selectors: an empty answer has a reason unless the selector has a warning or is
/// `none`, an answer with rows has none, and matches in the working state exist.
#[test]
fn every_empty_answer_has_a_reason() {
    let empty = Cell::new(0_u32);
    for reference in [Reference::V01, Reference::Depth, Reference::Canonical] {
        let edition = match reference {
            Reference::V01 => Edition::V01,
            Reference::Depth => Edition::Depth,
            Reference::Canonical => Edition::Canonical,
        };
        let engine = Engine::builder().edition(edition).build();
        random::selectors(random::share(300), reference, 15, |case| {
            let (session, _) = case.open()?;
            let mut rng = case.rng();
            for sel in &case.selectors {
                let text = text::variant(sel, reference, &mut rng);
                let Ok(rows) = engine.rows(&session, &text) else {
                    continue;
                };
                let reasons = rows.why_empty();
                if rows.count() > 0 {
                    same!(reasons, Vec::<EmptyReason>::new(), "{text}");
                    continue;
                }
                empty.set(empty.get() + 1);
                let canonical = engine.format(&text).unwrap();
                let never = canonical.split_whitespace().any(|word| word == "none");
                same!(reasons.is_empty(), never, "{text}");
                for reason in &reasons {
                    same!(reason.to_string().is_empty(), false, "{text}");
                    let EmptyReason::Elsewhere { cycle, rows, .. } = reason else {
                        continue;
                    };
                    let Some(cycle) = cycle else { continue };
                    let rest = match canonical.split_once(' ') {
                        Some((time, rest)) if time.starts_with('@') => rest,
                        _ => &canonical,
                    };
                    let query = format!("@c{cycle} {rest}");
                    let there = Engine::new().rows(&session, &query).unwrap().count();
                    same!(there as u64, *rows, "{text}: {query}");
                }
            }
            Ok(())
        });
    }
    assert!(
        empty.get() > random::share(1_000),
        "{} empty answers",
        empty.get()
    );
}
