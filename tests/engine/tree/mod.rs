//! Documents: reading, canonical bytes and order, sessions as files, export.

mod canonical;
mod export;
mod read;
mod session;
