//! Advice for a selector that failed: the corrected text of one that was refused, and the reasons why
//! an answer is empty (LANGUAGE §10, §11).
//!
//! In come a refused text with its errors, or a selector that found nothing with the snapshots it
//! read; out come errors with a correction, or [`EmptyReason`]s. The engine calls this module after it
//! has failed, so an answer costs nothing. It must not know how selectors are cached, or who asks.

mod balance;
mod correct;
mod empty;
mod glyphs;
mod inventory;
mod joins;
mod matching;
mod reason;
mod scan;
mod slip;
mod table;
mod times;
mod unknown;
mod words;

pub use correct::correct;
pub(crate) use empty::Nothing;
pub use reason::EmptyReason;
