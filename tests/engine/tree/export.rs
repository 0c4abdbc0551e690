//! Round trips: random sessions through reader, index and export (RUNTIME §1, §2).
//!
//! The expected bytes are made from the random documents themselves, without reader or index:
//! every field a node came with, children in canonical order, canonical JSON.

use std::fmt::Write;
use std::sync::Arc;

use pactql::internals::index::{Snapshot, Writer};
use pactql::internals::json::canonical;
use pactql::internals::tree::{Document, read_document, read_lines, whole_trees};
use pactql::logs::{write_document, write_session};
use proptest::prelude::*;

use crate::support::random::{Rng, property};

/// A node of a random document: members but `id` and `children` as JSON text.
#[derive(Clone, Debug)]
struct Node {
    id: String,
    /// The root may come without its id.
    id_given: bool,
    members: Vec<(String, String)>,
    children: Vec<Node>,
    /// How an empty list of children is written: not at all, `[]` or `null`.
    childless: u64,
}

impl Node {
    fn integer(&self, name: &str) -> i64 {
        let found = self.members.iter().find(|(known, _)| known == name);
        found.and_then(|(_, raw)| raw.parse().ok()).unwrap_or(0)
    }

    fn node_type(&self) -> &str {
        let found = self.members.iter().find(|(known, _)| known == "nodeType");
        found.map_or("", |(_, raw)| raw)
    }
}

