//! A unit of a snapshot as rows of `node`, `attr` and `body` (STORE §2).
//!
//! Every member of a node goes to one place from which [`super::decode`] gives it back: a column, a row of
//! `attr`, the body, or `extra`. Some values are written twice so that SQL can ask for them.

use std::io::Write;

use sha2::{Digest, Sha256};

use crate::history::tracked;
use crate::index::{NodeRef, UnitKey, UnitKind};
use crate::json::{Appended, JsonValue, elements, write_string};
use crate::query::ir::{ExactNumber, normal_type};
use crate::store::database::sql::{Row, int, text};
use crate::store::error::Result;
use crate::store::layout::present;
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::timestamp::rfc3339_of_nanos;
use crate::tree::{NodeClass, Present as Given, is_header, text_list};

pub(crate) type Hash = [u8; 32];

#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) kind: &'static str,
    pub(crate) hash: Hash,
    /// Tells units of the same canonical bytes and different spellings apart; 0 for the canonical spelling.
    pub(crate) spelling: i64,
    /// The order among its siblings, of its top node.
    pub(crate) order: Order,
    pub(crate) nodes: Vec<Node>,
}

/// The columns of `placement` in which the order of units is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub(crate) rank: i64,
    pub(crate) offset: i64,
    pub(crate) created_at_ns: i64,
    pub(crate) creation_index: i64,
    pub(crate) id: String,
}

impl Order {
    /// The columns of a row from `from` on, in the order of the fields.
    pub(crate) fn read(row: &dyn Row, from: usize) -> Result<Self> {
        Ok(Self {
            rank: int(row, from)?,
            offset: int(row, from + 1)?,
            created_at_ns: int(row, from + 2)?,
            creation_index: int(row, from + 3)?,
            id: text(row, from + 4)?.to_owned(),
        })
    }

    /// As the index sorts units.
    pub(crate) fn key(&self) -> UnitKey<'_> {
        (
            u8::try_from(self.rank).unwrap_or(u8::MAX),
            self.offset,
            self.created_at_ns,
            self.creation_index,
            self.id.as_bytes(),
        )
    }
}

/// A row of `node`, with what depends on it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) pre_end: i64,
    pub(crate) parent_pre: Option<i64>,
    pub(crate) core_pre: Option<i64>,
    pub(crate) level: i64,
    pub(crate) base_depth: Option<i64>,
    pub(crate) class: &'static str,
    /// `None` for an implicit core.
    pub(crate) id: Option<String>,
    pub(crate) node_type: Option<String>,
    pub(crate) type_head: String,
    pub(crate) type_sub: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) offset: i64,
    pub(crate) ttl: Option<i64>,
    pub(crate) expires: Option<i64>,
    pub(crate) priority: i64,
    pub(crate) cycle: Option<i64>,
    pub(crate) created_at_ns: i64,
    pub(crate) created_at_iso: Option<String>,
    pub(crate) creation_index: i64,
    pub(crate) cadence: Option<i64>,
    pub(crate) content_hash: Option<String>,
    pub(crate) body: Option<Body>,
    pub(crate) present: i64,
    pub(crate) version: i64,
    pub(crate) extra: Option<String>,
    pub(crate) attrs: Vec<Attr>,
}

#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) hash: Hash,
    pub(crate) json: bool,
    pub(crate) text: String,
}

/// The rank of a kind, as in `placement.rank`.
pub(crate) fn rank(kind: UnitKind) -> i64 {
    match kind {
        UnitKind::Preamble => 0,
        UnitKind::Turn | UnitKind::Loose => 1,
        UnitKind::Head => 2,
        UnitKind::Rest => 3,
    }
}

/// The hash of a body (also of one that was read).
pub(crate) fn body_hash(json: bool, text: &str) -> Hash {
    let mut digest = Sha256::new();
    digest.update(if json { b"1\n" } else { b"0\n" });
    digest.update(text.as_bytes());
    digest.finalize().into()
}

