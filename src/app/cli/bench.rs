//! `pactql bench`: how long selectors take, against each other and against an earlier measurement.

use super::command::{Invocation, RunCommand};
use super::each_session::open_words;
use super::list::Sizes;
use super::opened::Opened;
use super::options::EditionArgs;
use super::progress::Progress;
use super::sessions::open_again;
use super::{input, output};
use crate::app::measure::allocations;
use crate::app::measure::baseline::{Baseline, Sampled, Since};
use crate::app::measure::compare::{Comparison, compare};
use crate::app::measure::mix::{MOST_WEIGHT, Mix};
use crate::app::measure::run::{Outcome, Work, run_once};
use crate::app::measure::statistics::Ratio;
use crate::app::measure::tally::{Tally, Times};
use crate::app::present::{Exit, Failure, Result, counted};
use crate::engine::{CacheStats, Context, Engine};
use crate::history::Session;
use crate::support::clock;
use crate::support::table::{Paint, TextTable};
use crate::support::text::{amount, short_time};
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long do selectors take?
///
/// Loads the sessions and runs every selector on every session, over and over. A time is that of one select with the
/// list of its ids; selectors are given as text and go through the plan cache. It is the service time: from the
/// beginning of a select to its end, without what reading the clock takes. No select waits for another, so the times
/// say how many selects a second are possible. How long a select waits behind others is in the response time, which
/// --rate measures.
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
    /// How often each selector runs beside the others, in their order: 5,1,1 [default: all the same].
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    weights: Vec<u64>,
    /// Run two selectors, or two files of selectors, in turns: how many times as long does the second take?
    #[arg(long, num_args = 2, value_names = ["A", "B"], allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["selectors", "file", "weights", "zipf", "commits", "threads", "rate", "cold",
        "allocations", "baseline"])]
    compare: Vec<String>,
    /// Choose sessions by Zipf with this exponent, the first most often [default: each in turn].
    #[arg(long, value_name = "S")]
    #[arg(value_parser = number(|number| (0.0..=10.0).contains(&number), "a number from 0 to 10"))]
    zipf: Option<f64>,
    /// The share of operations that add a message and its reply and commit them, in memory, such as 0.1.
    #[arg(long, value_name = "SHARE")]
    #[arg(value_parser = number(|share| share > 0.0 && share < 1.0, "a share between 0 and 1, such as 0.1"))]
    commits: Option<f64>,
    /// The number of threads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Begin N operations a second, and also measure from the moment that each was due.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = number(|rate| (0.001..=1e9).contains(&rate), "a number of operations a second, from 0.001 to 1e9"))]
    rate: Option<f64>,
    /// Open the session again before each select, and compile the selector again.
    #[arg(long, conflicts_with_all = ["commits", "rate"])]
    cold: bool,
    /// Also count the allocations of each select on its thread; needs a build that counts them.
    #[arg(long)]
    allocations: bool,
    /// Compare with the measurement in this file; where there is none, write it.
    #[arg(long, value_name = "FILE")]
    baseline: Option<String>,
    /// Replace the measurement in the file of --baseline.
    #[arg(long, requires = "baseline")]
    force: bool,
    /// Decides what is random: the sessions of --zipf, and the resamples of intervals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many seconds to measure.
    #[arg(long, value_name = "S", default_value = "3")]
    #[arg(value_parser = number(|seconds| seconds > 0.0 && seconds < 1e9, "a positive number of seconds"))]
    duration: f64,
    #[command(flatten)]
    edition: EditionArgs,
}

/// Reads a number that `fits`.
fn number(
    fits: fn(f64) -> bool,
    expected: &'static str,
) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| fits(*number));
        number.ok_or_else(|| format!("expected {expected}"))
    }
}

