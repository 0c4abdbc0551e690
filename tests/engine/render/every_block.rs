//! Properties: rendering never panics, gives one line of JSON, is the same for a snapshot and its
//! thread, and has the text of every block exactly once.

use super::snapshot;
use crate::support::random::{self, Rng, cases, same, share};
use pactql::render::Contents;
use pactql::{
    Provider, Session,
    render::{RenderError, Thread, request},
};
use proptest::prelude::TestCaseError;
use serde_json::{Value, json};

#[test]
fn random_sessions_are_rendered() {
    random::sessions(share(2_000), |case| {
        let (session, _) = case.open()?;
        let again = Session::from_slice((case.lines.join("\n") + "\n").as_bytes());
        let again = again.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let (history, again) = (session.history(), again.history());
        if let (Some(snapshot), Some(equal)) = (history.latest(), again.latest()) {
            for provider in Provider::ALL {
                let thread = Thread::from_snapshot(snapshot, Contents::All);
                let records: Vec<_> = thread.records().collect();
                let back = Thread::from_records(&records);
                same!(back.as_ref(), Ok(&thread), "records");
                match (request(&**snapshot, provider), request(&thread, provider)) {
                    (Ok(text), Ok(other)) => {
                        same!(text, other, "{provider}");
                        same!(
                            request(&**equal, provider).ok().as_ref(),
                            Some(&text),
                            "{provider}"
                        );
                        let value: Result<Value, _> = serde_json::from_str(&text);
                        same!(value.is_ok(), true, "{text}");
                        same!(text.find('\n'), Some(text.len() - 1), "{text}");
                    }
                    // Images of these sessions are seldom images.
                    (
                        Err(RenderError::Block { id, .. }),
                        Err(RenderError::Block { id: other, .. }),
                    ) => {
                        same!(id, other, "{provider}");
                    }
                    (one, other) => same!(one.is_ok(), other.is_ok(), "{one:?} {other:?}"),
                }
            }
        }
        Ok(())
    });
}

/// A tree of blocks with one word each that no other block has; returns the words.
struct Maker {
    rng: Rng,
    words: Vec<String>,
    nodes: usize,
}

impl Maker {
    fn content(&mut self, kind: &str) -> Value {
        let word = format!("word{}x", self.words.len());
        self.words.push(word.clone());
        if kind == "image" {
            return match self.rng.below(3) {
                0 => json!(format!("https://example.org/{word}")),
                1 => json!({"media_type": "image/png", "data": word}),
                _ => json!({"url": format!("data:image/png;base64,{word}")}),
            };
        }
        match self.rng.below(8) {
            0 => json!({"b": 1, "a": word}),
            1 => json!([word, {"text": "y"}]),
            2 => json!(format!("{{\"q\": \"{word}\"}}")),
            3 => json!({"url": format!("https://example.org/{word}")}),
            4 => json!({"data": word, "media_type": "application/pdf", "title": 7}),
            5 => json!(format!("a \"{word}\" \\ é \n {{")),
            _ => json!(word),
        }
    }

    fn block(&mut self, depth: usize) -> Value {
        let kinds = [
            "text", "call", "result", "image", "document", "thinking", "summary", "error", "tool",
            "né",
        ];
        let roles = [
            "user",
            "assistant",
            "tool",
            "system",
            "developer",
            "function",
            "critic",
        ];
        let kind = *self.rng.pick(&kinds);
        let mut node = json!({"nodeType": "cb", "content": self.content(kind)});
        self.number(&mut node);
        node["offset"] = json!(self.rng.range(-1, 1));
        if self.rng.chance(90) {
            node["kind"] = json!(kind);
        }
        if self.rng.chance(70) {
            node["role"] = json!(self.rng.pick(&roles));
        }
        if self.rng.chance(40) {
            node["data_call_id"] = json!(self.rng.pick(&["c1", "c:2", "n1"]));
        }
        if self.rng.chance(30) {
            node["data_message"] = json!(self.rng.pick(&["n1", "n2"]));
        }
        if self.rng.chance(15) {
            node["data_is_error"] = json!(self.rng.chance(50));
        }
        if self.rng.chance(15) {
            let part = self
                .rng
                .pick(&["signature", "id", "cache_control", "detail", "title"]);
            node["data_part"] = json!({ *part: "kept" });
        }
        if depth < 3 && self.rng.chance(15) {
            node["children"] = self.blocks(depth + 1);
        }
        node
    }

