//! Copies of stores as Parquet files: `export --parquet`, and `import` of such a directory.

use super::command::say;
use super::inspected::first_of_day;
use super::options::Messages;
use super::sessions::open_store;
use super::words::quoted;
use crate::app::present::stores::{Access, Address};
use crate::app::present::{Exit, Failure};
use crate::store::Store;
#[cfg(feature = "parquet")]
use crate::store::{ParquetExport, ParquetExported};
use clap::Args;
use std::path::Path;

/// Where a copy is written, and of what.
#[derive(Args, Debug)]
pub(super) struct Copying {
    /// Copy a store to the Parquet files of this directory: its commits, and nothing of working states. Of a
    /// directory that has a copy, what is new is added.
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Copies for engines that scan"
    )]
    #[arg(conflicts_with_all = ["at", "jsonl", "full", "seal", "output", "force"])]
    parquet: Option<String>,
    /// Only sessions with a newest commit since then: a date, or a time.
    #[arg(long, value_name = "TIME", value_parser = first_of_day, requires = "parquet")]
    #[arg(help_heading = "Copies for engines that scan")]
    since: Option<i64>,
    /// In how many parts the sessions of a new copy are, each a directory of its own [default: 256].
    #[arg(long, value_name = "N", value_parser = buckets)]
    #[arg(requires = "parquet", help_heading = "Copies for engines that scan")]
    buckets: Option<u32>,
}

fn buckets(text: &str) -> Result<u32, String> {
    let buckets = text
        .parse()
        .ok()
        .filter(|buckets| (1..=65_536).contains(buckets));
    buckets.ok_or_else(|| "expected a number from 1 to 65536".to_owned())
}

impl Copying {
    /// The directory, if a copy is wanted.
    pub(super) fn directory(&self) -> Option<&str> {
        self.parquet.as_deref()
    }

    /// Writes the copy of a store, or what it lacks, and says what was written.
    pub(super) fn run(
        &self,
        word: &str,
        directory: &str,
        messages: &Messages,
    ) -> Result<Exit, Failure> {
        let Some(address) = Address::of(word).filter(|address| address.is_several()) else {
            let message = format!("`--parquet` copies a store, and `{word}` is not one");
            return Err(Failure::usage(message).with_help(format!(
                "pactql export STORE --parquet {}, of a store such as agents.db, or \"agents.db#support-*\"",
                quoted(directory)
            )));
        };
        let store = open_store(address.store, Access::Read)?;
        say(&self.export(&store, directory, address.glob(), messages.json())?);
        Ok(Exit::Ok)
    }

    #[cfg(feature = "parquet")]
    fn export(
        &self,
        store: &Store,
        directory: &str,
        glob: &str,
        json: bool,
    ) -> Result<String, Failure> {
        let mut what = ParquetExport::default().sessions(glob);
        if let Some(time) = self.since {
            what = what.since_ns(time);
        }
        if let Some(buckets) = self.buckets {
            what = what.buckets(buckets);
        }
        let done = store.export_parquet(directory, &what)?;
        Ok(said(&done, json))
    }

    #[cfg(not(feature = "parquet"))]
    fn export(&self, _: &Store, _: &str, _: &str, _: bool) -> Result<String, Failure> {
        Err(absent())
    }
}

/// What is said of an export.
#[cfg(feature = "parquet")]
fn said(done: &ParquetExported, json: bool) -> String {
    use crate::app::present::counted;
    if json {
        format!(
            "{}\n",
            serde_json::json!({
                "sessions": done.sessions,
                "snapshots": done.snapshots,
                "new_units": done.units,
                "buckets_written": done.buckets,
                "bytes_written": done.bytes,
            })
        )
    } else {
        format!(
            "the copy has {}, {}; wrote {} of units to {}\n",
            counted(done.sessions, "session"),
            counted(done.snapshots, "snapshot"),
            counted(done.units, "new version"),
            counted(done.buckets, "bucket")
        )
    }
}

#[cfg(not(feature = "parquet"))]
fn absent() -> Failure {
    Failure::usage("this program was built without Parquet")
        .with_help("build it with `--features parquet`")
}

/// Whether a directory is a copy.
pub(super) fn is_copy(directory: &str) -> bool {
    Path::new(directory)
        .join("_pactql")
        .join("copy.json")
        .is_file()
}

/// Inserts the sessions of a copy into a store. Returns how many, and their snapshots.
#[cfg(feature = "parquet")]
pub(super) fn import(directory: &str, store: &Store) -> Result<(usize, usize), Failure> {
    let done = store.import_parquet(directory)?;
    let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Ok((count(done.sessions), count(done.snapshots)))
}

#[cfg(not(feature = "parquet"))]
pub(super) fn import(_: &str, _: &Store) -> Result<(usize, usize), Failure> {
    Err(absent())
}
