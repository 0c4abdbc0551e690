//! The layout of STORE §2 as tables of a database: making it and recognizing it.
//!
//! The tables are written once, in words both databases have; this file spells them out for each. It must
//! not know what the rows mean to a session, nor how a database is reached.

use crate::store::database::sql::{Database, Dialect, collect, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::sums::sum;

/// The layout that this program reads and writes.
pub(crate) const LAYOUT: i64 = 1;

/// `PACT`: what `file` and other tools know a store in SQLite by, at offset 68 of the file.
const APPLICATION_ID: i64 = 0x5041_4354;

/// A table.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// What one row is.
    row: &'static str,
    /// `name type`, with `?` after the type where it may be null. An `id` is an integer that the database
    /// gives out, and never gives out again.
    columns: &'static str,
    /// The primary key, where that is not the `id`.
    key: &'static str,
    /// The index in PostgreSQL in the place of the key, if that has a text that may be long: an entry of an
    /// index has at most 2,700 bytes there.
    stand_in: &'static str,
    unique: &'static str,
}

/// The tables, each after those it refers to.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "format",
        row: "the layout",
        columns: "version int, written_by text, check_sum int",
        key: "",
        stand_in: "",
        unique: "",
    },
    Table {
        name: "session",
        row: "a session",
        columns: "session_id id, name text, created_at_ns int, source text?, parent_id int?, \
                  parent_seq int?, meta text?, runtime text?, changed int, check_sum int?, \
                  runtime_sum int?",
        key: "",
        stand_in: "",
        unique: "name",
    },
    Table {
        name: "snapshot",
        row: "a commit, or the working state",
        columns: "session_id int, seq int, cycle int?, working bool, committed_at_ns int, meta text, \
                  hash bytes, usage text?, note text?, parent_hash bytes?, base bytes?, \
                  check_sum int",
        key: "session_id, seq",
        stand_in: "",
        unique: "",
    },
    Table {
        name: "unit",
        row: "a version of a unit",
        columns: "unit_id id, kind text, hash bytes, spelling int",
        key: "",
        stand_in: "",
        unique: "kind, hash, spelling",
    },
    Table {
        name: "placement",
        row: "when a unit version is in force: from first_seq to last_seq",
        columns: "session_id int, unit_id int, first_seq int, last_seq int, sibling_offset int, \
                  created_at_ns int, creation_index int, id text, rank int, turn bool",
        key: "session_id, unit_id, first_seq",
        stand_in: "",
        unique: "",
    },
    Table {
        name: "body",
        row: "a content, once",
        columns: "body_id id, hash bytes, json bool, text text",
        key: "",
        stand_in: "",
        unique: "hash",
    },
    Table {
        name: "node",
        row: "a node of a unit version",
        columns: "unit_id int, pre int, pre_end int, parent_pre int?, core_pre int?, level int, \
                  base_depth int?, class text, id text?, node_type text?, type_head text?, \
                  type_sub text?, role text?, kind text?, key text?, sibling_offset int?, ttl int?, \
                  expires int?, priority int?, cycle int?, created_at_ns int?, created_at_iso text?, \
                  creation_index int?, cadence int?, content_hash text?, body_id int?, present int, \
                  version int?, extra text?",
        key: "unit_id, pre",
        stand_in: "",
        unique: "",
    },
    Table {
        name: "attr",
        row: "a value that a selector can ask for by a custom name, or a tag",
        columns: "unit_id int, pre int, name text, ordinal int, type text, text text?, int int?, \
                  real real?, big text?",
        key: "unit_id, pre, name, ordinal",
        stand_in: "index attr_by_node on attr (unit_id, pre)",
        unique: "",
    },
    Table {
        name: "attempt",
        row: "a provider call",
        columns: "session_id int, attempt_id text, number int, cycle_id int, status text, started_at text, \
                  ended_at text?, provider text, model text?, params text, token_in int?, \
                  token_out int?, error text?, request text?, check_sum int",
        key: "session_id, number",
        stand_in: "",
        unique: "",
    },
    Table {
        name: "pin",
        row: "a reference that keeps a node",
        columns: "session_id int, pin_id text, id text, owner text?, expires_at_ns int?, check_sum int",
        key: "session_id, pin_id",
        stand_in: "index pin_by_session on pin (session_id)",
        unique: "",
    },
    Table {
        name: "retired",
        row: "an id that was in use and may not be used again",
        columns: "session_id int, id text, check_sum int",
        key: "session_id, id",
        stand_in: "unique index retired_by_id on retired (session_id, md5(id))",
        unique: "",
    },
    Table {
        name: "lease",
        row: "who writes a session",
        columns: "session_id int, owner text, fence int, expires_at_ns int",
        key: "session_id",
        stand_in: "",
        unique: "",
    },
];

