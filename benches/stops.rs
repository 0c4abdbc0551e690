//! How long a cancelled call of the MCP server keeps its thread. All threads but one are kept busy by another call, the
//! call is cancelled at some moments of its work, and a small call is sent right after: it is answered when the thread is
//! free. Printed are the time of the whole call, how often it was still running when it was cancelled, and the longest of these
//! waits. 100 ms is the most there may be. A call that was answered before is made again and cancelled earlier; the bench fails
//! if one of the moments has no call that was running.
//!
//! `cargo bench --features mcp --bench stops`; `PACTQL_BENCH_PROGRAM` names another program.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Contents of a node, in bytes.
const NODE: usize = 16 << 10;

/// How often each call is cancelled.
const MOMENTS: u32 = 8;

/// Turns of the session, and of the log.
const TURNS: usize = 1_500;

/// Letters in no order, or prose.
fn content(node: usize) -> String {
    if node.is_multiple_of(2) {
        let line =
            "The refund of order 7341 was sent on Monday; Müller asked again, and we said no. ";
        return line.repeat(NODE / line.len()) + &node.to_string();
    }
    let mut random = 88_172_645_463_325_252_u64 + node as u64;
    let letters = (0..NODE).map(|_| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if random & 1 == 0 { 'a' } else { 'b' }
    });
    letters.collect()
}

fn role(number: usize) -> &'static str {
    ["user", "assistant"][number % 2]
}

/// 24 MB of turns, and 40 differences that each add one.
fn session() -> String {
    let turn = |number: usize| {
        json!({"id": format!("t{number}"), "nodeType": "mt", "created_at_ns": number, "children": [
            {"id": format!("b{number}"), "nodeType": "cb", "role": role(number), "content": content(number)}]})
    };
    let turns: Vec<Value> = (0..TURNS).map(turn).collect();
    let seq = json!({"id": "q", "nodeType": "^seq", "children": turns});
    let mut lines = json!({"cycle": 1, "root": {"id": "r", "children": [seq]}}).to_string() + "\n";
    for cycle in 2..=40 {
        let number = TURNS + cycle;
        let line = json!({"base": cycle - 1, "cycle": cycle, "remove": [], "replace": [
            {"id": format!("t{number}"), "nodeType": "mt", "created_at_ns": number, "parent_id": "q"},
            {"id": format!("b{number}"), "nodeType": "cb", "role": "user", "content": content(number),
             "parent_id": format!("t{number}")}]});
        let _ = writeln!(lines, "{line}");
    }
    lines
}

/// A log of 24 MB as Claude Code writes it.
fn log() -> String {
    let mut lines = String::new();
    for number in 0..TURNS {
        let (role, parent) = (role(number), number.checked_sub(1));
        let line = json!({"type": role, "uuid": format!("u{number}"),
            "parentUuid": parent.map(|parent| format!("u{parent}")), "sessionId": "s", "isSidechain": false,
            "timestamp": "2026-03-02T09:00:00Z",
            "message": {"role": role, "id": format!("m{number}"), "model": "m",
                "content": [{"type": "text", "text": content(number)}]}});
        let _ = writeln!(lines, "{line}");
    }
    lines
}

/// A server.
struct Server {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    last: u64,
}

