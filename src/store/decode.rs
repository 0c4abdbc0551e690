//! Rows of `node`, `attr` and `body` as the rows of a tree: the reverse of [`super::encode`].

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;

use super::error::StoreError;
use super::present;
use super::sql::{Database, Row, Value, int, parameters, text};
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::shallow::{members, string};
use crate::tree::timestamp::rfc3339_of_nanos;
use crate::tree::{NONE, NodeClass, PatchNode, Present, Tree, is_header, push_row};

/// The columns that [`Units::read`] reads.
const COLUMNS: &str = "n.unit_id, n.pre, n.level, n.class, n.id, n.node_type, n.role, n.kind, n.key, \
     n.sibling_offset, n.ttl, n.expires, n.priority, n.cycle, n.created_at_ns, n.created_at_iso, \
     n.creation_index, n.cadence, n.content_hash, n.present, n.extra, b.json, b.text";

/// Which units are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'u> {
    /// At least one unit, and at most [`TOGETHER`].
    Units(&'u [i64]),
    /// As `Units`; of the one that is named first only the rows of the root and of `^seq`.
    Outlined(i64, &'u [i64]),
    /// The rows of the root and of `^seq` of units, as many as of [`Wanted::Units`].
    Outlines(&'u [i64]),
    /// All units of a session with a placement that begins at or before the second and ends at or after
    /// the first of these seqs.
    Session(i64, i64, i64),
}

/// How many units one statement reads by their ids.
const TOGETHER: usize = 64;

/// Units as they were read.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// The rows of the units one after the other, each in document order, at their levels.
    pub(super) tree: Tree,
    /// By row: the cycle in which the ttl expires, if it counts down.
    pub(super) until: Vec<Option<i64>>,
    /// The first row of each unit.
    pub(super) starts: Vec<(i64, u32)>,
    /// The rows whose subtrees are not complete.
    open: Vec<u32>,
    /// Nodes whose texts are left out.
    erased: Vec<String>,
    /// The texts of the rows that are on their way.
    texts: String,
}

/// What is in the place of a content that was erased.
const ERASED: &str = "[erased]";

/// Where a text lies in [`Units::texts`].
type Span = Option<(usize, usize)>;

/// A row of `node`, on its way.
struct Found {
    unit: i64,
    pre: i64,
    level: u32,
    class: NodeClass,
    id: Span,
    /// The texts of [`HEADERS`].
    headers: [Span; 4],
    offset: i64,
    ttl: Option<i64>,
    expires: Option<i64>,
    priority: i64,
    cycle: Option<i64>,
    created_at_ns: i64,
    created_at_iso: Span,
    creation_index: i64,
    cadence: Option<i64>,
    content_hash: Span,
    present: i64,
    extra: Span,
    body_is_json: bool,
    body: Span,
    /// Names and JSON texts of the attributes that only `attr` has.
    attrs: Vec<(String, String)>,
    tags: Vec<String>,
}

/// The headers that are texts.
const HEADERS: [&str; 4] = ["nodeType", "role", "kind", "key"];

/// The fields of a payload record: names and JSON texts.
type Fields<'f> = SmallVec<[(Cow<'f, str>, Cow<'f, str>); 8]>;

impl Units {
    /// Units in which the contents and the custom attributes of some nodes are erased.
    pub(super) fn erasing(ids: &[&str]) -> Self {
        Self {
            erased: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Reads some units; of `outlined` only the rows of the root and of `^seq`.
    pub(super) fn read_all(
        &mut self,
        database: &mut dyn Database,
        units: &[i64],
        outlined: Option<i64>,
    ) -> Result<(), StoreError> {
        units.chunks(TOGETHER).try_for_each(|units| {
            let wanted = match outlined.filter(|unit| units.contains(unit)) {
                Some(unit) => Wanted::Outlined(unit, units),
                None => Wanted::Units(units),
            };
            self.read(database, wanted)
        })
    }

    /// Reads the rows of the root and of `^seq` of some units.
    pub(super) fn read_outlines(
        &mut self,
        database: &mut dyn Database,
        units: &[i64],
    ) -> Result<(), StoreError> {
        units
            .chunks(TOGETHER)
            .try_for_each(|units| self.read(database, Wanted::Outlines(units)))
    }

    /// Reads units, in order of `unit_id`: one statement, and another one if a node has attributes. Linear
    /// in their rows.
    pub(super) fn read(
        &mut self,
        database: &mut dyn Database,
        wanted: Wanted<'_>,
    ) -> Result<(), StoreError> {
        let Rows {
            from,
            nodes,
            attrs,
            values,
            of_attrs,
        } = wanted.rows();
        let sql = format!(
            "select {COLUMNS} from {} left join body b on b.body_id = n.body_id \
             where {} and n.id is not null order by n.unit_id, n.pre",
            from.replace("TABLE", "node"),
            nodes
        );
        let mut texts = std::mem::take(&mut self.texts);
        texts.clear();
        // So much at least, so that few rows do not make it grow many times.
        texts.reserve(4096);
        let mut found: Vec<Found> = Vec::with_capacity(32);
        database.query(&sql, &values, &mut |row| {
            found.push(read_node(row, &mut texts)?);
            Ok(())
        })?;
        if found.iter().any(|node| node.present & present::ATTRS != 0) {
            let sql = format!(
                "select n.unit_id, n.pre, n.name, n.ordinal, n.type, n.text from {} where {} \
                 and (n.ordinal = -1 or n.name = 'tags') and n.type not in ('list', 'object') \
                 order by n.unit_id, n.pre, n.name, n.ordinal",
                from.replace("TABLE", "attr"),
                attrs
            );
            let mut at = 0;
            database.query(&sql, &values[..of_attrs], &mut |row| {
                let key = (int(row, 0)?, int(row, 1)?);
                while at < found.len() && (found[at].unit, found[at].pre) < key {
                    at += 1;
                }
                match found.get_mut(at) {
                    Some(node) if (node.unit, node.pre) == key => read_attr(row, node),
                    _ => Ok(()),
                }
            })?;
        }
        for mut node in found {
            if !self.erased.is_empty() && self.erased.iter().any(|id| id == node.id(&texts)) {
                node.erase(&mut texts);
            }
            self.push(&node, &texts)?;
        }
        self.close(0);
        self.texts = texts;
        Ok(())
    }

    /// The rows with a ttl that counts down, ascending.
    pub(super) fn expires(&self) -> Vec<u32> {
        (0..)
            .zip(&self.until)
            .filter(|(_, until)| until.is_some())
            .map(|(row, _)| row)
            .collect()
    }

    /// The rows of each unit.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (i64, Range<u32>)> {
        let ends = self.starts.iter().skip(1).map(|(_, start)| *start);
        let ends = ends.chain([self.tree.rows.len() as u32]);
        let starts = self.starts.iter().zip(ends);
        starts.map(|((unit, start), end)| (*unit, *start..end))
    }

    fn push(&mut self, node: &Found, texts: &str) -> Result<(), StoreError> {
        let row = self.tree.rows.len() as u32;
        if self
            .starts
            .last()
            .is_none_or(|(unit, _)| *unit != node.unit)
        {
            self.close(0);
            self.starts.push((node.unit, row));
        }
        self.close(node.level);
        let parent = self.open.last().copied();
        // A node that names its parent is rare, so its field is made only then.
        let parent_id = match node.present & present::PARENT_ID {
            0 => None,
            _ => parent.map(|parent| self.tree.id(parent).to_owned()),
        };
        let fields = node.fields(texts, parent_id.as_deref())?;
        let [node_type, role, kind, key] = node.all_headers(texts);
        push_row(
            &mut self.tree,
            PatchNode {
                id: node.id(texts),
                node_type: node_type.as_deref(),
                role: role.as_deref(),
                kind: kind.as_deref(),
                key: key.as_deref(),
                present: Present((node.present & 0xFF) as u8),
                offset: node.offset,
                ttl: node.ttl.or(node.expires).unwrap_or(0),
                priority: node.priority,
                cycle: node.cycle.unwrap_or(0),
                created_at_ns: node.created_at_ns,
                creation_index: node.creation_index,
            },
            fields.iter().map(|(name, json)| (&**name, &**json)),
        );
        if let Some(made) = self.tree.rows.last_mut() {
            made.parent = parent.unwrap_or(NONE);
            made.level = node.level;
            made.class = node.class;
        }
        self.open.push(row);
        self.until.push(node.expires);
        Ok(())
    }

    /// Closes the open rows at `level` and below.
    fn close(&mut self, level: u32) {
        let end = self.tree.rows.len() as u32;
        while let Some(&last) = self.open.last()
            && self.tree.rows[last as usize].level >= level
        {
            self.tree.rows[last as usize].end = end;
            self.open.pop();
        }
    }
}

/// Which rows a statement reads.
struct Rows {
    /// `TABLE` stands for `node` or `attr`.
    from: &'static str,
    /// The condition on rows of `node`, with these values.
    nodes: String,
    values: Vec<Value<'static>>,
    /// The condition on rows of `attr`, with so many of the values.
    attrs: String,
    of_attrs: usize,
}

impl Wanted<'_> {
    fn rows(&self) -> Rows {
        let listed = |units: &[i64]| {
            let (names, values) = parameters(units);
            let list = format!("n.unit_id in ({names})");
            Rows {
                from: "TABLE n",
                nodes: list.clone(),
                attrs: list,
                of_attrs: values.len(),
                values,
            }
        };
        match self {
            Wanted::Units(units) => listed(units),
            Wanted::Outlines(units) => {
                let mut rows = listed(units);
                rows.nodes.push_str(" and n.class in ('^root', '^seq')");
                rows
            }
            Wanted::Outlined(unit, units) => {
                let mut rows = listed(units);
                let at = rows.values.len() + 1;
                rows.values.push(Value::Int(*unit));
                let outline = format!(" and (n.unit_id <> ?{at} or n.class in ('^root', '^seq'))");
                rows.nodes.push_str(&outline);
                rows
            }
            Wanted::Session(session, first, last) => Rows {
                from: "(select distinct unit_id from placement where session_id = ?1 \
                       and first_seq <= ?3 and last_seq >= ?2) p join TABLE n on n.unit_id = p.unit_id",
                nodes: "true".to_owned(),
                values: vec![Value::Int(*session), Value::Int(*first), Value::Int(*last)],
                attrs: "true".to_owned(),
                of_attrs: 3,
            },
        }
    }
}

/// The place of a header among [`HEADERS`].
fn header_at(name: &str) -> Option<usize> {
    HEADERS.iter().position(|header| *header == name)
}

fn of(span: Span, texts: &str) -> Option<&str> {
    span.and_then(|(start, end)| texts.get(start..end))
}

/// Appends a text.
fn keep(text: &str, texts: &mut String) -> Span {
    let start = texts.len();
    texts.push_str(text);
    Some((start, texts.len()))
}

impl Found {
    fn id<'t>(&self, texts: &'t str) -> &'t str {
        of(self.id, texts).unwrap_or_default()
    }

    /// The headers that are texts, also those that no column can hold, which `extra` has.
    fn all_headers<'t>(&self, texts: &'t str) -> [Option<Cow<'t, str>>; 4] {
        let mut headers = self.headers.map(|span| of(span, texts).map(Cow::Borrowed));
        if let Some(extra) = of(self.extra, texts) {
            for (name, json) in members(extra) {
                if let (Some(at), Some(text)) = (header_at(&name), string(json)) {
                    headers[at] = Some(text);
                }
            }
        }
        headers
    }

    /// Takes the content, its hash and the custom attributes out.
    fn erase(&mut self, texts: &mut String) {
        if self.body.is_some() {
            self.body_is_json = false;
            self.body = keep(ERASED, texts);
        }
        self.content_hash = None;
        self.attrs.clear();
        if let Some(extra) = of(self.extra, texts) {
            let kept = members(extra).into_iter();
            let kept = kept.filter(|(name, _)| is_header(name) && name != "content");
            let kept: Vec<String> = kept
                .filter(|(name, _)| name != "content_hash")
                .map(|(name, json)| format!("{}:{json}", quoted(&name)))
                .collect();
            self.extra = match kept.is_empty() {
                true => None,
                false => keep(&format!("{{{}}}", kept.join(",")), texts),
            };
        }
    }

    /// The fields of the payload record, sorted by name.
    fn fields<'f>(
        &'f self,
        texts: &'f str,
        parent: Option<&str>,
    ) -> Result<Fields<'f>, StoreError> {
        let has = |bit| self.present & bit != 0;
        let mut fields = Fields::new();
        let attrs = self.attrs.iter();
        fields.extend(attrs.map(|(name, json)| (Cow::Borrowed(&**name), Cow::Borrowed(&**json))));
        let mut add = |name, json: Cow<'f, str>| fields.push((Cow::Borrowed(name), json));
        if let Some(body) = of(self.body, texts) {
            add(
                "content",
                match self.body_is_json {
                    true => Cow::Borrowed(body),
                    false => quoted(body).into(),
                },
            );
        }
        if has(present::CREATED_AT_ISO) {
            let json = match of(self.created_at_iso, texts) {
                Some(iso) => quoted(iso),
                // No character of it needs to be escaped.
                None => ["\"", &rfc3339_of_nanos(self.created_at_ns), "\""].concat(),
            };
            add("created_at_iso", json.into());
        }
        if let Some(hash) = of(self.content_hash, texts) {
            add("content_hash", quoted(hash).into());
        }
        if let Some(cadence) = self.cadence.filter(|_| has(present::CADENCE)) {
            add(CADENCE.name, cadence.to_string().into());
        }
        if has(present::TAGS) {
            let tags: Vec<String> = self.tags.iter().map(|tag| quoted(tag)).collect();
            add(TAGS.name, format!("[{}]", tags.join(",")).into());
        }
        if has(present::NULL_TTL) {
            add("ttl", Cow::Borrowed("null"));
        }
        if has(present::PARENT_ID) {
            let id = self.id(texts);
            let missing = || StoreError::Damaged(format!("node {id:?} has no parent"));
            add("parent_id", quoted(parent.ok_or_else(missing)?).into());
        }
        if let Some(extra) = of(self.extra, texts) {
            for (name, json) in members(extra) {
                // A header with U+0000; a null one is a field.
                if header_at(&name).is_some() && json.starts_with('"') {
                    continue;
                }
                fields.retain(|(known, _)| *known != name);
                fields.push((name, Cow::Borrowed(json)));
            }
        }
        fields.sort_unstable();
        Ok(fields)
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn read_node(row: &dyn Row, texts: &mut String) -> Result<Found, StoreError> {
    let level = int(row, 2)?;
    let class = text(row, 3)?;
    let wrong = |what: &str| StoreError::Damaged(format!("a node has {what}"));
    let level = u32::try_from(level).map_err(|_| wrong("a negative level"))?;
    let class = class_of_name(class).ok_or_else(|| wrong("an unknown class"))?;
    let id = keep(text(row, 4)?, texts);
    let mut kept = |at| {
        let text = row.text(at)?;
        Ok::<_, StoreError>(text.and_then(|text| keep(text, texts)))
    };
    Ok(Found {
        unit: int(row, 0)?,
        pre: int(row, 1)?,
        level,
        class,
        id,
        headers: [kept(5)?, kept(6)?, kept(7)?, kept(8)?],
        offset: int(row, 9)?,
        ttl: row.int(10)?,
        expires: row.int(11)?,
        priority: int(row, 12)?,
        cycle: row.int(13)?,
        created_at_ns: int(row, 14)?,
        created_at_iso: kept(15)?,
        creation_index: int(row, 16)?,
        cadence: row.int(17)?,
        content_hash: kept(18)?,
        present: int(row, 19)?,
        extra: kept(20)?,
        body_is_json: row.bool(21)?.unwrap_or(false),
        body: kept(22)?,
        attrs: Vec::new(),
        tags: Vec::new(),
    })
}

fn read_attr(row: &dyn Row, node: &mut Found) -> Result<(), StoreError> {
    let (name, ordinal) = (text(row, 2)?, int(row, 3)?);
    let value = row.text(5)?;
    let json = match (text(row, 4)?, value) {
        ("text", Some(value)) if name == TAGS.name && ordinal >= 0 => {
            node.tags.push(value.to_owned());
            return Ok(());
        }
        ("text", Some(value)) => quoted(value),
        ("null", _) => "null".to_owned(),
        (_, Some(value)) => value.to_owned(),
        // The value is in `extra`.
        (_, None) => return Ok(()),
    };
    node.attrs.push((name.to_owned(), json));
    Ok(())
}

/// The class of a name of [`super::encode::class_name`].
fn class_of_name(name: &str) -> Option<NodeClass> {
    Some(match name {
        "^root" => NodeClass::Root,
        "^sys" => NodeClass::Sys,
        "^seq" => NodeClass::Seq,
        "^ah" => NodeClass::Head,
        "mt" => NodeClass::Turn,
        "mc" => NodeClass::Container,
        "cb" => NodeClass::Block,
        _ => return None,
    })
}
