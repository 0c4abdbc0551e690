//! Parses hand-written selectors for the reference interpreter. It knows the syntax that the
//! tests use and panics at anything else; refusing wrong selectors is tested on the engine alone.

use super::compare::one_vocabulary;
use super::selector::{
    Axis, Body, Chain, Condition, Controls, Depths, Edition, Filter, Hop, Kind, Mode, NodeStep, Op,
    Order, Part, Prop, Pseudo, Region, Search, Sel, Sign, Step, Time, Value,
};

/// Reads a selector.
pub(crate) fn parse(text: &str, edition: Edition) -> Sel {
    let mut reader = Reader {
        rest: text.trim(),
        edition,
    };
    let sel = reader.selector();
    assert!(
        reader.rest.is_empty(),
        "`{}` is left of `{text}`",
        reader.rest
    );
    sel
}

struct Reader<'a> {
    rest: &'a str,
    edition: Edition,
}

impl<'a> Reader<'a> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) {
        assert!(self.eat(token), "expected `{token}` at `{}`", self.rest);
    }

    fn space(&mut self) -> bool {
        let rest = self.rest.trim_start();
        let found = rest.len() < self.rest.len();
        self.rest = rest;
        found
    }

    fn take(&mut self, accepts: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !accepts(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn number(&mut self) -> i64 {
        let negative = self.eat("-");
        let digits: i64 = self.take(|c| c.is_ascii_digit()).parse().unwrap();
        if negative { -digits } else { digits }
    }

    fn selector(&mut self) -> Sel {
        let time = self.time();
        self.space();
        let later = self.edition == Edition::Canonical;
        let scoped = later && self.eat("within");
        if scoped {
            self.space();
        }
        let body = if self.edition != Edition::V01 && self.rest.starts_with('(') {
            self.position()
        } else if later && self.eat("??") {
            self.space();
            Body::Search(self.braces())
        } else if later && self.rest.starts_with('{') {
            Body::Search(self.braces())
        } else if self.eat("none") {
            Body::Union(Vec::new())
        } else {
            self.union()
        };
        let mut sel = Sel {
            time,
            body,
            filters: Vec::new(),
            controls: Controls::default(),
        };
        if later {
            leading_search(&mut sel);
        }
        loop {
            self.space();
            if self.rest.is_empty() {
                break;
            }
            if self.rest.starts_with('{') {
                sel.filters.push(Filter::Braces(self.braces()));
            } else if self.eat("[") {
                sel.filters.push(Filter::Brackets(self.props("]")));
            } else if self.eat("+") {
                sel.filters.push(Filter::Tag(self.word()));
            } else {
                self.control(&mut sel.controls);
            }
        }
        sel
    }

    fn time(&mut self) -> Time {
        if self.eat("@*") {
            return Time::All;
        }
        if self.eat("@history") {
            return Time::BackRange(Some(0), None);
        }
        if self.eat("@c") {
            let a = self.number();
            if !self.range_mark() {
                return Time::Cycle(a);
            }
            self.eat("@c");
            return Time::CycleRange(a, self.number());
        }
        if !self.eat("@t") {
            return Time::Omitted;
        }
        let a = self.back();
        if !self.range_mark() {
            return Time::Back(a.expect("`@t-*` stands in ranges only"));
        }
        self.eat("@t");
        Time::BackRange(a, self.back())
    }

    fn back(&mut self) -> Option<u64> {
        if self.eat("-*") {
            return None;
        }
        Some(self.number().unsigned_abs())
    }

    fn range_mark(&mut self) -> bool {
        let spaced = self.rest.trim_start();
        if let Some(rest) = spaced.strip_prefix("..") {
            self.rest = rest.trim_start();
            return true;
        }
        let next = self
            .rest
            .strip_prefix(':')
            .and_then(|rest| rest.chars().next());
        next.is_some_and(|c| "@-*".contains(c) || c.is_ascii_digit()) && self.eat(":")
    }

    fn union(&mut self) -> Body {
        let mut chains = vec![self.chain()];
        loop {
            let before = self.rest;
            self.space();
            if !self.eat(",") {
                self.rest = before;
                return Body::Union(chains);
            }
            self.space();
            chains.push(self.chain());
        }
    }

    fn chain(&mut self) -> Chain {
        let mut parts = self.tags();
        if !parts.is_empty() && !self.starts_part() {
            let pseudos = Vec::new();
            return self.more(Step::Node(NodeStep { parts, pseudos }));
        }
        let first = match self.step() {
            Step::Zone(sign) if !parts.is_empty() => {
                let pseudos = vec![Pseudo::Offset(sign)];
                Step::Node(NodeStep { parts, pseudos })
            }
            Step::Zone(sign) => Step::Zone(sign),
            Step::Node(step) => {
                parts.extend(step.parts);
                let pseudos = step.pseudos;
                Step::Node(NodeStep { parts, pseudos })
            }
        };
        self.more(first)
    }

    /// A run of tags at the start of a group, with white space between them.
    fn tags(&mut self) -> Vec<Part> {
        let mut tags = Vec::new();
        let mut end = self.rest;
        while self.eat("+") {
            tags.push(Part::Tag(self.word()));
            end = self.rest;
            self.space();
        }
        self.rest = end;
        tags
    }

    /// Whether a part of a step follows.
    fn starts_part(&self) -> bool {
        self.rest.starts_with(['*', '^', '.', '#', '[', ':']) || self.rest.starts_with("depth(")
    }

    /// The group with this first step.
    fn more(&mut self, first: Step) -> Chain {
        let mut steps = vec![(Axis::Descendant, first)];
        loop {
            let before = self.rest;
            let spaced = self.space();
            let axis = if self.eat(">") {
                self.space();
                Axis::Child
            } else if spaced && !self.rest.starts_with(['{', '@', ',', '+', ')']) {
                Axis::Descendant
            } else {
                self.rest = before;
                return Chain { steps };
            };
            steps.push((axis, self.step()));
        }
    }

    fn step(&mut self) -> Step {
        let mut step = NodeStep::default();
        loop {
            if self.eat("*") {
                step.parts.push(Part::Star);
            } else if self.eat("^") {
                step.parts.push(Part::Root(match self.word().as_str() {
                    "root" => Region::Root,
                    "sys" => Region::Sys,
                    "seq" => Region::Seq,
                    _ => Region::Head,
                }));
            } else if self.eat("depth(") {
                step.parts.push(Part::Anchor(self.depths()));
            } else if self.eat(".") {
                let word = self.word();
                let (head, sub) = match word.split_once(':') {
                    Some((head, sub)) => (head.to_owned(), Some(sub.to_owned())),
                    None => (word, None),
                };
                step.parts.push(Part::Type(head, sub));
                if self.eat("(") {
                    let props = self.props(")");
                    step.parts.extend(props.into_iter().map(Part::Attr));
                }
            } else if self.eat("#") {
                let word = self.word();
                step.parts.push(Part::Hash(word));
            } else if self.eat("[") {
                let props = self.props("]");
                step.parts.extend(props.into_iter().map(Part::Attr));
            } else if self.eat("+") {
                step.parts.push(Part::Tag(self.word()));
            } else if self.eat(":") {
                step.pseudos.push(self.pseudo());
            } else {
                break;
            }
        }
        match (step.parts.as_slice(), step.pseudos.as_slice()) {
            ([], []) => panic!("no step at `{}`", self.rest),
            ([], [Pseudo::Offset(sign)]) => Step::Zone(*sign),
            _ => Step::Node(step),
        }
    }

    /// A word, plain or quoted, without trailing pseudo-classes.
    fn word(&mut self) -> String {
        if self.rest.starts_with(['\'', '"']) {
            return self.quoted();
        }
        let all = self.rest;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_-:".contains(c);
        let end = all.find(|c| !is_word(c)).unwrap_or(all.len());
        let (mut word, after) = all.split_at(end);
        // `:nth(` and `:depth(` reach to the bracket; the others are cut off from the end.
        let mut called = after.starts_with('(');
        while let Some((head, last)) = word.rsplit_once(':') {
            let cut = match last {
                "first" | "last" | "pre" | "core" | "post" => !called,
                "nth" | "depth" | "has" | "not" | "is" | "after" | "before" => called,
                "has-result" | "has-call" => true,
                _ => false,
            };
            if !cut {
                break;
            }
            called = false;
            word = head;
        }
        self.rest = &all[word.len()..];
        word.to_owned()
    }

    fn quoted(&mut self) -> String {
        let mark = self.rest.chars().next().unwrap();
        let mut chars = self.rest.char_indices().skip(1).peekable();
        let mut text = String::new();
        while let Some((i, c)) = chars.next() {
            if c == mark {
                self.rest = &self.rest[i + 1..];
                return text;
            }
            let escaped = chars.peek().filter(|(_, c)| matches!(c, '\'' | '"' | '\\'));
            match (c, escaped) {
                ('\\', Some((_, c))) => {
                    text.push(*c);
                    chars.next();
                }
                _ => text.push(c),
            }
        }
        panic!("the string does not end: {}", self.rest);
    }

    fn pseudo(&mut self) -> Pseudo {
        match self.take(|c| c.is_ascii_alphabetic() || c == '-') {
            "has" => self.condition(Kind::Has),
            "not" => self.condition(Kind::Not),
            "is" => self.condition(Kind::Is),
            "after" => self.condition(Kind::After),
            "before" => self.condition(Kind::Before),
            "has-result" => self.condition(Kind::HasResult),
            "has-call" => self.condition(Kind::HasCall),
            "pre" => Pseudo::Offset(Sign::Pre),
            "core" => Pseudo::Offset(Sign::Core),
            "post" => Pseudo::Offset(Sign::Post),
            "first" => Pseudo::First,
            "last" => Pseudo::Last,
            "nth" => {
                self.expect("(");
                let n = self.number();
                self.expect(")");
                Pseudo::Nth(n as usize)
            }
            "depth" => {
                self.expect("(");
                Pseudo::Depth(self.depths())
            }
            other => panic!("no pseudo-class `{other}`"),
        }
    }

    fn condition(&mut self, kind: Kind) -> Pseudo {
        let (mut list, mut within) = (Vec::new(), None);
        if self.eat("(") {
            loop {
                self.space();
                if self.eat("within=") {
                    within = Some(self.number());
                } else {
                    let axis = if self.eat(">") {
                        Axis::Child
                    } else {
                        Axis::Descendant
                    };
                    self.space();
                    list.push((axis, self.chain()));
                }
                self.space();
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")");
        }
        Pseudo::Condition(Condition { kind, within, list })
    }

    /// The inside of `depth(…)` with its closing bracket.
    fn depths(&mut self) -> Depths {
        let mut ranges = Vec::new();
        loop {
            self.take(|c| " ,{}".contains(c));
            if self.eat(")") {
                return Depths(ranges);
            }
            let op = self.take(|c| "<>=".contains(c));
            self.space();
            let low = self.number();
            self.space();
            let high = if self.eat("..") || self.eat("-") {
                self.space();
                self.number()
            } else {
                low
            };
            ranges.push(match op {
                "<" => (None, Some(low - 1)),
                "<=" => (None, Some(low)),
                ">" => (Some(low + 1), None),
                ">=" => (Some(low), None),
                _ => (Some(low), Some(high)),
            });
        }
    }

    fn braces(&mut self) -> Vec<Prop> {
        self.expect("{");
        self.props("}")
    }

    /// Properties up to and with the closing mark.
    fn props(&mut self, end: &str) -> Vec<Prop> {
        let mut props = Vec::new();
        loop {
            self.take(|c| " ,".contains(c));
            if self.eat(end) {
                return props;
            }
            let prop = self.prop();
            let sugar = !prop.exact && prop.test.is_none() && self.edition == Edition::Canonical;
            let one = |name| Prop::new(name, Op::Eq, Value::int(1));
            match prop.name.as_str() {
                "ephemeral" if sugar => props.push(one("ttl")),
                "sticky" if sugar => props.extend([one("ttl"), one("cadence")]),
                _ => props.push(prop),
            }
        }
    }

    fn prop(&mut self) -> Prop {
        let exact = self.rest.starts_with(['\'', '"']);
        let name = if exact {
            self.quoted()
        } else {
            self.take(|c| c.is_ascii_alphanumeric() || "_-:".contains(c))
                .to_owned()
        };
        assert!(!name.is_empty(), "no name at `{}`", self.rest);
        self.space();
        let op = match self.take(|c| "=!<>~".contains(c)) {
            "" => {
                return Prop {
                    name,
                    exact,
                    test: None,
                };
            }
            "=" => Op::Eq,
            "!=" => Op::Ne,
            "<" => Op::Lt,
            "<=" => Op::Le,
            ">" => Op::Gt,
            ">=" => Op::Ge,
            _ => Op::Matches,
        };
        self.space();
        let value = self.value();
        Prop {
            name,
            exact,
            test: Some((op, value)),
        }
    }

    fn value(&mut self) -> Value {
        if self.rest.starts_with(['\'', '"']) {
            return Value::Text(self.quoted());
        }
        if self.eat("[") {
            let mut values = Vec::new();
            loop {
                self.take(|c| " ,".contains(c));
                if self.eat("]") {
                    return Value::List(values);
                }
                values.push(self.value());
            }
        }
        let word = self.take(|c| c.is_ascii_alphanumeric() || "_-:.+".contains(c));
        assert!(!word.is_empty(), "no value at `{}`", self.rest);
        match word {
            "null" | "None" => Value::Null,
            number if super::compare::reads_as_number(number) => Value::Num(number.to_owned()),
            text => Value::text(text),
        }
    }

    fn position(&mut self) -> Body {
        self.expect("(");
        let mut hops = Vec::new();
        loop {
            self.take(|c| " ,".contains(c));
            if self.eat(")") {
                break;
            }
            hops.push(self.hop());
        }
        let before = self.rest;
        self.space();
        let axis = if self.eat("??") {
            Axis::Descendant
        } else if self.eat("?") {
            Axis::Child
        } else {
            self.rest = before;
            return Body::Position(hops, None);
        };
        self.space();
        let props = self.braces();
        Body::Position(hops, Some(Search { axis, props }))
    }

    fn hop(&mut self) -> Hop {
        if self.eat("?") {
            self.space();
            return Hop::Props(self.braces());
        }
        if self.eat("depth(") {
            return Hop::Depth(self.depths());
        }
        let first = self.rest.chars().next().unwrap();
        if first == '*' || first == '-' || first.is_ascii_digit() {
            let offset = if self.eat("*") {
                None
            } else {
                Some(self.number())
            };
            let class = self
                .eat(":")
                .then(|| self.take(|c| c.is_ascii_alphabetic()));
            let class = class.map(one_vocabulary);
            return Hop::Offset(offset, class, self.hop_props());
        }
        if first == 'd' {
            self.eat("d");
            let low = self.number();
            let high = if self.eat("..") {
                self.eat("d");
                self.number()
            } else {
                low
            };
            return Hop::Depth(Depths(vec![(Some(low), Some(high))]));
        }
        let class = one_vocabulary(self.take(|c| c.is_ascii_alphabetic()));
        let kind = (self.eat(".") || self.eat(":")).then(|| {
            self.take(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
                .to_owned()
        });
        Hop::Class(class, kind, self.hop_props())
    }

    fn hop_props(&mut self) -> Vec<Prop> {
        if self.eat("[") {
            self.props("]")
        } else if self.eat("(") {
            self.props(")")
        } else if self.eat("{") {
            self.props("}")
        } else {
            Vec::new()
        }
    }

    fn control(&mut self, controls: &mut Controls) {
        if self.eat("@order=") {
            controls.order = Some(
                match self.take(|c| c.is_ascii_alphabetic() || ":,".contains(c)) {
                    "pre" => Order::Pre,
                    "post" => Order::Post,
                    "bfs" => Order::Bfs,
                    "path" => Order::Path,
                    "turn:desc,pre" => Order::TurnDesc,
                    _ => Order::TurnAsc,
                },
            );
        } else if self.eat("@mode=") {
            controls.mode = match self.take(|c| c.is_ascii_alphabetic()) {
                "union" => Some(Mode::Union),
                "latest" => Some(Mode::Latest),
                "reduce" => Some(Mode::Reduce),
                _ => None,
            };
        } else if self.eat("@limit=") {
            controls.limit = Some(self.number().unsigned_abs());
        } else if self.eat("@p=") {
            controls.page = Some(self.number().unsigned_abs());
        } else if self.eat("@first") {
            controls.limit = Some(1);
        } else if self.eat("@unique") {
            controls.unique = true;
        } else {
            panic!("no filter or control at `{}`", self.rest);
        }
    }
}

/// If a selector begins with only `#word` or a run of tags, brackets after white space are
/// filters.
fn leading_search(sel: &mut Sel) {
    let Body::Union(chains) = &mut sel.body else {
        return;
    };
    let [chain] = chains.as_mut_slice() else {
        return;
    };
    let is_search = |step: &Step| match step {
        Step::Node(step) => {
            let search = |part: &Part| matches!(part, Part::Hash(_) | Part::Tag(_));
            step.pseudos.is_empty() && step.parts.iter().all(search)
        }
        Step::Zone(_) => false,
    };
    if !is_search(&chain.steps[0].1) {
        return;
    }
    while let Some((Axis::Descendant, Step::Node(step))) = chain.steps.get(1) {
        let filter = |part: &Part| match part {
            Part::Attr(prop) => Some(Filter::Brackets(vec![prop.clone()])),
            Part::Tag(tag) => Some(Filter::Tag(tag.clone())),
            _ => None,
        };
        let filters: Option<Vec<Filter>> = step.parts.iter().map(filter).collect();
        let Some(filters) = filters.filter(|_| step.pseudos.is_empty()) else {
            return;
        };
        sel.filters.extend(filters);
        chain.steps.remove(1);
    }
}

#[test]
fn printed_selectors_read_back() {
    use super::random::{self, same};
    for edition in [Edition::V01, Edition::Depth, Edition::Canonical] {
        random::selectors(random::share(150), edition, 20, |case| {
            let (_, sample) = case.open()?;
            let mut rng = case.rng();
            for sel in &case.selectors {
                let text = super::text::plain(sel, edition);
                let back = parse(&text, edition);
                same!(super::text::plain(&back, edition), text, "printed again");
                let ask = |sel: &Sel| {
                    let sel = Sel {
                        time: Time::All,
                        ..sel.clone()
                    };
                    super::eval::ids(&sample.session, edition, &sel)
                };
                same!(ask(&back), ask(sel), "{text}");
                // Every spelling means the same.
                let other = super::text::variant(sel, edition, &mut rng);
                same!(ask(&parse(&other, edition)), ask(sel), "{other}");
            }
            Ok(())
        });
    }
}
