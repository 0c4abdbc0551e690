//! `pactql import`: what is made of chat logs and of files of sessions, and where it goes: to files, or into a store, as new
//! sessions or as more of those whose log has grown.

use super::command::{Invocation, RunCommand, print, say, stream};
use super::follow::{FollowedFiles, in_turns};
pub(super) use super::import_read::ImportArgs;
use super::import_read::{
    ImportTarget, ImportedCounts, Importing, Named, Read, ReadSession, RefusedLog, Written, several,
};
use super::input;
use super::progress::Progress;
use super::read_sessions::open_store;
use super::store::{import_copy, is_copy};
use super::words::quoted;
use super::write::new_name;
use crate::app::present::followed::FollowedLogs;
use crate::app::present::stores::{Access, StoreAddress, Which};
use crate::app::present::{Exit, Failure, Result, counted, printable};
use crate::history::Session;
use crate::logs::{ImportOptions, MessageLocation};
use crate::store::{LogImport, NewSession, Store};
use crate::support::diag::{Code, Diagnostic, Error};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// How many of the files that were left out are named.
const SHOWN: usize = 20;

impl RunCommand for ImportArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let importing = Importing {
            args: self,
            options: ImportOptions {
                format: self.from,
                lenient: self.lenient,
                strict: self.strict,
                redact: self.redact.clone(),
                location: match (&self.messages, &self.steps) {
                    (Some(pointer), _) => MessageLocation::Messages(pointer.clone()),
                    (None, Some(pointer)) => MessageLocation::Steps(pointer.clone()),
                    (None, None) => MessageLocation::Usual,
                },
            },
            target: self.target()?,
            limits: with.limits,
            opened: OnceLock::new(),
            followed: self.follow.then(FollowedLogs::default),
        };
        let is_json = match self.report.as_deref() {
            None => with.is_json(),
            Some(form) => form == "json",
        };
        if self.logs.iter().any(|log| is_copy(log)) {
            let written = importing.copies()?;
            return importing.report(&Read::default(), &written, is_json);
        }
        if self.follow {
            return follow(&importing);
        }
        let mut read = Read::new(&importing)?;
        // Nothing is written until everything has been read without a fault.
        let (sessions, written) = read.take(&importing);
        let written = match importing.target {
            ImportTarget::Store(address) => write_store(written, address, sessions, true)?,
            target => self.write_files(target, written, sessions)?,
        };
        importing.report(&read, &written, is_json)
    }
}

impl Importing<'_> {
    /// Says what was read and written; as JSON it is the result, unless that is the session itself.
    fn report(&self, read: &Read, written: &ImportedCounts, json: bool) -> Result<Exit> {
        let report = &written.report;
        let (json_of_logs, text_of_logs) = log_report(&written.again);
        if json {
            let mut json = report.to_json();
            if self.is_into_store() {
                json["copied"] =
                    json!({"sessions": written.sessions, "snapshots": written.snapshots});
                json["store"] = json_of_logs;
            }
            if self.args.skip_existing {
                json["existing"] = json!(written.existing);
            }
            if !read.skipped.is_empty() {
                let skipped = read.skipped.iter();
                let skipped = skipped.map(|(file, why)| json!({"file": file, "message": why}));
                json["invalid"] = skipped.collect();
            }
            if !written.refused.is_empty() {
                json["refused"] = json!(written.refused);
            }
            let line = format!("{json}\n");
            if !matches!(self.target, ImportTarget::Stdout) {
                return print(&line);
            }
            say(&line);
            return Ok(Exit::Ok);
        }
        let mut text = String::new();
        if written.logs > 0 || !self.is_into_store() {
            text = format!("{report}\n");
        }
        if written.sessions > 0 {
            let sessions = counted(written.sessions as u64, "session");
            let snapshots = counted(written.snapshots as u64, "snapshot");
            text += &format!("copied {sessions}, {snapshots}\n");
        }
        text += &text_of_logs;
        if written.existing > 0 {
            let existing = counted(written.existing as u64, "session");
            text += &format!("left {existing} as they are in the store\n");
        }
        for (file, message) in read.skipped.iter().take(SHOWN) {
            text += &format!("skipped {}: {}\n", printable(file), printable(message));
        }
        if let more @ 1.. = read.skipped.len().saturating_sub(SHOWN) {
            text += &format!("skipped {more} more\n");
        }
        for RefusedLog {
            file,
            message,
            help,
        } in written.refused.iter().take(SHOWN)
        {
            let (file, message, help) = (printable(file), printable(message), printable(help));
            let _ = writeln!(text, "left out {file}: {message}; {help}");
        }
        if let more @ 1.. = written.refused.len().saturating_sub(SHOWN) {
            let _ = writeln!(text, "left out {}", counted(more as u64, "more log"));
        }
        if text.is_empty() {
            text += "note: there is nothing to import\n";
        }
        say(&text);
        Ok(Exit::Ok)
    }

    fn copies(&self) -> Result<ImportedCounts> {
        let args = self.args;
        let is_plain = args.name.is_none() && !args.follow && !args.skip_existing;
        let address = match self.target {
            ImportTarget::Store(address) if is_plain && address.glob().is_empty() => address,
            _ => {
                let message =
                    "a copy of a store is imported into a store, as a whole, with its names";
                return Err(Failure::usage(message).with_help("pactql import DIR -o agents.db"));
            }
        };
        if let Some(other) = args.logs.iter().find(|log| !is_copy(log)) {
            let message = format!("`{other}` is not a copy of a store, as the others are");
            return Err(Failure::usage(message).with_help("import it by itself"));
        }
        let store = open_store(address.store, Access::Create)?;
        let mut written = ImportedCounts::default();
        for copy in &args.logs {
            let (sessions, snapshots) = import_copy(copy, &store)?;
            written.sessions += sessions;
            written.snapshots += snapshots;
        }
        Ok(written)
    }
}

