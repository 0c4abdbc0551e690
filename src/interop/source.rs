//! Finding the message lists in an input, by content or by pointer.
//!
//! The input is one JSON value or JSON Lines. Which of them, and which of the usual places the
//! messages are in, is decided by what stands there and never by a file's name.

use super::Place;
use super::shallow::{Sort, elements, member, members, sort};
use crate::tree::fault::{Faults, InputError};
use crate::tree::json::Reader;

/// One list of messages.
#[derive(Debug)]
pub(crate) struct Log<'a> {
    /// Where it was found.
    pub(crate) place: String,
    /// The messages, as written.
    pub(crate) messages: Vec<&'a str>,
    /// Members of the record around `messages`, which are not imported.
    pub(crate) skipped: Vec<String>,
}

/// An input, checked.
enum Source<'a> {
    /// One value.
    Value(&'a str),
    /// One value a line, each with the number of its line (from 1); at least one.
    Lines(Vec<(usize, &'a str)>),
}

/// Finds every message list of an input; at least one.
pub(crate) fn find<'a>(bytes: &'a [u8], place: &Place) -> Result<Vec<Log<'a>>, InputError> {
    let source = check(bytes)?;
    match place {
        Place::Usual => usual(&source),
        Place::Messages(pointer) | Place::Steps(pointer) => {
            let mut logs = Vec::new();
            let records = match source {
                Source::Value(value) => vec![(None, value)],
                Source::Lines(lines) => lines
                    .into_iter()
                    .map(|(number, line)| (Some(number), line))
                    .collect(),
            };
            for (line, record) in records {
                for (path, value) in pointer.matches(record) {
                    let place = match line {
                        Some(number) => format!("line {number} {path}"),
                        None => path,
                    };
                    if sort(value) != Sort::Array {
                        return Err(refuse(format!(
                            "`{}` matches something that is no list of messages, at `{place}`",
                            pointer.as_str()
                        )));
                    }
                    logs.push(Log {
                        place,
                        messages: elements(value),
                        skipped: Vec::new(),
                    });
                }
            }
            if logs.is_empty() {
                return Err(refuse(format!("nothing matches `{}`", pointer.as_str())));
            }
            Ok(logs)
        }
    }
}

/// The lists where the OpenAI shape has them.
fn usual<'a>(source: &Source<'a>) -> Result<Vec<Log<'a>>, InputError> {
    let records: Vec<(String, &'a str)> = match source {
        Source::Lines(lines) => lines
            .iter()
            .map(|(number, line)| (format!("line {number}"), *line))
            .collect(),
        Source::Value(value) => match sort(value) {
            Sort::Object if member(value, "messages").is_some() => vec![(String::new(), *value)],
            Sort::Object => vec![("line 1".to_owned(), *value)],
            Sort::Array => elements(value)
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
    let has_messages =
        |record: &str| member(record, "messages").is_some_and(|list| sort(list) == Sort::Array);
    let is_message = super::openai::is_message;
    let Some((place, first)) = records.first() else {
        // `[]`: a log that nothing was said in.
        return Ok(vec![whole(Vec::new())]);
    };
    if has_messages(first) {
        let mut logs = Vec::with_capacity(records.len());
        for (place, record) in records {
            if !has_messages(record) {
                return Err(refuse(format!(
                    "expected an object with a list `messages` at {place}, as in the records before it"
                )));
            }
            let mut log = Log {
                place,
                messages: Vec::new(),
                skipped: Vec::new(),
            };
            for (name, value) in members(record) {
                if name == "messages" {
                    log.messages = elements(value);
                } else {
                    log.skipped.push(name.into_owned());
                }
            }
            logs.push(log);
        }
        return Ok(logs);
    }
    if records.iter().any(|(_, record)| is_message(record)) {
        let messages = records.into_iter().map(|(_, record)| record);
        return Ok(vec![whole(messages.collect())]);
    }
    let place = if place.is_empty() { "the top" } else { place };
    Err(refuse(format!(
        "no chat messages found: at {place} stands neither a message with a `role` nor an object \
         with `messages`; --messages POINTER says where they are"
    )))
}

fn whole(messages: Vec<&str>) -> Log<'_> {
    Log {
        place: String::new(),
        messages,
        skipped: Vec::new(),
    }
}

fn refuse(message: String) -> InputError {
    InputError::at_document(message)
}

/// Checks the JSON of an input and tells lines from one value.
fn check(bytes: &[u8]) -> Result<Source<'_>, InputError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let mut faults = Faults::default();
        faults.add(valid.len(), "malformed JSON: not UTF-8");
        faults.resolve(std::str::from_utf8(valid).unwrap_or_default())
    })?;
    let mut reader = Reader::new(text);
    let first = reader.skip_value();
    if let Ok(value) = first
        && reader.peek().is_some()
        && !value.contains('\n')
        && text[..reader.offset()]
            .trim_end_matches([' ', '\t', '\r'])
            .ends_with('\n')
    {
        return lines(text);
    }
    let ended = first.is_ok() && reader.end().is_ok();
    let mut faults = Faults::default();
    faults.take_problems(&reader);
    match first {
        Ok(value) if ended && faults.is_empty() => Ok(Source::Value(value)),
        _ => Err(faults.resolve(text)),
    }
}

/// Checks each line, reporting the faults of all.
fn lines(text: &str) -> Result<Source<'_>, InputError> {
    let mut found = Vec::new();
    let mut failed: Option<InputError> = None;
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let length = line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        if !line.trim_ascii().is_empty() {
            let mut reader = Reader::new(line);
            let value = reader.skip_value();
            let ended = value.is_ok() && reader.end().is_ok();
            let mut faults = Faults::default();
            faults.take_problems(&reader);
            match value {
                Ok(value) if ended && faults.is_empty() => found.push((index + 1, value)),
                _ => {
                    let error = faults.resolve(line).shifted(index as u64, start as u64);
                    match &mut failed {
                        Some(failed) => failed.extend(error),
                        None => failed = Some(error),
                    }
                }
            }
        }
        start += length;
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(Source::Lines(found)),
    }
}
