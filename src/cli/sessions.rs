//! The sessions that commands read, with a spinner while a large one loads.

use super::input;
use super::options::Limits;
use crate::history::Session;
use crate::index::Snapshot;
use crate::present::{Failure, sessions as opened};
use crate::tree::source::read_stream;
use clap::Args;
use indicatif::ProgressBar;
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The session of a command that reads one.
#[derive(Args, Debug)]
pub(super) struct SessionArgs {
    /// The session: a file, a directory, or `-` for standard input.
    session: String,
    #[command(flatten)]
    limits: Limits,
}

impl SessionArgs {
    /// Opens the session.
    ///
    /// # Errors
    /// As [`open`].
    pub(super) fn open(&self) -> Result<Session, Failure> {
        open(&self.session, &self.limits)
    }

    /// Opens the session and finds the snapshot at `address`; without one, the working state,
    /// or else the newest snapshot.
    ///
    /// # Errors
    /// As [`open`]; an address that cannot be read, or that the session has no snapshot at.
    pub(super) fn open_at(
        &self,
        address: Option<&str>,
    ) -> Result<(Session, Arc<Snapshot>), Failure> {
        let session = self.open()?;
        let snapshot = opened::at(&session, address)?;
        Ok((session, snapshot))
    }
}

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

/// Opens several sessions in parallel. Of several failures the first in order is returned.
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
