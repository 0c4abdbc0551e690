//! Every shape of log: which format it is taken for, and that all text of a random log is there.

use super::{holds_together, written};
use pactql::Provider;
use pactql::logs::{Format, ImportOptions, Imported, claims, import};
use pactql::render::Thread;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn each_fixture_is_claimed_by_its_format_alone() {
    let mut formats = BTreeSet::new();
    let mut directories: Vec<_> = std::fs::read_dir("tests/cases/logs")
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    directories.sort();
    for directory in directories {
        let format = directory
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        for file in std::fs::read_dir(&directory).expect("a directory") {
            let file = file.expect("an entry").path();
            let name = file
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            assert!(
                name.starts_with("synthetic-"),
                "{name} does not say that it is written by hand"
            );
            let bytes = std::fs::read(&file).expect("a file");
            let found = claims(&bytes).expect("JSON");
            let found: Vec<&str> = found.into_iter().map(Format::name).collect();
            assert_eq!(found, [&*format], "{}", file.display());
            let imported = import(&bytes, &ImportOptions::default()).expect("a good log");
            assert_eq!(
                imported.format.map(Format::name),
                Some(&*format),
                "{}",
                file.display()
            );
        }
        formats.insert(format);
    }
    // A file of ctxdiff is made by its own test.
    formats.insert("ctrace".to_owned());
    let all: BTreeSet<String> = Format::ALL.map(|format| format.name().to_owned()).into();
    assert_eq!(formats, all);
}

#[test]
fn members_that_nothing_reads_are_counted() {
    for (path, member) in [
        ("claude-code/synthetic-subagent.jsonl", "slug 1"),
        ("pi/synthetic-session.jsonl", "message.brandNew 1"),
        ("codex/synthetic-rollout.jsonl", "turn_context.cwd 1"),
        ("opencode/synthetic-export.json", "info.share 1"),
    ] {
        let bytes = std::fs::read(format!("tests/cases/logs/{path}")).expect("a fixture");
        let imported = import(&bytes, &ImportOptions::default()).expect("a good log");
        let report = imported.report.to_string();
        assert!(report.contains(member), "{path}: {report}");
    }
}

/// What happens in a log.
#[derive(Clone, Debug)]
enum Step {
    User(String),
    /// Text, and calls with arguments and results.
    Reply(String, Vec<(String, String)>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = || "[^\u{0}]{1,12}";
    let call = ("[a-z\"é🙂]{0,6}", text());
    let reply = (text(), prop::collection::vec(call, 0..3));
    let step = prop_oneof![
        text().prop_map(Step::User),
        reply.prop_map(|(text, calls)| Step::Reply(text, calls)),
    ];
    (text(), prop::collection::vec(step, 1..8)).prop_map(|(first, mut steps)| {
        steps.insert(0, Step::User(first));
        steps
    })
}

/// The bytes of text that each role has.
type Sums = BTreeMap<String, usize>;

fn wanted(steps: &[Step]) -> Sums {
    let mut sums = Sums::new();
    let mut add = |role: &str, text: &str| *sums.entry(role.to_owned()).or_default() += text.len();
    for step in steps {
        match step {
            Step::User(text) => add("user", text),
            Step::Reply(text, calls) => {
                add("assistant", text);
                for (argument, result) in calls {
                    add("assistant", &json!({"q": argument}).to_string());
                    add("tool", result);
                }
            }
        }
    }
    sums
}

/// The bytes of text of every block that any snapshot has.
fn found(imported: &Imported) -> Sums {
    let mut sums = Sums::new();
    for at in 0..imported.sessions.len() {
        let mut seen = BTreeSet::new();
        for line in written(imported, at, true).lines() {
            let document: Value = serde_json::from_str(line).expect("JSON");
            let mut open = vec![&document["root"]];
            while let Some(node) = open.pop() {
                open.extend(node["children"].as_array().into_iter().flatten());
                if node["nodeType"] == "cb" && seen.insert(node["id"].to_string()) {
                    let role = node["role"].as_str().unwrap_or("none");
                    let text = node["content"].as_str().unwrap_or_default();
                    *sums.entry(role.to_owned()).or_default() += text.len();
                }
            }
        }
    }
    sums
}

fn time(at: usize) -> String {
    format!("2026-03-02T09:{:02}:{:02}.000Z", at / 60 % 60, at % 60)
}

fn one_a_line(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Calls of the reply at a position, with their ids.
fn numbered(at: usize, calls: &[(String, String)]) -> Vec<(String, Value, String)> {
    let call = |(n, (argument, result)): (usize, &(String, String))| {
        (format!("c{at}-{n}"), json!({"q": argument}), result.clone())
    };
    calls.iter().enumerate().map(call).collect()
}

/// The messages of Chat Completions.
fn chat(steps: &[Step]) -> Vec<Value> {
    let mut messages = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => messages.push(json!({"role": "user", "content": text})),
            Step::Reply(text, calls) => {
                let calls = numbered(at, calls);
                let mut message = json!({"role": "assistant", "content": text});
                if !calls.is_empty() {
                    let call = |(id, arguments, _): &(String, Value, String)| {
                        json!({"id": id, "type": "function",
                            "function": {"name": "f", "arguments": arguments.to_string()}})
                    };
                    message["tool_calls"] = calls.iter().map(call).collect();
                }
                messages.push(message);
                for (id, _, result) in calls {
                    messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
                }
            }
        }
    }
    messages
}

