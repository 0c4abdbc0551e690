//! Requests of which the provider read less from its cache than it could have: how much, for what price, and the
//! likely cause.
//!
//! The bytes of such a request begin as those of the one before, so the cause is not in them.

use super::PrefixStep;
use crate::index::Snapshot;
use crate::inspect::across::parameters;
use crate::inspect::call::{Call, cycle_of, is_reply};
use crate::inspect::part::Region;
use crate::inspect::prices::{Money, Price};
use crate::inspect::sent::scaled;
use crate::inspect::steps::gap_ms;
use crate::json::{JsonValue, get, members};
use crate::render::Provider;
use crate::support::text::amount;
use serde::Serialize;

/// What a provider read less than it could have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Missed {
    /// What it could have read: the tokens of the request before, as it counted them, as far as this one begins
    /// with the same bytes.
    pub readable_tokens: u64,
    /// What it read.
    pub read_tokens: u64,
    /// What the tokens that it did not read cost more than if it had. `None` without a price of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nano_dollars: Option<Money>,
    /// From the reply before to the newest input of the request, in milliseconds, if the log has times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_ms: Option<u64>,
    /// The parameters that changed and are not in these bytes, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
    /// The likely cause.
    pub cause: MissCause,
}

/// Why a provider read less than it could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MissCause {
    /// The prefix is shorter than what the provider caches.
    BelowMinimum,
    /// No request came for longer than the cache lives.
    Idle,
    /// A parameter that the cache may depend on changed.
    Parameter,
    /// The request before did not mark anything for the cache.
    NoMark,
    /// The last mark of the request before was not at its end.
    EarlyMark,
    /// More than 20 blocks were added since the last mark.
    FarMark,
    /// None of these.
    Unknown,
}

impl MissCause {
    /// The cause in words, and what would mend it.
    pub(in crate::inspect) fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::BelowMinimum => (
                "the prefix is shorter than what the provider caches",
                "nothing: it is too short",
            ),
            Self::Idle => (
                "idle for longer than the cache lives",
                "ask for a cache of an hour, or send a short request before it ends",
            ),
            Self::Parameter => (
                "a parameter changed that the cache may depend on",
                "keep the parameters of a session",
            ),
            Self::NoMark => (
                "the request before had no `cache_control` mark",
                "mark the last block of each request",
            ),
            Self::EarlyMark => (
                "the last `cache_control` mark was not at the end of the request before",
                "mark the last block of each request",
            ),
            Self::FarMark => (
                "more than 20 blocks since the last `cache_control` mark",
                "set a mark every 20 blocks",
            ),
            Self::Unknown => ("unknown", "ask the provider"),
        }
    }
}

impl Missed {
    /// What a provider missed of a request after another; `None` if it read nine tenths of what it could have, or
    /// does not say. `price` is that of the model.
    pub(super) fn new(
        provider: Provider,
        (before, call_before): (&Snapshot, &Call),
        snapshot: &Snapshot,
        step: &PrefixStep,
        price: Option<&Price>,
    ) -> Option<Self> {
        let call = &step.call;
        let (read, all) = (call.cached_tokens?, call_before.input_tokens?);
        let readable = match &step.difference {
            None => all,
            // The part of its tokens that is the part of ours.
            Some(_) => scaled(step.shared_tokens, step.tokens_before, all),
        };
        // OpenAI's caches have steps of this many tokens.
        let step_of_cache = match provider {
            Provider::OpenAi | Provider::OpenAiResponses => 128,
            _ => 1,
        };
        let readable = readable - readable % step_of_cache;
        let missed = readable.checked_sub(read)?;
        if missed <= readable / 10 {
            return None;
        }
        let written = missed.min(call.cache_write_tokens.unwrap_or(0));
        let paid = Call {
            input_tokens: Some(missed),
            cached_tokens: Some(0),
            cache_write_tokens: Some(written),
            cache_write_1h_tokens: call.cache_write_1h_tokens.map(|hour| hour.min(written)),
            output_tokens: None,
            ..call.clone()
        };
        let money = price.and_then(|price| {
            let (paid, cached) = (price.of_call(&paid)?, price.of_cached(missed));
            Some(Money(paid.0.saturating_sub(cached.0)))
        });
        let changed = parameters(before, snapshot).into_iter();
        let changed: Vec<String> = changed.map(|change| change.name).collect();
        let gap_ms = gap_ms(before, snapshot);
        let marks = Marks::from_snapshot(before);
        let lives = if marks.one_hour || call_before.cache_write_1h_tokens > Some(0) {
            3_600_000
        } else {
            300_000
        };
        let cause = match (marks.last, Marks::from_snapshot(snapshot).last) {
            _ if readable < minimum(call.model.as_deref().unwrap_or_default()) => {
                MissCause::BelowMinimum
            }
            _ if gap_ms > Some(lives) => MissCause::Idle,
            _ if !changed.is_empty() => MissCause::Parameter,
            // A transcript does not say what was marked, and other providers need no marks.
            _ if call.reconstructed || !marks.are_needed => MissCause::Unknown,
            (None, _) => MissCause::NoMark,
            (Some(last), Some(now)) if now.saturating_sub(last) > 20 => MissCause::FarMark,
            (Some(last), _) if last + 1 < marks.blocks => MissCause::EarlyMark,
            _ => MissCause::Unknown,
        };
        Some(Self {
            readable_tokens: readable,
            read_tokens: read,
            nano_dollars: money,
            gap_ms,
            parameters: changed,
            cause,
        })
    }

