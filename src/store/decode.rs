//! Rows of `node`, `attr` and `body` as the rows of a tree: the reverse of [`super::encode`].

use std::borrow::Cow;
use std::ops::Range;

use super::error::StoreError;
use super::present;
use super::sql::{Database, Row, Value, int, text};
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
    /// One unit.
    Unit(i64),
    /// At least one unit, and at most [`TOGETHER`].
    Units(&'u [i64]),
    /// The rows of the root and of `^seq` of a unit.
    Outline(i64),
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
}

/// What is in the place of a content that was erased.
const ERASED: &str = "[erased]";

/// A row of `node`, on its way.
struct Found {
    unit: i64,
    pre: i64,
    level: u32,
    class: NodeClass,
    id: String,
    texts: [Option<String>; 4],
    offset: i64,
    ttl: Option<i64>,
    expires: Option<i64>,
    priority: i64,
    cycle: Option<i64>,
    created_at_ns: i64,
    created_at_iso: Option<String>,
    creation_index: i64,
    cadence: Option<i64>,
    content_hash: Option<String>,
    present: i64,
    extra: Option<String>,
    body: Option<(bool, String)>,
    /// Names and JSON texts of the attributes that only `attr` has.
    attrs: Vec<(String, String)>,
    tags: Vec<String>,
}

