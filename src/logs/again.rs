//! Verifies an export while it is written: each line is read back and compared with its snapshot.
//!
//! One line is in memory at a time, and one part of a long document. A delta line is applied to the session's own previous
//! snapshot once that was read back equal, so no snapshot is in memory twice. This file knows no files.

use super::delta::DocumentForm;
use super::equality::{Mismatch, SessionComparison};
use super::export::{envelope, write_nodes, write_whole};
use crate::index::{NodeRef, Snapshot, after};
use crate::support::cancel::check;
use crate::tree::read_document;
use std::io;
use std::iter::Peekable;
use std::sync::Arc;

/// A snapshot that an export does not preserve.
#[derive(Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its index among the committed snapshots and the working state after them; `None` if the export cannot be read on.
    pub snapshot: Option<usize>,
    /// The first difference: `None` for the document around the tree, or the id of a node; or why the export cannot be read.
    pub at: Option<String>,
}

/// Exports a session and reads it again, line by line. Returns the snapshots whose canonical bytes are not the same.
///
/// A document of more than a megabyte is written and read in parts: some nodes in document order, below all that are above
/// them and the one before them.
///
/// # Errors
/// The work is cancelled.
pub fn lost_in_export<'a>(
    committed: impl IntoIterator<Item = &'a Arc<Snapshot>>,
    working: Option<&'a Snapshot>,
) -> io::Result<Vec<Lost>> {
    let mut again = Again {
        count: 0,
        previous: Previous::None,
        comparison: SessionComparison::default(),
        lost: Vec::new(),
        failed: false,
    };
    let mut older: Option<&Arc<Snapshot>> = None;
    for snapshot in committed {
        let older = older.replace(snapshot);
        match DocumentForm::choose(older.map(|older| &**older), snapshot, false) {
            DocumentForm::Difference(line) => again.line(snapshot, line)?,
            DocumentForm::Whole { stated } => again.document(snapshot, stated)?,
        }
        if again.failed {
            return Ok(again.lost);
        }
    }
    if let Some(working) = working {
        again.document(working, working.meta().cycle_given)?;
    }
    Ok(again.lost)
}

const PART: usize = 1 << 20;

/// The snapshot that the next difference is to.
enum Previous<'a> {
    None,
    /// What was read is the same as this one of the session, or was not kept.
    Same(&'a Snapshot),
    Other(Snapshot),
}

impl Previous<'_> {
    fn get(&self) -> Option<&Snapshot> {
        match self {
            Self::None => None,
            Self::Same(snapshot) => Some(snapshot),
            Self::Other(snapshot) => Some(snapshot),
        }
    }
}

struct Again<'a> {
    count: usize,
    previous: Previous<'a>,
    comparison: SessionComparison,
    lost: Vec<Lost>,
    /// Whether a line could not be read: what follows it cannot be, either.
    failed: bool,
}

impl<'a> Again<'a> {
    fn line(&mut self, expected: &'a Snapshot, line: String) -> io::Result<()> {
        check().map_err(io::Error::other)?;
        let read = || {
            let document = read_document(line.as_bytes()).map_err(|error| error.to_string())?;
            // A line can be as large as the session.
            drop(line);
            after(self.previous.get(), document)
        };
        match read() {
            Ok(found) => {
                let differs = self.comparison.difference(expected, &found);
                self.previous = match differs {
                    None => Previous::Same(expected),
                    Some(_) => Previous::Other(found),
                };
                self.done(differs);
            }
            Err(error) => self.fail(error),
        }
        Ok(())
    }

    fn document(&mut self, expected: &'a Snapshot, stated: bool) -> io::Result<()> {
        let mut nodes = expected.nodes().peekable();
        let around = envelope(expected, stated);
        let mut last = None;
        loop {
            check().map_err(io::Error::other)?;
            let part = part(&mut nodes, last, around.0.len() + around.1.len());
            if last.is_none() && nodes.peek().is_none() {
                let mut line = Vec::new();
                write_whole(expected, stated, &mut line)?;
                let line = String::from_utf8(line).map_err(io::Error::other)?;
                return self.line(expected, line);
            }
            match self.differs(&part, &around) {
                Ok(None) => {}
                Ok(differs) => {
                    self.done(differs);
                    break;
                }
                Err(error) => {
                    self.fail(error);
                    break;
                }
            }
            last = part.last().copied();
            if nodes.peek().is_none() {
                self.done(None);
                break;
            }
        }
        self.previous = Previous::Same(expected);
        Ok(())
    }

