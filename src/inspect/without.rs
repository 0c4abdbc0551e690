//! What the calls of a session would have used and cost without some of what was sent (INSPECT §3).
//!
//! The requests are gone through again, each without what a selector matches in its snapshot. Tokens are scaled to
//! what the provider counted. A cache is taken to hold what the request before had; of what it could have read then
//! it reads the same share now.

use super::call::Call;
use super::part::{ChosenSnapshot, Part, saying};
use super::report::{Report, ReportOptions, no_price};
use super::sent::{Sent, scaled};
use super::tokenizer::Tokenizer;
use super::usage::Used;
use crate::engine::Engine;
use crate::history::Session;
use crate::index::NodeRef;
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::table::{Paint, TextTable};
use crate::support::text::{amount, counted};
use hashbrown::HashSet;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The calls of a session as they were, and as they would have been without what the selector of the part matches
/// in each snapshot; without a time, all calls.
///
/// Costs a comparison of the blocks of neighbouring requests.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WithoutReport {
    /// How tokens are counted, to share out what the provider counted.
    pub tokenizer: Tokenizer,
    /// The day of the prices.
    pub prices: String,
    /// Whether requests are worked out from a transcript, which does not say exactly what was sent.
    pub reconstructed: bool,
    /// The calls as they were.
    pub then: Used,
    /// The calls without what is left out.
    pub now: Used,
    /// Blocks that are left out, summed over the requests.
    pub blocks: u64,
    /// The same, where a block of several requests counts once.
    pub distinct_blocks: u64,
    /// The cycles of requests that began with the whole request before, and no longer do.
    pub breaks: Vec<i64>,
    /// The models without a price; `None` where a call names none.
    #[serde(skip)]
    without_price: BTreeSet<Option<String>>,
}

type Blocks<'a> = Vec<(NodeRef<'a>, u64)>;

/// The tokens of the blocks that two requests begin with, and whether they are the whole older one.
fn shared(older: &Blocks<'_>, newer: &Blocks<'_>) -> (u64, bool) {
    let same =
        |a: NodeRef<'_>, b: NodeRef<'_>| a.version() == b.version() || saying(a) == saying(b);
    let pairs = older.iter().zip(newer);
    let pairs = pairs.take_while(|(older, newer)| same(older.0, newer.0));
    let (mut count, mut tokens) = (0, 0);
    for (block, _) in pairs {
        count += 1;
        tokens += block.1;
    }
    (tokens, count == older.len())
}

impl Report for WithoutReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        history.fetch_all()?;
        let part = Self::part(options);
        let snapshots = part.snapshots(engine, &history)?;
        let mut counts = options.counts(snapshots.iter().map(|(_, snapshot)| snapshot));
        let chosen = part.with_rows(engine, &history, snapshots);
        let chosen: Vec<ChosenSnapshot> = chosen.collect::<Result<_, _>>()?;
        let mut report = Self {
            tokenizer: counts.tokenizer(),
            prices: options.prices.date().to_owned(),
            reconstructed: false,
            then: Used::default(),
            now: Used::default(),
            blocks: 0,
            distinct_blocks: 0,
            breaks: Vec::new(),
            without_price: BTreeSet::new(),
        };
        let mut before: Option<(Blocks<'_>, Blocks<'_>)> = None;
        let mut left_out: HashSet<&str> = HashSet::new();
        for chosen in chosen.iter().inspect(|_| ensure()) {
            let mut then = options.prices.call(&history, &chosen.snapshot);
            if !then.made {
                continue;
            }
            let sent = Sent::from_snapshot(&chosen.snapshot, &mut counts);
            report.reconstructed |= then.reconstructed;
            let ours = || Some((sent.request, sent.reply));
            report.then.add(&then, &options.prices, ours);
            let input = *then.input_tokens.get_or_insert(sent.request);
            then.output_tokens.get_or_insert(sent.reply);
            let all = sent.blocks;
            let kept = all.iter().filter(|(node, _)| !chosen.has(*node));
            let kept: Blocks<'_> = kept.copied().collect();
            report.blocks += (all.len() - kept.len()) as u64;
            let others = all.iter().filter(|(node, _)| chosen.has(*node));
            left_out.extend(others.map(|(node, _)| node.id()));
            let theirs = |tokens: u64| scaled(tokens, sent.request, input);
            let left = theirs(kept.iter().map(|(_, tokens)| tokens).sum());
            let cached = then.cached_tokens.unwrap_or(0).min(input);
            let cached_now = match &before {
                None => cached.min(left),
                Some((all_before, kept_before)) => {
                    let (could, was_whole) = shared(all_before, &all);
                    let (can, is_whole) = shared(kept_before, &kept);
                    if was_whole && !is_whole {
                        report.breaks.push(chosen.snapshot.cycle());
                    }
                    scaled(can, could, cached).min(left)
                }
            };
            let written = then.cache_write_tokens.unwrap_or(0);
            let plain = input.saturating_sub(cached).saturating_sub(written);
            let written_now = match written {
                0 => 0,
                _ => (left - cached_now).saturating_sub(plain),
            };
            let hour = then.cache_write_1h_tokens;
            let now = Call {
                input_tokens: Some(left),
                cached_tokens: Some(cached_now),
                cache_write_tokens: Some(written_now),
                cache_write_1h_tokens: hour.map(|hour| scaled(hour, written, written_now)),
                ..then
            };
            let unpriced = report.now.unpriced;
            report.now.add(&now, &options.prices, || None);
            if report.now.unpriced > unpriced {
                report.without_price.insert(now.model);
            }
            before = Some((all, kept));
        }
        report.distinct_blocks = left_out.len() as u64;
        Ok(report)
    }

    fn part(options: &ReportOptions) -> Part {
        options.part.or_history()
    }

    fn is_reconstructed(&self) -> bool {
        self.reconstructed
    }

    fn text(&self, _: &ReportOptions, paint: Paint) -> String {
        let titles = [
            "",
            "tokens in",
            "cached",
            "cache writes",
            "tokens out",
            "cost",
        ];
        let mut table = TextTable::new(titles).hide_empty();
        for (name, used) in [("then", &self.then), ("without", &self.now)] {
            let tokens = [
                used.input_tokens,
                used.cached_tokens,
                used.cache_write_tokens,
                used.output_tokens,
            ];
            let money = used
                .money()
                .map_or_else(String::new, |money| money.to_string());
            let tokens = tokens.map(amount).into_iter();
            table.add(
                std::iter::once(name.to_owned())
                    .chain(tokens)
                    .chain([money]),
            );
        }
        let mut out = table.text(paint);
        let requests = counted(self.then.requests, "request");
        let blocks = match self.distinct_blocks {
            1 => "1 block".to_owned(),
            more => format!("{} blocks", amount(more)),
        };
        // A block is left out of each request that has it.
        let times = match self.blocks {
            times if times == self.distinct_blocks => String::new(),
            times => format!(" {} times", amount(times)),
        };
        let _ = writeln!(
            out,
            "{requests}, {blocks} left out{times}, prices of {}",
            self.prices
        );
        if !self.breaks.is_empty() {
            let count = self.breaks.len() as u64;
            let first = self.breaks.iter().take(5).map(|cycle| format!("@c{cycle}"));
            let first = first.collect::<Vec<_>>().join(", ");
            let more = if count > 5 { ", …" } else { "" };
            let breaks = counted(count, "new break");
            let _ = writeln!(out, "{breaks} of the prefix: {first}{more}");
        }
        let unpriced = self.without_price.iter().map(Option::as_deref);
        out.push_str(&no_price(unpriced, &self.prices));
        out
    }
}
