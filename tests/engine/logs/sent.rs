//! What was sent and what was not, where a log has both.

use super::{holds_together, imported, openai};
use pactql::Provider;
use pactql::logs::{Imported, MessageLocation};
use serde_json::{Value, json};

/// A log, and what was sent at the end as messages of Chat Completions.
fn sent(log: &str) -> (Imported, Vec<Value>) {
    let imported = imported(log.as_bytes(), MessageLocation::default());
    let sessions = holds_together(&imported);
    let request = openai(sessions[0].current());
    // Without a model it is the list alone.
    let messages = request.get("messages").unwrap_or(&request);
    let messages = messages.as_array().expect("messages").clone();
    (imported, messages)
}

fn contents(messages: &[Value]) -> Vec<&str> {
    let contents = messages.iter().map(|message| &message["content"]);
    contents
        .map(|content| content.as_str().expect("a text"))
        .collect()
}

#[test]
fn pi_does_not_send_a_command_that_is_excluded_nor_call_a_model_for_a_copy() {
    let mut log = vec![
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-02T09:00:00Z", "cwd": "/w"}).to_string(),
    ];
    let bash = json!({
        "role": "bashExecution", "command": "cat key", "output": "secret", "exitCode": 0, "excludeFromContext": true,
    });
    let reply = |text: &str, provider: &str, model: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"role": "assistant", "content": content, "provider": provider, "model": model})
    };
    let messages = [
        json!({"role": "user", "content": "Go."}),
        bash,
        reply("Done.", "p", "m"),
        reply("Delivered.", "openclaw", "delivery-mirror"),
    ];
    for (at, message) in messages.into_iter().enumerate() {
        let parent = at.checked_sub(1).map(|at| at.to_string());
        let time = format!("2026-03-02T09:00:0{}Z", at + 1);
        let entry = json!({
            "type": "message", "id": at.to_string(), "parentId": parent, "timestamp": time, "message": message,
        });
        log.push(entry.to_string());
    }
    let (imported, sent) = sent(&log.join("\n"));
    assert_eq!(contents(&sent), ["Go.", "Done.", "Delivered."]);
    // One call, and after it what no model was called for.
    let session = &holds_together(&imported)[0];
    assert_eq!(session.committed.len(), 1);
    assert!(session.working.is_some());
    let report = imported.report.to_json();
    let why = "bashExecution (excluded from what is sent)";
    assert_eq!(report["messages"]["skipped"][why], 1);
}

#[test]
fn a_result_of_swe_agent_has_the_call_of_its_one_id() {
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}});
    for (ids, id) in [(json!(["c"]), json!("c")), (json!(["c", "d"]), Value::Null)] {
        let history = json!([
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "a.txt", "tool_call_ids": ids},
        ]);
        let log = json!({"history": history, "trajectory": []}).to_string();
        let imported = imported(log.as_bytes(), MessageLocation::default());
        let export = holds_together(&imported)[0].export(true);
        let last = export.lines().last().expect("a snapshot");
        assert_eq!(
            last.matches("\"data_call_id\":\"c\"").count(),
            1 + usize::from(!id.is_null()),
            "{last}"
        );
        assert!(last.contains("\"data_tool_call_ids\""), "{last}");
    }
}

#[test]
fn codex_does_not_send_turns_that_were_taken_back() {
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-03-30T05:38:00Z", "type": kind, "payload": payload}).to_string()
    };
    let said = |role: &str, text: &str| {
        let kind = if role == "user" {
            "input_text"
        } else {
            "output_text"
        };
        let content = json!([{"type": kind, "text": text}]);
        line(
            "response_item",
            json!({"type": "message", "role": role, "content": content}),
        )
    };
    let back = |turns: u64| {
        line(
            "event_msg",
            json!({"type": "thread_rolled_back", "num_turns": turns}),
        )
    };
    let start = line("session_meta", json!({"id": "s", "cwd": "/w"}));
    let around = "<environment_context>/w</environment_context>";
    let before = [
        start,
        said("user", around),
        said("user", "One?"),
        said("assistant", "One."),
        said("user", "Two?"),
        said("assistant", "Two."),
        said("user", "Three?"),
    ];
    for (turns, left) in [
        (0, &[around, "One?", "One.", "Two?", "Two.", "Three?"][..]),
        (1, &[around, "One?", "One.", "Two?", "Two."]),
        (2, &[around, "One?", "One."]),
        (9, &[around]),
    ] {
        let mut log = before.to_vec();
        log.push(back(turns));
        let (imported, messages) = sent(&log.join("\n"));
        assert_eq!(contents(&messages), left, "{turns}");
        // What was taken back before a reply is in a snapshot, too.
        let export = holds_together(&imported)[0].export(true);
        assert!(export.contains("Three?"));
        log.extend([said("user", "Four?"), said("assistant", "Four.")]);
        let left = [left, &["Four?", "Four."]].concat();
        let (imported, messages) = sent(&log.join("\n"));
        assert_eq!(contents(&messages), left, "{turns}");
        let lines = &imported.report.to_json()["lines"];
        assert_eq!(lines["understood"]["thread_rolled_back"], 1);
    }
}

#[test]
fn images_of_inspect_letta_and_atif_are_sent_as_images() {
    let bytes = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
    let url = "data:image/png;base64,iVBORw0KGgo=";
    let content = |image: Value| json!([{"type": "text", "text": "Look."}, image]);
    let of_inspect = content(json!({"type": "image", "image": url, "detail": "low"}));
    let of_letta = content(json!({"type": "image", "source": bytes}));
    let inspect = json!({
        "eval": {"task": "t"}, "plan": {},
        "samples": [{"id": "a", "epoch": 1, "messages": [{"role": "user", "content": of_inspect}], "events": []}],
    });
    let letta = json!({"agents": [{"id": "a", "messages": [{"role": "user", "content": of_letta}]}], "tools": []});
    let atif = json!({
        "schema_version": "ATIF-v1.8", "session_id": "a", "agent": {"name": "n", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": of_letta}],
    });
    for log in [inspect, letta, atif] {
        let (imported, messages) = sent(&log.to_string());
        let last = &messages[0]["content"][1];
        assert_eq!(last["type"], "image_url", "{messages:?}");
        assert_eq!(last["image_url"]["url"], url, "{last}");
        let session = &holds_together(&imported)[0];
        let text = super::rendered(session.current(), Provider::Anthropic);
        assert!(text.contains(&bytes["data"].to_string()), "{text}");
        assert!(text.contains("\"source\""), "{text}");
        let report = imported.report.to_json();
        assert_eq!(report["parts"]["understood"]["image"], 1);
    }
    // A path of a file is no image that can be sent: it stays as it is.
    let file = content(
        json!({"type": "image", "source": {"media_type": "image/png", "path": "images/a.png"}}),
    );
    let atif = json!({
        "schema_version": "ATIF-v1.8", "session_id": "a", "agent": {"name": "n", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": file}],
    });
    let (imported, _) = sent(&atif.to_string());
    assert_eq!(
        imported.report.to_json()["parts"]["kept_verbatim"]["image"],
        1
    );
}
