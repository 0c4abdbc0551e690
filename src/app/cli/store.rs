//! `pactql store …`: the commands that keep stores.

use super::command::{Invocation, RunCommand, say};
use super::interrupt::duration;
use super::options::EditionArgs;
use super::output::{counted, printable};
use super::progress::Progress;
use super::read_sessions::open_store;
use super::session_args::first_of_day;
use super::words::{is_selector, quoted};
use super::write::{Wait, new_name, print_ids};
use crate::app::present::stores::{Access, StoreAddress, Which, none_of, path};
use crate::app::present::{Exit, Failure, Result};
use crate::engine::Answer;
use crate::store::{Pruned, Retention, Store};
use crate::support::diag::Code;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// How is a store kept? Renames, deletes, prunes, erases, backs up, indexes, vacuums, salvages, copies.
#[derive(Args, Debug)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand, Debug)]
enum StoreCommand {
    /// How does a session get another name?
    ///
    /// Forks of it keep their parent. Prints nothing without `--json`.
    Rename {
        /// The session, such as `agents.db#support-42`.
        session: String,
        /// The new name, such as `solved/42`, or the same with its store, `agents.db#solved/42`.
        name: String,
        #[command(flatten)]
        wait: Wait,
    },
    /// How is a session deleted, with all its snapshots?
    ///
    /// Without `--yes` nothing is deleted, and the message says what would go. Forks of the session stay
    /// whole. Prints nothing without `--json`.
    Delete {
        /// The session, such as `agents.db#support-42`.
        session: String,
        /// Delete it.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        wait: Wait,
    },
    Prune(Prune),
    Erase(Erase),
    /// How is a store copied? To a new SQLite file, as it is at one moment, while others write.
    ///
    /// A file that exists is never replaced. Prints nothing without `--json`.
    Backup {
        /// The store, such as `agents.db`.
        store: String,
        /// The file to write; a name that ends in `.db` is read as a store, any other as `sqlite:FILE`.
        #[arg(short, long, value_name = "FILE", required = true)]
        output: String,
    },
    /// How do searches of a store get fast? Makes the text index that `grep` and patterns of selectors use, or brings it up
    /// to date.
    ///
    /// With it, `pactql grep` of the store, and `pactql select` with `[content~…]`, open only the sessions that may have a
    /// match, and answer the same.
    /// Commits do not write it: what was written later is searched without it, until this command is run again.
    /// What is deleted, pruned or erased goes from the index, too. Others can write meanwhile.
    Index {
        /// The store, such as `agents.db`.
        store: String,
        /// Remove the index.
        #[arg(long)]
        drop: bool,
    },
    /// How is the file of a store made small? Gives free space back, and makes what was removed unreadable.
    ///
    /// `delete`, `prune` and `erase` do the same for what they remove, unless another program uses the store at that
    /// moment; then run this command afterwards. Prints nothing without `--json`.
    Vacuum {
        /// The store, such as `agents.db`.
        store: String,
    },
    /// What can be saved of a damaged store? Copies the sessions that are intact to a new one.
    ///
    /// The others are listed with what is wrong, and end with exit code 5. References and unfinished writing are not
    /// copied. A file that exists is never replaced.
    Salvage {
        /// The damaged store, such as `agents.db`.
        store: String,
        /// The store to write.
        #[arg(short, long, value_name = "FILE", required = true)]
        output: String,
    },
    Parquet(Parquet),
}

impl RunCommand for StoreArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        match &self.command {
            StoreCommand::Rename {
                session,
                name,
                wait,
            } => rename(session, name, *wait, with),
            StoreCommand::Delete { session, yes, wait } => delete(session, *yes, *wait, with),
            StoreCommand::Prune(command) => command.run(with),
            StoreCommand::Erase(command) => command.run(with),
            StoreCommand::Backup { store, output } => backup(store, output, with),
            StoreCommand::Index { store, drop } => index(store, *drop, with),
            StoreCommand::Vacuum { store } => {
                open_store(whole("vacuum", store)?, Access::Write)?.vacuum()?;
                with.done(&json!({"store": store}))
            }
            StoreCommand::Salvage { store, output } => salvage(store, output, with),
            StoreCommand::Parquet(command) => command.run(with),
        }
    }
}

