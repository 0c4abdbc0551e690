//! Logs that are read line by line, with memory for what the model is sent and not for the log.
//!
//! The first pass checks each line and has the format read it; a format whose lines are a tree notes the
//! numbers of its lines and has them read again. The documents of the sessions go into a spool. What is
//! remembered of a line is where it is, and what its format notes of it.

use super::formats::{At, Format, Record, Records, detect, reader};
use super::import::{Imported, finished, halves};
use super::input::{self, ImportOptions, Line, MessageLocation};
use super::output::Output;
use super::redact;
use super::report::Report;
use super::spool::Spool;
use crate::tree::accepted::Jumps;
use crate::tree::fault::InputError;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// Why a log could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The log could not be read, or what was made of it could not be kept.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// As of [`import()`](super::import()).
    #[error(transparent)]
    Input(#[from] InputError),
}

/// How many records show the format.
const LOOKED_AT: usize = 64;

/// How many bytes are kept for that, unless the first line has more.
const HEAD: usize = 1 << 20;

/// The longest line.
const LINE: u64 = 1 << 30;

/// Reads a log of JSON Lines that may be larger than memory. The documents of its sessions go into `spool`, an
/// empty file that can be read and written, and stay there as long as the outcome is used. The file is read
/// up to the length that it has now; it is read twice if its lines are a tree.
///
/// `None` if the log is of another form than JSON Lines of a known format, or `options` say where the
/// messages are: [`import()`](super::import()) reads those. Linear in the log; memory is for the longest
/// context, a second one per session that is open at a time, and some 200 bytes a line.
///
/// ```
/// use pactql::interop::{ImportOptions, import_file};
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
/// As [`import()`](super::import()); those of the files. Nothing of the outcome is left then.
pub fn import_file(
    log: &File,
    spool: File,
    options: &ImportOptions,
) -> Result<Option<Imported>, LogError> {
    let log = Log::new(log, options)?;
    let Some(format) = log.format()? else {
        return Ok(None);
    };
    let spool = Spool::new(spool);
    let mut out = Output::spooled(spool.clone());
    log.read(format, &mut out)?;
    spool.check()?;
    let made = finished(out, Some(format), options)?;
    // The working states come last.
    spool.check()?;
    Ok(Some(made))
}

/// Whether [`import_file`] reads a file, as far as its first lines show it.
#[cfg(feature = "cli")]
pub(crate) fn is_lines_of_a_log(log: &File, options: &ImportOptions) -> io::Result<bool> {
    let format = Log::new(log, options)?.format()?;
    Ok(format.is_some())
}

/// A log in a file.
struct Log<'a> {
    file: RefCell<&'a File>,
    length: u64,
    options: &'a ImportOptions,
    /// Where each record begins, its length, and the number of its line.
    places: RefCell<Vec<(u64, usize, usize)>>,
    /// Why a record could not be read again.
    failure: RefCell<Option<io::Error>>,
}

/// The bytes of the log from a place on, whoever else reads it.
struct Bytes<'b, 'a> {
    log: &'b Log<'a>,
    at: u64,
}

impl Read for Bytes<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.log.length - self.at).unwrap_or(usize::MAX);
        let length = into.len().min(left);
        let mut file = self.log.file.borrow_mut();
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(into.get_mut(..length).unwrap_or_default())?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reads the next line with its line feed; empty at the end.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    from.take(LINE).read_until(b'\n', line)?;
    match line.len() as u64 == LINE && !line.ends_with(b"\n") {
        true => Err(io::Error::other("a line is longer than 1 GiB")),
        false => Ok(()),
    }
}

/// A line as its format reads it.
struct Prepared<'a> {
    text: Cow<'a, str>,
    /// Whether halves of surrogate pairs were replaced in it.
    halved: bool,
    line: Line,
}

impl<'l> Log<'l> {
    fn new(file: &'l File, options: &'l ImportOptions) -> io::Result<Self> {
        Ok(Self {
            length: file.metadata()?.len(),
            file: RefCell::new(file),
            options,
            places: RefCell::default(),
            failure: RefCell::default(),
        })
    }

    fn from(&self, at: u64) -> BufReader<Bytes<'_, 'l>> {
        BufReader::with_capacity(1 << 20, Bytes { log: self, at })
    }

