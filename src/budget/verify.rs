//! Everything that is wrong with a cache.

use super::cache::{Cache, DOCUMENTS, INDEX, MANIFEST, TERMS, open_inside, parse};
use super::error::{CacheError, Fault, Unusable};
use super::files::Kind;
use super::terms::{Collector, Terms};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;

/// What a cache is, in numbers. Fields stand in the order they are printed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The version of the cache.
    pub cache_version: String,
    /// How many documents it lists.
    pub document_count: usize,
    /// The bytes of their files; what is missing counts as none, and so do manifest and indexes,
    /// so that an index of terms does not show.
    pub total_bytes: u64,
    /// Whether [`verify`] finds nothing.
    pub valid: bool,
}

/// Reads a whole cache and answers every fault, by file: documents that are missing, changed or
/// cut short, files that belong to no document, a manifest and an index that differ, an index of
/// terms that is not byte for byte that of the documents.
///
/// Of a document, its id, version and content are held to the manifest; no hash covers what it
/// says of its source and metadata.
///
/// Documents are read one at a time; with an index of terms, memory holds one more like it.
///
/// # Errors
/// Those of [`Cache::open`], which leave nothing to compare with; failures of the file system.
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
    // What the index should be is known only where every document is what it should be.
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
    // A link in the place of this directory is a fault of each document in it.
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

/// What a cache is, in numbers, with the outcome of [`verify`].
///
/// # Errors
/// Those of [`verify`].
pub fn inspect(cache: &Cache) -> Result<Inspection, CacheError> {
    let manifest = cache.manifest();
    let mut total_bytes = 0;
    for entry in &manifest.documents {
        // A file that cannot be looked at is told by its fault.
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

/// Holds the index of terms to its own checksums and, where all documents are good, to what was
/// collected from them.
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
    let mut same = Same(io::BufReader::new(file));
    let version = &cache.manifest().cache_version;
    collector
        .write(version, &mut same)
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                Unusable::Fault("does not hold the words of the documents".to_owned())
            }
            _ => Unusable::Io(error),
        })
}

/// A writer that writes nothing, and fails where it would write something else than stands there.
struct Same<R>(R);

impl<R: Read> Write for Same<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut there = [0; 4096];
        let there = &mut there[..bytes.len().min(4096)];
        self.0.read_exact(there)?;
        if *there == bytes[..there.len()] {
            Ok(there.len())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The members of a JSON object as they stand: of two with one name, readers take either.
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

/// Holds the index of ids to the manifest.
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

/// The names in a directory of a cache.
fn names(cache: &Cache, dir: &str) -> io::Result<Vec<String>> {
    let names = cache.files().names(dir)?;
    let text = |name: OsString| name.to_string_lossy().into_owned();
    Ok(names.into_iter().map(text).collect())
}
