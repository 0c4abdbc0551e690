//! Trees as data: reading and validating documents, canonical order, canonical bytes, content
//! hashes.
//!
//! A document's bytes become a [`Tree`]: its nodes in canonical document order, in one flat
//! arena. This room knows JSON and the tree's invariants (RUNTIME §1, §2). It knows no
//! selectors, no index and no history.
//!
//! | step | in | out | file |
//! |---|---|---|---|
//! | read | JSON text | rows in the order of the text | `json`, `draft`, `split` |
//! | check | rows | [`Tree`], or every fault | `check`, `fault` |
//! | document | members around the root | [`Document`] | `document` |
//! | source | files, directories, streams | documents | `source` |
//! | sequence | documents | trees in cycle order, differences applied or to be applied | `sequence`, `patch` |
//! | read back | fields of a node | headers under either spelling | `alias` |
//! | write | JSON text | canonical bytes, content hashes | `canonical`, `hash` |

pub mod alias;
pub mod canonical;
pub mod check;
pub mod document;
mod draft;
pub mod fault;
pub mod hash;
pub mod json;
pub mod model;
pub mod patch;
pub mod sequence;
pub(crate) mod shallow;
pub mod source;
mod split;
pub(crate) mod timestamp;

pub use document::{Body, Delta, Document, Origin, read_document, read_lines};
pub use fault::{Fault, InputError};
pub use model::{Dictionary, NONE, NodeClass, Present, Row, Tree, is_header, text_list};
pub use patch::Patch;
pub use sequence::{Difference, Header, Sequence, Step, Steps, arrange};
pub use source::{Limits, SourceError, read_slice, read_source};
