//! `pactql export`: snapshots in canonical bytes.

use super::options::{Limits, Messages};
use super::{input, sessions};
use crate::interop::{write_document, write_session};
use crate::present::{Exit, Failure};
use clap::Args;
use std::io::{self, Write};

/// Write snapshots as canonical documents.
///
/// One snapshot is one JSON document; `--jsonl` writes the whole session, one snapshot a line, as
/// the difference to the one before where that is shorter. Exporting what was exported gives the
/// same bytes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql export session.jsonl --at @c3 > snapshot.json
  pactql export snapshots/ --jsonl -o session.jsonl
  pactql export session.jsonl --jsonl --full | gzip > full.jsonl.gz")]
pub(super) struct Export {
    /// The session: a file, a directory, or `-`.
    session: String,
    /// Which snapshot, such as @t0, @t-2 or @c12; without it the working state, else the newest.
    #[arg(
        long,
        value_name = "ADDRESS",
        allow_hyphen_values = true,
        conflicts_with = "jsonl"
    )]
    at: Option<String>,
    /// Write the whole session, one snapshot a line.
    #[arg(long)]
    jsonl: bool,
    /// With --jsonl: write whole documents throughout.
    #[arg(long, requires = "jsonl")]
    full: bool,
    /// The file to write; standard output without it.
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    #[command(flatten)]
    messages: Messages,
    #[command(flatten)]
    limits: Limits,
}

impl Export {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.messages.json()
    }

    /// Runs the command.
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let session = sessions::open(&self.session, &self.limits)?;
        let snapshot = match self.jsonl {
            true => None,
            false => Some(sessions::at(&session, self.at.as_deref())?),
        };
        let history = session.history();
        let write = |out: &mut dyn Write| match &snapshot {
            Some(snapshot) => write_document(snapshot, out),
            None => {
                let working = history.working().map(|working| &**working);
                write_session(history.committed(), working, self.full, out)
            }
        };
        match self.output.as_deref().filter(|path| *path != "-") {
            Some(path) => input::write(path, write)?,
            None => {
                let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
                write(&mut out)?;
                out.flush()?;
            }
        }
        Ok(Exit::Ok)
    }
}