impl RunCommand for BenchArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        if self.allocations && !allocations::ARE_COUNTED {
            return Err(Failure::usage("this build counts no allocations")
                .with_help("build with `--features count-allocations`"));
        }
        let engine = self.edition.engine();
        if let [first, second] = &self.compare[..] {
            return self.compare([set(first, with)?, set(second, with)?], &engine, with);
        }
        let selectors = &self.selectors(with)?;
        let weights = &self.weights(selectors.len())?;
        let baseline = self.baseline.as_deref().map(Baseline::read).transpose()?;
        let baseline = baseline.flatten();
        let loaded = &self.load(&engine, selectors, with)?;
        let (mut sessions, mut writers) = (loaded.sessions.clone(), Vec::new());
        // Commits are made in live copies.
        for session in sessions.iter_mut().filter(|_| self.commits.is_some()) {
            let context = Context::resume(session)?;
            *session = context.session();
            writers.push(Mutex::new(context));
        }
        let index = Sizes::measure(&sessions);
        let settings = self.settings(&sessions, index.nodes);
        if let (Some(file), Some(baseline), false) = (&self.baseline, &baseline, self.force) {
            baseline.check(file, &settings)?;
        }
        let commits = self.commits.unwrap_or(0.0);
        let open = |at: usize| {
            let opened = open_again(&loaded.opened[at].name, with.limits);
            opened.map_err(|failure| {
                failure
                    .with_help("`--cold` opens each session by its name, so a file must have one")
            })
        };
        let fresh = || self.edition.engine();
        let work = Work {
            engine: &engine,
            selectors,
            sessions: &sessions,
            writers: &writers,
            mix: &Mix::new(weights, sessions.len(), self.zipf, commits),
            seed: self.seed,
            threads: u64::from(self.threads),
            duration: self.duration(),
            rate: self.rate,
            cold: self.cold.then_some((&open, &fresh)),
            counts_allocations: self.allocations,
        };
        clock::cost();
        let before = engine.cache_stats();
        let progress = Progress::spinner("measuring");
        let outcome = work.run()?;
        drop(progress);
        let now = selectors.iter().zip(&outcome.selects);
        let now = now.map(|(selector, tally)| Sampled {
            selector: selector.clone(),
            samples_ns: tally.samples(),
        });
        let now: Vec<Sampled> = now.collect();
        let since = baseline.as_ref();
        let since = since.map(|baseline| baseline.since(&now, self.seed));
        let writes = self.baseline.as_deref();
        let writes = writes.filter(|_| baseline.is_none() || self.force);
        if let Some(file) = writes {
            Baseline::new(settings.clone(), now).write(file)?;
        }
        let report = Report {
            args: self,
            selectors,
            weights,
            loaded,
            settings,
            index,
            cache: cache(before, engine.cache_stats()),
            outcome,
            since,
            writes,
        };
        with.print(&report.json(), || report.text())
    }
}

impl BenchArgs {
    fn compare(&self, sets: [Vec<String>; 2], engine: &Engine, with: &Invocation) -> Result<Exit> {
        let loaded = self.load(engine, &sets.concat(), with)?;
        let progress = Progress::spinner("measuring");
        let sessions = &loaded.sessions;
        let compared = compare(engine, sessions, sets, self.duration(), self.seed)?;
        drop(progress);
        with.print(&compared, || comparison(&compared))
    }
}

/// A set of selectors to compare: those of a file, or one.
fn set(word: &str, with: &Invocation) -> Result<Vec<String>> {
    if !Path::new(word).is_file() {
        return Ok(vec![word.to_owned()]);
    }
    let set = of_file(word, with)?;
    if set.is_empty() {
        return Err(Failure::usage(format!("{word} has no selectors"))
            .with_help("write one selector a line"));
    }
    Ok(set)
}

fn of_file(file: &str, with: &Invocation) -> Result<Vec<String>> {
    let text = input::read(file, with.limits)?;
    let lines = input::lines(&text).map(|line| match line {
        Ok(line) => Ok(line.to_owned()),
        Err(line) => Err(input::not_utf8(&line).into()),
    });
    lines.collect()
}

struct Loaded {
    opened: Vec<Opened>,
    sessions: Vec<Arc<Session>>,
    seconds: f64,
}

