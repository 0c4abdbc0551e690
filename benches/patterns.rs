//! What patterns cost: for each, the time to select the contents of a session that match, over 5 MB in
//! nodes of 16 KB, and to find all matches in one text of 128 KB, which a redaction replaces. Most of the patterns
//! are the worst for engines of regular expressions. Last, how long a call runs on after its token was set.
//!
//! `cargo bench --bench patterns`

use std::time::Instant;

use pactql::inspect::share::Redactor;
use pactql::{Cancel, Engine, Session};

/// Contents of a node, in bytes.
const NODE: usize = 16 << 10;

/// A session with so many megabytes of contents, made by `content` for each node.
fn session(megabytes: usize, content: impl Fn(usize) -> String) -> Session {
    let nodes = (megabytes << 20) / NODE;
    let blocks: Vec<String> = (0..nodes)
        .map(|node| {
            let text = serde_json::to_string(&content(node)).expect("a text");
            format!(r#"{{"id":"b{node}","nodeType":"cb","offset":{node},"content":{text}}}"#)
        })
        .collect();
    let turn = format!(
        r#"{{"id":"t","nodeType":"mt","created_at_ns":1,"children":[{{"id":"c","nodeType":"mc","children":[{}]}}]}}"#,
        blocks.join(",")
    );
    let seq = format!(r#"{{"id":"q","nodeType":"^seq","children":[{turn}]}}"#);
    let line = format!(r#"{{"cycle":1,"root":{{"id":"r","children":[{seq}]}}}}"#);
    Session::from_slice(line.as_bytes()).expect("a session")
}

/// Prose with a few letters that are not ASCII.
fn prose(node: usize) -> String {
    let line = "The refund of order 7341 was sent on Monday; Müller asked again, and we said no. ";
    let mut text = line.repeat(NODE / line.len());
    text.push_str(&node.to_string());
    text
}

/// Letters in no order, which no automaton foresees.
fn noise(node: usize) -> String {
    let mut random = 88_172_645_463_325_252_u64 + node as u64;
    let letters = (0..NODE).map(|_| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if random & 1 == 0 { 'a' } else { 'b' }
    });
    letters.collect()
}

fn main() {
    let many = |part: &str, count: usize| part.repeat(count);
    let patterns = [
        ("plain scan", "([a-z]+[a-z]+)+[~|]".to_owned()),
        ("letters are skipped", "[xy][zx]q".to_owned()),
        ("a literal: zebra", "zebra".to_owned()),
        ("a[ab]{15}[~|]", "a[ab]{15}[~|]".to_owned()),
        ("a[ab]{900}[~|]", "a[ab]{900}[~|]".to_owned()),
        ("(a?){200}a{200}[~|]", "(a?){200}a{200}[~|]".to_owned()),
        ("(?:[ab]?.){30}[~|]", "(?:[ab]?.){30}[~|]".to_owned()),
        ("20 times `.*a.*b`", many(".*a.*b", 10) + "[~|]"),
        ("(\\w+\\s?){12}[~|]", "(\\w+\\s?){12}[~|]".to_owned()),
        ("\\w{100}[~|]", "\\w{100}[~|]".to_owned()),
        (
            "\\b\\w+\\b\\s\\b\\w+\\b[~|]",
            "\\b\\w+\\b\\s\\b\\w+\\b[~|]".to_owned(),
        ),
        ("\\Ba[ab]{100}\\B[~|]", "\\Ba[ab]{100}\\B[~|]".to_owned()),
        (
            "(?i)refund.{0,80}declined",
            "(?i)refund.{0,80}declined".to_owned(),
        ),
    ];
    let engine = Engine::new();
    let texts: [(&str, Session); 2] = [("prose", session(5, prose)), ("noise", session(5, noise))];
    println!("\n| 5 MB | prose, ms | noise, ms |\n|---|---:|---:|");
    for (name, pattern) in &patterns {
        let mut times = Vec::new();
        for (_, session) in &texts {
            let begun = Instant::now();
            let found = engine
                .prepare("@t0 .cb[content~$pattern]")
                .and_then(|prepared| prepared.bind([("pattern", pattern.as_str().into())]))
                .and_then(|bound| Ok(bound.rows(session)?.count()));
            if let Err(error) = found {
                println!("| `{name}` | refused: {} |", error.message());
                break;
            }
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        if let [prose, noise] = times[..] {
            println!("| `{name}` | {prose:.1} | {noise:.1} |");
        }
    }
    finds(&patterns);
    stops(&engine);
}

/// The time to find all matches in one text of 128 KB.
fn finds(patterns: &[(&str, String)]) {
    let text = |content: &dyn Fn(usize) -> String| {
        let nodes = (128 << 10) / NODE;
        (0..nodes).map(content).collect::<String>() + "~"
    };
    let texts = [text(&prose), text(&noise)];
    let everywhere = ("everywhere: [a-z]", "[a-z]".to_owned());
    println!("\n| all matches, 128 KB | prose, ms | noise, ms |\n|---|---:|---:|");
    for (name, pattern) in patterns.iter().chain([&everywhere]) {
        let Ok(mut redactor) = Redactor::new([pattern]) else {
            println!("| `{name}` | refused |");
            continue;
        };
        let [prose, noise] = texts.each_ref().map(|text| {
            let begun = Instant::now();
            std::hint::black_box(redactor.redact(text));
            begun.elapsed().as_secs_f64() * 1e3
        });
        println!("| `{name}` | {prose:.0} | {noise:.0} |");
    }
}

/// How long a call runs on after its token was set.
fn stops(engine: &Engine) {
    let session = session(50, noise);
    let mut worst = 0.0_f64;
    for at in (1..40).map(|tenths| tenths * 20) {
        let cancel = Cancel::new();
        let stop = cancel.clone();
        let set = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(at));
            stop.cancel();
            Instant::now()
        });
        let outcome = cancel.run(|| {
            engine
                .rows(&session, "@t0 .cb[content~'a[ab]{900}[~|]']")
                .map(|rows| rows.count())
        });
        let ended = Instant::now();
        let set = set.join().expect("a thread");
        if outcome.is_err() {
            worst = worst.max(ended.saturating_duration_since(set).as_secs_f64() * 1e3);
        }
    }
    println!("\nafter the token was set, a call ran on for at most {worst:.2} ms");
}
