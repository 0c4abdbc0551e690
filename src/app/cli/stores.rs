//! The commands on stores: `sessions`, `rename`, `delete`, `erase`, `prune`, `backup`, `index-text`.

use super::command::{Run, print, say};
use super::options::{Color, Messages, TextFirst, Tint};
use super::output::{counted, printable};
use super::progress::Progress;
use super::sessions::open_store;
use super::store_words::{address, one, several, whole};
use super::wait::Wait;
use super::words::{in_quotes, is_selector, joined, quoted};
use super::write::{HowArgs, new_name};
use crate::app::present::stores::{Access, Address, Which, intact, none_of, path, session_json};
use crate::app::present::{Exit, Failure, literal};
use crate::engine::Answer;
use crate::store::{Pruned, Retention, SessionInfo, Store, TextIndex};
use crate::support::diag::Code;
use crate::support::table::{Cell, Table};
use crate::tree::timestamp::rfc3339_of_nanos;
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Which sessions does a store have? In byte order of their names.
///
/// One line each: the name, the number of snapshots, the cycle of the newest one, whether there is a
/// working state, when the newest snapshot was committed, the file it was imported from, and the session
/// it was forked from. No session is opened. A note says whether the store has a text index.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql sessions agents.db
  pactql sessions \"agents.db#support-*\" --json")]
pub(super) struct Sessions {
    /// The store, such as `agents.db`, or some of its sessions, such as `agents.db#support-*`.
    store: String,
    /// How the sessions are printed.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
    /// As `--format json`: one JSON object a line.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Exit with code 8 if there are none.
    #[arg(long)]
    fail_if_empty: bool,
}

impl Run for Sessions {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let address = several("sessions", &self.store)?;
        let store = open_store(address.store, Access::Read)?;
        let found = store.sessions(address.glob())?;
        if found.is_empty() {
            say(&format!("note: {}\n", none_of(address)));
            return Ok(Exit::of_empty(self.fail_if_empty));
        }
        if let Some(index) = store.text_index()? {
            say(&format!("note: {}\n", index_words(index)));
        }
        print(&if self.json || self.format == TextFirst::Json {
            found
                .iter()
                .map(|info| format!("{}\n", session_json(info)))
                .collect()
        } else {
            table(&found).text(color.for_results())
        })
    }
}

/// What is said of a text index.
fn index_words(index: TextIndex) -> String {
    match index.behind {
        0 => "the store has a text index, which is up to date".to_owned(),
        behind => format!(
            "the store has a text index; {} came later, and `pactql index-text` adds them",
            counted(behind, "unit")
        ),
    }
}

/// The sessions as a table. A column in which nothing is said is left out.
fn table(found: &[SessionInfo]) -> Table {
    let titles = [
        "name",
        "snapshots",
        "cycle",
        "working",
        "committed",
        "source",
        "parent",
    ];
    let text = |text: Option<&str>| text.map(printable).unwrap_or_default();
    let mut table = Table::new(titles).words(2..titles.len()).hide_empty();
    for info in found {
        let cycle = info.cycle.map(|cycle| format!("@c{cycle}"));
        let cells = [
            info.snapshots.to_string(),
            cycle.unwrap_or_default(),
            if info.working { "yes" } else { "" }.to_owned(),
            info.committed_at_ns.map(seconds).unwrap_or_default(),
            text(info.source.as_deref()),
            text(info.parent.as_deref()),
        ];
        let name = Cell::new(printable(&info.name), Some(Tint::Name));
        table.add(std::iter::once(name).chain(cells.map(Cell::from)));
    }
    table
}

/// A time to the second.
fn seconds(nanos: i64) -> String {
    const SECOND: i64 = 1_000_000_000;
    let text = rfc3339_of_nanos(nanos - nanos.rem_euclid(SECOND));
    text.split_once('.')
        .map_or_else(|| text.clone(), |(whole, _)| format!("{whole}Z"))
}

/// Give a session of a store another name.
///
/// Forks of it keep their parent. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql rename agents.db#support-42 solved/42")]
pub(super) struct Rename {
    /// The session, such as `agents.db#support-42`.
    session: String,
    /// The new name, such as `solved/42`, or the same with its store, `agents.db#solved/42`.
    name: String,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    messages: Messages,
}

