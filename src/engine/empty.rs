//! Finds out why a selection is empty (LANGUAGE §10). Runs only when asked: the cost of an answer
//! does not include it. Linear in the nodes of the snapshots that the selector reads; the search
//! for matches elsewhere may run the selector over every snapshot.

use super::inventory::{Inventory, Values};
use super::reason::EmptyReason;
use crate::diag::{nearest, nearest_at};
use crate::exec::{Input, Trace, count, run, run_untailed};
use crate::history::{History, Position, Union, run_union};
use crate::index::Snapshot;
use crate::ir::{
    Attr, AttrTest, Axis, Chain, Class, Controls, DepthSet, Edition, Literal, Mode, NodeStep, Op,
    Operand, Query, Step, Tail, Test, TypeTest,
};
use crate::plan::{Bound, bind, compile, sources};
use crate::syntax::quote;
use crate::syntax::words::tag_text;
use crate::tree::NodeClass;

/// The similarity from which a value is suggested. Values are arbitrary words, so one that shares
/// half of its letters is not a likely mistake.
const LIKE: f64 = 0.6;

/// Words of chat formats, and those that documents use.
const NAMES: [(&str, &str); 10] = [
    ("text", "content"),
    ("body", "content"),
    ("message", "content"),
    ("tool", "data_call_name"),
    ("tool_name", "data_call_name"),
    ("function", "data_call_name"),
    ("name", "data_call_name"),
    ("created_at", "created_at_iso"),
    ("timestamp", "created_at_iso"),
    ("tool_call_id", "data_call_id"),
];
const VALUES: [(&str, &str); 12] = [
    ("human", "user"),
    ("ai", "assistant"),
    ("bot", "assistant"),
    ("model", "assistant"),
    ("agent", "assistant"),
    ("function", "tool"),
    ("tool_call", "call"),
    ("tool_use", "call"),
    ("function_call", "call"),
    ("tool_result", "result"),
    ("tool_output", "result"),
    ("message", "text"),
];

/// The word that `word` stands for in other formats, if it is known here.
fn other_word<'a>(
    words: &'a [(&str, &str)],
    word: &str,
    known: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let found = words
        .iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case(word));
    found.map(|(_, ours)| *ours).find(|ours| known(ours))
}

/// A selector that found nothing, and where.
pub(super) struct Nothing<'a> {
    pub(super) query: &'a Query,
    pub(super) bound: &'a Bound,
    pub(super) edition: Edition,
    pub(super) history: &'a History,
    /// The snapshots it read, newest first.
    pub(super) read: Vec<&'a Snapshot>,
    /// The position of the only one.
    pub(super) only: Option<Position>,
}

