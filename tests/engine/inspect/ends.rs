//! Calls of the runtime that failed, and how a run ends: every report says it.

use super::imported;
use pactql::context::StepClock;
use pactql::history::ContentOptions;
use pactql::inspect::{
    AssertReport, Call, Condition, Part, Parted, PrefixReport, Prices, Report, ReportOptions, Run,
    RunEnd, ShowReport, StepEvent, StepReport, TokenReport, Usage, UsageBy,
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

/// A commit counts as a request if it has a reply of the model or an attempt.
#[test]
fn a_commit_without_a_call_is_not_a_request() {
    let requests = |context: &Context| {
        let session = &context.session();
        let mut usage = Usage::new(UsageBy::Session, Prices::default());
        usage.add("s", session).expect("in memory");
        let tokens: TokenReport = report(session, Part::default());
        assert_eq!(tokens.session, usage.total);
        let prefix: PrefixReport = report(session, Part::default());
        assert_eq!(prefix.steps.len() as u64, usage.total.requests);
        (usage.total.requests, usage.total.uncounted)
    };
    let mut context = runtime();
    context.append(Message::user("q")).unwrap();
    context.render(Provider::OpenAi).unwrap();
    context.reply(Message::assistant("a")).unwrap();
    context.complete_attempt(5, 7).unwrap();
    for _ in 0..3 {
        context.commit().unwrap();
    }
    assert_eq!(requests(&context), (1, 0));
    context.append(Message::user("a note")).unwrap();
    context.commit().unwrap();
    assert_eq!(requests(&context), (1, 0));
    context.append(Message::user("again")).unwrap();
    context.reply(Message::assistant("b")).unwrap();
    context.commit().unwrap();
    assert_eq!(requests(&context), (2, 1));
    context.append(Message::user("and again")).unwrap();
    context.render(Provider::OpenAi).unwrap();
    context.fail_attempt("overloaded").unwrap();
    context.commit().unwrap();
    assert_eq!(requests(&context), (3, 2));
    let made = report::<StepReport>(&context.session(), Part::default()).steps;
    let made: Vec<bool> = made.iter().map(|step| step.call.made).collect();
    assert_eq!(made, [true, false, false, false, true, true]);
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

/// A Codex log of a prompt and its reply, and then these lines.
fn codex(more: &str) -> Session {
    let line = |at: u32, kind: &str, payload: &str| {
        format!(
            r#"{{"timestamp":"2026-03-01T10:00:{at:02}Z","type":"{kind}","payload":{payload}}}"#
        )
    };
    let said = |role: &str, kind: &str, text: &str| {
        format!(
            r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#
        )
    };
    let mut log = vec![
        line(0, "session_meta", r#"{"id":"s1","cwd":"/work"}"#),
        line(
            1,
            "response_item",
            &said("user", "input_text", "Open the vents."),
        ),
        line(
            3,
            "response_item",
            &said("assistant", "output_text", "They are open."),
        ),
    ];
    for word in more.split_whitespace() {
        log.push(match word {
            "prompt" => line(7, "response_item", &said("user", "input_text", "And now?")),
            _ => line(
                9,
                "event_msg",
                r#"{"type":"error","message":"usage limit reached"}"#,
            ),
        });
    }
    imported(log.join("\n").as_bytes())
}

/// A list of Anthropic messages that ends with a failed result.
fn failed_tool() -> Session {
    imported(
        br#"{"messages":[{"role":"user","content":"Is IC 204 late?"},
            {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"station_board","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no such station"}]}]}"#,
    )
}

#[test]
fn what_came_after_the_last_reply_is_the_last_step() {
    for (session, expected) in [
        (codex(""), &["@t0: reply"][..]),
        (
            codex("prompt"),
            &["@t0: reply", "working: no reply to 1 text"],
        ),
        (
            codex("prompt error"),
            &[
                "@t0: reply",
                "working: failed 1× (usage limit reached); no reply to 1 text",
            ],
        ),
        (
            failed_tool(),
            &[
                "@t0: calls station_board",
                "working: tool errors 1×; no reply to 1 result",
            ],
        ),
    ] {
        assert_eq!(steps(&session), expected);
    }
    let session = codex("prompt error");
    let whole: StepReport = report(&session, Part::default());
    let last = whole.steps.last().expect("a step");
    assert_eq!((last.cycle, last.matches, last.added), (2, 3, 1));
    assert_eq!(last.time.as_deref(), Some("2026-03-01T10:00:07Z"));
    let text = whole.to_text(&ReportOptions::default());
    assert!(
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with("working  10:00:07")),
        "{text}"
    );
    // Another selector, also one that needs a time, and a range of snapshots.
    let counted: StepReport = report(&session, Part::default().only(".cb[age<9][role='user']"));
    let last = counted.steps.last().expect("a step");
    assert_eq!(
        (last.matches, last.added, last.removed, last.changed),
        (2, 1, 0, 0)
    );
    for time in ["@history", "@t0", "@c1..@c9"] {
        let range: StepReport = report(&session, Part::default().at(time));
        assert_eq!(range.steps.len(), 1, "{time}");
    }
}

