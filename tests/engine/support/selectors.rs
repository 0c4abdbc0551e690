//! Random selectors over a session, drawn from its own nodes so that most of them match.

use super::compare::one_vocabulary;
use super::documents::{KEYS, KINDS, ROLES, TAGS};
use super::json::Json;
use super::random::Rng;
use super::selector::{
    Axis, Body, Chain, Condition, Controls, Depths, Edition, Filter, Hop, Kind, NodeStep, Op,
    Order, Part, Prop, Pseudo, Region, Search, Sel, Sign, Step, Time, Value,
};
use super::text::is_word;
use super::tree::{Class, Item, Session, Tree};

/// A random selector without a time.
pub(crate) fn selector(rng: &mut Rng, session: &Session, edition: Edition) -> Sel {
    make(rng, session, edition, 0)
}

/// A random selector without a time, most often with conditions on other nodes.
pub(crate) fn with_conditions(rng: &mut Rng, session: &Session) -> Sel {
    make(rng, session, Edition::Canonical, 45)
}

/// `conditions`: in how many of a hundred steps there is one.
fn make(rng: &mut Rng, session: &Session, edition: Edition, conditions: u64) -> Sel {
    let mut trees: Vec<&Tree> = session.committed.iter().collect();
    trees.extend(&session.working);
    let tree = *rng.pick(&trees);
    // Some selectors have picks and depths in most steps, so that they meet.
    let (picks, depths) = *rng.pick(&[(12, 6), (12, 6), (12, 40), (45, 40)]);
    let mut maker = Maker {
        rng,
        tree,
        edition,
        conditions,
        picks,
        depths,
        level: 0,
    };
    let body = if edition != Edition::V01 && maker.rng.chance(30) {
        maker.position_or_search()
    } else {
        Body::Union(maker.union())
    };
    let mut sel = Sel {
        time: Time::Omitted,
        body,
        filters: Vec::new(),
        controls: Controls::default(),
    };
    if edition == Edition::Canonical {
        maker.filters_and_controls(&mut sel);
    } else if matches!(sel.body, Body::Position(..)) && maker.rng.chance(20) {
        let target = maker.rng.below(maker.tree.nodes.len());
        let props = maker.one_prop(target);
        sel.filters.push(Filter::Brackets(props));
    }
    drop_dead_groups(session, edition, &mut sel);
    sel
}

/// Removes groups without any match from a union that pins a key. The engine drops groups that
/// are contradictions before it looks at pinned keys; the interpreter does not know contradictions.
fn drop_dead_groups(session: &Session, edition: Edition, sel: &mut Sel) {
    let text = super::text::plain(sel, edition);
    let Body::Union(chains) = &mut sel.body else {
        return;
    };
    if chains.len() == 1 || !text.contains("key") && !text.contains('#') {
        return;
    }
    let trees: Vec<&Tree> = session.committed.iter().chain(&session.working).collect();
    let matches = |chain: &Chain| {
        let eval = |tree| super::eval::Eval {
            session,
            tree,
            edition,
        };
        let is_node = |item: &Item| matches!(item, Item::Node(_));
        trees
            .iter()
            .any(|tree| eval(tree).chain(chain).iter().any(is_node))
    };
    let live: Vec<Chain> = chains
        .iter()
        .filter(|chain| matches(chain))
        .cloned()
        .collect();
    if !live.is_empty() {
        *chains = live;
    }
}

/// Whether a test reads a facet, which needs an explicit time.
pub(crate) fn has_facet(sel: &Sel) -> bool {
    let text = super::text::plain(sel, Edition::Canonical);
    FACETS.iter().any(|facet| {
        // `depth(` is a pseudo-class or an anchor.
        let mut found = text.match_indices(facet);
        found.any(|(at, facet)| !text[at + facet.len()..].starts_with('('))
    })
}

pub(crate) const FACETS: [&str; 4] = ["sdepth", "born_turn", "age", "depth"];

struct Maker<'a> {
    rng: &'a mut Rng,
    tree: &'a Tree,
    edition: Edition,
    /// In how many of a hundred steps there is a condition.
    conditions: u64,
    /// In how many of a hundred steps there is a pick.
    picks: u64,
    /// In how many of a hundred steps below a turn there are depths.
    depths: u64,
    /// How deep the present step is in conditions.
    level: u64,
}

