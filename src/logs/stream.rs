//! Reads logs line by line: memory grows with what the model is sent, not with the log.
//!
//! One pass checks each line and gives it to the format's reader. A format whose lines form a tree notes
//! line numbers and has those lines read again. The documents of the sessions go into a spool. Of a line,
//! only its place is kept, and what its format notes.

use super::formats::{Format, LogReader, LogRecord, Looks, RecordAt, Records, reader};
use super::import::{Imported, finished};
use super::input::{self, ImportOptions, LogError, LogLine, MessageLocation};
use super::output::Output;
use super::report::ImportReport;
use super::spool::Spool;
use super::surrogates::{halves, mend_surrogates};
use crate::json::{Jumps, Redacted, redact_log};
use crate::support::cancel::stopped;
use crate::tree::fault::InputError;
use hashbrown::DefaultHashBuilder;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// If one of the first lines has more bytes, the file is taken for a single document and is not read line by line.
const PROBED: u64 = 64 << 20;

const LINE: u64 = 1 << 30;

/// How many more of the first lines may be malformed than not until the file is taken for a single document.
const MOST_BAD: usize = 64;

/// Reads a log of JSON Lines that may be larger than memory. The documents of its sessions go into `spool`, an
/// empty file that can be read and written, and stay there as long as the outcome is used. The file is read
/// up to its length at the start; a line that is on branches is read once more for each of them.
///
/// `None` if the log is not JSON Lines, if its format's reader keeps all that it reads (all but Chat
/// Completions, Anthropic, Gemini, Bedrock, Claude Code, Codex, Gemini CLI, Copilot CLI, Cursor, pi and ShareGPT), or if `options` say where the
/// messages are: [`import()`](super::import()) reads those. Linear in the lines of all branches; memory is what the model
/// was last sent in each open session, and some 700 bytes a line.
///
/// ```
/// use pactql::logs::{ImportOptions, import_file};
/// # let path = std::env::temp_dir().join(format!("pactql-spool-{}", std::process::id()));
/// let spool = std::fs::File::options().read(true).write(true).create_new(true).open(&path)?;
/// let log = std::fs::File::open("fixtures/release.claude-code.jsonl")?;
/// let imported = import_file(&log, spool, &ImportOptions::default())?.expect("JSON Lines");
/// assert_eq!(imported.sessions.len(), 2); // with the one of a subagent
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of [`import()`](super::import()), and of reading and writing the files.
pub fn import_file(
    log: &File,
    spool: File,
    options: &ImportOptions,
) -> Result<Option<Imported>, LogError> {
    let log = LogFile::new(log, options)?;
    let Some((format, _)) = log.format()? else {
        return Ok(None);
    };
    let spool = Spool::new(spool);
    let mut out = Output::spooled(spool.clone());
    let (mut so_far, mut reader) = (ReadSoFar::default(), reader(format));
    let mut each = |_: &[u8]| {
        if spool.has_failed() {
            return spool.check().map_err(LogError::Spool);
        }
        Ok(())
    };
    log.lines(&mut so_far, true, &mut *reader, &mut out, &mut each)?;
    log.finish(so_far, &mut *reader, &mut out)?;
    spool.check().map_err(LogError::Spool)?;
    Ok(Some(finished(out, Some(format), options)?))
}

/// Whether [`import_file`] reads a file, judged by its first lines.
pub(crate) fn is_lines_of_a_log(log: &File, options: &ImportOptions) -> io::Result<bool> {
    let format = LogFile::new(log, options)?.format()?;
    Ok(format.is_some())
}

/// A log in a file, and where its records are.
pub(super) struct LogFile {
    file: RefCell<File>,
    /// How much of it is read. It may have more.
    pub(super) length: u64,
    pub(super) options: ImportOptions,
    places: RefCell<Vec<LogRecordPlace>>,
    hasher: DefaultHashBuilder,
    failure: RefCell<Option<io::Error>>,
    /// The bytes and the lines that were read, each as often as it was.
    work: Cell<(u64, u64)>,
}

/// How far a log is read, in whole lines.
#[derive(Clone, Default)]
pub(super) struct ReadSoFar {
    pub(super) bytes: u64,
    lines: usize,
    failed: Option<InputError>,
    halved: Vec<usize>,
}

#[derive(Clone, Copy)]
struct LogRecordPlace {
    start: u64,
    length: usize,
    line: usize,
    /// The hash of its bytes, which shows whether the log was rewritten.
    hash: u64,
    /// Whether something was taken out of it.
    is_redacted: bool,
}

fn changed() -> io::Error {
    io::Error::other("the log has changed while it was read; import it again")
}

/// The bytes of the log from a place on; several readers share the file.
struct Bytes<'b> {
    log: &'b LogFile,
    at: u64,
}

