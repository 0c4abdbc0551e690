//! What a search for texts reads of a node.

use crate::index::{NodeRef, UnitKind};
#[cfg(feature = "store")]
use crate::json::{JsonValue, any_text};
use crate::render::SentTexts;
use crate::tree::NodeClass;

/// What a model is sent of a block, of a call its name, a blank and its arguments; `None` if it is not sent.
/// It depends on nothing outside the node's unit. Linear in its content.
pub(crate) fn searched(node: NodeRef<'_>) -> Option<String> {
    if node.class() != NodeClass::Block || node.unit_kind() == UnitKind::Rest {
        return None;
    }
    let sent = SentTexts::new(node, node.unit_kind() == UnitKind::Preamble);
    let texts: Vec<&str> = sent.iter().collect();
    Some(texts.join(" "))
}

/// What an index of texts has of a node: what [`searched`] gives, and the texts of its content in which a selector's
/// pattern is searched for, each on a line, where they are not the same. `None` if it has none. Linear in its content.
#[cfg(feature = "store")]
pub(crate) fn indexed(node: NodeRef<'_>) -> Option<String> {
    let sent = searched(node);
    let mut all = sent.clone().unwrap_or_default();
    let mut add = |text: &str| {
        if sent.as_deref() != Some(text) {
            if !all.is_empty() {
                all.push('\n');
            }
            all.push_str(text);
        }
    };
    match node.field("content") {
        None | Some(JsonValue::Null) => {}
        Some(JsonValue::Text(text)) => add(text),
        Some(JsonValue::List(json) | JsonValue::Object(json)) => {
            any_text(json, |text| {
                add(text);
                false
            });
        }
        Some(other) => add(&other.json()),
    }
    (!all.is_empty()).then_some(all)
}
