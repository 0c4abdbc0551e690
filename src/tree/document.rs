//! Reads snapshot documents: one JSON document, or JSON Lines (RUNTIME §1).
//!
//! A document is validated as a whole: reading returns it, or every fault with its JSON path.
//! Nothing here knows about sessions; [`super::sequence`] puts documents in order.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use hashbrown::HashSet;
use rayon::prelude::*;

use super::check;
use super::delta::{DeltaPositions, Patch, TreeDelta};
use super::draft::{NodeReader, NodesForm, TreeDraft};
use super::fault::{Faults, InputError, InputFault, Lines, TextPosition};
use super::model::Tree;
use super::seal::unsealed;
use crate::json::{Halt, Reader, named, shorten};
use crate::support::cancel::{self, stopped};

/// What is said of JSON without a document.
pub(crate) const NO_ROOT: &str = "a snapshot document must have a `root`";

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
    pub body: DocumentBody,
    /// Other members, sorted by name in byte order; values are JSON text as written. An explicit
    /// `"working": false` and null members are here too.
    pub extra: Vec<(Box<str>, Box<str>)>,
    /// Where it was read, for messages.
    pub origin: DocumentOrigin,
}

/// Where a document was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentOrigin {
    /// The file, if it came from one.
    pub file: Option<Arc<Path>>,
    /// The line of the file, from 1; 0 if the document is the whole input.
    pub line: u64,
    /// Byte offset of its text in the file.
    pub start: u64,
    pub(crate) marks: MemberMarks,
}

/// Positions of members in the text of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberMarks {
    pub(crate) document: TextPosition,
    /// The values of `base`, `cycle` and `working`; the document's own where absent.
    pub(crate) base: TextPosition,
    pub(crate) cycle: TextPosition,
    pub(crate) working: TextPosition,
}

impl DocumentOrigin {
    /// A fault at a position in the text of the document.
    pub(crate) fn fault(&self, path: &str, at: TextPosition, message: String) -> InputFault {
        InputFault {
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
pub enum DocumentBody {
    Full(Tree),
    Delta(TreeDelta),
    /// What a writer keeps beside its documents, as the JSON text of an object.
    Runtime(Box<str>),
}

/// The only member of the line that a writer keeps beside its documents.
const RUNTIME: &str = "runtime";

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads one document, on the calling thread. A byte order mark at the start is skipped. Linear in the input.
///
/// # Errors
/// Every fault of RUNTIME §1, each with its JSON path.
pub fn read_document(bytes: &[u8]) -> Result<Document, InputError> {
    let rest = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let mark = (bytes.len() - rest.len()) as u64;
    let read = match simdutf8::compat::from_utf8(rest) {
        Ok(text) => read_text(text),
        Err(error) => {
            let valid = rest.get(..error.valid_up_to()).unwrap_or_default();
            let mut faults = Faults::default();
            faults.add(valid.len(), "malformed JSON: not UTF-8");
            Err(faults.resolve(std::str::from_utf8(valid).unwrap_or_default()))
        }
    };
    let mut document = read.map_err(|error| error.shifted(0, mark))?;
    document.origin.start += mark;
    Ok(document)
}

/// Lines read in parallel. Bounds memory: the faults of all of them are held at once.
const LINES_AT_ONCE: usize = 256;

/// Reads JSON Lines: one document a line, blank lines skipped. A closing line is checked and gives no document.
/// The faults of all lines are reported together, with the lines of the file. Lines are read in parallel on the
/// current rayon pool; its size does not change the result. Errors as [`read_document`].
pub fn read_lines(bytes: &[u8]) -> Result<Vec<Document>, InputError> {
    let bytes = unsealed(bytes)?;
    let mut documents = Vec::new();
    let mut failed: Option<InputError> = None;
    let mut lines = lines(bytes);
    let tokens = cancel::here();
    loop {
        let some: Vec<DocumentLine<'_>> = lines.by_ref().take(LINES_AT_ONCE).collect();
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

pub(super) struct DocumentLine<'a> {
    /// From 1.
    pub(super) number: u64,
    pub(super) start: usize,
    pub(super) bytes: &'a [u8],
}

/// The lines of a text that are not blank.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = DocumentLine<'_>> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
    let lines = ends.zip(1..).map(move |(end, number)| {
        let line = DocumentLine {
            number,
            start,
            bytes: &bytes[start..end],
        };
        start = end + 1;
        line
    });
    lines.filter(|line| !line.bytes.trim_ascii().is_empty())
}

struct DocumentMember<'a> {
    name: Cow<'a, str>,
    /// As written; empty if it was read elsewhere.
    value: &'a str,
    /// Offsets of the name and of the value.
    key_at: usize,
    at: usize,
}

impl DocumentMember<'_> {
    /// What the value must be, if it is something else.
    fn expected(&self) -> Option<&'static str> {
        let value = self.value;
        let is_integer = value.parse::<i64>().is_ok();
        let is_null = value == "null";
        let (fits, expected) = match &*self.name {
            "root" => (value.is_empty(), "the root must be an object"),
            "replace" => (value.is_empty(), "replace must be a list of nodes"),
            "remove" => (value.is_empty(), "remove must be a list of ids"),
            "base" => (is_integer, "base must be an integer of 64 bits"),
            "cycle" => (is_integer || is_null, "cycle must be an integer of 64 bits"),
            "working" => (
                is_null || matches!(value, "true" | "false"),
                "working must be true or false",
            ),
            "spec_version" => (
                is_null || value.starts_with('"'),
                "spec_version must be a string",
            ),
            "meta" => (is_null || value.starts_with('{'), "meta must be an object"),
            "usage" => (is_null || value.starts_with('{'), "usage must be an object"),
            _ => return None,
        };
        (!fits).then_some(expected)
    }

