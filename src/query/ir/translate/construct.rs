//! What an edition cannot express.

use crate::query::ir::query::{AttrTest, Facet};

/// A construct that an edition cannot express.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Construct {
    /// The working state.
    WorkingState,
    /// A control, by its name.
    Control(&'static str),
    /// A filter of the final set after a pick.
    Filter,
    /// `~`
    Pattern(AttrTest),
    /// A list of values.
    List(AttrTest),
    /// A derived facet.
    Facet(Facet),
    /// A test of the nodeType, which the edition reads differently.
    NodeType(AttrTest),
    /// A test of the kind, which the edition reads differently.
    Kind(AttrTest),
    /// A set of depths.
    Depth,
    /// A step that would become a union, at or before a pick.
    Pick,
    /// An order of rows that would change.
    Order,
    /// More groups, steps or bytes than the limits allow.
    Size,
    /// A text that would be read as another query.
    Unread,
}
