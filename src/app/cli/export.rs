//! `pactql export`: snapshots in canonical bytes, and sessions of stores as files. `pactql render`: a snapshot as the
//! request that a model is sent.

use super::command::{Invocation, RunCommand, print, say};
use super::input;
use super::options::FormArgs;
use super::read_sessions::{note_reconstructed, open_store};
use super::sessions;
use super::sessions::SnapshotArgs;
use super::words::quoted;
use crate::app::present::opened::check_written;
use crate::app::present::stores::{Access, StoreAddress, sessions_of};
use crate::app::present::{Exit, Failure, Result, counted, printable};
use crate::engine::{attempted, sent};
use crate::history::Session;
use crate::inspect::{Call, came_in_as, provider_of};
use crate::json::{get, members};
use crate::logs::file::write_kept;
use crate::logs::{write_document, write_session};
use crate::render::{Provider, Source, Thread, request};
use crate::store::Store;
use crate::tree::seal::Sealing;
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Component, Path};

/// How is a session written to a file? As canonical documents of its snapshots.
///
/// One snapshot is one JSON document. `--jsonl` writes the whole session, one snapshot a line: as
/// its difference to the previous snapshot if that is shorter. Exporting an export gives the same
/// bytes. A session of a store is written whole without `--jsonl` too, as the file that it was imported
/// from; `STORE -o DIR` writes each to a file with its name.
#[derive(Args, Debug)]
pub(super) struct ExportArgs {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input.
    session: String,
    /// Which snapshot, such as @t0, @t-2 or @c12 [default: the working state, or else the newest].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jsonl")]
    #[arg(allow_hyphen_values = true)]
    at: Option<String>,
    /// Write the whole session, one snapshot a line.
    #[arg(long)]
    jsonl: bool,
    /// With --jsonl, or of a store: write every snapshot as a whole document.
    #[arg(long, conflicts_with = "at")]
    full: bool,
    /// With --jsonl, or of a store: end with a line that has the number of the lines before it and their hash,
    /// so that a file that was cut is noticed.
    #[arg(long, conflicts_with = "at")]
    seal: bool,
    /// The file to write, or the directory for several sessions [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
}

impl RunCommand for ExportArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let output = self.output.as_deref().filter(|path| *path != input::STDIN);
        let address = StoreAddress::parse(&self.session);
        if (self.full || self.seal) && !self.jsonl && address.is_none() {
            let option = if self.full { "--full" } else { "--seal" };
            return Err(Failure::usage(format!("`{option}` needs `--jsonl`"))
                .with_help("give both, for the whole session"));
        }
        if let Some(path) = output.filter(|path| StoreAddress::parse(path).is_some()) {
            let message = format!("`export` writes files, and `{path}` is a store");
            let (session, path) = (quoted(&self.session), quoted(path));
            return Err(Failure::usage(message).with_help(if self.at.is_some() {
                format!("pactql edit fork SESSION ADDRESS {path} begins a session there")
            } else {
                format!("pactql import {session} -o {path}")
            }));
        }
        if let (Some(address), Some(directory)) = (address.filter(|a| a.is_several()), output) {
            return self.all(address, directory, with);
        }
        if let Some(path) = output {
            input::check_output(path, &[&*self.session], self.force)?;
        }
        if !self.jsonl && (address.is_none() || self.at.is_some()) {
            let at = self.at.as_deref();
            let (_session, snapshot) = sessions::open_at(&self.session, at, with.limits)?;
            return input::put(with, output, |out| write_document(&snapshot, out));
        }
        let session = sessions::open(&self.session, with.limits)?;
        check_written(&session.history())?;
        let kept = match address {
            Some(address) => kept(&open_store(address.store, Access::Read)?, address.one()?)?,
            None => session.kept().map(str::to_owned),
        };
        input::put(with, output, self.writer(&session, kept)?)
    }
}

