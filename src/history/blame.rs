//! The history of one node: in which cycles it appeared, changed and was removed.

use serde::Serialize;

use super::address::History;
use super::change::{Delta, change_of};
use crate::index::NodeRef;
use crate::support::cancel::ensure;

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
    Went,
}

/// The history of one node id over the committed snapshots and the working state; `None` if the id never existed.
///
/// One look-up a snapshot; fields are compared only where the node's unit has another version, or
/// its effective ttl or parent id differs.
///
/// For a session of a store, call [`History::fetch_all`] first: it reports a snapshot that cannot be read; here
/// such a snapshot is left out.
///
/// ```
/// let session = pactql::Session::open("fixtures/support-agent.jsonl")?;
/// let id = pactql::Engine::new().rows(&session, "@t0 .cb @limit=1")?.to_ids()[0].to_owned();
/// let blame = pactql::history::blame(&session.history(), &id).expect("the node exists");
/// assert!(matches!(blame.events[0].kind, pactql::history::BlameKind::Appeared { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn blame(history: &History, id: &str) -> Option<Blame> {
    let mut events = Vec::new();
    let mut before: Option<NodeRef<'_>> = None;
    for snapshot in history.committed().iter().chain(history.working()) {
        ensure();
        let now = before
            .and_then(|node| snapshot.shared(node))
            .or_else(|| snapshot.find(id));
        let kind = match (before, now) {
            (None, None) => None,
            (None, Some(node)) => Some(BlameKind::Appeared {
                parent: node.parent().map(|parent| parent.id().to_owned()),
            }),
            (Some(_), None) => Some(BlameKind::Went),
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
        before = now;
    }
    (!events.is_empty()).then(|| Blame {
        id: id.to_owned(),
        events,
    })
}
