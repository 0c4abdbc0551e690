//! Reads snapshot documents: one JSON document, or JSON Lines (RUNTIME §1).
//!
//! A document is validated as a whole: reading returns it, or every fault with its JSON path.
//! Nothing here knows about sessions; [`super::sequence`] puts documents in order.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::check;
use super::delta::{Delta, DeltaPositions, Patch};
use super::draft::{Draft, Form, NodeReader};
use super::fault::{Fault, Faults, InputError, Lines, Position};
use super::model::Tree;
use super::seal::unsealed;
use crate::json::{Halt, Reader, named, shorten};
use crate::support::cancel::{self, stopped};

/// One snapshot document, with a whole tree or a delta.
#[derive(Debug)]
pub struct Document {
    /// The `cycle` member. A working state has no cycle, whatever it says here.
    pub cycle: Option<i64>,
    /// `spec_version` as JSON text, where given.
    pub spec_version: Option<Box<str>>,
    /// Whether this is the working state.
    pub working: bool,
    /// The tree or the delta, or what a writer keeps.
    pub body: Body,
    /// Other members, sorted by name in byte order; values are JSON text as written. An explicit
    /// `"working": false` and null members are here too.
    pub extra: Vec<(Box<str>, Box<str>)>,
    /// Where it was read, for messages.
    pub origin: Origin,
}

/// Where a document was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file, if it came from one.
    pub file: Option<Arc<Path>>,
    /// The line of the file, from 1; 0 if the document is the whole input.
    pub line: u64,
    /// Byte offset of its text in the file.
    pub start: u64,
    /// Positions of its members.
    pub(crate) marks: Marks,
}

/// Positions of members in the text of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The document itself.
    pub(crate) document: Position,
    /// The values of `base`, `cycle` and `working`; the document's own where absent.
    pub(crate) base: Position,
    pub(crate) cycle: Position,
    pub(crate) working: Position,
}

impl Origin {
    /// A fault at a position in the text of the document.
    pub(crate) fn fault(&self, path: &str, at: Position, message: String) -> Fault {
        Fault {
            file: self.file.clone(),
            path: path.to_owned(),
            message,
            offset: at.offset + self.start,
            line: at.line + self.line.saturating_sub(1),
            column: at.column,
        }
    }

    /// Moves faults of the document to their positions in the file.
    pub(crate) fn place(&self, error: InputError) -> InputError {
        let mut error = error.shifted(self.line.saturating_sub(1), self.start);
        for fault in &mut error.faults {
            fault.file.clone_from(&self.file);
        }
        error
    }

    /// Names this document in a message about `other`; the file only if it is a different one.
    pub(crate) fn seen_from(&self, other: &Self) -> String {
        let line = match self.line {
            0 => self.marks.document.line,
            line => line,
        };
        match &self.file {
            Some(file) if other.file.as_ref() != Some(file) => match self.line {
                0 => file.display().to_string(),
                line => format!("{}:{line}", file.display()),
            },
            None if self.line == 0 => "another document".to_owned(),
            _ => format!("in line {line}"),
        }
    }
}

/// The content of a document.
#[derive(Debug)]
pub enum Body {
    /// A whole tree.
    Full(Tree),
    /// The difference to an earlier document.
    Delta(Delta),
    /// What a writer keeps beside its documents, as the JSON text of an object: no snapshot.
    Runtime(Box<str>),
}

/// The only member of the line that a writer keeps beside its documents.
const RUNTIME: &str = "runtime";

/// The byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads one document, on the calling thread. A byte order mark at the start is skipped. Linear
/// in the input.
///
/// # Errors
/// Every fault of RUNTIME §1, each with its JSON path.
pub fn read_document(bytes: &[u8]) -> Result<Document, InputError> {
    if let Some(rest) = bytes.strip_prefix(MARK) {
        let mark = MARK.len() as u64;
        let mut document = read_document(rest).map_err(|error| error.shifted(0, mark))?;
        document.origin.start += mark;
        return Ok(document);
    }
    match simdutf8::compat::from_utf8(bytes) {
        Ok(text) => read_text(text),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let mut faults = Faults::default();
            faults.add(valid.len(), "malformed JSON: not UTF-8");
            Err(faults.resolve(std::str::from_utf8(valid).unwrap_or_default()))
        }
    }
}

/// Lines read in parallel. Bounds memory: the faults of all of them are held at once.
const LINES_AT_ONCE: usize = 256;

