//! The layout by raw SQL: what every store keeps to, and the columns of nodes written by hand
//! (STORE §2).

use pactql::internals::json::JsonValue;
use std::collections::BTreeMap;

use pactql::{Context, NewNode, Session, Store};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::place::{Folder, documents, sound};
use crate::support::json::{Json, parse};

/// Statements that find nothing in a sound store.
const NOTHING: &[(&str, &str)] = &[
    (
        "versions of one unit that are in force together",
        "select a.session_id, a.id from placement a join placement b on a.session_id = b.session_id \
         and a.id = b.id and (a.unit_id, a.first_seq) <> (b.unit_id, b.first_seq) \
         and a.first_seq <= b.last_seq and b.first_seq <= a.last_seq",
    ),
    (
        "placements that end before they begin",
        "select * from placement where last_seq < first_seq",
    ),
    (
        "placements out of the snapshots of their session",
        "select p.session_id, p.id, p.first_seq, p.last_seq, s.low, s.high from placement p left join \
         (select session_id, min(seq) low, max(seq) high from snapshot group by 1) s using (session_id) \
         where s.low is null or p.first_seq < s.low or p.first_seq > s.high \
         or (p.last_seq <> 9223372036854775807 and p.last_seq >= s.high)",
    ),
    (
        "gaps in seqs",
        "select session_id from snapshot group by 1 having count(*) <> max(seq) - min(seq) + 1",
    ),
    (
        "working states that are not the highest",
        "select * from snapshot a where working and exists \
         (select 1 from snapshot b where b.session_id = a.session_id and b.seq > a.seq)",
    ),
    (
        "working states with a cycle, commits without",
        "select * from snapshot where working <> (cycle is null)",
    ),
    (
        "units without a placement",
        "select * from unit where unit_id not in (select unit_id from placement)",
    ),
    (
        "units without nodes",
        "select * from unit where unit_id not in (select unit_id from node)",
    ),
    (
        "nodes without a unit",
        "select * from node where unit_id not in (select unit_id from unit)",
    ),
    (
        "attributes without a node",
        "select * from attr a where not exists \
         (select 1 from node n where n.unit_id = a.unit_id and n.pre = a.pre and n.id is not null)",
    ),
    (
        "bodies without a node",
        "select * from body where body_id not in (select body_id from node where body_id is not null)",
    ),
    (
        "nodes without their body",
        "select * from node where body_id is not null and body_id not in (select body_id from body)",
    ),
    (
        "placements without a unit or session",
        "select * from placement where unit_id not in (select unit_id from unit) \
         or session_id not in (select session_id from session)",
    ),
    (
        "rows of no session",
        "select session_id from (select session_id from snapshot union all select session_id from attempt \
         union all select session_id from pin union all select session_id from lease union all \
         select session_id from retired) where session_id not in (select session_id from session)",
    ),
    (
        "forks of no session",
        "select * from session where parent_id not in (select session_id from session)",
    ),
    (
        "rows of a unit that are not numbered from 0",
        "select unit_id from node group by 1 having min(pre) <> 0 or count(*) <> max(pre) + 1",
    ),
    (
        "intervals that are empty or go beyond those around them",
        "select n.unit_id, n.pre from node n left join node p on p.unit_id = n.unit_id \
         and p.pre = n.parent_pre where n.pre_end <= n.pre or n.pre_end > \
         coalesce(p.pre_end, (select max(pre) + 1 from node m where m.unit_id = n.unit_id)) \
         or p.pre >= n.pre",
    ),
    (
        "levels that are not one more than that of the parent",
        "select n.unit_id, n.pre from node n join node p on p.unit_id = n.unit_id \
         and p.pre = n.parent_pre where n.level <> p.level + 1",
    ),
    (
        "parents that are missing, or that the interval does not say",
        "select n.unit_id, n.pre from node n where n.parent_pre is not (select max(p.pre) from node p \
         where p.unit_id = n.unit_id and p.pre < n.pre and p.pre_end > n.pre and p.level = n.level - 1)",
    ),
    (
        "cores that are no implicit core of the parent",
        "select n.unit_id, n.pre from node n left join node c on c.unit_id = n.unit_id \
         and c.pre = n.core_pre where n.core_pre is not null and \
         (c.class is not 'mc' or c.id is not null or c.parent_pre is not n.parent_pre \
         or n.sibling_offset <> 0)",
    ),
    (
        "placements whose order is not that of the top node",
        "select p.session_id, p.id from placement p join node n on n.unit_id = p.unit_id and n.pre = 0 \
         where (p.sibling_offset, p.created_at_ns, p.creation_index, p.id) is not \
         (n.sibling_offset, n.created_at_ns, n.creation_index, n.id)",
    ),
    (
        "ranks that are not those of the kind",
        "select p.session_id, p.id from placement p join unit u using (unit_id) where p.rank <> \
         case u.kind when 'preamble' then 0 when 'turn' then 1 when 'loose' then 1 when 'head' then 2 \
         when 'other' then 3 end",
    ),
    (
        "kinds that are not those of the top node",
        "select u.unit_id from unit u join node n on n.unit_id = u.unit_id and n.pre = 0 where u.kind is not \
         case n.class when '^root' then 'preamble' when 'mt' then case n.level when 2 then 'turn' end \
         when '^ah' then 'head' else u.kind end",
    ),
    (
        "depths that are not those of the region",
        "select n.unit_id, n.pre from node n join unit u using (unit_id) where n.base_depth is not \
         case when u.kind = 'head' then 0 when u.kind = 'preamble' and exists \
         (select 1 from node s where s.unit_id = n.unit_id and s.class = '^sys' and s.level = 1 \
          and s.pre <= n.pre and n.pre < s.pre_end) then -1 end",
    ),
    (
        "ttls that are stored and count down",
        "select * from node where ttl is not null and expires is not null",
    ),
];

