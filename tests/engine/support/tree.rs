//! Sessions as plain trees: documents and delta lines are materialised in full, then walked.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::compare::one_vocabulary;
use super::json::{self, Json};

/// All snapshots of a session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Oldest first.
    pub(crate) committed: Vec<Tree>,
    pub(crate) working: Option<Tree>,
}

/// One snapshot. Nodes are in document order; node 0 is the root.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) cycle: i64,
    pub(crate) nodes: Vec<Node>,
    /// Nodes and implicit cores in document order.
    pub(crate) order: Vec<Item>,
}

/// Something a step can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    Node(usize),
    /// The implicit core of a turn or `^ah`.
    Core(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Root,
    Sys,
    Seq,
    Head,
    Turn,
    Container,
    Block,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) class: Class,
    /// Every field but `id` and `children`.
    pub(crate) fields: Vec<(String, Json)>,
    pub(crate) parent: Option<usize>,
    /// In canonical order.
    pub(crate) children: Vec<usize>,
    pub(crate) depth: Option<i64>,
    /// Levels below the root.
    pub(crate) level: i64,
    pub(crate) offset: i64,
    pub(crate) created_at_ns: i64,
    pub(crate) creation_index: i64,
}

impl Node {
    /// A field that is there and not null.
    pub(crate) fn field(&self, name: &str) -> Option<&Json> {
        field(&self.fields, name)
    }

    /// nodeType as written, or its default.
    pub(crate) fn read_type(&self) -> String {
        match (self.field("nodeType").and_then(Json::as_str), self.class) {
            (Some(spelled), _) => spelled.to_owned(),
            (None, Class::Root) => "^root".to_owned(),
            (None, Class::Turn) => "mt".to_owned(),
            (None, Class::Container) => "mc".to_owned(),
            (None, _) => "cb".to_owned(),
        }
    }

    /// The tags; a plain string is a list of one.
    pub(crate) fn tags(&self) -> Option<Vec<String>> {
        match self.field("tags").or_else(|| self.field("tag"))? {
            Json::List(items) => Some(
                items
                    .iter()
                    .filter_map(Json::as_str)
                    .map(str::to_owned)
                    .collect(),
            ),
            one => one.as_str().map(|tag| vec![tag.to_owned()]),
        }
    }

    /// The bytes of the text of the content (LANGUAGE §5).
    pub(crate) fn bytes(&self) -> i64 {
        self.field("content").map_or(0, Json::bytes)
    }

    /// The stored content hash, or the computed one.
    pub(crate) fn content_hash(&self) -> String {
        match self.field("content_hash").and_then(Json::as_str) {
            Some(stored) => stored.to_owned(),
            None => self.computed_hash(),
        }
    }

    /// SHA-256 of the canonical text of `{content, kind, role, content_*, data_*}`.
    pub(crate) fn computed_hash(&self) -> String {
        let mut hashed = BTreeMap::from([
            ("content", Json::text("")),
            ("kind", Json::text("")),
            ("role", Json::text("")),
        ]);
        for (name, value) in &self.fields {
            let plain = matches!(name.as_str(), "content" | "kind" | "role");
            let custom = name.starts_with("content_") || name.starts_with("data_");
            if plain || custom && name != "content_hash" {
                hashed.insert(name, value.clone());
            }
        }
        let hashed = hashed
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        let text = Json::Obj(hashed.collect()).canonical();
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn field<'a>(fields: &'a [(String, Json)], name: &str) -> Option<&'a Json> {
    fields
        .iter()
        .find(|(k, v)| k == name && *v != Json::Null)
        .map(|(_, v)| v)
}

/// A node outside of a tree: its fields and the id of its parent.
#[derive(Clone, Debug)]
struct Loose {
    parent: Option<String>,
    fields: Vec<(String, Json)>,
}

/// A whole document as id → node.
type Flat = BTreeMap<String, Loose>;

