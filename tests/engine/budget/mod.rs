//! Budgeted selection: the rules of source 004 one by one, and a plain implementation of them.

mod blocks;
mod caches;

use pactql::budget::{BuildOptions, build};
use pactql::budget::{Cache, CacheError, Query, verify};
use proptest::prelude::*;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// A directory for one test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("budget-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("sources")).expect("a directory");
        Self(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.0.join("sources").join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, content).expect("a file");
    }

    fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }

    fn try_build(&self, force: bool) -> Result<Cache, CacheError> {
        let options = BuildOptions {
            force,
            created_at: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        };
        build(&self.0.join("sources"), &self.cache(), options)?;
        Cache::open(self.cache())
    }

    fn build(&self) -> Cache {
        self.try_build(true).expect("the sources are good")
    }

    fn damage(&self, file: &str, with: impl FnOnce(String) -> String) {
        let path = self.cache().join(file);
        let text = fs::read_to_string(&path).expect("a file of the cache");
        fs::write(path, with(text)).expect("a file");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn answer(cache: &Cache, query: &str, budget: u64) -> String {
    let answer = cache.resolve(&Query::new(query), budget);
    answer.expect("a good cache").to_json(false).expect("JSON")
}

fn chosen(cache: &Cache, query: &str, budget: u64) -> Vec<String> {
    let answer = cache.resolve(&Query::new(query), budget);
    let documents = answer.expect("a good cache").documents;
    documents.into_iter().map(|document| document.id).collect()
}

/// The faults of a cache, found on opening or verifying it.
fn faults(dir: PathBuf) -> Vec<String> {
    let found = match Cache::open(dir) {
        Ok(cache) => verify(&cache).expect("a readable cache"),
        Err(error) => error.faults().to_vec(),
    };
    found.iter().map(ToString::to_string).collect()
}

/// Source 004, implemented literally.
fn by_definition(documents: &[(String, String)], query: &str, budget: u64) -> Vec<(String, f32)> {
    let query = query.to_lowercase();
    let terms: HashSet<&str> = query.split_whitespace().collect();
    let mut scored: Vec<(f32, &str, u64)> = Vec::new();
    for (id, content) in documents {
        let lower = content.to_lowercase();
        let words: Vec<&str> = lower.split_whitespace().collect();
        let matches = words.iter().filter(|word| terms.contains(**word)).count();
        let score = match words.len() {
            0 => 0.0,
            words => matches as f32 / words as f32,
        };
        scored.push((score, id, (content.len() as u64).div_ceil(4)));
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let mut used = 0;
    let mut chosen = Vec::new();
    for (score, id, tokens) in scored {
        if budget > 0 && used + tokens <= budget {
            used += tokens;
            chosen.push((id.to_owned(), score));
        }
    }
    chosen
}

/// Texts of few different words, so that documents share some, with every kind of white space.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "a", "A", "b", "ab", "ΟΔΟΣ", "οδος", "Σ", "ß", "İ", "i\u{307}", "Ǆ", "a\u{301}", "'Σ'",
    ]);
    let space = prop::sample::select(vec![" ", "\n", "\t", "\u{a0}", "\u{2003}", "\u{85}", "  "]);
    prop::collection::vec((word, space), 0..12).prop_map(|parts| {
        let mut text = String::new();
        for (word, space) in parts {
            text.push_str(word);
            text.push_str(space);
        }
        text
    })
}
