//! Reading snapshot documents: one JSON document, or JSON Lines (RUNTIME §1).
//!
//! A document is read and validated whole: either every rule holds, or the error lists every
//! fault with its JSON path and nothing is kept. This room knows nothing of sessions
//! but where each document was read; their order is settled by [`super::sequence`].

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::check;
use super::draft::{Draft, Form, NodeReader};
use super::fault::{Fault, Faults, InputError, Lines, Position};
use super::json::{Halt, Reader, shorten};
use super::model::Tree;
use super::patch::Patch;

/// One snapshot document, or one line that says how a snapshot differs from an earlier one.
#[derive(Debug)]
pub struct Document {
    /// The cycle it says it is of. The working state takes none, whatever it says.
    pub cycle: Option<i64>,
    /// `spec_version` as JSON text, where given.
    pub spec_version: Option<Box<str>>,
    /// Whether this is the working state.
    pub working: bool,
    /// The tree, or how it differs.
    pub body: Body,
    /// Other members of the document, sorted by name in byte order, values as JSON text in the
    /// spelling they came in. An explicit `"working": false` and null members stand here too.
    pub extra: Vec<(Box<str>, Box<str>)>,
    /// Where it was read; for messages.
    pub origin: Origin,
}

/// Where a document was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file, if it came from one.
    pub file: Option<Arc<Path>>,
    /// The line of the file, from 1; 0 where the document is the whole input.
    pub line: u64,
    /// The byte of the file its text begins with.
    pub start: u64,
    /// Where it says what it is, in its own text.
    pub(crate) marks: Marks,
}

/// Positions in the text of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The document itself.
    pub(crate) document: Position,
    /// The values of `base`, `cycle` and `working`; the document where it has none.
    pub(crate) base: Position,
    pub(crate) cycle: Position,
    pub(crate) working: Position,
}

impl Origin {
    /// A fault at a position of the document.
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

    /// Puts faults found in the document alone where it stands in its file.
    pub(crate) fn place(&self, error: InputError) -> InputError {
        let mut error = error.shifted(self.line.saturating_sub(1), self.start);
        for fault in &mut error.faults {
            fault.file.clone_from(&self.file);
        }
        error
    }

    /// Names this place in a message about another one: the file only where it is another.
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

/// What a document holds.
#[derive(Debug)]
pub enum Body {
    /// A whole tree.
    Full(Tree),
    /// The difference to an earlier document of the same file.
    Delta(Delta),
}

/// A difference to the snapshot of cycle `base`: first `replace`, then `remove`.
#[derive(Debug)]
pub struct Delta {
    /// The cycle of the snapshot this starts from.
    pub base: i64,
    /// Nodes put in, moved or replaced.
    pub replace: Patch,
    /// Ids that go, each with all below it.
    pub remove: Vec<Box<str>>,
    /// Where all these stand.
    pub(crate) places: DeltaPlaces,
}

/// Positions of a difference in the text of its document; for messages.
#[derive(Debug, Default)]
pub(crate) struct DeltaPlaces {
    /// The value of `base`.
    pub(crate) base: Position,
    /// The nodes of `replace`.
    pub(crate) replace: Vec<Position>,
    /// The ids of `remove`.
    pub(crate) remove: Vec<Position>,
}

/// The byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads one document. A byte order mark at the start is passed over. Linear in the input. A
/// document of 2 MiB or more is read by the threads of the current rayon pool together; the
/// outcome is the same whatever their number.
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

/// How many lines are read at once. The errors of these lines are all held until the first hundred
/// of them are picked, so this bounds memory.
const LINES_AT_ONCE: usize = 256;

/// Reads JSON Lines: one document a line, blank lines passed over. Faults carry the line of the
/// file, and the faults of all lines are reported together. Lines are read in parallel on the
/// current rayon pool; the outcome is the same whatever its size.
///
/// # Errors
/// As [`read_document`].
pub fn read_lines(bytes: &[u8]) -> Result<Vec<Document>, InputError> {
    let mut documents = Vec::new();
    let mut failed: Option<InputError> = None;
    let mut lines = lines(bytes);
    loop {
        let some: Vec<Line<'_>> = lines.by_ref().take(LINES_AT_ONCE).collect();
        if some.is_empty() {
            break;
        }
        let outcomes: Vec<_> = some
            .par_iter()
            .map(|line| read_document(line.bytes))
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
                            // What was read will not be used.
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
struct Line<'a> {
    /// From 1.
    number: u64,
    /// Its first byte in the file.
    start: usize,
    bytes: &'a [u8],
}

/// The lines of a text that are not blank.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let (mut start, mut number) = (0usize, 0u64);
    std::iter::from_fn(move || {
        while let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            number += 1;
            let line = Line {
                number,
                start,
                bytes: &rest[..end],
            };
            start += end + 1;
            if !line.bytes.trim_ascii().is_empty() {
                return Some(line);
            }
        }
        None
    })
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
    /// Offsets of the document, of `root` and of the first member that only a delta has.
    start: usize,
    root_at: Option<usize>,
    delta_at: Option<usize>,
    /// Offsets of the values of these members, where given.
    base_at: Option<usize>,
    cycle_at: Option<usize>,
    working_at: Option<usize>,
    extra: Vec<(Box<str>, Box<str>, usize)>,
}

