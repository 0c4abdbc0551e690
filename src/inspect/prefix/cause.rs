//! What breaks a prefix, in words.

use serde::Serialize;

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