/// The address that a word must be.
fn address<'a>(command: &str, word: &'a str) -> Result<StoreAddress<'a>> {
    StoreAddress::parse(word).ok_or_else(|| {
        Failure::usage(format!(
            "`store {command}` takes a store, and `{word}` is none"
        ))
        .with_help("a store is a path that ends in .db, `sqlite:PATH`, or a postgres:// URL")
    })
}

/// A store, or those sessions of it that match.
fn several<'a>(command: &str, word: &'a str) -> Result<StoreAddress<'a>> {
    let address = address(command, word)?;
    if address.which == Which::One("") {
        address.one()?;
    }
    Ok(address)
}

fn whole<'a>(command: &str, word: &'a str) -> Result<&'a str> {
    let address = address(command, word)?;
    if address.which == Which::All {
        return Ok(address.store);
    }
    let help = format!("pactql store {command} {}", quoted(address.store));
    Err(Failure::usage(format!("`store {command}` takes a whole store")).with_help(help))
}

fn one<'a>(command: &str, word: &'a str) -> Result<(&'a str, &'a str)> {
    let address = address(command, word)?;
    Ok((address.store, address.one()?))
}

fn rename(session: &str, name: &str, wait: Wait, with: &Invocation) -> Result<Exit> {
    let (store, from) = one("rename", session)?;
    let whole = format!("{store}#{name}");
    let to = match StoreAddress::parse(name) {
        Some(address) if address.store == store => new_name(address)?,
        Some(_) => {
            return Err(Failure::usage("a session stays in its store")
                .with_help("`pactql import` copies one into another store"));
        }
        None => {
            StoreAddress::parse(&whole).map(new_name).transpose()?;
            name
        }
    };
    let opened = open_store(store, Access::Write)?;
    wait.until_free(|| Ok(opened.rename(from, to)?))?;
    with.done(&json!({"session": format!("{store}#{to}")}))
}

fn delete(session: &str, yes: bool, wait: Wait, with: &Invocation) -> Result<Exit> {
    let (store, name) = one("delete", session)?;
    if yes {
        let store = open_store(store, Access::Write)?;
        wait.until_free(|| Ok(store.delete(name)?))?;
        note_held(&store);
        return with.done(&json!({"deleted": name}));
    }
    let history = open_store(store, Access::Read)?.session(name)?.history();
    let working = if history.has_working() {
        " and the working state"
    } else {
        ""
    };
    let what = counted(history.committed().len() as u64, "snapshot");
    Err(Failure::usage(format!(
        "{what}{working} of `{name}` would be deleted, and nothing brings them back"
    ))
    .with_help(format!("pactql store delete {} --yes", quoted(session))))
}

/// Says so if a file still has what was removed.
fn note_held(store: &Store) {
    if store.has_removed_text() {
        say(
            "note: the file still has what was removed, as another program uses the store, or as no room is left to write it \
             again; `pactql store vacuum` takes it out later\n",
        );
    }
}

/// The file that a command writes, which may not exist.
fn new_file(output: &str) -> Result<&str> {
    let Some(file) = path(output) else {
        return Err(Failure::usage("a copy is a file").with_help("-o backup.db"));
    };
    if Path::new(file).exists() {
        return Err(Failure::usage(format!("the output {file} exists"))
            .with_help("a copy replaces nothing: choose another name"));
    }
    Ok(file)
}

fn backup(store: &str, output: &str, with: &Invocation) -> Result<Exit> {
    let store = whole("backup", store)?;
    open_store(store, Access::Read)?.backup(new_file(output)?)?;
    with.done(&json!({"file": output}))
}

