//! Providers by name.

use serde::{Serialize, Serializer};
use std::fmt;

/// The form of a rendered request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// No provider's: a list of blocks (source 002 §12.5).
    #[default]
    Thread,
    /// OpenAI Chat Completions.
    OpenAi,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Thread,
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
    ];

    /// The name on the command line, such as `openai-responses`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
        }
    }
}

impl Serialize for Provider {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
