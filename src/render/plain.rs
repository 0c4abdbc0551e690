//! The thread without a provider's form: one object for each block (source 002 §12.5).
//!
//! The members are `id`, `role`, `kind` and `content`, in this order; a member without a value is
//! left out. Strings and numbers are canonical.

use super::block::ThreadBlock;
use super::json::{canonical, object, quoted};

pub(super) fn write(block: &ThreadBlock) -> String {
    let content = block.content().filter(|content| *content != "null");
    let content = content.map(|content| {
        if block.is_tool() {
            // The order and spelling of definitions is for providers.
            canonical(content)
        } else {
            content.to_owned()
        }
    });
    let members = [
        ("id", Some(quoted(block.id()))),
        ("role", Some(quoted(block.role()))),
        ("kind", block.kind().map(quoted)),
        ("content", content),
    ];
    let members = members.into_iter();
    object(members.filter_map(|(name, value)| Some((name, value?))))
}
