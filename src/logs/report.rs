//! Counts of what an import read.
//!
//! Nothing is dropped silently: each record of a log, each message and each part of a message is
//! counted by its kind as understood, kept verbatim or skipped.

use crate::json::{Redacted, shorten};
use crate::support::text::counted;
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

/// What is counted by kind or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Lines(Fate),
    Messages(Fate),
    Parts(Fate),
    Members,
    RecordMembers,
    SkippedMembers,
    Redacted,
}

type OfFate = fn(Fate) -> Counted;

/// Those with a fate, and what they are called.
const BY_FATE: [(&str, OfFate); 3] = [
    ("lines", Counted::Lines),
    ("messages", Counted::Messages),
    ("parts", Counted::Parts),
];

/// The others: what each is called in JSON and in print.
const BY_NAME: [(&str, &str, Counted); 4] = [
    ("members_kept", "members kept as data_*", Counted::Members),
    (
        "record_members_kept",
        "members of records kept in meta",
        Counted::RecordMembers,
    ),
    (
        "record_members_skipped",
        "members of records skipped",
        Counted::SkippedMembers,
    ),
    ("redacted", "redacted", Counted::Redacted),
];

type Names = BTreeMap<String, u64>;

/// Counts by fate and kind. Reports add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    sessions: u64,
    snapshots: u64,
    counts: BTreeMap<Counted, Names>,
    /// How many of the skipped records are of no known kind.
    unknown: u64,
    notes: Vec<String>,
    /// Whether what is read was counted before.
    paused: bool,
}

const MALFORMED: &str = "malformed";

const TORN: &str = "not whole yet";

/// The most kinds or names that one list of the printed report shows.
const SHOWN: usize = 16;

impl ImportReport {
    fn count(&mut self, what: Counted, name: &str, times: u64) {
        if self.paused {
            return;
        }
        let names = self.counts.entry(what).or_default();
        match names.get_mut(name) {
            Some(count) => *count += times,
            None => {
                names.insert(name.to_owned(), times);
            }
        }
    }

    /// Counts nothing while it is paused: a record that is read again was counted the first time.
    pub(crate) fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    fn total(&self, what: Counted) -> u64 {
        let names = self.counts.get(&what);
        names.map_or(0, |names| names.values().sum())
    }

    /// Counts one record of the log: a line of JSON Lines, an element of its list.
    pub(crate) fn line(&mut self, fate: Fate, kind: &str) {
        self.count(Counted::Lines(fate), kind, 1);
    }

    /// Counts a skipped record of no known kind.
    pub(crate) fn unknown_line(&mut self, kind: &str) {
        self.line(Fate::Skipped, kind);
        self.unknown += 1;
    }

    /// Counts a line that is not JSON.
    pub(crate) fn malformed_line(&mut self) {
        self.unknown_line(MALFORMED);
    }

    /// Counts the last line, whose rest is still to be written.
    pub(crate) fn torn_line(&mut self, number: usize) {
        self.line(Fate::Skipped, TORN);
        self.note(format!("line {number} is not whole: it waits for its rest"));
    }

    /// The lines that could not be read: `3 malformed lines and the last line, which is not whole`. `None` if there are none.
    pub(crate) fn unreadable(&self) -> Option<String> {
        let skipped = self.counts.get(&Counted::Lines(Fate::Skipped))?;
        let malformed = skipped.get(MALFORMED);
        let malformed = malformed.map(|count| counted(*count, "malformed line"));
        let torn = skipped.get(TORN);
        let torn = torn.map(|_| "the last line, which is not whole".to_owned());
        let said: Vec<String> = malformed.into_iter().chain(torn).collect();
        (!said.is_empty()).then(|| said.join(" and "))
    }

    /// Counts a member of a record that is kept in `meta`, mostly in `record` there.
    pub(crate) fn count_record_member(&mut self, name: &str) {
        self.count(Counted::RecordMembers, name, 1);
    }

