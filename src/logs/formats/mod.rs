//! The log formats that can be read, one file each.
//!
//! A format is a [`Reader`]: it is given the records of a log one after another (the lines of JSON
//! Lines, the elements of a list, or the one value of a file) and tells the
//! [`Output`](super::output) what they say happened: sessions, and their
//! [`Event`](super::log::Event)s. It knows nothing of trees, ids and cycles. A record is borrowed
//! for the call only, so a log is read with memory for what the model is sent, not for the log.
//!
//! To add a format:
//!
//! 1. Write `formats/NAME.rs`: a reader, and a function that distinguishes a record of the format from
//!    others by its members ([`Sniff`]).
//! 2. Count every record with `report.line`, every message and part with `report.message` and
//!    `report.part`; [`transcript`] says what becomes of contents, parts, calls and results, and counts
//!    them. What has no field of its own becomes `data_part` or `data_…`
//!    ([`Part::keep_rest`](super::log::Part::keep_rest)). Nothing with text in it is left out without
//!    being counted as skipped, with a reason.
//! 3. Add a line to [`ALL`], and a variant to [`Format`].
//! 4. Write fixtures by hand under `tests/cases/logs/NAME/`, say in their names that they are
//!    synthetic, and add a section to `docs/importing.md`: what is kept, what is lost, how sure
//!    the shape is.
//!
//! A provider's API whose requests are recorded ([`requests::Api`]) also has a form in
//! [`mod@crate::render`] that gives its requests back.

mod anthropic;
mod atif;
mod branches;
mod calls;
mod claude_code;
mod codex;
mod ctrace;
mod egregore;
mod fields;
mod inspect_ai;
mod letta;
#[cfg(feature = "store")]
mod live;
mod openai;
mod openhands;
mod otel;
mod otel_call;
mod otel_messages;
mod pi;
mod reader;
mod requests;
mod responses;
mod sharegpt;
mod swe_agent;
mod transcript;

#[cfg(feature = "store")]
pub(super) use live::read as read_call;
pub(super) use openai::is_message;
use reader::Sniff;
pub(super) use reader::{At, InMemory, Reader, Record, Records};

use crate::json::{Member, members};

/// The log formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// OpenAI chat: messages (a list, or one a line), objects with `messages` such as fine-tuning
    /// data, requests to Chat Completions, and requests with their responses.
    OpenAi,
    /// Anthropic Messages: messages (a list, or one a line), requests, and requests with their
    /// responses.
    Anthropic,
    /// OpenAI Responses: items (a list, or one a line), requests, and requests with their responses.
    OpenAiResponses,
    /// Sessions of Claude Code.
    ClaudeCode,
    /// Rollouts of Codex.
    Codex,
    /// SWE-agent trajectories.
    SweAgent,
    /// Sessions of the pi coding agent.
    Pi,
    /// ShareGPT: conversations of `from` and `value`.
    ShareGpt,
    /// OpenHands: lists of events.
    OpenHands,
    /// ATIF: trajectories of Harbor.
    Atif,
    /// inspect_ai: logs of evaluations, and single samples.
    InspectAi,
    /// Letta: agent files.
    Letta,
    /// OpenTelemetry: OTLP/JSON with spans of the GenAI or OpenInference conventions.
    OpenTelemetry,
    /// Egregore: snapshots of context trees.
    Egregore,
    /// ctxdiff: `.ctrace` files. They are read with the feature `store`.
    Ctrace,
}

impl Format {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 15] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::ClaudeCode,
        Self::Codex,
        Self::SweAgent,
        Self::Pi,
        Self::ShareGpt,
        Self::OpenHands,
        Self::Atif,
        Self::InspectAi,
        Self::Letta,
        Self::OpenTelemetry,
        Self::Egregore,
        Self::Ctrace,
    ];

    /// The name on the command line, such as `openai`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Whether its reader keeps what the model was sent last, and not the whole log.
    pub(super) fn is_bounded(self) -> bool {
        matches!(
            self,
            Self::OpenAi
                | Self::Anthropic
                | Self::ClaudeCode
                | Self::Codex
                | Self::Pi
                | Self::ShareGpt
        )
    }

    fn entry(self) -> &'static Entry {
        let found = ALL.iter().find(|entry| entry.format == self);
        found.unwrap_or(&ALL[0])
    }
}

