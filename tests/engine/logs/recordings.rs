//! Recordings of HTTP, and the requests to Gemini and Bedrock that are in them: every one comes back equal, streams
//! are put together, and nothing that authorizes enters.

use super::{Session, holds_together, imported, written};
use pactql::Provider;
use pactql::logs::{Fate, Format, ImportOptions, Imported, MessageLocation, import};
use pactql::render::{Thread, request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// YAML as another library reads it; bytes are the texts that they are in base64.
pub(super) fn yaml(text: &str) -> Value {
    use serde_yaml_ng::Value as Yaml;
    fn plain(value: Yaml) -> Value {
        match value {
            Yaml::Tagged(tagged) => plain(tagged.value),
            Yaml::Sequence(all) => all.into_iter().map(plain).collect(),
            Yaml::Mapping(all) => {
                let all = all.into_iter();
                let key = |key: Yaml| key.as_str().expect("a text").to_owned();
                all.map(|(name, value)| (key(name), plain(value))).collect()
            }
            other => serde_json::to_value(other).expect("a scalar"),
        }
    }
    plain(serde_yaml_ng::from_str(text).expect("YAML"))
}

/// The requests of a recording by session, in the order of the sessions' first requests: what was sent in each cycle.
fn sent(imported: &Imported) -> Vec<(Provider, Vec<Value>)> {
    let of_session = |session: &Session| {
        let newest = session.committed.last().expect("a snapshot");
        let provider = pactql::inspect::provider_of(newest);
        let render = |snapshot| request(&Thread::request(snapshot), provider).expect("a request");
        let parse = |text: String| serde_json::from_str(&text).expect("JSON");
        let snapshots = session.committed.iter();
        let sent = snapshots.map(|snapshot| parse(render(snapshot))).collect();
        (provider, sent)
    };
    holds_together(imported).iter().map(of_session).collect()
}

/// The cassettes are not part of the repository; see [`crate::real_data`].
#[test]
fn every_request_of_recorded_cassettes_comes_back_equal() {
    let folder = crate::real_data::data().map(|root| root.join("agent-logs/cassettes"));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        println!("SKIPPED: no recorded cassettes");
        return;
    };
    let (mut count, mut streams) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if !path.display().to_string().ends_with(".yaml.gz") {
            continue;
        }
        let name = path.display().to_string();
        let bytes = super::account::unpacked(&path);
        let log = yaml(std::str::from_utf8(&bytes).expect("text"));
        let wanted: Vec<Value> = bodies(&log)
            .iter()
            .map(|one| match &one["request"] {
                request if request["parsed_body"].is_object() => request["parsed_body"].clone(),
                request => {
                    serde_json::from_str(request["body"].as_str().expect("a text")).expect("JSON")
                }
            })
            .collect();
        let imported = import(&bytes, &ImportOptions::default()).expect(&name);
        assert_eq!(imported.format, Some(Format::Vcr), "{name}");
        let report = &imported.report;
        let left = report.lines(Fate::Skipped) + report.parts(Fate::Verbatim);
        assert_eq!(left, 0, "{name}: {report}");
        let is_bedrock = name.contains("bedrock");
        let provider = if is_bedrock {
            Provider::Bedrock
        } else {
            Provider::Gemini
        };
        count += wanted.len();
        assert_eq!(sent(&imported), [(provider, wanted)], "{name}");
        for (snapshot, one) in holds_together(&imported)[0]
            .committed
            .iter()
            .zip(bodies(&log))
        {
            // The form that `render` chooses.
            assert_eq!(
                pactql::inspect::came_in_as(snapshot),
                Some(provider),
                "{name}"
            );
            let whole = request(snapshot, provider).expect("a request");
            let whole: Value = serde_json::from_str(&whole).expect("JSON");
            let list = if is_bedrock { "messages" } else { "contents" };
            let reply = whole[list]
                .as_array()
                .and_then(|all| all.last())
                .expect("a reply");
            let parts =
                |message: &Value| message[if is_bedrock { "content" } else { "parts" }].clone();
            let answer = &one["response"]["parsed_body"];
            let message = if is_bedrock {
                &answer["output"]["message"]
            } else {
                &answer["candidates"][0]["content"]
            };
            if message.is_object() {
                assert_eq!(parts(reply), parts(message), "{name}");
            } else {
                let streamed = streamed(&one["response"]["body"]["string"], is_bedrock);
                streams += 1;
                assert_eq!(gist(&parts(reply)), gist(&streamed), "{name}");
            }
        }
        for session in holds_together(&imported) {
            for line in session.export(true).lines() {
                let whole: Value = serde_json::from_str(line).expect("JSON");
                let usage = &whole["usage"];
                assert!(usage["input_tokens"].as_u64() > Some(0), "{name}: {usage}");
                assert!(usage["output_tokens"].as_u64() > Some(0), "{name}: {usage}");
                assert!(usage["model"].is_string(), "{name}: {usage}");
            }
        }
    }
    println!("{count} requests, {streams} streams");
    assert_eq!((count, streams), (23, 8));
}

