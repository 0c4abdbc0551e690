//! A unit of a snapshot as rows of `node`, `attr` and `body` (STORE §2).
//!
//! Every member of a node is stored in one place, from which [`super::decode`] restores it: a column, a row of
//! `attr`, the body, or `extra`. Some values are stored a second time, for queries in SQL.

use std::io::Write;

use sha2::{Digest, Sha256};

use crate::history::tracked;
use crate::index::{NodeRef, UnitKey, UnitKind, UnitRef};
use crate::json::{Appended, JsonValue, elements, quoted, write_string};
use crate::query::ir::{ExactNumber, normal_type};
use crate::store::database::sql::{ResultRow, int, text};
use crate::store::error::Result;
use crate::store::layout::present;
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::timestamp::rfc3339_of_nanos;
use crate::tree::{NodeClass, Present as Given, header, is_header, text_list};

pub(crate) type Hash = [u8; 32];

#[derive(Debug)]
pub(crate) struct EncodedUnit {
    pub(crate) kind: &'static str,
    pub(crate) hash: Hash,
    /// Distinguishes units with equal canonical bytes and different spellings; 0 for the canonical spelling.
    pub(crate) spelling: i64,
    pub(crate) order: Order,
    pub(crate) nodes: Vec<NodeColumns>,
}

/// The columns of `placement` by which units are sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub(crate) rank: i64,
    pub(crate) offset: i64,
    pub(crate) created_at_ns: i64,
    pub(crate) creation_index: i64,
    pub(crate) id: String,
}

