//! Selections and diffs as Arrow tables, over the C stream interface.
//!
//! A consumer takes batch after batch; a batch is made when it is asked for, without the interpreter.

use crate::answers::Left;
use crate::selection::Inner;
use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pactql::{Answer, RangeDiff};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::{Map, Value};
use std::sync::{Arc, LazyLock};

/// The most rows of a batch.
const ROWS: usize = 8_192;

/// The bytes of texts after which a batch ends: its offsets have 32 bits.
const TEXTS: usize = 32 << 20;

/// A capsule with the stream of some batches.
///
/// # Errors
/// Those of Python.
pub(crate) fn stream(py: Python<'_>, batches: Batches) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// The columns of nodes.
static NODES: LazyLock<SchemaRef> = LazyLock::new(|| {
    let (text, number) = (DataType::Utf8, DataType::Int64);
    let column = |name: &str, kind: &DataType, nullable| Field::new(name, kind.clone(), nullable);
    Arc::new(Schema::new(vec![
        column("session", &text, true),
        column("snapshot", &number, false),
        column("id", &text, false),
        column("parent_id", &text, true),
        column("type", &text, false),
        column("role", &text, true),
        column("kind", &text, true),
        column("key", &text, true),
        column("tags", &texts(), false),
        column("depth", &number, true),
        column("offset", &number, false),
        column("ttl", &number, true),
        column("priority", &number, false),
        column("cadence", &number, true),
        column("cycle", &number, true),
        column("created_at_ns", &number, false),
        column("creation_index", &number, false),
        column("text", &text, false),
        column("attrs", &text, true),
    ]))
});

/// The columns of changes.
static CHANGES: LazyLock<SchemaRef> = LazyLock::new(|| {
    let (text, number) = (DataType::Utf8, DataType::Int64);
    Arc::new(Schema::new(vec![
        Field::new("session", text.clone(), true),
        Field::new("newer", number.clone(), false),
        Field::new("older", number.clone(), false),
        Field::new("change", text.clone(), false),
        Field::new("id", text.clone(), false),
        Field::new("ord", number, false),
        Field::new("fields", texts(), false),
        Field::new("delta", text.clone(), true),
        Field::new("content_diff", text, true),
    ]))
});

/// Lists of texts.
fn texts() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
}

/// Where batches come from.
enum From {
    /// Nodes, from a position on.
    Nodes(Arc<Inner>, usize),
    /// Changes, from a position among all of them on.
    Changes(Arc<RangeDiff>, Option<Arc<str>>, usize),
    /// Nothing is left.
    Nothing,
}

/// The batches of a table.
pub(crate) struct Batches {
    schema: SchemaRef,
    from: From,
    /// The sessions of a store that come after.
    store: Option<Arc<Left>>,
}

impl Batches {
    /// The nodes of a selection.
    pub(crate) fn of_nodes(nodes: Arc<Inner>) -> Self {
        Self {
            schema: Arc::clone(&NODES),
            from: From::Nodes(nodes, 0),
            store: None,
        }
    }

    /// The changes of a diff.
    pub(crate) fn of_changes(diff: Arc<RangeDiff>, session: Option<Arc<str>>) -> Self {
        Self {
            schema: Arc::clone(&CHANGES),
            from: From::Changes(diff, session, 0),
            store: None,
        }
    }

    /// What is left of the answers of a store.
    pub(crate) fn of_store(left: Arc<Left>, changes: bool) -> Self {
        let schema = if changes { &CHANGES } else { &NODES };
        Self {
            schema: Arc::clone(schema),
            from: From::Nothing,
            store: Some(left),
        }
    }

    /// Goes on with the next session of the store. `false` if there is none.
    fn advance(&mut self) -> Result<bool, ArrowError> {
        let Some(left) = &self.store else {
            return Ok(false);
        };
        let Some(next) = left.next() else {
            self.store = None;
            return Ok(false);
        };
        let found = next.map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        self.from = match found.answer {
            Answer::Rows(rows) => From::Nodes(left.inner(rows, &found.session), 0),
            Answer::Range(diff) => From::Changes(Arc::new(diff), Some(found.session.into()), 0),
        };
        Ok(true)
    }

