//! Why a request is not the one before with more at its end.

use super::pieces::{Piece, Place, tool_name};
use super::text::{TextChange, compare};
use crate::json::{get, members};
use crate::render::{ThreadBlock, canonical};
use serde::Serialize;
use std::sync::Arc;

/// Why the prefix of a request ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// Another model.
    Model,
    /// A parameter that the model reads was added, removed or changed.
    Parameter {
        /// Its name.
        name: String,
    },
    /// The same tools in another order.
    ToolOrder,
    /// A tool that is new.
    ToolAdded {
        /// Its name.
        name: String,
    },
    /// A tool that is gone.
    ToolRemoved {
        /// Its name.
        name: String,
    },
    /// A tool whose definition says something else.
    ToolChanged {
        /// Its name.
        name: String,
    },
    /// The same values with members in another order, or spelled in another way.
    KeyOrder,
    /// A date or a time.
    Timestamp,
    /// A number.
    Counter,
    /// An id, such as a UUID.
    Id,
    /// The ids of calls.
    CallIds,
    /// White space only.
    WhiteSpace,
    /// The system prompt says something else.
    SystemPrompt,
    /// Earlier messages were replaced by a summary.
    Compaction,
    /// Messages of the request before are gone.
    MessagesDropped {
        /// How many, one after the other.
        count: usize,
    },
    /// Messages were put before ones of the request before.
    MessagesInserted {
        /// How many, one after the other.
        count: usize,
    },
    /// An earlier message has another role.
    Role,
    /// An earlier message has other images or documents.
    Media,
    /// Reasoning of an earlier message is gone.
    ReasoningDropped,
    /// An earlier message has more text at its end.
    Extended,
    /// An earlier message says something else.
    Rewritten,
}

impl Cause {
    /// The cause in words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Model => "another model".to_owned(),
            Self::Parameter { name } => format!("parameter `{name}` changed"),
            Self::ToolOrder => "the tools are in another order".to_owned(),
            Self::ToolAdded { name } => format!("tool `{name}` was added"),
            Self::ToolRemoved { name } => format!("tool `{name}` was removed"),
            Self::ToolChanged { name } => format!("tool `{name}` has another definition"),
            Self::KeyOrder => "the same JSON in another order or spelling".to_owned(),
            Self::Timestamp => "a date or time in a text".to_owned(),
            Self::Counter => "a number in a text".to_owned(),
            Self::Id => "an id in a text".to_owned(),
            Self::CallIds => "other ids of the same calls".to_owned(),
            Self::WhiteSpace => "white space only".to_owned(),
            Self::SystemPrompt => "the system prompt changed".to_owned(),
            Self::Compaction => "compaction".to_owned(),
            Self::MessagesDropped { count: 1 } => "an earlier message was dropped".to_owned(),
            Self::MessagesDropped { count } => format!("{count} earlier messages were dropped"),
            Self::MessagesInserted { count: 1 } => {
                "a message was put before earlier ones".to_owned()
            }
            Self::MessagesInserted { count } => {
                format!("{count} messages were put before earlier ones")
            }
            Self::Role => "an earlier message has another role".to_owned(),
            Self::Media => "other images or documents in an earlier message".to_owned(),
            Self::ReasoningDropped => "reasoning of an earlier message was dropped".to_owned(),
            Self::Extended => "an earlier message has more text at its end".to_owned(),
            Self::Rewritten => "an earlier message was rewritten".to_owned(),
        }
    }

    /// What would keep the prefix.
    #[must_use]
    pub fn mend(&self) -> &'static str {
        match self {
            Self::Model => "stay with one model for a session; each has a cache of its own",
            Self::Parameter { .. } => {
                "keep parameters that the model reads the same for the whole session"
            }
            Self::ToolOrder => "sort the tools, for instance by name",
            Self::ToolAdded { .. } | Self::ToolRemoved { .. } | Self::ToolChanged { .. } => {
                "define all tools at the start, and limit them with `tool_choice` or in a message"
            }
            Self::KeyOrder => "serialize with sorted keys, or keep the bytes that were sent first",
            Self::Timestamp => "send the time in the newest message, or only the date",
            Self::Counter => "send the number in the newest message",
            Self::Id => "send the id in the newest message, or leave it out",
            Self::CallIds => "keep the ids that the calls had when they were first sent",
            Self::WhiteSpace => "keep the bytes that were sent first",
            Self::SystemPrompt => "keep the system prompt, and send what changes in a message",
            Self::Compaction => "unavoidable; compact rarely, and drop a lot each time",
            Self::MessagesDropped { .. } => {
                "rarely drop messages, and many at once, instead of some at every step"
            }
            Self::MessagesInserted { .. } => "put new messages at the end",
            Self::Role => "keep the role that the message was sent with first",
            Self::Media => "keep images and documents as they were sent first",
            Self::ReasoningDropped => "drop reasoning when a turn ends, or keep it",
            Self::Extended => "put what is new into a message of its own",
            Self::Rewritten => "leave sent messages as they are, and put changes at the end",
        }
    }
}

