//! Sessions by path, and snapshots by address.

use super::failure::{Exit, Failure, Result};
use super::followed::{FollowedLogs, begins_as_session};
use super::shell::quoted;
use crate::engine::Engine;
use crate::history::{At, Session};
use crate::index::{NodeRef, Snapshot};
use crate::logs::{
    Fate, Format, ImportOptions, Imported, ImportedSession, import, import_opencode, is_known_log,
    where_messages,
};
use crate::query::ir::Address;
use crate::support::diag::{Code, Diagnostic, Error};
use crate::support::text::{counted, printable};
use crate::tree::document::NO_ROOT;
use crate::tree::source::{read_file, read_files, read_slice, read_source};
use crate::tree::{Document, InputError, Limits, SourceError};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files larger than this many bytes take a while to read.
const LARGE: u64 = 16 << 20;

/// Opens a session: a file or a directory.
pub(crate) fn open(path: &Path, limits: Limits) -> Result<Session> {
    if let Some(session) = Session::streamed(path, limits) {
        return Ok(session);
    }
    let session = build(read_source(path, limits), path.to_owned());
    session.map_err(|failure| advised(failure, path, size_of(path), || read_file(path, limits)))
}

/// What a file holds.
pub(crate) enum FileContents {
    Session(Session),
    /// The sessions of a log, and what is said of it.
    Log(Vec<ImportedSession>, LogNote),
    /// Neither, and why.
    Neither(Failure),
}

/// What is said of a log that was read.
#[derive(Debug, Default)]
pub(crate) struct LogNote {
    /// The note, without a full stop; empty if there is nothing to say.
    text: String,
    /// How many branches and subagents were left out; `None` if the log was read whole.
    pub(crate) left_out: Option<usize>,
}

impl LogNote {
    /// The note as a line; `lists` is what names the sessions that were left out.
    pub(crate) fn line(&self, lists: &str) -> String {
        let lists = match self.left_out {
            None | Some(0) => String::new(),
            Some(1) => format!("; `{lists}` names it"),
            Some(_) => format!("; `{lists}` names them"),
        };
        self.with(&lists)
    }

    /// The note as a line, with the command that keeps what was read.
    pub(crate) fn line_with_import(&self) -> String {
        self.with(match self.left_out {
            None => "",
            Some(0 | 1) => "; `pactql import` keeps it",
            Some(_) => "; `pactql import` keeps them",
        })
    }

    fn with(&self, more: &str) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        format!("note: {}{more}\n", self.text)
    }
}

impl FileContents {
    /// The one session of `path`, and what is said of it; `lists` is what names the sessions of a log.
    pub(crate) fn one(self, path: &Path, lists: &str) -> Result<(Arc<Session>, LogNote)> {
        match self {
            Self::Session(session) => Ok((Arc::new(session), LogNote::default())),
            Self::Log(sessions, note) => match &sessions[..] {
                [session] => Ok((session_of(session)?, note)),
                several => Err(one_of_several(path, several.len(), lists)),
            },
            Self::Neither(failure) => Err(failure),
        }
    }
}

/// As [`expected_one`], with the help that `lists` names the sessions.
pub(crate) fn one_of_several(path: &Path, count: usize, lists: &str) -> Failure {
    let help = format!(
        "name one of them: {}#NAME; `{lists}` lists the names",
        path.display()
    );
    expected_one(path, count).with_help(help)
}

/// Says that a log has several sessions.
pub(crate) fn expected_one(path: &Path, count: usize) -> Failure {
    let path = path.display();
    let message = format!("{path} is a chat log of {count} sessions, and one is expected");
    Failure::plain(Exit::Input, message)
}

/// The session that a log makes.
pub(crate) fn session_of(log: &ImportedSession) -> Result<Arc<Session>> {
    log.shared()
        .map_err(|error| Failure::internal(format!("the session cannot be read: {error}")))
}

