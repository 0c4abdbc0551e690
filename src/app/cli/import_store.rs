//! Writing the sessions of `pactql import` into a store: new ones, and those whose log has grown.

use super::command::say;
use super::import_read::{Made, Named, session_of};
use super::import_target::{Target, several};
use super::progress::Progress;
use super::sessions::open_store;
use super::words::quoted;
use super::write::new_name;
use crate::app::present::stores::{Access, Address, Which};
use crate::app::present::{Failure, counted, printable};
use crate::store::{LogImport, Store};
use crate::support::diag::Code;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// Where in a store sessions go, and what is left alone.
pub(super) struct Into<'a> {
    pub(super) address: Address<'a>,
    /// The name of the one session.
    pub(super) name: Option<&'a str>,
    pub(super) skip_existing: bool,
}

/// What was brought into a store besides new sessions.
#[derive(Default)]
pub(super) struct Brought {
    /// Sessions that were left out because their name is taken.
    pub(super) existing: usize,
    /// What became of the sessions of logs that were there.
    pub(super) logs: LogImport,
    /// Whether a log was there.
    again: bool,
}

impl Brought {
    pub(super) fn add(&mut self, more: LogImport) {
        self.again = true;
        let logs = &mut self.logs;
        logs.new += more.new;
        logs.grown += more.grown;
        logs.same += more.same;
        logs.snapshots += more.snapshots;
        logs.renamed.extend(more.renamed);
    }

    pub(super) fn to_json(&self) -> Value {
        let renamed = self.logs.renamed.iter();
        let renamed: Vec<Value> = renamed
            .map(|(from, to)| json!({"from": from, "to": to}))
            .collect();
        json!({
            "grown": self.logs.grown,
            "new": self.logs.new,
            "renamed": renamed,
            "same": self.logs.same,
            "snapshots": self.logs.snapshots,
        })
    }
}

impl fmt::Display for Brought {
    /// A line for logs that were imported before, and one for each session that has another name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.again {
            return Ok(());
        }
        let logs = &self.logs;
        let snapshots = counted(logs.snapshots as u64, "snapshot");
        writeln!(
            f,
            "added {snapshots}: {} new, {} grown, {} as before",
            counted(logs.new as u64, "session"),
            logs.grown,
            logs.same
        )?;
        for (from, to) in &logs.renamed {
            writeln!(f, "`{}` is now `{}`", printable(from), printable(to))?;
        }
        Ok(())
    }
}

