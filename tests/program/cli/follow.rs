//! `select --follow` and `steps --follow`: logs, sessions and stores that grow while they are printed.
#![cfg(unix)]

use super::imports::{line, reply, said, user};
use super::{CHAT, Scratch, answer, fails};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A program that follows something, and the lines that it prints.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn new(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
            .args(arguments)
            .arg("--follow")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().expect("a line").expect("UTF-8")
    }

    fn take(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next()).collect()
    }

    /// Interrupts it. There are no lines left.
    fn end(mut self) -> Option<i32> {
        let kill = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        assert!(kill.expect("kill runs").success());
        let rest: Vec<String> = self.lines.map(|line| line.expect("UTF-8")).collect();
        assert_eq!(rest, [""; 0]);
        self.child.wait().expect("it ends").code()
    }
}

/// A log of Claude Code that grows.
struct Log {
    file: File,
    path: String,
    lines: usize,
}

impl Log {
    fn new(scratch: &Scratch, name: &str) -> Self {
        let path = scratch.write(name, "");
        let file = OpenOptions::new().append(true).open(&path);
        Self {
            file: file.expect("a file"),
            path,
            lines: 0,
        }
    }

    fn put(&mut self, text: &str) {
        self.file.write_all(text.as_bytes()).expect("written");
        self.file.flush().expect("written");
    }

    fn line(&mut self, message: &Value) -> String {
        let before = self.lines.to_string();
        self.lines += 1;
        let parent = Some(&*before).filter(|_| self.lines > 1);
        line(&self.lines.to_string(), parent, message, &json!({}))
    }

    /// A question and its answer.
    fn turn(&mut self, number: usize) -> String {
        let question = self.line(&user(&format!("question {number}")));
        question
            + &self.line(&reply(
                &format!("m{number}"),
                &said(&format!("answer {number}")),
            ))
    }
}

