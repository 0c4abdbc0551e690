//! Nodes as read: JSON text becomes the rows of a draft, in the order of the text.
//!
//! One pass. What needs the whole tree (classes, canonical order, duplicate ids) is the task of
//! [`super::check`]. The fields of a node may come in any order, also after its children, so they
//! wait on a stack shared by all open nodes and become a payload record when the node closes.

use std::borrow::Cow;

use super::alias::TAGS;
use super::fault::Faults;
use super::model::{NONE, NodeHeaders, Present, Tree, TreeRow, header};
use super::payload::{CONTENT, RecordPlace, write_field};
use crate::json::{
    Halt, JsonValue, MAX_NESTING, Reader, Text, elements, named, not_integer, shorten,
};

/// A `parent_id` of the text, which [`super::check`] compares with the parent.
pub(crate) struct ParentClaim<'a> {
    pub(crate) row: u32,
    pub(crate) id: Text<'a>,
    pub(crate) offset: usize,
}

/// Nodes as read: rows in the order of the text, classes not yet set.
#[derive(Default)]
pub(crate) struct TreeDraft<'a> {
    pub(crate) tree: Tree,
    /// The bytes of [`Tree::payload`] to be.
    pub(crate) payload: String,
    /// Offset of each row's object in the text, for messages.
    pub(crate) starts: Vec<usize>,
    /// Every `parent_id` that is not null.
    pub(crate) claims: Vec<ParentClaim<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodesForm {
    /// A tree: `children` nest; `parent_id` is an ordinary field and is checked.
    Nested,
    /// A list: `parent_id` names the parent and is not kept as a field; children are refused.
    Listed,
}

pub(super) struct DraftField<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) value: FieldValue<'a>,
    pub(super) at: usize,
}

#[derive(Clone, Copy)]
pub(super) enum FieldValue<'a> {
    Text(Text<'a>),
    /// Any other value, as written.
    Other(&'a str),
}

impl<'a> FieldValue<'a> {
    pub(super) fn of_json(json: &'a str) -> Self {
        match json.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
            Some(raw) => Self::Text(Text {
                raw,
                escaped: raw.contains('\\'),
            }),
            None => Self::Other(json),
        }
    }

    pub(super) fn written(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Owned(["\"", text.raw, "\""].concat()),
            Self::Other(json) => Cow::Borrowed(json),
        }
    }

    /// The value; a text with escapes is decoded into `decoded`.
    fn get(self, decoded: &'a mut String) -> JsonValue<'a> {
        match self {
            Self::Text(Text {
                raw,
                escaped: false,
            }) => JsonValue::Text(raw),
            Self::Text(text) => {
                text.decode_into(decoded);
                JsonValue::Text(decoded)
            }
            Self::Other(json) => JsonValue::stored(json),
        }
    }
}

pub(super) struct OpenNode {
    row: u32,
    /// Where its fields start on the stack of fields.
    fields: usize,
    /// The known names read so far, see [`name`].
    seen: u32,
    /// Whether a member was read.
    started: bool,
}

/// A bit for each name with a meaning.
mod name {
    /// The bit of the first of [`header::NUMBERS`](super::header::NUMBERS); their bits are those of
    /// [`Present`](super::Present).
    pub(super) const NUMBERS: u32 = 1;
    /// The bit of the first of [`header::TEXTS`](super::header::TEXTS).
    pub(super) const TEXTS: u32 = 1 << 8;
    pub(super) const ID: u32 = 1 << 12;
    pub(super) const CHILDREN: u32 = 1 << 13;
    pub(super) const PARENT_ID: u32 = 1 << 14;
    /// An id was given but is invalid, so it is not reported as missing too.
    pub(super) const BAD_ID: u32 = 1 << 15;
}

