//! The sessions of an import while its formats read.

use super::builder::Builder;
use super::log::{About, Event, LogCall, LogField};
use super::recording::Recording;
use super::report::ImportReport;
use super::spool::Spool;
use super::usage::not_counted;

/// Sessions are begun with [`Output::session`]; several may be open at a time.
#[derive(Clone, Default)]
pub(super) struct Output {
    sessions: Vec<OutputSession>,
    pub(super) report: ImportReport,
    /// What is beside the messages that are read now, for the `meta` of sessions without a `record`.
    pub(super) beside: Option<LogField>,
    /// Where the documents of the sessions go, if they are too large for memory.
    spool: Option<Spool>,
}

#[derive(Clone)]
enum OutputSession {
    Open(Box<Builder>),
    Whole(Box<(About, Recording)>),
}

impl OutputSession {
    fn finish(self) -> (About, Recording) {
        match self {
            Self::Open(builder) => builder.finish(),
            Self::Whole(whole) => *whole,
        }
    }
}

/// An open session at one moment.
#[derive(Clone)]
pub(super) struct SessionMark(Box<Builder>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionId(usize);

impl Output {
    pub(super) fn spooled(spool: Spool) -> Self {
        Self {
            spool: Some(spool),
            ..Self::default()
        }
    }

    pub(super) fn session(&mut self, mut about: About) -> SessionId {
        if about.meta.iter().all(|(name, _)| name != "record") {
            about.meta.extend(self.beside.clone());
        }
        let spool = self.spool.clone();
        let recording = spool.map_or_else(Recording::default, Recording::spooled);
        let builder = Builder::new(about, recording);
        self.sessions.push(OutputSession::Open(Box::new(builder)));
        SessionId(self.sessions.len() - 1)
    }

    pub(super) fn event(&mut self, session: SessionId, event: Event) {
        for name in event.call().map(LogCall::uncounted).unwrap_or_default() {
            self.report.skipped_member(&not_counted(&name));
        }
        if let Some(OutputSession::Open(builder)) = self.sessions.get_mut(session.0) {
            builder.event(event);
        }
    }

    /// Says that nothing more happens in a session. What was sent in it last is not kept in memory any more.
    pub(super) fn close(&mut self, session: SessionId) {
        if let Some(open @ OutputSession::Open(_)) = self.sessions.get_mut(session.0) {
            let none = OutputSession::Whole(Box::default());
            *open = OutputSession::Whole(Box::new(std::mem::replace(open, none).finish()));
        }
    }

    /// A session as it is now, to go on from when the log has grown: what was committed in it stays.
    pub(super) fn mark(&mut self, session: SessionId) -> Option<SessionMark> {
        let Some(OutputSession::Open(builder)) = self.sessions.get_mut(session.0) else {
            return None;
        };
        builder.settle();
        Some(SessionMark(builder.clone()))
    }

    /// Goes on with a session from a mark.
    pub(super) fn resume(&mut self, mark: &SessionMark) -> SessionId {
        self.sessions.push(OutputSession::Open(mark.0.clone()));
        SessionId(self.sessions.len() - 1)
    }

    /// The newest session, if it is closed.
    pub(super) fn closed(&self) -> Option<(About, Recording)> {
        match self.sessions.last() {
            Some(OutputSession::Whole(whole)) => Some((**whole).clone()),
            _ => None,
        }
    }

    /// The sessions so far, to be ended while this output goes on: what was committed in them stays.
    pub(super) fn copy(&mut self) -> Self {
        for session in &mut self.sessions {
            if let OutputSession::Open(builder) = session {
                builder.settle();
            }
        }
        self.clone()
    }

    pub(super) fn cycles(&self, session: SessionId) -> usize {
        match self.sessions.get(session.0) {
            Some(OutputSession::Open(builder)) => builder.cycles(),
            _ => 0,
        }
    }

    /// Adds a session of a format that has trees itself.
    pub(super) fn whole(&mut self, about: About, recording: Recording) {
        self.sessions
            .push(OutputSession::Whole(Box::new((about, recording))));
    }

    /// Adds the sessions of another output behind these.
    pub(super) fn append(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
        self.report.add(&other.report);
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn empty(&mut self, location: &str) {
        self.session(About {
            location: location.to_owned(),
            ..About::default()
        });
    }

    /// In the order in which they were begun.
    pub(super) fn finish(self) -> (Vec<(About, Recording)>, ImportReport) {
        let finished = self.sessions.into_iter().map(OutputSession::finish);
        (finished.collect(), self.report)
    }
}
