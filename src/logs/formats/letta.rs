//! Letta agent files (`.af`): `{"agents": [{"messages": […], "in_context_message_ids": […]}], …}`.
//!
//! An agent is a session. Its messages are like those of Chat Completions and are read as such;
//! their other members are in `data_record`. Where the agent's context has fewer messages than the
//! file, the last cycle is the compaction after which only these are sent. Tools are those of the
//! file that the agent has.

use super::openai::Chat;
use super::prelude::*;
use super::requests::Api;
use super::transcript::{image_url, keep, model, record, time_of};
use std::collections::HashSet;

pub(super) fn sniff(_record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let agents = items(found, "agents");
    let is_agent = |raw: &&str| is(&members(raw), "messages", ValueType::Array);
    (agents.first().is_some_and(is_agent)).into()
}

pub(super) fn read(record_of: &LogRecord<'_>, out: &mut Output) {
    let found = members(record_of.raw);
    let agents = items(&found, "agents");
    if agents.is_empty() {
        out.report.unknown_line("without agents");
        return;
    }
    let tools = items(&found, "tools");
    let tools: Vec<Vec<Member<'_>>> = tools.into_iter().map(members).collect();
    for (name, _) in &found {
        if !matches!(&**name, "agents" | "tools") {
            out.report.skipped_member(name);
        }
    }
    for (at, raw) in agents.into_iter().enumerate() {
        let location = format!("{}/agents/{at}", record_of.location());
        agent(&members(raw), location, &tools, out);
    }
}

const KNOWN: [&str; 2] = ["messages", "in_context_message_ids"];

fn agent(found: &[Member<'_>], location: String, tools: &[Vec<Member<'_>>], out: &mut Output) {
    out.report.line(Fate::Understood, "agent");
    let name = text(found, "id").or_else(|| text(found, "name"));
    let meta = record(found, &KNOWN, &mut out.report);
    let session = out.session(About {
        location,
        name: name.map(|name| name.into_owned()),
        meta,
        ..About::default()
    });
    let own: HashSet<&str> = items(found, "tool_ids").into_iter().collect();
    let is_own = |tool: &&Vec<Member<'_>>| get(tool, "id").is_some_and(|id| own.contains(id));
    let definition = |tool: &Vec<Member<'_>>| {
        let definition = get(tool, "json_schema").filter(|raw| raw.starts_with('{'))?;
        let name = text(tool, "name").or_else(|| text(&members(definition), "name"));
        Some(LogTool {
            data: Vec::new(),
            name: name.unwrap_or_default().into_owned(),
            definition: definition.to_owned(),
        })
    };
    let definitions = tools.iter().filter(is_own);
    let definitions: Vec<LogTool> = definitions.filter_map(definition).collect();
    for _ in &definitions {
        out.report.part(Fate::Understood, "tool");
    }
    for tool in tools.iter().filter(is_own) {
        count_unread(
            tool,
            &["id", "name", "json_schema"],
            "tools.",
            &mut out.report,
        );
    }
    out.event(session, Event::Tools(definitions));
    let config = inner(found, "llm_config");
    if let Some(name) = get_string(&config, "model") {
        out.event(session, Event::Parameters(model(name)));
    }
    let sent: HashSet<&str> = items(found, "in_context_message_ids").into_iter().collect();
    let (mut all, mut left) = (Vec::new(), Vec::new());
    for raw in items(found, "messages") {
        let found = members(raw);
        let message = read_message(&found, raw, &mut out.report);
        all.push(message.clone());
        if get(&found, "id").is_some_and(|id| sent.contains(id)) {
            left.push(message.clone());
        }
        out.event(session, Event::said(message, LogCall::default()));
    }
    if !left.is_empty() && left.len() < all.len() {
        let dropped = object([("dropped", (all.len() - left.len()).to_string())]);
        // What came after the last reply and is dropped would be in no snapshot.
        if !all.last().is_some_and(|last| last.reply) {
            out.event(session, Event::Context(all, LogCall::default()));
        }
        let call = LogCall::compaction(Some(dropped), None);
        out.event(session, Event::Context(left, call));
    }
}

/// A part of a message in the form of Chat Completions, which has another one for images.
fn part(raw: &str) -> String {
    match image_url(&members(raw)) {
        Some(url) => {
            let url = object([("url", quoted(&url))]);
            object([("image_url", url), ("type", quoted("image_url"))])
        }
        None => raw.to_owned(),
    }
}

/// The members of a message that Chat Completions has, too.
const CHAT: [&str; 4] = ["role", "content", "tool_calls", "tool_call_id"];

fn read_message(found: &[Member<'_>], raw: &str, report: &mut ImportReport) -> LogMessage {
    if get_string(found, "role").is_none() {
        return Chat.message(raw, report);
    }
    let is_list = |value: &str| value_type(value) == ValueType::Array;
    let chat = found.iter().filter(|(name, value)| {
        CHAT.contains(&&**name) && *value != "null" && (name != "tool_calls" || is_list(value))
    });
    let chat = object(chat.map(|(name, value)| match &**name {
        "content" if is_list(value) => (name, list(elements(value).into_iter().map(part))),
        _ => (name, (*value).to_owned()),
    }));
    let mut message = Chat.message(&chat, report);
    message.time = time_of(found, "created_at");
    let known = [&CHAT[..], &["created_at"]].concat();
    keep(&mut message, found, &known, report);
    message
}
