//! Counts of what an import read.
//!
//! Nothing is dropped silently: each record of a log, each message and each part of a message is
//! counted by its kind as understood, kept verbatim or skipped.

use crate::json::{Redacted, shorten};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// What an import did with a message or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It became nodes of the tree.
    Understood,
    /// The importer does not know its form; the tree contains its raw JSON.
    Verbatim,
    /// It is not in the tree.
    Skipped,
}

impl Fate {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Understood, "understood"),
        (Self::Verbatim, "kept verbatim"),
        (Self::Skipped, "skipped"),
    ];
}

type Counts = BTreeMap<Fate, BTreeMap<String, u64>>;

/// Counts by fate and kind. Reports add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    sessions: u64,
    snapshots: u64,
    lines: Counts,
    messages: Counts,
    parts: Counts,
    members: BTreeMap<String, u64>,
    record_members: BTreeMap<String, u64>,
    skipped_members: BTreeMap<String, u64>,
    redacted: BTreeMap<String, u64>,
    notes: Vec<String>,
}

/// The most kinds or names that one list of the printed report shows.
const SHOWN: usize = 16;

impl Report {
    /// Counts one record of the log: a line of JSON Lines, an element of its list.
    pub(crate) fn line(&mut self, fate: Fate, kind: &str) {
        count(self.lines.entry(fate).or_default(), kind);
    }

    /// Counts a member of a record that is kept in `meta.record`.
    pub(crate) fn record_member(&mut self, name: &str) {
        count(&mut self.record_members, name);
    }

    /// Says something about the whole log.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Counts one message of a role.
    pub(crate) fn message(&mut self, fate: Fate, role: &str) {
        count(self.messages.entry(fate).or_default(), role);
    }

    /// Counts one part of a message.
    pub(crate) fn part(&mut self, fate: Fate, kind: &str) {
        count(self.parts.entry(fate).or_default(), kind);
    }

    /// Counts a message member that became a custom field.
    pub(crate) fn member(&mut self, name: &str) {
        count(&mut self.members, name);
    }

    /// Counts a member of the record around the messages, which is not imported.
    pub(crate) fn skipped_member(&mut self, name: &str) {
        count(&mut self.skipped_members, name);
    }

    /// Counts what was taken out of the log: for each pattern, also if it was nothing.
    pub(crate) fn redacted(&mut self, counts: &Redacted) {
        let names = (1..).map(|number: usize| format!("pattern {number}"));
        let matches = names.zip(counts.matches.iter().copied());
        let authorizing = ("headers and keys".to_owned(), counts.authorizing);
        for (what, times) in matches.chain(Some(authorizing).filter(|(_, times)| *times > 0)) {
            *self.redacted.entry(what).or_default() += times;
        }
    }

    /// Counts one session and its snapshots.
    pub(crate) fn session(&mut self, snapshots: usize) {
        self.sessions += 1;
        self.snapshots += snapshots as u64;
    }

    /// Adds another report's counts to this one.
    pub fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.snapshots += other.snapshots;
        for note in &other.notes {
            self.note(note.clone());
        }
        for (mine, theirs) in [
            (&mut self.lines, &other.lines),
            (&mut self.messages, &other.messages),
            (&mut self.parts, &other.parts),
        ] {
            for (fate, counts) in theirs {
                add(mine.entry(*fate).or_default(), counts);
            }
        }
        add(&mut self.members, &other.members);
        add(&mut self.record_members, &other.record_members);
        add(&mut self.skipped_members, &other.skipped_members);
        add(&mut self.redacted, &other.redacted);
    }

    /// The number of records of this fate, besides single messages.
    pub fn lines(&self, fate: Fate) -> u64 {
        total(&self.lines, fate)
    }

    /// What else there is to say about the log, such as where lists of messages were found.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether less than half of the records and messages were understood.
    pub fn is_mostly_unknown(&self) -> bool {
        let of = |fate| self.lines(fate) + self.messages(fate);
        let understood = of(Fate::Understood);
        understood < of(Fate::Verbatim) + of(Fate::Skipped)
    }

    /// The number of messages of this fate.
    pub fn messages(&self, fate: Fate) -> u64 {
        total(&self.messages, fate)
    }

    /// The number of parts of this fate.
    pub fn parts(&self, fate: Fate) -> u64 {
        total(&self.parts, fate)
    }

    /// The counts as one JSON object, names sorted.
    pub fn to_json(&self) -> Value {
        let fates = |counts: &Counts| -> Value {
            let fate = |(fate, words): (Fate, &str)| {
                let kinds = counts.get(&fate).cloned().unwrap_or_default();
                (words.replace(' ', "_"), json!(kinds))
            };
            Fate::ALL.into_iter().map(fate).collect()
        };
        json!({
            "sessions": self.sessions,
            "snapshots": self.snapshots,
            "lines": fates(&self.lines),
            "messages": fates(&self.messages),
            "parts": fates(&self.parts),
            "members_kept": self.members,
            "record_members_kept": self.record_members,
            "record_members_skipped": self.skipped_members,
            "redacted": self.redacted,
            "notes": self.notes,
        })
    }

    /// The number of sessions.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// The number of committed snapshots.
    pub fn snapshots(&self) -> u64 {
        self.snapshots
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count += 1;
    } else {
        counts.insert(name.to_owned(), 1);
    }
}

fn add(mine: &mut BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) {
    for (name, count) in theirs {
        *mine.entry(name.clone()).or_default() += count;
    }
}

fn total(counts: &Counts, fate: Fate) -> u64 {
    counts.get(&fate).map_or(0, |counts| counts.values().sum())
}

/// Writes `name count, name count` for the first [`SHOWN`] names, then how many more there are.
fn list(f: &mut fmt::Formatter<'_>, counts: &BTreeMap<String, u64>) -> fmt::Result {
    for (at, (name, count)) in counts.iter().take(SHOWN).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        write!(f, "{comma}{} {count}", shorten(name).escape_debug())?;
    }
    if counts.len() > SHOWN {
        write!(f, ", {} more", counts.len() - SHOWN)?;
    }
    Ok(())
}

impl fmt::Display for Report {
    /// Lines for totals, messages and parts, then for members kept and skipped if there are any.
    /// No line feed at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        write!(
            f,
            "imported {} session{}, {} snapshot{}",
            self.sessions,
            plural(self.sessions),
            self.snapshots,
            plural(self.snapshots)
        )?;
        for note in &self.notes {
            write!(f, "\n  {}", note.escape_debug())?;
        }
        for (name, counts) in [
            ("lines", &self.lines),
            ("messages", &self.messages),
            ("parts", &self.parts),
        ] {
            if name == "lines" && counts.is_empty() {
                continue;
            }
            write!(f, "\n  {name:<9} ")?;
            for (at, (fate, words)) in Fate::ALL.into_iter().enumerate() {
                let comma = if at == 0 { "" } else { ", " };
                write!(f, "{comma}{words} {}", total(counts, fate))?;
                if let Some(counts) = counts.get(&fate) {
                    f.write_str(" (")?;
                    list(f, counts)?;
                    f.write_str(")")?;
                }
            }
        }
        for (words, counts) in [
            ("members kept as data_*", &self.members),
            (
                "members of records kept in meta.record",
                &self.record_members,
            ),
            ("members of records skipped", &self.skipped_members),
            ("redacted", &self.redacted),
        ] {
            if !counts.is_empty() {
                write!(f, "\n  {words}: ")?;
                list(f, counts)?;
            }
        }
        Ok(())
    }
}
