//! The write side of a session: mutations of the working state, and the commit that makes a snapshot
//! of it (RUNTIME §3).
//!
//! Nodes are named by id: this module knows trees and the index, and neither selectors nor files nor
//! providers. The engine resolves selectors to ids and calls it.
//!
//! | part | files |
//! |---|---|
//! | nodes as given and checked | `node`, `header` |
//! | the working state: a snapshot under changes | `overlay`, `growing`, `state` |
//! | mutations | `workspace`, `slot`, `mutate`, `relocate`, `list`, `stream`, `refusal` |
//! | commits | `commit`, `delta`, `policy`, `prune` |
//! | times and references | `clock`, `pin` |
//! | beginning, and going on later | `first`, `adopt`, `memory`, `done` |

mod adopt;
mod clock;
mod commit;
mod delta;
mod done;
mod first;
mod growing;
mod header;
mod list;
mod memory;
mod mutate;
mod node;
mod overlay;
mod pin;
mod policy;
mod prune;
mod refusal;
mod relocate;
mod slot;
mod state;
mod stream;
mod word;
mod workspace;

pub use clock::{Clock, StepClock, SystemClock};
pub use commit::Commit;
pub(crate) use commit::{PreparedCommit, strings};
#[cfg(feature = "store")]
pub(crate) use done::DoneAnswer;
#[cfg(feature = "view")]
pub(crate) use done::DoneRequest;
pub(crate) use memory::Memory;
pub use node::NewNode;
pub(crate) use node::problem_text;
pub use pin::Reference;
pub use policy::{Limit, Measure, Policy, Scope};
pub(crate) use refusal::Refusal;
pub(crate) use slot::{Destination, Insertion};
pub(crate) use word::word;
pub(crate) use workspace::Workspace;
