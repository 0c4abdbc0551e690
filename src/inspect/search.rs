//! A pattern, and the lines of a text that match it (INSPECT §4).

#[cfg(feature = "store")]
use crate::query::ir::Required;
use crate::query::ir::{Pattern, Patterns};
#[cfg(feature = "store")]
use crate::store::Store;
use crate::support::diag::{Code, Diagnostic, Error};
use serde::Serialize;
use std::ops::Range;

/// The most ranges that are kept of a line.
const RANGES: usize = 1_000;

/// A pattern to search for. See [`GrepReport`](super::GrepReport).
#[derive(Clone, Debug)]
pub struct Search {
    pattern: Pattern,
    /// What a text with a match contains, if that is known.
    #[cfg(feature = "store")]
    required: Option<Required>,
    before: usize,
    after: usize,
    is_inverted: bool,
}

impl Search {
    /// Compiles a regular expression, in the dialect of selectors (`~`), whose size is limited. It is
    /// searched for in one line at a time.
    ///
    /// # Errors
    /// It is not a regular expression, or too large.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Self, Error> {
        let whole = if ignore_case {
            format!("(?i:{pattern})")
        } else {
            pattern.to_owned()
        };
        // Alone first, so that a message is about what was written.
        let compiled = Patterns::new().compile(pattern);
        let compiled = compiled.and_then(|_| Patterns::new().compile(&whole));
        let pattern = compiled.map_err(|error| {
            let code = if error.is_limit() {
                Code::Limit
            } else {
                Code::SelectorInvalid
            };
            let mistake = Diagnostic::error(code, error.to_string()).at(0..pattern.len(), "");
            Error::new(pattern, mistake.with_help(error.help()))
        })?;
        Ok(Self {
            pattern,
            #[cfg(feature = "store")]
            required: Required::from_pattern(&whole),
            before: 0,
            after: 0,
            is_inverted: false,
        })
    }

    /// Keeps this many lines before and after each line that matches.
    #[must_use]
    pub fn context(self, lines: usize) -> Self {
        self.around(lines, lines)
    }

    /// Keeps `before` lines before each line that matches, and `after` lines after it.
    #[must_use]
    pub fn around(mut self, before: usize, after: usize) -> Self {
        (self.before, self.after) = (before, after);
        self
    }

    /// Finds the lines without a match. Each has one empty range.
    #[must_use]
    pub fn inverted(mut self, inverted: bool) -> Self {
        self.is_inverted = inverted;
        self
    }

    /// The names of the sessions of a store that may have a match in one of their snapshots, in byte order,
    /// among those whose name matches `glob`; an empty one matches all. No other session has one. They are found by
    /// the text index ([`Store::index_text`]), else by reading all texts in the database. `None` if the pattern has no
    /// three characters in a row that each match has, or, without an index, no such word: then every session may have one.
    ///
    /// # Errors
    /// Those of the database.
    #[cfg(feature = "store")]
    pub fn sessions(&self, store: &Store, glob: &str) -> Result<Option<Vec<String>>, Error> {
        match &self.required {
            Some(required) if !self.is_inverted => store.with_text(glob, required),
            _ => Ok(None),
        }
    }

    /// The lines of a text that match, with those around them; none, if none matches.
    pub(super) fn lines(&self, text: &str) -> Vec<FoundLine> {
        let all = text.split('\n');
        let all = all.map(|line| line.strip_suffix('\r').unwrap_or(line));
        let all: Vec<&str> = all.collect();
        let matching = all.iter().enumerate();
        let matching = matching.filter(|(_, line)| self.pattern.is_match(line) != self.is_inverted);
        let mut lines: Vec<FoundLine> = Vec::new();
        for (at, _) in matching {
            let last = lines.last().map_or(0, |last| last.number as usize);
            let from = at.saturating_sub(self.before).max(last);
            let end = at.saturating_add(self.after).saturating_add(1);
            let around = all.iter().enumerate().take(end).skip(from);
            lines.extend(around.map(|(at, line)| FoundLine {
                number: at as u64 + 1,
                ranges: self.ranges(line),
                text: (*line).to_owned(),
            }));
        }
        lines
    }

    fn ranges(&self, line: &str) -> Vec<Range<usize>> {
        match (self.is_inverted, self.pattern.is_match(line)) {
            (true, true) => Vec::new(),
            (true, false) => std::iter::once(0..0).collect(),
            (false, _) => self.pattern.find_all(line).take(RANGES).collect(),
        }
    }
}

/// A line of a block's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FoundLine {
    /// Its number in the text, from 1.
    pub number: u64,
    /// The line, without its end.
    pub text: String,
    /// Where it matches, as ranges of bytes, at most the first thousand; empty for a line that is there for
    /// context.
    pub ranges: Vec<Range<usize>>,
}
