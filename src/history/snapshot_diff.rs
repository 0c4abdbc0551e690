//! The difference of any two snapshots (RUNTIME §4, source 002 chapter 05 §4.3): nodes added,
//! removed and changed and, if requested, nodes moved, children per parent, and content diffs.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use super::address::{History, Unresolved};
use super::archive::{LoadFailure, Position};
use super::change::{Change, Delta, counterpart};
use super::compare::{MatchedNodes, SnapshotComparison, ids};
use super::content::{ContentDiff, ContentOptions, Labels, content_diff};
use crate::index::{NodeRef, Snapshot};
use crate::query::exec::{MatchedRows, RunInput, Trace, run};
use crate::query::ir::Address;
use crate::query::plan::Bound;
use crate::support::cancel::ensure;
use crate::support::macros::setters;
use crate::tree::NodeClass;

/// The address of one snapshot: a committed one or the working state. Example: [`SnapshotDiff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum At {
    /// The working state: the session's own, else what the last commit left.
    Working,
    /// A committed snapshot.
    Committed(Address),
}

impl At {
    pub(crate) fn find(self, history: &History) -> Result<&Arc<Snapshot>, Unresolved> {
        match self {
            Self::Working => history.latest().ok_or_else(|| history.nothing()),
            Self::Committed(address) => history.at(address),
        }
    }

    /// Loads the snapshot at this address, if there is one.
    /// Errors: it cannot be loaded.
    pub(crate) fn fetch(self, history: &History) -> Result<(), LoadFailure> {
        let position = match self {
            Self::Working => history.latest_position(),
            Self::Committed(address) => {
                if let Address::Cycle(_) = address {
                    history.fetch_cycles()?;
                }
                history.index_of(address).map(Position::Committed)
            }
        };
        position.map_or(Ok(()), |position| history.fetch(position))
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Working => f.write_str("working"),
            Self::Committed(address) => address.fmt(f),
        }
    }
}

/// The optional members of a [`SnapshotDiff`], none by default. See the example there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffOptions {
    /// List moved nodes, and children added to and removed from parents.
    pub moves: bool,
    /// Diff the contents of changed nodes.
    pub content: Option<ContentOptions>,
}

impl DiffOptions {
    setters! {
        moves: bool;
        content: ContentOptions;
    }
}

/// The difference of two snapshots. Serializes to `added`, `removed`, `changed` and the members
/// that were requested (source 002).
///
/// ```
/// use pactql::{Address, DiffOptions, Engine, Session, history::At};
/// let session = Session::open("fixtures/greenhouse.jsonl")?;
/// let [a, b] = [1, 0].map(|back| At::Committed(Address::Back(back)));
/// let options = DiffOptions::default().moves(true);
/// let diff = Engine::new().diff(&session, a, b, Some(".cb"), &options)?;
/// assert_eq!(diff.added, ["hint4", "res4", "say4"]);
/// assert!(diff.changed[0].delta.iter().any(|(field, newer, _)| field == "ttl" && newer == 2));
/// assert!(diff.moves.is_some_and(|moves| moves.is_empty()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SnapshotDiff {
    /// In the newer only, in its document order.
    pub added: Vec<String>,
    /// In the older only, in its document order.
    pub removed: Vec<String>,
    /// In both and different, in the newer's document order.
    pub changed: Vec<ChangedNode>,
    /// Nodes that moved, in the newer's document order, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<Move>>,
    /// Children that parents gained, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children_added: Option<Children>,
    /// Children that parents lost, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children_removed: Option<Children>,
    #[serde(skip)]
    pub(crate) newer: (Arc<Snapshot>, At),
    #[serde(skip)]
    pub(crate) older: (Arc<Snapshot>, At),
}

/// A node that both snapshots have and that differs. See the example of [`SnapshotDiff`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ChangedNode {
    /// The id.
    pub id: String,
    /// The headers and fields that differ, sorted by name.
    pub fields: Vec<String>,
    /// The content diff, if requested and if `fields` has `content_hash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_diff: Option<ContentDiff>,
    /// Newer and older values of the scalar fields.
    #[serde(skip)]
    pub delta: Delta,
}

impl From<Change> for ChangedNode {
    fn from(change: Change) -> Self {
        Self {
            id: change.id,
            fields: change.fields,
            content_diff: None,
            delta: change.delta,
        }
    }
}

impl SnapshotDiff {
    /// Whether nothing was added, removed or changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// A node whose id has another parent, or whose content has another id. See [`SnapshotDiff`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Move {
    /// Its id in the newer snapshot.
    pub id: String,
    /// Its id in the older one, if that was another: an added node with the content hash of a removed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_id: Option<String>,
    /// Its parent in the older snapshot.
    pub previous_parent_id: Option<String>,
    /// Its parent in the newer one.
    pub new_parent_id: Option<String>,
}

/// Ids of children by the id of their parent; parents in the order of their first child listed.
///
/// Under an added or removed parent, only children that moved are listed. See [`SnapshotDiff`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Children {
    parents: Vec<(String, Vec<String>)>,
    places: HashMap<String, usize>,
}

