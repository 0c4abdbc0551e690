//! What a prompt cache can reuse: causes in a table, bytes against requests compared by hand, and real
//! sessions.

use pactql::inspect::{Cause, PrefixReport, Report, ReportOptions, Tokenizer};
use pactql::logs::{ImportOptions, import};
use pactql::{Engine, Provider, Session};
use proptest::prelude::*;
use serde_json::value::RawValue;
use std::io::Read as _;

/// The session of requests that were sent one after the other.
fn session(requests: &[String]) -> Session {
    let log = requests.join("\n");
    let imported = import(log.as_bytes(), &ImportOptions::default()).expect("requests");
    assert_eq!(imported.sessions.len(), 1, "one session of {log}");
    let mut bytes = Vec::new();
    imported.sessions[0]
        .recording
        .write_jsonl(&mut bytes, false)
        .expect("memory");
    Session::from_slice(&bytes).expect("a session")
}

fn compare(requests: &[String]) -> PrefixReport {
    let session = session(requests);
    assert_eq!(session.history().committed().len(), requests.len());
    of(&session)
}

fn of(session: &Session) -> PrefixReport {
    let options = ReportOptions::default().tokenizer(Tokenizer::Bytes4);
    PrefixReport::new(&Engine::new(), session, &options).expect("requests")
}

/// The members of an object in the order of the text.
fn members(json: &str) -> Vec<(String, Box<RawValue>)> {
    struct Members;
    impl<'de> serde::de::Visitor<'de> for Members {
        type Value = Vec<(String, Box<RawValue>)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(entry) = map.next_entry()? {
                found.push(entry);
            }
            Ok(found)
        }
    }
    use serde::Deserializer;
    let mut reader = serde_json::Deserializer::from_str(json);
    reader.deserialize_map(Members).expect("an object")
}

/// The bytes of a request to Chat Completions as a cache reads it, written down from the request itself.
fn chat_bytes(request: &str) -> String {
    let found = members(request);
    let get = |name: &str| {
        found
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, raw)| raw.get())
    };
    let list = |name: &str| -> Vec<Box<RawValue>> {
        get(name).map_or(Vec::new(), |raw| serde_json::from_str(raw).expect("a list"))
    };
    let mut out = String::new();
    if let Some(model) = get("model") {
        out.push_str(&format!("\"model\":{model},"));
    }
    for tool in list("tools") {
        out.push_str(&format!("{tool},"));
    }
    for name in ["response_format", "tool_choice"] {
        if let Some(value) = get(name) {
            out.push_str(&format!("\"{name}\":{value},"));
        }
    }
    for message in list("messages") {
        out.push_str(&format!("{message},"));
    }
    out
}

/// A message in text, with members in the order in which requests are rendered.
fn message(role: &str, text: &str) -> String {
    // Rendered texts are ASCII.
    let text: String = serde_json::to_string(text)
        .expect("JSON")
        .replace('é', "\\u00e9");
    format!("{{\"role\":\"{role}\",\"content\":{text}}}")
}

fn system(text: &str) -> String {
    message("system", text)
}

fn user(text: &str) -> String {
    message("user", text)
}

fn assistant(text: &str) -> String {
    message("assistant", text)
}

fn call(id: &str, arguments: &str) -> String {
    let arguments = serde_json::to_string(arguments).expect("JSON");
    format!(
        "{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"type\":\"function\",\"id\":\"{id}\",\
         \"function\":{{\"name\":\"find\",\"arguments\":{arguments}}}}}]}}"
    )
}

fn result(id: &str, text: &str) -> String {
    let message = message("tool", text);
    format!(
        "{},\"tool_call_id\":\"{id}\"}}",
        &message[..message.len() - 1]
    )
}

/// A request in text, with members in this order.
fn request(before: &str, messages: &[String], tools: &[&str]) -> String {
    let messages = messages.join(",");
    let tools = match tools {
        [] => String::new(),
        tools => format!(",\"tools\":[{}]", tools.join(",")),
    };
    format!("{{{before},\"messages\":[{messages}]{tools}}}")
}

