//! Messages on standard error while a client is served.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

/// How many messages may wait to be written; further ones are dropped.
const WAITING: usize = 64;

/// How long to wait at the end for messages that are not written yet.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// Writes messages on standard error from its own thread: a client that does not read them never
/// delays a response.
#[derive(Clone, Debug)]
pub(super) struct Log(SyncSender<String>);

impl Log {
    /// Starts the thread. What is returned hangs up after the last message; all logs must have been dropped.
    pub(super) fn start() -> (Self, Receiver<()>) {
        let (log, messages) = sync_channel::<String>(WAITING);
        let (ended, rest) = channel();
        let write = move || {
            for message in messages {
                // There is nowhere left to report a failure.
                let _ = std::io::stderr().write_all(message.as_bytes());
            }
            drop(ended);
        };
        let _ = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(write);
        (Self(log), rest)
    }

    /// Writes a message, which ends in a line feed.
    pub(super) fn write(&self, message: String) {
        let _ = self.0.try_send(message);
    }
}
