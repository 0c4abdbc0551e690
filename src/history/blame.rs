//! The history of one node: in which cycles it appeared, changed and was removed, by what, and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::address::History;
use super::change::{Delta, change_of};
use crate::index::{NodeRef, Snapshot};
use crate::json::{get, members};
use crate::support::cancel::ensure;
use crate::tree::{CommitRecord, NodeClass};

/// The history of one node. See the example of [`blame`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Blame {
    /// The id.
    pub id: String,
    /// Its events, oldest first; at least one.
    pub events: Vec<BlameEvent>,
}

/// A change of a node between two neighbouring snapshots. See the example of [`blame`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BlameEvent {
    /// The first cycle that shows it; for the working state the newest committed one.
    pub cycle: i64,
    /// The first snapshot that shows it: `@c12` or `working`.
    pub snapshot: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: BlameKind,
}

/// The kind of a [`BlameEvent`]. See the example of [`blame`].
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum BlameKind {
    /// The snapshot before did not have the node.
    Appeared {
        /// The id of its parent; `None` for the root.
        parent: Option<String>,
        /// By what it came; `None` if that is not known.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        by: Option<CameBy>,
    },
    /// It differs from its version in the snapshot before.
    Changed {
        /// The headers and fields that differ, sorted by name (LANGUAGE §8).
        fields: Vec<String>,
        /// The values of the scalar ones.
        #[serde(skip_serializing_if = "Delta::is_empty")]
        delta: Delta,
    },
    /// The snapshot does not have the node any more.
    Went {
        /// Why it went; `None` if that is not known.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        why: Option<WentBy>,
        /// The node above it that went, and took it along, if the reason is that one's.
        #[serde(skip_serializing_if = "Option::is_none")]
        with: Option<String>,
    },
}

/// By what a node came: as JSON the member `by`, and in some cases an id. See the example of [`blame`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CameBy {
    /// It was in the log that was imported.
    Import,
    /// It is of the model's reply.
    Reply,
    /// [`Context::append`](crate::Context::append), also by an id of the form that the runtime makes.
    Append,
    /// [`Context::add`](crate::Context::add).
    Add,
    /// It took the place of another node.
    Replace {
        /// The id of that one.
        of: String,
    },
    /// It was moved from another region, where it had another id.
    Move {
        /// That id.
        of: String,
    },
    /// It is the summary of a compaction.
    Compact,
    /// [`Context::set_system`](crate::Context::set_system).
    SetSystem,
    /// [`Context::set_tools`](crate::Context::set_tools).
    SetTools,
    /// The commit made it: a turn, or its core.
    Commit,
}

/// Why a node went: as JSON the member `why`, and in some cases an id. See the example of [`blame`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WentBy {
    /// Its ttl ran out.
    Expired,
    /// The policy took it.
    Pruned,
    /// A compaction took it.
    Compacted {
        /// The id of the summary, if the snapshot has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        into: Option<String>,
    },
    /// It was removed by hand.
    Removed,
    /// Another node took its place.
    Replaced {
        /// The id of that one.
        successor: String,
    },
    /// It was moved to another region, where it has another id.
    Moved {
        /// That id.
        successor: String,
    },
    /// It lost its last child, and was removable.
    Emptied,
    /// The client sent it no more: the session was imported, and its log says nothing else.
    Dropped,
}

