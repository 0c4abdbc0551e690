//! A walk through all commands: each is on the first screen, its help begins with a question and has two examples, and
//! these run as they are typed, also with `--json`.

use super::{AGENT, CHAT, Scratch, alone, answer};
use regex::Regex;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Parts of examples that are not run, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("pactql serve agents.db", "serves until it is interrupted"),
    ("pactql view", "serves until it is interrupted"),
    ("--follow", "follows until it is interrupted"),
    ("postgres://", "needs a server"),
    ("--duration 10", "takes long"),
];

/// Commands whose `--json` prints something else, and why.
const NOT_JSON: &[(&str, &str)] = &[
    ("completions", "a script for a shell"),
    ("man", "a page"),
    ("view", "not run"),
    ("context serve", "another protocol"),
];

/// The commands below one, by its manual page, each with what is before it.
fn below(path: &str, all: &mut Vec<String>) {
    let words: Vec<&str> = std::iter::once("man")
        .chain(path.split_whitespace())
        .collect();
    let page = answer(&words).replace("\\-", "-");
    let start = format!("pactql-{}", path.replace(' ', "-"));
    let names = page
        .lines()
        .filter_map(|line| line.strip_prefix(&start)?.strip_suffix("(1)"));
    for name in names.filter(|name| *name != "help" && !name.starts_with("help-")) {
        let path = format!("{path}{name}");
        all.push(path.clone());
        below(&format!("{path} "), all);
    }
}

/// The examples of a help.
fn examples(help: &str) -> Vec<&str> {
    let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
    let lines = examples.lines().map_while(|line| line.strip_prefix("  "));
    lines.collect()
}

/// What the examples name: sessions, a store, folders, a cache.
fn furnish(scratch: &Scratch) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [
        "runs",
        "docs",
        "conversations",
        ".claude/projects/kestrel",
        ".local/share/bash-completion/completions",
        ".local/share/man/man1",
        ".config/fish/completions",
    ] {
        fs::create_dir_all(scratch.0.join(folder)).expect("a directory");
    }
    let greenhouse = "fixtures/greenhouse.jsonl";
    let release = "fixtures/release.claude-code.jsonl";
    for (from, to) in [
        (AGENT, "session.jsonl"),
        (AGENT, "yesterday.jsonl"),
        (greenhouse, "today.jsonl"),
        (AGENT, "runs/a.jsonl"),
        (greenhouse, "runs/b.jsonl"),
        (AGENT, "conversations/a.jsonl"),
        (CHAT, "chat.json"),
        (release, ".claude/projects/kestrel/release.jsonl"),
    ] {
        fs::copy(root.join(from), scratch.0.join(to)).expect("a copy");
    }
    for (name, text) in [
        ("selectors.txt", "@t0 .cb\n"),
        ("limits.txt", "none @t0 .cb[data_is_error=true]\n"),
        (
            "docs/deployment.md",
            "# Deployment\n\nA deployment takes a minute.\n",
        ),
        ("docs/rules.md", "# Rules\n\nBe brief.\n"),
        ("corrected.md", "Where is my refund?\n"),
        ("summary.md", "They want a refund.\n"),
    ] {
        scratch.write(name, text);
    }
    for line in [
        "pactql context build --sources docs --cache cache",
        "pactql import session.jsonl -o agents.db --name support-42",
        "pactql import today.jsonl -o agents.db --name a",
    ] {
        let (code, _, err) = run(line, &scratch.0);
        assert_eq!(code, 0, "{line}: {err}");
    }
}

