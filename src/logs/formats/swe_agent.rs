//! SWE-agent trajectories: one object with `history` and `trajectory`.
//!
//! Where every step has a list of messages, each step is a request; else `history` is a conversation. The list is
//! what was sent (`query`) or, in older logs (`messages`), what will be sent next: with the reply and what the tool
//! said. The messages are those of OpenAI chat. The model is that of `replay_config`, which older logs do not have. What
//! the whole run used (`info.model_stats`) is said in a note: of each request the log does not say it. What a step says
//! and no message holds, such as a response that was changed before it was sent on, is in `meta.record`.

use super::openai::Chat;
use super::prelude::*;
use super::requests::{Api, Interner, converse};
use super::transcript::model;
use crate::logs::json::value;
use crate::logs::log::RequestOrigin;
use crate::support::text::amount;
use std::collections::HashSet;

/// An object with a history and a trajectory.
pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let is_list = |name| is(found, name, ValueType::Array);
    (is_list("trajectory") && is_list("history")).into()
}

pub(super) fn read(record: &LogRecord<'_>, out: &mut Output) {
    let found = members(record.raw);
    let trajectory = items(&found, "trajectory");
    let lists: Option<Vec<Vec<&str>>> = trajectory.iter().map(|step| sent(step)).collect();
    let lists = lists.unwrap_or_default();
    let exact = !lists.is_empty();
    let mut about = About {
        location: record.location(),
        origin: if exact {
            RequestOrigin::Request
        } else {
            RequestOrigin::Transcript
        },
        ..About::default()
    };
    let parameters = model_of(&found);
    if about.location.is_empty() {
        totals(&found, &mut out.report);
    }
    for (name, value) in &found {
        match &**name {
            "history" | "trajectory" => {}
            // A run's settings and its end.
            _ => {
                out.report.count_record_member(name);
                about.meta.push((name.to_string().into(), canonical(value)));
            }
        }
    }
    let history = items(&found, "history");
    let calls = calls(&trajectory, &lists, &history);
    let told = calls
        .iter()
        .flat_map(|call| call.sent.iter().chain(&call.rest));
    let told: Vec<&str> = if exact {
        let replies = calls.iter().filter_map(|call| call.reply);
        told.copied().chain(replies).collect()
    } else {
        history.clone()
    };
    about
        .meta
        .extend(unsaid(&told, &trajectory, &mut out.report));
    let session = out.session(about);
    if let Some(parameters) = &parameters {
        out.event(session, Event::Parameters(parameters.clone()));
    }
    if !exact {
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
    for call in calls {
        out.report.line(Fate::Understood, "step");
        let mut read = |raw: &str| seen.get(raw, || Chat.message(raw, &mut out.report));
        let request = LogRequest {
            messages: call.sent.iter().map(|raw| read(raw)).collect(),
            reply: call
                .reply
                .map(|raw| LogMessage::clone(&read(raw)))
                .into_iter()
                .collect(),
            parameters: parameters.clone(),
            ..LogRequest::default()
        };
        let rest: Vec<_> = call.rest.iter().map(|raw| read(raw)).collect();
        out.event(session, Event::Request(request));
        for message in rest {
            out.event(session, Event::Message(LogMessage::clone(&message)));
        }
    }
}

/// The parameters of the requests, of which the model is known: that of the settings, which may be JSON in a string.
fn model_of(found: &[Member<'_>]) -> Option<String> {
    let settings = get(found, "replay_config")?;
    let text = string(settings);
    let settings = text.as_deref().map_or(Some(settings), value)?;
    let agent = inner(&members(settings), "agent");
    get_string(&inner(&agent, "model"), "name").map(model)
}

/// Notes what the run used, by the log's own account.
fn totals(found: &[Member<'_>], report: &mut ImportReport) {
    let stats = inner(&inner(found, "info"), "model_stats");
    let number = |name| get(&stats, name).and_then(|raw| raw.parse::<f64>().ok());
    let used = |name| number(name).filter(|number| *number > 0.0);
    let count = |name, what: &str| Some(format!("{} {what}", amount(used(name)? as u64)));
    let cost = used("instance_cost").map(|dollars| format!("${dollars:.6}"));
    let said = [
        count("tokens_sent", "tokens sent"),
        count("tokens_received", "received"),
        cost,
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    if !said.is_empty() {
        let said = said.join(", ");
        report.note(format!(
            "the run used, by its own account: {said}; of each request the log does not say it"
        ));
    }
}

#[derive(Default)]
struct StepCall<'a> {
    sent: Vec<&'a str>,
    reply: Option<&'a str>,
    /// What came after the last reply, and was never sent.
    rest: Vec<&'a str>,
}

/// What was sent in each step, and what came back.
fn calls<'a>(
    trajectory: &[&str],
    lists: &[Vec<&'a str>],
    history: &[&'a str],
) -> Vec<StepCall<'a>> {
    let Some((first, step)) = lists.first().zip(trajectory.first()) else {
        return Vec::new();
    };
    let mut calls = Vec::new();
    if let Some(at) = reply_in(first, step) {
        let mut sent = first[..at].to_vec();
        for list in lists {
            let at = list.iter().rposition(|raw| is_reply(raw));
            let (_, after) = list.split_at(at.unwrap_or(list.len()));
            calls.push(StepCall {
                sent: std::mem::replace(&mut sent, list.clone()),
                reply: after.first().copied(),
                rest: after.iter().skip(1).copied().collect(),
            });
        }
        // All others were sent in the next step.
        let last = calls.len().saturating_sub(1);
        calls[..last].iter_mut().for_each(|call| call.rest.clear());
        return calls;
    }
    for (at, list) in lists.iter().enumerate() {
        let next = lists.get(at + 1).and_then(|next| next.get(list.len()));
        calls.push(StepCall {
            sent: list.clone(),
            reply: next.filter(|raw| is_reply(raw)).copied(),
            rest: Vec::new(),
        });
    }
    let last = trajectory.last().and_then(|step| reply_in(history, step));
    if let Some((at, call)) = last.zip(calls.last_mut()) {
        call.reply = history.get(at).copied();
        call.rest = history.iter().skip(at + 1).copied().collect();
    }
    calls
}

fn is_reply(raw: &str) -> bool {
    text(&members(raw), "role").as_deref() == Some("assistant")
}

/// Where the response of a step is in a list: the last message of the model, if it says the same.
fn reply_in(list: &[&str], step: &str) -> Option<usize> {
    let at = list.iter().rposition(|raw| is_reply(raw))?;
    let found = members(step);
    let said = ["response", "thought"].iter();
    let said = said.filter_map(|name| text(&found, name));
    let said = said
        .map(|said| said.trim().to_owned())
        .find(|said| !said.is_empty())?;
    let mut reply = String::new();
    texts(list.get(at)?, &mut reply);
    reply.contains(&*said).then_some(at)
}

/// What steps say that no message holds: a list of objects with the number of the step, from 0.
fn unsaid(told: &[&str], trajectory: &[&str], report: &mut ImportReport) -> Option<LogField> {
    let messages: HashSet<&str> = told.iter().copied().collect();
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

fn sent(step: &str) -> Option<Vec<&str>> {
    let found = members(step);
    let found = get(&found, "query").or_else(|| get(&found, "messages"));
    let list = found.filter(|list| value_type(list) == ValueType::Array && *list != "[]");
    list.map(elements)
}
