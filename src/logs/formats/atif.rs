//! ATIF: the trajectories of Harbor, `{"schema_version": "ATIF-v1.…", "agent": …, "steps": […]}`.
//!
//! A step of the agent is a reply: reasoning, text and calls; its observation is the results, which
//! come before the next reply and have no time. Steps that were copied from another trajectory, or in which no model
//! was called, are messages and no cycles. Trajectories of subagents that are in the file are sessions
//! of their own, named by their id, and the call that started one has its id in `data_child_session`;
//! a reference to another file is in `data_record` of its result alone.
//! `data_record` of a step's first block keeps the members that have no field.

use super::prelude::*;
use super::requests::tools;
use super::transcript::{call, content, keep, message, model, record, result, time_of};
use std::collections::HashMap;

pub(super) fn sniff(_record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let version = text(found, "schema_version").unwrap_or_default();
    (version.starts_with("ATIF")).into()
}

pub(super) fn read(record: &LogRecord<'_>, out: &mut Output) {
    let found = members(record.raw);
    trajectory(&found, record.location(), None, out);
}

const KNOWN: [&str; 2] = ["steps", "subagent_trajectories"];

fn trajectory(
    found: &[Member<'_>],
    location: String,
    parent: Option<(&str, &str)>,
    out: &mut Output,
) {
    let steps = get(found, "steps");
    let Some(steps) = steps.filter(|raw| value_type(raw) == ValueType::Array) else {
        out.report.unknown_line("without steps");
        return;
    };
    out.report.line(Fate::Understood, "trajectory");
    let mut meta = record(found, &KNOWN, &mut out.report);
    let own = id_of(found).unwrap_or_default();
    let name = parent.map(|(parent, name)| match parent {
        "" => name.to_owned(),
        parent => format!("{parent}/{name}"),
    });
    let name = name.or_else(|| Some(own.clone()).filter(|own| !own.is_empty()));
    if parent.is_some() {
        meta.push(("parent".into(), OWNER.to_owned()));
    }
    let session = out.session(About {
        location: location.clone(),
        name: name.clone(),
        meta,
        ..About::default()
    });
    let agent = inner(found, "agent");
    let tools = tools(get(&agent, "tool_definitions"), &mut out.report);
    out.event(session, Event::Tools(tools));
    let name = name.unwrap_or_default();
    let children = Children::new(found);
    for raw in elements(steps) {
        let step = members(raw);
        let used = get_string(&step, "model_name").or(get_string(&agent, "model_name"));
        if let Some(used) = used {
            out.event(session, Event::Parameters(model(used)));
        }
        read_step(raw, &step, &children, session, out);
    }
    for (at, (child, id)) in children.all.iter().enumerate() {
        let location = format!("{location}/subagent_trajectories/{at}");
        trajectory(child, location, Some((&name, id)), out);
    }
}

/// The trajectories in the file of the one that started them.
#[derive(Default)]
struct Children<'a> {
    /// Each with its name.
    all: Vec<(Vec<Member<'a>>, String)>,
    /// Their names by the ids that references have: `None` for one that several have.
    by_id: HashMap<(&'static str, String), Option<String>>,
}

/// What a reference names a trajectory by. The id of a session may be that of the whole run.
const IDS: [&str; 2] = ["trajectory_id", "session_id"];

impl<'a> Children<'a> {
    fn new(found: &[Member<'a>]) -> Self {
        let mut children = Self::default();
        let all = items(found, "subagent_trajectories").into_iter();
        for (at, raw) in all.enumerate() {
            let child = members(raw);
            let name = id_of(&child).unwrap_or_else(|| format!("{}", at + 1));
            for kind in IDS {
                if let Some(id) = text(&child, kind) {
                    let known = children.by_id.entry((kind, id.into_owned()));
                    known
                        .and_modify(|known| *known = None)
                        .or_insert_with(|| Some(name.clone()));
                }
            }
            children.all.push((child, name));
        }
        children
    }

    /// The name of the one that a reference means.
    fn referred(&self, reference: &str) -> Option<String> {
        let found = members(reference);
        let kind = IDS.into_iter().find(|kind| get(&found, kind).is_some())?;
        let is_of_file = get(&found, "trajectory_path").is_some();
        if kind == "session_id" && is_of_file {
            return None;
        }
        let id = text(&found, kind)?.into_owned();
        self.by_id.get(&(kind, id)).cloned().flatten()
    }
}

fn id_of(found: &[Member<'_>]) -> Option<String> {
    let id = text(found, "trajectory_id").or_else(|| text(found, "session_id"));
    id.map(|id| id.into_owned())
}

const OF_STEP: [&str; 9] = words![
    step_id timestamp source message reasoning_content tool_calls observation metrics
    model_name
];

fn read_step(
    raw: &str,
    step: &[Member<'_>],
    children: &Children<'_>,
    session: SessionId,
    out: &mut Output,
) {
    let time = time_of(step, "timestamp");
    let role = match text(step, "source").as_deref() {
        Some("system") => "system",
        Some("user") => "user",
        Some("agent") => "assistant",
        _ => {
            out.report.message(Fate::Verbatim, "of unknown source");
            let part = LogPart::verbatim("message", None, raw);
            let message = LogMessage::new(None, vec![part]).at(time);
            out.event(session, Event::Message(message));
            return;
        }
    };
    let report = &mut out.report;
    let observation = inner(step, "observation");
    let results = items(&observation, "results").into_iter();
    let results: Vec<Vec<Member<'_>>> = results.map(members).collect();
    let reasoning = get_string(step, "reasoning_content").filter(|raw| *raw != "\"\"");
    let mut parts = content(reasoning, "thinking", report);
    let said = get(step, "message").filter(|raw| role != "assistant" || *raw != "\"\"");
    parts.extend(content(said, "text", report));
    for raw in items(step, "tool_calls") {
        parts.push(read_call(raw, &results, children, report));
    }
    let mut made = message(role, parts, report);
    made.time = time;
    keep(&mut made, step, &OF_STEP, report);
    let called = get(step, "llm_call_count") != Some("0");
    let copied = get(step, "is_copied_context") == Some("true");
    made.reply &= called && !copied;
    let event = Event::said(made, used(step));
    out.event(session, event);
    for found in &results {
        let id = get_string(found, "source_call_id");
        // The time of the step is that of the reply. When a result came, the log does not say.
        let mut made = result(id, None, get(found, "content"), &mut out.report);
        let known = ["source_call_id", "content"];
        keep(&mut made, found, &known, &mut out.report);
        out.event(session, Event::Message(made));
    }
}

/// A call of a step with these results. One that started a subagent names its session.
fn read_call(
    raw: &str,
    results: &[Vec<Member<'_>>],
    children: &Children<'_>,
    report: &mut ImportReport,
) -> LogPart {
    let found = members(raw);
    let id = get_string(&found, "tool_call_id");
    let (function, arguments) = (
        get_string(&found, "function_name"),
        get(&found, "arguments"),
    );
    let (Some(_), Some(arguments)) = (function, arguments) else {
        report.part(Fate::Verbatim, "call");
        return LogPart::verbatim("call", Some("call"), raw);
    };
    let mut part = call(id, function, arguments, report);
    let known = ["tool_call_id", "function_name", "arguments"];
    part.keep_rest("data_call", &found, &known);
    let own = results
        .iter()
        .filter(|found| id.is_some() && get(found, "source_call_id") == id);
    let mut references = own.flat_map(|found| items(found, "subagent_trajectory_ref"));
    let child = references.find_map(|reference| children.referred(reference));
    if let Some(child) = child {
        part.set("data_child_session", quoted(&format!("/{child}")));
    }
    part
}

fn used(step: &[Member<'_>]) -> LogCall {
    let metrics = get(step, "metrics").filter(|raw| raw.starts_with('{'));
    let found = metrics.map(members).unwrap_or_default();
    let said = ["cached_tokens", "cost_usd"];
    let said = said.map(|name| (name, get(&found, name).filter(|raw| *raw != "null")));
    LogCall::used(metrics, &said)
}
