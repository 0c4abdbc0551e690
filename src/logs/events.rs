//! Streamed replies: the events of a response put together, as the API would have sent it in one piece.
//!
//! The text is that of server-sent events. A stream may be cut off anywhere: what came until then is the reply.
//! Members that an API repeats or adds are kept where they have a place. This file must not know trees.

use super::json::{list, object, quoted, value};
use crate::json::{Member, ValueType, elements, get, members, string, value_type};
use crate::render::Provider;
use std::collections::BTreeMap;

/// A reply that came as server-sent events, put together.
///
/// ```
/// use pactql::logs::record::StreamedReply;
/// use pactql::Provider;
/// let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"On its\"}}]}\n\n\
///               data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" way.\"}}]}\n\n";
/// let reply = StreamedReply::of(Provider::OpenAi, events);
/// assert!(reply.response.is_some_and(|json| json.contains("On its way.")));
/// assert!(!reply.whole); // there is more to come, or the stream was cut off
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamedReply {
    /// The response as the API would have sent it in one piece, JSON; `None` if nothing came.
    pub response: Option<String>,
    /// Whether the API said that it is whole.
    pub whole: bool,
    /// What the API said that went wrong, as JSON.
    pub error: Option<String>,
}

impl StreamedReply {
    /// Puts the events of a response together, as far as they go. Linear in the text.
    #[must_use]
    pub fn of(provider: Provider, events: &str) -> Self {
        let events = data_of(events);
        match provider {
            Provider::Anthropic => Blocks::default().read(&events),
            Provider::OpenAiResponses => Items::default().read(&events),
            Provider::OpenAi | Provider::Thread => Chunks::default().read(&events),
        }
    }
}

fn data_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut data = String::new();
    let mut has_data = false;
    for line in text.split('\n').chain([""]) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            if std::mem::take(&mut has_data) {
                found.push(std::mem::take(&mut data));
            }
        } else if let Some(rest) = line.strip_prefix("data:") {
            if std::mem::replace(&mut has_data, true) {
                data.push('\n');
            }
            data.push_str(rest.strip_prefix(' ').unwrap_or(rest));
        }
    }
    found
}

/// The members of an event; empty for what is not a JSON object, such as the last piece of a stream that was cut off.
fn event(text: &str) -> Vec<Member<'_>> {
    value(text).map(members).unwrap_or_default()
}

#[derive(Clone, Debug)]
enum Grown {
    /// A text, decoded.
    Text(String),
    Object(BTreeMap<String, Grown>),
    /// Elements by their `index`, or in the order they came.
    List(BTreeMap<u64, Grown>),
    Other(String),
}

/// Members that say what a piece belongs to: a later one replaces the one before.
const NAMES: [&str; 6] = ["id", "type", "role", "name", "object", "index"];

impl Grown {
    fn of(raw: &str) -> Self {
        match value_type(raw) {
            ValueType::String => Self::Text(string(raw).unwrap_or_default().into_owned()),
            ValueType::Object => {
                let mut object = Self::Object(BTreeMap::new());
                object.add(raw);
                object
            }
            ValueType::Array => {
                let mut list = Self::List(BTreeMap::new());
                list.add(raw);
                list
            }
            _ => Self::Other(raw.to_owned()),
        }
    }

    fn add(&mut self, raw: &str) {
        match (&mut *self, value_type(raw)) {
            (_, ValueType::Null) => {}
            (Self::Text(text), ValueType::String) => {
                text.push_str(&string(raw).unwrap_or_default());
            }
            (Self::Object(known), ValueType::Object) => {
                for (name, value) in members(raw) {
                    match known.get_mut(&*name) {
                        Some(before) if !NAMES.contains(&&*name) => before.add(value),
                        Some(_) if value == "null" => {}
                        _ => {
                            known.insert(name.into_owned(), Self::of(value));
                        }
                    }
                }
            }
            (Self::List(known), ValueType::Array) => {
                for value in elements(raw) {
                    let index = get(&members(value), "index").and_then(|raw| raw.parse().ok());
                    let next = known.last_key_value().map_or(0, |(last, _)| last + 1);
                    let at = index.unwrap_or(next);
                    match known.get_mut(&at) {
                        Some(before) => before.add(value),
                        None => {
                            known.insert(at, Self::of(value));
                        }
                    }
                }
            }
            (before, _) => *before = Self::of(raw),
        }
    }

    /// The value as JSON. Elements of lists leave out the `index` that the pieces had.
    fn json(&self, element: bool) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Other(raw) => raw.clone(),
            Self::List(elements) => list(elements.values().map(|value| value.json(true))),
            Self::Object(members) => {
                let members = members.iter();
                let members = members.filter(|(name, _)| !(element && *name == "index"));
                object(members.map(|(name, value)| (name, value.json(false))))
            }
        }
    }
}

