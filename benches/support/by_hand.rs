//! What a user would write without the engine: prepared statements over tables of the layout of a store.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, Row};

/// A file with the tables of a store, written and read by hand.
pub(crate) struct ByHand {
    pub(crate) connection: Connection,
}

/// The rows that one commit writes, each with the statement that inserts it, and the placements that it closes.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) inserted: Vec<(String, Vec<Value>)>,
    /// Of a placement: its last seq, the session, the unit, its first seq.
    closed: Vec<[i64; 4]>,
}

/// The tables that a commit inserts into, and which rows of the commit with the seq `?2` of the session `?1`
/// are in each.
const TABLES: [(&str, &str); 6] = [
    (
        "body",
        "select * from body where body_id in (select n.body_id from node n join new on \
         n.unit_id = new.unit_id) and not exists (select 1 from node n join placement p on \
         p.unit_id = n.unit_id where n.body_id = body.body_id and p.first_seq < ?2)",
    ),
    (
        "unit",
        "select unit.* from unit join new on new.unit_id = unit.unit_id",
    ),
    (
        "node",
        "select node.* from node join new on new.unit_id = node.unit_id",
    ),
    (
        "attr",
        "select attr.* from attr join new on new.unit_id = attr.unit_id",
    ),
    (
        "placement",
        "select * from placement where session_id = ?1 and first_seq = ?2",
    ),
    (
        "snapshot",
        "select * from snapshot where session_id = ?1 and seq = ?2",
    ),
];

impl ByHand {
    /// Opens a file with the settings that a store writes with.
    pub(crate) fn open(path: &Path) -> Self {
        let connection = Connection::open(path).expect("the file opens");
        connection.set_prepared_statement_cache_capacity(64);
        let settings = "pragma journal_mode = wal; pragma synchronous = full; \
             pragma secure_delete = on; pragma journal_size_limit = 16777216; \
             pragma cache_size = -8192; pragma foreign_keys = off";
        connection.execute_batch(settings).expect("the settings");
        Self { connection }
    }

    /// A new file with the tables and the indexes of another.
    pub(crate) fn like(model: &Path, path: &Path) -> Self {
        let made = Self::open(path);
        let model = Self::open(model);
        let tables =
            "select sql from sqlite_master where sql is not null and name not like 'sqlite%'";
        for sql in model.all(tables, [], |row| row.get::<_, String>(0)) {
            made.connection.execute_batch(&sql).expect("a table");
        }
        made
    }

    /// The rows of a result, of a statement that stays prepared.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Vec<T> {
        let mut statement = self.connection.prepare_cached(sql).expect("the statement");
        let rows = statement.query_map(values, read).expect("the query");
        rows.collect::<Result<_, _>>().expect("the rows")
    }

    /// The first column of the only row.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.all(sql, [], |row| row.get(0))[0]
    }

    /// What the commit with this seq of a session wrote.
    pub(crate) fn rows_of(&self, session: i64, seq: i64) -> Rows {
        let mut rows = Rows::default();
        for (table, select) in TABLES {
            let select = format!(
                "with new as (select distinct unit_id from placement p where session_id = ?1 and \
                 first_seq = ?2 and not exists (select 1 from placement o where \
                 o.unit_id = p.unit_id and o.first_seq < ?2)) {select}"
            );
            let values = |row: &Row<'_>| {
                (0..row.as_ref().column_count())
                    .map(|at| row.get(at))
                    .collect()
            };
            let mut statement = self.connection.prepare_cached(&select).expect("the rows");
            let found = statement.query_map([session, seq], values);
            let found = found.expect("the rows").map(|row| row.expect("a row"));
            rows.inserted.extend(found.map(|row: Vec<Value>| {
                let places = vec!["?"; row.len()].join(", ");
                (format!("insert into {table} values ({places})"), row)
            }));
        }
        rows.closed = self.all(
            "select last_seq, session_id, unit_id, first_seq from placement \
             where session_id = ?1 and last_seq = ?2 - 1",
            [session, seq],
            |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]),
        );
        rows
    }

    /// Writes the rows of some commits in one transaction.
    pub(crate) fn write<'r>(&self, commits: impl IntoIterator<Item = &'r Rows>) {
        self.run("begin immediate");
        for rows in commits {
            for closed in &rows.closed {
                let close = "update placement set last_seq = ? where session_id = ? and unit_id = ? \
                     and first_seq = ?";
                let mut close = self.connection.prepare_cached(close).expect("an update");
                close.execute(*closed).expect("the placement");
            }
            for (insert, values) in &rows.inserted {
                let mut insert = self.connection.prepare_cached(insert).expect("an insert");
                insert
                    .execute(rusqlite::params_from_iter(values))
                    .expect("the row");
            }
        }
        self.run("commit");
    }

    fn run(&self, sql: &str) {
        let mut statement = self.connection.prepare_cached(sql).expect("the statement");
        statement.execute([]).expect("the transaction");
    }
}
