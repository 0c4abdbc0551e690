//! diff, log, blame.

use super::{AGENT, Scratch, answer, fails};
use serde_json::{Value, json};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// A session in which one block is rewritten, one removed and one added.
fn small(scratch: &Scratch) -> String {
    let document = |cycle: i64, blocks: Value| {
        json!({"cycle": cycle, "root": {"id": "r", "children": [
            {"id": "ah", "nodeType": "^ah", "children": blocks}]}})
    };
    let older = document(
        4,
        json!([
            {"id": "a", "nodeType": "cb", "ttl": 5, "content": "one\ntwo\nthree"},
            {"id": "b", "nodeType": "cb", "role": "tool", "content": "{\"n\":[1,2]}"},
            {"id": "c", "nodeType": "cb", "content": "gone \u{1b}[31m"},
        ]),
    );
    let newer = document(
        5,
        json!([
            {"id": "a", "nodeType": "cb", "ttl": 3, "content": "one\n2\nthree"},
            {"id": "b", "nodeType": "cb", "role": "tool", "content": "{\"n\":[1,2,3]}"},
            {"id": "d", "nodeType": "cb", "role": "user", "content": "come"},
        ]),
    );
    scratch.write("small.jsonl", format!("{older}\n{newer}\n"))
}

#[test]
fn diff_prints_json_away_from_a_terminal() {
    let scratch = Scratch::new("diff");
    let session = small(&scratch);
    let plain = "{\"added\":[\"d\"],\"removed\":[\"c\"],\"changed\":[\
                 {\"id\":\"a\",\"fields\":[\"content_hash\",\"ttl\"]},\
                 {\"id\":\"b\",\"fields\":[\"content_hash\"]}]}\n";
    assert_eq!(answer(&["diff", "--json", &session, "@t-1", "@t0"]), plain);
    assert_eq!(
        answer(&["diff", "--json", &session, "c5", "@c4", ".cb"]),
        plain
    );
    assert_eq!(
        answer(&["diff", "--json", &session, "@t0", "@t-1", "[role='tool']"]),
        "{\"added\":[],\"removed\":[],\"changed\":[{\"id\":\"b\",\"fields\":[\"content_hash\"]}]}\n"
    );
    let moves = parsed(&answer(&[
        "diff", "--json", &session, "@t0", "@t-1", "--moves",
    ]));
    assert_eq!(moves["moves"], json!([]));
    assert_eq!(moves["children_added"], json!({"ah": ["d"]}));
    let content = |mode: &[&str]| {
        let arguments = [&["diff", "--json", &session, "@t0", "@t-1"], mode].concat();
        parsed(&answer(&arguments))["changed"].clone()
    };
    let told = content(&["--content", "--context-lines", "0"]);
    assert_eq!(
        told[0]["content_diff"]["diff"],
        "--- @t-1/a\n+++ @t0/a\n@@ -2 +2 @@\n-two\n+2\n"
    );
    let told = content(&["--content", "jsonpatch"]);
    assert_eq!(told[0]["content_diff"]["mode"], "unified");
    assert_eq!(
        told[1]["content_diff"]["patch"],
        json!([{"op": "add", "path": "/n/2", "value": 3}])
    );
    let told = content(&["--content=tokens"]);
    assert_eq!(
        told[0]["content_diff"]["hunks"],
        json!([{"older": {"start": 4, "text": "two"}, "newer": {"start": 4, "text": "2"}}])
    );
}

#[test]
fn diff_names_no_hash_to_a_person_where_the_content_is_the_same() {
    let scratch = Scratch::new("diff-link");
    let call =
        json!({"id": "a", "nodeType": "cb", "role": "assistant", "kind": "call", "content": "{}"});
    let mut linked = call.clone();
    linked["data_child_session"] = json!("/a1");
    let lines = [(1, &call), (2, &linked)].map(|(cycle, node)| {
        let head = json!({"id": "ah", "nodeType": "^ah", "children": [node]});
        json!({"cycle": cycle, "root": {"id": "root", "children": [head]}}).to_string()
    });
    let session = scratch.write("s.jsonl", lines.join("\n") + "\n");
    let diff = |form: &str| answer(&["diff", &session, "@t0", "@t-1", "--format", form]);
    let text = diff("text");
    assert!(text.contains("~ a (data_child_session)\n"), "{text}");
    // What reads JSON is told of every field that differs.
    let fields = &parsed(&diff("json"))["changed"][0]["fields"];
    assert_eq!(fields, &json!(["content_hash", "data_child_session"]));
}

