//! The tools over caches of documents (source 004, RUNTIME §6).

use super::arguments::Arguments;
use super::tools::{Answer, ServerState};
use crate::budget::cache::MANIFEST;
use crate::budget::{self, Cache, CacheError, Query};
use crate::present::{Failure, answer, notes};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// `context.resolve`: what `pactql context resolve` prints.
pub(super) fn resolve(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let cache = open(state, arguments)?;
    let query = Query::new(arguments.needed("query"));
    let budget = arguments.count("budget").unwrap_or_default();
    let result = answer::json(&cache.resolve(&query, budget)?)?;
    let said = notes::of_cache(&cache);
    Ok(Answer { result, said })
}

/// `context.inspect_cache`: what `pactql context inspect` prints.
pub(super) fn inspect_cache(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let cache = open(state, arguments)?;
    Ok(answer::json(&budget::inspect(&cache)?)?.into())
}

/// The cache that arguments name, read by that name so that messages call it so.
fn open(state: &ServerState, arguments: &Arguments) -> Result<Cache, Failure> {
    let name = arguments.needed("cache");
    state
        .root
        .resolve(name)
        .map_err(|refusal| refusal.or_missing(|| missing(name)))?;
    Ok(Cache::open(name)?)
}

fn missing(name: &str) -> Failure {
    CacheError::Missing(PathBuf::from(name)).into()
}

/// What `context.list_caches` answers. Members stand in the order they are printed in.
#[derive(Debug, Serialize)]
struct Listing {
    caches: Vec<Listed>,
}

/// A directory that can hold a cache.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Listed {
    /// From the directory served, with forward slashes.
    path: String,
    /// Whether it has a manifest that is a plain file. It is not read.
    has_manifest: bool,
}

/// `context.list_caches`: the directories right below the root, or below a directory in it, in
/// the order of the bytes of their paths. Links are no directories here.
pub(super) fn list_caches(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let name = arguments.text("root").unwrap_or(".");
    let place = state
        .root
        .resolve(name)
        .map_err(|refusal| refusal.or_missing(|| missing(name)))?;
    if !place.is_dir() {
        return Err(missing(name));
    }
    let caches = directories(&place, name).map_err(|error| Failure::file(name, &error))?;
    Ok(answer::json(&Listing { caches })?.into())
}

/// The directories right below one. A name that is no UTF-8 cannot be asked for and is left out.
fn directories(place: &Path, name: &str) -> io::Result<Vec<Listed>> {
    let prefix: Vec<&str> = Path::new(name)
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let mut caches = Vec::new();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        let Ok(last) = entry.file_name().into_string() else {
            continue;
        };
        if entry.file_type()?.is_dir() {
            let path = [&prefix[..], &[&last]].concat().join("/");
            let manifest = fs::symlink_metadata(entry.path().join(MANIFEST));
            let has_manifest = manifest.is_ok_and(|data| data.is_file());
            caches.push(Listed { path, has_manifest });
        }
    }
    caches.sort_unstable();
    Ok(caches)
}
