//! The hook that shows a query after each pass.

use super::query::Query;

/// Called with the query after lowering (`"lower"`) and after each normalization pass, by name.
pub type Observer<'a> = &'a mut dyn FnMut(&'static str, &Query);
