//! The tools of the Model Context Protocol, on standard input and output (RUNTIME §6).
//!
//! ```text
//! server           handshake, list and calls; with `transport` the only file that knows the SDK
//!   transport      lines as messages, and how many are on their way
//!     lines        the streams, and their ends; messages on standard error
//!       load       counts of what is on its way
//!   tools          failures as clients know them
//!     pages        answers in parts, kept for the next part
//!     context      caches of documents
//!     sessions     which sessions there are, and what they have
//!       found      files that may be sessions
//!       state      what calls share: engines, the root, loaded sessions
//!         loaded   sessions that stay loaded, stores that stay open
//!           root   the directory that may be read
//! ```
//! [`crate::app::calls`] has the arguments of tools and the answers about one session, in the same bytes as the command
//! line's. This module does not know the command line, and writes no file; SQLite makes its own beside a store.

mod context;
mod found;
mod lines;
mod load;
mod loaded;
mod pages;
mod root;
mod server;
mod sessions;
mod state;
mod tools;
mod transport;

pub(crate) use state::ServerOptions;

use crate::app::present::Result;
use std::path::Path;

/// What calls of tools are answered with, a line each, without a client and its handshake: for fuzz targets.
///
/// # Errors
/// Those of opening the directory.
pub fn answers(dir: &Path, lines: &[&[u8]]) -> std::io::Result<Vec<Vec<u8>>> {
    let root = root::Root::open(dir).map_err(|failure| std::io::Error::other(failure.message()))?;
    let state = state::ServerState::new(root, crate::tree::Limits::default());
    let each = lines
        .iter()
        .filter_map(|line| match transport::read(line, false) {
            Ok(message) => Some(transport::line(&server::answer(&state, message?)?)),
            Err(refusal) => Some(refusal),
        });
    Ok(each.collect())
}

/// Serves a directory on standard input and output until either ends.
pub(crate) fn serve(dir: &Path, options: &ServerOptions) -> Result<()> {
    let root = root::Root::open(dir)?;
    server::serve(state::ServerState::new(root, options.limits), options)
}
