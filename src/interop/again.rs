//! Whether an export says all that a session has: each line is read again as it is written, and compared.
//!
//! One line is in memory at a time. What it says is a difference to the snapshot before it: if that came back, to the
//! session's own, so nothing of it is there twice. This file knows no files.

use super::delta::write_session;
use super::equality::{Comparison, Mismatch};
use crate::cancel::{Cancelled, stopped};
use crate::index::{Snapshot, after};
use crate::tree::read_document;
use std::io::{self, Write};
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
/// # Errors
/// The work is cancelled.
pub fn lost_in_export<'a>(
    committed: impl IntoIterator<Item = &'a Arc<Snapshot>> + Clone,
    working: Option<&'a Snapshot>,
) -> io::Result<Vec<Lost>> {
    let snapshots = committed.clone().into_iter().map(|snapshot| &**snapshot);
    let mut again = Again {
        expected: snapshots.chain(working),
        count: 0,
        line: Vec::new(),
        previous: Previous::None,
        comparison: Comparison::new(),
        lost: Vec::new(),
        failed: false,
    };
    write_session(committed, working, false, &mut again)?;
    Ok(again.lost)
}

/// The snapshot that the next difference is to.
enum Previous<'a> {
    None,
    /// What was read is the same as this one of the session.
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

/// Reads the lines that are written to it.
struct Again<'a, I: Iterator<Item = &'a Snapshot>> {
    /// The snapshots that the next lines are of.
    expected: I,
    count: usize,
    line: Vec<u8>,
    previous: Previous<'a>,
    comparison: Comparison,
    lost: Vec<Lost>,
    /// Whether a line could not be read: what follows it cannot be, either.
    failed: bool,
}

impl<'a, I: Iterator<Item = &'a Snapshot>> Again<'a, I> {
    fn read(&mut self) -> Result<Snapshot, String> {
        let line = std::mem::take(&mut self.line);
        let document = read_document(&line).map_err(|error| error.to_string())?;
        // A document can be as large as the session.
        drop(line);
        let previous = self.previous.get();
        let newest = previous.map_or(0, Snapshot::cycle);
        after(previous, document, newest.saturating_add(1))
    }

    fn compare(&mut self) {
        let Some(expected) = self.expected.next() else {
            return;
        };
        let snapshot = Some(self.count);
        self.count += 1;
        match self.read() {
            Ok(found) => {
                let at = match self.comparison.difference(expected, &found) {
                    None => {
                        self.previous = Previous::Same(expected);
                        return;
                    }
                    Some(Mismatch::Document) => None,
                    Some(Mismatch::Node(id)) => Some(id),
                };
                self.previous = Previous::Other(found);
                self.lost.push(Lost { snapshot, at });
            }
            Err(error) => {
                self.failed = true;
                self.lost.push(Lost {
                    snapshot: None,
                    at: Some(error),
                });
            }
        }
    }
}

impl<'a, I: Iterator<Item = &'a Snapshot>> Write for Again<'a, I> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if stopped() {
            return Err(io::Error::other(Cancelled));
        }
        if self.failed {
            return Ok(bytes.len());
        }
        match memchr::memchr(b'\n', bytes) {
            None => {
                self.line.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Some(end) => {
                self.line.extend(bytes.iter().take(end));
                self.compare();
                Ok(end + 1)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