    /// The next batch of what is being read; `None` at its end.
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let columns = match &mut self.from {
            From::Nodes(inner, at) => nodes(inner, at),
            From::Changes(diff, session, at) => changes(diff, session.as_deref(), at),
            From::Nothing => None,
        };
        let batch = |columns| RecordBatch::try_new(Arc::clone(&self.schema), columns);
        columns.map(batch).transpose()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.batch().transpose() {
                return Some(batch);
            }
            self.from = From::Nothing;
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The columns of the nodes from a position on, which moves; `None` at the end.
fn nodes(inner: &Inner, at: &mut usize) -> Option<Vec<ArrayRef>> {
    let all = inner.nodes();
    let left = all.get(*at..).filter(|left| !left.is_empty())?;
    let mut texts: [StringBuilder; 9] = Default::default();
    let mut numbers: [Int64Builder; 9] = Default::default();
    let mut tags = ListBuilder::new(StringBuilder::new());
    let (mut rows, mut bytes) = (0, 0);
    for node in left.iter().take(ROWS) {
        let content = node.text();
        bytes += content.len();
        if rows > 0 && bytes > TEXTS {
            break;
        }
        rows += 1;
        let attributes: Map<String, Value> = node
            .attributes()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let attributes = (!attributes.is_empty()).then(|| Value::Object(attributes).to_string());
        let parent = node.parent().map(pactql::Node::id);
        for (column, text) in texts.iter_mut().zip([
            inner.name(),
            Some(node.id()),
            parent,
            Some(node.node_type()),
            node.role(),
            node.kind(),
            node.key(),
            Some(&*content),
            attributes.as_deref(),
        ]) {
            column.append_option(text);
        }
        for (column, number) in numbers.iter_mut().zip([
            Some(node.snapshot_cycle()),
            node.depth(),
            Some(node.offset()),
            node.ttl(),
            Some(node.priority()),
            node.cadence(),
            node.cycle(),
            Some(node.created_at_ns()),
            Some(node.creation_index()),
        ]) {
            column.append_option(number);
        }
        for tag in node.tags() {
            tags.values().append_value(tag);
        }
        tags.append(true);
    }
    *at += rows;
    let mut texts = texts
        .into_iter()
        .map(|mut column| Arc::new(column.finish()) as ArrayRef);
    let mut numbers = numbers
        .into_iter()
        .map(|mut column| Arc::new(column.finish()) as ArrayRef);
    let tags = Arc::new(tags.finish()) as ArrayRef;
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(NODES.fields().len());
    columns.extend(texts.next());
    columns.extend(numbers.next());
    columns.extend(texts.by_ref().take(6));
    columns.push(tags);
    columns.extend(numbers);
    columns.extend(texts);
    Some(columns)
}

/// A change as a row.
struct Row<'a> {
    newer: i64,
    older: i64,
    what: &'static str,
    id: &'a str,
    ord: i64,
    change: Option<&'a pactql::Change>,
}

/// All changes of a diff: of each pair the added nodes, the removed and the changed ones.
fn rows(diff: &RangeDiff) -> impl Iterator<Item = Row<'_>> {
    let mut ord = 0;
    let rows = diff.diffs.iter().flat_map(|pair| {
        let row = move |what, id, change| Row {
            newer: pair.from.cycle,
            older: pair.to.cycle,
            what,
            id,
            ord: 0,
            change,
        };
        let added = pair.added_ids.iter().map(move |id| row("added", id, None));
        let removed = pair
            .removed_ids
            .iter()
            .map(move |id| row("removed", id, None));
        let changed = pair.changed.iter();
        let changed = changed.map(move |change| row("changed", &change.id, Some(change)));
        added.chain(removed).chain(changed)
    });
    rows.map(move |row| {
        ord += 1;
        Row { ord, ..row }
    })
}

/// The columns of the changes from a position on, which moves; `None` at the end.
fn changes(diff: &RangeDiff, session: Option<&str>, at: &mut usize) -> Option<Vec<ArrayRef>> {
    let mut texts: [StringBuilder; 5] = Default::default();
    let mut numbers: [Int64Builder; 3] = Default::default();
    let mut fields = ListBuilder::new(StringBuilder::new());
    let (mut count, mut bytes) = (0, 0);
    for row in rows(diff).skip(*at).take(ROWS) {
        let json = |value: Result<String, _>| value.ok();
        let delta = row.change.filter(|change| !change.delta.is_empty());
        let delta = delta.and_then(|change| json(serde_json::to_string(&change.delta)));
        let content = row.change.and_then(|change| change.content_diff.as_ref());
        let content = content.and_then(|content| json(serde_json::to_string(content)));
        bytes += content.as_ref().map_or(0, String::len) + delta.as_ref().map_or(0, String::len);
        if count > 0 && bytes > TEXTS {
            break;
        }
        count += 1;
        for (column, text) in texts.iter_mut().zip([
            session,
            Some(row.what),
            Some(row.id),
            delta.as_deref(),
            content.as_deref(),
        ]) {
            column.append_option(text);
        }
        for (column, number) in numbers.iter_mut().zip([row.newer, row.older, row.ord]) {
            column.append_value(number);
        }
        for field in row.change.map_or(&[][..], |change| &change.fields) {
            fields.values().append_value(field);
        }
        fields.append(true);
    }
    if count == 0 {
        return None;
    }
    *at += count;
    let mut texts = texts
        .into_iter()
        .map(|mut column| Arc::new(column.finish()) as ArrayRef);
    let mut numbers = numbers
        .into_iter()
        .map(|mut column| Arc::new(column.finish()) as ArrayRef);
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(CHANGES.fields().len());
    columns.extend(texts.next());
    columns.extend(numbers.by_ref().take(2));
    columns.extend(texts.by_ref().take(2));
    columns.extend(numbers);
    columns.push(Arc::new(fields.finish()));
    columns.extend(texts);
    Some(columns)
}