    /// Says something about the whole log.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn message(&mut self, fate: Fate, role: &str) {
        self.count(Counted::Messages(fate), role, 1);
    }

    pub(crate) fn part(&mut self, fate: Fate, kind: &str) {
        self.count(Counted::Parts(fate), kind, 1);
    }

    /// Counts a message member that became a custom field.
    pub(crate) fn member(&mut self, name: &str) {
        self.count(Counted::Members, name, 1);
    }

    /// Counts a member of the record around the messages, which is not imported.
    pub(crate) fn skipped_member(&mut self, name: &str) {
        self.count(Counted::SkippedMembers, name, 1);
    }

    /// Counts what was taken out of the log: for each pattern, also if it was nothing.
    pub(crate) fn redacted(&mut self, counts: &Redacted) {
        for (at, times) in counts.matches.iter().enumerate() {
            self.count(Counted::Redacted, &format!("pattern {}", at + 1), *times);
        }
        if counts.authorizing > 0 {
            self.count(Counted::Redacted, "headers and keys", counts.authorizing);
        }
    }

    pub(crate) fn session(&mut self, snapshots: usize) {
        self.sessions += 1;
        self.snapshots += snapshots as u64;
    }

    /// Adds another report's counts to this one.
    pub fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.snapshots += other.snapshots;
        self.unknown += other.unknown;
        for note in &other.notes {
            self.note(note.clone());
        }
        for (what, names) in &other.counts {
            for (name, times) in names {
                self.count(*what, name, *times);
            }
        }
    }

    /// The number of records of this fate: lines, and elements of a list that are more than a message.
    pub fn lines(&self, fate: Fate) -> u64 {
        self.total(Counted::Lines(fate))
    }

    /// What else there is to say about the log, such as where lists of messages were found.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether less than half of the lines with content were understood: those that are skipped as a known kind have none.
    pub fn is_mostly_unknown(&self) -> bool {
        let (understood, all) = self.understood();
        understood < all - understood
    }

    /// How many of the lines with content were understood, and how many there are. Messages count beside the records
    /// that have them where a record has several.
    pub(crate) fn understood(&self) -> (u64, u64) {
        let lines = self.lines(Fate::Understood);
        let all_lines = lines + self.lines(Fate::Verbatim) + self.unknown;
        let messages = self.messages(Fate::Understood);
        let all_messages = messages + self.messages(Fate::Verbatim);
        if all_messages > all_lines {
            (lines + messages, all_lines + all_messages)
        } else {
            (lines, all_lines)
        }
    }

    /// The number of messages of this fate.
    pub fn messages(&self, fate: Fate) -> u64 {
        self.total(Counted::Messages(fate))
    }

    /// The number of parts of this fate.
    pub fn parts(&self, fate: Fate) -> u64 {
        self.total(Counted::Parts(fate))
    }

    /// The counts as one JSON object, names sorted.
    pub fn to_json(&self) -> Value {
        let of = |what: Counted| json!(self.counts.get(&what).cloned().unwrap_or_default());
        let by_fate = BY_FATE.map(|(name, counted)| {
            let fate = |(fate, words): (Fate, &str)| (words.replace(' ', "_"), of(counted(fate)));
            (name, Fate::ALL.into_iter().map(fate).collect())
        });
        let by_name = BY_NAME.map(|(name, _, what)| (name, of(what)));
        let totals = [
            ("sessions", json!(self.sessions)),
            ("snapshots", json!(self.snapshots)),
            ("notes", json!(self.notes)),
        ];
        totals.into_iter().chain(by_fate).chain(by_name).collect()
    }

    /// Reads what [`Self::to_json`] wrote. Of the skipped records it is not known which are of no known kind.
    pub(crate) fn from_json(json: &Value) -> Option<Self> {
        let notes = json["notes"].as_array()?.iter();
        let mut report = Self {
            sessions: json["sessions"].as_u64()?,
            snapshots: json["snapshots"].as_u64()?,
            notes: notes
                .map(|note| Some(note.as_str()?.to_owned()))
                .collect::<Option<_>>()?,
            ..Self::default()
        };
        let mut count = |what: Counted, names: &Value| {
            for (name, times) in names.as_object()? {
                report.count(what, name, times.as_u64()?);
            }
            Some(())
        };
        for (name, counted) in BY_FATE {
            for (fate, words) in Fate::ALL {
                count(counted(fate), &json[name][words.replace(' ', "_")])?;
            }
        }
        for (name, _, what) in BY_NAME {
            count(what, &json[name])?;
        }
        Some(report)
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

/// Writes `name count, name count` for the first [`SHOWN`] names, then how many more there are.
fn list(f: &mut fmt::Formatter<'_>, counts: &Names) -> fmt::Result {
    for (at, (name, count)) in counts.iter().take(SHOWN).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        write!(f, "{comma}{} {count}", shorten(name).escape_debug())?;
    }
    if counts.len() > SHOWN {
        write!(f, ", {} more", counts.len() - SHOWN)?;
    }
    Ok(())
}

impl fmt::Display for ImportReport {
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
        for (name, counted) in BY_FATE {
            let has = |(fate, _)| self.counts.contains_key(&counted(fate));
            if name == "lines" && !Fate::ALL.into_iter().any(has) {
                continue;
            }
            write!(f, "\n  {name:<9} ")?;
            for (at, (fate, words)) in Fate::ALL.into_iter().enumerate() {
                let comma = if at == 0 { "" } else { ", " };
                write!(f, "{comma}{words} {}", self.total(counted(fate)))?;
                if let Some(names) = self.counts.get(&counted(fate)) {
                    f.write_str(" (")?;
                    list(f, names)?;
                    f.write_str(")")?;
                }
            }
        }
        for (_, words, what) in BY_NAME {
            if let Some(names) = self.counts.get(&what) {
                write!(f, "\n  {words}: ")?;
                list(f, names)?;
            }
        }
        Ok(())
    }
}