const MODEL: &str = "\"model\":\"gpt-4o\"";
const FIND: &str = r#"{"type":"function","function":{"name":"find","description":"Finds.","parameters":{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"integer"}}}}}"#;
const FIND_SWAPPED: &str = r#"{"type":"function","function":{"name":"find","description":"Finds.","parameters":{"type":"object","properties":{"n":{"type":"integer"},"q":{"type":"string"}}}}}"#;
const FIND_OTHER: &str = r#"{"type":"function","function":{"name":"find","description":"Finds well.","parameters":{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"integer"}}}}}"#;
const BUY: &str = r#"{"type":"function","function":{"name":"buy","parameters":{"type":"object","properties":{}}}}"#;

/// A request and the next one: their names, both, what broke the prefix, and the block it lies in.
type Case = (
    &'static str,
    String,
    String,
    Option<Cause>,
    Option<&'static str>,
);

fn chat_cases() -> Vec<Case> {
    let plain = [
        system("Be brief."),
        user("Find socks."),
        assistant("Which size?"),
        user("42"),
    ];
    let more = |messages: &[String]| -> Vec<String> {
        let more = [assistant("Here they are."), user("Thanks.")];
        messages.iter().cloned().chain(more).collect()
    };
    let on = |messages: &[String]| request(MODEL, messages, &[]);
    let with = |at: usize, message: String| -> Vec<String> {
        let mut messages = plain.to_vec();
        messages[at] = message;
        messages
    };
    let change = |name, at: usize, older: String, newer: String, cause, block| -> Case {
        (
            name,
            on(&with(at, older)),
            on(&more(&with(at, newer))),
            Some(cause),
            Some(block),
        )
    };
    let parameter = |name: &str| {
        Some(Cause::Parameter {
            name: name.to_owned(),
        })
    };
    let named = |name: &str| name.to_owned();
    let calls = |id: &str, arguments: &str| {
        vec![
            system("Be brief."),
            user("Find socks."),
            call(id, arguments),
            result(id, "2 found"),
        ]
    };
    let media = |url: &str| {
        format!(
            "{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"This one.\"}},\
             {{\"type\":\"image_url\",\"image_url\":{{\"url\":\"{url}\"}}}}]}}"
        )
    };
    let mut dropped = plain.to_vec();
    dropped.drain(1..3);
    let mut inserted = plain.to_vec();
    inserted.insert(1, user("By the way."));
    let format = "\"model\":\"gpt-4o\",\"response_format\":{\"type\":\"json_object\"}";
    let choice = "\"model\":\"gpt-4o\",\"tool_choice\":\"required\"";
    let warm = "\"model\":\"gpt-4o\",\"temperature\":1,\"max_tokens\":5";
    let mini = "\"model\":\"gpt-4o-mini\"";
    vec![
        ("appended", on(&plain), on(&more(&plain)), None, None),
        ("the same again", on(&plain), on(&plain), None, None),
        (
            "other sampling",
            on(&plain),
            request(warm, &more(&plain), &[]),
            None,
            None,
        ),
        change(
            "time in the system prompt",
            0,
            system("Be brief. It is 2026-03-01T10:15:00Z."),
            system("Be brief. It is 2026-03-01T10:16:30Z."),
            Cause::Timestamp,
            "cb:1-1",
        ),
        change(
            "date in words",
            0,
            system("Today is Monday, March 2, 2026."),
            system("Today is Tuesday, March 3, 2026."),
            Cause::Timestamp,
            "cb:1-1",
        ),
        change(
            "time in a message",
            1,
            user("[10:15:07] Find socks."),
            user("[10:15:09] Find socks."),
            Cause::Timestamp,
            "cb:2-1",
        ),
        change(
            "counter",
            0,
            system("Step 3 of 20."),
            system("Step 4 of 20."),
            Cause::Counter,
            "cb:1-1",
        ),
        change(
            "id",
            0,
            system("Session 550e8400-e29b-41d4-a716-446655440000."),
            system("Session 6ba7b810-9dad-11d1-80b4-00c04fd430c8."),
            Cause::Id,
            "cb:1-1",
        ),
        change(
            "rewritten",
            1,
            user("Find socks."),
            user("Find shoes."),
            Cause::Rewritten,
            "cb:2-1",
        ),
        change(
            "one space",
            1,
            user("Find socks."),
            user("Find  socks."),
            Cause::WhiteSpace,
            "cb:2-1",
        ),
        change(
            "more text",
            1,
            user("Find socks"),
            user("Find socks and shoes"),
            Cause::Extended,
            "cb:2-1",
        ),
        change(
            "another role",
            1,
            user("Find socks."),
            message("developer", "Find socks."),
            Cause::Role,
            "cb:5-1",
        ),
        change(
            "image",
            1,
            media("https://example.org/1.png"),
            media("https://example.org/2.png"),
            Cause::Media,
            "cb:2-2",
        ),
        (
            "model",
            on(&plain),
            request(mini, &more(&plain), &[]),
            Some(Cause::Model),
            None,
        ),
        (
            "response format",
            on(&plain),
            request(format, &more(&plain), &[]),
            parameter("response_format"),
            None,
        ),
        (
            "response format gone",
            request(format, &plain, &[]),
            on(&more(&plain)),
            parameter("response_format"),
            None,
        ),
        (
            "tool choice",
            request(MODEL, &plain, &[FIND]),
            request(choice, &more(&plain), &[FIND]),
            parameter("tool_choice"),
            None,
        ),
        (
            "tool order",
            request(MODEL, &plain, &[FIND, BUY]),
            request(MODEL, &more(&plain), &[BUY, FIND]),
            Some(Cause::ToolOrder),
            Some("buy"),
        ),
        (
            "keys of a schema",
            request(MODEL, &plain, &[BUY, FIND]),
            request(MODEL, &more(&plain), &[BUY, FIND_SWAPPED]),
            Some(Cause::KeyOrder),
            Some("find"),
        ),
        (
            "tool added",
            request(MODEL, &plain, &[FIND]),
            request(MODEL, &more(&plain), &[FIND, BUY]),
            Some(Cause::ToolAdded { name: named("buy") }),
            Some("buy"),
        ),
        (
            "tool removed",
            request(MODEL, &plain, &[BUY, FIND]),
            request(MODEL, &more(&plain), &[FIND]),
            Some(Cause::ToolRemoved { name: named("buy") }),
            Some("find"),
        ),
        (
            "tool changed",
            request(MODEL, &plain, &[FIND]),
            request(MODEL, &more(&plain), &[FIND_OTHER]),
            Some(Cause::ToolChanged {
                name: named("find"),
            }),
            Some("find"),
        ),
        (
            "call ids",
            on(&calls("call_1", "{}")),
            on(&more(&calls("call_9", "{}"))),
            Some(Cause::CallIds),
            Some("cb:3-1"),
        ),
        (
            "keys of arguments",
            on(&calls("call_1", "{\"q\":\"socks\",\"n\":2}")),
            on(&more(&calls("call_1", "{\"n\":2,\"q\":\"socks\"}"))),
            Some(Cause::KeyOrder),
            Some("cb:3-1"),
        ),
        (
            "dropped",
            on(&plain),
            on(&more(&dropped)),
            Some(Cause::MessagesDropped { count: 2 }),
            Some("cb:4-1"),
        ),
        (
            "inserted",
            on(&plain),
            on(&more(&inserted)),
            Some(Cause::MessagesInserted { count: 1 }),
            Some("cb:5-1"),
        ),
        (
            "the end dropped",
            on(&more(&plain)),
            on(&plain),
            Some(Cause::MessagesDropped { count: 2 }),
            Some("cb:5-1"),
        ),
    ]
}

