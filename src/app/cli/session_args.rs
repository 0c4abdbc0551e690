//! Arguments that say which sessions a command reads, which snapshots of them, and which nodes of those.

use super::command::Invocation;
use super::read_sessions::or_newest;
use super::typed::{self, take_time};
use super::words::address;
use crate::app::present::stores::StoreAddress;
use crate::app::present::{Exit, Failure, Result};
use crate::inspect::{Part, Prices};
use crate::json::{get, members, string};
use crate::tree::timestamp::nanos_of_rfc3339;
use clap::Args;

/// The help on the sessions of a command that is about all logs where none is named.
pub(super) const EVERY_LOG: &str = "Sessions: files, directories, `FILE#name` of a log, `STORE#name`, `STORE#glob`, `STORE`, or \
     `-` for standard input [default: all logs that agents keep on this machine]";

/// The sessions of a command.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct SessionsArgs {
    /// Sessions: files, directories, `FILE#name` of a log, `STORE#name`, `STORE#glob`, `STORE`, or `-` for standard input
    /// [default: the newest log of an agent that ran in this directory, else the newest on this machine].
    #[arg(value_name = "SESSION")]
    pub(super) sessions: Vec<String>,
    /// Only sessions whose newest snapshot was committed at this time or later: a date, or a date and a time with its
    /// zone, such as 2026-01-31T09:00:00Z. Snapshots of a log without times were committed when it was imported into a
    /// store; in a file they have no time.
    #[arg(long, value_name = "TIME", value_parser = first_of_day, help_heading = "Which sessions")]
    since: Option<i64>,
    /// Only sessions whose newest snapshot was committed at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = last_of_day, help_heading = "Which sessions")]
    until: Option<i64>,
    /// Only sessions whose newest snapshot has this value in `meta` or `meta.request`, such as model=gpt-4o; may be given
    /// several times, and all must hold.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = "Which sessions")]
    meta: Vec<(String, String)>,
    /// Whether the branches and subagents of a log that is named are opened, too, as those of a log in a folder are.
    #[arg(skip)]
    pub(super) whole: bool,
}

impl SessionsArgs {
    /// The address of all that is read, if that is one of several sessions of a store and no option chooses among them.
    pub(super) fn whole_store<'w>(&self, words: &'w [String]) -> Option<StoreAddress<'w>> {
        let [word] = words else { return None };
        let address = StoreAddress::parse(word)?;
        (address.is_several() && self.is_all()).then_some(address)
    }

    /// Whether no option chooses among the sessions.
    pub(super) fn is_all(&self) -> bool {
        self.since.is_none() && self.until.is_none() && self.meta.is_empty()
    }

    /// Whether a session is chosen whose newest commit has this time and this `meta`.
    pub(super) fn has(&self, committed_at_ns: Option<i64>, meta: Option<&str>) -> bool {
        let after = |since| committed_at_ns >= Some(since);
        let before = |until| committed_at_ns.is_some_and(|time| time <= until);
        let has = |pair| meta.is_some_and(|meta| has(meta, pair));
        self.since.is_none_or(after) && self.until.is_none_or(before) && self.meta.iter().all(has)
    }
}

/// The sessions of a command, and the part of each that it is about.
#[derive(Args, Debug)]
pub(super) struct InspectedArgs {
    #[command(flatten)]
    pub(super) sessions: SessionsArgs,
    #[command(flatten)]
    time: TimeArgs,
    /// Only the nodes that a selector without a time matches, and what is below them.
    #[arg(long = "where", value_name = "SELECTOR", allow_hyphen_values = true)]
    selector: Option<String>,
}

impl InspectedArgs {
    /// Whether an address or a range is given.
    pub(super) fn has_time(&self) -> Result<bool> {
        let given = self.time.at.as_ref().or(self.time.over.as_ref());
        Ok(take_time(&self.sessions.sessions, given)?.1.is_some())
    }

    /// The sessions, which snapshots of them, and which nodes; `default` are the snapshots without a time. A `first`
    /// session may be before the others.
    pub(super) fn split(
        &self,
        first: Option<&String>,
        default: Part,
        with: &Invocation,
    ) -> Result<(SessionsArgs, Part)> {
        let words = first.into_iter().chain(&self.sessions.sessions);
        let words: Vec<String> = words.cloned().collect();
        let (names, part) = self.time.split(&words, default)?;
        let sessions = SessionsArgs {
            sessions: or_newest(&names, with.limits)?,
            ..self.sessions.clone()
        };
        let part = match &self.selector {
            Some(selector) => part.only(selector),
            None => part,
        };
        Ok((sessions, part))
    }
}

