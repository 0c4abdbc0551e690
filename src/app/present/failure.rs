//! How a command ends: exit codes, and failures with everything needed to report them.

use super::shell::quoted;
use crate::budget::{CacheError, CacheFault};
use crate::history::{LoadError, LoadFailure};
use crate::render::RenderError;
use crate::support::cancel::Cancelled;
use crate::support::diag::{Code, ColorChoice, Error};
use crate::support::table::{Paint, Tint};
use crate::support::text::{counted, escaped, printable};
use crate::tree::{InputError, SourceError};
use serde_json::{Value, json};
use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Termination};

/// The exit codes of every command (RUNTIME §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// 0: success.
    Ok = 0,
    /// 1: the command line is invalid.
    Usage = 1,
    /// 2: a selector is invalid or cannot be run on this session, or a mutation is refused (every
    /// `E_*` except `E_INPUT`).
    Selector = 2,
    /// 3: an option has an invalid value.
    Value = 3,
    /// 4: an input does not exist.
    Missing = 4,
    /// 5: an input is invalid (`E_INPUT`).
    Input = 5,
    /// 6: reading or writing failed.
    Io = 6,
    /// 7: a bug in the program.
    Internal = 7,
    /// 8: nothing was found, under `--fail-if-empty`.
    Empty = 8,
    /// 9: a session does not meet the conditions of `assert`.
    Unmet = 9,
    /// 124: it took longer than `--timeout` allows.
    Late = 124,
    /// 129: the terminal was closed (SIGHUP).
    HungUp = 129,
    /// 130: it was interrupted (SIGINT, Ctrl-C).
    Interrupted = 130,
    /// 143: it received a request to end (SIGTERM).
    Terminated = 143,
}

impl Exit {
    pub(crate) fn of_empty(fail_if_empty: bool) -> Self {
        if fail_if_empty { Self::Empty } else { Self::Ok }
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// A result whose error is the failure of a command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A selector is invalid or cannot be run; with the session, if there are several.
    Selector(#[source] Box<Error>, Option<String>),
    /// Inputs are not sessions or logs: the faults of each file, and advice.
    Input(Vec<(PathBuf, InputError)>, Option<String>),
    Plain {
        exit: Exit,
        /// The code in messages, such as `E_USAGE`.
        code: &'static str,
        message: String,
        help: Option<String>,
        /// What is wrong with an input of many files.
        faults: Vec<CacheFault>,
    },
    /// The reader of standard output closed it. This is not reported.
    ClosedPipe,
}

impl Failure {
    /// An invalid command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::plain(Exit::Usage, message)
    }

    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::plain(Exit::Value, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::plain(Exit::Internal, message)
    }

    pub(crate) fn plain(exit: Exit, message: impl Into<String>) -> Self {
        Self::coded(code(exit), exit, message)
    }

    /// As [`Failure::plain`], with another code than its exit code has.
    pub(crate) fn coded(code: &'static str, exit: Exit, message: impl Into<String>) -> Self {
        Self::Plain {
            exit,
            code,
            message: message.into(),
            help: None,
            faults: Vec::new(),
        }
    }

    /// A session that another process is writing (RUNTIME §7).
    pub(crate) fn busy(message: String) -> Self {
        Self::coded(Code::SessionBusy.as_str(), Exit::Io, message)
            .with_help("wait until it is done, then run the command again")
    }

    pub(crate) fn in_session(error: Error, session: Option<&str>) -> Self {
        Self::Selector(Box::new(error), session.map(str::to_owned))
    }

    /// A failed write to `name`, or a read that fails for a reason other than a missing input.
    pub(crate) fn output(name: &str, error: &io::Error) -> Self {
        Self::plain(Exit::Io, format!("{name}: {}", reason(error)))
    }

    /// A failed read of the file `name`.
    pub(crate) fn file(name: &str, error: &io::Error) -> Self {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::Missing,
            _ => Exit::Io,
        };
        Self::plain(exit, format!("{name}: {}", reason(error)))
    }

    /// A directory of several sessions where one is expected.
    pub(crate) fn several(path: &Path, files: &[PathBuf]) -> Self {
        // How many of them are sessions is not known before all are read.
        let failure = Self::usage(format!(
            "expected one session, and `{}` is a directory of {}",
            path.display(),
            counted(files.len() as u64, "file")
        ));
        failure.with_help(match files {
            [one] => format!("name it: {}", quoted(&one.display().to_string())),
            _ => format!(
                "`pactql sessions {}` lists those in it",
                quoted(&path.display().to_string())
            ),
        })
    }

