//! The receipt: what a session is made of, without what it says.
//!
//! It has counts, sizes, hashes and shapes. Names of tools and of models stay, if they look like names; ids, keys,
//! parameters, errors and texts do not. Roles and kinds that are not the usual ones are `other`.

use super::table::{ShareTable, Splice, TableBlock, TableStep};
use crate::history::History;
use crate::inspect::call::{is_zero, time_of};
use crate::inspect::prefix::by_cycle;
use crate::inspect::{Counts, PrefixStep, Region, StepEvent, Tokenizer, form_of};
use crate::render::Provider;
use crate::support::macros::words;
use crate::tree::hash::hex;
use serde::Serialize;
use std::collections::BTreeMap;

/// A session without its content.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    /// `pactql receipt 1`.
    pub format: &'static str,
    /// How tokens are counted.
    pub tokenizer: Tokenizer,
    /// The API in whose form requests are compared.
    pub provider: Provider,
    /// Whether requests are worked out from a transcript, which does not say exactly what was sent.
    pub reconstructed: bool,
    /// The distinct blocks of all steps, in the order in which they first appear.
    pub blocks: Vec<ReceiptBlock>,
    /// One for each committed snapshot, oldest first.
    pub steps: Vec<ReceiptStep>,
}

/// A block as it is in one or many steps.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReceiptBlock {
    /// Where it is.
    pub region: Region,
    /// Its role, or `other`.
    pub role: &'static str,
    /// Its kind, `other`, or `none`.
    pub kind: &'static str,
    /// The tool that it defines, calls, or is a result of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether it is a result that says it is an error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
    /// Bytes of its text.
    pub bytes: u64,
    /// Tokens of the block.
    pub tokens: u64,
    /// SHA-256 of its text in UTF-8: of the content if it is a string, else of its JSON.
    pub sha256: String,
}

/// A cycle.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReceiptStep {
    /// The cycle.
    pub cycle: i64,
    /// When the reply came, or else when the newest block was made, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The model of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many blocks there are, reply included.
    pub blocks: usize,
    /// Bytes of their texts.
    pub bytes: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Blocks by role.
    pub by_role: BTreeMap<&'static str, u64>,
    /// Blocks by kind.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// How the list of blocks differs from that of the step before: where in the list, how many go, and
    /// which of the receipt's blocks come. Done in order, they turn one list into the other.
    pub changes: Vec<(usize, usize, Vec<u32>)>,
    /// Tools that the reply called, with how often.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, usize>,
    /// Calls to the provider that failed or were canceled.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: usize,
    /// Whether earlier messages were replaced by a summary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compaction: bool,
    /// What the provider counted as sent, cached tokens included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Of these, read from the prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The tokens of the reply, as the provider counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Why the reply ended, in the provider's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The request beside the one before. `None` if requests have no form for the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<ReceiptPrefix>,
}

/// What a prompt cache can reuse.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReceiptPrefix {
    /// Bytes of the request.
    pub bytes: u64,
    /// Tokens of the request.
    pub tokens: u64,
    /// Bytes that it and the request before begin with.
    pub shared_bytes: u64,
    /// Tokens that both begin with.
    pub shared_tokens: u64,
    /// How much of the request before can be reused, in percent. `None` for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused_percent: Option<u64>,
    /// Why the prefix ends, as [`Cause`](crate::inspect::Cause) spells it in JSON; `None` if all of it can be reused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What the first byte that differs is a part of: `parameter`, `tool`, `system` or `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What would keep the prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<&'static str>,
}

/// The committed snapshots of `history` without their content. Requests are compared in the
/// form of the session. All snapshots have to be in memory ([`History::fetch_all`]).
///
/// A hash says nothing about a text to those who do not have it, except that a short text can be
/// found by trying all of them. Costs as much as [`PrefixReport`](crate::inspect::PrefixReport), and the distinct texts.
///
/// ```
/// use pactql::Session;
/// use pactql::inspect::share::receipt;
/// use pactql::inspect::{Counts, Tokenizer};
///
/// let session = Session::open("fixtures/weather.json")?;
/// let receipt = receipt(&session.history(), &mut Counts::new(Tokenizer::Bytes4));
/// assert_eq!(receipt.blocks[0].sha256.len(), 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn receipt(history: &History, counts: &mut Counts) -> Receipt {
    let table = ShareTable::new(history, counts);
    let (found, _) = by_cycle(history, None, None, counts);
    let blocks = table.blocks.list.iter();
    let blocks: Vec<ReceiptBlock> = blocks.map(|block| without_content(block, &table)).collect();
    let mut shape = StepShape::default();
    let steps = table.steps.iter();
    let steps = steps.map(|step| {
        shape.change(&step.splices, &blocks);
        of_step(step, &shape, found.get(&step.snapshot.cycle()))
    });
    Receipt {
        format: "pactql receipt 1",
        tokenizer: counts.tokenizer(),
        provider: form_of(history),
        reconstructed: table.steps.iter().any(|step| step.call.reconstructed),
        steps: steps.collect(),
        blocks,
    }
}

