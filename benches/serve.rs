//! `pactql serve` under load: 50 clients read from a store of many sessions while 10 sessions grow, and how long answers take
//! at 50, 90 and 99 percent, by route; the server's memory before, after a third and at the end, which shows whether it grows
//! with what is asked.
//!
//! `cargo bench --bench serve`, `-- 1000 5` for a store of 1,000 sessions and 5 seconds; `PACTQL_BENCH_PROGRAM` names another
//! program.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const READERS: usize = 50;
const WRITERS: usize = 10;

/// A route with the rest of its query; `select` twice, as selectors are what is asked most.
const READS: [(&str, &str); 7] = [
    ("sessions", "search=weir"),
    ("steps", ""),
    ("show", "at=@t0"),
    ("select", "selector=@t0%20.cb"),
    ("select", "selector=@t0%20.cb:has-result"),
    ("tokens", "at=@t0"),
    ("grep", "pattern=weir"),
];

/// Conversations of 30 messages, as a list of lists.
fn conversations(count: usize) -> String {
    let mut out = "[".to_owned();
    for number in 0..count {
        out.push_str(if number == 0 { "[" } else { "],[" });
        for message in 0..30 {
            let role = ["user", "assistant"][message % 2];
            let comma = if message == 0 { "" } else { "," };
            let text = format!(
                "Message {message} of {number}: the weir is open, and the gauge shows {message} m."
            );
            let _ = write!(out, "{comma}{{\"role\":\"{role}\",\"content\":\"{text}\"}}");
        }
    }
    out + "]]"
}

struct Client<'s> {
    host: &'s str,
    token: &'s str,
}

impl Client<'_> {
    /// The status of an answer.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> std::io::Result<u16> {
        let mut stream = TcpStream::connect(self.host)?;
        let (host, token, length) = (self.host, self.token, body.len());
        let request = format!(
            "{method} /api/{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             {headers}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok(status.unwrap_or(0))
    }
}

/// Kilobytes that a process has in memory.
fn memory(id: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let sessions = usize::try_from(*numbers.first().unwrap_or(&10_000)).expect("a count");
    let time = Duration::from_secs(*numbers.get(1).unwrap_or(&20));
    let program = std::env::var("PACTQL_BENCH_PROGRAM");
    let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_pactql").to_owned());
    let directory = tempfile::tempdir().expect("a directory");
    let place: &Path = directory.path();
    std::fs::write(place.join("many.json"), conversations(sessions)).expect("a file");
    let imported = Command::new(&program)
        .args(["import", "many.json", "--messages", "/*", "-o", "many.db"])
        .current_dir(place)
        .output()
        .expect("the program starts");
    assert!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let listed = Command::new(&program)
        .args(["sessions", "many.db", "--json"])
        .current_dir(place)
        .output();
    let listed = String::from_utf8(listed.expect("the program starts").stdout).expect("UTF-8");
    let name = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["name"]
            .as_str()
            .expect("a name")
            .replace('%', "%25")
            .replace('/', "%2F")
    };
    let names: Vec<String> = listed.lines().map(name).collect();
    assert_eq!(names.len(), sessions);

    let mut server = Command::new(&program)
        .args(["serve", "many.db", "--write"])
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut url = String::new();
    BufReader::new(server.stdout.take().expect("a pipe"))
        .read_line(&mut url)
        .expect("an address");
    let (host, token) = url.trim().split_once("/?token=").expect("a token");
    let client = Client {
        host: host.trim_start_matches("http://"),
        token,
    };

    let times: Mutex<Vec<(&str, Duration)>> = Mutex::default();
    let (stop, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut held = vec![memory(server.id())];
    std::thread::scope(|scope| {
        let keep = |route, began: Instant, status: std::io::Result<u16>| match status {
            Ok(200) => times
                .lock()
                .expect("no panic")
                .push((route, began.elapsed())),
            _ => {
                refused.fetch_add(1, Ordering::Relaxed);
            }
        };
        for reader in 0..READERS {
            let (client, names, stop) = (&client, &names, &stop);
            scope.spawn(move || {
                let mut number = reader * 7_919;
                while !stop.load(Ordering::Relaxed) {
                    // In an order that visits all sessions.
                    number += 104_729;
                    let (route, query) = READS[number % READS.len()];
                    let name = &names[number % names.len()];
                    let session = if route == "sessions" {
                        String::new()
                    } else {
                        format!("&session={name}")
                    };
                    let began = Instant::now();
                    keep(
                        route,
                        began,
                        client.ask("GET", &format!("{route}?{query}{session}"), "", ""),
                    );
                }
            });
        }
        for writer in 0..WRITERS {
            let (client, stop) = (&client, &stop);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let (route, body) = [
                        (
                            "append",
                            "{\"role\":\"user\",\"content\":\"Is the weir open?\"}",
                        ),
                        ("reply", "{\"content\":\"It is.\"}"),
                        ("commit", "{}"),
                    ][number % 3];
                    let path = format!(
                        "{route}?session=grows{writer}{}",
                        if route == "append" {
                            "&create=true"
                        } else {
                            ""
                        }
                    );
                    let key = format!("Idempotency-Key: k{number}\r\n");
                    let began = Instant::now();
                    keep(route, began, client.ask("POST", &path, &key, body));
                }
            });
        }
        for _ in 0..3 {
            std::thread::sleep(time / 3);
            held.push(memory(server.id()));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let _ = server.kill();
    let _ = server.wait();

    let times = times.into_inner().expect("no panic");
    let per_second = times.len() as u64 / time.as_secs().max(1);
    println!(
        "{sessions} sessions, {READERS} readers, {WRITERS} writers: {} answers in {time:?}, {per_second} a second, {} refused",
        times.len(),
        refused.into_inner()
    );
    println!(
        "{:<10}{:>8}{:>12}{:>12}{:>12}",
        "", "answers", "50 %", "90 %", "99 %"
    );
    for route in [
        "sessions", "steps", "show", "select", "tokens", "grep", "append", "reply", "commit",
    ] {
        let mut of: Vec<Duration> = times
            .iter()
            .filter(|(name, _)| *name == route)
            .map(|(_, time)| *time)
            .collect();
        of.sort_unstable();
        let at = |share: usize| {
            of.get(of.len() * share / 100)
                .copied()
                .unwrap_or_default()
                .as_micros()
        };
        println!(
            "{route:<10}{:>8}{:>9} µs{:>9} µs{:>9} µs",
            of.len(),
            at(50),
            at(90),
            at(99)
        );
    }
    let held: Vec<String> = held
        .iter()
        .map(|kilobytes| format!("{} MB", kilobytes / 1024))
        .collect();
    println!(
        "memory of the server at the start and after each third: {}",
        held.join(", ")
    );
}
