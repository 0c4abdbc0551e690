//! What grows is sent to who watches it.

use super::{Server, pactql, quoted, scratch};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

pub(super) struct EventStream(BufReader<TcpStream>);

impl EventStream {
    pub(super) fn open(server: &Server, query: &str) -> Self {
        let mut stream = server.connect();
        let request = format!(
            "GET /api/events{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            server.host, server.token
        );
        stream.write_all(request.as_bytes()).expect("a request");
        let mut events = Self(BufReader::new(stream));
        assert!(events.line().starts_with("HTTP/1.1 200"));
        events
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).expect("an event in time");
        assert!(read > 0, "the stream has ended");
        line
    }

    /// The data of the next event of a kind. Chunks of the stream are not cut inside a line.
    pub(super) fn next(&mut self, kind: &str) -> Value {
        loop {
            if self.line().trim_end() == format!("event: {kind}") {
                let line = self.line();
                let data = line.strip_prefix("data: ").expect("data");
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }
}

#[test]
fn a_growing_log_and_a_store_send_events() {
    let directory = scratch();
    let place = directory.path();
    let lines = fs::read_to_string(place.join("outside.jsonl")).expect("a session");
    let lines: Vec<&str> = lines.lines().collect();
    let log = place.join("logs/new.jsonl");
    let write = |count: usize| {
        let text: String = lines[..count]
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(&log, text).expect("a file");
    };
    write(1);
    let server = Server::start(place, &["logs", "a.db"]);
    let mut list = EventStream::open(&server, "");
    let mut events = EventStream::open(&server, "?session=logs/new.jsonl");
    for count in [1, 2, 5] {
        write(count);
        let mut seen = events.next("changed");
        while seen["steps"] != count {
            seen = events.next("changed");
        }
        let steps = server.get("/api/steps?session=logs/new.jsonl").json();
        let steps = steps["steps"].as_array().expect("steps");
        assert_eq!(seen["session"], "logs/new.jsonl");
        assert_eq!(Some(&seen["step"]), steps.last());
        // Another client that comes in between is told how it is.
        let mut other = EventStream::open(&server, "?session=logs/new.jsonl");
        assert_eq!(other.next("changed"), seen);
    }
    fs::copy(&log, place.join("logs/another.jsonl")).expect("a copy");
    let mut total = list.next("sessions");
    while total["total"] != 5 {
        total = list.next("sessions");
    }

    let mut stored = EventStream::open(&server, &format!("?session={}", quoted("a.db#runs/chat")));
    let first = stored.next("changed");
    let (exit, _) = pactql(
        place,
        &[
            "edit",
            "add",
            "a.db#runs/chat",
            "^ah",
            "block:text { role=user } \"More?\"",
        ],
    );
    assert_eq!(exit, Some(0));
    let (exit, _) = pactql(place, &["edit", "commit", "a.db#runs/chat"]);
    assert_eq!(exit, Some(0));
    let mut after = stored.next("changed");
    while after["steps"] == first["steps"] {
        after = stored.next("changed");
    }
    assert_eq!(
        after["steps"].as_u64(),
        first["steps"].as_u64().map(|steps| steps + 1)
    );
    assert_eq!(server.get("/api/events?session=none").status, 404);
}

/// A figure of `/metrics`.
fn figure(server: &Server, name: &str) -> u64 {
    let metrics = server.get("/metrics").body;
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(&format!("{name} ")));
    value.and_then(|value| value.parse().ok()).expect(&metrics)
}

#[test]
fn a_growing_log_is_read_on_and_what_is_kept_has_a_bound() {
    let directory = scratch();
    let place = directory.path();
    let path = place.join("logs/grows.jsonl");
    let line = |at: usize| {
        let text = format!("{at} {}", "words of a conversation ".repeat(80));
        let role = ["user", "assistant"][at % 2];
        let parent = at.checked_sub(1).map(|at| format!("u{at}"));
        let said = json!({"type": role, "uuid": format!("u{at}"), "parentUuid": parent, "sessionId": "s",
            "isSidechain": false, "timestamp": format!("2026-03-02T09:00:{:02}Z", at % 60),
            "message": {"id": format!("m{at}"), "role": role, "content": [{"type": "text", "text": text}]}});
        format!("{said}\n")
    };
    let begun: String = (0..200).map(line).collect();
    fs::write(&path, &begun).expect("a log");
    let server = Server::start(place, &["logs", "a.db"]);
    let asked = "session=logs/grows.jsonl";
    let mut events = EventStream::open(&server, &format!("?{asked}"));
    assert_eq!(events.next("changed")["steps"], 100);
    assert_eq!(server.get("/api/sessions").status, 200);
    let before = figure(&server, "pactql_log_bytes_read_total");
    assert!(before >= begun.len() as u64);
    let mut file = fs::File::options().append(true).open(&path).expect("a log");
    let mut appended = 0;
    for at in 200..220 {
        let line = line(at);
        appended += line.len() as u64;
        file.write_all(line.as_bytes()).expect("a line");
        if at % 2 == 1 {
            let steps = server.get(&format!("/api/steps?{asked}")).json();
            let wanted = at.div_ceil(2);
            assert_eq!(
                steps["steps"].as_array().map(Vec::len),
                Some(wanted),
                "{at}"
            );
            while events.next("changed")["steps"] != wanted {}
        }
        assert_eq!(server.get("/api/sessions").status, 200);
    }
    let read = figure(&server, "pactql_log_bytes_read_total") - before;
    // Of each look, the end of what was read is compared, and the last reply is read again.
    let looks = 20 * 3;
    assert!(
        read <= 4 * appended + looks * (12 << 10),
        "{read} bytes were read for {appended}"
    );
    // The answers are those of one who reads the log now.
    let fresh = Server::start(place, &["logs"]);
    for route in ["steps", "show", "tokens", "prefix", "tree"] {
        let path = format!("/api/{route}?{asked}");
        assert_eq!(server.get(&path).body, fresh.get(&path).body, "{route}");
    }
    // A log that takes its place is read as a whole.
    fs::write(&path, &begun[..begun.len() / 2]).expect("a log");
    let whole = Server::start(place, &["logs"]);
    let steps = format!("/api/steps?{asked}");
    assert_eq!(server.get(&steps).body, whole.get(&steps).body);

    let session = quoted("a.db#runs/chat");
    assert_eq!(
        server.get(&format!("/api/show?session={session}")).status,
        200
    );
    let most = figure(&server, "pactql_cache_budget_bytes");
    assert_eq!(most, 128 << 20);
    let kept = figure(&server, "pactql_cache_bytes");
    assert!(kept > 0 && kept <= most, "{kept}");
}