impl ExportArgs {
    fn writer(
        &self,
        session: &Session,
        kept: Option<String>,
    ) -> Result<impl Fn(&mut dyn Write) -> io::Result<()> + use<>> {
        let (history, full, seal) = (session.history(), self.full, self.seal);
        history.fetch_all()?;
        Ok(move |out: &mut dyn Write| {
            let working = history.working().map(|working| &**working);
            let write = |out: &mut dyn Write| {
                write_session(history.committed(), working, full, out)?;
                // What a writer kept is not a snapshot, but a copy without it would lose references.
                kept.as_ref().map_or(Ok(()), |kept| write_kept(kept, out))
            };
            if !seal {
                return write(out);
            }
            let mut sealing = Sealing::new(out);
            write(&mut sealing)?;
            sealing.finish()
        })
    }

    /// Writes sessions of a store to the files of a directory, which is made if it is missing.
    fn all(&self, address: StoreAddress<'_>, directory: &str, with: &Invocation) -> Result<Exit> {
        if self.at.is_some() {
            return Err(Failure::usage("`--at` takes one session")
                .with_help("`STORE -o DIR` writes whole sessions"));
        }
        let store = open_store(address.store, Access::Read)?;
        let (empty, found): (Vec<_>, Vec<_>) = sessions_of(&store, address)?
            .into_iter()
            .partition(|info| info.snapshots == 0 && !info.working);
        if let Some(first) = empty.first() {
            let sessions = counted(empty.len() as u64, "session");
            say(&format!(
                "note: left out {sessions} without snapshots: {}{}\n",
                printable(&first.name),
                if empty.len() > 1 { ", …" } else { "" }
            ));
        }
        let end = Path::new(directory).extension();
        if end.is_some_and(|end| end == "jsonl") {
            let sessions = counted(found.len() as u64, "session");
            return Err(Failure::usage(format!(
                "expected a directory for {sessions}, and `{directory}` is named as a file"
            ))
            .with_help("`-o DIR` writes each to a file with its name"));
        }
        let files = found.iter().map(|info| file_of(directory, &info.name));
        let files: Vec<String> = files.collect::<Result<_, _>>()?;
        input::write_each(found.iter(), &files, &[] as &[&str], self.force, |info| {
            let session = store.session(&info.name)?;
            self.writer(&session, kept(&store, &info.name)?)
        })?;
        with.done(&json!({"files": files}))
    }
}

fn kept(store: &Store, name: &str) -> Result<Option<String>> {
    let kept = store.kept(name)?;
    let kept = kept.map(|kept| serde_json::to_string(&kept)).transpose();
    kept.map_err(|error| Failure::internal(error.to_string()))
}

/// The file of a session in a directory. A `/` in its name makes directories.
fn file_of(directory: &str, name: &str) -> Result<String> {
    let file = format!("{name}.jsonl");
    let inside = Path::new(&file).components();
    let mut inside = inside.map(|part| matches!(part, Component::Normal(_)));
    // A path passes over empty parts and `.`, so two names would have one file.
    let passes_over = name.split('/').any(|part| part.is_empty() || part == ".");
    if !inside.all(|inside| inside) || passes_over {
        let message = format!("the session `{name}` has a name that no file can have");
        let help = "export it with a file of your choice, or rename it";
        return Err(Failure::usage(message).with_help(help));
    }
    let file = Path::new(directory).join(file);
    Ok(file.to_string_lossy().into_owned())
}

/// What is the request that a model is sent? Prints a snapshot as one.
///
/// The form is that of the API if the session came in as requests. Else it is one JSON array of
/// {"id","role","kind","content"}: the blocks of `^sys`, then of the turns, oldest first, then of `^ah`. `--as`
/// chooses another.
#[derive(Args, Debug)]
pub(super) struct RenderArgs {
    #[command(flatten)]
    place: SnapshotArgs,
    #[command(flatten)]
    form: FormArgs,
    /// What was sent in the snapshot's cycle: without the reply.
    #[arg(long)]
    request: bool,
    /// A `curl` command that sends the request, with the key from the environment.
    #[arg(long)]
    curl: bool,
    /// What one attempt was sent, also one that failed: its id, as `pactql edit attempts SESSION` lists it.
    #[arg(long, value_name = "ID", conflicts_with_all = ["request", "at", "curl"])]
    attempt: Option<String>,
}

