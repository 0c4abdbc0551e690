//! Tools that the model was given and never called (INSPECT §4).

use super::call::Call;
use super::groups::{call_name, tool_name};
use super::part::Region;
use super::prices::{Money, Price};
use super::report::{Report, ReportOptions, no_price};
use super::tokenizer::Tokenizer;
use crate::engine::Engine;
use crate::history::Session;
use crate::index::Snapshot;
use crate::support::diag::Error;
use crate::support::table::{Paint, Table, Tint};
use crate::support::text::{amount, counted, printable};
use hashbrown::HashSet;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The tools that are defined in a part of a session and that no block of its snapshots calls. Linear in the
/// definitions of each snapshot, and in the units of all.
///
/// ```
/// use pactql::inspect::{Part, Report, ReportOptions, UnusedReport};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/greenhouse.jsonl")?;
/// let options = ReportOptions::new(Part::default().at("@history"));
/// let report = UnusedReport::of(&Engine::new(), &session, &options)?;
/// assert_eq!(report.snapshots, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnusedReport {
    /// How tokens were counted.
    pub tokenizer: Tokenizer,
    /// How many snapshots were read.
    pub snapshots: u64,
    /// How many tools were defined in any of them.
    pub defined: u64,
    /// The tools that were never called: those that cost most first, then by name.
    pub tools: Vec<UnusedTool>,
    /// The day of the prices.
    pub prices: String,
    /// The model of the newest snapshot that names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A tool that was never called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnusedTool {
    /// Its name; the block's id, if the definition has none.
    pub name: String,
    /// The tokens of the definition, in the newest snapshot that has it.
    pub tokens: u64,
    /// How many requests had it.
    pub requests: u64,
    /// Its tokens in all of them.
    pub sent_tokens: u64,
    /// What those cost where nothing was read from a cache; `None` if a request has no known price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nano_dollars: Option<Money>,
    /// What they cost where all but the first request read them from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_nano_dollars: Option<Money>,
}

impl UnusedTool {
    fn new(name: String) -> Self {
        Self {
            name,
            tokens: 0,
            requests: 0,
            sent_tokens: 0,
            nano_dollars: Some(Money(0)),
            cached_nano_dollars: Some(Money(0)),
        }
    }

    /// Adds a definition that was sent; `first` says that it is the first of the name in its request.
    fn add(&mut self, tokens: u64, first: bool, price: Option<&Price>) {
        let add = |sum: &mut Option<Money>, cost: fn(&Price, u64) -> Money| {
            *sum = sum.zip(price).map(|(sum, price)| sum + cost(price, tokens));
        };
        add(&mut self.nano_dollars, Price::of_input);
        let cost = if self.requests == 0 {
            Price::of_input
        } else {
            Price::of_cached
        };
        add(&mut self.cached_nano_dollars, cost);
        self.tokens = tokens;
        self.sent_tokens += tokens;
        self.requests += u64::from(first);
    }
}

impl Report for UnusedReport {
    fn of(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let history = session.history();
        let (chosen, mut counts) = options.read(engine, &history)?;
        let mut snapshots = 0;
        let mut calls = Calls::default();
        let mut tools: BTreeMap<String, UnusedTool> = BTreeMap::new();
        let mut model = None;
        for chosen in chosen {
            let chosen = chosen?;
            let snapshot = &chosen.snapshot;
            snapshots += 1;
            calls.read(snapshot);
            let call = Call::of(snapshot);
            let price = call.model.as_deref();
            let price = price.and_then(|model| options.prices.find(model));
            model = call.model.clone().or(model);
            let mut seen: HashSet<String> = HashSet::new();
            let nodes = snapshot.nodes_in(snapshot.sys_rows());
            let defined = nodes.filter(|node| {
                node.kind() == Some("tool") && Region::of(*node).is_some() && chosen.has(*node)
            });
            for node in defined {
                let name = tool_name(node).unwrap_or_else(|| node.id().to_owned());
                let tokens = counts.node(node, true).tokens;
                let tool = tools.entry(name.clone());
                let tool = tool.or_insert_with(|| UnusedTool::new(name.clone()));
                tool.add(tokens, seen.insert(name), price);
            }
        }
        let defined = tools.len() as u64;
        let mut tools: Vec<UnusedTool> = tools.into_values().collect();
        tools.retain(|tool| !calls.names.contains(&tool.name));
        // They are in the order of their names.
        tools.sort_by_key(|tool| Reverse(tool.sent_tokens));
        Ok(Self {
            tokenizer: counts.tokenizer(),
            snapshots,
            defined,
            tools,
            prices: options.prices.date().to_owned(),
            model,
        })
    }

    fn text(&self, _: &ReportOptions, paint: Paint) -> String {
        let snapshots = counted(self.snapshots, "snapshot");
        let (count, defined) = (self.tools.len(), counted(self.defined, "tool"));
        let title = format!("{count} of {defined} never called in {snapshots}");
        let mut out = paint.tint(Tint::Place, &title) + "\n";
        if self.tools.is_empty() {
            return out;
        }
        let priced = self.tools.iter().all(|tool| tool.nano_dollars.is_some());
        let mut header = vec!["tool", self.tokenizer.name(), "requests", "sent"];
        if priced {
            header.extend(["cost", "cached"]);
        }
        let mut table = Table::new(header);
        for tool in &self.tools {
            let mut cells = [tool.tokens, tool.requests, tool.sent_tokens]
                .map(amount)
                .to_vec();
            if priced {
                let costs = [tool.nano_dollars, tool.cached_nano_dollars];
                cells.extend(costs.map(|cost| cost.unwrap_or_default().to_string()));
            }
            table.add_bar(printable(&tool.name), cells, tool.sent_tokens);
        }
        out.push_str(&table.text(paint));
        if priced {
            let _ = writeln!(out, "at the prices of {}", self.prices);
        } else {
            out.push_str(&no_price(self.model.as_deref(), &self.prices));
        }
        out
    }
}

/// The names of the tools that were called. Each unit is read once.
#[derive(Default)]
struct Calls {
    names: HashSet<String>,
    units: HashSet<u64>,
}

impl Calls {
    fn read(&mut self, snapshot: &Snapshot) {
        for unit in snapshot.units() {
            // Of a unit that lost rows, what it has left is read again if those were not.
            if unit.dead_rows().next().is_none() && !self.units.insert(unit.version()) {
                continue;
            }
            let calls = unit.nodes().filter(|node| node.kind() == Some("call"));
            self.names.extend(calls.filter_map(call_name));
        }
    }
}
