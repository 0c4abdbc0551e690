//! What a prompt cache can reuse from one request to the next, and what broke it (INSPECT §4).
//!
//! Requests are compared as the bytes that a provider is sent, in the order in which it caches them:
//! the model, tools, parameters that the model reads, the system prompt, messages. `docs/inspecting.md`
//! says which and why.
//!
//! | part | file |
//! |---|---|
//! | the request of each snapshot, in pieces | `requests` |
//! | what comes before the messages | `pieces` |
//! | the block at a byte of a message | `locate` |
//! | why two requests differ | `compare`, `cause` |
//! | what the provider did not read although nothing differs | `missed` |
//!
//! This module knows sessions and the forms of requests. It must not know the command line.

mod cause;
mod compare;
mod locate;
mod missed;
mod pieces;
mod requests;

pub use cause::Cause;
pub use missed::{MissCause, Missed};
pub use pieces::Place;

use super::call::{Call, before, cycle_of, provider_of};
use super::groups::Counts;
use super::part::{ChosenSnapshot, Part};
use super::prices::{Money, Prices};
use super::report::{Report, ReportOptions};
use super::tokenizer::Tokenizer;
use crate::engine::{Engine, refused};
use crate::history::{At, History, LoadFailure, Session};
use crate::index::Snapshot;
use crate::query::ir::Address;
use crate::render::{Provider, RenderError, ThreadBlock};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::table::{Paint, Tint};
use crate::support::text::{amount, counted, escaped};
use compare::Tails;
use hashbrown::HashMap;
use pieces::RequestPiece;
use requests::{Before, Front, RequestMessage, SentRequests};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The comparison of the requests of neighbouring snapshots; without a time, of all committed ones.
///
/// An address alone is compared with the snapshot before. With a selector, only the breaks in blocks that it
/// matches, and the requests without a break, are listed. Costs what changes between neighbours, and a
/// comparison of their units.
///
/// ```
/// use pactql::inspect::{PrefixReport, Report, ReportOptions};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let found = PrefixReport::new(&Engine::new(), &session, &ReportOptions::default())?;
/// assert_eq!(found.steps.len(), 6);
/// let reused: Vec<u64> = found.steps.iter().map(|step| step.reused_percent()).collect();
/// assert!(reused.iter().all(|percent| *percent <= 100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PrefixReport {
    /// The API whose form the requests have.
    pub provider: Provider,
    /// How tokens are counted.
    pub tokenizer: Tokenizer,
    /// The day of the prices.
    pub prices: String,
    /// What the log itself says that the calls of these requests cost, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logged_nano_dollars: Option<Money>,
    /// Whether requests are worked out from a transcript, which does not say exactly what was sent.
    pub reconstructed: bool,
    /// The sums over the steps that the report has, also where only some of them are printed.
    pub totals: PrefixTotals,
    /// One for each request, oldest first.
    pub steps: Vec<PrefixStep>,
}

/// The sums over requests. All but their number leave out the first one, which has none before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PrefixTotals {
    /// The requests, with the first one.
    pub requests: u64,
    /// Those that are not the one before with more at the end.
    pub breaks: u64,
    /// Those of which the provider read less from its cache than it could have.
    pub misses: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes that a cache can read.
    pub shared_bytes: u64,
    /// Their tokens.
    pub tokens: u64,
    /// The tokens that a cache can read.
    pub shared_tokens: u64,
    /// The input tokens that the provider counted, where it says how many of them came from its cache.
    pub input_tokens: u64,
    /// Those that came from its cache.
    pub cached_tokens: u64,
}

impl PrefixTotals {
    fn new(steps: &[PrefixStep]) -> Self {
        let mut totals = Self {
            requests: steps.len() as u64,
            ..Self::default()
        };
        for step in steps.iter().filter(|step| step.before.is_some()) {
            totals.breaks += u64::from(step.difference.is_some());
            totals.misses += u64::from(step.missed.is_some());
            totals.bytes += step.bytes;
            totals.shared_bytes += step.shared_bytes;
            totals.tokens += step.tokens;
            totals.shared_tokens += step.shared_tokens;
            if let (Some(cached), Some(input)) = (step.call.cached_tokens, step.call.input_tokens) {
                totals.input_tokens = totals.input_tokens.saturating_add(input);
                totals.cached_tokens = totals.cached_tokens.saturating_add(cached);
            }
        }
        totals
    }
}

