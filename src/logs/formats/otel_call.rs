//! What a span says of a call besides its messages: tools, parameters, usage, and the rest.
//!
//! This file must not know messages.

use super::otel_shapes::numbered;
use super::otel_values::{Attributes, json_of, text_of};
use super::requests::tools;
use super::transcript::json_in;
use crate::json::{Member, elements, members, string};
use crate::logs::json::{canonical, push_member};
use crate::logs::log::{Field, Tool, object_without};
use crate::logs::report::Report;
use std::collections::BTreeMap;

/// The tool definitions of a request.
pub(super) fn tools_of(attributes: &Attributes, report: &mut Report) -> Vec<Tool> {
    if let Some(raw) = json_of(attributes, "gen_ai.tool.definitions") {
        return tools(Some(&raw), report);
    }
    let all = attributes.iter().map(|(name, raw)| (&**name, &**raw));
    let mut definitions = Vec::new();
    for found in numbered(all, "llm.tools.").values() {
        let schema = found.iter().find(|(name, _)| *name == "tool.json_schema");
        definitions.extend(schema.map(|(_, raw)| match string(raw) {
            // One that is not JSON stays a text.
            Some(text) => json_in(&text).unwrap_or(raw).to_owned(),
            None => (*raw).to_owned(),
        }));
    }
    tools(Some(&format!("[{}]", definitions.join(","))), report)
}

/// The parameters of the request, under the names that Chat Completions has for them.
pub(super) fn parameters(attributes: &Attributes) -> String {
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
    let mut out = String::new();
    for (name, value) in &found {
        push_member(name, value, &mut out);
    }
    canonical(&format!(
        "{{{}}}",
        out.strip_prefix(',').unwrap_or_default()
    ))
}

/// The name of a parameter, if an attribute is one.
fn parameter(name: &str) -> Option<&str> {
    let prefixes = [
        "gen_ai.request.",
        "gen_ai.openai.request.",
        "openai.request.",
    ];
    prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))
}

/// Attributes that say what a call used, and their names in the tree.
const USED: [(&str, &str); 20] = [
    ("input_tokens", "gen_ai.usage.input_tokens"),
    ("input_tokens", "gen_ai.usage.prompt_tokens"),
    ("input_tokens", "llm.token_count.prompt"),
    ("output_tokens", "gen_ai.usage.output_tokens"),
    ("output_tokens", "gen_ai.usage.completion_tokens"),
    ("output_tokens", "llm.token_count.completion"),
    ("cached_tokens", "gen_ai.usage.cache_read.input_tokens"),
    ("cached_tokens", "llm.token_count.prompt_details.cache_read"),
    (
        "cache_write_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
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
    ("", "llm.finish_reason"),
    ("", "llm.model_name"),
];

/// What the call used.
pub(super) fn used(attributes: &Attributes, stop: Option<String>) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for (field, name) in USED {
        let known = fields.iter().any(|(known, _)| known == field);
        if let Some(raw) = attributes.get(name)
            && !field.is_empty()
            && !known
        {
            fields.push((field.into(), canonical(raw)));
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

/// What else the span says. What repeats messages is counted as skipped.
pub(super) fn record(attributes: &Attributes, report: &mut Report) -> Option<String> {
    let mut rest: Vec<Member<'_>> = Vec::new();
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
            || ["llm.input_messages.", "llm.output_messages.", "llm.tools."]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        if read {
            continue;
        }
        if matches!(&**name, "input.value" | "output.value") {
            report.skipped_member(&format!("{name} (repeats messages)"));
            continue;
        }
        report.record_member(name);
        rest.push((name.into(), value));
    }
    object_without(&rest, &[])
}
