//! `render`: trees as requests, one case for each row of the table in `docs/rendering.md`.

mod every_block;
mod in_address;
mod media;
mod tools;

use pactql::render::{Contents, Source};
use pactql::{
    Context, Message, NewNode, Provider, Session, Snapshot,
    render::{self, RenderError, Thread},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The newest snapshot of a session, or its working state.
fn snapshot(text: &str) -> Arc<Snapshot> {
    let session = Session::from_slice(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let history = session.history();
    history.latest().expect("a snapshot").clone()
}

/// A snapshot of blocks in `^sys`, in the core of one turn, and in `^ah`.
fn tree(sys: Value, turn: Value, head: Value) -> Arc<Snapshot> {
    snapshot(&document(&json!(null), sys, turn, head).to_string())
}

/// The document of [`tree`] with request parameters. The blocks keep their order.
fn document(request: &Value, mut sys: Value, mut turn: Value, mut head: Value) -> Value {
    let mut index = 0;
    for list in [&mut sys, &mut turn, &mut head] {
        for block in list.as_array_mut().expect("a list") {
            let given = block.get("id").is_some();
            if !given {
                block["id"] = json!(format!("b{index}"));
            }
            block["nodeType"] = json!("cb");
            block["created_at_ns"] = json!(index);
            index += 1;
        }
    }
    json!({"cycle": 4, "meta": {"request": request}, "root": {"children": [
        {"id": "^sys", "nodeType": "^sys", "children": sys},
        {"id": "^seq", "nodeType": "^seq", "children": [
            {"id": "mt:1", "nodeType": "mt", "children": [
                {"id": "mc:1", "nodeType": "mc", "offset": 0, "children": turn}]}]},
        {"id": "^ah", "nodeType": "^ah", "children": head}]}})
}

fn request(snapshot: &Snapshot, provider: Provider) -> Value {
    let text =
        render::request(snapshot, provider).unwrap_or_else(|error| panic!("{provider}: {error}"));
    let thread = Thread::from_snapshot(snapshot, Contents::All);
    assert_eq!(
        render::request(&thread, provider).unwrap(),
        text,
        "{provider}"
    );
    let records: Vec<_> = thread.records().collect();
    assert_eq!(Thread::from_records(&records).unwrap(), thread);
    assert!(!records.iter().any(|record| record.contains('\n')));
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Checks what a tree is for the three APIs: the list of messages, the list of items, and the
/// system text with the messages.
#[track_caller]
fn becomes(snapshot: &Snapshot, openai: Value, responses: Value, anthropic: Value) {
    assert_eq!(request(snapshot, Provider::OpenAi), openai, "openai");
    let found = request(snapshot, Provider::OpenAiResponses);
    assert_eq!(found, responses, "openai-responses");
    assert_eq!(
        request(snapshot, Provider::Anthropic),
        anthropic,
        "anthropic"
    );
}

/// [`becomes`] for blocks of a turn alone.
#[track_caller]
fn turn_becomes(turn: Value, openai: Value, responses: Value, anthropic: Value) {
    let snapshot = tree(json!([]), turn, json!([]));
    let (responses, anthropic) = (json!({"input": responses}), json!({"messages": anthropic}));
    becomes(&snapshot, openai, responses, anthropic);
}

#[test]
fn one_system_text_is_the_instructions() {
    becomes(
        &tree(
            json!([{"kind": "text", "content": "Be brief."}]),
            json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]),
            json!([{"content": "Bye"}]),
        ),
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "Bye"}]),
        json!({"instructions": "Be brief.", "input": [
            {"type": "message", "role": "user", "content": "Hi"},
            {"type": "message", "role": "assistant", "content": "Hello"},
            {"type": "message", "role": "user", "content": "Bye"}]}),
        json!({"system": "Be brief.", "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "Bye"}]}),
    );
}

#[test]
fn several_system_texts_are_parts_or_messages() {
    becomes(
        &tree(
            json!([
                {"content": "One."},
                {"role": "developer", "content": "Two.", "data_part": {"cache_control": {"type": "ephemeral"}}},
                {"role": "user", "content": "An example."}]),
            json!([{"role": "system", "content": "A late hint."}]),
            json!([]),
        ),
        json!([
            {"role": "system", "content": "One."},
            {"role": "developer", "content": "Two."},
            {"role": "user", "content": "An example."},
            {"role": "system", "content": "A late hint."}]),
        json!({"input": [
            {"type": "message", "role": "system", "content": "One."},
            {"type": "message", "role": "developer", "content": "Two."},
            {"type": "message", "role": "user", "content": "An example."},
            {"type": "message", "role": "system", "content": "A late hint."}]}),
        json!({
            "system": [
                {"type": "text", "text": "One."},
                {"type": "text", "text": "Two.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "An example."},
                {"type": "text", "text": "A late hint."}]}]}),
    );
}