/// Random trees.
struct Random(Rng);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n as usize) as u64
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.0.below(from.len())]
    }

    fn set(&mut self, node: &mut Node, name: &str, raw: String) {
        match node.members.iter_mut().find(|(known, _)| known == name) {
            Some(member) => member.1 = raw,
            None => {
                let at = self.below(node.members.len() as u64 + 1) as usize;
                node.members.insert(at, (name.to_owned(), raw));
            }
        }
    }

    fn member(&mut self, node: &mut Node) {
        const VALUES: &[&str] = &[
            "null",
            "true",
            "0",
            "-0",
            "-0.0",
            "1e5",
            "1.50",
            "1e-7",
            "12345678901234567890123",
            "\"\"",
            "\"x\"",
            "\"\\u00e9\\ud83d\\ude00\"",
            "\"é\\n\\/\"",
            "[]",
            "{}",
            "[1, {\"b\": 2, \"a\": [null]}]",
            "{\"z\":1,\"\\u0061\":\"\u{7f}\"}",
        ];
        match self.below(15) {
            0 => {
                let n = self.below(7) as i64 - 3;
                self.set(node, "offset", n.to_string());
            }
            1 => {
                let n = self.below(4);
                self.set(node, "ttl", n.to_string());
            }
            2 => {
                let n = self.below(10);
                self.set(node, "priority", n.to_string());
            }
            3 => {
                let n = self.below(3);
                self.set(node, "cycle", n.to_string());
            }
            4 => {
                let n = self.below(3) + 1_700_000_000_000_000_000;
                self.set(node, "created_at_ns", n.to_string());
            }
            5 => {
                let n = self.below(3);
                self.set(node, "creation_index", n.to_string());
            }
            6 => {
                let text = self.pick(&["\"user\"", "\"tool\"", "\"a\\\"b\"", "null"]);
                self.set(node, "role", text.to_owned());
            }
            7 => {
                let text = self.pick(&["\"text\"", "\"call\"", "\"\"", "null"]);
                self.set(node, "kind", text.to_owned());
            }
            8 => {
                let text = self.pick(&["\"k1\"", "\"k2\"", "null"]);
                self.set(node, "key", text.to_owned());
            }
            9 => {
                let name = self.pick(&[
                    "offset",
                    "ttl",
                    "priority",
                    "created_at_ns",
                    "content_hash",
                    "cadence",
                ]);
                self.set(node, name, "null".to_owned());
            }
            10 => {
                let text = self.pick(&["\"a\"", "[]", "[\"a\",\"b\"]", "null"]);
                let name = self.pick(&["tags", "tag"]);
                self.set(node, name, text.to_owned());
            }
            11 => {
                let text = self.pick(&["1", "-1", "null"]);
                let name = self.pick(&["cadence", "cad"]);
                self.set(node, name, text.to_owned());
            }
            12 => {
                let text = self.pick(&["\"2024-01-01\"", "null"]);
                self.set(node, "created_at_iso", text.to_owned());
            }
            13 => {
                let value = self.pick(VALUES);
                self.set(node, "content", value.to_owned());
            }
            _ => {
                let value = self.pick(VALUES);
                let name = self.pick(&[
                    "data_x",
                    "content_type",
                    "status",
                    "odd key",
                    "ключ",
                    "provenance",
                    "a",
                    "z",
                ]);
                self.set(node, name, value.to_owned());
            }
        }
    }

    fn node(&mut self, number: &mut u64, types: &[&str], level: u64) -> Node {
        *number += 1;
        let id = match self.below(8) {
            0 => format!("é:{number}"),
            1 => format!("Z \"{number}"),
            _ => format!("n:{number:03}"),
        };
        let mut node = Node {
            id,
            id_given: true,
            members: Vec::new(),
            children: Vec::new(),
            childless: self.below(3),
        };
        let node_type = self.pick(types);
        if !node_type.is_empty() {
            self.set(&mut node, "nodeType", format!("\"{node_type}\""));
        }
        for _ in 0..self.below(6) {
            self.member(&mut node);
        }
        let below: &[&str] = match node_type {
            "^seq" => &["mt", "seg", "mt:x", "", "", "cb", "mc"],
            "^sys" => &["cb", "block", "cb:summary", "", "mc"],
            _ => &[
                "mc",
                "cont",
                "cb",
                "block",
                "cb:summary",
                "",
                "mt",
                "other",
                "^foo",
            ],
        };
        if level < 5 && (level < 3 || self.below(3) == 0) {
            for _ in 0..self.below(4) {
                let child = self.node(number, below, level + 1);
                node.children.push(child);
            }
        }
        node
    }

    /// A tree with some of the regions in any order, and nodes outside of them.
    fn tree(&mut self, number: &mut u64) -> Node {
        let mut root = self.node(number, &["", "^root"], 5);
        if self.below(3) == 0 {
            root.id = "^root".to_owned();
            root.id_given = false;
        }
        let mut regions = vec!["^sys", "^seq", "^ah"];
        while let Some(region) =
            (!regions.is_empty()).then(|| regions.remove(self.below(regions.len() as u64) as usize))
        {
            if self.below(5) > 0 {
                let node = self.node(number, &[region], 1);
                root.children.push(node);
            }
        }
        if self.below(4) == 0 {
            let node = self.node(number, &["cb", "mt", ""], 3);
            root.children.push(node);
        }
        mend(&mut root);
        root
    }

    /// The tree of the next cycle: a few changes.
    fn next(&mut self, tree: &Node, number: &mut u64) -> Node {
        let mut root = tree.clone();
        for _ in 0..self.below(4) {
            let mut parts: Vec<Vec<usize>> = Vec::new();
            paths(&root, &mut Vec::new(), &mut parts);
            let path = parts[self.below(parts.len() as u64) as usize].clone();
            match self.below(6) {
                0 => {
                    // Removed with its descendants.
                    if let Some((last, above)) = path.split_last() {
                        at(&mut root, above).children.remove(*last);
                    }
                }
                1 | 2 => {
                    let node = self.node(number, &["cb", "block", "", "mc"], 4);
                    if !path.is_empty() {
                        at(&mut root, &path).children.push(node);
                    }
                }
                3 => {
                    let node = at(&mut root, &path);
                    self.member(node);
                }
                4 => {
                    // Moved, unless it is a region.
                    let Some((last, above)) = path.split_last() else {
                        continue;
                    };
                    let node = at(&mut root, above).children.remove(*last);
                    if node.node_type().starts_with("\"^") {
                        at(&mut root, above).children.insert(*last, node);
                        continue;
                    }
                    let mut parts: Vec<Vec<usize>> = Vec::new();
                    paths(&root, &mut Vec::new(), &mut parts);
                    let target = parts[self.below(parts.len() as u64) as usize].clone();
                    at(&mut root, &target).children.push(node);
                }
                _ => {
                    let node = at(&mut root, &path);
                    node.members.retain(|(name, _)| name == "nodeType");
                }
            }
        }
        if self.below(2) == 0 {
            count_down(&mut root);
        }
        mend(&mut root);
        root
    }
}

