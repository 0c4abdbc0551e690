//! `bench`: the shape of its report, what adds up in it, and its options. No test looks at how long something took.

use serde_json::Value;

use super::{AGENT, Scratch, answer, fails, pactql};

const CALLS: &str = "@t0 .cb[kind='call']";
const RANGE: &str = "@t-2..@t0 .cb:summary";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// What `bench` prints as JSON, over a short time.
fn bench(arguments: &[&str]) -> Value {
    bench_for("0.05", arguments)
}

fn bench_for(seconds: &str, arguments: &[&str]) -> Value {
    let more = ["--duration", seconds, "--json"];
    parsed(&answer(&[&["bench"], arguments, &more].concat()))
}

fn count(tally: &Value) -> u64 {
    tally["count"].as_u64().expect("a count")
}

fn assert_times(tally: &Value, name: &str) {
    let time = |of: &str| tally[name][of].as_f64().expect("a time");
    let all = ["p50", "p99", "p99_9", "max"].map(time);
    assert!(all.is_sorted(), "{tally}");
    assert!(time("mean") <= time("max"), "{tally}");
}

#[test]
fn a_report_has_each_selector_in_order() {
    let json = bench(&[AGENT, AGENT, "-e", CALLS, "-e", RANGE, "--threads", "2"]);
    assert_eq!(
        (&json["sessions"], &json["threads"]),
        (&2.into(), &2.into())
    );
    assert_eq!(json["seed"], 1);
    let selectors = json["selectors"].as_array().expect("selectors");
    let names: Vec<&Value> = selectors.iter().map(|one| &one["selector"]).collect();
    assert_eq!(names, [CALLS, RANGE]);
    assert_eq!(selectors[0]["rows"], 4.0);
    for tally in [&selectors[0], &selectors[1], &json["total"]] {
        assert_times(tally, "service_ns");
        assert!(tally["per_second"].as_f64() > Some(0.0), "{json}");
        assert!(tally["response_ns"].is_null() && tally["allocations"].is_null());
    }
    let all: u64 = selectors.iter().map(count).sum();
    assert_eq!(count(&json["total"]), all);
    assert_eq!(json["cache"]["hit_rate"], 1.0);
    assert!(json["index"]["index_bytes_per_node"].as_f64() > Some(0.0));
    for absent in ["rate", "commits", "opens", "baseline"] {
        assert!(json[absent].is_null(), "{absent}");
    }
}

#[test]
fn weights_are_the_shares_of_selectors() {
    let json = bench(&[
        AGENT,
        "-e",
        CALLS,
        "-e",
        RANGE,
        "-e",
        "@t0 none",
        "--weights",
        "3,1,0",
    ]);
    let counts = [0, 1, 2].map(|at| count(&json["selectors"][at]));
    assert_eq!(counts[2], 0);
    // A run ends anywhere in a cycle of four.
    assert!(counts[0].abs_diff(counts[1] * 3) <= 3, "{counts:?}");
    assert_eq!(json["selectors"][0]["weight"], 3);
}

#[test]
fn commits_are_mixed_in_and_grow_the_sessions() {
    let mixed = ["--commits", "0.25", "--zipf", "1", "--threads", "2"];
    let json = bench_for("0.3", &[&[AGENT, "-e", "@t0 .mt"], &mixed[..]].concat());
    let (selects, commits) = (count(&json["total"]), count(&json["commits"]));
    assert!(
        commits > 0 && selects.abs_diff(commits * 3) <= 8,
        "{selects} and {commits}"
    );
    assert_times(&json["commits"], "service_ns");
    // The session of the file has 4 turns.
    assert!(json["total"]["rows"].as_f64() > Some(4.0), "{json}");
    let again = bench(&[AGENT, "-e", "@t0 .mt"]);
    assert_eq!(again["total"]["rows"], 4.0, "the file is as it was");
}

