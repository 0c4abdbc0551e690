//! How much is on its way: requests without an answer, and answers that the client has not read.
//!
//! The reader of requests waits while there are too many; the start of a call waits while too many bytes are
//! unread.

use std::sync::Arc;
use tokio::sync::watch;

/// The most requests without an answer and lines that are not written, together.
const MOST: usize = 1000;

/// No further request is read while those without an answer have this many bytes.
const REQUEST_BYTES: usize = 32 << 20;

/// No further call starts while this many bytes are not written.
const LINE_BYTES: usize = 16 << 20;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: usize,
    request_bytes: usize,
    lines: usize,
    line_bytes: usize,
}

/// What is on its way; clones share the counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Load(Arc<watch::Sender<Counts>>);

impl Load {
    pub(super) fn asked(&self, bytes: usize) {
        self.0.send_modify(|now| {
            now.requests += 1;
            now.request_bytes += bytes;
        });
    }

    /// A request of this many bytes has its answer, or wants none any more.
    pub(super) fn settled(&self, bytes: usize) {
        self.0.send_modify(|now| {
            now.requests = now.requests.saturating_sub(1);
            now.request_bytes = now.request_bytes.saturating_sub(bytes);
        });
    }

    pub(super) fn queued(&self, bytes: usize) {
        self.0.send_modify(|now| {
            now.lines += 1;
            now.line_bytes += bytes;
        });
    }

    pub(super) fn written(&self, bytes: usize) {
        self.0.send_modify(|now| {
            now.lines = now.lines.saturating_sub(1);
            now.line_bytes = now.line_bytes.saturating_sub(bytes);
        });
    }

    /// Waits until another request may be read.
    pub(super) async fn may_read(&self) {
        let few =
            |now: &Counts| now.requests + now.lines < MOST && now.request_bytes < REQUEST_BYTES;
        // The sender is `self`, so it is there.
        let _ = self.0.subscribe().wait_for(few).await;
    }

    /// Waits until every line is written.
    pub(super) async fn all_written(&self) {
        let _ = self.0.subscribe().wait_for(|now| now.lines == 0).await;
    }

    /// Waits until another call may start.
    pub(super) async fn may_call(&self) {
        let few = |now: &Counts| now.line_bytes < LINE_BYTES;
        let _ = self.0.subscribe().wait_for(few).await;
    }
}
