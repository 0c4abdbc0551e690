//! `pactql serve` as a child process, asked over real sockets: answers, who may ask, limits, events, changes, the end.

mod events;
mod guard;
mod names;
// A server that is only started and stopped.
#[allow(dead_code, unreachable_pub)]
#[cfg(all(unix, feature = "postgres"))]
#[path = "../../support/postgres.rs"]
mod postgres;
#[cfg(all(unix, feature = "postgres"))]
mod servers;
mod write;

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for an answer or for the end. A server that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with a session, two logs and a store.
fn scratch() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let logs = directory.path().join("logs");
    fs::create_dir(&logs).expect("a directory");
    for (from, to) in [
        ("support-agent.jsonl", "logs/agent.jsonl"),
        ("chat.openai.json", "logs/chat.json"),
        ("support-agent.jsonl", "outside.jsonl"),
    ] {
        fs::copy(fixtures.join(from), directory.path().join(to)).expect("a copy");
    }
    let (exit, _) = pactql(
        directory.path(),
        &["import", "logs/chat.json", "-o", "a.db#runs/chat"],
    );
    assert_eq!(exit, Some(0));
    directory
}

/// The exit code of a command, and what it prints.
fn pactql(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("the program starts");
    (
        ran.status.code(),
        String::from_utf8_lossy(&ran.stdout).into_owned(),
    )
}

struct Server {
    child: Child,
    host: String,
    token: String,
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    /// What comes until the other side closes; status 0 without an answer.
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Self {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect(&self.body)
    }

    /// The code of an error.
    fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }
}