#[derive(Default)]
struct StepShape {
    list: Vec<u32>,
    roles: BTreeMap<&'static str, u64>,
    kinds: BTreeMap<&'static str, u64>,
}

impl StepShape {
    fn change(&mut self, splices: &[Splice], blocks: &[ReceiptBlock]) {
        let mut count = |block: u32, more: i64| {
            let block = &blocks[block as usize];
            for (counts, name) in [(&mut self.roles, block.role), (&mut self.kinds, block.kind)] {
                let count: &mut u64 = counts.entry(name).or_default();
                *count = count.saturating_add_signed(more);
            }
        };
        for (at, removed, added) in splices {
            added.iter().for_each(|block| count(*block, 1));
            let gone = self.list.splice(*at..at + removed, added.iter().copied());
            gone.for_each(|block| count(block, -1));
        }
        self.roles.retain(|_, count| *count > 0);
        self.kinds.retain(|_, count| *count > 0);
    }
}

fn without_content(block: &TableBlock, table: &ShareTable) -> ReceiptBlock {
    let text = table.text(block);
    let kind = block.kind.as_deref();
    ReceiptBlock {
        region: block.region,
        role: usual(&ROLES, &block.role),
        kind: kind.map_or("none", |kind| usual(&KINDS, kind)),
        tool: block.tool.as_deref().and_then(name),
        error: block.error,
        bytes: text.text.len() as u64,
        tokens: block.tokens,
        sha256: hex(&text.hash),
    }
}

fn of_step(step: &TableStep, shape: &StepShape, prefix: Option<&PrefixStep>) -> ReceiptStep {
    let call = &step.call;
    let mut calls = BTreeMap::new();
    for event in &step.events {
        if let StepEvent::Calls { tools } = event {
            for (tool, count) in tools {
                let name = name(tool).unwrap_or_else(|| OTHER.to_owned());
                *calls.entry(name).or_default() += count;
            }
        }
    }
    ReceiptStep {
        cycle: step.snapshot.cycle(),
        time: time_of(&step.snapshot).filter(|time| is_time(time)),
        model: call.model.as_deref().and_then(name),
        blocks: step.blocks,
        bytes: step.bytes,
        tokens: step.tokens,
        by_role: shape.roles.clone(),
        by_kind: shape.kinds.clone(),
        changes: step.splices.clone(),
        calls,
        failed: call.failed + call.canceled,
        compaction: call.compaction,
        input_tokens: call.input_tokens,
        cached_tokens: call.cached_tokens,
        output_tokens: call.output_tokens,
        stop_reason: call.stop_reason.as_deref().and_then(name),
        prefix: prefix.map(of_prefix),
    }
}

fn of_prefix(prefix: &PrefixStep) -> ReceiptPrefix {
    let difference = prefix.difference.as_ref();
    ReceiptPrefix {
        bytes: prefix.bytes,
        tokens: prefix.tokens,
        shared_bytes: prefix.shared_bytes,
        shared_tokens: prefix.shared_tokens,
        reused_percent: prefix.before.map(|_| prefix.reused_percent()),
        cause: difference.and_then(|found| tag(&found.cause, "cause")),
        place: difference.and_then(|found| tag(&found.place, "in")),
        mend: difference.map(|found| found.mend),
    }
}

/// Which variant a value is, by the member `name` of its JSON.
fn tag(value: &impl Serialize, name: &str) -> Option<String> {
    let json = serde_json::to_value(value).ok()?;
    Some(json.get(name)?.as_str()?.to_owned())
}

const OTHER: &str = "other";

const ROLES: [&str; 7] = words![system developer user assistant tool function model];

const KINDS: [&str; 11] = [
    "text", "call", "result", "image", "document", "thinking", "summary", "error", "tool", "audio",
    "code",
];

fn usual(words: &[&'static str], word: &str) -> &'static str {
    let mut words = words.iter();
    words.find(|known| **known == word).unwrap_or(&OTHER)
}

/// The name of a tool, a model or a reason, if it looks like one: letters, digits and a few signs.
fn name(text: &str) -> Option<String> {
    let sign = |letter: char| letter.is_ascii_alphanumeric() || "_-.:/@".contains(letter);
    let is_name = !text.is_empty() && text.len() <= 96 && text.chars().all(sign);
    is_name.then(|| text.to_owned())
}

fn is_time(text: &str) -> bool {
    let sign = |letter: char| letter.is_ascii_digit() || "-:.+TZtz ".contains(letter);
    text.len() <= 40
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(sign)
}
