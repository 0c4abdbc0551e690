//! The log formats that can be read, one file each.
//!
//! A format is a [`LogReader`]: it is given the records of a log one after another (the lines of JSON
//! Lines, the elements of a list, or the one value of a file) and tells the
//! [`Output`](super::output) what they say happened: sessions, and their
//! [`Event`](super::log::Event)s. It knows nothing of trees, ids and cycles. A record is borrowed
//! for the call only, so a log is read with memory for what the model is sent, not for the log.
//!
//! To add a format:
//!
//! 1. Write `formats/NAME.rs`: a reader (a function, if each record is a whole log: [`EachRecord`]), and a
//!    function that distinguishes a record of the format from others by its members ([`Sniff`]).
//! 2. Count every record with `report.line`, every message and part with `report.message` and
//!    `report.part`; [`transcript`] says what becomes of contents, parts, calls and results, and counts
//!    them. What has no field of its own becomes `data_part` or `data_…`
//!    ([`LogPart::keep_rest`](super::log::LogPart::keep_rest)). Nothing with text in it is left out without
//!    being counted as skipped, with a reason.
//! 3. Add an entry to `formats!`.
//! 4. Write fixtures by hand under `tests/cases/logs/NAME/`, say in their names that they are
//!    synthetic, and add a section to `docs/importing.md`: what is kept, what is lost, how sure
//!    the shape is.
//!
//! A provider's API whose requests are recorded ([`requests::Api`]) also has a form in
//! [`mod@crate::render`] that gives its requests back.

mod answer;
mod anthropic;
mod apis;
mod atif;
mod bedrock;
mod branches;
mod calls;
mod claude_code;
mod codex;
mod copilot_cli;
mod ctrace;
mod cursor;
mod egregore;
mod fields;
mod forms;
mod gemini;
mod gemini_cli;
mod http;
mod inspect_ai;
mod letta;
#[cfg(feature = "store")]
mod live;
mod openai;
mod opencode;
mod openhands;
mod otel;
mod otel_call;
mod otel_messages;
mod pi;
mod prelude;
mod reader;
mod requests;
mod responses;
mod sharegpt;
mod swe_agent;
mod transcript;
mod unread;

use apis::ByApi;
#[cfg(feature = "store")]
pub(super) use live::{ReadCall, read as read_call};
pub(super) use openai::is_message;
use reader::{EachRecord, Sniff};
pub(super) use reader::{InMemory, LogReader, LogRecord, RecordAt, Records};

use crate::json::{Member, members};
use crate::render::Provider;

struct FormatEntry {
    format: Format,
    name: &'static str,
    memory: ReaderMemory,
    sniff: fn(&LogRecord<'_>, &[Member<'_>]) -> Sniff,
    reader: fn() -> Box<dyn LogReader>,
}

/// What a reader keeps while it reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReaderMemory {
    /// What the model was sent last.
    Bounded,
    WholeLog,
}
use ReaderMemory::{Bounded, WholeLog};