/// The messages of two requests from the first that differs on.
pub(super) struct Tails<'a> {
    pub(super) older: &'a [&'a str],
    pub(super) newer: &'a [&'a str],
    /// The blocks of the first message of each.
    pub(super) older_blocks: &'a [Arc<ThreadBlock>],
    pub(super) newer_blocks: &'a [Arc<ThreadBlock>],
    /// Whether the newer request is the first after a compaction.
    pub(super) compaction: bool,
}

/// Why the front differs, from the first piece that does. Either side may have ended.
pub(super) fn of_front(older: &[Piece], newer: &[Piece]) -> Cause {
    let place = |piece: Option<&Piece>| piece.map(|piece| piece.place.clone());
    let (old, new) = (place(older.first()), place(newer.first()));
    match (&old, &new) {
        (Some(Place::Tool { .. }), _) | (_, Some(Place::Tool { .. })) => of_tools(older, newer),
        (Some(Place::Parameter { name }), Some(Place::Parameter { name: other }))
            if name == other && name == "model" =>
        {
            Cause::Model
        }
        (Some(Place::System), Some(Place::System)) => {
            match compare(&older[0].json, &newer[0].json) {
                TextChange::WhiteSpace => Cause::WhiteSpace,
                TextChange::Time => Cause::Timestamp,
                TextChange::Counter => Cause::Counter,
                TextChange::Id => Cause::Id,
                TextChange::Spelling => Cause::KeyOrder,
                TextChange::Extended | TextChange::Other => Cause::SystemPrompt,
            }
        }
        (Some(Place::Parameter { name }), Some(Place::Parameter { name: other }))
            if name == other =>
        {
            let value = |piece: &Piece| {
                let object = format!("{{{}}}", piece.json.trim_end_matches(','));
                canonical(&object)
            };
            if value(&older[0]) == value(&newer[0]) {
                Cause::KeyOrder
            } else {
                Cause::Parameter { name: name.clone() }
            }
        }
        // One of them has a parameter that the other has not.
        (Some(Place::Parameter { name }), _) if !has(newer, name) => {
            Cause::Parameter { name: name.clone() }
        }
        (_, Some(Place::Parameter { name })) => Cause::Parameter { name: name.clone() },
        (Some(Place::Parameter { name }), _) => Cause::Parameter { name: name.clone() },
        _ => Cause::SystemPrompt,
    }
}

fn has(pieces: &[Piece], parameter: &str) -> bool {
    let is_it = |place: &Place| matches!(place, Place::Parameter { name } if name == parameter);
    pieces.iter().any(|piece| is_it(&piece.place))
}

/// Why the tools differ, from the first that does.
fn of_tools(older: &[Piece], newer: &[Piece]) -> Cause {
    let tools = |pieces: &[Piece]| -> Vec<(String, String)> {
        let tools = pieces
            .iter()
            .filter(|piece| matches!(piece.place, Place::Tool { .. }));
        let tools = tools.map(|tool| {
            let json = tool.json.trim_end_matches(',');
            (tool_name(json), canonical(json))
        });
        tools.collect()
    };
    let (old, new) = (tools(older), tools(newer));
    let missing = |from: &[(String, String)], name: &str| !from.iter().any(|(n, _)| n == name);
    if let Some((name, _)) = new.iter().find(|(name, _)| missing(&old, name)) {
        return Cause::ToolAdded { name: name.clone() };
    }
    if let Some((name, _)) = old.iter().find(|(name, _)| missing(&new, name)) {
        return Cause::ToolRemoved { name: name.clone() };
    }
    if old == new {
        return Cause::KeyOrder;
    }
    for (name, definition) in &new {
        if !old.iter().any(|(n, d)| n == name && d == definition) {
            return Cause::ToolChanged { name: name.clone() };
        }
    }
    Cause::ToolOrder
}

