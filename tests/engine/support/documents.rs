//! Random sessions with every feature of the tree model, as the lines of a session file.

use super::draft::{Draft, delta, one_core, take};
use super::json::Json;
use super::random::Rng;
use super::tree::Session;

/// A random session: its lines, and how the reference interpreter reads them.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) lines: Vec<String>,
    pub(crate) session: Session,
}

impl Sample {
    /// The session of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut maker = Maker {
            rng: Rng::new(seed),
            next_id: 0,
            time: 0,
        };
        Self::of(maker.session())
    }

    /// The session of these lines.
    pub(crate) fn of(lines: Vec<String>) -> Self {
        let session = Session::from_lines(&lines);
        Self { lines, session }
    }

    /// A long session of many turns, in which most snapshots only seal one.
    pub(crate) fn long(seed: u64, turns: usize) -> Self {
        let mut maker = Maker {
            rng: Rng::new(seed),
            next_id: 0,
            time: 0,
        };
        Self::of(maker.long_session(turns))
    }

    /// The lines as one JSONL text.
    pub(crate) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

struct Maker {
    rng: Rng,
    next_id: usize,
    time: i64,
}

/// Few different values, so that selectors find something.
pub(crate) const ROLES: [&str; 5] = ["user", "assistant", "tool", "system", ""];
pub(crate) const KINDS: [&str; 6] = ["text", "call", "result", "summary", "image", "né"];
pub(crate) const KEYS: [&str; 4] = ["K", "hero", "hero banner", ""];
pub(crate) const TAGS: [&str; 4] = ["a", "b", "featured", "to do"];
const TEXTS: [&str; 16] = [
    "abc",
    "10",
    "9",
    "1.50",
    "+7",
    "-2",
    "",
    "true",
    "1e5",
    "é",
    "日本",
    "it's",
    "a\"b",
    "back\\slash",
    "ABC",
    "1.",
];
const NUMBERS: [&str; 9] = [
    "0",
    "1",
    "-3",
    "10",
    "1.5",
    "2.0",
    "9007199254740993",
    "18446744073709551616",
    "-0.5",
];
const BLOCK_TYPES: [&str; 10] = [
    "cb",
    "block",
    "cb:summary",
    "block:summary",
    "cb:call",
    "custom:note",
    "note",
    "custom",
    "cb:a:b",
    "cb:first",
];

impl Maker {
    fn session(&mut self) -> Vec<String> {
        let count = self.rng.range(1, 6);
        let mut draft = self.document();
        let mut cycle = if self.rng.chance(50) {
            1
        } else {
            self.rng.range(0, 40)
        };
        let numbered = cycle != 1 || self.rng.chance(70);
        let mut lines = Vec::new();
        let mut earlier: Vec<(i64, Draft)> = Vec::new();
        for number in 0..count {
            if number > 0 {
                draft = self.next(draft);
                cycle += if numbered {
                    self.rng.range(1, 3).min(2)
                } else {
                    1
                };
            }
            let base = match earlier.len() {
                0 => None,
                n if self.rng.chance(80) => Some(n - 1),
                n => Some(self.rng.below(n)),
            };
            let delta = base.and_then(|base| delta(&earlier[base], &draft, cycle));
            lines.push(match delta {
                Some(delta) if self.rng.chance(50) => delta.write(),
                _ => self.full(&draft, numbered.then_some(cycle), false),
            });
            earlier.push((cycle, draft.clone()));
        }
        if self.rng.chance(40) {
            let working = self.next(draft);
            lines.push(self.full(&working, None, true));
        }
        lines
    }

    /// A document of many turns, then snapshots that seal one each and change little else.
    fn long_session(&mut self, turns: usize) -> Vec<String> {
        let mut draft = self.document();
        while draft.region("^seq").is_none() || draft.region("^ah").is_none() {
            draft = self.document();
        }
        for _ in 0..turns / 2 {
            self.seal(&mut draft);
        }
        one_core(&mut draft);
        let mut lines = vec![self.full(&draft, Some(1), false)];
        for cycle in 2..=(turns / 2) as i64 {
            let before = (cycle - 1, draft.clone());
            self.seal(&mut draft);
            if self.rng.chance(20) {
                self.mutate(&mut draft);
            }
            if self.rng.chance(10) {
                self.pass(&mut draft);
            }
            one_core(&mut draft);
            lines.push(match delta(&before, &draft, cycle) {
                Some(delta) if self.rng.chance(90) => delta.write(),
                _ => self.full(&draft, Some(cycle), false),
            });
        }
        lines
    }

