//! Finding the message lists of an input, by content or by pointer. File names play no part.

use super::formats::{Format, LogRecord, Looks, RecordAt, is_message, look};
use super::pointer::Pointer;
use super::report::ImportReport;
use super::yaml::{is_cassette, to_json};
use crate::json::{Accepted, Halt, Jumps, Member, Reader, Redaction, ValueType, value_type};
use crate::support::cancel::stopped;
use crate::tree::fault::{Faults, InputError};
use std::borrow::Cow;
use std::io;
use std::ops::Range;

/// Where in an input the messages are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MessageLocation {
    /// Wherever the format has them.
    #[default]
    Usual,
    /// Each match of the pointer is the message list of one session.
    Messages(Pointer),
    /// Each match of the pointer is the whole input of one step. All steps make one session, one
    /// snapshot each.
    Steps(Pointer),
}

/// Options of [`import()`](super::import()).
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The format of the log; `None` to find it by content.
    pub format: Option<Format>,
    /// Where the messages are.
    pub location: MessageLocation,
    /// Whether a log is read of which less than half is understood.
    pub lenient: bool,
    /// Whether a log is refused of which a line is malformed. Else such lines are left out and counted.
    pub strict: bool,
    /// What is taken out of the log before it is read.
    pub redact: Vec<Redaction>,
}

/// Why a log could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The log could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The sessions made of the log could not be written to the spool.
    #[error("what is made of the log cannot be kept: {0}")]
    Spool(#[source] io::Error),
    /// An error of [`import()`](super::import()).
    #[error(transparent)]
    Input(#[from] InputError),
}

/// What reads one document of a log that has several, given where it was.
#[cfg(any(feature = "store", feature = "eval"))]
pub(super) type ReadPart<'a> = dyn FnMut(&str, String) -> Result<(), InputError> + 'a;

#[derive(Debug)]
pub(super) struct List<'a> {
    /// Where it was found; empty for the whole input.
    pub(super) location: String,
    pub(super) elements: Vec<&'a str>,
    /// The members beside it.
    pub(super) beside: Vec<Member<'a>>,
    json: Accepted<'a>,
}

impl<'a> List<'a> {
    pub(super) fn records(&self) -> Vec<LogRecord<'_>> {
        let records = self.elements.iter().enumerate();
        let record = |(number, raw): (usize, &&'a str)| LogRecord {
            raw,
            list: &self.location,
            at: RecordAt::Element(number),
            json: self.json,
            number,
        };
        records.map(record).collect()
    }
}

#[derive(Debug)]
pub(super) enum Found<'a> {
    Records(Vec<LogRecord<'a>>),
    /// Lists of messages deeper in it; at least one.
    Lists(Vec<List<'a>>),
}

pub(super) struct CheckedInput<'a> {
    values: Vec<LogValue<'a>>,
    /// Whether it is JSON Lines, of at least one value; else it is one value.
    lines: bool,
    jumps: Jumps,
}

struct LogValue<'a> {
    /// The number of its line, from 1.
    line: usize,
    raw: &'a str,
    text: &'a str,
    jumps: Range<usize>,
}

impl<'a> CheckedInput<'a> {
    fn json(&'a self, value: &LogValue<'a>) -> Accepted<'a> {
        self.jumps.accepted(value.text, value.jumps.clone())
    }

    pub(super) fn lines(&'a self) -> Option<Vec<LogRecord<'a>>> {
        let records = self.values.iter().enumerate();
        let record = |(number, value): (usize, &'a LogValue<'a>)| {
            self.record(value, value.raw, RecordAt::Line(value.line), number)
        };
        self.lines.then(|| records.map(record).collect())
    }

    /// The values as records of their own, in a list of this name.
    #[cfg(any(feature = "store", feature = "eval"))]
    pub(super) fn whole(&'a self, list: &'a str) -> impl Iterator<Item = LogRecord<'a>> {
        let record = move |value: &'a LogValue<'a>| LogRecord {
            list,
            ..self.record(value, value.raw, RecordAt::Whole, 0)
        };
        self.values.iter().map(record)
    }

    fn record(
        &'a self,
        value: &LogValue<'a>,
        raw: &'a str,
        at: RecordAt,
        number: usize,
    ) -> LogRecord<'a> {
        LogRecord {
            raw,
            list: "",
            at,
            json: self.json(value),
            number,
        }
    }

    pub(super) fn find(
        &'a self,
        options: &ImportOptions,
        report: &mut ImportReport,
    ) -> Result<Found<'a>, InputError> {
        match &options.location {
            MessageLocation::Usual => usual(self, options.format, report),
            MessageLocation::Messages(pointer) | MessageLocation::Steps(pointer) => {
                at_pointer(self, pointer).map(Found::Lists)
            }
        }
    }
}