/// Reads JSON Lines: one document a line, blank lines skipped. A closing line is checked and is no document. The faults of all lines are
/// reported together, with the lines of the file. Lines are read in parallel on the current rayon
/// pool; its size does not change the result.
///
/// # Errors
/// As [`read_document`].
pub fn read_lines(bytes: &[u8]) -> Result<Vec<Document>, InputError> {
    let bytes = unsealed(bytes)?;
    let mut documents = Vec::new();
    let mut failed: Option<InputError> = None;
    let mut lines = lines(bytes);
    let tokens = cancel::here();
    loop {
        let some: Vec<Line<'_>> = lines.by_ref().take(LINES_AT_ONCE).collect();
        if some.is_empty() {
            break;
        }
        if stopped() {
            return Err(InputError::cancelled());
        }
        let outcomes: Vec<_> = some
            .par_iter()
            .map(|line| tokens.within(|| read_document(line.bytes)))
            .collect();
        for (outcome, line) in outcomes.into_iter().zip(some) {
            match outcome {
                Ok(mut document) if failed.is_none() => {
                    document.origin.line = line.number;
                    document.origin.start += line.start as u64;
                    documents.push(document);
                }
                Ok(_) => {}
                Err(error) => {
                    let error = error.shifted(line.number - 1, line.start as u64);
                    match &mut failed {
                        Some(failed) => failed.extend(error),
                        None => {
                            documents = Vec::new();
                            failed = Some(error);
                        }
                    }
                }
            }
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(documents),
    }
}

/// A line that is not blank.
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: u64,
    /// Its first byte in the text.
    pub(super) start: usize,
    pub(super) bytes: &'a [u8],
}

/// The lines of a text that are not blank.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
    let lines = ends.zip(1..).map(move |(end, number)| {
        let line = Line {
            number,
            start,
            bytes: &bytes[start..end],
        };
        start = end + 1;
        line
    });
    lines.filter(|line| !line.bytes.trim_ascii().is_empty())
}

/// The members of a document while it is read.
#[derive(Default)]
struct Members<'a> {
    cycle: Option<i64>,
    spec_version: Option<&'a str>,
    working: bool,
    root: Option<Draft<'a>>,
    base: Option<i64>,
    replace: Option<Draft<'a>>,
    remove: Option<Vec<(Box<str>, usize)>>,
    /// Offsets of the document, of `root`, and of the first member that only a delta has.
    start: usize,
    root_at: Option<usize>,
    delta_at: Option<usize>,
    /// Offsets of the values of these members, if given.
    base_at: Option<usize>,
    cycle_at: Option<usize>,
    working_at: Option<usize>,
    extra: Vec<(Box<str>, Box<str>, usize)>,
}

/// Reads the text of one document.
///
/// # Errors
/// As [`read_document`].
pub(super) fn read_text(text: &str) -> Result<Document, InputError> {
    let mut reader = Reader::new(text);
    let mut faults = Faults::default();
    let members = read_members(&mut reader, &mut faults, text.len());
    faults.take_problems(&reader);
    let document = match members {
        Ok(members) => assemble(members, text, &mut faults),
        Err(Halt) => None,
    };
    match document {
        Some(document) if faults.is_empty() => Ok(document),
        _ => Err(faults.resolve(text)),
    }
}

fn read_members<'a>(
    reader: &mut Reader<'a>,
    faults: &mut Faults,
    size: usize,
) -> Result<Members<'a>, Halt> {
    let mut members = Members::default();
    let opening = reader.peek();
    members.start = reader.offset();
    if opening != Some(b'{') {
        let at = members.start;
        let value = reader.skip_value()?;
        reader.end()?;
        let message = "a snapshot document must be an object with `root`, not";
        faults.add(at, format!("{message} {}", named(value)));
        return Ok(members);
    }
    reader.begin_object()?;
    let mut names: Vec<String> = Vec::new();
    let mut first = true;
    while let Some((key, at)) = reader.next_key(first)? {
        first = false;
        let name = key.decode();
        if let "root" | "cycle" | "spec_version" | "working" | "base" | "replace" | "remove" =
            &*name
        {
            if names.iter().any(|other| *other == *name) {
                faults.add(at, format!("the key `{name}` is given twice"));
                reader.skip_value()?;
                continue;
            }
            names.push(name.clone().into_owned());
        }
        members.read(&name, at, reader, faults, size)?;
    }
    reader.end()?;
    members
        .extra
        .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.2.cmp(&b.2)));
    for pair in members.extra.windows(2) {
        if pair[0].0 == pair[1].0 {
            let message = format!("the key `{}` is given twice", shorten(&pair[1].0));
            faults.add(pair[1].2, message);
        }
    }
    if members.root_at.is_none() && members.delta_at.is_none() && !members.is_runtime() {
        let is_node = members.extra.iter().any(|(name, ..)| &**name == "children");
        faults.add(
            0,
            if is_node {
                "a snapshot document must have a `root`, and this is a node: {\"root\": {…}}"
            } else if matches!(&members.extra[..], [(name, ..)] if &**name == "seal") {
                "the closing line of a sealed file is its last line"
            } else {
                "a snapshot document must have a `root`"
            },
        );
    }
    Ok(members)
}

