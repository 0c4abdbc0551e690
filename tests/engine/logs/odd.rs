//! Random logs: a list comes back equal, and bytes that are not JSON are refused.

use super::{holds_together, openai, pointer};
use pactql::logs::{Format, ImportOptions, Imported, MessageLocation, import};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any small JSON value.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Few digits: the JSON library of the test reads longer ones inexactly.
        any::<i16>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4).prop_map(object),
        ]
    })
}

fn object(members: Vec<(String, Value)>) -> Value {
    Value::from(members.into_iter().collect::<Map<String, Value>>())
}

/// Names that the importer knows, and others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "role",
            "content",
            "type",
            "text",
            "name",
            "id",
            "function",
            "arguments",
            "tool_calls",
            "tool_call_id",
            "image_url",
            "message",
            "members",
            "other",
            "shape",
            "verbatim",
            "part",
            "call",
            "call_id",
            "call_name",
            "user",
            "assistant",
            "",
            "data_message",
            "agent",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
        any::<String>(),
    ]
}

/// Mostly the expected value, sometimes any other.
fn mostly<T: Into<Value> + std::fmt::Debug + Clone>(
    right: impl Strategy<Value = T>,
) -> impl Strategy<Value = Value> {
    prop_oneof![6 => right.prop_map(Into::into), 1 => value()]
}

/// A member that may be missing.
fn maybe(
    name: &'static str,
    inner: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Option<(String, Value)>> {
    prop::option::weighted(0.8, inner.prop_map(move |value| (name.to_owned(), value)))
}

fn part() -> impl Strategy<Value = Value> {
    let kind = mostly(prop::sample::select(vec![
        "text",
        "image_url",
        "input_audio",
    ]));
    let image = mostly(text().prop_map(|url| json!({ "url": url })));
    let extra = prop::collection::vec((text(), value()), 0..2);
    (
        maybe("type", kind),
        maybe("text", mostly(text())),
        maybe("image_url", image),
        extra,
    )
        .prop_map(|(kind, text, image, mut extra)| {
            extra.extend([kind, text, image].into_iter().flatten());
            object(extra)
        })
}

fn call() -> impl Strategy<Value = Value> {
    let extra = || prop::collection::vec((text(), value()), 0..2);
    let function = (
        maybe("name", mostly(text())),
        maybe("arguments", mostly(text())),
        extra(),
    );
    let function = function.prop_map(|(name, arguments, mut extra)| {
        extra.extend([name, arguments].into_iter().flatten());
        object(extra)
    });
    let kind = mostly(prop::sample::select(vec!["function", "custom"]));
    (
        maybe("id", mostly(text())),
        maybe("type", kind),
        maybe("function", mostly(function)),
        extra(),
    )
        .prop_map(|(id, kind, function, mut extra)| {
            extra.extend([id, kind, function].into_iter().flatten());
            object(extra)
        })
}

fn message() -> impl Strategy<Value = Value> {
    let role = mostly(prop::sample::select(vec![
        "system",
        "developer",
        "user",
        "assistant",
        "assistant",
        "tool",
        "function",
        "critic",
    ]));
    let content = prop_oneof![
        4 => mostly(text()),
        3 => mostly(prop::collection::vec(mostly(part()), 0..4)),
    ];
    let calls = mostly(prop::collection::vec(mostly(call()), 0..3));
    (
        maybe("role", role),
        maybe("content", content),
        maybe("tool_calls", calls),
        maybe("tool_call_id", mostly(text())),
        maybe("name", mostly(text())),
        prop::collection::vec((text(), value()), 0..3),
    )
        .prop_map(|(role, content, calls, id, name, mut extra)| {
            extra.extend([role, content, calls, id, name].into_iter().flatten());
            object(extra)
        })
}

/// Odd contents may look like those of another API.
fn imported(log: &[u8], location: MessageLocation) -> Imported {
    let options = ImportOptions {
        format: Some(Format::OpenAi),
        location,
        ..ImportOptions::default()
    };
    import(log, &options).expect("a good log")
}

proptest! {
    #![proptest_config(crate::support::random::property(512))]

    #[test]
    fn lists_come_back_equal(log in prop::collection::vec(mostly(message()), 0..8)) {
        let log = Value::from(log);
        let imported = imported(log.to_string().as_bytes(), MessageLocation::Messages(pointer("")));
        let session = holds_together(&imported).remove(0);
        prop_assert_eq!(openai(session.current()), log);
    }

    #[test]
    fn steps_come_back_equal(
        steps in prop::collection::vec(prop::collection::vec(message(), 0..6), 1..5)
    ) {
        let text = json!(steps).to_string();
        let imported = imported(text.as_bytes(), MessageLocation::Steps(pointer("/*")));
        let session = holds_together(&imported).remove(0);
        for (snapshot, step) in session.committed.iter().zip(&steps) {
            prop_assert_eq!(openai(snapshot), json!(step));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = import(&bytes, &ImportOptions::default());
    }

    #[test]
    fn no_cut_panics(log in prop::collection::vec(message(), 1..4), cut in 0.0..1.0_f64) {
        let text = Value::from(log).to_string();
        let end = (text.len() as f64 * cut) as usize;
        let _ = import(&text.as_bytes()[..end], &ImportOptions::default());
    }
}
