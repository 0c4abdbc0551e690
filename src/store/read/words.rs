//! The words of the nodes of a session, counted by the database: types, kinds, roles, keys, tags, custom attributes and
//! tools. It knows the layout alone.

use crate::store::database::sql::{Database, ResultRow, collect, int, text};
use crate::store::error::Result;

/// A word, and how many nodes of a session have it, each once however many snapshots have the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// All nodes.
    Nodes(u64),
    /// The stored nodeType, or the one that the class implies.
    Type(&'a str, u64),
    /// The name of a text header, of the tags or of a custom attribute that is not null.
    Field(&'a str, u64),
    /// A name and a value that is a text of up to 100 characters; of a list, each element.
    Text(&'a str, &'a str, u64),
    /// The same of numbers and booleans, as in JSON.
    Value(&'a str, &'a str, u64),
    /// A tool, and how many nodes call it.
    Tool(&'a str, u64),
}

/// The text headers, each with the column that has it.
const HEADERS: [(&str, &str); 3] = [
    ("kind", "coalesce(n.kind, n.type_sub)"),
    ("role", "n.role"),
    ("key", "n.key"),
];

const ATTR: &str = "join attr a on a.unit_id = n.unit_id and a.pre = n.pre";

/// What is counted besides: what it is, a name and a value; in which rows beside those of nodes; and which of them.
const OTHERS: [(&str, &str, &str); 5] = [
    ("'node' as what, '' as name, '' as value", "", "true"),
    (
        "'type' as what, '' as name, coalesce(n.node_type, n.class) as value",
        "",
        "true",
    ),
    (
        "'field' as what, a.name as name, '' as value",
        ATTR,
        "a.type <> 'null'",
    ),
    (
        "case a.type when 'text' then 'text' else 'value' end as what, a.name as name, a.text as value",
        ATTR,
        "a.text is not null and length(a.text) <= 100",
    ),
    (
        "n.kind as what, '' as name, case n.kind when 'tool' then n.key else coalesce(a.text, n.key) end as value",
        "left join attr a on a.unit_id = n.unit_id and a.pre = n.pre and a.name = 'data_call_name' \
         and a.ordinal = -1 and a.type = 'text'",
        "n.kind in ('call', 'tool')",
    ),
];

/// Gives the words of a session to `each`. Linear in the nodes of the versions of its units.
pub(crate) fn of_session(
    database: &mut dyn Database,
    session: i64,
    each: &mut dyn FnMut(Word<'_>),
) -> Result<()> {
    let mut read = |row: &dyn ResultRow| {
        let (what, name) = (text(row, 0)?, text(row, 1)?);
        let count = u64::try_from(int(row, 3)?).unwrap_or(0);
        // A call without a name is one of no tool.
        let Some(value) = row.text(2)? else {
            return Ok(());
        };
        match what {
            "node" => each(Word::Nodes(count)),
            "type" => each(Word::Type(value, count)),
            "field" => each(Word::Field(name, count)),
            "text" => each(Word::Text(name, value, count)),
            "value" => each(Word::Value(name, value, count)),
            "call" => each(Word::Tool(value, count)),
            _ => each(Word::Tool(value, 0)),
        }
        Ok(())
    };
    let mut count = |columns: &str, join: &str, holds: &str| {
        let sql = format!(
            "select what, name, value, count(*) from (select distinct n.id as id, {columns} \
             from placement p join node n on n.unit_id = p.unit_id {join} \
             where p.session_id = ?1 and n.id is not null and {holds}) as found \
             group by what, name, value"
        );
        collect(database, &sql, &[session.into()], &mut read).map(|_| ())
    };
    for (name, column) in HEADERS {
        let field = format!("'field' as what, '{name}' as name, '' as value");
        count(&field, "", &format!("{column} is not null"))?;
        let text = format!("'text' as what, '{name}' as name, {column} as value");
        count(&text, "", &format!("length({column}) <= 100"))?;
    }
    for (columns, join, holds) in OTHERS {
        count(columns, join, holds)?;
    }
    Ok(())
}
