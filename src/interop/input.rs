//! Finding the message lists of an input, by content or by pointer. File names play no part.

use super::openai::is_message;
use super::pointer::Pointer;
use crate::tree::fault::{Faults, InputError};
use crate::tree::json::{Halt, Reader};
use crate::tree::shallow::{ValueType, elements, get, members, value_type};

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

/// One list of messages.
#[derive(Debug)]
pub(super) struct Log<'a> {
    /// Where it was found; empty for the whole input.
    pub(super) location: String,
    /// The raw messages.
    pub(super) messages: Vec<&'a str>,
    /// Members of the record around `messages`, which are not imported.
    pub(super) skipped: Vec<String>,
}

impl<'a> Log<'a> {
    fn new(location: String, messages: Vec<&'a str>) -> Self {
        Self {
            location,
            messages,
            skipped: Vec::new(),
        }
    }
}

/// An input whose JSON was checked.
enum Input<'a> {
    Value(&'a str),
    /// JSON Lines: at least one value, each with its line number (from 1).
    Lines(Vec<(usize, &'a str)>),
}

/// Finds every message list of an input; at least one.
pub(super) fn find<'a>(
    bytes: &'a [u8],
    location: &MessageLocation,
) -> Result<Vec<Log<'a>>, InputError> {
    let input = check(bytes)?;
    match location {
        MessageLocation::Usual => usual(&input),
        MessageLocation::Messages(pointer) | MessageLocation::Steps(pointer) => {
            at_pointer(input, pointer)
        }
    }
}

fn at_pointer<'a>(input: Input<'a>, pointer: &Pointer) -> Result<Vec<Log<'a>>, InputError> {
    let records: Vec<(String, &str)> = match input {
        Input::Value(value) => vec![(String::new(), value)],
        Input::Lines(lines) => lines
            .into_iter()
            .map(|(number, line)| (format!("line {number} "), line))
            .collect(),
    };
    let mut logs = Vec::new();
    for (line, record) in records {
        for (path, value) in pointer.matches(record) {
            let location = format!("{line}{path}");
            if value_type(value) != ValueType::Array {
                return Err(refuse(format!(
                    "expected a list of messages at `{location}`, which `{}` matches",
                    pointer.as_str()
                )));
            }
            logs.push(Log::new(location, elements(value)));
        }
    }
    if logs.is_empty() {
        return Err(refuse(format!(
            "expected lists of messages at `{}`, which matches nothing",
            pointer.as_str()
        )));
    }
    Ok(logs)
}

/// The lists in the places where the OpenAI format has them.
fn usual<'a>(input: &Input<'a>) -> Result<Vec<Log<'a>>, InputError> {
    let records: Vec<(String, &'a str)> = match input {
        Input::Lines(lines) => lines
            .iter()
            .map(|(number, line)| (format!("line {number}"), *line))
            .collect(),
        Input::Value(value) => match value_type(value) {
            ValueType::Object if get(&members(value), "messages").is_some() => {
                vec![(String::new(), *value)]
            }
            ValueType::Object => vec![("line 1".to_owned(), *value)],
            ValueType::Array => elements(value)
                .into_iter()
                .enumerate()
                .map(|(index, element)| (format!("/{index}"), element))
                .collect(),
            _ => {
                return Err(refuse(
                    "expected chat messages: a list, an object with `messages`, or one a line"
                        .into(),
                ));
            }
        },
    };
    let Some((location, first)) = records.first() else {
        // `[]` is an empty conversation.
        return Ok(vec![Log::new(String::new(), Vec::new())]);
    };
    if has_messages(first) {
        return records.into_iter().map(unwrap).collect();
    }
    if records.iter().any(|(_, record)| is_message(record)) {
        let messages = records.into_iter().map(|(_, record)| record);
        return Ok(vec![Log::new(String::new(), messages.collect())]);
    }
    let location = if location.is_empty() {
        "the top"
    } else {
        location
    };
    Err(refuse(format!(
        "expected a message with a `role`, or an object with `messages`, at {location}; \
         --messages POINTER says where else they are"
    )))
}

/// The pointer to the message lists of an input that has them elsewhere than usual, such as
/// `/*/traj`; of several places the first. It is looked for in the first element of each list.
#[cfg(feature = "cli")]
pub(crate) fn where_messages(bytes: &[u8]) -> Option<String> {
    match check(bytes).ok()? {
        Input::Value(value) => messages_below(value, 4),
        Input::Lines(lines) => messages_below(lines.first()?.1, 4),
    }
}

#[cfg(feature = "cli")]
fn messages_below(value: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match value_type(value) {
        ValueType::Array => {
            let elements = elements(value);
            if elements.iter().any(|element| is_message(element)) {
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

fn has_messages(record: &str) -> bool {
    get(&members(record), "messages").is_some_and(|list| value_type(list) == ValueType::Array)
}

/// Takes the message list out of a record `{"messages": […], …}`.
fn unwrap((location, record): (String, &str)) -> Result<Log<'_>, InputError> {
    if !has_messages(record) {
        return Err(refuse(format!(
            "expected an object with a list `messages` at {location}, as in the records before it"
        )));
    }
    let mut log = Log::new(location, Vec::new());
    for (name, value) in members(record) {
        if name == "messages" {
            log.messages = elements(value);
        } else {
            log.skipped.push(name.into_owned());
        }
    }
    Ok(log)
}

fn refuse(message: String) -> InputError {
    InputError::at_document(message)
}

/// Checks the JSON of an input and decides whether it is one value or JSON Lines.
fn check(bytes: &[u8]) -> Result<Input<'_>, InputError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let mut faults = Faults::default();
        faults.add(valid.len(), "malformed JSON: not UTF-8");
        faults.resolve(std::str::from_utf8(valid).unwrap_or_default())
    })?;
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
        return lines(text);
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

/// Checks each line and reports the faults of all.
fn lines(text: &str) -> Result<Input<'_>, InputError> {
    let mut found = Vec::new();
    let mut failed: Option<InputError> = None;
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let length = line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        if !line.trim_ascii().is_empty() {
            let mut reader = Reader::new(line);
            let value = reader.skip_value();
            match only_value(line, reader, value) {
                Ok(value) => found.push((index + 1, value)),
                Err(error) => {
                    let error = error.shifted(index as u64, start as u64);
                    match &mut failed {
                        Some(failed) => failed.extend(error),
                        None => failed = Some(error),
                    }
                }
            }
        }
        start += length;
    }
    failed.map_or(Ok(Input::Lines(found)), Err)
}
