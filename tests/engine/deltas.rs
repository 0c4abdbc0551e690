//! Sessions of deltas: loading delta by delta gives the same session as loading whole trees, or
//! the same error.

use std::fmt::Write as _;
use std::sync::Arc;

use pactql::internals::index::{Meta, NodeRef, Snapshot, Writer};
use pactql::internals::tree::{DocumentBody, read_document, read_slice, whole_trees};
use pactql::logs::{write_document, write_members};
use pactql::{Answer, Edition, Engine, History, Session};

use crate::support::random::{self, Rng};

/// Random documents and deltas.
struct Random(Rng);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.0.chance(percent)
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }

    /// The members of a node below `parent`, without the id.
    fn members(&mut self, parent: &str) -> String {
        let mut out = String::new();
        let types = ["cb", "cb", "mc", "mt", "note", "cb:summary", ""];
        let regions = ["^ah", "^sys", "^seq", "^root"];
        let node_type = match parent {
            "r" if self.chance(30) => self.pick(&regions),
            "^seq" if self.chance(70) => "mt",
            _ => self.pick(&types),
        };
        if !node_type.is_empty() {
            let _ = write!(out, r#","nodeType":"{node_type}""#);
        }
        if self.chance(60) {
            let _ = write!(out, r#","offset":{}"#, self.below(5) as i64 - 2);
        }
        if self.chance(40) {
            let _ = write!(out, r#","ttl":{}"#, self.below(4));
        }
        if self.chance(60) {
            let _ = write!(out, r#","created_at_ns":{}"#, self.below(30));
        }
        for (name, values) in [
            ("role", ["user", "assistant"]),
            ("kind", ["text", "call"]),
            ("key", ["K", "hero"]),
            ("tags", ["a", "b"]),
            ("data_x", ["1", "two"]),
            ("content", ["word", ""]),
        ] {
            if self.chance(30) {
                let _ = write!(out, r#","{name}":"{}""#, self.pick(&values));
            }
        }
        for name in ["priority", "cycle", "creation_index", "cadence"] {
            if self.chance(20) {
                let _ = write!(out, r#","{name}":{}"#, self.below(4));
            }
        }
        out
    }

    /// A node with its descendants.
    fn node(&mut self, next: &mut usize, parent: &str, levels: usize) -> String {
        *next += 1;
        let mut out = format!(r#"{{"id":"n{next}"{}"#, self.members(parent));
        if levels > 0 && self.chance(60) {
            let children: Vec<String> = (0..self.below(4))
                .map(|_| self.node(next, "", levels - 1))
                .collect();
            let _ = write!(out, r#","children":[{}]"#, children.join(","));
        }
        out + "}"
    }

    fn document(&mut self, next: &mut usize) -> String {
        let mut children: Vec<String> = Vec::new();
        for region in ["^sys", "^seq", "^ah"] {
            if self.chance(92) {
                let below: Vec<String> = (0..self.below(6))
                    .map(|_| self.node(next, region, 2))
                    .collect();
                children.push(format!(
                    r#"{{"id":"{region}","nodeType":"{region}","children":[{}]}}"#,
                    below.join(",")
                ));
            }
        }
        while self.chance(30) {
            children.push(self.node(next, "", 2));
        }
        format!(
            r#"{{"cycle":10,"root":{{"id":"r","children":[{}]}}}}"#,
            children.join(",")
        )
    }

    /// A delta that changes a few nodes of `newest`, mostly in ways that are allowed.
    fn delta(&mut self, newest: &Snapshot, next: &mut usize) -> String {
        let ids: Vec<&str> = newest.nodes().map(NodeRef::id).collect();
        let mut parents = ids.clone();
        parents.extend(["^seq", "^seq", "^ah", "^sys", "r"].repeat(ids.len().div_ceil(5)));
        let mut replace: Vec<String> = Vec::new();
        let mut named: Vec<String> = Vec::new();
        if self.chance(40) {
            // The client counts ttls down and writes each of them.
            for node in newest.nodes().filter(|node| node.ttl() > Some(0)) {
                let ttl = (node.ttl().unwrap_or(0) - 1).to_string();
                let Some(parent) = node.parent().map(|parent| format!("\"{}\"", parent.id()))
                else {
                    continue;
                };
                if self.chance(97) {
                    let mut members = String::from("{");
                    write_members(node, &[("parent_id", &parent), ("ttl", &ttl)], &mut members);
                    replace.push(members + "}");
                    named.push(node.id().to_owned());
                }
            }
        }
        for _ in 0..self.below(4) {
            let (id, parent) = match self.below(5) {
                // Replaced in place.
                0 => {
                    let node = newest.find(self.pick(&ids)).expect("an id of it");
                    let Some(parent) = node.parent() else {
                        continue;
                    };
                    (node.id().to_owned(), parent.id())
                }
                // Moved.
                1 => (self.pick(&ids).to_owned(), self.pick(&parents)),
                // Rarely below a parent that does not exist.
                2 if self.chance(4) => ("lost".to_owned(), "nowhere"),
                _ => {
                    *next += 1;
                    (format!("n{next}"), self.pick(&parents))
                }
            };
            if named.contains(&id) {
                continue;
            }
            let mut members = self.members(parent);
            if id.starts_with('^') && self.chance(90) {
                members = format!(r#","nodeType":"{id}","priority":{}"#, self.below(3));
            }
            replace.push(format!(
                r#"{{"id":"{id}","parent_id":"{parent}"{members}}}"#
            ));
            named.push(id);
        }
        let mut remove: Vec<String> = Vec::new();
        for _ in 0..self.below(3) {
            let id = if self.chance(97) {
                self.pick(&ids)
            } else {
                "unknown"
            };
            if !named.iter().any(|other| other == id) {
                named.push(id.to_owned());
                remove.push(format!("\"{id}\""));
            }
        }
        format!(
            r#""replace":[{}],"remove":[{}]}}"#,
            replace.join(","),
            remove.join(",")
        )
    }
}

/// Loads a session through whole trees: every delta is applied to the tree of its base.
fn by_trees(text: &str) -> Result<Session, String> {
    let documents = read_slice(text.as_bytes()).map_err(|error| error.to_string())?;
    let mut writer = Writer::new();
    let mut committed: Vec<Arc<Snapshot>> = Vec::new();
    let mut working = None;
    for item in whole_trees(documents) {
        let (mut meta, tree) = item.map_err(|error| error.to_string())?;
        let is_working = meta.working;
        if is_working {
            meta.cycle = committed.last().map_or(0, |snapshot| snapshot.cycle());
        }
        let previous = committed.last().map(|snapshot| &**snapshot);
        let (snapshot, _) = writer.append(previous, &tree, meta);
        if is_working {
            working = Some(Arc::new(snapshot));
        } else {
            committed.push(Arc::new(snapshot));
        }
    }
    Ok(Session::new(History::new(committed, working)))
}

/// Everything a reader can see of a snapshot.
fn contents(snapshot: &Snapshot) -> Vec<String> {
    let show = |node: NodeRef<'_>| {
        assert_eq!(snapshot.find(node.id()).map(NodeRef::id), Some(node.id()));
        let children: Vec<&str> = node.children().map(NodeRef::id).collect();
        let texts = [node.role(), node.kind(), node.key(), node.node_type()];
        let numbers = [node.offset(), node.priority(), node.created_at_ns()];
        format!(
            "{} {:?} {:?} {} {:?} {children:?} {} {texts:?} {numbers:?} {} {:?} {:?} {:?} {:?} {:?}",
            node.id(),
            node.class(),
            node.depth(),
            node.level(),
            node.parent().map(NodeRef::id),
            node.type_or_class(),
            node.creation_index(),
            node.cycle(),
            node.ttl(),
            node.present(),
            node.unit_kind(),
            node.fields().collect::<Vec<_>>(),
        )
    };
    assert_eq!(snapshot.len(), snapshot.nodes().count());
    snapshot.nodes().map(show).collect()
}

fn bytes(snapshot: &Snapshot) -> String {
    let mut out = Vec::new();
    write_document(snapshot, &mut out).expect("memory");
    String::from_utf8(out).expect("ASCII")
}

/// Both histories have the same contents, also after a round trip through trees.
fn assert_alike(one: &History, other: &History, text: &str) {
    assert_eq!(one.committed().len(), other.committed().len());
    let snapshots = |history: &History| -> Vec<Arc<Snapshot>> {
        let committed = history.committed().iter();
        committed.chain(history.working()).cloned().collect()
    };
    for (one, other) in snapshots(one).iter().zip(&snapshots(other)) {
        assert_eq!(bytes(one), bytes(other), "\n{text}");
        assert_eq!(contents(one), contents(other), "\n{text}");
        assert_eq!(one.turns(), other.turns(), "\n{text}");
        let (again, _) = Writer::new().append(None, &one.to_tree(), one.meta().clone());
        assert_eq!(contents(&again), contents(one), "\n{text}");
    }
}

const SELECTORS: [&str; 22] = [
    "@* .cb",
    "@* .mc",
    "@t0 *",
    "@t0 .mt:depth(1) .mc > .cb",
    "@t-1 .mt > .mc > *",
    "@t0 ^seq .mt:pre",
    "@t0 ^ah :core",
    "@t0 ^seq > *",
    "@t0 ^root > *",
    "@t0 ^sys *",
    "@t0 .cb:depth(1..3):last",
    "@t-2 [ttl<=1]",
    "@* [ttl=0]",
    "@* [ttl>0]",
    "@t0 [data_x]",
    "@t0 +a",
    "@t0 #K",
    "@t0 [cadence>=1]",
    "@t0 [offset<0]",
    "@t-3..@t0 *",
    "@t-9..@t0 .cb[role='user']",
    "@t-9..@t0 .mt",
];

fn assert_answers_alike(engine: &Engine, one: &Session, other: &Session, text: &str) {
    for selector in SELECTORS {
        let answer = |session: &Session| match engine.select(session, selector) {
            Err(error) => error.to_string(),
            Ok(Answer::Range(diff)) => serde_json::to_string(&diff).expect("JSON"),
            Ok(Answer::Rows(rows)) => rows.ids().collect::<Vec<_>>().join(" "),
        };
        assert_eq!(answer(one), answer(other), "{selector}\n{text}");
    }
}

#[test]
fn differences_load_as_whole_trees_do() {
    let engine = Engine::builder().edition(Edition::Canonical).build();
    let (mut loaded, mut refused, mut quick, mut turns) = (0, 0, 0, 0);
    for seed in 0..u64::from(random::share(100)) {
        let mut random = Random(Rng::new(seed));
        let mut next = 0;
        let mut lines = random.document(&mut next);
        if by_trees(&lines).is_err() {
            continue; // Two containers at offset 0, say.
        }
        for step in 1..14 {
            let history = by_trees(&lines).expect("accepted before").history();
            let newest = history.committed().last().expect("a snapshot");
            let number = history.committed().len();
            let base = match random.below(12) {
                0 => &history.committed()[random.below(number)],
                _ => newest,
            };
            let cycle = match random.below(25) {
                0 => base.cycle() - 1,
                _ => newest.cycle() + 1 + random.below(9) as i64,
            };
            let working = random.chance(10);
            let delta = random.delta(base, &mut next);
            let place = if working {
                "\"working\":true".to_owned()
            } else {
                format!("\"cycle\":{cycle}")
            };
            let line = format!("{{{place},\"base\":{},{delta}", base.cycle());
            let text = format!("{lines}\n{line}");
            match (Session::from_slice(text.as_bytes()), by_trees(&text)) {
                (Ok(one), Ok(other)) => {
                    loaded += 1;
                    let document = read_document(line.as_bytes()).expect("a line");
                    if let DocumentBody::Delta(delta) = &document.body {
                        let meta = Meta {
                            cycle: if working { newest.cycle() } else { cycle },
                            ..Meta::default()
                        };
                        quick += u32::from(Writer::new().commit(newest, delta, &meta).is_some());
                    }
                    assert_alike(&one.history(), &other.history(), &text);
                    if step % 4 == 0 {
                        assert_answers_alike(&engine, &one, &other, &text);
                    }
                    if !working {
                        lines = text;
                    }
                }
                (one, other) => {
                    refused += 1;
                    let one = one.map(|_| ()).map_err(|error| error.to_string());
                    assert_eq!(one, other.map(|_| ()), "\n{text}");
                }
            }
        }
        turns += by_trees(&lines)
            .expect("accepted before")
            .history()
            .committed()
            .iter()
            .map(|snapshot| snapshot.turns())
            .sum::<u32>();
    }
    println!(
        "{loaded} loaded, {quick} of them without the whole tree; {refused} refused; {turns} turns"
    );
    let share = random::share;
    assert!(loaded > share(600) && refused > share(150) && turns > share(1_000));
    assert!(quick * 10 > loaded * 7, "{quick} of {loaded}");
}

/// Many differences of one old snapshot cost what they touch, not that snapshot again and again. Counted by
/// the looks at the token, one for each unit of a tree that is compared or indexed.
#[test]
fn differences_of_an_old_snapshot_cost_what_they_touch() {
    let (turns, lines) = (400, 300);
    let mut children = Vec::new();
    for turn in 0..turns {
        children.push(format!(
            r#"{{"id":"t{turn}","nodeType":"mt","created_at_ns":{turn},"children":[{{"id":"b{turn}","nodeType":"cb","content":"old {turn}"}}]}}"#
        ));
    }
    let children = children.join(",");
    let mut text = format!(
        r#"{{"cycle":1,"root":{{"id":"r","children":[{{"id":"q","nodeType":"^seq","children":[{children}]}}]}}}}"#
    );
    let mut whole = text.clone();
    for line in 0..lines {
        let (cycle, turn) = (line + 2, line * 7 % turns);
        let _ = write!(
            text,
            "\n{{\"cycle\":{cycle},\"base\":1,\"replace\":[{{\"id\":\"b{turn}\",\"parent_id\":\"t{turn}\",\"nodeType\":\"cb\",\"content\":\"new {cycle}\"}}]}}"
        );
        let changed = children.replace(&format!("\"old {turn}\""), &format!("\"new {cycle}\""));
        let _ = write!(
            whole,
            "\n{{\"cycle\":{cycle},\"root\":{{\"id\":\"r\",\"children\":[{{\"id\":\"q\",\"nodeType\":\"^seq\",\"children\":[{changed}]}}]}}}}"
        );
    }
    let cancel = pactql::Cancel::at_check(0);
    let session = cancel
        .run(|| Session::from_slice(text.as_bytes()).unwrap())
        .unwrap();
    let (looks, _) = cancel.checks();
    assert!(looks < 10 * (turns + lines) as u64, "{looks} looks");
    // The same snapshots as whole documents give.
    let expected = Session::from_slice(whole.as_bytes()).unwrap();
    let engine = Engine::new();
    for selector in [
        "@* .cb[content~'^new']",
        "@t0..@t-* .cb @mode=union",
        "@t-150 .cb[content!='']",
    ] {
        let [found, expected] = [&session, &expected].map(|session| {
            let rows = engine.rows(session, selector).unwrap();
            let texts: Vec<String> = rows.nodes().map(|node| node.text().into_owned()).collect();
            texts
        });
        assert_eq!(found, expected, "{selector}");
    }
    let [found, expected] =
        [&session, &expected].map(|session| engine.range(session, "@t0..@t-* .cb").unwrap());
    let [found, expected] =
        [found, expected].map(|diff| serde_json::to_string(&diff.diffs).unwrap());
    assert_eq!(found, expected);
}