#[test]
fn a_rate_is_kept_and_measured_from_when_an_operation_was_due() {
    let json = bench(&[AGENT, "-e", CALLS, "--rate", "400"]);
    assert_eq!(json["rate"], 400.0);
    // In 0.05 seconds 20 moments are due, and no operation begins before its own.
    assert_eq!(count(&json["total"]), 20);
    assert_times(&json["total"], "response_ns");
    let times = |name: &str| json["total"][name]["mean"].as_f64();
    assert!(times("response_ns") >= times("service_ns"), "{json}");
}

#[test]
fn cold_selects_open_the_session_and_compile_again() {
    let json = bench(&[AGENT, "-e", CALLS, "--cold"]);
    assert_eq!(count(&json["opens"]), count(&json["total"]));
    assert_eq!(json["cache"]["hits"], 0, "the plans of others are not used");
    assert_eq!(json["selectors"][0]["rows"], 4.0);
}

#[test]
fn allocations_are_counted() {
    if !cfg!(feature = "count-allocations") {
        fails(
            &["bench", AGENT, "-e", CALLS, "--allocations"],
            1,
            "--features count-allocations",
        );
        return;
    }
    let json = bench(&[AGENT, "-e", CALLS, "-e", RANGE, "--allocations"]);
    let of = |at: usize| {
        json["selectors"][at]["allocations"]
            .as_f64()
            .expect("a number")
    };
    // A list of ids is one allocation, a diff is many.
    assert!((1.0..8.0).contains(&of(0)) && of(1) > of(0), "{json}");
    let text = answer(&[
        "bench",
        AGENT,
        "-e",
        CALLS,
        "--allocations",
        "--duration",
        "0.02",
        "--format",
        "text",
    ]);
    assert!(text.contains("allocs"), "{text}");
}

#[test]
fn two_selectors_or_files_are_compared() {
    let scratch = Scratch::new("bench-compare");
    let file = scratch.0.join("set.txt");
    std::fs::write(&file, format!("{CALLS}\n{RANGE}\n")).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let json = bench(&[AGENT, "--compare", "@t0 #hero", file]);
    assert_eq!(json["first"]["selectors"], serde_json::json!(["@t0 #hero"]));
    assert_eq!(
        json["second"]["selectors"],
        serde_json::json!([CALLS, RANGE])
    );
    let number = |name: &str| json[name].as_f64().expect("a number");
    assert!(
        number("low") <= number("ratio") && number("ratio") <= number("high"),
        "{json}"
    );
    assert!(number("low") > 0.0 && number("rounds") >= 10.0, "{json}");
    let verdict = match (number("low") > 1.0, number("high") < 1.0) {
        (true, _) => "slower",
        (_, true) => "faster",
        _ => "same",
    };
    assert_eq!(json["verdict"], verdict);
    let text = answer(&[
        "bench",
        AGENT,
        "--compare",
        CALLS,
        CALLS,
        "--duration",
        "0.02",
        "--format",
        "text",
    ]);
    assert!(
        text.contains("times as long as A") && text.contains(CALLS),
        "{text}"
    );
}