    fn is_extra(&self) -> bool {
        match &*self.name {
            "root" | "base" | "replace" | "remove" | "spec_version" => false,
            "cycle" => self.value.parse::<i64>().is_err(),
            "working" => self.value != "true",
            _ => true,
        }
    }
}

#[derive(Default)]
struct Members<'a> {
    list: Vec<DocumentMember<'a>>,
    root: Option<TreeDraft<'a>>,
    replace: TreeDraft<'a>,
    /// The ids, and their offsets.
    remove: Vec<(Box<str>, usize)>,
}

pub(super) fn read_text(text: &str) -> Result<Document, InputError> {
    let mut reader = Reader::new(text);
    let mut faults = Faults::default();
    let opening = reader.peek();
    let start = reader.offset();
    let document = if opening == Some(b'{') {
        let members = Members::read(&mut reader, &mut faults, text.len());
        faults.take_problems(&reader);
        members
            .ok()
            .and_then(|members| members.assemble(text, start, &mut faults))
    } else {
        if let Ok(value) = reader.skip_value()
            && reader.end().is_ok()
        {
            let message = "a snapshot document must be an object with `root`, not";
            faults.add(start, format!("{message} {}", named(value)));
        }
        faults.take_problems(&reader);
        None
    };
    match document {
        Some(document) if faults.is_empty() => Ok(document),
        _ => Err(faults.resolve(text)),
    }
}

impl<'a> Members<'a> {
    fn read(reader: &mut Reader<'a>, faults: &mut Faults, size: usize) -> Result<Self, Halt> {
        let mut members = Self::default();
        reader.begin_object()?;
        let mut names: HashSet<Cow<'a, str>> = HashSet::new();
        let mut first = true;
        while let Some((key, key_at)) = reader.next_key(first)? {
            first = false;
            let name = key.decode();
            if !names.insert(name.clone()) {
                let message = format!("the key `{}` is given twice", shorten(&name));
                faults.add(key_at, message);
                reader.skip_value()?;
                continue;
            }
            let byte = reader.peek();
            let at = reader.offset();
            let mut value = "";
            match (&*name, byte) {
                ("root", Some(b'{')) => {
                    let nodes = NodeReader::new(reader, faults, NodesForm::Nested, size);
                    members.root = Some(nodes.read_root()?);
                }
                ("replace", Some(b'[')) => {
                    let nodes = NodeReader::new(reader, faults, NodesForm::Listed, size);
                    members.replace = nodes.read_list()?;
                }
                ("remove", Some(b'[')) => members.remove = read_ids(reader, faults)?,
                _ => value = reader.skip_value()?,
            }
            let member = DocumentMember {
                name,
                value,
                key_at,
                at,
            };
            if let Some(expected) = member.expected() {
                faults.add(at, format!("{expected}, not {}", named(value)));
            }
            members.list.push(member);
        }
        reader.end()?;
        Ok(members)
    }