impl ImportArgs {
    fn target(&self) -> Result<ImportTarget<'_>> {
        let target = match self.output.as_deref() {
            None | Some("-") => ImportTarget::Stdout,
            Some(word) => match StoreAddress::parse(word) {
                Some(address) => ImportTarget::Store(address),
                None if word.ends_with('/') || Path::new(word).is_dir() => {
                    ImportTarget::Directory(word)
                }
                None if [".sqlite", ".sqlite3", ".db3"]
                    .iter()
                    .any(|end| word.ends_with(end)) =>
                {
                    let message = format!(
                        "`{word}` is not the name of a store, so JSON Lines would be written"
                    );
                    let name = word.rsplit_once('.').map_or(word, |(name, _)| name);
                    return Err(Failure::usage(message).with_help(format!(
                        "a store ends in `.db`: -o {}; or: -o {}",
                        quoted(&format!("{name}.db")),
                        quoted(&format!("sqlite:{word}"))
                    )));
                }
                None => ImportTarget::File(word),
            },
        };
        match target {
            ImportTarget::Store(address) if self.name.is_some() && !address.glob().is_empty() => {
                Err(Failure::usage("the session is named twice")
                    .with_help("give `--name`, or `-o STORE#name`"))
            }
            ImportTarget::Store(_) => Ok(target),
            _ if self.name.is_some() => Err(Failure::usage("`--name` names a session of a store")
                .with_help("`-o` names a file")),
            _ if self.follow => Err(Failure::usage("`--follow` writes into a store")
                .with_help("give a store: -o agents.db")),
            _ => Ok(target),
        }
    }

    fn write_files(
        &self,
        target: ImportTarget<'_>,
        mut written: Written<'_>,
        mut sessions: Vec<Named>,
    ) -> Result<ImportedCounts> {
        let directory = match target {
            ImportTarget::Directory(path) => Some(path),
            // A name without an extension is a directory's if there are several sessions.
            ImportTarget::File(path) if sessions.len() != 1 => {
                let path = Path::new(path);
                let is_free = path.extension().is_none() && !path.exists();
                is_free.then(|| path.to_str()).flatten()
            }
            _ => None,
        };
        if let Some(directory) = directory {
            let files = sessions.iter().map(|named| {
                let file = Path::new(directory).join(format!("{}.jsonl", named.name));
                file.to_string_lossy().into_owned()
            });
            let files: Vec<String> = files.collect();
            let sessions = sessions.into_iter();
            input::write_each(sessions, &files, &self.logs, self.force, |mut named| {
                let (made, _) = written.take(&mut named)?;
                Ok(move |out: &mut dyn Write| self.write_log(&made, out))
            })?;
            return Ok(written.counts);
        }
        let [named] = &mut sessions[..] else {
            return Err(several(target, sessions.len()));
        };
        if let ImportTarget::File(path) = target {
            input::check_output(path, &self.logs, self.force)?;
        }
        let (made, _) = written.take(named)?;
        match target {
            ImportTarget::File(path) => input::write(path, |out| self.write_log(&made, out))?,
            _ => stream(|out| self.write_log(&made, out)).map(|_| ())?,
        }
        Ok(written.counts)
    }

    fn write_log(&self, made: &ReadSession, out: &mut dyn Write) -> io::Result<()> {
        match made {
            ReadSession::Log(log) => log.recording.write_jsonl(out, self.full),
            // Read for stores only.
            _ => Ok(()),
        }
    }
}

