//! Text that is not ours never reaches a terminal as it is: every command is run on sessions, logs, folders and stores whose names,
//! ids and texts try to control the terminal, or to turn the direction of writing.

use super::{Ran, Scratch, alone};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A title of the window, a colour, erasing the screen in one byte, text from right to left, and DEL.
const HOSTILE: &str = "\u{1b}]0;t\u{7}\u{1b}[31m\u{9b}2J\u{202e}\u{7f}x";

/// What a name of a session in a store may have of it.
const TURNED: &str = "\u{202e}\u{2066}x";

/// Puts the hostile text behind every text of a value that means nothing to the program.
fn poison(value: &mut Value, name: &str) {
    match value {
        Value::String(text) => {
            let known = [
                "nodeType",
                "created_at_iso",
                "content_hash",
                "mime",
                "type",
                "op",
                "path",
                "timestamp",
            ];
            if !text.starts_with('^') && !known.contains(&name) {
                text.push_str(HOSTILE);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| poison(value, name)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(name, value)| poison(value, name)),
        _ => {}
    }
}

fn poisoned(path: &str) -> String {
    let text = fs::read_to_string(path).expect("a fixture");
    let lines = text.lines().map(|line| {
        let mut value: Value = serde_json::from_str(line).expect("JSON");
        poison(&mut value, "");
        value.to_string() + "\n"
    });
    lines.collect()
}

/// What of a text a terminal would obey. Colours are the program's own.
fn obeyed(text: &str, colored: bool) -> Option<String> {
    let direction = |letter: char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_color = |at: usize| {
        let codes = text[at..].strip_prefix("\u{1b}[");
        let rest = codes.map(|codes| {
            codes.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';')
        });
        colored && rest.is_some_and(|rest| rest.starts_with('m'))
    };
    let bad = text.char_indices().find(|(at, letter)| match letter {
        '\n' | '\t' => false,
        // A terminal gets it before each line feed.
        '\r' => !(colored && text[at + 1..].starts_with('\n')),
        letter => (letter.is_control() || direction(*letter)) && !is_color(*at),
    });
    bad.map(|(at, _)| {
        let start = text.floor_char_boundary(at.saturating_sub(60));
        let end = text.ceil_char_boundary((at + 40).min(text.len()));
        format!("{:?}", &text[start..end])
    })
}

