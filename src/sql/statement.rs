//! A whole statement: the steps of every group, their union, order and window, and what is shown.

use crate::diag::Error;
use crate::ir::{Mode, Query, Time};

use super::dialect::Dialect;
use super::error::Refused;
use super::order::{Arrangement, add_paths, window};
use super::predicate::{Needs, PARENT, Predicates, TTL};
use super::ranges;
use super::steps::Steps;
use super::tables::Tables;
use super::words::{Select, With};

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
    #[must_use]
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
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What its rows are.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

/// Where a statement looks, and for which sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The sessions whose name matches, where `*` is any text without `/`; empty for all.
    pub sessions: String,
    /// The schema of the tables; empty for the one that names are looked up in.
    pub schema: String,
}

/// The statement of a query, over all sessions of the tables that names are looked up in.
///
/// # Errors
/// `E_SQL` for what the dialect cannot say, with the construct and the reason.
pub fn compile(query: &Query, dialect: Dialect) -> Result<Statement, Error> {
    compile_with(query, dialect, &Options::default())
}

/// The statement of a query. Linear in the query.
///
/// # Errors
/// `E_SQL` for what the dialect cannot say, with the construct and the reason.
pub fn compile_with(
    query: &Query,
    dialect: Dialect,
    options: &Options,
) -> Result<Statement, Error> {
    build(query, dialect, options).map_err(|refused| refused.into_error(query, dialect))
}

/// Which snapshots of a session share one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    /// The rows of one snapshot.
    One,
    /// The rows of several, each id once, at its newest match.
    Merged,
    /// As merged, of the ids whose newest version matches.
    Latest,
    /// The rows of each snapshot by itself, to compare.
    Each,
}

impl Lists {
    fn of(query: &Query) -> Self {
        match (query.time, query.controls.mode) {
            (Time::Working | Time::At(_), _) => Self::One,
            (Time::All, _) | (_, Mode::Union) => Self::Merged,
            (_, Mode::Latest) => Self::Latest,
            (_, Mode::Pairwise | Mode::Reduce) => Self::Each,
        }
    }

    /// What a list belongs to.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Each => "session_id, seq",
            Self::One | Self::Merged | Self::Latest => "session_id",
        }
    }
}