/// The rows of a unit: its nodes in document order. Linear in the nodes and their texts.
pub(crate) fn encode<'a>(kind: UnitKind, nodes: impl Iterator<Item = NodeRef<'a>>) -> Unit {
    let mut rows = Rows::default();
    let mut digest = Sha256::new();
    digest.update(kind.as_str().as_bytes());
    digest.update(b"\n");
    let mut nodes = nodes.peekable();
    let top = nodes.peek().copied();
    let order = Order {
        rank: rank(kind),
        offset: top.map_or(0, |top| top.offset()),
        created_at_ns: top.map_or(0, |top| top.created_at_ns()),
        creation_index: top.map_or(0, |top| top.creation_index()),
        id: top.map_or("", |top| top.id()).to_owned(),
    };
    let mut spelling: Option<Sha256> = None;
    let mut line = Vec::new();
    for node in nodes {
        // The parent of the top node is in another unit.
        let inside = !rows.done.is_empty();
        rows.push(kind, node, encode_node(node, inside));
        line.clear();
        write_line(&mut line, node, &mut spelling);
        digest.update(&line);
    }
    Unit {
        kind: kind.as_str(),
        hash: digest.finalize().into(),
        spelling: spelling.map_or(0, |spelling| first_bytes(spelling.finalize().into())),
        order,
        nodes: rows.finish(),
    }
}

/// Rows under construction: their intervals, parents and implicit cores.
#[derive(Default)]
struct Rows {
    done: Vec<Node>,
    open: Vec<OpenRow>,
    /// Whether the rows are those of `^sys` and below.
    below_sys: bool,
}

struct OpenRow {
    level: i64,
    row: usize,
    core: ImplicitCore,
}

/// The implicit core of an open row (LANGUAGE §1).
#[derive(Clone, Copy)]
enum ImplicitCore {
    None,
    /// It comes before the first child whose offset is not negative.
    Due,
    At(usize),
}

impl Rows {
    fn push(&mut self, kind: UnitKind, node: NodeRef<'_>, mut row: Node) {
        let level = i64::from(node.level());
        while self.open.last().is_some_and(|last| last.level >= level) {
            self.close();
        }
        if let Some(top) = self.open.last_mut() {
            row.parent_pre = Some(top.row as i64);
            if node.offset() >= 0 && matches!(top.core, ImplicitCore::Due) {
                let (parent, level) = (top.row, top.level + 1);
                top.core = ImplicitCore::At(self.done.len());
                let depth = self.done[parent].base_depth;
                self.done.push(core(parent, level, depth));
            }
            match top.core {
                ImplicitCore::At(core)
                    if node.offset() == 0 && node.class() == NodeClass::Block =>
                {
                    row.core_pre = Some(core as i64);
                }
                ImplicitCore::At(core) if node.offset() > 0 && self.done[core].pre_end == 0 => {
                    self.done[core].pre_end = self.done.len() as i64;
                }
                _ => {}
            }
        }
        if kind == UnitKind::Preamble && level <= 1 {
            self.below_sys = node.class() == NodeClass::Sys;
        }
        row.base_depth = match kind {
            UnitKind::Preamble if self.below_sys => Some(-1),
            UnitKind::Head => Some(0),
            _ => None,
        };
        let turn = matches!(node.class(), NodeClass::Turn | NodeClass::Head);
        let cored = turn
            && !node
                .children()
                .any(|child| child.offset() == 0 && child.class() == NodeClass::Container);
        self.open.push(OpenRow {
            level,
            row: self.done.len(),
            core: if cored {
                ImplicitCore::Due
            } else {
                ImplicitCore::None
            },
        });
        row.level = level;
        self.done.push(row);
    }

    fn close(&mut self) {
        let Some(top) = self.open.pop() else { return };
        match top.core {
            ImplicitCore::Due => {
                let depth = self.done[top.row].base_depth;
                self.done.push(core(top.row, top.level + 1, depth));
                let end = self.done.len() as i64;
                if let Some(core) = self.done.last_mut() {
                    core.pre_end = end;
                }
            }
            ImplicitCore::At(core) if self.done[core].pre_end == 0 => {
                self.done[core].pre_end = self.done.len() as i64;
            }
            _ => {}
        }
        self.done[top.row].pre_end = self.done.len() as i64;
    }

    fn finish(mut self) -> Vec<Node> {
        while !self.open.is_empty() {
            self.close();
        }
        self.done
    }
}

fn core(parent: usize, level: i64, base_depth: Option<i64>) -> Node {
    Node {
        parent_pre: Some(parent as i64),
        level,
        base_depth,
        class: "mc",
        type_head: "mc".to_owned(),
        ..Node::default()
    }
}

