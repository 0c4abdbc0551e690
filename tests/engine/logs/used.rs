//! What a call used, under the same names whatever the log says it in.

use super::{holds_together, imported};
use pactql::Engine;
use pactql::inspect::{Prices, Report, ReportOptions, StepReport, TokenReport, Usage, UsageBy};
use pactql::logs::{ImportOptions, MessageLocation, import};
use serde_json::{Value, json};

/// The `usage` of each snapshot of a log, and the report of its import.
fn used(log: &str) -> (Vec<Value>, Value) {
    let imported = imported(log.as_bytes(), MessageLocation::default());
    let export = holds_together(&imported)[0].export(true);
    let usage = |line: &str| {
        let document: Value = serde_json::from_str(line).expect("JSON");
        document["usage"].clone()
    };
    (
        export.lines().map(usage).collect(),
        imported.report.to_json(),
    )
}

/// A chat with this usage object.
fn chat(usage: &Value) -> String {
    json!({
        "request": {"model": "m", "messages": [{"role": "user", "content": "How many?"}]},
        "response": {
            "object": "chat.completion",
            "choices": [{"message": {"role": "assistant", "content": "Two."}, "finish_reason": "stop"}],
            "usage": usage,
        },
    })
    .to_string()
}

/// A sample of inspect_ai whose call has this output beside its reply.
fn inspect(usage: &Value) -> String {
    let message = json!({"role": "assistant", "content": "Two."});
    json!({
        "eval": {"task": "sums"}, "plan": {},
        "samples": [{"id": "a", "epoch": 1, "messages": [], "events": [{
            "event": "model", "model": "m", "tools": [], "config": {},
            "input": [{"role": "user", "content": "How many?"}],
            "output": {
                "model": "m", "choices": [{"message": message, "stop_reason": "stop"}], "usage": usage,
                "time": 2.5, "error": "cut off", "seed": 7,
            },
        }]}],
    })
    .to_string()
}

/// A span of a chat with these attributes, and events.
fn span(own: Vec<Value>, events: &Value) -> String {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let message = |role: &str| {
        let parts = json!([{"type": "text", "content": "Two."}]);
        json!([{"role": role, "parts": parts}]).to_string()
    };
    let mut attributes = vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.input.messages", &message("user")),
        text("gen_ai.output.messages", &message("assistant")),
    ];
    attributes.extend(own);
    let span = json!({
        "traceId": "a1", "spanId": "b1", "name": "chat", "startTimeUnixNano": "1767312001000000000",
        "endTimeUnixNano": "1767312003000000000", "attributes": attributes, "events": events,
    });
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).to_string()
}

fn counts(usage: &Value) -> [Option<u64>; 4] {
    [
        "input_tokens",
        "cached_tokens",
        "cache_write_tokens",
        "output_tokens",
    ]
    .map(|name| usage[name].as_u64())
}

#[test]
fn the_cache_is_in_the_input_once() {
    // LiteLLM has the names of both kinds of providers.
    let litellm = json!({
        "prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950,
        "prompt_tokens_details": {"cached_tokens": 600},
        "cache_read_input_tokens": 600, "cache_creation_input_tokens": 200,
    });
    let whole = [Some(900), Some(600), Some(200), Some(50)];
    // Before 2025 it left the cache out, which the size shows.
    let beside = json!({
        "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
        "cache_read_input_tokens": 600, "cache_creation_input_tokens": 200,
    });
    // A total decides.
    let with_total = |total: u64| {
        json!({
            "input_tokens": 700, "output_tokens": 50, "total_tokens": total,
            "cache_read_input_tokens": 600, "cache_creation_input_tokens": 200,
        })
    };
    let without = json!({
        "input_tokens": 700, "output_tokens": 50,
        "cache_read_input_tokens": 600, "cache_creation_input_tokens": 200,
    });
    for (usage, input) in [
        (&litellm, 900),
        (&beside, 900),
        (&with_total(750), 700),
        (&with_total(1550), 1500),
        (&without, 1500),
    ] {
        let (used, _) = used(&chat(usage));
        let wanted = [Some(input), whole[1], whole[2], whole[3]];
        assert_eq!(counts(&used[0]), wanted, "{usage}");
    }
}

