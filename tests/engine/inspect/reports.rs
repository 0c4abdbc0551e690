//! Reports over hand-written sessions, and their refusals.

use super::{greenhouse, travel};
use pactql::inspect::{
    By, Call, Part, Report, ReportOptions, StepEvent, StepReport, TokenReport, Tokenizer,
};
use pactql::{Engine, Session};

/// The groups of a report as `name tokens/bytes/blocks`.
fn groups(part: &Part, by: By) -> String {
    let report = TokenReport::new(
        &Engine::new(),
        &travel(),
        &ReportOptions::new(part.clone())
            .by(by)
            .tokenizer(Tokenizer::Bytes4),
    )
    .unwrap();
    let groups = report.snapshots.last().unwrap().groups.iter().map(|group| {
        let (name, totals) = (group.name.as_deref().unwrap_or("-"), group.totals);
        format!(
            "{name} {}/{}/{}",
            totals.tokens, totals.bytes, totals.blocks
        )
    });
    groups.collect::<Vec<_>>().join(", ")
}

#[test]
fn blocks_in_groups() {
    let newest = Part::default();
    let mut wrong = Vec::new();
    for (part, by, expected) in [
        (
            newest.clone(),
            By::Region,
            "^sys 322/1283/5, ^seq 219/850/10",
        ),
        (
            newest.clone(),
            By::Role,
            "system 322/1283/5, tool 102/399/3, assistant 85/325/5, user 32/126/2",
        ),
        (
            newest.clone(),
            By::Kind,
            "tool 282/1123/4, text 108/428/5, result 102/399/3, call 49/183/3",
        ),
        (
            newest.clone(),
            By::Tool,
            "search_trains 212/834/5, - 108/428/5, book_seat 97/377/3, cancel_booking 69/274/1, station_weather 55/220/1",
        ),
        (
            newest.clone().at("@c1"),
            By::Region,
            "^sys 322/1283/5, ^seq 35/136/2",
        ),
        (
            newest.clone().at("@c1").only("^sys .cb[kind=tool]"),
            By::Key,
            "search_trains 90/360/1, cancel_booking 69/274/1, book_seat 68/269/1, station_weather 55/220/1",
        ),
        // A turn means the blocks in it.
        (
            newest.clone().only(".mt:depth(1)"),
            By::Turn,
            "mt:5 33/128/2",
        ),
        (newest.clone().only("none"), By::Turn, ""),
    ] {
        let found = groups(&part, by);
        if found != expected {
            wrong.push(format!("{part:?} by {by:?}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_tokenizer_fits_the_model_and_the_provider_is_beside() {
    let (session, engine) = (travel(), Engine::new());
    let newest = session.history().latest().unwrap().clone();
    let call = Call::from_snapshot(&newest);
    assert_eq!(call.model.as_deref(), Some("gpt-4o-2024-08-06"));
    assert_eq!(
        (call.input_tokens, call.output_tokens),
        (Some(677), Some(28))
    );
    let report =
        TokenReport::new(&engine, &session, &ReportOptions::default().by(By::Role)).unwrap();
    let expected = Tokenizer::for_model("gpt-4o");
    assert_eq!(report.tokenizer, expected);
    assert_eq!(report.snapshots[0].call, call);
    // A session that names no model.
    let report = TokenReport::new(
        &engine,
        &greenhouse(),
        &ReportOptions::default().by(By::Role),
    )
    .unwrap();
    assert_eq!(report.tokenizer, Tokenizer::Bytes4);
    assert_eq!(report.snapshots[0].label, "working");
    assert_eq!(report.snapshots[0].call, Call::default());
}

#[test]
fn ranges_are_oldest_first() {
    for (time, expected) in [
        ("@history", "@t-3 @t-2 @t-1 @t0"),
        ("@*", "@t-3 @t-2 @t-1 @t0"),
        ("@t0..@t-1", "@t-1 @t0"),
        ("@c12..@c13", "@c12 @c13"),
        ("@c12", "@c12"),
        ("@t-1", "@t-1"),
        ("", "working"),
    ] {
        let found = Engine::new()
            .snapshots(&greenhouse().history(), time)
            .unwrap();
        let labels: Vec<String> = found.iter().map(|(at, _)| at.to_string()).collect();
        assert_eq!(labels.join(" "), expected, "{time}");
    }
}

#[test]
fn refusals() {
    for (time, selector, expected) in [
        ("@t-9", None, "no such snapshot"),
        ("@c99..@c100", None, "no such snapshot"),
        ("@t0 .cb", None, "expected a time alone"),
        (".cb", None, "expected a time alone"),
        ("t0", None, "expected a time such as `@t0`"),
        ("@t0", Some("@t0 .cb"), "the selector names a time"),
        ("@t0", Some(".cb["), ""),
        ("@t0", Some(".cb[role=$role]"), "`$role` has no value"),
    ] {
        let mut part = Part::default().at(time);
        if let Some(selector) = selector {
            part = part.only(selector);
        }
        let error = TokenReport::new(
            &Engine::new(),
            &greenhouse(),
            &ReportOptions::new(part).by(By::Role),
        )
        .unwrap_err();
        let message = &error.first().message;
        match expected {
            "" => assert!(!message.is_empty()),
            expected => assert!(message.contains(expected), "{time} {selector:?}: {message}"),
        }
    }
}

/// A call that was stopped did not fail; a log that does not say how its attempts ended has those that failed.
#[test]
fn a_canceled_call_is_not_a_failed_one() {
    let document = r#"{"cycle":1,"meta":{"attempts":[{"status":"error","error":"HTTP 429"},{"status":"canceled"},{"error":"HTTP 500"}]},"root":{"children":[]}}"#;
    let session = Session::from_slice(document.as_bytes()).expect("a session");
    let found = StepReport::new(&Engine::new(), &session, &ReportOptions::default());
    let events = found.expect("a report").steps.swap_remove(0).events;
    let events: Vec<String> = events.iter().map(StepEvent::text).collect();
    assert_eq!(events, ["failed 2× (HTTP 500)", "canceled 1×"]);
}
