//! The flat form of a tree: what the reader produces and the index is built from.
//!
//! Rows are in canonical document order (LANGUAGE §6), so a subtree is an interval and a parent comes before its
//! children. Repeated strings (nodeType, role, kind, key) are codes into dictionaries of the tree; ids share one
//! string; every other field is in the row's payload record, its text decoded.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::SmallVec;

use super::alias;
use super::payload::{CONTENT, NodeRecord, RecordPlace};
use crate::json::{JsonValue, elements, string};
use crate::support::macros::names;

/// "No row" and "no value" in `u32` columns.
pub const NONE: u32 = u32::MAX;

names! {
    // The names are the nodeTypes that mean the classes, in the vocabulary `mt mc cb`.
    /// What a node is (LANGUAGE §1). Fixed when the node is read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum NodeClass: as_str {
        /// The root of the tree.
        Root = "^root",
        /// The system region.
        Sys = "^sys",
        /// The region of sealed turns.
        Seq = "^seq",
        /// The active head.
        Head = "^ah",
        /// `mt`, `seg`, and nodes without a nodeType directly under `^seq`.
        Turn = "mt",
        /// `mc`, `cont`, and other nodes without a nodeType that have children.
        Container = "mc",
        /// `cb`, `block`, and everything else.
        Block = "cb",
    }
}

impl NodeClass {
    /// Children of the root are sorted by this first (LANGUAGE §6).
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Sys => 0,
            Self::Seq => 1,
            Self::Head => 2,
            Self::Root | Self::Turn | Self::Container | Self::Block => 3,
        }
    }
}

/// Which fields a node was given, as far as its columns do not show it: nodeType, role, kind and
/// key are present exactly if their code is not [`NONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Present(pub u8);

impl Present {
    /// `offset` was given (as a number).
    pub const OFFSET: u8 = 1;
    /// `ttl` was given as a number; an explicit `"ttl": null` is a payload field instead.
    pub const TTL: u8 = 1 << 1;
    /// `priority` was given.
    pub const PRIORITY: u8 = 1 << 2;
    /// `cycle` was given; if not, the attribute is null.
    pub const CYCLE: u8 = 1 << 3;
    /// `created_at_ns` was given.
    pub const CREATED_AT_NS: u8 = 1 << 4;
    /// `creation_index` was given.
    pub const CREATION_INDEX: u8 = 1 << 5;
    /// A childless node that was given `"children": []`.
    pub const EMPTY_CHILDREN: u8 = 1 << 6;
    /// The root was given no id: it is `^root` and not written on export.
    pub const ID_IMPLIED: u8 = 1 << 7;

    /// Whether `bit` is set.
    pub fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// One node. Absent numbers are 0; [`Present`] tells them apart.
#[derive(Clone, Debug)]
pub struct TreeRow {
    /// Row of the parent; [`NONE`] for the root.
    pub parent: u32,
    /// One past the last row of the subtree.
    pub end: u32,
    /// Levels below the root.
    pub level: u32,
    pub class: NodeClass,
    pub present: Present,
    /// Byte range of the id in [`Tree::ids`].
    pub id: (u32, u32),
    /// Where the payload record is in [`Tree::payload`].
    pub payload: RecordPlace,
    /// The text headers as codes of [`Tree::texts`], by [`header::TEXTS`]; [`NONE`] where absent or null.
    pub texts: [u32; header::TEXTS.len()],
    /// The integer headers, by [`header::NUMBERS`].
    pub numbers: [i64; header::NUMBERS.len()],
}

/// The headers that have columns, and their indexes in a row.
pub mod header {
    /// The text headers. A nodeType and a kind are as spelled.
    pub const TEXTS: [&str; 4] = ["nodeType", "role", "kind", "key"];
    /// `nodeType` in [`TEXTS`].
    pub const NODE_TYPE: usize = 0;
    /// `role`.
    pub const ROLE: usize = 1;
    /// `kind`.
    pub const KIND: usize = 2;
    /// `key`.
    pub const KEY: usize = 3;
    /// The integer headers, in the order of their bits in [`Present`](super::Present). A ttl is as written.
    pub const NUMBERS: [&str; 6] = [
        "offset",
        "ttl",
        "priority",
        "cycle",
        "created_at_ns",
        "creation_index",
    ];
    /// `offset` in [`NUMBERS`].
    pub const OFFSET: usize = 0;
    /// `ttl`.
    pub const TTL: usize = 1;
    /// `priority`.
    pub const PRIORITY: usize = 2;
    /// `cycle`.
    pub const CYCLE: usize = 3;
    /// `created_at_ns`.
    pub const CREATED_AT_NS: usize = 4;
    /// `creation_index`.
    pub const CREATION_INDEX: usize = 5;
}

/// The headers of a node that have columns, and its id.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeHeaders<'a> {
    pub id: &'a str,
    /// Which of the numbers are given.
    pub present: Present,
    /// The text headers, by [`header::TEXTS`].
    pub texts: [Option<&'a str>; header::TEXTS.len()],
    /// The integer headers, by [`header::NUMBERS`]; 0 where absent.
    pub numbers: [i64; header::NUMBERS.len()],
}

/// One validated tree, rows in canonical document order. Row 0 is the root.
#[derive(Debug, Default)]
pub struct Tree {
    /// The nodes.
    pub rows: Vec<TreeRow>,
    /// All ids, concatenated.
    pub ids: String,
    /// All payload records (see [`super::payload`]). Shared with the segment, if the whole tree becomes one.
    pub payload: Arc<String>,
    /// The values of each text header, by [`header::TEXTS`].
    pub texts: [Dictionary; header::TEXTS.len()],
}

impl Tree {
    /// Leaves nothing but memory; false if that is too much to be kept.
    pub fn clear(&mut self) -> bool {
        self.rows.clear();
        self.ids.clear();
        self.payload = Arc::default();
        for texts in &mut self.texts {
            texts.text.clear();
            texts.ends.clear();
            texts.table = None;
        }
        let texts = self.texts.iter().map(|texts| texts.text.capacity());
        self.rows.capacity() <= LEFT_ROWS
            && texts.chain([self.ids.capacity()]).sum::<usize>() <= LEFT_TEXT
    }

