//! A whole statement: the steps of every group, their union, order and window, and what is shown.

#[cfg(feature = "store")]
use crate::query::ir::{Chain, PickOrTest, QueryStep, RowOrder};
use crate::query::ir::{RangeAnswer, SelectorQuery};
use crate::support::diag::Error;

use super::dialect::Dialect;
use super::error::Refused;
use super::inner::reads_order;
use super::listed::{Lister, SharedLists};
use super::order::Arrangement;
use super::predicate::NeededRows;
#[cfg(feature = "store")]
use super::predicate::Predicates;
use super::ranges;
use super::steps::StepsWriter;
use super::tables::{Among, Tables, Wanted};
#[cfg(feature = "store")]
use super::words::any;
use super::words::{CommonTables, SelectQuery};
#[cfg(feature = "store")]
use std::borrow::Cow;

/// What the rows of a [`Statement`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Nodes: `session`, `seq`, `snapshot` (the cycle; null for a working state without one), `id`, `ord`
    /// (the position in the session's result, from 1).
    Nodes,
    /// What changed between snapshots: `session`, `newer` and `older` (seqs), `change` (`added`, `removed`
    /// or `changed`), `id`, `ord`.
    Changes,
}

impl Shape {
    /// The names of the columns, in order.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Nodes => &["session", "seq", "snapshot", "id", "ord"],
            Self::Changes => &["session", "newer", "older", "change", "id", "ord"],
        }
    }
}

/// A selector as one statement (STORE §5). Its rows are ordered by session and `ord`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    text: String,
    shape: Shape,
}

impl Statement {
    /// The text, over several lines, without a semicolon.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What its rows are.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

/// Where a statement looks, and for which sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The sessions whose name matches, where `*` is any text, also with `/`; empty for all.
    pub sessions: String,
    /// The schema of the tables; empty for the one that names are looked up in.
    pub schema: String,
}

/// The statement of a query, over all sessions of the tables that names are looked up in.
///
/// # Errors
/// `E_SQL` for what the dialect cannot say, with the construct and the reason.
pub fn compile(query: &SelectorQuery, dialect: Dialect) -> Result<Statement, Error> {
    compile_with(query, dialect, &Options::default())
}

/// The statement of a query. Linear in the query.
///
/// # Errors
/// `E_SQL` for what the dialect cannot say, with the construct and the reason.
pub fn compile_with(
    query: &SelectorQuery,
    dialect: Dialect,
    options: &Options,
) -> Result<Statement, Error> {
    let built =
        check(dialect, options).and_then(|()| build(query, dialect, options, None, Wanted::Rows));
    built.map_err(|refused| refused.into_error(query, dialect))
}

/// The statement of a query whose rows have less: the name of the session and the id, or how many there are. Its rows
/// are in byte order of names, and those of a session in the order of the result; a session without any has
/// none.
/// `None` if the query is not one of nodes, or blocks are wanted of several snapshots or of a page of the result.
///
/// # Errors
/// As [`compile_with`].
#[cfg(feature = "store")]
pub(crate) fn compile_columns(
    query: &SelectorQuery,
    dialect: Dialect,
    options: &Options,
    among: Option<Among>,
    wanted: Wanted,
) -> Result<Option<String>, Error> {
    let lists = SharedLists::from_query(query);
    if query.is_none() || lists == SharedLists::Each {
        return Ok(None);
    }
    let mut query = Cow::Borrowed(query);
    if wanted == Wanted::Blocks {
        // A block counts once in each snapshot, wherever its match is in a list of the whole result.
        if lists != SharedLists::One || query.controls.unique || query.controls.limit.is_some() {
            return Ok(None);
        }
        query.to_mut().controls.order = RowOrder::Pre;
    }
    let query = &*query;
    let built = check(dialect, options);
    let built = built.and_then(|()| build(query, dialect, options, among, wanted));
    let built = built.map_err(|refused| refused.into_error(query, dialect))?;
    Ok(Some(built.text))
}

/// A condition on a row `b` of `body`, which a text of every session holds in which something is found: that of the
/// first test of a content in each group. `None` where a group has none, or one that holds without a content.
#[cfg(feature = "store")]
pub(crate) fn required_text(query: &SelectorQuery, dialect: Dialect) -> Option<String> {
    let of_chain = |chain: &Chain| {
        let of_steps = chain.steps.iter().filter_map(|(_, step)| match step {
            QueryStep::Node(step) => Some(step.tests.iter().chain(step.tail.iter().filter_map(
                |tail| match tail {
                    PickOrTest::Test(test) => Some(test),
                    _ => None,
                },
            ))),
            QueryStep::Zone(_) => None,
        });
        let mut tests = of_steps.flatten().chain(&query.filters);
        tests.find_map(|test| Predicates::required_text(test, dialect))
    };
    let chains = query.chains.iter().map(of_chain);
    chains.collect::<Option<Vec<_>>>().map(any)
}

