//! Logs in, sessions out.
//!
//! [`import()`] turns the bytes of a log into sessions. It finds the records (`input`), has a
//! [`Format`] say what happened (`formats`, one file a format, in the words of `log`), makes trees
//! of that (`builder`) and yields [`Recording`]s, of which sessions are made.
//!
//! | step | from | to | files |
//! |---|---|---|---|
//! | find | bytes | records, or lists of messages | `sqlite`, `ctrace`, `opencode`, `eval`, `surrogates`, `input`, `pointer`, `stream` |
//! | read | records | events of sessions | `formats`, `log`, `usage` |
//! | build | events | nodes by cycle | `output`, `builder`, `pairing`, `nodes` |
//! | change | nodes | differences of documents, sessions | `change`, `recording`, `spool` |
//! | follow | a log that grows | its sessions | `follow` |
//! | find logs | the environment | where agents keep logs | `places` |
//! | name | sessions of a log | their names | `names` |
//! | know again | bytes of a log | what an import notes of them | `mark` |
//! | go on | a snapshot, one call | the next document | `live`, `events` |
//!
//! The other direction is `export` and `delta`: [`write_document`] and [`write_session`] write snapshots as
//! documents. `file` (contexts in files) and `record` (calls into a store) are layers above the engine;
//! the rest knows log formats, trees and snapshots, and must not know selectors or, but for `stream`, `mark`
//! and `opencode`, files.

mod again;
mod builder;
mod change;
#[cfg(feature = "store")]
mod ctrace;
mod delta;
mod equality;
#[cfg(feature = "eval")]
mod eval;
// Public with `record`, which needs stores.
#[cfg_attr(not(feature = "store"), expect(unreachable_pub))]
mod events;
mod export;
pub(crate) mod file;
#[cfg(feature = "cli")]
mod follow;
mod formats;
mod import;
mod input;
mod json;
#[cfg(feature = "store")]
mod live;
mod log;
#[cfg(feature = "cli")]
mod mark;
mod names;
mod nodes;
#[cfg(feature = "store")]
mod opencode;
mod output;
mod packed;
mod pairing;
mod places;
mod pointer;
#[cfg(feature = "store")]
pub mod record;
mod recording;
mod report;
mod spool;
mod sqlite;
mod stream;
mod surrogates;
mod usage;
mod yaml;

pub use crate::json::{BadPattern, Redaction};
#[doc(hidden)]
pub use again::{Lost, lost_in_export};
#[cfg(feature = "store")]
pub(crate) use builder::Numbers;
pub(crate) use builder::title_from_text;
pub use delta::write_session;
pub use export::write_document;
#[doc(hidden)]
pub use export::write_members;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use follow::FollowedLog;
pub use formats::Format;
#[doc(hidden)]
pub use import::claims;
#[cfg(feature = "cli")]
pub(crate) use import::import_opencode;
pub use import::{Imported, ImportedSession, import};
pub use input::{ImportOptions, LogError, MessageLocation};
pub(crate) use input::{is_known_log, where_messages};
#[cfg(feature = "store")]
pub(crate) use live::{LiveCall, Print, prints_after};
#[cfg(feature = "cli")]
pub(crate) use mark::{LogBytes, LogMark};
pub(crate) use names::{KnownNames, names, position_of, unique};
pub use names::{session_names, stem};
#[cfg(feature = "cli")]
pub(crate) use opencode::{is_opencode, is_storage};
pub use places::{AgentLogs, agent_logs};
pub use pointer::Pointer;
pub use recording::Recording;
pub use report::{Fate, ImportReport};
#[cfg(feature = "store")]
pub(crate) use sqlite::log_of;
pub use stream::import_file;
pub(crate) use stream::is_lines_of_a_log;
