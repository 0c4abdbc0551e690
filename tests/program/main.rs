//! Tests that run the program: the command line and the MCP server, each in a child process.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../support/cases.rs"]
mod cases;
mod cli;
mod documents;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(all(unix, feature = "view"))]
mod view;