/// The history of one node id over the committed snapshots and the working state; `None` if the id never existed.
///
/// One look-up a snapshot; fields are compared only where the node's unit has another version, or
/// its effective ttl or parent id differs.
///
/// For a session of a store, call [`History::fetch_all`] first: it reports a snapshot that cannot be read; here
/// such a snapshot is left out.
///
/// The reasons are what the commit's record says (`meta.commit`), what the log says of a compaction (`meta.compaction`),
/// or what the headers show: a ttl that ran out.
///
/// ```
/// let session = pactql::Session::open("fixtures/support-agent.jsonl")?;
/// let id = pactql::Engine::new().rows(&session, "@t0 .cb @limit=1")?.to_ids()[0].to_owned();
/// let blame = pactql::history::blame(&session.history(), &id).expect("the node exists");
/// assert!(matches!(blame.events[0].kind, pactql::history::BlameKind::Appeared { .. }));
///
/// let mut context = pactql::Context::new();
/// let id = context.add("^sys", r#"block:text { ttl=1 } "Today is Monday.""#)?;
/// context.commit()?;
/// context.commit()?;
/// let blame = pactql::history::blame(&context.history(), &id).expect("the node was there");
/// let events = serde_json::to_value(&blame.events)?;
/// assert_eq!((&events[0]["by"], &events[1]["why"]), (&"add".into(), &"expired".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn blame(history: &History, id: &str) -> Option<Blame> {
    let mut events = Vec::new();
    let mut before: Option<NodeRef<'_>> = None;
    let mut previous: Option<&Snapshot> = None;
    for snapshot in history.committed().iter().chain(history.working()) {
        ensure();
        let now = before
            .and_then(|node| snapshot.shared(node))
            .or_else(|| snapshot.find(id));
        let kind = match (before, now) {
            (None, None) => None,
            (None, Some(node)) => Some(BlameKind::Appeared {
                parent: node.parent().map(|parent| parent.id().to_owned()),
                by: came_by(node, previous),
            }),
            (Some(older), None) => {
                let (why, with) = went_by(older, snapshot).unzip();
                let with = with.filter(|with| *with != id);
                Some(BlameKind::Went { why, with })
            }
            (Some(older), Some(newer)) => {
                change_of(newer, older).map(|change| BlameKind::Changed {
                    fields: change.fields,
                    delta: change.delta,
                })
            }
        };
        if let Some(kind) = kind {
            events.push(BlameEvent {
                cycle: snapshot.cycle(),
                snapshot: if snapshot.is_working() {
                    "working".to_owned()
                } else {
                    format!("@c{}", snapshot.cycle())
                },
                kind,
            });
        }
        (before, previous) = (now, Some(&**snapshot));
    }
    (!events.is_empty()).then(|| Blame {
        id: id.to_owned(),
        events,
    })
}

/// What a snapshot says of how it was made.
struct SnapshotOrigin {
    is_imported: bool,
    /// Whether it is the first one after a compaction, by its log.
    is_compacted: bool,
    record: CommitRecord,
}

impl SnapshotOrigin {
    fn of(snapshot: &Snapshot) -> Self {
        let meta = members(snapshot.meta().value("meta").unwrap_or_default());
        let says = |name: &str| get(&meta, name).is_some_and(|value| value != "null");
        Self {
            is_imported: says("source"),
            is_compacted: says("compaction"),
            record: CommitRecord::of(snapshot.meta()),
        }
    }
}