#[test]
fn inspect_says_with_its_total_whether_the_cache_is_in_the_input() {
    let usage = |input: u64, total: u64| {
        json!({
            "input_tokens": input, "output_tokens": 50, "total_tokens": total,
            "input_tokens_cache_read": 600, "input_tokens_cache_write": 200,
        })
    };
    for (usage, input) in [(usage(100, 950), 900), (usage(900, 950), 900)] {
        let (used, report) = used(&inspect(&usage));
        let wanted = [Some(input), Some(600), Some(200), Some(50)];
        assert_eq!(counts(&used[0]), wanted, "{usage}");
        assert_eq!(used[0]["latency_ms"], 2500);
        assert_eq!(used[0]["error"], "cut off");
        assert_eq!(used[0]["provider"], usage);
        let skipped = &report["record_members_skipped"];
        assert_eq!(skipped["event model.output.seed"], 1);
    }
}

#[test]
fn numbers_are_counted_in_every_spelling_and_what_is_none_is_reported() {
    for (input, output) in [
        (json!(70), json!(5)),
        (json!(70.0), json!("5")),
        (json!("70.0"), json!(5e0)),
    ] {
        let usage = json!({"prompt_tokens": input, "completion_tokens": output});
        assert_eq!(
            counts(&used(&chat(&usage)).0[0]),
            [Some(70), None, None, Some(5)],
            "{usage}"
        );
        let value = |value: &Value| match value {
            Value::String(text) => json!({"stringValue": text}),
            number => json!({"doubleValue": number}),
        };
        let attributes = vec![
            json!({"key": "gen_ai.usage.input_tokens", "value": value(&input)}),
            json!({"key": "gen_ai.usage.output_tokens", "value": value(&output)}),
        ];
        let (used, _) = used(&span(attributes, &json!([])));
        assert_eq!(counts(&used[0]), [Some(70), None, None, Some(5)], "{usage}");
    }
    let odd = json!({
        "prompt_tokens": -7, "completion_tokens": 0.5, "prompt_tokens_details": {"cached_tokens": [1]},
        "completion_tokens_details": {"reasoning_tokens": null},
    });
    let (of_chat, report) = used(&chat(&odd));
    assert_eq!(counts(&of_chat[0]), [None; 4]);
    let skipped = &report["record_members_skipped"];
    for name in [
        "prompt_tokens",
        "completion_tokens",
        "prompt_tokens_details.cached_tokens",
    ] {
        let name = format!("usage.{name} (not a number of tokens)");
        assert_eq!(skipped[&name], 1, "{skipped}");
    }
    let many = json!({"key": "gen_ai.usage.input_tokens", "value": {"stringValue": "many"}});
    let (of_span, report) = used(&span(vec![many], &json!([])));
    assert_eq!(counts(&of_span[0]), [None; 4]);
    let name = "gen_ai.usage.input_tokens (not a number of tokens)";
    assert_eq!(report["record_members_skipped"][name], 1);
}

