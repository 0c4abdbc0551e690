//! `pactql context`: caches of documents, and what of them fits a budget.

use crate::budget::{self, BuildOptions, Cache, CacheError, Indexing, Query};
use crate::present::{Exit, Failure, notes};
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

/// Choose documents that fit a number of tokens.
///
/// A cache is built once of the Markdown files below a directory. `resolve` scores every
/// document by the share of its words that are words of the query, and takes the best that fit,
/// whole or not at all. The same cache, query and budget give the same bytes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context build --sources docs --cache cache
  pactql context resolve --cache cache --query \"deployment\" --budget 4000
  pactql context inspect --cache cache
  pactql context verify --cache cache

Exit codes: 0 ok, 1 usage, 2 invalid query, 3 invalid budget, 4 cache missing, 5 cache invalid,
6 input or output failed, 7 internal error.")]
pub(super) struct Context {
    #[command(subcommand)]
    command: ContextCommand,
}

#[derive(Subcommand, Debug)]
enum ContextCommand {
    Build(Build),
    Resolve(Resolve),
    Inspect(Inspect),
    Verify(Verify),
    #[cfg(feature = "mcp")]
    Serve(super::serve::Serve),
}

/// Build a cache of the `.md` files below a directory.
///
/// The id of a document is its path below the directory in lower case, with forward slashes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context build --sources docs --cache cache
  pactql context build --sources docs --cache cache --force")]
struct Build {
    /// The directory of the documents.
    #[arg(long, value_name = "DIR")]
    sources: PathBuf,
    /// The directory to make.
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
    /// Replace a cache that is there already.
    #[arg(long)]
    force: bool,
    /// Whether to keep an index of terms in the cache, which makes `resolve` fast and never shows
    /// in an answer.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    index: IndexWhen,
    #[command(flatten)]
    messages: super::options::Messages,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum IndexWhen {
    /// Where the documents together have a megabyte or more.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Choose documents of a cache for a query.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context resolve --cache cache --query \"deployment\" --budget 4000
  pactql context resolve --cache cache --query \"\" --budget 4000 --format pretty")]
struct Resolve {
    /// The cache.
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
    /// The words to look for; where there are none, every score is 0.0.
    #[arg(long, value_name = "QUERY", allow_hyphen_values = true)]
    query: OsString,
    /// How many tokens may be taken: a quarter of the bytes of each document, rounded up.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    budget: u64,
    /// How the answer is printed; unless given, compact, and errors in words.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Layout>,
}

/// Print what a cache is: its version, documents, bytes, and whether it is valid.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context inspect --cache cache")]
struct Inspect {
    /// The cache.
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
    #[command(flatten)]
    messages: super::options::Messages,
}

/// Check a cache and name everything that is wrong with it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context verify --cache cache
  pactql context verify --cache cache --format json")]
struct Verify {
    /// The cache.
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
    #[command(flatten)]
    messages: super::options::Messages,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// On one line; errors as JSON too, on standard error.
    Json,
    /// Indented.
    Pretty,
}

impl Context {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        match &self.command {
            ContextCommand::Build(command) => command.messages.json(),
            ContextCommand::Resolve(command) => command.format == Some(Layout::Json),
            ContextCommand::Inspect(command) => command.messages.json(),
            ContextCommand::Verify(command) => command.messages.json(),
            #[cfg(feature = "mcp")]
            ContextCommand::Serve(command) => command.json_errors(),
        }
    }

    /// Runs the command.
    pub(super) fn run(self) -> Result<Exit, Failure> {
        let text = match self.command {
            ContextCommand::Build(command) => command.run()?,
            ContextCommand::Resolve(command) => command.run()?,
            ContextCommand::Inspect(command) => command.run()?,
            ContextCommand::Verify(command) => command.run()?,
            #[cfg(feature = "mcp")]
            ContextCommand::Serve(command) => return command.run(),
        };
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    }
}

impl Build {
    fn run(self) -> Result<String, Failure> {
        let options = BuildOptions {
            force: self.force,
            created_at: SystemTime::now(),
            index: match self.index {
                IndexWhen::Auto => Indexing::Auto,
                IndexWhen::Always => Indexing::Always,
                IndexWhen::Never => Indexing::Never,
            },
        };
        let manifest = budget::build(&self.sources, &self.cache, options)?;
        let mut said = String::new();
        if manifest.documents.is_empty() {
            let _ = writeln!(said, "note: no .md files below {}", self.sources.display());
        }
        super::say(&said);
        Ok(String::new())
    }
}

impl Resolve {
    fn run(self) -> Result<String, Failure> {
        let query = super::fit::text_of(self.query)?;
        let cache = Cache::open(self.cache)?;
        let answer = cache.resolve(&Query::new(query), self.budget)?;
        super::say(&notes::of_cache(&cache));
        // The program is at its end: to free a list of thousands of documents would take a good
        // part of the time that their index saves.
        std::mem::forget(cache);
        let pretty = self.format == Some(Layout::Pretty);
        line(answer.to_json(pretty))
    }
}

impl Inspect {
    fn run(self) -> Result<String, Failure> {
        let cache = Cache::open(self.cache)?;
        line(serde_json::to_string(&budget::inspect(&cache)?))
    }
}

impl Verify {
    fn run(self) -> Result<String, Failure> {
        let cache = Cache::open(self.cache)?;
        let faults = budget::verify(&cache)?;
        if !faults.is_empty() {
            return Err(CacheError::Invalid(cache.dir().to_owned(), faults).into());
        }
        let count = cache.manifest().document_count;
        Ok(format!("valid: {count} documents\n"))
    }
}

/// JSON and its line feed.
fn line(json: serde_json::Result<String>) -> Result<String, Failure> {
    match json {
        Ok(mut text) => {
            text.push('\n');
            Ok(text)
        }
        Err(error) => Err(Failure::Plain(Exit::Internal, error.to_string(), None)),
    }
}
