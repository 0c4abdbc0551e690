//! A plain model of a context that is written to (RUNTIME §3): nodes in a map, siblings sorted
//! whenever they are needed, nothing shared, no index. An operation gives the new state, or the
//! codes that its refusal may have where several rules are broken at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::draft::{Draft, Rules, check_update, content_hash, iso_of};
use crate::support::compare::one_vocabulary;
use crate::support::json::Json;
use crate::support::tree::Class;

/// The codes of the rules an operation breaks, at least one.
pub(crate) type Refused = BTreeSet<&'static str>;

pub(super) fn refused(code: &'static str) -> Refused {
    Refused::from([code])
}

pub(crate) const ROOT: &str = "^root";
pub(crate) const SYS: &str = "^sys";
pub(crate) const SEQ: &str = "^seq";
pub(crate) const HEAD: &str = "^ah";

/// A node of the working state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) parent: Option<String>,
    pub(crate) class: Class,
    /// Every member but `id` and `children`.
    pub(crate) fields: BTreeMap<String, Json>,
    /// Made in the cycle in progress.
    pub(crate) new: bool,
    /// The cycle at whose commit it goes.
    deadline: Option<i64>,
    /// Lost a child in the cycle in progress.
    lost: bool,
}

impl Node {
    fn int(&self, name: &str) -> i64 {
        self.fields.get(name).and_then(Json::as_int).unwrap_or(0)
    }

    pub(crate) fn offset(&self) -> i64 {
        self.int("offset")
    }

    /// What decides between siblings of one offset.
    fn rest(&self, id: &str) -> Rest {
        let times = (self.int("created_at_ns"), self.int("creation_index"));
        (times.0, times.1, id.to_owned())
    }
}

/// created_at_ns, creation_index, id.
type Rest = (i64, i64, String);

/// The place in a parent that a position names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    Into,
    Start,
    End,
    After(usize),
    Before(usize),
}

/// A parent that a position names, and the place in it.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) parent: String,
    /// The parent is the implicit core of `parent`.
    pub(crate) core: bool,
    pub(crate) insertion: Insertion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Whole,
    Sys,
    Seq,
    Head,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Nodes,
    Tokens,
}

/// A limit of a pruning policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) scope: Scope,
    pub(crate) measure: Measure,
    pub(crate) most: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) limits: Vec<Limit>,
    pub(crate) protect: usize,
    /// The newest turns that stay, `^ah` among them.
    pub(crate) window: Option<usize>,
}

/// A summary that replaces nodes at the next commit.
#[derive(Clone, Debug)]
struct Compaction {
    ids: Vec<String>,
    id: String,
    /// The summary and the nodes below it, made at the call.
    made: Vec<(String, Node)>,
}

/// What a commit did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) cycle: i64,
    pub(crate) turn: String,
    /// The topmost nodes that went, in the order they went.
    pub(crate) expired: Vec<String>,
    pub(crate) pruned: Vec<String>,
    pub(crate) compacted: Vec<String>,
    /// What references kept from compactions, and the summaries that did not come.
    pub(crate) kept: Vec<String>,
    pub(crate) voided: Vec<String>,
    pub(crate) emptied: Vec<String>,
    /// Canonical bytes of the snapshot.
    pub(crate) document: String,
}

/// The working state, and what the last commit left.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) nodes: BTreeMap<String, Node>,
    base: Arc<BTreeMap<String, Node>>,
    /// The cycle in progress.
    pub(crate) cycle: i64,
    /// The creation_index of the next node.
    pub(crate) index: i64,
    /// The last created_at_ns.
    pub(crate) last: i64,
    used: BTreeSet<String>,
    compactions: Vec<Compaction>,
    pub(crate) pins: BTreeMap<String, usize>,
    pub(crate) policy: Option<Policy>,
    pub(crate) request: Option<Json>,
    request_before: Option<Json>,
    /// What the record of the commit will say of mutations.
    made: Made,
    /// The record of the commit that is made.
    record: Vec<(String, Json)>,
}

/// The nodes that mutations of the cycle made, and those that got a ttl.
#[derive(Clone, Debug, Default)]
struct Made {
    add: Vec<String>,
    append: Vec<String>,
    /// By the name of the mutation: the new id and the old one.
    succeeded: BTreeMap<String, (&'static str, String)>,
    new_ttl: BTreeSet<String>,
}

pub(crate) fn class_of(node_type: &str) -> Class {
    match one_vocabulary(node_type).split(':').next().unwrap() {
        "^root" => Class::Root,
        "^sys" => Class::Sys,
        "^seq" => Class::Seq,
        "^ah" => Class::Head,
        "mt" => Class::Turn,
        "mc" => Class::Container,
        _ => Class::Block,
    }
}

/// A node of this type with nothing given.
fn plain(node_type: &str) -> Draft {
    Draft {
        id: None,
        class: class_of(node_type),
        offset: None,
        time: None,
        iso: None,
        fields: BTreeMap::from([("nodeType".to_owned(), Json::text(node_type))]),
        children: Vec::new(),
    }
}

fn is_region(class: Class) -> bool {
    matches!(class, Class::Root | Class::Sys | Class::Seq | Class::Head)
}

impl Model {
    /// A new session.
    pub(crate) fn new() -> Self {
        let mut nodes = BTreeMap::new();
        for (id, class, index) in [
            (ROOT, Class::Root, 0),
            (SYS, Class::Sys, 0),
            (SEQ, Class::Seq, 1),
            (HEAD, Class::Head, 2),
        ] {
            let fields = [
                ("nodeType", Json::text(id)),
                ("offset", Json::int(0)),
                ("ttl", Json::Null),
                ("priority", Json::int(0)),
                ("cycle", Json::int(0)),
                ("created_at_ns", Json::int(0)),
                ("created_at_iso", Json::text(&iso_of(0))),
                ("creation_index", Json::int(index)),
            ];
            let node = Node {
                parent: (id != ROOT).then(|| ROOT.to_owned()),
                class,
                fields: fields.map(|(name, value)| (name.to_owned(), value)).into(),
                new: false,
                deadline: None,
                lost: false,
            };
            nodes.insert(id.to_owned(), node);
        }
        let used: BTreeSet<String> = nodes.keys().cloned().collect();
        Self {
            base: Arc::new(nodes.clone()),
            nodes,
            cycle: 1,
            index: 0,
            last: 0,
            used,
            compactions: Vec::new(),
            pins: BTreeMap::new(),
            policy: None,
            request: None,
            request_before: None,
            made: Made::default(),
            record: Vec::new(),
        }
    }

