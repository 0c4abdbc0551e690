//! Chat logs in, snapshot documents out.
//!
//! [`import()`] turns the bytes of a log into sessions. It finds the message lists (`input`), reads
//! the messages of one [`Format`] (one file a format), cuts them into turns (`turns`) and yields a
//! [`Recording`], which writes itself as snapshot documents. The other direction starts from a
//! snapshot: [`write_document`] and [`write_session`] write it as documents. As messages it is
//! written by [`mod@crate::render`].
//!
//! This module knows log formats, trees and snapshots. It must not know selectors, files or the
//! command line.

mod delta;
mod equality;
mod export;
mod import;
mod input;
mod json;
mod openai;
mod pointer;
mod recording;
mod report;
mod turns;

pub use delta::write_session;
#[doc(hidden)]
pub use equality::{Comparison, Mismatch};
pub use export::write_document;
#[doc(hidden)]
pub use export::write_members;
pub use import::{Format, ImportOptions, Imported, ImportedSession, import};
pub use input::MessageLocation;
#[cfg(feature = "cli")]
pub(crate) use input::where_messages;
pub use pointer::Pointer;
pub use recording::Recording;
pub use report::{Fate, Report};
