//! What is told on standard error while a client is served.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Messages that wait to be written at most; further ones are dropped.
const WAITING: usize = 64;

/// How long the messages that wait at the end may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes messages on standard error from a thread of its own: a client that keeps the other end
/// open and does not read from it never holds up an answer.
#[derive(Clone, Debug)]
pub(super) struct Log(SyncSender<String>);

/// Ends a log.
#[derive(Debug)]
pub(super) struct Rest(Receiver<()>);

impl Log {
    /// A log, and what ends it. Where there is no thread to be had, nothing is told.
    pub(super) fn start() -> (Self, Rest) {
        let (log, messages) = sync_channel::<String>(WAITING);
        let (ended, rest) = channel();
        let write = move || {
            for message in messages {
                // A failure to tell is not told.
                let _ = std::io::stderr().write_all(message.as_bytes());
            }
            drop(ended);
        };
        let _ = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(write);
        (Self(log), Rest(rest))
    }

    /// Tells a message, which ends in a line feed.
    pub(super) fn tell(&self, message: String) {
        let _ = self.0.try_send(message);
    }
}

impl Rest {
    /// Waits until what was told is written, all logs being gone; not for long.
    pub(super) fn wait(self) {
        let _ = self.0.recv_timeout(PATIENCE);
    }
}