#[test]
fn matches_of_a_growing_log_come_one_a_line() {
    let scratch = Scratch::new("follow-log");
    let mut log = Log::new(&scratch, "log.jsonl");
    let first = log.turn(1);
    log.put(&first);
    let path = log.path.clone();
    let mut ids = Follower::new(&["select", &path, ".cb[role='assistant']"]);
    let mut json = Follower::new(&["select", &path, "-e", ".cb[role='user']", "--json"]);
    let mut nodes = Follower::new(&["select", &path, "@t0 .mt:depth(1) .cb", "--format", "nodes"]);
    assert_eq!(ids.next(), "cb:2-1");
    assert_eq!(json.next(), r#"{"snapshot":"@c1","id":"cb:1-1"}"#);
    assert_eq!(nodes.take(2).len(), 2);
    // Two turns at once, the last line in two halves.
    let more = log.turn(2) + &log.turn(3);
    let (head, tail) = more.split_at(more.len() - 20);
    log.put(head);
    log.put(tail);
    assert_eq!(ids.take(2), ["cb:4-1", "cb:6-1"]);
    let lines = json.take(2);
    assert!(lines[0].ends_with(r#""id":"cb:3-1"}"#), "{lines:?}");
    assert!(lines[1].ends_with(r#""id":"cb:5-1"}"#), "{lines:?}");
    // Each turn was the newest one for a while.
    let nodes_of_two = nodes.take(4);
    let contents = nodes_of_two.iter().map(|line| {
        let node: Value = serde_json::from_str(line).expect("a node");
        node["content"].as_str().expect("a text").to_owned()
    });
    let contents: Vec<String> = contents.collect();
    assert_eq!(
        contents,
        ["question 2", "answer 2", "question 3", "answer 3"]
    );
    for follower in [ids, json, nodes] {
        assert_eq!(follower.end(), Some(0));
    }
}

#[test]
fn matches_of_a_store_come_one_a_line() {
    let scratch = Scratch::new("follow-store");
    let store = scratch.path("a.db");
    answer(&["edit", "new", &format!("{store}#one")]);
    let one = format!("{store}#one");
    let add = |session: &str, node: &str| answer(&["edit", "add", session, "^ah", node]);
    add(&one, r#"block:text { id=q1, role=user } "one""#);
    let mut single = Follower::new(&["select", &one, ".cb"]);
    let mut all = Follower::new(&["select", &store, ".cb[role='user']"]);
    assert_eq!(single.next(), "q1");
    assert_eq!(all.next(), format!("{one}\tq1"));
    answer(&["edit", "commit", &one]);
    add(&one, r#"block:text { id=q2, role=user } "two""#);
    assert_eq!(single.next(), "q2");
    assert_eq!(all.next(), format!("{one}\tq2"));
    // A session that comes later.
    let two = format!("{store}#two");
    answer(&["edit", "new", &two]);
    add(&two, r#"block:text { id=other, role=user } "three""#);
    assert_eq!(all.next(), format!("{two}\tother"));
    assert_eq!(single.end(), Some(0));
    assert_eq!(all.end(), Some(0));
}

#[test]
fn steps_of_a_growing_log_come_one_a_line() {
    let scratch = Scratch::new("follow-steps");
    let mut log = Log::new(&scratch, "log.jsonl");
    let first = log.turn(1);
    log.put(&first);
    let path = log.path.clone();
    let mut text = Follower::new(&["steps", &path]);
    let mut json = Follower::new(&["steps", &path, "--json"]);
    let whole = answer(&["steps", &path]);
    let titles = whole.lines().count();
    assert_eq!(text.take(titles), whole.lines().collect::<Vec<_>>());
    let cycle = |line: String| -> Value {
        let step: Value = serde_json::from_str(&line).expect("a step");
        step["cycle"].clone()
    };
    assert_eq!(cycle(json.next()), 1);
    let more = log.turn(2) + &log.turn(3);
    log.put(&more);
    assert_eq!([cycle(json.next()), cycle(json.next())], [2, 3]);
    let mut lines = Vec::new();
    while lines.len() < 2 {
        let line = text.next();
        lines.extend(line.starts_with("@c").then_some(line));
    }
    assert!(
        lines[0].starts_with("@c2 ") && lines[1].starts_with("@c3 "),
        "{lines:?}"
    );
    assert_eq!(text.end(), Some(0));
    assert_eq!(json.end(), Some(0));
}

#[test]
fn a_follower_ends_with_its_reader() {
    let scratch = Scratch::new("follow-pipe");
    let mut log = Log::new(&scratch, "log.jsonl");
    let first = log.turn(1);
    log.put(&first);
    let path = log.path.clone();
    let mut follower = Follower::new(&["select", &path, ".cb"]);
    assert_eq!(follower.take(2), ["cb:1-1", "cb:2-1"]);
    drop(follower.lines);
    // Elsewhere only writing shows that no process reads.
    #[cfg(not(target_os = "linux"))]
    {
        let more = log.turn(2);
        log.put(&more);
    }
    let ended: ExitStatus = follower.child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let scratch = Scratch::new("follow-wrong");
    for command in [
        &["select", "X", ".cb", "--follow"][..],
        &["steps", "X", "--follow"],
    ] {
        let of = |word: &'static str| {
            let words = command
                .iter()
                .map(|given| if *given == "X" { word } else { given });
            words.collect::<Vec<_>>()
        };
        fails(&of("missing.jsonl"), 4, "missing.jsonl");
        fails(&of("missing.db"), 4, "missing.db");
        fails(&of("-"), 1, "cannot be followed");
    }
    // A file that is none of what is read is given up after a while.
    let bad = scratch.write("bad.jsonl", "{\"a\":1}\n[\n");
    fails(
        &["select", &bad, ".cb", "--follow"],
        5,
        "none of the logs can be followed",
    );
    fails(
        &["select", CHAT, "@* .cb", "--follow"],
        2,
        "a standing selector is about one snapshot",
    );
    fails(&["select", CHAT, ".cb[", "--follow"], 2, "E_");
    fails(
        &["select", CHAT, ".cb", "--follow", "--format", "tree"],
        3,
        "a line for each match",
    );
    fails(
        &["select", CHAT, ".cb", "--follow", "--count"],
        1,
        "--count",
    );
}
