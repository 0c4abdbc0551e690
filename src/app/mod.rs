//! The programs: the command line and the server of the Model Context Protocol, with what both share.
//!
//! | part | what it has |
//! |---|---|
//! | `present` | sessions by path, answers as JSON, notes, failures with codes |
//! | `measure` | runs of selectors, and what their times say |
//! | `cli` | commands, terminals, exit codes |
//! | `calls` | questions with named arguments, for both servers |
//! | `mcp` | tools over the protocol |
//! | `serve` | the page, and answers over HTTP |
//!
//! Nothing may import it.

#[cfg(feature = "cli")]
mod calls;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
#[cfg(feature = "cli")]
mod measure;
#[cfg(feature = "cli")]
mod present;
#[cfg(feature = "cli")]
pub use present::opened;
#[cfg(feature = "view")]
mod serve;
