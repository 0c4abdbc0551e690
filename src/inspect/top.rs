//! What a selector matches, in groups over snapshots and sessions (INSPECT §4).

use super::counts::{Counts, Totals};
use super::groups::{By, Group, Groups, sort};
use super::part::Part;
use super::tokenizer::Tokenizer;
use super::tokens::size_table;
use crate::engine::Engine;
use crate::history::Session;
use crate::support::diag::Error;
use crate::support::table::Paint;
use crate::support::text::counted;
use serde::Serialize;

/// Sizes of blocks in groups over any number of sessions.
///
/// Over a range, a block counts in each snapshot that has it: the sums are what was sent in all requests.
///
/// ```
/// use pactql::inspect::{By, Part, Tokenizer, Top};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let mut top = Top::new(Some(By::Role), Tokenizer::Bytes4);
/// top.add(&Engine::new(), "support", &session, &Part::default().only(".cb[kind='call']"))?;
/// assert_eq!(top.groups.len(), 1);
/// assert_eq!(top.groups[0].name.as_deref(), Some("assistant"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Top {
    /// How tokens were counted.
    pub tokenizer: Tokenizer,
    /// What blocks are grouped by; by session, if `None`.
    pub by: Option<By>,
    /// How many sessions were added.
    pub sessions: u64,
    /// The groups, the largest first.
    pub groups: Vec<Group>,
    #[serde(skip)]
    counts: Counts,
}

impl Top {
    /// No session so far. Blocks are grouped by session, if `by` is `None`.
    #[must_use]
    pub fn new(by: Option<By>, tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            by,
            sessions: 0,
            groups: Vec::new(),
            counts: Counts::new(tokenizer),
        }
    }

    /// The tokenizer that fits the model of a part of a session.
    #[must_use]
    pub fn fitting(engine: &Engine, session: &Session, part: &Part) -> Tokenizer {
        let found = part.snapshots(engine, &session.history());
        let found = found.unwrap_or_default();
        Tokenizer::fitting(found.iter().map(|(_, snapshot)| snapshot))
    }

    /// The groups as a table. Every line ends in a line feed.
    #[must_use]
    pub fn text(&self, paint: Paint) -> String {
        if self.groups.is_empty() {
            return format!("no blocks in {}\n", counted(self.sessions, "session"));
        }
        let by = self.by.map_or("session", By::name);
        size_table(by, self.tokenizer, &self.groups).text(paint)
    }

    /// Adds a part of a session. Groups by turn have its name before them, as ids repeat.
    ///
    /// # Errors
    /// As [`Report::of`](super::Report::of).
    pub fn add(
        &mut self,
        engine: &Engine,
        name: &str,
        session: &Session,
        part: &Part,
    ) -> Result<(), Error> {
        let mut groups = Groups::new(self.by.unwrap_or_default());
        let mut sums: Vec<Group> = Vec::new();
        for chosen in part.chosen(engine, &session.history())? {
            merge(&mut sums, groups.add_up(&chosen, &mut self.counts));
        }
        match self.by {
            None => {
                let totals: Totals = sums.iter().map(|group| group.totals).sum();
                if totals.blocks > 0 {
                    let name = Some(name.to_owned());
                    self.groups.push(Group { name, totals });
                }
            }
            Some(By::Turn) => {
                let named = sums.into_iter().map(|group| Group {
                    name: group.name.map(|turn| format!("{name} {turn}")),
                    ..group
                });
                self.groups.extend(named);
            }
            Some(_) => merge(&mut self.groups, sums),
        }
        self.sessions += 1;
        sort(&mut self.groups);
        Ok(())
    }
}

/// Adds groups to those of the same names.
fn merge(groups: &mut Vec<Group>, more: Vec<Group>) {
    let mut places: hashbrown::HashMap<Option<String>, usize> = groups
        .iter()
        .enumerate()
        .map(|(at, group)| (group.name.clone(), at))
        .collect();
    for group in more {
        match places.get(&group.name).and_then(|at| groups.get_mut(*at)) {
            Some(known) => known.totals += group.totals,
            None => {
                places.insert(group.name.clone(), groups.len());
                groups.push(group);
            }
        }
    }
}
