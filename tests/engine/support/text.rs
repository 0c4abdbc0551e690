//! Prints a [`Sel`] as selector text: plainly, or in a random one of its equal spellings.

use super::compare::one_vocabulary;
use super::random::Rng;
use super::selector::{
    Axis, Body, Chain, Condition, Depths, Edition, Filter, Hop, Kind, Mode, NodeStep, Op, Order,
    Part, Prop, Pseudo, Region, Sel, Sign, Step, Time, Value,
};

/// The plain text.
pub(crate) fn plain(sel: &Sel, edition: Edition) -> String {
    Printer {
        edition,
        rng: None,
        params: None,
    }
    .selector(sel)
}

/// A random one of the spellings with the same meaning.
pub(crate) fn variant(sel: &Sel, edition: Edition, rng: &mut Rng) -> String {
    Printer {
        edition,
        rng: Some(rng),
        params: None,
    }
    .selector(sel)
}

/// The plain text with every literal replaced by a parameter where that is allowed, and the
/// values of the parameters.
pub(crate) fn with_params(sel: &Sel, edition: Edition) -> (String, Vec<(String, Value)>) {
    let mut printer = Printer {
        edition,
        rng: None,
        params: Some(Vec::new()),
    };
    let text = printer.selector(sel);
    (text, printer.params.unwrap_or_default())
}

struct Printer<'a> {
    edition: Edition,
    /// The source of random spellings; `None` prints the plain one.
    rng: Option<&'a mut Rng>,
    /// The literals that were printed as parameters; `None` prints literals.
    params: Option<Vec<(String, Value)>>,
}

