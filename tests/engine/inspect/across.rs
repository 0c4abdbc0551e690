//! Snapshots of different sessions: how their blocks are paired.

use pactql::inspect::{PairedBy, across, parameters};
use pactql::{Session, Snapshot, history::ContentOptions};
use serde_json::{Value, json};
use std::sync::Arc;

/// A snapshot of blocks: id, key, role, content.
fn snapshot(blocks: &[(&str, &str, &str, &str)], request: Value) -> Arc<Snapshot> {
    let blocks: Vec<Value> = blocks
        .iter()
        .map(|(id, key, role, content)| {
            let mut block = json!({"id": id, "nodeType": "cb", "role": role, "content": content});
            if !key.is_empty() {
                block["key"] = json!(key);
            }
            block
        })
        .collect();
    let head = json!({"id": "^ah", "nodeType": "^ah", "children": [
        {"id": "core", "nodeType": "mc", "offset": 0, "children": blocks}]});
    let document = json!({"cycle": 1, "meta": {"request": request},
        "root": {"id": "^root", "nodeType": "^root", "children": [head]}});
    let session = Session::from_slice(document.to_string().as_bytes()).expect("a document");
    session.history().latest().expect("a snapshot").clone()
}

#[test]
fn blocks_are_paired_by_key_then_content_then_position() {
    let a = snapshot(
        &[
            ("a1", "policy", "system", "Be kind."),
            ("a2", "", "user", "Find socks."),
            ("a3", "", "assistant", "Which size?"),
            ("a4", "", "user", "42"),
            ("a5", "", "assistant", "Here."),
        ],
        json!({"model": "one", "temperature": 0}),
    );
    let b = snapshot(
        &[
            ("b1", "policy", "system", "Be very kind."),
            ("b2", "", "user", "Find socks."),
            ("b3", "", "assistant", "What size?"),
            ("b4", "", "user", "42"),
            ("b5", "", "tool", "found"),
        ],
        json!({"model": "two", "temperature": 0}),
    );
    let found = across(&a, &b, &ContentOptions::default());
    assert_eq!(found.same, 2);
    assert_eq!(found.moved, []);
    let changed: Vec<(&str, &str, PairedBy, &[&str])> = found
        .changed
        .iter()
        .map(|changed| {
            (
                &*changed.pair.a,
                &*changed.pair.b,
                changed.pair.by,
                &changed.fields[..],
            )
        })
        .collect();
    assert_eq!(
        changed,
        [
            ("a1", "b1", PairedBy::Key, &["content"][..]),
            ("a3", "b3", PairedBy::Position, &["content"][..]),
        ]
    );
    let alone = |lone: &[pactql::inspect::Lone]| -> Vec<String> {
        lone.iter().map(|lone| lone.id.clone()).collect()
    };
    assert_eq!(alone(&found.only_a), ["a5"]);
    assert_eq!(alone(&found.only_b), ["b5"]);
    assert_eq!(found.parameters, parameters(&a, &b));
    let names: Vec<&str> = found
        .parameters
        .iter()
        .map(|change| &*change.name)
        .collect();
    assert_eq!(names, ["model"]);
}

#[test]
fn blocks_that_say_the_same_elsewhere_moved() {
    let texts = ["one", "two", "three", "four"];
    let ids = ["1", "2", "3", "4"];
    let list = |order: &[usize]| {
        // Siblings of one offset are in the order of their ids.
        let blocks: Vec<_> = ids
            .iter()
            .zip(order)
            .map(|(id, at)| (*id, "", "user", texts[*at]))
            .collect();
        snapshot(&blocks, Value::Null)
    };
    let (a, b) = (list(&[0, 1, 2, 3]), list(&[3, 0, 1, 2]));
    let found = across(&a, &b, &ContentOptions::default());
    assert_eq!(
        (found.same, found.moved.len(), found.changed.len()),
        (3, 1, 0)
    );
    assert_eq!(
        (&*found.moved[0].b, found.moved[0].by),
        ("1", PairedBy::Content)
    );
    let same = across(&a, &a, &ContentOptions::default());
    assert_eq!((same.same, same.moved.len()), (4, 0));
    assert!(same.only_a.is_empty() && same.only_b.is_empty());
}

#[test]
fn equal_keys_that_repeat_pair_nothing() {
    let a = snapshot(
        &[("a", "k", "user", "x"), ("b", "k", "user", "y")],
        Value::Null,
    );
    let b = snapshot(
        &[("c", "k", "user", "y"), ("d", "k", "user", "z")],
        Value::Null,
    );
    let found = across(&a, &b, &ContentOptions::default());
    // `y` is the same text; the others are before and after it.
    assert_eq!(found.same, 1);
    assert_eq!((found.only_a.len(), found.only_b.len()), (1, 1));
}
