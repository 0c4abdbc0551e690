//! Diffs of two snapshots, logs and blames: shapes, and agreement with ranges.

use std::collections::BTreeSet;

use pactql::{
    Address, DiffOptions, Edition, Engine, Session,
    history::{At, ContentOptions, blame},
};
use serde_json::{Value, json};

use crate::support::random;

const NEWEST: At = At::Committed(Address::Back(0));
const BEFORE: At = At::Committed(Address::Back(1));

fn block(id: &str, content: &str) -> Value {
    json!({"id": id, "nodeType": "cb", "role": "user", "content": content})
}

/// Snapshots of one turn with these containers, and optionally a working state.
fn session(snapshots: &[Value], working: Option<Value>) -> Session {
    let root = |turn: &Value| {
        json!({"id": "root", "children": [{"id": "seq", "nodeType": "^seq", "children": [
            {"id": "mt", "nodeType": "mt", "children": turn}]}]})
    };
    let mut text = String::new();
    for (at, turn) in snapshots.iter().enumerate() {
        text += &format!("{}\n", json!({"cycle": 10 + at, "root": root(turn)}));
    }
    if let Some(turn) = working {
        text += &format!("{}\n", json!({"working": true, "root": root(&turn)}));
    }
    Session::from_slice(text.as_bytes()).expect("a session")
}

fn container(id: &str, offset: i64, children: Value) -> Value {
    json!({"id": id, "nodeType": "mc", "offset": offset, "children": children})
}

fn diff(session: &Session, a: At, b: At, selector: Option<&str>, options: DiffOptions) -> String {
    let diff = Engine::new().diff(session, a, b, selector, &options);
    serde_json::to_string(&diff.expect("a diff")).expect("JSON")
}

fn moving() -> Session {
    session(
        &[
            json!([
                container("mc:1", 0, json!([block("a", "A"), block("b", "B")])),
                container("mc:2", 1, json!([block("c", "C"), block("same", "S")])),
            ]),
            json!([
                container("mc:1", 0, json!([block("b", "B2\nmore")])),
                container(
                    "mc:2",
                    1,
                    json!([block("a", "A"), block("c2", "C"), block("new", "N")])
                ),
            ]),
        ],
        Some(json!([container(
            "mc:1",
            0,
            json!([block("b", "B2\nmore")])
        )])),
    )
}

#[test]
fn a_diff_has_exactly_the_members_of_the_source() {
    let session = moving();
    let expected = r#"{"added":["c2","new"],"removed":["c","same"],"changed":[{"id":"b","fields":["content_hash"]},{"id":"a","fields":["parent"]}]}"#;
    for (a, b) in [
        (NEWEST, BEFORE),
        (BEFORE, NEWEST),
        (
            At::Committed(Address::Cycle(10)),
            At::Committed(Address::Cycle(11)),
        ),
    ] {
        assert_eq!(diff(&session, a, b, None, DiffOptions::default()), expected);
    }
    let none = r#"{"added":[],"removed":[],"changed":[]}"#;
    let plain = DiffOptions::default();
    assert_eq!(diff(&session, NEWEST, NEWEST, None, plain), none);
    // A node that stops matching counts as removed.
    assert_eq!(
        diff(&session, NEWEST, BEFORE, Some(".mc[offset=0] > .cb"), plain),
        r#"{"added":[],"removed":["a"],"changed":[{"id":"b","fields":["content_hash"]}]}"#
    );
    // The working state is newest, though its cycle is that of the newest commit.
    assert_eq!(
        diff(&session, At::Working, NEWEST, Some(".cb"), plain),
        r#"{"added":[],"removed":["a","c2","new"],"changed":[]}"#
    );
}

