//! What the commands that write share: the session, where it goes, nodes and fields, and what is printed.

use super::command::{Invocation, say};
use super::input::{self, STDIN};
use super::options::EditionArgs;
use super::progress::Progress;
use super::read_sessions::open_store;
use super::sessions;
use super::words::quoted;
use crate::app::present::stores::{Access, StoreAddress, Which};
use crate::app::present::{Exit, Failure, Result, answer, sessions as opened};
use crate::engine::{Context, ContextBuilder, short_form};
use crate::history::Session;
use crate::logs::file::{FileError, SessionFile, write_context, write_file};
use crate::runtime::{NewNode, Policy, StepClock};
use crate::support::diag::Error;
use clap::Args;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The session of a command that writes one.
#[derive(Args, Debug)]
pub(super) struct WriteArgs {
    /// The session: a file or `STORE#name`, which is written in place. With -o also a directory, a
    /// compressed file, or `-` for standard input.
    pub(super) session: String,
    /// Write the session to another file or to `STORE#name`, and leave this one as it is.
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Replace the file of -o if it exists.
    #[arg(long, requires = "output")]
    force: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    how: HowArgs,
}

/// How long `--wait` waits. Longer than a lease lasts, so that the one a killed process left has run out.
const USUAL: &str = "60";

/// The longest time that can be asked for: a day.
const LONGEST: u64 = 86_400;

const PAUSE: Duration = Duration::from_millis(200);

/// What a command does about a session that another process writes.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Wait {
    /// While another process writes the session, wait until it is done, but at most this long, such
    /// as `--wait=120`; `--wait` alone is 60 seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = USUAL)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=LONGEST))]
    wait: Option<u64>,
}

impl Wait {
    /// Does something that needs the session, again and again while another process writes it. On a terminal
    /// it shows who that is.
    pub(super) fn until_free<T>(self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let end = Instant::now() + Duration::from_secs(self.wait.unwrap_or(0));
        let mut shown: Option<(String, Progress)> = None;
        loop {
            let failure = match attempt() {
                Err(failure) if failure.is_busy() => failure,
                done => return done,
            };
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.advise(failure));
            }
            let holder = failure.message();
            if shown.as_ref().is_none_or(|(said, _)| *said != holder) {
                // The line of the holder before is cleared first.
                drop(shown.take());
                let progress = Progress::spinner(format!("waiting: {holder}"));
                shown = Some((holder, progress));
            }
            sleep(left.min(PAUSE));
        }
    }

    fn advise(self, failure: Failure) -> Failure {
        failure.advised(match self.wait {
            Some(seconds @ 1..) => format!(
                "it was not free for {seconds} s; `--wait={}` waits longer",
                seconds.saturating_mul(10).min(LONGEST)
            ),
            _ => "`--wait` waits until it is free; readers never wait".to_owned(),
        })
    }
}

/// How a command that writes reads selectors and takes times.
#[derive(Args, Debug)]
pub(super) struct HowArgs {
    #[command(flatten)]
    pub(super) edition: EditionArgs,
    /// Nanoseconds since 1970 that the clock always reads, so that runs can be repeated.
    #[arg(long, value_name = "NS", hide = true)]
    clock: Option<i64>,
}

impl HowArgs {
    pub(super) fn builder(&self) -> ContextBuilder {
        let builder = Context::builder().edition(self.edition.edition);
        match self.clock {
            Some(at) => builder.clock(StepClock::new(at, 0)),
            None => builder,
        }
    }
}

/// Prints the ids of nodes: one a line, or a list.
pub(super) fn print_ids(with: &Invocation, ids: &[String]) -> Result<Exit> {
    with.print(&ids, || ids.iter().map(|id| format!("{id}\n")).collect())
}

/// A session that is open to be written, and where it goes.
pub(super) enum Writing<'a> {
    InPlace(Box<SessionFile>),
    Stored(Box<Context>),
    Elsewhere(Box<Context>, &'a str),
}

impl WriteArgs {
    /// Reads the session, to look at it only.
    pub(super) fn read(&self, with: &Invocation) -> Result<Context> {
        if self.output.is_some() {
            let message = "a list changes nothing, so `-o` has nothing to write";
            return Err(Failure::usage(message));
        }
        sessions::resume(&self.session, with.limits, self.how.builder())
    }

