//! Faults of an input: what is wrong, where in the file, and at which JSON path.
//!
//! While reading, a fault is an offset and a few words. Paths are found afterwards, by one
//! further pass over the text that runs only when there is something to report; so reading a
//! good document pays nothing for them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::json::{Problem, ProblemKind, Reader, Text, shorten};

/// How many faults are listed; further ones are counted, so that memory stays linear in the
/// input and a report can be read.
pub const MAX_FAULTS: usize = 100;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Byte offset.
    pub(crate) offset: u64,
    /// Line, from 1.
    pub(crate) line: u64,
    /// Column in characters, from 1.
    pub(crate) column: u64,
}

impl Default for Position {
    /// The start.
    fn default() -> Self {
        Self {
            offset: 0,
            line: 1,
            column: 1,
        }
    }
}

/// One fault of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file it is in, where the report is of a session, which may have several; `None` where
    /// whoever has the report knows what was read.
    pub file: Option<Arc<Path>>,
    /// JSON path from the document, such as `$.root.children[1].offset`.
    pub path: String,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// Byte offset in the input (unpacked).
    pub offset: u64,
    /// Line in the input, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            message,
            line,
            column,
            ..
        } = self;
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
        }
        write!(f, "{line}:{column}: {path}: {message}")
    }
}

/// Everything that is wrong with one input. Never empty. Its code is [`InputError::CODE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The faults in the order of their places, at most [`MAX_FAULTS`].
    pub faults: Vec<Fault>,
    /// How many more there are.
    pub more: usize,
}

impl InputError {
    /// The code of every such error (LANGUAGE §10).
    pub const CODE: &'static str = "E_INPUT";

    /// An error of one fault that has no better place than the document.
    pub(crate) fn at_document(message: String) -> Self {
        Self {
            faults: vec![Fault {
                file: None,
                path: "$".to_owned(),
                message,
                offset: 0,
                line: 1,
                column: 1,
            }],
            more: 0,
        }
    }

    /// Adds the faults of another part of the same input.
    pub(crate) fn extend(&mut self, other: Self) {
        let room = MAX_FAULTS.saturating_sub(self.faults.len());
        self.more += other.more + other.faults.len().saturating_sub(room);
        self.faults.extend(other.faults.into_iter().take(room));
    }

    /// Moves the places by a line number and a byte offset, for a part of an input.
    pub(crate) fn shifted(mut self, lines: u64, bytes: u64) -> Self {
        for fault in &mut self.faults {
            fault.line += lines;
            fault.offset += bytes;
        }
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for InputError {}

/// A fault as reading finds it. In the message, `{}` stands for the path of `other`.
#[derive(Clone, Debug)]
pub(crate) struct RawFault {
    /// Offset of the value (or key) at fault.
    pub(crate) offset: usize,
    /// What to add to the path of the value at `offset`.
    pub(crate) member: &'static str,
    /// The message.
    pub(crate) message: String,
    /// Offset of another value the message names.
    pub(crate) other: Option<usize>,
}

/// Collects faults while a document is read; keeps the first [`MAX_FAULTS`] and counts the rest.
#[derive(Default, Debug)]
pub(crate) struct Faults {
    list: Vec<RawFault>,
    more: usize,
}

impl Faults {
    /// Adds a fault of the value at `offset`.
    #[cold]
    pub(crate) fn add(&mut self, offset: usize, message: impl Into<String>) {
        self.push(offset, "", None, || message.into());
    }

    /// Adds a fault of the member `member` (with its dot) of the value at `offset`, perhaps
    /// naming the place of another value as `{}`.
    #[cold]
    pub(crate) fn push(
        &mut self,
        offset: usize,
        member: &'static str,
        other: Option<usize>,
        message: impl FnOnce() -> String,
    ) {
        if self.list.len() == MAX_FAULTS {
            self.more += 1;
            return;
        }
        self.list.push(RawFault {
            offset,
            member,
            message: message(),
            other,
        });
    }

    /// Whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether no further fault would be listed.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() == MAX_FAULTS
    }

    /// Takes over what the JSON reader found.
    pub(crate) fn take_problems(&mut self, reader: &Reader<'_>) {
        for Problem { offset, kind } in reader.problems() {
            let message = match kind {
                ProblemKind::Syntax(what) => format!("malformed JSON: expected {what}"),
                ProblemKind::TooDeep => "nested more than 1000 levels deep".to_owned(),
                ProblemKind::DuplicateKey(key) => format!("the key `{key}` stands twice"),
                ProblemKind::LoneSurrogate => "half of a surrogate pair in a string".to_owned(),
                ProblemKind::NumberRange => "a number outside the range of a double".to_owned(),
            };
            // A halt is always listed: it says why there is nothing more to report.
            if matches!(kind, ProblemKind::Syntax(_) | ProblemKind::TooDeep) && self.is_full() {
                self.list.pop();
                self.more += 1;
            }
            self.push(*offset, "", None, || message);
        }
        self.more += reader.uncounted();
    }

    /// Makes the report of faults whose offsets are numbers of another kind; `place` gives the
    /// path and the position of one. Faults come in the order of their positions.
    pub(crate) fn resolve_with(self, place: impl Fn(usize) -> (String, Position)) -> InputError {
        let faults = self.list.into_iter().map(|raw| {
            let (path, at) = place(raw.offset);
            let message = match raw.other {
                Some(other) => {
                    let other = place(other).0 + raw.member;
                    raw.message.replacen("{}", &other, 1)
                }
                None => raw.message,
            };
            Fault {
                file: None,
                path: path + raw.member,
                message,
                offset: at.offset,
                line: at.line,
                column: at.column,
            }
        });
        let mut faults: Vec<Fault> = faults.collect();
        faults.sort_by_key(|fault| fault.offset);
        InputError {
            faults,
            more: self.more,
        }
    }

    /// Finds paths and lines. `text` is what was read.
    pub(crate) fn resolve(mut self, text: &str) -> InputError {
        self.list.sort_by_key(|fault| fault.offset);
        let mut offsets: Vec<usize> = self
            .list
            .iter()
            .flat_map(|fault| [Some(fault.offset), fault.other])
            .flatten()
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        let paths = paths(text, &offsets);
        let path = |offset: usize| {
            let found = offsets.binary_search(&offset).ok();
            found
                .and_then(|index| paths.get(index).cloned())
                .unwrap_or_default()
        };
        let mut lines = Lines::new(text);
        let faults = self
            .list
            .iter()
            .map(|fault| {
                let at = lines.place(fault.offset);
                let message = match fault.other {
                    Some(other) => {
                        let place = path(other) + fault.member;
                        fault.message.replacen("{}", &place, 1)
                    }
                    None => fault.message.clone(),
                };
                Fault {
                    file: None,
                    path: path(fault.offset) + fault.member,
                    message,
                    offset: at.offset,
                    line: at.line,
                    column: at.column,
                }
            })
            .collect();
        InputError {
            faults,
            more: self.more,
        }
    }
}

/// Counts lines and columns: one pass over a text for rising offsets. An offset below the one
/// before it begins anew.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    /// How far was counted.
    at: usize,
    line: u64,
    column: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
            line: 1,
            column: 1,
        }
    }

    /// The position of an offset.
    pub(crate) fn place(&mut self, offset: usize) -> Position {
        if offset < self.at {
            (self.at, self.line, self.column) = (0, 1, 1);
        }
        let end = offset.min(self.text.len());
        let mut passed = self.text.get(self.at..end).unwrap_or_default();
        while let Some(feed) = memchr::memchr(b'\n', passed) {
            self.line += 1;
            self.column = 1;
            passed = &passed[feed + 1..];
        }
        self.column += if passed.is_ascii() {
            passed.len() as u64
        } else {
            // Bytes that begin a character.
            passed.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
        };
        self.at = end;
        Position {
            offset: offset as u64,
            line: self.line,
            column: self.column,
        }
    }
}