impl Units {
    /// Units in which the contents and the custom attributes of some nodes are erased.
    pub(super) fn erasing(ids: &[&str]) -> Self {
        Self {
            erased: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Reads some units.
    pub(super) fn read_all(
        &mut self,
        database: &mut dyn Database,
        units: &[i64],
    ) -> Result<(), StoreError> {
        units
            .chunks(TOGETHER)
            .try_for_each(|units| self.read(database, Wanted::Units(units)))
    }

    /// Reads units, in order of `unit_id`. Two statements; linear in their rows.
    pub(super) fn read(
        &mut self,
        database: &mut dyn Database,
        wanted: Wanted<'_>,
    ) -> Result<(), StoreError> {
        let list;
        let (from, rest, values) = match wanted {
            Wanted::Unit(unit) => ("node n", "n.unit_id = ?1", vec![Value::Int(unit)]),
            Wanted::Units(units) => {
                // The last one fills the list up, so that there are few different statements.
                let filled = units.len().next_power_of_two();
                let last = units.last().into_iter().cycle();
                let values = units.iter().chain(last).take(filled);
                let names: Vec<String> = (1..=filled).map(|at| format!("?{at}")).collect();
                list = format!("n.unit_id in ({})", names.join(", "));
                (
                    "node n",
                    &*list,
                    values.map(|unit| Value::Int(*unit)).collect(),
                )
            }
            Wanted::Outline(unit) => (
                "node n",
                "n.unit_id = ?1 and n.class in ('^root', '^seq')",
                vec![Value::Int(unit)],
            ),
            Wanted::Session(session, first, last) => (
                "(select distinct unit_id from placement where session_id = ?1 \
                 and first_seq <= ?3 and last_seq >= ?2) p join node n on n.unit_id = p.unit_id",
                "true",
                vec![Value::Int(session), Value::Int(first), Value::Int(last)],
            ),
        };
        let sql = format!(
            "select {COLUMNS} from {from} left join body b on b.body_id = n.body_id \
             where {rest} and n.id is not null order by n.unit_id, n.pre"
        );
        let mut found: Vec<Found> = Vec::new();
        database.query(&sql, &values, &mut |row| {
            found.push(read_node(row)?);
            Ok(())
        })?;
        let (from, rest) = (
            from.replace("node n", "attr n"),
            rest.replace("n.class in ('^root', '^seq')", "true"),
        );
        let sql = format!(
            "select n.unit_id, n.pre, n.name, n.ordinal, n.type, n.text from {from} where {rest} \
             and (n.ordinal = -1 or n.name = 'tags') and n.type not in ('list', 'object') \
             order by n.unit_id, n.pre, n.name, n.ordinal"
        );
        let mut at = 0;
        database.query(&sql, &values, &mut |row| {
            let key = (int(row, 0)?, int(row, 1)?);
            while at < found.len() && (found[at].unit, found[at].pre) < key {
                at += 1;
            }
            match found.get_mut(at) {
                Some(node) if (node.unit, node.pre) == key => read_attr(row, node),
                _ => Ok(()),
            }
        })?;
        for mut node in found {
            if self.erased.contains(&node.id) {
                node.erase();
            }
            self.push(node)?;
        }
        self.close(0);
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

    fn push(&mut self, mut node: Found) -> Result<(), StoreError> {
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
        let parent_id = parent.map(|parent| self.tree.id(parent));
        let fields = node.fields(parent_id)?;
        node.take_headers();
        let [node_type, role, kind, key] = &node.texts;
        push_row(
            &mut self.tree,
            PatchNode {
                id: &node.id,
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

/// The place of a header among [`Found::texts`].
fn header_at(name: &str) -> Option<usize> {
    ["nodeType", "role", "kind", "key"]
        .iter()
        .position(|header| *header == name)
}

impl Found {
    /// Takes the headers from `extra` that no column of text can hold.
    fn take_headers(&mut self) {
        let extra = self.extra.as_deref().unwrap_or("{}");
        for (name, json) in members(extra) {
            if let (Some(at), Some(text)) = (header_at(&name), string(json)) {
                self.texts[at] = Some(text.into_owned());
            }
        }
    }

    /// Takes the content, its hash and the custom attributes out.
    fn erase(&mut self) {
        if self.body.is_some() {
            self.body = Some((false, ERASED.to_owned()));
        }
        self.content_hash = None;
        self.attrs.clear();
        if let Some(extra) = self.extra.take() {
            let kept = members(&extra).into_iter();
            let kept = kept.filter(|(name, _)| is_header(name) && name != "content");
            let kept: Vec<String> = kept
                .filter(|(name, _)| name != "content_hash")
                .map(|(name, json)| format!("{}:{json}", quoted(&name)))
                .collect();
            self.extra = (!kept.is_empty()).then(|| format!("{{{}}}", kept.join(",")));
        }
    }

    /// The fields of the payload record, sorted by name.
    fn fields(&self, parent: Option<&str>) -> Result<Vec<(String, String)>, StoreError> {
        let has = |bit| self.present & bit != 0;
        let mut fields = self.attrs.clone();
        let mut add = |name: &str, json: String| fields.push((name.to_owned(), json));
        if let Some((json, text)) = &self.body {
            add("content", if *json { text.clone() } else { quoted(text) });
        }
        if has(present::CREATED_AT_ISO) {
            let iso = self.created_at_iso.as_deref().map(Cow::Borrowed);
            let iso = iso.unwrap_or_else(|| Cow::Owned(rfc3339_of_nanos(self.created_at_ns)));
            add("created_at_iso", quoted(&iso));
        }
        if let Some(hash) = &self.content_hash {
            add("content_hash", quoted(hash));
        }
        if let Some(cadence) = self.cadence.filter(|_| has(present::CADENCE)) {
            add(CADENCE.name, cadence.to_string());
        }
        if has(present::TAGS) {
            let tags: Vec<String> = self.tags.iter().map(|tag| quoted(tag)).collect();
            add(TAGS.name, format!("[{}]", tags.join(",")));
        }
        if has(present::PARENT_ID) {
            let missing = || StoreError::Damaged(format!("node {:?} has no parent", self.id));
            add("parent_id", quoted(parent.ok_or_else(missing)?));
        }
        if let Some(extra) = &self.extra {
            for (name, json) in members(extra) {
                // A header with U+0000; a null one is a field.
                if header_at(&name).is_some() && json.starts_with('"') {
                    continue;
                }
                fields.retain(|(known, _)| *known != name);
                fields.push((name.into_owned(), json.to_owned()));
            }
        }
        fields.sort_unstable();
        Ok(fields)
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn read_node(row: &dyn Row) -> Result<Found, StoreError> {
    let owned = |at| Ok::<_, StoreError>(row.text(at)?.map(ToOwned::to_owned));
    let body = match (row.bool(21)?, row.text(22)?) {
        (Some(json), Some(text)) => Some((json, text.to_owned())),
        _ => None,
    };
    let level = int(row, 2)?;
    let class = text(row, 3)?;
    let wrong = |what: &str| StoreError::Damaged(format!("a node has {what}"));
    Ok(Found {
        unit: int(row, 0)?,
        pre: int(row, 1)?,
        level: u32::try_from(level).map_err(|_| wrong("a negative level"))?,
        class: class_of_name(class).ok_or_else(|| wrong("an unknown class"))?,
        id: text(row, 4)?.to_owned(),
        texts: [owned(5)?, owned(6)?, owned(7)?, owned(8)?],
        offset: int(row, 9)?,
        ttl: row.int(10)?,
        expires: row.int(11)?,
        priority: int(row, 12)?,
        cycle: row.int(13)?,
        created_at_ns: int(row, 14)?,
        created_at_iso: owned(15)?,
        creation_index: int(row, 16)?,
        cadence: row.int(17)?,
        content_hash: owned(18)?,
        present: int(row, 19)?,
        extra: owned(20)?,
        body,
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
