//! Lines of a session's texts that match a pattern, with where they first and last appear (INSPECT §4).

use super::groups::role;
use super::part::{Part, Region};
use crate::engine::{Engine, searched};
use crate::history::{At, Session};
use crate::index::{NodeRef, Snapshot};
#[cfg(feature = "store")]
use crate::query::ir::Required;
use crate::query::ir::{Pattern, Patterns};
#[cfg(feature = "store")]
use crate::store::Store;
use crate::support::cancel::ensure;
use crate::support::diag::{Code, Diagnostic, Error};
use hashbrown::HashMap;
use serde::Serialize;
use std::ops::Range;

/// The most ranges that are kept of a line.
const RANGES: usize = 1_000;

/// A pattern to search for. See [`grep`].
#[derive(Clone, Debug)]
pub struct Search {
    pattern: Pattern,
    /// What a text with a match contains, if that is known.
    #[cfg(feature = "store")]
    required: Option<Required>,
    context: usize,
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
            required: Required::of(&whole),
            context: 0,
        })
    }

    /// Keeps this many lines before and after each line that matches.
    #[must_use]
    pub fn context(mut self, lines: usize) -> Self {
        self.context = lines;
        self
    }

    /// The names of the sessions of a store that may have a match in one of their snapshots, in byte order,
    /// among those whose name matches `glob`; an empty one matches all. No other session has one. `None` if
    /// the store has no text index ([`Store::index_text`]), or if the pattern has no three characters
    /// in a row that each match has: then every session may have one.
    ///
    /// # Errors
    /// Those of the database.
    #[cfg(feature = "store")]
    pub fn sessions(&self, store: &Store, glob: &str) -> Result<Option<Vec<String>>, Error> {
        match &self.required {
            Some(required) => store.with_text(glob, required),
            None => Ok(None),
        }
    }

    /// The lines of a text that match, with those around them; none, if none matches.
    fn lines(&self, text: &str) -> Vec<FoundLine> {
        let all: Vec<&str> = text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .collect();
        let matches: Vec<usize> = (0..all.len())
            .filter(|at| all.get(*at).is_some_and(|line| self.pattern.is_match(line)))
            .collect();
        let mut lines: Vec<FoundLine> = Vec::new();
        for at in &matches {
            let from = at.saturating_sub(self.context);
            let next = lines.last().map_or(0, |last| last.number as usize);
            let around = from.max(next)
                ..all
                    .len()
                    .min(at.saturating_add(self.context).saturating_add(1));
            for number in around {
                let Some(line) = all.get(number) else {
                    continue;
                };
                lines.push(FoundLine {
                    number: number as u64 + 1,
                    ranges: self.ranges(line),
                    text: (*line).to_owned(),
                });
            }
        }
        lines
    }

    /// Where a line matches.
    fn ranges(&self, line: &str) -> Vec<Range<usize>> {
        self.pattern.find_all(line).take(RANGES).collect()
    }
}

/// The blocks of a session with a line that matches. See [`grep`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Found {
    /// How many lines match.
    pub lines: u64,
    /// The blocks, in the order in which they first appear.
    pub blocks: Vec<FoundBlock>,
}

/// A block with a line that matches. A block whose text changes is one for each text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FoundBlock {
    /// Its id.
    pub id: String,
    /// Its role, or that of its region.
    pub role: String,
    /// Its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The first snapshot that has it with this text: `@c12`, or `working`.
    pub first: String,
    /// The last one.
    pub last: String,
    /// The lines that match, and those around them, ascending.
    pub lines: Vec<FoundLine>,
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

