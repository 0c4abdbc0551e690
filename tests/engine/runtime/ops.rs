//! Random operations. Each is a kind and a seed: what it does in full is drawn from the state it
//! meets, so that a run from which operations were dropped is a run too.

use super::draft::{content_hash, iso_of};
use super::model::{Insertion, Limit, Measure, Model, Policy, Scope, Spot};
use crate::support::json::Json;
use crate::support::random::Rng;
use crate::support::selector::{Controls, Edition, Time};
use crate::support::tree::{Class, Session};
use crate::support::{eval, selectors, text};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Add,
    Update,
    Remove,
    Move,
    Replace,
    Compact,
    Pin,
    Unpin,
    Discard,
    Commit,
    Fork,
    Append,
    Request,
}

/// An operation of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    /// How far the clock goes on before it; it may go back.
    pub(crate) tick: i64,
}

/// The operations of a run.
pub(crate) fn run(seed: u64, length: usize) -> Vec<Op> {
    let mut rng = Rng::new(seed);
    // Every kind as often as its weight says.
    let kinds = [
        (Kind::Add, 42),
        (Kind::Update, 9),
        (Kind::Remove, 6),
        (Kind::Move, 11),
        (Kind::Replace, 6),
        (Kind::Compact, 4),
        (Kind::Pin, 3),
        (Kind::Unpin, 2),
        (Kind::Discard, 1),
        (Kind::Commit, 15),
        (Kind::Fork, 1),
        (Kind::Append, 6),
        (Kind::Request, 1),
    ];
    let total: usize = kinds.iter().map(|(_, weight)| weight).sum();
    let op = |rng: &mut Rng| {
        let mut at = rng.below(total);
        let kind = kinds.iter().find(|(_, weight)| {
            let found = at < *weight;
            at = at.saturating_sub(*weight);
            found
        });
        Op {
            kind: kind.unwrap().0,
            seed: rng.range(0, i64::MAX - 1) as u64,
            tick: if rng.chance(20) { 0 } else { rng.range(-5, 60) },
        }
    };
    (0..length).map(|_| op(&mut rng)).collect()
}

/// A random policy, or none.
pub(crate) fn policy(seed: u64) -> Option<Policy> {
    let mut rng = Rng::new(seed ^ 0x5EED);
    if rng.chance(50) {
        return None;
    }
    let scopes = [Scope::Whole, Scope::Sys, Scope::Seq, Scope::Head];
    let limit = |rng: &mut Rng| Limit {
        scope: *rng.pick(&scopes),
        measure: *rng.pick(&[Measure::Nodes, Measure::Tokens]),
        most: rng.range(0, 20) as u64,
    };
    let count = rng.range(1, 2);
    Some(Policy {
        limits: (0..count).map(|_| limit(&mut rng)).collect(),
        protect: rng.below(4),
        window: rng.chance(30).then(|| rng.below(5)),
    })
}

/// Draws the parts of one operation.
pub(crate) struct Maker<'a> {
    pub(crate) rng: Rng,
    pub(crate) model: &'a Model,
    /// The session with its working state, for the reference interpreter.
    pub(crate) session: &'a dyn Fn() -> Session,
    /// Numbers that make every text and id another one.
    pub(crate) serial: u64,
}

