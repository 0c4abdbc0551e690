//! Sizes of the blocks that a selector matches, in groups over many sessions (INSPECT §4).

use super::groups::{By, Counts, Group, Groups, Totals, sort};
use super::lists::Numbered;
use super::part::Part;
use super::tokenizer::Tokenizer;
use super::tokens::size_table;
use crate::engine::Engine;
use crate::history::Session;
use crate::support::diag::Error;
use crate::support::table::Paint;
use crate::support::text::counted;
use serde::{Serialize, Serializer};

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
/// let groups = top.groups();
/// assert_eq!(groups.len(), 1);
/// assert_eq!(groups[0].name.as_deref(), Some("assistant"));
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
    #[serde(serialize_with = "largest_first")]
    groups: Numbered<Option<String>, Group>,
    #[serde(skip)]
    pub(super) counts: Counts,
}

fn largest_first<S: Serializer>(
    groups: &Numbered<Option<String>, Group>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    sorted(&groups.list).serialize(serializer)
}

impl Top {
    /// No session so far. Blocks are grouped by session, if `by` is `None`.
    #[must_use]
    pub fn new(by: Option<By>, tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            by,
            sessions: 0,
            groups: Numbered::default(),
            counts: Counts::new(tokenizer),
        }
    }

    /// The groups, the largest first.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        sorted(&self.groups.list)
    }

    /// The tokenizer that fits the model of a part of a session.
    #[must_use]
    pub fn fitting(engine: &Engine, session: &Session, part: &Part) -> Tokenizer {
        let found = part.snapshots(engine, &session.history());
        let found = found.unwrap_or_default();
        Tokenizer::fitting(found.iter().map(|(_, snapshot)| snapshot), None)
    }

    /// The groups as a table. Every line ends in a line feed.
    #[must_use]
    pub fn text(&self, paint: Paint) -> String {
        let groups = self.groups();
        if groups.is_empty() {
            return format!("no blocks in {}\n", counted(self.sessions, "session"));
        }
        let by = self.by.map_or("session", By::as_str);
        size_table(by, self.tokenizer, &groups, paint)
    }

    /// Adds a part of a session. Groups by turn or block have its name before them, as ids repeat, unless it is empty.
    ///
    /// # Errors
    /// As [`Report::new`](super::Report::new).
    pub fn add(
        &mut self,
        engine: &Engine,
        name: &str,
        session: &Session,
        part: &Part,
    ) -> Result<(), Error> {
        let mut groups = Groups::new(self.by.unwrap_or_default());
        for chosen in part.chosen(engine, &session.history())? {
            for group in groups.add_up(&chosen?, &mut self.counts) {
                let group_name = self.group_name(name, group.name);
                self.count(&group_name, group.totals);
            }
        }
        self.sessions += 1;
        self.counts.next_session();
        Ok(())
    }

    /// Adds what was found in other sessions, by the same group and tokenizer.
    pub fn include(&mut self, other: &Self) {
        for group in &other.groups.list {
            self.count(&group.name, group.totals);
        }
        self.sessions += other.sessions;
    }

    /// The name of a group of a session's blocks among those of all sessions.
    pub(super) fn group_name(&self, session: &str, group: Option<String>) -> Option<String> {
        match (self.by, group) {
            (None, _) => Some(session.to_owned()),
            (Some(By::Turn | By::Block), Some(id)) if !session.is_empty() => {
                Some(format!("{session} {id}"))
            }
            (_, group) => group,
        }
    }

    pub(super) fn count(&mut self, name: &Option<String>, more: Totals) {
        let new = || Group {
            name: name.clone(),
            totals: Totals::default(),
        };
        let number = self.groups.number(name, new) as usize;
        if let Some(sum) = self.groups.list.get_mut(number) {
            sum.totals += more;
        }
    }
}

fn sorted(groups: &[Group]) -> Vec<Group> {
    let mut groups = groups.to_vec();
    sort(&mut groups);
    groups
}