impl Nothing<'_> {
    /// The reasons, those nearest to a typing mistake first. None for a selector that matches
    /// nothing by its form, which has a warning.
    pub(super) fn reasons(&self) -> Vec<EmptyReason> {
        if self.query.chains.is_empty() {
            return Vec::new();
        }
        if self.read.is_empty() {
            return vec![EmptyReason::NothingCommitted];
        }
        let mut reasons = self.window();
        if !reasons.is_empty() {
            return reasons;
        }
        self.unknown(&mut reasons);
        self.steps(&mut reasons);
        reasons.extend(self.elsewhere());
        reasons
    }

    /// Whether there are rows before the window.
    fn window(&self) -> Vec<EmptyReason> {
        if self.bound.page.is_none() {
            return Vec::new();
        }
        let before = |snapshot: &&Snapshot| {
            let input = Input::new(snapshot, self.history);
            run_untailed(self.bound, input, &mut Trace::off()).len() as u64
        };
        let rows: u64 = self.read.iter().map(before).sum();
        (rows > 0)
            .then_some(EmptyReason::Window { rows })
            .into_iter()
            .collect()
    }

    /// Names and values that no node has.
    fn unknown(&self, reasons: &mut Vec<EmptyReason>) {
        let here = Inventory::new(&self.read);
        for test in tests(self.query) {
            let reason = match test {
                Test::Attr(test) => of_test(&here, test).map(|reason| self.key_or_id(reason, test)),
                Test::Type(TypeTest::Class(class)) => of_class(&here, *class),
                Test::Type(_) | Test::Depth(_) => None,
            };
            reasons.extend(reason.filter(|reason| !reasons.contains(reason)));
        }
    }

    /// An unknown key that is an id in another snapshot.
    fn key_or_id(&self, reason: EmptyReason, test: &AttrTest) -> EmptyReason {
        let EmptyReason::UnknownValue { value, .. } = &reason else {
            return reason;
        };
        let committed = self.history.committed();
        let found = committed
            .iter()
            .rposition(|snapshot| snapshot.find(value).is_some());
        match found.filter(|_| test.attr == Attr::Key) {
            Some(at) => EmptyReason::KeyIsAnId {
                key: value.clone(),
                time: Some(time_of(committed.len() - 1 - at)),
            },
            None => reason,
        }
    }

    /// The first step of each chain that keeps nothing, or the filters after all of them.
    fn steps(&self, reasons: &mut Vec<EmptyReason>) {
        let mut trace = Trace::on();
        for snapshot in &self.read {
            run(self.bound, Input::new(snapshot, self.history), &mut trace);
        }
        let mut last = 0;
        for (at, chain) in self.query.chains.iter().enumerate() {
            if let Some(scope) = self
                .bound
                .chains
                .get(at)
                .and_then(|bound| bound.scope.as_ref())
                && let [snapshot] = self.read[..]
                && depths(snapshot).intersection(scope).ranges().is_empty()
            {
                let turns = snapshot.turns();
                push(reasons, EmptyReason::Depths { turns });
                continue;
            }
            let rows = trace.steps().get(at);
            let rows = |step: usize| {
                rows.and_then(|rows| rows.get(step))
                    .map_or(0, |step| step.rows)
            };
            last += rows(chain.steps.len() - 1);
            let failed = (0..chain.steps.len()).find(|&step| rows(step) == 0);
            if failed == Some(0) && reasons.is_empty() {
                reasons.extend(self.first_step(&chain.steps[0].1));
            } else if let Some(step @ 1..) = failed {
                let reason = EmptyReason::Step {
                    after: steps_text(&chain.steps[..step], false),
                    rows: rows(step - 1),
                    step: steps_text(&chain.steps[step..=step], true),
                };
                push(reasons, reason);
            }
        }
        if last > 0 && !self.query.filters.is_empty() {
            push(reasons, EmptyReason::Filters { rows: last });
        } else if last > 0 && self.bound.mode == Mode::Latest {
            push(reasons, EmptyReason::Superseded { rows: last });
        } else if reasons.is_empty() {
            for chain in &self.query.chains {
                let tests = vec![(steps_text(&chain.steps, false), 0)];
                push(
                    reasons,
                    EmptyReason::Tests {
                        tests,
                        picks: false,
                    },
                );
            }
        }
    }

    /// How many nodes each test of a first step matches alone.
    fn first_step(&self, step: &Step) -> Option<EmptyReason> {
        let Step::Node(step) = step else { return None };
        let alone = step.tests.iter().map(|test| {
            let step = Step::Node(NodeStep {
                tests: [test.clone()].into_iter().collect(),
                tail: Box::default(),
            });
            let chain = Chain {
                steps: [(Axis::Descendant, step)].into(),
            };
            let text = chain.to_string();
            let query = Query {
                time: self.query.time,
                chains: [chain].into_iter().collect(),
                filters: Box::default(),
                controls: Controls::default(),
            };
            // A parameter's value is not known here.
            let bound = bind(&compile(&query), &sources(&query), &[]).ok()?;
            let matches = |snapshot: &&Snapshot| {
                count(
                    &bound,
                    Input::new(snapshot, self.history),
                    &mut Trace::off(),
                )
            };
            Some((text, self.read.iter().map(matches).sum()))
        });
        let tests = alone.collect::<Option<Vec<(String, u64)>>>()?;
        Some(EmptyReason::Tests {
            tests,
            picks: !step.tail.is_empty(),
        })
    }

    /// Matches in the working state, else in the newest other snapshot that has any.
    fn elsewhere(&self) -> Option<EmptyReason> {
        let history = self.history;
        let matches = |snapshot: &Snapshot| {
            let input = Input::new(snapshot, history);
            count(self.bound, input, &mut Trace::off())
        };
        let found = |time: String, cycle: Option<i64>, rows| EmptyReason::Elsewhere {
            omit: cycle.is_none() && self.edition != Edition::V01,
            time,
            cycle,
            rows,
        };
        if let Some(working) = history
            .working()
            .filter(|_| self.only != Some(Position::Working))
        {
            let rows = matches(working);
            if rows > 0 {
                return Some(found(String::new(), None, rows));
            }
        }
        self.only?;
        let mut newest = None;
        let all = Union::all(history);
        run_union(
            self.bound,
            history,
            &all,
            &mut Trace::off(),
            &mut |at, _| {
                newest = Some(at);
                false
            },
        );
        let at = newest?;
        let snapshot = history.committed().get(at)?;
        let back = history.committed().len() - 1 - at;
        Some(found(
            time_of(back),
            Some(snapshot.cycle()),
            matches(snapshot),
        ))
    }
}

