//! Who gets events, and sending them. It must not know what has grown.

use crate::support::lock;
use axum::response::sse::Event;
use std::sync::{Mutex, mpsc};

/// The most clients, and how many events wait for each.
pub(super) const CLIENTS: usize = 64;
pub(super) const WAITING: usize = 16;

/// Who gets events.
#[derive(Debug, Default)]
pub(super) struct Hub {
    pub(super) clients: Mutex<Vec<Client>>,
    /// Wakes the thread; `None` before it begins and when the server ends.
    pub(super) wake: Mutex<Option<mpsc::Sender<()>>>,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) session: Option<String>,
    /// Whether nothing was sent yet.
    pub(super) is_new: bool,
    pub(super) events: tokio::sync::mpsc::Sender<Event>,
}

impl Hub {
    /// Ends all streams.
    pub(super) fn end(&self) {
        lock(&self.clients).clear();
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.clients).len()
    }

    /// Sends an event to the clients that are to get it.
    pub(super) fn send(&self, name: &str, data: &str, is_for: impl Fn(&Client) -> bool) {
        lock(&self.clients).retain_mut(|client| {
            if !is_for(client) {
                return true;
            }
            client.is_new = false;
            let event = Event::default().event(name).data(data);
            client.events.try_send(event).is_ok()
        });
    }
}
