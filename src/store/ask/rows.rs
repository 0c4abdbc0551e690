//! Rows of the statement that a selector compiles to (STORE §5).

use crate::query::sql::{Dialect, Shape, Statement};
use crate::store::Store;
use crate::store::ask::StoreSelection;
use crate::store::ask::candidate::misread;
use crate::store::database::sql::{ResultRow, int, text};
use crate::store::error::StoreError;
use crate::store::read::catalog::Glob;
use crate::support::diag::Error;

/// A row of the statement of a selector. See [`StoreSelection::rows`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum SqlRow {
    /// A node.
    Node {
        /// The name of the session.
        session: String,
        /// The number of the snapshot in its session.
        seq: i64,
        /// The cycle of the snapshot; none for a working state without one.
        snapshot: Option<i64>,
        /// The id of the node.
        id: String,
        /// The position in the result of the session, from 1.
        ord: i64,
    },
    /// What changed from one snapshot to another.
    Change {
        /// The name of the session.
        session: String,
        /// The number of the newer snapshot.
        newer: i64,
        /// The number of the older snapshot.
        older: i64,
        /// `added`, `removed` or `changed`.
        change: String,
        /// The id of the node.
        id: String,
        /// The position in the result of the session, from 1.
        ord: i64,
    },
}

impl Store {
    /// The dialect of the database.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        if self.core.home.is_file() {
            Dialect::Sqlite
        } else {
            Dialect::Postgres
        }
    }
}

impl StoreSelection<'_> {
    /// The statement of the selector over these sessions, for this store.
    ///
    /// # Errors
    /// `E_SQL` for what the dialect cannot say.
    pub fn statement(&self) -> Result<Statement, Error> {
        self.prepared.sql(self.store.dialect(), &self.sql_options())
    }

    /// Runs the selector as one statement in the database, and calls `each` with its rows: those of
    /// [`StoreSelection::answers`], by session in byte order of names. The sessions themselves are not opened, so
    /// memory does not depend on them; what the database needs for the statement is its own. A session
    /// without the snapshot that the selector names has no rows.
    ///
    /// ```
    /// use pactql::{Context, Message, Store};
    /// # let path = std::env::temp_dir().join(format!("pactql-sql-{}.db", std::process::id()));
    /// let store = Store::open(&path)?;
    /// let mut context = store.write("support-42")?;
    /// context.append(Message::user("Where is my refund?"))?;
    /// context.commit()?;
    /// let mut rows = 0;
    /// store.select("@t0 .cb[role='user']")?.rows(|_| rows += 1)?;
    /// assert_eq!(rows, 1);
    /// # drop(context);
    /// # drop(store);
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `E_SQL` for what the dialect cannot say, and if a session has U+0000 in a text that the selector compares; those of
    /// the database.
    pub fn rows(&self, each: impl FnMut(SqlRow)) -> Result<(), Error> {
        let statement = self.statement()?;
        let (query, glob) = (self.prepared.query(), Glob::new(&self.glob));
        let dialect = self.store.dialect();
        let misread = self
            .store
            .core
            .read(|database| misread(database, query, dialect, &glob))?;
        if let Some(misread) = misread {
            return Err(misread.refused().into());
        }
        self.store.run_statement(&statement, each)
    }
}

impl Store {
    /// Runs a statement.
    ///
    /// # Errors
    /// Those of the database.
    #[doc(hidden)]
    pub fn run_statement(
        &self,
        statement: &Statement,
        mut each: impl FnMut(SqlRow),
    ) -> Result<(), Error> {
        let shape = statement.shape();
        self.core.read(|database| {
            database.query(statement.text(), &[], &mut |row| {
                each(read(row, shape)?);
                Ok(())
            })
        })?;
        Ok(())
    }
}

fn read(row: &dyn ResultRow, shape: Shape) -> Result<SqlRow, StoreError> {
    Ok(match shape {
        Shape::Nodes => SqlRow::Node {
            session: text(row, 0)?.to_owned(),
            seq: int(row, 1)?,
            snapshot: row.int(2)?,
            id: text(row, 3)?.to_owned(),
            ord: int(row, 4)?,
        },
        Shape::Changes => SqlRow::Change {
            session: text(row, 0)?.to_owned(),
            newer: int(row, 1)?,
            older: int(row, 2)?,
            change: text(row, 3)?.to_owned(),
            id: text(row, 4)?.to_owned(),
            ord: int(row, 5)?,
        },
    })
}