/// What a file that stays the same unit by unit had before: hashes of the rows, by unit.
pub(super) type Seen = BTreeMap<i64, String>;

/// Checks a file by raw SQL. `seen` says whether units changed since the last call.
pub(super) fn check(path: &str, seen: &mut Seen) -> Result<(), String> {
    let connection = Connection::open(path).unwrap();
    for (what, sql) in NOTHING {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let found = statement.query_map([], |row| {
            let values = (0..columns).map(|at| row.get_ref(at).map(|value| format!("{value:?}")));
            values.collect::<Result<Vec<String>, _>>()
        });
        let found: Vec<Vec<String>> = found.unwrap().map(Result::unwrap).collect();
        if !found.is_empty() {
            return Err(format!("{what}: {found:?}"));
        }
    }
    let units = column::<i64>(&connection, "select unit_id from unit order by 1");
    for unit in units {
        let rows = column::<String>(
            &connection,
            &format!("select kind || hex(hash) from unit where unit_id = {unit}"),
        );
        let nodes = texts(
            &connection,
            "node",
            &format!("unit_id = {unit} order by pre"),
        );
        let attrs = texts(
            &connection,
            "attr",
            &format!("unit_id = {unit} order by pre, name, ordinal"),
        );
        let now = format!(
            "{:x?}",
            Sha256::digest(format!("{rows:?}{nodes:?}{attrs:?}"))
        );
        match seen.insert(unit, now.clone()) {
            Some(before) if before != now => return Err(format!("unit {unit} has changed")),
            _ => {}
        }
    }
    Ok(())
}

fn column<T: rusqlite::types::FromSql>(connection: &Connection, sql: &str) -> Vec<T> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Rows of a table, every value as SQL spells it.
fn texts(connection: &Connection, table: &str, rest: &str) -> Vec<String> {
    let names = format!("select name from pragma_table_info('{table}')");
    let names: Vec<String> = column(connection, &names);
    let quoted: Vec<String> = names.iter().map(|name| format!("quote({name})")).collect();
    let sql = format!(
        "select {} from {table} where {rest}",
        quoted.join(" || '|' || ")
    );
    column(connection, &sql)
}

/// How many rows a table has.
pub(super) fn count(path: &str, table: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    column(&connection, &format!("select count(*) from {table}"))[0]
}

/// A session of one snapshot of cycle 5 with these nodes below `^ah`.
fn with_head(nodes: &str) -> String {
    format!(
        r#"{{"cycle":5,"root":{{"id":"r","children":[
        {{"id":"s","nodeType":"^sys"}},
        {{"id":"q","nodeType":"^seq"}},
        {{"id":"h","nodeType":"^ah","children":[{nodes}]}}]}}}}"#
    )
    .replace('\n', "")
}

