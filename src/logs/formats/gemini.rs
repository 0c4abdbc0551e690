//! Gemini `generateContent`: requests, responses, and lists of contents.
//!
//! Text, thoughts, calls, responses of functions, images and other files become blocks of kind `text`, `thinking`,
//! `call`, `result`, `image` and `document`. Results are in contents of the user, and their blocks have the role
//! `tool`; those of the role `model` have the role `assistant`. Arguments and responses are JSON text, in the order
//! they came in. Other parts are kept as they are. [`Provider::Gemini`] gives equal requests back, in the spelling
//! they came in (`functionCall` or `function_call`), with the help of these custom fields:
//!
//! | field | on | value |
//! |---|---|---|
//! | `data_form` | every block, tools | `gemini` |
//! | `data_role` | first block of a content | its role, if that of the block does not imply it; null if it has none |
//! | `data_shape` | first block of the system prompt | `text` if it is a text and not a content; `system_instruction` if that is its member |
//! | `data_item` | first block of a content | other members of it |
//! | `data_part` | any block | other members of the part, such as `thoughtSignature` |
//! | `data_part_type` | any block | the member that the part is, if the kind does not imply it |
//! | `data_call` | calls, results | other members of the call or the response |
//! | `data_tool` | tools | that a tool object begins with this function, and its member, such as `functionDeclarations` |
//! | `data_verbatim` | any block | its content is raw JSON: a `message` or a `part` |

use super::prelude::*;
use super::requests::{
    Api, Parsed, ReadReply, SystemPrompt, body_of, first_choice, is_request_to_address,
};
use super::transcript::{json_text, record as record_of, unknown, unread};
use crate::render::Provider;

const FORM: &str = "\"gemini\"";

/// A request, a response, or a content.
pub(super) fn sniff(_record: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let is_response = is(found, "candidates", ValueType::Array)
        && [
            "usageMetadata",
            "usage_metadata",
            "modelVersion",
            "responseId",
        ]
        .iter()
        .any(|name| get(found, name).is_some());
    let inner = body_of(found).unwrap_or_default();
    let is_request = [found, &inner].iter().any(|found| {
        let contents = items(found, "contents");
        contents
            .first()
            .is_some_and(|raw| is_content(&members(raw)))
    });
    if is_response || is_request {
        return Sniff::Yes;
    }
    (get_string(found, "role").is_some() && is_content(found)).into()
}

