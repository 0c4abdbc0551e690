//! `pactql export`: snapshots in canonical bytes, and sessions of stores as files.

use super::command::{Invocation, Run, stream};
use super::input;
use super::progress::Progress;
use super::sessions::{SessionArgs, open_store};
use super::words::quoted;
use crate::app::present::stores::{Access, Address, none_of};
use crate::app::present::{Exit, Failure, counted};
use crate::history::Session;
use crate::logs::file::write_kept;
use crate::logs::{write_document, write_session};
use crate::store::Store;
use crate::tree::seal::Sealing;
use clap::Args;
use std::io::{self, Write};
use std::path::{Component, Path};

/// Write snapshots as canonical documents, or sessions as files.
///
/// One snapshot is one JSON document. `--jsonl` writes the whole session, one snapshot a line: as
/// its difference to the previous snapshot if that is shorter. Exporting an export gives the same
/// bytes. A session of a store is written whole without `--jsonl` too, as the file that it was imported
/// from; `STORE -o DIR` writes each to a file with its name.
#[derive(Args, Debug)]
pub(super) struct Export {
    #[command(flatten)]
    session: SessionArgs,
    /// Which snapshot, such as @t0, @t-2 or @c12 [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jsonl")]
    #[arg(allow_hyphen_values = true)]
    at: Option<String>,
    /// Write the whole session, one snapshot a line.
    #[arg(long)]
    jsonl: bool,
    /// With --jsonl, or of a store: write every snapshot as a whole document.
    #[arg(long, conflicts_with = "at")]
    full: bool,
    /// With --jsonl, or of a store: end with a line that has the number of the lines before it and their hash,
    /// so that a file that was cut is noticed.
    #[arg(long, conflicts_with = "at")]
    seal: bool,
    /// The file to write, or the directory for several sessions [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
}

impl Run for Export {
    fn run(&self, _: &Invocation) -> Result<Exit, Failure> {
        let output = self.output.as_deref().filter(|path| *path != input::STDIN);
        let address = Address::of(self.session.name());
        if self.full && !self.jsonl && address.is_none() {
            return Err(Failure::usage("`--full` needs `--jsonl`")
                .with_help("give both, for every snapshot as a whole document"));
        }
        if self.seal && !self.jsonl && address.is_none() {
            return Err(Failure::usage("`--seal` needs `--jsonl`")
                .with_help("give both, for the whole session with a closing line"));
        }
        if let Some(path) = output.filter(|path| Address::of(path).is_some()) {
            return Err(to_store(self.session.name(), path, self.at.is_some()));
        }
        if let (Some(address), Some(directory)) = (address.filter(|a| a.is_several()), output) {
            return self.all(address, directory);
        }
        if let Some(path) = output {
            input::check_output(path, &[self.session.name()], self.force)?;
        }
        let whole = self.jsonl || (address.is_some() && self.at.is_none());
        let (session, snapshot) = if whole {
            (self.session.open()?, None)
        } else {
            let (session, snapshot) = self.session.open_at(self.at.as_deref())?;
            (session, Some(snapshot))
        };
        let Some(snapshot) = snapshot else {
            let kept = match address {
                Some(address) => kept(&open_store(address.store, Access::Read)?, address.one()?)?,
                None => session.kept().map(str::to_owned),
            };
            let write = self.writer(&session, kept)?;
            return match output {
                Some(path) => input::write(path, write).map(|()| Exit::Ok),
                None => stream(write),
            };
        };
        let write = |out: &mut dyn Write| write_document(&snapshot, out);
        match output {
            Some(path) => input::write(path, write).map(|()| Exit::Ok),
            None => stream(write),
        }
    }
}

impl Export {
    /// What writes a whole session.
    fn writer(
        &self,
        session: &Session,
        kept: Option<String>,
    ) -> Result<impl Fn(&mut dyn Write) -> io::Result<()>, Failure> {
        let (history, full, seal) = (session.history(), self.full, self.seal);
        history.fetch_all()?;
        Ok(move |out: &mut dyn Write| {
            let working = history.working().map(|working| &**working);
            let write = |out: &mut dyn Write| {
                write_session(history.committed(), working, full, out)?;
                // What a writer kept is no snapshot, but a copy without it would lose references.
                kept.as_ref().map_or(Ok(()), |kept| write_kept(kept, out))
            };
            if !seal {
                return write(out);
            }
            let mut sealing = Sealing::new(out);
            write(&mut sealing)?;
            sealing.finish()
        })
    }

    /// Writes sessions of a store to the files of a directory, which is made if it is missing.
    fn all(&self, address: Address<'_>, directory: &str) -> Result<Exit, Failure> {
        if self.at.is_some() {
            return Err(Failure::usage("`--at` takes one session")
                .with_help("`STORE -o DIR` writes whole sessions"));
        }
        let store = open_store(address.store, Access::Read)?;
        let found = store.sessions(address.glob())?;
        if found.is_empty() {
            return Err(Failure::plain(Exit::Missing, none_of(address)));
        }
        if Path::new(directory)
            .extension()
            .is_some_and(|end| end == "jsonl")
        {
            return Err(to_directory(found.len() as u64, directory));
        }
        let mut files = Vec::new();
        for info in &found {
            let file = file_of(directory, &info.name)?;
            input::check_output(&file, &[], self.force)?;
            files.push(file);
        }
        let progress = Progress::bar(found.len());
        for (info, file) in found.iter().zip(&files) {
            let session = store.session(&info.name)?;
            let write = self.writer(&session, kept(&store, &info.name)?)?;
            if let Some(parent) = Path::new(file).parent() {
                let name = parent.display().to_string();
                std::fs::create_dir_all(parent).map_err(|error| Failure::output(&name, &error))?;
            }
            input::write(file, write)?;
            progress.step();
        }
        Ok(Exit::Ok)
    }
}

/// The failure for several sessions where a file is named.
fn to_directory(sessions: u64, file: &str) -> Failure {
    let sessions = counted(sessions, "session");
    let message = format!("expected a directory for {sessions}, and `{file}` is named as a file");
    Failure::usage(message).with_help("`-o DIR` writes each to a file with its name")
}

/// The failure for a store where a file is expected.
fn to_store(session: &str, output: &str, at: bool) -> Failure {
    let failure = Failure::usage(format!("`export` writes files, and `{output}` is a store"));
    let (session, output) = (quoted(session), quoted(output));
    if at {
        failure.with_help(format!(
            "pactql edit fork SESSION ADDRESS {output} begins a session there"
        ))
    } else {
        failure.with_help(format!("pactql import {session} -o {output}"))
    }
}

/// What a context keeps of a session of a store, as JSON text.
fn kept(store: &Store, name: &str) -> Result<Option<String>, Failure> {
    let kept = store.kept(name)?;
    let kept = kept.map(|kept| serde_json::to_string(&kept)).transpose();
    kept.map_err(|error| Failure::internal(error.to_string()))
}

/// The file of a session in a directory. A `/` in its name makes directories.
///
/// # Errors
/// The name leads out of the directory, or is that of no file.
fn file_of(directory: &str, name: &str) -> Result<String, Failure> {
    let file = format!("{name}.jsonl");
    let inside = Path::new(&file).components();
    let mut inside = inside.map(|part| matches!(part, Component::Normal(_)));
    if !inside.all(|inside| inside) || name.is_empty() || name.ends_with('/') {
        return Err(Failure::usage(format!(
            "the session `{name}` has a name that no file can have"
        ))
        .with_help("export it with a file of your choice, or rename it"));
    }
    Ok(Path::new(directory)
        .join(file)
        .to_string_lossy()
        .into_owned())
}
