//! What the page and the receipt of a long session cost: time, memory, size. What a browser makes of a page is
//! measured by `web/test`.
//!
//! The session has 1,000 steps and 815 KB of messages: conversations of recorded logs, one after the other, and
//! again from the first one with a number before each text if there are too few. The log is read from
//! `PACTQL_DATA`, or from `../shared/data`; without it nothing is measured. Times are
//! medians of seven runs.

#[allow(dead_code, reason = "other benches use the rest")]
#[path = "support/memory.rs"]
mod memory;

use flate2::read::GzDecoder;
use memory::{Counting, measure};
use pactql::inspect::share::{Page, Redactor, page, receipt};
use pactql::inspect::{Counts, Prices, Tokenizer};
use pactql::logs::{ImportOptions, import};
use pactql::{History, Session};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const STEPS: usize = 1_000;
const BYTES: usize = 815_000;

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let data = std::env::var_os("PACTQL_DATA").map_or(beside, PathBuf::from);
    let log = data.join("tau-bench-airline/gpt-4o-airline.json.gz");
    let Ok(file) = std::fs::File::open(&log) else {
        println!("SKIPPED: there is no log at {}", log.display());
        return;
    };
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("a log");
    let session = grown(&serde_json::from_str(&text).expect("JSON"));
    let history = session.history();
    println!("{} steps", history.committed().len());
    // As a test, everything runs once.
    let rounds = if std::env::args().any(|argument| argument == "--bench") {
        7
    } else {
        1
    };
    for tokenizer in Tokenizer::ALL {
        // The first count unpacks the vocabulary.
        let _ = tokenizer.count("a");
        let (made, kept, peak) =
            measure(|| page_of(&history, *tokenizer, &mut Redactor::default()));
        let time = median(rounds, || {
            drop(page_of(&history, *tokenizer, &mut Redactor::default()))
        });
        let size = made.data().len();
        println!(
            "page, {tokenizer}: {time:?}, {size} bytes, {kept} bytes kept, {peak} bytes at the peak"
        );
        let counts = || Counts::new(*tokenizer);
        let (made, _, peak) = measure(|| receipt(&history, &mut counts()));
        let time = median(rounds, || drop(receipt(&history, &mut counts())));
        let size = serde_json::to_string(&made).expect("JSON").len();
        println!("receipt, {tokenizer}: {time:?}, {size} bytes, {peak} bytes at the peak");
    }
    let time = median(rounds, || {
        let mut redactor = Redactor::new(["[a-z]+_[0-9]+", "[A-Z0-9]{6}"]).expect("patterns");
        drop(page_of(&history, Tokenizer::Bytes4, &mut redactor));
    });
    println!("page, two patterns: {time:?}");
}

fn page_of(history: &History, tokenizer: Tokenizer, redactor: &mut Redactor) -> Page {
    page(
        history,
        "airline",
        redactor,
        &mut Counts::new(tokenizer),
        &Prices::default(),
    )
}

/// A session of conversations one after the other.
fn grown(log: &Value) -> Session {
    let mut messages: Vec<Value> = Vec::new();
    let (mut bytes, mut replies) = (0, 0);
    let conversations = log.as_array().expect("conversations");
    'grow: for round in 0.. {
        for conversation in conversations {
            for message in conversation["traj"].as_array().expect("messages") {
                if (message["role"] == "system" && !messages.is_empty())
                    || (bytes >= BYTES && message["role"] != "assistant")
                {
                    continue;
                }
                let mut message = message.clone();
                if let (1.., Some(text)) = (round, message["content"].as_str()) {
                    message["content"] = format!("{round} {text}").into();
                }
                bytes += message.to_string().len();
                replies += usize::from(message["role"] == "assistant");
                messages.push(message);
                if replies == STEPS {
                    break 'grow;
                }
            }
        }
    }
    println!("{} messages, {bytes} bytes of JSON", messages.len());
    let log = serde_json::to_vec(&messages).expect("JSON");
    let imported = import(&log, &ImportOptions::default()).expect("a log");
    let mut lines = Vec::new();
    let recording = &imported.sessions[0].recording;
    recording.write_jsonl(&mut lines, false).expect("memory");
    Session::from_slice(&lines).expect("a session")
}

fn median(rounds: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[rounds / 2]
}
