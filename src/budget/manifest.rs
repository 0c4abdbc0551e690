//! The files of a cache: names, manifest and documents (RUNTIME §6).
//!
//! ```text
//! manifest.json      the list of documents, the only one that readers use
//! index.json         id → file, for other tools
//! documents/*.json   one document a file
//! ```
//! No file outside the directory is ever read: a document is named by `documents/` and one plain
//! file name, and links are refused.

use super::error::{CacheError, CacheFault};
use super::files::{FileKind, Files, is_missing};
use crate::tree::hash::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;

pub(crate) const MANIFEST: &str = "manifest.json";

pub(super) const INDEX: &str = "index.json";

pub(super) const DOCUMENTS: &str = "documents";

pub(super) const SHA256: &str = "sha256:";

/// How a cache was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildConfig {
    /// The version of the layout.
    pub version: String,
    /// The hash function of all versions.
    pub hash_algorithm: String,
}

impl Default for BuildConfig {
    fn default() -> Self {
        Self {
            version: "1".to_owned(),
            hash_algorithm: "sha256".to_owned(),
        }
    }
}

/// The contents of `manifest.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// A hash of the configuration and all ids and versions; see [`Manifest::version`].
    pub cache_version: String,
    /// How it was built.
    pub build_config: BuildConfig,
    /// The time of the build in RFC 3339. Nothing depends on it.
    pub created_at: String,
    /// The number of documents.
    pub document_count: usize,
    /// The documents, sorted by id.
    pub documents: Vec<Entry>,
}

/// One document of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// `sha256:` and the hex digits of the hash of its bytes.
    pub version: String,
    /// Its file, relative to the cache.
    pub file: String,
}

impl Manifest {
    /// The value that `cache_version` must have: `sha256:` of the compact configuration, followed by
    /// `id:version` of each document without separators. `documents` are sorted by id.
    pub fn version(config: &BuildConfig, documents: &[Entry]) -> String {
        // Two strings always serialize.
        let config = serde_json::to_vec(config).unwrap_or_default();
        let mut hash = Sha256::new_with_prefix(config);
        for entry in documents {
            for part in [&entry.id, ":", &entry.version] {
                hash.update(part);
            }
        }
        format!("{SHA256}{}", hex(&hash.finalize()))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CachedDocument<T> {
    pub(super) id: T,
    pub(super) version: T,
    /// Its source, relative to the directory of sources.
    pub(super) source: T,
    pub(super) content: T,
    #[serde(default)]
    pub(super) metadata: Metadata,
}

/// Other information about a document: an object whose members are ignored.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Metadata {}

pub(super) fn differs(document: &CachedDocument<String>, entry: &Entry) -> Option<String> {
    let Entry { id, version, .. } = entry;
    if document.id != *id {
        return Some(format!("is the document `{}`, not `{id}`", document.id));
    }
    if document.version != *version {
        return Some(format!("is another version of `{id}`"));
    }
    (version_of(document.content.as_bytes()) != *version)
        .then(|| format!("the content of `{id}` is not that of its version"))
}

/// The version of a document with this content: `sha256:` and the hex digits of the hash.
pub fn version_of(bytes: &[u8]) -> String {
    format!("{SHA256}{}", hex(&Sha256::digest(bytes)))
}

/// What is wrong with a manifest, before any other file is read.
pub(super) fn check(manifest: &Manifest) -> Vec<CacheFault> {
    let fault = |message: String| CacheFault::new(MANIFEST, message);
    if manifest.build_config != BuildConfig::default() {
        // The rest of the manifest may have another meaning.
        let config = &manifest.build_config;
        let has = format!("layout {} with {}", config.version, config.hash_algorithm);
        return vec![fault(format!("{has} is not known, only 1 with sha256"))];
    }
    let mut faults = Vec::new();
    let documents = &manifest.documents;
    if manifest.document_count != documents.len() {
        faults.push(fault(format!(
            "document_count is {}, but {} documents are listed",
            manifest.document_count,
            documents.len()
        )));
    }
    for (at, entry) in documents.iter().enumerate() {
        let Entry { id, file, .. } = entry;
        if !is_document_file(file) {
            faults.push(fault(format!(
                "the file of `{id}`, `{file}`, is not one directly in {DOCUMENTS}/"
            )));
        }
        match at.checked_sub(1).map(|at| &documents[at].id) {
            Some(before) if before == id => faults.push(fault(format!("`{id}` is listed twice"))),
            Some(before) if before > id => {
                faults.push(fault(format!("`{id}` is listed after `{before}`")));
            }
            _ => {}
        }
    }
    if Manifest::version(&manifest.build_config, documents) != manifest.cache_version {
        let message = "cache_version is not that of the documents listed";
        faults.push(fault(message.to_owned()));
    }
    faults
}

fn is_document_file(file: &str) -> bool {
    file.strip_prefix(DOCUMENTS)
        .and_then(|file| file.strip_prefix('/'))
        .is_some_and(|name| {
            let is_separator = |byte| matches!(byte, b'/' | b'\\' | b':' | b'\0');
            !matches!(name, "" | "." | "..") && !name.bytes().any(is_separator)
        })
}

/// Reads a file of the cache `dir`. Refuses links, and what is not a plain file.
pub(super) fn read_inside(
    files: &dyn Files,
    dir: &Path,
    file: &str,
) -> Result<Vec<u8>, CacheError> {
    let wrong = |message: &str| CacheError::invalid(dir, file, message);
    let failed = |error: io::Error| CacheError::Io(dir.join(file), error);
    let kind = |path: &str| match files.stat(path) {
        Ok((kind, _)) => Ok(kind),
        Err(error) if is_missing(&error) => Err(wrong("is missing")),
        Err(error) => Err(failed(error)),
    };
    if file.contains('/') && kind(DOCUMENTS)? != FileKind::Directory {
        return Err(wrong("is below something that is not a directory"));
    }
    if kind(file)? != FileKind::File {
        return Err(wrong("is not a plain file"));
    }
    let mut bytes = Vec::new();
    let mut open = files.open(file).map_err(failed)?;
    open.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

pub(super) fn parse<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
    dir: &Path,
    file: &str,
) -> Result<T, CacheError> {
    // Checking UTF-8 once is faster than string by string. For text that is not UTF-8 the parser
    // has the better message.
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    parsed.map_err(|error| CacheError::invalid(dir, file, error.to_string()))
}
