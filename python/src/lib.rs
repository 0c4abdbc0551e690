//! The extension module of the Python package `pactql`.
//!
//! It converts: Python values to those of the library, results and errors back. Whatever is decided about a
//! selector, a session or a store is decided in the library. One file is one class, or the functions of one
//! subject:
//!
//! | subject | files |
//! |---|---|
//! | conversion | `errors`, `json`, `sequence`, `values` |
//! | reading | `engine`, `session`, `selection`, `node`, `range` |
//! | stores and writing | `store`, `answers`, `context` |
//! | recording | `record` |
//! | everything else | `arrow`, `budget`, `forks`, `logs`, `program` |
//!
//! The interpreter lock is released while the library works: each call of it is inside `Python::detach`, and
//! no lock of this crate is waited for outside.

// Docstrings are read by Python: `[1]` is a list there, and `<Node …>` what `repr` prints.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

mod answers;
mod arrow;
mod budget;
mod context;
mod engine;
mod errors;
mod forks;
mod json;
mod logs;
mod node;
mod program;
mod range;
mod record;
mod selection;
mod sequence;
mod session;
mod store;
mod values;

use pyo3::prelude::pymodule;

/// The native half of `pactql`. Import names from `pactql`, which has all of them.
#[pymodule(name = "_pactql")]
mod module {
    #[pymodule_export]
    use crate::answers::StoreAnswers;
    #[pymodule_export]
    use crate::budget::{build_cache, count_tokens, resolve};
    #[pymodule_export]
    use crate::context::{Context, Request};
    #[pymodule_export]
    use crate::engine::{Check, Engine, Explain, Prepared};
    #[pymodule_export]
    use crate::forks::after_fork;
    #[pymodule_export]
    use crate::logs::{Imported, import_log, logs_by_time, open_path};
    #[pymodule_export]
    use crate::node::Node;
    #[pymodule_export]
    use crate::program::run_program;
    #[pymodule_export]
    use crate::range::{Change, PairDiff, RangeDiff, SnapshotRef};
    #[pymodule_export]
    use crate::record::{Recorder, assemble, check_patterns, leak};
    #[pymodule_export]
    use crate::selection::{Fit, NodeIterator, Selection};
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::store::{SessionInfo, Store};

    /// The version of the library.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