#[test]
fn a_line_of_claude_code_without_counts_leaves_those_of_the_line_before() {
    let line = |uuid: &str, parent: Value, message: Value| {
        json!({
            "type": message["role"], "uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/w",
            "timestamp": format!("2026-03-06T14:15:0{uuid}Z"), "message": message,
        })
        .to_string()
    };
    let reply = |text: &str, more: Value| {
        let mut message = json!({
            "id": "m", "type": "message", "role": "assistant", "model": "claude-x",
            "content": [{"type": "text", "text": text}],
        });
        let more = more.as_object().expect("members").clone();
        message.as_object_mut().expect("an object").extend(more);
        message
    };
    let counted =
        json!({"usage": {"input_tokens": 70, "output_tokens": 5}, "stop_reason": "end_turn"});
    for last in [json!({}), json!({"usage": null, "stop_reason": null})] {
        let log = [
            line("1", Value::Null, json!({"role": "user", "content": "Go."})),
            line("2", json!("1"), reply("One.", counted.clone())),
            line("3", json!("2"), reply("Two.", last)),
        ];
        let (used, _) = used(&log.join("\n"));
        assert_eq!(used.len(), 1);
        assert_eq!(used[0]["input_tokens"], 70);
        assert_eq!(used[0]["stop_reason"], "end_turn");
        assert_eq!(used[0]["response_id"], "m");
    }
}

#[test]
fn a_reply_of_claude_code_without_an_end_has_no_count() {
    // Counts of a response's lines, whether the last says why it stopped, and what counts.
    let cases = [
        (&[3, 3][..], json!(null), Value::Null),
        (&[1], json!(null), Value::Null),
        (&[4, 121], json!(null), json!(121)),
        (&[1, 1, 132], json!("tool_use"), json!(132)),
        (&[8], json!("end_turn"), json!(8)),
    ];
    for (counts, stop, expected) in cases {
        let line = |at: usize, message: Value| {
            json!({
                "type": message["role"], "uuid": at.to_string(), "sessionId": "s", "cwd": "/w",
                "parentUuid": at.checked_sub(1).map(|at| at.to_string()),
                "timestamp": format!("2026-03-06T14:15:0{at}Z"), "message": message,
            })
            .to_string()
        };
        let mut log = vec![line(0, json!({"role": "user", "content": "Go."}))];
        for (at, count) in counts.iter().enumerate() {
            let stop = if at + 1 == counts.len() {
                stop.clone()
            } else {
                Value::Null
            };
            log.push(line(
                at + 1,
                json!({
                    "id": "m", "type": "message", "role": "assistant", "model": "claude-opus-4-1", "stop_reason": stop,
                    "content": [{"type": "text", "text": "Some words that are counted here."}],
                    "usage": {"input_tokens": 1_000_000, "output_tokens": count},
                }),
            ));
        }
        let log = log.join("\n");
        let (used, _) = used(&log);
        assert_eq!(used[0]["output_tokens"], expected, "{counts:?}");
        assert_eq!(used[0]["input_tokens"], 1_000_000);
        let imported = imported(log.as_bytes(), MessageLocation::default());
        let session = &imported.sessions[0].session().expect("a session");
        let mut usage = Usage::new(UsageBy::Model, Prices::default());
        usage.add("s", session).expect("a history");
        assert_eq!(usage.total.uncounted_replies, u64::from(expected.is_null()));
        let report = TokenReport::new(&Engine::new(), session, &ReportOptions::default());
        let report = report.expect("a report");
        assert_eq!(report.session, usage.total, "{counts:?}");
        let here = report.counted_here;
        assert_eq!(here.requests, u64::from(expected.is_null()));
        assert_eq!(here.output_tokens > 0, expected.is_null(), "{here:?}");
    }
}

#[test]
fn copilot_says_what_was_written_to_the_cache() {
    let event = |id: &str, kind: &str, data: Value| {
        let time = format!("2026-01-05T00:00:0{id}Z");
        json!({"id": id, "type": kind, "timestamp": time, "data": data}).to_string()
    };
    let usage = json!({
        "model": "m", "inputTokens": 900, "cacheReadTokens": 600, "cacheWriteTokens": 200, "outputTokens": 50,
        "quotaSnapshots": {}, "apiCallId": "c",
    });
    let log = [
        event("1", "session.start", json!({"sessionId": "s"})),
        event("2", "user.message", json!({"content": "Go."})),
        event(
            "3",
            "assistant.message",
            json!({"messageId": "m", "content": "Done.", "apiCallId": "c"}),
        ),
        event("4", "assistant.usage", usage),
    ];
    let (used, report) = used(&log.join("\n"));
    let wanted = [Some(900), Some(600), Some(200), Some(50)];
    assert_eq!(counts(&used[0]), wanted);
    let skipped = &report["record_members_skipped"];
    assert_eq!(skipped["assistant.usage.quotaSnapshots"], 1);
}

