//! Stores that cannot be written, and stores that cannot be read: reading commands answer or say why not,
//! and leave nothing behind.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{AGENT, Ran, Scratch, answer, pactql};
use pactql::{Context, Message, Store};

/// Runs `pactql` as a user to whom the modes of files mean something: root is somebody else for it.
fn as_nobody(arguments: &[&str]) -> Ran {
    let program = env!("CARGO_BIN_EXE_pactql");
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    let mut command = if root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
        command
    } else {
        Command::new(program)
    };
    match command.args(arguments).current_dir("/").output() {
        Ok(output) => Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        },
        Err(error) => Ran {
            code: -1,
            out: String::new(),
            err: error.to_string(),
        },
    }
}

fn mode(path: &str, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// The files of a directory, sorted.
fn files(directory: &Path) -> Vec<String> {
    let all = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> = all
        .map(|entry| {
            entry
                .expect("a file")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names
}

/// Commands that read, and a part of what they print.
const READING: &[(&[&str], &str)] = &[
    (&["sessions", "STORE", "--json"], "support-agent"),
    (
        &[
            "select",
            "STORE#support-agent",
            "@t0 ^seq .cb",
            "--format",
            "ids",
        ],
        "cb:",
    ),
    (
        &["select", "--json", "STORE", "@t0 .cb[role='user']"],
        "support-agent",
    ),
    (
        &["sessions", "-v", "STORE#support-agent", "--format", "json"],
        "total",
    ),
    (&["export", "STORE#support-agent"], "cycle"),
    (&["verify", "--json", "STORE"], ""),
];

fn with_store(arguments: &[&str], store: &str) -> Vec<String> {
    let named = arguments.iter().map(|word| word.replace("STORE", store));
    named.collect()
}

#[test]
fn a_store_that_cannot_be_written_is_read() {
    // Not below the target directory, which other users may not reach.
    let directory = std::env::temp_dir().join(format!("pactql-modes-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a directory");
    let scratch = Scratch(directory);
    let store = scratch.path("agents.db");
    answer(&["import", AGENT, "-o", &store]);
    let folder = scratch.0.to_str().expect("UTF-8").to_owned();
    mode(&folder, 0o777);
    mode(&store, 0o666);
    let ran = as_nobody(&["sessions", &store]);
    if ran.code != 0 {
        return println!("SKIPPED: another user cannot run the program: {}", ran.err);
    }
    for (of_folder, of_file) in [
        (0o777, 0o666),
        (0o777, 0o444),
        (0o555, 0o666),
        (0o555, 0o444),
    ] {
        mode(&store, of_file);
        mode(&folder, of_folder);
        for (arguments, part) in READING {
            let arguments = with_store(arguments, &store);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let ran = as_nobody(&arguments);
            let about = format!("{of_folder:o} {of_file:o} {arguments:?}: {}", ran.err);
            assert_eq!(ran.code, 0, "{about}");
            assert!(ran.out.contains(part), "{about}");
        }
        let session = format!("{store}#new");
        let ran = as_nobody(&["edit", "new", &session]);
        if (of_folder, of_file) != (0o777, 0o666) {
            assert_ne!(ran.code, 0, "{of_folder:o} {of_file:o}");
            assert!(
                ran.err.contains("read-only") || ran.err.contains("who may write the directory"),
                "{of_folder:o} {of_file:o}: {}",
                ran.err
            );
        }
        mode(&folder, 0o777);
        // SQLite has no way for a reader that may write the directory but not the file.
        if of_file == 0o666 || of_folder == 0o555 {
            assert_eq!(
                files(&scratch.0),
                ["agents.db"],
                "{of_folder:o} {of_file:o}"
            );
        }
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{store}{end}"));
        }
    }
    mode(&store, 0o000);
    let ran = as_nobody(&["sessions", &store]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains(&store), "{}", ran.err);
}

/// Whoever may write the store reads it without a trace, too.
#[test]
fn reading_leaves_no_files() {
    let scratch = Scratch::new("traces");
    let store = scratch.path("agents.db");
    answer(&["import", AGENT, "-o", &store]);
    assert_eq!(files(&scratch.0), ["agents.db"]);
    let before = std::fs::read(&store).expect("a file");
    for (arguments, _) in READING {
        let arguments = with_store(arguments, &store);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        answer(&arguments);
        assert_eq!(files(&scratch.0), ["agents.db"], "{arguments:?}");
    }
    assert_eq!(std::fs::read(&store).expect("a file"), before);
}

/// A part of a session that cannot be read is an error, never a shorter answer.
#[test]
fn a_damaged_session_is_an_error() {
    let scratch = Scratch::new("damaged");
    let path = scratch.path("agents.db");
    let store = Store::open(&path).expect("a store");
    let mut context = store
        .write_with("a", Context::builder())
        .expect("a session");
    for number in 0..4 {
        let system = format!("You are brief: {number}.");
        context.set_system([&*system]).expect("a system prompt");
        context
            .append(Message::user(&format!("question {number}")))
            .expect("a turn");
        context.render(pactql::Provider::OpenAi).expect("a request");
        context
            .reply(Message::assistant("An answer."))
            .expect("a turn");
        context.commit().expect("a commit");
    }
    drop((context, store));
    let sound = std::fs::read(&path).expect("a file");
    let session = format!("{path}#a");
    let life = answer(&["select", &session, "@t0 ^seq .cb", "--format", "ids"]);
    let id = life.lines().next().expect("an id").to_owned();
    for damage in [
        // A unit of the second snapshot alone, which the newest one does not have.
        "delete from node where unit_id in (select unit_id from placement where last_seq = 2)",
        "delete from node where unit_id in (select unit_id from placement where first_seq = 2)",
        "update node set class = 'x' where unit_id in (select unit_id from placement where last_seq = 2)",
        "delete from snapshot where seq = 2",
        "update attempt set request = '{' where number = 1",
    ] {
        std::fs::write(&path, &sound).expect("a file");
        let connection = rusqlite::Connection::open(&path).expect("a file");
        assert!(
            connection.execute(damage, []).expect("a change") > 0,
            "{damage}"
        );
        drop(connection);
        let of_attempts = damage.contains("attempt");
        for arguments in [
            &["blame", &session, &id][..],
            &["sessions", "-v", &session],
            &["steps", "--changes", &session],
            &["export", &session],
            &["verify", &session],
            &["select", &session, "@* .cb"],
        ] {
            let ran = pactql(arguments);
            // What the others say has no attempts in it.
            if of_attempts && arguments[0] != "export" {
                continue;
            }
            assert_ne!(ran.code, 0, "{damage}: {arguments:?}: {}", ran.out);
            assert_eq!(ran.out, "", "{damage}: {arguments:?}");
            assert!(ran.err.starts_with("error[E_S"), "{}", ran.err);
        }
        let ran = pactql(&["verify", &path, "--format", "text"]);
        assert_eq!(ran.code, 5, "{damage}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains('a'), "{damage}: {}", ran.out);
        let opened = Store::builder().read_only().open(&path).expect("a store");
        let stored = opened.session("a").expect("a session");
        let copy = Store::open(scratch.path("copy.db")).expect("a store");
        assert!(copy.import("b", &stored, None).is_err(), "{damage}");
    }
}