#[test]
fn moves_children_and_contents_are_shown_on_request() {
    let session = moving();
    let options = DiffOptions::default()
        .moves(true)
        .content(ContentOptions::default());
    let told: Value = serde_json::from_str(&diff(&session, BEFORE, NEWEST, None, options)).unwrap();
    assert_eq!(
        told["moves"],
        json!([
            {"id": "a", "previous_parent_id": "mc:1", "new_parent_id": "mc:2"},
            {"id": "c2", "previous_id": "c", "previous_parent_id": "mc:2", "new_parent_id": "mc:2"},
        ])
    );
    assert_eq!(told["children_added"], json!({"mc:2": ["a", "c2", "new"]}));
    assert_eq!(
        told["children_removed"],
        json!({"mc:1": ["a"], "mc:2": ["c", "same"]})
    );
    let content = &told["changed"][0]["content_diff"];
    assert_eq!(
        content["diff"],
        "--- @t-1/b\n+++ @t0/b\n@@ -1 +1,2 @@\n-B\n\\ No newline at end of file\n+B2\n+more\n\\ No newline at end of file\n"
    );
    // A move does not change the content.
    assert!(told["changed"][1].get("content_diff").is_none());
    // A removed parent is listed under its own parent, its children are not listed again.
    let told: Value =
        serde_json::from_str(&diff(&session, NEWEST, At::Working, None, options)).unwrap();
    assert_eq!(told["removed"], json!(["mc:2", "a", "c2", "new"]));
    assert_eq!(told["children_removed"], json!({"mt": ["mc:2"]}));
    assert_eq!(
        (&told["moves"], &told["children_added"]),
        (&json!([]), &json!({}))
    );
}

