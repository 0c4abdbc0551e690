//! `pactql bench`: how fast selectors run.

use super::command::{Invocation, Run, print_as};
use super::list::Sizes;
use super::options::{EditionArgs, Limits};
use super::progress::Progress;
use super::{input, output, sessions};
use crate::app::present::{Exit, Failure};
use crate::engine::{Answer, CacheStats, Engine};
use crate::history::Session;
use crate::support::diag::Error;
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How fast do selectors run?
///
/// Loads the sessions, then runs every selector on every session, over and over, for the given
/// time. The time of one run includes listing its ids; selectors are given as text and go through
/// the plan cache.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql bench session.jsonl -e \"@t0 .cb\"
  pactql bench runs/*.jsonl --file selectors.txt --threads 2 --duration 10")]
pub(super) struct Bench {
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
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    threads: usize,
    /// How many seconds to measure.
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    duration: Duration,
    #[command(flatten)]
    edition: EditionArgs,
    #[command(flatten)]
    limits: Limits,
}

/// The largest number of threads.
const MOST_THREADS: usize = 1024;

fn threads(text: &str) -> Result<usize, String> {
    let count = text.parse().ok();
    let count = count.filter(|count| (1..=MOST_THREADS).contains(count));
    count.ok_or_else(|| format!("expected a number from 1 to {MOST_THREADS}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a positive number of seconds".to_owned())
}

impl Run for Bench {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let selectors = self.selectors()?;
        let engine = self.edition.engine();
        for selector in &selectors {
            engine.prepare(selector)?;
        }
        let started = Instant::now();
        let (names, _) = sessions::expand(&self.sessions)?;
        let sessions = sessions::open_all(&names, &self.limits)
            .map_err(|failure| sessions::explain_directory(failure, &self.sessions))?;
        let loading = started.elapsed();
        warm_up(&engine, &names, &sessions, &selectors)?;
        let before = engine.cache_stats();
        let progress = Progress::spinner("measuring");
        let started = Instant::now();
        let until = started + self.duration;
        let tallies = measure(&engine, &sessions, &selectors, self.threads, until)?;
        let elapsed = started.elapsed();
        drop(progress);
        let mut total = Tally::new()?;
        tallies.iter().for_each(|tally| total.add(tally));
        let numbers = selectors.iter().zip(&tallies);
        let report = Report {
            sessions: sessions.len(),
            threads: self.threads,
            seconds: elapsed.as_secs_f64(),
            load_seconds: loading.as_secs_f64(),
            cache: CacheUse::between(before, engine.cache_stats()),
            index: Sizes::of(&sessions),
            selectors: numbers
                .map(|(selector, tally)| tally.numbers(Some(selector), elapsed))
                .collect(),
            total: total.numbers(None, elapsed),
        };
        // By way of a value, whose members are in the order of their names.
        print_as(with.is_json_in_pipe(), &json!(report), || report.text())
    }
}

impl Bench {
    /// The selectors of the options and of the file.
    fn selectors(&self) -> Result<Vec<String>, Failure> {
        let mut selectors = self.selectors.clone();
        if let Some(file) = &self.file {
            let text = input::read(file, &self.limits)?;
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

/// Runs everything once before the clock starts, to report errors and to leave out work that is
/// done once only.
fn warm_up(
    engine: &Engine,
    names: &[String],
    sessions: &[Arc<Session>],
    selectors: &[String],
) -> Result<(), Failure> {
    for (name, session) in names.iter().zip(sessions) {
        for selector in selectors {
            run_once(engine, session, selector)
                .map_err(|error| Failure::in_session(error, Some(name)))?;
        }
    }
    Ok(())
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

/// The measurements of one selector.
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

    /// Rates are by the clock, of all threads together.
    fn numbers<'a>(&self, selector: Option<&'a str>, elapsed: Duration) -> Numbers<'a> {
        let (count, seconds) = (self.latencies.len(), elapsed.as_secs_f64());
        Numbers {
            selector,
            selects: count,
            selects_per_second: count as f64 / seconds,
            rows: match count {
                0 => 0.0,
                count => self.rows as f64 / count as f64,
            },
            rows_per_second: self.rows as f64 / seconds,
            latency_ns: Latency {
                p50: self.quantile(0.5),
                p90: self.quantile(0.9),
                p99: self.quantile(0.99),
                max: self.max,
            },
        }
    }
}

/// Runs the selectors until the time is over. Each thread starts at another point of the mix.
fn measure(
    engine: &Engine,
    sessions: &[Arc<Session>],
    selectors: &[String],
    threads: usize,
    until: Instant,
) -> Result<Vec<Tally>, Failure> {
    let mix = sessions.len() * selectors.len();
    let tallies = || {
        selectors
            .iter()
            .map(|_| Tally::new())
            .collect::<Result<Vec<_>, _>>()
    };
    let work = |thread: usize| {
        let mut tallies = tallies()?;
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
    let results: Vec<Result<Vec<Tally>, Failure>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let failed = || Failure::internal("a thread ended early");
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Err(failed())))
            .collect()
    });
    let mut sum = tallies()?;
    for result in results {
        for (sum, tally) in sum.iter_mut().zip(result?) {
            sum.add(&tally);
        }
    }
    Ok(sum)
}

/// The work of the plan cache during the measurement.
#[derive(Serialize)]
struct CacheUse {
    hits: u64,
    misses: u64,
    evictions: u64,
    hit_rate: f64,
}

impl CacheUse {
    fn between(before: CacheStats, after: CacheStats) -> Self {
        let hits = (after.text_hits + after.shape_hits) - (before.text_hits + before.shape_hits);
        let misses = after.misses - before.misses;
        Self {
            hits,
            misses,
            evictions: after.evictions - before.evictions,
            hit_rate: match hits + misses {
                0 => 1.0,
                all => hits as f64 / all as f64,
            },
        }
    }
}

/// The results of one selector, or of all of them.
#[derive(Serialize)]
struct Numbers<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<&'a str>,
    selects: u64,
    selects_per_second: f64,
    /// Rows of one run on average.
    rows: f64,
    rows_per_second: f64,
    latency_ns: Latency,
}

/// Latencies in nanoseconds. Percentiles are rounded up by less than 1 %; the maximum is exact.
#[derive(Serialize)]
struct Latency {
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

#[derive(Serialize)]
struct Report<'a> {
    sessions: usize,
    threads: usize,
    seconds: f64,
    load_seconds: f64,
    cache: CacheUse,
    index: Sizes,
    selectors: Vec<Numbers<'a>>,
    total: Numbers<'a>,
}

impl Report<'_> {
    fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header([
            "selects/s",
            "p50",
            "p90",
            "p99",
            "max",
            "rows",
            "rows/s",
            "selector",
        ]);
        let total = (self.selectors.len() > 1).then_some(&self.total);
        for numbers in self.selectors.iter().chain(total) {
            table.add_row([
                short(numbers.selects_per_second),
                time(numbers.latency_ns.p50),
                time(numbers.latency_ns.p90),
                time(numbers.latency_ns.p99),
                time(numbers.latency_ns.max),
                short(numbers.rows),
                short(numbers.rows_per_second),
                output::clean(numbers.selector.unwrap_or("total"), 80),
            ]);
        }
        for column in table.column_iter_mut().take(7) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut out = String::new();
        for line in table.lines() {
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let _ = writeln!(
            out,
            "\n{} session(s), {} thread(s), {:.1} s; loaded in {:.2} s; plan cache hits {:.2} %; \
             index {:.1} bytes a node ({} nodes)",
            self.sessions,
            self.threads,
            self.seconds,
            self.load_seconds,
            self.cache.hit_rate * 100.0,
            self.index.index_bytes_per_node,
            self.index.nodes,
        );
        out
    }
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

/// A number with three or four digits.
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
