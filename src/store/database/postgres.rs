//! [`Database`] in a schema of a PostgreSQL database.
//!
//! Statements come in the spelling of SQLite's parameters and are respelled once. A connection that was
//! lost between transactions is made again; inside one it is an error. This file knows no table, except to
//! copy all of them.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use hashbrown::HashMap;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::{CancelToken, Config, NoTls, SimpleQueryMessage, Statement};

use crate::store::database::new_file::into_new_file;
use crate::store::database::postgres_client::{
    ClientLink, PostgresRow, TextRow, apart, in_runtime, note_trip, parameter, respelled, spell_out,
};
use crate::store::database::sql::{
    Backend, Begin, Database, Each, EachOfRuns, Savepoint, SqlValue, one_int,
};
use crate::store::database::sqlite::{FileAccess, Sqlite};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{self, TABLES};
use crate::store::texts::tables;
use crate::support::cancel::{here, stopped};

/// The most statements that stay prepared; the store has fewer.
const STATEMENTS: usize = 256;

/// Where commits are announced; the text of an announcement is the schema.
const CHANNEL: &str = "pactql";

const SCHEMA: &str = "pactql";

#[derive(Clone)]
pub(crate) struct ServerAddress {
    config: Config,
    schema: String,
    /// Without a password.
    shown: String,
}

impl ServerAddress {
    /// Understands `postgres://USER@HOST:PORT/DATABASE?schema=NAME`, with other parameters of the client library. An error
    /// does not say the address: a password may be in it.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let refused = |why: String| Err(StoreError::Refused(why));
        let (base, parameters) = url.split_once('?').unwrap_or((url, ""));
        let parameters = parameters.split('&').filter(|part| !part.is_empty());
        let (named, rest): (Vec<&str>, Vec<&str>) =
            parameters.partition(|part| part.starts_with("schema="));
        let named = named.last().and_then(|part| part.strip_prefix("schema="));
        let schema = named.unwrap_or(SCHEMA).to_owned();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let first = schema.bytes().next();
        if !schema.bytes().all(plain)
            || schema.len() > 63
            || first.is_none_or(|byte| byte.is_ascii_digit())
            || schema.starts_with("pg_")
        {
            return refused(format!(
                "the schema {schema:?} cannot be used; give a name of lower-case letters, digits and `_`"
            ));
        }
        let whole = if rest.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", rest.join("&"))
        };
        let Ok(mut config) = whole.parse::<Config>() else {
            return refused(
                "the address of the PostgreSQL server cannot be read; write \
                 `postgres://USER@HOST:PORT/DATABASE?schema=NAME`"
                    .to_owned(),
            );
        };
        if config.get_application_name().is_none() {
            config.application_name("pactql");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        let (scheme, place) = base.split_once("://").unwrap_or(("postgres", base));
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        let named = if schema == SCHEMA {
            String::new()
        } else {
            format!("?schema={schema}")
        };
        Ok(Self {
            config,
            shown: format!("{scheme}://{place}{named}"),
            schema,
        })
    }
}

/// Without user and password.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

pub(crate) struct Postgres {
    client: ClientLink,
    address: ServerAddress,
    access: FileAccess,
    busy: Duration,
    statements: HashMap<Box<str>, Statement>,
    state: Option<OpenTransaction>,
    /// Inserts of the transaction that were not sent: sent alone, each would wait for its answer.
    later: String,
    /// The number of the server's process for this connection.
    own: i32,
    /// How many commits of others were announced, and connections made.
    version: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct OpenTransaction {
    /// It has sent a statement that may change something.
    wrote: bool,
    /// A statement failed: the server refuses all until the savepoint or the whole is rolled back.
    failed: bool,
}

impl Postgres {
    /// With [`FileAccess::Create`] makes a schema that is missing; else that is [`StoreError::Missing`]. Whether it is a store
    /// is not looked at.
    pub(crate) fn open(
        address: &ServerAddress,
        access: FileAccess,
        busy: Duration,
    ) -> Result<Self> {
        let client = connect(address, access, busy)?;
        let mut made = Self {
            client,
            address: address.clone(),
            access,
            busy,
            statements: HashMap::new(),
            state: None,
            later: String::new(),
            own: 0,
            version: 0,
        };
        made.listen()?;
        let schema = &address.schema;
        let has = "select 1 from pg_namespace where nspname = ?1";
        if one_int(&mut made, has, &[schema.as_str().into()])?.is_some() {
            return Ok(made);
        }
        if access != FileAccess::Create {
            return Err(StoreError::Missing(address.to_string().into()));
        }
        // If two connections make it at the same time, one fails despite `if not exists`.
        made.begin(Begin::Alone)?;
        let create = format!("create schema if not exists {schema}");
        made.execute(&create, &[])?;
        made.commit()?;
        Ok(made)
    }

