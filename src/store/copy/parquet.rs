//! Copies of stores as Parquet files, and stores out of such copies (STORE §2).

use crate::store::Store;
use crate::store::copy::{export, import};
use std::path::Path;

use crate::support::diag::Error;

/// What [`Store::export_parquet`] copies.
///
/// ```
/// use pactql::store::ParquetExport;
/// let support = ParquetExport::default().sessions("support-*").buckets(16);
/// assert_ne!(support, ParquetExport::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ParquetExport {
    sessions: String,
    since_ns: Option<i64>,
    buckets: Option<u32>,
}

impl ParquetExport {
    /// Only sessions whose name matches this pattern, in which `*` is any text without `/`.
    pub fn sessions(mut self, glob: impl Into<String>) -> Self {
        self.sessions = glob.into();
        self
    }

    /// Only sessions whose newest commit was made at or after this time, in nanoseconds since 1970; of those all
    /// history.
    pub fn since_ns(mut self, time: i64) -> Self {
        self.since_ns = Some(time);
        self
    }

    /// The number of buckets of a new copy, from 1 to 65,536; 256 by default. A copy keeps its number.
    pub fn buckets(mut self, buckets: u32) -> Self {
        self.buckets = Some(buckets);
        self
    }
}

/// What [`Store::export_parquet`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetExported {
    /// Sessions that the copy has now.
    pub sessions: u64,
    /// Snapshots that the copy has now.
    pub snapshots: u64,
    /// Versions of units that were added, once for each session that places them.
    pub units: u64,
    /// Buckets that were written.
    pub buckets: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

/// What [`Store::import_parquet`] brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetImported {
    /// Sessions.
    pub sessions: u64,
    /// Their snapshots.
    pub snapshots: u64,
}

impl Store {
    /// Copies closed history to the Parquet files of a directory, as it is at one moment: commits, attempts,
    /// references; working states are left out. In a directory that has a copy already, what is new is added. A file
    /// gets its name when it is whole, and an export that was ended early is mended by the next. The same
    /// store gives the same files in a new directory.
    ///
    /// Linear in the sessions and snapshots, and in the units that are new; the memory of a few row groups.
    ///
    /// # Errors
    /// The directory has other files, or a copy with other settings, or another program writes it; those of the
    /// database and of the file system.
    pub fn export_parquet(
        &self,
        directory: impl AsRef<Path>,
        what: &ParquetExport,
    ) -> Result<ParquetExported, Error> {
        let options = export::ExportOptions {
            sessions: what.sessions.clone(),
            since_ns: what.since_ns,
            buckets: what.buckets,
        };
        let root = directory.as_ref();
        let done = self
            .core
            .read(|database| export::export(database, root, &options))?;
        Ok(ParquetExported {
            sessions: done.sessions,
            snapshots: done.snapshots,
            units: done.units,
            buckets: done.written,
            bytes: done.bytes,
        })
    }

    /// Inserts the sessions of a copy, with their names, in one transaction. Their snapshots have the canonical
    /// bytes that were exported, and every unit and every chain of hashes is checked. Linear in the copy.
    ///
    /// # Errors
    /// `E_SESSION_EXISTS`; the directory is no copy, or it was altered, or an export to it was ended early;
    /// those of the database. The store is as it was then.
    pub fn import_parquet(&self, directory: impl AsRef<Path>) -> Result<ParquetImported, Error> {
        let root = directory.as_ref();
        let done = self.core.write(|database| import::import(database, root))?;
        Ok(ParquetImported {
            sessions: done.sessions,
            snapshots: done.snapshots,
        })
    }
}