/// What became of the sessions of logs that were in the store, as JSON and as lines; the lines are empty if there
/// was none.
pub(super) fn log_report(logs: &LogImport) -> (Value, String) {
    let pairs = |names: &[(String, String)]| -> Vec<Value> {
        let pairs = names.iter();
        pairs
            .map(|(from, to)| json!({"from": from, "to": to}))
            .collect()
    };
    let json = json!({
        "grown": logs.grown,
        "kept_names": pairs(&logs.kept_names),
        "new": logs.new,
        "renamed": pairs(&logs.renamed),
        "same": logs.same,
        "snapshots": logs.snapshots,
    });
    let mut text = String::new();
    if logs.new + logs.grown + logs.same > 0 {
        let snapshots = counted(logs.snapshots as u64, "snapshot");
        let new = counted(logs.new as u64, "session");
        let (grown, same) = (logs.grown, logs.same);
        let _ = writeln!(
            text,
            "added {snapshots}: {new} new, {grown} grown, {same} as before"
        );
    }
    for (from, to) in &logs.renamed {
        let _ = writeln!(text, "`{}` is now `{}`", printable(from), printable(to));
    }
    for (name, there) in &logs.kept_names {
        let (name, there) = (printable(name), printable(there));
        let _ = writeln!(text, "`{name}` keeps its name in the store, `{there}`");
    }
    (json, text)
}

fn add(all: &mut LogImport, more: LogImport) {
    all.new += more.new;
    all.grown += more.grown;
    all.same += more.same;
    all.snapshots += more.snapshots;
    all.renamed.extend(more.renamed);
    for kept in more.kept_names {
        // A log that is followed is imported often.
        if !all.kept_names.contains(&kept) {
            all.kept_names.push(kept);
        }
    }
}

/// Writes sessions; none if one of them is there already and is not of a log, or all but those. `names` says that a name
/// that is given is that of the session from now on, also if it has another one by now.
fn write_store(
    mut written: Written<'_>,
    address: StoreAddress<'_>,
    mut sessions: Vec<Named>,
    names: bool,
) -> Result<ImportedCounts> {
    let importing = written.importing;
    let given = sessions.iter_mut().map(|named| &mut named.name);
    importing.rename(address, given.collect())?;
    let store = importing.store()?;
    let follows = importing.args.follow;
    let there = match &sessions[..] {
        // Looked up by its name.
        [one, more @ ..] if follows || more.is_empty() && !one.is_log() => {
            store.origins(&one.name)?
        }
        _ => store.origins("")?,
    };
    let is_taken = |named: &Named| there.has_name(&named.name);
    let before = sessions.len();
    if importing.args.skip_existing {
        sessions.retain(|named| !is_taken(named));
    } else {
        let others = sessions.iter().filter(|named| !named.is_log());
        let mut taken = others.filter(|named| is_taken(named));
        if let Some(first) = taken.next() {
            return Err(exists(address, &first.name, before, taken.count()));
        }
    }
    let existing = before - sessions.len();
    let chosen = !matches!(address.which, Which::All) || importing.args.name.is_some();
    let chosen = sessions
        .iter()
        .find(|only| names && chosen && only.is_log());
    let chosen = chosen.map(|only| only.name.clone());
    let unchanged = written.take_unchanged(&mut sessions);
    written.counts.existing = existing;
    written.counts.again.same += unchanged;
    // The logs that have something in the store: a session, or another of the same log.
    let is_known = |named: &Named| {
        let source = || written.source(named);
        is_taken(named) || source().is_some_and(|path| there.has_source(&path))
    };
    let logs = sessions.iter();
    let logs = logs.filter(|named| named.is_log() && (follows || is_known(named)));
    let logs: HashSet<usize> = logs.map(|named| named.file).collect();
    drop(there);
    let (mut again, new): (Vec<Named>, Vec<Named>) = sessions
        .into_iter()
        .partition(|named| named.is_log() && logs.contains(&named.file));
    again.extend(import_all(address.store, store, &mut written, new)?);
    for sessions in again.chunk_by_mut(|a, b| a.file == b.file) {
        let before = (written.counts.logs, written.counts.report.clone());
        match import_log(address, store, &mut written, sessions, chosen.is_some()) {
            Ok(done) => add(&mut written.counts.again, done),
            // One log stops no other.
            Err(failure) => {
                (written.counts.logs, written.counts.report) = before;
                written.refuse(sessions, failure)?;
            }
        }
    }
    written.check_refused()?;
    if let Some(name) = chosen.filter(|_| written.counts.refused.is_empty()) {
        store.keep_name(&name)?;
    }
    Ok(written.counts)
}

