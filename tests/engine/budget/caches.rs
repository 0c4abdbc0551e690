//! Scores, filling and caches: the rules of source 004, random documents, damaged caches.

use super::{Scratch, answer, by_definition, chosen, faults, text};
use pactql::budget::ScoreCounts;
use pactql::budget::{BuildOptions, build};
use pactql::budget::{Cache, CacheError, Query, inspect};
use pactql::budget::{Candidate, fill};
use proptest::prelude::*;
use std::fs;
use std::time::UNIX_EPOCH;

#[test]
fn the_answer_is_byte_for_byte_that_of_source_004() {
    let scratch = Scratch::new("golden");
    scratch.write("docs/Deploy.md", "Deployment deployment guide");
    scratch.write("docs/other.md", "Nothing\tof interest.\n");
    scratch.write("docs/cut.md", "deployment ".repeat(9));
    let cache = scratch.build();
    // Fields in the order of "Output"; words of the query in lower case; tokens are a quarter of
    // the bytes, rounded up; what does not fit is skipped and later documents may fit.
    assert_eq!(
        answer(&cache, "DEPLOYMENT", 13),
        "{\"documents\":[\
         {\"id\":\"docs/deploy.md\",\
         \"version\":\"sha256:aa0349b5c2f3dff1a18591eaf0e8f3bbe570ba1e29f71f89ff2b0f990409dfca\",\
         \"content\":\"Deployment deployment guide\",\"score\":0.6666667,\"tokens\":7,\
         \"why\":{\"query_terms\":[\"deployment\"],\"term_matches\":2,\"total_words\":3}},\
         {\"id\":\"docs/other.md\",\
         \"version\":\"sha256:0264d6175a798611073a69daa7bd4b018694607b577fc73f0a1f8650ece44988\",\
         \"content\":\"Nothing\\tof interest.\\n\",\"score\":0.0,\"tokens\":6,\
         \"why\":{\"query_terms\":[\"deployment\"],\"term_matches\":0,\"total_words\":3}}],\
         \"selection\":{\"query\":\"DEPLOYMENT\",\"budget\":13,\"tokens_used\":13,\
         \"documents_considered\":3,\"documents_selected\":2,\"documents_excluded_by_budget\":1}}"
    );
    let pretty = cache
        .resolve(&Query::new("x"), 0)
        .expect("a good cache")
        .to_json(true)
        .expect("JSON");
    assert_eq!(
        pretty,
        "{\n  \"documents\": [],\n  \"selection\": {\n    \"query\": \"x\",\n    \"budget\": 0,\n    \
         \"tokens_used\": 0,\n    \"documents_considered\": 3,\n    \"documents_selected\": 0,\n    \
         \"documents_excluded_by_budget\": 3\n  }\n}"
    );
}

#[test]
fn caches_are_laid_out_byte_for_byte() {
    let scratch = Scratch::new("layout");
    scratch.write("B/Two.md", "same");
    scratch.write("a.md", "same");
    scratch.write("notes.txt", "not a document");
    scratch.write("x.MD", "not one either");
    let cache = scratch.build();
    let read = |name: &str| fs::read_to_string(scratch.cache().join(name)).expect("a file");
    assert_eq!(
        read("manifest.json"),
        "{\n  \"cache_version\": \"sha256:4252a0fb0e961aabb926536006ae36a929941d6b0a7b542cb45a59e0077f3de9\",\n  \"build_config\": {\n    \"version\": \"1\",\n    \
         \"hash_algorithm\": \"sha256\"\n  },\n  \"created_at\": \"2023-11-14T22:13:20.000000000Z\",\n  \
         \"document_count\": 2,\n  \"documents\": [\n    {\n      \"id\": \"a.md\",\n      \
         \"version\": \"sha256:0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5\",\n      \"file\": \"documents/0967115f2813.json\"\n    },\n    {\n      \
         \"id\": \"b/two.md\",\n      \"version\": \"sha256:0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5\",\n      \
         \"file\": \"documents/0967115f2813-958587e6.json\"\n    }\n  ]\n}"
    );
    assert_eq!(
        read("index.json"),
        "{\n  \"a.md\": \"documents/0967115f2813.json\",\n  \"b/two.md\": \"documents/0967115f2813-958587e6.json\"\n}"
    );
    assert_eq!(
        read("documents/0967115f2813-958587e6.json"),
        "{\"id\":\"b/two.md\",\"version\":\"sha256:0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5\",\"source\":\"B/Two.md\",\
         \"content\":\"same\",\"metadata\":{}}"
    );
    assert_eq!(faults(scratch.cache()), [""; 0]);
    let inspection = serde_json::to_string(&inspect(&cache).expect("readable")).expect("JSON");
    assert!(
        inspection.ends_with("\"document_count\":2,\"total_bytes\":296,\"valid\":true}"),
        "{inspection}"
    );
}

