//! Blocks whose text grows while a reply comes in.

use std::sync::Arc;

use super::Context;
use crate::support::diag::Error;

/// A block that grows. Adding text costs the text; the block is put together when it is read or
/// committed.
///
/// An attempt that a stream feeds is running until it is completed, canceled or failed, or until the commit, and it
/// ended when its last text came. What had come stays.
///
/// ```
/// use pactql::{Context, Message, Provider, history::AttemptStatus};
/// let mut context = Context::new();
/// context.append(Message::user("Where is my refund?"))?;
/// context.render(Provider::OpenAi)?;
/// let id = context.begin_reply(Message::assistant("On"))?.remove(0);
/// let mut stream = context.stream(&id)?;
/// stream.push(" its");
/// stream.push(" way.");
/// assert_eq!(stream.text_chunks().collect::<Vec<_>>(), ["On".into(), " its".into(), " way.".into()]);
/// drop(stream);
/// context.complete_attempt(12, 3)?;
/// assert_eq!(context.attempts().iter().next().map(|it| it.status), Some(AttemptStatus::Completed));
/// let selection = context.select(".cb[role='assistant']")?;
/// assert_eq!(selection.nodes().next().expect("the block").text(), "On its way.");
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream<'c> {
    context: &'c mut Context,
    slot: u32,
    dirty: bool,
}

impl Context {
    /// Opens a block of the cycle in progress, whose content is a text or absent, to add text to it.
    ///
    /// # Errors
    /// `E_SEALED`: the block is committed; `E_PLACEMENT`: no node has the id; `E_HEADER`: its content is
    /// not a text.
    pub fn stream(&mut self, id: &str) -> Result<Stream<'_>, Error> {
        let slot = self.workspace.open_stream(id);
        let slot = slot.map_err(|refusal| Error::whole(refusal.code, id, refusal.message))?;
        Ok(Stream {
            context: self,
            slot,
            dirty: false,
        })
    }

    /// The text of a block of the cycle in progress in the chunks it came in, without those before
    /// number `from`: who follows a text passes how many chunks it has. Costs those returned. A text
    /// that did not grow is one chunk. Errors as [`Context::stream`].
    pub fn text_chunks(&mut self, id: &str, from: usize) -> Result<Vec<Arc<str>>, Error> {
        let stream = self.stream(id)?;
        Ok(stream.context.workspace.chunks(stream.slot, from).collect())
    }
}

impl Stream<'_> {
    /// Adds text at the end. Costs its length.
    pub fn push(&mut self, text: &str) {
        if !text.is_empty() {
            self.context.workspace.grow(self.slot, text);
            self.context.feed_attempt(self.slot);
            self.dirty = true;
        }
    }

    /// The text so far, in the chunks it came in.
    pub fn text_chunks(&self) -> impl Iterator<Item = Arc<str>> {
        self.context.workspace.chunks(self.slot, 0)
    }

    /// Shows the text so far to readers of the session. Dropping the stream does the same.
    pub fn flush(&mut self) {
        if std::mem::take(&mut self.dirty) {
            self.context.changed();
        }
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