#[test]
fn a_baseline_is_written_then_compared_with() {
    let scratch = Scratch::new("bench-baseline");
    let file = scratch.0.join("base.json");
    let file = file.to_str().expect("UTF-8");
    // Long enough for samples in several parts of the run, whatever else the machine does.
    let first = bench_for(
        "0.5",
        &[AGENT, "-e", CALLS, "-e", RANGE, "--baseline", file],
    );
    assert_eq!(first["baseline"]["is_written"], true);
    assert!(first["baseline"]["since"].is_null(), "{first}");
    let written = std::fs::read(file).expect("a baseline");
    let selectors = [AGENT, "-e", RANGE, "-e", "@t0 none", "-e", CALLS];
    let second = bench_for("0.5", &[&selectors[..], &["--baseline", file]].concat());
    assert_eq!(second["baseline"]["is_written"], false);
    let since = second["baseline"]["since"]
        .as_array()
        .expect("a comparison");
    let names: Vec<&Value> = since.iter().map(|one| &one["selector"]).collect();
    assert_eq!(
        names,
        [RANGE, CALLS],
        "those that both have, in the order of now"
    );
    for one in since {
        let number = |name: &str| one[name].as_f64().expect("a number");
        assert!(
            number("low") <= number("ratio") && number("ratio") <= number("high"),
            "{one}"
        );
        assert!(number("before_ns") > 0.0 && number("now_ns") > 0.0, "{one}");
    }
    assert_eq!(std::fs::read(file).expect("a baseline"), written);
    // Another measurement is not compared, and nothing is replaced unless it is asked for.
    let other = [
        "bench",
        AGENT,
        AGENT,
        "-e",
        CALLS,
        "--duration",
        "0.02",
        "--baseline",
        file,
    ];
    fails(&other, 1, "was measured with 1 session");
    let third = bench(&[AGENT, AGENT, "-e", CALLS, "--baseline", file, "--force"]);
    assert_eq!(third["baseline"]["is_written"], true);
    assert_ne!(std::fs::read(file).expect("a baseline"), written);
    let text = answer(&[&other[..], &["--format", "text"]].concat());
    assert!(text.contains(&format!("against {file}")), "{text}");
    std::fs::write(file, "{}").expect("a file");
    fails(&other, 1, "is not a baseline");
}

#[test]
fn tables_fit_80_columns() {
    let long =
        "@t0 ^seq .mt:depth(1-3) .cb[role='assistant'][kind='text'], @t0 .cb".replace(", @t0", ",");
    let more = [
        "--rate",
        "300",
        "--commits",
        "0.1",
        "--duration",
        "0.05",
        "--format",
        "text",
    ];
    let text = answer(&[&["bench", AGENT, "-e", &long, "-e", CALLS], &more[..]].concat());
    for part in [
        "p99.9",
        "response time",
        "all selects",
        "a message, its",
        "taken off",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{text}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let good = ["bench", AGENT, "-e", CALLS];
    for (options, code, said) in [
        (&["--threads", "0"][..], 3, "0 is not in 1..=1024"),
        (&["--duration=-1"], 3, "positive"),
        (
            &["--weights", "1,2"],
            3,
            "2 numbers, and there are 1 selector",
        ),
        (&["--weights", "0"], 3, "the sum of `--weights` is 0"),
        (&["--weights", "10001"], 3, "from 1 to 10000"),
        (&["--weights", "x"], 3, "invalid digit"),
        (&["--zipf", "11"], 3, "from 0 to 10"),
        (&["--commits", "1"], 3, "between 0 and 1"),
        (&["--commits", "x"], 3, "between 0 and 1"),
        (&["--rate", "0"], 3, "operations a second"),
        (&["--force"], 1, "--baseline"),
        (&["--cold", "--rate", "5"], 1, "cannot be used"),
        (&["--cold", "--commits", "0.5"], 1, "cannot be used"),
        (&["--compare", CALLS, CALLS], 1, "cannot be used"),
        (&["-e", "@t0 .cb["], 2, "E_SELECTOR_INVALID"),
        (&["-e", "@c99 .cb"], 2, "E_SNAPSHOT_NOT_FOUND"),
    ] {
        fails(&[&good, options].concat(), code, said);
    }
    fails(&["bench", AGENT], 1, "needs a selector");
    fails(&["bench", AGENT, "--compare", CALLS], 1, "2 values");
    fails(
        &["bench", AGENT, "--compare", CALLS, "@t0 ["],
        2,
        "E_SELECTOR_INVALID",
    );
    let ran = pactql(&[
        "bench",
        AGENT,
        "-e",
        CALLS,
        "--duration",
        "0.01",
        "--zipf",
        "0.5",
        "--seed",
        "7",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}
