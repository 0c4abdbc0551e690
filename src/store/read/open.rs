//! The sessions that are open for reading, and how much memory they take.

use crate::store::error::{Result, StoreError};
use crate::store::read::catalog::{self, ListedSession, SessionEntry};
use crate::store::read::stored::Stored;
use crate::store::write::core::Core;
use crate::support::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use crate::history::{Archive, History, Session};
use crate::support::diag::Error;

/// Open sessions, an LRU cache bounded by bytes.
#[derive(Debug, Default)]
pub(crate) struct OpenSessions {
    by_id: HashMap<i64, OpenSession>,
    ids: HashMap<String, i64>,
    uses: BTreeMap<u64, i64>,
    memory: usize,
    total: usize,
    /// Sessions that may have grown since they were counted.
    growing: Vec<i64>,
    clock: u64,
}

#[derive(Debug)]
struct OpenSession {
    session: Arc<Session>,
    stored: Arc<Stored>,
    changed: i64,
    used: u64,
    bytes: usize,
    /// The number of the store's last commit when the session was found to be up to date.
    version: Option<i64>,
}

impl OpenSessions {
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            memory,
            ..Self::default()
        }
    }

    /// The bytes that sessions which are queried together may take.
    pub(crate) fn share(&self) -> usize {
        self.memory / SHARE
    }

    /// Changes the budget.
    pub(crate) fn set_memory(&mut self, memory: usize) {
        self.memory = memory;
        self.count();
    }

    /// The bytes of the sessions that are open, once those that have no room are closed.
    pub(crate) fn bytes(&mut self) -> usize {
        self.count();
        self.total
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many sessions are read together: as many as take a share of the budget, so that as many may be in memory
    /// besides, if they are as large as those that are open on average. Few at first, when none is open.
    pub(crate) fn fitting(&mut self) -> usize {
        self.count();
        let average = self.total / self.by_id.len().max(1);
        let fitting = self.share().checked_div(average).unwrap_or(1);
        fitting.clamp(BATCH.0, BATCH.1)
    }

    /// The open session of a number, which is used now, and may grow.
    fn used(&mut self, id: i64, is_current: impl Fn(&OpenSession) -> bool) -> Option<Arc<Session>> {
        let known = self.by_id.get(&id).filter(|open| is_current(open))?;
        let session = Arc::clone(&known.session);
        self.note_use(id);
        Some(session)
    }

    fn note_use(&mut self, id: i64) {
        self.clock += 1;
        if let Some(open) = self.by_id.get_mut(&id) {
            self.uses.remove(&open.used);
            open.used = self.clock;
            self.uses.insert(self.clock, id);
            self.growing.push(id);
        }
    }

    fn insert(&mut self, session: &Arc<Session>, stored: &Arc<Stored>) {
        let entry = stored.entry();
        self.remove(entry.session);
        let open = OpenSession {
            session: Arc::clone(session),
            stored: Arc::clone(stored),
            changed: entry.changed,
            used: 0,
            bytes: OVERHEAD,
            version: None,
        };
        self.total += open.bytes;
        self.ids.insert(entry.name.clone(), entry.session);
        self.by_id.insert(entry.session, open);
        self.note_use(entry.session);
    }

    fn remove(&mut self, id: i64) {
        if let Some(open) = self.by_id.remove(&id) {
            let name = &open.stored.entry().name;
            if self.ids.get(name) == Some(&id) {
                self.ids.remove(name);
            }
            self.uses.remove(&open.used);
            self.total -= open.bytes;
        }
    }

    /// Notes that a session shows a later moment, if it is the one that is handed out. One that has another
    /// name now stays as it was, and lends what it has in memory to the one that is opened by that name.
    fn refreshed(&mut self, session: &Session, stored: &Arc<Stored>) {
        let entry = stored.entry();
        if let Some(open) = self.by_id.get_mut(&entry.session)
            && std::ptr::eq(&*open.session, session)
            && open.stored.entry().name == entry.name
        {
            open.stored = Arc::clone(stored);
            open.changed = entry.changed;
            open.version = None;
            self.growing.push(entry.session);
        }
    }

    /// Counts what was used since the last time, and evicts the least recently used until the others fit. Linear in those.
    fn count(&mut self) {
        for id in std::mem::take(&mut self.growing) {
            if let Some(open) = self.by_id.get_mut(&id) {
                let bytes = open.stored.bytes() + OVERHEAD;
                self.total = self.total - open.bytes + bytes;
                open.bytes = bytes;
            }
        }
        while self.total > self.memory
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.remove(oldest);
        }
    }
}

