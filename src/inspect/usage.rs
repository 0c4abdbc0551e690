//! What the calls of sessions used and cost, by the provider's own counts (INSPECT §3).

use super::call::{Call, CallOrigin, counts_without_reply};
use super::prices::{Money, Prices};
use super::report::no_price;
use crate::history::{History, Session};
use crate::json::{canonical, get, members, string};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::macros::names;
use crate::support::table::{Paint, TextTable};
use crate::support::text::{amount, counted, printable};
use hashbrown::HashMap;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What calls used, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Used {
    /// Calls to the provider.
    pub requests: u64,
    /// Tokens that were sent, cached or not.
    pub input_tokens: u64,
    /// Of these, read from the prompt cache.
    pub cached_tokens: u64,
    /// Of these, written to the prompt cache.
    pub cache_write_tokens: u64,
    /// Tokens of the replies.
    pub output_tokens: u64,
    /// The price of the calls that have one, in nano-dollars.
    pub nano_dollars: Money,
    /// Calls of which the provider's count of the input is not known.
    pub uncounted: u64,
    /// Of these, those of which the provider's count of the reply is known. It is in the sums.
    #[serde(skip_serializing_if = "is_none")]
    pub uncounted_inputs: u64,
    /// Calls of which the provider's count of the input is known and that of the reply is not.
    #[serde(skip_serializing_if = "is_none")]
    pub uncounted_replies: u64,
    /// Calls with counts whose model has no price.
    pub unpriced: u64,
    /// Calls without a reply, which are not in the sums, though the log says in `meta` what they used.
    #[serde(skip_serializing_if = "is_none")]
    pub unanswered: u64,
    /// Calls that have a price.
    #[serde(skip)]
    priced: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What is counted here of a call whose request is not kept, and where only the provider's counts are summed.
pub(super) fn uncounted() -> Option<(u64, u64)> {
    None
}

/// What was counted here of calls of which the provider's counts are not known. It is an estimate, and in no sum of
/// [`Used`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CountedHere {
    /// Calls whose input, reply or both were counted here.
    pub requests: u64,
    /// Tokens of their requests.
    pub input_tokens: u64,
    /// Tokens of their replies.
    pub output_tokens: u64,
    /// The price of these tokens, where the model has one, in nano-dollars.
    pub nano_dollars: Money,
    /// Of the calls those whose model has no price.
    #[serde(skip_serializing_if = "is_none")]
    pub unpriced: u64,
}

impl CountedHere {
    pub(super) fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// Adds what the provider's counts of a call lack; `ours` are the tokens of its request and of its reply.
    pub(super) fn add(&mut self, call: &Call, prices: &Prices, ours: impl FnOnce() -> (u64, u64)) {
        if !call.made || call.input_tokens.is_some() && call.output_tokens.is_some() {
            return;
        }
        let (input, output) = ours();
        let whole = Call {
            input_tokens: call.input_tokens.or(Some(input)),
            output_tokens: call.output_tokens.or(Some(output)),
            ..call.clone()
        };
        let lacked = |known: Option<u64>, ours| if known.is_none() { ours } else { 0 };
        let input = lacked(call.input_tokens, input);
        let output = lacked(call.output_tokens, output);
        let price = call.model.as_deref().and_then(|model| prices.find(model));
        let of = |call: &Call| price.and_then(|price| price.of_call(call));
        let [known, all] = [call, &whole].map(|call| of(call).unwrap_or_default().0);
        let requests = u64::from(input + output > 0);
        self.include(&Self {
            requests,
            input_tokens: input,
            output_tokens: output,
            nano_dollars: Money(all.saturating_sub(known)),
            unpriced: if price.is_none() { requests } else { 0 },
        });
    }

