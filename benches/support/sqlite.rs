//! SQLite as a careful user would set it up: one table in memory, nodes numbered in preorder
//! with the end of their subtree, depth and parent stored, a covering index for each query,
//! prepared statements.
//!
//! Ids are copied into strings, because a statement's row is only valid until its next step. Joins
//! along `.mt .mc .cb` assume that turns and containers do not nest, which saves SQLite a
//! `DISTINCT`.

use super::queries::{Query, Task};
use super::walk::{Node, NodeType, Tree};
use rusqlite::{Connection, Statement, params};
use std::hint::black_box;

/// The session in SQLite.
pub(crate) struct Database(pub(crate) Connection);

/// The table. Classes are numbers: 0 root, 1 `^sys`, 2 `^seq`, 3 `^ah`, 4 turn, 5 container,
/// 6 block.
const TABLE: &str = "
    CREATE TABLE node (
        pre INTEGER PRIMARY KEY, end INTEGER NOT NULL, parent INTEGER, level INTEGER NOT NULL,
        class INTEGER NOT NULL, depth INTEGER,
        id TEXT NOT NULL, node_type TEXT NOT NULL, role TEXT, kind TEXT,
        offset INTEGER NOT NULL, ttl INTEGER, priority INTEGER NOT NULL, cycle INTEGER NOT NULL,
        created_at_ns INTEGER NOT NULL, created_at_iso TEXT NOT NULL,
        creation_index INTEGER NOT NULL, data_tool TEXT, content TEXT
    )";

/// The covering indexes.
const INDEXES: &str = "
    CREATE UNIQUE INDEX by_id ON node (id);
    CREATE INDEX by_role ON node (class, role, pre, id);
    CREATE INDEX by_depth ON node (class, depth, pre, end);
    CREATE INDEX by_role_depth ON node (class, role, depth DESC, pre, id);
    CREATE INDEX by_kind_priority ON node (class, kind, pre, priority, id);
    CREATE INDEX by_ttl ON node (ttl, pre, id);
    CREATE INDEX by_parent ON node (parent, class, pre, offset, role, id);
    CREATE INDEX by_class ON node (class, pre, end, id);
    ANALYZE;";

/// Reads a document into a new database, indexes built.
pub(crate) fn load(bytes: &[u8]) -> Database {
    fill(&super::walk::load(bytes)).expect("SQLite takes the generated document")
}

fn fill(tree: &Tree) -> rusqlite::Result<Database> {
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
    connection.execute_batch(TABLE)?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(
            "INSERT INTO node VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)",
        )?;
        let mut next = 0;
        insert_below(&mut insert, &tree.root, None, 0, None, &mut next)?;
    }
    transaction.commit()?;
    connection.execute_batch(INDEXES)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(Database(connection))
}

/// Inserts `node` and its descendants. `next` is the next preorder number.
fn insert_below(
    insert: &mut Statement<'_>,
    node: &Node,
    parent: Option<i64>,
    level: i64,
    depth: Option<i64>,
    next: &mut i64,
) -> rusqlite::Result<i64> {
    let pre = *next;
    *next += 1;
    let (class, depth) = match node.node_type {
        NodeType::Root => (0, None),
        NodeType::Sys => (1, Some(-1)),
        NodeType::Seq => (2, None),
        NodeType::Head => (3, Some(0)),
        NodeType::Turn => (4, depth),
        NodeType::Container => (5, depth),
        NodeType::Block => (6, depth),
    };
    for (index, child) in node.children.iter().enumerate() {
        let depth = if class == 2 {
            Some((node.children.len() - index) as i64)
        } else {
            depth
        };
        insert_below(insert, child, Some(pre), level + 1, depth, next)?;
    }
    insert.execute(params![
        pre,
        *next,
        parent,
        level,
        class,
        depth,
        node.id,
        node.node_type.text(),
        node.role,
        node.kind,
        node.offset,
        node.ttl,
        node.priority,
        node.cycle,
        node.created_at_ns,
        node.created_at_iso,
        node.creation_index,
        node.data_tool,
        node.content,
    ])?;
    Ok(pre)
}

