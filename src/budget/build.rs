//! Building a cache of the `.md` files below a directory.
//!
//! The cache is made in a temporary directory next to its target and then renamed: readers find
//! the old cache, the new one, or none.

use super::error::{CacheError, CacheFault};
use super::files::check_directory;
use super::manifest::{
    BuildConfig, CachedDocument, DOCUMENTS, Entry, INDEX, MANIFEST, Manifest, Metadata, SHA256,
    version_of,
};
use crate::support::cancel;
use crate::support::scratch::PartialFile;
use crate::tree::hash::hex;
use crate::tree::timestamp::rfc3339;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Options of [`build`].
#[derive(Clone, Copy, Debug)]
pub struct BuildOptions {
    /// Whether an existing cache is replaced. An empty directory always is; one with other files never.
    pub force: bool,
    /// The time of the build, for the manifest.
    pub created_at: SystemTime,
}

/// Builds a cache of every file below `sources` whose name ends in `.md`, and returns its manifest.
/// Links to directories are not followed; pipes and devices are left out.
///
/// Reads each source once. Memory: the largest source, and an entry per source.
/// The same sources give the same bytes in every file, except for `created_at` in the manifest.
///
/// # Errors
/// The directory of sources is missing; names or contents are not UTF-8, or ids collide (all are
/// listed); the target exists; the file system fails. After an error an old cache is unchanged,
/// and nothing of the new one is left.
pub fn build(sources: &Path, cache: &Path, options: BuildOptions) -> Result<Manifest, CacheError> {
    let found = find(sources)?;
    replaceable(cache, options.force)?;
    if let Some(parent) = cache.parent() {
        fs::create_dir_all(parent).map_err(CacheError::io(parent))?;
    }
    let cache = &without_separator(cache);
    let is_cache = |part: &Path| replaceable(part, true).is_ok();
    let part = PartialFile::directory(cache, is_cache).map_err(CacheError::io(cache))?;
    let manifest = write(sources, &found, part.path(), options)?;
    cancel::check()?;
    publish(part.path(), cache)?;
    Ok(manifest)
}

/// A source: its path, and its path below the sources with forward slashes.
struct SourceFile {
    path: PathBuf,
    name: String,
}

/// The sources by id; an error if ids collide or names are not UTF-8.
fn find(sources: &Path) -> Result<BTreeMap<String, SourceFile>, CacheError> {
    check_directory(sources)?;
    let mut files: Vec<PathBuf> = Vec::new();
    let mut open = vec![sources.to_owned()];
    while let Some(dir) = open.pop() {
        cancel::check()?;
        for entry in fs::read_dir(&dir).map_err(CacheError::io(&dir))? {
            let entry = entry.map_err(CacheError::io(&dir))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(CacheError::io(&path))?;
            // Pipes are left out, as they have no end. A dangling link fails when it is read.
            let is_file = || fs::metadata(&path).map_or(true, |data| data.is_file());
            if kind.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md")
                && (kind.is_file() || is_file())
            {
                files.push(path);
            }
        }
    }
    // The order of a directory is arbitrary.
    files.sort_unstable();
    let mut found: BTreeMap<String, SourceFile> = BTreeMap::new();
    let mut faults = Vec::new();
    for path in files {
        let below = path.strip_prefix(sources).unwrap_or(&path);
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        let Some(name) = parts.map(|parts| parts.join("/")) else {
            let message = "the name of the file is not UTF-8";
            faults.push(CacheFault::new(below.to_string_lossy(), message));
            continue;
        };
        let id = name.to_lowercase();
        if let Some(first) = found.get(&id) {
            let message = format!("has the id `{id}`, as {} has", first.name);
            faults.push(CacheFault::new(name, message));
            continue;
        }
        found.insert(id, SourceFile { path, name });
    }
    if faults.is_empty() {
        Ok(found)
    } else {
        Err(CacheError::Sources(sources.to_owned(), faults))
    }
}

/// Checks that `cache` is missing, an empty directory or, with `force`, a directory of cache files only.
fn replaceable(cache: &Path, force: bool) -> Result<(), CacheError> {
    match fs::symlink_metadata(cache) {
        Ok(data) if data.is_dir() => {}
        Ok(_) => return Err(CacheError::Exists(cache.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CacheError::Io(cache.to_owned(), error)),
    }
    for (dir, top) in [(cache.to_owned(), true), (cache.join(DOCUMENTS), false)] {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if !top && error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(CacheError::Io(dir, error)),
        };
        for entry in entries {
            if !force {
                return Err(CacheError::Exists(cache.to_owned()));
            }
            let entry = entry.map_err(CacheError::io(&dir))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let known = if top {
                [MANIFEST, INDEX, DOCUMENTS].contains(&&*name)
            } else {
                name.ends_with(".json")
            };
            if !known {
                return Err(CacheError::Foreign(cache.to_owned(), name));
            }
        }
    }
    Ok(())
}