    pub fn id(&self, row: u32) -> &str {
        let (start, end) = self.rows[row as usize].id;
        &self.ids[start as usize..end as usize]
    }

    pub fn record(&self, row: u32) -> NodeRecord<'_> {
        self.rows[row as usize].payload.get(&self.payload)
    }

    /// The text header `column` of a row.
    pub fn text(&self, row: &TreeRow, column: usize) -> Option<&str> {
        self.texts[column].get(row.texts[column])
    }

    pub fn headers(&self, at: u32) -> NodeHeaders<'_> {
        let row = &self.rows[at as usize];
        NodeHeaders {
            id: self.id(at),
            present: row.present,
            texts: std::array::from_fn(|column| self.text(row, column)),
            numbers: row.numbers,
        }
    }

    /// Adds a row without a place: its parent, end, level and class are for the caller to set.
    #[inline]
    pub fn push(&mut self, node: NodeHeaders<'_>, payload: RecordPlace) -> &mut TreeRow {
        let (row, id) = (self.rows.len(), self.ids.len() as u32);
        self.ids.push_str(node.id);
        let mut texts = [NONE; header::TEXTS.len()];
        for ((code, dictionary), text) in texts.iter_mut().zip(&mut self.texts).zip(node.texts) {
            *code = text.map_or(NONE, |text| dictionary.intern(text));
        }
        self.rows.push(TreeRow {
            parent: NONE,
            end: row as u32 + 1,
            level: 0,
            class: NodeClass::Block,
            present: node.present,
            id: (id, self.ids.len() as u32),
            payload,
            texts,
            numbers: node.numbers,
        });
        &mut self.rows[row]
    }

    /// The rows of the children of a row, in order.
    #[inline]
    pub fn children(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.rows.get(row as usize).map_or(0, |row| row.end);
        let first = (row + 1 < end).then_some(row + 1);
        std::iter::successors(first, move |&child| {
            Some(self.rows[child as usize].end).filter(|&next| next < end)
        })
    }
}

/// From this many values on, a dictionary has a hash table.
const HASHED_FROM: usize = 16;

/// Seeded once a process, so that a text is hashed once for all tables; no output depends on the order it gives.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// The hash of a text, for every id directory and dictionary.
#[inline]
pub(crate) fn hash_text(text: &str) -> u64 {
    HASHER.hash_one(text)
}

/// No memory is kept for more bytes of text than this.
const LEFT_TEXT: usize = 4_096;

/// No memory is kept for more rows of a tree than this.
const LEFT_ROWS: usize = 256;

/// Strings, numbered from 0 in order of first use. A lookup costs one hash.
#[derive(Clone, Default)]
pub struct Dictionary {
    /// All strings, one after the other.
    text: String,
    /// Where each one ends. Those of a few, as of most columns of a commit, need no allocation.
    ends: SmallVec<[u32; 4]>,
    /// `None` for few values: comparing a few short texts is faster than hashing one, and most dictionaries have a few.
    table: Option<Box<HashTable<u32>>>,
}