    fn differs(
        &self,
        part: &[NodeRef<'_>],
        around: &(String, String),
    ) -> Result<Option<Mismatch>, String> {
        let (mut text, mut line) = (around.0.clone(), Vec::new());
        let written = write_nodes(part.iter().copied(), &mut text, &mut line);
        written.map_err(|error| error.to_string())?;
        text.push_str(&around.1);
        line.extend_from_slice(text.as_bytes());
        let document = read_document(&line).map_err(|error| error.to_string())?;
        drop(line);
        let found = after(None, document)?;
        if envelope(&found, found.meta().cycle_given) != *around {
            return Ok(Some(Mismatch::Document));
        }
        let differs = SessionComparison::default().first(part.iter().copied(), found.nodes());
        Ok(differs.map(|node| Mismatch::Node(node.id().to_owned())))
    }

    fn done(&mut self, differs: Option<Mismatch>) {
        let snapshot = Some(self.count);
        self.count += 1;
        if let Some(differs) = differs {
            let at = match differs {
                Mismatch::Document => None,
                Mismatch::Node(id) => Some(id),
            };
            self.lost.push(Lost { snapshot, at });
        }
    }

    fn fail(&mut self, error: String) {
        self.failed = true;
        self.lost.push(Lost {
            snapshot: None,
            at: Some(error),
        });
    }
}

/// The next nodes, about [`PART`] bytes of them, after those that they need: the last one before them and all above it.
fn part<'a>(
    nodes: &mut Peekable<impl Iterator<Item = NodeRef<'a>>>,
    last: Option<NodeRef<'a>>,
    around: usize,
) -> Vec<NodeRef<'a>> {
    let mut part: Vec<NodeRef<'a>> = std::iter::successors(last, |node| node.parent()).collect();
    part.reverse();
    // At most a quarter of a part is not new, so that all of them together are linear in the document.
    let old: usize = around + part.iter().map(|node| length(*node)).sum::<usize>();
    let most = PART.max(4 * old);
    let mut bytes = old;
    while bytes < most
        && let Some(node) = nodes.next()
    {
        bytes += length(node);
        part.push(node);
    }
    part
}

fn length(node: NodeRef<'_>) -> usize {
    const HEADERS: usize = 200;
    let fields = node
        .fields()
        .map(|(name, value)| name.len() + value.stored_len());
    HEADERS + node.id().len() + fields.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Writer;
    use crate::tree::{read_slice, whole_trees};

    fn snapshots(text: &str) -> Vec<Arc<Snapshot>> {
        let mut writer = Writer::new();
        let mut made: Vec<Arc<Snapshot>> = Vec::new();
        for item in whole_trees(read_slice(text.as_bytes()).expect("documents")) {
            let (mut meta, tree) = item.expect("a tree");
            if meta.working {
                meta.cycle = made.last().map_or(0, |last| last.cycle());
            }
            let (snapshot, _) = writer.append(made.last().map(|last| &**last), &tree, meta);
            made.push(Arc::new(snapshot));
        }
        made
    }

    /// A document of several parts: turns of containers of blocks, and nodes without a type at some depth.
    fn large() -> String {
        let content = "words ".repeat(400);
        let block = |id: String| {
            format!(
                r#"{{"content":"{content}","id":"{id}","parent_id":"{}"}}"#,
                &id[..id.len() - 2]
            )
        };
        let node = |id: usize| {
            let blocks: Vec<String> = (0..9).map(|n| block(format!("t{id}-{n}"))).collect();
            let kind = ["\"nodeType\":\"mt\"", "\"note\":\"x\""][id % 2];
            format!(
                r#"{{"children":[{}],"created_at_ns":{id},"id":"t{id}",{kind},"ttl":3}}"#,
                blocks.join(",")
            )
        };
        let (seq, rest): (Vec<_>, Vec<_>) = (0..120).map(|id| (node(id), node(id + 500))).unzip();
        format!(
            r#"{{"cycle":4,"meta":{{"a":1}},"root":{{"children":[{{"children":[{}],"id":"q","nodeType":"^seq"}},{}]}},"z":[1]}}"#,
            seq.join(","),
            rest.join(",")
        )
    }

    #[test]
    fn what_comes_back_is_not_lost() {
        let large = large();
        assert!(large.len() > 4 * PART);
        let plain = "{\"spec_version\":\"PACT/0.1\",\"root\":{}}\n{\"root\":{}}\n{\"working\":true,\"root\":{\"id\":\"w\"}}\n";
        let more =
            "{\"base\":4,\"remove\":[\"t3\"],\"replace\":[{\"id\":\"n\",\"parent_id\":\"q\"}]}";
        let later = large.replacen("\"cycle\":4", "\"cycle\":9", 1);
        for text in [plain.to_owned(), [&*large, more, &*later].join("\n")] {
            let mut made = snapshots(&text);
            let working = made.pop_if(|last| last.is_working());
            let lost = lost_in_export(&made, working.as_deref()).expect("not cancelled");
            assert_eq!(lost, []);
        }
    }

    #[test]
    fn what_does_not_come_back_is_found_in_a_part() {
        let made = snapshots(&large());
        let expected = &*made[0];
        let around = envelope(expected, true);
        let again = Again {
            count: 0,
            previous: Previous::None,
            comparison: SessionComparison::default(),
            lost: Vec::new(),
            failed: false,
        };
        let mut nodes = expected.nodes().peekable();
        let mut first = part(&mut nodes, None, 0);
        let second = part(&mut nodes, first.last().copied(), 0);
        assert_eq!(again.differs(&first, &around), Ok(None));
        assert_eq!(again.differs(&second, &around), Ok(None));
        // Blocks in another order are sorted when they are read.
        let at = first
            .iter()
            .position(|node| node.id() == "t0-3")
            .expect("a block");
        first.swap(at, at + 1);
        let found = again.differs(&first, &around);
        assert_eq!(found, Ok(Some(Mismatch::Node("t0-4".to_owned()))));
        // A node whose parent is left out is a child of another one: its `parent_id` does not fit.
        let orphans: Vec<_> = first
            .iter()
            .copied()
            .filter(|node| node.id() != "t0")
            .collect();
        assert!(again.differs(&orphans, &around).is_err());
    }
}