    pub(super) fn include(&mut self, other: &Self) {
        self.nano_dollars = self.nano_dollars + other.nano_dollars;
        for (sum, more) in [
            (&mut self.requests, other.requests),
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.unpriced, other.unpriced),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// What is said behind the provider's figures; nothing if nothing was counted here.
    fn line(&self, date: &str) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut parts = Vec::new();
        if self.input_tokens > 0 {
            parts.push(format!("{} tokens in", amount(self.input_tokens)));
        }
        if self.output_tokens > 0 {
            parts.push(format!("{} tokens out", amount(self.output_tokens)));
        }
        if self.nano_dollars.0 > 0 {
            parts.push(format!("{} at the prices of {date}", self.nano_dollars));
        }
        let requests = counted(self.requests, "request");
        let mut line = format!("; counted here of {requests}: {}", parts.join(", "));
        if self.unpriced > 0 && self.nano_dollars.0 > 0 {
            let unpriced = counted(self.unpriced, "request");
            let _ = write!(line, " ({unpriced} without a price)");
        }
        line
    }
}

/// Says that calls are not in the sums.
fn left_out(unanswered: u64) -> String {
    let calls = counted(unanswered, "call");
    format!("{calls} without a reply not in the sums; see `usage` in `meta`")
}

impl Used {
    /// Adds a call; nothing, if none was made. `ours` are the tokens of the request and of the reply as they are
    /// counted here, for a call of which the provider's counts are not known; without those of the request it has no price.
    pub(super) fn add(
        &mut self,
        call: &Call,
        prices: &Prices,
        ours: impl FnOnce() -> Option<(u64, u64)>,
    ) {
        for earlier in call.earlier() {
            self.add(&earlier, prices, uncounted);
        }
        self.add_last(call, prices, ours);
    }

    /// As [`Self::add`], without the completed calls of its cycle before it.
    fn add_last(
        &mut self,
        call: &Call,
        prices: &Prices,
        ours: impl FnOnce() -> Option<(u64, u64)>,
    ) {
        self.unanswered += call.unanswered as u64;
        if !call.made {
            return;
        }
        self.requests += 1;
        let mut call = Cow::Borrowed(call);
        if call.input_tokens.is_none() {
            self.uncounted += 1;
            self.uncounted_inputs += u64::from(call.output_tokens.is_some());
            let Some((input, output)) = ours() else {
                let reply = call.output_tokens.unwrap_or(0);
                self.output_tokens = self.output_tokens.saturating_add(reply);
                return;
            };
            let call = call.to_mut();
            call.input_tokens = Some(input);
            call.output_tokens.get_or_insert(output);
        } else if call.output_tokens.is_none() {
            let reply = ours().map(|(_, reply)| reply);
            self.uncounted_replies += u64::from(reply != Some(0));
            call.to_mut().output_tokens = reply;
        }
        for (sum, more) in [
            (&mut self.input_tokens, call.input_tokens),
            (&mut self.cached_tokens, call.cached_tokens),
            (&mut self.cache_write_tokens, call.cache_write_tokens),
            (&mut self.output_tokens, call.output_tokens),
        ] {
            *sum = sum.saturating_add(more.unwrap_or(0));
        }
        let price = call.model.as_deref().and_then(|model| prices.find(model));
        match price.and_then(|price| price.of_call(&call)) {
            Some(money) => {
                self.nano_dollars = self.nano_dollars + money;
                self.priced += 1;
            }
            None => self.unpriced += 1,
        }
    }

