//! The sessions that are open for reading, and how much memory they take.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::diag::{Code, Diagnostic, Error};
use crate::history::{Archive, History, Session};
use crate::store::{Core, Entry, StoreError, Stored};

/// Open sessions by name, those that were used longest ago first to go.
#[derive(Debug)]
pub(super) struct OpenSessions {
    by_name: HashMap<String, Open>,
    /// Names by the number of the last use.
    by_use: BTreeMap<u64, String>,
    /// The budget, in bytes.
    memory: usize,
    /// The bytes of all sessions, as they were counted last.
    total: usize,
    /// Names of sessions that may have grown since they were counted.
    growing: Vec<String>,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Open {
    session: Arc<Session>,
    stored: Arc<Stored>,
    used: u64,
    bytes: usize,
    /// The number of the store's last commit when the session was found to be up to date.
    version: Option<i64>,
}

impl Open {
    /// Whether everything that was asked for could be loaded. If not, the session is opened anew.
    fn is_sound(&self) -> bool {
        self.session.moment().failure().is_none()
    }
}

impl OpenSessions {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            by_name: HashMap::new(),
            by_use: BTreeMap::new(),
            memory,
            total: 0,
            growing: Vec::new(),
            clock: 0,
        }
    }

    /// The open session of a name, which is used now.
    fn used(&mut self, name: &str, is_current: impl Fn(&Open) -> bool) -> Option<&Open> {
        self.count();
        let open = self.by_name.get_mut(name).filter(|open| is_current(open))?;
        self.clock += 1;
        self.by_use.remove(&open.used);
        open.used = self.clock;
        self.by_use.insert(self.clock, name.to_owned());
        self.growing.push(name.to_owned());
        Some(open)
    }

    fn insert(&mut self, name: &str, session: &Arc<Session>, stored: &Arc<Stored>) {
        self.count();
        self.remove(name);
        self.clock += 1;
        let open = Open {
            session: Arc::clone(session),
            stored: Arc::clone(stored),
            used: self.clock,
            bytes: OVERHEAD,
            version: None,
        };
        self.total += open.bytes;
        self.by_name.insert(name.to_owned(), open);
        self.by_use.insert(self.clock, name.to_owned());
        self.growing.push(name.to_owned());
    }

    fn remove(&mut self, name: &str) {
        if let Some(open) = self.by_name.remove(name) {
            self.by_use.remove(&open.used);
            self.total -= open.bytes;
        }
    }

    /// Counts the bytes of the sessions that were used since the last time, and lets the sessions go that
    /// were used longest ago until the others are within the budget. Linear in those.
    fn count(&mut self) {
        for name in std::mem::take(&mut self.growing) {
            if let Some(open) = self.by_name.get_mut(&name) {
                let bytes = open.stored.bytes() + OVERHEAD;
                self.total = self.total - open.bytes + bytes;
                open.bytes = bytes;
            }
        }
        while self.total > self.memory
            && let Some((_, oldest)) = self.by_use.first_key_value()
        {
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }
}

/// What an open session takes besides its indexes, in bytes, roughly.
const OVERHEAD: usize = 2_000;

fn lock(open: &Mutex<OpenSessions>) -> MutexGuard<'_, OpenSessions> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The session of a name as it is now. Of one that is open, only the number of the last commit is read if
/// nothing was committed since the last call.
pub(super) fn by_name(
    open: &Mutex<OpenSessions>,
    core: &Arc<Core>,
    name: &str,
) -> Result<Arc<Session>, StoreError> {
    let is_open = lock(open).by_name.contains_key(name);
    // Before the row is read: a commit in between is noticed the next time. A session that is opened for
    // the first time may be the only one, and the number needs a connection of its own.
    let version = is_open.then(|| core.version()).transpose()?;
    if version.is_some() {
        let mut open = lock(open);
        let known = open.used(name, |known| known.version == version && known.is_sound());
        if let Some(known) = known {
            return Ok(Arc::clone(&known.session));
        }
    }
    let entry = core.read_once(|database| crate::store::get(database, name))?;
    let (session, _) = session(open, core, entry);
    if let Some(known) = lock(open).by_name.get_mut(name)
        && Arc::ptr_eq(&known.session, &session)
    {
        known.version = version;
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
    if let Some(known) = open.used(&entry.name, |known| {
        *known.stored.entry() == entry && known.is_sound()
    }) {
        return (Arc::clone(&known.session), Arc::clone(&known.stored));
    }
    let name = entry.name.clone();
    let before = open.by_name.get(&name).map(|known| &known.stored);
    let stored = Arc::new(Stored::after(core, entry, before));
    let origin = Arc::clone(&stored) as Arc<_>;
    let session = Arc::new(Session::stored(&name, history(&stored), origin));
    open.insert(&name, &session, &stored);
    (session, stored)
}

/// The history of a stored session; nothing of it is loaded.
fn history(stored: &Arc<Stored>) -> History {
    let entry = stored.entry();
    let source = Arc::clone(stored);
    let archive = Archive::new(source, entry.snapshots(), entry.working);
    History::new_lazy(Arc::new(archive))
}

/// A session as its store has it; `None` if it is of no store.
pub(super) fn stored(session: &Session) -> Option<Arc<Stored>> {
    let origin = session.origin().clone()?;
    origin.downcast::<Stored>().ok()
}

/// The row of a session as it was opened; `None` if it is of no store.
pub(super) fn entry(session: &Session) -> Option<Entry> {
    Some(stored(session)?.entry().clone())
}

/// Shows what was committed since in a session.
pub(super) fn refresh(core: &Arc<Core>, session: &Session) -> Result<bool, Error> {
    let mut origin = session.origin();
    let known = origin.as_ref().map(Arc::clone);
    let known = known.and_then(|origin| origin.downcast::<Stored>().ok());
    let Some(known) = known.filter(|known| known.is_of(core)) else {
        let message = "the session is not of this store";
        return Err(Error::new("", Diagnostic::error(Code::Store, message)));
    };
    let now = core.read_once(|database| crate::store::by_id(database, known.entry().session))?;
    let Some(entry) = now else {
        return Err(StoreError::NoSession(known.entry().name.clone()).into());
    };
    if entry == *known.entry() && session.moment().failure().is_none() {
        return Ok(false);
    }
    let is_new = entry != *known.entry();
    let stored = Arc::new(Stored::after(core, entry, Some(&known)));
    session.publish(history(&stored));
    *origin = Some(stored);
    Ok(is_new)
}
