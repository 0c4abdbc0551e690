//! `pactql bench`: how fast selectors run.

use super::command::{Invocation, RunCommand, print_as};
use super::list::Sizes;
use super::options::EditionArgs;
use super::progress::Progress;
use super::sessions::SessionsArgs;
use super::{input, output};
use crate::app::present::{Exit, Failure};
use crate::engine::{Answer, Engine};
use crate::history::Session;
use crate::support::diag::Error;
use crate::support::table::{Paint, TextTable};
use clap::Args;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How fast do selectors run?
///
/// Loads the sessions, then runs every selector on every session, over and over, for the given
/// time. The time of one run includes listing its ids; selectors are given as text and go through
/// the plan cache.
#[derive(Args, Debug)]
pub(super) struct BenchArgs {
    /// Sessions: files, directories, stores, or `-`.
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    /// A selector; may be given several times.
    #[arg(short = 'e', long = "selector", value_name = "SELECTOR")]
    #[arg(allow_hyphen_values = true)]
    selectors: Vec<String>,
    /// A file of selectors, one a line.
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// The number of threads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// How many seconds to measure.
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    duration: Duration,
    #[command(flatten)]
    edition: EditionArgs,
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a positive number of seconds".to_owned())
}

impl RunCommand for BenchArgs {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let selectors = self.selectors(with)?;
        let engine = self.edition.engine();
        for selector in &selectors {
            engine.prepare(selector)?;
        }
        let started = Instant::now();
        let (mut names, mut sessions) = (Vec::new(), Vec::new());
        SessionsArgs::default().each_of(&self.sessions, None, with, |opened| {
            names.push(opened.name.clone());
            sessions.push(Arc::clone(&opened.session));
            Ok(())
        })?;
        let loading = started.elapsed();
        // Everything once before the clock starts: errors are reported, and work that is done once is left out.
        for (name, session) in names.iter().zip(&sessions) {
            for selector in &selectors {
                run_once(&engine, session, selector)
                    .map_err(|error| Failure::in_session(error, Some(name)))?;
            }
        }
        let before = engine.cache_stats();
        let progress = Progress::spinner("measuring");
        let started = Instant::now();
        let until = started + self.duration;
        let tallies = measure(&engine, &sessions, &selectors, self.threads, until)?;
        let elapsed = started.elapsed();
        drop(progress);
        let mut total = Tally::new()?;
        tallies.iter().for_each(|tally| total.add(tally));
        let index = Sizes::measure(&sessions);
        let after = engine.cache_stats();
        let hits = (after.text_hits + after.shape_hits) - (before.text_hits + before.shape_hits);
        let misses = after.misses - before.misses;
        let hit_rate = match hits + misses {
            0 => 1.0,
            all => hits as f64 / all as f64,
        };
        let numbers = selectors.iter().zip(&tallies).map(|(selector, tally)| {
            let mut numbers = tally.json(elapsed);
            numbers["selector"] = json!(selector);
            numbers
        });
        let report = json!({
            "sessions": sessions.len(),
            "threads": self.threads,
            "seconds": elapsed.as_secs_f64(),
            "load_seconds": loading.as_secs_f64(),
            "cache": {
                "hits": hits,
                "misses": misses,
                "evictions": after.evictions - before.evictions,
                "hit_rate": hit_rate,
            },
            "index": index,
            "selectors": numbers.collect::<Vec<_>>(),
            "total": total.json(elapsed),
        });
        print_as(with.is_json_in_pipe(), &report, || {
            let total = (tallies.len() > 1).then_some(("total", &total));
            let lines = selectors.iter().map(String::as_str).zip(&tallies);
            table(lines.chain(total), elapsed)
                + &format!(
                    "\n{} session(s), {} thread(s), {:.1} s; loaded in {:.2} s; plan cache hits {:.2} %; \
                     index {:.1} bytes a node ({} nodes)\n",
                    sessions.len(),
                    self.threads,
                    elapsed.as_secs_f64(),
                    loading.as_secs_f64(),
                    hit_rate * 100.0,
                    index.index_bytes_per_node,
                    index.nodes,
                )
        })
    }
}

impl BenchArgs {
    fn selectors(&self, with: &Invocation) -> Result<Vec<String>, Failure> {
        let mut selectors = self.selectors.clone();
        if let Some(file) = &self.file {
            let text = input::read(file, with.limits)?;
            for line in input::lines(&text) {
                let line = line.map_err(|line| input::not_utf8(&line))?;
                selectors.push(line.to_owned());
            }
        }
        if selectors.is_empty() {
            return Err(Failure::usage("`bench` needs a selector after `-e`")
                .with_help("pactql bench SESSION -e SELECTOR"));
        }
        Ok(selectors)
    }
}

/// Runs a selector and lists its ids, or computes the differences of a range. Returns the number
/// of rows.
fn run_once(engine: &Engine, session: &Session, selector: &str) -> Result<usize, Error> {
    Ok(match engine.select(session, selector)? {
        Answer::Rows(rows) => std::hint::black_box(rows.to_ids()).len(),
        Answer::Range(diff) => diff.rows(),
    })
}

/// The longest latency that percentiles tell apart, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;