impl Server {
    fn start(root: &Path) -> Self {
        let program = std::env::var("PACTQL_BENCH_PROGRAM");
        let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_pactql").to_owned());
        let mut child = Command::new(program)
            .args(["context", "serve", "--root"])
            .arg(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take().expect("a pipe");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut server = Self {
            child,
            input,
            lines,
            last: 0,
        };
        let client = json!({"name": "bench", "version": "0"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let id = server.send("initialize", hello);
        server.wait(id, 0);
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(server.input, "{begun}").expect("the server reads");
        server
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        writeln!(self.input, "{request}").expect("the server reads");
        self.last
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id});
        let sent = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        writeln!(self.input, "{sent}").expect("the server reads");
    }

    /// Waits for the answer to a request. Returns whether `other` was answered before it.
    fn wait(&mut self, id: u64, other: u64) -> bool {
        let mut answered = false;
        loop {
            let line = self.lines.next().expect("an answer").expect("UTF-8");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            assert!(answer["error"].is_null(), "{answer}");
            assert!(answer["result"]["isError"] != true, "{answer}");
            if answer["id"] == id {
                return answered;
            }
            answered |= answer["id"] == other;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-stops");
    fs::create_dir_all(&root).expect("a directory");
    fs::write(root.join("large.jsonl"), session()).expect("a file");
    fs::write(root.join("log.jsonl"), log()).expect("a file");
    fs::write(root.join("small.jsonl"), "{\"root\":{\"id\":\"r\"}}\n").expect("a file");
    let slow = "a[ab]{15}[~|]";
    let cases = [
        (
            "select",
            "pact_select",
            json!({"selector": format!("@t0 .cb[content~'{slow}']")}),
        ),
        (
            "range",
            "pact_select",
            json!({"selector": format!("@history .cb[content~'{slow}']")}),
        ),
        ("steps", "pact_steps", json!({})),
        ("tokens", "pact_tokens", json!({"over": "@history"})),
        ("grep", "pact_grep", json!({"pattern": slow})),
        (
            "import",
            "pact_select",
            json!({"selector": "@t0 .cb:last", "session": "log.jsonl"}),
        ),
        (
            "load",
            "pact_select",
            json!({"selector": "@t0 .cb:last", "session": "large.jsonl"}),
        ),
    ];
    println!(
        "| call | whole, ms | cancelled | keeps its thread at most, ms |\n|---|---:|---:|---:|"
    );
    let mut missed = 0;
    for (name, tool, mut arguments) in cases {
        // What a call has loaded is kept, so a call that is cancelled while it loads needs a new server.
        let loads = arguments["session"].is_string();
        if !loads {
            arguments["session"] = "large.jsonl".into();
        }
        let cancelled = measure(&root, name, tool, &arguments, loads);
        missed += MOMENTS - cancelled;
    }
    fs::remove_dir_all(&root).expect("removed");
    assert_eq!(missed, 0, "calls were answered before they were cancelled");
}

/// Prints the row of a call. Returns at how many moments it was still running.
fn measure(root: &Path, name: &str, tool: &str, arguments: &Value, loads: bool) -> u32 {
    // Longer than any other call.
    let slow = (880..896).map(|count| format!(".cb[content~'a[ab]{{{count}}}[~|]']"));
    let slow = slow.collect::<Vec<String>>().join(", ");
    let busy = json!({"session": "large.jsonl", "selector": format!("@t0 {slow}")});
    let small = json!({"session": "small.jsonl", "selector": "@t0 *"});
    let start = || {
        let mut server = Server::start(root);
        let id = server.call("pact_select", &small);
        server.wait(id, 0);
        if !loads {
            let id = server.call(
                "pact_select",
                &json!({"session": "large.jsonl", "selector": "@t0 .cb:last"}),
            );
            server.wait(id, 0);
        }
        server
    };
    let mut server = start();
    let mut whole = Duration::MAX;
    // The first of several compiles its pattern.
    for _ in 0..if loads { 1 } else { 3 } {
        let begun = Instant::now();
        let id = server.call(tool, arguments);
        server.wait(id, 0);
        whole = whole.min(begun.elapsed());
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut cancelled, mut worst) = (0, Duration::ZERO);
    for moment in 0..MOMENTS {
        let mut after = whole * (2 * moment + 1) / (2 * MOMENTS);
        while after > Duration::from_micros(100) {
            if loads {
                server = start();
            }
            let others: Vec<u64> = (1..threads)
                .map(|_| server.call("pact_select", &busy))
                .collect();
            let id = server.call(tool, arguments);
            std::thread::sleep(after);
            let begun = Instant::now();
            server.cancel(id);
            let next = server.call("pact_select", &small);
            let answered = server.wait(next, id);
            let waited = begun.elapsed();
            for other in others {
                server.cancel(other);
            }
            let next = server.call("pact_select", &small);
            server.wait(next, 0);
            if !answered {
                cancelled += 1;
                worst = worst.max(waited);
                break;
            }
            after /= 2;
        }
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "| {name} | {:.0} | {cancelled} of {MOMENTS} | {:.1} |",
        ms(whole),
        ms(worst)
    );
    cancelled
}