/// A request and the one before.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PrefixStep {
    /// The cycle of the request before; `None` for the first request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    /// The cycle of the request; that of a working state is one more than the newest.
    pub cycle: i64,
    /// Bytes of the request.
    pub bytes: u64,
    /// Bytes of the request before.
    pub bytes_before: u64,
    /// Bytes that both begin with.
    pub shared_bytes: u64,
    /// Tokens of the request, without what the API adds around messages.
    pub tokens: u64,
    /// Tokens of the request before.
    pub tokens_before: u64,
    /// Tokens that both begin with.
    pub shared_tokens: u64,
    /// Tokens of what both requests have, but behind the difference, so that a provider reads it again.
    pub again_tokens: u64,
    /// Where and why the request is not the one before with more at its end; `None` if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// What those tokens cost more than if they had been read from the cache. `None` without a difference, or a
    /// price of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_nano_dollars: Option<Money>,
    /// What the provider read less than it could have, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// What the snapshot says of the call.
    pub call: Call,
}

impl PrefixStep {
    fn miss(&self, prices: &Prices) -> Option<Money> {
        self.difference.as_ref()?;
        let price = prices.find(self.call.model.as_deref()?)?;
        let again = self.again_tokens;
        let (whole, cached) = (price.of_input(again), price.of_cached(again));
        Some(Money(whole.0.saturating_sub(cached.0)))
    }

    /// Whether it breaks nothing, and has no miss that the log explains.
    fn is_plain(&self) -> bool {
        let is_plain = self.missed.as_ref().is_none_or(Missed::is_unexplained);
        is_plain && self.difference.is_none()
    }

    /// How much of the request before is reused, in percent, rounded down. 100 only if it is all.
    #[must_use]
    pub fn reused_percent(&self) -> u64 {
        match self.bytes_before {
            0 => 100,
            before => self.shared_bytes * 100 / before,
        }
    }
}

/// The first difference of two requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The first byte that differs, counted from the start of the request.
    pub at: u64,
    /// What it is a part of.
    pub place: Place,
    /// The id of the block that it lies in: of the request, or of the one before if it has none there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// Why.
    #[serde(flatten)]
    pub cause: Cause,
    /// What would keep the prefix.
    pub mend: &'static str,
    /// The text around the byte in the request before; empty if it has ended.
    pub older: String,
    /// The text around the byte in the request; empty if it has ended.
    pub newer: String,
}

impl Difference {
    /// With the texts around byte `common` of both.
    fn new(
        at: u64,
        (place, block, cause): (Place, Option<String>, Cause),
        [older, newer]: [&str; 2],
        common: usize,
    ) -> Self {
        Self {
            at,
            place,
            block,
            mend: cause.mend(),
            cause,
            older: locate::excerpt(older, common),
            newer: locate::excerpt(newer, common),
        }
    }
}

