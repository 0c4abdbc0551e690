//! Blocks of the cycle in progress whose text grows.

use std::sync::Arc;

use super::growing::Growing;
use super::refusal::{Refusal, header, placement, sealed};
use super::state::Node;
use super::workspace::Workspace;
use crate::tree::shallow::string;

impl Workspace {
    /// The slot of a block of this cycle that text can be added to.
    pub(crate) fn open_stream(&mut self, id: &str) -> Result<u32, Refusal> {
        let node = self.state().find(id);
        let node = node.ok_or_else(|| placement(format!("no node has the id `{id}`")))?;
        let Node::New(slot, fresh) = node else {
            return Err(sealed(format!(
                "`{id}` is committed and its text never changes"
            )));
        };
        if fresh.growing.is_some() {
            return Ok(slot);
        }
        let text = match fresh.field("content") {
            None | Some("null") => None,
            Some(json) => {
                let text = string(json).map(String::from);
                let wrong = || header(format!("the content of `{id}` is not a text"));
                Some(text.ok_or_else(wrong)?)
            }
        };
        let mut growing = Growing::default();
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            growing.push(&text);
        }
        if let Some(fresh) = self.overlay.get_mut(slot) {
            fresh.growing = Some(growing);
        }
        Ok(slot)
    }

    /// Adds text to a block that was opened.
    pub(crate) fn grow(&mut self, slot: u32, text: &str) {
        if let Some(fresh) = self.overlay.get_mut(slot) {
            fresh.set_field("content_hash", None);
            if let Some(growing) = &mut fresh.growing {
                growing.push(text);
            }
        }
    }

    /// The chunks of a block that was opened, from the one at `from` on.
    pub(crate) fn chunks(&self, slot: u32, from: usize) -> impl Iterator<Item = &Arc<str>> {
        let growing = self
            .overlay
            .get(slot)
            .and_then(|fresh| fresh.growing.as_ref());
        growing
            .into_iter()
            .flat_map(move |growing| growing.chunks(from))
    }
}