#[test]
fn parallel_calls_are_answered_at_once() {
    let turn = json!([
        {"role": "assistant", "kind": "text", "content": "Looking."},
        {"kind": "call", "key": "find", "content": {"b": 1, "a": 2}},
        {"kind": "call", "data_call_id": "c2", "data_call_name": "get", "content": "{ \"z\": 1, \"a\": 1.0 }"},
        {"role": "system", "kind": "note", "content": "A hint in between."},
        {"kind": "result", "data_call_id": "b1", "content": "found"},
        {"kind": "result", "data_call_id": "c2", "content": {"error": "gone"}, "data_is_error": true},
        {"role": "assistant", "content": "Done."}]);
    turn_becomes(
        turn,
        json!([
            {"role": "assistant", "content": "Looking.", "tool_calls": [
                {"type": "function", "id": "b1", "function": {"name": "find", "arguments": "{\"a\":2,\"b\":1}"}},
                {"type": "function", "id": "c2", "function": {"name": "get", "arguments": "{ \"z\": 1, \"a\": 1.0 }"}}]},
            {"role": "tool", "content": "found", "tool_call_id": "b1"},
            {"role": "tool", "content": "{\"error\":\"gone\"}", "tool_call_id": "c2"},
            {"role": "system", "content": "A hint in between."},
            {"role": "assistant", "content": "Done."}]),
        json!([
            {"type": "message", "role": "assistant", "content": "Looking."},
            {"type": "function_call", "call_id": "b1", "name": "find", "arguments": "{\"a\":2,\"b\":1}"},
            {"type": "function_call", "call_id": "c2", "name": "get", "arguments": "{ \"z\": 1, \"a\": 1.0 }"},
            {"type": "message", "role": "system", "content": "A hint in between."},
            {"type": "function_call_output", "call_id": "b1", "output": "found"},
            {"type": "function_call_output", "call_id": "c2", "output": "{\"error\":\"gone\"}"},
            {"type": "message", "role": "assistant", "content": "Done."}]),
        json!([
            {"role": "assistant", "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "b1", "name": "find", "input": {"a": 2, "b": 1}},
                {"type": "tool_use", "id": "c2", "name": "get", "input": {"z": 1, "a": 1.0}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b1", "content": "found"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "{\"error\":\"gone\"}", "is_error": true},
                {"type": "text", "text": "A hint in between."}]},
            {"role": "assistant", "content": "Done."}]),
    );
}

#[test]
fn a_hint_waits_for_results_only_while_calls_are_open() {
    let turn = json!([
        {"kind": "call", "key": "f", "id": "c1", "content": ""},
        {"role": "user", "content": "never mind"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "thanks"}]);
    assert_eq!(
        request(&tree(json!([]), turn, json!([])), Provider::OpenAi),
        json!([
            {"role": "assistant", "content": null, "tool_calls": [
                {"type": "function", "id": "c1", "function": {"name": "f", "arguments": ""}}]},
            {"role": "user", "content": "never mind"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "thanks"}])
    );
}

#[test]
fn arguments_that_are_no_object_are_kept_as_text() {
    let input = |content: Value| {
        let turn = json!([{"kind": "call", "id": "mc:1-a", "content": content}]);
        let found = request(&tree(json!([]), turn, json!([])), Provider::Anthropic);
        let call = found["messages"][0]["content"][0].clone();
        assert_eq!(
            call["id"], "mc-1-a",
            "ids have letters, digits, _ and - only"
        );
        assert_eq!(call["name"], "unknown");
        call["input"].clone()
    };
    assert_eq!(input(json!("")), json!({}));
    assert_eq!(input(json!(" {} ")), json!({}));
    assert_eq!(input(json!("{broken")), json!({"arguments": "{broken"}));
    assert_eq!(input(json!("[1]")), json!({"arguments": "[1]"}));
    assert_eq!(
        input(json!("{\"a\":1,\"a\":2}")),
        json!({"arguments": "{\"a\":1,\"a\":2}"})
    );
    assert_eq!(input(json!([1])), json!({"arguments": "[1]"}));
}

