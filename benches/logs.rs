//! Importing logs, as a multiple of what serde_json takes to parse the same lines into `Value`s.
//!
//! Measured: logs of Claude Code (prompts, replies with calls, results of two kilobytes on average, a compaction every 2 MB),
//! of Codex, and requests of OpenAI (conversations of fifty steps), made here.
//!
//! - Without arguments: logs of 24 MB in memory, on one thread. Each is run several times in turn, and the fastest counts.
//! - `-- --store`: logs of 200 MB, or of as many MB as a number says, from a file into a store by the program: the first
//!   time, again as it is, and with one more line. Times are the fastest of three (with one more line there is one), on all threads; memory is the most that
//!   the process had (`VmHWM`, so on Linux). Beside the first: the rows that it made, written again by hand, with a prepared
//!   statement for each table in one transaction, the values in memory. That is the least that the layout of stores costs.
//! - `-- --instructions`: the same with 20 MB, as instructions on one thread under callgrind.

#[path = "support/callgrind.rs"]
mod callgrind;

use pactql::logs::{ImportOptions, import, import_file, session_names};
use pactql::{Session, Store};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The size of a log that is read in memory.
const BYTES: usize = 24 << 20;

/// How often each is run.
const RUNS: usize = 7;

/// How often the program imports a large log.
const LARGE_RUNS: usize = 3;

type Made = fn(usize) -> String;

const LOGS: [(&str, Made); 3] = [
    ("claude-code", claude_code),
    ("codex", codex),
    ("openai", openai),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let size = arguments.iter().find_map(|argument| argument.parse().ok());
    match &arguments[..] {
        [child, what, log, store] if child == "--child" => run(what, log, store),
        _ if has("--store") => into_store(size.unwrap_or(200) << 20, true),
        _ if has("--instructions") => into_store(size.unwrap_or(20) << 20, false),
        _ => in_memory(),
    }
}

fn in_memory() {
    for (name, make) in LOGS {
        let log = make(BYTES);
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

/// What one step costs, and what is to be said beside it.
type Measured = fn(what: &str, log: &str, store: &str) -> (f64, String);

/// Imports logs of a size into stores: once, again, and with one more line. Costs are seconds, or instructions.
fn into_store(bytes: usize, by_clock: bool) {
    let measured: Measured = if by_clock { by_program } else { by_callgrind };
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    // Nothing is compacted in that of Codex: the model is sent all of it, and memory is for that.
    for (name, make) in LOGS.into_iter().filter(|(name, _)| *name != "codex") {
        let (log, store) = (path("log.jsonl"), path("a.db"));
        let text = make(bytes);
        fs::write(&log, &text).expect("space");
        let last = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
        let last = text[last..].to_owned();
        drop(text);
        let (parse, said) = measured("parse", &log, &store);
        println!("{name}, {} MB: serde_json {said}", bytes >> 20);
        for what in ["import", "again", "one line more"] {
            if what == "one line more" {
                let mut file = File::options().append(true).open(&log).expect("the log");
                file.write_all(last.as_bytes()).expect("space");
            }
            let (cost, said) = measured(what, &log, &store);
            println!("  {what}: {said}, ratio {:.2}", cost / parse);
            if what == "import" && by_clock {
                let (rows, cost) = by_hand(&store, &path("hand.db"));
                println!(
                    "  its {rows} rows by hand: {:.0} ms, ratio {:.2}",
                    cost * 1e3,
                    cost / parse
                );
            }
        }
        for ending in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(path(&format!("hand.db{ending}")));
            let _ = fs::remove_file(path(&format!("a.db{ending}")));
        }
    }
}

/// The rows of a store, written into another file with its tables and indexes: how many there are, and seconds.
fn by_hand(store: &str, copy: &str) -> (usize, f64) {
    let from = rusqlite::Connection::open(store).expect("a store");
    let texts = |sql: &str| -> Vec<(String, String)> {
        let mut statement = from.prepare(sql).expect("a statement");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("rows").map(|row| row.expect("texts")).collect()
    };
    let made = "select name, sql from sqlite_schema where name not like 'sqlite%' and type = ";
    let tables = texts(&format!("{made}'table'"));
    let rows: Vec<(usize, Vec<rusqlite::types::Value>)> = tables
        .iter()
        .map(|(table, _)| {
            let mut statement = from
                .prepare(&format!("select * from {table}"))
                .expect("a table");
            let columns = statement.column_count();
            let (mut rows, mut values) = (statement.query([]).expect("rows"), Vec::new());
            while let Some(row) = rows.next().expect("a row") {
                values
                    .extend((0..columns).map(|at| row.get_unwrap::<_, rusqlite::types::Value>(at)));
            }
            (columns, values)
        })
        .collect();
    let mut to = rusqlite::Connection::open(copy).expect("a file");
    to.execute_batch(
        "pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -32768",
    )
    .expect("settings");
    for (_, sql) in tables
        .iter()
        .chain(&texts(&format!("{made}'index' and sql is not null")))
    {
        to.execute_batch(sql).expect("a table or an index");
    }
    let (mut written, began) = (0, Instant::now());
    let transaction = to.transaction().expect("a transaction");
    for ((table, _), (columns, values)) in tables.iter().zip(&rows) {
        let marks = vec!["?"; *columns].join(", ");
        let sql = format!("insert into {table} values ({marks})");
        let mut statement = transaction.prepare(&sql).expect("a statement");
        for row in values.chunks(*columns) {
            statement
                .execute(rusqlite::params_from_iter(row))
                .expect("inserted");
            written += 1;
        }
    }
    transaction.commit().expect("written");
    (written, began.elapsed().as_secs_f64())
}

fn by_callgrind(what: &str, log: &str, store: &str) -> (f64, String) {
    let arguments = ["--child", what, log, store];
    let Some(count) = callgrind::collected(&[], &arguments) else {
        println!("SKIPPED: valgrind is not installed");
        std::process::exit(0);
    };
    (
        count as f64,
        format!("{} million instructions", count / 1_000_000),
    )
}

fn by_program(what: &str, log: &str, store: &str) -> (f64, String) {
    let (mut best, mut most) = (f64::MAX, 0);
    // A line is new once.
    let runs = if what == "one line more" {
        1
    } else {
        LARGE_RUNS
    };
    for number in 0..runs {
        let began = Instant::now();
        if what == "parse" {
            run(what, log, store);
        } else {
            if what == "import" && number > 0 {
                fs::remove_file(store).expect("a store");
            }
            most = most.max(program(log, store));
        }
        best = best.min(began.elapsed().as_secs_f64());
    }
    (best, format!("{:.0} ms, {most} MB", best * 1e3))
}

/// Imports a log; the most memory that it took, in MB.
fn program(log: &str, store: &str) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(["import", log, "-o", store])
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().expect("it can be waited for").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = most.max(kilobytes.unwrap_or(0) >> 10);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().expect("it ends").success());
    most
}