    /// Goes on after the snapshots of these documents, the newest of which is the base.
    pub(crate) fn resume(documents: &[Json]) -> Self {
        let mut model = Self::new();
        model.used.clear();
        for document in documents {
            model.nodes.clear();
            model.cycle = document.get("cycle").and_then(Json::as_int).unwrap();
            model.request = document
                .get("meta")
                .and_then(|meta| meta.get("request"))
                .cloned();
            model.load(document.get("root").unwrap(), None);
            model.used.extend(model.nodes.keys().cloned());
            let newest = model
                .nodes
                .values()
                .map(|node| node.int("created_at_ns"))
                .max();
            model.last = model.last.max(newest.unwrap_or(0));
        }
        model.cycle += 1;
        model.settle();
        model
    }

    fn load(&mut self, json: &Json, parent: Option<&str>) {
        let Json::Obj(members) = json else {
            panic!("a node is an object")
        };
        let id = json
            .get("id")
            .and_then(Json::as_str)
            .unwrap_or(ROOT)
            .to_owned();
        let children = match json.get("children") {
            Some(Json::List(children)) => children.clone(),
            _ => Vec::new(),
        };
        let class = match json.get("nodeType").and_then(Json::as_str) {
            _ if parent.is_none() => Class::Root,
            Some(node_type) => class_of(node_type),
            None if parent.is_some_and(|id| self.nodes[id].class == Class::Seq) => Class::Turn,
            None if children.is_empty() => Class::Block,
            None => Class::Container,
        };
        let ttl = json.get("ttl").and_then(Json::as_int);
        let fields = members
            .iter()
            .filter(|(name, _)| name != "id" && name != "children");
        let node = Node {
            parent: parent.map(str::to_owned),
            class,
            fields: fields.cloned().collect(),
            new: false,
            deadline: ttl.map(|ttl| self.cycle.saturating_add(ttl)),
            lost: false,
        };
        self.nodes.insert(id.clone(), node);
        for child in &children {
            self.load(child, Some(&id));
        }
    }

    /// The working state becomes the base.
    fn settle(&mut self) {
        // An emptied container that a reference keeps is looked at again.
        let kept: BTreeSet<String> = self
            .nodes
            .keys()
            .filter(|id| self.pinned(id))
            .cloned()
            .collect();
        for (id, node) in &mut self.nodes {
            node.new = false;
            node.lost &= kept.contains(id);
        }
        self.base = Arc::new(self.nodes.clone());
        self.request_before = self.request.clone();
        self.compactions.clear();
        self.made = Made::default();
        self.record.clear();
        self.index = 0;
    }

    // ---- reading -------------------------------------------------------------------------

    fn region_id(&self, class: Class) -> String {
        let mut regions = self.nodes.iter().filter(|(_, node)| node.class == class);
        regions.next().unwrap().0.clone()
    }

