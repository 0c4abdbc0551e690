//! The commands that change a session: `new`, `add`, `update`, `remove`, `move`, `replace`, `compact`, `commit`,
//! `discard`, `fork`.

use super::command::{Run, print};
use super::options::{Color, Limits};
use super::sessions::{self, open_store};
use super::words::{is_file, quoted};
use super::write::{
    HowArgs, NodeArgs, WriteArgs, check_plain_file, check_target, fields, new_name, write_to,
};
use crate::app::present::stores::{Access, Address};
use crate::app::present::{Exit, Failure, printable};
use crate::logs::file::SessionFile;
use crate::runtime::{Commit as Committed, Measure, Policy, Scope};
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write;

/// Make a new session, which has the regions only: a file, or `STORE#name`.
///
/// What exists is left as it is; a store that is missing is made. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql new session.jsonl
  pactql new agents.db#support-42
  pactql new session.jsonl && pactql add session.jsonl ^sys 'block:text \"You are brief.\"'")]
pub(super) struct New {
    /// The file, or the session of a store, to make.
    file: String,
    #[command(flatten)]
    how: HowArgs,
}

impl Run for New {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let context = self.how.builder().build();
        if Address::of(&self.file).is_some() {
            return write_to(&self.file, context).map(|()| Exit::Ok);
        }
        check_plain_file(&self.file)?;
        SessionFile::create(&self.file, context)?;
        Ok(Exit::Ok)
    }
}

/// Add a node, and all below it, to the turn in progress or anywhere outside sealed cores.
///
/// POSITION is a selector of the parent, such as `^ah` or `#notes`, or a position with a place in it:
/// `(d0, end)`, `(d1, -1)`. Prints the id.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql add session.jsonl ^ah 'block:text { role=user } \"Where is my refund?\"'
  pactql add session.jsonl ^sys '{\"kind\":\"doc\",\"ttl\":2}' --content-file handbook.md
  pactql add session.jsonl \"(d1, end)\" 'block:note \"The customer called.\"'
  echo '{\"content\":\"hi\"}' | pactql add session.jsonl ^ah -")]
pub(super) struct Add {
    #[command(flatten)]
    write: WriteArgs,
    /// Where: a selector of the parent, or a position such as `(d0, end)`.
    #[arg(allow_hyphen_values = true)]
    position: String,
    #[command(flatten)]
    node: NodeArgs,
}

impl Run for Add {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let node = self.node.read(&self.write)?;
        self.write.change(&self.position, Exit::Ok, |context| {
            Ok(vec![context.add(&self.position, node)?])
        })
    }
}

/// Change fields of nodes.
///
/// FIELDS is one JSON object, or `name=value` words: a value that is JSON is that, another one is a text.
/// `null` takes a field away. Nodes of the turn in progress may get nearly everything; committed ones
/// outside sealed cores another ttl, which counts from this cycle, or priority. Prints the ids.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql update session.jsonl \"^ah .cb:last\" content=\"Where is my money?\"
  pactql update session.jsonl \".cb[kind='doc']\" ttl=1 priority=5
  pactql update session.jsonl \"#banner\" '{\"ttl\":null,\"data_seen\":true}'")]
pub(super) struct Update {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    /// The fields: a JSON object, `name=value` words, `@FILE`, or `-` for standard input.
    #[arg(required = true)]
    fields: Vec<String>,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
}

impl Run for Update {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let fields = fields(&self.fields, &self.write)?;
        let empty = Exit::of_empty(self.fail_if_empty);
        self.write.change(&self.selector, empty, |context| {
            context.update(&self.selector, fields)
        })
    }
}

/// Remove nodes with all below them.
///
/// Sealed turns and what is in their cores stay: `compact` takes those. Prints the ids of the topmost
/// nodes that went.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql remove session.jsonl \"^ah .cb[kind='doc']\"
  pactql remove session.jsonl \"#banner\" --fail-if-empty")]
pub(super) struct Remove {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
}

impl Run for Remove {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let empty = Exit::of_empty(self.fail_if_empty);
        self.write.change(&self.selector, empty, |context| {
            context.remove(&self.selector)
        })
    }
}

/// Move nodes with all below them.
///
/// Nodes of the turn in progress keep their ids. A committed node may only change its region, and gets a
/// successor with another id there. Prints the ids after the move.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql move session.jsonl \"^ah .cb[kind='doc']\" \"(d0, -1)\"
  pactql move session.jsonl \"#summary\" ^sys")]
pub(super) struct Move {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    /// Where: a selector of the parent, or a position such as `(d0, end)`.
    #[arg(allow_hyphen_values = true)]
    position: String,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
}

