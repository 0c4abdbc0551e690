//! The page and the receipt of a session: what they have of it, and what they must not have.

use pactql::inspect::share::{Page, Receipt, Redactor, page, receipt};
use pactql::inspect::{
    Counts, Part, Prices, Region, Report, ReportOptions, ShowReport, Shown, ShownBlock, Tokenizer,
};
use pactql::logs::{ImportOptions, import};
use pactql::{Engine, History, Session};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

use crate::support::documents::Sample;
use crate::support::random::share;

const FIXTURES: [&str; 3] = [
    "fixtures/support-agent.jsonl",
    "fixtures/greenhouse.jsonl",
    "fixtures/weather.json",
];

fn counts() -> Counts {
    Counts::new(Tokenizer::Bytes4)
}

/// What `show` says of each committed snapshot.
fn all_shown(session: &Session) -> Vec<Shown> {
    if session.history().committed().is_empty() {
        return Vec::new();
    }
    let all = Part::default().at("@history");
    let options = ReportOptions::new(all).tokenizer(Tokenizer::Bytes4);
    let report = ShowReport::new(&Engine::new(), session, &options);
    report.expect("the history").snapshots
}

fn page_of(history: &History, patterns: &[&str]) -> (Page, u64) {
    let mut redactor = Redactor::new(patterns).expect("patterns");
    let page = page(
        history,
        "a session",
        &mut redactor,
        &mut counts(),
        &Prices::default(),
    );
    (page, redactor.count())
}

fn html(page: &Page) -> String {
    let mut out = Vec::new();
    page.write_html(&mut out).expect("memory");
    String::from_utf8(out).expect("UTF-8")
}

/// The session of requests that were sent one after the other.
fn requests(requests: &[Value]) -> Session {
    let mut log = String::new();
    for request in requests {
        let _ = writeln!(log, "{request}");
    }
    let imported = import(log.as_bytes(), &ImportOptions::default()).expect("requests");
    assert_eq!(imported.sessions.len(), 1, "one session of {log}");
    let mut bytes = Vec::new();
    let recording = &imported.sessions[0].recording;
    recording.write_jsonl(&mut bytes, false).expect("memory");
    Session::from_slice(&bytes).expect("a session")
}

/// A session of documents whose blocks have these texts, a block a turn, all in one snapshot.
fn texts(texts: &[&str]) -> Session {
    let turns = texts.iter().enumerate().map(|(at, text)| {
        json!({"id": format!("t{at}"), "nodeType": "mt", "children": [
            {"id": format!("b{at}"), "nodeType": "cb", "kind": "text", "content": text}]})
    });
    let turns: Vec<Value> = turns.collect();
    let document = json!({"cycle": 1, "root": {"id": "r", "children": [
        {"id": "s", "nodeType": "^sys", "children": []},
        {"id": "q", "nodeType": "^seq", "children": turns},
        {"id": "a", "nodeType": "^ah", "children": []}]}});
    Session::from_slice(document.to_string().as_bytes()).expect("a session")
}

