//! Inspection: what a model saw, what it cost, and what changed, as reports (INSPECT §3, §4).
//!
//! Each report has a type of its own. The trait [`Report`] makes it from [`ReportOptions`] and writes it as text
//! and as JSON. Tokens are counted by content, so a text that many snapshots share is counted once.
//!
//! This module knows sessions, selectors through the engine, and requests through `render`. It must
//! not know the command line or where sessions come from, and it prints nothing.
//!
//! | part | files |
//! |---|---|
//! | what a report is about | `part`, `call`, `happened`, `sent`, `search`, `condition` |
//! | what reports have in common | `report`, `lists` |
//! | counting | `tokenizer`, `vocabulary`, `groups`, `prices` |
//! | reports | `across`, `assert`, `fields`, `grep`, `prefix`, `runs`, `show`, `steps`, `tokens`, `usage`, `waste`, `without` |
//! | a session to give away | `share` |

mod across;
mod assert;
mod call;
mod condition;
mod fields;
mod grep;
mod groups;
mod happened;
mod lists;
mod part;
mod prefix;
mod prices;
mod report;
mod runs;
mod search;
mod sent;
pub mod share;
mod show;
mod steps;
#[cfg(feature = "cli")]
mod stored;
mod tokenizer;
mod tokens;
mod top;
mod usage;
#[cfg(feature = "tokens")]
mod vocabulary;
mod waste;
mod without;

pub use crate::support::table::Paint;
pub use across::{Across, ChangedPair, Lone, Pair, PairedBy, ParameterChange, across, parameters};
pub use assert::{AssertReport, Checked, Failed};
pub(crate) use call::time_of;
pub use call::{Call, EarlierCall, came_in_as, provider_of};
pub use condition::{Comparison, Condition, Measure, PlacedSelector, Sign};
pub(crate) use condition::{in_conditions, is_condition};
pub use fields::{Field, FieldValue, Fields, FieldsReport};
pub use grep::{FoundBlock, GrepReport};
pub use groups::{By, Counts, Group, Totals};
pub use happened::StepEvent;
pub use part::{Part, Region};
pub use prefix::{
    Cause, Difference, MissCause, Missed, Place, PrefixReport, PrefixStep, PrefixTotals, form_of,
};
pub use prices::{Money, Price, PriceError, Prices};
pub use report::{Report, ReportOptions};
pub use runs::{Divergence, Meeting, Parted, Parting, Run, RunEnd};
pub use search::{FoundLine, Search};
pub use show::{News, ShowReport, Shown, ShownBlock};
pub use steps::{Step, StepReport};
pub use tokenizer::{Tokenizer, UnknownTokenizer};
pub use tokens::{Cost, SnapshotTokens, TokenReport};
pub use top::Top;
pub use usage::{CountedHere, Usage, UsageBy, UsageGroup, Used};
pub use waste::{Duplicate, DuplicateReport, SnapshotDuplicates, UnusedReport, UnusedTool};
pub use without::WithoutReport;
