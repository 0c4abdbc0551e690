//! The invariants of source 002 §11, checked on exported documents alone: on one snapshot, and
//! between a snapshot and those before it.

use std::collections::{BTreeMap, BTreeSet};

use super::model::class_of;
use crate::support::json::Json;
use crate::support::tree::Class;

/// A node as the document shows it.
#[derive(Debug)]
struct Seen<'a> {
    json: &'a Json,
    id: &'a str,
    class: Class,
    parent: Option<&'a str>,
    region: Option<Class>,
    /// In the sealed core of a turn, its container included.
    core: bool,
}

impl Seen<'_> {
    fn int(&self, name: &str) -> Option<i64> {
        self.json.get(name).and_then(Json::as_int)
    }
}

/// The snapshots of a session so far.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// Every id that any snapshot had.
    ids: BTreeSet<String>,
    newest: Option<Json>,
}

/// What the checker cannot see in documents.
pub(crate) struct Allowed<'a> {
    /// Ids that a reference keeps.
    pub(crate) pinned: &'a dyn Fn(&str) -> bool,
    /// Some node of the cycle took the place of an earlier one.
    pub(crate) succeeded: bool,
}

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}

impl Checker {
    /// Goes on after the snapshots of this checker.
    pub(crate) fn fork(documents: &[Json]) -> Self {
        let mut checker = Self::default();
        for document in documents {
            let nodes = nodes_of(document);
            checker
                .ids
                .extend(nodes.iter().map(|node| node.id.to_owned()));
            checker.newest = Some(document.clone());
        }
        checker
    }

    /// Checks the snapshot of the next cycle.
    pub(crate) fn check(&mut self, document: &Json, allowed: &Allowed<'_>) -> Result<(), String> {
        let nodes = nodes_of(document);
        let cycle = document.get("cycle").and_then(Json::as_int).unwrap();
        structure(&nodes)?;
        let newest = self.newest.as_ref().map(nodes_of).unwrap_or_default();
        let newest = newest
            .iter()
            .filter_map(|node| node.int("created_at_ns"))
            .max();
        headers(&nodes, cycle, newest, allowed)?;
        if let Some(older) = &self.newest {
            let before = older.get("cycle").and_then(Json::as_int).unwrap();
            ensure!(before < cycle, "cycle {cycle} after {before}");
            between(&nodes_of(older), &nodes, cycle)?;
        }
        let older = self.newest.as_ref().map(nodes_of).unwrap_or_default();
        let older: BTreeSet<&str> = older.iter().map(|node| node.id).collect();
        for node in &nodes {
            let back = self.ids.contains(node.id) && !older.contains(node.id);
            ensure!(!back, "{} comes back", node.id);
        }
        self.ids.extend(nodes.iter().map(|node| node.id.to_owned()));
        self.newest = Some(document.clone());
        Ok(())
    }
}

fn nodes_of(document: &Json) -> Vec<Seen<'_>> {
    let mut nodes = Vec::new();
    let root = document.get("root").unwrap();
    walk(root, None, None, false, &mut nodes);
    nodes
}

fn walk<'a>(
    json: &'a Json,
    parent: Option<(&'a str, Class, Option<Class>)>,
    region: Option<Class>,
    core: bool,
    nodes: &mut Vec<Seen<'a>>,
) {
    let id = json.get("id").and_then(Json::as_str).unwrap();
    let class = class_of(json.get("nodeType").and_then(Json::as_str).unwrap_or("cb"));
    let region = match class {
        Class::Sys | Class::Seq | Class::Head => Some(class),
        _ => region,
    };
    let sealed =
        parent.is_some_and(|(_, class, above)| class == Class::Turn && above == Some(Class::Seq));
    let offset = json.get("offset").and_then(Json::as_int).unwrap_or(0);
    let core = core || sealed && offset == 0;
    nodes.push(Seen {
        json,
        id,
        class,
        parent: parent.map(|(id, ..)| id),
        region,
        core,
    });
    let above = parent.map(|(_, class, _)| class);
    for child in children(json) {
        walk(child, Some((id, class, above)), region, core, nodes);
    }
}

fn children(json: &Json) -> &[Json] {
    match json.get("children") {
        Some(Json::List(children)) => children,
        _ => &[],
    }
}