impl Report for PrefixReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        history.fetch_attempts()?;
        if options.provider.is_none() && history.attempts().is_empty() {
            At::Working.fetch(&history)?;
        }
        let part = Self::part(options);
        let mut snapshots = part.snapshots(engine, &history)?;
        let before = match &snapshots[..] {
            [(_, only)] => since_request_before(&history, only)?,
            _ => Vec::new(),
        };
        let alone = !before.is_empty();
        snapshots.splice(0..0, before);
        let chosen = part.with_rows(engine, &history, snapshots);
        let chosen: Vec<ChosenSnapshot> = chosen.collect::<Result<_, _>>()?;
        let all = chosen.iter().map(|chosen| &chosen.snapshot);
        let mut counts = options.counts(all.clone());
        let found = walk(&history, all, options.provider, &mut counts);
        let mut found = found.map_err(|error| refused(&error))?;
        let requests = chosen.iter().filter(|chosen| is_request(&chosen.snapshot));
        let requests: Vec<&ChosenSnapshot> = requests.collect();
        let sent: Vec<&Snapshot> = requests.iter().map(|chosen| &*chosen.snapshot).collect();
        found.set_prices(&sent, &options.prices);
        if part.selector.is_some() {
            let has = |chosen: &ChosenSnapshot, id: &str| {
                let node = chosen.snapshot.find(id);
                node.is_some_and(|node| chosen.has(node))
            };
            let mut at = 0;
            found.steps.retain(|step| {
                // The block may be one of the request before.
                let both = &requests[usize::saturating_sub(at, 1)..=at];
                at += 1;
                step.difference.as_ref().is_none_or(|found| {
                    let block = found.block.as_deref();
                    block.is_some_and(|id| both.iter().any(|chosen| has(chosen, id)))
                })
            });
        }
        if alone {
            found.steps.retain(|step| step.before.is_some());
        }
        found.totals = PrefixTotals::new(&found.steps);
        Ok(found)
    }

    fn part(options: &ReportOptions) -> Part {
        options.part.or_history()
    }

    fn is_reconstructed(&self) -> bool {
        self.reconstructed
    }

    /// The sums, then the requests that break the prefix, or all.
    fn text(&self, options: &ReportOptions, paint: Paint) -> String {
        let mut out = String::new();
        let later = || self.steps.iter().filter(|step| step.before.is_some());
        let totals = self.totals;
        let requests = counted(totals.requests, "request");
        let breaks = counted(totals.breaks, "break");
        let misses = match totals.misses {
            0 => String::new(),
            1 => ", 1 cache miss".to_owned(),
            more => format!(", {more} cache misses"),
        };
        // A log need not say whom they were sent to.
        let _ = writeln!(
            out,
            "{requests} in the form of {}, {breaks}{misses}",
            self.provider
        );
        if later().next().is_none() {
            out.push_str("there is no request before it\n");
            return out;
        }
        let tokenizer = self.tokenizer;
        let kept = percent(totals.shared_bytes, totals.bytes);
        let kept_tokens = percent(totals.shared_tokens, totals.tokens);
        let [shared, bytes] = [totals.shared_bytes, totals.bytes].map(amount);
        let [shared_tokens, tokens] = [totals.shared_tokens, totals.tokens].map(amount);
        let _ = writeln!(
            out,
            "a cache can read {shared} of {bytes} bytes after the first request, {kept}, \
             and {shared_tokens} of {tokens} tokens ({tokenizer}), {kept_tokens}",
        );
        if totals.input_tokens > 0 {
            let kept = percent(totals.cached_tokens, totals.input_tokens);
            let [read, input] = [totals.cached_tokens, totals.input_tokens].map(amount);
            let _ = writeln!(
                out,
                "the provider read {read} of {input} tokens from its cache, {kept}"
            );
        }
        let date = &self.prices;
        let mut broken = later()
            .filter_map(|step| step.missed_nano_dollars)
            .peekable();
        if broken.peek().is_some() {
            let sum = broken.sum::<Money>();
            let _ = writeln!(out, "the breaks cost {sum} more at the prices of {date}");
        }
        self.write_misses(options.full, &mut out);
        for step in later() {
            if options.full || !step.is_plain() {
                line(step, paint, &mut out);
            }
        }
        out
    }
}

impl PrefixReport {
    /// What the provider did not read, summed, and how much of it nothing explains, unless all of it is listed.
    fn write_misses(&self, is_listed: bool, out: &mut String) {
        let later = || self.steps.iter().filter(|step| step.before.is_some());
        let missed = || later().filter_map(|step| step.missed.as_ref());
        if missed().next().is_none() {
            return;
        }
        let date = &self.prices;
        let tokens = missed().map(|missed| missed.readable_tokens - missed.read_tokens);
        let tokens = amount(tokens.sum());
        let _ = write!(
            out,
            "the provider did not read {tokens} tokens that it could have"
        );
        let money = missed().filter_map(|missed| missed.nano_dollars);
        if missed().any(|missed| missed.nano_dollars.is_some()) {
            let sum = money.sum::<Money>();
            let _ = write!(out, ", which cost {sum} more at the prices of {date}");
            if let Some(all) = self.logged_nano_dollars {
                let _ = write!(
                    out,
                    ", of {all} that all calls cost by the log's own account"
                );
            }
        }
        out.push('\n');
        let unexplained = later().filter(|step| step.missed.is_some() && step.is_plain());
        let unexplained = unexplained.count() as u64;
        if unexplained > 0 && !is_listed {
            let unexplained = amount(unexplained);
            let _ = writeln!(
                out,
                "nothing in the log explains {unexplained} of the misses: ask the provider; `--all` lists every request"
            );
        }
    }

