//! Calls that are cancelled, or take longer than they may.

use super::{Client, Scratch, reading};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;

/// A session for which a range over all snapshots takes long.
fn slow(scratch: &Scratch) {
    let mut lines = String::new();
    for cycle in 1..=60 {
        let blocks: Vec<Value> = (0..2000)
            .map(|number| {
                let content = format!("{} {cycle}", "a b c d e f g h ".repeat(8));
                json!({"nodeType": "cb", "id": format!("cb:{number}"), "content": content})
            })
            .collect();
        let sys = json!({"nodeType": "^sys", "id": "^sys", "children": blocks});
        let document = json!({"cycle": cycle, "root": {"children": [sys]}});
        let _ = writeln!(lines, "{document}");
    }
    fs::write(scratch.path("root/slow.jsonl"), lines).expect("a file");
}

/// Calls that take seconds.
fn long_calls() -> [(&'static str, Value); 4] {
    let session = "slow.jsonl";
    [
        (
            "pact_select",
            json!({"session": session, "selector": "@history .cb[content~'(a|b|c|d)*z']", "include_content": true}),
        ),
        (
            "pact_grep",
            json!({"session": session, "pattern": "(a|b)+ (c|d)+ .*z"}),
        ),
        ("pact_show", json!({"session": session, "over": "@history"})),
        ("pact_list_sessions", json!({})),
    ]
}

#[test]
fn a_call_ends_when_its_time_is_over() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("timeout");
    slow(&scratch);
    let start = || {
        let with = Client::spawn_with(&scratch.path("root"), &["--timeout", "1ms"]);
        Client::listening(with).greeted()
    };
    let mut client = start();
    for (tool, arguments) in long_calls() {
        let error = client.error(tool, arguments);
        assert_eq!(error["code"], "E_CANCELLED", "{tool}: {error}");
        assert_eq!(error["message"], "not done within 1ms", "{tool}");
    }
    // The interface of caches has no code for it.
    let resolve = json!({"cache": "caches/good", "query": "x", "budget": 1});
    let (failed, texts) = client.call("context_resolve", resolve);
    assert!(
        !failed || texts[0].contains("\"internal_error\""),
        "{texts:?}"
    );
    assert_eq!(client.end().0, 0);
    // A session whose loading was cancelled is not kept in part, and the server goes on after its time.
    let with = Client::spawn_with(&scratch.path("root"), &["--timeout", "60s"]);
    let mut client = Client::listening(with).greeted();
    let count = json!({"session": "slow.jsonl", "selector": "@t0 .cb", "count": true});
    assert_eq!(client.answer("pact_select", count), "2000");
    assert_eq!(client.end().0, 0);
    let ran = scratch.command(&["context", "serve", "--root", ".", "--timeout", "soon"]);
    assert_eq!(ran.0, 3, "{ran:?}");
}

/// The work of a process so far, in the processor's time, as the system counts it.
#[cfg(target_os = "linux")]
fn work(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields = fields.split_whitespace().skip(11).take(2);
    fields
        .map(|ticks| ticks.parse::<u64>().expect("ticks"))
        .sum()
}

/// Sixteen cancelled calls do less work together than one that is not cancelled: those that run end, and those that
/// wait do not begin.
#[cfg(target_os = "linux")]
#[test]
fn a_cancelled_call_does_little_work() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("work");
    slow(&scratch);
    let mut client = scratch.client();
    let count = json!({"session": "slow.jsonl", "selector": "@t0 .cb", "count": true});
    assert_eq!(client.answer("pact_select", count.clone()), "2000");
    let process = client.server.id();
    for (tool, arguments) in long_calls().into_iter().take(3) {
        let before = work(process);
        let (failed, texts) = client.call(tool, arguments.clone());
        assert!(!failed, "{tool}: {texts:?}");
        let whole = work(process) - before;
        // Of what takes less, the system's clock says too little.
        assert!(whole >= 20, "{tool} takes {whole} ticks only");
        let before = work(process);
        let ids: Vec<u64> = (0..16)
            .map(|_| client.request("tools/call", json!({"name": tool, "arguments": arguments})))
            .collect();
        for id in ids {
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
            client.send(&cancelled.to_string());
        }
        // Its answer comes when the threads are free again.
        let next = client.request(
            "tools/call",
            json!({"name": "pact_select", "arguments": count.clone()}),
        );
        while client.receive()["id"] != next {}
        let after = work(process) - before;
        assert!(
            after < whole,
            "{tool}: {after} ticks after, {whole} of one call"
        );
    }
    assert_eq!(client.end().0, 0);
}

/// Cancelled calls leave nothing behind: the next one answers as ever. What they cost is seen by the test above.
#[test]
fn after_cancelled_calls_the_next_one_answers() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("cancel");
    slow(&scratch);
    let mut client = scratch.client();
    for (tool, arguments) in long_calls() {
        // More than threads, so that one that is never freed would block the next call.
        let ids: Vec<u64> = (0..16)
            .map(|_| client.request("tools/call", json!({"name": tool, "arguments": arguments})))
            .collect();
        for id in ids {
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
            client.send(&cancelled.to_string());
        }
        let next =
            json!({"name": "pact_select", "arguments": reading("agent.jsonl")("pact_select")});
        let next = client.request("tools/call", next);
        // A call may be done before it is cancelled.
        let answer = loop {
            let answer = client.receive();
            if answer["id"] == next {
                break answer;
            }
        };
        assert!(answer["result"]["isError"] == false, "{tool}: {answer}");
    }
    let count = json!({"session": "slow.jsonl", "selector": "@t0 .cb", "count": true});
    assert_eq!(client.answer("pact_select", count), "2000");
    assert_eq!(client.end().0, 0);
}
