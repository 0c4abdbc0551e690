//! `pactql edit …`: the commands that change a session, and their references and provider calls.

use super::command::{Invocation, RunCommand, print};
use super::options::{FormArgs, rows};
use super::read_sessions::open_store;
use super::sessions;
use super::words::quoted;
use super::write::{
    HowArgs, NodeArgs, WriteArgs, Writing, check_plain_file, check_target, fields, new_name,
    print_ids, write_to,
};
use crate::app::present::stores::{Access, StoreAddress};
use crate::app::present::{Exit, Failure, Result, printable};
use crate::engine::Context;
use crate::history::{Attempt, AttemptStatus};
use crate::logs::file::SessionFile;
use crate::runtime::{Commit as Committed, Measure, NewNode, Policy, Scope};
use crate::support::diag::{Code, Diagnostic, Error, nearest};
use crate::support::table::TextTable;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::fmt::Write;

/// How is a session changed? Adds, updates, removes and commits nodes.
#[derive(Args, Debug)]
pub(super) struct EditArgs {
    #[command(subcommand)]
    change: EditCommand,
}

#[derive(Subcommand, Debug)]
enum EditCommand {
    /// How is a session begun? Makes one, which has the regions only: a file, or `STORE#name`.
    ///
    /// What exists is left as it is; a store that is missing is made. Prints nothing without `--json`.
    New {
        /// The file, or the session of a store, to make.
        file: String,
        #[command(flatten)]
        how: HowArgs,
    },
    /// How is a node added? With all below it, to the turn in progress or anywhere outside sealed cores.
    ///
    /// Prints the id.
    Add {
        #[command(flatten)]
        write: WriteArgs,
        /// Where: a selector of the parent, such as `^ah`, or a position such as `(d0, end)`.
        #[arg(allow_hyphen_values = true)]
        position: String,
        #[command(flatten)]
        node: NodeArgs,
    },
    /// How are fields of nodes changed?
    ///
    /// FIELDS is one JSON object, or `name=value` words: a value that is JSON is that, another one is a text.
    /// `null` takes a field away. Nodes of the turn in progress may get nearly everything; committed ones
    /// outside sealed cores another ttl, which counts from this cycle, or priority. Prints the ids.
    Update {
        #[command(flatten)]
        matched: MatchedArgs,
        /// The fields: a JSON object, `name=value` words, `@FILE`, or `-` for standard input.
        #[arg(required = true)]
        fields: Vec<String>,
    },
    /// How are nodes removed, with all below them?
    ///
    /// Sealed turns and what is in their cores stay: `compact` takes those. Prints the ids of the topmost
    /// nodes that went.
    Remove(MatchedArgs),
    /// How are nodes moved, with all below them?
    ///
    /// Nodes of the turn in progress keep their ids. A committed node may only change its region, and gets a
    /// successor with another id there. Prints the ids after the move.
    Move {
        #[command(flatten)]
        matched: MatchedArgs,
        /// Where: a selector of the parent, or a position such as `(d0, end)`.
        #[arg(allow_hyphen_values = true)]
        position: String,
    },
    /// How is a node replaced? The new one gets its offset, its time and, unless NODE has one, its key.
    ///
    /// The old node goes with all below it; the new one has an id of its own, which is printed.
    Replace(PutArgs),
    /// How are nodes compacted? The next commit takes them, and a summary is where the first of them was.
    ///
    /// Takes whole turns and blocks of sealed cores, too. Prints the id of the summary. Until the commit
    /// nothing changes; `discard` takes the note back.
    Compact(PutArgs),
    Commit(CommitArgs),
    /// How is every change since the last commit taken back?
    ///
    /// Attempts stay, and so do the references to nodes that are left. Prints nothing without `--json`.
    Discard(WriteArgs),
    Fork(Fork),
    Refs(Refs),
    Attempts(AttemptsArgs),
}

/// The nodes that another one takes the place of.
#[derive(Args, Debug)]
struct PutArgs {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes: of the one to replace, or of those to compact.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    #[command(flatten)]
    node: NodeArgs,
}

/// The nodes that a command changes.
#[derive(Args, Debug)]
struct MatchedArgs {
    #[command(flatten)]
    write: WriteArgs,
    /// A selector of the nodes.
    #[arg(allow_hyphen_values = true)]
    selector: String,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
}

impl MatchedArgs {
    fn change(
        &self,
        with: &Invocation,
        change: impl FnOnce(&mut Context, &str) -> Result<Vec<String>, Error>,
    ) -> Result<Exit> {
        let empty = Exit::of_empty(self.fail_if_empty);
        self.write.change(with, &self.selector, empty, change)
    }
}