/// A list after changes of the form `[at, removed, [added…]]`.
fn changed(list: &mut Vec<usize>, changes: &Value) {
    for change in changes.as_array().expect("changes") {
        let at = number(&change[0]);
        let added = change[2].as_array().expect("blocks").iter().map(number);
        let added: Vec<usize> = added.collect();
        list.splice(at..at + number(&change[1]), added);
    }
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

/// A text of a page, which may be written by another one.
fn text(data: &Value, at: usize) -> String {
    match &data["texts"][at] {
        Value::String(text) => text.clone(),
        written => {
            let base: Vec<u16> = text(data, number(&written[0])).encode_utf16().collect();
            let (head, tail) = (number(&written[1]), number(&written[2]));
            let mut units = base[..head].to_vec();
            units.extend(written[3].as_str().expect("a text").encode_utf16());
            units.extend(&base[base.len() - tail..]);
            String::from_utf16(&units).expect("whole characters")
        }
    }
}

/// What a page says of a block.
fn read(data: &Value, at: usize, cycle: &str) -> Value {
    let block = &data["blocks"][at];
    let regions = ["sys", "seq", "ah"];
    let name = |at: &Value| at.as_u64().map(|at| data["names"][at as usize].clone());
    let turn = block[2]
        .as_u64()
        .map(|at| data["turns"][at as usize].clone());
    json!({
        "id": data["ids"][number(&block[0])],
        "region": regions[number(&block[1])],
        "turn": turn,
        "role": name(&block[3]),
        "kind": name(&block[4]),
        "tool": name(&block[5]),
        "call_id": block[6],
        "reply": block[7] == *cycle,
        "error": block[8] == 1,
        "bytes": block[9],
        "tokens": block[10],
        "text": text(data, number(&block[11])),
    })
}

/// What `show` says of it.
fn shown(block: &ShownBlock) -> Value {
    let region = match block.region {
        Region::Sys => "sys",
        Region::Seq => "seq",
        _ => "ah",
    };
    json!({
        "id": block.id, "region": region, "turn": block.turn, "role": block.role, "kind": block.kind,
        "tool": block.tool, "call_id": block.call_id, "reply": block.reply, "error": block.error,
        "bytes": block.bytes, "tokens": block.tokens, "text": block.text,
    })
}

/// Every step of the page has the blocks that `show` reads from its snapshot, and each of them once.
fn agrees_with_show(session: &Session) {
    let history = session.history();
    let (page, _) = page_of(&history, &[]);
    let data: Value = serde_json::from_str(page.data()).expect("JSON");
    let steps = data["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), history.committed().len());
    let mut list = Vec::new();
    for (step, wanted) in steps.iter().zip(all_shown(session)) {
        changed(&mut list, &step["changes"]);
        let cycle = step["cycle"].as_str().expect("a cycle");
        let found: Vec<Value> = list.iter().map(|at| read(&data, *at, cycle)).collect();
        let blocks: Vec<Value> = wanted.blocks.iter().map(shown).collect();
        assert_eq!(found, blocks, "@c{cycle}");
        assert_eq!(step["tokens"], wanted.tokens);
    }
    let texts = data["texts"].as_array().expect("texts");
    let mut distinct: Vec<String> = (0..texts.len()).map(|at| text(&data, at)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), texts.len(), "a text is in the page once");
}

#[test]
fn a_page_has_what_show_shows() {
    for path in FIXTURES {
        agrees_with_show(&Session::open(path).expect("a fixture"));
    }
}

proptest! {
    #![proptest_config(crate::support::random::property(1_024))]

    #[test]
    fn pages_of_random_sessions_have_what_show_shows(seed in any::<u64>()) {
        let text = Sample::new(seed).text();
        agrees_with_show(&Session::from_slice(text.as_bytes()).unwrap());
    }

    #[test]
    fn a_receipt_has_nothing_of_random_texts(random in proptest::collection::vec(".{0,80}", 1..8)) {
        let random: Vec<&str> = random.iter().map(String::as_str).collect();
        says_nothing(&texts(&random));
    }

    #[test]
    fn any_text_comes_back_from_a_page(random in proptest::collection::vec("(?s).{0,60}|[<>&\"'/!scriptml\\-]{0,40}", 1..6)) {
        let random: Vec<&str> = random.iter().map(String::as_str).collect();
        comes_back(&random);
    }
}

/// The JSON in the file, found as a browser finds it.
fn data_of(html: &str) -> Value {
    let start = "<script id=\"data\" type=\"application/json\">";
    let (_, rest) = html.split_once(start).expect("the data");
    let (data, _) = rest.split_once("</script").expect("its end");
    serde_json::from_str(data).expect("JSON")
}

fn comes_back(wanted: &[&str]) {
    let (page, _) = page_of(&texts(wanted).history(), &[]);
    assert!(!page.data().contains(['<', '\0', '\r', '\n']));
    let html = html(&page);
    let data = data_of(&html);
    let blocks = data["blocks"].as_array().expect("blocks").iter();
    let found: Vec<String> = blocks
        .map(|block| text(&data, number(&block[11])))
        .collect();
    assert_eq!(found, wanted);
    // Nothing of a text can be markup: the only elements are those of the document.
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script").count(), 2);
    assert!(!html.contains("<!--") && !html.contains("<img"));
}

#[test]
fn hostile_texts_are_data() {
    comes_back(&[
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "<img src=x onerror=alert(1)>",
        "]]></style><svg onload=alert(1)>",
        "a\0b\u{7f}\u{85}\u{2028}\u{2029}\r\n\t\\\"'`${1}",
        "\u{202e}gnp.exe\u{2066}\u{200f}\u{feff}\u{e0041}\u{fffe}",
        "{{data}} {{script}} {{hash of style}}",
        "\\u003c/script\\u003e",
    ]);
    // A name is no markup either.
    let mut redactor = Redactor::default();
    let title = "</title><script>alert(1)</script>";
    let session = texts(&["x"]);
    let page = page(
        &session.history(),
        title,
        &mut redactor,
        &mut counts(),
        &Prices::default(),
    );
    assert_eq!(html(&page).matches("<script").count(), 2);
}

#[test]
fn a_page_asks_for_nothing() {
    let session = Session::open(FIXTURES[0]).expect("a fixture");
    let html = html(&page_of(&session.history(), &[]).0);
    let (head, _) = html.split_once("<style>").expect("a head");
    assert!(head.contains("default-src 'none'; connect-src 'none'") && !head.contains("unsafe"));
    // The icon is empty, and in the page, so that no browser asks for one.
    let html = html.replace("<link rel=\"icon\" href=\"data:,\">", "");
    for name in ["src=", "href=", "@import", "url("] {
        let (before, rest) = html.split_once("<script id=\"data\"").expect("the data");
        let (_, after) = rest.split_once("</script>").expect("its end");
        assert!(!before.contains(name) && !after.contains(name), "{name}");
    }
}

#[test]
fn a_page_says_what_calls_cost_and_what_the_log_says_of_itself() {
    let log = std::fs::read("fixtures/release.claude-code.jsonl").expect("the fixture");
    let imported = import(&log[..], &ImportOptions::default()).expect("a log");
    let session = imported.sessions[0].session().expect("a session");
    let data = |patterns: &[&str]| -> Value {
        let (page, _) = page_of(&session.history(), patterns);
        serde_json::from_str(page.data()).expect("JSON")
    };
    let page = data(&[]);
    let title = "Prepare release 1.4.0 of kestrel: changelog, version, tests. Do not push.";
    assert_eq!(
        page["about"],
        json!([title, "/home/kestrel", "claude-code"])
    );
    let steps = page["steps"].as_array().expect("steps");
    let cost = steps.iter().filter_map(|step| step["cost"].as_u64());
    // What `usage` says of the session.
    assert_eq!(cost.sum::<u64>(), 138_351_500);
    let made = steps.iter().filter(|step| step["made"] == true).count();
    assert_eq!((steps.len(), made), (13, 11));
    let parameters = number(&steps[0]["parameters"]);
    assert_eq!(
        page["names"][parameters],
        json!("{\"model\":\"claude-sonnet-4-5\"}")
    );
    // A title of the log is cut, so a part of a match could be in it.
    assert_eq!(
        data(&["kestrel"])["about"],
        json!([null, "/home/[redacted]", "claude-code"])
    );
}

#[test]
fn a_page_says_what_the_provider_did_not_read() {
    let step = |cycle: i64, cached: u64| {
        let turns = (1..=cycle).map(|turn| {
            json!({"id": format!("t{turn}"), "nodeType": "mt", "created_at_ns": turn, "children": [
                {"id": format!("u{turn}"), "nodeType": "cb", "role": "user", "kind": "text", "content": "go on"},
                {"id": format!("a{turn}"), "nodeType": "cb", "offset": 1, "role": "assistant", "kind": "text",
                 "content": "done", "data_reply": turn}]})
        });
        let turns: Vec<Value> = turns.collect();
        json!({"cycle": cycle, "meta": {"request": {"model": "gpt-4o"}},
            "usage": {"input_tokens": 4000 + cycle, "cached_tokens": cached, "output_tokens": 7},
            "root": {"id": "r", "children": [
            {"id": "s", "nodeType": "^sys", "children": []},
            {"id": "q", "nodeType": "^seq", "children": turns},
            {"id": "h", "nodeType": "^ah", "children": []}]}})
    };
    let lines = format!("{}\n{}\n{}\n", step(1, 0), step(2, 3968), step(3, 0));
    let session = Session::from_slice(lines.as_bytes()).expect("a session");
    let (page, _) = page_of(&session.history(), &[]);
    let data: Value = serde_json::from_str(page.data()).expect("JSON");
    let unread = |step: usize| data["steps"][step]["prefix"]["unread"].clone();
    assert_eq!(unread(1), Value::Null);
    let missed = unread(2);
    assert_eq!(
        (&missed["readable"], &missed["read"]),
        (&json!(3968), &json!(0))
    );
    assert!(
        missed["cost"].as_u64() > Some(0) && missed["cause"].is_string(),
        "{missed}"
    );
}

/// Requests in which one thing is found in every place where a text can be.
fn secrets(secret: &str) -> Session {
    let tool = json!({"type": "function", "function": {"name": format!("find_{secret}"), "description": secret,
        "parameters": {"type": "object", "properties": {secret: {"type": "string"}}}}});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("call_{secret}"),
        "type": "function", "function": {"name": format!("find_{secret}"),
        "arguments": format!("{{\"q\":\"x{secret}\"}}")}}]});
    let user = |text: &str| json!({"role": "user", "content": format!("{text} {secret}")});
    let result = json!({"role": "tool", "tool_call_id": format!("call_{secret}"), "content": format!("[{secret}]")});
    let request = |messages: Value, tools: Value| json!({"model": format!("gpt-{secret}"), "user": secret, "messages": messages, "tools": tools});
    requests(&[
        request(json!([user("zero"), user("one")]), json!([tool])),
        request(
            json!([user("zero"), user("two"), call, result]),
            json!([tool]),
        ),
        request(
            json!([user("zero"), user("two"), call, result, user("three")]),
            json!([]),
        ),
    ])
}

