//! Messages of OpenTelemetry's events and of OpenInference in the form of Chat Completions.
//!
//! Events of version 1.36 and older have a message as a body, nearly in that form. OpenInference has
//! a message as attributes with numbers in their names. This file must not know spans.

use super::fields::text;
use super::otel_values::{Attributes, as_text};
use crate::json::{Member, ValueType, elements, get, members, string, value_type};
use crate::logs::json::{push_member, quoted};
use std::collections::BTreeMap;

/// The message of a choice: below `message`, or right there.
pub(super) fn choice(found: &[Member<'_>]) -> String {
    let inner = get(found, "message");
    let body = match inner.map(value_type) {
        Some(ValueType::Object) => members(inner.unwrap_or_default()),
        Some(ValueType::String) => vec![("content".into(), inner.unwrap_or_default())],
        _ => found.to_vec(),
    };
    let mut body: Vec<Member<'_>> = body
        .into_iter()
        .filter(|(name, _)| !matches!(&**name, "index" | "finish_reason"))
        .collect();
    for name in ["tool_calls", "finish_reason"] {
        let missing = get(&body, name).is_none();
        body.extend(
            get(found, name)
                .filter(|_| missing)
                .map(|raw| (name.into(), raw)),
        );
    }
    chat_message(&body, "assistant")
}

/// A message in the form of Chat Completions, of an event's members.
pub(super) fn chat_message(found: &[Member<'_>], role: &str) -> String {
    let mut out = String::new();
    let own = text(found, "role").unwrap_or(role.into());
    push_member("role", &quoted(&own), &mut out);
    for (name, value) in found {
        match &**name {
            "role" | "gen_ai.system" | "gen_ai.provider.name" | "event.name" => {}
            "id" if own == "tool" => push_member("tool_call_id", value, &mut out),
            "tool_calls" => {
                // A list, or a string of it.
                let text = string(value);
                let inner = text.as_deref().and_then(super::transcript::json_in);
                let calls = elements(inner.unwrap_or(value)).into_iter().map(chat_call);
                let calls: Vec<String> = calls.collect();
                push_member(name, &format!("[{}]", calls.join(",")), &mut out);
            }
            _ => push_member(name, value, &mut out),
        }
    }
    format!("{{{}}}", &out[1..])
}

/// A call in the form of Chat Completions, whose arguments are a text.
fn chat_call(raw: &str) -> String {
    let found = members(raw);
    let function = get(&found, "function").map(members).unwrap_or_default();
    let mut inner = String::new();
    for (name, value) in &function {
        let value = match &**name {
            "arguments" => as_text(value),
            _ => (*value).to_owned(),
        };
        push_member(name, &value, &mut inner);
    }
    let inner = format!("{{{}}}", inner.strip_prefix(',').unwrap_or_default());
    let mut out = String::new();
    if get(&found, "type").is_none() {
        push_member("type", "\"function\"", &mut out);
    }
    for (name, value) in &found {
        match &**name {
            "function" => push_member(name, &inner, &mut out),
            _ => push_member(name, value, &mut out),
        }
    }
    format!("{{{}}}", &out[1.min(out.len())..])
}

/// The members of numbered things: `PREFIX`, number, dot, name.
pub(super) fn numbered<'a>(
    found: impl Iterator<Item = (&'a str, &'a str)>,
    prefix: &str,
) -> BTreeMap<usize, Vec<(&'a str, &'a str)>> {
    let mut by_number: BTreeMap<usize, Vec<(&str, &str)>> = BTreeMap::new();
    for (name, value) in found {
        let rest = name
            .strip_prefix(prefix)
            .and_then(|rest| rest.split_once('.'));
        if let Some((number, name)) = rest
            && let Ok(number) = number.parse()
        {
            by_number.entry(number).or_default().push((name, value));
        }
    }
    by_number
}

/// The messages of OpenInference, in the form of Chat Completions.
pub(super) fn flat(attributes: &Attributes, prefix: &str) -> Vec<String> {
    let all = attributes.iter().map(|(name, raw)| (&**name, &**raw));
    let by_number = numbered(all, prefix);
    by_number.values().map(|of| flat_message(of)).collect()
}

fn flat_message(found: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let of = |name: &str| found.iter().find(|(known, _)| *known == name);
    let role = of("message.role").map_or("\"user\"", |(_, raw)| raw);
    push_member("role", role, &mut out);
    let contents = numbered(found.iter().copied(), "message.contents.");
    let contents: Vec<String> = contents.values().map(|of| flat_content(of)).collect();
    let calls = numbered(found.iter().copied(), "message.tool_calls.");
    let calls: Vec<String> = calls.values().map(|of| flat_call(of)).collect();
    match of("message.content") {
        Some((_, raw)) => push_member("content", raw, &mut out),
        None if contents.is_empty() => push_member("content", "null", &mut out),
        None => push_member("content", &format!("[{}]", contents.join(",")), &mut out),
    }
    if !calls.is_empty() {
        push_member("tool_calls", &format!("[{}]", calls.join(",")), &mut out);
    }
    for (name, value) in found {
        let Some(name) = name.strip_prefix("message.") else {
            continue;
        };
        let read = matches!(name, "role" | "content")
            || name.starts_with("contents.")
            || name.starts_with("tool_calls.");
        if !read {
            push_member(name, value, &mut out);
        }
    }
    format!("{{{}}}", &out[1..])
}

fn flat_content(found: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let prefix = "message_content.";
    for (name, value) in found {
        match name.strip_prefix(prefix).unwrap_or(name) {
            "image.image.url" => {
                push_member("image_url", &format!("{{\"url\":{value}}}"), &mut out);
            }
            "type" if *value == "\"image\"" => push_member("type", "\"image_url\"", &mut out),
            name => push_member(name, value, &mut out),
        }
    }
    format!("{{{}}}", out.strip_prefix(',').unwrap_or_default())
}

fn flat_call(found: &[(&str, &str)]) -> String {
    let (mut out, mut function) = (String::new(), String::new());
    for (name, value) in found {
        let name = name.strip_prefix("tool_call.").unwrap_or(name);
        match name.strip_prefix("function.") {
            Some("arguments") => push_member("arguments", &as_text(value), &mut function),
            Some(name) => push_member(name, value, &mut function),
            None => push_member(name, value, &mut out),
        }
    }
    let function = function.strip_prefix(',').unwrap_or_default();
    format!("{{\"type\":\"function\"{out},\"function\":{{{function}}}}}")
}
