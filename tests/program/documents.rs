//! Runs what the documents show: every block fenced as `console` in the README and in `docs`.
//!
//! A line that starts with `$ ` is a command, the lines below it are what it prints, on standard
//! output and standard error. A line with only `…` means any lines, and a time agrees with any
//! other. The blocks of a document
//! run in order in one directory with a copy of `fixtures`, so a later command finds the files of
//! an earlier one. `cargo run -q --` is read as `pactql`. Blocks fenced as `sh` are not run, and commands
//! of `sqlite3` only where it is installed.
//!
//! `PACTQL_BLESS=1` writes what the commands print into the documents. Where a block leaves lines
//! out, as many lines as before are kept in front of the first `…` and after the last.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;

use crate::cli::Scratch;

const LEFT_OUT: &str = "…";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs")).expect("docs");
    let docs = entries.map(|entry| entry.expect("an entry").path());
    let at_the_root = ["README.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    let mut paths: Vec<PathBuf> = docs.chain(at_the_root).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "md") && path.is_file());
    paths.sort();
    paths
}

/// What a command prints, run by the shell in `directory`, without blanks at the ends of lines
/// and empty lines at the end.
fn printed(command: &str, directory: &Path) -> Vec<String> {
    let command = command.replace("cargo run -q -- ", "pactql ");
    let binary = Path::new(env!("CARGO_BIN_EXE_pactql"));
    let ours = binary.parent().expect("a directory").to_path_buf();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let paths = [ours].into_iter().chain(std::env::split_paths(&others));
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(directory)
        .env("PATH", std::env::join_paths(paths).expect("a PATH"))
        .env_remove("NO_COLOR")
        .output()
        .expect("the shell starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = text.trim_end().lines();
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// Whether the command line of SQLite, which `docs/store.md` uses, is installed.
fn has_sqlite3() -> bool {
    let version = Command::new("sqlite3").arg("-version").output();
    version.is_ok_and(|output| output.status.success())
}

/// Whether the lines are those of the document, where `…` is any lines.
fn agrees(shown: &[String], printed: &[String]) -> bool {
    match shown {
        [] => printed.is_empty(),
        [rest @ .., last] if last.is_empty() => agrees(rest, printed),
        [first, rest @ ..] if first == LEFT_OUT => {
            (0..=printed.len()).any(|skipped| agrees(rest, &printed[skipped..]))
        }
        [first, rest @ ..] => {
            let same = |line: &String| line == first || timeless(line) == timeless(first);
            printed.first().is_some_and(same) && agrees(rest, &printed[1..])
        }
    }
}

/// A line with every time as the same one.
fn timeless(line: &str) -> String {
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\d+(\.\d+)? (ns|µs|ms)|\d+\.\d+ s\b").expect("a pattern"));
    TIME.replace_all(line, "1 ns").into_owned()
}

/// The new lines of a document for what a command prints now.
fn blessed(shown: &[String], printed: Vec<String>) -> Vec<String> {
    let is_gap = |line: &String| line == LEFT_OUT;
    let (Some(head), Some(last)) = (
        shown.iter().position(is_gap),
        shown.iter().rposition(is_gap),
    ) else {
        return printed;
    };
    let tail = shown.len() - 1 - last;
    if head + tail >= printed.len() {
        return printed;
    }
    let mut kept = printed[..head].to_vec();
    kept.push(LEFT_OUT.to_owned());
    kept.extend_from_slice(&printed[printed.len() - tail..]);
    kept
}

/// Runs the blocks of a document. Returns its text with the output that was found, and notes
/// where that is another; also counts the commands.
fn run(path: &Path, wrong: &mut String) -> (String, usize) {
    let name = path.strip_prefix(root()).expect("a document").display();
    let scratch = Scratch::new(&format!("document-{}", name.to_string().replace('/', "-")));
    let fixtures = scratch.0.join("fixtures");
    fs::create_dir_all(&fixtures).expect("a directory");
    for entry in fs::read_dir(root().join("fixtures")).expect("fixtures") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), fixtures.join(entry.file_name())).expect("a copy");
    }
    let text = fs::read_to_string(path).expect("a document");
    let mut lines = text
        .lines()
        .map(|line| line.trim_end().to_owned())
        .peekable();
    let (mut found, mut commands) = (Vec::new(), 0);
    while let Some(line) = lines.next() {
        let runs = line == "```console";
        found.push(line);
        while runs && let Some(line) = lines.next_if(|line| line != "```") {
            let command = line.strip_prefix("$ ");
            assert!(
                command.is_some(),
                "{name}: a block without a command: {line}"
            );
            let mut command = command.unwrap_or_default().to_owned();
            found.push(line.clone());
            while command.ends_with('\\') {
                let more = lines.next().expect("the rest of a command");
                command = format!("{command}\n{more}");
                found.push(more);
            }
            let mut shown = Vec::new();
            while let Some(line) = lines.next_if(|line| line != "```" && !line.starts_with("$ ")) {
                shown.push(line);
            }
            commands += 1;
            if command.starts_with("sqlite3 ") && !has_sqlite3() {
                println!("SKIPPED: there is no sqlite3: $ {command}");
                found.extend(shown);
                continue;
            }
            let printed = printed(&command, &scratch.0);
            if agrees(&shown, &printed) {
                found.extend(shown);
                continue;
            }
            let (expected, got) = (shown.join("\n"), printed.join("\n"));
            let _ = writeln!(
                wrong,
                "{name}: $ {command}\n{expected}\n-- prints:\n{got}\n"
            );
            found.extend(blessed(&shown, printed));
        }
    }
    (found.join("\n") + "\n", commands)
}

