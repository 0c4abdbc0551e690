//! Stores and their sessions by the words that name them.
//!
//! This is the one place that knows how such a word is written. It must not know arguments, nor what is
//! done with a session.

use super::failure::{Exit, Failure, Result};
use crate::engine::{Context, ContextBuilder};
use crate::history::History;
use crate::json::{Member, get, members, string};
use crate::logs::{is_opencode, title_from_text};
use crate::store::{SessionInfo, Store};
use crate::tree::timestamp::{millis, rfc3339_of_nanos};
use regex_automata::meta::Regex;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A word that names a store, or sessions of one: `STORE`, `STORE#name`, `STORE#glob`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreAddress<'a> {
    /// A path that ends in `.db`, `sqlite:PATH`, or a `postgres://` URL.
    pub(crate) store: &'a str,
    pub(crate) which: Which<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    All,
    /// Those whose name matches, in which `*` is any text, also with `/`.
    Matching(&'a str),
    One(&'a str),
}

/// What is done with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Sessions are read again and again.
    Serve,
    /// Also a file that was cut off.
    Damaged,
    Write,
    /// It is written, and made if it is missing.
    Create,
}

/// How many names of sessions a message lists.
const LISTED: usize = 5;

/// How many bytes of sessions stay in memory where they are only read.
const READ_MEMORY: usize = 32 << 20;

const ENDING: &str = ".db";

fn is_url(word: &str) -> bool {
    word.starts_with("postgres://") || word.starts_with("postgresql://")
}

fn begins_as_selector(word: &str) -> bool {
    let is_path = word.starts_with("./") || word.starts_with("../");
    !is_path && word.starts_with(['@', '^', '#', '[', '{', '(', '*', '>', '?', '+', '.', ':'])
}

impl<'a> StoreAddress<'a> {
    /// A directory for what is written beside the store: its own, or that for temporary files.
    pub(crate) fn directory(self) -> PathBuf {
        let beside = path(self.store).and_then(|path| Path::new(path).parent());
        match beside {
            Some(beside) if beside.as_os_str().is_empty() => PathBuf::from("."),
            Some(beside) => beside.to_owned(),
            None => std::env::temp_dir(),
        }
    }

    /// Reads a word; `None` if it is the path of something else. A `#` that comes before `.db` is part of
    /// the path; a word that begins as a selector names a store only if there is one.
    pub(crate) fn parse(word: &'a str) -> Option<Self> {
        let path = Path::new(word);
        let is_there = !is_url(word) && !word.starts_with("sqlite:") && path.exists();
        let found = if is_there {
            // What opencode keeps ends in `.db`, too.
            let is_store = word.ends_with(ENDING) && !path.is_dir() && !is_opencode(path);
            is_store.then(|| Self::split(word, None))
        } else {
            Self::spelled(word)
        };
        found.filter(|found| !begins_as_selector(word) || Path::new(found.store).exists())
    }

    /// Reads a word by its spelling alone, and looks at no file.
    pub(crate) fn spelled(word: &'a str) -> Option<Self> {
        let at = match after_ending(word) {
            _ if is_url(word) => word.find('#'),
            None if word.starts_with("sqlite:") => word.find('#'),
            None if !word.ends_with(ENDING) => return None,
            at => at,
        };
        Some(Self::split(word, at))
    }

    /// The store before this `#`, and its sessions after it.
    fn split(word: &'a str, at: Option<usize>) -> Self {
        let store = &word[..at.unwrap_or(word.len())];
        let which = match at.map(|at| &word[at + 1..]) {
            None => Which::All,
            Some(glob) if glob.contains('*') => Which::Matching(glob),
            Some(name) => Which::One(name),
        };
        Self { store, which }
    }

    /// Whether it names sessions by their names: all of a store, or those that match.
    pub(crate) fn is_several(self) -> bool {
        !matches!(self.which, Which::One(_))
    }