fn bodies(log: &Value) -> &[Value] {
    log["interactions"].as_array().expect("a list")
}

/// The parts of all events of a stream, one after the other: lines of server-sent events, or AWS's frames.
fn streamed(body: &Value, is_bedrock: bool) -> Value {
    let text = body.as_str().expect("a text");
    if !is_bedrock {
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = data.map(|data| serde_json::from_str::<Value>(data).expect("JSON"));
        let parts = events.map(|event| event["candidates"][0]["content"]["parts"].clone());
        return parts
            .flat_map(|parts| parts.as_array().cloned().unwrap_or_default())
            .collect();
    }
    let packed: String = text.split_ascii_whitespace().collect();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, packed);
    let bytes = bytes.expect("base64");
    let (mut rest, mut parts) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let length =
            |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("four")) as usize;
        let payload = &rest[12 + length(4)..length(0) - 4];
        let event: Value = serde_json::from_slice(payload).expect("JSON");
        parts.extend(["start", "delta"].map(|name| event[name].clone()));
        rest = &rest[length(0)..];
    }
    parts.into()
}

/// The texts of parts together, and the names and arguments of their calls, spelled as JSON.
fn gist(parts: &Value) -> (String, Vec<String>, String) {
    let parts = || parts.as_array().expect("parts").iter();
    let said = parts().filter_map(|part| part["text"].as_str()).collect();
    let calls = || parts().flat_map(|part| [&part["functionCall"], &part["toolUse"]]);
    let names = calls().filter_map(|call| call["name"].as_str().map(str::to_owned));
    let arguments = calls().map(|call| match (&call["args"], &call["input"]) {
        (Value::Null, Value::Null) => String::new(),
        (Value::Null, Value::String(piece)) => piece.clone(),
        (Value::Null, whole) | (whole, _) => whole.to_string(),
    });
    let arguments: String = arguments.collect();
    let spelled = arguments.split_ascii_whitespace().collect();
    (said, names.collect(), spelled)
}

