//! The sessions of an import while its formats read.

use super::builder::Builder;
use super::log::{About, Event};
use super::recording::Recording;
use super::report::Report;

/// The sessions that a format has begun, and the counts of what it read.
///
/// A format calls [`Output::session`] for each session it finds, then [`Output::event`] in the
/// order of the log; several sessions may be open at a time.
#[derive(Default)]
pub(super) struct Output {
    sessions: Vec<Builder>,
    pub(super) report: Report,
}

/// One session of an [`Output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionId(usize);

impl Output {
    /// Begins a session.
    pub(super) fn session(&mut self, about: About) -> SessionId {
        self.sessions.push(Builder::new(about));
        SessionId(self.sessions.len() - 1)
    }

    /// Adds what happened next.
    pub(super) fn event(&mut self, session: SessionId, event: Event) {
        if let Some(builder) = self.sessions.get_mut(session.0) {
            builder.event(event);
        }
    }

    /// The number of cycles of a session so far.
    pub(super) fn cycles(&self, session: SessionId) -> usize {
        self.sessions.get(session.0).map_or(0, Builder::cycles)
    }

    /// The number of sessions.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Adds a session without anything in it.
    pub(super) fn empty(&mut self, location: &str) {
        self.session(About {
            location: location.to_owned(),
            ..About::default()
        });
    }

    /// The sessions in the order they were begun: location, name, tree.
    pub(super) fn finish(self) -> (Vec<(About, Recording)>, Report) {
        let finish = |mut builder: Builder| (std::mem::take(&mut builder.about), builder.finish());
        (self.sessions.into_iter().map(finish).collect(), self.report)
    }
}