#[test]
fn each_cause_is_named_with_its_byte_and_its_block() {
    for (name, older, newer, cause, block) in chat_cases() {
        let found = compare(&[older.clone(), newer.clone()]);
        let step = &found.steps[1];
        let (old, new) = (chat_bytes(&older), chat_bytes(&newer));
        let shared = old
            .bytes()
            .zip(new.bytes())
            .take_while(|(a, b)| a == b)
            .count() as u64;
        assert_eq!(step.bytes_before, old.len() as u64, "{name}");
        assert_eq!(step.bytes, new.len() as u64, "{name}");
        assert_eq!(step.shared_bytes, shared, "{name}");
        let difference = step.difference.as_ref();
        assert_eq!(
            difference.map(|found| found.cause.clone()),
            cause,
            "{name}: {difference:?}"
        );
        assert_eq!(
            difference.map(|found| found.at),
            cause.map(|_| shared),
            "{name}"
        );
        let expected = block.map(|block| match block {
            block if block.starts_with("cb:") => block.to_owned(),
            // A tool is named by its key.
            key => {
                let session = session(&[older.clone(), newer.clone()]);
                let newest = session.history().latest().expect("a snapshot").clone();
                let tool = newest.nodes().find(|node| node.key() == Some(key));
                tool.expect("the tool").id().to_owned()
            }
        });
        assert_eq!(
            difference.and_then(|found| found.block.clone()),
            expected,
            "{name}: {difference:?}"
        );
    }
}