/// Imports a session and compares what it reads as: the documents, and the spelling of every field.
fn imported(folder: &Folder, lines: &str) -> (String, Store) {
    let path = folder.file(&format!("{}.db", count_files(folder)));
    let store = Store::open(&path).unwrap();
    let given = Session::from_slice(lines.as_bytes()).unwrap();
    store.import("x", &given, None).unwrap();
    let other = Store::open(&path).unwrap();
    let stored = other.session("x").unwrap();
    assert_eq!(documents(&stored).unwrap(), documents(&given).unwrap());
    let spelled = |session: &Session| -> Vec<String> {
        let history = session.history();
        let mut lines = Vec::new();
        let all = history.committed().into_iter().chain(history.working());
        for node in all.flat_map(|snapshot| snapshot.nodes()) {
            let fields: Vec<String> = node
                .fields()
                .map(|(name, value)| match value {
                    JsonValue::Text(text) => format!("{name}:{text:?}"),
                    value => format!("{name}:{}", value.json()),
                })
                .collect();
            lines.push(format!("{} {fields:?}", node.id()));
        }
        lines
    };
    assert_eq!(spelled(&stored), spelled(&given));
    assert_eq!(sound(&other), Ok(()), "{lines}");
    assert_eq!(check(&path, &mut Seen::new()), Ok(()), "{lines}");
    hashes(&path, &documents(&given).unwrap());
    (path, store)
}

fn count_files(folder: &Folder) -> usize {
    std::fs::read_dir(&folder.0).unwrap().count()
}

/// A node's members, columns as SQL spells them, and the rows of `attr`:
/// `name|ordinal|type|text|int|real|big`.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

