//! How commands end before they are done, and which files they leave.

#[path = "../../support/mutate.rs"]
mod mutate;

use super::{AGENT, Scratch, answer, fails, pactql};
use std::fmt::Write;
use std::path::Path;

/// A session that takes the program some seconds to read and write.
fn large() -> String {
    let mut text = String::new();
    for cycle in 1..=60 {
        let _ = write!(
            text,
            "{{\"cycle\":{cycle},\"root\":{{\"id\":\"r\",\"children\":[{{\"id\":\"q\",\"nodeType\":\"^seq\",\"children\":["
        );
        for turn in 0..3_000 {
            let comma = if turn == 0 { "" } else { "," };
            let _ = write!(
                text,
                "{comma}{{\"id\":\"t{turn}\",\"nodeType\":\"mt\",\"created_at_ns\":{turn},\"children\":[{{\"id\":\"b{turn}\",\"nodeType\":\"cb\",\"content\":\"text {turn} of {cycle}\"}}]}}"
            );
        }
        text.push_str("]}]}}\n");
    }
    text
}

/// The names in a directory.
fn names(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

#[cfg(unix)]
mod signals {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// Whether a signal is ignored here, and so by the programs that are started, as under `nohup`.
    fn is_ignored(signal: u32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }

    /// A signal ends the program with its exit code while it writes, without an output and without the file
    /// that it was writing.
    #[test]
    fn a_signal_leaves_nothing() {
        if crate::cases::left_to_ci() {
            return;
        }
        let scratch = Scratch::new("signals");
        let session = scratch.write("large.jsonl", large());
        for (number, signal, code) in [(2, "INT", 130), (15, "TERM", 143), (1, "HUP", 129)] {
            if is_ignored(number) {
                println!("SKIPPED: whoever runs the tests has them ignore {signal}");
                continue;
            }
            let out = scratch.path("out.jsonl");
            let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
                .args(["export", &session, "--jsonl", "--full", "-o", &out])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts");
            // As soon as it writes.
            while names(&scratch.0).len() < 2 && child.try_wait().expect("a child").is_none() {
                std::thread::sleep(Duration::from_millis(2));
            }
            let sent = Command::new("kill")
                .args(["-s", signal, &child.id().to_string()])
                .status();
            assert!(sent.is_ok_and(|sent| sent.success()), "{signal}");
            let ended = child.wait().expect("the program ends");
            assert_eq!(ended.code(), Some(code), "{signal}");
            assert_eq!(names(&scratch.0), ["large.jsonl"], "{signal}");
        }
    }

    /// Neither an unfinished copy of a store, nor what SQLite keeps beside it.
    #[test]
    fn an_interrupted_backup_leaves_nothing() {
        if crate::cases::left_to_ci() {
            return;
        }
        let scratch = Scratch::new("backup-signals");
        let text = "some words ".repeat(4_000_000);
        let session = scratch.write(
            "large.jsonl",
            format!(
                r#"{{"cycle":1,"root":{{"id":"r","children":[{{"id":"s","nodeType":"^sys","children":[{{"id":"b","nodeType":"cb","content":"{text}"}}]}}]}}}}"#
            ),
        );
        let store = scratch.path("store.db");
        answer(&["import", &session, "-o", &store]);
        let before = names(&scratch.0);
        let copy = scratch.path("copy.db");
        let signals = [
            (2, "INT", Some(130)),
            (15, "TERM", Some(143)),
            (9, "KILL", None),
        ];
        for (number, signal, code) in signals {
            if is_ignored(number) {
                println!("SKIPPED: whoever runs the tests has them ignore {signal}");
                continue;
            }
            // A copy may be whole before the signal arrives: then another one is interrupted.
            let ended = (0..100).find_map(|_| {
                let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
                    .args(["store", "backup", &store, "-o", &copy])
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("the program starts");
                while names(&scratch.0) == before && child.try_wait().expect("a child").is_none() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let kill = ["-s", signal, &child.id().to_string()];
                let sent = Command::new("kill")
                    .args(kill)
                    .stderr(Stdio::null())
                    .status();
                assert!(sent.is_ok(), "{signal}");
                let ended = child.wait().expect("the program ends");
                if !Path::new(&copy).exists() {
                    return Some(ended);
                }
                std::fs::remove_file(&copy).expect("the copy");
                None
            });
            let ended = ended.expect("one of a hundred copies is interrupted");
            assert_eq!(ended.code(), code, "{signal}");
            if signal != "KILL" {
                assert_eq!(names(&scratch.0), before, "{signal}");
            }
        }
        // What the killed one left is removed by the next.
        answer(&["store", "backup", &store, "-o", &copy]);
        let mut after = before;
        after.push("copy.db".to_owned());
        after.sort_unstable();
        let now: Vec<String> = names(&scratch.0)
            .into_iter()
            .filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm"))
            .collect();
        assert_eq!(now, after);
        answer(&["verify", "--json", &copy]);
    }

    /// Waits for the end of a program, which is killed if it takes too long.
    fn end_of(mut child: std::process::Child) -> Option<i32> {
        for _ in 0..1_000 {
            if let Some(status) = child.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().expect("the program is killed");
        child.wait().expect("the program ends");
        None
    }

    /// A pipe that nobody reads does not keep a program from its end.
    #[test]
    fn a_full_standard_error_is_not_waited_for() {
        if crate::cases::left_to_ci() {
            return;
        }
        let scratch = Scratch::new("full-error");
        let session = scratch.write("large.jsonl", large());
        let (_reader, mut writer) = std::io::pipe().expect("a pipe");
        // As much as a pipe holds.
        std::io::Write::write_all(&mut writer, &[b'.'; 1 << 16]).expect("an empty pipe");
        let start = |arguments: &[&str]| {
            Command::new(env!("CARGO_BIN_EXE_pactql"))
                .args(arguments)
                .stdout(Stdio::null())
                .stderr(writer.try_clone().expect("a pipe"))
                .spawn()
                .expect("the program starts")
        };
        let late = start(&["verify", "--json", &session, "--timeout", "1ms"]);
        assert_eq!(end_of(late), Some(124));
        if is_ignored(15) {
            return;
        }
        let out = scratch.path("out.jsonl");
        let mut child = start(&["export", &session, "--jsonl", "--full", "-o", &out]);
        while names(&scratch.0).len() < 2 && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        send("TERM", &child.id().to_string());
        assert_eq!(end_of(child), Some(143));
        assert_eq!(names(&scratch.0), ["large.jsonl"]);
    }

    fn send(signal: &str, process: &str) {
        let sent = Command::new("kill").args(["-s", signal, process]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "{signal}");
    }

    /// While a pager shows the result, the time is over and Ctrl-C is a key of the pager. Other signals end
    /// the program.
    #[test]
    fn a_pager_is_not_interrupted() {
        if crate::cases::left_to_ci() {
            return;
        }
        let scratch = Scratch::new("pager");
        let mark = scratch.path("mark");
        let paged = |pager: &str, options: &str| {
            let _ = std::fs::remove_file(&mark);
            let pager =
                format!("cat > /dev/null; echo $PPID > {mark}.new; mv {mark}.new {mark}; {pager}");
            let program = format!("{} steps {AGENT} {options}", env!("CARGO_BIN_EXE_pactql"));
            // A terminal.
            Command::new("script")
                .args(["-qec", &program, "/dev/null"])
                .env("PACTQL_PAGER", pager)
                .env("TERM", "xterm")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
        };
        let Ok(child) = paged("sleep 4", "--timeout 3s") else {
            println!("SKIPPED: `script` is not installed");
            return;
        };
        assert_eq!(
            end_of(child),
            Some(0),
            "a time that ends while the pager runs"
        );
        for (signal, number, pager, code) in [
            ("INT", 2, "sleep 1", 0),
            ("TERM", 15, "sleep 30", 143),
            ("HUP", 1, "sleep 30", 129),
        ] {
            // Whoever runs the tests may have set it to be ignored, as `nohup` does.
            if is_ignored(number) {
                println!("SKIPPED: {signal} is ignored here");
                continue;
            }
            let child = paged(pager, "").expect("the program starts");
            let process = loop {
                match std::fs::read_to_string(&mark) {
                    Ok(process) => break process,
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            send(signal, process.trim());
            assert_eq!(end_of(child), Some(code), "{signal}");
        }
    }

    /// What a killed program leaves is removed by the next one that writes there.
    #[test]
    fn what_a_killed_program_leaves_is_cleaned() {
        if crate::cases::left_to_ci() {
            return;
        }
        let scratch = Scratch::new("killed");
        let session = scratch.write("large.jsonl", large());
        let out = scratch.path("out.jsonl");
        let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
            .args(["export", &session, "--jsonl", "--full", "-o", &out])
            .spawn()
            .expect("the program starts");
        while names(&scratch.0).len() < 2 {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("the program is killed");
        child.wait().expect("the program ends");
        assert_eq!(names(&scratch.0).len(), 2);
        answer(&["export", AGENT, "-o", &out]);
        assert_eq!(names(&scratch.0), ["large.jsonl", "out.jsonl"]);
    }

    /// A private output stays private, is never readable by others while it is written, and keeps its place
    /// behind a link.
    #[test]
    fn a_replaced_output_keeps_its_mode_and_its_link() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let scratch = Scratch::new("modes");
        let target = scratch.write("private.json", "{}");
        let link = scratch.path("link.json");
        symlink("private.json", &link).expect("a link");
        for mode in [0o600, 0o640, 0o755] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&target, permissions).expect("a mode");
            answer(&["export", AGENT, "-o", &link, "--force"]);
            let data = std::fs::metadata(&target).expect("the file");
            assert_eq!(data.mode() & 0o777, mode);
            assert!(data.len() > 2);
            assert!(
                std::fs::symlink_metadata(&link)
                    .expect("the link")
                    .is_symlink()
            );
            std::fs::write(&target, "{}").expect("the file");
        }
        // A link to nothing yet.
        let dangling = scratch.path("dangling.json");
        symlink("new.json", &dangling).expect("a link");
        answer(&["export", AGENT, "-o", &dangling]);
        assert!(scratch.0.join("new.json").is_file());
        assert!(
            std::fs::symlink_metadata(&dangling)
                .expect("the link")
                .is_symlink()
        );
        let circle = scratch.path("circle.json");
        symlink("circle.json", &circle).expect("a link");
        fails(&["export", AGENT, "-o", &circle], 6, "too many links");
    }

    #[test]
    fn a_read_only_output_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new("read-only-output");
        let file = scratch.write("out.json", "{}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).expect("a mode");
        for command in [
            vec!["export", AGENT, "-o", &file, "--force"],
            vec!["export", AGENT, "--jsonl", "-o", &file, "--force"],
            vec![
                "import",
                "fixtures/chat.openai.json",
                "-o",
                &file,
                "--force",
            ],
        ] {
            fails(&command, 1, "is read-only");
        }
        assert_eq!(std::fs::read(&file).expect("the file"), b"{}");
        assert_eq!(names(&scratch.0), ["out.json"]);
    }
}

#[test]
fn an_output_is_replaced_with_force_only_and_never_the_input() {
    let scratch = Scratch::new("force");
    let session = scratch.write("session.jsonl", std::fs::read(AGENT).expect("the fixture"));
    let out = scratch.write("out.jsonl", "{}");
    fails(
        &["export", &session, "-o", &out],
        1,
        "`--force` replaces it",
    );
    fails(&["export", &session, "-o", &session], 1, "is the input");
    fails(
        &["export", &session, "-o", &session, "--force"],
        1,
        "is the input",
    );
    answer(&["export", &session, "-o", &out, "--force"]);
}

#[test]
fn a_timeout_ends_a_command() {
    let scratch = Scratch::new("timeout");
    let session = scratch.write("large.jsonl", large());
    let out = scratch.path("out.jsonl");
    let ran = pactql(&["verify", "--json", &session, "--timeout", "1ms"]);
    assert_eq!((ran.code, &*ran.out), (124, ""), "{}", ran.err);
    assert!(ran.err.contains("not done within 1ms"), "{}", ran.err);
    let json = [
        "export",
        &session,
        "--jsonl",
        "--format",
        "json",
        "--timeout",
        "1ms",
        "-o",
        &out,
    ];
    let ran = pactql(&json);
    assert_eq!((ran.code, &*ran.out), (124, ""), "{}", ran.err);
    assert!(ran.err.contains("\"code\":\"E_CANCELLED\""), "{}", ran.err);
    assert_eq!(names(&scratch.0), ["large.jsonl"]);
    assert_eq!(
        pactql(&["sessions", "-v", AGENT, "--timeout", "1h"]).code,
        0
    );
    fails(
        &["sessions", "-v", AGENT, "--timeout", "soon"],
        3,
        "such as `500ms`",
    );
}

/// A small file that unpacks to too much, or to nothing but blanks, is refused for that.
#[test]
fn a_bomb_is_refused_for_what_it_is() {
    if crate::cases::left_to_ci() {
        return;
    }
    use std::io::Write as _;
    let scratch = Scratch::new("bomb");
    for (unit, message) in [
        (&b"[1,"[..], "larger than 1048576 bytes"),
        (b"{}\n", "larger than 1048576 bytes"),
        (b"  \n", "the first megabyte is white space or zeros"),
        (b"\0\0\0", "the first megabyte is white space or zeros"),
    ] {
        for level in [flate2::Compression::best(), flate2::Compression::none()] {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), level);
            packed.write_all(&unit.repeat(1 << 20)).expect("memory");
            let path = scratch.path("bomb.json.gz");
            std::fs::write(&path, packed.finish().expect("memory")).expect("a file");
            for command in [&["sessions", "-v"][..], &["verify"], &["export"]] {
                let command = [command, &[&*path, "--max-input", "1M"]].concat();
                fails(&command, 5, message);
            }
        }
    }
}