/// As [`open`], or the sessions of a log, without branches and subagents.
pub(crate) fn open_or_logs(
    path: &Path,
    limits: Limits,
    followed: Option<&FollowedLogs>,
) -> Result<FileContents> {
    let log = followed.and_then(|followed| followed.look(path, limits));
    if let Some((sessions, note)) = log.and_then(own) {
        return Ok(FileContents::Log(sessions, note));
    }
    if let Some(session) = Session::streamed(path, limits) {
        return Ok(FileContents::Session(session));
    }
    let documents = read_source(path, limits);
    build_or_logs(documents, path, size_of(path), || read_file(path, limits))
}

/// What a file of a folder holds; of a log all sessions.
///
/// # Errors
/// It begins as a session, and is not a valid one.
pub(crate) fn in_folder(
    path: &Path,
    limits: Limits,
    followed: Option<&FollowedLogs>,
) -> Result<FileContents> {
    if let Some(log) = followed.and_then(|followed| followed.look(path, limits)) {
        return Ok(log_in(path, log));
    }
    if let Some(session) = Session::streamed(path, limits) {
        return Ok(FileContents::Session(session));
    }
    match import_opencode(path, &ImportOptions::default()) {
        Ok(None) => {}
        Ok(Some(log)) => return Ok(log_in(path, log)),
        Err(error) => {
            let failure = Failure::plain(Exit::Input, format!("{}: {error}", path.display()));
            return Ok(FileContents::Neither(failure));
        }
    }
    let bytes = match read_file(path, limits) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(FileContents::Neither(error.into())),
    };
    of_bytes(path, bytes)
}

/// As [`in_folder`], of the bytes of a file.
pub(crate) fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<FileContents> {
    let is_session = begins_as_session(&bytes);
    let refused = match import(&bytes, &ImportOptions::default()) {
        _ if is_session => None,
        Ok(log) if log.report.messages(Fate::Understood) > 0 => {
            return Ok(log_in(path, log));
        }
        Ok(_) => None,
        Err(error) => Some(Failure::Input(vec![(path.to_owned(), error)], None)),
    };
    let documents = read_files([(Ok(bytes), path.to_owned())]);
    match build(documents, path.to_owned()) {
        Ok(session) => Ok(FileContents::Session(session)),
        Err(failure) if is_session => Err(failure),
        Err(failure) => Ok(FileContents::Neither(refused.unwrap_or(failure))),
    }
}

/// The sessions of a log in a folder, and a note on lines of it that could not be read.
fn log_in(path: &Path, log: Imported) -> FileContents {
    let unreadable = log.report.unreadable();
    let path = printable(&path.display().to_string());
    let text = unreadable.map(|lines| format!("read {path} without {lines}"));
    let note = LogNote {
        text: text.unwrap_or_default(),
        left_out: None,
    };
    FileContents::Log(log.sessions, note)
}

/// Whether a file has a document, or begins as one.
pub(crate) fn is_document(file: &Path, limits: Limits) -> bool {
    let is = |bytes: Vec<u8>| begins_as_session(&bytes) || read_slice(&bytes).is_ok();
    read_file(file, limits).is_ok_and(is)
}

/// The bytes of a file; `None` of anything else.
fn size_of(path: &Path) -> Option<u64> {
    let data = path.metadata().ok().filter(|data| !data.is_dir());
    data.map(|data| data.len())
}

/// Builds a session of documents that were read from `path`, or the sessions of the log that it is: `bytes` is the
/// size of the file, which `read` returns, and `None` of a directory.
pub(crate) fn build_or_logs(
    documents: Result<Vec<Document>, SourceError>,
    path: &Path,
    bytes: Option<u64>,
    read: impl Fn() -> Result<Vec<u8>, SourceError>,
) -> Result<FileContents> {
    let failure = match build(documents, path.to_owned()) {
        Ok(session) => return Ok(FileContents::Session(session)),
        Err(failure) => failure,
    };
    let log = match bytes {
        Some(_) if failure.exit() == Exit::Input => read().ok(),
        _ => None,
    };
    let log = log.and_then(|log| of_log(&log));
    match log {
        Some((sessions, note)) => Ok(FileContents::Log(sessions, note)),
        None => Err(advised(failure, path, bytes, read)),
    }
}

const EXPECTED: &str = "expected a log of an agent, chat messages, or snapshot documents such as {\"root\": {\"children\": []}}";

