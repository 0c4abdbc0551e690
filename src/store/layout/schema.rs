//! The layout of STORE §2 as tables of a database: making it and recognizing it.
//!
//! The tables are written once, in words both databases have; this file spells them out for each. It must
//! not know what the rows mean to a session, nor how a database is reached.

use std::borrow::Cow;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::query::sql::Dialect;
use crate::store::database::sql::{
    Backend, Begin, Database, ResultRow, SqlValue, Type, collect, first, int, one_int, text, texts,
    transaction,
};
use crate::store::error::{Result, StoreError};
use crate::store::layout::views::views;
use crate::tree::hash::hex;

pub(crate) const LAYOUT: i64 = 1;

/// `PACT`: what `file` and other tools know a store in SQLite by, at offset 68 of the file.
const APPLICATION_ID: i64 = 0x5041_4354;

pub(crate) struct StoreTable {
    pub(crate) name: &'static str,
    row: &'static str,
    /// `name type`, with `?` after the type where it may be null. An `id` is an integer that the database
    /// gives out, and never gives out again. A `check_sum` is the last.
    columns: &'static str,
    /// The primary key, where that is not the `id`.
    key: &'static str,
    /// The index in PostgreSQL in the place of the key, if that has a text that may be long: an entry of an
    /// index has at most 2,700 bytes there.
    stand_in: &'static str,
    unique: &'static str,
    pub(crate) files: CopyFiles,
}

/// Where the rows of a table are in a copy (STORE §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyFiles {
    /// Nowhere: of the moment alone, or in `node`.
    None,
    /// One file with the rows of all sessions.
    Whole,
    /// Files of a bucket, to which later exports add files: rows that never change.
    Added,
    /// One file of each bucket, which later exports replace.
    Replaced,
}

const PLAIN: StoreTable = StoreTable {
    name: "",
    row: "",
    columns: "",
    key: "",
    stand_in: "",
    unique: "",
    files: CopyFiles::None,
};

/// The tables, each after those it refers to.
pub(crate) const TABLES: &[StoreTable] = &[
    StoreTable {
        name: "format",
        row: "the layout",
        columns: "version int, written_by text, check_sum int",
        files: CopyFiles::Whole,
        ..PLAIN
    },
    StoreTable {
        name: "session",
        row: "a session",
        columns: "session_id id, name text, created_at_ns int, source text?, parent_id int?, \
                  parent_seq int?, meta text?, runtime text?, changed int, check_sum int?, \
                  runtime_sum int?",
        unique: "name",
        files: CopyFiles::Whole,
        ..PLAIN
    },
    StoreTable {
        name: "snapshot",
        row: "a commit, or the working state",
        columns: "session_id int, seq int, cycle int?, working bool, committed_at_ns int, meta text, \
                  hash bytes, usage text?, note text?, parent_hash bytes?, base bytes?, \
                  check_sum int",
        key: "session_id, seq",
        files: CopyFiles::Whole,
        ..PLAIN
    },
    StoreTable {
        name: "unit",
        row: "a version of a unit",
        columns: "unit_id id, kind text, hash bytes, spelling int",
        unique: "kind, hash, spelling",
        files: CopyFiles::Added,
        ..PLAIN
    },
    StoreTable {
        name: "placement",
        row: "when a unit version is in force: from first_seq to last_seq",
        columns: "session_id int, unit_id int, first_seq int, last_seq int, sibling_offset int, \
                  created_at_ns int, creation_index int, id text, rank int, turn bool",
        key: "session_id, unit_id, first_seq",
        files: CopyFiles::Replaced,
        ..PLAIN
    },
    StoreTable {
        name: "body",
        row: "a content, once",
        columns: "body_id id, hash bytes, json bool, text text",
        unique: "hash",
        ..PLAIN
    },
    StoreTable {
        name: "node",
        row: "a node of a unit version",
        columns: "unit_id int, pre int, pre_end int, parent_pre int?, core_pre int?, level int, \
                  base_depth int?, class text, id text?, node_type text?, type_head text?, \
                  type_sub text?, role text?, kind text?, key text?, sibling_offset int?, ttl int?, \
                  expires int?, priority int?, cycle int?, created_at_ns int?, created_at_iso text?, \
                  creation_index int?, cadence int?, content_hash text?, body_id int?, present int, \
                  version int?, extra text?",
        key: "unit_id, pre",
        files: CopyFiles::Added,
        ..PLAIN
    },
    StoreTable {
        name: "attr",
        row: "a value that a selector can ask for by a custom name, or a tag",
        columns: "unit_id int, pre int, name text, ordinal int, type text, text text?, int int?, \
                  real real?, big text?",
        key: "unit_id, pre, name, ordinal",
        stand_in: "index attr_by_node on attr (unit_id, pre)",
        files: CopyFiles::Added,
        ..PLAIN
    },
    StoreTable {
        name: "attempt",
        row: "a provider call",
        columns: "session_id int, attempt_id text, number int, cycle_id int, status text, started_at text, \
                  ended_at text?, provider text, model text?, params text, token_in int?, \
                  token_out int?, error text?, request text?, check_sum int",
        key: "session_id, number",
        files: CopyFiles::Replaced,
        ..PLAIN
    },
    StoreTable {
        name: "pin",
        row: "a reference that keeps a node",
        columns: "session_id int, pin_id text, id text, owner text?, expires_at_ns int?, check_sum int",
        key: "session_id, pin_id",
        stand_in: "index pin_by_session on pin (session_id)",
        files: CopyFiles::Replaced,
        ..PLAIN
    },
    StoreTable {
        name: "retired",
        row: "an id that was in use and may not be used again",
        columns: "session_id int, id text, check_sum int",
        key: "session_id, id",
        stand_in: "unique index retired_by_id on retired (session_id, md5(id))",
        files: CopyFiles::Replaced,
        ..PLAIN
    },
    StoreTable {
        name: "lease",
        row: "who writes a session",
        columns: "session_id int, owner text, fence int, expires_at_ns int, process text?",
        key: "session_id",
        ..PLAIN
    },
];

