//! Finding the message lists of an input, by content or by pointer. File names play no part.

use super::formats::{At, Format, Record, detect, is_message};
use super::pointer::Pointer;
use super::redact::Redaction;
use super::report::{Fate, Report};
use crate::tree::fault::{Faults, InputError};
use crate::tree::json::{Halt, Reader};
use crate::tree::shallow::{ValueType, elements, members, value_type};

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
    /// Whether a log is read of which less than half is understood, or some lines of which are no
    /// JSON.
    pub lenient: bool,
    /// What is taken out of the log before it is read.
    pub redact: Vec<Redaction>,
}

/// One list of messages.
#[derive(Debug)]
pub(super) struct List<'a> {
    /// Where it was found; empty for the whole input.
    pub(super) location: String,
    /// The raw messages.
    pub(super) elements: Vec<&'a str>,
}

impl List<'_> {
    /// Its elements as records.
    pub(super) fn records(&self) -> Vec<Record<'_>> {
        let mut records = Vec::with_capacity(self.elements.len());
        for (index, raw) in self.elements.iter().enumerate() {
            records.push(Record {
                raw,
                list: &self.location,
                at: At::Element(index),
            });
        }
        records
    }
}

/// What an input holds.
#[derive(Debug)]
pub(super) enum Found<'a> {
    /// The records of one log.
    Records(Vec<Record<'a>>),
    /// Lists of messages deeper in it; at least one.
    Lists(Vec<List<'a>>),
}

/// An input whose JSON was checked.
enum Input<'a> {
    Value(&'a str),
    /// JSON Lines: at least one value, each with its line number (from 1).
    Lines(Vec<(usize, &'a str)>),
}

/// Finds the records of an input, or its lists of messages.
pub(super) fn find<'a>(
    text: &'a str,
    options: &ImportOptions,
    report: &mut Report,
) -> Result<Found<'a>, InputError> {
    let input = check(text, options.lenient, report)?;
    match &options.location {
        MessageLocation::Usual => usual(input, options.format, report),
        MessageLocation::Messages(pointer) | MessageLocation::Steps(pointer) => {
            at_pointer(&input, pointer).map(Found::Lists)
        }
    }
}

fn at_pointer<'a>(input: &Input<'a>, pointer: &Pointer) -> Result<Vec<List<'a>>, InputError> {
    let records: Vec<(String, &str)> = match input {
        Input::Value(value) => vec![(String::new(), *value)],
        Input::Lines(lines) => lines
            .iter()
            .map(|(number, line)| (format!("line {number} "), *line))
            .collect(),
    };
    let mut lists = Vec::new();
    for (line, record) in records {
        for (path, value) in pointer.matches(record) {
            let location = format!("{line}{path}");
            if value_type(value) != ValueType::Array {
                return Err(refuse(format!(
                    "expected a list of messages at `{location}`, which `{}` matches",
                    pointer.as_str()
                )));
            }
            lists.push(List {
                location,
                elements: elements(value),
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

/// The records, or lists of messages deeper in an input that has no records of a known format.
fn usual<'a>(
    input: Input<'a>,
    format: Option<Format>,
    report: &mut Report,
) -> Result<Found<'a>, InputError> {
    let of = |raw, at| Record { raw, list: "", at };
    let records: Vec<Record<'a>> = match &input {
        Input::Lines(lines) => lines
            .iter()
            .map(|(number, line)| of(line, At::Line(*number)))
            .collect(),
        Input::Value(value) => match value_type(value) {
            ValueType::Object => vec![of(value, At::Whole)],
            ValueType::Array => elements(value)
                .into_iter()
                .enumerate()
                .map(|(index, element)| of(element, At::Element(index)))
                .collect(),
            _ => {
                return Err(refuse(
                    "expected chat messages: a list, an object with `messages`, or one a line"
                        .into(),
                ));
            }
        },
    };
    if format.is_some() || records.is_empty() || detect(&records).is_some() {
        return Ok(Found::Records(records));
    }
    let below = match &input {
        Input::Value(value) => messages_below(value, DEPTH),
        Input::Lines(lines) => lines
            .first()
            .and_then(|(_, line)| messages_below(line, DEPTH)),
    };
    let Some(pointer) = below.and_then(|text| Pointer::parse(&text).ok()) else {
        return Ok(Found::Records(records));
    };
    let lists = at_pointer(&input, &pointer)?;
    let place = pointer.as_str();
    report.note(format!(
        "found lists of messages at {place} ({})",
        lists.len()
    ));
    Ok(Found::Lists(lists))
}

/// The error for records of no known format.
pub(super) fn unknown(records: &[Record<'_>]) -> InputError {
    let place = records.first().map(Record::location).unwrap_or_default();
    let place = match &*place {
        "" => "the top",
        place => place,
    };
    refuse(format!(
        "expected a message with a `role`, or an object with `messages`, at {place}; \
         --messages POINTER says where else they are"
    ))
}

/// How deep lists of messages are looked for.
const DEPTH: usize = 4;

/// The pointer to the message lists of an input that has them elsewhere than usual, such as
/// `/*/traj`; of several places the first. It is looked for in the first element of each list.
#[cfg(feature = "cli")]
pub(crate) fn where_messages(bytes: &[u8]) -> Option<String> {
    match check(text(bytes).ok()?, false, &mut Report::default()).ok()? {
        Input::Value(value) => messages_below(value, DEPTH),
        Input::Lines(lines) => messages_below(lines.first()?.1, DEPTH),
    }
}

fn messages_below(value: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match value_type(value) {
        ValueType::Array => {
            let elements = elements(value);
            if elements.iter().any(|element| is_message(&members(element))) {
                return Some(String::new());
            }
            messages_below(elements.first()?, depth).map(|rest| format!("/*{rest}"))
        }
        ValueType::Object => members(value).into_iter().find_map(|(name, member)| {
            // Nodes of snapshot documents have roles, too.
            if matches!(&*name, "root" | "children" | "replace") {
                return None;
            }
            let name = name.replace('~', "~0").replace('/', "~1");
            messages_below(member, depth).map(|rest| format!("/{name}{rest}"))
        }),
        _ => None,
    }
}

fn refuse(message: String) -> InputError {
    InputError::at_document(message)
}

/// The text of an input.
pub(super) fn text(bytes: &[u8]) -> Result<&str, InputError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let mut faults = Faults::default();
        faults.add(valid.len(), "malformed JSON: not UTF-8");
        faults.resolve(std::str::from_utf8(valid).unwrap_or_default())
    })
}