    /// Adds other sums.
    pub(super) fn include(&mut self, other: &Self) {
        self.nano_dollars = self.nano_dollars + other.nano_dollars;
        for (sum, more) in [
            (&mut self.requests, other.requests),
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.cached_tokens, other.cached_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.uncounted, other.uncounted),
            (&mut self.uncounted_inputs, other.uncounted_inputs),
            (&mut self.uncounted_replies, other.uncounted_replies),
            (&mut self.unpriced, other.unpriced),
            (&mut self.priced, other.priced),
            (&mut self.unanswered, other.unanswered),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// The price, if a call has one.
    pub(super) fn money(&self) -> Option<Money> {
        (self.priced > 0).then_some(self.nano_dollars)
    }

    /// The sums in one line, without a line feed, and apart from them what was counted here.
    pub(super) fn line(&self, here: &CountedHere, date: &str) -> String {
        let mut line = counted(self.requests, "request");
        if self.requests > self.uncounted {
            let _ = write!(line, ", {} tokens in", amount(self.input_tokens));
        }
        for (count, what) in [
            (self.cached_tokens, "of them cached"),
            (self.cache_write_tokens, "written to the cache"),
            (self.output_tokens, "out"),
        ] {
            if count > 0 {
                let _ = write!(line, ", {} {what}", amount(count));
            }
        }
        if let Some(money) = self.money() {
            let _ = write!(line, ", {money} at the prices of {date}");
        }
        if self.unpriced > 0 && self.money().is_some() {
            let _ = write!(
                line,
                " ({} without a price)",
                counted(self.unpriced, "request")
            );
        }
        if self.unanswered > 0 {
            let _ = write!(line, " ({})", left_out(self.unanswered));
        }
        line + &here.line(date)
    }
}

names! {
    /// What usage is summed by.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    #[non_exhaustive]
    pub enum UsageBy: as_str {
        /// The day of the reply, in UTC.
        #[default]
        Day = "day",
        /// The month of the reply.
        Month = "month",
        /// The model.
        Model = "model",
        /// The directory in which the agent worked.
        Project = "project",
        /// The session.
        Session = "session",
        /// The agent.
        Agent = "agent",
    }
}

/// What the calls of a group used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UsageGroup {
    /// What they have in common; `None` if a log does not say it.
    pub name: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub used: Used,
}

/// What the calls of any number of sessions used.
///
/// A response that several sessions have, as that of a resumed or forked one, is counted once: by its id, model and counted
/// input, or, where the log has no id, by its time and counts. Linear in the snapshots.
///
/// ```
/// use pactql::Session;
/// use pactql::inspect::{Prices, Usage, UsageBy};
/// let call = r#"{"cycle":1,"usage":{"input_tokens":1000,"response_id":"r1"},"meta":{"request":{"model":"gpt-4o"}},
///     "root":{"id":"root:1","nodeType":"root","children":[]}}"#;
/// let session = Session::from_slice(call.as_bytes())?;
/// let mut usage = Usage::new(UsageBy::Model, Prices::default());
/// usage.add("first", &session)?;
/// usage.add("resumed", &session)?;
/// assert_eq!((usage.total.requests, usage.repeated), (1, 1));
/// assert_eq!(usage.total.nano_dollars.to_string(), "$0.002500");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// What is summed by.
    pub by: UsageBy,
    /// How many sessions were added.
    pub sessions: u64,
    /// The sums, sorted by name.
    pub groups: Vec<UsageGroup>,
    /// The sum of all.
    pub total: Used,
    /// Responses that were left out, as they were counted before.
    pub repeated: u64,
    /// What was counted here besides, where reports of tokens were added.
    #[serde(skip_serializing_if = "CountedHere::is_empty")]
    pub counted_here: CountedHere,
    /// The day of the prices.
    pub prices: String,
    #[serde(skip)]
    table: Prices,
    /// What responses are known by, with the number of the session that had them first.
    #[serde(skip)]
    seen: HashMap<Digest, u64>,
    /// The models of calls without a price; `None` where a call names none.
    #[serde(skip)]
    without_price: BTreeSet<Option<String>>,
}

impl Usage {
    /// No session so far.
    #[must_use]
    pub fn new(by: UsageBy, prices: Prices) -> Self {
        Self {
            by,
            sessions: 0,
            groups: Vec::new(),
            total: Used::default(),
            repeated: 0,
            counted_here: CountedHere::default(),
            prices: prices.date().to_owned(),
            table: prices,
            seen: HashMap::new(),
            without_price: BTreeSet::new(),
        }
    }

    /// Adds the committed snapshots of a session.
    ///
    /// # Errors
    /// A snapshot of a store cannot be loaded.
    pub fn add(&mut self, name: &str, session: &Session) -> Result<(), Error> {
        let history = session.history();
        if let Some(calls) = history.calls()? {
            for commit in &calls {
                self.add_commit(name, &history, commit)?;
            }
        } else {
            history.fetch_range(0..history.committed().len())?;
            for snapshot in history.committed() {
                self.add_commit(name, &history, &**snapshot)?;
            }
        }
        self.sessions += 1;
        Ok(())
    }

