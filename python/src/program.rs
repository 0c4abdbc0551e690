//! The command line.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Write as _;

/// Runs the command line with these arguments, the first of which names the program. Returns the exit code. Once a
/// process: signals are the program's from then on.
#[pyfunction]
#[pyo3(signature = (arguments, /))]
pub(crate) fn run_program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| {
        let exit = pactql::cli::main_with(arguments);
        // It is not done after this: the process ends as Python ends it.
        let _ = std::io::stdout().flush();
        exit as u8
    })
}