/// Says of an invalid file that it is a chat log, and how to make a session of it, or why it cannot be read as one; or, if
/// it has nothing in it, what was expected. Adds to an invalid directory's faults what a directory is read as.
fn advised(
    failure: Failure,
    file: &Path,
    bytes: Option<u64>,
    read: impl FnOnce() -> Result<Vec<u8>, SourceError>,
) -> Failure {
    let bytes = match bytes {
        _ if !matches!(failure, Failure::Input(..)) => return failure,
        None => {
            return failure.with_help(
                "a directory of documents is one session; with a .jsonl file in it, each file is a session",
            );
        }
        Some(bytes) if bytes < LARGE => read(),
        Some(_) => return failure,
    };
    // What cannot be read is not empty: the failure says why.
    let Ok(bytes) = bytes else {
        return failure;
    };
    let path = file.display();
    match bytes.trim_ascii() {
        b"" => nothing(&format!("{path} is empty")),
        b"[]" => nothing(&format!("{path} is an empty list")),
        b"{}" => failure.with_help(EXPECTED),
        _ => match refused_log(file, &bytes) {
            Some(refused) => refused,
            None => match import_line(&path.to_string(), &bytes) {
                Some(line) => {
                    let message = format!("{path} is a chat log, not a session");
                    Failure::plain(Exit::Input, message).with_help(line)
                }
                // Who reads logs never made a document, and is not told of its members.
                None if !begins_as_session(&bytes) && failure.message().ends_with(NO_ROOT) => {
                    let message = format!("{path} is neither a log that is known nor a session");
                    Failure::plain(Exit::Input, message).with_help(format!(
                        "{EXPECTED}; `pactql import FILE --messages POINTER` says where else messages are"
                    ))
                }
                None => failure,
            },
        },
    }
}

/// Why a log of a known kind cannot be read; `None` of anything else.
pub(crate) fn refused_log(file: &Path, bytes: &[u8]) -> Option<Failure> {
    if begins_as_session(bytes) || !is_known_log(bytes) {
        return None;
    }
    let error = import(bytes, &ImportOptions::default()).err()?;
    Some(Failure::Input(vec![(file.to_owned(), error)], None))
}

/// The command that imports a log, if the input is one that has messages.
fn import_line(path: &str, bytes: &[u8]) -> Option<String> {
    let path = quoted(path);
    let imported = import(bytes, &ImportOptions::default()).ok();
    let is_log = imported.is_some_and(|log| log.report.messages(Fate::Understood) > 0);
    let options = if is_log {
        String::new()
    } else {
        format!(" --messages '{}'", where_messages(bytes)?)
    };
    Some(format!("pactql import {path}{options} -o sessions/"))
}

/// The sessions of a log, and a note that says that it was one. Branches and subagents are left out. `None` if the
/// bytes are not a log.
pub(crate) fn of_log(bytes: &[u8]) -> Option<(Vec<ImportedSession>, LogNote)> {
    if bytes.trim_ascii().is_empty() {
        return None;
    }
    own(import(bytes, &ImportOptions::default()).ok()?)
}

fn is_branch(session: &ImportedSession) -> bool {
    let name = session.name.as_deref().unwrap_or_default();
    name.starts_with('~') || name.starts_with('/') && name.contains('~')
}

/// Whether a session is a branch or a subagent of another one of its log. A subagent whose session is in another log has
/// this one for itself.
pub(crate) fn belongs(session: &ImportedSession) -> bool {
    let name = session.name.as_deref().unwrap_or_default();
    is_branch(session) || name.starts_with('/') && session.parent.is_none()
}

/// The sessions of an imported log without branches and subagents, and a note that says so.
fn own(imported: Imported) -> Option<(Vec<ImportedSession>, LogNote)> {
    let (others, own): (Vec<_>, Vec<_>) = imported.sessions.into_iter().partition(belongs);
    if own.is_empty() || imported.report.messages(Fate::Understood) == 0 {
        return None;
    }
    let format = imported.format.map_or("", Format::name);
    let unreadable = imported.report.unreadable();
    let without = unreadable.map_or(String::new(), |lines| format!(" without {lines}"));
    let branches = others.iter().filter(|one| is_branch(one)).count();
    let parts = [(branches, "branch"), (others.len() - branches, "subagent")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, what)| counted(count as u64, what))
        .collect();
    let left_out = if parts.is_empty() {
        String::new()
    } else {
        format!("; {} left out", parts.join(" and "))
    };
    let note = LogNote {
        text: format!("read as a log ({format}){without}{left_out}"),
        left_out: Some(others.len()),
    };
    Some((own, note))
}

