//! From the bytes of a log to sessions.

use super::formats::{Format, InMemory, LogRecord, look, reader};
use super::input::LogError;
#[cfg(any(feature = "store", feature = "eval"))]
use super::input::ReadPart;
use super::input::{self, Found, ImportOptions, List, MessageLocation};
use super::log::object_without;
#[cfg(feature = "store")]
use super::opencode;
use super::output::Output;
use super::recording::Recording;
use super::report::{Fate, ImportReport};
use super::sqlite;
use super::surrogates::{halves, mend_surrogates};
use crate::history::Session;
use crate::json::{Redacted, redact_log};
use crate::support::cancel::{ensure, here};
use crate::tree::fault::InputError;
use rayon::prelude::*;
use std::path::Path;
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

    /// The session of a log that is followed.
    #[doc(hidden)]
    pub fn made(&self) -> Option<&Arc<Session>> {
        self.recording.made.as_ref()
    }

    /// As [`ImportedSession::session`], or the session that is made already, of a log that is followed.
    pub(crate) fn shared(&self) -> Result<Arc<Session>, InputError> {
        match self.made() {
            Some(made) => Ok(Arc::clone(made)),
            None => self.session().map(Arc::new),
        }
    }
}

/// Reads a log (INSPECT §1). Linear in the input, for a pointer of fixed length.
///
/// # Errors
/// `E_INPUT` with every fault of the JSON, or with the reason why the log was not understood. No
/// session is returned then.
pub fn import(bytes: &[u8], options: &ImportOptions) -> Result<Imported, InputError> {
    let mut counted = ImportReport::default();
    #[cfg(not(feature = "store"))]
    if sqlite::is_database(bytes) {
        return Err(InputError::at_document(
            "this is a SQLite file; those of opencode and ctxdiff are read with the feature `store`".to_owned(),
        ));
    }
    #[cfg(feature = "store")]
    let lines;
    #[cfg(feature = "store")]
    let bytes = if sqlite::is_database(bytes) {
        let database = database(bytes)?;
        if opencode::is_database(&database) {
            let each = |read: &mut ReadPart<'_>| opencode::each_row(&database, read);
            return import_each(Format::Opencode, each, options);
        }
        lines = super::ctrace::lines(&database)?;
        lines.as_bytes()
    } else {
        bytes
    };
    #[cfg(feature = "eval")]
    if super::eval::is_archive(bytes) {
        let each = |read: &mut ReadPart<'_>| super::eval::each(bytes, read);
        return import_each(Format::InspectAi, each, options);
    }
    let mut redacted = Redacted::default();
    let (text, not_text) = match input::json(bytes) {
        Ok(text) => (text, None),
        Err(error) if options.strict => return Err(error),
        Err(error) => (input::text_of_lines(bytes).into(), Some(error)),
    };
    let text = redact_log(&text, &options.redact, &mut redacted);
    counted.redacted(&redacted);
    let mut out = Output::default();
    let strict = ImportOptions {
        strict: true,
        ..options.clone()
    };
    let mended;
    let checked = match input::check(&text, &strict, &mut out.report) {
        Ok(checked) => checked,
        Err(error) => {
            out = Output::default();
            // Half a letter in one line does not spoil the line.
            mended = mend_surrogates(&text);
            let text = match &mended {
                Some((whole, lines)) => {
                    counted.note(halves(lines));
                    whole
                }
                None if options.strict => return Err(error),
                None => &*text,
            };
            let checked = input::check(text, options, &mut out.report);
            checked.map_err(|error| not_text.unwrap_or(error))?
        }
    };
    let found = checked.find(options, &mut out.report)?;
    out.report.add(&counted);
    let format = options.format.or_else(|| match &found {
        Found::Records(records) => look(records).format,
        Found::Lists(lists) => lists.iter().find_map(|list| look(&list.records()).format),
    });
    read(&found, format, options, &mut out)?;
    finished(out, format, options)
}

#[cfg(feature = "store")]
fn database(bytes: &[u8]) -> Result<rusqlite::Connection, InputError> {
    sqlite::of_bytes(bytes).map_err(|error| {
        InputError::at_document(format!("this SQLite file cannot be read: {error}"))
    })
}