fn write(
    sources: &Path,
    found: &BTreeMap<String, SourceFile>,
    part: &Path,
    options: BuildOptions,
) -> Result<Manifest, CacheError> {
    let documents = part.join(DOCUMENTS);
    fs::create_dir(&documents).map_err(CacheError::io(&documents))?;
    let mut entries = Vec::with_capacity(found.len());
    let mut faults = Vec::new();
    let mut names = HashSet::with_capacity(found.len());
    for (id, source) in found {
        cancel::check()?;
        let bytes = fs::read(&source.path).map_err(CacheError::io(&source.path))?;
        let version = version_of(&bytes);
        let content = match std::str::from_utf8(&bytes) {
            Ok(content) => content,
            Err(error) => {
                let message = format!("is not UTF-8 from byte {} on", error.valid_up_to());
                faults.push(CacheFault::new(&source.name, message));
                continue;
            }
        };
        if !faults.is_empty() {
            // No cache is made; the remaining sources are only checked.
            continue;
        }
        let file = file_name(id, &version, &mut names);
        let document = CachedDocument {
            id: &**id,
            version: &version,
            source: &source.name,
            content,
            metadata: Metadata::default(),
        };
        write_file(&part.join(&file), &document, false)?;
        entries.push(Entry {
            id: id.clone(),
            version,
            file,
        });
    }
    if !faults.is_empty() {
        return Err(CacheError::Sources(sources.to_owned(), faults));
    }
    let index = entries.iter().map(|entry| (&*entry.id, &*entry.file));
    let index: BTreeMap<&str, &str> = index.collect();
    write_file(&part.join(INDEX), &index, true)?;
    let build_config = BuildConfig::default();
    let cache_version = Manifest::version(&build_config, &entries);
    // Times before 1970 are written as 1970.
    let since = options.created_at.duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    let manifest = Manifest {
        cache_version,
        build_config,
        created_at: rfc3339(since.as_secs().cast_signed(), since.subsec_nanos()),
        document_count: entries.len(),
        documents: entries,
    };
    write_file(&part.join(MANIFEST), &manifest, true)?;
    Ok(manifest)
}

/// The first 12 digits of the document's hash; if they are taken, also 8 or more of the hash of its id.
fn file_name(id: &str, version: &str, names: &mut HashSet<String>) -> String {
    let digits = version.strip_prefix(SHA256).unwrap_or(version);
    let start = digits.get(..12).unwrap_or(digits);
    let mut file = format!("{DOCUMENTS}/{start}.json");
    if names.contains(&file) {
        let own = hex(&Sha256::digest(id));
        let longer = (8..=own.len()).step_by(8);
        let mut longer =
            longer.map(|length| format!("{DOCUMENTS}/{start}-{}.json", &own[..length]));
        file = longer.find(|file| !names.contains(file)).unwrap_or(file);
    }
    names.insert(file.clone());
    file
}

fn write_file(path: &Path, value: &impl Serialize, pretty: bool) -> Result<(), CacheError> {
    let write = || {
        let mut out = BufWriter::new(File::create_new(path)?);
        if pretty {
            serde_json::to_writer_pretty(&mut out, value)?;
        } else {
            serde_json::to_writer(&mut out, value)?;
        }
        out.flush()
    };
    write().map_err(CacheError::io(path))
}

/// The path without a trailing separator; a name appended to one would be inside the directory.
fn without_separator(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(file)) => parent.join(file),
        _ => path.to_owned(),
    }
}

/// Moves the finished cache into place. An old cache is then at `part`, or removed.
fn publish(part: &Path, cache: &Path) -> Result<(), CacheError> {
    let failed = CacheError::io(cache);
    match exchange(part, cache) {
        Ok(()) => return Ok(()),
        // Nothing is there.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fs::rename(part, cache).map_err(failed);
        }
        Err(_) => {}
    }
    // A file system that cannot exchange: for a moment there is no cache.
    let old = part.with_extension("old");
    fs::rename(cache, &old).map_err(CacheError::io(cache))?;
    if let Err(error) = fs::rename(part, cache) {
        // The first failure is returned, not one of restoring.
        let _ = fs::rename(&old, cache);
        return Err(failed(error));
    }
    fs::remove_dir_all(&old).map_err(CacheError::io(&old))
}

/// Exchanges two directories atomically.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_whose_names_collide_get_digits_of_the_id() {
        let mut names = HashSet::new();
        let version = format!("sha256:{}", "0".repeat(64));
        assert_eq!(
            file_name("a.md", &version, &mut names),
            "documents/000000000000.json"
        );
        let digits = &hex(&Sha256::digest("b.md"))[..8];
        assert_eq!(
            file_name("b.md", &version, &mut names),
            format!("documents/000000000000-{digits}.json")
        );
    }
}