/// The address of the snapshot so many commits back.
fn time_of(back: usize) -> String {
    match back {
        0 => "@t0".to_owned(),
        back => format!("@t-{back}"),
    }
}

fn push(reasons: &mut Vec<EmptyReason>, reason: EmptyReason) {
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}

/// The depths that a snapshot has.
fn depths(snapshot: &Snapshot) -> DepthSet {
    let mut ranges = Vec::new();
    if !snapshot.sys_rows().is_empty() {
        ranges.push((-1, -1));
    }
    if !snapshot.head_rows().is_empty() {
        ranges.push((0, 0));
    }
    if snapshot.turns() > 0 {
        ranges.push((1, i64::from(snapshot.turns())));
    }
    DepthSet::from_ranges(ranges)
}

/// Steps as text, with the axis of the first one if `axis` is set. Regions have their names, which
/// canonical text does not use.
fn steps_text(steps: &[(Axis, Step)], axis: bool) -> String {
    let mut text = String::new();
    for (at, (of, step)) in steps.iter().enumerate() {
        text.push_str(match (at, of) {
            (0, _) if !axis => "",
            (0, Axis::Descendant) => "",
            (_, Axis::Descendant) => " ",
            (0, Axis::Child) => "> ",
            (_, Axis::Child) => " > ",
        });
        let alone = Chain {
            steps: [(Axis::Descendant, step.clone())].into(),
        };
        let alone = alone.to_string();
        let regions = [
            ("depth(-1)", "^sys"),
            ("depth(0)", "^ah"),
            ("[stored_type='^seq']", "^seq"),
        ];
        let named = regions.iter().find_map(|(canonical, name)| {
            let rest = alone.strip_prefix(canonical)?;
            Some(format!("{name}{rest}"))
        });
        text.push_str(&named.unwrap_or(alone));
    }
    text
}

/// Every test of a query.
fn tests(query: &Query) -> impl Iterator<Item = &Test> {
    let steps = query.chains.iter().flat_map(|chain| &chain.steps);
    let in_steps = steps.flat_map(|(_, step)| {
        let node = match step {
            Step::Node(step) => Some(step),
            Step::Zone(_) => None,
        };
        let tail = node.into_iter().flat_map(|step| &step.tail);
        let tail = tail.filter_map(|tail| match tail {
            Tail::Test(test) => Some(test),
            Tail::Pick(_) => None,
        });
        node.into_iter().flat_map(|step| &step.tests).chain(tail)
    });
    in_steps.chain(&query.filters)
}

fn of_class(here: &Inventory<'_>, class: Class) -> Option<EmptyReason> {
    let (class, name) = match class {
        Class::Turn => (NodeClass::Turn, "turn"),
        // Implicit cores are containers too.
        Class::Container => return None,
        Class::Block => (NodeClass::Block, "block"),
    };
    (!here.has_class(class)).then_some(EmptyReason::UnknownClass { class: name })
}

