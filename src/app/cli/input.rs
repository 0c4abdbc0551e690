//! Inputs and output files.

use super::command::{Invocation, stream};
use super::progress::Progress;
use super::words::{in_quotes, is_selector, quoted, retyped, words};
use crate::app::present::opened::uncompressed;
use crate::app::present::{Exit, Failure, Result, quote};
use crate::inspect::is_condition;
use crate::logs::file::output;
use crate::logs::stem;
use crate::support::diag::{Code, Diagnostic, Error, nearest};
use crate::tree::Limits;
use crate::tree::source::{NO_TARGET, read_all, read_file};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(super) const STDIN: &str = "-";

pub(super) const STDIN_NAME: &str = "standard input";

pub(super) fn name(input: &str) -> PathBuf {
    PathBuf::from(if input == STDIN { STDIN_NAME } else { input })
}

/// Adds to a missing input what may have been meant: the name next to it in its directory, or that
/// it is a selector.
pub(super) fn explain_missing(failure: Failure, name: &str) -> Failure {
    if failure.exit() != Exit::Missing {
        return failure;
    }
    let command = words().into_iter().next().unwrap_or_default();
    if command == "assert" && is_condition(name) {
        let rest = retyped(&[name.to_owned()], vec![STDIN.to_owned()]);
        return Failure::usage("expected a file of conditions, found a condition")
            .with_help(format!("echo {} | {rest}", quoted(name)));
    }
    if is_id(name) {
        return failure.with_help(of_id(&command, name));
    }
    if is_selector(name) {
        return Failure::usage("expected a session, found a selector")
            .with_help(format!("pactql select SESSION {}", in_quotes(name)));
    }
    if name.is_empty() {
        return Failure::usage("expected the path of a session, found an empty word");
    }
    if name.contains('*') {
        return failure.with_help(format!(
            "`*` is for the shell, which leaves quotes alone: write {name} without quotes"
        ));
    }
    let path = Path::new(name);
    if path.is_symlink() && !path.exists() {
        return Failure::plain(Exit::Missing, format!("{name}: {NO_TARGET}"));
    }
    if let Some(near) = near(path) {
        let near = near.display().to_string();
        return failure.with_help(format!("did you mean {}?", quoted(&near)));
    }
    let above = path.ancestors().skip(1);
    let is_missing = |above: &&Path| **above != *Path::new("") && !above.exists();
    let missing = above.filter(is_missing).last();
    if let Some(help) = missing.and_then(|missing| part_of_log(path, missing)) {
        return failure.with_help(help);
    }
    // A file mostly has an extension; the name of a session has none.
    if path.is_relative() && path.extension().is_none() {
        return failure.with_help(format!(
            "a session of a folder or of a log is `PLACE#{name}`"
        ));
    }
    match missing {
        Some(missing) => failure.with_help(format!("there is no directory {}", missing.display())),
        None => failure,
    }
}

/// Whether a word is an id such as `cb:u3`, and neither a path nor a selector.
fn is_id(word: &str) -> bool {
    let (class, rest) = word.split_once(':').unwrap_or_default();
    let is_class = class.len() > 1 && class.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:".contains(&byte);
    is_class && !rest.is_empty() && rest.bytes().all(is_plain)
}

/// The command that shows the node of an id, which was typed in the place of a session.
fn of_id(command: &str, id: &str) -> String {
    let test = format!("[id={}]", quote(id));
    let mut words = vec!["--where".to_owned(), test.clone()];
    match command {
        "show" => words.push("--full".to_owned()),
        "steps" | "tokens" | "prefix" | "grep" => {}
        _ => return format!("pactql select SESSION {}", in_quotes(&test)),
    }
    retyped(&[id.to_owned()], words)
}

/// How to read `release/reviewer`, the name of a part of the log `release.jsonl`, where there is no directory `release`.
fn part_of_log(path: &Path, missing: &Path) -> Option<String> {
    let log = near(missing).filter(|log| log.is_file())?;
    let name = log.file_name()?.to_str()?;
    if stem(name) != missing.file_name()? {
        return None;
    }
    let part = path.strip_prefix(missing.parent()?).ok()?;
    let (log, part) = (log.display().to_string(), part.display().to_string());
    Some(format!(
        "`pactql import {} -o runs.db` keeps the parts of the log: name {}",
        quoted(&log),
        quoted(&format!("runs.db#{part}"))
    ))
}