#[test]
fn a_count_of_the_reply_alone_is_in_the_sums() {
    let event = |id: &str, kind: &str, data: Value| {
        let time = format!("2026-01-05T00:00:0{id}Z");
        json!({"id": id, "type": kind, "timestamp": time, "data": data}).to_string()
    };
    let reply = |id: &str, count: u64| {
        let data = json!({"messageId": id, "content": "Done.", "model": "gpt-4o", "apiCallId": id, "outputTokens": count});
        event(id, "assistant.message", data)
    };
    let usage = json!({"model": "gpt-4o", "apiCallId": "5", "inputTokens": 900, "outputTokens": 7});
    let log = [
        event("1", "session.start", json!({"sessionId": "s"})),
        event("2", "user.message", json!({"content": "Go."})),
        reply("3", 33),
        event("4", "user.message", json!({"content": "And?"})),
        reply("5", 7),
        event("6", "assistant.usage", usage),
    ];
    let imported = imported(log.join("\n").as_bytes(), MessageLocation::default());
    let session = imported.sessions[0].session().expect("a session");
    let mut usage = Usage::new(UsageBy::Session, Prices::default());
    usage.add("s", &session).expect("in memory");
    let total = usage.total;
    assert_eq!(
        (total.input_tokens, total.output_tokens, total.uncounted),
        (900, 40, 1)
    );
    assert_eq!((total.uncounted_inputs, total.unpriced), (1, 0));
    let text = usage.text(pactql::inspect::Paint::default());
    let said = "1 request without the provider's count of the input, which is not in the sums\n";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("no cost"), "{text}");
    // Where the request is counted here, the reply stays the provider's.
    let options = ReportOptions::default();
    let report = TokenReport::new(&Engine::new(), &session, &options).expect("a report");
    assert_eq!(report.session, total);
    let text = report.to_text(&options);
    assert!(text.contains("; counted here of 1 request: "), "{text}");
}

#[test]
fn an_opencode_reply_took_until_it_was_completed_or_its_last_call_began() {
    let message = |parts: Value| {
        let tokens =
            json!({"input": 30, "output": 60, "reasoning": 0, "cache": {"read": 0, "write": 0}});
        let info = json!({
            "id": "a", "role": "assistant", "sessionID": "s", "modelID": "m", "providerID": "p", "tokens": tokens,
            "time": {"created": 1767312002000_u64, "completed": 1767312009000_u64},
        });
        json!({
            "info": {"id": "s", "directory": "/w", "time": {"created": 1767312000000_u64}},
            "messages": [
                {"info": {"id": "u", "role": "user", "sessionID": "s", "time": {"created": 1767312001000_u64}},
                 "parts": [{"type": "text", "text": "Go."}]},
                {"info": info, "parts": parts},
            ],
        })
        .to_string()
    };
    let text = json!({"type": "text", "text": "One."});
    let said = json!({"type": "text", "text": "One.", "time": {"start": 1767312003000_u64, "end": 1767312003500_u64}});
    let tool = json!({"type": "tool", "callID": "c", "tool": "ls", "state": {
        "status": "completed", "input": {}, "output": "a", "time": {"start": 1767312004000_u64, "end": 1767312008000_u64},
    }});
    let step = json!({"type": "step-start"});
    for (parts, latency) in [
        (json!([step, text]), json!(7000)),
        (json!([step, text, tool]), json!(2000)),
        (json!([step, text, tool, step, text]), json!(2000)),
        (json!([step, said, step, text]), json!(1500)),
    ] {
        let (used, _) = used(&message(parts));
        assert_eq!(used[0]["latency_ms"], latency);
        // When a later step was sent, the log does not say.
        let later = used.get(1).map(|used| &used["latency_ms"]);
        assert_eq!(later.cloned().unwrap_or_default(), Value::Null);
    }
}