/// The messages of Anthropic's API.
fn anthropic(steps: &[Step]) -> Vec<Value> {
    let mut messages = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => messages.push(json!({"role": "user", "content": text})),
            Step::Reply(text, calls) => {
                let calls = numbered(at, calls);
                let mut content = vec![json!({"type": "text", "text": text})];
                content.extend(calls.iter().map(|(id, input, _)| {
                    json!({"type": "tool_use", "id": id, "name": "f", "input": input})
                }));
                messages.push(json!({"role": "assistant", "content": content}));
                let results: Vec<Value> = calls
                    .iter()
                    .map(|(id, _, result)| json!({"type": "tool_result", "tool_use_id": id, "content": result}))
                    .collect();
                if !results.is_empty() {
                    messages.push(json!({"role": "user", "content": results}));
                }
            }
        }
    }
    messages
}

/// The messages of Bedrock, and the contents of Gemini: those of Anthropic in their words.
fn converse(steps: &[Step]) -> Vec<Value> {
    let part = |part: Value| match part["type"].as_str() {
        Some("tool_use") => {
            json!({"toolUse": {"toolUseId": part["id"], "name": "f", "input": part["input"]}})
        }
        Some("tool_result") => json!({"toolResult": {"toolUseId": part["tool_use_id"],
            "content": [{"text": part["content"]}]}}),
        _ => json!({"text": part["text"]}),
    };
    in_parts(steps, "content", "assistant", &part)
}

fn contents(steps: &[Step]) -> Vec<Value> {
    let part = |part: Value| match part["type"].as_str() {
        Some("tool_use") => json!({"functionCall": {"name": "f", "args": part["input"]}}),
        Some("tool_result") => {
            json!({"functionResponse": {"name": "f", "response": {"output": part["content"]}}})
        }
        _ => json!({"text": part["text"]}),
    };
    in_parts(steps, "parts", "model", &part)
}

fn in_parts(steps: &[Step], list: &str, model: &str, part: &dyn Fn(Value) -> Value) -> Vec<Value> {
    let messages = anthropic(steps).into_iter().map(|message| {
        let role = if message["role"] == "assistant" {
            model
        } else {
            "user"
        };
        let parts: Vec<Value> = match &message["content"] {
            Value::Array(parts) => parts.iter().cloned().map(part).collect(),
            text => vec![json!({"text": text})],
        };
        json!({"role": role, list: parts})
    });
    messages.collect()
}

/// The items of the Responses API.
fn items(steps: &[Step]) -> Vec<Value> {
    let mut items = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => items.push(json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": text}]})),
            Step::Reply(text, calls) => {
                items.push(json!({"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": text}]}));
                let calls = numbered(at, calls);
                for (id, arguments, _) in &calls {
                    items.push(json!({"type": "function_call", "call_id": id, "name": "f",
                        "arguments": arguments.to_string()}));
                }
                for (id, _, result) in &calls {
                    items.push(
                        json!({"type": "function_call_output", "call_id": id, "output": result}),
                    );
                }
            }
        }
    }
    items
}

fn claude_code(steps: &[Step]) -> String {
    let mut lines = Vec::new();
    for message in anthropic(steps) {
        let at = lines.len();
        let mut message = message;
        if message["role"] == "assistant" {
            message["id"] = json!(format!("msg_{at}"));
            message["model"] = json!("m");
        }
        let parent = (at > 0).then(|| format!("u{}", at - 1));
        lines.push(
            json!({"type": message["role"], "uuid": format!("u{at}"), "parentUuid": parent,
            "sessionId": "s", "isSidechain": false, "timestamp": time(at), "message": message}),
        );
    }
    one_a_line(&lines)
}

