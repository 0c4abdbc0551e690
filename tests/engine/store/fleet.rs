//! The views over the files of a copy, in DuckDB and Spark: the rows of the store's tables (STORE §2).

use pactql::sql::Dialect;
use pactql::{
    Session, Store,
    store::{ParquetExport, parquet_views},
};
use rusqlite::types::ValueRef;
use serde_json::Value;

use super::place::Folder;

#[path = "../../support/fleet.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test uses a part")]
pub(crate) mod engines;

/// Statements that mean the same over the tables and over the views. Numbers of units are those of a copy, and
/// hashes are compared in digits.
const SAME: &[&str] = &[
    "select version, written_by from format",
    "select session_id, name, created_at_ns, source, parent_id, parent_seq, meta, runtime from session order by 1",
    "select session_id, seq, cycle, committed_at_ns, meta, usage, note, lower(hex(hash)) from snapshot order by 1, 2",
    "select p.session_id, u.kind, lower(hex(u.hash)), u.spelling, p.first_seq, p.last_seq, p.sibling_offset, \
     p.created_at_ns, p.creation_index, p.id, p.rank from placement p join unit u on u.unit_id = p.unit_id \
     order by p.session_id, p.rank, p.first_seq, p.id",
    "select p.session_id, p.id, p.first_seq, n.pre, n.pre_end, n.parent_pre, n.core_pre, n.level, n.base_depth, \
     n.class, n.id, n.node_type, n.type_head, n.type_sub, n.role, n.kind, n.key, n.sibling_offset, n.ttl, n.expires, \
     n.priority, n.cycle, n.created_at_ns, n.created_at_iso, n.creation_index, n.cadence, n.content_hash, n.body_id, \
     n.present, n.version, n.extra from placement p join node n on n.unit_id = p.unit_id \
     order by p.session_id, p.id, p.first_seq, n.pre",
    "select p.session_id, p.id, p.first_seq, a.pre, a.name, a.ordinal, a.type, a.text, a.int, a.real, a.big \
     from placement p join attr a on a.unit_id = p.unit_id \
     order by p.session_id, p.id, p.first_seq, a.pre, a.name, a.ordinal",
    "select body_id, lower(hex(hash)), text from body order by body_id",
    "select session_id, pin_id, id, owner, expires_at_ns from pin order by 1, 2",
    "select session_id, attempt_id, number, cycle_id, status, request from attempt order by 1, 3",
    // The shape that statements of selectors have.
    "with s as (select session_id, max(seq) seq from snapshot where not working group by 1), \
     t as (select s.*, p.unit_id, p.rank, p.id top, case when u.kind = 'turn' then row_number() over \
       (partition by s.session_id, u.kind order by p.sibling_offset desc, p.created_at_ns desc, \
        p.creation_index desc, p.id desc) end depth \
       from s join placement p on p.session_id = s.session_id and s.seq between p.first_seq and p.last_seq \
       join unit u on u.unit_id = p.unit_id) \
     select z.name, t.depth, n.id from t join node n on n.unit_id = t.unit_id \
     join session z on z.session_id = t.session_id \
     where t.rank = 1 and t.depth between 1 and 2 and n.class = 'cb' order by 1, 2, n.id",
];

/// The rows of a statement over the file of a store.
fn by_sqlite(path: &str, sql: &str) -> Vec<Vec<Value>> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let values = (0..columns).map(|at| match row.get_ref(at).unwrap() {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => value.into(),
            ValueRef::Real(value) => value.into(),
            ValueRef::Text(text) => std::str::from_utf8(text).unwrap().into(),
            ValueRef::Blob(_) => panic!("a blob in {sql}"),
        });
        all.push(values.collect());
    }
    all
}

#[test]
fn views_have_the_rows_of_the_tables() {
    let mut fleet = match engines::Fleet::shared() {
        Ok(fleet) => fleet,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let folder = Folder::quick();
    let path = folder.file("a.db");
    let store = Store::open(&path).unwrap();
    for name in ["greenhouse", "support-agent"] {
        let session = Session::open(format!("fixtures/{name}.jsonl")).unwrap();
        // Only what was committed is in a copy.
        let mut lines = Vec::new();
        let history = session.history();
        pactql::logs::write_session(history.committed(), None, false, &mut lines).unwrap();
        let session = Session::from_slice(&lines).unwrap();
        store
            .import(&format!("it's/{name}"), &session, Some("a file"))
            .unwrap();
    }
    store.fork("it's/greenhouse", "@t-1", "fork").unwrap();
    let directory = folder.file("it's a copy");
    store
        .export_parquet(&directory, &ParquetExport::default().buckets(2))
        .unwrap();
    for engine in fleet.engines().to_vec() {
        let dialect: Dialect = engine.parse().unwrap();
        let views = parquet_views(dialect, &directory, None).unwrap();
        for sql in SAME {
            let wanted = by_sqlite(&path, sql);
            let found = fleet.ask(&engine, &views, sql);
            assert_eq!(found.as_ref(), Ok(&wanted), "{engine}: {sql}");
        }
        // A scan needs no join.
        let texts = "select count(*) from placement p join node n on n.unit_id = p.unit_id \
             where n.content is not null";
        let wanted = "select count(*) from placement p join node n on n.unit_id = p.unit_id \
             where n.body_id is not null";
        let found = fleet.ask(&engine, &views, texts).unwrap();
        assert_eq!(found, by_sqlite(&path, wanted), "{engine}");
        let buckets = "select distinct bucket from node order by 1";
        let found = fleet.ask(&engine, &views, buckets).unwrap();
        assert_eq!(found, [[Value::from(0)], [Value::from(1)]], "{engine}");
    }
}
