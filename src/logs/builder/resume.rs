//! Continues a session from its newest snapshot alone.
//!
//! Everything that a [`Builder`] knows is in the tree that it made, except for the numbers of messages, turns and
//! tools that are gone: [`Numbers`] has the last ones that were given. A tree that no builder made is refused.

use super::{BlockPlace, Builder, SentMessage, ShownMessage, ToolEntry, Turn};
use crate::index::{NodeRef, Snapshot};
use crate::json::JsonValue;
use crate::logs::log::{About, LogField, LogMessage, LogPart, LogTool};
use crate::logs::nodes::{CreationOrder, SYS};
use crate::logs::recording::Recording;
use crate::tree::timestamp::nanos_of_rfc3339;
use crate::tree::{Document, NodeClass};
use std::sync::Arc;

/// The last numbers that were given to messages, turns and tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    messages: usize,
    turns: usize,
    tools: usize,
}

impl Numbers {
    pub(crate) fn note(&mut self, id: &str) {
        let number = |text: &str| text.parse::<usize>().unwrap_or(0);
        if let Some(tool) = id.strip_prefix("cb:tool-") {
            self.tools = self.tools.max(number(tool));
        } else if let Some((message, _)) =
            id.strip_prefix("cb:").and_then(|rest| rest.split_once('-'))
        {
            self.messages = self.messages.max(number(message));
        } else if let Some(turn) = id.strip_prefix("mt:").or_else(|| id.strip_prefix("mc:")) {
            self.turns = self.turns.max(number(turn));
        }
    }
}

const KINDS: [&str; 8] = [
    "text", "result", "call", "image", "document", "thinking", "summary", "error",
];

const OWN: [&str; 3] = ["data_message", "data_reply", "data_response"];

impl Builder {
    /// The builder of a session after its newest snapshot; `None` if no builder made it.
    pub(in crate::logs) fn after(
        snapshot: &Snapshot,
        numbers: Numbers,
        about: About,
    ) -> Option<Self> {
        let cycles = usize::try_from(snapshot.cycle()).ok()?;
        let root = snapshot.root();
        let mut numbers = numbers;
        snapshot.nodes().for_each(|node| numbers.note(node.id()));
        let mut reading = Reading {
            builder: Self {
                opened: true,
                timed: true,
                base: root.created_at_ns(),
                messages: numbers.messages,
                numbered_turns: numbers.turns,
                numbered_tools: numbers.tools,
                first_words: title(snapshot),
                ..Self::new(about, Recording::passed(cycles))
            },
            places: Vec::new(),
        };
        for region in root.children() {
            match region.class() {
                NodeClass::Sys => reading.system(region)?,
                NodeClass::Seq => {
                    for turn in region.children() {
                        reading.sealed(turn)?;
                    }
                }
                NodeClass::Head => {
                    for core in region.children() {
                        reading.core(core, None)?;
                    }
                }
                _ => return None,
            }
        }
        Some(reading.finish())
    }

    pub(in crate::logs) fn numbers(&self) -> Numbers {
        Numbers {
            messages: self.messages,
            turns: self.numbered_turns,
            tools: self.numbered_tools,
        }
    }

    /// The messages that were sent last, and the reply; of each whether it is of that.
    pub(in crate::logs) fn sent(&self) -> impl Iterator<Item = (&Arc<LogMessage>, bool)> {
        let newest = self.cycle() - 1;
        let entries = self.entries.iter();
        entries.map(move |entry| (&entry.message, entry.reply_of == Some(newest)))
    }

    /// The messages up to the reply of a response, except for texts that only their own request has.
    pub(in crate::logs) fn up_to(&self, response: &str) -> Option<Vec<Arc<LogMessage>>> {
        let is_it = |entry: &SentMessage| entry.response.as_deref() == Some(response);
        let last = self.entries.iter().rposition(is_it)?;
        let is_own = |message: &LogMessage| {
            let shape = message
                .parts
                .first()
                .and_then(|part| part.field("data_shape"));
            shape == Some("\"instructions\"")
        };
        let sent = self.entries.iter().take(last + 1);
        let sent = sent.map(|entry| &entry.message);
        Some(sent.filter(|message| !is_own(message)).cloned().collect())
    }

    pub(in crate::logs) fn last(&self) -> Option<Document> {
        self.recording.last()
    }
}

fn title(snapshot: &Snapshot) -> Option<String> {
    let mut said = snapshot.meta().extra.iter();
    let title = said.find(|(name, _)| &**name == "title");
    title.map(|(_, value)| value.to_string())
}

struct Reading {
    builder: Builder,
    places: Vec<BlockPlace>,
}

impl Reading {
    fn system(&mut self, region: NodeRef<'_>) -> Option<()> {
        if region.id() != SYS {
            return None;
        }
        for block in region.children() {
            let Some(tool) = block.id().strip_prefix("cb:tool-") else {
                self.block(block, BlockPlace::System)?;
                continue;
            };
            self.builder.tools.push(ToolEntry {
                tool: LogTool {
                    data: data_of(block),
                    name: block.key().unwrap_or_default().to_owned(),
                    definition: block.field("content")?.text()?.to_owned(),
                },
                number: tool.parse().ok()?,
                order_ns: block.created_at_ns(),
                made: made(block)?,
            });
        }
        Some(())
    }