    /// Adds to each step what it cost more and what the provider missed. `requests` are the snapshots of the steps.
    fn set_prices(&mut self, requests: &[&Snapshot], prices: &Prices) {
        for (at, (step, snapshot)) in self.steps.iter_mut().zip(requests).enumerate() {
            step.call = prices.with_model(std::mem::take(&mut step.call));
            step.missed_nano_dollars = step.miss(prices);
            if let Some(before) = at.checked_sub(1).and_then(|at| requests.get(at)) {
                let model = step.call.model.as_deref();
                let price = model.and_then(|model| prices.find(model));
                let before = (*before, &prices.with_model(Call::from_snapshot(before)));
                step.missed = Missed::new(self.provider, before, snapshot, step, price);
            }
        }
        prices.date().clone_into(&mut self.prices);
        let logged = self
            .steps
            .iter()
            .filter_map(|step| step.call.logged_nano_dollars);
        self.logged_nano_dollars = logged.map(Money).reduce(|a, b| a + b);
    }
}

/// Whether a snapshot is compared: a provider was called, or will be.
fn is_request(snapshot: &Snapshot) -> bool {
    Call::from_snapshot(snapshot).made || snapshot.is_working()
}

/// The committed snapshots before one, from the one before it that is a request.
fn since_request_before(
    history: &History,
    snapshot: &Snapshot,
) -> Result<Vec<(At, Arc<Snapshot>)>, LoadFailure> {
    let mut found: Vec<(At, Arc<Snapshot>)> = Vec::new();
    let is_found = |found: &[(At, Arc<Snapshot>)]| {
        let oldest = found.last();
        oldest.is_some_and(|(_, oldest)| is_request(oldest))
    };
    while !is_found(&found) {
        let oldest = found.last().map_or(snapshot, |(_, oldest)| oldest);
        let Some(before) = before(history, oldest)? else {
            break;
        };
        let at = At::Committed(Address::Cycle(before.cycle()));
        found.push((at, Arc::clone(before)));
    }
    found.reverse();
    Ok(found)
}

/// Compares the requests of these snapshots, oldest first; those without a call are none. `counts` counts tokens.
///
/// # Errors
/// A block, a tool definition or parameters that the API has no form for.
pub(super) fn walk<'a>(
    history: &History,
    snapshots: impl IntoIterator<Item = &'a Arc<Snapshot>>,
    provider: Option<Provider>,
    counts: &mut Counts,
) -> Result<PrefixReport, RenderError> {
    let provider = provider.unwrap_or_else(|| form_of(history));
    let mut walk = Walk {
        counts,
        requests: SentRequests::new(provider),
        front: FrontPieces::default(),
        tokens: Vec::new(),
        current: None,
        compaction: false,
    };
    let snapshots = snapshots.into_iter().inspect(|_| ensure());
    let steps = snapshots.filter_map(|snapshot| walk.step(history, snapshot).transpose());
    let steps: Vec<PrefixStep> = steps.collect::<Result<_, _>>()?;
    Ok(PrefixReport {
        provider,
        tokenizer: counts.tokenizer(),
        prices: String::new(),
        logged_nano_dollars: None,
        reconstructed: steps.iter().any(|step| step.call.reconstructed),
        totals: PrefixTotals::default(),
        steps,
    })
}

/// The comparisons of the requests of all committed snapshots by the cycle of the later one, or why there are
/// none. With prices they say what the provider missed.
pub(super) fn by_cycle(
    history: &History,
    provider: Option<Provider>,
    prices: Option<&Prices>,
    counts: &mut Counts,
) -> (BTreeMap<i64, PrefixStep>, Option<String>) {
    match walk(history, history.committed().iter(), provider, counts) {
        Ok(mut found) => {
            if let Some(prices) = prices {
                let all = history.committed().iter().map(|snapshot| &**snapshot);
                let requests: Vec<&Snapshot> =
                    all.filter(|snapshot| is_request(snapshot)).collect();
                found.set_prices(&requests, prices);
            }
            let steps = found.steps.into_iter();
            (steps.map(|step| (step.cycle, step)).collect(), None)
        }
        Err(error) => (BTreeMap::new(), Some(error.to_string())),
    }
}