    /// Changes the nodes of a selector, saves, then prints the ids that `change` returns: what is printed is on
    /// the disk. If there are none, nothing is written, and notes say why.
    pub(super) fn change(
        &self,
        with: &Invocation,
        selector: &str,
        empty: Exit,
        change: impl FnOnce(&mut Context, &str) -> Result<Vec<String>, Error>,
    ) -> Result<Exit> {
        let mut writing = self.open(Policy::new(), with)?;
        let ids = change(writing.context(), selector)?;
        if !ids.is_empty() {
            writing.save()?;
            return print_ids(with, &ids);
        }
        if let Ok(selection) = writing.context().select(selector) {
            say(&answer::note_empty(
                &selection.why_empty(),
                selection.warnings(),
                None,
                with.is_json(),
            ));
        }
        print_ids(with, &ids)?;
        Ok(empty)
    }

    /// Opens the session, with a policy for its commits; in place it is locked until it is saved.
    pub(super) fn open(&self, policy: Policy, with: &Invocation) -> Result<Writing<'_>> {
        let builder = || self.how.builder().policy(policy.clone());
        if let Some(output) = &self.output {
            check_target(output, &[&self.session], self.force)?;
            let context = sessions::resume(&self.session, with.limits, builder())?;
            return Ok(Writing::Elsewhere(Box::new(context), output));
        }
        if self.session == STDIN {
            return Err(Failure::usage("standard input cannot be written in place")
                .with_help("-o FILE writes the session to a file"));
        }
        if let Some(address) = StoreAddress::parse(&self.session) {
            let name = address.one()?;
            let store = open_store(address.store, Access::Write)?;
            return self.wait.until_free(|| {
                // A session that is missing would be made.
                store.session(name)?;
                let context = store.write_with(name, builder())?;
                Ok(Writing::Stored(Box::new(context)))
            });
        }
        let path = Path::new(&self.session);
        let open = || SessionFile::open_limited(path, builder(), with.limits);
        self.wait.until_free(|| match open() {
            Ok(file) => Ok(Writing::InPlace(Box::new(file))),
            Err(FileError::Load(error)) => {
                // With the advice that all commands give.
                let advised = opened::open(path, with.limits).err();
                let failure = advised.unwrap_or_else(|| Failure::load(error));
                Err(input::explain_missing(failure, &self.session))
            }
            Err(error) => Err(error.into()),
        })
    }
}

impl Writing<'_> {
    pub(super) fn context(&mut self) -> &mut Context {
        match self {
            Self::InPlace(file) => file.context(),
            Self::Stored(context) | Self::Elsewhere(context, _) => context,
        }
    }

    pub(super) fn save(self) -> Result<()> {
        match self {
            Self::InPlace(mut file) => Ok(file.save()?),
            Self::Stored(mut context) => Ok(context.save()?),
            Self::Elsewhere(context, output) => write_to(output, *context),
        }
    }
}

/// Writes a session to a file, or to a new session of a store.
pub(super) fn write_to(output: &str, mut context: Context) -> Result<()> {
    let Some(address) = StoreAddress::parse(output) else {
        return Ok(write_file(Path::new(output), context)?);
    };
    let name = new_name(address)?;
    // All that a file of it would have.
    let mut bytes = Vec::new();
    write_context(&mut context, &mut bytes)?;
    let session = Session::from_slice(&bytes)
        .map_err(|error| Failure::internal(format!("the session cannot be read: {error}")))?;
    Ok(open_store(address.store, Access::Create)?.import(name, &session, None)?)
}

/// The name of a session that is to be made.
pub(super) fn new_name(address: StoreAddress<'_>) -> Result<&str> {
    let store = address.store;
    match address.which {
        Which::One(name) if !name.is_empty() => Ok(name),
        Which::Matching(name) => Err(Failure::usage(format!(
            "the name of a session has no `*`, and `{name}` has one"
        ))),
        Which::One(_) | Which::All => Err(Failure::usage(format!(
            "expected the name of a session in the store {store}"
        ))
        .with_help(format!("such as {store}#session"))),
    }
}

/// Checks where a session is written to: a file, or a new session of a store.
pub(super) fn check_target(name: &str, inputs: &[&str], force: bool) -> Result<()> {
    if let Some(address) = StoreAddress::parse(name) {
        let session = new_name(address)?;
        if !force {
            return Ok(());
        }
        let whole = quoted(&format!("{}#{session}", address.store));
        let failure = Failure::usage("`--force` replaces files, and no session of a store");
        let help = format!("to replace it, first: pactql store delete {whole} --yes");
        return Err(failure.with_help(help));
    }
    check_plain_file(name)?;
    input::check_output(name, inputs, force)
}

