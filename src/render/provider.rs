//! Providers by name.

use crate::support::macros::names;
use serde::Serialize;

names! {
    /// The form of a rendered request.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    #[non_exhaustive]
    pub enum Provider: name {
        /// No provider's: a list of blocks (source 002 §12.5).
        #[default]
        Thread = "thread",
        /// OpenAI Chat Completions.
        OpenAi = "openai",
        /// OpenAI Responses.
        #[serde(rename = "openai-responses")]
        OpenAiResponses = "openai-responses",
        /// Anthropic Messages.
        Anthropic = "anthropic",
        /// Gemini `generateContent`.
        Gemini = "gemini",
        /// Bedrock `converse`.
        Bedrock = "bedrock",
    }
}