fn count_down(node: &mut Node) {
    for (name, raw) in &mut node.members {
        if name == "ttl"
            && let Ok(ttl) = raw.parse::<i64>()
        {
            *raw = (ttl - 1).max(0).to_string();
        }
    }
    node.children.iter_mut().for_each(count_down);
}

/// Two containers of one parent must not both say offset 0.
fn mend(node: &mut Node) {
    let mut cores = 0;
    for child in &mut node.children {
        let said = child
            .members
            .iter()
            .position(|(name, raw)| name == "offset" && raw == "0");
        let container = child.node_type().is_empty() && !child.children.is_empty()
            || child.node_type().starts_with("\"mc")
            || child.node_type().starts_with("\"cont");
        if let Some(said) = said
            && container
        {
            cores += 1;
            if cores > 1 {
                child.members.remove(said);
            }
        }
        mend(child);
    }
}

fn paths(node: &Node, path: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
    out.push(path.clone());
    for (index, child) in node.children.iter().enumerate() {
        path.push(index);
        paths(child, path, out);
        path.pop();
    }
}

fn at<'a>(mut node: &'a mut Node, path: &[usize]) -> &'a mut Node {
    for &index in path {
        node = &mut node.children[index];
    }
    node
}

/// A node as a user might write it: members in any order, with white space.
fn written(node: &Node, random: &mut Random) -> String {
    let mut members: Vec<String> = node
        .members
        .iter()
        .map(|(name, raw)| format!("{} : {raw}", serde_json::to_string(name).expect("JSON")))
        .collect();
    if node.id_given {
        let at = random.below(members.len() as u64 + 1) as usize;
        members.insert(
            at,
            format!("\"id\":{}", serde_json::to_string(&node.id).expect("JSON")),
        );
    }
    let children: Vec<String> = node
        .children
        .iter()
        .map(|child| written(child, random))
        .collect();
    let children = match (children.is_empty(), node.childless) {
        (false, _) => Some(format!("[{}]", children.join(", "))),
        (true, 0) => None,
        (true, 1) => Some("[ ]".to_owned()),
        (true, _) => Some("null".to_owned()),
    };
    if let Some(children) = children {
        let at = random.below(members.len() as u64 + 1) as usize;
        members.insert(at, format!("\"children\":{children}"));
    }
    format!("{{{}}}", members.join(","))
}

/// What an export of the node must be.
fn expected(node: &Node, level: u64) -> String {
    let mut members: Vec<(String, String)> = node
        .members
        .iter()
        .map(|(name, raw)| (name.clone(), canonical(raw)))
        .collect();
    if node.id_given {
        members.push((
            "id".to_owned(),
            canonical(&serde_json::to_string(&node.id).expect("JSON")),
        ));
    }
    if !node.children.is_empty() || node.childless == 1 {
        let mut children: Vec<&Node> = node.children.iter().collect();
        let region = |node: &Node| match node.node_type() {
            "\"^sys\"" if level == 0 => 0,
            "\"^seq\"" if level == 0 => 1,
            "\"^ah\"" if level == 0 => 2,
            _ => 3,
        };
        children.sort_by(|a, b| {
            region(a)
                .cmp(&region(b))
                .then(a.integer("offset").cmp(&b.integer("offset")))
                .then(a.integer("created_at_ns").cmp(&b.integer("created_at_ns")))
                .then(
                    a.integer("creation_index")
                        .cmp(&b.integer("creation_index")),
                )
                .then(a.id.as_bytes().cmp(b.id.as_bytes()))
        });
        let children: Vec<String> = children
            .iter()
            .map(|child| expected(child, level + 1))
            .collect();
        members.push(("children".to_owned(), format!("[{}]", children.join(","))));
    }
    members.sort();
    let mut out = String::from("{");
    for (index, (name, value)) in members.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let name = canonical(&serde_json::to_string(name).expect("JSON"));
        let _ = write!(out, "{comma}{name}:{value}");
    }
    out + "}"
}

