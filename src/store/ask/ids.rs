//! Only the ids of what a selector finds in many sessions.

use crate::store::ask::asking::{Asking, at_of};
use crate::store::ask::candidate::Exact;
use crate::store::ask::candidates::{self, Glob};
use crate::store::ask::sweep::Sweep;
use crate::store::database::sql::Database;
use crate::store::error::StoreError;
use crate::store::read::catalog::Listed;
use crate::store::read::open;
use std::fmt;
use std::sync::Arc;

use crate::engine::Answer;
use crate::engine::ids_of;
use crate::history::{Position, RangeOptions, Session};
use crate::query::exec::{RunInput, Trace, run};
use crate::support::diag::Error;

/// The ids of what a selector finds in many sessions, in byte order of their names. See
/// [`Store::select_ids`](crate::Store::select_ids).
///
/// ```
/// # use pactql::{Context, Message, Store};
/// # let path = std::env::temp_dir().join(format!("pactql-ids-{}.db", std::process::id()));
/// # let store = Store::open(path.to_str().unwrap())?;
/// # let mut context = store.write("support-42")?;
/// # context.append(Message::user("Where is my refund?"))?;
/// # context.commit()?;
/// for found in store.select_ids("support-*", "@t0 .cb[role='user']")? {
///     let found = found?;
///     println!("{}: {:?}", found.session(), found.ids().collect::<Vec<_>>());
/// }
/// # drop((context, store));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StoreIds(Sweep<SessionIds>);

impl StoreIds {
    /// Those of the sessions of a list.
    pub(crate) fn of(asking: Asking, list: Arc<[Listed]>) -> Self {
        Self(Sweep::new(asking, ids, list))
    }

    /// Those that are known already.
    pub(crate) fn ready(asking: Asking, found: Vec<SessionIds>) -> Self {
        Self(Sweep::ready(asking, ids, found))
    }
}

impl StoreIds {
    /// With options for a range, as [`Prepared::select_with`](crate::Prepared::select_with) takes them; ids that
    /// were given already stay as they are.
    #[must_use]
    pub fn with_options(mut self, options: RangeOptions) -> Self {
        let asking = Asking {
            options,
            // The statement has none.
            grouped: None,
            ..self.0.asking().clone()
        };
        self.0.ask(asking);
        self
    }
}

impl Iterator for StoreIds {
    type Item = Result<SessionIds, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// The ids of what a selector finds in one session: at least one. See [`StoreIds`].
#[derive(Clone)]
pub struct SessionIds {
    found: Arc<Found>,
    /// Its number among those.
    at: usize,
}

/// The answers of some sessions: memory is asked for once for all of them.
#[derive(Default)]
struct Found {
    text: String,
    /// Where the names and ids end in the text.
    ends: Vec<usize>,
    /// Where each session begins among the ends: its name, then its ids.
    sessions: Vec<usize>,
}

impl SessionIds {
    /// The name of the session.
    pub fn session(&self) -> &str {
        let at = self.found.sessions.get(self.at);
        self.found.text(at.copied().unwrap_or(0))
    }

    /// The ids, in result order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        let found = &*self.found;
        let start = |at: usize| found.sessions.get(at).copied();
        let end = start(self.at + 1).unwrap_or(found.ends.len());
        let first = start(self.at).map_or(end, |name| name + 1);
        (first..end).map(|at| found.text(at))
    }

    /// The nodes that have what a selector asks for, which the store finds by an index; `None` if it
    /// cannot tell, and the sessions have to be queried.
    pub(crate) fn exact(
        database: &mut dyn Database,
        wanted: &Exact<'_>,
        glob: &Glob,
    ) -> Result<Option<Vec<Self>>, StoreError> {
        let (mut found, mut is_known) = (Found::default(), true);
        candidates::hits(
            database,
            &wanted.candidate,
            wanted.working,
            &mut |hit| match wanted.holds(&hit) {
                Some(true) if glob.matches(hit.name) => {
                    if found.last_session() != Some(hit.name) {
                        found.begin(hit.name);
                    }
                    found.push(hit.id);
                }
                Some(_) => {}
                None => is_known = false,
            },
        )?;
        Ok(is_known.then(|| found.finish().collect()))
    }
}