fn build(query: &Query, dialect: Dialect, options: &Options) -> Result<Statement, Refused> {
    let schema = match options.schema.as_str() {
        "" => String::new(),
        name => format!("{}.", dialect.name_of(name)),
    };
    for text in [&options.schema, &options.sessions] {
        if text.contains('\0') {
            return Err(Refused::new(text, "no statement has a text with U+0000"));
        }
    }
    let tables = Tables {
        dialect,
        schema,
        sessions: options.sessions.clone(),
    };
    let lists = Lists::of(query);
    let shape = match lists {
        Lists::Each => Shape::Changes,
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

    let mut with = With::default();
    let mut steps = With::default();
    let mut needs = Needs::default();
    tables.asked(query, &mut with);
    tables.placed(&mut with);
    let mut ends = Vec::new();
    for (index, chain) in query.chains.iter().enumerate() {
        let prefix = match query.chains.len() {
            1 => "step_".to_owned(),
            _ => format!("group_{}_step_", index + 1),
        };
        let mut chains = Steps {
            tables: &tables,
            with: &mut steps,
            needs: &mut needs,
            prefix,
        };
        ends.push(chains.chain(chain)?);
    }
    let found = found(ends, &mut steps);
    let listed = list(query, &tables, lists, &found, &mut needs, &mut steps)?;
    let end = match lists {
        Lists::Each => ranges::changes(query, &tables, &listed, &mut steps),
        _ => nodes(&tables, &listed),
    };
    tables.extras(needs, &mut with);
    with.append(steps);
    if dialect == Dialect::Sqlite && format!("{with}").contains("pactql_search(") {
        text.push_str(
            "-- pactql_search(text, pattern) is a function that `pactql select --via sql` brings; \
             sqlite3 has none\n",
        );
    }
    text.push_str(&format!("{with}\n{end}"));
    Ok(Statement { text, shape })
}

/// The matches of all groups, each once. Returns their name.
fn found(ends: Vec<String>, with: &mut With) -> String {
    if let [one] = &ends[..] {
        return one.clone();
    }
    let selects = ends.into_iter().map(|end| Select {
        columns: ["session_id", "seq", "unit_id", "pre"]
            .map(str::to_owned)
            .to_vec(),
        from: vec![end],
        ..Select::default()
    });
    with.add_union("found", selects.collect());
    "found".to_owned()
}

/// Adds the final rows: filtered, in order, unique, and those of the window. Returns their name.
fn list(
    query: &Query,
    tables: &Tables,
    lists: Lists,
    found: &str,
    needs: &mut Needs,
    with: &mut With,
) -> Result<String, Refused> {
    let arrangement = Arrangement::of(query);
    let mut predicates = Predicates::new(tables.dialect, false);
    predicates.needs = arrangement.needs();
    let mut select = Select {
        columns: ["f.session_id", "f.seq", "n.id", "n.key"]
            .map(str::to_owned)
            .to_vec(),
        from: vec![
            format!("{found} f"),
            tables.ordered(&tables.join_node("n", "f", "f.unit_id", "n.pre = f.pre")),
            tables.ordered(
                "join placed o on o.session_id = f.session_id and o.seq = f.seq \
                 and o.unit_id = f.unit_id",
            ),
        ],
        filters: vec!["n.id is not null".to_owned()],
        ..Select::default()
    };
    for test in &query.filters {
        let condition = predicates.test(test)?;
        select.add_filter(condition);
    }
    if arrangement == Arrangement::Path {
        add_paths(tables, found, with);
        select.from.push(
            "join paths x on x.session_id = f.session_id and x.seq = f.seq \
             and x.unit_id = f.unit_id and x.pre = f.pre"
                .to_owned(),
        );
    }
    if lists == Lists::Each {
        predicates.needs.parent = true;
        predicates.needs.cycle = true;
        select.columns.extend([
            "n.version".to_owned(),
            format!("{PARENT} as parent"),
            format!("{TTL} as ttl"),
        ]);
    }
    let mut order = Vec::new();
    for (index, key) in arrangement.keys().into_iter().enumerate() {
        let name = format!("k{}", index + 1);
        match key.strip_suffix(" desc") {
            Some(key) => {
                select.columns.push(format!("{key} as {name}"));
                order.push(format!("{name} desc"));
            }
            None => {
                select.columns.push(format!("{key} as {name}"));
                order.push(name);
            }
        }
    }
    if matches!(lists, Lists::Merged | Lists::Latest) {
        select.columns.push(
            "row_number() over (partition by f.session_id, n.id order by f.seq desc) as age"
                .to_owned(),
        );
        order.insert(0, "seq desc".to_owned());
    }
    select.from.extend(tables.joins(predicates.needs, "f"));
    needs.add(predicates.needs);
    with.add("matched", select);
    let mut from = vec!["matched m".to_owned()];
    let mut filters = Vec::new();
    if matches!(lists, Lists::Merged | Lists::Latest) {
        filters.push("m.age = 1".to_owned());
    }
    if lists == Lists::Latest {
        add_present(tables, with);
        from.push(
            "join present r on r.session_id = m.session_id and r.id = m.id and r.seq = m.seq"
                .to_owned(),
        );
    }
    let number = |order: &str| {
        format!(
            "row_number() over (partition by {} order by {order}) as ord",
            lists
                .key()
                .split(", ")
                .map(|c| format!("m.{c}"))
                .collect::<Vec<_>>()
                .join(", ")
        )
    };
    let mut columns: Vec<String> = ["m.session_id", "m.seq", "m.id", "m.key"]
        .map(str::to_owned)
        .to_vec();
    if lists == Lists::Each {
        columns.extend(["m.version", "m.parent", "m.ttl"].map(str::to_owned));
    }
    let prefixed = order
        .iter()
        .map(|key| format!("m.{key}"))
        .collect::<Vec<_>>()
        .join(", ");
    let mut ranked = columns.clone();
    ranked.push(number(&prefixed));
    with.add(
        "listed",
        Select {
            columns: ranked,
            from,
            filters,
            ..Select::default()
        },
    );
    let mut name = "listed".to_owned();
    if query.controls.unique {
        let mut first = columns.clone();
        first.push("m.ord".to_owned());
        first.push(format!(
            "row_number() over (partition by {}, case when m.key is null then 0 else 1 end, \
             coalesce(m.key, m.id) order by m.ord) as copy",
            lists
                .key()
                .split(", ")
                .map(|c| format!("m.{c}"))
                .collect::<Vec<_>>()
                .join(", ")
        ));
        with.add(
            "copies",
            Select {
                columns: first,
                from: vec![format!("{name} m")],
                ..Select::default()
            },
        );
        let mut again = columns.clone();
        again.push(number("m.ord"));
        with.add(
            "uniques",
            Select {
                columns: again,
                from: vec!["copies m".to_owned()],
                filters: vec!["m.copy = 1".to_owned()],
                ..Select::default()
            },
        );
        name = "uniques".to_owned();
    }
    if let Some((first, kept)) = window(&query.controls)? {
        let mut columns = columns;
        columns.push(match first {
            1 => "m.ord".to_owned(),
            first => format!("m.ord - {} as ord", first - 1),
        });
        with.add(
            "page",
            Select {
                columns,
                from: vec![format!("{name} m")],
                filters: vec![kept],
                ..Select::default()
            },
        );
        name = "page".to_owned();
    }
    Ok(name)
}

/// Adds `present`: the newest of the snapshots that has each matched id.
fn add_present(tables: &Tables, with: &mut With) {
    with.add(
        "present",
        Select {
            columns: ["m.session_id", "m.id", "max(o.seq) as seq"]
                .map(str::to_owned)
                .to_vec(),
            from: vec![
                "(select distinct session_id, id from matched) m".to_owned(),
                "join placed o on o.session_id = m.session_id".to_owned(),
                tables.join_node("n", "o", "o.unit_id", "n.id = m.id"),
            ],
            end: vec!["group by m.session_id, m.id".to_owned()],
            ..Select::default()
        },
    );
}

/// The end of a statement whose rows are nodes.
fn nodes(tables: &Tables, listed: &str) -> Select {
    let session = tables.table("session");
    Select {
        columns: [
            "z.name as session",
            "r.seq",
            "c.shown as snapshot",
            "r.id",
            "r.ord",
        ]
        .map(str::to_owned)
        .to_vec(),
        from: vec![
            format!("{listed} r"),
            "join asked c on c.session_id = r.session_id and c.seq = r.seq".to_owned(),
            format!("join {session} z on z.session_id = r.session_id"),
        ],
        end: vec!["order by session, ord".to_owned()],
        ..Select::default()
    }
}
