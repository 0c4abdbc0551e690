//! Two sets of selectors on the same sessions, in turns: how many times as long the second takes.
//!
//! Both are run next to each other in every round, and in changing order, so what slows the machine slows both. It must
//! not know how results are printed.

use super::run::run_once;
use super::statistics::{Ratio, median};
use crate::app::present::{Failure, Result};
use crate::engine::Engine;
use crate::history::Session;
use crate::support::clock::nanos_since;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least time of one side in a round.
const ROUND: u64 = 1_000_000;

/// Rounds that are run even if the time is over.
const FEWEST_ROUNDS: usize = 10;

#[derive(Serialize)]
pub(crate) struct Side {
    pub(crate) selectors: Vec<String>,
    /// The median time of one select in nanoseconds.
    pub(crate) select_ns: f64,
    /// The rows of one pass over all sessions.
    pub(crate) rows: usize,
}

#[derive(Serialize)]
pub(crate) struct Comparison {
    pub(crate) first: Side,
    pub(crate) second: Side,
    /// The time of the second by that of the first, for one pass over all sessions.
    #[serde(flatten)]
    pub(crate) ratio: Ratio,
    pub(crate) verdict: &'static str,
    pub(crate) rounds: usize,
}

pub(crate) fn compare(
    engine: &Engine,
    sessions: &[Arc<Session>],
    sets: [Vec<String>; 2],
    duration: Duration,
    seed: u64,
) -> Result<Comparison> {
    let pass = |set: &[String]| {
        let mut rows = 0;
        for session in sessions {
            for selector in set {
                rows += run_once(engine, session, selector)?;
            }
        }
        Ok::<_, Failure>(rows)
    };
    let timed = |set: &[String], passes: u64| {
        let start = Instant::now();
        for _ in 0..passes {
            pass(set)?;
        }
        Ok::<_, Failure>(nanos_since(start).max(1))
    };
    // The first pass does what is done once; the second says how many passes a round has.
    let [first, second] = &sets;
    let rows = [pass(first)?, pass(second)?];
    let passes = [timed(first, 1)?, timed(second, 1)?];
    let passes = ROUND.div_ceil(passes[0].min(passes[1])).max(1);
    let mut times = [Vec::new(), Vec::new()];
    let until = Instant::now() + duration;
    while times[0].len() < FEWEST_ROUNDS || Instant::now() < until {
        let round = times[0].len();
        for side in [round % 2, 1 - round % 2] {
            times[side].push(timed(&sets[side], passes)? as f64);
        }
    }
    let ratios: Vec<f64> = (times[0].iter().zip(&times[1]))
        .map(|(first, second)| second / first)
        .collect();
    let ratio = Ratio::paired(&ratios, seed);
    let rounds = ratios.len();
    let side = |selectors: Vec<String>, times: Vec<f64>, rows| Side {
        select_ns: median(times) / (passes as usize * selectors.len() * sessions.len()) as f64,
        selectors,
        rows,
    };
    let ([first, second], [of_first, of_second]) = (sets, times);
    Ok(Comparison {
        first: side(first, of_first, rows[0]),
        second: side(second, of_second, rows[1]),
        ratio,
        verdict: ratio.verdict(),
        rounds,
    })
}
