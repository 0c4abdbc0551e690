//! Logs of calls: the sessions that they are of, and calls that failed and were made again.

use super::prelude::*;
use crate::logs::log::RequestOrigin;
use std::collections::HashMap;

/// The sessions of a log of calls: one for the agent that began a conversation, and `NAME/AGENT` for each other
/// agent in it.
#[derive(Default)]
pub(super) struct CallSessions {
    open: Vec<CallsSession>,
    by_name: HashMap<(String, Option<String>), usize>,
    first: HashMap<String, Option<String>>,
}

impl CallSessions {
    /// Adds a call of an agent in a conversation. `attempt` says how it failed, as JSON; `meta` is what the
    /// session says of itself.
    pub(super) fn call(
        &mut self,
        (conversation, agent): (String, Option<String>),
        meta: Vec<LogField>,
        (request, attempt): (LogRequest, Option<String>),
        out: &mut Output,
    ) {
        let at = self.session(conversation, agent, meta, out);
        self.open[at].tell(request, attempt, out);
    }

    fn session(
        &mut self,
        conversation: String,
        agent: Option<String>,
        mut meta: Vec<LogField>,
        out: &mut Output,
    ) -> usize {
        let first = self.first.entry(conversation.clone());
        let first = first.or_insert_with(|| agent.clone());
        let agent = agent.filter(|agent| Some(agent) != first.as_ref());
        let key = (conversation, agent);
        if let Some(at) = self.by_name.get(&key) {
            return *at;
        }
        let name = match &key {
            (conversation, None) => conversation.clone(),
            (conversation, Some(agent)) => {
                meta.push(("parent".into(), OWNER.to_owned()));
                format!("{conversation}/{agent}")
            }
        };
        self.open.push(CallsSession::new(out.session(About {
            name: Some(name),
            origin: RequestOrigin::Request,
            meta,
            ..About::default()
        })));
        self.by_name.insert(key, self.open.len() - 1);
        self.open.len() - 1
    }

    pub(super) fn end(&mut self, out: &mut Output) {
        for calls in &mut self.open {
            calls.end(out);
        }
    }
}

/// A session of requests, and the last one if it failed and may be made again.
pub(super) struct CallsSession {
    session: SessionId,
    failed: Option<(LogRequest, String)>,
}

impl CallsSession {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            failed: None,
        }
    }

    /// Adds a request. `attempt` says how it failed, as JSON; a request that is the next one, too, is an
    /// attempt of that.
    pub(super) fn tell(&mut self, request: LogRequest, attempt: Option<String>, out: &mut Output) {
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

    pub(super) fn end(&mut self, out: &mut Output) {
        if let Some((request, attempt)) = self.failed.take() {
            out.event(self.session, Event::Failed(attempt));
            out.event(self.session, Event::Request(request));
        }
    }
}
