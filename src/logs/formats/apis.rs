//! The APIs of the providers together: a log of requests may have those of several, as a gateway writes it.

use super::anthropic::Messages;
use super::bedrock::Converse;
use super::forms::answered_by;
use super::gemini::Contents;
use super::openai::Chat;
use super::reader::{LogReader, LogRecord, Records};
use super::requests::RequestsReader;
use super::responses::Responses;
use crate::logs::output::Output;
use crate::render::Provider;

/// A reader for each API.
#[derive(Clone, Default)]
pub(super) struct Apis {
    chat: RequestsReader<Chat>,
    responses: RequestsReader<Responses>,
    messages: RequestsReader<Messages>,
    contents: RequestsReader<Contents>,
    converse: RequestsReader<Converse>,
}

impl Apis {
    pub(super) fn reader(&mut self, provider: Provider) -> &mut dyn LogReader {
        match provider {
            Provider::OpenAiResponses => &mut self.responses,
            Provider::Anthropic => &mut self.messages,
            Provider::Gemini => &mut self.contents,
            Provider::Bedrock => &mut self.converse,
            Provider::OpenAi | Provider::Thread => &mut self.chat,
        }
    }

    pub(super) fn finish(&mut self, records: &dyn Records, out: &mut Output) {
        let all: [&mut dyn LogReader; 5] = [
            &mut self.chat,
            &mut self.responses,
            &mut self.messages,
            &mut self.contents,
            &mut self.converse,
        ];
        for reader in all {
            reader.finish(records, out);
        }
    }
}

/// Reads a log of requests to an API. A request with a response of another API is read as that API's.
#[derive(Clone)]
pub(super) struct ByApi {
    own: Provider,
    apis: Apis,
}

impl ByApi {
    /// The reader of the logs of this API.
    pub(super) fn new(own: Provider) -> Self {
        Self {
            own,
            apis: Apis::default(),
        }
    }
}

impl LogReader for ByApi {
    fn record(&mut self, record: &LogRecord<'_>, records: &dyn Records, out: &mut Output) {
        let found = record.json.members(record.raw);
        let provider = answered_by(&found).unwrap_or(self.own);
        self.apis.reader(provider).record(record, records, out);
    }

    fn step(&mut self, messages: &[&str], out: &mut Output) -> bool {
        self.apis.reader(self.own).step(messages, out)
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        Some(Box::new(self.clone()))
    }

    fn finish(&mut self, records: &dyn Records, out: &mut Output) {
        self.apis.finish(records, out);
    }
}