    pub(crate) fn children(&self, id: &str) -> Vec<String> {
        let below = self.nodes.iter();
        let below = below.filter(|(_, node)| node.parent.as_deref() == Some(id));
        let mut below: Vec<(&String, &Node)> = below.collect();
        below.sort_by_key(|(id, node)| {
            let rank = match node.class {
                Class::Sys => 0,
                Class::Seq => 1,
                Class::Head => 2,
                _ => 3,
            };
            let key = (node.offset(), node.rest(id));
            (rank, (rank == 3).then_some(key))
        });
        below.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// The node and all below it, in document order.
    pub(crate) fn subtree(&self, id: &str) -> Vec<String> {
        let mut found = vec![id.to_owned()];
        for child in self.children(id) {
            found.extend(self.subtree(&child));
        }
        found
    }

    /// Every id, in document order.
    pub(crate) fn order(&self) -> Vec<String> {
        self.subtree(&self.region_id(Class::Root))
    }

    fn ordered(&self, ids: &BTreeSet<String>) -> Vec<String> {
        let order = self.order().into_iter();
        order.filter(|id| ids.contains(id)).collect()
    }

    /// The node and those above it, from below.
    fn line(&self, id: &str) -> Vec<String> {
        let mut line = vec![id.to_owned()];
        while let Some(parent) = &self.nodes[line.last().unwrap()].parent {
            line.push(parent.clone());
        }
        line
    }

    fn parent(&self, id: &str) -> Option<&Node> {
        self.nodes[id].parent.as_ref().map(|id| &self.nodes[id])
    }

    fn region(&self, id: &str) -> Option<Class> {
        let line = self.line(id);
        let mut classes = line.iter().map(|id| self.nodes[id].class);
        classes.find(|class| matches!(class, Class::Sys | Class::Seq | Class::Head))
    }

    pub(crate) fn is_sealed_turn(&self, id: &str) -> bool {
        let under_seq = self.parent(id).is_some_and(|node| node.class == Class::Seq);
        self.nodes[id].class == Class::Turn && under_seq
    }

    pub(crate) fn in_sealed_core(&self, id: &str) -> bool {
        self.line(id).iter().any(|id| {
            let parent = self.nodes[id].parent.as_deref();
            self.nodes[id].offset() == 0 && parent.is_some_and(|id| self.is_sealed_turn(id))
        })
    }

    /// Whether children of offset 0 are a core there.
    fn has_core_zone(&self, id: &str) -> bool {
        matches!(self.nodes[id].class, Class::Turn | Class::Head)
    }

    /// The container at offset 0 of a turn or `^ah`.
    pub(crate) fn core(&self, id: &str) -> Option<String> {
        let zone = self.has_core_zone(id);
        let mut children = self.children(id).into_iter().filter(|_| zone);
        children.find(|id| {
            let node = &self.nodes[id];
            node.class == Class::Container && node.offset() == 0
        })
    }

    pub(crate) fn is_core(&self, id: &str) -> bool {
        let node = &self.nodes[id];
        let zone = node
            .parent
            .as_deref()
            .is_some_and(|id| self.has_core_zone(id));
        zone && node.class == Class::Container && node.offset() == 0
    }

    /// Whether a reference keeps the node: one to it or to a node below it.
    pub(crate) fn pinned(&self, id: &str) -> bool {
        let held = self.pins.iter().filter(|(_, count)| **count > 0);
        let mut held = held.filter(|(pin, _)| self.nodes.contains_key(*pin));
        held.any(|(pin, _)| self.line(pin).iter().any(|above| above == id))
    }

    /// Those of the ids that no other of them is above, in document order.
    pub(crate) fn topmost(&self, ids: &[String]) -> Vec<String> {
        let set: BTreeSet<String> = ids.iter().cloned().collect();
        let top = set.iter().filter(|id| {
            let line = self.line(id);
            !line[1..].iter().any(|above| set.contains(above))
        });
        self.ordered(&top.cloned().collect())
    }

    // ---- writing -------------------------------------------------------------------------

    /// The time of the next node.
    pub(super) fn tick(&mut self, at_least: i64) -> i64 {
        self.last = at_least.max(self.last + 1);
        self.last
    }

    fn next_index(&mut self) -> i64 {
        self.index += 1;
        self.index - 1
    }

    /// The id, or the first of `id~2`, `id~3` … that was never used.
    fn unused(&self, id: String) -> String {
        if !self.used.contains(&id) {
            return id;
        }
        let mut numbered = (2..).map(|n| format!("{id}~{n}"));
        numbered.find(|id| !self.used.contains(id)).unwrap()
    }

    /// Takes a node and all below it out; its parent has lost a child.
    fn take(&mut self, id: &str) {
        if let Some(parent) = self.nodes[id].parent.clone() {
            self.nodes.get_mut(&parent).unwrap().lost = true;
        }
        for id in self.subtree(id) {
            self.nodes.remove(&id);
        }
    }

    fn given_id(&self, draft: &Draft, index: i64) -> String {
        match &draft.id {
            Some(id) => id.clone(),
            None => {
                let class = if draft.class == Class::Container {
                    "mc"
                } else {
                    "cb"
                };
                self.unused(format!("{class}:c{}-{index}", self.cycle))
            }
        }
    }

    /// Takes the ids that are given, so that none of them is made for another node.
    fn reserve(&mut self, draft: &Draft) {
        self.used.extend(draft.id.clone());
        for child in &draft.children {
            self.reserve(child);
        }
    }

    /// Makes a node and its children, in the order they are given in.
    fn make(&mut self, draft: &Draft, parent: &str, offset: i64, now: i64) -> String {
        let index = self.next_index();
        let id = self.given_id(draft, index);
        let time = self.tick(draft.time.unwrap_or(now));
        let iso = draft.iso.clone().unwrap_or_else(|| iso_of(time));
        self.put(draft, &id, parent, (offset, time, index, iso));
        self.make_children(draft, &id, now);
        id
    }

    fn make_children(&mut self, draft: &Draft, id: &str, now: i64) {
        for child in &draft.children {
            self.make(child, id, child.offset.unwrap_or(0), now);
        }
    }

    fn put(&mut self, draft: &Draft, id: &str, parent: &str, place: (i64, i64, i64, String)) {
        let (offset, time, index, iso) = place;
        let mut fields = draft.fields.clone();
        fields.insert("offset".to_owned(), Json::int(offset));
        fields.insert("cycle".to_owned(), Json::int(self.cycle));
        fields.insert("created_at_ns".to_owned(), Json::int(time));
        fields.insert("creation_index".to_owned(), Json::int(index));
        fields.insert("created_at_iso".to_owned(), Json::text(&iso));
        let ttl = fields
            .entry("ttl".to_owned())
            .or_insert(Json::Null)
            .as_int();
        fields.entry("priority".to_owned()).or_insert(Json::int(0));
        fields
            .entry("nodeType".to_owned())
            .or_insert(Json::text("cb"));
        let node = Node {
            parent: Some(parent.to_owned()),
            class: draft.class,
            fields,
            new: true,
            deadline: ttl.map(|ttl| self.cycle.saturating_add(ttl)),
            lost: false,
        };
        self.used.insert(id.to_owned());
        assert!(
            self.nodes.insert(id.to_owned(), node).is_none(),
            "{id} twice"
        );
    }

    // ---- offsets -------------------------------------------------------------------------

    /// Why a node of this class cannot have the offset there; `but` is left out of the siblings.
    fn barred(&self, parent: &str, offset: i64, class: Class, but: &[String]) -> Refused {
        let mut codes = Refused::new();
        if offset != 0 || !self.has_core_zone(parent) {
            return codes;
        }
        if self.is_sealed_turn(parent) {
            codes.insert("E_SEALED");
        }
        let mut siblings = self.children(parent);
        siblings.retain(|id| !but.contains(id) && self.nodes[id].offset() == 0);
        let core = siblings
            .iter()
            .any(|id| self.nodes[id].class == Class::Container);
        if core || class == Class::Container && !siblings.is_empty() {
            codes.insert("E_PLACEMENT");
        }
        codes
    }

    /// The offset of a node that is put at a spot, and the new offsets of its siblings. `but` is the
    /// node itself, where it is moved, and those to be moved after it.
    fn choose(
        &self,
        spot: &Spot,
        class: Class,
        given: Option<i64>,
        rest: &Rest,
        but: &[String],
    ) -> Result<(i64, Vec<(String, i64)>), Refused> {
        let parent = spot.parent.as_str();
        // The slot is between siblings that stay; a core is one until it has moved.
        let own = &but[..but.len().min(1)];
        if spot.insertion == Insertion::Into {
            let largest = || {
                let siblings = self.children(parent);
                siblings.iter().map(|id| self.nodes[id].offset()).max()
            };
            let offset = given.unwrap_or_else(|| {
                if self.is_sealed_turn(parent) && !spot.core {
                    largest().unwrap_or(0).max(1)
                } else {
                    0
                }
            });
            return self.settled(spot, offset, class, own, Vec::new());
        }
        let (left, right) = self.slot(spot, but)?;
        let key = |id: &String| (self.nodes[id].offset(), self.nodes[id].rest(id));
        let after_left = |offset| {
            left.last()
                .is_none_or(|id| key(id) < (offset, rest.clone()))
        };
        let before_right = |offset| {
            right
                .first()
                .is_none_or(|id| (offset, rest.clone()) < key(id))
        };
        let fits = |offset| after_left(offset) && before_right(offset);
        if let Some(offset) = given {
            let mut codes = self.barred(parent, offset, class, own);
            if !fits(offset) {
                codes.insert("E_PLACEMENT");
            }
            return if codes.is_empty() {
                self.settled(spot, offset, class, own, Vec::new())
            } else {
                Err(codes)
            };
        }
        let zone = self.has_core_zone(parent);
        let open = |offset| self.barred(parent, offset, class, own).is_empty();
        let offset_of = |id: &String| self.nodes[id].offset();
        let offset = match (left.last(), right.first()) {
            (None, None) => (0..).find(|offset| open(*offset)).unwrap(),
            (None, Some(next)) => {
                let mut below = (1..).map(|down| offset_of(next) - down);
                below.find(|offset| open(*offset)).unwrap()
            }
            (Some(last), _) => {
                let mut from = offset_of(last)..;
                from.find(|offset| after_left(*offset) && open(*offset))
                    .unwrap()
            }
        };
        if fits(offset) {
            return self.settled(spot, offset, class, own, Vec::new());
        }
        if let Some(moved) = self.shift(&right, (offset, rest.clone()), 1, zone) {
            return self.settled(spot, offset, class, own, moved);
        }
        if let Some(next) = right.first() {
            let mut below = (0..).map(|down| offset_of(next) - down);
            let offset = below
                .find(|offset| before_right(*offset) && open(*offset))
                .unwrap();
            let nearest: Vec<String> = left.into_iter().rev().collect();
            if let Some(moved) = self.shift(&nearest, (offset, rest.clone()), -1, zone) {
                return self.settled(spot, offset, class, own, moved);
            }
        }
        Err(refused("E_PLACEMENT"))
    }

    /// The siblings before and after a spot, without those of `but`.
    fn slot(&self, spot: &Spot, but: &[String]) -> Result<(Vec<String>, Vec<String>), Refused> {
        let mut siblings = self.children(&spot.parent);
        if spot.core {
            siblings.retain(|id| self.nodes[id].offset() == 0);
        }
        let child = |n: usize| (1..=siblings.len()).contains(&n);
        let at = match spot.insertion {
            Insertion::Into | Insertion::End => siblings.len(),
            Insertion::Start => 0,
            Insertion::After(n) if child(n) => n,
            Insertion::Before(n) if child(n) => n - 1,
            _ => return Err(refused("E_PLACEMENT")),
        };
        let mut right = siblings.split_off(at);
        siblings.retain(|id| !but.contains(id));
        right.retain(|id| !but.contains(id));
        Ok((siblings, right))
    }

    /// The least new offsets with which these siblings, nearest first, are on the right side of
    /// a place; `None` if one of them may not get its.
    fn shift(
        &self,
        siblings: &[String],
        mut place: (i64, Rest),
        way: i64,
        zone: bool,
    ) -> Option<Vec<(String, i64)>> {
        let mut moved = Vec::new();
        let beyond = |place: &(i64, Rest), key: &(i64, Rest)| match way {
            1 => place < key,
            _ => place > key,
        };
        for id in siblings {
            let node = &self.nodes[id];
            let key = (node.offset(), node.rest(id));
            if beyond(&place, &key) {
                break;
            }
            let same = (place.0, key.1.clone());
            let offset = if beyond(&place, &same) {
                place.0
            } else {
                place.0 + way
            };
            if !node.new || zone && offset.signum() != node.offset().signum() {
                return None;
            }
            moved.push((id.clone(), offset));
            place = (offset, key.1);
        }
        Some(moved)
    }

    fn settled(
        &self,
        spot: &Spot,
        offset: i64,
        class: Class,
        but: &[String],
        moved: Vec<(String, i64)>,
    ) -> Result<(i64, Vec<(String, i64)>), Refused> {
        let mut codes = self.barred(&spot.parent, offset, class, but);
        if spot.core && offset != 0 {
            codes.insert("E_PLACEMENT");
        }
        if codes.is_empty() {
            Ok((offset, moved))
        } else {
            Err(codes)
        }
    }

    /// Why nothing can be put below this parent.
    fn closed(&self, parent: &str) -> Refused {
        let mut codes = Refused::new();
        if matches!(self.nodes[parent].class, Class::Root | Class::Seq) {
            codes.insert("E_REGION");
        }
        if self.in_sealed_core(parent) {
            codes.insert("E_SEALED");
        }
        codes
    }

    /// Where a node without an offset goes that is put into a turn or `^ah` with a core container.
    fn redirected(&self, spot: &Spot, given: Option<i64>) -> Spot {
        let core = self
            .core(&spot.parent)
            .filter(|_| !self.is_sealed_turn(&spot.parent));
        match (spot.insertion, given, core) {
            (Insertion::Into, None, Some(parent)) => Spot {
                parent,
                core: false,
                insertion: Insertion::End,
            },
            _ => spot.clone(),
        }
    }

    fn would_be_core(&self, parent: &str, class: Class, offset: i64) -> bool {
        self.has_core_zone(parent) && class == Class::Container && offset == 0
    }

    fn rules(&self) -> Rules<'_> {
        Rules { used: &self.used }
    }