/// One step in this process.
fn run(what: &str, log: &str, store: &str) {
    if what == "parse" {
        for line in BufReader::with_capacity(1 << 20, File::open(log).expect("a log")).lines() {
            let line = line.expect("UTF-8");
            black_box(serde_json::from_str::<Value>(&line).expect("JSON"));
        }
        return;
    }
    let folder = Path::new(store).parent().expect("a directory");
    let spool = tempfile::tempfile_in(folder).expect("a file");
    let file = File::open(log).expect("a log");
    let imported = import_file(&file, spool, &ImportOptions::default());
    let imported = imported.expect("a log").expect("lines");
    let names = session_names("log", &imported.sessions);
    let sessions = imported.sessions.iter();
    let sessions = sessions.map(|session| session.session().expect("a session"));
    let sessions: Vec<(String, Session)> = names.into_iter().zip(sessions).collect();
    let store = Store::open(store).expect("a store");
    store.import_log(&sessions, Some(log)).expect("imported");
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

fn claude_code(bytes: usize) -> String {
    let (mut log, mut seed, mut at) = (String::new(), 1, 0);
    let mut put = |log: &mut String, message: Value, more: Option<(&str, Value)>| {
        let parent = (at > 0).then(|| format!("0f3a2b1c-{:012}", at - 1));
        let mut line = json!({"parentUuid": parent, "isSidechain": false, "userType": "external",
            "cwd": "/srv/app", "sessionId": "5e55-1", "version": "2.0.1", "gitBranch": "main",
            "type": message["role"], "uuid": format!("0f3a2b1c-{at:012}"), "timestamp": time(at),
            "message": message});
        if line["message"].is_null() {
            line["type"] = json!("system");
            line["subtype"] = json!("compact_boundary");
            line["logicalParentUuid"] = line["parentUuid"].take();
        }
        if let Some((name, value)) = more {
            line[name] = value;
        }
        log.push_str(&line.to_string());
        log.push('\n');
        at += 1;
    };
    let (mut turn, mut compacted) = (0, 0);
    while log.len() < bytes {
        turn += 1;
        if log.len() - compacted > 2 << 20 {
            compacted = log.len();
            let about = json!({"trigger": "auto", "preTokens": 150_000});
            put(&mut log, Value::Null, Some(("compactMetadata", about)));
            let summary = json!({"role": "user", "content": text(&mut seed, 4_000)});
            put(&mut log, summary, Some(("isCompactSummary", json!(true))));
        }
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

fn codex(bytes: usize) -> String {
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
    while log.len() < bytes {
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

fn openai(bytes: usize) -> String {
    let (mut log, mut seed, mut conversation) = (String::new(), 3, 0);
    let tool = json!({"type": "function", "function": {"name": "read", "description": text(&mut seed, 300),
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}});
    while log.len() < bytes {
        conversation += 1;
        let prompt = text(&mut seed, 400);
        let mut messages = vec![
            json!({"role": "system", "content": text(&mut seed, 3_000)}),
            json!({"role": "user", "content": format!("{conversation}: {prompt}")}),
        ];
        for step in 0..50 {
            let id = format!("call_{conversation}_{step}");
            let request = json!({"model": "gpt-example", "messages": messages, "tools": [tool], "temperature": 0});
            let path = json!({"path": text(&mut seed, 40)}).to_string();
            let reply = json!({"role": "assistant", "content": text(&mut seed, 120), "tool_calls": [{"id": id,
                "type": "function", "function": {"name": "read", "arguments": path}}]});
            let response = json!({"id": format!("r-{id}"), "model": "gpt-example",
                "choices": [{"index": 0, "message": reply, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 900, "completion_tokens": 80,
                    "prompt_tokens_details": {"cached_tokens": 800}}});
            log.push_str(&json!({"request": request, "response": response}).to_string());
            log.push('\n');
            messages.push(reply);
            let result = text(&mut seed, 500 + 3000 * (step % 2));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
        }
    }
    log
}