#[test]
fn diff_tells_a_person_what_changed() {
    let scratch = Scratch::new("diff-text");
    let session = small(&scratch);
    let text = answer(&["diff", &session, "@t-1", "@t0", "--format", "text"]);
    assert_eq!(
        text,
        "@t0 after @t-1: 1 added, 1 removed, 2 changed\n\
         + d user: come\n\
         - c: gone \\u001b[31m\n\
         ~ a (content, ttl)\n    ttl: 5 → 3\n    \
         @@ -1,3 +1,3 @@\n     one\n    -two\n    +2\n     three\n\
         ~ b (content)\n    \
         @@ -1 +1 @@\n    ~ {\"n\":[1,2{+,3+}]}\n"
    );
    let coloured = answer(&[
        "diff", &session, "@t-1", "@t0", "--format", "text", "--color", "always",
    ]);
    assert!(
        coloured.contains("\u{1b}[32m+ d user: come\u{1b}[0m\n"),
        "{coloured}"
    );
    assert!(
        coloured.contains("    \u{1b}[31m-two\u{1b}[0m\n"),
        "{coloured}"
    );
    let words = answer(&[
        "diff",
        &session,
        "@t-1",
        "@t0",
        "#a",
        "--edition",
        "v0.1",
        "--content",
        "tokens",
        "--format",
        "text",
    ]);
    assert!(words.ends_with("    4: -\"two\" +\"2\"\n"), "{words}");
}

#[test]
fn diff_refuses_what_it_cannot_compare() {
    fails(&["diff", AGENT, "@t0"], 1, "takes two snapshots");
    fails(&["diff", AGENT, "@t0", "@t3"], 3, "found `@t3`");
    fails(&["diff", AGENT, "@t0", "@c99"], 2, "E_SNAPSHOT_NOT_FOUND");
    fails(
        &["diff", AGENT, "@t0", "@t-1", "@t0 .cb"],
        2,
        "names a time",
    );
    fails(
        &["diff", AGENT, "@t0", "@t-1", ".cb["],
        2,
        "E_SELECTOR_INVALID",
    );
    fails(
        &["diff", AGENT, "@t0", "@t-1", "--content", "xml"],
        3,
        "xml",
    );
    fails(
        &["diff", "missing.jsonl", "@t0", "@t-1"],
        4,
        "missing.jsonl",
    );
    let scratch = Scratch::new("diff-working");
    let session = small(&scratch);
    let arguments = ["diff", &session, "@t0", "working", "--format", "json"];
    assert_eq!(
        answer(&arguments),
        "{\"added\":[],\"removed\":[],\"changed\":[]}\n"
    );
}

#[test]
fn diff_of_runs_finds_where_they_part() {
    let scratch = Scratch::new("diff-runs");
    let chat = |name: &str, answer: &str, last: &str| {
        let messages = json!([
            {"role": "user", "content": "Is the roof open?"},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "Close it."},
            {"role": "assistant", "content": last},
        ]);
        scratch.write(name, messages.to_string())
    };
    let first = chat("a.json", "It is open.", "Closed.");
    let second = chat("b.json", "It was open.", "Closed.");
    let third = chat("c.json", "It is open.", "Closed.");
    let lines = answer(&["diff", &first, &second, &third, "--json"]);
    let lines: Vec<Value> = lines.lines().map(parsed).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["equal"], 0);
    assert_eq!(lines[0]["parted"]["at"], "answer");
    assert_eq!(lines[0]["meet"]["cycle_a"], 2);
    assert_eq!(
        (&lines[1]["equal"], &lines[1]["parted"]),
        (&json!(2), &Value::Null)
    );
    let text = answer(&["diff", &first, &second, "--format", "text"]);
    for part in [
        "0 equal steps",
        "step 1 (@c1 beside @c1): the requests are equal, the answers differ",
        "[-is-]{+was+}",
        "from @c2 beside @c2, 1 step adds the same",
        "ends at @c2 after 2 steps: reply",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let same = answer(&["diff", &first, &third, "--format", "text"]);
    assert!(
        same.contains("2 equal steps\nthe runs are equal to their ends\n"),
        "{same}"
    );
}