    fn renumber(&mut self, moved: Vec<(String, i64)>) {
        for (id, offset) in moved {
            let fields = &mut self.nodes.get_mut(&id).unwrap().fields;
            fields.insert("offset".to_owned(), Json::int(offset));
        }
    }

    // ---- operations ----------------------------------------------------------------------

    pub(crate) fn add(&mut self, spots: &[Spot], node: &Json, now: i64) -> Result<String, Refused> {
        let (draft, mut codes) = Draft::read(node, &self.rules());
        let [spot] = spots else {
            codes.insert("E_PLACEMENT");
            return Err(codes);
        };
        let spot = self.redirected(spot, draft.offset);
        codes.extend(self.closed(&spot.parent));
        let rest = (i64::MAX, i64::MAX, String::new());
        match self.choose(&spot, draft.class, draft.offset, &rest, &[]) {
            Ok((offset, moved)) => {
                if self.would_be_core(&spot.parent, draft.class, offset) && draft.is_fleeting() {
                    codes.insert("E_HEADER");
                }
                if codes.is_empty() {
                    self.renumber(moved);
                    self.reserve(&draft);
                    let id = self.make(&draft, &spot.parent, offset, now);
                    self.made.add.push(id.clone());
                    return Ok(id);
                }
            }
            Err(more) => codes.extend(more),
        }
        Err(codes)
    }

