//! Choosing documents of a large cache, with its term index and by scoring every document.
//!
//! Measured, over 10,000 documents of 1,000 words (`-- --quick`: 1,000 documents):
//! - `ratio`, printed first: a whole run of `pactql context resolve`, and the library from opening
//!   the cache to the answer; each with the index and by definition (every document is read and
//!   scored), on one thread and on all. Runs are interleaved, the fastest counts. The answers are
//!   checked to be the same bytes.
//! - `build`, printed too: the time of one pass over the sources, its peak memory, and the bytes of
//!   the index.
//! - `budget/…`: the library's part again, by criterion.
//!
//! The data model: words are drawn from a vocabulary of 50,000 by Zipf's law, so the most frequent
//! ones are in every document and half of the vocabulary is in a few. The same for every run.
//!
//! Caveats: the files are in the page cache. By definition, each document costs a file read, a JSON
//! parse, a SHA-256 and a pass over its words; with the index, only chosen documents do.

use criterion::{Criterion, criterion_group, criterion_main};
use pactql::budget::{BuildOptions, Cache, Indexing, Query, build};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
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
        index: Indexing::Always,
    };
    let once = || build(&sources, &cache, options).expect("a cache");
    let (_, _, peak) = memory::measure(once);
    let time = fastest(3, &mut once_timed(|| drop(once())));
    let index = fs::metadata(cache.join("terms.bin"))
        .expect("an index")
        .len();
    let largest = fs::read_dir(cache.join("documents")).expect("documents");
    let sizes = largest.map(|file| file.and_then(|file| file.metadata()).expect("a file").len());
    let (total, largest) = sizes.fold((0, 0), |(sum, most), size| (sum + size, most.max(size)));
    println!(
        "build: {documents} documents, {total} bytes, the largest {largest}; {time:.2?}; \
         at most {peak} bytes held, the index has {index}"
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

/// Opens the cache and resolves the query, with the index or by definition.
fn ask(dir: &Path, indexed: bool) -> String {
    let mut cache = Cache::open(dir).expect("a good cache");
    if !indexed {
        cache = cache.without_index();
    }
    let answer = cache.resolve(&Query::new(QUERY), BUDGET);
    let answer = answer.expect("a good cache").to_json(false).expect("JSON");
    assert!(cache.index_fault().is_none());
    answer
}

/// Runs the program on `threads` threads; 0 means all.
fn run(dir: &Path, threads: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pactql"))
        .env("RAYON_NUM_THREADS", threads)
        .args(["context", "resolve", "--query", QUERY, "--cache"])
        .arg(dir)
        .args(["--budget", &BUDGET.to_string()])
        .output()
        .expect("the program runs");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Prints how much faster the index is. The cache is kept for the other benches.
fn ratio(criterion: &mut Criterion) {
    let dir = cache();
    // The program has no option to ignore the index, so a cache without one is used.
    let plain = dir.with_file_name("plain");
    if !plain.exists() {
        let copy = Command::new("cp").arg("-r").arg(&dir).arg(&plain).status();
        assert!(copy.expect("cp runs").success());
        fs::remove_file(plain.join("terms.bin")).expect("an index");
    }
    assert_eq!(ask(&dir, true), ask(&dir, false));
    assert_eq!(run(&dir, "0"), run(&plain, "0"));
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let one = one.expect("a thread");
    let mut best = [Duration::MAX; 6];
    for _ in 0..15 {
        let contenders: [&mut dyn FnMut(); 6] = [
            &mut || drop(run(&dir, "0")),
            &mut || drop(run(&plain, "1")),
            &mut || drop(run(&plain, "0")),
            &mut || drop(ask(&dir, true)),
            &mut || drop(one.install(|| ask(&dir, false))),
            &mut || drop(ask(&dir, false)),
        ];
        for (best, contender) in best.iter_mut().zip(contenders) {
            *best = fastest(1, &mut once_timed(contender)).min(*best);
        }
    }
    let threads = rayon::current_num_threads();
    for (name, best) in ["program", "library"].into_iter().zip(best.chunks(3)) {
        let [index, one, all] = [best[0], best[1], best[2]];
        let times = |other: Duration| other.as_secs_f64() / index.as_secs_f64();
        println!(
            "{name}: from the index {index:.2?}; by definition on one thread {one:.2?}, {:.1} times, \
             on {threads} {all:.2?}, {:.1} times",
            times(one),
            times(all)
        );
    }
    let mut group = criterion.benchmark_group("budget");
    group.bench_function("open", |bencher| {
        bencher.iter(|| Cache::open(&dir).expect("a good cache"));
    });
    group.bench_function("index", |bencher| bencher.iter(|| ask(&dir, true)));
    group.bench_function("definition", |bencher| bencher.iter(|| ask(&dir, false)));
    group.finish();
}

criterion_group! {
    name = benches;
    config = support::timing::criterion(10, 2_000);
    targets = ratio
}
criterion_main!(benches);
