//! Damaged inputs: many of each kind that the crate reads, made from good ones (a thousand in CI). Each gives an answer or
//! an error, without a panic, and with memory and work that are linear in the input.
//!
//! Memory and work are counted as bytes requested from the allocator, which are the same on every machine.
//! There is one test function, so that nothing else allocates while it counts.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "support/cases.rs"]
mod cases;
#[cfg(feature = "store")]
#[path = "support/ctrace.rs"]
mod ctrace;
#[path = "../benches/support/memory.rs"]
mod memory;
#[path = "support/mutate.rs"]
mod mutate;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use memory::{Counting, asked_by, measure};
use mutate::Mutations;
use pactql::budget::{BuildOptions, Cache, Query, build, verify};
use pactql::logs::{ImportOptions, ImportReport, Imported, import, write_session};
use pactql::{Engine, Session};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Damaged inputs of each kind.
fn each() -> usize {
    cases::share(4_000) as usize
}

/// The most memory at one moment: so many times the input, and what a report of faults takes.
const MEMORY: (usize, usize) = (8, 256 << 10);

/// The most bytes requested in all. More work than this would not be linear.
const WORK: (usize, usize) = (128, 256 << 10);

/// What the readings of one kind came to.
#[derive(Default)]
struct Seen {
    read: usize,
    refused: usize,
    /// The largest memory and work beyond what does not depend on the input, as times the input.
    memory: f64,
    work: f64,
}

/// Reads [`each`] of the damaged versions of an input. `read` says whether it was an input all the same.
fn damage(name: &str, good: &[u8], mut read: impl FnMut(&[u8]) -> bool) {
    assert!(read(good), "{name} is good");
    let mut seen = Seen::default();
    for (number, bad) in Mutations::of(good).take(each()).enumerate() {
        let (ok, _, peak) = measure(|| read(&bad));
        if ok {
            seen.read += 1
        } else {
            seen.refused += 1
        }
        let times = |bytes: usize, fixed: usize| {
            bytes.saturating_sub(fixed) as f64 / bad.len().max(1) as f64
        };
        let used = times(peak, MEMORY.1);
        seen.memory = seen.memory.max(used);
        assert!(
            used <= MEMORY.0 as f64,
            "{name} {number}: {peak} bytes for {}",
            bad.len()
        );
        if number % 10 == 0 {
            let work = times(asked_by(|| read(&bad)), WORK.1);
            seen.work = seen.work.max(work);
            assert!(
                work <= WORK.0 as f64,
                "{name} {number}: {work} times the input"
            );
        }
    }
    let Seen {
        read,
        refused,
        memory,
        work,
    } = seen;
    println!(
        "{name}: {read} read, {refused} refused, memory {memory:.1} and work {work:.1} times the input"
    );
    assert!(refused > each() / 20, "{name}: only {refused} were damaged");
}

/// A session, asked and written.
fn use_session(session: &Session) {
    let engine = Engine::new();
    for selector in ["@t0 .cb", "@* .cb[content~'a.c']"] {
        if let Ok(rows) = engine.rows(session, selector) {
            let _ = rows.to_ids().len();
        }
    }
    let history = session.history();
    let mut out = Vec::new();
    let working = history.working().map(|snapshot| &**snapshot);
    write_session(history.committed(), working, false, &mut out).expect("memory");
}

/// What an import writes is a session.
fn reads_back(imported: &Imported) {
    for session in &imported.sessions {
        let mut written = Vec::new();
        session
            .recording
            .write_jsonl(&mut written, false)
            .expect("memory");
        let read = Session::from_slice(&written).err();
        assert!(
            read.is_none(),
            "{read:?}\n{}",
            String::from_utf8_lossy(&written)
        );
    }
}

/// Whether no line of a log was left out as malformed.
fn has_every_line(report: &ImportReport) -> bool {
    report.to_json()["lines"]["skipped"]["malformed"].is_null()
}

/// The files below a directory, in order.
fn below(place: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(place).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(below(&path))
        } else {
            files.push(path)
        }
    }
    files.sort();
    files
}

#[test]
fn damaged_inputs_are_answered_or_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["support-agent.jsonl", "greenhouse.jsonl"] {
        let good = fs::read(root.join("fixtures").join(name)).expect("a fixture");
        damage(name, &good, |bytes| {
            let session = Session::from_slice(bytes);
            let _ = session.as_ref().map(use_session);
            session.is_ok()
        });
    }
    for path in below(&root.join("tests/cases/logs")) {
        let name = path
            .strip_prefix(root)
            .expect("below")
            .display()
            .to_string();
        let good = fs::read(&path).expect("a log");
        // A line that is damaged is refused, or left out and counted.
        for (strict, how) in [(true, "strict"), (false, "tolerant")] {
            let options = ImportOptions {
                strict,
                ..ImportOptions::default()
            };
            let read = |bytes: &[u8]| {
                let imported = import(bytes, &options);
                imported.is_ok_and(|imported| strict || has_every_line(&imported.report))
            };
            // A request alone is no whole log in every format.
            if good.len() > 800 && read(&good) {
                damage(&format!("{name}, {how}"), &good, read);
                for bad in Mutations::of(&good).take(each() / 4) {
                    let _ = import(&bad, &options).map(|imported| reads_back(&imported));
                }
            }
        }
    }
    let place = std::env::temp_dir().join(format!("pactql-mutations-{}", std::process::id()));
    caches(&place);
    #[cfg(feature = "store")]
    {
        stores(&place);
        logs_of_ctxdiff(&place);
    }
    #[cfg(feature = "parquet")]
    copies(&place);
    fs::remove_dir_all(&place).expect("the directory");
}