impl RunCommand for EditArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        type Put = fn(&mut Context, &str, NewNode) -> Result<String, Error>;
        let put = |write: &WriteArgs, place: &str, node: &NodeArgs, put: Put| {
            let node = node.read(write, with)?;
            write.change(with, place, Exit::Ok, |context, place| {
                Ok(vec![put(context, place, node)?])
            })
        };
        match &self.change {
            EditCommand::New { file, how } => make(file, how, with),
            EditCommand::Add {
                write,
                position,
                node,
            } => put(write, position, node, Context::add),
            EditCommand::Replace(args) => {
                put(&args.write, &args.selector, &args.node, Context::replace)
            }
            EditCommand::Compact(args) => {
                put(&args.write, &args.selector, &args.node, Context::compact)
            }
            EditCommand::Update {
                matched,
                fields: words,
            } => {
                let fields = fields(words, &matched.write, with)?;
                matched.change(with, |context, selector| context.update(selector, fields))
            }
            EditCommand::Remove(matched) => matched.change(with, Context::remove),
            EditCommand::Move { matched, position } => matched.change(with, |context, selector| {
                context.move_to(selector, position)
            }),
            EditCommand::Commit(command) => command.run(with),
            EditCommand::Discard(write) => {
                let mut writing = write.open(Policy::new(), with)?;
                writing.context().discard();
                writing.save()?;
                with.done(&json!({"session": write.session}))
            }
            EditCommand::Fork(command) => command.run(with),
            EditCommand::Refs(command) => command.run(with),
            EditCommand::Attempts(command) => command.run(with),
        }
    }
}

fn make(file: &str, how: &HowArgs, with: &Invocation) -> Result<Exit> {
    let context = how.builder().build();
    if StoreAddress::parse(file).is_some() {
        write_to(file, context)?;
    } else {
        check_plain_file(file)?;
        SessionFile::create(file, context)?;
    }
    with.done(&json!({"session": file}))
}

/// How is the cycle in progress committed?
///
/// In this order: nodes whose ttl has run out go, then what `compact` noted, then what the limits ask
/// for; the turn in progress is sealed as a turn of `^seq`, and the snapshot is written. Prints what
/// went. Limits are kept in the order --prune-tokens, then each --prune.
#[derive(Args, Debug)]
struct CommitArgs {
    #[command(flatten)]
    write: WriteArgs,
    /// Prune blocks until the whole tree has at most N tokens, at 4 bytes each. Of equal priority the oldest
    /// go first, those of `^sys` among them.
    #[arg(long, value_name = "N")]
    prune_tokens: Option<u64>,
    /// Another limit: SCOPE:MEASURE=N, where SCOPE is sys, seq, ah or whole (the default), and MEASURE tokens or nodes.
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    prune: Vec<(Scope, Measure, u64)>,
    /// Keep the newest K turns and take those before them, whole; the turn in progress is the first of them.
    #[arg(long, value_name = "K")]
    window: Option<u32>,
    /// Leave the newest K turns as they are; the turn in progress is the first of them.
    #[arg(long, value_name = "K", default_value_t = 1)]
    protect: u32,
}

fn limit(text: &str) -> Result<(Scope, Measure, u64), String> {
    let read = || {
        let (what, most) = text.split_once('=')?;
        let (scope, measure) = what.split_once(':').unwrap_or(("whole", what));
        let scope = Scope::parse(scope.trim_start_matches('^'))?;
        Some((scope, Measure::parse(measure)?, most.parse().ok()?))
    };
    read()
        .ok_or_else(|| "expected a limit such as `seq:tokens=6000` or `whole:nodes=500`".to_owned())
}

impl CommitArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let tokens = self.prune_tokens;
        let tokens = tokens.map(|most| (Scope::Whole, Measure::Tokens, most));
        let mut policy = Policy::new().protect(self.protect);
        if let Some(turns) = self.window {
            policy = policy.window(turns);
        }
        for (scope, measure, most) in tokens.into_iter().chain(self.prune.iter().copied()) {
            policy = policy.limit(scope, measure, most);
        }
        let mut writing = self.write.open(policy, with)?;
        let report = writing.context().commit()?;
        // A store has the commit already.
        if !matches!(writing, Writing::Stored(_)) {
            writing.save()?;
        }
        // By way of a value, whose members are in the order of their names.
        with.print(&json!(report), || text(&report))
    }
}