/// The reason that a test finds nothing, if no node has what it asks for.
fn of_test(here: &Inventory<'_>, test: &AttrTest) -> Option<EmptyReason> {
    let AttrTest { attr, op, operand } = test;
    if let Attr::Custom(name) = attr
        && !here.has_name(name)
    {
        // What a missing attribute satisfies is not the reason.
        let null = matches!(operand, Operand::Literal(Literal::Null));
        if null != (*op == Op::Ne) && matches!(op, Op::Eq | Op::Ne) {
            return None;
        }
        return Some(unknown_name(here, name));
    }
    let wanted: Vec<&str> = match (op, operand) {
        (Op::Eq, Operand::Literal(Literal::Text(text))) => vec![text],
        (Op::Eq, Operand::List(items)) => items.iter().map(text_of).collect::<Option<_>>()?,
        _ => return None,
    };
    if *attr == Attr::Content {
        return of_content(here, &wanted);
    }
    let values = here.values(attr)?;
    // A list of a scalar needs one of its values, a list of tags all of them.
    let missing = wanted.iter().find(|text| !values.contains_key(**text))?;
    if *attr != Attr::Tags && wanted.iter().any(|text| values.contains_key(*text)) {
        return None;
    }
    Some(match attr {
        // The class part of a type also finds its subtypes.
        Attr::NodeType if values.keys().any(|known| head_of(known) == *missing) => return None,
        Attr::Key if here.has_id(missing) => EmptyReason::KeyIsAnId {
            key: (*missing).to_owned(),
            time: None,
        },
        Attr::Id if has(here, &Attr::Key, missing) => EmptyReason::IdIsAKey {
            id: (*missing).to_owned(),
        },
        _ => unknown_value(here, attr, missing, values),
    })
}

/// `=` compares the whole content; a search for the text may be what was meant.
fn of_content(here: &Inventory<'_>, wanted: &[&str]) -> Option<EmptyReason> {
    let [text] = wanted else { return None };
    let found = !text.is_empty() && here.has_in_content(text);
    found.then(|| EmptyReason::UnknownValue {
        attribute: "content".to_owned(),
        value: (*text).to_owned(),
        instead: Some(format!("[content~{}]", quote(&regex_text(text)))),
        here: Vec::new(),
    })
}

/// A pattern that finds `text` itself.
fn regex_text(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

fn text_of(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Literal(Literal::Text(text)) => Some(text),
        _ => None,
    }
}

fn head_of(node_type: &str) -> &str {
    node_type.split(':').next().unwrap_or_default()
}

fn has(here: &Inventory<'_>, attr: &Attr, value: &str) -> bool {
    let values = here.values(attr);
    values.is_some_and(|values| values.contains_key(value))
}

fn unknown_name(here: &Inventory<'_>, name: &str) -> EmptyReason {
    let names = here.names();
    let near = other_word(&NAMES, name, |ours| names.contains(ours))
        .or_else(|| nearest(name, names.iter().copied()))
        .map(str::to_owned);
    let own = |name: &&&str| matches!(Attr::from_name(name), Attr::Custom(_));
    let listed = names.iter().filter(own).map(|&name| name.to_owned());
    EmptyReason::UnknownAttribute {
        name: name.to_owned(),
        here: match near {
            Some(_) => Vec::new(),
            None => listed.collect(),
        },
        nearest: near,
    }
}

/// A value that no node has: it may be misspelled, or be the value of another attribute.
fn unknown_value(here: &Inventory<'_>, attr: &Attr, value: &str, values: Values) -> EmptyReason {
    let written = |attr: &Attr, value: &str| match attr {
        Attr::Tags => tag_text(value),
        _ => format!("[{}={}]", attr, quote(value)),
    };
    let near = other_word(&VALUES, value, |ours| values.contains_key(ours))
        .or_else(|| nearest_at(LIKE, value, values.keys().map(String::as_str)));
    let elsewhere = || {
        let others = [Attr::Role, Attr::Kind, Attr::Key, Attr::Tags, Attr::Id];
        let other = others
            .into_iter()
            .find(|other| other != attr && has(here, other, value))?;
        Some(written(&other, value))
    };
    let instead = match near {
        Some(near) if near.eq_ignore_ascii_case(value) => Some(written(attr, near)),
        _ => elsewhere().or_else(|| near.map(|near| written(attr, near))),
    };
    // Ids and keys are too many to list.
    let listed = !matches!(attr, Attr::Id | Attr::Key);
    EmptyReason::UnknownValue {
        attribute: match attr {
            Attr::NodeType | Attr::StoredType => "type".to_owned(),
            Attr::StoredKind => "kind".to_owned(),
            Attr::Tags => "tag".to_owned(),
            _ => attr.name().to_owned(),
        },
        value: value.to_owned(),
        instead,
        here: match listed {
            true => values.into_iter().collect(),
            false => Vec::new(),
        },
    }
}
