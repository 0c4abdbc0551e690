//! `pactql stats`: the contents of a session in numbers.

use super::command::{Run, print};
use super::ending;
use super::options::{Color, TextOrJson};
use super::output::{clean, counted, snapshot_label};
use super::sessions::SessionArgs;
use crate::app::present::stores::intact;
use crate::app::present::{Exit, Failure};
use crate::history::Session;
use crate::index::{Segment, Snapshot};
use crate::tree::NodeClass;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// How many depths the text lists.
const SHOWN_DEPTHS: usize = 12;

/// How large is a session, and what does it contain?
///
/// Nodes by class, role, kind and depth are those of one snapshot; snapshots, sharing and index
/// bytes are those of the session. Of a file of lines it also says how it ends.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql stats session.jsonl
  pactql stats session.jsonl --at @t0 --format json")]
pub(super) struct Stats {
    #[command(flatten)]
    session: SessionArgs,
    /// The snapshot whose nodes to count, such as @t0 or @c12 [default: the working state, or else
    /// the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
}

impl Run for Stats {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let (session, snapshot) = self.session.open_at(self.at.as_deref())?;
        let label = snapshot_label(&snapshot);
        session.moment().fetch_all()?;
        let nodes = NodeCounts::of(&snapshot);
        let counts = SessionCounts::of(&session);
        intact(&session)?;
        let end = self.session.ending()?;
        print(&if self.format.is_json() {
            let end = end.map(ending::name);
            let counts = json!({"snapshot": label, "nodes": nodes, "session": counts, "end": end});
            format!("{counts}\n")
        } else {
            let end = end.map(|end| format!("end          {}", ending::text(end)));
            counts.text() + &end.unwrap_or_default() + &nodes.text(&label)
        })
    }
}

/// The nodes of a snapshot by what they are.
#[derive(Default, Serialize)]
struct NodeCounts<'a> {
    total: u64,
    by_class: BTreeMap<&'static str, u64>,
    by_role: BTreeMap<&'a str, u64>,
    by_kind: BTreeMap<&'a str, u64>,
    by_depth: Vec<DepthCount>,
}

#[derive(Serialize)]
struct DepthCount {
    depth: Option<i64>,
    nodes: u64,
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

impl<'a> NodeCounts<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut counts = Self::default();
        let mut depths: BTreeMap<Option<i64>, u64> = BTreeMap::new();
        for node in snapshot.nodes() {
            counts.total += 1;
            *counts.by_class.entry(class_name(node.class())).or_default() += 1;
            if let Some(role) = node.role() {
                *counts.by_role.entry(role).or_default() += 1;
            }
            if let Some(kind) = node.kind() {
                *counts.by_kind.entry(kind).or_default() += 1;
            }
            *depths.entry(node.depth()).or_default() += 1;
        }
        let depths = depths.into_iter();
        counts.by_depth = depths
            .map(|(depth, nodes)| DepthCount { depth, nodes })
            .collect();
        counts
    }

    fn text(&self, label: &str) -> String {
        let mut out = format!("\n{label} has {}\n", counted(self.total, "node"));
        for (name, counts) in [
            ("class", &self.by_class),
            ("role", &self.by_role),
            ("kind", &self.by_kind),
        ] {
            let counts = counts.iter();
            let counts: Vec<String> = counts
                .map(|(name, count)| format!("{} {count}", clean(name, 40)))
                .collect();
            if !counts.is_empty() {
                let _ = writeln!(out, "  by {name:<6} {}", counts.join(", "));
            }
        }
        let depths = self.by_depth.iter().take(SHOWN_DEPTHS);
        let mut depths: Vec<String> = depths
            .map(|DepthCount { depth, nodes }| {
                let depth = depth.map_or("none".to_owned(), |depth| depth.to_string());
                format!("{depth}: {nodes}")
            })
            .collect();
        if let more @ 1.. = self.by_depth.len() - depths.len() {
            depths.push(format!("{more} more depths"));
        }
        let _ = writeln!(out, "  by depth  {}", depths.join(", "));
        out
    }
}

/// The sizes of the indexes of some sessions. A node that snapshots share counts once.
#[derive(Serialize)]
pub(super) struct Sizes {
    pub(super) nodes: u64,
    segments: usize,
    index_bytes: usize,
    pub(super) index_bytes_per_node: f64,
    payload_bytes: usize,
}

impl Sizes {
    /// The sizes of these sessions together.
    pub(super) fn of(sessions: &[Arc<Session>]) -> Self {
        let mut segments: Vec<Arc<Segment>> = Vec::new();
        for session in sessions {
            let history = session.history();
            for snapshot in history.committed().iter().chain(history.working()) {
                let pieces = snapshot.pieces().iter();
                segments.extend(pieces.map(|piece| Arc::clone(piece.segment())));
            }
        }
        segments.sort_unstable_by_key(Arc::as_ptr);
        segments.dedup_by_key(|segment| Arc::as_ptr(segment));
        let nodes = segments.iter().map(|segment| u64::from(segment.nodes()));
        let nodes: u64 = nodes.sum();
        let index_bytes = segments.iter().map(|segment| segment.index_bytes()).sum();
        Self {
            nodes,
            segments: segments.len(),
            index_bytes,
            index_bytes_per_node: match nodes {
                0 => 0.0,
                nodes => index_bytes as f64 / nodes as f64,
            },
            payload_bytes: segments.iter().map(|segment| segment.payload_bytes()).sum(),
        }
    }
}

/// Snapshots, sharing and sizes of a session.
#[derive(Serialize)]
struct SessionCounts {
    snapshots: usize,
    working: bool,
    oldest_cycle: Option<i64>,
    newest_cycle: Option<i64>,
    /// The nodes of all snapshots; a node that snapshots share counts in each.
    nodes_in_snapshots: u64,
    index: Sizes,
}

impl SessionCounts {
    fn of(session: &Arc<Session>) -> Self {
        let history = session.history();
        let snapshots = history.committed().iter().chain(history.working());
        let cycles = history.cycles();
        Self {
            snapshots: history.committed().len(),
            working: history.working().is_some(),
            oldest_cycle: history.cycles().min(),
            newest_cycle: cycles.max(),
            nodes_in_snapshots: snapshots.map(|snapshot| snapshot.len() as u64).sum(),
            index: Sizes::of(std::slice::from_ref(session)),
        }
    }

    fn text(&self) -> String {
        let working = if self.working {
            " and a working state"
        } else {
            ""
        };
        let mut out = format!("snapshots    {}{working}\n", self.snapshots);
        if let (Some(oldest), Some(newest)) = (self.oldest_cycle, self.newest_cycle) {
            let _ = writeln!(out, "cycles       {oldest} to {newest}");
        }
        let (seen, index) = (self.nodes_in_snapshots, &self.index);
        let share = match index.nodes {
            0 => 1.0,
            stored => seen as f64 / stored as f64,
        };
        let _ = writeln!(
            out,
            "sharing      {seen} nodes in all snapshots, {} stored ({share:.1} to 1), {}",
            index.nodes,
            counted(index.segments as u64, "segment")
        );
        let _ = writeln!(
            out,
            "index        {} bytes ({:.1} a node); payloads {} bytes",
            index.index_bytes, index.index_bytes_per_node, index.payload_bytes
        );
        out
    }
}