fn text(report: &Committed) -> String {
    let (cycle, turn) = (report.cycle, printable(&report.turn));
    let mut text = format!("cycle {cycle} is committed as {turn}\n");
    for (what, ids) in [
        ("expired", &report.expired),
        ("compacted", &report.compacted),
        ("pinned", &report.kept),
        ("voided", &report.voided),
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

/// How does another session begin at a snapshot of this one?
///
/// The new session has the snapshots up to there, and those attempts; for `working` also the working
/// state. References stay with this session. Within one store nothing is copied. Prints nothing without `--json`.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql edit fork [OPTIONS] <SESSION> <ADDRESS> -o <FILE>
       pactql edit fork [OPTIONS] <SESSION> <ADDRESS> <STORE#NAME>")]
struct Fork {
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
}

impl Fork {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let to = self.output.as_ref().or(self.to.as_ref());
        let to = to.map_or("", |to| to);
        let (from, target) = (StoreAddress::parse(&self.session), StoreAddress::parse(to));
        if self.output.is_none() && target.is_none() {
            let message = "the new file is the value of `-o`";
            let help = "a new session of a store is named with its store, such as agents.db#retry";
            return Err(Failure::usage(message).with_help(help));
        }
        check_target(to, &[&self.session], self.force)?;
        if let (Some(from), Some(target)) = (from, target)
            && from.store == target.store
            && self.address != "working"
        {
            let (name, target) = (from.one()?, new_name(target)?);
            let store = open_store(from.store, Access::Write)?;
            store.fork(name, &self.address, target)?;
            return with.done(&json!({"session": to}));
        }
        let context = sessions::resume(&self.session, with.limits, self.how.builder())?;
        let address = Some(&*self.address).filter(|address| *address != "working");
        write_to(to, context.fork(address.unwrap_or_default())?)?;
        with.done(&json!({"session": to}))
    }
}

/// Which nodes do references keep? Lists, adds or drops references.
///
/// A reference has a name, and pins one node: it does not expire, is not pruned, and cannot be removed,
/// nor can a node above it. `add` replaces a reference of the same name, and prints
/// the id of the node; `drop` prints the id of the node that is free again.
#[derive(Args, Debug)]
#[command(args(rows(["name", "id"])))]
#[command(override_usage = "\
pactql edit refs [OPTIONS] <SESSION>
       pactql edit refs [OPTIONS] <SESSION> add <NAME> <SELECTOR>
       pactql edit refs [OPTIONS] <SESSION> drop <NAME>")]
struct Refs {
    #[command(flatten)]
    write: WriteArgs,
    /// What to do; without it, the references are listed.
    #[arg(value_parser = ["add", "drop"])]
    action: Option<String>,
    /// The name of the reference.
    #[arg(requires = "action")]
    name: Option<String>,
    /// A selector of the one node to pin.
    #[arg(requires = "name", allow_hyphen_values = true)]
    selector: Option<String>,
}

impl Refs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        match (self.action.as_deref(), &self.name, &self.selector) {
            (None, ..) => self.list(with),
            (Some("add"), Some(name), Some(selector)) => {
                self.write.change(with, selector, Exit::Ok, |context, _| {
                    Ok(vec![context.pin_as(name, selector)?])
                })
            }
            (Some("drop"), Some(name), None) => {
                let mut writing = self.write.open(Policy::new(), with)?;
                let Some(id) = writing.context().unpin(name) else {
                    let known = writing.context().references().map(|(name, _)| name);
                    let failure = Failure::value(format!("no reference has the name `{name}`"));
                    return Err(failure.near(nearest(name, known)));
                };
                writing.save()?;
                print_ids(with, &[id])
            }
            _ => Err(
                Failure::usage("`add` takes a name and a selector, `drop` takes one name")
                    .with_help("pactql edit refs SESSION add policy \"#policy\""),
            ),
        }
    }

    fn list(&self, with: &Invocation) -> Result<Exit> {
        let context = self.write.read(with)?;
        let pins = context.references();
        let pins = pins.map(|(name, id)| json!({"name": name, "id": id}));
        let pins: Vec<Value> = pins.collect();
        with.print(&pins, || match &pins[..] {
            [] => String::new(),
            pins => TextTable::of(pins, "name id").words([1]).text(with.paint()),
        })
    }
}