#[test]
fn a_compaction_is_named() {
    let log = r#"{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00Z","provider":"anthropic","modelId":"claude-x"}
{"type":"message","timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":[{"type":"text","text":"Tell me a long story."}]}}
{"type":"message","timestamp":"2026-01-01T00:00:02Z","message":{"role":"assistant","model":"claude-x","content":[{"type":"text","text":"Once upon a time."}]}}
{"type":"message","timestamp":"2026-01-01T00:00:03Z","message":{"role":"user","content":[{"type":"text","text":"Go on."}]}}
{"type":"message","timestamp":"2026-01-01T00:00:04Z","message":{"role":"assistant","model":"claude-x","content":[{"type":"text","text":"It rained."}]}}
{"type":"compaction","timestamp":"2026-01-01T00:00:05Z","summary":"A story began.","firstKeptEntryIndex":4,"tokensBefore":10}
{"type":"message","timestamp":"2026-01-01T00:00:06Z","message":{"role":"user","content":[{"type":"text","text":"And then?"}]}}
{"type":"message","timestamp":"2026-01-01T00:00:07Z","message":{"role":"assistant","model":"claude-x","content":[{"type":"text","text":"The end."}]}}
"#;
    let imported = import(log.as_bytes(), &ImportOptions::default()).expect("a log");
    let mut bytes = Vec::new();
    imported.sessions[0]
        .recording
        .write_jsonl(&mut bytes, false)
        .expect("memory");
    let session = Session::from_slice(&bytes).expect("a session");
    let found = of(&session);
    assert_eq!(found.provider, Provider::Anthropic);
    assert!(found.reconstructed);
    let causes: Vec<Cause> = found
        .steps
        .iter()
        .filter_map(|step| Some(step.difference.clone()?.cause))
        .collect();
    assert_eq!(causes, [Cause::Compaction]);
}

#[test]
fn a_request_that_names_the_response_before_goes_on_from_it() {
    let reply = |id: &str, text: &str| {
        format!(
            "{{\"id\":\"{id}\",\"output\":[{{\"type\":\"message\",\"role\":\"assistant\",\
             \"content\":[{{\"type\":\"output_text\",\"text\":\"{text}\"}}]}}]}}"
        )
    };
    let first = format!(
        "{{\"request\":{{\"model\":\"gpt-4o\",\"input\":\"Find socks.\"}},\"response\":{}}}",
        reply("resp_1", "Which size?")
    );
    let second = format!(
        "{{\"request\":{{\"model\":\"gpt-4o\",\"previous_response_id\":\"resp_1\",\"input\":\"42\"}},\
         \"response\":{}}}",
        reply("resp_2", "Here.")
    );
    let third = format!(
        "{{\"request\":{{\"model\":\"gpt-4o\",\"previous_response_id\":\"resp_2\",\"input\":\"Thanks.\"}},\
         \"response\":{}}}",
        reply("resp_3", "Bye.")
    );
    let found = compare(&[first, second, third]);
    assert_eq!(found.provider, Provider::OpenAiResponses);
    assert_eq!(found.steps.len(), 3);
    let differences: Vec<_> = found.steps[2..]
        .iter()
        .map(|step| &step.difference)
        .collect();
    assert_eq!(differences, [&None]);
    assert!(found.steps[2].bytes > found.steps[1].bytes);
}

