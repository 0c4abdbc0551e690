//! The part of a request that a prompt cache looks at before the messages, as pieces of JSON.
//!
//! Providers put the tools first, then the system prompt, then the messages. Only parameters that
//! change what the model reads count; a temperature does not. A model that stands only in the address of a
//! request comes first as one in the request does.

use crate::inspect::groups::named_in;
use crate::json::{ValueType, elements, get, members, quoted, string, value_type};
use crate::render::{Head, Provider, push_member};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "in", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Place {
    /// A parameter.
    Parameter {
        /// Its name.
        name: String,
    },
    /// A tool definition.
    Tool {
        /// Its name.
        name: String,
        /// How many tools come before it.
        index: usize,
    },
    /// The system prompt, where the API has a member for it.
    System,
    /// A message or an item.
    Message {
        /// How many messages come before it.
        index: usize,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { name } => write!(f, "parameter `{name}`"),
            Self::Tool { name, .. } => write!(f, "tool `{name}`"),
            Self::System => f.write_str("the system prompt"),
            Self::Message { index } => write!(f, "message {}", index + 1),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestPiece {
    pub(super) place: Place,
    pub(super) json: Box<str>,
}

/// Parameters that change what the model reads before its messages. `model` is not among them: it
/// comes first, because each model has its own cache.
const READ_BY_MODEL: &str = "response_format text output_config output_format tool_choice \
    parallel_tool_calls functions function_call thinking reasoning reasoning_effort toolConfig \
    tool_config cachedContent cached_content additionalModelRequestFields";

/// The text of a piece whose tokens are counted: a tool definition's JSON, the system prompt's text.
pub(super) fn counted(piece: &RequestPiece) -> Cow<'_, str> {
    let json = piece.json.trim_end_matches(',');
    match piece.place {
        Place::Tool { .. } => Cow::Borrowed(json),
        Place::System => {
            let value = json.split_once(':').map_or(json, |(_, value)| value);
            string(value).unwrap_or_else(|| {
                let list = format!("{value}]");
                let texts = elements(&list).into_iter().filter_map(|part| {
                    let text = string(get(&members(part), "text")?)?;
                    Some(text.into_owned())
                });
                Cow::Owned(texts.collect())
            })
        }
        Place::Parameter { .. } | Place::Message { .. } => Cow::Borrowed(""),
    }
}

/// What of Gemini's `generationConfig` the model reads.
const READ_OF_CONFIG: &str = "responseMimeType response_mime_type responseSchema response_schema \
    responseJsonSchema response_json_schema thinkingConfig thinking_config";

/// The pieces of a head in the order in which the provider caches them. `model` is that of the call, if the request
/// does not name it.
pub(super) fn front(head: &Head, model: Option<&str>) -> Vec<RequestPiece> {
    let mut pieces = Vec::new();
    let parameters = format!("{{{}}}", head.parameters);
    let found = members(&parameters);
    let piece = |name: &str, value: &str| RequestPiece {
        place: Place::Parameter {
            name: name.to_owned(),
        },
        json: format!("\"{name}\":{value},").into(),
    };
    let parameter = |name: &str| Some(piece(name, get(&found, name)?));
    let of_address = || Some(piece("model", &quoted(model?)));
    let named = parameter("model").or_else(|| parameter("modelId"));
    pieces.extend(named.or_else(of_address));
    // Tools that are parameters, because no block of the tree defines them.
    pieces.extend(parameter("tools"));
    for (index, tool) in head.tools.iter().enumerate() {
        let json = part(tool) + ",";
        pieces.push(RequestPiece {
            place: Place::Tool {
                name: tool_name(tool),
                index,
            },
            json: json.into(),
        });
    }
    let configs = ["generationConfig", "generation_config"];
    let config = configs.iter().filter_map(|name| {
        let mut read = String::new();
        for (member, value) in members(get(&found, name)?) {
            if READ_OF_CONFIG.split(' ').any(|known| known == member) {
                push_member(&member, value, &mut read);
            }
        }
        let read = read.strip_prefix(',')?;
        Some(piece(name, &format!("{{{read}}}")))
    });
    let read = READ_BY_MODEL.split(' ').filter_map(parameter).chain(config);
    let is_anthropic = matches!(head.provider, Provider::Anthropic | Provider::Bedrock);
    let system = head.system.as_ref().map(|(name, value)| RequestPiece {
        place: Place::System,
        json: if is_anthropic {
            format!("\"{name}\":[{}", parts(value)).into()
        } else {
            format!("\"{name}\":{value},").into()
        },
    });
    if is_anthropic {
        // Anthropic keeps the cache of tools and system prompt when such a parameter changes.
        pieces.extend(system.into_iter().chain(read));
    } else {
        pieces.extend(read.chain(system));
    }
    pieces
}

pub(super) fn tool_name(definition: &str) -> String {
    let kind = || get(&members(definition), "type").and_then(string);
    named_in(definition)
        .or_else(|| kind().map(Cow::into_owned))
        .unwrap_or_default()
}

/// A message as the cache compares it, with a trailing comma.
///
/// Anthropic's API reads a text as a list of one text, and caches part by part. So the content is
/// written as a list without `cache_control` and without the closing brackets: the longer message
/// then starts with the shorter one when a part is added.
pub(super) fn message(json: &str, provider: Provider) -> String {
    match (provider, &members(json)[..]) {
        (Provider::Anthropic | Provider::Bedrock, [(first, role), (second, content)])
            if first == "role" && second == "content" =>
        {
            format!("{{\"role\":{role},\"content\":[{}", parts(content))
        }
        _ => format!("{json},"),
    }
}

/// The parts of the `content` of a message or a result, or of the system prompt, each with a comma.
fn parts(content: &str) -> String {
    if value_type(content) == ValueType::String {
        return format!("{{\"type\":\"text\",\"text\":{content}}},");
    }
    // Bedrock's marks are parts of their own.
    let is_mark = |json: &&str| matches!(&members(json)[..], [(name, _)] if name == "cachePoint");
    let parts = elements(content).into_iter().filter(|json| !is_mark(json));
    parts.map(|json| part(json) + ",").collect()
}

/// A part or a tool definition without `cache_control`; a result's content is written like a message's.
fn part(json: &str) -> String {
    if value_type(json) != ValueType::Object {
        return json.to_owned();
    }
    let found = members(json);
    let is_result = get(&found, "type") == Some("\"tool_result\"");
    let mut out = String::with_capacity(json.len());
    for (name, value) in &found {
        match &**name {
            "cache_control" => {}
            "content" if is_result => {
                let content = format!("[{}]", parts(value).trim_end_matches(','));
                push_member(name, &content, &mut out);
            }
            _ => push_member(name, value, &mut out),
        }
    }
    format!("{{{}}}", out.strip_prefix(',').unwrap_or(&out))
}
