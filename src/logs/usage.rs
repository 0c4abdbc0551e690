//! What a provider said that a call used, under one set of names.
//!
//! | name | is |
//! |---|---|
//! | `input_tokens` | everything that was sent, cached or not |
//! | `cached_tokens`, `cache_write_tokens` | of them, read from the prompt cache and written to it |
//! | `cache_write_1h_tokens` | of those written, the ones that are kept for an hour |
//! | `output_tokens`, `reasoning_tokens` | the reply, and of it the reasoning |
//! | `cost_usd` | the price |
//! | `provider` | the provider's own object |
//!
//! Anthropic, Bedrock, pi and opencode count cached tokens beside the input; the names here follow OpenAI, which
//! counts them in it. This file must not know trees.

use super::json::canonical;
use super::log::{LogCall, LogField};
use crate::json::{Member, get, members};

/// What is counted, in the providers' names.
const INPUT: [&str; 6] = [
    "prompt_tokens",
    "input_tokens",
    "input",
    "inputTokens",
    "promptTokenCount",
    "prompt_token_count",
];
/// Beside the input, not in it: read from the cache, written to it, and what Gemini's own tools add.
const READ: [&str; 3] = [
    "cache_read_input_tokens",
    "cacheRead",
    "cacheReadInputTokens",
];
const WRITTEN: [&str; 3] = [
    "cache_creation_input_tokens",
    "cacheWrite",
    "cacheWriteInputTokens",
];
const ADDED: [&str; 2] = ["toolUsePromptTokenCount", "tool_use_prompt_token_count"];
/// In the input.
const CACHED: [&str; 3] = [
    "cached_input_tokens",
    "cachedContentTokenCount",
    "cached_content_token_count",
];
const OUTPUT: [&str; 4] = [
    "completion_tokens",
    "output_tokens",
    "output",
    "outputTokens",
];
/// Gemini counts thoughts beside the reply.
const REPLY: [&str; 2] = ["candidatesTokenCount", "candidates_token_count"];
const THOUGHTS: [&str; 2] = ["thoughtsTokenCount", "thoughts_token_count"];

/// The fields of a provider's usage object, in whatever provider's names.
pub(super) fn fields(raw: &str) -> Vec<LogField> {
    let found = members(raw);
    let number = |names: &[&str]| names.iter().find_map(|name| integer(&found, name));
    let sum = |all: &[Option<u64>]| all.iter().flatten().copied().reduce(u64::saturating_add);
    let inner = |outer: &[&str], name: &str| {
        let mut outer = outer.iter().filter_map(|name| get(&found, name));
        outer.find_map(|raw| integer(&members(raw), name))
    };
    let details = ["prompt_tokens_details", "input_tokens_details"];
    let of_reply = ["completion_tokens_details", "output_tokens_details"];
    // opencode has an object for the cache.
    let read = number(&READ).or_else(|| inner(&["cache"], "read"));
    let written = number(&WRITTEN).or_else(|| inner(&["cache"], "write"));
    let input = number(&INPUT);
    let all = || sum(&[input, read, written, number(&ADDED)]);
    let cached = inner(&details, "cached_tokens").or(number(&CACHED));
    let thoughts = number(&THOUGHTS);
    let output = number(&OUTPUT).or(sum(&[number(&REPLY), thoughts]));
    let reasoning = inner(&of_reply, "reasoning_tokens").or(thoughts);
    let reasoning = reasoning.or(number(&["reasoning_output_tokens", "reasoning"]));
    // It is beside the reply in opencode where all of them add up to its total.
    let whole = sum(&[all(), output, reasoning]);
    let is_beside = whole.is_some() && whole == number(&["total"]);
    let output = if is_beside {
        sum(&[output, reasoning])
    } else {
        output
    };
    let hour = inner(&["cache_creation"], "ephemeral_1h_input_tokens");
    let counted = [
        ("input_tokens", input.and_then(|_| all())),
        ("cached_tokens", cached.or(read)),
        ("cache_write_tokens", written),
        ("cache_write_1h_tokens", hour.filter(|count| *count > 0)),
        ("output_tokens", output),
        ("reasoning_tokens", reasoning),
    ];
    let counted = counted.into_iter();
    let counted = counted.filter_map(|(name, value)| Some((name.into(), value?.to_string())));
    let mut fields: Vec<LogField> = counted.collect();
    let cost = get(&found, "cost").unwrap_or_default();
    let total = members(cost);
    let cost = get(&total, "total").unwrap_or(cost);
    if cost.starts_with(|c: char| c.is_ascii_digit()) {
        fields.push(("cost_usd".into(), canonical(cost)));
    }
    if raw.starts_with('{') {
        fields.push(("provider".into(), canonical(raw)));
    }
    fields
}

impl LogCall {
    /// What a provider's usage object and some values, raw JSON each, say of a call.
    pub(super) fn used(usage: Option<&str>, said: &[(&'static str, Option<&str>)]) -> Self {
        let mut found = usage.map(fields).unwrap_or_default();
        let said = said.iter().filter_map(|(name, raw)| Some((*name, (*raw)?)));
        found.extend(said.map(|(name, raw)| (name.into(), canonical(raw))));
        Self {
            usage: found,
            ..Self::default()
        }
    }
}

fn integer(found: &[Member<'_>], name: &str) -> Option<u64> {
    get(found, name)?.parse().ok()
}