/// Refuses settings that the dialect cannot say.
fn check(dialect: Dialect, options: &Options) -> Result<(), Refused> {
    for (what, text) in [
        ("the schema", &options.schema),
        ("the pattern of names", &options.sessions),
    ] {
        if text.contains('\0') {
            return Err(Refused::setting(
                what,
                "no statement has a text with U+0000",
            ));
        }
    }
    if dialect == Dialect::Spark && options.schema.contains("${") {
        return Err(Refused::setting(
            "the schema",
            "Spark puts a setting in the place of `${name}`, also in a name",
        ));
    }
    Ok(())
}

/// The tables that a statement of SQLite may join, less than the 1,000 that it allows (`SQLITE_MAX_EXPR_DEPTH`).
const TABLES: usize = 960;

fn build(
    query: &SelectorQuery,
    dialect: Dialect,
    options: &Options,
    among: Option<Among>,
    wanted: Wanted,
) -> Result<Statement, Refused> {
    let schema = match &*options.schema {
        "" => String::new(),
        name => format!("{}.", dialect.name_of(name)),
    };
    let lists = SharedLists::from_query(query);
    let tables = Tables {
        dialect,
        schema,
        pattern: options.sessions.clone(),
        among,
        wanted,
        compares: lists == SharedLists::Each,
        places: query.chains.iter().any(reads_order),
        once: false,
    };
    let shape = match lists {
        SharedLists::Each => Shape::Changes,
        _ => Shape::Nodes,
    };
    let mut text = dialect.comment(&query.canonical_text());
    text.push('\n');
    if query.is_none() {
        let session = tables.table("session");
        let columns = shape.columns().iter().map(|name| match *name {
            "session" | "change" | "id" => format!("name as {name}"),
            name => format!("session_id as {name}"),
        });
        let columns: Vec<String> = columns.collect();
        let columns = columns.join(", ");
        text.push_str(&format!("select {columns}\nfrom {session}\nwhere false"));
        return Ok(Statement { text, shape });
    }

    // Where the answer of a unit does not depend on the snapshot, each version of it is queried once.
    let mut once = None;
    if lists != SharedLists::One && !tables.places && can_be_asked_once(query, lists) {
        let tables = Tables {
            once: true,
            ..tables.clone()
        };
        once = Some(write(query, &tables, lists)?).filter(|(.., exact)| *exact);
    }
    let (with, end, _) = match once {
        Some(done) => done,
        None => write(query, &tables, lists)?,
    };
    if dialect == Dialect::Sqlite && with.tables(&end) > TABLES {
        return Err(Refused::whole(
            "a selector of this many groups and steps",
            "a statement joins at most 1,000 tables there",
        ));
    }
    let body = format!("{with}\n{end}");
    for function in ["pactql_search(text, pattern)", "pactql_bytes(text, json)"] {
        let name = function.split('(').next().unwrap_or_default();
        if dialect == Dialect::Sqlite && body.contains(&format!("{name}(")) {
            text.push_str(&format!(
                "-- {function} is a function that `pactql select --via sql` brings; sqlite3 has none\n"
            ));
        }
    }
    text.push_str(&body);
    Ok(Statement { text, shape })
}

/// Whether what is queried of a node may not depend on the snapshot, as far as controls and picks tell.
fn can_be_asked_once(query: &SelectorQuery, lists: SharedLists) -> bool {
    let mut steps = query.chains.iter().flat_map(|chain| &chain.steps);
    let picked = steps.any(|(_, step)| step.picks());
    let shaped = query.controls.unique || query.controls.limit.is_some();
    let each = match lists {
        SharedLists::Each => !shaped && query.controls.mode == RangeAnswer::Pairwise,
        _ => true,
    };
    !picked && each && Arrangement::from_query(query).is_fixed()
}