impl Server {
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pactql"));
        command.arg("serve").args(arguments);
        Self::run(command.current_dir(directory))
    }

    /// Starts a command that serves.
    fn run(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut url = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut url)
            .expect("an address");
        let (host, token) = url.trim().split_once("/?token=").expect("a token");
        let host = host.strip_prefix("http://").expect("an address");
        Self {
            host: host.to_owned(),
            token: token.to_owned(),
            child,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream
    }

    /// Sends a request as it is, and reads until the server closes the connection.
    fn raw(&self, request: &[u8]) -> Reply {
        let mut stream = self.connect();
        // A server that refuses a long body does not read it to its end.
        let _ = stream.write_all(request);
        Reply::read(stream)
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.raw(self.request(method, path, headers, body).as_bytes())
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: {}\r\n", self.host));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        request
    }

    /// As [`Server::send`], with the token.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let headers = [&[("Authorization", &*bearer)][..], headers].concat();
        self.send(method, path, &headers, body)
    }

    fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], "")
    }

    /// Sends the server a signal, and waits until it has ended.
    fn stop(&mut self, signal: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("`kill` starts").success());
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A text as a value in the query of an address.
fn quoted(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A route with its arguments but for the session, and the command but for the session and `--json`.
const SAME: [(&str, &[&str]); 17] = [
    ("steps?", &["steps"]),
    (
        "steps?where=.cb%5Bkind%3Dcall%5D",
        &["steps", "--where", ".cb[kind=call]"],
    ),
    ("show?at=@c3", &["show", "--at", "@c3"]),
    (
        "show?at=3&before_reply=true",
        &["show", "--at", "3", "--before-reply"],
    ),
    ("show?over=@t-2..@t0", &["show", "--over", "@t-2..@t0"]),
    ("request?at=@c4", &["render", "--request", "--at", "@c4"]),
    (
        "request?at=@t0&to=anthropic",
        &["render", "--request", "--at", "@t0", "--as", "anthropic"],
    ),
    ("diff?a=@c2&b=@c4", &["diff", "@c2", "@c4"]),
    (
        "tokens?at=@c2&by=role",
        &["tokens", "--at", "@c2", "--by", "role"],
    ),
    ("prefix?", &["prefix"]),
    ("usage?by=model", &["usage", "--by", "model"]),
    ("grep?pattern=rim", &["grep", "rim"]),
    ("select?selector=.cb", &["select", ".cb"]),
    ("select?selector=.cb&at=@c2", &["select", "@c2 .cb"]),
    (
        "select?selector=.cb&at=@history",
        &["select", "@history .cb"],
    ),
    ("explain?selector=@t0%20.cb", &["explain", "@t0 .cb"]),
    ("fields?", &["fields"]),
];

#[test]
fn each_route_answers_as_its_command() {
    let directory = scratch();
    let place = directory.path();
    for (where_, session, word) in [
        ("logs", "logs/agent.jsonl", "logs/agent.jsonl"),
        ("logs", "logs/chat.json", "logs/chat.json"),
        ("a.db", "runs/chat", "a.db#runs/chat"),
    ] {
        let server = Server::start(place, &[where_]);
        for (route, command) in SAME {
            let reply = server.get(&format!("/api/{route}&session={}", quoted(session)));
            // The session is the first word, but for a pattern that is before it.
            let at = if command[0] == "grep" { 2 } else { 1 };
            let arguments = [&command[..at], &[word, "--json"], &command[at..]].concat();
            let (exit, printed) = pactql(place, &arguments);
            assert_eq!(
                (exit, reply.status),
                (Some(0), 200),
                "{route} {}",
                reply.body
            );
            let lines = printed.trim_end().replace('\n', ",");
            let expected = if route.starts_with("show") {
                format!("[{lines}]")
            } else {
                lines
            };
            let expected = match route.split_once('?') {
                // What names the session is another.
                Some(("usage" | "explain", _)) => {
                    let mut found = reply.json();
                    found["cache"] = "miss".into();
                    let mut printed: Value = serde_json::from_str(&expected).expect("JSON");
                    printed["cache"] = "miss".into();
                    assert_eq!(found, printed, "{route}");
                    continue;
                }
                _ => expected,
            };
            assert_eq!(reply.body.trim_end(), expected, "{route} of {word}");
        }
        let session = quoted(session);
        let tree = server.get(&format!("/api/tree?at=@c2&session={session}"));
        let (_, nodes) = pactql(place, &["select", word, "@c2 *", "--format", "nodes"]);
        assert_eq!(
            tree.body.trim_end(),
            format!("[{}]", nodes.trim_end().replace('\n', ","))
        );
        let nodes = server.get(&format!(
            "/api/select?selector=@c2%20*&nodes=true&session={session}"
        ));
        assert_eq!(nodes.body, tree.body);
        let cut = server
            .get(&format!("/api/show?max_bytes=10&session={session}"))
            .json();
        let texts = cut[0]["blocks"].as_array().expect("blocks").iter();
        assert!(
            texts
                .clone()
                .any(|block| block["text"].as_str().unwrap().ends_with(" more bytes"))
        );
        // Texts are cut, but not the ids for the next request.
        let short = server.get(&format!("/api/tree?at=@c2&max_bytes=3&session={session}"));
        let (short, whole) = (short.json(), tree.json());
        let both = short.as_array().into_iter().flatten();
        let both = both.zip(whole.as_array().into_iter().flatten());
        for (short, whole) in both {
            for name in ["id", "parent_id", "snapshot"] {
                assert_eq!(short[name], whole[name]);
            }
        }
        assert_ne!(short, whole);
        let page = server.get(&format!("/api/page?session={session}"));
        assert!(
            page.json()["steps"]
                .as_array()
                .is_some_and(|steps| !steps.is_empty())
        );
    }
}

/// A directory with a transcript, and its server.
fn of_transcript() -> (tempfile::TempDir, Server, &'static str) {
    let directory = scratch();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let log = "logs/release.jsonl";
    let from = fixtures.join("release.claude-code.jsonl");
    fs::copy(from, directory.path().join(log)).expect("a copy");
    let server = Server::start(directory.path(), &["logs"]);
    (directory, server, log)
}

#[test]
fn ranges_are_written_as_on_the_command_line() {
    let (_directory, server, log) = of_transcript();
    for (typed, whole) in [
        ("9..11", "@c9..@c11"),
        ("t-2..latest", "@t-2..@t0"),
        ("@c9..11", "@c9..@c11"),
    ] {
        for route in ["steps?over=", "show?at=", "select?selector=.cb&at="] {
            let get = |time: &str| server.get(&format!("/api/{route}{time}&session={log}"));
            let (short, long) = (get(typed), get(whole));
            assert_eq!((short.status, &short.body), (200, &long.body), "{route}");
        }
    }
}

/// What a command says on standard error is in a header.
#[test]
fn notes_are_those_of_the_command_line() {
    let (directory, server, log) = of_transcript();
    let notes = |path: &str| {
        let reply = server.get(path);
        reply.header("pactql-notes").unwrap_or_default().to_owned()
    };
    for route in ["steps", "show", "tokens", "prefix"] {
        let said = notes(&format!("/api/{route}?session={log}"));
        assert!(said.contains("reconstructed"), "{route}: {said}");
        let said = notes(&format!("/api/{route}?session={log}&where=%5Brool=user%5D"));
        assert!(said.contains("%60role%60"), "{route}: {said}");
    }
    let said = notes(&format!("/api/diff?a=3&b=5&selector=.cbb&session={log}"));
    assert!(
        said.contains("reconstructed") && said.contains("cbb"),
        "{said}"
    );
    // A selector that can match nothing by its form.
    let never = "%5Brole=a%5D%5Brole=b%5D";
    for route in [
        format!("steps?where={never}"),
        format!("diff?a=3&b=5&selector={never}"),
    ] {
        let said = notes(&format!("/api/{route}&session={log}"));
        assert!(said.contains("matches%20nothing"), "{route}: {said}");
    }
    let said = notes("/api/steps?session=logs/agent.jsonl");
    assert_eq!(said, "");
    // Lines that cannot be read.
    let path = directory.path().join("logs/bad.jsonl");
    let whole = fs::read_to_string(directory.path().join(log)).expect("a log");
    fs::write(path, format!("{whole}{{\"cut\nnonsense\n")).expect("a log");
    let said = notes("/api/steps?session=logs/bad.jsonl");
    assert!(said.contains("without%202%20malformed%20lines"), "{said}");
}

/// A sample of a log of inspect_ai has one name, for the server, the command line and an import.
#[test]
fn sessions_of_a_log_are_named_as_an_import_names_them() {
    let directory = scratch();
    let case = "tests/cases/logs/inspect-ai/synthetic-log.json";
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join(case);
    fs::copy(case, directory.path().join("logs/run.json")).expect("a copy");
    let (exit, listed) = pactql(directory.path(), &["sessions", "logs/run.json", "--json"]);
    assert_eq!(exit, Some(0));
    let names = listed.lines().map(|line| {
        let session: Value = serde_json::from_str(line).expect("JSON");
        format!(
            "logs/run.json#{}",
            session["name"].as_str().expect("a name")
        )
    });
    let mut names: Vec<String> = names.collect();
    assert!(names.len() > 1, "{names:?}");
    let server = Server::start(directory.path(), &["logs"]);
    let found = server.get("/api/sessions?search=run.json").json();
    let served = found["sessions"].as_array().expect("a list").iter();
    let mut served: Vec<&str> = served.filter_map(|row| row["name"].as_str()).collect();
    names.sort_unstable();
    served.sort_unstable();
    assert_eq!(served, names);
    let one = server.get(&format!("/api/steps?session={}", quoted(&names[0])));
    assert_eq!(one.status, 200, "{}", one.body);
}

#[test]
fn runs_are_compared_and_logs_are_listed() {
    let directory = scratch();
    let server = Server::start(directory.path(), &["logs", "a.db"]);
    let list = server.get("/api/sessions").json();
    let names: Vec<&str> = list["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    assert_eq!(names.len(), 3);
    assert_eq!(names[0], "a.db#runs/chat");
    assert!(names.contains(&"logs/agent.jsonl") && names.contains(&"logs/chat.json"));
    assert_eq!(
        (&list["total"], &list["next"], &list["write"]),
        (&3.into(), &Value::Null, &false.into())
    );
    // In parts, which together are the whole.
    let mut parts = Vec::new();
    let mut path = "/api/sessions?limit=1".to_owned();
    while parts.len() < 9 {
        let part = server.get(&path).json();
        parts.extend(part["sessions"].as_array().expect("a list").iter().cloned());
        match part["next"].as_str() {
            Some(next) => path = format!("/api/sessions?limit=1&cursor={}", quoted(next)),
            None => break,
        }
    }
    assert_eq!(Value::from(parts), list["sessions"]);
    let found = server.get("/api/sessions?search=RIM%20chat.json").json();
    assert_eq!(found["sessions"][0]["name"], "logs/chat.json");
    assert_eq!(found["sessions"].as_array().map(Vec::len), Some(1));

    // A log of several sessions without names: each has that of an import.
    let chats: Vec<Value> = (1..=3)
        .map(|number| json!([{"role": "user", "content": format!("Question {number}")}]))
        .collect();
    fs::write(
        directory.path().join("logs/many.json"),
        json!(chats).to_string(),
    )
    .expect("a log");
    let part = server.get("/api/sessions?search=many&limit=2").json();
    let name = |at: usize| part["sessions"][at]["name"].clone();
    assert_eq!(part["sessions"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (name(0), name(1)),
        (
            "logs/many.json#many-1".into(),
            "logs/many.json#many-2".into()
        )
    );
    let next = quoted(part["next"].as_str().expect("there is more"));
    let rest = server
        .get(&format!("/api/sessions?search=many&cursor={next}"))
        .json();
    assert_eq!(rest["sessions"][0]["name"], "logs/many.json#many-3");
    let last = server.get("/api/select?session=logs/many.json%23many-3&selector=.cb");
    assert!(last.body.contains("cb:1-1"), "{}", last.body);

    let diff = server.get("/api/diff?session=logs/chat.json&other=a.db%23runs/chat");
    let (_, printed) = pactql(
        directory.path(),
        &["diff", "logs/chat.json", "a.db#runs/chat", "--json"],
    );
    assert_eq!(diff.body, printed);
    // A log that has grown is another answer, and one that has come is found.
    let lines = fs::read_to_string(directory.path().join("outside.jsonl")).expect("a session");
    let (first, _) = lines.split_once('\n').expect("lines");
    let place: PathBuf = directory.path().join("logs/new.jsonl");
    fs::write(&place, format!("{first}\n")).expect("a file");
    let steps = || server.get("/api/steps?session=logs/new.jsonl").json();
    assert_eq!(steps()["steps"].as_array().map(Vec::len), Some(1));
    fs::write(&place, &lines).expect("a file");
    // Six, and what came after them.
    assert_eq!(steps()["steps"].as_array().map(Vec::len), Some(7));
}

/// A list of two stores and a log, asked for in parts of any size, and for words.
#[test]
fn a_list_in_parts_is_the_list() {
    let directory = scratch();
    let place = directory.path();
    let chat = fs::read_to_string(place.join("logs/chat.json")).expect("a log");
    for (number, (store, name)) in [
        ("a.db", "runs/b"),
        ("a.db", "x y"),
        ("a.db", "runs/é"),
        ("b.db", "runs/a"),
        ("b.db", "z"),
    ]
    .into_iter()
    .enumerate()
    {
        // Another log for each: one log has one place in a store.
        let log = format!("{number}.json");
        fs::write(place.join(&log), &chat).expect("a log");
        let into = format!("{store}#{name}");
        let (exit, _) = pactql(place, &["import", &log, "-o", &into]);
        assert_eq!(exit, Some(0));
    }
    for (words, count) in [
        (&["a.db", "b.db", "logs"][..], 8),
        (&["a.db"], 4),
        (&["a.db#runs/*", "b.db#*a*"], 4),
        (&["a.db#x*", "b.db#none", "logs/chat.json"], 2),
    ] {
        let server = Server::start(place, words);
        for search in ["", "chat", "runs", "none at all"] {
            let path = format!("/api/sessions?search={}", quoted(search));
            let whole = server.get(&path).json();
            let rows = whole["sessions"].as_array().expect("a list");
            assert_eq!(whole["total"], count, "{words:?}");
            if search.is_empty() {
                assert_eq!(rows.len(), count, "{words:?}");
            }
            for limit in 1..=count {
                let (mut parts, mut next) = (Vec::new(), None);
                loop {
                    let from = next.map(|next: String| format!("&cursor={}", quoted(&next)));
                    let from = from.unwrap_or_default();
                    let part = server.get(&format!("{path}&limit={limit}{from}")).json();
                    let some = part["sessions"].as_array().expect("a list");
                    assert!(some.len() <= limit);
                    parts.extend(some.iter().cloned());
                    next = part["next"].as_str().map(str::to_owned);
                    if next.is_none() {
                        break;
                    }
                    assert!(!some.is_empty(), "{words:?} {search} {limit}");
                }
                assert_eq!(&parts, rows, "{words:?} {search} {limit}");
            }
        }
        for cursor in ["x", "#", "-1", "1e3", "x#a"] {
            let reply = server.get(&format!("/api/sessions?cursor={}", quoted(cursor)));
            assert_eq!(reply.status, 400, "{cursor}");
        }
        // Beyond the end there is nothing.
        let reply = server.get("/api/sessions?cursor=99%23").json();
        assert_eq!(reply["next"], Value::Null);
    }
}

/// The page of the logs of this machine's agents, without a word and without a browser.
#[cfg(unix)]
#[test]
fn what_has_no_session_is_refused_or_noted_at_the_start() {
    let directory = scratch();
    let place = directory.path();
    fs::create_dir_all(place.join("other/empty")).expect("a directory");
    // The address of the server, or nothing, and what is said beside it.
    let started = |arguments: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
            .args(arguments)
            .current_dir(place)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        if !line.is_empty() {
            child.kill().expect("it runs");
        }
        let ended = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        (line, ended.status.code(), said)
    };
    for (name, text) in [
        ("other/LICENSE", "MIT"),
        ("other/a.json", "{\"a\":1}"),
        ("other/nothing.jsonl", ""),
    ] {
        fs::write(place.join(name), text).expect("a file");
        let refused = started(&["serve", name]);
        assert_eq!((refused.0.as_str(), refused.1), ("", Some(5)), "{name}");
        assert_eq!(refused, started(&["sessions", name]));
    }
    for folder in ["other", "other/empty"] {
        let (url, _, said) = started(&["serve", folder]);
        let note = format!("note: there are no logs and no sessions in {folder} yet\n");
        assert_eq!((url.starts_with("http"), said), (true, note));
    }
    assert_eq!(started(&["serve", "logs"]).2, "");
    // The total is of logs, and a file that becomes one is counted then.
    let server = Server::start(place, &["other"]);
    assert_eq!(server.get("/api/sessions").json()["total"], 0);
    fs::copy(place.join("logs/chat.json"), place.join("other/a.json")).expect("a copy");
    assert_eq!(server.get("/api/sessions").json()["total"], 1);
}

#[test]
fn the_machine_is_viewed() {
    let directory = scratch();
    let home = directory.path().join("home");
    for (name, text) in crate::cli::usage::logs() {
        let name = match name.split_once('/') {
            Some(("claude", rest)) => format!(".claude/projects/{rest}"),
            Some(("codex", rest)) => format!(".codex/sessions/{rest}"),
            _ => name,
        };
        let path = home.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a log");
    }
    let machine = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pactql"));
        crate::cli::alone(&mut command)
            .args(arguments)
            .env("HOME", &home)
            .current_dir(directory.path());
        command
    };
    let mut server = Server::run(&mut machine(&["view", "--no-open"]));
    let page = server.send("GET", &format!("/?token={}", server.token), &[], "");
    assert_eq!(page.status, 303);
    let list = server.get("/api/sessions").json();
    let rows = list["sessions"].as_array().expect("a list");
    let agents = |agent: &str| rows.iter().filter(|row| row["agent"] == agent).count();
    assert!(agents("claude-code") > 0, "{list}");
    assert!(agents("codex") > 0, "{list}");
    // Each is one that is answered for.
    for row in rows {
        let name = row["name"].as_str().expect("a name");
        let steps = server.get(&format!("/api/steps?session={}", quoted(name)));
        assert_eq!(steps.status, 200, "{name}: {}", steps.body);
    }
    let ran = machine(&["sessions", "-n", "99", "--color", "never"]).output();
    let printed = String::from_utf8(ran.expect("the program runs").stdout).expect("text");
    let shown = rows.iter().filter_map(|row| row["name"].as_str());
    let shown = shown.filter(|name| printed.contains(name)).count();
    assert!(shown > 1, "{printed}");
    assert_eq!(server.stop("-INT"), Some(0));
    // Of one log, the same answers as `serve`.
    let log = "logs/chat.json";
    let viewed = Server::run(&mut machine(&["view", log, "--no-open"]));
    let served = Server::start(directory.path(), &[log]);
    for path in ["/api/sessions", "/api/steps?session=logs/chat.json"] {
        assert_eq!(viewed.get(path).body, served.get(path).body, "{path}");
    }
}

#[test]
fn errors_are_those_of_the_command_with_a_status() {
    let directory = scratch();
    fs::write(
        directory.path().join("logs/broken.jsonl"),
        "{\"root\":{}}\n{nope\n",
    )
    .expect("a file");
    let server = Server::start(directory.path(), &["logs"]);
    let of = |query: &str| server.get(&format!("/api/{query}&session=logs/agent.jsonl"));
    let wrong = of("select?selector=.cb%5B");
    assert_eq!(
        (wrong.status, wrong.code()),
        (400, "E_SELECTOR_INVALID".to_owned())
    );
    assert_eq!(wrong.json()["error"]["spans"][0]["start"], 4);
    // Where the snapshot is apart, places are those of the selector all the same.
    assert_eq!(of("select?at=@c2&selector=.cb%5B").json(), wrong.json());
    for (query, status, code) in [
        ("show?at=@c99", 404, "E_SNAPSHOT_NOT_FOUND"),
        ("show?at=noon", 400, "E_SELECTOR_INVALID"),
        ("show?max_bytes=many", 400, "E_VALUE"),
        ("show?before_reply=perhaps", 400, "E_VALUE"),
        ("show?att=@c1", 400, "E_USAGE"),
        ("show?at=@c1&at=@c2", 400, "E_USAGE"),
        ("show?at=@c1&over=@history", 400, "E_USAGE"),
        ("grep?pattern=(", 400, "E_REGEX"),
        ("grep?", 400, "E_USAGE"),
        ("nothing?", 404, "E_MISSING"),
    ] {
        let reply = of(query);
        let found = (reply.status, reply.code());
        assert!(
            found.0 == status && (code == "E_REGEX" || found.1 == code),
            "{query}: {found:?}"
        );
    }
    let broken = server.get("/api/show?session=logs/broken.jsonl");
    assert_eq!((broken.status, broken.code()), (422, "E_INPUT".to_owned()));
    let wrong_method = server.ask("POST", "/api/show?session=logs/agent.jsonl", &[], "{}");
    assert_eq!(
        (wrong_method.status, wrong_method.code()),
        (405, "E_METHOD".to_owned())
    );
    assert_eq!(server.get("/nothing").status, 404);
}

/// The committed document is the one that is made of the code.
#[test]
fn the_openapi_document_is_committed() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (exit, printed) = pactql(place, &["serve", "--openapi"]);
    assert_eq!(exit, Some(0));
    let file = place.join("docs/openapi.json");
    if std::env::var_os("PACTQL_BLESS").is_some() {
        fs::write(&file, &printed).expect("a file");
    }
    let committed = fs::read_to_string(file).unwrap_or_default();
    assert!(
        committed == printed,
        "docs/openapi.json is old: PACTQL_BLESS=1 writes it"
    );
    let directory = scratch();
    let server = Server::start(directory.path(), &["logs"]);
    assert_eq!(server.get("/api/openapi.json").body, printed);
}