/// A format as the importer uses it.
struct Entry {
    format: Format,
    name: &'static str,
    sniff: fn(&Record<'_>, &[Member<'_>]) -> Sniff,
    reader: fn() -> Box<dyn Reader>,
}

/// A line for each format: its name, what distinguishes a record of it, its reader.
macro_rules! entries {
    ($($format:ident $name:literal $sniff:path => $reader:expr,)*) => {
        &[$(Entry {
            format: Format::$format,
            name: $name,
            sniff: $sniff,
            reader: || Box::new($reader),
        }),*]
    };
}

const ALL: &[Entry] = entries! {
    OpenAi "openai" openai::sniff => requests::Requests::<openai::Chat>::default(),
    Anthropic "anthropic" anthropic::sniff => requests::Requests::<anthropic::Messages>::default(),
    OpenAiResponses "openai-responses" responses::sniff => requests::Requests::<responses::Responses>::default(),
    Codex "codex" codex::sniff => codex::Codex::default(),
    ClaudeCode "claude-code" claude_code::sniff => claude_code::ClaudeCode::default(),
    SweAgent "swe-agent" swe_agent::sniff => swe_agent::SweAgent,
    Pi "pi" pi::sniff => pi::Pi::default(),
    ShareGpt "sharegpt" sharegpt::sniff => sharegpt::ShareGpt,
    OpenHands "openhands" openhands::sniff => openhands::OpenHands::default(),
    Atif "atif" atif::sniff => atif::Atif,
    InspectAi "inspect-ai" inspect_ai::sniff => inspect_ai::InspectAi,
    Letta "letta" letta::sniff => letta::Letta,
    OpenTelemetry "otel" otel::sniff => otel::Otel::default(),
    Egregore "egregore" egregore::sniff => egregore::Egregore::default(),
    Ctrace "ctrace" ctrace::sniff => ctrace::Ctrace::default(),
};

pub(super) fn reader(format: Format) -> Box<dyn Reader> {
    (format.entry().reader)()
}

/// The formats that some records are surely of; if there is none, those that they could be of.
pub(super) fn claims(records: &[Record<'_>]) -> Vec<Format> {
    let claim = |entry: &Entry| {
        let looked_at = records.iter().take(LOOKED_AT);
        let sniffs = looked_at.map(|record| (entry.sniff)(record, &members(record.raw)));
        (sniffs.max().unwrap_or(Sniff::No), entry.format)
    };
    let claims: Vec<(Sniff, Format)> = ALL.iter().map(claim).collect();
    let best = claims.iter().map(|(sniff, _)| *sniff).max();
    let best = best.filter(|sniff| *sniff != Sniff::No);
    let of_best = claims.iter().filter(|(sniff, _)| Some(*sniff) == best);
    of_best.map(|(_, format)| *format).collect()
}

/// How many records are looked at to find the format.
const LOOKED_AT: usize = 64;

/// The format of some records, if it is a known one.
pub(super) fn detect(records: &[Record<'_>]) -> Option<Format> {
    let mut looks = Looks::default();
    for record in records {
        if !looks.more(record) {
            break;
        }
    }
    looks.format
}

/// What the records looked at so far could be of.
#[derive(Default)]
pub(super) struct Looks {
    records: usize,
    sniff: Sniff,
    /// The first that a record is surely of, else the first that one could be of.
    pub(super) format: Option<Format>,
}

impl Looks {
    /// Looks at the next record. Returns whether another one could show more.
    pub(super) fn more(&mut self, record: &Record<'_>) -> bool {
        let found = members(record.raw);
        for entry in ALL {
            let sniff = (entry.sniff)(record, &found);
            if sniff > self.sniff {
                (self.sniff, self.format) = (sniff, Some(entry.format));
            }
        }
        self.records += 1;
        self.sniff != Sniff::Yes && self.records < LOOKED_AT
    }
}
