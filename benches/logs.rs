//! Importing logs, as a multiple of what serde_json takes to parse the same bytes.
//!
//! Measured: logs of Claude Code and of Codex of about 24 MB, made here: prompts, replies with calls, results
//! of two kilobytes on average. `serde_json` parses each line into a `Value`; `import` makes the sessions.
//! Both run on one thread; writing is not measured. Each is run several times in turn, and the fastest
//! counts. The target is a ratio of at most 3.

use pactql::logs::{ImportOptions, import};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The size of a log.
const BYTES: usize = 24 << 20;

/// How often each is run.
const RUNS: usize = 7;

fn main() {
    for (name, log) in [("claude-code", claude_code()), ("codex", codex())] {
        let (mut parse, mut read) = (Duration::MAX, Duration::MAX);
        let mut snapshots = 0;
        for _ in 0..RUNS {
            let began = Instant::now();
            for line in log.lines() {
                black_box(serde_json::from_str::<Value>(line).expect("JSON"));
            }
            parse = parse.min(began.elapsed());
            let began = Instant::now();
            let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a log");
            read = read.min(began.elapsed());
            snapshots = imported.report.snapshots();
            black_box(imported);
        }
        println!(
            "{name}: {} MB, {snapshots} snapshots, serde_json {:.0} ms, import {:.0} ms, ratio {:.2}",
            log.len() >> 20,
            parse.as_secs_f64() * 1e3,
            read.as_secs_f64() * 1e3,
            read.as_secs_f64() / parse.as_secs_f64()
        );
    }
}

/// Text of a length, with a line feed and a quotation mark now and then, as code has.
fn text(seed: &mut u64, length: usize) -> String {
    let words = [
        "let",
        "value",
        "=",
        "map.get(\"key\")",
        "fn",
        "\n    ",
        "return",
        "für",
        "0x1f",
        ";",
    ];
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(words[(*seed >> 33) as usize % words.len()]);
        text.push(' ');
    }
    text
}

fn time(at: usize) -> String {
    format!(
        "2026-03-02T{:02}:{:02}:{:02}.123Z",
        at / 3600 % 24,
        at / 60 % 60,
        at % 60
    )
}

fn claude_code() -> String {
    let (mut log, mut seed, mut at) = (String::new(), 1, 0);
    let mut put = |log: &mut String, message: Value, more: Option<(&str, Value)>| {
        let parent = (at > 0).then(|| format!("0f3a2b1c-{:012}", at - 1));
        let mut line = json!({"parentUuid": parent, "isSidechain": false, "userType": "external",
            "cwd": "/srv/app", "sessionId": "5e55-1", "version": "2.0.1", "gitBranch": "main",
            "type": message["role"], "uuid": format!("0f3a2b1c-{at:012}"), "timestamp": time(at),
            "message": message});
        if let Some((name, value)) = more {
            line[name] = value;
        }
        log.push_str(&line.to_string());
        log.push('\n');
        at += 1;
    };
    let mut turn = 0;
    while log.len() < BYTES {
        turn += 1;
        let prompt = text(&mut seed, 200);
        put(&mut log, json!({"role": "user", "content": prompt}), None);
        for step in 0..6 {
            let id = format!("msg_{turn}_{step}");
            let said = json!([{"type": "text", "text": text(&mut seed, 120)}]);
            let call = json!([{"type": "tool_use", "id": format!("toolu_{turn}_{step}"), "name": "Read",
                "input": {"file_path": format!("/srv/app/src/{turn}.rs"), "limit": 200, "why": text(&mut seed, 60)}}]);
            for content in [said, call] {
                let message = json!({"id": id, "type": "message", "role": "assistant", "model": "claude-example-1",
                    "content": content, "stop_reason": null, "stop_sequence": null,
                    "usage": {"input_tokens": 4, "cache_creation_input_tokens": 512, "cache_read_input_tokens": 40960,
                        "output_tokens": 87, "service_tier": "standard"}});
                put(
                    &mut log,
                    message,
                    Some(("requestId", json!(format!("req_{turn}_{step}")))),
                );
            }
            let result = text(&mut seed, 500 + 3000 * (step % 2));
            let message = json!({"role": "user", "content": [{"type": "tool_result",
                "tool_use_id": format!("toolu_{turn}_{step}"), "content": result}]});
            put(
                &mut log,
                message,
                Some((
                    "toolUseResult",
                    json!({"type": "text", "file": {"content": result}}),
                )),
            );
        }
    }
    log
}

fn codex() -> String {
    let (mut log, mut seed, mut at) = (String::new(), 2, 0);
    let mut put = |log: &mut String, kind: &str, payload: Value| {
        let line = json!({"timestamp": time(at), "type": kind, "payload": payload});
        log.push_str(&line.to_string());
        log.push('\n');
        at += 1;
    };
    put(
        &mut log,
        "session_meta",
        json!({"id": "0199-1", "cwd": "/srv/app", "base_instructions": {"text": "You are Codex."}}),
    );
    let mut turn = 0;
    while log.len() < BYTES {
        turn += 1;
        let prompt = text(&mut seed, 200);
        put(
            &mut log,
            "response_item",
            json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": prompt}]}),
        );
        put(
            &mut log,
            "event_msg",
            json!({"type": "user_message", "message": prompt}),
        );
        put(
            &mut log,
            "turn_context",
            json!({"cwd": "/srv/app", "model": "gpt-example", "effort": "high"}),
        );
        for step in 0..6 {
            let id = format!("call_{turn}_{step}");
            put(
                &mut log,
                "response_item",
                json!({"type": "reasoning",
                "summary": [{"type": "summary_text", "text": text(&mut seed, 100)}], "encrypted_content": text(&mut seed, 300)}),
            );
            put(
                &mut log,
                "response_item",
                json!({"type": "function_call", "name": "shell",
                "arguments": json!({"command": ["cat", text(&mut seed, 40)]}).to_string(), "call_id": id}),
            );
            put(
                &mut log,
                "event_msg",
                json!({"type": "token_count", "info": {"last_token_usage":
                {"input_tokens": 70, "cached_input_tokens": 40, "output_tokens": 8}}}),
            );
            put(
                &mut log,
                "response_item",
                json!({"type": "function_call_output", "call_id": id,
                "output": text(&mut seed, 500 + 3000 * (step % 2))}),
            );
        }
    }
    log
}
