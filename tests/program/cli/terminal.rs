//! The program on a terminal: tables as wide as it, colours, and keys that interrupt.

use super::alone;
use super::wrong::place;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether there is a program that makes terminals.
pub(super) fn is_there() -> bool {
    let there = Command::new("script").arg("--version").output().is_ok();
    if !there {
        println!("SKIPPED: `script` is not installed");
    }
    there
}

/// A command of the shell on a terminal of so many columns and lines.
fn terminal(line: &str, directory: &Path, [columns, lines]: [usize; 2]) -> Command {
    let ours = Path::new(env!("CARGO_BIN_EXE_pactql"));
    let ours = ours.parent().expect("a directory").to_path_buf();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(ours).chain(std::env::split_paths(&others));
    let paths: Vec<PathBuf> = paths.collect();
    let line = format!("stty cols {columns} rows {lines} -onlcr\n{line}");
    let mut command = Command::new("script");
    alone(&mut command)
        .args(["-qec", &line, "/dev/null"])
        .current_dir(directory)
        .env("PATH", std::env::join_paths(paths).expect("a PATH"))
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env("PACTQL_PAGER", "")
        .env_remove("NO_COLOR")
        .stderr(Stdio::inherit());
    command
}

/// Runs a command of the shell on a terminal; returns its exit code, and what it printed there. It has no input.
pub(super) fn on_terminal(
    line: &str,
    directory: &Path,
    size: [usize; 2],
    variables: &[(&str, &str)],
) -> (i32, String) {
    let line = format!("{{ {line}\n}} < /dev/null");
    let output = terminal(&line, directory, size)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the terminal starts");
    let code = output.status.code().expect("an exit code");
    (code, String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Commands whose lines are wrapped at words.
const TEXTS: &[&str] = &[
    "pactql show r.jsonl",
    "pactql show r.jsonl 3 --full",
    "pactql diff r.jsonl 8 9",
    "pactql tokens r.jsonl",
    "pactql prefix r.jsonl --all",
];

/// No line is wider than the terminal, and colours are only where they are wanted.
#[test]
fn tables_fit_the_terminal() {
    if !is_there() || crate::cases::left_to_ci() {
        return;
    }
    let scratch = place("terminal");
    let escape = regex::Regex::new("\u{1b}\\[[0-9;]*m").expect("a pattern");
    let tables = [
        "pactql",
        "pactql steps r.jsonl",
        "pactql steps r.jsonl --changes",
        "pactql tokens r.jsonl --over @history",
        "pactql top r.jsonl --by block",
        "pactql fields r.jsonl",
        "pactql select r.jsonl '@* .cb'",
        "pactql usage runs r.jsonl --by session",
        "pactql sessions . 2> /dev/null",
    ];
    for command in tables.iter().chain(TEXTS) {
        let mut widest = Vec::new();
        for size in [[80, 24], [100, 30], [200, 50]] {
            for variable in [None, Some(("NO_COLOR", "1")), Some(("TERM", "dumb"))] {
                let logs = ("CLAUDE_CONFIG_DIR", "logs");
                let variables: Vec<_> = variable.into_iter().chain([logs]).collect();
                let line = format!("{command} 2> /dev/null");
                let (code, out) = on_terminal(&line, &scratch.0, size, &variables);
                assert_eq!(code, 0, "{command}: {out}");
                let colored = out.contains('\u{1b}');
                assert_eq!(
                    colored,
                    variable.is_none(),
                    "{command}, {variable:?}: {out}"
                );
                let plain = escape.replace_all(&out, "");
                let most = plain.lines().map(|line| line.chars().count()).max();
                let most = most.expect("lines");
                assert!(most <= size[0], "{command}, {size:?}:\n{plain}");
                widest.push(most);
            }
        }
        let is_table = !TEXTS.contains(command);
        assert!(widest.is_sorted() || !is_table, "{command}: {widest:?}");
    }
}

/// Ctrl-C ends what is followed, with what was printed, and stops what is computed.
#[test]
fn a_key_interrupts() {
    if !is_there() || crate::cases::left_to_ci() {
        return;
    }
    let scratch = place("keys");
    for (command, first, code) in [
        ("steps --follow s.jsonl", "cycle", 0),
        ("bench s.jsonl -e .cb --duration 60", "", 130),
    ] {
        let line = format!("pactql {command}; echo ended with $?");
        // The shell goes on after the key.
        let line = format!("trap : INT; {line}");
        let mut child = terminal(&line, &scratch.0, [80, 24])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the terminal starts");
        let mut keys = child.stdin.take().expect("a pipe");
        let mut out = child.stdout.take().expect("a pipe");
        let mut seen = Vec::new();
        let mut some = [0; 4096];
        while !String::from_utf8_lossy(&seen).contains(first) {
            let count = out.read(&mut some).expect("output");
            assert_ne!(count, 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&some[..count]);
        }
        // What is computed has begun by then, or else ends as soon as it begins.
        std::thread::sleep(std::time::Duration::from_millis(500));
        keys.write_all(b"\x03").expect("a key");
        out.read_to_end(&mut seen).expect("output");
        child.wait().expect("the terminal ends");
        let seen = String::from_utf8_lossy(&seen);
        assert!(seen.contains(&format!("ended with {code}")), "{seen}");
    }
}