/// Which snapshots of a session.
#[derive(Args, Debug)]
pub(super) struct TimeArgs {
    /// One snapshot, such as @t0, @t-2, 12 or latest; also as an argument [default: `steps`, `prefix` and `grep` look
    /// at all snapshots, other commands at the working state, or without one at the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    /// A range of snapshots, such as @history or @t-9..@t0.
    #[arg(long, value_name = "RANGE", conflicts_with = "at")]
    #[arg(allow_hyphen_values = true)]
    over: Option<String>,
}

impl TimeArgs {
    /// Whether an option names snapshots.
    pub(super) fn is_given(&self) -> bool {
        self.at.is_some() || self.over.is_some()
    }

    /// The sessions among words, and the snapshots that a word or an option names; `default` without both.
    pub(super) fn split(&self, words: &[String], default: Part) -> Result<(Vec<String>, Part)> {
        let (names, typed) = take_time(words, self.at.as_ref().or(self.over.as_ref()))?;
        let part = typed.map_or(default.clone(), |typed| {
            let time = typed::time(&typed).unwrap_or_else(|| typed.clone());
            let is_one = self.over.is_none() && (time.is_empty() || address(&time).is_some());
            if is_one || self.at.is_some() {
                default.at(time)
            } else {
                default.over(time)
            }
        });
        Ok((names, part))
    }
}

/// What tokens cost.
#[derive(Args, Debug)]
pub(super) struct PriceArgs {
    /// A table of prices in place of the one in the program: {"date": …, "models": {NAME: {"input": …,
    /// "cached_input": …, "cache_write": …, "cache_write_1h": …, "output": …}}}, in dollars a million tokens.
    #[arg(long, value_name = "FILE")]
    prices: Option<String>,
    /// The model of calls of which the log names none: what they cost, and how their tokens are counted.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

impl PriceArgs {
    pub(super) fn table(&self) -> Result<Prices> {
        let prices = match &self.prices {
            None => Prices::default(),
            Some(file) => {
                let text = std::fs::read_to_string(file);
                let text = text.map_err(|error| Failure::file(file, &error))?;
                Prices::parse(&text)
                    .map_err(|error| Failure::plain(Exit::Input, format!("{file}: {error}")))?
            }
        };
        Ok(prices.model(self.model.clone()))
    }
}

/// Whether `meta`, or the request in it, has a value: a text, or what is written like it.
fn has(meta: &str, (key, value): &(String, String)) -> bool {
    let is = |json: &str| string(json).map_or(json == value, |text| text == **value);
    let meta = members(meta);
    let request = get(&meta, "request").map(|request| string(request).unwrap_or(request.into()));
    let request = request.as_deref().map(members).unwrap_or_default();
    let mut all = meta.iter().chain(&request);
    all.any(|(name, found)| name == key && is(found))
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as model=gpt-4o".to_owned()),
    }
}

pub(super) fn first_of_day(text: &str) -> Result<i64, String> {
    time(text, "T00:00:00Z")
}

fn last_of_day(text: &str) -> Result<i64, String> {
    time(text, "T23:59:59.999999999Z")
}

/// A time in nanoseconds since 1970; of a date alone, with the rest.
fn time(text: &str, rest: &str) -> Result<i64, String> {
    let whole = match text.len() {
        10 => nanos_of_rfc3339(&format!("{text}{rest}")),
        _ => nanos_of_rfc3339(text),
    };
    whole.ok_or_else(|| {
        "expected a date such as 2026-01-31, or a time such as 2026-01-31T09:00:00Z".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::{first_of_day, has, last_of_day};

    #[test]
    fn days() {
        let day = 86_400_000_000_000;
        assert_eq!(first_of_day("1970-01-02"), Ok(day));
        assert_eq!(last_of_day("1970-01-02"), Ok(2 * day - 1));
        assert_eq!(last_of_day("1970-01-02T00:00:00Z"), Ok(day));
        assert!(first_of_day("2026-02-30").is_err() && first_of_day("now").is_err());
    }

    #[test]
    fn values_of_meta() {
        let meta = r#"{"source":"transcript","request":{"model":"gpt-4o","n":1},"tries":2}"#;
        for (key, value, expected) in [
            ("model", "gpt-4o", true),
            ("model", "gpt-4", false),
            ("n", "1", true),
            ("source", "transcript", true),
            ("tries", "2", true),
            ("none", "", false),
        ] {
            assert_eq!(
                has(meta, &(key.into(), value.into())),
                expected,
                "{key}={value}"
            );
        }
        let text = r#"{"request":"{\"model\":\"o3\"}"}"#;
        assert!(has(text, &("model".into(), "o3".into())));
    }
}