#[test]
fn diff_of_runs_refuses_what_it_cannot_compare() {
    fails(&["diff", AGENT], 1, "two snapshots, or two sessions");
    fails(&["diff", AGENT, "nowhere"], 1, "found `nowhere`");
    fails(&["diff", AGENT, AGENT, "--moves"], 1, "always listed");
    let at = format!("{AGENT}@t0");
    fails(&["diff", &at, AGENT, AGENT], 1, "SESSION@ADDRESS");
}

#[test]
fn log_counts_what_each_snapshot_brought() {
    let scratch = Scratch::new("log");
    let session = small(&scratch);
    assert_eq!(
        answer(&["steps", "--changes", &session, "--where", ".cb", "--json"]),
        "{\"query\":\"@t0..@t-* .cb\",\"snapshots\":[\
         {\"label\":\"@t0\",\"cycle\":5,\"matches\":3,\"added\":1,\"removed\":1,\"changed\":2},\
         {\"label\":\"@t-1\",\"cycle\":4,\"matches\":3,\"added\":3,\"removed\":0,\"changed\":0}]}\n"
    );
    assert_eq!(
        answer(&[
            "steps",
            "--changes",
            &session,
            "--where",
            ".cb",
            "--format",
            "text"
        ]),
        "snapshot  cycle  matches  added  removed  changed\n\
         @t0       @c5          3     +1       -1       ~2  +-~~\n\
         @t-1      @c4          3     +3       -0       ~0  +++\n"
    );
    let whole = parsed(&answer(&["steps", "--changes", AGENT, "--json"]));
    let entries = whole["snapshots"].as_array().expect("snapshots");
    let stats = parsed(&answer(&["select", "--json", AGENT, "@t0 *", "--count"]));
    assert_eq!(entries[0]["matches"], stats);
    // Long bars are shortened, and every kind of change stays visible.
    for line in answer(&["steps", "--changes", AGENT, "--format", "text"]).lines() {
        assert!(line.len() < 100, "{line}");
    }
    fails(
        &["steps", "--changes", AGENT, "--where", "@t0 .cb"],
        2,
        "names a time",
    );
    fails(
        &["steps", "--changes", AGENT, "--where", ".cb @mode=union"],
        2,
        "E_SELECTOR_INVALID",
    );
    fails(&["steps", "--changes", "missing.jsonl"], 4, "missing.jsonl");
}

#[test]
fn blame_shows_the_history_of_a_node() {
    let scratch = Scratch::new("blame");
    let session = small(&scratch);
    assert_eq!(
        answer(&["blame", &session, "a", "--format", "text"]),
        "@c4  appeared under ah\n@c5  changed content, ttl\n    ttl: 5 → 3\n"
    );
    assert_eq!(
        answer(&["blame", &session, "c", "--format", "text"]),
        "@c4  appeared under ah\n@c5  went\n"
    );
    assert_eq!(
        answer(&["blame", "--json", &session, "c"]),
        "{\"id\":\"c\",\"events\":[\
         {\"cycle\":4,\"snapshot\":\"@c4\",\"event\":\"appeared\",\"parent\":\"ah\"},\
         {\"cycle\":5,\"snapshot\":\"@c5\",\"event\":\"went\"}]}\n"
    );
    let doc = parsed(&answer(&["blame", "--json", AGENT, "cb:doc1"]));
    let ttl = |event: &Value| event["delta"]["ttl"]["from"].clone();
    let events = doc["events"].as_array().expect("events");
    let ttls: Vec<Value> = events.iter().map(ttl).collect();
    assert_eq!(ttls[1..3], [json!(2), json!(1)]);
    fails(&["blame", AGENT, "nobody"], 3, "no snapshot has a node");
    fails(&["blame", "missing.jsonl", "x"], 4, "missing.jsonl");
}
