//! `pactql stats`: what a session holds, in numbers.

use super::options::{Limits, TextOrJson};
use super::sessions;
use crate::history::Session;
use crate::index::{Segment, Snapshot};
use crate::present::{Exit, Failure};
use crate::tree::NodeClass;
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

/// Count what a session holds.
///
/// Nodes by class, role, kind and depth are those of one snapshot; snapshots, sharing and index
/// bytes are the session's.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql stats session.jsonl
  pactql stats session.jsonl --at @t0 --format json")]
pub(super) struct Stats {
    /// The session: a file, a directory, or `-`.
    session: String,
    /// Whose nodes to count, such as @t0 or @c12; without it the working state's, else the
    /// newest's.
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
    #[command(flatten)]
    limits: Limits,
}

impl Stats {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.format == TextOrJson::Json
    }

    /// Runs the command.
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let session = sessions::open(&self.session, &self.limits)?;
        let snapshot = sessions::at(&session, self.at.as_deref())?;
        let nodes = node_counts(&snapshot);
        let whole = session_counts(&session);
        let text = if self.format.is_json() {
            let label = super::output::snapshot_label(&snapshot);
            format!(
                "{}\n",
                json!({"snapshot": label, "nodes": nodes, "session": whole})
            )
        } else {
            text(&snapshot, &nodes, &whole)
        };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    }
}

fn class_name(class: NodeClass) -> &'static str {
    match class {
        NodeClass::Root => "root",
        NodeClass::Sys => "sys",
        NodeClass::Seq => "seq",
        NodeClass::Head => "ah",
        NodeClass::Turn => "turn",
        NodeClass::Container => "container",
        NodeClass::Block => "block",
    }
}

/// The nodes of a snapshot by what they are.
fn node_counts(snapshot: &Snapshot) -> Value {
    let mut classes: BTreeMap<NodeClass, u64> = BTreeMap::new();
    let mut roles: BTreeMap<&str, u64> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut depths: BTreeMap<Option<i64>, u64> = BTreeMap::new();
    let mut total = 0_u64;
    for node in snapshot.nodes() {
        total += 1;
        *classes.entry(node.class()).or_default() += 1;
        if let Some(role) = node.role() {
            *roles.entry(role).or_default() += 1;
        }
        if let Some(kind) = node.kind() {
            *kinds.entry(kind).or_default() += 1;
        }
        *depths.entry(node.depth()).or_default() += 1;
    }
    let object = |counts: BTreeMap<&str, u64>| -> Map<String, Value> {
        counts
            .into_iter()
            .map(|(name, count)| (name.to_owned(), json!(count)))
            .collect()
    };
    let classes = classes
        .into_iter()
        .map(|(class, count)| (class_name(class), count))
        .collect();
    let depths: Vec<Value> = depths
        .into_iter()
        .map(|(depth, count)| json!({"depth": depth, "nodes": count}))
        .collect();
    json!({
        "total": total,
        "by_class": object(classes),
        "by_role": object(roles),
        "by_kind": object(kinds),
        "by_depth": depths,
    })
}

/// The segments of some sessions, each once.
fn segments(sessions: &[Session]) -> Vec<Arc<Segment>> {
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    for session in sessions {
        let history = session.history();
        for snapshot in history.committed().iter().chain(history.working()) {
            segments.extend(
                snapshot
                    .pieces()
                    .iter()
                    .map(|piece| Arc::clone(&piece.segment)),
            );
        }
    }
    segments.sort_unstable_by_key(Arc::as_ptr);
    segments.dedup_by_key(|segment| Arc::as_ptr(segment));
    segments
}

/// How many nodes the indexes of some sessions hold, each once however many snapshots share it,
/// and how large they are.
pub(super) fn sizes(sessions: &[Session]) -> Value {
    let segments = segments(sessions);
    let nodes: u64 = segments
        .iter()
        .map(|segment| u64::from(segment.nodes()))
        .sum();
    let index: usize = segments.iter().map(|segment| segment.index_bytes()).sum();
    let payload: usize = segments.iter().map(|segment| segment.payload_bytes()).sum();
    json!({
        "nodes": nodes,
        "segments": segments.len(),
        "index_bytes": index,
        "index_bytes_per_node": if nodes == 0 { 0.0 } else { index as f64 / nodes as f64 },
        "payload_bytes": payload,
    })
}

/// Snapshots, sharing and sizes of a session.
fn session_counts(session: &Session) -> Value {
    let history = session.history();
    let snapshots = history.committed().iter().chain(history.working());
    let nodes: u64 = snapshots.map(|snapshot| snapshot.len() as u64).sum();
    let cycles = history.committed().iter().map(|snapshot| snapshot.cycle());
    json!({
        "snapshots": history.committed().len(),
        "working": history.working().is_some(),
        "oldest_cycle": cycles.clone().min(),
        "newest_cycle": cycles.max(),
        "nodes_in_snapshots": nodes,
        "index": sizes(std::slice::from_ref(session)),
    })
}

fn text(snapshot: &Snapshot, nodes: &Value, session: &Value) -> String {
    let mut out = String::new();
    let working = if session["working"] == json!(true) {
        " and a working state"
    } else {
        ""
    };
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let _ = writeln!(out, "snapshots    {}{working}", session["snapshots"]);
    if let (Some(oldest), Some(newest)) = (
        session["oldest_cycle"].as_i64(),
        session["newest_cycle"].as_i64(),
    ) {
        let _ = writeln!(out, "cycles       {oldest} to {newest}");
    }
    let index = &session["index"];
    let (seen, stored) = (
        number(&session["nodes_in_snapshots"]),
        number(&index["nodes"]),
    );
    let share = if stored == 0 {
        1.0
    } else {
        seen as f64 / stored as f64
    };
    let _ = writeln!(
        out,
        "sharing      {seen} nodes in all snapshots, {stored} stored ({share:.1} to 1), \
         {}",
        super::output::counted(number(&index["segments"]), "segment")
    );
    let _ = writeln!(
        out,
        "index        {} bytes ({:.1} a node); payloads {} bytes",
        index["index_bytes"],
        index["index_bytes_per_node"].as_f64().unwrap_or(0.0),
        index["payload_bytes"]
    );
    let _ = writeln!(
        out,
        "\n{} has {}",
        super::output::snapshot_label(snapshot),
        super::output::counted(number(&nodes["total"]), "node")
    );
    for (name, key) in [
        ("class", "by_class"),
        ("role", "by_role"),
        ("kind", "by_kind"),
    ] {
        let counts = nodes[key].as_object().into_iter().flatten();
        let counts: Vec<String> = counts
            .map(|(name, count)| format!("{} {count}", super::output::clean(name, 40)))
            .collect();
        if !counts.is_empty() {
            let _ = writeln!(out, "  by {name:<6} {}", counts.join(", "));
        }
    }
    let depths = nodes["by_depth"].as_array().into_iter().flatten();
    let all: Vec<String> = depths
        .map(|entry| {
            let depth = entry["depth"].as_i64();
            let depth = depth.map_or("none".to_owned(), |depth| depth.to_string());
            format!("{depth}: {}", entry["nodes"])
        })
        .collect();
    let more = all.len().saturating_sub(SHOWN_DEPTHS);
    let more = if more > 0 {
        format!(", {more} more depths")
    } else {
        String::new()
    };
    let shown = all[..all.len().min(SHOWN_DEPTHS)].join(", ");
    let _ = writeln!(out, "  by depth  {shown}{more}");
    out
}

/// How many depths the text lists.
const SHOWN_DEPTHS: usize = 12;