pub(crate) fn table(name: &str) -> &'static StoreTable {
    let found = TABLES.iter().find(|table| table.name == name);
    found.unwrap_or(&TABLES[0])
}

/// Which rows `attr_by_text` has. A query says the same, or it is answered without that index. PostgreSQL
/// refuses longer entries, and no query asks for a long text by its value.
pub(crate) const ATTR_BY_TEXT: &str =
    "type = 'text' and length(text) <= 200 and length(name) <= 200";

/// In PostgreSQL the index has short texts alone, and a query that asks for one says so, or it is answered without the
/// index; a long text is looked for in all rows there.
pub(crate) fn equals(column: &str, text: &str) -> String {
    if is_short(text) {
        format!("{column} = ?1 and length({column}) <= {SHORT}")
    } else {
        format!("{column} = ?1")
    }
}

pub(crate) fn is_short(text: &str) -> bool {
    text.chars().nth(SHORT).is_none()
}

/// The most characters of a text in an index; each may have four bytes.
const SHORT: usize = 500;

/// The rows that the index of sources has. A query says so, or it is answered without the index.
pub(crate) const RECORDED: &str = "substr(source, 1, 10) = 'recording '";

/// The rows that may have a text with U+0000, which JSON writes as `\u0000`; those with `\\u0000` are among them. A query
/// says so, or it is answered without the index.
pub(crate) const NODE_WITH_NUL: &str = "replace(extra, 'u0000', '') <> extra";
pub(crate) const BODY_WITH_NUL: &str = "json and replace(text, 'u0000', '') <> text";

/// Indexes besides the keys. The conditions above are put in the place of their names.
const INDEXES: &[&str] = &[
    "placement_by_end on placement (session_id, last_seq, first_seq)",
    "placement_by_unit on placement (unit_id)",
    "session_by_parent on session (parent_id) where parent_id is not null",
    // A recorder finds the sessions that begin as a call does.
    "session_by_source on session (source) where RECORDED",
    // What is in force, in document order: the newest turns are at its end, and counting them reads
    // nothing else.
    "placement_in_force on placement (session_id, rank, sibling_offset, created_at_ns, creation_index, id, turn) \
     where last_seq = 9223372036854775807",
    "node_by_id on node (id) where id is not null",
    "node_by_body on node (body_id) where body_id is not null",
    "node_by_key on node (key) where key is not null",
    "attr_by_text on attr (name, text) where ATTR_BY_TEXT",
    // Empty in most stores: a statement does not answer for these texts.
    "node_with_nul on node (unit_id) where NODE_WITH_NUL",
    "body_with_nul on body (body_id) where BODY_WITH_NUL",
];

#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreColumn {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    null: bool,
}