impl RenderArgs {
    fn attempt(&self, id: &str, with: &Invocation) -> Result<Exit> {
        let (session, _) = self.place.session(with.limits)?;
        let history = session.history();
        history.fetch_attempts()?;
        let mut attempts = history.attempts().iter();
        let made = attempts.find(|attempt| attempt.attempt_id == id);
        let Some((made, thread)) = made.zip(attempted(&history, id)) else {
            let ids = history.attempts().iter().map(|made| &*made.attempt_id);
            let ids: Vec<&str> = ids.collect();
            let help = if ids.is_empty() {
                "it has none: what its newest call was sent is `pactql render SESSION --request`"
                    .to_owned()
            } else {
                format!("its attempts: {}", ids.join(", "))
            };
            let message = format!("the session has no attempt `{}`", printable(id));
            return Err(Failure::plain(Exit::Input, message).with_help(help));
        };
        let provider = self.form.provider.or(Provider::parse(&made.provider));
        let provider = provider.unwrap_or_default();
        print(&request(Source::from(&thread), provider)?)
    }
}

impl RunCommand for RenderArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        if let Some(id) = &self.attempt {
            return self.attempt(id, with);
        }
        let (session, snapshot) = self.place.open(with.limits)?;
        let call = Call::from_snapshot(&snapshot);
        note_reconstructed(call.reconstructed);
        let thread: Thread;
        let source = if self.request || self.curl {
            session.history().fetch_attempts()?;
            thread = sent(&session.history(), &snapshot);
            Source::from(&thread)
        } else {
            Source::from(&snapshot)
        };
        let form = self.form.provider.or_else(|| came_in_as(&snapshot));
        let provider = form.unwrap_or_default();
        if provider == Provider::Thread && self.curl {
            let fitting = provider_of(&snapshot);
            let others = Provider::ALL.iter().copied();
            let others = others.filter(|other| ![fitting, Provider::Thread].contains(other));
            let others: Vec<&str> = others.map(Provider::name).collect();
            let (fitting, others) = (fitting.name(), others.join(", "));
            let message = "the session did not come in as requests of an API";
            let help = format!("`--as {fitting}` fits its blocks; there are also {others}");
            return Err(Failure::usage(message).with_help(help));
        }
        let text = request(source, provider)?;
        if !self.curl {
            return print(&text);
        }
        print(&curl(provider, call.model.as_deref(), text.trim_end()))
    }
}

/// What stays as it is in the part of an address.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// The command that sends a request. Says what the API needs and the request does not have.
fn curl(provider: Provider, model: Option<&str>, body: &str) -> String {
    let known = members(body);
    // A shell reads the address, and a log says what the model is called.
    let in_path = model.map(|model| utf8_percent_encode(model, PLAIN).to_string());
    let in_path = in_path.unwrap_or_else(|| "MODEL".to_owned());
    let openai = "-H \"Authorization: Bearer $OPENAI_API_KEY\"";
    let (url, key, needs) = match provider {
        Provider::Anthropic => (
            "api.anthropic.com/v1/messages",
            "-H \"x-api-key: $ANTHROPIC_API_KEY\" -H \"anthropic-version: 2023-06-01\"",
            "model max_tokens",
        ),
        Provider::Gemini => (
            "generativelanguage.googleapis.com/v1beta/models/{}:generateContent",
            "-H \"x-goog-api-key: $GEMINI_API_KEY\"",
            "",
        ),
        Provider::Bedrock => (
            "bedrock-runtime.$AWS_REGION.amazonaws.com/model/{}/converse",
            "-H \"Authorization: Bearer $AWS_BEARER_TOKEN_BEDROCK\"",
            "",
        ),
        Provider::OpenAiResponses => ("api.openai.com/v1/responses", openai, "model"),
        _ => ("api.openai.com/v1/chat/completions", openai, "model"),
    };
    let url = url.replace("{}", &in_path);
    let needs = needs.split_whitespace();
    let missing: Vec<&str> = needs
        .filter(|name| get(&known, name).is_none())
        .chain(url.contains("MODEL").then_some("MODEL"))
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(" and ");
        say(&format!(
            "note: the API needs {missing}, which the session does not have\n"
        ));
    }
    let body = body.replace('\'', "'\\''");
    format!("curl \"https://{url}\" {key} -H \"content-type: application/json\" -d '{body}'\n")
}
