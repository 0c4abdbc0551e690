//! `pactql verify`: whether a session or a store is intact.

use super::command::{Invocation, RunCommand};
use super::output::{counted, printable, snapshot_label};
use super::read_sessions::open_store;
use super::sessions::{self, ending_of_session, ending_text};
use super::words::quoted;
use crate::app::present::stores::{Access, StoreAddress, Which};
use crate::app::present::{Exit, Failure, Result};
use crate::history::History;
use crate::index::Snapshot;
use crate::logs::lost_in_export;
use crate::support::cancel::ensure;
use crate::support::diag::{Code, Diagnostic, Error};
use crate::tree::seal::Ending;
use clap::Args;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Is a session intact? Checks its documents, its content hashes and its export; or a whole store.
///
/// An invalid document is an error (exit code 5) that lists every fault with its position. Wrong content hashes are
/// listed and end with exit code 5 too. Of a JSON Lines file it also says whether it ends in the closing line of
/// `export --seal`, which must fit the file. Without one, lines that are missing at the end are not noticed. Each
/// snapshot is also exported and read again: a snapshot that does not come back with the same canonical bytes is listed
/// and ends with exit code 5. Of a store everything is compared with its hashes: damage is listed with its session and
/// snapshot, and ends with exit code 5.
#[derive(Args, Debug)]
pub(super) struct VerifyArgs {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input.
    session: String,
    /// Check that a session of a store still has the commit with this hash, which an earlier `verify` printed. So
    /// commits that were lost are noticed, and a history that was changed together with its hashes.
    #[arg(long, value_name = "HASH")]
    tip: Option<String>,
}

impl RunCommand for VerifyArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        if let Some(address) = StoreAddress::parse(&self.session).filter(|a| a.is_several()) {
            return store(address, with);
        }
        let stored = StoreAddress::parse(&self.session);
        let tip = match stored {
            Some(address) => {
                let (store, name) = (open_store(address.store, Access::Read)?, address.one()?);
                if let Some(tip) = &self.tip
                    && !store.has_tip(name, tip)?
                {
                    let what = format!("`{name}` has no commit of the hash {}", printable(tip));
                    let help = "commits were lost, as with a file that was copied without its `-wal`, or their history \
                         was changed, as `store erase` does";
                    let diagnostic = Diagnostic::error(Code::Input, what).with_help(help);
                    return Err(Error::new("", diagnostic).into());
                }
                store.tip(name)?
            }
            None if self.tip.is_some() => {
                let what = "a tip is the hash of a commit, which sessions of a store have";
                return Err(Failure::usage(what).with_help("`export --seal` closes a file"));
            }
            None => None,
        };
        let session = sessions::open(&self.session, with.limits)?;
        let history = session.history();
        history.fetch_all()?;
        let mut text = String::new();
        let hashes = Hashes::check(&history, &mut text);
        let lost = lost(&history, &mut text)?;
        let end = ending_of_session(&self.session)?;
        let valid = hashes.wrong.is_empty() && lost.is_empty();
        let snapshots = history.committed().len();
        let json = json!({
            "valid": valid,
            "snapshots": snapshots,
            "working": history.working().is_some(),
            "nodes": hashes.nodes,
            "content_hashes": {"stored": hashes.stored, "wrong": hashes.wrong},
            "export": {"differs": lost},
            "end": end.map(Ending::as_str),
            "tip": tip,
        });
        with.print(&json, || {
            let _ = writeln!(
                text,
                "{}: {}, {}, {}, {} wrong; {} when exported and read again",
                outcome(valid).0,
                counted(snapshots as u64, "snapshot"),
                counted(hashes.nodes, "different node"),
                counted(hashes.stored, "stored content hash"),
                hashes.wrong.len(),
                match lost.len() {
                    1 => "1 snapshot differs".to_owned(),
                    more => format!("{more} snapshots differ"),
                }
            );
            if let Some(end) = end {
                let _ = write!(text, "the file ends {}", ending_text(end));
            }
            if let Some(tip) = &tip {
                let _ = writeln!(text, "tip {tip}");
            }
            text
        })?;
        Ok(outcome(valid).1)
    }
}

