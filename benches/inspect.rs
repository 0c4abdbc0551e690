//! What a breakdown of tokens over a whole session costs, against counting each of its distinct texts
//! once, which is the least it could cost; and what a search of all its texts costs.
//!
//! `PACTQL_BENCH_SESSION` names a session; without it, one of 500 cycles is made. Prints the best of
//! five.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run says why")]

use pactql::inspect::{
    By, Counts, GrepReport, Part, Report, ReportOptions, Search, TokenReport, Tokenizer,
};
use pactql::render::{Contents, Wording};
use pactql::{Engine, Session, render::Thread};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

fn best(mut run: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// A session that grows by a question and an answer a cycle.
fn made() -> Session {
    let (mut turns, mut lines) = (String::new(), String::new());
    for cycle in 1..=500 {
        let text: String = (0..120).fold(String::new(), |mut text, word| {
            let _ = write!(text, "word{} ", (word * cycle) % 997);
            text
        });
        if cycle > 1 {
            turns.push(',');
        }
        let _ = write!(
            turns,
            r#"{{"id":"mt:{cycle}","nodeType":"mt","offset":{cycle},"children":[
            {{"id":"q{cycle}","nodeType":"cb","role":"user","content":"{text}"}},
            {{"id":"a{cycle}","nodeType":"cb","role":"assistant","content":"{cycle} {text}"}}]}}"#
        );
        let root =
            format!(r#"{{"children":[{{"id":"^seq","nodeType":"^seq","children":[{turns}]}}]}}"#);
        let line = format!(r#"{{"cycle":{cycle},"root":{root}}}"#).replace('\n', "");
        lines.push_str(&line);
        lines.push('\n');
    }
    Session::from_slice(lines.as_bytes()).unwrap()
}

fn main() {
    let session = match std::env::var("PACTQL_BENCH_SESSION") {
        Ok(path) => Session::open(path).unwrap(),
        Err(_) => made(),
    };
    let history = session.history();
    let mut texts: BTreeSet<String> = BTreeSet::new();
    for snapshot in history.committed().iter() {
        for block in Thread::from_snapshot(snapshot, Contents::All).blocks() {
            texts.extend(Wording::from_block(block).texts().map(str::to_owned));
        }
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    println!(
        "{} snapshots, {} distinct texts, {bytes} bytes",
        history.committed().len(),
        texts.len()
    );
    let (engine, all) = (Engine::new(), Part::default().at("@history"));
    for tokenizer in Tokenizer::ALL {
        let mut sum = 0;
        let once = best(|| sum = texts.iter().map(|text| tokenizer.count(text)).sum());
        let options = ReportOptions::new(all.clone())
            .by(By::Role)
            .tokenizer(*tokenizer);
        let mut found = 0;
        let report = best(|| {
            found = TokenReport::new(&engine, &session, &options)
                .unwrap()
                .distinct
                .tokens
        });
        assert_eq!(found, sum, "{tokenizer}");
        let mut counts = Counts::new(*tokenizer);
        let kept = best(|| sum = texts.iter().map(|text| counts.text(text)).sum());
        println!(
            "{tokenizer}: distinct texts {once:.1?}, breakdown of all snapshots {report:.1?} ({:.2}), texts counted again {kept:.1?}",
            report.as_secs_f64() / once.as_secs_f64()
        );
    }
    let search = Search::new("w[o0]rd12 ", false).unwrap();
    let options = ReportOptions::new(Part::all()).search(search);
    let mut lines = 0;
    let time = best(|| lines = GrepReport::new(&engine, &session, &options).unwrap().lines);
    println!("grep: {lines} lines in {time:.1?}");
}