impl Dictionary {
    /// A dictionary of these strings.
    pub fn from_values(values: impl IntoIterator<Item: AsRef<str>>) -> Self {
        let mut made = Self::default();
        values
            .into_iter()
            .for_each(|value| made.add(value.as_ref()));
        made
    }

    fn add(&mut self, value: &str) {
        if self.ends.is_empty() {
            // The names of a few types or roles, which then do not grow it step by step.
            self.text.reserve(value.len().max(32));
        }
        // After 4 GiB of text, which no reader accepts, strings are empty.
        if u32::try_from(self.text.len() + value.len()).is_ok() {
            self.text.push_str(value);
        }
        self.ends.push(self.text.len() as u32);
        let last = self.ends.len() as u32 - 1;
        match self.ends.len() {
            ..HASHED_FROM => {}
            HASHED_FROM => (0..=last).for_each(|code| self.add_to_table(code)),
            _ => self.add_to_table(last),
        }
    }

    fn add_to_table(&mut self, code: u32) {
        let (text, ends) = (&self.text, &self.ends);
        let hash = |&code: &u32| hash_text(cut(text, ends, code).unwrap_or_default());
        let table = self.table.get_or_insert_default();
        table.insert_unique(hash(&code), code, hash);
    }

    /// The code of `value`, which is added if it is new.
    pub fn intern(&mut self, value: &str) -> u32 {
        if let Some(known) = self.find(value) {
            return known;
        }
        self.add(value);
        self.ends.len() as u32 - 1
    }

    /// The code of `value`.
    #[inline]
    pub fn find(&self, value: &str) -> Option<u32> {
        if self.ends.len() < HASHED_FROM {
            let (bytes, mut start) = (self.text.as_bytes(), 0);
            let known = self.ends.iter().position(|&end| {
                let own = start..end as usize;
                start = own.end;
                own.len() == value.len() && bytes[own] == *value.as_bytes()
            });
            return known.map(|known| known as u32);
        }
        let is_it = |&code: &u32| self.get(code) == Some(value);
        let table = self.table.as_ref()?;
        table.find(hash_text(value), is_it).copied()
    }

    /// The dictionary in no more memory than it needs. Nothing is left here but, if that is little, memory for texts.
    pub fn taken(&mut self) -> Self {
        let mut taken = std::mem::take(self);
        if taken.text.capacity() <= LEFT_TEXT {
            let text = taken.text.as_str().to_owned();
            self.text = std::mem::replace(&mut taken.text, text);
            self.text.clear();
        } else {
            taken.text.shrink_to_fit();
        }
        taken.ends.shrink_to_fit();
        taken
    }

    /// The string of a code; `None` for [`NONE`] and unknown codes.
    pub fn get(&self, code: u32) -> Option<&str> {
        cut(&self.text, &self.ends, code)
    }

    /// The strings, by code.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        let codes = 0..self.ends.len() as u32;
        codes.map(|code| self.get(code).unwrap_or_default())
    }

    pub fn heap_bytes(&self) -> usize {
        let table = self.table.as_ref().map_or(0, |table| table.capacity() * 5);
        self.text.len() + size_of_val(&*self.ends) + table
    }
}

/// The string that a code has in a text which is cut at these ends.
fn cut<'a>(text: &'a str, ends: &[u32], code: u32) -> Option<&'a str> {
    let at = code as usize;
    let end = *ends.get(at)?;
    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
    text.get(start as usize..end as usize)
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.values()).finish()
    }
}

/// The tags of a `tags` value: the strings of a list, or one plain string (LANGUAGE §5). None if the list
/// has anything else.
pub fn text_list(tags: JsonValue<'_>) -> Vec<Cow<'_, str>> {
    match tags {
        JsonValue::Text(text) => vec![Cow::Borrowed(text)],
        JsonValue::List(json) => {
            let items = elements(json).into_iter();
            items.map(string).collect::<Option<_>>().unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Whether a field of a payload record is a header (RUNTIME §1), not a custom attribute (LANGUAGE §5). Both spellings
/// of `tags` and `cadence` are headers; `removable` and `provenance` are custom, as selectors have no names for them.
pub fn is_header(name: &str) -> bool {
    let others = [CONTENT, "content_hash", "created_at_iso", "id", "parent_id"];
    alias::TAGS.is(name)
        || alias::CADENCE.is(name)
        || others.contains(&name)
        || header::TEXTS.contains(&name)
        || header::NUMBERS.contains(&name)
}