/// Why the messages differ, from the first that does. The older side has one at least.
pub(super) fn of_messages(tails: &Tails<'_>) -> Cause {
    let summary =
        |blocks: &[Arc<ThreadBlock>]| blocks.iter().any(|block| block.kind() == Some("summary"));
    let is_new = summary(tails.newer_blocks) && !summary(tails.older_blocks);
    if tails.compaction || is_new {
        return Cause::Compaction;
    }
    let (Some(older), Some(newer)) = (tails.older.first(), tails.newer.first()) else {
        return Cause::MessagesDropped {
            count: tails.older.len(),
        };
    };
    let dropped = tails.older.iter().position(|message| message == newer);
    let inserted = tails.newer.iter().position(|message| message == older);
    match (dropped, inserted) {
        (Some(count), None) => return Cause::MessagesDropped { count },
        (None, Some(count)) => return Cause::MessagesInserted { count },
        (Some(dropped), Some(inserted)) => {
            return if dropped <= inserted {
                Cause::MessagesDropped { count: dropped }
            } else {
                Cause::MessagesInserted { count: inserted }
            };
        }
        (None, None) => {}
    }
    let member = |json: &str, name: &str| {
        let found = members(json);
        get(&found, name).map(str::to_owned)
    };
    if member(older, "role") != member(newer, "role")
        || member(older, "type") != member(newer, "type")
    {
        let rest = |json: &str| {
            let found = members(json);
            get(&found, "content").map(str::to_owned)
        };
        return if rest(older) == rest(newer) {
            Cause::Role
        } else {
            Cause::Rewritten
        };
    }
    if without_call_ids(older, tails.older_blocks) == without_call_ids(newer, tails.newer_blocks) {
        return Cause::CallIds;
    }
    let count = |blocks: &[Arc<ThreadBlock>], kinds: &[&str]| {
        let is_one = |kind: Option<&str>| kind.is_some_and(|kind| kinds.contains(&kind));
        blocks.iter().filter(|block| is_one(block.kind())).count()
    };
    let thinking = ["thinking"];
    if count(tails.older_blocks, &thinking) > count(tails.newer_blocks, &thinking) {
        return Cause::ReasoningDropped;
    }
    let media = |blocks: &[Arc<ThreadBlock>]| -> Vec<Option<String>> {
        let is_media =
            |block: &&Arc<ThreadBlock>| matches!(block.kind(), Some("image" | "document"));
        let media = blocks.iter().filter(is_media);
        media
            .map(|block| block.content().map(str::to_owned))
            .collect()
    };
    if media(tails.older_blocks) != media(tails.newer_blocks) {
        return Cause::Media;
    }
    match compare(older, newer) {
        TextChange::WhiteSpace => Cause::WhiteSpace,
        TextChange::Time => Cause::Timestamp,
        TextChange::Counter => Cause::Counter,
        TextChange::Id => Cause::Id,
        TextChange::Spelling => Cause::KeyOrder,
        TextChange::Extended => Cause::Extended,
        TextChange::Other if same_values(older, newer) => Cause::KeyOrder,
        TextChange::Other => Cause::Rewritten,
    }
}

/// A message with the ids of its calls replaced by their positions.
fn without_call_ids(json: &str, blocks: &[Arc<ThreadBlock>]) -> String {
    let mut out = json.to_owned();
    let mut ids: Vec<&str> = Vec::new();
    for block in blocks {
        if let Some(id) = block.data("data_call_id")
            && id.len() > 2
            && !ids.contains(&id)
        {
            ids.push(id);
        }
    }
    for (at, id) in ids.into_iter().enumerate() {
        out = out.replace(id, &format!("\u{1}{at}"));
    }
    out
}

/// Whether two messages have the same values where strings that are JSON, such as arguments, count as
/// that JSON.
fn same_values(older: &str, newer: &str) -> bool {
    let value = |json: &str| {
        let json = json.trim_end_matches(',');
        let whole = serde_json::from_str(json);
        // The brackets of a message that can get more parts are left out.
        let value = whole.or_else(|_| serde_json::from_str(&format!("{json}]}}")));
        value.ok().map(unpacked)
    };
    value(older).is_some_and(|older| Some(older) == value(newer))
}

/// A value with the strings in it that are JSON objects or lists replaced by those.
fn unpacked(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        Value::Array(values) => values.into_iter().map(unpacked).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, unpacked(value)))
            .collect(),
        value => value,
    }
}