    /// A session that could not be loaded.
    pub(crate) fn load(error: LoadError) -> Self {
        match error {
            LoadError::Source(error) => error.into(),
            LoadError::Input(error) => {
                Self::Input(vec![(PathBuf::from("the session"), error)], None)
            }
        }
    }

    /// Sets the advice of a failure that can have some.
    pub(crate) fn with_help(mut self, advice: impl Into<String>) -> Self {
        if let Self::Plain { help, .. } | Self::Input(_, help) = &mut self {
            *help = Some(advice.into());
        }
        self
    }

    /// Advises the name that is near what was typed, if there is one.
    pub(crate) fn near(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.with_help(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// Advises what a client has instead of `pactql sessions`, where that is the advice.
    pub(crate) fn listed_by(self, lists: &str) -> Self {
        let help = match &self {
            Self::Plain { help, .. } | Self::Input(_, help) => help.clone(),
            Self::Selector(error, _) => error.first().help.as_ref().map(ToString::to_string),
            Self::ClosedPipe => None,
        };
        let rest = help.as_deref().and_then(|help| {
            let after = help.strip_prefix("`pactql sessions")?;
            after.split_once('`')
        });
        match rest {
            Some((_, rest)) => self.advised(format!("`{lists}`{rest}")),
            None => self,
        }
    }

    /// As [`Failure::with_help`], also of the error of a selector.
    pub(crate) fn advised(self, help: impl Into<String>) -> Self {
        match self {
            Self::Selector(error, session) => {
                Self::Selector(Box::new(error.with_help(help)), session)
            }
            other => other.with_help(help),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            // The text of a node, not a selector.
            Self::Selector(error, _) => match error.code() {
                Code::Input => Exit::Input,
                Code::SessionNotFound | Code::Missing => Exit::Missing,
                Code::SessionExists => Exit::Usage,
                Code::SessionBusy | Code::LeaseLost | Code::Store | Code::StoreVersion => Exit::Io,
                _ => Exit::Selector,
            },
            Self::Input(..) => Exit::Input,
            Self::Plain { exit, .. } => *exit,
            Self::ClosedPipe => Exit::Ok,
        }
    }

    /// Whether the session has no such snapshot.
    pub(crate) fn is_no_snapshot(&self) -> bool {
        matches!(self, Self::Selector(error, _) if error.code() == Code::SnapshotNotFound)
    }

    /// Whether a store has a session that is in the way.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self, Self::Selector(error, _) if error.code() == Code::SessionExists)
    }

    /// Whether another process writes the session.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Selector(error, _) => error.code() == Code::SessionBusy,
            Self::Plain { code, .. } => *code == Code::SessionBusy.as_str(),
            _ => false,
        }
    }

    /// What is wrong, in a line without a code.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Selector(error, _) => error.message().to_owned(),
            Self::Input(files, _) => {
                let fault = files.first().and_then(|(_, error)| error.faults.first());
                fault.map(ToString::to_string).unwrap_or_default()
            }
            Self::Plain { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }

    /// The advice of a failure that can have some.
    pub(crate) fn help(&self) -> Option<&str> {
        match self {
            Self::Selector(error, _) => error.first().help.as_deref(),
            Self::Plain { help, .. } | Self::Input(_, help) => help.as_deref(),
            Self::ClosedPipe => None,
        }
    }

    pub(crate) fn text(&self, color: ColorChoice) -> String {
        let mut text = String::new();
        let paint = Paint::new(color == ColorChoice::Always);
        let title = |code: &str| paint.tint(Tint::Match, &format!("error[{code}]"));
        match self {
            Self::Selector(error, session) => {
                text = error.to_text(color);
                if let Some(session) = session {
                    let _ = writeln!(text, "note: in the session {session}");
                }
            }
            Self::Input(files, _) => {
                for (path, error) in files {
                    let name = path.display();
                    let _ = writeln!(text, "{}: {name} is invalid", title(InputError::CODE));
                    for line in error.to_string().lines() {
                        let _ = writeln!(text, "  {line}");
                    }
                }
            }
            Self::Plain {
                code,
                message,
                faults,
                ..
            } => {
                let _ = writeln!(text, "{}: {message}", title(code));
                for CacheFault { file, message } in faults {
                    let (file, message) = (printable(file), printable(message));
                    let _ = writeln!(text, "  {file}: {message}");
                }
            }
            Self::ClosedPipe => {}
        }
        if let Self::Plain { help, .. } | Self::Input(_, help) = self
            && let Some(help) = help
        {
            let _ = writeln!(text, "help: {help}");
        }
        escaped(&text, color == ColorChoice::Always).into_owned()
    }

    /// The failure as `{"error":{"code","message","spans","help"}}`.
    pub(crate) fn json(&self) -> Value {
        let mut body = match self {
            Self::Selector(error, _) => error.to_json()["error"].take(),
            Self::Input(files, _) => {
                let names = files.iter().map(|(path, _)| path.display().to_string());
                let names: Vec<String> = names.collect();
                let faults = files.iter().zip(&names).flat_map(|((_, error), name)| {
                    error.faults.iter().map(move |fault| {
                        json!({
                            "file": name,
                            "path": fault.path,
                            "message": fault.message,
                            "offset": fault.offset,
                            "line": fault.line,
                            "column": fault.column,
                        })
                    })
                });
                json!({
                    "code": InputError::CODE,
                    "message": format!("invalid: {}", names.join(", ")),
                    "spans": [],
                    "faults": faults.collect::<Vec<_>>(),
                    "more": files.iter().map(|(_, error)| error.more).sum::<usize>(),
                })
            }
            Self::Plain { code, message, .. } => {
                json!({"code": code, "message": message, "spans": []})
            }
            Self::ClosedPipe => return Value::Null,
        };
        match self {
            Self::Selector(_, Some(session)) => body["session"] = json!(session),
            Self::Plain { faults, .. } if !faults.is_empty() => body["faults"] = json!(faults),
            _ => {}
        }
        if let Self::Plain { help, .. } | Self::Input(_, help) = self
            && help.is_some()
        {
            body["help"] = json!(help);
        }
        json!({ "error": body })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::in_session(error, None)
    }
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        let help = error.help().unwrap_or_default().to_owned();
        Self::plain(Exit::Input, error.to_string()).with_help(help)
    }
}

