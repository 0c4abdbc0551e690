//! Faults of an input: what is wrong, where in the file, and at which JSON path.
//!
//! While reading, a fault is an offset and a message. Paths and lines are found by a second pass
//! over the text, only if there are faults, so valid documents do not pay for them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::json::{Halt, MAX_NESTING, Problem, ProblemKind, Reader, Text, shorten};
use crate::support::cancel::Cancelled;

/// How many faults are listed. Further ones are counted, so that memory stays linear in the input
/// and a report is readable.
pub const MAX_FAULTS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub(crate) offset: u64,
    /// Line, from 1.
    pub(crate) line: u64,
    /// Column in characters, from 1.
    pub(crate) column: u64,
}

impl Default for TextPosition {
    fn default() -> Self {
        Self {
            offset: 0,
            line: 1,
            column: 1,
        }
    }
}

/// One fault of an input. See the example of [`InputError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputFault {
    /// The file, in reports on sessions, which may have several; `None` where the caller named the input.
    pub file: Option<Arc<Path>>,
    /// JSON path from the document, such as `$.root.children[1].offset`.
    pub path: String,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// Byte offset in the unpacked input.
    pub offset: u64,
    /// Line in the input, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

impl InputFault {
    pub(crate) fn at(path: String, message: String, at: TextPosition) -> Self {
        Self {
            file: None,
            path,
            message,
            offset: at.offset,
            line: at.line,
            column: at.column,
        }
    }
}

impl From<InputFault> for InputError {
    fn from(fault: InputFault) -> Self {
        Self {
            faults: vec![fault],
            more: 0,
        }
    }
}

impl fmt::Display for InputFault {
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

/// All faults of one input, at least one. Its code is [`InputError::CODE`].
///
/// ```
/// let error = pactql::Session::from_slice(b"{\"cycle\": 1}").unwrap_err();
/// println!("line {}: {}", error.faults[0].line, error.faults[0].message);
/// assert_eq!(pactql::error::InputError::CODE, "E_INPUT");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct InputError {
    /// The faults in the order of their positions, at most [`MAX_FAULTS`].
    pub faults: Vec<InputFault>,
    /// How many more there are.
    pub more: usize,
}

impl InputError {
    /// The code of every such error (LANGUAGE §10).
    pub const CODE: &'static str = "E_INPUT";

    /// An error of one fault, at the start of the document.
    pub(crate) fn at_document(message: String) -> Self {
        Self::at_path("$".to_owned(), message)
    }

    /// The reading was cancelled. The caller that cancelled it is given [`Cancelled`] instead.
    pub(crate) fn cancelled() -> Self {
        Self::at_document(Cancelled.to_string())
    }

    /// An error of one fault at a path of a value that has no lines.
    pub(crate) fn at_path(path: String, message: String) -> Self {
        InputFault::at(path, message, TextPosition::default()).into()
    }

    /// Adds the faults of another part of the same input.
    pub(crate) fn extend(&mut self, other: Self) {
        let room = MAX_FAULTS.saturating_sub(self.faults.len());
        self.more += other.more + other.faults.len().saturating_sub(room);
        self.faults.extend(other.faults.into_iter().take(room));
    }

    /// Moves the positions by some lines and bytes, for a part of an input.
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

/// A fault as found. In the message, `{}` is replaced by the path of `other`.
#[derive(Clone, Debug)]
pub(crate) struct RawFault {
    /// Offset of the value or key at fault.
    pub(crate) offset: usize,
    /// Suffix of the path of the value at `offset`: a member with its dot, or empty.
    pub(crate) member: &'static str,
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
    #[cold]
    pub(crate) fn add(&mut self, offset: usize, message: impl fmt::Display) {
        self.push(offset, "", None, message);
    }