/// Sessions that are queried together take at most one part in this many of the budget.
const SHARE: usize = 8;

/// At least, and at most, this many sessions are read together.
const BATCH: (usize, usize) = (8, 256);

/// What an open session takes besides its indexes, in bytes, roughly.
const OVERHEAD: usize = 2_600;

/// Of a session that is open, only the number of the last commit is read if nothing was committed since.
pub(crate) fn by_name(
    open: &Mutex<OpenSessions>,
    core: &Arc<Core>,
    name: &str,
) -> Result<Arc<Session>> {
    let is_open = lock(open).ids.contains_key(name);
    // Before the row is read: a commit in between is noticed the next time. A session that is opened for
    // the first time may be the only one, and the number needs a connection of its own.
    let version = is_open.then(|| core.home.version()).transpose()?;
    if version.is_some() {
        let mut open = lock(open);
        open.count();
        let id = open.ids.get(name).copied();
        let is_current = |known: &OpenSession| known.version == version;
        if let Some(session) = id.and_then(|id| open.used(id, is_current)) {
            return Ok(session);
        }
    }
    let entry = core.read_once(|database| catalog::get(database, name));
    let entry = entry.inspect_err(|error| {
        if matches!(error, StoreError::NoSession(_)) {
            forget(open, name);
        }
    })?;
    let id = entry.session;
    let session = session(open, core, entry);
    if let Some(known) = lock(open).by_id.get_mut(&id)
        && Arc::ptr_eq(&known.session, &session)
    {
        known.version = version;
    }
    Ok(session)
}

/// The session of a row, which is opened unless it is open as it is in that row.
pub(crate) fn session(
    open: &Mutex<OpenSessions>,
    core: &Arc<Core>,
    entry: SessionEntry,
) -> Arc<Session> {
    let mut open = lock(open);
    open.count();
    let is_current = |known: &OpenSession| *known.stored.entry() == entry;
    if let Some(session) = open.used(entry.session, is_current) {
        return session;
    }
    let before = open.by_id.get(&entry.session).map(|known| &known.stored);
    let stored = Arc::new(Stored::after(core, entry, before));
    let session = opened(&stored);
    open.insert(&session, &stored);
    session
}

pub(crate) fn current(
    open: &Mutex<OpenSessions>,
    list: &[ListedSession],
) -> HashMap<i64, Arc<Session>> {
    let mut open = lock(open);
    open.count();
    let mut found = HashMap::with_capacity(list.len());
    for listed in list {
        let is_current = |known: &OpenSession| known.changed == listed.changed;
        if let Some(session) = open.used(listed.session, is_current) {
            found.insert(listed.session, session);
        }
    }
    found
}

/// Has sessions counted again, of which more was read since they were opened.
pub(crate) fn grown(open: &Mutex<OpenSessions>, ids: impl IntoIterator<Item = i64>) {
    lock(open).growing.extend(ids);
}

fn opened(stored: &Arc<Stored>) -> Arc<Session> {
    let origin = Arc::clone(stored) as Arc<_>;
    let name = &stored.entry().name;
    Arc::new(Session::stored(name, history(stored), origin))
}

pub(crate) fn forget(open: &Mutex<OpenSessions>, name: &str) {
    let mut open = lock(open);
    if let Some(id) = open.ids.remove(name) {
        open.remove(id);
    }
}

fn history(stored: &Arc<Stored>) -> History {
    let entry = stored.entry();
    let source = Arc::clone(stored);
    let archive = Archive::new(source, entry.snapshots(), entry.working);
    History::new_lazy(Arc::new(archive))
}

pub(crate) fn stored(session: &Session) -> Option<Arc<Stored>> {
    let origin = session.origin().clone()?;
    origin.downcast::<Stored>().ok()
}

