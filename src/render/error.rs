//! Why a thread has no form for a provider.

use crate::tree::InputError;
use std::io;

/// Why a thread cannot be rendered for a provider. What was written before is not a whole request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A block has content that the provider's API has no place for.
    #[error("block `{id}`: {message}")]
    Block {
        /// The id of the block.
        id: String,
        /// What was expected: lower case, no full stop.
        message: String,
        /// What mends it.
        help: String,
    },
    /// The request parameters are not an object, or have a member that rendering writes.
    #[error("request parameters: {message}")]
    Parameters {
        /// What was expected: lower case, no full stop.
        message: String,
        /// What mends it.
        help: String,
    },
    /// The writer failed.
    #[error("{0}")]
    Write(#[from] io::Error),
}

impl RenderError {
    /// The code of such an error, except of [`RenderError::Write`].
    pub const CODE: &'static str = InputError::CODE;

    /// What mends it.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Block { help, .. } | Self::Parameters { help, .. } => Some(help),
            Self::Write(_) => None,
        }
    }

    pub(super) fn block(id: &str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Block {
            id: id.to_owned(),
            message: message.into(),
            help: help.into(),
        }
    }
}
