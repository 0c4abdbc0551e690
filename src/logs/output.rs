//! The sessions of an import while its formats read.

use super::builder::Builder;
use super::log::{About, Event, LogField};
use super::recording::Recording;
use super::report::ImportReport;
use super::spool::Spool;

/// Sessions are begun with [`Output::session`]; several may be open at a time.
#[derive(Default)]
pub(super) struct Output {
    sessions: Vec<OutputSession>,
    pub(super) report: ImportReport,
    /// What is beside the messages that are read now, for the `meta` of sessions without a `record`.
    pub(super) beside: Option<LogField>,
    /// Where the documents of the sessions go, if they are too large for memory.
    spool: Option<Spool>,
}

enum OutputSession {
    Open(Box<Builder>),
    Whole(Box<(About, Recording)>),
}

impl OutputSession {
    fn finish(self) -> (About, Recording) {
        match self {
            Self::Open(mut builder) => (std::mem::take(&mut builder.about), builder.finish()),
            Self::Whole(whole) => *whole,
        }
    }
}

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
