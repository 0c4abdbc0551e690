//! Checking a whole cache: every fault, and its figures.

use super::cache::Cache;
use super::error::{CacheError, Fault};
use super::files::Kind;
use super::manifest::{DOCUMENTS, INDEX, MANIFEST, parse};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::io;
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
    let list = |dir: &str, path: &Path| names(cache, dir).map_err(CacheError::io(path));
    let listed = list(".", cache.dir())?.into_iter();
    let listed = listed.filter(|name| ![MANIFEST, INDEX, DOCUMENTS].contains(&&**name));
    // If this directory is a link, that is a fault of each document in it.
    let documents = match cache.files().stat(DOCUMENTS) {
        Ok((Kind::Directory, _)) => list(DOCUMENTS, &cache.dir().join(DOCUMENTS))?,
        _ => Vec::new(),
    };
    let documents = documents.iter().map(|name| format!("{DOCUMENTS}/{name}"));
    for file in listed.chain(documents) {
        if !known.contains(&*file) {
            faults.push(Fault::new(file, "belongs to no document"));
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
        let found = cache.files().stat(&entry.file);
        total_bytes += found.map_or(0, |(_, bytes)| bytes);
    }
    Ok(Inspection {
        cache_version: manifest.cache_version.clone(),
        document_count: manifest.document_count,
        total_bytes,
        valid: verify(cache)?.is_empty(),
    })
}

/// The members of a JSON object, repeated names included.
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Compares the index of ids with the manifest.
fn compare_index(cache: &Cache, faults: &mut Vec<Fault>) -> Result<(), CacheError> {
    let bytes = match cache.read(INDEX) {
        Ok(bytes) => bytes,
        Err(CacheError::Invalid(_, found)) => {
            faults.extend(found);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let Members(members) = match parse(&bytes, INDEX) {
        Ok(members) => members,
        Err(fault) => {
            faults.push(fault);
            return Ok(());
        }
    };
    let mut index = BTreeMap::new();
    for (id, file) in members {
        match index.entry(id) {
            Entry::Occupied(twice) => {
                faults.push(Fault::new(INDEX, format!("has `{}` twice", twice.key())));
            }
            Entry::Vacant(place) => {
                place.insert(file);
            }
        }
    }
    let mut listed = BTreeSet::new();
    for entry in &cache.manifest().documents {
        listed.insert(&*entry.id);
        let message = match index.get(&entry.id) {
            Some(file) if *file == entry.file => continue,
            Some(file) => format!(
                "has `{}` in {file}, the manifest in {}",
                entry.id, entry.file
            ),
            None => format!("does not have `{}`", entry.id),
        };
        faults.push(Fault::new(INDEX, message));
    }
    for id in index.keys().filter(|id| !listed.contains(&***id)) {
        faults.push(Fault::new(
            INDEX,
            format!("has `{id}`, which the manifest does not have"),
        ));
    }
    Ok(())
}

/// The names in a directory of a cache.
fn names(cache: &Cache, dir: &str) -> io::Result<Vec<String>> {
    let names = cache.files().names(dir)?;
    let text = |name: OsString| name.to_string_lossy().into_owned();
    Ok(names.into_iter().map(text).collect())
}
