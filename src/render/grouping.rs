//! Which blocks are one message: blocks in, messages out.

use super::block::ThreadBlock;
use super::error::RenderError;
use std::borrow::Cow;

/// Makes messages of blocks that come in the order they are sent.
pub(crate) trait Grouping<'a> {
    /// Adds a block, and to `out` the messages that ended before it, as JSON.
    ///
    /// Returns whether nothing was left open before the block: then what follows is the same
    /// whatever came before.
    ///
    /// # Errors
    /// A block that the API has no form for.
    fn add(
        &mut self,
        block: Cow<'a, ThreadBlock>,
        out: &mut Vec<String>,
    ) -> Result<bool, RenderError>;

    /// Ends the request: adds the messages that are still open.
    ///
    /// # Errors
    /// As [`Grouping::add`].
    fn end(&mut self, out: &mut Vec<String>) -> Result<(), RenderError>;
}
