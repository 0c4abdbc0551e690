//! `pactql verify`: whether a session or a store is intact.

use super::command::{Invocation, Run, print_as};
use super::ending;
use super::output::{counted, printable, snapshot_label};
use super::sessions::{SessionArgs, ending_of_session, open_store};
use super::store::whole;
use crate::app::present::stores::{Access, Address, intact};
use crate::app::present::{Exit, Failure};
use crate::history::History;
use crate::index::Snapshot;
use crate::logs::lost_in_export;
use crate::support::cancel::ensure;
use crate::tree::seal::Ending;
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Is a session intact? Checks its documents, its content hashes and its export; or a whole store.
///
/// An invalid document is an error (exit code 5) that lists every fault with its position. Wrong
/// content hashes are listed and end with exit code 5 too. Of a file of lines it says how it ends: with the closing
/// line of `export --seal`, which must fit, or so that lines could be missing unnoticed. Each snapshot is also exported
/// and read again: a snapshot that does not come back with the same canonical bytes is listed and
/// ends with exit code 5. Of a store everything is compared with its hashes: damage is listed with its
/// session and snapshot, and ends with exit code 5.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql verify session.jsonl
  pactql verify agents.db")]
pub(super) struct Verify {
    #[command(flatten)]
    session: SessionArgs,
}

impl Run for Verify {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        if let Some(address) = Address::of(self.session.name()).filter(|a| a.is_several()) {
            return store(
                whole("verify", self.session.name()).map(|_| address.store)?,
                with.is_json_in_pipe(),
            );
        }
        let session = self.session.open()?;
        let history = session.history();
        history.fetch_all()?;
        let report = Report {
            hashes: Hashes::check(&history),
            lost: lost(&history)?,
            ending: ending_of_session(self.session.name())?,
        };
        intact(&session)?;
        print_as(with.is_json_in_pipe(), &report.json(&history), || {
            report.text(&history)
        })?;
        Ok(exit(report.is_valid()))
    }
}

/// Checks a whole store.
pub(super) fn store(store: &str, json: bool) -> Result<Exit, Failure> {
    let opened = open_store(store, Access::Read)?;
    let damages = opened.verify()?;
    let sessions = opened.sessions("")?;
    let snapshots: u64 = sessions.iter().map(|info| info.snapshots as u64).sum();
    let list = damages.iter().map(
        |damage| json!({"session": damage.session, "cycle": damage.cycle, "what": damage.what}),
    );
    let report = json!({
        "valid": damages.is_empty(),
        "sessions": sessions.len(),
        "snapshots": snapshots,
        "damages": list.collect::<Vec<_>>(),
    });
    print_as(json, &report, || {
        let mut text = String::new();
        for damage in &damages {
            let session = damage.session.as_deref().map(printable);
            let session = session.unwrap_or_else(|| "the store".to_owned());
            let cycle = damage.cycle.map(|cycle| format!(" @c{cycle}"));
            let (cycle, what) = (cycle.unwrap_or_default(), printable(&damage.what));
            let _ = writeln!(text, "{session}{cycle}: {what}");
        }
        let _ = writeln!(
            text,
            "{}: {}, {}, {}",
            validity(damages.is_empty()),
            counted(sessions.len() as u64, "session"),
            counted(snapshots, "snapshot"),
            counted(damages.len() as u64, "damage"),
        );
        text
    })?;
    Ok(exit(damages.is_empty()))
}

/// A word for whether something is intact.
fn validity(is_valid: bool) -> &'static str {
    if is_valid { "valid" } else { "invalid" }
}

/// How the command ends.
fn exit(is_valid: bool) -> Exit {
    if is_valid { Exit::Ok } else { Exit::Input }
}

struct Report {
    hashes: Hashes,
    lost: Vec<Lost>,
    ending: Option<Ending>,
}

impl Report {
    fn is_valid(&self) -> bool {
        self.hashes.wrong.is_empty() && self.lost.is_empty()
    }

    fn json(&self, history: &History) -> Value {
        json!({
            "valid": self.is_valid(),
            "snapshots": history.committed().len(),
            "working": history.working().is_some(),
            "nodes": self.hashes.nodes,
            "content_hashes": {"stored": self.hashes.stored, "wrong": self.hashes.wrong},
            "export": {"differs": self.lost},
            "end": self.ending.map(ending::name),
        })
    }

    fn text(&self, history: &History) -> String {
        let mut text = String::new();
        let Hashes {
            nodes,
            stored,
            wrong,
        } = &self.hashes;
        for fault in wrong {
            let (snapshot, id) = (&fault.snapshot, printable(&fault.id));
            let (stored, computed) = (&fault.stored, &fault.computed);
            let _ = writeln!(
                text,
                "{snapshot} {id}: content_hash is {stored}, should be {computed}"
            );
        }
        for fault in &self.lost {
            let snapshot = fault.snapshot.as_deref().unwrap_or("the session");
            let at = printable(&fault.at);
            let _ = writeln!(
                text,
                "{snapshot} {at}: not the same when read from an export"
            );
        }
        let _ = writeln!(
            text,
            "{}: {}, {nodes} different {}, {}, {} wrong; {} when exported and read again",
            validity(self.is_valid()),
            counted(history.committed().len() as u64, "snapshot"),
            if *nodes == 1 { "node" } else { "nodes" },
            counted(*stored, "stored content hash"),
            wrong.len(),
            match self.lost.len() {
                1 => "1 snapshot differs".to_owned(),
                more => format!("{more} snapshots differ"),
            }
        );
        let end = self
            .ending
            .map(|end| format!("the file ends {}", ending::text(end)));
        text + &end.unwrap_or_default()
    }
}

/// The content hashes that are stored in a session.
#[derive(Default)]
struct Hashes {
    /// Nodes checked; one that snapshots share counts once.
    nodes: u64,
    /// How many of them have a hash.
    stored: u64,
    wrong: Vec<WrongHash>,
}

/// A stored content hash that is not the hash of the content.
#[derive(Serialize)]
struct WrongHash {
    snapshot: String,
    id: String,
    stored: Value,
    computed: String,
}

impl Hashes {
    fn check(history: &History) -> Self {
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
                let stored = serde_json::from_str::<Value>(&stored.json()).unwrap_or_default();
                hashes.wrong.push(WrongHash {
                    snapshot: snapshot_label(node.snapshot()),
                    id: node.id().to_owned(),
                    stored,
                    computed,
                });
            }
        }
        hashes
    }
}

/// A snapshot that an export does not preserve.
#[derive(Serialize)]
struct Lost {
    /// `None` if the export cannot be read at all.
    snapshot: Option<String>,
    /// The first difference.
    at: String,
}

/// The snapshots whose canonical bytes are not the same when the session is exported and read again.
fn lost(history: &History) -> Result<Vec<Lost>, Failure> {
    let working = history.working().map(|working| &**working);
    let lost = lost_in_export(history.committed(), working)?;
    let all: Vec<_> = history
        .committed()
        .iter()
        .chain(history.working())
        .collect();
    let named = lost.into_iter().map(|lost| Lost {
        snapshot: lost
            .snapshot
            .and_then(|index| all.get(index))
            .map(|snapshot| snapshot_label(snapshot)),
        at: lost.at.unwrap_or_else(|| "the document".to_owned()),
    });
    Ok(named.collect())
}