impl<'a> Members<'a> {
    /// Reads the value of the member `name`, whose key is at `at`.
    fn read(
        &mut self,
        name: &str,
        at: usize,
        reader: &mut Reader<'a>,
        faults: &mut Faults,
        size: usize,
    ) -> Result<(), Halt> {
        let byte = reader.peek();
        let offset = reader.offset();
        if let "base" | "replace" | "remove" = name {
            self.delta_at.get_or_insert(at);
        }
        match name {
            "root" => {
                self.root_at = Some(offset);
                if byte == Some(b'{') {
                    let nodes = NodeReader::new(reader, faults, Form::Nested, size);
                    self.root = Some(nodes.read_root()?);
                } else {
                    let value = reader.skip_value()?;
                    refuse(faults, offset, "the root must be an object", value);
                }
            }
            "replace" if byte == Some(b'[') => {
                let nodes = NodeReader::new(reader, faults, Form::Listed, 0);
                self.replace = Some(nodes.read_list()?);
            }
            "replace" => {
                let value = reader.skip_value()?;
                refuse(faults, offset, "replace must be a list of nodes", value);
            }
            "remove" => self.remove = Some(read_ids(reader, faults)?),
            "cycle" | "base" => {
                let (number, number_at) = if name == "base" {
                    (&mut self.base, &mut self.base_at)
                } else {
                    (&mut self.cycle, &mut self.cycle_at)
                };
                *number_at = Some(offset);
                let value = reader.skip_value()?;
                match value.parse::<i64>() {
                    Ok(value) => *number = Some(value),
                    Err(_) if value == "null" && name == "cycle" => self.keep(name, value, at),
                    Err(_) => {
                        let wanted = format!("{name} must be an integer of 64 bits");
                        refuse(faults, offset, &wanted, value);
                    }
                }
            }
            "working" => {
                self.working_at = Some(offset);
                match reader.skip_value()? {
                    "true" => self.working = true,
                    value @ ("false" | "null") => self.keep(name, value, at),
                    value => refuse(faults, offset, "working must be true or false", value),
                }
            }
            "spec_version" => {
                let value = reader.skip_value()?;
                if byte != Some(b'"') && value != "null" {
                    refuse(faults, offset, "spec_version must be a string", value);
                }
                self.spec_version = Some(value);
            }
            "meta" | "usage" => {
                let value = reader.skip_value()?;
                if byte != Some(b'{') && value != "null" {
                    refuse(faults, offset, &format!("{name} must be an object"), value);
                }
                self.keep(name, value, at);
            }
            _ => self.keep(name, reader.skip_value()?, at),
        }
        Ok(())
    }

    /// Whether it is the line that a writer keeps beside the documents: `{"runtime": {…}}`.
    fn is_runtime(&self) -> bool {
        let plain = self.cycle_at.is_none() && self.working_at.is_none();
        plain
            && self.spec_version.is_none()
            && matches!(&self.extra[..], [(name, value, _)] if &**name == RUNTIME && value.starts_with('{'))
    }

    /// Keeps a member as JSON text.
    fn keep(&mut self, name: &str, value: &str, at: usize) {
        self.extra.push((name.into(), value.into(), at));
    }
}

/// Adds the fault of a value that is not what is `wanted`.
#[cold]
fn refuse(faults: &mut Faults, offset: usize, wanted: &str, value: &str) {
    faults.add(offset, format!("{wanted}, not {}", named(value)));
}