pub(crate) struct NodeReader<'r, 'a> {
    pub(super) reader: &'r mut Reader<'a>,
    pub(super) faults: &'r mut Faults,
    pub(super) draft: TreeDraft<'a>,
    pub(super) form: NodesForm,
    pub(super) open: Vec<OpenNode>,
    pub(super) fields: Vec<DraftField<'a>>,
    /// A text with escapes, decoded.
    pub(super) decoded: String,
}

impl<'r, 'a> NodeReader<'r, 'a> {
    /// `size` is the length of the text, which the payload is reserved for.
    pub(crate) fn new(
        reader: &'r mut Reader<'a>,
        faults: &'r mut Faults,
        form: NodesForm,
        size: usize,
    ) -> Self {
        let mut draft = TreeDraft::default();
        draft.payload.reserve(size);
        Self {
            reader,
            faults,
            draft,
            form,
            // Most documents are small: a difference of a few nodes grows neither.
            open: Vec::with_capacity(8),
            fields: Vec::with_capacity(32),
            decoded: String::new(),
        }
    }

    /// Reads the root object of a document and everything below it.
    pub(crate) fn read_root(mut self) -> Result<TreeDraft<'a>, Halt> {
        self.open_node(NONE)?;
        self.read_open_nodes(usize::MAX)?;
        Ok(self.finish())
    }

    pub(crate) fn read_list(mut self) -> Result<TreeDraft<'a>, Halt> {
        if !self.reader.take(b'[') {
            return Err(self.reader.expected("an array of nodes"));
        }
        let mut first = true;
        while self.reader.next_element(first)? {
            first = false;
            if self.reader.peek() == Some(b'{') {
                self.open_node(NONE)?;
                self.read_open_nodes(usize::MAX)?;
            } else {
                self.not_a_node()?;
            }
        }
        Ok(self.finish())
    }

    fn finish(self) -> TreeDraft<'a> {
        let mut draft = self.draft;
        draft.payload.shrink_to_fit();
        draft
    }

    fn row(&mut self, row: u32) -> &mut TreeRow {
        &mut self.draft.tree.rows[row as usize]
    }

    /// Takes the brace of a node and adds its row.
    pub(super) fn open_node(&mut self, parent: u32) -> Result<(), Halt> {
        self.reader.peek();
        let start = self.reader.offset();
        let level = self.open.len();
        if level >= MAX_NESTING {
            return Err(self.reader.too_deep(start));
        }
        self.reader.begin_object()?;
        let tree = &mut self.draft.tree;
        let row = u32::try_from(tree.rows.len()).unwrap_or(NONE);
        if row >= NONE - 1 {
            return Err(self.reader.expected("fewer nodes than 2^32"));
        }
        let opened = tree.push(NodeHeaders::default(), RecordPlace::default());
        (opened.parent, opened.level) = (parent, level as u32);
        self.draft.starts.push(start);
        self.open.push(OpenNode {
            row,
            fields: self.fields.len(),
            seen: 0,
            started: false,
        });
        Ok(())
    }

    /// Skips an element that is not a node and reports it.
    fn not_a_node(&mut self) -> Result<(), Halt> {
        self.reader.peek();
        let at = self.reader.offset();
        let value = self.reader.skip_value()?;
        let message = format!("a node must be an object, not {}", named(value));
        self.faults.add(at, message);
        Ok(())
    }

    /// Reads until all open nodes are closed, or to the first member at `stop` or after it. Returns whether they are.
    pub(super) fn read_open_nodes(&mut self, stop: usize) -> Result<bool, Halt> {
        while let Some(top) = self.open.last_mut() {
            if self.reader.offset() >= stop {
                return Ok(false);
            }
            self.reader.go_on()?;
            let first = !top.started;
            top.started = true;
            let row = top.row;
            if let Some((key, at)) = self.reader.next_key(first)? {
                if !self.member(row, key, at)? {
                    continue;
                }
                self.next_child(row, true)?;
            } else {
                self.close_node()?;
                if let Some(parent) = self.open.last().map(|top| top.row) {
                    self.next_child(parent, false)?;
                }
            }
        }
        Ok(true)
    }

    /// In an array of children: opens the next node, or takes the end of the array.
    fn next_child(&mut self, parent: u32, mut first: bool) -> Result<(), Halt> {
        while self.reader.next_element(first)? {
            first = false;
            if self.reader.peek() == Some(b'{') {
                return self.open_node(parent);
            }
            self.not_a_node()?;
        }
        Ok(())
    }

    /// Reads one member. Returns true if its value is an array of children; then only its bracket was read.
    #[inline]
    fn member(&mut self, row: u32, key: Text<'a>, at: usize) -> Result<bool, Halt> {
        let name = key.decode();
        // Most frequent names first.
        match name.as_bytes() {
            b"id" => self.id(row, at)?,
            b"children" => return self.children(row, at),
            b"nodeType" => self.text(row, header::NODE_TYPE, at)?,
            b"role" => self.text(row, header::ROLE, at)?,
            b"kind" => self.text(row, header::KIND, at)?,
            b"key" => self.text(row, header::KEY, at)?,
            b"offset" => self.integer(row, header::OFFSET, at)?,
            b"ttl" => self.integer(row, header::TTL, at)?,
            b"priority" => self.integer(row, header::PRIORITY, at)?,
            b"cycle" => self.integer(row, header::CYCLE, at)?,
            b"created_at_ns" => self.integer(row, header::CREATED_AT_NS, at)?,
            b"creation_index" => self.integer(row, header::CREATION_INDEX, at)?,
            b"parent_id" => self.parent_id(row, at)?,
            _ => self.field(name, at)?,
        }
        Ok(false)
    }

    /// Marks a name of the top node as read. Returns false, and reports it, if it was before.
    #[inline]
    fn see(&mut self, bit: u32, at: usize) -> bool {
        let Some(top) = self.open.last_mut() else {
            return false;
        };
        if top.seen & bit != 0 {
            self.faults.add(at, "the key is given twice");
            return false;
        }
        top.seen |= bit;
        true
    }

    #[inline]
    fn keep(&mut self, name: Cow<'a, str>, value: FieldValue<'a>, at: usize) {
        self.fields.push(DraftField { name, value, at });
    }

    fn id(&mut self, row: u32, at: usize) -> Result<(), Halt> {
        let first = self.see(name::ID, at);
        let byte = self.reader.peek();
        let offset = self.reader.offset();
        if byte != Some(b'"') {
            let value = self.reader.skip_value()?;
            if value == "null" {
                self.keep(Cow::Borrowed("id"), FieldValue::Other(value), at);
                if let Some(top) = self.open.last_mut() {
                    top.seen &= !name::ID;
                }
            } else if let Some(top) = self.open.last_mut() {
                top.seen |= name::BAD_ID;
                let message = format!("the id must be a string, not {}", named(value));
                self.faults.add(offset, message);
            }
            return Ok(());
        }
        let id = self.reader.string()?;
        if id.raw.is_empty() {
            self.faults.add(offset, "the id must not be empty");
            if let Some(top) = self.open.last_mut() {
                top.seen |= name::BAD_ID;
            }
        }
        if !first {
            return Ok(());
        }
        let ids = &mut self.draft.tree.ids;
        let start = ids.len();
        if id.escaped {
            ids.push_str(&id.decode());
        } else {
            ids.push_str(id.raw);
        }
        let Ok(end) = u32::try_from(ids.len()) else {
            return Err(self.reader.expected("less than 4 GiB of ids"));
        };
        self.row(row).id = (start as u32, end);
        Ok(())
    }

    #[inline]
    fn text(&mut self, row: u32, column: usize, at: usize) -> Result<(), Halt> {
        let first = self.see(name::TEXTS << column, at);
        let name = header::TEXTS[column];
        if self.reader.peek() != Some(b'"') {
            let offset = self.reader.offset();
            let value = self.reader.skip_value()?;
            if value == "null" {
                if first {
                    self.keep(Cow::Borrowed(name), FieldValue::Other(value), at);
                }
            } else {
                self.faults.add(
                    offset,
                    format!("{name} must be a string or null, not {}", named(value)),
                );
            }
            return Ok(());
        }
        let text = self.reader.string()?;
        if !first {
            return Ok(());
        }
        let dictionary = &mut self.draft.tree.texts[column];
        let code = if text.escaped {
            dictionary.intern(&text.decode())
        } else {
            dictionary.intern(text.raw)
        };
        self.row(row).texts[column] = code;
        Ok(())
    }

    #[inline]
    fn integer(&mut self, row: u32, column: usize, at: usize) -> Result<(), Halt> {
        let first = self.see(name::NUMBERS << column, at);
        let byte = self.reader.peek();
        let offset = self.reader.offset();
        let value = match self.reader.integer() {
            None => self.other_integer(header::NUMBERS[column], at, byte, offset)?,
            taken => taken,
        };
        let Some(value) = value else {
            return Ok(());
        };
        if column == header::TTL && value < 0 {
            self.faults
                .add(offset, "the ttl must be 0 or more, or null for no limit");
        }
        if !first {
            return Ok(());
        }
        let row = self.row(row);
        row.present.0 |= 1 << column;
        row.numbers[column] = value;
        Ok(())
    }

    /// Reads what `Reader::integer` does not take. An explicit null is kept as a field; other values are reported.
    fn other_integer(
        &mut self,
        name: &'static str,
        at: usize,
        byte: Option<u8>,
        offset: usize,
    ) -> Result<Option<i64>, Halt> {
        let wrong = if let Some(b'-' | b'0'..=b'9') = byte {
            let number = self.reader.number()?;
            match number.parse() {
                Ok(value) => return Ok(Some(value)),
                Err(_) => number,
            }
        } else {
            let value = self.reader.skip_value()?;
            if value == "null" {
                self.keep(Cow::Borrowed(name), FieldValue::Other(value), at);
                return Ok(None);
            }
            value
        };
        self.faults.add(offset, not_integer(name, wrong));
        Ok(None)
    }

    fn children(&mut self, row: u32, at: usize) -> Result<bool, Halt> {
        let first = self.see(name::CHILDREN, at);
        let byte = self.reader.peek();
        let offset = self.reader.offset();
        if byte == Some(b'[') && first && self.form != NodesForm::Listed {
            self.reader.take(b'[');
            if self.reader.peek() == Some(b']') {
                self.row(row).present.0 |= Present::EMPTY_CHILDREN;
            }
            return Ok(true);
        }
        let value = self.reader.skip_value()?;
        if !first || value == "null" {
            return Ok(false);
        }
        if byte != Some(b'[') {
            self.faults.add(
                offset,
                format!(
                    "children must be a list of nodes or null, not {}",
                    named(value)
                ),
            );
        } else if value[1..value.len() - 1].trim_ascii().is_empty() {
            self.row(row).present.0 |= Present::EMPTY_CHILDREN;
        } else {
            self.faults.add(
                offset,
                "a node of `replace` must have no children: list them, each with its parent_id",
            );
        }
        Ok(false)
    }

    fn parent_id(&mut self, row: u32, at: usize) -> Result<(), Halt> {
        let first = self.see(name::PARENT_ID, at);
        let byte = self.reader.peek();
        let offset = self.reader.offset();
        let value = self.value(byte)?;
        if !first {
            return Ok(());
        }
        match value {
            FieldValue::Text(id) => self.draft.claims.push(ParentClaim { row, id, offset }),
            FieldValue::Other("null") => {}
            FieldValue::Other(value) => self.faults.add(
                offset,
                format!("parent_id must be a string or null, not {}", named(value)),
            ),
        }
        if self.form != NodesForm::Listed {
            self.keep(Cow::Borrowed("parent_id"), value, at);
        }
        Ok(())
    }

    /// Reads a value that begins with `byte`.
    #[inline(always)]
    fn value(&mut self, byte: Option<u8>) -> Result<FieldValue<'a>, Halt> {
        Ok(match byte {
            Some(b'"') => FieldValue::Text(self.reader.string()?),
            _ => FieldValue::Other(self.reader.skip_value()?),
        })
    }

    /// Keeps any other field; the types of the known ones are checked.
    fn field(&mut self, name: Cow<'a, str>, at: usize) -> Result<(), Halt> {
        let byte = self.reader.peek();
        let offset = self.reader.offset();
        let value = self.value(byte)?;
        let is = |test: fn(&str) -> bool| matches!(value, FieldValue::Other(json) if test(json));
        let text = byte == Some(b'"');
        let wrong = match name.as_bytes() {
            b"created_at_iso" | b"content_hash" if !text => Some("a string"),
            b"cadence" | b"cad" if !is(|json| json.parse::<i64>().is_ok()) => {
                Some("an integer of 64 bits")
            }
            b"removable" if !matches!(byte, Some(b't' | b'f')) => Some("true or false"),
            b"tags" | b"tag" if !text && !is(is_list_of_texts) => {
                Some("a string or a list of strings")
            }
            _ => None,
        };
        if let Some(wanted) = wrong
            && !is(|json| json == "null")
        {
            let value = value.written();
            // A list of other things is a list, too.
            let found = if TAGS.is(&name) {
                shorten(&value)
            } else {
                named(&value)
            };
            let message = format!("{name} must be {wanted}, or null, not {found}");
            self.faults.add(offset, message);
        }
        self.keep(name, value, at);
        Ok(())
    }

    /// Closes the top node: checks its id and writes its payload record.
    fn close_node(&mut self) -> Result<(), Halt> {
        let Some(OpenNode {
            row, fields, seen, ..
        }) = self.open.pop()
        else {
            return Ok(());
        };
        let tree = &mut self.draft.tree;
        let end = tree.rows.len() as u32;
        if seen & (name::ID | name::BAD_ID) == 0 {
            if row == 0 && self.form == NodesForm::Nested {
                let id = tree.ids.len() as u32;
                tree.ids.push_str("^root");
                tree.rows[0].id = (id, id + 5);
                tree.rows[0].present.0 |= Present::ID_IMPLIED;
            } else {
                let start = self.draft.starts.get(row as usize);
                let start = start.copied().unwrap_or(0);
                self.faults.add(start, "a node must have an `id`");
            }
        }
        let payload = &mut self.draft.payload;
        let start = payload.len() as u32;
        let record = &mut self.fields[fields..];
        if !record.is_sorted_by(|a, b| a.name < b.name) {
            record.sort_unstable_by(|a, b| a.name.cmp(&b.name).then(a.at.cmp(&b.at)));
            for pair in record.windows(2) {
                if pair[0].name == pair[1].name {
                    let message = format!("the key `{}` is given twice", shorten(&pair[1].name));
                    self.faults.add(pair[1].at, message);
                }
            }
        }
        let content = record.iter().position(|field| field.name == CONTENT);
        let (before, from) = record.split_at(content.unwrap_or(0));
        let (content, after) = from.split_at(usize::from(content.is_some()));
        if let [field] = content {
            field.value.get(&mut self.decoded).store(payload);
        }
        let middle = payload.len() as u32;
        for field in before.iter().chain(after) {
            write_field(payload, &field.name, field.value.get(&mut self.decoded));
        }
        self.fields.truncate(fields);
        let Ok(stop) = u32::try_from(payload.len()) else {
            return Err(self.reader.expected("less than 4 GiB of content"));
        };
        let row = &mut tree.rows[row as usize];
        row.payload = RecordPlace::new(start, middle, stop);
        row.end = end;
        Ok(())
    }
}

/// Whether a raw, well-formed value is a list of strings.
fn is_list_of_texts(value: &str) -> bool {
    let mut items = elements(value).into_iter();
    value.starts_with('[') && items.all(|item| item.starts_with('"'))
}
