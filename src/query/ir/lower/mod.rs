//! Lowering: from the syntax tree of one edition to the normalized form of all.
//!
//! Words are resolved, sugar is expanded, and everything without a meaning is refused, with all
//! mistakes of a selector at once. Constructs that an edition does not have are refused by name
//! (`E_EDITION`). The passes of [`super::normal`] then normalize the draft that results.

mod attrs;
mod body;
mod condition;
mod controls;
mod depths;
mod faults;
mod habits;
mod lowerer;
mod notes;
mod position;
mod selector;
mod step;
mod time;

pub(crate) use habits::{meant_type, other_spelling};
pub use lowerer::{MAX_GROUPS, MAX_STEPS, MAX_VALUES};
pub use selector::Lowered;
pub(super) use selector::{check_pieces, lower, lower_leniently, notes};