#[test]
fn a_result_has_several_parts_and_an_error_may_be_one() {
    let url = "data:image/png;base64,AAAA";
    turn_becomes(
        json!([
            {"kind": "result", "data_call_id": "c1", "content": "a picture"},
            {"role": "tool", "kind": "image", "data_call_id": "c1", "content": {"url": url}},
            {"kind": "error", "data_call_id": "c2", "content": "no such file"},
            {"kind": "result", "data_call_id": "c3"},
            {"kind": "error", "role": "user", "content": "not a result"}]),
        json!([
            {"role": "tool", "content": [
                {"type": "text", "text": "a picture"},
                {"type": "image_url", "image_url": {"url": url}}], "tool_call_id": "c1"},
            {"role": "tool", "content": "no such file", "tool_call_id": "c2"},
            {"role": "tool", "content": "", "tool_call_id": "c3"},
            {"role": "user", "content": "not a result"}]),
        json!([
            {"type": "function_call_output", "call_id": "c1", "output": [
                {"type": "input_text", "text": "a picture"},
                {"type": "input_image", "image_url": url}]},
            {"type": "function_call_output", "call_id": "c2", "output": "no such file"},
            {"type": "function_call_output", "call_id": "c3", "output": ""},
            {"type": "message", "role": "user", "content": "not a result"}]),
        json!([{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [
                {"type": "text", "text": "a picture"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
            {"type": "tool_result", "tool_use_id": "c2", "content": "no such file", "is_error": true},
            {"type": "tool_result", "tool_use_id": "c3"},
            {"type": "text", "text": "not a result"}]}]),
    );
}

#[test]
fn a_result_without_a_call_is_text_where_an_id_is_required() {
    turn_becomes(
        json!([{"kind": "result", "role": "tool", "content": "status: ok"}]),
        json!([{"role": "tool", "content": "status: ok"}]),
        json!([{"type": "message", "role": "user", "content": "status: ok"}]),
        json!([{"role": "user", "content": "status: ok"}]),
    );
}

#[test]
fn parts_that_were_appended_together_are_one_message() {
    let url = "https://example.org/a.png";
    let mut context = Context::new();
    context
        .append(Message::user("What is this?").image(url))
        .unwrap();
    let calls = Message::assistant("")
        .call("c1", "look", "{}")
        .call("c2", "look", "{}");
    context.reply(calls).unwrap();
    context.commit().unwrap();
    let result = |id: &str| NewNode::text("r").kind("result").set("data_call_id", id);
    let results = Message::new("tool").part(result("c1")).part(result("c2"));
    context.append(results).unwrap();
    let session = context.session();
    becomes(
        session.history().latest().unwrap(),
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": url}}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"type": "function", "id": "c1", "function": {"name": "look", "arguments": "{}"}},
                {"type": "function", "id": "c2", "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "content": "r", "tool_call_id": "c1"},
            {"role": "tool", "content": "r", "tool_call_id": "c2"}]),
        json!({"input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": url}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "r"},
            {"type": "function_call_output", "call_id": "c2", "output": "r"}]}),
        json!({"messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "url", "url": url}}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "r"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "r"}]}]}),
    );
}

#[test]
fn a_result_may_name_its_call_in_a_list() {
    let result = |ids: Value| json!({"role": "tool", "content": "r", "data_tool_call_ids": ids});
    let turn = json!([
        result(json!(["c1"])),
        result(json!([])),
        result(json!(["c2", "c3"]))
    ]);
    let found = request(&tree(json!([]), turn, json!([])), Provider::Anthropic);
    assert_eq!(
        found["messages"][0]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "c1", "content": "r"},
            {"type": "text", "text": "r"},
            {"type": "text", "text": "r"}])
    );
}

#[test]
fn reasoning_is_kept_where_the_api_knows_it_again() {
    turn_becomes(
        json!([
            {"kind": "thinking", "content": "signed", "data_part": {"signature": "S"}},
            {"kind": "thinking", "content": "encrypted", "data_part": {"id": "rs_1", "encrypted_content": "E"}},
            {"kind": "thinking", "content": "neither"},
            {"role": "assistant", "kind": "text", "content": "So."}]),
        json!([{"role": "assistant", "content": [
            {"type": "text", "text": "signed"},
            {"type": "text", "text": "encrypted"},
            {"type": "text", "text": "neither"},
            {"type": "text", "text": "So."}]}]),
        json!([
            {"type": "message", "role": "assistant", "content": "signed"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "encrypted"}],
             "id": "rs_1", "encrypted_content": "E"},
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "neither"},
                {"type": "output_text", "text": "So."}]}]),
        json!([{"role": "assistant", "content": [
            {"type": "thinking", "thinking": "signed", "signature": "S"},
            {"type": "text", "text": "encrypted"},
            {"type": "text", "text": "neither"},
            {"type": "text", "text": "So."}]}]),
    );
}

