//! The blocks that lie in what a selector finds, of which one statement gives the columns that sizes and groups are made of.
//!
//! It must not know what is sent of a block, or how it is counted.

use std::borrow::Cow;

use super::StoreSelection;
use super::answers::{StoreReason, StoreRoute};
use super::stream::RowStream;
use crate::json::{JsonValue, StoredValue, members, string};
use crate::query::sql::Wanted;
use crate::store::database::sql::{ResultRow, int, text};
use crate::store::error::{Result, StoreError};
use crate::store::layout::decode::is_json;
use crate::support::cancel;
use crate::support::diag::Error;

/// A block of a session, as far as its size and its groups need it.
#[derive(Debug)]
pub(crate) struct StoreBlock<'r> {
    /// The number of the session, and its name.
    pub(crate) session: i64,
    pub(crate) name: &'r str,
    /// That of its unit (STORE §2).
    pub(crate) rank: i64,
    /// The id of the top node of its unit.
    pub(crate) top: &'r str,
    pub(crate) id: &'r str,
    pub(crate) role: Option<Cow<'r, str>>,
    pub(crate) kind: Option<Cow<'r, str>>,
    pub(crate) key: Option<Cow<'r, str>>,
    content: Option<BlockValue<'r>>,
    /// Those of [`FIELDS`].
    fields: [Option<BlockValue<'r>>; 3],
}

/// The custom attributes that are read, after the columns before them.
const FIELDS: [&str; 3] = ["data_verbatim", "data_call_name", "data_call_id"];
const FIRST_FIELD: usize = 14;

/// A value in a column, or one that was decoded.
#[derive(Debug)]
enum BlockValue<'r> {
    Column(JsonValue<'r>),
    Decoded(StoredValue),
}

impl BlockValue<'_> {
    fn get(&self) -> JsonValue<'_> {
        match self {
            Self::Column(value) => *value,
            Self::Decoded(value) => value.get(),
        }
    }
}

impl StoreBlock<'_> {
    /// Its content, `data_verbatim`, `data_call_id`, or of a call or a result `data_call_name`.
    pub(crate) fn value(&self, name: &str) -> Option<JsonValue<'_>> {
        let value = if name == "content" {
            &self.content
        } else {
            self.fields
                .get(FIELDS.iter().position(|field| *field == name)?)?
        };
        value.as_ref().map(BlockValue::get)
    }
}

