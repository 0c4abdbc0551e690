//! Which snapshots of a session a report is about, and which of their blocks.

use crate::engine::{EmptyAnswer, Engine};
use crate::history::{At, History, Session};
use crate::index::{NodeRef, Snapshot, UnitKind};
use crate::json::JsonValue;
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::tree::NodeClass;
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// Which snapshots, and which blocks of them.
///
/// ```
/// use pactql::inspect::Part;
/// let part = Part::default().at("@t-2").only(".cb[role='user']");
/// assert_eq!(part.time(), "@t-2");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    time: Option<String>,
    all: bool,
    /// Whether text lists snapshots instead of describing one.
    pub(super) is_range: bool,
    /// Whether committed snapshots are read where no time is given.
    pub(super) is_committed: bool,
    /// Whether it is about nodes, not only about the blocks among them and below them.
    pub(super) is_of_nodes: bool,
    pub(crate) selector: Option<String>,
}

impl Part {
    /// All committed snapshots, and the working state if there is one.
    #[must_use]
    pub fn all() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }

    /// The snapshot at an address, or the snapshots of a range. Without it, or with an empty one, the working state, or
    /// else the newest snapshot.
    #[must_use]
    pub fn at(mut self, time: impl Into<String>) -> Self {
        self.time = Some(time.into());
        self.all = false;
        self
    }

    /// The snapshots of a range. Text lists them as such even if there is only one.
    #[must_use]
    pub fn over(self, range: impl Into<String>) -> Self {
        Self {
            is_range: true,
            ..self.at(range)
        }
    }

    /// Only the nodes that a selector without a time matches, and what is below them.
    #[must_use]
    pub fn only(mut self, selector: impl Into<String>) -> Self {
        self.selector = Some(selector.into());
        self
    }

    /// The time; empty for the working state, or else the newest snapshot.
    #[must_use]
    pub fn time(&self) -> &str {
        self.time.as_deref().unwrap_or_default()
    }

    pub(super) fn has_time(&self) -> bool {
        self.time.is_some()
    }

    /// The same, of all committed snapshots if there is no time.
    #[must_use]
    pub(super) fn or_history(&self) -> Self {
        let time = self.time.as_deref().unwrap_or("@history");
        Self {
            is_committed: true,
            ..self.clone().at(time)
        }
    }

    /// The nodes of all committed snapshots that the selector matches, whatever their class.
    pub(crate) fn logged(self) -> Self {
        Self {
            is_committed: true,
            is_of_nodes: true,
            ..self.at("@history")
        }
    }

    /// The time, if it is not of several snapshots by its form.
    pub(super) fn one_time(&self) -> Option<&str> {
        (!self.all && !self.is_range && !self.is_committed).then(|| self.time())
    }

    /// Whether the part is of all snapshots. Errors: the selector does not compile, which no session changes.
    #[cfg(all(feature = "cli", feature = "store"))]
    pub(crate) fn is_all(&self, engine: &Engine) -> Result<bool, Error> {
        if let Some(selector) = &self.selector {
            engine.prepare_timeless(selector)?;
        }
        Ok(self.all)
    }

    pub(super) fn snapshots(
        &self,
        engine: &Engine,
        history: &Arc<History>,
    ) -> Result<Vec<(At, Arc<Snapshot>)>, Error> {
        if !self.all {
            return engine.snapshots(history, self.time());
        }
        let mut found = if history.committed().is_empty() {
            Vec::new()
        } else {
            engine.snapshots(history, "@history")?
        };
        if history.has_working() {
            found.extend(engine.snapshots(history, "")?);
        }
        Ok(found)
    }

    /// The snapshots, oldest first, each with its chosen rows. Rows are found when the iterator reaches their
    /// snapshot: those of all snapshots may not fit into memory.
    pub(super) fn chosen<'a>(
        &'a self,
        engine: &'a Engine,
        history: &'a Arc<History>,
    ) -> Result<impl Iterator<Item = Result<ChosenSnapshot, Error>> + 'a, Error> {
        let snapshots = self.snapshots(engine, history)?;
        Ok(self.with_rows(engine, history, snapshots))
    }

    pub(super) fn with_rows<'a>(
        &'a self,
        engine: &'a Engine,
        history: &'a Arc<History>,
        snapshots: Vec<(At, Arc<Snapshot>)>,
    ) -> impl Iterator<Item = Result<ChosenSnapshot, Error>> + 'a {
        let snapshots = snapshots.into_iter().inspect(|_| ensure());
        snapshots.map(move |(at, snapshot)| {
            Ok(ChosenSnapshot {
                rows: self.rows(engine, history, &snapshot)?,
                at,
                snapshot,
            })
        })
    }

    /// Why the selector finds nothing, or no block, in any of the snapshots, in words (LANGUAGE §10): what is said beside
    /// a report on it. Empty if it finds some, and without a selector.
    ///
    /// # Errors
    /// As [`Report::new`](super::Report::new).
    ///
    /// ```
    /// let session = pactql::Session::open("fixtures/support-agent.jsonl")?;
    /// let part = pactql::inspect::Part::default().only(".cb[rol='user']");
    /// let why = part.why_empty(&pactql::Engine::new(), &session)?;
    /// assert_eq!(why[0], "no node has `rol`; did you mean `role`?");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn why_empty(&self, engine: &Engine, session: &Session) -> Result<Vec<String>, Error> {
        let Some(nothing) = self.nothing(engine, session)? else {
            return Ok(Vec::new());
        };
        let mut why: Vec<String> = nothing.reasons().iter().map(ToString::to_string).collect();
        why.extend(nothing.warnings().iter().map(ToString::to_string));
        Ok(why)
    }

    /// Where the selector finds nothing, or no block, in any of the snapshots; `None` also without a selector.
    pub(crate) fn nothing(
        &self,
        engine: &Engine,
        session: &Session,
    ) -> Result<Option<EmptyAnswer>, Error> {
        let Some(selector) = &self.selector else {
            return Ok(None);
        };
        let history = session.history();
        let prepared = engine.prepare_timeless(selector)?;
        let snapshots = self.snapshots(engine, &history)?;
        let read = snapshots.iter().map(|(_, read)| Arc::clone(read));
        let read: Vec<Arc<Snapshot>> = read.collect();
        if let Some(found) = prepared.nothing_in(&history, &read)? {
            return Ok(Some(EmptyAnswer::Nothing {
                found,
                reads_working: !self.is_committed,
            }));
        }
        if self.is_of_nodes {
            return Ok(None);
        }
        let mut ids = std::collections::BTreeSet::new();
        // The newest snapshot has mostly one, and then no other is read.
        let newest_first: Vec<(At, Arc<Snapshot>)> = snapshots.into_iter().rev().collect();
        for chosen in self.with_rows(engine, &history, newest_first) {
            let chosen = chosen?;
            if chosen.blocks().next().is_some() {
                return Ok(None);
            }
            for row in prepared.rows_of_snapshot(&history, &chosen.snapshot)? {
                ids.insert(chosen.snapshot.node(row).id().to_owned());
            }
        }
        Ok(Some(EmptyAnswer::NoBlock(ids.len() as u64)))
    }

    /// The rows that the selector finds, each with those below it; `None` without one.
    fn rows(
        &self,
        engine: &Engine,
        history: &History,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Option<Vec<Range<u32>>>, Error> {
        let Some(selector) = &self.selector else {
            return Ok(None);
        };
        let found = engine.prepare_timeless(selector)?;
        let found = found.rows_of_snapshot(history, snapshot)?;
        let mut rows: Vec<Range<u32>> = Vec::new();
        let each = found.iter().map(|row| *row..snapshot.end(*row));
        for range in each {
            match rows.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => rows.push(range),
            }
        }
        Ok(Some(rows))
    }
}

