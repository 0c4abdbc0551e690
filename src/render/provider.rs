//! Providers by name.

use crate::support::macros::names;
use serde::Serialize;
use std::fmt;

/// The form of a rendered request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Provider {
    /// No provider's: a list of blocks (source 002 §12.5).
    #[default]
    Thread,
    /// OpenAI Chat Completions.
    OpenAi,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
}

names!(Provider: 4, name {
    Thread: "thread",
    OpenAi: "openai",
    OpenAiResponses: "openai-responses",
    Anthropic: "anthropic",
});

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
