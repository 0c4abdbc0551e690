//! Rows of `node`, `attr` and `body` as the rows of a tree: the reverse of [`super::encode`].

use std::borrow::Cow;
use std::ops::Range;

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::json::{JsonValue, Reader, StoredValue, members, string};
use crate::store::database::sql::{Database, ResultRow, Type, int, parameters, text};
use crate::store::error::{Result, StoreError};
use crate::store::layout::present;
use crate::store::layout::wide::{Cells, Wide};
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::timestamp::rfc3339_of_nanos;
use crate::tree::{NONE, NodeClass, NodeHeaders, Present, Tree, header, is_header, push_row};

const COLUMNS: &str = "n.unit_id, n.pre, n.level, n.class, n.id, n.node_type, n.role, n.kind, n.key, \
     n.sibling_offset, n.ttl, n.expires, n.priority, n.cycle, n.created_at_ns, n.created_at_iso, \
     n.creation_index, n.cadence, n.content_hash, n.present, n.extra, b.json, b.text";

const KINDS: [Type; 23] = {
    use Type::{Bool, Int, Text};
    [
        Int, Int, Int, Text, Text, Text, Text, Text, Text, Int, Int, Int, Int, Int, Int, Text, Int,
        Int, Text, Int, Text, Bool, Text,
    ]
};

/// The most units that one statement reads by their ids. Their rows are in memory together before they are decoded.
const TOGETHER: usize = 256;
/// Up to this number, units are read one by one: SQLite makes a table of a list, which costs as much.
const FEW: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Units {
    /// The rows of the units one after the other, each in document order, at their levels.
    pub(crate) tree: Tree,
    /// The rows with a ttl that counts down, ascending. Their ttl in `tree` is the cycle in which it expires.
    pub(crate) expires: Vec<u32>,
    pub(crate) starts: HashMap<i64, u32>,
    last: Option<i64>,
    /// The rows whose subtrees are not complete.
    open: Vec<u32>,
    erased: Vec<String>,
    wide: Wide,
    /// The values of the row that is on its way, as [`JsonValue::store`] writes them.
    values: String,
}

/// What a content that was erased reads.
pub(crate) const ERASED: &str = "[erased]";

struct NodeRow<'w> {
    unit: i64,
    pre: i64,
    level: u32,
    class: NodeClass,
    headers: NodeHeaders<'w>,
    expires: Option<i64>,
    created_at_iso: Option<&'w str>,
    cadence: Option<i64>,
    content_hash: Option<&'w str>,
    present: i64,
    extra: Option<Cow<'w, str>>,
    body_is_json: bool,
    body: Option<&'w str>,
}

/// A row of `attr`: an attribute that no column has, or a tag.
struct AttributeRow {
    node: (i64, i64),
    name: String,
    value: StoredValue,
    is_tag: bool,
}

/// The fields of a payload record: names, and where their values are in [`Units::values`].
type PayloadFields<'f> = SmallVec<[(Cow<'f, str>, Range<usize>); 8]>;

