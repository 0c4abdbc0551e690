//! The tools over caches of documents (source 004, RUNTIME §6).

use super::found::joined;
use super::root::{CacheDir, plain};
use super::state::ServerState;
use crate::app::calls::CallAnswer;
use crate::app::calls::arguments::Arguments;
use crate::app::present::{Exit, Failure, Result, answer};
use crate::budget::files::is_missing;
use crate::budget::manifest::MANIFEST;
use crate::budget::{self, Cache, CacheError, Query};
use cap_std::fs::Dir;
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// `context_resolve`: what `pactql context resolve` prints.
pub(super) fn resolve(state: &ServerState, arguments: &Arguments) -> Result<CallAnswer> {
    let cache = open(state, arguments)?;
    let query = Query::new(arguments.needed("query"));
    let budget = arguments.count("budget").unwrap_or_default();
    Ok(answer::json(&cache.resolve(&query, budget)?)?.into())
}

/// The result of `context_inspect_cache`. Members are in the order in which they are printed.
#[derive(Debug, Default, Serialize)]
struct InspectedCache {
    /// As the manifest has it; empty if it cannot be read.
    cache_version: String,
    /// As the manifest has it; 0 if it cannot be read.
    document_count: u64,
    /// The bytes of the plain files directly in the cache.
    total_bytes: u64,
    /// Whether every file agrees with the manifest.
    valid: bool,
}

/// `context_inspect_cache`: the figures that the interface of caches defines. A manifest may be
/// missing or damaged.
pub(super) fn inspect_cache(state: &ServerState, arguments: &Arguments) -> Result<CallAnswer> {
    let name = arguments.needed("cache");
    let dir = directory(state, name)?;
    let failed = |error: io::Error| Failure::output(name, &error);
    let mut found = InspectedCache::default();
    for entry in dir.entries().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_file() {
            found.total_bytes += entry.metadata().map_err(failed)?.len();
        }
    }
    match open(state, arguments) {
        Ok(cache) => {
            found.cache_version = cache.manifest().cache_version.clone();
            found.document_count = cache.manifest().document_count as u64;
            found.valid = budget::verify(&cache)?.is_empty();
        }
        Err(failure) if failure.exit() == Exit::Input => {
            let is_file = dir
                .symlink_metadata(MANIFEST)
                .is_ok_and(|data| data.is_file());
            let bytes = is_file.then(|| dir.read(MANIFEST).ok()).flatten();
            let manifest = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let manifest: Value = manifest.unwrap_or_default();
            let version = manifest["cache_version"].as_str().unwrap_or_default();
            found.cache_version = version.to_owned();
            found.document_count = manifest["document_count"].as_u64().unwrap_or(0);
        }
        Err(failure) => return Err(failure),
    }
    Ok(answer::json(&found)?.into())
}

fn open(state: &ServerState, arguments: &Arguments) -> Result<Cache> {
    let name = arguments.needed("cache");
    let dir = at_place(state, name, |place| {
        CacheDir::open(&state.root.handle, place)
    })?;
    Ok(Cache::open_in(PathBuf::from(name), Box::new(dir))?)
}

fn directory(state: &ServerState, name: &str) -> Result<Dir> {
    at_place(state, name, |place| state.root.handle.open_dir(place))
}

fn at_place<T>(
    state: &ServerState,
    name: &str,
    open: impl FnOnce(PathBuf) -> io::Result<T>,
) -> Result<T> {
    let place = state.root.resolve(name)?;
    open(place.ok_or_else(|| missing(name))?).map_err(|error| {
        if is_missing(&error) {
            missing(name)
        } else {
            Failure::file(name, &error)
        }
    })
}

fn missing(name: &str) -> Failure {
    CacheError::Missing(PathBuf::from(name)).into()
}

/// The result of `context_list_caches`. Members are in the order in which they are printed.
#[derive(Debug, Serialize)]
struct CacheListing {
    caches: Vec<ListedCache>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct ListedCache {
    /// Relative to the root, with forward slashes.
    path: String,
    /// Whether it has a manifest that is a plain file. The manifest is not read.
    has_manifest: bool,
}

/// `context_list_caches`: the directories directly in the root, or in a directory below it, in
/// the byte order of their paths. Links are left out.
pub(super) fn list_caches(state: &ServerState, arguments: &Arguments) -> Result<CallAnswer> {
    let name = arguments.text("root").unwrap_or(".");
    let dir = directory(state, name)?;
    let caches = directories(&dir, &plain(name)).map_err(|error| Failure::file(name, &error))?;
    Ok(answer::json(&CacheListing { caches })?.into())
}

/// The directories in `dir`, which is called `name`. One whose name is not UTF-8 is left out:
/// a client cannot name it.
fn directories(dir: &Dir, name: &str) -> io::Result<Vec<ListedCache>> {
    let mut caches = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let Ok(last) = entry.file_name().into_string() else {
            continue;
        };
        if entry.file_type()?.is_dir() {
            let manifest = dir.symlink_metadata(Path::new(&last).join(MANIFEST));
            let path = joined(name, &last);
            let has_manifest = manifest.is_ok_and(|data| data.is_file());
            caches.push(ListedCache { path, has_manifest });
        }
    }
    caches.sort_unstable();
    Ok(caches)
}