    fn full(&mut self, draft: &Draft, cycle: Option<i64>, working: bool) -> String {
        let mut members = Vec::new();
        if self.rng.chance(20) {
            members.push(("spec_version".to_owned(), Json::text("PACT/0.1.0")));
        }
        if let Some(cycle) = cycle {
            members.push(("cycle".to_owned(), Json::int(cycle)));
        }
        if working {
            members.push(("working".to_owned(), Json::Bool(true)));
        }
        let mut draft = draft.clone();
        self.shuffle(&mut draft);
        members.push(("root".to_owned(), draft.to_json()));
        Json::Obj(members).write()
    }

    /// Siblings may be in any order in a document.
    fn shuffle(&mut self, draft: &mut Draft) {
        if self.rng.chance(60) {
            self.rng.shuffle(&mut draft.children);
        }
        if draft.children.is_empty() && self.rng.chance(4) {
            draft.set("children", Json::Null);
        }
        if self.rng.chance(20) {
            self.rng.shuffle(&mut draft.fields);
        }
        for child in &mut draft.children {
            self.shuffle(child);
        }
    }

    fn id(&mut self) -> String {
        self.next_id += 1;
        let n = self.next_id;
        match self.rng.below(16) {
            0 => format!("é{n}"),
            1 => format!("b {n}"),
            2 => format!("v{n}.2"),
            3 => format!("日本:{n}"),
            4 => format!("{n}"),
            5 => format!("cb:{n}:first"),
            6 => format!("A{}", 9_999 - n),
            7 => format!("o'{n}"),
            8 => format!("\"q\\{n}"),
            9 => format!("_x-{n}"),
            10 => format!("😀{n}"),
            _ => format!("cb:{n}"),
        }
    }

    fn document(&mut self) -> Draft {
        let mut root = Draft {
            id: self.rng.chance(50).then(|| "root".to_owned()),
            fields: Vec::new(),
            children: Vec::new(),
        };
        if self.rng.chance(30) {
            root.set("nodeType", Json::text("^root"));
        }
        if self.rng.chance(90) {
            let mut sys = self.region("^sys");
            for _ in 0..self.rng.below(4) {
                sys.children.push(self.any(2));
            }
            root.children.push(sys);
        }
        if self.rng.chance(93) {
            let mut seq = self.region("^seq");
            for _ in 0..self.rng.below(6) {
                seq.children.push(self.turn(2));
            }
            while self.rng.chance(15) {
                seq.children.push(self.any(2));
            }
            root.children.push(seq);
        }
        if self.rng.chance(90) {
            let mut head = self.region("^ah");
            self.fill_turn(&mut head, 2);
            root.children.push(head);
        }
        while self.rng.chance(12) {
            root.children.push(self.any(2));
        }
        one_core(&mut root);
        root
    }

    fn region(&mut self, node_type: &str) -> Draft {
        let mut region = self.headers();
        region.set("nodeType", Json::text(node_type));
        // Regions come in a fixed order, whatever their headers say.
        if self.rng.chance(60) {
            region.unset("offset");
        }
        region
    }

    fn turn(&mut self, levels: usize) -> Draft {
        let mut turn = self.headers();
        let types = ["mt", "mt", "mt", "seg", "mt:plan", "seg:plan"];
        turn.set("nodeType", Json::text(self.rng.pick::<&str>(&types)));
        if self.rng.chance(15) {
            turn.unset("nodeType");
        }
        if self.rng.chance(70) {
            turn.unset("offset");
        }
        self.fill_turn(&mut turn, levels);
        turn
    }

