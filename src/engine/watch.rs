//! Standing selectors: what a selector matches, and then how that has changed since the last look.

use std::fmt;
use std::sync::Arc;

use super::context::Context;
use super::prepared::Prepared;
use crate::history::{Lookup, SeenSnapshot, Session, SnapshotDiff, compare_with_seen};
use crate::query::exec::{Counters, Trace};
use crate::query::ir::QueryTime;
use crate::support::diag::{Code, Diagnostic, Error};

/// A standing selector over a session, from [`Context::watch`] or [`Prepared::watch`]: says which of its matches came,
/// went and changed since it was looked at last. `Send`: a reader in another thread looks when it likes, and the
/// writer waits for none.
///
/// Nothing is queued. A look compares the snapshot that the selector means now with the one of the look before, so that
/// nothing is lost by looking seldom: the differences of all mutations and commits in between come as one. Merged, a
/// node that came and went in between is not named, one that changed twice is named once with both changes, and one
/// that went and came back is unchanged, or changed. Put together, the differences are what
/// [`Context::select`] finds.
///
/// What is kept is the snapshot of the last look and, of a selector that has to be run as a whole, the rows that it
/// matched; snapshots share what they have in common.
///
/// ```
/// use pactql::{Context, Message};
/// let mut context = Context::new();
/// let mut calls = context.watch(".cb[kind='call']")?;
/// assert!(calls.changes()?.is_none()); // nothing matches yet
///
/// context.append(Message::user("How warm is it in Graz?"))?;
/// assert!(calls.changes()?.is_none()); // nothing that matches
/// let ids = context.reply(Message::assistant("").call("c1", "weather", "{}"))?;
/// let came = calls.changes()?.expect("the call");
/// assert_eq!((came.added, came.removed.len()), (ids, 0));
/// # Ok::<(), pactql::Error>(())
/// ```
pub struct Watch {
    prepared: Prepared,
    session: Arc<Session>,
    seen: Option<SeenSnapshot>,
    counters: Counters,
}

/// Its selector.
impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Watch");
        out.field("text", &self.text()).finish_non_exhaustive()
    }
}

impl Watch {
    /// The selector as written.
    pub fn text(&self) -> &str {
        self.prepared.text()
    }

    /// What came, went and changed since the last look; `None` if nothing did. The first look has every match as added.
    /// While no snapshot has the selector's time, nothing matches.
    ///
    /// Costs a few pointers if there was no mutation. Else it costs the units that were changed (a turn, `^ah`, `^sys`
    /// each as a whole), and the first of several selectors that look finds them for all; a selector with depths, ages,
    /// picks across turns, `@unique` or a page is run once instead.
    ///
    /// # Errors
    /// Those of loading a session of a store; a cancelled call. The next look has the difference then.
    pub fn changes(&mut self) -> Result<Option<SnapshotDiff>, Error> {
        let history = self.session.moment();
        let position = match self.prepared.resolve(&history) {
            Ok(Lookup::One(position)) => Some(position),
            Ok(Lookup::All | Lookup::Range(_)) => None,
            Err(error) if error.code() == Code::SnapshotNotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(position) = position.filter(|_| history.is_lazy()) {
            self.prepared.fetch(&history, &Lookup::One(position))?;
        }
        let now = position.and_then(|position| history.get(position));
        match (&self.seen, now) {
            (None, None) => return Ok(None),
            (Some(seen), Some(now)) if seen.is(now) => return Ok(None),
            _ => {}
        }
        let bound = self.prepared.ready()?;
        if history.is_lazy() {
            self.prepared.fetch_ages(bound, &history, now)?;
        }
        let mut trace = Trace::off();
        let (seen, diff) = compare_with_seen(bound, &history, self.seen.as_ref(), now, &mut trace);
        self.prepared.not_cancelled()?;
        self.seen = seen;
        self.counters += trace.counters;
        Ok(diff)
    }

    /// The work of all looks so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl Prepared {
    /// A standing selector over a session, which may have a time: `@t0` follows the newest commit; without one the working
    /// state counts, too. Runs nothing.
    ///
    /// # Errors
    /// A parameter without a value; a selector of several snapshots.
    pub fn watch(&self, session: &Arc<Session>) -> Result<Watch, Error> {
        self.ready()?;
        if matches!(self.query().time, QueryTime::All | QueryTime::Range(..)) {
            let text = self.text();
            let span = self.statement().time.clone().unwrap_or(0..text.len());
            let message = "a standing selector is about one snapshot";
            let diagnostic = Diagnostic::error(Code::SelectorInvalid, message);
            let help = "leave the time out, or `@t0` for what is committed";
            return Err(Error::new(
                text,
                diagnostic.at(span, "several snapshots").with_help(help),
            ));
        }
        Ok(Watch {
            prepared: self.clone(),
            session: Arc::clone(session),
            seen: None,
            counters: Counters::default(),
        })
    }
}

impl Context {
    /// A standing selector: says after each append, reply, mutation and commit which of its matches came, went and
    /// changed, at the cost of what was changed. Any number of them may stand. Errors as [`Prepared::watch`] and those of
    /// [`Context::select`].
    pub fn watch(&self, selector: &str) -> Result<Watch, Error> {
        self.engine().prepare(selector)?.watch(&self.session())
    }
}