/// Brings the sessions of one log up to what it says now.
fn import_log(
    address: StoreAddress<'_>,
    store: &Store,
    written: &mut Written<'_>,
    sessions: &mut [Named],
    chosen: bool,
) -> Result<LogImport> {
    let source = sessions.first().and_then(|named| written.source(named));
    let (mut read, mut marks) = (Vec::new(), Vec::new());
    for named in sessions {
        let (made, mark) = written.take(named)?;
        read.push((named.name.clone(), made.session()?));
        marks.extend(mark);
    }
    let sessions = read.iter();
    let sessions = sessions.map(|(name, session)| (name.clone(), &**session));
    let sessions: Vec<(String, &Session)> = sessions.collect();
    if written.importing.args.skip_existing {
        return import_others(store, &sessions, source.as_deref());
    }
    let done = store.import_marked_log(&sessions, source.as_deref(), &marks, chosen);
    done.map_err(|error| {
        if error.code() != Code::SessionExists {
            return error.into();
        }
        let text = error.to_string();
        let is_it = |name: &String| text.contains(&format!("has a session `{name}` already"));
        match read.iter().find(|(name, _)| is_it(name)) {
            Some((name, _)) if written.has_several() => {
                let there = quoted(&format!("{}#{name}", address.store));
                let help = format!(
                    "`pactql store rename {there} NAME` frees the name; then import it again"
                );
                exists(address, name, 1, 0).advised(help)
            }
            Some((name, _)) => exists(address, name, 1, 0),
            None => error.into(),
        }
    })
}

/// Imports the sessions of a log that are not there beside those that are, which stay as they are. They get no marks: those
/// are of the whole log.
fn import_others(
    store: &Store,
    sessions: &[(String, &Session)],
    source: Option<&str>,
) -> Result<LogImport> {
    store.check_new_of_log(sessions, source)?;
    let new = sessions.iter().map(|(name, session)| NewSession {
        name: name.clone(),
        session: *session,
        source: source.map(str::to_owned),
        mark: None,
    });
    let imported = store.import_marked(new, |_| true);
    imported.map_err(|stopped| stopped.error)?;
    Ok(LogImport::default())
}

impl Importing<'_> {
    /// Gives the one session its name, and refuses names that no session can have.
    fn rename(&self, address: StoreAddress<'_>, mut names: Vec<&mut String>) -> Result<()> {
        let named = match address.which {
            Which::All => self.args.name.as_deref(),
            _ => Some(new_name(address)?),
        };
        if let Some(name) = named {
            match &mut names[..] {
                [one] => name.clone_into(one),
                [] => {}
                _ => return Err(several(ImportTarget::Store(address), names.len())),
            }
        }
        let is_wrong = |name: &&&mut String| name.contains('*') || name.is_empty();
        match names.iter().find(is_wrong) {
            None => Ok(()),
            Some(name) => Err(Failure::usage(format!(
                "a session cannot be called `{name}`: a `*` is for patterns, and a name is not empty"
            ))
            .with_help("`--name` gives another name")),
        }
    }
}

