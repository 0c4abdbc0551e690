//! Reading a cache: its manifest, its documents, and answers out of it.
//!
//! # The layout (RUNTIME §6)
//! ```text
//! manifest.json      what the cache holds: the only list readers go by
//! index.json         id → file, for other tools
//! documents/*.json   one document a file
//! terms.bin          an index of terms, the project's own and optional
//! ```
//! Nothing outside the directory is ever read: a file is named by `documents/` and one plain name,
//! and links are refused.

use super::error::{CacheError, Fault, Unusable};
use super::files::{Files, Kind, is_missing};
use super::score::{Measure, Query};
use super::select::{Candidate, Chosen, Resolution, fill};
use super::terms::Terms;
use crate::tree::hash::hex;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name of the manifest.
pub(crate) const MANIFEST: &str = "manifest.json";

/// The name of the index of ids.
pub(crate) const INDEX: &str = "index.json";

/// The name of the index of terms.
pub(crate) const TERMS: &str = "terms.bin";

/// The directory of the documents.
pub(crate) const DOCUMENTS: &str = "documents";

/// So many documents are read before other threads have begun.
const FEW: usize = 16;

/// What versions start with.
pub(super) const SHA256: &str = "sha256:";

/// How a cache was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildConfig {
    /// The version of the layout.
    pub version: String,
    /// What versions are computed with.
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

/// What a cache holds, as `manifest.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// A hash over the configuration and all ids and versions; see [`Manifest::version`].
    pub cache_version: String,
    /// How it was built.
    pub build_config: BuildConfig,
    /// When it was built, in RFC 3339. Nothing depends on it.
    pub created_at: String,
    /// How many documents there are.
    pub document_count: usize,
    /// The documents, by id.
    pub documents: Vec<Entry>,
}

/// One document of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// `sha256:` and the hex digits of the hash of its bytes.
    pub version: String,
    /// Its file, from the directory of the cache.
    pub file: String,
}

impl Manifest {
    /// What `cache_version` must be: `sha256:` of the compact configuration followed by
    /// `id:version` of each document, in the order of ids, with nothing between them.
    ///
    /// `documents` are given in that order.
    #[must_use]
    pub fn version(config: &BuildConfig, documents: &[Entry]) -> String {
        let mut version = Version::new(config);
        documents.iter().for_each(|entry| version.add(entry));
        version.finish()
    }
}

/// A version of a cache in the making; see [`Manifest::version`].
struct Version(Sha256);

impl Version {
    fn new(config: &BuildConfig) -> Self {
        // Two strings always have a JSON form.
        Self(Sha256::new_with_prefix(
            serde_json::to_vec(config).unwrap_or_default(),
        ))
    }

    fn add(&mut self, entry: &Entry) {
        for part in [&entry.id, ":", &entry.version] {
            self.0.update(part);
        }
    }

    fn finish(self) -> String {
        format!("{SHA256}{}", hex(&self.0.finalize()))
    }
}

/// A document as its file has it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Document<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The hash of its bytes.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// Where it came from, from the directory of the sources.
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    /// Its text.
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    /// Reserved; empty.
    #[serde(default)]
    pub metadata: Metadata,
}

/// What a document says about itself beside its content: an object of which nothing is kept.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Metadata {}

/// A cache that is open for reading. Its manifest is in memory, its documents are not.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    files: Box<dyn Files>,
    manifest: Manifest,
    /// The index of terms, once asked for.
    terms: OnceLock<Option<Terms>>,
    /// What was found to be wrong with the index, which is not used from then on.
    fault: OnceLock<Fault>,
}