#[test]
fn documents_show_what_the_program_prints() {
    let bless = std::env::var_os("PACTQL_BLESS").is_some();
    if !bless && crate::cases::left_to_ci() {
        return;
    }
    assert!(
        !bless || std::env::var_os("CI").is_none(),
        "blessing in CI would pass every document"
    );
    let (mut wrong, mut commands) = (String::new(), 0);
    for path in documents() {
        let before = wrong.len();
        let (text, count) = run(&path, &mut wrong);
        commands += count;
        if bless && wrong.len() > before {
            fs::write(&path, text).expect("the document");
        }
    }
    assert!(bless || wrong.is_empty(), "\n{wrong}");
    assert!(commands > 20, "only {commands} commands");
}

/// What people want to know of a run, the command of the cookbook that answers it, and a part of the answer. The commands
/// are run by [`documents_show_what_the_program_prints`].
const TASKS: &[(&str, &str, &str)] = &[
    ("which runs there are", "sessions runs.db", "travel.openai"),
    (
        "which logs are in a folder",
        "sessions logs",
        "Prepare release",
    ),
    (
        "why the name was forgotten",
        "blame library.jsonl cb:2-1",
        "dropped by the client",
    ),
    (
        "the largest tool result",
        "top runs.db \".cb[kind='result']\" --by block",
        "cb:4-1",
    ),
    (
        "a tool that failed",
        "\"@* .cb[data_is_error=true]\"",
        "error: test failed",
    ),
    ("a tool that was tried again", "within=0", "Edit"),
    (
        "calls that were made twice",
        "tokens leap.jsonl --duplicates",
        "cb:17-1 cb:23-1",
    ),
    (
        "what compaction dropped",
        "release.claude-code @c8 @c9 .cb",
        "21 removed",
    ),
    (
        "into which summary",
        "blame runs.db#release.claude-code cb:14-1",
        "cb:17-1",
    ),
    (
        "where two runs part",
        "diff fixtures/travel.openai.json other.json",
        "equal step",
    ),
    (
        "what changed in a step",
        "release.claude-code @c3 @c4 .cb",
        "2 added",
    ),
    (
        "what the sessions cost",
        "usage logs --by agent",
        "$0.149877",
    ),
    ("totals by day", "usage runs.db --by day", "2026-04-07"),
    (
        "what trimming would save",
        "--without \".cb[kind='result']\"",
        "without",
    ),
    (
        "a request as curl",
        "--curl",
        "curl \"https://api.openai.com",
    ),
    (
        "a request as JSON",
        "render runs.db#travel.openai --request",
        "\"model\"",
    ),
    (
        "which turn brought a text in",
        "grep -i \"line feed\" runs.db",
        "@c2 to @c8",
    ),
    ("the step that sent most", "--sort counted -n 1", "@c7"),
    ("the slowest step", "--sort duration -n 1", "@c1"),
    (
        "turns in which a tool failed",
        "\"@t0 .mt:has([data_is_error=true]) .cb\"",
        "String to replace not found",
    ),
    (
        "calls that were never answered",
        ":not(:has-result)",
        "git push",
    ),
    (
        "old and large results",
        "[tokens>2000]",
        "running 216 tests",
    ),
    (
        "where the user corrected an edit",
        ":after(.cb[kind='call'][data_call_name~'Edit|Write'], within=1)",
        "public names must stay",
    ),
    (
        "documents behind a wrong answer",
        "^root:has([content~'Found it'][age=0])",
        "transport damage",
    ),
    (
        "tools that were never called",
        "tokens --unused",
        "cancel_booking",
    ),
    ("what fills a request", "--at @c7 --by kind", "result"),
    (
        "how often each tool is called",
        "\".cb[kind='call']\" --by tool",
        "Bash",
    ),
    ("what the subagent did", "/reviewer-1", "Neither breaks"),
];

#[test]
fn the_cookbook_answers_what_people_want_to_know() {
    let text = fs::read_to_string(root().join("docs/cookbook.md")).expect("the cookbook");
    let blocks = text.split("```console\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    let runs = blocks.flat_map(|block| block.split("$ ").skip(1));
    let runs: Vec<&str> = runs.collect();
    for (task, command, answer) in TASKS {
        let mut found = runs.iter().filter(|run| run.contains(command));
        let answered = found.any(|run| run.contains(answer));
        assert!(answered, "{task}: {command}: {answer}");
    }
    assert!(TASKS.len() >= 20);
    let (_, twelve) = text
        .split_once("\n## Twelve questions")
        .expect("the section");
    let twelve = twelve.split("\n## ").next().expect("the section");
    let questions: Vec<&str> = twelve.split("\n**").skip(1).collect();
    assert_eq!(questions.len(), 12);
    for question in questions {
        assert!(
            question.contains("```console\n$ pactql") || question.contains("\n$ pactql"),
            "{question}"
        );
    }
}
