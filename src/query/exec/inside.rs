//! Rows inside the matches of another selector (LANGUAGE §6).

use std::ops::Range;
use std::slice::from_ref;

use super::chunks::unit_end;
use super::cost::{FIRST_CHUNK, next_chunk};
use super::driver::{run, run_in};
use super::stats::RunInput;
use super::trace::{Counters, Trace};
use super::window::unit_rows;
use crate::index::{Bits, Snapshot};
use crate::query::plan::Bound;

/// The rows that are, or are inside, a match of a selector. Meant for rows that mostly ascend: runs
/// the selector only up to the rows that were looked up.
pub struct InsideRows<'a> {
    bound: &'a Bound,
    input: RunInput<'a>,
    /// The rows that were run.
    known: Range<u32>,
    next_size: u32,
    rows: Bits,
    /// Rows inside a matched root or `^seq`, which are not run again in each chunk.
    ambient: Range<u32>,
    trace: Trace,
}

impl<'a> InsideRows<'a> {
    /// Runs the root and `^seq` only, or the whole selector if it cannot be run in chunks.
    pub fn new(bound: &'a Bound, input: RunInput<'a>) -> Self {
        let snapshot = input.snapshot;
        let mut inside = Self {
            bound,
            input,
            known: 0..0,
            next_size: FIRST_CHUNK,
            rows: Bits::new(0..0),
            ambient: 0..0,
            trace: Trace::off(),
        };
        if bound.runs_in_chunks() && bound.page.is_none() {
            // The root and `^seq` are in the first unit, but their subtrees are in every chunk.
            // They are run once, and remembered if they match.
            inside.run(0..unit_end(snapshot, 0));
            let matched = |row: u32| inside.rows.contains(row);
            if matched(0) {
                inside.ambient = 0..snapshot.end_row();
            } else if snapshot.seq_row().is_some_and(matched) {
                inside.ambient = snapshot.seq_rows();
            }
        } else {
            inside.run(0..snapshot.end_row());
        }
        inside
    }

    pub fn snapshot(&self) -> &'a Snapshot {
        self.input.snapshot
    }

    pub fn counters(&self) -> Counters {
        self.trace.counters
    }

    pub fn contains(&mut self, row: u32) -> bool {
        if self.ambient.contains(&row) {
            return true;
        }
        // Rows that go back once will do so again: the whole selector is run, which answers every
        // further row.
        if row < self.known.start {
            self.run(0..self.input.snapshot.end_row());
        } else if row >= self.known.end {
            // Chunks grow, so that asking for every row costs little more than one run.
            let end = unit_end(self.input.snapshot, row.saturating_add(self.next_size));
            self.next_size = next_chunk(self.next_size);
            let snapshot = self.input.snapshot;
            let piece = &snapshot.pieces()[snapshot.piece_of(row)];
            self.run(unit_rows(piece, row).start..end);
        }
        self.rows.contains(row)
    }

    fn run(&mut self, chunk: Range<u32>) {
        let (input, trace) = (self.input, &mut self.trace);
        let snapshot = input.snapshot;
        let matched = if chunk == (0..snapshot.end_row()) {
            run(self.bound, input, trace)
        } else {
            run_in(self.bound, input, from_ref(&chunk), trace)
        };
        self.rows = Bits::new(chunk.clone());
        matched.for_each(|row| {
            let end = snapshot.end(row).min(chunk.end);
            self.rows.insert_range(row..end);
        });
        self.known = chunk;
    }
}
