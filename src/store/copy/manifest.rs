//! The manifests of a copy: JSON files that name its files and are written after them. Also removes what a killed
//! export has left.
//!
//! Each bucket has a manifest, so an export that was interrupted keeps the buckets it has finished. The manifest of
//! the whole copy is written last and has the hashes of the others: if they agree, the copy is of one moment.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hashbrown::HashSet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::store::copy::file::WrittenFile;
use crate::store::database::new_file::sync_name;
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{CopyFiles, LAYOUT, StoreTable, TABLES};
use crate::support::scratch::{PartialFile, is_part, private, private_directory};
use crate::tree::hash::hex;

/// The directory of the manifests. Engines pass over names that begin so.
pub(crate) const DIRECTORY: &str = "_pactql";

const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CopyManifest {
    pub(crate) format: u32,
    pub(crate) layout: i64,
    pub(crate) written_by: String,
    pub(crate) buckets: i64,
    /// The pattern of names; an empty one matches all.
    pub(crate) sessions: String,
    /// Only sessions with a commit at or after this time, in nanoseconds since 1970.
    pub(crate) since_ns: Option<i64>,
    /// The files of the tables that are whole.
    pub(crate) files: Vec<WrittenFile>,
    /// The buckets that have sessions, and 0: their numbers, and the hashes of their manifests.
    pub(crate) state: Vec<(i64, String)>,
    /// The SHA-256 of this as JSON with nothing here, in hexadecimal digits.
    sha256: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BucketManifest {
    /// Grows when everything is rewritten. Numbers of units differ between generations.
    pub(crate) generation: i64,
    pub(crate) parts: i64,
    /// Whether an export is writing it, or was: files that are replaced may be others than those named here.
    #[serde(default)]
    pub(crate) open: bool,
    pub(crate) sessions: Vec<Exported>,
    pub(crate) files: Vec<WrittenFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exported {
    pub(crate) id: i64,
    pub(crate) changed: i64,
    /// The seqs of the oldest and the newest snapshot; 1 and 0 without any.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The hash of the newest snapshot, in hexadecimal digits: that of all history before it.
    pub(crate) hash: String,
    /// The digest of the placements that begin up to `last`, with the numbers and the hashes of their units.
    /// Numbers are those of one store: a store with the same history may have others.
    #[serde(default)]
    pub(crate) placed: String,
}

impl Exported {
    /// Whether the session is as it was, as far as one can see without its placements.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let seen = |all: &Self| (all.id, all.changed, all.first, all.last);
        seen(self) == seen(other) && self.hash == other.hash
    }
}

impl CopyManifest {
    pub(crate) fn new(buckets: i64, sessions: &str, since_ns: Option<i64>) -> Self {
        Self {
            format: FORMAT,
            layout: LAYOUT,
            written_by: format!("pactql {}", env!("CARGO_PKG_VERSION")),
            buckets,
            sessions: sessions.to_owned(),
            since_ns,
            files: Vec::new(),
            state: Vec::new(),
            sha256: String::new(),
        }
    }

    /// With its sum.
    fn sealed(&self) -> Self {
        let mut bare = Self {
            sha256: String::new(),
            ..self.clone()
        };
        // Texts and numbers always have a JSON.
        let json = serde_json::to_vec(&bare).unwrap_or_default();
        bare.sha256 = hex(&Sha256::digest(json));
        bare
    }

    fn path(root: &Path) -> PathBuf {
        root.join(DIRECTORY).join("copy.json")
    }

    pub(crate) fn read(root: &Path) -> Result<Option<Self>> {
        let path = Self::path(root);
        let copy: Option<Self> = read(&path)?;
        match copy {
            Some(copy) if copy.format != FORMAT || copy.layout != LAYOUT => {
                Err(StoreError::Refused(format!(
                    "the copy in {} has format {}.{}, written by {}; this program has format {FORMAT}.{}",
                    root.display(),
                    copy.format,
                    copy.layout,
                    copy.written_by,
                    LAYOUT
                )))
            }
            Some(copy) if !(1..=MOST_BUCKETS).contains(&copy.buckets) => Err(StoreError::Damaged(
                format!("{} has {} buckets", path.display(), copy.buckets),
            )),
            Some(copy) if copy.sealed() != copy => Err(StoreError::Damaged(format!(
                "{} is not what its sum says",
                path.display()
            ))),
            copy => Ok(copy),
        }
    }

    pub(crate) fn write(&self, root: &Path) -> Result<()> {
        write(&Self::path(root), &self.sealed())
    }
}

pub(crate) const MOST_BUCKETS: i64 = 65_536;

impl BucketManifest {
    pub(crate) fn path(root: &Path, bucket: i64) -> PathBuf {
        root.join(DIRECTORY).join(format!("bucket={bucket}.json"))
    }

    pub(crate) fn read(root: &Path, bucket: i64) -> Result<Option<Self>> {
        read(&Self::path(root, bucket))
    }

    pub(crate) fn write(&self, root: &Path, bucket: i64) -> Result<()> {
        write(&Self::path(root, bucket), self)
    }

    pub(crate) fn files<'b>(&'b self, table: &'b str) -> impl Iterator<Item = &'b WrittenFile> {
        let of = |file: &&WrittenFile| file.path.split('/').next() == Some(table);
        self.files.iter().filter(of)
    }
}

/// What was done in the file system; `None` if there is nothing of that name.
pub(crate) fn found<T>(path: &Path, done: io::Result<T>) -> Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done
            .map(Some)
            .map_err(|error| StoreError::Io(path.to_owned(), error)),
    }
}

