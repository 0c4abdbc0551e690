//! The strategies: the ways to run a plan over a snapshot.

use crate::support::macros::names;

names! {
    /// How a plan runs, the cheapest way first. Ways that do not fit the plan, the snapshot or what is
    /// wanted are passed over.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Strategy: name {
        /// Adds up the lengths of posting lists.
        Count = "count",
        /// Looks up ids and reads at most their units.
        ById = "by id",
        /// Runs each group over windows of one machine word.
        Word = "word",
        /// Runs over chunks of whole units: until enough rows are found, or those that changed.
        Chunks = "chunks",
        /// Runs each chain over its windows.
        Windows = "windows",
    }
}

impl Strategy {
    pub fn summary(self) -> &'static str {
        match self {
            Self::Count => "adds up the lengths of posting lists",
            Self::ById => "looks up the id and reads at most its turn",
            Self::Word => "one machine word for each 64 rows, whole turns at a time",
            Self::Chunks => "reads chunks of whole turns, only those needed",
            Self::Windows => "bit sets over the rows that can match",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunGoal {
    Rows,
    Matches,
    Count,
    /// Rows from the first on, until the caller stops.
    First,
    /// The rows in which snapshots differ.
    Changes,
}

/// A cheaper strategy that does not fit. See the example of [`Explain`](crate::explain::Explain).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct NotChosen {
    /// The strategy.
    pub name: &'static str,
    /// Why it does not fit.
    pub reason: &'static str,
}
