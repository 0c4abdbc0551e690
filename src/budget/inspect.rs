//! Checking a whole cache: every fault, and its figures.

use super::cache::Cache;
use super::error::{CacheError, Fault, Unusable};
use super::files::Kind;
use super::manifest::{DOCUMENTS, INDEX, MANIFEST, TERMS, open_inside, parse};
use super::terms::{Collector, Terms};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;

/// The figures of a cache. Fields are in the order of the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The version of the cache.
    pub cache_version: String,
    /// The number of documents in the manifest.
    pub document_count: usize,
    /// The bytes of the documents' files. A missing file counts as 0; manifest and indexes are not
    /// counted, so an index of terms makes no difference.
    pub total_bytes: u64,
    /// Whether [`verify`] finds nothing.
    pub valid: bool,
}

/// Reads a whole cache and returns every fault, sorted by file: documents that are missing, changed
/// or cut short, files that belong to no document, differences between manifest and index of ids,
/// an index of terms that is not byte for byte that of the documents.
///
/// The id, version and content of a document are checked; no hash covers its source and metadata.
/// Memory: one document, and a second index of terms if the cache has one.
///
/// # Errors
/// Failures of the file system.
pub fn verify(cache: &Cache) -> Result<Vec<Fault>, CacheError> {
    let mut faults = Vec::new();
    let (terms, fault) = match cache.open_terms() {
        Ok(terms) => (terms, None),
        Err(Unusable::Fault(message)) => (None, Some(Fault::new(TERMS, message))),
        Err(why) => return Err(why.of(cache.dir(), TERMS)),
    };
    let mut collector = terms.is_some().then(Collector::default);
    for entry in &cache.manifest().documents {
        match cache.content(entry) {
            Ok(content) => {
                if let Some(collector) = &mut collector {
                    collector.add(&content);
                }
            }
            Err(CacheError::Invalid(_, found)) => faults.extend(found),
            Err(error) => return Err(error),
        }
    }
    // The right index is known only if every document is right.
    let collector = collector.filter(|_| faults.is_empty());
    faults.extend(fault);
    if let Some(terms) = terms {
        match compare_terms(cache, &terms, collector) {
            Ok(()) => {}
            Err(Unusable::Fault(message)) => faults.push(Fault::new(TERMS, message)),
            Err(why) => return Err(why.of(cache.dir(), TERMS)),
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
    let listed = listed.filter(|name| ![MANIFEST, INDEX, TERMS, DOCUMENTS].contains(&&**name));
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

/// Checks the index of terms against its own checksums and, if there is a collector, against the
/// words of the documents.
fn compare_terms(
    cache: &Cache,
    terms: &Terms,
    collector: Option<Collector>,
) -> Result<(), Unusable> {
    terms.check()?;
    let Some(collector) = collector else {
        return Ok(());
    };
    let missing = || Unusable::Fault("is missing".to_owned());
    let file = open_inside(cache.files(), TERMS)?.ok_or_else(missing)?;
    let mut expected = Expect(io::BufReader::new(file));
    let version = &cache.manifest().cache_version;
    collector
        .write(version, &mut expected)
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                Unusable::Fault("does not have the words of the documents".to_owned())
            }
            _ => Unusable::Io(error),
        })
}

/// A writer that compares instead of writing: it fails at the first byte that differs.
struct Expect<R>(R);

impl<R: Read> Write for Expect<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut expected = [0; 4096];
        let expected = &mut expected[..bytes.len().min(4096)];
        self.0.read_exact(expected)?;
        if *expected == bytes[..expected.len()] {
            Ok(expected.len())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
