//! What came back for a request, put into one piece: recorders write it as JSON, as a text of JSON, as the events of a
//! stream, with or without what HTTP had around it. This file must not know the members of any one API.

use super::prelude::*;
use crate::logs::events::{StreamedReply, first_event, of_list};
use crate::logs::json::value;
use crate::render::Provider;
use std::borrow::Cow;

/// What came back for a request; neither of both if nothing did.
#[derive(Debug, Default)]
pub(super) struct Answer<'a> {
    /// The response as the API gives it in one piece, or what came in its place, as JSON.
    pub(super) response: Option<Cow<'a, str>>,
    /// What went wrong, as JSON: if there is a response, too, while it came.
    pub(super) error: Option<Cow<'a, str>>,
}

impl<'a> Answer<'a> {
    /// Reads the member of a record that has the response. Below `body` is the response itself, and then a status of
    /// HTTP may be beside it.
    pub(super) fn of(provider: Provider, json: Accepted<'_>, raw: &'a str) -> Self {
        if value_type(raw) != ValueType::Object {
            return Self::of_json(provider, raw);
        }
        let found = json.members(raw);
        let body = body(&found);
        let status = ["status", "status_code"].into_iter();
        let mut status = status.filter_map(|name| get(&found, name)?.parse::<u16>().ok());
        if let Some(status) = status.find(|status| *status >= 400) {
            let said = body.map_or_else(
                || object_without(&found, &AROUND).unwrap_or_default(),
                |body| string(body).map_or_else(|| body.to_owned(), Cow::into_owned),
            );
            return Self::failed(&status.to_string(), &said);
        }
        Self::of_json(provider, body.unwrap_or(raw))
    }

    /// A body as a text: JSON, or server-sent events. One that is neither stands for the response as it is.
    pub(super) fn of_text(provider: Provider, text: &str) -> Answer<'static> {
        if let Some(json) = value(text) {
            return Answer::of_json(provider, json).owned();
        }
        let streamed = Answer::of_events(provider, text);
        if streamed.response.is_some() || streamed.error.is_some() || text.trim().is_empty() {
            return streamed;
        }
        Answer {
            response: Some(quoted(text).into()),
            error: None,
        }
    }

    /// The events of a stream put together, as far as they go.
    pub(super) fn of_events(provider: Provider, events: &str) -> Answer<'static> {
        let reply = StreamedReply::from_events(provider, events);
        Answer {
            response: reply.response.map(Cow::Owned),
            error: reply.error.filter(|said| says(said)).map(Cow::Owned),
        }
    }

    fn of_json(provider: Provider, raw: &'a str) -> Self {
        match value_type(raw) {
            ValueType::Array => {
                let streamed = Self::of_events(provider, &of_list(raw));
                match (&streamed.response, &streamed.error) {
                    (None, None) => Self::whole(raw),
                    _ => streamed,
                }
            }
            ValueType::String => Self::of_text(provider, &string(raw).unwrap_or_default()),
            _ => Self::whole(raw),
        }
    }

    /// A response that is in one piece.
    pub(super) fn whole(raw: &'a str) -> Self {
        Self {
            response: says(raw).then_some(Cow::Borrowed(raw)),
            error: None,
        }
    }

    /// The body of a response whose status says that it is none.
    pub(super) fn failed(status: &str, body: &str) -> Answer<'static> {
        let json = value(body);
        let found = json.map(members).unwrap_or_default();
        let said = match (get(&found, "error").or(json), body) {
            (Some(said), _) => said.to_owned(),
            (None, "") => quoted(&format!("HTTP {status}")),
            (None, text) => quoted(text),
        };
        Answer {
            response: None,
            error: Some(said.into()),
        }
    }

    fn owned(self) -> Answer<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Answer {
            response: self.response.map(owned),
            error: self.error.map(owned),
        }
    }
}

/// The members of a response of HTTP that are not its body.
const AROUND: [&str; 3] = ["headers", "status", "status_code"];

/// The body of a response of HTTP, if it has one.
fn body<'a>(found: &[Member<'a>]) -> Option<&'a str> {
    get(found, "body").filter(|raw| {
        let kinds = [ValueType::Object, ValueType::Array, ValueType::String];
        kinds.contains(&value_type(raw))
    })
}

/// Whether a value has something in it.
fn says(raw: &str) -> bool {
    !matches!(raw, "null" | "false" | "\"\"" | "{}" | "[]")
}

/// What a record says went wrong, as canonical JSON, if it does.
pub(super) fn error_of(found: &[Member<'_>]) -> Option<String> {
    get(found, "error").filter(|said| says(said)).map(canonical)
}

/// The response itself, or the first event of it, which shows of what form it is; as JSON.
pub(super) fn sample(raw: &str) -> Option<Cow<'_, str>> {
    match value_type(raw) {
        ValueType::Object => match body(&members(raw)) {
            Some(body) => sample(body),
            None => Some(raw.into()),
        },
        ValueType::Array => elements(raw).first().map(|raw| (*raw).into()),
        ValueType::String => {
            let text = string(raw)?;
            let first = match value(&text) {
                Some(json) => sample(json).map(Cow::into_owned),
                None => first_event(&text),
            };
            first.map(Cow::Owned)
        }
        _ => None,
    }
}
