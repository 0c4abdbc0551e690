//! `pactql export`: snapshots in canonical bytes.

use super::command::{Run, stream};
use super::input;
use super::options::{Color, Messages};
use super::sessions::SessionArgs;
use crate::files::write_kept;
use crate::interop::{write_document, write_session};
use crate::present::{Exit, Failure};
use clap::Args;
use std::io::Write;

/// Write snapshots as canonical documents.
///
/// One snapshot is one JSON document. `--jsonl` writes the whole session, one snapshot a line: as
/// its difference to the previous snapshot if that is shorter. Exporting an export gives the same
/// bytes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql export session.jsonl --at @c3 > snapshot.json
  pactql export snapshots/ --jsonl -o session.jsonl
  pactql export session.jsonl --jsonl --full | gzip > full.jsonl.gz")]
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
    /// With --jsonl: write every snapshot as a whole document.
    #[arg(long, requires = "jsonl")]
    full: bool,
    /// The file to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    messages: Messages,
}

impl Run for Export {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let output = self.output.as_deref().filter(|path| *path != input::STDIN);
        if let Some(path) = output {
            input::check_output(path, &[self.session.name()], self.force)?;
        }
        let (session, snapshot) = if self.jsonl {
            (self.session.open()?, None)
        } else {
            let (session, snapshot) = self.session.open_at(self.at.as_deref())?;
            (session, Some(snapshot))
        };
        let history = session.history();
        if snapshot.is_none() {
            history.fetch_all()?;
        }
        let write = |out: &mut dyn Write| match &snapshot {
            Some(snapshot) => write_document(snapshot, out),
            None => {
                let working = history.working().map(|working| &**working);
                write_session(history.committed(), working, self.full, out)?;
                // What a writer kept is no snapshot, but a copy without it would lose references.
                session.kept().map_or(Ok(()), |kept| write_kept(kept, out))
            }
        };
        match output {
            Some(path) => input::write(path, write).map(|()| Exit::Ok),
            None => stream(write),
        }
    }
}
