//! Egregore: snapshots of context trees, `{"snapshots": [{"pact_tree": {…}, …}]}`, or one of them.
//!
//! The trees are nearly those of this project, so nodes are translated one by one and keep their ids.
//! Every snapshot is a cycle, in the order of the list, whatever cycles its nodes say.
//!
//! | there | here |
//! |---|---|
//! | `root`, `^sys` or `sys`, `seq` | `^root`, `^sys`, `^seq`, with these ids |
//! | `^ah`, the turn at depth 0 | `^ah`; what it holds |
//! | `message_turn` and other turns beside the regions, the newest first | `mt` under `^seq`, the oldest first |
//! | `message_container` | `mc` |
//! | `text_content`, `tool_result`, … | `cb` with a kind; `data_type` has the type if the kind does not imply it |
//! | `role` of a turn | `role` of its blocks |
//! | `org.props` | a field `data_…` each |
//! | the rest of `org`, `tags`, `ttl`, `priority`, `offset`, `cad` | `data_org`, `data_tags`, … where they say something |

use super::prelude::*;
use crate::logs::change::LogChange;
use crate::logs::nodes::{CreationOrder, HEAD, LogNode, LogNodeDraft, ROOT, SEQ, SYS};
use crate::logs::recording::Recording;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

pub(super) fn sniff(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let has_tree = |found: &[Member<'_>]| is(found, "pact_tree", ValueType::Object);
    let list = items(found, "snapshots");
    let first = list.first().copied().map(members).unwrap_or_default();
    (has_tree(found) || has_tree(&first)).into()
}

/// Reads snapshots; those of all records are one session.
#[derive(Default)]
pub(super) struct Egregore {
    recording: Recording,
    nodes: HashMap<String, LogNode>,
    made: HashMap<String, CreationOrder>,
    location: Option<String>,
}

impl LogReader for Egregore {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        self.location.get_or_insert_with(|| record.list.to_owned());
        let found = members(record.raw);
        if get(&found, "pact_tree").is_some() {
            self.snapshot(record.raw, &mut out.report);
            return;
        }
        for raw in items(&found, "snapshots") {
            self.snapshot(raw, &mut out.report);
        }
        for (name, _) in &found {
            if name != "snapshots" {
                out.report.skipped_member(name);
            }
        }
    }

    fn finish(&mut self, _: &dyn Records, out: &mut Output) {
        let about = About {
            location: self.location.take().unwrap_or_default(),
            ..About::default()
        };
        out.whole(about, std::mem::take(&mut self.recording));
    }
}

impl Egregore {
    fn snapshot(&mut self, raw: &str, report: &mut ImportReport) {
        let found = members(raw);
        let Some(tree) = get(&found, "pact_tree").filter(|raw| raw.starts_with('{')) else {
            report.line(Fate::Skipped, "snapshot without a tree");
            return;
        };
        report.line(Fate::Understood, "snapshot");
        let mut reading = SnapshotReading {
            cycle: self.recording.snapshots() as i64 + 1,
            made: &mut self.made,
            count: 0,
            nodes: Vec::new(),
            ids: HashSet::new(),
            report,
        };
        reading.root(tree);
        let nodes = reading.nodes;
        let mut change = LogChange::default();
        let mut now: HashMap<String, LogNode> = HashMap::with_capacity(nodes.len());
        for node in nodes {
            if self.nodes.get(&node.id) != Some(&node) {
                change.put.push(node.clone());
            }
            now.insert(node.id.clone(), node);
        }
        let gone = |id: &String| !now.contains_key(id);
        let mut removed: Vec<&LogNode> = self
            .nodes
            .values()
            .filter(|node| gone(&node.id) && !gone(&node.parent))
            .collect();
        removed.sort_unstable_by(|a, b| (a.order(), &a.id).cmp(&(b.order(), &b.id)));
        change.remove = removed.into_iter().map(|node| node.id.clone()).collect();
        let said = object_without(&found, &["pact_tree", "full_context"]);
        let said = said.unwrap_or_else(|| "{}".to_owned());
        change.meta = Some(format!("{{\"snapshot\":{said},\"source\":\"request\"}}"));
        self.recording.push(&change);
        self.nodes = now;
    }
}