    fn get(&self, name: &str) -> Option<&DocumentMember<'a>> {
        self.list.iter().find(|member| member.name == name)
    }

    fn integer(&self, name: &str) -> Option<i64> {
        self.get(name)?.value.parse().ok()
    }

    /// Checks the members against each other and makes the document, which begins at `start` in what was read.
    fn assemble(mut self, text: &str, start: usize, faults: &mut Faults) -> Option<Document> {
        let mut lines = Lines::new(text);
        let document = lines.position(start);
        let at = |members: &Self, name: &str| members.get(name).map(|member| member.at);
        // In the usual order of the members: to go back, `Lines` counts from the beginning.
        let mut mark = |at: Option<usize>| at.map_or(document, |at| lines.position(at));
        let (base, cycle) = (mark(at(&self, "base")), mark(at(&self, "cycle")));
        let body = self.body(base, &mut lines, faults);
        let working = at(&self, "working").map_or(document, |at| lines.position(at));
        let extra = self.list.iter().filter(|member| member.is_extra());
        let extra = extra.map(|member| (Box::from(&*member.name), Box::from(member.value)));
        let mut extra: Vec<(Box<str>, Box<str>)> = extra.collect();
        extra.sort_unstable();
        let Some(body) = body? else {
            let is_node = extra.iter().any(|(name, _)| &**name == "children");
            faults.add(
                0,
                if is_node {
                    "a snapshot document must have a `root`, and this is a node: {\"root\": {…}}"
                } else if matches!(&extra[..], [(name, _)] if &**name == "seal") {
                    "the closing line of a sealed file is its last line"
                } else {
                    NO_ROOT
                },
            );
            return None;
        };
        Some(Document {
            cycle: self.integer("cycle"),
            spec_version: self.get("spec_version").map(|member| member.value.into()),
            working: self.get("working").is_some_and(|it| it.value == "true"),
            extra: match &body {
                DocumentBody::Runtime(_) => Vec::new(),
                DocumentBody::Full(_) | DocumentBody::Delta(_) => extra,
            },
            body,
            origin: DocumentOrigin {
                marks: MemberMarks {
                    document,
                    base,
                    cycle,
                    working,
                },
                ..DocumentOrigin::default()
            },
        })
    }

    /// The content of the document, if it has one; `None` if it has a fault.
    fn body(
        &mut self,
        base_at: TextPosition,
        lines: &mut Lines<'_>,
        faults: &mut Faults,
    ) -> Option<Option<DocumentBody>> {
        let of_delta =
            |it: &&DocumentMember<'_>| matches!(&*it.name, "base" | "replace" | "remove");
        let delta_at = self.list.iter().find(of_delta).map(|member| member.key_at);
        match (self.get("root").is_some(), delta_at) {
            (true, Some(at)) => {
                faults.add(
                    at,
                    "a document must have either `root`, or `base` with `replace` and `remove`",
                );
                None
            }
            (true, None) => Some(Some(DocumentBody::Full(check::finish(
                self.root.take()?,
                faults,
            )))),
            (false, Some(at)) => {
                if self.get("base").is_none() {
                    faults.add(
                        at,
                        "`replace` and `remove` need a `base`, the cycle that they change",
                    );
                }
                let (replace, starts) = Patch::finish(std::mem::take(&mut self.replace), faults);
                let ids = std::mem::take(&mut self.remove);
                check_remove(&ids, &replace, faults);
                Some(Some(DocumentBody::Delta(TreeDelta {
                    base: self.integer("base")?,
                    replace,
                    positions: delta_positions(base_at, &starts, &ids, lines),
                    remove: ids.into_iter().map(|(id, _)| id).collect(),
                })))
            }
            // The line that a writer keeps beside the documents: `{"runtime": {…}}`.
            (false, None) => Some(match &self.list[..] {
                [only] if only.name == RUNTIME && only.value.starts_with('{') => {
                    Some(DocumentBody::Runtime(only.value.into()))
                }
                _ => None,
            }),
        }
    }
}

fn read_ids(reader: &mut Reader<'_>, faults: &mut Faults) -> Result<Vec<(Box<str>, usize)>, Halt> {
    let mut ids = Vec::new();
    reader.take(b'[');
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

/// The positions of the nodes of `replace`, which start at `starts`, and of the ids of `remove`.
fn delta_positions(
    base: TextPosition,
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
