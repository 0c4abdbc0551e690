//! What random histories rarely have: structured contents as messages have them, times at the end of what a number
//! holds, and selectors as wide as they may be. Asked in SQLite here, and by [`super::fleet`] in the others.

use std::sync::Arc;

use pactql::sql::{Dialect, Options};
use pactql::{Session, Store};
use serde_json::{Value, json};

use super::differential::{builder, rows};
use super::sqlite::{self, Answers};
use crate::store::place::Folder;
use crate::support::selector::Edition;

/// The name of the session.
pub(super) const NAME: &str = "fixed";

/// A block with what is given besides its id.
fn block(id: &str, with: Value) -> Value {
    let mut block = json!({"id": id, "nodeType": "cb"});
    for (name, value) in with.as_object().unwrap() {
        block[name] = value.clone();
    }
    block
}

pub(super) fn session() -> Arc<Session> {
    let tags: Vec<String> = (0..1_000).map(|tag| format!("t{tag:03}")).collect();
    let mut wide = block("wide", json!({"content": "x", "tags": tags}));
    for number in 0..900 {
        wide[format!("data_a{number}")] = json!(1);
    }
    let blocks = json!([
        block(
            "parts",
            json!({"content": [{"type": "text", "text": "refund"}]})
        ),
        block(
            "members",
            json!({"content": {"a": "b", "refund": 1, "c": {"refund": ["d", {"e": "f"}]}}})
        ),
        block(
            "list",
            json!({"content": [{"a": "b", "c": ["refund"]}, "d:", ":", ","]})
        ),
        block(
            "marks",
            json!({"content": ["say \"refund\":", "back\\slash", "line\nend", "{\"a\":\"b\"}", "é🦀"]})
        ),
        block("plain", json!({"content": "\"refund\": {not json"})),
        block("number", json!({"content": 12.50})),
        block(
            "least",
            json!({
                "created_at_ns": i64::MIN,
                "created_at_iso": "1677-09-21T00:12:43.145224192Z",
            })
        ),
        block(
            "before",
            json!({"created_at_ns": -1, "created_at_iso": "1969-12-31T23:59:59.999999999Z"})
        ),
        block(
            "after",
            json!({"created_at_ns": i64::MAX, "created_at_iso": "2262-04-11T23:47:16.854775807Z"})
        ),
        wide,
    ]);
    let root =
        json!({"id": "r", "children": [{"id": "s", "nodeType": "^sys", "children": blocks}]});
    let document = json!({"cycle": 1, "root": root}).to_string();
    Arc::new(Session::from_slice(document.as_bytes()).unwrap())
}

/// The selectors, with so many tests of one step, and with as many values and groups as go with that.
pub(super) fn selectors(wide: usize) -> Vec<String> {
    let mut all: Vec<String> = [
        // Strings inside, and neither names nor what is between them.
        "content~'refund'",
        "content~'^refund$'",
        "content~'^b$'",
        "content~'^f$'",
        "content~'^a$'",
        "content~'^type$'",
        "content~'^[:,]'",
        "content~'d:$'",
        "content~'say .refund.:'",
        r"content~'back\\\\slash'",
        "content~'e\nend'",
        "content~'(?s)e.end'",
        "content~'é.'",
        "content~'^.a.:.b.'",
        "content='d:'",
        "content=':'",
        "content!=','",
        // Times around 1970 and at both ends.
        "created_at_iso~'^1677-09-21T00:12:43.145224192Z$'",
        "created_at_iso~'^1969-12-31T23:59:59.999999999Z$'",
        "created_at_iso~'^2262-04-11T23:47:16.854775807Z$'",
        "created_at_iso<'1969-12-31T23:59:59.999999999Z'",
        "created_at_iso>='1969-12-31T23:59:59.999999999Z'",
    ]
    .map(|test| format!("@t0 .cb[{test}]"))
    .to_vec();
    // Conditions as deep as they may be.
    for condition in ["has", "not", "after", "before", "has-result"] {
        let deep = (1..7).fold("[id!='x']".to_owned(), |inside, _| {
            format!(":{condition}(*{inside})")
        });
        all.push(format!("@t0 *:not(:{condition}(*{deep}))"));
        all.push(format!("@t0 *:{condition}(*{deep})"));
    }
    all.push(format!("@t0 *{}", ":has(:has-call, .cb:last)".repeat(4)));
    let joined = |count: usize, between: &str, part: &dyn Fn(usize) -> String| {
        (0..count).map(part).collect::<Vec<_>>().join(between)
    };
    let ids = ["parts", "least", "wide"];
    let group = |number: usize| match ids.get(number % 30) {
        Some(id) => format!(".cb[id='{id}']"),
        None => format!(".cb[role='r{number}']"),
    };
    all.push(format!("@t0 {}", joined(wide / 10, ", ", &group)));
    let tags = joined(wide, ",", &|tag| format!("'t{tag:03}'"));
    all.push(format!("@t0 .cb[tags=[{tags}]]"));
    all.push(format!("@t0 .cb[content=[{tags}]]"));
    all.push(format!("@t0 .cb[id=[{tags},'parts']]"));
    let brackets = joined(wide * 9 / 10, "", &|number| format!("[data_a{number}=1]"));
    all.push(format!("@t0 .cb{brackets}"));
    all
}

#[test]
fn rare_contents_and_wide_selectors_answer_as_the_engine_does() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let session = session();
    let store = Store::open(&path).unwrap();
    store.import(NAME, &session, None).unwrap();
    let connection = sqlite::open(&path);
    let engine = builder(Edition::Canonical);
    let mut found = 0;
    for selector in selectors(1_000) {
        let start: String = selector.chars().take(60).collect();
        let rows = rows(&engine, &session, &selector).unwrap_or_else(|e| panic!("{start}: {e}"));
        found += usize::from(!rows.is_empty());
        let statement = engine.sql(&selector, Dialect::Sqlite, &Options::default());
        let got = sqlite::run(&connection, &statement.unwrap());
        let got = got.map_err(|error| error.chars().take(200).collect::<String>());
        let expected = if rows.is_empty() {
            Answers::new()
        } else {
            Answers::from([(NAME.to_owned(), rows)])
        };
        assert_eq!(got, Ok(expected), "{start}");
    }
    assert!(found > 15, "only {found} find anything");
}
