//! Following what grows: files are looked at in turns, until the program is interrupted.
//!
//! A file whose size and time of change are what they were is not read. One that cannot be read is tried again as long as it
//! changes.
//! This file must not know what is done with what was read.

use super::command::say;
use super::interrupt::leave;
use crate::app::present::folders::{LogSource, state_of};
use crate::app::present::{Exit, Failure, Result, printable};
use crate::logs::unique;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The time between two looks at the files. It is longer if looking took longer.
const PAUSE: Duration = Duration::from_millis(500);

const TICK: Duration = Duration::from_millis(50);

/// A log that cannot be read is given up if it does not change for this long.
const PATIENCE: Duration = Duration::from_secs(2);

/// The same for a log whose lines are valid JSON, but of which nothing is understood yet.
const LONG_PATIENCE: Duration = Duration::from_secs(30);

/// Calls `turn` until the program is interrupted, until no process reads what it prints, or until a turn returns an exit code,
/// since all that was followed has been given up.
pub(super) fn in_turns(mut turn: impl FnMut(&AtomicBool) -> Result<Option<Exit>>) -> Result<Exit> {
    let stopped = leave();
    while !stopped.load(Ordering::Relaxed) {
        let began = Instant::now();
        if let Some(exit) = turn(stopped)? {
            return Err(Failure::plain(exit, "none of the logs can be followed"));
        }
        let until = Instant::now() + PAUSE.max(began.elapsed());
        while Instant::now() < until && !stopped.load(Ordering::Relaxed) {
            if output_closes() {
                return Ok(Exit::Ok);
            }
        }
    }
    Ok(Exit::Ok)
}

/// Waits for a moment, or until the other end of standard output is closed, which only writing shows otherwise. Returns
/// whether it is.
#[cfg(target_os = "linux")]
fn output_closes() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: TICK.subsec_nanos().into(),
    };
    let output = std::io::stdout();
    let mut output = [PollFd::new(&output, PollFlags::empty())];
    match poll(&mut output, Some(&tick)) {
        Ok(_) => output[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR),
        Err(_) => {
            std::thread::sleep(TICK);
            false
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn output_closes() -> bool {
    std::thread::sleep(TICK);
    false
}

#[derive(Default)]
struct Seen {
    state: Option<(u64, SystemTime)>,
    stem: String,
    /// What was said of it last, so that it is said once.
    failure: String,
    /// If it could not be read: the exit code, and when it is given up unless it changes.
    given_up: Option<(Exit, Instant)>,
    /// Whether it is read again although it has not changed, since what failed was not the log.
    again: bool,
}

/// Files that are followed, and what was seen of them.
#[derive(Default)]
pub(super) struct FollowedFiles {
    seen: BTreeMap<String, Seen>,
    stems: HashSet<String>,
    /// Whether every file was looked at once.
    begun: bool,
}

impl FollowedFiles {
    /// Ends a turn. Returns the exit code if there are files and all of them have been given up.
    pub(super) fn end_turn(&mut self) -> Option<Exit> {
        self.begun = true;
        let now = Instant::now();
        let all = self.seen.values().map(|seen| seen.given_up);
        let all: Option<Vec<Exit>> = all
            .map(|given_up| Some(given_up.filter(|(_, at)| *at <= now)?.0))
            .collect();
        all?.first().copied()
    }

    /// What `read` makes of a file that has changed; it gets the file, and whether every file was looked at once. `None` for a file
    /// that has not changed, and for one that cannot be read now, after a message that says why.
    ///
    /// # Errors
    /// A file that is named is missing from the first.
    pub(super) fn look<T>(
        &mut self,
        mut file: LogSource,
        read: impl FnOnce(&LogSource, bool) -> Result<T>,
    ) -> Result<Option<T>> {
        let state = match state_of(Path::new(&file.path)) {
            Ok(state) => state,
            // Files come and go below a directory.
            Err(_) if self.begun || file.is_listed => return Ok(None),
            // It says what is wrong with a file that is missing from the first.
            Err(_) => return read(&file, false).map(Some),
        };
        let stems = &mut self.stems;
        let seen = self.seen.entry(file.path.clone()).or_insert_with(|| Seen {
            stem: unique(&file.stem, stems),
            ..Seen::default()
        });
        let has_changed = seen.state.replace(state) != Some(state);
        if state.0 == 0 {
            // A log that was emptied is one that has not begun.
            seen.given_up = None;
            return Ok(None);
        }
        if !has_changed && !seen.again {
            return Ok(None);
        }
        file.stem.clone_from(&seen.stem);
        match read(&file, self.begun) {
            Ok(done) => {
                (seen.given_up, seen.again) = (None, false);
                seen.failure.clear();
                Ok(Some(done))
            }
            Err(failure) => {
                // A file that is written as a whole may be read in between.
                let text = format!("{}: {failure}\n", printable(&file.path));
                if seen.failure != text {
                    say(&text);
                }
                seen.failure = text;
                seen.again = failure.exit() == Exit::Io;
                let patience = patience(&file.path, &failure);
                if has_changed || seen.given_up.is_none() || patience.is_none() {
                    seen.given_up = patience.map(|time| (failure.exit(), Instant::now() + time));
                }
                Ok(None)
            }
        }
    }
}

/// How long a log that cannot be read may stand still. `None` is without a limit: another process writes the session,
/// or the first line is not whole yet.
fn patience(path: &str, failure: &Failure) -> Option<Duration> {
    let mut line = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| BufReader::new(file).read_until(b'\n', &mut line));
    let first = serde_json::from_slice::<IgnoredAny>(&line);
    let is_begun = read.is_ok() && !line.ends_with(b"\n");
    match (failure, first) {
        _ if failure.is_busy() => None,
        (_, Err(error)) if is_begun && error.is_eof() => None,
        // The first line is valid JSON, so its faults are those of the whole log.
        (Failure::Input(files, _), Ok(_))
            if files
                .iter()
                .flat_map(|(_, error)| &error.faults)
                .all(|fault| fault.line == 1) =>
        {
            Some(LONG_PATIENCE)
        }
        _ => Some(PATIENCE),
    }
}
