//! Names, errors of the protocol, answers that nobody reads, and the end.

use super::{Client, PATIENCE, Scratch, reading};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn listed(client: &mut Client) -> Vec<String> {
    let tools = client.ask("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().expect("a list").clone();
    let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
    tools.iter().map(name).collect()
}

/// Hosts of agents refuse other names, and some then drop all tools of the server.
#[test]
fn names_of_tools_are_those_that_every_host_takes() {
    let scratch = Scratch::new("names");
    let mut client = scratch.client();
    let plain = listed(&mut client);
    let good = regex::Regex::new("^[a-zA-Z0-9_-]{1,64}$").expect("a pattern");
    assert!(plain.iter().all(|name| good.is_match(name)), "{plain:?}");
    let with = Client::spawn_with(&scratch.path("root"), &["--dotted-names"]);
    let mut dotting = Client::listening(with).greeted();
    let dotted = listed(&mut dotting);
    let expected: Vec<String> = plain
        .iter()
        .map(|name| name.replacen('_', ".", 1))
        .collect();
    assert_eq!(dotted, expected);
    assert!(dotted.contains(&"context.list_caches".to_owned()));
    // Both forms are answered, whichever is listed.
    for client in [&mut client, &mut dotting] {
        for name in ["pact_select", "pact.select"] {
            let answer = client.answer(name, reading("agent.jsonl")(name));
            assert!(answer.starts_with("[\"cb:"), "{answer}");
        }
        let caches = client.answer("context.list_caches", json!({}));
        assert_eq!(caches, client.answer("context_list_caches", json!({})));
    }
    // Messages call a tool what the client calls it.
    for (name, message) in [
        (
            "pact.selec",
            "unknown tool: pact.selec, did you mean pact.select?",
        ),
        (
            "pact_selec",
            "unknown tool: pact_selec, did you mean pact_select?",
        ),
    ] {
        let answer = client.ask("tools/call", json!({"name": name, "arguments": {}}));
        assert_eq!(answer["error"]["message"], message);
    }
    let error = client.error("pact.diff", json!({}));
    assert_eq!(error["message"], "pact.diff needs the argument `session`");
    assert_eq!(client.end().0, 0);
    assert_eq!(dotting.end().0, 0);
}

/// A request gets its error under its id if that can be found, and `id: null` says that it could not.
#[test]
fn what_cannot_be_read_is_an_error_under_its_id() {
    let scratch = Scratch::new("protocol");
    let mut client = scratch.client();
    let deep = |left: &str, right: &str| {
        let (left, right) = (left.repeat(100_000), right.repeat(100_000));
        format!(
            r#"{{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{{"a":{left}1{right}}}}}"#
        )
    };
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"long","method":"{}"}}"#,
        "x".repeat(17 << 20)
    );
    for (line, id, code) in [
        (
            r#"{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"pact_grep","arguments":{"session":"agent.jsonl","pattern":"\ud800"}}}"#,
            json!(70),
            -32700,
        ),
        (
            r#"{"method":"tools/call","params":{"name":"\udc00"},"id":"last","jsonrpc":"2.0"}"#,
            json!("last"),
            -32700,
        ),
        (&deep("[", "]"), json!(71), -32700),
        (&deep("{\"b\":", "}"), json!(71), -32700),
        (&long, json!("long"), -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":", json!(null), -32700),
        ("\u{0}\u{1}", json!(null), -32700),
        (&"[".repeat(100_000), json!(null), -32700),
        (
            "{\"jsonrpc\":\"2.0\",\"strange\":true}",
            json!(null),
            -32600,
        ),
        ("[]", json!(null), -32600),
        ("1", json!(null), -32600),
        (r#"{"jsonrpc":"2.0","id":72}"#, json!(72), -32600),
        (
            r#"{"jsonrpc":"1.0","id":73,"method":"ping"}"#,
            json!(73),
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            json!(null),
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            json!(null),
            -32600,
        ),
    ] {
        client.send(line);
        let answer = client.receive();
        let shown: String = line.chars().take(120).collect();
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        assert!(answer.get("id").is_some(), "{shown}: {answer}");
        assert_eq!(answer["id"], id, "{shown}: {answer}");
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
    // Neither an empty line nor a notification has an answer.
    client.send("");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#);
    client.send(r#"{"jsonrpc":"2.0","method":"$/progress"}"#);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let (code, errors) = client.end();
    assert_eq!((code, &*errors), (0, ""));
}

/// JSON Schema calls `12.0` an integer.
#[test]
fn a_number_without_a_fraction_is_an_integer() {
    let scratch = Scratch::new("integers");
    let mut client = scratch.client();
    let call = |budget: &str| {
        let text = format!(r#"{{"cache":"caches/good","query":"deployment","budget":{budget}}}"#);
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let plain = client.answer("context_resolve", call("12"));
    for spelled in ["12.0", "1.2e1", "120e-1"] {
        assert_eq!(
            client.answer("context_resolve", call(spelled)),
            plain,
            "{spelled}"
        );
    }
    let (failed, _) = client.call("context_resolve", call("12.5"));
    assert!(failed);
    assert_eq!(client.end().0, 0);
}

/// A session whose nodes are an answer of more than 4 MB.
fn large(scratch: &Scratch) -> Value {
    let text = "x".repeat(4_300_000);
    let document = json!({"root": {"children": [{"nodeType": "^sys", "id": "^sys", "children": [
        {"nodeType": "cb", "id": "cb:1", "content": text}
    ]}]}});
    fs::write(scratch.path("root/large.json"), document.to_string()).expect("a file");
    let arguments = json!({"session": "large.json", "selector": "@t0 .cb", "format": "nodes", "limit": 10_000_000});
    json!({"name": "pact_select", "arguments": arguments})
}

/// The server, with an output that the test reads or not.
fn unread(scratch: &Scratch) -> (std::process::Child, BufReader<std::process::ChildStdout>) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(["context", "serve", "--root"])
        .arg(scratch.path("root"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let output = BufReader::new(server.stdout.take().expect("a pipe"));
    (server, output)
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;

/// The most memory that a process has had, in MiB.
#[cfg(target_os = "linux")]
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.expect("a peak").trim().trim_end_matches(" kB");
    kib.parse::<u64>().expect("a number") / 1024
}

/// Answers that are not read are not piled up, and all come once they are.
#[cfg(target_os = "linux")]
#[test]
fn answers_that_nobody_reads_take_little_memory() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("pile");
    let call = large(&scratch);
    let (mut server, mut output) = unread(&scratch);
    let mut input = server.stdin.take().expect("a pipe");
    writeln!(input, "{HELLO}").expect("the server reads");
    // All are taken, although none is read.
    for id in 1..=400 {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call});
        writeln!(input, "{request}").expect("the server reads");
    }
    input.flush().expect("the server reads");
    let mut settled = (0, Instant::now());
    while settled.1.elapsed() < Duration::from_secs(2) {
        let now = peak(server.id());
        if now != settled.0 {
            settled = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(settled.0 < 200, "{} MiB", settled.0);
    // The client reads at last, but not all.
    let mut seen = std::collections::BTreeSet::new();
    let mut line = Vec::new();
    for _ in 0..20 {
        line.clear();
        output.read_until(b'\n', &mut line).expect("a line");
        let answer: Value = serde_json::from_slice(&line).expect("JSON");
        assert!(seen.insert(answer["id"].as_u64().expect("an id")));
        let bytes = line.len();
        assert!(answer["id"] == 0 || bytes > 4_300_000, "{answer}");
    }
    let peak = peak(server.id());
    assert!(peak < 200, "{peak} MiB");
    println!("{} MiB unread, {peak} MiB in all", settled.0);
    drop(input);
    gone(&mut server);
    drop(output);
}

/// Waits for the end of a server.
fn gone(server: &mut std::process::Child) {
    let start = Instant::now();
    while server.try_wait().expect("a child").is_none() {
        if start.elapsed() > PATIENCE {
            let _ = server.kill();
            unreachable!("the server does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The end of the input or of the output is the end, whatever is on its way: nothing, answers that nobody
/// reads, requests that were not taken.
#[test]
fn the_server_ends_after_its_input_or_output() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("ends");
    let call = large(&scratch);
    for (requests, closes_output) in [
        (0, true),
        (0, false),
        (30, true),
        (30, false),
        (3000, false),
    ] {
        let (mut server, output) = unread(&scratch);
        let mut input = server.stdin.take().expect("a pipe");
        writeln!(input, "{HELLO}").expect("the server reads");
        // A client that never reads can be stopped while it writes.
        let writer = std::thread::spawn({
            let call = call.clone();
            move || {
                for id in 1..=requests {
                    let request =
                        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call});
                    if writeln!(input, "{request}").is_err() {
                        break;
                    }
                }
                input
            }
        });
        std::thread::sleep(Duration::from_millis(500));
        if closes_output {
            let input = writer.join().expect("the writer ends");
            drop(output);
            gone(&mut server);
            drop(input);
        } else if requests < 1000 {
            drop(writer.join().expect("the writer ends"));
            gone(&mut server);
            drop(output);
        } else {
            // The pipe is full, and so is the server: it takes no more requests until answers are read.
            assert!(!writer.is_finished());
            drop(output);
            gone(&mut server);
            drop(writer.join().expect("the writer ends"));
        }
    }
}
