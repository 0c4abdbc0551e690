//! What the attributes of a span say of a call besides its messages: tools, parameters, usage, and the rest.
//!
//! OTLP/JSON has a value as an object that names its type, and attributes as a list; exporters for
//! people write both as plain JSON.
//! This file must not know messages.

use super::prelude::*;
use super::requests::tools;
use crate::logs::json::value as json_in;
use crate::logs::usage::{count, not_counted};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

pub(super) fn tools_of(attributes: &SpanAttributes, report: &mut ImportReport) -> Vec<LogTool> {
    if let Some(raw) = json_of(attributes, "gen_ai.tool.definitions") {
        return tools(Some(&raw), report);
    }
    let all = attributes.iter().map(|(name, raw)| (&**name, &**raw));
    let mut definitions = Vec::new();
    // One that is not JSON stays a text.
    let schema = |raw: &str| match string(raw) {
        Some(text) => json_in(&text).unwrap_or(raw).to_owned(),
        None => raw.to_owned(),
    };
    for found in numbered(all.clone(), "llm.tools.").values() {
        let found = found.iter().find(|(name, _)| *name == "tool.json_schema");
        definitions.extend(found.map(|(_, raw)| schema(raw)));
    }
    for found in numbered(all, "llm.request.functions.").values() {
        let members = found.iter().map(|(name, raw)| match *name {
            "parameters" => (*name, schema(raw)),
            name => (name, (*raw).to_owned()),
        });
        let function = object(members);
        definitions.push(format!("{{\"type\":\"function\",\"function\":{function}}}"));
    }
    tools(Some(&list(definitions)), report)
}

/// The parameters of the request, under the names that Chat Completions has for them.
pub(super) fn parameters(attributes: &SpanAttributes) -> String {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    if let Some(raw) = json_of(attributes, "llm.invocation_parameters") {
        for (name, value) in members(&raw) {
            found.insert(name.into_owned(), value.to_owned());
        }
    }
    if let Some(model) = attributes.get("llm.model_name") {
        found.entry("model".to_owned()).or_insert(model.clone());
    }
    let provider = ["gen_ai.provider.name", "gen_ai.system"];
    let provider = provider.iter().find_map(|name| text_of(attributes, name));
    let is_anthropic = provider.is_some_and(|name| name.contains("anthropic"));
    for (name, value) in attributes {
        let Some(name) = parameter(name) else {
            continue;
        };
        let name = match name {
            "stop_sequences" if !is_anthropic => "stop",
            "choice.count" => "n",
            name => name,
        };
        found.insert(name.to_owned(), value.clone());
    }
    // They are in the tree.
    found.remove("messages");
    found.remove("tools");
    canonical(&object(&found))
}

fn parameter(name: &str) -> Option<&str> {
    let prefixes = [
        "gen_ai.request.",
        "gen_ai.openai.request.",
        "openai.request.",
    ];
    prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))
}