    /// Asks the server to announce commits, and for the number of its process.
    fn listen(&mut self) -> Result<()> {
        let asked = (|| {
            self.client.batch_execute(&format!("listen {CHANNEL}"))?;
            let ask = "select pg_backend_pid()";
            let row = self.client.with(|client| client.query_one(ask, &[]))?;
            row.try_get(0)
        })();
        self.own = asked.map_err(|error| said(&self.address, &error))?;
        self.version += 1;
        Ok(())
    }

    fn reconnect(&mut self) -> Result<()> {
        self.client = connect(&self.address, self.access, self.busy)?;
        self.statements.clear();
        self.state = None;
        self.listen()
    }

    /// A connection that was lost since the last transaction is made again, once.
    fn start(&mut self, sql: &str) -> Result<()> {
        if self.client.is_closed() {
            self.reconnect()?;
        }
        let mut begun = self.client.batch_execute(sql);
        if begun.is_err() && self.client.is_closed() {
            self.reconnect()?;
            begun = self.client.batch_execute(sql);
        }
        if let Err(error) = begun {
            // The first of several statements may have begun it.
            let _ = self.client.batch_execute("rollback");
            return Err(said(&self.address, &error));
        }
        self.state = Some(OpenTransaction::default());
        Ok(())
    }

    /// Returns the number of rows that were changed; the outer error is what the server said.
    fn run(
        &mut self,
        sql: &str,
        values: &[SqlValue<'_>],
        each: Each<'_>,
    ) -> Result<Result<u64>, postgres::Error> {
        let Some(client) = &self.client.0 else {
            return Ok(Ok(0));
        };
        // Also while it is parsed: a table may be locked, and a plan may take long.
        watched(client.cancel_token(), || {
            self.run_unwatched(sql, values, each)
        })
    }

    fn run_unwatched(
        &mut self,
        sql: &str,
        values: &[SqlValue<'_>],
        each: Each<'_>,
    ) -> Result<Result<u64>, postgres::Error> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                if self.statements.len() >= STATEMENTS {
                    self.statements.clear();
                }
                note_trip();
                let statement = self.client.with(|client| client.prepare(&respelled(sql)))?;
                self.statements.insert(sql.into(), statement.clone());
                statement
            }
        };
        let types = statement.params();
        if types.len() != values.len() {
            return Ok(Err(StoreError::Database(format!(
                "a statement has {} parameters and was given {}",
                types.len(),
                values.len()
            ))));
        }
        let values = values.iter().zip(types).enumerate();
        let values = values.map(|(at, (value, kind))| parameter(at + 1, *value, kind));
        let values = match values.collect::<Result<Vec<_>>>() {
            Ok(values) => values,
            Err(error) => return Ok(Err(error)),
        };
        note_trip();
        if in_runtime() {
            // `each` stays on this thread, so the rows come over together.
            let (rows, changed) = self.client.with(|client| {
                let mut rows = client.query_raw(&statement, values)?;
                let mut all = Vec::new();
                while let Some(row) = rows.next()? {
                    all.push(row);
                }
                Ok::<_, postgres::Error>((all, rows.rows_affected()))
            })?;
            for row in rows {
                if let Err(error) = each(&PostgresRow(row)) {
                    return Ok(Err(error));
                }
            }
            return Ok(Ok(changed.unwrap_or(0)));
        }
        let Some(client) = &mut self.client.0 else {
            return Ok(Ok(0));
        };
        let mut rows = client.query_raw(&statement, values)?;
        while let Some(row) = rows.next()? {
            if let Err(error) = each(&PostgresRow(row)) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(rows.rows_affected().unwrap_or(0)))
    }