fn at_pointer<'a>(
    input: &'a CheckedInput<'a>,
    pointer: &Pointer,
) -> Result<Vec<List<'a>>, InputError> {
    let mut lists = Vec::new();
    for whole in &input.values {
        let line = if input.lines {
            format!("line {} ", whole.line)
        } else {
            String::new()
        };
        let json = input.json(whole);
        for (path, value, beside) in pointer.matches(json, whole.raw) {
            let location = format!("{line}{path}");
            if value_type(value) != ValueType::Array {
                return Err(refuse(format!(
                    "expected a list of messages at `{location}`, which `{}` matches",
                    pointer.as_str()
                )));
            }
            lists.push(List {
                location,
                elements: json.elements(value),
                beside,
                json,
            });
        }
    }
    if lists.is_empty() {
        return Err(refuse(format!(
            "expected lists of messages at `{}`, which matches nothing",
            pointer.as_str()
        )));
    }
    Ok(lists)
}

/// The lines, the elements of a list, or the object.
fn records<'a>(input: &'a CheckedInput<'a>) -> Result<Vec<LogRecord<'a>>, InputError> {
    let [value] = &input.values[..] else {
        return Ok(input.lines().unwrap_or_default());
    };
    match value_type(value.raw) {
        _ if input.lines => Ok(input.lines().unwrap_or_default()),
        ValueType::Object => Ok(vec![input.record(value, value.raw, RecordAt::Whole, 0)]),
        ValueType::Array => Ok(input
            .json(value)
            .elements(value.raw)
            .into_iter()
            .enumerate()
            .map(|(at, element)| input.record(value, element, RecordAt::Element(at), at))
            .collect()),
        _ => Err(refuse(
            "expected chat messages: a list, an object with `messages`, or one a line".into(),
        )),
    }
}

/// The records, or lists of messages deeper in an input that has no records of a known format.
fn usual<'a>(
    input: &'a CheckedInput<'a>,
    format: Option<Format>,
    report: &mut ImportReport,
) -> Result<Found<'a>, InputError> {
    let records = records(input)?;
    if format.is_some() || records.is_empty() || known(&look(&records))?.is_some() {
        return Ok(Found::Records(records));
    }
    let first = input.values.first();
    let below = first.and_then(|value| messages_below(input.json(value), value.raw, DEPTH));
    let Some(pointer) = below.and_then(|text| Pointer::parse(&text).ok()) else {
        return Ok(Found::Records(records));
    };
    let lists = at_pointer(input, &pointer)?;
    for list in &lists {
        known(&look(&list.records()))?;
    }
    let place = pointer.as_str();
    report.note(format!(
        "found lists of messages at {place} ({})",
        lists.len()
    ));
    Ok(Found::Lists(lists))
}

fn known(looks: &Looks) -> Result<Option<Format>, InputError> {
    match looks.unread {
        None => Ok(looks.format),
        Some(name) => Err(refuse(format!(
            "this is a log of {name}, a kind that is known and not read"
        ))),
    }
}