impl Run for Move {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let empty = Exit::of_empty(self.fail_if_empty);
        self.write.change(&self.selector, empty, |context| {
            context.move_to(&self.selector, &self.position)
        })
    }
}

/// Put a node in the place of another, with its offset, its time and, unless NODE has one, its key.
///
/// The old node goes with all below it; the new one has an id of its own, which is printed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql replace session.jsonl \"#rules\" 'block:text { role=system } \"Be brief.\"'
  pactql replace session.jsonl \"^ah .cb:last\" --content-file corrected.md")]
pub(super) struct Replace {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the one node to replace.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    #[command(flatten)]
    node: NodeArgs,
}

impl Run for Replace {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let node = self.node.read(&self.write)?;
        self.write.change(&self.selector, Exit::Ok, |context| {
            Ok(vec![context.replace(&self.selector, node)?])
        })
    }
}

/// Have the next commit take the matched nodes, and put a summary where the first of them was.
///
/// Takes whole turns and blocks of sealed cores, too. Prints the id of the summary. Until the commit
/// nothing changes; `discard` takes the note back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql compact session.jsonl \"^seq .mt:depth(3-9)\" 'block:summary { key=summary, role=system } \"They want a refund.\"'
  pactql compact session.jsonl \".cb[kind='doc']:depth(2-9)\" 'block:summary { role=system }' --content-file summary.md")]
pub(super) struct Compact {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes to take.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    #[command(flatten)]
    node: NodeArgs,
}

impl Run for Compact {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let node = self.node.read(&self.write)?;
        self.write.change(&self.selector, Exit::Ok, |context| {
            Ok(vec![context.compact(&self.selector, node)?])
        })
    }
}

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

fn to_json(report: &Committed) -> Value {
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

fn text(report: &Committed) -> String {
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

/// Drop every change since the last commit.
///
/// Attempts stay, and so do the references to nodes that are left. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql discard session.jsonl")]
pub(super) struct Discard {
    #[command(flatten)]
    write: WriteArgs,
}

impl Run for Discard {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let mut writing = self.write.open()?;
        writing.context().discard();
        writing.save()?;
        Ok(Exit::Ok)
    }
}

/// Begin another session at a snapshot of this one.
///
/// The new session has the snapshots up to there, and those attempts; for `working` also the working
/// state. References stay with this session. Within one store nothing is copied. Prints nothing.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql fork [OPTIONS] <SESSION> <ADDRESS> -o <FILE>
       pactql fork [OPTIONS] <SESSION> <ADDRESS> <STORE#NAME>")]
#[command(after_help = "\
Examples:
  pactql fork session.jsonl @t-2 -o other.jsonl
  pactql fork session.jsonl working -o copy.jsonl
  pactql fork agents.db#support-42 @t-2 agents.db#retry")]
pub(super) struct Fork {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input.
    session: String,
    /// Where the new session begins: `@t0`, `@t-2`, `@c7`, or `working`.
    #[arg(allow_hyphen_values = true)]
    address: String,
    /// The new session of a store, such as `agents.db#retry`.
    #[arg(value_name = "STORE#NAME", required_unless_present = "output")]
    to: Option<String>,
    /// The file to write, or the session of a store.
    #[arg(short, long, value_name = "FILE", conflicts_with = "to")]
    output: Option<String>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    limits: Limits,
}

impl Run for Fork {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let to = self.output.as_ref().or(self.to.as_ref());
        let to = to.map_or("", |to| to);
        let target = Address::of(to);
        if self.output.is_none() && target.is_none() {
            let session = quoted(&self.session);
            if let Some(from) = Address::of(&self.session)
                && !is_file(to)
            {
                let whole = quoted(&format!("{}#{to}", from.store));
                let message = format!("expected a file or `STORE#NAME`, found `{to}`");
                return Err(Failure::usage(message)
                    .with_help(format!("pactql fork {session} {} {whole}", self.address)));
            }
            let to = quoted(to);
            return Err(Failure::usage("the new file is the value of `-o`")
                .with_help(format!("pactql fork {session} {} -o {to}", self.address)));
        }
        check_target(to, &[&self.session], self.force)?;
        let from = Address::of(&self.session);
        if let (Some(from), Some(target)) = (from, target)
            && from.store == target.store
            && self.address != "working"
        {
            let (name, target) = (from.one()?, new_name(target)?);
            let store = open_store(from.store, Access::Write)?;
            store.fork(name, &self.address, target)?;
            return Ok(Exit::Ok);
        }
        let context = sessions::resume(&self.session, &self.limits, self.how.builder())?;
        let address = match &*self.address {
            "working" => "",
            address => address,
        };
        write_to(to, context.fork(address)?)?;
        Ok(Exit::Ok)
    }
}
