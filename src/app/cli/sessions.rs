//! The one session that a command reads, with a spinner while one loads that takes long.

use super::command::say;
use super::each_session::Opening;
use super::progress::Progress;
use super::read_sessions::{no_part, open_store, or_newest, read};
use super::session_args::SessionsArgs;
use super::typed::take_time;
use super::words::retyped;
use crate::app::present::folders::{files_of, part_of};
use crate::app::present::stores::{self, Access, StoreAddress};
use crate::app::present::{Failure, Result, sessions as opened};
use crate::engine::{Context, ContextBuilder};
use crate::history::Session;
use crate::index::Snapshot;
use crate::tree::Limits;
use crate::tree::seal::Ending;
use crate::tree::source::{ending_of, is_lines_by_name};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the file of a session ends; `None` of anything but a file of lines. Reads it again.
pub(super) fn ending_of_session(name: &str) -> Result<Option<Ending>> {
    let path = Path::new(name);
    if StoreAddress::parse(name).is_some() || !path.is_file() || !is_lines_by_name(path) {
        return Ok(None);
    }
    Ok(Some(ending_of(path)?))
}

pub(super) fn ending_text(ending: Ending) -> &'static str {
    match ending {
        Ending::Sealed => "with a closing line, which fits: nothing is missing\n",
        Ending::LineFeed => {
            "with a line feed; lines could be missing, which `export --seal` would show\n"
        }
        Ending::NoLineFeed => "without a line feed, as if it were still being written\n",
    }
}

/// Opens a session: a file, a directory, a session of a store or of a log, or standard input for `-`. A log of one
/// session is imported in memory. Says what is odd about it.
pub(super) fn open(name: &str, limits: Limits) -> Result<Arc<Session>> {
    if part_of(name).is_some() {
        return open_part(name, limits);
    }
    if let Some(files) = files_of(name, limits)? {
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.path.into()).collect();
        return Err(Failure::several(Path::new(name), &files));
    }
    let progress = Progress::spinner(format!("reading {name}"));
    let read = read(name, limits, None)?;
    drop(progress);
    say(&read.said);
    read.only(name)
}

fn open_part(name: &str, limits: Limits) -> Result<Arc<Session>> {
    let mut opening = Opening::new(limits, false);
    let sources = opening.sources(&[name.to_owned()])?;
    let mut found = None;
    let all = SessionsArgs::default();
    opening.each(&sources, &all, &|_| (), &mut |opened, ()| {
        found.get_or_insert(Arc::clone(&opened.session));
        Ok(())
    })?;
    found.ok_or_else(|| no_part(name))
}

/// Opens a session that was opened before, by its name, and says nothing.
pub(super) fn open_again(name: &str, limits: Limits) -> Result<Arc<Session>> {
    read(name, limits, None)?.only(name)
}

/// Opens a session as [`open`] does, and finds the snapshot at `address`; without one, the working state, or else
/// the newest snapshot.
pub(super) fn open_at(
    name: &str,
    address: Option<&str>,
    limits: Limits,
) -> Result<(Arc<Session>, Arc<Snapshot>)> {
    let session = open(name, limits)?;
    let snapshot = opened::at(&session, address)?;
    Ok((session, snapshot))
}

/// A context that goes on with a copy of a session, from a file or a store, and that writes neither.
pub(super) fn resume(name: &str, limits: Limits, builder: ContextBuilder) -> Result<Context> {
    match StoreAddress::parse(name) {
        Some(address) => {
            let session = address.one()?;
            stores::resume(&open_store(address.store, Access::Read)?, session, builder)
        }
        None => Ok(builder.resume(&*open(name, limits)?)?),
    }
}

/// One session, and one snapshot of it.
#[derive(Args, Debug)]
pub(super) struct SnapshotArgs {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input [default: the newest, as of `show`]; and
    /// maybe a snapshot, such as @c12 or 12.
    #[arg(value_name = "SESSION", num_args = 0..=2)]
    words: Vec<String>,
    /// Which snapshot, such as @t0, @t-2, 12 or latest [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    at: Option<String>,
}

impl SnapshotArgs {
    pub(super) fn open(&self, limits: Limits) -> Result<(Arc<Session>, Arc<Snapshot>)> {
        let (session, at) = self.session(limits)?;
        let snapshot = opened::at(&session, at.as_deref())?;
        Ok((session, snapshot))
    }

    /// The session, which may be without snapshots, and the address.
    pub(super) fn session(&self, limits: Limits) -> Result<(Arc<Session>, Option<String>)> {
        let (names, at) = take_time(&self.words, self.at.as_ref())?;
        match &or_newest(&names, limits)?[..] {
            [name] => Ok((open(name, limits)?, at)),
            names => Err(
                Failure::usage("expected one session, and maybe a snapshot of it")
                    .with_help(retyped(&self.words, names[..1.min(names.len())].to_vec())),
            ),
        }
    }
}
