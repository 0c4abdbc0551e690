//! What a user would write without the engine: a loop over messages, a walk over an arena, SQL.

use std::ops::Range;

use pactql::{Node, Session};
use rusqlite::{Connection, Statement, params};

/// A node, with what the questions need.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) class: String,
    pub(crate) role: String,
    pub(crate) kind: String,
    pub(crate) key: String,
    pub(crate) tool: String,
    pub(crate) content: String,
    pub(crate) ttl: Option<i64>,
    pub(crate) priority: i64,
    pub(crate) depth: Option<i64>,
    /// In the arena: the parent, and one past the last node of the subtree.
    pub(crate) parent: usize,
    pub(crate) end: usize,
}

impl Message {
    fn of(node: Node<'_>) -> Self {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let tool = node.attribute("data_call_name");
        Self {
            id: node.id().to_owned(),
            class: node.node_type().to_owned(),
            role: text(node.role()),
            kind: text(node.kind()),
            key: text(node.key()),
            tool: text(tool.as_ref().and_then(serde_json::Value::as_str)),
            content: node.text().into_owned(),
            ttl: node.ttl(),
            priority: node.priority(),
            depth: node.depth(),
            parent: 0,
            end: 0,
        }
    }

    pub(crate) fn is_block(&self) -> bool {
        self.class == "cb"
    }
}

/// The ids of nodes, in their order.
pub(crate) fn ids_of<'a>(nodes: impl IntoIterator<Item = &'a Message>) -> Vec<&'a str> {
    nodes.into_iter().map(|node| &*node.id).collect()
}

/// All nodes in document order.
pub(crate) struct Arena {
    pub(crate) nodes: Vec<Message>,
}

impl Arena {
    pub(crate) fn of(session: &Session) -> Self {
        fn add(node: Node<'_>, parent: usize, nodes: &mut Vec<Message>) {
            let at = nodes.len();
            nodes.push(Message {
                parent,
                ..Message::of(node)
            });
            node.children().for_each(|child| add(child, at, nodes));
            nodes[at].end = nodes.len();
        }
        let root = pactql::Engine::new()
            .rows(session, "@t0 ^root")
            .expect("a root");
        let mut nodes = Vec::new();
        root.nodes().for_each(|root| add(root, 0, &mut nodes));
        Self { nodes }
    }

    /// The ids of the nodes that satisfy a test, in document order.
    pub(crate) fn all(&self, test: impl Fn(&Message) -> bool) -> Vec<&str> {
        ids_of(self.nodes.iter().filter(|node| test(node)))
    }

    /// The nodes below the first one of a class.
    pub(crate) fn below(&self, class: &str) -> &[Message] {
        let at = self.nodes.iter().position(|node| node.class == class);
        let rows = at.map_or(0..0, |at| at + 1..self.nodes[at].end);
        &self.nodes[rows]
    }

    /// The places of the nodes of a class, in document order.
    pub(crate) fn of_class(&self, class: &str) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(move |&at| self.nodes[at].class == class)
    }
}

/// The blocks in document order, and where turns and regions begin.
pub(crate) struct Hand {
    pub(crate) messages: Vec<Message>,
    pub(crate) turns: Vec<Range<usize>>,
    pub(crate) turn_ids: Vec<String>,
    pub(crate) sys: Range<usize>,
    pub(crate) head: Range<usize>,
}

impl Hand {
    pub(crate) fn of(session: &Session) -> Self {
        let arena = Arena::of(session);
        let blocks = |rows: Range<usize>| {
            arena.nodes[rows]
                .iter()
                .filter(|node| node.is_block())
                .count()
        };
        let region = |class: &str| {
            let at = arena.of_class(class).next();
            at.map_or(0..0, |at| blocks(0..at)..blocks(0..arena.nodes[at].end))
        };
        let turns = arena.of_class("mt");
        let turns = turns.map(|at| blocks(0..at)..blocks(0..arena.nodes[at].end));
        Self {
            turns: turns.collect(),
            turn_ids: arena
                .of_class("mt")
                .map(|at| arena.nodes[at].id.clone())
                .collect(),
            sys: region("^sys"),
            head: region("^ah"),
            messages: arena.nodes.into_iter().filter(Message::is_block).collect(),
        }
    }

    /// The ids of the messages that satisfy a test.
    pub(crate) fn all(&self, test: impl Fn(&Message) -> bool) -> Vec<&str> {
        self.some(0..self.messages.len(), test)
    }

    pub(crate) fn some(&self, rows: Range<usize>, test: impl Fn(&Message) -> bool) -> Vec<&str> {
        ids_of(self.messages[rows].iter().filter(|message| test(message)))
    }

    /// The blocks of the newest turns.
    pub(crate) fn newest(&self, turns: usize) -> Range<usize> {
        let first = self.turns.len().saturating_sub(turns);
        match &self.turns[first..] {
            [first, .., last] => first.start..last.end,
            [only] => only.clone(),
            [] => 0..0,
        }
    }
}

/// One row a node, numbered in document order.
pub(crate) struct Table(Connection);

impl Table {
    pub(crate) fn of(arena: &Arena) -> Self {
        let connection = Connection::open_in_memory().expect("a database");
        let schema = "create table node (pre integer primary key, end integer, parent integer, class text, id text, \
             role text, kind text, key text, tool text, content text, ttl integer, priority integer, depth integer)";
        connection.execute_batch(schema).expect("a table");
        let mut insert = connection
            .prepare("insert into node values (?,?,?,?,?,?,?,?,?,?,?,?,?)")
            .expect("a statement");
        for (at, node) in arena.nodes.iter().enumerate() {
            let values = params![
                at as i64,
                node.end as i64,
                node.parent as i64,
                node.class,
                node.id,
                node.role,
                node.kind,
                node.key,
                node.tool,
                node.content,
                node.ttl,
                node.priority,
                node.depth
            ];
            insert.execute(values).expect("a row");
        }
        drop(insert);
        let indexes = "create index by_id on node (id); create index by_role on node (class, role, pre, id); \
             create index by_kind on node (class, kind, pre, id); create index by_depth on node (class, depth, pre, id); \
             create index by_tool on node (tool, pre, id); create index by_key on node (key, depth, pre, id); \
             create index by_ttl on node (ttl, pre, id); create index by_priority on node (class, priority, pre, id); \
             create index by_parent on node (parent, class, pre, id); analyze;";
        connection.execute_batch(indexes).expect("indexes");
        Self(connection)
    }

    pub(crate) fn prepare(&self, sql: &str) -> Statement<'_> {
        self.0.prepare(sql).expect("a statement")
    }
}

/// The first column of all rows.
pub(crate) fn ids(statement: &mut Statement<'_>) -> Vec<String> {
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.map(|id| id.expect("an id")).collect()
}
