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
//! counts them in it. LiteLLM has the names of both, and counts as OpenAI does; where a total is there, it decides.
//! This file must not know trees.

use super::json::canonical;
use super::log::{LogCall, LogField};
use crate::json::{Member, get, members, string};
use crate::support::macros::words;

/// What is counted, in the providers' names.
const INPUT: [&str; 6] = words![
    prompt_tokens input_tokens input inputTokens promptTokenCount prompt_token_count
];
/// Of these, cached tokens are a part; the others may have them beside.
const WITH_CACHE: [&str; 3] = ["prompt_tokens", "promptTokenCount", "prompt_token_count"];
/// Read from the cache, and written to it.
const READ: [&str; 4] = words![
    cache_read_input_tokens cacheRead cacheReadInputTokens input_tokens_cache_read
];
const WRITTEN: [&str; 4] = words![
    cache_creation_input_tokens cacheWrite cacheWriteInputTokens input_tokens_cache_write
];
/// Those of inspect_ai have the form of each provider's own: without a total, they are in the input.
const OF_INSPECT: [&str; 2] = [READ[3], WRITTEN[3]];
/// What Gemini's own tools add to the input.
const ADDED: [&str; 2] = ["toolUsePromptTokenCount", "tool_use_prompt_token_count"];
/// In the input.
const CACHED: [&str; 3] = [
    "cached_input_tokens",
    "cachedContentTokenCount",
    "cached_content_token_count",
];
const OUTPUT: [&str; 4] = words![completion_tokens output_tokens output outputTokens];
const REASONING: [&str; 3] = ["reasoning_output_tokens", "reasoning", "reasoning_tokens"];
/// Gemini counts thoughts beside the reply.
const REPLY: [&str; 2] = ["candidatesTokenCount", "candidates_token_count"];
const THOUGHTS: [&str; 2] = ["thoughtsTokenCount", "thoughts_token_count"];

const TOTAL: [&str; 5] = words![total_tokens total totalTokens totalTokenCount total_token_count];

/// A number of tokens: a whole number, also one spelled as a fraction (`20000.0`) or in a string.
pub(super) fn count(raw: &str) -> Option<u64> {
    let text = string(raw);
    let text = text.as_deref().unwrap_or(raw).trim();
    // Above 2^53 a fraction does not say every number.
    let whole = |number: &f64| number.fract() == 0.0 && (0.0..9e15).contains(number);
    let fraction = || text.parse::<f64>().ok().filter(whole);
    text.parse().ok().or_else(|| fraction().map(|n| n as u64))
}

/// A provider's usage object while it is read.
struct Counts<'a> {
    found: Vec<Member<'a>>,
    /// The members that should be a number of tokens, and are none.
    strange: Vec<String>,
}

impl<'a> Counts<'a> {
    /// The first of these members that is a number.
    fn number(&mut self, names: &[&str]) -> Option<u64> {
        let found = std::mem::take(&mut self.found);
        let number = names
            .iter()
            .find_map(|name| self.read("", name, get(&found, name)?));
        self.found = found;
        number
    }

    /// A number in the first of these members that has it.
    fn inner(&mut self, outer: &[&str], name: &str) -> Option<u64> {
        outer.iter().find_map(|outer| {
            let found = members(get(&self.found, outer)?);
            self.read(&format!("{outer}."), name, get(&found, name)?)
        })
    }

    fn read(&mut self, within: &str, name: &str, raw: &'a str) -> Option<u64> {
        let number = count(raw);
        if number.is_none() && raw != "null" {
            self.strange.push(format!("usage.{within}{name}"));
        }
        number
    }
}

/// The input and the output as they are counted.
struct Sizes {
    input: u64,
    output: u64,
    /// Read from the cache, and written to it.
    cached: [u64; 2],
    /// The reasoning, if the output may be without it.
    reasoning: u64,
    total: Option<u64>,
    /// Whether the cache is in the input where the total does not say.
    is_with_cache: bool,
}

impl Sizes {
    /// The whole input and the whole output: the total shows what is beside them and not in them.
    fn whole(&self) -> (u64, u64) {
        let [read, written] = self.cached;
        let cache = read.saturating_add(written);
        let with = |cache: u64, reasoning: u64| {
            let input = self.input.saturating_add(cache);
            (input, self.output.saturating_add(reasoning))
        };
        // It is not a part of what is smaller.
        let fits = read.max(written) <= self.input;
        let ways = [
            (0, 0),
            (cache, 0),
            (0, self.reasoning),
            (cache, self.reasoning),
        ];
        let mut ways = ways.into_iter().filter(|(cache, _)| fits || *cache > 0);
        let adds_up = |(cache, reasoning): &(u64, u64)| {
            let (input, output) = with(*cache, *reasoning);
            Some(input.saturating_add(output)) == self.total
        };
        let otherwise = if self.is_with_cache && fits { 0 } else { cache };
        let (cache, reasoning) = ways.find(adds_up).unwrap_or((otherwise, 0));
        with(cache, reasoning)
    }
}

