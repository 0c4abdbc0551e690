//! Logs in, provider threads out.
//!
//! One door for every importer: [`import`] takes the bytes of a log in some [`Format`] and gives
//! sessions, which write themselves as snapshot documents. A format is one file that turns records
//! into messages; finding the records and cutting messages into turns is common to all. The way
//! out is [`write_thread`] and [`write_openai`], over the nodes of a snapshot.
//!
//! This room knows log formats, trees and snapshots. It knows no selectors, no files and no
//! command line.

mod compare;
mod export;
mod flat;
mod openai;
mod openai_render;
mod pointer;
mod recording;
mod report;
mod shallow;
mod source;
mod thread;

pub use compare::{Comparison, Difference};
pub use export::{write_document, write_members, write_session};
pub use openai_render::write_openai;
pub use pointer::Pointer;
pub use recording::Recording;
pub use report::{Fate, Report};
pub use thread::{ThreadBlock, thread, write_thread};

pub(crate) use crate::tree::canonical::canonical;
use crate::tree::fault::InputError;
use source::Log;
use std::io;

/// The log formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// OpenAI chat messages: a JSON array, JSON Lines (one message a line, or one
    /// `{"messages": […]}` a line), or an object with `messages`.
    #[default]
    OpenAi,
}

/// Where in the input the messages are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Wherever the format has them.
    #[default]
    Usual,
    /// Each match of the pointer is the message list of one session.
    Messages(Pointer),
    /// Each match of the pointer is the whole input of one step: together one session, a snapshot
    /// each.
    Steps(Pointer),
}

/// What [`import`] should make of its input.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The format of the log.
    pub format: Format,
    /// Where the messages are.
    pub place: Place,
}

/// What an import gave.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The sessions in the order of the input; at least one.
    pub sessions: Vec<ImportedSession>,
    /// The counts over all of them.
    pub report: Report,
}

/// One session of an import.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    /// Where in the input it was: a JSON pointer, `line N` with a pointer, or nothing for the whole
    /// input.
    pub place: String,
    /// The session.
    pub recording: Recording,
    /// What became of its messages.
    pub report: Report,
}

/// Reads a log (RUNTIME §5). Linear in the input, for a pointer of fixed length.
///
/// # Errors
/// `E_INPUT` with every fault of the JSON, or one that says why no messages were found. Nothing is
/// half-imported.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<Imported, InputError> {
    let logs = source::find(bytes, &options.place)?;
    let mut imported = Imported::default();
    if let Place::Steps(_) = options.place {
        let mut report = Report::default();
        let steps: Vec<Vec<flat::Message>> = logs
            .iter()
            .map(|log| read(log, options.format, &mut report))
            .collect();
        let recording = flat::steps(steps.iter().map(Vec::as_slice));
        imported.push(String::new(), recording, report);
    } else {
        for log in logs {
            let mut report = Report::default();
            let recording = flat::log(&read(&log, options.format, &mut report));
            imported.push(log.place, recording, report);
        }
    }
    Ok(imported)
}

fn read(log: &Log<'_>, format: Format, report: &mut Report) -> Vec<flat::Message> {
    match format {
        Format::OpenAi => {
            for name in &log.skipped {
                report.skipped_member(name);
            }
            openai::messages(log.messages.iter().copied(), report)
        }
    }
}

impl Imported {
    fn push(&mut self, place: String, recording: Recording, mut report: Report) {
        report.session(recording.snapshots());
        self.report.add(&report);
        self.sessions.push(ImportedSession {
            place,
            recording,
            report,
        });
    }
}

/// Appends `text` as a canonical JSON string.
pub(crate) fn json_text(text: &str, out: &mut String) {
    // Appending to a string cannot fail.
    let _ = crate::tree::canonical::write_string(&mut Appender(out), text);
}

/// `text` as a canonical JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    json_text(text, &mut out);
    out
}

/// Writes canonical JSON, which is ASCII, to the end of a string.
struct Appender<'a>(&'a mut String);

impl io::Write for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.push_str(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