/// What happens to the messages between two requests.
#[derive(Clone, Debug)]
enum Edit {
    Append(u8),
    Rewrite(usize, u8),
    Remove(usize),
    Insert(usize, u8),
    Tools(bool),
    Format(bool),
}

fn edits() -> impl Strategy<Value = Vec<Vec<Edit>>> {
    let edit = prop_oneof![
        6 => any::<u8>().prop_map(Edit::Append),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(at, text)| Edit::Rewrite(at, text)),
        1 => any::<usize>().prop_map(Edit::Remove),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(at, text)| Edit::Insert(at, text)),
        1 => any::<bool>().prop_map(Edit::Tools),
        1 => any::<bool>().prop_map(Edit::Format),
    ];
    let edits = proptest::collection::vec(edit, 0..4);
    proptest::collection::vec(edits, 1..12)
}

/// The requests that edits make. The first message stays, so that they are one session.
fn requests(steps: &[Vec<Edit>]) -> Vec<String> {
    let message = |text: u8| match text % 4 {
        0 => user(&format!("question é {text}")),
        1 => assistant(&format!("answer \"{text}\"")),
        2 => call(&format!("call_{text}"), "{\"q\": 1}"),
        _ => result(&format!("call_{text}"), "found\n"),
    };
    let mut messages = vec![
        system("The system prompt of every request."),
        user("The first question."),
        assistant("The first answer."),
        user("The second question."),
    ];
    let first = messages.len();
    let (mut tools, mut format) = (false, false);
    let mut requests = Vec::new();
    for edits in steps {
        for edit in edits {
            let within = |at: usize| first + at % (messages.len() - first).max(1);
            match *edit {
                Edit::Append(text) => messages.push(message(text)),
                Edit::Rewrite(at, text) if messages.len() > first => {
                    let at = within(at).min(messages.len() - 1);
                    messages[at] = message(text);
                }
                Edit::Remove(at) if messages.len() > first => {
                    let at = within(at).min(messages.len() - 1);
                    messages.remove(at);
                }
                Edit::Insert(at, text) => {
                    let at = within(at).min(messages.len());
                    messages.insert(at, message(text));
                }
                Edit::Tools(on) => tools = on,
                Edit::Format(on) => format = on,
                _ => {}
            }
        }
        let before = if format {
            "\"model\":\"gpt-4o\",\"response_format\":{\"type\":\"json_object\"}"
        } else {
            MODEL
        };
        let tools: &[&str] = if tools { &[FIND, BUY] } else { &[FIND] };
        requests.push(request(before, &messages, tools));
    }
    requests
}

proptest! {
    #![proptest_config(crate::support::random::property(1_200))]

    /// The requests of a session, walked from one to the next, have the bytes that were sent.
    #[test]
    fn shared_bytes_are_those_of_the_requests(steps in edits()) {
        let requests = requests(&steps);
        let found = compare(&requests);
        prop_assert_eq!(found.steps.len(), requests.len());
        prop_assert_eq!(found.steps[0].bytes, chat_bytes(&requests[0]).len() as u64);
        for (pair, step) in requests.windows(2).zip(&found.steps[1..]) {
            let (old, new) = (chat_bytes(&pair[0]), chat_bytes(&pair[1]));
            let shared = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count() as u64;
            prop_assert_eq!((step.bytes_before, step.bytes), (old.len() as u64, new.len() as u64));
            let appended = new.starts_with(&old);
            prop_assert_eq!(step.difference.is_none(), appended);
            // A byte in the middle of a character is not counted.
            prop_assert!(step.shared_bytes <= shared && shared - step.shared_bytes < 4);
            prop_assert!(step.shared_tokens <= step.tokens_before.min(step.tokens));
        }
    }
}

/// The file of a real log, if it is there.
fn real(path: &str) -> Option<Vec<u8>> {
    let path = format!("{}/../shared/data/{path}", env!("CARGO_MANIFEST_DIR"));
    let Ok(file) = std::fs::File::open(&path) else {
        println!("no real data: nothing compared");
        return None;
    };
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut bytes)
        .expect("a log");
    Some(bytes)
}

