//! From the bytes of a log to sessions.

use super::formats::{Format, InMemory, LogRecord, detect, reader};
use super::input::{self, Found, ImportOptions, MessageLocation};
use super::output::Output;
use super::recording::Recording;
use super::report::ImportReport;
use super::surrogates::{halves, mend_surrogates};
use crate::history::Session;
use crate::json::{Redacted, redact_log};
use crate::support::cancel::ensure;
use crate::tree::fault::InputError;
use std::sync::Arc;

/// The outcome of [`import`].
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The sessions in the order of the input; at least one.
    pub sessions: Vec<ImportedSession>,
    /// The counts over all of them.
    pub report: ImportReport,
    /// The format that was read; `None` for an empty log.
    pub format: Option<Format>,
}

/// One session of an import.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    /// Where it was: a JSON pointer, `line N` with a pointer, or empty for the whole input.
    pub location: String,
    /// Its name in the log, if it has one there. One that begins with `~` (another branch) or `/` (a
    /// subagent) comes after the name of the session it belongs to.
    pub name: Option<String>,
    /// The id of the session that it belongs to, if that is in another log.
    pub parent: Option<String>,
    /// The session.
    pub recording: Recording,
}

impl ImportedSession {
    /// The session, to select from and to keep. That of a log which was read line by line is made as it is
    /// read, from the spool, which has to stay.
    ///
    /// # Errors
    /// The log has values that no session can have.
    pub fn session(&self) -> Result<Session, InputError> {
        if self.recording.is_spooled() {
            return Ok(Session::replayed(Arc::new(self.recording.clone())));
        }
        let documents = self.recording.documents();
        let documents = documents.map_err(|error| InputError::at_document(error.to_string()))?;
        Session::from_documents(documents)
    }
}

/// Reads a log (INSPECT §1). Linear in the input, for a pointer of fixed length.
///
/// # Errors
/// `E_INPUT` with every fault of the JSON, or with the reason why the log was not understood. No
/// session is returned then.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<Imported, InputError> {
    let mut counted = ImportReport::default();
    #[cfg(feature = "store")]
    let lines;
    #[cfg(feature = "store")]
    let bytes = if super::ctrace::is_database(bytes) {
        lines = super::ctrace::lines(bytes)?;
        lines.as_bytes()
    } else {
        bytes
    };
    let mut redacted = Redacted::default();
    let text = input::json(bytes)?;
    let text = redact_log(&text, &options.redact, &mut redacted);
    counted.redacted(&redacted);
    let mut out = Output::default();
    let mended;
    let checked = match input::check(&text, options.lenient, &mut out.report) {
        Ok(checked) => checked,
        // Half a letter in one line does not spoil all others.
        Err(error) => {
            let Some((whole, lines)) = mend_surrogates(&text) else {
                return Err(error);
            };
            mended = whole;
            out = Output::default();
            counted.note(halves(&lines));
            input::check(&mended, options.lenient, &mut out.report)?
        }
    };
    let found = checked.find(options, &mut out.report)?;
    out.report.add(&counted);
    let format = options.format.or_else(|| match &found {
        Found::Records(records) => detect(records),
        Found::Lists(lists) => lists.iter().find_map(|list| detect(&list.records())),
    });
    read(&found, format, options, &mut out)?;
    finished(out, format, options)
}

/// The sessions of an output, unless most of the log was not understood.
pub(super) fn finished(
    out: Output,
    format: Option<Format>,
    options: &ImportOptions,
) -> Result<Imported, InputError> {
    if options.location == MessageLocation::Usual && !options.lenient {
        check_understood(&out.report)?;
    }
    let (sessions, mut report) = out.finish();
    let sessions: Vec<ImportedSession> = sessions
        .into_iter()
        .map(|(about, recording)| ImportedSession {
            location: about.location,
            name: about.name,
            parent: about.parent,
            recording,
        })
        .collect();
    for session in &sessions {
        report.session(session.recording.snapshots());
    }
    Ok(Imported {
        sessions,
        report,
        format,
    })
}

/// The formats that a log could be taken for; one, if it can be recognized.
///
/// # Errors
/// As [`import`].
#[doc(hidden)]
pub fn claims(bytes: &[u8]) -> Result<Vec<Format>, InputError> {
    #[cfg(feature = "store")]
    if super::ctrace::is_database(bytes) {
        let lines = super::ctrace::lines(bytes)?;
        return claims(lines.as_bytes());
    }
    let options = ImportOptions::default();
    let mut report = ImportReport::default();
    let text = input::json(bytes)?;
    let checked = input::check(&text, false, &mut report)?;
    let found = checked.find(&options, &mut report)?;
    Ok(match &found {
        Found::Records(records) => super::formats::claims(records),
        Found::Lists(lists) => lists
            .first()
            .map(|list| super::formats::claims(&list.records()))
            .unwrap_or_default(),
    })
}

fn read(
    found: &Found<'_>,
    format: Option<Format>,
    options: &ImportOptions,
    out: &mut Output,
) -> Result<(), InputError> {
    // Lists of messages and an empty input are read as chat.
    let known = format.unwrap_or(Format::OpenAi);
    match found {
        Found::Records(records) => {
            if format.is_none() && !records.is_empty() {
                return Err(input::unknown(records));
            }
            all(known, records, "", out);
        }
        Found::Lists(lists) if matches!(options.location, MessageLocation::Steps(_)) => {
            let mut reader = reader(known);
            for list in lists {
                if !reader.step(&list.elements, out) {
                    return Err(InputError::at_document(format!(
                        "expected a format with lists of messages, and `{}` has none",
                        known.name()
                    )));
                }
            }
            reader.finish(&InMemory(&[]), out);
        }
        Found::Lists(lists) => {
            for list in lists {
                all(known, &list.records(), &list.location, out);
            }
        }
    }
    Ok(())
}

fn all(format: Format, records: &[LogRecord<'_>], location: &str, out: &mut Output) {
    let before = out.len();
    let mut reader = reader(format);
    let all = InMemory(records);
    for record in records {
        ensure();
        reader.record(record, &all, out);
    }
    reader.finish(&all, out);
    if out.len() == before {
        out.empty(location);
    }
}

fn check_understood(report: &ImportReport) -> Result<(), InputError> {
    if !report.is_mostly_unknown() {
        return Ok(());
    }
    let (understood, all) = report.understood();
    Err(InputError::at_document(format!(
        "{understood} of {all} lines were understood; `--lenient` imports them, and keeps or counts \
         the others"
    )))
}