impl Children {
    /// The id of each parent and the ids of its children.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.parents
            .iter()
            .map(|(parent, children)| (parent.as_str(), children.as_slice()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    fn add(&mut self, parent: &str, child: &str) {
        let next = self.parents.len();
        let at = *self.places.entry_ref(parent).or_insert(next);
        if at == next {
            self.parents.push((parent.to_owned(), Vec::new()));
        }
        self.parents[at].1.push(child.to_owned());
    }
}

impl Serialize for Children {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Compares two snapshots of a history, named in either order: the newer one has the later cycle,
/// and the working state is newest. With a selector, only its matches in either are compared.
///
/// O(matches); no field is read of nodes whose units have the same version.
///
/// # Errors
/// An address without a snapshot, and why there is none.
pub fn diff(
    history: &History,
    a: At,
    b: At,
    selector: Option<&Bound>,
    options: &DiffOptions,
) -> Result<SnapshotDiff, (At, Unresolved)> {
    let named = |at: At| {
        let snapshot = at.find(history).map_err(|error| (at, error))?;
        Ok((Arc::clone(snapshot), at))
    };
    let (a, b) = (named(a)?, named(b)?);
    let age = |snapshot: &Snapshot| (snapshot.is_working(), snapshot.cycle());
    let (newer, older) = if age(&a.0) < age(&b.0) {
        (b, a)
    } else {
        (a, b)
    };
    let rows = |snapshot: &Snapshot| {
        selector.map(|bound| {
            let found = run(bound, RunInput::new(snapshot, history), &mut Trace::off());
            let mut rows: SmallVec<_> = found.iter().collect();
            rows.sort_unstable();
            MatchedRows::List(rows)
        })
    };
    let (newer_rows, older_rows) = (rows(&newer.0), rows(&older.0));
    let in_newer = MatchedNodes::new(&newer.0, newer_rows.as_ref());
    let in_older = MatchedNodes::new(&older.0, older_rows.as_ref());
    let compared = SnapshotComparison::new(&in_newer, &in_older);
    let labels = (newer.1.to_string(), older.1.to_string());
    let labels = Labels {
        newer: &labels.0,
        older: &labels.1,
    };
    let moved = options.moves.then(|| compared.moves());
    let (children_added, children_removed) = moved
        .as_ref()
        .map(|_| compared.children(&newer.0, &older.0))
        .unzip();
    let changed = |(newer, older, change): (NodeRef<'_>, NodeRef<'_>, Change)| {
        ensure();
        let content = options.content.as_ref().filter(|_| change.is_rewritten());
        ChangedNode {
            content_diff: content.map(|how| content_diff(newer, older, how, labels)),
            ..ChangedNode::from(change)
        }
    };
    let (added, removed) = (ids(&compared.added), ids(&compared.removed));
    let changed = compared.changed.into_iter().map(changed).collect();
    Ok(SnapshotDiff {
        added,
        removed,
        changed,
        moves: moved,
        children_added,
        children_removed,
        newer,
        older,
    })
}

impl<'a> SnapshotComparison<'a> {
    /// The nodes that moved. Equal contents are paired in document order; only blocks with content are paired.
    fn moves(&self) -> Vec<Move> {
        let content = |node: &NodeRef<'_>| {
            let has = node.class() == NodeClass::Block && node.field("content").is_some();
            has.then(|| node.content_hash())
        };
        let mut gone: HashMap<String, std::collections::VecDeque<NodeRef<'_>>> = HashMap::new();
        for node in &self.removed {
            if let Some(hash) = content(node) {
                gone.entry(hash).or_default().push_back(*node);
            }
        }
        let parent = |node: NodeRef<'_>| node.parent().map(|parent| parent.id().to_owned());
        let mut found: Vec<(u32, Move)> = Vec::new();
        let mut add = |node: NodeRef<'_>, other: NodeRef<'_>| {
            let moved = Move {
                id: node.id().to_owned(),
                previous_id: (other.id() != node.id()).then(|| other.id().to_owned()),
                previous_parent_id: parent(other),
                new_parent_id: parent(node),
            };
            found.push((node.row(), moved));
        };
        for node in &self.added {
            // If nothing was removed, no hash is needed.
            let hash = Some(node).filter(|_| !gone.is_empty()).and_then(content);
            let twin = hash.and_then(|hash| gone.get_mut(&hash)?.pop_front());
            if let Some(twin) = twin {
                add(*node, twin);
            }
        }
        self.reparented().for_each(|(node, other)| add(node, other));
        found.sort_by_key(|(row, _)| *row);
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn reparented(&self) -> impl Iterator<Item = (NodeRef<'a>, NodeRef<'a>)> {
        self.changed
            .iter()
            .filter(|(_, _, change)| change.fields.iter().any(|field| field == "parent"))
            .map(|(node, other, _)| (*node, *other))
    }

    fn children(&self, newer: &Snapshot, older: &Snapshot) -> (Children, Children) {
        let list = |mut nodes: Vec<(NodeRef<'_>, bool)>, other: &Snapshot| {
            nodes.sort_by_key(|(node, _)| node.row());
            let mut children = Children::default();
            for (node, moved) in nodes {
                if let Some(parent) = node.parent()
                    && (moved || counterpart(parent, other).is_some())
                {
                    children.add(parent.id(), node.id());
                }
            }
            children
        };
        let came = self.added.iter().map(|node| (*node, false));
        let came = came.chain(self.reparented().map(|(node, _)| (node, true)));
        let went = self.removed.iter().map(|node| (*node, false));
        let went = went.chain(self.reparented().map(|(_, other)| (other, true)));
        (list(came.collect(), older), list(went.collect(), newer))
    }
}