#[test]
fn caches_in_another_spelling_of_the_same_layout_resolve_alike() {
    let scratch = Scratch::new("spelling");
    scratch.write("one.md", "Grüße aus dem Süden");
    scratch.write("two.md", "süden");
    let before = answer(&scratch.build(), "SÜDEN", 100);
    // Compact files, other escapes, fields of a later version, another time, no index of ids.
    scratch.damage("manifest.json", |text| {
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let text = value.to_string().replace("2023-11-14", "1999-01-01");
        text.replacen('{', "{\"more\":[1,{}],", 1)
    });
    let cache = Cache::open(scratch.cache()).expect("a good cache");
    let entry = cache.manifest().documents[0].clone();
    scratch.damage(&entry.file, |text| {
        text.replace('ü', "\\u00fc")
            .replace("\"metadata\":{}", "\"metadata\":{\"k\":1}")
    });
    fs::remove_file(scratch.cache().join("index.json")).expect("the index");
    assert_eq!(answer(&cache, "SÜDEN", 100), before);
    assert_eq!(faults(scratch.cache()), ["index.json: is missing"]);
}

#[test]
fn a_budget_of_nothing_takes_nothing_and_no_terms_score_nothing() {
    let scratch = Scratch::new("zero");
    for (name, content) in [("c.md", "x y"), ("a.md", ""), ("b.md", " \n\u{2003}")] {
        scratch.write(name, content);
    }
    let cache = scratch.build();
    assert_eq!(chosen(&cache, "x", 0), [""; 0]);
    assert_eq!(chosen(&cache, "x", 1), ["c.md", "a.md"]);
    assert_eq!(chosen(&cache, "x", u64::MAX), ["c.md", "a.md", "b.md"]);
    for query in ["", " \t\u{a0}"] {
        assert_eq!(chosen(&cache, query, 100), ["a.md", "b.md", "c.md"]);
        assert!(answer(&cache, query, 100).contains("\"query_terms\":[],\"term_matches\":0"));
    }
    let empty = Scratch::new("nothing");
    let cache = empty.build();
    assert_eq!(chosen(&cache, "x", 9), [""; 0]);
    assert_eq!(faults(empty.cache()), [""; 0]);
}

#[test]
fn a_word_counts_once_however_often_the_query_has_it() {
    let query = Query::new("A b a  A");
    assert_eq!(query.terms(), ["a", "b", "a", "a"]);
    let measure = ScoreCounts::count("a A c", &query);
    assert_eq!((measure.term_matches, measure.total_words), (2, 3));
    assert_eq!(ScoreCounts::count("a a", &query).score(), 1.0);
}

#[test]
fn lower_case_is_that_of_unicode() {
    for (content, query, matches) in [
        ("ΟΔΟΣ Οδος ΟΔΟΣ.", "ΟΔΟΣ", 2),
        ("İstanbul", "i\u{307}stanbul", 1),
        ("STRASSE Straße STRAßE", "straße", 2),
        ("ДОМ дом\u{85}Дом", "дом", 3),
        ("深圳 深圳\u{3000}深圳市", "深圳", 2),
        ("a\u{200b}b", "a", 0),
    ] {
        let measure = ScoreCounts::count(content, &Query::new(query));
        assert_eq!(measure.term_matches, matches, "{content}");
    }
}

#[test]
fn a_large_document_is_measured_and_resolved() {
    let scratch = Scratch::new("large");
    scratch.write("large.md", "Word other ".repeat(500_000));
    scratch.write("small.md", "word");
    let cache = scratch.build();
    let tight = cache.resolve(&Query::new("word"), 1_375_000);
    let tight = tight.expect("a good cache").selection;
    assert_eq!(tight.tokens_used, 1);
    assert_eq!(tight.documents_excluded_by_budget, 1);
    let both = cache.resolve(&Query::new("word"), 1_375_001);
    let large = both.expect("a good cache").documents.remove(1);
    assert_eq!((large.score, large.tokens), (0.5, 1_375_000));
    assert_eq!(large.why.total_words, 1_000_000);
}