impl BenchArgs {
    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.duration)
    }

    fn selectors(&self, with: &Invocation) -> Result<Vec<String>> {
        let mut selectors = self.selectors.clone();
        if let Some(file) = &self.file {
            selectors.extend(of_file(file, with)?);
        }
        if selectors.is_empty() {
            return Err(Failure::usage("`bench` needs a selector after `-e`")
                .with_help("pactql bench SESSION -e SELECTOR"));
        }
        Ok(selectors)
    }

    fn weights(&self, selectors: usize) -> Result<Vec<u64>> {
        let weights = &self.weights;
        if weights.is_empty() {
            return Ok(vec![1; selectors]);
        }
        if weights.len() != selectors {
            let numbers = counted(weights.len() as u64, "number");
            let selectors = counted(selectors as u64, "selector");
            let message = format!("`--weights` has {numbers}, and there are {selectors}");
            return Err(Failure::value(message)
                .with_help("give one number for each selector, in their order"));
        }
        let sum = weights.iter();
        let sum = sum.fold(0, |sum: u64, weight| sum.saturating_add(*weight));
        if !(1..=MOST_WEIGHT).contains(&sum) {
            return Err(
                Failure::value(format!("the sum of `--weights` is {sum}")).with_help(format!(
                    "give small numbers, such as 5,1,1: their sum is from 1 to {MOST_WEIGHT}"
                )),
            );
        }
        Ok(weights.clone())
    }

    /// Opens all sessions, and runs all once: errors are reported, and what is done once is left out of the times.
    fn load(&self, engine: &Engine, selectors: &[String], with: &Invocation) -> Result<Loaded> {
        for selector in selectors {
            engine.prepare(selector)?;
        }
        let start = Instant::now();
        let opened = open_words(&self.sessions, with)?;
        let seconds = start.elapsed().as_secs_f64();
        if opened.is_empty() {
            let message = "there are no sessions to measure on";
            return Err(Failure::plain(Exit::Missing, message)
                .with_help("pactql sessions STORE lists what a store has"));
        }
        for Opened { name, session, .. } in &opened {
            for selector in selectors {
                run_once(engine, session, selector)
                    .map_err(|error| Failure::in_session(error, Some(name)))?;
            }
        }
        let sessions = opened.iter().map(|one| Arc::clone(&one.session));
        Ok(Loaded {
            sessions: sessions.collect(),
            opened,
            seconds,
        })
    }

    /// What is measured, apart from selectors.
    fn settings(&self, sessions: &[Arc<Session>], nodes: u64) -> String {
        let sessions = counted(sessions.len() as u64, "session");
        let threads = counted(u64::from(self.threads), "thread");
        let mut text = format!("{sessions} ({} nodes), {threads}", amount(nodes));
        if let Some(exponent) = self.zipf {
            let _ = write!(text, ", Zipf {exponent}");
        }
        if let Some(share) = self.commits {
            let _ = write!(text, ", commits {share}");
        }
        if let Some(rate) = self.rate {
            let _ = write!(text, ", {rate} a second");
        }
        if self.cold {
            text.push_str(", cold");
        }
        text
    }
}

fn cache(before: CacheStats, after: CacheStats) -> Value {
    let hits = after.text_hits - before.text_hits;
    let misses = after.misses - before.misses;
    let hit_rate = match hits + misses {
        0 => 1.0,
        all => hits as f64 / all as f64,
    };
    json!({
        "hits": hits,
        "misses": misses,
        "evictions": after.evictions - before.evictions,
        "hit_rate": hit_rate,
    })
}

struct Report<'a> {
    args: &'a BenchArgs,
    selectors: &'a [String],
    weights: &'a [u64],
    loaded: &'a Loaded,
    settings: String,
    index: Sizes,
    cache: Value,
    outcome: Outcome,
    since: Option<Vec<Since>>,
    /// The file that the measurement was written to.
    writes: Option<&'a str>,
}