fn salvage(store: &str, output: &str, with: &Invocation) -> Result<Exit> {
    let store = whole("salvage", store)?;
    let salvaged = open_store(store, Access::Damaged)?.salvage(new_file(output)?)?;
    let left = salvaged.left.iter();
    let left = left.map(|(name, why)| json!({"session": name, "what": why}));
    let report = json!({"copied": salvaged.copied, "left": left.collect::<Vec<_>>()});
    with.print(&report, || {
        let mut text = String::new();
        for (name, why) in &salvaged.left {
            let _ = writeln!(text, "{}: {}", printable(name), printable(why));
        }
        let copied = counted(salvaged.copied.len() as u64, "session");
        text + &format!("copied {copied}, left {}\n", salvaged.left.len())
    })?;
    Ok(if salvaged.left.is_empty() {
        Exit::Ok
    } else {
        Exit::Input
    })
}

fn index(name: &str, drop: bool, with: &Invocation) -> Result<Exit> {
    let store = open_store(whole("index", name)?, Access::Write)?;
    if drop {
        let dropped = store.drop_text_index()?;
        return with.print(&json!({"dropped": dropped}), || {
            let text = if dropped {
                "the text index was removed\n"
            } else {
                "there is no text index\n"
            };
            text.to_owned()
        });
    }
    let progress = Progress::spinner(format!("indexing {name}"));
    let added = store.index_text()?;
    let texts = store.text_index()?.map_or(0, |index| index.texts);
    std::mem::drop(progress);
    with.print(&json!({"units": added, "texts": texts}), || {
        let (texts, added) = (counted(texts, "text"), counted(added, "unit"));
        format!("the text index has {texts}; {added} came in\n")
    })
}

/// How is a text taken out of a session? Removes the contents of nodes from every snapshot.
///
/// Their contents read `[erased]` from then on, and their custom attributes are gone; the calls of models,
/// which had the texts, go too, and so does the title of the session, which may repeat them. Strings in other
/// members of its documents that repeat them read `[erased]`, too. The chain of
/// hashes says that this was done, and still verifies. Prints the ids. Forks are sessions of their own: those that still have the texts are named on standard error.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql store erase [OPTIONS] <SESSION> <ID>...
       pactql store erase [OPTIONS] <SESSION> <SELECTOR>")]
struct Erase {
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
    edition: EditionArgs,
}

impl Erase {
    fn run(&self, with: &Invocation) -> Result<Exit> {
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
        let (ids, others) = erased.map_err(|failure| {
            let is_unknown =
                matches!(&failure, Failure::Selector(error, _) if error.code() == Code::Placement);
            if is_unknown {
                let session = quoted(&self.session);
                failure.advised(format!(
                    "pactql store erase {session} \"@* .cb[content~'…']\" finds nodes by their text"
                ))
            } else {
                failure
            }
        })?;
        note_held(&opened);
        if ids.is_empty() {
            say("note: the selector finds nothing, and nothing was erased\n");
        }
        for other in others {
            let other = printable(&other);
            say(&format!(
                "warning: the session {store}#{other} still has the texts\n"
            ));
        }
        print_ids(with, &ids)?;
        Ok(Exit::of_empty(self.fail_if_empty && ids.is_empty()))
    }

    /// The ids that were given, or those of the nodes that a selector finds, each once.
    fn ids(&self, store: &Store, name: &str) -> Result<Vec<String>> {
        let selector = match &self.nodes[..] {
            [selector] if is_selector(selector) => selector,
            ids => return Ok(ids.to_vec()),
        };
        let session = store.session(name)?;
        let answer = self.edition.engine().select(&session, selector)?;
        let Answer::Rows(rows) = &answer else {
            return Err(Failure::value("a range has differences, not nodes")
                .with_help("`@*` finds the nodes of every snapshot"));
        };
        let mut seen = HashSet::new();
        let ids = rows.ids().filter(|id| seen.insert(*id));
        Ok(ids.map(str::to_owned).collect())
    }
}