/// Damaged inputs of each kind, through the program: an answer, or a message and nothing on standard output.
/// `tests/mutations.rs` reads a thousand of each kind in its own process.
#[test]
fn damaged_inputs_are_answered_or_refused() {
    let scratch = Scratch::new("damaged");
    let sources = scratch.path("sources");
    std::fs::create_dir(&sources).expect("a directory");
    scratch.write("sources/a.md", "rain and wind\n".repeat(40));
    let cache = scratch.path("cache");
    answer(&["context", "build", "--sources", &sources, "--cache", &cache]);
    let manifest = scratch.path("cache/manifest.json");
    let store = scratch.path("store.db");
    answer(&["import", AGENT, "-o", &store]);
    let session = scratch.path("session.jsonl");
    let log = scratch.path("log.jsonl");
    let resolve = [
        "context", "resolve", "--cache", &cache, "--query", "rain", "--budget", "100",
    ];
    let select_store = format!("{store}#*");
    for (kind, good, path, command) in [
        (
            "session",
            AGENT,
            &session,
            vec!["select", &session, "@t0 .cb"],
        ),
        (
            "log",
            "fixtures/release.claude-code.jsonl",
            &log,
            vec!["import", &log],
        ),
        ("cache", &manifest.clone(), &manifest, resolve.to_vec()),
        (
            "store",
            &store.clone(),
            &store,
            vec!["select", &select_store, "@t0 .cb"],
        ),
    ] {
        let good = std::fs::read(good).expect("a good input");
        for (number, bad) in mutate::Mutations::of(&good).take(12).enumerate() {
            std::fs::write(path, bad).expect("the input");
            let ran = pactql(&command);
            let known = matches!(ran.code, 0 | 1 | 2 | 4 | 5 | 6);
            assert!(known, "{kind} {number}: {} {}", ran.code, ran.err);
            assert!(
                !ran.err.contains("panicked"),
                "{kind} {number}: {}",
                ran.err
            );
            if ran.code != 0 && kind != "store" {
                assert_eq!(ran.out, "", "{kind} {number}");
                assert!(!ran.err.is_empty(), "{kind} {number}");
            }
        }
        std::fs::write(path, good).expect("the input");
    }
}
