//! Trees as data: reading and validating documents, canonical order, canonical bytes, content
//! hashes.
//!
//! A document's bytes become a [`Tree`]: its nodes in canonical document order, in one flat
//! arena. This room knows JSON and the tree's invariants (RUNTIME §1, §2). It knows no
//! selectors, no index and no history.

pub mod model;

pub use model::{Dictionary, NONE, NodeClass, Present, Row, Tree, text_list};
