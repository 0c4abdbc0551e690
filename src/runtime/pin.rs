//! References: handles that pin nodes until they are dropped (RUNTIME §3).

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Pins(Arc<Mutex<Board>>);

#[derive(Debug, Default)]
struct Board {
    pins: HashMap<Box<str>, Pin>,
    count: u64,
}

#[derive(Debug)]
struct Pin {
    /// Tells the node from a later one of the same id.
    number: u64,
    references: usize,
}

impl Pins {
    fn with<T>(&self, read: impl FnOnce(&mut Board) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn pin(&self, id: &str) -> Reference {
        let number = self.with(|board| {
            let next = board.count + 1;
            let pin = board.pins.entry(id.into()).or_insert_with(|| {
                board.count = next;
                Pin {
                    number: next,
                    references: 0,
                }
            });
            pin.references += 1;
            pin.number
        });
        Reference {
            id: id.into(),
            number,
            pins: self.clone(),
        }
    }

    pub(crate) fn ids(&self) -> Vec<Box<str>> {
        let mut ids: Vec<Box<str>> = self.with(|board| board.pins.keys().cloned().collect());
        ids.sort_unstable();
        ids
    }

    /// Voids the references to nodes for which `is_here` is false.
    pub(crate) fn retain(&self, is_here: impl Fn(&str) -> bool) {
        self.with(|board| board.pins.retain(|id, _| is_here(id)));
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
    number: u64,
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
        self.pins.with(|board| {
            let pin = board.pins.get_mut(&self.id);
            if let Some(pin) = pin.filter(|pin| pin.number == self.number) {
                pin.references -= 1;
                if pin.references == 0 {
                    board.pins.remove(&self.id);
                }
            }
        });
    }
}
