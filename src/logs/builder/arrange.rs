//! Makes nodes of the messages that the model is sent: times, turns, and what changed since the
//! previous commit.

use super::{BlockPlace, Builder, SentMessage, ShownMessage, ToolEntry, Turn};
use crate::logs::json::quoted;
use crate::logs::log::{LogPart, LogTool};
use crate::logs::nodes::{HEAD, LogNode, LogNodeDraft, ROOT, SEQ, SYS};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Message `n` (from 1) of a log without times is `n` seconds after the epoch.
const SECOND: i64 = 1_000_000_000;

const TOOL_STEP: i64 = 1_000;

const SYSTEM: i64 = i64::MIN;

impl SentMessage {
    /// The time of the last block. The turn and its core are two nanoseconds and one before the first.
    fn end_ns(&self) -> i64 {
        self.order_ns + 1 + self.message.blocks().len() as i64
    }
}

impl BlockPlace {
    fn id(self) -> String {
        match self {
            Self::System => SYS.to_owned(),
            Self::Turn(number) => format!("mc:{number}"),
        }
    }
}

struct Orphan {
    id: String,
    order_ns: i64,
    place: BlockPlace,
}

impl Orphan {
    fn new(number: usize, n: usize, shown: &ShownMessage) -> Self {
        Self {
            id: block_id(number, n),
            order_ns: shown.order_ns + 2 + n as i64,
            place: shown.place,
        }
    }
}

impl Builder {
    /// Puts the messages from `from` on into the tree, and takes out those that are gone. Linear.
    pub(super) fn arrange(&mut self, from: usize) {
        self.open();
        let changed = self.changed.take().map(|changed| self.turn_of(changed));
        // The open turn may get more messages.
        let open = self.turns.last().filter(|turn| !turn.sealed);
        let open = open.map(|turn| turn.start);
        let from = [changed, open].into_iter().flatten().fold(from, usize::min);
        self.order(from);
        let lead = self.lead();
        let system = match self.turns.first() {
            // System messages are kept, unless the list is a new one.
            Some(_) if from > 0 => from,
            _ => lead,
        };
        let mut orphans = Vec::new();
        let first = self.change.put.len();
        for at in from..system {
            self.place(at, BlockPlace::System, &mut orphans);
        }
        self.place_tools();
        self.change.put[first..].sort_by_key(LogNode::order);
        let kept = self.turns.partition_point(|turn| turn.start < from);
        let old = self.turns.split_off(kept);
        self.cut(system.max(from), &old, &mut orphans);
        self.remove(kept, &old, orphans);
        self.arranged = self.entries.len();
    }

    /// The index of the first message of a message's turn; 0 for a system message.
    fn turn_of(&self, at: usize) -> usize {
        let before = self.turns.partition_point(|turn| turn.start <= at);
        let turn = before.checked_sub(1).and_then(|last| self.turns.get(last));
        turn.map_or(0, |turn| turn.start)
    }

    pub(super) fn lead(&self) -> usize {
        let system = |entry: &&SentMessage| entry.message.system;
        self.entries.iter().take_while(system).count()
    }

    fn open(&mut self) {
        if std::mem::replace(&mut self.opened, true) {
            return;
        }
        let time = self.entries.iter().find_map(|entry| entry.time);
        if let Some(time) = time {
            self.timed = true;
            self.base = time.saturating_sub(2 * SECOND);
        }
        for (at, id) in [ROOT, SYS, SEQ, HEAD].into_iter().enumerate() {
            let made = self.make();
            let parent = if at == 0 { "" } else { ROOT };
            let when = (self.base + at as i64, time);
            let region = LogNodeDraft::container((id.to_owned(), parent), id, made, when);
            self.change.put.push(region.node());
        }
    }

    /// The time that the nodes of a message say: of one without a time among others that have one, its position, so that it
    /// does not seem to be known.
    fn said(&self, entry: &SentMessage) -> Option<i64> {
        let position = || entry.number as i64 * SECOND;
        entry.time.or_else(|| self.timed.then(position))
    }

    /// Gives the messages from `from` on rising times. A message keeps its time if that is possible.
    fn order(&mut self, from: usize) {
        let before = from.checked_sub(1).map(|at| self.entries[at].end_ns());
        let mut end = before.unwrap_or(self.base + 3);
        let mut at = from;
        while at < self.entries.len() {
            if self.entries[at].order_ns > end {
                end = self.entries[at].end_ns();
                at += 1;
                continue;
            }
            // A run of messages without a place, up to one that has it.
            let known = (at + 1..self.entries.len()).find(|&at| self.entries[at].order_ns > end);
            let run = at..known.unwrap_or(self.entries.len());
            let limit = known.map(|at| self.entries[at].order_ns);
            for at in run.clone() {
                let entry = &self.entries[at];
                let own = match entry.time {
                    Some(time) => time,
                    None if self.timed => end + 1,
                    None => self.base + entry.number as i64 * SECOND,
                };
                let mut order_ns = own.max(end + 1);
                if let Some(limit) = limit {
                    let share = (limit - end) / (run.end - at + 1) as i64;
                    order_ns = order_ns.min(end + share.max(1));
                }
                self.entries[at].order_ns = order_ns;
                end = self.entries[at].end_ns();
            }
            at = run.end;
        }
    }