/// The ttl of a node that does not count down; the others are stored as the cycle in which they expire.
fn stored_ttl(node: NodeRef<'_>) -> Option<i64> {
    node.ttl().filter(|_| node.expires().is_none())
}

/// The columns of a node that do not depend on others.
fn encode_node(node: NodeRef<'_>, inside: bool) -> Node {
    // A column of text has no U+0000; such a header is in `extra`.
    let owned = |text: Option<&str>| {
        text.filter(|text| !text.contains('\0'))
            .map(ToOwned::to_owned)
    };
    let normal = match node.type_or_class() {
        name if name.contains('\0') => node.class().as_str().to_owned(),
        name => normal_type(name).into_owned(),
    };
    let (head, sub) = match normal.split_once(':') {
        Some((head, sub)) => (head.to_owned(), Some(sub.to_owned())),
        None => (normal, None),
    };
    let mut row = Node {
        class: node.class().as_str(),
        id: Some(node.id().to_owned()),
        node_type: owned(node.node_type()),
        type_head: head,
        type_sub: sub,
        role: owned(node.role()),
        kind: owned(node.kind()),
        key: owned(node.key()),
        offset: node.offset(),
        ttl: stored_ttl(node),
        expires: node.expires(),
        priority: node.priority(),
        cycle: node.cycle(),
        created_at_ns: node.created_at_ns(),
        creation_index: node.creation_index(),
        present: i64::from(node.present().0),
        version: version(node),
        ..Node::default()
    };
    // A JSON object of the members that no column has; numbers, lists and objects in their own spelling.
    let mut extra = String::new();
    let mut add = |name: &str, value: JsonValue<'_>| {
        extra.push(if extra.is_empty() { '{' } else { ',' });
        // Appending to a string does not fail.
        let _ = write_string(&mut Appended(&mut extra), name);
        extra.push(':');
        extra.push_str(&value.json());
    };
    let headers = [
        ("nodeType", node.node_type()),
        ("role", node.role()),
        ("kind", node.kind()),
        ("key", node.key()),
    ];
    for (name, text) in headers {
        if let Some(text) = text.filter(|text| text.contains('\0')) {
            add(name, JsonValue::Text(text));
        }
    }
    for (name, value) in node.fields() {
        if !field(&mut row, node, name, value, inside) {
            add(name, value);
        }
    }
    if let Some(tags) = node.tags() {
        add_tags(&mut row.attrs, tags);
    }
    if row.cadence.is_none() {
        row.cadence = node.cadence();
    }
    row.extra = (!extra.is_empty()).then(|| extra + "}");
    if !row.attrs.is_empty() {
        row.present |= present::ATTRS;
    }
    row
}

fn add_tags(attrs: &mut Vec<Attr>, tags: JsonValue<'_>) {
    let tags = text_list(tags);
    if tags.is_empty() {
        // Tells an empty list from none.
        attrs.push(Attr {
            name: TAGS.name.to_owned(),
            ordinal: -1,
            kind: "list",
            ..Attr::default()
        });
    }
    let tags = tags.into_iter().filter(|tag| !tag.contains('\0'));
    attrs.extend((0..).zip(tags).map(|(ordinal, tag)| Attr {
        name: TAGS.name.to_owned(),
        ordinal,
        ..text_attr(tag.into_owned())
    }));
}

