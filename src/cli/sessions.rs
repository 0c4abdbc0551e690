//! Opening sessions, with a spinner where that takes long.

use super::input;
use super::options::Limits;
use crate::history::Session;
use crate::present::Failure;
use crate::present::sessions as opened;
use crate::tree::source::read_stream;
use indicatif::ProgressBar;
use rayon::prelude::*;
use std::path::Path;
use std::time::Duration;

pub(super) use crate::present::sessions::{at, place};

/// Opens a session: a file, a directory, or standard input for `-`.
///
/// # Errors
/// A missing, unreadable or invalid input.
pub(super) fn open(name: &str, limits: &Limits) -> Result<Session, Failure> {
    let path = input::name(name);
    if name == input::STDIN {
        let documents = read_stream(std::io::stdin().lock(), &path, limits.source());
        return opened::build(documents, path);
    }
    let spinner = ProgressBar::new_spinner().with_message(format!("reading {name}"));
    if path.metadata().is_ok_and(|data| data.len() > opened::LARGE) {
        spinner.enable_steady_tick(Duration::from_millis(100));
    }
    let session = opened::open(Path::new(name), limits.source());
    spinner.finish_and_clear();
    session
}

/// Opens several sessions, on several threads. The first failure in their order is told.
///
/// # Errors
/// As [`open`]; standard input named twice.
pub(super) fn open_all(names: &[String], limits: &Limits) -> Result<Vec<Session>, Failure> {
    if names.iter().filter(|name| *name == input::STDIN).count() > 1 {
        return Err(Failure::usage("standard input can be read once only"));
    }
    let bar = ProgressBar::new(names.len() as u64);
    let opened: Vec<Result<Session, Failure>> = names
        .par_iter()
        .map(|name| {
            let session = open(name, limits);
            bar.inc(1);
            session
        })
        .collect();
    bar.finish_and_clear();
    opened.into_iter().collect()
}