impl Session {
    /// Reads the lines of a session: full documents, deltas, at most one working state.
    pub(crate) fn from_lines<T: AsRef<str>>(lines: &[T]) -> Self {
        let mut seen: Vec<(i64, Flat)> = Vec::new();
        let mut working = None;
        for line in lines {
            let document = json::parse(line.as_ref());
            if document.get("working") == Some(&Json::Bool(true)) {
                working = Some(flatten(document.get("root").unwrap()));
                continue;
            }
            let next = seen.last().map_or(1, |(cycle, _)| cycle + 1);
            let cycle = document.get("cycle").and_then(Json::as_int).unwrap_or(next);
            let flat = match document.get("root") {
                Some(root) => flatten(root),
                None => {
                    let base = document.get("base").and_then(Json::as_int).unwrap();
                    let (_, base) = seen.iter().find(|(cycle, _)| *cycle == base).unwrap();
                    materialise(base, &document)
                }
            };
            seen.push((cycle, flat));
        }
        seen.sort_by_key(|(cycle, _)| *cycle);
        let newest = seen.last().map_or(0, |(cycle, _)| *cycle);
        Self {
            committed: seen
                .iter()
                .map(|(cycle, flat)| build(*cycle, flat))
                .collect(),
            working: working.map(|flat| build(newest + 1, &flat)),
        }
    }
}

fn flatten(root: &Json) -> Flat {
    let mut flat = Flat::new();
    flatten_into(root, None, &mut flat);
    flat
}

fn flatten_into(node: &Json, parent: Option<&str>, flat: &mut Flat) {
    let Json::Obj(members) = node else {
        panic!("a node is an object")
    };
    let id = node.get("id").and_then(Json::as_str).unwrap_or("^root");
    let fields = members
        .iter()
        .filter(|(name, _)| name != "id" && name != "children")
        .cloned()
        .collect();
    let loose = Loose {
        parent: parent.map(str::to_owned),
        fields,
    };
    assert!(flat.insert(id.to_owned(), loose).is_none(), "{id} twice");
    if let Some(Json::List(children)) = node.get("children") {
        for child in children {
            flatten_into(child, Some(id), flat);
        }
    }
}

/// Applies a delta: adds, moves and replaces nodes, then removes nodes with their descendants
/// (RUNTIME §1).
fn materialise(base: &Flat, delta: &Json) -> Flat {
    let mut flat = base.clone();
    if let Some(Json::List(rows)) = delta.get("replace") {
        for row in rows {
            let Json::Obj(members) = row else {
                panic!("a row is an object")
            };
            let id = row.get("id").and_then(Json::as_str).unwrap();
            let parent = row.get("parent_id").and_then(Json::as_str);
            let fields = members
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "id" | "parent_id" | "children"))
                .cloned()
                .collect();
            let parent = parent.map(str::to_owned);
            flat.insert(id.to_owned(), Loose { parent, fields });
        }
    }
    if let Some(Json::List(gone)) = delta.get("remove") {
        let mut gone: Vec<String> = gone
            .iter()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect();
        while let Some(id) = gone.pop() {
            flat.remove(&id);
            let below = flat
                .iter()
                .filter(|(_, node)| node.parent.as_ref() == Some(&id));
            gone.extend(below.map(|(id, _)| id.clone()));
        }
    }
    flat
}