pub(crate) fn remove(path: &Path) -> Result<()> {
    found(path, fs::remove_file(path)).map(|_| ())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let bytes = found(path, fs::read(path))?;
    let read = bytes
        .map(|bytes| serde_json::from_slice(&bytes))
        .transpose();
    read.map_err(|error| StoreError::Damaged(format!("{}: {error}", path.display())))
}

/// Writes a file, or replaces it in one moment; it is on the disk then.
fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let io = |error| StoreError::Io(path.to_owned(), error);
    let part = PartialFile::file(path, None).map_err(io)?;
    let mut out = io::BufWriter::new(part.open());
    serde_json::to_writer(&mut out, value).map_err(|error| io(error.into()))?;
    out.write_all(b"\n")
        .and_then(|()| out.flush())
        .map_err(io)?;
    drop(out);
    part.open().sync_all().map_err(io)?;
    part.rename(path).map_err(io)?;
    sync_name(path)
}

#[derive(Debug)]
pub(crate) struct CopyLock(File);

impl CopyLock {
    /// Makes the directories. [`StoreError::Conflict`] if another program has it.
    pub(crate) fn take(root: &Path) -> Result<Self> {
        let path = root.join(DIRECTORY).join("lock");
        let io = |error| StoreError::Io(path.clone(), error);
        private_directory(&root.join(DIRECTORY), true).map_err(io)?;
        let file = private().create_new(false).create(true).open(&path);
        let file = file.map_err(io)?;
        match file.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::Conflict(format!(
                "another program exports to {}, or holds its lock to read it; try again later",
                root.display()
            ))),
            // Of a file system without locks: the user takes care.
            Err(std::fs::TryLockError::Error(error))
                if error.kind() != io::ErrorKind::Unsupported =>
            {
                Err(io(error))
            }
            _ => Ok(Self(file)),
        }
    }
}

impl Drop for CopyLock {
    fn drop(&mut self) {
        // A file system without locks has none to give back.
        let _ = self.0.unlock();
    }
}

/// Removes what no manifest names, but files of a bucket that was being written: its placements may refer to them, and
/// it is cleaned when it is written again. Returns the buckets with a manifest. Reads every directory of the copy.
pub(crate) fn sweep(root: &Path) -> Result<BTreeSet<i64>> {
    let (mut found, mut known) = (BTreeSet::new(), BTreeSet::new());
    for table in bucketed() {
        let inside = entries(&root.join(table.name))?;
        found.extend(inside.iter().filter_map(|entry| bucket_of(entry, "")));
    }
    for entry in entries(&root.join(DIRECTORY))? {
        if is_part(&entry.file_name()) {
            remove(&entry.path())?;
        }
        known.extend(bucket_of(&entry, ".json"));
    }
    for bucket in found.union(&known) {
        let manifest = BucketManifest::read(root, *bucket)?.unwrap_or_default();
        if !manifest.open {
            clean(root, *bucket, &manifest)?;
        }
    }
    Ok(known)
}

/// Removes the files of a bucket that its manifest does not name, and the directories that are empty then.
pub(crate) fn clean(root: &Path, bucket: i64, manifest: &BucketManifest) -> Result<()> {
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

fn bucketed() -> impl Iterator<Item = &'static StoreTable> {
    let tables = TABLES.iter();
    tables.filter(|table| matches!(table.files, CopyFiles::Added | CopyFiles::Replaced))
}

fn is_ours(table: &StoreTable, entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let stem = name.to_str().and_then(|name| name.strip_suffix(".parquet"));
    let is_number = |text: &str| text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = |(one, other): (&str, &str)| is_number(one) && is_number(other);
    let ours = |stem: &str| stem == table.name || stem.split_once('-').is_some_and(numbers);
    is_part(&name) || stem.is_some_and(ours)
}

/// The number in a name, if it is written as exports write it.
fn bucket_of(entry: &DirEntry, end: &str) -> Option<i64> {
    let name = entry.file_name();
    let text = name.to_str()?.strip_prefix("bucket=")?.strip_suffix(end)?;
    let number: i64 = text.parse().ok()?;
    (number >= 0 && number.to_string() == text).then_some(number)
}

fn entries(path: &Path) -> Result<Vec<DirEntry>> {
    let listed = fs::read_dir(path).and_then(Iterator::collect);
    Ok(found(path, listed)?.unwrap_or_default())
}