    fn fill_turn(&mut self, turn: &mut Draft, levels: usize) {
        for _ in 0..self.rng.below(3) {
            let offset = self.rng.range(-2, -1);
            turn.children.push(self.block(levels, Some(offset)));
        }
        if self.rng.chance(50) {
            let offset = if self.rng.chance(70) { Some(0) } else { None };
            turn.children.push(self.container(levels, offset));
        } else {
            for _ in 0..self.rng.below(4) {
                let offset = if self.rng.chance(50) { Some(0) } else { None };
                turn.children.push(self.block(levels, offset));
            }
        }
        for _ in 0..self.rng.below(3) {
            let offset = self.rng.range(1, 2);
            turn.children.push(self.block(levels, Some(offset)));
        }
        while self.rng.chance(12) {
            let mut other = self.any(levels);
            if self.rng.chance(50) {
                other.unset("offset");
            }
            turn.children.push(other);
        }
    }

    fn container(&mut self, levels: usize, offset: Option<i64>) -> Draft {
        let mut container = self.headers();
        let types = ["mc", "mc", "cont", "mc:alt"];
        container.set("nodeType", Json::text(self.rng.pick::<&str>(&types)));
        if self.rng.chance(15) {
            container.unset("nodeType");
        }
        self.place(&mut container, offset);
        if levels > 0 {
            for _ in 0..self.rng.below(4) {
                let offset = if self.rng.chance(60) {
                    None
                } else {
                    Some(self.rng.range(-1, 1))
                };
                container.children.push(self.block(levels - 1, offset));
            }
            while self.rng.chance(8) {
                container.children.push(self.any(levels - 1));
            }
        }
        container
    }

    fn block(&mut self, levels: usize, offset: Option<i64>) -> Draft {
        let mut block = self.headers();
        if self.rng.chance(75) {
            block.set("nodeType", Json::text(self.rng.pick::<&str>(&BLOCK_TYPES)));
        }
        self.place(&mut block, offset);
        self.content(&mut block);
        if levels > 0 && self.rng.chance(8) {
            for _ in 0..self.rng.range(1, 2) {
                block.children.push(self.block(levels - 1, None));
            }
        }
        block
    }

    fn place(&mut self, node: &mut Draft, offset: Option<i64>) {
        match offset {
            Some(offset) => node.set("offset", Json::int(offset)),
            None => node.unset("offset"),
        }
    }

    fn any(&mut self, levels: usize) -> Draft {
        let offset = if self.rng.chance(50) {
            None
        } else {
            Some(self.rng.range(-2, 2))
        };
        match self.rng.below(10) {
            0 if levels > 0 => self.turn(levels - 1),
            1 | 2 => self.container(levels, offset),
            _ => self.block(levels, offset),
        }
    }

    /// A node with an id and some of the headers.
    fn headers(&mut self) -> Draft {
        let mut node = Draft {
            id: Some(self.id()),
            fields: Vec::new(),
            children: Vec::new(),
        };
        let ttl = self.rng.range(0, 4);
        let priority = self.rng.range(-1, 9);
        self.time += 1;
        if self.rng.chance(40) {
            node.set("offset", Json::int(self.rng.range(-2, 2)));
        }
        match self.rng.below(6) {
            0 => node.set("ttl", Json::Null),
            1 | 2 => node.set("ttl", Json::int(ttl)),
            _ => {}
        }
        if self.rng.chance(30) {
            node.set("priority", Json::int(priority));
        }
        match self.rng.below(5) {
            0 => node.set("created_at_ns", Json::int(self.rng.range(0, 2))),
            1 => node.set(
                "created_at_ns",
                Json::int(1_763_000_000_000_000_000 + self.time),
            ),
            2 => node.set("created_at_ns", Json::int(self.time)),
            _ => {}
        }
        if self.rng.chance(25) {
            node.set("creation_index", Json::int(self.rng.range(0, 2)));
        }
        if self.rng.chance(20) {
            node.set("cycle", Json::int(self.rng.range(0, 5)));
        }
        if self.rng.chance(2) {
            // So that an age leaves the numbers of 64 bits.
            let cycle = *self.rng.pick(&[i64::MIN, -1, i64::MAX]);
            node.set("cycle", Json::int(cycle));
        }
        if self.rng.chance(10) {
            node.set("created_at_iso", Json::text("2024-01-01T00:00:00Z"));
        }
        if self.rng.chance(12) {
            let name = self.spelled(&mut node, "cadence", "cad");
            node.set(name, Json::int(self.rng.range(1, 3)));
        }
        self.texts(&mut node);
        self.custom(&mut node);
        node
    }