    pub(crate) fn update(&mut self, ids: &[String], given: &Json) -> Result<Vec<String>, Refused> {
        let mut codes = check_update(given);
        let Json::Obj(members) = given else {
            return Err(codes);
        };
        let lifecycle = members
            .iter()
            .all(|(name, _)| name == "ttl" || name == "priority");
        let fleeting = given.get("ttl").is_some_and(|ttl| *ttl != Json::Null);
        for id in ids {
            let node = &self.nodes[id];
            if is_region(node.class) {
                codes.insert("E_REGION");
            } else {
                let sealed = self.in_sealed_core(id) || self.is_sealed_turn(id);
                if sealed || !node.new && !lifecycle {
                    codes.insert("E_SEALED");
                }
            }
            if self.is_core(id) && fleeting {
                codes.insert("E_HEADER");
            }
        }
        let mut changed = self.nodes.clone();
        let mut new_ttl = BTreeSet::new();
        for id in ids {
            let node = changed.get_mut(id).unwrap();
            for (name, value) in members {
                match value {
                    Json::Null if name != "ttl" => node.fields.remove(name),
                    value => node.fields.insert(name.clone(), value.clone()),
                };
                let hashed = matches!(name.as_str(), "content" | "kind" | "role");
                let custom = name.starts_with("content_") || name.starts_with("data_");
                if (hashed || custom) && given.get("content_hash").is_none() {
                    node.fields.remove("content_hash");
                }
            }
            if let Some(ttl) = given.get("ttl") {
                if !node.new {
                    new_ttl.insert(id.clone());
                }
                node.deadline = ttl.as_int().map(|ttl| self.cycle.saturating_add(ttl));
            }
            if let Some(hash) = given.get("content_hash").and_then(Json::as_str)
                && hash != content_hash(&node.fields)
            {
                codes.insert("E_HEADER");
            }
        }
        if !codes.is_empty() {
            return Err(codes);
        }
        self.nodes = changed;
        self.made.new_ttl.extend(new_ttl);
        Ok(self.ordered(&ids.iter().cloned().collect()))
    }

    /// Why the nodes cannot be taken away.
    fn kept(&self, ids: &[String]) -> Refused {
        let mut codes = Refused::new();
        for id in ids {
            if is_region(self.nodes[id].class) {
                codes.insert("E_REGION");
            }
            if self.is_sealed_turn(id) || self.in_sealed_core(id) {
                codes.insert("E_SEALED");
            }
            if self.pinned(id) {
                codes.insert("E_PINNED");
            }
        }
        codes
    }

    pub(crate) fn remove(&mut self, ids: &[String]) -> Result<Vec<String>, Refused> {
        let codes = self.kept(ids);
        if !codes.is_empty() {
            return Err(codes);
        }
        let top = self.topmost(ids);
        for id in &top {
            self.take(id);
        }
        Ok(top)
    }

    pub(crate) fn replace(
        &mut self,
        ids: &[String],
        node: &Json,
        now: i64,
    ) -> Result<String, Refused> {
        let (mut draft, mut codes) = Draft::read(node, &self.rules());
        let [old] = ids else {
            codes.insert("E_PLACEMENT");
            return Err(codes);
        };
        codes.extend(self.kept(ids));
        if draft.offset.is_some() || draft.iso.is_some() {
            codes.insert("E_HEADER");
        }
        let Some(parent) = self.nodes[old].parent.clone() else {
            return Err(codes);
        };
        let place = self.nodes[old].clone();
        codes.extend(self.barred(&parent, place.offset(), draft.class, ids));
        if self.would_be_core(&parent, draft.class, place.offset()) && draft.is_fleeting() {
            codes.insert("E_HEADER");
        }
        if !codes.is_empty() {
            return Err(codes);
        }
        if let Some(key) = place.fields.get("key") {
            draft.fields.entry("key".to_owned()).or_insert(key.clone());
        }
        let lost = self.nodes[&parent].lost;
        self.reserve(&draft);
        let index = self.next_index();
        let id = self.given_id(&draft, index);
        let time = self.tick(now);
        let siblings = self.children(&parent);
        self.take(old);
        self.nodes.get_mut(&parent).unwrap().lost = lost;
        self.put(&draft, &id, &parent, (0, time, index, iso_of(time)));
        self.succeed(&id, &parent, (old, &place), &siblings);
        self.make_children(&draft, &id, now);
        let successor = ("replace", old.clone());
        self.made.succeeded.insert(id.clone(), successor);
        Ok(id)
    }

    /// Puts a node where another was among its siblings: with a time of its own, if an offset does it.
    fn succeed(
        &mut self,
        id: &str,
        parent: &str,
        (old, place): (&str, &Node),
        siblings: &[String],
    ) {
        self.nodes.get_mut(id).unwrap().parent = Some(parent.to_owned());
        // Those that are still there stand as they stood; others may have come since.
        let there = |sibling: &&String| self.nodes.contains_key(*sibling) || *sibling == old;
        let wanted: Vec<&str> = siblings
            .iter()
            .filter(there)
            .map(|sibling| if sibling == old { id } else { sibling })
            .collect();
        let at = wanted.iter().position(|sibling| *sibling == id).unwrap();
        let next = wanted.get(at + 1).map(|next| self.nodes[*next].offset());
        let own = self.nodes[id].clone();
        let with = |offset: i64, times: &Node, index: &Node| {
            let mut node = own.clone();
            node.fields.insert("offset".to_owned(), Json::int(offset));
            for (name, from) in [
                ("created_at_ns", times),
                ("created_at_iso", times),
                ("creation_index", index),
            ] {
                match from.fields.get(name) {
                    Some(value) => node.fields.insert(name.to_owned(), value.clone()),
                    None => node.fields.remove(name),
                };
            }
            node
        };
        let first = place.offset();
        let mut ways = vec![with(first, &own, &own)];
        ways.extend(next.map(|next| with(next.saturating_sub(1), &own, &own)));
        ways.push(with(first, place, if place.new { place } else { &own }));
        let last = with(first, place, place);
        let zone = self.has_core_zone(parent);
        let fits = |node: &Node| {
            let key = |id: &str| (self.nodes[id].offset(), self.nodes[id].rest(id));
            let own = (node.offset(), node.rest(id));
            (!zone || node.offset().signum() == first.signum())
                && (at == 0 || key(wanted[at - 1]) < own)
                && wanted.get(at + 1).is_none_or(|next| own < key(next))
        };
        let found = ways.into_iter().find(|node| fits(node)).unwrap_or(last);
        self.nodes.insert(id.to_owned(), found);
    }

    pub(crate) fn move_to(
        &mut self,
        ids: &[String],
        spots: &[Spot],
        now: i64,
    ) -> Result<Vec<String>, Refused> {
        let mut codes = Refused::new();
        for id in ids {
            let class = self.nodes[id].class;
            if is_region(class) || class == Class::Turn {
                codes.insert("E_REGION");
            }
            if self.in_sealed_core(id) {
                codes.insert("E_SEALED");
            }
        }
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let [spot] = spots else {
            codes.insert("E_PLACEMENT");
            return Err(codes);
        };
        codes.extend(self.closed(&spot.parent));
        codes.extend(self.slot(spot, &[]).err().unwrap_or_default());
        for id in ids {
            if self.line(&spot.parent).contains(id) {
                codes.insert("E_PLACEMENT");
            }
            if !self.nodes[id].new {
                if self.region(id) == self.region(&spot.parent) {
                    codes.insert("E_SEALED");
                }
                if self.pinned(id) {
                    codes.insert("E_PINNED");
                }
            }
        }
        if !codes.is_empty() {
            return Err(codes);
        }
        self.move_each(&self.topmost(ids), spot, now)
    }

