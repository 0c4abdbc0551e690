//! Sessions grown by commits.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pactql::context::StepClock;
use pactql::{Context, Message, Session};
use serde_json::Value;

/// A session of at least this many nodes, of a conversation that begins again where it ends.
pub(crate) fn session(conversation: &[Message], nodes: usize) -> Arc<Session> {
    let mut context = Context::builder()
        .clock(StepClock::new(1 << 60, 1_000))
        .build();
    let mut turns = 0;
    for message in conversation.iter().cycle() {
        let is_reply = message.role() == "assistant";
        if !is_reply {
            context.append(message.clone()).expect("a message");
            continue;
        }
        if turns % 5 == 0 {
            let ttl = if turns % 10 == 0 { 3 } else { 40 };
            let note = format!(
                r#"{{"nodeType":"cb","role":"system","kind":"note","key":"plan","priority":{},"ttl":{ttl},"content":"plan of turn {turns}"}}"#,
                5 + turns % 4
            );
            context.add("^ah", &note).expect("a note");
        }
        context.reply(message.clone()).expect("a reply");
        context.commit().expect("a commit");
        turns += 1;
        if context.select("@t0 *").expect("nodes").count() >= nodes {
            break;
        }
    }
    context.session()
}

/// The messages of a session of this many nodes.
pub(crate) fn conversation(nodes: usize) -> Vec<Message> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let folder = std::env::var_os("PACTQL_DATA").map_or(beside, PathBuf::from);
    let messages = if nodes < 1_000 {
        tau_bench(&folder.join("tau-bench-airline/gpt-4o-airline.json.gz"))
    } else {
        coding_agent(&folder.join("pi-mono-long-sessions/large-session.jsonl.gz"))
    };
    messages.unwrap_or_else(|| {
        println!(
            "SKIPPED: the recorded conversation is not here; {nodes} nodes of a synthetic one"
        );
        synthetic()
    })
}

fn unpacked(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// The conversations of a file of tau-bench, one after the other.
fn tau_bench(path: &Path) -> Option<Vec<Message>> {
    let runs: Vec<Value> = serde_json::from_str(&unpacked(path)?).ok()?;
    let mut messages: Vec<Message> = Vec::new();
    for message in runs
        .iter()
        .take(20)
        .flat_map(|run| run["traj"].as_array())
        .flatten()
    {
        let content = text(message, "content");
        messages.push(match &*text(message, "role") {
            // All conversations have the same prompt.
            "system" if messages.is_empty() => Message::system(&content),
            "system" => continue,
            "user" => Message::user(&content),
            "tool" => Message::tool(&text(message, "tool_call_id"), &content),
            _ => {
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                calls.fold(Message::assistant(&content), |reply, call| {
                    let function = &call["function"];
                    reply.call(
                        &text(call, "id"),
                        &text(function, "name"),
                        &text(function, "arguments"),
                    )
                })
            }
        });
    }
    Some(messages)
}

/// The messages of a session of a coding agent.
fn coding_agent(path: &Path) -> Option<Vec<Message>> {
    let lines = unpacked(path)?;
    let lines = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages = lines.filter_map(|line| {
        let message = &line["message"];
        let parts = message["content"].as_array()?;
        let texts: Vec<String> = parts.iter().map(|part| text(part, "text")).collect();
        Some(match message["role"].as_str()? {
            "user" => Message::user(&texts.concat()),
            "toolResult" => Message::tool(&text(message, "toolCallId"), &texts.concat()),
            _ => {
                let calls = parts.iter().filter(|part| part["type"] == "toolCall");
                calls.fold(Message::assistant(&texts.concat()), |reply, call| {
                    reply.call(
                        &text(call, "id"),
                        &text(call, "name"),
                        &call["arguments"].to_string(),
                    )
                })
            }
        })
    });
    Some(
        std::iter::once(Message::system(&"You write code. ".repeat(200)))
            .chain(messages)
            .collect(),
    )
}

fn synthetic() -> Vec<Message> {
    let mut messages = vec![Message::system(&"You book flights. ".repeat(200))];
    for turn in 0..500 {
        let say = |who: &str| {
            format!("{who} says in turn {turn} what the next flight is, and why. ").repeat(4)
        };
        messages.push(match turn % 3 {
            0 => Message::user(&say("the customer")),
            _ => Message::tool(&format!("call{}", turn - 1), &say("a refund tool")),
        });
        let reply = Message::assistant(&say("the model"));
        messages.push(match turn % 3 {
            2 => reply,
            _ => reply.call(
                &format!("call{turn}"),
                ["search", "book"][turn % 2],
                r#"{"to":"GRZ"}"#,
            ),
        });
    }
    messages
}