#[test]
fn unknown_kinds_and_roles_are_text() {
    turn_becomes(
        json!([
            {"role": "critic", "kind": "note", "content": "hm"},
            {"kind": "summary", "content": {"b": 1, "a": "é"}},
            {"kind": "tool", "content": "a tool definition is one under ^sys only"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": null},
            {"role": "user"}]),
        json!([
            {"role": "critic", "content": "hm"},
            {"role": "user", "content": "{\"a\":\"\\u00e9\",\"b\":1}"},
            {"role": "user", "content": "a tool definition is one under ^sys only"},
            {"role": "assistant", "content": ""}]),
        json!([
            {"type": "message", "role": "user", "content": "hm"},
            {"type": "message", "role": "user", "content": "{\"a\":\"\\u00e9\",\"b\":1}"},
            {"type": "message", "role": "user", "content": "a tool definition is one under ^sys only"},
            {"type": "message", "role": "assistant", "content": ""}]),
        json!([{"role": "user", "content": [
            {"type": "text", "text": "hm"},
            {"type": "text", "text": "{\"a\":\"\\u00e9\",\"b\":1}"},
            {"type": "text", "text": "a tool definition is one under ^sys only"}]}]),
    );
}

#[test]
fn context_before_and_after_and_loose_blocks_keep_their_place() {
    // The tree of source 002 §12.9, and a loose block.
    let snapshot = snapshot(
        r#"{"root":{"children":[
        {"id":"sys-2","nodeType":"^sys","children":[
          {"id":"cb:sysB","role":"system","kind":"text","offset":0,"content":"System header B"}]},
        {"id":"seq-2","nodeType":"^seq","children":[
          {"id":"mt:10","nodeType":"mt","children":[
            {"id":"cb:pre1","role":"system","kind":"text","offset":-1,"content":"Pre-context hint"},
            {"id":"cb:core1","role":"user","kind":"text","offset":0,"content":"Hello with context"},
            {"id":"cb:post1","role":"tool","kind":"result","offset":1,"content":"status: ok"}]},
          {"id":"loose","nodeType":"cb","offset":1,"content":"between"}]},
        {"id":"ah-2","nodeType":"^ah","children":[
          {"id":"cb:pre2","role":"system","kind":"text","offset":-1,"content":"AH pre"},
          {"id":"cb:core2","role":"user","kind":"text","offset":0,"content":"Working..."},
          {"id":"cb:post2","role":"assistant","kind":"text","offset":1,"content":"Interim note"}]}]}}"#,
    );
    becomes(
        &snapshot,
        json!([
            {"role": "system", "content": "System header B"},
            {"role": "system", "content": "Pre-context hint"},
            {"role": "user", "content": "Hello with context"},
            {"role": "tool", "content": "status: ok"},
            {"role": "user", "content": "between"},
            {"role": "system", "content": "AH pre"},
            {"role": "user", "content": "Working..."},
            {"role": "assistant", "content": "Interim note"}]),
        json!({"instructions": "System header B", "input": [
            {"type": "message", "role": "system", "content": "Pre-context hint"},
            {"type": "message", "role": "user", "content": "Hello with context"},
            {"type": "message", "role": "user", "content": "status: ok"},
            {"type": "message", "role": "user", "content": "between"},
            {"type": "message", "role": "system", "content": "AH pre"},
            {"type": "message", "role": "user", "content": "Working..."},
            {"type": "message", "role": "assistant", "content": "Interim note"}]}),
        json!({"system": "System header B", "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Pre-context hint"},
                {"type": "text", "text": "Hello with context"},
                {"type": "text", "text": "status: ok"},
                {"type": "text", "text": "between"},
                {"type": "text", "text": "AH pre"},
                {"type": "text", "text": "Working..."}]},
            {"role": "assistant", "content": "Interim note"}]}),
    );
}