fn build(cycle: i64, flat: &Flat) -> Tree {
    let (root, _) = flat.iter().find(|(_, node)| node.parent.is_none()).unwrap();
    let mut children: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for (id, node) in flat {
        if let Some(parent) = &node.parent {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut tree = Tree {
        cycle,
        nodes: Vec::new(),
        order: Vec::new(),
    };
    add(&mut tree, flat, &children, root, None, None);
    add_order(&mut tree, 0);
    tree
}

fn add(
    tree: &mut Tree,
    flat: &Flat,
    children: &BTreeMap<&str, Vec<&String>>,
    id: &str,
    parent: Option<usize>,
    depth: Option<i64>,
) -> usize {
    let none = Vec::new();
    let below = children.get(id).unwrap_or(&none);
    let fields = &flat[id].fields;
    let number = |name: &str| field(fields, name).and_then(Json::as_int).unwrap_or(0);
    let class = class_of(
        fields,
        parent.map(|p| tree.nodes[p].class),
        !below.is_empty(),
    );
    let depth = match class {
        Class::Sys => Some(-1),
        Class::Head => Some(0),
        _ => depth,
    };
    let row = tree.nodes.len();
    tree.nodes.push(Node {
        id: id.to_owned(),
        class,
        fields: fields.clone(),
        parent,
        children: Vec::new(),
        depth,
        level: parent.map_or(0, |p| tree.nodes[p].level + 1),
        offset: number("offset"),
        created_at_ns: number("created_at_ns"),
        creation_index: number("creation_index"),
    });

    let mut below = below.clone();
    below.sort_by_key(|id| {
        let fields = &flat[*id].fields;
        let number = |name: &str| field(fields, name).and_then(Json::as_int).unwrap_or(0);
        let region = match class_of(fields, Some(class), false) {
            Class::Sys => 0,
            Class::Seq => 1,
            Class::Head => 2,
            _ => 3,
        };
        let key = (
            number("offset"),
            number("created_at_ns"),
            number("creation_index"),
        );
        (
            region,
            if region < 3 { (0, 0, 0) } else { key },
            id.as_str(),
        )
    });
    // Under `^seq` depth counts the turns from the end.
    let is_turn = |id: &String| {
        class_of(
            &flat[id].fields,
            Some(class),
            children.contains_key(id.as_str()),
        ) == Class::Turn
    };
    let mut turns_left = below.iter().filter(|id| is_turn(id)).count() as i64;
    for id in below {
        let depth = if class != Class::Seq {
            depth
        } else if is_turn(id) {
            turns_left -= 1;
            Some(turns_left + 1)
        } else {
            None
        };
        let child = add(tree, flat, children, id, Some(row), depth);
        tree.nodes[row].children.push(child);
    }
    row
}

fn class_of(fields: &[(String, Json)], parent: Option<Class>, has_children: bool) -> Class {
    if parent.is_none() {
        return Class::Root;
    }
    let Some(node_type) = field(fields, "nodeType").and_then(Json::as_str) else {
        return match (parent, has_children) {
            (Some(Class::Seq), _) => Class::Turn,
            (_, true) => Class::Container,
            (_, false) => Class::Block,
        };
    };
    match one_vocabulary(node_type).split(':').next().unwrap() {
        "^sys" => Class::Sys,
        "^seq" => Class::Seq,
        "^ah" => Class::Head,
        "mt" => Class::Turn,
        "mc" => Class::Container,
        _ => Class::Block,
    }
}

fn add_order(tree: &mut Tree, node: usize) {
    tree.order.push(Item::Node(node));
    let mut core = tree.has_implicit_core(node);
    for child in tree.nodes[node].children.clone() {
        if core && tree.nodes[child].offset >= 0 {
            tree.order.push(Item::Core(node));
            core = false;
        }
        add_order(tree, child);
    }
    if core {
        tree.order.push(Item::Core(node));
    }
}

impl Tree {
    /// A turn or `^ah` without a container at offset 0.
    pub(crate) fn has_implicit_core(&self, node: usize) -> bool {
        let n = &self.nodes[node];
        let is_core = |child: &usize| {
            let child = &self.nodes[*child];
            child.class == Class::Container && child.offset == 0
        };
        matches!(n.class, Class::Turn | Class::Head) && !n.children.iter().any(is_core)
    }

    /// The blocks an implicit core holds.
    fn core_blocks(&self, turn: usize) -> Vec<usize> {
        let children = self.nodes[turn].children.iter().copied();
        children
            .filter(|c| self.nodes[*c].class == Class::Block && self.nodes[*c].offset == 0)
            .collect()
    }

    /// The items directly below `item`.
    pub(crate) fn children(&self, item: Item) -> Vec<Item> {
        match item {
            Item::Core(turn) => self.core_blocks(turn).into_iter().map(Item::Node).collect(),
            Item::Node(node) => {
                let children = self.nodes[node].children.iter().copied();
                let core = self.has_implicit_core(node).then_some(Item::Core(node));
                children.map(Item::Node).chain(core).collect()
            }
        }
    }

    /// The items below `item` at any level, each once.
    pub(crate) fn below(&self, item: Item) -> Vec<Item> {
        let mut found = Vec::new();
        let children = match item {
            Item::Core(turn) => self.core_blocks(turn),
            Item::Node(node) => {
                if self.has_implicit_core(node) {
                    found.push(Item::Core(node));
                }
                self.nodes[node].children.clone()
            }
        };
        for child in children {
            found.push(Item::Node(child));
            found.extend(self.below(Item::Node(child)));
        }
        found
    }

    /// The level of an item; an implicit core is between its turn and its blocks.
    pub(crate) fn height(&self, item: Item) -> i64 {
        match item {
            Item::Node(node) => 2 * self.nodes[node].level,
            Item::Core(turn) => 2 * self.nodes[turn].level + 1,
        }
    }

    pub(crate) fn id(&self, node: usize) -> &str {
        &self.nodes[node].id
    }

    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }
}