impl From<LoadFailure> for Failure {
    fn from(failure: LoadFailure) -> Self {
        Error::from(failure).into()
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Missing(_) => Self::plain(Exit::Missing, error.to_string()),
            SourceError::Io(path, error) => Self::file(&path.display().to_string(), &error),
            SourceError::Invalid(files) => Self::Input(files, None),
            SourceError::Several(path, files) => Self::several(&path, &files),
        }
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        let message = error.to_string();
        match error {
            CacheError::Missing(_) => Self::plain(Exit::Missing, message),
            CacheError::Exists(_) => Self::usage(message).with_help("--force replaces a cache"),
            CacheError::Foreign(..) => Self::usage(message),
            CacheError::Invalid(_, faults) | CacheError::Sources(_, faults) => Self::Plain {
                exit: Exit::Input,
                code: InputError::CODE,
                message,
                help: None,
                faults,
            },
            // The caller that cancelled it says why.
            CacheError::Cancelled(_) => Self::plain(Exit::Interrupted, message),
            // A file that vanished while it was read is a failed read, not a missing cache.
            CacheError::Io(path, error) => Self::output(&path.display().to_string(), &error),
        }
    }
}

/// Work that is cancelled; the program says by what.
impl From<Cancelled> for Failure {
    fn from(cancelled: Cancelled) -> Self {
        Self::plain(Exit::Interrupted, cancelled.to_string())
    }
}

/// A failed write to standard output; for a file see [`Failure::output`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::output("standard output", &error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(ColorChoice::Never).trim_end())
    }
}

fn code(exit: Exit) -> &'static str {
    match exit {
        Exit::Usage => "E_USAGE",
        // Errors of selectors have their own codes, so this one is about a query's text.
        Exit::Selector => "E_QUERY",
        Exit::Value => "E_VALUE",
        Exit::Missing => "E_MISSING",
        Exit::Input => InputError::CODE,
        Exit::Io => "E_IO",
        Exit::Late | Exit::HungUp | Exit::Interrupted | Exit::Terminated => {
            Code::Cancelled.as_str()
        }
        Exit::Ok | Exit::Internal | Exit::Empty | Exit::Unmet => "E_INTERNAL",
    }
}

/// The message of the operating system without its error number, beginning in lower case.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut text = text[..end].to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}
