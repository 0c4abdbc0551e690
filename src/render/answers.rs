//! Which call a result answers, where the block does not say it: Gemini's calls need no ids, and its results must
//! have the name of the function, which other APIs do not repeat.

use super::block::ThreadBlock;
use super::piece::{call_of, is_of_form, role};
use super::provider::Provider;
use std::borrow::Cow;

/// The calls that were not answered so far. With a reply after other messages they begin again.
#[derive(Default)]
pub(super) struct Answers {
    /// Id and name of each, as JSON, in order.
    calls: Vec<(String, String)>,
    /// Whether the last block was the model's.
    is_reply: bool,
}

impl Answers {
    /// Whether a result may follow that has to be completed.
    pub(super) fn waits(&self) -> bool {
        !self.calls.is_empty()
    }

    /// A block with the id and the name of the call that it answers, if it lacks one that the API needs: the first
    /// call with that id, or else with that name.
    pub(super) fn complete<'a>(
        &mut self,
        block: Cow<'a, ThreadBlock>,
        provider: Provider,
    ) -> Cow<'a, ThreadBlock> {
        let is_gemini = is_of_form(&block, Provider::Gemini.name());
        let own = Provider::Gemini == provider;
        if provider == Provider::Thread || is_gemini == own {
            return block;
        }
        let is_reply = role(&block) == "assistant";
        if is_reply && !std::mem::replace(&mut self.is_reply, is_reply) {
            self.calls.clear();
        }
        self.is_reply = is_reply;
        if block.kind() == Some("call") {
            self.calls.push(call_of(&block));
            return block;
        }
        if role(&block) != "tool" {
            return block;
        }
        let (id, name) = (block.data("data_call_id"), block.data("data_call_name"));
        let answered = |(of, called): &(String, String)| match id {
            Some(id) => id == of,
            None => is_gemini && name == Some(called),
        };
        let Some(at) = self.calls.iter().position(answered) else {
            return block;
        };
        let (of, called) = if is_gemini {
            self.calls.remove(at)
        } else {
            // Several blocks may be one result.
            self.calls[at].clone()
        };
        let mut block = block.into_owned();
        block.add("data_call_id", &of);
        block.add("data_call_name", &called);
        Cow::Owned(block)
    }
}