    /// Whether nothing in the log explains it.
    pub(super) fn is_unexplained(&self) -> bool {
        self.cause == MissCause::Unknown
    }

    /// What happened, as lines below that of the request.
    pub(super) fn lines(&self) -> [String; 2] {
        let (cause, mend) = self.cause.text();
        let mut what = format!(
            "the provider read {} of {} tokens that it could have",
            amount(self.read_tokens),
            amount(self.readable_tokens)
        );
        if let Some(money) = self.nano_dollars {
            what += &format!(", {money} more");
        }
        let gap = self.gap_ms.map(|gap| {
            let gap = in_units(gap.saturating_add(500) / 1_000);
            format!("{gap} after the reply before")
        });
        let changed = self.parameters.iter();
        let changed = changed.map(|name| format!("`{name}` changed"));
        let facts: Vec<String> = gap.into_iter().chain(changed).collect();
        let facts = match &facts[..] {
            [] => String::new(),
            facts => format!(" ({})", facts.join(", ")),
        };
        [what, format!("likely: {cause}{facts}; to mend it: {mend}")]
    }
}

/// A span of time in two units at most, such as `5 min 50 s`.
fn in_units(seconds: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (whole, rest) = match seconds {
        0..120 => return format!("{seconds} s"),
        120..7200 => (format!("{minutes} min"), (seconds % 60, "s")),
        _ => (format!("{hours} h"), (minutes % 60, "min")),
    };
    match rest {
        (0, _) => whole,
        (rest, unit) => format!("{whole} {rest} {unit}"),
    }
}

/// The tokens below which a model's provider caches nothing.
fn minimum(model: &str) -> u64 {
    match model {
        _ if model.contains("opus-4-5") || model.contains("haiku-4-5") => 4096,
        _ if model.contains("haiku") => 2048,
        _ => 1024,
    }
}

/// What a request marks for the cache.
#[derive(Default)]
struct Marks {
    blocks: usize,
    last: Option<usize>,
    one_hour: bool,
    /// Whether the provider caches only what is marked.
    are_needed: bool,
}

impl Marks {
    fn from_snapshot(snapshot: &Snapshot) -> Self {
        let cycle = cycle_of(snapshot).to_string();
        let mut marks = Self::default();
        for node in snapshot.nodes() {
            if Region::containing(node).is_none() || is_reply(node, &cycle) {
                continue;
            }
            let form = node.field("data_form").and_then(JsonValue::text);
            marks.are_needed |= matches!(form, Some("anthropic" | "bedrock"));
            let own = node.field("data_cache_control").map(JsonValue::canonical);
            let part = node.field("data_part").map(JsonValue::canonical);
            let of_part = part.as_deref().map(members).unwrap_or_default();
            let mark = own.as_deref().or_else(|| get(&of_part, "cache_control"));
            if let Some(mark) = mark {
                marks.last = Some(marks.blocks);
                marks.one_hour |= mark.contains("\"1h\"");
            }
            marks.blocks += 1;
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn spans_are_not_cut_off() {
        for (seconds, expected) in [
            (119, "119 s"),
            (120, "2 min"),
            (172, "2 min 52 s"),
            (350, "5 min 50 s"),
            (7_200, "2 h"),
            (13_500, "3 h 45 min"),
        ] {
            assert_eq!(super::in_units(seconds), expected);
        }
    }
}