    /// Cuts the messages from `from` on into turns. Turns of `old` that have one of them keep their numbers.
    fn cut(&mut self, from: usize, old: &[Turn], orphans: &mut Vec<Orphan>) {
        let known: HashMap<usize, &Turn> = old.iter().map(|turn| (turn.number, turn)).collect();
        let mut used = HashSet::new();
        let mut start = from;
        while start < self.entries.len() {
            let rest = &self.entries[start..];
            let end = rest.iter().position(|entry| entry.ends);
            let sealed = end.is_some();
            let range = start..end.map_or(self.entries.len(), |at| start + at + 1);
            let number = self.entries[range.clone()].iter().rev().find_map(|entry| {
                match entry.shown.as_ref()?.place {
                    BlockPlace::Turn(number) if !used.contains(&number) => {
                        known.contains_key(&number).then_some(number)
                    }
                    _ => None,
                }
            });
            let old = number.and_then(|number| known.get(&number).copied());
            used.extend(number);
            self.turn(range.clone(), sealed, old);
            let number = self.turns.last().map_or(0, |turn| turn.number);
            for at in range.clone() {
                self.place(at, BlockPlace::Turn(number), orphans);
            }
            start = range.end;
        }
    }

    fn turn(&mut self, range: Range<usize>, sealed: bool, old: Option<&Turn>) {
        let first = self.entries[range.start].order_ns;
        let before = self.turns.last().map(|turn| turn.order_ns);
        let number = match old {
            Some(old) => old.number,
            None => {
                self.numbered_turns += 1;
                self.numbered_turns
            }
        };
        let order_ns = match (old, before) {
            (Some(old), None) => old.order_ns,
            (Some(old), Some(before)) if old.order_ns > before + 1 => old.order_ns,
            (_, Some(before)) => first.max(before + 2),
            (None, None) => first,
        };
        let time = self.said(&self.entries[range.start]);
        let moved = old.is_none_or(|old| old.order_ns != order_ns || old.sealed != sealed);
        let mut turn = old.and_then(|old| old.turn);
        if sealed && moved {
            let made = *turn.get_or_insert_with(|| self.make());
            let names = (format!("mt:{number}"), SEQ);
            let turn = LogNodeDraft::container(names, "mt", made, (order_ns, time));
            self.change.put.push(turn.node());
        }
        let core = old.map_or_else(|| self.make(), |old| old.core);
        if moved {
            let turn = format!("mt:{number}");
            let names = (format!("mc:{number}"), if sealed { &*turn } else { HEAD });
            let core = LogNodeDraft::container(names, "mc", core, (order_ns + 1, time));
            self.change.put.push(core.node());
        }
        self.turns.push(Turn {
            number,
            start: range.start,
            sealed,
            order_ns,
            turn,
            core,
        });
    }

    /// Puts new or changed blocks of a message into the tree; those that are gone go to `orphans`.
    fn place(&mut self, at: usize, place: BlockPlace, orphans: &mut Vec<Orphan>) {
        let entry = &self.entries[at];
        let shown = entry.shown.clone();
        let stays =
            |shown: &&ShownMessage| shown.place == place && shown.order_ns == entry.order_ns;
        let same = shown.as_ref().filter(stays);
        if same.is_some_and(|shown| Arc::ptr_eq(&shown.message, &entry.message)) {
            return;
        }
        let message = Arc::clone(&entry.message);
        let (number, reply_of, first) = (entry.number, entry.reply_of, entry.order_ns + 2);
        let time = self.said(entry);
        let response = entry.response.as_deref().map(quoted);
        let same = same
            .filter(|shown| shown.message.role == message.role)
            .cloned();
        let parts = message.blocks();
        for (n, part) in parts.iter().enumerate() {
            let made = match self.entries[at].made.get(n) {
                Some(made) => *made,
                None => {
                    let made = self.make();
                    self.entries[at].made.push(made);
                    made
                }
            };
            if same
                .as_ref()
                .is_some_and(|shown| shown.message.parts.get(n) == Some(part))
            {
                continue;
            }
            let mut fields = vec![("data_message".into(), number.to_string())];
            fields.extend(reply_of.map(|cycle| ("data_reply".into(), cycle.to_string())));
            let of_response = response.clone();
            fields.extend(of_response.map(|id| ("data_response".into(), id)));
            self.change.put.push(
                LogNodeDraft {
                    id: block_id(number, n),
                    parent: place.id(),
                    node_type: "cb",
                    made,
                    order_ns: first + n as i64,
                    time,
                    role: message.role.as_deref(),
                    part: Some(part),
                    fields,
                    ..LogNodeDraft::default()
                }
                .node(),
            );
        }
        if let Some(shown) = shown {
            let gone = parts.len()..shown.message.blocks().len();
            orphans.extend(gone.map(|n| Orphan::new(number, n, &shown)));
        }
        let entry = &mut self.entries[at];
        entry.shown = Some(ShownMessage {
            order_ns: entry.order_ns,
            message,
            place,
        });
    }