    fn number(&mut self, node: &mut Value) {
        node["id"] = json!(format!("n{}", self.nodes));
        node["created_at_ns"] = json!(self.nodes);
        self.nodes += 1;
    }

    fn blocks(&mut self, depth: usize) -> Value {
        let count = self.rng.below(6);
        (0..count).map(|_| self.block(depth)).collect()
    }

    /// A turn, a container or loose blocks.
    fn group(&mut self, kind: &str) -> Value {
        let mut node = json!({"nodeType": kind});
        self.number(&mut node);
        let mut children = self.blocks(0);
        if kind == "mt" && self.rng.chance(70) {
            let list = children.as_array_mut().expect("a list");
            list.retain(|child| child["offset"] != 0);
            // The words of what was left out are not sent.
            let mut core = json!({"nodeType": "mc", "offset": 0, "children": self.blocks(0)});
            self.number(&mut core);
            children.as_array_mut().expect("a list").push(core);
        }
        node["children"] = children;
        node
    }
}

fn words_in(value: &Value, found: &mut Vec<String>) {
    if value["nodeType"] == "cb" {
        let text = value["content"].to_string();
        let start = text.find("word").expect("a word");
        let end = text[start..].find('x').expect("its end");
        found.push(text[start..=start + end].to_owned());
    }
    for child in value["children"].as_array().into_iter().flatten() {
        words_in(child, found);
    }
}

#[test]
fn the_text_of_every_block_is_sent_once() {
    for seed in 0..u64::from(cases() / 4) {
        let mut maker = Maker {
            rng: Rng::new(seed),
            words: Vec::new(),
            nodes: 0,
        };
        let mut sys = maker.blocks(0);
        // What is of kind `tool` there is a definition.
        for block in sys.as_array_mut().expect("a list") {
            if block["kind"] == "tool" {
                block["kind"] = json!("text");
            }
            for child in block["children"].as_array_mut().into_iter().flatten() {
                *child = json!({"id": child["id"], "nodeType": "cb", "content": child["content"]});
            }
        }
        let turns: Value = (0..maker.rng.below(4)).map(|_| maker.group("mt")).collect();
        let head = maker.blocks(0);
        let root = json!({"children": [
            {"id": "^sys", "nodeType": "^sys", "children": sys},
            {"id": "^seq", "nodeType": "^seq", "children": turns},
            {"id": "^ah", "nodeType": "^ah", "children": head}]});
        let mut words = Vec::new();
        words_in(&root, &mut words);
        let snapshot = snapshot(&json!({ "root": root }).to_string());
        for provider in Provider::ALL {
            let text = request(&*snapshot, provider)
                .unwrap_or_else(|error| panic!("seed {seed}, {provider}: {error}\n{root}"));
            for word in &words {
                let times = text.matches(word.as_str()).count();
                assert_eq!(times, 1, "seed {seed}, {provider}: {word}\n{text}\n{root}");
            }
        }
    }
}

/// Records come from files, so any text may be one.
#[test]
fn cut_and_changed_records_never_panic() {
    let record = r#"{"id":"a","role":"é","kind":"text","parent":"p","system":true,"content":[{"x":1.0}],"data_z":"\u00e9"}"#;
    let thread = Thread::from_records([record]).expect("a record");
    for at in (0..record.len()).filter(|at| record.is_char_boundary(*at)) {
        assert!(Thread::from_records([&record[..at]]).is_err());
        for with in ["", "}", "\"", ",", "1", "\\"] {
            let changed = format!("{}{with}{}", &record[..at], &record[at..]);
            if let Ok(read) = Thread::from_records([&changed]) {
                assert_eq!(Thread::from_records(read.records()).as_ref(), Ok(&read));
                assert_eq!(read == thread, read.records().eq(thread.records()));
            }
        }
    }
}