#[test]
fn a_reply_of_inspect_came_when_its_call_was_over() {
    for (completed, time) in [
        (Value::Null, "2026-03-02T14:00:07Z"),
        (json!("2026-03-02T09:00:08-05:00"), "2026-03-02T14:00:08Z"),
    ] {
        let mut log: Value = serde_json::from_str(&inspect(&json!({}))).expect("JSON");
        let event = &mut log["samples"][0]["events"][0];
        event["timestamp"] = json!("2026-03-02T09:00:04.500000-05:00");
        event["completed"] = completed;
        let imported = import(log.to_string().as_bytes(), &ImportOptions::default());
        let session = imported.expect("a good log").sessions[0].session();
        let session = session.expect("a session");
        let report = StepReport::new(&Engine::new(), &session, &ReportOptions::default());
        let step = &report.expect("a report").steps[0];
        assert_eq!(step.time.as_deref(), Some(time));
        assert_eq!(step.duration_ms, Some(2_500));
    }
}

#[test]
fn steps_of_an_opencode_message_have_times_of_their_own() {
    let at = |seconds: u64| 1_767_312_000_000 + seconds * 1000;
    let text = |text: &str, start: u64, end: u64| json!({"type": "text", "text": text, "time": {"start": at(start), "end": at(end)}});
    let tool = json!({"type": "tool", "callID": "c", "tool": "ls", "state": {
        "status": "completed", "input": {}, "output": "a", "time": {"start": at(32), "end": at(40)}}});
    let step = json!({"type": "step-start"});
    let parts = json!([step, text("One.", 30, 31), tool, step, text("Two.", 60, 89)]);
    let log = json!({
        "info": {"id": "s", "directory": "/w", "time": {"created": at(0)}},
        "messages": [
            {"info": {"id": "u", "role": "user", "sessionID": "s", "time": {"created": at(1)}},
             "parts": [{"type": "text", "text": "Go."}]},
            {"info": {"id": "a", "role": "assistant", "sessionID": "s", "modelID": "m",
                "time": {"created": at(2), "completed": at(90)}}, "parts": parts},
        ],
    });
    let imported = import(log.to_string().as_bytes(), &ImportOptions::default());
    let session = imported.expect("a good log").sessions[0].session();
    let session = session.expect("a session");
    let report = StepReport::new(&Engine::new(), &session, &ReportOptions::default());
    let steps = report.expect("a report").steps;
    let found: Vec<_> = steps
        .iter()
        .map(|step| (step.time.as_deref(), step.duration_ms, step.gap_ms))
        .collect();
    assert_eq!(
        found,
        [
            (Some("2026-01-02T00:00:32Z"), Some(30_000), None),
            (Some("2026-01-02T00:01:29Z"), Some(49_000), Some(8_000)),
        ]
    );
}

#[test]
fn an_exception_of_a_span_is_its_error_and_other_events_are_counted() {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let events = json!([
        {"name": "exception", "attributes": [
            text("exception.type", "Timeout"), text("exception.message", "after 30 s"),
        ]},
        {"name": "gen_ai.evaluation.result", "attributes": [text("gen_ai.evaluation.name", "tone")]},
    ]);
    let (used, report) = used(&span(Vec::new(), &events));
    assert_eq!(used[0]["error"]["message"], "after 30 s");
    assert_eq!(used[0]["error"]["type"], "Timeout");
    let skipped = &report["record_members_skipped"];
    assert_eq!(skipped["event gen_ai.evaluation.result"], 1);
}
