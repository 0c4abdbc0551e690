//! Images and documents, in whatever form they were stored.

use super::{request, tree, turn_becomes};
use pactql::{Provider, render};
use serde_json::{Value, json};

/// The first part of the only message for the three APIs.
fn parts(block: Value) -> [Value; 3] {
    let snapshot = tree(json!([]), json!([block]), json!([]));
    let mut openai = request(&snapshot, Provider::OpenAi);
    let mut responses = request(&snapshot, Provider::OpenAiResponses);
    let mut anthropic = request(&snapshot, Provider::Anthropic);
    [
        openai[0]["content"].take(),
        responses["input"][0]["content"].take(),
        anthropic["messages"][0]["content"].take(),
    ]
}

#[test]
fn images_in_any_form() {
    let bytes = "data:image/png;base64,AAAA";
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    for content in [
        json!(bytes),
        json!({"url": bytes}),
        json!({"type": "image_url", "image_url": {"url": bytes}}),
        json!({"type": "input_image", "image_url": bytes}),
        json!({"type": "image", "source": source}),
        json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
        source.clone(),
    ] {
        assert_eq!(
            parts(json!({"kind": "image", "content": content})),
            [
                json!([{"type": "image_url", "image_url": {"url": bytes}}]),
                json!([{"type": "input_image", "image_url": bytes}]),
                json!([{"type": "image", "source": source}]),
            ]
        );
    }
    let url = "https://example.org/a.png";
    let block =
        json!({"kind": "image", "role": "assistant", "content": {"url": url, "detail": "high"}});
    assert_eq!(
        parts(block),
        [
            json!([{"type": "image_url", "image_url": {"url": url, "detail": "high"}}]),
            json!([{"type": "input_image", "image_url": url, "detail": "high"}]),
            json!([{"type": "image", "source": {"type": "url", "url": url}}]),
        ]
    );
}

#[test]
fn an_image_without_a_place_is_refused() {
    for content in [
        json!(null),
        json!("iVBORw0KGgo="),
        json!(7),
        json!({}),
        json!({"data": "AAAA"}),
        json!({"type": "text", "data": "AAAA"}),
    ] {
        let block = json!({"id": "img", "kind": "image", "content": content});
        let snapshot = tree(json!([]), json!([block]), json!([]));
        assert!(render::request(&*snapshot, Provider::Thread).is_ok());
        for api in [
            Provider::OpenAi,
            Provider::OpenAiResponses,
            Provider::Anthropic,
        ] {
            let error = render::request(&*snapshot, api).expect_err("no image");
            assert_eq!(
                error.to_string(),
                "block `img`: expected an image as content: a URL, or base64 data with its media type"
            );
        }
    }
    // Chat has no place for the id of a file.
    let block = json!({"id": "img", "kind": "image", "content": {"file_id": "f1"}});
    let snapshot = tree(json!([]), json!([block]), json!([]));
    let error = render::request(&*snapshot, Provider::OpenAi).expect_err("a file");
    assert!(
        error.to_string().contains("found the id of a file"),
        "{error}"
    );
    let responses = request(&snapshot, Provider::OpenAiResponses);
    let part = json!([{"type": "input_image", "file_id": "f1"}]);
    assert_eq!(responses["input"][0]["content"], part);
    let anthropic = request(&snapshot, Provider::Anthropic);
    let part = json!([{"type": "image", "source": {"type": "file", "file_id": "f1"}}]);
    assert_eq!(anthropic["messages"][0]["content"], part);
}

#[test]
fn documents_in_any_form() {
    let block = |content: Value| json!({"kind": "document", "key": "a.pdf", "content": content});
    let data = "data:application/pdf;base64,AAAA";
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": "AAAA"});
    assert_eq!(
        parts(block(json!({"type": "document", "source": source}))),
        [
            json!([{"type": "file", "file": {"filename": "a.pdf", "file_data": data}}]),
            json!([{"type": "input_file", "filename": "a.pdf", "file_data": data}]),
            json!([{"type": "document", "source": source, "title": "a.pdf"}]),
        ]
    );
    assert_eq!(
        parts(block(
            json!({"file": {"filename": "b.pdf", "file_data": data}})
        ))[0],
        json!([{"type": "file", "file": {"filename": "b.pdf", "file_data": data}}])
    );
    assert_eq!(
        parts(block(json!({"file_id": "f1"}))),
        [
            json!([{"type": "file", "file": {"file_id": "f1"}}]),
            json!([{"type": "input_file", "file_id": "f1"}]),
            json!([{"type": "document", "source": {"type": "file", "file_id": "f1"}}]),
        ]
    );
    let url = "https://example.org/a.pdf";
    assert_eq!(
        parts(block(json!({"url": url}))),
        [
            // Chat has no part for it: the content is sent as text.
            json!("{\"url\":\"https://example.org/a.pdf\"}"),
            json!([{"type": "input_file", "file_url": url}]),
            json!([{"type": "document", "source": {"type": "url", "url": url}}]),
        ]
    );
    assert_eq!(
        parts(block(json!({"title": "no bytes"}))),
        [
            json!("{\"title\":\"no bytes\"}"),
            json!("{\"title\":\"no bytes\"}"),
            json!("{\"title\":\"no bytes\"}"),
        ]
    );
}

#[test]
fn a_document_that_is_text_keeps_its_role() {
    let sys = json!([{"kind": "document", "content": "Handbook 4.2"}]);
    let found = request(&tree(sys, json!([]), json!([])), Provider::Anthropic);
    assert_eq!(found, json!({"system": "Handbook 4.2", "messages": []}));
    turn_becomes(
        json!([{"kind": "document", "role": "system", "content": "Handbook 4.2"}]),
        json!([{"role": "system", "content": "Handbook 4.2"}]),
        json!([{"type": "message", "role": "system", "content": "Handbook 4.2"}]),
        json!([{"role": "user", "content": [{"type": "document", "source":
            {"type": "text", "media_type": "text/plain", "data": "Handbook 4.2"}}]}]),
    );
}