/// One step of a path.
enum Step<'a> {
    /// A member of an object; `None` before its first key.
    Member(Option<Text<'a>>),
    Element(usize),
}

/// The JSON paths of the values (or keys) at these offsets, which rise. An offset inside a value
/// has that value's path. The text may be malformed: then the path leads to where that begins.
fn paths(text: &str, offsets: &[usize]) -> Vec<String> {
    let mut found = Vec::with_capacity(offsets.len());
    let mut reader = Reader::new(text);
    let mut stack: Vec<Step<'_>> = Vec::new();
    let mut wanted = offsets.iter().copied().peekable();
    // Walks the values with a stack of its own; ends at the first malformed place.
    let mut fresh = true;
    'walk: loop {
        if wanted.peek().is_none() {
            break;
        }
        // A value comes next.
        let byte = reader.peek();
        let start = reader.offset();
        while wanted.next_if(|&at| at <= start).is_some() {
            found.push(render(&stack));
        }
        let opened = match byte {
            Some(open @ (b'{' | b'[')) if stack.len() <= super::json::MAX_NESTING * 2 => {
                reader.take(open);
                fresh = true;
                stack.push(if open == b'{' {
                    Step::Member(None)
                } else {
                    Step::Element(0)
                });
                true
            }
            _ => {
                let outcome = reader.skip_value();
                let end = reader.offset();
                while wanted.next_if(|&at| at < end).is_some() {
                    found.push(render(&stack));
                }
                if outcome.is_err() {
                    break 'walk;
                }
                false
            }
        };
        if !opened {
            fresh = false;
        }
        loop {
            let more = match stack.last_mut() {
                None => break 'walk,
                Some(Step::Member(name)) => match reader.next_key(fresh) {
                    Ok(Some((key, at))) => {
                        *name = Some(key);
                        while wanted
                            .next_if(|&offset| offset <= at + key.raw.len() + 1)
                            .is_some()
                        {
                            found.push(render(&stack));
                        }
                        true
                    }
                    Ok(None) => false,
                    Err(_) => break 'walk,
                },
                Some(Step::Element(index)) => {
                    if !fresh {
                        *index += 1;
                    }
                    match reader.next_element(fresh) {
                        Ok(more) => more,
                        Err(_) => break 'walk,
                    }
                }
            };
            if more {
                break;
            }
            stack.pop();
            fresh = false;
        }
    }
    let last = render(&stack);
    found.resize(offsets.len(), last);
    found
}

/// Writes a path: `$.root.children[2]['odd key']`.
fn render(steps: &[Step<'_>]) -> String {
    use fmt::Write;
    let mut out = String::from("$");
    for step in steps {
        match step {
            Step::Member(None) => {}
            Step::Member(Some(name)) => {
                let name = name.decode();
                let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if plain {
                    out.push('.');
                    out.push_str(&name);
                } else {
                    let name = shorten(&name).replace('\\', "\\\\").replace('\'', "\\'");
                    let _ = write!(out, "['{name}']");
                }
            }
            Step::Element(index) => {
                let _ = write!(out, "[{index}]");
            }
        }
    }
    out
}