/// Checks the JSON of an input and decides whether it is one value or JSON Lines.
fn check<'a>(text: &'a str, lenient: bool, report: &mut Report) -> Result<Input<'a>, InputError> {
    let mut reader = Reader::new(text);
    let first = reader.skip_value();
    // A value on a line alone with something after it is the first of several lines.
    if let Ok(value) = first
        && reader.peek().is_some()
        && !value.contains('\n')
        && text[..reader.offset()]
            .trim_end_matches([' ', '\t', '\r'])
            .ends_with('\n')
    {
        return lines(text, lenient, report);
    }
    Ok(Input::Value(only_value(text, reader, first)?))
}

/// `value`, if it was read without a problem and `reader` finds nothing after it.
fn only_value<'a>(
    text: &str,
    mut reader: Reader<'a>,
    value: Result<&'a str, Halt>,
) -> Result<&'a str, InputError> {
    let ended = value.is_ok() && reader.end().is_ok();
    let mut faults = Faults::default();
    faults.take_problems(&reader);
    match value {
        Ok(value) if ended && faults.is_empty() => Ok(value),
        _ => Err(faults.resolve(text)),
    }
}

/// Checks each line and reports the faults of all. A last line that is broken off is left for
/// later; with `lenient`, lines that are no JSON are counted.
fn lines<'a>(text: &'a str, lenient: bool, report: &mut Report) -> Result<Input<'a>, InputError> {
    let mut found = Vec::new();
    let mut failed: Option<InputError> = None;
    let mut start = 0;
    for (index, whole) in text.split_inclusive('\n').enumerate() {
        let line = whole.trim_end_matches(['\n', '\r']);
        if !line.trim_ascii().is_empty() {
            let mut reader = Reader::new(line);
            let value = reader.skip_value();
            match only_value(line, reader, value) {
                Ok(value) => found.push((index + 1, value)),
                Err(_) if start + whole.len() == text.len() && !whole.ends_with('\n') => {
                    report.line(Fate::Skipped, TORN);
                    report.note(format!(
                        "line {} is not whole: it waits for its rest",
                        index + 1
                    ));
                }
                Err(_) if lenient => report.line(Fate::Skipped, "no JSON"),
                Err(error) => {
                    let error = error.shifted(index as u64, start as u64);
                    match &mut failed {
                        Some(failed) => failed.extend(error),
                        None => failed = Some(error),
                    }
                }
            }
        }
        start += whole.len();
    }
    failed.map_or(Ok(Input::Lines(found)), Err)
}

/// How a last line that is broken off is counted.
const TORN: &str = "not whole yet";
