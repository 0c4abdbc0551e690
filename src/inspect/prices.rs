//! What tokens cost: a dated table of prices, and amounts of money (INSPECT §3).
//!
//! Money is counted in nano-dollars, in integers.

use super::call::Call;
use super::tokenizer::plain_name;
use crate::history::History;
use crate::index::Snapshot;
use crate::json::{Reader, get, members, string};
use serde::Serialize;
use std::fmt;
use std::iter::Sum;
use std::ops::Add;

const TABLE: &str = include_str!("prices.json");

/// An amount of money in nano-dollars. Shown in dollars with six decimals, rounded, half up.
///
/// ```
/// use pactql::inspect::Money;
/// assert_eq!(Money(1_234_500).to_string(), "$0.001235");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Money(pub u64);

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micro = self.0 / 1_000 + u64::from(self.0 % 1_000 >= 500);
        write!(f, "${}.{:06}", micro / 1_000_000, micro % 1_000_000)
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self(0), Self::add)
    }
}

/// What the tokens of a model cost, each in nano-dollars, which is a thousandth of the price of a million
/// tokens in dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Price {
    /// A token that is sent.
    pub input: u64,
    /// A token that is sent and read from the prompt cache; as others, if there is no such price.
    pub cached_input: Option<u64>,
    /// A token that is sent and written to the prompt cache; as others, if there is no such price.
    pub cache_write: Option<u64>,
    /// A token that is sent and written to the prompt cache for an hour; as `cache_write`, if there is no such
    /// price.
    pub cache_write_1h: Option<u64>,
    /// A token of the reply.
    pub output: u64,
}

impl Price {
    /// What `tokens` that are sent cost without a cache.
    #[must_use]
    pub fn of_input(&self, tokens: u64) -> Money {
        Money(tokens.saturating_mul(self.input))
    }

    /// What `tokens` that are sent and read from the cache cost.
    #[must_use]
    pub fn of_cached(&self, tokens: u64) -> Money {
        Money(tokens.saturating_mul(self.cached_input.unwrap_or(self.input)))
    }

    /// What `tokens` of a reply cost.
    #[must_use]
    pub fn of_output(&self, tokens: u64) -> Money {
        Money(tokens.saturating_mul(self.output))
    }

    /// What a call cost by the provider's own counts; `None` if it says nothing of the input.
    #[must_use]
    pub fn of_call(&self, call: &Call) -> Option<Money> {
        let input = call.input_tokens?;
        let cached = call.cached_tokens.unwrap_or(0).min(input);
        let written = call.cache_write_tokens.unwrap_or(0).min(input - cached);
        let hour = call.cache_write_1h_tokens.unwrap_or(0).min(written);
        let write = self.cache_write.unwrap_or(self.input);
        let write_1h = self.cache_write_1h.unwrap_or(write);
        Some(
            self.of_input(input - cached - written)
                + self.of_cached(cached)
                + Money((written - hour).saturating_mul(write))
                + Money(hour.saturating_mul(write_1h))
                + self.of_output(call.output_tokens.unwrap_or(0)),
        )
    }
}

/// A dated table of prices.
///
/// The JSON is an object with `date` and `models`, an object with the prices of each model: `input`,
/// `output` and, where there are such prices, `cached_input`, `cache_write` and `cache_write_1h`, in dollars a
/// million tokens with at most three decimals.
///
/// ```
/// use pactql::inspect::{Money, Prices};
/// let prices = Prices::parse(r#"{"date":"2026-01-31","models":{"mine":{"input":0.5,"output":2}}}"#)?;
/// let price = prices.find("mine-2026-01-01").expect("a price");
/// assert_eq!(price.of_input(1_000_000), Money(500_000_000));
/// assert!(prices.find("mine-large").is_none());
/// # Ok::<(), pactql::inspect::PriceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    date: String,
    models: Vec<(String, Price)>,
    /// The model of calls that name none.
    model: Option<String>,
}

/// A table of prices that cannot be read. See [`Prices::parse`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PriceError(String);

impl Default for Prices {
    fn default() -> Self {
        let none = |_| Self {
            date: String::new(),
            models: Vec::new(),
            model: None,
        };
        // A test reads it.
        Self::parse(TABLE).unwrap_or_else(none)
    }
}

impl Prices {
    /// Reads a table.
    ///
    /// # Errors
    /// What is wrong, and of which model.
    pub fn parse(text: &str) -> Result<Self, PriceError> {
        let error = |message: &str| PriceError(message.to_owned());
        let mut reader = Reader::new(text);
        let whole = reader.skip_value().map_err(|_| error("expected JSON"))?;
        if reader.end().is_err() || !reader.problems().is_empty() {
            return Err(error("expected one JSON object without repeated keys"));
        }
        let table = members(whole);
        let date = get(&table, "date").and_then(string);
        let date =
            date.ok_or_else(|| error("expected a string as `date`, such as \"2026-01-31\""))?;
        let models = get(&table, "models").filter(|models| models.starts_with('{'));
        let models = models.ok_or_else(|| error("expected an object as `models`"))?;
        let models = members(models).into_iter();
        let models: Result<Vec<(String, Price)>, PriceError> = models
            .map(|(name, raw)| Ok((plain_name(&name), price(&name, raw)?)))
            .collect();
        Ok(Self {
            date: date.into_owned(),
            models: models?,
            model: None,
        })
    }

    /// Sets the model of calls that name none: for what they cost, and how their tokens are counted.
    #[must_use]
    pub fn model(mut self, model: impl Into<Option<String>>) -> Self {
        self.model = model.into();
        self
    }

