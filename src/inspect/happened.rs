//! What happened in a cycle of a session, and in the one with which it ends. Steps, the ends of runs, pages and receipts
//! read it here.

use super::call::{Call, cycle_of, is_reply, newest};
use super::groups::call_name;
use super::part::Region;
use crate::history::History;
use crate::index::{NodeRef, Snapshot, UnitRef};
use crate::json::JsonValue;
use crate::support::text::{clean, counted};
use crate::tree::timestamp::{is_position, millis};
use serde::Serialize;
use std::sync::Arc;

/// What happened in a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepEvent {
    /// Earlier messages were replaced by a summary.
    Compaction,
    /// Calls to the provider failed.
    Failed {
        /// How many.
        count: usize,
        /// What the last one said.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Calls to the provider were stopped.
    Canceled {
        /// How many.
        count: usize,
    },
    /// The reply was broken off, or the provider failed while it came.
    BrokenOff {
        /// What the log says, or else why the reply ended in the provider's word.
        reason: String,
    },
    /// Results of tools that say they are errors came in.
    ToolErrors {
        /// How many.
        count: usize,
    },
    /// The model replied with text.
    Reply,
    /// The session ends with blocks that no reply followed.
    NoReply {
        /// The kinds, each with the number of its blocks, in the order of the first block.
        kinds: Vec<(String, usize)>,
    },
    /// The model called tools.
    Calls {
        /// The names, each with how often it was called, in the order of the first call.
        tools: Vec<(String, usize)>,
    },
}

impl StepEvent {
    /// The event in words, without control characters.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Compaction => "compaction".to_owned(),
            Self::Failed { count, error: None } => format!("failed {count}×"),
            Self::Failed {
                count,
                error: Some(error),
            } => format!("failed {count}× ({})", clean(error, 60)),
            Self::Canceled { count } => format!("canceled {count}×"),
            Self::BrokenOff { reason } => format!("reply broken off ({})", clean(reason, 60)),
            Self::ToolErrors { count } => format!("tool errors {count}×"),
            Self::Reply => "reply".to_owned(),
            Self::NoReply { kinds } => {
                let kinds = kinds.iter();
                let kinds = kinds.map(|(kind, count)| counted(*count as u64, &clean(kind, 40)));
                format!("no reply to {}", kinds.collect::<Vec<_>>().join(", "))
            }
            Self::Calls { tools } => {
                let tools = tools.iter().map(|(name, count)| match count {
                    1 => clean(name, 40),
                    count => format!("{} {count}×", clean(name, 40)),
                });
                let tools: Vec<String> = tools.collect();
                format!("calls {}", tools.join(", "))
            }
        }
    }
}

/// The cycle in progress, of which nothing is committed: what came after the newest commit.
pub(super) struct InProgress<'h> {
    pub(super) cycle: i64,
    /// The working state; the newest snapshot, if all that came are calls without a reply.
    pub(super) snapshot: &'h Arc<Snapshot>,
    pub(super) call: Call,
    pub(super) events: Vec<StepEvent>,
    /// When the newest of its blocks was made.
    pub(super) time: Option<String>,
}

impl<'h> InProgress<'h> {
    /// `None` if the newest commit has all blocks, and each call since was answered or is running. `history` has its
    /// working state and its attempts loaded. Linear in the units that the working state does not share.
    pub(super) fn of(history: &'h History) -> Option<Self> {
        let committed = history.committed().last();
        let working = history.working();
        let snapshot = working.or(committed)?;
        let (cycle, call) = match working {
            Some(working) => (cycle_of(working), Call::in_history(history, working)),
            None => {
                let next = snapshot.cycle().saturating_add(1);
                (next, Call::default().with_attempts(history, next))
            }
        };
        let blocks = working.map_or_else(Vec::new, |working| {
            blocks_since(committed.map(|newest| &**newest), working)
        });
        if blocks.is_empty() && call.failed + call.canceled == 0 {
            return None;
        }
        let times = blocks.iter().rev();
        let mut times = times.filter_map(|node| node.field("created_at_iso")?.text());
        let time = times.next().filter(|time| !is_position(time));
        Some(Self {
            cycle,
            snapshot,
            events: Happened::new(&call, cycle, blocks.iter().copied(), |_| true).events(true),
            time: time.map(millis),
            call,
        })
    }
}

