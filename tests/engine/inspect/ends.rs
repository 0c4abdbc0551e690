//! Calls of the runtime that failed, and how a run ends: every report says it.

use pactql::context::StepClock;
use pactql::inspect::{
    Call, Part, PrefixReport, Report, ReportOptions, ShowReport, StepEvent, StepReport, TokenReport,
};
use pactql::{Context, Engine, Message, NewNode, Provider, Session};

/// A millisecond in nanoseconds.
const MILLISECOND: i64 = 1_000_000;

/// The runtime, whose clock goes on by 100 milliseconds at each reading.
fn runtime() -> Context {
    let start = 1_772_000_000_000 * MILLISECOND;
    let clock = StepClock::new(start, 100 * MILLISECOND);
    Context::builder().clock(clock).build()
}

/// A cycle in which a call fails and the next one is answered.
fn cycle_with_a_failure(context: &mut Context) {
    context.append(Message::user("Is IC 204 late?")).unwrap();
    context.render(Provider::OpenAi).unwrap();
    context.fail_attempt("overloaded").unwrap();
    context.render(Provider::OpenAi).unwrap();
    let reply = Message::assistant("").call("c1", "station_board", "{}");
    context.reply(reply).unwrap();
    context.complete_attempt(12, 5).unwrap();
    context.commit().unwrap();
}

/// What a tool says went wrong.
fn failed_result() -> Message {
    let result = NewNode::new().kind("result").content("no such station");
    let result = result.set("data_call_id", "c1").set("data_is_error", true);
    Message::new("tool").part(result)
}

fn report<R: Report>(session: &Session, part: Part) -> R {
    R::new(&Engine::new(), session, &ReportOptions::new(part)).expect("a report")
}

/// The steps of a session as `label: events`.
fn steps(session: &Session) -> Vec<String> {
    let report: StepReport = report(session, Part::default());
    let line = |step: pactql::inspect::Step| {
        let events: Vec<String> = step.events.iter().map(StepEvent::text).collect();
        format!("{}: {}", step.label, events.join("; "))
    };
    report.steps.into_iter().map(line).collect()
}

#[test]
fn a_call_of_the_runtime_that_failed_is_in_every_report() {
    let mut context = runtime();
    cycle_with_a_failure(&mut context);
    context.append(failed_result()).unwrap();
    context.render(Provider::OpenAi).unwrap();
    context.cancel_attempt().unwrap();
    context.render(Provider::OpenAi).unwrap();
    context.fail_attempt("rate limited").unwrap();
    let session = &context.session();
    assert_eq!(
        steps(session)[0],
        "@t0: failed 1× (overloaded); calls station_board"
    );

    let shown: ShowReport = report(session, Part::default());
    let call = &shown.snapshots[0].call;
    assert_eq!((call.failed, call.canceled), (1, 1));
    assert_eq!(call.error.as_deref(), Some("rate limited"));
    let text = shown.to_text(&ReportOptions::default());
    assert!(
        text.contains("1 call failed: rate limited\n1 call canceled\n"),
        "{text}"
    );

    let tokens: TokenReport = report(session, Part::default());
    assert!(tokens.snapshots[0].call.made);
    let text = tokens.to_text(&ReportOptions::default());
    assert!(!text.contains("no call was made"), "{text}");

    let prefix: PrefixReport = report(session, Part::default().at("@history"));
    assert_eq!(prefix.steps[0].call.failed, 1);

    // The snapshot alone does not have what is beside it.
    let history = session.history();
    let newest = history.committed().last().expect("a commit");
    assert_eq!(Call::from_snapshot(newest).failed, 0);
    assert_eq!(Call::in_history(&history, newest).failed, 1);
}