/// The causes of a log's session, with their steps and blocks.
fn breaks(log: &[u8]) -> Vec<(i64, Option<String>, Cause)> {
    let imported = import(log, &ImportOptions::default()).expect("a log");
    let mut bytes = Vec::new();
    let recording = &imported.sessions[0].recording;
    recording.write_jsonl(&mut bytes, false).expect("memory");
    let session = Session::from_slice(&bytes).expect("a session");
    let found = of(&session);
    let steps = found.steps.into_iter();
    steps
        .filter_map(|step| {
            let difference = step.difference?;
            Some((step.cycle, difference.block, difference.cause))
        })
        .collect()
}

#[test]
fn real_runs_that_only_append_have_no_break_and_one_rewrites_old_results() {
    let folder = "swe-agent-trajectories";
    for file in [
        "ctf_web_i_got_id_demo",
        "function_calling_simple",
        "marshmallow-1867__function_calling",
        "swe-smith__pandas-53652",
    ] {
        if let Some(log) = real(&format!("{folder}/{file}.traj.gz")) {
            assert_eq!(breaks(&log), [], "{file}");
        }
    }
    // From step 7 on each request has one more old result replaced by a note: the list of a step is sent in the next one.
    let expected: Vec<_> = (7..=13)
        .map(|cycle| {
            (
                cycle,
                Some(format!("cb:{}-1", 2 * cycle - 10)),
                Cause::Rewritten,
            )
        })
        .collect();
    if let Some(log) = real(&format!(
        "{folder}/marshmallow-1867__function_calling_replace_from_source.traj.gz"
    )) {
        assert_eq!(breaks(&log), expected);
    }
}

#[test]
fn the_compactions_of_a_real_session_are_its_only_breaks() {
    if crate::support::random::left_to_ci() {
        return;
    }
    if let Some(log) = real("pi-mono-long-sessions/before-compaction.jsonl.gz") {
        let causes: Vec<Cause> = breaks(&log)
            .into_iter()
            .map(|(_, _, cause)| cause)
            .collect();
        assert_eq!(causes, [Cause::Compaction, Cause::Compaction]);
    }
    if let Some(log) = real("pi-mono-long-sessions/large-session.jsonl.gz") {
        assert_eq!(breaks(&log), []);
    }
}

/// What the lines of pi's log say that the provider missed of a request.
#[derive(Debug, PartialEq)]
struct MissedOfLines {
    readable: u64,
    read: u64,
    gap: Option<u64>,
    level_changed: bool,
    micro_dollars: i64,
}

fn millis(time: &str) -> i64 {
    let part = |at: std::ops::Range<usize>| time[at].parse::<i64>().expect("digits");
    let minutes = (part(8..10) * 24 + part(11..13)) * 60 + part(14..16);
    minutes * 60_000 + part(17..19) * 1_000 + part(20..23)
}

/// Worked out from the lines alone, at the unit prices that follow from their own costs. A request after a compaction is
/// left out. And what all calls cost by the lines, in millionths of a dollar.
fn missed_by_lines(log: &str) -> (Vec<MissedOfLines>, i64) {
    type Lines = Vec<serde_json::Value>;
    let lines = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Lines = lines.collect();
    let number = |usage: &serde_json::Value, name: &str| usage[name].as_u64().expect("a count");
    let mut unit = std::collections::HashMap::new();
    let mut all = 0.0;
    for message in lines.iter().map(|line| &line["message"]) {
        for name in ["input", "cacheRead", "cacheWrite"] {
            let (count, cost) = (&message["usage"][name], &message["usage"]["cost"][name]);
            if let (Some(count @ 1..), Some(cost)) = (count.as_u64(), cost.as_f64()) {
                unit.insert((message["model"].to_string(), name), cost / count as f64);
            }
        }
        all += message["usage"]["cost"]["total"].as_f64().unwrap_or(0.0);
    }
    let mut found = Vec::new();
    let (mut level, mut level_then) = ("", "");
    let (mut before, mut replied, mut newest) = (None::<u64>, 0, 0);
    for line in &lines {
        level = line["thinkingLevel"].as_str().unwrap_or(level);
        if line["type"] == "compaction" {
            before = None;
        }
        if line["type"] != "message" {
            continue;
        }
        let (message, time) = (
            &line["message"],
            line["timestamp"].as_str().expect("a time"),
        );
        if message["role"] != "assistant" {
            newest = millis(time);
            continue;
        }
        let usage = &message["usage"];
        let (read, written) = (number(usage, "cacheRead"), number(usage, "cacheWrite"));
        let input = number(usage, "input") + read + written;
        if input == 0 {
            continue;
        }
        let readable = before.unwrap_or(0);
        let missed = readable.saturating_sub(read);
        if missed > readable / 10 {
            let price = |name| unit[&(message["model"].to_string(), name)];
            let paid = written.min(missed) as f64 * price("cacheWrite")
                + missed.saturating_sub(written) as f64 * price("input");
            let more = paid - missed as f64 * price("cacheRead");
            found.push(MissedOfLines {
                readable,
                read,
                gap: u64::try_from(newest - replied).ok().map(|gap| gap / 1_000),
                level_changed: level != level_then,
                micro_dollars: (more * 1e6).round() as i64,
            });
        }
        (before, replied, level_then) = (Some(input), millis(time), level);
    }
    (found, (all * 1e6).round() as i64)
}

