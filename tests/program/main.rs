//! Tests that run the program: the command line and the MCP server, each in a child process.

mod browser;
mod cli;
mod documents;
#[cfg(feature = "mcp")]
mod mcp;
