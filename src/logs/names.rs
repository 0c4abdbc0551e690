//! What the sessions of logs are called: after the log, and after each other where a log names a fork or a
//! subagent. It must not know where logs are.

use super::ImportedSession;
use std::collections::HashSet;

/// The name of a log without the endings of sessions and logs.
///
/// ```
/// assert_eq!(pactql::logs::stem("chat.openai.jsonl.gz"), "chat.openai");
/// ```
#[must_use]
pub fn stem(name: &str) -> &str {
    let mut stem = name;
    let endings = [
        ".gz", ".zst", ".jsonl", ".ndjson", ".json", ".eval", ".yaml", ".yml", ".har", ".db",
    ];
    for ending in endings {
        if let Some(rest) = stem.strip_suffix(ending).filter(|rest| !rest.is_empty()) {
            stem = rest;
        }
    }
    stem
}

/// A name for each session of a log, as `pactql import` gives them: `stem`; where the log has several, `stem/NAME` by its
/// name in the log, or else `stem-N`; a fork or a subagent is named after the session it belongs to. All differ, and a store takes
/// each of them. Linear except for the sessions before a fork or a subagent with a name of its own.
///
/// ```
/// use pactql::logs::{ImportOptions, import, session_names};
/// let log = br#"[[{"role":"user","content":"a"}], [{"role":"user","content":"b"}]]"#;
/// let imported = import(log, &ImportOptions::default())?;
/// assert_eq!(session_names("chat", &imported.sessions), ["chat-1", "chat-2"]);
/// # Ok::<(), pactql::error::InputError>(())
/// ```
#[must_use]
pub fn session_names(stem: &str, sessions: &[ImportedSession]) -> Vec<String> {
    let known: Vec<KnownNames<'_>> = sessions.iter().map(KnownNames::from_session).collect();
    names(stem, &known, &mut HashSet::new())
}

/// Which session of a log a word names, of which each has the name that an import gives it, and maybe one in the log
/// (`~2`, `/agent`). The name of an import comes first.
pub(crate) fn position_of<'n>(
    word: &str,
    names: impl Iterator<Item = (Option<&'n str>, Option<&'n str>)> + Clone,
) -> Option<usize> {
    let given = names.clone().position(|(given, _)| given == Some(word));
    given.or_else(|| names.clone().position(|(_, own)| own == Some(word)))
}

#[derive(Clone, Copy, Default)]
pub(crate) struct KnownNames<'a> {
    name: Option<&'a str>,
    parent: Option<&'a str>,
}

impl<'a> KnownNames<'a> {
    pub(crate) fn new(name: Option<&'a str>, parent: Option<&'a str>) -> Self {
        Self { name, parent }
    }

    pub(crate) fn from_session(session: &'a ImportedSession) -> Self {
        Self::new(session.name.as_deref(), session.parent.as_deref())
    }
}

/// As [`session_names`], of several logs: `taken` has the names of those before.
pub(crate) fn names(
    stem: &str,
    sessions: &[KnownNames<'_>],
    taken: &mut HashSet<String>,
) -> Vec<String> {
    let owners = owners(sessions);
    let whole = owners.iter().filter(|owner| owner.is_none()).count();
    let digits = sessions.len().to_string().len();
    let own = |at: usize| {
        let name = sessions.get(at)?.name?;
        let is_own = !name.is_empty() && !name.starts_with(['~', '/']);
        is_own.then_some(name)
    };
    let plain = |at: usize| match (whole, own(at)) {
        (0 | 1, _) => stem.to_owned(),
        (_, Some(name)) => format!("{stem}/{name}"),
        (_, None) => format!("{stem}-{:0digits$}", at + 1),
    };
    let named = sessions.iter().zip(owners).enumerate();
    let named = named.map(|(at, (known, owner))| match (known.parent, owner) {
        (Some(parent), _) => format!("{}{}", beside(stem, parent), known.name.unwrap_or_default()),
        (None, Some((owner, rest))) => format!("{}{rest}", plain(owner)),
        (None, None) => plain(at),
    });
    named.map(|name| unique(&safe(&name), taken)).collect()
}

/// For each session of a log, if it is a fork or a subagent: of which one, and how its name goes on after that.
fn owners<'a>(sessions: &[KnownNames<'a>]) -> Vec<Option<(usize, &'a str)>> {
    let owner = |(at, known): (usize, &KnownNames<'a>)| {
        let name = known.name?;
        // A log of one session does not name it.
        if name.starts_with(['~', '/']) {
            return Some((0, name));
        }
        let mut before = sessions.get(..at).unwrap_or_default().iter().enumerate();
        before.find_map(|(owner, other)| {
            let rest = name.strip_prefix(other.name?)?;
            rest.starts_with(['~', '/']).then_some((owner, rest))
        })
    };
    sessions.iter().enumerate().map(owner).collect()
}

/// The name of a session whose subagent has a log of its own, below `ID/subagents/` or in one directory with it.
fn beside(stem: &str, parent: &str) -> String {
    let mut parts: Vec<&str> = stem.split('/').collect();
    parts.pop();
    if let Some(at) = parts.iter().rposition(|part| *part == "subagents") {
        parts.truncate(at);
        if parts.last() == Some(&parent) {
            parts.pop();
        }
    }
    parts.push(parent);
    parts.join("/")
}

/// A name that a store takes, and that is not a path out of a directory: logs name their subagents.
fn safe(name: &str) -> String {
    let parts = name.split('/').map(|part| match part {
        "" | "." | ".." => "_".to_owned(),
        part => part.replace(
            |letter: char| letter.is_control() || "*\\".contains(letter),
            "_",
        ),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// A name that is not taken: logs in different directories may have the same one.
pub(crate) fn unique(plain: &str, taken: &mut HashSet<String>) -> String {
    let mut name = plain.to_owned();
    let mut again = 2;
    while !taken.insert(name.clone()) {
        name = format!("{plain}-{again}");
        again += 1;
    }
    name
}
