//! Selectors as SQL: statements answer as the engine does.

mod differential;
mod examples;
mod fixed;
#[cfg(feature = "parquet")]
mod fleet;
mod grouped;
mod injection;
mod nul;
#[cfg(feature = "parquet")]
mod plans;
mod questions;
mod refused;
mod sized;
mod sqlite;
