//! Any bytes as the term index of a cache: an answer or an error, never a panic.
//!
//! The first byte chooses how the rest becomes the file. If it is even, the rest is the file.
//! Otherwise the rest patches a valid file, two bytes of offset and one of value at a time, and
//! the checksums are corrected, so that the checks after them are reached.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::SystemTime;

use libfuzzer_sys::fuzz_target;
use pactql::budget::{BuildOptions, Cache, Indexing, Query, build, verify};
use sha2::{Digest, Sha256};

/// The layout of the header; `src/budget/terms/mod.rs` has all of it.
const HEADER: usize = 92;
const DIRECTORY_BYTES: usize = 60;
const DIRECTORY_SUM: usize = 76;
const HEADER_SUM: usize = 84;

/// The directory of a small cache, and its term index.
fn cache() -> &'static (PathBuf, Vec<u8>) {
    static CACHE: OnceLock<(PathBuf, Vec<u8>)> = OnceLock::new();
    CACHE.get_or_init(|| {
        let root = std::env::temp_dir().join(format!("pactql-fuzz-{}", std::process::id()));
        let (sources, cache) = (root.join("sources"), root.join("cache"));
        fs::create_dir_all(&sources).expect("a temporary directory");
        for (name, text) in [
            ("a.md", "rain and rain again"),
            ("b.md", "wind, rain; größe"),
            ("c.md", ""),
        ] {
            fs::write(sources.join(name), text).expect("a file");
        }
        let options = BuildOptions {
            force: true,
            created_at: SystemTime::UNIX_EPOCH,
            index: Indexing::Always,
        };
        build(&sources, &cache, options).expect("a cache");
        let terms = fs::read(cache.join("terms.bin")).expect("a term index");
        (cache, terms)
    })
}

fn sum(bytes: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    sum.copy_from_slice(&Sha256::digest(bytes)[..8]);
    sum
}

/// The valid file, with patches and correct checksums of header and directory.
fn patched(valid: &[u8], patches: &[u8]) -> Vec<u8> {
    let mut file = valid.to_vec();
    for patch in patches.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % file.len();
        file[at] = patch[2];
    }
    let mut length = [0; 8];
    length.copy_from_slice(&file[DIRECTORY_BYTES..DIRECTORY_BYTES + 8]);
    let end = HEADER.saturating_add(usize::try_from(u64::from_le_bytes(length)).unwrap_or(0));
    let directory = sum(file.get(HEADER..end).unwrap_or_default());
    file[DIRECTORY_SUM..HEADER_SUM].copy_from_slice(&directory);
    let header = sum(&file[..HEADER_SUM]);
    file[HEADER_SUM..HEADER].copy_from_slice(&header);
    file
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    let (directory, valid) = cache();
    let file = match choice % 2 {
        0 => rest.to_vec(),
        _ => patched(valid, rest),
    };
    fs::write(directory.join("terms.bin"), file).expect("a file");
    let cache = Cache::open(directory).expect("a good manifest");
    let _ = verify(&cache);
    let _ = cache.resolve(&Query::new("rain größe"), 1_000);
});