fn store(address: StoreAddress<'_>, with: &Invocation) -> Result<Exit> {
    if address.which != Which::All {
        let help = format!("pactql verify {}", quoted(address.store));
        return Err(Failure::usage("`verify` takes a whole store, or one session").with_help(help));
    }
    let opened = open_store(address.store, Access::Damaged)?;
    let damages = opened.verify()?;
    // They cannot be counted where the list of them is damaged.
    let sessions = match opened.sessions("") {
        Err(_) if !damages.is_empty() => None,
        sessions => Some(sessions?),
    };
    let counts = sessions.map(|sessions| {
        let snapshots: u64 = sessions.iter().map(|info| info.snapshots as u64).sum();
        (sessions.len() as u64, snapshots)
    });
    let report = json!({
        "valid": damages.is_empty(),
        "sessions": counts.map(|(sessions, _)| sessions),
        "snapshots": counts.map(|(_, snapshots)| snapshots),
        "damages": damages,
    });
    with.print(&report, || {
        let mut text = String::new();
        for damage in &damages {
            let session = damage.session.as_deref().map(printable);
            let session = session.unwrap_or_else(|| "the store".to_owned());
            let cycle = damage.cycle.map(|cycle| format!(" @c{cycle}"));
            let (cycle, what) = (cycle.unwrap_or_default(), printable(&damage.what));
            let _ = writeln!(text, "{session}{cycle}: {what}");
        }
        let all = counts.map_or_else(String::new, |(sessions, snapshots)| {
            let sessions = counted(sessions, "session");
            format!("{sessions}, {}, ", counted(snapshots, "snapshot"))
        });
        let (word, _) = outcome(damages.is_empty());
        let damages = counted(damages.len() as u64, "damage");
        let _ = writeln!(text, "{word}: {all}{damages}");
        text
    })?;
    Ok(outcome(damages.is_empty()).1)
}

/// A word for whether something is intact, and how the command ends.
fn outcome(is_valid: bool) -> (&'static str, Exit) {
    if is_valid {
        ("valid", Exit::Ok)
    } else {
        ("invalid", Exit::Input)
    }
}

#[derive(Default)]
struct Hashes {
    /// Nodes checked; one that snapshots share counts once.
    nodes: u64,
    stored: u64,
    /// The hashes that are not those of their contents.
    wrong: Vec<Value>,
}

impl Hashes {
    /// Checks the hashes, and appends a line for each that is wrong.
    fn check(history: &History, text: &mut String) -> Self {
        let mut seen: HashSet<(u64, u32)> = HashSet::new();
        let mut hashes = Self::default();
        let mut older: Option<&Snapshot> = None;
        let snapshots = history.committed().iter().chain(history.working());
        // Units that an older snapshot has were checked there.
        let units = snapshots.flat_map(|snapshot| {
            let units = match older.replace(snapshot) {
                Some(older) => snapshot.unit_changes(older).came,
                None => snapshot.units().collect(),
            };
            units.into_iter().inspect(|_| ensure())
        });
        for node in units.flat_map(|unit| unit.nodes()) {
            // A row that snapshots share is checked in the oldest of them.
            if !seen.insert(node.version()) {
                continue;
            }
            hashes.nodes += 1;
            let stored = node.field("content_hash").filter(|hash| !hash.is_null());
            let Some(stored) = stored else {
                continue;
            };
            hashes.stored += 1;
            let computed = node.content_hash();
            if stored.text() != Some(&computed) {
                let stored: Value = serde_json::from_str(&stored.json()).unwrap_or_default();
                let (snapshot, id) = (snapshot_label(node.snapshot()), node.id());
                let _ = writeln!(
                    text,
                    "{snapshot} {}: content_hash is {stored}, should be {computed}",
                    printable(id)
                );
                hashes.wrong.push(json!({
                    "snapshot": snapshot,
                    "id": id,
                    "stored": stored,
                    "computed": computed,
                }));
            }
        }
        hashes
    }
}

/// The snapshots whose canonical bytes are not the same when the session is exported and read again, also as
/// lines.
fn lost(history: &History, text: &mut String) -> Result<Vec<Value>> {
    let working = history.working().map(|working| &**working);
    let lost = lost_in_export(history.committed(), working)?.into_iter();
    Ok(lost
        .map(|lost| {
            let mut all = history.committed().iter().chain(history.working());
            // None if the export cannot be read at all.
            let snapshot = lost.snapshot.and_then(|index| all.nth(index));
            let snapshot = snapshot.map(|snapshot| snapshot_label(snapshot));
            let at = lost.at.unwrap_or_else(|| "the document".to_owned());
            let place = snapshot.as_deref().unwrap_or("the session");
            let place = format!("{place} {}", printable(&at));
            let _ = writeln!(text, "{place}: not the same when read from an export");
            json!({"snapshot": snapshot, "at": at})
        })
        .collect())
}
