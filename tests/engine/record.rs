//! Provider calls that are recorded: what was sent comes back equal, sessions go on, failures are attempts.

use pactql::inspect::Call;
use pactql::logs::record::{ProviderCall, Recorder, StreamedReply};
use pactql::logs::{ImportOptions, Redaction, import};
use pactql::{
    Message, Provider, Session, Store,
    history::AttemptStatus,
    render::{self, Thread},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

const APIS: [Provider; 3] = [
    Provider::OpenAi,
    Provider::OpenAiResponses,
    Provider::Anthropic,
];

/// A store in a directory of its own.
struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("agent.db")
    }

    fn store(&self) -> Store {
        Store::open(self.path().to_str().expect("a path")).expect("a store")
    }

    fn recorder(&self) -> Recorder {
        Recorder::new(self.store())
    }
}

fn call(provider: Provider, session: &str, request: &Value) -> ProviderCall {
    let mut call = ProviderCall::new(provider, session, request.to_string());
    call.started_at_ns = 1_700_000_000_000_000_000;
    call.ended_at_ns = 1_700_000_001_000_000_000;
    call.latency_ms = Some(1_000);
    call
}

/// A reply in the form of an API.
fn response(provider: Provider, text: &str) -> Value {
    match provider {
        Provider::Anthropic => {
            json!({"type": "message", "id": format!("msg-{text}"), "role": "assistant",
            "model": "m", "stop_reason": "end_turn", "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 5, "output_tokens": 2}})
        }
        Provider::OpenAiResponses => json!({"object": "response", "id": format!("resp-{text}"),
            "status": "completed", "output": [{"type": "message", "id": "i", "role": "assistant",
                "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}],
            "usage": {"input_tokens": 5, "output_tokens": 2}}),
        _ => json!({"object": "chat.completion", "id": "c", "created": 1_700_000_000,
            "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": text, "refusal": null}}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
    }
}

fn with_reply(provider: Provider, session: &str, request: &Value, text: &str) -> ProviderCall {
    let mut call = call(provider, session, request);
    call.response = Some(response(provider, text).to_string());
    call
}

/// Records calls one by one. Returns the session of each.
fn record(recorder: &mut Recorder, calls: &[ProviderCall]) -> Vec<String> {
    let mut sessions = Vec::new();
    for call in calls {
        let done = recorder
            .record(std::slice::from_ref(call))
            .expect("a transaction");
        for call in done {
            sessions.push(call.expect("a recorded call").session);
        }
    }
    sessions
}

fn session(store: &Store, name: &str) -> Arc<Session> {
    let session = store.session(name).expect("a session");
    session.history().fetch_all().expect("all of it");
    session
}

/// What was sent in each cycle, as `render --request` gives it.
fn sent(session: &Session, provider: Provider) -> Vec<Value> {
    let history = session.history();
    let snapshots = history.committed().iter();
    let sent = snapshots.map(|snapshot| {
        let thread = pactql::context::sent(&history, snapshot);
        let by_tree = render::request(&Thread::request(snapshot), provider).expect("a request");
        let by_attempt = render::request(&thread, provider).expect("a request");
        assert_eq!(by_tree, by_attempt);
        serde_json::from_str(&by_tree).expect("JSON")
    });
    sent.collect()
}

fn request(provider: Provider, messages: &[Value]) -> Value {
    let list = match provider {
        Provider::OpenAiResponses => "input",
        _ => "messages",
    };
    json!({"model": "m", list: messages})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

#[test]
fn requests_of_odd_shapes_come_back_equal() {
    if crate::support::random::left_to_ci() {
        return;
    }
    for provider in APIS {
        for (number, request) in odd(provider).iter().enumerate() {
            let home = Home::new();
            let mut recorder = home.recorder();
            record(&mut recorder, &[with_reply(provider, "s", request, "Yes.")]);
            let found = sent(&session(recorder.store(), "s"), provider);
            assert_eq!(found, std::slice::from_ref(request), "{provider} {number}");
            // And after another process has gone on with it.
            let mut again = home.recorder();
            record(&mut again, &[with_reply(provider, "s", request, "No.")]);
            let found = sent(&session(again.store(), "s"), provider);
            assert_eq!(found.last(), Some(request), "{provider} {number}, again");
        }
    }
}

/// Requests whose parts have no place of their own in a tree.
fn odd(provider: Provider) -> Vec<Value> {
    let common = |list: &str| {
        vec![
            json!({"model": "m", list: [user("a")], "unknown": {"deep": [1, 2.5, null, {"x": "y"}]}}),
            json!({"model": "m", list: []}),
            json!({"model": "m"}),
            json!({"model": "m", list: null}),
            json!({"model": "m", list: {"role": "user"}}),
            json!({"model": "m", list: 3}),
            json!({list: [user("a")]}),
            json!({"model": "m", list: [user("a")], "tools": []}),
            json!({"model": "m", list: [user("a")], "tools": null}),
            json!({"model": "m", list: [user("a")], "tools": "none"}),
            json!({"model": "m", list: [user("a")], "tools": [7, "x", null, {}, []]}),
            json!({"model": "m", list: [user("a")], "tools": [{"type": "web_search"}]}),
            json!({"model": "m", list: [user("a")], "tools": [{"name": "f"}, {"name": "f"}]}),
            json!({"model": "m", list: [user("a")], "tools": [{"name": "f", "input_schema": {}, "type": "custom"}]}),
            json!({"model": "m", list: [user("a")], "tools": [{"type": "function", "name": "f", "parameters": {}}]}),
            json!({"model": "m", list: [user("a")], "tools": [{"type": "function", "function": {"name": "f"}}]}),
            json!({"model": "m", list: [user("a")], "tools": [{"type": "custom", "custom": {"name": "f"}}]}),
            json!({"model": "m", list: [1, "x", null, [], {}]}),
            json!({"model": "m", list: [{"role": 1, "content": "x"}, {"content": "x"}, {"role": "user"}]}),
            json!({"model": "m", list: [{"role": "user", "content": ""}, {"role": "user", "content": []}]}),
            json!({"model": "m", list: [{"role": "user", "content": {"a": 1}}, {"role": "user", "content": 3}]}),
            json!({"model": "m", list: [{"role": "user", "content": [1, "x", null, {}]}]}),
            json!({"model": "m", list: [{"role": "user", "content": [{"type": "text"}, {"type": "text", "text": null}]}]}),
            json!({"model": "m", list: [{"role": "system", "content": "S"}, {"role": "developer", "content": "D"}, user("a")]}),
            json!({"model": "m", list: [user("a"), {"role": "system", "content": "later"}]}),
            json!({"model": "m", list: [{"role": "system", "content": [{"type": "text", "text": "S", "x": 1}]}]}),
            json!({"model": "m", list: [user("a"), {"role": "tool", "content": "r"}, {"role": "oracle", "content": "o"}]}),
            json!({"model": "m", list: [{"role": "assistant", "content": "first"}, user("a")]}),
            json!({"model": "m", list: [user("a"), assistant("b"), assistant("c"), user("a"), user("a")]}),
            json!({"model": "m", list: [{"role": "user", "content": "a", "name": "Lovelace", "id": "x", "data_reply": 1,
                "message": 2, "reply": 1, "members": ["x"], "other": {}, "form": "z", "shape": "list"}]}),
            json!({"model": "m", list: [user("\u{0}\u{1f600}\u{7f} \" \\ \u{2028}")]}),
            json!({"model": "", list: [user("a")], "n": 12345678901234567890_u64, "f": 1e-7, "z": -0.0}),
            json!({"model": "m", list: [user("a")], "meta": {"request": 1}, "usage": {}, "root": {}, "cycle": 7}),
        ]
    };
    match provider {
        Provider::OpenAi => [common("messages"), odd_chat()].concat(),
        Provider::OpenAiResponses => [common("input"), odd_responses()].concat(),
        _ => [common("messages"), odd_anthropic()].concat(),
    }
}

fn odd_chat() -> Vec<Value> {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{not json"}});
    let of = |messages: Value| json!({"model": "m", "messages": messages});
    vec![
        of(
            json!([user("a"), {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"}]),
        ),
        of(
            json!([user("a"), {"role": "assistant", "tool_calls": [call, {"id": "c2", "type": "custom",
            "custom": {"name": "g", "input": "x"}}]}, {"role": "tool", "tool_call_id": "c2",
            "content": [{"type": "text", "text": "r"}]}, {"role": "tool", "tool_call_id": "c1", "content": ""}]),
        ),
        of(json!([user("a"), {"role": "assistant", "content": "", "tool_calls": []}])),
        of(
            json!([user("a"), {"role": "assistant", "content": "t", "refusal": "no", "audio": {"id": "x"},
            "function_call": {"name": "f", "arguments": "{}"}, "reasoning_content": "hm"}]),
        ),
        of(
            json!([user("a"), {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]),
        ),
        of(
            json!([{"role": "user", "content": [{"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
            {"type": "image_url", "image_url": "https://x"},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f"}}]}]),
        ),
        of(json!([{"role": "function", "name": "f", "content": "r"}])),
        of(json!([{"role": "tool", "tool_call_id": 3, "content": "r"}])),
        of(json!([{"role": "tool", "tool_call_id": "c", "content": null}])),
        of(
            json!([{"role": "system", "content": ""}, {"role": "system", "content": "", "name": "x"}]),
        ),
        json!({"messages": []}),
        json!({}),
    ]
}

fn odd_responses() -> Vec<Value> {
    let of = |input: Value| json!({"model": "m", "input": input});
    vec![
        of(json!("hello")),
        of(json!("")),
        json!({"model": "m", "input": "hello", "instructions": "Be brief."}),
        json!({"model": "m", "input": "hello", "instructions": null}),
        json!({"model": "m", "instructions": "only"}),
        json!({"model": "m", "input": [], "instructions": ""}),
        json!({"model": "m", "input": [user("a")], "instructions": [user("b")]}),
        json!({"prompt": {"id": "p"}, "input": "hello"}),
        json!({"model": "m", "input": "go on", "previous_response_id": "resp-unknown"}),
        json!({"model": "m", "input": [user("a")], "conversation": {"id": "conv"}}),
        of(
            json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "zz"},
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{", "id": "fc", "status": "completed"},
            {"type": "function_call_output", "call_id": "c1", "output": "r"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "r"}]},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "y"}]),
        ),
        of(
            json!([{"type": "item_reference", "id": "x"}, {"type": "web_search_call", "id": "w", "status": "completed"},
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "u"}},
            {"type": "function_call_output", "call_id": "c", "output": {"x": 1}},
            {"type": "image_generation_call", "result": "AA=="}, {"type": "compaction", "encrypted_content": "q"}]),
        ),
        of(
            json!([{"role": "user", "content": [{"type": "input_image", "image_url": "u", "detail": "auto"},
            {"type": "input_file", "file_id": "f"}, {"type": "input_text", "text": "t", "x": 1},
            {"type": "output_text", "text": "t"}]}]),
        ),
        of(
            json!([{"role": "assistant", "content": [{"type": "output_text", "text": "t", "annotations": []},
            {"type": "refusal", "refusal": "no"}], "id": "i", "status": "completed", "type": "message"}]),
        ),
    ]
}

fn odd_anthropic() -> Vec<Value> {
    let of = |messages: Value| json!({"model": "m", "max_tokens": 5, "messages": messages});
    let with = |system: Value| json!({"model": "m", "system": system, "messages": [user("a")]});
    let call = json!({"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": [1.5]}});
    vec![
        with(json!("Be brief.")),
        with(json!("")),
        with(json!([])),
        with(json!(null)),
        with(json!({"x": 1})),
        with(
            json!([{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "T"}]),
        ),
        with(json!([{"type": "text", "text": "S"}])),
        with(json!([{"type": "image", "source": {}}, 3])),
        of(
            json!([user("a"), {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "zz"}, {"type": "text", "text": "t"}, call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]}]),
        ),
        of(
            json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"},
            {"type": "tool_result", "tool_use_id": "t1", "content": "again"},
            {"type": "tool_result", "tool_use_id": "t2", "content": [], "is_error": true},
            {"type": "tool_result", "tool_use_id": "t3", "content": [{"type": "text", "text": "x"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}],
                "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "and"}]}]),
        ),
        of(
            json!([{"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]}]),
        ),
        of(
            json!([{"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"},
            {"type": "text", "text": "t"}]}]),
        ),
        of(json!([{"role": "system", "content": "not allowed"}, user("a")])),
        of(
            json!([{"role": "tool", "content": "odd"}, {"role": "tool", "content": [{"type": "text", "text": "x"}]}]),
        ),
        of(
            json!([{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": "text"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {}}, {"type": "tool_use", "id": "t", "name": "f"},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}]}]),
        ),
        of(
            json!([{"role": "user", "content": [{"type": "document", "source": {"type": "text"}, "title": "T",
            "citations": {"enabled": true}}, {"type": "document"}, {"type": "image", "source": "u"}]}]),
        ),
        of(json!([{"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]}])),
        of(
            json!([{"role": "user", "content": "a", "tool_result": "x", "content_hash": "y", "role2": 1}]),
        ),
    ]
}

#[test]
fn a_call_goes_on_with_the_session_it_shares_most_with() {
    let home = Home::new();
    let mut recorder = home.recorder();
    let api = Provider::OpenAi;
    let system = |text: &str| json!({"role": "system", "content": text});
    let ask =
        |messages: &[Value], reply: &str| with_reply(api, "s", &request(api, messages), reply);
    let sessions = record(
        &mut recorder,
        &[
            ask(&[system("S"), user("hi")], "one"),
            // The same beginning again: another conversation only once the first has gone on.
            ask(
                &[system("S"), user("hi"), assistant("one"), user("more")],
                "two",
            ),
            ask(&[system("S"), user("hi")], "uno"),
            ask(
                &[system("S"), user("hi"), assistant("uno"), user("more")],
                "dos",
            ),
            ask(
                &[
                    system("S"),
                    user("hi"),
                    assistant("one"),
                    user("more"),
                    assistant("two"),
                    user("x"),
                ],
                "three",
            ),
            // The system prompt has the time in it.
            ask(
                &[
                    system("S at 12:01"),
                    user("hi"),
                    assistant("uno"),
                    user("other"),
                ],
                "y",
            ),
            // Another question to another prompt, of the same user.
            ask(&[system("Judge."), user("hi")], "fine"),
            ask(&[user("something else")], "z"),
            // The client leaves out a part of the reply.
            ask(
                &[user("something else"), assistant("stripped"), user("more")],
                "zz",
            ),
            // The oldest messages were dropped, and the last reply is still there.
            ask(&[user("(summary)"), assistant("zz"), user("and")], "zzz"),
            // Nothing of it is known.
            ask(&[user("far"), assistant("away"), user("and")], "q"),
        ],
    );
    assert_eq!(
        sessions,
        [
            "s", "s", "s/2", "s/2", "s", "s/2", "s/3", "s/4", "s/4", "s/4", "s/5"
        ]
    );
    // Another process finds them by what they hold.
    let mut other = home.recorder();
    let calls = [
        ask(
            &[
                system("S"),
                user("hi"),
                assistant("uno"),
                user("other"),
                assistant("y"),
                user("x"),
            ],
            "1",
        ),
        ask(
            &[system("Judge."), user("hi"), assistant("fine"), user("x")],
            "2",
        ),
        ask(&[user("new")], "3"),
    ];
    assert_eq!(record(&mut other, &calls), ["s/2", "s/3", "s/6"]);
    // And the first one sees what that has written.
    let calls = [
        ask(&[user("new"), assistant("3"), user("x")], "4"),
        ask(&[user("newer")], "5"),
    ];
    assert_eq!(record(&mut recorder, &calls), ["s/6", "s/7"]);
    for listed in recorder.store().sessions("s*").expect("sessions") {
        session(recorder.store(), &listed.name);
    }
    assert_eq!(recorder.store().verify().expect("a check").len(), 0);
}

#[test]
fn what_did_not_change_is_not_written_again() {
    let home = Home::new();
    let mut recorder = home.recorder();
    let api = Provider::Anthropic;
    let tools: Vec<Value> = (0..20)
        .map(|n| json!({"name": format!("tool_{n}"), "input_schema": {"type": "object"}}))
        .collect();
    let mut messages = Vec::new();
    let mut expected = Vec::new();
    for n in 0..30 {
        messages.push(user(&format!("question {n}")));
        let request = json!({"model": "m", "max_tokens": 9, "system": "Be brief.",
            "messages": messages, "tools": tools});
        record(
            &mut recorder,
            &[with_reply(api, "s", &request, &format!("answer {n}"))],
        );
        messages.push(assistant(&format!("answer {n}")));
        expected.push(request);
    }
    let session = session(recorder.store(), "s");
    assert_eq!(sent(&session, api), expected);
    let history = session.history();
    let units = |at: usize| -> usize {
        let newer = &history.committed()[at];
        newer.unit_changes(&history.committed()[at - 1]).came.len()
    };
    // The turn, and the one before: its reply is spelled as the client spells it.
    for at in 1..30 {
        assert!(units(at) <= 2, "{at}: {}", units(at));
    }
}

#[test]
fn a_recording_is_what_an_import_makes_of_the_calls() {
    for api in APIS {
        let home = Home::new();
        let mut messages = vec![user("a")];
        let mut lines = String::new();
        for n in 0..8 {
            let text = format!("r{n}");
            let request = request(api, &messages);
            let call = with_reply(api, "s", &request, &text);
            // A recorder of its own for each call: all is read from the store.
            record(&mut home.recorder(), std::slice::from_ref(&call));
            let entry = json!({"request": request, "response": response(api, &text),
                "time": "2023-11-14T22:13:20Z", "latency_ms": 1000});
            lines.push_str(&format!("{entry}\n"));
            messages.push(assistant(&text));
            messages.push(user(&format!("q{n}")));
            match n {
                3 => drop(messages.drain(..3)),
                5 => messages[0] = user("rewritten"),
                _ => {}
            }
        }
        let format = pactql::logs::Format::ALL
            .into_iter()
            .find(|format| format.name() == api.name());
        let options = ImportOptions {
            format,
            ..ImportOptions::default()
        };
        let imported = import(lines.as_bytes(), &options).expect("a log");
        let mut out = Vec::new();
        imported.sessions[0]
            .recording
            .write_jsonl(&mut out, true)
            .expect("documents");
        let store = home.store();
        let mut recorded = Vec::new();
        let session = session(&store, "s");
        let history = session.history();
        pactql::logs::write_session(history.committed().iter(), None, true, &mut recorded)
            .expect("documents");
        let trees = |bytes: &[u8]| -> Vec<Value> {
            let text = String::from_utf8(bytes.to_vec()).expect("text");
            let documents = text
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            documents
                .map(|mut document| without_times(&mut document["root"]))
                .collect()
        };
        for (at, (recorded, imported)) in trees(&recorded).iter().zip(trees(&out)).enumerate() {
            assert_eq!(
                lines_of(recorded),
                lines_of(&imported),
                "{api}, cycle {}",
                at + 1
            );
        }
    }
}

/// A value line by line, so that a difference is seen.
fn lines_of(value: &Value) -> Vec<String> {
    let text = serde_json::to_string_pretty(value).expect("JSON");
    text.lines().map(str::to_owned).collect()
}

/// A tree without its times: those of replies differ, as an import knows one time a call.
fn without_times(node: &mut Value) -> Value {
    if let Some(node) = node.as_object_mut() {
        node.remove("created_at_ns");
        node.remove("created_at_iso");
        for child in node
            .get_mut("children")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            without_times(child);
        }
    }
    node.clone()
}

#[test]
fn messages_without_a_call_are_no_request() {
    let home = Home::new();
    let mut recorder = home.recorder();
    let api = Provider::OpenAi;
    let messages = [user("a"), assistant("b"), user("c")];
    let kept = |count: usize| {
        let request = request(api, &messages[..count]).to_string();
        let mut kept = ProviderCall::new(api, "s", request);
        kept.made = false;
        kept
    };
    let answered = with_reply(api, "s", &request(api, &messages[..1]), "b");
    record(&mut recorder, &[kept(1), answered, kept(3)]);
    let session = session(recorder.store(), "s");
    let history = session.history();
    let snapshots = history.committed().iter();
    let made: Vec<bool> = snapshots.map(|it| Call::from_snapshot(it).made).collect();
    assert_eq!(made, [false, true, false]);
}

#[test]
fn calls_that_fail_are_attempts_of_the_cycle_to_come() {
    let home = Home::new();
    let mut recorder = home.recorder();
    let api = Provider::OpenAi;
    let first = request(api, &[user("a")]);
    let failed = |request: &Value, error: &str| {
        let mut call = call(api, "s", request);
        call.error = Some(error.to_owned());
        call
    };
    let done = recorder
        .record(&[failed(&first, "HTTP 429"), failed(&first, "HTTP 500")])
        .expect("done");
    let ids: Vec<_> = done
        .into_iter()
        .map(|call| call.expect("recorded").attempt)
        .collect();
    assert_eq!(ids, [Some("a1-1".to_owned()), Some("a1-2".to_owned())]);
    assert_eq!(
        session(recorder.store(), "s").history().committed().len(),
        0
    );

    // Another process makes the call again; what is sent then is another request.
    let mut recorder = home.recorder();
    let mut second = first.clone();
    second["temperature"] = json!(0.5);
    record(&mut recorder, &[with_reply(api, "s", &second, "b")]);
    let third = request(api, &[user("a"), assistant("b"), user("c")]);
    let mut stopped = with_reply(api, "s", &third, "half a");
    stopped.canceled = true;
    record(&mut recorder, &[stopped, failed(&third, "ReadTimeout")]);

    let session = session(recorder.store(), "s");
    let history = session.history();
    let attempts: Vec<_> = history.attempts().iter().collect();
    let shown: Vec<_> = attempts
        .iter()
        .rev()
        .map(|attempt| {
            (
                attempt.attempt_id.as_str(),
                attempt.status,
                attempt.error.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("a1-1", AttemptStatus::Error, Some("HTTP 429")),
            ("a1-2", AttemptStatus::Error, Some("HTTP 500")),
            ("a1-3", AttemptStatus::Completed, None),
            ("a2-1", AttemptStatus::Canceled, None),
            ("a3-1", AttemptStatus::Error, Some("ReadTimeout")),
        ]
    );
    assert_eq!(sent(&session, api), [second, third]);
    let whole = history.committed()[0].meta().extra.clone();
    let meta = whole
        .iter()
        .find(|(name, _)| &**name == "meta")
        .expect("meta");
    let meta: Value = serde_json::from_str(&meta.1).expect("JSON");
    let errors: Vec<_> = meta["attempts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|a| &a["error"])
        .collect();
    assert_eq!(errors, [&json!("HTTP 429"), &json!("HTTP 500")]);
    assert_eq!(recorder.store().verify().expect("a check").len(), 0);
}

#[test]
fn responses_go_on_after_the_one_they_name() {
    let home = Home::new();
    let api = Provider::OpenAiResponses;
    let follow =
        |text: &str, id: &str| json!({"model": "m", "input": text, "previous_response_id": id});
    let first = json!({"model": "m", "input": "a", "instructions": "Be brief."});
    let calls = [
        with_reply(api, "s", &first, "1"),
        with_reply(api, "s", &follow("b", "resp-1"), "2"),
        with_reply(api, "s", &follow("c", "resp-2"), "3"),
        // From the middle, in another way.
        with_reply(api, "s", &follow("d", "resp-1"), "4"),
        with_reply(api, "s", &follow("e", "resp-nobody-knows"), "5"),
    ];
    let mut sessions = Vec::new();
    for call in &calls {
        sessions.extend(record(&mut home.recorder(), std::slice::from_ref(call)));
    }
    assert_eq!(sessions, ["s", "s", "s", "s", "s/2"]);
    let store = home.store();
    let found = session(&store, "s");
    assert_eq!(
        sent(&found, api),
        [
            first,
            follow("b", "resp-1"),
            follow("c", "resp-2"),
            follow("d", "resp-1")
        ]
    );
    let texts = store.engine().rows(&found, "@t-1 ^seq .cb").expect("rows");
    let texts: Vec<String> = texts.nodes().map(|node| node.text().into_owned()).collect();
    assert_eq!(texts, ["a", "1", "b", "2", "c", "3"]);
}

#[test]
fn sessions_of_others_are_left_alone() {
    let home = Home::new();
    let store = home.store();
    let mut context = store.write("s").expect("a context");
    context.append(Message::user("a")).expect("a message");
    context.commit().expect("a commit");
    let api = Provider::OpenAi;
    let ask = |name: &str, messages: &[Value]| with_reply(api, name, &request(api, messages), "b");
    let mut recorder = home.recorder();
    assert_eq!(record(&mut recorder, &[ask("s", &[user("a")])]), ["s/2"]);
    // One that a context holds, and one that a context has gone on with.
    let held = home.store().write("s/2").expect("a context");
    let more = [user("a"), assistant("b"), user("c")];
    assert_eq!(record(&mut recorder, &[ask("s", &more)]), ["s/3"]);
    drop((held, context));
    let refused = recorder
        .record(&[ask("", &more), ask("s", &more)])
        .expect("a transaction");
    assert!(refused[0].is_err());
    assert_eq!(refused[1].as_ref().map(|done| &*done.session), Ok("s/3"));
    let mut broken = ask("s", &more);
    broken.request = "{\"model\":".to_owned();
    let refused = recorder
        .record(&[broken, ask("s", &more)])
        .expect("a transaction");
    assert!(refused[0].is_err() && refused[1].is_ok());
}

/// A name that a caller gives may look like one that a number was put after.
#[test]
fn sessions_of_other_names_are_left_alone() {
    let home = Home::new();
    let api = Provider::OpenAi;
    let ask = |name: &str, messages: &[Value]| with_reply(api, name, &request(api, messages), "b");
    let first = [user("a")];
    let more = [user("a"), assistant("b"), user("c")];
    let mut recorder = home.recorder();
    let calls = [ask("order/2", &first), ask("order", &first)];
    assert_eq!(record(&mut recorder, &calls), ["order/2", "order"]);
    let calls = [ask("order", &more), ask("order/2", &more)];
    assert_eq!(record(&mut recorder, &calls), ["order", "order/2"]);
    // Another conversation, in this process and in one that knows nothing yet.
    let other = [user("x")];
    assert_eq!(record(&mut recorder, &[ask("order", &other)]), ["order/3"]);
    let calls = [ask("order/2", &other), ask("order", &more)];
    assert_eq!(record(&mut home.recorder(), &calls), ["order/2/2", "order"]);
    // What only the last reply says.
    let last = with_reply(api, "order", &request(api, &more), "last");
    let late = [user("summary"), assistant("last"), user("d")];
    let calls = [last.clone(), ask("order/2", &late), ask("order", &late)];
    assert_eq!(
        record(&mut recorder, &calls),
        ["order", "order/2/3", "order"]
    );
}

#[test]
fn halves_of_surrogate_pairs_are_replaced() {
    let home = Home::new();
    let mut recorder = home.recorder();
    let api = Provider::OpenAi;
    let mut call = with_reply(api, "s", &request(api, &[user("half")]), "reply");
    for text in [&mut call.request, call.response.as_mut().expect("one")] {
        *text = text
            .replace("half", "half \\ud83d")
            .replace("reply", "reply \\ude00");
    }
    record(&mut recorder, &[call]);
    let session = session(recorder.store(), "s");
    let sent = sent(&session, api);
    assert_eq!(sent, [request(api, &[user("half \u{fffd}")])]);
    let newest = session.history().latest().expect("a snapshot").clone();
    let thread = Thread::from_snapshot(&newest, pactql::render::Contents::All);
    let rendered = render::request(&thread, api).expect("a thread");
    let rendered: Value = serde_json::from_str(&rendered).expect("JSON");
    assert_eq!(rendered["messages"][1]["content"], "reply \u{fffd}");
}

/// What is recorded is the same in both databases.
#[cfg(all(unix, feature = "postgres"))]
#[test]
fn calls_are_recorded_into_postgres() {
    let server = match crate::store::server::Server::start() {
        Ok(server) => server,
        Err(why) => {
            println!("SKIPPED: {why}");
            return;
        }
    };
    let home = Home::new();
    let here = home.path().to_string_lossy().into_owned();
    for url in [here, server.url("recording")] {
        let mut recorder = Recorder::new(Store::connect(&url).expect("a store"));
        let mut wanted: Vec<(String, Provider, Vec<Value>)> = Vec::new();
        for api in APIS {
            let name = format!("{api:?}");
            let mut messages = vec![user("a")];
            let mut requests = Vec::new();
            for reply in ["b", "c", "d"] {
                requests.push(request(api, &messages));
                let call = with_reply(api, &name, &request(api, &messages), reply);
                assert_eq!(record(&mut recorder, &[call]), [&*name]);
                messages.extend([assistant(reply), user("more")]);
            }
            let mut failed = call(api, &name, &request(api, &messages));
            failed.error = Some("HTTP 500".to_owned());
            assert_eq!(record(&mut recorder, &[failed]), [&*name]);
            wanted.push((name, api, requests));
        }
        for (name, api, requests) in wanted {
            let session = session(recorder.store(), &name);
            assert_eq!(sent(&session, api), requests);
            assert_eq!(session.history().attempts().len(), 1);
        }
        // One that knows nothing yet goes on.
        let more = [
            user("a"),
            assistant("b"),
            user("more"),
            assistant("c"),
            user("end"),
        ];
        let api = Provider::OpenAi;
        let call = with_reply(api, "OpenAi", &request(api, &more), "e");
        let mut other = Recorder::new(Store::connect(&url).expect("a store"));
        assert_eq!(record(&mut other, &[call]), ["OpenAi"]);
    }
}

#[test]
fn secrets_never_enter() {
    let home = Home::new();
    let mut recorder = home.recorder().redact(
        [
            Redaction::keys(),
            vec![Redaction::parse("Lovelace").expect("a pattern")],
        ]
        .concat(),
    );
    let api = Provider::OpenAi;
    let key = &format!("sk-{}", "a1B2".repeat(8));
    let mut call = with_reply(
        api,
        "s",
        &request(api, &[user(&format!("Lovelace has {key}"))]),
        key,
    );
    record(&mut recorder, std::slice::from_ref(&call));
    call.response = None;
    call.error = Some(format!("the key {key} of \"Lovelace\" is wrong"));
    call.request_id = None;
    record(&mut recorder, &[call]);
    drop(recorder);
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(home.directory.path()).expect("files") {
        bytes.extend(std::fs::read(entry.expect("a file").path()).expect("bytes"));
    }
    let text = String::from_utf8_lossy(&bytes);
    for secret in [key, "Lovelace"] {
        let around = text.find(secret).map(|at| {
            text[at.saturating_sub(80)..]
                .chars()
                .take(200)
                .collect::<String>()
        });
        assert_eq!(around, None);
    }
    assert!(text.contains("[redacted] has [redacted]"));
    assert_eq!(Redaction::keys().len(), 7);
}

#[test]
fn streams_come_together_wherever_they_are_cut() {
    if crate::support::random::left_to_ci() {
        return;
    }
    for (api, events, whole) in streams() {
        let all = StreamedReply::from_events(api, &events);
        assert!(all.whole, "{api}");
        let found: Value = serde_json::from_str(&all.response.expect("a response")).expect("JSON");
        let found = match api {
            Provider::OpenAi => &found["choices"][0]["message"],
            Provider::Anthropic => &found["content"],
            _ => &found["output"],
        };
        assert_eq!(*found, whole, "{api}");
        for end in 0..events.len() {
            let Some(part) = events.get(..end) else {
                continue;
            };
            let cut = StreamedReply::from_events(api, part);
            if let Some(response) = cut.response {
                serde_json::from_str::<Value>(&response)
                    .unwrap_or_else(|error| panic!("{error}: {response}"));
                let home = Home::new();
                if end % 97 == 0 {
                    let mut call = call(api, "s", &request(api, &[user("a")]));
                    call.response = Some(response);
                    record(&mut home.recorder(), &[call]);
                }
            }
        }
    }
}

/// Streams of the APIs, and what the model said in them.
fn streams() -> Vec<(Provider, String, Value)> {
    let of = |events: &[Value]| -> String {
        let name = |event: &Value| {
            event["type"]
                .as_str()
                .map(|name| format!("event: {name}\r\n"))
                .unwrap_or_default()
        };
        events
            .iter()
            .map(|event| format!("{}data: {event}\r\n\r\n", name(event)))
            .collect()
    };
    let delta = |delta: Value| json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]});
    let mut chat = of(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "On "})),
        delta(json!({"content": "its way \u{1f600}", "reasoning_content": "h"})),
        delta(json!({"reasoning_content": "m"})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\":"}}]})),
        delta(
            json!({"tool_calls": [{"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
    ]);
    chat.push_str("data: [DONE]\n\n");
    let block = |at: u32, block: Value| json!({"type": "content_block_start", "index": at, "content_block": block});
    let more =
        |at: u32, delta: Value| json!({"type": "content_block_delta", "index": at, "delta": delta});
    let anthropic = of(&[
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [],
            "model": "x", "stop_reason": null, "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        block(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        more(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        more(0, json!({"type": "signature_delta", "signature": "zz"})),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "ping"}),
        block(1, json!({"type": "text", "text": ""})),
        more(1, json!({"type": "text_delta", "text": "On its"})),
        more(1, json!({"type": "text_delta", "text": " way"})),
        block(
            2,
            json!({"type": "tool_use", "id": "t", "name": "f", "input": {}}),
        ),
        more(2, json!({"type": "input_json_delta", "partial_json": ""})),
        more(
            2,
            json!({"type": "input_json_delta", "partial_json": "{\"b\": 1,"}),
        ),
        more(
            2,
            json!({"type": "input_json_delta", "partial_json": " \"a\": [1.50]}"}),
        ),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ]);
    let item = json!({"type": "message", "id": "i", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "On its way", "annotations": []}]});
    let responses = of(&[
        json!({"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "i", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "On its"}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": " way"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed",
            "output": [item], "usage": {"input_tokens": 5, "output_tokens": 2}}}),
    ]);
    vec![
        (
            Provider::OpenAi,
            chat,
            json!({"role": "assistant", "content": "On its way \u{1f600}", "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}),
        ),
        (
            Provider::Anthropic,
            anthropic,
            json!([{"type": "thinking", "thinking": "hm", "signature": "zz"},
            {"type": "text", "text": "On its way"}, {"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1, "a": [1.5]}}]),
        ),
        (Provider::OpenAiResponses, responses, json!([item])),
    ]
}

/// Any JSON value, of the words that the APIs use.
fn any_value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "user",
        "assistant",
        "system",
        "tool",
        "developer",
        "text",
        "image_url",
        "tool_use",
        "tool_result",
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
        "input_text",
        "output_text",
        "thinking",
        "c1",
        "",
        "{}",
        "function",
        "refusal",
        "list",
        "null",
    ]);
    let leaf = prop_oneof![
        4 => word.prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => "\\PC{0,6}".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "role",
        "content",
        "type",
        "text",
        "id",
        "name",
        "tool_calls",
        "tool_call_id",
        "tool_use_id",
        "input",
        "source",
        "image_url",
        "function",
        "arguments",
        "call_id",
        "output",
        "summary",
        "thinking",
        "signature",
        "is_error",
        "cache_control",
        "refusal",
        "status",
        "reply",
        "members",
        "x",
    ]);
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::vec((name.clone(), inner), 0..6).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

/// A message that is nearly one, or any value.
fn any_message() -> impl Strategy<Value = Value> {
    let role = prop::sample::select(vec![
        "user",
        "assistant",
        "system",
        "tool",
        "developer",
        "function",
    ]);
    let near = (role, any_value(), any_value()).prop_map(|(role, content, other)| {
        let mut message = json!({"role": role, "content": content});
        for (name, value) in other.as_object().into_iter().flatten() {
            message[name] = value.clone();
        }
        message
    });
    prop_oneof![4 => near, 1 => any_value()]
}

proptest! {
    #![proptest_config(crate::support::random::property(8_000))]

    #[test]
    fn whatever_is_sent_comes_back(
        api in 0..3_usize,
        requests in prop::collection::vec(
            (prop::collection::vec(any_message(), 0..5), any_value(), any_value(), any_value()), 1..4),
    ) {
        let api = APIS[api];
        let home = Home::new();
        let mut recorder = home.recorder();
        let mut messages: Vec<Value> = vec![user("first")];
        let mut expected: Vec<Value> = Vec::new();
        for (more, tools, system, odd) in requests {
            messages.extend(more);
            let mut request = request(api, &messages);
            request["tools"] = tools;
            request["x"] = odd;
            match api {
                Provider::Anthropic => request["system"] = system,
                Provider::OpenAiResponses => request["instructions"] = system,
                _ => {}
            }
            let call = with_reply(api, "s", &request, "done");
            let done = recorder.record(&[call]).expect("a transaction").remove(0).expect("a recorded call");
            let found = session(recorder.store(), &done.session);
            let found = sent(&found, api);
            prop_assert_eq!(found.last(), Some(&request));
            if done.session == "s" {
                expected.push(request);
                prop_assert_eq!(&found, &expected);
            }
        }
        prop_assert_eq!(recorder.store().verify().expect("a check").len(), 0);
    }
}
