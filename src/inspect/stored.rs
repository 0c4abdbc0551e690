//! Sizes of the blocks of many sessions of a store, which its database gives by one statement (STORE §4).

use super::groups::{By, ToolNames};
use super::part::{Part, Region};
use super::top::Top;
use crate::json::JsonValue;
use crate::render::BlockFields;
use crate::store::{Store, StoreBlock, StoreReason, StoreRoute, StoreSelection};
use crate::support::diag::Error;
use std::borrow::Cow;

impl Top {
    /// Adds the part of each session of a store whose name matches a pattern, where one statement of the database gives the
    /// blocks; `name` gives its name by that in the store. Else adds nothing, and the route says so: each session has to be
    /// loaded for [`Top::add`].
    ///
    /// # Errors
    /// Those of the selector and of the database.
    #[doc(hidden)]
    pub fn add_stored(
        &mut self,
        store: &Store,
        glob: &str,
        name: impl Fn(&str) -> String,
        part: &Part,
    ) -> Result<StoreRoute, Error> {
        let loaded = Ok(StoreRoute::Sessions(StoreReason::Unsupported));
        let (Some(time), Some(selector)) = (part.one_time(), &part.selector) else {
            return loaded;
        };
        store.engine().prepare_timeless(selector)?;
        let of = |selector: &str| {
            let selected = store.select(format!("{time} {selector}").trim_start());
            selected.map(|selected| selected.sessions(glob))
        };
        let calls = if self.by == Some(By::Tool) {
            Some(StoredCalls::new(&of(".cb[kind='call']")?)?)
        } else {
            None
        };
        let mut added = StoredBlocks {
            top: Self::new(self.by, self.tokenizer),
            calls,
            tools: ToolNames::default(),
            session: None,
            name: String::new(),
            labelled: name,
            sessions: 0,
        };
        let mut failed = None;
        let route = of(selector)?.blocks(|block| {
            if failed.is_none() {
                failed = added.add(block).err();
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if route != StoreRoute::Statement {
            return Ok(route);
        }
        let sessions = store.count(glob)?;
        if added.sessions < sessions {
            // One without such a snapshot is an error, and not one in which nothing is found.
            let mut counts = of("^root")?.counts()?;
            let has = counts.try_fold(0, |sum, found| found.map(|_| sum + 1))?;
            if has < sessions {
                return loaded;
            }
        }
        self.include(&added.top);
        self.sessions += sessions as u64;
        Ok(route)
    }
}

impl<'a> BlockFields<'a> for &'a StoreBlock<'_> {
    fn id(self) -> &'a str {
        self.id
    }

    fn role(self) -> Option<&'a str> {
        self.role.as_deref()
    }

    fn kind(self) -> Option<&'a str> {
        self.kind.as_deref()
    }

    fn key(self) -> Option<&'a str> {
        self.key.as_deref()
    }

    fn top(self) -> &'a str {
        self.top
    }

    fn field(self, name: &str) -> Option<JsonValue<'a>> {
        self.value(name)
    }
}

/// The sums of the blocks of a store, session by session.
struct StoredBlocks<N> {
    top: Top,
    /// Where blocks are grouped by tool: the calls of the same sessions.
    calls: Option<StoredCalls>,
    /// Those of the session whose blocks are added.
    tools: ToolNames,
    session: Option<i64>,
    name: String,
    labelled: N,
    sessions: usize,
}

impl<N: Fn(&str) -> String> StoredBlocks<N> {
    fn add(&mut self, block: &StoreBlock<'_>) -> Result<(), Error> {
        let Some(region) = Region::of_rank(block.rank) else {
            return Ok(());
        };
        if self.session != Some(block.session) {
            self.session = Some(block.session);
            self.sessions += 1;
            self.top.counts.next_session();
            if matches!(self.top.by, None | Some(By::Turn | By::Block)) {
                self.name = (self.labelled)(block.name);
            }
            if let Some(calls) = &mut self.calls {
                self.tools = calls.of_session(block.name)?;
            }
        }
        let totals = self.top.counts.apart(block, region == Region::Sys);
        let name = match self.top.by {
            None => None,
            Some(by) => by.group(block, region, &self.tools),
        };
        let name = self.top.group_name(&self.name, name.map(Cow::into_owned));
        self.top.count(&name, totals);
        Ok(())
    }
}

/// The calls of the sessions of a store, in the order of the sessions' names, each in that of its session.
struct StoredCalls {
    rows: Box<dyn Iterator<Item = Result<StoredCall, Error>>>,
    next: Option<StoredCall>,
}

/// The name of a session, the id of a call in it, and its tool.
type StoredCall = (String, String, String);

impl StoredCalls {
    fn new(selected: &StoreSelection<'_>) -> Result<Self, Error> {
        let rows = selected.block_stream(|block| {
            let (id, tool) = ToolNames::of_call(block)?;
            Some((block.name.to_owned(), id, tool))
        })?;
        let mut calls = Self {
            rows: Box::new(rows),
            next: None,
        };
        calls.next = calls.rows.next().transpose()?;
        Ok(calls)
    }

    /// The tools of the calls of a session. Those of sessions before it are left out.
    fn of_session(&mut self, name: &str) -> Result<ToolNames, Error> {
        let mut tools = ToolNames::default();
        while let Some((session, id, tool)) = self.next.take_if(|(session, ..)| &**session <= name)
        {
            if session == name {
                tools.add(id, tool);
            }
            self.next = self.rows.next().transpose()?;
        }
        Ok(tools)
    }
}
