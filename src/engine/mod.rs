//! The library's interface: an engine takes selectors and returns rows or the diffs of a range.
//!
//! ```text
//! text ──prepare──▶ Prepared ──bind──▶ Prepared ──rows───▶ Selection ──▶ Node
//!        (cached)   (a plan)  (values)           └range──▶ RangeDiff
//! ```
//!
//! [`Engine`] has the edition and the plan cache. [`Prepared`] is a plan with its values,
//! independent of any session. [`Selection`] is rows of immutable snapshots, found when first
//! asked for. This module may use everything below it; it knows no command line.

mod answer;
mod cache;
mod context;
mod empty;
mod explain;
mod facade;
mod fit;
mod lazy;
mod log;
mod node;
mod nodes;
mod nothing;
mod pipeline;
mod place;
mod prepared;
mod searched;
mod selection;
mod statement;
mod times;
mod watch;

pub use answer::Answer;
pub use cache::CacheStats;
#[cfg(feature = "tokio")]
pub use context::AsyncContext;
pub(crate) use context::refused;
#[cfg(feature = "cli")]
pub(crate) use context::short_form;
#[cfg(feature = "store")]
pub(crate) use context::{Beside, CommitKeeper, index_at};
pub use context::{
    Context, ContextBuilder, ContextState, IntoNode, Message, Request, Stream, attempted, sent,
};
pub(crate) use empty::EmptyAnswer;
pub use explain::{
    Analysis, Desugared, Explain, ExplainOptions, NotChosen, Pass, PlanLine, Runs, StepWork,
    StrategyLine,
};
pub use facade::{CheckReport, Engine, EngineBuilder};
pub use fit::Fit;
pub use log::{Log, LogEntry};
pub use node::{Headers, Node};
pub use nodes::{Ids, Nodes};
#[cfg(feature = "store")]
pub(crate) use nothing::NothingFound;
pub use place::{Parent, Spot, Targets};
pub use prepared::Prepared;
#[cfg(feature = "store")]
pub(crate) use searched::indexed;
pub(crate) use searched::searched;
pub use selection::{Selection, SelectionAddress};
pub use watch::Watch;
