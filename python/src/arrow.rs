//! Selections and diffs as Arrow tables, over the C stream interface.
//!
//! A consumer takes batch after batch; a batch is made on demand, without the interpreter.

use crate::answers::Left;
use crate::selection::Inner;
use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pactql::{Answer, RangeDiff};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::{Arc, LazyLock};

/// The most rows of a batch.
const ROWS: usize = 8_192;

/// The bytes of a batch, after which it ends: its offsets have 32 bits, and a reader may hold several.
const BYTES: usize = 32 << 20;

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
    /// Changes, from a place among all of them on.
    Changes(Arc<RangeDiff>, Option<Arc<str>>, Place),
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
            from: From::Changes(diff, session, Place::default()),
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
            Answer::Range(diff) => {
                From::Changes(Arc::new(diff), Some(found.session.into()), Place::default())
            }
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
    let mut texts: [StringBuilder; 9] = Default::default();
    let mut numbers: [Int64Builder; 9] = Default::default();
    let mut tags = ListBuilder::new(StringBuilder::new());
    let (mut rows, mut bytes) = (0, 0);
    for node in inner.nodes_from(*at).take(ROWS) {
        let content = node.text();
        let attributes = attributes(node);
        let row = [
            inner.name(),
            Some(node.id()),
            node.parent().map(pactql::Node::id),
            Some(node.node_type()),
            node.role(),
            node.kind(),
            node.key(),
            Some(&*content),
            attributes.as_deref(),
        ];
        let tags_of: Vec<String> = node.tags().collect();
        bytes += row.iter().flatten().map(|text| text.len()).sum::<usize>();
        bytes += tags_of.iter().map(String::len).sum::<usize>();
        if rows > 0 && bytes > BYTES {
            break;
        }
        rows += 1;
        for (column, text) in texts.iter_mut().zip(row) {
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
        for tag in tags_of {
            tags.values().append_value(tag);
        }
        tags.append(true);
    }
    if rows == 0 {
        return None;
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

/// The custom attributes of a node as the text of a JSON object: values as they were written, so that numbers have
/// all their digits. `None` if it has none.
fn attributes(node: pactql::Node<'_>) -> Option<String> {
    let mut object = String::new();
    for (name, value) in node.attributes_json() {
        object.push(if object.is_empty() { '{' } else { ',' });
        // A text always has a form in JSON.
        object.push_str(&serde_json::to_string(name).unwrap_or_default());
        object.push(':');
        object.push_str(&value);
    }
    (!object.is_empty()).then(|| object + "}")
}

/// Where a change is: after a number of pairs and of rows of the next one. Reading goes on there without passing
/// what was read.
#[derive(Clone, Copy, Default)]
struct Place {
    pairs: usize,
    rows: usize,
    /// The number of all rows before.
    ord: i64,
}

/// A change as a row.
struct Row<'a> {
    newer: i64,
    older: i64,
    what: &'static str,
    id: &'a str,
    change: Option<&'a pactql::history::Change>,
}

/// A row of a pair: its added nodes come first, then the removed and the changed ones.
fn row(pair: &pactql::history::PairDiff, at: usize) -> Option<Row<'_>> {
    let (added, removed) = (&pair.added_ids, &pair.removed_ids);
    let row = |what, id, change| Row {
        newer: pair.from.cycle,
        older: pair.to.cycle,
        what,
        id,
        change,
    };
    if let Some(id) = added.get(at) {
        return Some(row("added", id, None));
    }
    let at = at - added.len();
    if let Some(id) = removed.get(at) {
        return Some(row("removed", id, None));
    }
    let change = pair.changed.get(at - removed.len())?;
    Some(row("changed", &change.id, Some(change)))
}

impl Place {
    /// The row that is here, or where the next pair with rows begins. Goes there.
    fn row<'a>(&mut self, diff: &'a RangeDiff) -> Option<Row<'a>> {
        while let Some(pair) = diff.diffs.get(self.pairs) {
            if let Some(row) = row(pair, self.rows) {
                return Some(row);
            }
            self.pairs += 1;
            self.rows = 0;
        }
        None
    }

    /// Goes past a row.
    fn advance(&mut self) {
        self.rows += 1;
        self.ord += 1;
    }
}

/// The columns of the changes from a place on, which moves; `None` at the end.
fn changes(diff: &RangeDiff, session: Option<&str>, at: &mut Place) -> Option<Vec<ArrayRef>> {
    let mut texts: [StringBuilder; 5] = Default::default();
    let mut numbers: [Int64Builder; 3] = Default::default();
    let mut fields = ListBuilder::new(StringBuilder::new());
    let (mut count, mut bytes) = (0, 0);
    while count < ROWS {
        let Some(row) = at.row(diff) else {
            break;
        };
        let json = |value: Result<String, _>| value.ok();
        let delta = row.change.filter(|change| !change.delta.is_empty());
        let delta = delta.and_then(|change| json(serde_json::to_string(&change.delta)));
        let content = row.change.and_then(|change| change.content_diff.as_ref());
        let content = content.and_then(|content| json(serde_json::to_string(content)));
        let columns = [
            session,
            Some(row.what),
            Some(row.id),
            delta.as_deref(),
            content.as_deref(),
        ];
        let names = row.change.map_or(&[][..], |change| &change.fields);
        bytes += columns
            .iter()
            .flatten()
            .map(|text| text.len())
            .sum::<usize>();
        bytes += names.iter().map(String::len).sum::<usize>();
        if count > 0 && bytes > BYTES {
            break;
        }
        count += 1;
        at.advance();
        for (column, text) in texts.iter_mut().zip(columns) {
            column.append_option(text);
        }
        for (column, number) in numbers.iter_mut().zip([row.newer, row.older, at.ord]) {
            column.append_value(number);
        }
        for field in names {
            fields.values().append_value(field);
        }
        fields.append(true);
    }
    if count == 0 {
        return None;
    }
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