#[test]
fn what_is_redacted_is_nowhere() {
    for (secret, pattern) in [
        ("hunter2", "hunter2"),
        // Parts of it would be in excerpts that are cut.
        ("correcthorsebatterystaple", "correct[a-z]+staple"),
        ("h\u{fc}nter2", "h\u{fc}nter2"),
        ("quo\"te", "quo\"te"),
    ] {
        let session = secrets(secret);
        let (page, count) = page_of(&session.history(), &[pattern]);
        let html = html(&page);
        for spelled in [
            secret.to_owned(),
            json!(secret).to_string().trim_matches('"').to_owned(),
            secret.replace('\u{fc}', "\\u00fc"),
            secret.chars().skip(secret.chars().count() / 2).collect(),
        ] {
            if spelled.len() < 4 {
                continue;
            }
            assert!(!html.contains(&spelled), "{spelled}: {}", page.data());
        }
        assert_eq!(session.history().committed().len(), 3);
        assert!(count > 9, "{count}");
        assert!(page.data().contains("\"broken\""));
        assert!(html.contains("[redacted]"));
    }
}

#[test]
fn a_page_grows_with_the_session() {
    let text = |step: usize| format!("Message {step}: {}", "some words to fill it. ".repeat(20));
    // The time in the prompt is new at every step, so every text of the prompt is another one.
    let prompt = |step: usize| format!("It is 10:{:02}. {}", step % 60, "Be brief. ".repeat(400));
    let last = share(480).clamp(30, 120) as usize;
    let all: Vec<Value> = (1..last)
        .map(|steps| {
            let mut messages = vec![json!({"role": "system", "content": prompt(steps)})];
            messages.extend((0..steps).map(|at| json!({"role": "user", "content": text(at)})));
            json!({"model": "gpt-4o", "messages": messages})
        })
        .collect();
    let session = requests(&all);
    assert_eq!(session.history().committed().len(), last - 1);
    let (page, _) = page_of(&session.history(), &[]);
    let texts: usize = (0..last).map(|at| text(at).len()).sum();
    let size = page.data().len();
    // A step is what changed, and what broke the prefix.
    assert!(size < texts + (last - 1) * 900, "{size} bytes for {texts}");
    agrees_with_show(&session);
}

