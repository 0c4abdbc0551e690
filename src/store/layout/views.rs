//! Views for people who write SQL, over the tables of STORE §2: in every home the same names and columns.

use crate::query::sql::Dialect;

/// The views: name and select, in an order in which they can be made. `schema` is put before the names of tables, with its
/// full stop.
pub(crate) fn views(dialect: Dialect, schema: &str) -> [(&'static str, String); 3] {
    [
        ("step", step(dialect, schema)),
        ("tool_call", tool_call(schema)),
        ("newest_node", newest_node(dialect, schema)),
    ]
}

fn step(dialect: Dialect, schema: &str) -> String {
    let json = |column: &str, path: &str, kind: &str| member(dialect, column, path, kind);
    let time = match dialect {
        Dialect::Sqlite => {
            "strftime('%Y-%m-%dT%H:%M:%SZ', c.committed_at_ns / 1000000000, 'unixepoch')"
        }
        Dialect::Postgres => {
            "to_char(to_timestamp(c.committed_at_ns / 1000000000) at time zone 'UTC', \
             'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
        }
        Dialect::DuckDb => {
            "strftime(make_timestamp(c.committed_at_ns // 1000), '%Y-%m-%dT%H:%M:%SZ')"
        }
        Dialect::Spark => {
            "date_format(to_utc_timestamp(timestamp_seconds(c.committed_at_ns div 1000000000), \
             current_timezone()), 'yyyy-MM-dd\\'T\\'HH:mm:ss\\'Z\\'')"
        }
    };
    let model = [
        json("c.meta", "members.meta.request.model", "text"),
        json("c.meta", "members.meta.request.modelId", "text"),
        json("c.usage", "model", "text"),
    ];
    let number = |name: &str| json("c.usage", name, "bigint");
    format!(
        "select z.name as session, c.seq, c.cycle, {time} as time, coalesce({}) as model, {} as input, \
         {} as cached, {} as cache_written, {} as output, {} as stop_reason, \
         {} * 1000000 as latency_ns from {schema}snapshot c \
         join {schema}session z on z.session_id = c.session_id where c.cycle is not null",
        model.join(", "),
        number("input_tokens"),
        number("cached_tokens"),
        number("cache_write_tokens"),
        number("output_tokens"),
        json("c.usage", "stop_reason", "text"),
        number("latency_ms"),
    )
}

fn tool_call(schema: &str) -> String {
    // A node is in each version of its unit; the first is that of the snapshot it came with.
    let of_kind = |kind: &str| {
        format!(
            "select p.session_id, p.first_seq as seq, n.unit_id, n.pre, n.id, n.cycle, n.body_id, a.text as call_id, \
             row_number() over (partition by p.session_id, n.id order by p.first_seq) as version \
             from {schema}placement p join {schema}node n on n.unit_id = p.unit_id \
             left join {schema}attr a on a.unit_id = n.unit_id and a.pre = n.pre \
             and a.name = 'data_call_id' and a.ordinal = -1 \
             where n.class = 'cb' and coalesce(n.kind, n.type_sub) = '{kind}'"
        )
    };
    let attribute = |row, name, column| attribute(schema, row, name, column);
    let content = |row: &str| {
        format!("(select max(b.text) from {schema}body b where b.body_id = {row}.body_id)")
    };
    format!(
        "with call as ({}), result as ({}) \
         select z.name as session, c.seq, c.cycle, c.id as call_node, c.call_id, {} as name, \
         {} as arguments, r.id as result_node, {} as result, {} as is_error from call c \
         join {schema}session z on z.session_id = c.session_id left join result r \
         on r.session_id = c.session_id and r.call_id = c.call_id and r.version = 1 where c.version = 1",
        of_kind("call"),
        of_kind("result"),
        attribute("c", "data_call_name", "text"),
        content("c"),
        content("r"),
        attribute("r", "data_is_error", "int"),
    )
}

fn newest_node(dialect: Dialect, schema: &str) -> String {
    let bytes = match dialect {
        Dialect::Sqlite => "length(cast(b.text as blob))",
        Dialect::DuckDb => "strlen(b.text)",
        Dialect::Postgres | Dialect::Spark => "octet_length(b.text)",
    };
    format!(
        "with newest as (select session_id, max(seq) as seq from {schema}snapshot where cycle is not null \
         group by session_id), placed as (select p.session_id, p.unit_id, case when u.kind = 'turn' then \
         row_number() over (partition by p.session_id, u.kind order by p.sibling_offset desc, \
         p.created_at_ns desc, p.creation_index desc, p.id desc) end as depth from newest s \
         join {schema}placement p on p.session_id = s.session_id and s.seq >= p.first_seq and s.seq <= p.last_seq \
         join {schema}unit u on u.unit_id = p.unit_id) \
         select z.name as session, n.id, coalesce(n.base_depth, p.depth) as depth, n.class, n.role, \
         coalesce(n.kind, n.type_sub) as kind, n.key, {} as tool, b.text, {bytes} as bytes from placed p \
         join {schema}session z on z.session_id = p.session_id join {schema}node n on n.unit_id = p.unit_id \
         left join {schema}body b on b.body_id = n.body_id where n.id is not null",
        attribute(schema, "n", "data_call_name", "text"),
    )
}

/// The value of an attribute of the node of a row.
fn attribute(schema: &str, row: &str, name: &str, column: &str) -> String {
    format!(
        "(select max(a.{column}) from {schema}attr a where a.unit_id = {row}.unit_id and a.pre = {row}.pre \
         and a.name = '{name}' and a.ordinal = -1)"
    )
}

/// A member of a JSON text; names are parted by full stops.
fn member(dialect: Dialect, column: &str, path: &str, kind: &str) -> String {
    let value = match dialect {
        Dialect::Sqlite => format!("json_extract({column}, '$.{path}')"),
        Dialect::DuckDb => format!("json_extract_string({column}, '$.{path}')"),
        Dialect::Spark => format!("get_json_object({column}, '$.{path}')"),
        Dialect::Postgres => {
            let path = path.replace('.', ",");
            let json = dialect.readable_json(column);
            format!("(cast({json} as jsonb) #>> '{{{path}}}')")
        }
    };
    match (dialect, kind) {
        (Dialect::Sqlite, _) | (_, "text") => value,
        _ => format!("cast({value} as {kind})"),
    }
}