/// A file as browsers and proxies write it: members of their own, comments, bodies in base64, other exchanges.
#[test]
fn a_browsers_recording_is_read_without_its_secrets() {
    let secret = "s3cret-of-nobody";
    let pairs = |pairs: &[(&str, &str)]| -> Value {
        let pair =
            |(name, value): &(&str, &str)| json!({"name": name, "value": value, "comment": ""});
        pairs.iter().map(pair).collect()
    };
    let bearer = format!("Bearer {secret}");
    let encode =
        |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let entry = |url: &str, method: &str, body: Option<&Value>, answer: &str, mime: &str| {
        let mut entry = json!({
            "_initiator": {"type": "script", "url": format!("https://app.example.org/?key={secret}")},
            "_priority": "High", "_resourceType": "fetch", "pageref": "page_1",
            "startedDateTime": "2026-03-02T10:00:01.250+01:00", "time": 812.4,
            "request": {
                "method": method, "url": url, "httpVersion": "http/2.0", "headersSize": -1, "bodySize": -1,
                "headers": pairs(&[("Authorization", &bearer), ("x-api-key", secret), ("cookie", secret),
                    ("x-goog-api-key", secret), ("X-Amz-Security-Token", secret), ("api-key", secret)]),
                "queryString": pairs(&[("key", secret)]), "cookies": pairs(&[("sid", secret)]), "comment": ""},
            "response": {
                "status": 200, "statusText": "", "httpVersion": "http/2.0", "redirectURL": "", "headersSize": -1,
                "bodySize": -1, "_transferSize": 900, "_error": null,
                "headers": pairs(&[("Set-Cookie", secret)]), "cookies": pairs(&[("sid", secret)]),
                "content": {"size": answer.len(), "compression": 0, "mimeType": mime, "encoding": "base64",
                    "text": encode(answer), "comment": ""}},
            "cache": {"beforeRequest": null}, "timings": {"send": 0.1, "wait": 800, "receive": 11, "_blocked": 0.5},
            "serverIPAddress": "203.0.113.7", "connection": "443", "comment": "slow"});
        if let Some(body) = body {
            entry["request"]["postData"] = json!({"mimeType": "application/json", "params": [],
                "text": body.to_string(), "comment": ""});
        }
        entry
    };
    let other = || {
        entry(
            "https://app.example.org/a.js",
            "GET",
            None,
            "x",
            "text/javascript",
        )
    };
    let mut form = entry(
        "https://app.example.org/login",
        "POST",
        None,
        "ok",
        "text/html",
    );
    form["request"]["postData"] = json!({"mimeType": "application/x-www-form-urlencoded",
        "params": pairs(&[("password", secret)]), "text": format!("password={secret}")});
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "Name a ferry."}]}]});
    let ferry =
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Frisia."}]}}]});
    let chat =
        json!({"model": "m", "messages": [{"role": "user", "content": "Say hé"}], "stream": true});
    let stream = "data: {\"id\":\"r1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"H\"}}]}\n\n\
        data: {\"id\":\"r1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é.\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: [DONE]\n\n";
    let of_gemini = format!("https://api.example.org/v1beta/models/g:generateContent?key={secret}");
    let of_chat = format!("https://user:{secret}@api.example.org/v1/chat/completions#{secret}");
    let log = json!({"log": {
        "version": "1.2", "creator": {"name": "WebInspector", "version": "537.36", "comment": ""},
        "browser": {"name": "Firefox", "version": "139.0"},
        "pages": [{"id": "page_1", "title": format!("https://app.example.org/?key={secret}"), "pageTimings": {}}],
        "entries": [other(), other(), form,
            entry(&of_gemini, "POST", Some(&gemini), &ferry.to_string(), "application/json; charset=UTF-8"),
            entry(&of_chat, "POST", Some(&chat), stream, "text/event-stream"), other(), other()],
        "comment": "made by hand"}});
    let cassette = json!({"version": 1, "interactions": [{
        "request": {"method": "POST", "uri": of_gemini, "parsed_body": gemini, "headers": {
            "authorization": [&bearer], "x-api-key": [secret], "Cookie": [secret], "x-goog-api-key": [secret],
            "X-Amz-Security-Token": [secret], "api-key": [secret]}},
        "response": {"status": {"code": 200, "message": "OK"}, "parsed_body": ferry,
            "headers": {"Set-Cookie": [secret], "set-cookie": [secret]}}}]});
    let with_mark = format!("\u{feff}{log}");
    let requests = [
        (Provider::Gemini, vec![gemini]),
        (Provider::OpenAi, vec![chat]),
    ];
    for (text, format, wanted) in [
        (&*log.to_string(), Format::Har, &requests[..]),
        (&*with_mark, Format::Har, &requests),
        (&*cassette.to_string(), Format::Vcr, &requests[..1]),
    ] {
        let imported = import(text.as_bytes(), &ImportOptions::default()).expect("a recording");
        assert_eq!(imported.format, Some(format));
        assert_eq!(sent(&imported), wanted);
        let found = outcomes(&imported);
        assert_eq!(found["gemini"].0, ["text Frisia."]);
        assert!(
            format == Format::Vcr || found["openai"].0 == ["text Hé."],
            "{found:?}"
        );
        for session in 0..imported.sessions.len() {
            assert!(!written(&imported, session, true).contains(secret));
        }
        assert!(!format!("{} {:?}", imported.report, imported.report).contains(secret));
    }
}

fn fixture(name: &str) -> Imported {
    let bytes = std::fs::read(Path::new("tests/cases/logs").join(name)).expect("a file");
    let imported = import(&bytes, &ImportOptions::default()).expect(name);
    for session in 0..imported.sessions.len() {
        assert!(
            !written(&imported, session, true).contains("s3cret"),
            "{name}"
        );
    }
    imported
}

