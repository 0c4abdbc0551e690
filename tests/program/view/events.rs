//! What grows is sent to who watches it.

use super::{Server, pactql, quoted, scratch};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

struct EventStream(BufReader<TcpStream>);

impl EventStream {
    fn open(server: &Server, query: &str) -> Self {
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
    fn next(&mut self, kind: &str) -> Value {
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