#[test]
fn what_a_provider_missed_in_real_sessions_is_what_their_lines_say() {
    if crate::support::random::left_to_ci() {
        return;
    }
    for (name, count) in [("before-compaction", 11), ("large-session", 37)] {
        let Some(log) = real(&format!("pi-mono-long-sessions/{name}.jsonl.gz")) else {
            continue;
        };
        let (wanted, cost) = missed_by_lines(std::str::from_utf8(&log).expect("text"));
        assert_eq!(wanted.len(), count);
        let session = super::imported(&log);
        let report = of(&session);
        let steps = report.steps.iter().filter(|step| step.difference.is_none());
        let missed: Vec<_> = steps.filter_map(|step| step.missed.as_ref()).collect();
        let micro = |nanos: u64| (nanos as f64 / 1e3).round() as i64;
        let found = missed.iter().map(|missed| MissedOfLines {
            readable: missed.readable_tokens,
            read: missed.read_tokens,
            gap: missed.gap_ms.map(|gap| gap / 1_000),
            level_changed: missed.parameters.iter().any(|name| name == "thinkingLevel"),
            micro_dollars: micro(missed.nano_dollars.expect("a price").0),
        });
        let found: Vec<MissedOfLines> = found.collect();
        for (found, wanted) in found.iter().zip(&wanted) {
            let apart = (found.micro_dollars - wanted.micro_dollars).abs();
            assert!(apart <= 1, "{found:?} {wanted:?}");
            let found = MissedOfLines {
                micro_dollars: wanted.micro_dollars,
                ..*found
            };
            assert_eq!(&found, wanted, "{name}");
        }
        assert_eq!(found.len(), wanted.len(), "{name}");
        let sum = |all: &[MissedOfLines]| all.iter().map(|one| one.micro_dollars).sum::<i64>();
        assert!((sum(&found) - sum(&wanted)).abs() <= count as i64, "{name}");
        let logged = report.logged_nano_dollars.expect("costs").0;
        assert!((micro(logged) - cost).abs() <= 1, "{name}: {logged} {cost}");
        // Leaving old results out would have cost less, with breaks and all.
        let selector = ".mt:depth(>5) .cb[kind='result']";
        let part = pactql::inspect::Part::default().only(selector);
        let options = ReportOptions::new(part).tokenizer(Tokenizer::Bytes4);
        let without = pactql::inspect::WithoutReport::new(&Engine::new(), &session, &options);
        let without = without.expect("requests");
        assert!(
            (micro(without.then.nano_dollars.0) - cost).abs() <= 1,
            "{name}"
        );
        let saved = without
            .then
            .nano_dollars
            .0
            .checked_sub(without.now.nano_dollars.0);
        assert!(saved > Some(1_000_000_000), "{name}: {saved:?}");
        println!(
            "{name}: {count} misses, {} saved",
            pactql::inspect::Money(saved.unwrap_or(0))
        );
    }
}