/// How are the oldest snapshots of the sessions of a store removed?
///
/// `--keep` leaves the newest N of each session, `--older-than` those that are younger; with both, a snapshot is
/// removed only if neither keeps it. The newest snapshot of a session always stays. What stays answers as before.
/// `--dry-run` counts what would go. Commits of the runtime have limits of their own: `pactql edit commit --prune`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what stays").required(true).multiple(true).args(["keep", "older_than"]))]
struct Prune {
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
}

fn age(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| "expected an age such as 30d, 12h or 90m".to_owned())
}

impl Prune {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let address = several("prune", &self.store)?;
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
        note_held(&store);
        if pruned.snapshots == 0
            && address.is_several()
            && store.sessions(address.glob())?.is_empty()
        {
            say(&format!("note: {}\n", none_of(address)));
        }
        let sessions = pruned.sessions.iter();
        let sessions = sessions.map(|(name, count)| json!({"name": name, "snapshots": count}));
        let json = json!({
            "dry_run": self.dry_run,
            "sessions": sessions.collect::<Vec<_>>(),
            "snapshots": pruned.snapshots,
            "units": pruned.units,
            "bodies": pruned.bodies,
        });
        with.print(&json, || self.text(&pruned))
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
            counted(pruned.bodies, "content"),
        );
        text
    }
}

/// How do other tools read a store? Copies its commits to Parquet files, and later what is new.
///
/// Working states are not copied. If the directory has a copy already, what is new since then is added; `pactql import
/// DIR -o STORE` brings the sessions of a copy into a store.
#[derive(Args, Debug)]
struct Parquet {
    /// The store, such as `agents.db`, or some of its sessions, such as `agents.db#support-*`.
    store: String,
    /// The directory of the copy.
    #[arg(value_name = "DIR")]
    directory: String,
    /// Only sessions with a newest commit since then: a date, or a time.
    #[arg(long, value_name = "TIME", value_parser = first_of_day)]
    since: Option<i64>,
    /// In how many parts the sessions of a new copy are, each a directory of its own [default: 256].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    buckets: Option<u32>,
}

impl Parquet {
    /// Writes the copy of a store, or what it lacks, and says what was written.
    #[cfg(feature = "parquet")]
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let address = several("parquet", &self.store)?;
        let store = open_store(address.store, Access::Read)?;
        let mut what = crate::store::ParquetExport::default().sessions(address.glob());
        if let Some(time) = self.since {
            what = what.since_ns(time);
        }
        if let Some(buckets) = self.buckets {
            what = what.buckets(buckets);
        }
        let done = store.export_parquet(&self.directory, &what)?;
        let json = json!({
            "sessions": done.sessions,
            "snapshots": done.snapshots,
            "new_units": done.units,
            "buckets_written": done.buckets,
            "bytes_written": done.bytes,
        });
        with.print(&json, || {
            format!(
                "the copy has {}, {}; wrote {} of units to {}\n",
                counted(done.sessions, "session"),
                counted(done.snapshots, "snapshot"),
                counted(done.units, "new version"),
                counted(done.buckets, "bucket")
            )
        })
    }

    #[cfg(not(feature = "parquet"))]
    fn run(&self, _: &Invocation) -> Result<Exit> {
        Err(no_parquet())
    }
}

pub(super) fn is_copy(directory: &str) -> bool {
    let about = Path::new(directory).join("_pactql").join("copy.json");
    about.is_file()
}

/// Inserts the sessions of a copy into a store. Returns how many, and their snapshots.
#[cfg(feature = "parquet")]
pub(super) fn import_copy(directory: &str, store: &Store) -> Result<(usize, usize)> {
    let done = store.import_parquet(directory)?;
    let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Ok((count(done.sessions), count(done.snapshots)))
}

#[cfg(not(feature = "parquet"))]
pub(super) fn import_copy(_: &str, _: &Store) -> Result<(usize, usize)> {
    Err(no_parquet())
}

#[cfg(not(feature = "parquet"))]
fn no_parquet() -> Failure {
    Failure::usage("this program was built without Parquet")
        .with_help("build it with `--features parquet`")
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