impl Maker<'_> {
    fn condition(&mut self, node: usize) -> Condition {
        let kinds = [
            Kind::Has,
            Kind::Has,
            Kind::Not,
            Kind::Is,
            Kind::After,
            Kind::Before,
            Kind::HasResult,
            Kind::HasCall,
        ];
        let kind = *self.rng.pick(&kinds);
        self.level += 1;
        let count = self.rng.range(1, 2) as usize;
        let mut list = Vec::new();
        match kind {
            Kind::HasResult | Kind::HasCall if self.rng.chance(40) => {}
            Kind::Not | Kind::Is | Kind::HasResult | Kind::HasCall => {
                for _ in 0..count {
                    let like = if self.rng.chance(60) {
                        node
                    } else {
                        self.rng.below(self.tree.nodes.len())
                    };
                    list.push((Axis::Descendant, self.test(like)));
                }
            }
            Kind::Has => {
                let below = self.tree.below(Item::Node(node));
                let below: Vec<usize> = below
                    .into_iter()
                    .filter_map(|item| match item {
                        Item::Node(node) => Some(node),
                        Item::Core(_) => None,
                    })
                    .collect();
                for _ in 0..count {
                    let chain = if below.is_empty() {
                        self.chain()
                    } else {
                        let target = *self.rng.pick(&below);
                        let mut chain = self.chain_to(target);
                        // The first steps are above the node more often than not.
                        while chain.steps.len() > 1 && self.rng.chance(75) {
                            chain.steps.remove(0);
                        }
                        chain
                    };
                    list.push((self.axis(), chain));
                }
            }
            Kind::After | Kind::Before => {
                for _ in 0..count {
                    list.push((Axis::Descendant, self.chain()));
                }
            }
        }
        self.level -= 1;
        let near = matches!(kind, Kind::After | Kind::Before) && self.rng.chance(50);
        let within = near.then(|| self.rng.range(0, 3));
        Condition { kind, within, list }
    }

    /// One step without picks.
    fn test(&mut self, node: usize) -> Chain {
        let mut step = self.node_step(node);
        if self.rng.chance(15) {
            step = self.core_step();
        }
        if let Step::Node(step) = &mut step {
            step.pseudos.retain(|pseudo| !pseudo.is_pick());
            if step.parts.is_empty() && step.pseudos.is_empty() {
                step.parts.push(Part::Star);
            }
        }
        Chain {
            steps: vec![(Axis::Descendant, step)],
        }
    }

    fn union(&mut self) -> Vec<Chain> {
        if self.rng.chance(6) {
            // Groups that end in one key are in key order.
            let key = *self.rng.pick(&KEYS);
            let count = self.rng.range(1, 2);
            let mut chains: Vec<Chain> = (0..count).map(|_| self.chain()).collect();
            for chain in &mut chains {
                let pin = Part::Attr(Prop::new("key", Op::Eq, Value::text(key)));
                match chain.steps.last_mut() {
                    Some((_, Step::Node(step))) if self.rng.chance(70) => {
                        step.parts
                            .retain(|part| !matches!(part, Part::Attr(_) | Part::Hash(_)));
                        step.parts.push(pin);
                    }
                    _ => {
                        let parts = vec![Part::Star, pin];
                        let pseudos = Vec::new();
                        let step = Step::Node(NodeStep { parts, pseudos });
                        chain.steps = vec![(Axis::Descendant, step)];
                    }
                }
            }
            return chains;
        }
        let mut chains = vec![self.chain()];
        while self.rng.chance(18) {
            chains.push(self.chain());
        }
        chains
    }

    /// A chain along the path to some node: steps for some of its ancestors, with zones and
    /// implicit cores where the grammar allows them.
    fn chain(&mut self) -> Chain {
        let target = self.rng.below(self.tree.nodes.len());
        self.chain_to(target)
    }

    fn chain_to(&mut self, target: usize) -> Chain {
        let mut path = vec![target];
        while let Some(parent) = self.tree.nodes[path[0]].parent {
            path.insert(0, parent);
        }
        let keep = *self.rng.pick(&[10, 35, 60, 85]);
        let mut steps: Vec<(Axis, Step)> = Vec::new();
        let mut last: Option<usize> = None;
        for (i, node) in path.iter().copied().enumerate() {
            if node != target && !self.rng.chance(keep) {
                continue;
            }
            let direct = last.is_some_and(|last| last + 1 == i);
            let axis = if direct && self.rng.chance(50) || self.rng.chance(3) {
                Axis::Child
            } else {
                Axis::Descendant
            };
            let turn = if i > 0 { path[i - 1] } else { 0 };
            let in_core = i > 0
                && self.tree.has_implicit_core(turn)
                && self
                    .tree
                    .children(Item::Core(turn))
                    .contains(&Item::Node(node));
            if in_core && self.rng.chance(35) {
                steps.push((axis, self.core_step()));
                steps.push((self.axis(), self.node_step(node)));
            } else if self.rng.chance(7) {
                let offset = self.tree.nodes[node].offset;
                steps.push((axis, Step::Zone(sign(offset))));
                if self.rng.chance(15) {
                    let sign = *self.rng.pick(&[Sign::Pre, Sign::Core, Sign::Post]);
                    steps.push((self.axis(), Step::Zone(sign)));
                }
                if self.rng.chance(60) {
                    steps.push((self.axis(), self.node_step(node)));
                }
            } else {
                steps.push((axis, self.node_step(node)));
            }
            last = Some(i);
        }
        steps[0].0 = Axis::Descendant;
        Chain { steps }
    }

    fn axis(&mut self) -> Axis {
        if self.rng.chance(50) {
            Axis::Child
        } else {
            Axis::Descendant
        }
    }

    fn core_step(&mut self) -> Step {
        let mut parts = vec![Part::Type("mc".to_owned(), None)];
        let mut pseudos = Vec::new();
        if self.rng.chance(15) {
            let props = [
                Prop::new("offset", Op::Eq, Value::int(0)),
                Prop::new("role", Op::Ne, Value::text("user")),
                Prop::new("priority", Op::Eq, Value::int(0)),
                Prop::new("ttl", Op::Eq, Value::Null),
                Prop::new("nodeType", Op::Eq, Value::text("cont")),
            ];
            parts.push(Part::Attr(self.rng.pick(&props).clone()));
        }
        if self.rng.chance(25) {
            pseudos.push(self.pick_pseudo());
        } else if self.rng.chance(20) {
            pseudos.push(Pseudo::Offset(Sign::Core));
        }
        Step::Node(NodeStep { parts, pseudos })
    }

    fn pick_pseudo(&mut self) -> Pseudo {
        match self.rng.below(4) {
            0 | 1 => Pseudo::First,
            2 => Pseudo::Last,
            _ => Pseudo::Nth(self.rng.range(1, 3) as usize),
        }
    }

    fn node_step(&mut self, node: usize) -> Step {
        let n = &self.tree.nodes[node];
        let later = self.edition != Edition::V01;
        let mut parts = Vec::new();
        let mut pseudos = Vec::new();
        let region = match n.class {
            Class::Root => Some(Region::Root),
            Class::Sys => Some(Region::Sys),
            Class::Seq => Some(Region::Seq),
            Class::Head => Some(Region::Head),
            _ => None,
        };
        match region {
            Some(region) if self.rng.chance(80) => parts.push(Part::Root(region)),
            None if self.rng.chance(60) => parts.push(self.type_part(node)),
            _ if later && n.depth.is_some() && self.rng.chance(30) => {
                let depths = self.depths(n.depth.unwrap());
                parts.push(Part::Anchor(depths));
            }
            _ => {}
        }
        if self.rng.chance(6) {
            match (self.edition, n.field("key").and_then(Json::as_str)) {
                (Edition::Canonical, None) => {}
                (Edition::Canonical, Some(key)) => parts.push(Part::Hash(key.to_owned())),
                _ => parts.push(Part::Hash(n.id.clone())),
            }
        }
        while self.rng.chance(25) && parts.len() < 4 {
            parts.push(Part::Attr(self.prop(node)));
        }
        if self.edition == Edition::Canonical
            && self.rng.chance(8)
            && let Some(tags) = n.tags()
            && !tags.is_empty()
        {
            parts.push(Part::Tag(self.rng.pick(&tags).clone()));
        }
        if let Some(depth) = n.depth
            && (later || depth > 0)
            && self.rng.chance(if n.class == Class::Turn {
                30
            } else {
                self.depths
            })
        {
            pseudos.push(Pseudo::Depth(self.depths(depth)));
        }
        if self.rng.chance(8) {
            pseudos.push(Pseudo::Offset(sign(n.offset)));
        }
        if self.rng.chance(self.picks) {
            pseudos.push(self.pick_pseudo());
            // Pseudo-classes after a pick narrow what was picked.
            if self.rng.chance(15) {
                pseudos.push(self.pick_pseudo());
            } else if self.rng.chance(10) {
                pseudos.push(Pseudo::Offset(sign(n.offset)));
            } else if self.rng.chance(10)
                && let Some(depth) = n.depth
                && (later || depth > 0)
            {
                pseudos.push(Pseudo::Depth(self.depths(depth)));
            }
        }
        let odds = self.conditions >> (2 * self.level);
        if self.conditions > 0 && self.level < 3 && self.rng.chance(odds) {
            let condition = Pseudo::Condition(self.condition(node));
            // Before the picks, or behind one.
            let at = self.rng.below(pseudos.len() + 1);
            pseudos.insert(at, condition);
        }
        if parts.is_empty() && pseudos.is_empty() || self.rng.chance(3) {
            parts.insert(0, Part::Star);
        }
        // A step of nothing but an offset pseudo-class would be a zone.
        if parts.is_empty() && matches!(pseudos.as_slice(), [Pseudo::Offset(_)]) {
            parts.push(Part::Star);
        }
        Step::Node(NodeStep { parts, pseudos })
    }

    fn type_part(&mut self, node: usize) -> Part {
        let n = &self.tree.nodes[node];
        let stored = one_vocabulary(&n.read_type());
        let class = match n.class {
            Class::Turn => "mt",
            Class::Container => "mc",
            _ => "cb",
        };
        let (head, sub) = stored.split_once(':').unwrap_or((&stored, ""));
        if self.rng.chance(75) || !is_word(&stored) {
            let wrong = self.rng.chance(4);
            let class = if wrong {
                *self.rng.pick(&["mt", "mc", "cb"])
            } else {
                class
            };
            return Part::Type(class.to_owned(), None);
        }
        match sub {
            "" => Part::Type(head.to_owned(), None),
            sub => Part::Type(head.to_owned(), Some(sub.to_owned())),
        }
    }

    /// A set of depths, most often with `depth` in it.
    fn depths(&mut self, depth: i64) -> Depths {
        let lowest = if self.edition == Edition::V01 { 1 } else { -1 };
        let depth = if self.rng.chance(15) {
            self.rng.range(lowest, 5)
        } else {
            depth.max(lowest)
        };
        match self.rng.below(5) {
            0 => {
                let low = self.rng.range(lowest, depth);
                Depths(vec![(Some(low), Some(self.rng.range(depth, depth + 2)))])
            }
            1 => {
                let mut all = vec![(Some(depth), Some(depth))];
                for _ in 0..self.rng.range(1, 2) {
                    let other = self.rng.range(lowest, 6);
                    all.push((Some(other), Some(other)));
                }
                self.rng.shuffle(&mut all);
                Depths(all)
            }
            2 if self.edition != Edition::V01 => match self.rng.below(2) {
                0 => Depths(vec![(None, Some(depth))]),
                _ => Depths(vec![(Some(depth), None)]),
            },
            _ => Depths::one(depth),
        }
    }

    /// A comparison on an attribute the node has, most often a true one.
    fn prop(&mut self, node: usize) -> Prop {
        let n = &self.tree.nodes[node];
        if self.rng.chance(4) {
            // In quotes: a header of exactly that name, or a custom attribute.
            let names = [
                "tag",
                "bytes",
                "cad",
                "tags",
                "parent_id",
                "type",
                "age",
                "data my",
                "sticky",
            ];
            let name = *self.rng.pick(&names);
            let value = match name {
                "parent_id" => self.value(node, "parent"),
                name => self.value(node, name),
            };
            let op = *self.rng.pick(&[Op::Eq, Op::Ne, Op::Ge]);
            let test = self.rng.chance(70).then_some((op, value));
            let (name, exact) = (name.to_owned(), true);
            return Prop { name, exact, test };
        }
        let mut names: Vec<&str> = n
            .fields
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| *name != "content" || self.rng.chance(50))
            .collect();
        names.extend([
            "offset",
            "ttl",
            "priority",
            "created_at_ns",
            "creation_index",
            "id",
            "nodeType",
            "parent",
            "role",
            "kind",
            "key",
            "tags",
            "data_s",
            "data_n",
            "status",
        ]);
        if self.rng.chance(3) {
            names.push("content_hash");
        }
        if self.edition != Edition::V01 && self.rng.chance(30) {
            names = FACETS.to_vec();
        }
        if self.edition == Edition::Canonical && self.rng.chance(10) {
            names = vec!["stored_type", "stored_kind"];
        }
        if self.rng.chance(4) {
            names = vec!["bytes", "tokens"];
        }
        let name = match *self.rng.pick(&names) {
            "tag" => "tags",
            "cad" => "cadence",
            "parent_id" => "parent",
            other => other,
        };
        let name = name.to_owned();
        if self.rng.chance(10) {
            return Prop::present(&name);
        }
        if self.rng.chance(7) {
            let op = if self.rng.chance(50) { Op::Eq } else { Op::Ne };
            return Prop::new(&name, op, Value::Null);
        }
        if self.rng.chance(3) {
            let op = *self.rng.pick(&[Op::Lt, Op::Le, Op::Gt, Op::Ge]);
            return Prop::new(&name, op, Value::Null);
        }
        let ops = [
            Op::Eq,
            Op::Eq,
            Op::Eq,
            Op::Eq,
            Op::Ne,
            Op::Lt,
            Op::Le,
            Op::Le,
            Op::Gt,
            Op::Ge,
            Op::Ge,
        ];
        let op = *self.rng.pick(&ops);
        let value = self.value(node, &name);
        if self.edition == Edition::Canonical && self.rng.chance(10) {
            return self.canonical_prop(node, &name, value);
        }
        Prop::new(&name, op, value)
    }

    /// Lists and regular expressions.
    fn canonical_prop(&mut self, node: usize, name: &str, value: Value) -> Prop {
        if self.rng.chance(50) {
            let mut values = vec![value];
            for _ in 0..self.rng.below(3) {
                let other = self.rng.below(self.tree.nodes.len());
                values.push(self.value(other, name));
            }
            if self.rng.chance(10) {
                let other = self.value(node, name);
                values.push(other);
            }
            if self.rng.chance(10) {
                values.push(Value::Null);
            }
            let op = if self.rng.chance(70) { Op::Eq } else { Op::Ne };
            return Prop::new(name, op, Value::List(values));
        }
        match value {
            Value::Text(text) => {
                let start: String = text.chars().take(2).collect();
                let pattern = match self.rng.below(4) {
                    0 => format!("^{}", regex::escape(&start)),
                    1 => regex::escape(&text),
                    2 => (*self.rng.pick(&["[a-c]+$", "^\\d", "e"])).to_owned(),
                    _ => format!("(?i){}", regex::escape(&start)),
                };
                Prop::new(name, Op::Matches, Value::Text(pattern))
            }
            other => Prop::new(name, Op::Eq, other),
        }
    }

    /// A literal for the attribute, most often the node's own value.
    fn value(&mut self, node: usize, name: &str) -> Value {
        let node = if self.rng.chance(75) {
            node
        } else {
            self.rng.below(self.tree.nodes.len())
        };
        let n = &self.tree.nodes[node];
        match name {
            "offset" | "ttl" | "priority" | "cycle" | "created_at_ns" | "creation_index"
            | "cadence" => {
                let own = n.field(name).and_then(Json::as_int).unwrap_or(0);
                match self.rng.below(10) {
                    0 => Value::int(own.saturating_add(1)),
                    1 => Value::int(own.saturating_sub(1)),
                    2 => Value::int(self.rng.range(-3, 9)),
                    3 if own < 1000 => Value::Num(format!("{own}.{}", self.rng.pick(&["0", "5"]))),
                    _ => Value::int(own),
                }
            }
            "bytes" | "tokens" => {
                let own = match name {
                    "bytes" => n.bytes(),
                    _ => (n.bytes() + 3) / 4,
                };
                Value::int(own + *self.rng.pick(&[0, 0, 0, 0, -1, 1]))
            }
            "depth" => Value::int(n.depth.unwrap_or(1) + self.rng.range(-1, 1)),
            "sdepth" => Value::int(n.level + self.rng.range(-1, 1)),
            "born_turn" => Value::int(self.tree.cycle - self.rng.range(0, 4)),
            "age" if self.rng.chance(10) => Value::int(*self.rng.pick(&[i64::MIN, i64::MAX])),
            "age" => Value::int(self.rng.range(0, 4)),
            "id" => Value::text(&n.id),
            "parent" => Value::text(n.parent.map_or("root", |p| self.tree.id(p))),
            "nodeType" | "stored_type" => Value::Text(self.node_type(node)),
            "content_hash" => Value::Text(n.content_hash()),
            "tags" => {
                let own = n.tags().unwrap_or_default();
                let all: Vec<&str> = own.iter().map(String::as_str).chain(TAGS).collect();
                Value::text(self.rng.pick::<&str>(&all))
            }
            "role" => self.text_of(node, name, &ROLES),
            "kind" | "stored_kind" => self.text_of(node, "kind", &KINDS),
            "key" => self.text_of(node, name, &KEYS),
            "content" | "created_at_iso" => self.text_of(node, name, &["abc", "10", "2024"]),
            _ => {
                let own = match n.field(name) {
                    Some(Json::List(items)) if !items.is_empty() => self.rng.pick(items).clone(),
                    Some(own) => own.clone(),
                    None => Json::Null,
                };
                match own {
                    Json::Num(text) if text.parse::<i64>().is_ok() || text.contains('.') => {
                        match self.rng.below(7) {
                            0 => Value::Text(text),
                            1 => Value::int(self.rng.range(-3, 10)),
                            2 => Value::Num(self.respelled(&text)),
                            _ => Value::Num(text),
                        }
                    }
                    Json::Str(text) => Value::Text(text),
                    Json::Bool(value) => Value::Text(value.to_string()),
                    _ => self
                        .rng
                        .pick(&[
                            Value::int(5),
                            Value::text("abc"),
                            Value::text("7"),
                            Value::Num("007".to_owned()),
                            Value::Num("-0".to_owned()),
                        ])
                        .clone(),
                }
            }
        }
    }

    /// A number in another spelling of the same value.
    fn respelled(&mut self, number: &str) -> String {
        match (number.strip_prefix('-'), number.contains('.')) {
            (Some(digits), _) => format!("-0{digits}"),
            (None, true) => format!("{number}0"),
            (None, false) => format!("{}{number}", self.rng.pick(&["+", "0", "00"])),
        }
    }

    fn node_type(&mut self, node: usize) -> String {
        let stored = self.tree.nodes[node].read_type();
        let one = one_vocabulary(&stored);
        match self.rng.below(4) {
            0 => one,
            1 => one.split(':').next().unwrap_or("cb").to_owned(),
            2 => one.replacen("cb", "block", 1).replacen("mt", "seg", 1),
            _ => stored,
        }
    }

    fn text_of(&mut self, node: usize, name: &str, others: &[&str]) -> Value {
        let own = self.tree.nodes[node].field(name).and_then(Json::as_str);
        match own {
            Some(own) if self.rng.chance(80) => Value::text(own),
            _ if self.rng.chance(3) => Value::int(10),
            _ => Value::text(self.rng.pick::<&str>(others)),
        }
    }

    /// A position along the path to some node, or a search.
    fn position_or_search(&mut self) -> Body {
        let target = self.rng.below(self.tree.nodes.len());
        let searches = self.edition == Edition::Canonical;
        if searches && self.rng.chance(35) {
            let props = self.some_props(target);
            return Body::Search(props);
        }
        let mut path = vec![target];
        while let Some(parent) = self.tree.nodes[path[0]].parent {
            path.insert(0, parent);
        }
        path.remove(0);
        let mut hops = Vec::new();
        let anchor = path.iter().position(|node| {
            let n = &self.tree.nodes[*node];
            matches!(n.class, Class::Sys | Class::Head)
                || n.class == Class::Turn
                    && n.parent
                        .is_some_and(|p| self.tree.nodes[p].class == Class::Seq)
        });
        if let Some(anchor) = anchor {
            let depth = self.tree.nodes[path[anchor]].depth.unwrap_or(0);
            hops.push(Hop::Depth(self.depths(depth)));
            if self.rng.chance(15) {
                let other = self.rng.range(-1, 4);
                hops.push(Hop::Depth(Depths::one(other)));
            }
            if self.rng.chance(25) {
                let props = self.few_props(path[anchor]);
                hops.push(Hop::Class("mt".to_owned(), None, props));
            }
            path.drain(..=anchor);
        }
        for (i, node) in path.iter().enumerate() {
            if i + 1 < path.len() && self.rng.chance(10) {
                break;
            }
            let hop = self.hop(*node);
            hops.push(hop);
        }
        if hops.is_empty() {
            hops.push(Hop::Offset(None, None, Vec::new()));
        }
        // `-1` or `+N` as the last hop would be an insertion point.
        if let Some(Hop::Offset(Some(offset), None, props)) = hops.last_mut()
            && *offset < 0
            && props.is_empty()
        {
            props.push(Prop::present("id"));
        }
        let search = (searches && self.rng.chance(25)).then(|| Search {
            axis: self.axis(),
            props: self.some_props(target),
        });
        Body::Position(hops, search)
    }

    fn hop(&mut self, node: usize) -> Hop {
        let n = &self.tree.nodes[node];
        let props = self.few_props(node);
        let class = match n.class {
            Class::Turn => Some("mt"),
            Class::Container => Some("mc"),
            Class::Block => Some("cb"),
            _ => None,
        };
        match self.rng.below(8) {
            0 => Hop::Offset(None, None, props),
            1 => Hop::Offset(Some(n.offset), None, props),
            2 | 3 => {
                let offset = self.rng.chance(40).then_some(n.offset);
                Hop::Offset(offset, class.map(str::to_owned), props)
            }
            4 if self.edition == Edition::Canonical => Hop::Props(self.some_props(node)),
            _ => match class {
                Some(class) => Hop::Class(class.to_owned(), None, props),
                None => Hop::Offset(None, None, props),
            },
        }
    }

    fn few_props(&mut self, node: usize) -> Vec<Prop> {
        if self.rng.chance(60) {
            Vec::new()
        } else {
            self.some_props(node)
        }
    }

    fn one_prop(&mut self, node: usize) -> Vec<Prop> {
        vec![self.prop(node)]
    }

    fn some_props(&mut self, node: usize) -> Vec<Prop> {
        let mut props = self.one_prop(node);
        // Several in one bracket are for the canonical edition.
        while self.edition == Edition::Canonical && self.rng.chance(25) {
            props.push(self.prop(node));
        }
        props
    }

    fn filters_and_controls(&mut self, sel: &mut Sel) {
        let target = self.rng.below(self.tree.nodes.len());
        if self.rng.chance(12) {
            let props = self.some_props(target);
            sel.filters.push(Filter::Braces(props));
            if self.rng.chance(30) {
                let props = self.some_props(target);
                sel.filters.push(Filter::Brackets(props));
            }
        }
        if self.rng.chance(8) {
            sel.filters
                .push(Filter::Tag((*self.rng.pick(&TAGS)).to_owned()));
        }
        if self.rng.chance(20) {
            let orders = [
                Order::Pre,
                Order::Post,
                Order::Bfs,
                Order::Path,
                Order::TurnDesc,
                Order::TurnAsc,
            ];
            sel.controls.order = Some(*self.rng.pick(&orders));
        }
        sel.controls.unique = self.rng.chance(8);
        if self.rng.chance(15) {
            sel.controls.limit = Some(self.rng.range(0, 5) as u64);
            sel.controls.page = self.rng.chance(40).then(|| self.rng.range(1, 3) as u64);
        }
    }
}

fn sign(offset: i64) -> Sign {
    match offset {
        ..0 => Sign::Pre,
        0 => Sign::Core,
        1.. => Sign::Post,
    }
}