/// Runs a line of the shell there; a pipe fails with its first command.
fn run(line: &str, directory: &Path) -> (i32, String, String) {
    let ours = Path::new(env!("CARGO_BIN_EXE_pactql"));
    let ours = ours.parent().expect("a directory").to_path_buf();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let paths: Vec<PathBuf> = std::iter::once(ours)
        .chain(std::env::split_paths(&others))
        .collect();
    let output = alone(&mut Command::new("bash"))
        .args(["-c", &format!("set -o pipefail; {line}")])
        .current_dir(directory)
        .env("PATH", std::env::join_paths(paths).expect("a PATH"))
        .env("HOME", directory)
        .stdin(Stdio::null())
        .output()
        .expect("the shell starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

/// An example without where its result goes; `None` of one that is not a request for JSON.
fn without_pipe(line: &str) -> Option<&str> {
    if !line.starts_with("pactql ") || line.contains("--curl") {
        return None;
    }
    let quoted = line.rfind(['"', '\'']).unwrap_or(0);
    let ends = [" > ", " | "].into_iter();
    let end = ends.filter_map(|sign| line[quoted..].find(sign)).min();
    Some(&line[..end.map_or(line.len(), |end| quoted + end)])
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Why a line is not run.
fn not_run(line: &str) -> Option<&str> {
    let known = NOT_RUN.iter().find(|(part, _)| line.contains(part));
    let other = ["sqlite3", "man"].into_iter();
    let mut other = other.filter(|name| line.contains(&format!("| {name} ")));
    let missing = other.find(|name| !is_installed(name));
    known.map(|(_, why)| *why).or(missing)
}

#[test]
fn every_command_answers_a_question() {
    let help = answer(&["--help"]);
    let screen: Vec<&str> = help.lines().take(24).collect();
    let named: Vec<&str> = screen
        .iter()
        .flat_map(|line| line.split([' ', ',']))
        .collect();
    let mut faults = String::new();
    for line in screen.iter().filter(|line| line.chars().count() > 80) {
        let _ = writeln!(faults, "wider than 80 columns: {line}");
    }
    for word in ["Look", "Search", "Measure", "Check", "Move", "Keep", "More"] {
        assert!(named.contains(&word), "{word}: {help}");
    }
    let mut commands = Vec::new();
    below("", &mut commands);
    assert!(commands.len() > 50, "{commands:?}");
    for command in &commands {
        let words: Vec<&str> = command.split(' ').collect();
        let help = answer(&[&words[..], &["--help"]].concat());
        let first = help.split("\n\n").next().unwrap_or_default();
        let least = match &words[..] {
            [_, _, _] => 1,
            _ => 2,
        };
        for (holds, what) in [
            (first.contains("?"), "begins without a question"),
            (examples(&help).len() >= least, "has too few examples"),
            (help.contains("--json"), "has no --json"),
            (
                words[0] == "context" && words.len() > 1
                    || words.len() > 2
                    || named.contains(&words[words.len() - 1]),
                "is not on the first screen",
            ),
        ] {
            if !holds {
                let _ = writeln!(faults, "{command} {what}: {first}");
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(answer(&["completions", shell]).contains("pactql"));
    }
    assert_eq!(
        answer(&["--version"]),
        concat!("pactql ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

/// A word that is nearly a command is answered with a command that only reads, or with none.
#[test]
fn no_guess_writes() {
    let writers = [
        "import", "export", "share", "store", "edit", "context", "serve", "rename", "delete",
        "prune", "erase", "backup", "vacuum", "salvage", "parquet", "new", "add", "update",
        "remove", "move", "replace", "compact", "commit", "discard", "fork", "refs", "attempts",
        "index",
    ];
    let mut commands = Vec::new();
    below("", &mut commands);
    let mut guesses = 0;
    for command in &commands {
        let name = command.rsplit(' ').next().unwrap_or_default();
        for typed in [&name[1..], &name[..name.len() - 1], &format!("{name}x")] {
            if commands.iter().any(|known| known == typed) {
                continue;
            }
            let ran = super::pactql(&[typed, "x.db"]);
            assert_eq!(ran.out, "", "{typed}");
            let Some((_, guess)) = ran.err.split_once("did you mean `pactql ") else {
                continue;
            };
            guesses += 1;
            let guess = guess.split(['`', ' ']).next().unwrap_or_default();
            assert!(!writers.contains(&guess), "{typed}: {}", ran.err);
        }
    }
    assert!(guesses > 30, "{guesses}");
}

/// Each example is run in order of those of its command, and again with `--json`.
#[test]
fn examples_work_as_they_are_typed() {
    if crate::cases::left_to_ci() || !is_installed("bash") {
        return;
    }
    let exact = Regex::new(r"\d\d:\d\d:\d\d\.\d{4,}").expect("a pattern");
    let mut commands = Vec::new();
    below("", &mut commands);
    let (mut faults, mut ran) = (String::new(), 0);
    for command in &commands {
        let is_group = commands.iter().any(|other| {
            let below = other.strip_prefix(command.as_str());
            below.is_some_and(|rest| rest.starts_with(' '))
        });
        if is_group && !["edit refs", "edit attempts"].contains(&command.as_str()) {
            continue;
        }
        let words: Vec<&str> = command.split(' ').collect();
        if words.len() > 2 {
            continue;
        }
        let help = answer(&[&words[..], &["--help"]].concat());
        let mut is_json = false;
        let known = NOT_JSON.iter().any(|(name, _)| *name == command.as_str());
        let places = ["text", "json"].map(|name| Scratch::new(&format!("walk-{name}")));
        places.iter().for_each(furnish);
        for line in examples(&help) {
            if let Some(why) = not_run(line) {
                // Nothing is missing here that could be installed.
                println!("not run, as it {why}: {line}");
                continue;
            }
            ran += 1;
            let short = match words[0] {
                "bench" => format!("{line} --duration 0.3"),
                _ => line.to_owned(),
            };
            let (code, _, err) = run(&short, &places[0].0);
            if code != 0 || err.contains("nothing was") || err.contains("finds nothing") {
                let _ = writeln!(faults, "{line}\n  exit {code}: {err}");
            }
            let Some(alone) = without_pipe(&short) else {
                continue;
            };
            let (code, out, err) = run(&format!("{alone} --json"), &places[1].0);
            let is_value = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
            let is_json_here = is_value(&out) || !out.is_empty() && out.lines().all(is_value);
            let is_refused =
                err.contains("cannot be used with `--json`") || line.contains("--json");
            if !known && !is_refused && (code != 0 || !is_json_here || exact.is_match(&out)) {
                let _ = writeln!(faults, "{line} --json\n  exit {code}: {out}{err}");
            }
            is_json |= out.starts_with(['{', '[', '"']);
        }
        if is_json == known {
            let _ = writeln!(faults, "{command} --json: printed JSON: {is_json}");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
    assert!(ran > 90, "{ran}");
}
