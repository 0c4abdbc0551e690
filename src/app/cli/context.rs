//! `pactql context`: caches of documents, and the documents that fit a budget.

use super::answers::text_of;
use super::command::{Invocation, RunCommand, print, say};
use super::options::PrintAs;
#[cfg(feature = "mcp")]
use crate::app::mcp::{ServerOptions, serve};
use crate::app::present::{Exit, Failure, Result};
use crate::budget::{self, BuildOptions, Cache, CacheError, Query};
use clap::{Args, Subcommand};
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

/// Which documents fit a number of tokens? Makes and reads caches of documents.
///
/// `build` makes a cache of the Markdown files below a directory. `resolve` scores every document
/// by the share of its words that occur in the query, and takes the best ones that fit, each whole
/// or not at all. The same cache, query and budget give the same bytes.
#[derive(Args, Debug)]
pub(super) struct ContextArgs {
    #[command(subcommand)]
    command: ContextCommand,
}

#[derive(Subcommand, Debug)]
enum ContextCommand {
    /// How is a cache of documents made? Of the `.md` files below a directory.
    ///
    /// The id of a document is its path below the directory in lower case, with forward slashes.
    Build {
        /// The directory of the documents.
        #[arg(long, value_name = "DIR")]
        sources: PathBuf,
        /// The directory of the cache.
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
        /// Replace a cache that exists already.
        #[arg(long)]
        force: bool,
    },
    /// Which documents of a cache answer a query? Prints JSON, with `--format pretty` indented.
    Resolve {
        /// The directory of the cache.
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
        /// The words to look for; without words every score is 0.0.
        #[arg(long, value_name = "QUERY", allow_hyphen_values = true)]
        query: OsString,
        /// The number of tokens to fit: a document counts a quarter of its bytes, rounded up.
        #[arg(long, value_name = "N", allow_hyphen_values = true)]
        budget: u64,
    },
    /// What is in a cache? Its version, documents and bytes, and whether it is valid.
    Inspect {
        /// The directory of the cache.
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
    },
    /// Is a cache intact? Lists everything that is wrong with it.
    Verify {
        /// The directory of the cache.
        #[arg(long, value_name = "DIR")]
        cache: PathBuf,
    },
    Serve(Serve),
}

impl RunCommand for ContextArgs {
    fn answers_calls(&self) -> bool {
        matches!(self.command, ContextCommand::Serve(_))
    }

    fn formats(&self) -> &'static [PrintAs] {
        match self.command {
            ContextCommand::Resolve { .. } => &[PrintAs::Json, PrintAs::Pretty],
            _ => &[PrintAs::Text, PrintAs::Json],
        }
    }

    fn run(&self, with: &Invocation) -> Result<Exit> {
        let json = match &self.command {
            ContextCommand::Build {
                sources,
                cache,
                force,
            } => {
                let options = BuildOptions {
                    force: *force,
                    created_at: SystemTime::now(),
                };
                let manifest = budget::build(sources, cache, options)?;
                if manifest.documents.is_empty() {
                    let sources = sources.display();
                    say(&format!("note: no .md files below {sources}\n"));
                }
                let documents = manifest.documents.len();
                return with.done(&json!({"cache": cache, "documents": documents}));
            }
            ContextCommand::Resolve {
                cache,
                query,
                budget,
            } => {
                let query = Query::new(text_of(query)?);
                let resolution = Cache::open(cache)?.resolve(&query, *budget)?;
                resolution.to_json(with.format == Some(PrintAs::Pretty))
            }
            ContextCommand::Inspect { cache } => {
                serde_json::to_string(&budget::inspect(&Cache::open(cache)?)?)
            }
            ContextCommand::Verify { cache } => {
                let cache = Cache::open(cache)?;
                let faults = budget::verify(&cache)?;
                if !faults.is_empty() {
                    return Err(CacheError::Invalid(cache.dir().to_owned(), faults).into());
                }
                let count = cache.manifest().document_count;
                let json = json!({"valid": true, "documents": count});
                return with.print(&json, || format!("valid: {count} documents\n"));
            }
            ContextCommand::Serve(command) => return command.run(with),
        };
        match json {
            Ok(text) => print(&(text + "\n")),
            Err(error) => Err(Failure::internal(error.to_string())),
        }
    }
}

/// How do agents ask sessions? Serves caches and sessions over the Model Context Protocol.
///
/// The server speaks on standard input and output and ends when either ends. Its tools are
/// context_resolve, context_list_caches and context_inspect_cache for caches, and pact_select, pact_show,
/// pact_grep and others for sessions; names with a dot, such as context.resolve, are answered too. It
/// reads files below one directory only. With --timeout, each call ends after this time with E_CANCELLED.
///
/// Needs a build with the feature `mcp`.
#[derive(Args, Debug)]
struct Serve {
    /// The directory of the caches and sessions.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// List the tools with a dot in their names, as context.resolve. Many hosts refuse such names.
    #[arg(long)]
    dotted_names: bool,
}

impl Serve {
    #[cfg(feature = "mcp")]
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let options = ServerOptions {
            limits: with.limits,
            dotted_names: self.dotted_names,
            timeout: with.timeout,
        };
        serve(&self.root, &options)?;
        Ok(Exit::Ok)
    }

    #[cfg(not(feature = "mcp"))]
    fn run(&self, _: &Invocation) -> Result<Exit> {
        Err(no_server())
    }
}

#[cfg(not(feature = "mcp"))]
fn no_server() -> Failure {
    Failure::usage("this build has no server: install with `--features mcp`")
}

#[cfg(not(feature = "mcp"))]
#[cfg(test)]
mod tests {
    use super::no_server;
    use crate::app::present::Exit;

    #[test]
    fn a_build_without_the_server_names_the_feature() {
        let failure = no_server();
        assert_eq!(failure.exit(), Exit::Usage);
        assert_eq!(
            failure.to_string(),
            "error[E_USAGE]: this build has no server: install with `--features mcp`"
        );
    }
}