/// Memory is that of what is kept: asking for the same sessions again takes no more.
#[cfg(target_os = "linux")]
#[test]
fn requests_again_take_no_memory() {
    let directory = scratch();
    let place = directory.path();
    let text = fs::read_to_string(place.join("outside.jsonl")).expect("a session");
    let runs = place.join("runs");
    fs::create_dir(&runs).expect("a folder");
    for number in 0..60 {
        let run = text.replace("Anna", &format!("Anna {number}"));
        let run = format!("{run}{}", "\n".repeat(number));
        fs::write(runs.join(format!("{number}.jsonl")), run).expect("a session");
    }
    assert_eq!(
        pactql(place, &["import", "runs", "-o", "many.db"]).0,
        Some(0)
    );
    let server = Server::start(place, &["many.db"]);
    let list = server.get("/api/sessions?limit=1000").json();
    let rows = list["sessions"].as_array().expect("a list");
    assert_eq!(rows.len(), 60);
    let held = || {
        let status = format!("/proc/{}/status", server.child.id());
        let status = fs::read_to_string(status).expect("the state of the process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        kilobytes.unwrap_or(u64::MAX)
    };
    let mut after = Vec::new();
    for _ in 0..4 {
        for row in rows {
            let session = quoted(row["name"].as_str().expect("a name"));
            for route in ["steps", "show", "tokens", "prefix"] {
                let reply = server.get(&format!("/api/{route}?session={session}&over=@history"));
                assert_eq!(reply.status, 200, "{route}: {}", reply.body);
            }
        }
        server.get("/api/sessions?limit=1000");
        after.push(held());
    }
    println!("kilobytes after each round: {after:?}");
    assert!(after[3] < after[1] + after[1] / 10, "{after:?}");
}

#[test]
fn a_server_counts_and_ends_in_order() {
    let directory = scratch();
    let mut server = Server::start(directory.path(), &["logs"]);
    assert_eq!(server.get("/api/steps?session=logs/chat.json").status, 200);
    assert_eq!(server.get("/api/show?session=none").status, 404);
    assert_eq!(server.get("/%22x").status, 404);
    let metrics = server.get("/metrics").body;
    for line in [
        "pactql_http_request_seconds_count{route=\"/api/steps\",status=\"200\"} 1",
        "pactql_http_request_seconds_count{route=\"/api/show\",status=\"404\"} 1",
        "pactql_http_request_seconds_count{route=\"other\",status=\"404\"} 1",
        "pactql_http_requests_waiting 0",
        "# TYPE pactql_http_request_seconds histogram",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    // A request that has begun is answered; an idle connection and a stream of events end.
    let mut begun = server.connect();
    let half = format!(
        "GET /api/fields?session=logs/chat.json HTTP/1.1\r\nHost: {}\r\n",
        server.host
    );
    let idle = server.connect();
    begun.write_all(half.as_bytes()).expect("a request");
    let mut events = server.connect();
    let request = format!(
        "GET /api/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.host, server.token
    );
    events.write_all(request.as_bytes()).expect("a request");
    let mut first = [0; 15];
    events.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    assert_eq!(server.stop("-TERM"), Some(0));
    assert!(TcpStream::connect(&server.host).is_err());
    drop(idle);
}