/// Puts a field of the payload record in its place. Returns whether it can be given back from there.
fn field(
    row: &mut Node,
    node: NodeRef<'_>,
    name: &str,
    value: JsonValue<'_>,
    inside: bool,
) -> bool {
    let bit = |row: &mut Node, bit: i64| row.present |= bit;
    match name {
        "content" => {
            let (json, text) = match plain(value) {
                Some(text) => (false, text.to_owned()),
                None => (true, value.json().into_owned()),
            };
            let hash = body_hash(json, &text);
            row.body = Some(Body { hash, json, text });
            true
        }
        "created_at_iso" => {
            let text = plain(value);
            if text.is_some() {
                bit(row, present::CREATED_AT_ISO);
            }
            let made = rfc3339_of_nanos(node.created_at_ns());
            row.created_at_iso = text.filter(|text| **text != made).map(str::to_owned);
            text.is_some()
        }
        "content_hash" => {
            row.content_hash = plain(value).map(str::to_owned);
            row.content_hash.is_some()
        }
        "parent_id" => {
            let parent = node.parent().filter(|_| inside);
            let same = plain(value)
                .zip(parent)
                .is_some_and(|(text, parent)| parent.id() == text);
            if same {
                bit(row, present::PARENT_ID);
            }
            same
        }
        "ttl" if value.is_null() => {
            bit(row, present::NULL_TTL);
            true
        }
        _ if name == CADENCE.name => {
            let kept = |n: &i64| value == JsonValue::Number(&n.to_string());
            row.cadence = value.integer().filter(kept);
            if row.cadence.is_some() {
                bit(row, present::CADENCE);
            }
            row.cadence.is_some()
        }
        _ if name == TAGS.name => {
            let list = match value {
                JsonValue::List(json) => {
                    let mut decoded = String::new();
                    let mut items = elements(json).into_iter();
                    items.all(|item| plain(JsonValue::read(item, &mut decoded)).is_some())
                }
                _ => false,
            };
            if list {
                bit(row, present::TAGS);
            }
            list
        }
        _ if is_header(name) && name != TAGS.alias && name != CADENCE.alias => false,
        _ => custom(&mut row.attrs, name, value),
    }
}

/// The hash of what diffs track, as far as it does not depend on the snapshot.
fn version(node: NodeRef<'_>) -> i64 {
    first_bytes(Sha256::digest(tracked(node).as_bytes()).into())
}

fn first_bytes(hash: Hash) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash[..8]);
    i64::from_be_bytes(bytes)
}

enum LineMember<'a> {
    Number(i64),
    Value(JsonValue<'a>),
}