impl StoreSelection<'_> {
    /// Calls `each` with the blocks that lie in what a selector finds in one snapshot of each session, each block once: by
    /// session in byte order of names, and those of a session in document order. Where the route says that sessions are
    /// loaded, the blocks that came so far are not all, and it is of no use to go on.
    pub(crate) fn blocks(
        &self,
        mut each: impl FnMut(&StoreBlock<'_>),
    ) -> Result<StoreRoute, Error> {
        let sql = match self.planned(Wanted::Blocks)? {
            Ok(planned) if planned.loaded.is_empty() => planned.sql,
            Ok(_) => return Ok(StoreRoute::Sessions(StoreReason::Unsupported)),
            Err(reason) => return Ok(StoreRoute::Sessions(reason)),
        };
        let mut reader = BlockReader::default();
        let read = self.store.core.read_once(|database| {
            database.query(&sql, &[], &mut |row| {
                cancel::ensure();
                reader.read(row)?.iter().for_each(&mut each);
                Ok(())
            })
        });
        if reader.reaches_units {
            return Ok(StoreRoute::Sessions(StoreReason::Unsupported));
        }
        read?;
        Ok(StoreRoute::Statement)
    }

    /// What `read` gives of the same blocks; nothing where sessions are loaded.
    pub(crate) fn block_stream<T, R>(
        &self,
        read: R,
    ) -> Result<impl Iterator<Item = Result<T, Error>> + use<T, R>, Error>
    where
        T: Send + 'static,
        R: Fn(&StoreBlock<'_>) -> Option<T> + Send + 'static,
    {
        let planned = self.planned(Wanted::Blocks)?.ok();
        let planned = planned.filter(|planned| planned.loaded.is_empty());
        let mut rows = planned.map(|planned| {
            let reader = std::cell::RefCell::new(BlockReader::default());
            RowStream::new(&self.store.core, planned.sql, move |row, found| {
                found.extend(reader.borrow_mut().read(row)?.as_ref().and_then(&read));
                Ok(())
            })
        });
        Ok(std::iter::from_fn(move || rows.as_mut()?.next()))
    }
}

/// Reads the rows, and leaves out those of a block that came already.
#[derive(Default)]
struct BlockReader {
    /// The session, the unit and the place in it of the block before.
    before: Option<[i64; 3]>,
    /// Whether the root or `^seq` was found: what lies in them is in other units, too.
    reaches_units: bool,
}

impl BlockReader {
    fn read<'r>(&mut self, row: &'r dyn ResultRow) -> Result<Option<StoreBlock<'r>>> {
        let at = [int(row, 0)?, int(row, 4)?, int(row, 5)?];
        // A match in another one comes after all that lies in that one.
        if let Some(before) = self.before
            && before[..2] == at[..2]
            && at[2] <= before[2]
        {
            return Ok(None);
        }
        self.before = Some(at);
        if text(row, 6)? != "cb" {
            self.reaches_units = true;
            return Err(StoreError::Refused("sessions are loaded".to_owned()));
        }
        let json = row.bool(12)? == Some(true);
        let mut block = StoreBlock {
            session: at[0],
            name: text(row, 1)?,
            rank: int(row, 2)?,
            top: text(row, 3)?,
            id: text(row, 7)?,
            role: row.text(8)?.map(Cow::Borrowed),
            kind: row.text(9)?.map(Cow::Borrowed),
            key: row.text(10)?.map(Cow::Borrowed),
            content: match row.text(13)? {
                Some(content) if json => Some(decoded(content)?),
                content => content.map(|text| BlockValue::Column(JsonValue::Text(text))),
            },
            fields: [None, None, None],
        };
        for (at, field) in (FIRST_FIELD..).zip(&mut block.fields) {
            *field = row.text(at)?.map(attribute).transpose()?.flatten();
        }
        if let Some(extra) = row.text(11)? {
            block.add_extra(extra)?;
        }
        Ok(Some(block))
    }
}

impl<'r> StoreBlock<'r> {
    /// Adds what no column can hold.
    fn add_extra(&mut self, extra: &'r str) -> Result<()> {
        if !is_json(extra) {
            return Err(not_json());
        }
        for (name, json) in members(extra) {
            let header = match &*name {
                "role" => &mut self.role,
                "kind" => &mut self.kind,
                "key" => &mut self.key,
                name => {
                    if let Some(at) = FIELDS.iter().position(|field| *field == name) {
                        self.fields[at] = Some(decoded(json)?);
                    }
                    continue;
                }
            };
            // A null one is a field.
            if let Some(text) = string(json) {
                *header = Some(text);
            }
        }
        Ok(())
    }
}

fn not_json() -> StoreError {
    StoreError::Damaged("a node has a value that is not JSON".to_owned())
}

fn decoded(json: &str) -> Result<BlockValue<'static>> {
    if !is_json(json) {
        return Err(not_json());
    }
    Ok(BlockValue::Decoded(StoredValue::of_json(json)))
}

/// The value of an attribute from its type, a colon and its text; `None` if it is in `extra`.
fn attribute(column: &str) -> Result<Option<BlockValue<'_>>> {
    let (kind, text) = column.split_once(':').unwrap_or((column, ""));
    Ok(match kind {
        "text" => Some(BlockValue::Column(JsonValue::Text(text))),
        "null" => Some(BlockValue::Column(JsonValue::Null)),
        "list" | "object" => None,
        _ => Some(decoded(text)?),
    })
}