impl fmt::Debug for SessionIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.ids().collect();
        let mut shown = f.debug_struct("SessionIds");
        shown.field("session", &self.session());
        shown.field("ids", &ids).finish()
    }
}

impl Found {
    fn text(&self, at: usize) -> &str {
        let end = |at: usize| self.ends.get(at).copied();
        let start = at.checked_sub(1).and_then(end).unwrap_or(0);
        let text = self.text.get(start..end(at).unwrap_or(start));
        text.unwrap_or_default()
    }

    fn last_session(&self) -> Option<&str> {
        self.sessions.last().map(|name| self.text(*name))
    }

    /// Begins a session.
    fn begin(&mut self, name: &str) {
        self.sessions.push(self.ends.len());
        self.push(name);
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    fn finish(self) -> impl Iterator<Item = SessionIds> {
        let found = Arc::new(self);
        (0..found.sessions.len()).map(move |at| SessionIds {
            found: Arc::clone(&found),
            at,
        })
    }
}

/// The ids of some sessions, which are read together.
fn ids(asking: &Asking, list: &[Listed]) -> Vec<Result<SessionIds, Error>> {
    if let Some(found) = by_statement(asking, list) {
        return found.finish().map(Ok).collect();
    }
    let sessions = asking.sessions(list);
    let mut found = Found::default();
    // An error, and the number of sessions found before it.
    let mut errors = Vec::new();
    for (at, listed) in list.iter().enumerate() {
        let session = at_of(&sessions, at);
        let known = session.ok().flatten();
        if known.is_some_and(|session| in_memory(asking, listed, session, &mut found)) {
            continue;
        }
        match asking.one(listed, session) {
            Ok(Some(one)) => {
                if let Answer::Rows(rows) = &one.answer {
                    found.begin(&listed.name);
                    rows.ids().for_each(|id| found.push(id));
                }
            }
            Ok(None) => {}
            Err(error) => errors.push((found.sessions.len(), error)),
        }
    }
    let mut answers: Vec<_> = found.finish().map(Ok).collect();
    for (at, error) in errors.into_iter().rev() {
        answers.insert(at, Err(error));
    }
    answers
}

/// The ids of some sessions of which none is in memory, as the database finds them; `None` if it does not.
fn by_statement(asking: &Asking, list: &[Listed]) -> Option<Found> {
    let grouped = asking.grouped.as_ref()?;
    if !open::lock(&asking.open).are_new(list) {
        return None;
    }
    let mut found = Found::default();
    let done = grouped.ask(&asking.core, list, |name, id| {
        if found.last_session() != Some(name) {
            found.begin(name);
        }
        found.push(id);
    });
    // What is wrong with one of them shows when it is read.
    if !done.unwrap_or(false) {
        return None;
    }
    open::lock(&asking.open).note_asked(list);
    Some(found)
}

/// Adds the ids of a session, if what decides them is in memory. `false` if it is not.
fn in_memory(asking: &Asking, listed: &Listed, session: &Session, found: &mut Found) -> bool {
    let (Some(foreseen), Some(bound)) = (&asking.foreseen, asking.prepared.bound()) else {
        return false;
    };
    let history = session.moment();
    let working = foreseen.unless_working && history.has_working();
    if working || bound.reads_ages() || history.failure().is_some() {
        return false;
    }
    let last = history.committed().len().checked_sub(1);
    let position = last.map(Position::Committed);
    let snapshot =
        position.and_then(|position| history.in_memory(position, foreseen.part.as_ref()));
    let Some(snapshot) = snapshot else {
        return false;
    };
    let rows = run(
        bound,
        RunInput::new(&snapshot, &*history),
        &mut Trace::off(),
    );
    if !rows.is_empty() {
        found.begin(&listed.name);
        ids_of(&snapshot, &rows)
            .into_iter()
            .for_each(|id| found.push(id));
    }
    true
}