    /// The format of the first lines; `None` if the log is not JSON Lines, or of no known format.
    fn format(&self) -> io::Result<Option<Format>> {
        if self.options.location != MessageLocation::Usual {
            return Ok(None);
        }
        let (mut from, mut line) = (self.from(0), Vec::new());
        let mut head = Vec::new();
        for _ in 0..LOOKED_AT {
            next_line(&mut from, &mut line)?;
            // The next one may be as long as the log.
            if line.is_empty() || !head.is_empty() && head.len() + line.len() > HEAD {
                break;
            }
            head.append(&mut line);
        }
        let Ok(text) = input::text(&head) else {
            return Ok(None);
        };
        let mended = redact::mend_surrogates(text).map(|(text, _)| text);
        let text = mended.as_deref().unwrap_or(text);
        let Ok(checked) = input::check(text, true, &mut Report::default()) else {
            return Ok(None);
        };
        Ok(checked
            .lines()
            .and_then(|records| match self.options.format {
                Some(format) => Some(format),
                None => detect(&records),
            }))
    }

    /// Checks a line, and takes out of it what is to be taken out.
    fn prepare<'a>(
        &self,
        bytes: &'a [u8],
        is_last: bool,
        jumps: &mut Jumps,
        report: &mut Report,
    ) -> Result<Prepared<'a>, InputError> {
        let lenient = self.options.lenient;
        let text = redact::redact(input::text(bytes)?, &self.options.redact, report);
        match input::line(&text, is_last, lenient, jumps) {
            Ok(line) => Ok(Prepared {
                text,
                halved: false,
                line,
            }),
            Err(error) => {
                let Some((mended, _)) = redact::mend_surrogates(&text) else {
                    return Err(error);
                };
                Ok(Prepared {
                    line: input::line(&mended, is_last, lenient, jumps)?,
                    text: mended.into(),
                    halved: true,
                })
            }
        }
    }

    /// Has a format read every line.
    fn read(&self, format: Format, out: &mut Output) -> Result<(), LogError> {
        let mut lines = self.from(0);
        let (mut line, mut number, mut start) = (Vec::new(), 0, 0);
        let mut jumps = Jumps::default();
        let mut reader = reader(format);
        let mut failed: Option<InputError> = None;
        let mut halved = Vec::new();
        loop {
            next_line(&mut lines, &mut line)?;
            if line.is_empty() {
                break;
            }
            number += 1;
            let place = start;
            start += line.len() as u64;
            let is_last = start == self.length && !line.ends_with(b"\n");
            jumps.clear();
            let prepared = match self.prepare(&line, is_last, &mut jumps, &mut out.report) {
                Ok(prepared) => prepared,
                Err(error) => {
                    let error = error.shifted(number as u64 - 1, place);
                    match &mut failed {
                        Some(failed) => failed.extend(error),
                        None => failed = Some(error),
                    }
                    continue;
                }
            };
            if prepared.halved {
                halved.push(number);
            }
            prepared.line.count(number, &mut out.report);
            // After a fault the others are looked for, and nothing is read.
            if let (Line::Value { raw, own }, None) = (prepared.line, &failed) {
                let mut places = self.places.borrow_mut();
                places.push((place, line.len(), number));
                let number_of_record = places.len() - 1;
                drop(places);
                let record = Record {
                    raw: prepared.text.get(raw).unwrap_or_default(),
                    list: "",
                    at: At::Line(number),
                    json: jumps.of(&prepared.text, own),
                    number: number_of_record,
                };
                reader.record(&record, self, out);
            }
        }
        if let Some(failed) = failed {
            return Err(failed.into());
        }
        if !halved.is_empty() {
            out.report.note(halves(&halved));
        }
        reader.finish(self, out);
        match self.failure.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Reads a record a second time.
    fn read_again(&self, number: usize, read: &mut dyn FnMut(&Record<'_>)) -> Result<(), LogError> {
        let place = self.places.borrow().get(number).copied();
        let (start, length, line) = place.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        let mut bytes = vec![0; length];
        self.read_exactly(start, &mut bytes)?;
        let mut jumps = Jumps::default();
        // It was counted the first time.
        let prepared = self.prepare(&bytes, false, &mut jumps, &mut Report::default())?;
        let Line::Value { raw, own } = prepared.line else {
            return Err(io::Error::other("the log has changed while it was read").into());
        };
        read(&Record {
            raw: prepared.text.get(raw).unwrap_or_default(),
            list: "",
            at: At::Line(line),
            json: jumps.of(&prepared.text, own),
            number,
        });
        Ok(())
    }

    fn read_exactly(&self, start: u64, into: &mut [u8]) -> io::Result<()> {
        let mut bytes = Bytes {
            log: self,
            at: start,
        };
        bytes.read_exact(into)
    }
}

impl Records for Log<'_> {
    fn again(&self, number: usize, read: &mut dyn FnMut(&Record<'_>)) {
        if let Err(error) = self.read_again(number, read) {
            let mut failure = self.failure.borrow_mut();
            failure.get_or_insert(match error {
                LogError::Io(error) => error,
                LogError::Input(_) => io::Error::other("the log has changed while it was read"),
            });
        }
    }
}
