//! What an export that was killed has left in the directory of a copy.
//!
//! A file that no manifest names is in no copy, but its texts are readable. Only names that exports give are removed:
//! whatever else is there is another's. This file must not know what is in the files.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use hashbrown::HashSet;

use super::manifest::{Bucket, DIRECTORY, remove};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{Files, TABLES, Table};
use crate::support::scratch::is_part;

/// Removes the parts and the files that no manifest names. No other process writes the copy. Files of a bucket that was being
/// written stay: its placements may refer to them already, and the bucket is written again and cleaned then. Returns
/// the buckets that have a manifest. Reads every directory of the copy once.
pub(crate) fn sweep(root: &Path) -> Result<BTreeSet<i64>> {
    let (mut found, mut known) = (BTreeSet::new(), BTreeSet::new());
    for table in bucketed() {
        for entry in entries(&root.join(table.name))? {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("bucket="));
            found.extend(number.and_then(canonical));
        }
    }
    for entry in entries(&root.join(DIRECTORY))? {
        let name = entry.file_name();
        if is_part(&name) {
            remove(&entry.path())?;
        }
        let number = name.to_str().and_then(|name| {
            let number = name.strip_prefix("bucket=")?.strip_suffix(".json")?;
            canonical(number)
        });
        known.extend(number);
    }
    for bucket in found.union(&known) {
        let manifest = Bucket::read(root, *bucket)?.unwrap_or_default();
        if !manifest.open {
            clean(root, *bucket, &manifest)?;
        }
    }
    Ok(known)
}

/// Removes the files of a bucket that its manifest does not name, and the directories that are empty then.
pub(crate) fn clean(root: &Path, bucket: i64, manifest: &Bucket) -> Result<()> {
    let named: HashSet<&str> = manifest.files.iter().map(|file| &*file.path).collect();
    for table in bucketed() {
        let directory = format!("{}/bucket={bucket}", table.name);
        let path = root.join(&directory);
        let mut left = !path.is_dir();
        for entry in entries(&path)? {
            let name = entry.file_name();
            let is_named = |name: &str| named.contains(&*format!("{directory}/{name}"));
            if is_ours(table, &entry) && !name.to_str().is_some_and(is_named) {
                remove(&entry.path())?
            } else {
                left = true
            }
        }
        if !left {
            fs::remove_dir(&path).map_err(|error| StoreError::Io(path, error))?;
        }
    }
    Ok(())
}

/// The tables that have a directory for each bucket.
fn bucketed() -> impl Iterator<Item = &'static Table> {
    let tables = TABLES.iter();
    tables.filter(|table| matches!(table.files, Files::Added | Files::Replaced))
}

/// Whether an export gives such a name to a file of a table.
fn is_ours(table: &Table, entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let stem = name.to_str().and_then(|name| name.strip_suffix(".parquet"));
    let is_number = |text: &str| text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = |(one, other): (&str, &str)| is_number(one) && is_number(other);
    let ours = |stem: &str| stem == table.name || stem.split_once('-').is_some_and(numbers);
    is_part(&name) || stem.is_some_and(ours)
}

/// A number that is written as exports write it.
fn canonical(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number >= 0 && number.to_string() == text).then_some(number)
}

/// What is in a directory, which may be missing.
fn entries(path: &Path) -> Result<Vec<DirEntry>> {
    let listed = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(|listed| listed.collect::<io::Result<Vec<DirEntry>>>()),
    };
    listed.map_err(|error| StoreError::Io(path.to_owned(), error))
}
