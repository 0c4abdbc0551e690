//! The thread without a provider's form: one object for each block (source 002 §12.5).
//!
//! The members are `id`, `role`, `kind` and `content`, in this order; a member without a value is
//! left out. Strings and numbers are canonical.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::grouping::Grouping;
use super::json::{canonical, json_text, push_member};
use std::borrow::Cow;

/// Each block is an object of its own. It has the last one.
#[derive(Default)]
pub(super) struct Objects(Option<String>);

impl<'a> Grouping<'a> for Objects {
    fn add(
        &mut self,
        block: Cow<'a, ThreadBlock>,
        out: &mut Vec<String>,
    ) -> Result<bool, RenderError> {
        out.extend(self.0.replace(object(&block)));
        Ok(true)
    }

    fn end(&mut self, out: &mut Vec<String>) -> Result<(), RenderError> {
        out.extend(self.0.take());
        Ok(())
    }
}

fn object(block: &ThreadBlock) -> String {
    let mut text = String::from("{\"id\":");
    json_text(block.id(), &mut text);
    text.push_str(",\"role\":");
    json_text(block.role(), &mut text);
    if let Some(kind) = block.kind() {
        text.push_str(",\"kind\":");
        json_text(kind, &mut text);
    }
    match block.content() {
        None | Some("null") => {}
        // The order and spelling of definitions is for providers.
        Some(content) if block.is_tool() => {
            push_member("content", &canonical(content), &mut text);
        }
        Some(content) => push_member("content", content, &mut text),
    }
    text.push('}');
    text
}