/// Reads the ids of `remove`.
fn read_ids(reader: &mut Reader<'_>, faults: &mut Faults) -> Result<Vec<(Box<str>, usize)>, Halt> {
    let mut ids = Vec::new();
    reader.peek();
    let offset = reader.offset();
    if !reader.take(b'[') {
        let value = reader.skip_value()?;
        faults.add(
            offset,
            format!("remove must be a list of ids, not {}", named(value)),
        );
        return Ok(ids);
    }
    let mut first = true;
    while reader.next_element(first)? {
        first = false;
        let byte = reader.peek();
        let at = reader.offset();
        if byte == Some(b'"') {
            let id = reader.string()?;
            ids.push((id.decode().into(), at));
        } else {
            let value = reader.skip_value()?;
            faults.add(at, format!("an id must be a string, not {}", named(value)));
        }
    }
    Ok(ids)
}

/// Checks the members against each other and makes the document. `text` is what was read.
fn assemble(mut members: Members<'_>, text: &str, faults: &mut Faults) -> Option<Document> {
    let mut lines = Lines::new(text);
    let document = lines.position(members.start);
    // In the usual order of the members, as going back counts the lines again.
    let mut mark = |at: Option<usize>| at.map_or(document, |at| lines.position(at));
    let mut marks = Marks {
        document,
        base: mark(members.base_at),
        cycle: mark(members.cycle_at),
        working: document,
    };
    let body = match (members.root_at, members.delta_at) {
        (Some(_), Some(at)) => {
            faults.add(
                at,
                "a document must have either `root`, or `base` with `replace` and `remove`",
            );
            None
        }
        (Some(_), None) => members
            .root
            .map(|draft| Body::Full(check::finish(draft, faults))),
        (None, Some(at)) => {
            if members.base_at.is_none() {
                faults.add(
                    at,
                    "`replace` and `remove` need a `base`, the cycle that they change",
                );
            }
            let (replace, starts) = Patch::finish(members.replace.unwrap_or_default(), faults);
            let ids = members.remove.unwrap_or_default();
            check_remove(&ids, &replace, faults);
            let positions = delta_positions(marks.base, &starts, &ids, &mut lines);
            members.base.map(|base| {
                Body::Delta(Delta {
                    base,
                    replace,
                    remove: ids.into_iter().map(|(id, _)| id).collect(),
                    positions,
                })
            })
        }
        (None, None) if members.is_runtime() => {
            let runtime = members.extra.pop();
            runtime.map(|(_, value, _)| Body::Runtime(value))
        }
        (None, None) => None,
    };
    if let Some(at) = members.working_at {
        marks.working = lines.position(at);
    }
    Some(Document {
        cycle: members.cycle,
        spec_version: members.spec_version.map(Into::into),
        working: members.working,
        body: body?,
        extra: members
            .extra
            .into_iter()
            .map(|(name, value, _)| (name, value))
            .collect(),
        origin: Origin {
            marks,
            ..Origin::default()
        },
    })
}

/// The positions of the nodes of `replace`, which start at `starts`, and of the ids of `remove`.
fn delta_positions(
    base: Position,
    starts: &[usize],
    remove: &[(Box<str>, usize)],
    lines: &mut Lines<'_>,
) -> DeltaPositions {
    let mut place = |offset: usize| lines.position(offset);
    let nodes = starts.iter().copied();
    let ids = remove.iter().map(|(_, at)| *at);
    // First the list that comes first, so that the lines are counted once.
    let (replace, remove) = if remove.first().map(|(_, at)| at) < starts.first() {
        let remove = ids.map(&mut place).collect();
        (nodes.map(place).collect(), remove)
    } else {
        (nodes.map(&mut place).collect(), ids.map(place).collect())
    };
    DeltaPositions {
        base,
        replace,
        remove,
    }
}

/// Reports ids that are removed twice, or replaced as well.
fn check_remove(remove: &[(Box<str>, usize)], replace: &Patch, faults: &mut Faults) {
    let mut sorted: Vec<&(Box<str>, usize)> = remove.iter().collect();
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        if pair[0].0 == pair[1].0 {
            let message = format!("the id `{}` is removed twice", shorten(&pair[1].0));
            faults.add(pair[1].1, message);
        }
    }
    let rows = 0..replace.nodes.rows.len() as u32;
    for id in rows.map(|row| replace.nodes.id(row)) {
        if let Ok(index) = sorted.binary_search_by(|entry| (*entry.0).cmp(id)) {
            let message = format!("the id `{}` is both replaced and removed", shorten(id));
            faults.add(sorted[index].1, message);
        }
    }
}