/// Searches the texts that the snapshots of a part of a session send: of a call its name and its
/// arguments. Each text of a block is searched once, however many snapshots have it: linear in the
/// distinct texts, and in the units of all snapshots.
///
/// # Errors
/// As [`tokens`](super::tokens()).
///
/// ```
/// use pactql::inspect::{Part, Search, grep};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let search = Search::new("refund", true)?;
/// let found = grep(&Engine::new(), &session, &Part::all(), &search)?;
/// assert!(found.lines > 0 && found.blocks.iter().all(|block| !block.lines.is_empty()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn grep(
    engine: &Engine,
    session: &Session,
    part: &Part,
    search: &Search,
) -> Result<Found, Error> {
    let history = session.history();
    let mut finder = Finder {
        search,
        blocks: Vec::new(),
        nodes: HashMap::new(),
        units: HashMap::new(),
        places: HashMap::new(),
    };
    for (at, snapshot) in part.snapshots(engine, &history)? {
        ensure();
        let label = match at {
            At::Committed(_) => format!("@c{}", snapshot.cycle()),
            at => at.to_string(),
        };
        match part.rows(engine, &history, at, &snapshot)? {
            None => finder.units(&snapshot, &label),
            Some(rows) => {
                let nodes = rows.iter().flat_map(|rows| snapshot.nodes_in(rows.clone()));
                for node in nodes.inspect(|_| ensure()) {
                    if let Some(block) = finder.node(node, &label) {
                        finder.see(block, &label);
                    }
                }
            }
        }
    }
    let blocks = finder.blocks;
    let lines = blocks.iter().flat_map(|block| &block.lines);
    Ok(Found {
        lines: lines.filter(|line| !line.ranges.is_empty()).count() as u64,
        blocks,
    })
}

struct Finder<'a> {
    search: &'a Search,
    blocks: Vec<FoundBlock>,
    /// The block of a node by its version; `None` if it does not match.
    nodes: HashMap<(u64, u32), Option<usize>>,
    /// The blocks of whole units by version.
    units: HashMap<u64, Vec<usize>>,
    /// The blocks by id and text, for nodes that were written again.
    places: HashMap<(String, [u8; 32]), usize>,
}

impl Finder<'_> {
    fn units(&mut self, snapshot: &Snapshot, label: &str) {
        for unit in snapshot.units().inspect(|_| ensure()) {
            let whole = unit.dead_rows().next().is_none();
            if whole && let Some(known) = self.units.remove(&unit.version()) {
                known.iter().for_each(|block| self.see(*block, label));
                self.units.insert(unit.version(), known);
                continue;
            }
            let nodes = unit.nodes().inspect(|_| ensure());
            let nodes = nodes.filter_map(|node| self.node(node, label));
            let found: Vec<usize> = nodes.collect();
            found.iter().for_each(|block| self.see(*block, label));
            if whole {
                self.units.insert(unit.version(), found);
            }
        }
    }

    /// Notes that a snapshot has a block.
    fn see(&mut self, block: usize, label: &str) {
        if let Some(block) = self.blocks.get_mut(block)
            && block.last != label
        {
            label.clone_into(&mut block.last);
        }
    }

    /// The block of a node, if it matches. Its text is searched if it was not before.
    fn node(&mut self, node: NodeRef<'_>, label: &str) -> Option<usize> {
        let region = Region::of(node)?;
        if let Some(known) = self.nodes.get(&node.version()) {
            return *known;
        }
        let text = searched(node)?;
        let key = (node.id().to_owned(), crate::tree::hash::text_hash(&text));
        let found = match self.places.get(&key) {
            Some(known) => Some(*known),
            None => {
                let lines = self.search.lines(&text);
                (!lines.is_empty()).then(|| {
                    self.blocks.push(FoundBlock {
                        id: node.id().to_owned(),
                        role: role(node, region).to_owned(),
                        kind: node.kind().map(str::to_owned),
                        first: label.to_owned(),
                        last: label.to_owned(),
                        lines,
                    });
                    self.places.insert(key, self.blocks.len() - 1);
                    self.blocks.len() - 1
                })
            }
        };
        self.nodes.insert(node.version(), found);
        found
    }
}
