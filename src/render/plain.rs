//! The thread without a provider's form: one object for each block (source 002 §12.5).
//!
//! The members are `id`, `role`, `kind` and `content`, in this order; a member without a value is
//! left out. Strings and numbers are canonical.

use super::block::ThreadBlock;
use super::json::{canonical, json_text, push_member};

/// The object of a block.
pub(super) fn object(block: &ThreadBlock) -> String {
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