/// The form of the requests of a session.
#[must_use]
pub fn form_of(history: &History) -> Provider {
    let attempt = history.attempts().iter().next();
    let named = attempt.and_then(|attempt| Provider::parse(&attempt.provider));
    let newest = || history.latest().map(|newest| provider_of(newest));
    named.or_else(newest).unwrap_or(Provider::OpenAi)
}

#[derive(Clone, Copy, Default)]
struct Sums {
    bytes: u64,
    tokens: u64,
}

/// Where two requests part.
struct Break {
    /// What both begin with.
    shared: Sums,
    /// The tokens of what both have.
    common_tokens: u64,
    /// The tokens of whole blocks and definitions among those that are shared.
    whole_tokens: u64,
    difference: Difference,
}

#[derive(Default)]
struct FrontPieces {
    of: Option<Arc<Front>>,
    model: Option<String>,
    pieces: Vec<RequestPiece>,
    sums: Sums,
}

struct Walk<'a> {
    counts: &'a mut Counts,
    requests: SentRequests,
    front: FrontPieces,
    /// For each block of the request, the tokens of the messages' blocks up to its end.
    tokens: Vec<u64>,
    /// The cycle and the sums of the request.
    current: Option<(i64, Sums)>,
    /// Whether there was a compaction since.
    compaction: bool,
}

