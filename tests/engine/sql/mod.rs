//! Selectors as SQL: statements answer as the engine does.

mod differential;
mod sqlite;