/// The receipt of a session as JSON, with what it must not have of it.
fn says_nothing(session: &Session) {
    let receipt = receipt(&session.history(), &mut counts());
    let json = without_names(&receipt);
    for shown in all_shown(session) {
        for block in &shown.blocks {
            let letters: Vec<char> = block.text.chars().collect();
            for run in letters.windows(12) {
                let run: String = run.iter().collect();
                assert!(!json.contains(&run), "{run:?} of {} in {json}", block.id);
            }
        }
    }
}

/// A receipt as JSON without what is said to stay: names of tools and models.
fn without_names(receipt: &Receipt) -> String {
    let mut receipt = receipt.clone();
    for block in &mut receipt.blocks {
        block.tool = None;
    }
    for step in &mut receipt.steps {
        step.calls.clear();
        step.model = None;
    }
    serde_json::to_string(&receipt).expect("JSON")
}

#[test]
fn a_receipt_says_nothing_of_what_was_said() {
    for path in FIXTURES {
        says_nothing(&Session::open(path).expect("a fixture"));
    }
    // Names that are none, a kind and a role that are texts, and an error.
    let secret = "the password of Ann is hunter2";
    let json = serde_json::to_string(&receipt(&secrets(secret).history(), &mut counts()));
    assert!(!json.expect("JSON").contains("hunter2"));
    let document = json!({"cycle": 1, "meta": {"request": {"model": secret}, "attempts": [{"error": secret}]},
        "usage": {"stop_reason": secret}, "root": {"id": "r", "children": [
        {"id": "s", "nodeType": "^sys", "children": []},
        {"id": "q", "nodeType": "^seq", "children": [{"id": secret, "nodeType": "mt", "children": [
            {"id": "b", "nodeType": "cb", "key": secret, "kind": secret, "role": secret, "content": secret,
             "created_at_iso": secret, "data_call_id": secret, "data_call_name": secret, "data_reply": 1}]}]},
        {"id": "a", "nodeType": "^ah", "children": []}]}});
    let session = Session::from_slice(document.to_string().as_bytes()).expect("a session");
    let receipt = receipt(&session.history(), &mut counts());
    let json = serde_json::to_string(&receipt).expect("JSON");
    assert!(!json.contains("password"), "{json}");
    assert_eq!(receipt.blocks[0].role, "other");
    assert_eq!(receipt.blocks[0].kind, "other");
}

