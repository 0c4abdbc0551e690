//! Transcripts of Cursor's agent: a message a line, `{role, message: {model?, content}}`, and marks of where turns end.
//!
//! A transcript without times and usage; calls have no ids in most of them, and results are often not written. Texts,
//! thinking, calls and results become blocks as those of other formats do. What a person typed is inside
//! `<user_query>`; the rest is of the program. A turn that ended with an error is a failed call.

use super::prelude::*;
use super::transcript::{PartType, call, contents, fate, keep, keep_in, message, result, typed};

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let is_message = get_string(found, "role").is_some() && get(found, "type").is_none();
    let is_mark = text(found, "type").as_deref() == Some(TURN_ENDED) && has_status(found);
    (is_message && get(&inner(found, "message"), "content").is_some() || is_mark).into()
}

const TURN_ENDED: &str = "turn_ended";

fn has_status(found: &[Member<'_>]) -> bool {
    get_string(found, "status").is_some()
}

#[derive(Clone, Default)]
pub(super) struct Cursor(Option<SessionId>);

impl LogReader for Cursor {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        let begin = || {
            let mut about = About {
                location: record.list.to_owned(),
                ..About::default()
            };
            about.of_agent("cursor", None);
            out.session(about)
        };
        let session = *self.0.get_or_insert_with(begin);
        let found = record.json.members(record.raw);
        let Some(role) = text(&found, "role") else {
            mark(&found, session, out);
            return;
        };
        let said = record.json.inside(&found, "message");
        let made = messages(&role, &found, &said, record.json, &mut out.report);
        let is_read = made
            .iter()
            .any(|message| fate(&message.parts) == Fate::Understood);
        let fate = if is_read {
            Fate::Understood
        } else {
            Fate::Verbatim
        };
        out.report.line(fate, role_name(&role));
        let model = get_string(&said, "model").filter(|_| role == "assistant");
        if let Some(model) = model {
            let parameters = object([("model", canonical(model))]);
            out.event(session, Event::Parameters(parameters));
        }
        for message in made {
            out.event(session, Event::said(message, LogCall::default()));
        }
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        Some(Box::new(self.clone()))
    }
}

/// The end of a turn, or a line of another kind.
fn mark(found: &[Member<'_>], session: SessionId, out: &mut Output) {
    if text(found, "type").as_deref() != Some(TURN_ENDED) {
        out.report.unknown_line("another type");
    } else if text(found, "status").as_deref() == Some("error") {
        out.report.line(Fate::Understood, TURN_ENDED);
        let error = get(found, "error").map_or("null".to_owned(), canonical);
        out.event(session, Event::Failed(failed(&error)));
    } else {
        out.report
            .line(Fate::Skipped, "turn_ended (of the program)");
    }
}

/// The results in a line, each a message, and what else it says.
fn messages(
    role: &str,
    found: &[Member<'_>],
    said: &[Member<'_>],
    json: Accepted<'_>,
    report: &mut ImportReport,
) -> Vec<LogMessage> {
    let (mut made, mut parts) = (Vec::new(), Vec::new());
    let raw = get(said, "content").unwrap_or("null");
    let read = |raw: &str, parts: &mut Vec<LogPart>, report: &mut ImportReport| {
        let found = json.members(raw);
        match &*text(&found, "type").unwrap_or_default() {
            "tool_use" => {
                let (id, name) = (get_string(&found, "id"), get_string(&found, "name"));
                let mut part = call(id, name, get(&found, "input").unwrap_or("{}"), report);
                keep_in(
                    &mut part,
                    "data_part",
                    &found,
                    &words![type id name input],
                    report,
                );
                parts.push(part);
            }
            "tool_result" => {
                let id = get_string(&found, "tool_use_id");
                let mut result = result(id, None, get(&found, "content"), report);
                for part in &mut result.parts {
                    part.set_some("data_is_error", get(&found, "is_error"));
                }
                keep(
                    &mut result,
                    &found,
                    &words![type tool_use_id content is_error],
                    report,
                );
                made.push(result);
            }
            _ => parts.push(typed(raw, &found, &TYPES, |_| None, report)),
        }
    };
    if contents(raw, "text", json, &mut parts, report, read).is_none() && raw != "null" {
        report.part(Fate::Verbatim, "content");
        parts.push(LogPart::verbatim("content", None, raw));
    }
    if parts.is_empty() && !made.is_empty() {
        return made;
    }
    let mut message = message(role, parts, report);
    message.typed = message.parts.iter().find_map(query);
    let rest: Vec<Member<'_>> = found.iter().chain(said).cloned().collect();
    keep(
        &mut message,
        &rest,
        &words![id role message content model],
        report,
    );
    made.push(message);
    made
}

const TYPES: [PartType<'_>; 3] = [
    ("text", "text", "text"),
    ("thinking", "thinking", "thinking"),
    ("image", "source", "image"),
];

/// What a person typed, as JSON, if a text says where that is in it.
fn query(part: &LogPart) -> Option<String> {
    let text = string(part.content.as_deref()?)?;
    let (_, rest) = text.split_once("<user_query>")?;
    let (typed, _) = rest.split_once("</user_query>")?;
    Some(quoted(typed.trim()))
}