proptest! {
    #![proptest_config(crate::support::random::property(1_024))]
    #[test]
    fn selections_are_those_of_the_definition(
        contents in prop::collection::btree_map("[a-d]{1,3}", text(), 0..12),
        query in text(),
        budget in 0_u64..60,
    ) {
        let documents: Vec<(String, String)> = contents.into_iter().collect();
        let query_ = Query::new(&*query);
        let measures: Vec<ScoreCounts> = documents.iter()
            .map(|(_, content)| ScoreCounts::count(content, &query_)).collect();
        let mut candidates: Vec<Candidate<'_>> = documents.iter().zip(&measures)
            .map(|((id, _), &measure)| Candidate { id, measure }).collect();
        let names = |candidates: &[Candidate<'_>]| -> Vec<(String, f32)> {
            let filling = fill(candidates, budget);
            assert!(filling.tokens_used <= budget);
            filling.chosen.iter()
                .map(|&at| (candidates[at].id.to_owned(), candidates[at].measure.score()))
                .collect()
        };
        let expected = by_definition(&documents, &query, budget);
        prop_assert_eq!(names(&candidates), expected.clone());
        // The order of the candidates does not change the answer.
        candidates.reverse();
        prop_assert_eq!(names(&candidates), expected);
    }
}

#[test]
fn threads_and_the_order_of_files_do_not_show() {
    let (one, two) = (Scratch::new("order-1"), Scratch::new("order-2"));
    let names: Vec<String> = (0..60).map(|n| format!("d{}/{n}.md", n % 7)).collect();
    let content = |n: usize| format!("word {n} {}", "other ".repeat(n % 9));
    for (n, name) in names.iter().enumerate() {
        one.write(name, content(n));
    }
    for (n, name) in names.iter().enumerate().rev() {
        two.write(name, content(n));
    }
    let (first, second) = (one.build(), two.build());
    assert_eq!(
        first.manifest().cache_version,
        second.manifest().cache_version
    );
    let expected = answer(&first, "word 7", 90);
    assert_eq!(answer(&second, "word 7", 90), expected);
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("a pool");
        assert_eq!(pool.install(|| answer(&second, "word 7", 90)), expected);
    }
}

#[test]
fn sources_that_make_no_cache_are_all_named() {
    let scratch = Scratch::new("sources");
    scratch.write("good.md", "good");
    scratch.write("bad.md", b"\xff");
    scratch.write("worse.md", b"fine\xc3");
    let error = scratch.try_build(false).expect_err("not UTF-8");
    let found: Vec<String> = error.faults().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "bad.md: is not UTF-8 from byte 0 on",
            "worse.md: is not UTF-8 from byte 4 on"
        ]
    );
    let left: Vec<_> = fs::read_dir(&scratch.0).expect("a directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let collide = Scratch::new("collide");
    collide.write("A.md", "1");
    collide.write("a.md", "2");
    let error = collide.try_build(false).expect_err("one id twice");
    assert_eq!(
        error.faults()[0].to_string(),
        "a.md: has the id `a.md`, as A.md has"
    );
    assert!(matches!(
        build(
            &collide.0.join("nowhere"),
            &collide.cache(),
            BuildOptions {
                force: false,
                created_at: UNIX_EPOCH,
            }
        ),
        Err(CacheError::Missing(_))
    ));
}

#[test]
fn only_caches_are_replaced_and_only_when_asked() {
    let scratch = Scratch::new("force");
    scratch.write("a.md", "one");
    fs::create_dir(scratch.cache()).expect("an empty directory is no hindrance");
    scratch.try_build(false).expect("nothing there yet");
    scratch.write("a.md", "two");
    assert!(matches!(
        scratch.try_build(false),
        Err(CacheError::Exists(_))
    ));
    // A broken cache is replaced too.
    scratch.damage("manifest.json", |_| String::new());
    let cache = scratch.try_build(true).expect("a cache is replaced");
    assert!(answer(&cache, "", 9).contains("\"two\""));
    fs::write(scratch.cache().join("thesis.tex"), "").expect("a file");
    let error = scratch.try_build(true).expect_err("not ours alone");
    assert!(error.to_string().contains("thesis.tex"), "{error}");
    assert!(scratch.cache().join("thesis.tex").exists());
}

