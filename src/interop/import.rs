//! From the bytes of a log to sessions.

use super::input::{self, Log, MessageLocation};
use super::recording::Recording;
use super::report::Report;
use super::{openai, turns};
use crate::tree::fault::InputError;

/// The log formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// OpenAI chat messages: a JSON array, JSON Lines (one message a line, or one
    /// `{"messages": […]}` a line), or an object with `messages`.
    #[default]
    OpenAi,
}

/// Options of [`import`].
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The format of the log.
    pub format: Format,
    /// Where the messages are.
    pub location: MessageLocation,
}

/// The outcome of [`import`].
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
    /// Where its messages were: a JSON pointer, `line N` with a pointer, or empty for the whole
    /// input.
    pub location: String,
    /// The session.
    pub recording: Recording,
    /// The counts of its messages.
    pub report: Report,
}

/// Reads a log (RUNTIME §5). Linear in the input, for a pointer of fixed length.
///
/// # Errors
/// `E_INPUT` with every fault of the JSON, or with the reason why no messages were found. No
/// session is returned then.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<Imported, InputError> {
    let logs = input::find(bytes, &options.location)?;
    let mut imported = Imported::default();
    if let MessageLocation::Steps(_) = options.location {
        let mut report = Report::default();
        let steps: Vec<Vec<turns::Message>> = logs
            .iter()
            .map(|log| read(log, options.format, &mut report))
            .collect();
        let recording = turns::record_steps(steps.iter().map(Vec::as_slice));
        imported.push(String::new(), recording, report);
    } else {
        for log in logs {
            let mut report = Report::default();
            let recording = turns::record_log(&read(&log, options.format, &mut report));
            imported.push(log.location, recording, report);
        }
    }
    Ok(imported)
}

fn read(log: &Log<'_>, format: Format, report: &mut Report) -> Vec<turns::Message> {
    match format {
        Format::OpenAi => {
            for name in &log.skipped {
                report.skipped_member(name);
            }
            openai::messages(&log.messages, report)
        }
    }
}

impl Imported {
    fn push(&mut self, location: String, recording: Recording, mut report: Report) {
        report.session(recording.snapshots());
        self.report.add(&report);
        self.sessions.push(ImportedSession {
            location,
            recording,
            report,
        });
    }
}
