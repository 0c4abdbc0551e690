//! Selectors as the engine compiles them: a refused one comes with its correction.

use pactql::Error;
use pactql::internals::advice::correct;
use pactql::internals::ir::{self, Edition, Lowered, Purpose};

/// Compiles a selector.
pub(crate) fn compile(text: &str, edition: Edition) -> Result<Lowered, Error> {
    compile_for(text, edition, Purpose::Select)
}

/// Compiles the place of a mutation.
pub(crate) fn compile_place(text: &str, edition: Edition) -> Result<Lowered, Error> {
    compile_for(text, edition, Purpose::Place)
}

fn compile_for(text: &str, edition: Edition, purpose: Purpose) -> Result<Lowered, Error> {
    ir::compile_for(text, edition, purpose).map_err(|refused| correct(refused, edition, purpose))
}
