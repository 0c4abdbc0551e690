//! Trees as data: reading and validating documents, canonical order, canonical bytes, content hashes.
//!
//! A document's bytes become a [`Tree`]: its nodes in canonical document order, in one flat arena. This module knows
//! JSON and the tree's invariants (RUNTIME §1, §2). It knows no selectors, no index and no history.
//!
//! | step | in | out | file |
//! |---|---|---|---|
//! | read | JSON text | rows in the order of the text | `draft` |
//! | check | rows | [`Tree`], or every fault | `check`, `fault`, `model`, `payload` |
//! | document | the members of a document | [`Document`] | `document` |
//! | seal | the closing line of a file of lines | whether it fits | `seal` |
//! | source | files, directories, streams | documents | `source` |
//! | stream | a large file | its documents, some at a time | `stream`, `large` |
//! | sequence | documents | documents in the order of their cycles | `sequence` |
//! | patch | a tree, a difference | a tree | `delta`, `patch`, `builder` |
//! | commits | what a commit says of its cycle | which mutation made or took a node | `record` |
//! | read back | fields of a node | headers under either spelling | `alias` |
//! | write | fields | content hashes, times | `hash`, `timestamp` |

pub mod alias;
mod builder;
pub mod check;
pub mod delta;
pub mod document;
pub mod documents;
mod draft;
pub mod fault;
pub mod hash;
mod large;
pub mod model;
pub mod patch;
pub mod payload;
mod record;
pub mod seal;
pub mod sequence;
pub mod source;
pub(crate) mod stream;
pub(crate) mod timestamp;

pub(crate) use builder::TreeBuilder;
pub use delta::{Patch, TreeDelta, push_row};
pub use document::{Document, DocumentBody, DocumentOrigin, read_document, read_lines};
pub use fault::{InputError, InputFault};
pub(crate) use model::hash_text;
pub use model::{
    Dictionary, NONE, NodeClass, NodeHeaders, Present, Tree, TreeRow, header, is_header, text_list,
};
pub(crate) use payload::stored_fields;
pub use payload::{Fields, NodeRecord, RecordPlace};
pub(crate) use record::{CommitRecord, CompactionRecord};
pub use sequence::{DocumentOrder, Meta, PlacedDocument, Runtime, arrange, whole_trees};
pub use source::{Limits, SourceError, read_slice, read_source};
