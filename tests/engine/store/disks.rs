//! Disks that fail: every write and sync of a store, one at a time or from one on, in another process
//! (STORE §3). What was acknowledged stays, whole. Files that are gone, replaced or full are tested beside the
//! database, in `src/store/tests.rs`.

use std::path::Path;
use std::process::Command;

use pactql::{NewNode, Store};

use super::child::{Acknowledged, LEASE, Writer, check, parse};
use super::place::{Folder, sound};
use crate::support::random;

const EIO: &str = "5";
const ENOSPC: &str = "28";

/// The library that fails writes, compiled here; why not, if it cannot be.
fn shim(folder: &Folder) -> Result<String, String> {
    if !cfg!(target_os = "linux") {
        return Err("calls are intercepted on Linux alone".to_owned());
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/store/failing.c");
    let library = folder.file("failing.so");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-w", "-o", &library])
        .arg(source)
        .arg("-ldl")
        .output();
    match made {
        Ok(made) if made.status.success() => Ok(library),
        Ok(made) => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
        Err(error) => Err(format!("cc: {error}")),
    }
}

/// Runs the script with call `at` failing. Returns whether there was such a call, and how many results were
/// errors.
fn run(folder: &Folder, library: &str, at: u32, code: &str, stays: bool) -> (bool, usize) {
    let path = folder.file("failing store.db");
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{path}{end}"));
    }
    let mark = folder.file("mark");
    let _ = std::fs::remove_file(&mark);
    let number = at.to_string();
    let mut environment = vec![
        ("LD_PRELOAD", library),
        ("FAIL_PATH", "failing store.db"),
        ("FAIL_AT", &number),
        ("FAIL_CODE", code),
        ("FAIL_MARK", &mark),
    ];
    if stays {
        environment.push(("FAIL_STAYS", "1"));
    }
    let mut writer = Writer::start("script", &path, &environment);
    let mut acknowledged: Vec<Acknowledged> = Vec::new();
    let (mut errors, mut pruned, mut lines) = (0, false, Vec::new());
    while let Some(line) = writer.line() {
        // Of commits of one cycle, the last word counts.
        acknowledged.extend(parse(&line));
        errors += usize::from(line.starts_with("error"));
        pruned |= line == "doing prune";
        lines.push(line);
    }
    let about = format!("call {at} with {code}, {stays}: {lines:#?}");
    assert!(writer.wait(), "{about}");
    let failed = Path::new(&mark).exists();
    if acknowledged.is_empty() && !Path::new(&path).exists() {
        return (failed, errors);
    }
    let store = Store::builder().lease(LEASE).open(&path);
    let store = store.unwrap_or_else(|error| panic!("{error}: {about}"));
    if let Err(error) = check(&store, &acknowledged, 1, pruned) {
        panic!("{error}: {about}");
    }
    // The next one can write.
    std::thread::sleep(LEASE + LEASE / 4);
    let mut context = store
        .write("a")
        .unwrap_or_else(|error| panic!("{error}: {about}"));
    context.add("^ah", NewNode::text("later")).unwrap();
    context
        .commit()
        .unwrap_or_else(|error| panic!("{error}: {about}"));
    drop(context);
    assert_eq!(sound(&store), Ok(()), "{about}");
    (failed, errors)
}

#[test]
fn a_failing_disk_is_an_error_and_no_loss() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let library = match shim(&folder) {
        Ok(library) => library,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    // Every twentieth call with `CI` set; every one with `PACTQL_CASES=100000`.
    let step = (100_000 / random::cases()).clamp(1, 200);
    for (code, stays) in [(EIO, false), (ENOSPC, false), (ENOSPC, true)] {
        let (mut at, mut runs, mut errors) = (1, 0, 0);
        loop {
            let (failed, told) = run(&folder, &library, at, code, stays);
            if !failed {
                break;
            }
            runs += 1;
            errors += usize::from(told > 0);
            at += step;
        }
        println!(
            "errno {code}, for good: {stays}: {runs} runs of calls 1 to {at}, {errors} with an error"
        );
        assert!(errors > 0);
    }
}
