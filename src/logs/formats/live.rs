//! One call by itself: a request body and the response to it, without a log around them.

use super::anthropic::Messages;
use super::bedrock::Converse;
use super::gemini::Contents;
use super::openai::Chat;
use super::prelude::*;
use super::requests::Api;
use super::responses::Responses;
use super::transcript::unread;
use crate::render::{Provider, ThreadBlock, message_of};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(in crate::logs) struct ReadCall {
    pub(in crate::logs) request: LogRequest,
    /// How many of its messages, from the first, no later request has before its own.
    pub(in crate::logs) own: usize,
    /// The id of the response whose messages come before those of the request.
    pub(in crate::logs) previous: Option<String>,
}

/// Reads a call; each text is a JSON object. Without a response, or with one that is not a reply, the request
/// has none.
pub(in crate::logs) fn read(
    provider: Provider,
    request: &str,
    response: Option<&str>,
    report: &mut ImportReport,
) -> ReadCall {
    match provider {
        Provider::Anthropic => read_as(&Messages, provider, request, response, report),
        Provider::OpenAiResponses => read_as(&Responses, provider, request, response, report),
        Provider::Gemini => read_as(&Contents, provider, request, response, report),
        Provider::Bedrock => read_as(&Converse, provider, request, response, report),
        Provider::OpenAi | Provider::Thread => read_as(&Chat, provider, request, response, report),
    }
}

fn read_as<A: Api>(
    api: &A,
    provider: Provider,
    request: &str,
    response: Option<&str>,
    report: &mut ImportReport,
) -> ReadCall {
    let found = members(request);
    let mut parsed = api.request(&found, report);
    let raw = get(&found, A::MESSAGES);
    let list = raw
        .map(|raw| api.messages(Accepted::default(), raw))
        .unwrap_or_default();
    // An empty list stays a parameter, and so does a value that is not a list.
    if list.is_empty() {
        parsed.taken.retain(|name| *name != A::MESSAGES);
    }
    let mut messages = std::mem::take(&mut parsed.system);
    let own = messages.len();
    let is_list = raw.map(value_type) == Some(ValueType::Array);
    for raw in list {
        let mut message = api.message(raw, report);
        if is_list {
            message = lossless(message, raw, provider, report);
        }
        messages.push(Arc::new(message));
    }
    let mut read = ReadCall {
        request: LogRequest {
            messages,
            parameters: parsed.parameters(&found),
            tools: parsed.tools,
            ..LogRequest::default()
        },
        own,
        previous: api.previous(&found),
    };
    let response = response.map(members).unwrap_or_default();
    if let Some((mut reply, call)) = api.response(&response, report) {
        let id = api.chain_id(&response);
        for message in &mut reply {
            message.response.clone_from(&id);
        }
        read.request.reply = reply;
        read.request.call = call;
    }
    read
}

/// A message, if it comes back equal when it is rendered; else the same as it is, in one block.
fn lossless(
    message: LogMessage,
    raw: &str,
    provider: Provider,
    report: &mut ImportReport,
) -> LogMessage {
    let again = message_of(provider, blocks(&message));
    if again.is_some_and(|again| canonical(&again) == canonical(raw)) {
        return message;
    }
    let mut made = unread("of unknown form", raw, report);
    if provider != Provider::OpenAi {
        made.first().set("data_form", quoted(provider.name()));
    }
    let role = text(&members(raw), "role").map(|role| role.into_owned());
    LogMessage::new(role, made.parts)
}

fn blocks(message: &LogMessage) -> Vec<ThreadBlock> {
    let block = |part: &LogPart| {
        let role = part.role.or(message.role.as_deref());
        let data = part.data.iter().map(|(name, value)| (&**name, &**value));
        ThreadBlock::imported(role, part.kind, part.content.as_deref(), data)
    };
    message.blocks().iter().map(block).collect()
}