impl Order {
    pub(crate) fn read(row: &dyn ResultRow, from: usize) -> Result<Self> {
        Ok(Self {
            rank: int(row, from)?,
            offset: int(row, from + 1)?,
            created_at_ns: int(row, from + 2)?,
            creation_index: int(row, from + 3)?,
            id: text(row, from + 4)?.to_owned(),
        })
    }

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

#[derive(Debug, Default)]
pub(crate) struct NodeColumns {
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
    pub(crate) body: Option<StoredBody>,
    pub(crate) present: i64,
    pub(crate) version: i64,
    pub(crate) extra: Option<String>,
    pub(crate) attrs: Vec<AttrColumns>,
}

#[derive(Debug)]
pub(crate) struct StoredBody {
    pub(crate) hash: Hash,
    pub(crate) json: bool,
    pub(crate) text: String,
}

pub(crate) fn rank(kind: UnitKind) -> i64 {
    match kind {
        UnitKind::Preamble => 0,
        UnitKind::Turn | UnitKind::Loose => 1,
        UnitKind::Head => 2,
        UnitKind::Rest => 3,
    }
}

pub(crate) fn body_hash(json: bool, text: &str) -> Hash {
    let mut digest = Sha256::new();
    digest.update(if json { b"1\n" } else { b"0\n" });
    digest.update(text.as_bytes());
    digest.finalize().into()
}

/// The rows of a unit: its nodes and implicit cores in document order. Linear in the nodes and their texts.
pub(crate) fn encode(unit: UnitRef<'_>) -> EncodedUnit {
    let (kind, top, segment) = (unit.kind(), unit.top(), unit.segment());
    let order = Order {
        rank: rank(kind),
        offset: top.offset(),
        created_at_ns: top.created_at_ns(),
        creation_index: top.creation_index(),
        id: top.id().to_owned(),
    };
    let (hash, spelling) = hashes(unit);
    // Rows are numbered from the first of the unit, without dead rows.
    let (start, dead) = (unit.rows().start, unit.dead_rows().collect::<Vec<u32>>());
    let number = |row: u32| i64::from(row - start) - dead.partition_point(|at| *at < row) as i64;
    let mut nodes: Vec<NodeColumns> = Vec::new();
    // Rows with an implicit core (LANGUAGE §1), each with the number of the core's row.
    let mut cores: Vec<(u32, i64)> = Vec::new();
    let mut below_sys = false;
    for (row, node) in unit.live_rows() {
        let parent = segment.parent_of(row);
        let mut made = match node {
            // The parent of the top node is in another unit.
            Some(node) => encode_node(node, parent.is_some()),
            None => {
                cores.extend(parent.map(|owner| (owner, number(row))));
                NodeColumns {
                    class: "mc",
                    type_head: "mc".to_owned(),
                    ..NodeColumns::default()
                }
            }
        };
        made.pre_end = number(segment.end_of(row));
        made.parent_pre = parent.map(number);
        made.level = segment.level(row);
        if let Some(node) = node {
            let is_core_block = node.offset() == 0 && node.class() == NodeClass::Block;
            let mut owners = cores.iter().rev().filter(|_| is_core_block);
            let own = owners.find(|(owner, _)| Some(*owner) == parent);
            made.core_pre = own.map(|(_, core)| *core);
            if made.level <= 1 {
                below_sys = node.class() == NodeClass::Sys;
            }
        }
        made.base_depth = match kind {
            UnitKind::Preamble if below_sys => Some(-1),
            UnitKind::Head => Some(0),
            _ => None,
        };
        nodes.push(made);
    }
    EncodedUnit {
        kind: kind.as_str(),
        hash,
        spelling,
        order,
        nodes,
    }
}

/// What a unit is known by: the hash of its canonical bytes, and the number of its spelling. Linear in its texts.
pub(crate) fn hashes(unit: UnitRef<'_>) -> (Hash, i64) {
    let mut digest = Sha256::new();
    digest.update(unit.kind().as_str().as_bytes());
    digest.update(b"\n");
    let mut spelling: Option<Sha256> = None;
    let mut line = Vec::new();
    for node in unit.live_rows().filter_map(|(_, node)| node) {
        line.clear();
        write_line(&mut line, node, &mut spelling);
        digest.update(&line);
    }
    let spelling = spelling.map_or(0, |spelling| first_bytes(spelling.finalize().into()));
    (digest.finalize().into(), spelling)
}

/// A ttl that does not count down. One that does is stored as the cycle in which the node expires.
fn stored_ttl(node: NodeRef<'_>) -> Option<i64> {
    node.ttl().filter(|_| node.expires().is_none())
}

fn encode_node(node: NodeRef<'_>, inside: bool) -> NodeColumns {
    // A text column cannot hold U+0000; a header that has it goes to `extra`.
    let owned = |text: Option<&str>| {
        text.filter(|text| !text.contains('\0'))
            .map(ToOwned::to_owned)
    };
    let normal = match node.type_or_class() {
        name if name.contains('\0') => node.class().as_str().to_owned(),
        name => normal_type(name).into_owned(),
    };
    let (head, sub) = match normal.split_once(':') {
        Some((head, sub)) => (head, Some(sub.to_owned())),
        None => (&*normal, None),
    };
    let mut row = NodeColumns {
        class: node.class().as_str(),
        id: Some(node.id().to_owned()),
        node_type: owned(node.node_type()),
        type_head: head.to_owned(),
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
        ..NodeColumns::default()
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
    for (name, text) in header::TEXTS.into_iter().zip(node.headers().texts) {
        if let Some(text) = text.filter(|text| text.contains('\0')) {
            add(name, JsonValue::Text(text));
        }
    }
    for (name, value) in node.fields() {
        if !store_field(&mut row, node, name, value, inside) {
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

fn add_tags(attrs: &mut Vec<AttrColumns>, tags: JsonValue<'_>) {
    let tags = text_list(tags);
    if tags.is_empty() {
        // Distinguishes an empty list from no list.
        push_attr(attrs, TAGS.name, -1, of_kind("list"));
    }
    let tags = tags.into_iter().filter(|tag| !tag.contains('\0'));
    for (ordinal, tag) in (0..).zip(tags) {
        push_attr(attrs, TAGS.name, ordinal, text_attr(tag.into_owned()));
    }
}

fn push_attr(attrs: &mut Vec<AttrColumns>, name: &str, ordinal: i64, attr: AttrColumns) {
    attrs.push(AttrColumns {
        name: name.to_owned(),
        ordinal,
        ..attr
    });
}

/// Stores a field of the payload record in its columns. Returns whether decoding restores it from them.
fn store_field(
    row: &mut NodeColumns,
    node: NodeRef<'_>,
    name: &str,
    value: JsonValue<'_>,
    inside: bool,
) -> bool {
    let (bit, is_kept) = match name {
        "content" => {
            let (json, text) = match plain(value) {
                Some(text) => (false, text.to_owned()),
                None => (true, value.json().into_owned()),
            };
            let hash = body_hash(json, &text);
            row.body = Some(StoredBody { hash, json, text });
            (0, true)
        }
        "created_at_iso" => {
            let text = plain(value);
            let made = rfc3339_of_nanos(node.created_at_ns());
            row.created_at_iso = text.filter(|text| **text != made).map(str::to_owned);
            (present::CREATED_AT_ISO, text.is_some())
        }
        "content_hash" => {
            row.content_hash = plain(value).map(str::to_owned);
            (0, row.content_hash.is_some())
        }
        "parent_id" => {
            let parent = node.parent().filter(|_| inside).map(NodeRef::id);
            (
                present::PARENT_ID,
                parent.is_some() && plain(value) == parent,
            )
        }
        "ttl" if value.is_null() => (present::NULL_TTL, true),
        _ if name == CADENCE.name => {
            let kept = |n: &i64| value == JsonValue::Number(&n.to_string());
            row.cadence = value.integer().filter(kept);
            (present::CADENCE, row.cadence.is_some())
        }
        _ if name == TAGS.name => {
            // What the rows give back; a list in any other spelling stays in `extra`.
            let tags = text_list(value);
            let has_nul = tags.iter().any(|tag| tag.contains('\0'));
            let tags: Vec<String> = tags.iter().map(|tag| quoted(tag)).collect();
            let is_list = !has_nul && value == JsonValue::List(&format!("[{}]", tags.join(",")));
            (present::TAGS, is_list)
        }
        _ if is_header(name) && name != TAGS.alias && name != CADENCE.alias => (0, false),
        _ => (0, custom(&mut row.attrs, name, value)),
    };
    if is_kept {
        row.present |= bit;
    }
    is_kept
}

/// The hash of the values that diffs track and that do not depend on the snapshot.
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

/// The members of a node, sorted by name; `expires` replaces a ttl that counts down.
fn line_members(node: NodeRef<'_>) -> Vec<(&str, LineMember<'_>)> {
    let mut members: Vec<(&str, LineMember<'_>)> = Vec::with_capacity(16);
    let given = node.present();
    let headers = node.headers();
    for (at, (name, value)) in header::NUMBERS.iter().zip(headers.numbers).enumerate() {
        let (name, value) = match node.expires() {
            Some(expires) if at == header::TTL => ("expires", expires),
            _ => (*name, value),
        };
        if given.has(1 << at) {
            members.push((name, LineMember::Number(value)));
        }
    }
    let text = |value| LineMember::Value(JsonValue::Text(value));
    if !given.has(Given::ID_IMPLIED) {
        members.push(("id", text(headers.id)));
    }
    let texts = header::TEXTS.into_iter().zip(headers.texts);
    members.extend(texts.filter_map(|(name, value)| Some((name, text(value?)))));
    let fields = node.fields();
    members.extend(fields.map(|(name, value)| (name, LineMember::Value(value))));
    if given.has(Given::EMPTY_CHILDREN) {
        members.push(("children", LineMember::Value(JsonValue::List("[]"))));
    }
    members.sort_by(|a, b| a.0.cmp(b.0));
    members
}

/// Writes a node's line of the text that is hashed for its unit: its level and its members in canonical
/// form. Values with another spelling also go into `spelling`, except for strings with other escapes.
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
pub(crate) struct AttrColumns {
    pub(crate) name: String,
    pub(crate) ordinal: i64,
    pub(crate) kind: &'static str,
    pub(crate) text: Option<String>,
    pub(crate) int: Option<i64>,
    pub(crate) real: Option<f64>,
    pub(crate) big: Option<String>,
}

/// Adds the rows of a custom attribute. Returns whether decoding restores it from them, as it does scalars.
pub(crate) fn custom(attrs: &mut Vec<AttrColumns>, name: &str, value: JsonValue<'_>) -> bool {
    if name.contains('\0') {
        return false;
    }
    let (attr, given_back) = match value {
        JsonValue::List(json) => {
            let mut decoded = String::new();
            for (ordinal, item) in (0..).zip(elements(json)) {
                let attr = scalar_attr(JsonValue::read(item, &mut decoded));
                push_attr(attrs, name, ordinal, attr);
            }
            (of_kind("list"), false)
        }
        JsonValue::Object(_) => (of_kind("object"), false),
        scalar => {
            let attr = scalar_attr(scalar);
            let is_exact = attr.kind != "text" || attr.text.is_some();
            (attr, is_exact && !is_header(name))
        }
    };
    push_attr(attrs, name, -1, attr);
    given_back
}

fn of_kind(kind: &'static str) -> AttrColumns {
    AttrColumns {
        kind,
        ..AttrColumns::default()
    }
}

fn scalar_attr(value: JsonValue<'_>) -> AttrColumns {
    match value {
        JsonValue::Text(text) if text.contains('\0') => of_kind("text"),
        JsonValue::Text(text) => text_attr(text.to_owned()),
        JsonValue::List(_) => of_kind("list"),
        JsonValue::Object(_) => of_kind("object"),
        // A number too, for statements that people write.
        JsonValue::Bool(value) => AttrColumns {
            text: Some(value.to_string()),
            int: Some(value.into()),
            ..of_kind("bool")
        },
        JsonValue::Null => of_kind("null"),
        JsonValue::Number(number) => {
            let whole = number.bytes().all(|b| b == b'-' || b.is_ascii_digit());
            let int = number.parse::<i64>().ok().filter(|_| whole);
            AttrColumns {
                text: Some(number.to_owned()),
                int,
                real: number.parse::<f64>().ok().filter(|real| real.is_finite()),
                big: (whole && int.is_none()).then(|| number.to_owned()),
                ..of_kind(if whole { "int" } else { "real" })
            }
        }
    }
}

/// The columns of a text, and of the number that it may spell (LANGUAGE §5).
pub(crate) fn text_attr(text: String) -> AttrColumns {
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

/// The digits of a whole number without leading zeros, fraction and plus sign.
fn plain_digits(text: &str) -> String {
    let sign = if text.starts_with('-') { "-" } else { "" };
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let whole = digits.split('.').next().unwrap_or_default();
    format!("{sign}{whole}")
}

/// The text, if a text column can hold it: it has no U+0000.
pub(crate) fn plain(value: JsonValue<'_>) -> Option<&str> {
    value.text().filter(|text| !text.contains('\0'))
}
