//! Reading a cache and resolving queries with it.

use super::error::{CacheError, Fault};
use super::files::{Files, is_missing};
use super::fill::{Candidate, fill};
use super::manifest::{Document, Entry, MANIFEST, Manifest, check, differs, parse, read_inside};
use super::resolution::{Chosen, Resolution};
use super::score::{Measure, Query};
use crate::support::cancel;
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// Up to this many documents are read on the calling thread: starting others takes longer.
const FEW: usize = 16;

/// How often a query is answered again because the cache was replaced meanwhile.
const AGAIN: usize = 16;

/// An open cache. Its manifest is in memory, its documents are not.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    files: Box<dyn Files>,
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
        match fs::metadata(&dir) {
            Ok(data) if data.is_dir() => Self::open_in(dir.clone(), Box::new(dir)),
            Ok(_) => Err(CacheError::Missing(dir)),
            Err(error) if is_missing(&error) => Err(CacheError::Missing(dir)),
            Err(error) => Err(CacheError::Io(dir, error)),
        }
    }

    /// [`Cache::open`], through a directory that the caller has opened. `dir` is its name in messages.
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
            })
        } else {
            Err(CacheError::Invalid(dir, faults))
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn files(&self) -> &dyn Files {
        &*self.files
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
            match &outcome {
                Err(CacheError::Invalid(..) | CacheError::Io(..)) => {}
                _ => break,
            }
            let current = newest.as_ref().unwrap_or(self);
            let Some(next) = current.replaced() else {
                break;
            };
            outcome = newest.insert(next).resolve_here(query, budget);
        }
        outcome
    }

    /// The cache that is in the directory now, if it was rebuilt since this one was opened.
    fn replaced(&self) -> Option<Self> {
        let next = Self::open_in(self.dir.clone(), self.files.again()?).ok()?;
        let is_other = |one: &Manifest, other: &Manifest| {
            (&one.cache_version, &one.created_at) != (&other.cache_version, &other.created_at)
        };
        is_other(&self.manifest, &next.manifest).then_some(next)
    }

    /// [`Cache::resolve`] of this state of the directory.
    fn resolve_here(&self, query: &Query, budget: u64) -> Result<Resolution, CacheError> {
        self.answer(query, budget, &self.measures(query)?)
    }

    /// The answer for these measures, which are in the order of the manifest.
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
        let tokens = cancel::here();
        let read = |&at: &usize| {
            tokens.within(cancel::check)?;
            let entry = &entries[at];
            let content = self.content(entry)?;
            let (id, version) = (entry.id.clone(), entry.version.clone());
            Ok(Chosen::new(query, measures[at], id, version, content))
        };
        let chosen = &filling.chosen;
        let documents: Vec<Result<Chosen, CacheError>> = if chosen.len() <= FEW {
            chosen.iter().map(read).collect()
        } else {
            chosen.par_iter().map(read).collect()
        };
        // Collecting returns the first error in the order chosen, for any number of threads.
        let documents = documents.into_iter().collect::<Result<_, _>>()?;
        Ok(Resolution::new(query, budget, &filling, documents))
    }

    /// The measures of all documents in the order of the manifest. Reads every document.
    fn measures(&self, query: &Query) -> Result<Vec<Measure>, CacheError> {
        let tokens = cancel::here();
        let measures: Vec<Result<Measure, CacheError>> = self
            .manifest
            .documents
            .par_iter()
            .map(|entry| {
                tokens.within(cancel::check)?;
                Ok(Measure::of(&self.content(entry)?, query))
            })
            .collect();
        // Collecting returns the first error by id, for any number of threads.
        measures.into_iter().collect()
    }

    /// Reads a file of the cache; see [`read_inside`].
    pub(super) fn read(&self, file: &str) -> Result<Vec<u8>, CacheError> {
        read_inside(self.files(), file).map_err(|why| why.of(&self.dir, file))
    }

    /// The content of a document, checked against the manifest.
    ///
    /// # Errors
    /// The file is missing, malformed, or another document; failures of the file system.
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
