//! Kinds of logs that are known and not read: they are refused by their names. This file must not know what is in
//! them besides what distinguishes them.

use super::prelude::*;

type IsOf = fn(&[Member<'_>]) -> bool;

/// A name, and whether a record is surely of a log of that kind and of no format that is read.
const UNREAD: [(&str, IsOf); 6] = [
    ("Droid", |found| is_kind(found, "session_start")),
    ("Hermes", |found| {
        let marks = ["role", "observed", "active"];
        has(found, &marks) || any(found, "messages", &marks)
    }),
    ("Kimi", |found| {
        is_kind(found, "metadata") && has(found, &["protocol_version"])
            || is_kind(found, "context.append_loop_event")
    }),
    ("LangGraph", |found| {
        let checkpoint = inner(found, "checkpoint");
        has(found, &["channel_values", "channel_versions"])
            || has(&checkpoint, &["channel_values", "channel_versions"])
    }),
    ("Letta Code", |found| has(found, &["kind", "captured_at"])),
    ("the later SDK of OpenHands", |found| {
        is_event(found)
            || items(found, "items")
                .into_iter()
                .any(|raw| is_event(&members(raw)))
    }),
];

/// The kind of log that a record is surely of, if it is one that is not read.
pub(super) fn unread(found: &[Member<'_>]) -> Option<&'static str> {
    let known = UNREAD.iter().find(|(_, is_of)| is_of(found));
    known.map(|(name, _)| *name)
}

fn has(found: &[Member<'_>], names: &[&str]) -> bool {
    names.iter().all(|name| get(found, name).is_some())
}

fn any(found: &[Member<'_>], list: &str, names: &[&str]) -> bool {
    let elements = items(found, list).into_iter();
    elements.map(members).any(|found| has(&found, names))
}

fn is_object(found: &[Member<'_>], name: &str) -> bool {
    is(found, name, ValueType::Object)
}

fn is_kind(found: &[Member<'_>], kind: &str) -> bool {
    text(found, "type").as_deref() == Some(kind)
}

/// Whether it is an event of the later SDK, `{"kind": "MessageEvent", "llm_message": …}`.
fn is_event(found: &[Member<'_>]) -> bool {
    let kind = text(found, "kind").unwrap_or_default();
    let bodies = ["llm_message", "tool_call", "observation", "action"];
    kind.ends_with("Event") && bodies.iter().any(|body| is_object(found, body))
}
