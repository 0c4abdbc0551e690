//! Streamed replies: the events of a response put together, as the API would have sent it in one piece.
//!
//! The text is that of server-sent events. A stream may be cut off anywhere: what came until then is the reply.
//! Members that an API repeats or adds are kept where they have a place. This file must not know trees.

mod bedrock;
mod gemini;
mod grown;

pub(super) use bedrock::frames;
pub use grown::StreamedReply;
use grown::{Grown, Latest, event, number, some};

use super::json::{braced, compact, list, object, push_member, quoted, value};
use crate::json::{Member, elements, get, members, string};
use crate::render::Provider;
use std::borrow::Cow;
use std::collections::BTreeMap;

impl StreamedReply {
    /// Puts the events of a response together, as far as they go. Linear in the text.
    #[must_use]
    pub fn from_events(provider: Provider, events: &str) -> Self {
        let events = data_of(events);
        match provider {
            Provider::Anthropic => blocks(&events),
            Provider::OpenAiResponses => items(&events),
            Provider::Gemini => gemini::read(&events),
            Provider::Bedrock => bedrock::read(&events),
            Provider::OpenAi | Provider::Thread => chunks(&events),
        }
    }
}

/// The elements of a list, each an event, as server-sent events.
pub(super) fn of_list(raw: &str) -> String {
    let events = elements(raw).into_iter();
    events
        .map(|raw| format!("data: {}\n\n", compact(raw)))
        .collect()
}

/// The first event of a stream, as its data.
pub(super) fn first_event(text: &str) -> Option<String> {
    data_of(text).into_iter().next()
}

fn data_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut data: Option<String> = None;
    for line in text.split('\n').chain([""]) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            found.extend(data.take());
        } else if let Some(rest) = line.strip_prefix("data:") {
            let rest = rest.strip_prefix(' ').unwrap_or(rest);
            match &mut data {
                Some(data) => data.extend(["\n", rest]),
                None => data = Some(rest.to_owned()),
            }
        }
    }
    found
}

fn text<'a>(found: &[Member<'a>], name: &str) -> Cow<'a, str> {
    get(found, name).and_then(string).unwrap_or_default()
}

/// Chat Completions: pieces of choices.
fn chunks(events: &[String]) -> StreamedReply {
    let mut out = StreamedReply::default();
    let mut around = Latest::default();
    // Message and reason to stop, by the number of the choice.
    let mut choices: BTreeMap<u64, (Grown, Option<String>)> = BTreeMap::new();
    for data in events {
        out.whole |= data.trim() == "[DONE]";
        let found = event(data);
        around.note(&found, &["choices", "error"]);
        out.error = some(&found, "error").map(str::to_owned).or(out.error);
        for raw in elements(get(&found, "choices").unwrap_or_default()) {
            let found = members(raw);
            let (message, stop) = choices.entry(number(&found, "index")).or_default();
            if let Some(delta) = get(&found, "delta").filter(|raw| raw.starts_with('{')) {
                message.add(delta);
            }
            let reason = some(&found, "finish_reason").map(str::to_owned);
            *stop = reason.or(stop.take());
        }
    }
    if choices.is_empty() {
        return out;
    }
    out.whole |= choices.values().all(|(_, stop)| stop.is_some());
    let choice = |(index, (mut message, stop)): (u64, (Grown, Option<String>))| {
        if let Grown::Object(known) = &mut message {
            for (name, implied) in [("role", "\"assistant\""), ("content", "null")] {
                let member = known.entry(name.to_owned());
                member.or_insert_with(|| Grown::parse(implied));
            }
        }
        let stop = stop.unwrap_or_else(|| "null".to_owned());
        object([
            ("index", index.to_string()),
            ("message", message.json(false)),
            ("finish_reason", stop),
        ])
    };
    let choices = list(choices.into_iter().map(choice));
    around.0.retain(|_, value| *value != "null");
    let kind = quoted("chat.completion");
    out.response = Some(around.with([("object", kind), ("choices", choices)]));
    out
}

