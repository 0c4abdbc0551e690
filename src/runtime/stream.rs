//! Blocks of the cycle in progress whose text grows.

use std::sync::Arc;

use super::growing::Growing;
use super::refusal::{Refusal, header, sealed};
use super::state::StateNode;
use super::workspace::Workspace;
use crate::json::JsonValue;

impl Workspace {
    pub(crate) fn open_stream(&self, id: &str) -> Result<u32, Refusal> {
        let StateNode::New(slot, fresh) = self.state().get(id)? else {
            return Err(sealed(format!(
                "`{id}` is committed and its text never changes"
            )));
        };
        let is_text = |content: JsonValue<'_>| content.is_null() || content.is_text();
        if fresh.growing.is_none() && !fresh.field("content").is_none_or(is_text) {
            return Err(header(format!("the content of `{id}` is not a text")));
        }
        Ok(slot)
    }

    /// Whether a block that was opened is part of the reply of this cycle.
    pub(crate) fn is_reply(&self, slot: u32) -> bool {
        let fresh = self.overlay.get(slot);
        fresh.is_some_and(|fresh| fresh.field("data_reply").is_some())
    }

    pub(crate) fn grow(&mut self, slot: u32, text: &str) {
        let Some(fresh) = self.overlay.get_mut(slot) else {
            return;
        };
        if fresh.growing.is_none() {
            let mut growing = Growing::default();
            let before = fresh.field("content").and_then(JsonValue::text);
            if let Some(before) = before.filter(|before| !before.is_empty()) {
                growing.push(before);
            }
            fresh.growing = Some(growing);
        }
        fresh.set_field("content_hash", None);
        if let Some(growing) = &mut fresh.growing {
            growing.push(text);
        }
    }

    /// The chunks of a block that was opened, from the one at `from` on.
    pub(crate) fn chunks(&self, slot: u32, from: usize) -> impl Iterator<Item = Arc<str>> {
        let fresh = self.overlay.get(slot);
        let growing = fresh.and_then(|fresh| fresh.growing.as_ref());
        let whole = match growing {
            None if from == 0 => fresh
                .and_then(|fresh| fresh.field("content"))
                .and_then(JsonValue::text),
            _ => None,
        };
        let whole = whole.filter(|whole| !whole.is_empty()).map(Arc::from);
        let grown = growing
            .into_iter()
            .flat_map(move |growing| growing.chunks(from));
        whole.into_iter().chain(grown.cloned())
    }
}