/// The sessions of a log that has several documents, of which `each` reads one at a time.
#[cfg(any(feature = "store", feature = "eval"))]
fn import_each<E: From<InputError>>(
    format: Format,
    each: impl FnOnce(&mut ReadPart<'_>) -> Result<(), E>,
    options: &ImportOptions,
) -> Result<Imported, E> {
    let mut out = Output::default();
    let mut reader = reader(format);
    let mut redacted = Redacted::default();
    let strict = ImportOptions {
        strict: true,
        ..options.clone()
    };
    each(&mut |place, text| {
        ensure();
        let text = redact_log(&text, &options.redact, &mut redacted);
        let mended;
        let mut checked = input::check(&text, &strict, &mut out.report);
        if checked.is_err()
            && let Some((whole, lines)) = mend_surrogates(&text)
        {
            out.report.note(halves(&lines));
            mended = whole;
            checked = input::check(&mended, &strict, &mut out.report);
        }
        match checked {
            Ok(checked) => {
                for record in checked.whole(place) {
                    reader.record(&record, &InMemory(&[]), &mut out);
                }
            }
            Err(error) if options.strict => return Err(error),
            Err(_) => out.report.malformed_line(),
        }
        Ok(())
    })?;
    out.report.redacted(&redacted);
    if out.len() == 0 {
        let message = format!("expected a session of {}, found none", format.name());
        return Err(InputError::at_document(message).into());
    }
    Ok(finished(out, Some(format), options)?)
}

/// Reads the sessions that opencode keeps at a path, in its folder `storage` or its database, whose write-ahead log counts.
/// `None` if there is something else, or if `options` name another format.
#[cfg(feature = "cli")]
pub(crate) fn import_opencode(
    path: &Path,
    options: &ImportOptions,
) -> Result<Option<Imported>, LogError> {
    let is_asked = options
        .format
        .is_none_or(|format| format == Format::Opencode);
    if !is_asked || options.location != MessageLocation::Usual {
        return Ok(None);
    }
    let format = Format::Opencode;
    if opencode::is_storage(path) {
        let each = |read: &mut ReadPart<'_>| opencode::each_file(path, read);
        return import_each(format, each, options).map(Some);
    }
    let Some(database) = opencode::open(path)? else {
        return Ok(None);
    };
    let each = |read: &mut ReadPart<'_>| opencode::each_row(&database, read);
    Ok(Some(import_each(format, each, options)?))
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
    if sqlite::is_database(bytes) {
        let database = database(bytes)?;
        if opencode::is_database(&database) {
            return Ok(vec![Format::Opencode]);
        }
        let lines = super::ctrace::lines(&database)?;
        return claims(lines.as_bytes());
    }
    #[cfg(feature = "eval")]
    if super::eval::is_archive(bytes) {
        return Ok(vec![Format::InspectAi]);
    }
    let options = ImportOptions::default();
    let mut report = ImportReport::default();
    let text = input::json(bytes)?;
    let checked = input::check(&text, &options, &mut report)?;
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
            let tokens = here();
            let read = lists
                .par_iter()
                .map(|list| tokens.within(|| of_list(known, list)));
            for read in read.collect::<Vec<_>>() {
                out.append(read);
            }
        }
    }
    Ok(())
}

/// The session of a list of messages that is deeper in a log.
fn of_list(format: Format, list: &List<'_>) -> Output {
    let mut out = Output::default();
    for (name, _) in &list.beside {
        out.report.count_record_member(name);
    }
    let beside = object_without(&list.beside, &[]);
    out.beside = beside.map(|beside| ("record".into(), beside));
    all(format, &list.records(), &list.location, &mut out);
    out
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
    let ((understood, all), skipped) = (report.understood(), report.lines(Fate::Skipped));
    if all == 0 && skipped > 0 {
        return Err(InputError::at_document(format!(
            "no line of it is of a message yet ({skipped} skipped)"
        )));
    }
    if report.is_mostly_unknown() {
        return Err(input::mostly_unknown(understood, all));
    }
    Ok(())
}