/// Attributes that say what a call used, and their names in the tree.
const USED: [(&str, &str); 29] = [
    ("input_tokens", "gen_ai.usage.input_tokens"),
    ("input_tokens", "gen_ai.usage.prompt_tokens"),
    ("input_tokens", "llm.token_count.prompt"),
    ("input_tokens", "llm.usage.prompt_tokens"),
    ("output_tokens", "gen_ai.usage.output_tokens"),
    ("output_tokens", "gen_ai.usage.completion_tokens"),
    ("output_tokens", "llm.token_count.completion"),
    ("output_tokens", "llm.usage.completion_tokens"),
    ("cached_tokens", "gen_ai.usage.cache_read.input_tokens"),
    ("cached_tokens", "gen_ai.usage.cache_read_input_tokens"),
    ("cached_tokens", "gen_ai.usage.input_tokens.cache_read"),
    ("cached_tokens", "llm.usage.cache_read_input_tokens"),
    ("cached_tokens", "llm.token_count.prompt_details.cache_read"),
    (
        "cache_write_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
    ),
    (
        "cache_write_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
    ),
    (
        "cache_write_tokens",
        "gen_ai.usage.input_tokens.cache_write",
    ),
    (
        "cache_write_tokens",
        "llm.usage.cache_creation_input_tokens",
    ),
    (
        "cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    ("reasoning_tokens", "gen_ai.usage.reasoning.output_tokens"),
    (
        "reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
    ("cost_usd", "llm.cost.total"),
    ("model", "gen_ai.response.model"),
    ("response_id", "gen_ai.response.id"),
    ("", "gen_ai.response.finish_reasons"),
    ("", "llm.token_count.total"),
    ("", "gen_ai.usage.total_tokens"),
    ("", "llm.usage.total_tokens"),
    ("", "llm.finish_reason"),
    ("", "llm.model_name"),
];

/// What the attributes say of what a call used.
pub(super) fn used(
    attributes: &SpanAttributes,
    stop: Option<String>,
    report: &mut ImportReport,
) -> Vec<LogField> {
    let mut fields: Vec<LogField> = Vec::new();
    for (field, name) in USED {
        let known = fields.iter().any(|(known, _)| known == field);
        if let Some(raw) = attributes.get(name)
            && !field.is_empty()
            && !known
        {
            match count(raw) {
                Some(number) if field.ends_with("_tokens") => {
                    fields.push((field.into(), number.to_string()));
                }
                None if field.ends_with("_tokens") => report.skipped_member(&not_counted(name)),
                _ => fields.push((field.into(), canonical(raw))),
            }
        }
    }
    let reasons = attributes.get("gen_ai.response.finish_reasons");
    let first = reasons.and_then(|raw| elements(raw).first().map(|raw| canonical(raw)));
    let reason = attributes
        .get("llm.finish_reason")
        .map(|raw| canonical(raw));
    let stop = first.or(stop).or(reason);
    fields.extend(stop.map(|stop| ("stop_reason".into(), stop)));
    fields
}

/// What the attributes of messages and tools begin with, where they have a number each.
const NUMBERED: [&str; 6] = [
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.tools.",
    "gen_ai.prompt.",
    "gen_ai.completion.",
    "llm.request.functions.",
];

/// What else the span says. What repeats the messages is counted as skipped.
pub(super) fn record<'a>(
    attributes: &SpanAttributes,
    messages: impl Iterator<Item = &'a String>,
    report: &mut ImportReport,
) -> Option<String> {
    let mut rest: Vec<Member<'_>> = Vec::new();
    let is_whole = |name: &str| matches!(name, "input.value" | "output.value");
    let mut said = HashSet::new();
    if attributes.keys().any(|name| is_whole(name)) {
        messages.for_each(|raw| words_of(raw, &mut said));
        let others = attributes.iter().filter(|(name, _)| !is_whole(name));
        others.for_each(|(_, raw)| words_of(raw, &mut said));
    }
    for (name, value) in attributes {
        let read = parameter(name).is_some()
            || USED.iter().any(|(_, known)| known == name)
            || matches!(
                &**name,
                "gen_ai.system_instructions"
                    | "gen_ai.input.messages"
                    | "gen_ai.output.messages"
                    | "gen_ai.tool.definitions"
                    | "gen_ai.conversation.id"
                    | "llm.invocation_parameters"
            )
            || NUMBERED.iter().any(|prefix| name.starts_with(prefix));
        if read {
            continue;
        }
        let mut own = HashSet::new();
        if is_whole(name) {
            words_of(value, &mut own);
        }
        if is_whole(name) && own.is_subset(&said) {
            report.skipped_member(&format!("{name} (repeats messages)"));
            continue;
        }
        report.count_record_member(name);
        rest.push((name.into(), value));
    }
    object_without(&rest, &[])
}

/// The texts of more than one word in a value, also in JSON that is a string.
fn words_of(raw: &str, found: &mut HashSet<String>) {
    if let Some(text) = string(raw) {
        match json_in(&text).filter(|inner| inner.starts_with(['{', '['])) {
            Some(inner) => words_of(inner, found),
            None if text.contains(' ') => {
                found.insert(text.into_owned());
            }
            None => {}
        }
    }
    elements(raw)
        .iter()
        .for_each(|inner| words_of(inner, found));
    members(raw)
        .iter()
        .for_each(|(_, inner)| words_of(inner, found));
}

/// Attributes by name, values as JSON. The first of a name counts.
pub(super) type SpanAttributes = BTreeMap<String, String>;

/// Attributes: a list of keys with values, or an object.
pub(super) fn attributes(raw: &str) -> SpanAttributes {
    let mut found = SpanAttributes::new();
    for (name, value) in members(raw) {
        found.entry(name.into_owned()).or_insert(value.to_owned());
    }
    for raw in elements(raw) {
        let pair = members(raw);
        let name = text(&pair, "key");
        if let (Some(name), Some(value)) = (name, get(&pair, "value")) {
            let value = any_value(value);
            found.entry(name.into_owned()).or_insert(value);
        }
    }
    found
}

pub(super) fn any_value(raw: &str) -> String {
    let found = members(raw);
    let Some((kind, value)) = found.first() else {
        return "null".to_owned();
    };
    match &**kind {
        // Integers of 64 bits are strings. Any other text stays one.
        "intValue" => match string(value) {
            Some(text) if text.parse::<i64>().is_ok_and(|n| n.to_string() == *text) => {
                text.into_owned()
            }
            _ => (*value).to_owned(),
        },
        "stringValue" | "boolValue" | "doubleValue" | "bytesValue" => (*value).to_owned(),
        "arrayValue" => list(items(&members(value), "values").into_iter().map(any_value)),
        "kvlistValue" => {
            let mut names = HashSet::new();
            // Their order is kept: it can be that of the arguments of a call. The first of a name counts.
            let pairs = items(&members(value), "values")
                .into_iter()
                .filter_map(|raw| {
                    let pair = members(raw);
                    let name = text(&pair, "key")?.into_owned();
                    let value = get(&pair, "value").map_or("null".to_owned(), any_value);
                    names.insert(name.clone()).then_some((name, value))
                });
            object(pairs)
        }
        _ => raw.to_owned(),
    }
}

pub(super) fn text_of(attributes: &SpanAttributes, name: &str) -> Option<String> {
    let raw = attributes.get(name)?;
    string(raw).map(Cow::into_owned)
}

/// An attribute that is JSON, or a string of JSON.
pub(super) fn json_of(attributes: &SpanAttributes, name: &str) -> Option<String> {
    let raw = attributes.get(name)?;
    Some(match string(raw) {
        Some(text) => json_in(&text)?.to_owned(),
        None => raw.clone(),
    })
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