/// Anthropic Messages: blocks of content.
fn blocks(events: &[String]) -> StreamedReply {
    let mut out = StreamedReply::default();
    let (mut message, mut usage) = (Latest::default(), Latest::default());
    // Of each block what is known of it, and the arguments of a call as they came.
    let mut blocks: BTreeMap<u64, (Grown, String)> = BTreeMap::new();
    for data in events {
        let found = event(data);
        let inner = |name| get(&found, name).map(members).unwrap_or_default();
        let at = number(&found, "index");
        match &*text(&found, "type") {
            "message_start" => {
                let start = inner("message");
                message.note(&start, &["content", "usage"]);
                usage.note(&members(get(&start, "usage").unwrap_or_default()), &[]);
            }
            "content_block_start" => {
                let block = Grown::parse(get(&found, "content_block").unwrap_or("{}"));
                blocks.insert(at, (block, String::new()));
            }
            "content_block_delta" => {
                if let Some((block, input)) = blocks.get_mut(&at) {
                    add_delta(&inner("delta"), block, input);
                }
            }
            "message_delta" => {
                message.note(&inner("delta"), &[]);
                usage.note(&inner("usage"), &[]);
            }
            "message_stop" => out.whole = true,
            "error" => out.error = get(&found, "error").map(str::to_owned),
            _ => {}
        }
    }
    if message.0.is_empty() && blocks.is_empty() {
        return out;
    }
    let block = |(mut block, input): (Grown, String)| {
        if let (Grown::Object(members), false) = (&mut block, input.is_empty()) {
            // Arguments that were cut off stay a text.
            let input = value(&input).map_or_else(|| quoted(&input), str::to_owned);
            members.insert("input".to_owned(), Grown::Other(input));
        }
        block.json(false)
    };
    let content = list(blocks.into_values().map(block));
    out.response = Some(message.with([
        ("type", quoted("message")),
        ("content", content),
        ("usage", usage.with([])),
    ]));
    out
}

fn add_delta(delta: &[Member<'_>], block: &mut Grown, input: &mut String) {
    let mut more = String::new();
    for (name, value) in delta {
        match &**name {
            "type" => {}
            "partial_json" => input.push_str(&string(value).unwrap_or_default()),
            "citation" => push_member("citations", &list([value]), &mut more),
            name => push_member(name, value, &mut more),
        }
    }
    block.add(&braced(&more));
}

/// OpenAI Responses: items of the output.
fn items(events: &[String]) -> StreamedReply {
    let mut out = StreamedReply::default();
    // The response as an event had it last.
    let mut response: Option<String> = None;
    // Each item as it began, and its texts by the index of the part; without them once it is whole.
    let mut items: BTreeMap<u64, (String, Option<BTreeMap<u64, String>>)> = BTreeMap::new();
    for data in events {
        let found = event(data);
        let at = number(&found, "output_index");
        let item = || get(&found, "item").unwrap_or("{}").to_owned();
        let kind = text(&found, "type");
        match &*kind {
            "response.output_item.added" => {
                items.insert(at, (item(), Some(BTreeMap::new())));
            }
            "response.output_item.done" => {
                items.insert(at, (item(), None));
            }
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.reasoning_summary_text.delta" => {
                if let Some((_, Some(texts))) = items.get_mut(&at) {
                    let part = number(&found, "content_index");
                    let part = part.max(number(&found, "summary_index"));
                    texts
                        .entry(part)
                        .or_default()
                        .push_str(&text(&found, "delta"));
                }
            }
            "error" => out.error = Some(data.clone()),
            kind if kind.starts_with("response.") => {
                let Some(whole) = get(&found, "response") else {
                    continue;
                };
                response = Some(whole.to_owned());
                out.whole |= matches!(kind, "response.completed" | "response.incomplete");
                if kind == "response.failed" {
                    let error = get(&members(whole), "error").unwrap_or("null");
                    out.error = Some(error.to_owned());
                }
            }
            _ => {}
        }
    }
    let none_done = items.values().all(|(_, texts)| texts.is_some());
    if out.whole || (response.is_none() && none_done) {
        out.response = response;
        return out;
    }
    let item = |(item, texts): &(String, Option<BTreeMap<u64, String>>)| match texts {
        Some(texts) => unfinished(item, texts),
        None => item.clone(),
    };
    let items = list(items.values().map(item));
    let own = members(response.as_deref().unwrap_or_default()).into_iter();
    let own = own.filter(|(name, _)| name != "output");
    out.response = Some(object(own.chain([("output".into(), &*items)])));
    out
}

fn unfinished(item: &str, texts: &BTreeMap<u64, String>) -> String {
    let found = members(item);
    let kind = text(&found, "type").into_owned();
    let (member, part) = match &*kind {
        "message" => ("content", Some("output_text")),
        "reasoning" => ("summary", Some("summary_text")),
        "custom_tool_call" => ("input", None),
        _ => ("arguments", None),
    };
    let of_part = |text: &String| match part {
        Some(part) => object([("type", &quoted(part)), ("text", &quoted(text))]),
        None => text.clone(),
    };
    let texts_of = texts.values().map(of_part);
    let whole = match part {
        Some(_) => Some(list(texts_of)),
        None if texts.is_empty() => None,
        None => Some(quoted(&texts_of.collect::<String>())),
    };
    let own = found.into_iter().filter(|(name, _)| name != member);
    let whole = whole.as_deref().map(|whole| (member.into(), whole));
    object(own.chain(whole))
}
