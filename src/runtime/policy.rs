//! Pruning policies: what a commit takes away when a session is too large (RUNTIME §3, source 002
//! chapter 02 §7).

use crate::support::macros::names;
use std::sync::Arc;

type Counter = Arc<dyn Fn(&str) -> u64 + Send + Sync>;

names! {
    /// The part of the tree a limit is on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Scope: as_str {
        /// Everything below the regions.
        Whole = "whole",
        /// What is below `^sys`.
        Sys = "sys",
        /// What is below `^seq`: the sealed turns.
        Seq = "seq",
        /// What is below `^ah`: the turn in progress.
        Head = "ah",
    }
}

names! {
    /// What a limit counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Measure: as_str {
        /// Nodes; the root and the regions are not counted.
        Nodes = "nodes",
        /// Tokens of the blocks' contents.
        Tokens = "tokens",
    }
}

/// A limit of a [`Policy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    /// The part of the tree.
    pub scope: Scope,
    /// What is counted.
    pub measure: Measure,
    /// The most that is left.
    pub most: u64,
}

/// How every commit prunes. Without limits and without a window it does not.
///
/// Blocks go in the order of priority, then age, then id, until each limit is kept or nothing may go:
/// pinned nodes, regions, containers, turns, and what is in the newest turns stay. Linear in the nodes
/// of the scopes.
///
/// ```
/// use pactql::{Context, NewNode, Policy};
/// let policy = Policy::new().tokens(4).protect(0);
/// let mut context = Context::builder().policy(policy).build();
/// context.add("^sys", NewNode::text("keep this one").priority(9))?;
/// context.add("^sys", NewNode::text("and not this one"))?;
/// let commit = context.commit()?;
/// assert_eq!(commit.pruned, ["cb:c1-1"]);
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone)]
pub struct Policy {
    pub(super) limits: Vec<Limit>,
    pub(super) protected: u32,
    pub(super) window: Option<u32>,
    counter: Option<Counter>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy")
            .field("limits", &self.limits)
            .field("protected", &self.protected)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl Policy {
    /// A policy without limits that protects the turn in progress.
    pub fn new() -> Self {
        Self {
            limits: Vec::new(),
            protected: 1,
            window: None,
            counter: None,
        }
    }

    /// Adds a limit. Limits are applied in the order they are added.
    #[must_use]
    pub fn limit(mut self, scope: Scope, measure: Measure, most: u64) -> Self {
        self.limits.push(Limit {
            scope,
            measure,
            most,
        });
        self
    }

    /// Adds a limit on the tokens of the whole tree.
    #[must_use]
    pub fn tokens(self, most: u64) -> Self {
        self.limit(Scope::Whole, Measure::Tokens, most)
    }

    /// Adds a limit on the nodes of the whole tree.
    #[must_use]
    pub fn nodes(self, most: u64) -> Self {
        self.limit(Scope::Whole, Measure::Nodes, most)
    }

    /// Keeps the newest turns and takes those before them, whole: a sliding window. The turn in progress is the first of
    /// them. A turn that a reference pins, or something in it, stays. The window moves before limits are applied.
    ///
    /// ```
    /// use pactql::{Context, Message, Policy};
    /// let mut context = Context::builder().policy(Policy::new().window(2)).build();
    /// for question in ["a", "b", "c"] {
    ///     context.append(Message::user(question))?;
    ///     context.commit()?;
    /// }
    /// assert_eq!(context.select("@t0 .mt")?.to_ids(), ["mt:2", "mt:3"]);
    /// # Ok::<(), pactql::Error>(())
    /// ```
    #[must_use]
    pub fn window(mut self, turns: u32) -> Self {
        self.window = Some(turns);
        self
    }

    /// Protects the newest turns; the turn in progress is the first of them. 1 by default.
    #[must_use]
    pub fn protect(mut self, turns: u32) -> Self {
        self.protected = turns;
        self
    }

    /// Counts tokens with `count` instead of a quarter of the bytes, rounded up.
    #[must_use]
    pub fn counting(mut self, count: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        self.counter = Some(Arc::new(count));
        self
    }

    pub(super) fn count(&self, text: &str) -> u64 {
        match &self.counter {
            Some(count) => count(text),
            None => (text.len() as u64).div_ceil(4),
        }
    }
}
