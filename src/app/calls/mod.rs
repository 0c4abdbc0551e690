//! Questions with named arguments about one session, for the two servers: what a tool of the Model Context Protocol and a
//! route of the HTTP interface answer alike.
//!
//! | part | what it has |
//! |---|---|
//! | `tools.json` | the tools and routes, with their arguments |
//! | `arguments` | one table for schemas and checks |
//! | `reports` | the answers, in the same bytes as the command line's |
//! | `kept` | what was read of files, while these have not changed |
//!
//! A caller says by [`SessionSource`] where its sessions are. This module knows no protocol and no terminal.

pub(crate) mod arguments;
pub(crate) mod kept;
pub(crate) mod reports;

use crate::app::present::{Failure, Result};
use crate::engine::Engine;
use crate::history::Session;
use crate::query::ir::Edition;
use arguments::Parameter;
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// Where the sessions are that a client names.
pub(crate) trait SessionSource {
    fn engine(&self, edition: Edition) -> Result<&Engine>;

    /// The session as it is now.
    fn session(&self, name: &str) -> Result<Arc<Session>>;

    /// The sessions that a name means where they are summed: of a log all, with its branches and subagents.
    fn sessions(&self, name: &str) -> Result<Vec<NamedSession>> {
        Ok(vec![(name.to_owned(), self.session(name)?)])
    }
}

/// A session with its name.
pub(crate) type NamedSession = (String, Arc<Session>);

/// One engine for each edition, which keeps its plans between calls.
#[derive(Debug)]
pub(crate) struct Engines([Engine; Edition::ALL.len()]);

impl Engines {
    pub(crate) fn new() -> Self {
        Self(Edition::ALL.map(|edition| Engine::builder().edition(edition).build()))
    }

    pub(crate) fn get(&self, edition: Edition) -> Result<&Engine> {
        let of = |engine: &&Engine| engine.edition() == edition;
        let none = || Failure::internal("no such edition");
        self.0.iter().find(of).ok_or_else(none)
    }
}

#[derive(Debug, Default)]
pub(crate) struct CallAnswer {
    /// What the command prints on standard output, without its last line feed.
    pub(crate) result: String,
    /// What the command prints on standard error: warnings and notes, a line each, or nothing.
    pub(crate) said: String,
}

impl From<String> for CallAnswer {
    fn from(result: String) -> Self {
        Self {
            result,
            said: String::new(),
        }
    }
}

/// A tool or a route as `tools.json` has it.
#[derive(Debug, Deserialize)]
pub(crate) struct CallEntry {
    /// Of a tool its name: letters and underscores alone, since hosts of agents refuse others, and some then drop the whole
    /// list. What is before the first underscore is its group. Of a route its path below `/api/`.
    pub(crate) name: String,
    /// What people are shown instead of the name.
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) parameters: Vec<Parameter>,
}

/// What the interface of caches defines: its answers are bounded by the budget that the client gives.
pub(crate) const FROZEN: &str = "context_";

/// The tools, the routes that read, and those that write, each in the order in which they are listed. A test reads the file.
pub(crate) static TABLE: LazyLock<[Vec<CallEntry>; 3]> =
    LazyLock::new(|| read(include_str!("tools.json")).unwrap_or_default());

/// Reads the file, in which a parameter that several have is a name, and that of a tool `TOOL.NAME`. Tools over sessions also
/// take what bounds an answer.
pub(crate) fn read(text: &str) -> Option<[Vec<CallEntry>; 3]> {
    let mut file: Value = serde_json::from_str(text).ok()?;
    let shared = file["shared"].take();
    for tool in file["tools"].as_array_mut()? {
        if !tool["name"].as_str()?.starts_with(FROZEN) {
            let bounds = ["limit", "cursor"].map(Value::from);
            tool["parameters"].as_array_mut()?.extend(bounds);
        }
    }
    let tools = file["tools"].clone();
    let named = |name: &str| match name.split_once('.') {
        None => Some(shared[name].clone()),
        Some((tool, name)) => {
            let all = tools.as_array()?;
            let tool = all.iter().find(|one| one["name"] == tool)?;
            let mut parameters = tool["parameters"].as_array()?.iter();
            parameters.find(|one| one["name"] == name).cloned()
        }
    };
    let mut entries = |list: &str| {
        for entry in file[list].as_array_mut()? {
            for parameter in entry["parameters"].as_array_mut()? {
                if let Some(name) = parameter.as_str() {
                    *parameter = named(name)?;
                }
            }
        }
        serde_json::from_value(file[list].take()).ok()
    };
    Some([entries("tools")?, entries("routes")?, entries("writes")?])
}
