//! The rows of one statement as an iterator: a thread runs the statement and hands its rows on by batches.
//!
//! It must not know what the rows mean: it is given a function that reads one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use crate::store::database::sql::ResultRow;
use crate::store::error::{Result, StoreError};
use crate::store::write::core::Core;
use crate::support::cancel;
use crate::support::diag::Error;

/// Rows that are handed on together.
const BATCH: usize = 256;
/// Batches that may wait for the reader.
const WAITING: usize = 2;

/// What is read of the rows. An error is the last item.
#[derive(Debug)]
pub(super) struct RowStream<T> {
    ready: VecDeque<T>,
    batches: Option<Receiver<Vec<T>>>,
    runs: Option<JoinHandle<std::thread::Result<Result<()>>>>,
}

impl<T: Send + 'static> RowStream<T> {
    /// Begins a statement. `read` adds what it reads of a row to those of the batch.
    pub(super) fn new(
        core: &Arc<Core>,
        sql: String,
        read: impl Fn(&dyn ResultRow, &mut Vec<T>) -> Result<()> + Send + 'static,
    ) -> Self {
        let (sender, batches) = sync_channel(WAITING);
        let (core, tokens) = (Arc::clone(core), cancel::here());
        let work = move || {
            let mut batch = Vec::with_capacity(BATCH);
            core.read_once(|database| {
                database.query(&sql, &[], &mut |row| {
                    cancel::ensure();
                    // The newest item may not be whole before the next one begins.
                    if batch.len() > BATCH {
                        let newest = batch.pop();
                        let whole = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                        batch.extend(newest);
                        let stopped =
                            |_| StoreError::Refused("the answer is not wanted".to_owned());
                        sender.send(whole).map_err(stopped)?;
                    }
                    read(row, &mut batch)
                })
            })?;
            // A reader that is gone needs no rows.
            let _ = sender.send(batch);
            Ok(())
        };
        let run = move || catch_unwind(AssertUnwindSafe(|| tokens.within(work)));
        Self {
            ready: VecDeque::new(),
            batches: Some(batches),
            runs: Some(std::thread::spawn(run)),
        }
    }

    pub(super) fn next(&mut self) -> Option<Result<T, Error>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            match self.batches.as_ref()?.recv() {
                Ok(batch) => self.ready.extend(batch),
                Err(_) => {
                    self.batches = None;
                    let ended = self.runs.take()?.join().unwrap_or_else(Err);
                    let ended = ended.unwrap_or_else(|panic| resume_unwind(panic));
                    return ended.err().map(|error| Err(error.into()));
                }
            }
        }
    }
}

impl<T> Drop for RowStream<T> {
    /// Waits: nothing reads a store that its owner has closed. The statement ends where it would hand on more.
    fn drop(&mut self) {
        self.batches = None;
        if let Some(runs) = self.runs.take() {
            let _ = runs.join();
        }
    }
}
