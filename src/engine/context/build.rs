//! Making a context: settings, new sessions, sessions that go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Context;
use crate::engine::facade::Engine;
use crate::history::{History, Position, Session};
use crate::index::Snapshot;
use crate::query::ir::Edition;
use crate::runtime::{Clock, Policy, SystemClock, Workspace};
use crate::support::diag::Error;
use crate::support::macros::setters;

/// Settings of a [`Context`], from [`Context::builder`].
///
/// ```
/// use pactql::{Context, Edition, Policy, context::StepClock};
/// let context = Context::builder()
///     .clock(StepClock::new(0, 1_000_000_000)) // repeatable times
///     .policy(Policy::new().tokens(100_000).protect(3))
///     .edition(Edition::V01)
///     .build();
/// assert_eq!(context.cycle(), 1);
/// ```
#[derive(Debug, Default)]
pub struct ContextBuilder {
    engine: Option<Arc<Engine>>,
    edition: Edition,
    clock: Option<Arc<dyn Clock>>,
    policy: Policy,
    newest_only: bool,
}

impl ContextBuilder {
    setters! {
        /// The engine to share; it decides the edition.
        engine: Arc<Engine>;
        /// The edition of selectors and of the short form of nodes; `canonical` by default.
        edition: Edition;
        /// How commits prune; not at all by default.
        policy: Policy;
    }

    /// Where times come from; the system's clock by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    #[cfg(feature = "store")]
    pub(crate) fn engine_or(mut self, engine: &Arc<Engine>) -> Self {
        self.engine.get_or_insert_with(|| Arc::clone(engine));
        self
    }

    /// Reads no snapshot but the newest when it goes on with a session: what older ones say to a writer
    /// is kept beside them.
    #[cfg(feature = "store")]
    pub(crate) fn newest_only(mut self) -> Self {
        self.newest_only = true;
        self
    }

    /// A session with nothing in it but the regions.
    #[must_use]
    pub fn build(self) -> Context {
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let engine = self.engine.unwrap_or_else(|| shared(self.edition));
        let workspace = Workspace::new(Arc::clone(&clock), self.policy);
        Context::over(engine, clock, workspace, History::default())
    }

    pub(super) fn resume_documents(self, session: &Session) -> Result<Context, Error> {
        let history = session.history();
        let count = history.committed().len();
        let oldest = if self.newest_only {
            count.saturating_sub(1)
        } else {
            0
        };
        history.fetch_range(oldest..count)?;
        history.fetch(Position::Working)?;
        history.fetch_attempts()?;
        let committed = history.committed().range(oldest..count);
        let committed: Vec<Arc<Snapshot>> = committed.cloned().collect();
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let working = history.working();
        let first = working.map(|working| &**working);
        let mut workspace = Workspace::resume(&committed, first, Arc::clone(&clock), self.policy);
        if let Some(working) = working {
            let text = "the working state";
            workspace
                .adopt(working)
                .map_err(|refusal| refusal.about(text))?;
        }
        let times = workspace.check_times();
        times.map_err(|refusal| refusal.about("the session"))?;
        let engine = self.engine.unwrap_or_else(|| shared(self.edition));
        Ok(Context::over(
            engine,
            clock,
            workspace,
            history.without_working(),
        ))
    }
}

impl Context {
    pub(super) fn over(
        engine: Arc<Engine>,
        clock: Arc<dyn Clock>,
        workspace: Workspace,
        history: History,
    ) -> Self {
        Self {
            engine,
            clock,
            workspace,
            session: Arc::new(Session::new(history)),
            named: BTreeMap::new(),
            fed_at: None,
            published: false.into(),
            #[cfg(feature = "store")]
            keeper: None,
        }
    }
}

/// The engine of contexts that were given none: its plans serve all of them.
fn shared(edition: Edition) -> Arc<Engine> {
    use std::sync::LazyLock;
    static ENGINES: LazyLock<[Arc<Engine>; 3]> = LazyLock::new(|| {
        Edition::ALL.map(|edition| Arc::new(Engine::builder().edition(edition).build()))
    });
    let found = ENGINES.iter().find(|engine| engine.edition() == edition);
    Arc::clone(found.unwrap_or(&ENGINES[2]))
}