/// The runtime keeps calls without a working state of its own, and before the first commit.
#[test]
fn calls_of_the_runtime_after_the_last_reply_are_the_last_step() {
    let mut context = runtime();
    context.append(Message::user("Is IC 204 late?")).unwrap();
    context.render(Provider::OpenAi).unwrap();
    context.fail_attempt("overloaded").unwrap();
    let alone = "working: failed 1× (overloaded); no reply to 1 text";
    assert_eq!(steps(&context.session()), [alone]);

    let mut context = runtime();
    cycle_with_a_failure(&mut context);
    let committed = "@t0: failed 1× (overloaded); calls station_board";
    assert_eq!(steps(&context.session()), [committed]);
    context.render(Provider::OpenAi).unwrap();
    assert_eq!(
        steps(&context.session()),
        [committed],
        "the call is running"
    );
    context.cancel_attempt().unwrap();
    assert_eq!(
        steps(&context.session()),
        [committed, "working: canceled 1×"]
    );
    context.append(failed_result()).unwrap();
    let both = "working: canceled 1×; tool errors 1×; no reply to 1 result";
    assert_eq!(steps(&context.session()), [committed, both]);

    // A result in the cycle of the reply: nothing answered it either.
    let mut context = runtime();
    context.append(Message::user("Is IC 204 late?")).unwrap();
    let reply = Message::assistant("").call("c1", "station_board", "{}");
    context.reply(reply).unwrap();
    context.append(failed_result()).unwrap();
    context.commit().unwrap();
    let late = "@t0: tool errors 1×; calls station_board; no reply to 1 result";
    assert_eq!(steps(&context.session()), [late]);
    context.append(Message::user("Well?")).unwrap();
    context.commit().unwrap();
    assert_eq!(
        steps(&context.session())[0],
        "@t-1: tool errors 1×; calls station_board"
    );
}

/// How a run ends, in words.
fn end(end: &RunEnd) -> String {
    let events: Vec<String> = end.events.iter().map(StepEvent::text).collect();
    let cycle = end.cycle.expect("a cycle");
    format!(
        "{} steps, @c{cycle}, working {}: {}",
        end.steps,
        end.working,
        events.join("; ")
    )
}

#[test]
fn runs_differ_by_what_came_after_the_last_reply() {
    let replied = codex("");
    for (other, at, expected) in [
        (
            codex("prompt"),
            Parted::End,
            "1 steps, @c2, working true: no reply to 1 text",
        ),
        (
            codex("prompt error"),
            Parted::End,
            "1 steps, @c2, working true: failed 1× (usage limit reached); no reply to 1 text",
        ),
    ] {
        let [a, b] = [&replied, &other].map(|session| Run::new(session).expect("a run"));
        let found = a.divergence(&b, &ContentOptions::default());
        let parted = found.parted.expect("a parting");
        assert_eq!((found.equal, parted.at), (1, at));
        assert_eq!((parted.cycle_a, parted.cycle_b), (None, Some(2)));
        assert_eq!(end(&found.a), "1 steps, @c1, working false: reply");
        assert_eq!(end(&found.b), expected);
        assert_eq!(found.b.block.as_deref(), Some("cb:3-1"));
        // Beside itself it is the same to its end, which is not a step.
        let same = b.divergence(&b, &ContentOptions::default());
        assert!(same.parted.is_none() && same.meet.is_none());
        assert_eq!((same.equal, b.len()), (1, 1));
    }
    // The call of one failed, and that of the other was not made.
    let [a, b] = ["prompt", "prompt error"].map(|more| Run::new(&codex(more)).expect("a run"));
    let found = a.divergence(&b, &ContentOptions::default());
    assert_eq!(found.parted.map(|parted| parted.at), Some(Parted::Answer));

    let run = Run::new(&failed_tool()).expect("a run");
    let found = run.divergence(&run, &ContentOptions::default());
    assert_eq!(
        end(&found.a),
        "1 steps, @c2, working true: tool errors 1×; no reply to 1 result"
    );
}

#[test]
fn a_condition_on_all_snapshots_says_what_it_leaves_out() {
    let session = failed_tool();
    for (condition, holds, notes) in [
        (
            "none @* .cb[data_is_error=true]",
            true,
            &[
                "the working state, which is not a snapshot, has 1 match more; for these add a condition on `.cb[data_is_error=true]`",
            ][..],
        ),
        ("none .cb[data_is_error=true]", false, &[]),
        ("none @t0 .cb[data_is_error=true]", true, &[]),
        ("none @* .cb[kind='image']", true, &[]),
        // The working state has the call, too.
        ("count @* .cb[kind='call'] <= 1", true, &[]),
        (
            "some @t-*..@t0 .cb[kind='result'] @mode=union",
            false,
            &[
                "the working state, which is not a snapshot, has 1 match more; a selector without a time reads it",
            ],
        ),
    ] {
        let conditions = Condition::parse_file(condition).expect(condition);
        let options = ReportOptions::default().conditions(conditions);
        let report = AssertReport::new(&Engine::new(), &session, &options).expect("a report");
        let checked = &report.conditions[0];
        assert_eq!(
            (
                checked.holds,
                &checked.notes.iter().map(String::as_str).collect::<Vec<_>>()[..]
            ),
            (holds, notes),
            "{condition}"
        );
    }
}
