//! The index of terms of a cache: how often each word occurs in each document.
//!
//! It is an optional file that makes answers over large caches cheap: a few reads yield the
//! measures of all documents, and only the chosen documents are opened. Without the file, or with
//! a damaged one, every document is read, and the answers are the same.
//!
//! # The layout, format 1
//! Integers are little-endian. A *varint* is an unsigned LEB128 of at most ten bytes. A *checksum*
//! is the first eight bytes of a SHA-256.
//! ```text
//! header      92 bytes
//!    0   8    "pactterm"
//!    8   4    the format, 1
//!   12  32    SHA-256 of the text of cache_version in the manifest
//!   44   8    the number of documents
//!   52   8    the number of pages
//!   60   8    bytes of the directory
//!   68   8    bytes of all pages
//!   76   8    checksum of the directory
//!   84   8    checksum of the 84 bytes before
//! directory
//!   a document, in the order of the manifest:
//!             varint  its words
//!             varint  its bytes of UTF-8
//!   a page:   varint  bytes of its first key, and the key
//!             varint  its bytes
//!             8       its checksum
//! pages, one after another; in each, for each key in the order of bytes:
//!             varint  bytes of the key, and the key
//!             varint  bytes of the postings of this key
//!             for each document that has it:
//!                     varint  the number of documents between it and the one before
//!                     varint  the number of occurrences
//! ```
//! A key is a word in lower case. A word of more than 64 bytes has as key the byte 0xFF, which
//! starts no UTF-8 text, and its SHA-256. A page ends with the key that makes it 4096 bytes or
//! more, so a word costs one read. The same documents make the same bytes.
//!
//! This module must not know file names, scores or budgets.

mod format;
mod read;
mod write;

pub(super) use read::Terms;
pub(super) use write::Collector;
