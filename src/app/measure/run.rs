//! The measurement: threads that run the operations of a mix until the time is over.
//!
//! It must not know options or how results are printed.

use super::allocations;
use super::mix::{Mix, Operation};
use super::tally::{Measured, SLICES, Tally};
use crate::app::present::{Failure, Result};
use crate::engine::{Answer, Context, Engine, Message};
use crate::history::Session;
use crate::support::cancel;
use crate::support::clock::nanos_since;
use crate::support::diag::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Opens the session of a number again.
pub(crate) type Opens<'a> = &'a (dyn Fn(usize) -> Result<Arc<Session>> + Sync);

pub(crate) struct Work<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) selectors: &'a [String],
    pub(crate) sessions: &'a [Arc<Session>],
    /// The writers of the sessions, where commits are mixed in.
    pub(crate) writers: &'a [Mutex<Context>],
    pub(crate) mix: &'a Mix,
    pub(crate) seed: u64,
    pub(crate) threads: u64,
    pub(crate) duration: Duration,
    /// Operations a second of all threads together; `None` for one after the other.
    pub(crate) rate: Option<f64>,
    /// Opens a session before each select, and makes the engine that it is compiled by.
    pub(crate) cold: Option<(Opens<'a>, &'a (dyn Fn() -> Engine + Sync))>,
    pub(crate) counts_allocations: bool,
}

pub(crate) struct Outcome {
    /// Of each selector.
    pub(crate) selects: Vec<Tally>,
    /// Of a message, a reply and a commit.
    pub(crate) commits: Tally,
    /// Of opening a session, where each select has a new one.
    pub(crate) opens: Tally,
    pub(crate) elapsed: Duration,
}

/// Runs a selector and lists its ids, or computes the differences of a range. Returns the number of rows.
pub(crate) fn run_once(engine: &Engine, session: &Session, text: &str) -> Result<usize, Error> {
    Ok(match engine.select(session, text)? {
        Answer::Rows(rows) => std::hint::black_box(rows.to_ids()).len(),
        Answer::Range(diff) => diff.rows(),
    })
}

/// A message and its reply, committed.
fn commit(context: &mut Context) -> Result<(), Error> {
    context.append(Message::user("What is the state of my order?"))?;
    context.reply(Message::assistant(
        "It was sent yesterday and arrives tomorrow.",
    ))?;
    context.commit().map(|_| ())
}

impl Work<'_> {
    /// Runs until the time is over. The first error ends it.
    pub(crate) fn run(&self) -> Result<Outcome> {
        let start = Instant::now();
        let due = AtomicU64::new(0);
        let tokens = cancel::here();
        let (due, tokens) = (&due, &tokens);
        let mut sum = std::thread::scope(|scope| {
            let threads = (1..self.threads).map(|thread| {
                scope.spawn(move || tokens.within(|| self.thread(thread, start, due)))
            });
            let threads: Vec<_> = threads.collect();
            let mut sum = self.thread(0, start, due)?;
            for thread in threads {
                let failed = |_| Err(Failure::internal("a thread ended early"));
                let other = thread.join().unwrap_or_else(failed)?;
                for (tally, other) in sum.selects.iter_mut().zip(&other.selects) {
                    tally.add(other);
                }
                sum.commits.add(&other.commits);
                sum.opens.add(&other.opens);
            }
            Ok::<_, Failure>(sum)
        })?;
        sum.elapsed = start.elapsed();
        Ok(sum)
    }

    fn thread(&self, thread: u64, start: Instant, due: &AtomicU64) -> Result<Outcome> {
        let tally = || Tally::new(self.rate.is_some(), self.counts_allocations);
        let selects = self.selectors.iter().map(|_| tally());
        let mut outcome = Outcome {
            selects: selects.collect::<Result<_, _>>()?,
            commits: tally()?,
            opens: tally()?,
            elapsed: Duration::ZERO,
        };
        let until = start + self.duration;
        let mut sequence = self.mix.sequence(thread, self.threads, self.seed);
        loop {
            let due = match self.rate {
                None => None,
                Some(rate) => {
                    // The moments are shared: a thread that is late leaves the next one to another.
                    let number = due.fetch_add(1, Ordering::Relaxed);
                    let due = start + Duration::from_secs_f64(number as f64 / rate);
                    if due >= until {
                        return Ok(outcome);
                    }
                    wait_until(due);
                    Some(due)
                }
            };
            if due.is_none() && Instant::now() >= until {
                return Ok(outcome);
            }
            match sequence.next() {
                Operation::Select { selector, session } => {
                    let text = &self.selectors[selector];
                    let tally = &mut outcome.selects[selector];
                    if let Some((open, engine)) = self.cold {
                        let mut opened = None;
                        self.time(start, None, &mut outcome.opens, || {
                            opened = Some(open(session)?);
                            Ok(0)
                        })?;
                        let (engine, opened) = (engine(), opened);
                        let opened = opened.as_ref().map_or(&self.sessions[session], |one| one);
                        self.time(start, None, tally, || Ok(run_once(&engine, opened, text)?))?;
                    } else {
                        let session = &self.sessions[session];
                        self.time(start, due, tally, || {
                            Ok(run_once(self.engine, session, text)?)
                        })?;
                    }
                }
                Operation::Commit { session } => {
                    self.time(start, due, &mut outcome.commits, || {
                        let writer = self.writers[session].lock();
                        commit(&mut writer.unwrap_or_else(PoisonError::into_inner))?;
                        Ok(0)
                    })?;
                }
            }
        }
    }

    /// Times one operation, which returns its rows.
    fn time(
        &self,
        start: Instant,
        due: Option<Instant>,
        tally: &mut Tally,
        operation: impl FnOnce() -> Result<usize>,
    ) -> Result<()> {
        let allocated = allocations::here();
        let begin = Instant::now();
        let rows = operation()?;
        let service = nanos_since(begin);
        let response = due.map(nanos_since);
        let part = begin.duration_since(start).as_secs_f64() / self.duration.as_secs_f64();
        tally.record(&Measured {
            service,
            response,
            rows,
            allocations: allocations::here() - allocated,
            slice: (part * SLICES as f64) as usize,
        });
        Ok(())
    }
}

/// Sleeps most of the time, and reads the clock for the rest: a sleep may last longer than it should.
fn wait_until(due: Instant) {
    const LAST: Duration = Duration::from_micros(200);
    const LONGEST: Duration = Duration::from_millis(20);
    loop {
        cancel::ensure();
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > LAST {
            std::thread::sleep((left - LAST).min(LONGEST));
        } else {
            std::hint::spin_loop();
        }
    }
}
