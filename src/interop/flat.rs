//! From a flat list of messages to turns: the part of importing that no format has to itself.
//!
//! A format turns its records into [`Message`]s; this file cuts them into cycles and gives them
//! ids, times and places (RUNTIME §5). System text at the start goes to `^sys`; each reply ends a
//! turn and a commit; what follows the last reply is the working state. Ids and times come from
//! positions, so a log that has grown keeps the nodes it had.

use super::recording::{Change, HEAD, Node, ROOT, Recording, SEQ, SYS};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Positions are this far apart in time: message n stands n seconds after the epoch.
const SECOND: i64 = 1_000_000_000;

/// One message of a log, as a format understood it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// The role, where it has one.
    pub(crate) role: Option<String>,
    /// Whether it belongs into `^sys` when it stands at the start of the log.
    pub(crate) system: bool,
    /// Whether it is the model's reply, which ends a turn and a cycle.
    pub(crate) reply: bool,
    /// Its parts; a message always has one, if only a placeholder.
    pub(crate) parts: Vec<Part>,
}

/// One part of a message: what becomes a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// The kind.
    pub(crate) kind: Option<&'static str>,
    /// The content as canonical JSON.
    pub(crate) content: Option<String>,
    /// Custom fields: name, and value as canonical JSON.
    pub(crate) data: Vec<(String, String)>,
}

/// Makes the session of a whole log. Linear in the log.
pub(crate) fn log(messages: &[Message]) -> Recording {
    let mut recording = Recording::default();
    let mut maker = Maker::new(1);
    let opening = opening(messages);
    maker.skeleton();
    maker.blocks(SYS, 0, &messages[..opening]);
    let (mut start, mut turn) = (opening, 1);
    for (at, message) in messages.iter().enumerate().skip(opening) {
        if message.reply {
            maker.sealed(turn, start, &messages[start..=at]);
            recording.snapshots.push(Change {
                put: maker.nodes,
                remove: Vec::new(),
            });
            (start, turn) = (at + 1, turn + 1);
            maker = Maker::new(turn as i64);
        }
    }
    if start < messages.len() {
        maker.head(turn, start, &messages[start..]);
    }
    // A log without any reply is a working state, even when nothing stands in its head.
    if start < messages.len() || recording.snapshots.is_empty() {
        recording.working = Some(Change {
            put: maker.nodes,
            remove: Vec::new(),
        });
    }
    recording
}

/// Makes a session of which each step's messages are one snapshot. Linear in the steps' sizes.
///
/// A node keeps its id, its cycle and its times as long as its position is there, so a message that
/// a later step rewrites is a changed node.
pub(crate) fn steps<'a>(steps: impl Iterator<Item = &'a [Message]>) -> Recording {
    let mut recording = Recording::default();
    let mut known: HashMap<String, Node> = HashMap::new();
    for (step, messages) in steps.enumerate() {
        let mut maker = Maker {
            cycle: step as i64 + 1,
            next: 0,
            known: Some(&known),
            nodes: Vec::new(),
        };
        let opening = opening(messages);
        maker.skeleton();
        maker.blocks(SYS, 0, &messages[..opening]);
        let (mut start, mut turn) = (opening, 1);
        for (at, message) in messages.iter().enumerate().skip(opening) {
            if message.reply {
                maker.sealed(turn, start, &messages[start..=at]);
                (start, turn) = (at + 1, turn + 1);
            }
        }
        if start < messages.len() {
            maker.head(turn, start, &messages[start..]);
        }
        let nodes = maker.nodes;
        recording.snapshots.push(difference(&mut known, nodes));
    }
    recording
}

/// The change from the nodes in `known` to `nodes`; `known` holds `nodes` afterwards.
fn difference(known: &mut HashMap<String, Node>, nodes: Vec<Node>) -> Change {
    let ids: HashSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    let gone = |id: &str| !ids.contains(id);
    // A node whose parent goes too needs no mention; one that stays has been put elsewhere.
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

/// How many messages at the start are system text.
fn opening(messages: &[Message]) -> usize {
    let system = messages.iter().take_while(|message| message.system);
    system.count()
}

/// Makes the nodes of one cycle, parents before children, in the order of their times.
struct Maker<'a> {
    cycle: i64,
    /// The next creation index of the cycle.
    next: i64,
    /// Nodes that are there already and keep their cycle and index.
    known: Option<&'a HashMap<String, Node>>,
    nodes: Vec<Node>,
}

impl Maker<'_> {
    fn new(cycle: i64) -> Self {
        Self {
            cycle,
            next: 0,
            known: None,
            nodes: Vec::new(),
        }
    }

    /// The root and the regions, made before any message.
    fn skeleton(&mut self) {
        for (at, id) in [ROOT, SYS, SEQ, HEAD].into_iter().enumerate() {
            let parent = if at == 0 { "" } else { ROOT };
            self.node(id.to_owned(), parent, id, at as i64, None, None);
        }
    }

    /// A turn under `^seq` with its core and the blocks of `messages`, the first of which stands
    /// at position `start`.
    fn sealed(&mut self, turn: usize, start: usize, messages: &[Message]) {
        let id = format!("mt:{turn}");
        self.node(id.clone(), SEQ, "mt", time(start), None, None);
        self.core(turn, &id, start, messages);
    }

    /// The same turn while it is still open: its core stands in the active head.
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
                // A turn and its core come before the first block.
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
        part: Option<&Part>,
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
        members.push_str("\"created_at_iso\":\"");
        write_iso(created_at_ns, &mut members);
        // Writing into a string cannot fail.
        let _ = write!(
            members,
            "\",\"created_at_ns\":{created_at_ns},\"creation_index\":{creation_index},\"cycle\":{cycle}"
        );
        if let Some(part) = part {
            let mut data: Vec<&(String, String)> = part.data.iter().collect();
            data.sort_unstable();
            for (name, value) in data {
                members.push(',');
                super::json_text(name, &mut members);
                members.push(':');
                members.push_str(value);
            }
        }
        members.push_str(",\"id\":");
        super::json_text(&id, &mut members);
        if let Some(kind) = part.and_then(|part| part.kind) {
            let _ = write!(members, ",\"kind\":\"{kind}\"");
        }
        let _ = write!(members, ",\"nodeType\":\"{node_type}\",\"offset\":0,");
        let parent_at = members.len();
        members.push_str("\"priority\":0");
        if let Some(role) = role {
            members.push_str(",\"role\":");
            super::json_text(role, &mut members);
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

/// Writes a time at or after the epoch as ISO 8601 in UTC, to the nanosecond.
fn write_iso(ns: i64, out: &mut String) {
    let (seconds, nanos) = (ns.div_euclid(SECOND), ns.rem_euclid(SECOND));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years are counted from March, so that the leap day is the last of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z"
    );
}

#[cfg(test)]
mod tests {
    use super::write_iso;

    #[test]
    fn times_print_as_iso() {
        let iso = |ns| {
            let mut out = String::new();
            write_iso(ns, &mut out);
            out
        };
        assert_eq!(iso(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(
            iso(951_782_400_000_000_001),
            "2000-02-29T00:00:00.000000001Z"
        );
        assert_eq!(
            iso(1_709_251_199_999_999_999),
            "2024-02-29T23:59:59.999999999Z"
        );
        assert_eq!(
            iso(1_735_689_599_000_000_000),
            "2024-12-31T23:59:59.000000000Z"
        );
    }
}