impl Walk<'_> {
    /// Goes to the request of a snapshot, if it is one.
    fn step(
        &mut self,
        history: &History,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Option<PrefixStep>, RenderError> {
        let call = Call::in_history(history, snapshot);
        self.compaction |= call.compaction;
        if !call.made && !snapshot.is_working() {
            return Ok(None);
        }
        let compaction = std::mem::take(&mut self.compaction);
        let before = self.requests.advance(history, snapshot)?;
        let older_tokens = self.count_blocks(&before);
        let front = self.count_front(call.model.as_deref());
        let cycle = cycle_of(snapshot);
        let messages = self.requests.messages.len();
        let sums = Sums {
            bytes: self.front.sums.bytes + self.requests.bytes_of(messages),
            tokens: self.front.sums.tokens + self.tokens.last().copied().unwrap_or(0),
        };
        let last = self.current.replace((cycle, sums));
        let (before_cycle, older) = last.unzip();
        let older = older.unwrap_or_default();
        let found = match front {
            _ if before_cycle.is_none() => None,
            Some(older_front) => self.front_difference(&older_front, &before),
            None => self.message_difference(&before, &older_tokens, compaction),
        };
        let shared = found.as_ref().map_or(older, |found| found.shared);
        let again = found.as_ref().map_or(0, |found| {
            found.common_tokens.saturating_sub(found.whole_tokens)
        });
        Ok(Some(PrefixStep {
            before: before_cycle,
            cycle,
            bytes: sums.bytes,
            bytes_before: older.bytes,
            shared_bytes: shared.bytes,
            tokens: sums.tokens,
            tokens_before: older.tokens,
            shared_tokens: shared.tokens,
            again_tokens: again,
            difference: found.map(|found| found.difference),
            missed_nano_dollars: None,
            missed: None,
            call,
        }))
    }

    /// Counts the blocks that are new. Returns the sums of those that were there instead.
    fn count_blocks(&mut self, before: &Before) -> Vec<u64> {
        let kept = before.sums_kept();
        let replaced = self.tokens.split_off(kept.min(self.tokens.len()));
        let mut sum = self.tokens.last().copied().unwrap_or(0);
        for block in self.requests.blocks[kept..].iter().inspect(|_| ensure()) {
            if !self.requests.is_in_head(block) {
                sum += self.counts.block(block);
            }
            self.tokens.push(sum);
        }
        replaced
    }

    /// Counts the front, if it is another one. Returns the one before if its bytes differ. A call that does not say its
    /// model has that of the one before.
    fn count_front(&mut self, model: Option<&str>) -> Option<FrontPieces> {
        let front = self.requests.front.as_ref()?;
        let counted = self.front.of.as_ref();
        let is_same = counted.is_some_and(|counted| Arc::ptr_eq(counted, front));
        if is_same && (model.is_none() || self.front.model.as_deref() == model) {
            return None;
        }
        let model = model.map_or_else(|| self.front.model.clone(), |model| Some(model.to_owned()));
        let pieces = pieces::front(&front.head, model.as_deref());
        let bytes = pieces.iter().map(|piece| piece.json.len() as u64).sum();
        let head = |block: &&Arc<ThreadBlock>| self.requests.is_in_head(block);
        let blocks = self.requests.blocks.iter().filter(head);
        let tokens = blocks.map(|block| self.counts.block(block)).sum();
        let new = FrontPieces {
            of: Some(Arc::clone(front)),
            model,
            pieces,
            sums: Sums { bytes, tokens },
        };
        let older = std::mem::replace(&mut self.front, new);
        (older.pieces != self.front.pieces).then_some(older)
    }

    /// The tokens of the messages' blocks that the request before had, too.
    fn common_tokens(&self, before: &Before) -> u64 {
        let older = before.blocks.iter().map(|block| (block.id(), block));
        let older: HashMap<&str, &Arc<ThreadBlock>> = older.collect();
        let ends = [0].iter().chain(&self.tokens).zip(&self.tokens);
        let blocks = self.requests.blocks.iter().zip(ends).enumerate();
        let common = blocks.filter(|(at, (block, _))| {
            let same = || older.get(block.id()).is_some_and(|older| *older == *block);
            *at < before.blocks_kept || same()
        });
        common.map(|(_, (_, (start, end)))| end - start).sum()
    }

    fn front_difference(&mut self, older: &FrontPieces, before: &Before) -> Option<Break> {
        let newer = &self.front;
        let pairs = older.pieces.iter().zip(&newer.pieces);
        let same = pairs.take_while(|(a, b)| a.json == b.json).count();
        let (old, new) = (&older.pieces[same..], &newer.pieces[same..]);
        // Where the front of one ends, its messages begin.
        let json = |pieces: &[RequestPiece], message: Option<&RequestMessage>| match pieces.first()
        {
            Some(piece) => piece.json.clone(),
            None => message.map_or_else(Box::default, |message| message.json.clone()),
        };
        let newest = self.requests.messages.first();
        let oldest = match before.messages_kept {
            0 => before.messages.first(),
            _ => newest,
        };
        let (old_json, new_json) = (json(old, oldest), json(new, newest));
        let common = compare::common_prefix(&old_json, &new_json);
        let mut shared = Sums::default();
        for piece in &newer.pieces[..same] {
            shared.bytes += piece.json.len() as u64;
            shared.tokens += self.counts.text(&pieces::counted(piece));
        }
        let whole_tokens = shared.tokens;
        let mut common_tokens = whole_tokens + self.common_tokens(before);
        let is_old = |piece: &&RequestPiece| old.iter().any(|older| older.json == piece.json);
        for piece in new.iter().filter(is_old) {
            common_tokens += self.counts.text(&pieces::counted(piece));
        }
        shared.bytes += common as u64;
        let counts =
            |piece: &RequestPiece| matches!(piece.place, Place::System | Place::Tool { .. });
        if old.first().is_some_and(counts) && !new.is_empty() {
            shared.tokens += self.counts.text(&new_json[..common]);
        }
        let place = new.first().or(old.first())?.place.clone();
        let block = self.requests.block_of(&place, &new_json, common);
        let cause = compare::of_front(old, new);
        let what = (place, block, cause);
        Some(Break {
            shared,
            common_tokens,
            whole_tokens,
            difference: Difference::new(shared.bytes, what, [&old_json, &new_json], common),
        })
    }

    /// The difference of the messages; `None` if the older ones begin the newer ones.
    fn message_difference(
        &mut self,
        before: &Before,
        older_tokens: &[u64],
        compaction: bool,
    ) -> Option<Break> {
        let kept = before.messages_kept;
        let newer = self.requests.messages.get(kept..).unwrap_or_default();
        let pairs = before.messages.iter().zip(newer);
        let same = pairs.take_while(|(a, b)| a.json == b.json).count();
        let first = before.messages.get(same)?;
        let new = newer.get(same);
        let new_json = new.map_or("", |message| &message.json);
        if before.messages.len() == same + 1 && new_json.starts_with(&*first.json) {
            // The last message got parts at its end.
            return None;
        }
        let common = compare::common_prefix(&first.json, new_json);
        let older_blocks = first.blocks.clone().filter_map(|at| {
            let block = older(
                before.blocks_kept,
                &self.requests.blocks,
                &before.blocks,
                at,
            );
            block.cloned()
        });
        let older_blocks: Vec<Arc<ThreadBlock>> = older_blocks.collect();
        let newer_blocks = new.map_or(0..0, |message| message.blocks.clone());
        let newer_blocks = self.requests.blocks.get(newer_blocks).unwrap_or_default();
        let cause = compare::of_messages(&Tails {
            older: &texts(&before.messages[same..]),
            newer: &texts(&newer[same..]),
            older_blocks: &older_blocks,
            newer_blocks,
            compaction,
        });
        let at = locate::block(&first.json, common, &older_blocks);
        let block = locate::block(new_json, common, newer_blocks).map(|(at, _)| &newer_blocks[at]);
        let block = block.or_else(|| older_blocks.get(at?.0));
        let block = block.map(|block| block.id().to_owned());
        // The tokens of the blocks before, and of the part of the text that is shared.
        let start = first.blocks.start + at.map_or(0, |(at, _)| at);
        let before_block = start
            .checked_sub(1)
            .and_then(|at| older(before.sums_kept(), &self.tokens, older_tokens, at));
        let part = at.map_or("", |(_, text)| first.json.get(text..common).unwrap_or(""));
        let front = self.front.sums;
        let whole_tokens = front.tokens + before_block.copied().unwrap_or(0);
        let shared = Sums {
            bytes: front.bytes + self.requests.bytes_of(kept + same) + common as u64,
            tokens: whole_tokens + self.counts.text(&locate::unescaped(part)),
        };
        let what = (Place::Message { index: kept + same }, block, cause);
        Some(Break {
            shared,
            common_tokens: front.tokens + self.common_tokens(before),
            whole_tokens,
            difference: Difference::new(shared.bytes, what, [&first.json, new_json], common),
        })
    }
}