    fn add_commit(
        &mut self,
        name: &str,
        history: &History,
        commit: &impl CallOrigin,
    ) -> Result<(), Error> {
        ensure();
        let mut call = self.table.with_model(Call::new(commit));
        if !call.made {
            // An attempt that failed is a request, too.
            history.fetch_attempts()?;
            call = call.with_attempts(history, commit.meta().cycle);
        }
        if !call.made && call.unanswered == 0
            || self.is_repeated(Response::new(commit).as_ref(), call.made)
        {
            return Ok(());
        }
        // Earlier calls of the cycle may have been to another model.
        let calls = call.earlier().map(Cow::Owned);
        for call in calls.chain([Cow::Borrowed(&call)]) {
            let mut used = Used::default();
            // What the provider does not say is not guessed.
            used.add_last(&call, &self.table, uncounted);
            self.include(self.group(name, commit, &call), &used);
            if used.unpriced > 0 {
                self.without_price.insert(call.model.clone());
            }
        }
        Ok(())
    }

    fn group(&self, name: &str, commit: &impl CallOrigin, call: &Call) -> Option<String> {
        let time = || commit.time();
        match self.by {
            UsageBy::Day => time().map(|time| time.chars().take(10).collect()),
            UsageBy::Month => time().map(|time| time.chars().take(7).collect()),
            UsageBy::Model => call.model.clone(),
            UsageBy::Session => Some(name.to_owned()),
            UsageBy::Project | UsageBy::Agent => {
                let meta = commit.meta().value("meta").map(members);
                let found = get(&meta.unwrap_or_default(), self.by.as_str());
                found.and_then(string).map(|text| text.into_owned())
            }
        }
    }

    /// Adds the calls of a session, each with what its response is known by, as a group with its name.
    pub(super) fn add_calls(
        &mut self,
        name: &str,
        calls: &[(Option<Response>, Used, CountedHere)],
    ) {
        for (response, used, here) in calls {
            if !self.is_repeated(response.as_ref(), used.requests > 0) {
                self.include(Some(name.to_owned()), used);
                self.counted_here.include(here);
            }
        }
        self.sessions += 1;
    }

    /// Whether what a commit has was counted before; then it is counted as repeated, if it is of a call.
    fn is_repeated(&mut self, response: Option<&Response>, made: bool) -> bool {
        let session = self.sessions;
        let repeated = match response {
            None => false,
            Some(Response::Id(id)) => self.seen.insert(*id, session).is_some(),
            // Calls of one session may be alike.
            Some(Response::Counts(known)) => {
                let first = known.map(|known| *self.seen.entry(known).or_insert(session));
                first.iter().any(|first| *first != session)
            }
        };
        self.repeated += u64::from(repeated && made);
        repeated
    }

    fn include(&mut self, group: Option<String>, used: &Used) {
        self.total.include(used);
        // Where no call was made, there may be tokens that are in no sum; a group of them alone would have nothing.
        if used.requests == 0 {
            return;
        }
        let at = self.groups.binary_search_by(|known| known.name.cmp(&group));
        let at = at.unwrap_or_else(|at| {
            let used = Used::default();
            self.groups.insert(at, UsageGroup { name: group, used });
            at
        });
        self.groups[at].used.include(used);
    }

    /// The sum of all in one line, which ends in a line feed.
    #[must_use]
    pub fn sum(&self) -> String {
        let sessions = counted(self.sessions, "session");
        let repeated = match self.repeated {
            0 => String::new(),
            count => format!("; {} counted once", counted(count, "repeated response")),
        };
        let line = self.total.line(&self.counted_here, &self.prices);
        format!("all {sessions}: {line}{repeated}\n")
    }

