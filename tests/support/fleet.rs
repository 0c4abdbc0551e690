//! DuckDB and Spark for tests: one process of `tests/fleet/ask.py`, which answers statements.

use std::io::{BufRead, BufReader, Write};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// The process of all tests: Spark alone takes fifteen seconds to start.
static SHARED: Mutex<Option<Fleet>> = Mutex::new(None);

/// The process, for one test at a time.
pub struct Shared(MutexGuard<'static, Option<Fleet>>);

impl Deref for Shared {
    type Target = Fleet;

    fn deref(&self) -> &Fleet {
        self.0.as_ref().expect("`Fleet::shared` started it")
    }
}

impl DerefMut for Shared {
    fn deref_mut(&mut self) -> &mut Fleet {
        self.0.as_mut().expect("`Fleet::shared` started it")
    }
}

/// The process. It ends when its input does, so with this program.
pub struct Fleet {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    engines: Vec<String>,
}

impl Fleet {
    /// Starts it with the Python that `.ci/fleet` has made.
    ///
    /// # Errors
    /// Why there is none.
    fn start() -> Result<Self, String> {
        let python = std::env::var("PACTQL_FLEET_PYTHON");
        let python = python.map_err(|_| "PACTQL_FLEET_PYTHON is not set: eval \"$(.ci/fleet)\"")?;
        let engines = std::env::var("PACTQL_FLEET_ENGINES").unwrap_or_default();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/ask.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let to = child.stdin.take().ok_or("no pipe")?;
        let from = child.stdout.take().ok_or("no pipe")?;
        Ok(Self {
            to,
            from: BufReader::new(from),
            engines: engines.split_whitespace().map(str::to_owned).collect(),
        })
    }

    /// The process that all tests of this program share.
    ///
    /// # Errors
    /// Why there is none.
    pub fn shared() -> Result<Shared, String> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            *shared = Some(Self::start()?);
        }
        Ok(Shared(shared))
    }

    /// The engines that there are, of `duckdb` and `spark`.
    pub fn engines(&self) -> &[String] {
        &self.engines
    }

    /// The rows of a statement, after those of `setup`, unless they were run before.
    ///
    /// # Errors
    /// What the engine says.
    pub fn ask(
        &mut self,
        dialect: &str,
        setup: &[String],
        sql: &str,
    ) -> Result<Vec<Vec<Value>>, String> {
        self.answer(&json!({"dialect": dialect, "setup": setup, "sql": sql}))
    }

    /// What a statement read: a row for each scan of its plan, with the table, the columns, the conditions that the
    /// scan checks itself, and the number of files.
    ///
    /// # Errors
    /// What the engine says.
    pub fn scans(
        &mut self,
        dialect: &str,
        setup: &[String],
        sql: &str,
    ) -> Result<Vec<Vec<Value>>, String> {
        self.answer(&json!({"dialect": dialect, "setup": setup, "sql": sql, "scans": true}))
    }

    fn answer(&mut self, asked: &Value) -> Result<Vec<Vec<Value>>, String> {
        writeln!(self.to, "{asked}").map_err(|error| error.to_string())?;
        let mut line = String::new();
        self.from
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        if let Some(error) = answer["error"].as_str() {
            return Err(error.to_owned());
        }
        serde_json::from_value(answer["rows"].clone()).map_err(|error| error.to_string())
    }
}
