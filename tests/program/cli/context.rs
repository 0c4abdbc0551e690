//! `pactql context`: its commands, exit codes and messages.

use super::{Scratch, answer, fails, pactql};

/// A cache of two documents.
fn cache(scratch: &Scratch) -> String {
    std::fs::create_dir_all(scratch.path("docs/Sub")).expect("a directory");
    scratch.write("docs/Sub/A.md", "alpha beta");
    scratch.write("docs/b.md", "beta gamma delta");
    let cache = scratch.path("cache");
    let built = answer(&[
        "context",
        "build",
        "--sources",
        &scratch.path("docs"),
        "--cache",
        &cache,
    ]);
    assert_eq!(built, "");
    cache
}

#[test]
fn a_cache_is_built_resolved_inspected_and_verified() {
    let scratch = Scratch::new("context");
    let cache = cache(&scratch);
    let resolve = |more: &[&str]| {
        let mut arguments = vec!["context", "resolve", "--cache", &cache];
        arguments.extend(more);
        answer(&arguments)
    };
    let compact = resolve(&["--query", "Beta", "--budget", "100"]);
    assert!(compact.starts_with("{\"documents\":[{\"id\":\"sub/a.md\",\"version\":\"sha256:"));
    assert!(compact.contains("\"score\":0.5,\"tokens\":3,\"why\":{\"query_terms\":[\"beta\"]"));
    assert!(compact.ends_with("\"documents_excluded_by_budget\":0}}\n"));
    let same = ["--query=Beta", "--budget=100", "--format", "json"];
    assert_eq!(resolve(&same), compact);
    let pretty = resolve(&["--query", "-x", "--budget", "0", "--format", "pretty"]);
    assert!(
        pretty.starts_with("{\n  \"documents\": [],\n  \"selection\": {\n    \"query\": \"-x\"")
    );
    let inspected = answer(&["context", "inspect", "--cache", &cache]);
    assert!(inspected.starts_with("{\"cache_version\":\"sha256:"));
    assert!(inspected.ends_with(",\"valid\":true}\n"), "{inspected}");
    let verified = answer(&["context", "verify", "--cache", &cache]);
    assert_eq!(verified, "valid: 2 documents\n");
}

#[test]
fn each_failure_has_its_exit_code() {
    let scratch = Scratch::new("context-fails");
    let (cache, docs, nowhere) = (cache(&scratch), scratch.path("docs"), scratch.path("no"));
    let resolve = |cache: &str, budget: &str, code: i32, message: &str| {
        let arguments = ["context", "resolve", "--cache", cache, "--query", "x"];
        fails(
            &[&arguments[..], &["--budget", budget]].concat(),
            code,
            message,
        )
    };
    fails(&["context"], 1, "Usage");
    fails(
        &["context", "resolve", "--cache", &cache],
        1,
        "needs `--query` and `--budget`",
    );
    let build = ["context", "build", "--sources", &docs, "--cache", &cache];
    fails(&build, 1, "--force");
    answer(&[&build[..], &["--force"]].concat());
    for budget in ["-1", "many", "1.5", "", "99999999999999999999"] {
        resolve(&cache, budget, 3, "--budget");
    }
    resolve(&nowhere, "9", 4, "is not a directory");
    resolve(&docs, "9", 5, "manifest.json: is missing");
    for command in ["inspect", "verify"] {
        fails(&["context", command, "--cache", &nowhere], 4, "no");
        fails(&["context", command, "--cache", &docs], 5, "missing");
    }
    scratch.write("cache/documents/more.json", "");
    let damaged = ["context", "verify", "--cache", &cache, "--format", "json"];
    let error = fails(&damaged, 5, "belongs to no document");
    let error: serde_json::Value = serde_json::from_str(&error).expect("JSON");
    assert_eq!(error["error"]["code"], "E_INPUT");
    assert_eq!(error["error"]["faults"][0]["file"], "documents/more.json");
    let inspected = answer(&["context", "inspect", "--cache", &cache]);
    assert!(inspected.ends_with(",\"valid\":false}\n"), "{inspected}");
    scratch.write("docs/c.md", b"\xff");
    let ran = pactql(&[&build[..], &["--force"]].concat());
    assert_eq!((ran.code, &*ran.out), (5, ""));
    assert!(ran.err.contains("c.md: is not UTF-8"), "{}", ran.err);
}

#[test]
#[cfg(unix)]
fn a_query_that_is_not_text_is_invalid() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new("context-query");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(["context", "resolve", "--cache", &cache(&scratch)])
        .args(["--budget", "9", "--query"])
        .arg(std::ffi::OsStr::from_bytes(b"\xff"))
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error() {
    let scratch = Scratch::new("context-below");
    cache(&scratch);
    let docs = scratch.path("docs");
    // A directory that cannot be written is an I/O error.
    let below = scratch.path("docs/b.md/cache");
    let build = ["context", "build", "--sources", &docs, "--cache", &below];
    fails(&build, 6, "b.md");
}
