//! Sessions written as outlines: one node a line, children indented by two spaces.
//!
//! A line is `id nodeType name=value …`; `-` means no nodeType; a value is JSON if it
//! parses as JSON and a text otherwise. A line `--- 7` closes the snapshot of cycle 7,
//! `--- working` the working state, `--- 7 working` both.

use super::json::{self, Json};

/// The session of an outline, as lines of JSON.
pub(crate) fn lines(outline: &str) -> Vec<String> {
    let mut documents = Vec::new();
    let mut nodes: Vec<(usize, Json)> = Vec::new();
    let end = outline
        .trim_end()
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start();
    let closing = if end.starts_with("---") { "" } else { "--- 1" };
    for line in outline.lines().chain([closing]) {
        let text = line.trim();
        if let Some(name) = text.strip_prefix("---") {
            let root = nest(std::mem::take(&mut nodes));
            for name in name.split_whitespace() {
                let head = match name {
                    "working" => ("working".to_owned(), Json::Bool(true)),
                    cycle => ("cycle".to_owned(), Json::Num(cycle.to_owned())),
                };
                let root = ("root".to_owned(), root.clone());
                documents.push(Json::Obj(vec![head, root]).write());
            }
        } else if !text.is_empty() {
            let indent = line.len() - line.trim_start().len();
            nodes.push((indent / 2, node(text)));
        }
    }
    documents
}

fn node(text: &str) -> Json {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let mut members = vec![("id".to_owned(), Json::text(words.next().unwrap()))];
    if let Some(node_type) = words.next().filter(|node_type| *node_type != "-") {
        members.push(("nodeType".to_owned(), Json::text(node_type)));
    }
    for word in words {
        let (name, value) = word.split_once('=').unwrap();
        let is_json = serde_json::from_str::<serde_json::Value>(value).is_ok();
        let value = if is_json {
            json::parse(value)
        } else {
            Json::text(value)
        };
        members.push((name.to_owned(), value));
    }
    Json::Obj(members)
}

/// Makes every node a child of the last node with a smaller indentation.
fn nest(mut nodes: Vec<(usize, Json)>) -> Json {
    let base = nodes[0].0;
    while nodes.len() > 1 {
        let (indent, child) = nodes.pop().unwrap();
        assert!(indent > base, "a second root");
        let (_, parent) = nodes.iter_mut().rev().find(|(at, _)| *at < indent).unwrap();
        let Json::Obj(members) = parent else {
            unreachable!("a node")
        };
        match members.iter_mut().find(|(name, _)| name == "children") {
            Some((_, Json::List(children))) => children.insert(0, child),
            _ => members.push(("children".to_owned(), Json::List(vec![child]))),
        }
    }
    nodes.remove(0).1
}
