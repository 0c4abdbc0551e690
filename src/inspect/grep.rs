//! Lines of a session's texts that match a pattern, with where they first and last appear (INSPECT §4).

use super::groups::role;
use super::part::Region;
use super::report::{Report, ReportOptions};
use super::search::{FoundLine, Search};
use crate::engine::{Engine, searched};
use crate::history::{At, Session};
use crate::index::{NodeRef, Snapshot};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::table::{Paint, Tint};
use crate::support::text::{escaped, part, printable, width_of};
use hashbrown::HashMap;
use serde::Serialize;
use std::fmt::Write as _;

/// The blocks of a session with a line that matches.
///
/// What is searched are the texts that the snapshots send: of a call its name and its arguments. Each text of a
/// block is searched once, however many snapshots have it: linear in the distinct texts, and in the units of
/// all snapshots.
///
/// ```
/// use pactql::inspect::{GrepReport, Part, Report, ReportOptions, Search};
/// use pactql::{Engine, Session};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let options = ReportOptions::new(Part::all()).search(Search::new("refund", true)?);
/// let found = GrepReport::new(&Engine::new(), &session, &options)?;
/// assert!(found.lines > 0 && found.blocks.iter().all(|block| !block.lines.is_empty()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GrepReport {
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

impl Report for GrepReport {
    fn new(engine: &Engine, session: &Session, options: &ReportOptions) -> Result<Self, Error> {
        let Some(search) = &options.search else {
            return Ok(Self {
                lines: 0,
                blocks: Vec::new(),
            });
        };
        let mut finder = LineFinder {
            search,
            blocks: Vec::new(),
            nodes: HashMap::new(),
            units: HashMap::new(),
            places: HashMap::new(),
        };
        for chosen in options.part.chosen(engine, &session.history())? {
            let chosen = chosen?;
            let label = match chosen.at {
                At::Committed(_) => format!("@c{}", chosen.snapshot.cycle()),
                at => at.to_string(),
            };
            if chosen.rows.is_none() {
                finder.units(&chosen.snapshot, &label);
                continue;
            }
            for (node, region) in chosen.blocks() {
                if let Some(block) = finder.node(node, region, &label) {
                    finder.see(block, &label);
                }
            }
        }
        let blocks = finder.blocks;
        let lines = blocks.iter().flat_map(|block| &block.lines);
        Ok(Self {
            lines: lines.filter(|line| !line.ranges.is_empty()).count() as u64,
            blocks,
        })
    }

    fn text(&self, _: &ReportOptions, paint: Paint) -> String {
        let mut out = String::new();
        for block in &self.blocks {
            text_of(block, paint, &mut out);
        }
        out
    }
}

struct LineFinder<'a> {
    search: &'a Search,
    blocks: Vec<FoundBlock>,
    /// The block of a node by its version; `None` if it does not match.
    nodes: HashMap<(u64, u32), Option<usize>>,
    /// The blocks of whole units by version.
    units: HashMap<u64, Vec<usize>>,
    /// The blocks by id and text, for nodes that were written again.
    places: HashMap<(String, [u8; 32]), usize>,
}

impl LineFinder<'_> {
    fn units(&mut self, snapshot: &Snapshot, label: &str) {
        for unit in snapshot.units().inspect(|_| ensure()) {
            let whole = unit.dead_rows().next().is_none();
            if whole && let Some(known) = self.units.remove(&unit.version()) {
                known.iter().for_each(|block| self.see(*block, label));
                self.units.insert(unit.version(), known);
                continue;
            }
            let nodes = unit.nodes().inspect(|_| ensure());
            let found = nodes.filter_map(|node| self.node(node, Region::containing(node)?, label));
            let found: Vec<usize> = found.collect();
            found.iter().for_each(|block| self.see(*block, label));
            if whole {
                self.units.insert(unit.version(), found);
            }
        }
    }

    fn see(&mut self, block: usize, label: &str) {
        if let Some(block) = self.blocks.get_mut(block) {
            label.clone_into(&mut block.last);
        }
    }

    /// The block of a node, if it matches. Its text is searched if it was not before.
    fn node(&mut self, node: NodeRef<'_>, region: Region, label: &str) -> Option<usize> {
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
                    let block = self.blocks.len();
                    self.blocks.push(FoundBlock {
                        id: node.id().to_owned(),
                        role: role(node, region).to_owned(),
                        kind: node.kind().map(str::to_owned),
                        first: label.to_owned(),
                        last: label.to_owned(),
                        lines,
                    });
                    self.places.insert(key, block);
                    block
                })
            }
        };
        self.nodes.insert(node.version(), found);
        found
    }
}

const WIDTH: usize = 160;

fn text_of(block: &FoundBlock, paint: Paint, out: &mut String) {
    let kind = block.kind.as_deref().map(|kind| format!(" {kind}"));
    let what = printable(&format!("{}{}", block.role, kind.unwrap_or_default()));
    let (id, what) = (
        paint.tint(Tint::Name, &printable(&block.id)),
        paint.tint(Tint::Kind, &what),
    );
    let when = if block.first == block.last {
        block.first.clone()
    } else {
        format!("{} to {}", block.first, block.last)
    };
    let _ = writeln!(out, "{id}  {what}  {}", paint.tint(Tint::Place, &when));
    let widest = block.lines.last().map_or(0, |line| line.number);
    let widest = widest.to_string().len();
    let mut last = None;
    for line in &block.lines {
        if last.is_some_and(|last| last + 1 < line.number) {
            out.push_str("  --\n");
        }
        last = Some(line.number);
        let sign = if line.ranges.is_empty() { '-' } else { ':' };
        let (number, text) = (line.number, shown(line, paint));
        let _ = writeln!(out, "  {number:>widest$}{sign} {text}");
    }
}

/// A line with what matches in it; a long one around the first match.
fn shown(line: &FoundLine, paint: Paint) -> String {
    if width_of(&line.text) > WIDTH {
        let (mut text, mark) = part(&line.text, line.ranges.first().cloned(), WIDTH);
        let found = paint.tint(Tint::Match, &text[mark.clone()]);
        text.replace_range(mark, &found);
        return text;
    }
    let mut text = String::new();
    let mut from = 0;
    for range in &line.ranges {
        text.push_str(&escaped(&line.text[from..range.start], false));
        let found = escaped(&line.text[range.clone()], false);
        text.push_str(&paint.tint(Tint::Match, &found));
        from = range.end;
    }
    text.push_str(&escaped(&line.text[from..], false));
    text.truncate(text.trim_end().len());
    text
}
