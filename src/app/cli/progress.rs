//! Progress on standard error, for work that takes long.
//!
//! Nothing is shown in the first half second, nor if standard error is not a terminal that can
//! move its cursor.

use super::options::is_dumb;
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(500);

const TICK: Duration = Duration::from_millis(100);

pub(super) struct Progress {
    bar: ProgressBar,
    /// Shows the bar when its time has come. Dropping the sender ends the thread.
    timer: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub(super) fn bar(steps: usize) -> Self {
        Self::start(ProgressBar::new(steps as u64))
    }

    pub(super) fn spinner(message: impl Into<String>) -> Self {
        Self::start(ProgressBar::new_spinner().with_message(message.into()))
    }

    fn start(bar: ProgressBar) -> Self {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let visible = std::io::stderr().is_terminal() && !is_dumb();
        let (stop, stopped) = mpsc::channel();
        let shown = bar.clone();
        let wait = move || {
            if stopped.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        };
        let thread = visible.then(|| thread::Builder::new().spawn(wait).ok());
        let timer = thread.flatten().map(|thread| (stop, thread));
        Self { bar, timer }
    }

    pub(super) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.timer.take() {
            drop(stop);
            // It only waits, so it cannot have failed in a way to report.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}