impl Printer<'_> {
    fn chance(&mut self, percent: u64) -> bool {
        self.rng.as_mut().is_some_and(|rng| rng.chance(percent))
    }

    fn either<'t>(&mut self, plain: &'t str, others: &[&'t str]) -> &'t str {
        let Some(rng) = &mut self.rng else {
            return plain;
        };
        if rng.chance(50) {
            rng.pick::<&'t str>(others)
        } else {
            plain
        }
    }

    /// `$name` for a literal, where literals are printed as parameters.
    fn param(&mut self, value: Value) -> Option<String> {
        let params = self.params.as_mut()?;
        let name = format!("p{}", params.len());
        params.push((name.clone(), value));
        Some(format!("${name}"))
    }

    /// White space where it has no meaning.
    fn gap(&mut self) -> &'static str {
        self.either("", &["", "", " ", "  "])
    }

    fn selector(&mut self, sel: &Sel) -> String {
        let time = self.time(sel.time);
        let mut rest = match &sel.body {
            Body::Union(chains) if chains.is_empty() => "none".to_owned(),
            Body::Union(chains) => {
                let groups: Vec<String> = chains.iter().map(|chain| self.chain(chain)).collect();
                self.join(&groups)
            }
            Body::Position(hops, search) => {
                let hops: Vec<String> = hops.iter().map(|hop| self.hop(hop)).collect();
                let mut text = format!("({}{})", self.join_hops(&hops), self.gap());
                if let Some(search) = search {
                    let mark = match search.axis {
                        Axis::Child => "?",
                        Axis::Descendant => "??",
                    };
                    text += &format!(" {mark} {}", self.braces(&search.props));
                }
                text
            }
            Body::Search(props) => {
                format!("{}{}", self.either("?? ", &["", "??"]), self.braces(props))
            }
        };
        for filter in &sel.filters {
            rest.push(' ');
            rest += &match filter {
                Filter::Braces(props) => self.braces(props),
                Filter::Brackets(props) => format!("[{}]", self.props(props)),
                Filter::Tag(tag) => self.tag(tag),
            };
        }
        let controls = &sel.controls;
        if let Some(order) = controls.order {
            rest += match order {
                Order::Pre => " @order=pre",
                Order::Post => " @order=post",
                Order::Bfs => " @order=bfs",
                Order::Path => " @order=path",
                Order::TurnDesc => " @order=turn:desc,pre",
                Order::TurnAsc => " @order=turn:asc,pre",
            };
        }
        if let Some(mode) = controls.mode {
            rest += match mode {
                Mode::Union => " @mode=union",
                Mode::Latest => " @mode=latest",
                Mode::Reduce => " @mode=reduce",
            };
        }
        if controls.unique {
            rest += " @unique";
        }
        match controls.limit {
            Some(1) if self.chance(50) => rest += " @first",
            Some(limit) => {
                let param = self.param(Value::int(limit as i64));
                rest += &format!(" @limit={}", param.unwrap_or(limit.to_string()));
            }
            None => {}
        }
        if let Some(page) = controls.page {
            let param = self.param(Value::int(page as i64));
            rest += &format!(" @p={}", param.unwrap_or(page.to_string()));
        }
        let sign = rest.starts_with(['.', '#', '[', '^']);
        let gap = if time.is_empty() || sign && self.chance(20) {
            ""
        } else {
            " "
        };
        format!("{time}{gap}{rest}")
    }

    fn join(&mut self, items: &[String]) -> String {
        let mut text = String::new();
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                text += self.either(", ", &[",", " ,", " , "]);
            }
            text += item;
        }
        text
    }

    fn join_hops(&mut self, items: &[String]) -> String {
        let gap = self.gap();
        gap.to_owned() + &self.join(items)
    }

    fn time(&mut self, time: Time) -> String {
        let back = |back: Option<u64>| match back {
            None => "@t-*".to_owned(),
            Some(0) => "@t0".to_owned(),
            Some(back) => format!("@t-{back}"),
        };
        match time {
            Time::Omitted => String::new(),
            Time::Back(n) => back(Some(n)),
            Time::Cycle(cycle) => format!("@c{cycle}"),
            Time::All => "@*".to_owned(),
            Time::BackRange(Some(0), None)
                if self.edition == Edition::Canonical && self.chance(50) =>
            {
                "@history".to_owned()
            }
            Time::BackRange(a, b) => {
                let mark = self.range_mark();
                let mut end = back(b);
                if b.is_some_and(|b| b > 0) && self.chance(50) {
                    end = end.replace("@t", "");
                }
                format!("{}{mark}{end}", back(a))
            }
            Time::CycleRange(a, b) => {
                let mark = self.range_mark();
                let end = if self.chance(50) {
                    b.to_string()
                } else {
                    format!("@c{b}")
                };
                format!("@c{a}{mark}{end}")
            }
        }
    }

    fn range_mark(&mut self) -> &'static str {
        self.either("..", &[":", " .. ", ".. ", " .."])
    }

    fn chain(&mut self, chain: &Chain) -> String {
        let mut text = String::new();
        for (i, (axis, step)) in chain.steps.iter().enumerate() {
            if i > 0 {
                text += match axis {
                    Axis::Descendant => self.either(" ", &["  ", " \t"]),
                    Axis::Child => self.either(" > ", &[">", "> ", " >"]),
                };
            }
            text += &match step {
                Step::Zone(sign) => sign_text(*sign).to_owned(),
                Step::Node(step) => self.step(step, i),
            };
        }
        text
    }

    fn step(&mut self, step: &NodeStep, number: usize) -> String {
        let mut parts: Vec<&Part> = step
            .parts
            .iter()
            .filter(|part| **part != Part::Star)
            .collect();
        let picked = step
            .pseudos
            .iter()
            .position(Pseudo::is_pick)
            .unwrap_or(step.pseudos.len());
        if let Some(rng) = &mut self.rng {
            rng.shuffle(&mut parts);
        }
        let mut printed: Vec<String> = Vec::new();
        let mut i = 0;
        while i < parts.len() {
            let mut text = self.part(parts[i]);
            // A group right after a type absorbs the brackets that follow it.
            if matches!(parts[i], Part::Type(..)) && text.starts_with('.') {
                let mut grouped = Vec::new();
                while let Some(Part::Attr(prop)) = parts.get(i + 1) {
                    let sugar = prop.test.is_none();
                    if self.edition == Edition::V01 || sugar || !self.chance(40) {
                        break;
                    }
                    grouped.push(self.prop(prop));
                    i += 1;
                }
                if !grouped.is_empty() {
                    text += &format!("({})", grouped.join(self.either(" ", &[", ", ","])));
                }
            }
            printed.push(text);
            i += 1;
        }
        let mut pseudos = String::new();
        for (i, pseudo) in step.pseudos.iter().enumerate() {
            match pseudo {
                Pseudo::Offset(sign) if i < picked && self.chance(30) => {
                    printed.push(format!(
                        "[offset{}0]",
                        match sign {
                            Sign::Pre => "<",
                            Sign::Core => "=",
                            Sign::Post => ">",
                        }
                    ));
                }
                Pseudo::Offset(sign) => pseudos += sign_text(*sign),
                Pseudo::Depth(depths) => {
                    pseudos += &format!(":depth({})", self.depths(depths));
                }
                Pseudo::First => pseudos += ":first",
                Pseudo::Last => pseudos += ":last",
                Pseudo::Nth(n) => {
                    let param = self.param(Value::int(*n as i64));
                    pseudos += &format!(":nth({})", param.unwrap_or(n.to_string()));
                }
                Pseudo::Condition(condition) => pseudos += &self.condition(condition),
            }
        }
        // `:pre` alone would be a zone; a tag or a bracket at the front may mean something else
        // after a chain or a search.
        // `depth(` directly after a word would be read as part of the word.
        printed.sort_by_key(|part| !part.starts_with("depth("));
        let starts = printed.first().map_or("", |first| first.as_str());
        let bare_zone = printed.is_empty() && step.pseudos.len() == 1;
        let ambiguous = self.edition == Edition::Canonical
            && (starts.starts_with('+') || starts.starts_with('[') && number > 0);
        let nothing = printed.is_empty() && pseudos.is_empty();
        let zone = bare_zone && matches!(step.pseudos[0], Pseudo::Offset(_));
        let star = nothing || zone || ambiguous || self.chance(10);
        format!(
            "{}{}{pseudos}",
            if star { "*" } else { "" },
            printed.concat()
        )
    }

    fn condition(&mut self, condition: &Condition) -> String {
        let name = match condition.kind {
            Kind::Has => "has",
            Kind::Not => "not",
            Kind::Is => "is",
            Kind::After => "after",
            Kind::Before => "before",
            Kind::HasResult => "has-result",
            Kind::HasCall => "has-call",
        };
        if condition.list.is_empty() {
            return format!(":{name}");
        }
        let mut list: Vec<String> = Vec::new();
        for (axis, chain) in &condition.list {
            let sign = match axis {
                Axis::Child => self.either("> ", &[">"]),
                Axis::Descendant => "",
            };
            list.push(format!("{sign}{}", self.chain(chain)));
        }
        if let Some(rng) = &mut self.rng {
            rng.shuffle(&mut list);
        }
        let mut list = self.join(&list);
        if let Some(within) = condition.within {
            list += &format!(", within={within}");
        }
        format!(":{name}({}{list}{})", self.gap(), self.gap())
    }

    fn part(&mut self, part: &Part) -> String {
        match part {
            Part::Star => String::new(),
            Part::Root(region) => {
                let later = self.edition != Edition::V01;
                match region {
                    Region::Root => "^root",
                    Region::Sys if later => self.either("^sys", &["depth(-1)"]),
                    Region::Sys => "^sys",
                    Region::Seq => "^seq",
                    Region::Head if later => self.either("^ah", &["depth(0)"]),
                    Region::Head => "^ah",
                }
                .to_owned()
            }
            Part::Anchor(depths) => format!("depth({})", self.depths(depths)),
            Part::Type(head, sub) => self.type_word(head, sub.as_deref()),
            Part::Hash(word) => self.hash(word),
            Part::Attr(prop) => format!("[{}{}{}]", self.gap(), self.prop(prop), self.gap()),
            Part::Tag(tag) => self.tag(tag),
        }
    }

    fn type_word(&mut self, head: &str, sub: Option<&str>) -> String {
        let head = match one_vocabulary(head).as_str() {
            "mt" => self.either("mt", &["seg"]),
            "mc" => self.either("mc", &["cont"]),
            "cb" => self.either("cb", &["block"]),
            _ => head,
        };
        match sub {
            None => format!(".{head}"),
            Some(sub) if self.edition == Edition::V01 && self.chance(40) => {
                format!("[nodeType='{head}:{sub}']")
            }
            Some(sub) if self.edition != Edition::V01 && self.chance(30) => {
                format!("[nodeType='{head}'][kind='{sub}']")
            }
            Some(sub) => format!(".{head}:{sub}"),
        }
    }

    fn hash(&mut self, word: &str) -> String {
        if let Some(param) = self.param(Value::text(word)) {
            return format!("#{param}");
        }
        if is_word(word) && !self.chance(20) {
            format!("#{word}")
        } else {
            format!("#{}", self.quoted(word))
        }
    }

    fn tag(&mut self, tag: &str) -> String {
        let plain = tag
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        if plain && !tag.is_empty() && !self.chance(20) {
            format!("+{tag}")
        } else {
            format!("+{}", self.quoted(tag))
        }
    }

    fn depths(&mut self, depths: &Depths) -> String {
        let all_single = depths
            .0
            .iter()
            .all(|(low, high)| low.is_some() && low == high);
        let later = self.edition != Edition::V01;
        let items: Vec<String> = depths
            .0
            .iter()
            .map(|(low, high)| match (low, high) {
                (Some(low), Some(high)) if low == high => low.to_string(),
                (Some(low), Some(high)) if *low < 0 => format!("{low}..{high}"),
                (Some(low), Some(high)) => {
                    let mark = if later {
                        self.either("-", &[".."])
                    } else {
                        "-"
                    };
                    format!("{low}{mark}{high}")
                }
                (Some(low), None) if self.chance(50) => format!(">{}", low - 1),
                (Some(low), None) => format!(">={low}"),
                (None, Some(high)) if self.chance(50) => format!("<{}", high + 1),
                (None, Some(high)) => format!("<={high}"),
                (None, None) => ">=-1".to_owned(),
            })
            .collect();
        let list = self.join(&items);
        if later && all_single && self.chance(20) {
            return format!("{{{list}}}");
        }
        let gap = self.gap();
        format!("{gap}{list}{gap}")
    }

    fn hop(&mut self, hop: &Hop) -> String {
        match hop {
            Hop::Depth(depths) => match depths.0.as_slice() {
                [(Some(low), Some(high))] if low == high && !self.chance(30) => format!("d{low}"),
                [(Some(low), Some(high))] if low < high && !self.chance(30) => {
                    format!("d{low}..d{high}")
                }
                _ => format!("depth({})", self.depths(depths)),
            },
            Hop::Class(head, kind, props) => {
                let word = match one_vocabulary(head).as_str() {
                    "mt" => self.either("seg", &["mt"]),
                    "mc" => self.either("cont", &["mc"]),
                    _ => self.either("block", &["cb"]),
                };
                let kind = match kind {
                    Some(kind) => format!("{}{kind}", self.either(".", &[":"])),
                    None => String::new(),
                };
                format!("{word}{kind}{}", self.hop_props(props, true))
            }
            Hop::Offset(offset, class, props) => {
                let offset = offset.map_or("*".to_owned(), |offset| offset.to_string());
                let class = match class.as_deref().map(one_vocabulary).as_deref() {
                    Some("mt") => ":seg",
                    Some("mc") => ":cont",
                    Some(_) => ":block",
                    None => "",
                };
                format!(
                    "{offset}{class}{}",
                    self.hop_props(props, !class.is_empty())
                )
            }
            Hop::Props(props) => format!("?{}", self.braces(props)),
        }
    }

    fn hop_props(&mut self, props: &[Prop], group: bool) -> String {
        if props.is_empty() {
            return String::new();
        }
        let sugar = props.iter().any(|prop| prop.test.is_none());
        if group && !sugar && self.chance(20) {
            return format!("({})", self.props(props));
        }
        if self.edition == Edition::Canonical && self.chance(30) {
            return self.braces(props);
        }
        format!("[{}]", self.props(props))
    }

    fn braces(&mut self, props: &[Prop]) -> String {
        format!("{{{}{}{}}}", self.gap(), self.props(props), self.gap())
    }

    fn props(&mut self, props: &[Prop]) -> String {
        let props: Vec<String> = props.iter().map(|prop| self.prop(prop)).collect();
        self.join(&props)
    }

    fn prop(&mut self, prop: &Prop) -> String {
        let name = match prop.name.as_str() {
            other if prop.exact => other,
            "nodeType" => self.either("nodeType", &["type"]),
            "tags" => self.either("tags", &["tag"]),
            "cadence" => self.either("cadence", &["cad"]),
            "parent" => self.either("parent", &["parent_id"]),
            other => other,
        };
        // In quotes a header and a custom attribute are the same, but no alias, facet or sugar.
        let plain = !matches!(name, "type" | "tag" | "cad" | "ephemeral" | "sticky")
            && !name.starts_with("stored_")
            && !super::selectors::FACETS.contains(&name)
            && !["bytes", "tokens"].contains(&name);
        let name = if is_name(name) && !prop.exact && !(plain && self.chance(8)) {
            name.to_owned()
        } else {
            self.quoted(name)
        };
        let null = self.either("null", &["None"]);
        match &prop.test {
            None => name,
            Some((Op::Ne, Value::Null)) if self.chance(40) => name,
            Some((op, value)) => {
                let mark = match op {
                    Op::Eq => "=",
                    Op::Ne => "!=",
                    Op::Lt => "<",
                    Op::Le => "<=",
                    Op::Gt => ">",
                    Op::Ge => ">=",
                    Op::Matches => "~",
                };
                let value = match value {
                    Value::Null => null.to_owned(),
                    // A bound number has no spelling of its own.
                    Value::Num(text) if !is_plain(text) => text.clone(),
                    value => self.value(value),
                };
                format!("{name}{}{mark}{}{value}", self.gap(), self.gap())
            }
        }
    }

    fn value(&mut self, value: &Value) -> String {
        if !matches!(value, Value::List(_))
            && let Some(param) = self.param(value.clone())
        {
            return param;
        }
        match value {
            Value::Null => "null".to_owned(),
            Value::Num(text) => text.clone(),
            Value::Text(text) => {
                let bare = is_word(text)
                    && text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && !matches!(text.as_str(), "null" | "None");
                if bare && self.chance(40) {
                    text.clone()
                } else {
                    self.quoted(text)
                }
            }
            Value::List(values) => {
                let values: Vec<String> = values.iter().map(|value| self.value(value)).collect();
                format!("[{}]", self.join(&values))
            }
        }
    }

    fn quoted(&mut self, text: &str) -> String {
        let mark = self.either("'", &["\""]);
        let escaped = text
            .replace('\\', "\\\\")
            .replace(mark, &format!("\\{mark}"));
        format!("{mark}{escaped}{mark}")
    }
}

fn sign_text(sign: Sign) -> &'static str {
    match sign {
        Sign::Pre => ":pre",
        Sign::Core => ":core",
        Sign::Post => ":post",
    }
}

/// Whether a word needs no quotes and cannot be read as a pseudo-class.
pub(crate) fn is_word(text: &str) -> bool {
    const PSEUDOS: [&str; 7] = ["first", "last", "pre", "core", "post", "nth", "depth"];
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-:".contains(&b))
        && !text.split(':').skip(1).any(|part| PSEUDOS.contains(&part))
}

/// Whether a number is spelled as its value prints.
fn is_plain(number: &str) -> bool {
    let int = number.parse::<i64>().map(|int| int.to_string());
    let decimal = number.parse::<f64>().map(|decimal| decimal.to_string());
    int.as_deref() == Ok(number) || decimal.as_deref() == Ok(number)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-:".contains(&b))
}