#[test]
fn every_damage_is_found() {
    let scratch = Scratch::new("damage");
    scratch.write("a.md", "first words");
    scratch.write("b.md", "second words");
    let a = scratch.build().manifest().documents[0].file.clone();
    let resolve = || Cache::open(scratch.cache())?.resolve(&Query::new("words"), 9);
    let check = |file: &str, damage: &dyn Fn(String) -> String, message: &str, fatal: bool| {
        scratch.build();
        scratch.damage(file, damage);
        let found = faults(scratch.cache());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{file}: ")), "{found:?}");
        assert!(found[0].contains(message), "{found:?}");
        assert_eq!(resolve().is_err(), fatal, "{message}");
    };
    let half = |text: String| text[..text.len() / 2].to_owned();
    check(&a, &half, "EOF", true);
    check(&a, &|_| String::new(), "EOF", true);
    let swap =
        |from: &'static str, to: &'static str| move |text: String| text.replacen(from, to, 1);
    check(&a, &swap("first", "worst"), "not that of its version", true);
    check(&a, &swap("a.md", "c.md"), "is the document `c.md`", true);
    check(&a, &swap("sha256:", "sha256:0"), "another version", true);
    check(&a, &swap("first", "\\ud800"), "escape", true);
    check("manifest.json", &half, "EOF", true);
    check(
        "manifest.json",
        &swap("\"document_count\": 2", "\"document_count\": 3"),
        "2 documents are listed",
        true,
    );
    check(
        "manifest.json",
        &swap("\"a.md\"", "\"0.md\""),
        "cache_version",
        true,
    );
    check(
        "manifest.json",
        &swap("sha256\"", "md5\""),
        "is not known",
        true,
    );
    check("index.json", &half, "EOF", false);
    check(
        "index.json",
        &swap("documents/", "documents/x"),
        "the manifest in",
        false,
    );
}

#[test]
#[cfg(unix)]
fn nothing_outside_the_cache_is_read() {
    let scratch = Scratch::new("outside");
    scratch.write("a.md", "secret");
    let cache = scratch.build();
    let entry = cache.manifest().documents[0].clone();
    let inside = scratch.cache().join(&entry.file);
    let outside = scratch.0.join("outside.json");
    fs::copy(&inside, &outside).expect("a copy");
    for name in [
        "../outside.json",
        "documents/../../outside.json",
        "documents/..",
        "documents/",
        "documents//x.json",
        "documents/a/../../../outside.json",
        "documents\\\\..\\\\..\\\\outside.json",
        "/etc/hostname",
        "manifest.json",
        "",
    ] {
        scratch.build();
        scratch.damage("manifest.json", |text| text.replace(&entry.file, name));
        let error = Cache::open(scratch.cache()).expect_err(name);
        let fault = error.faults()[0].to_string();
        assert!(fault.contains("not one directly in documents/"), "{fault}");
    }
    let resolve = |cache: &Cache| match cache.resolve(&Query::new(""), 99) {
        Err(CacheError::Invalid(_, faults)) => faults[0].to_string(),
        other => format!("{other:?}"),
    };
    let cache = scratch.build();
    fs::remove_file(&inside).expect("a file");
    assert_eq!(resolve(&cache), format!("{}: is missing", entry.file));
    std::os::unix::fs::symlink(&outside, &inside).expect("a link");
    assert_eq!(
        resolve(&cache),
        format!("{}: is not a plain file", entry.file)
    );
    let cache = scratch.build();
    let documents = scratch.cache().join("documents");
    fs::rename(&documents, scratch.0.join("moved")).expect("a directory");
    std::os::unix::fs::symlink(scratch.0.join("moved"), &documents).expect("a link");
    assert!(resolve(&cache).contains("is not a directory"));
    assert_eq!(faults(scratch.cache()).len(), 1);
}