/// Which provider calls did a session make? Lists them, newest first; begins one, or ends it.
///
/// `begin --as PROVIDER` prints the request to send, and keeps what it had. `end` says how it went:
/// completed, or --canceled, or --error TEXT. A cycle may have several. Attempts are part of no
/// snapshot; `render --request` shows what the one of a cycle was sent. Only calls that were begun
/// here are listed: of an imported log, `steps` says which calls failed.
#[derive(Args, Debug)]
#[command(args(rows([
    "attempt", "status", "provider", "model", "in", "out", "error",
])))]
#[command(override_usage = "\
pactql edit attempts [OPTIONS] <SESSION>
       pactql edit attempts [OPTIONS] <SESSION> begin --as <FORM>
       pactql edit attempts [OPTIONS] <SESSION> end [--tokens-in <N> --tokens-out <N> | --canceled | --error <TEXT>]")]
struct AttemptsArgs {
    #[command(flatten)]
    write: WriteArgs,
    /// What to do; without it, the calls are listed.
    #[arg(value_parser = ["begin", "end"])]
    action: Option<String>,
    /// List: only those of this cycle.
    #[arg(long, value_name = "N", conflicts_with = "action")]
    cycle: Option<i64>,
    /// List: only those that ended so.
    #[arg(long, conflicts_with = "action")]
    #[arg(value_parser = ["running", "completed", "canceled", "error"])]
    status: Option<String>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    ending: CallEndingArgs,
}

/// How a call ended.
#[derive(Args, Debug, Default, PartialEq, Eq)]
struct CallEndingArgs {
    /// End: it failed, with this message.
    #[arg(long, value_name = "TEXT", conflicts_with = "canceled")]
    error: Option<String>,
    /// End: it was stopped.
    #[arg(long)]
    canceled: bool,
    /// End: the tokens sent.
    #[arg(long, value_name = "N", conflicts_with_all = ["canceled", "error"])]
    tokens_in: Option<u64>,
    /// End: the tokens received.
    #[arg(long, value_name = "N", conflicts_with_all = ["canceled", "error"])]
    tokens_out: Option<u64>,
}

impl AttemptsArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let ends = self.ending != CallEndingArgs::default();
        let message = match (self.action.as_deref(), self.form.provider) {
            (Some("begin"), Some(provider)) if !ends => {
                let mut writing = self.write.open(Policy::new(), with)?;
                let request = writing.context().render(provider)?;
                writing.save()?;
                return print(&request.body);
            }
            (Some("end"), None) => return self.end(with),
            (None, None) if !ends => return self.list(with),
            (Some("begin"), _) if ends => "`attempts SESSION begin` takes no result",
            (Some("begin"), _) => "`attempts SESSION begin` needs `--as`",
            (_, Some(_)) => "`--as` is the form of a request that begins",
            _ => "a result is noted when an attempt ends",
        };
        Err(Failure::usage(message)
            .with_help("pactql edit attempts SESSION begin --as openai, or: end --canceled"))
    }

    fn end(&self, with: &Invocation) -> Result<Exit> {
        let mut writing = self.write.open(Policy::new(), with)?;
        let context = writing.context();
        let newest = context.attempts();
        let cycle = context.cycle();
        let completes = self.ending.error.is_none() && !self.ending.canceled;
        let open = newest.iter().next().filter(|attempt| {
            let is_open = match attempt.status {
                AttemptStatus::Running => true,
                // Its counts may come after its reply.
                AttemptStatus::Completed => completes,
                _ => false,
            };
            attempt.cycle_id == cycle && is_open
        });
        let Some(open) = open else {
            let session = quoted(&self.write.session);
            let help = format!("pactql edit attempts {session} begin --as openai");
            let error = Diagnostic::error(Code::Placement, "no attempt of this cycle is running");
            return Err(Error::new("", error.with_help(help)).into());
        };
        let ended = &self.ending;
        match &ended.error {
            Some(error) => context.fail_attempt(error)?,
            None if ended.canceled => context.cancel_attempt()?,
            None => context.complete_attempt(ended.tokens_in, ended.tokens_out)?,
        }
        writing.save()?;
        print_ids(with, std::slice::from_ref(&open.attempt_id))
    }

    fn list(&self, with: &Invocation) -> Result<Exit> {
        let context = self.write.read(with)?;
        let attempts = context.attempts();
        let is_wanted = |attempt: &&Attempt| {
            let status = attempt.status.as_str();
            self.cycle.is_none_or(|cycle| attempt.cycle_id == cycle)
                && self.status.as_ref().is_none_or(|wanted| wanted == status)
        };
        let attempts: Vec<&Attempt> = attempts.iter().filter(is_wanted).collect();
        with.print(&attempts, || match &attempts[..] {
            [] => String::new(),
            attempts => {
                let columns =
                    "attempt=attempt_id status provider model in=token_in out=token_out error";
                let table = TextTable::of(attempts, columns).words([1, 2, 3, 6]);
                table.hide_empty().text(with.paint())
            }
        })
    }
}