/// Items 1, 3 and 4: regions, one core a turn, canonical order; no id twice.
fn structure(nodes: &[Seen<'_>]) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    for node in nodes {
        ensure!(ids.insert(node.id), "{} twice", node.id);
    }
    for (class, name) in [
        (Class::Sys, "^sys"),
        (Class::Seq, "^seq"),
        (Class::Head, "^ah"),
    ] {
        let found: Vec<&Seen<'_>> = nodes.iter().filter(|node| node.class == class).collect();
        ensure!(found.len() == 1, "{} {name}", found.len());
        ensure!(
            found[0].parent == Some(nodes[0].id),
            "{name} is not below the root"
        );
        let empty = children(found[0].json).is_empty();
        ensure!(
            class != Class::Head || empty,
            "the head of a snapshot is not clear"
        );
    }
    for node in nodes {
        let below = children(node.json);
        if node.parent.is_none() {
            continue;
        }
        let keys: Vec<_> = below.iter().map(sibling_key).collect();
        ensure!(
            keys.is_sorted(),
            "the children of {} are out of order",
            node.id
        );
        if node.class == Class::Turn {
            let cores = below.iter().filter(|child| {
                let node_type = child.get("nodeType").and_then(Json::as_str);
                let offset = child.get("offset").and_then(Json::as_int).unwrap_or(0);
                class_of(node_type.unwrap_or("cb")) == Class::Container && offset == 0
            });
            let cores = cores.count();
            ensure!(cores == 1, "{} has {cores} cores", node.id);
        }
    }
    Ok(())
}

fn sibling_key(json: &Json) -> (i64, i64, i64, String) {
    let int = |name| json.get(name).and_then(Json::as_int).unwrap_or(0);
    let id = json.get("id").and_then(Json::as_str).unwrap().to_owned();
    (
        int("offset"),
        int("created_at_ns"),
        int("creation_index"),
        id,
    )
}

/// Items 2 and 5: required headers of the right types; nothing is past its time.
fn headers(
    nodes: &[Seen<'_>],
    cycle: i64,
    before: Option<i64>,
    allowed: &Allowed<'_>,
) -> Result<(), String> {
    let mut times: BTreeMap<i64, &str> = BTreeMap::new();
    let mut indices: BTreeMap<i64, &str> = BTreeMap::new();
    for node in nodes {
        let id = node.id;
        for name in [
            "offset",
            "priority",
            "cycle",
            "created_at_ns",
            "creation_index",
        ] {
            ensure!(node.int(name).is_some(), "{id} has no {name}");
        }
        for name in ["nodeType", "created_at_iso"] {
            let text = node.json.get(name).and_then(Json::as_str);
            ensure!(text.is_some(), "{id} has no {name}");
        }
        ensure!(node.json.get("ttl").is_some(), "{id} has no ttl");
        if let Some(ttl) = node.int("ttl") {
            let kept = (allowed.pinned)(id) && ttl == 0;
            ensure!(ttl > 0 || kept, "{id} is past its time");
        }
        ensure!(
            node.int("cycle").unwrap() <= cycle,
            "{id} is of a later cycle"
        );
        if node.int("cycle") == Some(0) {
            continue;
        }
        let time = node.int("created_at_ns").unwrap();
        if let Some(other) = times.insert(time, id) {
            return Err(format!("{id} and {other} were made at one time"));
        }
        // A successor among committed siblings has the time of the node before it.
        let inherited = allowed.succeeded && before.is_some_and(|newest| time <= newest);
        if node.int("cycle") == Some(cycle) && !inherited {
            let index = node.int("creation_index").unwrap();
            if let Some(other) = indices.insert(index, id) {
                return Err(format!("{id} and {other} have one creation_index"));
            }
        }
    }
    let times = indices.values().map(|id| {
        let node = nodes.iter().find(|node| node.id == *id).unwrap();
        node.int("created_at_ns")
    });
    let times: Vec<_> = times.collect();
    ensure!(
        times.is_sorted(),
        "times of cycle {cycle} do not follow creation_index"
    );
    Ok(())
}

/// Item 6: what a snapshot holds does not change afterwards, but for ttl and priority outside of
/// sealed cores; no node changes its region or its parent.
fn between(older: &[Seen<'_>], newer: &[Seen<'_>], cycle: i64) -> Result<(), String> {
    let before: BTreeMap<&str, &Seen<'_>> = older.iter().map(|node| (node.id, node)).collect();
    for node in newer {
        let id = node.id;
        let Some(old) = before.get(id) else {
            ensure!(
                node.int("cycle") == Some(cycle),
                "{id} is new, but of an older cycle"
            );
            continue;
        };
        ensure!(node.parent == old.parent, "{id} has another parent");
        ensure!(node.region == old.region, "{id} changed its region");
        ensure!(node.core == old.core, "{id} moved in or out of a core");
        let changed = changed(old.json, node.json);
        for name in changed {
            let lifecycle = name == "ttl" || name == "priority" && !node.core;
            ensure!(lifecycle, "{name} of {id} changed");
        }
        if node.core
            && let (Some(was), Some(is)) = (old.int("ttl"), node.int("ttl"))
        {
            ensure!(is < was || is == 0, "the ttl of {id} grew in a sealed core");
        }
    }
    Ok(())
}

fn changed<'a>(old: &'a Json, new: &'a Json) -> Vec<&'a str> {
    let (Json::Obj(a), Json::Obj(b)) = (old, new) else {
        panic!("nodes are objects")
    };
    let names = a.iter().chain(b).map(|(name, _)| name.as_str());
    let names: BTreeSet<&str> = names.filter(|name| *name != "children").collect();
    names
        .into_iter()
        .filter(|name| old.get(name) != new.get(name))
        .collect()
}
