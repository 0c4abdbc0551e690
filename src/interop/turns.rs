//! From a flat list of messages to turns: the part of importing that all formats share.
//!
//! A format turns its records into [`Message`]s. This file cuts them into cycles and gives the
//! nodes ids, times and positions (RUNTIME §5): leading system messages go to `^sys`, each reply
//! ends a turn and a cycle, and what follows the last reply is the working state. Ids and times
//! are derived from positions, so the nodes of a log stay the same when the log grows.

use super::json::{json_text, push_member};
use super::recording::{Change, HEAD, Node, ROOT, Recording, SEQ, SYS};
use crate::tree::timestamp::rfc3339;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::ops::Range;

/// The time from one message to the next: message `n` (from 1) is `n` seconds after the epoch.
const SECOND: i64 = 1_000_000_000;

/// One message of a log, as its format understood it.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    pub(super) role: Option<String>,
    /// Whether it goes to `^sys` when only such messages precede it.
    pub(super) system: bool,
    /// Whether it is the model's reply, which ends a turn and a cycle.
    pub(super) reply: bool,
    /// Its parts; at least one, which may be an empty placeholder.
    pub(super) parts: Vec<MessagePart>,
}

/// One part of a message, which becomes a block.
#[derive(Clone, Debug, Default)]
pub(super) struct MessagePart {
    pub(super) kind: Option<&'static str>,
    /// Canonical JSON.
    pub(super) content: Option<String>,
    /// Custom fields: name, and value as canonical JSON.
    pub(super) data: Vec<(String, String)>,
}

/// The session of a whole log. Linear in the log.
pub(super) fn record_log(messages: &[Message]) -> Recording {
    let mut recording = Recording::default();
    let mut maker = NodeMaker::opened(1, None, messages);
    let (turns, rest) = turns(messages);
    for (at, turn) in turns.iter().enumerate() {
        maker.sealed(at + 1, turn.start, &messages[turn.clone()]);
        recording.snapshots.push(Change::put(maker.nodes));
        maker = NodeMaker::new(at as i64 + 2, None);
    }
    if rest < messages.len() {
        maker.head(turns.len() + 1, rest, &messages[rest..]);
    }
    // A log without any reply is a working state, even if its head is empty.
    if rest < messages.len() || turns.is_empty() {
        recording.working = Some(Change::put(maker.nodes));
    }
    recording
}

/// The session with one snapshot per step. Linear in the total size of the steps.
///
/// A node keeps its id, cycle and times while its position exists, so a message that a later step
/// rewrites is a changed node.
pub(super) fn record_steps<'a>(steps: impl Iterator<Item = &'a [Message]>) -> Recording {
    let mut recording = Recording::default();
    let mut known: HashMap<String, Node> = HashMap::new();
    for (step, messages) in steps.enumerate() {
        let mut maker = NodeMaker::opened(step as i64 + 1, Some(&known), messages);
        let (turns, rest) = turns(messages);
        for (at, turn) in turns.iter().enumerate() {
            maker.sealed(at + 1, turn.start, &messages[turn.clone()]);
        }
        if rest < messages.len() {
            maker.head(turns.len() + 1, rest, &messages[rest..]);
        }
        let nodes = maker.nodes;
        recording.snapshots.push(difference(&mut known, nodes));
    }
    recording
}

/// The messages of each finished turn, and the first message after them. Turns begin after the
/// leading system messages.
fn turns(messages: &[Message]) -> (Vec<Range<usize>>, usize) {
    let mut turns = Vec::new();
    let mut start = opening(messages);
    for (at, message) in messages.iter().enumerate().skip(start) {
        if message.reply {
            turns.push(start..at + 1);
            start = at + 1;
        }
    }
    (turns, start)
}

/// The change from the nodes in `known` to `nodes`. Afterwards `known` contains `nodes`.
fn difference(known: &mut HashMap<String, Node>, nodes: Vec<Node>) -> Change {
    let ids: HashSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    let gone = |id: &str| !ids.contains(id);
    // A removal takes descendants along, and nodes that stay have been moved elsewhere.
    let mut remove: Vec<(i64, String)> = known
        .values()
        .filter(|node| gone(&node.id) && !gone(&node.parent))
        .map(|node| (node.created_at_ns, node.id.clone()))
        .collect();
    remove.sort_unstable();
    known.retain(|id, _| ids.contains(id.as_str()));
    let mut put = Vec::new();
    for node in nodes {
        if known.get(&node.id) != Some(&node) {
            known.insert(node.id.clone(), node.clone());
            put.push(node);
        }
    }
    Change {
        put,
        remove: remove.into_iter().map(|(_, id)| id).collect(),
    }
}

