//! The rows of a store, as far as two stores of the same sessions have the same.

use rusqlite::{Connection, OpenFlags};

/// The rows of all tables, in order, as SQL spells their values.
///
/// What differs between two stores of the same sessions is not in them. A number that the database gives out is
/// replaced by what it stands for. Left out are times by the clock (when a session was made, when a snapshot was
/// written), `changed`, which counts writes, and the sums over these.
pub(crate) fn rows(path: &str) -> Vec<String> {
    let mut all = Vec::new();
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let database = database.expect("a database");
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = database.prepare(sql).expect("a statement");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.map(|row| row.expect("a text")).collect()
    };
    let tables = "select name from sqlite_master where type = 'table' and name not like 'sqlite%' order by 1";
    for table in texts(tables) {
        let columns = texts(&format!("select name from pragma_table_info('{table}')"));
        let columns = columns.iter().filter_map(|column| {
            let of = |what: &str, of: &str, id: &str| {
                Some(format!(
                    "(select {what} from {of} o where o.{id} = t.{column})"
                ))
            };
            match (&*table, &**column) {
                (_, "check_sum")
                | ("session", "session_id" | "created_at_ns" | "changed")
                | ("snapshot", "committed_at_ns")
                | ("unit", "unit_id")
                | ("body", "body_id") => None,
                (_, "session_id" | "parent_id") => of("quote(name)", "session", "session_id"),
                (_, "unit_id") => of("kind || quote(hash) || spelling", "unit", "unit_id"),
                (_, "body_id") => of("quote(hash)", "body", "body_id"),
                _ => Some(format!("quote({column})")),
            }
        });
        let columns = columns.map(|column| format!("coalesce({column}, 'NULL')"));
        let columns = columns.collect::<Vec<_>>().join(" || ', ' || ");
        let mut rows = texts(&format!("select '{table} ' || {columns} from {table} t"));
        rows.sort_unstable();
        all.append(&mut rows);
    }
    all
}
