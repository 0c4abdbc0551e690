//! What a server is to be, what its calls share, and what each returns.

use super::loaded::LoadedSessions;
use super::root::Root;
use crate::app::calls::arguments::Arguments;
use crate::app::calls::{CallAnswer, Engines, SessionSource};
use crate::app::present::{Failure, Result};
use crate::engine::Engine;
use crate::history::Session;
use crate::query::ir::Edition;
use crate::tree::Limits;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerOptions {
    pub(crate) limits: Limits,
    /// Whether the listed names of tools have a dot. Both forms are answered.
    pub(crate) dotted_names: bool,
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) root: Root,
    pub(super) loaded: LoadedSessions,
    engines: Engines,
}

impl ServerState {
    pub(super) fn new(root: Root, limits: Limits) -> Self {
        Self {
            root,
            loaded: LoadedSessions::new(limits),
            engines: Engines::new(),
        }
    }
}

impl SessionSource for ServerState {
    fn engine(&self, edition: Edition) -> Result<&Engine> {
        self.engines.get(edition)
    }

    fn session(&self, name: &str) -> Result<Arc<Session>> {
        self.loaded.open(&self.root, name)
    }
}

/// The most bytes of an answer, unless the client says otherwise, and of what is said beside it.
pub(super) const ANSWER: usize = 64 << 10;

impl CallAnswer {
    /// The part of an answer that a call asks for, of at most `limit` bytes. If there is more, what is said ends in a
    /// line with the cursor for the rest: all parts one behind the other are the whole. A part ends with a line if it can.
    ///
    /// # Errors
    /// The cursor is not of this answer.
    pub(super) fn page(mut self, tool: &str, arguments: &Arguments) -> Result<Self> {
        let whole = self.result;
        // A cursor knows the call and the answer, so that none goes on with another.
        let hash = || {
            let asked = format!("{tool} {}", arguments.without(&["limit", "cursor"]));
            let hash = Sha256::new().chain_update(asked).chain_update(&whole);
            let hash = hash.finalize();
            hash.iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let from = match arguments.text("cursor") {
            None => 0,
            Some(cursor) => {
                let foreign = || {
                    Failure::value("the cursor is not of this answer").with_help(
                        "give the cursor that the same call returned; if the session has changed since, call without one",
                    )
                };
                let (at, of) = cursor.split_once('-').ok_or_else(foreign)?;
                let at = at.parse().ok().filter(|at| whole.is_char_boundary(*at));
                at.filter(|_| of == hash()).ok_or_else(foreign)?
            }
        };
        let limit = arguments.size("limit").unwrap_or(ANSWER);
        self.said.truncate(self.said.floor_char_boundary(ANSWER));
        let rest = whole.get(from..).unwrap_or_default();
        if rest.len() > limit {
            let end = rest.floor_char_boundary(limit);
            let end = rest[..end].rfind('\n').map_or(end, |line| line + 1);
            let to = from + end;
            let cursor = format!("{to}-{}", hash());
            let next =
                json!({"next": {"cursor": cursor, "from": from, "to": to, "of": whole.len()}});
            self.said.push_str(&format!("{next}\n"));
            self.result = rest[..end].to_owned();
        } else {
            self.result = rest.to_owned();
        }
        Ok(self)
    }

    /// The result as an object of JSON; `None` if it is text, or a part of a value. Lines of JSON, and what is not an object,
    /// are the member `result`.
    pub(super) fn value(&self) -> Option<Value> {
        let value: Option<Value> = serde_json::from_str(&self.result).ok();
        let value = value.or_else(|| {
            let lines = self.result.lines().map(serde_json::from_str);
            lines
                .collect::<Result<Vec<Value>, _>>()
                .ok()
                .map(Value::Array)
        })?;
        Some(if value.is_object() {
            value
        } else {
            json!({ "result": value })
        })
    }
}