fn nothing(message: &str) -> Failure {
    Failure::plain(Exit::Input, message).with_help(EXPECTED)
}

/// Builds a session of documents that were read from `path`.
pub(crate) fn build(
    documents: Result<Vec<Document>, SourceError>,
    path: PathBuf,
) -> Result<Session> {
    let documents = documents?;
    if documents.is_empty() {
        let name = path.display();
        return Err(nothing(&if path.is_dir() {
            format!("the directory {name} has no logs and no sessions")
        } else {
            format!("{name} is empty")
        }));
    }
    Session::from_documents(documents).map_err(|error| Failure::Input(by_file(error, &path), None))
}

/// Fields that are kept as custom ones, though their names are nearly those of headers.
const NEARLY: [(&str, &str); 9] = [
    ("node_type", "nodeType"),
    ("nodetype", "nodeType"),
    ("NodeType", "nodeType"),
    ("node-type", "nodeType"),
    ("parentId", "parent_id"),
    ("createdAtNs", "created_at_ns"),
    ("createdAtIso", "created_at_iso"),
    ("creationIndex", "creation_index"),
    ("contentHash", "content_hash"),
];

/// The versions of the specification that documents are read by.
const VERSIONS: [&str; 2] = ["PACT/0.1", "PACT/0.1.0"];

/// Warnings about a session that was read, one a line: fields whose names are nearly those of
/// headers, a version that is not known.
pub(crate) fn remarks(session: &Session) -> String {
    let history = session.history();
    let mut lines = String::new();
    if history.is_lazy() {
        // It was remarked on when it was imported, and would have to be loaded.
        return lines;
    }
    let Some(newest) = history.latest() else {
        return lines;
    };
    let has = |name: &str| {
        let mut pieces = newest.pieces().iter();
        pieces.any(|piece| piece.segment().custom_attribute(name).is_some())
    };
    let untyped = |node: NodeRef<'_>| node.field("type").is_some() && node.node_type().is_none();
    let nearly = NEARLY.iter().filter(|(name, _)| has(name)).copied();
    let typed = (has("type") && newest.nodes().any(untyped)).then_some(("type", "nodeType"));
    for (name, header) in nearly.chain(typed) {
        let _ = writeln!(
            lines,
            "warning: `{name}` is kept as a custom field of nodes; the header is `{header}`"
        );
    }
    let version = newest
        .spec_version()
        .and_then(|json| serde_json::from_str(json).ok());
    let version: Option<String> = version;
    if let Some(version) = version.filter(|version| !VERSIONS.contains(&&**version)) {
        let version = printable(&version);
        let _ = writeln!(
            lines,
            "warning: the spec_version `{version}` is not known; the documents are read as {}",
            VERSIONS[0]
        );
    }
    lines
}

fn by_file(error: InputError, path: &Path) -> Vec<(PathBuf, InputError)> {
    let mut files: Vec<(PathBuf, InputError)> = Vec::new();
    for mut fault in error.faults {
        let file = fault.file.take();
        let file = file.as_deref().unwrap_or(path);
        match files.last_mut() {
            Some((last, error)) if last == file => error.faults.push(fault),
            _ => {
                let faults = vec![fault];
                files.push((file.to_owned(), InputError { faults, more: 0 }));
            }
        }
    }
    if let Some((_, last)) = files.last_mut() {
        last.more = error.more;
    }
    files
}

/// The snapshot at an address such as `@t0` or `@c12`; without one, the working state, or else the
/// newest snapshot.
pub(crate) fn at(session: &Session, address: Option<&str>) -> Result<Arc<Snapshot>> {
    let history = session.history();
    let place = address.map_or(Ok(At::Working), place)?;
    place.fetch(&history)?;
    let At::Committed(found) = place else {
        return history
            .latest()
            .cloned()
            .ok_or_else(|| Failure::plain(Exit::Input, "the session has no snapshots"));
    };
    history.at(found).cloned().map_err(|error| {
        let text = address.unwrap_or_default();
        let diagnostic = Diagnostic::error(Code::SnapshotNotFound, "no such snapshot");
        let diagnostic = diagnostic.at(0..text.len(), error.why);
        Error::new(text, diagnostic.with_help(error.which)).into()
    })
}