/// The number of system messages at the start.
fn opening(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.system).count()
}

/// Makes the nodes of one cycle, parents before children, in order of time.
struct NodeMaker<'a> {
    cycle: i64,
    /// The next creation index of the cycle.
    next: i64,
    /// Existing nodes, which keep their cycle and creation index.
    known: Option<&'a HashMap<String, Node>>,
    nodes: Vec<Node>,
}

impl<'a> NodeMaker<'a> {
    fn new(cycle: i64, known: Option<&'a HashMap<String, Node>>) -> Self {
        Self {
            cycle,
            next: 0,
            known,
            nodes: Vec::new(),
        }
    }

    /// Starts with the root, the regions and the leading system messages.
    fn opened(cycle: i64, known: Option<&'a HashMap<String, Node>>, messages: &[Message]) -> Self {
        let mut maker = Self::new(cycle, known);
        for (at, id) in [ROOT, SYS, SEQ, HEAD].into_iter().enumerate() {
            let parent = if at == 0 { "" } else { ROOT };
            maker.node(id.to_owned(), parent, id, at as i64, None, None);
        }
        maker.blocks(SYS, 0, &messages[..opening(messages)]);
        maker
    }

    /// A turn under `^seq` with its core and the blocks of `messages`, the first of which is at
    /// position `start`.
    fn sealed(&mut self, turn: usize, start: usize, messages: &[Message]) {
        let id = format!("mt:{turn}");
        self.node(id.clone(), SEQ, "mt", time(start), None, None);
        self.core(turn, &id, start, messages);
    }

    /// The same turn while it is open: its core is a child of the active head.
    fn head(&mut self, turn: usize, start: usize, messages: &[Message]) {
        self.core(turn, HEAD, start, messages);
    }

    fn core(&mut self, turn: usize, parent: &str, start: usize, messages: &[Message]) {
        let id = format!("mc:{turn}");
        self.node(id.clone(), parent, "mc", time(start) + 1, None, None);
        self.blocks(&id, start, messages);
    }

    fn blocks(&mut self, parent: &str, start: usize, messages: &[Message]) {
        for (at, message) in messages.iter().enumerate() {
            let at = start + at;
            for (number, part) in message.parts.iter().enumerate() {
                let id = format!("cb:{}.{}", at + 1, number + 1);
                // The turn and its core are one and two nanoseconds older than the first block.
                let created_at_ns = time(at) + 2 + number as i64;
                let role = message.role.as_deref();
                self.node(id, parent, "cb", created_at_ns, role, Some(part));
            }
        }
    }

    fn node(
        &mut self,
        id: String,
        parent: &str,
        node_type: &str,
        created_at_ns: i64,
        role: Option<&str>,
        part: Option<&MessagePart>,
    ) {
        let known = self.known.and_then(|known| known.get(&id));
        let (cycle, creation_index) = match known {
            Some(node) => (node.cycle, node.creation_index),
            None => {
                self.next += 1;
                (self.cycle, self.next - 1)
            }
        };
        let mut members = String::new();
        if let Some(content) = part.and_then(|part| part.content.as_deref()) {
            members.push_str("\"content\":");
            members.push_str(content);
            members.push(',');
        }
        let iso = rfc3339(created_at_ns / SECOND, (created_at_ns % SECOND) as u32);
        // Writing to a string cannot fail.
        let _ = write!(
            members,
            "\"created_at_iso\":\"{iso}\",\"created_at_ns\":{created_at_ns},\"creation_index\":{creation_index},\"cycle\":{cycle}"
        );
        if let Some(part) = part {
            let mut data: Vec<&(String, String)> = part.data.iter().collect();
            data.sort_unstable();
            for (name, value) in data {
                push_member(name, value, &mut members);
            }
        }
        members.push_str(",\"id\":");
        json_text(&id, &mut members);
        if let Some(kind) = part.and_then(|part| part.kind) {
            let _ = write!(members, ",\"kind\":\"{kind}\"");
        }
        let _ = write!(members, ",\"nodeType\":\"{node_type}\",\"offset\":0,");
        let parent_at = members.len();
        members.push_str("\"priority\":0");
        if let Some(role) = role {
            members.push_str(",\"role\":");
            json_text(role, &mut members);
        }
        members.push_str(",\"ttl\":null");
        self.nodes.push(Node {
            id,
            parent: parent.to_owned(),
            cycle,
            created_at_ns,
            creation_index,
            members,
            parent_at,
        });
    }
}

/// The time of the message at a position, from 0.
fn time(position: usize) -> i64 {
    (position as i64 + 1) * SECOND
}