/// The blocks of a working state below `^seq` and `^ah` that the newest snapshot does not have.
fn blocks_since<'s>(newest: Option<&Snapshot>, working: &'s Snapshot) -> Vec<NodeRef<'s>> {
    let shared = newest.map_or(0, |newest| working.units_shared(newest));
    let nodes = working.units_from(shared).flat_map(UnitRef::nodes);
    let is_new = |node: &NodeRef<'_>| {
        let region = Region::containing(*node);
        region.is_some_and(|region| region != Region::Sys)
            && newest.is_none_or(|newest| newest.find(node.id()).is_none())
    };
    nodes.filter(is_new).collect()
}

/// What happened in the cycle of a committed snapshot of a history.
pub(super) fn events(history: &History, snapshot: &Snapshot, call: &Call) -> Vec<StepEvent> {
    let cycle = snapshot.cycle();
    // What a compaction kept was counted before.
    let is_new = |node: NodeRef<'_>| node.cycle().is_none_or(|made| made == cycle);
    let happened = Happened::new(call, cycle, newest(snapshot), is_new);
    let is_last = || history.cycles().next_back() == Some(cycle);
    // Requests of which the log never has the reply are not said to have none.
    let is_open = !call.compaction && (happened.has_reply || !call.made);
    happened.events(is_open && is_last())
}

/// The blocks of a cycle, read once.
struct Happened<'c> {
    call: &'c Call,
    /// Results that say they are errors.
    errors: usize,
    has_reply: bool,
    has_text: bool,
    /// The tools that the reply calls, each with how often.
    tools: Vec<(String, usize)>,
    /// The kinds of the blocks after the reply.
    after: Vec<(String, usize)>,
}

impl<'c> Happened<'c> {
    fn new<'s>(
        call: &'c Call,
        cycle: i64,
        blocks: impl Iterator<Item = NodeRef<'s>>,
        is_new: impl Fn(NodeRef<'_>) -> bool,
    ) -> Self {
        let cycle = cycle.to_string();
        let mut happened = Self {
            call,
            errors: 0,
            has_reply: false,
            has_text: false,
            tools: Vec::new(),
            after: Vec::new(),
        };
        for node in blocks {
            if is_reply(node, &cycle) {
                happened.reply(node);
            } else if is_new(node) {
                happened.input(node);
            }
        }
        happened
    }

    fn reply(&mut self, node: NodeRef<'_>) {
        self.has_reply = true;
        self.after.clear();
        match node.kind() {
            Some("call") => {
                let name = call_name(node).unwrap_or_else(|| "unknown".to_owned());
                count(&mut self.tools, name);
            }
            Some("thinking") => {}
            _ => self.has_text = true,
        }
    }

    fn input(&mut self, node: NodeRef<'_>) {
        let kind = node.kind().unwrap_or("block");
        let is_error = node.field("data_is_error") == Some(JsonValue::Bool(true));
        self.errors += usize::from(is_error && matches!(kind, "result" | "error"));
        // A reply that a document does not mark as one.
        if node.role() == Some("assistant") {
            self.after.clear();
        } else {
            count(&mut self.after, kind.to_owned());
        }
    }

    /// `ends` says whether the session ends with it.
    fn events(self, ends: bool) -> Vec<StepEvent> {
        let call = self.call;
        let mut events = Vec::new();
        if call.compaction {
            events.push(StepEvent::Compaction);
        }
        if call.failed > 0 {
            events.push(StepEvent::Failed {
                count: call.failed,
                error: call.error.clone(),
            });
        }
        if call.canceled > 0 {
            events.push(StepEvent::Canceled {
                count: call.canceled,
            });
        }
        if self.errors > 0 {
            events.push(StepEvent::ToolErrors { count: self.errors });
        }
        if self.has_text {
            events.push(StepEvent::Reply);
        }
        if !self.tools.is_empty() {
            events.push(StepEvent::Calls { tools: self.tools });
        }
        let stopped = call.stop_reason.as_deref();
        let stopped = stopped.filter(|reason| matches!(*reason, "error" | "aborted"));
        if let Some(reason) = call.reply_error.as_deref().or(stopped) {
            let reason = reason.to_owned();
            events.push(StepEvent::BrokenOff { reason });
        }
        if ends && !self.after.is_empty() {
            events.push(StepEvent::NoReply { kinds: self.after });
        }
        events
    }
}

fn count(names: &mut Vec<(String, usize)>, name: String) {
    match names.iter_mut().find(|(known, _)| *known == name) {
        Some((_, count)) => *count += 1,
        None => names.push((name, 1)),
    }
}