/// The last snapshot of each session: what was replied, what is in `usage`, and the attempts.
fn outcomes(imported: &Imported) -> BTreeMap<&'static str, (Vec<String>, Value)> {
    let outcome = |session: &Session| {
        let newest = session.committed.last().expect("a snapshot");
        let cycle = newest.cycle().to_string();
        let replied = newest.nodes().filter(|node| {
            let reply = node.field("data_reply").map(|value| value.canonical());
            reply.as_deref() == Some(&*cycle)
        });
        let said = replied.map(|node| {
            let content = node
                .field("content")
                .and_then(|value| value.text().map(str::to_owned));
            format!(
                "{} {}",
                node.kind().unwrap_or("-"),
                content.unwrap_or_default()
            )
        });
        let line = session.export(true);
        let whole = serde_json::from_str(line.lines().last().expect("a line")).expect("JSON");
        let name = pactql::inspect::provider_of(newest).name();
        (name, (said.collect(), whole))
    };
    holds_together(imported).iter().map(outcome).collect()
}

#[test]
fn a_cassette_has_the_calls_of_every_api() {
    let imported = fixture("vcr/synthetic-cassette.yaml");
    assert_eq!(imported.format, Some(Format::Vcr));
    assert_eq!(imported.report.lines(Fate::Skipped), 2);
    assert_eq!(imported.sessions.len(), 6);
    let found = outcomes(&imported);
    let said = |name: &str| found[name].0.join("; ");
    assert_eq!(said("openai"), "text The Pilsum lighthouse.");
    assert_eq!(said("openai-responses"), "text Juist is an island.");
    assert_eq!(said("anthropic"), "text Greetsiel has one.");
    assert_eq!(said("gemini"), "text The Frisia is a ferry.");
    let attempts = |name: &str| found[name].1["meta"]["attempts"].clone();
    assert_eq!(
        attempts("openai"),
        json!([{"error": {"message": "Please slow down a little.", "type": "rate_limit"}, "status": "error"}])
    );
    assert_eq!(
        found["openai"].1["meta"]["url"],
        "https://gateway.example.org/openai/v1/chat/completions"
    );
    assert_eq!(found["gemini"].1["usage"]["model"], "gemini-example");
    assert_eq!(
        found["bedrock"].1["usage"]["model"],
        "anthropic.claude-example-v1:0"
    );
    // The one that nothing answered is another session, and the last.
    assert_eq!(
        attempts("bedrock"),
        json!([{"error": "Bad Gateway, says the proxy", "status": "error"}])
    );
    let streamed = written(&imported, 4, true);
    for part in [
        "It depends on the moon.",
        "c2ln",
        "Emden",
        "tooluse_5",
        "tool_use",
    ] {
        assert!(streamed.contains(part), "{part}: {streamed}");
    }
    let (_, sent) = &sent(&imported)[3];
    assert_eq!(
        sent[0],
        json!({"contents": [{"parts": [{"text": "Name a ferry, please."}], "role": "user"}],
            "generationConfig": {"temperature": 0.5}})
    );
}

#[test]
fn a_har_has_times_attempts_and_streams() {
    let imported = fixture("har/synthetic-recording.har");
    assert_eq!(imported.format, Some(Format::Har));
    assert_eq!(imported.report.lines(Fate::Skipped), 1);
    let found = outcomes(&imported);
    assert_eq!(found.len(), 3);
    let anthropic = &found["anthropic"].1;
    assert_eq!(
        anthropic["meta"]["attempts"][0]["error"]["type"],
        "overloaded_error"
    );
    assert_eq!(anthropic["usage"]["latency_ms"], 120.5);
    let text = anthropic.to_string();
    assert!(text.contains("2026-03-02T09:00:02.25"), "{text}");
    assert_eq!(found["gemini"].0, ["text Emma is in, Middlemarch is lent."]);
    assert_eq!(
        found["bedrock"].0,
        ["thinking It depends on the moon.", "call {\"z\":\"Emden\"}"]
    );
    assert_eq!(found["bedrock"].1["usage"]["input_tokens"], 20);
}

