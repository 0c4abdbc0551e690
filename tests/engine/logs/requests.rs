//! Recorded requests to Chat Completions: sessions, replies, attempts, tools and parameters.

use super::{Session, holds_together, imported, rendered, written};
use pactql::Provider;
use pactql::logs::{Fate, Format, MessageLocation};
use pactql::render::Thread;
use serde_json::{Value, json};

fn lines(records: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    lines.concat().into_bytes()
}

/// What was sent in the cycle of each snapshot, in an API's form.
fn requests(session: &Session, provider: Provider) -> Vec<Value> {
    let snapshots = session.committed.iter();
    let sent =
        snapshots.map(|snapshot| pactql::render::request(&Thread::request(snapshot), provider));
    sent.map(|sent| serde_json::from_str(&sent.expect("a request")).expect("JSON"))
        .collect()
}

fn tool(name: &str, description: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": description,
        "parameters": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "number"}}}}})
}

/// A run whose oldest message is dropped, another rewritten, and a tool added between two others.
fn run() -> (Vec<Value>, Vec<Value>) {
    let system = json!({"role": "system", "content": "Be brief."});
    let user = json!({"role": "user", "content": "List the files."});
    let reply = json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    let echo = json!({"role": "assistant", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    let listing = json!({"role": "tool", "tool_call_id": "c1", "content": "a.rs b.rs"});
    let elided = json!({"role": "tool", "tool_call_id": "c1", "content": "(elided)"});
    let last = json!({"role": "assistant", "content": "Two files."});
    let more = json!({"role": "user", "content": "Thanks."});
    let requests = vec![
        json!({"model": "m", "temperature": 0.5, "messages": [system, user],
            "tools": [tool("ls", "List"), tool("rm", "Remove")]}),
        json!({"model": "m", "messages": [system, user, echo, listing],
            "tools": [tool("ls", "List"), tool("cat", "Show"), tool("rm", "Remove")]}),
        json!({"model": "m", "messages": [system, echo, elided, last, more], "stream": true,
            "tools": [tool("cat", "Show"), tool("ls", "List them")]}),
    ];
    let answer = |message: &Value| {
        json!({"id": "r", "object": "chat.completion", "created": 1_700_000_000, "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 16}}})
    };
    let responses = vec![answer(&reply), answer(&last), answer(&more)];
    (requests, responses)
}

#[test]
fn each_request_comes_back_equal_and_dropped_messages_rename_none() {
    let (sent, responses) = run();
    let pairs = sent.iter().zip(&responses);
    let together: Vec<Value> = pairs
        .clone()
        .map(|(request, response)| {
            json!({"request": request, "response": {"status": 200, "body": response},
                "headers": {"authorization": "Bearer s3cret"}})
        })
        .collect();
    let in_turn: Vec<Value> = pairs
        .flat_map(|(request, response)| [request.clone(), response.clone()])
        .collect();
    for log in [lines(&together), lines(&in_turn)] {
        let imported = imported(&log, MessageLocation::Usual);
        assert_eq!(imported.sessions.len(), 1);
        let session = holds_together(&imported).remove(0);
        assert_eq!(requests(&session, Provider::OpenAi), sent);
        assert!(!session.export(true).contains("s3cret"));
        let ids = |at: usize| -> Vec<String> {
            let nodes = session.committed[at]
                .nodes()
                .map(|node| node.id().to_owned());
            nodes.filter(|id| id.starts_with("cb:")).collect()
        };
        assert_eq!(ids(0).join(" "), "cb:1-1 cb:tool-1 cb:tool-2 cb:2-1 cb:3-1");
        // The reply of the request before, in the client's spelling, is the node it was.
        assert_eq!(
            ids(1).join(" "),
            "cb:1-1 cb:tool-1 cb:tool-3 cb:tool-2 cb:2-1 cb:3-1 cb:4-1 cb:5-1"
        );
        assert_eq!(
            ids(2).join(" "),
            "cb:1-1 cb:tool-3 cb:tool-1 cb:3-1 cb:4-1 cb:5-1 cb:6-1 cb:7-1"
        );
        let whole: Value =
            serde_json::from_str(session.export(true).lines().next().expect("a line"))
                .expect("JSON");
        assert_eq!(whole["meta"]["source"], "request");
        assert_eq!(
            whole["meta"]["request"],
            json!({"model": "m", "temperature": 0.5})
        );
        assert_eq!(whole["usage"]["cached_tokens"], 16);
        assert_eq!(whole["usage"]["input_tokens"], 20);
        assert_eq!(whole["usage"]["stop_reason"], "stop");
    }
}

#[test]
fn a_call_that_failed_is_an_attempt_of_the_cycle_that_made_it_again() {
    let (sent, responses) = run();
    let failed = json!({"error": {"message": "overloaded"}});
    let log = lines(&[
        sent[0].clone(),
        failed.clone(),
        sent[0].clone(),
        responses[0].clone(),
        sent[1].clone(),
        failed,
    ]);
    let imported = imported(&log, MessageLocation::Usual);
    let session = holds_together(&imported).remove(0);
    assert_eq!(session.committed.len(), 2);
    assert_eq!(requests(&session, Provider::OpenAi), sent[..2]);
    for line in session.export(true).lines() {
        let whole: Value = serde_json::from_str(line).expect("JSON");
        let attempts = &whole["meta"]["attempts"];
        assert_eq!(
            attempts,
            &json!([{"error": {"message": "overloaded"}, "status": "error"}])
        );
    }
}

#[test]
fn requests_that_begin_otherwise_are_another_session() {
    let (sent, _) = run();
    let mut other = sent[0].clone();
    other["messages"][1]["content"] = json!("Something else.");
    let log = lines(&[
        sent[0].clone(),
        other.clone(),
        sent[1].clone(),
        sent[0].clone(),
    ]);
    let imported = imported(&log, MessageLocation::Usual);
    let cycles: Vec<usize> = holds_together(&imported)
        .iter()
        .map(|session| session.committed.len())
        .collect();
    // The last one starts again from the beginning.
    assert_eq!(cycles, [2, 1, 1]);
    let named: Vec<Value> = [&sent[0], &other]
        .iter()
        .map(|request| json!({"session_id": "s", "request": request}))
        .collect();
    let imported = super::imported(&lines(&named), MessageLocation::Usual);
    assert_eq!(imported.sessions.len(), 1);
    assert_eq!(imported.sessions[0].name.as_deref(), Some("s"));
}

#[test]
fn a_torn_last_line_waits_and_lists_deeper_down_are_found() {
    let torn = b"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n{\"role\":";
    let imported = imported(torn, MessageLocation::Usual);
    assert!(imported.report.to_string().contains("line 3 is not whole"));
    assert_eq!(holds_together(&imported)[0].committed.len(), 1);
    let nested = json!([{"traj": [{"role": "user", "content": "a"}]}, {"traj": []}]).to_string();
    let imported = super::imported(nested.as_bytes(), MessageLocation::Usual);
    assert_eq!(imported.sessions.len(), 2);
    let report = imported.report.to_string();
    assert!(
        report.contains("found lists of messages at /*/traj (2)"),
        "{report}"
    );
}

#[test]
fn a_log_of_which_less_than_half_is_understood_is_refused() {
    let log = b"{\"role\":\"user\",\"content\":\"a\"}\n{}\n{}\n";
    let mut options = pactql::logs::ImportOptions::default();
    let error = pactql::logs::import(log, &options).expect_err("mostly unknown");
    assert!(error.to_string().contains("1 of 3"), "{error}");
    options.lenient = true;
    let imported = pactql::logs::import(log, &options).expect("lenient");
    let session = holds_together(&imported).remove(0);
    assert!(rendered(session.current(), Provider::OpenAi).contains("{}"));
}

/// A request to Chat Completions.
fn asked(text: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]})
}

/// A response of Chat Completions.
fn answered(text: &str) -> Value {
    json!({"object": "chat.completion", "usage": {"prompt_tokens": 7, "completion_tokens": 2},
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

/// What the newest snapshot of the only session says, and how many snapshots there are; then the report.
fn told(records: &[Value]) -> (Value, usize, String) {
    let imported = imported(&lines(records), MessageLocation::Usual);
    let session = holds_together(&imported).remove(0);
    assert_eq!(imported.sessions.len(), 1);
    let text = session.export(true);
    let whole = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    (whole, session.committed.len(), imported.report.to_string())
}

#[test]
fn a_response_that_is_a_text_is_read() {
    let events = [
        json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Fi"}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "ne."}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}),
    ];
    let stream: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let answer = answered("Fine.");
    for response in [
        json!(answer.to_string()),
        json!({"status": 200, "body": answer.to_string()}),
        json!(stream),
        json!({"status": 200, "body": stream}),
        json!(events),
        json!({"body": events}),
    ] {
        let (whole, count, report) =
            told(&[json!({"request": asked("How?"), "response": response})]);
        assert_eq!(count, 1, "{response}");
        assert!(
            whole.to_string().contains("\"Fine.\""),
            "{response}: {whole}"
        );
        assert_eq!(whole["usage"]["input_tokens"], 7, "{response}");
        assert_eq!(whole["usage"]["stop_reason"], "stop", "{response}");
        assert!(!report.contains("unknown form"), "{response}: {report}");
    }
}

#[test]
fn a_recorded_failure_is_an_attempt() {
    let request = asked("How?");
    let failures = [
        (
            json!({"request": request, "response": {"status": 503, "body": "no upstream"}}),
            json!("no upstream"),
        ),
        (
            json!({"request": request, "response": {"status_code": 429, "headers": {"x": "s3cret"},
                "body": {"error": {"message": "slow down"}}}}),
            json!({"message": "slow down"}),
        ),
        (
            json!({"request": request, "response": {"status": 500, "headers": {"x": "s3cret"}, "why": "broken"}}),
            json!({"why": "broken"}),
        ),
        (
            json!({"request": request, "response": null, "error": "timed out"}),
            json!("timed out"),
        ),
        (
            json!({"request": request, "error": {"kind": "timeout"}}),
            json!({"kind": "timeout"}),
        ),
        (
            json!({"request": request, "response": "data: {\"error\":{\"code\":1}}\n\n"}),
            json!({"code": 1}),
        ),
    ];
    for (failure, error) in failures {
        let (whole, count, _) = told(std::slice::from_ref(&failure));
        assert_eq!(count, 1, "{failure}");
        let attempts = json!([{"error": error, "status": "error"}]);
        assert_eq!(whole["meta"]["attempts"], attempts, "{failure}");
        assert!(!whole.to_string().contains("s3cret"), "{failure}");
        let again = json!({"request": request, "response": answered("Fine.")});
        let (whole, count, _) = told(&[failure.clone(), again]);
        assert_eq!(count, 1, "{failure}");
        assert_eq!(whole["meta"]["attempts"], attempts, "{failure}");
        assert!(whole.to_string().contains("\"Fine.\""), "{failure}");
    }
}

#[test]
fn a_failed_response_of_the_responses_api_is_an_attempt_unless_something_came() {
    let request = json!({"model": "m", "input": [{"role": "user", "content": "How?"}]});
    let failed = |output: Value| {
        json!({"request": request, "response": {"object": "response", "id": "r1", "status": "failed",
            "error": {"message": "fell over"}, "output": output, "usage": {"input_tokens": 5, "output_tokens": 1}}})
    };
    let again = json!({"request": request, "response": {"object": "response", "id": "r2", "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fine."}]}]}});
    let (whole, count, _) = told(&[failed(json!([])), again]);
    assert_eq!(count, 1);
    let attempt = &whole["meta"]["attempts"][0];
    assert_eq!(attempt["error"], json!({"message": "fell over"}));
    assert_eq!(attempt["usage"]["input_tokens"], 5);
    let begun = json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fi"}]}]);
    let (whole, ..) = told(&[failed(begun)]);
    assert_eq!(whole["usage"]["error"], json!({"message": "fell over"}));
    assert_eq!(whole["usage"]["output_tokens"], 1);
    assert!(whole["meta"].get("attempts").is_none());
    assert!(whole.to_string().contains("\"Fi\""));
}