/// The snapshots of documents, as a session makes them.
fn snapshots(documents: Vec<Document>) -> Vec<Arc<Snapshot>> {
    let mut writer = Writer::new();
    let mut out: Vec<Arc<Snapshot>> = Vec::new();
    for item in whole_trees(documents) {
        let (meta, tree) = item.expect("a tree");
        let (snapshot, _) = writer.append(out.last().map(|last| &**last), &tree, meta);
        out.push(Arc::new(snapshot));
    }
    out
}

fn document_bytes(snapshot: &Snapshot) -> String {
    let mut out = Vec::new();
    write_document(snapshot, &mut out).expect("memory");
    String::from_utf8(out).expect("ASCII")
}

fn session_bytes(snapshots: &[Arc<Snapshot>], full: bool) -> String {
    let mut out = Vec::new();
    write_session(snapshots, None, full, &mut out).expect("memory");
    String::from_utf8(out).expect("ASCII")
}

proptest! {
    #![proptest_config(property(2_400))]

    /// The export of a document is its canonical form; exporting that gives the same bytes.
    #[test]
    fn documents(seed in any::<u64>()) {
        let mut random = Random(Rng::new(seed));
        let tree = random.tree(&mut 0);
        let text = format!("{{\"x\": [1.0], \"root\": {}, \"cycle\": 7, \"spec_version\":\"PACT\"}}", written(&tree, &mut random));
        let document = read_document(text.as_bytes()).map_err(|error| TestCaseError::fail(format!("{text}\n{error}")))?;
        let exported = document_bytes(&snapshots(vec![document])[0]);
        let wanted = format!("{{\"cycle\":7,\"root\":{},\"spec_version\":\"PACT\",\"x\":[1.0]}}\n", expected(&tree, 0));
        prop_assert_eq!(&exported, &wanted);
        let again = read_document(exported.as_bytes()).expect("an export");
        prop_assert_eq!(document_bytes(&snapshots(vec![again])[0]), exported);
    }

    /// Every snapshot of a session, written in any form, is the document it came from.
    #[test]
    fn sessions(seed in any::<u64>(), length in 2usize..6) {
        let mut random = Random(Rng::new(seed));
        let mut number = 0;
        let mut trees = vec![random.tree(&mut number)];
        while trees.len() < length {
            let next = random.next(&trees[trees.len() - 1], &mut number);
            trees.push(next);
        }
        let text: String = trees.iter().map(|tree| format!("{{\"root\":{}}}\n", written(tree, &mut random))).collect();
        let documents = read_lines(text.as_bytes()).map_err(|error| TestCaseError::fail(format!("{text}\n{error}")))?;
        let session = snapshots(documents);
        let wanted: Vec<String> = trees.iter().map(|tree| format!("{{\"root\":{}}}\n", expected(tree, 0))).collect();
        for (snapshot, wanted) in session.iter().zip(&wanted) {
            prop_assert_eq!(&document_bytes(snapshot), wanted, "{}", text);
            for node in snapshot.nodes() {
                prop_assert_eq!(snapshot.find(node.id()).map(|found| found.row()), Some(node.row()));
            }
        }
        for full in [true, false] {
            let exported = session_bytes(&session, full);
            let documents = read_lines(exported.as_bytes())
                .map_err(|error| TestCaseError::fail(format!("{exported}\n{error}")))?;
            let again = snapshots(documents);
            prop_assert_eq!(&session_bytes(&again, full), &exported);
            for (snapshot, wanted) in again.iter().zip(&wanted) {
                prop_assert_eq!(&document_bytes(snapshot), wanted, "{}", exported);
            }
        }
    }

    /// Any text between the lines of a valid session is read or an error, never a panic.
    #[test]
    fn broken_sessions(seed in any::<u64>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut random = Random(Rng::new(seed));
        let mut number = 0;
        let tree = random.tree(&mut number);
        let next = random.next(&tree, &mut number);
        let text: String = [tree, next].iter().map(|tree| format!("{{\"root\":{}}}\n", written(tree, &mut random))).collect();
        let session = snapshots(read_lines(text.as_bytes()).expect("good lines"));
        let mut bytes = session_bytes(&session, false).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(documents) = read_lines(&bytes) {
            let errors = whole_trees(documents).filter(Result::is_err).count();
            assert!(errors <= 1);
        }
    }
}