#[test]
fn missing_files_and_indexes_of_other_documents_are_found() {
    let scratch = Scratch::new("missing");
    scratch.write("a.md", "x");
    scratch.write("b.md", "y");
    let files: Vec<String> = scratch
        .build()
        .manifest()
        .documents
        .iter()
        .map(|entry| entry.file.clone())
        .collect();
    fs::remove_file(scratch.cache().join(&files[1])).expect("a file");
    assert_eq!(
        faults(scratch.cache()),
        [format!("{}: is missing", files[1])]
    );
    fs::remove_dir_all(scratch.cache().join("documents")).expect("a directory");
    let mut expected: Vec<String> = files
        .iter()
        .map(|file| format!("{file}: is missing"))
        .collect();
    expected.sort();
    assert_eq!(faults(scratch.cache()), expected);
    scratch.build();
    fs::remove_file(scratch.cache().join("manifest.json")).expect("a file");
    assert_eq!(faults(scratch.cache()), ["manifest.json: is missing"]);
    scratch.build();
    scratch.damage("index.json", |text| text.replace("\"a.md\"", "\"../a.md\""));
    assert_eq!(
        faults(scratch.cache()),
        [
            "index.json: does not have `a.md`",
            "index.json: has `../a.md`, which the manifest does not have",
        ]
    );
    // Readers differ in which of two members with one name they take.
    scratch.build();
    scratch.damage("index.json", |text| {
        text.replacen('{', "{\"a.md\": \"../secret.json\",", 1)
    });
    assert_eq!(
        faults(scratch.cache()),
        [
            "index.json: has `a.md` in ../secret.json, the manifest in ".to_owned() + &files[0],
            "index.json: has `a.md` twice".to_owned()
        ]
    );
}

#[test]
fn a_file_that_no_system_can_have_is_a_fault_like_a_missing_one() {
    let scratch = Scratch::new("long-name");
    scratch.write("a.md", "x");
    let manifest = scratch.build().manifest().clone();
    let file = manifest.documents[0].file.clone();
    let long = format!("documents/{}", "x".repeat(5000));
    scratch.damage("manifest.json", |text| text.replace(&file, &long));
    let found = faults(scratch.cache());
    assert!(
        found.contains(&format!("{long}: is missing")),
        "{} faults",
        found.len()
    );
    let cache = Cache::open(scratch.cache()).expect("the manifest agrees with itself");
    let error = cache.resolve(&Query::new("x"), 9).expect_err("no document");
    assert!(matches!(error, CacheError::Invalid(..)), "{error}");
}

#[test]
fn there_is_no_cache_below_a_file() {
    let scratch = Scratch::new("below-a-file");
    scratch.write("a.md", "x");
    let below = scratch.0.join("sources/a.md/cache");
    assert!(matches!(
        Cache::open(&below),
        Err(CacheError::Missing(path)) if path == below
    ));
    let options = BuildOptions {
        force: false,
        created_at: UNIX_EPOCH,
    };
    assert!(matches!(
        build(&below, &scratch.cache(), options),
        Err(CacheError::Missing(path)) if path == below
    ));
}

#[test]
#[cfg(unix)]
fn only_files_are_sources() {
    use std::os::unix::fs::symlink;
    let scratch = Scratch::new("only-files");
    scratch.write("a.md", "x");
    scratch.write("dir.md/b.md", "y");
    // Reading from a pipe, or from a device, would never end.
    let status = std::process::Command::new("mkfifo")
        .arg(scratch.0.join("sources/pipe.md"))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "mkfifo");
    for (target, name) in [
        ("/dev/zero", "zero.md"),
        ("dir.md", "linked.md"),
        ("a.md", "c.md"),
    ] {
        symlink(target, scratch.0.join("sources").join(name)).expect("a link");
    }
    let manifest = scratch.build().manifest().clone();
    let ids: Vec<&str> = manifest.documents.iter().map(|entry| &*entry.id).collect();
    assert_eq!(ids, ["a.md", "c.md", "dir.md/b.md"]);
}

#[test]
fn a_build_removes_nothing_that_is_in_its_way() {
    let scratch = Scratch::new("in-the-way");
    scratch.write("a.md", "x");
    // Named as what a killed build leaves; the first is a cache that is not whole, the second is not.
    let [left, other] = [".cache.7-0.part", ".cache.7-1.part"].map(|name| scratch.0.join(name));
    fs::create_dir_all(left.join("documents")).expect("a directory");
    fs::write(left.join("documents/1.json"), "{").expect("a file");
    fs::create_dir(&other).expect("a directory");
    fs::write(other.join("thesis.tex"), "").expect("a file");
    scratch.build();
    assert!(!left.exists());
    assert!(other.join("thesis.tex").exists());
}

