//! The engine: the entry point of the library.

use super::answer::Answer;
use super::cache::{CacheStats, PlanCache};
use super::explain::{self, Explain, ExplainOptions};
use super::prepared::Prepared;
use super::selection::Selection;
use crate::history::{RangeDiff, RangeOptions, Session};
use crate::query::ir::{Edition, Purpose};
use crate::query::sql::{self, Dialect, Statement};
use crate::support::diag::{Error, Warning};
use crate::support::macros::setters;
use std::fmt;

/// Default capacity of the plan cache, in selector texts.
const CACHED_TEXTS: usize = 4096;

/// Compiles and runs selectors; keeps a cache of plans. `Send + Sync`; share one per process.
///
/// ```
/// use pactql::{Engine, Session};
/// let engine = Engine::new();
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let calls = engine.rows(&session, "@t0 ^seq .cb[kind='call']")?;
/// for node in &calls {
///     println!("{}: {}", node.id(), node.text());
/// }
/// let changes = engine.range(&session, "@t-3..@t0 .cb[kind='call']")?;
/// assert_eq!(changes.diffs.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    edition: Edition,
    cache: PlanCache,
}

/// Its settings, without the plans that it keeps.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Engine");
        out.field("edition", &self.edition).finish_non_exhaustive()
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

/// Settings of an [`Engine`], from [`Engine::builder`].
///
/// ```
/// use pactql::{Edition, Engine};
/// let engine = Engine::builder().edition(Edition::V01).cached_texts(100).build();
/// assert_eq!(engine.edition(), Edition::V01);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EngineBuilder {
    edition: Edition,
    cached_texts: usize,
}

impl EngineBuilder {
    setters! {
        /// The edition of selectors; `canonical` by default.
        edition: Edition;
        /// Capacity of the plan cache in selector texts; 0 turns it off. 4,096 by default.
        cached_texts: usize;
    }

    /// Builds the engine.
    pub fn build(self) -> Engine {
        Engine {
            edition: self.edition,
            cache: PlanCache::new(self.cached_texts),
        }
    }
}

/// The result of [`Engine::check`].
///
/// ```
/// let report = pactql::Engine::new().check("@t0 .cb[role='user'][role='tool']")?;
/// assert_eq!(report.canonical, "@t0 none");
/// assert!(report.warnings[0].message.contains("matches nothing"));
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// The canonical text (LANGUAGE §9).
    pub canonical: String,
    /// SHA-256 of the canonical text, in lower-case hex digits.
    pub fingerprint: String,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

impl Engine {
    /// An engine with default settings.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts an engine with other settings.
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            edition: Edition::default(),
            cached_texts: CACHED_TEXTS,
        }
    }

    /// The edition of its selectors.
    pub fn edition(&self) -> Edition {
        self.edition
    }

    /// Compiles a selector, which may have `$name` parameters, or takes it from the cache.
    ///
    /// # Errors
    /// Every error of the selector, leftmost first.
    pub fn prepare(&self, text: &str) -> Result<Prepared, Error> {
        self.prepare_for(text, Purpose::Select)
    }

    /// Runs a selector over a session. [`Engine::rows`] and [`Engine::range`] save the match where
    /// the kind of the answer is known.
    ///
    /// # Errors
    /// Every error of the selector; a parameter without a value; a time that no snapshot has.
    pub fn select(&self, session: &Session, text: &str) -> Result<Answer, Error> {
        self.prepare(text)?.select(session)
    }

    /// As [`Engine::select`], with options for a range.
    pub fn select_with(
        &self,
        session: &Session,
        text: &str,
        options: &RangeOptions,
    ) -> Result<Answer, Error> {
        self.prepare(text)?.select_with(session, options)
    }

    /// Runs a selector of rows over a session: of one snapshot, `@*`, or a range with `@mode=union`
    /// or `@mode=latest`.
    ///
    /// # Errors
    /// As [`Engine::select`]; a selector that compares the snapshots of a range.
    pub fn rows(&self, session: &Session, text: &str) -> Result<Selection, Error> {
        self.prepare(text)?.rows(session)
    }

    /// Runs a selector of a range over a session and compares its snapshots.
    ///
    /// # Errors
    /// As [`Engine::select`]; a selector of rows.
    pub fn range(&self, session: &Session, text: &str) -> Result<RangeDiff, Error> {
        self.prepare(text)?.range(session)
    }

    /// As [`Engine::range`], with options.
    pub fn range_with(
        &self,
        session: &Session,
        text: &str,
        options: &RangeOptions,
    ) -> Result<RangeDiff, Error> {
        self.prepare(text)?.range_with(session, options)
    }

    /// Compiles a selector and returns its canonical text, fingerprint and warnings.
    ///
    /// # Errors
    /// Every error of the selector, leftmost first.
    pub fn check(&self, text: &str) -> Result<CheckReport, Error> {
        let prepared = self.prepare(text)?;
        Ok(CheckReport {
            canonical: prepared.canonical(),
            fingerprint: prepared.fingerprint(),
            warnings: prepared.warnings().to_vec(),
        })
    }

    /// The canonical text of a selector (LANGUAGE §9).
    ///
    /// # Errors
    /// Every error of the selector, leftmost first.
    pub fn format(&self, text: &str) -> Result<String, Error> {
        Ok(self.prepare(text)?.canonical())
    }

    /// The selector as one statement of SQL, over the tables of a store or of its export to Parquet
    /// (STORE §5).
    ///
    /// ```
    /// use pactql::sql::{Dialect, Options};
    ///
    /// let engine = pactql::Engine::new();
    /// let statement = engine.sql("@t0 .cb[role='user']", Dialect::Sqlite, &Options::default())?;
    /// assert!(statement.text().contains("n.role = 'user'"));
    /// # Ok::<(), pactql::Error>(())
    /// ```
    ///
    /// # Errors
    /// Every error of the selector; `E_SQL` for what the dialect cannot say.
    pub fn sql(
        &self,
        text: &str,
        dialect: Dialect,
        options: &sql::Options,
    ) -> Result<Statement, Error> {
        self.prepare(text)?.sql(dialect, options)
    }

    /// Explains a selector: its normalized text, its plan and, with a session and
    /// [`ExplainOptions::analyze`], what running it did. Errors as [`Engine::select`].
    pub fn explain(
        &self,
        session: Option<&Session>,
        text: &str,
        options: ExplainOptions,
    ) -> Result<Explain, Error> {
        explain::explain(&self.cache, self.edition, session, text, options)
    }

    pub(super) fn prepare_for(&self, text: &str, purpose: Purpose) -> Result<Prepared, Error> {
        let found = self.cache.look_up(text, self.edition, purpose);
        found.map(|(prepared, _)| prepared)
    }

    /// Counters of the plan cache.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }
}
