//! How the program ends: exit codes, and failures with everything needed to tell them.

use super::clean;
use crate::budget::CacheError;
use crate::diag::{ColorChoice, Error};
use crate::tree::{InputError, SourceError};
use serde_json::{Value, json};
use std::fmt::{self, Write as _};
use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, Termination};

/// The exit codes of every command (RUNTIME §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// 0: done.
    Ok = 0,
    /// 1: the command line makes no sense.
    Usage = 1,
    /// 2: a selector is invalid, or has no answer over this session (every `E_*` but `E_INPUT`).
    Selector = 2,
    /// 3: an option has an invalid value.
    Value = 3,
    /// 4: an input does not exist.
    Missing = 4,
    /// 5: an input is invalid (`E_INPUT`).
    Input = 5,
    /// 6: reading or writing failed.
    Io = 6,
    /// 7: a fault of the program itself.
    Internal = 7,
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A selector has no answer; with the session it was asked of, where there are several.
    Selector(Box<Error>, Option<String>),
    /// Inputs are no sessions or logs: the faults of each file by name, and advice.
    Input(Vec<(PathBuf, InputError)>, Option<String>),
    /// An input of many files is invalid: what it is, and each fault as a file and what is wrong.
    Faults(String, Vec<(String, String)>),
    /// Everything else: exit code, message, advice.
    Plain(Exit, String, Option<String>),
    /// Standard output was closed by its reader. Nothing is wrong and nothing is said.
    ClosedPipe,
}