fn upwards(node: NodeRef<'_>) -> impl Iterator<Item = NodeRef<'_>> {
    std::iter::successors(Some(node), |node| node.parent())
}

/// By what a node came that the `previous` snapshot does not have.
fn came_by(node: NodeRef<'_>, previous: Option<&Snapshot>) -> Option<CameBy> {
    let snapshot = node.snapshot();
    let SnapshotOrigin {
        is_imported,
        is_compacted,
        record,
    } = SnapshotOrigin::of(snapshot);
    let is_reply = node.field("data_reply").is_some();
    if is_imported {
        return Some(match node.kind() {
            _ if is_reply => CameBy::Reply,
            Some("summary") if is_compacted => CameBy::Compact,
            _ => CameBy::Import,
        });
    }
    // The nodes above it that came with it: what is said of one holds for all below it.
    let came =
        upwards(node).take_while(|above| previous.is_none_or(|old| old.find(above.id()).is_none()));
    for above in came {
        let id = above.id();
        let names = |ids: &[Arc<str>]| ids.iter().any(|known| **known == *id);
        let of = |pairs: &BTreeMap<Arc<str>, Arc<str>>| pairs.get(id).map(|old| old.to_string());
        if names(&record.set_system) {
            return Some(CameBy::SetSystem);
        } else if names(&record.set_tools) {
            return Some(CameBy::SetTools);
        } else if record.compact.iter().any(|made| *made.into == *id) {
            return Some(CameBy::Compact);
        } else if let Some(of) = of(&record.replace) {
            return Some(CameBy::Replace { of });
        } else if let Some(of) = of(&record.moved) {
            return Some(CameBy::Move { of });
        } else if names(&record.add) {
            return Some(CameBy::Add);
        } else if names(&record.append) {
            return Some(CameBy::Append);
        }
    }
    if is_reply {
        return Some(CameBy::Reply);
    }
    // What is older than its first snapshot came before others were left out.
    let cycle = node.cycle()?;
    let working = i64::from(snapshot.is_working());
    if snapshot.cycle().checked_add(working) != Some(cycle) {
        return None;
    }
    // The forms of the ids that the runtime makes.
    let id = node.id();
    let is_made = |form: String| {
        id == form
            || id
                .strip_prefix(&*form)
                .is_some_and(|end| end.starts_with('~'))
    };
    match node.class() {
        NodeClass::Turn if is_made(format!("mt:{cycle}")) => Some(CameBy::Commit),
        NodeClass::Container if is_made(format!("mc:{cycle}")) => Some(CameBy::Commit),
        NodeClass::Block if is_made(format!("cb:c{cycle}-{}", node.creation_index())) => {
            Some(CameBy::Append)
        }
        _ => None,
    }
}

/// Why a node went that `snapshot`, the next one, does not have; and the node that it is true of: itself, or one above it.
fn went_by(node: NodeRef<'_>, snapshot: &Snapshot) -> Option<(WentBy, String)> {
    let SnapshotOrigin {
        is_imported,
        is_compacted,
        record,
    } = SnapshotOrigin::of(snapshot);
    let names = |ids: &[Arc<str>], id: &str| ids.iter().any(|known| **known == *id);
    let gone = || upwards(node).take_while(|above| snapshot.find(above.id()).is_none());
    // In the order of a commit: what was done by hand comes first.
    let by_hand = |above: NodeRef<'_>| {
        let id = above.id();
        let successor = |pairs: &BTreeMap<Arc<str>, Arc<str>>| {
            let found = pairs.iter().find(|(_, old)| ***old == *id);
            found.map(|(new, _)| new.to_string())
        };
        if let Some(successor) = successor(&record.replace) {
            Some(WentBy::Replaced { successor })
        } else if let Some(successor) = successor(&record.moved) {
            Some(WentBy::Moved { successor })
        } else {
            names(&record.remove, id).then_some(WentBy::Removed)
        }
    };
    let passed = snapshot.cycle().saturating_sub(node.snapshot().cycle());
    let by_commit = |above: NodeRef<'_>| {
        let id = above.id();
        let compaction = record.compact.iter().find(|made| names(&made.ids, id));
        if let Some(made) = compaction {
            let into = Some(made.into.to_string());
            Some(WentBy::Compacted { into })
        } else if names(&record.prune, id) {
            Some(WentBy::Pruned)
        } else if names(&record.empty, id) && id == node.id() {
            // What was in it had gone before.
            Some(WentBy::Emptied)
        } else if names(&record.expire, id) || above.ttl().is_some_and(|ttl| ttl <= passed) {
            Some(WentBy::Expired)
        } else {
            None
        }
    };
    let reason = |why: &dyn Fn(NodeRef<'_>) -> Option<WentBy>| {
        gone().find_map(|above| Some((why(above)?, above.id().to_owned())))
    };
    let own = |why| Some((why, node.id().to_owned()));
    if snapshot.is_working() {
        return own(if is_imported {
            WentBy::Dropped
        } else {
            WentBy::Removed
        });
    }
    let recorded = reason(&by_hand).or_else(|| reason(&by_commit));
    if recorded.is_some() {
        return recorded;
    }
    if is_compacted {
        let before = node.snapshot();
        let mut summaries = snapshot.nodes();
        let summary =
            summaries.find(|new| new.kind() == Some("summary") && before.find(new.id()).is_none());
        let into = summary.map(|summary| summary.id().to_owned());
        return own(WentBy::Compacted { into });
    }
    is_imported.then(|| own(WentBy::Dropped)).flatten()
}