#[test]
fn a_receipt_has_counts_and_hashes() {
    for path in FIXTURES {
        let session = Session::open(path).expect("a fixture");
        let history = session.history();
        let receipt = receipt(&history, &mut counts());
        assert_eq!(receipt.steps.len(), history.committed().len());
        let mut list: Vec<u32> = Vec::new();
        for (step, shown) in receipt.steps.iter().zip(all_shown(&session)) {
            for (at, removed, added) in &step.changes {
                list.splice(*at..*at + *removed, added.iter().copied());
            }
            let blocks = list.iter().map(|at| &receipt.blocks[*at as usize]);
            let found: Vec<(&str, u64, u64)> = blocks
                .map(|block| (&*block.sha256, block.bytes, block.tokens))
                .collect();
            let hashes: Vec<String> = shown
                .blocks
                .iter()
                .map(|block| sha256(&block.text))
                .collect();
            let wanted = shown.blocks.iter().zip(&hashes);
            let wanted: Vec<(&str, u64, u64)> = wanted
                .map(|(block, hash)| (&**hash, block.bytes, block.tokens))
                .collect();
            assert_eq!(found, wanted, "{path} @c{}", step.cycle);
            assert_eq!((step.blocks, step.tokens), (wanted.len(), shown.tokens));
            let count =
                |counts: &std::collections::BTreeMap<&str, u64>| counts.values().sum::<u64>();
            assert_eq!(count(&step.by_role), wanted.len() as u64);
            assert_eq!(count(&step.by_kind), wanted.len() as u64);
        }
    }
}

fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_session_without_steps_has_an_empty_page_and_receipt() {
    let history = pactql::History::default();
    let (page, _) = page_of(&history, &[]);
    assert_eq!(data_of(&html(&page))["steps"], json!([]));
    assert!(receipt(&history, &mut counts()).steps.is_empty());
}
