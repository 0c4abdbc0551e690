//! Positions in sequences, as Python counts them: from the end if they are negative, and of any size.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PySlice;

/// A position in a sequence; one that no sequence has is as far as a number goes.
#[derive(Clone, Copy)]
pub(crate) struct Position(pub(crate) isize);

impl<'py> FromPyObject<'_, 'py> for Position {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.extract::<isize>() {
            Ok(at) => Ok(Self(at)),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                let whole = value.call_method0("__index__")?;
                Ok(Self(if whole.lt(0)? { isize::MIN } else { isize::MAX }))
            }
            Err(error) => Err(error),
        }
    }
}

impl Position {
    /// The position that `what` is indexed by.
    ///
    /// # Errors
    /// No integer.
    pub(crate) fn of(what: &str, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = index.get_type().name()?;
        index.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyTypeError>(index.py()) {
                PyTypeError::new_err(format!(
                    "{what} is indexed by integers and slices, and not by {class}"
                ))
            } else {
                error
            }
        })
    }

    /// The position from the front, if a sequence of this length has it.
    pub(crate) fn within(self, length: usize) -> Option<usize> {
        let is_before = self.0 < 0 && self.0.unsigned_abs() > length;
        let at = self.front(length);
        (!is_before && at < length).then_some(at)
    }

    /// The position from the front, at least 0.
    pub(crate) fn front(self, length: usize) -> usize {
        match usize::try_from(self.0) {
            Ok(at) => at,
            Err(_) => length.saturating_sub(self.0.unsigned_abs()),
        }
    }
}

/// The positions of a slice in a sequence of this length, in its order.
///
/// # Errors
/// Bounds that are no integers; a step of 0.
pub(crate) fn positions(
    slice: &Bound<'_, PySlice>,
    length: usize,
) -> PyResult<impl Iterator<Item = usize> + use<>> {
    let found = slice.indices(length.cast_signed())?;
    let positions =
        (0..found.slicelength).map(move |at| found.start + at.cast_signed() * found.step);
    Ok(positions.filter_map(|at| usize::try_from(at).ok()))
}