    /// The sums as a table, the total last. Every line ends in a line feed.
    #[must_use]
    pub fn text(&self, paint: Paint) -> String {
        let by = self.by.as_str();
        let titles = [
            by,
            "requests",
            "tokens in",
            "cached",
            "cache writes",
            "tokens out",
            "cost",
        ];
        let mut table = TextTable::new(titles).optional(&[4, 3]).hide_empty();
        for group in &self.groups {
            let name = group
                .name
                .as_deref()
                .map_or("(unknown)".to_owned(), printable);
            table.add(row(name, &group.used));
        }
        if self.groups.len() != 1 {
            table.add_last(row("total".to_owned(), &self.total));
        }
        let mut out = table.text(paint);
        let _ = writeln!(
            out,
            "{}, prices of {}",
            counted(self.sessions, "session"),
            self.prices
        );
        if self.repeated > 0 {
            let repeated = counted(self.repeated, "response");
            let _ = writeln!(out, "{repeated} of resumed or forked sessions counted once");
        }
        let total = &self.total;
        let neither = total.uncounted.saturating_sub(total.uncounted_inputs);
        for (count, what) in [
            (neither, "counts, whose tokens are not in the sums"),
            (
                total.uncounted_inputs,
                "count of the input, which is not in the sums",
            ),
            (
                total.uncounted_replies,
                "count of the reply, which is not in the sums",
            ),
        ] {
            if count > 0 {
                let calls = counted(count, "request");
                let _ = writeln!(out, "{calls} without the provider's {what}");
            }
        }
        if self.total.unanswered > 0 {
            let _ = writeln!(out, "{}", left_out(self.total.unanswered));
        }
        let unpriced = self.without_price.iter().map(Option::as_deref);
        out.push_str(&no_price(unpriced, &self.prices));
        out
    }
}

fn row(name: String, used: &Used) -> [String; 7] {
    let tokens = |count: u64| {
        if count == 0 {
            String::new()
        } else {
            amount(count)
        }
    };
    [
        name,
        amount(used.requests),
        tokens(used.input_tokens),
        tokens(used.cached_tokens),
        tokens(used.cache_write_tokens),
        tokens(used.output_tokens),
        used.money()
            .map_or_else(String::new, |money| money.to_string()),
    ]
}

/// A hash.
type Digest = [u8; 32];

/// What a response is known by where another session has a copy of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// Its id, with the model and the input that were counted: local servers give an id again.
    Id(Digest),
    /// The provider's counts with its time, and with the id of its session, or of the one from which that was forked: a copy
    /// may have the time of the fork.
    Counts([Digest; 2]),
}

impl Response {
    /// That of a commit, or of its calls without a reply; `None` if nothing is known of it.
    pub(super) fn new(commit: &impl CallOrigin) -> Option<Self> {
        let digest = |text: &str| Sha256::digest(text).into();
        let meta = members(commit.meta().value("meta").unwrap_or_default());
        let usage = match commit.meta().value("usage") {
            Some(usage) => Cow::Borrowed(usage),
            None => Cow::Owned(counts_without_reply(&meta).join(" ")),
        };
        if usage.is_empty() {
            return None;
        }
        let counts = members(&usage);
        if get(&counts, "response_id").and_then(string).is_some() {
            // A copy may have been written before the reply was whole, so the output makes no difference.
            let same = [
                "response_id",
                "model",
                "input_tokens",
                "cached_tokens",
                "cache_write_tokens",
            ];
            let same = same.map(|name| get(&counts, name).map(canonical).unwrap_or_default());
            return Some(Self::Id(digest(&same.join(","))));
        }
        let inside = |name| get(&meta, name).map(members).unwrap_or_default();
        let parent = inside("parent");
        let forked = get(&parent, "forked").and(get(&parent, "session_id"));
        let session = inside("session");
        let origin = forked.or_else(|| get(&session, "id"));
        let time = commit.time()?;
        let with = |word: &str| digest(&format!("{word} {usage}"));
        Some(Self::Counts([with(&time), with(origin.unwrap_or(&time))]))
    }
}
