//! A session to give away: as one page that a browser shows, or as a receipt without content
//! (INSPECT §4).
//!
//! | part | file |
//! |---|---|
//! | distinct blocks, and steps as lists of changes | `table` |
//! | the page: its data, and the file | `page`, `page.html`, `page.css`, `page.js` |
//! | counts, hashes, shapes | `receipt` |
//!
//! This module knows sessions and the comparison of requests. It must not know the command line, and
//! it asks for nothing from anywhere.

mod page;
mod receipt;
mod table;

pub use crate::json::Redactor;
pub use page::{Page, page};
pub use receipt::{Receipt, ReceiptBlock, ReceiptPrefix, ReceiptStep, receipt};