/// The fields of a provider's usage object, in whatever provider's names, and the members of it that should be a
/// number and are none.
fn fields(raw: &str) -> (Vec<LogField>, Vec<String>) {
    let mut counts = Counts {
        found: members(raw),
        strange: Vec::new(),
    };
    let has = |found: &[Member<'_>], names: &[&str]| names.iter().any(|n| get(found, n).is_some());
    let is_with_cache = has(&counts.found, &WITH_CACHE) || has(&counts.found, &OF_INSPECT);
    let details = ["prompt_tokens_details", "input_tokens_details"];
    let of_reply = ["completion_tokens_details", "output_tokens_details"];
    // opencode has an object for the cache.
    let read = counts.number(&READ);
    let read = read.or_else(|| counts.inner(&["cache"], "read"));
    let written = counts.number(&WRITTEN);
    let written = written.or_else(|| counts.inner(&["cache"], "write"));
    let input = counts.number(&INPUT);
    let added = counts.number(&ADDED).unwrap_or(0);
    let cached = counts.inner(&details, "cached_tokens");
    let cached = cached.or_else(|| counts.number(&CACHED)).or(read);
    let thoughts = counts.number(&THOUGHTS);
    let reply = counts.number(&REPLY);
    let sum = [reply, thoughts].into_iter().flatten();
    let output = counts.number(&OUTPUT);
    let output = output.or_else(|| sum.reduce(u64::saturating_add));
    let reasoning = counts.inner(&of_reply, "reasoning_tokens").or(thoughts);
    let reasoning = reasoning.or_else(|| counts.number(&REASONING));
    let (whole_input, whole_output) = Sizes {
        input: input.unwrap_or(0).saturating_add(added),
        output: output.unwrap_or(0),
        cached: [read.unwrap_or(0), written.unwrap_or(0)],
        reasoning: reasoning.filter(|_| thoughts.is_none()).unwrap_or(0),
        total: counts.number(&TOTAL),
        is_with_cache,
    }
    .whole();
    let hour = counts.inner(&["cache_creation"], "ephemeral_1h_input_tokens");
    let counted = [
        ("input_tokens", input.map(|_| whole_input)),
        ("cached_tokens", cached),
        ("cache_write_tokens", written),
        ("cache_write_1h_tokens", hour.filter(|count| *count > 0)),
        ("output_tokens", output.map(|_| whole_output)),
        ("reasoning_tokens", reasoning),
    ];
    let counted = counted.into_iter();
    let counted = counted.filter_map(|(name, value)| Some((name.into(), value?.to_string())));
    let mut fields: Vec<LogField> = counted.collect();
    let cost = get(&counts.found, "cost").unwrap_or_default();
    let total = members(cost);
    let cost = get(&total, "total").unwrap_or(cost);
    if cost.starts_with(|c: char| c.is_ascii_digit()) {
        fields.push(("cost_usd".into(), canonical(cost)));
    }
    if raw.starts_with('{') {
        fields.push(("provider".into(), canonical(raw)));
    }
    (fields, counts.strange)
}

impl LogCall {
    /// What a provider's usage object and some values, raw JSON each, say of a call.
    pub(super) fn used(usage: Option<&str>, said: &[(&'static str, Option<&str>)]) -> Self {
        let (mut found, _) = usage.map(fields).unwrap_or_default();
        let said = said.iter().filter_map(|(name, raw)| Some((*name, (*raw)?)));
        found.extend(said.map(|(name, raw)| (name.into(), canonical(raw))));
        Self {
            usage: found,
            ..Self::default()
        }
    }

    /// The members of the provider's own object that should be a number and are none.
    pub(super) fn uncounted(&self) -> Vec<String> {
        let mut usage = self.usage.iter();
        let own = usage.find(|(name, _)| name == "provider");
        own.map(|(_, raw)| fields(raw).1).unwrap_or_default()
    }
}

/// What the report says of a member that should be a number of tokens.
pub(super) fn not_counted(name: &str) -> String {
    format!("{name} (not a number of tokens)")
}
