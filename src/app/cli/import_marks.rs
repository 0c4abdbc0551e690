//! Which logs are as they were when they were imported into a store, so that they are not read again.
//!
//! An import keeps a mark with each session of a log ([`LogMark`]). A log whose marks hold is only hashed. With `--redact`
//! a log gets none: a hash of it as it was would help to guess what was taken out. This file must not know how a log is
//! read.

use crate::app::present::{Failure, stores};
use crate::logs::{ImportOptions, LogMark, MessageLocation};
use crate::store::Store;
use crate::tree::Limits;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// The mark of a log, and the names of its sessions in the store.
type Marked = (Arc<LogMark>, Vec<String>);

/// Of logs by their paths: the names of the sessions, and what was kept with each.
#[derive(Default)]
pub(super) struct LogMarks {
    options: Vec<String>,
    logs: HashMap<String, Vec<(String, String)>>,
}

impl LogMarks {
    /// The marks in a store of the logs at these paths.
    pub(super) fn read(
        store: &Store,
        paths: &HashSet<&str>,
        options: Vec<String>,
    ) -> Result<Self, Failure> {
        let mut logs: HashMap<String, Vec<(String, String)>> = HashMap::new();
        for session in store.marks(paths)? {
            let of_log = logs.entry(session.source).or_default();
            of_log.push((session.name, session.mark));
        }
        Ok(Self { options, logs })
    }

    /// The mark of a log if it is as it was. Linear in a log of the same length.
    pub(super) fn unchanged(&self, path: &str) -> Option<Marked> {
        let kept = self.logs.get(path)?.clone();
        let mut marked = LogMark::whole(kept).into_iter();
        let (mark, names) = marked.find(|(mark, _)| mark.holds(Path::new(path), &self.options))?;
        Some((Arc::new(mark), names))
    }
}

/// Whether there is a store at an address, with something in it.
pub(super) fn is_there(store: &str) -> bool {
    stores::path(store).is_none_or(|path| {
        Path::new(path)
            .metadata()
            .is_ok_and(|about| about.len() > 0)
    })
}

/// The options that decide what is made of a log; `None` if it gets no mark.
pub(super) fn marked_options(options: &ImportOptions, limits: Limits) -> Option<Vec<String>> {
    if !options.redact.is_empty() {
        return None;
    }
    let mut given = Vec::new();
    given.extend(
        options
            .format
            .map(|format| format!("--from {}", format.name())),
    );
    match &options.location {
        MessageLocation::Usual => {}
        MessageLocation::Messages(at) => given.push(format!("--messages {}", at.as_str())),
        MessageLocation::Steps(at) => given.push(format!("--steps {}", at.as_str())),
    }
    given.extend(options.lenient.then(|| "--lenient".to_owned()));
    given.extend(options.strict.then(|| "--strict".to_owned()));
    if limits != Limits::default() {
        given.push(format!("--max-input {}", limits.max_input));
    }
    Some(given)
}
