//! ShareGPT: conversations for fine-tuning, `{"conversations": [{"from": …, "value": …}]}`.
//!
//! A record is a session. `human`, `gpt`, `system`, `function_call` and `observation` become
//! messages of the user, the assistant, the system, the assistant and a tool. The form has no ids of
//! calls and no times. A `system` prompt and `tools` beside the conversation, which some writers have,
//! go to `^sys`.

use super::prelude::*;
use super::requests::tools;
use super::transcript::{call, content, keep, message, record, result, unread};
use crate::logs::json::value as json_in;

/// An object with `conversations` that have a `from` and a `value`.
pub(super) fn sniff(_record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let turns = items(found, "conversations");
    let is_turn = |raw: &&str| {
        let found = members(raw);
        get_string(&found, "from").is_some() && get(&found, "value").is_some()
    };
    (turns.first().is_some_and(is_turn)).into()
}

pub(super) fn read(record_of: &LogRecord<'_>, out: &mut Output) {
    let found = members(record_of.raw);
    let list = get(&found, "conversations");
    let Some(list) = list.filter(|raw| value_type(raw) == ValueType::Array) else {
        out.report.unknown_line("without conversations");
        return;
    };
    out.report.line(Fate::Understood, "conversation");
    let mut known = vec!["conversations"];
    let system = get_string(&found, "system").filter(|raw| *raw != "\"\"");
    known.extend(system.map(|_| "system"));
    let decoded = text(&found, "tools");
    let listed = match &decoded {
        Some(text) => json_in(text),
        None => get(&found, "tools"),
    };
    let found_tools = tools(listed, &mut out.report);
    if !found_tools.is_empty() {
        known.push("tools");
    }
    let meta = record(&found, &known, &mut out.report);
    let session = out.session(About {
        location: record_of.location(),
        meta,
        ..About::default()
    });
    out.event(session, Event::Tools(found_tools));
    if system.is_some() {
        let parts = content(system, "text", &mut out.report);
        let message = message("system", parts, &mut out.report);
        out.event(session, Event::Message(message));
    }
    for raw in elements(list) {
        let message = turn(raw, &mut out.report);
        out.event(session, Event::said(message, LogCall::default()));
    }
    out.close(session);
}

fn turn(raw: &str, report: &mut ImportReport) -> LogMessage {
    let found = members(raw);
    let (Some(from), Some(value)) = (text(&found, "from"), get(&found, "value")) else {
        return unread("of unknown form", raw, report);
    };
    let role = match &*from {
        "human" | "user" => "user",
        "gpt" | "assistant" | "model" | "chatgpt" | "bing" | "bard" => "assistant",
        "observation" | "tool" | "function_response" | "ipython" => "tool",
        other => other,
    };
    let mut made = match (&*from, role) {
        ("function_call", _) => message("assistant", vec![call_of(value, report)], report),
        (_, "tool") => result(None, None, Some(value), report),
        _ => message(role, content(Some(value), "text", report), report),
    };
    keep(&mut made, &found, &["from", "value"], report);
    made
}

/// The call in a value. Its text is an object with a name and arguments, or anything, which is kept
/// as it is.
fn call_of(value: &str, report: &mut ImportReport) -> LogPart {
    let decoded = string(value);
    let inner = decoded.as_deref().and_then(json_in).unwrap_or(value);
    let found = members(inner);
    let name = get_string(&found, "name");
    match (name, get(&found, "arguments")) {
        (Some(name), Some(arguments)) => {
            let mut part = call(None, Some(name), arguments, report);
            part.keep_rest("data_call", &found, &["name", "arguments"]);
            part
        }
        _ if value_type(value) == ValueType::String => call(None, None, value, report),
        _ => call(None, None, &quoted(value), report),
    }
}