/// The expressions and the end of a statement; and whether it is right, if units are queried once.
fn write(
    query: &SelectorQuery,
    tables: &Tables,
    lists: SharedLists,
) -> Result<(CommonTables, SelectQuery, bool), Refused> {
    let mut with = CommonTables::default();
    let mut steps = CommonTables::default();
    let mut needs = NeededRows::default();
    tables.asked(query, &mut with);
    tables.placed(&mut with);
    let mut ends = Vec::new();
    for (index, chain) in query.chains.iter().enumerate() {
        let prefix = match query.chains.len() {
            1 => "step_".to_owned(),
            _ => format!("group_{}_step_", index + 1),
        };
        let mut chains = StepsWriter {
            tables,
            with: &mut steps,
            needs: &mut needs,
            prefix,
        };
        ends.push(chains.chain(chain)?);
    }
    let found = found(ends, tables, &mut steps);
    let end = if tables.once && lists == SharedLists::Each {
        ranges::changes_of_units(query, tables, &found, &mut needs, &mut steps)?
    } else {
        let (listed, order) = Lister {
            query,
            tables,
            lists,
            needs: &mut needs,
            with: &mut steps,
        }
        .list(&found)?;
        match lists {
            SharedLists::Each => ranges::changes(query, tables, &listed, &mut steps),
            _ => match tables.wanted {
                Wanted::Rows => nodes(tables, &listed),
                Wanted::Ids => SelectQuery::new("r.name as session, r.id")
                    .from(format!("{listed} r"))
                    .end(format!("order by r.name, {order}")),
                Wanted::Counts => SelectQuery::new("r.name as session, count(*) as found")
                    .from(format!("{listed} r"))
                    .end("group by r.name")
                    .end("order by r.name"),
                Wanted::Blocks => {
                    blocks(tables, &listed).end(format!("order by r.name, {order}, n.pre"))
                }
            },
        }
    };
    tables.extras(needs, &mut with);
    with.append(steps);
    let with = tables.chosen(needs, with);
    Ok((with, end, needs.is_fixed()))
}

/// The matches of all groups, each once. Returns their name.
fn found(ends: Vec<String>, tables: &Tables, with: &mut CommonTables) -> String {
    if let [one] = &ends[..] {
        return one.clone();
    }
    let columns = tables.handed_on();
    let ends = ends.into_iter();
    let selects = ends.map(|end| SelectQuery::new(&*columns).from(end));
    with.add_union("found", selects.collect());
    "found".to_owned()
}

fn nodes(tables: &Tables, listed: &str) -> SelectQuery {
    let (session, snapshot) = (tables.table("session"), tables.table("snapshot"));
    let snapshot = format!("join {snapshot} s on s.session_id = r.session_id and s.seq = r.seq");
    let session = format!("join {session} z on z.session_id = r.session_id");
    SelectQuery::new("z.name as session, r.seq, s.cycle as snapshot, r.id, r.ord")
        .from(format!("{listed} r"))
        .from(tables.ordered(&snapshot))
        .from(tables.ordered(&session))
        .end("order by session, ord")
}

/// The columns of [`Wanted::Blocks`], in order.
const BLOCK_COLUMNS: [&str; 17] = [
    "r.session_id",
    "r.name",
    "r.rank",
    "r.top",
    "r.unit_id",
    "n.pre",
    "n.class",
    "n.id",
    "n.role",
    "n.kind",
    "n.key",
    "n.extra",
    "b.json",
    "b.text",
    "data_verbatim",
    "data_call_name",
    "data_call_id",
];

/// The bit of `node.present` that says that rows of `attr` belong to the node.
pub(crate) const HAS_ATTRS: i64 = 1 << 12;

/// The blocks in what was found. A custom attribute is its type, a colon and its text.
fn blocks(tables: &Tables, listed: &str) -> SelectQuery {
    let attr = tables.table("attr");
    let columns = BLOCK_COLUMNS.map(|column| {
        let kinds = match column {
            "data_verbatim" => "",
            "data_call_name" | "data_call_id" => " and n.kind in ('call', 'result', 'error')",
            column => return column.to_owned(),
        };
        format!(
            "case when (n.present & {HAS_ATTRS}) <> 0{kinds} then (select a.type || ':' || coalesce(a.text, '') \
             from {attr} a where a.unit_id = n.unit_id and a.pre = n.pre and a.name = '{column}' \
             and a.ordinal = -1) end as {column}"
        )
    });
    let inside = "n.pre >= r.pre and n.pre < r.pre_end and n.class in ('cb', '^root', '^seq')";
    let node = tables.join_node("n", "r", "r.unit_id", inside);
    let body = tables.table("body");
    SelectQuery::new(columns.join(", "))
        .from(format!("{listed} r"))
        .from(tables.ordered(&node))
        .from(format!("left join {body} b on b.body_id = n.body_id"))
}