/// The path that is most like a missing one: of each name that does not exist, the nearest in its
/// directory is taken.
fn near(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return Some(path.to_owned());
    }
    let shown = match path.parent()? {
        parent if parent == Path::new("") => PathBuf::new(),
        parent => near(parent)?,
    };
    let name = path.file_name()?.to_str()?;
    if shown.join(name).exists() {
        return Some(shown.join(name));
    }
    let entries = std::fs::read_dir(Path::new(".").join(&shown)).ok()?;
    let entries = entries.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_wanted = |name: &String| {
        // Directories are not suggested where the ending of a file was typed.
        let is_file = path.extension().is_none() || !shown.join(name).is_dir();
        !name.starts_with('.') && is_file && shown.join(name).exists()
    };
    let mut names: Vec<String> = names.filter(is_wanted).collect();
    names.sort_unstable();
    // The endings of all sessions are alike.
    let found = nearest(stem(name), names.iter().map(|name| stem(name)))?;
    let found = names.iter().find(|name| stem(name) == found)?;
    Some(shown.join(found))
}

/// Reads a whole file or, for `-`, standard input; gzip is unpacked.
pub(super) fn read(name: &str, limits: Limits) -> Result<Vec<u8>> {
    let bytes = if name == STDIN {
        read_all(io::stdin().lock(), Path::new(STDIN_NAME), limits)
    } else {
        read_file(Path::new(name), limits)
    };
    bytes.map_err(|error| explain_missing(error.into(), name))
}

/// Refuses to write to a file that exists, unless it may be replaced, or that is read (RUNTIME §7). A
/// new file in a directory that is read would be part of that session the next time.
pub(super) fn check_output(name: &str, inputs: &[impl AsRef<str>], force: bool) -> Result<()> {
    let path = Path::new(name);
    // Devices and pipes are written to, not replaced.
    if path.exists() && !path.is_file() {
        return Ok(());
    }
    let place = path.canonicalize().or_else(|_| {
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new(".")).canonicalize()?;
        io::Result::Ok(parent.join(path.file_name().unwrap_or_default()))
    });
    let is_read = |input: &&str| {
        let input = Path::new(input).canonicalize();
        matches!((&input, &place), (Ok(input), Ok(place)) if place.starts_with(input))
    };
    if let Some(input) = inputs.iter().map(AsRef::as_ref).find(is_read) {
        let message = if Path::new(input).is_dir() {
            format!("the output {name} is in the input {input}")
        } else {
            format!("the output {name} is the input")
        };
        return Err(Failure::usage(message).with_help("write to another file, then move it"));
    }
    check_ending(name)?;
    match path.metadata() {
        Err(_) => Ok(()),
        Ok(data) if data.permissions().readonly() => {
            Err(Failure::usage(format!("the output {name} is read-only"))
                .with_help("write to another file"))
        }
        Ok(_) if force => Ok(()),
        Ok(_) => {
            Err(Failure::usage(format!("the output {name} exists"))
                .with_help("`--force` replaces it"))
        }
    }
}

/// Refuses a name that says that a file is compressed, as none is written so.
pub(super) fn check_ending(name: &str) -> Result<()> {
    match uncompressed(name) {
        Some(plain) => Err(
            Failure::usage(format!("{name}: a file is not written compressed"))
                .with_help(format!("write it to {plain}")),
        ),
        None => Ok(()),
    }
}

/// Writes a file as a whole, so that a failure leaves the old one, or none; see [`output`].
pub(super) fn write(
    name: &str,
    produce: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    output(Path::new(name), produce).map_err(|error| Failure::output(name, &error))
}

/// Writes to a file, which JSON names, or, without one, to standard output; the command is done.
pub(super) fn put(
    with: &Invocation,
    output: Option<&str>,
    produce: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Exit> {
    match output {
        Some(path) => {
            write(path, produce)?;
            with.done(&json!({"file": path}))
        }
        None => stream(produce),
    }
}

/// Writes a file for each item, whose directory is made if it is missing. None is written if one of them exists,
/// unless `force` is set.
pub(super) fn write_each<T, W: FnOnce(&mut dyn Write) -> io::Result<()>>(
    items: impl ExactSizeIterator<Item = T>,
    files: &[String],
    inputs: &[impl AsRef<str>],
    force: bool,
    mut each: impl FnMut(T) -> Result<W>,
) -> Result<()> {
    for file in files {
        check_output(file, inputs, force)?;
    }
    let progress = Progress::bar(items.len());
    for (item, file) in items.zip(files) {
        if let Some(above) = Path::new(file).parent() {
            let made = std::fs::create_dir_all(above);
            made.map_err(|error| Failure::output(&above.display().to_string(), &error))?;
        }
        write(file, each(item)?)?;
        progress.step();
    }
    Ok(())
}

/// The lines of a file of selectors, without line endings (LF or CRLF) and a leading byte order
/// mark. The error of a line that is not UTF-8 is its readable part.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Result<&str, String>> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        std::str::from_utf8(line).map_err(|_| String::from_utf8_lossy(line).into_owned())
    })
}

pub(super) fn not_utf8(line: &str) -> Error {
    let at = line.find('\u{fffd}').unwrap_or(0);
    let mistake = Diagnostic::error(Code::SelectorInvalid, "the selector is not UTF-8");
    Error::new(line, mistake.at(at..at, "here"))
}