pub(super) struct ChosenSnapshot {
    pub(super) at: At,
    pub(super) snapshot: Arc<Snapshot>,
    /// The chosen rows, ascending and disjoint; `None` for all.
    pub(super) rows: Option<Vec<Range<u32>>>,
}

impl ChosenSnapshot {
    pub(super) fn has(&self, node: NodeRef<'_>) -> bool {
        self.rows.as_ref().is_none_or(|rows| {
            let after = rows.partition_point(|rows| rows.end <= node.row());
            rows.get(after)
                .is_some_and(|rows| rows.contains(&node.row()))
        })
    }

    /// The chosen blocks that are sent, in document order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (NodeRef<'_>, Region)> {
        let all = || std::iter::once(0..self.snapshot.end_row()).collect();
        let rows = self.rows.clone().unwrap_or_else(all).into_iter();
        let nodes = rows.flat_map(|rows| self.snapshot.nodes_in(rows));
        let nodes = nodes.inspect(|_| ensure());
        nodes.filter_map(|node| Some((node, Region::containing(node)?)))
    }
}

/// What a block says: its role, its kind and its content.
pub(super) type Saying<'a> = (Option<&'a str>, Option<&'a str>, Option<JsonValue<'a>>);

pub(super) fn saying<'a>(node: NodeRef<'a>) -> Saying<'a> {
    (node.role(), node.kind(), node.field("content"))
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Region {
    /// `^sys`.
    Sys,
    /// `^seq`.
    Seq,
    /// `^ah`.
    Ah,
}

impl Region {
    /// The region of a block; `None` if it is not sent.
    pub(super) fn containing(node: NodeRef<'_>) -> Option<Self> {
        if node.class() != NodeClass::Block {
            return None;
        }
        match node.unit_kind() {
            UnitKind::Preamble => Some(Self::Sys),
            UnitKind::Turn | UnitKind::Loose => Some(Self::Seq),
            UnitKind::Head => Some(Self::Ah),
            UnitKind::Rest => None,
        }
    }

    /// The region of the units of a rank in a store; `None` of those that are not sent.
    pub(super) fn of_rank(rank: i64) -> Option<Self> {
        match rank {
            0 => Some(Self::Sys),
            1 => Some(Self::Seq),
            2 => Some(Self::Ah),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sys => "^sys",
            Self::Seq => "^seq",
            Self::Ah => "^ah",
        }
    }
}
