//! The sessions that commands read, with a spinner while one loads that takes long.

use super::command::say;
use super::input;
use super::options::Limits;
use super::progress::Progress;
use super::words::quoted;
use crate::history::Session;
use crate::index::Snapshot;
use crate::present::{Failure, sessions as opened};
use crate::tree::source::{read_all, read_files, sessions_in};
use clap::Args;
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// The session of a command that reads one.
#[derive(Args, Debug)]
pub(super) struct SessionArgs {
    /// The session: a file, a directory, or `-` for standard input.
    session: String,
    #[command(flatten)]
    limits: Limits,
}

impl SessionArgs {
    /// The path of the session.
    pub(super) fn name(&self) -> &str {
        &self.session
    }

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

/// Opens a session: a file, a directory, or standard input for `-`. Says what is odd about it.
///
/// # Errors
/// A missing, unreadable or invalid input.
pub(super) fn open(name: &str, limits: &Limits) -> Result<Session, Failure> {
    let progress = Progress::spinner(format!("reading {name}"));
    let session = read(name, limits)?;
    drop(progress);
    say(&opened::remarks(&session));
    Ok(session)
}

fn read(name: &str, limits: &Limits) -> Result<Session, Failure> {
    let session = if name == input::STDIN {
        let path = input::name(name);
        let bytes = read_all(std::io::stdin().lock(), &path, limits.source());
        let documents = match bytes {
            Ok(bytes) if bytes.trim_ascii().is_empty() => Ok(Vec::new()),
            bytes => read_files([(bytes, path.clone())]),
        };
        opened::build(documents, path)
    } else {
        opened::open(Path::new(name), limits.source())
    };
    session.map_err(|failure| input::explain_missing(failure, name))
}

/// The sessions that names mean: a directory of sessions is replaced by its files. Also whether
/// there was such a directory.
///
/// # Errors
/// A directory that cannot be read.
pub(super) fn expand(names: &[String]) -> Result<(Vec<String>, bool), Failure> {
    let mut all = Vec::new();
    let mut several = false;
    for name in names {
        match sessions_in(Path::new(name))? {
            Some(files) => {
                several = true;
                all.extend(files.iter().map(|file| file.display().to_string()));
            }
            None => all.push(name.clone()),
        }
    }
    Ok((all, several))
}

/// Says which files of a directory are sessions, if the failure is that of another one in it.
pub(super) fn explain_directory(failure: Failure, names: &[String]) -> Failure {
    let text = failure.to_string();
    let endings = [".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"];
    for name in names {
        let Ok(Some(files)) = sessions_in(Path::new(name)) else {
            continue;
        };
        let files: Vec<String> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let is_lines = |file: &&String| endings.iter().any(|ending| file.ends_with(ending));
        let mut others = files.iter().filter(|file| !is_lines(file));
        if !others.any(|other| text.contains(other.as_str())) {
            continue;
        }
        let has = |ending: &&&str| files.iter().any(|file| file.ends_with(**ending));
        let folder = name.trim_end_matches('/');
        let globs = endings.iter().filter(has);
        let globs: Vec<String> = globs
            .map(|end| format!("{}/*{end}", quoted(folder)))
            .collect();
        return failure.with_help(format!("name the sessions: {}", globs.join(" ")));
    }
    failure
}

/// Opens several sessions in parallel. Of several failures the first in order is returned.
///
/// # Errors
/// As [`open`]; standard input named twice.
pub(super) fn open_all(names: &[String], limits: &Limits) -> Result<Vec<Session>, Failure> {
    if let [name] = names {
        return Ok(vec![open(name, limits)?]);
    }
    if names.iter().filter(|name| *name == input::STDIN).count() > 1 {
        return Err(Failure::usage("standard input can be read once only")
            .with_help("give `-` once, and the other sessions as files"));
    }
    let progress = Progress::bar(names.len());
    let opened: Vec<Result<Session, Failure>> = names
        .par_iter()
        .map(|name| {
            let session = read(name, limits);
            progress.step();
            session
        })
        .collect();
    drop(progress);
    let sessions = opened.into_iter().collect::<Result<Vec<_>, _>>()?;
    // Each remark once, however many sessions it is true of.
    let mut said = Vec::new();
    for session in &sessions {
        let remarks = opened::remarks(session);
        if !said.contains(&remarks) {
            say(&remarks);
            said.push(remarks);
        }
    }
    Ok(sessions)
}