impl Read for Bytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.log.length - self.at).unwrap_or(usize::MAX);
        let length = into.len().min(left);
        let mut file = self.log.file.borrow_mut();
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(into.get_mut(..length).unwrap_or_default())?;
        self.at += read as u64;
        let (bytes, lines) = self.log.work.get();
        self.log.work.set((bytes + read as u64, lines));
        Ok(read)
    }
}

fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    from.take(LINE).read_until(b'\n', line)?;
    if line.len() as u64 == LINE && !line.ends_with(b"\n") {
        Err(io::Error::other("a line is longer than 1 GiB"))
    } else {
        Ok(())
    }
}

struct PreparedLine<'a> {
    text: Cow<'a, str>,
    is_redacted: bool,
    halved: bool,
    line: LogLine,
}

impl PreparedLine<'_> {
    fn record<'r>(&'r self, jumps: &'r Jumps, line: usize, number: usize) -> Option<LogRecord<'r>> {
        let LogLine::Value { raw, own } = &self.line else {
            return None;
        };
        Some(LogRecord {
            raw: self.text.get(raw.clone()).unwrap_or_default(),
            list: "",
            at: RecordAt::Line(line),
            json: jumps.accepted(&self.text, own.clone()),
            number,
        })
    }
}

impl LogFile {
    pub(super) fn new(file: &File, options: &ImportOptions) -> io::Result<Self> {
        Ok(Self {
            length: file.metadata()?.len(),
            // Every read says where.
            file: RefCell::new(file.try_clone()?),
            options: options.clone(),
            places: RefCell::default(),
            hasher: DefaultHashBuilder::default(),
            failure: RefCell::default(),
            work: Cell::default(),
        })
    }