#[test]
fn what_is_not_understood_of_a_response_is_kept_and_counted() {
    let none = json!({"object": "chat.completion", "choices": [], "usage": {"prompt_tokens": 12}});
    let (whole, ..) = told(&[json!({"request": asked("How?"), "response": none})]);
    assert_eq!(whole["usage"]["input_tokens"], 12);
    let older =
        json!({"choices": [{"text": "an older form", "index": 0}], "usage": {"prompt_tokens": 12}});
    let (whole, ..) = told(&[json!({"request": asked("How?"), "response": older})]);
    assert_eq!(whole["usage"]["input_tokens"], 12);
    assert_eq!(whole["meta"]["record"], json!({"text": "an older form"}));
    for response in [
        json!("<html>Good evening</html>"),
        json!({"status": 200, "headers": {"x": "s3cret"}, "body": "<html>Good evening</html>"}),
        json!({"said": "Good evening"}),
        json!(["Good evening"]),
        json!(7),
    ] {
        let next = json!({"request": asked("Again?"), "response": answered("Fine.")});
        let log = lines(&[
            json!({"request": asked("How?"), "response": response}),
            next,
        ]);
        let imported = imported(&log, MessageLocation::Usual);
        let first = written(&imported, 0, true);
        let first = first.lines().next().expect("a line");
        let whole: Value = serde_json::from_str(first).expect("JSON");
        let kept = match &response {
            Value::Object(found) if found.contains_key("body") => &response["body"],
            _ => &response,
        };
        assert_eq!(&whole["meta"]["record"]["response"], kept, "{first}");
        assert!(!first.contains("s3cret"), "{first}");
        let report = imported.report.to_string();
        assert!(report.contains("response of unknown form 1"), "{report}");
    }
}

