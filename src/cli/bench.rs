//! `pactql bench`: how fast selectors are answered.

use super::options::{EditionName, Limits, TextOrJson};
use super::{input, output, sessions, stats};
use crate::engine::{Answer, CacheStats, Engine};
use crate::history::Session;
use crate::present::{Exit, Failure};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Measure how fast selectors are answered.
///
/// Loads the sessions, then asks every selector of every session, again and again, for the given
/// time. An answer ends when its ids are held; selectors go through the plan cache as text.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql bench session.jsonl -e \"@t0 .cb\"
  pactql bench runs/*.jsonl --file selectors.txt --threads 2 --duration 10
  pactql bench session.jsonl -e \"@t0 .cb[role='user']\" -e \"@t0 ^ah .cb\" --format json")]
pub(super) struct Bench {
    /// Sessions: files, directories, or `-`.
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    /// A selector; may be given several times.
    #[arg(
        short = 'e',
        long = "selector",
        value_name = "SELECTOR",
        allow_hyphen_values = true
    )]
    selectors: Vec<String>,
    /// A file of selectors, one a line.
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// How many threads ask at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    threads: usize,
    /// How many seconds to measure.
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    duration: Duration,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
    #[command(flatten)]
    edition: EditionName,
    #[command(flatten)]
    limits: Limits,
}

/// The most threads that may be asked for.
const MOST_THREADS: usize = 1024;

fn threads(text: &str) -> Result<usize, String> {
    let count = text
        .parse()
        .ok()
        .filter(|count| (1..=MOST_THREADS).contains(count));
    count.ok_or_else(|| format!("expected a number from 1 to {MOST_THREADS}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a positive number of seconds".to_owned())
}

impl Bench {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.format == TextOrJson::Json
    }

    /// Runs the command.
    pub(super) fn run(mut self) -> Result<Exit, Failure> {
        if let Some(file) = &self.file {
            let text = input::read(file, &self.limits)?;
            for line in input::lines(&text) {
                let line = line.map_err(|line| input::not_utf8(&line))?;
                self.selectors.push(line.to_owned());
            }
        }
        if self.selectors.is_empty() {
            return Err(
                Failure::usage("a selector is needed").with_help("-e SELECTOR or --file FILE")
            );
        }
        let engine = self.edition.engine();
        for selector in &self.selectors {
            engine.prepare(selector)?;
        }
        let started = Instant::now();
        let sessions = sessions::open_all(&self.sessions, &self.limits)?;
        let loading = started.elapsed();
        // Every answer is asked for once before the clock starts, so that errors are told and
        // nothing is measured that happens once.
        for (name, session) in self.sessions.iter().zip(&sessions) {
            for selector in &self.selectors {
                let asked = engine.select(session, selector);
                let failed = |error| Failure::Selector(Box::new(error), Some(name.clone()));
                std::hint::black_box(answered(&asked.map_err(failed)?));
            }
        }
        let before = engine.cache_stats();
        let spinner = ProgressBar::new_spinner().with_message("measuring");
        spinner.enable_steady_tick(Duration::from_millis(200));
        let started = Instant::now();
        let until = started + self.duration;
        let tallies = measure(&engine, &sessions, &self.selectors, self.threads, until)?;
        let elapsed = started.elapsed();
        spinner.finish_and_clear();
        let cache = cache_report(before, engine.cache_stats());
        let size = stats::sizes(&sessions);
        let report = Report {
            selectors: &self.selectors,
            tallies: &tallies,
            elapsed,
        };
        let frame = json!({
            "sessions": sessions.len(),
            "threads": self.threads,
            "seconds": elapsed.as_secs_f64(),
            "load_seconds": loading.as_secs_f64(),
            "cache": cache,
            "index": size,
        });
        let text = if self.format.is_json() {
            report.json(frame)
        } else {
            report.text(&frame)
        };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    }
}

/// What one selector cost.
#[derive(Clone, Default)]
struct Tally {
    latencies: Histogram,
    rows: u64,
}

/// Lists the ids of an answer; returns how many. A range was computed when it was returned.
fn answered(answer: &Answer) -> usize {
    match answer {
        Answer::Rows(rows) => std::hint::black_box(rows.to_ids()).len(),
        Answer::Range(diff) => diff.rows(),
    }
}

/// Asks until the time is over. Each thread starts at another place of the mix.
fn measure(
    engine: &Engine,
    sessions: &[Session],
    selectors: &[String],
    threads: usize,
    until: Instant,
) -> Result<Vec<Tally>, Failure> {
    let questions = sessions.len() * selectors.len();
    let work = |thread: usize| {
        let mut tallies = vec![Tally::default(); selectors.len()];
        let mut next = questions / threads * thread;
        loop {
            let start = Instant::now();
            if start >= until {
                return Ok(tallies);
            }
            let (selector, session) = (next % selectors.len(), next / selectors.len());
            next = (next + 1) % questions;
            let answer = engine.select(&sessions[session], &selectors[selector])?;
            let rows = answered(&answer);
            let tally = &mut tallies[selector];
            tally.latencies.record(start.elapsed());
            tally.rows += rows as u64;
        }
    };
    let results: Vec<Result<Vec<Tally>, Failure>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let failed = || Failure::Plain(Exit::Internal, "a thread ended early".to_owned(), None);
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Err(failed())))
            .collect()
    });
    let mut sum = vec![Tally::default(); selectors.len()];
    for result in results {
        for (sum, tally) in sum.iter_mut().zip(result?) {
            sum.latencies.add(&tally.latencies);
            sum.rows += tally.rows;
        }
    }
    Ok(sum)
}

/// What the plan cache did while measuring.
fn cache_report(before: CacheStats, after: CacheStats) -> Value {
    let hits = (after.text_hits + after.shape_hits) - (before.text_hits + before.shape_hits);
    let misses = after.misses - before.misses;
    let asked = hits + misses;
    let rate = if asked == 0 {
        1.0
    } else {
        hits as f64 / asked as f64
    };
    json!({
        "hits": hits,
        "misses": misses,
        "evictions": after.evictions - before.evictions,
        "hit_rate": rate,
    })
}

struct Report<'a> {
    selectors: &'a [String],
    tallies: &'a [Tally],
    elapsed: Duration,
}

/// The percentiles that are printed.
const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

impl Report<'_> {
    fn total(&self) -> Tally {
        let mut total = Tally::default();
        for tally in self.tallies {
            total.latencies.add(&tally.latencies);
            total.rows += tally.rows;
        }
        total
    }

    /// Rates are by the clock, all threads together.
    fn numbers(&self, tally: &Tally) -> Value {
        let seconds = self.elapsed.as_secs_f64();
        let count = tally.latencies.count;
        let mut latency = json!({ "max": tally.latencies.max });
        for (name, share) in PERCENTILES {
            latency[name] = json!(tally.latencies.percentile(share));
        }
        let average = if count == 0 {
            0.0
        } else {
            tally.rows as f64 / count as f64
        };
        json!({
            "selects": count,
            "selects_per_second": count as f64 / seconds,
            "rows": average,
            "rows_per_second": tally.rows as f64 / seconds,
            "latency_ns": latency,
        })
    }

    fn json(&self, mut frame: Value) -> String {
        let selectors = self
            .selectors
            .iter()
            .zip(self.tallies)
            .map(|(selector, tally)| {
                let mut numbers = self.numbers(tally);
                numbers["selector"] = json!(selector);
                numbers
            });
        frame["selectors"] = selectors.collect();
        frame["total"] = self.numbers(&self.total());
        format!("{frame}\n")
    }

    fn text(&self, frame: &Value) -> String {
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
        let mut add = |name: &str, tally: &Tally| {
            let numbers = self.numbers(tally);
            let number = |key: &str| numbers[key].as_f64().unwrap_or(0.0);
            let nanos = |key: &str| numbers["latency_ns"][key].as_u64().unwrap_or(0);
            table.add_row([
                short(number("selects_per_second")),
                time(nanos("p50")),
                time(nanos("p90")),
                time(nanos("p99")),
                time(nanos("max")),
                short(number("rows")),
                short(number("rows_per_second")),
                output::clean(name, 80),
            ]);
        };
        for (selector, tally) in self.selectors.iter().zip(self.tallies) {
            add(selector, tally);
        }
        if self.selectors.len() > 1 {
            add("total", &self.total());
        }
        for column in table.column_iter_mut().take(7) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut out = String::new();
        for line in table.lines() {
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let _ = writeln!(
            out,
            "\n{} session(s), {} thread(s), {:.1} s; loaded in {:.2} s; plan cache hits {:.2} %; \
             index {:.1} bytes a node ({} nodes)",
            frame["sessions"],
            frame["threads"],
            number(&frame["seconds"]),
            number(&frame["load_seconds"]),
            number(&frame["cache"]["hit_rate"]) * 100.0,
            number(&frame["index"]["index_bytes_per_node"]),
            frame["index"]["nodes"],
        );
        out
    }
}

/// A time in the unit that suits it.
fn time(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

/// A number in three or four digits.
fn short(number: f64) -> String {
    match number {
        number if number >= 1e9 => format!("{:.2} G", number / 1e9),
        number if number >= 1e6 => format!("{:.2} M", number / 1e6),
        number if number >= 1e4 => format!("{:.1} k", number / 1e3),
        number if number.fract() == 0.0 || number >= 100.0 => format!("{number:.0}"),
        number => format!("{number:.2}"),
    }
}

/// Latencies in nanoseconds: exact below [`EXACT`], in steps of less than one per cent above.
/// Memory does not depend on how many there are; count and maximum are exact.
#[derive(Clone, Default)]
struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

/// Bits of a latency that are kept above [`EXACT`], the leading one aside.
const PRECISION: u32 = 7;

/// Latencies below this have a bucket each.
const EXACT: u64 = 1 << (PRECISION + 1);

impl Histogram {
    fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = Self::bucket(nanos);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    fn add(&mut self, other: &Self) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    fn bucket(nanos: u64) -> usize {
        if nanos < EXACT {
            return nanos as usize;
        }
        let shift = nanos.ilog2() - PRECISION;
        // The leading bit and those kept after it, behind the buckets of all smaller shifts.
        ((u64::from(shift) << PRECISION) + (nanos >> shift)) as usize
    }

    /// The largest latency of a bucket.
    fn upper(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < EXACT {
            return bucket;
        }
        let shift = (bucket >> PRECISION) - 1;
        let kept = bucket - (shift << PRECISION);
        ((kept + 1) << shift) - 1
    }

    /// The latency that this share of all does not exceed; 0 when there are none.
    fn percentile(&self, share: f64) -> u64 {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut below = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            below += count;
            if below >= rank {
                return Self::upper(bucket).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::{EXACT, Histogram};
    use std::time::Duration;

    #[test]
    fn buckets_follow_one_another_without_gaps() {
        let mut last = 0;
        for nanos in (0..EXACT * 16).chain([1 << 20, 1 << 40, u64::MAX / 2]) {
            let bucket = Histogram::bucket(nanos);
            assert!(
                bucket == last || nanos > EXACT * 16 || bucket == last + 1,
                "{nanos}"
            );
            last = bucket;
            let upper = Histogram::upper(bucket);
            assert!(
                upper >= nanos && upper - nanos <= nanos / 100,
                "{nanos} {upper}"
            );
        }
    }

    #[test]
    fn percentiles_of_known_latencies() {
        let mut histogram = Histogram::default();
        for nanos in 1..=100 {
            histogram.record(Duration::from_nanos(nanos));
        }
        assert_eq!(histogram.percentile(0.5), 50);
        assert_eq!(histogram.percentile(0.99), 99);
        assert_eq!(histogram.percentile(1.0), 100);
        assert_eq!((histogram.count, histogram.max), (100, 100));
        assert_eq!(Histogram::default().percentile(0.5), 0);
    }
}
