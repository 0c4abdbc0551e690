//! What is counted of a block is in the request, once for each block, in the form it came in and in
//! others.

use super::{TRAVEL, imported};
use crate::support::random::{self, share};
use pactql::render::{Contents, Wording};
use pactql::{
    Provider, Session,
    render::{Thread, request},
};
use proptest::prelude::TestCaseError;

/// The pieces of a snapshot's blocks that its request does not have.
fn missing(session: &Session, provider: Provider) -> Vec<String> {
    let history = session.history();
    let mut missing = Vec::new();
    for snapshot in history.committed().iter().chain(history.working()) {
        let Ok(request) = request(&**snapshot, provider) else {
            continue;
        };
        // Requests spell some letters with `\u`.
        let value: serde_json::Value = serde_json::from_str(&request).unwrap();
        let plain = value.to_string();
        for block in Thread::from_snapshot(snapshot, Contents::All).blocks() {
            // A definition is translated for another provider.
            if block.is_tool() && provider != Provider::OpenAi {
                continue;
            }
            for text in Wording::from_block(block).texts() {
                let quoted = serde_json::json!(text).to_string();
                let quoted = &quoted[1..quoted.len() - 1];
                // Text as a string, or JSON as it is.
                if !plain.contains(quoted) && !request.contains(text) {
                    missing.push(format!("{provider} {}: {text}", block.id()));
                }
            }
        }
    }
    missing
}

#[test]
fn the_request_has_what_is_counted() {
    let fixtures = ["fixtures/support-agent.jsonl", "fixtures/greenhouse.jsonl"];
    let fixtures = fixtures.map(|path| Session::open(path).unwrap());
    let chat = imported(include_bytes!("../../../fixtures/chat.openai.json"));
    for session in fixtures.iter().chain([&chat, &imported(TRAVEL)]) {
        for provider in [Provider::OpenAi, Provider::OpenAiResponses] {
            assert_eq!(missing(session, provider), [""; 0]);
        }
    }
}

#[test]
fn the_requests_of_random_sessions_have_what_is_counted() {
    random::sessions(share(500), |case| {
        let (session, _) = case.open()?;
        let missing = missing(&session, Provider::OpenAi);
        if missing.is_empty() {
            Ok(())
        } else {
            Err(TestCaseError::fail(missing.join("\n")))
        }
    });
}