const CASES: &[Case] = &[
    (
        r#"{"id":"n"}"#,
        &[
            ("class", "'cb'"),
            ("id", "'n'"),
            ("node_type", "NULL"),
            ("type_head", "'cb'"),
            ("type_sub", "NULL"),
            ("role", "NULL"),
            ("kind", "NULL"),
            ("key", "NULL"),
            ("sibling_offset", "0"),
            ("ttl", "NULL"),
            ("expires", "NULL"),
            ("priority", "0"),
            ("cycle", "NULL"),
            ("created_at_ns", "0"),
            ("created_at_iso", "NULL"),
            ("creation_index", "0"),
            ("cadence", "NULL"),
            ("content_hash", "NULL"),
            ("body_id", "NULL"),
            ("present", "0"),
            ("extra", "NULL"),
            ("level", "2"),
            ("base_depth", "0"),
            ("parent_pre", "0"),
            ("core_pre", "1"),
            ("pre", "2"),
            ("pre_end", "3"),
        ],
        &[],
    ),
    (
        r#"{"id":"n","nodeType":"block:summary:x","role":"user","kind":"text","key":"K","offset":-2,"ttl":3,"priority":-7,"cycle":4,"created_at_ns":12,"creation_index":6}"#,
        &[
            ("class", "'cb'"),
            ("node_type", "'block:summary:x'"),
            ("type_head", "'cb'"),
            ("type_sub", "'summary:x'"),
            ("role", "'user'"),
            ("kind", "'text'"),
            ("key", "'K'"),
            ("sibling_offset", "-2"),
            ("ttl", "NULL"),
            ("expires", "8"),
            ("priority", "-7"),
            ("cycle", "4"),
            ("created_at_ns", "12"),
            ("creation_index", "6"),
            ("present", "63"),
            ("core_pre", "NULL"),
            ("pre", "1"),
            ("extra", "NULL"),
        ],
        &[],
    ),
    (
        r#"{"id":"n","nodeType":"custom:note"}"#,
        &[
            ("class", "'cb'"),
            ("type_head", "'custom'"),
            ("type_sub", "'note'"),
        ],
        &[],
    ),
    (
        r#"{"id":"n","nodeType":"cont","offset":0,"children":[]}"#,
        &[
            ("class", "'mc'"),
            ("type_head", "'mc'"),
            ("present", "65"),
            ("core_pre", "NULL"),
            ("pre", "1"),
        ],
        &[],
    ),
    (
        r#"{"id":"n","ttl":9223372036854775803}"#,
        &[
            ("ttl", "9223372036854775803"),
            ("expires", "NULL"),
            ("present", "2"),
        ],
        &[],
    ),
    (
        r#"{"id":"n","ttl":9223372036854775802}"#,
        &[("ttl", "NULL"), ("expires", "9223372036854775807")],
        &[],
    ),
    (
        r#"{"id":"n","ttl":null,"role":null,"key":null,"kind":null}"#,
        &[
            ("ttl", "NULL"),
            ("expires", "NULL"),
            ("role", "NULL"),
            ("kind", "NULL"),
            ("present", "8192"),
            ("extra", r#"'{"key":null,"kind":null,"role":null}'"#),
        ],
        &[],
    ),
    (
        r#"{"id":"n","content":null}"#,
        &[("body_id", "1"), ("extra", "NULL")],
        &[],
    ),
    (
        r#"{"id":"n","content":"a\u00e9\n"}"#,
        &[("body_id", "1")],
        &[],
    ),
    (
        r#"{"id":"n","content":{"b" : 1.50,"a":[1e3, -0.0, "\u0041"], "b2":"\/"}}"#,
        &[("body_id", "1")],
        &[],
    ),
    (
        r#"{"id":"n","content":"a\u0000b"}"#,
        &[("body_id", "1")],
        &[],
    ),
    (r#"{"id":"n","content":"[1]"}"#, &[("body_id", "1")], &[]),
    (
        r#"{"id":"n","created_at_ns":12,"created_at_iso":"1970-01-01T00:00:00.000000012Z"}"#,
        &[("created_at_iso", "NULL"), ("present", "272")],
        &[],
    ),
    (
        r#"{"id":"n","created_at_ns":12,"created_at_iso":"1970-01-01T00:00:00Z"}"#,
        &[
            ("created_at_iso", "'1970-01-01T00:00:00Z'"),
            ("present", "272"),
        ],
        &[],
    ),
    (
        r#"{"id":"n","created_at_iso":null}"#,
        &[
            ("created_at_iso", "NULL"),
            ("present", "0"),
            ("extra", r#"'{"created_at_iso":null}'"#),
        ],
        &[],
    ),
    (
        r#"{"id":"n","parent_id":"h"}"#,
        &[("present", "2048"), ("extra", "NULL")],
        &[],
    ),
    (
        r#"{"id":"n","cadence":3}"#,
        &[("cadence", "3"), ("present", "512"), ("extra", "NULL")],
        &[],
    ),
    (
        r#"{"id":"n","cad":3}"#,
        &[
            ("cadence", "3"),
            ("present", "0"),
            ("extra", r#"'{"cad":3}'"#),
        ],
        &["cad|-1|'int'|'3'|3|3.0|NULL"],
    ),
    (
        r#"{"id":"n","cadence":null}"#,
        &[
            ("cadence", "NULL"),
            ("present", "0"),
            ("extra", r#"'{"cadence":null}'"#),
        ],
        &[],
    ),
    (
        r#"{"id":"n","content_hash":"abc"}"#,
        &[("content_hash", "'abc'"), ("extra", "NULL")],
        &[],
    ),
    (
        r#"{"id":"n","content_hash":null}"#,
        &[
            ("content_hash", "NULL"),
            ("extra", r#"'{"content_hash":null}'"#),
        ],
        &[],
    ),
    (
        r#"{"id":"n","tags":["b","a","b"]}"#,
        &[("present", "1024"), ("extra", "NULL")],
        &[
            "tags|0|'text'|'b'|NULL|NULL|NULL",
            "tags|1|'text'|'a'|NULL|NULL|NULL",
            "tags|2|'text'|'b'|NULL|NULL|NULL",
        ],
    ),
    (
        // Tells an empty list from none.
        r#"{"id":"n","tags":[]}"#,
        &[("present", "1024"), ("extra", "NULL")],
        &["tags|-1|'list'|NULL|NULL|NULL|NULL"],
    ),
    (
        r#"{"id":"n","tags":"one"}"#,
        &[("present", "0"), ("extra", r#"'{"tags":"one"}'"#)],
        &["tags|0|'text'|'one'|NULL|NULL|NULL"],
    ),
    (
        r#"{"id":"n","tag":["one"]}"#,
        &[("present", "0"), ("extra", r#"'{"tag":["one"]}'"#)],
        &[
            "tag|-1|'list'|NULL|NULL|NULL|NULL",
            "tag|0|'text'|'one'|NULL|NULL|NULL",
            "tags|0|'text'|'one'|NULL|NULL|NULL",
        ],
    ),
    (
        r#"{"id":"n","tags":["a\u0000","b"]}"#,
        &[("present", "0"), ("extra", r#"'{"tags":["a\u0000","b"]}'"#)],
        &["tags|0|'text'|'b'|NULL|NULL|NULL"],
    ),
    (
        r#"{"id":"n","data_a":1,"data_b":-9223372036854775808,"data_c":9223372036854775808,"data_d":1.50,"data_e":"1e400","data_f":9007199254740993}"#,
        &[("extra", "NULL")],
        &[
            "data_a|-1|'int'|'1'|1|1.0|NULL",
            "data_b|-1|'int'|'-9223372036854775808'|-9223372036854775808|-9.2233720368547758e+18|NULL",
            "data_c|-1|'int'|'9223372036854775808'|NULL|9.2233720368547758e+18|'9223372036854775808'",
            "data_d|-1|'real'|'1.50'|NULL|1.5|NULL",
            "data_e|-1|'text'|'1e400'|NULL|NULL|NULL",
            "data_f|-1|'int'|'9007199254740993'|9007199254740993|9007199254740992.0|NULL",
        ],
    ),
    (
        r#"{"id":"n","data_n":null,"data_t":true,"data_x":"x","data_y":"12","data_z":"1e2","x:y":"18446744073709551616"}"#,
        &[("extra", "NULL")],
        &[
            "data_n|-1|'null'|NULL|NULL|NULL|NULL",
            "data_t|-1|'bool'|'true'|1|NULL|NULL",
            "data_x|-1|'text'|'x'|NULL|NULL|NULL",
            "data_y|-1|'text'|'12'|12|12.0|NULL",
            "data_z|-1|'text'|'1e2'|NULL|NULL|NULL",
            "x:y|-1|'text'|'18446744073709551616'|NULL|1.8446744073709552e+19|'18446744073709551616'",
        ],
    ),
    (
        r#"{"id":"n","data_l":[1,"a",null,true,2.5,[3],{"b":4}],"data_m":[],"data_o":{"k":[1.0, 2]}}"#,
        &[(
            "extra",
            r#"'{"data_l":[1,"a",null,true,2.5,[3],{"b":4}],"data_m":[],"data_o":{"k":[1.0, 2]}}'"#,
        )],
        &[
            "data_l|-1|'list'|NULL|NULL|NULL|NULL",
            "data_l|0|'int'|'1'|1|1.0|NULL",
            "data_l|1|'text'|'a'|NULL|NULL|NULL",
            "data_l|2|'null'|NULL|NULL|NULL|NULL",
            "data_l|3|'bool'|'true'|1|NULL|NULL",
            "data_l|4|'real'|'2.5'|NULL|2.5|NULL",
            "data_l|5|'list'|NULL|NULL|NULL|NULL",
            "data_l|6|'object'|NULL|NULL|NULL|NULL",
            "data_m|-1|'list'|NULL|NULL|NULL|NULL",
            "data_o|-1|'object'|NULL|NULL|NULL|NULL",
        ],
    ),
    (
        r#"{"id":"n","data_x":"a\u0000b","data\u0000y":"z"}"#,
        &[("extra", r#"'{"data\u0000y":"z","data_x":"a\u0000b"}'"#)],
        &["data_x|-1|'text'|NULL|NULL|NULL|NULL"],
    ),
    (
        r#"{"id":"n","provenance":{"tool":"x"},"removable":true}"#,
        &[("extra", r#"'{"provenance":{"tool":"x"}}'"#)],
        &[
            "provenance|-1|'object'|NULL|NULL|NULL|NULL",
            "removable|-1|'bool'|'true'|1|NULL|NULL",
        ],
    ),
];

#[test]
fn columns_are_those_of_the_law() {
    let folder = Folder::quick();
    for (node, columns, attrs) in CASES {
        let (path, store) = imported(&folder, &with_head(node));
        let connection = Connection::open(&path).unwrap();
        for (name, wanted) in *columns {
            // One bit says that there are rows of `attr`.
            let shown = if *name == "present" && !attrs.is_empty() {
                format!("present - {}", 1 << 12)
            } else {
                format!("quote({name})")
            };
            let sql = format!("select cast({shown} as text) from node where id = 'n'");
            assert_eq!(
                column::<String>(&connection, &sql),
                [*wanted],
                "{node} {name}"
            );
        }
        let sql = "select name || '|' || ordinal || '|' || quote(type) || '|' || quote(text) || '|' || \
             quote(int) || '|' || quote(real) || '|' || quote(big) from attr order by name, ordinal";
        assert_eq!(column::<String>(&connection, sql), *attrs, "{node}");
        drop(store);
    }
}

#[test]
fn bodies_keep_the_spelling() {
    let folder = Folder::quick();
    for (content, json, text) in [
        (r#""a\u00e9\"\/""#, 0, "aé\"/"),
        (r#""""#, 0, ""),
        ("null", 1, "null"),
        ("true", 1, "true"),
        ("1.50", 1, "1.50"),
        (
            r#"{"b" : 1.50,"a":[1e3,"\u0041"]}"#,
            1,
            r#"{"b" : 1.50,"a":[1e3,"\u0041"]}"#,
        ),
        (r#""a\u0000b""#, 1, r#""a\u0000b""#),
        (r#""[1]""#, 0, "[1]"),
    ] {
        let (path, _store) = imported(
            &folder,
            &with_head(&format!(r#"{{"id":"n","content":{content}}}"#)),
        );
        let connection = Connection::open(&path).unwrap();
        let row = connection.query_row("select json, text, hash from body", [], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, Vec<u8>>(2)?,
            ))
        });
        let hash = Sha256::digest(format!("{json}\n{text}")).to_vec();
        assert_eq!(row.unwrap(), (json, text.to_owned(), hash), "{content}");
    }
}

/// A tree of every region, with cores of all sorts; `pre|pre_end|parent|core|level|depth|class|id`.
#[test]
fn rows_of_a_tree() {
    let document = r#"{"cycle":1,"root":{"children":[
        {"id":"s","nodeType":"^sys","children":[{"id":"s1","children":[{"id":"s2"}]}]},
        {"id":"q","nodeType":"^seq","children":[
            {"id":"t1","nodeType":"mt","created_at_ns":1,"children":[
                {"id":"a","offset":-1},{"id":"b","created_at_ns":1},{"id":"c","created_at_ns":2},
                {"id":"d","offset":2}]},
            {"id":"t2","nodeType":"mt","created_at_ns":2,"children":[
                {"id":"x","nodeType":"mc","children":[{"id":"y"}]},{"id":"z","offset":1}]},
            {"id":"t3","nodeType":"mt","created_at_ns":3},
            {"id":"l","nodeType":"cb","created_at_ns":4}]},
        {"id":"h","nodeType":"^ah","children":[{"id":"e","offset":1}]},
        {"id":"o","nodeType":"cb"}]}}"#
        .replace('\n', "");
    let folder = Folder::quick();
    let (path, _store) = imported(&folder, &document);
    let connection = Connection::open(&path).unwrap();
    let sql = "select u.kind || ' ' || n.pre || ' ' || n.pre_end || ' ' || quote(n.parent_pre) || ' ' || \
         quote(n.core_pre) || ' ' || n.level || ' ' || quote(n.base_depth) || ' ' || n.class || ' ' || \
         coalesce(n.id, '-') from placement p join unit u using (unit_id) join node n using (unit_id) \
         order by p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id, n.pre";
    assert_eq!(
        column::<String>(&connection, sql),
        [
            "preamble 0 5 NULL NULL 0 NULL ^root ^root",
            "preamble 1 4 0 NULL 1 -1 ^sys s",
            "preamble 2 4 1 NULL 2 -1 mc s1",
            "preamble 3 4 2 NULL 3 -1 cb s2",
            "preamble 4 5 0 NULL 1 NULL ^seq q",
            "turn 0 6 NULL NULL 2 NULL mt t1",
            "turn 1 2 0 NULL 3 NULL cb a",
            "turn 2 5 0 NULL 3 NULL mc -",
            "turn 3 4 0 2 3 NULL cb b",
            "turn 4 5 0 2 3 NULL cb c",
            "turn 5 6 0 NULL 3 NULL cb d",
            "turn 0 4 NULL NULL 2 NULL mt t2",
            "turn 1 3 0 NULL 3 NULL mc x",
            "turn 2 3 1 NULL 4 NULL cb y",
            "turn 3 4 0 NULL 3 NULL cb z",
            "turn 0 2 NULL NULL 2 NULL mt t3",
            "turn 1 2 0 NULL 3 NULL mc -",
            "loose 0 1 NULL NULL 2 NULL cb l",
            "head 0 3 NULL NULL 1 0 ^ah h",
            "head 1 2 0 NULL 2 0 mc -",
            "head 2 3 0 NULL 2 0 cb e",
            "other 0 1 NULL NULL 1 NULL cb o",
        ]
    );
}

/// Computes the hashes of all units and snapshots of the one session of a file again, from documents and,
/// of the rows, only from the cycle in which a ttl runs out.
fn hashes(path: &str, (committed, working): &(Vec<String>, Option<String>)) {
    let connection = Connection::open(path).unwrap();
    let documents: Vec<Json> = committed
        .iter()
        .chain(working)
        .map(|text| parse(text))
        .collect();
    let mut statement = connection
        .prepare(
            "select u.unit_id, u.kind, u.hash, p.id, p.first_seq, p.last_seq from placement p join unit u \
             using (unit_id) order by p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id",
        )
        .unwrap();
    let rows = statement.query_map([], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, Vec<u8>>(2)?,
            row.get::<_, String>(3)?,
            (row.get::<_, i64>(4)?, row.get::<_, i64>(5)?),
        ))
    });
    let (mut came, mut gone) = (
        BTreeMap::<i64, Vec<Vec<u8>>>::new(),
        BTreeMap::<i64, Vec<Vec<u8>>>::new(),
    );
    for row in rows.unwrap() {
        let (unit, kind, hash, top, (first, last)) = row.unwrap();
        let document = &documents[first as usize - 1];
        let cycle = document.get("cycle").and_then(Json::as_int);
        let sql =
            format!("select id, expires from node where unit_id = {unit} and expires is not null");
        let mut expires = connection.prepare(&sql).unwrap();
        let expires: BTreeMap<String, i64> = expires
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let mut text = format!("{kind}\n");
        let root = document.get("root").unwrap();
        lines(root, (&kind, &top), 0, false, &expires, cycle, &mut text);
        assert_eq!(hash, Sha256::digest(&text).to_vec(), "{kind} {top}: {text}");
        came.entry(first).or_default().push(hash.clone());
        if last != i64::MAX {
            gone.entry(last + 1).or_default().push(hash);
        }
    }
    let mut statement = connection
        .prepare("select seq, cycle, meta, note, hash from snapshot order by seq")
        .unwrap();
    let rows = statement.query_map([], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, Option<i64>>(1)?,
            row.get::<_, String>(2)?,
            row.get::<_, Option<String>>(3)?,
            row.get::<_, Vec<u8>>(4)?,
        ))
    });
    let mut parent: Vec<u8> = Vec::new();
    for row in rows.unwrap() {
        let (seq, cycle, meta, note, hash) = row.unwrap();
        let cycle = cycle.map(|cycle| cycle.to_string()).unwrap_or_default();
        let mut bytes = parent;
        bytes.extend(format!("{cycle}\n{meta}\n{}\n", note.unwrap_or_default()).bytes());
        for (sign, units) in [(b'-', &gone), (b'+', &came)] {
            for unit in units.get(&seq).into_iter().flatten() {
                bytes.push(sign);
                bytes.extend(unit);
            }
        }
        assert_eq!(hash, Sha256::digest(&bytes).to_vec(), "seq {seq}");
        parent = hash;
    }
}

/// The lines of a unit's text: the nodes from its top, or for the preamble the root, `^sys` with all below
/// it, and `^seq`.
fn lines(
    node: &Json,
    unit: (&str, &str),
    level: usize,
    inside: bool,
    expires: &BTreeMap<String, i64>,
    cycle: Option<i64>,
    out: &mut String,
) {
    let Json::Obj(members) = node else { panic!() };
    let id = node.get("id").and_then(Json::as_str).unwrap_or("^root");
    let node_type = node.get("nodeType").and_then(Json::as_str).unwrap_or("");
    let (kind, top) = unit;
    let spine = kind == "preamble" && (level == 0 || level == 1 && node_type == "^seq");
    let inside = inside
        || match kind {
            "preamble" => level == 1 && node_type == "^sys",
            _ => id == top,
        };
    let children = match node.get("children") {
        Some(Json::List(children)) => children.as_slice(),
        _ => &[],
    };
    if inside || spine {
        let mut own: Vec<(String, Json)> = Vec::new();
        for (name, value) in members {
            match name.as_str() {
                "children" if !children.is_empty() => {}
                "ttl" if expires.contains_key(id) => {
                    if let (Some(cycle), Some(ttl)) = (cycle, value.as_int()) {
                        assert_eq!(ttl, (expires[id] - cycle).max(0));
                    }
                    own.push(("expires".to_owned(), Json::int(expires[id])));
                }
                _ => own.push((name.clone(), value.clone())),
            }
        }
        out.push_str(&format!("{level} {}\n", Json::Obj(own).canonical()));
    }
    for child in children {
        lines(child, unit, level + 1, inside, expires, cycle, out);
    }
}

/// Hashes of the history of a context, with a working state.
#[test]
fn hashes_are_those_of_the_law() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let mut context = store.write("x").unwrap();
    for number in 0..6 {
        let node = format!(
            r#"{{"offset":-1,"ttl":{number},"content":{{"n":{number}.50}},"data_x":"é\u0001 {number}"}}"#
        );
        context.add("^ah", NewNode::json(&node).unwrap()).unwrap();
        let block = NewNode::text(&format!("turn {number}")).role("user");
        context.add("^ah", block).unwrap();
        if number == 3 {
            context.add("^sys", NewNode::text("Be brief.")).unwrap();
        }
        if number < 5 {
            context.commit().unwrap();
        }
    }
    context.save().unwrap();
    let session = store.session("x").unwrap();
    let documents = documents(&session).unwrap();
    assert_eq!((documents.0.len(), documents.1.is_some()), (5, true));
    hashes(&path, &documents);
    assert_eq!(check(&path, &mut Seen::new()), Ok(()));
    assert_eq!(sound(&store), Ok(()));
}

/// Sessions that begin alike share what is alike; a fork copies no node.
#[test]
fn what_is_the_same_is_there_once() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let context = || {
        Context::builder()
            .clock(pactql::context::StepClock::new(0, 1))
            .build()
    };
    for name in ["a", "b", "c"] {
        let mut context = context();
        context
            .set_system(["You are brief.", "And friendly."])
            .unwrap();
        context.commit().unwrap();
        context.add("^ah", NewNode::text(name)).unwrap();
        context.commit().unwrap();
        store.import(name, &context.session(), None).unwrap();
    }
    assert_eq!(count(&path, "unit where kind = 'preamble'"), 1);
    assert_eq!(count(&path, "placement where rank = 0"), 3);
    assert_eq!(count(&path, "body"), 5);
    let rows = |table: &str| count(&path, table);
    let before = ["unit", "node", "attr", "body"].map(rows);
    for (address, to) in [("@t0", "d"), ("@t-1", "e"), ("@c1", "f")] {
        store.fork("a", address, to).unwrap();
    }
    store.fork("d", "@t-1", "g").unwrap();
    assert_eq!(["unit", "node", "attr", "body"].map(rows), before);
    assert_eq!(check(&path, &mut Seen::new()), Ok(()));
    store.delete("a").unwrap();
    assert_eq!(
        ["unit", "node", "attr", "body"].map(rows),
        before,
        "forks stay whole"
    );
    for name in ["b", "c", "d", "e", "f", "g"] {
        assert_eq!(sound(&store), Ok(()));
        store.delete(name).unwrap();
    }
    let empty = [
        "unit",
        "node",
        "attr",
        "body",
        "placement",
        "snapshot",
        "session",
        "lease",
        "retired",
    ];
    assert_eq!(empty.map(rows), [0; 9]);
}
