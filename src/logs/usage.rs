//! What a provider said that a call used, under one set of names.
//!
//! | name | is |
//! |---|---|
//! | `input_tokens` | everything that was sent, cached or not |
//! | `cached_tokens`, `cache_write_tokens` | of them, read from the prompt cache and written to it |
//! | `output_tokens`, `reasoning_tokens` | the reply, and of it the reasoning |
//! | `cost_usd` | the price |
//! | `provider` | the provider's own object |
//!
//! Anthropic and pi count cached tokens beside the input; the names here follow OpenAI, which counts
//! them in it. This file must not know trees.

use super::json::canonical;
use super::log::{LogCall, LogField};
use crate::json::{Member, get, members};

pub(super) fn fields(raw: &str) -> Vec<LogField> {
    let found = members(raw);
    let number = |names: &[&str]| names.iter().find_map(|name| integer(&found, name));
    let inner = |outer: &[&str], name: &str| {
        let mut outer = outer.iter().filter_map(|name| get(&found, name));
        outer.find_map(|raw| integer(&members(raw), name))
    };
    // Beside the input, not in it.
    let read = number(&["cache_read_input_tokens", "cacheRead"]);
    let written = number(&["cache_creation_input_tokens", "cacheWrite"]);
    let beside = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let input = number(&["prompt_tokens", "input_tokens", "input"]);
    let details = ["prompt_tokens_details", "input_tokens_details"];
    let cached = inner(&details, "cached_tokens").or(number(&["cached_input_tokens"]));
    let output = number(&["completion_tokens", "output_tokens", "output"]);
    let details = ["completion_tokens_details", "output_tokens_details"];
    let reasoning = inner(&details, "reasoning_tokens");
    let reasoning = reasoning.or(number(&["reasoning_output_tokens"]));
    let counted = [
        ("input_tokens", input.map(|n| n.saturating_add(beside))),
        ("cached_tokens", cached.or(read)),
        ("cache_write_tokens", written),
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
