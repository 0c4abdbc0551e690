//! The facade: selectors in, answers out.
//!
//! An [`Engine`] holds the edition and the plan cache; share one per process. A [`Prepared`]
//! selector is a plan with its values, snapshot-free and cheap to clone; asking it takes no
//! lock. A [`Selection`] is the answer: rows of immutable snapshots, resolved when asked.
//!
//! ```text
//! text ─syntax─▶ AST ─ir─▶ query ─plan─▶ plan + values ─bind─▶ prepared ─exec─▶ selection
//! ```

mod answer;
mod cache;
mod explain;
mod fit;
mod log;
mod pipeline;
mod prepared;
mod selection;

pub use answer::Answer;
pub use cache::CacheStats;
pub use explain::{Analysis, Desugared, Explain, ExplainOptions, Pass, PlanLine};
pub use fit::{Fit, text};
pub use log::{Log, LogEntry};
pub use prepared::Prepared;
pub use selection::{Ids, Nodes, Selection};

use crate::diag::{Code, Diagnostic, Error, Warning};
use crate::history::{RangeDiff, RangeOptions, Session};
use crate::ir::Edition;
use cache::PlanCache;

/// How many selector texts the plan cache holds unless told otherwise.
const CACHED_TEXTS: usize = 4096;

/// Compiles and runs selectors. `Send + Sync`; share one per process.
#[derive(Debug)]
pub struct Engine {
    edition: Edition,
    cache: PlanCache,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

/// Settings of an [`Engine`].
#[derive(Clone, Copy, Debug)]
pub struct EngineBuilder {
    edition: Edition,
    cached_texts: usize,
}

impl EngineBuilder {
    /// The edition selectors are written in; `canonical` unless set.
    #[must_use]
    pub fn edition(mut self, edition: Edition) -> Self {
        self.edition = edition;
        self
    }

    /// How many selector texts the plan cache holds; 0 turns it off.
    #[must_use]
    pub fn cached_texts(mut self, texts: usize) -> Self {
        self.cached_texts = texts;
        self
    }

    /// The engine.
    #[must_use]
    pub fn build(self) -> Engine {
        Engine {
            edition: self.edition,
            cache: PlanCache::new(self.cached_texts),
        }
    }
}

/// What [`Engine::check`] says of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The canonical text (LANGUAGE §9).
    pub canonical: String,
    /// SHA-256 of the canonical text, in lower-case hex digits.
    pub fingerprint: String,
    /// What a reader should know.
    pub warnings: Vec<Warning>,
}

impl Engine {
    /// An engine for the canonical edition.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An engine with other settings.
    #[must_use]
    pub fn builder() -> EngineBuilder {
        EngineBuilder {
            edition: Edition::default(),
            cached_texts: CACHED_TEXTS,
        }
    }

    /// The edition selectors are written in.
    #[must_use]
    pub fn edition(&self) -> Edition {
        self.edition
    }

    /// Compiles a selector, which may have `$name` parameters; from the cache where its text or
    /// its shape was seen before.
    ///
    /// # Errors
    /// Every mistake of the selector, the leftmost first.
    pub fn prepare(&self, text: &str) -> Result<Prepared, Error> {
        self.cache.prepare(text, self.edition)
    }

    /// Runs a selector over a session. [`Engine::rows`] and [`Engine::range`] save the match where
    /// the kind of the answer is known.
    ///
    /// # Errors
    /// Every mistake of the selector; a parameter without a value; a time that no snapshot has.
    pub fn select(&self, session: &Session, text: &str) -> Result<Answer, Error> {
        self.prepare(text)?.select(session)
    }

    /// As [`Engine::select`], with options for a range.
    ///
    /// # Errors
    /// As [`Engine::select`].
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
    ///
    /// # Errors
    /// As [`Engine::range`].
    pub fn range_with(
        &self,
        session: &Session,
        text: &str,
        options: &RangeOptions,
    ) -> Result<RangeDiff, Error> {
        self.prepare(text)?.range_with(session, options)
    }

    /// Compiles a selector and tells its canonical text and fingerprint.
    ///
    /// # Errors
    /// Every mistake of the selector, the leftmost first.
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
    /// Every mistake of the selector, the leftmost first.
    pub fn format(&self, text: &str) -> Result<String, Error> {
        Ok(self.prepare(text)?.canonical())
    }

    /// A selector in the words of another edition, with the same meaning over every session
    /// (LANGUAGE, the tables of editions): the canonical text for `canonical`, and for the others
    /// a text that was read back to make sure.
    ///
    /// # Errors
    /// Every mistake of the selector; or `E_EDITION`, at what the other edition has no words for,
    /// with the reason.
    pub fn translate(&self, text: &str, to: Edition) -> Result<String, Error> {
        crate::ir::translate(text, self.edition, to)
    }

    /// Explains a selector: its normalized text, its plan and, over a session, what running it
    /// did.
    ///
    /// # Errors
    /// As [`Engine::select`].
    pub fn explain(
        &self,
        session: Option<&Session>,
        text: &str,
        options: ExplainOptions,
    ) -> Result<Explain, Error> {
        explain::explain(&self.cache, self.edition, session, text, options)
    }

    /// What the plan cache did so far.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }
}

/// An error about a whole selector.
fn whole(text: &str, code: Code, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, message).at(0..text.len(), "")
}