pub(super) fn unknown(records: &[LogRecord<'_>]) -> InputError {
    let place = records.first().map(LogRecord::location).unwrap_or_default();
    let place = match &*place {
        "" => "the top",
        place => place,
    };
    refuse(format!(
        "expected a message with a `role`, or an object with `messages`, at {place}; \
         --messages POINTER says where else they are"
    ))
}

const DEPTH: usize = 4;

/// The first pointer to message lists that are elsewhere than usual, such as `/*/traj`.
pub(crate) fn where_messages(bytes: &[u8]) -> Option<String> {
    let text = text(bytes).ok()?;
    let checked = check(
        &text,
        &ImportOptions::default(),
        &mut ImportReport::default(),
    )
    .ok()?;
    // A log that is known and not read has none.
    usual(&checked, None, &mut ImportReport::default()).ok()?;
    let first = checked.values.first()?;
    messages_below(checked.json(first), first.raw, DEPTH)
}

/// Whether an input has records of a log, also of a kind that is not read.
pub(crate) fn is_known_log(bytes: &[u8]) -> bool {
    let options = ImportOptions {
        lenient: true,
        ..ImportOptions::default()
    };
    let Ok(text) = json(bytes) else { return false };
    let checked = check(&text, &options, &mut ImportReport::default());
    checked.is_ok_and(|checked| {
        let looks = records(&checked).map(|records| look(&records));
        looks.is_ok_and(|looks| looks.format.is_some() || looks.unread.is_some())
    })
}

fn messages_below(json: Accepted<'_>, value: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match value_type(value) {
        ValueType::Array => {
            let elements = json.elements(value);
            let is_list = elements
                .iter()
                .any(|element| is_message(&json.members(element)));
            if is_list {
                return Some(String::new());
            }
            messages_below(json, elements.first()?, depth).map(|rest| format!("/*{rest}"))
        }
        ValueType::Object => json.members(value).into_iter().find_map(|(name, member)| {
            // Nodes of snapshot documents have roles, too.
            if matches!(&*name, "root" | "children" | "replace") {
                return None;
            }
            let name = name.replace('~', "~0").replace('/', "~1");
            messages_below(json, member, depth).map(|rest| format!("/{name}{rest}"))
        }),
        _ => None,
    }
}

fn refuse(message: String) -> InputError {
    InputError::at_document(message)
}

pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, InputError> {
    utf8(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes))
}

/// The text of an input; one of YAML as JSON.
pub(super) fn json(bytes: &[u8]) -> Result<Cow<'_, str>, InputError> {
    let text = text(bytes)?;
    if is_cassette(&text) {
        return to_json(&text).map(Cow::Owned);
    }
    Ok(text)
}

/// As [`text`], with U+FFFD alone for each line that is not UTF-8: none of them is JSON.
pub(super) fn text_of_lines(bytes: &[u8]) -> String {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let line = |(at, line): (usize, &'_ [u8])| {
        let line = if at == 0 { text(line) } else { utf8(line) };
        line.map_or_else(|_| "\u{FFFD}\n".to_owned(), Cow::into_owned)
    };
    lines.map(line).collect()
}

/// As [`text`], of a piece that is not the beginning. A letter that is cut off at the end becomes U+FFFD, so its line is
/// not JSON, and waits for its rest.
pub(super) fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, InputError> {
    simdutf8::compat::from_utf8(bytes)
        .map(Cow::Borrowed)
        .or_else(|error| {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let valid = std::str::from_utf8(valid).unwrap_or_default();
            if error.error_len().is_none() {
                return Ok(Cow::Owned(format!("{valid}\u{FFFD}")));
            }
            let mut faults = Faults::default();
            faults.add(valid.len(), "malformed JSON: not UTF-8");
            Err(faults.resolve(valid))
        })
}

/// The values of a log, one or one a line. Unless `options` are strict, malformed lines are left out and counted, also
/// the first, if at least as many are objects.
pub(super) fn check<'a>(
    text: &'a str,
    options: &ImportOptions,
    report: &mut ImportReport,
) -> Result<CheckedInput<'a>, InputError> {
    let mut reader = Reader::new(text);
    let mut jumps = Jumps::default();
    let first = jumps.check(&mut reader);
    // A value on a line alone with something after it is the first of several lines.
    if let Ok((value, _)) = &first
        && reader.peek().is_some()
        && !value.contains('\n')
        && text[..reader.offset()]
            .trim_end_matches([' ', '\t', '\r'])
            .ends_with('\n')
    {
        return lines(text, options.strict, report);
    }
    let (raw, own) = match only_value(text, reader, first) {
        Ok(value) => value,
        Err(error) if options.strict => return Err(error),
        Err(error) => {
            let mut counted = ImportReport::default();
            let found = lines(text, false, &mut counted)?;
            let objects = found
                .values
                .iter()
                .filter(|value| value.raw.starts_with('{'));
            let (objects, (_, bad)) = (objects.count() as u64, counted.understood());
            if objects == 0 || objects < bad && !options.lenient {
                return Err(refused_lines(error, &found, objects + bad));
            }
            report.add(&counted);
            return Ok(found);
        }
    };
    let value = LogValue {
        line: 1,
        raw,
        text,
        jumps: own,
    };
    Ok(CheckedInput {
        values: vec![value],
        lines: false,
        jumps,
    })
}