impl Units {
    pub(crate) fn erasing(ids: &[&str]) -> Self {
        Self {
            erased: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Reads units; of `outlines` without the nodes of `^sys`: of a preamble the rows of the root and of `^seq`.
    pub(crate) fn read_all(
        &mut self,
        database: &mut dyn Database,
        units: &[i64],
        outlines: bool,
    ) -> Result<()> {
        let size = if units.len() <= FEW { 1 } else { TOGETHER };
        let mut some = units.chunks(size);
        some.try_for_each(|units| self.read(database, units, outlines))
    }

    /// In order of `unit_id`. One statement, and another one if a node has attributes; linear in their rows.
    fn read(&mut self, database: &mut dyn Database, units: &[i64], outlines: bool) -> Result<()> {
        let (names, values) = parameters(units);
        let rows = match units {
            [_] => "n.unit_id = ?1".to_owned(),
            _ => format!("n.unit_id in ({names})"),
        };
        let outside = if outlines {
            " and (n.base_depth is null or n.base_depth >= 0)"
        } else {
            ""
        };
        let rest = format!(
            "from node n left join body b on b.body_id = n.body_id where {rows}{outside} \
             and n.id is not null order by n.unit_id, n.pre"
        );
        let mut wide = std::mem::take(&mut self.wide);
        database.query_wide(COLUMNS, &KINDS, &rest, &values, &mut wide)?;
        let mut found: Vec<NodeRow<'_>> = Vec::with_capacity(wide.len());
        for cells in wide.rows() {
            found.push(read_node(cells)?);
        }
        let mut attributes = Vec::new();
        if found.iter().any(|node| node.present & present::ATTRS != 0) {
            let sql = format!(
                "select n.unit_id, n.pre, n.name, n.ordinal, n.type, n.text from attr n where {rows} \
                 and (n.ordinal = -1 or n.name = 'tags') and n.type not in ('list', 'object') \
                 order by n.unit_id, n.pre, n.name, n.ordinal"
            );
            database.query(&sql, &values, &mut |row| {
                attributes.extend(read_attr(row)?);
                Ok(())
            })?;
        }
        let mut left = &attributes[..];
        for mut node in found {
            let key = (node.unit, node.pre);
            let start = left.iter().take_while(|attribute| attribute.node < key);
            left = &left[start.count()..];
            let own = left.iter().take_while(|attribute| attribute.node == key);
            let (mut own, others) = left.split_at(own.count());
            left = others;
            if !self.erased.is_empty() && self.erased.iter().any(|id| id == node.headers.id) {
                node.erase();
                own = &[];
            }
            self.push(&node, own)?;
        }
        self.close(0);
        self.wide = wide;
        Ok(())
    }

    pub(crate) fn rows_of(&self, unit: i64) -> Option<Range<u32>> {
        let start = *self.starts.get(&unit)?;
        let top = self.tree.rows.get(start as usize)?;
        Some(start..top.end)
    }

    fn push(&mut self, node: &NodeRow<'_>, attributes: &[AttributeRow]) -> Result<()> {
        let row = self.tree.rows.len() as u32;
        let first = self.last.replace(node.unit) != Some(node.unit);
        if first {
            self.close(0);
            self.starts.insert(node.unit, row);
        }
        self.close(node.level);
        let parent = self.open.last().copied();
        if !self.fits(node, parent, first) {
            let (id, class) = (node.headers.id, node.class);
            let at = format!("node {id:?} of class {class:?} is at level {}", node.level);
            return Err(StoreError::Damaged(format!("{at}, where none can be")));
        }
        // A node that names its parent is rare, so its field is made only then.
        let parent_id = match node.present & present::PARENT_ID {
            0 => None,
            _ => parent.map(|parent| self.tree.id(parent)),
        };
        self.values.clear();
        let fields = node.fields(attributes, parent_id, &mut self.values)?;
        let texts = node.all_headers();
        push_row(
            &mut self.tree,
            NodeHeaders {
                texts: texts.each_ref().map(Option::as_deref),
                ..node.headers
            },
            fields.iter().map(|(name, at)| {
                let value = self.values.get(at.clone());
                (&**name, JsonValue::stored(value.unwrap_or_default()))
            }),
        );
        if let Some(made) = self.tree.rows.last_mut() {
            made.parent = parent.unwrap_or(NONE);
            made.level = node.level;
            made.class = node.class;
        }
        self.open.push(row);
        self.expires.extend(node.expires.map(|_| row));
        Ok(())
    }

    /// The index relies on levels without gaps, and on regions that are where they belong.
    fn fits(&self, node: &NodeRow<'_>, parent: Option<u32>, first: bool) -> bool {
        use NodeClass::{Head, Root, Seq, Sys};
        let class = |row: u32| self.tree.rows.get(row as usize).map(|row| row.class);
        let Some(parent) = parent else {
            return first
                && match node.class {
                    Root => node.level == 0,
                    Head => node.level == 1,
                    Sys | Seq => false,
                    _ => (1..=2).contains(&node.level),
                };
        };
        let before = self.tree.rows.last().map(|row| row.class);
        let above = self.tree.rows.get(parent as usize);
        above.is_some_and(|above| above.level + 1 == node.level)
            && match (class(parent), node.class) {
                (Some(Root), Sys) => before == Some(Root),
                (Some(Root), Seq) => before != Some(Seq),
                (Some(Root | Seq), _) | (_, Root | Sys | Seq | Head) => false,
                _ => true,
            }
    }

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

fn header_at(name: &str) -> Option<usize> {
    header::TEXTS.iter().position(|header| *header == name)
}

impl NodeRow<'_> {
    /// The headers that are texts, also those that no column can hold, which `extra` has.
    fn all_headers(&self) -> [Option<Cow<'_, str>>; 4] {
        let mut headers = self.headers.texts.map(|text| text.map(Cow::Borrowed));
        if let Some(extra) = &self.extra {
            for (name, json) in members(extra) {
                if let (Some(at), Some(text)) = (header_at(&name), string(json)) {
                    headers[at] = Some(text);
                }
            }
        }
        headers
    }

    /// Takes the content and its hash out, and the custom attributes that no row of `attr` has.
    fn erase(&mut self) {
        if self.body.is_some() {
            self.body_is_json = false;
            self.body = Some(ERASED);
        }
        self.content_hash = None;
        if let Some(extra) = &self.extra {
            let kept = members(extra).into_iter().filter(|(name, _)| {
                is_header(name) && !["content", "content_hash"].contains(&&**name)
            });
            let kept = kept.map(|(name, json)| format!("{}:{json}", JsonValue::Text(&name).json()));
            let kept = kept.collect::<Vec<_>>().join(",");
            self.extra = (!kept.is_empty()).then(|| format!("{{{kept}}}").into());
        }
    }

    /// The fields of the payload record, sorted by name. Their values are appended to `values`.
    fn fields<'f>(
        &'f self,
        attributes: &'f [AttributeRow],
        parent: Option<&str>,
        values: &mut String,
    ) -> Result<PayloadFields<'f>> {
        let has = |bit| self.present & bit != 0;
        let mut fields = PayloadFields::new();
        let mut add = |name: Cow<'f, str>, value: JsonValue<'_>| {
            let start = values.len();
            value.store(values);
            fields.push((name, start..values.len()));
        };
        let mut decoded = String::new();
        for attribute in attributes.iter().filter(|attribute| !attribute.is_tag) {
            add(Cow::Borrowed(&*attribute.name), attribute.value.get());
        }
        if let Some(body) = self.body {
            let value = if self.body_is_json {
                JsonValue::read(body, &mut decoded)
            } else {
                JsonValue::Text(body)
            };
            add("content".into(), value);
        }
        if has(present::CREATED_AT_ISO) {
            let of_time = || rfc3339_of_nanos(self.headers.numbers[header::CREATED_AT_NS]).into();
            let iso = self.created_at_iso.map_or_else(of_time, Cow::Borrowed);
            add("created_at_iso".into(), JsonValue::Text(&iso));
        }
        if let Some(hash) = self.content_hash {
            add("content_hash".into(), JsonValue::Text(hash));
        }
        if let Some(cadence) = self.cadence.filter(|_| has(present::CADENCE)) {
            add(CADENCE.name.into(), JsonValue::Number(&cadence.to_string()));
        }
        if has(present::TAGS) {
            let tags = attributes.iter().filter(|attribute| attribute.is_tag);
            let tags: Vec<Cow<'_, str>> = tags.map(|tag| tag.value.get().json()).collect();
            let list = format!("[{}]", tags.join(","));
            add(TAGS.name.into(), JsonValue::List(&list));
        }
        if has(present::NULL_TTL) {
            add("ttl".into(), JsonValue::Null);
        }
        if has(present::PARENT_ID) {
            let missing =
                || StoreError::Damaged(format!("node {:?} has no parent", self.headers.id));
            let parent = parent.ok_or_else(missing)?;
            add("parent_id".into(), JsonValue::Text(parent));
        }
        if let Some(extra) = &self.extra {
            for (name, json) in members(extra) {
                // A header with U+0000; a null one is a field.
                if header_at(&name).is_some() && json.starts_with('"') {
                    continue;
                }
                fields.retain(|(known, _)| *known != name);
                let start = values.len();
                JsonValue::read(json, &mut decoded).store(values);
                fields.push((name, start..values.len()));
            }
        }
        fields.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(fields)
    }
}

