//! Good files with damage in them, which the input says. The first byte chooses how.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rusqlite::{Connection, MAIN_DB};

/// A directory of this process, in memory where the system has one.
pub fn place() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let place = base.join(format!("pactql-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a temporary directory");
        place
    })
}

/// The good bytes with patches: three bytes of offset and one of value at a time.
pub fn patched(good: &[u8], patches: &[u8]) -> Vec<u8> {
    let mut file = good.to_vec();
    for patch in patches.chunks_exact(4) {
        let at = u32::from_le_bytes([patch[0], patch[1], patch[2], 0]) as usize;
        // A good file may be empty.
        if let Some(at) = at.checked_rem(file.len()) {
            file[at] = patch[3];
        }
    }
    file
}

/// A SQLite file, by the first byte: any bytes; a good one with patches; a good one in which values of rows are others.
pub fn database(good: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    let (choice, rest) = bytes.split_first()?;
    match choice % 4 {
        0 => Some(rest.to_vec()),
        1 => Some(patched(good, rest)),
        _ => with_values(good, rest).ok(),
    }
}

/// Changes values: a byte each for the table, the column, the row and the kind of value, then a line with the value.
fn with_values(good: &[u8], mut bytes: &[u8]) -> rusqlite::Result<Vec<u8>> {
    let mut database = Connection::open_in_memory()?;
    database.deserialize_read_exact(MAIN_DB, good, good.len(), false)?;
    // As something else would that knows no rules.
    database.execute_batch("pragma foreign_keys = off; pragma ignore_check_constraints = on")?;
    let tables = names(
        &database,
        "select name from sqlite_master where type = 'table' and name not like 'sqlite%' order by 1",
    )?;
    for _ in 0..32 {
        let [table, column, row, kind, rest @ ..] = bytes else {
            break;
        };
        let (text, after) = super::head(rest);
        bytes = after;
        let table = &tables[usize::from(*table) % tables.len()];
        let columns = names(
            &database,
            &format!("select name from pragma_table_info('{table}')"),
        )?;
        let column = &columns[usize::from(*column) % columns.len()];
        let value = match kind % 8 {
            0 => "null".to_owned(),
            1 => "?1".to_owned(),
            2 => "cast(?1 as blob)".to_owned(),
            3 => "cast(?1 as integer)".to_owned(),
            4 => format!("{column} + 1"),
            5 => format!("-{column}"),
            6 => "9223372036854775807".to_owned(),
            // The value of another row.
            _ => format!(
                "(select {column} from {table} order by {column} is null, length({column}) desc limit 1)"
            ),
        };
        let rowid = format!(
            "(select rowid from {table} limit 1 offset {row} % max(1, (select count(*) from {table})))"
        );
        let with_rowid = format!("update {table} set {column} = {value} where rowid = {rowid}");
        let everywhere = format!("update {table} set {column} = {value}");
        // What a constraint refuses is not changed; some tables have no numbers of rows.
        let parameters = || [&text].into_iter().take(usize::from(value.contains("?1")));
        if database
            .execute(&with_rowid, rusqlite::params_from_iter(parameters()))
            .is_err()
        {
            let _ = database.execute(&everywhere, rusqlite::params_from_iter(parameters()));
        }
    }
    Ok(database.serialize(MAIN_DB)?.to_vec())
}

fn names(database: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = database.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}