impl Into<'_> {
    /// Opens the store, which is made if it is missing.
    pub(super) fn open(&self) -> Result<Store, Failure> {
        open_store(self.address.store, Access::Create)
    }

    /// Writes sessions; none if one of them is there already and is not of a log, or all but those. `kept` gets
    /// which are written.
    pub(super) fn write(
        &self,
        mut sessions: Vec<Named>,
        kept: impl FnOnce(&[Named]),
    ) -> Result<Brought, Failure> {
        self.name(&mut sessions)?;
        let opened = self.open()?;
        let mut brought = Brought::default();
        let known = known(&opened, &sessions)?;
        let is_log = |named: &Named| named.log.is_some() && matches!(named.made, Made::Log(_));
        let is_taken = |named: &Named| known.names.contains(&named.name);
        if self.skip_existing {
            let before = sessions.len();
            sessions.retain(|named| !is_taken(named));
            brought.existing = before - sessions.len();
        } else {
            let mut taken = sessions
                .iter()
                .filter(|named| is_taken(named) && !is_log(named));
            if let Some(first) = taken.next() {
                return Err(self.exists(&first.name, sessions.len(), taken.count()));
            }
        }
        kept(&sessions);
        // The logs that have something in the store.
        let mut again: BTreeMap<usize, Vec<Named>> = BTreeMap::new();
        let mut new = Vec::new();
        let logs: HashSet<usize> = sessions
            .iter()
            .filter(|named| is_log(named) && !self.skip_existing && known.has(named))
            .filter_map(|named| named.log)
            .collect();
        for named in sessions {
            match named.log.filter(|log| logs.contains(log)) {
                Some(log) => again.entry(log).or_default().push(named),
                None => new.push(named),
            }
        }
        import_all(self.address.store, &opened, new)?;
        for sessions in again.into_values() {
            brought.add(self.import_log(&opened, sessions)?);
        }
        Ok(brought)
    }

    /// Brings the sessions of one log up to what it says now.
    pub(super) fn import_log(
        &self,
        store: &Store,
        sessions: Vec<Named>,
    ) -> Result<LogImport, Failure> {
        let source = sessions.first().and_then(|named| named.source.clone());
        let mut read = Vec::with_capacity(sessions.len());
        for named in sessions {
            let session = match named.made {
                Made::Log(log) => session_of(&log)?,
                // Those are of no log.
                Made::Session(_) | Made::Stored(..) => continue,
            };
            read.push((named.name, session));
        }
        match store.import_log(&read, source.as_deref()) {
            Ok(done) => Ok(done),
            Err(error) if error.code() == Code::SessionExists => {
                let names = read.iter().map(|(name, _)| name);
                let name = names
                    .into_iter()
                    .find(|name| error.to_string().contains(&***name));
                Err(self.exists(name.map_or("", |name| name), 1, 0))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the one session its name, and refuses names that no session can have.
    pub(super) fn name(&self, sessions: &mut [Named]) -> Result<(), Failure> {
        let named = match self.address.which {
            Which::All => self.name,
            _ => Some(new_name(self.address)?),
        };
        if let Some(name) = named {
            match sessions {
                [one] => name.clone_into(&mut one.name),
                [] => {}
                _ => return Err(several(&Target::Store(self.address), sessions.len())),
            }
        }
        let is_wrong = |named: &&Named| named.name.contains('*') || named.name.is_empty();
        match sessions.iter().find(is_wrong) {
            None => Ok(()),
            Some(Named { name, .. }) => Err(Failure::usage(format!(
                "a session cannot be called `{name}`: a `*` is for patterns, and a name is not empty"
            ))
            .with_help("`--name` gives another name")),
        }
    }

    /// The failure for a name that is taken, `more` others with it.
    fn exists(&self, name: &str, sessions: usize, more: usize) -> Failure {
        let store = self.address.store;
        let whole = quoted(&format!("{store}#{name}"));
        let help = match (sessions, more) {
            (1, _) => format!("choose another name, or first: pactql store delete {whole} --yes"),
            (_, 0) => format!(
                "`--skip-existing` imports the others; to replace it, first: pactql store delete {whole} --yes"
            ),
            (_, more) => {
                format!("and {more} more of these names; `--skip-existing` imports the others")
            }
        };
        let message = format!("the store {store} has a session `{name}` already");
        Failure::exists(message, help)
    }
}

/// What a store has already.
struct Known {
    names: HashSet<String>,
    sources: HashSet<String>,
}

impl Known {
    /// Whether a session of a log, or another of the same log, is there.
    fn has(&self, named: &Named) -> bool {
        let source = named.source.as_ref();
        self.names.contains(&named.name) || source.is_some_and(|path| self.sources.contains(path))
    }
}

/// The names and the logs of the sessions in a store.
fn known(store: &Store, sessions: &[Named]) -> Result<Known, Failure> {
    let mut found = Known {
        names: HashSet::new(),
        sources: HashSet::new(),
    };
    let listed = match sessions {
        // Looked up by its name.
        [one] if one.log.is_none() => store.sessions(&one.name)?,
        _ => store.sessions("")?,
    };
    for info in listed {
        found.names.insert(info.name);
        found.sources.extend(info.source);
    }
    Ok(found)
}

/// Writes sessions, many in a transaction. If one fails, those before it stay, and the failure says which.
fn import_all(store: &str, opened: &Store, sessions: Vec<Named>) -> Result<(), Failure> {
    let progress = Progress::bar(sessions.len());
    let names: Vec<String> = sessions.iter().map(|named| named.name.clone()).collect();
    let mut unread = None;
    let ready = sessions.into_iter().map_while(|named| {
        progress.step();
        match named.made.session() {
            Ok(session) => Some((named.name, session, named.source)),
            Err(failure) => {
                unread = Some(failure);
                None
            }
        }
    });
    let (imported, failure) = match opened.import_all(ready) {
        Ok(imported) => (imported, unread),
        Err(stopped) => (stopped.imported, Some(stopped.error.into())),
    };
    drop(progress);
    let Some(failure) = failure else {
        return Ok(());
    };
    if let (Some(at), true) = (imported.checked_sub(1), names.len() > 1) {
        say(&format!(
            "note: {imported} of {} are in {store}, up to `{}`; `--skip-existing` goes on after them\n",
            counted(names.len() as u64, "session"),
            printable(&names[at])
        ));
    }
    Err(failure)
}