impl Cache {
    /// Opens the cache in a directory and checks its manifest: the counts, the names of files, and
    /// the version of the cache.
    ///
    /// # Errors
    /// There is no such directory; the manifest is missing, malformed or contradicts itself;
    /// failures of the file system.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let dir = dir.into();
        match fs::metadata(&dir) {
            Ok(data) if data.is_dir() => Self::open_in(dir.clone(), Box::new(dir)),
            Ok(_) => Err(CacheError::Missing(dir)),
            Err(error) if is_missing(&error) => Err(CacheError::Missing(dir)),
            Err(error) => Err(CacheError::Io(dir, error)),
        }
    }

    /// As [`Cache::open`], through a directory that the caller has opened; messages call it `dir`.
    ///
    /// # Errors
    /// As [`Cache::open`].
    pub(crate) fn open_in(dir: PathBuf, files: Box<dyn Files>) -> Result<Self, CacheError> {
        let bytes = read_inside(&*files, MANIFEST).map_err(|why| why.of(&dir, MANIFEST))?;
        let manifest: Manifest =
            parse(&bytes, MANIFEST).map_err(|fault| CacheError::invalid(&dir, fault))?;
        let faults = check(&manifest);
        if faults.is_empty() {
            Ok(Self {
                dir,
                files,
                manifest,
                terms: OnceLock::new(),
                fault: OnceLock::new(),
            })
        } else {
            Err(CacheError::Invalid(dir, faults))
        }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory's files.
    pub(super) fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// What the cache holds.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The cache as if it had no index of terms: every answer is computed by its definition, from
    /// all documents.
    #[must_use]
    pub fn without_index(self) -> Self {
        Self {
            terms: OnceLock::from(None),
            ..self
        }
    }

    /// What is wrong with the index of terms, if answers so far found it of no use. They are right
    /// all the same.
    #[must_use]
    pub fn index_fault(&self) -> Option<&Fault> {
        self.fault.get()
    }

    /// Chooses documents for a query and a budget in tokens.
    ///
    /// With an index of terms, only documents that are chosen are read; without one, all are.
    /// Contents are held one at a time by each thread, and then those that were chosen. The same
    /// cache, query and budget give the same answer whatever the number of threads, with an index
    /// or without. An index that cannot be used, or contradicts a document that was chosen, is
    /// left aside ([`Cache::index_fault`]).
    ///
    /// # Errors
    /// A document that is read is missing or is not the one the manifest names; failures of the
    /// file system. Of several the first by id, or in the order chosen, is told.
    pub fn resolve(&self, query: &Query, budget: u64) -> Result<Resolution, CacheError> {
        if let Some(measures) = self.indexed(query) {
            let answer = self.answer(query, budget, &measures)?;
            let holds = |document: &Chosen| document.is_measured(query);
            let documents = &answer.documents;
            let right = match documents.len() <= FEW {
                true => documents.iter().all(holds),
                false => documents.par_iter().all(holds),
            };
            if right {
                return Ok(answer);
            }
            self.give_up("contradicts a document".to_owned());
        }
        self.answer(query, budget, &self.measures(query)?)
    }

    /// The answer by these measures, which are in the order of the manifest.
    fn answer(
        &self,
        query: &Query,
        budget: u64,
        measures: &[Measure],
    ) -> Result<Resolution, CacheError> {
        let entries = &self.manifest.documents;
        let candidates: Vec<Candidate<'_>> = entries
            .iter()
            .zip(measures)
            .map(|(entry, &measure)| Candidate {
                id: &entry.id,
                measure,
            })
            .collect();
        let filling = fill(&candidates, budget);
        let read = |&at: &usize| {
            let entry = &entries[at];
            let content = self.content(entry)?;
            let (id, version) = (entry.id.clone(), entry.version.clone());
            Ok(Chosen::new(query, measures[at], id, version, content))
        };
        let chosen = &filling.chosen;
        let documents: Vec<Result<Chosen, CacheError>> = match chosen.len() <= FEW {
            true => chosen.iter().map(read).collect(),
            false => chosen.par_iter().map(read).collect(),
        };
        // The first failure in the order chosen, whichever thread came first.
        let documents = documents.into_iter().collect::<Result<_, _>>()?;
        Ok(Resolution::new(query, budget, &filling, documents))
    }

    /// The measures of all documents in the order of the manifest, from the index of terms, if
    /// there is one that can be used.
    fn indexed(&self, query: &Query) -> Option<Vec<Measure>> {
        let open = || match self.open_terms() {
            Ok(terms) => terms,
            Err(why) => {
                self.give_up(why.to_string());
                None
            }
        };
        let terms = self.terms.get_or_init(open).as_ref()?;
        if self.fault.get().is_some() {
            return None;
        }
        match terms.measures(query) {
            Ok(measures) => Some(measures),
            Err(why) => {
                self.give_up(why.to_string());
                None
            }
        }
    }

    /// Opens the index of terms, if there is one.
    pub(super) fn open_terms(&self) -> Result<Option<Terms>, Unusable> {
        let Some(file) = open_inside(self.files(), TERMS)? else {
            return Ok(None);
        };
        let Manifest {
            cache_version,
            documents,
            ..
        } = &self.manifest;
        Terms::open(file, cache_version, documents.len()).map(Some)
    }

    /// Notes what is wrong with the index, which is not used again.
    fn give_up(&self, message: String) {
        // The first fault is the one to tell.
        let _ = self.fault.set(Fault::new(TERMS, message));
    }

    /// The measures of all documents in the order of the manifest, by their definition: every
    /// document is read.
    fn measures(&self, query: &Query) -> Result<Vec<Measure>, CacheError> {
        let measures: Vec<Result<Measure, CacheError>> = self
            .manifest
            .documents
            .par_iter()
            .map(|entry| Ok(Measure::of(&self.content(entry)?, query)))
            .collect();
        // The first failure by id, whichever thread came first.
        measures.into_iter().collect()
    }

    /// Reads a file of the cache; see [`read_inside`].
    pub(super) fn read(&self, file: &str) -> Result<Vec<u8>, CacheError> {
        read_inside(self.files(), file).map_err(|why| why.of(&self.dir, file))
    }

    /// The content of a document, which must be what the manifest says it is.
    ///
    /// # Errors
    /// The file is missing, is malformed, or holds another document; failures of the file system.
    pub fn content(&self, entry: &Entry) -> Result<String, CacheError> {
        let bytes = self.read(&entry.file)?;
        let document: Document<'_> =
            parse(&bytes, &entry.file).map_err(|fault| CacheError::invalid(&self.dir, fault))?;
        match differs(&document, entry) {
            None => Ok(document.content.into_owned()),
            Some(message) => Err(CacheError::invalid(
                &self.dir,
                Fault::new(&entry.file, message),
            )),
        }
    }
}

