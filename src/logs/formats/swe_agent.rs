//! SWE-agent trajectories: one object with `history` and `trajectory`.
//!
//! Where every step has the list of messages that was sent (`messages`, or `query`), each step is a
//! cycle; else `history` is a conversation. The messages are those of OpenAI chat. What a step says and no message
//! holds, such as a response that was changed before it was sent on, is in `meta.record`.

use super::fields::{is, items};
use super::openai::Chat;
use super::reader::{LogRecord, Sniff};
use super::requests::{Api, Interner, converse};
use crate::json::{Member, ValueType, elements, get, members, string, value_type};
use crate::logs::json::{canonical, list, object};
use crate::logs::log::{About, Event, LogField, LogMessage, LogRequest, RequestOrigin};
use crate::logs::output::Output;
use crate::logs::report::{Fate, ImportReport};
use std::collections::HashSet;

/// An object with a history and a trajectory.
pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let is_list = |name| is(found, name, ValueType::Array);
    (is_list("trajectory") && is_list("history")).into()
}

pub(super) fn read(record: &LogRecord<'_>, out: &mut Output) {
    let found = members(record.raw);
    let trajectory = items(&found, "trajectory");
    let lists: Vec<Option<&str>> = trajectory.iter().map(|step| sent(step)).collect();
    let exact = !lists.is_empty() && lists.iter().all(Option::is_some);
    let mut about = About {
        location: record.location(),
        origin: if exact {
            RequestOrigin::Request
        } else {
            RequestOrigin::Transcript
        },
        ..About::default()
    };
    for (name, value) in &found {
        match &**name {
            "info" | "environment" => {
                out.report.count_record_member(name);
                about.meta.push((name.to_string().into(), canonical(value)));
            }
            "history" | "trajectory" => {}
            _ => out.report.skipped_member(name),
        }
    }
    about
        .meta
        .extend(unsaid(&found, &trajectory, &lists, &mut out.report));
    let session = out.session(about);
    if !exact {
        let history = items(&found, "history");
        let read = |raw: &&str| Chat.message(raw, &mut out.report);
        let messages: Vec<LogMessage> = history.iter().map(read).collect();
        out.report.line(Fate::Understood, "history");
        if !trajectory.is_empty() {
            let steps = trajectory.len();
            out.report
                .note(format!("{steps} steps repeat messages of the history"));
        }
        converse(messages, false, session, out);
        return;
    }
    let mut seen = Interner::default();
    for list in lists.into_iter().flatten() {
        out.report.line(Fate::Understood, "step");
        let read = |raw| seen.get(raw, || Chat.message(raw, &mut out.report));
        let messages = elements(list).into_iter().map(read).collect();
        let request = LogRequest {
            messages,
            ..LogRequest::default()
        };
        out.event(session, Event::Request(request));
    }
}

/// What steps say that no message holds: a list of objects with the number of the step, from 0.
fn unsaid(
    found: &[Member<'_>],
    trajectory: &[&str],
    lists: &[Option<&str>],
    report: &mut ImportReport,
) -> Option<LogField> {
    let sent = lists.iter().flatten().flat_map(|list| elements(list));
    let messages: HashSet<&str> = items(found, "history").into_iter().chain(sent).collect();
    let mut said = String::new();
    messages.iter().for_each(|raw| texts(raw, &mut said));
    let mut steps = Vec::new();
    for (number, raw) in trajectory.iter().enumerate() {
        let mut kept = vec![("step", number.to_string())];
        for (name, value) in members(raw) {
            let names = ["response", "observation", "thought"];
            let Some(name) = names.into_iter().find(|known| *known == name) else {
                continue;
            };
            let text = string(value).unwrap_or_default();
            let is_new = kept.iter().all(|(_, kept)| *kept != canonical(value));
            if is_new && !said.contains(text.trim()) {
                report.count_record_member(&format!("step.{name}"));
                kept.push((name, canonical(value)));
            }
        }
        if kept.len() > 1 {
            steps.push(object(kept));
        }
    }
    (!steps.is_empty()).then(|| ("record".into(), object([("steps", list(steps))])))
}

fn texts(raw: &str, out: &mut String) {
    if let Some(text) = string(raw) {
        out.push_str(&text);
        out.push('\0');
    }
    elements(raw).into_iter().for_each(|raw| texts(raw, out));
    members(raw).iter().for_each(|(_, raw)| texts(raw, out));
}

fn sent(step: &str) -> Option<&str> {
    let found = members(step);
    let found = get(&found, "query").or_else(|| get(&found, "messages"));
    found.filter(|list| value_type(list) == ValueType::Array && *list != "[]")
}
