//! Choosing documents of a large cache.
//!
//! Measured, over 10,000 documents of 1,000 words (`-- --quick`: 1,000 documents):
//! - `build`, printed first: the time of one pass over the sources, and its peak memory.
//! - `budget/…`, by criterion: opening the cache; opening it and answering, on one thread and on all.
//!
//! The data model: words are drawn from a vocabulary of 50,000 by Zipf's law, so the most frequent
//! ones are in every document and half of the vocabulary is in a few. The same for every run.
//!
//! Caveats: the files are in the page cache. Each document costs a file read, a JSON parse, a SHA-256 and a
//! pass over its words.

use criterion::{Criterion, criterion_group, criterion_main};
use pactql::budget::{BuildOptions, Cache, Query, build};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

mod support;

use support::memory;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Words of a document.
const WORDS: usize = 1_000;

/// Size of the vocabulary.
const VOCABULARY: f64 = 50_000.0;

/// The query: a word of nearly every document, two of some, one of few, and one of none.
const QUERY: &str = "wc Wdb wzzb wbfhg unknown";

/// The token budget: enough for two or three documents.
const BUDGET: u64 = 4_000;

/// The word of a rank: `w` and letters, some with a capital or a full stop.
fn push_word(rank: u64, out: &mut String) {
    out.push(if rank % 17 == 3 { 'W' } else { 'w' });
    let mut rest = rank;
    while rest > 0 {
        out.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    out.push_str(if rank % 23 == 5 { ".\n" } else { " " });
}

/// Documents of words drawn by Zipf's law, in a directory.
fn write_sources(dir: &Path, documents: usize) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for document in 0..documents {
        let mut text = String::with_capacity(WORDS * 7);
        for _ in 0..WORDS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let unit = (state >> 11) as f64 / (1_u64 << 53) as f64;
            push_word(VOCABULARY.powf(unit) as u64, &mut text);
        }
        let mut path = dir.join(format!("{:02}", document % 100));
        fs::create_dir_all(&path).expect("a directory");
        path.push(format!("{document}.md"));
        fs::write(path, text).expect("a file");
    }
}

/// The cache of the bench, built once in a scratch directory of the target directory.
fn cache() -> PathBuf {
    let documents = if quick() { 1_000 } else { 10_000 };
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-budget-{documents}"));
    let (sources, cache) = (dir.join("sources"), dir.join("cache"));
    if !sources.exists() {
        fs::create_dir_all(&sources).expect("a directory");
        write_sources(&sources, documents);
    }
    let options = BuildOptions {
        force: true,
        created_at: UNIX_EPOCH,
    };
    let once = || build(&sources, &cache, options).expect("a cache");
    let (_, _, peak) = memory::measure(once);
    let time = fastest(3, &mut once_timed(|| drop(once())));
    let largest = fs::read_dir(cache.join("documents")).expect("documents");
    let sizes = largest.map(|file| file.and_then(|file| file.metadata()).expect("a file").len());
    let (total, largest) = sizes.fold((0, 0), |(sum, most), size| (sum + size, most.max(size)));
    println!(
        "build: {documents} documents, {total} bytes, the largest {largest}; {time:.2?}; \
         at most {peak} bytes held"
    );
    cache
}

fn quick() -> bool {
    std::env::args().any(|argument| argument == "--quick")
}

fn once_timed(mut run: impl FnMut()) -> impl FnMut() -> Duration {
    move || {
        let start = Instant::now();
        run();
        start.elapsed()
    }
}

fn fastest(runs: usize, timed: &mut dyn FnMut() -> Duration) -> Duration {
    (0..runs).map(|_| timed()).min().unwrap_or_default()
}

fn ask(dir: &Path) -> String {
    let cache = Cache::open(dir).expect("a good cache");
    let answer = cache.resolve(&Query::new(QUERY), BUDGET);
    answer.expect("a good cache").to_json(false).expect("JSON")
}

fn resolve(criterion: &mut Criterion) {
    let dir = cache();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let one = one.expect("a thread");
    assert_eq!(ask(&dir), one.install(|| ask(&dir)));
    let mut group = criterion.benchmark_group("budget");
    group.bench_function("open", |bencher| {
        bencher.iter(|| Cache::open(&dir).expect("a good cache"));
    });
    group.bench_function("one thread", |bencher| {
        bencher.iter(|| one.install(|| ask(&dir)));
    });
    group.bench_function("all threads", |bencher| bencher.iter(|| ask(&dir)));
    group.finish();
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(10, 2_000);
    targets = resolve
}
criterion_main!(benches);