fn text<'a>(found: &[Member<'a>], name: &str) -> std::borrow::Cow<'a, str> {
    get(found, name).and_then(string).unwrap_or_default()
}

/// Chat Completions: pieces of choices.
#[derive(Default)]
struct Chunks {
    /// Members of the response besides choices and usage: those of the last piece that has them.
    around: BTreeMap<String, String>,
    /// Message and reason to stop, by the number of the choice.
    choices: BTreeMap<u64, (Option<Grown>, Option<String>)>,
    out: StreamedReply,
}

impl Chunks {
    fn read(mut self, events: &[String]) -> StreamedReply {
        for data in events {
            if data.trim() == "[DONE]" {
                self.out.whole = true;
                continue;
            }
            let found = event(data);
            for (name, value) in &found {
                match &**name {
                    "choices" => elements(value).into_iter().for_each(|raw| self.choice(raw)),
                    "error" if *value != "null" => self.out.error = Some((*value).to_owned()),
                    "object" => {}
                    _ if *value != "null" => {
                        self.around.insert(name.to_string(), (*value).to_owned());
                    }
                    _ => {}
                }
            }
        }
        let ended = |(_, stop): &(_, Option<String>)| stop.is_some();
        self.out.whole |= !self.choices.is_empty() && self.choices.values().all(ended);
        if !self.choices.is_empty() {
            let choices = list(self.choices.iter().map(choice));
            let around = self.around.iter();
            let around = around.map(|(name, value)| (&**name, &**value));
            let first = [("object", "\"chat.completion\"")].into_iter();
            let response = first.chain(around).chain([("choices", &*choices)]);
            self.out.response = Some(object(response));
        }
        self.out
    }

    fn choice(&mut self, raw: &str) {
        let found = members(raw);
        let index = get(&found, "index").and_then(|raw| raw.parse().ok());
        let (message, stop) = self.choices.entry(index.unwrap_or(0)).or_default();
        if let Some(delta) = get(&found, "delta").filter(|raw| value_type(raw) == ValueType::Object)
        {
            match message {
                Some(message) => message.add(delta),
                None => *message = Some(Grown::of(delta)),
            }
        }
        let reason = get(&found, "finish_reason").filter(|reason| *reason != "null");
        if let Some(reason) = reason {
            *stop = Some(reason.to_owned());
        }
    }
}

fn choice((index, (message, stop)): (&u64, &(Option<Grown>, Option<String>))) -> String {
    let mut message = message.clone().unwrap_or(Grown::Object(BTreeMap::new()));
    if let Grown::Object(members) = &mut message {
        let role = || Grown::Text("assistant".to_owned());
        members.entry("role".to_owned()).or_insert_with(role);
        let none = || Grown::Other("null".to_owned());
        members.entry("content".to_owned()).or_insert_with(none);
    }
    object([
        ("index", &*index.to_string()),
        ("message", &message.json(false)),
        ("finish_reason", stop.as_deref().unwrap_or("null")),
    ])
}

/// Anthropic Messages: blocks of content.
#[derive(Default)]
struct Blocks {
    /// Members of the message besides content and usage.
    message: BTreeMap<String, String>,
    usage: BTreeMap<String, String>,
    blocks: BTreeMap<u64, Block>,
    out: StreamedReply,
}

/// A block of content: its members, and the arguments of a call as they came.
struct Block {
    members: Grown,
    input: String,
}

impl Blocks {
    fn read(mut self, events: &[String]) -> StreamedReply {
        for data in events {
            let found = event(data);
            let at = get(&found, "index").and_then(|raw| raw.parse().ok());
            match &*text(&found, "type") {
                "message_start" => self.start(get(&found, "message").unwrap_or_default()),
                "content_block_start" => {
                    let block = Block {
                        members: Grown::of(get(&found, "content_block").unwrap_or("{}")),
                        input: String::new(),
                    };
                    self.blocks.insert(at.unwrap_or(0), block);
                }
                "content_block_delta" => {
                    if let Some(block) = self.blocks.get_mut(&at.unwrap_or(0)) {
                        block.add(&members(get(&found, "delta").unwrap_or_default()));
                    }
                }
                "message_delta" => {
                    for (name, value) in members(get(&found, "delta").unwrap_or_default()) {
                        self.message.insert(name.into_owned(), value.to_owned());
                    }
                    self.count(get(&found, "usage").unwrap_or_default());
                }
                "message_stop" => self.out.whole = true,
                "error" => self.out.error = get(&found, "error").map(str::to_owned),
                _ => {}
            }
        }
        if self.message.is_empty() && self.blocks.is_empty() {
            return self.out;
        }
        let message = &mut self.message;
        message.insert("type".to_owned(), "\"message\"".to_owned());
        let blocks = list(self.blocks.values().map(Block::json));
        let usage = object(&self.usage);
        let own = message.iter().map(|(name, value)| (&**name, &**value));
        let own = own.chain([("content", &*blocks), ("usage", &usage)]);
        self.out.response = Some(object(own));
        self.out
    }

