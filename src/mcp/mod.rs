//! The answers of the command line over the Model Context Protocol, on standard input and output
//! (RUNTIME §6).
//!
//! ```text
//! server     the handshake, lists and calls; the only file that knows the SDK (log: standard error)
//!   tools      names, and what each takes
//!     arguments  one table for schemas and checks
//!     context    caches of documents        pact   sessions
//!       root       what may be read           kept   sessions that stay loaded
//! ```
//! What a tool answers is made by [`crate::present`] and the rooms below it, as the command
//! line's answers are, in the same bytes. This room must not know arguments of the command line,
//! and nothing here writes a file.

mod arguments;
mod context;
mod kept;
mod log;
mod pact;
mod root;
mod server;
mod tools;

use crate::present::Failure;
use crate::tree::Limits;
use std::path::Path;

/// Serves a directory on standard input and output until the input ends.
///
/// Takes the process over: its standard streams, and its current directory, which becomes the one
/// served, so that a path means the same to the client, the reader and every message.
///
/// # Errors
/// There is no such directory; a client that does not speak the protocol.
pub(crate) fn serve(dir: &Path, limits: Limits) -> Result<(), Failure> {
    let root = root::Root::open(dir)?;
    std::env::set_current_dir(root.dir())
        .map_err(|error| Failure::file(&dir.display().to_string(), &error))?;
    server::serve(tools::ServerState::new(root, limits))
}