#[derive(Clone)]
struct Tally {
    /// Latencies in nanoseconds, to two significant digits.
    latencies: Histogram<u64>,
    /// The largest latency, exactly.
    max: u64,
    rows: u64,
}

impl Tally {
    fn new() -> Result<Self, Failure> {
        let latencies = Histogram::new_with_bounds(1, LONGEST, 2)
            .map_err(|error| Failure::internal(error.to_string()))?;
        Ok(Self {
            latencies,
            max: 0,
            rows: 0,
        })
    }

    fn record(&mut self, latency: Duration, rows: usize) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(nanos);
        self.max = self.max.max(nanos);
        self.rows += rows as u64;
    }

    fn add(&mut self, other: &Self) {
        self.latencies += &other.latencies;
        self.max = self.max.max(other.max);
        self.rows += other.rows;
    }

    /// The latency that this share of all runs does not exceed; 0 if there are none.
    fn quantile(&self, share: f64) -> u64 {
        self.latencies.value_at_quantile(share).min(self.max)
    }

    fn rows(&self) -> f64 {
        self.rows as f64 / self.latencies.len().max(1) as f64
    }

    /// Latencies in nanoseconds: percentiles are rounded up by less than 1 %, the maximum is exact.
    fn nanos(&self) -> [u64; 4] {
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| self.quantile(share));
        [p50, p90, p99, self.max]
    }

    /// Rates are by the clock, of all threads together.
    fn json(&self, elapsed: Duration) -> Value {
        let (count, seconds) = (self.latencies.len(), elapsed.as_secs_f64());
        let [p50, p90, p99, max] = self.nanos();
        json!({
            "selects": count,
            "selects_per_second": count as f64 / seconds,
            "rows": self.rows(),
            "rows_per_second": self.rows as f64 / seconds,
            "latency_ns": {"p50": p50, "p90": p90, "p99": p99, "max": max},
        })
    }
}

/// Runs the selectors until the time is over. Each thread starts at another point of the mix.
fn measure(
    engine: &Engine,
    sessions: &[Arc<Session>],
    selectors: &[String],
    threads: u16,
    until: Instant,
) -> Result<Vec<Tally>, Failure> {
    let threads = usize::from(threads);
    let mix = sessions.len() * selectors.len();
    let work = |thread: usize| {
        let tallies = selectors.iter().map(|_| Tally::new());
        let mut tallies = tallies.collect::<Result<Vec<Tally>, Failure>>()?;
        let mut next = mix / threads * thread;
        loop {
            let start = Instant::now();
            if start >= until {
                return Ok(tallies);
            }
            let (selector, session) = (next % selectors.len(), next / selectors.len());
            next = (next + 1) % mix;
            let rows = run_once(engine, &sessions[session], &selectors[selector])?;
            tallies[selector].record(start.elapsed(), rows);
        }
    };
    std::thread::scope(|scope| {
        let threads = (1..threads).map(|thread| scope.spawn(move || work(thread)));
        let threads: Vec<_> = threads.collect();
        let mut sum = work(0)?;
        for thread in threads {
            let failed = |_| Err(Failure::internal("a thread ended early"));
            let tallies = thread.join().unwrap_or_else(failed)?;
            sum.iter_mut().zip(&tallies).for_each(|(a, b)| a.add(b));
        }
        Ok(sum)
    })
}

fn table<'a>(lines: impl Iterator<Item = (&'a str, &'a Tally)>, elapsed: Duration) -> String {
    let titles = "selects/s p50 p90 p99 max rows rows/s selector".split(' ');
    let mut table = TextTable::new(titles).words([7]).numbers([0]);
    let seconds = elapsed.as_secs_f64();
    for (name, tally) in lines {
        let rate = short(tally.latencies.len() as f64 / seconds);
        let rows = [short(tally.rows()), short(tally.rows as f64 / seconds)];
        let cells = std::iter::once(rate).chain(tally.nanos().map(time));
        table.add(cells.chain(rows).chain([output::clean(name, 80)]));
    }
    table.text(Paint::default())
}

/// A time in a unit that fits its size.
fn time(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

fn short(number: f64) -> String {
    match number {
        number if number >= 1e9 => format!("{:.2} G", number / 1e9),
        number if number >= 1e6 => format!("{:.2} M", number / 1e6),
        number if number >= 1e4 => format!("{:.1} k", number / 1e3),
        number if number.fract() == 0.0 || number >= 100.0 => format!("{number:.0}"),
        number => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use std::time::Duration;

    #[test]
    fn percentiles_are_within_one_per_cent_and_the_maximum_is_exact() {
        let mut tally = Tally::new().expect("a histogram");
        assert_eq!((tally.quantile(0.5), tally.max), (0, 0));
        for micros in 1..=1000 {
            tally.record(Duration::from_micros(micros), 1);
        }
        for (share, exact) in [(0.5, 500_000), (0.9, 900_000), (0.99, 990_000)] {
            let found = tally.quantile(share);
            assert!((exact..=exact + exact / 100).contains(&found), "{found}");
        }
        assert_eq!((tally.quantile(1.0), tally.max), (1_000_000, 1_000_000));
        let mut sum = tally.clone();
        sum.add(&tally);
        assert_eq!((sum.latencies.len(), sum.rows), (2000, 2000));
    }
}
