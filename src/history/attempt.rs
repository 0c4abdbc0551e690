//! Provider calls of a session and what each was sent (source 002 chapter 03 §6, RUNTIME §3).
//!
//! Attempts are beside the snapshots, not in them. What was sent is a list of records, and each attempt
//! keeps those in which it differs from the attempt before. This file does not know what a record is.

use std::sync::Arc;

use super::list::SharedList;
use crate::support::macros::names;
use serde::{Deserialize, Serialize};

names! {
    /// How a provider call ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[non_exhaustive]
    pub enum AttemptStatus: as_str {
        /// It has not ended.
        Running = "running",
        /// The reply came.
        Completed = "completed",
        /// It was stopped.
        Canceled = "canceled",
        /// It failed.
        Error = "error",
    }
}

/// A provider call (source 002 chapter 03 §6.2). Never part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attempt {
    /// Its id: `a<cycle>-<number>`, numbers from 1.
    pub attempt_id: String,
    /// The cycle it was made in.
    pub cycle_id: i64,
    /// How it ended.
    pub status: AttemptStatus,
    /// When it began, as RFC 3339.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The form of the request: `openai`, `anthropic`, ….
    pub provider: String,
    /// The parameter `model`, if there is one.
    pub model: Option<String>,
    /// SHA-256 of the canonical parameters, in lower-case hex digits; of `{}` if there are none.
    pub params: String,
    /// Tokens sent, as the provider counted them.
    pub token_in: Option<u64>,
    /// Tokens received.
    pub token_out: Option<u64>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

impl Attempt {
    /// Whether it is completed, and the provider's counts may still come.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.status == AttemptStatus::Completed && self.token_in.or(self.token_out).is_none()
    }
}

/// What an attempt was sent, as a difference to the attempt before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// How many records it begins with that the one before begins with.
    head: usize,
    own: Vec<Arc<str>>,
    /// How many records it ends with that the one before ends with.
    tail: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptEntry {
    #[serde(flatten)]
    pub(crate) attempt: Attempt,
    pub(crate) sent: Sent,
}

/// The attempts of a session at one moment, newest first. Immutable; cheap to clone.
///
/// ```
/// use pactql::{Context, Message, Provider, history::AttemptStatus};
/// let mut context = Context::new();
/// context.append(Message::user("Hello"))?;
/// context.render(Provider::OpenAi)?;
/// context.cancel_attempt()?; // the user pressed stop
/// context.render(Provider::OpenAi)?;
/// context.reply(Message::assistant("Hi!"))?;
/// let statuses: Vec<_> = context.attempts().iter().map(|attempt| attempt.status).collect();
/// assert_eq!(statuses, [AttemptStatus::Completed, AttemptStatus::Canceled]);
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attempts(SharedList<Arc<AttemptEntry>>);

/// The part of what a writer keeps that a reader needs.
#[derive(Deserialize)]
struct KeptAttempts {
    #[serde(default)]
    attempts: Vec<AttemptEntry>,
}

impl Attempts {
    pub(crate) fn read(json: &str) -> Result<Self, serde_json::Error> {
        let beside: KeptAttempts = serde_json::from_str(json)?;
        Ok(Self::from_entries(beside.attempts))
    }

    /// Oldest first.
    pub(crate) fn from_entries(entries: impl IntoIterator<Item = AttemptEntry>) -> Self {
        let entries = entries.into_iter().map(Arc::new);
        Self(SharedList::default().with_end(0, entries))
    }

