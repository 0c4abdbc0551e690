//! The life of one node: in which cycles it appeared, changed and went.

use serde::Serialize;

use super::address::History;
use super::compare::change_of;
use super::diff::Delta;
use crate::index::NodeRef;

/// What happened to the node of an id, oldest first.
#[derive(Clone, Debug, Serialize)]
pub struct Blame {
    /// The id.
    pub id: String,
    /// What happened; never empty.
    pub events: Vec<Event>,
}

/// Something that happened to a node between two neighbouring snapshots.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The cycle that shows it first; for the working state the newest committed one.
    pub cycle: i64,
    /// The snapshot that shows it first: `@c12`, or `working`.
    pub snapshot: String,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What can happen to a node.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum What {
    /// It is there, and was not in the snapshot before.
    Appeared {
        /// The id of its parent; none for the root.
        parent: Option<String>,
    },
    /// It differs from what it was in the snapshot before.
    Changed {
        /// The headers and fields that differ, sorted by name (LANGUAGE §8).
        fields: Vec<String>,
        /// Their values where they are scalar: `from` is the newer, `to` the older.
        #[serde(skip_serializing_if = "Delta::is_empty")]
        delta: Delta,
    },
    /// It is not there any more.
    Went,
}

/// What happened to the node of an id in the committed snapshots, oldest to newest, and then in
/// the working state; none where no snapshot ever had it.
///
/// One look-up a snapshot; fields are compared only where the node's unit has another version,
/// or what the node's ttl or parent reads as is another.
#[must_use]
pub fn blame(history: &History, id: &str) -> Option<Blame> {
    let mut events = Vec::new();
    let mut before: Option<NodeRef<'_>> = None;
    for snapshot in history.committed().iter().chain(history.working()) {
        let now = before
            .and_then(|node| snapshot.shared(node))
            .or_else(|| snapshot.find(id));
        let what = match (before, now) {
            (None, None) => None,
            (None, Some(node)) => Some(What::Appeared {
                parent: node.parent().map(|parent| parent.id().to_owned()),
            }),
            (Some(_), None) => Some(What::Went),
            (Some(older), Some(newer)) => change_of(newer, older).map(|change| What::Changed {
                fields: change.fields,
                delta: change.delta,
            }),
        };
        if let Some(what) = what {
            events.push(Event {
                cycle: snapshot.cycle(),
                snapshot: if snapshot.is_working() {
                    "working".to_owned()
                } else {
                    format!("@c{}", snapshot.cycle())
                },
                what,
            });
        }
        before = now;
    }
    (!events.is_empty()).then(|| Blame {
        id: id.to_owned(),
        events,
    })
}