fn run(place: &Path, arguments: &[&str]) -> Ran {
    let output = alone(&mut Command::new(env!("CARGO_BIN_EXE_pactql")))
        .args(arguments)
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// The same on a terminal, without the pager; `None` without the program that makes one.
#[cfg(target_os = "linux")]
fn on_a_terminal(place: &Path, arguments: &[&str]) -> Option<String> {
    let quoted = |word: &&str| format!("'{}'", word.replace('\'', "'\\''"));
    let words: Vec<String> = arguments.iter().map(quoted).collect();
    let line = format!("'{}' {}", env!("CARGO_BIN_EXE_pactql"), words.join(" "));
    let output = alone(&mut Command::new("script"))
        .args(["-qec", &line, "/dev/null"])
        .current_dir(place)
        .env("PACTQL_PAGER", "")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(not(target_os = "linux"))]
fn on_a_terminal(_: &Path, _: &[&str]) -> Option<String> {
    None
}

#[test]
fn no_command_passes_on_what_controls_a_terminal() {
    let scratch = Scratch::new("hostile");
    let place = &scratch.0;
    let session = format!("s{HOSTILE}.jsonl");
    let log = format!("l{HOSTILE}.jsonl");
    let missing = format!("m{HOSTILE}.jsonl");
    fs::write(
        place.join(&session),
        poisoned("fixtures/support-agent.jsonl"),
    )
    .expect("a file");
    fs::write(
        place.join(&log),
        poisoned("fixtures/release.claude-code.jsonl"),
    )
    .expect("a file");
    fs::write(
        place.join(format!("damaged{HOSTILE}.jsonl")),
        "{\"cycle\":1,\u{1b}[2J",
    )
    .expect("a file");
    let folder = format!("f{HOSTILE}");
    fs::create_dir(place.join(&folder)).expect("a folder");
    fs::copy(place.join(&log), place.join(&folder).join(&log)).expect("a file");
    fs::write(place.join(&folder).join(format!("d{HOSTILE}.md")), HOSTILE).expect("a file");
    fs::write(place.join("conditions"), format!("tokens < 10{HOSTILE}\n")).expect("a file");
    let selectors = format!(".cb[role='{HOSTILE}']\n.{HOSTILE}\n");
    fs::write(place.join("selectors"), selectors).expect("a file");
    let stored = format!("a.db#s{TURNED}");
    let other = format!("a.db#n{TURNED}");
    let selector = format!(".cb[role='user{HOSTILE}']");
    let wrong = format!("@t0 .{HOSTILE}");
    let id = format!("cb:persona{HOSTILE}");
    let (s, l, m, f) = (&*session, &*log, &*missing, &*folder);
    let damaged = format!("damaged{HOSTILE}.jsonl");
    let commands: Vec<Vec<&str>> = vec![
        vec!["import", l, "-o", "out.jsonl"],
        vec!["import", l],
        vec!["import", f, "--store", "a.db"],
        vec!["import", s, "--store", "a.db"],
        vec!["import", m],
        vec!["import", &damaged],
        vec!["store", "rename", "a.db#nothing", &other],
        vec!["edit", "new", &stored],
        vec!["edit", "add", &stored, "^ah", &id],
        vec![
            "edit",
            "add",
            &stored,
            "^ah",
            "block:text { role=user } \"x\"",
        ],
        vec!["edit", "commit", &stored],
        vec!["edit", "fork", &stored, "@t0", "-o", &other],
        vec!["edit", "remove", &stored, &wrong],
        vec!["edit", "refs", &stored],
        vec!["edit", "attempts", &stored],
        vec!["show", s],
        vec!["show", s, "--full"],
        vec!["show", s, "--format", "markdown"],
        vec!["show", l],
        vec!["show", m],
        vec!["show", &damaged],
        vec!["show", &stored],
        vec!["show", &wrong],
        vec!["steps", s],
        vec!["steps", l],
        vec!["steps", &stored],
        vec!["steps", l, "--changes", &wrong],
        vec!["diff", s, "@t-1", "@t0"],
        vec!["diff", s, "@t-1", "@t0", "--content", "unified"],
        vec!["diff", s, "@t-1", "@t0", "--content", "jsonpatch"],
        vec!["diff", s, l],
        vec!["diff", s, &wrong, "@t0"],
        vec!["blame", s, &id],
        vec!["blame", s, HOSTILE],
        vec!["select", s, "@t0 *"],
        vec!["select", s, "@t0 *", "--format", "table"],
        vec!["select", s, "@t0 *", "--format", "tree"],
        vec!["select", s, "@t0 *", "--format", "ids"],
        vec!["select", s, "@t-3..@t0 .cb"],
        vec!["select", s, &selector],
        vec!["select", s, &wrong],
        vec!["select", s, "-e", &wrong],
        vec!["select", m, ".cb"],
        vec!["select", "a.db", ".cb"],
        vec!["select", s, "--file", "selectors"],
        vec!["select", s, ".cb", "--budget", "100", "--query", HOSTILE],
        vec!["select", s, "@t0..@t-3 .cb", "--include-content"],
        vec!["grep", "x", s],
        vec!["grep", "x", l],
        vec!["grep", HOSTILE, s],
        vec!["grep", "(", s],
        vec!["grep", "x", "a.db"],
        vec!["top", s],
        vec!["top", l],
        vec!["explain", &wrong],
        vec!["explain", &selector],
        vec!["explain", s, &selector],
        vec!["sql", &selector],
        vec!["sql", &wrong],
        vec!["fields", s],
        vec!["fields", l],
        vec!["usage", s],
        vec!["usage", l],
        vec!["usage", "a.db"],
        vec!["tokens", s],
        vec!["tokens", l, "--by", "tool"],
        vec!["tokens", l, "--by", "role"],
        vec!["tokens", l, "--by", "kind"],
        vec!["prefix", l],
        vec!["prefix", s, "--all"],
        vec!["assert", "conditions", s],
        vec!["assert", m, s],
        vec!["verify", s],
        vec!["verify", l],
        vec!["verify", &damaged],
        vec!["verify", "a.db"],
        vec!["export", s],
        vec!["export", s, "--at", &wrong],
        vec!["render", s, "--as", "openai"],
        vec!["render", &wrong, "--as", HOSTILE],
        vec!["share", s, "--receipt"],
        vec!["share", s, "--html"],
        vec!["share", l, "--html", "--redact", HOSTILE],
        vec!["sessions", "."],
        vec!["sessions", "a.db"],
        vec!["sessions", s, l],
        vec!["sessions", m],
        vec!["sessions", "a.db#*x"],
        vec!["store", "index", "a.db"],
        vec!["store", "rename", &stored, &other],
        vec!["store", "prune", "a.db", "--keep", "1", "--dry-run"],
        vec!["store", "delete", &stored],
        vec!["store", "erase", &stored, &id],
        vec!["store", "backup", "a.db", f],
        vec!["store", "backup", "a.db", &missing],
        vec!["context", "build", "--sources", f, "--cache", "cache"],
        vec![
            "context", "resolve", "--cache", "cache", "--query", HOSTILE, "--budget", "1000",
        ],
        vec!["context", "inspect", "--cache", m],
        vec!["context", "verify", "--cache", "cache"],
        vec!["fmt", &wrong],
        vec!["fmt", &selector],
        vec!["bench", s, "-e", &wrong],
        vec![HOSTILE],
        vec![s],
        vec![m],
        vec!["show", s, HOSTILE],
        vec!["select", s, ".cb", HOSTILE],
        vec!["show", s, "--as", HOSTILE],
        vec!["--format", HOSTILE, "show", s],
        vec!["completions", HOSTILE],
        vec!["man", HOSTILE],
    ];
    let mut bad = Vec::new();
    let mut seen = [0; 2];
    let mut kept = |how: &str, arguments: &[&str], text: &str, colored: bool| {
        if let Some(what) = obeyed(text, colored) {
            bad.push(format!("{how} {arguments:?}: {what}"));
        }
        seen[0] += 1;
        seen[1] += usize::from(text.contains("\\u001b") || text.contains("\\u202e"));
    };
    let terminal = on_a_terminal(place, &["--version"]);
    if terminal.is_none() {
        println!("SKIPPED: `script` is not installed, so nothing is run on a terminal");
    }
    for arguments in &commands {
        let ran = run(place, arguments);
        // Data that another program reads is as it is.
        let is_data = matches!(arguments[0], "export" | "render" | "fmt" | "select" | "sql")
            || arguments.ends_with(&["--format", "ids"])
            || ran.out.starts_with(['{', '[']);
        if !is_data {
            kept("results of", arguments, &ran.out, false);
        }
        kept("messages of", arguments, &ran.err, false);
        let colored = [&["--color", "always"][..], arguments].concat();
        kept("colours of", &colored, &run(place, &colored).err, true);
        if terminal.is_none() || crate::cases::few() {
            continue;
        }
        for arguments in [arguments.clone(), [&["--json"][..], arguments].concat()] {
            if let Some(text) = on_a_terminal(place, &arguments) {
                kept("on a terminal", &arguments, &text, true);
            }
        }
    }
    assert!(
        bad.is_empty(),
        "{} of {seen:?}:\n{}",
        bad.len(),
        bad.join("\n")
    );
    assert!(seen[1] * 3 > seen[0], "escapes in {seen:?}");
}