/// What is wrong with a document for this entry.
pub(super) fn differs(document: &Document<'_>, entry: &Entry) -> Option<String> {
    if document.id != entry.id {
        return Some(format!(
            "is the document `{}`, not `{}`",
            document.id, entry.id
        ));
    }
    if document.version != entry.version {
        return Some(format!("is another version of `{}`", entry.id));
    }
    (version_of(document.content.as_bytes()) != entry.version)
        .then(|| format!("the content of `{}` is not that of its version", entry.id))
}

/// The version of a document of these bytes: `sha256:` and the hex digits of their hash.
#[must_use]
pub fn version_of(bytes: &[u8]) -> String {
    format!("{SHA256}{}", hex(&Sha256::digest(bytes)))
}

/// What is wrong with a manifest by itself.
fn check(manifest: &Manifest) -> Vec<Fault> {
    let fault = |message: String| Fault::new(MANIFEST, message);
    if manifest.build_config != BuildConfig::default() {
        // Nothing else can be judged.
        let BuildConfig {
            version,
            hash_algorithm,
        } = &manifest.build_config;
        return vec![fault(format!(
            "layout {version} with {hash_algorithm} is not known, only 1 with sha256"
        ))];
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
    // One pass, as lists may be long: what an entry holds is fetched from memory once.
    let mut version = Version::new(&manifest.build_config);
    let mut before: Option<&Entry> = None;
    for entry in documents {
        let Entry { id, file, .. } = entry;
        if !is_document_file(file) {
            faults.push(fault(format!(
                "the file of `{id}`, `{file}`, is not one directly in {DOCUMENTS}/"
            )));
        }
        match before.map(|before| (before.id.cmp(id), &before.id)) {
            Some((Ordering::Equal, _)) => faults.push(fault(format!("`{id}` is listed twice"))),
            Some((Ordering::Greater, before)) => {
                faults.push(fault(format!("`{id}` is listed after `{before}`")));
            }
            _ => {}
        }
        version.add(entry);
        before = Some(entry);
    }
    if version.finish() != manifest.cache_version {
        faults.push(fault(
            "cache_version is not that of the documents listed".to_owned(),
        ));
    }
    faults
}

/// Whether a name stands for a file directly in the directory of documents, on any system.
fn is_document_file(file: &str) -> bool {
    file.strip_prefix(DOCUMENTS)
        .and_then(|file| file.strip_prefix('/'))
        .is_some_and(|name| {
            let leads_away = |byte| matches!(byte, b'/' | b'\\' | b':' | b'\0');
            !matches!(name, "" | "." | "..") && !name.bytes().any(leads_away)
        })
}

/// Reads a file of a cache: the manifest, the index, or one that [`is_document_file`].
///
/// # Errors
/// A file that is missing or not a plain file, or whose directory is a link, is a fault of the
/// cache.
fn read_inside(files: &dyn Files, file: &str) -> Result<Vec<u8>, Unusable> {
    let missing = || Unusable::Fault("is missing".to_owned());
    let mut bytes = Vec::new();
    let mut open = open_inside(files, file)?.ok_or_else(missing)?;
    open.read_to_end(&mut bytes).map_err(Unusable::Io)?;
    Ok(bytes)
}

/// Opens a file of a cache; `None` where there is none.
///
/// # Errors
/// It is not a plain file, or its directory is a link; failures of the file system.
pub(super) fn open_inside(files: &dyn Files, file: &str) -> Result<Option<File>, Unusable> {
    let kind = |path: &str| match files.stat(path) {
        Ok((kind, _)) => Ok(Some(kind)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(Unusable::Io(error)),
    };
    if file.contains('/') {
        match kind(DOCUMENTS)? {
            Some(Kind::Directory) => {}
            Some(_) => return Err(Unusable::Fault("stands in what is no directory".to_owned())),
            None => return Ok(None),
        }
    }
    match kind(file)? {
        Some(Kind::File) => files.open(file).map(Some).map_err(Unusable::Io),
        Some(_) => Err(Unusable::Fault("is no plain file".to_owned())),
        None => Ok(None),
    }
}

/// Reads JSON of a file of the cache.
pub(super) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8], file: &str) -> Result<T, Fault> {
    // Text is checked once as a whole rather than string by string; what is none has its message
    // from the parser.
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    parsed.map_err(|error| Fault::new(file, error.to_string()))
}
