//! Checking a whole cache: every fault, and its figures.

use super::cache::Cache;
use super::error::{CacheError, CacheFault};
use super::files::FileKind;
use super::manifest::{DOCUMENTS, Entry, INDEX, MANIFEST, parse};
use crate::json::{members, string};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The figures of a cache. Fields are in the order of the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The version of the cache.
    pub cache_version: String,
    /// The number of documents in the manifest.
    pub document_count: usize,
    /// The bytes of the documents' files. A missing file counts as 0; manifest and index are not
    /// counted.
    pub total_bytes: u64,
    /// Whether [`verify`] finds nothing.
    pub valid: bool,
}

/// Reads a whole cache and returns every fault, sorted by file: documents that are missing, changed
/// or cut short, files that belong to no document, differences between manifest and index of ids.
///
/// The id, version and content of a document are checked; no hash covers its source and metadata.
/// Memory: one document.
///
/// # Errors
/// Failures of the file system.
pub fn verify(cache: &Cache) -> Result<Vec<CacheFault>, CacheError> {
    let mut faults = Vec::new();
    for entry in &cache.manifest().documents {
        match cache.content(entry) {
            Ok(_) => {}
            Err(CacheError::Invalid(_, found)) => faults.extend(found),
            Err(error) => return Err(error),
        }
    }
    compare_index(cache, &mut faults)?;
    let known = cache.manifest().documents.iter();
    let known: BTreeSet<&str> = known.map(|entry| &*entry.file).collect();
    let list = |dir: &str, path: &Path| {
        let names = cache.files.names(dir).map_err(CacheError::io(path))?;
        let names = names.into_iter();
        let names = names.map(|name| name.to_string_lossy().into_owned());
        Ok::<Vec<String>, CacheError>(names.collect())
    };
    let listed = list(".", cache.dir())?.into_iter();
    let listed = listed.filter(|name| ![MANIFEST, INDEX, DOCUMENTS].contains(&&**name));
    // If this directory is a link, that is a fault of each document in it.
    let documents = match cache.files.stat(DOCUMENTS) {
        Ok((FileKind::Directory, _)) => list(DOCUMENTS, &cache.dir().join(DOCUMENTS))?,
        _ => Vec::new(),
    };
    let documents = documents.iter().map(|name| format!("{DOCUMENTS}/{name}"));
    for file in listed.chain(documents) {
        if !known.contains(&*file) {
            faults.push(CacheFault::new(file, "belongs to no document"));
        }
    }
    faults.sort();
    Ok(faults)
}

/// The figures of a cache, with the outcome of [`verify`].
///
/// # Errors
/// Those of [`verify`].
pub fn inspect(cache: &Cache) -> Result<Inspection, CacheError> {
    let manifest = cache.manifest();
    let mut total_bytes = 0;
    for entry in &manifest.documents {
        // `verify` reports a file without metadata.
        let found = cache.files.stat(&entry.file);
        total_bytes += found.map_or(0, |(_, bytes)| bytes);
    }
    Ok(Inspection {
        cache_version: manifest.cache_version.clone(),
        document_count: manifest.document_count,
        total_bytes,
        valid: verify(cache)?.is_empty(),
    })
}

fn compare_index(cache: &Cache, faults: &mut Vec<CacheFault>) -> Result<(), CacheError> {
    let read = |bytes: Vec<u8>| {
        // The parser says what is wrong with text that is not JSON and members that are not strings.
        parse::<BTreeMap<String, String>>(&bytes, cache.dir(), INDEX)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = match cache.read(INDEX).and_then(read) {
        Ok(text) => text,
        Err(CacheError::Invalid(_, found)) => {
            faults.extend(found);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    // Of a name that is there twice, the first file counts.
    let mut index: BTreeMap<Cow<'_, str>, Cow<'_, str>> = BTreeMap::new();
    for (id, file) in members(&text) {
        match index.entry(id) {
            Occupied(twice) => {
                faults.push(CacheFault::new(
                    INDEX,
                    format!("has `{}` twice", twice.key()),
                ));
            }
            Vacant(new) => {
                new.insert(string(file).unwrap_or_default());
            }
        }
    }
    let entries = cache.manifest().documents.iter();
    let differences =
        entries.filter_map(|Entry { id, file, .. }| match index.remove(id.as_str()) {
            Some(listed) if listed == *file => None,
            Some(listed) => Some(format!("has `{id}` in {listed}, the manifest in {file}")),
            None => Some(format!("does not have `{id}`")),
        });
    let mut messages: Vec<String> = differences.collect();
    let left = index.keys();
    messages.extend(left.map(|id| format!("has `{id}`, which the manifest does not have")));
    let found = messages.into_iter();
    faults.extend(found.map(|message| CacheFault::new(INDEX, message)));
    Ok(())
}