    fn start(&mut self, message: &str) {
        for (name, value) in members(message) {
            match &*name {
                "content" => {}
                "usage" => self.count(value),
                _ => {
                    self.message.insert(name.into_owned(), value.to_owned());
                }
            }
        }
    }

    /// Notes counts; later ones replace those before.
    fn count(&mut self, usage: &str) {
        for (name, value) in members(usage) {
            if value != "null" || !self.usage.contains_key(&*name) {
                self.usage.insert(name.into_owned(), value.to_owned());
            }
        }
    }
}

impl Block {
    fn add(&mut self, delta: &[Member<'_>]) {
        let Grown::Object(known) = &mut self.members else {
            return;
        };
        for (name, value) in delta {
            match &**name {
                "type" => {}
                "partial_json" => self.input.push_str(&string(value).unwrap_or_default()),
                "citation" => {
                    let list = || Grown::List(BTreeMap::new());
                    let citations = known.entry("citations".to_owned()).or_insert_with(list);
                    if !matches!(citations, Grown::List(_)) {
                        *citations = list();
                    }
                    if let Grown::List(citations) = citations {
                        let next = citations.len() as u64;
                        citations.insert(next, Grown::Other((*value).to_owned()));
                    }
                }
                _ => match known.get_mut(&**name) {
                    Some(before) => before.add(value),
                    None => {
                        known.insert(name.to_string(), Grown::of(value));
                    }
                },
            }
        }
    }

    fn json(&self) -> String {
        let mut block = self.members.clone();
        if let Grown::Object(members) = &mut block
            && !self.input.is_empty()
        {
            // Arguments that were cut off stay a text.
            let input = value(&self.input).map_or_else(|| quoted(&self.input), str::to_owned);
            members.insert("input".to_owned(), Grown::Other(input));
        }
        block.json(false)
    }
}

/// OpenAI Responses: items of the output.
#[derive(Default)]
struct Items {
    /// The response as an event had it last.
    response: Option<String>,
    items: BTreeMap<u64, String>,
    /// Texts of items that are not: the item as it began, and its texts by the index of the part.
    open: BTreeMap<u64, (String, BTreeMap<u64, String>)>,
    out: StreamedReply,
}

impl Items {
    fn read(mut self, events: &[String]) -> StreamedReply {
        for data in events {
            let found = event(data);
            let number = |name: &str| {
                let number = get(&found, name).and_then(|raw| raw.parse().ok());
                number.unwrap_or(0)
            };
            let at = number("output_index");
            match &*text(&found, "type") {
                "response.output_item.added" => {
                    let item = get(&found, "item").unwrap_or("{}").to_owned();
                    self.open.insert(at, (item, BTreeMap::new()));
                }
                "response.output_item.done" => {
                    self.open.remove(&at);
                    let item = get(&found, "item").unwrap_or("{}").to_owned();
                    self.items.insert(at, item);
                }
                "response.output_text.delta"
                | "response.refusal.delta"
                | "response.function_call_arguments.delta"
                | "response.custom_tool_call_input.delta"
                | "response.reasoning_summary_text.delta" => {
                    if let Some((_, texts)) = self.open.get_mut(&at) {
                        let part = number("content_index").max(number("summary_index"));
                        let delta = text(&found, "delta");
                        texts.entry(part).or_default().push_str(&delta);
                    }
                }
                "error" => self.out.error = Some(data.clone()),
                kind => self.response(kind, get(&found, "response")),
            }
        }
        self.finish()
    }

    fn response(&mut self, kind: &str, response: Option<&str>) {
        let Some(response) = response.filter(|_| kind.starts_with("response.")) else {
            return;
        };
        self.response = Some(response.to_owned());
        self.out.whole |= matches!(kind, "response.completed" | "response.incomplete");
        if kind == "response.failed" {
            let error = get(&members(response), "error").unwrap_or("null");
            self.out.error = Some(error.to_owned());
        }
    }

    fn finish(mut self) -> StreamedReply {
        if self.out.whole || (self.response.is_none() && self.items.is_empty()) {
            self.out.response = self.response;
            return self.out;
        }
        for (at, (item, texts)) in std::mem::take(&mut self.open) {
            let item = unfinished(&item, &texts);
            self.items.insert(at, item);
        }
        let own = members(self.response.as_deref().unwrap_or_default()).into_iter();
        let own = own.filter(|(name, _)| name != "output");
        let items = list(self.items.values());
        let output = [("output".into(), &*items)];
        self.out.response = Some(object(own.chain(output)));
        self.out
    }
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
