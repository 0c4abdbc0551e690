//! Reading a cache and resolving queries with it.

use super::error::CacheError;
use super::files::{Files, check_directory};
use super::fill::{Candidate, fill};
use super::manifest::{
    CachedDocument, Entry, MANIFEST, Manifest, check, differs, parse, read_inside,
};
use super::resolution::{Chosen, Resolution};
use super::score::{Query, ScoreCounts};
use crate::support::cancel;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// How often a query is answered again because the cache was replaced meanwhile.
const AGAIN: usize = 16;

/// An open cache. Its manifest is in memory, its documents are not.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    pub(super) files: Box<dyn Files>,
    manifest: Manifest,
}

impl Cache {
    /// Opens the cache in a directory and checks its manifest: counts, file names, cache version.
    ///
    /// # Errors
    /// There is no such directory; the manifest is missing, malformed or contradicts itself;
    /// failures of the file system.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let dir = dir.into();
        check_directory(&dir)?;
        Self::open_in(dir.clone(), Box::new(dir))
    }

    /// [`Cache::open`] through a directory that is open; `dir` is its name in messages.
    pub(crate) fn open_in(dir: PathBuf, files: Box<dyn Files>) -> Result<Self, CacheError> {
        let bytes = read_inside(&*files, &dir, MANIFEST)?;
        let manifest: Manifest = parse(&bytes, &dir, MANIFEST)?;
        let faults = check(&manifest);
        if !faults.is_empty() {
            return Err(CacheError::Invalid(dir, faults));
        }
        Ok(Self {
            dir,
            files,
            manifest,
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Chooses documents for a query and a budget in tokens.
    ///
    /// Reads every document, on all threads. Memory: one document per thread, then the chosen ones. The
    /// answer depends on cache, query and budget alone, not on the number of threads.
    ///
    /// If the cache is rebuilt meanwhile, the answer is of the new one.
    ///
    /// # Errors
    /// A document is missing or is not the one in the manifest; failures of the file system. Of
    /// several errors the first is returned, by id or in the order chosen.
    pub fn resolve(&self, query: &Query, budget: u64) -> Result<Resolution, CacheError> {
        let mut outcome = self.resolve_here(query, budget);
        let mut newest = None;
        for _ in 0..AGAIN {
            if !matches!(outcome, Err(CacheError::Invalid(..) | CacheError::Io(..))) {
                break;
            }
            let Some(next) = newest.as_ref().unwrap_or(self).replaced() else {
                break;
            };
            outcome = newest.insert(next).resolve_here(query, budget);
        }
        outcome
    }

    /// The cache that is in the directory now, if it was rebuilt since this one was opened.
    fn replaced(&self) -> Option<Self> {
        let next = Self::open_in(self.dir.clone(), self.files.again()?).ok()?;
        let (old, new) = (&self.manifest, &next.manifest);
        let same = old.cache_version == new.cache_version && old.created_at == new.created_at;
        (!same).then_some(next)
    }

    fn resolve_here(&self, query: &Query, budget: u64) -> Result<Resolution, CacheError> {
        let entries = &self.manifest.documents;
        let tokens = cancel::here();
        let candidates = entries.par_iter().map(|entry| {
            tokens.within(cancel::check)?;
            let measure = ScoreCounts::count(&self.content(entry)?, query);
            let id = &*entry.id;
            Ok(Candidate { id, measure })
        });
        let candidates = in_order(candidates)?;
        let filling = fill(&candidates, budget);
        let documents = filling.chosen.par_iter().map(|&at| {
            tokens.within(cancel::check)?;
            let (version, content) = (entries[at].version.clone(), self.content(&entries[at])?);
            Ok(Chosen::new(query, candidates[at], version, content))
        });
        let documents = in_order(documents)?;
        Ok(Resolution::new(query, budget, &filling, documents))
    }

    pub(super) fn read(&self, file: &str) -> Result<Vec<u8>, CacheError> {
        read_inside(&*self.files, &self.dir, file)
    }

    /// The content of a document, checked against the manifest.
    ///
    /// # Errors
    /// The file is missing, malformed, or another document; failures of the file system.
    pub fn content(&self, entry: &Entry) -> Result<String, CacheError> {
        let bytes = self.read(&entry.file)?;
        let document: CachedDocument<String> = parse(&bytes, &self.dir, &entry.file)?;
        match differs(&document, entry) {
            None => Ok(document.content),
            Some(message) => Err(CacheError::invalid(&self.dir, &entry.file, message)),
        }
    }
}

/// What all threads made, or the first error in the order of the list, for any number of threads.
fn in_order<T: Send>(
    made: impl IndexedParallelIterator<Item = Result<T, CacheError>>,
) -> Result<Vec<T>, CacheError> {
    made.collect::<Vec<_>>().into_iter().collect()
}
