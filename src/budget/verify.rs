//! Everything that is wrong with a cache.

use super::cache::{Cache, DOCUMENTS, INDEX, MANIFEST, parse, read_inside};
use super::error::{CacheError, Fault};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What a cache is, in numbers. Fields stand in the order they are printed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The version of the cache.
    pub cache_version: String,
    /// How many documents it lists.
    pub document_count: usize,
    /// The bytes of their files; what is missing counts as none.
    pub total_bytes: u64,
    /// Whether [`verify`] finds nothing.
    pub valid: bool,
}

/// Reads a whole cache and answers every fault, by file: documents that are missing, changed or
/// cut short, files that belong to no document, a manifest and an index that differ.
///
/// # Errors
/// Those of [`Cache::open`], which leave nothing to compare with; failures of the file system.
pub fn verify(cache: &Cache) -> Result<Vec<Fault>, CacheError> {
    let mut faults = Vec::new();
    for entry in &cache.manifest().documents {
        match cache.content(entry) {
            Ok(_) => {}
            Err(CacheError::Invalid(_, found)) => faults.extend(found),
            Err(error) => return Err(error),
        }
    }
    compare_index(cache, &mut faults)?;
    let known: BTreeSet<&str> = cache
        .manifest()
        .documents
        .iter()
        .map(|entry| &*entry.file)
        .collect();
    for (dir, prefix) in [
        (cache.dir().to_owned(), String::new()),
        (cache.dir().join(DOCUMENTS), format!("{DOCUMENTS}/")),
    ] {
        for name in list(&dir)? {
            let file = format!("{prefix}{name}");
            let own = prefix.is_empty() && [MANIFEST, INDEX, DOCUMENTS].contains(&&*name);
            if !own && !known.contains(&*file) {
                faults.push(Fault::new(file, "belongs to no document"));
            }
        }
    }
    faults.sort();
    Ok(faults)
}

/// What a cache is, in numbers, with the outcome of [`verify`].
///
/// # Errors
/// Those of [`verify`].
pub fn inspect(cache: &Cache) -> Result<Inspection, CacheError> {
    let manifest = cache.manifest();
    let mut total_bytes = 0;
    for entry in &manifest.documents {
        // A file that cannot be looked at is told by its fault.
        let data = fs::symlink_metadata(cache.dir().join(&entry.file));
        total_bytes += data.map_or(0, |data| data.len());
    }
    Ok(Inspection {
        cache_version: manifest.cache_version.clone(),
        document_count: manifest.document_count,
        total_bytes,
        valid: verify(cache)?.is_empty(),
    })
}

/// Holds the index of ids to the manifest.
fn compare_index(cache: &Cache, faults: &mut Vec<Fault>) -> Result<(), CacheError> {
    let bytes = match read_inside(cache.dir(), INDEX) {
        Ok(bytes) => bytes,
        Err(CacheError::Invalid(_, found)) => {
            faults.extend(found);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let index: BTreeMap<String, String> = match parse(&bytes, INDEX) {
        Ok(index) => index,
        Err(fault) => {
            faults.push(fault);
            return Ok(());
        }
    };
    let mut listed = BTreeSet::new();
    for entry in &cache.manifest().documents {
        listed.insert(&*entry.id);
        let message = match index.get(&entry.id) {
            Some(file) if *file == entry.file => continue,
            Some(file) => format!(
                "has `{}` in {file}, the manifest in {}",
                entry.id, entry.file
            ),
            None => format!("lacks `{}`", entry.id),
        };
        faults.push(Fault::new(INDEX, message));
    }
    for id in index.keys().filter(|id| !listed.contains(&***id)) {
        faults.push(Fault::new(
            INDEX,
            format!("has `{id}`, which the manifest lacks"),
        ));
    }
    Ok(())
}

/// The names in a directory; none where there is no such directory, or it is a link, which is a
/// fault of each document in it.
fn list(dir: &Path) -> Result<Vec<String>, CacheError> {
    // The cache itself may be given by a link.
    let linked = fs::symlink_metadata(dir).is_ok_and(|data| data.is_symlink());
    if !dir.is_dir() || (linked && dir.ends_with(DOCUMENTS)) {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(CacheError::io(dir))? {
        let entry = entry.map_err(CacheError::io(dir))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}