struct SnapshotReading<'a> {
    cycle: i64,
    made: &'a mut HashMap<String, CreationOrder>,
    count: i64,
    nodes: Vec<LogNode>,
    ids: HashSet<String>,
    report: &'a mut ImportReport,
}

impl SnapshotReading<'_> {
    fn root(&mut self, tree: &str) {
        let found = members(tree);
        let began = when(&found).unwrap_or_default();
        for (at, id) in [ROOT, SYS, SEQ, HEAD].into_iter().enumerate() {
            let parent = if at == 0 { "" } else { ROOT };
            let part = (at == 0).then(|| part(&found, true));
            // Regions keep the time of the first snapshot that has the tree.
            self.add(LogNodeDraft {
                id: id.to_owned(),
                parent: parent.to_owned(),
                node_type: id,
                order_ns: began + at as i64,
                part: part.as_ref(),
                ..LogNodeDraft::default()
            });
        }
        let (mut turns, mut head) = (Vec::new(), Vec::new());
        for raw in children(&found) {
            let region = members(raw);
            match text(&region, "nodeType").as_deref() {
                Some("^sys" | "sys") => {
                    let role = role_of(&region).unwrap_or_else(|| "system".to_owned());
                    self.below(&region, SYS, Some(&role), began + 3);
                }
                Some("^seq" | "seq") => {
                    turns.splice(0..0, children(&region).into_iter().rev());
                }
                Some("^ah" | "ah") => head.push(region),
                _ => turns.push(raw),
            }
        }
        let mut after = began + 3;
        for raw in turns.into_iter().rev() {
            after = self.turn(raw, after);
        }
        // Of copies that share an id, the oldest keeps it.
        for region in head {
            self.below(&region, HEAD, role_of(&region).as_ref(), began + 3);
        }
    }

    /// Adds a turn of the sequence. Returns a time after which the next one comes.
    fn turn(&mut self, raw: &str, after: i64) -> i64 {
        let found = members(raw);
        let order_ns = when(&found).unwrap_or_default().max(after + 1);
        let id = self.unique(&found);
        let part = part(&found, true);
        self.add(LogNodeDraft {
            id: id.clone(),
            parent: SEQ.to_owned(),
            node_type: "mt",
            order_ns,
            time: time_of(&found),
            part: Some(&part),
            ..LogNodeDraft::default()
        });
        self.below(&found, &id, role_of(&found).as_ref(), order_ns);
        order_ns
    }

    /// Adds what is in a node, level by level of the text, without recursion.
    fn below(&mut self, found: &[Member<'_>], parent: &str, role: Option<&String>, after: i64) {
        // Of each node above: the children that come next, its id and role, and the time of the last child.
        let first = (
            children(found).into_iter(),
            parent.to_owned(),
            role.cloned(),
            after,
        );
        let mut open = vec![first];
        while let Some((rest, parent, role, before)) = open.last_mut() {
            let Some(raw) = rest.next() else {
                open.pop();
                continue;
            };
            let found = members(raw);
            let id = self.unique(&found);
            let order_ns = when(&found).unwrap_or_default().max(*before + 1);
            *before = order_ns;
            let kind = text(&found, "nodeType").unwrap_or_default();
            let inner = children(&found);
            let is_container = kind == "message_container" || !inner.is_empty();
            let part = part(&found, is_container);
            let role = role_of(&found).or_else(|| role.clone());
            if !is_container {
                let kind = part.kind.unwrap_or("other content");
                self.report.part(Fate::Understood, kind);
            }
            let node_type = if is_container { "mc" } else { "cb" };
            self.add(LogNodeDraft {
                id: id.clone(),
                parent: parent.clone(),
                node_type,
                order_ns,
                time: time_of(&found),
                role: role.as_deref().filter(|_| !is_container),
                part: Some(&part),
                ..LogNodeDraft::default()
            });
            open.push((inner.into_iter(), id, role, order_ns));
        }
    }

    /// The id of a node. Copies that share an id get a number.
    fn unique(&mut self, found: &[Member<'_>]) -> String {
        let id = text(found, "id").filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| "node".into());
        let mut unique = id.clone().into_owned();
        let mut copy = 2;
        while matches!(&*unique, ROOT | SYS | SEQ | HEAD) || self.ids.contains(&unique) {
            unique = format!("{id}~{copy}");
            copy += 1;
        }
        if copy > 2 {
            self.report.part(Fate::Understood, "copy that shares an id");
        }
        self.ids.insert(unique.clone());
        unique
    }

    fn add(&mut self, mut draft: LogNodeDraft<'_>) {
        let next = CreationOrder {
            cycle: self.cycle,
            index: self.count,
        };
        let made = self.made.entry(draft.id.clone()).or_insert(next);
        draft.made = *made;
        if *made == next {
            self.count += 1;
        }
        self.nodes.push(draft.node());
    }
}