fn read_node(mut row: Cells<'_>) -> Result<NodeRow<'_>> {
    let wrong = |what: &str| StoreError::Damaged(format!("a node has {what}"));
    let (unit, pre) = (row.given_int()?, row.given_int()?);
    let level = u32::try_from(row.given_int()?).map_err(|_| wrong("a negative level"))?;
    let class = NodeClass::parse(row.given_text()?).ok_or_else(|| wrong("an unknown class"))?;
    let (id, texts) = (
        row.given_text()?,
        [row.text()?, row.text()?, row.text()?, row.text()?],
    );
    let (offset, ttl, expires) = (row.given_int()?, row.int()?, row.int()?);
    let (priority, cycle) = (row.given_int()?, row.int()?.unwrap_or(0));
    let (created_at_ns, created_at_iso) = (row.given_int()?, row.text()?);
    let (creation_index, cadence) = (row.given_int()?, row.int()?);
    let (content_hash, present) = (row.text()?, row.given_int()?);
    let ttl = ttl.or(expires).unwrap_or(0);
    let found = NodeRow {
        unit,
        pre,
        level,
        class,
        headers: NodeHeaders {
            id,
            present: Present((present & 0xFF) as u8),
            texts,
            numbers: [offset, ttl, priority, cycle, created_at_ns, creation_index],
        },
        expires,
        created_at_iso,
        cadence,
        content_hash,
        present,
        extra: row.text()?.map(Cow::Borrowed),
        body_is_json: row.int()? == Some(1),
        body: row.text()?,
    };
    let body = found.body.filter(|_| found.body_is_json);
    let is_sound = body.is_none_or(is_json) && found.extra.as_deref().is_none_or(is_json);
    let unreadable = || wrong("a value that is not JSON");
    is_sound.then_some(found).ok_or_else(unreadable)
}

/// Whether a text is one JSON value, as everything relies on that reads one later.
pub(crate) fn is_json(text: &str) -> bool {
    let mut reader = Reader::new(text);
    reader.skip_value().is_ok() && reader.end().is_ok()
}

/// The attribute of a row; `None` if the value is in `extra`.
fn read_attr(row: &dyn ResultRow) -> Result<Option<AttributeRow>> {
    let (name, ordinal) = (text(row, 2)?, int(row, 3)?);
    let is_tag = name == TAGS.name && ordinal >= 0;
    let (is_tag, value) = match (text(row, 4)?, row.text(5)?) {
        ("text", Some(value)) => (is_tag, value.into()),
        ("null", _) => (false, JsonValue::Null.into()),
        (_, Some(value)) if is_json(value) => (false, StoredValue::of_json(value)),
        (_, Some(_)) => {
            let what = format!("attribute {name:?} is not JSON");
            return Err(StoreError::Damaged(what));
        }
        (_, None) => return Ok(None),
    };
    Ok(Some(AttributeRow {
        node: (int(row, 0)?, int(row, 1)?),
        name: name.to_owned(),
        value,
        is_tag,
    }))
}