/// Which rows `attr_by_text` has. A query says the same, or it is answered without that index. PostgreSQL
/// refuses longer entries, and no query asks for a long text by its value.
pub(crate) const ATTR_BY_TEXT: &str =
    "type = 'text' and length(text) <= 200 and length(name) <= 200";

/// The condition that a column of an index has a text. In PostgreSQL the index has short texts alone, and a
/// query that asks for one says so, or it is answered without the index; a long text is looked for in all
/// rows there.
pub(crate) fn equals(column: &str, text: &str) -> String {
    if is_short(text) {
        format!("{column} = ?1 and length({column}) <= {SHORT}")
    } else {
        format!("{column} = ?1")
    }
}

/// Whether the indexes of both databases have a text.
pub(crate) fn is_short(text: &str) -> bool {
    text.chars().nth(SHORT).is_none()
}

/// The most characters of a text in an index; each may have four bytes.
const SHORT: usize = 500;

/// The rows that the index of sources has. A query says so, or it is answered without the index.
pub(crate) const RECORDED: &str = "substr(source, 1, 10) = 'recording '";

/// Indexes besides the keys: name, table, columns, and which rows.
const INDEXES: &[(&str, &str, &str, &str)] = &[
    (
        "placement_by_end",
        "placement",
        "session_id, last_seq, first_seq",
        "",
    ),
    ("placement_by_unit", "placement", "unit_id", ""),
    (
        "session_by_parent",
        "session",
        "parent_id",
        "parent_id is not null",
    ),
    // A recorder finds the sessions that begin as a call does.
    ("session_by_source", "session", "source", RECORDED),
    // What is in force, in document order: the newest turns are at its end, and counting them reads
    // nothing else.
    (
        "placement_in_force",
        "placement",
        "session_id, rank, sibling_offset, created_at_ns, creation_index, id, turn",
        "last_seq = 9223372036854775807",
    ),
    ("node_by_id", "node", "id", "id is not null"),
    ("node_by_body", "node", "body_id", "body_id is not null"),
    ("node_by_key", "node", "key", "key is not null"),
    ("attr_by_text", "attr", "name, text", ATTR_BY_TEXT),
];

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Id,
    Int,
    Real,
    Bool,
    Text,
    Bytes,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    null: bool,
}

#[cfg(any(feature = "postgres", feature = "parquet"))]
impl Type {
    /// The value of a column of this type in a row.
    pub(crate) fn value<'r>(
        self,
        row: &'r dyn crate::store::database::sql::Row,
        at: usize,
    ) -> Result<crate::store::database::sql::Value<'r>, StoreError> {
        use crate::store::database::sql::Value;

        Ok(match self {
            Self::Id | Self::Int => row.int(at)?.into(),
            Self::Real => row.real(at)?.map_or(Value::Null, Value::Real),
            Self::Bool => row.bool(at)?.into(),
            Self::Text => row.text(at)?.into(),
            Self::Bytes => row.bytes(at)?.into(),
        })
    }
}