fn exists(address: StoreAddress<'_>, name: &str, sessions: usize, more: usize) -> Failure {
    let store = address.store;
    let whole = quoted(&format!("{store}#{name}"));
    let delete = format!("to replace it, first: pactql store delete {whole} --yes");
    let help = match (sessions, more) {
        (1, _) => format!("choose another name; {delete}"),
        (_, 0) => format!("`--skip-existing` imports the others; {delete}"),
        _ => format!("and {more} more of these names; `--skip-existing` imports the others"),
    };
    let message = format!("the store {store} has a session `{name}` already");
    let error = Diagnostic::error(Code::SessionExists, message);
    Error::new("", error.with_help(help)).into()
}

/// Writes sessions, many in a transaction. If one fails, those before it stay, and the failure says which. Returns the
/// sessions of the logs of which another program has written one meanwhile.
fn import_all(
    store: &str,
    opened: &Store,
    written: &mut Written<'_>,
    mut sessions: Vec<Named>,
) -> Result<Vec<Named>> {
    let skips = written.importing.args.skip_existing;
    let passes = sessions.iter();
    // Standard input is not read twice.
    let passes = passes.map(|named| skips || named.is_log() && written.source(named).is_some());
    let passes: Vec<bool> = passes.collect();
    let mut there = Vec::new();
    let progress = Progress::bar(sessions.len());
    let mut unread = None;
    let ready = sessions.iter_mut().map_while(|named| {
        progress.step();
        let source = written.source(named);
        let taken = written.take_uncounted(named);
        match taken.and_then(|(made, mark)| Ok((made.session()?, mark))) {
            Ok((session, mark)) => Some(NewSession {
                name: named.name.clone(),
                session,
                source,
                mark,
            }),
            Err(failure) => {
                unread = Some(failure);
                None
            }
        }
    });
    let passes = |at: usize| {
        there.extend(passes[at].then_some(at));
        passes[at]
    };
    let (imported, failure) = match opened.import_marked(ready, passes) {
        Ok(imported) => (imported, unread),
        Err(stopped) => (stopped.imported, Some(stopped.error.into())),
    };
    drop(progress);
    let Some(failure) = failure else {
        let files: HashSet<usize> = there.iter().map(|at| sessions[*at].file).collect();
        let is_written = |(at, named): &(usize, &Named)| {
            if skips {
                there.binary_search(at).is_err()
            } else {
                !files.contains(&named.file)
            }
        };
        for (_, named) in sessions.iter().enumerate().filter(is_written) {
            written.count_taken(named);
        }
        if skips {
            written.counts.existing += there.len();
            return Ok(Vec::new());
        }
        sessions.retain(|named| files.contains(&named.file));
        return Ok(sessions);
    };
    if let (Some(at), true) = (imported.checked_sub(1), sessions.len() > 1) {
        say(&format!(
            "note: {imported} of {} are in {store}, up to `{}`; `--skip-existing` goes on after them\n",
            counted(sessions.len() as u64, "session"),
            printable(&sessions[at].name)
        ));
    }
    Err(failure)
}

/// Follows logs until the program is interrupted.
///
/// # Errors
/// All logs have been given up; the exit code is that of the first. Until then the faults of a log are printed, and
/// the others are followed.
pub(super) fn follow(importing: &Importing<'_>) -> Result<Exit> {
    let ImportTarget::Store(address) = importing.target else {
        return Err(Failure::internal("logs are followed into a store"));
    };
    let mut followed = FollowedFiles::default();
    let mut again = LogImport::default();
    let mut is_named = false;
    let ended = in_turns(|stopped| {
        for file in importing.files()? {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            let done = followed.look(file, |file, begun| {
                // Only what was imported before this program began is as it was.
                let marks = (!begun).then(|| importing.marks(std::slice::from_ref(file)));
                let marks = marks.unwrap_or_default();
                let (sessions, written) = Read::of_file(importing, file, &marks)?.take(importing);
                if sessions.iter().any(|named| !named.is_log()) {
                    let message = "it is a session already, not a log";
                    return Err(Failure::plain(Exit::Input, message));
                }
                // Later turns leave a session the name that it was given meanwhile.
                let done = write_store(written, address, sessions, !is_named)?.again;
                is_named = true;
                if done.snapshots > 0 || !done.renamed.is_empty() {
                    let snapshots = counted(done.snapshots as u64, "snapshot");
                    say(&format!("{}: {snapshots} more\n", printable(&file.stem)));
                }
                Ok(done)
            })?;
            if let Some(done) = done {
                add(&mut again, done);
            }
        }
        Ok(followed.end_turn())
    });
    say(&log_report(&again).1);
    ended
}
