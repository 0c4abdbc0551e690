//! The sessions that are open for reading, and how much memory they take.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::diag::{Code, Diagnostic, Error};
use crate::history::{Archive, History, Session};
use crate::store::{Core, Entry, StoreError, Stored};

/// Open sessions by name.
#[derive(Debug)]
pub(super) struct OpenSessions {
    by_name: HashMap<String, Open>,
    /// The budget, in bytes.
    memory: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Open {
    session: Arc<Session>,
    stored: Arc<Stored>,
    used: u64,
    /// The number of the store's last commit when the session was found to be up to date.
    version: Option<i64>,
}

impl OpenSessions {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            by_name: HashMap::new(),
            memory,
            clock: 0,
        }
    }

    /// Lets the sessions go that were used longest ago, until the others are within the budget.
    fn trim(&mut self) {
        let bytes = |open: &Open| open.stored.bytes() + OVERHEAD;
        let mut total: usize = self.by_name.values().map(bytes).sum();
        while total > self.memory && self.by_name.len() > 1 {
            let oldest = self.by_name.iter().min_by_key(|(_, open)| open.used);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else {
                return;
            };
            if let Some(open) = self.by_name.remove(&name) {
                total -= bytes(&open);
            }
        }
    }
}

/// What an open session takes besides its indexes, in bytes, roughly.
const OVERHEAD: usize = 2_000;

fn lock(open: &Mutex<OpenSessions>) -> MutexGuard<'_, OpenSessions> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The session of a name as it is now. Costs a look at the number of the last commit if nothing was
/// committed since it was asked for last.
pub(super) fn by_name(
    open: &Mutex<OpenSessions>,
    core: &Arc<Core>,
    name: &str,
) -> Result<Arc<Session>, StoreError> {
    // Before the row is read: a commit in between is noticed the next time.
    let version = core.version()?;
    {
        let mut open = lock(open);
        open.clock += 1;
        let clock = open.clock;
        if let Some(known) = open.by_name.get_mut(name)
            && known.version == Some(version)
        {
            known.used = clock;
            return Ok(Arc::clone(&known.session));
        }
    }
    let entry = core.read(|database| crate::store::get(database, name))?;
    let (session, _) = session(open, core, entry);
    if let Some(known) = lock(open).by_name.get_mut(name)
        && Arc::ptr_eq(&known.session, &session)
    {
        known.version = Some(version);
    }
    Ok(session)
}

/// The session of a row, which is opened unless it is open as it is in that row.
pub(super) fn session(
    open: &Mutex<OpenSessions>,
    core: &Arc<Core>,
    entry: Entry,
) -> (Arc<Session>, Arc<Stored>) {
    let mut open = lock(open);
    open.clock += 1;
    let clock = open.clock;
    if let Some(known) = open.by_name.get_mut(&entry.name)
        && *known.stored.entry() == entry
    {
        known.used = clock;
        return (Arc::clone(&known.session), Arc::clone(&known.stored));
    }
    let name = entry.name.clone();
    let before = open.by_name.get(&name).map(|known| &known.stored);
    let stored = Arc::new(Stored::after(core, entry, before));
    let session = Arc::new(Session::named(&name, history(&stored)));
    let made = Open {
        session: Arc::clone(&session),
        stored: Arc::clone(&stored),
        used: clock,
        version: None,
    };
    open.by_name.insert(name, made);
    open.trim();
    (session, stored)
}

/// The history of a stored session; nothing of it is loaded.
fn history(stored: &Arc<Stored>) -> History {
    let entry = stored.entry();
    let source = Arc::clone(stored);
    let archive = Archive::new(source, entry.snapshots(), entry.working);
    History::new_lazy(Arc::new(archive))
}

/// Shows what was committed since in a session.
pub(super) fn refresh(
    open: &Mutex<OpenSessions>,
    core: &Arc<Core>,
    session: &Session,
) -> Result<bool, Error> {
    let Some(name) = session.name() else {
        let message = "the session is not of this store";
        return Err(Error::new("", Diagnostic::error(Code::Store, message)));
    };
    let entry = core.read(|database| crate::store::get(database, name))?;
    let mut open = lock(open);
    let before = open
        .by_name
        .get(name)
        .map(|known| Arc::clone(&known.stored));
    if before
        .as_ref()
        .is_some_and(|before| *before.entry() == entry)
        && open
            .by_name
            .get(name)
            .is_some_and(|known| std::ptr::eq(&*known.session, session))
    {
        return Ok(false);
    }
    let stored = Arc::new(Stored::after(core, entry, before.as_ref()));
    session.publish(history(&stored));
    if let Some(known) = open.by_name.get_mut(name)
        && std::ptr::eq(&*known.session, session)
    {
        known.stored = stored;
    }
    Ok(true)
}