    fn move_each(&mut self, ids: &[String], spot: &Spot, now: i64) -> Result<Vec<String>, Refused> {
        let mut done: Vec<String> = Vec::new();
        let mut spot = spot.clone();
        for (at, id) in ids.iter().enumerate() {
            let node = self.nodes[id].clone();
            let own = Some(node.offset());
            let into = spot.insertion == Insertion::Into;
            let core = self.core(&spot.parent).is_some_and(|core| core != *id);
            let sealed = self.is_sealed_turn(&spot.parent);
            // Its own offset is kept where it is allowed.
            let given = own.filter(|own| into && !spot.core && !(*own == 0 && (core || sealed)));
            let target = self.redirected(&spot, given);
            let rest = if node.new {
                node.rest(id)
            } else {
                (i64::MAX, i64::MAX, String::new())
            };
            let but = &ids[at..];
            let (offset, moved) = self.choose(&target, node.class, given, &rest, but)?;
            let fleeting = node.fields.get("ttl").is_some_and(|ttl| *ttl != Json::Null)
                || node.fields.get("removable") == Some(&Json::Bool(true));
            if self.would_be_core(&target.parent, node.class, offset) && fleeting {
                // The nodes that are still to be moved may be in the way, too.
                let mut codes = self.barred(&target.parent, offset, node.class, &ids[at..=at]);
                codes.insert("E_HEADER");
                return Err(codes);
            }
            self.renumber(moved);
            let old_parent = node.parent.clone().unwrap();
            let new_id = if node.new {
                let node = self.nodes.get_mut(id).unwrap();
                node.parent = Some(target.parent.clone());
                node.fields.insert("offset".to_owned(), Json::int(offset));
                id.clone()
            } else {
                let draft = self.copy(id);
                self.take(id);
                let copy = self.make(&draft, &target.parent, offset, now);
                let moved = ("move", id.clone());
                self.made.succeeded.insert(copy.clone(), moved);
                copy
            };
            if old_parent != target.parent {
                self.nodes.get_mut(&old_parent).unwrap().lost = true;
            }
            if !into {
                let siblings = self.children(&target.parent);
                let at = siblings.iter().position(|id| *id == new_id).unwrap();
                spot = Spot {
                    insertion: Insertion::After(at + 1),
                    core: false,
                    ..target
                };
            }
            done.push(new_id);
        }
        Ok(done)
    }

    /// A committed node and all below it, to be made again.
    fn copy(&self, id: &str) -> Draft {
        let node = &self.nodes[id];
        let mut fields = node.fields.clone();
        for name in [
            "offset",
            "cycle",
            "created_at_ns",
            "created_at_iso",
            "creation_index",
        ] {
            fields.remove(name);
        }
        Draft {
            id: None,
            class: node.class,
            offset: Some(node.offset()),
            time: None,
            iso: None,
            fields,
            children: self.children(id).iter().map(|id| self.copy(id)).collect(),
        }
    }

    pub(crate) fn compact(
        &mut self,
        ids: &[String],
        node: &Json,
        now: i64,
    ) -> Result<String, Refused> {
        let (draft, mut codes) = Draft::read(node, &self.rules());
        if ids.is_empty() {
            codes.insert("E_PLACEMENT");
        }
        if draft.has_ttl_zero() || draft.offset.is_some() || draft.iso.is_some() {
            codes.insert("E_HEADER");
        }
        let top = self.topmost(ids);
        for id in &top {
            let node = &self.nodes[id];
            if is_region(node.class) {
                codes.insert("E_REGION");
            }
            let turn = node
                .parent
                .as_deref()
                .is_some_and(|id| self.is_sealed_turn(id));
            if self.is_core(id) && turn {
                codes.insert("E_SEALED");
            }
            // A container there could become a second core, or one that goes.
            let zone = node
                .parent
                .as_deref()
                .is_some_and(|id| self.has_core_zone(id));
            if zone && node.offset() == 0 && draft.class == Class::Container {
                codes.insert("E_PLACEMENT");
            }
        }
        if ids.iter().all(|id| self.pinned(id)) {
            codes.insert("E_PINNED");
        }
        if !codes.is_empty() {
            return Err(codes);
        }
        let root = self.region_id(Class::Root);
        self.reserve(&draft);
        let id = self.make(&draft, &root, 0, now);
        let made = self.subtree(&id).into_iter();
        let made = made
            .map(|id| (id.clone(), self.nodes[&id].clone()))
            .collect();
        for id in self.subtree(&id) {
            self.nodes.remove(&id);
        }
        self.compactions.push(Compaction {
            ids: ids.to_vec(),
            id: id.clone(),
            made,
        });
        Ok(id)
    }

    /// Puts the parts of a message at the end of the core of `^ah`, or of `^sys`. A core container is
    /// made where blocks at offset 0 are not the core already.
    pub(crate) fn append(
        &mut self,
        role: &str,
        parts: &[Json],
        is_reply: bool,
        now: i64,
    ) -> Result<Vec<String>, Refused> {
        let (parent, core) = match role {
            "system" => (self.region_id(Class::Sys), false),
            _ => {
                let head = self.region_id(Class::Head);
                let loose = |id: &String| self.nodes[id].offset() == 0;
                match self.core(&head) {
                    Some(core) => (core, false),
                    None if self.children(&head).iter().any(loose) => (head, true),
                    None => (self.make_core(&head, now), false),
                }
            }
        };
        let grouped = parts.len() > 1 && role != "assistant";
        let mut ids: Vec<String> = Vec::new();
        for part in parts {
            let Json::Obj(mut members) = part.clone() else {
                panic!("an object")
            };
            if part.get("role").is_none() {
                members.push(("role".to_owned(), Json::text(role)));
            }
            if is_reply {
                members.push(("data_reply".to_owned(), Json::int(self.cycle)));
            }
            if grouped {
                let (draft, _) = Draft::read(part, &self.rules());
                let first = ids.first().cloned();
                let first = first.unwrap_or_else(|| self.given_id(&draft, self.index));
                members.push(("data_message".to_owned(), Json::text(&first)));
            }
            let spot = Spot {
                parent: parent.clone(),
                core,
                insertion: Insertion::End,
            };
            ids.push(self.add(&[spot], &Json::Obj(members), now)?);
            let id = self.made.add.pop();
            if !is_reply && part.get("id").is_some() {
                self.made.append.extend(id);
            }
        }
        Ok(ids)
    }

