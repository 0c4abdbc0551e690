//! What the pieces of a reply are added to.

use crate::json::{Member, ValueType, elements, get, members, string, value_type};
use crate::logs::json::{list, object, quoted, value};
use std::collections::BTreeMap;

/// A reply that came as server-sent events, put together.
///
/// ```
/// use pactql::logs::record::StreamedReply;
/// use pactql::Provider;
/// let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"On its\"}}]}\n\n\
///               data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" way.\"}}]}\n\n";
/// let reply = StreamedReply::from_events(Provider::OpenAi, events);
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

/// The members of an event; empty for what is not a JSON object, such as the last piece of a stream that was cut off.
pub(super) fn event(text: &str) -> Vec<Member<'_>> {
    value(text).map(members).unwrap_or_default()
}

#[derive(Clone, Debug)]
pub(super) enum Grown {
    Text(String),
    Object(BTreeMap<String, Grown>),
    /// Elements by their `index`, or in the order they came.
    List(BTreeMap<u64, Grown>),
    /// Anything else, as JSON.
    Other(String),
}

/// Members that say what a piece belongs to: a later one replaces the one before.
const NAMES: [&str; 6] = ["id", "type", "role", "name", "object", "index"];

impl Default for Grown {
    fn default() -> Self {
        Self::Object(BTreeMap::new())
    }
}

impl Grown {
    pub(super) fn parse(raw: &str) -> Self {
        let mut grown = match value_type(raw) {
            ValueType::String => Self::Text(String::new()),
            ValueType::Object => Self::default(),
            ValueType::Array => Self::List(BTreeMap::new()),
            _ => return Self::Other(raw.to_owned()),
        };
        grown.add(raw);
        grown
    }

    /// Adds a piece: texts are put together, members and elements one by one.
    pub(super) fn add(&mut self, raw: &str) {
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
                            known.insert(name.into_owned(), Self::parse(value));
                        }
                    }
                }
            }
            (Self::List(known), ValueType::Array) => {
                for value in elements(raw) {
                    let index = get(&members(value), "index").and_then(|raw| raw.parse().ok());
                    let next = known.last_key_value().map_or(0, |(last, _)| last + 1);
                    let at = known.entry(index.unwrap_or(next));
                    at.and_modify(|before| before.add(value))
                        .or_insert_with(|| Self::parse(value));
                }
            }
            (before, _) => *before = Self::parse(raw),
        }
    }

    /// The value as JSON. Elements of lists leave out the `index` that the pieces had.
    pub(super) fn json(&self, element: bool) -> String {
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

/// Members as JSON. A later value replaces the one before, unless it is null.
#[derive(Default)]
pub(super) struct Latest(pub(super) BTreeMap<String, String>);

impl Latest {
    pub(super) fn note(&mut self, found: &[Member<'_>], besides: &[&str]) {
        for (name, value) in found {
            let is_news = *value != "null" || !self.0.contains_key(&**name);
            if is_news && !besides.contains(&&**name) {
                self.0.insert(name.to_string(), (*value).to_owned());
            }
        }
    }

    pub(super) fn with<const N: usize>(mut self, more: [(&str, String); N]) -> String {
        let more = more.map(|(name, value)| (name.to_owned(), value));
        self.0.extend(more);
        object(&self.0)
    }
}

pub(super) fn some<'a>(found: &[Member<'a>], name: &str) -> Option<&'a str> {
    get(found, name).filter(|raw| *raw != "null")
}

pub(super) fn number(found: &[Member<'_>], name: &str) -> u64 {
    let number = get(found, name).and_then(|raw| raw.parse().ok());
    number.unwrap_or(0)
}