/// Whether these are the members of a content: its parts have no type.
fn is_content(found: &[Member<'_>]) -> bool {
    let parts = items(found, "parts");
    let is_part =
        |raw: &&str| value_type(raw) == ValueType::Object && get(&members(raw), "type").is_none();
    !parts.is_empty() && parts.iter().all(is_part)
}

/// Gemini's contents.
#[derive(Clone, Default)]
pub(super) struct Contents;

impl Api for Contents {
    const PROVIDER: Provider = Provider::Gemini;
    const MESSAGES: &'static str = "contents";
    const JOINED: bool = false;

    fn message(&self, raw: &str, report: &mut ImportReport) -> LogMessage {
        let found = members(raw);
        content(&found, None, report).unwrap_or_else(|| {
            let mut message = unread("of unknown form", raw, report);
            message.first().set("data_form", FORM.to_owned());
            message
        })
    }

    fn is_request(&self, found: &[Member<'_>]) -> bool {
        is_request_to_address(found, &[Self::MESSAGES, SYSTEM[0], SYSTEM[1]], "model")
    }

    fn system(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<SystemPrompt> {
        let (name, raw) = SYSTEM
            .iter()
            .find_map(|name| Some((*name, get(found, name)?)))?;
        let mut message = if value_type(raw) == ValueType::String {
            report.message(Fate::Understood, "system");
            report.part(Fate::Understood, "text");
            let part = LogPart::new("text", canonical(raw)).with("data_form", FORM.to_owned());
            let part = part.with("data_shape", quoted("text"));
            LogMessage::with_system("system", &["system"], vec![part])
        } else {
            content(&members(raw), Some("system"), report)
                .filter(|message| message.parts.iter().all(|part| part.kind.is_some()))?
        };
        if name != SYSTEM[0] {
            message.first().set("data_part_type", quoted(name));
        }
        Some((name, message))
    }

    fn request(&self, found: &[Member<'_>], report: &mut ImportReport) -> Parsed {
        let system = self.system(found, report);
        let tools: Vec<LogTool> = items(found, "tools")
            .into_iter()
            .flat_map(tools_of)
            .collect();
        for _ in &tools {
            report.part(Fate::Understood, "tool");
        }
        let mut taken = vec![Self::MESSAGES];
        taken.extend((!tools.is_empty()).then_some("tools"));
        Parsed::with_system(system, tools, taken)
    }

    fn response(&self, found: &[Member<'_>], report: &mut ImportReport) -> Option<ReadReply> {
        let of = |names: [&str; 2]| names.iter().find_map(|name| get(found, name));
        let usage = of(["usageMetadata", "usage_metadata"]);
        let candidates = items(found, "candidates");
        if candidates.is_empty() && usage.is_none() {
            return None;
        }
        let candidate = first_choice(&candidates, report);
        let reply = get(&candidate, "content").map(members);
        let reply = reply.and_then(|found| content(&found, Some("model"), report));
        let stop = ["finishReason", "finish_reason"];
        let said = [
            (
                "stop_reason",
                stop.iter().find_map(|name| get(&candidate, name)),
            ),
            ("response_id", of(["responseId", "response_id"])),
            ("model", of(["modelVersion", "model_version"])),
        ];
        // What is said of the reply besides: sources, ratings, why there is none.
        let rest: Vec<Member<'_>> = found.iter().chain(&candidate).cloned().collect();
        let call = LogCall {
            time: get(found, "createTime").and_then(time),
            meta: record_of(&rest, &READ, report),
            ..LogCall::used(usage, &said)
        };
        Some((reply.into_iter().collect(), call))
    }
}

/// The members of a response and a candidate that are read.
const READ: [&str; 12] = words![
    candidates usageMetadata usage_metadata modelVersion model_version responseId response_id createTime
    content finishReason finish_reason index
];

/// The members that have the system prompt.
const SYSTEM: [&str; 2] = ["systemInstruction", "system_instruction"];

/// Reads a content, of which `found` are the members; one of this role, if it is known. `None` if it has no list of
/// parts.
fn content(
    found: &[Member<'_>],
    known: Option<&str>,
    report: &mut ImportReport,
) -> Option<LogMessage> {
    let raw = get(found, "parts").filter(|raw| value_type(raw) == ValueType::Array)?;
    let given = text(found, "role");
    let own = known.or(given.as_deref()).unwrap_or("user");
    let (role, implied) = match own {
        "model" => ("assistant", "model"),
        "function" => ("user", "user"),
        role => (role, "user"),
    };
    let parts = elements(raw).into_iter();
    let parts = parts.map(|raw| part(raw, report)).collect();
    report.message(Fate::Understood, role_name(role));
    let mut message = LogMessage::with_system(role, &["system"], parts);
    let first = message.first();
    let given = given.as_deref();
    let is_implied = match known {
        Some("system") => given.is_none(),
        // A result is in a content of the user.
        _ => given == Some(implied) && (first.role.is_none() || implied == "user"),
    };
    if !is_implied {
        let role = get(found, "role").map_or("null".to_owned(), canonical);
        first.set("data_role", role);
    }
    first.keep_rest("data_item", found, &["role", "parts"]);
    for part in &mut message.parts {
        part.set("data_form", FORM.to_owned());
    }
    Some(message)
}

/// What a part can be: the member that it is, in both spellings, and the kind of its block.
const PARTS: [(&str, &str, &str); 5] = [
    ("text", "text", "text"),
    ("functionCall", "function_call", "call"),
    ("functionResponse", "function_response", "result"),
    ("inlineData", "inline_data", "document"),
    ("fileData", "file_data", "document"),
];

pub(super) fn part(raw: &str, report: &mut ImportReport) -> LogPart {
    let found = members(raw);
    let known = found.iter().find_map(|(member, inner)| {
        let is_it = |(name, other, _): &&(&str, &str, &str)| member == name || member == other;
        Some((&**member, *inner, PARTS.iter().find(is_it)?))
    });
    let read = known.and_then(|(member, inner, (name, _, kind))| {
        let mut part = match *kind {
            "text" => of_text(inner, &found)?,
            "call" => of_function("call", inner, "args")?,
            "result" => of_function("result", inner, "response")?,
            _ => of_data(inner)?,
        };
        if member != *name || (*name == "fileData") {
            part.set("data_part_type", quoted(member));
        }
        let thought = (part.kind == Some("thinking")).then_some("thought");
        let taken = [member, thought.unwrap_or(member)];
        part.keep_rest("data_part", &found, &taken);
        Some(part)
    });
    match read {
        Some(part) => {
            report.part(Fate::Understood, part.kind.unwrap_or_default());
            part
        }
        None => {
            let name = found.first().map_or("", |(name, _)| &**name);
            let kind = match name {
                "executableCode" | "executable_code" => Some("call"),
                "codeExecutionResult" | "code_execution_result" => Some("result"),
                _ => None,
            };
            unknown(name, kind, raw, report)
        }
    }
}

fn of_text(inner: &str, found: &[Member<'_>]) -> Option<LogPart> {
    let is_thought = get(found, "thought") == Some("true");
    let kind = if is_thought { "thinking" } else { "text" };
    (value_type(inner) == ValueType::String).then(|| LogPart::new(kind, canonical(inner)))
}

/// A call or the response to one, whose member `content` is kept as JSON text.
fn of_function(kind: &'static str, inner: &str, content: &str) -> Option<LogPart> {
    let found = members(inner);
    let name = get_string(&found, "name")?;
    let id = get_string(&found, "id");
    let mut part = LogPart {
        kind: Some(kind),
        role: (kind == "result").then_some("tool"),
        content: get(&found, content).map(json_text),
        ..LogPart::default()
    };
    part.set_some("data_call_id", id);
    part.set_some("data_call_name", Some(name));
    let taken = ["name", content, id.map_or("name", |_| "id")];
    part.keep_rest("data_call", &found, &taken);
    Some(part)
}

/// Bytes or the address of a file, with its type.
fn of_data(inner: &str) -> Option<LogPart> {
    let found = members(inner);
    let media = ["mimeType", "mime_type"];
    let media = media.iter().find_map(|name| text(&found, name));
    let is_image = media.is_some_and(|name| name.starts_with("image/"));
    let kind = if is_image { "image" } else { "document" };
    (!found.is_empty()).then(|| LogPart::new(kind, canonical(inner)))
}

/// The tools of a tool object: a block for each function, or one for all that it is.
fn tools_of(raw: &str) -> Vec<LogTool> {
    let found = members(raw);
    let form = || ("data_form".into(), FORM.to_owned());
    let functions = match &found[..] {
        [(name, list)] if matches!(&**name, "functionDeclarations" | "function_declarations") => {
            elements(list)
        }
        _ => Vec::new(),
    };
    let names: Option<Vec<_>> = functions
        .iter()
        .map(|raw| text(&members(raw), "name").map(|name| name.into_owned()))
        .collect();
    let (Some(names), Some((wrapper, _))) =
        (names.filter(|names| !names.is_empty()), found.first())
    else {
        let name = found.first().map(|(name, _)| name.to_string());
        return vec![LogTool {
            name: name.unwrap_or_default(),
            definition: raw.to_owned(),
            data: vec![form()],
        }];
    };
    let tool = |(at, (name, raw)): (usize, (String, &str))| {
        let begins = (at == 0).then(|| ("data_tool".into(), quoted(wrapper)));
        LogTool {
            name,
            definition: raw.to_owned(),
            data: [form()].into_iter().chain(begins).collect(),
        }
    };
    names
        .into_iter()
        .zip(functions)
        .enumerate()
        .map(tool)
        .collect()
}