impl Table {
    /// Its columns, in order.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Column> {
        self.columns.split(", ").filter_map(|column| {
            let (name, kind) = column.split_once(' ')?;
            let bare = kind.trim_end_matches('?');
            let null = bare.len() < kind.len();
            let kind = match bare {
                "id" => Type::Id,
                "int" => Type::Int,
                "real" => Type::Real,
                "bool" => Type::Bool,
                "bytes" => Type::Bytes,
                _ => Type::Text,
            };
            Some(Column { name, kind, null })
        })
    }

    /// The columns that its rows are in order by, in a copy.
    #[cfg(feature = "postgres")]
    pub(crate) fn order(&self) -> &'static str {
        if self.key.is_empty() { "1" } else { self.key }
    }

    /// The statement that makes it.
    fn create(&self, dialect: Dialect) -> String {
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
        let keyed = dialect == Dialect::Sqlite || self.stand_in.is_empty();
        if !self.key.is_empty() && keyed {
            lines.push(format!("  primary key ({})", self.key));
        }
        if !self.unique.is_empty() {
            lines.push(format!("  unique ({})", self.unique));
        }
        // Rows that are only found by their key lie in its order.
        let end = match (dialect, self.key.is_empty()) {
            (Dialect::Postgres, _) => "",
            (Dialect::Sqlite, true) => " strict",
            (Dialect::Sqlite, false) => " strict, without rowid",
        };
        let (name, row) = (self.name, self.row);
        format!(
            "create table {name} ( -- one row: {row}\n{}\n){end}",
            lines.join(",\n")
        )
    }
}

fn spelled(kind: Type, dialect: Dialect) -> &'static str {
    match (dialect, kind) {
        // An id that was removed and came back for something else would make readers of the one read the
        // other.
        (Dialect::Sqlite, Type::Id) => "integer primary key autoincrement",
        (Dialect::Sqlite, Type::Int | Type::Bool) => "integer",
        (Dialect::Sqlite, Type::Real) => "real",
        (Dialect::Sqlite, Type::Text) => "text",
        (Dialect::Sqlite, Type::Bytes) => "blob",
        (Dialect::Postgres, Type::Id) => "bigint generated by default as identity primary key",
        (Dialect::Postgres, Type::Int) => "bigint",
        (Dialect::Postgres, Type::Bool) => "boolean",
        (Dialect::Postgres, Type::Real) => "double precision",
        // Texts are ordered by their bytes, as in SQLite.
        (Dialect::Postgres, Type::Text) => "text collate \"C\"",
        (Dialect::Postgres, Type::Bytes) => "bytea",
    }
}

/// The statements that make the layout in an empty database.
pub(crate) fn statements(dialect: Dialect) -> Vec<String> {
    let mut all: Vec<String> = TABLES.iter().map(|table| table.create(dialect)).collect();
    for (name, table, columns, rows) in INDEXES {
        let rows = match (rows.is_empty(), dialect, columns) {
            (true, ..) => String::new(),
            (_, Dialect::Postgres, &("id" | "key")) => {
                format!(" where length({columns}) <= {SHORT}")
            }
            _ => format!(" where {rows}"),
        };
        let columns = match dialect {
            Dialect::Sqlite => (*columns).to_owned(),
            // The last columns of an order are sorted after the others were found in order.
            Dialect::Postgres => columns.replace(" id,", ""),
        };
        all.push(format!("create index {name} on {table} ({columns}){rows}"));
    }
    if dialect == Dialect::Postgres {
        let stand_ins = TABLES.iter().filter(|table| !table.stand_in.is_empty());
        all.extend(stand_ins.map(|table| format!("create {}", table.stand_in)));
    }
    let by = program();
    all.push(format!(
        "insert into format (version, written_by, check_sum) values ({LAYOUT}, '{by}', {})",
        sum(&[LAYOUT.into(), by.as_str().into()])
    ));
    if dialect == Dialect::Sqlite {
        all.push(format!("pragma application_id = {APPLICATION_ID}"));
        all.push(format!("pragma user_version = {LAYOUT}"));
    }
    all
}