#[test]
fn an_empty_session_is_an_empty_request() {
    let nothing = || json!([]);
    becomes(
        &tree(nothing(), nothing(), nothing()),
        json!([]),
        json!({"input": []}),
        json!({"messages": []}),
    );
}

#[test]
fn parameters_keep_their_order_and_spelling() {
    let parameters =
        r#"{ "model": "m-1", "temperature": 1.0, "zeta": [ 1, 1e2 ], "alpha": "a  é" }"#;
    let text = document(
        &json!("PARAMETERS"),
        json!([]),
        json!([]),
        json!([{"content": "Hi"}]),
    );
    let object = text.to_string().replace("\"PARAMETERS\"", parameters);
    // JSON text in a string keeps its order when the session is exported, too.
    let quoted = Value::from(parameters).to_string();
    let string = text.to_string().replace("\"PARAMETERS\"", &quoted);
    let start = r#"{"model":"m-1","temperature":1.0,"zeta":[1,1e2],"alpha":"a  é","#;
    for text in [object, string] {
        let snapshot = snapshot(&text);
        for (provider, end) in [
            (
                Provider::OpenAi,
                r#""messages":[{"role":"user","content":"Hi"}]}"#,
            ),
            (
                Provider::OpenAiResponses,
                r#""input":[{"type":"message","role":"user","content":"Hi"}]}"#,
            ),
            (
                Provider::Anthropic,
                r#""messages":[{"role":"user","content":"Hi"}]}"#,
            ),
        ] {
            let found = render::request(&*snapshot, provider).unwrap();
            assert_eq!(found, format!("{start}{end}\n"));
        }
    }
}

#[test]
fn parameters_that_cannot_be_sent_are_refused() {
    let refused = |request: Value, provider| {
        let sys = json!([{"content": "s"}]);
        let turn = json!([{"id": "b", "role": "user", "content": "hi"}]);
        let text = document(&request, sys, json!([]), turn).to_string();
        let error = render::request(&*snapshot(&text), provider).expect_err("parameters");
        assert!(matches!(error, RenderError::Parameters { .. }));
        assert!(error.help().is_some());
        error.to_string()
    };
    assert_eq!(
        refused(json!([1]), Provider::OpenAi),
        "request parameters: expected a JSON object as `meta.request`"
    );
    assert_eq!(
        refused(json!({"model": "m", "messages": []}), Provider::OpenAi),
        "request parameters: expected parameters without `messages`, which `openai` takes from the tree"
    );
    refused(json!("{broken"), Provider::OpenAi);
    refused(json!({"input": "x"}), Provider::OpenAiResponses);
    refused(json!({"instructions": "x"}), Provider::OpenAiResponses);
    refused(json!({"system": "x"}), Provider::Anthropic);
    // Names that are another provider's are parameters like others.
    let empty = |request: Value| {
        let text = document(&request, json!([]), json!([]), json!([])).to_string();
        self::request(&snapshot(&text), Provider::Anthropic)
    };
    assert_eq!(empty(json!({"input": 1})), json!({"input": 1}));
    // Without a message to send, one of the list's own name is the list; without parameters there is an empty one.
    assert_eq!(empty(json!({"messages": []})), json!({"messages": []}));
    assert_eq!(empty(json!(null)), json!({"messages": []}));
}

#[test]
fn a_request_leaves_out_the_reply_of_its_cycle() {
    let turn = json!([
        {"role": "assistant", "content": "old", "data_reply": 3},
        {"role": "user", "content": "ask"},
        {"role": "assistant", "content": "new", "data_reply": 4},
        {"role": "assistant", "content": "next", "data_reply": 5}]);
    let mut text = document(&json!(null), json!([]), turn, json!([]));
    let contents = |snapshot: &Snapshot| -> Vec<String> {
        let sent = Thread::request(snapshot);
        let source = Source::Snapshot(snapshot, Contents::Request);
        let direct = render::request(source, Provider::OpenAi).unwrap();
        assert_eq!(render::request(&sent, Provider::OpenAi).unwrap(), direct);
        let blocks = sent.blocks().iter();
        blocks
            .map(|block| block.content().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        contents(&snapshot(&text.to_string())),
        ["\"old\"", "\"ask\"", "\"next\""]
    );
    // The working state after cycle 4 is cycle 5.
    let committed = text.to_string();
    text["working"] = json!(true);
    text.as_object_mut().unwrap().remove("cycle");
    assert_eq!(
        contents(&snapshot(&format!("{committed}\n{text}"))),
        ["\"old\"", "\"ask\"", "\"new\""]
    );
}

/// The reply of a cycle that is over is sent again, also if nothing was changed since the commit.
#[test]
fn the_request_after_a_commit_has_its_reply() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let mut context = Context::new();
        context.append(Message::user("Is it warm?")).unwrap();
        context.render(provider).unwrap();
        let reply = Message::assistant("Let me see.").call("k", "weather", "{}");
        context.reply(reply).unwrap();
        context.append(Message::tool("k", "21")).unwrap();
        context.commit().unwrap();
        let unchanged = context.preview(provider).unwrap();
        assert!(unchanged.contains("Let me see.") && unchanged.contains("weather"));
        context.append(Message::user("And cold?")).unwrap();
        let changed = context.preview(provider).unwrap();
        assert!(changed.contains("Let me see.") && changed.contains("And cold?"));
        assert!(changed.len() > unchanged.len());
    }
}

