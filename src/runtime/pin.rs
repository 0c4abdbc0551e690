//! References: handles that pin nodes until they are dropped (RUNTIME §3).

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

/// The pinned ids of a session, with the number of references to each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins(Arc<Mutex<HashMap<Box<str>, usize>>>);

impl Pins {
    fn with<T>(&self, read: impl FnOnce(&mut HashMap<Box<str>, usize>) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Pins a node.
    pub(crate) fn pin(&self, id: &str) -> Reference {
        self.with(|pins| *pins.entry(id.into()).or_default() += 1);
        Reference {
            id: id.into(),
            pins: self.clone(),
        }
    }

    /// The pinned ids, sorted.
    pub(crate) fn ids(&self) -> Vec<Box<str>> {
        let mut ids: Vec<Box<str>> = self.with(|pins| pins.keys().cloned().collect());
        ids.sort_unstable();
        ids
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
    id: Box<str>,
    pins: Pins,
}

impl Reference {
    /// The id of the node.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.pins.with(|pins| {
            if let Some(count) = pins.get_mut(&self.id) {
                *count -= 1;
                if *count == 0 {
                    pins.remove(&self.id);
                }
            }
        });
    }
}