/// The members of a node, sorted by name, `expires` instead of a ttl that counts down.
fn line_members(node: NodeRef<'_>) -> Vec<(&str, LineMember<'_>)> {
    let given = node.present();
    let number = |bit, value: i64| given.has(bit).then_some(value);
    let created_at_ns = number(Given::CREATED_AT_NS, node.created_at_ns());
    let creation_index = number(Given::CREATION_INDEX, node.creation_index());
    let numbers = [
        ("created_at_ns", created_at_ns),
        ("creation_index", creation_index),
        ("cycle", node.cycle()),
        ("offset", number(Given::OFFSET, node.offset())),
        ("priority", number(Given::PRIORITY, node.priority())),
        ("ttl", stored_ttl(node)),
        ("expires", node.expires()),
    ];
    let id = (!given.has(Given::ID_IMPLIED)).then(|| node.id());
    let texts = [
        ("id", id),
        ("key", node.key()),
        ("kind", node.kind()),
        ("nodeType", node.node_type()),
        ("role", node.role()),
    ];
    let mut members: Vec<(&str, LineMember<'_>)> = Vec::with_capacity(16);
    for (name, value) in numbers {
        members.extend(value.map(|value| (name, LineMember::Number(value))));
    }
    for (name, value) in texts {
        members.extend(value.map(|value| (name, LineMember::Value(JsonValue::Text(value)))));
    }
    let fields = node.fields();
    members.extend(fields.map(|(name, value)| (name, LineMember::Value(value))));
    if given.has(Given::EMPTY_CHILDREN) {
        members.push(("children", LineMember::Value(JsonValue::List("[]"))));
    }
    members.sort_by(|a, b| a.0.cmp(b.0));
    members
}

/// The line of a node in the text that a unit's hash is over: its level and its members in canonical
/// form. Values that are spelled otherwise go to `spelling`; of a text only the characters are kept,
/// however they were escaped.
fn write_line(out: &mut Vec<u8>, node: NodeRef<'_>, spelling: &mut Option<Sha256>) {
    out.extend_from_slice(node.level().to_string().as_bytes());
    let mut before = b" {".as_slice();
    for (name, value) in line_members(node) {
        out.extend_from_slice(before);
        before = b",";
        // Writing to memory does not fail; values were read as JSON.
        let _ = write_string(out, name);
        out.push(b':');
        let start = out.len();
        let _ = match value {
            LineMember::Number(value) => write!(out, "{value}"),
            LineMember::Value(value) => value.write_canonical(out),
        };
        if let LineMember::Value(value) = value
            && !value.is_text()
            && let json = value.json()
            && out.get(start..) != Some(json.as_bytes())
        {
            let spelling = spelling.get_or_insert_default();
            for part in [node.id(), name, &json] {
                spelling.update(part.as_bytes());
                spelling.update(b"\n");
            }
        }
    }
    out.extend_from_slice(if before == b"," { b"}\n" } else { b" {}\n" });
}

#[derive(Debug, Default)]
pub(crate) struct Attr {
    pub(crate) name: String,
    pub(crate) ordinal: i64,
    pub(crate) kind: &'static str,
    pub(crate) text: Option<String>,
    pub(crate) int: Option<i64>,
    pub(crate) real: Option<f64>,
    pub(crate) big: Option<String>,
}

/// Adds the rows of a custom attribute. Returns whether they give it back: scalars do.
pub(crate) fn custom(attrs: &mut Vec<Attr>, name: &str, value: JsonValue<'_>) -> bool {
    if name.contains('\0') {
        return false;
    }
    let given_back = !is_header(name);
    let (attr, given_back) = match value {
        JsonValue::List(json) => {
            let mut decoded = String::new();
            for (ordinal, item) in (0..).zip(elements(json)) {
                attrs.push(Attr {
                    name: name.to_owned(),
                    ordinal,
                    ..scalar_attr(JsonValue::read(item, &mut decoded))
                });
            }
            (of_kind("list"), false)
        }
        JsonValue::Object(_) => (of_kind("object"), false),
        scalar => {
            let attr = scalar_attr(scalar);
            let exact = attr.kind != "text" || attr.text.is_some();
            (attr, given_back && exact)
        }
    };
    attrs.push(Attr {
        name: name.to_owned(),
        ordinal: -1,
        ..attr
    });
    given_back
}

fn of_kind(kind: &'static str) -> Attr {
    Attr {
        kind,
        ..Attr::default()
    }
}

/// The values of a scalar, or the type of another value.
fn scalar_attr(value: JsonValue<'_>) -> Attr {
    match value {
        JsonValue::Text(text) if text.contains('\0') => of_kind("text"),
        JsonValue::Text(text) => text_attr(text.to_owned()),
        JsonValue::List(_) => of_kind("list"),
        JsonValue::Object(_) => of_kind("object"),
        JsonValue::Bool(value) => Attr {
            kind: "bool",
            text: Some(value.to_string()),
            ..Attr::default()
        },
        JsonValue::Null => of_kind("null"),
        JsonValue::Number(number) => {
            let whole = number.bytes().all(|b| b == b'-' || b.is_ascii_digit());
            let int = number.parse::<i64>().ok().filter(|_| whole);
            Attr {
                kind: if whole { "int" } else { "real" },
                text: Some(number.to_owned()),
                int,
                real: number.parse::<f64>().ok().filter(|real| real.is_finite()),
                big: (whole && int.is_none()).then(|| number.to_owned()),
                ..Attr::default()
            }
        }
    }
}

/// The values of a text, which may read as a number (LANGUAGE §5).
pub(crate) fn text_attr(text: String) -> Attr {
    let mut attr = of_kind("text");
    match ExactNumber::of_text(&text) {
        Some(ExactNumber::Int(value)) => {
            attr.int = i64::try_from(value).ok();
            attr.real = Some(value as f64);
            attr.big = attr.int.is_none().then(|| value.to_string());
        }
        Some(ExactNumber::Decimal(value)) => attr.real = Some(value),
        Some(ExactNumber::Long(_)) => {
            attr.real = text.parse().ok().filter(|real: &f64| real.is_finite());
            attr.big = Some(plain_digits(&text));
        }
        None => {}
    }
    attr.text = Some(text);
    attr
}

/// The digits of a whole number without what does not change it, with its sign if that is a minus.
fn plain_digits(text: &str) -> String {
    let sign = if text.starts_with('-') { "-" } else { "" };
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let whole = digits.split('.').next().unwrap_or_default();
    format!("{sign}{whole}")
}

/// A text that a column of text can hold: one without U+0000.
pub(crate) fn plain(value: JsonValue<'_>) -> Option<&str> {
    value.text().filter(|text| !text.contains('\0'))
}