    /// A header by its name or by its alias. With the alias, the name may be there too, as a null;
    /// with the name, the alias may be there too, and is ignored.
    fn spelled(
        &mut self,
        node: &mut Draft,
        name: &'static str,
        alias: &'static str,
    ) -> &'static str {
        match self.rng.below(10) {
            0 => alias,
            1 => {
                node.set(name, Json::Null);
                alias
            }
            2 => {
                let other = match alias {
                    "cad" => Json::int(2),
                    _ => Json::text(TAGS[0]),
                };
                node.set(alias, other);
                name
            }
            _ => name,
        }
    }

    fn texts(&mut self, node: &mut Draft) {
        for (name, values) in [("role", &ROLES[..]), ("kind", &KINDS), ("key", &KEYS)] {
            let percent = if name == "key" { 25 } else { 55 };
            if self.rng.chance(percent) {
                node.set(name, Json::text(self.rng.pick::<&str>(values)));
            } else if self.rng.chance(5) {
                node.set(name, Json::Null);
            }
        }
        if self.rng.chance(20) {
            let mut tags: Vec<&str> = TAGS.to_vec();
            self.rng.shuffle(&mut tags);
            tags.truncate(self.rng.below(4));
            let tags: Vec<Json> = tags.into_iter().map(Json::text).collect();
            let name = self.spelled(node, "tags", "tag");
            match tags.as_slice() {
                [one] if self.rng.chance(50) => node.set(name, one.clone()),
                _ => node.set(name, Json::List(tags)),
            }
        }
    }

    fn custom(&mut self, node: &mut Draft) {
        if self.rng.chance(25) {
            node.set("data_n", Json::Num((*self.rng.pick(&NUMBERS)).to_owned()));
        }
        if self.rng.chance(30) {
            let value = self.scalar();
            node.set("data_s", value);
        }
        if self.rng.chance(12) {
            let mut items: Vec<Json> = (0..self.rng.below(4)).map(|_| self.scalar()).collect();
            if self.rng.chance(25) {
                items.push(Json::Null);
            }
            if self.rng.chance(10) {
                items.insert(0, Json::List(vec![self.scalar()]));
            }
            node.set("data_l", Json::List(items));
        }
        if self.rng.chance(6) {
            let inner = self.scalar();
            node.set("data_o", Json::Obj(vec![("x".to_owned(), inner)]));
        }
        if self.rng.chance(10) {
            node.set("data_b", Json::Bool(self.rng.chance(50)));
        }
        if self.rng.chance(8) {
            node.set("content_mime", Json::text("text/plain"));
        }
        if self.rng.chance(8) {
            let value = self.scalar();
            node.set("status", value);
        }
        if self.rng.chance(4) {
            node.set("data my", Json::int(1));
        }
        if self.rng.chance(4) {
            node.set("data_s", Json::Null);
        }
    }

    fn scalar(&mut self) -> Json {
        match self.rng.below(4) {
            0 => Json::Num((*self.rng.pick(&NUMBERS)).to_owned()),
            1 if self.rng.chance(40) => Json::Bool(self.rng.chance(50)),
            _ => Json::text(self.rng.pick::<&str>(&TEXTS)),
        }
    }

    /// A list or an object, with others inside.
    fn structure(&mut self, levels: usize) -> Json {
        let count = self.rng.below(4);
        let items = (0..count).map(|_| match self.rng.below(5) {
            0 => Json::Null,
            1 | 2 if levels > 0 => self.structure(levels - 1),
            _ => self.scalar(),
        });
        let items: Vec<Json> = items.collect();
        if self.rng.chance(50) {
            return Json::List(items);
        }
        let names = ["a", "b\"c", "10", "abc"].map(str::to_owned);
        Json::Obj(names.into_iter().zip(items).collect())
    }

    fn content(&mut self, node: &mut Draft) {
        match self.rng.below(20) {
            0 => {}
            1 => node.set("content", Json::Null),
            2 | 3 => {
                let content = self.structure(3);
                node.set("content", content);
            }
            4 => {
                let content = self.scalar();
                node.set("content", content);
            }
            _ => node.set("content", Json::text(self.rng.pick::<&str>(&TEXTS))),
        }
        if self.rng.chance(4) {
            node.set(
                "content_hash",
                Json::text(self.rng.pick::<&str>(&["h1", "h2"])),
            );
        }
    }

    /// The next snapshot: ttls fall or stay, the head may be sealed, and some nodes come, go,
    /// change or move.
    fn next(&mut self, mut root: Draft) -> Draft {
        self.pass(&mut root);
        if self.rng.chance(60) {
            self.seal(&mut root);
        }
        for _ in 0..self.rng.below(5) {
            self.mutate(&mut root);
        }
        one_core(&mut root);
        root
    }

    /// One cycle passes: some ttls count down, and nodes at the end of theirs are removed.
    fn pass(&mut self, node: &mut Draft) {
        let counts = |node: &Draft| node.id.as_ref().is_some_and(|id| id.len() % 2 == 0);
        node.children.retain(|child| {
            let ttl = child.get("ttl").and_then(Json::as_int);
            child.is_region() || ttl != Some(0) || !counts(child)
        });
        if counts(node)
            && let Some(ttl) = node.get("ttl").and_then(Json::as_int)
        {
            node.set("ttl", Json::int((ttl - 1).max(0)));
        }
        for child in &mut node.children {
            self.pass(child);
        }
    }

    fn seal(&mut self, root: &mut Draft) {
        let mut fresh = self.turn(2);
        let mut children = std::mem::take(&mut fresh.children);
        let Some(head) = root.region("^ah") else {
            return;
        };
        std::mem::swap(&mut head.children, &mut children);
        fresh.children = children;
        self.time += 1;
        let time = 1_763_000_000_000_000_000 + self.time;
        if self.rng.chance(60) {
            fresh.set("created_at_ns", Json::int(time));
            fresh.unset("offset");
        }
        if let Some(seq) = root.region("^seq") {
            seq.children.push(fresh);
        }
    }

    fn mutate(&mut self, root: &mut Draft) {
        let mut n = self.rng.below(root.count());
        match self.rng.below(6) {
            0 => {
                let new = self.any(1);
                if let Some(node) = root.nth(&mut n) {
                    node.children.push(new);
                }
            }
            1 => {
                take(root, &mut n);
            }
            2 => {
                let mut to = self.rng.below(root.count());
                if let Some(moved) = take(root, &mut n) {
                    to %= root.count();
                    root.nth(&mut to).unwrap().children.push(moved);
                }
            }
            _ => {
                let fresh = self.headers();
                let mut scratch = fresh.clone();
                self.content(&mut scratch);
                let take = self.rng.range(1, 3) as usize;
                let drop = self.rng.chance(20);
                let node = root.nth(&mut n).unwrap();
                if node.id.is_none() || node.is_region() && drop {
                    return;
                }
                for (name, value) in scratch.fields.into_iter().rev().take(take) {
                    if name != "nodeType" {
                        node.set(&name, value);
                    }
                }
                if drop && let Some((name, _)) = node.fields.last().cloned() {
                    node.unset(&name);
                }
            }
        }
    }
}

#[test]
fn a_delta_says_what_its_document_says() {
    let mut deltas = 0;
    for seed in 0..300 {
        let mut maker = Maker {
            rng: Rng::new(seed),
            next_id: 0,
            time: 0,
        };
        let first = maker.document();
        let second = maker.next(first.clone());
        let Some(delta) = delta(&(1, first.clone()), &second, 2) else {
            continue;
        };
        deltas += 1;
        let one = maker.full(&first, Some(1), false);
        let two = maker.full(&second, Some(2), false);
        let full = Session::from_lines(&[one.clone(), two]);
        let short = Session::from_lines(&[one, delta.write()]);
        let show = |session: &Session| -> Vec<String> {
            let nodes = session.committed[1].nodes.iter();
            nodes
                .map(|n| format!("{} {:?} {:?} {:?}", n.id, n.class, n.depth, n.parent))
                .collect()
        };
        assert_eq!(show(&full), show(&short), "seed {seed}");
    }
    assert!(deltas > 100, "only {deltas} deltas");
}
