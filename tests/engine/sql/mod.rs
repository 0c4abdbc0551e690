//! Selectors as SQL: statements answer as the engine does.

mod differential;
mod examples;
#[cfg(feature = "parquet")]
mod fleet;
mod injection;
mod refused;
mod sqlite;