#[test]
fn the_address_says_the_api() {
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let cases = [
        (
            "https://openrouter.ai/api/v1/chat/completions",
            "POST",
            chat.clone(),
            "openai",
        ),
        (
            "http://localhost:11434/v1/chat/completions/",
            "post",
            chat.clone(),
            "openai",
        ),
        (
            "https://x.openai.azure.com/openai/responses?api-version=1",
            "POST",
            json!({"model": "m", "input": "hi"}),
            "openai-responses",
        ),
        (
            "https://proxy.example.org/anthropic/v1/messages?beta=true",
            "POST",
            chat.clone(),
            "anthropic",
        ),
        (
            "https://r-aiplatform.googleapis.com/v1/projects/p/locations/r/publishers/google/models/gemini-x:generateContent",
            "POST",
            json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
            "gemini",
        ),
        (
            "https://bedrock-runtime.x.amazonaws.com/model/a%3Ab%2Fc/converse",
            "POST",
            json!({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}),
            "bedrock",
        ),
        (
            "https://api.openai.com/v1/chat/completions",
            "OPTIONS",
            chat.clone(),
            "",
        ),
        (
            "https://api.openai.com/v1/embeddings",
            "POST",
            chat.clone(),
            "",
        ),
        (
            "https://api.example.org/models/gemini-x:countTokens",
            "POST",
            chat.clone(),
            "",
        ),
        (
            "https://api.example.org/v1/messages/count_tokens",
            "POST",
            chat,
            "",
        ),
        ("", "POST", json!({}), ""),
    ];
    for (url, method, body, wanted) in cases {
        let log = json!({"log": {"entries": [{
            "request": {"url": url, "method": method, "postData": {"text": body.to_string()}},
            "response": {"status": 200, "content": {}}}]}});
        let options = ImportOptions {
            lenient: true,
            ..ImportOptions::default()
        };
        let imported = import(log.to_string().as_bytes(), &options).expect(url);
        let skipped = imported.report.lines(Fate::Skipped);
        assert_eq!(
            skipped == 1,
            wanted.is_empty(),
            "{url}: {}",
            imported.report
        );
        if wanted.is_empty() {
            continue;
        }
        let found = sent(&imported);
        let (provider, requests) = &found[0];
        assert_eq!(provider.name(), wanted, "{url}");
        assert_eq!(requests, &[body], "{url}");
        if wanted == "bedrock" {
            assert!(written(&imported, 0, true).contains("\"model\":\"a:b/c\""));
        }
    }
}

#[test]
fn calls_without_ids_are_answered_by_name_in_order() {
    let call = |name: &str, of: &str| json!({"functionCall": {"name": name, "args": {"of": of}}});
    let answer = |name: &str, said: &str| json!({"functionResponse": {"name": name, "response": {"said": said}}});
    let log = json!({"model": "gemini-example", "contents": [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [call("a", "1"), call("b", "2"), call("a", "3")]},
        {"role": "user", "parts": [answer("b", "two"), answer("a", "one"), answer("a", "three")]},
        {"role": "model", "parts": [call("a", "4")]},
        {"role": "user", "parts": [answer("a", "four")]}]});
    let imported = imported(log.to_string().as_bytes(), MessageLocation::Usual);
    let session = holds_together(&imported).remove(0);
    let render = |provider| -> Value {
        let text = request(&Thread::request(session.current()), provider).expect("a request");
        serde_json::from_str(&text).expect("JSON")
    };
    assert_eq!(render(Provider::Gemini), log);
    let chat = render(Provider::OpenAi);
    let mut calls = BTreeMap::new();
    let mut pairs = Vec::new();
    for message in chat["messages"].as_array().expect("a list") {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().expect("an id").to_owned();
            let fresh = calls.insert(id, call["function"]["arguments"].clone());
            assert!(fresh.is_none(), "{chat}");
        }
        if let Some(id) = message["tool_call_id"].as_str() {
            pairs.push(format!("{} {}", calls[id], message["content"]));
        }
    }
    let wanted = [("2", "two"), ("1", "one"), ("3", "three"), ("4", "four")];
    let wanted = wanted.map(|(of, said)| {
        let text = |json: Value| Value::String(json.to_string());
        format!(
            "{} {}",
            text(json!({"of": of})),
            text(json!({"said": said}))
        )
    });
    assert_eq!(pairs, wanted);
    for (provider, id, result) in [
        (Provider::Anthropic, "id", "tool_use_id"),
        (Provider::Bedrock, "toolUseId", "toolUseId"),
        (Provider::OpenAiResponses, "call_id", "call_id"),
    ] {
        let text = render(provider).to_string();
        assert!(text.contains(&format!("\"{id}\":\"cb")), "{text}");
        assert!(text.contains(&format!("\"{result}\":\"cb")), "{text}");
    }
}

