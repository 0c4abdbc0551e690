//! `--wait`: waiting for another process that writes the same session.

use super::progress::Progress;
use crate::app::present::Failure;
use clap::Args;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long `--wait` waits. Longer than a lease lasts, so that the one a killed process left has run out.
const USUAL: &str = "60";

/// The longest time that can be asked for: a day.
const LONGEST: u64 = 86_400;

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// What a command does about a session that another process writes.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Wait {
    /// While another process writes the session, wait until it is done, but at most this long, such
    /// as `--wait=120`; `--wait` alone is 60 seconds.
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = USUAL,
        value_parser = clap::value_parser!(u64).range(..=LONGEST),
    )]
    wait: Option<u64>,
}

impl Wait {
    /// Does something that needs the session, again and again while another process writes it. On a terminal
    /// it shows who that is.
    ///
    /// # Errors
    /// Those of `attempt`; that the session is busy, with advice, when the time is over.
    pub(super) fn until_free<T>(
        self,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let end = Instant::now() + Duration::from_secs(self.wait.unwrap_or(0));
        let mut shown: Option<(String, Progress)> = None;
        loop {
            let failure = match attempt() {
                Err(failure) if failure.is_busy() => failure,
                done => return done,
            };
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.advise(failure));
            }
            let holder = failure.message();
            if shown.as_ref().is_none_or(|(said, _)| *said != holder) {
                // The line of the holder before is cleared first.
                drop(shown.take());
                let progress = Progress::spinner(format!("waiting: {holder}"));
                shown = Some((holder, progress));
            }
            sleep(left.min(PAUSE));
        }
    }

    /// Says how to wait, or to wait longer.
    fn advise(self, failure: Failure) -> Failure {
        let advice = match self.wait {
            Some(seconds @ 1..) => format!(
                "it was not free for {seconds} s; `--wait={}` waits longer",
                seconds.saturating_mul(10).min(LONGEST)
            ),
            _ => "`--wait` waits until it is free; readers never wait".to_owned(),
        };
        failure.advised(advice)
    }
}
