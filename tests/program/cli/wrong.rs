//! Command lines as people type them, right and wrong, and wrong documents, each with all that it prints, from
//! `tests/cases/program`.
//!
//! A case starts with `== title`. `file NAME` and lines after `> ` make a file; `$ command` is run
//! by the shell in a directory with the fixtures, on a terminal of 80 columns without colours. What follows is the result:
//! the exit code, standard output after `- `, standard error after `| `. `PACTQL_BLESS=1` writes the results.
//!
//! Where the help is a whole command or has one in backticks, it is run too, and must not be a wrong use again; so
//! must not be a selector that a note proposes, which must find something.

use super::terminal::{is_there, on_terminal};
use super::{AGENT, CHAT, Scratch};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A case as read: its text without the result, and the result.
#[derive(Default)]
struct Case {
    title: String,
    files: Vec<(String, String)>,
    command: String,
    head: String,
    result: String,
}

fn cases(text: &str) -> (String, Vec<Case>) {
    let (mut before, mut cases) = (String::new(), Vec::<Case>::new());
    for line in text.lines() {
        let Some(case) = cases.last_mut().filter(|_| !line.starts_with("== ")) else {
            match line.strip_prefix("== ") {
                Some(title) => cases.push(Case {
                    title: title.to_owned(),
                    head: format!("{line}\n"),
                    ..Case::default()
                }),
                None => before += &format!("{line}\n"),
            }
            continue;
        };
        if let Some(name) = line.strip_prefix("file ") {
            case.files.push((name.to_owned(), String::new()));
        } else if let Some(line) = line.strip_prefix("> ") {
            let file = case.files.last_mut().expect("a file");
            file.1 += &format!("{line}\n");
        } else if let Some(command) = line.strip_prefix("$ ") {
            case.command = command.to_owned();
        } else {
            case.result += &format!("{line}\n");
            continue;
        }
        case.head += &format!("{line}\n");
    }
    (before, cases)
}

/// A directory with the fixtures under short names.
pub(super) fn place(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["runs", "empty", "logs/projects/kestrel"] {
        fs::create_dir_all(scratch.0.join(folder)).expect("a directory");
    }
    for (from, to) in [
        (AGENT, "s.jsonl"),
        ("fixtures/greenhouse.jsonl", "g.jsonl"),
        (CHAT, "chat.json"),
        ("fixtures/release.claude-code.jsonl", "r.jsonl"),
        ("fixtures/travel.openai.json", "t.json"),
        (
            "fixtures/release.claude-code.jsonl",
            "logs/projects/kestrel/release.jsonl",
        ),
        (AGENT, "runs/a.jsonl"),
        ("fixtures/greenhouse.jsonl", "runs/b.jsonl"),
    ] {
        fs::copy(root.join(from), scratch.0.join(to)).expect("a copy");
    }
    scratch
}

/// Runs a command on a terminal of 80 columns, without colours; returns its exit code, standard output and standard error.
fn run(command: &str, directory: &Path) -> (i32, String, String) {
    let errors = directory.with_extension("errors");
    let command = format!("{{ {command}\n}} 2> {}", errors.display());
    let plain = [("NO_COLOR", "1")];
    let (code, out) = on_terminal(&command, directory, [80, 24], &plain);
    let err = fs::read_to_string(errors).expect("UTF-8");
    (code, out, err)
}

/// The command that a help is, unless it has places to fill in.
fn advised(err: &str) -> Option<&str> {
    let help = err
        .lines()
        .find_map(|line| match line.split_once("; type: ") {
            Some((error, line)) if error.starts_with("error") => Some(line),
            _ => line.strip_prefix("help: "),
        })?;
    let is_place =
        |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    // A bench takes seconds, and what is followed has no end.
    let long = help.starts_with("pactql bench ") || help.contains(" --follow");
    let whole = help.starts_with("pactql ") && !help.contains(", or ") && !long;
    let filled = !help.split([' ', '[', ']']).any(is_place);
    (whole && filled).then_some(help)
}

/// The commands in backticks in a help, and those that run what a note proposes, on the session of `command`.
fn proposed(err: &str, command: &str) -> Vec<String> {
    let session = command.split(' ').nth(2).unwrap_or_default();
    let mut commands = Vec::new();
    for line in err.lines() {
        let pieces: Vec<&str> = line.split('`').collect();
        let quoted = pieces.iter().skip(1).step_by(2);
        let command = quoted.filter(|piece| piece.starts_with("pactql top "));
        commands.extend(command.map(|piece| piece.replace("SESSION", session)));
        if let Some((_, meant)) = line.split_once("; did you mean `")
            && let Some(selector) = meant.strip_suffix("`?")
            && selector.starts_with('[')
        {
            commands.push(format!(
                "pactql select {session} \"@* {selector}\" --fail-if-empty"
            ));
        }
    }
    commands
}

fn check(name: &str, least: usize, codes: &[i32]) {
    if !is_there() {
        return;
    }
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cases/program/{name}.txt"));
    let text = fs::read_to_string(&path).expect("the cases");
    let (mut blessed, cases) = cases(&text);
    assert!(cases.len() >= least, "only {} cases", cases.len());
    let mut wrong = String::new();
    for case in &cases {
        let scratch = place(&format!("wrong-{name}"));
        for (file, text) in &case.files {
            fs::write(scratch.0.join(file), text).expect("a file");
        }
        let (code, out, err) = run(&case.command, &scratch.0);
        let mut result = format!("exit {code}\n");
        for (sign, text) in [('-', &out), ('|', &err)] {
            for line in text.lines() {
                let _ = writeln!(result, "{}", format!("{sign} {line}").trim_end());
            }
        }
        result.push('\n');
        assert!(codes.contains(&code), "{}: {result}", case.title);
        if ![0, 8, 9].contains(&code) {
            assert_eq!(out, "", "{}", case.title);
        }
        if let Some(command) = advised(&err) {
            let (code, _, err) = run(command, &scratch.0);
            assert!(
                ![1, 2, 3].contains(&code),
                "{}: {command}: {err}",
                case.title
            );
        }
        for command in proposed(&err, &case.command) {
            let (code, _, err) = run(&command, &scratch.0);
            assert_eq!(code, 0, "{}: {command}: {err}", case.title);
        }
        if result.trim_end() != case.result.trim_end() {
            let _ = writeln!(wrong, "{}{}-- is:\n{result}", case.head, case.result);
        }
        blessed += &format!("{}{result}", case.head);
    }
    if std::env::var_os("PACTQL_BLESS").is_some() {
        assert!(
            std::env::var_os("CI").is_none(),
            "blessing in CI would pass every case"
        );
        fs::write(&path, blessed.trim_end().to_owned() + "\n").expect("the cases");
    } else {
        assert!(wrong.is_empty(), "\n{wrong}");
    }
}

#[test]
fn command_lines_print_what_is_expected() {
    if crate::cases::left_to_ci() {
        return;
    }
    check("uses", 200, &[0, 1, 2, 3, 4, 5, 8, 9]);
}

#[test]
fn wrong_documents_are_answered_with_what_was_expected() {
    check("documents", 25, &[0, 5]);
}