/// An entry for each format: its name, what its reader keeps, what distinguishes a record of it, its reader.
macro_rules! formats {
    ($($(#[$about:meta])* $format:ident $name:literal $memory:ident $sniff:path => $reader:expr,)*) => {
        /// The log formats that can be read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$about])* $format,)*
        }

        const ALL: [FormatEntry; [$($name),*].len()] = [$(FormatEntry {
            format: Format::$format,
            name: $name,
            memory: $memory,
            sniff: $sniff,
            reader: || Box::new($reader),
        }),*];

        impl Format {
            /// All of them, in the order in which they are tried.
            pub const ALL: [Self; ALL.len()] = [$(Self::$format),*];
        }
    };
}

formats! {
    /// OpenAI chat: messages (a list, or one a line), objects with `messages` such as fine-tuning
    /// data, requests to Chat Completions, and requests with their responses.
    OpenAi "openai" Bounded openai::sniff => ByApi::new(Provider::OpenAi),
    /// Anthropic Messages: messages (a list, or one a line), requests, and requests with their
    /// responses.
    Anthropic "anthropic" Bounded anthropic::sniff => ByApi::new(Provider::Anthropic),
    /// OpenAI Responses: items (a list, or one a line), requests, and requests with their responses.
    OpenAiResponses "openai-responses" WholeLog responses::sniff => ByApi::new(Provider::OpenAiResponses),
    /// Gemini `generateContent`: contents, requests, and requests with their responses.
    Gemini "gemini" Bounded gemini::sniff => ByApi::new(Provider::Gemini),
    /// Bedrock `converse`: messages, requests, and requests with their responses.
    Bedrock "bedrock" Bounded bedrock::sniff => ByApi::new(Provider::Bedrock),
    /// HTTP exchanges that VCR recorded, with any of these requests.
    Vcr "vcr" WholeLog http::is_vcr => http::Http::default(),
    /// HTTP exchanges that a browser or a proxy recorded as HAR, with any of these requests.
    Har "har" WholeLog http::is_har => http::Http::default(),
    /// Sessions of Claude Code.
    ClaudeCode "claude-code" Bounded claude_code::sniff => claude_code::ClaudeCode::default(),
    /// Rollouts of Codex.
    Codex "codex" Bounded codex::sniff => codex::Codex::default(),
    /// Sessions of Gemini CLI.
    GeminiCli "gemini-cli" Bounded gemini_cli::sniff => gemini_cli::GeminiCli::default(),
    /// Sessions of Copilot CLI.
    CopilotCli "copilot-cli" Bounded copilot_cli::sniff => copilot_cli::CopilotCli::default(),
    /// Transcripts of Cursor's agent.
    Cursor "cursor" Bounded cursor::sniff => cursor::Cursor::default(),
    /// opencode: exports of sessions, its folder `storage`, and its database, which is read with the feature `store`.
    Opencode "opencode" WholeLog opencode::sniff => opencode::Opencode::default(),
    /// SWE-agent trajectories.
    SweAgent "swe-agent" WholeLog swe_agent::sniff => EachRecord(swe_agent::read),
    /// Sessions of the pi coding agent.
    Pi "pi" Bounded pi::sniff => pi::Pi::default(),
    /// ShareGPT: conversations of `from` and `value`.
    ShareGpt "sharegpt" Bounded sharegpt::sniff => EachRecord(sharegpt::read),
    /// OpenHands: lists of events.
    OpenHands "openhands" WholeLog openhands::sniff => openhands::OpenHands::default(),
    /// ATIF: trajectories of Harbor.
    Atif "atif" WholeLog atif::sniff => EachRecord(atif::read),
    /// inspect_ai: logs of evaluations, and single samples.
    InspectAi "inspect-ai" WholeLog inspect_ai::sniff => inspect_ai::InspectAi::default(),
    /// Letta: agent files.
    Letta "letta" WholeLog letta::sniff => EachRecord(letta::read),
    /// OpenTelemetry: OTLP/JSON with spans of the GenAI or OpenInference conventions.
    OpenTelemetry "otel" WholeLog otel::sniff => otel::Otel::default(),
    /// Egregore: snapshots of context trees.
    Egregore "egregore" WholeLog egregore::sniff => egregore::Egregore::default(),
    /// ctxdiff: `.ctrace` files. They are read with the feature `store`.
    Ctrace "ctrace" WholeLog ctrace::sniff => ctrace::Ctrace::default(),
}

impl Format {
    /// The name on the command line, such as `openai`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Whether a log of it can be larger than memory.
    pub(super) fn is_bounded(self) -> bool {
        self.entry().memory == Bounded
    }

    fn entry(self) -> &'static FormatEntry {
        &ALL[self as usize]
    }
}

pub(super) fn reader(format: Format) -> Box<dyn LogReader> {
    (format.entry().reader)()
}

/// The formats that some records are surely of; if there is none, those that they could be of.
pub(super) fn claims(records: &[LogRecord<'_>]) -> Vec<Format> {
    let claim = |entry: &FormatEntry| {
        let looked_at = records.iter().take(LOOKED_AT);
        let sniffs = looked_at.map(|record| (entry.sniff)(record, &members(record.raw)));
        (sniffs.max().unwrap_or(Sniff::No), entry.format)
    };
    let claims = ALL.each_ref().map(claim);
    let best = claims.iter().map(|(sniff, _)| *sniff).max();
    let of_best = |(sniff, _): &&(Sniff, Format)| *sniff != Sniff::No && Some(*sniff) == best;
    claims
        .iter()
        .filter(of_best)
        .map(|(_, format)| *format)
        .collect()
}

const LOOKED_AT: usize = 64;

/// What some records are of.
pub(super) fn look(records: &[LogRecord<'_>]) -> Looks {
    let mut looks = Looks::default();
    for record in records {
        if !looks.more(record) {
            break;
        }
    }
    looks
}

#[derive(Default)]
pub(super) struct Looks {
    records: usize,
    sniff: Sniff,
    /// The first that a record is surely of, else the first that one could be of.
    pub(super) format: Option<Format>,
    /// The kind of log that a record is surely of, if it is one that is known and not read.
    pub(super) unread: Option<&'static str>,
}

impl Looks {
    /// Looks at the next record. Returns whether another one could show more.
    pub(super) fn more(&mut self, record: &LogRecord<'_>) -> bool {
        let found = members(record.raw);
        for entry in &ALL {
            let sniff = (entry.sniff)(record, &found);
            if sniff > self.sniff {
                (self.sniff, self.format) = (sniff, Some(entry.format));
            }
        }
        if self.sniff != Sniff::Yes
            && let Some(name) = unread::unread(&found)
        {
            (self.unread, self.format) = (Some(name), None);
            return false;
        }
        self.records += 1;
        self.sniff != Sniff::Yes && self.records < LOOKED_AT
    }
}