fn read_text(text: &str) -> Result<Document, InputError> {
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
        reader.skip_value()?;
        reader.end()?;
        faults.add(at, "a snapshot document must be an object with `root`");
        return Ok(members);
    }
    reader.begin_object()?;
    let mut names: Vec<(String, usize)> = Vec::new();
    let mut first = true;
    while let Some((key, at)) = reader.next_key(first)? {
        first = false;
        let name = key.decode();
        if let "root" | "cycle" | "spec_version" | "working" | "base" | "replace" | "remove" =
            &*name
        {
            // Few known names: a second one shows at once, and its value is only checked.
            if names.iter().any(|(other, _)| *other == *name) {
                faults.add(at, format!("the key `{name}` stands twice"));
                reader.skip_value()?;
                continue;
            }
            names.push((name.clone().into_owned(), at));
        }
        let byte = reader.peek();
        let offset = reader.offset();
        match &*name {
            "root" => {
                members.root_at = Some(offset);
                if byte == Some(b'{') {
                    let nodes = NodeReader::new(reader, faults, Form::Nested, size);
                    members.root = Some(nodes.read_root()?);
                } else {
                    reader.skip_value()?;
                    faults.add(offset, "the root must be an object");
                }
            }
            "replace" => {
                members.delta_at.get_or_insert(at);
                if byte == Some(b'[') {
                    let nodes = NodeReader::new(reader, faults, Form::Listed, 0);
                    members.replace = Some(nodes.read_list()?);
                } else {
                    reader.skip_value()?;
                    faults.add(offset, "replace must be an array of nodes");
                }
            }
            "remove" => {
                members.delta_at.get_or_insert(at);
                members.remove = Some(read_ids(reader, faults)?);
            }
            "cycle" | "base" => {
                if *name == *"base" {
                    members.delta_at.get_or_insert(at);
                    members.base_at = Some(offset);
                } else {
                    members.cycle_at = Some(offset);
                }
                let value = reader.skip_value()?;
                match value.parse::<i64>() {
                    Ok(number) if *name == *"base" => members.base = Some(number),
                    Ok(number) => members.cycle = Some(number),
                    Err(_) if value == "null" && *name == *"cycle" => {
                        members.extra.push(((*name).into(), value.into(), at));
                    }
                    Err(_) => faults.add(offset, format!("{name} must be an integer of 64 bits")),
                }
            }
            "working" => {
                members.working_at = Some(offset);
                match reader.skip_value()? {
                    "true" => members.working = true,
                    value @ ("false" | "null") => {
                        members.extra.push(((*name).into(), value.into(), at));
                    }
                    _ => faults.add(offset, "working must be true or false"),
                }
            }
            "spec_version" => {
                let value = reader.skip_value()?;
                if byte != Some(b'"') && value != "null" {
                    faults.add(offset, "spec_version must be a string");
                }
                members.spec_version = Some(value);
            }
            _ => {
                let value = reader.skip_value()?;
                members.extra.push(((*name).into(), value.into(), at));
            }
        }
    }
    reader.end()?;
    members
        .extra
        .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.2.cmp(&b.2)));
    for pair in members.extra.windows(2) {
        if pair[0].0 == pair[1].0 {
            let message = format!("the key `{}` stands twice", shorten(&pair[1].0));
            faults.add(pair[1].2, message);
        }
    }
    if members.root_at.is_none() && members.delta_at.is_none() {
        faults.add(0, "a snapshot document must have a `root`");
    }
    Ok(members)
}

/// The ids of `remove`.
fn read_ids(reader: &mut Reader<'_>, faults: &mut Faults) -> Result<Vec<(Box<str>, usize)>, Halt> {
    let mut ids = Vec::new();
    reader.peek();
    let offset = reader.offset();
    if !reader.take(b'[') {
        reader.skip_value()?;
        faults.add(offset, "remove must be an array of ids");
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
            reader.skip_value()?;
            faults.add(at, "an id must be a string");
        }
    }
    Ok(ids)
}

/// Settles what the members say together. `text` is what they were read from.
fn assemble(members: Members<'_>, text: &str, faults: &mut Faults) -> Option<Document> {
    let mut lines = Lines::new(text);
    let document = lines.place(members.start);
    // In the order in which documents have them, mostly.
    let mut mark = |at: Option<usize>| at.map_or(document, |at| lines.place(at));
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
                "a document has either `root` or `base`, `replace`, `remove`",
            );
            None
        }
        (Some(_), None) => members
            .root
            .map(|draft| Body::Full(check::finish(draft, faults))),
        (None, Some(at)) => {
            if members.base_at.is_none() {
                faults.add(at, "`replace` and `remove` need a `base`");
            }
            let (replace, starts) = Patch::finish(members.replace.unwrap_or_default(), faults);
            let ids = members.remove.unwrap_or_default();
            check_remove(&ids, &replace, faults);
            let mut places = DeltaPlaces {
                base: marks.base,
                ..DeltaPlaces::default()
            };
            let mut place = |offset: usize| lines.place(offset);
            let removed = ids.iter().map(|(_, at)| *at);
            // The list that stands first goes first, so that the text is gone over once.
            if ids.first().map(|(_, at)| at) < starts.first() {
                places.remove = removed.map(&mut place).collect();
                places.replace = starts.into_iter().map(place).collect();
            } else {
                places.replace = starts.into_iter().map(&mut place).collect();
                places.remove = removed.map(place).collect();
            }
            members.base.map(|base| {
                Body::Delta(Delta {
                    base,
                    replace,
                    remove: ids.into_iter().map(|(id, _)| id).collect(),
                    places,
                })
            })
        }
        (None, None) => None,
    };
    if let Some(at) = members.working_at {
        marks.working = lines.place(at);
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

/// No id is removed twice, or replaced as well.
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