pub(crate) fn refresh(
    open: &Mutex<OpenSessions>,
    core: &Arc<Core>,
    session: &Session,
) -> Result<bool, Error> {
    let mut origin = session.origin();
    let known = origin
        .clone()
        .and_then(|origin| origin.downcast::<Stored>().ok());
    let Some(known) = known.filter(|known| known.is_of(core)) else {
        let message = "the session is not of this store";
        return Err(StoreError::Refused(message.to_owned()).into());
    };
    let now = core.read_once(|database| catalog::by_id(database, known.entry().session))?;
    let Some(entry) = now else {
        return Err(StoreError::NoSession(known.entry().name.clone()).into());
    };
    if entry == *known.entry() {
        return Ok(false);
    }
    let stored = Arc::new(Stored::after(core, entry, Some(&known)));
    session.publish(history(&stored));
    *origin = Some(Arc::clone(&stored) as Arc<_>);
    drop(origin);
    lock(open).refreshed(session, &stored);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::Message;
    use crate::store::Store;

    /// A store with a session `a` of two commits; its file, to be removed.
    fn store(name: &str) -> (Store, PathBuf) {
        let name = format!("pactql-open-{name}-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let store = Store::open(path.to_str().unwrap()).unwrap();
        commit(&store, "a");
        commit(&store, "a");
        (store, path)
    }

    fn commit(store: &Store, name: &str) {
        let mut context = store.write(name).unwrap();
        context.append(Message::user("Hello")).unwrap();
        context.commit().unwrap();
    }

    /// The names of open sessions; the bytes of all are those of each together.
    fn names(store: &Store) -> Vec<String> {
        let mut open = lock(&store.open);
        open.count();
        let each = open.by_id.values().map(|open| open.bytes);
        assert_eq!(open.total, each.sum::<usize>());
        assert_eq!(open.ids.len(), open.by_id.len());
        let mut names: Vec<String> = open.ids.keys().cloned().collect();
        names.sort();
        names
    }

    #[test]
    fn a_refreshed_session_is_the_one_that_is_handed_out() {
        let (store, path) = store("refresh");
        let session = store.session("a").unwrap();
        session.history().fetch_all().unwrap();
        commit(&store, "a");
        assert!(store.refresh(&session).unwrap());
        let again = store.session("a").unwrap();
        assert!(Arc::ptr_eq(&session, &again));
        assert_eq!(again.history().committed().len(), 3);
        assert!(!store.refresh(&session).unwrap());
        assert_eq!(names(&store), ["a"]);
        // What is counted is what the session holds now.
        session.history().fetch_all().unwrap();
        assert!(Arc::ptr_eq(&session, &store.session("a").unwrap()));
        assert_eq!(names(&store), ["a"]);
        let bytes = |stored: &Stored| stored.bytes() + OVERHEAD;
        let open = lock(&store.open);
        assert_eq!(open.total, bytes(&open.by_id[&open.ids["a"]].stored));
        drop(open);
        drop(store);
        std::fs::remove_file(path).unwrap();
    }

    #[cfg(feature = "view")]
    #[test]
    fn sessions_that_are_read_stay_within_the_budget() {
        const MEMORY: usize = 60_000;
        let (store, path) = store("budget");
        for at in 0..60 {
            commit(&store, &format!("s{at}"));
        }
        let list = store.sessions("").unwrap();
        assert_eq!(list.len(), 61);
        store.set_memory(MEMORY);
        let mut most = 0;
        for info in &list {
            let session = store.session(&info.name).unwrap();
            session.history().fetch_all().unwrap();
            let used = store.memory_used();
            assert!(used <= MEMORY, "{}: {used}", info.name);
            most = most.max(used);
        }
        assert!(most > MEMORY / 2, "{most}");
        assert!((2..list.len()).contains(&store.open_sessions()));
        // A smaller budget closes sessions at once.
        store.set_memory(MEMORY / 8);
        assert!(store.memory_used() <= MEMORY / 8);
        drop(store);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_session_has_one_place_whatever_its_name() {
        let (store, path) = store("rename");
        let old = store.session("a").unwrap();
        old.history().fetch_all().unwrap();
        store.rename("a", "b").unwrap();
        let new = store.session("b").unwrap();
        assert_eq!(new.name(), Some("b"));
        assert_eq!(names(&store), ["b"]);
        assert!(store.session("a").is_err());
        // The units that are in memory are not read again.
        let newest = |session: &Session| {
            let history = session.history();
            history.fetch_all().unwrap();
            let newest = history.committed().last().unwrap();
            Arc::as_ptr(newest.pieces()[0].segment())
        };
        assert_eq!(newest(&new), newest(&old));
        // Another program renames it; the old name leaves when it is asked for.
        let other = Store::open(path.to_str().unwrap()).unwrap();
        other.rename("b", "c").unwrap();
        assert!(store.session("b").is_err());
        assert_eq!(names(&store), [""; 0]);
        // A session that takes the name of another is not taken for it.
        store.session("c").unwrap();
        other.rename("c", "d").unwrap();
        commit(&other, "c");
        assert_eq!(store.session("c").unwrap().history().committed().len(), 1);
        assert_eq!(store.session("d").unwrap().history().committed().len(), 2);
        assert_eq!(names(&store), ["c", "d"]);
        store.delete("d").unwrap();
        assert_eq!(names(&store), ["c"]);
        drop((store, other));
        std::fs::remove_file(path).unwrap();
    }
}
