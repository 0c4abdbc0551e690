//! Copies of stores as Parquet files (STORE §2): closed history for archives and for engines that scan.
//!
//! A copy is a directory with a directory for each table. It must not know selectors.
//!
//! | part | files |
//! |---|---|
//! | statements that name them | `views` |
//! | Parquet files, written and read, and what a copy consists of | `file`, `read`, `manifest` |
//! | what has changed since a copy was written | `changes` |
//! | what an export that was killed has left | `sweep` |
//! | a store into a copy, and back | `export`, `import` |

#[cfg(feature = "parquet")]
pub(crate) mod changes;
#[cfg(feature = "parquet")]
pub(crate) mod export;
#[cfg(feature = "parquet")]
pub(crate) mod file;
#[cfg(feature = "parquet")]
pub(crate) mod import;
#[cfg(feature = "parquet")]
pub(crate) mod manifest;
#[cfg(feature = "parquet")]
pub(crate) mod read;
#[cfg(feature = "parquet")]
pub(crate) mod sweep;
pub(crate) mod views;