impl Run for Rename {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let (store, from) = one("rename", &self.session)?;
        let to = match Address::of(&self.name) {
            Some(address) if address.store == store => new_name(address)?,
            Some(_) => {
                return Err(
                    Failure::usage("a session stays in its store").with_help(format!(
                        "pactql import {} -o {} copies it",
                        quoted(&self.session),
                        quoted(&self.name)
                    )),
                );
            }
            None => {
                let whole = format!("{store}#{}", self.name);
                let address = Address::of(&whole).map(new_name);
                address.transpose()?;
                &self.name
            }
        };
        let store = open_store(store, Access::Write)?;
        self.wait.until_free(|| Ok(store.rename(from, to)?))?;
        Ok(Exit::Ok)
    }
}

/// Delete a session of a store, with all its snapshots.
///
/// Without `--yes` nothing is deleted, and the message says what would go. Forks of the session stay
/// whole. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql delete agents.db#support-42
  pactql delete agents.db#support-42 --yes")]
pub(super) struct Delete {
    /// The session, such as `agents.db#support-42`.
    session: String,
    /// Delete it.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    messages: Messages,
}

impl Run for Delete {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        address("delete", &self.session).map_err(|failure| {
            failure.with_help(
                "it deletes sessions, such as agents.db#support-42; `pactql remove` removes nodes",
            )
        })?;
        let (store, name) = one("delete", &self.session)?;
        if self.yes {
            let store = open_store(store, Access::Write)?;
            self.wait.until_free(|| Ok(store.delete(name)?))?;
            return Ok(Exit::Ok);
        }
        let opened = open_store(store, Access::Read)?;
        // Says which names are near.
        opened.session(name)?;
        let found = opened.sessions(name)?;
        let info = found.iter().find(|info| info.name == name);
        let snapshots = info.map_or(0, |info| info.snapshots as u64);
        let working = if info.is_some_and(|info| info.working) {
            " and the working state"
        } else {
            ""
        };
        let what = counted(snapshots, "snapshot");
        Err(Failure::usage(format!(
            "{what}{working} of `{name}` would be deleted, and nothing brings them back"
        ))
        .with_help(format!("pactql delete {} --yes", quoted(&self.session))))
    }
}

/// Take the contents of nodes out of every snapshot of a session.
///
/// Their contents read `[erased]` from then on, and their custom attributes are gone; the calls of models,
/// which had the texts, go too. The chain of hashes says that this was done, and still verifies. Prints
/// the ids. Forks are sessions of their own: those that still have the texts are named on standard error.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql erase [OPTIONS] <SESSION> <ID>...
       pactql erase [OPTIONS] <SESSION> <SELECTOR>")]
#[command(after_help = "\
Examples:
  pactql erase agents.db#support-42 cb:u1 cb:u2
  pactql erase agents.db#support-42 \"@* .cb[content~'4111 1111']\"")]
pub(super) struct Erase {
    /// The session, such as `agents.db#support-42`.
    session: String,
    /// The ids of the nodes, such as `cb:u1`, or one selector of them, such as `@* .cb[role='user']`;
    /// `@*` looks in every snapshot.
    #[arg(value_name = "ID", required = true)]
    nodes: Vec<String>,
    /// Exit with code 8 if the selector finds nothing.
    #[arg(long)]
    fail_if_empty: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    how: HowArgs,
}

impl Run for Erase {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        if let [.., last] = &self.nodes[..]
            && Address::of(&self.session).is_none()
            && Address::of(last).is_some()
        {
            let nodes = [
                std::slice::from_ref(last),
                std::slice::from_ref(&self.session),
            ];
            let rest = &self.nodes[..self.nodes.len() - 1];
            let words = [nodes.concat(), rest.to_vec()].concat();
            return Err(Failure::usage("the session comes first, then the nodes")
                .with_help(format!("pactql erase {}", joined(&words))));
        }
        let (store, name) = one("erase", &self.session)?;
        let opened = open_store(store, Access::Write)?;
        // What another writer adds while this one waits is looked for too.
        let erased = self.wait.until_free(|| {
            let ids = self.ids(&opened, name)?;
            let others = if ids.is_empty() {
                Vec::new()
            } else {
                opened.erase(name, ids.iter().map(String::as_str))?
            };
            Ok((ids, others))
        });
        let (ids, others) = erased.map_err(|failure| self.explain(failure))?;
        if ids.is_empty() {
            say("note: the selector finds nothing, and nothing was erased\n");
        }
        for other in others {
            let other = printable(&other);
            say(&format!(
                "warning: the session {store}#{other} still has the texts\n"
            ));
        }
        self.how.print_ids(&ids)?;
        Ok(Exit::of_empty(self.fail_if_empty && ids.is_empty()))
    }
}

