//! Inspection: what a model saw, what it cost, and what changed, as reports (INSPECT §3, §4).
//!
//! Each report is a function of the library with a type of its own, which can be written as JSON.
//! The command line turns the types into text. Tokens are counted by content, so a text that many
//! snapshots share is counted once.
//!
//! This module knows sessions, selectors through the engine, and requests through `render`. It must
//! not know the command line, terminals or where sessions come from, and it prints nothing.
//!
//! | part | files |
//! |---|---|
//! | what a report is about | `part`, `call` |
//! | counting | `tokenizer`, `vocabulary`, `counts`, `groups`, `prices` |
//! | reports | `across`, `duplicates`, `grep`, `prefix`, `show`, `steps`, `tokens`, `top`, `unused` |
//! | a session to give away | `share` |

mod across;
mod assert;
mod call;
mod counts;
mod duplicates;
mod grep;
mod groups;
mod part;
mod prefix;
mod prices;
pub mod share;
mod show;
mod steps;
mod tokenizer;
mod tokens;
mod top;
mod unused;
#[cfg(feature = "tokens")]
mod vocabulary;

pub use across::{Across, ChangedPair, Lone, Pair, PairedBy, ParameterChange, across, parameters};
pub use assert::{Checked, Condition, Failed, check};
pub use call::{Call, provider_of};
pub use counts::{Counts, Totals};
pub use duplicates::{Duplicate, Duplicates, SnapshotDuplicates, duplicates};
pub use grep::{Found, FoundBlock, FoundLine, Search, grep};
pub use groups::{By, Group, UnknownGroup};
pub use part::{Part, Region};
pub use prefix::{
    Cause, Difference, Place, PrefixOptions, PrefixStep, Prefixes, form_of, prefixes,
};
pub use prices::{Money, Price, PriceError, Prices};
pub use show::{News, ShowOptions, Shown, ShownBlock, show};
pub use steps::{Step, StepEvent, Steps, steps};
pub use tokenizer::{Tokenizer, UnknownTokenizer};
pub use tokens::{Cost, SnapshotTokens, TokenOptions, TokenReport, tokens};
pub use top::Top;
pub use unused::{Unused, UnusedTool, unused};
