//! The tools over caches of documents (source 004, RUNTIME §6).

use super::arguments::Arguments;
use super::state::{Answer, ServerState};
use crate::budget::files::is_missing;
use crate::budget::manifest::MANIFEST;
use crate::budget::{self, Cache, CacheError, Query};
use crate::present::{Failure, answer, notes};
use cap_std::fs::Dir;
use serde::Serialize;
use std::io;
use std::path::{Component, Path, PathBuf};

/// `context_resolve`: what `pactql context resolve` prints.
pub(super) fn resolve(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let cache = open(state, arguments)?;
    let query = Query::new(arguments.needed("query"));
    let budget = arguments.count("budget").unwrap_or_default();
    let result = answer::json(&cache.resolve(&query, budget)?)?;
    let said = notes::of_cache(&cache);
    Ok(Answer { result, said })
}

/// `context_inspect_cache`: what `pactql context inspect` prints.
pub(super) fn inspect_cache(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let cache = open(state, arguments)?;
    Ok(answer::json(&budget::inspect(&cache)?)?.into())
}

/// The cache that the arguments name; messages call it by that name.
fn open(state: &ServerState, arguments: &Arguments) -> Result<Cache, Failure> {
    let name = arguments.needed("cache");
    let dir = directory(state, name)?;
    Ok(Cache::open_in(PathBuf::from(name), Box::new(dir))?)
}

/// Opens a directory below the root.
fn directory(state: &ServerState, name: &str) -> Result<Dir, Failure> {
    let place = state
        .root
        .resolve(name)
        .map_err(|refusal| refusal.or_missing(|| missing(name)))?;
    state.root.handle().open_dir(place).map_err(|error| {
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
struct Listing {
    caches: Vec<Listed>,
}

/// A directory that can hold a cache.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Listed {
    /// Relative to the root, with forward slashes.
    path: String,
    /// Whether it has a manifest that is a plain file. The manifest is not read.
    has_manifest: bool,
}

/// `context_list_caches`: the directories directly in the root, or in a directory below it, in
/// the byte order of their paths. Links are left out.
pub(super) fn list_caches(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let name = arguments.text("root").unwrap_or(".");
    let dir = directory(state, name)?;
    let caches = directories(&dir, name).map_err(|error| Failure::file(name, &error))?;
    Ok(answer::json(&Listing { caches })?.into())
}

/// The directories in `dir`, which is called `name`. One whose name is not UTF-8 is left out:
/// a client cannot name it.
fn directories(dir: &Dir, name: &str) -> io::Result<Vec<Listed>> {
    let prefix: Vec<&str> = Path::new(name)
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let mut caches = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let Ok(last) = entry.file_name().into_string() else {
            continue;
        };
        if entry.file_type()?.is_dir() {
            let path = [&prefix[..], &[&last]].concat().join("/");
            let manifest = dir.symlink_metadata(Path::new(&last).join(MANIFEST));
            let has_manifest = manifest.is_ok_and(|data| data.is_file());
            caches.push(Listed { path, has_manifest });
        }
    }
    caches.sort_unstable();
    Ok(caches)
}