    /// Adds a fault; the arguments are the fields of [`RawFault`].
    #[cold]
    pub(crate) fn push(
        &mut self,
        offset: usize,
        member: &'static str,
        other: Option<usize>,
        message: impl fmt::Display,
    ) {
        if self.list.len() == MAX_FAULTS {
            self.more += 1;
            return;
        }
        self.list.push(RawFault {
            offset,
            member,
            message: message.to_string(),
            other,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether further faults are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() == MAX_FAULTS
    }

    pub(crate) fn take_problems(&mut self, reader: &Reader<'_>) {
        for Problem { offset, kind } in reader.problems() {
            let message = match kind {
                ProblemKind::Syntax(what) => format!("malformed JSON: expected {what}"),
                ProblemKind::TooDeep => "values must nest at most 1,000 levels deep".to_owned(),
                ProblemKind::DuplicateKey(key) => format!("the key `{key}` is given twice"),
                ProblemKind::LoneSurrogate => {
                    "a string must have whole surrogate pairs, not half of one".to_owned()
                }
                ProblemKind::NumberRange => "a number must be in the range of a double".to_owned(),
                ProblemKind::Cancelled => Cancelled.to_string(),
            };
            // A halt is always listed, as nothing after it was read.
            if matches!(kind, ProblemKind::Syntax(_) | ProblemKind::TooDeep) && self.is_full() {
                self.list.pop();
                self.more += 1;
            }
            self.push(*offset, "", None, message);
        }
        self.more += reader.uncounted();
    }

    /// Makes the report, in the order of positions. `place` gives the path and the position of an
    /// offset, which may be a number of another kind.
    pub(crate) fn resolve_with(
        self,
        place: impl Fn(usize) -> (String, TextPosition),
    ) -> InputError {
        let faults = self.list.into_iter().map(|raw| {
            let (path, at) = place(raw.offset);
            let message = match raw.other {
                Some(other) => {
                    let other = place(other).0 + raw.member;
                    raw.message.replacen("{}", &other, 1)
                }
                None => raw.message,
            };
            InputFault::at(path + raw.member, message, at)
        });
        let mut faults: Vec<InputFault> = faults.collect();
        faults.sort_by_key(|fault| fault.offset);
        InputError {
            faults,
            more: self.more,
        }
    }

    /// Makes the report on `text`, whose offsets these are.
    pub(crate) fn resolve(self, text: &str) -> InputError {
        let all = self.list.iter();
        let all = all.flat_map(|fault| [Some(fault.offset), fault.other]);
        let mut offsets: Vec<usize> = all.flatten().collect();
        offsets.sort_unstable();
        offsets.dedup();
        let mut lines = Lines::new(text);
        let paths = paths(text, &offsets).into_iter();
        let places: Vec<(String, TextPosition)> = paths
            .zip(&offsets)
            .map(|(path, &offset)| (path, lines.position(offset)))
            .collect();
        self.resolve_with(|offset| {
            let index = offsets.binary_search(&offset).ok();
            let place = index.and_then(|index| places.get(index).cloned());
            place.unwrap_or_default()
        })
    }
}

/// Counts lines and columns. One pass over the text for rising offsets; an offset below the last one starts again.
pub(crate) struct Lines<'a> {
    text: &'a [u8],
    /// The offset counted to.
    at: TextPosition,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text: text.as_bytes(),
            at: TextPosition::default(),
        }
    }

    pub(crate) fn position(&mut self, offset: usize) -> TextPosition {
        let at = &mut self.at;
        if (offset as u64) < at.offset {
            *at = TextPosition::default();
        }
        let end = offset.min(self.text.len());
        let mut passed = self.text.get(at.offset as usize..end).unwrap_or_default();
        while let Some(feed) = memchr::memchr(b'\n', passed) {
            at.line += 1;
            at.column = 1;
            passed = &passed[feed + 1..];
        }
        at.column += if passed.is_ascii() {
            passed.len() as u64
        } else {
            // Bytes that begin a character.
            passed.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
        };
        at.offset = end as u64;
        TextPosition {
            offset: offset as u64,
            ..*at
        }
    }
}

enum PathStep<'a> {
    /// A member of an object; `None` before its first key.
    Member(Option<Text<'a>>),
    Element(usize),
}

/// The JSON paths of the values or keys at `offsets`, which ascend. An offset inside a value has
/// the path of that value; one after the first malformed place has the path of that place.
fn paths(text: &str, offsets: &[usize]) -> Vec<String> {
    let (mut stack, mut found) = (Vec::new(), Vec::with_capacity(offsets.len()));
    // A halt is a fault of the text, which was reported before.
    let _ = walk(&mut Reader::new(text), offsets, &mut stack, &mut found);
    found.resize(offsets.len(), render(&stack));
    found
}

/// Goes through the values of a text, and adds the path of each offset to `found`. Does not recurse.
fn walk<'a>(
    reader: &mut Reader<'a>,
    wanted: &[usize],
    stack: &mut Vec<PathStep<'a>>,
    found: &mut Vec<String>,
) -> Result<(), Halt> {
    // The offsets below `end` that have no path yet are at the place of the stack.
    let mut resolve = |stack: &[PathStep<'_>], end: usize| {
        let below = wanted.partition_point(|&offset| offset < end);
        let more = below.saturating_sub(found.len());
        found.extend((0..more).map(|_| render(stack)));
        found.len() < wanted.len()
    };
    while resolve(stack, 0) {
        let byte = reader.peek();
        resolve(stack, reader.offset() + 1);
        let mut first = false;
        match byte {
            Some(open @ (b'{' | b'[')) if stack.len() <= MAX_NESTING * 2 => {
                first = reader.take(open);
                stack.push(match open {
                    b'{' => PathStep::Member(None),
                    _ => PathStep::Element(0),
                });
            }
            _ => {
                let skipped = reader.skip_value();
                resolve(stack, reader.offset());
                skipped?;
            }
        }
        // To the next member or element, out of the containers that end here.
        loop {
            let next = match stack.last_mut() {
                None => return Ok(()),
                Some(PathStep::Member(name)) => reader.next_key(first)?.map(|(key, at)| {
                    *name = Some(key);
                    at + key.raw.len() + 2
                }),
                Some(PathStep::Element(index)) => {
                    *index += usize::from(!first);
                    reader.next_element(first)?.then_some(0)
                }
            };
            if let Some(end) = next {
                resolve(stack, end);
                break;
            }
            stack.pop();
            first = false;
        }
    }
    Ok(())
}

/// Writes a path: `$.root.children[2]['odd key']`.
fn render(steps: &[PathStep<'_>]) -> String {
    use fmt::Write;
    let mut out = String::from("$");
    for step in steps {
        match step {
            PathStep::Member(None) => {}
            PathStep::Member(Some(name)) => {
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
            PathStep::Element(index) => {
                let _ = write!(out, "[{index}]");
            }
        }
    }
    out
}