impl Failure {
    /// A command line that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Plain(Exit::Usage, message.into(), None)
    }

    /// A budget for the diffs of a range.
    pub(crate) fn budget_of_range() -> Self {
        Self::value("a range has differences, not blocks to choose from")
            .with_help("a budget takes one snapshot, @*, @mode=union or @mode=latest")
    }

    /// An option with an invalid value.
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::Plain(Exit::Value, message.into(), None)
    }

    /// A failed write to the file or directory `name`, for whatever reason: nothing that was to
    /// be read is missing.
    pub(crate) fn output(name: &str, error: &io::Error) -> Self {
        Self::Plain(Exit::Io, format!("{name}: {}", reason(error)), None)
    }

    /// A failed read of the file `name`.
    pub(crate) fn file(name: &str, error: &io::Error) -> Self {
        let exit = if error.kind() == io::ErrorKind::NotFound {
            Exit::Missing
        } else {
            Exit::Io
        };
        Self::Plain(exit, format!("{name}: {}", reason(error)), None)
    }

    /// Adds advice to a failure that is not a selector's.
    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        match self {
            Self::Plain(exit, message, _) => Self::Plain(exit, message, Some(help.into())),
            Self::Input(files, _) => Self::Input(files, Some(help.into())),
            other => other,
        }
    }

    /// The exit code it ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Selector(..) => Exit::Selector,
            Self::Input(..) | Self::Faults(..) => Exit::Input,
            Self::Plain(exit, ..) => *exit,
            Self::ClosedPipe => Exit::Ok,
        }
    }

    /// The failure in words for a person, lines ending in line feeds.
    pub(crate) fn text(&self, color: ColorChoice) -> String {
        match self {
            Self::Selector(error, session) => {
                let mut text = error.render(color);
                if let Some(session) = session {
                    let _ = writeln!(text, "note: in the session {session}");
                }
                text
            }
            Self::Input(files, help) => {
                let mut text = String::new();
                for (path, error) in files {
                    let name = path.display();
                    let _ = writeln!(text, "error[{}]: {name} is invalid", InputError::CODE);
                    for line in error.to_string().lines() {
                        let _ = writeln!(text, "  {line}");
                    }
                }
                if let Some(help) = help {
                    let _ = writeln!(text, "help: {help}");
                }
                text
            }
            Self::Faults(message, faults) => {
                let mut text = format!("error[{}]: {message}\n", InputError::CODE);
                for (file, fault) in faults {
                    let _ = writeln!(
                        text,
                        "  {}: {}",
                        clean(file, usize::MAX),
                        clean(fault, usize::MAX)
                    );
                }
                text
            }
            Self::Plain(exit, message, help) => {
                let help = help.as_ref().map(|help| format!("help: {help}\n"));
                let code = plain_code(*exit);
                format!("error[{code}]: {message}\n{}", help.unwrap_or_default())
            }
            Self::ClosedPipe => String::new(),
        }
    }

    /// The failure as `{"error":{"code","message","spans","help"}}`.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Selector(error, session) => {
                let mut json = error.to_json();
                if let Some(session) = session {
                    json["error"]["session"] = Value::from(session.as_str());
                }
                json
            }
            Self::Input(files, help) => {
                let mut faults: Vec<Value> = Vec::new();
                for (path, error) in files {
                    faults.extend(error.faults.iter().map(|fault| {
                        json!({
                            "file": path.display().to_string(),
                            "path": fault.path,
                            "message": fault.message,
                            "offset": fault.offset,
                            "line": fault.line,
                            "column": fault.column,
                        })
                    }));
                }
                let names: Vec<String> = files
                    .iter()
                    .map(|(path, _)| path.display().to_string())
                    .collect();
                let more: usize = files.iter().map(|(_, error)| error.more).sum();
                let mut body = json!({
                    "code": InputError::CODE,
                    "message": format!("invalid: {}", names.join(", ")),
                    "spans": [],
                    "faults": faults,
                    "more": more,
                });
                if let Some(help) = help {
                    body["help"] = json!(help);
                }
                json!({ "error": body })
            }
            Self::Faults(message, faults) => {
                let faults: Vec<Value> = faults
                    .iter()
                    .map(|(file, message)| json!({"file": file, "message": message}))
                    .collect();
                json!({"error": {
                    "code": InputError::CODE,
                    "message": message,
                    "spans": [],
                    "faults": faults,
                }})
            }
            Self::Plain(exit, message, help) => {
                let mut body = json!({"code": plain_code(*exit), "message": message, "spans": []});
                if let Some(help) = help {
                    body["help"] = json!(help);
                }
                json!({ "error": body })
            }
            Self::ClosedPipe => Value::Null,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Selector(Box::new(error), None)
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Missing(_) => Self::Plain(Exit::Missing, error.to_string(), None),
            SourceError::Io(path, error) => Self::file(&path.display().to_string(), &error),
            SourceError::Invalid(files) => Self::Input(files, None),
        }
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        let message = error.to_string();
        match error {
            CacheError::Missing(_) => Self::Plain(Exit::Missing, message, None),
            CacheError::Exists(_) => Self::usage(message).with_help("--force replaces a cache"),
            CacheError::Foreign(..) => Self::usage(message),
            CacheError::Invalid(_, faults) | CacheError::Sources(_, faults) => Self::Faults(
                message,
                faults
                    .into_iter()
                    .map(|fault| (fault.file, fault.message))
                    .collect(),
            ),
            CacheError::Io(path, error) => match Self::file(&path.display().to_string(), &error) {
                // What is gone between two looks at it is a failure, not a cache that is missing.
                Self::Plain(Exit::Missing, message, help) => Self::Plain(Exit::Io, message, help),
                failure => failure,
            },
        }
    }
}

/// A failed write to standard output; writes to named files go through [`Failure::output`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Plain(
                Exit::Io,
                format!("standard output: {}", reason(&error)),
                None,
            )
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(ColorChoice::Never).trim_end())
    }
}

/// The code of a failure that only its exit code tells apart.
fn plain_code(exit: Exit) -> &'static str {
    match exit {
        Exit::Usage => "E_USAGE",
        // Selectors have codes of their own; what else is asked in words is a query.
        Exit::Selector => "E_QUERY",
        Exit::Value => "E_VALUE",
        Exit::Missing => "E_MISSING",
        Exit::Input => InputError::CODE,
        Exit::Io => "E_IO",
        Exit::Ok | Exit::Internal => "E_INTERNAL",
    }
}

/// An operating system's message without the number it ends in.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut text = text[..end].to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}