fn role_of(found: &[Member<'_>]) -> Option<String> {
    text(found, "role").map(Cow::into_owned)
}

fn children<'a>(found: &[Member<'a>]) -> Vec<&'a str> {
    items(found, "children")
}

/// When a node was made, in nanoseconds, if there can be nodes after it.
fn when(found: &[Member<'_>]) -> Option<i64> {
    let time: i64 = get(found, "created_at_ns")?.parse().ok()?;
    (0..i64::MAX / 2).contains(&time).then_some(time)
}

fn time_of(found: &[Member<'_>]) -> Option<i64> {
    when(found).or_else(|| get(found, "created_at_iso").and_then(time))
}

fn part(found: &[Member<'_>], is_container: bool) -> LogPart {
    let mut part = LogPart::default();
    let kind = text(found, "nodeType").unwrap_or_default();
    let content = get(found, "content").filter(|raw| *raw != "null");
    if !is_container {
        part.kind = kind_of(&kind);
        part.content = content.map(canonical);
        let implied = part.kind.is_some();
        if !implied && !kind.is_empty() {
            part.set("data_type", quoted(&kind));
        }
    }
    let org = inner(found, "org");
    let mut rest: Vec<Member<'_>> = Vec::new();
    for (name, value) in org {
        match &*name {
            // Repeats the content.
            "text" | "component_type" => {}
            "props" => {
                for (name, value) in members(value) {
                    let field: LogField = (format!("data_{name}").into(), canonical(value));
                    if !part.data.iter().any(|(known, _)| *known == field.0) {
                        part.data.push(field);
                    }
                }
            }
            _ if says_something(value) => rest.push((name, value)),
            _ => {}
        }
    }
    let mut add = |name: &'static str, value: String| {
        if part.field(name).is_none() {
            part.set(name, value);
        }
    };
    if !rest.is_empty() {
        add("data_org", canonical(&object(rest)));
    }
    for (name, field) in [
        ("tags", "data_tags"),
        ("tag", "data_tags"),
        ("ttl", "data_ttl"),
        ("priority", "data_priority"),
        ("offset", "data_offset"),
        ("cad", "data_cad"),
    ] {
        if let Some(value) = get(found, name).filter(|raw| says_something(raw)) {
            add(field, canonical(value));
        }
    }
    if let Some(key) = get_string(found, "key") {
        add("data_key", canonical(key));
    }
    part
}

/// Whether a value is another than the one of a node that was given none.
fn says_something(raw: &str) -> bool {
    let text = string(raw);
    !matches!(raw, "null" | "0" | "[]" | "{}" | "false") && text.is_none_or(|text| !text.is_empty())
}

fn kind_of(node_type: &str) -> Option<&'static str> {
    Some(match node_type {
        "text_content" => "text",
        "image_content" => "image",
        "document_content" => "document",
        "tool_call" | "scaffold_call" => "call",
        "tool_result" | "scaffold_result" => "result",
        _ => return None,
    })
}