    fn sealed(&mut self, turn: NodeRef<'_>) -> Option<()> {
        let mut cores = turn.children();
        let (core, None) = (cores.next()?, cores.next()) else {
            return None;
        };
        self.core(core, Some(turn))
    }

    fn core(&mut self, core: NodeRef<'_>, turn: Option<NodeRef<'_>>) -> Option<()> {
        let number = core.id().strip_prefix("mc:")?;
        if turn.is_some_and(|turn| turn.id().strip_prefix("mt:") != Some(number)) {
            return None;
        }
        let number = number.parse().ok()?;
        let sealed = match turn {
            Some(turn) => Some(made(turn)?),
            None => None,
        };
        self.builder.turns.push(Turn {
            number,
            start: self.builder.entries.len(),
            sealed: turn.is_some(),
            order_ns: core.created_at_ns().checked_sub(1)?,
            turn: sealed,
            core: made(core)?,
        });
        for block in core.children() {
            self.block(block, BlockPlace::Turn(number))?;
        }
        Some(())
    }

    fn block(&mut self, block: NodeRef<'_>, place: BlockPlace) -> Option<()> {
        let (number, n) = block.id().strip_prefix("cb:")?.split_once('-')?;
        let (number, n): (usize, usize) = (number.parse().ok()?, n.parse().ok()?);
        let part = part(block)?;
        let made = made(block)?;
        let time = block.field("created_at_iso").and_then(JsonValue::text);
        let time = time.and_then(nanos_of_rfc3339);
        let known = self.builder.entries.last_mut();
        if let Some(entry) = known.filter(|entry| entry.number == number) {
            if entry.made.len() + 1 != n || self.places.last() != Some(&place) {
                return None;
            }
            // No other process has it yet.
            let message = Arc::make_mut(&mut entry.message);
            message.role = role_of(message.role.take(), block, part.role);
            message.reply = message.role.as_deref() == Some("assistant");
            message.parts.push(part);
            entry.made.push(made);
            entry.time = entry.time.or(time);
            return Some(());
        }
        if n != 1 {
            return None;
        }
        let response = block.field("data_response").and_then(JsonValue::text);
        let role = role_of(None, block, part.role);
        let message = LogMessage {
            system: place == BlockPlace::System,
            reply: role.as_deref() == Some("assistant"),
            role,
            time: None,
            parts: vec![part],
            response: response.map(str::to_owned),
            injected: false,
            typed: None,
        };
        self.places.push(place);
        self.builder.entries.push(SentMessage {
            reply_of: block.field("data_reply").and_then(JsonValue::integer),
            order_ns: block.created_at_ns().checked_sub(2)?,
            time,
            made: vec![made],
            ..SentMessage::new(Arc::new(message), number)
        });
        Some(())
    }

    fn finish(mut self) -> Builder {
        for (entry, place) in self.builder.entries.iter_mut().zip(self.places) {
            entry.shown = Some(ShownMessage {
                message: Arc::clone(&entry.message),
                place,
                order_ns: entry.order_ns,
            });
        }
        self.builder.arranged = self.builder.entries.len();
        self.builder
    }
}

/// The role of a message: that of a block which has none of its own. Results of Anthropic, Bedrock and Gemini are
/// in messages of the user.
fn role_of(known: Option<String>, block: NodeRef<'_>, own: Option<&str>) -> Option<String> {
    match own {
        None => block.role().map(str::to_owned),
        Some(_) => known.or_else(|| Some("user".to_owned())),
    }
}

fn made(node: NodeRef<'_>) -> Option<CreationOrder> {
    Some(CreationOrder {
        cycle: node.cycle()?,
        index: node.creation_index(),
    })
}

fn part(block: NodeRef<'_>) -> Option<LogPart> {
    let kind = match block.kind() {
        None => None,
        Some(kind) => Some(*KINDS.iter().find(|known| **known == kind)?),
    };
    let mut part = LogPart {
        kind,
        ..LogPart::default()
    };
    part.content = block.field("content").map(JsonValue::canonical);
    part.data = data_of(block);
    let form = part.field("data_form");
    let in_users = ["\"anthropic\"", "\"bedrock\"", "\"gemini\""];
    let in_users = form.is_some_and(|form| in_users.contains(&form));
    if in_users && block.role() == Some("tool") {
        part.role = Some("tool");
    }
    Some(part)
}

/// The custom fields that a block was made with, sorted.
fn data_of(block: NodeRef<'_>) -> Vec<LogField> {
    let own = |(name, _): &(&str, _)| name.starts_with("data_") && !OWN.contains(name);
    let fields = block.fields().filter(own);
    let fields = fields.map(|(name, value)| (name.to_owned().into(), value.canonical()));
    let mut fields: Vec<LogField> = fields.collect();
    fields.sort_unstable();
    fields
}
