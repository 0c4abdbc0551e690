//! `pactql commit`: the cycle in progress becomes a snapshot.

use super::command::{Run, print};
use super::options::Color;
use super::write::WriteArgs;
use crate::app::present::{Exit, Failure, printable};
use crate::runtime::{Commit as Report, Measure, Policy, Scope};
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write;

/// Commit the cycle in progress.
///
/// In this order: nodes whose ttl has run out go, then what `compact` noted, then what the limits ask
/// for; the turn in progress is sealed as a turn of `^seq`, and the snapshot is written. Prints what
/// went. Limits are kept in the order --prune-tokens, --prune-nodes, then each --prune.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql commit session.jsonl
  pactql commit session.jsonl --prune-tokens 8000 --protect 3
  pactql commit session.jsonl --prune seq:tokens=6000 --prune sys:nodes=20 --format json")]
pub(super) struct Commit {
    #[command(flatten)]
    write: WriteArgs,
    /// Prune blocks until the whole tree has at most N tokens, at 4 bytes each. Of equal priority the oldest
    /// go first, those of `^sys` among them.
    #[arg(long, value_name = "N")]
    prune_tokens: Option<u64>,
    /// Prune blocks until the whole tree has at most N nodes.
    #[arg(long, value_name = "N")]
    prune_nodes: Option<u64>,
    /// Another limit: SCOPE:MEASURE=N, where SCOPE is sys, seq, ah or whole, and MEASURE tokens or nodes.
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    prune: Vec<(Scope, Measure, u64)>,
    /// Leave the newest K turns as they are; the turn in progress is the first of them.
    #[arg(long, value_name = "K", default_value_t = 1)]
    protect: u32,
}

/// Reads `seq:tokens=6000`.
fn limit(text: &str) -> Result<(Scope, Measure, u64), String> {
    let read = || {
        let (what, most) = text.split_once('=')?;
        let (scope, measure) = what.split_once(':').unwrap_or(("whole", what));
        let scope = match scope.trim_start_matches('^') {
            "whole" => Scope::Whole,
            "sys" => Scope::Sys,
            "seq" => Scope::Seq,
            "ah" => Scope::Head,
            _ => return None,
        };
        let measure = match measure {
            "tokens" => Measure::Tokens,
            "nodes" => Measure::Nodes,
            _ => return None,
        };
        Some((scope, measure, most.parse().ok()?))
    };
    read()
        .ok_or_else(|| "expected a limit such as `seq:tokens=6000` or `whole:nodes=500`".to_owned())
}

impl Commit {
    fn policy(&self) -> Policy {
        let mut policy = Policy::new().protect(self.protect);
        if let Some(most) = self.prune_tokens {
            policy = policy.tokens(most);
        }
        if let Some(most) = self.prune_nodes {
            policy = policy.nodes(most);
        }
        let limits = self.prune.iter();
        limits.fold(policy, |policy, (scope, measure, most)| {
            policy.limit(*scope, *measure, *most)
        })
    }
}

impl Run for Commit {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let mut writing = self.write.open_with(self.policy())?;
        let report = writing.context().commit()?;
        writing.save_commit()?;
        print(&if self.write.how().is_json() {
            format!("{}\n", to_json(&report))
        } else {
            text(&report)
        })
    }
}

fn to_json(report: &Report) -> Value {
    json!({
        "cycle": report.cycle,
        "turn": report.turn,
        "expired": report.expired,
        "compacted": report.compacted,
        "pruned": report.pruned,
        "emptied": report.emptied,
        "over": report.over,
    })
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "cycle {} is committed as {}\n",
        report.cycle,
        printable(&report.turn)
    );
    for (what, ids) in [
        ("expired", &report.expired),
        ("compacted", &report.compacted),
        ("pruned", &report.pruned),
        ("emptied", &report.emptied),
    ] {
        if !ids.is_empty() {
            let ids: Vec<String> = ids.iter().map(|id| printable(id)).collect();
            let _ = writeln!(text, "{what:<10} {}", ids.join(" "));
        }
    }
    if report.over > 0 {
        let _ = writeln!(text, "still over by {}: nothing more could go", report.over);
    }
    text
}