/// An element of the older list: its first `kept` elements are those of `now`, the others are `replaced`.
fn older<'a, T>(kept: usize, now: &'a [T], replaced: &'a [T], at: usize) -> Option<&'a T> {
    match at.checked_sub(kept) {
        None => now.get(at),
        Some(at) => replaced.get(at),
    }
}

fn texts(messages: &[RequestMessage]) -> Vec<&str> {
    messages.iter().map(|message| &*message.json).collect()
}

/// A share in percent with one digit after the point, rounded down.
fn percent(part: u64, whole: u64) -> String {
    let tenths = match whole {
        0 => 1000,
        whole => u128::from(part) * 1000 / u128::from(whole),
    };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn line(step: &PrefixStep, paint: Paint, out: &mut String) {
    let pair = format!("@c{} after @c{}", step.cycle, step.before.unwrap_or(0));
    let cached = step.call.cached_tokens;
    let cached = cached.map_or(String::new(), |cached| {
        format!(", provider read {}", amount(cached))
    });
    if step.difference.is_some() {
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "{}: {} % kept, {} of {} bytes, {} of {} tokens{cached}",
        paint.tint(Tint::Place, &pair),
        step.reused_percent(),
        amount(step.shared_bytes),
        amount(step.bytes_before),
        amount(step.shared_tokens),
        amount(step.tokens_before),
    );
    for line in step.missed.iter().flat_map(Missed::lines) {
        let _ = writeln!(out, "  {line}");
    }
    let Some(difference) = &step.difference else {
        return;
    };
    let cause = paint.tint(Tint::Name, &escaped(&difference.cause.text(), false));
    let place = difference.place.to_string();
    let place = escaped(&place, false);
    let _ = write!(out, "  {cause}\n  at byte {}, in {place}", difference.at);
    if let Some(id) = &difference.block {
        let _ = write!(out, ", block {}", escaped(id, false));
    }
    out.push('\n');
    for (sign, tint, text) in [
        ("-", Tint::Removed, &difference.older),
        ("+", Tint::Added, &difference.newer),
    ] {
        if !text.is_empty() {
            let text = paint.tint(tint, &format!("{sign} {}", escaped(text, false)));
            let _ = writeln!(out, "    {text}");
        }
    }
    if step.again_tokens > 0 {
        let again = counted(step.again_tokens, "token");
        let cost = step.missed_nano_dollars;
        let cost = cost.map_or(String::new(), |cost| format!(", for {cost} more"));
        let _ = writeln!(out, "  {again} that both have were read again{cost}");
    }
    let _ = writeln!(out, "  to keep it: {}", difference.mend);
}
