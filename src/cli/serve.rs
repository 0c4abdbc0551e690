//! `pactql context serve`: a server of the Model Context Protocol.

use super::command::Run;
use super::options::{Color, Limits, Messages};
#[cfg(feature = "mcp")]
use crate::mcp::serve;
use crate::present::{Exit, Failure};
use clap::Args;
use std::path::PathBuf;

/// Serve caches and sessions to agents over the Model Context Protocol.
///
/// The server speaks on standard input and output and ends when its input ends. Its tools are
/// context.resolve, context.list_caches and context.inspect_cache for caches, pact.select, pact.explain
/// and pact.diff for sessions, and pact.sessions for stores. It reads files below one directory only.
///
/// Needs a build with the feature `mcp`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql context serve --root .
  pactql context serve --root ~/conversations --max-input 500M")]
pub(super) struct Serve {
    /// The directory of the caches and sessions.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    #[command(flatten)]
    messages: Messages,
    #[command(flatten)]
    limits: Limits,
}

impl Run for Serve {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        serve(&self.root, self.limits.source())?;
        Ok(Exit::Ok)
    }
}

/// Replaces the server in a build without it.
#[cfg(not(feature = "mcp"))]
fn serve(_: &std::path::Path, _: crate::tree::Limits) -> Result<(), Failure> {
    let message = "this build has no server: install with `--features mcp`";
    Err(Failure::usage(message))
}

#[cfg(all(test, not(feature = "mcp")))]
mod tests {
    use super::serve;
    use crate::present::Exit;
    use crate::tree::Limits;

    #[test]
    fn a_build_without_the_server_names_the_feature() {
        let failure = serve(".".as_ref(), Limits::default()).expect_err("no server");
        assert_eq!(failure.exit(), Exit::Usage);
        assert_eq!(
            failure.to_string(),
            "error[E_USAGE]: this build has no server: install with `--features mcp`"
        );
    }
}