/// The address of a committed snapshot as a selector has it.
pub(crate) fn address(text: &str) -> String {
    let digits = text.starts_with(|first: char| first.is_ascii_digit());
    match text {
        "latest" => "@t0".to_owned(),
        _ if digits => format!("@c{text}"),
        _ if text.starts_with('@') => text.to_owned(),
        _ => format!("@{text}"),
    }
}

/// The address of a committed snapshot, with its `@`: a number alone is a cycle, and `latest` the newest commit.
pub(crate) fn typed_address(word: &str) -> Option<String> {
    let address = address(word);
    address.parse::<Address>().is_ok().then_some(address)
}

/// The two addresses of a range such as `3..7`.
pub(crate) fn ends(word: &str) -> Option<[String; 2]> {
    let (from, to) = word.split_once("..")?;
    Some([typed_address(from)?, typed_address(to)?])
}

/// The time that a word means, as a selector has it: an address, a range, or any other word after `@`, which the
/// selector language judges. Empty for the working state.
pub(crate) fn time(word: &str) -> Option<String> {
    match ends(word) {
        Some(ends) => Some(ends.join("..")),
        None if word == "working" || word == "@working" => Some(String::new()),
        None => typed_address(word).or_else(|| {
            let is_time = word.starts_with('@') && !word.contains([' ', '>', '[']);
            is_time.then(|| word.to_owned())
        }),
    }
}

/// Parses the address of a snapshot, whose `@` may be left out, a cycle alone, `latest` or `working`.
pub(crate) fn place(text: &str) -> Result<At> {
    if text == "working" {
        return Ok(At::Working);
    }
    address(text).parse().map(At::Committed).map_err(|_| {
        let failure = Failure::value(format!(
            "expected the address of a snapshot, found `{text}`"
        ));
        failure.with_help(match meant(text) {
            Some(meant) => format!("write `{meant}`"),
            None if is_number(address(text).trim_start_matches(['@', 'c', 't', '-'])) => {
                format!("the number is above {}, the largest there is", i64::MAX)
            }
            None => "@t0 is the newest, @t-2 two commits back, @c12 that of cycle 12, \
                     `working` the working state"
                .to_owned(),
        })
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The time that `text` is in a selector once its mistake is undone.
fn meant(text: &str) -> Option<String> {
    let at = if text.starts_with('@') { "" } else { "@" };
    let refused = Engine::new().prepare(&format!("{at}{text} *")).err()?;
    let meant = refused.first().correction()?.strip_suffix(" *")?;
    place(meant).is_ok().then(|| meant.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{meant, place};
    use crate::history::At;
    use crate::query::ir::Address;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("@t0", Some(Address::Back(0))),
            ("t-3", Some(Address::Back(3))),
            ("@c12", Some(Address::Cycle(12))),
            ("12", Some(Address::Cycle(12))),
            ("latest", Some(Address::Back(0))),
            ("12x", None),
            ("@t3", None),
            ("@t-+3", None),
            ("@t-", None),
            ("@c", None),
            ("", None),
            ("@*", None),
        ] {
            let found = place(text).ok();
            assert!(found == expected.map(At::Committed), "{text}");
        }
        for (typed, expected) in [
            ("@6", Some("@c6")),
            ("@step6", Some("@c6")),
            ("@-1", Some("@t0")),
            ("@-3", Some("@t-2")),
            ("@to", Some("@t0")),
            ("@t3", Some("@t-3")),
            ("@1-3", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(meant(typed).as_deref(), expected, "{typed}");
        }
        for (large, is_said) in [("9".repeat(20), true), ("9x".to_owned(), false)] {
            let refused = place(&large).expect_err("no address").json().to_string();
            assert_eq!(refused.contains("is above 9223372036854775807"), is_said);
        }
    }
}