/// Parameters of Gemini and Bedrock, and a model that stands only in the address.
#[test]
fn causes_in_the_requests_of_gemini_and_bedrock() {
    use pactql::inspect::MissCause;
    let gemini = |more: &str| {
        format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":"Hello"}}]}}]{more}}}"#)
    };
    let bedrock = |more: &str| {
        format!(r#"{{"messages":[{{"role":"user","content":[{{"text":"Hello"}}]}}]{more}}}"#)
    };
    let named = |name: &str| Cause::Parameter {
        name: name.to_owned(),
    };
    let config = |raw: &str| gemini(&format!(r#","generationConfig":{raw}"#));
    let [a, b] = ["x-1", "x-2"];
    // The models and requests, why the second breaks the prefix, and the parameters that changed beside the bytes.
    for (older, newer, cause, changed) in [
        ((a, gemini("")), (a, gemini("")), None, &[][..]),
        ((a, gemini("")), (b, gemini("")), Some(Cause::Model), &[]),
        ((a, bedrock("")), (b, bedrock("")), Some(Cause::Model), &[]),
        (
            (a, config(r#"{"temperature":0}"#)),
            (a, config(r#"{"temperature":1}"#)),
            None,
            &["generationConfig"],
        ),
        (
            (a, config(r#"{"temperature":0,"responseMimeType":"a"}"#)),
            (a, config(r#"{"temperature":1,"responseMimeType":"b"}"#)),
            Some(named("generationConfig")),
            &[],
        ),
        (
            (a, config(r#"{"temperature":0}"#)),
            (
                a,
                config(r#"{"temperature":0,"thinkingConfig":{"thinkingBudget":0}}"#),
            ),
            Some(named("generationConfig")),
            &[],
        ),
        (
            (a, gemini("")),
            (
                a,
                gemini(r#","toolConfig":{"functionCallingConfig":{"mode":"ANY"}}"#),
            ),
            Some(named("toolConfig")),
            &[],
        ),
        (
            (a, bedrock(r#","inferenceConfig":{"maxTokens":5}"#)),
            (a, bedrock(r#","inferenceConfig":{"maxTokens":6}"#)),
            None,
            &["inferenceConfig"],
        ),
        (
            (a, bedrock("")),
            (
                a,
                bedrock(r#","additionalModelRequestFields":{"thinking":{"type":"enabled"}}"#),
            ),
            Some(named("additionalModelRequestFields")),
            &[],
        ),
    ] {
        let path = if older.1.contains("contents") {
            |model: &str| format!("v1beta/models/{model}:generateContent")
        } else {
            |model: &str| format!("model/{model}/converse")
        };
        let entry = |(model, body): &(&str, String)| {
            let (url, body) = (format!("https://api.example.org/{}", path(model)), body);
            let usage = if body.contains("contents") {
                serde_json::json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}],
                    "usageMetadata": {"promptTokenCount": 5000, "cachedContentTokenCount": 0}})
            } else {
                serde_json::json!({"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
                    "usage": {"inputTokens": 5000, "outputTokens": 2, "cacheReadInputTokens": 0}})
            };
            serde_json::json!({"request": {"method": "POST", "url": url, "postData": {"text": body}},
                "response": {"status": 200, "content": {"text": usage.to_string()}}})
        };
        // A request that begins as the first and goes on is in its session.
        let log = serde_json::json!({"log": {"entries": [entry(&older), entry(&newer)]}});
        let imported =
            import(log.to_string().as_bytes(), &ImportOptions::default()).expect("a log");
        assert_eq!(imported.sessions.len(), 1, "{newer:?}");
        let report = of(&super::imported(log.to_string().as_bytes()));
        let step = &report.steps[1];
        let found = step.difference.as_ref().map(|found| found.cause.clone());
        assert_eq!(found, cause, "{older:?} {newer:?}");
        let Some(missed) = step.missed.as_ref() else {
            assert!(cause.is_some(), "{older:?} {newer:?}");
            continue;
        };
        if cause.is_none() {
            assert_eq!(missed.parameters, changed, "{older:?} {newer:?}");
            let is_parameter = missed.cause == MissCause::Parameter;
            assert_eq!(is_parameter, !changed.is_empty(), "{missed:?}");
        }
    }
}