#[test]
fn yaml_that_is_hostile_is_refused() {
    let refused = |text: &str| {
        let options = ImportOptions::default();
        let error = import(text.as_bytes(), &options).expect_err("refused");
        error.to_string()
    };
    let mut bomb = "interactions:\n- a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..40 {
        let before = format!("*a{}", level - 1);
        bomb += &format!("  a{level}: &a{level} [{before}, {before}, {before}, {before}]\n");
    }
    let error = refused(&bomb);
    assert!(error.contains("many times larger"), "{error}");
    let error = refused("interactions:\n- &a [*a]\n");
    assert!(error.contains("malformed YAML"), "{error}");
    let error = refused("interactions:\n- ? [a, b]\n  : c\n");
    assert!(error.contains("a key that is not a text"), "{error}");
    let error = refused("interactions:\n- 'open\n");
    assert!(error.contains("malformed YAML"), "{error}");
    let deep = format!(
        "interactions:\n- {}{}\n",
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    refused(&deep);
    // Frames that are cut off, and lengths that are wrong, are a reply as far as it goes.
    for bytes in ["AAAAEAAAAAAAAAAAAAAAAA==", "/////w==", "AAAABAAAAAQ="] {
        let text = format!(
            "interactions:\n- request:\n    method: POST\n    uri: https://x/model/m/converse-stream\n    \
             body: '{{\"messages\":[{{\"role\":\"user\",\"content\":[{{\"text\":\"hi\"}}]}}]}}'\n  \
             response:\n    status: {{code: 200}}\n    body: {{string: !!binary {bytes}}}\nversion: 1\n"
        );
        let imported = import(text.as_bytes(), &ImportOptions::default()).expect("a log");
        assert_eq!(imported.sessions.len(), 1);
    }
}

/// A cassette that is cut between lines is often YAML still: it is refused, so that nothing is made of a half.
#[test]
fn a_cassette_that_is_cut_is_refused() {
    let text = std::fs::read_to_string("tests/cases/logs/vcr/synthetic-cassette.yaml");
    let text = text.expect("a fixture");
    let whole = text.find("\nversion:").expect("its end");
    let mut valid = 0;
    for (at, _) in text.match_indices('\n').filter(|(at, _)| *at <= whole) {
        let options = ImportOptions::default();
        let error = import(&text.as_bytes()[..=at], &options).expect_err("it is cut");
        valid += usize::from(error.to_string().contains("ends before its `version`"));
    }
    assert!(valid > 50, "{valid}");
    import(text.as_bytes(), &ImportOptions::default()).expect("whole");
}