/// Checks that a session can be written to a file of this name.
pub(super) fn check_plain_file(name: &str) -> Result<()> {
    if name == STDIN {
        return Err(Failure::usage("the session cannot go to standard output")
            .with_help("-o FILE; `pactql export FILE --jsonl` prints a session"));
    }
    input::check_ending(name)
}

/// A node on the command line.
#[derive(Args, Debug)]
pub(super) struct NodeArgs {
    /// The node: a JSON object, the short form such as `block:text { role=user } "Hello"`, `@FILE`, or
    /// `-` for standard input.
    #[arg(value_name = "NODE", required_unless_present = "content_file")]
    node: Option<String>,
    /// Take the content from a file, or from standard input for `-`; NODE gives the rest.
    #[arg(long, value_name = "FILE")]
    content_file: Option<String>,
}

impl NodeArgs {
    pub(super) fn read(&self, args: &WriteArgs, with: &Invocation) -> Result<NewNode> {
        let node = match &self.node {
            None => NewNode::new().kind("text"),
            Some(word) => {
                let text = text_of(word, args, with)?;
                let text = text.trim();
                if text.starts_with('{') {
                    NewNode::json(text)?
                } else {
                    let edition = args.how.edition.edition;
                    short_form(text, edition, self.content_file.is_none())?
                }
            }
        };
        let Some(file) = &self.content_file else {
            return Ok(node);
        };
        if [&*args.session, self.node.as_deref().unwrap_or_default()].contains(&STDIN)
            && file == STDIN
        {
            return Err(read_twice());
        }
        if node.member("content").is_some_and(|json| json != "null") {
            return Err(Failure::usage("the content is given twice")
                .with_help("`--content-file` gives it: leave it out of NODE"));
        }
        Ok(node.content(&read_text(file, with)?))
    }
}

/// The text that a word means: that of a file for `@FILE`, of standard input for `-`.
pub(super) fn text_of(word: &str, args: &WriteArgs, with: &Invocation) -> Result<String> {
    match word.strip_prefix('@') {
        Some(file) if !file.is_empty() => read_text(file, with),
        _ if word == STDIN && args.session == STDIN => Err(read_twice()),
        _ if word == STDIN => read_text(word, with),
        _ => Ok(word.to_owned()),
    }
}

fn read_twice() -> Failure {
    Failure::usage("standard input can be read once only").with_help("give the other as a file")
}

fn read_text(file: &str, with: &Invocation) -> Result<String> {
    let bytes = input::read(file, with.limits)?;
    String::from_utf8(bytes).map_err(|_| {
        let name = input::name(file);
        Failure::plain(Exit::Input, format!("{} is not UTF-8", name.display()))
    })
}

/// Headers whose values are texts, so `key=12` is the text `12`.
const TEXTS: &str = "role kind key content content_hash provenance";

/// Reads the fields of an update: one JSON object, or `name=value` words.
pub(super) fn fields(words: &[String], args: &WriteArgs, with: &Invocation) -> Result<NewNode> {
    if let [word] = words
        && (word == STDIN || word.starts_with(['{', '@']))
    {
        return Ok(NewNode::json(text_of(word, args, with)?.trim())?);
    }
    let mut fields = NewNode::new();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            let message = format!("expected `name=value` or a JSON object, found `{word}`");
            Failure::usage(message).with_help("ttl=2 priority=5, or '{\"ttl\": 2}'")
        })?;
        let is_text = TEXTS.split(' ').any(|text| text == name) && value != "null";
        fields = if !is_text && serde_json::from_str::<serde_json::Value>(value).is_ok() {
            fields.set_json(name, value)
        } else {
            fields.set(name, value)
        };
    }
    Ok(fields)
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let message = error.to_string();
        match error {
            FileError::Load(error) => Self::load(error),
            FileError::Context(error) => error.into(),
            FileError::Exists(_) => Self::usage(message).with_help("give a new name"),
            FileError::Busy(_) => Self::busy(message),
            FileError::NotInPlace(..) => Self::plain(Exit::Io, message)
                .with_help("-o FILE writes the session to another file"),
            FileError::Io(path, error) => Self::output(&path.display().to_string(), &error),
        }
    }
}
