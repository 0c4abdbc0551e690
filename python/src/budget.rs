//! Choosing documents that fit a number of tokens, and counting tokens.

use crate::errors::OrRaise;
use crate::forks;
use crate::json;
use crate::values::by_name;
use pactql::budget::{self, BuildOptions, Cache, Query};
use pactql::inspect::Tokenizer;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::SystemTime;

/// The documents of a cache that fit a number of tokens, best first: what `pactql context resolve` prints.
#[pyfunction]
#[pyo3(signature = (cache, query, budget, /))]
pub(crate) fn resolve<'py>(
    py: Python<'py>,
    cache: PathBuf,
    query: &str,
    budget: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let query = Query::new(query);
    let resolution = forks::shared(py, || Cache::open(cache)?.resolve(&query, budget));
    json::report(py, &resolution.or_raise(py)?)
}

/// Makes a cache of the `.md` files below a directory, as `pactql context build` does. Returns its manifest.
#[pyfunction]
#[pyo3(signature = (sources, cache, /, *, force = false))]
pub(crate) fn build_cache<'py>(
    py: Python<'py>,
    sources: PathBuf,
    cache: PathBuf,
    force: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let options = BuildOptions {
        force,
        created_at: SystemTime::now(),
    };
    let manifest = forks::shared(py, || budget::build(&sources, &cache, options));
    json::report(py, &manifest.or_raise(py)?)
}

/// How many tokens a text has: `o200k`, `cl100k`, or the estimate `bytes/4`.
///
/// >>> pactql.count_tokens("Where is my refund?")
/// 5
#[pyfunction]
#[pyo3(signature = (text, /, tokenizer = "o200k"))]
pub(crate) fn count_tokens(py: Python<'_>, text: &str, tokenizer: &str) -> PyResult<u64> {
    let tokenizer = by_name("tokenizer", tokenizer, Tokenizer::ALL, Tokenizer::name)?;
    Ok(py.detach(|| tokenizer.count(text)))
}