    /// Number of attempts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The attempts, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Attempt> {
        self.entries().map(|entry| &entry.attempt)
    }

    /// The attempts of a cycle, newest first. Logarithmic in all attempts, as cycles ascend.
    pub fn of_cycle(&self, cycle: i64) -> impl Iterator<Item = &Attempt> {
        let entries = self.up_from(self.before(cycle.saturating_add(1)));
        let attempts = entries.map(|entry| &entry.attempt);
        attempts.take_while(move |attempt| attempt.cycle_id == cycle)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &AttemptEntry> {
        self.up_from(self.len())
    }

    fn up_from(&self, count: usize) -> impl Iterator<Item = &AttemptEntry> {
        let entries = (0..count).rev();
        entries.filter_map(|at| self.0.get(at).map(|entry| &**entry))
    }

    /// With one more, which was sent `records`. Linear in the records of both.
    pub(crate) fn begun(&self, attempt: Attempt, records: Vec<Arc<str>>) -> Self {
        let before = self.sent(self.len());
        let shared = before.len().min(records.len());
        let pairs = before.iter().zip(&records);
        let head = pairs.take_while(|(a, b)| a == b).count();
        let pairs = before.iter().rev().zip(records.iter().rev());
        let pairs = pairs.take(shared - head);
        let tail = pairs.take_while(|(a, b)| a == b).count();
        let own = records[head..records.len() - tail].to_vec();
        self.with(AttemptEntry {
            attempt,
            sent: Sent { head, own, tail },
        })
    }

    pub(crate) fn with(&self, entry: AttemptEntry) -> Self {
        Self(self.0.with_end(self.len(), [Arc::new(entry)]))
    }

    pub(crate) fn changed(&self, change: impl FnOnce(&mut Attempt)) -> Self {
        let Some(newest) = self.entries().next() else {
            return self.clone();
        };
        let mut entry = newest.clone();
        change(&mut entry.attempt);
        Self(self.0.with_end(self.len() - 1, [Arc::new(entry)]))
    }

    /// How many attempts are of earlier cycles. Logarithmic.
    fn before(&self, cycle: i64) -> usize {
        let is_earlier = |at: usize| {
            self.0
                .get(at)
                .is_some_and(|entry| entry.attempt.cycle_id < cycle)
        };
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_earlier(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(crate) fn up_to(&self, cycle: i64) -> Self {
        let kept = self.before(cycle.saturating_add(1));
        Self(self.0.with_end(kept, []))
    }

    /// The entries after the first `count`, oldest first.
    #[cfg(feature = "store")]
    pub(crate) fn after(&self, count: usize) -> impl Iterator<Item = &AttemptEntry> {
        (count..self.len()).filter_map(|at| self.0.get(at).map(|entry| &**entry))
    }

    /// Those from a cycle on; the first one keeps all that it was sent.
    #[cfg(feature = "store")]
    pub(crate) fn since(&self, cycle: i64) -> Self {
        let first = self.before(cycle);
        let mut entries: Vec<AttemptEntry> = self.after(first).cloned().collect();
        if let Some(entry) = entries.first_mut() {
            entry.sent = Sent {
                own: self.sent(first + 1),
                ..Sent::default()
            };
        }
        Self::from_entries(entries)
    }

    /// The records that the request of a cycle had: of its newest completed attempt, or else of its
    /// newest. Linear in the attempts back to the last one that shares nothing with the one before.
    pub(crate) fn sent_in(&self, cycle: i64) -> Option<Vec<Arc<str>>> {
        let of_cycle = |attempt: &Attempt| attempt.cycle_id == cycle;
        let is_completed = |attempt: &Attempt| attempt.status == AttemptStatus::Completed;
        let completed = self.iter().position(|it| of_cycle(it) && is_completed(it));
        let found = completed.or_else(|| self.iter().position(of_cycle))?;
        Some(self.sent(self.len() - found))
    }

    /// The records that one attempt was sent. Linear as [`Attempts::sent_in`].
    pub(crate) fn sent_to(&self, attempt: &str) -> Option<Vec<Arc<str>>> {
        let found = self.iter().position(|it| it.attempt_id == attempt)?;
        Some(self.sent(self.len() - found))
    }

    /// What the last of the first `count` attempts was sent.
    fn sent(&self, count: usize) -> Vec<Arc<str>> {
        let mut chain = Vec::new();
        for AttemptEntry { sent, .. } in self.up_from(count) {
            chain.push(sent);
            if sent.head + sent.tail == 0 {
                break;
            }
        }
        let mut records: Vec<Arc<str>> = Vec::new();
        for sent in chain.into_iter().rev() {
            let kept = records.len().saturating_sub(sent.tail);
            let kept = kept.max(sent.head).min(records.len());
            let tail = records.split_off(kept);
            records.truncate(sent.head);
            records.extend(sent.own.iter().cloned());
            records.extend(tail);
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::{Attempt, AttemptStatus, Attempts};
    use std::sync::Arc;

    fn attempt(cycle: i64) -> Attempt {
        Attempt {
            attempt_id: format!("a{cycle}-1"),
            cycle_id: cycle,
            status: AttemptStatus::Completed,
            started_at: String::new(),
            ended_at: None,
            provider: String::new(),
            model: None,
            params: String::new(),
            token_in: None,
            token_out: None,
            error: None,
        }
    }

    #[test]
    fn what_was_sent_comes_back() {
        let requests = [
            "s a T",
            "s a b c T",
            "s a b c T",
            "s b c T",
            "",
            "x",
            "x x",
            "x",
            "s x T",
            "T s",
            "T T T",
            "T T",
        ];
        let records =
            |text: &str| -> Vec<Arc<str>> { text.split_whitespace().map(Arc::from).collect() };
        let mut attempts = Attempts::default();
        for (cycle, text) in (0..).zip(requests) {
            attempts = attempts.begun(attempt(cycle), records(text));
        }
        for (cycle, text) in (0..).zip(requests) {
            assert_eq!(attempts.sent_in(cycle), Some(records(text)), "{text}");
        }
        assert_eq!(attempts.up_to(3).len(), 4);
        let own: usize = attempts.entries().map(|entry| entry.sent.own.len()).sum();
        assert!(own < 20, "{own} records are kept");
    }
}
