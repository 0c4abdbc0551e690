//! References: handles that pin nodes until they are dropped (RUNTIME §3).

use crate::support::lock;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use hashbrown::HashMap;

/// By id of a node, what all references to it share. An entry without references left is as if there were none; a
/// reference that is in no entry is void, also when a later node has its id.
type Board = HashMap<Box<str>, Weak<str>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Pins(Arc<Mutex<Board>>);

impl Pins {
    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.0)
    }

    pub(crate) fn pin(&self, id: &str) -> Reference {
        let mut board = self.board();
        let known = board.get(id).and_then(Weak::upgrade);
        let id = known.unwrap_or_else(|| {
            let shared: Arc<str> = id.into();
            board.insert(id.into(), Arc::downgrade(&shared));
            shared
        });
        Reference { id }
    }

    pub(crate) fn ids(&self) -> Vec<Box<str>> {
        let mut board = self.board();
        board.retain(|_, pin| pin.strong_count() > 0);
        let mut ids: Vec<Box<str>> = board.keys().cloned().collect();
        ids.sort_unstable();
        ids
    }

    /// Voids the references to nodes for which `is_here` is false.
    pub(crate) fn retain(&self, is_here: impl Fn(&str) -> bool) {
        self.board().retain(|id, _| is_here(id));
    }
}

/// A reference to a node: while it lives, the node neither expires nor is pruned, and cannot be
/// removed (RUNTIME §3). Dropping it unpins the node.
///
/// ```
/// use pactql::{Context, NewNode};
/// let mut context = Context::new();
/// context.add("^ah", NewNode::text("a page").key("page").ttl(0))?;
/// let reference = context.pin(".cb[key='page']")?;
/// context.commit()?;
/// assert_eq!(context.select("@t0 #page")?.ids().len(), 1);
/// drop(reference);
/// context.commit()?;
/// assert_eq!(context.select("@t0 #page")?.ids().len(), 0);
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Debug)]
pub struct Reference {
    id: Arc<str>,
}

impl Reference {
    /// The id of the node.
    pub fn id(&self) -> &str {
        &self.id
    }
}