impl Report<'_> {
    /// All selects together.
    fn total(&self) -> Option<Tally> {
        let mut tallies = self.outcome.selects.iter();
        let mut total = tallies.next()?.clone();
        tallies.for_each(|tally| total.add(tally));
        Some(total)
    }

    fn json(&self) -> Value {
        let (args, outcome) = (self.args, &self.outcome);
        let seconds = outcome.elapsed.as_secs_f64();
        let selectors = self.selectors.iter().zip(self.weights);
        let selectors = selectors.zip(&outcome.selects);
        let selectors = selectors.map(|((selector, weight), tally)| {
            let mut json = tally.json(seconds);
            json["selector"] = json!(selector);
            json["weight"] = json!(weight);
            json
        });
        let mut json = json!({
            "settings": self.settings,
            "sessions": self.loaded.sessions.len(),
            "threads": args.threads,
            "seed": args.seed,
            "seconds": seconds,
            "load_seconds": self.loaded.seconds,
            "clock_ns": clock::cost().as_nanos() as u64,
            "cache": self.cache,
            "index": self.index,
            "selectors": selectors.collect::<Vec<_>>(),
            "total": self.total().map(|total| total.json(seconds)),
        });
        if let Some(rate) = args.rate {
            json["rate"] = json!(rate);
        }
        if args.commits.is_some() {
            json["commits"] = outcome.commits.json(seconds);
        }
        if args.cold {
            json["opens"] = outcome.opens.json(seconds);
        }
        if let Some(file) = &args.baseline {
            json["baseline"] = json!({
                "file": file,
                "is_written": self.writes.is_some(),
                "since": self.since,
            });
        }
        json
    }

    fn text(&self) -> String {
        let (args, outcome) = (self.args, &self.outcome);
        let total = self.total().filter(|_| self.selectors.len() > 1);
        let names = self.selectors.iter().map(String::as_str);
        let mut lines: Vec<(&str, &Tally)> = names.zip(&outcome.selects).collect();
        lines.extend(total.as_ref().map(|total| ("all selects", total)));
        if args.commits.is_some() {
            lines.push(("a message, its reply, a commit", &outcome.commits));
        }
        if args.cold {
            lines.push(("opening the session", &outcome.opens));
        }
        let mut text = table(&lines, |tally| Some(&tally.service));
        if args.rate.is_some() {
            text.push_str("\nresponse time, from the moment that an operation was due:\n");
            text += &table(&lines, |tally| tally.response.as_ref());
        }
        let seconds = outcome.elapsed.as_secs_f64();
        let selects = outcome.selects.iter().map(|tally| tally.service.len());
        let selects: u64 = selects.sum();
        let cache = match self.cache["hit_rate"].as_f64() {
            Some(hit_rate) if !args.cold => format!("hits {:.2} %", hit_rate * 100.0),
            _ => "empty each time".to_owned(),
        };
        let _ = write!(
            text,
            "\n{}\n{} selects in {seconds:.1} s, {} a second; loaded in {:.2} s\n\
             plan cache {cache}; index {:.1} bytes a node; the clock's {} taken off\n",
            self.settings,
            amount(selects),
            short(selects as f64 / seconds),
            self.loaded.seconds,
            self.index.index_bytes_per_node,
            short_time(clock::cost().as_nanos() as u64),
        );
        if let (Some(file), Some(since)) = (&args.baseline, &self.since) {
            let _ = write!(text, "\nagainst {file}:\n{}", since_table(since));
        }
        if let Some(file) = self.writes {
            let _ = writeln!(text, "written to {file}");
        }
        text
    }
}

/// Columns of a line.
const WIDTH: usize = 80;

fn table(lines: &[(&str, &Tally)], times: impl Fn(&Tally) -> Option<&Times>) -> String {
    let titles = "mean p50 p99 p99.9 rows allocs selector".split(' ');
    let mut table = TextTable::new(titles).words([6]).numbers([0]).hide_empty();
    for (name, tally) in lines {
        let Some(times) = times(tally) else { continue };
        let quantiles = [0.5, 0.99, 0.999].map(|share| short_time(times.quantile(share)));
        let allocations = tally.allocations;
        let cells = std::iter::once(short_time(times.mean().round() as u64))
            .chain(quantiles)
            .chain([short(tally.each(tally.rows))])
            .chain([allocations.map_or(String::new(), |count| short(tally.each(count)))])
            .chain([output::clean(name, WIDTH)]);
        table.add(cells);
    }
    table.text(Paint::default().columns(Some(WIDTH)))
}

fn since_table(since: &[Since]) -> String {
    let mut table = TextTable::new("before now times from to is selector".split(' '))
        .words([5, 6])
        .numbers([0]);
    for one in since {
        let Ratio { ratio, low, high } = one.ratio;
        let times = [one.before_ns, one.now_ns].map(|nanos| short_time(nanos.round() as u64));
        let ratios = [ratio, low, high].map(|ratio| format!("{ratio:.3}"));
        let words = [one.verdict.to_owned(), output::clean(&one.selector, WIDTH)];
        table.add(times.into_iter().chain(ratios).chain(words));
    }
    table.text(Paint::default().columns(Some(WIDTH)))
}

fn comparison(compared: &Comparison) -> String {
    let table = TextTable::new("a select,rows,".split(',')).words([2]);
    let mut table = table.numbers([0]);
    let Comparison { first, second, .. } = compared;
    for (name, side) in [("A", first), ("B", second)] {
        let selectors = match &side.selectors[..] {
            [selector] => output::clean(selector, WIDTH),
            selectors => counted(selectors.len() as u64, "selector"),
        };
        let (time, rows) = (side.select_ns.round() as u64, side.rows as u64);
        table.add([
            short_time(time),
            amount(rows),
            format!("{name}  {selectors}"),
        ]);
    }
    let Ratio { ratio, low, high } = compared.ratio;
    let verdict = match compared.verdict {
        "same" => "no difference is seen",
        "slower" => "B is slower",
        _ => "B is faster",
    };
    format!(
        "{}\nB takes {ratio:.3} times as long as A, {low:.3} to {high:.3} with 95 % confidence,\n\
         in {} rounds: {verdict}\n",
        table.text(Paint::default().columns(Some(WIDTH))),
        compared.rounds,
    )
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
