//! The term index: its answers are those of the definition, whatever bytes are in the file.

use super::{Scratch, answer, faults, text};
use pactql::budget::Measure;
use pactql::budget::{Cache, Indexing, Query, inspect};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::fs;

/// Offsets in the header of the file (the layout is in `docs/budget.md`).
const FINGERPRINT: std::ops::Range<usize> = 12..44;
const DIRECTORY_BYTES: std::ops::Range<usize> = 60..68;
const DIRECTORY_SUM: std::ops::Range<usize> = 76..84;
const HEADER_SUM: std::ops::Range<usize> = 84..92;
const HEADER: usize = 92;

/// A cache with an index of these documents.
fn indexed(name: &str, documents: &[(&str, &str)]) -> Scratch {
    let scratch = Scratch::new(name);
    for (name, content) in documents {
        scratch.write(name, content);
    }
    let built = scratch.build_with(Indexing::Always);
    assert!(built.index_fault().is_none());
    assert_eq!(faults(scratch.cache()), [""; 0]);
    scratch
}

fn terms(scratch: &Scratch) -> Vec<u8> {
    fs::read(scratch.cache().join("terms.bin")).expect("an index")
}

fn put(scratch: &Scratch, bytes: &[u8]) {
    fs::write(scratch.cache().join("terms.bin"), bytes).expect("a file");
}

fn open(scratch: &Scratch) -> Cache {
    Cache::open(scratch.cache()).expect("a good cache")
}

/// The answers with the index and without it, and what was reported about it.
fn both(scratch: &Scratch, query: &str, budget: u64) -> (String, String, Option<String>) {
    let cache = open(scratch);
    let with = answer(&cache, query, budget);
    // Asked twice, because what is known about the index is cached.
    assert_eq!(answer(&cache, query, budget), with);
    let fault = cache.index_fault().map(|fault| fault.to_string());
    let without = answer(&cache.without_index(), query, budget);
    (with, without, fault)
}

/// The first eight bytes of a hash.
fn sum(bytes: &[u8]) -> [u8; 8] {
    Sha256::digest(bytes)[..8].try_into().expect("eight bytes")
}

/// Corrects the checksums of an index of one block.
fn seal(bytes: &mut [u8]) {
    let directory = bytes[DIRECTORY_BYTES].try_into().expect("eight bytes");
    let end = HEADER.saturating_add(u64::from_le_bytes(directory) as usize);
    if (HEADER + 8..=bytes.len()).contains(&end) {
        let block = sum(&bytes[end..]);
        bytes[end - 8..end].copy_from_slice(&block);
        let directory = sum(&bytes[HEADER..end]);
        bytes[DIRECTORY_SUM].copy_from_slice(&directory);
    }
    let header = sum(&bytes[..HEADER_SUM.start]);
    bytes[HEADER_SUM].copy_from_slice(&header);
}

proptest! {
    #![proptest_config(crate::support::random::config(96))]
    #[test]
    fn answers_from_the_index_are_those_of_the_definition(
        contents in prop::collection::btree_map("[a-d]{1,3}", text(), 0..12),
        long in prop::collection::vec("x{60,70}", 0..6),
        query in text(),
        budget in 0_u64..90,
    ) {
        let scratch = Scratch::new("terms-random");
        for (n, (name, content)) in contents.iter().enumerate() {
            let more = long.get(n).map_or("", |long| long);
            scratch.write(&format!("{name}.md"), format!("{content} {more}"));
        }
        scratch.build_with(Indexing::Always);
        let query = format!("{query} {}", long.first().map_or("", |long| long));
        let (with, without, fault) = both(&scratch, &query, budget);
        prop_assert_eq!(&with, &without);
        prop_assert_eq!(fault, None);
        prop_assert_eq!(faults(scratch.cache()), [""; 0]);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
        prop_assert_eq!(pool.install(|| both(&scratch, &query, budget)).0, with);
    }

    #[test]
    fn an_index_that_lies_with_right_checksums_does_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let scratch = indexed("terms-lies", &[("a.md", "x y y"), ("b.md", "y z"), ("c.md", "")]);
        let mut bytes = terms(&scratch);
        for (at, byte) in &changes {
            let at = 8 + at.index(bytes.len() - 8);
            bytes[at] = *byte;
        }
        seal(&mut bytes);
        put(&scratch, &bytes);
        for term in ["x", "y", "z y", ""] {
            let query = Query::new(term);
            let answer = open(&scratch).resolve(&query, 3).expect("an answer");
            prop_assert!(answer.selection.tokens_used <= 3);
            for document in answer.documents {
                let measure = Measure::of(&document.content, &query);
                prop_assert_eq!(measure.score(), document.score);
                prop_assert_eq!(measure.tokens(), document.tokens);
            }
        }
        let changed = bytes != terms(&indexed("terms-honest", &[
            ("a.md", "x y y"), ("b.md", "y z"), ("c.md", ""),
        ]));
        prop_assert_eq!(faults(scratch.cache()).is_empty(), !changed);
    }
}

