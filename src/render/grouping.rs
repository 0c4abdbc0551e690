//! Which blocks are one message: blocks in, messages out.

use super::answers::Answers;
use super::block::ThreadBlock;
use super::error::RenderError;
use super::piece::{SentBlock, SentPiece, call_of, is_imported, result_of, role, same_message};
use super::provider::Provider;
use super::{anthropic, bedrock, gemini, openai, plain, responses};
use crate::json::string;
use std::borrow::Cow;

/// Whether no API is sent anything for a block, so that it neither ends nor begins a message.
fn says_nothing(sent: &SentBlock<'_>, provider: Provider) -> bool {
    let is_result = || result_of(&sent.block).is_some();
    match (provider, &sent.piece) {
        (Provider::Thread | Provider::OpenAi, _) | (_, None) => false,
        (Provider::Anthropic | Provider::Gemini | Provider::Bedrock, Some(piece)) => {
            !is_result() && anthropic::is_refused(&sent.block, piece)
        }
        (_, Some(piece)) => matches!(piece, SentPiece::Nothing) && !is_result(),
    }
}

/// Whether `next`, the block after `last`, belongs to the same message.
fn is_one_message(last: &SentBlock<'_>, next: &SentBlock<'_>, provider: Provider) -> bool {
    let (block, other) = (&*last.block, &*next.block);
    match (provider, &last.piece, &next.piece) {
        (Provider::Thread, ..) => false,
        (Provider::OpenAi, ..) => same_message(block, other),
        (_, None, None) => block.data("data_message") == other.data("data_message"),
        (_, None, _) | (_, _, None) => false,
        (Provider::Anthropic | Provider::Gemini | Provider::Bedrock, ..) => {
            anthropic::is_assistant(block) == anthropic::is_assistant(other)
        }
        (_, Some(piece), Some(following)) => {
            !responses::is_item(block, piece)
                && !responses::is_item(other, following)
                && result_of(block) == result_of(other)
                && same_message(block, other)
        }
    }
}

/// Makes messages of blocks that come in the order they are sent.
///
/// Chat Completions asks for the results of all calls right after them. So a message between calls and
/// results, such as the context before the next turn, is held back until the last result. Imported
/// messages never are.
#[derive(Default)]
pub(crate) struct Grouping<'a> {
    provider: Provider,
    open: Vec<SentBlock<'a>>,
    /// The ids of the calls without a result so far, of Chat Completions.
    unanswered: Vec<String>,
    held: Vec<String>,
    answers: Answers,
}

impl<'a> Grouping<'a> {
    pub(crate) fn new(provider: Provider) -> Self {
        Self {
            provider,
            ..Self::default()
        }
    }

    /// Adds a block, and to `out` the messages that ended before it, as JSON.
    ///
    /// Returns whether nothing was left open before the block: then what follows is the same
    /// whatever came before.
    ///
    /// # Errors
    /// A block that the API has no form for.
    pub(crate) fn add(
        &mut self,
        block: Cow<'a, ThreadBlock>,
        out: &mut Vec<String>,
    ) -> Result<bool, RenderError> {
        let block = self.answers.complete(block, self.provider);
        let next = SentBlock::new(self.provider, block)?;
        let is_nothing = says_nothing(&next, self.provider);
        let ends = self.open.last().is_some_and(|last| {
            let was_whole = last.piece.is_none();
            (is_nothing && was_whole)
                || (!is_nothing && !is_one_message(last, &next, self.provider))
        });
        if ends {
            self.flush(out)?;
        }
        let waits = !self.unanswered.is_empty() || self.answers.waits();
        let fresh = self.open.is_empty() && !waits && self.held.is_empty();
        if !is_nothing {
            self.open.push(next);
        }
        Ok(fresh)
    }

    /// Ends the request: adds the messages that are still open.
    pub(crate) fn end(&mut self, out: &mut Vec<String>) -> Result<(), RenderError> {
        self.flush(out)?;
        out.append(&mut self.held);
        Ok(())
    }

    fn flush(&mut self, out: &mut Vec<String>) -> Result<(), RenderError> {
        let open = std::mem::take(&mut self.open);
        if open.is_empty() {
            return Ok(());
        }
        match self.provider {
            Provider::Thread => out.extend(open.iter().map(|sent| plain::write(&sent.block))),
            Provider::OpenAiResponses => out.push(responses::item(open)),
            Provider::Anthropic => out.push(anthropic::message(open)),
            Provider::Gemini => out.push(gemini::message(&open)?),
            Provider::Bedrock => out.push(bedrock::message(&open)?),
            Provider::OpenAi => self.answer(&open, out)?,
        }
        Ok(())
    }

    fn answer(
        &mut self,
        blocks: &[SentBlock<'_>],
        out: &mut Vec<String>,
    ) -> Result<(), RenderError> {
        let first = &blocks[0].block;
        let Some(message) = openai::message(blocks)? else {
            return Ok(());
        };
        if let Some(id) = result_of(first) {
            out.push(message);
            self.unanswered.retain(|other| *other != id);
            if self.unanswered.is_empty() {
                out.append(&mut self.held);
            }
            return Ok(());
        }
        let waits = !self.unanswered.is_empty() && role(first) != "assistant";
        if waits && !is_imported(first) {
            self.held.push(message);
            return Ok(());
        }
        out.append(&mut self.held);
        let blocks = blocks.iter().map(|sent| &*sent.block);
        let calls = blocks.filter(|block| block.kind() == Some("call"));
        let ids = calls.filter_map(|block| string(&call_of(block).0).map(Cow::into_owned));
        self.unanswered = ids.collect();
        out.push(message);
        Ok(())
    }
}