    /// The pattern of the names; an empty one matches all.
    pub(crate) fn glob(self) -> &'a str {
        match self.which {
            Which::All => "",
            Which::Matching(name) | Which::One(name) => name,
        }
    }

    /// Whether the store is there. That of a server is taken to be.
    pub(crate) fn exists(self) -> bool {
        path(self.store).is_none_or(|path| Path::new(path).exists())
    }

    /// The name of the one session it means.
    pub(crate) fn one(self) -> Result<&'a str> {
        self.one_in(|| open(self.store, Access::Read).map(Box::new))
    }

    /// As [`StoreAddress::one`], of a store that the caller opens if need be.
    pub(crate) fn one_in<S: std::ops::Deref<Target = Store>>(
        self,
        open: impl FnOnce() -> Result<S>,
    ) -> Result<&'a str> {
        let store = self.store;
        let found = match self.which {
            Which::One("") => {
                return Err(Failure::usage(format!(
                    "expected the name of a session after `{store}#`"
                ))
                .with_help(format!("`pactql sessions {store}` lists them")));
            }
            Which::One(name) => return Ok(name),
            Which::All | Which::Matching(_) => open()?.sessions(self.glob())?,
        };
        let count = super::counted(found.len() as u64, "session");
        let message = match self.which {
            Which::Matching(glob) => {
                format!("expected one session, and `{store}#{glob}` is a pattern, of {count}")
            }
            _ => format!("expected one session, and `{store}` is a store of {count}"),
        };
        let failure = Failure::usage(message);
        Err(if found.is_empty() {
            failure.with_help(format!("`pactql sessions {store}` lists its sessions"))
        } else {
            failure.with_help(format!("name one of them: {}", listed(store, &found)))
        })
    }
}

fn after_ending(word: &str) -> Option<usize> {
    let at = word.find(".db#")?;
    Some(at + ENDING.len())
}

/// Passwords: in a URL up to the last `@` of its host, or, where a password has signs that end the host, up to the
/// next `@`; in what was meant as a URL of PostgreSQL; and the value of `password=`.
const PASSWORDS: &str = r#"(?i)(?:\b(?:[a-z][a-z0-9+.-]*:[/\\]+|p[a-z]*(?:gr|sq)[a-z]*[:;/\\]+)[^\s:@/?#'"`]*(?<url>:(?:[^\s'"`/?#]*|[0-9]*[^0-9/\s'"`][^\n'"`]*?))@|(?m:^|[\s?&'"`;])(?:pg|ssl)?passw(?:or)?d=(?<value>'[^'\n]*'|[^\s&#'"`]+))"#;

static PASSWORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PASSWORDS).ok());

/// A text in which the URLs of stores have no passwords, for messages and labels.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    // Compiling the pattern takes longer than a small answer; each match has one of these.
    if !text.contains(['@', '=']) {
        return Cow::Borrowed(text);
    }
    let Some(pattern) = &*PASSWORD else {
        return Cow::Borrowed("");
    };
    let mut shown = String::new();
    let mut end = 0;
    for found in pattern.captures_iter(text) {
        let url = found.get_group_by_name("url");
        let mark = if url.is_some() { "" } else { "…" };
        if let Some(secret) = url.or_else(|| found.get_group_by_name("value")) {
            shown.extend([text.get(end..secret.start).unwrap_or_default(), mark]);
            end = secret.end;
        }
    }
    if end == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(shown)
}

pub(crate) fn path(store: &str) -> Option<&str> {
    if is_url(store) {
        None
    } else {
        Some(store.strip_prefix("sqlite:").unwrap_or(store))
    }
}

fn listed(store: &str, found: &[SessionInfo]) -> String {
    let first = found.iter().take(LISTED);
    let names: Vec<String> = first.map(|info| format!("{store}#{}", info.name)).collect();
    let more = if found.len() > LISTED { ", …" } else { "" };
    names.join(", ") + more
}

/// What a log says of itself: the members of `meta` that are listed (INSPECT §1).
pub(crate) const ABOUT: [&str; 4] = ["title", "project", "agent", "model"];

/// What is said of a session, in the order of [`ABOUT`].
pub(crate) type About = [Option<String>; ABOUT.len()];

