//! Copies of stores as Parquet files (STORE §2): closed history for archives and for engines that scan.
//!
//! | part | files |
//! |---|---|
//! | which files and columns there are | `layout` |
//! | statements that name them | `views` |

mod layout;
mod views;

pub use views::{ParquetEngine, parquet_views};
