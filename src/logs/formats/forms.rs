//! The forms of the five APIs' responses: they show of which API a request with its response is.

use super::answer::sample;
use super::prelude::*;
use crate::render::Provider;

type IsOf = fn(&[Member<'_>]) -> bool;

/// For each API whether these are the members of a response, of the first event of one, or of an error of it alone.
const FORMS: [(Provider, IsOf); 5] = [
    (Provider::OpenAi, |found| {
        is(found, "choices", ValueType::Array)
    }),
    (Provider::Anthropic, |found| {
        match text(found, "type").as_deref() {
            Some("message") => is(found, "content", ValueType::Array),
            Some("message_start") => is(found, "message", ValueType::Object),
            Some("error") => is(found, "error", ValueType::Object),
            _ => false,
        }
    }),
    (Provider::OpenAiResponses, |found| {
        let kind = text(found, "type");
        kind.is_some_and(|kind| kind.starts_with("response."))
            || text(found, "object").as_deref() == Some("response")
            || is(found, "output", ValueType::Array)
    }),
    (Provider::Gemini, |found| {
        is(found, "candidates", ValueType::Array) || is(found, "promptFeedback", ValueType::Object)
    }),
    (Provider::Bedrock, |found| {
        let output = inner(found, "output");
        is(&output, "message", ValueType::Object) || is(found, "messageStart", ValueType::Object)
    }),
];

/// The API whose form a record's response has, if the record is a request with its response. A response says more than
/// a request: behind one API a gateway has models of every provider.
pub(super) fn answered_by(found: &[Member<'_>]) -> Option<Provider> {
    get(found, "request")?;
    let sample = sample(get(found, "response")?)?;
    let response = members(&sample);
    let form = FORMS.iter().find(|(_, is_of)| is_of(&response));
    form.map(|(provider, _)| *provider)
}