#[test]
fn a_model_of_anthropic_behind_chat_completions_is_chat() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "a.rs"});
    let user = json!({"role": "user", "content": "List."});
    let system = json!({"role": "system", "content": "Be brief."});
    let of =
        |messages: &[&Value]| json!({"model": "anthropic/claude-example", "messages": messages});
    let mut with_tools = of(&[&user]);
    with_tools["tools"] = json!([tool("ls", "List")]);
    let answer = answered("One file.");
    for record in [
        json!({"request": of(&[&user]), "response": answer}),
        json!({"request": of(&[&user]), "response": answer.to_string()}),
        json!({"request": of(&[&user, &call, &result]), "response": answer}),
        of(&[&user, &call]),
        of(&[&user, &call, &result]),
        of(&[&system, &user]),
        with_tools,
    ] {
        let imported = imported(
            &lines(std::slice::from_ref(&record)),
            MessageLocation::Usual,
        );
        assert_eq!(imported.format, Some(Format::OpenAi), "{record}");
        let session = holds_together(&imported).remove(0);
        let request = record.get("request").unwrap_or(&record);
        assert_eq!(&requests(&session, Provider::OpenAi)[0], request);
        let text = session.export(true);
        if record.get("response").is_some() {
            assert!(text.contains("\"One file.\""), "{text}");
            assert!(text.contains("\"input_tokens\":7"), "{text}");
        }
    }
    let own = json!({"model": "claude-example", "max_tokens": 9, "messages": [user]});
    let imported = super::imported(&lines(&[own]), MessageLocation::Usual);
    assert_eq!(imported.format, Some(Format::Anthropic));
}