    /// Runs a statement in the transaction, or in one of its own.
    fn told(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<u64> {
        let reads = sql.trim_start().starts_with("select");
        if self.state.is_none() {
            // `begin` reconnects if the connection was lost before; if it is lost later, the outcome is unknown.
            self.begin(if reads { Begin::Read } else { Begin::Write })?;
            let done = self.told(sql, values, each);
            return match done {
                Ok(done) => self.commit().map(|()| done),
                Err(error) => {
                    self.rollback();
                    Err(error)
                }
            };
        }
        self.send()?;
        let done = self.run(sql, values, each);
        if let Some(open) = &mut self.state {
            open.wrote |= !reads;
            open.failed |= done.is_err();
        }
        done.map_err(|error| said(&self.address, &error))?
    }

    /// Sends what was kept back, with further statements, and gives the rows of those to `each`: of each run, as many as
    /// `runs` says there are.
    fn send_runs(&mut self, text: &str, runs: Range<usize>, each: EachOfRuns<'_>) -> Result<()> {
        let Some(client) = &self.client.0 else {
            return Ok(());
        };
        let token = client.cancel_token();
        let text = std::mem::take(&mut self.later) + text;
        let done = watched(token, || self.client.simple_query(&text));
        if let Some(open) = &mut self.state {
            open.failed |= done.is_err();
        }
        let said = done.map_err(|error| said(&self.address, &error))?;
        let is_end =
            |one: &&SimpleQueryMessage| matches!(one, SimpleQueryMessage::CommandComplete(_));
        // What was kept back came first, and has no rows.
        let mut before = said
            .iter()
            .filter(is_end)
            .count()
            .saturating_sub(runs.len());
        let mut at = runs.start;
        for one in said {
            match one {
                SimpleQueryMessage::CommandComplete(_) if before > 0 => before -= 1,
                SimpleQueryMessage::CommandComplete(_) => at += 1,
                SimpleQueryMessage::Row(row) => each(at, &TextRow::new(row))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends what was kept back.
    fn send(&mut self) -> Result<()> {
        if self.later.is_empty() {
            return Ok(());
        }
        let later = std::mem::take(&mut self.later);
        self.batch(&later)
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.send()?;
        let done = self.client.batch_execute(sql);
        if let Some(open) = &mut self.state {
            open.failed |= done.is_err();
        }
        done.map_err(|error| said(&self.address, &error))
    }

    fn copy_to(&mut self, to: &Path) -> Result<()> {
        let mut target = Sqlite::open(to, FileAccess::Create, self.busy)?;
        schema::create(&mut target, &to.display().to_string())?;
        target.begin(Begin::Write)?;
        target.execute("delete from format", &[])?;
        for table in TABLES {
            let (name, names) = (table.name, schema::list(table.columns(), "", &[]));
            let insert = table.insert();
            let select = format!("select {names} from {name} order by {}", table.order());
            self.query(&select, &[], &mut |row| {
                target.execute(&insert, &table.values(row, 0)?).map(|_| ())
            })?;
        }
        target.commit()?;
        target.scrub(Duration::ZERO).map(drop)
    }
}

impl Database for Postgres {
    fn dialect(&self) -> Backend {
        Backend::Postgres
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64> {
        self.told(sql, values, &mut |_| Ok(()))
    }

    fn insert(&mut self, insert: &str, values: &[SqlValue<'_>]) -> Result<()> {
        let cut =
            |value: &SqlValue<'_>| matches!(value, SqlValue::Text(text) if text.contains('\0'));
        let Some(open) = self.state.as_mut().filter(|_| !values.iter().any(cut)) else {
            // The server says what is wrong with a text.
            return self.execute(insert, values).map(|_| ());
        };
        open.wrote = true;
        spell_out(&mut self.later, insert, values);
        if self.later.len() < LATER {
            return Ok(());
        }
        self.send()
    }

    fn query(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()> {
        self.told(sql, values, each).map(|_| ())
    }

    fn query_all(
        &mut self,
        sql: &str,
        runs: &[Vec<SqlValue<'_>>],
        each: EachOfRuns<'_>,
    ) -> Result<()> {
        let is_cut =
            |value: &SqlValue<'_>| matches!(value, SqlValue::Text(text) if text.contains('\0'));
        let is_one = runs.len() < 2 && self.later.is_empty();
        let Some(open) = self.state.as_mut().filter(|_| !is_one) else {
            let mut runs = runs.iter().enumerate();
            return runs.try_for_each(|(at, run)| self.query(sql, run, &mut |row| each(at, row)));
        };
        open.wrote |= !sql.starts_with("select");
        let (mut text, mut sent) = (String::new(), 0);
        for (at, run) in runs.iter().enumerate() {
            if run.iter().any(is_cut) {
                let what = "a text has U+0000, which no text of PostgreSQL has";
                return Err(StoreError::Refused(what.to_owned()));
            }
            spell_out(&mut text, sql, run);
            if text.len() >= LATER {
                self.send_runs(&text, sent..at + 1, each)?;
                (text, sent) = (String::new(), at + 1);
            }
        }
        if sent < runs.len() {
            self.send_runs(&text, sent..runs.len(), each)?;
        }
        Ok(())
    }

    fn begin(&mut self, begin: Begin) -> Result<()> {
        let lock = match begin {
            Begin::Read => {
                let sql = "begin isolation level repeatable read, read only; select 1";
                return self.start(sql);
            }
            Begin::Write => "pg_advisory_xact_lock_shared",
            Begin::Alone => "pg_advisory_xact_lock",
        };
        // Those who write to a schema agree on a lock.
        let schema = &self.address.schema;
        let sql = format!(
            "begin isolation level read committed; \
             select {lock}(hashtextextended('pactql ' || '{schema}', 0))"
        );
        self.start(&sql)
    }

    fn commit(&mut self) -> Result<()> {
        if let Err(error) = self.send() {
            self.rollback();
            return Err(error);
        }
        let open = self.state.take().unwrap_or_default();
        if open.failed {
            let _ = self.client.batch_execute("rollback");
            return Err(StoreError::Database(format!(
                "{}: a statement of the transaction had failed; nothing was written",
                self.address
            )));
        }
        let announced = format!("select pg_notify('{CHANNEL}', '{}'); ", self.address.schema);
        let sql = if open.wrote { announced } else { String::new() } + "commit";
        let Err(error) = self.client.batch_execute(&sql) else {
            return Ok(());
        };
        if self.client.is_closed() {
            return Err(StoreError::Database(format!(
                "{}: the connection was lost during a commit, and whether it was kept is not known; \
                 open the session again to see",
                self.address
            )));
        }
        let _ = self.client.batch_execute("rollback");
        Err(said(&self.address, &error))
    }

    fn rollback(&mut self) {
        self.later.clear();
        if self.state.take().is_some() {
            let _ = self.client.batch_execute("rollback");
        }
    }

    fn savepoint(&mut self, what: Savepoint) -> Result<()> {
        if what == Savepoint::Undo {
            self.later.clear();
        }
        self.batch(what.sql())?;
        if let (Savepoint::Undo, Some(open)) = (what, &mut self.state) {
            open.failed = false;
        }
        Ok(())
    }

    fn now_ns(&mut self) -> Result<i64> {
        let sql = "select cast(extract(epoch from clock_timestamp()) * 1000000000 as bigint)";
        Ok(one_int(self, sql, &[])?.unwrap_or(0))
    }

    fn data_version(&mut self) -> Result<i64> {
        // The server sends earlier announcements before the answer to this query.
        if self.state.is_none() {
            let asked = self.client.batch_execute("select 1");
            if asked.is_err() {
                self.reconnect()?;
            }
        }
        let (schema, own) = (&self.address.schema, self.own);
        self.version += self.client.with(|client| {
            let mut announced = client.notifications();
            let (mut announced, mut others) = (announced.iter(), 0);
            // An error here is the connection's; the next statement reports it.
            while let Ok(Some(commit)) = announced.next() {
                let here = commit.payload() == *schema;
                others += i64::from(here && commit.process_id() != own);
            }
            others
        });
        Ok(self.version)
    }

    fn backup(&mut self, to: &Path) -> Result<()> {
        let within = self.state.is_some();
        if !within {
            self.begin(Begin::Read)?;
        }
        let done = into_new_file(to, |part| self.copy_to(part));
        if !within {
            self.rollback();
        }
        done
    }

    fn scrub(&mut self, _: Duration) -> Result<bool> {
        let mut names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        if self.client.is_closed() {
            self.reconnect()?;
        }
        if tables::exists(self)? {
            names.extend(tables::TABLES);
        }
        self.batch(&format!("vacuum {}", names.join(", ")))?;
        Ok(true)
    }

    fn vacuum(&mut self, patience: Duration) -> Result<bool> {
        self.scrub(patience)
    }
}

/// The most bytes of inserts that wait for the next statement.
const LATER: usize = 256 << 10;

/// How long a statement runs before work under a token looks whether it is cancelled, and then each time.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a statement; where the work is cancelled meanwhile, the server stops it.
fn watched<T>(stop: CancelToken, run: impl FnOnce() -> T) -> T {
    let tokens = here();
    if tokens.is_empty() {
        return run();
    }
    let (done, ends) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if tokens.within(stopped) {
                    // A statement that has ended is not harmed.
                    let _ = stop.cancel_query(NoTls);
                }
            }
        });
        // Dropped also where it unwinds, and the other thread ends.
        let _done = done;
        run()
    })
}

fn connect(address: &ServerAddress, access: FileAccess, busy: Duration) -> Result<ClientLink> {
    let failed = |error| said(address, &error);
    let client = apart(|| address.config.connect(NoTls)).map_err(failed)?;
    let mut client = ClientLink(Some(client));
    let read_only = match access {
        FileAccess::Create | FileAccess::Write | FileAccess::Alone => "off",
        FileAccess::Read | FileAccess::ReadOnly | FileAccess::Damaged => "on",
    };
    // `lock_timeout` ends the wait for another writer, as `busy_timeout` does in SQLite. To compile a statement with
    // many expressions takes seconds, and running it does not. A server that can notices that a client is gone while it runs
    // a statement for it.
    let set = format!(
        "set search_path to {}; set lock_timeout to {}; set default_transaction_read_only to {read_only}; \
         set client_min_messages to warning; set standard_conforming_strings to on; set jit to off; \
         do $$ begin perform set_config('client_connection_check_interval', '1s', false); \
         exception when others then null; end $$",
        address.schema,
        busy.as_millis().clamp(1, 2_000_000_000)
    );
    client.batch_execute(&set).map_err(failed)?;
    Ok(client)
}

fn said(address: &ServerAddress, error: &postgres::Error) -> StoreError {
    let database = |what: &str| StoreError::Database(format!("{address}: {what}"));
    let Some(told) = error.as_db_error() else {
        if error.is_closed() {
            return database("the connection to the server was lost; try again");
        }
        // The cause of an error of the client library is in its source.
        let mut text = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            source = cause.source();
        }
        return database(&text);
    };
    let message = told.message();
    match *told.code() {
        SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::LOCK_NOT_AVAILABLE => StoreError::Conflict(format!(
            "{address}: another writer was in the way ({message}); try again"
        )),
        SqlState::DISK_FULL => {
            database("no space is left on the server's disk; nothing was written")
        }
        SqlState::PROGRAM_LIMIT_EXCEEDED => StoreError::Refused(format!(
            "{address}: it is too large for PostgreSQL ({message})"
        )),
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
            StoreError::Damaged(format!("{address}: {message}"))
        }
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => database(&format!(
            "the server ended the connection ({message}); try again"
        )),
        _ => database(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let of = |url: &str| ServerAddress::parse(url);
        let address = of("postgres://me:secret@host:1/db?schema=x_1&password=secret").ok();
        let address = address.unwrap();
        assert_eq!(address.schema, "x_1");
        assert_eq!(address.to_string(), "postgres://host:1/db?schema=x_1");
        assert_eq!(address.config.get_dbname(), Some("db"));
        let address = of("postgresql:///db?host=/tmp/x&user=u").ok().unwrap();
        assert_eq!(address.to_string(), "postgresql:///db");
        assert_eq!(address.schema, SCHEMA);
        for wrong in ["X", "", "1a", "a-b", "a;drop", "pg_x"] {
            let refused = of(&format!("postgres://h/d?schema={wrong}"));
            assert!(refused.is_err(), "{wrong}");
        }
        let refused = of("postgres://me:secret@host:port/db?nothing=secret").err();
        assert!(!refused.unwrap().to_string().contains("secret"));
    }
}
