//! `pactql context`: caches of documents, and the documents that fit a budget.

use super::command::{Invocation, Run, print, say};
use super::fit::text_of;
use super::options::Format;
use super::serve::Serve;
use crate::app::present::{Exit, Failure};
use crate::budget::{self, BuildOptions, Cache, CacheError, Query};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

/// Which documents fit a number of tokens? Makes and reads caches of documents.
///
/// `build` makes a cache of the Markdown files below a directory. `resolve` scores every document
/// by the share of its words that occur in the query, and takes the best ones that fit, each whole
/// or not at all. The same cache, query and budget give the same bytes.
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
    Serve(Serve),
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
    /// The directory to create.
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
    /// Replace a cache that exists already.
    #[arg(long)]
    force: bool,
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
    /// The words to look for; without words every score is 0.0.
    #[arg(long, value_name = "QUERY", allow_hyphen_values = true)]
    query: OsString,
    /// The number of tokens to fit: a document counts a quarter of its bytes, rounded up.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    budget: u64,
    /// Print JSON with indents; the same as `--format pretty`.
    #[arg(long, conflicts_with = "format")]
    pretty: bool,
}

/// Print the version of a cache, its documents, its bytes, and whether it is valid.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context inspect --cache cache")]
struct Inspect {
    /// The cache.
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
}

/// Check a cache and list everything that is wrong with it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context verify --cache cache
  pactql context verify --cache cache --format json")]
struct Verify {
    /// The cache.
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,
}

impl ContextCommand {
    fn get(&self) -> &dyn Run {
        match self {
            Self::Build(command) => command,
            Self::Resolve(command) => command,
            Self::Inspect(command) => command,
            Self::Verify(command) => command,
            Self::Serve(command) => command,
        }
    }
}

impl Run for Context {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        self.command.get().run(with)
    }

    fn answers_calls(&self) -> bool {
        self.command.get().answers_calls()
    }

    fn formats(&self) -> &'static [Format] {
        self.command.get().formats()
    }
}

impl Run for Build {
    fn run(&self, _: &Invocation) -> Result<Exit, Failure> {
        let options = BuildOptions {
            force: self.force,
            created_at: SystemTime::now(),
        };
        let manifest = budget::build(&self.sources, &self.cache, options)?;
        if manifest.documents.is_empty() {
            let sources = self.sources.display();
            say(&format!("note: no .md files below {sources}\n"));
        }
        Ok(Exit::Ok)
    }
}

impl Run for Resolve {
    fn formats(&self) -> &'static [Format] {
        &[Format::Json, Format::Pretty]
    }

    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let query = text_of(&self.query)?;
        let cache = Cache::open(&self.cache)?;
        let resolution = cache.resolve(&Query::new(query), self.budget)?;
        line(resolution.to_json(self.pretty || with.format == Some(Format::Pretty)))
    }
}

impl Run for Inspect {
    fn run(&self, _: &Invocation) -> Result<Exit, Failure> {
        let cache = Cache::open(&self.cache)?;
        line(serde_json::to_string(&budget::inspect(&cache)?))
    }
}

impl Run for Verify {
    fn run(&self, _: &Invocation) -> Result<Exit, Failure> {
        let cache = Cache::open(&self.cache)?;
        let faults = budget::verify(&cache)?;
        if !faults.is_empty() {
            return Err(CacheError::Invalid(cache.dir().to_owned(), faults).into());
        }
        let count = cache.manifest().document_count;
        print(&format!("valid: {count} documents\n"))
    }
}

/// Prints JSON and a line feed.
fn line(json: serde_json::Result<String>) -> Result<Exit, Failure> {
    match json {
        Ok(text) => print(&(text + "\n")),
        Err(error) => Err(Failure::internal(error.to_string())),
    }
}
