//! What a selector is for: to read, or to say what a mutation changes and where (LANGUAGE §7,
//! RUNTIME §3).

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Select,
    /// The nodes that a mutation changes. They are nodes of the working state, so a time is refused.
    Target,
    /// The place that a mutation puts a node at, in the working state. A position may end in an
    /// insertion point.
    Place,
}

/// Where among the children of a place's parent (LANGUAGE §7). Children count from 1, in document
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InsertionPoint {
    /// No insertion point: somewhere in the parent.
    #[default]
    Into,
    /// A trailing comma: before the first child.
    Start,
    /// `end`: after the last child.
    End,
    /// `+N`: after child N.
    After(u32),
    /// `-N`: before child N.
    Before(u32),
}
