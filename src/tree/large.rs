//! Reads one large document by windows, so that its text is never in memory as a whole.
//!
//! The nodes are read as ever ([`super::draft`]), up to a member at which too little of the window is left; there the
//! reading is put aside, and goes on with the next window. Other members wait until the end and are read as a document of
//! their own. Only documents without a fault are read here: whatever is wrong or unusual, there is `None`, and the reader of
//! the text as a whole says what it is. This file must not know where the text comes from.

use std::borrow::Cow;

use super::check;
use super::document::{Document, DocumentBody, MemberMarks, read_text};
use super::draft::{DraftField, FieldValue, NodeReader, NodesForm, OpenNode, TreeDraft};
use super::fault::{Faults, Lines, TextPosition};
use super::model::NONE;
use super::payload::Fields;
use crate::json::Reader;

pub(super) struct Large {
    /// Bytes to reserve for the fields of nodes.
    size: usize,
    stage: ReadingStage,
    /// The nodes, whose reading was put aside between two members.
    draft: TreeDraft<'static>,
    open: Vec<OpenNode>,
    /// The fields of the open nodes: names, and values as written.
    fields: Vec<(String, String)>,
    claimed: Vec<u32>,
    /// The members but the root, which is empty, as the text of a document.
    others: String,
    begun: bool,
    marks: MemberMarks,
    /// The position of the next window in the document.
    position: TextPosition,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadingStage {
    Start,
    Member,
    Nodes,
    End,
}

pub(super) struct WindowRead {
    /// Bytes of it that were read.
    pub(super) bytes: usize,
    /// Whether the document is over, apart from white space.
    pub(super) done: bool,
}

impl Large {
    /// A document of about this many bytes; 0 if that is not known.
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            stage: ReadingStage::Start,
            draft: TreeDraft::default(),
            open: Vec::new(),
            fields: Vec::new(),
            claimed: Vec::new(),
            others: String::from("{"),
            begun: false,
            marks: MemberMarks::default(),
            position: TextPosition::default(),
        }
    }

    /// Reads the next window, up to the first member at `stop` or after it.
    pub(super) fn read(&mut self, text: &str, stop: usize) -> Option<WindowRead> {
        // Those that were put aside are borrowed by this window; those that this one leaves open are copied.
        let put_aside = std::mem::take(&mut self.fields);
        let mut reader = Reader::new(text);
        let mut faults = Faults::default();
        let mut lines = Lines::new(text);
        let from = self.position;
        let mut place = |at: usize| moved(from, lines.position(at));
        while reader.offset() < stop {
            match self.stage {
                ReadingStage::Start => {
                    reader.peek();
                    let at = place(reader.offset());
                    self.marks = MemberMarks {
                        document: at,
                        base: at,
                        cycle: at,
                        working: at,
                    };
                    reader.begin_object().ok()?;
                    self.stage = ReadingStage::Member;
                }
                ReadingStage::Member => {
                    let Some((key, _)) = reader.next_key(!self.begun).ok()? else {
                        self.stage = ReadingStage::End;
                        continue;
                    };
                    self.begun = true;
                    let byte = reader.peek();
                    let at = reader.offset();
                    match &*key.decode() {
                        "root" if byte == Some(b'{') && self.draft.tree.rows.is_empty() => {
                            self.keep("root", "{}");
                            self.stage = ReadingStage::Nodes;
                        }
                        "root" | "base" | "replace" | "remove" => return None,
                        "cycle" => self.marks.cycle = place(at),
                        "working" => self.marks.working = place(at),
                        _ => {}
                    }
                    if self.stage == ReadingStage::Member {
                        let value = reader.skip_value().ok()?;
                        self.keep(key.raw, value);
                    }
                }
                ReadingStage::Nodes => {
                    if self.read_nodes(&mut reader, &mut faults, &put_aside, stop)? {
                        self.stage = ReadingStage::Member;
                    }
                }
                ReadingStage::End => {
                    if reader.peek().is_some() {
                        return None;
                    }
                    break;
                }
            }
        }
        let bytes = reader.offset();
        self.position = place(bytes);
        let valid = faults.is_empty() && reader.problems().is_empty();
        valid.then_some(WindowRead {
            bytes,
            done: self.stage == ReadingStage::End,
        })
    }

    /// Goes on with the nodes, up to the first member at `stop` or after it. Returns whether they are over.
    fn read_nodes<'a>(
        &mut self,
        reader: &mut Reader<'a>,
        faults: &mut Faults,
        put_aside: &'a [(String, String)],
        stop: usize,
    ) -> Option<bool> {
        let fields = put_aside.iter().map(|(name, value)| DraftField {
            name: Cow::Borrowed(&**name),
            value: FieldValue::of_json(value),
            at: 0,
        });
        let mut nodes = NodeReader {
            reader,
            faults,
            draft: std::mem::take(&mut self.draft),
            form: NodesForm::Nested,
            open: std::mem::take(&mut self.open),
            fields: fields.collect(),
            decoded: String::new(),
        };
        if nodes.draft.tree.rows.is_empty() {
            nodes.draft.payload.reserve(self.size);
            nodes.open_node(NONE).ok()?;
        }
        let done = nodes.read_open_nodes(stop).ok()?;
        let claims = nodes.draft.claims.iter();
        self.claimed.extend(claims.map(|claim| claim.row));
        let fields = nodes.fields.into_iter();
        let written = |value: FieldValue<'_>| value.written().into_owned();
        let fields = fields.map(|it| (it.name.into_owned(), written(it.value)));
        self.fields = fields.collect();
        self.open = nodes.open;
        // What refers to the text goes: only messages need it.
        self.draft = TreeDraft {
            tree: nodes.draft.tree,
            payload: nodes.draft.payload,
            ..TreeDraft::default()
        };
        Some(done)
    }

    fn keep(&mut self, name: &str, value: &str) {
        if self.others.len() > 1 {
            self.others.push(',');
        }
        for part in ["\"", name, "\":", value] {
            self.others.push_str(part);
        }
    }

    pub(super) fn finish(mut self) -> Option<Document> {
        self.others.push('}');
        let mut document = read_text(&self.others).ok()?;
        let mut draft = self.draft;
        draft.payload.shrink_to_fit();
        if !self.claimed.iter().all(|row| fits(&draft, *row)) {
            return None;
        }
        let mut faults = Faults::default();
        let tree = check::finish(draft, &mut faults);
        match &mut document.body {
            DocumentBody::Full(whole) if faults.is_empty() => *whole = tree,
            _ => return None,
        }
        document.origin.marks = self.marks;
        Some(document)
    }
}

/// Whether the `parent_id` of a row is the id of its parent.
fn fits(draft: &TreeDraft<'_>, row: u32) -> bool {
    let Some(found) = draft.tree.rows.get(row as usize) else {
        return false;
    };
    let record = found.payload.get(&draft.payload);
    let claim = Fields::new(record).find(|(name, _)| *name == "parent_id");
    let id = claim.and_then(|(_, value)| value.text());
    id.is_some_and(|id| found.parent != NONE && draft.tree.id(found.parent) == id)
}

/// A position in a window that begins at another one.
fn moved(from: TextPosition, within: TextPosition) -> TextPosition {
    TextPosition {
        offset: from.offset + within.offset,
        line: from.line + within.line - 1,
        column: match within.line {
            1 => from.column + within.column - 1,
            _ => within.column,
        },
    }
}
