//! Copies of stores as Parquet files (STORE §2): closed history for archives and for engines that scan.
//!
//! A copy is a directory with a directory for each table. It must not know selectors.
//!
//! | part | files |
//! |---|---|
//! | Parquet files, written and read, and what a copy consists of | `file`, `read`, `manifest` |
//! | what has changed since a copy was written, a store into a copy, and back | `export`, `import` |

pub(crate) mod export;
pub(crate) mod file;
pub(crate) mod import;
pub(crate) mod manifest;
pub(crate) mod read;

pub use self::export::{ParquetExport, ParquetExported};
pub use self::import::ParquetImported;