/// Requests with their responses to each of the five APIs: the requests, and what the replies say.
fn of_five_apis() -> Vec<(Provider, Value, Value)> {
    let text = |text: &str| json!([{"text": text}]);
    let typed = |kind: &str, text: &str| json!([{"type": kind, "text": text}]);
    vec![
        (Provider::OpenAi, asked("One?"), answered("reply 1")),
        (
            Provider::Anthropic,
            json!({"model": "claude-example", "max_tokens": 9, "messages": [{"role": "user", "content": "Two?"}]}),
            json!({"type": "message", "role": "assistant", "content": typed("text", "reply 2"), "usage": {"input_tokens": 7}}),
        ),
        (
            Provider::OpenAiResponses,
            json!({"model": "m", "input": "Three?"}),
            json!({"object": "response", "id": "r", "usage": {"input_tokens": 7},
                "output": [{"type": "message", "role": "assistant", "content": typed("output_text", "reply 3")}]}),
        ),
        (
            Provider::Gemini,
            json!({"contents": [{"role": "user", "parts": text("Four?")}]}),
            json!({"candidates": [{"content": {"role": "model", "parts": text("reply 4")}}],
                "usageMetadata": {"promptTokenCount": 7}}),
        ),
        (
            Provider::Bedrock,
            json!({"modelId": "m", "messages": [{"role": "user", "content": text("Five?")}]}),
            json!({"output": {"message": {"role": "assistant", "content": text("reply 5")}}, "usage": {"inputTokens": 7}}),
        ),
    ]
}

#[test]
fn a_log_of_several_apis_is_read_as_each_of_them() {
    let mut all = of_five_apis();
    for _ in 0..all.len() {
        all.rotate_left(1);
        let records: Vec<Value> = all
            .iter()
            .map(|(_, request, response)| json!({"request": request, "response": response}))
            .collect();
        let imported = imported(&lines(&records), MessageLocation::Usual);
        let report = imported.report.to_string();
        assert_eq!(imported.report.lines(Fate::Skipped), 0, "{report}");
        let sessions = holds_together(&imported);
        assert_eq!(sessions.len(), all.len());
        for (session, (provider, request, response)) in sessions.iter().zip(&all) {
            assert_eq!(&requests(session, *provider), std::slice::from_ref(request));
            let text = session.export(true);
            let reply = response.to_string();
            let at = reply.find("reply ").expect("a reply");
            assert!(text.contains(&reply[at..at + 7]), "{text}");
            assert!(text.contains("\"input_tokens\":7"), "{text}");
        }
    }
}