/// What `format.written_by` says.
fn program() -> String {
    format!("pactql {}", env!("CARGO_PKG_VERSION"))
}

/// The tables and indexes of the layout that a SQLite file has otherwise, or not at all.
pub(crate) fn differences(database: &mut dyn Database) -> Result<Vec<String>, StoreError> {
    // SQLite keeps the statement that made a table, with its first words in capitals.
    let there = collect(
        database,
        "select name, sql from sqlite_master where sql is not null",
        &[],
        |row| Ok((text(row, 0)?.to_owned(), text(row, 1)?.to_owned())),
    )?;
    let mut different = Vec::new();
    for statement in statements(Dialect::Sqlite) {
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

/// What a database has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No tables.
    Nothing,
    /// Tables of something else.
    Other,
    /// The layout with this number, made by this program.
    Layout(i64, String),
}

/// Says what a database has. Two statements.
pub(crate) fn find(database: &mut dyn Database) -> Result<Found, StoreError> {
    let tables = match database.dialect() {
        Dialect::Sqlite => {
            "select name from sqlite_master where type = 'table' and name not like 'sqlite%'"
        }
        Dialect::Postgres => {
            "select cast(tablename as text) from pg_tables where schemaname = current_schema()"
        }
    };
    let tables = collect(database, tables, &[], |row| Ok(text(row, 0)?.to_owned()))?;
    if tables.is_empty() {
        return Ok(Found::Nothing);
    }
    let has = |name: &str| tables.iter().any(|table| table == name);
    if !has("format") || !has("session") {
        return Ok(Found::Other);
    }
    let layout = first(
        database,
        "select version, written_by from format",
        &[],
        |row| Ok((int(row, 0)?, text(row, 1)?.to_owned())),
    )?;
    Ok(layout.map_or(Found::Other, |(version, by)| Found::Layout(version, by)))
}

/// Makes the layout in a database without tables; does nothing in one that has it. One transaction, so of
/// two programs that begin at the same time one waits for the other.
///
/// # Errors
///
/// [`StoreError::NotAStore`] if there are other tables; errors of the database.
pub(crate) fn create(database: &mut dyn Database, place: &str) -> Result<(), StoreError> {
    in_transaction(database, |database| match find(database)? {
        Found::Layout(..) => Ok(()),
        Found::Other => Err(StoreError::NotAStore(place.to_owned())),
        Found::Nothing => {
            for statement in statements(database.dialect()) {
                database.execute(&statement, &[])?;
            }
            Ok(())
        }
    })
}

/// Checks that a database has this layout. One statement, if it has.
///
/// # Errors
///
/// [`StoreError::NotAStore`], [`StoreError::OtherLayout`]; errors of the database.
pub(crate) fn check(database: &mut dyn Database, place: &str) -> Result<(), StoreError> {
    let ours = first(
        database,
        "select version from format where exists (select 1 from session) or true",
        &[],
        |row| int(row, 0),
    );
    if let Ok(Some(LAYOUT)) = ours {
        return Ok(());
    }
    match find(database)? {
        Found::Nothing | Found::Other => Err(StoreError::NotAStore(place.to_owned())),
        Found::Layout(LAYOUT, _) => Ok(()),
        Found::Layout(version, written_by) => Err(StoreError::OtherLayout {
            version,
            written_by,
            known: LAYOUT,
        }),
    }
}

/// Runs `work` in a transaction in which no other process writes.
fn in_transaction<T>(
    database: &mut dyn Database,
    work: impl FnOnce(&mut dyn Database) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    database.begin_alone()?;
    match work(database) {
        Ok(done) => database.commit().map(|()| done),
        Err(error) => {
            database.rollback();
            Err(error)
        }
    }
}
