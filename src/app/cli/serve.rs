//! `pactql context serve`: a server of the Model Context Protocol.

use super::command::{Invocation, Run};
use super::options::Limits;
#[cfg(feature = "mcp")]
use crate::app::mcp::{Options, serve};
use crate::app::present::{Exit, Failure};
use clap::Args;
use std::path::PathBuf;

/// Serve caches and sessions to agents over the Model Context Protocol.
///
/// The server speaks on standard input and output and ends when either ends. Its tools are
/// context_resolve, context_list_caches and context_inspect_cache for caches, and pact_select, pact_show,
/// pact_grep and others for sessions; names with a dot, such as context.resolve, are answered too. It
/// reads files below one directory only. With --timeout, each call ends after this time with E_CANCELLED.
///
/// Needs a build with the feature `mcp`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context serve --root .
  pactql context serve --root ~/conversations --max-input 500M --timeout 30s")]
pub(super) struct Serve {
    /// The directory of the caches and sessions.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// List the tools with a dot in their names, as context.resolve. Many hosts refuse such names.
    #[arg(long)]
    dotted_names: bool,
    #[command(flatten)]
    limits: Limits,
}

impl Run for Serve {
    fn answers_calls(&self) -> bool {
        true
    }

    #[cfg(feature = "mcp")]
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let options = Options {
            limits: self.limits.source(),
            dotted_names: self.dotted_names,
            timeout: with.timeout,
        };
        serve(&self.root, &options)?;
        Ok(Exit::Ok)
    }

    /// Replaces the server in a build without it.
    #[cfg(not(feature = "mcp"))]
    fn run(&self, _: &Invocation) -> Result<Exit, Failure> {
        Err(no_server())
    }
}

#[cfg(not(feature = "mcp"))]
fn no_server() -> Failure {
    Failure::usage("this build has no server: install with `--features mcp`")
}

#[cfg(test)]
#[cfg(not(feature = "mcp"))]
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
