//! Letta agent files (`.af`): `{"agents": [{"messages": […], "in_context_message_ids": […]}], …}`.
//!
//! An agent is a session. Its messages are like those of Chat Completions and are read as such;
//! their other members are in `data_record`. Where the agent's context has fewer messages than the
//! file, the last cycle is the compaction after which only these are sent. Tools are those of the
//! file that the agent has.

use super::fields::{get_string, text};
use super::openai::Chat;
use super::reader::{Reader, Record, Records, Sniff};
use super::requests::Api;
use super::transcript::{keep, model, record, time_of};
use crate::json::{Member, ValueType, elements, get, members, value_type};
use crate::logs::json::push_member;
use crate::logs::log::{About, Call, Event, Message, Tool};
use crate::logs::output::Output;
use crate::logs::report::{Fate, Report};
use std::collections::HashSet;

/// A file with agents that have messages.
pub(super) fn sniff(_record: &Record<'_>, found: &[Member<'_>]) -> Sniff {
    let agents = elements(get(found, "agents").unwrap_or_default());
    let is_agent = |raw: &&str| {
        let found = members(raw);
        get(&found, "messages").map(value_type) == Some(ValueType::Array)
    };
    if agents.first().is_some_and(is_agent) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

/// Reads agent files, each agent a session.
pub(super) struct Letta;

impl Reader for Letta {
    fn record(&mut self, record_of: &Record<'_>, _: &dyn Records, out: &mut Output) {
        let found = members(record_of.raw);
        let agents = elements(get(&found, "agents").unwrap_or_default());
        if agents.is_empty() {
            out.report.line(Fate::Skipped, "without agents");
            return;
        }
        let tools = elements(get(&found, "tools").unwrap_or_default());
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
}

/// The members of an agent that are in the tree.
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
    let own: HashSet<&str> = elements(get(found, "tool_ids").unwrap_or_default())
        .into_iter()
        .collect();
    let definitions: Vec<Tool> = tools
        .iter()
        .filter(|tool| get(tool, "id").is_some_and(|id| own.contains(id)))
        .filter_map(|tool| {
            let definition = get(tool, "json_schema").filter(|raw| raw.starts_with('{'))?;
            let name = text(tool, "name").or_else(|| text(&members(definition), "name"));
            Some(Tool {
                form: None,
                name: name.unwrap_or_default().into_owned(),
                definition: definition.to_owned(),
            })
        })
        .collect();
    for _ in &definitions {
        out.report.part(Fate::Understood, "tool");
    }
    if !definitions.is_empty() {
        out.event(session, Event::Tools(definitions));
    }
    let config = get(found, "llm_config").map(members).unwrap_or_default();
    if let Some(name) = get_string(&config, "model") {
        out.event(session, Event::Parameters(model(name)));
    }
    let sent: HashSet<&str> = elements(get(found, "in_context_message_ids").unwrap_or_default())
        .into_iter()
        .collect();
    let (mut all, mut left) = (Vec::new(), Vec::new());
    for raw in elements(get(found, "messages").unwrap_or_default()) {
        let found = members(raw);
        let message = read(&found, raw, &mut out.report);
        all.push(message.clone());
        if get(&found, "id").is_some_and(|id| sent.contains(id)) {
            left.push(message.clone());
        }
        let event = if message.reply {
            Event::Reply(vec![message], Call::default())
        } else {
            Event::Message(message)
        };
        out.event(session, event);
    }
    if !left.is_empty() && left.len() < all.len() {
        let dropped = format!("{{\"dropped\":{}}}", all.len() - left.len());
        // What came after the last reply and is dropped would be in no snapshot.
        if !all.last().is_some_and(|last| last.reply) {
            out.event(session, Event::Context(all, Call::default()));
        }
        let call = Call {
            meta: vec![("compaction".into(), dropped)],
            ..Call::default()
        };
        out.event(session, Event::Context(left, call));
    }
}

/// The members of a message that Chat Completions has, too.
const CHAT: [&str; 4] = ["role", "content", "tool_calls", "tool_call_id"];

fn read(found: &[Member<'_>], raw: &str, report: &mut Report) -> Message {
    let mut chat = String::new();
    for (name, value) in found {
        let has = CHAT.contains(&&**name) && !matches!(*value, "null");
        if has && !(name == "tool_calls" && value_type(value) != ValueType::Array) {
            push_member(name, value, &mut chat);
        }
    }
    if get_string(found, "role").is_none() {
        return Chat.message(raw, report);
    }
    let mut message = Chat.message(&format!("{{{}}}", &chat[1..]), report);
    message.time = time_of(found, "created_at");
    keep(
        &mut message,
        found,
        &[&CHAT[..], &["created_at"]].concat(),
        report,
    );
    message
}