pub(super) fn mostly_unknown(understood: u64, all: u64) -> InputError {
    refuse(format!(
        "less than half of it is understood, {understood} of {all} lines; `--lenient` imports it"
    ))
}

/// The fault of the first line, and, if the others are of a log, that too few of them are.
fn refused_lines(first: InputError, found: &CheckedInput<'_>, all: u64) -> InputError {
    let records = found.lines().unwrap_or_default();
    if look(&records).format.is_none() {
        return first;
    }
    let mut error = mostly_unknown(records.len() as u64, all);
    error.extend(first);
    error
}

fn only_value<T>(
    text: &str,
    mut reader: Reader<'_>,
    value: Result<T, Halt>,
) -> Result<T, InputError> {
    let ended = value.is_ok() && reader.end().is_ok();
    let mut faults = Faults::default();
    faults.take_problems(&reader);
    match value {
        Ok(value) if ended && faults.is_empty() => Ok(value),
        _ => Err(faults.resolve(text)),
    }
}

/// Checks each line and reports the faults of all. A last line that is broken off is left for later.
fn lines<'a>(
    text: &'a str,
    strict: bool,
    report: &mut ImportReport,
) -> Result<CheckedInput<'a>, InputError> {
    let mut values = Vec::new();
    let mut jumps = Jumps::default();
    let mut failed: Option<InputError> = None;
    let mut start = 0;
    for (index, whole) in text.split_inclusive('\n').enumerate() {
        if stopped() {
            return Err(InputError::cancelled());
        }
        let is_last = start + whole.len() == text.len() && !whole.ends_with('\n');
        match line(whole, is_last, strict, &mut jumps) {
            Ok(LogLine::Value { raw, own }) => values.push(LogValue {
                line: index + 1,
                raw: whole.get(raw).unwrap_or_default(),
                text: whole,
                jumps: own,
            }),
            Ok(other) => other.count(index + 1, report),
            Err(error) => {
                let error = error.shifted(index as u64, start as u64);
                match &mut failed {
                    Some(failed) => failed.extend(error),
                    None => failed = Some(error),
                }
            }
        }
        start += whole.len();
    }
    let checked = CheckedInput {
        values,
        lines: true,
        jumps,
    };
    failed.map_or(Ok(checked), Err)
}

pub(super) enum LogLine {
    Blank,
    Value {
        raw: Range<usize>,
        own: Range<usize>,
    },
    CutOff,
    Malformed,
}

impl LogLine {
    pub(super) fn count(&self, number: usize, report: &mut ImportReport) {
        match self {
            Self::Blank | Self::Value { .. } => {}
            Self::CutOff => report.torn_line(number),
            Self::Malformed => report.malformed_line(),
        }
    }
}

/// Checks a line, which may end in a line feed. `is_last` says that it ends where the log does.
pub(super) fn line(
    whole: &str,
    is_last: bool,
    strict: bool,
    jumps: &mut Jumps,
) -> Result<LogLine, InputError> {
    let line = whole.trim_end_matches(['\n', '\r']);
    if line.trim_ascii().is_empty() {
        return Ok(LogLine::Blank);
    }
    let mut reader = Reader::new(line);
    let value = jumps.check(&mut reader);
    // Only what is not JSON can have been cut.
    let is_cut_off = is_last && value.is_err();
    match only_value(line, reader, value) {
        Ok((raw, own)) => {
            let start = line.len() - line.trim_ascii_start().len();
            let raw = start..start + raw.len();
            Ok(LogLine::Value { raw, own })
        }
        Err(_) if is_cut_off => Ok(LogLine::CutOff),
        Err(error) if strict => Err(error),
        Err(_) => Ok(LogLine::Malformed),
    }
}
