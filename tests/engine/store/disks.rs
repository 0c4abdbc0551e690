//! Disks that fail: every write and sync of a store, one at a time or from one on, in another process
//! (STORE §3). What was acknowledged stays, whole. Files that are gone, replaced or full are tested beside the
//! database, in `src/store/tests.rs`.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use pactql::{Code, Context, Message, NewNode, Session, Store, store::Retention};

use super::child::{Acknowledged, LEASE, Writer, check, parse};
use super::place::{Folder, documents, sound};
use super::sound::has;
use crate::support::random::{self, Rng};

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

/// A disk of 6 MiB, which is unmounted when this is dropped.
struct Disk(Folder);

impl Disk {
    fn new() -> Result<Self, String> {
        if !cfg!(target_os = "linux") {
            return Err("disks are made on Linux alone".to_owned());
        }
        let folder = Folder::new();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]);
        match mount.arg(&folder.0).output() {
            Ok(made) if made.status.success() => Ok(Self(folder)),
            Ok(made) => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
            Err(error) => Err(format!("mount: {error}")),
        }
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        let mut all = std::fs::File::create(self.0.file("ballast")).unwrap();
        while all.write_all(&[1; 4096]).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0.0).output();
    }
}

/// Commits a text that no other has.
fn commit(context: &mut Context, number: u64) -> Result<(), pactql::Error> {
    let mut rng = Rng::new(number);
    let letter = |rng: &mut Rng| char::from(b'a' + rng.below(26) as u8);
    let text: String = (0..100_000).map(|_| letter(&mut rng)).collect();
    context.append(Message::user(&text))?;
    context.commit().map(drop)
}

#[test]
fn a_full_disk_is_an_error_of_that_commit_alone() {
    let disk = match Disk::new() {
        Ok(disk) => disk,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let store = Store::open(disk.0.file("x.db")).unwrap();
    std::fs::write(disk.0.file("ballast"), vec![1; 2 << 20]).unwrap();
    let mut context = store.write("a").unwrap();
    let mut commits = 0;
    let error = loop {
        match commit(&mut context, commits) {
            Ok(()) => commits += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Code::Store);
    assert!(error.to_string().contains("no space is left"), "{error}");
    let there = |store: &Store| documents(&store.session("a").unwrap()).unwrap().0;
    let before = there(&store);
    assert_eq!(before.len() as u64, commits);
    assert!(context.commit().is_err());
    std::fs::remove_file(disk.0.file("ballast")).unwrap();
    context.commit().unwrap();
    let after = there(&store);
    assert!(after.len() > before.len() && after.starts_with(&before));
    assert_eq!(sound(&store), Ok(()));
}

/// What gives space back needs none.
#[test]
fn removals_work_on_a_full_disk() {
    type Removal = fn(&Store, &str) -> Result<(), pactql::Error>;
    let removals: [Removal; 4] = [
        |store, _| store.delete("a"),
        |store, _| store.prune(&Retention::default().keep(1)).map(drop),
        |store, id| store.erase("a", [id]).map(drop),
        |store, _| store.vacuum(),
    ];
    const SECRET: &str = "Xq9-a-text-that-has-to-go";
    for (number, remove) in removals.into_iter().enumerate() {
        for reopened in [false, true] {
            let about = format!("removal {number}, store reopened: {reopened}");
            let disk = match Disk::new() {
                Ok(disk) => disk,
                Err(reason) => return println!("SKIPPED: {reason}"),
            };
            let path = disk.0.file("x.db");
            let mut store = Store::open(&path).unwrap();
            let mut context = store.write("a").unwrap();
            let id = context.add("^ah", NewNode::text(SECRET).ttl(1)).unwrap();
            for number in 0..5 {
                commit(&mut context, number).unwrap();
            }
            drop(context);
            let mut context = store.write("b").unwrap();
            commit(&mut context, 9).unwrap();
            drop(context);
            let kept = documents(&store.session("b").unwrap()).unwrap();
            if reopened {
                drop(store);
                disk.fill();
                store = Store::open(&path).unwrap_or_else(|error| panic!("{about}: {error}"));
            } else {
                store.vacuum().unwrap();
                disk.fill();
            }
            let size = std::fs::metadata(&path).unwrap().len();
            remove(&store, &id).unwrap_or_else(|error| panic!("{about}: {error}"));
            assert!(!store.has_removed_text(), "{about}");
            if number < 3 {
                assert!(!has(&path, SECRET), "{about}");
            }
            let now = std::fs::metadata(&path).unwrap().len();
            assert!(
                now < size || number > 0 && now == size,
                "{about}: {now} bytes after {size}"
            );
            assert_eq!(sound(&store), Ok(()), "{about}");
            assert_eq!(
                documents(&store.session("b").unwrap()).unwrap(),
                kept,
                "{about}"
            );
        }
    }
}

/// What is written for an erased node may need a page more than the file has. The copy beside it has room.
#[test]
fn a_text_is_erased_where_the_file_cannot_grow() {
    let disk = match Disk::new() {
        Ok(disk) => disk,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let path = disk.0.file("x.db");
    let store = Store::open(&path).unwrap();
    let session = Session::open("fixtures/support-agent.jsonl").unwrap();
    store.import("a", &session, None).unwrap();
    drop(store);
    disk.fill();
    let size = std::fs::metadata(&path).unwrap().len();
    let store = Store::open(&path).unwrap();
    store.erase("a", ["cb:u2"]).unwrap();
    assert!(!store.has_removed_text());
    assert!(!has(&path, "It wobbles by more than a ce"));
    assert!(std::fs::metadata(&path).unwrap().len() <= size);
    assert_eq!(sound(&store), Ok(()));
    // It is a store like any other then.
    drop(store);
    std::fs::remove_file(disk.0.file("ballast")).unwrap();
    let store = Store::open(&path).unwrap();
    commit(&mut store.write("b").unwrap(), 1).unwrap();
    assert_eq!(sound(&store), Ok(()));
}