#[test]
fn every_word_of_many_blocks_is_found_and_no_other() {
    let scratch = Scratch::new("terms-blocks");
    let word = |n: usize| format!("w{:05}", n * 2);
    for document in 0..40 {
        let words: Vec<String> = (0..300)
            .map(|n| word((document * 211 + n * 17) % 5000))
            .collect();
        scratch.write(&format!("{document}.md"), words.join(" "));
    }
    scratch.build_with(Indexing::Always);
    let bytes = terms(&scratch);
    let blocks = u64::from_le_bytes(bytes[52..60].try_into().expect("eight bytes"));
    assert!(blocks > 10, "{blocks}");
    let cache = open(&scratch);
    let plain = open(&scratch).without_index();
    let compare = |query: &str| {
        assert_eq!(
            answer(&cache, query, 2_000),
            answer(&plain, query, 2_000),
            "{query}"
        );
    };
    for n in (0..5000).step_by(41) {
        compare(&word(n));
        compare(&format!("{} w{:05} {}", word(n), n * 2 + 1, word(4999 - n)));
    }
    for query in ["", "a", "zzz", "\u{10FFFF}", "w", "w99999"] {
        compare(query);
    }
    assert!(cache.index_fault().is_none());
    // Several readers share one index.
    let expected = answer(&plain, &word(7), 500);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(answer(&cache, &word(7), 500), expected);
                }
            });
        }
    });
}

#[test]
fn only_documents_that_are_chosen_are_read() {
    let scratch = indexed(
        "terms-lazy",
        &[
            ("a.md", "wheel"),
            ("b.md", "brake"),
            ("c.md", "brake wheel"),
        ],
    );
    let cache = open(&scratch);
    for entry in &cache.manifest().documents[1..] {
        fs::remove_file(scratch.cache().join(&entry.file)).expect("a file");
    }
    assert!(answer(&cache, "wheel", 2).contains("\"a.md\""));
    assert!(cache.resolve(&Query::new("brake"), 2).is_err());
    let plain = cache.without_index();
    assert!(plain.resolve(&Query::new("wheel"), 2).is_err());
    assert_eq!(faults(scratch.cache()).len(), 2);
}

#[test]
fn every_changed_byte_and_every_cut_is_found_and_shows_in_no_answer() {
    let documents = [
        ("a.md", "one two two"),
        ("b.md", "two three"),
        ("c.md", "four"),
    ];
    let scratch = indexed("terms-damage", &documents);
    let whole = terms(&scratch);
    let expected = answer(&open(&scratch), "two four", 4);
    let check = |bytes: &[u8], what: &str| {
        put(&scratch, bytes);
        let (with, without, fault) = both(&scratch, "two four", 4);
        assert_eq!((&with, &without), (&expected, &expected), "{what}");
        let noticed = fault.is_some_and(|fault| fault.starts_with("terms.bin: "));
        assert!(noticed, "{what} is not noticed");
        let found = faults(scratch.cache());
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        assert!(found[0].starts_with("terms.bin: "), "{found:?}");
        assert!(!inspect(&open(&scratch)).expect("readable").valid);
    };
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        check(&bytes, &format!("a change of byte {at}"));
        check(&whole[..at], &format!("a cut at byte {at}"));
    }
    check(&[&whole[..], b"\0"].concat(), "a byte more");
}