fn codex(steps: &[Step]) -> String {
    let mut lines =
        vec![json!({"timestamp": time(0), "type": "session_meta", "payload": {"id": "s"}})];
    for item in items(steps) {
        lines.push(
            json!({"timestamp": time(lines.len()), "type": "response_item", "payload": item}),
        );
    }
    one_a_line(&lines)
}

fn pi(steps: &[Step], version: u32) -> String {
    let mut lines = vec![
        json!({"type": "session", "version": version, "id": "s", "timestamp": time(0), "cwd": "/"}),
    ];
    let mut put = |message: Value| {
        let at = lines.len();
        let parent = (at > 1).then(|| format!("e{}", at - 1));
        lines.push(
            json!({"type": "message", "id": format!("e{at}"), "parentId": parent,
            "timestamp": time(at), "message": message}),
        );
    };
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => put(json!({"role": "user", "content": text})),
            Step::Reply(text, calls) => {
                let calls = numbered(at, calls);
                let mut content = vec![json!({"type": "text", "text": text})];
                content.extend(calls.iter().map(|(id, arguments, _)| {
                    json!({"type": "toolCall", "id": id, "name": "f", "arguments": arguments})
                }));
                put(json!({"role": "assistant", "content": content, "stopReason": "stop"}));
                for (id, _, result) in calls {
                    put(
                        json!({"role": "toolResult", "toolCallId": id, "toolName": "f",
                        "content": [{"type": "text", "text": result}], "isError": false}),
                    );
                }
            }
        }
    }
    one_a_line(&lines)
}

fn opencode(steps: &[Step]) -> String {
    let message = |(at, step): (usize, &Step)| {
        let (role, parts) = match step {
            Step::User(text) => ("user", vec![json!({"type": "text", "text": text})]),
            Step::Reply(text, calls) => {
                let mut parts = vec![json!({"type": "text", "text": text})];
                let calls = numbered(at, calls).into_iter();
                parts.extend(calls.map(|(id, input, output)| {
                    json!({"type": "tool", "callID": id, "tool": "f",
                        "state": {"status": "completed", "input": input, "output": output}})
                }));
                ("assistant", parts)
            }
        };
        let created = json!({"created": 1_772_442_000_000_i64 + at as i64});
        json!({"info": {"id": format!("m{at}"), "role": role, "time": created}, "parts": parts})
    };
    let messages: Vec<Value> = steps.iter().enumerate().map(message).collect();
    json!({"info": {"id": "s", "directory": "/"}, "messages": messages}).to_string()
}

fn atif(steps: &[Step]) -> String {
    let step = |(at, step): (usize, &Step)| match step {
        Step::User(text) => json!({"step_id": at + 1, "source": "user", "message": text}),
        Step::Reply(text, calls) => {
            let calls = numbered(at, calls);
            let call = |(id, arguments, _): &(String, Value, String)| json!({"tool_call_id": id, "function_name": "f", "arguments": arguments});
            let result = |(id, _, result): &(String, Value, String)| json!({"source_call_id": id, "content": result});
            json!({"step_id": at + 1, "source": "agent", "message": text,
                "tool_calls": calls.iter().map(call).collect::<Vec<_>>(),
                "observation": {"results": calls.iter().map(result).collect::<Vec<_>>()}})
        }
    };
    let steps: Vec<Value> = steps.iter().enumerate().map(step).collect();
    json!({"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"},
        "steps": steps})
    .to_string()
}

fn inspect_ai(steps: &[Step]) -> String {
    let mut messages = chat(steps);
    for message in &mut messages {
        for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
            let arguments: Value =
                serde_json::from_str(call["function"]["arguments"].as_str().expect("text"))
                    .expect("JSON");
            *call = json!({"id": call["id"], "function": "f", "arguments": arguments});
        }
    }
    json!({"eval": {"task": "t"}, "samples": [{"id": 1, "epoch": 1, "messages": messages, "events": []}]})
        .to_string()
}

/// Messages of OpenTelemetry, each result one.
fn parts(steps: &[Step]) -> Vec<Value> {
    let mut messages = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => {
                messages.push(json!({"role": "user", "parts": [{"type": "text", "content": text}]}))
            }
            Step::Reply(text, calls) => {
                let calls = numbered(at, calls);
                let mut parts = vec![json!({"type": "text", "content": text})];
                parts.extend(calls.iter().map(|(id, arguments, _)| {
                    json!({"type": "tool_call", "id": id, "name": "f", "arguments": arguments})
                }));
                messages.push(json!({"role": "assistant", "parts": parts}));
                for (id, _, result) in calls {
                    messages.push(json!({"role": "tool",
                        "parts": [{"type": "tool_call_response", "id": id, "response": result}]}));
                }
            }
        }
    }
    messages
}