fn caches(place: &Path) {
    let (sources, cache) = (place.join("sources"), place.join("cache"));
    fs::create_dir_all(&sources).expect("a directory");
    for n in 0..30 {
        let text = format!("document {n} about rain, wind and refunds, größe {n}\n");
        fs::write(sources.join(format!("{n}.md")), text.repeat(5)).expect("a source");
    }
    let options = BuildOptions {
        force: false,
        created_at: UNIX_EPOCH,
    };
    let manifest = build(&sources, &cache, options).expect("a cache");
    let document = manifest.documents[0].file.clone();
    for name in ["manifest.json", &document] {
        let path = cache.join(name);
        let good = fs::read(&path).expect("a file of the cache");
        let query = Query::new("rain größe");
        damage(name, &good, |bytes| {
            fs::write(&path, bytes).expect("a file");
            let Ok(opened) = Cache::open(&cache) else {
                return false;
            };
            let sound = verify(&opened).is_ok_and(|faults| faults.is_empty());
            let answer = opened.resolve(&query, 1_000);
            assert!(!sound || answer.is_ok(), "{name}: a sound cache answers");
            sound
        });
        fs::write(&path, good).expect("a file");
    }
}

#[cfg(feature = "store")]
fn stores(place: &Path) {
    use pactql::Store;
    let path = place.join("store.db");
    let url = path.to_str().expect("UTF-8").to_owned();
    let session =
        Session::from_slice(include_bytes!("../fixtures/greenhouse.jsonl")).expect("a session");
    let store = Store::connect(&url).expect("a store");
    store.import("talk", &session, None).expect("an import");
    drop(store);
    let good = fs::read(&path).expect("the store");
    let read = |bytes: &[u8]| {
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(place.join(format!("store.db{ending}")));
        }
        fs::write(&path, bytes).expect("the store");
        let Ok(store) = Store::connect(&url) else {
            return false;
        };
        if let Ok(session) = store.session("talk") {
            let _ = Engine::new()
                .rows(&session, "@t0 .cb")
                .map(|rows| rows.count());
        }
        store.verify().is_ok_and(|damage| damage.is_empty())
    };
    damage("store.db", &good, read);
}

#[cfg(feature = "store")]
fn logs_of_ctxdiff(place: &Path) {
    let good = ctrace::ctrace(&place.join("good.ctrace"), true);
    let options = ImportOptions::default();
    damage("ctrace", &good, |bytes| {
        import(bytes, &options).is_ok_and(|imported| has_every_line(&imported.report))
    });
    for bad in Mutations::of(&good).take(each() / 4) {
        let _ = import(&bad, &options).map(|imported| reads_back(&imported));
    }
}

/// Each file of a copy as Parquet files: an error, or a store that answers. The files share the cases, as each makes a store.
#[cfg(feature = "parquet")]
fn copies(place: &Path) {
    use pactql::Store;
    use pactql::store::ParquetExport;
    let copy = place.join("copy");
    let open = |name: &str| {
        for ending in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(place.join(format!("{name}{ending}")));
        }
        Store::open(place.join(name)).expect("a store")
    };
    let store = open("copied.db");
    let session =
        Session::from_slice(include_bytes!("../fixtures/greenhouse.jsonl")).expect("a session");
    store.import("talk", &session, None).expect("an import");
    let what = ParquetExport::default().buckets(1);
    store.export_parquet(&copy, &what).expect("a copy");
    let files = below(&copy);
    let cases = each().div_ceil(files.len()).max(8);
    let mut refused = 0;
    for path in &files {
        let good = fs::read(path).expect("a file");
        for bad in Mutations::of(&good).take(cases) {
            fs::write(path, bad).expect("a file");
            let store = open("imported.db");
            if store.import_parquet(&copy).is_err() {
                refused += 1;
            } else if let Ok(session) = store.session("talk") {
                let rows = Engine::new().rows(&session, "@t0 .cb");
                let _ = (rows.map(|rows| rows.count()), store.verify());
            }
        }
        fs::write(path, good).expect("a file");
    }
    println!("copy: {refused} of {} refused", cases * files.len());
    assert!(
        refused > cases * files.len() / 4,
        "only {refused} were damaged"
    );
    let store = open("imported.db");
    store.import_parquet(&copy).expect("the good copy");
}