impl Erase {
    /// Adds to the failure for an id that no snapshot has how to find the nodes.
    fn explain(&self, failure: Failure) -> Failure {
        match &failure {
            Failure::Selector(error, _) if error.code() == Code::Placement => {}
            _ => return failure,
        }
        let session = quoted(&self.session);
        let text = self
            .nodes
            .iter()
            .find(|node| node.contains(char::is_whitespace));
        failure.advised(match text {
            Some(text) => {
                let selector = format!("@* .cb[content~{}]", literal(text));
                format!("pactql erase {session} {}", in_quotes(&selector))
            }
            None => format!("`pactql select {session} \"@* *\" --format ids` lists the ids"),
        })
    }

    /// The ids that were given, or those of the nodes that the selector finds.
    fn ids(&self, store: &Store, name: &str) -> Result<Vec<String>, Failure> {
        match &self.nodes[..] {
            [selector] if is_selector(selector) => self.found(store, name, selector),
            ids => match ids.iter().find(|id| is_selector(id)) {
                Some(selector) => {
                    let message = format!("expected the ids of nodes, found `{selector}`");
                    Err(Failure::usage(message).with_help(
                        "a selector is one argument, in quotes, and takes no ids beside it",
                    ))
                }
                None => Ok(ids.to_vec()),
            },
        }
    }

    /// The ids of the nodes that a selector finds, each once.
    fn found(&self, store: &Store, name: &str, selector: &str) -> Result<Vec<String>, Failure> {
        let session = store.session(name)?;
        let answer = self.how.edition.engine().select(&session, selector)?;
        let Answer::Rows(rows) = &answer else {
            return Err(Failure::value("a range has differences, not nodes")
                .with_help("`@*` finds the nodes of every snapshot"));
        };
        let mut ids: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for id in rows.ids() {
            if seen.insert(id.to_owned()) {
                ids.push(id.to_owned());
            }
        }
        intact(&session)?;
        Ok(ids)
    }
}

/// Remove the oldest snapshots of the sessions of a store.
///
/// `--keep` leaves the newest N of each session, `--older-than` those that are younger; with both a
/// snapshot goes if neither keeps it. The newest snapshot of a session always stays. What stays answers as
/// before. `--dry-run` counts what would go. Commits of the runtime have limits of their own: `pactql
/// commit --prune`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql prune agents.db --keep 10 --dry-run
  pactql prune agents.db --older-than 30d
  pactql prune \"agents.db#support-*\" --keep 10 --older-than 12h --format json")]
pub(super) struct Prune {
    /// The store, such as `agents.db`, or some of its sessions, such as `agents.db#support-*`.
    store: String,
    /// Keep the newest N snapshots of each session, at least 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// Remove only snapshots that were committed longer ago: a number and a unit, of s, m, h, d or w,
    /// such as `30d`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Count what would go, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    /// How the numbers are printed.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

/// Reads `30d`.
fn age(text: &str) -> Result<Duration, String> {
    let read = || {
        let (at, unit) = text.char_indices().last()?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let count: u64 = text[..at].parse().ok()?;
        Some(Duration::from_secs(count.checked_mul(seconds)?))
    };
    read().ok_or_else(|| "expected an age such as 30d, 12h or 90m".to_owned())
}

impl Run for Prune {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let address = several("prune", &self.store)?;
        if self.keep.is_none() && self.older_than.is_none() {
            return Err(
                Failure::usage("`prune` needs `--keep` or `--older-than`").with_help(format!(
                    "pactql prune {} --keep 10 --dry-run",
                    quoted(&self.store)
                )),
            );
        }
        let store = open_store(address.store, Access::Write)?;
        if let Which::One(name) = address.which {
            // Says which names are near.
            store.session(name)?;
        }
        let mut retention = Retention::default().sessions(address.glob());
        if let Some(newest) = self.keep {
            retention = retention.keep(newest);
        }
        if let Some(age) = self.older_than {
            retention = retention.older_than(age);
        }
        if self.dry_run {
            retention = retention.dry_run();
        }
        let pruned = store.prune(&retention)?;
        if pruned.snapshots == 0
            && address.is_several()
            && store.sessions(address.glob())?.is_empty()
        {
            say(&format!("note: {}\n", none_of(address)));
        }
        print(&if self.format == TextFirst::Json {
            self.json(&pruned)
        } else {
            self.text(&pruned)
        })
    }
}