#[test]
fn each_fault_of_an_index_is_named() {
    let documents = [("a.md", "one two"), ("b.md", "two three")];
    let scratch = indexed("terms-named", &documents);
    let whole = terms(&scratch);
    let other = terms(&indexed("terms-other", &[("a.md", "one"), ("b.md", "two")]));
    let patched = |at: usize, bytes: &[u8]| {
        let mut patched = whole.clone();
        patched[at..at + bytes.len()].copy_from_slice(bytes);
        seal(&mut patched);
        patched
    };
    let mut adopted = other.clone();
    adopted[FINGERPRINT].copy_from_slice(&whole[FINGERPRINT]);
    seal(&mut adopted);
    for (bytes, message) in [
        (Vec::new(), "ends too early"),
        (b"{}".repeat(50), "is not an index of terms"),
        (patched(8, &[2]), "has the format 2, only 1 is known"),
        (other, "was made for another cache_version"),
        (patched(44, &[3]), "was made for another cache_version"),
        (adopted, "does not have the words of the documents"),
        (
            patched(60, &[0xFF; 8]),
            "ends too early, or something follows it",
        ),
        (
            patched(68, &[0xFF; 8]),
            "ends too early, or something follows it",
        ),
        (patched(52, &[0xFF; 8]), "its directory is damaged"),
        (
            whole[..whole.len() - 1].to_vec(),
            "ends too early, or something follows it",
        ),
    ] {
        put(&scratch, &bytes);
        assert_eq!(faults(scratch.cache()), [format!("terms.bin: {message}")]);
        let (with, without, _) = both(&scratch, "two", 1);
        assert_eq!(with, without, "{message}");
    }
    // If a document is at fault too, only the checksums of the index are verified.
    put(&scratch, &whole);
    let entry = open(&scratch).manifest().documents[0].clone();
    scratch.damage(&entry.file, |_| String::new());
    assert_eq!(faults(scratch.cache()).len(), 1);
}

#[test]
#[cfg(unix)]
fn an_index_that_is_not_a_plain_file_is_not_read() {
    let scratch = indexed("terms-link", &[("a.md", "one two"), ("b.md", "two")]);
    let (inside, outside) = (scratch.cache().join("terms.bin"), scratch.0.join("outside"));
    fs::rename(&inside, &outside).expect("a file");
    std::os::unix::fs::symlink(&outside, &inside).expect("a link");
    let (with, without, fault) = both(&scratch, "two", 9);
    assert_eq!(with, without);
    assert_eq!(fault.as_deref(), Some("terms.bin: is not a plain file"));
    assert_eq!(faults(scratch.cache()), ["terms.bin: is not a plain file"]);
    fs::remove_file(&inside).expect("a link");
    fs::create_dir(&inside).expect("a directory");
    assert_eq!(faults(scratch.cache()), ["terms.bin: is not a plain file"]);
}

#[test]
fn an_index_is_kept_where_it_is_worth_it_and_shows_nowhere_else() {
    let scratch = Scratch::new("terms-when");
    scratch.write("a.md", "one two ".repeat(1000));
    let has = || scratch.cache().join("terms.bin").exists();
    let plain = inspect(&scratch.build()).expect("readable");
    assert!(!has());
    let indexed = inspect(&scratch.build_with(Indexing::Always)).expect("readable");
    assert!(has());
    assert_eq!(indexed, plain);
    let first = terms(&scratch);
    scratch.build_with(Indexing::Always);
    assert_eq!(terms(&scratch), first);
    scratch.write("large.md", "three four ".repeat(100_000));
    scratch.build();
    assert!(has());
    scratch.build_with(Indexing::Never);
    assert!(!has());
    assert_eq!(faults(scratch.cache()), [""; 0]);
}
