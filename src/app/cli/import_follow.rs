//! `pactql import --follow`: logs are read again as they grow.
//!
//! The files are looked at in turns. One whose size and time of change are what they were is not
//! read; one that has changed is read as a whole, because only the whole says which branch of it is the
//! newest, and the store gets what is new.

use super::command::say;
use super::import_read::{File, Inputs, Named};
use super::import_store::{Brought, Into};
use super::interrupt::leave;
use crate::app::present::{Exit, Failure, counted, printable};
use crate::logs::unique;
use crate::store::Store;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The time between two looks at the files. It is longer if looking took longer.
const PAUSE: Duration = Duration::from_millis(500);

/// How often the stop flag is polled.
const TICK: Duration = Duration::from_millis(50);

/// A file as it was read last.
#[derive(Default)]
struct Seen {
    state: Option<(u64, SystemTime)>,
    /// What its sessions are named after.
    stem: String,
    /// What was said of it last, so that it is said once.
    failure: String,
}

/// Follows logs until the program is interrupted.
///
/// # Errors
/// An input that is not a file or directory; the store's. What is wrong with a log is said, and the others
/// are followed.
pub(super) fn follow(
    inputs: &Inputs<'_>,
    words: &[String],
    into: &Into<'_>,
) -> Result<Exit, Failure> {
    leave();
    let stop = Arc::new(AtomicBool::new(false));
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let store = into.open()?;
    let mut followed = Followed::default();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        for file in inputs.files(words)? {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            followed.look(file, inputs, into, &store)?;
        }
        followed.begun = true;
        let pause = PAUSE.max(began.elapsed());
        let until = Instant::now() + pause;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
        }
    }
    say(&followed.brought.to_string());
    Ok(Exit::Ok)
}

#[derive(Default)]
struct Followed {
    seen: HashMap<String, Seen>,
    stems: HashSet<String>,
    brought: Brought,
    /// Whether every file was looked at once.
    begun: bool,
}

impl Followed {
    /// Reads a file that has changed.
    fn look(
        &mut self,
        file: File,
        inputs: &Inputs<'_>,
        into: &Into<'_>,
        store: &Store,
    ) -> Result<(), Failure> {
        let about =
            std::fs::metadata(&file.path).and_then(|about| Ok((about.len(), about.modified()?)));
        let state = match about {
            Ok(state) => state,
            // Files come and go below a directory.
            Err(_) if self.begun => return Ok(()),
            // It says what is wrong with a file that is missing from the first.
            Err(_) => return inputs.read_file(&file.path, &[]).map(|_| ()),
        };
        let stems = &mut self.stems;
        let seen = self.seen.entry(file.path.clone()).or_insert_with(|| Seen {
            stem: unique(&file.stem, stems),
            ..Seen::default()
        });
        if seen.state == Some(state) || state.0 == 0 {
            return Ok(());
        }
        seen.state = Some(state);
        let file = File {
            stem: seen.stem.clone(),
            ..file
        };
        match bring(&file, inputs, into, store) {
            Ok(done) => {
                seen.failure.clear();
                if done.snapshots > 0 || !done.renamed.is_empty() {
                    say(&format!(
                        "{}: {} more\n",
                        printable(&file.stem),
                        counted(done.snapshots as u64, "snapshot")
                    ));
                }
                self.brought.add(done);
            }
            Err(failure) => {
                // A file that is written as a whole may be read in between.
                let text = format!("{}: {failure}\n", printable(&file.path));
                if seen.failure != text {
                    say(&text);
                }
                seen.failure = text;
            }
        }
        Ok(())
    }
}

/// Brings the sessions of a file into the store.
fn bring(
    file: &File,
    inputs: &Inputs<'_>,
    into: &Into<'_>,
    store: &Store,
) -> Result<crate::store::LogImport, Failure> {
    let (made, _) = inputs.read_file(&file.path, &[])?;
    let mut sessions: Vec<Named> = Vec::new();
    inputs.name(file, Some(0), made, &mut sessions, &mut HashSet::new());
    into.name(&mut sessions)?;
    into.import_log(store, sessions)
}