impl StoreTable {
    pub(crate) fn columns(&self) -> impl Iterator<Item = StoreColumn> {
        // They are read once: rows are compared and summed by them.
        static ALL: LazyLock<Vec<Vec<StoreColumn>>> =
            LazyLock::new(|| TABLES.iter().map(|table| table.read_columns()).collect());
        let at = TABLES.iter().position(|table| table.name == self.name);
        ALL[at.unwrap_or(0)].iter().copied()
    }

    fn read_columns(&self) -> Vec<StoreColumn> {
        let columns = self.columns.split(", ").filter_map(|column| {
            let (name, kind) = column.split_once(' ')?;
            let bare = kind.trim_end_matches('?');
            let kind = match bare {
                "id" => Type::Id,
                "int" => Type::Int,
                "real" => Type::Real,
                "bool" => Type::Bool,
                "bytes" => Type::Bytes,
                _ => Type::Text,
            };
            let null = column.ends_with('?');
            Some(StoreColumn { name, kind, null })
        });
        columns.collect()
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn order(&self) -> &'static str {
        if self.key.is_empty() { "1" } else { self.key }
    }

    /// In a copy sums and counters are left out; a row of a unit says its session, and one of a node its content.
    #[cfg(feature = "parquet")]
    pub(crate) fn file_columns(&self) -> Vec<StoreColumn> {
        let extra = |name, kind| StoreColumn {
            name,
            kind,
            null: true,
        };
        let mut all: Vec<StoreColumn> = self.columns().collect();
        all.retain(|column| !["changed", "check_sum", "runtime_sum"].contains(&column.name));
        if self.files == CopyFiles::Added {
            all.insert(0, extra("session_id", Type::Int));
        }
        match self.name {
            "session" | "snapshot" => all.push(extra("bucket", Type::Int)),
            "node" => {
                all.push(extra("content", Type::Text));
                all.push(extra("content_json", Type::Bool));
            }
            _ => {}
        }
        all
    }

    pub(crate) fn insert(&self) -> String {
        let (name, columns) = (self.name, list(self.columns(), "", &[]));
        let marks = (1..=self.columns().count()).map(|at| format!("?{at}"));
        let marks = marks.collect::<Vec<_>>().join(", ");
        let twice = if name == "retired" {
            " on conflict do nothing"
        } else {
            ""
        };
        format!("insert into {name} ({columns}) values ({marks}){twice}")
    }

    pub(crate) fn values<'r>(
        &self,
        row: &'r dyn ResultRow,
        from: usize,
    ) -> Result<Vec<SqlValue<'r>>> {
        let columns = self.columns().enumerate();
        columns
            .map(|(at, column)| row.value(from + at, column.kind))
            .collect()
    }

    fn create(&self, dialect: Backend) -> String {
        let mut lines: Vec<String> = Vec::new();
        for column in self.columns() {
            let kind = spelled(column.kind, dialect);
            let null = if column.null || column.kind == Type::Id {
                ""
            } else {
                " not null"
            };
            lines.push(format!("  {} {kind}{null}", column.name));
        }
        let keyed = dialect == Backend::Sqlite || self.stand_in.is_empty();
        if !self.key.is_empty() && keyed {
            lines.push(format!("  primary key ({})", self.key));
        }
        if !self.unique.is_empty() {
            lines.push(format!("  unique ({})", self.unique));
        }
        // Rows that are only found by their key lie in its order.
        let end = match (dialect, self.key.is_empty()) {
            (Backend::Postgres, _) => "",
            (Backend::Sqlite, true) => " strict",
            (Backend::Sqlite, false) => " strict, without rowid",
        };
        let (name, row) = (self.name, self.row);
        format!(
            "create table {name} ( -- one row: {row}\n{}\n){end}",
            lines.join(",\n")
        )
    }
}