    fn from(&self, at: u64) -> BufReader<Bytes<'_>> {
        BufReader::with_capacity(1 << 20, Bytes { log: self, at })
    }

    /// The format of the first lines, and whether no further line can show another; `None` if [`import()`](super::import())
    /// has to read the log.
    pub(super) fn format(&self) -> io::Result<Option<(Format, bool)>> {
        if self.options.location != MessageLocation::Usual {
            return Ok(None);
        }
        let (mut from, mut line, mut place) = (self.from(0), Vec::new(), 0);
        let mut jumps = Jumps::default();
        let mut looks = Looks::default();
        let (mut lines, mut bad, mut goes_on) = (0, 0, true);
        while goes_on || lines < 2 {
            from.by_ref().take(PROBED).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                break;
            }
            if line.len() as u64 == PROBED {
                return Ok(None);
            }
            jumps.clear();
            let mut report = ImportReport::default();
            match self.prepare(&line, place, true, &mut jumps, &mut report) {
                Ok(prepared) => {
                    if let Some(record) = prepared.record(&jumps, 1, 0) {
                        goes_on = looks.more(&record);
                        lines += 1;
                    } else if !matches!(prepared.line, LogLine::Blank) {
                        bad += 1;
                    }
                }
                Err(_) => bad += 1,
            }
            // A document may be on several lines, the first of which is not a value.
            if bad > lines + MOST_BAD || self.options.strict && bad > lines {
                return Ok(None);
            }
            place += line.len() as u64;
            line.clear();
        }
        let format = self.options.format.or(looks.format);
        let format = format.filter(|format| lines > 1 && lines >= bad && format.is_bounded());
        Ok(format.map(|format| (format, !goes_on || self.options.format.is_some())))
    }

    /// Checks a line. What is to be taken out is only looked for if it `may_redact`.
    fn prepare<'a>(
        &self,
        bytes: &'a [u8],
        place: u64,
        may_redact: bool,
        jumps: &mut Jumps,
        report: &mut ImportReport,
    ) -> Result<PreparedLine<'a>, InputError> {
        let (bytes_read, lines) = self.work.get();
        self.work.set((bytes_read, lines + 1));
        let is_last = place + bytes.len() as u64 == self.length && !bytes.ends_with(b"\n");
        let text = match place {
            0 => input::text(bytes),
            _ => input::utf8(bytes),
        };
        let text = match text {
            Err(error) if self.options.strict => return Err(error),
            text => text.unwrap_or(Cow::Borrowed("\u{FFFD}\n")),
        };
        let mut redacted = Redacted::default();
        let clean = match may_redact.then(|| redact_log(&text, &self.options.redact, &mut redacted))
        {
            Some(Cow::Owned(clean)) => Some(clean),
            _ => None,
        };
        let is_redacted = clean.is_some();
        let text = clean.map_or(text, Cow::Owned);
        report.redacted(&redacted);
        let prepared = |text, halved, line| PreparedLine {
            text,
            is_redacted,
            halved,
            line,
        };
        let mended = match input::line(&text, is_last, true, jumps) {
            Ok(line) => return Ok(prepared(text, false, line)),
            Err(error) => match mend_surrogates(&text) {
                None if self.options.strict => return Err(error),
                mended => mended,
            },
        };
        let halved = mended.is_some();
        let text = mended.map_or(text, |(mended, _)| Cow::Owned(mended));
        let line = input::line(&text, is_last, self.options.strict, jumps)?;
        Ok(prepared(text, halved, line))
    }

    /// Gives the lines from where it was read to a reader, and each to `each` before. A last line without a line feed is only
    /// read if the log `ends` there.
    pub(super) fn lines(
        &self,
        so_far: &mut ReadSoFar,
        ends: bool,
        reader: &mut dyn LogReader,
        out: &mut Output,
        each: &mut dyn FnMut(&[u8]) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let mut lines = self.from(so_far.bytes);
        let mut line = Vec::new();
        let mut jumps = Jumps::default();
        loop {
            next_line(&mut lines, &mut line)?;
            if line.is_empty() || !ends && !line.ends_with(b"\n") {
                return Ok(());
            }
            each(&line)?;
            if stopped() {
                return Err(InputError::cancelled().into());
            }
            so_far.lines += 1;
            let (number, place) = (so_far.lines, so_far.bytes);
            so_far.bytes += line.len() as u64;
            jumps.clear();
            let prepared = match self.prepare(&line, place, true, &mut jumps, &mut out.report) {
                Ok(prepared) => prepared,
                Err(error) => {
                    let error = error.shifted(number as u64 - 1, place);
                    match &mut so_far.failed {
                        Some(failed) => failed.extend(error),
                        None => so_far.failed = Some(error),
                    }
                    continue;
                }
            };
            if prepared.halved {
                so_far.halved.push(number);
            }
            prepared.line.count(number, &mut out.report);
            let number_of_record = self.places.borrow().len();
            let record = prepared.record(&jumps, number, number_of_record);
            // After a fault, lines are only checked for more faults.
            if let (Some(record), None) = (record, &so_far.failed) {
                self.places.borrow_mut().push(LogRecordPlace {
                    start: place,
                    length: line.len(),
                    line: number,
                    hash: self.hasher.hash_one(&line),
                    is_redacted: prepared.is_redacted,
                });
                reader.record(&record, self, out);
            }
        }
    }

    /// Ends what was read of the log, which is all of it.
    pub(super) fn finish(
        &self,
        so_far: ReadSoFar,
        reader: &mut dyn LogReader,
        out: &mut Output,
    ) -> Result<(), LogError> {
        if let Some(failed) = so_far.failed {
            return Err(failed.into());
        }
        if so_far.bytes != self.length {
            return Err(changed().into());
        }
        if !so_far.halved.is_empty() {
            out.report.note(halves(&so_far.halved));
        }
        reader.finish(self, out);
        if out.len() == 0 {
            out.empty("");
        }
        match self.failure.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// How many records there are so far.
    pub(super) fn records(&self) -> usize {
        self.places.borrow().len()
    }

    /// Forgets the records behind the first `count`: their line was not whole.
    pub(super) fn forget(&self, count: usize) {
        self.places.borrow_mut().truncate(count);
    }

    /// The bytes before a place, at most `most` of them.
    pub(super) fn before(&self, at: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let start = at.saturating_sub(most);
        Bytes {
            log: self,
            at: start,
        }
        .take(at - start)
        .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The bytes and the lines that were read so far, each as often as it was.
    pub(super) fn work(&self) -> (u64, u64) {
        self.work.get()
    }

    fn read_again(
        &self,
        number: usize,
        read: &mut dyn FnMut(&LogRecord<'_>),
    ) -> Result<(), LogError> {
        let place = self.places.borrow().get(number).copied();
        let place = place.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        let mut bytes = vec![0; place.length];
        let (log, at) = (self, place.start);
        Bytes { log, at }.read_exact(&mut bytes)?;
        if self.hasher.hash_one(&bytes) != place.hash {
            return Err(changed().into());
        }
        let mut jumps = Jumps::default();
        // It was counted the first time.
        let prepared = self.prepare(
            &bytes,
            place.start,
            place.is_redacted,
            &mut jumps,
            &mut ImportReport::default(),
        )?;
        let record = prepared.record(&jumps, place.line, number);
        read(&record.ok_or_else(changed)?);
        Ok(())
    }
}

impl Records for LogFile {
    fn again(&self, number: usize, read: &mut dyn FnMut(&LogRecord<'_>)) {
        if let Err(error) = self.read_again(number, read) {
            let mut failure = self.failure.borrow_mut();
            failure.get_or_insert(match error {
                LogError::Io(error) | LogError::Spool(error) => error,
                LogError::Input(_) => changed(),
            });
        }
    }
}
