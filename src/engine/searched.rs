//! What a search for texts reads of a node.

use crate::index::{NodeRef, UnitKind};
use crate::render::Wording;
use crate::tree::NodeClass;

/// What a model is sent of a block, of a call its name, a blank and its arguments; `None` if it is not sent.
/// It depends on nothing outside the node's unit. Linear in its content.
pub(crate) fn searched(node: NodeRef<'_>) -> Option<String> {
    if node.class() != NodeClass::Block || node.unit_kind() == UnitKind::Rest {
        return None;
    }
    let wording = Wording::of_node(node, node.unit_kind() == UnitKind::Preamble);
    let texts: Vec<&str> = wording.texts().collect();
    Some(texts.join(" "))
}