/// Columns in a statement, some spelled otherwise.
pub(crate) fn list(
    columns: impl IntoIterator<Item = StoreColumn>,
    alias: &str,
    spelled: &[(&str, &str)],
) -> String {
    let each = columns.into_iter().map(|StoreColumn { name, .. }| {
        let other = spelled.iter().find(|(column, _)| *column == name);
        other.map_or_else(|| format!("{alias}{name}"), |(_, sql)| (*sql).to_owned())
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Inserts a row: the values of all columns but a sum, which is computed. One that notes an id again changes nothing.
pub(crate) fn insert(
    database: &mut dyn Database,
    table: &str,
    values: &[SqlValue<'_>],
) -> Result<()> {
    static INSERTS: LazyLock<Vec<String>> =
        LazyLock::new(|| TABLES.iter().map(StoreTable::insert).collect());
    let at = TABLES.iter().position(|other| other.name == table);
    let (table, sql) = (&TABLES[at.unwrap_or(0)], &INSERTS[at.unwrap_or(0)]);
    if table.columns.ends_with("check_sum int") {
        let summed = table.columns().zip(values);
        let summed = summed.filter(|(column, _)| is_summed(table, column));
        let summed: Vec<SqlValue<'_>> = summed.map(|(_, value)| *value).collect();
        let mut row = values.to_vec();
        row.push(sum(&summed).into());
        database.insert(sql, &row)
    } else {
        database.insert(sql, values)
    }
}

/// The sum of a row: the first eight bytes of a SHA-256 over its values, as a big-endian number.
///
/// A value is a byte 0 if it is null; else a byte 1, the number of bytes of its text in eight bytes (big-endian),
/// and the text in UTF-8: of an integer its decimal digits, of a boolean `true` or `false`, of bytes hexadecimal digits.
pub(crate) fn sum(values: &[SqlValue<'_>]) -> i64 {
    let mut hash = Sha256::new();
    for value in values {
        let text = match value {
            SqlValue::Null => {
                hash.update([0]);
                continue;
            }
            SqlValue::Bool(value) => value.to_string().into(),
            SqlValue::Int(value) => value.to_string().into(),
            SqlValue::Real(value) => value.to_string().into(),
            SqlValue::Text(value) => Cow::Borrowed(*value),
            SqlValue::Bytes(value) => hex(value).into(),
        };
        hash.update([1]);
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.finalize()[..8]);
    i64::from_be_bytes(bytes)
}

fn is_summed(table: &StoreTable, column: &StoreColumn) -> bool {
    match table.name {
        "snapshot" => ["working", "committed_at_ns", "usage"].contains(&column.name),
        _ => column.name != "check_sum",
    }
}

pub(crate) fn summed(table: &StoreTable) -> impl Iterator<Item = StoreColumn> {
    let columns = table.columns();
    columns.filter(|column| is_summed(table, column))
}

fn spelled(kind: Type, dialect: Backend) -> &'static str {
    match (dialect, kind) {
        // An id that was removed and came back for something else would make readers of the one read the
        // other.
        (Backend::Sqlite, Type::Id) => "integer primary key autoincrement",
        (Backend::Sqlite, Type::Int | Type::Bool) => "integer",
        (Backend::Sqlite, Type::Real) => "real",
        (Backend::Sqlite, Type::Text) => "text",
        (Backend::Sqlite, Type::Bytes) => "blob",
        (Backend::Postgres, Type::Id) => "bigint generated by default as identity primary key",
        (Backend::Postgres, Type::Int) => "bigint",
        (Backend::Postgres, Type::Bool) => "boolean",
        (Backend::Postgres, Type::Real) => "double precision",
        // Texts are ordered by their bytes, as in SQLite.
        (Backend::Postgres, Type::Text) => "text collate \"C\"",
        (Backend::Postgres, Type::Bytes) => "bytea",
    }
}

pub(crate) fn statements(dialect: Backend) -> Vec<String> {
    let mut all: Vec<String> = TABLES.iter().map(|table| table.create(dialect)).collect();
    for index in INDEXES {
        let mut index = (*index).to_owned();
        for (name, condition) in [
            ("RECORDED", RECORDED),
            ("ATTR_BY_TEXT", ATTR_BY_TEXT),
            ("NODE_WITH_NUL", NODE_WITH_NUL),
            ("BODY_WITH_NUL", BODY_WITH_NUL),
        ] {
            index = index.replace(name, condition);
        }
        if dialect == Backend::Postgres {
            // The last columns of an order are sorted after the others were found in order.
            index = index.replace(" id,", "");
            for column in ["id", "key"] {
                let all = format!("({column}) where {column} is not null");
                let short = format!("({column}) where length({column}) <= {SHORT}");
                index = index.replace(&all, &short);
            }
        }
        all.push(format!("create index {index}"));
    }
    if dialect == Backend::Postgres {
        let stand_ins = TABLES.iter().filter(|table| !table.stand_in.is_empty());
        all.extend(stand_ins.map(|table| format!("create {}", table.stand_in)));
    }
    let spelled = match dialect {
        Backend::Sqlite => Dialect::Sqlite,
        Backend::Postgres => Dialect::Postgres,
    };
    let views = views(spelled, "").into_iter();
    all.extend(views.map(|(name, select)| format!("create view {name} as {select}")));
    let by = program();
    all.push(format!(
        "insert into format (version, written_by, check_sum) values ({LAYOUT}, '{by}', {})",
        sum(&[LAYOUT.into(), by.as_str().into()])
    ));
    if dialect == Backend::Sqlite {
        all.push(format!("pragma application_id = {APPLICATION_ID}"));
        all.push(format!("pragma user_version = {LAYOUT}"));
    }
    all
}

fn program() -> String {
    format!("pactql {}", env!("CARGO_PKG_VERSION"))
}

/// The tables and indexes of the layout that a SQLite file has otherwise, or not at all.
pub(crate) fn differences(database: &mut dyn Database) -> Result<Vec<String>> {
    // SQLite keeps the statement that made a table, with its first words in capitals.
    let there = "select name, sql from sqlite_master where sql is not null";
    let there = collect(database, there, &[], |row| {
        Ok((text(row, 0)?.to_owned(), text(row, 1)?.to_owned()))
    })?;
    let mut different = Vec::new();
    for statement in statements(Backend::Sqlite) {
        let words: Vec<&str> = statement.splitn(4, ' ').collect();
        let ["create", what, name, rest] = words[..] else {
            continue;
        };
        let found = there.iter().find(|(known, _)| known == name);
        let same = found.is_some_and(|(_, sql)| {
            let made = format!("CREATE {} {name} {rest}", what.to_uppercase());
            *sql == made
        });
        if !same {
            different.push(format!("{what} {name}"));
        }
    }
    Ok(different)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundLayout {
    Nothing,
    Other,
    /// The layout with this number, made by this program.
    Layout(i64, String),
}

pub(crate) fn find(database: &mut dyn Database) -> Result<FoundLayout> {
    let tables = match database.dialect() {
        Backend::Sqlite => {
            "select name from sqlite_master where type = 'table' and name not like 'sqlite%'"
        }
        Backend::Postgres => {
            "select cast(tablename as text) from pg_tables where schemaname = current_schema()"
        }
    };
    let tables = texts(database, tables, &[])?;
    if tables.is_empty() {
        return Ok(FoundLayout::Nothing);
    }
    let has = |name: &str| tables.iter().any(|table| table == name);
    if !has("format") || !has("session") {
        return Ok(FoundLayout::Other);
    }
    let layout = "select version, written_by from format";
    let layout = first(database, layout, &[], |row| {
        Ok((int(row, 0)?, text(row, 1)?.to_owned()))
    })?;
    Ok(layout.map_or(FoundLayout::Other, |(version, by)| {
        FoundLayout::Layout(version, by)
    }))
}

/// Does nothing in a database that has the layout. One transaction, so of two programs that begin at the same time one
/// waits for the other.
pub(crate) fn create(database: &mut dyn Database, place: &str) -> Result<()> {
    transaction(database, Begin::Alone, |database| match find(database)? {
        FoundLayout::Layout(..) => Ok(()),
        FoundLayout::Other => Err(StoreError::NotAStore(place.to_owned())),
        FoundLayout::Nothing => {
            for statement in statements(database.dialect()) {
                database.execute(&statement, &[])?;
            }
            Ok(())
        }
    })
}

/// One statement, if the database has this layout.
pub(crate) fn check(database: &mut dyn Database, place: &str) -> Result<()> {
    let ours = "select version from format where exists (select 1 from session) or true";
    if let Ok(Some(LAYOUT)) = one_int(database, ours, &[]) {
        return Ok(());
    }
    match find(database)? {
        FoundLayout::Nothing | FoundLayout::Other => Err(StoreError::NotAStore(place.to_owned())),
        FoundLayout::Layout(LAYOUT, _) => Ok(()),
        FoundLayout::Layout(version, written_by) => Err(StoreError::OtherLayout {
            version,
            written_by,
            known: LAYOUT,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{SqlValue, sum};

    #[test]
    fn sums_are_over_defined_bytes() {
        // SHA-256 of 01 00…01 61 00 01 00…02 31 32 01 00…04 74 72 75 65, computed elsewhere.
        let values = [
            SqlValue::Text("a"),
            SqlValue::Null,
            SqlValue::Int(12),
            SqlValue::Bool(true),
        ];
        assert_eq!(sum(&values), -91_580_177_785_060_149);
        assert_ne!(
            sum(&["ab".into(), "c".into()]),
            sum(&["a".into(), "bc".into()])
        );
        assert_ne!(sum(&["".into()]), sum(&[SqlValue::Null]));
    }
}