    /// Removes turns that are gone, and gone blocks of turns that stay.
    fn remove(&mut self, kept: usize, old: &[Turn], mut orphans: Vec<Orphan>) {
        let now = self.turns[kept..].iter();
        let now: HashMap<usize, bool> = now.map(|turn| (turn.number, turn.sealed)).collect();
        let mut lost = HashSet::new();
        for turn in old {
            let kind = if turn.sealed { "mt" } else { "mc" };
            match (turn.sealed, now.get(&turn.number)) {
                (_, None) => {
                    lost.insert(BlockPlace::Turn(turn.number));
                }
                // The turn is open again, and its core has gone elsewhere.
                (true, Some(false)) => {}
                _ => continue,
            }
            let at = (turn.order_ns, turn.order_ns);
            self.removed.push((at, format!("{kind}:{}", turn.number)));
        }
        for entry in std::mem::take(&mut self.gone) {
            if let Some(shown) = entry.shown {
                let gone = 0..shown.message.blocks().len();
                orphans.extend(gone.map(|n| Orphan::new(entry.number, n, &shown)));
            }
        }
        // The order of the snapshot before: ^sys, then turn by turn.
        let turns: HashMap<usize, i64> = old
            .iter()
            .map(|turn| (turn.number, turn.order_ns))
            .collect();
        for orphan in orphans {
            let turn = match orphan.place {
                BlockPlace::System => SYSTEM,
                BlockPlace::Turn(number) => turns.get(&number).copied().unwrap_or_default(),
            };
            if !lost.contains(&orphan.place) {
                self.removed.push(((turn, orphan.order_ns), orphan.id));
            }
        }
    }

    /// Puts new or changed tools into the tree, and takes out those that are gone, by name.
    fn place_tools(&mut self) {
        let Some(tools) = self.new_tools.take() else {
            return;
        };
        if tools.iter().eq(self.tools.iter().map(|entry| &entry.tool)) {
            return;
        }
        let old = std::mem::take(&mut self.tools);
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, entry) in old.iter().enumerate().rev() {
            by_name.entry(entry.tool.name.clone()).or_default().push(at);
        }
        let mut old: Vec<Option<ToolEntry>> = old.into_iter().map(Some).collect();
        let found: Vec<Option<ToolEntry>> = tools
            .iter()
            .map(|tool| old[by_name.get_mut(&tool.name)?.pop()?].take())
            .collect();
        for entry in old.into_iter().flatten() {
            let at = (SYSTEM, entry.order_ns);
            self.removed.push((at, format!("cb:tool-{}", entry.number)));
        }
        let lead = self.lead().checked_sub(1);
        let first = lead.map_or(self.base + 3, |at| self.entries[at].end_ns());
        let orders: Vec<Option<i64>> = found
            .iter()
            .map(|entry| entry.as_ref().map(|entry| entry.order_ns))
            .collect();
        let orders = rising(&orders, first);
        for ((tool, entry), order_ns) in tools.into_iter().zip(found).zip(orders) {
            self.place_tool(tool, entry, order_ns);
        }
    }

    fn place_tool(&mut self, tool: LogTool, old: Option<ToolEntry>, order_ns: i64) {
        let same = |old: &ToolEntry| old.tool == tool && old.order_ns == order_ns;
        let changed = !old.as_ref().is_some_and(same);
        let (number, made) = match old {
            Some(old) => (old.number, old.made),
            None => {
                self.numbered_tools += 1;
                (self.numbered_tools, self.make())
            }
        };
        if changed {
            let mut part = LogPart::new("tool", quoted(&tool.definition));
            part.data.extend_from_slice(&tool.data);
            let key = (!tool.name.is_empty()).then_some(&*tool.name);
            self.change.put.push(
                LogNodeDraft {
                    id: format!("cb:tool-{number}"),
                    parent: SYS.to_owned(),
                    node_type: "cb",
                    made,
                    order_ns,
                    role: Some("system"),
                    key,
                    part: Some(&part),
                    ..LogNodeDraft::default()
                }
                .node(),
            );
        }
        self.tools.push(ToolEntry {
            tool,
            number,
            order_ns,
            made,
        });
    }
}

fn block_id(number: usize, n: usize) -> String {
    format!("cb:{number}-{}", n + 1)
}

/// Rising times, all after `end`. A known time is kept if that is possible.
fn rising(known: &[Option<i64>], mut end: i64) -> Vec<i64> {
    let mut orders = Vec::with_capacity(known.len());
    for (at, order) in known.iter().enumerate() {
        let next = known[at + 1..]
            .iter()
            .flatten()
            .find(|next| **next > end + 1);
        let order = match (order, next) {
            (Some(order), _) if *order > end => *order,
            (_, Some(next)) => end + ((next - end) / 2).clamp(1, TOOL_STEP),
            (_, None) => end + TOOL_STEP,
        };
        orders.push(order);
        end = order;
    }
    orders
}