impl Prune {
    fn json(&self, pruned: &Pruned) -> String {
        let sessions = pruned.sessions.iter();
        let sessions = sessions.map(|(name, count)| json!({"name": name, "snapshots": count}));
        let json = json!({
            "dry_run": self.dry_run,
            "sessions": sessions.collect::<Vec<_>>(),
            "snapshots": pruned.snapshots,
            "units": pruned.units,
            "bodies": pruned.bodies,
        });
        format!("{json}\n")
    }

    fn text(&self, pruned: &Pruned) -> String {
        if pruned.sessions.is_empty() {
            return "nothing to remove\n".to_owned();
        }
        let names = pruned.sessions.iter();
        let names: Vec<(String, u64)> = names.map(|(name, n)| (printable(name), *n)).collect();
        let width = names.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or(0);
        let mut text = String::new();
        for (name, count) in &names {
            let _ = writeln!(text, "{name:width$}  {}", counted(*count, "snapshot"));
        }
        let verb = if self.dry_run { "would go" } else { "went" };
        let _ = writeln!(
            text,
            "{} of {} {verb}, with {} and {} that nothing else has",
            counted(pruned.snapshots, "snapshot"),
            counted(pruned.sessions.len() as u64, "session"),
            counted(pruned.units, "unit"),
            match pruned.bodies {
                1 => "1 content".to_owned(),
                more => format!("{more} contents"),
            },
        );
        text
    }
}

/// Copy a store to a new SQLite file, as it is at one moment, while others write.
///
/// A file that exists is never replaced. Prints nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql backup agents.db -o backup.db
  pactql backup postgres://localhost/agents -o backup.db")]
pub(super) struct Backup {
    /// The store, such as `agents.db`.
    store: String,
    /// The file to write, such as `backup.db`; a name that ends in `.db` is read as a store, any other as `sqlite:FILE`.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: String,
    #[command(flatten)]
    messages: Messages,
}

impl Run for Backup {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let store = whole("backup", &self.store)?;
        let Some(file) = path(&self.output) else {
            return Err(Failure::usage("a backup is a file").with_help("-o backup.db"));
        };
        if Path::new(file).exists() {
            return Err(Failure::usage(format!("the output {file} exists"))
                .with_help("a backup replaces nothing: choose another name"));
        }
        open_store(store, Access::Read)?.backup(file)?;
        Ok(Exit::Ok)
    }
}

/// Make a text index of a store, or bring it up to date.
///
/// With it, `pactql grep` of the store opens only the sessions that may have a match, and answers the same.
/// Commits do not write it: what was written later is searched without it, until this command is run again.
/// What is deleted, pruned or erased goes from the index, too. Others can write meanwhile.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql index-text agents.db
  pactql index-text agents.db --drop")]
pub(super) struct IndexText {
    /// The store, such as `agents.db`.
    store: String,
    /// Remove the index.
    #[arg(long)]
    drop: bool,
    /// How the numbers are printed.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

impl Run for IndexText {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let store = open_store(whole("index-text", &self.store)?, Access::Write)?;
        let is_json = self.format == TextFirst::Json;
        if self.drop {
            let dropped = store.drop_text_index()?;
            return print(&match (is_json, dropped) {
                (true, _) => format!("{}\n", json!({"dropped": dropped})),
                (false, true) => "the text index was removed\n".to_owned(),
                (false, false) => "there is no text index\n".to_owned(),
            });
        }
        let progress = Progress::spinner(format!("indexing {}", self.store));
        let added = store.index_text()?;
        let index = store.text_index()?;
        drop(progress);
        let texts = index.map_or(0, |index| index.texts);
        print(&if is_json {
            format!("{}\n", json!({"units": added, "texts": texts}))
        } else {
            format!(
                "the text index has {}; {} came in\n",
                counted(texts, "text"),
                counted(added, "unit"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::age;
    use std::time::Duration;

    #[test]
    fn ages() {
        for (text, seconds) in [
            ("90s", 90),
            ("2m", 120),
            ("1h", 3600),
            ("30d", 2_592_000),
            ("1w", 604_800),
        ] {
            assert_eq!(age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "d",
            "30",
            "-1d",
            "1.5d",
            "30 days",
            "99999999999999999999d",
            "18446744073709551615w",
            "1ä",
        ] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
