//! Reading a cache and resolving queries with it.

use super::error::{CacheError, Fault, Unusable};
use super::files::{Files, is_missing};
use super::fill::{Candidate, fill};
use super::manifest::{
    Document, Entry, MANIFEST, Manifest, TERMS, check, differs, open_inside, parse, read_inside,
};
use super::resolution::{Chosen, Resolution};
use super::score::{Measure, Query};
use super::terms::Terms;
use crate::support::cancel;
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
    /// The index of terms, opened on first use.
    terms: OnceLock<Option<Terms>>,
    /// The first fault of the index, which is not used after that.
    fault: OnceLock<Fault>,
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
                terms: OnceLock::new(),
                fault: OnceLock::new(),
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

    /// The cache without its index of terms: every answer reads all documents.
    pub fn without_index(self) -> Self {
        Self {
            terms: OnceLock::from(None),
            ..self
        }
    }

    /// Why the index of terms is not used, if an answer so far found it damaged. Answers do not
    /// depend on it.
    pub fn index_fault(&self) -> Option<&Fault> {
        self.fault.get()
    }

    /// Chooses documents for a query and a budget in tokens.
    ///
    /// With an index of terms, only the chosen documents are read; without one, all are. Memory:
    /// one document per thread, then the chosen ones. The answer depends on cache, query and budget
    /// alone, not on the number of threads or the index. An index that cannot be read, or that
    /// contradicts a chosen document, is ignored ([`Cache::index_fault`]).
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
        if let Some(measures) = self.indexed(query) {
            let answer = self.answer(query, budget, &measures)?;
            let measured = |document: &Chosen| document.is_measured(query);
            let documents = &answer.documents;
            let right = if documents.len() <= FEW {
                documents.iter().all(measured)
            } else {
                documents.par_iter().all(measured)
            };
            if right {
                return Ok(answer);
            }
            self.give_up("contradicts a document".to_owned());
        }
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

    /// The measures of all documents in the order of the manifest, from the index of terms; `None`
    /// if there is no usable one.
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

    /// Stops using the index, and keeps the reason.
    fn give_up(&self, message: String) {
        // Only the first fault is kept.
        let _ = self.fault.set(Fault::new(TERMS, message));
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
