//! The thread without a provider's form: one object for each block (source 002 §12.5).

use super::error::RenderError;
use super::json::{canonical, json_text, push_member};
use super::source::Source;
use std::io::Write;

/// Writes a JSON array of `{"id","role","kind","content"}` and a line feed. The members are in
/// this order; a member without a value is left out. Strings and numbers are canonical.
pub(super) fn write(source: Source<'_>, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut text = String::from("[");
    for (at, block) in source.blocks().enumerate() {
        text.push_str(if at == 0 { "{\"id\":" } else { ",{\"id\":" });
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
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    text.push_str("]\n");
    out.write_all(text.as_bytes())?;
    Ok(())
}