/// The statement for a query. Only [`Query::ById`] takes a parameter.
pub(crate) fn statement(query: Query) -> &'static str {
    match query {
        Query::ById => "SELECT id FROM node WHERE id = ?1",
        Query::Assistant => {
            "SELECT id FROM node INDEXED BY by_role
             WHERE class = 6 AND role = 'assistant' ORDER BY pre"
        }
        Query::LastTurn => {
            "SELECT b.id FROM node t INDEXED BY by_depth
             CROSS JOIN node c INDEXED BY by_parent ON c.parent = t.pre AND c.class = 5
             CROSS JOIN node b INDEXED BY by_parent ON b.parent = c.pre AND b.class = 6
             WHERE t.class = 4 AND t.depth = 1 AND b.role = 'assistant'"
        }
        Query::LastThree => {
            "SELECT id FROM node INDEXED BY by_role_depth
             WHERE class = 6 AND role = 'user' AND depth BETWEEN 1 AND 3
             ORDER BY depth DESC, pre"
        }
        Query::Summary => {
            "SELECT id FROM node INDEXED BY by_kind_priority
             WHERE class = 6 AND kind = 'summary' AND priority >= 8 ORDER BY pre"
        }
        Query::Ttl => "SELECT id FROM node INDEXED BY by_ttl WHERE ttl <= 1 ORDER BY pre",
        Query::HeadPre => {
            "SELECT b.id FROM node a INDEXED BY by_class
             CROSS JOIN node b INDEXED BY by_parent ON b.parent = a.pre AND b.class = 6
             WHERE a.class = 3 AND b.offset < 0"
        }
        Query::Calls => {
            "SELECT b.id FROM node s INDEXED BY by_class
             CROSS JOIN node t INDEXED BY by_class
               ON t.class = 4 AND t.pre > s.pre AND t.pre < s.end
             CROSS JOIN node c INDEXED BY by_class
               ON c.class = 5 AND c.pre > t.pre AND c.pre < t.end
             CROSS JOIN node b INDEXED BY by_kind_priority
               ON b.class = 6 AND b.kind = 'call' AND b.pre > c.pre AND b.pre < c.end
             WHERE s.class = 2"
        }
        Query::Blocks => "SELECT id FROM node INDEXED BY by_class WHERE class = 6 ORDER BY pre",
        Query::FirstBlocks => {
            "SELECT (SELECT b.id FROM node b INDEXED BY by_parent
                     WHERE b.parent = c.pre AND b.class = 6 ORDER BY b.pre LIMIT 1)
             FROM node s INDEXED BY by_class
             CROSS JOIN node t INDEXED BY by_parent ON t.parent = s.pre AND t.class = 4
             CROSS JOIN node c INDEXED BY by_parent ON c.parent = t.pre AND c.class = 5
             WHERE s.class = 2"
        }
    }
}

/// Runs a statement and returns the ids.
fn run<R>(
    statement: &mut Statement<'_>,
    id: Option<&str>,
    take: impl FnOnce(&[&str]) -> R,
) -> rusqlite::Result<R> {
    let mut rows = match id {
        Some(id) => statement.query([id])?,
        None => statement.query([])?,
    };
    let mut texts: Vec<String> = Vec::new();
    while let Some(row) = rows.next()? {
        texts.push(row.get(0)?);
    }
    let ids: Vec<&str> = texts.iter().map(|text| &**text).collect();
    Ok(take(&ids))
}

impl Database {
    /// The ids that answer `query`.
    pub(crate) fn answer(&self, query: Query, id: &str) -> Vec<String> {
        let id = (query == Query::ById).then_some(id);
        self.0
            .prepare(statement(query))
            .and_then(|mut statement| {
                run(&mut statement, id, |ids| {
                    ids.iter().map(|&id| id.to_owned()).collect()
                })
            })
            .expect("the statement is valid")
    }

    /// `query` as something to time, its statement prepared.
    pub(crate) fn task<'a>(&'a self, query: Query, id: &'a str) -> Task<'a> {
        let mut statement = self
            .0
            .prepare(statement(query))
            .expect("the statement is valid");
        let id = (query == Query::ById).then_some(id);
        Box::new(move || {
            run(&mut statement, black_box(id), |ids| black_box(ids).len())
                .expect("the statement runs")
        })
    }

    /// Counting the blocks as something to time.
    pub(crate) fn count_blocks(&self) -> Task<'_> {
        let mut statement = self
            .0
            .prepare("SELECT count(*) FROM node INDEXED BY by_class WHERE class = 6")
            .expect("the statement is valid");
        Box::new(move || {
            statement
                .query_row([], |row| row.get::<_, i64>(0))
                .map_or(0, |count| count as usize)
        })
    }

    /// Preparing a statement equivalent to a selector of about 50 characters, to be timed. It has
    /// no hints, unlike the timed queries.
    pub(crate) fn compile(&self) -> Task<'_> {
        Box::new(|| {
            let statement = self
                .0
                .prepare(black_box(
                    "SELECT b.id FROM node t
                     JOIN node c ON c.parent = t.pre JOIN node b ON b.parent = c.pre
                     WHERE t.class = 4 AND t.depth = 1 AND c.class = 5
                       AND b.class = 6 AND b.role = 'assistant' ORDER BY b.pre",
                ))
                .expect("the statement is valid");
            black_box(statement.column_count())
        })
    }

    /// Bytes of the pages in use, contents included.
    pub(crate) fn bytes(&self) -> usize {
        let pragma = |name: &str| {
            self.0
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .unwrap_or(0) as usize
        };
        pragma("page_count") * pragma("page_size")
    }
}
