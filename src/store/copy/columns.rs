//! The columns of the tables of a copy: those of the store, and some beside them.
//!
//! This file must not know how they are written.

use super::layout::{TABLES, Table};
use crate::store::layout::schema::{self, Type};

/// Columns of the store that a copy does not have: sums over rows that differ in it, and counters.
const WITHOUT: &[(&str, &str)] = &[
    ("format", "check_sum"),
    ("session", "changed"),
    ("session", "check_sum"),
    ("session", "runtime_sum"),
    ("snapshot", "check_sum"),
    ("attempt", "check_sum"),
    ("pin", "check_sum"),
    ("retired", "check_sum"),
];

/// A column: its name and its type.
pub(crate) type Column = (&'static str, Type);

impl Table {
    /// The columns of its files, in order.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let (before, after): (&[Column], &[Column]) = match self.name {
            "session" | "snapshot" => (&[], &[("bucket", Type::Int)]),
            "node" => (
                &[("session_id", Type::Int)],
                &[("content", Type::Text), ("content_json", Type::Bool)],
            ),
            "unit" | "attr" => (&[("session_id", Type::Int)], &[]),
            _ => (&[], &[]),
        };
        let stored = schema::TABLES.iter().find(|table| table.name == self.name);
        let stored = stored.into_iter().flat_map(schema::Table::columns);
        let stored = stored
            .filter(|column| !WITHOUT.contains(&(self.name, column.name)))
            .map(|column| match column.kind {
                Type::Id => (column.name, Type::Int),
                kind => (column.name, kind),
            });
        let before = before.iter().copied();
        before.chain(stored).chain(after.iter().copied()).collect()
    }
}

/// The table of a name, which is one of them.
pub(crate) fn table(name: &str) -> &'static Table {
    let found = TABLES.iter().find(|table| table.name == name);
    found.unwrap_or(&TABLES[0])
}