/// A reply without a commit is in the next request once its calls have results; a reply that is made again is not.
#[test]
fn the_next_request_has_a_reply_that_went_on() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let mut context = Context::new();
        context.append(Message::user("Is it warm?")).unwrap();
        let first = context.preview(provider).unwrap();
        let call = Message::assistant("").call("k", "weather", "{}");
        context.reply(call).unwrap();
        assert_eq!(context.preview(provider).unwrap(), first);
        // A note after the core is sent with every request, and follows nothing.
        let note = r#"{"id": "note", "content": "Be brief.", "offset": 1}"#;
        context.add("^ah", note).unwrap();
        assert!(!context.preview(provider).unwrap().contains("weather"));
        context.append(Message::tool("k", "21")).unwrap();
        let second = context.preview(provider).unwrap();
        assert!(second.contains("weather") && second.contains("21"));
        context.reply(Message::assistant("It is.")).unwrap();
        assert_eq!(context.preview(provider).unwrap(), second);
        context.append(Message::user("And cold?")).unwrap();
        let third = context.preview(provider).unwrap();
        assert!(third.contains("weather") && third.contains("It is.") && third.contains("cold"));
    }
}

#[test]
fn a_request_comes_back_byte_for_byte_after_the_commit() {
    let mut context = Context::new();
    context.set_system(["Be brief."]).unwrap();
    context
        .set_tools([r#"{ "name": "f", "input_schema": {"b": 1, "a": 2} }"#])
        .unwrap();
    context.set_request(r#"{ "z": 1.0, "a": "é" }"#).unwrap();
    let mut bodies = Vec::new();
    for provider in [
        Provider::Anthropic,
        Provider::OpenAi,
        Provider::OpenAiResponses,
    ] {
        context.append(Message::user("Hi")).unwrap();
        let hint = r#"{"content": "seen once", "ttl": 0, "offset": -1}"#;
        context.add("^ah", hint).unwrap();
        bodies.push((provider, context.render(provider).unwrap().body));
        context.reply(Message::assistant("Hello")).unwrap();
        context.commit().unwrap();
        context.set_request(r#"{"other": 1}"#).unwrap();
        context.set_system(["Be long."]).unwrap();
    }
    let session = context.session();
    let history = session.history();
    for (at, (provider, body)) in bodies.iter().enumerate() {
        let snapshot = history.committed().get(at).unwrap();
        assert!(body.contains("seen once"), "{body}");
        let thread = pactql::context::sent(&history, snapshot);
        assert_eq!(render::request(&thread, *provider).unwrap(), *body);
    }
}

#[test]
fn imported_messages_are_translated_for_other_apis() {
    let log = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}},
            {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "c"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}]);
    let options = pactql::logs::ImportOptions::default();
    let imported = pactql::logs::import(log.to_string().as_bytes(), &options).unwrap();
    let mut lines = Vec::new();
    imported.sessions[0]
        .recording
        .write_jsonl(&mut lines, false)
        .unwrap();
    becomes(
        &snapshot(std::str::from_utf8(&lines).unwrap()),
        log,
        json!({"instructions": "Be brief.", "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\": 1}"},
            {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [
                {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
            {"type": "function_call_output", "call_id": "c2", "output": "c"},
            {"type": "message", "role": "assistant", "content": "No."}]}),
        json!({"system": "Be brief.", "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [
                    {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"type": "tool_result", "tool_use_id": "c2", "content": "c"}]},
            {"role": "assistant", "content": "No."}]}),
    );
}