/// Parts of every known shape, and malformed ones, alone and beside each other.
#[test]
fn odd_parts_come_back_equal() {
    let gemini = json!([
        {"text": "a"}, {"text": ""}, {"text": 4}, {"text": "a", "thought": true},
        {"text": "a", "thought": false, "thoughtSignature": "c2ln"}, {"thought": true},
        {"functionCall": {"name": "f", "args": {"z": 1, "a": [1.0, null]}}},
        {"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "args": null}},
        {"functionCall": {"name": "f", "args": "text", "id": "c1", "more": 1}, "x": 2},
        {"functionCall": {"args": {}}}, {"functionCall": {"name": "f", "id": 7, "args": {}}}, {"functionCall": "f"},
        {"function_call": {"name": "f", "args": {}}, "thought_signature": "c2ln"},
        {"functionResponse": {"name": "f", "response": {"b": 1, "a": 2}, "id": "c1", "scheduling": "SILENT"}},
        {"functionResponse": {"name": "f", "response": "text"}}, {"functionResponse": {"name": "f"}},
        {"function_response": {"name": "f", "response": []}},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"inline_data": {"mime_type": "a/b", "data": ""}},
        {"fileData": {"fileUri": "gs://x", "mimeType": "image/png"}}, {"file_data": {"file_uri": "gs://x"}},
        {"inlineData": {}}, {"executableCode": {"code": "1"}}, {"codeExecutionResult": {"outcome": "OK"}},
        {"videoMetadata": {"fps": 1}, "fileData": {"fileUri": "gs://v"}}, {"other": 1}, {}, "text", 7, null, []
    ]);
    let bedrock = json!([
        {"text": "a"}, {"text": ""}, {"text": 4}, {"text": "a", "more": 1}, {"cachePoint": {"type": "default"}},
        {"cachePoint": {"type": "default", "ttl": "1h"}},
        {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"z": 1, "a": [1.0, null]}, "type": "server_tool_use"}},
        {"toolUse": {"toolUseId": "c1", "name": "f", "input": "text"}}, {"toolUse": {"name": "f", "input": {}}},
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "r"}], "status": "error"}},
        {"toolResult": {"toolUseId": "c2", "content": [{"json": {"b": 1, "a": 2}}, {"json": "text"}, {"text": ""},
            {"image": {"format": "png", "source": {"bytes": "AA=="}}}, {"video": {}}, "bare", {"text": "a", "b": 1}]}},
        {"toolResult": {"toolUseId": "c2", "content": []}}, {"toolResult": {"toolUseId": "c3"}},
        {"toolResult": {"toolUseId": "c3", "content": "text"}}, {"toolResult": {"content": []}},
        {"reasoningContent": {"reasoningText": {"text": "t", "signature": "c2ln"}}},
        {"reasoningContent": {"reasoningText": {"text": "t"}}}, {"reasoningContent": {"redactedContent": "AA=="}},
        {"reasoningContent": {}}, {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://x"}}}}, {"image": {}},
        {"document": {"format": "txt", "name": "n", "source": {"text": "t"}}}, {"guardContent": {"text": {}}},
        {"citationsContent": {"content": [{"text": "t"}]}}, {"other": 1}, {}, "text", 7, null, []
    ]);
    for (format, provider, list, member, model, parts) in [
        (
            Format::Gemini,
            Provider::Gemini,
            "contents",
            "parts",
            "model",
            gemini,
        ),
        (
            Format::Bedrock,
            Provider::Bedrock,
            "messages",
            "content",
            "assistant",
            bedrock,
        ),
    ] {
        let parts = parts.as_array().expect("a list");
        let mut messages: Vec<Value> = Vec::new();
        for role in ["user", model] {
            for size in 1..=3 {
                let windows = parts.windows(size);
                messages.extend(windows.map(|parts| json!({"role": role, member: parts})));
            }
            messages.push(json!({"role": role, member: []}));
            messages.push(json!({"role": role, member: parts, "more": {"b": 1, "a": 2}}));
        }
        messages.extend([
            json!({member: [{"text": "a"}]}),
            json!({"role": "other", member: [{"text": "a"}]}),
            json!({"role": 5, member: [{"text": "a"}]}),
            json!({"role": "user", member: "text"}),
            json!({"role": "user"}),
            json!("text"),
            json!(null),
        ]);
        let mut logs: Vec<Value> = messages.iter().map(|message| json!([message])).collect();
        logs.push(json!(messages));
        for log in logs {
            let log = json!({"model": "m", list: log});
            let options = ImportOptions {
                format: Some(format),
                ..ImportOptions::default()
            };
            let imported = import(log.to_string().as_bytes(), &options).expect("a log");
            let session = holds_together(&imported).remove(0);
            let text = request(session.current(), provider).expect("a request");
            let found: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(found, log);
        }
    }
}

/// A HAR of one call of Anthropic's API, answered with these events.
fn streamed_har(events: &[Value]) -> Vec<u8> {
    let stream: String = events
        .iter()
        .map(|event| {
            let kind = event["type"].as_str().expect("a type");
            format!("event: {kind}\ndata: {event}\n\n")
        })
        .collect();
    let body = json!({"model": "claude-example", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]});
    let entry = json!({
        "request": {"method": "POST", "url": "https://gateway.example/v1/messages", "postData": {"text": body.to_string()}},
        "response": {"status": 200, "content": {"mimeType": "text/event-stream", "text": stream}}
    });
    json!({"log": {"entries": [entry]}})
        .to_string()
        .into_bytes()
}

#[test]
fn a_reply_that_fails_on_the_way_says_why() {
    let start = json!({"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant",
        "content": [], "usage": {"input_tokens": 25, "output_tokens": 1}}});
    let begin = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}});
    let error = json!({"type": "overloaded_error", "message": "Busy now"});
    let failure = json!({"type": "error", "error": error});
    let newest = |events: &[Value]| -> Value {
        let imported = imported(&streamed_har(events), MessageLocation::Usual);
        let text = written(&imported, 0, true);
        serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
    };
    let whole = newest(&[start.clone(), begin, delta, failure.clone()]);
    assert_eq!(whole["usage"]["error"], error);
    assert_eq!(whole["usage"]["input_tokens"], 25);
    assert!(whole.to_string().contains("\"Hel\""), "{whole}");
    // Before anything came it is a call that failed.
    let whole = newest(&[start, failure]);
    assert_eq!(whole["meta"]["attempts"][0]["error"], error);
}