impl Maker<'_> {
    fn ids(&self) -> Vec<String> {
        self.model.order()
    }

    /// A node, of those that operations are meant for in most cases.
    fn node(&mut self) -> String {
        let mut ids = self.ids();
        if self.rng.chance(80) {
            ids.retain(|id| {
                let node = &self.model.nodes[id];
                let open = matches!(node.class, Class::Container | Class::Block);
                open && !self.model.in_sealed_core(id)
            });
        }
        if self.rng.chance(60) && ids.iter().any(|id| self.model.nodes[id].new) {
            ids.retain(|id| self.model.nodes[id].new);
        }
        if ids.is_empty() {
            self.rng.pick(&self.ids()).clone()
        } else {
            self.rng.pick(&ids).clone()
        }
    }

    /// A selector of any nodes, and what it matches.
    pub(crate) fn selector(&mut self) -> (String, Vec<String>) {
        if self.rng.chance(12) {
            let session = (self.session)();
            loop {
                let mut sel = selectors::selector(&mut self.rng, &session, Edition::Canonical);
                sel.controls = Controls::default();
                sel.time = Time::Omitted;
                let text = text::plain(&sel, Edition::Canonical);
                if !selectors::has_facet(&sel) {
                    let found = eval::ids(&session, Edition::Canonical, &sel).unwrap();
                    let order = self.ids().into_iter();
                    return (text, order.filter(|id| found.contains(id)).collect());
                }
            }
        }
        self.chains()
    }

    /// A selector of some nodes by their ids, and what it matches.
    fn chains(&mut self) -> (String, Vec<String>) {
        let count = if self.rng.chance(70) {
            1
        } else {
            self.rng.below(4)
        };
        let mut ids: Vec<String> = (0..count).map(|_| self.node()).collect();
        ids.sort();
        ids.dedup();
        let mut texts: Vec<String> = ids.iter().map(|id| chain(id)).collect();
        if texts.is_empty() {
            texts.push("[id='nothing']".to_owned());
        }
        let order = self.ids().into_iter();
        let ids = order.filter(|id| ids.contains(id)).collect();
        (texts.join(", "), ids)
    }

    /// As [`Maker::selector`], of exactly one node in most cases.
    pub(crate) fn selector_of_one(&mut self) -> (String, Vec<String>) {
        if self.rng.chance(15) {
            return self.selector();
        }
        let id = self.node();
        (chain(&id), vec![id])
    }

    /// As [`Maker::selector_of_one`], of a node anywhere.
    pub(crate) fn selector_of_any(&mut self) -> (String, Vec<String>) {
        if self.rng.chance(30) {
            return self.selector_of_one();
        }
        let ids = self.ids();
        let id = self.rng.pick(&ids).clone();
        (chain(&id), vec![id])
    }

    /// A position, and the places it names.
    pub(crate) fn position(&mut self) -> (String, Vec<Spot>) {
        if self.rng.chance(4) {
            let (text, ids) = self.chains();
            let spot = |parent: &String| Spot {
                parent: parent.clone(),
                core: false,
                insertion: Insertion::Into,
            };
            return (text, ids.iter().map(spot).collect());
        }
        let mut parents = self.ids();
        if self.rng.chance(85) {
            parents.retain(|id| {
                let class = self.model.nodes[id].class;
                let region = matches!(class, Class::Root | Class::Seq);
                !region && !self.model.in_sealed_core(id)
            });
        }
        let parent = match self.rng.below(10) {
            0..4 => "^ah".to_owned(),
            4 => "^sys".to_owned(),
            5 | 6 => {
                let zone = |id: &String| {
                    let class = self.model.nodes[id].class;
                    class == Class::Container || self.model.is_sealed_turn(id)
                };
                let zones: Vec<String> = parents.iter().filter(|id| zone(id)).cloned().collect();
                self.rng
                    .pick(if zones.is_empty() { &parents } else { &zones })
                    .clone()
            }
            _ => self.rng.pick(&parents).clone(),
        };
        let class = self.model.nodes[&parent].class;
        let core =
            class == Class::Head && self.model.core(&parent).is_none() && self.rng.chance(15);
        let count = self.model.children(&parent).len();
        let n = if self.rng.chance(5) {
            count + 1
        } else {
            self.rng.range(1, count.max(1) as i64) as usize
        };
        let insertion = match self.rng.below(10) {
            0..3 => Insertion::Into,
            3 => Insertion::Start,
            4 | 5 => Insertion::End,
            6 | 7 => Insertion::After(n),
            _ => Insertion::Before(n),
        };
        let hops = match self.hops(&parent) {
            Some(hops) => hops,
            None => {
                let spot = Spot {
                    parent: parent.clone(),
                    core: false,
                    insertion: Insertion::Into,
                };
                return (chain(&parent), vec![spot]);
            }
        };
        let spot = Spot {
            parent: parent.clone(),
            core,
            insertion,
        };
        let hops = if core {
            format!("{hops}, cont[offset=0]")
        } else {
            hops
        };
        let text = match insertion {
            Insertion::Into if core => format!("({hops})"),
            Insertion::Into => match self.rng.below(3) {
                0 => chain(&parent),
                1 if parent == "^ah" || parent == "^sys" => parent,
                _ => format!("({hops})"),
            },
            Insertion::Start => format!("({hops}, )"),
            Insertion::End => format!("({hops}, end)"),
            Insertion::After(n) => format!("({hops}, +{n})"),
            Insertion::Before(n) => format!("({hops}, -{n})"),
        };
        (text, vec![spot])
    }

    /// The hops from a region or turn to a node; the root has none.
    fn hops(&mut self, id: &str) -> Option<String> {
        let node = &self.model.nodes[id];
        let parent = node.parent.clone()?;
        Some(match node.class {
            Class::Sys => "d-1".to_owned(),
            Class::Head => "d0".to_owned(),
            Class::Turn if self.model.is_sealed_turn(id) => {
                let mut turns = self.model.children(&parent);
                turns.retain(|id| self.model.is_sealed_turn(id));
                let at = turns.iter().position(|turn| turn == id).unwrap();
                format!("d{}", turns.len() - at)
            }
            class => {
                let hop = match class {
                    Class::Container if self.rng.chance(50) => "cont",
                    Class::Block if self.rng.chance(50) => "block",
                    _ => "*",
                };
                let own = format!("{hop}[id={}]", quoted(id));
                match self.hops(&parent) {
                    Some(above) => format!("{above}, {own}"),
                    None => own,
                }
            }
        })
    }

    fn number(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// A new node for these places. Between siblings it has an offset of its own only rarely.
    pub(crate) fn node_for(&mut self, spots: &[Spot]) -> Json {
        let between = spots.iter().any(|spot| spot.insertion != Insertion::Into);
        let keeps = !between || self.rng.chance(25);
        match self.new_node(2) {
            Json::Obj(mut members) => {
                members.retain(|(name, _)| keeps || name != "offset");
                Json::Obj(members)
            }
            other => other,
        }
    }

    /// The members of a new node: good ones in most cases.
    pub(crate) fn new_node(&mut self, depth: usize) -> Json {
        let mut members: Vec<(String, Json)> = Vec::new();
        let types = [
            "cb",
            "block",
            "cb:summary",
            "custom:note",
            "mc",
            "cont",
            "mc:group",
        ];
        if self.rng.chance(60) {
            let node_type = if self.rng.chance(3) {
                *self
                    .rng
                    .pick(&["mt", "seg:x", "^sys", "^ah", "^root", "^x", ""])
            } else {
                *self.rng.pick(&types)
            };
            push(&mut members, "nodeType", Json::text(node_type));
        }
        let container = members.iter().any(|(_, value)| {
            value
                .as_str()
                .is_some_and(|text| text.starts_with("mc") || text == "cont")
        });
        if self.rng.chance(40) {
            let offset = Json::int(*self.rng.pick(&[-2, -1, -1, 0, 1, 1, 2, 3]));
            push(&mut members, "offset", offset);
        }
        if self.rng.chance(if container { 15 } else { 50 }) {
            let ttl = match self.rng.below(5) {
                0 => Json::Null,
                n => Json::int(n as i64 - 1),
            };
            push(&mut members, "ttl", ttl);
        }
        if self.rng.chance(if container { 40 } else { 1 }) {
            push(&mut members, "removable", Json::Bool(self.rng.chance(90)));
        }
        if self.rng.chance(15) {
            let id = self.new_id();
            push(&mut members, "id", Json::text(&id));
        }
        if self.rng.chance(6) {
            let iso = if self.rng.chance(15) {
                "yesterday".to_owned()
            } else {
                iso_of(self.model.last + self.rng.range(-50, 50))
            };
            push(&mut members, "created_at_iso", Json::text(&iso));
        }
        let mut others = Vec::new();
        self.plain_members(&mut others);
        members.extend(others);
        if depth > 0 && self.rng.chance(18) {
            let count = self.rng.range(1, 3);
            let children = (0..count).map(|_| self.new_node(depth - 1)).collect();
            push(&mut members, "children", Json::List(children));
        }
        if self.rng.chance(2) {
            members.push(self.bad_member());
        }
        if self.rng.chance(8) {
            let absent = |(name, value): &&(String, Json)| {
                *value == Json::Null && (name == "role" || name == "kind")
            };
            let fields = members.iter().filter(|member| !absent(member));
            let fields = fields.cloned().collect();
            let hash = if self.rng.chance(20) {
                "0".repeat(64)
            } else {
                content_hash(&fields)
            };
            push(&mut members, "content_hash", Json::text(&hash));
        }
        self.rng.shuffle(&mut members);
        Json::Obj(members)
    }

    /// The members of a node that takes another's place.
    pub(crate) fn successor(&mut self) -> Json {
        let Json::Obj(mut members) = self.new_node(1) else {
            panic!("an object")
        };
        if self.rng.chance(95) {
            members.retain(|(name, _)| name != "offset" && name != "created_at_iso");
        }
        Json::Obj(members)
    }

    /// Members that a node and an update may have; null among them.
    fn plain_members(&mut self, members: &mut Vec<(String, Json)>) {
        let number = self.number();
        if self.rng.chance(40) {
            push(members, "priority", Json::int(self.rng.range(-2, 3)));
        }
        for (name, values) in [
            ("role", ["user", "assistant", "tool", ""]),
            ("kind", ["text", "call", "summary", ""]),
            ("key", ["K", "hero", "hero banner", ""]),
        ] {
            if self.rng.chance(25) {
                push(members, name, self.or_null(values));
            }
        }
        if self.rng.chance(50) {
            let content = match self.rng.below(6) {
                0 => Json::Null,
                1 => Json::List(vec![Json::int(number as i64), Json::text("é")]),
                2 => Json::Num(format!("{number}.50")),
                3 => Json::text(&format!("{number} {}", "word ".repeat(number as usize % 9))),
                _ => Json::text(&format!("text {number}")),
            };
            push(members, "content", content);
        }
        if self.rng.chance(15) {
            let tags = ["a", "b", "to do"].map(Json::text);
            let count = self.rng.below(3);
            push(members, "tags", Json::List(tags[..count].to_vec()));
        }
        for name in ["data_x", "data_y", "content_type", "note:x"] {
            if self.rng.chance(8) {
                let text = number.to_string();
                push(members, name, self.or_null([&text, "b", "c", "d"]));
            }
        }
        if self.rng.chance(4) {
            push(members, "cadence", Json::int(1));
        }
        if self.rng.chance(4) {
            push(members, "provenance", Json::text("model:x"));
        }
    }

    /// The role and the parts of a message.
    pub(crate) fn message(&mut self) -> (&'static str, Vec<Json>) {
        let role = *self
            .rng
            .pick(&["user", "user", "assistant", "tool", "system"]);
        let count = self.rng.range(1, 3);
        let part = |maker: &mut Self| {
            let mut members = Vec::new();
            maker.plain_members(&mut members);
            if maker.rng.chance(30) {
                push(&mut members, "ttl", Json::int(maker.rng.range(0, 2)));
            }
            if maker.rng.chance(8) {
                let id = format!("n{}", maker.number());
                push(&mut members, "id", Json::text(&id));
            }
            members.retain(|(_, value)| *value != Json::Null);
            Json::Obj(members)
        };
        (role, (0..count).map(|_| part(self)).collect())
    }

    fn or_null(&mut self, values: [&str; 4]) -> Json {
        if self.rng.chance(15) {
            Json::Null
        } else {
            Json::text(self.rng.pick::<&str>(&values))
        }
    }

    fn new_id(&mut self) -> String {
        let number = self.number();
        match self.rng.below(12) {
            0 => {
                let ids = self.ids();
                self.rng.pick(&ids).clone()
            }
            1 => format!("cb:c{}-{}", self.model.cycle, self.model.index + 1),
            2 => format!("mt:{}", self.model.cycle),
            3 => format!("mc:{}", self.model.cycle),
            4 => format!("it's \"é\" {number}"),
            _ => format!("n{number}"),
        }
    }

    fn bad_member(&mut self) -> (String, Json) {
        let bad = [
            ("colour", Json::text("red")),
            ("cycle", Json::int(1)),
            ("created_at_ns", Json::int(1)),
            ("creation_index", Json::int(1)),
            ("parent_id", Json::text("^ah")),
            ("provenances", Json::text("x")),
        ];
        let (name, value) = self.rng.pick(&bad).clone();
        (name.to_owned(), value)
    }

    /// The members of an update.
    pub(crate) fn fields(&mut self) -> Json {
        let mut members = Vec::new();
        if self.rng.chance(45) {
            let ttl = match self.rng.below(5) {
                0 => Json::Null,
                n => Json::int(n as i64 - 1),
            };
            push(&mut members, "ttl", ttl);
        }
        if self.rng.chance(45) {
            push(&mut members, "priority", Json::int(self.rng.range(-2, 3)))
        } else {
            self.plain_members(&mut members)
        }
        if self.rng.chance(4) {
            let fixed = [
                ("id", Json::text("other")),
                ("offset", Json::int(1)),
                ("nodeType", Json::text("cb")),
                ("removable", Json::Bool(true)),
                ("created_at_iso", Json::text("2025-01-01T00:00:00Z")),
                ("children", Json::List(vec![Json::Obj(Vec::new())])),
                ("ttl", Json::int(-1)),
                ("role", Json::int(3)),
            ];
            let (name, value) = self.rng.pick(&fixed).clone();
            members.retain(|(other, _)| other != name);
            push(&mut members, name, value);
        }
        Json::Obj(members)
    }
}

fn push(members: &mut Vec<(String, Json)>, name: &str, value: Json) {
    members.push((name.to_owned(), value));
}

/// A string literal of the language.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\'', "\\'");
    format!("'{escaped}'")
}

/// The chain that matches the node of this id.
pub(crate) fn chain(id: &str) -> String {
    format!("[id={}]", quoted(id))
}