/// A reader that has opened a cache while it is built anew gets an answer of the new one.
#[test]
fn a_cache_that_is_replaced_is_read_again() {
    let scratch = Scratch::new("replaced");
    scratch.write("a.md", "the first refund");
    let opened = scratch.build();
    scratch.write("a.md", "the second refund");
    scratch.try_build(true).expect("a cache");
    let answer = opened
        .resolve(&Query::new("refund"), 100)
        .expect("an answer");
    assert_eq!(answer.documents[0].content, "the second refund");
    // What is damaged, and was not replaced, is an error.
    let cache = Cache::open(scratch.cache()).expect("a cache");
    let file = scratch.cache().join(&cache.manifest().documents[0].file);
    fs::remove_file(file).expect("the document");
    assert!(cache.resolve(&Query::new("refund"), 100).is_err());
}

/// Readers and a builder at the same time: no read fails.
#[test]
fn no_read_fails_while_a_cache_is_built() {
    let scratch = Scratch::new("while-built");
    for n in 0..40 {
        scratch.write(&format!("{n}.md"), format!("refund {n}"));
    }
    scratch.build();
    let built = std::sync::atomic::AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !built.load(std::sync::atomic::Ordering::Relaxed) || reads < 50 {
                let cache = Cache::open(scratch.cache()).expect("a cache");
                let answer = cache.resolve(&Query::new("refund"), 100);
                assert!(answer.is_ok(), "{answer:?}");
                reads += 1;
            }
            reads
        });
        for round in 0..40 {
            scratch.write("0.md", format!("refund of round {round}"));
            scratch.try_build(true).expect("a cache");
        }
        built.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().expect("no read failed")
    });
    assert!(reads >= 50);
}

#[test]
fn files_of_no_document_are_found() {
    let scratch = Scratch::new("extra");
    scratch.write("a.md", "x");
    scratch.build();
    fs::write(scratch.cache().join("documents/extra.json"), "{}").expect("a file");
    fs::create_dir(scratch.cache().join("more")).expect("a directory");
    assert_eq!(
        faults(scratch.cache()),
        [
            "documents/extra.json: belongs to no document",
            "more: belongs to no document"
        ]
    );
}

#[test]
fn what_is_put_in_order_part_by_part_is_filled_as_a_whole() {
    // More candidates than fit one part, many of equal score, not in the order of their ids.
    let documents: Vec<(String, String)> = (0..1500_usize)
        .map(|n| {
            let (n, words) = (n * 787 % 1500, n % 13);
            (format!("{n:04}"), format!("x {}", "y ".repeat(words)))
        })
        .collect();
    let query = Query::new("x");
    let candidates: Vec<Candidate<'_>> = documents
        .iter()
        .map(|(id, content)| Candidate {
            id,
            measure: ScoreCounts::count(content, &query),
        })
        .collect();
    for budget in [1, 5, 64, 65, 333, 2_000, 4_001, 9_000, u64::MAX] {
        let filling = fill(&candidates, budget);
        let chosen = filling.chosen.iter().map(|&at| candidates[at].id);
        let expected = by_definition(&documents, "x", budget);
        assert!(chosen.eq(expected.iter().map(|(id, _)| id)), "{budget}");
        assert_eq!(filling.chosen.len() + filling.excluded, documents.len());
    }
}

#[test]
fn a_manifest_out_of_order_or_with_an_id_twice_is_invalid() {
    let scratch = Scratch::new("manifest-order");
    scratch.write("a.md", "x");
    scratch.write("b.md", "y");
    scratch.build();
    let path = scratch.cache().join("manifest.json");
    let whole = fs::read_to_string(&path).expect("a manifest");
    let expect = |change: &dyn Fn(&mut Vec<serde_json::Value>), message: &str| {
        let mut manifest: serde_json::Value = serde_json::from_str(&whole).expect("JSON");
        let documents = manifest["documents"].as_array_mut().expect("a list");
        change(documents);
        fs::write(&path, manifest.to_string()).expect("a file");
        let found = faults(scratch.cache());
        let message = format!("manifest.json: {message}");
        assert!(found.contains(&message), "{found:?}");
        // Another order of ids and versions gives another version.
        let version = "manifest.json: cache_version is not that of the documents listed";
        assert!(found.iter().any(|fault| fault == version), "{found:?}");
    };
    expect(
        &|documents| documents.swap(0, 1),
        "`a.md` is listed after `b.md`",
    );
    expect(
        &|documents| documents[1] = documents[0].clone(),
        "`a.md` is listed twice",
    );
}
