//! Back-pressure by what is on its way: requests without an answer, and answers that the client has not read.
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
pub(super) struct Flow {
    count: usize,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowCounts {
    pub(super) requests: Flow,
    pub(super) lines: Flow,
}

/// What is on its way; clones share the counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Load(Arc<watch::Sender<FlowCounts>>);

impl Load {
    /// Something of this many bytes came.
    pub(super) fn came(&self, of: fn(&mut FlowCounts) -> &mut Flow, bytes: usize) {
        self.0.send_modify(|now| {
            let flow = of(now);
            flow.count += 1;
            flow.bytes += bytes;
        });
    }

    /// A request has its answer, or wants none any more; a line was written.
    pub(super) fn went(&self, of: fn(&mut FlowCounts) -> &mut Flow, bytes: usize) {
        self.0.send_modify(|now| {
            let flow = of(now);
            flow.count = flow.count.saturating_sub(1);
            flow.bytes = flow.bytes.saturating_sub(bytes);
        });
    }

    /// Waits until another request may be read.
    pub(super) async fn may_read(&self) {
        let few = |now: &FlowCounts| {
            now.requests.count + now.lines.count < MOST && now.requests.bytes < REQUEST_BYTES
        };
        self.wait(few).await;
    }

    /// Waits until every line is written.
    pub(super) async fn all_written(&self) {
        self.wait(|now| now.lines.count == 0).await;
    }

    /// Waits until another call may start.
    pub(super) async fn may_call(&self) {
        self.wait(|now| now.lines.bytes < LINE_BYTES).await;
    }

    async fn wait(&self, until: impl FnMut(&FlowCounts) -> bool) {
        // The sender is `self`, so it is there.
        let _ = self.0.subscribe().wait_for(until).await;
    }
}