    /// The model of calls that name none, if one is set.
    pub(super) fn model_otherwise(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// A call; if it names no model, with the one that is set.
    pub(super) fn with_model(&self, mut call: Call) -> Call {
        call.model = call.model.or_else(|| self.model.clone());
        call
    }

    /// The call of a snapshot of a history, as [`Self::with_model`].
    pub(super) fn call(&self, history: &History, snapshot: &Snapshot) -> Call {
        self.with_model(Call::in_history(history, snapshot))
    }

    /// The day of the prices.
    #[must_use]
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The prices of a model by the name that requests give it, without what gateways add: the name in the table,
    /// else the longest one there that a date or `-latest` follows.
    #[must_use]
    pub fn find(&self, model: &str) -> Option<&Price> {
        let name = plain_name(model);
        let is = |known: &str| {
            let rest = name.strip_prefix(known);
            rest.is_some_and(|rest| {
                // `-2024-05-13`, `-20250929`, `-0613`; but `-6` is another model.
                let date = rest.strip_prefix(['-', '@']).unwrap_or_default();
                let digits = date.find('-').unwrap_or(date.len());
                let is_date = |letter: char| letter.is_ascii_digit() || letter == '-';
                rest.is_empty() || rest == "-latest" || digits >= 4 && date.chars().all(is_date)
            })
        };
        let found = self.models.iter().filter(|(known, _)| is(known));
        let found = found.max_by_key(|(known, _)| known.len());
        found.map(|(_, price)| price)
    }
}

fn price(model: &str, raw: &str) -> Result<Price, PriceError> {
    let found = members(raw);
    let of = |name: &str| match get(&found, name) {
        None | Some("null") => Ok(None),
        Some(raw) => decimal(raw, 3).map(Some).ok_or_else(|| {
            PriceError(format!(
                "expected dollars a million tokens with at most three decimals as `{name}` of \
                 `{model}`, found `{raw}`"
            ))
        }),
    };
    let required = |name: &str| {
        of(name)?
            .ok_or_else(|| PriceError(format!("expected `{name}` among the prices of `{model}`")))
    };
    Ok(Price {
        input: required("input")?,
        cached_input: of("cached_input")?,
        cache_write: of("cache_write")?,
        cache_write_1h: of("cache_write_1h")?,
        output: required("output")?,
    })
}

/// A decimal number with at most `most` decimals, in units of the last of them.
pub(super) fn decimal(raw: &str, most: usize) -> Option<u64> {
    let (whole, decimals) = raw.split_once('.').unwrap_or((raw, ""));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let has_point = whole.len() < raw.len();
    if !digits(whole) || has_point && !digits(decimals) || decimals.len() > most {
        return None;
    }
    format!("{whole}{decimals:0<most$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Money, Prices, decimal};
    use crate::inspect::Call;

    #[test]
    fn names_are_found_without_gateways_and_dates() {
        let prices = Prices::default();
        for (model, plain) in [
            (
                "converse/jp.anthropic.claude-sonnet-4-5-20250929-v1:0",
                "claude-sonnet-4-5",
            ),
            (
                "us.anthropic.claude-3-haiku-20240307-v1:0",
                "claude-3-haiku",
            ),
            ("vertex_ai/claude-opus-4-1@20250805", "claude-opus-4-1"),
            (
                "openrouter/anthropic/claude-sonnet-4.5:beta",
                "claude-sonnet-4-5",
            ),
            ("azure/gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
            ("OpenAI/GPT-4o-2024-08-06", "gpt-4o"),
            ("gpt-4-0613", "gpt-4"),
            ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ] {
            let found = prices.find(model);
            assert!(found.is_some(), "{model}");
            assert_eq!(found, prices.find(plain), "{model}");
        }
        // A name with its date stands before the one without.
        assert_eq!(
            prices.find("gpt-4o-2024-05-13").map(|price| price.input),
            Some(5_000)
        );
        for other in [
            "claude-opus-4-99",
            "claude-opus-4-9-20270101",
            "gpt-4o-audio",
            "ft:gpt-4o:me",
            "",
            "anthropic.",
        ] {
            assert_eq!(prices.find(other), None, "{other}");
        }
    }

    #[test]
    fn writes_to_the_cache_cost_by_how_long_they_are_kept() {
        let prices = Prices::default();
        let price = prices.find("claude-sonnet-4").expect("a price");
        let call = Call {
            input_tokens: Some(1_000),
            cached_tokens: Some(100),
            cache_write_tokens: Some(600),
            cache_write_1h_tokens: Some(200),
            output_tokens: Some(10),
            ..Call::default()
        };
        // 300 at $3, 100 at $0.30, 400 at $3.75, 200 at $6, 10 at $15 a million.
        assert_eq!(
            price.of_call(&call),
            Some(Money(900_000 + 30_000 + 1_500_000 + 1_200_000 + 150_000))
        );
    }

    #[test]
    fn decimals_are_exact() {
        for (raw, expected) in [
            ("0", Some(0)),
            ("3", Some(3_000)),
            ("18.75", Some(18_750)),
            ("0.005", Some(5)),
            ("0.0005", None),
            ("-1", None),
            ("1e3", None),
            (".5", None),
            ("1.", None),
            ("\"1\"", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(decimal(raw, 3), expected, "{raw}");
        }
    }

    #[test]
    fn money_is_rounded_half_up() {
        for (nanos, text) in [
            (0, "$0.000000"),
            (499, "$0.000000"),
            (500, "$0.000001"),
            (1_999_999_500, "$2.000000"),
            (u64::MAX, "$18446744073.709552"),
        ] {
            assert_eq!(Money(nanos).to_string(), text);
        }
    }
}
