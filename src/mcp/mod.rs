//! The tools of the Model Context Protocol, on standard input and output (RUNTIME §6).
//!
//! ```text
//! server           handshake, list and calls; the only file that knows the SDK
//!   log            messages on standard error
//!   tools          names and arguments
//!     arguments    one table for schemas and checks
//!     context      caches of documents
//!     pact         sessions
//!       state      what calls share: engines, the root, loaded sessions
//!         kept     sessions that stay loaded
//!           stores stores that stay open
//!             root the directory that may be read
//! ```
//! [`crate::present`] and the modules below it make the results, in the same bytes as the command
//! line's. This module does not know the command line, and writes no file; SQLite makes its own beside a store.

mod arguments;
mod context;
mod inspect;
mod kept;
mod log;
mod pact;
mod root;
mod server;
mod state;
mod stores;
mod tools;

use crate::present::Failure;
use crate::tree::Limits;
use std::path::Path;

/// Serves a directory on standard input and output until the input ends.
///
/// # Errors
/// There is no such directory; a client that does not speak the protocol.
pub(crate) fn serve(dir: &Path, limits: Limits) -> Result<(), Failure> {
    let root = root::Root::open(dir)?;
    server::serve(state::ServerState::new(root, limits))
}
