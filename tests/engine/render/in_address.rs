//! The forms of the APIs whose model stands in the address: Gemini and Bedrock.

use super::{document, request, snapshot, tree};
use pactql::{Provider, Snapshot, render};
use serde_json::json;

#[track_caller]
fn refused(snapshot: &Snapshot, provider: Provider, message: &str) {
    let error = render::request(snapshot, provider).expect_err("an error");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn a_whole_request() {
    let tool =
        json!({"name": "f", "description": "d", "input_schema": {"type": "object"}}).to_string();
    let bare = json!({"type": "function", "function": {"name": "g"}}).to_string();
    let sys = json!([
        {"content": "One."}, {"role": "developer", "content": "Two."},
        {"kind": "tool", "content": tool}, {"kind": "tool", "content": bare}]);
    let turn = json!([
        {"role": "user", "kind": "text", "content": "Hi"},
        {"role": "user", "kind": "image", "content": {"media_type": "image/png", "data": "AAAA"}},
        {"role": "assistant", "kind": "thinking", "content": "hm", "data_part": {"signature": "c2ln"}},
        {"role": "assistant", "kind": "thinking", "content": "well"},
        {"role": "assistant", "kind": "call", "content": "{\"q\": 1}", "id": "c:1", "data_call_name": "f"},
        {"role": "assistant", "kind": "call", "content": "no object", "key": "g", "id": "c2"},
        {"role": "system", "content": "A hint."},
        {"role": "tool", "kind": "result", "content": "12 degrees", "data_call_id": "c:1"},
        {"role": "tool", "kind": "result", "content": "and rain", "data_call_id": "c:1"},
        {"role": "tool", "kind": "error", "content": {"why": "none"}, "data_call_id": "c2"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "Yes."}]);
    let parameters = json!({"toolConfig": {"toolChoice": {"auto": {}}}, "n": 1});
    let text = document(&parameters, sys, turn, json!([])).to_string();
    let snapshot = snapshot(&text);
    let schema = json!({"type": "object"});
    let image = json!({"mimeType": "image/png", "data": "AAAA"});
    assert_eq!(
        request(&snapshot, Provider::Gemini),
        json!({"n": 1, "toolConfig": {"toolChoice": {"auto": {}}},
            "systemInstruction": {"parts": [{"text": "One."}, {"text": "Two."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}, {"inlineData": image}]},
                {"role": "model", "parts": [
                    {"text": "hm", "thought": true}, {"text": "well", "thought": true},
                    {"functionCall": {"id": "c:1", "name": "f", "args": {"q": 1}}},
                    {"functionCall": {"id": "c2", "name": "g", "args": {"arguments": "no object"}}}]},
                {"role": "user", "parts": [
                    {"text": "A hint."},
                    {"functionResponse": {"id": "c:1", "name": "f", "response": {"output": "12 degrees\nand rain"}}},
                    {"functionResponse": {"id": "c2", "name": "g", "response": {"why": "none"}}}]},
                {"role": "model", "parts": [{"text": "Yes."}]}],
            "tools": [{"functionDeclarations": [
                {"name": "f", "description": "d", "parametersJsonSchema": schema}, {"name": "g"}]}]})
    );
    let empty = json!({"type": "object", "properties": {}});
    assert_eq!(
        request(&snapshot, Provider::Bedrock),
        json!({"n": 1, "system": [{"text": "One."}, {"text": "Two."}],
            "messages": [
                {"role": "user", "content": [
                    {"text": "Hi"}, {"image": {"format": "png", "source": {"bytes": "AAAA"}}}]},
                {"role": "assistant", "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}, {"text": "well"},
                    {"toolUse": {"toolUseId": "c-1", "name": "f", "input": {"q": 1}}},
                    {"toolUse": {"toolUseId": "c2", "name": "g", "input": {"arguments": "no object"}}}]},
                {"role": "user", "content": [
                    {"toolResult": {"toolUseId": "c-1", "content": [{"text": "12 degrees"}, {"text": "and rain"}]}},
                    {"toolResult": {"toolUseId": "c2", "content": [{"text": "{\"why\":\"none\"}"}], "status": "error"}},
                    {"text": "A hint."}]},
                {"role": "assistant", "content": [{"text": "Yes."}]}],
            "toolConfig": {"toolChoice": {"auto": {}}, "tools": [
                {"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": schema}}},
                {"toolSpec": {"name": "g", "inputSchema": {"json": empty}}}]}})
    );
}

#[test]
fn files_are_data_or_addresses() {
    let part = |provider, content: serde_json::Value| {
        let block = json!([{"role": "user", "kind": "document", "content": content}]);
        let list = if provider == Provider::Gemini {
            "contents"
        } else {
            "messages"
        };
        let inner = if provider == Provider::Gemini {
            "parts"
        } else {
            "content"
        };
        request(&tree(json!([]), block, json!([])), provider)[list][0][inner][0].take()
    };
    let pdf = json!({"media_type": "application/pdf", "data": "AAAA"});
    assert_eq!(
        part(Provider::Gemini, pdf.clone()),
        json!({"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}})
    );
    assert_eq!(
        part(Provider::Bedrock, pdf),
        json!({"document": {"name": "b0", "format": "pdf", "source": {"bytes": "AAAA"}}})
    );
    let url = json!({"url": "s3://bucket/a.pdf"});
    assert_eq!(
        part(Provider::Gemini, url.clone()),
        json!({"fileData": {"fileUri": "s3://bucket/a.pdf"}})
    );
    assert_eq!(
        part(Provider::Bedrock, url),
        json!({"document": {"name": "b0", "format": "pdf", "source": {"s3Location": {"uri": "s3://bucket/a.pdf"}}}})
    );
    assert_eq!(
        part(Provider::Bedrock, json!("a text")),
        json!({"text": "a text"})
    );
    assert_eq!(
        part(
            Provider::Bedrock,
            json!({"url": "https://example.org/a.pdf"})
        ),
        json!({"text": "{\"url\":\"https://example.org/a.pdf\"}"})
    );
    for content in [
        json!({"file_id": "f"}),
        json!({"media_type": "audio/wav", "data": "AAAA"}),
    ] {
        let block = json!([{"role": "user", "kind": "document", "content": content}]);
        refused(&tree(json!([]), block, json!([])), Provider::Bedrock, "S3");
    }
    // A hosted tool of another API, and one of Gemini's own that was not sent there.
    for content in [json!({"type": "web_search"}), json!({"googleSearch": {}})] {
        let sys = json!([{"kind": "tool", "content": content.to_string()}]);
        for provider in [Provider::Gemini, Provider::Bedrock] {
            refused(
                &tree(sys.clone(), json!([]), json!([])),
                provider,
                "expected a",
            );
        }
    }
}