/// What `meta` says of its session; the model is that of the request, if `meta` has none.
pub(crate) fn about_of(meta: Option<&str>) -> About {
    let meta = meta.map(members).unwrap_or_default();
    let text = |members: &[Member<'_>], name| Some(string(get(members, name)?)?.into_owned());
    let [title, project, agent, model] = ABOUT.map(|name| text(&meta, name));
    let request = || get(&meta, "request").map(members);
    let model = model.or_else(|| text(&request()?, "model"));
    [title, project, agent, model]
}

/// What is said of a session in memory. The runtime writes no title, so it is made of the words of the user, as that of a log.
/// Linear in the nodes before these.
pub(crate) fn about_session(history: &History) -> About {
    let newest = history.latest();
    let [title, project, agent, model] =
        about_of(newest.and_then(|newest| newest.meta().value("meta")));
    let words = || {
        let oldest = history.committed().iter().next();
        let nodes = oldest.or(newest)?.nodes();
        let mut texts = nodes.filter(|node| {
            node.role() == Some("user") && matches!(node.kind(), None | Some("text"))
        });
        texts.find_map(|node| title_from_text(node.field("content")?.text()?))
    };
    [title.or_else(words), project, agent, model]
}

/// What is known of a session in a log or a file besides, and of none in a store without reading it.
#[derive(Debug, Default)]
pub(crate) struct OfLog {
    /// The time of its newest step.
    pub(crate) when: Option<String>,
    /// What its calls used, as JSON.
    pub(crate) used: Value,
}

/// A line of `pactql sessions --json`: the same members for a session of a store, of a log and of a file, in which `null` is
/// what is not known.
pub(crate) fn session_json(info: &SessionInfo, about: About, of_log: OfLog) -> Value {
    let time = |nanos: i64| millis(&rfc3339_of_nanos(nanos));
    let committed = info.committed_at_ns.map(time);
    let mut json = json!({
        "name": info.name,
        "steps": info.snapshots,
        "snapshots": info.snapshots,
        "cycle": info.cycle,
        "working": info.working,
        "when": of_log.when.or_else(|| committed.clone()),
        // Not known of a session outside a store.
        "created": (info.created_at_ns != 0).then(|| time(info.created_at_ns)),
        "committed": committed,
        "source": info.source,
        "parent": info.parent,
        "used": of_log.used,
    });
    for (name, text) in ABOUT.iter().zip(about) {
        json[name] = json!(text);
    }
    json
}

/// The sessions of an open store that an address means.
///
/// # Errors
/// There are none.
pub(crate) fn sessions_of(store: &Store, address: StoreAddress<'_>) -> Result<Vec<SessionInfo>> {
    if !address.is_several() {
        // Says which names are near.
        store.session(address.one()?)?;
    }
    let found = store.sessions(address.glob())?;
    if found.is_empty() {
        return Err(Failure::plain(Exit::Missing, none_of(address)));
    }
    Ok(found)
}

/// Says that an address of several sessions has none.
pub(crate) fn none_of(address: StoreAddress<'_>) -> String {
    let store = address.store;
    match address.glob() {
        "" => format!("the store {store} has no sessions"),
        glob => format!("no session of {store} matches `{glob}`"),
    }
}

pub(crate) fn open(store: &str, access: Access) -> Result<Store> {
    // That of a server is taken to be there.
    let is_missing = path(store).is_some_and(|path| !Path::new(path).exists());
    if access != Access::Create && is_missing {
        let message = format!("there is no store {store}");
        return Err(Failure::plain(Exit::Missing, message));
    }
    let builder = Store::builder();
    let builder = match access {
        // A command reads a session once.
        Access::Read => builder.read_only().memory(READ_MEMORY),
        Access::Serve => builder.read_only(),
        Access::Damaged => builder.damaged().memory(READ_MEMORY),
        Access::Write => builder.must_exist(),
        Access::Create => builder,
    };
    Ok(builder.connect(store)?)
}

/// A context of a copy of a session, which has what its writers kept. It does not write the store.
pub(crate) fn resume(store: &Store, name: &str, builder: ContextBuilder) -> Result<Context> {
    let session = store.session(name)?;
    Ok(match store.kept(name)? {
        Some(kept) => builder.resume_kept(&session, &kept)?,
        None => builder.resume(&session)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{StoreAddress, Which, without_passwords};

    #[test]
    fn passwords_are_not_shown() {
        for (text, shown) in [
            (
                "a `postgres://u:secret@h/d#x`: b",
                "a `postgres://u@h/d#x`: b",
            ),
            ("postgresql://u:s:e@c@h:5/d?a=b", "postgresql://u@h:5/d?a=b"),
            ("postgres://h/d", "postgres://h/d"),
            (
                "postgres://h/d?user=u&password=secret&a=b#x postgres://u:p@h",
                "postgres://h/d?user=u&password=…&a=b#x postgres://u@h",
            ),
            ("postgres://h?password=secret", "postgres://h?password=…"),
            ("a.db#x u:p@h", "a.db#x u:p@h"),
            // A password may have signs that end a host, and a word may be meant as a URL of a store.
            ("`postgres://u:p/w#x?y@h/d`", "`postgres://u@h/d`"),
            ("postgres://u:my secret@h/d", "postgres://u@h/d"),
            ("postgres://h:5432/d of a@b", "postgres://h:5432/d of a@b"),
            ("Postgres://u:secret@h/d", "Postgres://u@h/d"),
            ("postgre:/u:secret@h", "postgre:/u@h"),
            ("psotgres://u:secret@h", "psotgres://u@h"),
            ("postgresql:u:secret@h", "postgresql:u@h"),
            ("postgres//u:secret@h", "postgres//u@h"),
            (
                "pg://u:secret@h, mysql://u:secret@h",
                "pg://u@h, mysql://u@h",
            ),
            (
                "host=h password='my secret' user=u",
                "host=h password=… user=u",
            ),
            ("PGPASSWORD=secret", "PGPASSWORD=…"),
            ("[password='x']", "[password='x']"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn addresses() {
        use Which::{All, Matching, One};
        for (word, expected) in [
            ("agents.db", Some(("agents.db", All))),
            ("runs/agents.db#a", Some(("runs/agents.db", One("a")))),
            ("agents.db#a/b#c", Some(("agents.db", One("a/b#c")))),
            ("agents.db#a.db", Some(("agents.db", One("a.db")))),
            ("agents.db#a-*", Some(("agents.db", Matching("a-*")))),
            ("agents.db#*", Some(("agents.db", Matching("*")))),
            ("agents.db#", Some(("agents.db", One("")))),
            ("my#runs/agents.db", Some(("my#runs/agents.db", All))),
            ("my#runs/a.db#b", Some(("my#runs/a.db", One("b")))),
            ("./a.db#b", Some(("./a.db", One("b")))),
            ("sqlite:agents", Some(("sqlite:agents", All))),
            ("sqlite:agents#a", Some(("sqlite:agents", One("a")))),
            ("sqlite:a#b.db#c", Some(("sqlite:a#b.db", One("c")))),
            ("postgres://h/d", Some(("postgres://h/d", All))),
            (
                "postgres://h/d#a*",
                Some(("postgres://h/d", Matching("a*"))),
            ),
            ("postgresql://h/d#a", Some(("postgresql://h/d", One("a")))),
            ("my#runs/a.jsonl", None),
            ("a.jsonl", None),
            ("agents.db/a.jsonl", None),
            ("agents.dbx", None),
            ("-", None),
            ("", None),
            // Selectors, and no store of these names.
            ("#a.db", None),
            ("@t0 [id='a.db#b']", None),
            (".db", None),
            (".cb[content='x.db#y", None),
        ] {
            let found = StoreAddress::parse(word).map(|address| (address.store, address.which));
            assert_eq!(found, expected, "{word}");
            if !word.contains(['[', '@']) && !word.starts_with(['#', '.']) {
                let spelled = StoreAddress::spelled(word);
                let spelled = spelled.map(|address| (address.store, address.which));
                assert_eq!(spelled, expected, "{word}");
            }
        }
        // A directory, and a file whose name has a `#`, are what they are.
        assert_eq!(StoreAddress::parse("src"), None);
    }
}