#[test]
fn mistakes_have_the_right_code() {
    let session = session(&[json!([])], None);
    let engine = Engine::new();
    let code = |a, b, selector| {
        let error = engine.diff(&session, a, b, selector, &DiffOptions::default());
        error.expect_err("a mistake").code().to_string()
    };
    assert_eq!(code(NEWEST, BEFORE, None), "E_SNAPSHOT_NOT_FOUND");
    assert_eq!(code(NEWEST, NEWEST, Some("@t0 .cb")), "E_SELECTOR_INVALID");
    assert_eq!(code(NEWEST, NEWEST, Some(".cb[")), "E_SELECTOR_INVALID");
    assert_eq!(code(NEWEST, NEWEST, Some("#$id")), "E_SELECTOR_INVALID");
    for selector in ["@history .cb", ".cb[", ".cb @mode=union"] {
        let error = engine.log(&session, selector).expect_err("a mistake");
        assert_eq!(error.code().to_string(), "E_SELECTOR_INVALID");
    }
    // Without one of its own, the working state is what the last commit left: the newest snapshot.
    let same = diff(&session, NEWEST, At::Working, None, DiffOptions::default());
    assert_eq!(same, r#"{"added":[],"removed":[],"changed":[]}"#);
    let empty = Session::from_documents(Vec::new()).expect("no documents");
    let error = engine.diff(&empty, At::Working, NEWEST, None, &DiffOptions::default());
    let error = error.expect_err("no snapshot");
    assert_eq!(error.code().to_string(), "E_SNAPSHOT_NOT_FOUND");
    // An empty history is reported before a mode that a log does not take.
    for mode in ["union", "latest", "reduce"] {
        let empty = Session::from_documents(Vec::new()).expect("no documents");
        let log = engine.log(&empty, &format!(".cb @mode={mode}"));
        let error = log.expect_err("no snapshot");
        assert_eq!(error.code().to_string(), "E_SNAPSHOT_NOT_FOUND", "{mode}");
    }
}

#[test]
fn diffs_agree_with_ranges() {
    for edition in [Edition::V01, Edition::Depth, Edition::Canonical] {
        let engine = Engine::builder().edition(edition).build();
        random::sessions(random::share(60), |case| {
            let (session, _) = case.open()?;
            for selector in [".cb", "*", ".mt .cb[role='user']", "^sys .cb, ^ah *"] {
                let range = engine
                    .range(&session, &format!("@t0..@t-* {selector}"))
                    .unwrap();
                let log = engine.log(&session, selector).unwrap();
                assert_eq!(log.snapshots.len(), range.snapshots.len());
                for (back, block) in (0_u64..).zip(&range.diffs) {
                    let (a, b) = (Address::Back(back), Address::Back(back + 1));
                    let told = engine.diff(
                        &session,
                        At::Committed(b),
                        At::Committed(a),
                        Some(selector),
                        &DiffOptions::default(),
                    );
                    let told = told.unwrap();
                    let context = format!("{selector}, {}", block.from.label);
                    assert_eq!(told.added, block.added_ids, "{context}");
                    assert_eq!(told.removed, block.removed_ids, "{context}");
                    let pairs: Vec<_> = told.changed.iter().map(|c| (&c.id, &c.fields)).collect();
                    let expected: Vec<_> =
                        block.changed.iter().map(|c| (&c.id, &c.fields)).collect();
                    assert_eq!(pairs, expected, "{context}");
                    let entry = &log.snapshots[back as usize];
                    assert_eq!(entry.label, block.from.label);
                    assert_eq!(entry.added, told.added.len(), "{context}");
                    assert_eq!(entry.removed, told.removed.len(), "{context}");
                    assert_eq!(entry.changed, told.changed.len(), "{context}");
                }
                for entry in &log.snapshots {
                    let text = format!("{} {selector}", entry.label);
                    let count = engine.rows(&session, &text).unwrap().count();
                    assert_eq!(entry.matches, count, "{text}");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn adds_and_removes_lead_from_one_set_to_the_other() {
    let engine = Engine::new();
    random::sessions(random::share(60), |case| {
        let (session, _) = case.open()?;
        let ids = |text: &str| -> BTreeSet<String> {
            let selection = engine.rows(&session, text).unwrap();
            selection.ids().map(str::to_owned).collect()
        };
        let oldest = session.history().committed().len() as u64 - 1;
        for selector in ["*", ".cb[ttl<=2]"] {
            let mut set = ids(&format!("@t-{oldest} {selector}").replace("@t-0", "@t0"));
            let told = engine.diff(
                &session,
                NEWEST,
                At::Committed(Address::Back(oldest)),
                Some(selector),
                &DiffOptions::default(),
            );
            let told = told.unwrap();
            for id in &told.removed {
                assert!(set.remove(id));
            }
            for id in told.added {
                assert!(set.insert(id));
            }
            assert_eq!(set, ids(&format!("@t0 {selector}")));
        }
        Ok(())
    });
}

#[test]
fn a_blame_is_what_the_ranges_say_of_one_node() {
    let engine = Engine::new();
    random::sessions(random::share(60), |case| {
        let (session, _) = case.open()?;
        let history = session.history();
        let log = engine.log(&session, "*").unwrap();
        let range = engine.range(&session, "@t0..@t-* *").unwrap();
        let everyone = engine.rows(&session, "@* *").unwrap();
        for id in everyone.ids() {
            let mut expected: Vec<(i64, &str)> = Vec::new();
            for block in range.diffs.iter().rev() {
                let mut add = |found: bool, what| {
                    expected.extend(found.then_some((block.from.cycle, what)));
                };
                add(block.added_ids.iter().any(|added| added == id), "appeared");
                add(block.removed_ids.iter().any(|gone| gone == id), "went");
                add(
                    block.changed.iter().any(|change| change.id == id),
                    "changed",
                );
            }
            let oldest = &history.committed()[0];
            if oldest.find(id).is_some() {
                expected.insert(0, (log.snapshots.last().unwrap().cycle, "appeared"));
            }
            let told = blame(&history, id).expect("it was there");
            let told = serde_json::to_value(&told).unwrap();
            let events = told["events"].as_array().unwrap();
            let committed: Vec<(i64, &str)> = events
                .iter()
                .filter(|event| event["snapshot"] != "working")
                .map(|event| {
                    let cycle = event["cycle"].as_i64().unwrap();
                    (cycle, event["event"].as_str().unwrap())
                })
                .collect();
            assert_eq!(committed, expected, "{id}");
        }
        assert!(blame(&history, "nobody was ever called so").is_none());
        Ok(())
    });
}

#[test]
fn a_blame_has_values() {
    let session = moving();
    let told = |id: &str| {
        let life = blame(&session.history(), id).unwrap();
        serde_json::to_string(&life).unwrap()
    };
    assert_eq!(
        told("a"),
        r#"{"id":"a","events":[{"cycle":10,"snapshot":"@c10","event":"appeared","parent":"mc:1"},{"cycle":11,"snapshot":"@c11","event":"changed","fields":["parent"],"delta":{"parent":{"from":"mc:2","to":"mc:1"}}},{"cycle":11,"snapshot":"working","event":"went","why":"removed"}]}"#
    );
    assert_eq!(
        told("root"),
        r#"{"id":"root","events":[{"cycle":10,"snapshot":"@c10","event":"appeared","parent":null}]}"#
    );
}
