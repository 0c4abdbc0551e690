//! `pactql verify`: whether a session is whole.

use super::options::{Limits, TextOrJson};
use super::{output, sessions};
use crate::history::{History, Session};
use crate::index::NodeRef;
use crate::interop::{Comparison, Mismatch, write_session};
use crate::present::{Exit, Failure};
use crate::tree::hash::{content_hash, hex};
use clap::Args;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;

/// Check a session: its documents, the content hashes stored in it, and its export.
///
/// An invalid document is an error (exit code 5) that lists every fault with its place. Stored
/// content hashes that are wrong are listed, and end with exit code 5 too. The session is also
/// exported in memory and read again: every snapshot must come back with the same canonical
/// bytes, and one that does not is listed and ends with exit code 5.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql verify session.jsonl
  pactql verify snapshots/ --format json")]
pub(super) struct Verify {
    /// The session: a file, a directory, or `-`.
    session: String,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
    #[command(flatten)]
    limits: Limits,
}

impl Verify {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.format == TextOrJson::Json
    }

    /// Runs the command.
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let session = sessions::open(&self.session, &self.limits)?;
        let history = session.history();
        let mut seen: HashSet<(u64, u32)> = HashSet::new();
        let (mut nodes, mut stored) = (0_u64, 0_u64);
        let mut wrong: Vec<Value> = Vec::new();
        let snapshots = history.committed().iter().chain(history.working());
        for snapshot in snapshots {
            for node in snapshot.nodes() {
                // A row that snapshots share is looked at once, in the oldest that has it.
                if !seen.insert(node.version()) {
                    continue;
                }
                nodes += 1;
                let Some(raw) = node.field("content_hash").filter(|raw| *raw != "null") else {
                    continue;
                };
                stored += 1;
                let stored = serde_json::from_str::<Value>(raw).unwrap_or_default();
                let computed = computed_hash(node);
                if stored.as_str() != Some(&computed) {
                    wrong.push(json!({
                        "snapshot": output::label(node),
                        "id": node.id(),
                        "stored": stored,
                        "computed": computed,
                    }));
                }
            }
        }
        let lost = lost(&history)?;
        let valid = wrong.is_empty() && lost.is_empty();
        let text = if self.format.is_json() {
            let report = json!({
                "valid": valid,
                "snapshots": history.committed().len(),
                "working": history.working().is_some(),
                "nodes": nodes,
                "content_hashes": {"stored": stored, "wrong": wrong},
                "export": {"differs": lost},
            });
            format!("{report}\n")
        } else {
            let mut text = String::new();
            for fault in &wrong {
                let _ = writeln!(
                    text,
                    "{} {}: content_hash is {}, should be {}",
                    fault["snapshot"].as_str().unwrap_or_default(),
                    output::clean(fault["id"].as_str().unwrap_or_default(), usize::MAX),
                    fault["stored"],
                    fault["computed"].as_str().unwrap_or_default(),
                );
            }
            for fault in &lost {
                let _ = writeln!(
                    text,
                    "{} {}: not the same when read from an export",
                    fault["snapshot"].as_str().unwrap_or("the session"),
                    output::clean(fault["at"].as_str().unwrap_or_default(), usize::MAX),
                );
            }
            let _ = writeln!(
                text,
                "{}: {}, {nodes} different {}, {}, {} wrong; {} when exported and read again",
                if valid { "valid" } else { "invalid" },
                output::counted(history.committed().len() as u64, "snapshot"),
                if nodes == 1 { "node" } else { "nodes" },
                output::counted(stored, "stored content hash"),
                wrong.len(),
                match lost.len() {
                    1 => "1 snapshot differs".to_owned(),
                    more => format!("{more} snapshots differ"),
                }
            );
            text
        };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(if valid { Exit::Ok } else { Exit::Input })
    }
}

/// The snapshots that do not come back from an export of the session with the canonical bytes
/// they had, each with the first place that differs.
fn lost(history: &History) -> Result<Vec<Value>, Failure> {
    let working = history.working().map(|working| &**working);
    let mut bytes = Vec::new();
    write_session(history.committed(), working, false, &mut bytes)?;
    let again = match Session::from_slice(&bytes) {
        Ok(again) => again.history(),
        Err(error) => return Ok(vec![json!({"snapshot": null, "at": error.to_string()})]),
    };
    drop(bytes);
    let mut comparison = Comparison::new();
    let mut lost = Vec::new();
    let mut found = again.committed().iter().chain(again.working());
    for snapshot in history.committed().iter().chain(history.working()) {
        let mismatch = match found.next() {
            Some(found) => comparison.difference(snapshot, found),
            None => Some(Mismatch::Document),
        };
        let at = match mismatch {
            None => continue,
            Some(Mismatch::Document) => "the document".to_owned(),
            Some(Mismatch::Node(id)) => id,
        };
        lost.push(json!({"snapshot": output::snapshot_label(snapshot), "at": at}));
    }
    Ok(lost)
}

fn computed_hash(node: NodeRef<'_>) -> String {
    hex(&content_hash(node.role(), node.kind(), node.fields()))
}
