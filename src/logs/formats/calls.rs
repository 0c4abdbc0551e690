//! The calls of a session, of which some failed and were made again.

use crate::logs::log::{Event, Request};
use crate::logs::output::{Output, SessionId};

/// A session of requests, and the last one if it failed and may be made again.
pub(super) struct Calls {
    session: SessionId,
    failed: Option<(Request, String)>,
}

impl Calls {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            failed: None,
        }
    }

    /// Tells a request. `attempt` says how it failed, as JSON; a request that is the next one, too, is an
    /// attempt of that.
    pub(super) fn tell(&mut self, request: Request, attempt: Option<String>, out: &mut Output) {
        if let Some((earlier, attempt)) = self.failed.take() {
            let again = earlier.messages == request.messages;
            out.event(self.session, Event::Failed(attempt));
            if !again {
                out.event(self.session, Event::Request(earlier));
            }
        }
        match attempt {
            Some(attempt) => self.failed = Some((request, attempt)),
            None => out.event(self.session, Event::Request(request)),
        }
    }

    /// Passes on a request that failed and was not made again.
    pub(super) fn end(&mut self, out: &mut Output) {
        if let Some((request, attempt)) = self.failed.take() {
            out.event(self.session, Event::Failed(attempt));
            out.event(self.session, Event::Request(request));
        }
    }
}