fn otel(messages: &[Value], at: usize) -> Value {
    let attributes = [
        ("gen_ai.operation.name", json!("chat").to_string()),
        ("gen_ai.request.model", json!("m").to_string()),
        (
            "gen_ai.input.messages",
            Value::String(json!(messages).to_string()).to_string(),
        ),
    ];
    let attribute = |(key, value): (&str, String)| json!({"key": key, "value": {"stringValue": serde_json::from_str::<Value>(&value).expect("JSON")}});
    let attributes: Vec<Value> = attributes.into_iter().map(attribute).collect();
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": format!("s{at}"),
        "startTimeUnixNano": (1_772_442_000_000_000_000 + at as i64).to_string(), "attributes": attributes}]}]}]})
}

fn read(log: &str, format: Format) -> Imported {
    let options = ImportOptions {
        format: Some(format),
        ..ImportOptions::default()
    };
    import(log.as_bytes(), &options).unwrap_or_else(|error| panic!("{error}: {log}"))
}

/// The lists of messages that were sent: each ends with a message that is not the model's.
fn growing(messages: &[Value]) -> Vec<Vec<Value>> {
    let is_reply = |message: &Value| {
        matches!(message["role"].as_str(), Some("assistant" | "model"))
            || message["type"] == "function_call"
    };
    let ends = (1..=messages.len())
        .filter(|end| !is_reply(&messages[end - 1]) && messages.get(*end).is_none_or(is_reply));
    ends.map(|end| messages[..end].to_vec()).collect()
}

proptest! {
    #![proptest_config(crate::support::random::property(1_024))]

    #[test]
    fn all_text_of_a_random_log_is_there_by_role(steps in steps()) {
        let wanted = wanted(&steps);
        for (format, log) in [
            (Format::OpenAi, json!(chat(&steps)).to_string()),
            (Format::Anthropic, json!(anthropic(&steps)).to_string()),
            (Format::OpenAiResponses, json!(items(&steps)).to_string()),
            (Format::Bedrock, json!(converse(&steps)).to_string()),
            (Format::ClaudeCode, claude_code(&steps)),
            (Format::Codex, codex(&steps)),
            (Format::Pi, pi(&steps, 1)),
            (Format::Pi, pi(&steps, 3)),
            (Format::Opencode, opencode(&steps)),
            (Format::Atif, atif(&steps)),
            (Format::InspectAi, inspect_ai(&steps)),
            (Format::OpenTelemetry, otel(&parts(&steps), 0).to_string()),
        ] {
            let imported = read(&log, format);
            holds_together(&imported);
            super::large::agrees(log.as_bytes(), &ImportOptions { format: Some(format), ..ImportOptions::default() });
            let found = found(&imported);
            let found: Sums = found.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
            prop_assert_eq!(&found, &wanted, "{}: {}", format.name(), log);
        }
    }

    #[test]
    fn random_requests_come_back_equal(steps in steps()) {
        for (format, provider, member, messages) in [
            (Format::OpenAi, Provider::OpenAi, "messages", chat(&steps)),
            (Format::Anthropic, Provider::Anthropic, "messages", anthropic(&steps)),
            (Format::OpenAiResponses, Provider::OpenAiResponses, "input", items(&steps)),
            (Format::Gemini, Provider::Gemini, "contents", contents(&steps)),
            (Format::Bedrock, Provider::Bedrock, "messages", converse(&steps)),
            (Format::OpenTelemetry, Provider::OpenAi, "messages", chat(&steps)),
        ] {
            let sent: Vec<Value> = growing(&messages)
                .into_iter()
                .map(|messages| json!({"model": "m", member: messages}))
                .collect();
            let log = match format {
                Format::OpenTelemetry => {
                    let lists = growing(&parts(&steps));
                    let spans = lists.iter().enumerate().map(|(at, list)| otel(list, at));
                    one_a_line(&spans.collect::<Vec<_>>())
                }
                _ => {
                    let named = sent.iter().map(|request| json!({"session_id": "s", "request": request}));
                    one_a_line(&named.collect::<Vec<_>>())
                }
            };
            let imported = read(&log, format);
            let session = holds_together(&imported).remove(0);
            let found: Vec<Value> = session.committed.iter().map(|snapshot| {
                let text = pactql::render::request(&Thread::request(snapshot), provider).expect("a request");
                serde_json::from_str(&text).expect("JSON")
            }).collect();
            prop_assert_eq!(found, sent, "{}: {}", format.name(), log);
        }
    }
}