    /// Makes the core container of the head.
    fn make_core(&mut self, head: &str, now: i64) -> String {
        let mut core = plain("mc");
        core.id = Some(self.unused(format!("mc:{}", self.cycle)));
        self.make(&core, head, 0, now)
    }

    pub(crate) fn pin(&mut self, ids: &[String]) -> Result<String, Refused> {
        let [id] = ids else {
            return Err(refused("E_PLACEMENT"));
        };
        *self.pins.entry(id.clone()).or_insert(0) += 1;
        Ok(id.clone())
    }

    pub(crate) fn unpin(&mut self, id: &str) {
        if let Some(count) = self.pins.get_mut(id) {
            *count = count.saturating_sub(1);
        }
    }

    pub(crate) fn discard(&mut self) {
        self.nodes = (*self.base).clone();
        self.request = self.request_before.clone();
        self.compactions.clear();
        self.made = Made::default();
        let nodes = &self.nodes;
        self.pins.retain(|id, _| nodes.contains_key(id));
    }

    // ---- commit --------------------------------------------------------------------------

    pub(crate) fn commit(&mut self, now: i64) -> Done {
        let removed = self.removed();
        let expired = self.expire();
        let mut emptied = self.cascade();
        let (compactions, kept, voided) = self.compact_now();
        let compacted = compactions.iter().flat_map(|(ids, _)| ids.clone());
        let compacted: Vec<String> = compacted.collect();
        let pruned = self.prune();
        emptied.extend(self.cascade());
        self.record = self.recorded(&removed, &expired, &compactions, &pruned, &emptied);
        let cycle = self.cycle;
        let turn = self.seal(now);
        for node in self.nodes.values_mut() {
            if let Some(deadline) = node.deadline {
                let left = Json::int(deadline.saturating_sub(cycle).max(0));
                node.fields.insert("ttl".to_owned(), left);
            }
        }
        let document = self.document(Some(cycle)).canonical();
        self.settle();
        self.cycle += 1;
        Done {
            cycle,
            turn,
            expired,
            pruned,
            compacted,
            kept,
            voided,
            emptied,
            document,
        }
    }

    fn expire(&mut self) -> Vec<String> {
        let mut gone = Vec::new();
        for id in self.order() {
            let Some(node) = self.nodes.get(&id) else {
                continue;
            };
            let due = node.deadline.is_some_and(|deadline| deadline <= self.cycle);
            let stays = is_region(node.class) || self.is_core(&id) || self.is_sealed_turn(&id);
            if due && !stays && !self.pinned(&id) {
                self.take(&id);
                gone.push(id);
            }
        }
        gone
    }

    /// Takes containers out that may go and were emptied, until there is none.
    fn cascade(&mut self) -> Vec<String> {
        let mut gone = Vec::new();
        loop {
            let emptied = self.order().into_iter().find(|id| {
                let node = &self.nodes[id];
                let removable = node.fields.get("removable") == Some(&Json::Bool(true));
                if !removable || !node.lost || self.pinned(id) {
                    return false;
                }
                let children = self.children(id);
                match node.class {
                    Class::Container => children.is_empty() && !self.is_core(id),
                    Class::Turn if self.is_sealed_turn(id) => {
                        let left = |id: &String| self.is_core(id) && self.children(id).is_empty();
                        children.len() <= 1 && children.iter().all(left)
                    }
                    _ => false,
                }
            });
            let Some(id) = emptied else {
                return gone;
            };
            self.take(&id);
            gone.push(id);
        }
    }

    /// The topmost committed nodes that are not there any more.
    fn removed(&self) -> Vec<String> {
        let is_there = |id: &String| self.nodes.contains_key(id);
        let gone = self.base.iter().filter(|(id, _)| !is_there(id));
        let topmost = gone.filter(|(_, node)| node.parent.as_ref().is_some_and(is_there));
        topmost.map(|(id, _)| id.clone()).collect()
    }

