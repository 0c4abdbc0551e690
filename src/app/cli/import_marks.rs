//! Which logs are as they were when they were imported into a store, so that they are not read again.
//!
//! An import keeps a mark with each session of a log ([`LogMark`]). A log whose marks hold is only hashed. With `--redact`
//! a log gets none: a hash of it as it was would help to guess what was taken out. This file must not know how a log is
//! read.

use crate::app::present::Failure;
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

/// The options that decide what is made of a log; `None` if it gets no mark.
pub(super) fn marked_options(options: &ImportOptions, limits: Limits) -> Option<Vec<String>> {
    if !options.redact.is_empty() {
        return None;
    }
    let given = [
        options.format.map(|it| format!("--from {}", it.name())),
        match &options.location {
            MessageLocation::Usual => None,
            MessageLocation::Messages(at) => Some(format!("--messages {}", at.as_str())),
            MessageLocation::Steps(at) => Some(format!("--steps {}", at.as_str())),
        },
        options.lenient.then(|| "--lenient".to_owned()),
        options.strict.then(|| "--strict".to_owned()),
        (limits != Limits::default()).then(|| format!("--max-input {}", limits.max_input)),
    ];
    Some(given.into_iter().flatten().collect())
}