    /// The members of `meta.commit`, sorted by name.
    fn recorded(
        &self,
        removed: &[String],
        expired: &[String],
        compactions: &[(Vec<String>, String)],
        pruned: &[String],
        emptied: &[String],
    ) -> Vec<(String, Json)> {
        let made = &self.made;
        let lives = |id: &&String| self.nodes.contains_key(*id);
        let committed = |id: &&String| self.base.contains_key(*id);
        let list =
            |ids: Vec<&String>| Json::List(ids.into_iter().map(|id| Json::text(id)).collect());
        let live = |ids: &[String]| list(ids.iter().filter(lives).collect());
        let old = |ids: &[String]| list(ids.iter().filter(committed).collect());
        let mut origins = BTreeSet::new();
        let mut successors = |name: &str| {
            let mut pairs = Vec::new();
            for (id, (by, old)) in &made.succeeded {
                let mut old = old;
                while let Some((_, older)) = made.succeeded.get(old) {
                    old = older;
                }
                if lives(&id) && *by == name {
                    pairs.push((id.clone(), Json::text(old)));
                    origins.insert(old.clone());
                }
            }
            Json::Obj(pairs)
        };
        let (moved, replaced) = (successors("move"), successors("replace"));
        let compact = compactions.iter().map(|(ids, into)| {
            Json::Obj(vec![
                ("ids".to_owned(), old(ids)),
                ("into".to_owned(), Json::text(into)),
            ])
        });
        let removed: Vec<&String> = removed.iter().filter(|id| !origins.contains(*id)).collect();
        let timed = expired.iter().filter(|id| made.new_ttl.contains(*id));
        let members = [
            ("add", live(&made.add)),
            ("append", live(&made.append)),
            ("compact", Json::List(compact.collect())),
            ("empty", old(emptied)),
            ("expire", list(timed.filter(committed).collect())),
            ("move", moved),
            ("prune", old(pruned)),
            ("remove", list(removed)),
            ("replace", replaced),
        ];
        let says = |value: &Json| !matches!(value.write().as_str(), "[]" | "{}");
        let members = members.into_iter().filter(|(_, value)| says(value));
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// What each compaction took, and its summary; what references kept; the summaries that did not come.
    #[allow(clippy::type_complexity, reason = "three lists")]
    fn compact_now(&mut self) -> (Vec<(Vec<String>, String)>, Vec<String>, Vec<String>) {
        let (mut made_now, mut kept, mut voided) = (Vec::new(), Vec::new(), Vec::new());
        for Compaction { ids, id, made } in std::mem::take(&mut self.compactions) {
            let order = self.order().into_iter();
            let live: Vec<String> = order.filter(|id| ids.contains(id)).collect();
            let (stay, left): (Vec<String>, Vec<String>) =
                live.into_iter().partition(|id| self.pinned(id));
            kept.extend(self.topmost(&stay));
            let mut gone = self.topmost(&left);
            // A sealed turn keeps its core.
            gone.retain(|id| {
                let parent = self.nodes[id].parent.clone().unwrap();
                !(self.is_core(id) && self.is_sealed_turn(&parent))
            });
            let Some(first) = gone.first() else {
                voided.push(id);
                continue;
            };
            let place = self.nodes[first].clone();
            let parent = place.parent.clone().unwrap();
            if self.would_be_core(&parent, made[0].1.class, place.offset()) {
                // It was moved there after the call.
                voided.push(id);
                continue;
            }
            let siblings = self.children(&parent);
            for id in &gone {
                self.take(id);
            }
            self.nodes.extend(made);
            self.succeed(&id, &parent, (&gone[0], &place), &siblings);
            made_now.push((gone, id));
        }
        (made_now, kept, voided)
    }

    fn prune(&mut self) -> Vec<String> {
        let Some(policy) = self.policy.clone() else {
            return Vec::new();
        };
        let mut gone = Vec::new();
        if let Some(window) = policy.window {
            let mut turns = self.children(&self.region_id(Class::Seq));
            turns.retain(|id| self.is_sealed_turn(id));
            turns.truncate((turns.len() + 1).saturating_sub(window.max(1)));
            turns.retain(|id| !self.pinned(id));
            for turn in &turns {
                self.take(turn);
            }
            gone.extend(turns);
        }
        for limit in &policy.limits {
            while self.measured(limit) > limit.most {
                let candidates = self.in_scope(limit.scope).into_iter();
                let candidates = candidates.filter(|id| {
                    let block = self.nodes[id].class == Class::Block;
                    block && !self.pinned(id) && !self.protected(id, policy.protect)
                });
                let first = candidates.min_by_key(|id| {
                    let node = &self.nodes[id];
                    (node.int("priority"), node.int("created_at_ns"), id.clone())
                });
                let Some(id) = first else {
                    break;
                };
                self.take(&id);
                gone.push(id);
            }
        }
        gone
    }

    fn in_scope(&self, scope: Scope) -> Vec<String> {
        let region = match scope {
            Scope::Whole => None,
            Scope::Sys => Some(Class::Sys),
            Scope::Seq => Some(Class::Seq),
            Scope::Head => Some(Class::Head),
        };
        let mut ids = self.order();
        ids.retain(|id| {
            let inside = region.is_none() || self.region(id) == region;
            inside && !is_region(self.nodes[id].class)
        });
        ids
    }

    fn measured(&self, limit: &Limit) -> u64 {
        let ids = self.in_scope(limit.scope);
        match limit.measure {
            Measure::Nodes => ids.len() as u64,
            Measure::Tokens => {
                let blocks = ids.iter().map(|id| &self.nodes[id]);
                let blocks = blocks.filter(|node| node.class == Class::Block);
                let bytes = blocks.map(|node| match node.fields.get("content") {
                    None | Some(Json::Null) => 0,
                    Some(Json::Str(text)) => text.len(),
                    Some(other) => other.canonical().len(),
                });
                bytes.map(|bytes| bytes.div_ceil(4) as u64).sum()
            }
        }
    }

    /// Whether the node is in one of the newest turns; `^ah` is the newest.
    fn protected(&self, id: &str, turns: usize) -> bool {
        let line = self.line(id);
        if turns == 0 {
            return false;
        }
        if line.iter().any(|id| self.nodes[id].class == Class::Head) {
            return true;
        }
        let mut sealed = self.children(&self.region_id(Class::Seq));
        sealed.retain(|id| self.is_sealed_turn(id));
        sealed
            .iter()
            .rev()
            .take(turns - 1)
            .any(|turn| line.contains(turn))
    }

    fn seal(&mut self, now: i64) -> String {
        let (head, seq) = (self.region_id(Class::Head), self.region_id(Class::Seq));
        let turns = self.children(&seq).into_iter();
        let largest = turns.map(|id| self.nodes[&id].offset()).max();
        let mut turn = plain("mt");
        turn.id = Some(self.unused(format!("mt:{}", self.cycle)));
        let turn = self.make(&turn, &seq, largest.unwrap_or(0).max(0), now);
        for id in self.children(&head) {
            self.nodes.get_mut(&id).unwrap().parent = Some(turn.clone());
        }
        if self.core(&turn).is_none() {
            let loose = self.children(&turn);
            let mut core = plain("mc");
            core.id = Some(self.unused(format!("mc:{}", self.cycle)));
            let core = self.make(&core, &turn, 0, now);
            for id in loose {
                if self.nodes[&id].offset() == 0 {
                    self.nodes.get_mut(&id).unwrap().parent = Some(core.clone());
                }
            }
        }
        turn
    }

    // ---- export --------------------------------------------------------------------------

    /// The document of the working state, as that of a cycle if one is given.
    pub(crate) fn document(&self, cycle: Option<i64>) -> Json {
        let mut members = vec![
            ("root".to_owned(), self.json(&self.region_id(Class::Root))),
            ("spec_version".to_owned(), Json::text("PACT/0.1.0")),
        ];
        if let Some(cycle) = cycle {
            members.push(("cycle".to_owned(), Json::int(cycle)));
        }
        let mut meta = Vec::new();
        if cycle.is_some() && !self.record.is_empty() {
            meta.push(("commit".to_owned(), Json::Obj(self.record.clone())));
        }
        meta.extend(
            self.request
                .clone()
                .map(|request| ("request".to_owned(), request)),
        );
        if !meta.is_empty() {
            members.push(("meta".to_owned(), Json::Obj(meta)));
        }
        Json::Obj(members)
    }

    fn json(&self, id: &str) -> Json {
        let mut members = vec![("id".to_owned(), Json::text(id))];
        let fields = self.nodes[id].fields.iter();
        members.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
        let children = self.children(id);
        if !children.is_empty() {
            let children = children.iter().map(|id| self.json(id)).collect();
            members.push(("children".to_owned(), Json::List(children)));
        }
        Json::Obj(members)
    }
}
